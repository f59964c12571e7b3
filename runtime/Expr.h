/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Dimension expressions: checked int64 arithmetic over the nodes of a pool.
#ifndef DLCRT_EXPR_H
#define DLCRT_EXPR_H

#include "Memory.h"
#include "dlcrt/format.h"

namespace dlcrt::impl {

/// A value that cannot be computed is an error where it is used, not where it is computed: the other side of a select,
/// or of an `if`, may be meaningless for these dims.
enum class ValueState : uint8_t {
  Undefined = 0, // depends on a symbol without a value
  Valid = 1,
  Overflow = 2 // does not fit into int64, or divides by what is not positive
};

/// Values of symbols or registers.
struct Values {
  int64_t *value = nullptr;
  ValueState *state = nullptr;
  uint64_t count = 0;

  void set(uint64_t i, int64_t v) const {
    value[i] = v;
    state[i] = ValueState::Valid;
  }
};

/// Evaluates the verified nodes [first, first + count) into the registers of the same numbers.
void evaluate(Span<dlcrt_expr_node> nodes, uint64_t first, uint64_t count, const Values &symbols,
              const Values &registers);

/// Number of operands of a kind of node, or -1 for an unknown kind.
int operandCount(uint32_t kind);

/// Text being written into a buffer of the caller's, counted as snprintf does.
class TextWriter {
public:
  TextWriter(char *text, size_t room) : text(text), room(room) {
    if (room)
      text[0] = 0;
  }
  [[gnu::format(printf, 2, 3)]] void print(const char *format, ...);
  size_t length() const { return written; }

private:
  char *text;
  size_t room, written = 0;
};

/// Gives the name of a symbol.
struct SymbolNames {
  const void *ctx;
  const char *(*name)(const void *ctx, int64_t symbol);
};

/// Writes node `root` in the notation of everyday mathematics.
void printExpr(TextWriter &out, Span<dlcrt_expr_node> nodes, uint32_t root, const SymbolNames &names);

} // namespace dlcrt::impl
#endif
