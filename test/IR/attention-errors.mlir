// RUN: dlc-opt %s --split-input-file --verify-diagnostics

func.func @perm(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  // expected-error @+1 {{operand 0 is no tensor of f32 whose axes its permutation orders}}
  %0 = dlc.attention %q, %k, %v {qPerm = array<i64: 0, 1, 9>, kPerm = array<i64: 0, 1, 2>, vPerm = array<i64: 0, 1, 2>, resultPerm = array<i64: 0, 1, 2>, keys = #dlc.dim<5>}
      : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  ^bb0(%s: tensor<2x3x5xf32>):
    dlc.yield %s : tensor<2x3x5xf32>
  }
  return %0 : tensor<2x3x6xf32>
}

// -----

func.func @short(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  // expected-error @+1 {{operand 1 is no tensor of f32 whose axes its permutation orders}}
  %0 = dlc.attention %q, %k, %v {qPerm = array<i64: 0, 1, 2>, kPerm = array<i64: 0, 1>, vPerm = array<i64: 0, 1, 2>, resultPerm = array<i64: 0, 1, 2>, keys = #dlc.dim<5>}
      : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  ^bb0(%s: tensor<2x3x5xf32>):
    dlc.yield %s : tensor<2x3x5xf32>
  }
  return %0 : tensor<2x3x6xf32>
}

// -----

func.func @region(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %m: tensor<3x5xf32>) -> tensor<2x3x6xf32> {
  // expected-error @+1 {{its region does not make one score of the product and the extras}}
  %0 = dlc.attention %q, %k, %v, %m {qPerm = array<i64: 0, 1, 2>, kPerm = array<i64: 0, 1, 2>, vPerm = array<i64: 0, 1, 2>, resultPerm = array<i64: 0, 1, 2>, keys = #dlc.dim<5>}
      : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>, tensor<3x5xf32>) -> tensor<2x3x6xf32> {
  ^bb0(%s: tensor<2x3x5xf32>):
    dlc.yield %s : tensor<2x3x5xf32>
  }
  return %0 : tensor<2x3x6xf32>
}
