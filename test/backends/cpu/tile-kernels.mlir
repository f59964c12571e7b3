// RUN: dlc-opt --tile-kernels --canonicalize --cse %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The reduction that feeds the result is computed tile by tile, in memory of the tile's size.
// CHECK-LABEL: func.func @fused(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[D:.*]]: tensor<?x?xf32>
// CHECK: scf.forall (%[[I:.*]]) = (0) to (%{{.*}}) step (16) shared_outs(%[[O:.*]] = %[[D]])
// CHECK: %[[N:.*]] = affine.min
// CHECK: tensor.empty(%[[N]]) : tensor<?xf32>
// CHECK: linalg.fill
// CHECK: linalg.generic {{.*}}"parallel", "reduction"
// CHECK: linalg.generic {{.*}}"parallel", "parallel"
// CHECK: tensor.parallel_insert_slice {{.*}} into %[[O]][%[[I]], 0]
// CHECK: {plan.cut}
func.func @fused(%x: tensor<?x?xf32>, %d: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0, 1>, array<i64: 0, 1>], plan.schedule = #plan.schedule<tiles = [16, 0]>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  %ee = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%ee : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Of two results one feeds the other: one loop makes both.
// CHECK-LABEL: func.func @both(
// CHECK: %[[R:.*]]:2 = scf.forall
// CHECK-NOT: scf.forall (
// CHECK: return %[[R]]#{{[01]}}, %[[R]]#{{[01]}}
func.func @both(%x: tensor<?xf32>, %d: tensor<?xf32>, %e: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) attributes {
    plan.operands = 1 : i64, plan.destinations = 2 : i64, plan.dims = [array<i64: 0>, array<i64: 0>, array<i64: 0>], plan.schedule = #plan.schedule<tiles = [16]>} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%d : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = math.exp %a : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%0 : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.negf %a : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// Tiles would overlap in the result: not cut.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT: scf.forall
// CHECK: return
func.func @whole(%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) -> tensor<?xf32> attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0>, array<i64: 0>], plan.schedule = #plan.schedule<tiles = [16, 4]>} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%d : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = math.exp %a : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// Kernel ops are cut as they are.
// CHECK-LABEL: func.func @scan(
// CHECK: scf.forall
// CHECK: dlc.kernel_scan
func.func @scan(%x: tensor<?x8xf32>, %d: tensor<?x8xf32>, %n: index) -> tensor<?x8xf32> attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0, -1>, array<i64: 0, -1>], plan.schedule = #plan.schedule<tiles = [16]>} {
  %0 = dlc.kernel_scan sum ins(%x : tensor<?x8xf32>) outs(%d : tensor<?x8xf32>) {axis = 1 : i64, exclusive = false, reverse = false} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// All axes but those that are gone through as wholes; the operand is longer than the result along them.
// CHECK-LABEL: func.func @argsort(
// CHECK: scf.forall
// CHECK: dlc.kernel_argsort ins(%{{.*}} : tensor<?x8xi32>) outs(%{{.*}} : tensor<?x3xi64>)
func.func @argsort(%x: tensor<?x8xi32>, %d: tensor<?x3xi64>, %n: index) -> tensor<?x3xi64> attributes {
    plan.operands = 1 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0, -1>, array<i64: 0, -1>], plan.schedule = #plan.schedule<tiles = [16]>} {
  %0 = dlc.kernel_argsort ins(%x : tensor<?x8xi32>) outs(%d : tensor<?x3xi64>) {axis = 1 : i64, lexicographic = false} -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// Along an axis that no index decides on, a tile takes the updates that change it; there may be fewer than elements.
// CHECK-LABEL: func.func @scatter(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>, %[[INDEX:.*]]: tensor<?x3xi64>, %[[UPDATE:.*]]: tensor<?x3xf32>, %[[D:.*]]: tensor<?x8xf32>
// CHECK: scf.forall (%[[I:.*]]) = (0) to (%{{.*}}) step (4)
// CHECK: affine.min
// CHECK: tensor.extract_slice %[[X]][%[[I]], 0]
// CHECK: tensor.extract_slice %[[UPDATE]]
// CHECK: tensor.extract_slice %[[INDEX]]
// CHECK: dlc.kernel_scatter
// CHECK: {plan.cut}
func.func @scatter(%x: tensor<?x8xf32>, %i: tensor<?x3xi64>, %u: tensor<?x3xf32>, %d: tensor<?x8xf32>, %m: index, %k: index) -> tensor<?x8xf32> attributes {
    plan.operands = 3 : i64, plan.destinations = 1 : i64, plan.dims = [array<i64: 0, -1>, array<i64: 1, -1>, array<i64: 1, -1>, array<i64: 0, -1>], plan.schedule = #plan.schedule<tiles = [4]>} {
  %0 = dlc.kernel_scatter ins(%x, %i, %u : tensor<?x8xf32>, tensor<?x3xi64>, tensor<?x3xf32>) outs(%d : tensor<?x8xf32>) {axis = 1 : i64, element = f32} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
