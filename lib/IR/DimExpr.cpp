// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace dlc {

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

static DimExpr make(MLIRContext *context, DimKind kind, int64_t value, StringAttr symbol, ArrayRef<DimExpr> operands) {
  SmallVector<Attribute> attributes(operands.begin(), operands.end());
  return DimExprAttr::get(context, kind, value, symbol, attributes);
}

DimExpr constantDim(MLIRContext *context, int64_t value) {
  return make(context, DimKind::Const, value, StringAttr::get(context), {});
}

DimExpr symbolDim(MLIRContext *context, StringRef name) {
  return make(context, DimKind::Symbol, 0, StringAttr::get(context, name), {});
}

/// Written out, an expression has at most this many parts: a chain of computed sizes may double them at each step, and everything
/// that walks an expression walks it as a tree.
static constexpr int64_t kMaxSize = 512;

/// Parts of an expression, which composite ones hold as their value.
static int64_t sizeOf(DimExpr e) {
  if (e.getKind() == DimKind::Const || e.getKind() == DimKind::Symbol)
    return 1;
  return e.getKind() == DimKind::ScaledFloor ? 1 + sizeOf(e.getOperand(0)) : e.getValue();
}

/// Null when the expression would be too large.
static DimExpr node(DimKind kind, ArrayRef<DimExpr> operands, std::optional<double> scale = std::nullopt) {
  MLIRContext *context = operands.front().getContext();
  int64_t size = 1;
  for (DimExpr operand : operands)
    size += sizeOf(operand);
  if (size > kMaxSize)
    return {};
  return make(context, kind, scale ? llvm::bit_cast<int64_t>(*scale) : size, StringAttr::get(context), operands);
}

/// A total order that depends on nothing but the expressions' content.
static int compare(DimExpr a, DimExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (a.getValue() != b.getValue())
    return a.getValue() < b.getValue() ? -1 : 1;
  if (int order = a.getSymbol().getValue().compare(b.getSymbol().getValue()))
    return order;
  if (a.getOperands().size() != b.getOperands().size())
    return a.getOperands().size() < b.getOperands().size() ? -1 : 1;
  for (unsigned i = 0, e = a.getOperands().size(); i != e; ++i)
    if (int order = compare(a.getOperand(i), b.getOperand(i)))
      return order;
  return 0;
}

//===----------------------------------------------------------------------===//
// Sums of products. A term is coefficient * product of atoms (sorted); an atom is neither a constant, a sum nor a product.
//===----------------------------------------------------------------------===//

namespace {
struct Term {
  int64_t coefficient;
  SmallVector<DimExpr, 2> atoms;
};
using Terms = SmallVector<Term, 4>;
} // namespace

/// Beyond this many terms a product of sums stays a product.
static constexpr size_t kMaxTerms = 32;

static Term termOf(DimExpr e) {
  Term term{1, {}};
  if (e.getKind() == DimKind::Const) {
    term.coefficient = e.getValue();
  } else if (e.getKind() == DimKind::Mul) {
    for (Attribute operand : e.getOperands()) {
      auto factor = cast<DimExpr>(operand);
      if (factor.getKind() == DimKind::Const)
        term.coefficient = factor.getValue();
      else
        term.atoms.push_back(factor);
    }
  } else {
    term.atoms.push_back(e);
  }
  return term;
}

static Terms termsOf(DimExpr e) {
  Terms terms;
  if (e.getKind() == DimKind::Add)
    for (Attribute operand : e.getOperands())
      terms.push_back(termOf(cast<DimExpr>(operand)));
  else
    terms.push_back(termOf(e));
  return terms;
}

static int compareAtoms(ArrayRef<DimExpr> a, ArrayRef<DimExpr> b) {
  if (a.size() != b.size()) // longer products first, the constant last
    return a.size() > b.size() ? -1 : 1;
  for (auto [x, y] : llvm::zip_equal(a, b))
    if (int order = compare(x, y))
      return order;
  return 0;
}

static DimExpr fromTerm(MLIRContext *context, const Term &term) {
  if (term.atoms.empty())
    return constantDim(context, term.coefficient);
  if (term.coefficient == 1 && term.atoms.size() == 1)
    return term.atoms[0];
  SmallVector<DimExpr> factors(term.atoms.begin(), term.atoms.end());
  if (term.coefficient != 1)
    factors.push_back(constantDim(context, term.coefficient));
  return node(DimKind::Mul, factors);
}

