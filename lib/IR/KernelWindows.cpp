// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// dlc.kernel_conv, dlc.kernel_winograd and dlc.kernel_window.

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
static FailureOr<TilingResult> tileWindows(OpTy op, OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> strides,
                                           bool cutsChannels, bool cutsFilters) {
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
    OpFoldResult moved = affine::makeComposedFoldedAffineApply(b, loc, begin - offset * strides[i], {OpFoldResult(op.getBegins()[i]), offsets[i + 1]});
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
  return tileWindows(*this, b, offsets, sizes, getStrides(), /*cutsChannels=*/false, /*cutsFilters=*/isOneGroup);
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
// dlc.kernel_winograd
//===----------------------------------------------------------------------===//

/// Of the polynomials of Toom and Cook, with points at 0, pairs of +-p, and infinity. Those of the pairs are exact in binary, and near enough to 1 that the
/// numbers stay of one size: sums lose about twice as much as those of the plain convolution (with +-1 and +-2, seven times).
WinogradMatrices winogradMatrices(int64_t m) {
  assert((m == 2 || m == 4) && "no points for tiles of this size");
  SmallVector<double> points = m == 2 ? SmallVector<double>{0, 1, -1} : SmallVector<double>{0, 0.75, -0.75, 1.5, -1.5};
  size_t size = points.size() + 1;
  auto zeros = [](size_t rows, size_t columns) { return WinogradMatrices::Matrix(rows, SmallVector<double>(columns, 0)); };
  WinogradMatrices result{zeros(m, size), zeros(size, 3), zeros(size, size)};
  // The coefficients of a product of (x - point), the constant one first.
  auto times = [](SmallVector<double> &polynomial, double point) {
    polynomial.push_back(0);
    for (size_t i = polynomial.size(); i-- > 0;)
      polynomial[i] = (i ? polynomial[i - 1] : 0) - point * polynomial[i];
  };
  SmallVector<double> all{1};
  for (auto [j, point] : llvm::enumerate(points)) {
    SmallVector<double> others{1};
    double scale = 1;
    for (auto [k, other] : llvm::enumerate(points))
      if (k != j) {
        times(others, other);
        scale *= point - other;
      }
    llvm::copy(others, result.input[j].begin());
    for (int64_t i = 0; i < m; ++i)
      result.output[i][j] = std::pow(point, i);
    for (int64_t i = 0; i < 3; ++i)
      result.filter[j][i] = std::pow(point, i) / scale;
    times(all, point);
  }
  llvm::copy(all, result.input.back().begin());
  result.output.back().back() = 1;
  result.filter.back().back() = 1;
  return result;
}

LogicalResult KernelWinogradOp::verify() {
  if (failed(verifyWindows(*this, getX(), getInit(), getBegins(), spatialAxes(), spatialAxes())))
    return failure();
  if (getTile() != 2 && getTile() != 4)
    return emitOpError("has tiles of ") << getTile() << " results along an axis; there can be 2 or 4";
  auto w = cast<RankedTensorType>(getW().getType());
  if (w.getRank() != 3 || w.getDimSize(0) != window() * window())
    return emitOpError("w is not [(tile + 2)^2, channels, filters]");
  return success();
}

FailureOr<TilingResult> KernelWinogradOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  return tileWindows(*this, b, offsets, sizes, {1, 1}, /*cutsChannels=*/false, /*cutsFilters=*/true);
}

