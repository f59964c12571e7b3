// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What happens when dlc or a library below it fails: one report that says which node was being worked on, and exit code 70.

#ifndef DLC_TOOLS_DLC_CRASH_H
#define DLC_TOOLS_DLC_CRASH_H

#include "mlir/Pass/PassInstrumentation.h"
#include <memory>

namespace dlc {

/// Catches faults of this process: signals (a stack overflow too), LLVM's fatal errors, std::terminate; and a lack of memory,
/// which ends with exit code 1.
void installCrashHandlers(int argc, char **argv);

/// The calling thread gets a second stack on which its stack overflow can be reported.
void prepareThreadForCrash();

/// What is being worked on, for the report: set for the length of a command ("model.onnx"). Null clears it.
void setCrashSubject(const char *subject);

/// `serve`: instead of stderr the report goes into the answer to this request (the JSON text of its id). Null: stderr.
void setCrashRequest(const char *id);

/// Notes which pass works on which op.
std::unique_ptr<mlir::PassInstrumentation> createCrashInstrumentation();

} // namespace dlc

#endif
