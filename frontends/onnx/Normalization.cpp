// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Compose.h"
#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {

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
  if (end >= 0 && axis >= end - 64) {
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

/// A statistic of the rows with the axes of the input, those that were normalised of size 1.
static Value statisticOf(NodeReader &n, const Rows &rows, Value statistic, int64_t axis) {
  if (!rows.flat)
    return statistic;
  Type index = n.b().getI64Type();
  Value shape = shapeOf(n, n.input(0));
  Value first = n.make<SliceOp>(index, shape, n.ints({0}), n.ints({axis}), Value(), Value());
  Value others = n.make<SliceOp>(index, shape, n.ints({axis}), n.ints({INT64_MAX}), Value(), Value());
  TypedAttr one = DenseElementsAttr::get(RankedTensorType::get({1}, index), int64_t(1));
  Value ones = n.make<ConstantOfShapeOp>(index, shapeOf(n, others), one);
  return reshape(n, statistic, concat(n, {first, ones}, 0), /*allowzero=*/true);
}

namespace {
/// Rows that are normalised, and what of.
struct Normalized {
  Value rows, mean, inverse; // the mean is null where it is not taken out
};
} // namespace

/// 1 / sqrt(square + epsilon)
static Value inverseRoot(NodeReader &n, Value square, float epsilon) {
  Type type = NodeReader::elementTypeOf(square);
  return n.make<ReciprocalOp>(type, n.make<SqrtOp>(type, n.make<AddOp>(type, square, n.scalar(epsilon, type))));
}

/// The deviation is taken from the mean before it is squared, unlike in ONNX's function body: that loses all digits where
/// the mean is large.
static Normalized normalize(NodeReader &n, const Rows &rows, float epsilon, bool hasMean) {
  Type type = rows.compute;
  Normalized result;
  Value x = rows.x;
  if (hasMean) {
    result.mean = meanOf(n, rows, x);
    x = n.make<SubOp>(type, x, result.mean);
  }
  result.inverse = inverseRoot(n, meanOf(n, rows, n.make<MulOp>(type, x, x)), epsilon);
  result.rows = n.make<MulOp>(type, x, result.inverse);
  return result;
}

static void layerNormalization(NodeReader &n) {
  int64_t axis = n.getInt("axis", -1);
  float epsilon = n.getFloat("epsilon", 1e-5f);
  Value scale = n.input(1), bias = n.optionalInput(2);
  Rows rows = rowsFrom(n, n.input(0), axis);
  Normalized normalized = normalize(n, rows, epsilon, /*hasMean=*/true);
  Value result = scaled(n, rows, normalized.rows, scale);
  if (bias)
    result = n.make<AddOp>(NodeReader::elementTypeOf(result), result, bias);
  n.setOutput(0, result);
  for (auto [i, statistic] : {std::pair(1u, normalized.mean), std::pair(2u, normalized.inverse)})
    if (n.wantsOutput(i))
      n.setOutput(i, statisticOf(n, rows, statistic, axis));
}

/// RMSNormalization, and SimplifiedLayerNormalization, which gives the inverse of the root too.
static void rmsNormalization(NodeReader &n) {
  int64_t axis = n.getInt("axis", -1);
  float epsilon = n.getFloat("epsilon", 1e-5f);
  Value scale = n.input(1);
  Rows rows = rowsFrom(n, n.input(0), axis);
  Normalized normalized = normalize(n, rows, epsilon, /*hasMean=*/false);
  n.setOutput(0, scaled(n, rows, normalized.rows, scale));
  if (n.wantsOutput(1))
    n.setOutput(1, statisticOf(n, rows, normalized.inverse, axis));
}

//===----------------------------------------------------------------------===//
// com.microsoft
//===----------------------------------------------------------------------===//

/// x, of a type that sums are made in, normalised along its last axis, scaled and moved; the bias may be null.
static Normalized normalizeLast(NodeReader &n, Value x, Value scale, Value bias, float epsilon, bool hasMean) {
  Rows rows;
  rows.x = x;
  rows.axes = {-1};
  rows.compute = NodeReader::elementTypeOf(x);
  Normalized result = normalize(n, rows, epsilon, hasMean);
  result.rows = n.make<MulOp>(rows.compute, result.rows, n.cast(scale, rows.compute));
  if (bias)
    result.rows = n.make<AddOp>(rows.compute, result.rows, n.cast(bias, rows.compute));
  return result;
}

/// The sum of two inputs and a bias, normalised. Without `hasMean` there is no input 'beta', and no mean is taken out.
static void skipLayerNormalization(NodeReader &n, bool hasMean) {
  requireOneFloatType(n, {0, 1, 2, 3, 4});
  Value x = n.input(0), skip = n.input(1), scale = n.input(2), beta = hasMean ? n.optionalInput(3) : Value(),
        bias = n.optionalInput(hasMean ? 4 : 3);
  float epsilon = n.getFloat("epsilon", 1e-12f);
  if (n.failed())
    return;
  Type type = NodeReader::elementTypeOf(x), wide = typeOfSums(n, type);
  Value sum = n.make<AddOp>(wide, n.cast(x, wide), n.cast(skip, wide));
  if (bias)
    sum = n.make<AddOp>(wide, sum, n.cast(bias, wide));
  Normalized normalized = normalizeLast(n, sum, scale, beta, epsilon, hasMean);
  n.setOutput(0, n.cast(normalized.rows, type));
  if (hasMean)
    n.setOutput(1, n.cast(normalized.mean, n.b().getF32Type()));
  n.setOutput(2, n.cast(normalized.inverse, n.b().getF32Type()));
  n.setOutput(3, n.cast(sum, type));
}

/// The sum of what three tables hold for words, positions and segments, normalised.
static void embedLayerNormalization(NodeReader &n) {
  requireOneFloatType(n, {2, 3, 4, 5, 6});
  for (unsigned i : {0, 1, 7, 8})
    requireIntegers(n, i);
  Value words = n.input(0), segments = n.optionalInput(1), wordTable = n.input(2), positionTable = n.input(3), segmentTable = n.optionalInput(4),
        scale = n.input(5), bias = n.input(6), mask = n.optionalInput(7), positions = n.optionalInput(8);
  float epsilon = n.getFloat("epsilon", 1e-12f);
  n.ignore("mask_index_type"); // says again whether there is a second output
  if (!segments != !segmentTable)
    n.fail("it has only one of its inputs 'segment_ids' and 'segment_embedding'; they belong together");
  if (n.failed())
    return;
  Type type = NodeReader::elementTypeOf(wordTable), wide = typeOfSums(n, type), integer = NodeReader::elementTypeOf(words);
  auto rowsOf = [&](Value table, Value indices) { return n.cast(n.make<GatherOp>(type, table, indices, 0), wide); };
  // Without positions, those from 0 on.
  Value places = positions ? rowsOf(positionTable, positions) : n.cast(slice(n, positionTable, n.ints({0}), dimOf(n, words, 1), 0), wide);
  Value sum = n.make<AddOp>(wide, rowsOf(wordTable, words), places);
  if (segments)
    sum = n.make<AddOp>(wide, sum, rowsOf(segmentTable, segments));
  n.setOutput(0, n.cast(normalizeLast(n, sum, scale, bias, epsilon, /*hasMean=*/true).rows, type));
  if (n.wantsOutput(1)) {
    Value count;
    if (mask) {
      Value isSet = n.make<EqualOp>(n.b().getI1Type(), mask, n.scalarLike(1, mask));
      count = n.make<ReduceOp>(integer, n.cast(isSet, integer), ReduceKind::Sum, SmallVector<int64_t>{1}, /*keepdims=*/false, /*allAxes=*/false);
    } else {
      count = n.make<ExpandOp>(integer, n.scalar(0, integer), dimOf(n, words, 0));
    }
    n.setOutput(1, count);
  }
  n.setOutput(2, n.cast(sum, type));
}

void addNormalizationOps(OpTable &t) {
  // ONNX Runtime's optimizer writes the first two into the standard domain, whatever the opset.
  t.add("LayerNormalization", 1, layerNormalization);
  t.add("SimplifiedLayerNormalization", 1, rmsNormalization);
  t.add("RMSNormalization", 23, rmsNormalization);
  t.add("LpNormalization", 1, lpNormalization);
  t.add("MeanVarianceNormalization", 9, meanVarianceNormalization);
  t.add("EmbedLayerNormalization", 1, embedLayerNormalization, kMicrosoft);
  t.add("SkipLayerNormalization", 1, [](NodeReader &n) { skipLayerNormalization(n, /*hasMean=*/true); }, kMicrosoft);
  t.add("SkipSimplifiedLayerNormalization", 1, [](NodeReader &n) { skipLayerNormalization(n, /*hasMean=*/false); }, kMicrosoft);
  addAlongAxis(t, "Hardmax", hardmaxAlong);
  addAlongAxis(t, "LogSoftmax", [](NodeReader &n, Value x, int64_t axis) { return softmaxAlong(n, x, axis, /*logarithm=*/true); });
  addAlongAxis(t, "Softmax", [](NodeReader &n, Value x, int64_t axis) { return softmaxAlong(n, x, axis, /*logarithm=*/false); });
}

} // namespace dlc
