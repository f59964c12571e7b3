// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The reductions and scans; see Reduction.td.

#ifndef DLC_IR_REDUCTION_H
#define DLC_IR_REDUCTION_H

#include "dlc/IR/Dialect.h"

#define GET_OP_CLASSES
#include "dlc/IR/Reduction.h.inc"

namespace dlc {

/// What combining starts from; the result where nothing is combined. `type` is a storage type, whose integers count as unsigned if
/// `isUnsigned`, and are 0 or 1 if `isBool`.
mlir::TypedAttr neutralElement(mlir::OpBuilder &b, ReduceKind kind, mlir::Type type, bool isUnsigned, bool isBool = false);

} // namespace dlc

#endif
