// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;

#include "dlc/IR/KernelInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dlc/IR/KernelOps.cpp.inc"

namespace dlc {

void DlcDialect::addKernelOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/KernelOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Scan: tiled along all axes but its own.
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> KernelScanOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types(cast<RankedTensorType>(getX().getType()).getRank(), utils::IteratorType::parallel);
  types[getAxis()] = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> KernelScanOp::getIterationDomain(OpBuilder &b) {
  SmallVector<Range> domain;
  for (OpFoldResult size : tensor::getMixedSizes(b, getLoc(), getX()))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

FailureOr<TilingResult> KernelScanOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> at(offsets), size(sizes), strides(offsets.size(), b.getIndexAttr(1));
  at[getAxis()] = b.getIndexAttr(0);
  size[getAxis()] = tensor::getMixedSize(b, getLoc(), getX(), getAxis());
  auto x = tensor::ExtractSliceOp::create(b, getLoc(), getX(), at, size, strides);
  auto init = tensor::ExtractSliceOp::create(b, getLoc(), getInit(), at, size, strides);
  auto scan = KernelScanOp::create(b, getLoc(), init.getType(), x, init, getKind(), getAxis(), getExclusive(), getReverse());
  return TilingResult{{scan}, {scan.getResult()}, {x, init}};
}

LogicalResult KernelScanOp::getResultTilePosition(OpBuilder &b, unsigned, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                                  SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  resultOffsets[getAxis()] = b.getIndexAttr(0);
  resultSizes[getAxis()] = tensor::getMixedSize(b, getLoc(), getX(), getAxis());
  return success();
}

static Value combine(OpBuilder &b, Location loc, ReduceKind kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case ReduceKind::Sum:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y)) : Value(arith::AddIOp::create(b, loc, x, y));
  case ReduceKind::Prod:
    return isFloat ? Value(arith::MulFOp::create(b, loc, x, y)) : Value(arith::MulIOp::create(b, loc, x, y));
  case ReduceKind::Max:
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, x, y)) : Value(arith::MaxSIOp::create(b, loc, x, y));
  case ReduceKind::Min:
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, x, y)) : Value(arith::MinSIOp::create(b, loc, x, y));
  }
  llvm_unreachable("all kinds are handled");
}

FailureOr<SmallVector<Value>> KernelScanOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  if (getKind() != ReduceKind::Sum && getKind() != ReduceKind::Prod)
    return emitOpError("only sums and products are scanned"), failure();
  auto type = cast<RankedTensorType>(getX().getType());
  int64_t axis = getAxis();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i != type.getRank(); ++i)
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, tensor::getMixedSize(b, loc, getX(), i)));

  // Loops over all other axes, then one along the axis that carries the running value.
  Type element = type.getElementType();
  Value neutral = arith::ConstantOp::create(b, loc, getKind() == ReduceKind::Sum ? b.getZeroAttr(element) : b.getOneAttr(element));
  SmallVector<Value> indices(type.getRank());
  Value last = arith::SubIOp::create(b, loc, sizes[axis], one);
  auto innermost = [&](OpBuilder &inner, Location, Value tensor) -> Value {
    auto loop = scf::ForOp::create(
        inner, loc, zero, sizes[axis], one, ValueRange{neutral, tensor}, [&](OpBuilder &body, Location, Value i, ValueRange carried) {
          indices[axis] = getReverse() ? Value(arith::SubIOp::create(body, loc, last, i)) : i;
          Value x = tensor::ExtractOp::create(body, loc, getX(), indices);
          Value sum = combine(body, loc, getKind(), carried[0], x);
          Value written = tensor::InsertOp::create(body, loc, getExclusive() ? carried[0] : sum, carried[1], indices);
          scf::YieldOp::create(body, loc, ValueRange{sum, written});
        });
    return loop.getResult(1);
  };
  std::function<Value(OpBuilder &, int64_t, Value)> nest = [&](OpBuilder &outer, int64_t i, Value tensor) -> Value {
    if (i == type.getRank())
      return innermost(outer, loc, tensor);
    if (i == axis)
      return nest(outer, i + 1, tensor);
    auto loop = scf::ForOp::create(outer, loc, zero, sizes[i], one, tensor, [&](OpBuilder &body, Location, Value iv, ValueRange carried) {
      indices[i] = iv;
      scf::YieldOp::create(body, loc, nest(body, i + 1, carried[0]));
    });
    return loop.getResult(0);
  };
  return SmallVector<Value>{nest(b, 0, getInit())};
}

