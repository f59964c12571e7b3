// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {

/// The float type that sums of `type` are made in.
static Type typeOfSums(NodeReader &n, Type type) { return type.getIntOrFloatBitWidth() < 32 ? Type(n.b().getF32Type()) : type; }

/// x with the maximum along `axis` taken out, so that nothing overflows, and the exponentials of that and their sum. In the declared
/// type: Attention says of its softmax that it is computed in no other precision unless an attribute asks for one.
static Value softmaxAlong(NodeReader &n, Value x, int64_t axis, bool logarithm) {
  Type type = NodeReader::elementTypeOf(x);
  auto reduce = [&](Value value, ReduceKind kind) {
    return n.make<ReduceOp>(type, value, kind, SmallVector<int64_t>{axis}, /*keepdims=*/true, /*allAxes=*/false);
  };
  Value shifted = n.make<SubOp>(type, x, reduce(x, ReduceKind::Max));
  Value exponentials = n.make<ExpOp>(type, shifted);
  Value sum = reduce(exponentials, ReduceKind::Sum);
  if (logarithm)
    return n.make<SubOp>(type, shifted, n.make<LogOp>(type, sum));
  // The sum is at least 1. A division for each element would take longer than the rest; in 16 bits its rounding would
  // be seen.
  if (type.getIntOrFloatBitWidth() >= 32)
    return n.make<MulOp>(type, exponentials, n.make<ReciprocalOp>(type, sum));
  return n.make<DivOp>(type, exponentials, sum);
}

/// 1 at the first of the largest elements along `axis`, else 0. A NaN is larger than all numbers.
static Value hardmaxAlong(NodeReader &n, Value x, int64_t axis) {
  Type type = NodeReader::elementTypeOf(x), boolean = n.b().getI1Type(), integer = n.b().getI64Type();
  Value largest = n.make<ReduceOp>(type, x, ReduceKind::Max, SmallVector<int64_t>{axis}, /*keepdims=*/true, /*allAxes=*/false);
  Value isNan = n.make<NotOp>(boolean, n.make<EqualOp>(boolean, x, x));
  Value isLargest = n.make<OrOp>(boolean, n.make<EqualOp>(boolean, x, largest), isNan);
  Value before = n.make<ScanOp>(integer, n.cast(isLargest, integer), Value(), ReduceKind::Sum, axis, /*exclusive=*/true, /*reverse=*/false, ArrayAttr());
  Value isFirst = n.make<EqualOp>(boolean, before, n.scalar(0, integer));
  return n.cast(n.make<AndOp>(boolean, isLargest, isFirst), type);
}

using AlongAxis = std::function<Value(NodeReader &, Value x, int64_t axis)>;

/// Softmax and its kin: one axis from version 13 on. Before, all axes from `axis` on are one row.
static void addAlongAxis(OpTable &table, StringRef name, AlongAxis emit) {
  table.add(name, 1, [emit](NodeReader &n) {
    Value x = n.input(0);
    Type type = NodeReader::elementTypeOf(x);
    int64_t axis = n.getInt("axis", 1);
    std::optional<int64_t> rank = NodeReader::rankOf(x);
    if (axis == -1 || (rank && axis == *rank - 1))
      return n.setOutput(0, emit(n, x, -1));
    Value rows = emit(n, n.make<FlattenOp>(type, x, axis), 1);
    Value shape = n.make<ShapeOp>(n.b().getI64Type(), x, /*start=*/0, /*end=*/IntegerAttr());
    n.setOutput(0, n.make<ReshapeOp>(type, rows, shape, /*allowzero=*/true));
  });
  table.add(name, 13, [emit](NodeReader &n) { n.setOutput(0, emit(n, n.input(0), n.getInt("axis", -1))); });
}

