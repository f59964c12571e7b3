// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The value of one element of a small tensor, as far as it is known while shapes are inferred: a dimension expression, for float
// tensors divided by a number. It is what carries `Shape -> Cast -> Mul 0.5 -> Floor -> Cast` to a dim.
//
// The functions say what the operators of tensors say (dlc/IR/Scalar.h), so that an element-wise op states both in one line
// of its .td. They give the null value where an operand is null and where the result is not known to be exact: float values
// are carried as long as the arithmetic of floats does not round dims below 2^24 / numerator. Integers are taken not to overflow.

#ifndef DLC_IR_DIMVALUE_H
#define DLC_IR_DIMVALUE_H

#include "dlc/IR/DimExpr.h"

namespace dlc {

/// numerator / denominator. Integers and bools (0 and 1) have the denominator 1.
struct DimValue {
  DimExpr numerator;
  int64_t denominator = 1;
  mlir::Type type; // of the tensor's elements

  explicit operator bool() const { return static_cast<bool>(numerator); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type); }
  bool isBool() const { return type.isInteger(1); }
  /// A number of this value's type; unknown as this value, where that is.
  DimValue constant(int64_t value) const { return numerator ? DimValue{constantDim(type.getContext(), value), 1, type} : DimValue(); }
};

/// The types whose elements are followed: bool, int32, int64, float and double.
bool isTypeOfDimValues(mlir::Type elementType);
/// Null where the number is no short fraction of a power of two.
DimValue dimValueOf(double number, mlir::Type type);

DimValue operator+(DimValue x, DimValue y);
DimValue operator-(DimValue x, DimValue y);
DimValue operator*(DimValue x, DimValue y);
/// Integers truncate.
DimValue operator/(DimValue x, DimValue y);
DimValue operator-(DimValue x);
/// All bits, which in a bool are one.
DimValue operator~(DimValue x);
DimValue operator&(DimValue x, DimValue y);
DimValue operator|(DimValue x, DimValue y);
DimValue operator^(DimValue x, DimValue y);
DimValue operator==(DimValue x, DimValue y);
DimValue operator<(DimValue x, DimValue y);
DimValue operator<=(DimValue x, DimValue y);
DimValue operator>(DimValue x, DimValue y);
DimValue operator>=(DimValue x, DimValue y);
DimValue select(DimValue condition, DimValue x, DimValue y);
DimValue min(DimValue x, DimValue y);
DimValue max(DimValue x, DimValue y);
DimValue abs(DimValue x);
DimValue sign(DimValue x);
DimValue floor(DimValue x);
DimValue ceil(DimValue x);
DimValue roundEven(DimValue x);
/// The remainder with the sign of the dividend, and with that of the divisor.
DimValue remainder(DimValue x, DimValue y);
DimValue modulo(DimValue x, DimValue y);
DimValue pow(DimValue x, DimValue y);
/// As ONNX Cast.
DimValue convert(DimValue x, mlir::Type to);

} // namespace dlc

#endif
