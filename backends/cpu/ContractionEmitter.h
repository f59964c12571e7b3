// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Writes the code of a kernel that is a sum of products and what is computed from its elements. EmitContractions.cpp says how it looks.

#ifndef DLC_BACKENDS_CPU_CONTRACTIONEMITTER_H
#define DLC_BACKENDS_CPU_CONTRACTIONEMITTER_H

#include "Contraction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace dlc::cpu {

struct ContractionKernel {
  mlir::func::FuncOp func;
  Contraction c;
  mlir::Value start;                                   // of all sums
  llvm::SmallVector<mlir::linalg::GenericOp> epilogue; // over the dims of the result, in order
  mlir::linalg::UnPackOp packed;                       // makes the wide operand from the packed one, or null
  bool vectorEpilogue = true;                          // it can be computed on vectors along the columns

  mlir::func::ReturnOp ret() { return mlir::cast<mlir::func::ReturnOp>(func.getBody().front().getTerminator()); }
};

/// Replaces the body of the function. `schedule` may be null: then it is not cut into tiles.
void emitContraction(mlir::RewriterBase &rewriter, const ContractionKernel &kernel, const Target &target, plan::ScheduleAttr schedule);

} // namespace dlc::cpu

#endif
