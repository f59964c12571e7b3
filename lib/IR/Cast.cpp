// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Conversions between element types, as the tables of ONNX Cast have them. Floats of at most 8 bits are converted by integer code
// without branches, so that it vectorises, and is the same on every backend.
//
// What ONNX leaves open: a float outside of an integer type's range is converted to 32 bits (64 for uint32, int64 and uint64), with
// the smallest number for what does not fit those either, and loses the upper bits. A NaN becomes 0 in float4e2m1, which has none.

#include "dlc/IR/DimExpr.h"
#include "dlc/IR/Scalar.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace dlc {

std::optional<PowerRounding> parsePowerRounding(StringRef name) {
  return llvm::StringSwitch<std::optional<PowerRounding>>(name)
      .Case("up", PowerRounding::Up)
      .Case("down", PowerRounding::Down)
      .Case("nearest", PowerRounding::Nearest)
      .Default(std::nullopt);
}

namespace {

/// Integer code in one type.
class Bits {
public:
  Bits(OpBuilder &builder, Location loc, unsigned width) : builder(builder), loc(loc), type(builder.getIntegerType(width)) {}

  Value number(uint64_t value) const {
    llvm::APInt bits(type.getWidth(), value, /*isSigned=*/false, /*implicitTrunc=*/true);
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, bits));
  }
  Value add(Value x, Value y) const { return arith::AddIOp::create(builder, loc, x, y); }
  Value sub(Value x, Value y) const { return arith::SubIOp::create(builder, loc, x, y); }
  Value both(Value x, Value y) const { return arith::AndIOp::create(builder, loc, x, y); }
  Value either(Value x, Value y) const { return arith::OrIOp::create(builder, loc, x, y); }
  Value differ(Value x, Value y) const { return arith::XOrIOp::create(builder, loc, x, y); }
  Value left(Value x, Value by) const { return arith::ShLIOp::create(builder, loc, x, by); }
  Value right(Value x, Value by) const { return arith::ShRUIOp::create(builder, loc, x, by); }
  Value signedRight(Value x, Value by) const { return arith::ShRSIOp::create(builder, loc, x, by); }
  Value max(Value x, Value y) const { return arith::MaxSIOp::create(builder, loc, x, y); }
  Value min(Value x, Value y) const { return arith::MinSIOp::create(builder, loc, x, y); }
  Value select(Value condition, Value x, Value y) const { return arith::SelectOp::create(builder, loc, condition, x, y); }
  Value equal(Value x, Value y) const { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, x, y); }
  Value greater(Value x, Value y) const { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, x, y); }

  Value add(Value x, uint64_t y) const { return add(x, number(y)); }
  Value sub(Value x, uint64_t y) const { return sub(x, number(y)); }
  Value both(Value x, uint64_t y) const { return both(x, number(y)); }
  Value either(Value x, uint64_t y) const { return either(x, number(y)); }
  Value left(Value x, unsigned by) const { return left(x, number(by)); }
  Value right(Value x, unsigned by) const { return right(x, number(by)); }
  Value signedRight(Value x, unsigned by) const { return signedRight(x, number(by)); }
  Value equal(Value x, uint64_t y) const { return equal(x, number(y)); }
  Value greater(Value x, uint64_t y) const { return greater(x, number(y)); }

  /// A value of another integer type in this one; wider by zeros.
  Value of(Value x) const {
    unsigned width = cast<IntegerType>(x.getType()).getWidth();
    if (width == type.getWidth())
      return x;
    return width < type.getWidth() ? Value(arith::ExtUIOp::create(builder, loc, type, x)) : Value(arith::TruncIOp::create(builder, loc, type, x));
  }
  Value ofFloat(Value x) const { return arith::BitcastOp::create(builder, loc, type, x); }
  Value asFloat(Value x) const {
    return arith::BitcastOp::create(builder, loc, type.getWidth() == 64 ? builder.getF64Type() : builder.getF32Type(), x);
  }

