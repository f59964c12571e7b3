// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"

using namespace mlir;

namespace dlc {

static void concat(NodeReader &n) {
  SmallVector<Value> operands = n.inputsFrom(0);
  std::optional<int64_t> axis = n.findInt("axis");
  if (!axis && !n.failed())
    n.fail("its attribute 'axis' is missing");
  if (operands.empty())
    return n.fail("it has no input");
  n.setOutput(0, n.make<ConcatOp>(n.elementType(0), operands, axis.value_or(0)));
}

static void reshape(NodeReader &n) {
  bool allowzero = n.getVersion() >= 14 && n.getFlag("allowzero", false);
  n.setOutput(0, n.make<ReshapeOp>(n.elementType(0), n.input(0), n.input(1), allowzero));
}

static void transpose(NodeReader &n) {
  std::optional<SmallVector<int64_t>> perm = n.findInts("perm");
  n.setOutput(0, n.make<TransposeOp>(n.elementType(0), n.input(0),
                                     perm ? n.b().getDenseI64ArrayAttr(*perm) : DenseI64ArrayAttr()));
}

/// `axes` and `steps` may be null.
static Value makeSlice(NodeReader &n, Value x, Value starts, Value ends, Value axes, Value steps) {
  return n.make<SliceOp>(NodeReader::elementTypeOf(x), x, starts, ends, axes, steps, ArrayAttr(), DenseI64ArrayAttr());
}

static void sliceByAttributes(NodeReader &n) {
  std::optional<SmallVector<int64_t>> starts = n.findInts("starts"), ends = n.findInts("ends"), axes = n.findInts("axes");
  if (!starts || !ends)
    return n.fail("its attributes 'starts' and 'ends' are needed");
  n.setOutput(0, makeSlice(n, n.input(0), n.ints(*starts), n.ints(*ends), axes ? n.ints(*axes) : Value(), Value()));
}

static void slice(NodeReader &n) {
  n.setOutput(0, makeSlice(n, n.input(0), n.input(1), n.input(2), n.optionalInput(3), n.optionalInput(4)));
}

static void gather(NodeReader &n) {
  n.setOutput(0, n.make<GatherOp>(n.elementType(0), n.input(0), n.input(1), n.getInt("axis", 0)));
}

static void shape(NodeReader &n) {
  std::optional<int64_t> end = n.findInt("end");
  n.setOutput(0, n.make<ShapeOp>(n.b().getI64Type(), n.input(0), n.getInt("start", 0),
                                 end ? n.b().getI64IntegerAttr(*end) : IntegerAttr()));
}

/// The axes of Squeeze and Unsqueeze: an attribute before version 13, an input from it on.
static std::optional<SmallVector<int64_t>> readAxes(NodeReader &n) {
  return n.getVersion() < 13 ? n.findInts("axes") : n.optionalConstantInts(1, "axes");
}

static void squeeze(NodeReader &n) {
  std::optional<SmallVector<int64_t>> axes = readAxes(n);
  n.setOutput(0, n.make<SqueezeOp>(n.elementType(0), n.input(0), axes ? n.b().getDenseI64ArrayAttr(*axes) : DenseI64ArrayAttr()));
}

static void unsqueeze(NodeReader &n) {
  std::optional<SmallVector<int64_t>> axes = readAxes(n);
  if (!axes && !n.failed())
    n.fail("its axes are missing");
  n.setOutput(0, n.make<UnsqueezeOp>(n.elementType(0), n.input(0), axes.value_or(SmallVector<int64_t>())));
}

/// Split is as many slices. Their lengths are an attribute before version 13 and an input from it on; where there are none,
/// they are the same, and the last may be shorter (from version 18 on, with `num_outputs`).
static void split(NodeReader &n) {
  Value x = n.input(0);
  int64_t axis = n.getInt("axis", 0), count = n.getNode().outputs.size();
  std::optional<SmallVector<int64_t>> lengths =
      n.getVersion() < 13 ? n.findInts("split") : n.optionalConstantInts(1, "lengths of the parts");
  std::optional<int64_t> wanted = n.getVersion() >= 18 ? n.findInt("num_outputs") : std::nullopt;
  if (n.failed())
    return;
  if (lengths && wanted)
    return n.fail("it has both lengths of the parts and 'num_outputs'");
  if ((lengths && static_cast<int64_t>(lengths->size()) != count) || (wanted && *wanted != count))
    return n.fail(Twine("it has ") + Twine(count) + " outputs, but " + Twine(lengths ? lengths->size() : *wanted) + " parts");
  Type index = n.b().getI64Type();
  Value axes = n.ints({axis});
  auto part = [&](unsigned i, Value start, Value end) {
    if (n.wantsOutput(i))
      n.setOutput(i, makeSlice(n, x, start, end, axes, Value()));
  };
  if (lengths) {
    int64_t start = 0;
    for (auto [i, length] : llvm::enumerate(*lengths)) {
      if (length < 0 || length > INT32_MAX)
        return n.fail(Twine("one of its parts has the length ") + Twine(length));
      part(i, n.ints({start}), n.ints({start + length}));
      start += length;
    }
    if (auto type = dyn_cast<RankedTensorType>(x.getType()); type && axis >= -type.getRank() && axis < type.getRank()) {
      int64_t dim = type.getDimSize(axis < 0 ? axis + type.getRank() : axis);
      if (!ShapedType::isDynamic(dim) && dim != start)
        n.fail(Twine("its parts have ") + Twine(start) + " elements together, the axis has " + Twine(dim));
    }
    return;
  }
  Value dim = n.make<ShapeOp>(index, x, axis, axis == -1 ? IntegerAttr() : n.b().getI64IntegerAttr(axis + 1));
  Value length = n.make<DivOp>(index, n.make<AddOp>(index, dim, n.ints({count - 1})), n.ints({count}));
  for (int64_t i = 0; i < count; ++i)
    part(i, n.make<MulOp>(index, length, n.ints({i})), n.make<MulOp>(index, length, n.ints({i + 1})));
}

void addMovementOps(OpTable &t) {
  t.add("Concat", 4, concat);
  t.add("Expand", 8, [](NodeReader &n) { n.setOutput(0, n.make<ExpandOp>(n.elementType(0), n.input(0), n.input(1))); });
  t.add("Flatten", 1, [](NodeReader &n) { n.setOutput(0, n.make<FlattenOp>(n.elementType(0), n.input(0), n.getInt("axis", 1))); });
  t.add("Gather", 1, gather);
  t.add("Reshape", 5, reshape);
  t.add("Shape", 1, shape);
  t.add("Size", 1, [](NodeReader &n) { n.setOutput(0, n.make<SizeOp>(n.b().getI64Type(), n.input(0))); });
  t.add("Slice", 1, sliceByAttributes);
  t.add("Slice", 10, slice);
  t.add("Split", 2, split);
  t.add("Squeeze", 1, squeeze);
  t.add("Transpose", 1, transpose);
  t.add("Unsqueeze", 1, unsqueeze);
}

} // namespace dlc
