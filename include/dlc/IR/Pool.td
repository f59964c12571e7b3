// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooling: a window slides over the spatial axes of x [batch, channels, spatial...].

#ifndef DLC_IR_POOL
#define DLC_IR_POOL

include "dlc/IR/Kinds.td"

def Dlc_PoolOp : Dlc_Op<"pool", ["form", "role", "lower", "precision"], [Pure]> {
  let summary = "Largest element, average or sum of each window, as ONNX MaxPool and AveragePool";
  let description = [{
    Attributes as those of dlc.conv. With `ceilMode` a last window may end outside the padded axis, but not begin there. With
    `countPads` the cells of the padding count in an average; those that only the ceiling adds never do. With `channelsLast`, which
    choose-layout sets, x and the result are [batch, spatial..., channels].
  }];
  let arguments = (ins AnyTensor:$x, Dlc_PoolKindAttr:$kind, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads, StrAttr:$autoPad, BoolAttr:$ceilMode, BoolAttr:$countPads, UnitAttr:$channelsLast,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding before each spatial axis">>:$resolvedPads,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding behind each spatial axis">>:$resolvedEnds);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_PoolIndicesOp : Dlc_Op<"pool_indices", ["form", "role", "lower"], [Pure]> {
  let summary = "Where the largest element of each window of a dlc.pool stands in x: its index in row-major order";
  let description = [{
    Of equal elements the first one of the window; a NaN counts as the largest. With `columnMajor`, indices count along the first
    spatial axis first (batch and channels stay in front). -1 where a window has padding alone.
  }];
  let arguments = (ins AnyTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                       StrAttr:$autoPad, BoolAttr:$ceilMode, BoolAttr:$columnMajor,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "padding before each spatial axis">>:$resolvedPads);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_GlobalPoolOp : Dlc_Op<"global_pool", ["form", "expand"], [Pure]> {
  let summary = "Largest element, average or sum over all spatial axes, which stay with size 1; expands into a reduction";
  let arguments = (ins AnyTensor:$x, Dlc_PoolKindAttr:$kind);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

#endif
