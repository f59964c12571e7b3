// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The phases of a compilation and what can be chosen about them: plain structs, made once by the tool and never changed.
// (What can be said about a model's dimensions belongs to the import: OnnxImportOptions.)

#ifndef DLC_PIPELINE_OPTIONS_H
#define DLC_PIPELINE_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class PassManager;
}

namespace dlc {

class ConstantEvaluator;

/// In the order in which they run. From Fuse on, once for each variant.
enum class Phase { Import, Clean, Precision, Fuse, Plan, Schedule, Codegen, Finish };
inline constexpr unsigned kPhaseCount = 8;

/// "import", "clean", ...
llvm::StringRef phaseName(Phase phase);
/// The error lists the phases and names the nearest.
llvm::Expected<Phase> parsePhase(llvm::StringRef name);
inline bool isPerVariant(Phase phase) { return phase >= Phase::Fuse; }

enum class Precision { F32 };
/// The error says which are there.
llvm::Expected<Precision> parsePrecision(llvm::StringRef name);

struct PrecisionOptions {
  Precision precision = Precision::F32;
};

/// One compilation for one target, in the one module.
struct VariantOptions {
  std::string target;   // resolved: "cpu:x86-64-v2"
  int32_t priority = 0; // of the variants that a machine can run, the highest wins
};

struct CodegenOptions {
  unsigned jobs = 1;   // threads of the backends; the code does not depend on it
  std::string dumpDir; // LLVM IR and assembly of the kernels go into DIR/TARGET/; empty: nowhere
};

struct CompileOptions {
  PrecisionOptions precision;
  /// Pairs of inputs and outputs that are state, "INPUT=OUTPUT,..." or "auto" (see bind-state); empty: none.
  std::string state;
  std::vector<VariantOptions> variants; // at least one; the order is that in the module
  CodegenOptions codegen;
  /// Off: every op is a kernel of its own. Slow, and free of the mistakes of whatever joins ops.
  bool fusion = true;
  /// Off: convolutions multiply every weight with every cell, with smaller modules and a little less error.
  bool winograd = true;
  /// Computes what depends on constants only, in phase clean; must outlive the compilation. Null: a run computes it.
  const ConstantEvaluator *evaluator = nullptr;
  /// The last phase to run; nothing is serialized then.
  std::optional<Phase> stopAfter;
  /// Texts of the program after every phase go into this folder. Empty: none.
  std::string dumpDir;

  /// Called before each phase, on the thread that called compile.
  std::function<void(Phase)> onPhase;
  /// Called for each pass manager before it runs: timing, instrumentation.
  std::function<void(mlir::PassManager &)> onPassManager;
};

} // namespace dlc

#endif
