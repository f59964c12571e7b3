// RUN: dlc-opt --vectorize-transposes --canonicalize --cse %s | FileCheck %s

module attributes {plan.target = "cpu:x86-64-v3"} {
  // 8x4 blocks: two pieces of a row of four in a vector, two rounds of interleaving inside of pieces.
  // CHECK-LABEL: func.func @squares(
  // CHECK: scf.for %{{.*}} step %c16
  // CHECK: scf.for %{{.*}} step %c16
  // CHECK-COUNT-8: vector.load {{.*}} vector<4xf32>
  // CHECK: vector.shuffle {{.*}} [0, 8, 1, 9, 4, 12, 5, 13] : vector<8xf32>
  // CHECK: vector.shuffle {{.*}} [2, 10, 3, 11, 6, 14, 7, 15] : vector<8xf32>
  // CHECK-COUNT-4: vector.store {{.*}} vector<8xf32>
  // What is left: blocks, then elements.
  // CHECK: scf.for %{{.*}} step %c4
  // CHECK: scf.for %{{.*}} step %c8
  // CHECK: memref.load
  // CHECK-NOT: linalg.generic
  // CHECK: return
  func.func @squares(%x: memref<?x?xf32>, %d: memref<?x?xf32>) {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<?x?xf32>) outs(%d : memref<?x?xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    }
    return
  }

  // Runs that stay contiguous, and what computes, are loops.
  // CHECK-LABEL: func.func @others(
  // CHECK-COUNT-2: linalg.generic
  // CHECK: return
  func.func @others(%x: memref<?x?x?xf32>, %d: memref<?x?x?xf32>, %y: memref<?x?xf32>, %e: memref<?x?xf32>) {
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, i, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<?x?x?xf32>) outs(%d : memref<?x?x?xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%y : memref<?x?xf32>) outs(%e : memref<?x?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    }
    return
  }
}
