// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NodeReader.h"
#include "ElementType.h"
#include "Weights.h"
#include "dlc/IR/Elementwise.h"
#include "onnx/onnx_pb.h"

using namespace mlir;
using onnx::AttributeProto;

namespace dlc {

Value makeStandIn(OpBuilder &builder, Location loc, Type elementType) {
  Type type = UnrankedTensorType::get(elementType ? elementType : builder.getF32Type());
  return UnrealizedConversionCastOp::create(builder, loc, type, ValueRange{}).getResult(0);
}

const AttributeProto *NodeInfo::findAttribute(StringRef name) const {
  for (const auto &[known, attribute] : attributes)
    if (known == name)
      return attribute;
  return nullptr;
}

bool NodeInfo::anyPoisoned() const {
  return llvm::any_of(inputs, [](const Input &input) { return input.poisoned; });
}

NodeReader::NodeReader(OpBuilder &builder, Location loc, const NodeInfo &node, Weights &weights)
    : builder(builder), loc(loc), node(node), weights(weights), readInputs(node.inputs.size()),
      readAttributes(node.attributes.size()), outputs(node.outputs.size()) {}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

std::string NodeReader::describeInput(unsigned i) const {
  std::string text = "input " + std::to_string(i);
  if (i < node.inputs.size() && !node.inputs[i].name.empty())
    text += " " + quote(node.inputs[i].name);
  return text;
}

Value NodeReader::standIn() { return makeStandIn(builder, loc, {}); }

Value NodeReader::optionalInput(unsigned i) {
  if (i >= node.inputs.size())
    return {};
  readInputs.set(i);
  return node.inputs[i].value;
}

Value NodeReader::input(unsigned i) {
  if (Value value = optionalInput(i))
    return value;
  fail(Twine("input ") + Twine(i) + " is missing");
  return standIn();
}

SmallVector<Value> NodeReader::inputsFrom(unsigned i) {
  SmallVector<Value> values;
  for (; i < node.inputs.size(); ++i)
    values.push_back(input(i));
  return values;
}

std::optional<int64_t> NodeReader::rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? std::optional(type.getRank()) : std::nullopt;
}

TypedAttr NodeReader::constantOf(Value value) {
  auto op = value.getDefiningOp<ConstantOp>();
  return op ? dyn_cast<TypedAttr>(op.getValue()) : TypedAttr();
}

std::optional<SmallVector<int64_t>> NodeReader::optionalConstantInts(unsigned i, StringRef what) {
  Value value = optionalInput(i);
  if (!value)
    return std::nullopt;
  TypedAttr constant = constantOf(value);
  if (!constant) {
    failInput(i, Twine("its ") + what + " (" + describeInput(i) + ") must be constant, but are known only at run time; simplify the model " +
                     "so that they are an initializer");
    return SmallVector<int64_t>();
  }
  constexpr unsigned kMost = 1 << 16;
  std::optional<SmallVector<int64_t>> numbers = constantIntegers(constant, kMost);
  if (!numbers) {
    failInput(i, Twine("its ") + what + " (" + describeInput(i) + ") must be a short list of integers");
    return SmallVector<int64_t>();
  }
  return numbers;
}

NodeReader::Ints NodeReader::optionalInts(unsigned i, StringRef what) {
  Value value = optionalInput(i);
  if (value && !constantOf(value))
    return {std::nullopt, value};
  return {optionalConstantInts(i, what), Value()};
}

SmallVector<int64_t> NodeReader::constantInts(unsigned i, StringRef what) {
  std::optional<SmallVector<int64_t>> numbers = optionalConstantInts(i, what);
  if (!numbers)
    fail(Twine("its ") + what + " (input " + Twine(i) + ") are missing");
  return numbers.value_or(SmallVector<int64_t>());
}

