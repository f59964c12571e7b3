// RUN: dlc-opt --outline-code --split-input-file --verify-diagnostics %s | FileCheck %s

// The body is copied; what passes on it need to know comes along.
// CHECK: plan.kernel @double
// CHECK: module attributes {plan.code = @double, plan.target = "cpu:x86-64-v3"}
// CHECK-NEXT: func.func @double(%[[X:.*]]: tensor<?x4xf32>, %[[D:.*]]: tensor<?x4xf32>, %{{.*}}: index) -> tensor<?x4xf32>
// CHECK-SAME: plan.destinations = 1 : i64, plan.dims = [array<i64: 0, -1>, array<i64: 0, -1>]
// CHECK-SAME: plan.kind = #plan.kind<elementwise, 0>, plan.operands = 1 : i64, plan.schedule = #plan.schedule<tiles = [8, 0]>
// CHECK: %[[R:.*]] = linalg.generic
// CHECK: return %[[R]]
module attributes {plan.target = "cpu:x86-64-v3"} {
  plan.kernel @double operands 1 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, schedule = #plan.schedule<tiles = [8, 0]>,
      plan.dims = [array<i64: 0, 7>, array<i64: 0, -1>]} (%x: tensor<?x4xf32>, %d: tensor<?x4xf32>, %n: index) {
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<?x4xf32>) outs(%d : tensor<?x4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    } -> tensor<?x4xf32>
    plan.yield %r : tensor<?x4xf32>
  }
}

// -----

module attributes {plan.target = "cpu:x86-64-v3"} {
  // expected-error@+1 {{plan.dims does not say which scalar is dim 0 of argument 1}}
  plan.kernel @k operands 1 destinations 1 scalars 1 {kind = #plan.kind<movement, 0>, plan.dims = [array<i64: 0>]}
      (%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) {
    plan.yield %x : tensor<?xf32>
  }
}

// -----

module attributes {plan.target = "cpu:x86-64-v3"} {
  // expected-error@+1 {{plan.dims of argument 0 does not have 1 entries}}
  plan.kernel @k operands 1 destinations 1 scalars 1 {kind = #plan.kind<movement, 0>, plan.dims = [array<i64: 0, 0>, array<i64: 0>]}
      (%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) {
    plan.yield %x : tensor<?xf32>
  }
}

// -----

// expected-error@+1 {{no 'plan.target' says what to compile for}}
module {
}

// -----

// expected-error@+1 {{unknown target 'cpu:none': no processor 'none'}}
module attributes {plan.target = "cpu:none"} {
}
