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

/// How many elements start, start + delta, ... has before it reaches limit: ceil((limit - start) / delta), if that is positive; -1 where
/// that is no number that fits.
static Value rangeCount(NodeReader &n, Value start, Value limit, Value delta) {
  Type index = n.b().getI64Type(), boolean = n.b().getI1Type();
  Value none = n.scalar(-1, index), nothing = n.scalar(0, index);
  auto either = [&](Value x, Value y) { return n.make<OrOp>(boolean, x, y); };
  auto differ = [&](Value x, Value y) { return n.make<NotOp>(boolean, n.make<EqualOp>(boolean, x, y)); };
  if (isa<FloatType>(NodeReader::elementTypeOf(start))) {
    // In f64, where the difference of two narrower floats loses least.
    Type wide = n.b().getF64Type();
    start = n.cast(start, wide), limit = n.cast(limit, wide), delta = n.cast(delta, wide);
    Value steps = n.make<CeilOp>(wide, n.make<DivOp>(wide, n.make<SubOp>(wide, limit, start), delta));
    auto isBelow = [&](Value x, double most) { return n.make<LessOp>(boolean, n.make<AbsOp>(wide, x), n.scalar(most, wide)); };
    // A NaN is below nothing; a delta of 0 gives an infinity or a NaN.
    Value valid = n.make<AndOp>(boolean, isBelow(steps, 0x1p62), isBelow(delta, std::numeric_limits<double>::infinity()));
    Value count = n.cast(n.make<WhereOp>(wide, valid, steps, n.scalar(0, wide)), index);
    return n.make<WhereOp>(index, valid, n.make<MaxOp>(index, count, nothing), none);
  }
  start = n.cast(start, index), limit = n.cast(limit, index), delta = n.cast(delta, index);
  auto isNegative = [&](Value x) { return n.make<LessOp>(boolean, x, nothing); };
  Value span = n.make<SubOp>(index, limit, start), isZero = n.make<EqualOp>(boolean, delta, nothing);
  // Numbers of one sign have a difference that fits; that of others has the sign of the first.
  Value overflows = n.make<AndOp>(boolean, differ(isNegative(limit), isNegative(start)), differ(isNegative(span), isNegative(limit)));
  // Division drops the fraction; one more where there was one and the quotient is positive.
  Value quotient = n.make<DivOp>(index, span, n.make<WhereOp>(index, isZero, n.scalar(1, index), delta));
  Value isWhole = n.make<EqualOp>(boolean, n.make<MulOp>(index, quotient, delta), span);
  Value away = differ(isNegative(span), isNegative(delta));
  // The smallest number by -1 has a quotient that does not fit.
  Value wraps = n.make<AndOp>(boolean, n.make<NotOp>(boolean, away), isNegative(quotient));
  Value count = n.make<AddOp>(index, quotient, n.make<WhereOp>(index, either(isWhole, away), nothing, n.scalar(1, index)));
  Value invalid = either(isZero, either(overflows, wraps));
  return n.make<WhereOp>(index, invalid, none, n.make<MaxOp>(index, count, nothing));
}

static void range(NodeReader &n) {
  Type type = n.elementType(0), index = n.b().getI64Type();
  // Function bodies of the standard give tensors of one element where a scalar is asked for.
  auto scalar = [&](unsigned i) { return n.make<ReshapeOp>(n.elementType(i), n.input(i), n.ints({}), /*allowzero=*/false); };
  Value start = scalar(0), limit = scalar(1), delta = scalar(2);
  Value count = rangeCount(n, start, limit, delta);
  RequireOp::create(n.b(), n.getLoc(), count, n.scalar(0, index), /*atLeast=*/true,
                    "the range has no end that can be counted to: its delta is 0 or not finite, or there are too many steps to its limit");
  Value numbers = n.make<IotaOp>(index, n.make<UnsqueezeOp>(index, count, SmallVector<int64_t>{0}), /*axis=*/0);
  // 16-bit floats do not hold all numbers of steps.
  Type wide = type.isF16() || type.isBF16() ? Type(n.b().getF32Type()) : type;
  Value steps = n.make<MulOp>(wide, n.cast(numbers, wide), n.cast(delta, wide));
  n.setOutput(0, n.cast(n.make<AddOp>(wide, n.cast(start, wide), steps), type));
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
