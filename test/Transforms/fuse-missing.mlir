// RUN: dlc-opt %s --verify-diagnostics --pass-pipeline='builtin.module(func.func(fuse))'

// One error for each kind of op that has no code yet.
func.func @missing(%x: tensor<2x1x5xf32>, %w: tensor<1x7x5xf32>, %r: tensor<1x7x7xf32>) -> tensor<2x1x1x7xf32> {
  // expected-error @below {{dlc infers its shapes, but cannot generate code for it yet (the same holds for 1 more)}}
  %y, %h, %c = dlc.recurrent rnn %x, %w, %r {hidden = 7 : i64, directions = 1 : i64, reverse = false, batchFirst = false, cell = {}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>}
    : (tensor<2x1x5xf32>, tensor<1x7x5xf32>, tensor<1x7x7xf32>) -> (tensor<2x1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>)
  %z, %i, %d = dlc.recurrent rnn %x, %w, %r {hidden = 7 : i64, directions = 1 : i64, reverse = false, batchFirst = false, cell = {}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>}
    : (tensor<2x1x5xf32>, tensor<1x7x5xf32>, tensor<1x7x7xf32>) -> (tensor<2x1x1x7xf32>, tensor<1x1x7xf32>, tensor<1x1x7xf32>)
  %s = dlc.add %y, %z : (tensor<2x1x1x7xf32>, tensor<2x1x1x7xf32>) -> tensor<2x1x1x7xf32>
  return %s : tensor<2x1x1x7xf32>
}
