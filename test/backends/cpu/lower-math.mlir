// RUN: dlc-opt --lower-math --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK: module attributes {plan.imports = array<i32: 31, 4, 23>
module attributes {plan.target = "cpu:x86-64-v2"} {
  // Each function is loaded from the table once.
  // CHECK-LABEL: func.func private @k.body(
  // CHECK-SAME: %[[IMPORTS:[a-z0-9]*]]: !llvm.ptr, %{{[a-z0-9]*}}: !llvm.ptr, %{{[a-z0-9]*}}: index, %{{[a-z0-9]*}}: index)
  // CHECK-DAG: llvm.getelementptr %[[IMPORTS]][31]
  // CHECK-DAG: llvm.getelementptr %[[IMPORTS]][4]
  // CHECK-DAG: llvm.getelementptr %[[IMPORTS]][23]
  func.func private @k.body(%x: f32, %y: f64, %z: bf16, %d: !llvm.ptr, %scratch: !llvm.ptr, %imports: !llvm.ptr, %status: !llvm.ptr, %begin: index, %end: index) {
    // CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) {{.*}} : !llvm.ptr, (f32, f32) -> f32
    %0 = math.powf %x, %x : f32
    llvm.store %0, %d : f32, !llvm.ptr
    // CHECK: llvm.call %{{.*}} : !llvm.ptr, (f64) -> f64
    %1 = math.log2 %y : f64
    llvm.store %1, %d : f64, !llvm.ptr
    // CHECK: llvm.call %{{.*}} : !llvm.ptr, (f64, f64) -> f64
    %2 = arith.remf %y, %y : f64
    llvm.store %2, %d : f64, !llvm.ptr
    // CHECK-NOT: math.exp
    // CHECK: arith.shli
    %3 = math.exp %x : f32
    llvm.store %3, %d : f32, !llvm.ptr
    // Narrow types compute in f32.
    // CHECK: arith.extui {{.*}} : i16 to i32
    // CHECK: math.copysign
    // CHECK: arith.trunci {{.*}} : i32 to i16
    %4 = math.tanh %z : bf16
    llvm.store %4, %d : bf16, !llvm.ptr
    // What is an instruction stays, and a fused multiply-add must not become a call.
    // CHECK: math.sqrt
    %5 = math.sqrt %y : f64
    // CHECK: llvm.intr.fmuladd
    %6 = math.fma %5, %y, %y : f64
    llvm.store %6, %d : f64, !llvm.ptr
    return
  }
}

// -----

module attributes {plan.target = "cpu:x86-64-v2"} {
  func.func private @k.body(%x: f128, %d: !llvm.ptr, %scratch: !llvm.ptr, %imports: !llvm.ptr, %status: !llvm.ptr, %begin: index, %end: index) {
    // expected-error@+1 {{the CPU backend has no code for math.exp on 'f128'}}
    %0 = math.exp %x : f128
    llvm.store %0, %d : f128, !llvm.ptr
    return
  }
}
