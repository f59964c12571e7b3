// RUN: dlc-opt --bufferize-kernels --canonicalize --cse --canonicalize %s | FileCheck %s

// In place: no copy, no memory of its own; sizes are the scalars.
// CHECK-LABEL: func.func @inplace(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[D:.*]]: memref<?xf32>, %[[N:.*]]: index)
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.dim
// CHECK: scf.forall (%[[I:.*]]) = (0) to (%[[N]]) step (16)
// CHECK: %[[V:.*]] = memref.subview %[[D]][%[[I]]]
// CHECK: linalg.generic {{.*}} outs(%[[V]] :
// CHECK-NOT: linalg.copy
// CHECK: return
func.func @inplace(%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) -> tensor<?xf32> attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0>, array<i64: 0>]} {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%size) step (16) shared_outs(%o = %d) -> tensor<?xf32> {
    %m = affine.min affine_map<(d)[s] -> (s - d, 16)>(%i)[%size]
    %a = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    %b = tensor.extract_slice %o[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%b : tensor<?xf32>) {
    ^bb0(%e: f32, %f: f32):
      %q = math.exp %e : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [%m] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {plan.cut}
  return %r : tensor<?xf32>
}

// What is only passed on is copied.
// CHECK-LABEL: func.func @copy(
// CHECK-SAME: %[[X:.*]]: memref<4xi8>, %[[D:.*]]: memref<4xi8>)
// CHECK: linalg.copy ins(%[[X]] : memref<4xi8>) outs(%[[D]] : memref<4xi8>)
func.func @copy(%x: tensor<4xi8>, %d: tensor<4xi8>) -> tensor<4xi8> attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: -1>, array<i64: -1>]} {
  return %x : tensor<4xi8>
}
