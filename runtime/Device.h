/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Devices are the structs of functions of runtime.h; the processor is one of them. This is what else they share.
#ifndef DLCRT_DEVICE_H
#define DLCRT_DEVICE_H

#include "Status.h"

#include <time.h>

namespace dlcrt::impl {

inline uint64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

/// Reasons to stop a run early. Asked between instructions and between pieces of a launch.
struct RunControl {
  const uint32_t *cancel = nullptr;
  uint64_t deadlineNs = 0;

  bool canStop() const { return cancel || deadlineNs != 0; }
  bool isCancelled() const { return cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0; }
  bool isLate() const { return deadlineNs != 0 && nowNs() >= deadlineNs; }
  bool shouldStop() const { return isCancelled() || isLate(); }
  Status check(Error *error) const {
    if (isCancelled())
      return fail(error, DLCRT_ERROR_CANCELLED, "the run was cancelled");
    if (isLate())
      return fail(error, DLCRT_ERROR_DEADLINE, "the run's deadline has passed");
    return DLCRT_OK;
  }
};

} // namespace dlcrt::impl
#endif
