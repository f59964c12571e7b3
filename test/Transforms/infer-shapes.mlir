// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes))' | FileCheck %s

// CHECK-LABEL: func.func @broadcast
// CHECK: -> tensor<?x?x4xf32, #dlc.info<[b, s, 4]>>
func.func @broadcast(%x: tensor<?x1x4xf32, #dlc.info<[b, 1, 4]>>, %y: tensor<?x4xf32, #dlc.info<[s, 4]>>) -> tensor<*xf32> {
  %0 = dlc.add %x, %y : (tensor<?x1x4xf32, #dlc.info<[b, 1, 4]>>, tensor<?x4xf32, #dlc.info<[s, 4]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// Two sizes that may be equal, or one of them 1: decided at run time.
// CHECK-LABEL: func.func @may_broadcast
// CHECK: dlc.check <select_eq(a, 1, 1, select_eq(b, 1, 1, select_eq(a, b, 1, 0)))>, <a>, <b>, "dims a and b cannot be broadcast: {0} and {1}"
// CHECK: -> tensor<?xf32, #dlc.info<[select_eq(a, 1, b, a)]>>
func.func @may_broadcast(%x: tensor<?xf32, #dlc.info<[a]>>, %y: tensor<?xf32, #dlc.info<[b]>>) -> tensor<*xf32> {
  %0 = dlc.add %x, %y : (tensor<?xf32, #dlc.info<[a]>>, tensor<?xf32, #dlc.info<[b]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// A shape computed from a shape is only expressions.
// CHECK-LABEL: func.func @shape_chain
// CHECK-NOT: dlc.shape
// CHECK-NOT: dlc.concat
// CHECK: dlc.reshape
// CHECK-SAME: -> tensor<?x12xf32, #dlc.info<[b * s, 12]>>
func.func @shape_chain(%x: tensor<?x?x12xf32, #dlc.info<[b, s, 12]>>) -> tensor<*xf32> {
  %shape = dlc.shape %x {start = 2 : i64} : (tensor<?x?x12xf32, #dlc.info<[b, s, 12]>>) -> tensor<*xi64>
  %minus = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %target = dlc.concat %minus, %shape {axis = 0 : i64} : (tensor<1xi64>, tensor<*xi64>) -> tensor<*xi64>
  %0 = dlc.reshape %x, %target {allowzero = false} : (tensor<?x?x12xf32, #dlc.info<[b, s, 12]>>, tensor<*xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// A shape that is data is read.
// CHECK-LABEL: func.func @shape_is_data
// CHECK: dlc.read %{{.*}} as ["target[0]", "target[1]"]
// CHECK: dlc.check
// CHECK: dlc.reshape
func.func @shape_is_data(%x: tensor<?xf32, #dlc.info<[n]>>, %target: tensor<2xi64> {dlc.name = "target"}) -> tensor<*xf32> {
  %0 = dlc.reshape %x, %target {allowzero = false} : (tensor<?xf32, #dlc.info<[n]>>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// A known shape that somebody wants as a tensor.
// CHECK-LABEL: func.func @values
// CHECK: %[[V:.*]] = dlc.from_dims [#dlc.dim<b>, #dlc.dim<4>] : tensor<2xi64>
// CHECK: return %[[V]]
func.func @values(%x: tensor<?x4xf32, #dlc.info<[b, 4]>>) -> tensor<*xi64> {
  %0 = dlc.shape %x {start = 0 : i64} : (tensor<?x4xf32, #dlc.info<[b, 4]>>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// CHECK-LABEL: func.func @backwards
// CHECK: resolvedStarts = [#dlc.dim<n + -1>]
func.func @backwards(%x: tensor<?xf32, #dlc.info<[n]>>) -> tensor<*xf32> {
  %start = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %end = dlc.constant<dense<-9223372036854775808> : tensor<1xi64>> : tensor<1xi64>
  %axes = dlc.constant<dense<0> : tensor<1xi64>> : tensor<1xi64>
  %steps = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %0 = dlc.slice %x, %start, %end axes(%axes : tensor<1xi64>) steps(%steps : tensor<1xi64>) : (tensor<?xf32, #dlc.info<[n]>>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// Folding axes together again and again keeps the dims short.
// CHECK-LABEL: func.func @fold_axes
// CHECK: -> tensor<?x?xf32, #dlc.info<[a, b * c]>>
// CHECK: -> tensor<?x?xf32, #dlc.info<[b * c, a]>>
// CHECK: -> tensor<?x?xf32, #dlc.info<[b * c, a]>>
func.func @fold_axes(%x: tensor<?x?x?xf32, #dlc.info<[a, b, c]>>) -> tensor<*xf32> {
  %fold = dlc.constant<dense<[0, -1]> : tensor<2xi64>> : tensor<2xi64>
  %0 = dlc.reshape %x, %fold {allowzero = false} : (tensor<?x?x?xf32, #dlc.info<[a, b, c]>>, tensor<2xi64>) -> tensor<*xf32>
  %1 = dlc.transpose %0 : (tensor<*xf32>) -> tensor<*xf32>
  %2 = dlc.reshape %1, %fold {allowzero = false} : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}

// Sizes computed in floats, as exporters of Resize write them: floor(n * 0.5), and ceil(n / 3) * 3.
// CHECK-LABEL: func.func @scaled_size
// CHECK: %[[V:.*]] = dlc.from_dims [#dlc.dim<floordiv(n, 2)>] : tensor<1xi64>
// CHECK: %[[W:.*]] = dlc.from_dims [#dlc.dim<floordiv(n + 2, 3) * 3>] : tensor<1xi64>
// CHECK: return %[[V]], %[[W]]
func.func @scaled_size(%x: tensor<?xf32, #dlc.info<[n]>>) -> (tensor<*xi64>, tensor<*xi64>) {
  %shape = dlc.shape %x {start = 0 : i64} : (tensor<?xf32, #dlc.info<[n]>>) -> tensor<*xi64>
  %half = dlc.constant<dense<0.5> : tensor<f32>> : tensor<f32>
  %three = dlc.constant<dense<3.0> : tensor<1xf32>> : tensor<1xf32>
  %0 = dlc.cast %shape {to = f32} : (tensor<*xi64>) -> tensor<*xf32>
  %1 = dlc.mul %0, %half : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %2 = dlc.floor %1 : (tensor<*xf32>) -> tensor<*xf32>
  %3 = dlc.cast %2 {to = i64} : (tensor<*xf32>) -> tensor<*xi64>
  %4 = dlc.div %0, %three : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>
  %5 = dlc.ceil %4 : (tensor<*xf32>) -> tensor<*xf32>
  %6 = dlc.mul %5, %three : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>
  %7 = dlc.cast %6 {to = i64} : (tensor<*xf32>) -> tensor<*xi64>
  return %3, %7 : tensor<*xi64>, tensor<*xi64>
}

// 0.7 is no float, and n / 3 is rounded: what comes of them is computed at run time.
// CHECK-LABEL: func.func @rounded_size
// CHECK: %[[V:.*]] = dlc.cast %{{.*}} {to = i64}
// CHECK: %[[W:.*]] = dlc.cast %{{.*}} {to = i64}
// CHECK: return %[[V]], %[[W]]
func.func @rounded_size(%x: tensor<?xf32, #dlc.info<[n]>>) -> (tensor<*xi64>, tensor<*xi64>) {
  %shape = dlc.shape %x {start = 0 : i64} : (tensor<?xf32, #dlc.info<[n]>>) -> tensor<*xi64>
  %scale = dlc.constant<dense<0.7> : tensor<f32>> : tensor<f32>
  %three = dlc.constant<dense<3.0> : tensor<1xf32>> : tensor<1xf32>
  %0 = dlc.cast %shape {to = f32} : (tensor<*xi64>) -> tensor<*xf32>
  %1 = dlc.mul %0, %scale : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %2 = dlc.cast %1 {to = i64} : (tensor<*xf32>) -> tensor<*xi64>
  %3 = dlc.div %0, %three : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>
  %4 = dlc.mul %3, %three : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>
  %5 = dlc.cast %4 {to = i64} : (tensor<*xf32>) -> tensor<*xi64>
  return %2, %5 : tensor<*xi64>, tensor<*xi64>
}

// Integers truncate; mod has the divisor's sign, fmod the dividend's.
// CHECK-LABEL: func.func @integers
// CHECK: %[[D:.*]] = dlc.constant<dense<-3> : tensor<2xi64>>
// CHECK: %[[M:.*]] = dlc.constant<dense<[1, -1]> : tensor<2xi64>>
// CHECK: %[[F:.*]] = dlc.constant<dense<[-1, 1]> : tensor<2xi64>>
// CHECK: %[[P:.*]] = dlc.constant<dense<49> : tensor<2xi64>>
// CHECK: return %[[D]], %[[M]], %[[F]], %[[P]]
func.func @integers() -> (tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>) {
  %x = dlc.constant<dense<[-7, 7]> : tensor<2xi64>> : tensor<2xi64>
  %y = dlc.constant<dense<[2, -2]> : tensor<2xi64>> : tensor<2xi64>
  %two = dlc.constant<dense<2> : tensor<i64>> : tensor<i64>
  %0 = dlc.div %x, %y : (tensor<2xi64>, tensor<2xi64>) -> tensor<*xi64>
  %1 = dlc.mod %x, %y : (tensor<2xi64>, tensor<2xi64>) -> tensor<*xi64>
  %2 = dlc.fmod %x, %y : (tensor<2xi64>, tensor<2xi64>) -> tensor<*xi64>
  %3 = dlc.pow %x, %two : (tensor<2xi64>, tensor<i64>) -> tensor<*xi64>
  return %0, %1, %2, %3 : tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>
}

// Values broadcast over all axes.
// CHECK-LABEL: func.func @table
// CHECK: dlc.from_dims [#dlc.dim<n + 1>, #dlc.dim<n + 2>, #dlc.dim<7>, #dlc.dim<8>] : tensor<2x2xi64>
func.func @table(%x: tensor<?x6xf32, #dlc.info<[n, 6]>>) -> tensor<*xi64> {
  %shape = dlc.shape %x {start = 0 : i64} : (tensor<?x6xf32, #dlc.info<[n, 6]>>) -> tensor<*xi64>
  %column = dlc.unsqueeze %shape {axes = array<i64: 1>} : (tensor<*xi64>) -> tensor<*xi64>
  %row = dlc.constant<dense<[1, 2]> : tensor<2xi64>> : tensor<2xi64>
  %0 = dlc.add %column, %row : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// CHECK-LABEL: func.func @iota
// CHECK: dlc.iota %{{.*}} {axis = 1 : i64} : (tensor<2xi64>) -> tensor<?x3xi64, #dlc.info<[n, 3]>>
// CHECK: %[[V:.*]] = dlc.constant<dense<[0, 1, 2]> : tensor<3xi64>>
// CHECK: dlc.check <select_lt("count[0]", 0, 0, 1)>, <"count[0]">, <0>, "the shape of Iota holds the negative size {0}"
// CHECK: dlc.iota {{.*}} -> tensor<?xi64, #dlc.info<["count[0]"]>>
// CHECK: return %{{.*}}, %[[V]],
func.func @iota(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>, %count: tensor<1xi64> {dlc.name = "count"}) -> (tensor<*xi64>, tensor<*xi64>, tensor<*xi64>) {
  %shape = dlc.shape %x {start = 0 : i64} : (tensor<?x3xf32, #dlc.info<[n, 3]>>) -> tensor<*xi64>
  %0 = dlc.iota %shape {axis = -1 : i64} : (tensor<*xi64>) -> tensor<*xi64>
  %three = dlc.constant<dense<3> : tensor<1xi64>> : tensor<1xi64>
  %1 = dlc.iota %three {axis = 0 : i64} : (tensor<1xi64>) -> tensor<*xi64>
  %2 = dlc.iota %count {axis = 0 : i64} : (tensor<1xi64>) -> tensor<*xi64>
  return %0, %1, %2 : tensor<*xi64>, tensor<*xi64>, tensor<*xi64>
}

// Exporters put shapes together by whatever moves elements.
// CHECK-LABEL: func.func @moved_values
// CHECK: dlc.from_dims [#dlc.dim<b>, #dlc.dim<7>, #dlc.dim<b>, #dlc.dim<7>]
// CHECK: dlc.from_dims [#dlc.dim<1>, #dlc.dim<b>, #dlc.dim<4>, #dlc.dim<1>]
// CHECK: dlc.from_dims [#dlc.dim<4>, #dlc.dim<b>, #dlc.dim<4>]
func.func @moved_values(%x: tensor<?x4xf32, #dlc.info<[b, 4]>>) -> (tensor<*xi64>, tensor<*xi64>, tensor<*xi64>) {
  %shape = dlc.shape %x {start = 0 : i64} : (tensor<?x4xf32, #dlc.info<[b, 4]>>) -> tensor<*xi64>
  %last = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %three = dlc.constant<dense<3> : tensor<1xi64>> : tensor<1xi64>
  %0 = dlc.scatter_elements %shape, %last, %three {axis = 0 : i64, kind = #dlc<reduce_kind sum>} : (tensor<*xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
  %two = dlc.constant<dense<2> : tensor<1xi64>> : tensor<1xi64>
  %1 = dlc.tile %0, %two : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %pads = dlc.constant<dense<1> : tensor<2xi64>> : tensor<2xi64>
  %one = dlc.constant<dense<1> : tensor<i64>> : tensor<i64>
  %2 = dlc.pad %shape, %pads, %one {mode = "constant"} : (tensor<*xi64>, tensor<2xi64>, tensor<i64>) -> tensor<*xi64>
  %picks = dlc.constant<dense<[[1], [0], [-1]]> : tensor<3x1xi64>> : tensor<3x1xi64>
  %3 = dlc.gather_nd %shape, %picks {batchDims = 0 : i64} : (tensor<*xi64>, tensor<3x1xi64>) -> tensor<*xi64>
  return %1, %2, %3 : tensor<*xi64>, tensor<*xi64>, tensor<*xi64>
}

// CHECK-LABEL: func.func @gather_dims
// CHECK: dlc.check <select_lt(n, m, 0, 1)>, <m>, <n>, "the indices have {0} entries on axis 1, the operand {1}"
// CHECK: dlc.gather_elements {{.*}} -> tensor<2x?xf32, #dlc.info<[2, m]>>
// CHECK: dlc.gather_nd {{.*}} {batchDims = 1 : i64} : {{.*}} -> tensor<4x5xf32>
func.func @gather_dims(%x: tensor<4x?xf32, #dlc.info<[4, n]>>, %i: tensor<2x?xi64, #dlc.info<[2, m]>>, %y: tensor<4x3x5xf32>,
                       %t: tensor<4x1xi64>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.gather_elements %x, %i {axis = 0 : i64} : (tensor<4x?xf32, #dlc.info<[4, n]>>, tensor<2x?xi64, #dlc.info<[2, m]>>) -> tensor<*xf32>
  %1 = dlc.gather_nd %y, %t {batchDims = 1 : i64} : (tensor<4x3x5xf32>, tensor<4x1xi64>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// Pads that are data may crop more than there is.
// CHECK-LABEL: func.func @pad_dims
// CHECK: dlc.check {{.*}}, "more is taken away from axis 0 than its {0} elements: {1} would be left"
// CHECK: dlc.pad {{.*}} {mode = "edge", resolvedBehind = [#dlc.dim<"pads[1]">], resolvedFront = [#dlc.dim<"pads[0]">]}
// CHECK-SAME: -> tensor<?xf32, #dlc.info<[n + "pads[0]" + "pads[1]"]>>
func.func @pad_dims(%x: tensor<?xf32, #dlc.info<[n]>>, %pads: tensor<2xi64> {dlc.name = "pads"}, %value: tensor<f32>) -> tensor<*xf32> {
  %0 = dlc.pad %x, %pads, %value {mode = "edge"} : (tensor<?xf32, #dlc.info<[n]>>, tensor<2xi64>, tensor<f32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// Values of tables move with their elements: the pads of PyTorch's exporter, last axis first, become ONNX's.
// CHECK-LABEL: func.func @pads
// CHECK: %[[P:.*]] = dlc.constant<dense<[0, 3, 0, 4]> : tensor<4xi64>>
// CHECK: return %[[P]]
func.func @pads() -> tensor<*xi64> {
  %last = dlc.constant<dense<[3, 4]> : tensor<2xi64>> : tensor<2xi64>
  %others = dlc.constant<dense<0> : tensor<2xi64>> : tensor<2xi64>
  %pairs = dlc.constant<dense<[-1, 2]> : tensor<2xi64>> : tensor<2xi64>
  %flat = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %zero = dlc.constant<dense<0> : tensor<1xi64>> : tensor<1xi64>
  %first = dlc.constant<dense<-9223372036854775807> : tensor<1xi64>> : tensor<1xi64>
  %0 = dlc.concat %last, %others {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<*xi64>
  %1 = dlc.reshape %0, %pairs {allowzero = false} : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
  %2 = dlc.slice %1, %flat, %first axes(%zero : tensor<1xi64>) steps(%flat : tensor<1xi64>) : (tensor<*xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
  %3 = dlc.transpose %2 {perm = array<i64: 1, 0>} : (tensor<*xi64>) -> tensor<*xi64>
  %4 = dlc.reshape %3, %flat {allowzero = false} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  return %4 : tensor<*xi64>
}

// Elements that are no short fraction are unknown; what is computed from a tensor in which some are leaves just those unknown.
// CHECK-LABEL: func.func @partly_known
// CHECK: dlc.constant<dense<[1, 3]> : tensor<2xi64>>
func.func @partly_known() -> (tensor<*xf32>, tensor<*xi64>) {
  %some = dlc.constant<dense<[-1.1, 2.5, -3.0]> : tensor<3xf32>> : tensor<3xf32>
  %0 = dlc.abs %some : (tensor<3xf32>) -> tensor<*xf32>
  %1 = dlc.relu %0 : (tensor<*xf32>) -> tensor<*xf32>
  %2 = dlc.reciprocal %1 : (tensor<*xf32>) -> tensor<*xf32>
  %3 = dlc.neg %2 : (tensor<*xf32>) -> tensor<*xf32>
  %4 = dlc.sign %3 : (tensor<*xf32>) -> tensor<*xf32>
  %all = dlc.constant<dense<[-1.0, 3.0]> : tensor<2xf32>> : tensor<2xf32>
  %5 = dlc.abs %all : (tensor<2xf32>) -> tensor<*xf32>
  %6 = dlc.cast %5 {to = i64} : (tensor<*xf32>) -> tensor<*xi64>
  return %4, %6 : tensor<*xf32>, tensor<*xi64>
}

// A size that is another dim of the operand says what it is; only 0 beside a -1 would copy a dim.
// CHECK-LABEL: func.func @zero_beside_inferred
// CHECK: dlc.check <select_eq(m, 0, 0, 1)>, <m>, <n>, "the shape holds {0} beside a size that is inferred, which would stand for n there"
// CHECK: dlc.reshape {{.*}} -> tensor<?x?xf32, #dlc.info<[m, n]>>
func.func @zero_beside_inferred(%x: tensor<?x?xf32, #dlc.info<[n, m]>>) -> tensor<*xf32> {
  %m = dlc.shape %x {start = 1 : i64, end = 2 : i64} : (tensor<?x?xf32, #dlc.info<[n, m]>>) -> tensor<*xi64>
  %rest = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %s = dlc.concat %m, %rest {axis = 0 : i64} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %0 = dlc.reshape %x, %s {allowzero = false} : (tensor<?x?xf32, #dlc.info<[n, m]>>, tensor<*xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
