// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Conv.h"
#include "Window.h"
#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/Movement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Conv.cpp.inc"

namespace dlc {

void DlcDialect::addConvOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Conv.cpp.inc"
      >();
}

Form ConvOp::form() { return getBias() ? Form::Expand : Form::Lower; }
Role ConvOp::role() { return getChannelsLast() ? Role::Convolution : Role::Reduction; }
PrecisionNeed ConvOp::precision() { return PrecisionNeed::AccumulateF32; }

/// Windows of x and w, whose spatial axes are `sizes` and `kernel`; the begins that come of it.
template <typename OpTy>
static FailureOr<SmallVector<DimExpr>> countWindows(OpTy op, ShapeContext &context, ArrayRef<DimExpr> sizes, ArrayRef<DimExpr> kernel) {
  FailureOr<SmallVector<WindowAxis>> axes =
      resolveWindows(context, sizes, kernel, op.getStrides(), op.getDilations(), op.getPads(), op.getAutoPad(), /*ceilMode=*/false);
  if (failed(axes))
    return failure();
  SmallVector<DimExpr> counts;
  SmallVector<Attribute> begins;
  for (const WindowAxis &axis : *axes) {
    counts.push_back(axis.count);
    begins.push_back(axis.begin);
  }
  op.setResolvedPadsAttr(ArrayAttr::get(op.getContext(), begins));
  return counts;
}

/// x [batch, spatial..., channels], w [groups, kernel..., channels / group, filters / group].
static LogicalResult shapeChannelsLast(ConvOp op, ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), w = context.dims(1);
  if (x.size() < 3 || w.size() != x.size() + 1 || op.getBias())
    return context.emitError() << "a convolution with channels last needs a batch, spatial axes and channels, a kernel of one axis more, and no bias";
  if (context.elementType(1) != context.elementType(0))
    return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(1);
  unsigned axes = x.size() - 2;
  if (failed(context.requireEqual(w[0], constantDim(op.getContext(), op.getGroup()), "the kernel has {0} groups, not {1}")) ||
      failed(context.requireEqual(x.back(), mulDims(w[0], w[axes + 1]), "the operand has {0} channels, the kernel with its groups {1}")))
    return failure();
  FailureOr<SmallVector<DimExpr>> counts = countWindows(op, context, ArrayRef(x).slice(1, axes), ArrayRef(w).slice(1, axes));
  if (failed(counts))
    return failure();
  SmallVector<DimExpr> dims{x[0]};
  llvm::append_range(dims, *counts);
  dims.push_back(mulDims(w[0], w.back()));
  context.setResult(0, context.elementType(0), dims);
  return success();
}

