// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element-wise ops: one line each. The text after the mnemonic is the body of `scalar`, in terms of `dlc::Scalar` (dlc/IR/Scalar.h,
// dlc/IR/ScalarMath.h): x and y are the operand elements, `b` the builder. Operands broadcast as in ONNX. An op that computes
// shapes in real models says in a second text what it makes of dims, in terms of `dlc::DimValue` (dlc/IR/DimValue.h).

#ifndef DLC_IR_ELEMENTWISE
#define DLC_IR_ELEMENTWISE

include "dlc/IR/Dlc.td"

class Dlc_Elementwise<string mnemonic, dag operands, string prologue, string body, string dims = "", list<string> methods = []>
    : Dlc_Op<mnemonic, !listconcat(["form", "role", "layout", "scalar"], methods), [Pure]> {
  let arguments = operands;
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  string resultRule = "ElementRule::Same";
  let extraClassDefinition = [{
    ::dlc::Form $cppClass::form() { return ::dlc::Form::Scalar; }
    ::dlc::Role $cppClass::role() { return ::dlc::Role::Elementwise; }
    ::dlc::LayoutNeed $cppClass::layout() { return ::dlc::LayoutNeed::Any; }
    ::llvm::LogicalResult $cppClass::shape(::dlc::ShapeContext &context) {
      return ::dlc::shapeElementwise(context, ::dlc::}] # resultRule # !if(!empty(dims), "", [{,
          [&](::llvm::ArrayRef<::dlc::DimValue> operands) -> ::dlc::DimValue { }] # dims # [{ } }]) # [{);
    }
    ::dlc::Scalar $cppClass::scalar(::dlc::ScalarBuilder &b, ::llvm::ArrayRef<::dlc::Scalar> operands) {
      }] # prologue # body # [{
    }
  }];
}

