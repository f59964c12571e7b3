// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Shape rules of element-wise ops. Their computation is in Elementwise.td.

#include "dlc/IR/Elementwise.h"
#include "dlc/IR/ShapeContext.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Elementwise.cpp.inc"

namespace dlc {

void DlcDialect::addElementwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Elementwise.cpp.inc"
      >();
}

/// Values of small integer tensors flow through arithmetic, so that computed shapes resolve.
static void propagateValues(ShapeContext &context, ArrayRef<DimExpr> resultDims) {
  Operation *op = context.getOp();
  int64_t count = 1;
  for (DimExpr dim : resultDims) {
    if (!dim.getConstant())
      return;
    count *= *dim.getConstant();
  }
  if (count > ShapeContext::kMaxValues || resultDims.size() > 1)
    return;
  unsigned operands = op->getNumOperands();
  auto element = [&](unsigned i, int64_t k) -> DimExpr {
    ArrayRef<DimExpr> values = context.values(i);
    return values.empty() ? DimExpr() : values.size() == 1 ? values[0] : values[k];
  };
  for (unsigned i = 0; i != operands; ++i)
    if (context.values(i).empty() || !context.elementType(i).isInteger())
      return;
  auto cast = dyn_cast<CastOp>(op);
  if (cast && !cast.getTo().isInteger(64) && !cast.getTo().isInteger(32))
    return;
  MLIRContext *c = context.getContext();
  DimExpr one = constantDim(c, 1), zero = constantDim(c, 0);
  SmallVector<DimExpr> results;
  for (int64_t k = 0; k != count; ++k) {
    DimExpr x = element(0, k), y = operands > 1 ? element(1, k) : DimExpr(), z = operands > 2 ? element(2, k) : DimExpr();
    DimExpr result;
    if (isa<CastOp>(op))
      result = x;
    else if (isa<AddOp>(op))
      result = addDims(x, y);
    else if (isa<SubOp>(op))
      result = subDims(x, y);
    else if (isa<MulOp>(op))
      result = mulDims(x, y);
    else if (isa<NegOp>(op) && x)
      result = mulDims(x, constantDim(c, -1));
    else if (isa<DivOp>(op) && x && y && lowerBound(x) >= 0 && lowerBound(y) > 0)
      result = floorDivDims(x, y); // truncation and floor agree there
    else if (isa<DivOp>(op) && x && y && y.getConstant().value_or(0) > 0)
      result = selectLtDims(x, zero, mulDims(floorDivDims(mulDims(x, constantDim(c, -1)), y), constantDim(c, -1)), floorDivDims(x, y));
    else if (isa<MinOp>(op))
      result = minDims(x, y);
    else if (isa<MaxOp>(op))
      result = maxDims(x, y);
    else if (isa<EqualOp>(op))
      result = selectEqDims(x, y, one, zero);
    else if (isa<LessOp>(op))
      result = selectLtDims(x, y, one, zero);
    else if (isa<GreaterOp>(op))
      result = selectLtDims(y, x, one, zero);
    else if (isa<LessOrEqualOp>(op))
      result = selectLtDims(y, x, zero, one);
    else if (isa<GreaterOrEqualOp>(op))
      result = selectLtDims(x, y, zero, one);
    else if (isa<AndOp>(op))
      result = selectEqDims(x, zero, zero, y);
    else if (isa<OrOp>(op))
      result = selectEqDims(x, zero, y, one);
    else if (isa<NotOp>(op) && x)
      result = selectEqDims(x, zero, one, zero);
    else if (isa<WhereOp>(op) && x)
      result = selectEqDims(x, zero, z, y);
    results.push_back(result);
  }
  if (!llvm::all_of(results, [](DimExpr e) { return !e; }))
    context.setValues(0, results);
}

LogicalResult shapeElementwise(ShapeContext &context, ElementRule rule) {
  Operation *op = context.getOp();
  unsigned first = isa<WhereOp>(op) ? 1 : 0; // the condition has a type of its own
  if (first == 1 && !context.elementType(0).isInteger(1))
    return context.emitError() << "the condition must be a bool tensor, not " << context.elementType(0);
  if (rule != ElementRule::First)
    for (unsigned i = first + 1; i < op->getNumOperands(); ++i)
      if (context.elementType(i) != context.elementType(first))
        return context.emitError() << "operands have the element types " << context.elementType(first) << " and "
                                   << context.elementType(i) << "; they must be equal (ONNX never converts: insert a Cast)";
  SmallVector<DimExpr> dims = context.dims(0);
  for (unsigned i = 1; i < op->getNumOperands(); ++i) {
    FailureOr<SmallVector<DimExpr>> both = context.broadcast(dims, context.dims(i));
    if (failed(both))
      return failure();
    dims = *both;
  }
  Type element = context.elementType(first);
  if (rule == ElementRule::Bool)
    element = IntegerType::get(context.getContext(), 1);
  else if (rule == ElementRule::Attribute)
    element = op->getAttrOfType<TypeAttr>("to").getValue();
  context.setResult(0, element, dims);
  propagateValues(context, dims);
  return success();
}

//===----------------------------------------------------------------------===//
// Expand
//===----------------------------------------------------------------------===//

Form ExpandOp::form() { return Form::Scalar; }
Role ExpandOp::role() { return Role::Elementwise; }
LayoutNeed ExpandOp::layout() { return LayoutNeed::Any; }
bool ExpandOp::readsData(unsigned operand) { return operand == 0; }
Scalar ExpandOp::scalar(ScalarBuilder &, ArrayRef<Scalar> operands) { return operands[0]; }

LogicalResult ExpandOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<DimExpr>> shape = context.valuesOrRead(1, "the shape of Expand");
  if (failed(shape))
    return failure();
  if (context.rank(1) != 1)
    return context.emitError() << "the shape must have one axis, not " << context.rank(1);
  for (DimExpr dim : *shape)
    if (upperBound(dim) < 0 && dim.getConstant())
      return context.emitError() << "the shape holds the negative size " << toString(dim);
  if (failed(context.requireSizes(*shape, "the shape")))
    return failure();
  FailureOr<SmallVector<DimExpr>> dims = context.broadcast(context.dims(0), *shape);
  if (failed(dims) || failed(context.requireSizes(*dims, "the result")))
    return failure();
  context.setResult(0, context.elementType(0), *dims);
  return success();
}

} // namespace dlc
