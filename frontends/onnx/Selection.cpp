// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators that choose elements by their values. How many they choose is data in most of them: it is counted first, and read
// to give the results their dims.

#include "OpTable.h"
#include "dlc/IR/Selection.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {

static Value gather(NodeReader &n, Value x, Value indices, int64_t axis = 0) {
  return n.make<GatherOp>(NodeReader::elementTypeOf(x), x, indices, axis);
}

static Value flat(NodeReader &n, Value x) { return n.make<ReshapeOp>(NodeReader::elementTypeOf(x), x, n.ints({-1}), /*allowzero=*/false); }

/// The size of an axis, as a tensor of one element.
static Value sizeOf(NodeReader &n, Value x, int64_t axis) {
  return n.make<ShapeOp>(n.b().getI64Type(), x, axis, axis == -1 ? IntegerAttr() : n.b().getI64IntegerAttr(axisBehind(axis)));
}

/// Integers in the order of the elements, or the opposite one.
static Value orderKey(NodeReader &n, Value x, bool descending) {
  Type key = n.b().getIntegerType(std::max(8u, NodeReader::elementTypeOf(x).getIntOrFloatBitWidth()));
  return n.make<OrderKeyOp>(key, x, key, descending);
}

static Value argSort(NodeReader &n, Value keys, Value k, int64_t axis, bool lexicographic = false) {
  return n.make<ArgSortOp>(n.b().getI64Type(), keys, k, axis, lexicographic);
}

/// The positions of the true elements of a mask of one axis.
static Value positionsOf(NodeReader &n, Value mask) {
  Type index = n.b().getI64Type();
  Value count = n.make<ReduceOp>(index, n.cast(mask, index), ReduceKind::Sum, SmallVector<int64_t>{0}, /*keepdims=*/false, /*allAxes=*/false);
  return n.make<CompactOp>(index, mask, count);
}

static void topK(NodeReader &n, Value k, bool largest) {
  Value x = n.input(0);
  int64_t axis = n.getInt("axis", -1);
  Value indices = argSort(n, orderKey(n, x, largest), k, axis);
  n.setOutput(0, n.make<GatherElementsOp>(NodeReader::elementTypeOf(x), x, indices, axis));
  n.setOutput(1, indices);
}

static void topKByAttribute(NodeReader &n) {
  std::optional<int64_t> k = n.findInt("k");
  if (!k && !n.failed())
    n.fail("its attribute 'k' is missing");
  topK(n, n.ints({k.value_or(0)}), /*largest=*/true);
}

/// From version 11 on, `largest` and `sorted`; the results are sorted whether they must be or not.
static void topKByInput(NodeReader &n) {
  bool largest = n.getVersion() < 11 || n.getFlag("largest", true);
  if (n.getVersion() >= 11)
    n.ignore("sorted");
  topK(n, n.input(1), largest);
}

/// Positions in the flattened tensor, taken apart into indices: one row an axis.
static void nonZero(NodeReader &n) {
  Value x = n.input(0);
  Type index = n.b().getI64Type(), boolean = n.b().getI1Type(), type = NodeReader::elementTypeOf(x);
  Value mask = type == boolean ? x : n.make<NotOp>(boolean, n.make<EqualOp>(boolean, x, n.scalarLike(0, x)));
  Value positions = n.make<UnsqueezeOp>(index, positionsOf(n, flat(n, mask)), SmallVector<int64_t>{0});
  Value strides = n.make<UnsqueezeOp>(index, n.make<StridesOp>(index, x), SmallVector<int64_t>{1});
  Value shape = n.make<UnsqueezeOp>(index, n.make<ShapeOp>(index, x, /*start=*/0, /*end=*/IntegerAttr()), SmallVector<int64_t>{1});
  n.setOutput(0, n.make<ModOp>(index, n.make<DivOp>(index, positions, strides), shape));
}

static void compress(NodeReader &n) {
  Value x = n.input(0), condition = n.input(1);
  std::optional<int64_t> axis = n.findInt("axis");
  n.setOutput(0, gather(n, axis ? x : flat(n, x), positionsOf(n, condition), axis.value_or(0)));
}

