// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The ops that choose elements by their values; see Selection.td.

#ifndef DLC_IR_SELECTION_H
#define DLC_IR_SELECTION_H

#include "dlc/IR/Dialect.h"

#define GET_OP_CLASSES
#include "dlc/IR/Selection.h.inc"

#endif
