// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// One element of a tensor while code for it is being written: a value with the sign of its type and overloaded operators, so
// that an element-wise op is one line (`max(x, b.constant(0, x)) + log1p(exp(-abs(x)))`).

#ifndef DLC_IR_SCALAR_H
#define DLC_IR_SCALAR_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace dlc {

/// To which power of two a conversion to float8e8m0 rounds.
enum class PowerRounding { Up, Down, Nearest };
/// The rounding with this name in ONNX.
std::optional<PowerRounding> parsePowerRounding(llvm::StringRef name);

/// What a conversion does where the type does not hold the value.
struct CastRule {
  bool saturate = true; // to floats of 8 bits: the nearest finite number instead of infinity or NaN
  PowerRounding rounding = PowerRounding::Up;
};

/// Elements compute in MLIR's signless types; `type` is the tensor's own element type (f32, i64, ui8, i1 = bool ...). Elements of
/// 4 and 2 bits and floats of 8 bits are what memory holds: i8 (storageElementType).
class Scalar {
public:
  Scalar() = default;
  Scalar(mlir::OpBuilder *builder, mlir::Location loc, mlir::Value value, mlir::Type type)
      : builder(builder), loc(loc), value(value), type(type) {}

  mlir::Value getValue() const { return value; }
  mlir::Type getType() const { return type; }
  mlir::OpBuilder &b() const { return *builder; }
  mlir::Location getLoc() const { return *loc; }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type); }
  bool isUnsigned() const { return type.isUnsignedInteger() || isBool(); }
  bool isBool() const { return type.isInteger(1); }
  /// The same type, another value.
  Scalar with(mlir::Value v) const { return Scalar(builder, *loc, v, type); }
  Scalar asBool(mlir::Value v) const { return Scalar(builder, *loc, v, builder->getI1Type()); }

private:
  mlir::OpBuilder *builder = nullptr;
  std::optional<mlir::Location> loc;
  mlir::Value value;
  mlir::Type type;
};

class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}
  Scalar wrap(mlir::Value value, mlir::Type elementType) { return Scalar(&builder, loc, value, elementType); }
  /// A constant of `like`'s type.
  Scalar constant(double value, const Scalar &like);
  /// The one element that a splat repeats.
  Scalar constant(mlir::DenseElementsAttr splat);
  /// An element of a tensor, given what memory holds, and back.
  Scalar load(mlir::Value stored, mlir::Type elementType);
  mlir::Value store(const Scalar &x);
  /// Conversion as ONNX Cast: floats truncate towards zero, everything but 0 is true; see Cast.cpp.
  Scalar cast(const Scalar &x, mlir::Type to, CastRule rule = {});
  /// The same bits as another type of the same width.
  Scalar bitCast(const Scalar &x, mlir::Type to);
  /// Where the element stands along an axis of the result, as an int64. Inside a linalg.generic only.
  Scalar index(int64_t axis);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

// Arithmetic in the declared type. Integer division truncates, and a run that divides by 0 fails; `!` is of all bits, which in a
// bool are one; min and max give NaN where an operand is NaN; pow has the type of x, whatever the type of y.
Scalar operator+(const Scalar &x, const Scalar &y);
Scalar operator-(const Scalar &x, const Scalar &y);
Scalar operator*(const Scalar &x, const Scalar &y);
Scalar operator/(const Scalar &x, const Scalar &y);
Scalar operator-(const Scalar &x);
Scalar operator!(const Scalar &x);
Scalar operator&(const Scalar &x, const Scalar &y);
Scalar operator|(const Scalar &x, const Scalar &y);
Scalar operator==(const Scalar &x, const Scalar &y);
Scalar operator<(const Scalar &x, const Scalar &y);
Scalar operator<=(const Scalar &x, const Scalar &y);
Scalar operator>(const Scalar &x, const Scalar &y);
Scalar operator>=(const Scalar &x, const Scalar &y);
Scalar select(const Scalar &condition, const Scalar &x, const Scalar &y);
Scalar min(const Scalar &x, const Scalar &y);
Scalar max(const Scalar &x, const Scalar &y);
Scalar pow(const Scalar &x, const Scalar &y);

// Unary functions; those of one kind in a list, because each is one op of the math dialect.
Scalar abs(const Scalar &x);
Scalar ceil(const Scalar &x);
Scalar erf(const Scalar &x);
Scalar exp(const Scalar &x);
Scalar floor(const Scalar &x);
Scalar log(const Scalar &x);
Scalar log1p(const Scalar &x);
Scalar sigmoid(const Scalar &x);
Scalar sqrt(const Scalar &x);
Scalar tanh(const Scalar &x);

} // namespace dlc

#endif
