// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;

#include "dlc/IR/KernelInterfaces.cpp.inc"

namespace dlc {

//===----------------------------------------------------------------------===//
// Line kernels: tiled along all axes but those that they go through as wholes.
//===----------------------------------------------------------------------===//

template <typename OpTy> static SmallVector<utils::IteratorType> lineLoops(OpTy op) {
  SmallVector<utils::IteratorType> types;
  for (int64_t i = 0, e = cast<RankedTensorType>(op.getInit().getType()).getRank(); i != e; ++i)
    types.push_back(op.isWhole(i) ? utils::IteratorType::reduction : utils::IteratorType::parallel);
  return types;
}

template <typename OpTy> static SmallVector<Range> lineDomain(OpTy op, OpBuilder &b) {
  SmallVector<Range> domain;
  for (OpFoldResult size : tensor::getMixedSizes(b, op.getLoc(), op.getInit()))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

/// Which part of `tensor`, an operand or a result, belongs to a tile.
template <typename OpTy>
static void linesOf(OpTy op, OpBuilder &b, Value tensor, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                    SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  resultSizes = tensor::getMixedSizes(b, op.getLoc(), tensor);
  resultOffsets.assign(resultSizes.size(), b.getIndexAttr(0));
  for (size_t i = 0; i != offsets.size(); ++i)
    if (!op.isWhole(i)) {
      resultOffsets[i] = offsets[i];
      resultSizes[i] = sizes[i];
    }
}

template <typename OpTy>
static FailureOr<TilingResult> tileLines(OpTy op, OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> parts;
  SmallVector<Operation *> slices;
  for (Value tensor : op->getOperands()) {
    SmallVector<OpFoldResult> at, size;
    linesOf(op, b, tensor, offsets, sizes, at, size);
    SmallVector<OpFoldResult> strides(at.size(), b.getIndexAttr(1));
    slices.push_back(tensor::ExtractSliceOp::create(b, op.getLoc(), tensor, at, size, strides));
    parts.push_back(slices.back()->getResult(0));
  }
  Operation *tile = mlir::clone(b, op, TypeRange(parts.back().getType()), parts);
  return TilingResult{{tile}, {tile->getResult(0)}, slices};
}

} // namespace dlc

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
// Append: tiled along all axes of what is appended.
//===----------------------------------------------------------------------===//

LogicalResult KernelAppendOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType()), init = cast<RankedTensorType>(getInit().getType());
  if (getResult().getType() != init)
    return emitOpError("gives ") << getResult().getType() << " of init, which is " << init;
  if (x.getRank() != init.getRank() || x.getElementType() != init.getElementType())
    return emitOpError("cannot write ") << x << " into " << init << ": they differ in rank or element type";
  if (getAxis() >= static_cast<uint64_t>(x.getRank()))
    return emitOpError("has axis ") << static_cast<int64_t>(getAxis()) << ", but x has " << x.getRank() << " axes";
  for (int64_t d = 0; d != x.getRank(); ++d)
    if (d != static_cast<int64_t>(getAxis()) && failed(verifyCompatibleDims({x.getDimSize(d), init.getDimSize(d)})))
      return emitOpError("cannot write ") << x << " into " << init << ": they differ on axis " << d;
  return success();
}

SmallVector<utils::IteratorType> KernelAppendOp::getLoopIteratorTypes() {
  return SmallVector<utils::IteratorType>(cast<RankedTensorType>(getX().getType()).getRank(),
                                          utils::IteratorType::parallel);
}

