// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions.

#ifndef DLC_IR_CONTRACTION
#define DLC_IR_CONTRACTION

include "dlc/IR/Dlc.td"

def Dlc_MatMulOp : Dlc_Op<"matmul", ["form", "role", "lower", "precision", "cost"], [Pure]> {
  let summary = "Matrix product with batch dimensions, as ONNX MatMul (numpy.matmul)";
  let arguments = (ins AnyTensor:$a, AnyTensor:$b);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
