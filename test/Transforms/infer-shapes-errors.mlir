// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(infer-shapes))'

func.func @types(%x: tensor<4xf32>, %y: tensor<4xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{operands have the element types 'f32' and 'i64'; they must be equal}}
  %0 = dlc.add %x, %y : (tensor<4xf32>, tensor<4xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @broadcast(%x: tensor<4xf32>, %y: tensor<3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{operands cannot be broadcast: dims 4 and 3 differ and none is 1}}
  %0 = dlc.add %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @inner(%x: tensor<2x4xf32>, %y: tensor<3x2xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{inner dims 4 and 3 of the matrix product differ}}
  %0 = dlc.matmul %x, %y : (tensor<2x4xf32>, tensor<3x2xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @axis(%x: tensor<2x4xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{axes is 2, but the tensor has 2 axes}}
  %0 = dlc.reduce sum %x {axes = array<i64: 2>, keepdims = true, allAxes = false} : (tensor<2x4xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @twice(%x: tensor<2x4xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{axes names axis 1 twice}}
  %0 = dlc.reduce sum %x {axes = array<i64: 1, -1>, keepdims = true, allAxes = false} : (tensor<2x4xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @reshape(%x: tensor<2x4xf32>) -> tensor<*xf32> {
  %shape = dlc.constant<dense<[3, -1]> : tensor<2xi64>> : tensor<2xi64>
  // expected-error @+1 {{cannot be reshaped to [3, 2]: it has 8 elements, not 6}}
  %0 = dlc.reshape %x, %shape {allowzero = false} : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @allowzero(%x: tensor<2x0xf32>) -> tensor<*xf32> {
  %shape = dlc.constant<dense<[0, -1]> : tensor<2xi64>> : tensor<2xi64>
  // expected-error @+1 {{holds -1 beside 0 with allowzero; the -1 cannot be inferred}}
  %0 = dlc.reshape %x, %shape {allowzero = true} : (tensor<2x0xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather(%x: tensor<2x4xf32>) -> tensor<*xf32> {
  %index = dlc.constant<dense<2> : tensor<1xi64>> : tensor<1xi64>
  // expected-error @+1 {{index 2 is outside axis 0, which has 2 entries}}
  %0 = dlc.gather %x, %index {axis = 0 : i64} : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @concat(%x: tensor<2x4xf32>, %y: tensor<2x5xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{operands differ on axis 1, which is not concatenated: 4 and 5}}
  %0 = dlc.concat %x, %y {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @step(%x: tensor<4xf32>) -> tensor<*xf32> {
  %zero = dlc.constant<dense<0> : tensor<1xi64>> : tensor<1xi64>
  // expected-error @+1 {{the step of axis 0 is 0}}
  %0 = dlc.slice %x, %zero, %zero axes(%zero : tensor<1xi64>) steps(%zero : tensor<1xi64>) : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @squeeze(%x: tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<*xf32> {
  // expected-error @+1 {{whether axis 0 of size n is dropped is not known when compiling; name the axes}}
  %0 = dlc.squeeze %x : (tensor<?x4xf32, #dlc.info<[n, 4]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @overflow(%x: tensor<3037000500x3037000500xi8>) -> tensor<*xi8> {
  %shape = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  // expected-error @+1 {{the number of elements does not fit 64 bits}}
  %0 = dlc.reshape %x, %shape {allowzero = false} : (tensor<3037000500x3037000500xi8>, tensor<1xi64>) -> tensor<*xi8>
  return %0 : tensor<*xi8>
}

// -----

func.func @ranks(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<*xf32> {
  // expected-error @below {{its branches give tensors of 2 and of 1 axes (result 0)}}
  %r = dlc.if %c : tensor<i1> -> tensor<*xf32> {
    %0 = dlc.unsqueeze %x {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<*xf32>
    dlc.yield %0 : tensor<*xf32>
  } else {
    dlc.yield %x : tensor<2xf32>
  }
  return %r : tensor<*xf32>
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
