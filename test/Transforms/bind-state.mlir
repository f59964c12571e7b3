// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=past_*=present_*})' | FileCheck %s
// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=auto})' | FileCheck %s
// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=auto},func.func(infer-shapes,simplify,infer-shapes))' | FileCheck %s
// RUN: dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state)' | FileCheck %s --check-prefix=NONE

// The input becomes state with room; what it was is the front of it, and what the output was the front of what the append gives.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[NEW:[a-z0-9]+]]: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, step, 4]>> {dlc.name = "new"}
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past_capacity, 4]>> {dlc.name = "past_k", dlc.state = 2 : i64}
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past_capacity, 4]>> {dlc.name = "past_v", dlc.state = 2 : i64}
// CHECK-SAME: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past + step, 4]>> {dlc.name = "seen"}
// CHECK-SAME: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past_capacity, 4]>> {dlc.name = "present_k", dlc.state_of = 1 : i64}
// CHECK-SAME: dlc.length = {capacity = "past_capacity", growth = #dlc.dim<step>, symbol = "past"}
// CHECK-SAME: #dlc.symbol<"past_capacity"
// CHECK: %[[A:.*]] = dlc.append %[[S]], %[[NEW]] {axis = 2 : i64, offset = #dlc.dim<past>}
// CHECK: %[[K:.*]] = dlc.prefix %[[A]] {axis = 2 : i64, length = #dlc.dim<past + step>}
// CHECK: dlc.append %{{.*}} {axis = 2 : i64, offset = #dlc.dim<past>}
// CHECK: %[[Y:.*]] = dlc.neg %[[K]]
// CHECK: return %[[Y]], %[[A]], %{{.*}}
// NONE-NOT: dlc.append
func.func @main(%new: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, step, 4]>> {dlc.name = "new"},
                %k: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past, 4]>> {dlc.name = "past_k"},
                %v: tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past, 4]>> {dlc.name = "past_v"})
    -> (tensor<*xf32> {dlc.name = "seen"}, tensor<*xf32> {dlc.name = "present_k"}, tensor<*xf32> {dlc.name = "present_v"})
    attributes {dlc.symbols = [#dlc.symbol<"past", 0, 9223372036854775807, 1, false>]} {
  %0 = dlc.concat %k, %new {axis = -2 : i64} : (tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past, 4]>>, tensor<?x2x?x4xf32, #dlc.info<[batch, 2, step, 4]>>) -> tensor<*xf32>
  %1 = dlc.concat %v, %new {axis = 2 : i64} : (tensor<?x2x?x4xf32, #dlc.info<[batch, 2, past, 4]>>, tensor<?x2x?x4xf32, #dlc.info<[batch, 2, step, 4]>>) -> tensor<*xf32>
  %2 = dlc.neg %0 : (tensor<*xf32>) -> tensor<*xf32>
  return %2, %0, %1 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// Functions share a state of one name; a function without it stays as it is.
// CHECK-LABEL: func.func @prefill
// CHECK-SAME: dlc.state = 0 : i64
// CHECK-LABEL: func.func @decode
// CHECK-SAME: dlc.state = 0 : i64
// CHECK-LABEL: func.func @encode
// CHECK-NOT: dlc.append
func.func @prefill(%past: tensor<?xi64, #dlc.info<[past]>> {dlc.name = "past_ids"}, %x: tensor<?xi64, #dlc.info<[step]>> {dlc.name = "x"})
    -> (tensor<*xi64> {dlc.name = "present_ids"}) {
  %0 = dlc.concat %past, %x {axis = 0 : i64} : (tensor<?xi64, #dlc.info<[past]>>, tensor<?xi64, #dlc.info<[step]>>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}
func.func @decode(%past: tensor<?xi64, #dlc.info<[past]>> {dlc.name = "past_ids"}, %x: tensor<1xi64> {dlc.name = "x"})
    -> (tensor<*xi64> {dlc.name = "present_ids"}) {
  %0 = dlc.concat %past, %x {axis = 0 : i64} : (tensor<?xi64, #dlc.info<[past]>>, tensor<1xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}
func.func @encode(%x: tensor<?xi64, #dlc.info<[step]>> {dlc.name = "x"}) -> (tensor<*xi64> {dlc.name = "y"}) {
  %0 = dlc.concat %x, %x {axis = 0 : i64} : (tensor<?xi64, #dlc.info<[step]>>, tensor<?xi64, #dlc.info<[step]>>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

// What is there before the run may be read too, where the pair was named (auto leaves it alone).
// RUN: not dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(infer-shapes),bind-state{pairs=past_a=present_a})' 2>/dev/null | FileCheck %s --check-prefix=OLD
// CHECK-LABEL: func.func @other
// OLD: func.func @reads_old
// OLD-SAME: %[[S:[a-z0-9]+]]: tensor<?xf32, #dlc.info<[past_capacity]>>
// OLD: %[[P:.*]] = dlc.prefix %[[S]] {axis = 0 : i64, length = #dlc.dim<past>}
// OLD: dlc.append %[[S]]
// OLD: dlc.neg %[[P]]
func.func @other(%past: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "past_b"}, %x: tensor<?xf32, #dlc.info<[step]>> {dlc.name = "x"})
    -> (tensor<*xf32> {dlc.name = "present_b"}) {
  %0 = dlc.concat %past, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<?xf32, #dlc.info<[step]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
func.func @reads_old(%past: tensor<?xf32, #dlc.info<[past]>> {dlc.name = "past_a"}, %x: tensor<?xf32, #dlc.info<[step]>> {dlc.name = "x"})
    -> (tensor<*xf32> {dlc.name = "y"}, tensor<*xf32> {dlc.name = "present_a"}) {
  %0 = dlc.concat %past, %x {axis = 0 : i64} : (tensor<?xf32, #dlc.info<[past]>>, tensor<?xf32, #dlc.info<[step]>>) -> tensor<*xf32>
  %1 = dlc.neg %past : (tensor<?xf32, #dlc.info<[past]>>) -> tensor<*xf32>
  return %1, %0 : tensor<*xf32>, tensor<*xf32>
}
