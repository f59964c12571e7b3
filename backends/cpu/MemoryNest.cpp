// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MemoryNest.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace dlc::cpu {

void MemoryNest::enterMemory() {
  for (BlockArgument argument : func.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      argument.setType(MemRefType::get(type.getShape(), type.getElementType()));
}

void MemoryNest::leaveMemory() {
  ret()->setOperands({});
  for (Operation &old : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
    if (isa<tensor::DimOp>(old) || llvm::any_of(old.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      rewriter.eraseOp(&old);
  func.setType(FunctionType::get(func.getContext(), func.getBody().getArgumentTypes(), {}));
}

OpFoldResult MemoryNest::sizeOf(Value tensor, unsigned d) {
  auto type = cast<ShapedType>(tensor.getType());
  if (!type.isDynamicDim(d))
    return index(type.getDimSize(d));
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    return slice.getMixedSizes()[d];
  return sizeOfArgument(func, cast<BlockArgument>(tensor).getArgNumber(), d);
}

Value MemoryNest::memoryOf(Value tensor) {
  if (isa<BlockArgument>(tensor))
    return tensor;
  Value &known = memories[tensor];
  if (!known) {
    auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>();
    known = memref::SubViewOp::create(rewriter, loc, memoryOf(slice->getOperand(0)), slice.getMixedOffsets(), slice.getMixedSizes(), slice.getMixedStrides());
  }
  return known;
}

void MemoryNest::enterTiles(ArrayRef<int64_t> tiles, ArrayRef<Value> extents) {
  from.assign(extents.size(), zero);
  counts.assign(extents.begin(), extents.end());
  SmallVector<unsigned> cut;
  SmallVector<OpFoldResult> lower, upper, step;
  for (auto [d, tile] : llvm::enumerate(tiles))
    if (tile > 0) {
      cut.push_back(d);
      lower.push_back(index(0));
      upper.push_back(extents[d]);
      step.push_back(index(tile));
    }
  if (cut.empty())
    return;
  auto forall = scf::ForallOp::create(rewriter, loc, lower, upper, step, ValueRange{}, std::nullopt);
  forall->setAttr(kCutAttr, rewriter.getUnitAttr());
  rewriter.setInsertionPointToStart(forall.getBody());
  for (auto [d, iv] : llvm::zip_equal(cut, forall.getInductionVars())) {
    from[d] = iv;
    std::optional<int64_t> extent = getConstantIntValue(extents[d]);
    bool isWhole = tiles[d] == 1 || (extent && *extent % tiles[d] == 0);
    counts[d] = isWhole ? number(tiles[d]) : asValue(smaller(minus(extents[d], iv), index(tiles[d])));
  }
}

Value MemoryNest::load(Value memory, ValueRange where, int64_t lanes, Value mask) {
  if (lanes == 1)
    return memref::LoadOp::create(rewriter, loc, memory, where);
  auto type = VectorType::get(lanes, cast<MemRefType>(memory.getType()).getElementType());
  if (!mask)
    return vector::LoadOp::create(rewriter, loc, type, memory, where);
  Value zeros = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
  return vector::MaskedLoadOp::create(rewriter, loc, type, memory, where, mask, zeros);
}

void MemoryNest::store(Value value, Value memory, ValueRange where, Value mask) {
  if (!isa<VectorType>(value.getType()))
    memref::StoreOp::create(rewriter, loc, value, memory, where);
  else if (mask)
    vector::MaskedStoreOp::create(rewriter, loc, memory, where, mask, value);
  else
    vector::StoreOp::create(rewriter, loc, value, memory, where);
}

Value MemoryNest::multiplyAdd(Value x, Value y, Value sum) {
  if (isa<VectorType>(sum.getType()))
    return vector::FMAOp::create(rewriter, loc, widenLike(rewriter, loc, x, sum), widenLike(rewriter, loc, y, sum), sum);
  return LLVM::FMulAddOp::create(rewriter, loc, x, y, sum);
}

} // namespace dlc::cpu
