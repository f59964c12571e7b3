/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Expr.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

using namespace dlcrt::impl;

int dlcrt::impl::operandCount(uint32_t kind) {
  switch (kind) {
  case DLCRT_EXPR_CONST:
  case DLCRT_EXPR_SYMBOL:
    return 0;
  case DLCRT_EXPR_SCALED_FLOOR:
    return 1;
  case DLCRT_EXPR_ADD:
  case DLCRT_EXPR_MUL:
  case DLCRT_EXPR_FLOORDIV:
  case DLCRT_EXPR_CEILDIV:
  case DLCRT_EXPR_MOD:
  case DLCRT_EXPR_MIN:
  case DLCRT_EXPR_MAX:
    return 2;
  case DLCRT_EXPR_SELECT_EQ:
  case DLCRT_EXPR_SELECT_LT:
    return 4;
  default:
    return -1;
  }
}

static double asDouble(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/// floor(a / b) for b > 0.
static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/// The operation on valid operands. False = overflow.
static bool apply(const dlcrt_expr_node &node, int64_t a, int64_t b, int64_t &result) {
  switch (node.kind) {
  case DLCRT_EXPR_ADD:
    return !__builtin_add_overflow(a, b, &result);
  case DLCRT_EXPR_MUL:
    return !__builtin_mul_overflow(a, b, &result);
  case DLCRT_EXPR_FLOORDIV:
    if (b <= 0)
      return false;
    result = floorDiv(a, b);
    return true;
  case DLCRT_EXPR_CEILDIV:
    if (b <= 0)
      return false;
    result = a / b + (a % b > 0);
    return true;
  case DLCRT_EXPR_MOD:
    if (b <= 0)
      return false;
    result = a % b + (a % b < 0 ? b : 0);
    return true;
  case DLCRT_EXPR_MIN:
    result = a < b ? a : b;
    return true;
  case DLCRT_EXPR_MAX:
    result = a > b ? a : b;
    return true;
  default: { // DLCRT_EXPR_SCALED_FLOOR
    double scaled = floor(double(a) * asDouble(node.value));
    if (!(scaled >= -9223372036854775808.0 && scaled < 9223372036854775808.0)) // also refuses NaN
      return false;
    result = int64_t(scaled);
    return true;
  }
  }
}

void dlcrt::impl::evaluate(Span<dlcrt_expr_node> nodes, uint64_t first, uint64_t count, const Values &symbols,
                           const Values &registers) {
  auto copyTo = [](const Values &from, uint64_t i, const Values &to, uint64_t j) {
    to.state[j] = from.state[i];
    to.value[j] = from.value[i];
  };
  for (uint64_t i = first; i < first + count; ++i) {
    const dlcrt_expr_node &node = nodes[i];
    switch (node.kind) {
    case DLCRT_EXPR_CONST:
      registers.set(i, node.value);
      continue;
    case DLCRT_EXPR_SYMBOL:
      // A pool may serve several functions; the symbol need not be one of the function that is being evaluated.
      if (uint64_t(node.value) < symbols.count)
        copyTo(symbols, uint64_t(node.value), registers, i);
      else
        registers.state[i] = ValueState::Undefined;
      continue;
    default:
      break;
    }
    bool unary = node.kind == DLCRT_EXPR_SCALED_FLOOR;
    ValueState stateA = registers.state[node.a], stateB = unary ? ValueState::Valid : registers.state[node.b];
    if (stateA != ValueState::Valid || stateB != ValueState::Valid) {
      registers.state[i] = stateA != ValueState::Valid ? stateA : stateB;
      continue;
    }
    int64_t a = registers.value[node.a], b = unary ? 0 : registers.value[node.b], result;
    if (node.kind == DLCRT_EXPR_SELECT_EQ || node.kind == DLCRT_EXPR_SELECT_LT) {
      bool condition = node.kind == DLCRT_EXPR_SELECT_EQ ? a == b : a < b;
      copyTo(registers, condition ? node.c : node.d, registers, i);
    } else if (apply(node, a, b, result)) {
      registers.set(i, result);
    } else {
      registers.state[i] = ValueState::Overflow;
    }
  }
}

void TextWriter::print(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t used = written < room ? written : room;
  int length = vsnprintf(room ? text + used : nullptr, room - used, format, arguments);
  va_end(arguments);
  if (length > 0)
    written += size_t(length);
}

namespace {
struct Printer {
  TextWriter &out;
  Span<dlcrt_expr_node> nodes;
  const SymbolNames &names;
  // A pool is a graph: as a tree it may be exponentially large.
  unsigned left = 1000;

  bool isConstant(uint32_t node, int64_t value) const {
    return nodes[node].kind == DLCRT_EXPR_CONST && nodes[node].value == value;
  }

  void binary(const dlcrt_expr_node &node, const char *before, const char *between, const char *after,
              bool parenthesize) {
    out.print("%s", before);
    print(node.a, parenthesize);
    out.print("%s", between);
    print(node.b, parenthesize);
    out.print("%s", after);
  }

  void print(uint32_t root, bool parenthesize) {
    if (left == 0) {
      out.print("...");
      return;
    }
    --left;
    const dlcrt_expr_node &node = nodes[root];
    const char *open = parenthesize ? "(" : "", *close = parenthesize ? ")" : "";
    switch (node.kind) {
    case DLCRT_EXPR_CONST:
      out.print("%lld", (long long)node.value);
      return;
    case DLCRT_EXPR_SYMBOL:
      out.print("%s", names.name(names.ctx, node.value));
      return;
    case DLCRT_EXPR_ADD:
      return binary(node, open, " + ", close, false);
    case DLCRT_EXPR_MUL:
      return binary(node, open, " * ", close, true);
    case DLCRT_EXPR_FLOORDIV:
      return binary(node, "floor(", " / ", ")", true);
    case DLCRT_EXPR_CEILDIV:
      return binary(node, "ceil(", " / ", ")", true);
    case DLCRT_EXPR_MOD:
      return binary(node, open, " mod ", close, true);
    case DLCRT_EXPR_MIN:
      return binary(node, "min(", ", ", ")", false);
    case DLCRT_EXPR_MAX:
      return binary(node, "max(", ", ", ")", false);
    case DLCRT_EXPR_SCALED_FLOOR:
      out.print("floor(");
      print(node.a, true);
      out.print(" * %g)", asDouble(node.value));
      return;
    default: { // the selects; as a condition when they choose between 1 and 0
      const char *compare = node.kind == DLCRT_EXPR_SELECT_EQ ? " == " : " < ";
      bool condition = isConstant(node.c, 1) && isConstant(node.d, 0);
      if (condition)
        return binary(node, open, compare, close, true);
      binary(node, "(", compare, " ? ", true);
      print(node.c, true);
      out.print(" : ");
      print(node.d, true);
      out.print(")");
    }
    }
  }
};
} // namespace

void dlcrt::impl::printExpr(TextWriter &out, Span<dlcrt_expr_node> nodes, uint32_t root, const SymbolNames &names) {
  Printer{out, nodes, names}.print(root, false);
}
