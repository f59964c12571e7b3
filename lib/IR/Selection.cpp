// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Selection.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Selection.cpp.inc"

namespace dlc {

void DlcDialect::addSelectionOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Selection.cpp.inc"
      >();
}

/// The one element of an integer operand, as a dim.
static FailureOr<DimExpr> oneValue(ShapeContext &context, unsigned i, StringRef what, bool isCount) {
  FailureOr<SmallVector<DimExpr>> values = context.valuesOrRead(i, what, isCount);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return context.emitError() << what << " must be one number, not " << values->size(), failure();
  return values->front();
}

//===----------------------------------------------------------------------===//
// ArgSort
//===----------------------------------------------------------------------===//

Form ArgSortOp::form() { return Form::Kernel; }
Role ArgSortOp::role() { return Role::Opaque; }
bool ArgSortOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult ArgSortOp::shape(ShapeContext &context) {
  Type key = context.elementType(0);
  if (!key.isSignlessInteger() || key.isInteger(1))
    return context.emitError() << "keys must be signed integers, not " << key << "; make them with dlc.order_key";
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  FailureOr<DimExpr> k = oneValue(context, 1, "k", /*isCount=*/false);
  if (failed(k))
    return failure();
  SmallVector<DimExpr> dims = context.dims(0);
  MLIRContext *c = getContext();
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1), size = dims[*axis];
  if (*k != size) {
    if (!lowerBound(*k) || *lowerBound(*k) < 0)
      if (failed(context.require(selectLtDims(*k, zero, zero, one), *k, zero, "k is {0}; it must not be negative")))
        return failure();
    if (failed(context.require(selectLtDims(size, *k, zero, one), *k, size, "k is {0}, but axis " + Twine(*axis) + " has {1} entries")))
      return failure();
  }
  dims[*axis] = *k;
  if (getLexicographic())
    dims = {*k};
  context.setResult(0, IntegerType::get(c, 64), dims);
  return success();
}

FailureOr<SmallVector<Value>> ArgSortOp::lower(LowerContext &context) {
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{
      KernelArgSortOp::create(context.b(), getLoc(), init.getType(), context.operand(0), init, getAxis(), getLexicographic())};
}

//===----------------------------------------------------------------------===//
// Compact
//===----------------------------------------------------------------------===//

Form CompactOp::form() { return Form::Kernel; }
Role CompactOp::role() { return Role::Opaque; }
bool CompactOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult CompactOp::shape(ShapeContext &context) {
  if (!context.elementType(0).isInteger(1) || context.rank(0) != 1)
    return context.emitError() << "the mask must be a bool tensor of one axis, not one of " << context.rank(0) << " axes of "
                               << context.elementType(0);
  FailureOr<DimExpr> count = oneValue(context, 1, "the number of true elements", /*isCount=*/true);
  if (failed(count))
    return failure();
  context.setResult(0, IntegerType::get(getContext(), 64), {*count});
  // A mask that is known gives known positions.
  SmallVector<DimExpr> positions;
  for (auto [i, element] : llvm::enumerate(context.values(0))) {
    if (!element || !element.getConstant())
      return success();
    if (!element.isConstant(0))
      positions.push_back(constantDim(getContext(), i));
  }
  if (!context.values(0).empty() && count->isConstant(positions.size()))
    context.setValues(0, positions);
  return success();
}

FailureOr<SmallVector<Value>> CompactOp::lower(LowerContext &context) {
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{KernelCompactOp::create(context.b(), getLoc(), init.getType(), context.operand(0), init)};
}

//===----------------------------------------------------------------------===//
// Suppress
//===----------------------------------------------------------------------===//

Form SuppressOp::form() { return Form::Kernel; }
Role SuppressOp::role() { return Role::Opaque; }

LogicalResult SuppressOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> boxes = context.dims(0), keys = context.dims(1), candidates = context.dims(2);
  if (boxes.size() != 3)
    return context.emitError() << "boxes must have 3 axes (batch, boxes, 4 coordinates); dims are " << toString(boxes);
  if (keys.size() != 3 || candidates.size() != 3)
    return context.emitError() << "scores must have 3 axes (batch, classes, boxes); dims are " << toString(keys);
  if (!isa<FloatType>(context.elementType(0)) || context.elementType(4) != context.elementType(0))
    return context.emitError() << "boxes and the threshold must be floats of one type, not " << context.elementType(0) << " and " << context.elementType(4);
  if (!context.elementType(1).isSignlessInteger() || context.elementType(1).isInteger(1))
    return context.emitError() << "keys must be signed integers, not " << context.elementType(1) << "; make them with dlc.order_key";
  if (!context.elementType(2).isInteger(1) || !context.elementType(3).isInteger(64))
    return context.emitError() << "candidates must be bool and the limit int64, not " << context.elementType(2) << " and " << context.elementType(3);
  DimExpr four = constantDim(getContext(), 4), one = constantDim(getContext(), 1);
  if (failed(context.requireEqual(boxes[2], four, "a box has {0} coordinates; it must have {1}")) ||
      failed(context.requireEqual(boxes[0], keys[0], "there are boxes for a batch of {0}, but scores for one of {1}")) ||
      failed(context.requireEqual(boxes[1], keys[2], "there are {0} boxes, but scores for {1}")))
    return failure();
  for (size_t d = 0; d != 3; ++d)
    if (failed(context.requireEqual(keys[d], candidates[d], "keys have {0} entries on axis " + Twine(d) + ", candidates {1}")))
      return failure();
  for (auto [i, what] : {std::pair(3u, "the limit"), std::pair(4u, "the threshold")}) {
    DimExpr count = productOfDims(getContext(), context.dims(i));
    if (context.rank(i) > 1 || failed(context.requireEqual(count, one, Twine(what) + " must be one number, not {0}")))
      return context.rank(i) > 1 ? LogicalResult(context.emitError() << what << " must be one number; it has " << context.rank(i) << " axes") : failure();
  }
  context.setResult(0, IntegerType::get(getContext(), 64), keys);
  return success();
}

/// A test of overlap for each pair of boxes at most.
DimExpr SuppressOp::cost() {
  DimExpr count = productOfDims(getContext(), dimsOf(getResult().getType()));
  return mulDims(constantDim(getContext(), 16), count);
}

FailureOr<SmallVector<Value>> SuppressOp::lower(LowerContext &context) {
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{KernelSuppressOp::create(context.b(), getLoc(), init.getType(), context.operand(0), context.operand(1), context.operand(2),
                                                     context.operand(3), context.operand(4), init, getCentered())};
}

} // namespace dlc
