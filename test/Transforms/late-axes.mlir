// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes))' | FileCheck %s
// RUN: dlc-opt %s --pass-pipeline='builtin.module(func.func(infer-shapes,expand-ops,infer-shapes))' | FileCheck %s --check-prefix=EXPAND
//
// Axes, steps and lengths that only a run names.

// CHECK-LABEL: func.func @constant
// CHECK: dlc.reduce sum %{{.*}} {allAxes = false, axes = array<i64: 1>, keepdims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
func.func @constant(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  %axes = dlc.constant<dense<-1> : tensor<1xi64>> : tensor<1xi64>
  %0 = dlc.reduce sum %x, %axes {axes = array<i64>, keepdims = false, allAxes = true} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @empty
// CHECK: axes = array<i64: 0, 1>{{.*}} -> tensor<1x1xf32>
// CHECK: axes = array<i64>{{.*}} -> tensor<2x3xf32>
func.func @empty(%x: tensor<2x3xf32>, %axes: tensor<0xi64>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.reduce sum %x, %axes {axes = array<i64>, keepdims = true, allAxes = true} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<*xf32>
  %1 = dlc.reduce sum %x, %axes {axes = array<i64>, keepdims = true, allAxes = false} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// An axis that may be reduced is two: one of size 1, and the other of its size.
// CHECK-LABEL: func.func @reduce
// CHECK: dlc.read %{{.*}} as ["axes[0]"]
// CHECK: dlc.check <select_lt("axes[0]", -2, 0, select_lt("axes[0]", 2, 1, 0))>, <"axes[0]">, <2>, "axes is {0}, but the tensor has {1} axes"
// CHECK: %[[N:.*]] = dlc.from_dims [#dlc.dim<select_lt("axes[0]", 0, "axes[0]" + 2, "axes[0]")>]
// CHECK-NEXT: dlc.read %[[N]] as ["v1[0]"]
// CHECK: %[[F:.*]] = dlc.from_dims [#dlc.dim<select_eq("v1[0]", 0, 1, 0)>, #dlc.dim<select_eq("v1[0]", 1, 1, 0)>]
// CHECK-NEXT: dlc.read %[[F]] as ["v2[0]", "v2[1]"]
// CHECK-NEXT: dlc.reduce sum
// CHECK-SAME: -> tensor<?x?xf32, #dlc.info<[select_eq("v2[0]", 0, n, 1), select_eq("v2[1]", 0, 3, 1)]>>
// The names are those of the same list.
// CHECK-NEXT: dlc.reduce max
// CHECK-SAME: -> tensor<?x?xf32, #dlc.info<[select_eq("v2[0]", 0, n, 1), select_eq("v2[1]", 0, 3, 1)]>>
// EXPAND-LABEL: func.func @reduce
// EXPAND: dlc.reshape
// EXPAND-SAME: -> tensor<?x?x?x?xf32, #dlc.info<[select_eq("v2[0]", 0, n, 1), select_eq("v2[0]", 0, 1, n), select_eq("v2[1]", 0, 3, 1), select_eq("v2[1]", 0, 1, 3)]>>
// EXPAND: dlc.reduce sum %{{.*}} {allAxes = false, axes = array<i64: 1, 3>, keepdims = false}
// EXPAND-SAME: -> tensor<?x?xf32, #dlc.info<[select_eq("v2[0]", 0, n, 1), select_eq("v2[1]", 0, 3, 1)]>>
func.func @reduce(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>, %axes: tensor<1xi64> {dlc.name = "axes"}) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.reduce sum %x, %axes {axes = array<i64>, keepdims = true, allAxes = true} : (tensor<?x3xf32, #dlc.info<[n, 3]>>, tensor<1xi64>) -> tensor<*xf32>
  %1 = dlc.reduce max %x, %axes {axes = array<i64>, keepdims = true, allAxes = true} : (tensor<?x3xf32, #dlc.info<[n, 3]>>, tensor<1xi64>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// CHECK-LABEL: func.func @twice
// CHECK: dlc.check {{.*}} "axes names axis {0} twice"
// CHECK: dlc.squeeze
// CHECK-SAME: -> tensor<?xf32, #dlc.info<[select_eq("v{{[0-9]+}}[0]", 0, a, select_eq("v{{[0-9]+}}[0]", 1, b, c))]>>
func.func @twice(%x: tensor<?x?x?xf32, #dlc.info<[a, b, c]>>, %axes: tensor<2xi64>) -> tensor<*xf32> {
  %0 = dlc.squeeze %x, %axes : (tensor<?x?x?xf32, #dlc.info<[a, b, c]>>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @unsqueeze
// CHECK: dlc.unsqueeze
// CHECK-SAME: -> tensor<?x?xf32, #dlc.info<[select_eq("v{{[0-9]+}}[0]", 0, n, 1), select_eq("v{{[0-9]+}}[1]", 0, n, 1)]>>
func.func @unsqueeze(%x: tensor<?xf32, #dlc.info<[n]>>, %axes: tensor<1xi64>) -> tensor<*xf32> {
  %0 = dlc.unsqueeze %x, %axes {axes = array<i64>} : (tensor<?xf32, #dlc.info<[n]>>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @step
// CHECK: dlc.check <select_eq("step[0]", 0, 0, 1)>, <"step[0]">, <0>, "the step of axis {1} is {0}"
// CHECK: dlc.slice
// CHECK-SAME: resolvedSteps = [#dlc.dim<"step[0]">]
// CHECK-SAME: -> tensor<?xf32, #dlc.info<[max(0, "v{{[0-9]+}}[1]")]>>
func.func @step(%x: tensor<?xf32, #dlc.info<[n]>>, %at: tensor<1xi64>, %step: tensor<1xi64> {dlc.name = "step"}) -> tensor<*xf32> {
  %0 = dlc.slice %x, %at, %at steps(%step : tensor<1xi64>) : (tensor<?xf32, #dlc.info<[n]>>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @scan
// CHECK: dlc.scan sum
// CHECK-SAME: threeDims = [#dlc.dim<select_lt(0, "v1[0]", n, 1) * select_lt(1, "v1[0]", 3, 1)>, #dlc.dim<select_eq("v1[0]", 1, 3, select_eq("v1[0]", 0, n, 3))>, #dlc.dim<select_lt("v1[0]", 0, n, 1) * select_lt("v1[0]", 1, 3, 1)>]
// EXPAND-LABEL: func.func @scan
// EXPAND: dlc.reshape
// EXPAND: dlc.scan sum %{{.*}} {axis = 1 : i64
// EXPAND: dlc.reshape
func.func @scan(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>, %axis: tensor<i64>) -> tensor<*xf32> {
  %0 = dlc.scan sum %x, %axis {axis = 0 : i64, exclusive = false, reverse = false} : (tensor<?x3xf32, #dlc.info<[n, 3]>>, tensor<i64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func.func @require
// CHECK: dlc.check <select_lt("parts[0]", 0, 0, 1)>, <"parts[0]">, <0>, "{0} is negative"
// CHECK: dlc.check <select_eq("parts[0]", n, 1, 0)>, <"parts[0]">, <n>, "{0} is not {1}"
// CHECK-NOT: dlc.require
func.func @require(%x: tensor<?xf32, #dlc.info<[n]>>, %parts: tensor<1xi64> {dlc.name = "parts"}) {
  %zero = dlc.constant<dense<0> : tensor<1xi64>> : tensor<1xi64>
  %n = dlc.shape %x {start = 0 : i64} : (tensor<?xf32, #dlc.info<[n]>>) -> tensor<*xi64>
  dlc.require %parts, %zero, "{0} is negative" {atLeast} : tensor<1xi64>, tensor<1xi64>
  dlc.require %parts, %n, "{0} is not {1}" : tensor<1xi64>, tensor<*xi64>
  return
}

// CHECK-LABEL: func.func @arg
// CHECK: dlc.check <select_eq(n, 0, 0, 1)>, <n>, <0>, "axis 0 is empty: it has no smallest element, and no index to give"
// CHECK: dlc.arg_reduce min
// CHECK-SAME: -> tensor<1x3xi64>
func.func @arg(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>) -> tensor<*xi64> {
  %0 = dlc.arg_reduce min %x {axis = -2 : i64, keepdims = true, last = false} : (tensor<?x3xf32, #dlc.info<[n, 3]>>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// Sizes that are data are tested before anything relies on them.
// CHECK-LABEL: func.func @sizes
// CHECK: dlc.check <select_lt("s[0]", 0, 0, 1)>, <"s[0]">, <0>, "the shape of Expand holds the negative size {0}"
// CHECK: dlc.check {{.*}} "the shape of Expand has more elements than memory can hold"
func.func @sizes(%x: tensor<f32>, %s: tensor<2xi64> {dlc.name = "s"}) -> tensor<*xf32> {
  %0 = dlc.expand %x, %s : (tensor<f32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// The pad of each axis is chosen once.
// CHECK-LABEL: func.func @pad
// CHECK: dlc.check {{.*}} "axes is {0}, but the tensor has {1} axes"
// CHECK: dlc.pad {{.*}} {mode = "constant", resolvedBehind = [#dlc.dim<"[[B0:.*]]">, #dlc.dim<"[[B1:.*]]">], resolvedFront = [#dlc.dim<"[[F0:.*]]">, #dlc.dim<"[[F1:.*]]">]}
func.func @pad(%x: tensor<?x3xf32, #dlc.info<[n, 3]>>, %p: tensor<2xi64> {dlc.name = "p"}, %a: tensor<1xi64> {dlc.name = "a"}) -> tensor<*xf32> {
  %value = dlc.constant<dense<0.0> : tensor<f32>> : tensor<f32>
  %0 = dlc.pad %x, %p, %value, %a {mode = "constant"} : (tensor<?x3xf32, #dlc.info<[n, 3]>>, tensor<2xi64>, tensor<f32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
