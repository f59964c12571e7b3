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
