// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The enumerations that stand in attributes of ops.

#ifndef DLC_IR_KINDS
#define DLC_IR_KINDS

include "dlc/IR/Dlc.td"

def Dlc_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines elements", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Min", 3, "min">]> {
  let cppNamespace = "::dlc";
  let genSpecializedAttr = 0;
}
def Dlc_ReduceKindAttr : EnumAttr<Dlc_Dialect, Dlc_ReduceKind, "reduce_kind">;

def Dlc_PoolKind : I32EnumAttr<"PoolKind", "what pooling makes of a window", [
    I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"Average", 1, "average">, I32EnumAttrCase<"Sum", 2, "sum">]> {
  let cppNamespace = "::dlc";
  let genSpecializedAttr = 0;
}
def Dlc_PoolKindAttr : EnumAttr<Dlc_Dialect, Dlc_PoolKind, "pool_kind">;

def Dlc_CellKind : I32EnumAttr<"CellKind", "the cell of a recurrent network", [
    I32EnumAttrCase<"Rnn", 0, "rnn">, I32EnumAttrCase<"Gru", 1, "gru">, I32EnumAttrCase<"Lstm", 2, "lstm">]> {
  let cppNamespace = "::dlc";
  let genSpecializedAttr = 0;
}
def Dlc_CellKindAttr : EnumAttr<Dlc_Dialect, Dlc_CellKind, "cell_kind">;

#endif
