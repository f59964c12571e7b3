// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Rotary positions, of ONNX and of com.microsoft.

#include "Compose.h"
#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"

using namespace mlir;

namespace dlc {

/// What `rotate` makes of the pairs of x, which are in front, and of the rest behind them, where there is one.
static Value rotatePairs(NodeReader &n, Value x, Value cosines, Value sines, bool interleaved, Value half, Value whole, bool hasRest) {
  Type type = NodeReader::elementTypeOf(x);
  Value first, second, rest = hasRest ? slice(n, x, whole, n.ints({INT64_MAX}), -1) : Value();
  if (interleaved) {
    Value step = n.ints({2}), axes = n.ints({-1});
    first = n.make<SliceOp>(type, x, n.ints({0}), whole, axes, step);
    second = n.make<SliceOp>(type, x, n.ints({1}), whole, axes, step);
  } else {
    first = slice(n, x, n.ints({0}), half, -1);
    second = slice(n, x, half, whole, -1);
  }
  auto product = [&](Value a, Value b) { return n.make<MulOp>(type, a, b); };
  Value real = n.make<SubOp>(type, product(first, cosines), product(second, sines));
  Value imaginary = n.make<AddOp>(type, product(first, sines), product(second, cosines));
  SmallVector<Value> parts{real, imaginary};
  if (interleaved) {
    Type index = n.b().getI64Type();
    Value before = n.make<SliceOp>(index, n.make<ShapeOp>(index, x, /*start=*/0, /*end=*/IntegerAttr()), n.ints({0}), n.ints({-1}), Value(), Value());
    Value pairs = concat(n, {unsqueeze(n, real, {-1}), unsqueeze(n, imaginary, {-1})}, -1);
    parts = {reshape(n, pairs, concat(n, {before, whole}, 0), /*allowzero=*/true)};
  }
  if (rest)
    parts.push_back(rest);
  return parts.size() == 1 ? parts.front() : concat(n, parts, -1);
}

Value rotate(NodeReader &n, Value x, Value cosines, Value sines, bool interleaved, bool mayHaveRest) {
  Type index = n.b().getI64Type();
  Value half = dimOf(n, cosines, -1), whole = n.make<MulOp>(index, half, n.ints({2})), size = dimOf(n, x, -1);
  RequireOp::create(n.b(), n.getLoc(), size, whole, /*atLeast=*/mayHaveRest,
                    "the heads have {0} elements, of which the cosines and sines turn {1}");
  auto make = [&](bool hasRest) { return rotatePairs(n, x, cosines, sines, interleaved, half, whole, hasRest); };
  if (!mayHaveRest)
    return make(false);
  Value isAll = n.make<EqualOp>(n.b().getI1Type(), size, whole);
  return makeIf(n, isAll, [&] { return SmallVector<Value>{make(false)}; }, [&] { return SmallVector<Value>{make(true)}; }).front();
}

/// Turns x of three or four axes by tables of cosines and sines of [batch or 1, length, pairs]. `heads` is 0 where the pairs say how many there are.
static Value rotateHeads(NodeReader &n, Value x, Value cosines, Value sines, bool interleaved, int64_t heads, bool mayHaveRest) {
  auto apart = [&] {
    return rotate(n, x, unsqueeze(n, cosines, {1}), unsqueeze(n, sines, {1}), interleaved, mayHaveRest);
  };
  auto flat = [&] {
    Type index = n.b().getI64Type();
    Value shape = n.ints({0, 0, heads, -1});
    if (heads == 0)
      shape = concat(n, {n.ints({0, 0, -1}), n.make<MulOp>(index, dimOf(n, cosines, -1), n.ints({2}))}, 0);
    Value turned = rotate(n, reshape(n, x, shape), unsqueeze(n, cosines, {2}), unsqueeze(n, sines, {2}), interleaved, mayHaveRest);
    return reshape(n, turned, n.ints({0, 0, -1}));
  };
  return makeByRank(n, x, 4, apart, flat);
}

static void onnxRotaryEmbedding(NodeReader &n) {
  Value x = n.input(0), cosines = n.input(1), sines = n.input(2), positions = n.optionalInput(3);
  int64_t dim = n.getInt("rotary_embedding_dim", 0), heads = n.getInt("num_heads", 0);
  bool interleaved = n.getFlag("interleaved", false);
  if (NodeReader::rankOf(x) == 3 && heads <= 0)
    n.fail("its attribute 'num_heads' is missing, which an input of three dimensions needs");
  if (positions) {
    Type type = NodeReader::elementTypeOf(cosines);
    cosines = n.make<GatherOp>(type, cosines, positions, 0);
    sines = n.make<GatherOp>(type, sines, positions, 0);
  }
  if (dim != 0)
    RequireOp::create(n.b(), n.getLoc(), dimOf(n, cosines, -1), n.ints({dim / 2}), /*atLeast=*/false,
                      "the cosines are for {0} pairs, but half of 'rotary_embedding_dim' is {1}");
  n.setOutput(0, rotateHeads(n, x, cosines, sines, interleaved, heads, dim != 0));
}

/// As ONNX Runtime has it.
static void rotaryEmbedding(NodeReader &n) {
  requireOneFloatType(n, {0, 2, 3});
  requireIntegers(n, 1);
  Value x = n.input(0), positions = n.input(1), cosines = n.input(2), sines = n.input(3);
  int64_t dim = n.getInt("rotary_embedding_dim", 0), heads = n.getInt("num_heads", 0);
  bool interleaved = n.getFlag("interleaved", false);
  refuseFlag(n, "is_packed_batching");
  if (float scale = n.getFloat("scale", 1); scale != 1)
    n.fail("its attribute 'scale' is not 1, which dlc does not support");
  if (dim != 0 && heads <= 0)
    n.fail("its attribute 'num_heads' is missing, which 'rotary_embedding_dim' needs");
  if (n.failed())
    return;
  // One number is the position of the first of each sequence.
  Type type = NodeReader::elementTypeOf(x), index = n.b().getI64Type();
  Value wide = n.cast(positions, index);
  Value all = makeByRank(n, positions, 2, [&] { return wide; }, [&] {
    Value length = makeByRank(n, x, 4, [&] { return dimOf(n, x, 2); }, [&] { return dimOf(n, x, 1); });
    Value steps = n.make<IotaOp>(index, concat(n, {n.ints({1}), length}, 0), /*axis=*/1);
    return n.make<AddOp>(index, steps, reshape(n, wide, n.ints({1, 1})));
  });
  cosines = n.make<GatherOp>(type, cosines, all, 0);
  sines = n.make<GatherOp>(type, sines, all, 0);
  if (dim != 0)
    RequireOp::create(n.b(), n.getLoc(), dimOf(n, cosines, -1), n.ints({dim / 2}), /*atLeast=*/false,
                      "the cosines are for {0} pairs, but half of 'rotary_embedding_dim' is {1}");
  n.setOutput(0, rotateHeads(n, x, cosines, sines, interleaved, dim == 0 ? 0 : heads, dim != 0));
}

void addRotaryOps(OpTable &t) {
  t.add("RotaryEmbedding", 23, onnxRotaryEmbedding);
  t.add("RotaryEmbedding", 1, rotaryEmbedding, kMicrosoft);
}

} // namespace dlc
