// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Normalization.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/ShapeContext.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Normalization.cpp.inc"

namespace dlc {

void DlcDialect::addNormalizationOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Normalization.cpp.inc"
      >();
}

Form BatchNormOp::form() { return Form::Expand; }

LogicalResult BatchNormOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  if (dims.empty())
    return context.emitError() << "there is no axis to normalise";
  DimExpr channels = dims.size() > 1 ? dims[1] : constantDim(getContext(), 1);
  for (unsigned i = 1; i != 5; ++i) {
    if (context.rank(i) != 1)
      return context.emitError() << "operand " << i << " must have one axis, not " << context.rank(i);
    if (failed(context.requireEqual(context.dims(i)[0], channels, "operand " + Twine(i) + " has {0} elements for {1} channels")))
      return failure();
  }
  context.setResult(0, context.elementType(0), dims);
  return success();
}

/// In the widest type of the operands, as the standard has it: parameters and statistics may be wider than x.
LogicalResult BatchNormOp::expand(RewriterBase &rewriter) {
  Location loc = getLoc();
  auto type = cast<RankedTensorType>(getResult().getType());
  Type compute = type.getElementType();
  for (Value v : getOperands())
    if (Type other = cast<RankedTensorType>(v.getType()).getElementType(); other.getIntOrFloatBitWidth() > compute.getIntOrFloatBitWidth())
      compute = other;
  if (compute.isF16() || compute.isBF16())
    compute = rewriter.getF32Type();
  auto converted = [&](Value v) -> Value {
    RankedTensorType to = tensorType(dimsOf(v.getType()), compute);
    return v.getType() == to ? v : CastOp::create(rewriter, loc, to, v, compute).getResult();
  };
  SmallVector<DimExpr> dims(std::max<int64_t>(type.getRank(), 1), constantDim(getContext(), 1));
  auto parameter = [&](Value v) {
    if (type.getRank() > 1)
      dims[1] = dimsOf(v.getType())[0];
    return converted(reshapeTo(rewriter, loc, v, tensorType(dims, cast<RankedTensorType>(v.getType()).getElementType())));
  };
  Value scale = parameter(getScale()), bias = parameter(getBias()), mean = parameter(getMean()), variance = parameter(getVariance());
  auto scalar = RankedTensorType::get({}, compute);
  Value epsilon = ConstantOp::create(rewriter, loc, DenseElementsAttr::get(scalar, rewriter.getFloatAttr(compute, getEpsilon().convertToDouble())));
  Type small = scale.getType();
  Value factor = DivOp::create(rewriter, loc, small, scale, SqrtOp::create(rewriter, loc, small, AddOp::create(rewriter, loc, small, variance, epsilon)));
  RankedTensorType wide = tensorType(dimsOf(type), compute);
  Value centred = SubOp::create(rewriter, loc, wide, converted(getX()), mean);
  Value result = AddOp::create(rewriter, loc, wide, MulOp::create(rewriter, loc, wide, centred, factor), bias);
  if (wide != type)
    result = CastOp::create(rewriter, loc, type, result, type.getElementType());
  rewriter.replaceOp(*this, result);
  return success();
}

} // namespace dlc
