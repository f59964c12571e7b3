// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse),outline-kernels,lower-to-linalg)' | FileCheck %s

// Elements of 4 bits have a byte of their own in memory, and half a byte in what the caller sees. A tile computes whole bytes.
// CHECK-LABEL: plan.kernel @k0_unpack
// CHECK-SAME: (%[[X:.*]]: tensor<?xi8>, %[[D:.*]]: tensor<?xi8>,
// CHECK: linalg.generic {{.*}} outs(%[[D]] : tensor<?xi8>)
// CHECK: tensor.extract %[[X]]
// CHECK: arith.shrsi
// CHECK-LABEL: plan.kernel @k2_cast
// CHECK-NOT: scf.if
// CHECK-NOT: arith.addf
// CHECK: arith.sitofp {{.*}} : i8 to f32
// CHECK: arith.bitcast {{.*}} : f32 to i32
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK-LABEL: plan.kernel @k3_pack
// CHECK-SAME: (%[[Y:.*]]: tensor<?xi8>, %[[B:.*]]: tensor<?xi8>,
// CHECK: linalg.generic {{.*}} outs(%[[B]] : tensor<?xi8>)
// CHECK-COUNT-2: tensor.extract %[[Y]]
// CHECK: plan.output 1 dims [#dlc.dim<n>] bytes <floordiv(n + 1, 2)>
// CHECK: plan.launch @k3_pack({{.*}}) {{.*}} domain [#dlc.dim<floordiv(n + 1, 2)>]
func.func @main(%x: tensor<?xi4, #dlc.info<[n], #dlc.packed>> {dlc.name = "x"})
    -> (tensor<?xf8E4M3FN, #dlc.info<[n]>> {dlc.name = "y"}, tensor<?xi4, #dlc.info<[n], #dlc.packed>> {dlc.name = "z"}) {
  %0 = dlc.unpack %x : (tensor<?xi4, #dlc.info<[n], #dlc.packed>>) -> tensor<?xi4, #dlc.info<[n]>>
  %1 = dlc.transpose %0 {perm = array<i64: 0>} : (tensor<?xi4, #dlc.info<[n]>>) -> tensor<?xi4, #dlc.info<[n]>>
  %2 = dlc.cast %1 {to = f8E4M3FN} : (tensor<?xi4, #dlc.info<[n]>>) -> tensor<?xf8E4M3FN, #dlc.info<[n]>>
  %3 = dlc.pack %1 : (tensor<?xi4, #dlc.info<[n]>>) -> tensor<?xi4, #dlc.info<[n], #dlc.packed>>
  return %2, %3 : tensor<?xf8E4M3FN, #dlc.info<[n]>>, tensor<?xi4, #dlc.info<[n], #dlc.packed>>
}