SmallVector<Range> KernelAppendOp::getIterationDomain(OpBuilder &b) {
  SmallVector<Range> domain;
  for (OpFoldResult size : tensor::getMixedSizes(b, getLoc(), getX()))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

LogicalResult KernelAppendOp::getResultTilePosition(OpBuilder &b, unsigned, ArrayRef<OpFoldResult> offsets,
                                                    ArrayRef<OpFoldResult> sizes,
                                                    SmallVector<OpFoldResult> &resultOffsets,
                                                    SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  resultOffsets[getAxis()] =
      affine::makeComposedFoldedAffineApply(b, getLoc(), sum, {offsets[getAxis()], OpFoldResult(getOffset())});
  return success();
}

FailureOr<TilingResult> KernelAppendOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets,
                                                               ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> at, size, strides(offsets.size(), b.getIndexAttr(1));
  if (failed(getResultTilePosition(b, 0, offsets, sizes, at, size)))
    return failure();
  auto x = tensor::ExtractSliceOp::create(b, getLoc(), getX(), offsets, sizes, strides);
  auto init = tensor::ExtractSliceOp::create(b, getLoc(), getInit(), at, size, strides);
  auto copy = linalg::CopyOp::create(b, getLoc(), x.getResult(), init.getResult());
  return TilingResult{{copy}, {copy.getResult(0)}, {x, init}};
}

FailureOr<SmallVector<Value>> KernelAppendOp::decompose(OpBuilder &b) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, getLoc(), getX());
  SmallVector<OpFoldResult> at(sizes.size(), b.getIndexAttr(0)), strides(sizes.size(), b.getIndexAttr(1));
  at[getAxis()] = getOffset();
  auto init = tensor::ExtractSliceOp::create(b, getLoc(), getInit(), at, sizes, strides);
  Value copy = linalg::CopyOp::create(b, getLoc(), getX(), init.getResult()).getResult(0);
  return SmallVector<Value>{tensor::InsertSliceOp::create(b, getLoc(), copy, getInit(), at, sizes, strides)};
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

//===----------------------------------------------------------------------===//
// Loops over elements, for kernel ops that decompose into scf.
//===----------------------------------------------------------------------===//

namespace {
/// Writes loops that carry one tensor which they change in place.
class LoopWriter {
public:
  LoopWriter(OpBuilder &b, Location loc) : b(b), loc(loc), zero(index(0)), one(index(1)) {}

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value size(Value tensor, int64_t axis) { return getValueOrCreateConstantIndexOp(b, loc, tensor::getMixedSize(b, loc, tensor, axis)); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value subtract(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) { return arith::CmpIOp::create(b, loc, predicate, x, y); }
  Value isLess(Value x, Value y) { return compare(arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }
  Value load(Value tensor, ValueRange at) { return tensor::ExtractOp::create(b, loc, tensor, at); }
  Value store(Value element, Value tensor, ValueRange at) { return tensor::InsertOp::create(b, loc, element, tensor, at); }

  /// for (i = low; i < high; ++i) carried = body(i, carried)
  SmallVector<Value> loop(Value low, Value high, ValueRange carried, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(b, loc, low, high, one, carried, [&](OpBuilder &inner, Location, Value i, ValueRange values) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      scf::YieldOp::create(b, loc, body(i, values));
    });
    return llvm::to_vector_of<Value>(loop.getResults());
  }
  Value loop(Value low, Value high, Value tensor, llvm::function_ref<Value(Value, Value)> body) {
    return loop(low, high, ValueRange{tensor}, [&](Value i, ValueRange carried) { return SmallVector<Value>{body(i, carried[0])}; })[0];
  }
  /// condition ? then() : otherwise()
  SmallVector<Value> branch(Value condition, llvm::function_ref<SmallVector<Value>()> then, llvm::function_ref<SmallVector<Value>()> otherwise) {
    auto in = [&](OpBuilder &inner, llvm::function_ref<SmallVector<Value>()> body) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      scf::YieldOp::create(b, loc, body());
    };
    auto branch = scf::IfOp::create(
        b, loc, condition, [&](OpBuilder &inner, Location) { in(inner, then); }, [&](OpBuilder &inner, Location) { in(inner, otherwise); });
    return llvm::to_vector_of<Value>(branch.getResults());
  }
  /// while (condition) carried = body(forwarded), where `before` makes of `carried` the condition and what the body gets, of
  /// these types. The results are what was forwarded last.
  SmallVector<Value> loopWhile(TypeRange types, ValueRange carried,
                               llvm::function_ref<std::pair<Value, SmallVector<Value>>(ValueRange)> before,
                               llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
    auto loop = scf::WhileOp::create(
        b, loc, types, carried,
        [&](OpBuilder &inner, Location, ValueRange values) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
          auto [condition, forwarded] = before(values);
          scf::ConditionOp::create(b, loc, condition, forwarded);
        },
        [&](OpBuilder &inner, Location, ValueRange values) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
          scf::YieldOp::create(b, loc, body(values));
        });
    return llvm::to_vector_of<Value>(loop.getResults());
  }
  /// Loops over some axes of `shape`, which set their entries of `indices`; innermost `tensor = body(tensor)`.
  Value nest(Value shape, ArrayRef<int64_t> axes, SmallVectorImpl<Value> &indices, Value tensor, llvm::function_ref<Value(Value)> body) {
    if (axes.empty())
      return body(tensor);
    return loop(zero, size(shape, axes.front()), tensor, [&](Value i, Value carried) {
      indices[axes.front()] = i;
      return nest(shape, axes.drop_front(), indices, carried, body);
    });
  }

  OpBuilder &b;
  Location loc;
  Value zero, one;
};
} // namespace

