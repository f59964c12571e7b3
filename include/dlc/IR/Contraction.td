// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions.

#ifndef DLC_IR_CONTRACTION
#define DLC_IR_CONTRACTION

include "dlc/IR/Dlc.td"

def Dlc_MatMulOp : Dlc_Op<"matmul", ["form", "role", "lower", "precision", "cost"], [Pure]> {
  let summary = "Matrix product with batch dimensions, as ONNX MatMul (numpy.matmul)";
  let description = [{ Axis i of an operand of the product is axis `aPerm[i]` (`bPerm[i]`) of the tensor: a transpose that need not be made. }];
  let arguments = (ins AnyTensor:$a, AnyTensor:$b, OptionalAttr<DenseI64ArrayAttr>:$aPerm, OptionalAttr<DenseI64ArrayAttr>:$bPerm);
  let results = (outs AnyTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$a, "::mlir::Value":$b), "build($_builder, $_state, type, a, b, nullptr, nullptr);">];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_EinsumOp : Dlc_Op<"einsum", ["form", "expand"], [Pure]> {
  let summary = "Sums of products over named axes, as ONNX Einsum";
  let description = [{ Expands into diagonals, sums, transposes, products and, where two operands share a summed axis, matrix products. }];
  let arguments = (ins Variadic<AnyTensor>:$xs, StrAttr:$equation);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$equation operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_TriangularizeOp : Dlc_Op<"triangularize", ["form", "role", "precision", "lower"], [Pure]> {
  let summary = "Upper triangular matrices with the same determinants; becomes the kernel op `dlc.kernel_triangularize`";
  let arguments = (ins AnyTensor:$x);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
