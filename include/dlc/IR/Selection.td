// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that choose elements by their values. How many are chosen may be data: it is an operand then, and the dim of the result
// a symbol that is read from it. TopK, Unique, NonZero and Compress are made of these by the frontend.

#ifndef DLC_IR_SELECTION
#define DLC_IR_SELECTION

include "dlc/IR/Dlc.td"

def Dlc_ArgSortOp : Dlc_Op<"argsort", ["form", "role", "readsData", "lower"], [Pure]> {
  let summary = "The indices of the first k in ascending order along an axis; of equal keys the lower index comes first";
  let description = [{
    `keys` are signed integers (`dlc.order_key` makes them of any elements), `k` is one integer. Each line along `axis` is
    sorted on its own; with `lexicographic` the slices along `axis` are sorted as wholes, by their elements in row-major order,
    and the result has one axis. Becomes the kernel op `dlc.kernel_argsort`.
  }];
  let arguments = (ins AnyTensor:$keys, AnyTensor:$k, I64Attr:$axis, BoolAttr:$lexicographic);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_CompactOp : Dlc_Op<"compact", ["form", "role", "readsData", "lower"], [Pure]> {
  let summary = "The positions of the true elements of a mask of one axis, in ascending order";
  let description = [{ `count` is one integer: how many they are. Becomes the kernel op `dlc.kernel_compact`. }];
  let arguments = (ins AnyTensor:$mask, AnyTensor:$count);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
