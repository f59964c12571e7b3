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
  return n.make<SliceOp>(NodeReader::elementTypeOf(x), x, starts, ends, axes, steps);
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
static NodeReader::Ints readAxes(NodeReader &n) {
  return n.getVersion() < 13 ? NodeReader::Ints{n.findInts("axes"), Value()} : n.optionalInts(1, "axes");
}

static void squeeze(NodeReader &n) {
  NodeReader::Ints axes = readAxes(n);
  auto numbers = axes.numbers ? n.b().getDenseI64ArrayAttr(*axes.numbers) : DenseI64ArrayAttr();
  n.setOutput(0, n.make<SqueezeOp>(n.elementType(0), n.input(0), axes.tensor, numbers));
}

static void unsqueeze(NodeReader &n) {
  NodeReader::Ints axes = readAxes(n);
  if (!axes.tensor && !axes.numbers && !n.failed())
    n.fail("its axes are missing");
  n.setOutput(0, n.make<UnsqueezeOp>(n.elementType(0), n.input(0), axes.tensor, axes.numbers.value_or(SmallVector<int64_t>())));
}

/// Split is as many slices. Their lengths are an attribute before version 13 and an input from it on. Where there are none, they
/// are the same; from version 18 on, with `num_outputs`, the last may be shorter.
static void split(NodeReader &n) {
  Value x = n.input(0);
  int64_t axis = n.getInt("axis", 0), count = n.getNode().outputs.size();
  NodeReader::Ints lengths;
  if (n.getVersion() < 13)
    lengths.numbers = n.findInts("split");
  else
    lengths = n.optionalInts(1, "lengths of the parts");
  bool hasLengths = lengths.numbers || lengths.tensor;
  std::optional<int64_t> wanted = n.getVersion() >= 18 ? n.findInt("num_outputs") : std::nullopt;
  if (n.failed())
    return;
  if (hasLengths && wanted)
    return n.fail("it has both lengths of the parts and 'num_outputs'");
  if (n.getVersion() >= 18 && !hasLengths && !wanted)
    return n.fail("it has neither lengths of the parts nor 'num_outputs'");
  if ((lengths.numbers && static_cast<int64_t>(lengths.numbers->size()) != count) || (wanted && *wanted != count))
    return n.fail(Twine("it has ") + Twine(count) + " outputs, but " + Twine(lengths.numbers ? lengths.numbers->size() : *wanted) + " parts");
  Type index = n.b().getI64Type();
  auto require = [&](Value lhs, Value rhs, const Twine &message, bool atLeast = false) {
    RequireOp::create(n.b(), n.getLoc(), lhs, rhs, atLeast, message.str());
  };
  auto dimOf = [&](Value value, int64_t at) {
    return n.make<ShapeOp>(index, value, at, at == -1 ? IntegerAttr() : n.b().getI64IntegerAttr(axisBehind(at)));
  };
  Value axes = n.ints({axis}), dim = dimOf(x, axis);
  auto part = [&](unsigned i, Value start, Value end) {
    if (n.wantsOutput(i))
      n.setOutput(i, makeSlice(n, x, start, end, axes, Value()));
  };
  StringRef sumMessage = "its parts have {0} elements together, the axis has {1}";
  if (lengths.numbers) {
    int64_t start = 0;
    for (auto [i, length] : llvm::enumerate(*lengths.numbers)) {
      if (length < 0 || length > INT32_MAX)
        return n.fail(Twine("one of its parts has the length ") + Twine(length));
      part(i, n.ints({start}), n.ints({start + length}));
      start += length;
    }
    require(n.ints({start}), dim, sumMessage);
    return;
  }
  if (lengths.tensor) {
    require(dimOf(lengths.tensor, 0), n.ints({count}), Twine("it has {1} outputs, but {0} parts"));
    require(lengths.tensor, n.ints({0}), Twine("one of its parts has the length {0}"), /*atLeast=*/true);
    Value start = n.ints({0});
    for (int64_t i = 0; i < count; ++i) {
      Value length = makeSlice(n, lengths.tensor, n.ints({i}), n.ints({i + 1}), Value(), Value());
      Value end = n.make<AddOp>(index, start, n.cast(length, index));
      part(i, start, end);
      start = end;
    }
    require(start, dim, sumMessage);
    return;
  }
  Value length = n.make<DivOp>(index, wanted ? n.make<AddOp>(index, dim, n.ints({count - 1})) : dim, n.ints({count}));
  if (!wanted)
    require(n.make<MulOp>(index, length, n.ints({count})), dim, Twine("the {1} elements of the axis cannot be split into ") + Twine(count) + " equal parts");
  for (int64_t i = 0; i < count; ++i)
    part(i, n.make<MulOp>(index, length, n.ints({i})), n.make<MulOp>(index, length, n.ints({i + 1})));
}

