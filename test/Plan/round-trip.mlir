// RUN: dlc-opt %s | dlc-opt | FileCheck %s

// Every instruction has a text form.
// CHECK: plan.kernel @k operands 1 destinations 1 scalars 1
plan.kernel @k operands 1 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, schedule = #plan.schedule<tiles = [8], registers = [0, 16]>} (%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) {
  plan.yield %x : tensor<?xf32>
}
// CHECK: plan.kernel @whole
// CHECK-SAME: schedule = #plan.schedule<tiles = []>
plan.kernel @whole operands 1 destinations 1 scalars 0 {kind = #plan.kind<other, 0>, schedule = #plan.schedule<tiles = []>}
// CHECK: plan.func @main inputs [#plan.value<"x", tensor<?x4xf32, #dlc.info<[b, 4]>>, dense<0.000000e+00> : tensor<1x4xf32>>]
plan.func @main inputs [#plan.value<"x", tensor<?x4xf32, #dlc.info<[b, 4]>>, dense<0.0> : tensor<1x4xf32>>] outputs [] symbols [#dlc.symbol<"b", 1, 8, 2, false>] {
  // CHECK: plan.const dense<1> : tensor<2xi64> device 1
  %c = plan.const dense<1> : tensor<2xi64> device 1
  // CHECK: plan.input 0
  %x = plan.input 0 : !plan.buffer
  // CHECK: plan.dim [#dlc.dim<b>]
  plan.dim [#dlc.dim<b>]
  // CHECK: plan.check <select_lt(b, 9, 1, 0)>, <b>, <8>, "too many"
  plan.check <select_lt(b, 9, 1, 0)>, <b>, <8>, "too many"
  // CHECK: plan.slot <b * 16> device 1 at <late, stages 0 to 3, 0>
  %s = plan.slot <b * 16> device 1 at <late, stages 0 to 3, 0>
  // CHECK: plan.view %{{.*}} offset <0> bytes <b>
  %v = plan.view %s offset <0> bytes <b>
  // CHECK: plan.stage 2
  plan.stage 2
  // CHECK: plan.fill %{{.*}} : i64 elements <2> values [#dlc.dim<b>, #dlc.dim<4>]
  plan.fill %v : i64 elements <2> values [#dlc.dim<b>, #dlc.dim<4>]
  // CHECK: plan.read %{{.*}}[1] : i64 as "n"
  plan.read %v[1] : i64 as "n"
  // CHECK: plan.if <n> {
  plan.if <n> {
    plan.copy %s from %x bytes <b> : !plan.buffer, !plan.buffer
    plan.yield
  } else {
    plan.yield
  }
  // CHECK: plan.if <n> -> !plan.buffer {
  %chosen = plan.if <n> -> !plan.buffer {
    %own = plan.view %s offset <0> bytes <b>
    plan.yield %own : !plan.buffer
  } else {
    %own = plan.view %x offset <0> bytes <b>
    plan.yield %own : !plan.buffer
  }
  // CHECK: plan.loop "i" trip <n> condition "go"
  plan.loop "i" trip <n> condition "go" {
    plan.launch @k device 1(%x) to(%s) scalars [#dlc.dim<i>] domain [#dlc.dim<b>] tiles <b> scratch <64>
  }
  // CHECK: plan.call "my.domain" : "Op" version 1 "{}"
  plan.call "my.domain" : "Op" version 1 "{}" (%x) to(%s) : [tensor<4xf32>, tensor<4xf32>]
  // CHECK: plan.return
  plan.return
}

// CHECK: plan.func @stateful inputs [] outputs [] symbols [] states [#plan.state<"s", tensor<?x4xf32, #dlc.info<[c, 4]>>, 0>] length <"n", "c", <step>> {
// CHECK-NEXT: plan.state 0
plan.func @stateful inputs [] outputs [] symbols [] states [#plan.state<"s", tensor<?x4xf32, #dlc.info<[c, 4]>>, 0>] length <"n", "c", <step>> {
  %s = plan.state 0
  plan.return
}
