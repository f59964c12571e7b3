// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators whose attributes are graphs.

#include "ElementType.h"
#include "Importer.h"
#include "Model.h"

using namespace mlir;

namespace dlc {

/// An If whose condition is constant is the branch it takes; nothing of the other one is looked at.
void Importer::importIf(const NodeInfo &info, Frame &frame) {
  auto giveUp = [&](const Twine &message) {
    report(message);
    bindOutputs(info, {}, /*poisoned=*/true, frame);
  };
  const onnx::AttributeProto *branches[2] = {info.findAttribute("else_branch"), info.findAttribute("then_branch")};
  int counts[2] = {branches[0]->g().output_size(), branches[1]->g().output_size()};
  int wanted = info.outputs.size();
  if (counts[0] != wanted || counts[1] != wanted)
    return giveUp(Twine("the numbers of outputs differ: its own is ") + Twine(wanted) + ", that of its then_branch " + Twine(counts[1]) +
                  " and that of its else_branch " + Twine(counts[0]));
  for (const onnx::AttributeProto *branch : branches)
    if (branch->g().input_size() > 0)
      return giveUp(Twine("its ") + branch->name() + " has inputs; a branch reads the values around it by name");
  if (frame.depth + 1 > kMaxDepth)
    return giveUp(Twine("subgraphs are nested deeper than ") + Twine(kMaxDepth) + ", the most that dlc follows");

  const NodeInfo::Input &condition = info.inputs.front();
  TypedAttr constant = NodeReader::constantOf(condition.value);
  std::optional<SmallVector<int64_t>> flags = constant ? constantIntegers(constant) : std::nullopt;
  if (condition.poisoned)
    return bindOutputs(info, {}, /*poisoned=*/true, frame);
  if (!flags)
    return giveUp(Twine("its condition ") + quote(condition.name) + " is not constant; dlc does not support an If that is decided at run time");
  if (flags->size() != 1)
    return giveUp(Twine("its condition ") + quote(condition.name) + " has " + Twine(flags->size()) + " elements; it must have one");

  const onnx::GraphProto &graph = branches[flags->front() != 0]->g();
  Frame inner;
  inner.outer = &frame;
  inner.opsets = frame.opsets;
  inner.attributes = frame.attributes;
  inner.ownsMessages = frame.ownsMessages;
  inner.depth = frame.depth + 1;
  inner.caller = frame.caller;
  inner.place = nodePlace;
  addInitializers(graph, inner);
  importNodes(graph.node(), inner);
  if (overflown)
    return;
  SmallVector<Value> values;
  bool poisoned = false;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    NodeInfo::Input result = resolve(inner, output.name());
    values.push_back(result.value);
    poisoned |= result.poisoned || !result.value;
  }
  bindOutputs(info, values, poisoned, frame);
}

} // namespace dlc
