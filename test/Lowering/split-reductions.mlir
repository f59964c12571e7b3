// RUN: dlc-opt --split-reductions %s | FileCheck %s

// 8 cores, 16 elements: the sums are cut into 16 parts of 1024 terms. The epilogue stays with what adds them up.
// CHECK: plan.kernel @long_parts operands 2 destinations 1 scalars 0
// CHECK-SAME: (%arg0: tensor<1x16x1024xf32>, %arg1: tensor<16x1024x16xf32>, %arg2: tensor<16x1x16xf32>)
// CHECK: linalg.fill ins({{.*}}) outs(%arg2
// CHECK: linalg.generic {indexing_maps = [#[[A:.*]], #[[B:.*]], #[[C:.*]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1
// CHECK: plan.kernel @long_sum operands 2 destinations 1 scalars 0
// CHECK-SAME: kind = #plan.kind<reduction, 1>
// CHECK-SAME: (%arg0: tensor<16x1x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<1x16xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<16x1x16xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1
// CHECK-NOT: plan.kernel @long operands
// Wide or short sums stay whole.
// CHECK: plan.kernel @wide
// CHECK: %[[PARTS:.*]] = plan.slot <1024>
// CHECK: plan.launch @long_parts(%[[X:.*]], %[[W:.*]]) to(%[[PARTS]]) scalars [] domain [#dlc.dim<16>, #dlc.dim<1>, #dlc.dim<16>]
// CHECK: plan.launch @long_sum(%[[PARTS]], %{{.*}}) to(%{{.*}}) scalars [] domain [#dlc.dim<1>, #dlc.dim<16>]
// CHECK: plan.launch @wide(
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
module attributes {plan.target = "cpu:x86-64-v3"} {
  plan.kernel @long operands 3 destinations 1 scalars 0 {kind = #plan.kind<contraction, 1>, plan.dims = [array<i64: -1, -1>, array<i64: -1, -1>, array<i64: -1>, array<i64: -1, -1>]}
      (%a: tensor<1x16384xf32>, %b: tensor<16384x16xf32>, %bias: tensor<16xf32>, %d: tensor<1x16xf32>) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<1x16xf32>) -> tensor<1x16xf32>
    %c = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1x16384xf32>, tensor<16384x16xf32>) outs(%f : tensor<1x16xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x16xf32>
    %r = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%c, %bias : tensor<1x16xf32>, tensor<16xf32>) outs(%d : tensor<1x16xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.addf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<1x16xf32>
    plan.yield %r : tensor<1x16xf32>
  }
  plan.kernel @wide operands 2 destinations 1 scalars 0 {kind = #plan.kind<contraction, 1>, plan.dims = [array<i64: -1, -1>, array<i64: -1, -1>, array<i64: -1, -1>]}
      (%a: tensor<1x16384xf32>, %b: tensor<16384x512xf32>, %d: tensor<1x512xf32>) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<1x512xf32>) -> tensor<1x512xf32>
    %c = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1x16384xf32>, tensor<16384x512xf32>) outs(%f : tensor<1x512xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x512xf32>
    plan.yield %c : tensor<1x512xf32>
  }
  plan.func @main inputs [] outputs [] symbols [] {
    %m = plan.slot <64>
    plan.launch @long(%m, %m, %m) to (%m) scalars [] domain [#dlc.dim<1>, #dlc.dim<16>]
    plan.launch @wide(%m, %m) to (%m) scalars [] domain [#dlc.dim<1>, #dlc.dim<512>]
    plan.return
  }
}
