// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Sample.h"
#include "Number.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Sample.cpp.inc"

namespace dlc {

void DlcDialect::addSampleOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Sample.cpp.inc"
      >();
}

/// Spatial axes without elements have nothing that a result with elements could be made of.
static LogicalResult requireElements(ShapeContext &context, ArrayRef<DimExpr> spatial, ArrayRef<DimExpr> result) {
  MLIRContext *c = context.getContext();
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1), count = productOfDims(c, result);
  if (!count)
    return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  for (auto [i, size] : llvm::enumerate(spatial))
    if (failed(context.require(selectEqDims(size, zero, selectEqDims(count, zero, one, zero), one), size, count,
                               "spatial axis " + Twine(i) + " has no elements that the {1} of the result could be made of")))
      return failure();
  return success();
}

/// An element as a number of that float type.
static Value asNumber(OpBuilder &b, Location loc, Value stored, Type element, Type number) {
  ScalarBuilder scalars(b, loc);
  return scalars.cast(scalars.load(stored, element), number).getValue();
}

//===----------------------------------------------------------------------===//
// dlc.sample
//===----------------------------------------------------------------------===//

Form SampleOp::form() { return Form::Lower; }
Role SampleOp::role() { return Role::Movement; }

LogicalResult SampleOp::shape(ShapeContext &context) {
  auto isOneOf = [](StringRef text, ArrayRef<StringRef> all) { return llvm::is_contained(all, text); };
  if (!isOneOf(getMode(), {"nearest", "linear", "cubic"}))
    return context.emitError() << "mode is '" << getMode() << "'; it can be nearest, linear and cubic";
  if (!isOneOf(getPadding(), {"zeros", "border", "reflection"}))
    return context.emitError() << "padding_mode is '" << getPadding() << "'; it can be zeros, border and reflection";
  SmallVector<DimExpr> x = context.dims(0), positions = context.dims(1);
  if (x.size() < 3)
    return context.emitError() << "what is sampled needs a batch, channels and a spatial axis; its dims are " << toString(x);
  if (!context.elementType(1).isF32() && !context.elementType(1).isF64())
    return context.emitError() << "positions must be f32 or f64, not " << context.elementType(1);
  if (positions.size() < 2)
    return context.emitError() << "positions need a batch and an axis of coordinates; their dims are " << toString(positions);
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), positions.size(), "axis");
  if (failed(axis))
    return failure();
  if (*axis == 0)
    return context.emitError() << "axis 0 of the positions is the batch; coordinates must lie along another one";
  setAxis(*axis);
  int64_t count = x.size() - 2;
  if (failed(context.requireEqual(positions[*axis], constantDim(getContext(), count),
                                  "positions have {0} coordinates; " + Twine(count) + " spatial axes need {1}")) ||
      failed(context.requireEqual(x[0], positions[0], "the batch has {0} entries, but positions are given for {1}")))
    return failure();
  SmallVector<DimExpr> dims{x[0], x[1]};
  for (auto [i, dim] : llvm::enumerate(positions))
    if (i > 0 && static_cast<int64_t>(i) != *axis)
      dims.push_back(dim);
  if (failed(requireElements(context, ArrayRef(x).drop_front(2), dims)))
    return failure();
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr SampleOp::cost() {
  int64_t taps = 1, each = getMode() == "nearest" ? 1 : getMode() == "linear" ? 2 : 4;
  for (size_t i = 2; i < dimsOf(getX().getType()).size() && taps < 4096; ++i)
    taps *= each;
  return mulDims(constantDim(getContext(), 2 * taps), productOfDims(getContext(), dimsOf(getResult().getType())));
}

namespace {

/// Where positions lie on one axis, and in which elements.
struct SampledAxis {
  Value size;
  StringRef padding;
  bool alignCorners;

  Number last(Number like) const { return Number::ofIndex(*like.b, like.loc, like.v.getType(), size) - 1; }
  Number low(Number like) const { return like.constant(alignCorners ? 0 : -0.5); }
  Number high(Number like) const { return last(like) - low(like); }
  Value isOn(Number x) const { return arith::AndIOp::create(*x.b, x.loc, isAtMost(low(x), x), isAtMost(x, high(x))); }

