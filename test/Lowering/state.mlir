// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(fuse),outline-kernels,lower-to-linalg)' | FileCheck %s
// RUN: not dlc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(fuse),outline-kernels,lower-to-linalg,collapse-dims,assign-slots)' 2>/dev/null | FileCheck %s --check-prefix=STAGES

// A state is no input and no output, and what is appended is written into it in place, in a loop over what is new. Who reads it follows.
// CHECK: plan.kernel @k0_append
// CHECK-SAME: (%[[S:.*]]: tensor<2x?x4xf32>, %[[X:.*]]: tensor<2x?x4xf32>, %[[D:.*]]: tensor<2x?x4xf32>, %{{.*}}: index, %{{.*}}: index, %[[AT:.*]]: index)
// CHECK: %[[A:.*]] = dlc.kernel_append ins(%[[X]] : tensor<2x?x4xf32>) outs(%[[D]] : tensor<2x?x4xf32>) at %[[AT]] {axis = 1 : i64}
// CHECK: plan.yield %[[A]]
// CHECK: plan.func @main inputs [#plan.value<"x", {{.*}}>] outputs [#plan.value<"y", {{[^"]*}}>]
// CHECK-SAME: states [#plan.state<"past", tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>>, 1>] length <"past", "past_capacity", <step>>
// CHECK: %[[STATE:.*]] = plan.state 0
// CHECK: %[[NEW:.*]] = plan.input 0
// CHECK: plan.launch @k0_append(%[[STATE]], %[[NEW]]) to(%[[STATE]]) scalars [#dlc.dim<past_capacity>, #dlc.dim<step>, #dlc.dim<past>] domain [#dlc.dim<2>, #dlc.dim<step>, #dlc.dim<4>]
// CHECK-SAME: plan.traffic = #dlc.dim<step * 64>
// CHECK: %[[Y:.*]] = plan.output 0
// CHECK: plan.launch @k1_prefix(%[[STATE]]) to(%{{.*}})
// CHECK-NOT: plan.copy
// CHECK: plan.return
// STAGES: plan.stage 0
// STAGES-NEXT: plan.launch @k0_append
// STAGES: plan.stage 1
// STAGES-NEXT: plan.launch @k1_prefix
func.func @main(%s: tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>> {dlc.name = "past", dlc.state = 1 : i64},
                %x: tensor<2x?x4xf32, #dlc.info<[2, step, 4]>> {dlc.name = "x"})
    -> (tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>> {dlc.name = "present", dlc.state_of = 0 : i64},
        tensor<2x?x4xf32, #dlc.info<[2, past + step, 4]>> {dlc.name = "y"})
    attributes {dlc.length = {symbol = "past", capacity = "past_capacity", growth = #dlc.dim<step>}} {
  %0 = dlc.append %s, %x {axis = 1 : i64, offset = #dlc.dim<past>} : (tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>>, tensor<2x?x4xf32, #dlc.info<[2, step, 4]>>) -> tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>>
  %1 = dlc.prefix %0 {axis = 1 : i64, length = #dlc.dim<past + step>} : (tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>>) -> tensor<2x?x4xf32, #dlc.info<[2, past + step, 4]>>
  return %0, %1 : tensor<2x?x4xf32, #dlc.info<[2, past_capacity, 4]>>, tensor<2x?x4xf32, #dlc.info<[2, past + step, 4]>>
}

// -----

// Of keys and values, those are read that are there, whatever the capacity.
// CHECK: plan.func @attention
// CHECK: plan.launch @k0_attention
// CHECK-SAME: plan.traffic = #dlc.dim<s * 128 + t * 128>
func.func @attention(%q: tensor<2x?x8xf32, #dlc.info<[2, s, 8]>> {dlc.name = "q"}, %k: tensor<2x?x8xf32, #dlc.info<[2, cap, 8]>> {dlc.name = "k"},
                     %v: tensor<?x2x8xf32, #dlc.info<[cap, 2, 8]>> {dlc.name = "v"}, %t: tensor<?xf32, #dlc.info<[t]>> {dlc.name = "t"})
    -> (tensor<2x?x8xf32, #dlc.info<[2, s, 8]>> {dlc.name = "y"}) {
  %0 = dlc.attention %q, %k, %v {kPerm = array<i64: 0, 1, 2>, keys = #dlc.dim<t>, qPerm = array<i64: 0, 1, 2>, resultPerm = array<i64: 0, 1, 2>, vPerm = array<i64: 1, 0, 2>}
      : (tensor<2x?x8xf32, #dlc.info<[2, s, 8]>>, tensor<2x?x8xf32, #dlc.info<[2, cap, 8]>>, tensor<?x2x8xf32, #dlc.info<[cap, 2, 8]>>) -> tensor<2x?x8xf32, #dlc.info<[2, s, 8]>> {
  ^bb0(%score: tensor<2x?x?xf32, #dlc.info<[2, s, t]>>):
    dlc.yield %score : tensor<2x?x?xf32, #dlc.info<[2, s, t]>>
  }
  return %0 : tensor<2x?x8xf32, #dlc.info<[2, s, 8]>>
}

// -----

func.func @no_state(%s: tensor<?xf32, #dlc.info<[n]>> {dlc.name = "s"}, %x: tensor<2xf32> {dlc.name = "x"}) -> (tensor<?xf32, #dlc.info<[n]>> {dlc.name = "y"}) {
  // expected-error @+1 {{what it extends is no state of the function}}
  %0 = dlc.append %s, %x {axis = 0 : i64, offset = #dlc.dim<n>} : (tensor<?xf32, #dlc.info<[n]>>, tensor<2xf32>) -> tensor<?xf32, #dlc.info<[n]>>
  return %0 : tensor<?xf32, #dlc.info<[n]>>
}

// -----

// expected-error @+1 {{it has arguments that are state, and no dlc.length that says how long they are}}
func.func @no_length(%s: tensor<?xf32, #dlc.info<[n]>> {dlc.name = "s", dlc.state = 0 : i64}) -> (tensor<?xf32, #dlc.info<[n]>> {dlc.name = "y", dlc.state_of = 0 : i64}) {
  return %s : tensor<?xf32, #dlc.info<[n]>>
}

// -----

func.func @other_result(%s: tensor<?xf32, #dlc.info<[c]>> {dlc.name = "s", dlc.state = 0 : i64}, %x: tensor<?xf32, #dlc.info<[c]>> {dlc.name = "x"})
    -> (tensor<?xf32, #dlc.info<[c]>> {dlc.name = "y", dlc.state_of = 0 : i64})
    attributes {dlc.length = {symbol = "n", capacity = "c", growth = #dlc.dim<1>}} {
  // expected-error @+1 {{result 0 is not what a state holds after the run}}
  return %x : tensor<?xf32, #dlc.info<[c]>>
}
