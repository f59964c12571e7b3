// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What a shape rule sees. Operand dims, constants and element values go in; result types, values and run-time checks come out.
// The same rule serves static shapes, symbolic ones and shapes known only at run time.

#ifndef DLC_IR_SHAPECONTEXT_H
#define DLC_IR_SHAPECONTEXT_H

#include "dlc/IR/DimValue.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace dlc {

/// What one walk over a function knows so far.
struct ShapeState {
  /// Element expressions of small integer tensors, row-major; a null expression is an unknown element.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<DimExpr>> values;
  /// The same for float tensors.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<DimValue>> floatValues;
  /// Conditions that a run-time check was added for.
  llvm::DenseSet<mlir::Attribute> checks;
  /// Lists of expressions that have names, and the names.
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<DimExpr>> named;
  /// Names the symbols of tensors that have no name themselves.
  unsigned nextRead = 0;
};

class ShapeContext {
public:
  /// Tensors of more elements have no values.
  static constexpr int64_t kMaxValues = 64;

  ShapeContext(mlir::Operation *op, ShapeState &state) : op(op), state(state) {}

  mlir::Operation *getOp() const { return op; }
  mlir::MLIRContext *getContext() const { return op->getContext(); }

  //===--- operands ---===//
  /// The dims of operand i. Operands are always ranked when a rule runs.
  llvm::SmallVector<DimExpr> dims(unsigned i) const { return dimsOf(op->getOperand(i).getType()); }
  int64_t rank(unsigned i) const { return llvm::cast<mlir::RankedTensorType>(op->getOperand(i).getType()).getRank(); }
  mlir::Type elementType(unsigned i) const { return llvm::cast<mlir::ShapedType>(op->getOperand(i).getType()).getElementType(); }
  /// The constant that operand i is, or null.
  mlir::Attribute constant(unsigned i) const;
  /// The elements of an integer operand; empty when nothing is known of them (or when it has no element).
  llvm::ArrayRef<DimExpr> values(unsigned i) const { return valuesOf(op->getOperand(i)); }
  /// The same for an operand of any of the types of isTypeOfDimValues; empty for others.
  llvm::SmallVector<DimValue> numbers(unsigned i) const;
  /// As `values`, but unknown elements become symbols that are read at run time. Fails, with an error, when the operand is not an
  /// integer tensor with a constant number (<= kMaxValues) of elements. `areCounts` says that they are never negative, because
  /// of how they were computed; what a caller feeds may be anything.
  llvm::FailureOr<llvm::SmallVector<DimExpr>> valuesOrRead(unsigned i, llvm::StringRef what, bool areCounts = false);

  /// The same for a list of sizes: one axis, and no size negative (checked at run time where that is when it is known).
  llvm::FailureOr<llvm::SmallVector<DimExpr>> sizes(unsigned i, llvm::StringRef what);

  //===--- results ---===//
  void setResult(unsigned i, mlir::Type elementType, llvm::ArrayRef<DimExpr> dims, mlir::Attribute layout = {});
  void setValues(unsigned i, llvm::ArrayRef<DimExpr> values);
  void setNumbers(unsigned i, llvm::ArrayRef<DimValue> values);

  //===--- axes ---===//
  /// `axis` in 0 .. rank - 1 (or rank with `end`), counted from the end when negative; an error names `what`.
  llvm::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank, llvm::StringRef what, bool end = false);
  /// The same for a list, sorted; a repeated axis is an error.
  llvm::FailureOr<llvm::SmallVector<int64_t>> normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank, llvm::StringRef what);
  /// Operand i as a list of axes, in its order: the same rules, kept at run time for those that are known only then.
  llvm::FailureOr<llvm::SmallVector<DimExpr>> axesOrRead(unsigned i, int64_t rank, llvm::StringRef what);

  //===--- names ---===//
  /// Symbols for expressions that a run computes once, so that what is built of them stays short. Equal lists have equal names.
  llvm::SmallVector<DimExpr> named(llvm::ArrayRef<DimExpr> expressions);

  //===--- relations ---===//
  /// The broadcast of two dims. Where neither is known to be 1 and they are not known to be equal, the result is an
  /// expression and a run-time check is added.
  llvm::FailureOr<DimExpr> broadcast(DimExpr a, DimExpr b);
  llvm::FailureOr<llvm::SmallVector<DimExpr>> broadcast(llvm::ArrayRef<DimExpr> a, llvm::ArrayRef<DimExpr> b);
  /// An error now where a != b is certain, a run-time check where it is possible. `message` may hold {0} and {1}.
  llvm::LogicalResult requireEqual(DimExpr a, DimExpr b, const llvm::Twine &message);
  /// The same for any condition (0 = fails).
  llvm::LogicalResult require(DimExpr condition, DimExpr a, DimExpr b, const llvm::Twine &message);
  /// No dim is negative, and memory can hold as many elements; tested at run time where dims are read from data.
  llvm::LogicalResult requireSizes(llvm::ArrayRef<DimExpr> dims, const llvm::Twine &what);

  mlir::InFlightDiagnostic emitError() { return op->emitError(); }

private:
  llvm::ArrayRef<DimExpr> valuesOf(mlir::Value v) const;
  mlir::Operation *op;
  ShapeState &state;
};

} // namespace dlc

#endif
