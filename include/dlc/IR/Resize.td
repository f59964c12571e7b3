// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resampling.

#ifndef DLC_IR_RESIZE
#define DLC_IR_RESIZE

include "dlc/IR/Kinds.td"

def Dlc_ResizeOp : Dlc_Op<"resize", ["form", "readsData", "expand"], [Pure, AttrSizedOperandSegments]> {
  let summary = "A tensor of other sizes, as ONNX Resize from opset 11 on; expands into a dlc.resample for each axis that changes";
  let description = [{
    Sizes come from `scales` (one number for each of `axes`: how much longer they get) or from `sizes`; where there are both, and scales are known only
    when a run has them, `sizes` says what they come to. `policy` is `stretch`, `not_larger` or
    `not_smaller`. `roi` (begins, then ends, as parts of each axis) counts with `tf_crop_and_resize` only. infer-shapes writes the sizes of all
    axes into `resolvedSizes`, and scales that are constants into `resolvedScales` (0: it follows from the sizes). Where only a run knows which
    scale `policy` chooses, that one is `resolvedNumerator` / `resolvedDenominator`.
  }];
  let arguments = (ins AnyTensor:$x, Optional<AnyTensor>:$roi, Optional<AnyTensor>:$scales, Optional<AnyTensor>:$sizes, DenseI64ArrayAttr:$axes,
                       StrAttr:$mode, StrAttr:$coordinates, StrAttr:$nearest, StrAttr:$policy, F32Attr:$cubic, F32Attr:$extrapolation,
                       BoolAttr:$excludeOutside, BoolAttr:$antialias,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "size of each axis">>:$resolvedSizes,
                       OptionalAttr<DenseF64ArrayAttr>:$resolvedScales, OptionalAttr<Dlc_DimExprAttr>:$resolvedNumerator,
                       OptionalAttr<Dlc_DimExprAttr>:$resolvedDenominator);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = [{ $x (`roi` `(` $roi^ `:` type($roi) `)`)? (`scales` `(` $scales^ `:` type($scales) `)`)? (`sizes` `(` $sizes^ `:` type($sizes) `)`)?
      attr-dict `:` type($x) `->` type($result) }];
}

def Dlc_ResampleOp : Dlc_Op<"resample", ["form", "role", "lower", "cost"], [Pure, AttrSizedOperandSegments]> {
  let summary = "An axis with another number of entries, each of which is made of near ones; see dlc.resize";
  let description = [{
    `scale` 0: element `place` of `scales` if there are some, else `numerator` / `denominator` if they are there, else the quotient of the sizes. `begin`
    and `end`: the part of the axis that `tf_crop_and_resize` takes; where there is a `roi`, its elements `place` and `endPlace`.
  }];
  let arguments = (ins AnyTensor:$x, Optional<AnyTensor>:$scales, Optional<AnyTensor>:$roi, I64Attr:$place, I64Attr:$endPlace, I64Attr:$axis, Dlc_DimExprAttr:$size,
                       F64Attr:$scale, OptionalAttr<Dlc_DimExprAttr>:$numerator, OptionalAttr<Dlc_DimExprAttr>:$denominator, F64Attr:$begin, F64Attr:$end, StrAttr:$mode,
                       StrAttr:$coordinates, StrAttr:$nearest, F32Attr:$cubic, F32Attr:$extrapolation, BoolAttr:$excludeOutside,
                       BoolAttr:$antialias);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
