// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SchemaCheck.h"
#include "ElementType.h"
#include "onnx/defs/schema.h"

using namespace mlir;
using onnx::OpSchema;

namespace dlc {

static std::string countText(int least, int most, StringRef what) {
  std::string text;
  if (most == INT32_MAX)
    text = "at least " + std::to_string(least);
  else if (least == most)
    text = std::to_string(least);
  else
    text = std::to_string(least) + " to " + std::to_string(most);
  return text + " " + what.str() + (least == 1 && most == 1 ? "" : "s");
}

/// The element types of tensors that a parameter takes, as ONNX spells them.
static std::vector<std::string> tensorTypes(const OpSchema::FormalParameter &parameter) {
  std::vector<std::string> names;
  for (const std::string *type : parameter.GetTypes()) {
    StringRef name = *type;
    if (name.consume_front("tensor(") && name.consume_back(")"))
      names.push_back(name.str());
  }
  llvm::sort(names);
  return names;
}

static void checkAttributes(const OpSchema &schema, const NodeInfo &node, llvm::function_ref<void(const Twine &)> fail) {
  for (const auto &[name, attribute] : node.attributes) {
    auto it = schema.attributes().find(name);
    if (it == schema.attributes().end()) {
      fail(Twine(node.opType) + " has no attribute " + quote(name) + " in opset " + Twine(node.version));
      continue;
    }
    if (attribute->type() != it->second.type)
      fail(Twine("its attribute ") + quote(name) + " is of type " +
           StringRef(onnx::AttributeProto_AttributeType_Name(attribute->type())).lower() + ", where " +
           StringRef(onnx::AttributeProto_AttributeType_Name(it->second.type)).lower() + " is expected");
  }
  for (const auto &[name, attribute] : schema.attributes())
    if (attribute.required && !node.findAttribute(name))
      fail(Twine("its attribute ") + quote(name) + " is missing");
}

/// "bool, double, float"; not all of a long list.
static std::string listOf(ArrayRef<std::string> names) {
  std::string list;
  for (const std::string &name : names)
    if (list.size() < 120)
      list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "no tensor" : list;
}

/// What the element type that a conversion asks for must be in the node's version.
static void checkTarget(const OpSchema &schema, const NodeInfo &node, llvm::function_ref<void(const Twine &)> fail) {
  const onnx::AttributeProto *to = node.findAttribute("to");
  if (!to || to->type() != onnx::AttributeProto::INT || schema.outputs().size() != 1)
    return;
  std::vector<std::string> allowed = tensorTypes(schema.outputs().front());
  std::string name = typeName(static_cast<int>(std::clamp<int64_t>(to->i(), -1, INT32_MAX)));
  if (!llvm::is_contained(allowed, name))
    fail(Twine("its attribute 'to' asks for element type ") + name + "; in opset " + Twine(node.version) + " it can be " + listOf(allowed));
}

static void checkInputTypes(const OpSchema &schema, const NodeInfo &node, llvm::function_ref<void(const Twine &)> fail) {
  llvm::StringMap<unsigned> firstOf; // type variable -> the input that bound it
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    if (schema.inputs().empty())
      return;
    const OpSchema::FormalParameter &parameter = schema.inputs()[std::min(i, schema.inputs().size() - 1)];
    std::string text = "input " + std::to_string(i) + (input.name.empty() ? "" : " " + quote(input.name));
    if (!input.value) {
      if (parameter.GetOption() == OpSchema::Single)
        fail("its input " + std::to_string(i) + " ('" + parameter.GetName() + "') is missing");
      continue;
    }
    if (input.poisoned)
      continue;
    Type type = NodeReader::elementTypeOf(input.value);
    std::vector<std::string> allowed = tensorTypes(parameter);
    if (!llvm::is_contained(allowed, typeName(type))) {
      fail(Twine("its ") + text + " is " + typeName(type) + "; in opset " + Twine(node.version) + " it can be " + listOf(allowed));
      continue;
    }
    if (!schema.typeConstraintMap().count(parameter.GetTypeStr()) ||
        (parameter.GetOption() == OpSchema::Variadic && !parameter.GetIsHomogeneous()))
      continue;
    auto [first, isNew] = firstOf.try_emplace(parameter.GetTypeStr(), i);
    if (isNew)
      continue;
    const NodeInfo::Input &other = node.inputs[first->second];
    Type otherType = NodeReader::elementTypeOf(other.value);
    if (otherType != type)
      fail(Twine("its ") + text + " is " + typeName(type) + ", but its input " + Twine(first->second) + " " + quote(other.name) + " is " +
           typeName(otherType) + "; both must be of one type (put a Cast before one of them)");
  }
}

void checkSchema(const OpSchema &schema, const NodeInfo &node, llvm::function_ref<void(const Twine &)> fail) {
  int inputs = node.inputs.size(), outputs = node.outputs.size();
  if (inputs < schema.min_input() || inputs > schema.max_input())
    fail(Twine("it has ") + countText(inputs, inputs, "input") + "; in opset " + Twine(node.version) + " it takes " +
         countText(schema.min_input(), schema.max_input(), "input"));
  else
    checkInputTypes(schema, node, fail);
  if (outputs < schema.min_output() || outputs > schema.max_output())
    fail(Twine("it has ") + countText(outputs, outputs, "output") + "; in opset " + Twine(node.version) + " it gives " +
         countText(schema.min_output(), schema.max_output(), "output"));
  checkAttributes(schema, node, fail);
  checkTarget(schema, node, fail);
}

} // namespace dlc
