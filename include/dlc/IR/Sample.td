// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling: elements made of those around positions that are data.

#ifndef DLC_IR_SAMPLE
#define DLC_IR_SAMPLE

include "dlc/IR/Kinds.td"

def Dlc_SampleOp : Dlc_Op<"sample", ["form", "role", "lower", "cost"], [Pure]> {
  let summary = "result[b, c, p...] is x[b, c, ...] at the position that stands in positions[b, p...]";
  let description = [{
    x is [batch, channels, spatial...]. Axis `axis` of `positions` has an entry for each spatial axis of x, in their order, or with `reversed`
    in the opposite one: a position in f32 or f64, in units of elements, the first of which lies at 0. `mode` is `nearest` (halves to even),
    `linear` or `cubic` (a = -0.75). The axis goes from 0 to size - 1 with `alignCorners`, else from -0.5 to size - 0.5. What lies
    outside is, by `padding`, `zeros`, what lies at the nearest element (`border`), or what lies at the position mirrored at the
    ends until it is inside (`reflection`). A position that is NaN or infinite counts as outside; mirrored, as the first element.
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$positions, I64Attr:$axis, UnitAttr:$reversed, StrAttr:$mode, StrAttr:$padding,
                       BoolAttr:$alignCorners);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_RoiAlignOp : Dlc_Op<"roi_align", ["form", "role", "lower", "cost"], [Pure]> {
  let summary = "Regions of x [batch, channels, height, width], each as an image of a fixed size, as ONNX RoiAlign";
  let description = [{
    `rois` has a row (x1, y1, x2, y2) a region, in units of elements once multiplied by `scale`; `batchIndices` says which image it is of,
    and one that there is not raises a status. Each element of the result is the average or (`Max`) the largest of samples on a grid of `samples` x
    `samples` points, or with 0 of points that lie no more than one element apart. `halfPixel`: positions count from the outer edge of the first
    element, else from its centre, and a region is at least one element wide and high. Of the four elements that make up a sample, with their
    weights, the largest one alone counts for the largest: so have the cases of ONNX it, and ONNX Runtime.
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$rois, AnyTensor:$batchIndices, Dlc_PoolKindAttr:$kind, I64Attr:$height, I64Attr:$width,
                       I64Attr:$samples, F32Attr:$scale, BoolAttr:$halfPixel);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

#endif
