// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Runs passes on MLIR text. `--dlc-weights FILE` reads the weights that the text names.

#include "RegisterAll.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Pipeline/WeightsFile.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

static llvm::cl::opt<std::string> weightsFile("dlc-weights", llvm::cl::desc("File with the weights that the text names"),
                                              llvm::cl::value_desc("file"));

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dlc::registerAllDialects(registry);
  dlc::registerAllPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "dlc's passes\n", registry);
  if (!weightsFile.empty()) {
    // The context is made by the main below; the dialect is where its weights live.
    registry.addExtension(+[](mlir::MLIRContext *, dlc::DlcDialect *dialect) {
      if (llvm::Error failed = dlc::readWeightsFile(weightsFile, dialect->getWeights())) {
        llvm::errs() << "error: " << llvm::toString(std::move(failed)) << '\n';
        exit(1);
      }
    });
  }
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::failed(mlir::MlirOptMain(argc, argv, input, output, registry));
  // Whoever links code in this process (fold-constants, generate-code) resets the options of the command line, the passes among them:
  // further parts of a split input get those of the first.
  std::string passes; // as text: a pipeline belongs to one context
  mlir::MlirOptMainConfig given = config;
  config.setPassPipelineSetupFn([&](mlir::PassManager &pm) {
    if (passes.empty()) {
      if (mlir::failed(given.setupPassPipeline(pm)))
        return mlir::failure();
      llvm::raw_string_ostream os(passes);
      pm.printAsTextualPipeline(os);
      return mlir::success();
    }
    mlir::FailureOr<mlir::OpPassManager> again = mlir::parsePassPipeline(passes);
    if (mlir::succeeded(again))
      static_cast<mlir::OpPassManager &>(pm) = std::move(*again);
    return mlir::success(mlir::succeeded(again));
  });
  std::string error;
  auto file = mlir::openInputFile(input, &error);
  auto to = file ? mlir::openOutputFile(output, &error) : nullptr;
  if (!to) {
    llvm::errs() << error << '\n';
    return 1;
  }
  if (mlir::failed(mlir::MlirOptMain(to->os(), std::move(file), registry, config)))
    return 1;
  to->keep();
  return 0;
}
