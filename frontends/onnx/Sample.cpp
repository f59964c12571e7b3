// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators that read images at positions that are data.

#include "Compose.h"
#include "OpTable.h"
#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Sample.h"

using namespace mlir;

namespace dlc {

/// What positions are computed in.
static Type typeOfPositions(NodeReader &n, Type type) { return type.isF64() ? type : Type(n.b().getF32Type()); }

static Value shapeOf(NodeReader &n, Value x, int64_t start = 0) { return n.make<ShapeOp>(n.b().getI64Type(), x, start, /*end=*/IntegerAttr()); }

/// The number of axes, as a tensor of one element.
static Value rankOf(NodeReader &n, Value x) { return shapeOf(n, shapeOf(n, x)); }

static Value add(NodeReader &n, Value x, Value y) { return n.make<AddOp>(NodeReader::elementTypeOf(x), x, y); }
static Value subtract(NodeReader &n, Value x, Value y) { return n.make<SubOp>(NodeReader::elementTypeOf(x), x, y); }
static Value multiply(NodeReader &n, Value x, Value y) { return n.make<MulOp>(NodeReader::elementTypeOf(x), x, y); }
static Value divide(NodeReader &n, Value x, Value y) { return n.make<DivOp>(NodeReader::elementTypeOf(x), x, y); }

/// 0, 1, ... along one of `rank` axes, the others of size 1.
static Value countAlong(NodeReader &n, Value size, int64_t axis, int64_t rank, Type type) {
  SmallVector<Value> dims;
  if (axis > 0)
    dims.push_back(n.ints(SmallVector<int64_t>(axis, 1)));
  dims.push_back(size);
  if (axis + 1 < rank)
    dims.push_back(n.ints(SmallVector<int64_t>(rank - axis - 1, 1)));
  return n.cast(n.make<IotaOp>(n.b().getI64Type(), concat(n, dims, 0), axis), type);
}

//===----------------------------------------------------------------------===//
// GridSample and AffineGrid
//===----------------------------------------------------------------------===//

/// Positions go from -1 to 1 along each axis, and name the last axis first.
static void gridSample(NodeReader &n) {
  Value x = n.input(0), grid = n.input(1);
  bool isOld = n.getVersion() < 20, alignCorners = n.getFlag("align_corners", false);
  std::string mode = n.findString("mode").value_or(isOld ? "bilinear" : "linear");
  if (isOld) {
    if (mode != "bilinear" && mode != "bicubic" && mode != "nearest")
      return n.fail(Twine("its attribute 'mode' is '") + mode + "'; it can be bilinear, nearest and bicubic");
    mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  }
  std::string padding = n.findString("padding_mode").value_or("zeros");
  RequireOp::create(n.b(), n.getLoc(), rankOf(n, grid), rankOf(n, x), /*atLeast=*/false, "its input 'grid' has {0} axes, its input 'X' {1}; both must have as many");
  RequireOp::create(n.b(), n.getLoc(), dimOf(n, grid, -1), subtract(n, rankOf(n, x), n.ints({2})), /*atLeast=*/false,
                    "its input 'grid' has {0} coordinates; its input 'X' has {1} spatial axes");
  Value sizes = n.make<SliceOp>(n.b().getI64Type(), shapeOf(n, x, 2), n.ints({-1}), n.ints({INT64_MIN}), n.ints({0}), n.ints({-1}));
  Type wide = typeOfPositions(n, n.elementType(0).isF64() ? n.elementType(0) : n.elementType(1));
  Value positions = n.cast(grid, wide), size = n.cast(sizes, wide), one = n.scalar(1, wide), half = n.scalar(0.5, wide);
  if (alignCorners)
    positions = multiply(n, multiply(n, add(n, positions, one), half), subtract(n, size, one));
  else
    positions = multiply(n, subtract(n, multiply(n, add(n, positions, one), size), one), half);
  n.setOutput(0, n.make<SampleOp>(n.elementType(0), x, positions, /*axis=*/-1, /*reversed=*/true, mode, padding, alignCorners));
}

/// For `axes` spatial axes. An axis of one element lies at 0, the centre, as in the PyTorch function that the standard refers to.
static Value affineGridOf(NodeReader &n, Value theta, Value size, int64_t axes, bool alignCorners) {
  Type wide = typeOfPositions(n, NodeReader::elementTypeOf(theta)), boolean = n.b().getI1Type();
  RequireOp::create(n.b(), n.getLoc(), rankOf(n, theta), n.ints({3}), /*atLeast=*/false, "its input 'theta' must have {1} axes, not {0}");
  RequireOp::create(n.b(), n.getLoc(), dimOf(n, size, 0), n.ints({axes + 2}), /*atLeast=*/false,
                    "its input 'size' has {0} entries; it must have 4 or 5 (batch, channels and 2 or 3 spatial axes)");
  size = reshape(n, size, n.ints({axes + 2}));
  Value batch = slice(n, size, n.ints({0}), n.ints({1}), 0);
  RequireOp::create(n.b(), n.getLoc(), shapeOf(n, theta), concat(n, {batch, n.ints({axes, axes + 1})}, 0), /*atLeast=*/false,
                    "a dim of its input 'theta' is {0}; by its input 'size' it must be {1}");
  SmallVector<int64_t> rows(axes + 2, 1);
  rows.front() = 0; // the batch stays
  rows.back() = axes;
  auto column = [&](int64_t j) { return reshape(n, n.cast(slice(n, theta, n.ints({j}), n.ints({j + 1}), 2), wide), n.ints(rows)); };
  Value grid;
  for (int64_t j = 0; j != axes; ++j) {
    int64_t axis = axes - 1 - j; // x, the first coordinate, runs along the last axis
    Value count = slice(n, size, n.ints({2 + axis}), n.ints({3 + axis}), 0), length = n.cast(count, wide);
    Value place = countAlong(n, count, 1 + axis, axes + 2, wide), two = n.scalar(2, wide), one = n.scalar(1, wide);
    if (alignCorners) {
      Value isSingle = n.make<EqualOp>(boolean, length, one);
      Value step = divide(n, two, n.make<WhereOp>(wide, isSingle, two, subtract(n, length, one)));
      place = n.make<WhereOp>(wide, isSingle, n.scalar(0, wide), subtract(n, multiply(n, place, step), one));
    } else {
      Value step = divide(n, two, length);
      place = add(n, multiply(n, place, step), subtract(n, multiply(n, step, n.scalar(0.5, wide)), one));
    }
    Value part = multiply(n, column(j), place);
    grid = grid ? add(n, grid, part) : part;
  }
  return n.cast(add(n, grid, column(axes)), NodeReader::elementTypeOf(theta));
}

static void affineGrid(NodeReader &n) {
  Value theta = n.input(0), size = n.input(1);
  bool alignCorners = n.getFlag("align_corners", false);
  auto of = [&](int64_t axes) { return affineGridOf(n, theta, size, axes, alignCorners); };
  std::optional<int64_t> count = knownDim(size, 0), rows = knownDim(theta, 1);
  if (count || rows)
    return n.setOutput(0, of((count ? *count - 2 : *rows) == 3 ? 3 : 2));
  Value isFlat = n.make<EqualOp>(n.b().getI1Type(), dimOf(n, size, 0), n.ints({4}));
  n.setOutput(0, makeIf(n, isFlat, [&] { return SmallVector<Value>{of(2)}; }, [&] { return SmallVector<Value>{of(3)}; }).front());
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

static void roiAlign(NodeReader &n) {
  std::string mode = n.findString("mode").value_or("avg");
  if (mode != "avg" && mode != "max")
    return n.fail(Twine("its attribute 'mode' is '") + mode + "'; it can be avg and max");
  std::string coordinates = n.getVersion() < 16 ? "output_half_pixel" : n.findString("coordinate_transformation_mode").value_or("half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return n.fail(Twine("its attribute 'coordinate_transformation_mode' is '") + coordinates + "'; it can be half_pixel and output_half_pixel");
  n.setOutput(0, n.make<RoiAlignOp>(n.elementType(0), n.input(0), n.input(1), n.input(2), mode == "max" ? PoolKind::Max : PoolKind::Average,
                                    n.getInt("output_height", 1), n.getInt("output_width", 1), n.getInt("sampling_ratio", 0),
                                    APFloat(n.getFloat("spatial_scale", 1.0f)), coordinates == "half_pixel"));
}

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

/// Each cell of each window is sampled, and filters are multiplied with that. Groups of channels that share offsets are a batch for the sampling,
/// groups of filters one for the product.
static void deformConv(NodeReader &n) {
  Value x = n.input(0), w = n.input(1), offset = n.input(2), bias = n.optionalInput(3), mask = n.optionalInput(4);
  SmallVector<int64_t> kernel = n.findInts("kernel_shape").value_or(SmallVector<int64_t>());
  if (auto type = dyn_cast<RankedTensorType>(w.getType())) {
    if (type.getRank() < 3)
      return n.failInput(1, Twine("its ") + n.describeInput(1) + " has " + Twine(type.getRank()) + " axes; filters have channels and a spatial axis at least");
    ArrayRef<int64_t> own = type.getShape().drop_front(2);
    if (kernel.empty() && llvm::none_of(own, ShapedType::isDynamic))
      kernel.assign(own.begin(), own.end());
    bool agrees = kernel.empty() || kernel.size() == own.size();
    for (size_t i = 0; agrees && i != kernel.size(); ++i)
      agrees = ShapedType::isDynamic(own[i]) || own[i] == kernel[i];
    if (!agrees)
      return n.fail("its attribute 'kernel_shape' is not what its weights have");
  }
  if (kernel.empty())
    return n.fail("the sizes of its filters are known only when the model runs, which dlc does not support; give its attribute 'kernel_shape'");
  int64_t axes = kernel.size(), cells = 1;
  auto listOf = [&](StringRef name, int64_t length, int64_t otherwise, int64_t least) {
    SmallVector<int64_t> list = n.findInts(name).value_or(SmallVector<int64_t>(length, otherwise));
    if (static_cast<int64_t>(list.size()) != length)
      n.fail(Twine("its attribute '") + name + "' has " + Twine(list.size()) + " entries; " + Twine(axes) + " spatial axes need " + Twine(length));
    else if (llvm::any_of(list, [&](int64_t v) { return v < least || v > INT32_MAX; }))
      n.fail(Twine("its attribute '") + name + "' has an entry that is " + (least ? "not positive" : "negative") + ", or too large");
    return list;
  };
  SmallVector<int64_t> strides = listOf("strides", axes, 1, 1), dilations = listOf("dilations", axes, 1, 1), pads = listOf("pads", 2 * axes, 0, 0);
  int64_t groups = n.getInt("group", 1), offsetGroups = n.getInt("offset_group", 1);
  if (groups < 1 || offsetGroups < 1)
    n.fail("its attributes 'group' and 'offset_group' must be positive");
  for (int64_t size : kernel) {
    if (size < 1 || size > (1 << 20) / cells)
      return n.fail("its filters have no cells, or more than dlc supports (1048576)");
    cells *= size;
  }
  if (n.failed())
    return;

  Type type = n.elementType(0), wide = typeOfPositions(n, type);
  RequireOp::create(n.b(), n.getLoc(), rankOf(n, x), n.ints({axes + 2}), /*atLeast=*/false, "its input 'X' has {0} axes; with its filters it must have {1}");
  RequireOp::create(n.b(), n.getLoc(), rankOf(n, offset), n.ints({axes + 2}), /*atLeast=*/false,
                    "its input 'offset' has {0} axes; with its filters it must have {1}");
  SmallVector<int64_t> room;
  for (int64_t i = 0; i != axes; ++i)
    room.push_back(pads[i] + pads[i + axes] - (kernel[i] - 1) * dilations[i] - 1);
  Value windows = add(n, divide(n, add(n, shapeOf(n, x, 2), n.ints(room)), n.ints(strides)), n.ints({1})), out = shapeOf(n, offset, 2);
  RequireOp::create(n.b(), n.getLoc(), out, windows, /*atLeast=*/false, "a spatial axis of its input 'offset' has {0} entries; there are {1} windows");
  RequireOp::create(n.b(), n.getLoc(), concat(n, {dimOf(n, offset, 0), dimOf(n, offset, 1)}, 0),
                    concat(n, {dimOf(n, x, 0), n.ints({offsetGroups * cells * axes})}, 0), /*atLeast=*/false,
                    "its input 'offset' has {0} entries on axis 0 (batch) or 1 (offset groups * cells * axes), where {1} are needed");

  // [batch * offset groups, cells, axes, windows...]
  Value batch = multiply(n, dimOf(n, x, 0), n.ints({offsetGroups}));
  Value positions = n.cast(reshape(n, offset, concat(n, {batch, n.ints({cells, axes}), out}, 0), /*allowzero=*/true), wide);
  SmallVector<double> starts;
  for (int64_t cell = 0; cell != cells; ++cell) {
    SmallVector<double> own;
    for (int64_t i = axes, rest = cell; i-- > 0; rest /= kernel[i])
      own.push_back(static_cast<double>(rest % kernel[i] * dilations[i] - pads[i]));
    starts.append(own.rbegin(), own.rend());
  }
  auto constant = [&](ArrayRef<double> numbers, ArrayRef<int64_t> dims) {
    auto shaped = DenseElementsAttr::get(RankedTensorType::get(dims, n.b().getF64Type()), numbers);
    return n.cast(n.constant(shaped), wide);
  };
  SmallVector<int64_t> ones(axes + 2, 1);
  ones[0] = cells, ones[1] = axes;
  Value base = constant(starts, ones);
  for (int64_t i = 0; i != axes; ++i) {
    SmallVector<double> own(axes, 0);
    own[i] = static_cast<double>(strides[i]);
    base = add(n, base, multiply(n, countAlong(n, dimOf(n, offset, 2 + i), 3 + i, 3 + axes, wide), constant(own, ArrayRef(ones).drop_front())));
  }
  Value image = reshape(n, x, concat(n, {batch, divide(n, dimOf(n, x, 1), n.ints({offsetGroups})), shapeOf(n, x, 2)}, 0), /*allowzero=*/true);
  Value samples = n.make<SampleOp>(type, image, add(n, positions, base), /*axis=*/2, /*reversed=*/false, "linear", "zeros", /*alignCorners=*/true);
  if (mask)
    samples = multiply(n, samples, reshape(n, mask, concat(n, {batch, n.ints({1, cells}), out}, 0), /*allowzero=*/true));

  Value places = dimOf(n, offset, 2);
  for (int64_t i = 1; i != axes; ++i)
    places = multiply(n, places, dimOf(n, offset, 2 + i));
  Value depth = multiply(n, divide(n, dimOf(n, x, 1), n.ints({groups})), n.ints({cells})), filters = dimOf(n, w, 0);
  Value columns = reshape(n, samples, concat(n, {dimOf(n, x, 0), n.ints({groups}), depth, places}, 0), /*allowzero=*/true);
  Value rows = reshape(n, w, concat(n, {n.ints({groups}), divide(n, filters, n.ints({groups})), depth}, 0), /*allowzero=*/true);
  Value result = reshape(n, n.make<MatMulOp>(type, rows, columns), concat(n, {dimOf(n, x, 0), filters, out}, 0), /*allowzero=*/true);
  if (bias) {
    SmallVector<int64_t> behind;
    for (int64_t i = 0; i != axes; ++i)
      behind.push_back(i + 1);
    result = add(n, result, unsqueeze(n, bias, behind));
  }
  n.setOutput(0, result);
}

void addSampleOps(OpTable &t) {
  t.add("GridSample", 16, gridSample);
  t.add("AffineGrid", 20, affineGrid);
  t.add("RoiAlign", 10, roiAlign);
  t.add("DeformConv", 19, deformConv);
}

} // namespace dlc
