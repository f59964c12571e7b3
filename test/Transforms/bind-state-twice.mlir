// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=past_*=present_*})' | FileCheck %s

// What is appended may be the state's own front, which is read as long as it is, not as long as it may be.
// CHECK-LABEL: func.func @twice
// CHECK: %[[OLD:.*]] = dlc.prefix %[[S:arg0]] {axis = 0 : i64, length = #dlc.dim<past>}
// CHECK: dlc.append %[[S]], %[[OLD]] {axis = 0 : i64, offset = #dlc.dim<past>}
func.func @twice(%p: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "past_k"}) -> (tensor<*xf32> {dlc.name = "present_k"}) {
  %0 = dlc.concat %p, %p {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<?xf32, #dlc.info<[past]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
