// RUN: dlc-opt --emit-attention --canonicalize --cse %s | FileCheck %s
// RUN: dlc-opt --decompose-kernel-ops %s | FileCheck %s --check-prefix=LINALG

// Two heads share keys: a tile has the queries of both. Many rows: keys go into panels, transposed in registers; a register tile is 6 rows x 16 keys;
// then the region's score, the largest, the exponentials; and 6 rows x 16 columns of values. No tensor of queries x keys.

#q = affine_map<(b, g, s, e, t, d) -> (b, g, s, d)>
#k = affine_map<(b, g, s, e, t, d) -> (b, t, d)>
#v = affine_map<(b, g, s, e, t, d) -> (b, t, e)>
#m = affine_map<(b, g, s, e, t, d) -> (0, t)>

module attributes {plan.target = "cpu:x86-64-v3"} {
  // CHECK-LABEL: func.func @shared(
  // CHECK-SAME: %[[Q:.*]]: memref<3x2x?x16xf32>, %[[K:.*]]: memref<3x?x16xf32>, %[[V:.*]]: memref<3x?x24xf32>, %[[M:.*]]: memref<1x?xf32>, %[[OUT:.*]]: memref<3x2x?x24xf32>
  // CHECK-DAG: memref.alloc() : memref<128x16xf32>
  // CHECK-DAG: memref.alloc() : memref<128x24xf32>
  // CHECK-DAG: memref.alloc() : memref<6x264xf32>
  // CHECK: scf.forall ({{.*}}) = (0, 0) to (3, %{{.*}}) step (1, 64)
  // CHECK: scf.if
  // CHECK: scf.for %{{.*}} step %c256
  // CHECK: vector.shuffle
  // CHECK: scf.index_switch
  // CHECK: default
  // CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // CHECK-COUNT-12: vector.fma
  // CHECK: arith.addf {{.*}} : vector<8xf32>
  // CHECK: math.exp {{.*}} : f32
  // CHECK: math.exp {{.*}} : vector<8xf32>
  // CHECK: scf.index_switch
  // CHECK: } else {
  // Few rows: vectors along the depth, keys where they are.
  // CHECK: vector.load %[[K]]
  // CHECK: vector.load %[[V]]
  // CHECK: arith.divf
  // CHECK: vector.store {{.*}}, %[[OUT]]
  // CHECK-NOT: tensor
  // LINALG-LABEL: func.func @shared(
  // LINALG: linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<3x2x?x?xf32>)
  // LINALG: arith.maximumf
  // LINALG: math.exp
  // LINALG: linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<3x2x?x24xf32>)
  // LINALG: arith.divf
  func.func @shared(%q: tensor<3x2x?x16xf32>, %k: tensor<3x?x16xf32>, %v: tensor<3x?x24xf32>, %m: tensor<1x?xf32>, %out: tensor<3x2x?x24xf32>, %s: index, %t: index)
      -> tensor<3x2x?x24xf32> attributes {plan.operands = 4 : i64, plan.destinations = 1 : i64, plan.schedule = #plan.schedule<tiles = [1, 0, 64, 0]>,
          plan.dims = [array<i64: -1, -1, 0, -1>, array<i64: -1, 1, -1>, array<i64: -1, 1, -1>, array<i64: -1, 1>, array<i64: -1, -1, 0, -1>]} {
    %0 = dlc.kernel_attention ins(%q, %k, %v, %m : tensor<3x2x?x16xf32>, tensor<3x?x16xf32>, tensor<3x?x24xf32>, tensor<1x?xf32>) outs(%out : tensor<3x2x?x24xf32>)
        {maps = [#q, #k, #v, #m]} -> tensor<3x2x?x24xf32> {
    ^bb0(%product: f32, %bias: f32):
      %sum = arith.addf %product, %bias : f32
      dlc.kernel_yield %sum : f32
    }
    return %0 : tensor<3x2x?x24xf32>
  }
}
