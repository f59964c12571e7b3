// RUN: dlc-opt --vectorize-contractions --canonicalize --cse %s | FileCheck %s

// Tiles of 6 x 16, 6 x 8 and 6 x 1, and of one row each; sums stay in registers for the whole loop over k; the epilogue follows
// tile by tile.
// CHECK-LABEL: func.func @matmul(
// CHECK: scf.for %{{.*}} step %c16
// CHECK: scf.for %{{.*}} step %c6
// CHECK: scf.for %{{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: vector.transfer_read {{.*}} {in_bounds = [true]} : tensor<?x16xf32>, vector<16xf32>
// CHECK: tensor.extract
// CHECK: vector.broadcast
// CHECK-COUNT-6: vector.fma
// CHECK-COUNT-6: vector.transfer_write
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<6x16xf32>)
// CHECK: math.tanh
// CHECK: scf.for %{{.*}} step %c1
// CHECK: scf.for %{{.*}} -> (vector<16xf32>)
// CHECK: scf.for %{{.*}} step %c8
// CHECK: vector.fma {{.*}} : vector<8xf32>
// CHECK: llvm.intr.fmuladd
// CHECK-NOT: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: return
module attributes {plan.target = "cpu:x86-64-v3"} {
  func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %d: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?x?xf32>) -> tensor<?x?xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<?x?xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%c : tensor<?x?xf32>) outs(%d : tensor<?x?xf32>) {
    ^bb0(%x: f32, %y: f32):
      %t = math.tanh %x : f32
      linalg.yield %t : f32
    } -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>
  }

  // Integers, with casts in front; a batch; the sizes known: no loops for what is not left over.
  // CHECK-LABEL: func.func @integers(
  // CHECK: vector.transfer_read {{.*}} : tensor<1x32x16xi8>, vector<16xi8>
  // CHECK: arith.extsi {{.*}} : vector<16xi8> to vector<16xi32>
  // CHECK: tensor.extract
  // CHECK: arith.extsi {{.*}} : i8 to i32
  // CHECK: arith.muli {{.*}} : vector<16xi32>
  // CHECK-NOT: vector<8xi32>
  // CHECK: return
  func.func @integers(%a: tensor<3x12x32xi8>, %b: tensor<3x32x48xi8>, %d: tensor<3x12x48xi32>) -> tensor<3x12x48xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%d : tensor<3x12x48xi32>) -> tensor<3x12x48xi32>
    %c = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                         iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<3x12x32xi8>, tensor<3x32x48xi8>) outs(%f : tensor<3x12x48xi32>) {
    ^bb0(%x: i8, %y: i8, %s: i32):
      %xx = arith.extsi %x : i8 to i32
      %yy = arith.extsi %y : i8 to i32
      %p = arith.muli %xx, %yy : i32
      %q = arith.addi %s, %p : i32
      linalg.yield %q : i32
    } -> tensor<3x12x48xi32>
    return %c : tensor<3x12x48xi32>
  }

}
