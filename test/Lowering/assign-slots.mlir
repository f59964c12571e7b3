// RUN: dlc-opt %s --pass-pipeline='builtin.module(assign-slots)' | FileCheck %s

// Fixed slots share memory when their stages do not meet; expressions are evaluated first.
// CHECK: plan.dim [
// CHECK: plan.slot <256> at <fixed, stages 0 to 1, 0>
// CHECK: plan.slot <128> at <fixed, stages 1 to 2, 256>
// CHECK: plan.slot <64> at <fixed, stages 2 to 3, 0>
// CHECK: plan.slot <b * 4> at <symbolic, stages 3 to 4, 0>
// CHECK: plan.stage 0
// CHECK-NEXT: plan.launch
// CHECK: plan.stage 1
// CHECK: plan.stage 4
plan.kernel @k operands 1 destinations 1 scalars 0 {entry = 0 : i64, kind = #plan.kind<other, 0>, stack = 0 : i64}
plan.func @main inputs [#plan.value<"x", tensor<?xf32, #dlc.info<[b]>>>] outputs [#plan.value<"y", tensor<?xf32, #dlc.info<[b]>>>] symbols [] {
  %x = plan.input 0 : !plan.buffer
  %a = plan.slot <256>
  %b = plan.slot <128>
  %c = plan.slot <64>
  %d = plan.slot <b * 4>
  %y = plan.output 0 dims [#dlc.dim<b>] bytes <b * 4> : !plan.buffer
  plan.launch @k(%x) to(%a) scalars [] domain [#dlc.dim<b>] tiles <b>
  plan.launch @k(%a) to(%b) scalars [] domain [] tiles <1>
  plan.launch @k(%b) to(%c) scalars [] domain [] tiles <1>
  plan.launch @k(%c) to(%d) scalars [] domain [] tiles <1>
  plan.launch @k(%d) to(%y) scalars [] domain [] tiles <1>
  plan.return
}

// The stages of branches follow each other. Memory that a branch gives lives as long as what it gives.
// CHECK-LABEL: plan.func @branches
// CHECK: plan.stage 0
// CHECK: plan.if
// CHECK: plan.slot <64> at <fixed, stages 1 to 2, {{[0-9]+}}>
// CHECK: plan.slot <128> at <fixed, stages 2 to 4, {{[0-9]+}}>
// CHECK: plan.stage 1
// CHECK: plan.stage 2
// CHECK: } else {
// CHECK: plan.slot <256> at <fixed, stages 3 to 4, {{[0-9]+}}>
// CHECK: plan.stage 3
// CHECK: plan.stage 4
plan.func @branches inputs [#plan.value<"c", tensor<1xi64>>] outputs [#plan.value<"y", tensor<16xf32>>] symbols [] {
  %c = plan.input 0 : !plan.buffer
  %y = plan.output 0 dims [#dlc.dim<16>] bytes <64> : !plan.buffer
  plan.read %c[0] : i64 as "c[0]"
  %r = plan.if <"c[0]"> -> !plan.buffer {
    %a = plan.slot <64>
    %b = plan.slot <128>
    plan.launch @k(%c) to(%a) scalars [] domain [] tiles <1>
    plan.launch @k(%a) to(%b) scalars [] domain [] tiles <1>
    %v = plan.view %b offset <0> bytes <64>
    plan.yield %v : !plan.buffer
  } else {
    %d = plan.slot <256>
    plan.launch @k(%c) to(%d) scalars [] domain [] tiles <1>
    %v = plan.view %d offset <0> bytes <64>
    plan.yield %v : !plan.buffer
  }
  plan.launch @k(%r) to(%y) scalars [] domain [] tiles <1>
  plan.return
}