/// A heap of indices in a tensor: puts `index` where it belongs on the way down from `root`, whose own entry is free. An entry stands above those
/// that it does not come before.
static Value siftDown(LoopWriter &w, Value heap, Value index, Value root, Value end, llvm::function_ref<Value(Value, Value)> load,
                      llvm::function_ref<Value(Value, Value, Value)> store, llvm::function_ref<Value(Value, Value)> isBefore) {
  Type position = w.b.getIndexType();
  SmallVector<Value> last = w.loopWhile(
      {position, heap.getType(), position}, {root, heap},
      [&](ValueRange carried) -> std::pair<Value, SmallVector<Value>> {
        Value left = w.add(w.add(carried[0], carried[0]), w.one), right = w.add(left, w.one);
        auto choice = w.branch(
            w.isLess(left, end),
            [&] {
              Value child = w.branch(
                  w.isLess(right, end),
                  [&] {
                    Value first = load(carried[1], left), second = load(carried[1], right);
                    Value isRight = isBefore(first, second);
                    return SmallVector<Value>{w.select(isRight, right, left)};
                  },
                  [&] { return SmallVector<Value>{left}; })[0];
              return SmallVector<Value>{isBefore(index, load(carried[1], child)), child};
            },
            [&] { return SmallVector<Value>{arith::ConstantOp::create(w.b, w.loc, w.b.getBoolAttr(false)), left}; });
        return {choice[0], {carried[0], carried[1], choice[1]}};
      },
      [&](ValueRange forwarded) {
        Value child = forwarded[2];
        return SmallVector<Value>{child, store(load(forwarded[1], child), forwarded[1], forwarded[0])};
      });
  return store(index, last[1], last[0]);
}

//===----------------------------------------------------------------------===//
// ArgSort
//===----------------------------------------------------------------------===//

bool KernelArgSortOp::isWhole(int64_t axis) { return getLexicographic() || axis == static_cast<int64_t>(getAxis()); }

namespace {
/// Sorts one line (or all slices): a heap of the first elements found so far, with the last of them in front, in the result.
class HeapSort {
public:
  HeapSort(LoopWriter &w, KernelArgSortOp op, ArrayRef<Value> indices)
      : w(w), keys(op.getX()), axis(op.getAxis()), lexicographic(op.getLexicographic()), indices(indices) {}

