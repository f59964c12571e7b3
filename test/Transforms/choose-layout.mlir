// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops,choose-layout))' | FileCheck %s
// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops,choose-layout{winograd=false}))' | FileCheck %s --check-prefix=PLAIN

// Channels go last once, and come back once: what lies between takes the order along. A convolution of one cell is a product.
// CHECK-LABEL: func.func @chain
// CHECK: %[[X:.*]] = dlc.transpose %arg0 {perm = array<i64: 0, 2, 3, 1>} : (tensor<?x3x?x8xf32, {{.*}}>) -> tensor<?x?x8x3xf32, #dlc.info<[n, h, 8, 3]>>
// CHECK: %[[A:.*]] = dlc.conv %[[X]], %{{.*}} {{{.*}}channelsLast{{.*}}} : (tensor<?x?x8x3xf32, {{.*}}>, tensor<1x3x3x3x4xf32>) -> tensor<?x?x8x4xf32, #dlc.info<[n, h, 8, 4]>>
// CHECK-NOT: dlc.transpose %{{.*}} : (tensor<?x
// CHECK: %[[R:.*]] = dlc.relu %[[A]]
// CHECK: %[[P:.*]] = dlc.pool max %[[R]] {{{.*}}channelsLast
// CHECK: %[[M:.*]] = dlc.matmul %[[P]], %{{.*}} -> tensor<?x?x4x5xf32
// CHECK: %[[C:.*]] = dlc.concat %[[P]], %[[M]] {axis = 3 : i64}
// CHECK: dlc.reduce sum %[[C]] {{{.*}}axes = array<i64: 1, 2>
// CHECK: %[[G:.*]] = dlc.mul %[[C]], %{{.*}} : (tensor<?x?x4x9xf32, {{.*}}>, tensor<?x1x1x9xf32, {{.*}}>)
// CHECK: %[[Y:.*]] = dlc.transpose %[[G]] {perm = array<i64: 0, 3, 1, 2>}
// CHECK: return %[[Y]]
func.func @chain(%x: tensor<?x3x?x8xf32, #dlc.info<[n, 3, h, 8]>>, %w: tensor<4x3x3x3xf32>, %p: tensor<5x4x1x1xf32>) -> tensor<*xf32> {
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<?x3x?x8xf32, #dlc.info<[n, 3, h, 8]>>, tensor<4x3x3x3xf32>) -> tensor<*xf32>
  %1 = dlc.relu %0 : (tensor<*xf32>) -> tensor<*xf32>
  %2 = dlc.pool max %1 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", ceilMode = false, countPads = false}
    : (tensor<*xf32>) -> tensor<*xf32>
  %3 = dlc.conv %2, %p {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<*xf32>, tensor<5x4x1x1xf32>) -> tensor<*xf32>
  %4 = dlc.concat %2, %3 {axis = 1 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %5 = dlc.global_pool average %4 : (tensor<*xf32>) -> tensor<*xf32>
  %6 = dlc.mul %4, %5 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %6 : tensor<*xf32>
}

// Scales and sums of channels go into the filters; a convolution of each channel by itself is an op of its own.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[W:.*]] = dlc.mul %{{.*}}, %{{.*}} : (tensor<4x1x3x3xf32>, tensor<4x1x1x1xf32>) -> tensor<4x1x3x3xf32>
// CHECK: dlc.depthwise_conv %{{.*}}, %{{.*}} : (tensor<1x6x6x4xf32>, tensor<3x3x4xf32>) -> tensor<1x4x4x4xf32>
// CHECK-NOT: dlc.mul
// CHECK: dlc.add %{{.*}} : (tensor<1x4x4x4xf32>, tensor<1x1x1x4xf32>) -> tensor<1x4x4x4xf32>
// CHECK-NOT: dlc.mul
// CHECK-NOT: dlc.add
// CHECK: return
func.func @scaled(%x: tensor<1x4x6x6xf32>) -> tensor<*xf32> {
  %w = dlc.constant<dense<0.5> : tensor<4x1x3x3xf32>> : tensor<4x1x3x3xf32>
  %s = dlc.constant<dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]> : tensor<4x1x1xf32>> : tensor<4x1x1xf32>
  %b = dlc.constant<dense<[[[5.0]], [[6.0]], [[7.0]], [[8.0]]]> : tensor<4x1x1xf32>> : tensor<4x1x1xf32>
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 4 : i64}
    : (tensor<1x4x6x6xf32>, tensor<4x1x3x3xf32>) -> tensor<*xf32>
  %1 = dlc.sub %0, %b : (tensor<*xf32>, tensor<4x1x1xf32>) -> tensor<*xf32>
  %2 = dlc.mul %1, %s : (tensor<*xf32>, tensor<4x1x1xf32>) -> tensor<*xf32>
  %3 = dlc.add %2, %b : (tensor<*xf32>, tensor<4x1x1xf32>) -> tensor<*xf32>
  return %3 : tensor<*xf32>
}

