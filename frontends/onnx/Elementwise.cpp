// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators that work element by element. Most are one line in addElementwiseOps: the op, ONNX's name, and the version since
// which ONNX has meant the same by it.

#include "ElementType.h"
#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"

using namespace mlir;

namespace dlc {

/// Before version 7, operands broadcast only when `broadcast` was set, and then the second one's dims were matched with the
/// first one's from `axis` on (without it, with the last ones).
static Value oldBroadcast(NodeReader &n, Value x, Value y) {
  bool broadcast = n.getFlag("broadcast", false);
  std::optional<int64_t> axis = n.findInt("axis");
  if (!broadcast || !axis || *axis == -1)
    return y;
  std::optional<int64_t> xRank = NodeReader::rankOf(x), yRank = NodeReader::rankOf(y);
  if (!xRank || !yRank) {
    n.fail("its attributes 'broadcast' and 'axis' are from before opset 7 and are understood only between inputs whose number of "
           "dimensions is declared; convert the model to opset 7 or later (onnx.version_converter)");
    return y;
  }
  int64_t behind = *xRank - *axis - *yRank;
  if (*axis < 0 || behind < 0) {
    n.fail(Twine("its attribute 'axis' is ") + Twine(*axis) + ", but its inputs have " + Twine(*xRank) + " and " + Twine(*yRank) +
           " dimensions");
    return y;
  }
  if (behind == 0)
    return y;
  SmallVector<int64_t> axes;
  for (int64_t i = 0; i < behind; ++i)
    axes.push_back(*yRank + i);
  return n.make<UnsqueezeOp>(NodeReader::elementTypeOf(y), y, axes);
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

/// The type of the base is the type of the result, whatever the exponent's.
static Value power(NodeReader &n, Value x, Value y) {
  Type base = NodeReader::elementTypeOf(x), exponent = NodeReader::elementTypeOf(y);
  if (isa<IntegerType>(base) && isa<FloatType>(exponent)) {
    Type wide = n.b().getF64Type();
    return n.cast(n.make<PowOp>(wide, n.cast(x, wide), n.cast(y, wide)), base);
  }
  return n.make<PowOp>(base, x, n.cast(y, base));
}

static Value exclusiveOr(NodeReader &n, Value x, Value y) {
  Type type = n.b().getI1Type();
  return n.make<NotOp>(type, n.make<EqualOp>(type, x, y));
}

/// Only a NaN differs from itself.
static void isNan(NodeReader &n) {
  Value x = n.input(0);
  Type type = n.b().getI1Type();
  n.setOutput(0, n.make<NotOp>(type, n.make<EqualOp>(type, x, x)));
}

static void isInf(NodeReader &n) {
  Value x = n.input(0);
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
static void modulo(NodeReader &n) {
  Value x = n.input(0), y = n.input(1);
  Type type = NodeReader::elementTypeOf(x), boolean = n.b().getI1Type();
  bool signOfDividend = n.getFlag("fmod", false);
  if (!isa<IntegerType>(type))
    return n.failInput(0, Twine("its ") + n.describeInput(0) + " is " + typeName(type) + "; only integer types are supported");
  Value rest = n.make<SubOp>(type, x, n.make<MulOp>(type, n.make<DivOp>(type, x, y), y));
  if (signOfDividend || type.isUnsignedInteger())
    return n.setOutput(0, rest);
  Value zero = n.scalar(0, type);
  Value signsAgree = n.make<EqualOp>(boolean, n.make<LessOp>(boolean, rest, zero), n.make<LessOp>(boolean, y, zero));
  Value fine = n.make<OrOp>(boolean, n.make<EqualOp>(boolean, rest, zero), signsAgree);
  n.setOutput(0, n.make<WhereOp>(type, fine, rest, n.make<AddOp>(type, rest, y)));
}

static void castTo(NodeReader &n, Type type) {
  n.ignore("saturate");   // these two concern 8-bit floats only, which are refused
  n.ignore("round_mode");
  n.setOutput(0, n.cast(n.input(0), type));
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
  std::optional<float> low = n.findFloat("min"), high = n.findFloat("max");
  clip(n, low ? n.scalar(*low, type) : Value(), high ? n.scalar(*high, type) : Value());
}

void addElementwiseOps(OpTable &t) {
  unary<AbsOp>(t, "Abs", 6);
  unary<CeilOp>(t, "Ceil", 6);
  unary<ErfOp>(t, "Erf", 9);
  unary<ExpOp>(t, "Exp", 6);
  unary<FloorOp>(t, "Floor", 6);
  unary<LogOp>(t, "Log", 6);
  unary<NegOp>(t, "Neg", 6);
  unary<NotOp>(t, "Not", 1);
  unary<ReciprocalOp>(t, "Reciprocal", 6);
  unary<ReluOp>(t, "Relu", 6);
  unary<SigmoidOp>(t, "Sigmoid", 6);
  unary<SqrtOp>(t, "Sqrt", 6);
  unary<TanhOp>(t, "Tanh", 6);

  binary<AddOp>(t, "Add", 6);
  binary<AndOp>(t, "And", 1);
  binary<DivOp>(t, "Div", 6);
  binary<MulOp>(t, "Mul", 6);
  binary<OrOp>(t, "Or", 1);
  binary<SubOp>(t, "Sub", 6);
  binaryBy(t, "Pow", 1, power);
  binaryBy(t, "Xor", 1, exclusiveOr);

  compare<EqualOp>(t, "Equal", 1);
  compare<GreaterOp>(t, "Greater", 1);
  compare<GreaterOrEqualOp>(t, "GreaterOrEqual", 12);
  compare<LessOp>(t, "Less", 1);
  compare<LessOrEqualOp>(t, "LessOrEqual", 12);

  variadic<MaxOp>(t, "Max", 6);
  variadic<MinOp>(t, "Min", 6);
  variadic<AddOp>(t, "Sum", 6);
  t.add("Mean", 6, mean);

  t.add("IsInf", 10, isInf);
  t.add("IsNaN", 9, isNan);
  t.add("Mod", 10, modulo);
  t.add("Where", 9, [](NodeReader &n) { n.setOutput(0, n.make<WhereOp>(n.elementType(1), n.input(0), n.input(1), n.input(2))); });
  t.add("Cast", 6, [](NodeReader &n) { castTo(n, n.getElementType("to")); });
  t.add("CastLike", 15, [](NodeReader &n) { castTo(n, n.elementType(1)); });
  t.add("Clip", 6, clipByAttributes);
  t.add("Clip", 11, [](NodeReader &n) { clip(n, n.optionalInput(1), n.optionalInput(2)); });

  // Older versions of operators that got a function body later.
  t.addBody("LeakyRelu", 6, 16);
  t.addBody("PRelu", 7, 16);
}

} // namespace dlc