/// Sorts, merges equal products, drops zeros. Null on overflow.
static DimExpr fromTerms(MLIRContext *context, Terms terms) {
  for (Term &term : terms)
    llvm::sort(term.atoms, [](DimExpr a, DimExpr b) { return compare(a, b) < 0; });
  llvm::sort(terms, [](const Term &a, const Term &b) { return compareAtoms(a.atoms, b.atoms) < 0; });
  Terms merged;
  for (Term &term : terms) {
    if (!merged.empty() && compareAtoms(merged.back().atoms, term.atoms) == 0) {
      std::optional<int64_t> sum = llvm::checkedAdd(merged.back().coefficient, term.coefficient);
      if (!sum)
        return {};
      merged.back().coefficient = *sum;
    } else {
      merged.push_back(std::move(term));
    }
  }
  llvm::erase_if(merged, [](const Term &term) { return term.coefficient == 0; });
  if (merged.empty())
    return constantDim(context, 0);
  if (merged.size() == 1)
    return fromTerm(context, merged[0]);
  SmallVector<DimExpr> operands;
  for (const Term &term : merged) {
    operands.push_back(fromTerm(context, term));
    if (!operands.back())
      return {};
  }
  return node(DimKind::Add, operands);
}

DimExpr addDims(DimExpr a, DimExpr b) {
  if (!a || !b)
    return {};
  Terms terms = termsOf(a);
  llvm::append_range(terms, termsOf(b));
  return fromTerms(a.getContext(), std::move(terms));
}

DimExpr subDims(DimExpr a, DimExpr b) {
  if (!a || !b)
    return {};
  return addDims(a, mulDims(b, constantDim(a.getContext(), -1)));
}

DimExpr mulDims(DimExpr a, DimExpr b) {
  if (!a || !b)
    return {};
  Terms left = termsOf(a), right = termsOf(b);
  if (left.size() * right.size() > kMaxTerms) {
    SmallVector<DimExpr> factors{a, b};
    llvm::sort(factors, [](DimExpr x, DimExpr y) { return compare(x, y) < 0; });
    return node(DimKind::Mul, factors);
  }
  Terms product;
  for (const Term &x : left)
    for (const Term &y : right) {
      std::optional<int64_t> coefficient = llvm::checkedMul(x.coefficient, y.coefficient);
      if (!coefficient)
        return {};
      Term term{*coefficient, x.atoms};
      llvm::append_range(term.atoms, y.atoms);
      product.push_back(std::move(term));
    }
  return fromTerms(a.getContext(), std::move(product));
}

