// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/DimValue.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace dlc {

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// Whole floats below this are exact in every float type that is followed.
static constexpr int64_t kExact = int64_t(1) << 24;
/// Factors of floats are at most this large, so that products with dims of usual sizes stay below kExact.
static constexpr int64_t kLargestFactor = int64_t(1) << 10;

static DimExpr number(DimExpr like, int64_t value) { return constantDim(like.getContext(), value); }

/// Null for what a float might not hold.
static DimValue make(DimExpr numerator, int64_t denominator, Type type) {
  if (!numerator)
    return {};
  if (std::optional<int64_t> constant = numerator.getConstant(); constant && denominator != 1) {
    int64_t divisor = std::gcd(*constant, denominator);
    numerator = number(numerator, *constant / divisor);
    denominator /= divisor;
  }
  DimValue result{numerator, denominator, type};
  if (std::optional<int64_t> constant = numerator.getConstant();
      result.isFloat() && (denominator > kExact || (constant && (*constant >= kExact || *constant <= -kExact))))
    return {};
  return result;
}

/// Floats whose denominator is no power of two are rounded; only functions to whole numbers may use them.
static bool isExact(const DimValue &x) { return x && llvm::isPowerOf2_64(x.denominator); }

/// Both numerators over one denominator. Null ones where that cannot be.
static std::pair<DimExpr, DimExpr> overOneDenominator(const DimValue &x, const DimValue &y, int64_t &denominator) {
  if (!isExact(x) || !isExact(y))
    return {};
  denominator = std::max(x.denominator, y.denominator);
  return {mulDims(x.numerator, number(x.numerator, denominator / x.denominator)),
          mulDims(y.numerator, number(y.numerator, denominator / y.denominator))};
}

static std::optional<int64_t> constantOf(const DimValue &x) {
  return x && x.denominator == 1 ? x.numerator.getConstant() : std::nullopt;
}

static DimValue boolean(DimExpr value) {
  return value ? DimValue{value, 1, IntegerType::get(value.getContext(), 1)} : DimValue();
}

bool isTypeOfDimValues(Type type) {
  return type.isInteger(1) || type.isSignlessInteger(32) || type.isSignlessInteger(64) || type.isF32() || type.isF64();
}