  /// x mirrored at both ends until it is between them.
  Number reflected(Number x) const {
    Number begin = low(x), end = high(x), span = end - begin, distance = absOf(x - begin);
    Number turns = floorOf(distance / span), rest = distance - turns * span;
    Value isOdd = isLess(floorOf(turns * 0.5) * 2, turns);
    Number inside = clampOf(select(isOdd, end - rest, begin + rest), begin, end);
    return select(isOn(x), x, select(isEqual(span, x.constant(0)), begin, inside));
  }

  /// The position that stands for one outside.
  Number placed(Number x) const {
    if (padding == "zeros")
      return x;
    return select(isOn(x), x, padding == "border" ? clampOf(x, x.constant(0), last(x)) : reflected(x));
  }

  /// The element at a whole number.
  struct Cell {
    Value index, isInside; // null: always
  };
  Cell cell(Number at) const {
    if (padding == "zeros") {
      Value isInside = arith::AndIOp::create(*at.b, at.loc, isAtMost(at.constant(0), at), isAtMost(at, last(at)));
      return {clampedIndex(at, size), isInside};
    }
    return {clampedIndex(padding == "reflection" ? reflected(at) : at, size), Value()};
  }
};

} // namespace

FailureOr<SmallVector<Value>> SampleOp::lower(LowerContext &context) {
  Location loc = getLoc();
  RankedTensorType type = context.resultType();
  Type element = type.getElementType();
  SmallVector<DimExpr> x = dimsOf(context.operandType(0));
  SmallVector<SampledAxis> axes;
  for (DimExpr size : ArrayRef(x).drop_front(2))
    axes.push_back({context.dim(size), getPadding(), getAlignCorners()});
  unsigned count = axes.size();
  bool isCubic = getMode() == "cubic";
  // Loops over the elements around a position where there are many.
  unsigned taps = isCubic ? 4 : 2;
  bool isUnrolled = count <= (isCubic ? 3 : 6);
  Type accumulator = element.isF64() || !isa<FloatType>(element) ? Type(Float64Type::get(getContext())) : Type(Float32Type::get(getContext()));

  auto sample = [&](OpBuilder &b, ValueRange indices) -> Value {
    auto positionOf = [&](unsigned axis) -> Number {
      SmallVector<Value> at{indices[0]};
      llvm::append_range(at, indices.drop_front(2));
      at.insert(at.begin() + getAxis(), arith::ConstantIndexOp::create(b, loc, getReversed() ? count - 1 - axis : axis));
      return {&b, loc, tensor::ExtractOp::create(b, loc, context.operand(1), at)};
    };
    SmallVector<Value> where(indices.take_front(2));
    if (getMode() == "nearest") {
      Value isInside;
      for (unsigned i = 0; i != count; ++i) {
        Number position = positionOf(i);
        position = axes[i].placed(position.with(math::RoundEvenOp::create(b, loc, position.v)));
        auto [index, isOn] = axes[i].cell(position);
        where.push_back(index);
        if (isOn)
          isInside = isInside ? Value(arith::AndIOp::create(b, loc, isInside, isOn)) : isOn;
      }
      Value stored = tensor::ExtractOp::create(b, loc, context.operand(0), where);
      if (!isInside)
        return stored;
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(stored.getType()));
      return arith::SelectOp::create(b, loc, isInside, stored, zero);
    }

    SmallVector<Number> positions, firsts;
    for (unsigned i = 0; i != count; ++i) {
      positions.push_back(axes[i].placed(positionOf(i)));
      firsts.push_back(floorOf(positions.back()));
    }
    // The sum over the elements along this axis and the ones behind it.
    std::function<Value(OpBuilder &, unsigned)> along = [&](OpBuilder &own, unsigned axis) -> Value {
      if (axis == count)
        return asNumber(own, loc, tensor::ExtractOp::create(own, loc, context.operand(0), where), element, accumulator);
      Number first = firsts[axis].in(own), ratio = positions[axis].in(own) - first;
      auto term = [&](OpBuilder &in, Number cell, Number weight) -> Value {
        auto [index, isInside] = axes[axis].cell(cell);
        where.push_back(index);
        Value inner = along(in, axis + 1);
        where.pop_back();
        Value factor = weight.v;
        if (factor.getType() != accumulator)
          factor = accumulator.isF64() ? Value(arith::ExtFOp::create(in, loc, accumulator, factor)) : Value(arith::TruncFOp::create(in, loc, accumulator, factor));
        Value product = arith::MulFOp::create(in, loc, factor, inner);
        if (!isInside)
          return product;
        Value zero = arith::ConstantOp::create(in, loc, in.getZeroAttr(accumulator));
        return arith::SelectOp::create(in, loc, isInside, product, zero);
      };
      double before = isCubic ? 1 : 0; // elements in front of the position, but the first
      auto weightAt = [&](Number distance) {
        if (!isCubic)
          return 1 - distance;
        return select(isLess(distance, distance.constant(1)), cubicNear(distance, -0.75), cubicFar(distance, -0.75));
      };
      if (isUnrolled) {
        Value sum;
        for (unsigned k = 0; k != taps; ++k) {
          double offset = k - before;
          Number distance = offset <= 0 ? ratio - offset : offset - ratio;
          Number weight = !isCubic ? 1 - distance : offset == -1 || offset == 2 ? cubicFar(distance, -0.75) : cubicNear(distance, -0.75);
          Value product = term(own, first + offset, weight);
          sum = sum ? Value(arith::AddFOp::create(own, loc, sum, product)) : product;
        }
        return sum;
      }
      Value low = arith::ConstantIndexOp::create(own, loc, 0), high = arith::ConstantIndexOp::create(own, loc, taps);
      Value step = arith::ConstantIndexOp::create(own, loc, 1), none = arith::ConstantOp::create(own, loc, own.getZeroAttr(accumulator));
      auto loop = scf::ForOp::create(own, loc, low, high, step, none, [&](OpBuilder &in, Location, Value k, ValueRange so) {
        Number offset = Number::ofIndex(in, loc, ratio.v.getType(), k) - before;
        Value product = term(in, first.in(in) + offset, weightAt(absOf(offset - ratio.in(in))));
        scf::YieldOp::create(in, loc, arith::AddFOp::create(in, loc, so[0], product).getResult());
      });
      return loop.getResult(0);
    };
    ScalarBuilder scalars(b, loc);
    return scalars.store(scalars.cast(scalars.wrap(along(b, 0), accumulator), element));
  };
  return SmallVector<Value>{context.generate(type, sample)};
}

