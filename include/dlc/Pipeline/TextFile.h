// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Programs as MLIR text between two phases: written with all locations, so that a compilation which goes on from the text
// gives the same module byte for byte. A text's first line is a comment that names its phase and the file of its weights.

#ifndef DLC_PIPELINE_TEXTFILE_H
#define DLC_PIPELINE_TEXTFILE_H

#include "dlc/Pipeline/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace dlc {

/// "OUT.mlir" for a program before fuse; "OUT.cpu-x86-64-v2.mlir" for a variant. `path`: OUT or OUT.mlir.
std::string textPath(llvm::StringRef path, mlir::ModuleOp program);
/// "OUT.weights"
std::string weightsPath(llvm::StringRef path);

/// The text, with a first line that names `weights` (a file name without folder; empty: none).
void printText(mlir::ModuleOp program, Phase phase, llvm::StringRef weights, llvm::raw_ostream &os);

/// Writes each program to textPath(path, program), or to `path` itself where there is but one and `exactly` is set; and the
/// weights of all to weightsPath(path). Returns the texts' paths.
llvm::Expected<std::vector<std::string>> writeTexts(llvm::StringRef path, Phase phase, llvm::ArrayRef<mlir::ModuleOp> programs,
                                                    bool exactly = false);

/// Reads a text and its weights: those named in its first line, else those of a file X.weights beside X.mlir. Where the
/// text itself is wrong the context's diagnostics say so, and the error too.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readText(mlir::MLIRContext &context, llvm::StringRef path);

} // namespace dlc

#endif