DimExpr productOfDims(MLIRContext *context, ArrayRef<DimExpr> dims) {
  DimExpr product = constantDim(context, 1);
  for (DimExpr dim : dims)
    product = mulDims(product, dim);
  return product;
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

/// Rounded down; nothing for a divisor that is not positive.
static std::optional<int64_t> floorDivide(int64_t a, int64_t b) {
  if (b <= 0)
    return std::nullopt;
  return a / b - (a % b != 0 && a < 0);
}

/// a / b for single terms; nothing where b is no factor of a.
static std::optional<Term> divideTerm(Term a, const Term &b) {
  if (b.coefficient == 0 || a.coefficient % b.coefficient != 0)
    return std::nullopt;
  a.coefficient /= b.coefficient;
  for (DimExpr atom : b.atoms) {
    auto *found = llvm::find(a.atoms, atom);
    if (found == a.atoms.end())
      return std::nullopt;
    a.atoms.erase(found);
  }
  return a;
}

/// a / b where b is a factor of a, as expressions; null where it is not. Polynomial division: terms stand in a monomial order.
static DimExpr divideExactly(DimExpr a, DimExpr b) {
  MLIRContext *context = a.getContext();
  if (b.isConstant(0))
    return {};
  Term leading = termsOf(b).front();
  Terms quotient;
  for (DimExpr rest = a; !rest.isConstant(0);) {
    std::optional<Term> next = divideTerm(termsOf(rest).front(), leading);
    if (!next || quotient.size() == kMaxTerms)
      return {};
    rest = subDims(rest, mulDims(fromTerm(context, *next), b));
    if (!rest)
      return {};
    quotient.push_back(std::move(*next));
  }
  return fromTerms(context, std::move(quotient));
}

namespace {
struct Bounds {
  std::optional<int64_t> low, high;
};
} // namespace
static Bounds boundsOf(DimExpr e);

/// floor(a / divisor). What is certain stands outside of the division, so that equal sizes look equal however they were computed:
/// the window counts of convolution, (x - 1) / 2 + 1 and ceil(x / 2), are both floordiv(x + 1, 2).
static DimExpr floorDivide(DimExpr a, int64_t divisor) {
  MLIRContext *context = a.getContext();
  Terms whole, rest;
  int64_t common = divisor; // of the rest's coefficients and the divisor
  for (Term term : termsOf(a)) {
    // Rounded towards 0, but the constant down, so that it ends in 0 .. divisor - 1.
    int64_t quotient = term.atoms.empty() ? *floorDivide(term.coefficient, divisor) : term.coefficient / divisor;
    if (quotient)
      whole.push_back({quotient, term.atoms});
    term.coefficient -= quotient * divisor;
    if (!term.coefficient)
      continue;
    if (!term.atoms.empty())
      common = std::gcd(common, term.coefficient);
    rest.push_back(std::move(term));
  }
  for (Term &term : rest)
    term.coefficient = *floorDivide(term.coefficient, common);
  divisor /= common;
  DimExpr outside = fromTerms(context, std::move(whole)), inside = fromTerms(context, std::move(rest));
  if (!outside || !inside)
    return {};
  if (divisor == 1)
    return addDims(outside, inside);
  Bounds bounds = boundsOf(inside);
  if (bounds.low && *bounds.low >= 0 && bounds.high && *bounds.high < divisor)
    return outside;
  // floor((floor(e / m) + c) / k) = floor((e + c * m) / (m * k))
  Terms terms = termsOf(inside);
  const Term &first = terms.front();
  bool isNested = terms.size() <= 2 && first.coefficient == 1 && first.atoms.size() == 1 && first.atoms[0].getKind() == DimKind::FloorDiv &&
                  first.atoms[0].getOperand(1).getConstant() && (terms.size() == 1 || terms[1].atoms.empty());
  if (isNested) {
    int64_t inner = *first.atoms[0].getOperand(1).getConstant();
    std::optional<int64_t> product = llvm::checkedMul(inner, divisor);
    std::optional<int64_t> shift = llvm::checkedMul(inner, terms.size() == 1 ? int64_t(0) : terms[1].coefficient);
    if (product && shift)
      if (DimExpr shifted = addDims(first.atoms[0].getOperand(0), constantDim(context, *shift)))
        return addDims(outside, floorDivide(shifted, *product));
  }
  return addDims(outside, node(DimKind::FloorDiv, {inside, constantDim(context, divisor)}));
}

/// Dividends are moved by at most this much.
static constexpr int64_t kLargestShift = int64_t(1) << 32;

static DimExpr divide(DimKind kind, DimExpr a, DimExpr b) {
  if (!a || !b)
    return {};
  if (b.isConstant(1))
    return a;
  if (a.isConstant(0) && b.getConstant().value_or(1) > 0)
    return a;
  if (std::optional<int64_t> divisor = b.getConstant()) {
    if (*divisor <= 0)
      return {};
    if (std::optional<int64_t> x = a.getConstant()) {
      int64_t floor = *floorDivide(*x, *divisor);
      return constantDim(a.getContext(), kind == DimKind::FloorDiv || *x % *divisor == 0 ? floor : floor + 1);
    }
    if (kind == DimKind::CeilDiv && *divisor > kLargestShift) // adding to the dividend might overflow at run time
      return node(kind, {a, b});
    a = kind == DimKind::CeilDiv ? addDims(a, constantDim(a.getContext(), *divisor - 1)) : a;
    return a ? floorDivide(a, *divisor) : DimExpr();
  }
  if (a == b)
    return constantDim(a.getContext(), 1); // sizes that divide are not 0: a division by 0 is an error at run time
  if (DimExpr quotient = divideExactly(a, b))
    return quotient;
  return node(kind, {a, b});
}

DimExpr floorDivDims(DimExpr a, DimExpr b) { return divide(DimKind::FloorDiv, a, b); }
DimExpr ceilDivDims(DimExpr a, DimExpr b) { return divide(DimKind::CeilDiv, a, b); }

DimExpr modDims(DimExpr a, DimExpr b) {
  if (!a || !b)
    return {};
  std::optional<int64_t> y = b.getConstant();
  if (y && *y <= 0)
    return {};
  if (y) { // multiples of the divisor do not matter
    Terms rest;
    for (Term term : termsOf(a)) {
      term.coefficient -= *floorDivide(term.coefficient, *y) * *y;
      rest.push_back(std::move(term));
    }
    a = fromTerms(a.getContext(), std::move(rest));
    if (!a)
      return {};
    Bounds bounds = boundsOf(a);
    if (bounds.low && *bounds.low >= 0 && bounds.high && *bounds.high < *y)
      return a;
  }
  if (b.isConstant(1) || a == b || divideExactly(a, b))
    return constantDim(a.getContext(), 0);
  return node(DimKind::Mod, {a, b});
}

//===----------------------------------------------------------------------===//
// Order and choice
//===----------------------------------------------------------------------===//

std::string lateSymbolName(StringRef stem, int64_t k, bool isCount) {
  return (stem + (isCount ? "[n" : "[") + Twine(k) + "]").str();
}

/// Only names of the compiler's making contain '['; they stand for elements read from data.
static bool mayBeNegative(DimExpr e) {
  StringRef name = e.getSymbol().getValue();
  size_t bracket = name.rfind('[');
  return bracket != StringRef::npos && !name.substr(bracket).starts_with("[n");
}

static std::optional<int64_t> combine(std::optional<int64_t> a, std::optional<int64_t> b,
                                      std::optional<int64_t> (*op)(int64_t, int64_t)) {
  return a && b ? op(*a, *b) : std::nullopt;
}

static Bounds boundsOf(DimExpr e) {
  auto bounds = [&](unsigned i) { return boundsOf(e.getOperand(i)); };
  auto either = [&](Bounds x, Bounds y) {
    auto lesser = [](int64_t a, int64_t b) { return std::optional<int64_t>(std::min(a, b)); };
    auto greater = [](int64_t a, int64_t b) { return std::optional<int64_t>(std::max(a, b)); };
    return Bounds{combine(x.low, y.low, lesser), combine(x.high, y.high, greater)};
  };
  switch (e.getKind()) {
  case DimKind::Const:
    return {e.getValue(), e.getValue()};
  case DimKind::Symbol:
    return mayBeNegative(e) ? Bounds{} : Bounds{0, std::nullopt};
  case DimKind::Add: {
    Bounds sum{0, 0};
    for (unsigned i = 0; i != e.getOperands().size(); ++i) {
      Bounds next = bounds(i);
      sum.low = combine(sum.low, next.low, llvm::checkedAdd<int64_t>);
      sum.high = combine(sum.high, next.high, llvm::checkedAdd<int64_t>);
    }
    return sum;
  }
  case DimKind::Mul: {
    Term term = termOf(e);
    Bounds product{1, 1};
    for (DimExpr atom : term.atoms) {
      Bounds next = boundsOf(atom);
      if (!next.low || *next.low < 0)
        return {};
      product.low = combine(product.low, next.low, llvm::checkedMul<int64_t>);
      product.high = combine(product.high, next.high, llvm::checkedMul<int64_t>);
    }
    if (term.coefficient < 0)
      std::swap(product.low, product.high);
    product.low = combine(product.low, term.coefficient, llvm::checkedMul<int64_t>);
    product.high = combine(product.high, term.coefficient, llvm::checkedMul<int64_t>);
    return product;
  }
  case DimKind::FloorDiv:
  case DimKind::CeilDiv: {
    Bounds a = bounds(0), quotient;
    if (a.low && *a.low >= 0)
      quotient.low = 0;
    if (a.high && *a.high >= 0)
      quotient.high = a.high;
    if (std::optional<int64_t> divisor = e.getOperand(1).getConstant()) {
      int64_t roundUp = e.getKind() == DimKind::CeilDiv ? *divisor - 1 : 0;
      auto divideBound = [&](std::optional<int64_t> bound) -> std::optional<int64_t> {
        std::optional<int64_t> shifted = bound ? llvm::checkedAdd(*bound, roundUp) : std::nullopt;
        return shifted ? floorDivide(*shifted, *divisor) : std::nullopt;
      };
      quotient = {divideBound(a.low), divideBound(a.high)};
    }
    return quotient;
  }
  case DimKind::Mod: {
    Bounds b = bounds(1);
    return {0, b.high ? std::optional<int64_t>(*b.high - 1) : std::nullopt};
  }
  case DimKind::Min: {
    Bounds a = bounds(0), b = bounds(1), result = either(a, b);
    result.high = a.high && b.high ? std::min(*a.high, *b.high) : (a.high ? a.high : b.high);
    return result;
  }
  case DimKind::Max: {
    Bounds a = bounds(0), b = bounds(1), result = either(a, b);
    result.low = a.low && b.low ? std::max(*a.low, *b.low) : (a.low ? a.low : b.low);
    return result;
  }
  case DimKind::SelectEq:
  case DimKind::SelectLt:
    return either(bounds(2), bounds(3));
  case DimKind::ScaledFloor:
    return {bounds(0).low && *bounds(0).low >= 0 ? std::optional<int64_t>(0) : std::nullopt, std::nullopt};
  }
  llvm_unreachable("all kinds are handled");
}

std::optional<int64_t> lowerBound(DimExpr e) { return e ? boundsOf(e).low : std::nullopt; }
std::optional<int64_t> upperBound(DimExpr e) { return e ? boundsOf(e).high : std::nullopt; }

bool provablyEqual(DimExpr a, DimExpr b) { return a && a == b; }

bool provablyDifferent(DimExpr a, DimExpr b) {
  DimExpr difference = subDims(a, b);
  if (!difference)
    return false;
  Bounds bounds = boundsOf(difference);
  return (bounds.low && *bounds.low > 0) || (bounds.high && *bounds.high < 0);
}

/// Nothing: not known. True: a < b for every value of the symbols. False: a >= b for every value.
static std::optional<bool> isLess(DimExpr a, DimExpr b) {
  DimExpr difference = subDims(a, b);
  if (!difference)
    return std::nullopt;
  Bounds bounds = boundsOf(difference);
  if (bounds.high && *bounds.high < 0)
    return true;
  if (bounds.low && *bounds.low >= 0)
    return false;
  return std::nullopt;
}

static DimExpr extremum(DimKind kind, DimExpr a, DimExpr b) {
  if (!a || !b)
    return {};
  if (a == b)
    return a;
  // min(x, max(x, y)) = x, and the other way round.
  DimKind dual = kind == DimKind::Min ? DimKind::Max : DimKind::Min;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (y.getKind() == dual && llvm::is_contained(y.getOperands(), x))
      return x;
  // min(1, min(2, x)) = min(1, x).
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (x.getConstant() && y.getKind() == kind)
      for (unsigned i = 0; i != 2; ++i)
        if (std::optional<int64_t> other = y.getOperand(i).getConstant())
          return extremum(kind, constantDim(a.getContext(), kind == DimKind::Min ? std::min(*x.getConstant(), *other) : std::max(*x.getConstant(), *other)),
                          y.getOperand(1 - i));
  if (std::optional<bool> less = isLess(a, b))
    return *less == (kind == DimKind::Min) ? a : b;
  if (std::optional<bool> less = isLess(b, a))
    return *less == (kind == DimKind::Min) ? b : a;
  return compare(a, b) < 0 ? node(kind, {a, b}) : node(kind, {b, a});
}

DimExpr minDims(DimExpr a, DimExpr b) { return extremum(DimKind::Min, a, b); }
DimExpr maxDims(DimExpr a, DimExpr b) { return extremum(DimKind::Max, a, b); }

DimExpr selectEqDims(DimExpr a, DimExpr b, DimExpr x, DimExpr y) {
  if (!a || !b || !x || !y)
    return {};
  if (a.isSymbol() && b.getConstant()) // x counts only where a has that value
    x = substituteDims(x, [&](StringRef name) { return name == a.getSymbol().getValue() ? b : DimExpr(); });
  if (!x)
    return {};
  if (x == y || provablyEqual(a, b))
    return x;
  if (provablyDifferent(a, b) || (a == x && b == y) || (a == y && b == x))
    return y;
  return node(DimKind::SelectEq, {a, b, x, y});
}

DimExpr selectLtDims(DimExpr a, DimExpr b, DimExpr x, DimExpr y) {
  if (!a || !b || !x || !y)
    return {};
  if (x == y)
    return x;
  if (std::optional<bool> less = isLess(a, b))
    return *less ? x : y;
  return node(DimKind::SelectLt, {a, b, x, y});
}

static std::optional<int64_t> scaledFloor(int64_t value, double scale) {
  double product = std::floor(static_cast<double>(value) * scale);
  if (!(product >= -0x1p62 && product <= 0x1p62))
    return std::nullopt;
  return static_cast<int64_t>(product);
}

DimExpr scaledFloorDims(DimExpr a, double scale) {
  if (!a)
    return {};
  if (scale == 1)
    return a;
  if (std::optional<int64_t> value = a.getConstant()) {
    std::optional<int64_t> result = scaledFloor(*value, scale);
    return result ? constantDim(a.getContext(), *result) : DimExpr();
  }
  return node(DimKind::ScaledFloor, {a}, scale);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

/// Builds the same kind of expression from new operands, canonicalising.
static DimExpr rebuild(DimExpr e, ArrayRef<DimExpr> operands) {
  switch (e.getKind()) {
  case DimKind::Const:
  case DimKind::Symbol:
    return e;
  case DimKind::Add:
  case DimKind::Mul: {
    DimExpr result = operands[0];
    for (DimExpr operand : operands.drop_front())
      result = e.getKind() == DimKind::Add ? addDims(result, operand) : mulDims(result, operand);
    return result;
  }
  case DimKind::FloorDiv:
    return floorDivDims(operands[0], operands[1]);
  case DimKind::CeilDiv:
    return ceilDivDims(operands[0], operands[1]);
  case DimKind::Mod:
    return modDims(operands[0], operands[1]);
  case DimKind::Min:
    return minDims(operands[0], operands[1]);
  case DimKind::Max:
    return maxDims(operands[0], operands[1]);
  case DimKind::SelectEq:
    return selectEqDims(operands[0], operands[1], operands[2], operands[3]);
  case DimKind::SelectLt:
    return selectLtDims(operands[0], operands[1], operands[2], operands[3]);
  case DimKind::ScaledFloor:
    return scaledFloorDims(operands[0], llvm::bit_cast<double>(e.getValue()));
  }
  llvm_unreachable("all kinds are handled");
}

DimExpr substituteDims(DimExpr e, llvm::function_ref<DimExpr(StringRef)> replacement) {
  if (!e)
    return {};
  if (e.isSymbol()) {
    DimExpr with = replacement(e.getSymbol().getValue());
    return with ? with : e;
  }
  SmallVector<DimExpr> operands;
  for (Attribute operand : e.getOperands()) {
    operands.push_back(substituteDims(cast<DimExpr>(operand), replacement));
    if (!operands.back())
      return {};
  }
  return rebuild(e, operands);
}

void forEachSymbol(DimExpr e, llvm::function_ref<void(StringRef)> visit) {
  if (e.isSymbol())
    visit(e.getSymbol().getValue());
  for (Attribute operand : e.getOperands())
    forEachSymbol(cast<DimExpr>(operand), visit);
}

std::optional<int64_t> evaluateDim(DimExpr e, llvm::function_ref<std::optional<int64_t>(StringRef)> value) {
  DimExpr result = substituteDims(e, [&](StringRef name) -> DimExpr {
    std::optional<int64_t> v = value(name);
    return v ? constantDim(e.getContext(), *v) : DimExpr();
  });
  return result ? result.getConstant() : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static StringRef functionName(DimKind kind) {
  switch (kind) {
  case DimKind::FloorDiv:
    return "floordiv";
  case DimKind::CeilDiv:
    return "ceildiv";
  case DimKind::Mod:
    return "mod";
  case DimKind::Min:
    return "min";
  case DimKind::Max:
    return "max";
  case DimKind::SelectEq:
    return "select_eq";
  case DimKind::SelectLt:
    return "select_lt";
  case DimKind::ScaledFloor:
    return "scaled_floor";
  default:
    return {};
  }
}

static bool isBareName(StringRef name) {
  return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

static void print(llvm::raw_ostream &os, DimExpr e) {
  switch (e.getKind()) {
  case DimKind::Const:
    os << e.getValue();
    return;
  case DimKind::Symbol:
    if (isBareName(e.getSymbol().getValue())) {
      os << e.getSymbol().getValue();
    } else {
      os << '"';
      llvm::printEscapedString(e.getSymbol().getValue(), os);
      os << '"';
    }
    return;
  case DimKind::Add:
  case DimKind::Mul:
    llvm::interleave(
        e.getOperands(), os,
        [&](Attribute operand) {
          auto part = cast<DimExpr>(operand);
          bool parentheses = e.getKind() == DimKind::Mul && part.getKind() == DimKind::Add;
          os << (parentheses ? "(" : "");
          print(os, part);
          os << (parentheses ? ")" : "");
        },
        e.getKind() == DimKind::Add ? " + " : " * ");
    return;
  default:
    os << functionName(e.getKind()) << '(';
    llvm::interleaveComma(e.getOperands(), os, [&](Attribute operand) { print(os, cast<DimExpr>(operand)); });
    if (e.getKind() == DimKind::ScaledFloor)
      os << ", " << e.getValue();
    os << ')';
  }
}

std::string toString(DimExpr e) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (e)
    print(os, e);
  else
    os << "?";
  return text;
}

std::string toString(ArrayRef<DimExpr> dims) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(dims, os, [&](DimExpr dim) { os << toString(dim); });
  os << "]";
  return text;
}

/// An expression nested deeper than this is refused; the reader's stack is not the limit.
static constexpr unsigned kMaxDepth = 200;

static DimExpr parseSum(AsmParser &parser, unsigned depth);

static DimExpr parseCall(AsmParser &parser, StringRef name, SMLoc where, unsigned depth) {
  SmallVector<DimExpr> operands;
  std::optional<int64_t> scaleBits;
  auto parseOperand = [&]() -> ParseResult {
    if (name == "scaled_floor" && operands.size() == 1) {
      scaleBits.emplace();
      return parser.parseInteger(*scaleBits);
    }
    operands.push_back(parseSum(parser, depth + 1));
    return success(static_cast<bool>(operands.back()));
  };
  if (parser.parseCommaSeparatedList(parseOperand) || parser.parseRParen())
    return {};
  DimExpr result;
  if (operands.size() == 2 && name == "floordiv")
    result = floorDivDims(operands[0], operands[1]);
  else if (operands.size() == 2 && name == "ceildiv")
    result = ceilDivDims(operands[0], operands[1]);
  else if (operands.size() == 2 && name == "mod")
    result = modDims(operands[0], operands[1]);
  else if (operands.size() == 2 && name == "min")
    result = minDims(operands[0], operands[1]);
  else if (operands.size() == 2 && name == "max")
    result = maxDims(operands[0], operands[1]);
  else if (operands.size() == 4 && name == "select_eq")
    result = selectEqDims(operands[0], operands[1], operands[2], operands[3]);
  else if (operands.size() == 4 && name == "select_lt")
    result = selectLtDims(operands[0], operands[1], operands[2], operands[3]);
  else if (scaleBits && name == "scaled_floor")
    result = scaledFloorDims(operands[0], llvm::bit_cast<double>(*scaleBits));
  else
    return parser.emitError(where, "no dimension function '") << name << "' of " << operands.size() << " operands", DimExpr();
  if (!result)
    parser.emitError(where, "the dimension expression has no value");
  return result;
}

static DimExpr parseFactor(AsmParser &parser, unsigned depth) {
  SMLoc where = parser.getCurrentLocation();
  if (depth > kMaxDepth)
    return parser.emitError(where, "dimension expression nested deeper than ") << kMaxDepth, DimExpr();
  MLIRContext *context = parser.getContext();
  int64_t value;
  OptionalParseResult integer = parser.parseOptionalInteger(value);
  if (integer.has_value())
    return succeeded(*integer) ? constantDim(context, value) : DimExpr();
  if (succeeded(parser.parseOptionalLParen())) {
    DimExpr inner = parseSum(parser, depth + 1);
    return inner && succeeded(parser.parseRParen()) ? inner : DimExpr();
  }
  std::string text;
  if (succeeded(parser.parseOptionalString(&text)))
    return symbolDim(context, text);
  StringRef name;
  if (failed(parser.parseOptionalKeyword(&name)))
    return parser.emitError(where, "expected a dimension: an integer, a symbol or a function"), DimExpr();
  if (succeeded(parser.parseOptionalLParen()))
    return parseCall(parser, name, where, depth);
  return symbolDim(context, name);
}

static DimExpr parseSum(AsmParser &parser, unsigned depth) {
  DimExpr sum;
  do {
    DimExpr product = parseFactor(parser, depth);
    while (product && succeeded(parser.parseOptionalStar()))
      product = mulDims(product, parseFactor(parser, depth));
    if (!product)
      return {};
    sum = sum ? addDims(sum, product) : product;
  } while (sum && succeeded(parser.parseOptionalPlus()));
  return sum;
}

void DimExprAttr::print(AsmPrinter &printer) const { printer << '<' << dlc::toString(*this) << '>'; }

Attribute DimExprAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  DimExpr e = parseSum(parser, 0);
  return e && succeeded(parser.parseGreater()) ? e : DimExpr();
}

void InfoAttr::print(AsmPrinter &printer) const {
  printer << '<' << dlc::toString(getDims());
  if (getLayout())
    printer << ", " << getLayout();
  printer << '>';
}

Attribute InfoAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimExpr> dims;
  auto parseDim = [&]() -> ParseResult {
    dims.push_back(parseSum(parser, 0));
    return success(static_cast<bool>(dims.back()));
  };
  Attribute layout;
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) ||
      (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout)) || parser.parseGreater())
    return {};
  return InfoAttr::get(parser.getContext(), dims, layout);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

