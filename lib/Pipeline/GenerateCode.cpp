// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Pipeline/Pipeline.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Support/OutputFile.h"
#include "dlc/Target/BackendRegistry.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace dlc {

namespace {

class GenerateCode : public PassWrapper<GenerateCode, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GenerateCode)

  GenerateCode(const BackendRegistry &backends, const CodegenOptions &options) : backends(&backends), codegen(options) {}

  StringRef getArgument() const override { return "generate-code"; }
  StringRef getDescription() const override { return "Runs the kernel pipeline of the backend for the module's plan.target"; }
  /// Which backend it will be is known only when it runs, and then no dialect can be loaded any more.
  void getDependentDialects(DialectRegistry &registry) const override {
    for (const std::unique_ptr<Backend> &backend : backends->all())
      backend->registerDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto name = module->getAttrOfType<StringAttr>(plan::kTargetAttr);
    if (!name) {
      module.emitError("the module has no ") << plan::kTargetAttr;
      return signalPassFailure();
    }
    llvm::Expected<Target> target = parseTarget(name.getValue());
    if (!target) {
      module.emitError(llvm::toString(target.takeError()));
      return signalPassFailure();
    }
    const Backend *backend = backends->find(target->kind);
    if (!backend) {
      module.emitError("this build has no backend for ") << name.getValue();
      return signalPassFailure();
    }
    BackendOptions options;
    options.jobs = codegen.jobs;
    if (!codegen.dumpDir.empty()) {
      llvm::SmallString<256> folder(codegen.dumpDir);
      llvm::sys::path::append(folder, name.getValue());
      std::replace(folder.begin() + codegen.dumpDir.size(), folder.end(), ':', '-');
      if (llvm::Error error = makeFolder(folder)) {
        module.emitError(llvm::toString(std::move(error)));
        return signalPassFailure();
      }
      options.dumpDir = folder.str().str();
    }
    OpPassManager pipeline(ModuleOp::getOperationName());
    backend->buildKernelPipeline(pipeline, *target, options);
    if (failed(runPipeline(pipeline, module)))
      signalPassFailure();
  }

private:
  const BackendRegistry *backends;
  CodegenOptions codegen;
};

} // namespace

std::unique_ptr<Pass> createGenerateCode(const BackendRegistry &backends, const CodegenOptions &options) {
  return std::make_unique<GenerateCode>(backends, options);
}

} // namespace dlc
