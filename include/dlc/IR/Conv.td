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
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$w, Optional<AnyTensor>:$bias, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads, StrAttr:$autoPad, I64Attr:$group,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding before each spatial axis">>:$resolvedPads);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
