// The linker resets the options of the whole process, so that a second file in one run would see none.
// RUN: split-file %s %t
// RUN: dlc-opt --emit-image %t/image.mlir | FileCheck %t/image.mlir
// RUN: dlc-opt --emit-image --verify-diagnostics %t/call.mlir -o /dev/null
// RUN: dlc-opt --emit-image --verify-diagnostics %t/stack.mlir -o /dev/null
// RUN: dlc-opt --emit-image --verify-diagnostics %t/data.mlir -o /dev/null
// RUN: dlc-opt --emit-image --verify-diagnostics %t/kernel.mlir -o /dev/null

//--- image.mlir
// CHECK: module attributes {plan.image = #dlc.weight<"{{[0-9a-f]+}}", tensor<{{[0-9]+}}xi8>> : tensor<{{[0-9]+}}xi8>, plan.imports = array<i32: 2, 5>, plan.target = "cpu:x86-64-v2"}
// CHECK: plan.kernel @k operands 1 destinations 1 scalars 0 {entry = {{[0-9]+}} : i64, kind = #plan.kind<other, 0>, plan.imports = array<i32: 5, 2>, scratch = 64 : i64, stack = {{[0-9]+}} : i64}
// CHECK-NOT: llvm.func
module attributes {plan.target = "cpu:x86-64-v2"} {
  plan.kernel @k operands 1 destinations 1 scalars 0 {kind = #plan.kind<other, 0>} (%x: tensor<f32>, %d: tensor<f32>) {
    plan.yield %x : tensor<f32>
  }
  module attributes {plan.code = @k, plan.imports = array<i32: 5, 2>} {
    llvm.func @k(%args: !llvm.ptr, %worker: !llvm.ptr, %begin: i32, %end: i32) attributes {plan.scratch = 64 : i64} {
      llvm.return
    }
  }
}

//--- call.mlir
// expected-error@+1 {{kernel 'k' calls 'puts', which is neither in the kernel support nor an import of the runtime}}
module attributes {plan.target = "cpu:x86-64-v2"} {
  plan.kernel @k operands 1 destinations 1 scalars 0 {kind = #plan.kind<other, 0>} (%x: tensor<f32>, %d: tensor<f32>) {
    plan.yield %x : tensor<f32>
  }
  module attributes {plan.code = @k} {
    llvm.func @puts(!llvm.ptr)
    llvm.func @k(%args: !llvm.ptr, %worker: !llvm.ptr, %begin: i32, %end: i32) attributes {plan.scratch = 0 : i64} {
      llvm.call @puts(%args) : (!llvm.ptr) -> ()
      llvm.return
    }
  }
}

//--- stack.mlir
module attributes {plan.target = "cpu:x86-64-v2"} {
  // expected-error@+1 {{bytes of stack; a kernel may use 16384}}
  plan.kernel @k operands 1 destinations 1 scalars 0 {kind = #plan.kind<other, 0>} (%x: tensor<f32>, %d: tensor<f32>) {
    plan.yield %x : tensor<f32>
  }
  module attributes {plan.code = @k} {
    llvm.func @k(%args: !llvm.ptr, %worker: !llvm.ptr, %begin: i32, %end: i32) attributes {plan.scratch = 0 : i64} {
      %size = llvm.mlir.constant(20000 : i32) : i32
      %big = llvm.alloca %size x i8 : (i32) -> !llvm.ptr
      %at = llvm.getelementptr %big[%begin] : (!llvm.ptr, i32) -> !llvm.ptr, i8
      llvm.store volatile %begin, %at : i32, !llvm.ptr
      llvm.return
    }
  }
}

//--- data.mlir
// expected-error@+1 {{the linked image is not as expected: it has writable data}}
module attributes {plan.target = "cpu:x86-64-v2"} {
  plan.kernel @k operands 1 destinations 1 scalars 0 {kind = #plan.kind<other, 0>} (%x: tensor<f32>, %d: tensor<f32>) {
    plan.yield %x : tensor<f32>
  }
  module attributes {plan.code = @k} {
    llvm.mlir.global external @counter(1 : i32) : i32
    llvm.func @k(%args: !llvm.ptr, %worker: !llvm.ptr, %begin: i32, %end: i32) attributes {plan.scratch = 0 : i64} {
      %at = llvm.mlir.addressof @counter : !llvm.ptr
      llvm.store volatile %begin, %at : i32, !llvm.ptr
      llvm.return
    }
  }
}

//--- kernel.mlir
module attributes {plan.target = "cpu:x86-64-v2"} {
  // expected-error@+1 {{there is no kernel @other}}
  module attributes {plan.code = @other} {
  }
}
