// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Passes on dlc ops, in the order in which the pipeline runs them.

#ifndef DLC_TRANSFORMS_PASSES
#define DLC_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def InferShapes : Pass<"infer-shapes", "::mlir::func::FuncOp"> {
  let summary = "Gives every value its dims, and folds integer tensors whose elements are dimension expressions";
  let description = [{
    One forward walk. Runs each op's shape rule, adds the run-time checks and reads that the rules ask for, and replaces small
    integer tensors by constants and `dlc.from_dims`.
  }];
}

def BindState : Pass<"bind-state", "::mlir::ModuleOp"> {
  let summary = "Makes pairs of an input and an output that is the input extended by a Concat the state of the function";
  let description = [{
    For an input P of dims [.., L, ..] and an output R = Concat(P, x), the argument becomes state S of dims [.., L_capacity, ..]; P is
    `dlc.prefix` of S and R that of `dlc.append`(S, x), which takes R's place among the results (`dlc.state_of`). So nothing of P is copied
    by a run. All states of a module have one length.
  }];
  let options = [Option<"pairs", "pairs", "std::string", "", "INPUT=OUTPUT,..., each side with at most one *, or `auto`: all that there are">];
}

def Simplify : Pass<"simplify", "::mlir::func::FuncOp"> {
  let summary = "Removes ops without effect: dead ones, identity casts, reshapes and transposes, chains of them, neutral operands";
}

def ExpandOps : Pass<"expand-ops", "::mlir::func::FuncOp"> {
  let summary = "Replaces ops that are defined by others";
}

def ChooseLayout : Pass<"choose-layout", "::mlir::func::FuncOp"> {
  let summary = "Gives convolutions and windows, and what lies between them, channels last";
  let description = [{
    Scales and sums of a convolution's channels go into its filters. A convolution of one cell becomes a product, one of 3 x 3 cells with
    many results a dlc.winograd_conv.
  }];
  let options = [Option<"winograd", "winograd", "bool", /*default=*/"true", "false: no dlc.winograd_conv">];
  let dependentDialects = ["::dlc::DlcDialect"];
}

def Recognize : Pass<"recognize", "::mlir::func::FuncOp"> {
  let summary = "Finds attention that a graph spells out, and makes it one op";
  let dependentDialects = ["::dlc::DlcDialect"];
}

def Fuse : Pass<"fuse", "::mlir::func::FuncOp"> {
  let summary = "Puts ops into groups, each of which becomes one kernel";
  let options = [Option<"cap", "cap", "unsigned", /*default=*/"64", "the most ops in one group">,
                 Option<"fusion", "fusion", "bool", /*default=*/"true", "false: every op is a group of its own">];
}

def VerifyPhase : Pass<"verify-phase", "::mlir::ModuleOp"> {
  let summary = "Checks what holds after a phase of the pipeline";
  let options = [Option<"phase", "phase", "std::string", "", "import, clean, precision, fuse, plan, schedule, codegen or finish">];
}

#endif
