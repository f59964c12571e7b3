// RUN: dlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(infer-shapes))' | FileCheck %s

// Coordinates stand along any axis of the positions but the first; the others are those of the result.
// CHECK-LABEL: func.func @sample
// CHECK: dlc.sample %arg0, %arg1 {{.*}}axis = 3 : i64{{.*}} -> tensor<?x3x?x5xf32, #dlc.info<[n, 3, h, 5]>>
// CHECK: dlc.sample %arg0, %arg2 {{.*}}axis = 1 : i64{{.*}} -> tensor<?x3x7xf32, #dlc.info<[n, 3, 7]>>
func.func @sample(%x: tensor<?x3x8x9xf32, #dlc.info<[n, 3, 8, 9]>>, %p: tensor<?x?x5x2xf32, #dlc.info<[n, h, 5, 2]>>, %q: tensor<?x2x7xf64, #dlc.info<[n, 2, 7]>>)
    -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = dlc.sample %x, %p {axis = -1, reversed, mode = "cubic", padding = "border", alignCorners = false}
    : (tensor<?x3x8x9xf32, #dlc.info<[n, 3, 8, 9]>>, tensor<?x?x5x2xf32, #dlc.info<[n, h, 5, 2]>>) -> tensor<*xf32>
  %1 = dlc.sample %x, %q {axis = 1, mode = "nearest", padding = "zeros", alignCorners = true}
    : (tensor<?x3x8x9xf32, #dlc.info<[n, 3, 8, 9]>>, tensor<?x2x7xf64, #dlc.info<[n, 2, 7]>>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// Batches that may differ are compared by a run, and so are axes that may be empty.
// CHECK-LABEL: func.func @checks
// CHECK: dlc.check {{.*}} "the batch has {0} entries, but positions are given for {1}"
// CHECK: dlc.check {{.*}} "spatial axis 0 has no elements that the {1} of the result could be made of"
func.func @checks(%x: tensor<?x3x?xf32, #dlc.info<[n, 3, w]>>, %p: tensor<?x5x1xf32, #dlc.info<[m, 5, 1]>>) -> tensor<*xf32> {
  %0 = dlc.sample %x, %p {axis = 2, mode = "linear", padding = "zeros", alignCorners = false}
    : (tensor<?x3x?xf32, #dlc.info<[n, 3, w]>>, tensor<?x5x1xf32, #dlc.info<[m, 5, 1]>>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @mode(%x: tensor<1x1x4xf32>, %p: tensor<1x5x1xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{mode is 'bilinear'; it can be nearest, linear and cubic}}
  %0 = dlc.sample %x, %p {axis = 2, mode = "bilinear", padding = "zeros", alignCorners = false} : (tensor<1x1x4xf32>, tensor<1x5x1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @padding(%x: tensor<1x1x4xf32>, %p: tensor<1x5x1xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{padding_mode is 'edge'; it can be zeros, border and reflection}}
  %0 = dlc.sample %x, %p {axis = 2, mode = "linear", padding = "edge", alignCorners = false} : (tensor<1x1x4xf32>, tensor<1x5x1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @coordinates(%x: tensor<1x1x4x4xf32>, %p: tensor<1x5x3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{positions have 3 coordinates; 2 spatial axes need 2}}
  %0 = dlc.sample %x, %p {axis = 2, mode = "linear", padding = "zeros", alignCorners = false} : (tensor<1x1x4x4xf32>, tensor<1x5x3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @rank(%x: tensor<1x4xf32>, %p: tensor<1x5x1xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{what is sampled needs a batch, channels and a spatial axis; its dims are [1, 4]}}
  %0 = dlc.sample %x, %p {axis = 2, mode = "linear", padding = "zeros", alignCorners = false} : (tensor<1x4xf32>, tensor<1x5x1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @batch_axis(%x: tensor<1x1x4xf32>, %p: tensor<1x5x1xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{axis 0 of the positions is the batch; coordinates must lie along another one}}
  %0 = dlc.sample %x, %p {axis = 0, mode = "linear", padding = "zeros", alignCorners = false} : (tensor<1x1x4xf32>, tensor<1x5x1xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @position_type(%x: tensor<1x1x4xf32>, %p: tensor<1x5x1xf16>) -> tensor<*xf32> {
  // expected-error @+1 {{positions must be f32 or f64, not 'f16'}}
  %0 = dlc.sample %x, %p {axis = 2, mode = "linear", padding = "zeros", alignCorners = false} : (tensor<1x1x4xf32>, tensor<1x5x1xf16>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @regions
// CHECK: dlc.roi_align average {{.*}} -> tensor<?x3x2x4xf16, #dlc.info<[r, 3, 2, 4]>>
func.func @regions(%x: tensor<2x3x8x9xf16>, %r: tensor<?x4xf16, #dlc.info<[r, 4]>>, %b: tensor<?xi64, #dlc.info<[r]>>) -> tensor<*xf16> {
  %0 = dlc.roi_align average %x, %r, %b {height = 2, width = 4, samples = 0, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x8x9xf16>, tensor<?x4xf16, #dlc.info<[r, 4]>>, tensor<?xi64, #dlc.info<[r]>>) -> tensor<*xf16>
  return %0 : tensor<*xf16>
}

// -----

func.func @regions_rank(%x: tensor<2x3x8xf32>, %r: tensor<1x4xf32>, %b: tensor<1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{regions are of images with 4 axes (batch, channels, height, width); dims are [2, 3, 8]}}
  %0 = dlc.roi_align max %x, %r, %b {height = 2, width = 4, samples = 0, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x8xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @regions_coordinates(%x: tensor<2x3x8x8xf32>, %r: tensor<1x5xf32>, %b: tensor<1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{a region has 5 coordinates; it must have 4}}
  %0 = dlc.roi_align max %x, %r, %b {height = 2, width = 4, samples = 0, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x8x8xf32>, tensor<1x5xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @regions_count(%x: tensor<2x3x8x8xf32>, %r: tensor<1x4xf32>, %b: tensor<2xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{there are 1 regions, but 2 batch indices}}
  %0 = dlc.roi_align max %x, %r, %b {height = 2, width = 4, samples = 0, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x8x8xf32>, tensor<1x4xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @regions_size(%x: tensor<2x3x8x8xf32>, %r: tensor<1x4xf32>, %b: tensor<1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{output_height and output_width are 0 and 4; they must be positive}}
  %0 = dlc.roi_align max %x, %r, %b {height = 0, width = 4, samples = 0, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x8x8xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @regions_samples(%x: tensor<2x3x8x8xf32>, %r: tensor<1x4xf32>, %b: tensor<1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{sampling_ratio is -1; it can be 0 (as many as the region asks for) to 1024}}
  %0 = dlc.roi_align max %x, %r, %b {height = 2, width = 4, samples = -1, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x8x8xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @regions_empty(%x: tensor<2x3x0x8xf32>, %r: tensor<1x4xf32>, %b: tensor<1xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{spatial axis 0 has no elements that the 24 of the result could be made of}}
  %0 = dlc.roi_align max %x, %r, %b {height = 2, width = 4, samples = 0, scale = 1.0 : f32, halfPixel = true}
    : (tensor<2x3x0x8xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
