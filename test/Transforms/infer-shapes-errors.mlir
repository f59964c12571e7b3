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

// -----

func.func @gather_elements_axes(%x: tensor<2x3xf32>, %i: tensor<2xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{the indices must have as many axes as the operand, which has 2, not 1}}
  %0 = dlc.gather_elements %x, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather_elements_entries(%x: tensor<2x3xf32>, %i: tensor<2x4xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{the indices have 4 entries on axis 1, the operand 3}}
  %0 = dlc.gather_elements %x, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather_elements_range(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  %i = dlc.constant<dense<3> : tensor<2x1xi64>> : tensor<2x1xi64>
  // expected-error @+1 {{index 3 is outside axis 1, which has 3 entries}}
  %0 = dlc.gather_elements %x, %i {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @index_type(%x: tensor<2x3xf32>, %i: tensor<2x3xi8>) -> tensor<*xf32> {
  // expected-error @+1 {{indices must be int32 or int64, not 'i8'}}
  %0 = dlc.gather_elements %x, %i {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xi8>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather_nd_batch(%x: tensor<2x3xf32>, %i: tensor<2x1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{batch_dims is 2; it must be at least 0 and less than the axes of the operand (2) and of the indices (2)}}
  %0 = dlc.gather_nd %x, %i {batchDims = 2 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather_nd_tuple(%x: tensor<2x3xf32>, %i: tensor<2x3xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{the last axis of the indices has 3 entries; it must have 1 to 2}}
  %0 = dlc.gather_nd %x, %i {batchDims = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather_nd_unknown(%x: tensor<2x3xf32>, %i: tensor<?xi64, #dlc.info<[n]>>) -> tensor<*xf32> {
  // expected-error @+1 {{the last axis of the indices has the size n, which must be known when compiling}}
  %0 = dlc.gather_nd %x, %i {batchDims = 0 : i64} : (tensor<2x3xf32>, tensor<?xi64, #dlc.info<[n]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @gather_nd_common(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{the operand and the indices differ on axis 0, which they have in common: 2 and 4}}
  %0 = dlc.gather_nd %x, %i {batchDims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @scatter_updates(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4x2xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the updates must have size 3 on axis 1, not 2}}
  %0 = dlc.scatter_nd %x, %i, %u : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<4x2xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @scatter_types(%x: tensor<2x3xf32>, %i: tensor<1x1xi64>, %u: tensor<1x1xf64>) -> tensor<*xf32> {
  // expected-error @+1 {{the operand and the updates have the element types 'f32' and 'f64'}}
  %0 = dlc.scatter_elements %x, %i, %u {axis = 0 : i64} : (tensor<2x3xf32>, tensor<1x1xi64>, tensor<1x1xf64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @pad_mode(%x: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<*xf32> {
  %p = dlc.constant<dense<0> : tensor<4xi64>> : tensor<4xi64>
  // expected-error @+1 {{mode is 'mirror'; it must be constant, edge, reflect or wrap}}
  %0 = dlc.pad %x, %p, %v {mode = "mirror"} : (tensor<2x3xf32>, tensor<4xi64>, tensor<f32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @pad_entries(%x: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<*xf32> {
  %p = dlc.constant<dense<0> : tensor<2xi64>> : tensor<2xi64>
  // expected-error @+1 {{pads has 2 entries; it must have two for each of 2 axes}}
  %0 = dlc.pad %x, %p, %v {mode = "edge"} : (tensor<2x3xf32>, tensor<2xi64>, tensor<f32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @pad_away(%x: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<*xf32> {
  %p = dlc.constant<dense<[0, -2, 0, -2]> : tensor<4xi64>> : tensor<4xi64>
  // expected-error @+1 {{more is taken away from axis 1 than its 3 elements: -1 would be left}}
  %0 = dlc.pad %x, %p, %v {mode = "constant"} : (tensor<2x3xf32>, tensor<4xi64>, tensor<f32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @pad_nothing(%x: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<*xf32> {
  %p = dlc.constant<dense<[0, -3, 0, 2]> : tensor<4xi64>> : tensor<4xi64>
  // expected-error @+1 {{axis 1 of 3 elements cannot be padded to 2: it has no element to repeat}}
  %0 = dlc.pad %x, %p, %v {mode = "reflect"} : (tensor<2x3xf32>, tensor<4xi64>, tensor<f32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @pad_value(%x: tensor<2x3xf32>, %v: tensor<2xf32>) -> tensor<*xf32> {
  %p = dlc.constant<dense<0> : tensor<4xi64>> : tensor<4xi64>
  // expected-error @+1 {{the value to pad with must be one element of type 'f32', not [2] of 'f32'}}
  %0 = dlc.pad %x, %p, %v {mode = "constant"} : (tensor<2x3xf32>, tensor<4xi64>, tensor<2xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @tile_entries(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  %r = dlc.constant<dense<2> : tensor<3xi64>> : tensor<3xi64>
  // expected-error @+1 {{repeats has 3 entries for 2 axes}}
  %0 = dlc.tile %x, %r : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @tile_negative(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  %r = dlc.constant<dense<[2, -1]> : tensor<2xi64>> : tensor<2xi64>
  // expected-error @+1 {{repeats holds the negative size -1}}
  %0 = dlc.tile %x, %r : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @col2im_columns(%x: tensor<1x4x7xf32>) -> tensor<*xf32> {
  %i = dlc.constant<dense<3> : tensor<2xi64>> : tensor<2xi64>
  %b = dlc.constant<dense<2> : tensor<2xi64>> : tensor<2xi64>
  // expected-error @+1 {{x has 7 columns, but 4 blocks fit into the image}}
  %0 = dlc.col2im %x, %i, %b : (tensor<1x4x7xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @col2im_strides(%x: tensor<1x4x7xf32>) -> tensor<*xf32> {
  %i = dlc.constant<dense<3> : tensor<2xi64>> : tensor<2xi64>
  %b = dlc.constant<dense<2> : tensor<2xi64>> : tensor<2xi64>
  // expected-error @+1 {{strides must have 2 entries for an image of 2 axes, each at least 1}}
  %0 = dlc.col2im %x, %i, %b {strides = array<i64: 0, 1>} : (tensor<1x4x7xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
