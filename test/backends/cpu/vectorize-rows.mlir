// RUN: dlc-opt --vectorize-rows --canonicalize --cse %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

module attributes {plan.target = "cpu:x86-64-v3"} {
  // Softmax: a pass for the maximum; one for the sum, which leaves exp in the row of the destination; one for the quotient.
  // CHECK-LABEL: func.func @softmax(
  // CHECK-SAME: %[[X:.*]]: memref<?x?xf32>, %[[D:.*]]: memref<?x?xf32>, %[[M:.*]]: index, %[[N:.*]]: index)
  // CHECK: scf.forall (%[[T:.*]]) = (0) to (%[[M]]) step (4)
  // CHECK: scf.for %[[I:.*]] = %[[T]]
  // CHECK: scf.for %{{.*}} step %c32 iter_args
  // CHECK-COUNT-4: arith.cmpf ogt, {{.*}} : vector<8xf32>
  // CHECK-COUNT-2: arith.cmpf uno, {{.*}} : vector<8xf32>
  // CHECK: scf.for %{{.*}} step %c8 iter_args
  // CHECK: vector.maskedload %[[X]]
  // CHECK: scf.for %{{.*}} step %c32 iter_args
  // CHECK: vector.load %[[X]]
  // CHECK: math.exp {{.*}} : vector<8xf32>
  // CHECK: vector.store {{.*}}, %[[D]]
  // CHECK: vector.maskedstore %[[D]]
  // CHECK: scf.for %{{.*}} step %c16
  // CHECK: %[[E:.*]] = vector.load %[[D]]
  // CHECK: %[[Q:.*]] = arith.divf %[[E]]
  // CHECK: vector.store %[[Q]], %[[D]]
  // CHECK-NOT: linalg
  // CHECK: return
  func.func @softmax(%x: tensor<?x?xf32>, %d: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32>
      attributes {plan.operands = 1 : i64, plan.dims = [array<i64: 0, 1>, array<i64: 0, 1>], plan.schedule = #plan.schedule<tiles = [4]>} {
    %low = arith.constant 0xff800000 : f32
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%m) : tensor<?xf32>
    %ee = tensor.empty(%m, %n) : tensor<?x?xf32>
    %f0 = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f0 : tensor<?xf32>) {
    ^bb0(%a: f32, %s: f32):
      %q = arith.maximumf %a, %s : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<?x?xf32>, tensor<?xf32>) outs(%ee : tensor<?x?xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %q = arith.subf %a, %b : f32
      %p = math.exp %q : f32
      linalg.yield %p : f32
    } -> tensor<?x?xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<?x?xf32>) outs(%f1 : tensor<?xf32>) {
    ^bb0(%a: f32, %s: f32):
      %q = arith.addf %a, %s : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<?x?xf32>, tensor<?xf32>) outs(%d : tensor<?x?xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %q = arith.divf %a, %b : f32
      linalg.yield %q : f32
    } -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>
  }

  // Several innermost dims are one row; a cheap difference is made twice.
  // CHECK-LABEL: func.func @centre(
  // CHECK-DAG: memref.collapse_shape %{{.*}} {{\[}}[0], [1, 2]]
  // CHECK-NOT: memref.alloc
  // CHECK: vector.store
  // CHECK: return
  func.func @centre(%x: tensor<?x3x5xf32>, %d: tensor<?x3x5xf32>, %m: index) -> tensor<?x3x5xf32>
      attributes {plan.operands = 1 : i64, plan.dims = [array<i64: 0, -1, -1>, array<i64: 0, -1, -1>]} {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%m) : tensor<?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>], iterator_types = ["parallel", "reduction", "reduction"]}
        ins(%x : tensor<?x3x5xf32>) outs(%f : tensor<?xf32>) {
    ^bb0(%a: f32, %s: f32):
      %q = arith.addf %a, %s : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>, affine_map<(i, j, k) -> (i, j, k)>],
                         iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %sum : tensor<?x3x5xf32>, tensor<?xf32>) outs(%d : tensor<?x3x5xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %q = arith.subf %a, %b : f32
      linalg.yield %q : f32
    } -> tensor<?x3x5xf32>
    return %r : tensor<?x3x5xf32>
  }

  // Read at a computed index: all of a row, under an index that does not go along it.
  // CHECK-LABEL: func.func @maybe_broadcast(
  // CHECK-SAME: %[[X:.*]]: memref<?x?xf32>, %[[D:.*]]: memref<?xf32>, %[[M:.*]]: index, %[[N:.*]]: index, %[[R:.*]]: index)
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: scf.for %[[J:.*]] = {{.*}} step %c32
  // CHECK: %[[AT:.*]] = arith.select %{{.*}}, %c0, %[[I]] : index
  // CHECK: vector.load %[[X]][%[[AT]], %[[J]]]
  // CHECK-NOT: linalg
  // CHECK: return
  func.func @maybe_broadcast(%x: tensor<?x?xf32>, %d: tensor<?xf32>, %m: index, %n: index, %r: index) -> tensor<?xf32>
      attributes {plan.operands = 1 : i64, plan.dims = [array<i64: 2, 1>, array<i64: 0>]} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = tensor.empty(%m, %n) : tensor<?x?xf32>
    %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x?xf32>) {
    ^bb0(%s: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %one = arith.cmpi eq, %r, %c1 : index
      %at = arith.select %one, %c0, %i : index
      %v = tensor.extract %x[%at, %j] : tensor<?x?xf32>
      linalg.yield %v : f32
    } -> tensor<?x?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
    ^bb0(%a: f32, %s: f32):
      %q = arith.addf %a, %s : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    return %sum : tensor<?xf32>
  }

  // Along outer dims, and pairs: not rows.
  // CHECK-LABEL: func.func @columns(
  // CHECK: linalg.generic
  // CHECK: return
  func.func @columns(%x: tensor<?x?xf32>, %d: tensor<?xf32>, %m: index, %n: index) -> tensor<?xf32>
      attributes {plan.operands = 1 : i64, plan.dims = [array<i64: 0, 1>, array<i64: 1>]} {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
    ^bb0(%a: f32, %s: f32):
      %q = arith.addf %a, %s : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    return %sum : tensor<?xf32>
  }
}
