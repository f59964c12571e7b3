// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention, as one op; made by recognize.

#ifndef DLC_IR_ATTENTION
#define DLC_IR_ATTENTION

include "dlc/IR/Dlc.td"

def Dlc_AttentionOp : Dlc_Op<"attention", ["form", "role", "lower", "precision", "cost", "elementsRead"], [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "softmax(score(Q * K^T)) * V along the last axis but one of K and V, whose scores are never in memory as a whole";
  let description = [{
    Q is [batch..., queries, depth], K [batch..., keys, depth], V [batch..., keys, columns], all of f32; the batch dims of K and V may be 1
    where Q's are not: queries that share keys. Axis i of an operand is axis `perm[i]` of its tensor (`qPerm`, `kPerm`, `vPerm`); axis i of
    the result's tensor is axis `resultPerm[i]` of [batch..., queries, columns]. `keys`: how many of the keys that the tensors hold
    are there, from the first on.

    The region computes a score from the product and from the elements of `extras`, which broadcast to [batch..., queries, keys]:
    element-wise dlc ops. A row without any score above -infinity gives NaN, as a softmax does, or with `emptyIsZero` 0; with `nanIsZero` so does a
    row in which there is a NaN.
  }];
  let arguments = (ins AnyTensor:$q, AnyTensor:$k, AnyTensor:$v, Variadic<AnyTensor>:$extras, DenseI64ArrayAttr:$qPerm, DenseI64ArrayAttr:$kPerm,
                       DenseI64ArrayAttr:$vPerm, DenseI64ArrayAttr:$resultPerm, Dlc_DimExprAttr:$keys, UnitAttr:$emptyIsZero, UnitAttr:$nanIsZero);
  let results = (outs AnyTensor:$result);
  let regions = (region SizedRegion<1>:$score);
  let hasVerifier = 1;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results) $score";
  let extraClassDeclaration = [{
    /// The dims of [batch..., queries, keys].
    ::llvm::SmallVector<::dlc::DimExprAttr> scoreDims();
  }];
  let extraClassDefinition = [{
    ::dlc::DimExprAttr $cppClass::elementsRead(unsigned operand) {
      if (operand != 1 && operand != 2)
        return ::dlc::elementsOf(getOperand(operand));
      ::llvm::ArrayRef<int64_t> perm = operand == 1 ? getKPerm() : getVPerm();
      ::llvm::SmallVector<::dlc::DimExprAttr> dims = ::dlc::dimsOf(getOperand(operand).getType());
      dims[perm[perm.size() - 2]] = getKeys();
      return ::dlc::productOfDims(getContext(), dims);
    }
  }];
}

#endif