  Value run(Value result) {
    Value count = w.size(keys, axis), k = w.size(result, lexicographic ? 0 : axis);
    result = w.loop(w.zero, k, result, [&](Value i, Value heap) { return store(i, heap, i); });
    Value half = arith::DivUIOp::create(w.b, w.loc, k, w.index(2));
    result = w.loop(w.zero, half, result, [&](Value i, Value heap) {
      Value root = w.subtract(w.subtract(half, i), w.one);
      return siftDown(heap, load(heap, root), root, k);
    });
    // Nothing has a place in a heap of none.
    Value first = w.select(w.compare(arith::CmpIPredicate::eq, k, w.zero), count, k);
    result = w.loop(first, count, result, [&](Value i, Value heap) {
      return w.branch(
          isBefore(i, load(heap, w.zero)), [&] { return SmallVector<Value>{siftDown(heap, i, w.zero, k)}; },
          [&] { return SmallVector<Value>{heap}; })[0];
    });
    return w.loop(w.one, k, result, [&](Value i, Value heap) {
      Value end = w.subtract(k, i), moved = load(heap, end);
      return siftDown(store(load(heap, w.zero), heap, end), moved, w.zero, end);
    });
  }

private:
  SmallVector<Value> at(Value position) {
    if (lexicographic)
      return {position};
    SmallVector<Value> result(indices);
    result[axis] = position;
    return result;
  }
  Value load(Value heap, Value position) { return arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(), w.load(heap, at(position))); }
  Value store(Value index, Value heap, Value position) {
    return w.store(arith::IndexCastOp::create(w.b, w.loc, w.b.getI64Type(), index), heap, at(position));
  }

  /// Puts `index` where it belongs on the way down from `root`, whose own entry is free. The last one in order is in front.
  Value siftDown(Value heap, Value index, Value root, Value end) {
    return dlc::siftDown(
        w, heap, index, root, end, [&](Value tensor, Value position) { return load(tensor, position); },
        [&](Value i, Value tensor, Value position) { return store(i, tensor, position); }, [&](Value i, Value j) { return isBefore(i, j); });
  }

  /// Whether element (or slice) i comes before j.
  Value isBefore(Value i, Value j) {
    Value lower = w.compare(arith::CmpIPredicate::ult, i, j);
    SmallVector<Value> x(indices), y(indices);
    x[axis] = i;
    y[axis] = j;
    if (!lexicographic) {
      Value a = w.load(keys, x), b = w.load(keys, y);
      return w.select(w.compare(arith::CmpIPredicate::eq, a, b), lower, w.isLess(a, b));
    }
    SmallVector<int64_t> others;
    for (int64_t d = 0, e = x.size(); d != e; ++d)
      if (d != axis)
        others.push_back(d);
    Value order = compareSlices(others, x, y);
    return w.select(w.compare(arith::CmpIPredicate::eq, order, w.zero), lower, w.isLess(order, w.zero));
  }

  /// -1, 0 or 1, from the first elements that differ.
  Value compareSlices(ArrayRef<int64_t> axes, SmallVectorImpl<Value> &x, SmallVectorImpl<Value> &y) {
    Value minusOne = w.index(-1);
    if (axes.empty()) {
      Value a = w.load(keys, x), b = w.load(keys, y);
      Value differs = w.select(w.isLess(a, b), minusOne, w.one);
      return w.select(w.compare(arith::CmpIPredicate::eq, a, b), w.zero, differs);
    }
    int64_t d = axes.front();
    Value size = w.size(keys, d);
    Type position = w.b.getIndexType();
    return w.loopWhile(
        {position, position}, {w.zero, w.zero},
        [&](ValueRange carried) -> std::pair<Value, SmallVector<Value>> {
          Value isEqual = w.compare(arith::CmpIPredicate::eq, carried[1], w.zero);
          return {w.both(isEqual, w.isLess(carried[0], size)), {carried[0], carried[1]}};
        },
        [&](ValueRange forwarded) {
          x[d] = y[d] = forwarded[0];
          Value next = w.add(forwarded[0], w.one);
          return SmallVector<Value>{next, compareSlices(axes.drop_front(), x, y)};
        })[1];
  }

  LoopWriter &w;
  Value keys;
  int64_t axis;
  bool lexicographic;
  ArrayRef<Value> indices;
};
} // namespace