private:
  OpBuilder &builder;
  Location loc;
  IntegerType type;
};

/// How the codes of a small float type are made up: sign, exponent, mantissa; subnormals where the exponent is 0. All codes here are
/// without the sign.
struct SmallFormat {
  unsigned exponentBits, mantissaBits;
  int bias;
  unsigned largest;    // the largest finite number
  unsigned overflow;   // what lies above it
  unsigned nan;        // the NaN that conversions make
  bool oneZero;        // the code of -0 is the NaN
  bool hasInfinity;    // at the largest exponent are infinity and, above it, NaNs
};

/// The format of bf16 and any float type of at most 8 bits but float8e8m0, which has neither sign nor mantissa.
SmallFormat formatOf(Type type) {
  if (type.isBF16())
    return {8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false, true};
  if (isa<Float8E4M3FNType>(type))
    return {4, 3, 7, 0x7e, 0x7f, 0x7f, false, false};
  if (isa<Float8E4M3FNUZType>(type))
    return {4, 3, 8, 0x7f, 0x80, 0x80, true, false};
  if (isa<Float8E5M2Type>(type))
    return {5, 2, 15, 0x7b, 0x7c, 0x7e, false, true};
  if (isa<Float8E5M2FNUZType>(type))
    return {5, 2, 16, 0x7f, 0x80, 0x80, true, false};
  assert(isa<Float4E2M1FNType>(type) && "no other type is converted here");
  return {2, 1, 1, 7, 7, 8, false, false};
}

/// An f32 or f64 as the code of a float of fewer bits, rounded once, to nearest even.
Value encode(OpBuilder &b, Location loc, Value x, Type to, bool saturate) {
  bool isDouble = x.getType().isF64();
  unsigned width = isDouble ? 64 : 32, mantissaBits = isDouble ? 52 : 23;
  int bias = isDouble ? 1023 : 127;
  SmallFormat format = formatOf(to);
  saturate |= format.overflow == format.largest;
  Bits bits(b, loc, width);
  uint64_t hidden = uint64_t(1) << mantissaBits;
  Value code = bits.ofFloat(x), sign = bits.right(code, width - 1), magnitude = bits.both(code, (uint64_t(1) << (width - 1)) - 1);
  Value exponent = bits.right(magnitude, mantissaBits);
  // Subnormals of x lie far below those of `to`: that the hidden bit is wrong for them makes no difference.
  Value significand = bits.either(bits.both(magnitude, hidden - 1), hidden);
  // The result's last bit: fixed from the smallest normal number down, which makes subnormals.
  Value above = bits.sub(exponent, uint64_t(bias - format.bias + 1)), zero = bits.number(0);
  Value below = bits.max(bits.sub(zero, above), zero);
  Value shift = bits.min(bits.add(below, mantissaBits - format.mantissaBits), bits.number(mantissaBits + 2));
  Value half = bits.left(bits.number(1), bits.sub(shift, uint64_t(1)));
  Value odd = bits.both(bits.right(significand, shift), uint64_t(1));
  Value rounded = bits.right(bits.add(significand, bits.add(bits.sub(half, uint64_t(1)), odd)), shift);
  // The hidden bit adds 1 to the exponent, and so does a carry out of the mantissa.
  Value result = bits.add(bits.left(bits.max(above, zero), format.mantissaBits), rounded);
  result = bits.select(bits.greater(result, uint64_t(format.largest)), bits.number(saturate ? format.largest : format.overflow), result);
  uint64_t infinity = ((uint64_t(1) << (width - mantissaBits - 1)) - 1) << mantissaBits;
  result = bits.select(bits.greater(magnitude, infinity), bits.number(format.nan), result);
  Value signBit = bits.left(sign, format.exponentBits + format.mantissaBits);
  if (format.oneZero) {
    Value hasNoSign = bits.greater(bits.both(bits.sub(result, uint64_t(1)), uint64_t(0xff)), uint64_t(0x7e)); // 0 or the NaN
    signBit = bits.select(hasNoSign, zero, signBit);
  }
  return Bits(b, loc, std::max(to.getIntOrFloatBitWidth(), 8u)).of(bits.differ(result, signBit));
}

