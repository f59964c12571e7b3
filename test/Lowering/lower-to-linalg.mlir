// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse),outline-kernels,lower-to-linalg)' | FileCheck %s

// Two equal computations are one kernel, whatever their symbols are called. Bool is a byte in memory.
// CHECK: #[[ID:.*]] = affine_map<(d0) -> (d0)>
// CHECK: plan.kernel @k0_greater operands 2 destinations 1 scalars 1
// CHECK-SAME: kind = #plan.kind<elementwise, 0>
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<?xf32>, %[[D:.*]]: tensor<?xi8>, %{{.*}}: index
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ID]], #[[ID]]]
// CHECK-SAME: outs(%[[D]] : tensor<?xi8>)
// CHECK: arith.cmpf ogt
// CHECK: arith.extui
// CHECK-NOT: plan.kernel
// CHECK: plan.launch @k0_greater({{.*}}) scalars [#dlc.dim<m>] domain [#dlc.dim<m>]
// CHECK: plan.launch @k0_greater({{.*}}) scalars [#dlc.dim<n>] domain [#dlc.dim<n>]
func.func @main(%a: tensor<?xf32, #dlc.info<[m]>> {dlc.name = "a"}, %b: tensor<?xf32, #dlc.info<[m]>> {dlc.name = "b"},
                %c: tensor<?xf32, #dlc.info<[n]>> {dlc.name = "c"}, %d: tensor<?xf32, #dlc.info<[n]>> {dlc.name = "d"})
    -> (tensor<?xi1, #dlc.info<[m]>> {dlc.name = "x"}, tensor<?xi1, #dlc.info<[n]>> {dlc.name = "y"}) {
  %0 = dlc.greater %a, %b : (tensor<?xf32, #dlc.info<[m]>>, tensor<?xf32, #dlc.info<[m]>>) -> tensor<?xi1, #dlc.info<[m]>>
  %1 = dlc.greater %c, %d : (tensor<?xf32, #dlc.info<[n]>>, tensor<?xf32, #dlc.info<[n]>>) -> tensor<?xi1, #dlc.info<[n]>>
  return %0, %1 : tensor<?xi1, #dlc.info<[m]>>, tensor<?xi1, #dlc.info<[n]>>
}
