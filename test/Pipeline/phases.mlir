// Every phase is a pipeline of dlc-opt.
// RUN: %dlc-opt --help | FileCheck %s --check-prefix=HELP
// HELP: --dlc-clean
// HELP: --dlc-codegen
// HELP: --dlc-finish
// HELP: --dlc-fuse
// HELP: --dlc-import
// HELP: --dlc-plan
// HELP: --dlc-precision
// HELP: --dlc-schedule

// RUN: %dlc-opt %s --dlc-clean --dlc-precision --dlc-fuse --dlc-plan --dlc-schedule --dlc-codegen --dlc-finish | FileCheck %s
// CHECK: plan.kernel
// CHECK: plan.func @main
// CHECK: plan.launch

// RUN: not %dlc-opt %s --pass-pipeline="builtin.module(dlc-clean{x=1})" 2>&1 | FileCheck %s --check-prefix=OPTIONS
// OPTIONS: a phase takes no options

module attributes {plan.target = "cpu:x86-64-v2", plan.priority = 0 : i64} {
  func.func @main(%x: tensor<4xf32> {dlc.name = "x"}) -> (tensor<4xf32> {dlc.name = "y"}) attributes {dlc.symbols = []} {
    %y = dlc.relu %x : (tensor<4xf32>) -> tensor<*xf32>
    %z = dlc.exp %y : (tensor<*xf32>) -> tensor<4xf32>
    return %z : tensor<4xf32>
  }
}
