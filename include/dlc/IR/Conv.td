// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions.

#ifndef DLC_IR_CONV
#define DLC_IR_CONV

include "dlc/IR/Dlc.td"

def Dlc_ConvOp : Dlc_Op<"conv", ["form", "role", "expand", "lower", "precision", "cost"], [Pure]> {
  let summary = "Convolution of x [batch, channels, spatial...] with w [filters, channels / group, kernel...], as ONNX Conv";
  let description = [{
    Empty strides and dilations are ones, empty pads (begins, then ends) zeros. `autoPad` is ONNX's; with SAME_UPPER or SAME_LOWER
    it replaces the pads. infer-shapes writes the begins that come of it into `resolvedPads`, one entry a spatial axis. With
    a bias ([filters]) it expands into one without, and an addition.

    With `channelsLast`, which choose-layout sets, x is [batch, spatial..., channels], w [groups, kernel..., channels / group,
    filters / group] and the result [batch, spatial..., filters].
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$w, Optional<AnyTensor>:$bias, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads, StrAttr:$autoPad, I64Attr:$group, UnitAttr:$channelsLast,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding before each spatial axis">>:$resolvedPads);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_ConvTransposeOp : Dlc_Op<"conv_transpose", ["form", "expand"], [Pure]> {
  let summary = "The gradient of a convolution, as ONNX ConvTranspose: w is [channels, filters / group, kernel...]";
  let description = [{
    Attributes as those of dlc.conv, and `outputPadding` (empty: zeros) and `outputShape` (empty: what follows from the others). infer-shapes writes
    how much is cut off before and behind each spatial axis into `resolvedPads` (a negative number adds as much). It expands into a product where
    windows lie side by side, else into a convolution over x with as many filters for each place between two strides, or, with dilations, over x with
    zeros between its elements.
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$w, Optional<AnyTensor>:$bias, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$outputPadding, DenseI64ArrayAttr:$outputShape, StrAttr:$autoPad, I64Attr:$group,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "cut off before each spatial axis">>:$resolvedPads,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "cut off behind each spatial axis">>:$resolvedEnds);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_DepthwiseConvOp : Dlc_Op<"depthwise_conv", ["form", "role", "lower", "precision", "cost"], [Pure]> {
  let summary = "Convolution of each channel by itself: x [batch, spatial..., channels] with w [kernel..., channels]";
  let description = [{ Attributes as those of dlc.conv. choose-layout makes it of a dlc.conv with as many groups as channels and filters. }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                       StrAttr:$autoPad,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding before each spatial axis">>:$resolvedPads);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_WinogradConvOp : Dlc_Op<"winograd_conv", ["form", "role", "lower", "precision", "cost"], [Pure]> {
  let summary = "Convolution of x [batch, height, width, channels] with filters of 3 x 3 cells, in tiles of `tile` x `tile` results";
  let description = [{
    Winograd's algorithm: windows and filters are transformed, multiplied element by element, and the products transformed back. w is
    [(tile + 2)^2, channels, filters], each filter transformed (`WinogradMatrices::filter`, dlc/IR/KernelOps.h, along both axes). Strides and dilations
    are ones; other attributes as those of dlc.conv. choose-layout makes it of a dlc.conv where that has less to compute.
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$w, I64Attr:$tile, DenseI64ArrayAttr:$pads, StrAttr:$autoPad,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding before each spatial axis">>:$resolvedPads);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
