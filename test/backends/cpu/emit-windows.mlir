// RUN: dlc-opt --emit-windows --canonicalize --cse %s | FileCheck %s
// RUN: dlc-opt --decompose-kernel-ops %s | FileCheck %s --check-prefix=LINALG

module attributes {plan.target = "cpu:x86-64-v3"} {
  // Four neighbours whose windows are whole share the cells that they have in common: 6 of each line instead of 12. Others one by one.
  // CHECK-LABEL: func.func @depthwise(
  // CHECK: scf.for
  // CHECK-COUNT-6: vector.load {{.*}} : memref<1x9x20x16xf32>, vector<8xf32>
  // CHECK-NOT: vector.load {{.*}} : memref<1x9x20x16xf32>, vector<8xf32>
  // CHECK: scf.yield
  // CHECK-COUNT-4: vector.store
  // CHECK: vector.load {{.*}} : memref<1x9x20x16xf32>, vector<8xf32>
  // CHECK: vector.fma
  // CHECK: vector.store
  // LINALG-LABEL: func.func @depthwise(
  // LINALG: linalg.generic
  func.func @depthwise(%x: tensor<1x9x20x16xf32>, %w: tensor<3x3x16xf32>, %out: tensor<1x9x20x16xf32>) -> tensor<1x9x20x16xf32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, -1, -1, -1>, array<i64: -1, -1, -1>, array<i64: -1, -1, -1, -1>]} {
    %one = arith.constant 1 : index
    %0 = dlc.kernel_window ins(%x, %w : tensor<1x9x20x16xf32>, tensor<3x3x16xf32>) outs(%out : tensor<1x9x20x16xf32>) begins(%one, %one)
        {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, start = 0.0 : f32} -> tensor<1x9x20x16xf32> {
    ^bb0(%s: f32, %cell: f32, %weight: f32):
      %1 = arith.mulf %cell, %weight : f32
      %2 = arith.addf %s, %1 : f32
      dlc.kernel_yield %2 : f32
    }
    return %0 : tensor<1x9x20x16xf32>
  }
}
