// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/LowerContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

} // namespace dlc