// A model that has channels last: its own transposes go.
// CHECK-LABEL: func.func @last
// CHECK-NOT: dlc.transpose %arg0
// CHECK: %[[A:.*]] = dlc.conv %arg0
// CHECK-NEXT: return %[[A]]
func.func @last(%x: tensor<1x6x6x4xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<*xf32> {
  %0 = dlc.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x6x6x4xf32>) -> tensor<*xf32>
  %1 = dlc.conv %0, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<*xf32>, tensor<8x4x3x3xf32>) -> tensor<*xf32>
  %2 = dlc.transpose %1 {perm = array<i64: 0, 2, 3, 1>} : (tensor<*xf32>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}

// Channels that are shuffled move among themselves; positions that are joined for an attention are rows at once.
// CHECK-LABEL: func.func @moved
// CHECK: %[[A:.*]] = dlc.conv {{.*}} -> tensor<1x4x4x8xf32>
// CHECK: %[[T:.*]] = dlc.transpose %{{.*}} {perm = array<i64: 0, 1, 2, 4, 3>} : (tensor<1x4x4x2x4xf32>) -> tensor<1x4x4x4x2xf32>
// CHECK: %[[S:.*]] = dlc.reshape %[[T]]
// CHECK-SAME: -> tensor<1x4x4x8xf32>
// CHECK: %[[R:.*]] = dlc.reshape %[[S]]
// CHECK-SAME: -> tensor<1x16x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @moved(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<*xf32> {
  %parted = dlc.from_dims [#dlc.dim<1>, #dlc.dim<2>, #dlc.dim<4>, #dlc.dim<4>, #dlc.dim<4>] : tensor<5xi64>
  %joined = dlc.from_dims [#dlc.dim<1>, #dlc.dim<8>, #dlc.dim<4>, #dlc.dim<4>] : tensor<4xi64>
  %rows = dlc.from_dims [#dlc.dim<1>, #dlc.dim<8>, #dlc.dim<16>] : tensor<3xi64>
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<*xf32>
  %1 = dlc.reshape %0, %parted {allowzero = true} : (tensor<*xf32>, tensor<5xi64>) -> tensor<*xf32>
  %2 = dlc.transpose %1 {perm = array<i64: 0, 2, 1, 3, 4>} : (tensor<*xf32>) -> tensor<*xf32>
  %3 = dlc.reshape %2, %joined {allowzero = true} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
  %4 = dlc.reshape %3, %rows {allowzero = true} : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
  %5 = dlc.transpose %4 {perm = array<i64: 0, 2, 1>} : (tensor<*xf32>) -> tensor<*xf32>
  return %5 : tensor<*xf32>
}

// Winograd's algorithm where windows are many, with tiles of 4 x 4 or 2 x 2 results: an unknown axis counts as a long one. Not for strides, few channels,
// or filters that a run computes.
// CHECK-LABEL: func.func @winograd
// CHECK: %[[M:.*]] = dlc.constant<dense<{{.*}} : tensor<36x9xf64>
// CHECK: %[[U:.*]] = dlc.matmul %[[M]], %{{.*}} -> tensor<36x256xf64>
// CHECK: dlc.winograd_conv %{{.*}}, %{{.*}} {{{.*}}tile = 4 : i64{{.*}} : (tensor<?x?x?x16xf32, {{.*}}>, tensor<36x16x16xf32>) -> tensor<?x?x?x16xf32, #dlc.info<[n, h, w, 16]>>
// CHECK: dlc.winograd_conv %{{.*}} {{{.*}}tile = 2 : i64{{.*}} : (tensor<1x16x14x16xf32>, tensor<16x16x16xf32>) -> tensor<1x14x14x16xf32>
// CHECK-COUNT-4: dlc.conv
// PLAIN-LABEL: func.func @winograd
// PLAIN-NOT: winograd_conv
func.func @winograd(%x: tensor<?x16x?x?xf32, #dlc.info<[n, 16, h, w]>>, %y: tensor<1x16x16x14xf32>, %z: tensor<1x15x60x60xf32>, %v: tensor<16x16x3x3xf32>)
    -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %w = dlc.constant<dense<0.5> : tensor<16x16x3x3xf32>> : tensor<16x16x3x3xf32>
  %narrow = dlc.constant<dense<0.5> : tensor<16x15x3x3xf32>> : tensor<16x15x3x3xf32>
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<?x16x?x?xf32, #dlc.info<[n, 16, h, w]>>, tensor<16x16x3x3xf32>) -> tensor<*xf32>
  %1 = dlc.conv %y, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64: 0, 1, 0, 1>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<1x16x16x14xf32>, tensor<16x16x3x3xf32>) -> tensor<*xf32>
  %2 = dlc.conv %y, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<1x16x16x14xf32>, tensor<16x16x3x3xf32>) -> tensor<*xf32>
  %3 = dlc.conv %x, %w {strides = array<i64: 2, 1>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<?x16x?x?xf32, #dlc.info<[n, 16, h, w]>>, tensor<16x16x3x3xf32>) -> tensor<*xf32>
  %4 = dlc.conv %z, %narrow {strides = array<i64>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<1x15x60x60xf32>, tensor<16x15x3x3xf32>) -> tensor<*xf32>
  %5 = dlc.conv %x, %v {strides = array<i64>, dilations = array<i64>, pads = array<i64: 1, 1, 1, 1>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<?x16x?x?xf32, #dlc.info<[n, 16, h, w]>>, tensor<16x16x3x3xf32>) -> tensor<*xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// Sizes that a run finds to be the same are as good as the same: what is rounded in two ways and added keeps the order.
// CHECK-LABEL: func.func @rounded
// CHECK: dlc.add %{{.*}}, %{{.*}} : (tensor<?x?x?x8xf32, {{.*}}>, tensor<?x?x?x8xf32, {{.*}}>) -> tensor<?x?x?x8xf32, {{.*}}>
// CHECK: dlc.transpose %{{.*}} {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: return
func.func @rounded(%x: tensor<?x8x?x?xf32, #dlc.info<[n, 8, h, w]>>) -> tensor<*xf32> {
  %0 = dlc.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", ceilMode = false, countPads = false}
    : (tensor<?x8x?x?xf32, #dlc.info<[n, 8, h, w]>>) -> tensor<*xf32>
  %1 = dlc.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", ceilMode = true, countPads = false}
    : (tensor<?x8x?x?xf32, #dlc.info<[n, 8, h, w]>>) -> tensor<*xf32>
  %2 = dlc.add %0, %1 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}

// Several filters for each channel by itself: the channel comes as often, side by side.
// CHECK-LABEL: func.func @multiplied
// CHECK: dlc.concat %[[A:.*]], %[[A]] {axis = 4 : i64} : (tensor<1x6x6x4x1xf32>, tensor<1x6x6x4x1xf32>) -> tensor<1x6x6x4x2xf32>
// CHECK: dlc.depthwise_conv %{{.*}}, %{{.*}} : (tensor<1x6x6x8xf32>, tensor<3x3x8xf32>) -> tensor<1x4x4x8xf32>
func.func @multiplied(%x: tensor<1x4x6x6xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<*xf32> {
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 4 : i64}
    : (tensor<1x4x6x6xf32>, tensor<8x1x3x3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
