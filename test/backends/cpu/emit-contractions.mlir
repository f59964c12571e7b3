// RUN: dlc-opt --emit-contractions --canonicalize --cse %s | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

module attributes {plan.target = "cpu:x86-64-v3"} {
  // Tiles of the launch; in them 6 rows at a time, 16 columns at a time, then 8, then one; then a kernel for each number of rows that
  // may be left. The long epilogue follows row by row, from a buffer of sums.
  // CHECK-LABEL: func.func @dynamic(
  // CHECK: scf.forall ({{.*}}) = (0, 0) to ({{.*}}) step (96, 64) shared_outs
  // CHECK: tensor.empty() : tensor<6x64xf32>
  // CHECK: scf.for %{{.*}} step %c64
  // CHECK: scf.for %{{.*}} step %c6
  // CHECK: scf.for %{{.*}} step %c16
  // CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // CHECK-COUNT-2: vector.transfer_read {{.*}} : tensor<?x?xf32>, vector<8xf32>
  // CHECK: tensor.extract
  // CHECK: vector.broadcast
  // CHECK-COUNT-12: vector.fma
  // CHECK-COUNT-12: vector.transfer_write {{.*}} : vector<8xf32>, tensor<6x64xf32>
  // CHECK: scf.for %{{.*}} step %c8
  // CHECK-COUNT-6: vector.fma
  // CHECK: scf.for %{{.*}} step %c1
  // CHECK-COUNT-6: llvm.intr.fmuladd
  // CHECK: math.tanh {{.*}} : vector<8xf32>
  // CHECK: vector.create_mask {{.*}} : vector<8xi1>
  // CHECK: math.tanh
  // CHECK: scf.index_switch
  // CHECK: case 1 {
  // One row leaves registers for 64 columns.
  // CHECK: scf.for %{{.*}} step %c64
  // CHECK-COUNT-8: vector.fma
  // CHECK: case 5 {
  // CHECK: default {
  // CHECK: scf.forall.in_parallel
  // CHECK: } {plan.cut}
  // CHECK-NOT: linalg.generic
  // CHECK: return
  func.func @dynamic(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %d: tensor<?x?xf32>) -> tensor<?x?xf32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64, plan.schedule = #plan.schedule<tiles = [96, 64]>} {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?x?xf32>) -> tensor<?x?xf32>
    %c = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<?x?xf32>
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%c : tensor<?x?xf32>) outs(%d : tensor<?x?xf32>) {
    ^bb0(%x: f32, %y: f32):
      %t = math.tanh %x : f32
      linalg.yield %t : f32
    } -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>
  }

  // Known sizes: no loops for what is not left over. The packed operand is read in its panels; the last one is followed by zeros, and what
  // is not there is not written. The short epilogue works on the accumulators.
  // CHECK-LABEL: func.func @packed(
  // CHECK: scf.for %{{.*}} step %c16
  // CHECK: vector.transfer_read %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}]{{.*}} : tensor<3x32x16xf32>, vector<8xf32>
  // CHECK-COUNT-12: vector.fma
  // CHECK: vector.transfer_read %{{.*}}[%{{.*}}]{{.*}} : tensor<37xf32>, vector<8xf32>
  // CHECK: arith.addf
  // CHECK-COUNT-12: vector.fma
  // CHECK: vector.constant_mask [5] : vector<8xi1>
  // CHECK: vector.transfer_read %{{.*}}, %{{.*}} {in_bounds = [true]} : tensor<37xf32>, vector<8xf32>
  // CHECK: vector.transfer_write %{{.*}}, %{{.*}} {in_bounds = [true]} : vector<8xf32>, tensor<7x37xf32>
  // One row is left.
  // CHECK-NOT: scf.index_switch
  // CHECK: return
  func.func @packed(%a: tensor<7x32xf32>, %b: tensor<3x32x16xf32>, %bias: tensor<37xf32>, %d: tensor<7x37xf32>) -> tensor<7x37xf32>
      attributes {plan.operands = 3 : i64, plan.destinations = 1 : i64} {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<32x37xf32>
    %plain = linalg.unpack %b outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [16] into %e : tensor<3x32x16xf32> -> tensor<32x37xf32>
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<7x37xf32>) -> tensor<7x37xf32>
    %c = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %plain : tensor<7x32xf32>, tensor<32x37xf32>) outs(%f : tensor<7x37xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<7x37xf32>
    %r = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%c, %bias : tensor<7x37xf32>, tensor<37xf32>) outs(%d : tensor<7x37xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.addf %x, %y : f32
      linalg.yield %t : f32
    } -> tensor<7x37xf32>
    return %r : tensor<7x37xf32>
  }

  // The terms of the sums lie side by side: vectors run along them.
  // CHECK-LABEL: func.func @terms(
  // CHECK: scf.for {{.*}} step %c8 {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // CHECK-COUNT-8: vector.fma
  // CHECK: scf.for
  // CHECK-COUNT-8: llvm.intr.fmuladd
  // CHECK: vector.extract_strided_slice
  func.func @terms(%a: tensor<8x?xf32>, %b: tensor<8x?xf32>, %d: tensor<8x8xf32>) -> tensor<8x8xf32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64} {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x?xf32>, tensor<8x?xf32>) outs(%f : tensor<8x8xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<8x8xf32>
    return %c : tensor<8x8xf32>
  }

  // Integers, with casts in front; a batch.
  // CHECK-LABEL: func.func @integers(
  // CHECK: scf.for
  // CHECK: vector.transfer_read {{.*}} : tensor<3x32x48xi8>, vector<8xi8>
  // CHECK: arith.extsi {{.*}} : vector<8xi8> to vector<8xi32>
  // CHECK: tensor.extract
  // CHECK: arith.extsi {{.*}} : i8 to i32
  // CHECK: arith.muli {{.*}} : vector<8xi32>
  // CHECK: return
  func.func @integers(%a: tensor<3x12x32xi8>, %b: tensor<3x32x48xi8>, %d: tensor<3x12x48xi32>) -> tensor<3x12x48xi32>
      attributes {plan.operands = 2 : i64, plan.destinations = 1 : i64} {
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

  // An epilogue that reads at computed indices follows element by element.
  // CHECK-LABEL: func.func @indexed(
  // CHECK: vector.fma
  // CHECK: scf.for
  // CHECK: %[[SUM:.*]] = tensor.extract
  // CHECK: %[[OTHER:.*]] = tensor.extract %{{.*}}[%c0] : tensor<?xf32>
  // CHECK: arith.mulf %[[SUM]], %[[OTHER]]
  func.func @indexed(%a: tensor<12x32xf32>, %b: tensor<32x16xf32>, %other: tensor<?xf32>, %d: tensor<12x16xf32>) -> tensor<12x16xf32>
      attributes {plan.operands = 3 : i64, plan.destinations = 1 : i64} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<12x16xf32>) -> tensor<12x16xf32>
    %c = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x32xf32>, tensor<32x16xf32>) outs(%f : tensor<12x16xf32>) {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %s, %p : f32
      linalg.yield %q : f32
    } -> tensor<12x16xf32>
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%c : tensor<12x16xf32>) outs(%d : tensor<12x16xf32>) {
    ^bb0(%x: f32, %z: f32):
      %o = tensor.extract %other[%c0] : tensor<?xf32>
      %t = arith.mulf %x, %o : f32
      linalg.yield %t : f32
    } -> tensor<12x16xf32>
    return %r : tensor<12x16xf32>
  }
}