/// The dims [start, end) of x as a value; all from `start` on where there is no end.
static Value dimsBetween(NodeReader &n, Value x, int64_t start, std::optional<int64_t> end = std::nullopt) {
  return n.make<ShapeOp>(n.b().getI64Type(), x, start, end ? n.b().getI64IntegerAttr(*end) : IntegerAttr());
}

static Value reshapeExactly(NodeReader &n, Value x, Value shape) {
  return n.make<ReshapeOp>(NodeReader::elementTypeOf(x), x, shape, /*allowzero=*/true);
}

/// Column less row of each element of matrices with these dims: 0 on the main diagonal, positive above it.
static Value diagonals(NodeReader &n, Value shape) {
  Type index = n.b().getI64Type();
  return n.make<SubOp>(index, n.make<IotaOp>(index, shape, /*axis=*/-1), n.make<IotaOp>(index, shape, /*axis=*/-2));
}

static void trilu(NodeReader &n) {
  Value x = n.input(0), k = n.optionalInput(1);
  Type type = n.elementType(0), boolean = n.b().getI1Type();
  if (!k)
    k = n.scalar(0, n.b().getI64Type());
  Value diagonal = diagonals(n, dimsBetween(n, x, 0));
  Value stays = n.getFlag("upper", true) ? n.make<GreaterOrEqualOp>(boolean, diagonal, k) : n.make<LessOrEqualOp>(boolean, diagonal, k);
  n.setOutput(0, n.make<WhereOp>(type, stays, x, n.scalar(0, type)));
}

static void eyeLike(NodeReader &n) {
  Type type = n.hasAttribute("dtype") ? n.getElementType("dtype") : n.elementType(0);
  // The reshape holds the operand to two axes.
  Value shape = reshapeExactly(n, dimsBetween(n, n.input(0), 0), n.ints({2}));
  Value k = n.constant(DenseElementsAttr::get(RankedTensorType::get({}, n.b().getI64Type()), n.getInt("k", 0)));
  n.setOutput(0, n.cast(n.make<EqualOp>(n.b().getI1Type(), diagonals(n, shape), k), type));
}

/// The class of each index stands along a new axis, compared with where the element is on it. An index below 0 counts from the
/// end; one that is still outside of the axis is equal to no place on it.
static void oneHot(NodeReader &n) {
  Type index = n.b().getI64Type(), boolean = n.b().getI1Type(), type = n.elementType(2);
  int64_t axis = n.getInt("axis", -1);
  Value depth = reshapeExactly(n, n.cast(n.input(1), index), n.ints({1}));
  RequireOp::create(n.b(), n.getLoc(), depth, n.ints({0}), /*atLeast=*/true, "its depth is {0}; it must not be negative");
  Value classes = n.make<UnsqueezeOp>(index, n.cast(n.input(0), index), SmallVector<int64_t>{axis});
  Value isNegative = n.make<LessOp>(boolean, classes, n.scalar(0, index));
  classes = n.make<WhereOp>(index, isNegative, n.make<AddOp>(index, classes, depth), classes);
  SmallVector<Value> dims{dimsBetween(n, classes, 0, axis), depth, axis == -1 ? n.ints({}) : dimsBetween(n, classes, axisBehind(axis))};
  Value place = n.make<IotaOp>(index, n.make<ConcatOp>(index, dims, 0), axis);
  Value values = reshapeExactly(n, n.input(2), n.ints({2}));
  auto known = dyn_cast_or_null<DenseElementsAttr>(NodeReader::constantOf(n.input(2)));
  auto value = [&](int64_t i) -> Value {
    if (known && known.getNumElements() == 2)
      return n.constant(DenseElementsAttr::get(RankedTensorType::get({}, type), known.getValues<Attribute>()[i]));
    return makeSlice(n, values, n.ints({i}), n.ints({i + 1}), Value(), Value());
  };
  n.setOutput(0, n.make<WhereOp>(type, n.make<EqualOp>(boolean, place, classes), value(1), value(0)));
}

