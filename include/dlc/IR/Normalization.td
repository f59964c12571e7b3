// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Normalizations that stay whole until their rank is known.

#ifndef DLC_IR_NORMALIZATION
#define DLC_IR_NORMALIZATION

include "dlc/IR/Dlc.td"

def Dlc_BatchNormOp : Dlc_Op<"batch_norm", ["form", "expand"], [Pure]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias, a channel (axis 1) at a time, with given statistics";
  let description = [{ Expands into element-wise ops. The parameters are [channels]. }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$scale, AnyTensor:$bias, AnyTensor:$mean, AnyTensor:$variance, F32Attr:$epsilon);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
