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

} // namespace dlcrt::impl
#endif
