// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// One use of the compiler: its threads, its context, its diagnostics; and the flags that say what to compile and how.

#ifndef DLC_TOOLS_DLC_SESSION_H
#define DLC_TOOLS_DLC_SESSION_H

#include "CommandLine.h"
#include "dlc/Frontends/Onnx.h"
#include "dlc/Pipeline/Pipeline.h"
#include "dlc/Support/Diagnostics.h"
#include "dlc/Target/Target.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/ThreadPool.h"

namespace dlc {

class Session {
public:
  /// `subject`: how messages call the model.
  Session(unsigned jobs, llvm::StringRef subject);
  ~Session();

  mlir::MLIRContext &getContext() { return *context; }
  Diagnostics &getDiagnostics() { return *diagnostics; }

  /// Prints what went wrong. A failure of which nobody said why is a fault of dlc.
  int fail(const Invocation &invocation);

private:
  std::string subject;
  std::unique_ptr<llvm::DefaultThreadPool> pool; // null: one thread
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<Diagnostics> diagnostics;
};

/// Adds what tells the user how far it is, and the crash report where it was, to the options.
class Progress {
public:
  Progress(const Invocation &invocation, CompileOptions &options, bool timing);
  ~Progress();

private:
  Streams io;
  mlir::DefaultTimingManager timer;
  mlir::TimingScope root, phase;
  bool drawn = false;
};

/// --jobs, as many as this process may use by default.
llvm::Expected<unsigned> jobsOf(const Invocation &invocation);
/// --dim and --shape.
llvm::Expected<OnnxImportOptions> importOptionsOf(const Invocation &invocation);
/// --state.
llvm::Expected<std::string> stateOf(const Invocation &invocation);
/// A model, and the name of the function that it becomes.
struct ModelFile {
  std::string path, function;
};
/// What a command line of compile names: files, and those of --function NAME=FILE.
llvm::Expected<std::vector<ModelFile>> modelsOf(const Invocation &invocation);
/// All models in one module, a function each. --dim and --shape say something about those that have such a dim or
/// input.
mlir::OwningOpRef<mlir::ModuleOp> importModels(mlir::MLIRContext &context, llvm::ArrayRef<ModelFile> models,
                                               const OnnxImportOptions &options);

/// --target, each once.
llvm::Expected<std::vector<Target>> targetsOf(const Invocation &invocation);
/// The one of this machine's architecture that any such machine can run.
llvm::Expected<Target> baselineTarget();
/// x86-64-v2 and this machine.
llvm::Expected<std::vector<Target>> defaultTargets();
/// In the module's order: what needs more of a machine comes later and wins.
std::vector<VariantOptions> variantsFor(std::vector<Target> targets);

/// File name without folders.
std::string subjectOf(llvm::StringRef path);

} // namespace dlc

#endif
