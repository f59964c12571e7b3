// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators that slide a window over spatial axes, and what stands around them.

#include "Compose.h"
#include "OpTable.h"
#include "dlc/IR/Conv.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Normalization.h"
#include "dlc/IR/Pool.h"
#include "dlc/IR/Reduction.h"
#include "dlc/IR/Resize.h"

using namespace mlir;

namespace dlc {

static SmallVector<int64_t> intsOrNone(NodeReader &n, StringRef name) { return n.findInts(name).value_or(SmallVector<int64_t>()); }

static void conv(NodeReader &n) {
  Value x = n.input(0), w = n.input(1), bias = n.optionalInput(2);
  SmallVector<int64_t> kernel = intsOrNone(n, "kernel_shape");
  if (auto type = dyn_cast<RankedTensorType>(w.getType()); type && !kernel.empty()) {
    bool agrees = static_cast<int64_t>(kernel.size()) + 2 == type.getRank();
    for (size_t i = 0; agrees && i != kernel.size(); ++i)
      agrees = type.isDynamicDim(i + 2) || type.getDimSize(i + 2) == kernel[i];
    if (!agrees)
      return n.fail("its attribute 'kernel_shape' is not what its weights have");
  }
  n.setOutput(0, n.make<ConvOp>(n.elementType(0), x, w, bias, intsOrNone(n, "strides"), intsOrNone(n, "dilations"), intsOrNone(n, "pads"),
                                n.findString("auto_pad").value_or("NOTSET"), n.getInt("group", 1), /*channelsLast=*/false, ArrayAttr()));
}

static Value pool(NodeReader &n, Value x, PoolKind kind, bool countPads) {
  std::optional<SmallVector<int64_t>> kernel = n.findInts("kernel_shape");
  if (!kernel && !n.failed())
    n.fail("its attribute 'kernel_shape' is missing");
  return n.make<PoolOp>(NodeReader::elementTypeOf(x), x, kind, kernel.value_or(SmallVector<int64_t>()), intsOrNone(n, "strides"), intsOrNone(n, "dilations"),
                        intsOrNone(n, "pads"), n.findString("auto_pad").value_or("NOTSET"), n.getFlag("ceil_mode", false), countPads,
                        /*channelsLast=*/false, ArrayAttr(), ArrayAttr());
}

static void maxPool(NodeReader &n) {
  int64_t order = n.getInt("storage_order", 0); // of the indices
  if (order != 0 && order != 1)
    return n.fail(Twine("its attribute 'storage_order' is ") + Twine(order) + "; it can be 0 and 1");
  Value x = n.input(0);
  n.setOutput(0, pool(n, x, PoolKind::Max, false));
  if (n.wantsOutput(1) && !n.failed())
    n.setOutput(1, n.make<PoolIndicesOp>(n.b().getI64Type(), x, n.findInts("kernel_shape").value_or(SmallVector<int64_t>()), intsOrNone(n, "strides"),
                                         intsOrNone(n, "dilations"), intsOrNone(n, "pads"), n.findString("auto_pad").value_or("NOTSET"),
                                         n.getFlag("ceil_mode", false), order == 1, ArrayAttr()));
}

/// Zeros, and the elements of x where its indices say. With `output_shape` there are more zeros behind each axis: indices count in what the
/// attributes give, as the cases of ONNX have it.
static void maxUnpool(NodeReader &n) {
  Value x = n.input(0), indices = n.input(1), shape = n.optionalInput(2);
  std::optional<SmallVector<int64_t>> kernel = n.findInts("kernel_shape");
  if (!kernel || kernel->empty())
    return n.fail("its attribute 'kernel_shape' is missing, or empty");
  size_t axes = kernel->size();
  SmallVector<int64_t> strides = intsOrNone(n, "strides"), pads = intsOrNone(n, "pads");
  if (strides.empty())
    strides.assign(axes, 1);
  if (pads.empty())
    pads.assign(2 * axes, 0);
  if (strides.size() != axes || pads.size() != 2 * axes)
    return n.fail(Twine("its attributes 'strides' and 'pads' have ") + Twine(strides.size()) + " and " + Twine(pads.size()) + " entries; " + Twine(axes) +
                  " spatial axes need " + Twine(axes) + " and " + Twine(2 * axes));
  auto isOdd = [](int64_t v, int64_t least) { return v < least || v > INT32_MAX; };
  if (llvm::any_of(*kernel, [&](int64_t v) { return isOdd(v, 1); }) || llvm::any_of(strides, [&](int64_t v) { return isOdd(v, 1); }) ||
      llvm::any_of(pads, [&](int64_t v) { return isOdd(v, 0); }))
    return n.fail("its attributes 'kernel_shape' and 'strides' must be positive, and 'pads' not negative");
  Type type = n.elementType(0), index = n.b().getI64Type();
  auto shapeOf = [&](Value v, int64_t start) { return n.make<ShapeOp>(index, v, start, /*end=*/IntegerAttr()); };
  RequireOp::create(n.b(), n.getLoc(), shapeOf(shapeOf(x, 0), 0), n.ints({static_cast<int64_t>(axes) + 2}), /*atLeast=*/false,
                    "its input 'X' has {0} axes; with its attribute 'kernel_shape' it must have {1}");
  RequireOp::create(n.b(), n.getLoc(), shapeOf(indices, 0), shapeOf(x, 0), /*atLeast=*/false, "its indices have {0} entries on an axis where X has {1}");
  SmallVector<int64_t> behind;
  for (size_t i = 0; i != axes; ++i)
    behind.push_back((*kernel)[i] - pads[i] - pads[i + axes] - strides[i]);
  Value spatial = n.make<AddOp>(index, n.make<MulOp>(index, shapeOf(x, 2), n.ints(strides)), n.ints(behind));
  RequireOp::create(n.b(), n.getLoc(), spatial, n.ints({0}), /*atLeast=*/true, "a spatial axis of its result would have {0} elements");
  Value dims = concat(n, {dimOf(n, x, 0), dimOf(n, x, 1), spatial}, 0), count = dimOf(n, x, 0);
  for (size_t i = 0; i <= axes; ++i)
    count = n.make<MulOp>(index, count, slice(n, dims, n.ints({static_cast<int64_t>(i) + 1}), n.ints({static_cast<int64_t>(i) + 2}), 0));
  auto flat = [&](Value v) { return reshape(n, v, n.ints({-1})); };
  Value zero = n.scalar(0, type), none = n.scalar(0, index);
  // What is negative does not count from the end: it is too large.
  Value isNegative = n.make<LessOp>(n.b().getI1Type(), indices, none), tooLarge = n.constant(DenseElementsAttr::get(RankedTensorType::get({}, index), INT64_MAX));
  Value places = flat(n.make<WhereOp>(index, isNegative, tooLarge, indices));
  Value result = n.make<ScatterElementsOp>(type, n.make<ExpandOp>(type, zero, count), places, flat(x), /*axis=*/0, ReduceKindAttr());
  result = reshape(n, result, dims, /*allowzero=*/true);
  if (shape) {
    RequireOp::create(n.b(), n.getLoc(), dimOf(n, shape, 0), n.ints({static_cast<int64_t>(axes) + 2}), /*atLeast=*/false,
                      "its 'output_shape' has {0} entries; it must have {1}");
    shape = reshape(n, shape, n.ints({static_cast<int64_t>(axes) + 2}));
    RequireOp::create(n.b(), n.getLoc(), shape, dims, /*atLeast=*/true, "an entry of its 'output_shape' is {0}, less than the {1} that its attributes give");
    Value pads = concat(n, {n.ints(SmallVector<int64_t>(axes + 2, 0)), n.make<SubOp>(index, shape, dims)}, 0);
    result = n.make<PadOp>(type, result, pads, zero, Value(), "constant", ArrayAttr(), ArrayAttr());
  }
  n.setOutput(0, result);
}

static void averagePool(NodeReader &n) { n.setOutput(0, pool(n, n.input(0), PoolKind::Average, n.getFlag("count_include_pad", false))); }

static void globalPool(NodeReader &n, PoolKind kind) { n.setOutput(0, n.make<GlobalPoolOp>(n.elementType(0), n.input(0), kind)); }

static void batchNorm(NodeReader &n) {
  n.ignore("momentum");
  int64_t version = n.getVersion();
  if (version < 9 && !n.getFlag("spatial", true))
    return n.fail("its attribute 'spatial' is 0, which dlc does not support; export the model in opset 9 or later");
  bool isTraining = version >= 14 ? n.getFlag("training_mode", false) : version < 7 && !n.getFlag("is_test", false);
  if (isTraining)
    return n.fail("it is in training mode; dlc compiles for inference only: export the model in inference mode");
  Value x = n.input(0);
  n.setOutput(0, n.make<BatchNormOp>(n.elementType(0), x, n.input(1), n.input(2), n.input(3), n.input(4),
                                     n.b().getF32FloatAttr(n.getFloat("epsilon", 1e-5f))));
}

/// An optional input; one without elements counts as missing, as versions before 13 had it.
static Value givenInput(NodeReader &n, unsigned i) {
  Value v = n.optionalInput(i);
  auto type = v ? dyn_cast<RankedTensorType>(v.getType()) : RankedTensorType();
  return type && type.hasStaticShape() && type.getNumElements() == 0 ? Value() : v;
}

/// floor(dims * scales), where only a run may know the scales.
static Value sizesByScales(NodeReader &n, Value x, Value scales, ArrayRef<int64_t> axes) {
  Type index = n.b().getI64Type(), wide = n.b().getF64Type();
  Value dims = n.make<ShapeOp>(index, x, /*start=*/0, /*end=*/IntegerAttr());
  if (!axes.empty()) {
    SmallVector<Value> own;
    for (int64_t axis : axes)
      own.push_back(dimOf(n, x, axis));
    dims = concat(n, own, 0);
  }
  Value sizes = n.make<FloorOp>(wide, n.make<MulOp>(wide, n.cast(dims, wide), n.cast(scales, wide)));
  return n.cast(sizes, index);
}

static void resize(NodeReader &n) {
  int64_t version = n.getVersion();
  Value x = n.input(0);
  std::string mode = n.findString("mode").value_or("nearest"), coordinates = "asymmetric", nearest = "floor";
  Value roi, scales, sizes;
  if (version < 11) {
    scales = n.input(1);
  } else {
    coordinates = n.findString("coordinate_transformation_mode").value_or("half_pixel");
    nearest = n.findString("nearest_mode").value_or("round_prefer_floor");
    roi = givenInput(n, 1);
    scales = givenInput(n, 2);
    sizes = givenInput(n, 3);
  }
  SmallVector<int64_t> axes = intsOrNone(n, "axes");
  if (sizes) // versions before 13 have scales without elements of unknown rank beside them
    scales = Value();
  else if (scales && !NodeReader::constantOf(scales))
    sizes = sizesByScales(n, x, scales, axes);
  n.setOutput(0, n.make<ResizeOp>(n.elementType(0), x, roi, scales, sizes, axes, mode, coordinates, nearest,
                                  n.findString("keep_aspect_ratio_policy").value_or("stretch"), APFloat(n.getFloat("cubic_coeff_a", -0.75f)),
                                  APFloat(n.getFloat("extrapolation_value", 0)), n.getFlag("exclude_outside", false), n.getFlag("antialias", false),
                                  ArrayAttr(), DenseF64ArrayAttr(), DimExpr(), DimExpr()));
}

static void upsample(NodeReader &n) {
  Value x = n.input(0), scales, sizes;
  std::string mode = n.findString("mode").value_or("nearest");
  OpBuilder &b = n.b();
  if (n.getVersion() < 9) {
    SmallVector<float> numbers = n.findFloats("scales").value_or(SmallVector<float>());
    scales = n.constant(DenseElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(numbers.size())}, b.getF32Type()), ArrayRef(numbers)));
  } else {
    scales = n.input(1);
    if (!NodeReader::constantOf(scales))
      sizes = sizesByScales(n, x, scales, {});
  }
  n.setOutput(0, n.make<ResizeOp>(n.elementType(0), x, Value(), scales, sizes, SmallVector<int64_t>(), mode == "bilinear" ? "linear" : mode, "asymmetric", "floor",
                                  "stretch", APFloat(-0.75f), APFloat(0.0f), false, false, ArrayAttr(), DenseF64ArrayAttr(), DimExpr(), DimExpr()));
}

