// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Polynomials in place of functions. What neural networks use most (exp, tanh, erf, log, ...) stays in f32; the others compute in
// f64 inside, where sums need no second word and f32 neither overflows nor has denormals, and round once. That takes half the
// lanes, but two words of f32 would take more, and would need a true fused multiply-add.
//
// The coefficients are minimax fits made for this file (Remez' exchange, in 45 digits). Each comment says of what, where, and with
// which largest error relative to the function's value.

#include "dlc/Target/ApproximateMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace dlc {
namespace {

constexpr double kLn2 = 0.693147180559945309, kLog2E = 1.44269504088896341, kLog10Of2 = 0.301029995663981195;

/// Builds on f32 and f64 alike: constants take the type of the operand beside them.
class Approximator {
public:
  explicit Approximator(Operation *op) : op(op), b(op->getLoc(), op), shape(dyn_cast<VectorType>(op->getResult(0).getType())) {}

  Value run() {
    Value x = op->getOperand(0);
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](math::ExpOp) { return exp(x); })
        .Case([&](math::Exp2Op) { return exp2(x); })
        .Case([&](math::ExpM1Op) { return expm1(x); })
        .Case([&](math::LogOp) { return log(x); })
        .Case([&](math::Log1pOp) { return log1p(x); })
        .Case([&](math::Log2Op) { return logToBase(x, 1); })
        .Case([&](math::Log10Op) { return logToBase(x, kLog10Of2); })
        .Case([&](math::TanhOp) { return tanh(x); })
        .Case([&](math::ErfOp) { return erf(x); })
        .Case([&](math::SinOp) { return sin(x); })
        .Case([&](math::CosOp) { return cos(x); })
        .Case([&](math::TanOp) { return tan(x); })
        .Case([&](math::AsinOp) { return asin(x); })
        .Case([&](math::AcosOp) { return acos(x); })
        .Case([&](math::AtanOp) { return atan(x); })
        .Case([&](math::Atan2Op) { return atan2(x, op->getOperand(1)); })
        .Case([&](math::SinhOp) { return sinh(x); })
        .Case([&](math::CoshOp) { return cosh(x); })
        .Case([&](math::AsinhOp) { return asinh(x); })
        .Case([&](math::AcoshOp) { return acosh(x); })
        .Case([&](math::AtanhOp) { return atanh(x); })
        .Case([&](math::CbrtOp) { return cbrt(x); })
        .Case([&](math::PowFOp) { return pow(x, op->getOperand(1)); })
        .Default(Value());
  }

