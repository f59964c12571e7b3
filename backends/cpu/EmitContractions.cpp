// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// emit-contractions: writes the whole code of kernels that are a sum of products and what is computed from its elements.
//
//   forall tiles of the launch
//     for chunks of the tile's columns
//       for m (a register tile's rows at a time; then as many as are left, by a kernel made for just that number)
//         for n in the chunk (a register tile's columns at a time)
//           acc[rows][vectors] = start
//           for k: b[vectors] = B[k, n..]; for each row: acc[row] += A[row, k] * b
//           the epilogue on the accumulators, and out
//
// The rows' operand stays in the first cache while the chunk's columns go by. Columns lie side by side in one operand, or in panels
// (a constant that pack-constants has packed). Where instead the terms of a sum lie side by side in both operands (A * B^T, a
// matrix times a vector), vectors run along the sum:
//
//           acc[rows][columns] = 0
//           for k (a vector at a time): acc[row][column] += A[row, k..] * B[column, k..]
//           the sums of the accumulators' lanes; then single terms
//
// An epilogue of a few operations works on the accumulators where they are. A long one is written once: sums go to a small buffer,
// and it follows row by row. Each element is summed up in the order of k, whatever the tile: 384 terms at a time, whose totals are added up.

#include "BodyEvaluator.h"
#include "ContractionEmitter.h"
#include "Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Whether the operand, if it varies along the columns, does so in its last dim.
bool isAlongColumns(AffineMap map, unsigned column) {
  for (auto [i, e] : llvm::enumerate(map.getResults()))
    if (e.isFunctionOfDim(column) && i + 1 != map.getNumResults())
      return false;
  return true;
}

std::optional<ContractionKernel> match(func::FuncOp func) {
  ContractionKernel kernel;
  kernel.func = func;
  std::optional<Contraction> c;
  SmallVector<linalg::FillOp> fills;
  llvm::SmallDenseSet<Value> computed; // by the contraction and behind it
  for (Operation &op : func.getBody().front()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (generic.getNumReductionLoops()) {
        if (c || !(c = matchContraction(generic)))
          return std::nullopt;
      } else {
        if (!c || generic.getNumLoops() != cast<RankedTensorType>(c->op.getResult(0).getType()).getRank() ||
            !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isProjectedPermutation(/*allowZeroInResults=*/true); }))
          return std::nullopt;
        for (OpOperand &init : generic.getDpsInitsMutable())
          if (!generic.getMatchingIndexingMap(&init).isIdentity() || generic.payloadUsesValueFromOperand(&init))
            return std::nullopt;
        for (OpOperand *input : generic.getDpsInputOperands()) {
          AffineMap map = generic.getMatchingIndexingMap(input);
          if (computed.contains(input->get()) ? !map.isIdentity() : input->get().getDefiningOp<linalg::LinalgOp>() != nullptr)
            return std::nullopt;
          kernel.vectorEpilogue &= isAlongColumns(map, generic.getNumLoops() - 1);
        }
        kernel.vectorEpilogue &= BodyEvaluator::isElementwise(generic);
        kernel.epilogue.push_back(generic);
      }
      computed.insert(op.getResults().begin(), op.getResults().end());
    } else if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      fills.push_back(fill);
    } else if (isa<linalg::LinalgOp>(op) || op.getNumRegions() || !(isMemoryEffectFree(&op) || op.hasTrait<OpTrait::IsTerminator>())) {
      return std::nullopt;
    }
  }
  if (!c)
    return std::nullopt;
  kernel.c = *c;
  auto fill = c->op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!fill || fills.size() != 1)
    return std::nullopt;
  kernel.start = fill.getInputs()[0];
  kernel.packed = c->op->getOperand(c->wide).getDefiningOp<linalg::UnPackOp>();
  if (c->op->getOperand(c->narrow).getDefiningOp<linalg::UnPackOp>())
    return std::nullopt;
  if (kernel.packed) // columns lie side by side, however they did before
    kernel.c.term = std::nullopt;
  // Dims of the result in the order of the loops.
  auto results = c->map(2).getResults();
  for (unsigned i = 1; i < results.size(); ++i)
    if (cast<AffineDimExpr>(results[i - 1]).getPosition() > cast<AffineDimExpr>(results[i]).getPosition())
      return std::nullopt;
  for (Value value : kernel.ret().getOperands())
    if (!computed.contains(value))
      return std::nullopt;
  return kernel;
}

struct EmitContractions : PassWrapper<EmitContractions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitContractions)
  StringRef getArgument() const final { return "emit-contractions"; }
  StringRef getDescription() const final { return "Write the code of kernels that are sums of products, in register tiles"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect, scf::SCFDialect, tensor::TensorDialect,
                    vector::VectorDialect, LLVM::LLVMDialect>();
  }

  void runOnOperation() final {
    auto target = targetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto kernel = match(func))
        emitContraction(rewriter, *kernel, *target, func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr));
  }
};

} // namespace

std::unique_ptr<Pass> createEmitContractionsPass() { return std::make_unique<EmitContractions>(); }

} // namespace dlc::cpu
