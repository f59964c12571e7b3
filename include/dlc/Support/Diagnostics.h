// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// From MLIR's diagnostics to what a user reads: one line a problem, which names the node of the original model.
//
//   error: model.onnx: node 17 'conv1' (Conv): the kernel is larger than the padded input
//   note: pass --dim height=MIN..MAX ...

#ifndef DLC_SUPPORT_DIAGNOSTICS_H
#define DLC_SUPPORT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include <mutex>
#include <string>
#include <vector>

namespace dlc {

struct Problem {
  mlir::DiagnosticSeverity severity = mlir::DiagnosticSeverity::Error;
  std::string where; // "model.onnx: node 17 'conv1' (Conv)", "dump.mlir:3:7", or empty
  std::string message;
  std::vector<std::string> notes; // about this problem

  /// "error: WHERE: MESSAGE"
  std::string toString() const;
  bool operator==(const Problem &) const = default;
};

/// Takes all diagnostics of a context while it lives, from any thread, and keeps each once, in order of arrival.
class Diagnostics {
public:
  /// `subject`: how messages without a location call what is worked on, e.g. "model.onnx".
  Diagnostics(mlir::MLIRContext *context, std::string subject);

  /// Problems that do not come through MLIR. Several errors joined in one are several problems.
  void error(llvm::Error error);
  void error(const llvm::Twine &message);
  /// What the user can do; printed once, after all problems.
  void advise(const llvm::Twine &note);

  bool hasErrors() const;
  std::vector<Problem> problems() const;
  /// Errors, then warnings, then (when `verbose`) remarks; each followed by its notes; then the advice.
  void print(llvm::raw_ostream &os, bool verbose = false) const;

private:
  void add(Problem problem);
  llvm::LogicalResult take(mlir::Diagnostic &diagnostic);

  std::string subject;
  mutable std::mutex mutex;
  std::vector<Problem> found;
  std::vector<std::string> advice;
  mlir::ScopedDiagnosticHandler handler;
};

/// "node 17 'conv1' (Conv)" for a location made of ONNX nodes (at most three by name); empty for others.
std::string describeNodes(mlir::Location location);

} // namespace dlc

#endif