LogicalResult ConvOp::shape(ShapeContext &context) {
  if (getChannelsLast())
    return shapeChannelsLast(*this, context);
  SmallVector<DimExpr> x = context.dims(0), w = context.dims(1);
  if (x.size() < 3 || w.size() != x.size())
    return context.emitError() << "a convolution needs a batch, channels and a spatial axis, and a kernel of as many axes; dims are " << toString(x) << " and "
                               << toString(w);
  for (unsigned i = 1; i != getNumOperands(); ++i)
    if (context.elementType(i) != context.elementType(0))
      return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(i)
                                 << "; they must be equal (ONNX never converts: insert a Cast)";
  MLIRContext *c = getContext();
  if (getGroup() < 1)
    return context.emitError() << "group is " << getGroup() << "; it must be positive";
  DimExpr group = constantDim(c, getGroup());
  if (failed(context.requireEqual(x[1], mulDims(w[1], group), "the operand has {0} channels, the kernel with its groups {1}")) ||
      failed(context.requireEqual(modDims(w[0], group), constantDim(c, 0), "the filters cannot be divided into " + Twine(getGroup()) + " groups")))
    return failure();
  if (getBias()) {
    if (context.rank(2) != 1)
      return context.emitError() << "the bias must have one axis, not " << context.rank(2);
    if (failed(context.requireEqual(context.dims(2)[0], w[0], "the bias has {0} elements for {1} filters")))
      return failure();
  }
  FailureOr<SmallVector<DimExpr>> counts = countWindows(*this, context, ArrayRef(x).drop_front(2), ArrayRef(w).drop_front(2));
  if (failed(counts))
    return failure();
  SmallVector<DimExpr> dims{x[0], w[0]};
  llvm::append_range(dims, *counts);
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr ConvOp::cost() {
  SmallVector<DimExpr> w = dimsOf(getW().getType());
  ArrayRef<DimExpr> ofFilter = getChannelsLast() ? ArrayRef(w).drop_front().drop_back() : ArrayRef(w).drop_front();
  DimExpr perElement = mulDims(constantDim(getContext(), 2), productOfDims(getContext(), ofFilter));
  return mulDims(perElement, productOfDims(getContext(), dimsOf(getResult().getType())));
}

LogicalResult ConvOp::expand(RewriterBase &rewriter) {
  auto type = cast<RankedTensorType>(getResult().getType());
  Value product = ConvOp::create(rewriter, getLoc(), type, getX(), getW(), Value(), getStrides(), getDilations(), getPads(), getAutoPad(), getGroup(),
                                 /*channelsLast=*/false, getResolvedPadsAttr());
  SmallVector<DimExpr> dims(type.getRank(), constantDim(getContext(), 1));
  dims[1] = dimsOf(getBias().getType())[0];
  Value bias = reshapeTo(rewriter, getLoc(), getBias(), tensorType(dims, type.getElementType()));
  rewriter.replaceOpWithNewOp<AddOp>(*this, type, product, bias);
  return success();
}

static SmallVector<Value> beginsOf(LowerContext &context, ArrayAttr pads) {
  SmallVector<Value> begins;
  for (auto begin : pads.getAsRange<DimExpr>())
    begins.push_back(context.dim(begin));
  return begins;
}

/// x with zeros around it; what a negative number says is taken away.
static Value padded(OpBuilder &b, Location loc, Value x, ArrayRef<DimExpr> front, ArrayRef<DimExpr> behind) {
  auto isNothing = [](DimExpr e) { return e.isConstant(0); };
  if (llvm::all_of(front, isNothing) && llvm::all_of(behind, isNothing))
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<DimExpr> dims = dimsOf(type);
  SmallVector<Attribute> pads(front.begin(), front.end());
  pads.append(behind.begin(), behind.end());
  for (auto [dim, before, after] : llvm::zip_equal(dims, front, behind))
    dim = addDims(addDims(dim, before), after);
  auto listType = RankedTensorType::get({static_cast<int64_t>(pads.size())}, b.getI64Type());
  Value list = FromDimsOp::create(b, loc, listType, b.getArrayAttr(pads));
  Value zero = ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(RankedTensorType::get({}, type.getElementType()))));
  return PadOp::create(b, loc, tensorType(dims, type.getElementType()), x, list, zero, Value(), "constant",
                       b.getArrayAttr(SmallVector<Attribute>(front.begin(), front.end())), b.getArrayAttr(SmallVector<Attribute>(behind.begin(), behind.end())));
}

/// With channels last a kernel op. Else one element is a sum over the channels of its group and the cells of its window: right for every
/// form of convolution, and slow.
FailureOr<SmallVector<Value>> ConvOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedPads())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  SmallVector<DimExpr> x = dimsOf(context.operandType(0)), w = dimsOf(context.operandType(1));
  if (getChannelsLast()) {
    Value init = context.empty(context.resultType());
    return SmallVector<Value>{KernelConvOp::create(context.b(), loc, init.getType(), context.operand(0), context.operand(1), init,
                                                   beginsOf(context, *getResolvedPads()), onesOr(getStrides(), x.size() - 2),
                                                   onesOr(getDilations(), x.size() - 2))};
  }
  SmallVector<Value> sizes, kernel, begins;
  for (auto [size, cells, begin] : llvm::zip_equal(ArrayRef(x).drop_front(2), ArrayRef(w).drop_front(2), getResolvedPads()->getAsRange<DimExpr>())) {
    sizes.push_back(context.dim(size));
    kernel.push_back(context.dim(cells));
    begins.push_back(context.dim(begin));
  }
  Value channels = context.dim(w[1]);
  Value filtersOfGroup = context.dim(floorDivDims(w[0], constantDim(getContext(), getGroup())));
  Type element = context.resultType().getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  OpBuilder &builder = context.b();
  Type accumulator = isHalf ? Type(builder.getF32Type()) : element;
  auto sum = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(accumulator));
    Value first = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
    Value firstChannel = first;
    if (getGroup() > 1)
      firstChannel = arith::MulIOp::create(b, loc, arith::DivUIOp::create(b, loc, indices[1], filtersOfGroup), channels);
    auto overChannels = scf::ForOp::create(b, loc, first, channels, one, zero, [&](OpBuilder &body, Location, Value channel, ValueRange so) {
      Value from = arith::AddIOp::create(body, loc, firstChannel, channel);
      SmallVector<Value> sums = loopOverWindow(
          body, loc, kernel, sizes, indices.drop_front(2), getStrides(), getDilations(), begins, so,
          [&](OpBuilder &inner, ValueRange inWindow, ValueRange at, Value isInside, ValueRange carried) {
            auto term = scf::IfOp::create(
                inner, loc, isInside,
                [&](OpBuilder &then, Location) {
                  SmallVector<Value> place{indices[0], from}, weight{indices[1], channel};
                  llvm::append_range(place, at);
                  llvm::append_range(weight, inWindow);
                  Value a = tensor::ExtractOp::create(then, loc, context.operand(0), place), k = tensor::ExtractOp::create(then, loc, context.operand(1), weight);
                  if (isHalf) {
                    a = arith::ExtFOp::create(then, loc, accumulator, a);
                    k = arith::ExtFOp::create(then, loc, accumulator, k);
                  }
                  Value more = arith::AddFOp::create(then, loc, carried[0], arith::MulFOp::create(then, loc, a, k));
                  scf::YieldOp::create(then, loc, more);
                },
                [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried[0]); });
            return SmallVector<Value>(term.getResults());
          });
      scf::YieldOp::create(body, loc, sums);
    });
    Value total = overChannels.getResult(0);
    return isHalf ? Value(arith::TruncFOp::create(b, loc, element, total)) : total;
  };
  return SmallVector<Value>{context.generate(context.resultType(), sum)};
}

