// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(recognize))' | FileCheck %s

// The scale, the mask and the softmax go into the region; so does the transpose behind the second product.
// CHECK-LABEL: func.func @bert
// CHECK: %[[R:.*]] = dlc.attention %arg0, %arg1, %arg2, %arg3 {{{.*}}kPerm = array<i64: 0, 2, 1, 3>{{.*}}keys = #dlc.dim<s>{{.*}}qPerm = array<i64: 0, 2, 1, 3>, resultPerm = array<i64: 0, 2, 1, 3>, vPerm = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: ^bb0(%[[S:.*]]: tensor<?x12x?x?xf32, {{.*}}>, %[[M:.*]]: tensor<?x1x1x?xf32
// CHECK: %[[SCALED:.*]] = dlc.div %[[S]]
// CHECK-NEXT: %[[MASKED:.*]] = dlc.add %[[SCALED]], %[[M]]
// CHECK-NEXT: dlc.yield %[[MASKED]]
// CHECK: return %[[R]]
func.func @bert(%q: tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>, %k: tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>,
                %v: tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>, %mask: tensor<?x1x1x?xf32, #dlc.info<[b, 1, 1, s]>>)
    -> tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>> {
  %root = dlc.constant<dense<5.0> : tensor<f32>> : tensor<f32>
  %dims = dlc.from_dims [#dlc.dim<b>, #dlc.dim<12>, #dlc.dim<s>, #dlc.dim<1>] : tensor<4xi64>
  %0 = dlc.matmul %q, %k {aPerm = array<i64: 0, 2, 1, 3>, bPerm = array<i64: 0, 2, 3, 1>} : (tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>, tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>) -> tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>
  %1 = dlc.div %0, %root : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>, tensor<f32>) -> tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>
  %2 = dlc.add %1, %mask : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>, tensor<?x1x1x?xf32, #dlc.info<[b, 1, 1, s]>>) -> tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>
  %3 = dlc.reduce max %2 {allAxes = false, axes = array<i64: 3>, keepdims = false} : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>) -> tensor<?x12x?xf32, #dlc.info<[b, 12, s]>>
  %4 = dlc.reshape %3, %dims {allowzero = true} : (tensor<?x12x?xf32, #dlc.info<[b, 12, s]>>, tensor<4xi64>) -> tensor<?x12x?x1xf32, #dlc.info<[b, 12, s, 1]>>
  %5 = dlc.sub %2, %4 : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>, tensor<?x12x?x1xf32, #dlc.info<[b, 12, s, 1]>>) -> tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>
  %6 = dlc.exp %5 : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>) -> tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>
  %7 = dlc.reduce sum %6 {allAxes = false, axes = array<i64: 3>, keepdims = false} : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>) -> tensor<?x12x?xf32, #dlc.info<[b, 12, s]>>
  %8 = dlc.reshape %7, %dims {allowzero = true} : (tensor<?x12x?xf32, #dlc.info<[b, 12, s]>>, tensor<4xi64>) -> tensor<?x12x?x1xf32, #dlc.info<[b, 12, s, 1]>>
  %9 = dlc.div %6, %8 : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>, tensor<?x12x?x1xf32, #dlc.info<[b, 12, s, 1]>>) -> tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>
  %10 = dlc.matmul %9, %v {bPerm = array<i64: 0, 2, 1, 3>} : (tensor<?x12x?x?xf32, #dlc.info<[b, 12, s, s]>>, tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>) -> tensor<?x12x?x32xf32, #dlc.info<[b, 12, s, 32]>>
  %11 = dlc.transpose %10 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x12x?x32xf32, #dlc.info<[b, 12, s, 32]>>) -> tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>
  return %11 : tensor<?x?x12x32xf32, #dlc.info<[b, s, 12, 32]>>
}

// What something else reads has to be in memory: the softmax is an output.
// CHECK-LABEL: func.func @weights_are_read
// CHECK-NOT: dlc.attention
// CHECK: return
func.func @weights_are_read(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %v: tensor<6x16xf32>) -> (tensor<4x16xf32>, tensor<4x6xf32>) {
  %dims = dlc.from_dims [#dlc.dim<4>, #dlc.dim<1>] : tensor<2xi64>
  %0 = dlc.matmul %q, %k : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = dlc.reduce max %0 {allAxes = false, axes = array<i64: 1>, keepdims = false} : (tensor<4x6xf32>) -> tensor<4xf32>
  %2 = dlc.reshape %1, %dims {allowzero = true} : (tensor<4xf32>, tensor<2xi64>) -> tensor<4x1xf32>
  %3 = dlc.sub %0, %2 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  %4 = dlc.exp %3 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %5 = dlc.reduce sum %4 {allAxes = false, axes = array<i64: 1>, keepdims = false} : (tensor<4x6xf32>) -> tensor<4xf32>
  %6 = dlc.reshape %5, %dims {allowzero = true} : (tensor<4xf32>, tensor<2xi64>) -> tensor<4x1xf32>
  %7 = dlc.div %4, %6 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  %8 = dlc.matmul %7, %v : (tensor<4x6xf32>, tensor<6x16xf32>) -> tensor<4x16xf32>
  return %8, %7 : tensor<4x16xf32>, tensor<4x6xf32>
}

// Queries share keys and values, which are the first ones of a cache with room for more: neither is copied. A NaN, which an empty row
// has, becomes 0.
// CHECK-LABEL: func.func @grouped
// CHECK: %[[Q:.*]] = dlc.reshape %arg0, {{.*}} -> tensor<1x3x3x?x64xf32, #dlc.info<[1, 3, 3, s, 64]>>
// CHECK: %[[K:.*]] = dlc.reshape %arg1, {{.*}} -> tensor<1x3x1x?x64xf32, #dlc.info<[1, 3, 1, cap, 64]>>
// CHECK: %[[V:.*]] = dlc.reshape %arg2, {{.*}} -> tensor<1x3x1x?x64xf32, #dlc.info<[1, 3, 1, cap, 64]>>
// CHECK: dlc.attention %[[Q]], %[[K]], %[[V]] {{{.*}}keys = #dlc.dim<t>, nanIsZero{{.*}}}
// CHECK: dlc.reshape {{.*}} -> tensor<1x9x?x64xf32
func.func @grouped(%q: tensor<1x9x?x64xf32, #dlc.info<[1, 9, s, 64]>>, %kcache: tensor<1x3x?x64xf32, #dlc.info<[1, 3, cap, 64]>>,
                   %vcache: tensor<1x3x?x64xf32, #dlc.info<[1, 3, cap, 64]>>) -> tensor<1x9x?x64xf32, #dlc.info<[1, 9, s, 64]>> {
  %zero = dlc.constant<dense<0.0> : tensor<f32>> : tensor<f32>
  %one = dlc.from_dims [#dlc.dim<1>, #dlc.dim<3>, #dlc.dim<1>, #dlc.dim<t>, #dlc.dim<64>] : tensor<5xi64>
  %wide = dlc.from_dims [#dlc.dim<1>, #dlc.dim<3>, #dlc.dim<3>, #dlc.dim<t>, #dlc.dim<64>] : tensor<5xi64>
  %flat = dlc.from_dims [#dlc.dim<1>, #dlc.dim<9>, #dlc.dim<t>, #dlc.dim<64>] : tensor<4xi64>
  %dims = dlc.from_dims [#dlc.dim<1>, #dlc.dim<9>, #dlc.dim<s>, #dlc.dim<1>] : tensor<4xi64>
  %k0 = dlc.prefix %kcache {axis = 2 : i64, length = #dlc.dim<t>} : (tensor<1x3x?x64xf32, #dlc.info<[1, 3, cap, 64]>>) -> tensor<1x3x?x64xf32, #dlc.info<[1, 3, t, 64]>>
  %k1 = dlc.reshape %k0, %one {allowzero = true} : (tensor<1x3x?x64xf32, #dlc.info<[1, 3, t, 64]>>, tensor<5xi64>) -> tensor<1x3x1x?x64xf32, #dlc.info<[1, 3, 1, t, 64]>>
  %k2 = dlc.expand %k1, %wide : (tensor<1x3x1x?x64xf32, #dlc.info<[1, 3, 1, t, 64]>>, tensor<5xi64>) -> tensor<1x3x3x?x64xf32, #dlc.info<[1, 3, 3, t, 64]>>
  %k3 = dlc.reshape %k2, %flat {allowzero = true} : (tensor<1x3x3x?x64xf32, #dlc.info<[1, 3, 3, t, 64]>>, tensor<4xi64>) -> tensor<1x9x?x64xf32, #dlc.info<[1, 9, t, 64]>>
  %v0 = dlc.prefix %vcache {axis = 2 : i64, length = #dlc.dim<t>} : (tensor<1x3x?x64xf32, #dlc.info<[1, 3, cap, 64]>>) -> tensor<1x3x?x64xf32, #dlc.info<[1, 3, t, 64]>>
  %v1 = dlc.reshape %v0, %one {allowzero = true} : (tensor<1x3x?x64xf32, #dlc.info<[1, 3, t, 64]>>, tensor<5xi64>) -> tensor<1x3x1x?x64xf32, #dlc.info<[1, 3, 1, t, 64]>>
  %v2 = dlc.expand %v1, %wide : (tensor<1x3x1x?x64xf32, #dlc.info<[1, 3, 1, t, 64]>>, tensor<5xi64>) -> tensor<1x3x3x?x64xf32, #dlc.info<[1, 3, 3, t, 64]>>
  %v3 = dlc.reshape %v2, %flat {allowzero = true} : (tensor<1x3x3x?x64xf32, #dlc.info<[1, 3, 3, t, 64]>>, tensor<4xi64>) -> tensor<1x9x?x64xf32, #dlc.info<[1, 9, t, 64]>>
  %0 = dlc.matmul %q, %k3 {bPerm = array<i64: 0, 1, 3, 2>} : (tensor<1x9x?x64xf32, #dlc.info<[1, 9, s, 64]>>, tensor<1x9x?x64xf32, #dlc.info<[1, 9, t, 64]>>) -> tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>
  %1 = dlc.reduce max %0 {allAxes = false, axes = array<i64: 3>, keepdims = false} : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>) -> tensor<1x9x?xf32, #dlc.info<[1, 9, s]>>
  %2 = dlc.reshape %1, %dims {allowzero = true} : (tensor<1x9x?xf32, #dlc.info<[1, 9, s]>>, tensor<4xi64>) -> tensor<1x9x?x1xf32, #dlc.info<[1, 9, s, 1]>>
  %3 = dlc.sub %0, %2 : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>, tensor<1x9x?x1xf32, #dlc.info<[1, 9, s, 1]>>) -> tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>
  %4 = dlc.exp %3 : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>) -> tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>
  %5 = dlc.reduce sum %4 {allAxes = false, axes = array<i64: 3>, keepdims = false} : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>) -> tensor<1x9x?xf32, #dlc.info<[1, 9, s]>>
  %6 = dlc.reshape %5, %dims {allowzero = true} : (tensor<1x9x?xf32, #dlc.info<[1, 9, s]>>, tensor<4xi64>) -> tensor<1x9x?x1xf32, #dlc.info<[1, 9, s, 1]>>
  %7 = dlc.reciprocal %6 : (tensor<1x9x?x1xf32, #dlc.info<[1, 9, s, 1]>>) -> tensor<1x9x?x1xf32, #dlc.info<[1, 9, s, 1]>>
  %8 = dlc.mul %4, %7 : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>, tensor<1x9x?x1xf32, #dlc.info<[1, 9, s, 1]>>) -> tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>
  %9 = dlc.equal %8, %8 : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>, tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>) -> tensor<1x9x?x?xi1, #dlc.info<[1, 9, s, t]>>
  %10 = dlc.where %9, %8, %zero : (tensor<1x9x?x?xi1, #dlc.info<[1, 9, s, t]>>, tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>, tensor<f32>) -> tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>
  %11 = dlc.matmul %10, %v3 : (tensor<1x9x?x?xf32, #dlc.info<[1, 9, s, t]>>, tensor<1x9x?x64xf32, #dlc.info<[1, 9, t, 64]>>) -> tensor<1x9x?x64xf32, #dlc.info<[1, 9, s, 64]>>
  return %11 : tensor<1x9x?x64xf32, #dlc.info<[1, 9, s, 64]>>
}
