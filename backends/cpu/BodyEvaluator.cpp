// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BodyEvaluator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dlc::cpu {

bool BodyEvaluator::isElementwise(Block &body) {
  return llvm::all_of(body.without_terminator(), [](Operation &inner) {
    return inner.getNumResults() == 1 && inner.hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(&inner) &&
           inner.getResult(0).getType().isIntOrFloat();
  });
}

void BodyEvaluator::run(ArrayRef<Operation *> left) {
  for (Operation &inner : body.without_terminator())
    if (!llvm::is_contained(left, &inner))
      map.map(inner.getResult(0), apply(inner));
}

Value BodyEvaluator::apply(Operation &inner) {
  SmallVector<Value> operands;
  Value wide;
  for (Value operand : inner.getOperands()) {
    operands.push_back(lookup(operand));
    if (isa<VectorType>(operands.back().getType()))
      wide = operands.back();
  }
  Type type = inner.getResult(0).getType();
  if (wide) {
    for (Value &operand : operands)
      operand = widenLike(builder, inner.getLoc(), operand, wide);
    type = VectorType::get(cast<VectorType>(wide.getType()).getShape(), type);
  }
  return builder.create(inner.getLoc(), inner.getName().getIdentifier(), operands, type, inner.getAttrs())->getResult(0);
}

Value widen(OpBuilder &b, Location loc, Value scalar, int64_t lanes) {
  return lanes == 1 ? scalar : Value(vector::BroadcastOp::create(b, loc, VectorType::get(lanes, scalar.getType()), scalar));
}

Value widenLike(OpBuilder &b, Location loc, Value value, Value model) {
  auto type = dyn_cast<VectorType>(model.getType());
  return type && !isa<VectorType>(value.getType()) ? widen(b, loc, value, type.getDimSize(0)) : value;
}

Value combineLanes(OpBuilder &b, Location loc, Value lanes, function_ref<Value(Value, Value)> combine) {
  for (int64_t half = cast<VectorType>(lanes.getType()).getDimSize(0) / 2; half >= 1; half /= 2)
    lanes = combine(vector::ExtractStridedSliceOp::create(b, loc, lanes, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{half}, ArrayRef<int64_t>{1}),
                    vector::ExtractStridedSliceOp::create(b, loc, lanes, ArrayRef<int64_t>{half}, ArrayRef<int64_t>{half}, ArrayRef<int64_t>{1}));
  return vector::ExtractOp::create(b, loc, lanes, ArrayRef<int64_t>{0});
}

Value readLanes(OpBuilder &b, Location loc, Value tensor, ValueRange indices, int64_t lanes) {
  if (lanes == 1)
    return tensor::ExtractOp::create(b, loc, tensor, indices);
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value padding = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  return vector::TransferReadOp::create(b, loc, VectorType::get(lanes, element), tensor, indices, padding, ArrayRef<bool>{true});
}

Value readMasked(OpBuilder &b, Location loc, Value tensor, ValueRange indices, int64_t lanes, Value mask) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value padding = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  AffineMap last = AffineMap::getMinorIdentityMap(indices.size(), 1, b.getContext());
  return vector::TransferReadOp::create(b, loc, VectorType::get(lanes, element), tensor, indices, AffineMapAttr::get(last), padding, mask,
                                        b.getBoolArrayAttr({true}));
}

Value writeLanes(OpBuilder &b, Location loc, Value value, Value tensor, ValueRange indices, int64_t lanes, Value mask) {
  if (lanes == 1)
    return tensor::InsertOp::create(b, loc, value, tensor, indices);
  AffineMap last = AffineMap::getMinorIdentityMap(indices.size(), 1, b.getContext());
  return vector::TransferWriteOp::create(b, loc, value, tensor, indices, AffineMapAttr::get(last), mask, b.getBoolArrayAttr({true})).getResult();
}

Value maskOf(OpBuilder &b, Location loc, Value count, int64_t lanes) {
  return vector::CreateMaskOp::create(b, loc, VectorType::get(lanes, b.getI1Type()), count);
}

SmallVector<Value> evaluate(OpBuilder &b, linalg::GenericOp op, ArrayRef<Value> arguments, function_ref<Value(unsigned)> index,
                            SmallVectorImpl<Operation *> *cloned) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  if (BodyEvaluator::isElementwise(op)) {
    BodyEvaluator body(b, op);
    for (auto [i, argument] : llvm::enumerate(arguments))
      body.setArgument(i, argument);
    body.run();
    return llvm::map_to_vector(yield.getOperands(), [&](Value v) { return body.lookup(v); });
  }
  IRMapping map;
  map.map(op.getBody()->getArguments().take_front(arguments.size()), arguments);
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto own = dyn_cast<linalg::IndexOp>(inner)) {
      map.map(own.getResult(), index(own.getDim()));
      continue;
    }
    Operation *clone = b.clone(inner, map);
    if (cloned)
      cloned->push_back(clone);
  }
  return llvm::map_to_vector(yield.getOperands(), [&](Value v) { return map.lookupOrDefault(v); });
}

} // namespace dlc::cpu