Form DepthwiseConvOp::form() { return Form::Lower; }
Role DepthwiseConvOp::role() { return Role::Window; }
PrecisionNeed DepthwiseConvOp::precision() { return PrecisionNeed::AccumulateF32; }

LogicalResult DepthwiseConvOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), w = context.dims(1);
  if (x.size() < 3 || w.size() != x.size() - 1)
    return context.emitError() << "a depthwise convolution needs a batch, spatial axes and channels, and a kernel without a batch";
  if (context.elementType(1) != context.elementType(0))
    return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(1);
  if (failed(context.requireEqual(x.back(), w.back(), "the operand has {0} channels, the kernel {1}")))
    return failure();
  FailureOr<SmallVector<DimExpr>> counts = countWindows(*this, context, ArrayRef(x).drop_front().drop_back(), ArrayRef(w).drop_back());
  if (failed(counts))
    return failure();
  SmallVector<DimExpr> dims{x[0]};
  llvm::append_range(dims, *counts);
  dims.push_back(x.back());
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr DepthwiseConvOp::cost() {
  SmallVector<DimExpr> w = dimsOf(getW().getType());
  DimExpr perElement = mulDims(constantDim(getContext(), 2), productOfDims(getContext(), ArrayRef(w).drop_back()));
  return mulDims(perElement, productOfDims(getContext(), dimsOf(getResult().getType())));
}

FailureOr<SmallVector<Value>> DepthwiseConvOp::lower(LowerContext &context) {
  Location loc = getLoc();
  OpBuilder &b = context.b();
  if (!getResolvedPads())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  RankedTensorType type = context.resultType(), w = context.operandType(1);
  Type element = type.getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  Type accumulator = isHalf ? Type(b.getF32Type()) : element;
  size_t axes = type.getRank() - 2;
  Value init = context.empty(type);
  auto kernel = KernelWindowOp::create(b, loc, init.getType(), context.operand(0), context.operand(1), init, beginsOf(context, *getResolvedPads()),
                                       ValueRange{}, w.getShape().drop_back(), onesOr(getStrides(), axes), onesOr(getDilations(), axes),
                                       cast<TypedAttr>(b.getZeroAttr(accumulator)), /*average=*/false);
  OpBuilder::InsertionGuard guard(b);
  Block *step = b.createBlock(&kernel.getStep(), {}, {accumulator, element, element}, {loc, loc, loc});
  auto widened = [&](unsigned i) -> Value {
    return isHalf ? Value(arith::ExtFOp::create(b, loc, accumulator, step->getArgument(i))) : step->getArgument(i);
  };
  Value product = arith::MulFOp::create(b, loc, widened(1), widened(2));
  KernelYieldOp::create(b, loc, Value(arith::AddFOp::create(b, loc, step->getArgument(0), product)));
  return SmallVector<Value>{kernel.getResult()};
}

Form WinogradConvOp::form() { return Form::Lower; }
Role WinogradConvOp::role() { return Role::Convolution; }
PrecisionNeed WinogradConvOp::precision() { return PrecisionNeed::AccumulateF32; }

