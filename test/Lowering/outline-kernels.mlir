// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(fuse),outline-kernels)' | FileCheck %s

// A reshape is no instruction, a constant number is part of the code, an output is computed where it belongs.
// CHECK: plan.kernel @k0_mul operands 1 destinations 1
// CHECK: dlc.group
// CHECK: dlc.constant
// CHECK: dlc.mul
// CHECK: plan.func @main
// CHECK: %[[W:.*]] = plan.const
// CHECK: %[[X:.*]] = plan.input 0
// CHECK-NOT: plan.slot
// CHECK: %[[Y:.*]] = plan.output 0 dims [#dlc.dim<b * 4>] bytes <b * 16>
// CHECK: plan.launch @k0_mul(%[[X]]) to(%[[Y]])
// CHECK: %[[Z:.*]] = plan.output 1
// CHECK: plan.copy %[[Z]] from %[[W]]
// CHECK: plan.return
func.func @main(%x: tensor<?x4xf32, #dlc.info<[b, 4]>> {dlc.name = "x"})
    -> (tensor<?xf32, #dlc.info<[b * 4]>> {dlc.name = "y"}, tensor<2xf32> {dlc.name = "w"}) {
  %w = dlc.constant<dense<[1.0, 2.0]> : tensor<2xf32>> : tensor<2xf32>
  %half = dlc.constant<dense<0.5> : tensor<f32>> : tensor<f32>
  %flat = dlc.from_dims [#dlc.dim<b * 4>] : tensor<1xi64>
  %0 = dlc.mul %x, %half : (tensor<?x4xf32, #dlc.info<[b, 4]>>, tensor<f32>) -> tensor<?x4xf32, #dlc.info<[b, 4]>>
  %1 = dlc.reshape %0, %flat {allowzero = true} : (tensor<?x4xf32, #dlc.info<[b, 4]>>, tensor<1xi64>) -> tensor<?xf32, #dlc.info<[b * 4]>>
  return %1, %w : tensor<?xf32, #dlc.info<[b * 4]>>, tensor<2xf32>
}
