// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element-wise ops: one line each. The last argument is the body of `scalar`, in terms of `dlc::Scalar` (dlc/IR/Scalar.h):
// x, y, z are the operand elements, `b` the builder. Operands broadcast as in ONNX.

#ifndef DLC_IR_ELEMENTWISE
#define DLC_IR_ELEMENTWISE

include "dlc/IR/Dlc.td"

class Dlc_Elementwise<string mnemonic, dag operands, string prologue, string body, list<string> methods = []>
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
      return ::dlc::shapeElementwise(context, ::dlc::}] # resultRule # [{);
    }
    ::dlc::Scalar $cppClass::scalar(::dlc::ScalarBuilder &b, ::llvm::ArrayRef<::dlc::Scalar> operands) {
      }] # prologue # body # [{
    }
  }];
}

class Dlc_Unary<string mnemonic, string body> : Dlc_Elementwise<mnemonic, (ins AnyTensor:$x), [{
      ::dlc::Scalar x = operands[0]; (void)b; }], "return " # body # ";">;
class Dlc_Binary<string mnemonic, string body> : Dlc_Elementwise<mnemonic, (ins AnyTensor:$x, AnyTensor:$y), [{
      ::dlc::Scalar x = operands[0], y = operands[1]; (void)b; }], "return " # body # ";">;
class Dlc_Compare<string mnemonic, string body> : Dlc_Binary<mnemonic, body> { let resultRule = "ElementRule::Bool"; }

// Unary.
def Dlc_AbsOp : Dlc_Unary<"abs", "abs(x)">;
def Dlc_CeilOp : Dlc_Unary<"ceil", "ceil(x)">;
def Dlc_ErfOp : Dlc_Unary<"erf", "erf(x)">;
def Dlc_ExpOp : Dlc_Unary<"exp", "exp(x)">;
def Dlc_FloorOp : Dlc_Unary<"floor", "floor(x)">;
def Dlc_LogOp : Dlc_Unary<"log", "log(x)">;
def Dlc_NegOp : Dlc_Unary<"neg", "-x">;
def Dlc_NotOp : Dlc_Unary<"not", "!x">;
def Dlc_ReciprocalOp : Dlc_Unary<"reciprocal", "b.constant(1, x) / x">;
def Dlc_ReluOp : Dlc_Unary<"relu", "max(x, b.constant(0, x))">;
def Dlc_SigmoidOp : Dlc_Unary<"sigmoid", "sigmoid(x)">;
def Dlc_SqrtOp : Dlc_Unary<"sqrt", "sqrt(x)">;
def Dlc_TanhOp : Dlc_Unary<"tanh", "tanh(x)">;

// Binary.
def Dlc_AddOp : Dlc_Binary<"add", "x + y">;
def Dlc_AndOp : Dlc_Binary<"and", "x & y">;
def Dlc_DivOp : Dlc_Binary<"div", "x / y">;
def Dlc_MaxOp : Dlc_Binary<"max", "max(x, y)">;
def Dlc_MinOp : Dlc_Binary<"min", "min(x, y)">;
def Dlc_MulOp : Dlc_Binary<"mul", "x * y">;
def Dlc_OrOp : Dlc_Binary<"or", "x | y">;
def Dlc_PowOp : Dlc_Binary<"pow", "pow(x, y)"> { let resultRule = "ElementRule::First"; }
def Dlc_SubOp : Dlc_Binary<"sub", "x - y">;

// Comparisons; the result is a bool tensor.
def Dlc_EqualOp : Dlc_Compare<"equal", "x == y">;
def Dlc_GreaterOp : Dlc_Compare<"greater", "x > y">;
def Dlc_GreaterOrEqualOp : Dlc_Compare<"greater_or_equal", "x >= y">;
def Dlc_LessOp : Dlc_Compare<"less", "x < y">;
def Dlc_LessOrEqualOp : Dlc_Compare<"less_or_equal", "x <= y">;

// Others.
def Dlc_WhereOp : Dlc_Elementwise<"where", (ins AnyTensor:$condition, AnyTensor:$x, AnyTensor:$y), "",
    "return select(operands[0], operands[1], operands[2]);"> { let resultRule = "ElementRule::Second"; }

def Dlc_CastOp : Dlc_Elementwise<"cast", (ins AnyTensor:$x, TypeAttr:$to), "", "return b.cast(operands[0], getTo());"> {
  let resultRule = "ElementRule::Attribute";
  let summary = "Converts each element: floats truncate towards zero to integers, everything but 0 is true";
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