LogicalResult WinogradConvOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), w = context.dims(1);
  int64_t m = getTile();
  if (x.size() != 4 || w.size() != 3 || (m != 2 && m != 4))
    return context.emitError() << "needs a batch, two spatial axes and channels, transformed filters, and tiles of 2 or 4 results";
  if (context.elementType(1) != context.elementType(0))
    return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(1);
  if (failed(context.requireEqual(w[0], constantDim(getContext(), (m + 2) * (m + 2)), "transformed filters have {0} cells, not {1}")) ||
      failed(context.requireEqual(x.back(), w[1], "the operand has {0} channels, the kernel {1}")))
    return failure();
  SmallVector<DimExpr> kernel(2, constantDim(getContext(), 3));
  FailureOr<SmallVector<WindowAxis>> axes = resolveWindows(context, ArrayRef(x).slice(1, 2), kernel, {}, {}, getPads(), getAutoPad(), /*ceilMode=*/false);
  if (failed(axes))
    return failure();
  setResolvedPadsAttr(ArrayAttr::get(getContext(), {(*axes)[0].begin, (*axes)[1].begin}));
  context.setResult(0, context.elementType(0), {x[0], (*axes)[0].count, (*axes)[1].count, w[2]});
  return success();
}

/// What is multiplied: (tile + 2)^2 elements for tile^2 results.
DimExpr WinogradConvOp::cost() {
  int64_t m = getTile();
  DimExpr factors = mulDims(constantDim(getContext(), 2 * (m + 2) * (m + 2)), dimsOf(getW().getType())[1]);
  return mulDims(ceilDivDims(factors, constantDim(getContext(), m * m)), productOfDims(getContext(), dimsOf(getResult().getType())));
}

FailureOr<SmallVector<Value>> WinogradConvOp::lower(LowerContext &context) {
  if (!getResolvedPads())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{KernelWinogradOp::create(context.b(), getLoc(), init.getType(), context.operand(0), context.operand(1), init,
                                                     beginsOf(context, *getResolvedPads()), getTile())};
}

//===----------------------------------------------------------------------===//
// dlc.conv_transpose
//===----------------------------------------------------------------------===//

Form ConvTransposeOp::form() { return Form::Expand; }

LogicalResult ConvTransposeOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), w = context.dims(1);
  MLIRContext *c = getContext();
  if (x.size() < 3 || w.size() != x.size())
    return context.emitError() << "a transposed convolution needs a batch, channels and a spatial axis, and a kernel of as many axes; dims are " << toString(x)
                               << " and " << toString(w);
  for (unsigned i = 1; i != getNumOperands(); ++i)
    if (context.elementType(i) != context.elementType(0))
      return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(i)
                                 << "; they must be equal (ONNX never converts: insert a Cast)";
  if (getGroup() < 1)
    return context.emitError() << "group is " << getGroup() << "; it must be positive";
  size_t axes = x.size() - 2;
  for (auto [name, list, wanted] : {std::tuple("strides", getStrides(), axes), {"dilations", getDilations(), axes}, {"pads", getPads(), 2 * axes},
                                    {"output_padding", getOutputPadding(), axes}})
    if (!list.empty() && list.size() != wanted)
      return context.emitError() << name << " has " << list.size() << " entries; " << axes << " spatial axes need " << wanted;
  SmallVector<int64_t> shape(getOutputShape());
  if (shape.size() == axes + 2) // as some exporters write it
    shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() && shape.size() != axes)
    return context.emitError() << "output_shape has " << shape.size() << " entries; " << axes << " spatial axes need as many";
  StringRef autoPad = getAutoPad();
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!isSame && autoPad != "NOTSET" && autoPad != "VALID")
    return context.emitError() << "auto_pad is '" << autoPad << "'; it can be NOTSET, VALID, SAME_UPPER and SAME_LOWER";
  DimExpr group = constantDim(c, getGroup());
  if (failed(context.requireEqual(x[1], w[0], "the operand has {0} channels, the kernel {1}")) ||
      failed(context.requireEqual(modDims(x[1], group), constantDim(c, 0), "the channels cannot be divided into " + Twine(getGroup()) + " groups")))
    return failure();
  DimExpr filters = mulDims(w[1], group);
  if (getBias() && (context.rank(2) != 1 || failed(context.requireEqual(context.dims(2)[0], filters, "the bias has {0} elements for {1} filters"))))
    return context.rank(2) != 1 ? context.emitError() << "the bias must have one axis, not " << context.rank(2) : failure();
  SmallVector<int64_t> strides = onesOr(getStrides(), axes), dilations = onesOr(getDilations(), axes);
  SmallVector<DimExpr> dims{x[0], filters};
  SmallVector<Attribute> begins, ends;
  for (size_t i = 0; i != axes; ++i) {
    int64_t more = getOutputPadding().empty() ? 0 : getOutputPadding()[i];
    if (strides[i] < 1 || dilations[i] < 1 || more < 0)
      return context.emitError() << "strides and dilations must be positive, and output_padding not negative";
    DimExpr one = constantDim(c, 1), stride = constantDim(c, strides[i]);
    // What all windows cover together, and what is cut off.
    DimExpr span = addDims(mulDims(subDims(w[i + 2], one), constantDim(c, dilations[i])), one);
    DimExpr all = addDims(addDims(mulDims(subDims(x[i + 2], one), stride), span), constantDim(c, more));
    DimExpr begin = constantDim(c, 0), end = begin;
    if (!shape.empty() || isSame) {
      DimExpr wanted = shape.empty() ? mulDims(x[i + 2], stride) : constantDim(c, shape[i]);
      DimExpr total = subDims(all, wanted), half = floorDivDims(total, constantDim(c, 2));
      begin = autoPad == "SAME_UPPER" ? half : subDims(total, half);
      end = subDims(total, begin);
    } else if (autoPad == "NOTSET" && !getPads().empty()) {
      begin = constantDim(c, getPads()[i]);
      end = constantDim(c, getPads()[i + axes]);
    }
    DimExpr size = subDims(subDims(all, begin), end);
    if (!size)
      return context.emitError() << "a size does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
    if (failed(context.require(selectLtDims(size, constantDim(c, 0), constantDim(c, 0), one), size, x[i + 2],
                               "spatial axis " + Twine(i) + " of {1} elements would become {0} long")))
      return failure();
    dims.push_back(size);
    begins.push_back(begin);
    ends.push_back(end);
  }
  setResolvedPadsAttr(ArrayAttr::get(c, begins));
  setResolvedEndsAttr(ArrayAttr::get(c, ends));
  context.setResult(0, context.elementType(0), dims);
  return success();
}

