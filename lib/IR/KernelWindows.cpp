// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// dlc.kernel_conv and dlc.kernel_window.

#include "Window.h"
#include "dlc/IR/KernelOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace dlc {

SmallVector<Range> domainOfWindows(OpBuilder &b, Location loc, Value init) {
  SmallVector<Range> domain;
  for (OpFoldResult size : tensor::getMixedSizes(b, loc, init))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

static int64_t rankOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getRank(); }

static LogicalResult verifyWindows(Operation *op, Value x, Value init, ValueRange begins, size_t strides, size_t dilations) {
  int64_t rank = strides + 2;
  if (strides < 1 || dilations != strides || begins.size() != strides || rankOf(x) != rank || rankOf(init) != rank)
    return op->emitOpError("needs a batch, channels, and as many spatial axes as strides, dilations and begins");
  return success();
}

/// The op over a tile: x and w cut where the tile is, and windows that begin at the tile's.
template <typename OpTy>
static FailureOr<TilingResult> tileWindows(OpTy op, OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes, bool cutsChannels,
                                           bool cutsFilters) {
  Location loc = op.getLoc();
  unsigned last = offsets.size() - 1;
  SmallVector<Operation *> slices;
  SmallVector<Value> operands(op->getOperands());
  auto cut = [&](Value tensor, ArrayRef<std::pair<unsigned, unsigned>> loopOfDim) -> Value {
    SmallVector<OpFoldResult> at(rankOf(tensor), b.getIndexAttr(0)), size = tensor::getMixedSizes(b, loc, tensor);
    for (auto [dim, loop] : loopOfDim) {
      at[dim] = offsets[loop];
      size[dim] = sizes[loop];
    }
    slices.push_back(tensor::ExtractSliceOp::create(b, loc, tensor, at, size, SmallVector<OpFoldResult>(at.size(), b.getIndexAttr(1))));
    return slices.back()->getResult(0);
  };
  SmallVector<std::pair<unsigned, unsigned>> ofX{{0, 0}}, ofInit;
  if (cutsChannels)
    ofX.push_back({last, last});
  for (unsigned d = 0; d <= last; ++d)
    ofInit.push_back({d, d});
  operands[0] = cut(op.getX(), ofX);
  unsigned next = 1;
  if (Value w = op.getW()) {
    unsigned columns = rankOf(w) - 1;
    operands[next++] = cutsFilters ? cut(w, {{columns, last}}) : w;
  }
  operands[next++] = cut(op.getInit(), ofInit);
  AffineExpr begin = b.getAffineSymbolExpr(0), offset = b.getAffineSymbolExpr(1);
  for (unsigned i = 0; i < op.spatialAxes(); ++i) {
    OpFoldResult moved = affine::makeComposedFoldedAffineApply(b, loc, begin - offset * op.getStrides()[i], {OpFoldResult(op.getBegins()[i]), offsets[i + 1]});
    operands[next++] = getValueOrCreateConstantIndexOp(b, loc, moved);
  }
  Operation *tile = mlir::clone(b, op.getOperation(), TypeRange(operands[op.getInit() == op->getOperand(1) ? 1 : 2].getType()), operands);
  return TilingResult{{tile}, {tile->getResult(0)}, slices};
}

/// A linalg.generic over `init` whose body makes each element from its indices.
static Value generate(OpBuilder &b, Location loc, Value init, llvm::function_ref<Value(OpBuilder &, ValueRange)> element) {
  int64_t rank = rankOf(init);
  SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, init.getType(), ValueRange{}, init, maps, iterators,
                                   [&](OpBuilder &inner, Location, ValueRange) {
                                     SmallVector<Value> indices;
                                     for (int64_t i = 0; i != rank; ++i)
                                       indices.push_back(linalg::IndexOp::create(inner, loc, i));
                                     linalg::YieldOp::create(inner, loc, element(inner, indices));
                                   })
      .getResult(0);
}

static SmallVector<Value> sizesOf(OpBuilder &b, Location loc, Value tensor, unsigned first, unsigned count) {
  SmallVector<Value> sizes;
  for (OpFoldResult size : ArrayRef(tensor::getMixedSizes(b, loc, tensor)).slice(first, count))
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
  return sizes;
}