//===----------------------------------------------------------------------===//
// Scatter: tiled along the axes that no index decides on.
//===----------------------------------------------------------------------===//

bool KernelScatterOp::isScattered(int64_t dim) {
  return getAxis() ? dim == static_cast<int64_t>(*getAxis()) : dim < cast<RankedTensorType>(getIndices().getType()).getShape().back();
}

SmallVector<utils::IteratorType> KernelScatterOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types;
  for (int64_t d = 0, rank = cast<RankedTensorType>(getX().getType()).getRank(); d != rank; ++d)
    types.push_back(isScattered(d) ? utils::IteratorType::reduction : utils::IteratorType::parallel);
  return types;
}

SmallVector<Range> KernelScatterOp::getIterationDomain(OpBuilder &b) {
  SmallVector<Range> domain;
  for (OpFoldResult size : tensor::getMixedSizes(b, getLoc(), getX()))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

LogicalResult KernelScatterOp::getResultTilePosition(OpBuilder &b, unsigned, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                                     SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  for (int64_t d = 0, rank = offsets.size(); d != rank; ++d)
    if (isScattered(d)) {
      resultOffsets[d] = b.getIndexAttr(0);
      resultSizes[d] = tensor::getMixedSize(b, getLoc(), getX(), d);
    }
  return success();
}

FailureOr<TilingResult> KernelScatterOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  SmallVector<OpFoldResult> at, size;
  (void)getResultTilePosition(b, 0, offsets, sizes, at, size);
  // The updates that go into the tile. With `axis` there may be fewer of them along an axis than elements of x.
  SmallVector<OpFoldResult> updateSizes = tensor::getMixedSizes(b, loc, getUpdates());
  SmallVector<OpFoldResult> updateAt(updateSizes.size(), b.getIndexAttr(0));
  int64_t rank = offsets.size(), shift = static_cast<int64_t>(updateSizes.size()) - rank;
  AffineExpr offset = b.getAffineSymbolExpr(0), length = b.getAffineSymbolExpr(1), extent = b.getAffineSymbolExpr(2);
  for (int64_t d = 0; d != rank; ++d) {
    if (isScattered(d))
      continue;
    OpFoldResult &begin = updateAt[d + shift], &count = updateSizes[d + shift], all = count;
    begin = at[d];
    count = size[d];
    if (!getAxis() || isEqualConstantIntOrValue(all, tensor::getMixedSize(b, loc, getX(), d)))
      continue;
    begin = affine::makeComposedFoldedAffineMin(b, loc, AffineMap::get(0, 3, {offset, extent}, b.getContext()), {at[d], size[d], all});
    OpFoldResult end = affine::makeComposedFoldedAffineMin(b, loc, AffineMap::get(0, 3, {offset + length, extent}, b.getContext()), {at[d], size[d], all});
    count = affine::makeComposedFoldedAffineApply(b, loc, length - offset, {begin, end});
  }
  auto slice = [&](Value tensor, ArrayRef<OpFoldResult> from, ArrayRef<OpFoldResult> count) {
    return tensor::ExtractSliceOp::create(b, loc, tensor, from, count, SmallVector<OpFoldResult>(from.size(), b.getIndexAttr(1)));
  };
  SmallVector<Operation *> slices{slice(getX(), at, size), slice(getUpdates(), updateAt, updateSizes), slice(getInit(), at, size)};
  Value indices = getIndices();
  if (getAxis())
    indices = slices.emplace_back(slice(indices, updateAt, updateSizes))->getResult(0);
  auto scatter = KernelScatterOp::create(b, loc, slices[2]->getResult(0).getType(), slices[0]->getResult(0), indices, slices[1]->getResult(0),
                                         slices[2]->getResult(0), getAxisAttr(), getKindAttr(), getElementAttr());
  return TilingResult{{scatter}, {scatter.getResult()}, slices};
}

