// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The element-wise ops; see Elementwise.td.

#ifndef DLC_IR_ELEMENTWISE_H
#define DLC_IR_ELEMENTWISE_H

#include "dlc/IR/Dialect.h"
#include "dlc/IR/DimValue.h"
#include "dlc/IR/ScalarMath.h"

namespace dlc {

/// The shape rule of all element-wise ops: operands broadcast, element types agree. `dims` makes an element of the result from
/// one of each operand, where those are known.
llvm::LogicalResult shapeElementwise(ShapeContext &context, ElementRule rule,
                                     llvm::function_ref<DimValue(llvm::ArrayRef<DimValue>)> dims);

} // namespace dlc

#define GET_OP_CLASSES
#include "dlc/IR/Elementwise.h.inc"

#endif
