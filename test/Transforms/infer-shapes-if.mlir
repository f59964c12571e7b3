// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes))' | FileCheck %s

// A condition that is known decides before the branches are looked at: the other one need not even have a shape.
// CHECK-LABEL: func.func @decided
// CHECK-NOT: dlc.if
// CHECK-NOT: dlc.matmul
// CHECK: dlc.neg %{{.*}} : (tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<?x4xf32, #dlc.info<[n, 4]>>
func.func @decided(%x: tensor<?x4xf32, #dlc.info<[n, 4]>>, %w: tensor<5x6xf32>) -> tensor<*xf32> {
  %dims = dlc.shape %x {start = 1 : i64} : (tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<*xi64>
  %five = dlc.constant<dense<5> : tensor<1xi64>> : tensor<1xi64>
  %c = dlc.equal %dims, %five : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi1>
  %r = dlc.if %c : tensor<*xi1> -> tensor<*xf32> {
    %0 = dlc.matmul %x, %w : (tensor<?x4xf32, #dlc.info<[n, 4]>>, tensor<5x6xf32>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  } else {
    %0 = dlc.neg %x : (tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  }
  return %r : tensor<*xf32>
}

// -----

// Dims that differ are chosen by the condition.
// CHECK-LABEL: func.func @chosen
// CHECK: dlc.read %arg0 as ["v0[0]"]
// CHECK: dlc.if %arg0 attributes {dimsResult = array<i64: -1>, resolvedCondition = #dlc.dim<"v0[0]">}
// CHECK-SAME: tensor<?x4xf32, #dlc.info<[select_eq("v0[0]", 0, n, n * 2), 4]>>
func.func @chosen(%c: tensor<i1>, %x: tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<*xf32> {
  %r = dlc.if %c : tensor<i1> -> tensor<*xf32> {
    %0 = dlc.concat %x, %x {axis = 0 : i64} : (tensor<?x4xf32, #dlc.info<[n, 4]>>, tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  } else {
    dlc.yield %x : tensor<?x4xf32, #dlc.info<[n, 4]>>
  }
  return %r : tensor<*xf32>
}

// -----

// Dims that one branch reads from its data are a result of both, and read behind them.
// CHECK-LABEL: func.func @read
// CHECK: %[[R:.*]]:2 = dlc.if %arg0 attributes {dimsResult = array<i64: 1>
// CHECK: dlc.read %{{.*}} as ["v1[0]"]
// CHECK: %[[T:.*]] = dlc.from_dims [#dlc.dim<"v1[0]">]
// CHECK-NEXT: dlc.yield %{{.*}}, %[[T]]
// CHECK: %[[E:.*]] = dlc.from_dims [#dlc.dim<n>]
// CHECK-NEXT: dlc.yield %{{.*}}, %[[E]]
// CHECK: dlc.read %[[R]]#1 as ["v2[0]"]
// CHECK: return %[[R]]#0 : tensor<?xf32, #dlc.info<["v2[0]"]>>
func.func @read(%c: tensor<i1>, %k: tensor<1xi64>, %v: tensor<f32>, %x: tensor<?xf32, #dlc.info<[n]>>) -> tensor<*xf32> {
  %r = dlc.if %c : tensor<i1> -> tensor<*xf32> {
    %0 = dlc.add %k, %k : (tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
    %1 = dlc.expand %v, %0 : (tensor<f32>, tensor<*xi64>) -> tensor<*xf32>
    dlc.yield %1 : tensor<*xf32>
  } else {
    dlc.yield %x : tensor<?xf32, #dlc.info<[n]>>
  }
  return %r : tensor<*xf32>
}

// -----

// A branch without a shape fails when a run takes it.
// CHECK-LABEL: func.func @unusable
// CHECK: dlc.if
// CHECK-NEXT: dlc.check <0>, <0>, <0>, "inner dims 4 and 5 of the matrix product differ: 4 and 5"
// CHECK: dlc.expand
// CHECK: } else {
// CHECK-NEXT: dlc.yield %arg1
func.func @unusable(%c: tensor<i1>, %x: tensor<?x4xf32, #dlc.info<[n, 4]>>, %w: tensor<5x6xf32>) -> tensor<*xf32> {
  %r = dlc.if %c : tensor<i1> -> tensor<*xf32> {
    %0 = dlc.matmul %x, %w : (tensor<?x4xf32, #dlc.info<[n, 4]>>, tensor<5x6xf32>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  } else {
    dlc.yield %x : tensor<?x4xf32, #dlc.info<[n, 4]>>
  }
  return %r : tensor<*xf32>
}

// -----

// Branches of different ranks: what follows is made for one of them.
// CHECK-LABEL: func.func @ranks
// CHECK: dlc.if
// CHECK-NEXT: dlc.check <0>, <0>, <0>, "the condition takes the then branch, which gives a tensor of 2 axes; what follows is compiled for the 1 axes of the other branch"
// CHECK: } else {
// CHECK-NEXT: dlc.yield %arg1
// CHECK: dlc.concat
// CHECK-SAME: -> tensor<4xf32>
func.func @ranks(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<*xf32> {
  %r = dlc.if %c : tensor<i1> -> tensor<*xf32> {
    %0 = dlc.unsqueeze %x {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  } else {
    dlc.yield %x : tensor<2xf32>
  }
  %1 = dlc.concat %r, %x {axis = 0 : i64} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  return %1 : tensor<*xf32>
}
