// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(infer-shapes))' | FileCheck %s

// How many are chosen is a symbol that is read; one that was counted is not negative, so nothing has to be checked.
// CHECK-LABEL: func.func @compact
// CHECK: dlc.read %{{.*}} as ["v0[n0]"]
// CHECK-NOT: dlc.check
// CHECK: dlc.compact {{.*}} -> tensor<?xi64, #dlc.info<["v0[n0]"]>>
func.func @compact(%mask: tensor<?xi1, #dlc.info<[n]>>) -> tensor<*xi64> {
  %0 = dlc.cast %mask {to = i64} : (tensor<?xi1, #dlc.info<[n]>>) -> tensor<*xi64>
  %count = dlc.reduce sum %0 {axes = array<i64: 0>, keepdims = false, allAxes = false} : (tensor<*xi64>) -> tensor<*xi64>
  %1 = dlc.compact %mask, %count : (tensor<?xi1, #dlc.info<[n]>>, tensor<*xi64>) -> tensor<*xi64>
  return %1 : tensor<*xi64>
}

// -----

// CHECK-LABEL: func.func @known
// CHECK: %[[P:.*]] = dlc.constant<dense<[1, 3]> : tensor<2xi64>>
// CHECK: return %[[P]]
func.func @known() -> tensor<*xi64> {
  %mask = dlc.constant<dense<[false, true, false, true]> : tensor<4xi1>> : tensor<4xi1>
  %count = dlc.constant<dense<2> : tensor<i64>> : tensor<i64>
  %0 = dlc.compact %mask, %count : (tensor<4xi1>, tensor<i64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @mask(%x: tensor<4xi8>, %count: tensor<i64>) -> tensor<*xi64> {
  // expected-error @+1 {{the mask must be a bool tensor of one axis, not one of 1 axes of 'i8'}}
  %0 = dlc.compact %x, %count : (tensor<4xi8>, tensor<i64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

// A k that the caller gives may be anything.
// CHECK-LABEL: func.func @run_time_k
// CHECK: dlc.check <select_lt({{.*}}k[0]{{.*}}, 0, 0, 1)>, {{.*}} "k is {0}; it must not be negative"
// CHECK: dlc.check <select_lt(n, {{.*}}k[0]{{.*}}, 0, 1)>, {{.*}} "k is {0}, but axis 1 has {1} entries"
// CHECK: -> tensor<?x?x3xi64, #dlc.info<[b, "k[0]", 3]>>
func.func @run_time_k(%x: tensor<?x?x3xi32, #dlc.info<[b, n, 3]>>, %k: tensor<1xi64> {dlc.name = "k"}) -> tensor<*xi64> {
  %0 = dlc.argsort %x, %k {axis = -2 : i64, lexicographic = false} : (tensor<?x?x3xi32, #dlc.info<[b, n, 3]>>, tensor<1xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

// CHECK-LABEL: func.func @slices
// CHECK: -> tensor<?xi64, #dlc.info<[n]>>
func.func @slices(%x: tensor<2x?x3xi32, #dlc.info<[2, n, 3]>>) -> tensor<*xi64> {
  %n = dlc.shape %x {start = 1 : i64, end = 2 : i64} : (tensor<2x?x3xi32, #dlc.info<[2, n, 3]>>) -> tensor<*xi64>
  %0 = dlc.argsort %x, %n {axis = 1 : i64, lexicographic = true} : (tensor<2x?x3xi32, #dlc.info<[2, n, 3]>>, tensor<*xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @k_too_large(%x: tensor<2x3xi32>) -> tensor<*xi64> {
  %k = dlc.constant<dense<4> : tensor<1xi64>> : tensor<1xi64>
  // expected-error @+1 {{k is 4, but axis 1 has 3 entries}}
  %0 = dlc.argsort %x, %k {axis = 1 : i64, lexicographic = false} : (tensor<2x3xi32>, tensor<1xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @keys(%x: tensor<2x3xf32>, %k: tensor<1xi64>) -> tensor<*xi64> {
  // expected-error @+1 {{keys must be signed integers, not 'f32'; make them with dlc.order_key}}
  %0 = dlc.argsort %x, %k {axis = 1 : i64, lexicographic = false} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

// CHECK-LABEL: func.func @strides
// CHECK: dlc.from_dims [#dlc.dim<s * 4>, #dlc.dim<4>, #dlc.dim<1>]
func.func @strides(%x: tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xi64> {
  %0 = dlc.strides %x : (tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

// CHECK-LABEL: func.func @diagonal
// CHECK: dlc.check {{.*}} "axes 0 and 2 of a diagonal differ: {0} and {1}"
// CHECK: -> tensor<?x3xf32, #dlc.info<[a, 3]>>
func.func @diagonal(%x: tensor<?x3x?xf32, #dlc.info<[a, 3, b]>>) -> tensor<*xf32> {
  %0 = dlc.diagonal %x {axes = array<i64: -1, 0>} : (tensor<?x3x?xf32, #dlc.info<[a, 3, b]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @square(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{a determinant needs square matrices, not 2 by 3}}
  %0 = dlc.triangularize %x : (tensor<2x3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @suppress
// CHECK: dlc.check {{.*}} "there are {0} boxes, but scores for {1}"
// CHECK: dlc.suppress {{.*}} -> tensor<2x?x?xi64, #dlc.info<[2, c, m]>>
func.func @suppress(%boxes: tensor<2x?x4xf32, #dlc.info<[2, n, 4]>>, %keys: tensor<2x?x?xi32, #dlc.info<[2, c, m]>>, %candidates: tensor<2x?x?xi1, #dlc.info<[2, c, m]>>,
                    %limit: tensor<i64>, %threshold: tensor<1xf32>) -> tensor<*xi64> {
  %0 = dlc.suppress %boxes, %keys, %candidates, %limit, %threshold
    : (tensor<2x?x4xf32, #dlc.info<[2, n, 4]>>, tensor<2x?x?xi32, #dlc.info<[2, c, m]>>, tensor<2x?x?xi1, #dlc.info<[2, c, m]>>, tensor<i64>, tensor<1xf32>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @boxes(%boxes: tensor<2x4xf32>, %keys: tensor<1x1x2xi32>, %candidates: tensor<1x1x2xi1>, %limit: tensor<i64>, %threshold: tensor<f32>) -> tensor<*xi64> {
  // expected-error @+1 {{boxes must have 3 axes (batch, boxes, 4 coordinates); dims are [2, 4]}}
  %0 = dlc.suppress %boxes, %keys, %candidates, %limit, %threshold : (tensor<2x4xf32>, tensor<1x1x2xi32>, tensor<1x1x2xi1>, tensor<i64>, tensor<f32>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @limit(%boxes: tensor<1x2x4xf32>, %keys: tensor<1x1x2xi32>, %candidates: tensor<1x1x2xi1>, %limit: tensor<3xi64>, %threshold: tensor<f32>) -> tensor<*xi64> {
  // expected-error @+1 {{the limit must be one number, not 3}}
  %0 = dlc.suppress %boxes, %keys, %candidates, %limit, %threshold : (tensor<1x2x4xf32>, tensor<1x1x2xi32>, tensor<1x1x2xi1>, tensor<3xi64>, tensor<f32>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @box_keys(%boxes: tensor<1x2x4xf32>, %keys: tensor<1x1x2xf32>, %candidates: tensor<1x1x2xi1>, %limit: tensor<i64>, %threshold: tensor<f32>) -> tensor<*xi64> {
  // expected-error @+1 {{keys must be signed integers, not 'f32'; make them with dlc.order_key}}
  %0 = dlc.suppress %boxes, %keys, %candidates, %limit, %threshold : (tensor<1x2x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xi1>, tensor<i64>, tensor<f32>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}