/// The elements of x, and zeros between them; a convolution over that, with filters and channels exchanged and filters turned around.
static void convTranspose(NodeReader &n) {
  Value x = n.input(0), w = n.input(1), bias = n.optionalInput(2);
  auto type = dyn_cast<RankedTensorType>(w.getType());
  if (!type || !type.hasStaticShape() || type.getRank() < 3)
    return n.fail("its filters are known only when the model runs, which dlc does not support");
  SmallVector<int64_t> kernel(type.getShape().drop_front(2));
  if (SmallVector<int64_t> given = intsOrNone(n, "kernel_shape"); !given.empty() && given != kernel)
    return n.fail("its attribute 'kernel_shape' is not what its weights have");
  n.setOutput(0, n.make<ConvTransposeOp>(n.elementType(0), x, w, bias, intsOrNone(n, "strides"), intsOrNone(n, "dilations"), intsOrNone(n, "pads"),
                                         intsOrNone(n, "output_padding"), intsOrNone(n, "output_shape"), n.findString("auto_pad").value_or("NOTSET"),
                                         n.getInt("group", 1), ArrayAttr(), ArrayAttr()));
}

static Value absolute(NodeReader &n, Value x, int64_t p) {
  Type type = NodeReader::elementTypeOf(x);
  if (p == 2)
    return n.make<MulOp>(type, x, x);
  Value size = n.make<AbsOp>(type, x);
  return p == 1 ? size : n.make<PowOp>(type, size, n.scalar(p, type));
}

