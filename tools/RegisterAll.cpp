// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RegisterAll.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Pipeline/Pipeline.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Target/BackendRegistry.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace dlc {

const BackendRegistry &allBackends() {
  static const BackendRegistry registry = [] {
    BackendRegistry backends;
    backends.add(createCpuBackend());
    return backends;
  }();
  return registry;
}

void registerAllDialects(DialectRegistry &registry) {
  registry.insert<DlcDialect, plan::PlanDialect, affine::AffineDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                  math::MathDialect, scf::SCFDialect, tensor::TensorDialect>();
  for (const std::unique_ptr<Backend> &backend : allBackends().all())
    backend->registerDialects(registry);
}

void registerAllPasses() {
  registerTransformsPasses();
  registerLoweringPasses();
  registerPass([] { return createFoldConstants(constantEvaluator()); });
  registerPass([] { return createSelectSchedules(allBackends()); });
  registerPass([] { return createPackConstants(allBackends()); });
  registerPipelines(allBackends(), constantEvaluator());
  for (const std::unique_ptr<Backend> &backend : allBackends().all())
    backend->registerPasses();
  mlir::registerTransformsPasses(); // canonicalize, cse, ...
}

} // namespace dlc
