// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What an op's lowering sees: its operands as tensors without encoding, and dimension expressions as index values.

#ifndef DLC_IR_LOWERCONTEXT_H
#define DLC_IR_LOWERCONTEXT_H

#include "dlc/IR/DimExpr.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace dlc {

/// Inside one kernel body. Equal expressions give the same SSA value. A null expression gives the null value.
class LowerContext {
public:
  LowerContext(mlir::OpBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands,
               llvm::function_ref<mlir::Value(DimExpr)> dim, mlir::Value destination = {})
      : builder(builder), op(op), operandValues(operands), dimValue(dim), destination(destination) {}

  mlir::OpBuilder &b() { return builder; }
  mlir::Location getLoc() const { return op->getLoc(); }
  mlir::Value operand(unsigned i) const { return operandValues[i]; }
  /// The operand's own (dlc) type: its dims and its element type with sign.
  mlir::RankedTensorType operandType(unsigned i) const { return llvm::cast<mlir::RankedTensorType>(op->getOperand(i).getType()); }
  mlir::RankedTensorType resultType(unsigned i = 0) const { return llvm::cast<mlir::RankedTensorType>(op->getResult(i).getType()); }
  /// An index value.
  mlir::Value dim(DimExpr e) { return dimValue(e); }
  mlir::OpFoldResult dimOrConstant(DimExpr e);
  /// An undefined tensor of a dlc type's shape, in its storage element type (or `element`): the kernel's destination, where that
  /// is of this type and not taken yet.
  mlir::Value empty(mlir::RankedTensorType type, mlir::Type element = {});
  /// linalg.fill with a constant of the storage element type.
  mlir::Value filled(mlir::RankedTensorType type, mlir::TypedAttr value);
  /// The same tensor with each element rounded to the (float) element type of `type`.
  mlir::Value truncated(mlir::Value tensor, mlir::RankedTensorType type);
  /// One loop nest over the result (over its bytes, where it is packed): `body` gets the element indices and returns the element in the storage type.
  mlir::Value generate(mlir::RankedTensorType type, llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body);

private:
  mlir::OpBuilder &builder;
  mlir::Operation *op;
  llvm::ArrayRef<mlir::Value> operandValues;
  llvm::function_ref<mlir::Value(DimExpr)> dimValue;
  mlir::Value destination;
};

/// An index that comes from data. A negative one counts from the end; what `isInside` denies is on no element of the axis.
struct DataIndex {
  mlir::Value index, isInside;
};
DataIndex makeDataIndex(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value raw, mlir::Value size);
/// The element of `tensor` at `at`, or the run fails because an index is out of range.
mlir::Value extractOrRaise(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value isInside, mlir::Value tensor, mlir::ValueRange at);

} // namespace dlc

#endif
