// RUN: dlc-opt %s | dlc-opt | FileCheck %s

// Equal dims are the same attribute however they are written: sums of products in one order.
// CHECK-LABEL: func.func private @canonical
// CHECK-SAME: [batch * seq + batch * 2, 384]
// CHECK-SAME: [batch * seq + batch * 2, 384]
func.func private @canonical(
  tensor<?x384xf32, #dlc.info<[seq * batch + 2 * batch, 384]>>,
  tensor<?x384xf32, #dlc.info<[(seq + 2) * batch, 3 * 128]>>)

// CHECK-LABEL: func.func private @folded
// CHECK-SAME: [seq, 1, mod(seq, 8), min(a, b), floordiv(seq + 1, 2)]
func.func private @folded(
  tensor<?x1x?x?x?xf32, #dlc.info<[floordiv(seq * 6, 6), ceildiv(5, 8), mod(seq, 8), min(b, a), floordiv(1 + seq, 2)]>>)

// Sizes are not negative, so some choices are decided.
// CHECK-LABEL: func.func private @decided
// CHECK-SAME: [seq + 1, seq, 7]
func.func private @decided(
  tensor<?x?x7xf32, #dlc.info<[max(seq + 1, 1), min(seq, seq + 3), select_lt(seq, 0, 3, 7)]>>)

// A broadcast of seq with what a table of 256 rows has of it is seq wherever it is possible at all.
// CHECK-LABEL: func.func private @chosen
// CHECK-SAME: [seq, min(256, seq), n]
func.func private @chosen(
  tensor<?x?x?xf32, #dlc.info<[select_eq(seq, 1, min(256, seq), seq), min(256, min(257, seq)), min(n, max(n, k))]>>)

// CHECK-LABEL: func.func private @names
// CHECK-SAME: ["p2o.Dim 0" * 2, scaled_floor(h, 4611686018427387904)]
func.func private @names(tensor<?x?xf32, #dlc.info<["p2o.Dim 0" * 2, scaled_floor(h, 4611686018427387904)]>>)

// Sizes of windows, by whichever formula: what is certain stands outside of a division, divisions of divisions are one.
// CHECK-LABEL: func.func private @windows
// CHECK-SAME: [floordiv(x + 1, 2), floordiv(x + 1, 2), floordiv(x + 3, 4)]
// CHECK-SAME: [x * 2 + floordiv(x, 2) + 3, floordiv(x, 2), mod(x + 1, 4)]
func.func private @windows(
  tensor<?x?x?xf32, #dlc.info<[floordiv(x + -1, 2) + 1, ceildiv(x, 2), floordiv(floordiv(x + -1, 2), 2) + 1]>>,
  tensor<?x?x?xf32, #dlc.info<[floordiv(x * 5 + 6, 2), floordiv(x * 4 + 3, 8), mod(x * 9 + 5, 4)]>>)

// A factor that is a sum divides as well.
// CHECK-LABEL: func.func private @factors
// CHECK-SAME: [b + 2, c * 3, floordiv(a * b, a + 1)]
func.func private @factors(
  tensor<?x?x?xf32, #dlc.info<[floordiv((a + 1) * (b + 2), a + 1), floordiv(3 * c * (a + 1) * (b + 2), (b + 2) * (a + 1)), floordiv(a * b, a + 1)]>>)
