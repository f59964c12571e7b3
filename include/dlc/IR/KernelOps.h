// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the dlc dialect that backends see.

#ifndef DLC_IR_KERNELOPS_H
#define DLC_IR_KERNELOPS_H

#include "dlc/IR/Dialect.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "dlc/IR/KernelInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dlc/IR/KernelOps.h.inc"

#endif