FailureOr<SmallVector<Value>> KernelWinogradOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  int64_t m = getTile(), a = window();
  auto element = dyn_cast<FloatType>(cast<RankedTensorType>(getInit().getType()).getElementType());
  if (!element)
    return emitOpError("is for floats only"), failure();
  WinogradMatrices matrices = winogradMatrices(m);
  auto constant = [&](const WinogradMatrices::Matrix &matrix) -> Value {
    SmallVector<Attribute> numbers;
    for (const auto &row : matrix)
      for (double number : row)
        numbers.push_back(b.getFloatAttr(element, number));
    auto type = RankedTensorType::get({int64_t(matrix.size()), int64_t(matrix.front().size())}, element);
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, numbers));
  };
  Value input = constant(matrices.input), output = constant(matrices.output);
  auto number = [&](OpBuilder &at, int64_t value) -> Value { return arith::ConstantIndexOp::create(at, loc, value); };
  auto quotient = [&](OpBuilder &at, Value v, int64_t by) -> Value { return arith::DivUIOp::create(at, loc, v, number(at, by)); };
  auto remainder = [&](OpBuilder &at, Value v, int64_t by) -> Value { return arith::RemUIOp::create(at, loc, v, number(at, by)); };
  auto add = [&](OpBuilder &at, Value sum, ArrayRef<Value> factors) -> Value {
    Value product = factors[0];
    for (Value factor : factors.drop_front())
      product = arith::MulFOp::create(at, loc, product, factor);
    return arith::AddFOp::create(at, loc, sum, product);
  };
  SmallVector<Value> sizes = sizesOf(b, loc, getX(), 1, 2), results = sizesOf(b, loc, getInit(), 0, 4);
  OpFoldResult batch = getAsOpFoldResult(results[0]), channels = tensor::getMixedSize(b, loc, getX(), 3), filters = getAsOpFoldResult(results[3]);
  auto tilesOf = [&](Value size) { return affine::makeComposedFoldedAffineApply(b, loc, b.getAffineSymbolExpr(0).ceilDiv(m), {getAsOpFoldResult(size)}); };
  OpFoldResult rows = tilesOf(results[1]), columns = tilesOf(results[2]);
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));

  // Transformed windows [cell, batch, row, column, channel].
  Value windows = tensor::EmptyOp::create(b, loc, {b.getIndexAttr(a * a), batch, rows, columns, channels}, element);
  windows = generate(b, loc, windows, [&](OpBuilder &body, ValueRange at) -> Value {
    Value i = quotient(body, at[0], a), j = remainder(body, at[0], a);
    SmallVector<Value> cells(2, number(body, a));
    auto cell = [&](OpBuilder &inner, ValueRange inWindow, ValueRange place, Value isInside, ValueRange carried) {
      auto sum = scf::IfOp::create(
          inner, loc, isInside,
          [&](OpBuilder &then, Location) {
            Value x = tensor::ExtractOp::create(then, loc, getX(), ValueRange{at[1], place[0], place[1], at[4]});
            Value p = tensor::ExtractOp::create(then, loc, input, ValueRange{i, inWindow[0]});
            Value q = tensor::ExtractOp::create(then, loc, input, ValueRange{j, inWindow[1]});
            scf::YieldOp::create(then, loc, add(then, carried[0], {p, q, x}));
          },
          [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried[0]); });
      return SmallVector<Value>(sum.getResults());
    };
    return loopOverWindow(body, loc, cells, sizes, at.slice(2, 2), {m, m}, {1, 1}, getBegins(), none, cell)[0];
  });

  // Products [cell, batch, row, column, filter].
  Value products = tensor::EmptyOp::create(b, loc, {b.getIndexAttr(a * a), batch, rows, columns, filters}, element);
  products = linalg::FillOp::create(b, loc, none, products).getResult(0);
  auto mapOf = [&](ArrayRef<unsigned> loops) {
    return AffineMap::get(6, 0, llvm::map_to_vector(loops, [&](unsigned i) { return b.getAffineDimExpr(i); }), b.getContext());
  };
  SmallVector<AffineMap> maps{mapOf({0, 1, 2, 3, 5}), mapOf({0, 5, 4}), mapOf({0, 1, 2, 3, 4})};
  SmallVector<utils::IteratorType> iterators(6, utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  products = linalg::GenericOp::create(b, loc, products.getType(), ValueRange{windows, getW()}, products, maps, iterators,
                                       [&](OpBuilder &inner, Location, ValueRange v) { linalg::YieldOp::create(inner, loc, add(inner, v[2], {v[0], v[1]})); })
                 .getResult(0);

  return SmallVector<Value>{generate(b, loc, getInit(), [&](OpBuilder &body, ValueRange at) -> Value {
    Value row = quotient(body, at[1], m), column = quotient(body, at[2], m), y = remainder(body, at[1], m), x = remainder(body, at[2], m);
    auto cells = scf::ForOp::create(body, loc, number(body, 0), number(body, a * a), number(body, 1), none, [&](OpBuilder &own, Location, Value k, ValueRange sum) {
      Value p = tensor::ExtractOp::create(own, loc, output, ValueRange{y, quotient(own, k, a)});
      Value q = tensor::ExtractOp::create(own, loc, output, ValueRange{x, remainder(own, k, a)});
      Value product = tensor::ExtractOp::create(own, loc, products, ValueRange{k, at[0], row, column, at[3]});
      scf::YieldOp::create(own, loc, add(own, sum[0], {p, q, product}));
    });
    return cells.getResult(0);
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
  return tileWindows(*this, b, offsets, sizes, getStrides(), /*cutsChannels=*/true, /*cutsFilters=*/true);
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