//===----------------------------------------------------------------------===//
// dlc.roi_align
//===----------------------------------------------------------------------===//

Form RoiAlignOp::form() { return Form::Lower; }
Role RoiAlignOp::role() { return Role::Opaque; }

LogicalResult RoiAlignOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), regions = context.dims(1), batch = context.dims(2);
  if (x.size() != 4)
    return context.emitError() << "regions are of images with 4 axes (batch, channels, height, width); dims are " << toString(x);
  if (!isa<FloatType>(context.elementType(0)) || !isa<FloatType>(context.elementType(1)))
    return context.emitError() << "elements and regions must be floats, not " << context.elementType(0) << " and " << context.elementType(1);
  if (regions.size() != 2)
    return context.emitError() << "regions must be a matrix with a row (x1, y1, x2, y2) for each; dims are " << toString(regions);
  if (batch.size() != 1)
    return context.emitError() << "batch indices must have one axis; dims are " << toString(batch);
  if (getKind() == PoolKind::Sum)
    return context.emitError() << "mode can be avg and max";
  if (static_cast<int64_t>(getHeight()) < 1 || static_cast<int64_t>(getWidth()) < 1)
    return context.emitError() << "output_height and output_width are " << static_cast<int64_t>(getHeight()) << " and " << static_cast<int64_t>(getWidth())
                               << "; they must be positive";
  // More samples of a bin would say nothing new, and take forever.
  if (static_cast<int64_t>(getSamples()) < 0 || static_cast<int64_t>(getSamples()) > 1024)
    return context.emitError() << "sampling_ratio is " << static_cast<int64_t>(getSamples()) << "; it can be 0 (as many as the region asks for) to 1024";
  MLIRContext *c = getContext();
  if (failed(context.requireEqual(regions[1], constantDim(c, 4), "a region has {0} coordinates; it must have {1}")) ||
      failed(context.requireEqual(regions[0], batch[0], "there are {0} regions, but {1} batch indices")))
    return failure();
  SmallVector<DimExpr> dims{regions[0], x[1], constantDim(c, getHeight()), constantDim(c, getWidth())};
  if (failed(requireElements(context, ArrayRef(x).drop_front(2), dims)))
    return failure();
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr RoiAlignOp::cost() {
  int64_t samples = std::max<int64_t>(getSamples(), 2);
  return mulDims(constantDim(getContext(), 8 * samples * samples), productOfDims(getContext(), dimsOf(getResult().getType())));
}

