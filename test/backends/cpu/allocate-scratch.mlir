// RUN: dlc-opt --allocate-scratch --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func.func @k(
// CHECK-SAME: %[[N:.*]]: index, %[[S:.*]]: memref<?xi8>) attributes {plan.scratch = 192 : i64}
// CHECK: %[[B:.*]] = affine.min
// CHECK: %[[Z:.*]] = arith.constant 0 : index
// CHECK: memref.view %[[S]][%[[Z]]][%[[B]]] : memref<?xi8> to memref<?xf64>
// CHECK: %[[O:.*]] = arith.constant 128 : index
// CHECK: memref.view %[[S]][%[[O]]][] : memref<?xi8> to memref<3xi8>
func.func @k(%n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %n step %c16 {
    %m = affine.min affine_map<(d)[s] -> (s - d, 16)>(%i)[%n]
    %a = memref.alloc(%m) : memref<?xf64>
    %b = memref.alloc() : memref<3xi8>
    memref.store %zero, %a[%c0] : memref<?xf64>
    %x = memref.load %b[%c0] : memref<3xi8>
  }
  return
}

// -----

func.func @unbounded(%n: index) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{needs 'memref<?xf32>' of scratch memory, whose size has no bound that is known at compile time}}
  %a = memref.alloc(%n) : memref<?xf32>
  %x = memref.load %a[%c0] : memref<?xf32>
  return
}

// -----

func.func @carried(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  // expected-error@+1 {{a buffer changes place from one iteration to the next}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> memref<4xf32> {
    %b = memref.alloc() : memref<4xf32>
    scf.yield %b : memref<4xf32>
  }
  return
}
