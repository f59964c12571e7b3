// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The importer: reads what might be an ONNX model, and infers shapes where it is one. What is refused has to be refused with a message.
#include "../../tools/RegisterAll.h"
#include "dlc/Frontends/Onnx.h"
#include "dlc/Pipeline/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  mlir::DialectRegistry registry;
  dlc::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  bool hasError = false;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    hasError |= d.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  auto module = dlc::importOnnx(context, llvm::ArrayRef(reinterpret_cast<const char *>(data), bytes), "model.onnx", /*folder=*/"");
  bool isImported = bool(module);
  if (isImported) {
    mlir::PassManager passes(&context);
    dlc::buildPhase(dlc::Phase::Clean, passes, dlc::allBackends());
    isImported = succeeded(passes.run(*module));
  }
  if (!isImported && !hasError)
    abort(); // refused without a reason
  return 0;
}
