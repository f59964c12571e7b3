// RUN: dlc-opt --split-loops --canonicalize %s | FileCheck %s

// An index is read and tested once for a row; nothing is read where there are no elements.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[T:.*]]: memref<?x?xf32>, %[[AT:.*]]: memref<?xindex>, %[[D:.*]]: memref<?x?xf32>
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: %[[RUNS:.*]] = arith.cmpi sgt, %{{.*}}, %c0
// CHECK-NEXT: scf.if %[[RUNS]]
// CHECK-NEXT: %[[ROW:.*]] = memref.load %[[AT]][%[[I]]]
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]]
// CHECK-NEXT: scf.if %[[INSIDE]]
// CHECK-NEXT: scf.for %[[J:.*]] =
// CHECK-NEXT: %[[X:.*]] = memref.load %[[T]][%[[ROW]], %[[J]]]
// CHECK-NEXT: memref.store %[[X]], %[[D]][%[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.for
// CHECK: dlc.kernel_raise
func.func @gather(%t: memref<?x?xf32>, %at: memref<?xindex>, %d: memref<?x?xf32>, %rows: index, %m: index, %n: index) attributes {plan.operands = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %row = memref.load %at[%i] : memref<?xindex>
      %inside = arith.cmpi ult, %row, %rows : index
      %v = scf.if %inside -> f32 {
        %x = memref.load %t[%row, %j] : memref<?x?xf32>
        scf.yield %x : f32
      } else {
        dlc.kernel_raise 1
        scf.yield %zero : f32
      }
      memref.store %v, %d[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

// Each operand's part of a row is a loop of its own.
// CHECK-LABEL: func.func @concat(
// CHECK-SAME: %[[X:.*]]: memref<?x3xf32>, %[[Y:.*]]: memref<?x5xf32>, %[[D:.*]]: memref<?x8xf32>
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: scf.for %[[J:.*]] = %c0 to %c3
// CHECK-NEXT: memref.load %[[X]][%[[I]], %[[J]]]
// CHECK-NEXT: memref.store
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[J:.*]] = %c3 to %c8
// CHECK-NEXT: %[[K:.*]] = arith.subi %[[J]], %c3
// CHECK-NEXT: memref.load %[[Y]][%[[I]], %[[K]]]
// CHECK-NEXT: memref.store
// CHECK-NEXT: }
func.func @concat(%x: memref<?x3xf32>, %y: memref<?x5xf32>, %d: memref<?x8xf32>, %m: index) attributes {plan.operands = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %first = arith.cmpi slt, %j, %c3 : index
      %v = scf.if %first -> f32 {
        %a = memref.load %x[%i, %j] : memref<?x3xf32>
        scf.yield %a : f32
      } else {
        %k = arith.subi %j, %c3 : index
        %b = memref.load %y[%i, %k] : memref<?x5xf32>
        scf.yield %b : f32
      }
      memref.store %v, %d[%i, %j] : memref<?x8xf32>
    }
  }
  return
}

// What the kernel writes itself is read where it was.
// CHECK-LABEL: func.func @own(
// CHECK: scf.for
// CHECK-NEXT: memref.load
// CHECK: scf.if
func.func @own(%d: memref<?xf32>, %n: index) attributes {plan.operands = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %n step %c1 {
    %x = memref.load %d[%c0] : memref<?xf32>
    %low = arith.cmpf olt, %x, %zero : f32
    scf.if %low {
      memref.store %zero, %d[%j] : memref<?xf32>
    }
  }
  return
}