namespace {

/// What transposed convolutions are composed of: ops that move elements.
struct Mover {
  RewriterBase &rewriter;
  Location loc;
  Type element;

  SmallVector<DimExpr> constants(ArrayRef<int64_t> values) const {
    return llvm::map_to_vector(values, [&](int64_t v) { return constantDim(rewriter.getContext(), v); });
  }
  Value transposed(Value v, ArrayRef<int64_t> perm) const {
    SmallVector<DimExpr> from = dimsOf(v.getType()), to;
    for (int64_t axis : perm)
      to.push_back(from[axis]);
    return TransposeOp::create(rewriter, loc, tensorType(to, element), v, rewriter.getDenseI64ArrayAttr(perm));
  }
  Value reshaped(Value v, ArrayRef<DimExpr> dims) const { return reshapeTo(rewriter, loc, v, tensorType(dims, element)); }
  /// The last axes, as many as `sizes` (their sizes), from back to front.
  Value turned(Value v, ArrayRef<int64_t> sizes) const {
    SmallVector<int64_t> starts;
    for (int64_t size : sizes)
      starts.push_back(size - 1);
    SmallVector<int64_t> minusOnes(sizes.size(), -1), least(sizes.size(), INT64_MIN);
    return sliced(v, minusOnes, least, starts, minusOnes, dimsOf(v.getType()));
  }
  /// Every `steps`th of the last axes, whose sizes are known, from `starts` on.
  Value every(Value v, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps) const {
    SmallVector<DimExpr> dims = dimsOf(v.getType());
    for (auto [dim, start, step] : llvm::zip_equal(MutableArrayRef(dims).take_back(starts.size()), starts, steps))
      dim = constants({int64_t(llvm::divideCeil(*dim.getConstant() - start, step))})[0];
    return sliced(v, starts, SmallVector<int64_t>(starts.size(), INT64_MAX), starts, steps, dims);
  }
  /// The last axes with as many zeros more in front and behind; less, where that is negative.
  Value extended(Value v, ArrayRef<DimExpr> front, ArrayRef<DimExpr> rear) const {
    SmallVector<DimExpr> dims = dimsOf(v.getType());
    SmallVector<int64_t> starts, ends;
    size_t first = dims.size() - front.size();
    for (auto [i, before, after] : llvm::enumerate(front, rear)) {
      if (before.getConstant().value_or(1) > 0 || after.getConstant().value_or(1) > 0) {
        SmallVector<DimExpr> all = constants(SmallVector<int64_t>(first, 0)), behind(all);
        llvm::append_range(all, front);
        llvm::append_range(behind, rear);
        return padded(rewriter, loc, v, all, behind);
      }
      starts.push_back(-*before.getConstant());
      ends.push_back(*after.getConstant() ? *after.getConstant() : INT64_MAX);
      dims[first + i] = addDims(dims[first + i], addDims(before, after));
    }
    bool isAll = llvm::all_of(starts, [](int64_t n) { return n == 0; }) && llvm::all_of(ends, [](int64_t n) { return n == INT64_MAX; });
    return isAll ? v : sliced(v, starts, ends, starts, SmallVector<int64_t>(starts.size(), 1), dims);
  }

private:
  /// The last axes from `starts` (`first` from the front) on.
  Value sliced(Value v, ArrayRef<int64_t> starts, ArrayRef<int64_t> ends, ArrayRef<int64_t> first, ArrayRef<int64_t> steps, ArrayRef<DimExpr> dims) const {
    auto integers = [&](ArrayRef<int64_t> values) -> Value { return ConstantOp::create(rewriter, loc, rewriter.getI64TensorAttr(values)); };
    int64_t rank = dims.size(), count = starts.size();
    SmallVector<int64_t> axes(llvm::to_vector(llvm::seq<int64_t>(rank - count, rank)));
    SmallVector<DimExpr> from = constants(SmallVector<int64_t>(rank - count, 0)), by = constants(SmallVector<int64_t>(rank - count, 1));
    llvm::append_range(from, constants(first));
    llvm::append_range(by, constants(steps));
    auto slice = SliceOp::create(rewriter, loc, tensorType(dims, element), v, integers(starts), integers(ends), integers(axes), integers(steps));
    slice.setResolvedStartsAttr(rewriter.getArrayAttr(SmallVector<Attribute>(from.begin(), from.end())));
    slice.setResolvedStepsAttr(rewriter.getArrayAttr(SmallVector<Attribute>(by.begin(), by.end())));
    return slice;
  }
};

} // namespace

