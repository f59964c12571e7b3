// RUN: dlc-opt %s --split-input-file --verify-diagnostics

func.func @begins(%x: tensor<1x9x16xf32>, %w: tensor<1x3x16x8xf32>, %out: tensor<1x9x8xf32>) -> tensor<1x9x8xf32> {
  %one = arith.constant 1 : index
  // expected-error @+1 {{needs a batch, channels, and as many spatial axes as strides, dilations and begins}}
  %0 = dlc.kernel_conv ins(%x, %w : tensor<1x9x16xf32>, tensor<1x3x16x8xf32>) outs(%out : tensor<1x9x8xf32>) begins(%one, %one)
      {strides = array<i64: 1>, dilations = array<i64: 1>} -> tensor<1x9x8xf32>
  return %0 : tensor<1x9x8xf32>
}

// -----

func.func @filters(%x: tensor<1x9x16xf32>, %w: tensor<3x16x8xf32>, %out: tensor<1x9x8xf32>) -> tensor<1x9x8xf32> {
  %one = arith.constant 1 : index
  // expected-error @+1 {{w is not [groups, kernel..., channels / group, filters / group]}}
  %0 = dlc.kernel_conv ins(%x, %w : tensor<1x9x16xf32>, tensor<3x16x8xf32>) outs(%out : tensor<1x9x8xf32>) begins(%one)
      {strides = array<i64: 1>, dilations = array<i64: 1>} -> tensor<1x9x8xf32>
  return %0 : tensor<1x9x8xf32>
}

// -----

func.func @step(%x: tensor<1x9x16xf32>, %out: tensor<1x9x16xf32>) -> tensor<1x9x16xf32> {
  %one = arith.constant 1 : index
  // expected-error @+1 {{its region does not yield what there is then}}
  %0 = dlc.kernel_window ins(%x : tensor<1x9x16xf32>) outs(%out : tensor<1x9x16xf32>) begins(%one)
      {kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, start = 0.0 : f64} -> tensor<1x9x16xf32> {
  ^bb0(%s: f64, %cell: f32):
    dlc.kernel_yield %cell : f32
  }
  return %0 : tensor<1x9x16xf32>
}

// -----

func.func @tile(%x: tensor<1x9x9x16xf32>, %w: tensor<25x16x8xf32>, %out: tensor<1x9x9x8xf32>) -> tensor<1x9x9x8xf32> {
  %one = arith.constant 1 : index
  // expected-error @+1 {{has tiles of 3 results along an axis; there can be 2 or 4}}
  %0 = dlc.kernel_winograd ins(%x, %w : tensor<1x9x9x16xf32>, tensor<25x16x8xf32>) outs(%out : tensor<1x9x9x8xf32>) begins(%one, %one)
      {tile = 3 : i64} -> tensor<1x9x9x8xf32>
  return %0 : tensor<1x9x9x8xf32>
}

// -----

func.func @cells(%x: tensor<1x9x9x16xf32>, %w: tensor<9x16x8xf32>, %out: tensor<1x9x9x8xf32>) -> tensor<1x9x9x8xf32> {
  %one = arith.constant 1 : index
  // expected-error @+1 {{w is not [(tile + 2)^2, channels, filters]}}
  %0 = dlc.kernel_winograd ins(%x, %w : tensor<1x9x9x16xf32>, tensor<9x16x8xf32>) outs(%out : tensor<1x9x9x8xf32>) begins(%one, %one)
      {tile = 4 : i64} -> tensor<1x9x9x8xf32>
  return %0 : tensor<1x9x9x8xf32>
}

// -----

func.func @axes(%x: tensor<1x9x16xf32>, %w: tensor<36x16x8xf32>, %out: tensor<1x9x8xf32>) -> tensor<1x9x8xf32> {
  %one = arith.constant 1 : index
  // expected-error @+1 {{needs a batch, channels, and as many spatial axes as strides, dilations and begins}}
  %0 = dlc.kernel_winograd ins(%x, %w : tensor<1x9x16xf32>, tensor<36x16x8xf32>) outs(%out : tensor<1x9x8xf32>) begins(%one)
      {tile = 4 : i64} -> tensor<1x9x8xf32>
  return %0 : tensor<1x9x8xf32>
}