static Value root(NodeReader &n, Value x, int64_t p) {
  Type type = NodeReader::elementTypeOf(x);
  if (p == 2)
    return n.make<SqrtOp>(type, x);
  return p == 1 ? x : n.make<PowOp>(type, x, n.scalar(1.0 / p, type));
}

/// The norm of each window.
static void lpPool(NodeReader &n) {
  int64_t p = n.getInt("p", 2);
  if (p < 1)
    return n.fail("its attribute 'p' is " + Twine(p) + "; it must be positive");
  Type type = n.elementType(0), wide = typeOfSums(n, type);
  Value sums = pool(n, absolute(n, n.cast(n.input(0), wide), p), PoolKind::Sum, /*countPads=*/false);
  n.setOutput(0, n.cast(root(n, sums, p), type));
}

/// The norm over all spatial axes.
static void globalLpPool(NodeReader &n) {
  int64_t p = n.getInt("p", 2);
  if (p < 1)
    return n.fail(Twine("its attribute 'p' is ") + Twine(p) + "; it must be positive");
  Type type = n.elementType(0), wide = typeOfSums(n, type);
  Value sums = n.make<GlobalPoolOp>(wide, absolute(n, n.cast(n.input(0), wide), p), PoolKind::Sum);
  n.setOutput(0, n.cast(root(n, sums, p), type));
}