/// Sorted, equal elements are neighbours: the first of each run stands for them all. With an axis, the elements are the slices
/// along it.
static void unique(NodeReader &n) {
  Type index = n.b().getI64Type(), boolean = n.b().getI1Type();
  std::optional<int64_t> givenAxis = n.findInt("axis");
  bool sorted = n.getFlag("sorted", true);
  Value x = givenAxis ? n.input(0) : flat(n, n.input(0));
  int64_t axis = givenAxis.value_or(0);
  Value size = sizeOf(n, x, axis), keys = orderKey(n, x, /*descending=*/false);
  Type key = NodeReader::elementTypeOf(keys);
  if (givenAxis) { // as [before, size, behind]
    Value one = n.ints({1});
    Value before = axis == 0 ? one : sizeOf(n, n.make<FlattenOp>(key, keys, axis), 0);
    Value behind = axis == -1 ? one : sizeOf(n, n.make<FlattenOp>(key, keys, axisBehind(axis)), 1);
    keys = n.make<ReshapeOp>(key, keys, n.make<ConcatOp>(index, SmallVector<Value>{before, size, behind}, 0), /*allowzero=*/true);
  }
  int64_t keyAxis = givenAxis ? 1 : 0;
  Value order = argSort(n, keys, size, keyAxis, givenAxis.has_value());

  Value position = n.make<IotaOp>(index, size, 0), zero = n.scalar(0, index), one = n.scalar(1, index);
  Value previous = gather(n, order, n.make<MaxOp>(index, n.make<SubOp>(index, position, one), zero));
  Value differs = n.make<NotOp>(boolean, n.make<EqualOp>(boolean, gather(n, keys, order, keyAxis), gather(n, keys, previous, keyAxis)));
  if (givenAxis)
    differs = n.make<ReduceOp>(boolean, differs, ReduceKind::Max, SmallVector<int64_t>{0, 2}, /*keepdims=*/false, /*allAxes=*/false);
  Value isFirst = n.make<OrOp>(boolean, differs, n.make<EqualOp>(boolean, position, zero));
  Value starts = positionsOf(n, isFirst), firsts = gather(n, order, starts);

  auto inverseOf = [&](Value permutation) {
    Value positions = n.make<IotaOp>(index, sizeOf(n, permutation, 0), 0);
    return n.make<ScatterElementsOp>(index, permutation, permutation, positions, /*axis=*/0, ReduceKindAttr());
  };
  Value appearance; // the order of the first elements in x
  if (!sorted) {
    appearance = argSort(n, firsts, sizeOf(n, firsts, 0), 0);
    firsts = gather(n, firsts, appearance);
  }
  n.setOutput(0, gather(n, x, firsts, axis));
  if (n.wantsOutput(1))
    n.setOutput(1, firsts);
  if (n.wantsOutput(2)) {
    Value run = n.make<ScanOp>(index, n.cast(isFirst, index), Value(), ReduceKind::Sum, /*axis=*/0, /*exclusive=*/false,
                               /*reverse=*/false, ArrayAttr());
    run = n.make<SubOp>(index, run, one);
    Value inverse = gather(n, run, inverseOf(order));
    n.setOutput(2, sorted ? inverse : gather(n, inverseOf(appearance), inverse));
  }
  if (n.wantsOutput(3)) {
    Value ends = n.make<ConcatOp>(index, SmallVector<Value>{starts, size}, 0);
    ends = n.make<SliceOp>(index, ends, n.ints({1}), n.ints({INT64_MAX}), Value(), Value(), ArrayAttr(), ArrayAttr());
    Value counts = n.make<SubOp>(index, ends, starts);
    n.setOutput(3, sorted ? counts : gather(n, counts, appearance));
  }
}

/// What stays for each batch and class stands at the front of its line, with -1 behind.
static void nonMaxSuppression(NodeReader &n) {
  Value boxes = n.input(0), scores = n.input(1), limit = n.optionalInput(2), overlap = n.optionalInput(3), least = n.optionalInput(4);
  int64_t format = n.getInt("center_point_box", 0);
  if (format != 0 && format != 1)
    return n.fail(Twine("its attribute 'center_point_box' is ") + Twine(format) + "; it can be 0 and 1");
  Type index = n.b().getI64Type(), boolean = n.b().getI1Type(), type = n.elementType(0);
  limit = limit ? limit : n.scalar(0, index);
  overlap = overlap ? overlap : n.scalar(0, type);
  // A score that is NaN is above nothing.
  Value isCandidate = least ? n.make<LessOp>(boolean, n.make<ReshapeOp>(type, least, n.ints({1}), /*allowzero=*/false), scores)
                            : n.make<EqualOp>(boolean, scores, scores);
  Value stays = n.make<SuppressOp>(index, boxes, orderKey(n, scores, /*descending=*/true), isCandidate, limit, overlap, format == 1);
  Value lines = flat(n, stays);
  Value positions = n.make<UnsqueezeOp>(index, positionsOf(n, n.make<LessOp>(boolean, n.scalar(-1, index), lines)), SmallVector<int64_t>{1});
  Value shape = n.make<ShapeOp>(index, scores, /*start=*/0, /*end=*/n.b().getI64IntegerAttr(2));
  Value size = sizeOf(n, scores, 2), classes = sizeOf(n, scores, 1);
  // As many entries for a batch, and for a class.
  Value strides = n.make<ConcatOp>(index, SmallVector<Value>{n.make<MulOp>(index, size, classes), size}, 0);
  Value lineOf = n.make<ModOp>(index, n.make<DivOp>(index, positions, strides), shape);
  n.setOutput(0, n.make<ConcatOp>(index, SmallVector<Value>{lineOf, gather(n, lines, positions)}, 1));
}

void addSelectionOps(OpTable &t) {
  t.add("Compress", 9, compress);
  t.add("NonMaxSuppression", 10, nonMaxSuppression);
  t.add("NonZero", 9, nonZero);
  t.add("TopK", 1, topKByAttribute);
  t.add("TopK", 10, topKByInput);
  t.add("Unique", 11, unique);
}

} // namespace dlc
