// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Function bodies: of functions that the model brings, and of standard operators that ONNX defines by others. Both are written
// out where they are called.

#include "ElementType.h"
#include "Importer.h"
#include "Model.h"
#include "OpTable.h"
#include "onnx/defs/schema.h"

using namespace mlir;
using onnx::FunctionProto;
using onnx::OpSchema;

namespace dlc {

void Importer::indexFunctions() {
  for (const FunctionProto &body : model.functions()) {
    auto key = std::make_tuple(canonicalDomain(body.domain()).str(), body.name(), body.overload());
    if (!functions.try_emplace(key, &body).second)
      reportModel(Twine("the model has two functions ") + quote(body.domain() + "." + body.name()) +
                  (body.overload().empty() ? "" : " with the overload " + quote(body.overload())));
  }
}

void Importer::importFunction(const NodeInfo &info, const FunctionProto &body, const OpSchema *schema, int64_t version, Frame &frame) {
  auto giveUp = [&](const Twine &message) {
    report(message);
    bindOutputs(info, {}, /*poisoned=*/true, frame);
  };
  if (frame.depth + 1 > kMaxDepth) { // without the long way there
    reportAt(*nodeLoc, nodeType, Twine("function bodies are nested deeper than ") + Twine(kMaxDepth) + ", the most that dlc follows");
    return bindOutputs(info, {}, /*poisoned=*/true, frame);
  }
  if (info.inputs.size() > static_cast<size_t>(body.input_size()))
    return giveUp(Twine("it has ") + Twine(info.inputs.size()) + " inputs; its function takes " + Twine(body.input_size()));
  if (info.outputs.size() > static_cast<size_t>(body.output_size()))
    return giveUp(Twine("it has ") + Twine(info.outputs.size()) + " outputs; its function gives " + Twine(body.output_size()));

  Frame inner;
  inner.depth = frame.depth + 1;
  inner.ownsMessages = !schema;
  // Everything inside is told of as the node in the model's own graph.
  if (frame.caller) {
    inner.caller = frame.caller;
  } else {
    SmallVector<NodeRef> refs = nodesOf(*nodeLoc);
    inner.caller = refs.empty() ? NodeRef() : refs.front();
  }
  inner.place = nodePlace + "in its function body, ";
  for (const onnx::OperatorSetIdProto &opset : body.opset_import())
    inner.opsets[canonicalDomain(opset.domain())] = opset.version();
  if (schema)
    inner.opsets[""] = version;
  // A function that does not say what it is written in is written in what the model is.
  for (const auto &opset : frame.opsets)
    inner.opsets.try_emplace(opset.getKey(), opset.getValue());
  if (int64_t opset = inner.opsets.lookup(""); opset > kNewestOpset)
    return giveUp(Twine("its function body is written in opset ") + Twine(opset) + ", newer than " + Twine(kNewestOpset) +
                  ", the newest that dlc knows");

  llvm::StringMap<const onnx::AttributeProto *> attributes;
  if (schema)
    for (const auto &[name, attribute] : schema->attributes())
      if (attribute.default_value.type() != onnx::AttributeProto::UNDEFINED)
        attributes[name] = &attribute.default_value;
  for (const onnx::AttributeProto &attribute : body.attribute_proto())
    attributes[attribute.name()] = &attribute;
  for (const auto &[name, attribute] : info.attributes) {
    if (!schema && !llvm::is_contained(body.attribute(), name) && !attributes.count(name))
      return giveUp(Twine("its function has no attribute ") + quote(name));
    attributes[name] = attribute;
  }
  inner.attributes = &attributes;

  for (int i = 0; i < body.input_size(); ++i) {
    Binding binding;
    if (static_cast<size_t>(i) < info.inputs.size()) {
      binding.value = info.inputs[i].value;
      binding.poisoned = info.inputs[i].poisoned;
    }
    if (!define(inner, body.input(i), binding))
      return giveUp(Twine("its function has two inputs ") + quote(body.input(i)));
  }
  importNodes(body.node(), inner);
  if (overflown)
    return;

  SmallVector<Value> values;
  bool poisoned = false;
  for (auto [i, name] : llvm::enumerate(info.outputs)) {
    if (name.empty()) {
      values.push_back({});
      continue;
    }
    if (!lookup(inner, body.output(i)))
      return giveUp(Twine("nothing in its function body makes the output ") + quote(body.output(i)));
    NodeInfo::Input result = resolve(inner, body.output(i));
    if (!result.value)
      return giveUp(Twine("the output ") + quote(body.output(i)) + " of its function body is an input that is left out");
    values.push_back(result.value);
    poisoned |= result.poisoned;
  }
  bindOutputs(info, values, poisoned, frame);
}

/// The largest version that is not above `wanted`, else the smallest: all bodies of one definition say the same.
static std::optional<int> bestVersion(const std::vector<int> &versions, int64_t wanted) {
  std::optional<int> best;
  for (int version : versions) // ascending
    if (!best || version <= wanted)
      best = version;
  return best;
}

/// What body builders may ask about an input.
static onnx::TypeProto typeProtoFor(const NodeInfo::Input &input) {
  onnx::TypeProto proto;
  if (!input.value)
    return proto;
  auto *tensor = proto.mutable_tensor_type();
  auto type = cast<TensorType>(input.value.getType());
  tensor->set_elem_type(onnxTypeFor(type.getElementType()));
  if (type.hasRank()) {
    auto *shape = tensor->mutable_shape();
    for (int64_t dim : type.getShape()) {
      auto *added = shape->add_dim();
      if (!ShapedType::isDynamic(dim))
        added->set_dim_value(dim);
    }
  }
  return proto;
}

bool Importer::importSchemaBody(const NodeInfo &info, const OpSchema &given, Frame &frame) {
  const OpSchema *schema = &given;
  if (info.domain.empty())
    if (std::optional<int64_t> other = OpTable::get().findBodyVersion(info.opType, info.version))
      schema = onnx::OpSchemaRegistry::Schema(info.opType, static_cast<int>(*other), "");
  if (!schema)
    return false;

  if (std::optional<int> version = bestVersion(schema->function_opset_versions(), info.version)) {
    if (const FunctionProto *body = schema->GetFunction(*version)) {
      importFunction(info, *body, schema, info.domain.empty() ? *version : frame.opsets.lookup(""), frame);
      return true;
    }
  }
  std::optional<int> version = bestVersion(schema->context_dependent_function_opset_versions(), info.version);
  if (!version)
    return false;

  onnx::NodeProto node;
  node.set_op_type(info.opType);
  node.set_domain(info.domain);
  std::vector<onnx::TypeProto> types;
  for (const NodeInfo::Input &input : info.inputs) {
    node.add_input(input.value ? (input.name.empty() ? "unnamed" : input.name) : "");
    types.push_back(typeProtoFor(input));
  }
  for (const std::string &output : info.outputs)
    node.add_output(output);
  for (const auto &[name, attribute] : info.attributes) {
    auto *copy = node.add_attribute();
    *copy = *attribute;
    copy->set_name(name);
    copy->clear_ref_attr_name();
  }
  FunctionProto &body = builtBodies.emplace_back();
  bool built = false;
  std::string why = "its attributes, inputs and types do not go together";
  try {
    onnx::FunctionBodyBuildContextImpl bodyContext(node, types);
    built = schema->BuildContextDependentFunction(bodyContext, body, *version);
  } catch (const std::exception &error) {
    why = printable(StringRef(error.what()).trim());
  }
  if (!built) {
    if (!info.anyPoisoned())
      report(Twine("the ONNX library gives no function body for it: ") + why);
    bindOutputs(info, {}, /*poisoned=*/true, frame);
    return true;
  }
  importFunction(info, body, schema, info.domain.empty() ? *version : frame.opsets.lookup(""), frame);
  return true;
}

} // namespace dlc
