// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Pool.h"
#include "Window.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/Reduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Pool.cpp.inc"

namespace dlc {

void DlcDialect::addPoolOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Pool.cpp.inc"
      >();
}

Form PoolOp::form() { return Form::Lower; }
Role PoolOp::role() { return getChannelsLast() ? Role::Window : Role::Reduction; }
PrecisionNeed PoolOp::precision() { return PrecisionNeed::AccumulateF32; }

LogicalResult PoolOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), kernel;
  if (x.size() < 3)
    return context.emitError() << "pooling needs a batch, channels and a spatial axis; dims are " << toString(x);
  for (int64_t size : getKernel())
    kernel.push_back(constantDim(getContext(), size));
  bool isLast = getChannelsLast();
  FailureOr<SmallVector<WindowAxis>> axes =
      resolveWindows(context, isLast ? ArrayRef(x).drop_front().drop_back() : ArrayRef(x).drop_front(2), kernel, getStrides(), getDilations(), getPads(), getAutoPad(), getCeilMode());
  if (failed(axes))
    return failure();
  SmallVector<DimExpr> dims{x[0]};
  if (!isLast)
    dims.push_back(x[1]);
  SmallVector<Attribute> begins, ends;
  for (const WindowAxis &axis : *axes) {
    dims.push_back(axis.count);
    begins.push_back(axis.begin);
    ends.push_back(axis.end);
  }
  if (isLast)
    dims.push_back(x.back());
  setResolvedPadsAttr(ArrayAttr::get(getContext(), begins));
  setResolvedEndsAttr(ArrayAttr::get(getContext(), ends));
  context.setResult(0, context.elementType(0), dims);
  return success();
}

/// As a kernel op.
static Value lowerChannelsLast(PoolOp op, LowerContext &context) {
  Location loc = op.getLoc();
  OpBuilder &b = context.b();
  RankedTensorType type = context.resultType();
  Type element = type.getElementType(), storage = storageType(type).getElementType();
  bool isAverage = op.getKind() == PoolKind::Average, isSum = op.getKind() != PoolKind::Max;
  Type accumulator = isSum && (element.isF16() || element.isBF16()) ? Type(b.getF32Type()) : storage;
  TypedAttr start = isSum ? cast<TypedAttr>(b.getZeroAttr(accumulator)) : neutralElement(b, ReduceKind::Max, accumulator, element.isUnsignedInteger());
  SmallVector<Value> begins, ends;
  for (auto [begin, end] : llvm::zip_equal(op.getResolvedPads()->getAsRange<DimExpr>(), op.getResolvedEnds()->getAsRange<DimExpr>())) {
    begins.push_back(context.dim(begin));
    if (isAverage && op.getCountPads())
      ends.push_back(context.dim(end));
  }
  size_t axes = begins.size();
  Value init = context.empty(type);
  auto kernel = KernelWindowOp::create(b, loc, init.getType(), context.operand(0), Value(), init, begins, ends, op.getKernel(), onesOr(op.getStrides(), axes),
                                       onesOr(op.getDilations(), axes), start, isAverage);
  OpBuilder::InsertionGuard guard(b);
  Block *step = b.createBlock(&kernel.getStep(), {}, {accumulator, storage}, {loc, loc});
  Value cell = step->getArgument(1);
  if (accumulator != storage)
    cell = arith::ExtFOp::create(b, loc, accumulator, cell);
  ScalarBuilder scalars(b, loc);
  Type as = accumulator == storage ? element : accumulator;
  Scalar soFar = scalars.wrap(step->getArgument(0), as), next = scalars.wrap(cell, as);
  KernelYieldOp::create(b, loc, (isSum ? soFar + next : max(soFar, next)).getValue());
  return kernel.getResult();
}

