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

Form PoolIndicesOp::form() { return Form::Lower; }
Role PoolIndicesOp::role() { return Role::Opaque; }

LogicalResult PoolIndicesOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), kernel;
  if (x.size() < 3)
    return context.emitError() << "pooling needs a batch, channels and a spatial axis; dims are " << toString(x);
  for (int64_t size : getKernel())
    kernel.push_back(constantDim(getContext(), size));
  FailureOr<SmallVector<WindowAxis>> axes =
      resolveWindows(context, ArrayRef(x).drop_front(2), kernel, getStrides(), getDilations(), getPads(), getAutoPad(), getCeilMode());
  if (failed(axes))
    return failure();
  SmallVector<DimExpr> dims{x[0], x[1]};
  SmallVector<Attribute> begins;
  for (const WindowAxis &axis : *axes) {
    dims.push_back(axis.count);
    begins.push_back(axis.begin);
  }
  setResolvedPadsAttr(ArrayAttr::get(getContext(), begins));
  context.setResult(0, IntegerType::get(getContext(), 64), dims);
  return success();
}

FailureOr<SmallVector<Value>> PoolIndicesOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedPads())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  SmallVector<DimExpr> x = dimsOf(context.operandType(0));
  SmallVector<Value> sizes, kernel, begins;
  for (auto [size, cells, begin] : llvm::zip_equal(ArrayRef(x).drop_front(2), getKernel(), getResolvedPads()->getAsRange<DimExpr>())) {
    sizes.push_back(context.dim(size));
    kernel.push_back(context.dim(constantDim(getContext(), cells)));
    begins.push_back(context.dim(begin));
  }
  Value channels = context.dim(x[1]);
  Type element = context.operandType(0).getElementType();
  auto place = [&](OpBuilder &b, ValueRange indices) -> Value {
    auto add = [&](OpBuilder &own, Value u, Value v) -> Value { return arith::AddIOp::create(own, loc, u, v); };
    auto multiply = [&](OpBuilder &own, Value u, Value v) -> Value { return arith::MulIOp::create(own, loc, u, v); };
    Value none = arith::ConstantIndexOp::create(b, loc, -1), zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value first = arith::ConstantOp::create(b, loc, b.getZeroAttr(storageType(context.operandType(0)).getElementType()));
    // The largest element so far, and its index among the spatial ones.
    SmallVector<Value> best = loopOverWindow(
        b, loc, kernel, sizes, indices.drop_front(2), getStrides(), getDilations(), begins, ValueRange{first, none},
        [&](OpBuilder &inner, ValueRange, ValueRange at, Value isInside, ValueRange carried) {
          auto more = scf::IfOp::create(
              inner, loc, isInside,
              [&](OpBuilder &then, Location) {
                SmallVector<Value> where{indices[0], indices[1]};
                llvm::append_range(where, at);
                Value stored = tensor::ExtractOp::create(then, loc, context.operand(0), where);
                ScalarBuilder scalars(then, loc);
                Scalar most = scalars.load(carried[0], element), own = scalars.load(stored, element);
                Value isBetter = (own > most).getValue();
                if (own.isFloat())
                  isBetter = arith::OrIOp::create(then, loc, isBetter, ((!(own == own)) & (most == most)).getValue());
                Value isFirst = arith::CmpIOp::create(then, loc, arith::CmpIPredicate::slt, carried[1], arith::ConstantIndexOp::create(then, loc, 0));
                isBetter = arith::OrIOp::create(then, loc, isBetter, isFirst);
                Value index;
                for (size_t i = 0; i != at.size(); ++i) {
                  size_t axis = getColumnMajor() ? at.size() - 1 - i : i;
                  index = index ? add(then, multiply(then, index, sizes[axis]), at[axis]) : at[axis];
                }
                Value value = arith::SelectOp::create(then, loc, isBetter, stored, carried[0]);
                scf::YieldOp::create(then, loc, ValueRange{value, arith::SelectOp::create(then, loc, isBetter, index, carried[1])});
              },
              [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried); });
          return SmallVector<Value>(more.getResults());
        });
    Value plane = add(b, multiply(b, indices[0], channels), indices[1]);
    for (Value size : sizes)
      plane = multiply(b, plane, size);
    Value isNone = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, best[1], zero);
    Value result = arith::SelectOp::create(b, loc, isNone, none, add(b, plane, best[1]));
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), result);
  };
  return SmallVector<Value>{context.generate(context.resultType(), place)};
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
    rewriter.replaceOpWithNewOp<ReduceOp>(*this, type, getX(), getKind() == PoolKind::Sum ? ReduceKind::Sum : ReduceKind::Max, axes, /*keepdims=*/true,
                                          /*allAxes=*/false);
  return success();
}

} // namespace dlc
