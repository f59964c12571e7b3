// RUN: dlc-opt --emit-convolutions --canonicalize --cse %s | FileCheck %s
// RUN: dlc-opt --decompose-kernel-ops %s | FileCheck %s --check-prefix=LINALG

module attributes {plan.target = "cpu:x86-64-v3"} {
  // A table of addresses, of zeros in the padding; 6 positions x 16 filters at a time; the epilogue on the accumulators. 49 positions make
  // ten register tiles of 5 rows.
  // CHECK-LABEL: func.func @conv(
  // CHECK-SAME: %[[X:.*]]: memref<1x7x7x8xf32>, %[[W:.*]]: memref<1x2x3x3x8x16xf32>, %[[B:.*]]: memref<32xf32>, %[[OUT:.*]]: memref<1x7x7x32xf32>
  // CHECK: memref.collapse_shape %[[W]] {{.*}} into memref<1x2x72x16xf32>
  // CHECK: memref.alloc() : memref<10x9x5xi64>
  // CHECK: memref.alloc() : memref<8xf32>
  // CHECK: arith.select
  // CHECK: memref.store {{.*}} : memref<10x9x5xi64>
  // CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // CHECK-COUNT-5: llvm.inttoptr
  // CHECK: scf.for
  // CHECK-COUNT-10: vector.fma
  // CHECK: vector.load %[[B]]
  // CHECK: arith.addf
  // CHECK: vector.store
  // LINALG-LABEL: func.func @conv(
  // LINALG: linalg.generic
  // LINALG: arith.mulf
  func.func @conv(%x: tensor<1x7x7x8xf32>, %p: tensor<1x2x3x3x8x16xf32>, %b: tensor<32xf32>, %out: tensor<1x7x7x32xf32>) -> tensor<1x7x7x32xf32>
      attributes {plan.operands = 3 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, -1, -1, -1>, array<i64: -1, -1, -1, -1, -1, -1>, array<i64: -1>, array<i64: -1, -1, -1, -1>]} {
    %one = arith.constant 1 : index
    %0 = tensor.empty() : tensor<1x3x3x8x32xf32>
    %w = linalg.unpack %p outer_dims_perm = [0, 4, 1, 2, 3] inner_dims_pos = [4] inner_tiles = [16] into %0 : tensor<1x2x3x3x8x16xf32> -> tensor<1x3x3x8x32xf32>
    %1 = tensor.empty() : tensor<1x7x7x32xf32>
    %2 = dlc.kernel_conv ins(%x, %w : tensor<1x7x7x8xf32>, tensor<1x3x3x8x32xf32>) outs(%1 : tensor<1x7x7x32xf32>) begins(%one, %one)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>} -> tensor<1x7x7x32xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %b : tensor<1x7x7x32xf32>, tensor<32xf32>) outs(%out : tensor<1x7x7x32xf32>) {
    ^bb0(%s: f32, %bias: f32, %o: f32):
      %4 = arith.addf %s, %bias : f32
      linalg.yield %4 : f32
    } -> tensor<1x7x7x32xf32>
    return %3 : tensor<1x7x7x32xf32>
  }
}
