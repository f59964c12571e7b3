// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions and scans.

#ifndef DLC_IR_REDUCTION
#define DLC_IR_REDUCTION

include "dlc/IR/Kinds.td"

def Dlc_ReduceOp : Dlc_Op<"reduce", ["form", "role", "expand", "lower", "precision"], [Pure]> {
  let summary = "Combines the elements along axes; a NaN anywhere gives NaN in max and min";
  let description = [{
    `axes` may be negative until infer-shapes has run; afterwards they are sorted and not negative. No axes: nothing is
    reduced (the frontend writes all axes where ONNX means all). With `keepdims` it expands into one without, and a reshape.
  }];
  let arguments = (ins AnyTensor:$x, Dlc_ReduceKindAttr:$kind, DenseI64ArrayAttr:$axes, BoolAttr:$keepdims, BoolAttr:$allAxes);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_MeanOp : Dlc_Op<"mean", ["form", "expand"], [Pure]> {
  let summary = "The arithmetic mean along axes; expands into a sum and a division";
  let arguments = (ins AnyTensor:$x, DenseI64ArrayAttr:$axes, BoolAttr:$keepdims, BoolAttr:$allAxes);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_CumSumOp : Dlc_Op<"cumsum", ["form", "role", "lower"], [Pure]> {
  let summary = "Running sums along an axis, as ONNX CumSum; becomes the kernel op `dlc.kernel_scan`";
  let arguments = (ins AnyTensor:$x, I64Attr:$axis, BoolAttr:$exclusive, BoolAttr:$reverse);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
