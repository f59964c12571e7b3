// RUN: dlc-opt --decompose-kernel-ops --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func.func @scan(
// CHECK-NOT: dlc.kernel_scan
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: tensor.insert
func.func @scan(%x: tensor<?x8xf32>, %d: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dlc.kernel_scan sum ins(%x : tensor<?x8xf32>) outs(%d : tensor<?x8xf32>) {axis = 1 : i64, exclusive = false, reverse = false} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// A heap in the result, then heap sort: no memory of its own.
// CHECK-LABEL: func.func @argsort(
// CHECK-NOT: dlc.kernel_argsort
// CHECK-NOT: tensor.empty
// CHECK: scf.while
// CHECK: return
func.func @argsort(%x: tensor<?x8xi32>, %d: tensor<?x3xi64>) -> tensor<?x3xi64> {
  %0 = dlc.kernel_argsort ins(%x : tensor<?x8xi32>) outs(%d : tensor<?x3xi64>) {axis = 1 : i64, lexicographic = false} -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// CHECK-LABEL: func.func @compact(
// CHECK-NOT: dlc.kernel_compact
// CHECK: scf.for
// CHECK: scf.if
// CHECK: tensor.insert
func.func @compact(%x: tensor<?xi8>, %d: tensor<?xi64>) -> tensor<?xi64> {
  %0 = dlc.kernel_compact ins(%x : tensor<?xi8>) outs(%d : tensor<?xi64>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// CHECK-LABEL: func.func @triangularize(
// CHECK-NOT: dlc.kernel_triangularize
// CHECK-NOT: tensor.empty
// CHECK: arith.divf
// CHECK: return
func.func @triangularize(%x: tensor<?x3x3xf64>, %d: tensor<?x3x3xf64>) -> tensor<?x3x3xf64> {
  %0 = dlc.kernel_triangularize ins(%x : tensor<?x3x3xf64>) outs(%d : tensor<?x3x3xf64>) -> tensor<?x3x3xf64>
  return %0 : tensor<?x3x3xf64>
}

// A copy, then the updates in their order, each where it is inside.
// CHECK-LABEL: func.func @scatter(
// CHECK-NOT: dlc.kernel_scatter
// CHECK: scf.for
// CHECK: tensor.insert
// CHECK: scf.for
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: arith.maxui
// CHECK: tensor.insert
// CHECK: dlc.kernel_raise 1
func.func @scatter(%x: tensor<?x8xi8>, %i: tensor<?x1xi64>, %u: tensor<?x8xi8>, %d: tensor<?x8xi8>) -> tensor<?x8xi8> {
  %0 = dlc.kernel_scatter ins(%x, %i, %u : tensor<?x8xi8>, tensor<?x1xi64>, tensor<?x8xi8>) outs(%d : tensor<?x8xi8>) {kind = #dlc<reduce_kind max>, element = ui8} -> tensor<?x8xi8>
  return %0 : tensor<?x8xi8>
}
