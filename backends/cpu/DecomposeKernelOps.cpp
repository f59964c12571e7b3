// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// decompose-kernel-ops: kernel ops become linalg and scf. After tile-kernels, so that they could be cut as they were.

#include "Passes.h"
#include "dlc/IR/KernelOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

struct DecomposeKernelOps : PassWrapper<DecomposeKernelOps, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DecomposeKernelOps)
  StringRef getArgument() const final { return "decompose-kernel-ops"; }
  StringRef getDescription() const final { return "Rewrite kernel ops into linalg and scf"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<linalg::LinalgDialect, scf::SCFDialect, tensor::TensorDialect, arith::ArithDialect, math::MathDialect>();
  }

  void runOnOperation() final {
    SmallVector<DlcKernelOp> ops;
    getOperation().walk([&](DlcKernelOp op) { ops.push_back(op); });
    for (DlcKernelOp op : ops) {
      OpBuilder builder(op);
      auto values = op.decompose(builder);
      if (failed(values))
        return signalPassFailure();
      op->replaceAllUsesWith(*values);
      op->erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createDecomposeKernelOpsPass() { return std::make_unique<DecomposeKernelOps>(); }

} // namespace dlc::cpu
