// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops))' | FileCheck %s

// One contraction is one matrix product: batch, rows, columns and what is summed are told apart by the letters.
// CHECK-LABEL: func.func @contraction
// CHECK: %[[X:.*]] = dlc.transpose {{.*}} {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[Y:.*]] = dlc.transpose {{.*}} {perm = array<i64: 0, 2, 3, 1>}
// CHECK: %[[P:.*]] = dlc.matmul %[[X]], %[[Y]] {{.*}} -> tensor<?x4x?x?xf32, #dlc.info<[b, 4, q, k]>>
// CHECK: return %[[P]]
func.func @contraction(%x: tensor<?x?x4x8xf32, #dlc.info<[b, q, 4, 8]>>, %y: tensor<?x?x4x8xf32, #dlc.info<[b, k, 4, 8]>>) -> tensor<*xf32> {
  %0 = dlc.einsum "bqhd,bkhd->bhqk" %x, %y : (tensor<?x?x4x8xf32, #dlc.info<[b, q, 4, 8]>>, tensor<?x?x4x8xf32, #dlc.info<[b, k, 4, 8]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @outer
// CHECK-NOT: dlc.matmul
// CHECK: dlc.mul {{.*}} -> tensor<3x5xf32>
func.func @outer(%x: tensor<3xf32>, %y: tensor<5xf32>) -> tensor<*xf32> {
  %0 = dlc.einsum "i,j->ij" %x, %y : (tensor<3xf32>, tensor<5xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// Without a right side: letters that occur once, in order; here none. What `...` stands for comes first.
// CHECK-LABEL: func.func @trace
// CHECK: %[[D:.*]] = dlc.diagonal {{.*}} {axes = array<i64: 1, 2>}
// CHECK: dlc.reduce sum %[[D]] {{.*}}axes = array<i64: 1>{{.*}} -> tensor<?xf32, #dlc.info<[b]>>
func.func @trace(%x: tensor<?x3x3xf32, #dlc.info<[b, 3, 3]>>) -> tensor<*xf32> {
  %0 = dlc.einsum "...ii" %x : (tensor<?x3x3xf32, #dlc.info<[b, 3, 3]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @may_differ
// CHECK: dlc.check <select_eq(a, b, 1, 0)>, <a>, <b>, "axes named 'i' differ: {0} and {1}"
func.func @may_differ(%x: tensor<?xf32, #dlc.info<[a]>>, %y: tensor<?xf32, #dlc.info<[b]>>) -> tensor<*xf32> {
  %0 = dlc.einsum "i, i" %x, %y : (tensor<?xf32, #dlc.info<[a]>>, tensor<?xf32, #dlc.info<[b]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @differ(%x: tensor<3xf32>, %y: tensor<5xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{axes named 'i' differ: 3 and 5}}
  %0 = dlc.einsum "i,i" %x, %y : (tensor<3xf32>, tensor<5xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @terms(%x: tensor<3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the equation 'i,i' has 2 terms for 1 operands}}
  %0 = dlc.einsum "i,i" %x : (tensor<3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @rank(%x: tensor<3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{term 0 of the equation, 'ij', names 2 axes, but the operand has 1}}
  %0 = dlc.einsum "ij->i" %x : (tensor<3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @characters(%x: tensor<3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{term 0 of the equation, 'i..', is not made of letters and at most one '...'}}
  %0 = dlc.einsum "i.." %x : (tensor<3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @unknown(%x: tensor<3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the right side of the equation 'i->j' names axis 'j', which no operand has}}
  %0 = dlc.einsum "i->j" %x : (tensor<3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @twice(%x: tensor<3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the right side of the equation 'i->ii' names axis 'i' twice}}
  %0 = dlc.einsum "i->ii" %x : (tensor<3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