//===----------------------------------------------------------------------===//
// dlc.kernel_conv
//===----------------------------------------------------------------------===//

LogicalResult KernelConvOp::verify() {
  if (failed(verifyWindows(*this, getX(), getInit(), getBegins(), getStrides().size(), getDilations().size())))
    return failure();
  if (rankOf(getW()) != static_cast<int64_t>(spatialAxes()) + 3)
    return emitOpError("w is not [groups, kernel..., channels / group, filters / group]");
  return success();
}

FailureOr<TilingResult> KernelConvOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  // Filters of several groups are not cut.
  bool isOneGroup = cast<RankedTensorType>(getW().getType()).getDimSize(0) == 1;
  if (!isOneGroup && getConstantIntValue(offsets.back()) != 0)
    return failure();
  return tileWindows(*this, b, offsets, sizes, /*cutsChannels=*/false, /*cutsFilters=*/isOneGroup);
}

FailureOr<SmallVector<Value>> KernelConvOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  unsigned axes = spatialAxes();
  SmallVector<Value> sizes = sizesOf(b, loc, getX(), 1, axes), kernel = sizesOf(b, loc, getW(), 1, axes), ofGroup = sizesOf(b, loc, getW(), axes + 1, 2);
  Type element = cast<RankedTensorType>(getInit().getType()).getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  Type accumulator = isHalf ? Type(b.getF32Type()) : element;
  return SmallVector<Value>{generate(b, loc, getInit(), [&](OpBuilder &body, ValueRange indices) -> Value {
    Value zero = arith::ConstantIndexOp::create(body, loc, 0), one = arith::ConstantIndexOp::create(body, loc, 1);
    Value none = arith::ConstantOp::create(body, loc, body.getZeroAttr(accumulator));
    Value group = arith::DivUIOp::create(body, loc, indices.back(), ofGroup[1]), filter = arith::RemUIOp::create(body, loc, indices.back(), ofGroup[1]);
    Value first = arith::MulIOp::create(body, loc, group, ofGroup[0]);
    auto cell = [&](OpBuilder &inner, ValueRange inWindow, ValueRange at, Value isInside, ValueRange carried) {
      auto sum = scf::IfOp::create(
          inner, loc, isInside,
          [&](OpBuilder &then, Location) {
            auto channels = scf::ForOp::create(then, loc, zero, ofGroup[0], one, carried[0], [&](OpBuilder &own, Location, Value channel, ValueRange so) {
              SmallVector<Value> place{indices[0]}, weight{group};
              llvm::append_range(place, at);
              llvm::append_range(weight, inWindow);
              place.push_back(arith::AddIOp::create(own, loc, first, channel));
              weight.append({channel, filter});
              Value x = tensor::ExtractOp::create(own, loc, getX(), place), w = tensor::ExtractOp::create(own, loc, getW(), weight);
              if (isHalf) {
                x = arith::ExtFOp::create(own, loc, accumulator, x);
                w = arith::ExtFOp::create(own, loc, accumulator, w);
              }
              scf::YieldOp::create(own, loc, Value(arith::AddFOp::create(own, loc, so[0], arith::MulFOp::create(own, loc, x, w))));
            });
            scf::YieldOp::create(then, loc, channels.getResults());
          },
          [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried[0]); });
      return SmallVector<Value>(sum.getResults());
    };
    Value total = loopOverWindow(body, loc, kernel, sizes, indices.drop_front().drop_back(), getStrides(), getDilations(), getBegins(), none, cell)[0];
    return isHalf ? Value(arith::TruncFOp::create(body, loc, element, total)) : total;
  })};
}

//===----------------------------------------------------------------------===//
// dlc.kernel_window
//===----------------------------------------------------------------------===//