/// A small float as an f32, exactly.
Value decode(OpBuilder &b, Location loc, Value x, Type from) {
  Bits bits(b, loc, 32);
  Value code = bits.of(x);
  if (isa<Float8E8M0FNUType>(from)) { // 2^(code - 127); the first is a subnormal f32
    Value result = bits.left(code, 23);
    result = bits.select(bits.equal(code, uint64_t(0)), bits.number(0x00400000), result);
    return bits.asFloat(bits.select(bits.equal(code, uint64_t(0xff)), bits.number(0x7fc00000), result));
  }
  SmallFormat format = formatOf(from);
  unsigned magnitudeBits = format.exponentBits + format.mantissaBits, up = 23 - format.mantissaBits;
  Value magnitude = bits.both(code, (uint64_t(1) << magnitudeBits) - 1);
  Value mantissa = bits.both(magnitude, (uint64_t(1) << format.mantissaBits) - 1);
  Value normal = bits.add(bits.left(magnitude, up), uint64_t(127 - format.bias) << 23);
  Value count = arith::UIToFPOp::create(b, loc, b.getF32Type(), mantissa);
  Value unit = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(std::ldexp(1.0f, 1 - format.bias - int(format.mantissaBits))));
  Value subnormal = bits.ofFloat(arith::MulFOp::create(b, loc, count, unit));
  Value isNormal = bits.greater(magnitude, (uint64_t(1) << format.mantissaBits) - 1);
  Value result = bits.select(isNormal, normal, subnormal);
  if (format.hasInfinity)
    result = bits.select(bits.greater(magnitude, uint64_t(format.largest)), bits.either(bits.left(mantissa, up), uint64_t(0x7f800000)), result);
  else if (format.nan >> magnitudeBits == 0)
    result = bits.select(bits.greater(magnitude, uint64_t(format.largest)), bits.number(0x7fc00000), result);
  else if (format.oneZero)
    result = bits.select(bits.equal(code, uint64_t(format.nan)), bits.number(0x7fc00000), result);
  Value sign = bits.left(bits.right(code, magnitudeBits), 31u);
  return bits.asFloat(bits.either(result, sign));
}

/// An f64 as float8e8m0. The sign, of which ONNX says nothing, is dropped.
Value encodePower(OpBuilder &b, Location loc, Value x, CastRule rule) {
  Bits bits(b, loc, 64);
  constexpr uint64_t kHidden = uint64_t(1) << 52, kInfinity = uint64_t(0x7ff) << 52;
  constexpr unsigned kLargest = 254, kNan = 255;
  Value magnitude = bits.both(bits.ofFloat(x), ~(uint64_t(1) << 63));
  Value exponent = bits.sub(bits.right(magnitude, 52u), uint64_t(1023 - 127)), zero = bits.number(0);
  // Adding this to the mantissa carries into the exponent where the number is rounded up.
  uint64_t carry = rule.rounding == PowerRounding::Up ? kHidden - 1 : rule.rounding == PowerRounding::Nearest ? kHidden / 2 : 0;
  Value result = bits.sub(bits.right(bits.add(magnitude, carry), 52u), uint64_t(1023 - 127));
  result = bits.select(bits.greater(zero, exponent), rule.saturate ? zero : bits.number(kNan), result);
  result = bits.select(bits.greater(result, uint64_t(kLargest)), bits.number(rule.saturate ? kLargest : kNan), result);
  result = bits.select(bits.greater(magnitude, kInfinity), bits.number(kNan), result);
  return Bits(b, loc, 8).of(result);
}

