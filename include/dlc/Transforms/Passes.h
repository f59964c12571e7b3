// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Passes on dlc ops. Each is described in Passes.td, and the one that asks an evaluator here.

#ifndef DLC_TRANSFORMS_PASSES_H
#define DLC_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dlc {

class ConstantEvaluator;

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dlc/Transforms/Passes.h.inc"

/// fold-constants: what depends on constants only becomes a constant, computed by `evaluator`, which must outlive the pass; views of
/// constants become constants too. A result of more than 64 KiB is folded only where it holds at most four times the bytes of the
/// constants that it is made of. What cannot be computed (an integer division by 0) stays for run time, with a remark.
std::unique_ptr<mlir::Pass> createFoldConstants(const ConstantEvaluator &evaluator);

} // namespace dlc

#endif
