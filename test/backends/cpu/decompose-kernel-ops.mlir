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
