// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/AxisSet.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/Reduction.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

static SmallVector<DimExpr> dimsIn(ArrayAttr list) { return llvm::to_vector(list.getAsRange<DimExprAttr>()); }

/// What a reduction leaves of its operand's dims. The axes, sorted and not negative, are written back to the op so that later readers
/// find them so.
template <typename OpTy> static FailureOr<SmallVector<DimExpr>> reducedDims(OpTy op, ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  if (op.getAxesTensor()) {
    FailureOr<SmallVector<DimExpr>> named = context.axesOrRead(1, dims.size(), "axes");
    if (failed(named))
      return failure();
    if (!named->empty())
      op.setAllAxes(false);
    SmallVector<int64_t> constants;
    for (DimExpr axis : *named)
      if (std::optional<int64_t> constant = axis.getConstant())
        constants.push_back(*constant);
    if (constants.size() != named->size()) {
      AxisSet set(context, *named, dims.size());
      SmallVector<Attribute> flags(set.getFlags().begin(), set.getFlags().end());
      op.setReducedAttr(ArrayAttr::get(context.getContext(), flags));
      if (!op.getKeepdims())
        return set.without(dims);
      for (auto [i, dim] : llvm::enumerate(splitDims(dims, set.getFlags())))
        if (i % 2 == 0)
          dims[i / 2] = dim;
      return dims;
    }
    op.getAxesTensorMutable().clear();
    op.setAxes(constants);
  }
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

/// The operand of a reduction under dims of which the axes to reduce are known; `axes` gets them.
template <typename OpTy> static Value withKnownAxes(OpTy op, RewriterBase &rewriter, SmallVector<int64_t> &axes) {
  axes = llvm::to_vector(op.getAxes());
  if (!op.getAxesTensor())
    return op.getX();
  auto type = cast<RankedTensorType>(op.getX().getType());
  SmallVector<DimExpr> dims = splitDims(dimsOf(type), dimsIn(*op.getReduced()));
  axes.clear();
  for (int64_t i = 1; i < static_cast<int64_t>(dims.size()); i += 2)
    axes.push_back(i);
  return reshapeTo(rewriter, op.getLoc(), op.getX(), tensorType(dims, type.getElementType()));
}

static bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

Form ReduceOp::form() { return getKeepdims() || getAxesTensor() ? Form::Expand : Form::Lower; }
Role ReduceOp::role() { return Role::Reduction; }
SmallVector<int64_t> ReduceOp::reducedAxes() { return llvm::to_vector(getAxes()); }
bool ReduceOp::readsData(unsigned operand) { return operand == 0; }
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
  if (!values.empty() && context.rank(0) == 1 && !getAxesTensor() && getAxes().size() == 1 && !llvm::is_contained(values, DimExpr())) {
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
  SmallVector<int64_t> axes;
  Value x = withKnownAxes(*this, rewriter, axes);
  Value reduced = ReduceOp::create(rewriter, getLoc(), withoutAxes(x, axes), x, getKind(), axes, false, false);
  rewriter.replaceOp(*this, reshapeTo(rewriter, getLoc(), reduced, cast<RankedTensorType>(getResult().getType())));
  return success();
}

TypedAttr neutralElement(OpBuilder &b, ReduceKind kind, Type type, bool isUnsigned, bool isBool) {
  if (kind == ReduceKind::Sum)
    return b.getZeroAttr(type);
  if (kind == ReduceKind::Prod)
    return b.getOneAttr(type);
  bool largest = kind == ReduceKind::Min;
  if (isBool)
    return b.getIntegerAttr(type, largest);
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
  bool widens = isHalf(element);
  Type accumulator = widens ? Type(builder.getF32Type()) : storageType(type).getElementType();
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  Value init = context.filled(type, neutralElement(builder, getKind(), accumulator, isUnsigned, element.isInteger(1)));

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
  Type scalarType = widens ? accumulator : element.isInteger(1) ? Type(builder.getIntegerType(8, false)) : element;
  SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank), AffineMap::get(rank, 0, kept, getContext())};
  auto reduced = linalg::GenericOp::create(
      builder, getLoc(), init.getType(), context.operand(0), init, maps, iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
        Value x = args[0];
        if (widens)
          x = arith::ExtFOp::create(b, loc, accumulator, x);
        ScalarBuilder scalars(b, loc);
        linalg::YieldOp::create(b, loc, combine(getKind(), scalars.wrap(args[1], scalarType), scalars.wrap(x, scalarType)).getValue());
      });
  Value result = reduced.getResult(0);
  if (widens)
    result = context.truncated(result, type);
  return SmallVector<Value>{result};
}