namespace {
/// What DepthToSpace and SpaceToDepth have in common.
struct Blocks {
  int64_t size = 1;        // of a square, along each side
  bool depthFirst = false; // of the old depth axis, the new one runs slowest (CRD), not fastest (DCR)
};
} // namespace

static std::optional<Blocks> readBlocks(NodeReader &n) {
  int64_t size = n.getInt("blocksize", 0);
  std::string mode = n.findString("mode").value_or("DCR");
  if (mode != "DCR" && mode != "CRD")
    n.fail(Twine("its attribute 'mode' is '") + mode + "'; it must be 'DCR' or 'CRD'");
  if (size < 1 || size > INT16_MAX)
    n.fail(Twine("its attribute 'blocksize' is ") + Twine(size) + "; it must be positive and fit 15 bits");
  return n.failed() ? std::nullopt : std::optional(Blocks{size, mode == "CRD"});
}

/// x under the dims `apart`, its axes in another order, under the dims `together`.
static Value rearranged(NodeReader &n, Value x, ArrayRef<Value> apart, ArrayRef<int64_t> perm, ArrayRef<Value> together) {
  Type type = NodeReader::elementTypeOf(x), index = n.b().getI64Type();
  Value moved = n.make<TransposeOp>(type, reshapeExactly(n, x, n.make<ConcatOp>(index, apart, 0)), n.b().getDenseI64ArrayAttr(perm));
  return reshapeExactly(n, moved, n.make<ConcatOp>(index, together, 0));
}

/// Blocks of the depth axis become squares of an image, or the other way round: an image [n, c, h, w] with all axes of the squares
/// apart, in another order.
static void depthToSpace(NodeReader &n) {
  Value x = n.input(0);
  Type index = n.b().getI64Type();
  std::optional<Blocks> blocks = readBlocks(n);
  if (!blocks)
    return;
  auto [block, depthFirst] = *blocks;
  Value size = n.ints({block}), depth = n.make<DivOp>(index, dimsBetween(n, x, 1, 2), n.ints({block * block}));
  Value batch = dimsBetween(n, x, 0, 1), height = dimsBetween(n, x, 2, 3), width = dimsBetween(n, x, 3);
  SmallVector<Value> apart = depthFirst ? SmallVector<Value>{batch, depth, size, size, height, width}
                                        : SmallVector<Value>{batch, size, size, depth, height, width};
  SmallVector<int64_t> perm = depthFirst ? SmallVector<int64_t>{0, 1, 4, 2, 5, 3} : SmallVector<int64_t>{0, 3, 4, 1, 5, 2};
  SmallVector<Value> together{batch, depth, n.make<MulOp>(index, height, size), n.make<MulOp>(index, width, size)};
  n.setOutput(0, rearranged(n, x, apart, perm, together));
}

static void spaceToDepth(NodeReader &n) {
  Value x = n.input(0);
  Type index = n.b().getI64Type();
  std::optional<Blocks> blocks = readBlocks(n);
  if (!blocks)
    return;
  auto [block, depthFirst] = *blocks;
  Value size = n.ints({block}), batch = dimsBetween(n, x, 0, 1), depth = dimsBetween(n, x, 1, 2);
  Value height = n.make<DivOp>(index, dimsBetween(n, x, 2, 3), size), width = n.make<DivOp>(index, dimsBetween(n, x, 3), size);
  SmallVector<Value> apart{batch, depth, height, size, width, size};
  SmallVector<Value> together{batch, n.make<MulOp>(index, depth, n.ints({block * block})), height, width};
  SmallVector<int64_t> perm = depthFirst ? SmallVector<int64_t>{0, 1, 3, 5, 2, 4} : SmallVector<int64_t>{0, 3, 5, 1, 2, 4};
  n.setOutput(0, rearranged(n, x, apart, perm, together));
}

/// The pads are attributes before version 11.
static void pad(NodeReader &n) {
  Value x = n.input(0), pads, value, axes;
  Type type = n.elementType(0);
  std::string mode = n.findString("mode").value_or("constant");
  if (n.getVersion() < 11) {
    std::optional<SmallVector<int64_t>> given = n.findInts("pads");
    if (!given)
      return n.fail("its attribute 'pads' is missing");
    pads = n.ints(*given);
    value = n.scalar(n.getFloat("value", 0), type);
  } else {
    pads = n.input(1);
    value = n.optionalInput(2);
    axes = n.optionalInput(3);
  }
  if (!value)
    value = n.scalar(0, type);
  n.setOutput(0, n.make<PadOp>(type, x, pads, value, axes, n.b().getStringAttr(mode), ArrayAttr(), ArrayAttr()));
}