class Dlc_Unary<string mnemonic, string body, string dims = "", dag attributes = (ins)>
    : Dlc_Elementwise<mnemonic, !con((ins AnyTensor:$x), attributes), "::dlc::Scalar x = operands[0]; (void)b; ", "return " # body # ";",
                      !if(!empty(dims), "", "::dlc::DimValue x = operands[0]; return " # dims # ";")>;
class Dlc_Binary<string mnemonic, string body, string dims = "", dag attributes = (ins)>
    : Dlc_Elementwise<mnemonic, !con((ins AnyTensor:$x, AnyTensor:$y), attributes),
                      "::dlc::Scalar x = operands[0], y = operands[1]; (void)b; ", "return " # body # ";",
                      !if(!empty(dims), "", "::dlc::DimValue x = operands[0], y = operands[1]; return " # dims # ";")>;
class Dlc_Compare<string mnemonic, string body> : Dlc_Binary<mnemonic, body, body> { let resultRule = "ElementRule::Bool"; }
// A formula of several steps: f16 and bf16 compute it in f32 and round once. `number` makes a constant of x's type.
class Dlc_Activation<string mnemonic, string body, dag attributes = (ins)>
    : Dlc_Elementwise<mnemonic, !con((ins AnyTensor:$x), attributes), [{
      ::dlc::Scalar x = widened(operands[0]);
      auto number = [&](double value) { return b.constant(value, x); };
      (void)number; }], "return b.cast(" # body # ", operands[0].getType());">;

// Unary.
def Dlc_AbsOp : Dlc_Unary<"abs", "abs(x)", "abs(x)">;
def Dlc_AcosOp : Dlc_Unary<"acos", "acos(x)">;
def Dlc_AcoshOp : Dlc_Unary<"acosh", "acosh(x)">;
def Dlc_AsinOp : Dlc_Unary<"asin", "asin(x)">;
def Dlc_AsinhOp : Dlc_Unary<"asinh", "asinh(x)">;
def Dlc_AtanOp : Dlc_Unary<"atan", "atan(x)">;
def Dlc_AtanhOp : Dlc_Unary<"atanh", "atanh(x)">;
def Dlc_CeilOp : Dlc_Unary<"ceil", "ceil(x)", "ceil(x)">;
def Dlc_CosOp : Dlc_Unary<"cos", "cos(x)">;
def Dlc_CoshOp : Dlc_Unary<"cosh", "cosh(x)">;
def Dlc_ErfOp : Dlc_Unary<"erf", "erf(x)">;
def Dlc_ExpOp : Dlc_Unary<"exp", "exp(x)">;
def Dlc_FloorOp : Dlc_Unary<"floor", "floor(x)", "floor(x)">;
def Dlc_LogOp : Dlc_Unary<"log", "log(x)">;
def Dlc_NegOp : Dlc_Unary<"neg", "-x", "-x">;
def Dlc_NotOp : Dlc_Unary<"not", "!x", "~x"> { let summary = "Of bools, or of all bits of integers"; }
def Dlc_ReciprocalOp : Dlc_Unary<"reciprocal", "b.constant(1, x) / x", "x.constant(1) / x">;
def Dlc_RoundOp : Dlc_Unary<"round", "roundEven(x)", "roundEven(x)"> { let summary = "To the nearest integer; halves to the even one"; }
def Dlc_SignOp : Dlc_Unary<"sign", "sign(x)", "sign(x)"> { let summary = "-1, 0 or 1; NaN of a NaN"; }
def Dlc_SinOp : Dlc_Unary<"sin", "sin(x)">;
def Dlc_SinhOp : Dlc_Unary<"sinh", "sinh(x)">;
def Dlc_SqrtOp : Dlc_Unary<"sqrt", "sqrt(x)">;
def Dlc_TanOp : Dlc_Unary<"tan", "tan(x)">;
def Dlc_TanhOp : Dlc_Unary<"tanh", "tanh(x)">;

// Activations. The attributes are f32, as in ONNX.
def Dlc_CeluOp : Dlc_Activation<"celu",
    "max(x, number(0)) + min(number(0), number(getAlpha().convertToDouble()) * expm1(x / number(getAlpha().convertToDouble())))", (ins F32Attr:$alpha)>;
def Dlc_EluOp : Dlc_Activation<"elu", "select(x < number(0), number(getAlpha().convertToDouble()) * expm1(x), x)", (ins F32Attr:$alpha)>;
def Dlc_GeluOp : Dlc_Activation<"gelu", "gelu(x)"> { let summary = "x * P(X <= x) for a standard normal X"; }
def Dlc_GeluTanhOp : Dlc_Activation<"gelu_tanh", "geluTanh(x)"> { let summary = "The approximation of gelu by a tanh"; }
def Dlc_HardSigmoidOp : Dlc_Activation<"hard_sigmoid",
    "max(number(0), min(number(1), number(getAlpha().convertToDouble()) * x + number(getBeta().convertToDouble())))", (ins F32Attr:$alpha, F32Attr:$beta)>;
def Dlc_HardSwishOp : Dlc_Activation<"hard_swish", "x * max(number(0), min(number(1), x / number(6) + number(0.5)))">;
def Dlc_LeakyReluOp : Dlc_Activation<"leaky_relu", "select(x < number(0), number(getAlpha().convertToDouble()) * x, x)", (ins F32Attr:$alpha)>;
def Dlc_MishOp : Dlc_Activation<"mish", "x * tanh(softplus(x))">;
def Dlc_PReluOp : Dlc_Binary<"prelu", "select(x < b.constant(0, x), y * x, x)"> { let summary = "y is the slope of negative x"; }
def Dlc_ReluOp : Dlc_Unary<"relu", "max(x, b.constant(0, x))", "max(x, x.constant(0))">;
def Dlc_SeluOp : Dlc_Activation<"selu",
    "number(getGamma().convertToDouble()) * select(x > number(0), x, number(getAlpha().convertToDouble()) * expm1(x))", (ins F32Attr:$alpha, F32Attr:$gamma)>;
def Dlc_ShrinkOp : Dlc_Activation<"shrink", "shrink(x, getLambd().convertToDouble(), getBias().convertToDouble())", (ins F32Attr:$lambd, F32Attr:$bias)>;
def Dlc_SigmoidOp : Dlc_Activation<"sigmoid", "sigmoid(x)">;
def Dlc_SoftplusOp : Dlc_Activation<"softplus", "softplus(x)">;
def Dlc_SoftsignOp : Dlc_Activation<"softsign", "x / (number(1) + abs(x))">;
def Dlc_SwishOp : Dlc_Activation<"swish", "x * sigmoid(number(getAlpha().convertToDouble()) * x)", (ins F32Attr:$alpha)>;
def Dlc_ThresholdedReluOp : Dlc_Activation<"thresholded_relu", "select(x > number(getAlpha().convertToDouble()), x, number(0))", (ins F32Attr:$alpha)>;

// Binary.
def Dlc_AddOp : Dlc_Binary<"add", "x + y", "x + y">;
def Dlc_AndOp : Dlc_Binary<"and", "x & y", "x & y"> { let summary = "Of bools, or of each bit of integers"; }
def Dlc_DivOp : Dlc_Binary<"div", "x / y", "x / y"> { let summary = "Integers truncate; a run that divides one by 0 fails"; }
def Dlc_FmodOp : Dlc_Binary<"fmod", "remainder(x, y)", "remainder(x, y)"> { let summary = "The remainder with the dividend's sign"; }
def Dlc_MaxOp : Dlc_Binary<"max", "max(x, y)", "max(x, y)">;
def Dlc_MinOp : Dlc_Binary<"min", "min(x, y)", "min(x, y)">;
def Dlc_ModOp : Dlc_Binary<"mod", "modulo(x, y)", "modulo(x, y)"> { let summary = "The remainder with the divisor's sign"; }
def Dlc_MulOp : Dlc_Binary<"mul", "x * y", "x * y">;
def Dlc_OrOp : Dlc_Binary<"or", "x | y", "x | y"> { let summary = "Of bools, or of each bit of integers"; }
def Dlc_PowOp : Dlc_Binary<"pow", "pow(x, y)", "pow(x, y)"> {
  let resultRule = "ElementRule::First";
  let summary = "x to the power of y, which may have another type; the result has that of x";
}
def Dlc_ShiftLeftOp : Dlc_Binary<"shift_left", "shiftLeft(x, y)">;
def Dlc_ShiftRightOp : Dlc_Binary<"shift_right", "shiftRight(x, y)"> { let summary = "Signed numbers keep their sign"; }
def Dlc_SubOp : Dlc_Binary<"sub", "x - y", "x - y">;
def Dlc_XorOp : Dlc_Binary<"xor", "x ^ y", "x ^ y"> { let summary = "Of bools, or of each bit of integers"; }

// Comparisons; the result is a bool tensor.
def Dlc_EqualOp : Dlc_Compare<"equal", "x == y">;
def Dlc_GreaterOp : Dlc_Compare<"greater", "x > y">;
def Dlc_GreaterOrEqualOp : Dlc_Compare<"greater_or_equal", "x >= y">;
def Dlc_LessOp : Dlc_Compare<"less", "x < y">;
def Dlc_LessOrEqualOp : Dlc_Compare<"less_or_equal", "x <= y">;

// Others.
def Dlc_WhereOp : Dlc_Elementwise<"where", (ins AnyTensor:$condition, AnyTensor:$x, AnyTensor:$y), "",
    "return select(operands[0], operands[1], operands[2]);", "return select(operands[0], operands[1], operands[2]);"> {
  let resultRule = "ElementRule::Second";
}

def Dlc_CastOp : Dlc_Elementwise<"cast", (ins AnyTensor:$x, TypeAttr:$to, DefaultValuedAttr<BoolAttr, "true">:$saturate,
                                         DefaultValuedStrAttr<StrAttr, "up">:$round_mode), "",
    "return b.cast(operands[0], getTo(), {getSaturate(), parsePowerRounding(getRoundMode()).value_or(PowerRounding::Up)});",
    "return convert(operands[0], getTo());"> {
  let resultRule = "ElementRule::Attribute";
  let summary = "Converts each element: floats truncate towards zero to integers, everything but 0 is true";
  let description = [{
    `saturate` and `round_mode` are ONNX's: the first concerns results that are floats of 8 bits, the second float8e8m0. The
    conversions stand in lib/IR/Cast.cpp.
  }];
}

def Dlc_BitCastOp : Dlc_Elementwise<"bit_cast", (ins AnyTensor:$x, TypeAttr:$to), "", "return b.bitCast(operands[0], getTo());"> {
  let resultRule = "ElementRule::Attribute";
  let summary = "The same bits as another element type of the same width";
}

def Dlc_OrderKeyOp : Dlc_Elementwise<"order_key", (ins AnyTensor:$x, TypeAttr:$to, BoolAttr:$descending), "",
    "return orderKey(b, operands[0], getTo(), getDescending());"> {
  let resultRule = "ElementRule::Attribute";
  let summary = "A signed integer of the element's width (`to`) for each element, in the same order, or the opposite one";
  let description = [{ Equal elements have equal keys: both zeros, and all NaNs, which stand above infinity. }];
}

// Before opset 7, the second operand of an operator is put at given axes of the first one.
def Dlc_AlignAxesOp : Dlc_Op<"align_axes", ["form", "role", "readsData", "expand"], [Pure]> {
  let summary = "x with axes of size 1 behind, so that its first axis is axis `axis` of `like`; expands into a reshape";
  let arguments = (ins AnyTensor:$x, AnyTensor:$like, I64Attr:$axis);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// Has no operand that it reads; what masks, ranges and one-hot rows are made of.
def Dlc_IotaOp : Dlc_Op<"iota", ["form", "role", "layout", "readsData", "scalar"], [Pure]> {
  let summary = "Each element is its index along `axis`, an int64; the result's dims are the values of `shape`";
  let arguments = (ins AnyTensor:$shape, I64Attr:$axis);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// Repeats dimensions of size 1, as Expand in ONNX: the result's dims are the broadcast of x's dims and the values of `shape`.
def Dlc_ExpandOp : Dlc_Op<"expand", ["form", "role", "layout", "readsData", "scalar"], [Pure]> {
  let arguments = (ins AnyTensor:$x, AnyTensor:$shape);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
