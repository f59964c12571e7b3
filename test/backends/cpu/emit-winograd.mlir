// RUN: dlc-opt --emit-winograd --canonicalize --cse %s | FileCheck %s
// RUN: dlc-opt --decompose-kernel-ops %s | FileCheck %s --check-prefix=LINALG

module attributes {plan.target = "cpu:x86-64-v3"} {
  // 16 x 16 results are 16 tiles, four rows of four; 36 cells of each are a product by themselves. Rows for each cell are apart by a line of the cache.
  // CHECK-LABEL: func.func @conv(
  // CHECK-SAME: %[[X:.*]]: memref<1x16x16x20xf32>, %[[W:.*]]: memref<3x36x20x16xf32>, %[[OUT:.*]]: memref<1x16x16x40xf32>
  // CHECK: memref.alloc() : memref<16x36xi64>
  // CHECK: memref.alloc() : memref<24xf32>
  // CHECK: memref.alloc() : memref<36x400xf32>
  // CHECK: memref.alloc() : memref<36x528xf32>
  // CHECK: memref.alloc() : memref<16x32xf32>
  // CHECK: arith.select
  // CHECK-COUNT-36: llvm.load
  // CHECK: llvm.intr.masked.load
  // CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // CHECK-COUNT-8: vector.fma
  // CHECK: vector.store {{.*}} %[[OUT]]
  // LINALG-LABEL: func.func @conv(
  // LINALG: linalg.generic {{.*}} outs({{.*}} : tensor<36x1x4x4x20xf32>)
  // LINALG: linalg.generic {{.*}} outs({{.*}} : tensor<36x1x4x4x40xf32>)
  // LINALG: linalg.generic {{.*}} outs({{.*}} : tensor<1x16x16x40xf32>)
  func.func @conv(%x: tensor<1x16x16x20xf32>, %p: tensor<3x36x20x16xf32>, %out: tensor<1x16x16x40xf32>) -> tensor<1x16x16x40xf32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, -1, -1, -1>, array<i64: -1, -1, -1, -1>, array<i64: -1, -1, -1, -1>]} {
    %one = arith.constant 1 : index
    %0 = tensor.empty() : tensor<36x20x40xf32>
    %w = linalg.unpack %p outer_dims_perm = [2, 0, 1] inner_dims_pos = [2] inner_tiles = [16] into %0 : tensor<3x36x20x16xf32> -> tensor<36x20x40xf32>
    %1 = dlc.kernel_winograd ins(%x, %w : tensor<1x16x16x20xf32>, tensor<36x20x40xf32>) outs(%out : tensor<1x16x16x40xf32>) begins(%one, %one)
        {tile = 4 : i64} -> tensor<1x16x16x40xf32>
    return %1 : tensor<1x16x16x40xf32>
  }
}
