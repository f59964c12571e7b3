/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// A module in memory: mapped, verified, immutable. Everything here may be trusted by the interpreter; Verify.cpp is
// where that trust comes from.
#ifndef DLCRT_MODULE_H
#define DLCRT_MODULE_H

#include "Expr.h"
#include "Memory.h"
#include "Status.h"
#include "dlcrt/format.h"

#include <atomic>

namespace dlcrt::impl {

/// A SLOT instruction of the fixed or the symbolic class.
struct PlannedSlot {
  uint64_t offset; // fixed: in the arena
  uint32_t bytesExpr, device;
  uint32_t firstStage, lastStage;
};

/// A verified plan, and what the verifier found out about it.
struct Plan {
  const dlcrt_plan_header *header = nullptr;
  Span<dlcrt_expr_node> exprs;
  Span<uint8_t> instructions;
  Vector<uint32_t> lateNodes;   // those with late[node] = 1, ascending
  Vector<uint8_t> late;         // per node: 1 = depends on a late symbol, so that it gets its values during the run
  Vector<PlannedSlot> symbolic; // by ordinal
  Vector<PlannedSlot> fixed;    // in the order of the plan
  Vector<const dlcrt_instr_call *> calls;
  Vector<uint8_t> sizing; // per symbol of the function: 1 = the size of a slot of the arena depends on it
  // The most that one instruction has: what the interpreter keeps room for.
  uint32_t maxBuffers = 0, maxScalars = 0, maxTensors = 0, maxDims = 0;

  explicit Plan(Memory &memory)
      : lateNodes(memory), late(memory), symbolic(memory), fixed(memory), calls(memory), sizing(memory) {}
};

/// A range of memory, and whose it is: the application's, mapped, or allocated from `Module::memory`.
struct Region {
  enum Owner { Application, System, Allocator };

  uint8_t *data = nullptr;
  uint64_t bytes = 0;
  Owner owner = Application;
};

struct Module {
  std::atomic<uint32_t> references{1};
  Memory memory;
  Vector<char> name; // how messages call it, NUL-terminated

  Region file;      // the whole file, read-only; of a static module all before CODE
  Region code;      // CODE, read and execute
  Region constants; // CONST when it was read instead of mapped
  bool isStatic = false;

  // Views into `file`.
  const dlcrt_file_header *header = nullptr;
  Span<char> strings;
  Span<dlcrt_function_desc> functions;
  Span<dlcrt_symbol_desc> symbols;
  Span<dlcrt_value_desc> values;
  Span<dlcrt_expr_node> exprs;
  Span<uint32_t> dims;
  Span<dlcrt_variant_desc> variants;
  Span<dlcrt_kernel_desc> kernels;
  Span<uint32_t> imports;
  Span<dlcrt_constant> constantTable;
  Span<uint64_t> constantHashes;
  Span<dlcrt_state_desc> states;
  Span<dlcrt_symbol_desc> stateSymbols;
  Span<dlcrt_state_function> stateFunctions;
  Span<dlcrt_expr_node> stateExprs;
  Span<uint32_t> stateDims, stateNumbers;
  Span<dlcrt_debug_entry> debug;
  Span<uint8_t> planBytes, codeBytes, constantBytes; // sections
  uint32_t maxSymbols = 0;                           // of any function

  Array<Plan> plans; // one a variant

  Module() : name(memory), plans(memory) {}

  /// DLCRT_NO_INDEX if there is none of this name.
  uint32_t findFunction(const char *name) const;
  const char *string(uint32_t offset) const { return strings.data + offset; }
  const dlcrt_value_desc &input(const dlcrt_function_desc &f, uint32_t i) const { return values[f.first_input + i]; }
  const dlcrt_value_desc &output(const dlcrt_function_desc &f, uint32_t i) const { return values[f.first_output + i]; }
  /// Node of a value's dimension, DLCRT_NONE for a late one.
  uint32_t dim(const dlcrt_value_desc &value, uint32_t i) const {
    return value.first_dim == DLCRT_NONE ? DLCRT_NONE : dims[value.first_dim + i];
  }
  /// What a function does with states; null if nothing.
  const dlcrt_state_function *stateUse(uint32_t function) const;
  const uint8_t *constant(uint32_t i) const { return constantBytes.data + constantTable[i].offset; }
};

Status openFile(const char *path, const dlcrt_module_options *options, dlcrt_module **module, Error *error);
Status openMemory(const void *data, uint64_t bytes, const dlcrt_module_options *options, dlcrt_module **module,
                  Error *error);
Status openStatic(const dlcrt_static_module *data, const dlcrt_module_options *options, dlcrt_module **module,
                  Error *error);
void retain(Module &module);
void release(Module &module);

/// Names of a function's symbols, for printExpr.
struct FunctionSymbols {
  const Module &module;
  const dlcrt_function_desc &function;

  SymbolNames names() const { return {this, nameOf}; }
  static const char *nameOf(const void *self, int64_t symbol);
};

/// Names of the states' symbols.
struct StateSymbols {
  const Module &module;

  SymbolNames names() const { return {this, nameOf}; }
  static const char *nameOf(const void *self, int64_t symbol);
};

// Verify.cpp
/// Checks the file in `module.file` and sets all views; `module.code` is needed only of a static module.
Status verifyModule(Module &module, Error *error);
/// Checks the hashes of the constants.
Status verifyConstants(const Module &module, Error *error);

} // namespace dlcrt::impl

/// The handle of the C API.
struct dlcrt_module : dlcrt::impl::Module {};

#endif