private:
  //===--------------------------------------------------------------------===//
  // Building blocks
  //===--------------------------------------------------------------------===//

  Type like(Type element) { return shape ? shape.clone(element) : element; }
  bool isDouble(Value x) { return getElementTypeOrSelf(x).getIntOrFloatBitWidth() == 64; }
  Value constant(TypedAttr value) {
    return arith::ConstantOp::create(b, shape ? TypedAttr(DenseElementsAttr::get(shape.clone(value.getType()), value)) : value);
  }
  Value number(double value, Value like) { return constant(b.getFloatAttr(getElementTypeOrSelf(like), value)); }
  Value integer(int64_t value, Value like) { return constant(b.getIntegerAttr(getElementTypeOrSelf(like), value)); }

  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value add(Value x, double y) { return add(x, number(y, x)); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value sub(double x, Value y) { return sub(number(x, y), y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value mul(Value x, double y) { return mul(x, number(y, x)); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value negate(Value x) { return arith::NegFOp::create(b, x); }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
  Value roundEven(Value x) { return math::RoundEvenOp::create(b, x); }
  Value copySign(Value x, Value sign) { return math::CopySignOp::create(b, x, sign); }
  Value widen(Value x) { return arith::ExtFOp::create(b, like(b.getF64Type()), x); }
  Value narrow(Value x) { return arith::TruncFOp::create(b, like(b.getF32Type()), x); }

  Value compare(arith::CmpFPredicate predicate, Value x, Value y) { return arith::CmpFOp::create(b, predicate, x, y); }
  // All are false of a NaN, but for `differs`.
  Value less(Value x, Value y) { return compare(arith::CmpFPredicate::OLT, x, y); }
  Value less(Value x, double y) { return less(x, number(y, x)); }
  Value more(Value x, double y) { return less(number(y, x), x); }
  Value equal(Value x, Value y) { return compare(arith::CmpFPredicate::OEQ, x, y); }
  Value equal(Value x, double y) { return equal(x, number(y, x)); }
  Value differs(Value x, Value y) { return compare(arith::CmpFPredicate::UNE, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value select(Value c, Value x, Value y) { return arith::SelectOp::create(b, c, x, y); }
  Value select(Value c, double x, Value y) { return select(c, number(x, y), y); }
  Value atMost(Value x, double limit) { return select(more(x, limit), limit, x); } // keeps NaN, as the next
  Value atLeast(Value x, double limit) { return select(less(x, limit), limit, x); }

  Value bits(Value x) { return arith::BitcastOp::create(b, like(isDouble(x) ? b.getI64Type() : b.getI32Type()), x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, like(isDouble(x) ? Type(b.getF64Type()) : b.getF32Type()), x); }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value plus(Value x, int64_t y) { return plus(x, integer(y, x)); }
  Value minus(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value masked(Value x, int64_t mask) { return arith::AndIOp::create(b, x, integer(mask, x)); }
  Value flipped(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
  Value shiftLeft(Value x, int64_t by) { return arith::ShLIOp::create(b, x, integer(by, x)); }
  Value isSet(Value x, int64_t mask) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, masked(x, mask), integer(0, x));
  }
  /// x with its sign changed where y is negative.
  Value timesSign(Value x, Value y) { return fromBits(flipped(bits(x), masked(bits(y), INT32_MIN))); }

  /// From the highest power down. Even and odd powers apart: one product more, half the latency.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value square = mul(x, x), sums[2];
    size_t power = coefficients.size();
    for (double c : coefficients) {
      Value &sum = sums[--power % 2];
      sum = sum ? fma(sum, square, number(c, x)) : number(c, x);
    }
    return fma(sums[1], x, sums[0]);
  }

  /// The nearest integer, as a number and in the low bits of an integer: adding 1.5 * 2^23 (2^52) leaves it there, without the
  /// undefined conversion of a NaN or of what is too large.
  struct Rounded {
    Value whole, low;
  };
  Rounded round(Value shifted) { return {add(shifted, isDouble(shifted) ? -0x1.8p52 : -0x1.8p23), bits(shifted)}; }
  Rounded nearest(Value x) { return round(add(x, isDouble(x) ? 0x1.8p52 : 0x1.8p23)); }

  /// 2^n of an f32 for -127 < n <= 127, n in the low 9 bits of an integer.
  Value power(Value n) { return fromBits(shiftLeft(plus(n, 127), 23)); }

  //===--------------------------------------------------------------------===//
  // Exponential functions in f32
  //===--------------------------------------------------------------------===//

  /// x * 2^n, n in the low bits of `low` as `nearest` leaves them. In two factors: one alone may be too small or too large for a float.
  Value scale(Value x, Value low) {
    Value n = plus(low, -0x4b400000);
    Value half = arith::ShRSIOp::create(b, n, integer(1, n)), rest = minus(n, half);
    return mul(mul(x, power(half)), power(rest));
  }
  /// The same for n <= 0.
  Value scaleDown(Value x, Value low) { return mul(mul(x, power(plus(low, 24))), 0x1p-24); }

  /// x = whole * ln 2 + r with |r| <= ln 2 / 2. ln 2 is in two parts; a product with the first is exact.
  Rounded reduce(Value x, Value &r) {
    Rounded n = round(fma(x, number(kLog2E, x), number(0x1.8p23, x)));
    r = fma(n.whole, number(0.693359375 - kLn2, x), fma(n.whole, number(-0.693359375, x), x));
    return n;
  }

  /// e^x = 2^n e^r.
  Value exp(Value x) {
    // -|x|, as in sigmoid and softplus, spares half of the care.
    auto negated = x.getDefiningOp<arith::NegFOp>();
    bool isNegative = negated && negated.getOperand().getDefiningOp<math::AbsFOp>();
    // Out of these bounds all results are the same: infinity and 0.
    x = atLeast(isNegative ? x : atMost(x, 89), -104);
    Value r, n = reduce(x, r).low;
    // (e^r - 1 - r) / r^2: 2^-28.3.
    Value q = polynomial(r, {0.0013814467903360353, 0.008368780393089517, 0.0416683941910699, 0.1666652010790038, 0.49999993412609633});
    Value e = add(fma(mul(r, r), q, r), 1);
    return isNegative ? scaleDown(e, n) : scale(e, n);
  }

  Value exp2(Value x) {
    x = atLeast(atMost(x, 129), -151);
    Rounded n = nearest(x);
    Value f = sub(x, n.whole);
    // (2^f - 1) / f, |f| <= 1/2: 2^-28.9.
    Value p = polynomial(f, {0.0001535333871991085, 0.0013398900052612756, 0.009618437615261821, 0.055503324100635125,
                             0.24022647910202977});
    return scale(fma(f, fma(f, p, number(0.6931472028806428, f)), number(1, f)), n.low);
  }

  /// 2^n (e^r - 1) + (2^n - 1), halved inside, because 2^128 is not a float; that would round the least denormals.
  Value expm1(Value x) {
    Value near = less(abs(x), 0x1p-30);
    Value r, n = reduce(atLeast(atMost(x, 89), -20), r).low;
    // (e^r - 1 - r) / r^2: 2^-32.0.
    Value q = polynomial(r, {0.00019845886399953196, 0.001394071990162034, 0.008333389570416974, 0.041666359821802695, 0.1666666636886178,
                             0.5000000044399076});
    Value half = power(plus(n, -1));
    Value result = fma(half, fma(mul(r, r), q, r), add(half, -0.5));
    return select(near, x, add(result, result));
  }

  /// (1 - e^(-unit * x)) / unit for 0 <= unit * x < 20, where n ln 2 may be off by n 2^-29: its error shrinks faster, by 2^-n.
  Value oneMinusExp(Value x, double unit = 1) {
    Rounded n = round(fma(x, number(-unit * kLog2E, x), number(0x1.8p23, x)));
    Value r = fma(n.whole, number(-kLn2 / unit, x), negate(x)), s = power(n.low);
    // (e^r - 1 - r) / r^2 with weights for this use: 2^-27.1. Of unit * r, divided by unit: powers of 2.
    double q[] = {0.0013706695265495793, 0.008369150466502866, 0.04167059652791385, 0.16666516103406812, 0.4999998256825267};
    double factor = unit;
    for (double &c : llvm::reverse(q))
      c *= factor, factor *= unit;
    Value part = fma(mul(r, r), polynomial(r, q), r);
    return fma(negate(s), part, unit == 1 ? sub(1, s) : fma(s, number(-1 / unit, s), number(1 / unit, s)));
  }

  /// u / (1 - u) with u = (1 - e^-2|x|) / 2. What the difference loses is mended after the division: 1.5 is for 1 / (1 - u), which is
  /// between 1 and 2.
  Value tanh(Value x) {
    Value u = oneMinusExp(atMost(abs(x), 9.1), 2), below = sub(1, u), lost = sub(sub(1, below), u), ratio = div(u, below);
    return timesSign(fma(mul(ratio, -1.5), lost, ratio), x);
  }

  /// 1 - e^-t with t = -log(1 - erf |x|), which is smooth: 2 / sqrt(pi) |x| + x^2 Q(|x|).
  Value erf(Value x) {
    constexpr double slope = 1.1283791670955126;
    Value a = atMost(abs(x), 4);
    // Q for 0 <= a <= 4: an error of erf of 2^-27.8.
    Value q = polynomial(a, {-9.341054241884775e-06, 0.00011842861557050115, -0.0006357670454236635, 0.0016726505477823582,
                             -0.0001663567150291366, -0.019149596558217883, 0.10277680006654366, 0.6366195132611008});
    Value t = fma(a, fma(a, q, number(slope - 1, a)), a);
    return timesSign(oneMinusExp(t), x);
  }

  //===--------------------------------------------------------------------===//
  // Logarithms in f32
  //===--------------------------------------------------------------------===//

  /// log of a positive normal number, log x = n ln 2 + log(1 + f) with 1 + f between sqrt(1/2) and sqrt(2). To n comes
  /// `exponent`, and x is meant to have the small `rest` besides.
  Value logOfNormal(Value x, Value exponent, Value rest) {
    Value shifted = plus(bits(x), -0x3f3504f3); // sqrt(1/2)
    Value n = arith::ShRSIOp::create(b, shifted, integer(23, shifted));
    Value f = add(fromBits(minus(bits(x), masked(shifted, -(int64_t(1) << 23)))), -1);
    Value whole = arith::SIToFPOp::create(b, x.getType(), n);
    if (exponent)
      whole = add(whole, exponent);
    // (log(1 + f) - f + f^2 / 2) / f^3: 2^-30.3.
    Value p = polynomial(f, {0.06747724383582814, -0.11677509747190402, 0.118886966523452, -0.12405341192991634, 0.14219453213004474,
                             -0.1666800511583052, 0.2000212344727771, -0.25000009514148225, 0.3333331254134013});
    Value square = mul(f, f), tail = fma(mul(f, square), p, mul(square, -0.5));
    tail = fma(whole, number(kLn2 - 0.693359375, x), tail);
    if (rest) { // log(x + rest) is log x + rest / x, nearly, and 1 / (1 + f) is 1 - f
      Value least = integer(126, n), scaled = mul(rest, power(minus(integer(0, n), arith::MinSIOp::create(b, n, least))));
      tail = add(tail, fma(negate(scaled), f, scaled));
    }
    // whole * 0.693359375 is exact, and so is what its sum with f loses.
    Value first = mul(whole, 0.693359375), sum = add(first, f), lost = sub(f, sub(sum, first));
    return add(sum, add(lost, tail));
  }

  /// What a logarithm of x is where x is not a positive finite number, `result` elsewhere.
  Value logOrSpecial(Value result, Value x) {
    Value positive = select(less(x, INFINITY), result, x);
    return select(more(x, 0), positive, select(equal(x, 0), -INFINITY, number(NAN, x)));
  }

  Value log(Value x) {
    Value denormal = less(x, 0x1p-126);
    Value exponent = select(denormal, -25, number(0, x));
    return logOrSpecial(logOfNormal(select(denormal, mul(x, 0x1p25), x), exponent, Value()), x);
  }

  Value log1p(Value x) {
    Value u = add(x, 1), part = add(u, -1), lost = add(sub(1, sub(u, part)), sub(x, part));
    return copySign(logOrSpecial(logOfNormal(u, Value(), lost), u), x);
  }

  //===--------------------------------------------------------------------===//
  // Exponential functions and logarithms in f64
  //===--------------------------------------------------------------------===//

  /// log2 of a positive normal number, 2^-45.1.
  Value wideLog2(Value x) {
    constexpr int64_t sqrtHalf = 0x3fe6a09e667f3bcd, exponentBits = -(int64_t(1) << 52);
    Value shifted = plus(bits(x), -sqrtHalf);
    Value m = fromBits(minus(bits(x), masked(shifted, exponentBits))); // between sqrt(1/2) and sqrt(2)
    // The exponent, made positive and put into the low bits of 2^52: few processors convert i64.
    Value n = arith::ShRUIOp::create(b, plus(shifted, int64_t(1024) << 52), integer(52, shifted));
    n = add(fromBits(arith::OrIOp::create(b, n, integer(0x4330000000000000, n))), -(0x1p52 + 1024));
    // log2(m) / s with s = (m - 1) / (m + 1), of s^2.
    Value s = div(add(m, -1), add(m, 1));
    Value p = polynomial(mul(s, s), {0.2829014449203201, 0.3199056116322944, 0.4122092543445264, 0.5770779423464318, 0.961796694113403,
                                     2.88539008177785});
    return fma(s, p, n);
  }

  /// 2^x, 2^-40.2. Out of +-300 a float is infinite or 0.
  Value wideExp2(Value x) {
    x = atLeast(atMost(x, 300), -300);
    Rounded n = nearest(x);
    Value f = sub(x, n.whole);
    // (2^f - 1) / f, |f| <= 1/2.
    Value p = polynomial(f, {1.3178915942399031e-06, 1.530917836710077e-05, 0.000154038257098431, 0.0013333454779615888,
                             0.009618128615523712, 0.05550410935346643, 0.24022650698114126, 0.6931471805481944});
    return mul(fma(f, p, number(1, f)), fromBits(shiftLeft(plus(n.low, 1023), 52)));
  }

  /// log2(x) * unit.
  Value logToBase(Value x, double unit) { return logOrSpecial(narrow(mul(wideLog2(widen(x)), unit)), x); }

  Value sinh(Value x) {
    Value a = widen(abs(x)), e = wideExp2(mul(a, kLog2E)), far = mul(sub(e, div(number(1, e), e)), 0.5);
    Value z = mul(a, a), near = fma(mul(a, z), polynomial(z, {1.0 / 120, 1.0 / 6}), a); // at 2^-5: 2^-42
    return copySign(narrow(select(less(a, 0x1p-5), near, far)), x);
  }

  Value cosh(Value x) {
    Value e = wideExp2(mul(widen(abs(x)), kLog2E));
    return narrow(mul(add(e, div(number(1, e), e)), 0.5));
  }

  /// log(|x| + sqrt(x^2 + 1)).
  Value asinh(Value x) {
    Value a = widen(abs(x)), z = mul(a, a), far = mul(wideLog2(add(a, sqrt(add(z, 1)))), kLn2);
    Value near = fma(mul(a, z), polynomial(z, {3.0 / 40, -1.0 / 6}), a); // at 2^-6: 2^-40
    return copySign(finiteOr(narrow(select(less(a, 0x1p-6), near, far)), x), x);
  }

  Value acosh(Value x) {
    Value a = widen(x), far = narrow(mul(wideLog2(add(a, sqrt(fma(a, a, number(-1, a))))), kLn2));
    return select(less(x, 1), NAN, finiteOr(far, x));
  }

  /// log((1 + |x|) / (1 - |x|)) / 2.
  Value atanh(Value x) {
    Value a = widen(abs(x)), z = mul(a, a), far = mul(wideLog2(div(add(a, 1), sub(1, a))), kLn2 / 2);
    Value near = fma(mul(a, z), polynomial(z, {1.0 / 5, 1.0 / 3}), a); // at 2^-6: 2^-38
    Value result = narrow(select(less(a, 0x1p-6), near, far)), size = abs(x);
    return copySign(select(less(size, 1), result, select(equal(size, 1), INFINITY, number(NAN, x))), x);
  }

  /// `result` where x is finite, x elsewhere.
  Value finiteOr(Value result, Value x) { return select(less(abs(x), INFINITY), result, x); }

  Value cbrt(Value x) {
    Value a = abs(x), root = narrow(wideExp2(mul(wideLog2(widen(a)), 1.0 / 3)));
    return select(equal(x, 0), x, finiteOr(copySign(root, x), x));
  }

  /// 2^(y log2 |x|), and all that the C library's pow says of special values.
  Value pow(Value x, Value y) {
    Value a = abs(x), base = widen(a), log = wideLog2(base);
    log = select(equal(base, 0), -INFINITY, finiteOr(log, base));
    Value result = narrow(wideExp2(mul(widen(y), log)));
    // A negative base.
    Value half = mul(y, 0.5), isWhole = equal(roundEven(y), y), isOdd = both(isWhole, differs(roundEven(half), half));
    Value flip = select(isOdd, x, number(0, x)), isOutside = both(both(less(x, 0), less(a, INFINITY)), differs(roundEven(y), y));
    result = select(isOutside, NAN, timesSign(result, flip));
    // 1 to any power, and anything to the power of 0, even a NaN; (-1)^infinity.
    Value isOne = either(either(equal(x, 1), equal(y, 0)), both(equal(a, 1), equal(abs(y), INFINITY)));
    return select(isOne, 1, result);
  }

  //===--------------------------------------------------------------------===//
  // Trigonometric functions, in f64
  //===--------------------------------------------------------------------===//

  /// |x| = (quarter + f) pi / 2 with |f| <= 1/2, sine and cosine of f pi / 2, and the quarter, of which the low two bits count.
  struct Angle {
    Value sine, cosine, quarter;
  };

  /// The product with 2 / pi, of which multiples of 4 do not matter. Over all floats, x is at least 2^-29.2 of a turn's quarter from
  /// a multiple of it, so what is left must be right to 2^-55. |x| is taken as a number below 2^32 times 1, 2^32, 2^64 or 2^96; times
  /// that power, 2 / pi modulo 2^25 (no bit of x is below 2^-23) is the sum of a number of 29 bits, another of 29 bits, and a
  /// small one: products of 24 with 29 bits are exact.
  Angle reduceAngle(Value x) {
    Value a = widen(abs(x));
    Value isAbove[] = {less(number(0x1.fffffep31, a), a), less(number(0x1.fffffep63, a), a), less(number(0x1.fffffep95, a), a)};
    auto pick = [&](ArrayRef<double> of) {
      return select(isAbove[2], of[3], select(isAbove[1], of[2], select(isAbove[0], of[1], number(of[0], a))));
    };
    Value m = mul(a, pick({1, 0x1p-32, 0x1p-64, 0x1p-96}));
    Value high = mul(m, pick({0x1.45f306dp-1, 0x1.f306dc8p+23, 0x1.1054a7cp+22, 0x1.3abe8f8p+21}));
    Value middle = mul(m, pick({0x1.9391054p-30, 0x1.c882a53p-5, 0x1.84eafa3p-5, 0x1.4d37702p-6}));
    Value low = pick({0x1.4fe13abe8fa9ap-59, 0x1.f09d5f47d4d37p-34, 0x1.d4d377036d8a5p-34, 0x1.6d8a5664f10e4p-34});
    high = fma(number(-4, a), roundEven(mul(high, 0.25)), high);
    Rounded quarter = nearest(fma(m, low, add(high, middle)));
    Value f = fma(m, low, add(sub(high, quarter.whole), middle));

    // sin(f pi / 2) / f and (cos(f pi / 2) - 1) / f^2, of f^2: 2^-37.7 and 2^-33.9.
    Value z = mul(f, f);
    Value sine = mul(f, polynomial(z, {0.00015819058807899872, -0.004681258648313322, 0.07969258157491328, -0.645964096091085,
                                       1.5707963267876777}));
    Value cosine = polynomial(z, {0.0009037352261084166, -0.020860151626883823, 0.2536692242361059, -1.2337005425356347, 1});
    return {sine, cosine, quarter.low};
  }

  Value sin(Value x) {
    Angle angle = reduceAngle(x);
    Value result = select(isSet(angle.quarter, 1), angle.cosine, angle.sine);
    return timesSign(narrow(fromBits(flipped(bits(result), shiftLeft(masked(angle.quarter, 2), 62)))), x);
  }

  Value cos(Value x) {
    Angle angle = reduceAngle(x);
    Value result = select(isSet(angle.quarter, 1), angle.sine, angle.cosine);
    Value flip = shiftLeft(masked(plus(angle.quarter, 1), 2), 62);
    return narrow(fromBits(flipped(bits(result), flip)));
  }

  Value tan(Value x) {
    Angle angle = reduceAngle(x);
    Value isOdd = isSet(angle.quarter, 1);
    Value over = select(isOdd, angle.cosine, angle.sine), under = select(isOdd, negate(angle.sine), angle.cosine);
    return timesSign(narrow(div(over, under)), x);
  }

  /// asin w for 0 <= w <= 1/2, of w and w^2.
  Value asinNear(Value w, Value z) {
    // (asin w - w) / w^3, of w^2: 2^-35.8.
    Value p = polynomial(z, {0.03464628620913634, 0.007509510724497975, 0.02460469908047753, 0.030112527598551347, 0.04465997197075036,
                             0.07499948898368822, 0.16666667180248168});
    return fma(mul(w, z), p, w);
  }

  /// Beyond 1/2: asin a = pi / 2 - 2 asin(sqrt((1 - a) / 2)). Of a number above 1 the root is NaN.
  Value asin(Value x) {
    Value a = widen(abs(x)), isFar = more(a, 0.5), z = select(isFar, mul(sub(1, a), 0.5), mul(a, a));
    Value p = asinNear(select(isFar, sqrt(z), a), z);
    return copySign(narrow(select(isFar, fma(number(-2, p), p, number(M_PI_2, p)), p)), x);
  }

  Value acos(Value x) {
    Value wide = widen(x), a = abs(wide), isFar = more(a, 0.5), z = select(isFar, mul(sub(1, a), 0.5), mul(a, a));
    Value p = asinNear(select(isFar, sqrt(z), a), z), twice = add(p, p);
    Value far = select(less(wide, 0), sub(M_PI, twice), twice);
    return narrow(select(isFar, far, sub(M_PI_2, copySign(p, wide))));
  }

  /// atan q for 0 <= q <= 1.
  Value atanNear(Value q) {
    // (atan q - q) / q^3, of q^2: 2^-33.9.
    Value z = mul(q, q);
    Value p = polynomial(z, {-0.0006979496627671132, 0.00492631434314012, -0.01629934811720787, 0.03447573476566729, -0.05451584677099159,
                             0.07259431590256384, -0.08985436843702937, 0.11094503199495571, -0.14284167177160856, 0.19999927240847096,
                             -0.33333332133722815});
    return fma(mul(q, z), p, q);
  }

  Value atan(Value x) {
    Value a = widen(abs(x)), isFar = more(a, 1), p = atanNear(select(isFar, div(number(1, a), a), a));
    return copySign(narrow(select(isFar, sub(M_PI_2, p), p)), x);
  }

  Value atan2(Value y, Value x) {
    Value wide = widen(x), a = abs(wide), c = widen(abs(y)), isSteep = less(a, c);
    Value small = select(isSteep, a, c), large = select(isSteep, c, a);
    // 0 / 0 counts as 0, infinity / infinity as 1.
    Value q = select(equal(small, 0), 0, select(equal(small, large), 1, div(small, large)));
    Value p = atanNear(q);
    p = select(isSteep, sub(M_PI_2, p), p);
    Value isLeft = less(copySign(number(1, wide), wide), 0);
    Value result = copySign(narrow(select(isLeft, sub(M_PI, p), p)), y);
    return select(compare(arith::CmpFPredicate::UNO, x, y), NAN, result);
  }

  Operation *op;
  ImplicitLocOpBuilder b;
  VectorType shape; // null: scalars
};

} // namespace

bool approximateMath(Operation *op) {
  if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0)).isF32())
    return false;
  for (Value operand : op->getOperands())
    if (operand.getType() != op->getResult(0).getType())
      return false;
  Value result = Approximator(op).run();
  if (!result)
    return false;
  op->replaceAllUsesWith(ValueRange{result});
  op->erase();
  return true;
}

} // namespace dlc
