// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(infer-shapes))'

// None of the ranks that the branches give fits what follows.
func.func @ranks(%c: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2x2x2xf32>) -> tensor<*xf32> {
  %r = dlc.if %c : tensor<i1> -> tensor<*xf32> {
    %0 = dlc.unsqueeze %x {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  } else {
    dlc.yield %x : tensor<2xf32>
  }
  // expected-error @below {{operand 1 has 3 axes, operand 0 has 2}}
  %1 = dlc.concat %r, %y {axis = 0 : i64} : (tensor<*xf32>, tensor<2x2x2xf32>) -> tensor<*xf32>
  return %1 : tensor<*xf32>
}

// -----

func.func @condition(%c: tensor<2xi1>, %x: tensor<2xf32>) -> tensor<*xf32> {
  // expected-error @below {{the condition must have one element; its dims are [2]}}
  %r = dlc.if %c : tensor<2xi1> -> tensor<*xf32> {
    dlc.yield %x : tensor<2xf32>
  } else {
    dlc.yield %x : tensor<2xf32>
  }
  return %r : tensor<*xf32>
}

// -----

func.func @channels(%x: tensor<1x4x6x4xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<*xf32> {
  // expected-error @below {{the operand has 4 channels, the kernel with its groups 3}}
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<1x4x6x4xf32>, tensor<8x3x3x3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @window(%x: tensor<1x3x2x4xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<*xf32> {
  // expected-error @below {{spatial axis 0 with its padding is shorter than the window: it has 2 elements, the window spans 3}}
  %0 = dlc.conv %x, %w {strides = array<i64>, dilations = array<i64>, pads = array<i64>, autoPad = "NOTSET", group = 1 : i64}
    : (tensor<1x3x2x4xf32>, tensor<8x3x3x3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
