/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// How many threads can run at once here.
#ifndef DLCRT_POOL_AVAILABLE_H
#define DLCRT_POOL_AVAILABLE_H

#include <stdint.h>

namespace dlcrt::impl {

/// The smaller of the process's affinity and the cpu quota of its control group (v2 or v1), at least 1.
uint32_t availableThreads();

/// Threads that a quota gives: `text` is "QUOTA PERIOD" as in cpu.max; 0 = no limit.
uint32_t threadsOfQuota(const char *text);

} // namespace dlcrt::impl
#endif
