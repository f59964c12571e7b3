// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Between files and MLIR: --import-onnx (a model to dlc ops), --dlcm-to-plan (a module to the plans it runs).

#include "RegisterAll.h"
#include "dlc/Frontends/Onnx.h"
#include "dlc/Plan/Serialize.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

static llvm::ArrayRef<char> bytesOf(const llvm::SourceMgr &sources) {
  llvm::StringRef buffer = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  return {buffer.data(), buffer.size()};
}

int main(int argc, char **argv) {
  auto withDialects = [](DialectRegistry &registry) { dlc::registerAllDialects(registry); };
  TranslateToMLIRRegistration importOnnx(
      "import-onnx", "ONNX model to dlc ops (no external data: use `dlc compile --stop-after import` for those)",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
        llvm::StringRef name = sources.getMemoryBuffer(sources.getMainFileID())->getBufferIdentifier();
        return dlc::importOnnx(*context, bytesOf(sources), name, /*folder=*/"").release().getOperation();
      },
      withDialects);
  TranslateToMLIRRegistration readModule(
      "dlcm-to-plan", "module to the plans of its variants, in one module",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
        auto variants = dlc::readModule(*context, bytesOf(sources));
        if (!variants) {
          emitError(UnknownLoc::get(context)) << llvm::toString(variants.takeError());
          return nullptr;
        }
        OwningOpRef<ModuleOp> root = ModuleOp::create(UnknownLoc::get(context));
        for (OwningOpRef<ModuleOp> &variant : *variants)
          root->push_back(variant.release());
        return root.release().getOperation();
      },
      withDialects);
  return failed(mlirTranslateMain(argc, argv, "dlc's translations"));
}
