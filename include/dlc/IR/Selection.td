// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that choose elements by their values. How many are chosen may be data: it is an operand then, and the dim of the result
// a symbol that is read from it. TopK, Unique, NonZero, Compress and NonMaxSuppression are made of these by the frontend.

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

def Dlc_SuppressOp : Dlc_Op<"suppress", ["form", "role", "lower", "cost"], [Pure]> {
  let summary = "The boxes that stay when each suppresses those behind it that overlap it too much, in their order; -1 behind them";
  let description = [{
    For each batch and class: of the boxes [batch, boxes, 4] whose `candidates` [batch, classes, boxes] are true, in ascending order of `keys` (signed
    integers; of equal keys the lower index comes first), each stays whose area has no more than `threshold` in common with that of any one that
    stays before it, as a part of the area of both; at most `limit` of them. A box is (y1, x1, y2, x2), two opposite corners, or with
    `centered` (x, y, width, height) around its centre. The result [batch, classes, boxes] has their indices. Becomes the kernel op
    `dlc.kernel_suppress`.
  }];
  let arguments = (ins AnyTensor:$boxes, AnyTensor:$keys, AnyTensor:$candidates, AnyTensor:$limit, AnyTensor:$threshold, UnitAttr:$centered);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
