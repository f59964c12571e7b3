// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators whose attributes are graphs.

#include "ElementType.h"
#include "Importer.h"
#include "Model.h"

using namespace mlir;

namespace dlc {

/// Imports a branch where the builder stands; the values it gives.
SmallVector<Value> Importer::importBranch(const onnx::GraphProto &graph, Frame &frame, bool &poisoned) {
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
  SmallVector<Value> values;
  if (overflown)
    return values;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    NodeInfo::Input result = resolve(inner, output.name());
    poisoned |= result.poisoned || !result.value;
    values.push_back(result.value);
  }
  return values;
}

/// An If whose condition is constant is the branch it takes; nothing of the other one is looked at. Otherwise it is a dlc.if.
void Importer::importIf(const NodeInfo &info, Frame &frame) {
  auto giveUp = [&](const Twine &message) {
    report(message);
    bindOutputs(info, {}, /*poisoned=*/true, frame);
  };
  const onnx::AttributeProto *branches[2] = {info.findAttribute("then_branch"), info.findAttribute("else_branch")};
  int counts[2] = {branches[0]->g().output_size(), branches[1]->g().output_size()};
  int wanted = info.outputs.size();
  if (counts[0] != wanted || counts[1] != wanted)
    return giveUp(Twine("the numbers of outputs differ: its own is ") + Twine(wanted) + ", that of its then_branch " + Twine(counts[0]) +
                  " and that of its else_branch " + Twine(counts[1]));
  for (const onnx::AttributeProto *branch : branches)
    if (branch->g().input_size() > 0)
      return giveUp(Twine("its ") + branch->name() + " has inputs; a branch reads the values around it by name");
  if (frame.depth + 1 > kMaxDepth)
    return giveUp(Twine("subgraphs are nested deeper than ") + Twine(kMaxDepth) + ", the most that dlc follows");

  const NodeInfo::Input &condition = info.inputs.front();
  if (condition.poisoned)
    return bindOutputs(info, {}, /*poisoned=*/true, frame);
  TypedAttr constant = NodeReader::constantOf(condition.value);
  bool poisoned = false;
  if (std::optional<SmallVector<int64_t>> flags = constant ? constantIntegers(constant) : std::nullopt) {
    if (flags->size() != 1)
      return giveUp(Twine("its condition ") + quote(condition.name) + " has " + Twine(flags->size()) + " elements; it must have one");
    SmallVector<Value> values = importBranch(branches[flags->front() == 0]->g(), frame, poisoned);
    if (!overflown)
      bindOutputs(info, values, poisoned, frame);
    return;
  }

  // The types of the results are known only behind the branches.
  auto draft = IfOp::create(builder, *nodeLoc, TypeRange(), condition.value, DimExpr(), DenseI64ArrayAttr());
  SmallVector<Value> given[2];
  for (auto [branch, region, values] : llvm::zip_equal(branches, draft->getRegions(), given)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&region);
    values = importBranch(branch->g(), frame, poisoned);
    if (overflown)
      return;
    if (!poisoned)
      YieldOp::create(builder, *nodeLoc, values);
  }
  if (poisoned) // an error has been reported, so nothing comes of the module
    return bindOutputs(info, {}, /*poisoned=*/true, frame);
  SmallVector<Type> types;
  for (auto [i, first, second] : llvm::enumerate(given[0], given[1])) {
    Type element = NodeReader::elementTypeOf(first), other = NodeReader::elementTypeOf(second);
    if (element != other)
      return giveUp(Twine("its output ") + Twine(i) + " is a tensor of " + typeName(element) + " in its then_branch and of " +
                    typeName(other) + " in its else_branch");
    types.push_back(UnrankedTensorType::get(element));
  }
  auto op = IfOp::create(builder, *nodeLoc, types, condition.value, DimExpr(), DenseI64ArrayAttr());
  for (auto [from, to] : llvm::zip_equal(draft->getRegions(), op->getRegions()))
    to.takeBody(from);
  draft.erase();
  bindOutputs(info, SmallVector<Value>(op.getResults()), /*poisoned=*/false, frame);
}

} // namespace dlc
