// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/KernelOps.h"
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

} // namespace dlc
