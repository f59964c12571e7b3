// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators that work element by element. Most are one line in addElementwiseOps: the op, ONNX's name, and the version since
// which ONNX has meant the same by it.

#include "Compose.h"
#include "ElementType.h"
#include "OpTable.h"
#include "dlc/IR/Elementwise.h"

using namespace mlir;

namespace dlc {

/// Before version 7, operands broadcast only when `broadcast` was set, and then the second one's dims were matched with the
/// first one's from `axis` on (without it, with the last ones).
static Value oldBroadcast(NodeReader &n, Value x, Value y) {
  bool broadcast = n.getFlag("broadcast", false);
  std::optional<int64_t> axis = n.findInt("axis");
  if (!broadcast || !axis || *axis == -1)
    return y;
  if (*axis < 0) {
    n.fail(Twine("its attribute 'axis' is ") + Twine(*axis) + "; it must be -1 or the number of a dimension");
    return y;
  }
  return n.make<AlignAxesOp>(NodeReader::elementTypeOf(y), y, x, *axis);
}

template <typename OpT> static void unary(OpTable &table, StringRef name, int64_t since) {
  table.add(name, since, [](NodeReader &n) { n.setOutput(0, n.make<OpT>(n.elementType(0), n.input(0))); });
}

/// `emit` gets both operands and returns the result.
static void binaryBy(OpTable &table, StringRef name, int64_t since, std::function<Value(NodeReader &, Value, Value)> emit) {
  if (since < 7)
    table.add(name, since, [emit](NodeReader &n) {
      Value x = n.input(0);
      n.setOutput(0, emit(n, x, oldBroadcast(n, x, n.input(1))));
    });
  table.add(name, std::max<int64_t>(since, 7), [emit](NodeReader &n) { n.setOutput(0, emit(n, n.input(0), n.input(1))); });
}

template <typename OpT> static void binary(OpTable &table, StringRef name, int64_t since) {
  binaryBy(table, name, since, [](NodeReader &n, Value x, Value y) { return n.make<OpT>(NodeReader::elementTypeOf(x), x, y); });
}

/// The result is a bool tensor.
template <typename OpT> static void compare(OpTable &table, StringRef name, int64_t since) {
  binaryBy(table, name, since, [](NodeReader &n, Value x, Value y) { return n.make<OpT>(n.b().getI1Type(), x, y); });
}

/// One or more operands.
template <typename OpT> static Value chain(NodeReader &n) {
  Value result = n.input(0);
  for (Value operand : n.inputsFrom(1))
    result = n.make<OpT>(NodeReader::elementTypeOf(result), result, operand);
  return result;
}

template <typename OpT> static void variadic(OpTable &table, StringRef name, int64_t since) {
  table.add(name, since, [](NodeReader &n) { n.setOutput(0, chain<OpT>(n)); });
}

static void mean(NodeReader &n) {
  Value sum = chain<AddOp>(n);
  if (n.getNumInputs() > 1)
    sum = n.make<DivOp>(NodeReader::elementTypeOf(sum), sum, n.scalarLike(n.getNumInputs(), sum));
  n.setOutput(0, sum);
}

/// Where x is a float of 8 bits, in which nothing computes: the same as f32.
static Value computable(NodeReader &n, Value x) { return isSmallFloat(NodeReader::elementTypeOf(x)) ? n.cast(x, n.b().getF32Type()) : x; }

/// Only a NaN differs from itself.
static void isNan(NodeReader &n) {
  Value x = computable(n, n.input(0));
  Type type = n.b().getI1Type();
  n.setOutput(0, n.make<NotOp>(type, n.make<EqualOp>(type, x, x)));
}

static void isInf(NodeReader &n) {
  Value x = computable(n, n.input(0));
  Type type = n.b().getI1Type(), element = NodeReader::elementTypeOf(x);
  bool positive = n.getFlag("detect_positive", true), negative = n.getFlag("detect_negative", true);
  Value infinity = n.scalar(std::numeric_limits<double>::infinity(), element);
  if (positive && negative)
    return n.setOutput(0, n.make<EqualOp>(type, n.make<AbsOp>(element, x), infinity));
  if (negative)
    return n.setOutput(0, n.make<EqualOp>(type, x, n.make<NegOp>(element, infinity)));
  Value isPositive = n.make<EqualOp>(type, x, infinity);
  n.setOutput(0, positive ? isPositive : n.make<AndOp>(type, isPositive, n.scalar(0, type)));
}

/// The remainder, with the sign of the dividend (fmod) or of the divisor.
static void importMod(NodeReader &n) {
  Value x = n.input(0), y = n.input(1);
  Type type = NodeReader::elementTypeOf(x);
  if (n.getFlag("fmod", false))
    return n.setOutput(0, n.make<FmodOp>(type, x, y));
  if (!isa<IntegerType>(type) && n.getVersion() < 28)
    return n.failInput(0, Twine("its ") + n.describeInput(0) + " is " + typeName(type) + ", for which its attribute 'fmod' must be 1 before opset 28");
  n.setOutput(0, n.make<ModOp>(type, x, y));
}

static void bitShift(NodeReader &n) {
  Value x = n.input(0), y = n.input(1);
  Type type = NodeReader::elementTypeOf(x);
  std::optional<std::string> direction = n.findString("direction");
  if (direction == "LEFT")
    return n.setOutput(0, n.make<ShiftLeftOp>(type, x, y));
  if (direction != "RIGHT")
    n.fail(direction ? Twine("its attribute 'direction' is ") + quote(*direction) + "; it must be LEFT or RIGHT"
                     : Twine("its attribute 'direction' is missing"));
  n.setOutput(0, n.make<ShiftRightOp>(type, x, y));
}

static void castTo(NodeReader &n, Type type) {
  bool saturate = n.getFlag("saturate", true);
  std::string rounding = n.findString("round_mode").value_or("up");
  if (!parsePowerRounding(rounding))
    return n.fail(Twine("its attribute 'round_mode' is ") + quote(rounding) + "; it can be 'up', 'down' and 'nearest'");
  Value x = n.input(0);
  n.setOutput(0, NodeReader::elementTypeOf(x) == type ? x : n.make<CastOp>(type, x, type, saturate, rounding));
}

static void bitCast(NodeReader &n) {
  Value x = n.input(0);
  Type from = NodeReader::elementTypeOf(x), to = n.getElementType("to");
  if (!n.failed() && bitsPerElement(from) != bitsPerElement(to))
    return n.fail(Twine("it turns ") + typeName(from) + " into " + typeName(to) + ", which has another number of bits (insert a Cast)");
  n.setOutput(0, from == to ? x : n.make<BitCastOp>(to, x, to));
}

/// min(max, max(x, min)); a bound that is left out does not bound.
static void clip(NodeReader &n, Value low, Value high) {
  Value x = n.input(0);
  Type type = NodeReader::elementTypeOf(x);
  if (low)
    x = n.make<MaxOp>(type, x, low);
  if (high)
    x = n.make<MinOp>(type, x, high);
  n.setOutput(0, x);
}

static void clipByAttributes(NodeReader &n) {
  Type type = n.elementType(0);
  constexpr float limit = std::numeric_limits<float>::max(); // the default bounds, which infinities exceed
  clip(n, n.scalar(n.getFloat("min", -limit), type), n.scalar(n.getFloat("max", limit), type));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

namespace {
/// A float attribute and its default.
struct Number {
  StringRef name;
  float otherwise;
};
} // namespace

/// One input, and float attributes in the order of the op's.
template <typename OpT, typename... Numbers>
static void activation(OpTable &table, StringRef name, int64_t since, Numbers... numbers) {
  table.add(name, since, [=](NodeReader &n) {
    Value x = n.input(0);
    n.setOutput(0, n.make<OpT>(NodeReader::elementTypeOf(x), x, n.b().getF32FloatAttr(n.getFloat(numbers.name, numbers.otherwise))...));
  });
}

static Value prelu(NodeReader &n, Value x, Value slope) { return n.make<PReluOp>(NodeReader::elementTypeOf(x), x, slope); }

/// Before version 7 a slope without other axes is one for each channel, or one for all of them.
static void preluOfChannels(NodeReader &n) {
  Value x = n.input(0), slope = n.input(1);
  if (NodeReader::rankOf(slope).value_or(1) == 1)
    slope = n.make<AlignAxesOp>(NodeReader::elementTypeOf(slope), slope, x, /*axis=*/1);
  n.setOutput(0, prelu(n, x, slope));
}

static void importGelu(NodeReader &n) {
  Value x = n.input(0);
  Type type = NodeReader::elementTypeOf(x);
  std::string approximate = n.findString("approximate").value_or("none");
  if (approximate == "tanh")
    return n.setOutput(0, n.make<GeluTanhOp>(type, x));
  if (approximate != "none")
    n.fail(Twine("its attribute 'approximate' is ") + quote(approximate) + "; it must be none or tanh");
  n.setOutput(0, n.make<GeluOp>(type, x));
}

//===----------------------------------------------------------------------===//
// com.microsoft
//===----------------------------------------------------------------------===//

/// The activation of an input, to which a bias may be added before.
template <typename OpT> static void geluOf(NodeReader &n) {
  requireOneFloatType(n, {0, 1});
  Value x = n.input(0), bias = n.optionalInput(1);
  Type type = NodeReader::elementTypeOf(x);
  n.setOutput(0, n.make<OpT>(type, bias ? n.make<AddOp>(type, x, bias) : x));
}

static void quickGelu(NodeReader &n) {
  requireOneFloatType(n, {0});
  Value x = n.input(0);
  n.setOutput(0, n.make<SwishOp>(NodeReader::elementTypeOf(x), x, n.b().getF32FloatAttr(n.getFloat("alpha", 1.702f))));
}

/// An image, the bias of its channels and what goes past the layer.
static void biasAdd(NodeReader &n) {
  requireOneFloatType(n, {0, 1, 2});
  Value x = n.input(0), bias = n.input(1), skip = n.input(2);
  Type type = NodeReader::elementTypeOf(x);
  n.setOutput(0, n.make<AddOp>(type, n.make<AddOp>(type, x, bias), skip));
}

/// The first half of the channels times the Gelu of the second.
static void biasSplitGelu(NodeReader &n) {
  requireOneFloatType(n, {0, 1});
  Value x = n.input(0), bias = n.input(1);
  Type type = NodeReader::elementTypeOf(x), index = n.b().getI64Type();
  Value sum = n.make<AddOp>(type, x, bias), half = n.make<DivOp>(index, dimOf(n, x, -1), n.ints({2}));
  Value first = slice(n, sum, n.ints({0}), half, -1), second = slice(n, sum, half, n.ints({INT64_MAX}), -1);
  n.setOutput(0, n.make<MulOp>(type, first, n.make<GeluOp>(type, second)));
}

void addElementwiseOps(OpTable &t) {
  unary<AbsOp>(t, "Abs", 6);
  unary<AcosOp>(t, "Acos", 7);
  unary<AcoshOp>(t, "Acosh", 9);
  unary<AsinOp>(t, "Asin", 7);
  unary<AsinhOp>(t, "Asinh", 9);
  unary<AtanOp>(t, "Atan", 7);
  unary<AtanhOp>(t, "Atanh", 9);
  unary<NotOp>(t, "BitwiseNot", 18);
  unary<CeilOp>(t, "Ceil", 6);
  unary<CosOp>(t, "Cos", 7);
  unary<CoshOp>(t, "Cosh", 9);
  unary<ErfOp>(t, "Erf", 9);
  unary<ExpOp>(t, "Exp", 6);
  unary<FloorOp>(t, "Floor", 6);
  unary<LogOp>(t, "Log", 6);
  unary<NegOp>(t, "Neg", 6);
  unary<NotOp>(t, "Not", 1);
  unary<ReciprocalOp>(t, "Reciprocal", 6);
  unary<RoundOp>(t, "Round", 11);
  unary<SignOp>(t, "Sign", 9);
  unary<SinOp>(t, "Sin", 7);
  unary<SinhOp>(t, "Sinh", 9);
  unary<SqrtOp>(t, "Sqrt", 6);
  unary<TanOp>(t, "Tan", 7);
  unary<TanhOp>(t, "Tanh", 6);

  activation<CeluOp>(t, "Celu", 12, Number{"alpha", 1});
  activation<EluOp>(t, "Elu", 6, Number{"alpha", 1});
  activation<HardSigmoidOp>(t, "HardSigmoid", 6, Number{"alpha", 0.2f}, Number{"beta", 0.5f});
  activation<HardSwishOp>(t, "HardSwish", 14);
  activation<LeakyReluOp>(t, "LeakyRelu", 6, Number{"alpha", 0.01f});
  activation<MishOp>(t, "Mish", 18);
  activation<ReluOp>(t, "Relu", 6);
  activation<SeluOp>(t, "Selu", 6, Number{"alpha", 1.67326319217681884765625f}, Number{"gamma", 1.05070102214813232421875f});
  activation<ShrinkOp>(t, "Shrink", 9, Number{"lambd", 0.5f}, Number{"bias", 0});
  activation<SigmoidOp>(t, "Sigmoid", 6);
  activation<SoftplusOp>(t, "Softplus", 1);
  activation<SoftsignOp>(t, "Softsign", 1);
  activation<SwishOp>(t, "Swish", 24, Number{"alpha", 1});
  activation<ThresholdedReluOp>(t, "ThresholdedRelu", 10, Number{"alpha", 1});
  t.add("Gelu", 20, importGelu);
  t.add("PRelu", 1, preluOfChannels);
  t.add("PRelu", 7, [](NodeReader &n) { n.setOutput(0, prelu(n, n.input(0), n.input(1))); });

  t.add("BiasAdd", 1, biasAdd, kMicrosoft);
  t.add("BiasGelu", 1, geluOf<GeluOp>, kMicrosoft);
  t.add("BiasSplitGelu", 1, biasSplitGelu, kMicrosoft);
  t.add("FastGelu", 1, geluOf<GeluTanhOp>, kMicrosoft);
  t.add("Gelu", 1, geluOf<GeluOp>, kMicrosoft);
  t.add("QuickGelu", 1, quickGelu, kMicrosoft);

  binary<AddOp>(t, "Add", 6);
  binary<AndOp>(t, "And", 1);
  binary<AndOp>(t, "BitwiseAnd", 18);
  binary<OrOp>(t, "BitwiseOr", 18);
  binary<XorOp>(t, "BitwiseXor", 18);
  binary<DivOp>(t, "Div", 6);
  binary<MulOp>(t, "Mul", 6);
  binary<OrOp>(t, "Or", 1);
  binary<SubOp>(t, "Sub", 6);
  binary<PowOp>(t, "Pow", 1);
  binary<XorOp>(t, "Xor", 1);

  compare<EqualOp>(t, "Equal", 1);
  compare<GreaterOp>(t, "Greater", 1);
  compare<GreaterOrEqualOp>(t, "GreaterOrEqual", 12);
  compare<LessOp>(t, "Less", 1);
  compare<LessOrEqualOp>(t, "LessOrEqual", 12);

  variadic<MaxOp>(t, "Max", 6);
  variadic<MinOp>(t, "Min", 6);
  variadic<AddOp>(t, "Sum", 6);
  t.add("Mean", 6, mean);

  t.add("BitShift", 11, bitShift);
  t.add("IsInf", 10, isInf);
  t.add("IsNaN", 9, isNan);
  t.add("Mod", 10, importMod);
  t.add("Where", 9, [](NodeReader &n) { n.setOutput(0, n.make<WhereOp>(n.elementType(1), n.input(0), n.input(1), n.input(2))); });
  t.add("Cast", 6, [](NodeReader &n) { castTo(n, n.getElementType("to")); });
  t.add("BitCast", 26, bitCast);
  t.add("CastLike", 15, [](NodeReader &n) { castTo(n, n.elementType(1)); });
  t.add("Clip", 6, clipByAttributes);
  t.add("Clip", 11, [](NodeReader &n) { clip(n, n.optionalInput(1), n.optionalInput(2)); });
}

} // namespace dlc
