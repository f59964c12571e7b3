// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Resize.h"
#include "Number.h"
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
bool ResizeOp::readsData(unsigned operand) {
  Value value = getOperand(operand);
  return operand == 0 || value == getScales() || (value == getRoi() && getCoordinates() == "tf_crop_and_resize");
}

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
      // The least or the largest of the quotients of sizes, compared by products; sizes are rounded to the nearest number, halves up.
      DimExpr zero = constantDim(c, 0), one = constantDim(c, 1), two = constantDim(c, 2), to, from;
      for (int64_t axis : axes) {
        if (failed(context.require(selectLtDims(zero, x[axis], one, zero), x[axis], zero,
                                   "keep_aspect_ratio_policy has no scale for axis " + Twine(axis) + ", which has {0} elements")))
          return failure();
        DimExpr own = to ? mulDims(dims[axis], from) : DimExpr(), other = to ? mulDims(to, x[axis]) : DimExpr();
        auto chosen = [&](DimExpr mine, DimExpr soFar) { return getPolicy() == "not_larger" ? selectLtDims(own, other, mine, soFar) : selectLtDims(other, own, mine, soFar); };
        DimExpr numerator = to ? chosen(dims[axis], to) : dims[axis], denominator = to ? chosen(x[axis], from) : x[axis];
        if (!numerator || !denominator)
          return context.emitError() << "a size does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
        SmallVector<DimExpr> pair = context.named({numerator, denominator});
        to = pair[0], from = pair[1];
      }
      for (int64_t axis : axes) {
        dims[axis] = floorDivDims(addDims(mulDims(two, mulDims(to, x[axis])), from), mulDims(two, from));
        if (!dims[axis])
          return context.emitError() << "a size does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
        if (to.getConstant() && from.getConstant())
          scales[axis] = static_cast<double>(*to.getConstant()) / *from.getConstant();
      }
      if (!to.getConstant() || !from.getConstant()) {
        setResolvedNumeratorAttr(to);
        setResolvedDenominatorAttr(from);
        SmallVector<DimExpr> list;
        for (int64_t axis : axes)
          list.push_back(dims[axis]);
        list = context.named(list);
        for (auto [axis, size] : llvm::zip_equal(axes, list))
          dims[axis] = maxDims(size, zero); // a name does not say that it is not negative
      }
    }
  }
  if (getRoi() && getCoordinates() == "tf_crop_and_resize") {
    if (context.rank(1) != 1 || !isa<FloatType>(context.elementType(1)))
      return context.emitError() << "roi must be a list of floats";
    if (failed(context.requireEqual(context.dims(1)[0], constantDim(c, 2 * axes.size()),
                                    "roi has {0} entries; it must have {1}, a begin and an end for each of " + Twine(axes.size()) + " axes")))
      return failure();
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
  std::optional<SmallVector<double>> roi;
  if (auto constant = crops ? getRoi().getDefiningOp<ConstantOp>() : ConstantOp())
    roi = constantFloats(constant.getValue());
  bool isLateRoi = crops && !roi;
  Value value = getX(), late = getScales();
  if (!late || late.getDefiningOp<ConstantOp>() || !getSizes())
    late = Value();
  for (auto [i, given] : llvm::enumerate(axes)) {
    int64_t axis = given < 0 ? given + rank : given;
    SmallVector<DimExpr> dims = dimsOf(value.getType());
    auto size = cast<DimExpr>((*getResolvedSizes())[axis]);
    double scale = (*getResolvedScales())[axis], begin = roi ? (*roi)[i] : 0, end = roi ? (*roi)[i + axes.size()] : 1;
    bool isChosen = scale == 0 && getResolvedNumerator();
    if (size == dims[axis] && ((scale == 0 && !late && !isChosen) || scale == 1) && begin == 0 && end == 1 && !isLateRoi)
      continue;
    dims[axis] = size;
    value = ResampleOp::create(rewriter, getLoc(), tensorType(dims, type.getElementType()), value, scale == 0 ? late : Value(), isLateRoi ? getRoi() : Value(), i,
                               i + axes.size(), axis, size, APFloat(scale), isChosen ? getResolvedNumeratorAttr() : DimExpr(),
                               isChosen ? getResolvedDenominatorAttr() : DimExpr(), APFloat(begin), APFloat(end), getMode(), getCoordinates(),
                               getNearest(), getCubic(), getExtrapolation(), getExcludeOutside(), getAntialias());
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

FailureOr<SmallVector<Value>> ResampleOp::lower(LowerContext &context) {
  Location loc = getLoc();
  RankedTensorType type = context.resultType();
  DimExpr from = dimsOf(context.operandType(0))[getAxis()];
  Value inSize = context.dim(from), outSize = context.dim(getSize());
  Type element = type.getElementType();
  StringRef mode = getMode(), coordinates = getCoordinates();
  double given = getScale().convertToDouble();
  // Operands, where they are there: scales, then roi.
  std::optional<unsigned> scalesAt = getScales() ? std::optional<unsigned>(1) : std::nullopt;
  std::optional<unsigned> roiAt = getRoi() ? std::optional<unsigned>(getScales() ? 2 : 1) : std::nullopt;
  Value numerator = getNumerator() ? context.dim(*getNumerator()) : Value(), denominator = getDenominator() ? context.dim(*getDenominator()) : Value();
  bool isNearest = mode == "nearest", isCubic = mode == "cubic", isCrop = coordinates == "tf_crop_and_resize";
  auto generated = context.generate(type, [&](OpBuilder &b, ValueRange indices) -> Value {
    auto numberOf = [&](Value index) { return Number::ofIndex(b, loc, b.getF64Type(), index); };
    Number i = numberOf(indices[getAxis()]), n = numberOf(inSize), out = numberOf(outSize);
    auto elementOf = [&](unsigned operand, int64_t place) -> Number {
      Value stored = tensor::ExtractOp::create(b, loc, context.operand(operand), ValueRange{arith::ConstantIndexOp::create(b, loc, place)});
      ScalarBuilder scalars(b, loc);
      return i.with(scalars.cast(scalars.load(stored, context.operandType(operand).getElementType()), b.getF64Type()).getValue());
    };
    bool hasOwnScale = given != 0 || scalesAt || numerator;
    Number scale = given != 0  ? i.constant(given)
                   : scalesAt  ? elementOf(*scalesAt, getPlace())
                   : numerator ? numberOf(numerator) / numberOf(denominator)
                               : out / n;
    Number begin = i.constant(getBegin().convertToDouble()), end = i.constant(getEnd().convertToDouble());
    if (roiAt) {
      begin = elementOf(*roiAt, getPlace());
      end = elementOf(*roiAt, getEndPlace());
    }
    Number width = hasOwnScale ? n * scale : out; // the size before it is rounded
    Number one = i.constant(1), x = i;
    Value isSingle = isEqual(width, one);
    if (coordinates == "align_corners") {
      x = select(isSingle, i.constant(0), i * (n - 1) / select(isSingle, one, width - 1));
    } else if (coordinates == "asymmetric") {
      x = i / scale;
    } else if (isCrop) {
      x = select(isSingle, (n - 1) * ((end - begin) * 0.5), i * (end - begin) * (n - 1) / select(isSingle, one, width - 1)) + (n - 1) * begin;
    } else {
      x = (i + 0.5) / scale - 0.5;
      if (coordinates == "pytorch_half_pixel")
        x = select(isSingle, i.constant(-0.5), x);
      else if (coordinates == "half_pixel_symmetric")
        x = n * 0.5 * (1 - out / width) + x;
    }
    Number last = n - 1, zero = i.constant(0);
    auto read = [&](OpBuilder &own, Number at) -> Value {
      SmallVector<Value> where(indices);
      where[getAxis()] = clampedIndex(at.in(own), inSize);
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
    auto isOn = [&](Number at) -> Value {
      return arith::AndIOp::create(*at.b, loc, isLess(Number{at.b, loc, zero.v} - 0.5, at), isLess(at, Number{at.b, loc, last.v} + 0.5));
    };
    Value sum;
    if (!getAntialias()) {
      SmallVector<std::pair<Number, Number>> taps; // places and weights
      if (isCubic)
        taps = {{first - 1, cubicFar(ratio + 1, a)}, {first, cubicNear(ratio, a)}, {first + 1, cubicNear(1 - ratio, a)}, {first + 2, cubicFar(2 - ratio, a)}};
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
        Number at = first.in(own) + start.in(own) + Number::ofIndex(own, loc, own.getF64Type(), k);
        Number d = absOf((at - x.in(own)) * shrunk.in(own)), w = d;
        if (isCubic)
          w = select(isLess(d, d.constant(1)), cubicNear(d, a), select(isLess(d, d.constant(2)), cubicFar(d, a), d.constant(0)));
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