/// Squares of neighbouring channels are summed up by a window over them, in front of the other axes as one.
static void localResponseNormalization(NodeReader &n) {
  std::optional<int64_t> size = n.findInt("size");
  if (!size || *size < 1)
    return n.fail("its attribute 'size' is missing, or not positive");
  float alpha = n.getFloat("alpha", 1e-4f), beta = n.getFloat("beta", 0.75f), bias = n.getFloat("bias", 1);
  Value x = n.input(0);
  Type type = n.elementType(0), wide = typeOfSums(n, type);
  Value own = n.cast(x, wide), dims = n.make<ShapeOp>(n.b().getI64Type(), x, /*start=*/0, /*end=*/IntegerAttr());
  Value rows = reshape(n, n.make<MulOp>(wide, own, own), concat(n, {dimOf(n, x, 0), n.ints({1}), dimOf(n, x, 1), n.ints({-1})}, 0));
  SmallVector<int64_t> kernel{*size, 1}, pads{(*size - 1) / 2, 0, *size / 2, 0};
  Value sums = n.make<PoolOp>(wide, rows, PoolKind::Sum, kernel, SmallVector<int64_t>(), SmallVector<int64_t>(), pads, "NOTSET", /*ceilMode=*/false,
                              /*countPads=*/false, /*channelsLast=*/false, ArrayAttr(), ArrayAttr());
  sums = reshape(n, sums, dims, /*allowzero=*/true);
  Value base = n.make<AddOp>(wide, n.make<MulOp>(wide, sums, n.scalar(alpha / *size, wide)), n.scalar(bias, wide));
  n.setOutput(0, n.cast(n.make<DivOp>(wide, own, n.make<PowOp>(wide, base, n.scalar(beta, wide))), type));
}

