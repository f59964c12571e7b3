// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// RNN, GRU and LSTM.

#include "OpTable.h"
#include "dlc/IR/Recurrent.h"

using namespace mlir;

namespace dlc {

static void recurrent(NodeReader &n, CellKind kind) {
  std::optional<int64_t> hidden = n.findInt("hidden_size");
  if (!hidden || *hidden < 1)
    return n.fail("its attribute 'hidden_size' is missing or not positive");
  std::string direction = n.findString("direction").value_or("forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.fail("its attribute 'direction' must be forward, reverse or bidirectional");
  if (n.getVersion() < 7) {
    n.ignore("output_sequence");
  }
  // What only the cell itself needs.
  SmallVector<NamedAttribute> cell;
  for (StringRef name : {"clip", "linear_before_reset", "input_forget"})
    if (std::optional<float> number = name == "clip" ? n.findFloat(name) : std::nullopt)
      cell.push_back(n.b().getNamedAttr(name, n.b().getF32FloatAttr(*number)));
    else if (name != "clip" && n.hasAttribute(name))
      cell.push_back(n.b().getNamedAttr(name, n.b().getI64IntegerAttr(n.getInt(name, 0))));
  for (StringRef name : {"activation_alpha", "activation_beta"})
    if (std::optional<SmallVector<float>> numbers = n.findFloats(name))
      cell.push_back(n.b().getNamedAttr(name, n.b().getF32ArrayAttr(*numbers)));
  if (n.hasAttribute("activations"))
    return n.fail("its attribute 'activations' is not supported by dlc yet");
  Type type = n.elementType(0);
  SmallVector<Type> types(3, UnrankedTensorType::get(type));
  bool isLstm = kind == CellKind::Lstm;
  auto op = RecurrentOp::create(n.b(), n.getLoc(), types, n.input(0), n.input(1), n.input(2), n.optionalInput(3), n.optionalInput(4), n.optionalInput(5),
                                isLstm ? n.optionalInput(6) : Value(), isLstm ? n.optionalInput(7) : Value(), kind, *hidden,
                                direction == "bidirectional" ? 2 : 1, direction == "reverse", n.getFlag("layout", false),
                                n.b().getDictionaryAttr(cell));
  for (unsigned i = 0, e = isLstm ? 3 : 2; i != e; ++i)
    if (n.wantsOutput(i))
      n.setOutput(i, op.getResult(i));
}

void addRecurrentOps(OpTable &t) {
  t.add("RNN", 1, [](NodeReader &n) { recurrent(n, CellKind::Rnn); });
  t.add("GRU", 3, [](NodeReader &n) { recurrent(n, CellKind::Gru); });
  t.add("LSTM", 1, [](NodeReader &n) { recurrent(n, CellKind::Lstm); });
}

} // namespace dlc