DimValue dimValueOf(double value, Type type) {
  int64_t denominator = 1;
  for (; denominator < kExact && std::floor(value) != value && std::isfinite(value); denominator *= 2)
    value *= 2;
  if (std::floor(value) != value || !(std::abs(value) < kExact))
    return {};
  return make(constantDim(type.getContext(), static_cast<int64_t>(value)), denominator, type);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

DimValue operator+(DimValue x, DimValue y) {
  int64_t denominator;
  auto [a, b] = overOneDenominator(x, y, denominator);
  return make(addDims(a, b), denominator, x.type);
}

DimValue operator-(DimValue x, DimValue y) { return x + -y; }
DimValue operator-(DimValue x) { return x ? make(mulDims(x.numerator, number(x.numerator, -1)), x.denominator, x.type) : DimValue(); }

DimValue operator*(DimValue x, DimValue y) {
  if (!isExact(x) || !isExact(y))
    return {};
  if (x.isFloat()) {
    auto isSmall = [](DimExpr e) { return e.getConstant() && std::abs(*e.getConstant()) <= kLargestFactor; };
    if (!isSmall(x.numerator) && !isSmall(y.numerator))
      return {};
  }
  return make(mulDims(x.numerator, y.numerator), x.denominator * y.denominator, x.type);
}

/// The fraction of x by a positive number, dropped towards zero.
static DimExpr truncatedQuotient(DimExpr x, DimExpr y) {
  if (!x || !y)
    return {};
  if (lowerBound(x) >= 0)
    return floorDivDims(x, y);
  DimExpr zero = number(x, 0);
  return selectLtDims(x, zero, subDims(zero, floorDivDims(subDims(zero, x), y)), floorDivDims(x, y));
}

DimValue operator/(DimValue x, DimValue y) {
  if (!x.numerator || !y.numerator)
    return {};
  std::optional<int64_t> divisor = y.numerator.getConstant();
  if (divisor == 0 || divisor == INT64_MIN)
    return {}; // fails at run time
  if (x.isFloat()) {
    if (!isExact(x) || !isExact(y) || !divisor)
      return {};
    std::optional<int64_t> denominator = llvm::checkedMul(x.denominator, std::abs(*divisor));
    if (!denominator)
      return {};
    return make(mulDims(x.numerator, number(x.numerator, *divisor < 0 ? -y.denominator : y.denominator)), *denominator, x.type);
  }
  if (divisor && *divisor < 0)
    return x.numerator.isConstant(INT64_MIN) ? DimValue() : make(truncatedQuotient((-x).numerator, (-y).numerator), 1, x.type);
  if (!divisor && !(lowerBound(y.numerator) >= 0)) // dividing by a dim that is 0 fails at run time, as it does in a kernel
    return {};
  return make(truncatedQuotient(x.numerator, y.numerator), 1, x.type);
}

DimValue remainder(DimValue x, DimValue y) {
  if (!x.numerator || !y.numerator || x.isFloat())
    return {};
  return x - x / y * y;
}

DimValue modulo(DimValue x, DimValue y) {
  if (!x.numerator || !y.numerator || x.isFloat())
    return {};
  std::optional<int64_t> divisor = y.numerator.getConstant();
  if (divisor && *divisor < 0 && *divisor != INT64_MIN)
    return -modulo(-x, -y);
  if (divisor == 0 || !(lowerBound(y.numerator) >= 0))
    return {};
  return make(modDims(x.numerator, y.numerator), 1, x.type);
}

DimValue pow(DimValue x, DimValue y) {
  std::optional<int64_t> exponent = constantOf(y);
  if (!x.numerator || !exponent || *exponent < 0 || *exponent > 64)
    return {};
  DimValue result = x.constant(1);
  for (int64_t i = 0; i < *exponent && result; ++i)
    result = result * x;
  return result;
}

//===----------------------------------------------------------------------===//
// Bits and order
//===----------------------------------------------------------------------===//

template <typename BitsFn> static DimValue bitwise(const DimValue &x, const DimValue &y, BitsFn fn) {
  std::optional<int64_t> a = constantOf(x), b = constantOf(y);
  return a && b ? x.constant(fn(*a, *b)) : DimValue();
}

DimValue operator~(DimValue x) { return x ? x ^ x.constant(x.isBool() ? 1 : -1) : DimValue(); }

DimValue operator&(DimValue x, DimValue y) {
  return x && x.isBool() ? min(x, y) : bitwise(x, y, [](int64_t a, int64_t b) { return a & b; });
}

DimValue operator|(DimValue x, DimValue y) {
  return x && x.isBool() ? max(x, y) : bitwise(x, y, [](int64_t a, int64_t b) { return a | b; });
}

DimValue operator^(DimValue x, DimValue y) {
  if (x && y && x.isBool())
    return boolean(selectEqDims(x.numerator, y.numerator, number(x.numerator, 0), number(x.numerator, 1)));
  return bitwise(x, y, [](int64_t a, int64_t b) { return a ^ b; });
}

DimValue operator==(DimValue x, DimValue y) {
  int64_t denominator;
  auto [a, b] = overOneDenominator(x, y, denominator);
  return a && b ? boolean(selectEqDims(a, b, number(a, 1), number(a, 0))) : DimValue();
}

/// x < y, or its contrary.
static DimValue less(const DimValue &x, const DimValue &y, bool contrary) {
  int64_t denominator;
  auto [a, b] = overOneDenominator(x, y, denominator);
  return a && b ? boolean(selectLtDims(a, b, number(a, contrary ? 0 : 1), number(a, contrary ? 1 : 0))) : DimValue();
}

DimValue operator<(DimValue x, DimValue y) { return less(x, y, false); }
DimValue operator>(DimValue x, DimValue y) { return less(y, x, false); }
DimValue operator<=(DimValue x, DimValue y) { return less(y, x, true); }
DimValue operator>=(DimValue x, DimValue y) { return less(x, y, true); }

DimValue select(DimValue condition, DimValue x, DimValue y) {
  if (!condition.numerator)
    return {};
  if (std::optional<int64_t> constant = constantOf(condition))
    return *constant ? x : y;
  int64_t denominator;
  auto [a, b] = overOneDenominator(x, y, denominator);
  return a && b ? make(selectEqDims(condition.numerator, number(a, 0), b, a), denominator, x.type) : DimValue();
}

DimValue min(DimValue x, DimValue y) {
  int64_t denominator;
  auto [a, b] = overOneDenominator(x, y, denominator);
  return make(minDims(a, b), denominator, x.type);
}

DimValue max(DimValue x, DimValue y) {
  int64_t denominator;
  auto [a, b] = overOneDenominator(x, y, denominator);
  return make(maxDims(a, b), denominator, x.type);
}

DimValue abs(DimValue x) { return x && lowerBound(x.numerator) >= 0 ? x : select(x < x.constant(0), -x, x); }

DimValue sign(DimValue x) {
  if (!x.numerator)
    return {};
  DimValue zero = x.constant(0);
  return select(x > zero, x.constant(1), select(x < zero, x.constant(-1), zero));
}

//===----------------------------------------------------------------------===//
// Whole numbers
//===----------------------------------------------------------------------===//

DimValue floor(DimValue x) { return x ? make(floorDivDims(x.numerator, number(x.numerator, x.denominator)), 1, x.type) : DimValue(); }
DimValue ceil(DimValue x) { return x ? make(ceilDivDims(x.numerator, number(x.numerator, x.denominator)), 1, x.type) : DimValue(); }

DimValue roundEven(DimValue x) {
  if (!x.numerator || x.denominator == 1)
    return x;
  std::optional<int64_t> numerator = x.numerator.getConstant();
  if (!numerator || !isExact(x))
    return {};
  return dimValueOf(std::nearbyint(static_cast<double>(*numerator) / static_cast<double>(x.denominator)), x.type);
}

DimValue convert(DimValue x, Type to) {
  if (!x.numerator)
    return {};
  if (to.isInteger(1))
    return boolean(selectEqDims(x.numerator, number(x.numerator, 0), number(x.numerator, 0), number(x.numerator, 1)));
  if (!isTypeOfDimValues(to))
    return {};
  if (isa<FloatType>(to))
    return make(x.numerator, x.denominator, to);
  DimExpr whole = truncatedQuotient(x.numerator, number(x.numerator, x.denominator));
  // A number that does not fit loses bits, which is left to the kernel (see Cast.cpp).
  if (std::optional<int64_t> constant = whole ? whole.getConstant() : std::nullopt; constant && to.isInteger(32) && *constant != int32_t(*constant))
    return {};
  return make(whole, 1, to);
}

} // namespace dlc
