// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s
// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse{cap=2}))' | FileCheck %s --check-prefix=CAP
// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse{fusion=false}))' | FileCheck %s --check-prefix=ALONE

// A matrix product takes the element-wise ops behind it.
// CHECK-LABEL: func.func @epilogue
// CHECK: dlc.group
// CHECK-NEXT: dlc.matmul
// CHECK-NEXT: dlc.add
// CHECK-NEXT: dlc.relu
// CHECK-NEXT: dlc.yield
// CHECK-NOT: dlc.group
// CAP-LABEL: func.func @epilogue
// CAP: dlc.group
// CAP: dlc.add
// CAP-NEXT: dlc.yield
// CAP: dlc.group
// CAP-NEXT: dlc.relu
// ALONE-LABEL: func.func @epilogue
// ALONE: dlc.group
// ALONE-NEXT: dlc.matmul
// ALONE-NEXT: dlc.yield
// ALONE: dlc.group
// ALONE-NEXT: dlc.add
// ALONE-NEXT: dlc.yield
// ALONE: dlc.group
// ALONE-NEXT: dlc.relu
// ALONE-NEXT: dlc.yield
func.func @epilogue(%x: tensor<?x4xf32, #dlc.info<[b, 4]>>, %w: tensor<4x8xf32>, %bias: tensor<8xf32>) -> tensor<?x8xf32, #dlc.info<[b, 8]>> {
  %0 = dlc.matmul %x, %w : (tensor<?x4xf32, #dlc.info<[b, 4]>>, tensor<4x8xf32>) -> tensor<?x8xf32, #dlc.info<[b, 8]>>
  %1 = dlc.add %0, %bias : (tensor<?x8xf32, #dlc.info<[b, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #dlc.info<[b, 8]>>
  %2 = dlc.relu %1 : (tensor<?x8xf32, #dlc.info<[b, 8]>>) -> tensor<?x8xf32, #dlc.info<[b, 8]>>
  return %2 : tensor<?x8xf32, #dlc.info<[b, 8]>>
}

// x - sum(x): the subtraction needs the whole sum and has other dims.
// CHECK-LABEL: func.func @no_circle
// CHECK: %[[E:.*]] = dlc.group
// CHECK-NEXT: dlc.exp
// CHECK: %[[S:.*]] = dlc.group
// CHECK-NEXT: dlc.reduce sum %[[E]]
// CHECK: dlc.group
// CHECK-NEXT: dlc.div %[[E]], %[[S]]
func.func @no_circle(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = dlc.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = dlc.reduce sum %0 {axes = array<i64: 0>, keepdims = false, allAxes = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  %2 = dlc.div %0, %1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// A value that somebody outside wants is a second result.
// CHECK-LABEL: func.func @two_results
// CHECK: %[[G:.*]]:2 = dlc.group
// CHECK: return %[[G]]#0, %[[G]]#1
func.func @two_results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dlc.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dlc.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// A value of what a group counts is no operand of that group, although their dims are the same.
// CHECK-LABEL: func.func @late_value
// CHECK: dlc.group
// CHECK-NEXT: dlc.neg
// CHECK-NEXT: dlc.reduce sum
// CHECK-NEXT: dlc.yield
// CHECK: dlc.read
// CHECK: dlc.group
// CHECK-NEXT: dlc.add
func.func @late_value(%x: tensor<4xi64>) -> tensor<4xi64> {
  %0 = dlc.neg %x : (tensor<4xi64>) -> tensor<4xi64>
  %1 = dlc.reduce sum %0 {axes = array<i64: 0>, keepdims = false, allAxes = false} : (tensor<4xi64>) -> tensor<i64>
  dlc.read %1 as ["v0[0]"] : tensor<i64>
  %2 = dlc.from_dims [#dlc.dim<"v0[0]">] : tensor<i64>
  %3 = dlc.add %0, %2 : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  return %3 : tensor<4xi64>
}

// Branches have groups of their own, and what reads a result stands behind them.
// CHECK-LABEL: func.func @branches
// CHECK: %[[A:.*]] = dlc.group
// CHECK-NEXT: dlc.abs
// CHECK: %[[R:.*]] = dlc.if
// CHECK-NEXT: dlc.group
// CHECK-NEXT: dlc.exp %[[A]]
// CHECK-NEXT: dlc.neg
// CHECK: } else {
// CHECK-NEXT: dlc.yield %[[A]]
// CHECK: dlc.group
// CHECK-NEXT: dlc.add %[[R]], %[[A]]
func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  dlc.read %c as ["c[0]"] : tensor<i1>
  %0 = dlc.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dlc.if %c attributes {resolvedCondition = #dlc.dim<"c[0]">} : tensor<i1> -> tensor<4xf32> {
    %3 = dlc.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    %4 = dlc.neg %3 : (tensor<4xf32>) -> tensor<4xf32>
    dlc.yield %4 : tensor<4xf32>
  } else {
    dlc.yield %0 : tensor<4xf32>
  }
  %2 = dlc.add %1, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// What is made from nothing goes where it is used, as often as that is.
// CHECK-LABEL: func.func @sources
// CHECK: dlc.group
// CHECK-NEXT: dlc.iota {{.*}} {axis = 0 : i64}
// CHECK-NEXT: dlc.add
// CHECK-NEXT: dlc.yield
// CHECK: dlc.group
// CHECK-NEXT: dlc.matmul
// CHECK-NEXT: dlc.iota {{.*}} {axis = 0 : i64}
// CHECK-NEXT: dlc.iota {{.*}} {axis = 1 : i64}
// CHECK-NEXT: dlc.less
// CHECK-NEXT: dlc.where
// CHECK-NEXT: dlc.yield
// ALONE-LABEL: func.func @sources
// ALONE: dlc.group
// ALONE-NEXT: dlc.iota {{.*}} {axis = 0 : i64}
// ALONE-NEXT: dlc.yield
// ALONE: dlc.group
// ALONE-NEXT: dlc.iota {{.*}} {axis = 1 : i64}
// ALONE-NEXT: dlc.yield
func.func @sources(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %y: tensor<4x4xi64>) -> (tensor<4x4xf32>, tensor<4x4xi64>) {
  %shape = dlc.constant<dense<4> : tensor<2xi64>> : tensor<2xi64>
  %zero = dlc.constant<dense<0.0> : tensor<f32>> : tensor<f32>
  %row = dlc.iota %shape {axis = 0 : i64} : (tensor<2xi64>) -> tensor<4x4xi64>
  %column = dlc.iota %shape {axis = 1 : i64} : (tensor<2xi64>) -> tensor<4x4xi64>
  %other = dlc.add %row, %y : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  %0 = dlc.matmul %x, %w : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %below = dlc.less %row, %column : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %1 = dlc.where %below, %0, %zero : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %1, %other : tensor<4x4xf32>, tensor<4x4xi64>
}

// Nothing is computed for nobody.
// CHECK-LABEL: func.func @unused
// CHECK-NOT: dlc.group
// CHECK: return %arg0
func.func @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dlc.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dlc.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// A size that is read from a group's result is used in another group.
// CHECK-LABEL: func.func @counted
// CHECK: dlc.group
// CHECK-NEXT: dlc.reduce
// CHECK-NEXT: dlc.yield
// CHECK: dlc.read
// CHECK: dlc.group
// CHECK-NEXT: dlc.cast
func.func @counted(%x: tensor<4xi64>) -> tensor<f32> {
  %0 = dlc.reduce sum %x {axes = array<i64: 0>, keepdims = false, allAxes = false} : (tensor<4xi64>) -> tensor<i64>
  dlc.read %0 as ["v0[n0]"] : tensor<i64>
  %1 = dlc.from_dims [#dlc.dim<"v0[n0]">] : tensor<i64>
  %2 = dlc.cast %1 {to = f32} : (tensor<i64>) -> tensor<f32>
  return %2 : tensor<f32>
}

// A normalization is one group: element-wise ops before its reductions, between them and behind them. The views between one number
// a row and the same under a dim of 1 go along.
// CHECK-LABEL: func.func @norm
// CHECK: dlc.group
// CHECK-NEXT: dlc.add
// CHECK-NEXT: dlc.reduce sum
// CHECK-NEXT: dlc.sqrt
// CHECK-NEXT: dlc.reshape
// CHECK-NEXT: dlc.div
// CHECK-NEXT: dlc.reduce max
// CHECK-NEXT: dlc.reshape
// CHECK-NEXT: dlc.sub
// CHECK-NEXT: dlc.yield
// CHECK-NOT: dlc.group
func.func @norm(%x: tensor<?x8xf32, #dlc.info<[b, 8]>>, %y: tensor<8xf32>) -> tensor<?x8xf32, #dlc.info<[b, 8]>> {
  %shape = dlc.from_dims [#dlc.dim<b>, #dlc.dim<1>] : tensor<2xi64>
  %0 = dlc.add %x, %y : (tensor<?x8xf32, #dlc.info<[b, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #dlc.info<[b, 8]>>
  %1 = dlc.reduce sum %0 {axes = array<i64: 1>, keepdims = false, allAxes = false} : (tensor<?x8xf32, #dlc.info<[b, 8]>>) -> tensor<?xf32, #dlc.info<[b]>>
  %2 = dlc.sqrt %1 : (tensor<?xf32, #dlc.info<[b]>>) -> tensor<?xf32, #dlc.info<[b]>>
  %3 = dlc.reshape %2, %shape {allowzero = true} : (tensor<?xf32, #dlc.info<[b]>>, tensor<2xi64>) -> tensor<?x1xf32, #dlc.info<[b, 1]>>
  %4 = dlc.div %0, %3 : (tensor<?x8xf32, #dlc.info<[b, 8]>>, tensor<?x1xf32, #dlc.info<[b, 1]>>) -> tensor<?x8xf32, #dlc.info<[b, 8]>>
  %5 = dlc.reduce max %4 {axes = array<i64: 1>, keepdims = false, allAxes = false} : (tensor<?x8xf32, #dlc.info<[b, 8]>>) -> tensor<?xf32, #dlc.info<[b]>>
  %6 = dlc.reshape %5, %shape {allowzero = true} : (tensor<?xf32, #dlc.info<[b]>>, tensor<2xi64>) -> tensor<?x1xf32, #dlc.info<[b, 1]>>
  %7 = dlc.sub %4, %6 : (tensor<?x8xf32, #dlc.info<[b, 8]>>, tensor<?x1xf32, #dlc.info<[b, 1]>>) -> tensor<?x8xf32, #dlc.info<[b, 8]>>
  return %7 : tensor<?x8xf32, #dlc.info<[b, 8]>>
}

// Sums of rows that are read along the rows of a square belong to other rows; a reduction along another axis has other rows.
// CHECK-LABEL: func.func @other_rows
// CHECK: dlc.group
// CHECK-NEXT: dlc.reduce
// CHECK-NEXT: dlc.yield
// CHECK: dlc.group
// CHECK-NEXT: dlc.sub
// CHECK-NEXT: dlc.reduce
// CHECK-NEXT: dlc.yield
// CHECK: dlc.group
// CHECK-NEXT: dlc.reduce
func.func @other_rows(%x: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dlc.reduce sum %x {axes = array<i64: 1>, keepdims = false, allAxes = false} : (tensor<8x8xf32>) -> tensor<8xf32>
  %1 = dlc.sub %x, %0 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %2 = dlc.reduce max %1 {axes = array<i64: 1>, keepdims = false, allAxes = false} : (tensor<8x8xf32>) -> tensor<8xf32>
  %3 = dlc.reduce max %1 {axes = array<i64: 0>, keepdims = false, allAxes = false} : (tensor<8x8xf32>) -> tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

// One long row: the element-wise op goes over threads by itself.
// CHECK-LABEL: func.func @long_row
// CHECK: dlc.group
// CHECK-NEXT: dlc.reduce
// CHECK-NEXT: dlc.yield
// CHECK: dlc.group
// CHECK-NEXT: dlc.div
func.func @long_row(%x: tensor<1000000xf32>) -> tensor<1000000xf32> {
  %0 = dlc.reduce sum %x {axes = array<i64: 0>, keepdims = false, allAxes = false} : (tensor<1000000xf32>) -> tensor<f32>
  %1 = dlc.div %x, %0 : (tensor<1000000xf32>, tensor<f32>) -> tensor<1000000xf32>
  return %1 : tensor<1000000xf32>
}

// Slices, transposes of rows and what is between them need no memory: a rotary embedding is one group, which computes each element where it is read.
// CHECK-LABEL: func.func @rotary
// CHECK: dlc.group
// CHECK: dlc.slice {{.*}}dlc.inline
// CHECK: dlc.neg {{.*}}dlc.inline
// CHECK: dlc.slice {{.*}}dlc.inline
// CHECK: dlc.concat {{.*}}dlc.inline
// CHECK: dlc.mul
// CHECK: dlc.add
// CHECK: dlc.yield
// CHECK-NOT: dlc.group
// CHECK: return
func.func @rotary(%x: tensor<?x9x64xf32, #dlc.info<[s, 9, 64]>>, %cos: tensor<?x1x64xf32, #dlc.info<[s, 1, 64]>>, %sin: tensor<?x1x64xf32, #dlc.info<[s, 1, 64]>>)
    -> tensor<9x?x64xf32, #dlc.info<[9, s, 64]>> {
  %at = dlc.constant<dense<0> : tensor<1xi64>> : tensor<1xi64>
  %t = dlc.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<?x9x64xf32, #dlc.info<[s, 9, 64]>>) -> tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>
  %c = dlc.transpose %cos {perm = array<i64: 1, 0, 2>} : (tensor<?x1x64xf32, #dlc.info<[s, 1, 64]>>) -> tensor<1x?x64xf32, #dlc.info<[1, s, 64]>>
  %d = dlc.transpose %sin {perm = array<i64: 1, 0, 2>} : (tensor<?x1x64xf32, #dlc.info<[s, 1, 64]>>) -> tensor<1x?x64xf32, #dlc.info<[1, s, 64]>>
  %low = dlc.slice %t, %at, %at {resolvedStarts = [#dlc.dim<0>, #dlc.dim<0>, #dlc.dim<0>], resolvedSteps = [#dlc.dim<1>, #dlc.dim<1>, #dlc.dim<1>]} : (tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>, tensor<1xi64>, tensor<1xi64>) -> tensor<9x?x32xf32, #dlc.info<[9, s, 32]>>
  %high = dlc.slice %t, %at, %at {resolvedStarts = [#dlc.dim<0>, #dlc.dim<0>, #dlc.dim<32>], resolvedSteps = [#dlc.dim<1>, #dlc.dim<1>, #dlc.dim<1>]} : (tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>, tensor<1xi64>, tensor<1xi64>) -> tensor<9x?x32xf32, #dlc.info<[9, s, 32]>>
  %neg = dlc.neg %high : (tensor<9x?x32xf32, #dlc.info<[9, s, 32]>>) -> tensor<9x?x32xf32, #dlc.info<[9, s, 32]>>
  %turned = dlc.concat %neg, %low {axis = 2 : i64} : (tensor<9x?x32xf32, #dlc.info<[9, s, 32]>>, tensor<9x?x32xf32, #dlc.info<[9, s, 32]>>) -> tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>
  %0 = dlc.mul %t, %c : (tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>, tensor<1x?x64xf32, #dlc.info<[1, s, 64]>>) -> tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>
  %1 = dlc.mul %turned, %d : (tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>, tensor<1x?x64xf32, #dlc.info<[1, s, 64]>>) -> tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>
  %2 = dlc.add %0, %1 : (tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>, tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>) -> tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>
  return %2 : tensor<9x?x64xf32, #dlc.info<[9, s, 64]>>
}

// What is read in its place and at other indices is in memory.
// CHECK-LABEL: func.func @read_at_other_indices
// CHECK: dlc.group
// CHECK-NEXT: dlc.exp
// CHECK-NEXT: dlc.sigmoid
// CHECK-NEXT: dlc.yield
// CHECK: dlc.group
// CHECK-NEXT: dlc.transpose {{.*}}dlc.inline
// CHECK-NEXT: dlc.add
func.func @read_at_other_indices(%x: tensor<5x5x4xf32>) -> tensor<5x5x4xf32> {
  %0 = dlc.exp %x : (tensor<5x5x4xf32>) -> tensor<5x5x4xf32>
  %1 = dlc.sigmoid %0 : (tensor<5x5x4xf32>) -> tensor<5x5x4xf32>
  %2 = dlc.transpose %0 {perm = array<i64: 1, 0, 2>} : (tensor<5x5x4xf32>) -> tensor<5x5x4xf32>
  %3 = dlc.add %1, %2 : (tensor<5x5x4xf32>, tensor<5x5x4xf32>) -> tensor<5x5x4xf32>
  return %3 : tensor<5x5x4xf32>
}