/// Filters [channels, filters / group, kernel...] as those of the convolution that a transposed one is: [filters, channels / group, kernel...], turned around.
static Value filtersOfConv(const Mover &m, Value w, int64_t group) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(w.getType()).getShape(), kernel = shape.drop_front(2);
  SmallVector<int64_t> parted{group, shape[0] / group}, joined{group * shape[1], shape[0] / group}, order{0, 2, 1};
  llvm::append_range(parted, shape.drop_front());
  llvm::append_range(joined, kernel);
  llvm::append_range(order, llvm::seq<int64_t>(3, shape.size() + 1));
  return m.turned(m.reshaped(m.transposed(m.reshaped(w, m.constants(parted)), order), m.constants(joined)), kernel);
}

/// Windows that overlap, of an op without dilations. What the results at each place between two strides are made of is a convolution over x with a part of
/// the filters, whose results are then put between each other: y[q * stride + r] = sum over j of x[q - j] * w[j * stride + r]. Where all parts are equally
/// large they are one convolution, with more filters.
static Value expandByPhases(ConvTransposeOp op, const Mover &m, ArrayRef<DimExpr> begins) {
  auto type = cast<RankedTensorType>(op.getResult().getType()), wType = cast<RankedTensorType>(op.getW().getType());
  ArrayRef<int64_t> kernel = wType.getShape().drop_front(2);
  int64_t rank = type.getRank(), axes = rank - 2, group = op.getGroup(), channels = wType.getDimSize(0), filters = wType.getDimSize(1), phases = 1;
  SmallVector<int64_t> strides = onesOr(op.getStrides(), axes), longest, ones(axes, 1);
  SmallVector<DimExpr> x = dimsOf(op.getX().getType()), counts;
  bool isEven = false; // one convolution
  for (auto [d, stride] : llvm::enumerate(strides)) {
    longest.push_back(llvm::divideCeil(kernel[d], stride));
    counts.push_back(addDims(x[d + 2], m.constants({longest[d] - 1})[0]));
    phases *= stride;
    isEven |= kernel[d] < stride;
  }
  isEven |= llvm::all_of(llvm::zip_equal(kernel, strides), [](auto pair) { return std::get<0>(pair) % std::get<1>(pair) == 0; });
  auto convolved = [&](Value w) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(w.getType()).getShape();
    SmallVector<int64_t> pads;
    for (int64_t size : shape.drop_front(2))
      pads.push_back(size - 1);
    SmallVector<DimExpr> begins = m.constants(pads), dims{x[0], m.constants({group * shape[1]})[0]};
    for (int64_t d = 0; d < axes; ++d)
      pads.push_back(longest[d] - 1);
    llvm::append_range(dims, counts);
    return ConvOp::create(m.rewriter, m.loc, tensorType(dims, m.element), op.getX(), filtersOfConv(m, w, group), Value(), ones, ones, pads, "NOTSET", group,
                          /*channelsLast=*/false, m.rewriter.getArrayAttr(SmallVector<Attribute>(begins.begin(), begins.end())));
  };
  // [batch, group, phases, filters / group, counts...] with an axis of phases for each spatial one.
  SmallVector<DimExpr> apart{x[0]};
  llvm::append_range(apart, m.constants({group}));
  llvm::append_range(apart, m.constants(strides));
  llvm::append_range(apart, m.constants({filters}));
  llvm::append_range(apart, counts);
  Value parts;
  if (isEven) {
    SmallVector<DimExpr> behind = m.constants({0, 0});
    SmallVector<int64_t> parted{channels, filters}, order{0}, joined{channels, phases * filters};
    for (int64_t d = 0; d < axes; ++d) {
      llvm::append_range(behind, m.constants({longest[d] * strides[d] - kernel[d]}));
      parted.append({longest[d], strides[d]});
      order.push_back(3 + 2 * d);
      joined.push_back(longest[d]);
    }
    order.push_back(1);
    for (int64_t d = 0; d < axes; ++d)
      order.push_back(2 + 2 * d);
    Value w = padded(m.rewriter, m.loc, op.getW(), m.constants(SmallVector<int64_t>(rank, 0)), behind);
    parts = convolved(m.reshaped(m.transposed(m.reshaped(w, m.constants(parted)), order), m.constants(joined)));
  } else {
    SmallVector<Value> each;
    SmallVector<DimExpr> alone{x[0], m.constants({group})[0], m.constants({1})[0], m.constants({filters})[0]};
    llvm::append_range(alone, counts);
    for (int64_t phase = 0; phase < phases; ++phase) {
      SmallVector<int64_t> starts(axes);
      for (int64_t d = axes, left = phase; d-- > 0; left /= strides[d])
        starts[d] = left % strides[d];
      each.push_back(m.reshaped(convolved(m.every(op.getW(), starts, strides)), alone));
    }
    SmallVector<DimExpr> all(alone);
    all[2] = m.constants({phases})[0];
    parts = ConcatOp::create(m.rewriter, m.loc, tensorType(all, m.element), each, /*axis=*/2);
  }
  SmallVector<int64_t> between{0, 1, 2 + axes};
  SmallVector<DimExpr> whole{x[0], dimsOf(type)[1]}, front, rear;
  for (int64_t d = 0; d < axes; ++d) {
    between.append({3 + axes + d, 2 + d});
    whole.push_back(mulDims(counts[d], m.constants({strides[d]})[0]));
    front.push_back(subDims(m.constants({0})[0], begins[d]));
    rear.push_back(subDims(addDims(dimsOf(type)[d + 2], begins[d]), whole.back()));
  }
  return m.extended(m.reshaped(m.transposed(m.reshaped(parts, apart), between), whole), front, rear);
}

