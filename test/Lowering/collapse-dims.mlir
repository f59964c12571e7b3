// RUN: dlc-opt --collapse-dims %s | FileCheck %s

// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1) -> (0, d1)>

// Batch and rows of a product with one matrix are rows; the epilogue's operands are over both or none. What two launches call it, differs.
// CHECK: plan.kernel @matmul operands 4 destinations 1 scalars 3
// CHECK-SAME: plan.dims = [array<i64: 2, -1>, array<i64: -1, -1>, array<i64: -1>, array<i64: 2, -1>, array<i64: 2, -1>]
// CHECK-SAME: %arg0: tensor<?x8xf32>, %arg1: tensor<8x5xf32>, %arg2: tensor<5xf32>, %arg3: tensor<?x5xf32>, %arg4: tensor<?x5xf32>, %arg5: index, %arg6: index, %arg7: index
// CHECK: linalg.generic {indexing_maps = [#[[MK]], #[[KN]], #[[MN]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]}

// One operand is broadcast along one dim only: nothing is joined there, but the dims behind it are.
// CHECK: plan.kernel @broadcast
// CHECK-SAME: %arg0: tensor<?x?xf32>, %arg1: tensor<1x?xf32>, %arg2: tensor<?x?xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[FIRST]], #[[ID]]]

// Indices keep dims apart, and so does a sum.
// CHECK: plan.kernel @index
// CHECK-SAME: %arg0: tensor<4x6xi64>
// CHECK: plan.kernel @sum
// CHECK-SAME: %arg0: tensor<4x6xf32>, %arg1: tensor<f32>

// CHECK: plan.launch @matmul{{.*}} scalars [#dlc.dim<b>, #dlc.dim<s>, #dlc.dim<b * s>] domain [#dlc.dim<b * s>, #dlc.dim<5>]
// CHECK: plan.launch @matmul{{.*}} scalars [#dlc.dim<3>, #dlc.dim<s>, #dlc.dim<s * 3>] domain [#dlc.dim<s * 3>, #dlc.dim<5>]
// CHECK: plan.launch @broadcast{{.*}} domain [#dlc.dim<b>, #dlc.dim<s * 7>]
// CHECK: plan.launch @index{{.*}} domain [#dlc.dim<4>, #dlc.dim<6>]

#b = #dlc.dim<"b">
#s = #dlc.dim<"s">
#id3 = affine_map<(i, j, k) -> (i, j, k)>
module {
  plan.kernel @matmul operands 4 destinations 1 scalars 2 {kind = #plan.kind<contraction, 1>,
      plan.dims = [array<i64: 0, 1, -1>, array<i64: -1, -1>, array<i64: -1>, array<i64: 0, 1, -1>, array<i64: 0, 1, -1>]}
      (%a: tensor<?x?x8xf32>, %w: tensor<8x5xf32>, %bias: tensor<5xf32>, %r: tensor<?x?x5xf32>, %d: tensor<?x?x5xf32>, %b: index, %s: index) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?x?x5xf32>) -> tensor<?x?x5xf32>
    %c = linalg.generic {indexing_maps = [affine_map<(i, m, n, k) -> (i, m, k)>, affine_map<(i, m, n, k) -> (k, n)>, affine_map<(i, m, n, k) -> (i, m, n)>],
                         iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %w : tensor<?x?x8xf32>, tensor<8x5xf32>) outs(%f : tensor<?x?x5xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<?x?x5xf32>
    %e = linalg.generic {indexing_maps = [#id3, affine_map<(i, m, n) -> (n)>, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%c, %bias, %r : tensor<?x?x5xf32>, tensor<5xf32>, tensor<?x?x5xf32>) outs(%d : tensor<?x?x5xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
      %p = arith.addf %x, %y : f32
      %q = arith.addf %p, %z : f32
      linalg.yield %q : f32
    } -> tensor<?x?x5xf32>
    plan.yield %e : tensor<?x?x5xf32>
  }
  plan.kernel @broadcast operands 2 destinations 1 scalars 2 {kind = #plan.kind<elementwise, 0>,
      plan.dims = [array<i64: 0, 1, -1>, array<i64: -1, 1, -1>, array<i64: 0, 1, -1>]}
      (%x: tensor<?x?x7xf32>, %y: tensor<1x?x7xf32>, %d: tensor<?x?x7xf32>, %b: index, %s: index) {
    %r = linalg.generic {indexing_maps = [#id3, affine_map<(i, j, k) -> (0, j, k)>, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %y : tensor<?x?x7xf32>, tensor<1x?x7xf32>) outs(%d : tensor<?x?x7xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.mulf %p, %q : f32
      linalg.yield %t : f32
    } -> tensor<?x?x7xf32>
    plan.yield %r : tensor<?x?x7xf32>
  }
  plan.kernel @index operands 0 destinations 1 scalars 0 {kind = #plan.kind<elementwise, 0>, plan.dims = [array<i64: -1, -1>]} (%d: tensor<4x6xi64>) {
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%d : tensor<4x6xi64>) {
    ^bb0(%o: i64):
      %i = linalg.index 1 : index
      %t = arith.index_cast %i : index to i64
      linalg.yield %t : i64
    } -> tensor<4x6xi64>
    plan.yield %r : tensor<4x6xi64>
  }
  plan.kernel @sum operands 1 destinations 1 scalars 0 {kind = #plan.kind<reduction, 1>, plan.dims = [array<i64: -1, -1>, array<i64>]}
      (%x: tensor<4x6xf32>, %d: tensor<f32>) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<f32>) -> tensor<f32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
        ins(%x : tensor<4x6xf32>) outs(%f : tensor<f32>) {
    ^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32
    } -> tensor<f32>
    plan.yield %r : tensor<f32>
  }
  plan.func @main inputs [] outputs [] symbols [] {
    %m = plan.slot <64>
    plan.launch @matmul(%m, %m, %m, %m) to (%m) scalars [#b, #s] domain [#b, #s, #dlc.dim<5>]
    plan.launch @matmul(%m, %m, %m, %m) to (%m) scalars [#dlc.dim<3>, #s] domain [#dlc.dim<3>, #s, #dlc.dim<5>]
    plan.launch @broadcast(%m, %m) to (%m) scalars [#b, #s] domain [#b, #s, #dlc.dim<7>]
    plan.launch @index() to (%m) scalars [] domain [#dlc.dim<4>, #dlc.dim<6>]
    plan.launch @sum(%m) to (%m) scalars [] domain []
    plan.return
  }
}
