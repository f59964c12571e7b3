// RUN: dlc-opt --tile-kernels --decompose-kernel-ops --canonicalize --cse --bufferize-kernels --canonicalize --cse --canonicalize %s | FileCheck %s

// Of the destination only the new part is touched: there is no other write, no copy of the rest and no memory beside it.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x?x4xf32>, %[[D:[a-z0-9]+]]: memref<2x?x4xf32>, %{{[a-z0-9]+}}: index, %[[N:[a-z0-9]+]]: index, %[[AT:[a-z0-9]+]]: index
// CHECK-NOT: memref.alloc
// CHECK: %[[NEW:.*]] = memref.subview %[[D]][0, %[[AT]], 0] [2, %[[N]], 4]
// CHECK: linalg.copy ins(%[[X]] : {{.*}}) outs(%[[NEW]] :
// CHECK-NOT: linalg
// CHECK: return
func.func @whole(%s: tensor<2x?x4xf32>, %x: tensor<2x?x4xf32>, %d: tensor<2x?x4xf32>, %c: index, %n: index, %at: index) -> tensor<2x?x4xf32> attributes {
    plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, 0, -1>, array<i64: -1, 1, -1>, array<i64: -1, 0, -1>], plan.schedule = #plan.schedule<tiles = [0, 0, 0]>} {
  %0 = dlc.kernel_append ins(%x : tensor<2x?x4xf32>) outs(%d : tensor<2x?x4xf32>) at %at {axis = 1 : i64} -> tensor<2x?x4xf32>
  return %0 : tensor<2x?x4xf32>
}

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x?x4xf32>, %[[D:[a-z0-9]+]]: memref<2x?x4xf32>, %{{[a-z0-9]+}}: index, %[[N:[a-z0-9]+]]: index, %[[AT:[a-z0-9]+]]: index
// CHECK-NOT: memref.alloc
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (2, %[[N]]) step (1, 16)
// CHECK-DAG: memref.subview %[[X]][%[[I]], %[[J]], 0]
// CHECK-DAG: memref.subview %[[D]][%[[I]], %{{.*}}, 0]
// CHECK: linalg.copy
// CHECK-NOT: linalg
// CHECK: return
func.func @tiles(%s: tensor<2x?x4xf32>, %x: tensor<2x?x4xf32>, %d: tensor<2x?x4xf32>, %c: index, %n: index, %at: index) -> tensor<2x?x4xf32> attributes {
    plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1, 0, -1>, array<i64: -1, 1, -1>, array<i64: -1, 0, -1>], plan.schedule = #plan.schedule<tiles = [1, 16, 0]>} {
  %0 = dlc.kernel_append ins(%x : tensor<2x?x4xf32>) outs(%d : tensor<2x?x4xf32>) at %at {axis = 1 : i64} -> tensor<2x?x4xf32>
  return %0 : tensor<2x?x4xf32>
}