/// A float as a signed integer of 32 or 64 bits; the smallest one for what is outside its range, and NaN.
Value truncate(OpBuilder &b, Location loc, Value x, unsigned width) {
  auto type = cast<FloatType>(x.getType());
  auto number = [&](double value) -> Value { return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value)); };
  double limit = std::ldexp(1.0, int(width) - 1);
  Value isInside = arith::AndIOp::create(b, loc, arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, number(-limit)),
                                         arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, number(limit)));
  Value inside = arith::SelectOp::create(b, loc, isInside, x, number(0));
  Bits bits(b, loc, width);
  return bits.select(isInside, arith::FPToSIOp::create(b, loc, b.getIntegerType(width), inside), bits.number(uint64_t(1) << (width - 1)));
}

/// The low bits of an integer as an element of `to`, in the form in which elements are held.
Value narrow(OpBuilder &b, Location loc, Value x, IntegerType to) {
  Bits bits(b, loc, std::max(to.getWidth(), 8u));
  x = bits.of(x);
  if (to.getWidth() >= 8)
    return x;
  if (to.isUnsigned())
    return bits.both(x, (uint64_t(1) << to.getWidth()) - 1);
  return bits.signedRight(bits.left(x, 8 - to.getWidth()), 8 - to.getWidth());
}

/// An integer as an f64 that a further rounding to few bits treats like the integer itself: what an f64 cannot hold of a large one
/// is kept as one bit that is not 0.
Value toDouble(OpBuilder &b, Location loc, const Scalar &x) {
  Type f64 = b.getF64Type();
  Value v = x.getValue();
  auto convert = [&](Value value, bool isUnsigned) -> Value {
    return isUnsigned ? Value(arith::UIToFPOp::create(b, loc, f64, value)) : Value(arith::SIToFPOp::create(b, loc, f64, value));
  };
  if (x.getType().getIntOrFloatBitWidth() < 64)
    return convert(v, x.isUnsigned());
  Bits bits(b, loc, 64);
  Value negative = x.isUnsigned() ? Value() : arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, v, bits.number(0)).getResult();
  Value magnitude = negative ? bits.select(negative, bits.sub(bits.number(0), v), v) : v;
  Value lost = bits.both(magnitude, uint64_t(0x7ff)), zero = bits.number(0);
  Value kept = bits.either(bits.both(magnitude, ~uint64_t(0x7ff)), bits.select(bits.equal(lost, zero), zero, bits.number(0x800)));
  Value isSmall = bits.equal(bits.right(magnitude, 53u), zero);
  Value result = convert(bits.select(isSmall, magnitude, kept), /*isUnsigned=*/true);
  return negative ? arith::SelectOp::create(b, loc, negative, arith::NegFOp::create(b, loc, result), result).getResult() : result;
}

} // namespace

Scalar ScalarBuilder::load(Value stored, Type elementType) {
  if (elementType.isInteger(1))
    stored = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, stored, Bits(builder, loc, 8).number(0));
  return wrap(stored, elementType);
}

Value ScalarBuilder::store(const Scalar &x) { return x.isBool() ? Bits(builder, loc, 8).of(x.getValue()) : x.getValue(); }

