// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What reductions, scans and their kernel ops share.

#ifndef DLC_IR_REDUCEKIND
#define DLC_IR_REDUCEKIND

include "dlc/IR/Dlc.td"

def Dlc_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines elements", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Min", 3, "min">]> {
  let cppNamespace = "::dlc";
  let genSpecializedAttr = 0;
}
def Dlc_ReduceKindAttr : EnumAttr<Dlc_Dialect, Dlc_ReduceKind, "reduce_kind">;

#endif
