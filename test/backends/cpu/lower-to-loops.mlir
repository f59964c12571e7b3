// RUN: dlc-opt --lower-to-loops --canonicalize %s | FileCheck %s

// The contiguous dim runs innermost, over eight terms at a time, in order, and then over single ones.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[X:.*]]: memref<19x16xf32>, %[[D:.*]]: memref<16xf32>
// CHECK: scf.for %[[J:.*]] = %c0 to %c16 step %c8
// CHECK: scf.for %[[I:.*]] = %c0 to %c16 step %c1
// CHECK: %[[S:.*]] = memref.load %[[D]][%[[I]]]
// CHECK: %[[A:.*]] = memref.load %[[X]][%[[J]], %[[I]]]
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[S]] : f32
// CHECK: %[[K:.*]] = arith.addi %[[J]], %c1
// CHECK: %[[C:.*]] = memref.load %[[X]][%[[K]], %[[I]]]
// CHECK: arith.addf %[[C]], %[[B]] : f32
// CHECK-COUNT-6: arith.addf
// CHECK: memref.store {{.*}} %[[D]][%[[I]]]
// CHECK: scf.for %{{.*}} = %c16 to %c19 step %c1
// CHECK: scf.for
func.func @columns(%x: memref<19x16xf32>, %d: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<19x16xf32>) outs(%d : memref<16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}

// A copy onto itself is nothing.
// CHECK-LABEL: func.func @exact(
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @exact(%x: memref<8xf32>, %d: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%d : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }
  linalg.copy ins(%d : memref<8xf32>) outs(%d : memref<8xf32>)
  return
}

// A transpose goes in squares.
// CHECK-LABEL: func.func @transpose(
// CHECK: scf.for %{{.*}} step %c16
// CHECK: scf.for %{{.*}} step %c16
// CHECK: scf.for %{{.*}} step %c1
// CHECK: scf.for %{{.*}} step %c1
func.func @transpose(%x: memref<64x?xf32>, %d: memref<?x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x?xf32>) outs(%d : memref<?x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}
