// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/LowerContext.h"
#include "dlc/IR/KernelOps.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace dlc {

OpFoldResult LowerContext::dimOrConstant(DimExpr e) {
  if (std::optional<int64_t> constant = e.getConstant())
    return builder.getIndexAttr(*constant);
  return dim(e);
}

Value LowerContext::empty(RankedTensorType type, Type element) {
  RankedTensorType storage = storageType(type);
  if (element)
    storage = storage.clone(element);
  if (destination && destination.getType() == storage && type == resultType())
    return std::exchange(destination, Value());
  SmallVector<OpFoldResult> sizes;
  for (DimExpr e : storageDims(type))
    sizes.push_back(dimOrConstant(e));
  return tensor::EmptyOp::create(builder, getLoc(), sizes, storage.getElementType());
}

Value LowerContext::filled(RankedTensorType type, TypedAttr value) {
  Value constant = arith::ConstantOp::create(builder, getLoc(), value);
  Value init = empty(type, value.getType());
  return linalg::FillOp::create(builder, getLoc(), constant, init).getResult(0);
}

Value LowerContext::truncated(Value tensor, RankedTensorType type) {
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  Value init = empty(type);
  return linalg::GenericOp::create(builder, getLoc(), init.getType(), tensor, init, maps, iterators,
                                   [&](OpBuilder &inner, Location loc, ValueRange args) {
                                     Value rounded = arith::TruncFOp::create(inner, loc, type.getElementType(), args[0]);
                                     linalg::YieldOp::create(inner, loc, rounded);
                                   })
      .getResult(0);
}

Value LowerContext::generate(RankedTensorType type, llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  int64_t rank = storageType(type).getRank();
  SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  Value init = empty(type);
  auto generic = linalg::GenericOp::create(
      builder, getLoc(), init.getType(), ValueRange{}, init, maps, iterators, [&](OpBuilder &inner, Location loc, ValueRange) {
        SmallVector<Value> indices;
        for (int64_t i = 0; i != rank; ++i)
          indices.push_back(linalg::IndexOp::create(inner, loc, i));
        linalg::YieldOp::create(inner, loc, body(inner, indices));
      });
  return generic.getResult(0);
}

DataIndex makeDataIndex(OpBuilder &b, Location loc, Value raw, Value size) {
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), raw);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, zero);
  index = arith::SelectOp::create(b, loc, isNegative, arith::AddIOp::create(b, loc, index, size), index);
  // Unsigned: what is still negative is too large as well.
  return {index, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, size)};
}

Value extractOrRaise(OpBuilder &b, Location loc, Value isInside, Value tensor, ValueRange at) {
  auto branch = scf::IfOp::create(
      b, loc, isInside,
      [&](OpBuilder &then, Location) { scf::YieldOp::create(then, loc, tensor::ExtractOp::create(then, loc, tensor, at).getResult()); },
      [&](OpBuilder &otherwise, Location) {
        RaiseOp::create(otherwise, loc, DLCRT_KERNEL_INDEX_OUT_OF_RANGE);
        TypedAttr zero = otherwise.getZeroAttr(cast<RankedTensorType>(tensor.getType()).getElementType());
        scf::YieldOp::create(otherwise, loc, arith::ConstantOp::create(otherwise, loc, zero).getResult());
      });
  return branch.getResult(0);
}

} // namespace dlc