//===----------------------------------------------------------------------===//
// Mean
//===----------------------------------------------------------------------===//

Form MeanOp::form() { return Form::Expand; }
bool MeanOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult MeanOp::shape(ShapeContext &context) {
  if (context.elementType(0).isInteger(1))
    return context.emitError() << "a bool tensor has no mean";
  FailureOr<SmallVector<DimExpr>> dims = reducedDims(*this, context);
  if (failed(dims))
    return failure();
  context.setResult(0, context.elementType(0), *dims);
  return success();
}

LogicalResult MeanOp::expand(RewriterBase &rewriter) {
  Location loc = getLoc();
  auto type = cast<RankedTensorType>(getResult().getType());
  SmallVector<int64_t> axes;
  Value x = withKnownAxes(*this, rewriter, axes);
  auto castTo = [&](Value value, Type element) -> Value {
    auto from = cast<RankedTensorType>(value.getType());
    if (from.getElementType() == element)
      return value;
    return CastOp::create(rewriter, loc, tensorType(dimsOf(from), element), value, element);
  };
  // The sum of 16-bit floats, and the number of them, may be too large for their type where the mean is not.
  Type compute = isHalf(type.getElementType()) ? Type(rewriter.getF32Type()) : type.getElementType();
  x = castTo(x, compute);
  RankedTensorType sums = withoutAxes(x, axes);
  Value sum = ReduceOp::create(rewriter, loc, sums, x, ReduceKind::Sum, axes, false, false);
  SmallVector<DimExpr> dims = dimsOf(x.getType());
  DimExpr count = constantDim(getContext(), 1);
  for (int64_t axis : axes)
    count = mulDims(count, dims[axis]);
  if (!count)
    return emitOpError("the number of averaged elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)");
  auto scalar = RankedTensorType::get({}, compute);
  Value elements;
  if (std::optional<int64_t> known = count.getConstant(); known && isa<FloatType>(compute)) {
    APFloat number(cast<FloatType>(compute).getFloatSemantics());
    number.convertFromAPInt(APInt(64, *known, /*isSigned=*/true), /*IsSigned=*/true, APFloat::rmNearestTiesToEven);
    elements = ConstantOp::create(rewriter, loc, DenseElementsAttr::get(scalar, number));
  } else {
    elements = castTo(FromDimsOp::create(rewriter, loc, RankedTensorType::get({}, rewriter.getI64Type()),
                                         rewriter.getArrayAttr({count})),
                      compute);
  }
  Value mean = DivOp::create(rewriter, loc, sums, sum, elements);
  rewriter.replaceOp(*this, reshapeTo(rewriter, loc, castTo(mean, type.getElementType()), type));
  return success();
}

//===----------------------------------------------------------------------===//
// ArgReduce
//===----------------------------------------------------------------------===//

Form ArgReduceOp::form() { return getKeepdims() ? Form::Expand : Form::Lower; }
Role ArgReduceOp::role() { return Role::Reduction; }