LogicalResult ConvTransposeOp::expand(RewriterBase &rewriter) {
  if (!getResolvedPads() || !getResolvedEnds())
    return emitOpError("its pads are not resolved; run infer-shapes");
  Location loc = getLoc();
  MLIRContext *c = getContext();
  auto type = cast<RankedTensorType>(getResult().getType());
  auto wType = cast<RankedTensorType>(getW().getType());
  Type element = type.getElementType();
  int64_t rank = type.getRank(), axes = rank - 2, group = getGroup(), channels = wType.getDimSize(0), filters = wType.getDimSize(1);
  SmallVector<int64_t> kernel(wType.getShape().drop_front(2)), strides = onesOr(getStrides(), axes), dilations = onesOr(getDilations(), axes);
  if (!wType.hasStaticShape())
    return emitOpError("its kernel has dims that are not known");
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1);
  SmallVector<DimExpr> x = dimsOf(getX().getType()), begins, ends;
  llvm::append_range(begins, getResolvedPads()->getAsRange<DimExpr>());
  llvm::append_range(ends, getResolvedEnds()->getAsRange<DimExpr>());
  Mover m{rewriter, loc, element};
  Value result;
  bool hasNoDilation = llvm::all_of(dilations, [](int64_t d) { return d == 1; });
  bool isApart = group == 1 && kernel == strides && hasNoDilation && llvm::all_of(begins, [&](DimExpr e) { return e == zero; }) &&
                 llvm::all_of(ends, [&](DimExpr e) { return e == zero; });
  if (isApart) {
    // Windows side by side: [batch, spatial..., channels] x [channels, kernel..., filters], and each axis behind its own kernel's.
    SmallVector<int64_t> last{0}, ofW{0};
    llvm::append_range(last, llvm::seq<int64_t>(2, rank));
    last.push_back(1);
    llvm::append_range(ofW, llvm::seq<int64_t>(2, rank));
    ofW.push_back(1);
    int64_t cells = 1;
    for (int64_t k : kernel)
      cells *= k;
    Value a = m.transposed(getX(), last), b = m.reshaped(m.transposed(getW(), ofW), m.constants({channels, cells * filters}));
    SmallVector<DimExpr> product = dimsOf(a.getType()), parted(ArrayRef(product).drop_back()), whole{x[0]};
    product.back() = constantDim(c, cells * filters);
    llvm::append_range(parted, m.constants(kernel));
    parted.push_back(constantDim(c, filters));
    SmallVector<int64_t> order{0};
    for (int64_t d = 0; d < axes; ++d) {
      order.append({1 + d, 1 + axes + d});
      whole.push_back(mulDims(x[d + 2], constantDim(c, kernel[d])));
    }
    order.push_back(2 * axes + 1);
    whole.push_back(constantDim(c, filters));
    Value parts = m.reshaped(MatMulOp::create(rewriter, loc, tensorType(product, element), a, b), parted);
    SmallVector<int64_t> back{0, rank - 1};
    llvm::append_range(back, llvm::seq<int64_t>(1, rank - 1));
    result = m.transposed(m.reshaped(m.transposed(parts, order), whole), back);
  } else if (hasNoDilation && llvm::any_of(strides, [](int64_t s) { return s > 1; })) {
    result = expandByPhases(*this, m, begins);
  } else {
    // Zeros between the elements of x: each gets an axis of its own, which is made longer.
    Value spread = getX();
    SmallVector<DimExpr> dims{x[0], x[1]};
    if (llvm::any_of(strides, [](int64_t s) { return s > 1; })) {
      SmallVector<DimExpr> alone(dims), wide(dims);
      SmallVector<DimExpr> behind(2 * axes + 2, zero);
      for (int64_t d = 0; d < axes; ++d) {
        alone.append({x[d + 2], one});
        wide.append({x[d + 2], constantDim(c, strides[d])});
        behind[3 + 2 * d] = constantDim(c, strides[d] - 1);
        dims.push_back(mulDims(x[d + 2], constantDim(c, strides[d])));
      }
      spread = m.reshaped(padded(rewriter, loc, m.reshaped(spread, alone), SmallVector<DimExpr>(2 * axes + 2, zero), behind), dims);
    } else {
      dims = x;
    }
    // A window reaches as far back as it did forward; what is cut off of the result is so much less in front of x.
    SmallVector<DimExpr> front(2, zero), rear(2, zero);
    SmallVector<Attribute> none;
    for (int64_t d = 0; d < axes; ++d) {
      int64_t more = getOutputPadding().empty() ? 0 : getOutputPadding()[d];
      DimExpr reach = constantDim(c, (kernel[d] - 1) * dilations[d]);
      front.push_back(subDims(reach, begins[d]));
      rear.push_back(subDims(addDims(reach, constantDim(c, more - (strides[d] - 1))), ends[d]));
      none.push_back(zero);
    }
    spread = padded(rewriter, loc, spread, front, rear);
    result = ConvOp::create(rewriter, loc, type, spread, filtersOfConv(m, getW(), group), Value(), SmallVector<int64_t>(axes, 1), dilations, SmallVector<int64_t>(), "NOTSET", group,
                            /*channelsLast=*/false, rewriter.getArrayAttr(none));
  }
  if (getBias()) {
    SmallVector<DimExpr> dims(rank, one);
    dims[1] = dimsOf(getBias().getType())[0];
    result = AddOp::create(rewriter, loc, type, result, m.reshaped(getBias(), dims));
  }
  rewriter.replaceOp(*this, result);
  return success();
}

} // namespace dlc
