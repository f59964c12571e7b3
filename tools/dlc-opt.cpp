// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Runs passes on MLIR text. `--dlc-weights FILE` reads the weights that the text names.

#include "RegisterAll.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Pipeline/WeightsFile.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

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
  return mlir::failed(mlir::MlirOptMain(argc, argv, input, output, registry));
}
