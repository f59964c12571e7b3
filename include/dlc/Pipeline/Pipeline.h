// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// From an imported program to the bytes of a module, phase by phase.
//
// Several threads of the context's pool work at once where it has them; the result does not depend on that.
// Problems are reported through the context's diagnostics.

#ifndef DLC_PIPELINE_PIPELINE_H
#define DLC_PIPELINE_PIPELINE_H

#include "dlc/Pipeline/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir {
class OpPassManager;
class Pass;
}

namespace dlc {

class BackendRegistry;

/// What the phases work on: one program, and from fuse on one for each variant.
class Program {
public:
  /// A program before fuse, or one variant's (module attribute `plan.target`).
  explicit Program(mlir::OwningOpRef<mlir::ModuleOp> program);
  /// Variants. They are put in the order of their priorities.
  explicit Program(llvm::MutableArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> variants);

  /// The one program, or all variants.
  llvm::SmallVector<mlir::ModuleOp> getPrograms();
  bool isPerVariant() const { return perVariant; }
  /// Makes a clone for each variant.
  void split(llvm::ArrayRef<VariantOptions> variants);
  /// A module that holds the programs, for pass managers.
  mlir::ModuleOp getRoot() { return *root; }

private:
  mlir::OwningOpRef<mlir::ModuleOp> root;
  bool perVariant = false;
};

struct PhaseTime {
  Phase phase;
  double seconds;
};

struct Compiled {
  std::optional<Program> program;     // as the last phase left it
  llvm::SmallVector<char, 0> bytes;   // the module; empty after CompileOptions::stopAfter
  std::vector<PhaseTime> phases;
  unsigned kernels = 0;               // of all variants; known from phase plan on
};

using ImportFunction = llvm::function_ref<mlir::OwningOpRef<mlir::ModuleOp>(mlir::MLIRContext &)>;

/// All phases. `import` returns null after it reported why. All dialects of the context are loaded first.
mlir::FailureOr<Compiled> compile(mlir::MLIRContext &context, ImportFunction import, const BackendRegistry &backends,
                                  const CompileOptions &options);
/// The phases behind `done`, on a program as that phase leaves it.
mlir::FailureOr<Compiled> continueCompile(mlir::MLIRContext &context, Phase done, Program program, const BackendRegistry &backends,
                                          const CompileOptions &options);

/// Puts the passes of a phase on a manager for builtin.module. `backends` must outlive it.
void buildPhase(Phase phase, mlir::OpPassManager &pm, const BackendRegistry &backends, const CompileOptions &options = {});
/// Registers every phase as a pipeline with its verifier (dlc-clean, dlc-precision, ...), and the passes of this folder. To be
/// called once a process; `backends` and `evaluator` must live as long.
void registerPipelines(const BackendRegistry &backends, const ConstantEvaluator &evaluator);

/// Phase codegen: runs the pipeline of the backend that the module's `plan.target` asks for.
std::unique_ptr<mlir::Pass> createGenerateCode(const BackendRegistry &backends, const CodegenOptions &options = {});

} // namespace dlc

#endif
