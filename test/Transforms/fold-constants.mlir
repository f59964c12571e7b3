// RUN: dlc-opt %s --split-input-file --fold-constants 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=STAYS <%t.err

// Weights that are stored narrow and transposed, with a scale for each column; nothing of how they come about is left.
// CHECK-LABEL: func.func @weights
// CHECK-NEXT: %[[W:.*]] = dlc.constant<dense<{{\[\[}}5.000000e-01, 4.500000e+00], [-1.000000e+00, -6.000000e+00], [1.500000e+00, 0.000000e+00]]> : tensor<3x2xf32>>
// CHECK-NEXT: %[[R:.*]] = dlc.matmul %arg0, %[[W]]
// CHECK-NEXT: return %[[R]]
func.func @weights(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>) -> tensor<?x2xf32, #dlc.info<[n, 2]>> {
  %w = dlc.constant<dense<[[1, -2, 3], [3, -4, 0]]> : tensor<2x3xi8>> : tensor<2x3xi8>
  %scale = dlc.constant<dense<[0.5, 1.5]> : tensor<2xf32>> : tensor<2xf32>
  %0 = dlc.cast %w {to = f32} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %1 = dlc.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = dlc.mul %1, %scale : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %3 = dlc.matmul %x, %2 : (tensor<?x3xf32, #dlc.info<[n, 3]>>, tensor<3x2xf32>) -> tensor<?x2xf32, #dlc.info<[n, 2]>>
  return %3 : tensor<?x2xf32, #dlc.info<[n, 2]>>
}

// -----

// What is read in between is a constant too, and a constant stays for those who read it as it is.
// CHECK-LABEL: func.func @shared
// CHECK-DAG: %[[A:.*]] = dlc.constant<dense<[1.000000e+00, 4.000000e+00]> : tensor<2xf32>>
// CHECK-DAG: %[[B:.*]] = dlc.constant<dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>>
// CHECK-DAG: %[[C:.*]] = dlc.constant<dense<[-1.000000e+00, -2.000000e+00]> : tensor<2xf32>>
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @shared() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = dlc.constant<dense<[1.0, 4.0]> : tensor<2xf32>> : tensor<2xf32>
  %b = dlc.sqrt %a : (tensor<2xf32>) -> tensor<2xf32>
  %c = dlc.neg %b : (tensor<2xf32>) -> tensor<2xf32>
  return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Other dims for the same bytes, of a view as well.
// CHECK-LABEL: func.func @views
// CHECK-NEXT: %[[A:.*]] = dlc.constant<dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>>
// CHECK-NEXT: %[[B:.*]] = dlc.constant<dense<true> : tensor<1x2x2xi1>>
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @views() -> (tensor<2x2xi32>, tensor<1x2x2xi1>) {
  %shape = dlc.constant<dense<[2, 2]> : tensor<2xi64>> : tensor<2xi64>
  %shape3 = dlc.constant<dense<[1, 2, 2]> : tensor<3xi64>> : tensor<3xi64>
  %a = dlc.constant<dense<[1, 2, 3, 4]> : tensor<4xi32>> : tensor<4xi32>
  %0 = dlc.reshape %a, %shape {allowzero = false} : (tensor<4xi32>, tensor<2xi64>) -> tensor<2x2xi32>
  %b = dlc.constant<dense<true> : tensor<4xi1>> : tensor<4xi1>
  %1 = dlc.reshape %b, %shape {allowzero = false} : (tensor<4xi1>, tensor<2xi64>) -> tensor<2x2xi1>
  %2 = dlc.reshape %1, %shape3 {allowzero = false} : (tensor<2x2xi1>, tensor<3xi64>) -> tensor<1x2x2xi1>
  return %0, %2 : tensor<2x2xi32>, tensor<1x2x2xi1>
}

// -----

