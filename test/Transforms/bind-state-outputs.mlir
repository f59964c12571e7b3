// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=auto})' | FileCheck %s

// One Concat that is two outputs makes one state; the other output is a copy of its front.
// CHECK: dlc.name = "p", dlc.state = 0 : i64
// CHECK: dlc.name = "r", dlc.state_of = 0 : i64
// CHECK-NOT: dlc.state_of
// CHECK: %[[A:.*]] = dlc.append
// CHECK: %[[F:.*]] = dlc.prefix %[[A]]
// CHECK: return %[[A]], %[[F]]
func.func @main(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "p"}, %x: tensor<1xf32> {dlc.name = "x"})
    -> (tensor<*xf32> {dlc.name = "r"}, tensor<*xf32> {dlc.name = "s"}) {
  %0 = dlc.concat %p, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<1xf32>) -> tensor<*xf32>
  return %0, %0 : tensor<*xf32>, tensor<*xf32>
}