FailureOr<SmallVector<Value>> KernelArgSortOp::decompose(OpBuilder &b) {
  LoopWriter w(b, getLoc());
  int64_t rank = cast<RankedTensorType>(getX().getType()).getRank();
  SmallVector<Value> indices(rank, w.zero);
  SmallVector<int64_t> lines;
  for (int64_t i = 0; i != rank; ++i)
    if (!isWhole(i))
      lines.push_back(i);
  return SmallVector<Value>{w.nest(getX(), lines, indices, getInit(), [&](Value result) { return HeapSort(w, *this, indices).run(result); })};
}

//===----------------------------------------------------------------------===//
// Compact
//===----------------------------------------------------------------------===//

bool KernelCompactOp::isWhole(int64_t) { return true; }

FailureOr<SmallVector<Value>> KernelCompactOp::decompose(OpBuilder &b) {
  LoopWriter w(b, getLoc());
  Value count = w.size(getInit(), 0);
  Value none = arith::ConstantOp::create(b, getLoc(), b.getZeroAttr(cast<RankedTensorType>(getX().getType()).getElementType()));
  auto result = w.loop(w.zero, w.size(getX(), 0), {w.zero, getInit()}, [&](Value i, ValueRange carried) {
    Value isSet = w.compare(arith::CmpIPredicate::ne, w.load(getX(), i), none);
    return w.branch(
        w.both(isSet, w.isLess(carried[0], count)),
        [&] {
          Value position = arith::IndexCastOp::create(b, getLoc(), b.getI64Type(), i);
          return SmallVector<Value>{w.add(carried[0], w.one), w.store(position, carried[1], carried[0])};
        },
        [&] { return SmallVector<Value>{carried[0], carried[1]}; });
  });
  return SmallVector<Value>{result[1]};
}

//===----------------------------------------------------------------------===//
// Suppress: tiled along batch and classes.
//===----------------------------------------------------------------------===//

LogicalResult KernelSuppressOp::verify() {
  auto type = [](Value v) { return cast<RankedTensorType>(v.getType()); };
  RankedTensorType boxes = type(getBoxes()), keys = type(getKeys()), candidates = type(getCandidates()), init = type(getInit());
  if (getResult().getType() != init)
    return emitOpError("gives ") << getResult().getType() << " of init, which is " << init;
  if (boxes.getRank() != 3 || keys.getRank() != 3 || candidates.getRank() != 3 || init.getRank() != 3)
    return emitOpError("needs boxes [batch, boxes, 4], and keys, candidates and init [batch, classes, boxes]");
  if (!isa<FloatType>(boxes.getElementType()) || type(getThreshold()).getElementType() != boxes.getElementType())
    return emitOpError("needs boxes and a threshold of one float type");
  if (!keys.getElementType().isSignlessInteger() || !candidates.getElementType().isSignlessInteger() || !init.getElementType().isInteger(64) ||
      !type(getLimit()).getElementType().isInteger(64))
    return emitOpError("needs keys and candidates of integers, and a limit and init of i64");
  if (type(getLimit()).getRank() > 1 || type(getThreshold()).getRank() > 1)
    return emitOpError("needs a limit and a threshold of one number");
  if (failed(verifyCompatibleDims({boxes.getDimSize(2), 4})))
    return emitOpError("needs boxes with 4 coordinates, not ") << boxes.getDimSize(2);
  for (int64_t d = 0; d != 3; ++d)
    if (failed(verifyCompatibleDims({keys.getDimSize(d), candidates.getDimSize(d), init.getDimSize(d)})))
      return emitOpError("has keys, candidates and init that differ on axis ") << d;
  if (failed(verifyCompatibleDims({boxes.getDimSize(0), init.getDimSize(0)})) || failed(verifyCompatibleDims({boxes.getDimSize(1), init.getDimSize(2)})))
    return emitOpError("has boxes for another batch, or another number of them, than init");
  return success();
}

SmallVector<utils::IteratorType> KernelSuppressOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::parallel, utils::IteratorType::reduction};
}