// A mask from ranges; and a number that is repeated stays one.
// CHECK-LABEL: func.func @mask
// CHECK-DAG: dlc.constant<dense<{{\[\[}}true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>>
// CHECK-DAG: dlc.constant<dense<-1.000000e+01> : tensor<3x3xf32>>
// CHECK-NOT: dlc.iota
func.func @mask() -> (tensor<3x3xi1>, tensor<3x3xf32>) {
  %shape = dlc.constant<dense<3> : tensor<2xi64>> : tensor<2xi64>
  %row = dlc.iota %shape {axis = 0 : i64} : (tensor<2xi64>) -> tensor<3x3xi64>
  %column = dlc.iota %shape {axis = 1 : i64} : (tensor<2xi64>) -> tensor<3x3xi64>
  %0 = dlc.greater_or_equal %row, %column : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
  %ten = dlc.constant<dense<10.0> : tensor<f32>> : tensor<f32>
  %1 = dlc.neg %ten : (tensor<f32>) -> tensor<f32>
  %2 = dlc.expand %1, %shape : (tensor<f32>, tensor<2xi64>) -> tensor<3x3xf32>
  return %0, %2 : tensor<3x3xi1>, tensor<3x3xf32>
}

// -----

// A run does not read the second operand of expand, so it need not be known. Where the dims or the place of a slice are not, all stays.
// CHECK-LABEL: func.func @partly_known
// CHECK-DAG: %[[A:.*]] = dlc.constant<dense<{{\[\[}}1, 1], [2, 2]]> : tensor<2x2xi32>>
// CHECK-DAG: %[[X:.*]] = dlc.constant<dense<{{\[\[}}1], [2]]> : tensor<2x1xi32>>
// CHECK-DAG: %[[B:.*]] = dlc.expand %[[X]], %arg0 {{.*}} -> tensor<2x?xi32
// CHECK-DAG: %[[C:.*]] = dlc.slice %[[X]]
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @partly_known(%shape: tensor<2xi64>, %at: tensor<1xi64>) -> (tensor<2x2xi32>, tensor<2x?xi32, #dlc.info<[2, n]>>, tensor<1x1xi32>) {
  %x = dlc.constant<dense<[[1], [2]]> : tensor<2x1xi32>> : tensor<2x1xi32>
  %0 = dlc.expand %x, %shape : (tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x2xi32>
  %1 = dlc.expand %x, %shape : (tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x?xi32, #dlc.info<[2, n]>>
  %2 = dlc.slice %x, %at, %at {resolvedStarts = [#dlc.dim<k>, #dlc.dim<0>], resolvedSteps = [#dlc.dim<1>, #dlc.dim<1>]} : (tensor<2x1xi32>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x1xi32>
  return %0, %1, %2 : tensor<2x2xi32>, tensor<2x?xi32, #dlc.info<[2, n]>>, tensor<1x1xi32>
}

// -----

// 16384 elements of 4 bytes are folded however few they come from. One more, and they are repeated by each run; what is repeated is
// still computed here.
// CHECK-LABEL: func.func @large
// CHECK-DAG: %[[A:.*]] = dlc.constant<#dlc.weight<"{{.*}}", tensor<2x8192xi32>> :
// CHECK-DAG: %[[X:.*]] = dlc.constant<dense<{{\[\[}}-1], [-2]]> : tensor<2x1xi32>>
// CHECK-DAG: %[[B:.*]] = dlc.expand %[[X]], %{{.*}} -> tensor<2x8193xi32>
// CHECK: return %[[A]], %[[B]]
func.func @large() -> (tensor<2x8192xi32>, tensor<2x8193xi32>) {
  %x = dlc.constant<dense<[[1], [2]]> : tensor<2x1xi32>> : tensor<2x1xi32>
  %small = dlc.constant<dense<[2, 8192]> : tensor<2xi64>> : tensor<2xi64>
  %large = dlc.constant<dense<[2, 8193]> : tensor<2xi64>> : tensor<2xi64>
  %0 = dlc.neg %x : (tensor<2x1xi32>) -> tensor<2x1xi32>
  %1 = dlc.expand %0, %small : (tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x8192xi32>
  %2 = dlc.expand %0, %large : (tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x8193xi32>
  return %1, %2 : tensor<2x8192xi32>, tensor<2x8193xi32>
}

// -----

// Branches are looked into. What fails stays, where a run may never take it; the other constants do not.
// CHECK-LABEL: func.func @branches
// CHECK: dlc.if
// CHECK-NEXT: %[[A:.*]] = dlc.constant<dense<[3, 4]> : tensor<2xi32>>
// CHECK-NEXT: dlc.yield %[[A]]
// CHECK: dlc.constant<dense<0> : tensor<i32>>
// CHECK: %[[B:.*]] = dlc.div
// CHECK: dlc.yield %[[B]]
// STAYS: fold-constants.mlir:[[#@LINE+9]]:{{.*}} remark: depends on constants only, and stays for run time: {{.*}}divided by zero
func.func @branches(%c: tensor<i1>) -> tensor<2xi32> {
  %x = dlc.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32>
  %r = dlc.if %c attributes {resolvedCondition = #dlc.dim<k>} : tensor<i1> -> tensor<2xi32> {
    %two = dlc.constant<dense<2> : tensor<i32>> : tensor<i32>
    %0 = dlc.add %x, %two : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    dlc.yield %0 : tensor<2xi32>
  } else {
    %zero = dlc.constant<dense<0> : tensor<i32>> : tensor<i32>
    %0 = dlc.div %x, %zero : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    dlc.yield %0 : tensor<2xi32>
  }
  return %r : tensor<2xi32>
}

// -----

// An index outside its axis.
// CHECK-LABEL: func.func @outside
// CHECK: dlc.gather
// STAYS: remark: depends on constants only, and stays for run time: {{.*}}an index is out of range
func.func @outside() -> tensor<2xi32> {
  %x = dlc.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32>
  %at = dlc.constant<dense<[1, 2]> : tensor<2xi64>> : tensor<2xi64>
  %0 = dlc.gather %x, %at {axis = 0 : i64} : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// sin is the math library's, and not the same on every machine; exp of f32 is our own.
// CHECK-LABEL: func.func @library
// CHECK-DAG: %[[A:.*]] = dlc.constant<dense<1.000000e+00> : tensor<f32>>
// CHECK-DAG: %[[B:.*]] = dlc.sin
// CHECK: return %[[A]], %[[B]]
// STAYS: remark: depends on constants only, and stays for run time: it calls functions of the math library
func.func @library() -> (tensor<f32>, tensor<f64>) {
  %x = dlc.constant<dense<0.0> : tensor<f32>> : tensor<f32>
  %y = dlc.constant<dense<0.0> : tensor<f64>> : tensor<f64>
  %0 = dlc.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = dlc.sin %y : (tensor<f64>) -> tensor<f64>
  return %0, %1 : tensor<f32>, tensor<f64>
}

// -----

// Elements of 4 bits are constants only on the way.
// CHECK-LABEL: func.func @narrow
// CHECK-DAG: %[[A:.*]] = dlc.constant<dense<[7, -7]> : tensor<2xi32>>
// CHECK-DAG: %[[B:.*]] = dlc.bit_cast
// CHECK: return %[[A]], %[[B]]
func.func @narrow() -> (tensor<2xi32>, tensor<2xi4>) {
  %x = dlc.constant<dense<[-7, 7]> : tensor<2xi4>> : tensor<2xi4>
  %0 = dlc.cast %x {to = i32} : (tensor<2xi4>) -> tensor<2xi32>
  %1 = dlc.neg %0 : (tensor<2xi32>) -> tensor<2xi32>
  %2 = dlc.bit_cast %x {to = i4} : (tensor<2xi4>) -> tensor<2xi4>
  return %1, %2 : tensor<2xi32>, tensor<2xi4>
}

// -----

// No element, nothing to compute.
// CHECK-LABEL: func.func @empty
// CHECK: dlc.neg
func.func @empty() -> tensor<0xf32> {
  %x = dlc.constant<dense<[]> : tensor<0xf32>> : tensor<0xf32>
  %0 = dlc.neg %x : (tensor<0xf32>) -> tensor<0xf32>
  return %0 : tensor<0xf32>
}

// -----

// Bytes that are not there cannot be computed with.
// CHECK-LABEL: func.func @no_bytes
// CHECK: dlc.transpose
func.func @no_bytes() -> tensor<64x128xf32> {
  %x = dlc.constant<#dlc.weight<"0123456789abcdef0123456789abcdef", tensor<128x64xf32>>> : tensor<128x64xf32>
  %0 = dlc.transpose %x {perm = array<i64: 1, 0>} : (tensor<128x64xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}
