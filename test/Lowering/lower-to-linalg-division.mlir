// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse),outline-kernels,lower-to-linalg)' | FileCheck %s

// A run that divides an integer by 0 fails; neither 0 nor MIN / -1 reaches the processor. What is known needs no test.
// CHECK: plan.kernel @k0_div
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT: scf.if %[[ZERO]]
// CHECK-NEXT: dlc.kernel_raise 2
// CHECK: arith.divsi
// CHECK: plan.kernel @k1_mod
// CHECK-NOT: scf.if
// CHECK: arith.remsi
// CHECK: plan.kernel @k2_pow
// CHECK-NOT: scf.while
// CHECK: arith.muli
// CHECK: arith.muli
// CHECK-NOT: arith.muli
// CHECK: plan.kernel @k3_pow
// CHECK: scf.while
func.func @main(%x: tensor<4xi32> {dlc.name = "x"}, %y: tensor<4xi32> {dlc.name = "y"}, %u: tensor<5xi32> {dlc.name = "u"},
                %v: tensor<6xi32> {dlc.name = "v"}, %w: tensor<7xi32> {dlc.name = "w"})
    -> (tensor<4xi32> {dlc.name = "a"}, tensor<5xi32> {dlc.name = "b"}, tensor<6xi32> {dlc.name = "c"}, tensor<7xi32> {dlc.name = "d"}) {
  %three = dlc.constant<dense<3> : tensor<i32>> : tensor<i32>
  %0 = dlc.div %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = dlc.mod %u, %three : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
  %2 = dlc.pow %v, %three : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
  %3 = dlc.pow %w, %w : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi32>
  return %0, %1, %2, %3 : tensor<4xi32>, tensor<5xi32>, tensor<6xi32>, tensor<7xi32>
}