SmallVector<Range> KernelSuppressOp::getIterationDomain(OpBuilder &b) {
  SmallVector<Range> domain;
  for (OpFoldResult size : tensor::getMixedSizes(b, getLoc(), getInit()))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

LogicalResult KernelSuppressOp::getResultTilePosition(OpBuilder &b, unsigned, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                                      SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  resultOffsets[2] = b.getIndexAttr(0);
  resultSizes[2] = tensor::getMixedSize(b, getLoc(), getInit(), 2);
  return success();
}

FailureOr<TilingResult> KernelSuppressOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  SmallVector<OpFoldResult> at, size;
  (void)getResultTilePosition(b, 0, offsets, sizes, at, size);
  OpFoldResult zero = b.getIndexAttr(0);
  SmallVector<Operation *> slices;
  auto slice = [&](Value tensor, ArrayRef<OpFoldResult> from, ArrayRef<OpFoldResult> count) -> Value {
    slices.push_back(tensor::ExtractSliceOp::create(b, loc, tensor, from, count, SmallVector<OpFoldResult>(from.size(), b.getIndexAttr(1))));
    return slices.back()->getResult(0);
  };
  SmallVector<OpFoldResult> ofBoxes{size[0], tensor::getMixedSize(b, loc, getBoxes(), 1), tensor::getMixedSize(b, loc, getBoxes(), 2)};
  Value boxes = slice(getBoxes(), {at[0], zero, zero}, ofBoxes), keys = slice(getKeys(), at, size), candidates = slice(getCandidates(), at, size);
  Value init = slice(getInit(), at, size);
  auto tile = KernelSuppressOp::create(b, loc, init.getType(), boxes, keys, candidates, getLimit(), getThreshold(), init, getCentered());
  return TilingResult{{tile}, {tile.getResult()}, slices};
}

namespace {
/// What a box covers: from `low` to `high` along two axes.
struct Extent {
  Value low[2], high[2];
};
} // namespace