/// x / its p-norm along an axis, and 0 where that is 0.
static void lpNormalization(NodeReader &n) {
  int64_t axis = n.getInt("axis", -1), p = n.getInt("p", 2);
  Type type = n.elementType(0), wide = typeOfSums(n, type), boolean = n.b().getI1Type();
  if (p != 1 && p != 2)
    n.fail(Twine("its attribute 'p' is ") + Twine(p) + "; it must be 1 or 2");
  Value x = n.cast(n.input(0), wide);
  Value terms = p == 1 ? n.make<AbsOp>(wide, x) : n.make<MulOp>(wide, x, x);
  Value norm = n.make<ReduceOp>(wide, terms, ReduceKind::Sum, SmallVector<int64_t>{axis}, /*keepdims=*/true, /*allAxes=*/false);
  if (p == 2)
    norm = n.make<SqrtOp>(wide, norm);
  Value zero = n.scalar(0, wide);
  Value scaled = n.make<WhereOp>(wide, n.make<EqualOp>(boolean, norm, zero), zero, n.make<DivOp>(wide, x, norm));
  n.setOutput(0, n.cast(scaled, type));
}

/// As LayerNormalization, the deviation is taken from the mean before it is squared, unlike in ONNX's function body.
static void meanVarianceNormalization(NodeReader &n) {
  SmallVector<int64_t> axes = n.findInts("axes").value_or(SmallVector<int64_t>{0, 2, 3});
  Type type = n.elementType(0), wide = typeOfSums(n, type);
  auto mean = [&](Value x) { return n.make<MeanOp>(wide, x, axes, /*keepdims=*/true, /*allAxes=*/false); };
  Value x = n.cast(n.input(0), wide);
  Value deviation = n.make<SubOp>(wide, x, mean(x));
  Value root = n.make<SqrtOp>(wide, mean(n.make<MulOp>(wide, deviation, deviation)));
  Value result = n.make<DivOp>(wide, deviation, n.make<AddOp>(wide, root, n.scalar(1e-9, wide)));
  n.setOutput(0, n.cast(result, type));
}

namespace {
/// What LayerNormalization and RMSNormalization work on: the input in the type they compute in, as rows.
struct Rows {
  Value x;                   // of type `compute`
  SmallVector<int64_t> axes; // of x, which are normalised together
  bool flat = false;         // x is a matrix of rows, because how many axes there are is not known yet
  Type compute;
};
} // namespace

/// All axes from `axis` on are normalised together.
static Rows rowsFrom(NodeReader &n, Value x, int64_t axis) {
  Rows rows;
  rows.compute = n.getElementType("stash_type", 1);
  std::optional<int64_t> rank = NodeReader::rankOf(x);
  int64_t end = axis < 0 ? 0 : rank.value_or(-1);
  if (rank && (axis < -*rank || axis >= *rank)) {
    n.fail(Twine("its attribute 'axis' is ") + Twine(axis) + ", but its input has " + Twine(*rank) + " dimensions");
    end = axis;
  }
  if (end >= 0 && end - axis <= 64) {
    for (int64_t i = axis; i < end; ++i)
      rows.axes.push_back(i);
  } else {
    rows.flat = true;
    rows.axes = {1};
    x = n.make<FlattenOp>(NodeReader::elementTypeOf(x), x, axis);
  }
  rows.x = n.cast(x, rows.compute);
  return rows;
}

static Value meanOf(NodeReader &n, const Rows &rows, Value x) {
  return n.make<MeanOp>(rows.compute, x, rows.axes, /*keepdims=*/true, /*allAxes=*/false);
}

static Value shapeOf(NodeReader &n, Value x) {
  return n.make<ShapeOp>(n.b().getI64Type(), x, /*start=*/0, /*end=*/IntegerAttr());
}

