// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Resampling; see Resize.td.

#ifndef DLC_IR_RESIZE_H
#define DLC_IR_RESIZE_H

#include "dlc/IR/Dialect.h"

#define GET_OP_CLASSES
#include "dlc/IR/Resize.h.inc"

#endif
