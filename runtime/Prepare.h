/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// What happens between binding and the first instruction.
#ifndef DLCRT_PREPARE_H
#define DLCRT_PREPARE_H

#include "Instance.h"

namespace dlcrt::impl {

/// Takes the best variant whose guard holds for the bound dims, evaluates its registers, places its slots, and makes
/// the arenas large enough. Cheap when the dims are those of the last run; without allocation when they were seen
/// before.
Status prepare(Instance &instance, Error *error);

struct BlockCounts {
  uint32_t fixed, all;
};
/// The slots of one device as blocks, the fixed ones first, with sizes from the plan's registers: at most as many as the
/// plan has slots. `slots` gets the ordinal of each symbolic one at its block's index; may be null.
BlockCounts blocksOf(const Plan &plan, const Values &registers, uint32_t device, ArenaBlock *blocks, uint32_t *slots);
/// For any dims; symbols that are not valid leave slots without bytes. A size that overflows is an error.
Status measureArena(const Module &module, uint32_t variant, const Values &symbols, dlcrt_arena_info &info, Error *error);

} // namespace dlcrt::impl
#endif
