// RUN: dlc-opt --lower-math --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK: module attributes {plan.imports = array<i32: 7, 4, 23>
module attributes {plan.target = "cpu:x86-64-v2"} {
  // Each function is loaded from the table once.
  // CHECK-LABEL: func.func private @k.body(
  // CHECK-SAME: %[[IMPORTS:[a-z0-9]*]]: !llvm.ptr, %{{[a-z0-9]*}}: !llvm.ptr, %{{[a-z0-9]*}}: index, %{{[a-z0-9]*}}: index)
  // CHECK-DAG: llvm.getelementptr %[[IMPORTS]][7]
  // CHECK-DAG: llvm.getelementptr %[[IMPORTS]][4]
  // CHECK-DAG: llvm.getelementptr %[[IMPORTS]][23]
  func.func private @k.body(%x: f32, %y: f64, %z: bf16, %d: !llvm.ptr, %scratch: !llvm.ptr, %imports: !llvm.ptr, %status: !llvm.ptr, %begin: index, %end: index) {
    // CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) {{.*}} : !llvm.ptr, (f64, f64) -> f64
    %0 = math.powf %y, %y : f64
    llvm.store %0, %d : f64, !llvm.ptr
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
    // CHECK: arith.divf {{.*}} : f32
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

// Functions of f32 are arithmetic: without calls and branches, on scalars and on vectors.

// CHECK-LABEL: module attributes {plan.imports = array<i32>
module attributes {plan.target = "cpu:x86-64-v2"} {
  // CHECK-LABEL: func.func private @k.body(
  // CHECK-NOT: math.{{exp|log|tan|sin|cos|atan|pow|cbrt|erf|fma}}
  // CHECK-NOT: call
  // CHECK-NOT: cf.
  // CHECK-NOT: scf.
  // CHECK: return
  func.func private @k.body(%x: f32, %v: vector<8xf32>, %d: !llvm.ptr, %scratch: !llvm.ptr, %imports: !llvm.ptr, %status: !llvm.ptr, %begin: index, %end: index) {
    %0 = math.exp %x : f32
    llvm.store %0, %d : f32, !llvm.ptr
    %1 = math.exp2 %x : f32
    llvm.store %1, %d : f32, !llvm.ptr
    %2 = math.expm1 %x : f32
    llvm.store %2, %d : f32, !llvm.ptr
    %3 = math.log %x : f32
    llvm.store %3, %d : f32, !llvm.ptr
    %4 = math.log2 %x : f32
    llvm.store %4, %d : f32, !llvm.ptr
    %5 = math.log10 %x : f32
    llvm.store %5, %d : f32, !llvm.ptr
    %6 = math.log1p %x : f32
    llvm.store %6, %d : f32, !llvm.ptr
    %7 = math.sin %x : f32
    llvm.store %7, %d : f32, !llvm.ptr
    %8 = math.cos %x : f32
    llvm.store %8, %d : f32, !llvm.ptr
    %9 = math.tan %x : f32
    llvm.store %9, %d : f32, !llvm.ptr
    %10 = math.asin %x : f32
    llvm.store %10, %d : f32, !llvm.ptr
    %11 = math.acos %x : f32
    llvm.store %11, %d : f32, !llvm.ptr
    %12 = math.atan %x : f32
    llvm.store %12, %d : f32, !llvm.ptr
    %13 = math.sinh %x : f32
    llvm.store %13, %d : f32, !llvm.ptr
    %14 = math.cosh %x : f32
    llvm.store %14, %d : f32, !llvm.ptr
    %15 = math.tanh %x : f32
    llvm.store %15, %d : f32, !llvm.ptr
    %16 = math.asinh %x : f32
    llvm.store %16, %d : f32, !llvm.ptr
    %17 = math.acosh %x : f32
    llvm.store %17, %d : f32, !llvm.ptr
    %18 = math.atanh %x : f32
    llvm.store %18, %d : f32, !llvm.ptr
    %19 = math.erf %x : f32
    llvm.store %19, %d : f32, !llvm.ptr
    %20 = math.cbrt %x : f32
    llvm.store %20, %d : f32, !llvm.ptr
    %21 = math.powf %x, %x : f32
    llvm.store %21, %d : f32, !llvm.ptr
    %22 = math.atan2 %x, %x : f32
    llvm.store %22, %d : f32, !llvm.ptr
    %23 = math.exp %v : vector<8xf32>
    llvm.store %23, %d : vector<8xf32>, !llvm.ptr
    %24 = math.exp2 %v : vector<8xf32>
    llvm.store %24, %d : vector<8xf32>, !llvm.ptr
    %25 = math.expm1 %v : vector<8xf32>
    llvm.store %25, %d : vector<8xf32>, !llvm.ptr
    %26 = math.log %v : vector<8xf32>
    llvm.store %26, %d : vector<8xf32>, !llvm.ptr
    %27 = math.log2 %v : vector<8xf32>
    llvm.store %27, %d : vector<8xf32>, !llvm.ptr
    %28 = math.log10 %v : vector<8xf32>
    llvm.store %28, %d : vector<8xf32>, !llvm.ptr
    %29 = math.log1p %v : vector<8xf32>
    llvm.store %29, %d : vector<8xf32>, !llvm.ptr
    %30 = math.sin %v : vector<8xf32>
    llvm.store %30, %d : vector<8xf32>, !llvm.ptr
    %31 = math.cos %v : vector<8xf32>
    llvm.store %31, %d : vector<8xf32>, !llvm.ptr
    %32 = math.tan %v : vector<8xf32>
    llvm.store %32, %d : vector<8xf32>, !llvm.ptr
    %33 = math.asin %v : vector<8xf32>
    llvm.store %33, %d : vector<8xf32>, !llvm.ptr
    %34 = math.acos %v : vector<8xf32>
    llvm.store %34, %d : vector<8xf32>, !llvm.ptr
    %35 = math.atan %v : vector<8xf32>
    llvm.store %35, %d : vector<8xf32>, !llvm.ptr
    %36 = math.sinh %v : vector<8xf32>
    llvm.store %36, %d : vector<8xf32>, !llvm.ptr
    %37 = math.cosh %v : vector<8xf32>
    llvm.store %37, %d : vector<8xf32>, !llvm.ptr
    %38 = math.tanh %v : vector<8xf32>
    llvm.store %38, %d : vector<8xf32>, !llvm.ptr
    %39 = math.asinh %v : vector<8xf32>
    llvm.store %39, %d : vector<8xf32>, !llvm.ptr
    %40 = math.acosh %v : vector<8xf32>
    llvm.store %40, %d : vector<8xf32>, !llvm.ptr
    %41 = math.atanh %v : vector<8xf32>
    llvm.store %41, %d : vector<8xf32>, !llvm.ptr
    %42 = math.erf %v : vector<8xf32>
    llvm.store %42, %d : vector<8xf32>, !llvm.ptr
    %43 = math.cbrt %v : vector<8xf32>
    llvm.store %43, %d : vector<8xf32>, !llvm.ptr
    %44 = math.powf %v, %v : vector<8xf32>
    llvm.store %44, %d : vector<8xf32>, !llvm.ptr
    %45 = math.atan2 %v, %v : vector<8xf32>
    llvm.store %45, %d : vector<8xf32>, !llvm.ptr
    return
  }
}

// -----

// What is half in f64 works on as many lanes.

module attributes {plan.target = "cpu:x86-64-v2"} {
  // CHECK-LABEL: func.func private @k.body(
  func.func private @k.body(%v: vector<8xf32>, %d: !llvm.ptr, %scratch: !llvm.ptr, %imports: !llvm.ptr, %status: !llvm.ptr, %begin: index, %end: index) {
    // CHECK: arith.extf {{.*}} : vector<8xf32> to vector<8xf64>
    // CHECK: llvm.intr.fmuladd({{.*}}) : (vector<8xf64>, vector<8xf64>, vector<8xf64>) -> vector<8xf64>
    // CHECK: %[[SIN:.*]] = arith.bitcast {{.*}} : vector<8xi32> to vector<8xf32>
    // CHECK-NEXT: llvm.store %[[SIN]]
    %0 = math.sin %v : vector<8xf32>
    llvm.store %0, %d : vector<8xf32>, !llvm.ptr
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
