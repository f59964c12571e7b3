// RUN: dlc-opt --merge-launches %s | FileCheck %s

// Kernels with the same parts are one. The second product reads what the first one does, and goes up to it, past the launch that needs the first; what
// needs another's result stays behind it.

// CHECK: plan.kernel @k0 operands 1
// CHECK: plan.kernel @k0_and_1 operands 2 destinations 2 scalars 4 {kind = #plan.kind<contraction, 0>, plan.parts = [@k0, @k0]}
// CHECK: plan.kernel @k1
// CHECK: plan.kernel @k1_and_1 operands 2 destinations 2 scalars 2 {kind = #plan.kind<elementwise, 0>, plan.parts = [@k1, @k1]}
module {
  plan.kernel @k0 operands 1 destinations 1 scalars 1 {kind = #plan.kind<contraction, 0>}
  plan.kernel @k1 operands 1 destinations 1 scalars 0 {kind = #plan.kind<elementwise, 0>}

  // CHECK-LABEL: plan.func @main
  // CHECK: %[[X:.*]] = plan.input 0
  // CHECK: %[[A:.*]] = plan.slot <n>
  // CHECK-NEXT: %[[B:.*]] = plan.slot <n>
  // CHECK-NEXT: plan.launch @k0_and_1(%[[X]], %[[X]]) to(%[[A]], %[[B]]) scalars [#dlc.dim<floordiv(n + 3, 4)>, #dlc.dim<2>, #dlc.dim<n>, #dlc.dim<7>] domain [] tiles <floordiv(n + 3, 4) + 2>
  // CHECK-NEXT: %[[C:.*]] = plan.slot
  // CHECK-NEXT: %[[D:.*]] = plan.slot
  // CHECK-NEXT: plan.launch @k1_and_1(%[[A]], %[[B]]) to(%[[C]], %[[D]])
  // CHECK-NEXT: %[[E:.*]] = plan.slot
  // CHECK-NEXT: plan.launch @k1(%[[D]]) to(%[[E]])
  plan.func @main inputs [#plan.value<"x", tensor<?xf32, #dlc.info<[n]>>>] outputs [] symbols [#dlc.symbol<"n", 0, 9223372036854775807, 1, false>] {
    %x = plan.input 0 : !plan.buffer
    %a = plan.slot <n>
    plan.launch @k0(%x) to(%a) scalars [#dlc.dim<n>] domain [#dlc.dim<n>] tiles <ceildiv(n, 4)>
    %c = plan.slot <n>
    plan.launch @k1(%a) to(%c) scalars [] domain [] tiles <1>
    %b = plan.slot <n>
    plan.launch @k0(%x) to(%b) scalars [#dlc.dim<7>] domain [#dlc.dim<7>] tiles <2>
    %d = plan.slot <n>
    plan.launch @k1(%b) to(%d) scalars [] domain [] tiles <1>
    %e = plan.slot <n>
    plan.launch @k1(%d) to(%e) scalars [] domain [] tiles <1>
    plan.return
  }
}
