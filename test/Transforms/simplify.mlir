// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes,simplify))' | FileCheck %s

// CHECK-LABEL: func.func @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = dlc.constant<dense<1.0> : tensor<f32>> : tensor<f32>
  %zero = dlc.constant<dense<0.0> : tensor<f32>> : tensor<f32>
  %0 = dlc.mul %one, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = dlc.div %0, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = dlc.sub %1, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = dlc.cast %2 {to = f32} : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -0 + 0 is 0, 1 / x is no x, and a broadcast is no identity.
// CHECK-LABEL: func.func @not_neutral
// CHECK: dlc.add
// CHECK: dlc.div
// CHECK: dlc.mul
func.func @not_neutral(%x: tensor<4xf32>, %y: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = dlc.constant<dense<1.0> : tensor<4xf32>> : tensor<4xf32>
  %zero = dlc.constant<dense<0.0> : tensor<f32>> : tensor<f32>
  %0 = dlc.add %x, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = dlc.div %one, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dlc.mul %y, %one : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @transposes
// CHECK-NEXT: return %arg0
func.func @transposes(%x: tensor<?x?xf32, #dlc.info<[a, b]>>) -> tensor<*xf32> {
  %0 = dlc.transpose %x : (tensor<?x?xf32, #dlc.info<[a, b]>>) -> tensor<*xf32>
  %1 = dlc.transpose %0 {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
  return %1 : tensor<*xf32>
}

// The zero of the second shape means zero, not `copy`.
// CHECK-LABEL: func.func @reshapes
// CHECK: %[[R:.*]] = dlc.reshape %arg0
// CHECK-SAME: allowzero = true
// CHECK-SAME: -> tensor<0x3xf32>
// CHECK-NEXT: return %[[R]]
func.func @reshapes(%x: tensor<3x0xf32>) -> tensor<*xf32> {
  %first = dlc.constant<dense<[0]> : tensor<1xi64>> : tensor<1xi64>
  %second = dlc.constant<dense<[0, 3]> : tensor<2xi64>> : tensor<2xi64>
  %0 = dlc.reshape %x, %first {allowzero = true} : (tensor<3x0xf32>, tensor<1xi64>) -> tensor<*xf32>
  %1 = dlc.reshape %0, %second {allowzero = true} : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %1 : tensor<*xf32>
}

// A product reads through a transpose that leaves its terms, or the second operand's columns, side by side; through any of a constant.
// CHECK-LABEL: func.func @products
// CHECK: dlc.matmul %arg0, %arg1 {aPerm = array<i64: 0, 2, 1, 3>, bPerm = array<i64: 0, 2, 3, 1>} : ({{.*}}tensor<2x?x12x32xf32{{.*}}, tensor<2x?x12x32xf32{{.*}})
// CHECK: %[[T:.*]] = dlc.transpose %arg2
// CHECK: dlc.matmul %[[T]], %{{.*}} {bPerm = array<i64: 1, 0>}
func.func @products(%q: tensor<2x?x12x32xf32, #dlc.info<[2, "s", 12, 32]>>, %k: tensor<2x?x12x32xf32, #dlc.info<[2, "t", 12, 32]>>, %a: tensor<8x4xf32>)
    -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.transpose %q {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x?x12x32xf32, #dlc.info<[2, "s", 12, 32]>>) -> tensor<*xf32>
  %1 = dlc.transpose %k {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x?x12x32xf32, #dlc.info<[2, "t", 12, 32]>>) -> tensor<*xf32>
  %2 = dlc.transpose %1 {perm = array<i64: 0, 1, 3, 2>} : (tensor<*xf32>) -> tensor<*xf32>
  %3 = dlc.matmul %0, %2 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %w = dlc.constant<dense<1.0> : tensor<3x8xf32>> : tensor<3x8xf32>
  %4 = dlc.transpose %w {perm = array<i64: 1, 0>} : (tensor<3x8xf32>) -> tensor<*xf32>
  %5 = dlc.transpose %a {perm = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<*xf32>
  %6 = dlc.matmul %5, %4 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %3, %6 : tensor<*xf32>, tensor<*xf32>
}
