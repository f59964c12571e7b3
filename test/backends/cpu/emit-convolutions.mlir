// RUN: dlc-opt --emit-convolutions --canonicalize --cse %s | FileCheck %s
// RUN: dlc-opt --decompose-kernel-ops %s | FileCheck %s --check-prefix=LINALG

module attributes {plan.target = "cpu:x86-64-v3"} {
  // A table of addresses, of zeros in the padding; 6 positions x 16 filters at a time; the epilogue on the accumulators. 49 positions make
  // ten register tiles of 5 rows.
  // CHECK-LABEL: func.func @conv(
  // CHECK-SAME: %[[X:.*]]: memref<1x7x7x16xf32>, %[[W:.*]]: memref<1x2x3x3x16x16xf32>, %[[B:.*]]: memref<32xf32>, %[[OUT:.*]]: memref<1x7x7x32xf32>
  // CHECK: memref.collapse_shape %[[W]] {{.*}} into memref<1x2x144x16xf32>
  // CHECK: memref.alloc() : memref<10x9x5xi64>
  // CHECK: memref.alloc() : memref<16xf32>
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
  func.func @conv(%x: tensor<1x7x7x16xf32>, %p: tensor<1x2x3x3x16x16xf32>, %b: tensor<32xf32>, %out: tensor<1x7x7x32xf32>) -> tensor<1x7x7x32xf32>
      attributes {plan.operands = 3 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, -1, -1, -1>, array<i64: -1, -1, -1, -1, -1, -1>, array<i64: -1>, array<i64: -1, -1, -1, -1>]} {
    %one = arith.constant 1 : index
    %0 = tensor.empty() : tensor<1x3x3x16x32xf32>
    %w = linalg.unpack %p outer_dims_perm = [0, 4, 1, 2, 3] inner_dims_pos = [4] inner_tiles = [16] into %0 : tensor<1x2x3x3x16x16xf32> -> tensor<1x3x3x16x32xf32>
    %1 = tensor.empty() : tensor<1x7x7x32xf32>
    %2 = dlc.kernel_conv ins(%x, %w : tensor<1x7x7x16xf32>, tensor<1x3x3x16x32xf32>) outs(%1 : tensor<1x7x7x32xf32>) begins(%one, %one)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>} -> tensor<1x7x7x32xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %b : tensor<1x7x7x32xf32>, tensor<32xf32>) outs(%out : tensor<1x7x7x32xf32>) {
    ^bb0(%s: f32, %bias: f32, %o: f32):
      %4 = arith.addf %s, %bias : f32
      linalg.yield %4 : f32
    } -> tensor<1x7x7x32xf32>
    return %3 : tensor<1x7x7x32xf32>
  }

  // Three channels: 7 cells of 3 channels that lie side by side are one of 21. Those that reach into the padding are copied.
  // CHECK-LABEL: func.func @runs(
  // CHECK: memref.alloc() : memref<6x7x6x21xf32>
  // CHECK: memref.alloc() : memref<6x7x6xi64>
  // CHECK: memref.alloc() : memref<21xf32>
  // CHECK: scf.if
  // CHECK: memref.store {{.*}} : memref<6x7x6x21xf32>
  // CHECK-COUNT-12: vector.fma
  func.func @runs(%x: tensor<1x12x12x3xf32>, %p: tensor<1x1x7x7x3x16xf32>, %out: tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, -1, -1, -1>, array<i64: -1, -1, -1, -1, -1, -1>, array<i64: -1, -1, -1, -1>]} {
    %three = arith.constant 3 : index
    %0 = tensor.empty() : tensor<1x7x7x3x16xf32>
    %w = linalg.unpack %p outer_dims_perm = [0, 4, 1, 2, 3] inner_dims_pos = [4] inner_tiles = [16] into %0 : tensor<1x1x7x7x3x16xf32> -> tensor<1x7x7x3x16xf32>
    %1 = dlc.kernel_conv ins(%x, %w : tensor<1x12x12x3xf32>, tensor<1x7x7x3x16xf32>) outs(%out : tensor<1x6x6x16xf32>) begins(%three, %three)
        {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>} -> tensor<1x6x6x16xf32>
    return %1 : tensor<1x6x6x16xf32>
  }

  // One filter: its terms along the lanes, for eight positions at a time. No window ends in the padding, so nothing is copied.
  // CHECK-LABEL: func.func @few(
  // CHECK: memref.collapse_shape {{.*}} into memref<1x100xf32>
  // CHECK-NOT: memref.alloc() : memref<{{.*}}x100xf32>
  // CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // CHECK-COUNT-8: vector.fma
  // CHECK: llvm.intr.masked.load
  // CHECK-COUNT-8: vector.extract %
  func.func @few(%x: tensor<1x400x1xf32>, %p: tensor<1x1x100x1x1xf32>, %out: tensor<1x31x1xf32>) -> tensor<1x31x1xf32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, -1, -1>, array<i64: -1, -1, -1, -1, -1>, array<i64: -1, -1, -1>]} {
    %zero = arith.constant 0 : index
    %0 = tensor.empty() : tensor<1x100x1x1xf32>
    %w = linalg.unpack %p outer_dims_perm = [0, 3, 1, 2] inner_dims_pos = [3] inner_tiles = [1] into %0 : tensor<1x1x100x1x1xf32> -> tensor<1x100x1x1xf32>
    %1 = dlc.kernel_conv ins(%x, %w : tensor<1x400x1xf32>, tensor<1x100x1x1xf32>) outs(%out : tensor<1x31x1xf32>) begins(%zero)
        {strides = array<i64: 10>, dilations = array<i64: 1>} -> tensor<1x31x1xf32>
    return %1 : tensor<1x31x1xf32>
  }
}