FailureOr<SmallVector<Value>> PoolOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedPads() || !getResolvedEnds())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  if (getChannelsLast())
    return SmallVector<Value>{lowerChannelsLast(*this, context)};
  SmallVector<DimExpr> x = dimsOf(context.operandType(0));
  SmallVector<Value> sizes, kernel, begins, ends;
  for (auto [size, cells, begin, end] : llvm::zip_equal(ArrayRef(x).drop_front(2), getKernel(), getResolvedPads()->getAsRange<DimExpr>(),
                                                        getResolvedEnds()->getAsRange<DimExpr>())) {
    sizes.push_back(context.dim(size));
    kernel.push_back(context.dim(constantDim(getContext(), cells)));
    begins.push_back(context.dim(begin));
    ends.push_back(context.dim(end));
  }
  RankedTensorType type = context.resultType();
  Type element = type.getElementType(), storage = storageType(type).getElementType();
  bool isHalf = element.isF16() || element.isBF16(), isSum = getKind() != PoolKind::Max;
  Type accumulator = isHalf && isSum ? Type(context.b().getF32Type()) : storage;
  auto pool = [&](OpBuilder &b, ValueRange indices) -> Value {
    TypedAttr neutral = isSum ? b.getZeroAttr(accumulator) : neutralElement(b, ReduceKind::Max, accumulator, element.isUnsignedInteger());
    Value start = arith::ConstantOp::create(b, loc, neutral);
    Value result = loopOverWindow(b, loc, kernel, sizes, indices.drop_front(2), getStrides(), getDilations(), begins, start,
                                  [&](OpBuilder &inner, ValueRange, ValueRange at, Value isInside, ValueRange carried) {
                                    auto more = scf::IfOp::create(
                                        inner, loc, isInside,
                                        [&](OpBuilder &then, Location) {
                                          SmallVector<Value> place{indices[0], indices[1]};
                                          llvm::append_range(place, at);
                                          Value v = tensor::ExtractOp::create(then, loc, context.operand(0), place);
                                          if (accumulator != storage)
                                            v = arith::ExtFOp::create(then, loc, accumulator, v);
                                          ScalarBuilder scalars(then, loc);
                                          Type as = accumulator == storage ? element : accumulator;
                                          Scalar a = scalars.wrap(carried[0], as), c = scalars.wrap(v, as);
                                          scf::YieldOp::create(then, loc, (isSum ? a + c : max(a, c)).getValue());
                                        },
                                        [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried[0]); });
                                    return SmallVector<Value>(more.getResults());
                                  })[0];
    auto rounded = [&](Value v) { return accumulator == storage ? v : Value(arith::TruncFOp::create(b, loc, storage, v)); };
    if (getKind() != PoolKind::Average)
      return rounded(result);
    Value count = arith::ConstantIndexOp::create(b, loc, 1);
    for (size_t i = 0; i != sizes.size(); ++i)
      count = arith::MulIOp::create(b, loc, count,
                                    countCells(b, loc, indices[2 + i], sizes[i], getKernel()[i], onesOr(getStrides(), sizes.size())[i],
                                               onesOr(getDilations(), sizes.size())[i], begins[i], getCountPads() ? ends[i] : Value()));
    Value divisor = arith::UIToFPOp::create(b, loc, accumulator, arith::IndexCastOp::create(b, loc, b.getI64Type(), count));
    result = arith::DivFOp::create(b, loc, result, divisor);
    return rounded(result);
  };
  return SmallVector<Value>{context.generate(type, pool)};
}

Form GlobalPoolOp::form() { return Form::Expand; }

LogicalResult GlobalPoolOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  if (dims.size() < 2)
    return context.emitError() << "pooling needs a batch and channels; dims are " << toString(dims);
  for (DimExpr &dim : MutableArrayRef(dims).drop_front(2))
    dim = constantDim(getContext(), 1);
  context.setResult(0, context.elementType(0), dims);
  return success();
}

LogicalResult GlobalPoolOp::expand(RewriterBase &rewriter) {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, type.getRank()));
  if (getKind() == PoolKind::Average)
    rewriter.replaceOpWithNewOp<MeanOp>(*this, type, getX(), axes, /*keepdims=*/true, /*allAxes=*/false);
  else
    rewriter.replaceOpWithNewOp<ReduceOp>(*this, type, getX(), ReduceKind::Max, axes, /*keepdims=*/true, /*allAxes=*/false);
  return success();
}

} // namespace dlc
