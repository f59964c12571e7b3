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

func.func @align(%x: tensor<2x4xf32>, %y: tensor<4xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the second input has 1 dims, which do not fit the first one's from 2 on: it has 2}}
  %0 = dlc.align_axes %y, %x {axis = 2 : i64} : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @condition(%c: tensor<4xi64>, %x: tensor<4xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the condition must be a bool tensor, not 'i64'}}
  %0 = dlc.where %c, %x, %x : (tensor<4xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @narrow(%x: tensor<4xf8E5M2>) -> tensor<*xf8E5M2> {
  // expected-error @+1 {{elements of type 'f8E5M2' are stored, not computed with}}
  %0 = dlc.add %x, %x : (tensor<4xf8E5M2>, tensor<4xf8E5M2>) -> tensor<*xf8E5M2>
  return %0 : tensor<*xf8E5M2>
}

// -----

func.func @bits(%x: tensor<4xf32>) -> tensor<*xi16> {
  // expected-error @+1 {{'f32' and 'i16' have different widths}}
  %0 = dlc.bit_cast %x {to = i16} : (tensor<4xf32>) -> tensor<*xi16>
  return %0 : tensor<*xi16>
}

// -----

func.func @rounding(%x: tensor<4xf32>) -> tensor<*xf8E8M0FNU> {
  // expected-error @+1 {{round_mode is 'even'; it can be 'up', 'down' and 'nearest'}}
  %0 = dlc.cast %x {to = f8E8M0FNU, round_mode = "even"} : (tensor<4xf32>) -> tensor<*xf8E8M0FNU>
  return %0 : tensor<*xf8E8M0FNU>
}

// -----

func.func @packed(%x: tensor<4xi8>) -> tensor<*xi8> {
  // expected-error @+1 {{the operand must have elements of 4 or 2 bits, and not be packed}}
  %0 = dlc.pack %x : (tensor<4xi8>) -> tensor<*xi8>
  return %0 : tensor<*xi8>
}
