// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recurrent networks.

#ifndef DLC_IR_RECURRENT
#define DLC_IR_RECURRENT

include "dlc/IR/Kinds.td"

def Dlc_RecurrentOp : Dlc_Op<"recurrent", ["form"], [Pure, AttrSizedOperandSegments]> {
  let summary = "A network of one layer over a sequence, as ONNX RNN, GRU and LSTM; no code is generated for it yet";
  let description = [{
    x [sequence, batch, input] (batch first with `batchFirst`, as all that has a batch then), w [directions, gates * hidden, input],
    r [directions, gates * hidden, hidden], bias [directions, 2 * gates * hidden], lengths [batch], initial states [directions, batch,
    hidden], peepholes [directions, 3 * hidden]. Results: all outputs [sequence, directions, batch, hidden], the last one, and for an
    LSTM the last cell state.
  }];
  let arguments = (ins AnyTensor:$x, AnyTensor:$w, AnyTensor:$r, Optional<AnyTensor>:$bias, Optional<AnyTensor>:$lengths,
                       Optional<AnyTensor>:$initialHidden, Optional<AnyTensor>:$initialCell, Optional<AnyTensor>:$peepholes,
                       Dlc_CellKindAttr:$kind, I64Attr:$hidden, I64Attr:$directions, BoolAttr:$reverse, BoolAttr:$batchFirst,
                       DictionaryAttr:$cell);
  let results = (outs AnyTensor:$outputs, AnyTensor:$lastHidden, AnyTensor:$lastCell);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

#endif
