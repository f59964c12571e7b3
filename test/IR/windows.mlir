// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes))' | FileCheck %s
// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops))' | FileCheck %s --check-prefix=EXPAND

// Sizes of windows are the same expression with SAME_UPPER and with pads that come to the same.
// CHECK-LABEL: func.func @conv
// CHECK: dlc.check <select_lt(h + -1, 0, 0, 1)>
// CHECK: dlc.conv %arg0, %arg1, %arg2
// CHECK-SAME: resolvedPads = [#dlc.dim<1>, #dlc.dim<0>]
// CHECK-SAME: -> tensor<?x8x?x5xf32, #dlc.info<[n, 8, floordiv(h + 1, 2), 5]>>
// CHECK: dlc.conv
// CHECK-SAME: -> tensor<?x8x?x3xf32, #dlc.info<[n, 8, floordiv(h + 1, 2), 3]>>
// EXPAND-LABEL: func.func @conv
// EXPAND: %[[C:.*]] = dlc.conv %arg0, %arg1 {
// EXPAND: %[[B:.*]] = dlc.reshape %arg2
// EXPAND-SAME: -> tensor<1x8x1x1xf32>
// EXPAND: dlc.add %[[C]], %[[B]]
func.func @conv(%x: tensor<?x4x?x5xf32, #dlc.info<[n, 4, h, 5]>>, %w: tensor<8x2x3x1xf32>, %b: tensor<8xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.conv %x, %w, %b {strides = array<i64: 2, 1>, dilations = array<i64>, pads = array<i64: 1, 0, 1, 0>, autoPad = "NOTSET", group = 2 : i64}
    : (tensor<?x4x?x5xf32, #dlc.info<[n, 4, h, 5]>>, tensor<8x2x3x1xf32>, tensor<8xf32>) -> tensor<*xf32>
  %1 = dlc.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64>, autoPad = "SAME_UPPER", group = 2 : i64}
    : (tensor<?x4x?x5xf32, #dlc.info<[n, 4, h, 5]>>, tensor<8x2x3x1xf32>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// With ceilMode a window may end outside, but not begin there.
// CHECK-LABEL: func.func @pool
// CHECK: dlc.pool average %arg0
// CHECK-SAME: -> tensor<1x4x3x2xf32>
// EXPAND-LABEL: func.func @pool
// EXPAND: dlc.reduce sum
func.func @pool(%x: tensor<1x4x6x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.pool average %x {kernel = array<i64: 2, 3>, strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", ceilMode = true, countPads = false}
    : (tensor<1x4x6x4xf32>) -> tensor<*xf32>
  %1 = dlc.global_pool average %x : (tensor<1x4x6x4xf32>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @recurrent
// CHECK: dlc.recurrent
// CHECK-SAME: -> (tensor<?x2x?x7xf32, #dlc.info<[t, 2, b, 7]>>, tensor<2x?x7xf32, #dlc.info<[2, b, 7]>>, tensor<2x?x7xf32, #dlc.info<[2, b, 7]>>)
func.func @recurrent(%x: tensor<?x?x5xf32, #dlc.info<[t, b, 5]>>, %w: tensor<2x28x5xf32>, %r: tensor<2x28x7xf32>) -> tensor<*xf32> {
  %y, %h, %c = dlc.recurrent lstm %x, %w, %r {hidden = 7 : i64, directions = 2 : i64, reverse = false, batchFirst = false, cell = {}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>}
    : (tensor<?x?x5xf32, #dlc.info<[t, b, 5]>>, tensor<2x28x5xf32>, tensor<2x28x7xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  return %y : tensor<*xf32>
}

// -----

// A scale that only a run chooses is a quotient of sizes that have names, and a roi that a run gives is read by each axis.
// CHECK-LABEL: func.func @resize_late
// CHECK: dlc.read %{{.*}} as
// CHECK: dlc.resize {{.*}}resolvedDenominator = {{.*}}resolvedNumerator = 
// EXPAND-LABEL: func.func @resize_late
// EXPAND: dlc.resample {{.*}}denominator = {{.*}}numerator =
// EXPAND: dlc.resample %arg0, %arg2 {{.*}}endPlace = 2
func.func @resize_late(%x: tensor<1x2x?x?xf32, #dlc.info<[1, 2, h, w]>>, %sizes: tensor<2xi64>, %roi: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.resize %x sizes(%sizes : tensor<2xi64>) {axes = array<i64: 2, 3>, mode = "linear", coordinates = "half_pixel", nearest = "floor", policy = "not_larger", cubic = -0.75 : f32,
    extrapolation = 0.0 : f32, excludeOutside = false, antialias = false} : tensor<1x2x?x?xf32, #dlc.info<[1, 2, h, w]>> -> tensor<*xf32>
  %1 = dlc.resize %x roi(%roi : tensor<4xf32>) sizes(%sizes : tensor<2xi64>) {axes = array<i64: 2, 3>, mode = "linear", coordinates = "tf_crop_and_resize", nearest = "floor", policy = "stretch", cubic = -0.75 : f32,
    extrapolation = 0.0 : f32, excludeOutside = false, antialias = false} : tensor<1x2x?x?xf32, #dlc.info<[1, 2, h, w]>> -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}
