// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The pooling ops; see Pool.td.

#ifndef DLC_IR_POOL_H
#define DLC_IR_POOL_H

#include "dlc/IR/Dialect.h"

#define GET_OP_CLASSES
#include "dlc/IR/Pool.h.inc"

#endif