static void tile(NodeReader &n) { n.setOutput(0, n.make<TileOp>(n.elementType(0), n.input(0), n.input(1), ArrayAttr())); }

static void gatherElements(NodeReader &n) {
  n.setOutput(0, n.make<GatherElementsOp>(n.elementType(0), n.input(0), n.input(1), n.getInt("axis", 0)));
}

static void gatherND(NodeReader &n) {
  n.setOutput(0, n.make<GatherNDOp>(n.elementType(0), n.input(0), n.input(1), n.getInt("batch_dims", 0)));
}

/// How updates combine with what is there; null where they replace it.
static ReduceKindAttr reduction(NodeReader &n) {
  std::string name = n.findString("reduction").value_or("none");
  MLIRContext *context = n.b().getContext();
  if (name == "add")
    return ReduceKindAttr::get(context, ReduceKind::Sum);
  if (name == "mul")
    return ReduceKindAttr::get(context, ReduceKind::Prod);
  if (name == "max")
    return ReduceKindAttr::get(context, ReduceKind::Max);
  if (name == "min")
    return ReduceKindAttr::get(context, ReduceKind::Min);
  if (name != "none")
    n.fail(Twine("its attribute 'reduction' is '") + name + "'; it must be 'none', 'add', 'mul', 'max' or 'min'");
  return {};
}

static void scatterElements(NodeReader &n) {
  IntegerAttr axis = n.b().getI64IntegerAttr(n.getInt("axis", 0));
  n.setOutput(0, n.make<ScatterElementsOp>(n.elementType(0), n.input(0), n.input(1), n.input(2), axis, reduction(n)));
}

static void scatterND(NodeReader &n) {
  n.setOutput(0, n.make<ScatterNDOp>(n.elementType(0), n.input(0), n.input(1), n.input(2), reduction(n)));
}

/// Each step and sequence, the first two axes in either order, is picked from where it comes from: of the first `length` steps
/// the one at length - 1 - step.
static void reverseSequence(NodeReader &n) {
  Value x = n.input(0);
  Type type = n.elementType(0), index = n.b().getI64Type(), boolean = n.b().getI1Type();
  int64_t batch = n.getInt("batch_axis", 1), time = n.getInt("time_axis", 0);
  if (!(batch == 0 && time == 1) && !(batch == 1 && time == 0))
    return n.fail(Twine("its attributes 'batch_axis' and 'time_axis' are ") + Twine(batch) + " and " + Twine(time) + "; one must be 0 and the other 1");
  Value shape = dimsBetween(n, x, 0, 2), lengths = reshapeExactly(n, n.input(1), dimsBetween(n, x, batch, batch + 1));
  if (batch == 0)
    lengths = n.make<UnsqueezeOp>(index, lengths, SmallVector<int64_t>{1});
  Value step = n.make<IotaOp>(index, shape, time);
  Value mirrored = n.make<SubOp>(index, n.make<SubOp>(index, lengths, n.scalar(1, index)), step);
  Value from = n.make<WhereOp>(index, n.make<LessOp>(boolean, step, lengths), mirrored, step);
  auto tuples = [&](Value indices) { return n.make<UnsqueezeOp>(index, indices, SmallVector<int64_t>{-1}); };
  if (batch == 0)
    return n.setOutput(0, n.make<GatherNDOp>(type, x, tuples(from), /*batchDims=*/1));
  SmallVector<Value> both{tuples(from), tuples(n.make<IotaOp>(index, shape, batch))};
  n.setOutput(0, n.make<GatherNDOp>(type, x, n.make<ConcatOp>(index, both, -1), /*batchDims=*/0));
}

static void col2im(NodeReader &n) {
  auto ints = [&](StringRef name) -> DenseI64ArrayAttr {
    std::optional<SmallVector<int64_t>> given = n.findInts(name);
    return given ? n.b().getDenseI64ArrayAttr(*given) : DenseI64ArrayAttr();
  };
  n.setOutput(0, n.make<Col2ImOp>(n.elementType(0), n.input(0), n.input(1), n.input(2), ints("dilations"), ints("pads"), ints("strides"), ArrayAttr()));
}