LogicalResult ArgReduceOp::shape(ShapeContext &context) {
  if (getKind() != ReduceKind::Max && getKind() != ReduceKind::Min)
    return context.emitError() << "only the largest or the smallest element has an index, not the " << stringifyReduceKind(getKind());
  SmallVector<DimExpr> dims = context.dims(0);
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), dims.size(), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  StringRef wanted = getKind() == ReduceKind::Max ? "largest" : "smallest";
  if (failed(context.require(selectEqDims(dims[*axis], zero, zero, one), dims[*axis], zero,
                             "axis " + Twine(*axis) + " is empty: it has no " + wanted + " element, and no index to give")))
    return failure();
  if (getKeepdims())
    dims[*axis] = one;
  else
    dims.erase(dims.begin() + *axis);
  context.setResult(0, IntegerType::get(getContext(), 64), dims);
  return success();
}

LogicalResult ArgReduceOp::expand(RewriterBase &rewriter) {
  RankedTensorType dropped = withoutAxes(getX(), {static_cast<int64_t>(getAxis())});
  auto type = tensorType(dimsOf(dropped), rewriter.getI64Type());
  Value indices = ArgReduceOp::create(rewriter, getLoc(), type, getX(), getKind(), getAxis(), /*keepdims=*/false, getLast());
  rewriter.replaceOp(*this, reshapeTo(rewriter, getLoc(), indices, cast<RankedTensorType>(getResult().getType())));
  return success();
}

/// Whether x, which stands behind `best`, takes its place.
static Scalar isBetter(ReduceKind kind, bool last, const Scalar &x, const Scalar &best) {
  bool isMax = kind == ReduceKind::Max;
  if (last) {
    Scalar better = isMax ? x >= best : x <= best;
    return x.isFloat() ? better | !(x == x) : better;
  }
  if (x.isFloat()) // a NaN is not below or above anything, and gives way to nothing
    return !(isMax ? x <= best : x >= best) & (best == best);
  return isMax ? x > best : x < best;
}

FailureOr<SmallVector<Value>> ArgReduceOp::lower(LowerContext &context) {
  Location loc = getLoc();
  RankedTensorType from = context.operandType(0);
  Type element = from.getElementType(), wide = isHalf(element) ? Type(context.b().getF32Type()) : element;
  int64_t axis = getAxis();
  Type storage = isHalf(element) ? wide : storageType(from).getElementType();
  TypedAttr worst = neutralElement(context.b(), getKind(), storage, element.isUnsignedInteger());
  if (axis + 1 != from.getRank()) {
    // Results lie side by side: a reduction of pairs, whole runs of which are compared at once.
    OpBuilder &b = context.b();
    Value indices = context.filled(context.resultType(), b.getI64IntegerAttr(0)),
          values = context.filled(context.resultType(), worst);
    AffineMap whole = b.getMultiDimIdentityMap(from.getRank()), kept = whole.dropResult(axis);
    SmallVector<utils::IteratorType> iterators(from.getRank(), utils::IteratorType::parallel);
    iterators[axis] = utils::IteratorType::reduction;
    auto pairs = linalg::GenericOp::create(
        b, loc, TypeRange{indices.getType(), values.getType()}, context.operand(0), ValueRange{indices, values},
        ArrayRef<AffineMap>{whole, kept, kept}, iterators, [&](OpBuilder &body, Location, ValueRange args) {
          Value x = args[0], position = linalg::IndexOp::create(body, loc, axis);
          if (x.getType() != storage)
            x = arith::ExtFOp::create(body, loc, storage, x);
          ScalarBuilder scalars(body, loc);
          Value takes = isBetter(getKind(), getLast(), scalars.wrap(x, wide), scalars.wrap(args[2], wide)).getValue();
          position = arith::IndexCastOp::create(body, loc, body.getI64Type(), position);
          linalg::YieldOp::create(body, loc,
                                  ValueRange{arith::SelectOp::create(body, loc, takes, position, args[1]),
                                             arith::SelectOp::create(body, loc, takes, x, args[2])});
        });
    return SmallVector<Value>{pairs.getResult(0)};
  }
  Value size = context.dim(dimsOf(from)[axis]);
  // The pair lives in registers: a loop along the axis for each element of the result.
  auto find = [&](OpBuilder &b, ValueRange indices) -> Value {
    auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
    Value start = arith::ConstantOp::create(b, loc, worst);
    auto loop = scf::ForOp::create(
        b, loc, constant(0), size, constant(1), ValueRange{start, constant(0)}, [&](OpBuilder &body, Location, Value i, ValueRange best) {
          SmallVector<Value> at(indices);
          at.insert(at.begin() + axis, i);
          Value x = tensor::ExtractOp::create(body, loc, context.operand(0), at);
          if (x.getType() != storage)
            x = arith::ExtFOp::create(body, loc, storage, x);
          ScalarBuilder scalars(body, loc);
          Value takes = isBetter(getKind(), getLast(), scalars.wrap(x, wide), scalars.wrap(best[0], wide)).getValue();
          Value value = arith::SelectOp::create(body, loc, takes, x, best[0]);
          Value index = arith::SelectOp::create(body, loc, takes, i, best[1]);
          scf::YieldOp::create(body, loc, ValueRange{value, index});
        });
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), loop.getResult(1));
  };
  return SmallVector<Value>{context.generate(context.resultType(), find)};
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