namespace {

/// One axis of a region: where its samples lie.
struct RegionAxis {
  Number start, bin, count, apart; // of the region; of a part of it; samples in a part, and what is between them
  Value low, high;                 // samples that are not known to lie outside
  Value isCut;                     // whether there are others

  Number at(Number sample) const { return start.in(*sample.b) + (sample + 0.5) * bin.in(*sample.b) / count.in(*sample.b); }
};

} // namespace

FailureOr<SmallVector<Value>> RoiAlignOp::lower(LowerContext &context) {
  Location loc = getLoc();
  RankedTensorType type = context.resultType();
  Type element = type.getElementType();
  Type wide = element.isF64() ? Type(Float64Type::get(getContext())) : Type(Float32Type::get(getContext()));
  SmallVector<DimExpr> x = dimsOf(context.operandType(0));
  Value batches = context.dim(x[0]);
  Value sizes[] = {context.dim(x[2]), context.dim(x[3])};
  int64_t parts[] = {static_cast<int64_t>(getHeight()), static_cast<int64_t>(getWidth())};
  bool isMax = getKind() == PoolKind::Max;

  auto pooled = [&](OpBuilder &b, ValueRange indices, Value image) -> Value {
    Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(wide)), one = arith::ConstantIndexOp::create(b, loc, 1);
    auto coordinate = [&](int64_t i) -> Number {
      Value stored = tensor::ExtractOp::create(b, loc, context.operand(1), ValueRange{indices[0], arith::ConstantIndexOp::create(b, loc, i)});
      Number scaled = Number{&b, loc, asNumber(b, loc, stored, cast<RankedTensorType>(getRois().getType()).getElementType(), wide)} *
                      getScale().convertToDouble();
      return getHalfPixel() ? scaled - 0.5 : scaled;
    };
    auto axisOf = [&](unsigned d) -> RegionAxis {
      Number start = coordinate(d == 0 ? 1 : 0), size = coordinate(d == 0 ? 3 : 2) - start;
      if (!getHalfPixel())
        size = maxOf(size, size.constant(1));
      Number bin = size / size.constant(parts[d]);
      Number first = start + Number::ofIndex(b, loc, wide, indices[2 + d]) * bin;
      if (getSamples() != 0) {
        Number count = bin.constant(getSamples());
        return {first, bin, count, bin, arith::ConstantIndexOp::create(b, loc, 0), arith::ConstantIndexOp::create(b, loc, getSamples()), Value()};
      }
      // Only those near the image are gone through, however large the region is.
      Number zero = bin.constant(0), count = clampOf(ceilOf(bin), zero, bin.constant(0x1p30)), apart = bin / count;
      Number end = Number::ofIndex(b, loc, wide, sizes[d]);
      Number low = clampOf(floorOf((-1 - first) / apart) - 2, zero, count), high = clampOf(ceilOf((end - first) / apart) + 2, zero, count);
      Value isCut = arith::OrIOp::create(b, loc, isLess(zero, low), isLess(high, count));
      return {first, bin, count, apart, low.asIndex(), high.asIndex(), isCut};
    };
    RegionAxis rows = axisOf(0), columns = axisOf(1);
    Value start = none;
    if (isMax) {
      Value lowest = arith::ConstantOp::create(b, loc, b.getFloatAttr(wide, -std::numeric_limits<double>::infinity()));
      start = lowest;
      if (rows.isCut) // samples outside are 0
        start = arith::SelectOp::create(b, loc, arith::OrIOp::create(b, loc, rows.isCut, columns.isCut), none, lowest);
    }
    auto loop = [&](OpBuilder &own, const RegionAxis &axis, Value from, llvm::function_ref<Value(OpBuilder &, Number, Value)> body) -> Value {
      auto made = scf::ForOp::create(own, loc, axis.low, axis.high, one, from, [&](OpBuilder &in, Location, Value i, ValueRange so) {
        scf::YieldOp::create(in, loc, body(in, axis.at(Number::ofIndex(in, loc, wide, i)), so[0]));
      });
      return made.getResult(0);
    };
    // Two neighbours along an axis, and the weight of the second.
    struct Pair {
      Value index[2];
      Number weight[2];
    };
    auto pairAt = [&](Number at, Value size) -> Pair {
      Number last = Number::ofIndex(*at.b, loc, wide, size) - 1, inside = clampOf(at, at.constant(0), last), low = floorOf(inside), ratio = inside - low;
      Value index = clampedIndex(low, size), end = arith::SubIOp::create(*at.b, loc, size, one);
      Value next = arith::MinSIOp::create(*at.b, loc, arith::AddIOp::create(*at.b, loc, index, one), end);
      return {{index, next}, {1 - ratio, ratio}};
    };
    auto isNear = [&](Number at, Value size) -> Value {
      return arith::AndIOp::create(*at.b, loc, isAtMost(at.constant(-1), at), isAtMost(at, Number::ofIndex(*at.b, loc, wide, size)));
    };
    auto combine = [&](OpBuilder &own, Value soFar, Value value) -> Value {
      return isMax ? Value(arith::MaximumFOp::create(own, loc, soFar, value)) : Value(arith::AddFOp::create(own, loc, soFar, value));
    };
    Value result = loop(b, rows, start, [&](OpBuilder &outer, Number y, Value soFar) -> Value {
      Value isRowNear = isNear(y, sizes[0]);
      Pair row = pairAt(y, sizes[0]);
      return loop(outer, columns, soFar, [&](OpBuilder &own, Number at, Value sum) -> Value {
        Pair column = pairAt(at, sizes[1]);
        Value sample;
        for (unsigned r = 0; r != 2; ++r)
          for (unsigned c = 0; c != 2; ++c) {
            Value stored = tensor::ExtractOp::create(own, loc, context.operand(0), ValueRange{image, indices[1], row.index[r], column.index[c]});
            Number weight = row.weight[r].in(own) * column.weight[c];
            Value part = arith::MulFOp::create(own, loc, weight.v, asNumber(own, loc, stored, element, wide));
            sample = sample ? combine(own, sample, part) : part;
          }
        Value isOn = arith::AndIOp::create(own, loc, isRowNear, isNear(at, sizes[1]));
        return combine(own, sum, arith::SelectOp::create(own, loc, isOn, sample, none));
      });
    });
    Number total = rows.count * columns.count;
    if (!isMax)
      return (Number{&b, loc, result} / maxOf(total, total.constant(1))).v;
    return arith::SelectOp::create(b, loc, isLess(total, total.constant(1)), none, result);
  };

  auto region = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value raw = tensor::ExtractOp::create(b, loc, context.operand(2), indices[0]);
    Value image = arith::IndexCastOp::create(b, loc, b.getIndexType(), raw);
    // Unsigned: what is negative is too large as well.
    Value isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, image, batches);
    auto branch = scf::IfOp::create(
        b, loc, isThere, [&](OpBuilder &then, Location) { scf::YieldOp::create(then, loc, pooled(then, indices, image)); },
        [&](OpBuilder &otherwise, Location) {
          RaiseOp::create(otherwise, loc, DLCRT_KERNEL_INDEX_OUT_OF_RANGE);
          scf::YieldOp::create(otherwise, loc, arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(wide)).getResult());
        });
    ScalarBuilder scalars(b, loc);
    return scalars.store(scalars.cast(scalars.wrap(branch.getResult(0), wide), element));
  };
  return SmallVector<Value>{context.generate(type, region)};
}

} // namespace dlc