SmallVector<DimExpr> dimsOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto info = dyn_cast_or_null<InfoAttr>(tensor.getEncoding()))
    return SmallVector<DimExpr>(info.getDims());
  SmallVector<DimExpr> dims;
  for (int64_t size : tensor.getShape())
    dims.push_back(constantDim(type.getContext(), size));
  return dims;
}

RankedTensorType tensorType(ArrayRef<DimExpr> dims, Type elementType, Attribute layout) {
  SmallVector<int64_t> shape;
  bool isStatic = true;
  for (DimExpr dim : dims) {
    shape.push_back(dim.getConstant().value_or(ShapedType::kDynamic));
    isStatic &= dim.getConstant().has_value();
  }
  Attribute encoding = isStatic && !layout ? Attribute() : InfoAttr::get(elementType.getContext(), dims, layout);
  return RankedTensorType::get(shape, elementType, encoding);
}

RankedTensorType boundaryType(ArrayRef<DimExpr> dims, Type elementType) {
  return tensorType(dims, elementType, isSubByte(elementType) ? PackedAttr::get(elementType.getContext()) : Attribute());
}

Attribute layoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto info = tensor ? dyn_cast_or_null<InfoAttr>(tensor.getEncoding()) : InfoAttr();
  return info ? info.getLayout() : Attribute();
}

