// RUN: dlc-opt --vectorize-reductions --canonicalize --cse %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

module attributes {plan.target = "cpu:x86-64-v3"} {
  // Four vectors at a time, one vector, single elements; then the lanes, halves with halves.
  // CHECK-LABEL: func.func @sum(
  // CHECK: scf.for %{{.*}} step %c1 iter_args
  // CHECK: %[[M:.*]]:4 = scf.for %{{.*}} step %c32 iter_args
  // CHECK-COUNT-4: vector.transfer_read {{.*}} vector<8xf32>
  // CHECK: %[[V:.*]] = scf.for %{{.*}} step %c8 iter_args(%{{.*}} = %[[M]]#0)
  // CHECK: arith.mulf {{.*}} : vector<8xf32>
  // CHECK: scf.for %{{.*}} step %c1 iter_args
  // CHECK: tensor.extract
  // CHECK: arith.addf %[[V]], %[[M]]#1 : vector<8xf32>
  // CHECK: arith.addf %[[M]]#2, %[[M]]#3 : vector<8xf32>
  // CHECK: arith.addf {{.*}} : vector<4xf32>
  // CHECK: arith.addf {{.*}} : vector<2xf32>
  // CHECK: arith.addf {{.*}} : vector<1xf32>
  // CHECK: tensor.insert
  // CHECK-NOT: linalg.generic
  // CHECK: return
  func.func @sum(%x: tensor<?x?xf32>, %d: tensor<?xf32>) -> tensor<?xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %a : f32
      %q = arith.addf %p, %b : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    return %s : tensor<?xf32>
  }

  // A long body has one accumulator.
  // CHECK-LABEL: func.func @long(
  // CHECK: scf.for %{{.*}} step %c8
  // CHECK: math.exp {{.*}} : vector<8xf32>
  // CHECK: scf.for %{{.*}} step %c1
  // CHECK: math.exp {{.*}} : f32
  func.func @long(%x: tensor<?xf32>, %d: tensor<f32>) -> tensor<f32> {
    %s = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<?xf32>) outs(%d : tensor<f32>) {
    ^bb0(%a: f32, %b: f32):
      %p = math.exp %a : f32
      %q = arith.addf %p, %b : f32
      linalg.yield %q : f32
    } -> tensor<f32>
    return %s : tensor<f32>
  }

  // Not contiguous along what is summed up; a maximum; integers: loops in order, which LLVM may vectorise.
  // CHECK-LABEL: func.func @others(
  // CHECK-COUNT-3: linalg.generic
  // CHECK: return
  func.func @others(%x: tensor<?x?xf32>, %y: tensor<?x?xi32>, %d: tensor<?xf32>, %e: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) {
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%d : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %a, %b : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%d : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.maximumf %a, %b : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<?x?xi32>) outs(%e : tensor<?xi32>) {
    ^bb0(%a: i32, %b: i32):
      %q = arith.addi %a, %b : i32
      linalg.yield %q : i32
    } -> tensor<?xi32>
    return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xi32>
  }
}
