// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// fuse-elementwise: brings linalg into the form that the passes after it expect (linalg.generic and linalg.fill only; an
// all-parallel op does not read its init) and merges elementwise ops, so that no intermediate needs memory where computing it
// again costs less.

#include "Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

bool isAllParallel(linalg::LinalgOp op) { return op.getNumParallelLoops() == op.getNumLoops(); }

/// outs(%x) whose element the body reads becomes ins(%x) outs(empty).
void moveReadInitsToInputs(linalg::GenericOp op, RewriterBase &rewriter) {
  if (!isAllParallel(op))
    return;
  SmallVector<Value> inputs(op.getInputs()), outputs(op.getOutputs());
  SmallVector<AffineMap> inputMaps, outputMaps;
  for (OpOperand *in : op.getDpsInputOperands())
    inputMaps.push_back(op.getMatchingIndexingMap(in));
  SmallVector<BlockArgument> moved;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    outputMaps.push_back(op.getMatchingIndexingMap(&init));
    if (!op.payloadUsesValueFromOperand(&init))
      continue;
    moved.push_back(op.getMatchingBlockArgument(&init));
    inputs.push_back(init.get());
    inputMaps.push_back(outputMaps.back());
    rewriter.setInsertionPoint(op);
    outputs[init.getOperandNumber() - op.getNumDpsInputs()] =
        tensor::EmptyOp::create(rewriter, op.getLoc(), tensor::getMixedSizes(rewriter, op.getLoc(), init.get()),
                                cast<RankedTensorType>(init.get().getType()).getElementType());
  }
  if (moved.empty())
    return;
  for (auto [output, init] : llvm::zip(outputs, op.getDpsInits()))
    if (output.getType() != init.getType())
      output = tensor::CastOp::create(rewriter, op.getLoc(), init.getType(), output);
  SmallVector<AffineMap> maps = inputMaps;
  llvm::append_range(maps, outputMaps);
  auto generic = linalg::GenericOp::create(rewriter, op.getLoc(), op->getResultTypes(), inputs, outputs, maps,
                                           op.getIteratorTypesArray());
  Block *body = op.getBody();
  unsigned at = op.getNumDpsInputs();
  for (BlockArgument argument : moved)
    argument.replaceAllUsesWith(body->insertArgument(at++, argument.getType(), argument.getLoc()));
  rewriter.inlineRegionBefore(op.getRegion(), generic.getRegion(), generic.getRegion().begin());
  rewriter.replaceOp(op, generic);
}

/// Few and simple operations: done twice they cost less than a trip through memory.
bool isCheap(linalg::GenericOp op) {
  unsigned count = 0;
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (inner.getNumRegions() || isa<math::MathDialect>(inner.getDialect()) || isa<tensor::ExtractOp>(inner))
      return false;
    ++count;
  }
  return count <= 4;
}

bool mayFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer || producer->getBlock() != consumer->getBlock())
    return false;
  // Each element is used by one iteration of the consumer only, or it is cheap to make again.
  AffineMap map = consumer.getMatchingIndexingMap(operand);
  bool once = map.isPermutation();
  if (!isAllParallel(consumer) && !once)
    return false;
  SmallPtrSet<Operation *, 4> users(producer->user_begin(), producer->user_end());
  if (once && users.size() == 1)
    return true;
  if (isCheap(producer))
    return true;
  // A broadcast keeps its producer apart where the producer's result has a size known now and can lie in scratch memory. Where
  // it has not, computing it again is the only way.
  return !cast<RankedTensorType>(operand->get().getType()).hasStaticShape();
}

struct FuseElementwise : PassWrapper<FuseElementwise, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseElementwise)
  StringRef getArgument() const final { return "fuse-elementwise"; }
  StringRef getDescription() const final { return "Merge elementwise ops of a kernel into one"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<linalg::LinalgDialect, tensor::TensorDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      if (isa<linalg::FillOp>(op) || !op.hasPureTensorSemantics())
        continue;
      auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
      if (!generic) {
        rewriter.setInsertionPoint(op);
        auto general = linalg::generalizeNamedOp(rewriter, op);
        if (failed(general))
          continue;
        generic = *general;
      }
      moveReadInitsToInputs(generic, rewriter);
    }
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, mayFuse);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createFuseElementwisePass() { return std::make_unique<FuseElementwise>(); }

} // namespace dlc::cpu