int64_t NodeReader::constantInt(unsigned i, StringRef what) {
  bool before = hasFailed;
  SmallVector<int64_t> numbers = constantInts(i, what);
  if (numbers.size() == 1)
    return numbers.front();
  if (hasFailed == before)
    failInput(i, Twine("its ") + what + " (" + describeInput(i) + ") must be one number, not " + Twine(numbers.size()));
  return 0;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static std::string attributeTypeName(int type) {
  return StringRef(onnx::AttributeProto_AttributeType_Name(static_cast<onnx::AttributeProto_AttributeType>(type))).lower();
}

void NodeReader::ignore(StringRef name) {
  for (auto [i, attribute] : llvm::enumerate(node.attributes))
    if (attribute.first == name)
      readAttributes.set(i);
}

const AttributeProto *NodeReader::find(StringRef name, int type) {
  ignore(name);
  const AttributeProto *attribute = node.findAttribute(name);
  if (!attribute)
    return nullptr;
  if (attribute->type() != type) {
    fail(Twine("its attribute ") + quote(name) + " is of type " + attributeTypeName(attribute->type()) + ", where " +
         attributeTypeName(type) + " is expected");
    return nullptr;
  }
  return attribute;
}

std::optional<int64_t> NodeReader::findInt(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::INT);
  return attribute ? std::optional(attribute->i()) : std::nullopt;
}

std::optional<float> NodeReader::findFloat(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::FLOAT);
  return attribute ? std::optional(attribute->f()) : std::nullopt;
}

std::optional<std::string> NodeReader::findString(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::STRING);
  return attribute ? std::optional(attribute->s()) : std::nullopt;
}

std::optional<SmallVector<int64_t>> NodeReader::findInts(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::INTS);
  if (!attribute)
    return std::nullopt;
  return SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<SmallVector<float>> NodeReader::findFloats(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::FLOATS);
  if (!attribute)
    return std::nullopt;
  return SmallVector<float>(attribute->floats().begin(), attribute->floats().end());
}

TypedAttr NodeReader::findTensor(StringRef name) {
  const AttributeProto *attribute = find(name, AttributeProto::TENSOR);
  if (!attribute)
    return {};
  llvm::Expected<TypedAttr> value = weights.read(attribute->t(), node.takeWeights);
  if (value)
    return *value;
  fail(Twine("its attribute ") + quote(name) + " cannot be read: " + llvm::toString(value.takeError()));
  return {};
}

Type NodeReader::getElementType(StringRef name, std::optional<int64_t> otherwise) {
  std::optional<int64_t> type = findInt(name);
  if (!type)
    type = otherwise;
  if (!type) {
    if (!hasFailed)
      fail(Twine("its attribute ") + quote(name) + " is missing");
    return builder.getF32Type();
  }
  int number = static_cast<int>(std::clamp<int64_t>(*type, -1, INT32_MAX));
  if (Type elementType = elementTypeFor(builder.getContext(), number))
    return elementType;
  fail(Twine("its attribute ") + quote(name) + " asks for element type " + typeName(number) + ", which dlc does not support");
  return builder.getF32Type();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value NodeReader::constant(TypedAttr value) { return ConstantOp::create(builder, loc, value).getResult(); }

Value NodeReader::ints(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value NodeReader::scalar(double value, Type elementType) {
  auto type = RankedTensorType::get({}, elementType);
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    llvm::APFloat number(value);
    bool lost = false;
    number.convert(floatType.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return constant(DenseElementsAttr::get(type, number));
  }
  llvm::APInt number(elementType.getIntOrFloatBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)),
                     /*isSigned=*/true, /*implicitTrunc=*/true);
  return constant(DenseElementsAttr::get(type, number));
}

Value NodeReader::cast(Value value, Type to) {
  if (elementTypeOf(value) == to)
    return value;
  return make<CastOp>(to, value, to);
}

void NodeReader::setOutput(unsigned i, Value value) {
  if (i < outputs.size())
    outputs[i] = value;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void NodeReader::fail(const Twine &message) {
  hasFailed = true;
  errors.push_back(message.str());
}

void NodeReader::failInput(unsigned i, const Twine &message) {
  hasFailed = true;
  if (i >= node.inputs.size() || !node.inputs[i].poisoned)
    errors.push_back(message.str());
}

void NodeReader::finish() {
  if (hasFailed)
    return; // the handler may have stopped before it read everything
  for (auto [i, attribute] : llvm::enumerate(node.attributes))
    if (!readAttributes.test(i))
      fail(Twine("its attribute ") + quote(attribute.first) + " is not supported");
  for (auto [i, input] : llvm::enumerate(node.inputs))
    if (input.value && !readInputs.test(i))
      fail(Twine("its ") + describeInput(i) + " is not supported");
}

} // namespace dlc