/// x and y, elements in memory, combined in their declared type. Of bools, the sum is true when one is.
static Value combineElements(OpBuilder &b, Location loc, ReduceKind kind, Type element, Value x, Value y) {
  ScalarBuilder scalars(b, loc);
  if (element.isInteger(1)) { // a byte in memory, 0 or 1
    element = IntegerType::get(b.getContext(), 8, IntegerType::Unsigned);
    kind = kind == ReduceKind::Sum ? ReduceKind::Max : kind;
  }
  Scalar left = scalars.wrap(x, element), right = scalars.wrap(y, element);
  switch (kind) {
  case ReduceKind::Sum:
    return (left + right).getValue();
  case ReduceKind::Prod:
    return (left * right).getValue();
  case ReduceKind::Max:
    return max(left, right).getValue();
  case ReduceKind::Min:
    return min(left, right).getValue();
  }
  llvm_unreachable("all kinds are handled");
}

FailureOr<SmallVector<Value>> KernelScatterOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  auto sizesOf = [&](Value tensor) {
    SmallVector<Value> sizes;
    for (OpFoldResult size : tensor::getMixedSizes(b, loc, tensor))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
    return sizes;
  };
  using Body = function_ref<Value(OpBuilder &, ValueRange, Value)>;
  auto loops = [&](ArrayRef<Value> sizes, Value init, Body body) -> Value {
    SmallVector<Value> begin(sizes.size(), zero), step(sizes.size(), one);
    auto nest = scf::buildLoopNest(b, loc, begin, sizes, step, init, [&](OpBuilder &inner, Location, ValueRange at, ValueRange carried) {
      return scf::ValueVector{body(inner, at, carried[0])};
    });
    return nest.results[0];
  };
  SmallVector<Value> sizes = sizesOf(getX());
  Value result = loops(sizes, getInit(), [&](OpBuilder &inner, ValueRange at, Value tensor) -> Value {
    return tensor::InsertOp::create(inner, loc, tensor::ExtractOp::create(inner, loc, getX(), at), tensor, at);
  });
  auto indexType = cast<RankedTensorType>(getIndices().getType());
  result = loops(sizesOf(getUpdates()), result, [&](OpBuilder &inner, ValueRange from, Value tensor) -> Value {
    SmallVector<Value> at;
    Value isInside;
    if (getAxis()) {
      DataIndex index = makeDataIndex(inner, loc, tensor::ExtractOp::create(inner, loc, getIndices(), from), sizes[*getAxis()]);
      at.assign(from.begin(), from.end());
      at[*getAxis()] = index.index;
      isInside = index.isInside;
    } else {
      SmallVector<Value> tuple(from.take_front(indexType.getRank() - 1));
      tuple.push_back({});
      for (int64_t d = 0; d != indexType.getShape().back(); ++d) {
        tuple.back() = arith::ConstantIndexOp::create(inner, loc, d);
        DataIndex index = makeDataIndex(inner, loc, tensor::ExtractOp::create(inner, loc, getIndices(), tuple), sizes[d]);
        at.push_back(index.index);
        isInside = isInside ? arith::AndIOp::create(inner, loc, isInside, index.isInside) : index.isInside;
      }
      llvm::append_range(at, from.drop_front(indexType.getRank() - 1));
    }
    auto branch = scf::IfOp::create(
        inner, loc, isInside,
        [&](OpBuilder &then, Location) {
          Value element = tensor::ExtractOp::create(then, loc, getUpdates(), from);
          if (getKind())
            element = combineElements(then, loc, *getKind(), getElement(), tensor::ExtractOp::create(then, loc, tensor, at), element);
          scf::YieldOp::create(then, loc, tensor::InsertOp::create(then, loc, element, tensor, at).getResult());
        },
        [&](OpBuilder &otherwise, Location) {
          RaiseOp::create(otherwise, loc, DLCRT_KERNEL_INDEX_OUT_OF_RANGE);
          scf::YieldOp::create(otherwise, loc, tensor);
        });
    return branch.getResult(0);
  });
  return SmallVector<Value>{result};
}

} // namespace dlc
