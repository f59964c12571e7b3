// RUN: dlc-opt --pack-constants %s | FileCheck %s

// The weights come in panels of 16 columns, the last one padded; a launch that computes the operand keeps the kernel as it was. Constants
// that nobody reads any more are gone.

// CHECK: plan.kernel @matmul operands 2
// CHECK-SAME: %arg1: tensor<3x17xf32>
// CHECK-NOT: linalg.unpack
// CHECK: plan.kernel @matmul_packed operands 2
// CHECK-SAME: plan.dims = [array<i64: 0, -1>, array<i64: -1, -1, -1>, array<i64: 0, -1>]
// CHECK-SAME: %[[B:arg1]]: tensor<2x3x16xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<3x17xf32>
// CHECK: %[[PLAIN:.*]] = linalg.unpack %[[B]] outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [16] into %[[E]] : tensor<2x3x16xf32> -> tensor<3x17xf32>
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[PLAIN]]
// CHECK: plan.kernel @transposed
// CHECK: linalg.unpack %arg1 outer_dims_perm = [0, 1] inner_dims_pos = [0] inner_tiles = [16] {{.*}} : tensor<1x2x16xf32> -> tensor<3x2xf32>
// CHECK: plan.func @main
// CHECK-NOT: plan.const {{.*}}tensor<3x17xf32>
// CHECK: %[[W:.*]] = plan.const dense<{{\[\[\[}}0.000000e+00, 1.000000e+00, 2.000000e+00{{.*}}> : tensor<1x2x16xf32>
// CHECK: %[[P:.*]] = plan.const #dlc.weight<"{{.*}}", tensor<2x3x16xf32>>
// CHECK: plan.launch @matmul_packed(%{{.*}}, %[[P]])
// CHECK: plan.launch @matmul(
// CHECK: plan.launch @transposed(%{{.*}}, %[[W]])
#dim = #dlc.dim<"m">
module attributes {plan.target = "cpu:x86-64-v3"} {
  plan.kernel @matmul operands 2 destinations 1 scalars 1 {kind = #plan.kind<contraction, 1>, plan.dims = [array<i64: 0, -1>, array<i64: -1, -1>, array<i64: 0, -1>],
      schedule = #plan.schedule<tiles = [96, 0]>} (%a: tensor<?x3xf32>, %b: tensor<3x17xf32>, %d: tensor<?x17xf32>, %m: index) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?x17xf32>) -> tensor<?x17xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x3xf32>, tensor<3x17xf32>) outs(%f : tensor<?x17xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<?x17xf32>
    plan.yield %c : tensor<?x17xf32>
  }
  plan.kernel @transposed operands 2 destinations 1 scalars 0 {kind = #plan.kind<contraction, 1>, plan.dims = [array<i64: -1>, array<i64: -1, -1>, array<i64: -1>],
      schedule = #plan.schedule<tiles = [0]>} (%a: tensor<2xf32>, %b: tensor<3x2xf32>, %d: tensor<3xf32>) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<3xf32>) -> tensor<3xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
        ins(%a, %b : tensor<2xf32>, tensor<3x2xf32>) outs(%f : tensor<3xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<3xf32>
    plan.yield %c : tensor<3xf32>
  }
  plan.func @main inputs [#plan.value<"x", tensor<?x3xf32, #dlc.info<["m", 3]>>>, #plan.value<"y", tensor<3x17xf32>>, #plan.value<"z", tensor<2xf32>>] outputs [] symbols [] {
    %w = plan.const dense<[[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]]> : tensor<3x2xf32>
    %b = plan.const dense<1.0> : tensor<3x17xf32>
    %x = plan.input 0 : !plan.buffer
    %y = plan.input 1 : !plan.buffer
    %z = plan.input 2 : !plan.buffer
    %s = plan.slot <204>
    plan.launch @matmul(%x, %b) to (%s) scalars [#dim] domain [#dim, #dlc.dim<17>] tiles <1>
    plan.launch @matmul(%x, %y) to (%s) scalars [#dim] domain [#dim, #dlc.dim<17>] tiles <1>
    plan.launch @transposed(%z, %w) to (%s) scalars [] domain [#dlc.dim<3>] tiles <1>
    plan.return
  }
}
