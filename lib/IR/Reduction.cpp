// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Reduction.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Reduction.cpp.inc"

namespace dlc {

void DlcDialect::addReductionOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Reduction.cpp.inc"
      >();
}

/// Axes of a reduction, sorted and not negative, written back to the op so that later readers find them so.
template <typename OpTy> static FailureOr<SmallVector<DimExpr>> reducedDims(OpTy op, ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  if (op.getAllAxes()) {
    op.setAxes(llvm::to_vector(llvm::seq<int64_t>(0, dims.size())));
    op.setAllAxes(false);
  }
  FailureOr<SmallVector<int64_t>> axes = context.normalizeAxes(op.getAxes(), dims.size(), "axes");
  if (failed(axes))
    return failure();
  op.setAxes(*axes);
  SmallVector<DimExpr> result;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!llvm::is_contained(*axes, static_cast<int64_t>(i)))
      result.push_back(dim);
    else if (op.getKeepdims())
      result.push_back(constantDim(context.getContext(), 1));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

Form ReduceOp::form() { return getKeepdims() ? Form::Expand : Form::Lower; }
Role ReduceOp::role() { return Role::Reduction; }
PrecisionNeed ReduceOp::precision() { return PrecisionNeed::AccumulateF32; }

LogicalResult ReduceOp::shape(ShapeContext &context) {
  Type element = context.elementType(0);
  bool ordered = getKind() == ReduceKind::Max || getKind() == ReduceKind::Min;
  if (element.isInteger(1) && !ordered)
    return context.emitError() << "a bool tensor has no " << stringifyReduceKind(getKind());
  FailureOr<SmallVector<DimExpr>> dims = reducedDims(*this, context);
  if (failed(dims))
    return failure();
  context.setResult(0, element, *dims);
  // A product or sum of dims is how exporters compute sizes.
  ArrayRef<DimExpr> values = context.values(0);
  if (!values.empty() && context.rank(0) == 1 && getAxes().size() == 1 && !llvm::is_contained(values, DimExpr())) {
    DimExpr result = values[0];
    for (DimExpr v : values.drop_front())
      result = getKind() == ReduceKind::Sum    ? addDims(result, v)
               : getKind() == ReduceKind::Prod ? mulDims(result, v)
               : getKind() == ReduceKind::Max  ? maxDims(result, v)
                                               : minDims(result, v);
    context.setValues(0, {result});
  }
  return success();
}

/// The type of `x` reduced along axes, which vanish.
static RankedTensorType withoutAxes(Value x, ArrayRef<int64_t> axes) {
  SmallVector<DimExpr> dims;
  for (auto [i, dim] : llvm::enumerate(dimsOf(x.getType())))
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      dims.push_back(dim);
  return tensorType(dims, cast<RankedTensorType>(x.getType()).getElementType());
}

LogicalResult ReduceOp::expand(RewriterBase &rewriter) {
  Value reduced = ReduceOp::create(rewriter, getLoc(), withoutAxes(getX(), getAxes()), getX(), getKind(), getAxes(), false, false);
  rewriter.replaceOp(*this, reshapeTo(rewriter, getLoc(), reduced, cast<RankedTensorType>(getResult().getType())));
  return success();
}

