// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// bufferize-kernels: tensors become memory. Operands are read, results are written into the destinations in place, or copied
// there at the end where that is not possible. Whatever still needs memory of its own is a memref.alloc.

#include "Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// dim %argument, c -> the scalar that is it.
struct DimOfArgument : OpRewritePattern<tensor::DimOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::DimOp op, PatternRewriter &rewriter) const final {
    auto argument = dyn_cast<BlockArgument>(op.getSource());
    auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    if (!func || !op.getConstantIndex())
      return failure();
    Value size = sizeOfArgument(func, argument.getArgNumber(), *op.getConstantIndex());
    if (!size)
      return failure();
    rewriter.replaceOp(op, size);
    return success();
  }
};

LogicalResult resolveDims(func::FuncOp func) {
  RewritePatternSet patterns(func.getContext());
  patterns.add<DimOfArgument>(func.getContext());
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  return applyPatternsGreedily(func, std::move(patterns));
}

LogicalResult bufferize(func::FuncOp func) {
  if (llvm::none_of(func.getArgumentTypes(), llvm::IsaPred<TensorType>)) // written on memory from the start
    return success();
  if (failed(resolveDims(func)))
    return failure();
  IRRewriter rewriter(func.getContext());
  auto ret = cast<func::ReturnOp>(func.getBody().front().getTerminator());
  unsigned operands = func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt(), destinations = ret.getNumOperands();

  // Arguments become memory at once, so that the function's own signature is no part of the analysis.
  SmallVector<bool> computedInPlace(destinations);
  rewriter.setInsertionPointToStart(&func.getBody().front());
  for (BlockArgument argument : func.getArguments().take_front(operands + destinations)) {
    auto type = cast<RankedTensorType>(argument.getType());
    argument.setType(MemRefType::get(type.getShape(), type.getElementType()));
    auto tensor = bufferization::ToTensorOp::create(rewriter, func.getLoc(), type, argument, /*restrict=*/true,
                                                    /*writable=*/argument.getArgNumber() >= operands);
    argument.replaceAllUsesExcept(tensor, tensor);
    if (tensor->use_empty())
      tensor->erase();
    else if (argument.getArgNumber() >= operands)
      computedInPlace[argument.getArgNumber() - operands] = true;
  }
  rewriter.setInsertionPoint(ret);
  for (auto [i, value] : llvm::enumerate(ret.getOperands()))
    bufferization::MaterializeInDestinationOp::create(rewriter, ret.getLoc(), TypeRange(), value, func.getArgument(operands + i),
                                                      /*restrict=*/!computedInPlace[i], /*writable=*/true);
  ret->setOperands({});
  func.setType(FunctionType::get(func.getContext(), func.getBody().getArgumentTypes(), {}));

  bufferization::OneShotBufferizationOptions options;
  options.allowUnknownOps = true; // those that have nothing to do with tensors
  options.opFilter.denyOperation<func::FuncOp>();
  options.bufferAlignment = 64;
  // The tiles of a launch share no memory but the destinations; scratch memory is a worker's own.
  options.checkParallelRegions = false;
  options.memCpyFn = [](OpBuilder &b, Location loc, Value from, Value to) {
    if (from != to)
      linalg::CopyOp::create(b, loc, from, to);
    return success();
  };
  bufferization::BufferizationState state;
  if (failed(bufferization::eliminateEmptyTensors(rewriter, func)) || failed(bufferization::runOneShotBufferize(func, options, state)))
    return failure();

  return success();
}

struct BufferizeKernels : PassWrapper<BufferizeKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BufferizeKernels)
  StringRef getArgument() const final { return "bufferize-kernels"; }
  StringRef getDescription() const final { return "Turn the tensors of kernels into memory, results in their destinations"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<bufferization::BufferizationDialect, linalg::LinalgDialect, memref::MemRefDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
  }

  void runOnOperation() final {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (failed(bufferize(func)))
        return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createBufferizeKernelsPass() { return std::make_unique<BufferizeKernels>(); }

} // namespace dlc::cpu
