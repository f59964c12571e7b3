// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Conv.h"
#include "Window.h"
#include "dlc/IR/Elementwise.h"
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
Role ConvOp::role() { return Role::Reduction; }
PrecisionNeed ConvOp::precision() { return PrecisionNeed::AccumulateF32; }

LogicalResult ConvOp::shape(ShapeContext &context) {
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
  FailureOr<SmallVector<WindowAxis>> axes = resolveWindows(context, ArrayRef(x).drop_front(2), ArrayRef(w).drop_front(2), getStrides(), getDilations(),
                                                           getPads(), getAutoPad(), /*ceilMode=*/false);
  if (failed(axes))
    return failure();
  SmallVector<DimExpr> dims{x[0], w[0]};
  SmallVector<Attribute> begins;
  for (const WindowAxis &axis : *axes) {
    dims.push_back(axis.count);
    begins.push_back(axis.begin);
  }
  setResolvedPadsAttr(ArrayAttr::get(c, begins));
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr ConvOp::cost() {
  SmallVector<DimExpr> w = dimsOf(getW().getType());
  DimExpr perElement = mulDims(constantDim(getContext(), 2), productOfDims(getContext(), ArrayRef(w).drop_front(1)));
  return mulDims(perElement, productOfDims(getContext(), dimsOf(getResult().getType())));
}

LogicalResult ConvOp::expand(RewriterBase &rewriter) {
  auto type = cast<RankedTensorType>(getResult().getType());
  Value product = ConvOp::create(rewriter, getLoc(), type, getX(), getW(), Value(), getStrides(), getDilations(), getPads(), getAutoPad(), getGroup(),
                                 getResolvedPadsAttr());
  SmallVector<DimExpr> dims(type.getRank(), constantDim(getContext(), 1));
  dims[1] = dimsOf(getBias().getType())[0];
  Value bias = reshapeTo(rewriter, getLoc(), getBias(), tensorType(dims, type.getElementType()));
  rewriter.replaceOpWithNewOp<AddOp>(*this, type, product, bias);
  return success();
}

/// One element is a sum over the channels of its group and the cells of its window. Right for every form of convolution; what is
/// fast is up to backends.
FailureOr<SmallVector<Value>> ConvOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedPads())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  SmallVector<DimExpr> x = dimsOf(context.operandType(0)), w = dimsOf(context.operandType(1));
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

} // namespace dlc
