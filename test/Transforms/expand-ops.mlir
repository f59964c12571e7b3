// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops,infer-shapes))' | FileCheck %s

// The number of averaged elements is an expression, so one program serves every size.
// CHECK-LABEL: func.func @mean
// CHECK: %[[S:.*]] = dlc.reduce sum
// CHECK: dlc.from_dims [#dlc.dim<s * 4>] : tensor<i64>
// CHECK: dlc.cast
// CHECK: %[[M:.*]] = dlc.div %[[S]]
// CHECK: dlc.reshape %[[M]]
// CHECK-SAME: -> tensor<?x1x1xf32, #dlc.info<[b, 1, 1]>>
func.func @mean(%x: tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xf32> {
  %0 = dlc.mean %x {axes = array<i64: -1, 1>, keepdims = true, allAxes = false} : (tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @reshapes
// CHECK-NOT: dlc.flatten
// CHECK-NOT: dlc.unsqueeze
// CHECK-NOT: dlc.squeeze
// CHECK: -> tensor<?x?xf32, #dlc.info<[b, s * 4]>>
// CHECK: -> tensor<?x1x?xf32, #dlc.info<[b, 1, s * 4]>>
// CHECK: -> tensor<?x?xf32, #dlc.info<[b, s * 4]>>
func.func @reshapes(%x: tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xf32> {
  %0 = dlc.flatten %x {axis = 1 : i64} : (tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xf32>
  %1 = dlc.unsqueeze %0 {axes = array<i64: 1>} : (tensor<*xf32>) -> tensor<*xf32>
  %2 = dlc.squeeze %1 {axes = array<i64: -2>} : (tensor<*xf32>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}

// CHECK-LABEL: func.func @align_axes
// CHECK: dlc.reshape %arg1
// CHECK-SAME: -> tensor<?x1xf32, #dlc.info<[s, 1]>>
func.func @align_axes(%x: tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>, %y: tensor<?xf32, #dlc.info<[s]>>) -> tensor<*xf32> {
  %0 = dlc.align_axes %y, %x {axis = 1 : i64} : (tensor<?xf32, #dlc.info<[s]>>, tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @tile
// CHECK: dlc.reshape {{.*}} -> tensor<1x?x3xf32, #dlc.info<[1, n, 3]>>
// CHECK: dlc.expand {{.*}} -> tensor<2x?x3xf32, #dlc.info<[2, n, 3]>>
// CHECK: dlc.reshape {{.*}} -> tensor<?x3xf32, #dlc.info<[n * 2, 3]>>
func.func @tile(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>) -> tensor<*xf32> {
  %repeats = dlc.constant<dense<[2, 1]> : tensor<2xi64>> : tensor<2xi64>
  %0 = dlc.tile %x, %repeats : (tensor<?x3xf32, #dlc.info<[n, 3]>>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// Transposed convolutions. Windows side by side: a product. Windows that overlap: a convolution for each place between two strides, or one with more
// filters where all have as many cells; with dilations, over x with zeros between its elements.
// CHECK-LABEL: func.func @transposed
// CHECK: dlc.matmul %{{.*}} -> tensor<1x5x5x12xf32>
// CHECK-COUNT-2: dlc.conv %arg0, %{{.*}} -> tensor<1x3x6x6xf32>
// CHECK: dlc.conv %arg0, %{{.*}} : (tensor<1x4x5x5xf32>, tensor<3x4x1x2xf32>) -> tensor<1x3x6x6xf32>
// CHECK: dlc.conv %arg0, %{{.*}} : (tensor<1x4x5x5xf32>, tensor<3x4x1x1xf32>) -> tensor<1x3x6x6xf32>
// CHECK: dlc.concat
// CHECK: dlc.conv %arg0, %{{.*}} : (tensor<1x4x5x5xf32>, tensor<12x4x2x2xf32>) -> tensor<1x12x6x6xf32>
// CHECK-NOT: dlc.concat
// CHECK: dlc.pad
// CHECK: dlc.conv %{{.*}}, %{{.*}} : (tensor<1x4x{{.*}}xf32>, tensor<3x4x4x4xf32>) -> tensor<1x3x15x15xf32>
func.func @transposed(%x: tensor<1x4x5x5xf32>, %a: tensor<4x3x2x2xf32>, %b: tensor<4x3x3x3xf32>, %c: tensor<4x3x4x4xf32>)
    -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.conv_transpose %x, %a {strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64>, outputPadding = array<i64>, outputShape = array<i64>,
    autoPad = "NOTSET", group = 1 : i64} : (tensor<1x4x5x5xf32>, tensor<4x3x2x2xf32>) -> tensor<*xf32>
  %1 = dlc.conv_transpose %x, %b {strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, outputPadding = array<i64>, outputShape = array<i64>,
    autoPad = "NOTSET", group = 1 : i64} : (tensor<1x4x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<*xf32>
  %2 = dlc.conv_transpose %x, %c {strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, outputPadding = array<i64>, outputShape = array<i64>,
    autoPad = "NOTSET", group = 1 : i64} : (tensor<1x4x5x5xf32>, tensor<4x3x4x4xf32>) -> tensor<*xf32>
  %3 = dlc.conv_transpose %x, %c {strides = array<i64: 2, 2>, dilations = array<i64: 2, 2>, pads = array<i64>, outputPadding = array<i64>, outputShape = array<i64>,
    autoPad = "NOTSET", group = 1 : i64} : (tensor<1x4x5x5xf32>, tensor<4x3x4x4xf32>) -> tensor<*xf32>
  return %0, %1, %2, %3 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