TypedAttr neutralElement(OpBuilder &b, ReduceKind kind, Type type, bool isUnsigned) {
  if (kind == ReduceKind::Sum)
    return b.getZeroAttr(type);
  if (kind == ReduceKind::Prod)
    return b.getOneAttr(type);
  bool largest = kind == ReduceKind::Min;
  if (auto floating = dyn_cast<FloatType>(type))
    return b.getFloatAttr(floating, APFloat::getInf(floating.getFloatSemantics(), /*Negative=*/!largest));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = isUnsigned ? (largest ? APInt::getMaxValue(width) : APInt::getMinValue(width))
                           : (largest ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
  return b.getIntegerAttr(type, value);
}

static Scalar combine(ReduceKind kind, const Scalar &x, const Scalar &y) {
  switch (kind) {
  case ReduceKind::Sum:
    return x + y;
  case ReduceKind::Prod:
    return x * y;
  case ReduceKind::Max:
    return max(x, y);
  case ReduceKind::Min:
    return min(x, y);
  }
  llvm_unreachable("all kinds are handled");
}

FailureOr<SmallVector<Value>> ReduceOp::lower(LowerContext &context) {
  OpBuilder &builder = context.b();
  RankedTensorType type = context.resultType(), from = context.operandType(0);
  Type element = type.getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  Type accumulator = isHalf ? Type(builder.getF32Type()) : storageType(type).getElementType();
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  Value init = context.filled(type, neutralElement(builder, getKind(), accumulator, isUnsigned));

  unsigned rank = from.getRank();
  SmallVector<AffineExpr> kept;
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  for (unsigned i = 0; i != rank; ++i) {
    if (llvm::is_contained(getAxes(), static_cast<int64_t>(i)))
      iterators[i] = utils::IteratorType::reduction;
    else
      kept.push_back(builder.getAffineDimExpr(i));
  }
  // The scalar type is the dlc element type, so that unsigned maxima compare as such; bool compares as its byte.
  Type scalarType = isHalf ? accumulator : element.isInteger(1) ? Type(builder.getIntegerType(8, false)) : element;
  SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank), AffineMap::get(rank, 0, kept, getContext())};
  auto reduced = linalg::GenericOp::create(
      builder, getLoc(), init.getType(), context.operand(0), init, maps, iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
        Value x = args[0];
        if (isHalf)
          x = arith::ExtFOp::create(b, loc, accumulator, x);
        ScalarBuilder scalars(b, loc);
        linalg::YieldOp::create(b, loc, combine(getKind(), scalars.wrap(args[1], scalarType), scalars.wrap(x, scalarType)).getValue());
      });
  Value result = reduced.getResult(0);
  if (isHalf)
    result = context.truncated(result, type);
  return SmallVector<Value>{result};
}

//===----------------------------------------------------------------------===//
// Mean
//===----------------------------------------------------------------------===//

Form MeanOp::form() { return Form::Expand; }

LogicalResult MeanOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<DimExpr>> dims = reducedDims(*this, context);
  if (failed(dims))
    return failure();
  context.setResult(0, context.elementType(0), *dims);
  return success();
}

LogicalResult MeanOp::expand(RewriterBase &rewriter) {
  Location loc = getLoc();
  RankedTensorType type = withoutAxes(getX(), getAxes());
  Value sum = ReduceOp::create(rewriter, loc, type, getX(), ReduceKind::Sum, getAxes(), false, false);
  SmallVector<DimExpr> dims = dimsOf(getX().getType());
  DimExpr count = constantDim(getContext(), 1);
  for (int64_t axis : getAxes())
    count = mulDims(count, dims[axis]);
  if (!count)
    return emitOpError("the number of averaged elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)");
  auto scalar = RankedTensorType::get({}, rewriter.getI64Type());
  Value elements = FromDimsOp::create(rewriter, loc, scalar, rewriter.getArrayAttr({count}));
  Value divisor = CastOp::create(rewriter, loc, RankedTensorType::get({}, type.getElementType()), elements, type.getElementType());
  Value mean = DivOp::create(rewriter, loc, type, sum, divisor);
  rewriter.replaceOp(*this, reshapeTo(rewriter, loc, mean, cast<RankedTensorType>(getResult().getType())));
  return success();
}

//===----------------------------------------------------------------------===//
// CumSum
//===----------------------------------------------------------------------===//

Form CumSumOp::form() { return Form::Kernel; }
Role CumSumOp::role() { return Role::Opaque; }

LogicalResult CumSumOp::shape(ShapeContext &context) {
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  context.setResult(0, context.elementType(0), context.dims(0));
  return success();
}

FailureOr<SmallVector<Value>> CumSumOp::lower(LowerContext &context) {
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{KernelScanOp::create(context.b(), getLoc(), init.getType(), context.operand(0), init, ReduceKind::Sum,
                                                 getAxis(), getExclusive(), getReverse())};
}

} // namespace dlc
