// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Resize.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Resize.cpp.inc"

namespace dlc {

void DlcDialect::addResizeOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Resize.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// dlc.resize
//===----------------------------------------------------------------------===//

Form ResizeOp::form() { return Form::Expand; }
bool ResizeOp::readsData(unsigned operand) { return operand == 0 || (getScales() && getOperand(operand) == getScales()); }

/// The elements of a constant of floats.
static std::optional<SmallVector<double>> constantFloats(Attribute value) {
  std::optional<ConstantBytes> bytes = value ? constantBytes(value) : std::nullopt;
  auto type = value ? dyn_cast<RankedTensorType>(cast<TypedAttr>(value).getType()) : RankedTensorType();
  if (!bytes || !type || !(type.getElementType().isF32() || type.getElementType().isF64()))
    return std::nullopt;
  ArrayRef<char> data = bytes->owned.empty() ? bytes->data : ArrayRef<char>(bytes->owned);
  bool isDouble = type.getElementType().isF64();
  SmallVector<double> result;
  for (int64_t i = 0, e = type.getNumElements(); i != e; ++i) {
    const char *at = data.data() + (bytes->isSplat ? 0 : i * (isDouble ? 8 : 4));
    double wide;
    float narrow;
    memcpy(&wide, at, isDouble ? 8 : 0);
    memcpy(&narrow, at, isDouble ? 0 : 4);
    result.push_back(isDouble ? wide : narrow);
  }
  return result;
}

static bool isOneOf(StringRef text, ArrayRef<StringRef> all) { return llvm::is_contained(all, text); }

LogicalResult ResizeOp::shape(ShapeContext &context) {
  if (!isOneOf(getMode(), {"nearest", "linear", "cubic"}))
    return context.emitError() << "mode is '" << getMode() << "'; it can be nearest, linear and cubic";
  if (!isOneOf(getCoordinates(), {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"}))
    return context.emitError() << "coordinate_transformation_mode is '" << getCoordinates()
                               << "'; it can be half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric and tf_crop_and_resize";
  if (!isOneOf(getNearest(), {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return context.emitError() << "nearest_mode is '" << getNearest() << "'; it can be round_prefer_floor, round_prefer_ceil, floor and ceil";
  if (!isOneOf(getPolicy(), {"stretch", "not_larger", "not_smaller"}))
    return context.emitError() << "keep_aspect_ratio_policy is '" << getPolicy() << "'; it can be stretch, not_larger and not_smaller";
  if (getAntialias() && getMode() == "nearest")
    return context.emitError() << "antialias has no meaning for mode nearest";
  if (!getScales() && !getSizes())
    return context.emitError() << "it needs either scales or sizes";
  MLIRContext *c = getContext();
  SmallVector<DimExpr> x = context.dims(0), dims(x);
  SmallVector<int64_t> axes(getAxes());
  if (axes.empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, x.size()));
  auto sorted = context.normalizeAxes(axes, x.size(), "axes");
  if (failed(sorted))
    return failure();
  for (int64_t &axis : axes)
    axis += axis < 0 ? x.size() : 0;
  SmallVector<double> scales(x.size(), 0);
  unsigned given = 1 + (getRoi() ? 1 : 0);
  auto hasLength = [&](size_t count, StringRef what) -> LogicalResult {
    if (count == axes.size())
      return success();
    return context.emitError() << what << " has " << count << " entries for " << axes.size() << " axes";
  };
  auto isKnown = [](const DimValue &v) { return static_cast<bool>(v); };
  SmallVector<DimValue> fractions = getScales() ? context.numbers(given) : SmallVector<DimValue>();
  if (fractions.empty() || !llvm::all_of(fractions, isKnown))
    fractions.clear();
  bool isByScales = getScales() && (!getSizes() || context.constant(given) || !fractions.empty());
  if (isByScales) {
    if (auto numbers = constantFloats(context.constant(given))) {
      if (failed(hasLength(numbers->size(), "scales")))
        return failure();
      for (auto [axis, scale] : llvm::zip_equal(axes, *numbers)) {
        if (!(scale > 0) || !std::isfinite(scale))
          return context.emitError() << "the scale of axis " << axis << " is " << scale << "; it must be positive";
        scales[axis] = scale;
        dims[axis] = scaledFloorDims(x[axis], scale);
      }
    } else {
      if (fractions.empty())
        return context.emitError() << "its scales are known only when the model runs, which dlc does not support; give sizes, or constant scales";
      if (failed(hasLength(fractions.size(), "scales")))
        return failure();
      for (auto [axis, scale] : llvm::zip_equal(axes, fractions))
        dims[axis] = floorDivDims(mulDims(x[axis], scale.numerator), constantDim(c, scale.denominator));
    }
  } else {
    FailureOr<SmallVector<DimExpr>> sizes = context.sizes(given + (getScales() ? 1 : 0), "sizes");
    if (failed(sizes) || failed(hasLength(sizes->size(), "sizes")))
      return failure();
    for (auto [axis, size] : llvm::zip_equal(axes, *sizes))
      dims[axis] = size;
    if (getPolicy() != "stretch") {
      std::optional<double> scale;
      for (int64_t axis : axes) {
        std::optional<int64_t> from = x[axis].getConstant(), to = dims[axis].getConstant();
        if (!from || !to || *from == 0)
          return context.emitError() << "keep_aspect_ratio_policy '" << getPolicy() << "' needs sizes that are known when the model is compiled; axis " << axis
                                     << " goes from " << toString(x[axis]) << " to " << toString(dims[axis]) << " (fix it with --dim)";
        double own = static_cast<double>(*to) / *from;
        scale = !scale ? own : getPolicy() == "not_larger" ? std::min(*scale, own) : std::max(*scale, own);
      }
      for (int64_t axis : axes) {
        scales[axis] = *scale;
        dims[axis] = constantDim(c, static_cast<int64_t>(*scale * *x[axis].getConstant() + 0.5));
      }
    }
  }
  if (getRoi() && getCoordinates() == "tf_crop_and_resize") {
    auto roi = constantFloats(context.constant(1));
    if (!roi || roi->size() != 2 * axes.size())
      return context.emitError() << "roi must be constant, with a begin and an end for each of " << axes.size() << " axes";
  } else if (getCoordinates() == "tf_crop_and_resize") {
    return context.emitError() << "tf_crop_and_resize needs a roi";
  }
  if (llvm::is_contained(dims, DimExpr()))
    return context.emitError() << "a size does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  for (int64_t axis : axes)
    if (failed(context.require(selectEqDims(x[axis], constantDim(c, 0), selectEqDims(dims[axis], constantDim(c, 0), constantDim(c, 1), constantDim(c, 0)),
                                            constantDim(c, 1)),
                               x[axis], dims[axis], "axis " + Twine(axis) + " has no elements that {1} could be made of")))
      return failure();
  setResolvedSizesAttr(ArrayAttr::get(c, SmallVector<Attribute>(dims.begin(), dims.end())));
  setResolvedScales(scales);
  context.setResult(0, context.elementType(0), dims);
  return success();
}

LogicalResult ResizeOp::expand(RewriterBase &rewriter) {
  if (!getResolvedSizes() || !getResolvedScales())
    return emitOpError("its sizes are not resolved; run infer-shapes");
  auto type = cast<RankedTensorType>(getResult().getType());
  SmallVector<int64_t> axes(getAxes());
  int64_t rank = type.getRank();
  if (axes.empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  bool crops = getCoordinates() == "tf_crop_and_resize";
  SmallVector<double> roi;
  if (crops)
    if (auto constant = getRoi().getDefiningOp<ConstantOp>())
      roi = *constantFloats(constant.getValue());
  Value value = getX(), late = getScales();
  if (!late || late.getDefiningOp<ConstantOp>() || !getSizes())
    late = Value();
  for (auto [i, given] : llvm::enumerate(axes)) {
    int64_t axis = given < 0 ? given + rank : given;
    SmallVector<DimExpr> dims = dimsOf(value.getType());
    auto size = cast<DimExpr>((*getResolvedSizes())[axis]);
    double scale = (*getResolvedScales())[axis], begin = crops ? roi[i] : 0, end = crops ? roi[i + axes.size()] : 1;
    if (size == dims[axis] && ((scale == 0 && !late) || scale == 1) && begin == 0 && end == 1)
      continue;
    dims[axis] = size;
    value = ResampleOp::create(rewriter, getLoc(), tensorType(dims, type.getElementType()), value, scale == 0 ? late : Value(), i, axis, size, APFloat(scale), APFloat(begin), APFloat(end),
                               getMode(), getCoordinates(), getNearest(), getCubic(), getExtrapolation(), getExcludeOutside(), getAntialias());
  }
  rewriter.replaceOp(*this, value);
  return success();
}

//===----------------------------------------------------------------------===//
// dlc.resample
//===----------------------------------------------------------------------===//

Form ResampleOp::form() { return Form::Lower; }
Role ResampleOp::role() { return Role::Movement; }

LogicalResult ResampleOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  dims[getAxis()] = getSize();
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr ResampleOp::cost() {
  int64_t taps = getMode() == "nearest" ? 0 : getMode() == "linear" ? 3 : 7;
  return mulDims(constantDim(getContext(), taps), productOfDims(getContext(), dimsOf(getResult().getType())));
}

namespace {

/// Numbers that a body computes with, in f64.
struct Number {
  OpBuilder *b;
  Location loc;
  Value v;

  Number constant(double value) const { return {b, loc, arith::ConstantOp::create(*b, loc, b->getF64FloatAttr(value))}; }
  Number with(Value value) const { return {b, loc, value}; }
  Value asIndex() const {
    return arith::IndexCastOp::create(*b, loc, b->getIndexType(), arith::FPToSIOp::create(*b, loc, b->getI64Type(), v));
  }
};
Number operator+(Number x, Number y) { return x.with(arith::AddFOp::create(*x.b, x.loc, x.v, y.v)); }
Number operator-(Number x, Number y) { return x.with(arith::SubFOp::create(*x.b, x.loc, x.v, y.v)); }
Number operator*(Number x, Number y) { return x.with(arith::MulFOp::create(*x.b, x.loc, x.v, y.v)); }
Number operator/(Number x, Number y) { return x.with(arith::DivFOp::create(*x.b, x.loc, x.v, y.v)); }
Number operator+(Number x, double y) { return x + x.constant(y); }
Number operator-(Number x, double y) { return x - x.constant(y); }
Number operator*(Number x, double y) { return x * x.constant(y); }
Number operator-(double x, Number y) { return y.constant(x) - y; }
Number floorOf(Number x) { return x.with(math::FloorOp::create(*x.b, x.loc, x.v)); }
Number ceilOf(Number x) { return x.with(math::CeilOp::create(*x.b, x.loc, x.v)); }
Number absOf(Number x) { return x.with(math::AbsFOp::create(*x.b, x.loc, x.v)); }
Value isLess(Number x, Number y) { return arith::CmpFOp::create(*x.b, x.loc, arith::CmpFPredicate::OLT, x.v, y.v); }
Value isEqual(Number x, Number y) { return arith::CmpFOp::create(*x.b, x.loc, arith::CmpFPredicate::OEQ, x.v, y.v); }
Number select(Value condition, Number x, Number y) { return x.with(arith::SelectOp::create(*x.b, x.loc, condition, x.v, y.v)); }
Number minOf(Number x, Number y) { return select(isLess(x, y), x, y); }
Number maxOf(Number x, Number y) { return select(isLess(x, y), y, x); }

} // namespace

FailureOr<SmallVector<Value>> ResampleOp::lower(LowerContext &context) {
  Location loc = getLoc();
  RankedTensorType type = context.resultType();
  DimExpr from = dimsOf(context.operandType(0))[getAxis()];
  Value inSize = context.dim(from), outSize = context.dim(getSize());
  Type element = type.getElementType();
  StringRef mode = getMode(), coordinates = getCoordinates();
  double given = getScale().convertToDouble(), begin = getBegin().convertToDouble(), end = getEnd().convertToDouble();
  bool isNearest = mode == "nearest", isCubic = mode == "cubic", isCrop = coordinates == "tf_crop_and_resize";
  auto generated = context.generate(type, [&](OpBuilder &b, ValueRange indices) -> Value {
    auto numberOf = [&](Value index) {
      return Number{&b, loc, arith::SIToFPOp::create(b, loc, b.getF64Type(), arith::IndexCastOp::create(b, loc, b.getI64Type(), index))};
    };
    Number i = numberOf(indices[getAxis()]), n = numberOf(inSize), out = numberOf(outSize);
    Number scale = given != 0 ? i.constant(given) : out / n;
    if (getScales()) {
      Value element = tensor::ExtractOp::create(b, loc, context.operand(1), ValueRange{arith::ConstantIndexOp::create(b, loc, getScaleOf())});
      scale = i.with(element.getType().isF64() ? element : Value(arith::ExtFOp::create(b, loc, b.getF64Type(), element)));
    }
    Number width = given != 0 || getScales() ? n * scale : out; // the size before it is rounded
    Number one = i.constant(1), x = i;
    Value isSingle = isEqual(width, one);
    if (coordinates == "align_corners") {
      x = select(isSingle, i.constant(0), i * (n - 1) / select(isSingle, one, width - 1));
    } else if (coordinates == "asymmetric") {
      x = i / scale;
    } else if (isCrop) {
      x = select(isSingle, (n - 1) * ((end - begin) / 2), i * (end - begin) * (n - 1) / select(isSingle, one, width - 1)) + (n - 1) * begin;
    } else {
      x = (i + 0.5) / scale - 0.5;
      if (coordinates == "pytorch_half_pixel")
        x = select(isSingle, i.constant(-0.5), x);
      else if (coordinates == "half_pixel_symmetric")
        x = n * 0.5 * (1 - out / width) + x;
    }
    Number last = n - 1, zero = i.constant(0);
    auto clamped = [&](Number at) { return minOf(maxOf(at, zero), last); };
    auto read = [&](OpBuilder &own, Number at) -> Value {
      SmallVector<Value> where(indices);
      Number here = clamped({&own, loc, at.v});
      where[getAxis()] = here.asIndex();
      return tensor::ExtractOp::create(own, loc, context.operand(0), where);
    };
    auto outside = [&](Value stored) -> Value {
      if (!isCrop)
        return stored;
      Value isOutside = arith::OrIOp::create(b, loc, isLess(x, zero), isLess(last, x));
      ScalarBuilder scalars(b, loc);
      Scalar other = scalars.cast(scalars.wrap(arith::ConstantOp::create(b, loc, b.getF32FloatAttr(getExtrapolation().convertToFloat())), b.getF32Type()), element);
      return arith::SelectOp::create(b, loc, isOutside, scalars.store(other), stored);
    };
    if (isNearest) {
      StringRef rounding = getNearest();
      Number at = rounding == "round_prefer_floor"  ? ceilOf(x - 0.5)
                  : rounding == "round_prefer_ceil" ? floorOf(x + 0.5)
                  : rounding == "floor"             ? floorOf(x)
                                                    : ceilOf(x);
      return outside(read(b, at));
    }
    // Sums of near elements by weights, in f32 or wider.
    Type accumulator = element.isF64() || !isa<FloatType>(element) ? Type(b.getF64Type()) : Type(b.getF32Type());
    auto converted = [&](OpBuilder &own, Value stored) {
      ScalarBuilder scalars(own, loc);
      return scalars.cast(scalars.load(stored, element), accumulator).getValue();
    };
    auto asWeight = [&](OpBuilder &own, Number w) -> Value {
      return accumulator.isF64() ? w.v : Value(arith::TruncFOp::create(own, loc, accumulator, w.v));
    };
    Number first = floorOf(x), ratio = x - first;
    double a = getCubic().convertToDouble();
    // Cubic weights at a distance below 1, and below 2.
    auto inner = [&](Number d) { return (d * (a + 2) - (a + 3)) * d * d + 1.0; };
    auto outer = [&](Number d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
    auto isOn = [&](Number at) -> Value {
      return arith::AndIOp::create(*at.b, loc, isLess(Number{at.b, loc, zero.v} - 0.5, at), isLess(at, Number{at.b, loc, last.v} + 0.5));
    };
    Value sum;
    if (!getAntialias()) {
      SmallVector<std::pair<Number, Number>> taps; // places and weights
      if (isCubic)
        taps = {{first - 1, outer(ratio + 1)}, {first, inner(ratio)}, {first + 1, inner(1 - ratio)}, {first + 2, outer(2 - ratio)}};
      else
        taps = {{first, 1 - ratio}, {first + 1, ratio}};
      if (getExcludeOutside()) {
        Number total = zero;
        for (auto &[at, w] : taps) {
          w = select(isOn(at), w, zero);
          total = total + w;
        }
        for (auto &[at, w] : taps)
          w = w / total;
      }
      for (auto &[at, w] : taps) {
        Value product = arith::MulFOp::create(b, loc, asWeight(b, w), converted(b, read(b, at)));
        sum = sum ? Value(arith::AddFOp::create(b, loc, sum, product)) : product;
      }
    } else {
      // A wider footprint where the axis gets shorter, whose weights are made to add up to 1.
      Number shrunk = minOf(scale, one);
      Number start = floorOf(i.constant(isCubic ? -2 : -1) / shrunk) + 1.0, count = 2 - start * 2;
      Value low = arith::ConstantIndexOp::create(b, loc, 0), step = arith::ConstantIndexOp::create(b, loc, 1);
      Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(accumulator)), noWeight = zero.v;
      auto loop = scf::ForOp::create(b, loc, low, count.asIndex(), step, ValueRange{none, noWeight}, [&](OpBuilder &own, Location, Value k, ValueRange so) {
        Number at = Number{&own, loc, first.v} + Number{&own, loc, start.v} +
                    Number{&own, loc, arith::SIToFPOp::create(own, loc, own.getF64Type(), arith::IndexCastOp::create(own, loc, own.getI64Type(), k))};
        Number d = absOf((at - Number{&own, loc, x.v}) * Number{&own, loc, shrunk.v}), w = d;
        if (isCubic)
          w = select(isLess(d, d.constant(1)), inner(d), select(isLess(d, d.constant(2)), outer(d), d.constant(0)));
        else
          w = maxOf(1 - d, d.constant(0));
        if (getExcludeOutside())
          w = select(isOn(at), w, d.constant(0));
        Value product = arith::MulFOp::create(own, loc, asWeight(own, w), converted(own, read(own, at)));
        scf::YieldOp::create(own, loc, ValueRange{arith::AddFOp::create(own, loc, so[0], product), (Number{&own, loc, so[1]} + w).v});
      });
      sum = arith::DivFOp::create(b, loc, loop.getResult(0), asWeight(b, i.with(loop.getResult(1))));
    }
    ScalarBuilder scalars(b, loc);
    return outside(scalars.store(scalars.cast(scalars.wrap(sum, accumulator), element)));
  });
  return SmallVector<Value>{generated};
}

} // namespace dlc