bool isPacked(Type type) { return isa_and_nonnull<PackedAttr>(layoutOf(type)); }

bool isSubByte(Type elementType) {
  return elementType.isIntOrFloat() && elementType.getIntOrFloatBitWidth() < 8 && !elementType.isInteger(1);
}

bool isSmallFloat(Type elementType) { return isa<FloatType>(elementType) && elementType.getIntOrFloatBitWidth() <= 8; }

Type storageElementType(Type elementType) {
  if (isa<IntegerType>(elementType) || isSmallFloat(elementType))
    return IntegerType::get(elementType.getContext(), std::max(elementType.getIntOrFloatBitWidth(), 8u));
  return elementType;
}

RankedTensorType storageType(RankedTensorType type) {
  Type element = storageElementType(type.getElementType());
  if (!isPacked(type))
    return RankedTensorType::get(type.getShape(), element);
  DimExpr bytes = storageDims(type).front();
  return RankedTensorType::get({bytes.getConstant().value_or(ShapedType::kDynamic)}, element);
}

SmallVector<DimExpr> storageDims(RankedTensorType type) {
  SmallVector<DimExpr> dims = dimsOf(type);
  if (!isPacked(type))
    return dims;
  MLIRContext *context = type.getContext();
  return {ceilDivDims(productOfDims(context, dims), constantDim(context, 8 / type.getElementTypeBitWidth()))};
}

} // namespace dlc
