/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Where the symbolic slots of a plan lie. Their sizes are known when the input dims are; the fixed slots, placed by the
// compiler, are obstacles, in whose gaps others fit when their lifetimes do not meet.
#ifndef DLCRT_ARENA_H
#define DLCRT_ARENA_H

#include "Memory.h"
#include "Status.h"

namespace dlcrt::impl {

/// A slot in the arena of one device. `bytes` is rounded up by the planner to DLCRT_BUFFER_ALIGNMENT.
struct ArenaBlock {
  uint64_t bytes = 0, offset = 0;
  uint32_t firstStage = 0, lastStage = 0; // inclusive
};

/// The most bytes that live at once: no placement takes less.
uint64_t arenaLowerBound(const ArenaBlock *blocks, uint32_t count);

/// Greedy best fit: the largest block first, each into the smallest gap between blocks that live at the same time.
class ArenaPlanner {
public:
  explicit ArenaPlanner(Memory &memory) : order(memory), placed(memory) {}

  /// Places blocks [fixedCount, count); those before have their offset already. `end` is the end of the highest block.
  /// Allocates only when `count` is larger than ever before.
  Status place(ArenaBlock *blocks, uint32_t fixedCount, uint32_t count, uint64_t &end, Error *error);

private:
  void insertPlaced(const ArenaBlock *blocks, uint32_t block);

  Vector<uint32_t> order;  // blocks to place, the largest first
  Vector<uint32_t> placed; // blocks that have an offset, by offset
};

} // namespace dlcrt::impl
#endif