/// The rows as the input was, scaled in its type.
static Value scaled(NodeReader &n, const Rows &rows, Value normalized, Value scale) {
  Value x = n.input(0);
  Type type = NodeReader::elementTypeOf(x);
  normalized = n.cast(normalized, type);
  if (rows.flat)
    normalized = n.make<ReshapeOp>(type, normalized, shapeOf(n, x), /*allowzero=*/true);
  return n.make<MulOp>(NodeReader::elementTypeOf(scale), n.cast(normalized, NodeReader::elementTypeOf(scale)), scale);
}

/// The deviation is taken from the mean before it is squared, unlike in ONNX's function body: that loses all digits where
/// the mean is large.
static void layerNormalization(NodeReader &n) {
  int64_t axis = n.getInt("axis", -1);
  float epsilon = n.getFloat("epsilon", 1e-5f);
  Value scale = n.input(1), bias = n.optionalInput(2);
  Rows rows = rowsFrom(n, n.input(0), axis);
  Type type = rows.compute;
  Value mean = meanOf(n, rows, rows.x);
  Value deviation = n.make<SubOp>(type, rows.x, mean);
  Value variance = meanOf(n, rows, n.make<MulOp>(type, deviation, deviation));
  Value deviationInverse =
      n.make<ReciprocalOp>(type, n.make<SqrtOp>(type, n.make<AddOp>(type, variance, n.scalar(epsilon, type))));
  Value result = scaled(n, rows, n.make<MulOp>(type, deviation, deviationInverse), scale);
  if (bias)
    result = n.make<AddOp>(NodeReader::elementTypeOf(result), result, bias);
  n.setOutput(0, result);
  for (auto [i, statistic] : {std::pair(1u, mean), std::pair(2u, deviationInverse)}) {
    if (!n.wantsOutput(i))
      continue;
    if (rows.flat) { // [first axes..., 1...]
      Type index = n.b().getI64Type();
      Value shape = shapeOf(n, n.input(0));
      Value first = n.make<SliceOp>(index, shape, n.ints({0}), n.ints({axis}), Value(), Value());
      Value others = n.make<SliceOp>(index, shape, n.ints({axis}), n.ints({INT64_MAX}), Value(), Value());
      Value count = n.make<ShapeOp>(index, others, /*start=*/0, /*end=*/IntegerAttr());
      TypedAttr one = DenseElementsAttr::get(RankedTensorType::get({1}, index), int64_t(1));
      Value ones = n.make<ConstantOfShapeOp>(index, count, one);
      statistic = n.make<ReshapeOp>(type, statistic, n.make<ConcatOp>(index, SmallVector<Value>{first, ones}, 0), /*allowzero=*/true);
    }
    n.setOutput(i, statistic);
  }
}

static void rmsNormalization(NodeReader &n) {
  int64_t axis = n.getInt("axis", -1);
  float epsilon = n.getFloat("epsilon", 1e-5f);
  Value scale = n.input(1);
  Rows rows = rowsFrom(n, n.input(0), axis);
  Type type = rows.compute;
  Value square = meanOf(n, rows, n.make<MulOp>(type, rows.x, rows.x));
  Value root = n.make<SqrtOp>(type, n.make<AddOp>(type, square, n.scalar(epsilon, type)));
  n.setOutput(0, scaled(n, rows, n.make<MulOp>(type, rows.x, n.make<ReciprocalOp>(type, root)), scale));
}

void addNormalizationOps(OpTable &t) {
  t.add("LayerNormalization", 17, layerNormalization);
  t.add("RMSNormalization", 23, rmsNormalization);
  t.add("LpNormalization", 1, lpNormalization);
  t.add("MeanVarianceNormalization", 9, meanVarianceNormalization);
  addAlongAxis(t, "Hardmax", hardmaxAlong);
  addAlongAxis(t, "LogSoftmax", [](NodeReader &n, Value x, int64_t axis) { return softmaxAlong(n, x, axis, /*logarithm=*/true); });
  addAlongAxis(t, "Softmax", [](NodeReader &n, Value x, int64_t axis) { return softmaxAlong(n, x, axis, /*logarithm=*/false); });
}

} // namespace dlc
