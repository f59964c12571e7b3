// RUN: dlc-opt %s --split-input-file --verify-diagnostics

func.func @result(%x: tensor<2x1xf32>, %init: tensor<2x?xf32>, %at: index) {
  // expected-error @+1 {{gives 'tensor<2x?xi32>' of init, which is 'tensor<2x?xf32>'}}
  %0 = dlc.kernel_append ins(%x : tensor<2x1xf32>) outs(%init : tensor<2x?xf32>) at %at {axis = 1 : i64} -> tensor<2x?xi32>
  return
}

// -----

func.func @rank(%x: tensor<1xf32>, %init: tensor<2x?xf32>, %at: index) {
  // expected-error @+1 {{cannot write 'tensor<1xf32>' into 'tensor<2x?xf32>': they differ in rank or element type}}
  %0 = dlc.kernel_append ins(%x : tensor<1xf32>) outs(%init : tensor<2x?xf32>) at %at {axis = 0 : i64} -> tensor<2x?xf32>
  return
}

// -----

func.func @element(%x: tensor<2x1xi32>, %init: tensor<2x?xf32>, %at: index) {
  // expected-error @+1 {{cannot write 'tensor<2x1xi32>' into 'tensor<2x?xf32>': they differ in rank or element type}}
  %0 = dlc.kernel_append ins(%x : tensor<2x1xi32>) outs(%init : tensor<2x?xf32>) at %at {axis = 1 : i64} -> tensor<2x?xf32>
  return
}

// -----

func.func @axis(%x: tensor<2x1xf32>, %init: tensor<2x?xf32>, %at: index) {
  // expected-error @+1 {{has axis 2, but x has 2 axes}}
  %0 = dlc.kernel_append ins(%x : tensor<2x1xf32>) outs(%init : tensor<2x?xf32>) at %at {axis = 2 : i64} -> tensor<2x?xf32>
  return
}

// -----

func.func @negative(%x: tensor<2x1xf32>, %init: tensor<2x?xf32>, %at: index) {
  // expected-error @+1 {{has axis -1, but x has 2 axes}}
  %0 = dlc.kernel_append ins(%x : tensor<2x1xf32>) outs(%init : tensor<2x?xf32>) at %at {axis = -1 : i64} -> tensor<2x?xf32>
  return
}

// -----

func.func @other_dim(%x: tensor<3x1xf32>, %init: tensor<2x?xf32>, %at: index) {
  // expected-error @+1 {{cannot write 'tensor<3x1xf32>' into 'tensor<2x?xf32>': they differ on axis 0}}
  %0 = dlc.kernel_append ins(%x : tensor<3x1xf32>) outs(%init : tensor<2x?xf32>) at %at {axis = 1 : i64} -> tensor<2x?xf32>
  return
}