Scalar ScalarBuilder::cast(const Scalar &x, Type to, CastRule rule) {
  Type from = x.getType();
  if (from == to)
    return x;
  Value v = x.getValue();
  Type f32 = builder.getF32Type(), f64 = builder.getF64Type();
  if (isSmallFloat(from))
    return cast(wrap(decode(builder, loc, v, from), f32), to, rule);

  if (isa<Float8E8M0FNUType>(to)) {
    Value wide = !x.isFloat() ? toDouble(builder, loc, x) : from.isF64() ? v : Value(arith::ExtFOp::create(builder, loc, f64, v));
    return wrap(encodePower(builder, loc, wide, rule), to);
  }
  if (isSmallFloat(to)) {
    // Exact in f32, but for integers that are far too large for the result in any case.
    Value wide = from.isF64() ? v : cast(x, f32).getValue();
    return wrap(encode(builder, loc, wide, to, rule.saturate), to);
  }
  if (to.isInteger(1)) {
    if (x.isFloat()) { // a NaN is not 0
      Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(from, 0));
      return wrap(arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, v, zero), to);
    }
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(v.getType()));
    return wrap(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, v, zero), to);
  }
  if (x.isFloat() && isa<FloatType>(to)) {
    unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = to.getIntOrFloatBitWidth();
    if (fromBits == 16 && toBits == 16) // f16 and bf16: neither holds the other
      return wrap(arith::TruncFOp::create(builder, loc, to, arith::ExtFOp::create(builder, loc, f32, v)), to);
    if (fromBits < toBits)
      return wrap(arith::ExtFOp::create(builder, loc, to, v), to);
    return wrap(arith::TruncFOp::create(builder, loc, to, v), to);
  }
  if (x.isFloat()) {
    if (from.getIntOrFloatBitWidth() < 32) // f16 does not hold the limits
      return cast(cast(x, f32), to);
    auto integer = ::mlir::cast<IntegerType>(to);
    bool isLarge = integer.getWidth() == 64 || (integer.getWidth() == 32 && integer.isUnsigned());
    if (!integer.isUnsigned() || integer.getWidth() < 64)
      return wrap(narrow(builder, loc, truncate(builder, loc, v, isLarge ? 64 : 32), integer), to);
    // Below 2^63 the signed conversion is right; from there on subtract and set the top bit.
    Bits bits(builder, loc, 64);
    Value limit = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(from, 0x1p63));
    Value isBig = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, v, limit);
    Value small = arith::SelectOp::create(builder, loc, isBig, arith::SubFOp::create(builder, loc, v, limit), v);
    Value top = bits.select(isBig, bits.number(uint64_t(1) << 63), bits.number(0));
    return wrap(bits.add(truncate(builder, loc, small, 64), top), to);
  }
  if (isa<FloatType>(to)) {
    // An f32 on the way would round first, and LLVM takes it, also when told to go through f64.
    if (to.isBF16() && from.getIntOrFloatBitWidth() >= 32)
      return wrap(arith::BitcastOp::create(builder, loc, to, encode(builder, loc, toDouble(builder, loc, x), to, /*saturate=*/false)), to);
    if (to.getIntOrFloatBitWidth() < 32) // an f32 holds every integer that is finite in the result
      return cast(cast(x, f32), to);
    if (x.isUnsigned())
      return wrap(arith::UIToFPOp::create(builder, loc, to, v), to);
    return wrap(arith::SIToFPOp::create(builder, loc, to, v), to);
  }
  auto integer = ::mlir::cast<IntegerType>(to);
  unsigned fromBits = ::mlir::cast<IntegerType>(v.getType()).getWidth(), toBits = integer.getWidth();
  if (fromBits < toBits) {
    Type wide = storageElementType(to);
    v = x.isUnsigned() ? Value(arith::ExtUIOp::create(builder, loc, wide, v)) : Value(arith::ExtSIOp::create(builder, loc, wide, v));
    return wrap(v, to);
  }
  return wrap(narrow(builder, loc, v, integer), to);
}

Scalar ScalarBuilder::bitCast(const Scalar &x, Type to) {
  Type from = x.getType();
  if (from == to)
    return x;
  Value v = store(x);
  if (to.isInteger(1))
    return load(v, to);
  if (isSubByte(to)) {
    unsigned width = to.getIntOrFloatBitWidth();
    return wrap(narrow(builder, loc, v, IntegerType::get(to.getContext(), width, to.isSignlessInteger() ? IntegerType::Signless : IntegerType::Unsigned)), to);
  }
  Type target = storageElementType(to);
  return wrap(v.getType() == target ? v : Value(arith::BitcastOp::create(builder, loc, target, v)), to);
}

} // namespace dlc
