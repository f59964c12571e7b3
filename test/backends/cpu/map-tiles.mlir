// RUN: dlc-opt --map-tiles %s | FileCheck %s

// The entry reads what the runtime passes; the body gets addresses that do not overlap.
// CHECK-LABEL: func.func @k(
// CHECK-SAME: %[[ARGS:.*]]: !llvm.ptr, %[[WORKER:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i32, %[[END:.*]]: i32) attributes {plan.scratch = 0 : i64}
// CHECK: %[[B:.*]] = llvm.getelementptr %[[ARGS]][16]
// CHECK: llvm.load %[[B]] : !llvm.ptr -> !llvm.ptr
// CHECK: call @k.body(
// CHECK-LABEL: func.func private @k.body(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %[[D:.*]]: !llvm.ptr {llvm.noalias}, %[[N:.*]]: index, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.readonly}, %[[STATUS:.*]]: !llvm.ptr {llvm.noalias}, %[[FIRST:.*]]: index, %[[LAST:.*]]: index)
// CHECK: %[[M:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<?x8xf32>
// CHECK: arith.ceildivui
// CHECK: %[[COUNT:.*]] = arith.ceildivui
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: %[[J:.*]] = arith.remui %[[T]], %[[COUNT]]
// CHECK: arith.divui %[[T]], %[[COUNT]]
// CHECK: memref.store
// CHECK: llvm.store %{{.*}}, %[[STATUS]] : i32, !llvm.ptr
func.func @k(%x: memref<?x8xf32>, %d: memref<?x8xf32>, %n: index, %scratch: memref<?xi8>) attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0, -1>, array<i64: 0, -1>], plan.scratch = 0 : i64} {
  scf.forall (%i, %j) = (0, 0) to (%n, 8) step (4, 2) {
    %v = memref.load %x[%i, %j] : memref<?x8xf32>
    memref.store %v, %d[%i, %j] : memref<?x8xf32>
    dlc.kernel_raise 2
  } {plan.cut}
  return
}

// Not cut: tile 0 is all there is.
// CHECK-LABEL: func.func private @whole.body(
// CHECK: %[[IS0:.*]] = arith.cmpi eq
// CHECK: %[[SOME:.*]] = arith.cmpi ult
// CHECK: arith.andi %[[IS0]], %[[SOME]]
// CHECK: scf.if
// CHECK: memref.load
func.func @whole(%x: memref<f32>, %d: memref<f32>, %scratch: memref<?xi8>) attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64>, array<i64>], plan.scratch = 0 : i64} {
  %v = memref.load %x[] : memref<f32>
  memref.store %v, %d[] : memref<f32>
  return
}
