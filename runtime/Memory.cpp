/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Memory.h"

#include <stdlib.h>
#include <sys/mman.h>

using namespace dlcrt::impl;

static constexpr uint64_t hugePageBytes = 2u << 20;

static void *allocateFromHeap(void *, uint64_t bytes, uint64_t alignment) {
  // Arenas and weights are walked through by every run: with 4 KiB pages the TLB would miss all the time.
  bool huge = bytes >= 2 * hugePageBytes;
  void *memory = nullptr;
  if (bytes > SIZE_MAX / 2 || posix_memalign(&memory, huge ? hugePageBytes : alignment, bytes ? bytes : 1) != 0)
    return nullptr;
  if (huge)
    madvise(memory, bytes & ~(hugePageBytes - 1), MADV_HUGEPAGE);
  return memory;
}

static void releaseToHeap(void *, void *memory, uint64_t) { free(memory); }

Memory::Memory() : allocator{sizeof(dlcrt_allocator), 0, nullptr, allocateFromHeap, releaseToHeap} {}

Status dlcrt::impl::useAllocator(const dlcrt_allocator *given, Memory &memory, Error *error) {
  if (!given)
    return DLCRT_OK;
  dlcrt_allocator allocator;
  if (Status status = readStruct(given, allocator, "dlcrt_allocator", error))
    return status;
  if (!allocator.allocate || !allocator.release)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "the allocator has no functions");
  memory = Memory(allocator);
  return DLCRT_OK;
}