/// A cache with more entries written along an axis, from where each sample of the batch says on.
static void tensorScatter(NodeReader &n) {
  Value cache = n.input(0), update = n.input(1), start = n.optionalInput(2);
  int64_t axis = n.getInt("axis", -2);
  std::string mode = n.findString("mode").value_or("linear");
  if (mode != "linear" && mode != "circular")
    return n.fail(Twine("its attribute 'mode' is '") + mode + "'; it can be linear and circular");
  if (axis == 0 || axis < INT32_MIN)
    return n.fail("its attribute 'axis' names axis 0, the batch; it can be any other one");
  Type index = n.b().getI64Type();
  auto shapeOf = [&](Value x, int64_t from, std::optional<int64_t> to = std::nullopt) -> Value {
    return n.make<ShapeOp>(index, x, from, to ? n.b().getI64IntegerAttr(*to) : IntegerAttr());
  };
  auto require = [&](Value lhs, Value rhs, bool atLeast, StringRef message) { RequireOp::create(n.b(), n.getLoc(), lhs, rhs, atLeast, message); };
  auto sizeOf = [&](Value x) { return axis == -1 ? shapeOf(x, axis) : shapeOf(x, axis, axisBehind(axis)); };
  if (axis < 0)
    require(shapeOf(shapeOf(cache, 0), 0), n.ints({1 - axis}), /*atLeast=*/true, "its attribute 'axis' names axis 0, the batch, of {0} axes; it can be any other one");
  require(shapeOf(shapeOf(update, 0), 0), shapeOf(shapeOf(cache, 0), 0), /*atLeast=*/false, "its update has {0} axes, its cache {1}");
  StringRef differ = "its update has {0} entries on an axis where its cache has {1}";
  require(shapeOf(update, 0, axis), shapeOf(cache, 0, axis), /*atLeast=*/false, differ);
  if (axis != -1)
    require(shapeOf(update, axisBehind(axis)), shapeOf(cache, axisBehind(axis)), /*atLeast=*/false, differ);
  require(sizeOf(cache), sizeOf(update), /*atLeast=*/true, "its update is longer than its cache, which has {0} entries for {1}");
  Value places = n.make<IotaOp>(index, shapeOf(update, 0), axis);
  if (start) {
    require(shapeOf(start, 0), shapeOf(cache, 0, 1), /*atLeast=*/false, "there are {0} write indices for a batch of {1}");
    places = n.make<AddOp>(index, places, n.make<AlignAxesOp>(index, start, update, /*axis=*/0));
  }
  if (mode == "circular")
    places = n.make<ModOp>(index, places, sizeOf(cache));
  else // what is negative does not count from the end: it is too large
    places = n.make<WhereOp>(index, n.make<LessOp>(n.b().getI1Type(), places, n.scalar(0, index)),
                             n.constant(DenseElementsAttr::get(RankedTensorType::get({}, index), INT64_MAX)), places);
  n.setOutput(0, n.make<ScatterElementsOp>(n.elementType(0), cache, places, update, axis, ReduceKindAttr()));
}

void addMovementOps(OpTable &t) {
  t.add("TensorScatter", 24, tensorScatter);
  t.add("Col2Im", 18, col2im);
  t.add("Concat", 4, concat);
  t.add("DepthToSpace", 1, depthToSpace);
  t.add("EyeLike", 9, eyeLike);
  t.add("OneHot", 9, oneHot);
  t.add("SpaceToDepth", 1, spaceToDepth);
  t.add("Trilu", 14, trilu);
  t.add("Expand", 8, [](NodeReader &n) { n.setOutput(0, n.make<ExpandOp>(n.elementType(0), n.input(0), n.input(1))); });
  t.add("Flatten", 1, [](NodeReader &n) { n.setOutput(0, n.make<FlattenOp>(n.elementType(0), n.input(0), n.getInt("axis", 1))); });
  t.add("Gather", 1, gather);
  t.add("GatherElements", 11, gatherElements);
  t.add("GatherND", 11, gatherND);
  t.add("Pad", 2, pad);
  t.add("ReverseSequence", 10, reverseSequence);
  t.add("Scatter", 9, scatterElements);
  t.add("ScatterElements", 11, scatterElements);
  t.add("ScatterND", 11, scatterND);
  t.add("Tile", 6, tile);
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
