// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Passes from dlc ops to plans and kernel bodies, in the order in which the pipeline runs them.

#ifndef DLC_LOWERING_PASSES
#define DLC_LOWERING_PASSES

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Turns each function into a plan.func; each group becomes a plan.kernel and a launch";
  let dependentDialects = ["::dlc::plan::PlanDialect"];
}

def LowerToLinalg : Pass<"lower-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lowers the groups in kernels to linalg on tensors without encoding; merges equal kernels";
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def CollapseDims : Pass<"collapse-dims", "::mlir::ModuleOp"> {
  let summary = "Joins neighbouring dims of kernels that all their operands have side by side, or none: fewer loops, longer rows";
}

def SplitReductions : Pass<"split-reductions", "::mlir::ModuleOp"> {
  let summary = "Cuts the sums of products with few elements and many terms into parts, so that all cores have work: two launches";
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect"];
}

def MergeLaunches : Pass<"merge-launches", "::mlir::ModuleOp"> {
  let summary = "Makes one launch of several that need nothing of each other";
}

def AssignSlots : Pass<"assign-slots", "::mlir::ModuleOp"> {
  let summary = "Counts stages, places slots by their lifetimes, and says where dimension expressions are evaluated";
}

#endif