/// Over the spatial axes of each channel, which are one axis for that.
static void instanceNormalization(NodeReader &n) {
  Value x = n.input(0);
  Type type = n.elementType(0), wide = typeOfSums(n, type);
  float epsilon = n.getFloat("epsilon", 1e-5f);
  Value dims = n.make<ShapeOp>(n.b().getI64Type(), x, /*start=*/0, /*end=*/IntegerAttr());
  Value rows = reshape(n, n.cast(x, wide), n.ints({0, 0, -1}));
  auto mean = [&](Value v) { return n.make<MeanOp>(wide, v, ArrayRef<int64_t>{2}, /*keepdims=*/true, /*allAxes=*/false); };
  auto ofChannels = [&](unsigned i) { return unsqueeze(n, n.cast(n.input(i), wide), {1}); };
  Value deviation = n.make<SubOp>(wide, rows, mean(rows));
  Value variance = mean(n.make<MulOp>(wide, deviation, deviation));
  Value inverse = n.make<ReciprocalOp>(wide, n.make<SqrtOp>(wide, n.make<AddOp>(wide, variance, n.scalar(epsilon, wide))));
  Value result = n.make<AddOp>(wide, n.make<MulOp>(wide, n.make<MulOp>(wide, deviation, inverse), ofChannels(1)), ofChannels(2));
  n.setOutput(0, reshape(n, n.cast(result, type), dims, /*allowzero=*/true));
}

void addVisionOps(OpTable &t) {
  t.add("Conv", 1, conv);
  t.add("ConvTranspose", 1, convTranspose);
  t.add("Resize", 10, resize);
  t.add("Upsample", 7, upsample);
  t.add("LpPool", 2, lpPool);
  t.add("GlobalLpPool", 2, globalLpPool);
  t.add("LRN", 1, localResponseNormalization);
  t.add("InstanceNormalization", 6, instanceNormalization);
  t.add("MaxPool", 1, maxPool);
  t.add("MaxUnpool", 9, maxUnpool);
  t.add("AveragePool", 1, averagePool);
  t.add("GlobalAveragePool", 1, [](NodeReader &n) { globalPool(n, PoolKind::Average); });
  t.add("GlobalMaxPool", 1, [](NodeReader &n) { globalPool(n, PoolKind::Max); });
  t.add("BatchNormalization", 6, batchNorm);
}

} // namespace dlc
