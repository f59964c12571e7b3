// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Constants and ranges, and operators that leave nothing behind in inference.

#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "onnx/onnx_pb.h"

using namespace mlir;

namespace dlc {

static void constant(NodeReader &n) {
  if (n.getNode().attributes.size() != 1)
    return n.fail(Twine("it must have exactly one attribute, and has ") + Twine(n.getNode().attributes.size()));
  StringRef name = n.getNode().attributes.front().first;
  OpBuilder &b = n.b();
  TypedAttr value;
  if (name == "value") {
    value = n.findTensor(name);
  } else if (name == "value_float") {
    if (std::optional<float> number = n.findFloat(name))
      value = DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()), *number);
  } else if (name == "value_int") {
    if (std::optional<int64_t> number = n.findInt(name))
      value = DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()), *number);
  } else if (name == "value_floats" || name == "value_ints") {
    // Through makeConstant: long lists are weights.
    auto make = [&](auto numbers, Type type) {
      using Number = typename decltype(numbers)::value_type;
      auto owner = std::make_shared<decltype(numbers)>(std::move(numbers));
      ArrayRef<char> bytes(reinterpret_cast<const char *>(owner->data()), owner->size() * sizeof(Number));
      return makeConstant(RankedTensorType::get({static_cast<int64_t>(owner->size())}, type), bytes, owner);
    };
    if (name == "value_floats") {
      if (std::optional<SmallVector<float>> numbers = n.findFloats(name))
        value = make(std::move(*numbers), b.getF32Type());
    } else if (std::optional<SmallVector<int64_t>> numbers = n.findInts(name)) {
      value = make(std::move(*numbers), b.getI64Type());
    }
  } else if (name == "value_string" || name == "value_strings") {
    return n.fail("it is a constant of element type string, which dlc does not support");
  } else if (name == "sparse_value") {
    return n.fail("it is a sparse constant, which dlc does not support");
  }
  if (value)
    n.setOutput(0, n.constant(value));
}

static void constantOfShape(NodeReader &n) {
  TypedAttr value = DenseElementsAttr::get(RankedTensorType::get({1}, n.b().getF32Type()), 0.0f);
  if (n.hasAttribute("value")) {
    TypedAttr given = n.findTensor("value");
    if (!given)
      return;
    auto type = cast<RankedTensorType>(given.getType());
    if (type.getNumElements() != 1)
      return n.fail(Twine("its attribute 'value' has ") + Twine(type.getNumElements()) + " elements; it must have one");
    value = given;
  }
  n.setOutput(0, n.make<ConstantOfShapeOp>(cast<RankedTensorType>(value.getType()).getElementType(), n.input(0), value));
}

/// start, start + delta, ... as long as it has not reached limit: as many as ceil((limit - start) / delta), if that is positive.
static void range(NodeReader &n) {
  Value start = n.input(0), limit = n.input(1), delta = n.input(2);
  Type type = NodeReader::elementTypeOf(start), index = n.b().getI64Type(), boolean = n.b().getI1Type();
  Value span = n.make<SubOp>(type, limit, start), count;
  if (isa<FloatType>(type)) {
    count = n.cast(n.make<CeilOp>(type, n.make<DivOp>(type, span, delta)), index);
  } else {
    // Division drops the fraction; one more where there was one and the quotient is positive.
    Value quotient = n.make<DivOp>(type, span, delta), zero = n.scalar(0, type);
    Value whole = n.make<EqualOp>(boolean, n.make<MulOp>(type, quotient, delta), span);
    Value negative = n.make<NotOp>(boolean, n.make<EqualOp>(boolean, n.make<LessOp>(boolean, span, zero), n.make<LessOp>(boolean, delta, zero)));
    Value more = n.make<WhereOp>(index, n.make<OrOp>(boolean, whole, negative), n.scalar(0, index), n.scalar(1, index));
    count = n.make<AddOp>(index, n.cast(quotient, index), more);
  }
  count = n.make<MaxOp>(index, count, n.scalar(0, index));
  Value numbers = n.make<IotaOp>(index, n.make<UnsqueezeOp>(index, count, SmallVector<int64_t>{0}), /*axis=*/0);
  n.setOutput(0, n.make<AddOp>(type, start, n.make<MulOp>(type, n.cast(numbers, type), delta)));
}

/// In inference, Dropout changes nothing, and its mask is true everywhere.
static void dropout(NodeReader &n) {
  n.ignore("ratio");
  n.ignore("seed");
  (void)n.optionalInput(1); // the ratio
  StringRef remedy = "; dlc compiles for inference only: export the model in inference mode";
  if (n.getVersion() < 7 && !n.getFlag("is_test", false))
    return n.fail(Twine("it is in training mode ('is_test' is not set)") + remedy);
  if (n.optionalInput(2)) {
    TypedAttr constant = NodeReader::constantOf(n.optionalInput(2));
    std::optional<SmallVector<int64_t>> mode = constant ? constantIntegers(constant) : std::nullopt;
    if (!mode)
      return n.failInput(2, Twine("its 'training_mode' (") + n.describeInput(2) + ") is known only at run time" + remedy);
    if (llvm::any_of(*mode, [](int64_t flag) { return flag != 0; }))
      return n.fail(Twine("it is in training mode") + remedy);
  }
  Value x = n.input(0);
  n.setOutput(0, x);
  if (!n.wantsOutput(1))
    return;
  Type maskType = n.getVersion() < 10 ? NodeReader::elementTypeOf(x) : n.b().getI1Type();
  Value shape = n.make<ShapeOp>(n.b().getI64Type(), x, /*start=*/0, /*end=*/IntegerAttr());
  n.setOutput(1, n.make<ExpandOp>(maskType, n.scalar(1, maskType), shape));
}

void addStructureOps(OpTable &t) {
  t.add("Constant", 1, constant);
  t.add("ConstantOfShape", 9, constantOfShape);
  t.add("Dropout", 6, dropout);
  t.add("Range", 11, range);
  t.add("Identity", 1, [](NodeReader &n) { n.setOutput(0, n.input(0)); });
}

} // namespace dlc
