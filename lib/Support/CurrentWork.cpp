// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Support/CurrentWork.h"

namespace dlc {

thread_local const CurrentWork *CurrentWork::innermost = nullptr;

} // namespace dlc