FailureOr<SmallVector<Value>> KernelSuppressOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  LoopWriter w(b, loc);
  auto first = [&](Value tensor) {
    return w.load(tensor, SmallVector<Value>(cast<RankedTensorType>(tensor.getType()).getRank(), w.zero));
  };
  Value limit = arith::IndexCastOp::create(b, loc, b.getIndexType(), first(getLimit())), threshold = first(getThreshold());
  Value count = w.size(getInit(), 2), last = w.subtract(count, w.one);
  Value half = arith::ConstantOp::create(b, loc, b.getFloatAttr(threshold.getType(), 0.5));
  auto subtract = [&](Value x, Value y) -> Value { return arith::SubFOp::create(b, loc, x, y); };
  auto multiply = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, loc, x, y); };
  auto isMore = [&](Value x, Value y) -> Value { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y); };
  auto smaller = [&](Value x, Value y) { return w.select(isMore(x, y), y, x); };
  auto larger = [&](Value x, Value y) { return w.select(isMore(x, y), x, y); };

  SmallVector<Value> indices(3, w.zero);
  auto extentOf = [&](Value box) -> Extent {
    Value numbers[4];
    for (int64_t k = 0; k != 4; ++k)
      numbers[k] = w.load(getBoxes(), {indices[0], box, w.index(k)});
    Extent extent;
    for (unsigned axis = 0; axis != 2; ++axis) {
      Value x = numbers[axis], y = numbers[2 + axis];
      if (getCentered()) {
        Value reach = multiply(y, half);
        extent.low[axis] = subtract(x, reach);
        extent.high[axis] = arith::AddFOp::create(b, loc, x, reach);
      } else {
        extent.low[axis] = smaller(x, y);
        extent.high[axis] = larger(x, y);
      }
    }
    return extent;
  };
  auto areaOf = [&](const Extent &extent) { return multiply(subtract(extent.high[0], extent.low[0]), subtract(extent.high[1], extent.low[1])); };
  // False where anything is NaN.
  auto overlaps = [&](const Extent &x, const Extent &y) {
    Extent common;
    for (unsigned axis = 0; axis != 2; ++axis) {
      common.low[axis] = larger(x.low[axis], y.low[axis]);
      common.high[axis] = smaller(x.high[axis], y.high[axis]);
    }
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(threshold.getType()));
    Value shared = areaOf(common), areaX = areaOf(x), areaY = areaOf(y);
    Value both = subtract(arith::AddFOp::create(b, loc, areaX, areaY), shared);
    Value result = isMore(arith::DivFOp::create(b, loc, shared, both), threshold);
    for (Value area : {shared, areaX, areaY, both})
      result = w.both(result, isMore(area, zero));
    for (unsigned axis = 0; axis != 2; ++axis)
      result = w.both(result, isMore(common.high[axis], common.low[axis]));
    return result;
  };

  auto at = [&](Value position) { return SmallVector<Value>{indices[0], indices[1], position}; };
  auto load = [&](Value tensor, Value position) -> Value { return arith::IndexCastOp::create(b, loc, b.getIndexType(), w.load(tensor, at(position))); };
  auto store = [&](Value index, Value tensor, Value position) {
    return w.store(arith::IndexCastOp::create(b, loc, b.getI64Type(), index), tensor, at(position));
  };
  auto isBehind = [&](Value i, Value j) {
    Value x = w.load(getKeys(), at(i)), y = w.load(getKeys(), at(j));
    Value higher = w.compare(arith::CmpIPredicate::ugt, i, j);
    return w.select(w.compare(arith::CmpIPredicate::eq, x, y), higher, w.compare(arith::CmpIPredicate::sgt, x, y));
  };
  auto line = [&](Value result) -> Value {
    // The candidates, as a heap with the first one in front.
    Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(cast<RankedTensorType>(getCandidates().getType()).getElementType()));
    SmallVector<Value> found = w.loop(w.zero, count, {w.zero, result}, [&](Value i, ValueRange carried) {
      return w.branch(
          w.compare(arith::CmpIPredicate::ne, w.load(getCandidates(), at(i)), none),
          [&] { return SmallVector<Value>{w.add(carried[0], w.one), store(i, carried[1], carried[0])}; },
          [&] { return SmallVector<Value>(carried); });
    });
    Value middle = arith::DivUIOp::create(b, loc, found[0], w.index(2));
    Value heap = w.loop(w.zero, middle, found[1], [&](Value i, Value so) {
      Value root = w.subtract(w.subtract(middle, i), w.one);
      return siftDown(w, so, load(so, root), root, found[0], load, store, isBehind);
    });
    // Each takes its turn; those that stay go to the end of the line, which the heap has left, the first one last.
    Type position = b.getIndexType();
    SmallVector<Value> taken = w.loopWhile(
        {position, position, heap.getType()}, {found[0], w.zero, heap},
        [&](ValueRange carried) -> std::pair<Value, SmallVector<Value>> {
          Value isOpen = w.both(w.isLess(w.zero, carried[0]), w.isLess(carried[1], limit));
          return {isOpen, SmallVector<Value>(carried)};
        },
        [&](ValueRange carried) {
          Value rest = w.subtract(carried[0], w.one), box = load(carried[2], w.zero), moved = load(carried[2], rest);
          Value so = siftDown(w, carried[2], moved, w.zero, rest, load, store, isBehind);
          Extent own = extentOf(box);
          Value stays = w.loopWhile(
              {position}, {w.zero},
              [&](ValueRange tested) -> std::pair<Value, SmallVector<Value>> {
                auto more = w.branch(
                    w.isLess(tested[0], carried[1]),
                    [&] {
                      Value other = load(so, w.subtract(last, tested[0]));
                      Value isFree = arith::XOrIOp::create(b, loc, overlaps(own, extentOf(other)), arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
                      return SmallVector<Value>{isFree};
                    },
                    [&] { return SmallVector<Value>{arith::ConstantOp::create(b, loc, b.getBoolAttr(false))}; });
                return {more[0], {tested[0]}};
              },
              [&](ValueRange tested) { return SmallVector<Value>{w.add(tested[0], w.one)}; })[0];
          return w.branch(
              w.compare(arith::CmpIPredicate::eq, stays, carried[1]),
              [&] { return SmallVector<Value>{rest, w.add(carried[1], w.one), store(box, so, w.subtract(last, carried[1]))}; },
              [&] { return SmallVector<Value>{rest, carried[1], so}; });
        });
    // Turned around, and nothing behind them.
    Value turned = w.loop(w.zero, arith::DivUIOp::create(b, loc, count, w.index(2)), taken[2], [&](Value i, Value so) {
      Value mirrored = w.subtract(last, i), front = load(so, i), back = load(so, mirrored);
      return store(front, store(back, so, i), mirrored);
    });
    return w.loop(taken[1], count, turned, [&](Value i, Value so) { return store(w.index(-1), so, i); });
  };
  return SmallVector<Value>{w.nest(getInit(), {0, 1}, indices, getInit(), line)};
}

