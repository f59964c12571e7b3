// RUN: dlc-opt %s --split-input-file --verify-diagnostics

func.func @good(%boxes: tensor<2x?x4xf32>, %keys: tensor<2x3x?xi32>, %candidates: tensor<2x3x?xi8>, %limit: tensor<i64>, %threshold: tensor<1xf32>,
                %out: tensor<2x3x?xi64>) -> tensor<2x3x?xi64> {
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<2x?x4xf32>, tensor<2x3x?xi32>, tensor<2x3x?xi8>, tensor<i64>,
      tensor<1xf32>) outs(%out : tensor<2x3x?xi64>) {centered} -> tensor<2x3x?xi64>
  return %0 : tensor<2x3x?xi64>
}

// -----

func.func @rank(%boxes: tensor<5x4xf32>, %keys: tensor<2x3x5xi32>, %candidates: tensor<2x3x5xi8>, %limit: tensor<i64>, %threshold: tensor<f32>,
                %out: tensor<2x3x5xi64>) -> tensor<2x3x5xi64> {
  // expected-error @+1 {{needs boxes [batch, boxes, 4], and keys, candidates and init [batch, classes, boxes]}}
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<5x4xf32>, tensor<2x3x5xi32>, tensor<2x3x5xi8>, tensor<i64>,
      tensor<f32>) outs(%out : tensor<2x3x5xi64>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}

// -----

func.func @coordinates(%boxes: tensor<2x5x3xf32>, %keys: tensor<2x3x5xi32>, %candidates: tensor<2x3x5xi8>, %limit: tensor<i64>, %threshold: tensor<f32>,
                       %out: tensor<2x3x5xi64>) -> tensor<2x3x5xi64> {
  // expected-error @+1 {{needs boxes with 4 coordinates, not 3}}
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<2x5x3xf32>, tensor<2x3x5xi32>, tensor<2x3x5xi8>, tensor<i64>,
      tensor<f32>) outs(%out : tensor<2x3x5xi64>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}

// -----

func.func @lines(%boxes: tensor<2x5x4xf32>, %keys: tensor<2x3x5xi32>, %candidates: tensor<2x4x5xi8>, %limit: tensor<i64>, %threshold: tensor<f32>,
                 %out: tensor<2x3x5xi64>) -> tensor<2x3x5xi64> {
  // expected-error @+1 {{has keys, candidates and init that differ on axis 1}}
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<2x5x4xf32>, tensor<2x3x5xi32>, tensor<2x4x5xi8>, tensor<i64>,
      tensor<f32>) outs(%out : tensor<2x3x5xi64>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}

// -----

func.func @boxes(%boxes: tensor<2x6x4xf32>, %keys: tensor<2x3x5xi32>, %candidates: tensor<2x3x5xi8>, %limit: tensor<i64>, %threshold: tensor<f32>,
                 %out: tensor<2x3x5xi64>) -> tensor<2x3x5xi64> {
  // expected-error @+1 {{has boxes for another batch, or another number of them, than init}}
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<2x6x4xf32>, tensor<2x3x5xi32>, tensor<2x3x5xi8>, tensor<i64>,
      tensor<f32>) outs(%out : tensor<2x3x5xi64>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}

// -----

func.func @types(%boxes: tensor<2x5x4xf32>, %keys: tensor<2x3x5xi32>, %candidates: tensor<2x3x5xi8>, %limit: tensor<i64>, %threshold: tensor<f64>,
                 %out: tensor<2x3x5xi64>) -> tensor<2x3x5xi64> {
  // expected-error @+1 {{needs boxes and a threshold of one float type}}
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<2x5x4xf32>, tensor<2x3x5xi32>, tensor<2x3x5xi8>, tensor<i64>,
      tensor<f64>) outs(%out : tensor<2x3x5xi64>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}

// -----

func.func @limit(%boxes: tensor<2x5x4xf32>, %keys: tensor<2x3x5xi32>, %candidates: tensor<2x3x5xi8>, %limit: tensor<i32>, %threshold: tensor<f32>,
                 %out: tensor<2x3x5xi64>) -> tensor<2x3x5xi64> {
  // expected-error @+1 {{needs keys and candidates of integers, and a limit and init of i64}}
  %0 = dlc.kernel_suppress ins(%boxes, %keys, %candidates, %limit, %threshold : tensor<2x5x4xf32>, tensor<2x3x5xi32>, tensor<2x3x5xi8>, tensor<i32>,
      tensor<f32>) outs(%out : tensor<2x3x5xi64>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}
