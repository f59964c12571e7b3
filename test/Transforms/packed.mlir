// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops,infer-shapes,simplify))' | FileCheck %s

// Packing knows one axis; the bytes are the same under any dims.
// CHECK-LABEL: func.func @axes
// CHECK: %[[X:.*]] = dlc.reshape %arg0{{.*}} -> tensor<?xi4, #dlc.info<[n * 3], #dlc.packed>>
// CHECK: %[[U:.*]] = dlc.unpack %[[X]] : {{.*}} -> tensor<?xi4, #dlc.info<[n * 3]>>
// CHECK: %[[R:.*]] = dlc.reshape %[[U]]{{.*}} -> tensor<?x3xi4, #dlc.info<[n, 3]>>
// CHECK: %[[T:.*]] = dlc.transpose %[[R]]
// CHECK: %[[F:.*]] = dlc.reshape %[[T]]{{.*}} -> tensor<?xi4, #dlc.info<[n * 3]>>
// CHECK: %[[P:.*]] = dlc.pack %[[F]] : {{.*}} -> tensor<?xi4, #dlc.info<[n * 3], #dlc.packed>>
// CHECK: %[[Y:.*]] = dlc.reshape %[[P]]{{.*}} -> tensor<3x?xi4, #dlc.info<[3, n], #dlc.packed>>
// CHECK: return %[[Y]]
func.func @axes(%x: tensor<?x3xi4, #dlc.info<[n, 3], #dlc.packed>>) -> tensor<*xi4> {
  %0 = dlc.unpack %x : (tensor<?x3xi4, #dlc.info<[n, 3], #dlc.packed>>) -> tensor<?x3xi4, #dlc.info<[n, 3]>>
  %1 = dlc.transpose %0 : (tensor<?x3xi4, #dlc.info<[n, 3]>>) -> tensor<*xi4>
  %2 = dlc.pack %1 : (tensor<*xi4>) -> tensor<*xi4>
  return %2 : tensor<*xi4>
}

// CHECK-LABEL: func.func @untouched
// CHECK-NEXT: return %arg0
func.func @untouched(%x: tensor<5xui2, #dlc.info<[5], #dlc.packed>>) -> tensor<*xui2> {
  %0 = dlc.unpack %x : (tensor<5xui2, #dlc.info<[5], #dlc.packed>>) -> tensor<*xui2>
  %1 = dlc.pack %0 : (tensor<*xui2>) -> tensor<*xui2>
  return %1 : tensor<*xui2>
}
