// RUN: dlc-opt --fuse-elementwise %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// One use, element by element: merged.
// CHECK-LABEL: func.func @chain
// CHECK: %[[R:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: arith.negf
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]
func.func @chain(%x: tensor<?x?xf32>, %d: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x?xf32>) outs(%d : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<?x?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<?x?xf32>) outs(%d : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// A producer of a known size that costs more than it takes to keep it, and is used twice, stays.
// CHECK-LABEL: func.func @expensive
// CHECK-COUNT-2: linalg.generic
// CHECK: return
func.func @expensive(%x: tensor<8x?xf32>, %y: tensor<8xf32>, %d: tensor<8x?xf32>, %e: tensor<8xf32>) -> (tensor<8x?xf32>, tensor<8xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %0 : tensor<8x?xf32>, tensor<8xf32>) outs(%d : tensor<8x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x?xf32>
  return %1, %0 : tensor<8x?xf32>, tensor<8xf32>
}

// What an all-parallel op reads of its init becomes an input; named ops become generic ones; fill stays.
// CHECK-LABEL: func.func @forms
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[M:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]{{.*}} outs(%[[F]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[M]] : {{.*}}) outs(%{{.*}} : tensor<4x4xf32>)
func.func @forms(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %d: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%d : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x4xf32>) outs(%1 : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