LogicalResult KernelWindowOp::verify() {
  if (failed(verifyWindows(*this, getX(), getInit(), getBegins(), getStrides().size(), getDilations().size())))
    return failure();
  if (getKernel().size() != getStrides().size() || (!getEnds().empty() && getEnds().size() != getStrides().size()))
    return emitOpError("needs a window size (and an end, if there are any) for each spatial axis");
  if (getW() && rankOf(getW()) != static_cast<int64_t>(spatialAxes()) + 1)
    return emitOpError("w is not [kernel..., channels]");
  if (getStep().getNumArguments() != (getW() ? 3u : 2u) || getStep().getArgument(0).getType() != getStart().getType())
    return emitOpError("its region's arguments are not what there is so far, a cell, and an element of w if there is one");
  auto yield = dyn_cast<KernelYieldOp>(getStep().front().getTerminator());
  if (!yield || yield.getValue().getType() != getStart().getType())
    return emitOpError("its region does not yield what there is then");
  return success();
}

FailureOr<TilingResult> KernelWindowOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  if (!getEnds().empty() && llvm::any_of(offsets.drop_front().drop_back(), [](OpFoldResult o) { return getConstantIntValue(o) != 0; }))
    return failure(); // ends count from those of x
  return tileWindows(*this, b, offsets, sizes, /*cutsChannels=*/true, /*cutsFilters=*/true);
}

Value cellsOfWindow(OpBuilder &b, Location loc, KernelWindowOp op, unsigned axis, Value window, Value size) {
  return countCells(b, loc, window, size, op.getKernel()[axis], op.getStrides()[axis], op.getDilations()[axis], op.getBegins()[axis],
                    op.getEnds().empty() ? Value() : op.getEnds()[axis]);
}

FailureOr<SmallVector<Value>> KernelWindowOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  unsigned axes = spatialAxes();
  SmallVector<Value> sizes = sizesOf(b, loc, getX(), 1, axes), kernel;
  for (int64_t size : getKernel())
    kernel.push_back(arith::ConstantIndexOp::create(b, loc, size));
  Type element = cast<RankedTensorType>(getInit().getType()).getElementType(), accumulator = getStart().getType();
  return SmallVector<Value>{generate(b, loc, getInit(), [&](OpBuilder &body, ValueRange indices) -> Value {
    ValueRange windows = indices.drop_front().drop_back();
    Value start = arith::ConstantOp::create(body, loc, getStart());
    auto cell = [&](OpBuilder &inner, ValueRange inWindow, ValueRange at, Value isInside, ValueRange carried) {
      auto next = scf::IfOp::create(
          inner, loc, isInside,
          [&](OpBuilder &then, Location) {
            SmallVector<Value> place{indices[0]}, weight(inWindow);
            llvm::append_range(place, at);
            place.push_back(indices.back());
            weight.push_back(indices.back());
            IRMapping map;
            map.map(getStep().getArgument(0), carried[0]);
            map.map(getStep().getArgument(1), tensor::ExtractOp::create(then, loc, getX(), place).getResult());
            if (getW())
              map.map(getStep().getArgument(2), tensor::ExtractOp::create(then, loc, getW(), weight).getResult());
            for (Operation &op : getStep().front().without_terminator())
              then.clone(op, map);
            scf::YieldOp::create(then, loc, map.lookupOrDefault(cast<KernelYieldOp>(getStep().front().getTerminator()).getValue()));
          },
          [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried[0]); });
      return SmallVector<Value>(next.getResults());
    };
    Value result = loopOverWindow(body, loc, kernel, sizes, windows, getStrides(), getDilations(), getBegins(), start, cell)[0];
    if (getAverage()) {
      Value count = arith::ConstantIndexOp::create(body, loc, 1);
      for (unsigned i = 0; i < axes; ++i)
        count = arith::MulIOp::create(body, loc, count, cellsOfWindow(body, loc, *this, i, windows[i], sizes[i]));
      Value divisor = arith::UIToFPOp::create(body, loc, accumulator, arith::IndexCastOp::create(body, loc, body.getI64Type(), count));
      result = arith::DivFOp::create(body, loc, result, divisor);
    }
    return accumulator == element ? result : Value(arith::TruncFOp::create(body, loc, element, result));
  })};
}

} // namespace dlc
