// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/ScalarMath.h"
#include "dlc/IR/KernelOps.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>

using namespace mlir;

namespace dlc {

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static Scalar number(double value, const Scalar &like) { return ScalarBuilder(like.b(), like.getLoc()).constant(value, like); }
static Scalar convert(const Scalar &x, Type to) { return ScalarBuilder(x.b(), x.getLoc()).cast(x, to); }

template <typename MathOp> static Scalar unary(const Scalar &x) { return x.with(MathOp::create(x.b(), x.getLoc(), x.getValue())); }

template <typename SignedOp, typename UnsignedOp> static Scalar integers(const Scalar &x, const Scalar &y) {
  OpBuilder &b = x.b();
  if (x.isUnsigned())
    return x.with(UnsignedOp::create(b, x.getLoc(), x.getValue(), y.getValue()));
  return x.with(SignedOp::create(b, x.getLoc(), x.getValue(), y.getValue()));
}

/// The number that a constant is.
static std::optional<double> constantOf(const Scalar &x) {
  auto constant = x.getValue().getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return std::nullopt;
  if (auto value = dyn_cast<FloatAttr>(constant.getValue()))
    return value.getValue().convertToDouble();
  if (auto value = dyn_cast<IntegerAttr>(constant.getValue()))
    return value.getValue().roundToDouble(/*isSigned=*/!x.isUnsigned());
  return std::nullopt;
}

/// The run fails where `condition` holds.
static void failDivisionIf(const Scalar &condition) {
  auto test = scf::IfOp::create(condition.b(), condition.getLoc(), condition.getValue(), /*withElseRegion=*/false);
  OpBuilder then = test.getThenBodyBuilder();
  RaiseOp::create(then, condition.getLoc(), DLCRT_KERNEL_DIVISION_BY_ZERO);
}

Scalar widened(const Scalar &x) {
  bool isNarrow = x.isFloat() && x.getType().getIntOrFloatBitWidth() < 32;
  return isNarrow ? convert(x, x.b().getF32Type()) : x;
}

//===----------------------------------------------------------------------===//
// Division of integers. The processor traps on a divisor of 0 and on MIN / -1, and for LLVM both mean anything. A constant
// divisor needs no care.
//===----------------------------------------------------------------------===//

Scalar operator/(const Scalar &x, const Scalar &y) {
  if (x.isFloat())
    return x.with(arith::DivFOp::create(x.b(), x.getLoc(), x.getValue(), y.getValue()));
  Scalar zero = number(0, x), one = number(1, x);
  std::optional<double> divisor = constantOf(y);
  if (divisor == -1 && !x.isUnsigned())
    return -x;
  if (divisor && *divisor != 0)
    return integers<arith::DivSIOp, arith::DivUIOp>(x, y);
  Scalar byZero = y == zero;
  failDivisionIf(byZero);
  if (x.isUnsigned())
    return integers<arith::DivSIOp, arith::DivUIOp>(x, select(byZero, one, y));
  Scalar negates = y == number(-1, x);
  Scalar quotient = integers<arith::DivSIOp, arith::DivUIOp>(x, select(byZero | negates, one, y));
  return select(negates, -x, quotient);
}

Scalar remainder(const Scalar &x, const Scalar &y) {
  if (x.isFloat())
    return x.with(arith::RemFOp::create(x.b(), x.getLoc(), x.getValue(), y.getValue()));
  Scalar one = number(1, x);
  std::optional<double> divisor = constantOf(y);
  if (divisor == -1 && !x.isUnsigned())
    return number(0, x);
  if (divisor && *divisor != 0)
    return integers<arith::RemSIOp, arith::RemUIOp>(x, y);
  Scalar byZero = y == number(0, x);
  failDivisionIf(byZero);
  Scalar isTrivial = x.isUnsigned() ? byZero : byZero | (y == number(-1, x)); // x % 1 is 0, as x % -1
  return integers<arith::RemSIOp, arith::RemUIOp>(x, select(isTrivial, one, y));
}

Scalar modulo(const Scalar &x, const Scalar &y) {
  Scalar rest = remainder(x, y);
  if (x.isFloat()) { // a 0 has y's sign too
    Scalar zero = number(0, x), signedZero = x.with(math::CopySignOp::create(x.b(), x.getLoc(), zero.getValue(), y.getValue()));
    Scalar signsDiffer = (rest < zero) ^ (y < zero);
    return select(rest == zero, signedZero, select(signsDiffer, rest + y, rest));
  }
  if (x.isUnsigned())
    return rest;
  Scalar zero = number(0, x);
  Scalar signsDiffer = (rest ^ y) < zero;
  return select(signsDiffer & !(rest == zero), rest + y, rest);
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

Scalar operator^(const Scalar &x, const Scalar &y) { return x.with(arith::XOrIOp::create(x.b(), x.getLoc(), x.getValue(), y.getValue())); }

/// Whether 0 <= y < bits.
static Scalar isShift(const Scalar &y) {
  Scalar bits = number(y.getType().getIntOrFloatBitWidth(), y);
  return y.asBool(arith::CmpIOp::create(y.b(), y.getLoc(), arith::CmpIPredicate::ult, y.getValue(), bits.getValue()));
}

Scalar shiftLeft(const Scalar &x, const Scalar &y) {
  Scalar zero = number(0, x), inside = isShift(y), shift = select(inside, y, zero);
  return select(inside, integers<arith::ShLIOp, arith::ShLIOp>(x, shift), zero);
}

Scalar shiftRight(const Scalar &x, const Scalar &y) {
  Scalar last = number(x.getType().getIntOrFloatBitWidth() - 1, x), inside = isShift(y);
  Scalar shifted = integers<arith::ShRSIOp, arith::ShRUIOp>(x, select(inside, y, last));
  return x.isUnsigned() ? select(inside, shifted, number(0, x)) : shifted;
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// x^exponent by repeated squaring, in x's type.
static Scalar integerPower(const Scalar &x, uint64_t exponent) {
  std::optional<Scalar> result;
  for (Scalar square = x; exponent; square = square * square) {
    if (exponent & 1)
      result = result ? *result * square : square;
    exponent >>= 1;
    if (!exponent)
      break;
  }
  return result ? *result : number(1, x);
}

/// Integers, an exponent known at run time. A negative one leaves 0 of all bases but 1 and -1; 0 has no such power.
static Scalar integerPower(const Scalar &x, const Scalar &y) {
  OpBuilder &b = x.b();
  Location loc = x.getLoc();
  Type wide = b.getI64Type();
  Scalar exponent = convert(y, wide), one = number(1, x), none = number(0, exponent);
  std::optional<Scalar> isNegative;
  Scalar count = exponent;
  if (!y.isUnsigned()) {
    isNegative = exponent < none;
    count = select(*isNegative, none, exponent);
  }
  auto before = [&](OpBuilder &inner, Location, ValueRange state) {
    Value left = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ne, state[2], none.getValue());
    scf::ConditionOp::create(inner, loc, left, state);
  };
  auto after = [&](OpBuilder &inner, Location, ValueRange state) {
    Value isOdd = arith::TruncIOp::create(inner, loc, inner.getI1Type(), state[2]);
    Value product = arith::MulIOp::create(inner, loc, state[0], state[1]);
    Value result = arith::SelectOp::create(inner, loc, isOdd, product, state[0]);
    Value square = arith::MulIOp::create(inner, loc, state[1], state[1]);
    Value bit = arith::ConstantOp::create(inner, loc, inner.getI64IntegerAttr(1));
    Value rest = arith::ShRUIOp::create(inner, loc, state[2], bit);
    scf::YieldOp::create(inner, loc, ValueRange{result, square, rest});
  };
  SmallVector<Value> state{one.getValue(), x.getValue(), count.getValue()};
  auto loop = scf::WhileOp::create(b, loc, TypeRange(ValueRange(state)), state, before, after);
  Scalar power = x.with(loop.getResult(0));
  if (!isNegative)
    return power;
  Scalar zero = number(0, x);
  failDivisionIf(*isNegative & (x == zero));
  Scalar inverse = select(x == one, one, zero);
  if (!x.isUnsigned()) {
    Scalar isOdd = exponent.asBool(arith::TruncIOp::create(b, loc, b.getI1Type(), exponent.getValue()));
    Scalar minusOne = number(-1, x);
    inverse = select(x == minusOne, select(isOdd, minusOne, one), inverse);
  }
  return select(*isNegative, inverse, power);
}

/// Powers of floats that are a few instructions, and as accurate as the function of the library.
static std::optional<Scalar> simplePower(const Scalar &x, double exponent) {
  if (exponent == 0)
    return number(1, x);
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return x * x;
  if (exponent == 3 && x.getType().getIntOrFloatBitWidth() >= 32)
    return x * x * x;
  if (exponent == -1)
    return number(1, x) / x;
  if (std::abs(exponent) == 0.5) { // unlike its square root, this power of -0 is 0, and that of -infinity is infinity
    Scalar infinity = number(INFINITY, x);
    Scalar root = select(x == -infinity, infinity, abs(sqrt(x)));
    return exponent > 0 ? root : number(1, x) / root;
  }
  return std::nullopt;
}

Scalar pow(const Scalar &x, const Scalar &y) {
  OpBuilder &b = x.b();
  std::optional<double> constant = constantOf(y);
  bool isWhole = constant && std::floor(*constant) == *constant && std::abs(*constant) < 0x1p53;
  if (!x.isFloat()) {
    if (isWhole && *constant >= 0)
      return integerPower(x, static_cast<uint64_t>(*constant));
    if (!y.isFloat())
      return integerPower(x, y);
  } else if (constant) {
    if (std::optional<Scalar> simple = simplePower(x, *constant))
      return *simple;
  }
  // In f32 where that holds both operands.
  auto holds = [&](const Scalar &operand) { return operand.isFloat() ? !operand.getType().isF64() : operand.getType().getIntOrFloatBitWidth() <= 16; };
  bool isNarrow = x.isFloat() && holds(x) && (holds(y) || (isWhole && std::abs(*constant) <= 0x1p24));
  Type wide = isNarrow ? Type(b.getF32Type()) : b.getF64Type();
  Scalar base = convert(x, wide), exponent = convert(y, wide);
  Scalar power = base.with(math::PowFOp::create(b, x.getLoc(), base.getValue(), exponent.getValue()));
  return convert(power, x.getType());
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Scalar sign(const Scalar &x) {
  Scalar zero = number(0, x);
  Scalar notPositive = x.isUnsigned() ? x : select(x < zero, number(-1, x), x);
  return select(x > zero, number(1, x), notPositive);
}

Scalar erf(const Scalar &x) {
  if (!x.isFloat())
    return convert(erf(convert(x, x.b().getF64Type())), x.getType());
  return unary<math::ErfOp>(x);
}

Scalar roundEven(const Scalar &x) { return unary<math::RoundEvenOp>(x); }
Scalar acos(const Scalar &x) { return unary<math::AcosOp>(x); }
Scalar acosh(const Scalar &x) { return unary<math::AcoshOp>(x); }
Scalar asin(const Scalar &x) { return unary<math::AsinOp>(x); }
Scalar asinh(const Scalar &x) { return unary<math::AsinhOp>(x); }
Scalar atan(const Scalar &x) { return unary<math::AtanOp>(x); }
Scalar atanh(const Scalar &x) { return unary<math::AtanhOp>(x); }
Scalar cos(const Scalar &x) { return unary<math::CosOp>(x); }
Scalar cosh(const Scalar &x) { return unary<math::CoshOp>(x); }
Scalar expm1(const Scalar &x) { return unary<math::ExpM1Op>(x); }
Scalar sin(const Scalar &x) { return unary<math::SinOp>(x); }
Scalar sinh(const Scalar &x) { return unary<math::SinhOp>(x); }
Scalar tan(const Scalar &x) { return unary<math::TanOp>(x); }

Scalar gelu(const Scalar &x) { return number(0.5, x) * x * (number(1, x) + erf(x * number(M_SQRT1_2, x))); }

Scalar geluTanh(const Scalar &x) {
  Scalar inner = number(0.5 * M_2_SQRTPI * M_SQRT2, x) * (x + number(0.044715, x) * x * x * x);
  return number(0.5, x) * x * (number(1, x) + tanh(inner));
}

Scalar softplus(const Scalar &x) { return max(x, number(0, x)) + log1p(exp(-abs(x))); }

Scalar shrink(const Scalar &x, double lambda, double bias) {
  Scalar compared = x;
  if (!x.isFloat()) {
    compared = convert(x, x.b().getF64Type());
    if (std::floor(bias) != bias)
      return convert(shrink(compared, lambda, bias), x.getType());
  }
  Scalar offset = number(bias, x), above = compared > number(lambda, compared), below = compared < number(-lambda, compared);
  return select(above, x - offset, select(below, x + offset, number(0, x)));
}

} // namespace dlc