Form ScanOp::form() { return getAxisTensor() ? Form::Expand : Form::Kernel; }
Role ScanOp::role() { return Role::Opaque; }
bool ScanOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult ScanOp::shape(ShapeContext &context) {
  if (getKind() != ReduceKind::Sum && getKind() != ReduceKind::Prod)
    return context.emitError() << "there are running sums and products, but no running " << stringifyReduceKind(getKind());
  if (context.elementType(0).isInteger(1))
    return context.emitError() << "a bool tensor has no " << stringifyReduceKind(getKind());
  SmallVector<DimExpr> dims = context.dims(0);
  context.setResult(0, context.elementType(0), dims);
  int64_t rank = dims.size();
  if (getAxisTensor()) {
    FailureOr<SmallVector<DimExpr>> axes = context.axesOrRead(1, rank, "axis");
    if (failed(axes))
      return failure();
    if (axes->size() != 1)
      return context.emitError() << "axis must be one number, not " << axes->size();
    if (std::optional<int64_t> constant = axes->front().getConstant()) {
      getAxisTensorMutable().clear();
      setAxis(*constant);
    } else {
      DimExpr axis = context.named(*axes).front(), one = constantDim(getContext(), 1);
      DimExpr before = one, along = dims.back(), after = one;
      for (int64_t i = 0; i != rank; ++i) {
        DimExpr here = constantDim(getContext(), i);
        before = mulDims(before, selectLtDims(here, axis, dims[i], one));
        along = selectEqDims(axis, here, dims[i], along);
        after = mulDims(after, selectLtDims(axis, here, dims[i], one));
      }
      if (!before || !along || !after)
        return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
      setThreeDimsAttr(ArrayAttr::get(getContext(), {before, along, after}));
      return success();
    }
  }
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), rank, "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  return success();
}

LogicalResult ScanOp::expand(RewriterBase &rewriter) {
  auto type = cast<RankedTensorType>(getResult().getType());
  RankedTensorType three = tensorType(dimsIn(*getThreeDims()), type.getElementType());
  Value x = reshapeTo(rewriter, getLoc(), getX(), three);
  Value scanned = ScanOp::create(rewriter, getLoc(), three, x, Value(), getKind(), /*axis=*/1, getExclusive(), getReverse(), ArrayAttr());
  rewriter.replaceOp(*this, reshapeTo(rewriter, getLoc(), scanned, type));
  return success();
}

FailureOr<SmallVector<Value>> ScanOp::lower(LowerContext &context) {
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{KernelScanOp::create(context.b(), getLoc(), init.getType(), context.operand(0), init, getKind(), getAxis(),
                                                 getExclusive(), getReverse())};
}

} // namespace dlc