//===----------------------------------------------------------------------===//
// Triangularize
//===----------------------------------------------------------------------===//

bool KernelTriangularizeOp::isWhole(int64_t axis) { return axis >= cast<RankedTensorType>(getInit().getType()).getRank() - 2; }

FailureOr<SmallVector<Value>> KernelTriangularizeOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  LoopWriter w(b, loc);
  int64_t rank = cast<RankedTensorType>(getX().getType()).getRank();
  Value n = w.size(getX(), rank - 1);
  SmallVector<Value> indices(rank, w.zero);
  auto at = [&](Value row, Value column) {
    indices[rank - 2] = row;
    indices[rank - 1] = column;
    return ArrayRef<Value>(indices);
  };
  auto absolute = [&](Value x) -> Value { return math::AbsFOp::create(b, loc, x); };
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(cast<RankedTensorType>(getX().getType()).getElementType()));

  auto eliminate = [&](Value p, Value matrix) -> Value {
    // The largest element of the column below, or a NaN.
    Value next = w.add(p, w.one);
    Value row = w.loop(next, n, {p, absolute(w.load(matrix, at(p, p)))}, [&](Value i, ValueRange best) {
      Value size = absolute(w.load(matrix, at(i, p)));
      Value isLarger = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, size, best[1]);
      Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, size, size);
      Value isBetter = arith::OrIOp::create(b, loc, isLarger, isNan);
      return SmallVector<Value>{w.select(isBetter, i, best[0]), w.select(isBetter, size, best[1])};
    })[0];
    matrix = w.branch(
        w.compare(arith::CmpIPredicate::ne, row, p),
        [&] {
          return SmallVector<Value>{w.loop(p, n, matrix, [&](Value j, Value m) {
            Value upper = w.load(m, at(p, j)), lower = w.load(m, at(row, j));
            m = w.store(lower, m, at(p, j));
            return w.store(arith::NegFOp::create(b, loc, upper), m, at(row, j));
          })};
        },
        [&] { return SmallVector<Value>{matrix}; })[0];
    Value pivot = w.load(matrix, at(p, p));
    Value isPivot = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, pivot, zero);
    return w.branch(
        isPivot,
        [&] {
          return SmallVector<Value>{w.loop(next, n, matrix, [&](Value i, Value m) {
            Value factor = arith::DivFOp::create(b, loc, w.load(m, at(i, p)), pivot);
            m = w.store(zero, m, at(i, p));
            return w.loop(next, n, m, [&](Value j, Value inner) {
              Value product = arith::MulFOp::create(b, loc, factor, w.load(inner, at(p, j)));
              return w.store(arith::SubFOp::create(b, loc, w.load(inner, at(i, j)), product), inner, at(i, j));
            });
          })};
        },
        [&] { return SmallVector<Value>{matrix}; })[0];
  };
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2)), all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value matrices = w.nest(getX(), all, indices, getInit(), [&](Value m) { return w.store(w.load(getX(), indices), m, indices); });
  matrices = w.nest(getX(), batch, indices, matrices, [&](Value m) { return w.loop(w.zero, n, m, eliminate); });
  return SmallVector<Value>{matrices};
}

} // namespace dlc
