/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Arena.h"

#include "dlcrt/kernel_abi.h"

using namespace dlcrt::impl;

static constexpr uint64_t arenaMaximum = uint64_t(1) << 62;

/// Heap sort: in place, and the same on every machine.
template <typename Less> static void sort(uint32_t *elements, uint64_t count, Less less) {
  auto siftDown = [&](uint64_t root, uint64_t end) {
    for (uint64_t child; (child = 2 * root + 1) < end; root = child) {
      if (child + 1 < end && less(elements[child], elements[child + 1]))
        ++child;
      if (!less(elements[root], elements[child]))
        return;
      uint32_t swapped = elements[root];
      elements[root] = elements[child];
      elements[child] = swapped;
    }
  };
  for (uint64_t root = count / 2; root-- > 0;)
    siftDown(root, count);
  for (uint64_t end = count; end-- > 1;) {
    uint32_t swapped = elements[0];
    elements[0] = elements[end];
    elements[end] = swapped;
    siftDown(0, end);
  }
}

uint64_t dlcrt::impl::arenaLowerBound(const ArenaBlock *blocks, uint32_t count) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < count; ++i) { // the most live where one begins
    uint64_t alive = 0;
    for (uint32_t j = 0; j < count; ++j)
      if (blocks[j].firstStage <= blocks[i].firstStage && blocks[i].firstStage <= blocks[j].lastStage)
        alive += blocks[j].bytes;
    most = alive > most ? alive : most;
  }
  return most;
}

void ArenaPlanner::insertPlaced(const ArenaBlock *blocks, uint32_t block) {
  uint64_t low = 0, high = placed.size();
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (blocks[placed[middle]].offset <= blocks[block].offset)
      low = middle + 1;
    else
      high = middle;
  }
  (void)placed.resize(placed.size() + 1); // reserved by place
  memmove(placed.data() + low + 1, placed.data() + low, (placed.size() - 1 - low) * sizeof(uint32_t));
  placed[low] = block;
}

Status ArenaPlanner::place(ArenaBlock *blocks, uint32_t fixedCount, uint32_t count, uint64_t &end, Error *error) {
  if (!order.reserve(count) || !placed.reserve(count))
    return failOutOfMemory(error, "the arena's planner", uint64_t(count) * 2 * sizeof(uint32_t));
  order.clear();
  placed.clear();
  end = 0;
  for (uint32_t i = 0; i < count; ++i) {
    ArenaBlock &block = blocks[i];
    if (block.bytes > arenaMaximum || (i < fixedCount && block.offset > arenaMaximum))
      return fail(error, DLCRT_ERROR_OVERFLOW, "a buffer of %llu bytes does not fit into any arena",
                  (unsigned long long)block.bytes);
    block.bytes = alignUp(block.bytes, DLCRT_BUFFER_ALIGNMENT);
    if (i >= fixedCount)
      (void)order.append(i);
  }
  auto byOffset = [&](uint32_t a, uint32_t b) { return blocks[a].offset < blocks[b].offset; };
  for (uint32_t i = 0; i < fixedCount; ++i) {
    (void)placed.append(i);
    uint64_t blockEnd = blocks[i].offset + blocks[i].bytes;
    end = blockEnd > end ? blockEnd : end;
  }
  sort(placed.data(), placed.size(), byOffset);
  // Equal ones in the order of the plan, so that the result does not depend on the sort.
  sort(order.data(), order.size(), [&](uint32_t a, uint32_t b) {
    return blocks[a].bytes != blocks[b].bytes ? blocks[a].bytes > blocks[b].bytes : a < b;
  });

  for (uint32_t i : order) {
    ArenaBlock &block = blocks[i];
    if (block.bytes == 0) {
      block.offset = 0;
      continue;
    }
    uint64_t gapBegin = 0, best = 0, bestBytes = UINT64_MAX;
    for (uint32_t j : placed) {
      const ArenaBlock &other = blocks[j];
      if (other.firstStage > block.lastStage || other.lastStage < block.firstStage)
        continue;
      if (other.offset > gapBegin) {
        uint64_t gap = other.offset - gapBegin;
        if (gap >= block.bytes && gap < bestBytes) {
          best = gapBegin;
          bestBytes = gap;
        }
      }
      uint64_t otherEnd = other.offset + other.bytes;
      gapBegin = otherEnd > gapBegin ? otherEnd : gapBegin;
    }
    block.offset = bestBytes != UINT64_MAX ? best : gapBegin;
    uint64_t blockEnd = block.offset + block.bytes;
    if (blockEnd > arenaMaximum)
      return fail(error, DLCRT_ERROR_OVERFLOW, "the buffers for these dims need more than 2^62 bytes");
    end = blockEnd > end ? blockEnd : end;
    insertPlaced(blocks, i);
  }
  return DLCRT_OK;
}
