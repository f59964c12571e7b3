// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Sampling; see Sample.td.

#ifndef DLC_IR_SAMPLE_H
#define DLC_IR_SAMPLE_H

#include "dlc/IR/Dialect.h"

#define GET_OP_CLASSES
#include "dlc/IR/Sample.h.inc"

#endif
