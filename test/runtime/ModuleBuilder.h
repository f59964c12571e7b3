/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Writes modules for tests, by format.h and independently of the compiler's serializer. The tables are public: tests
// break them to see what the runtime says.
#ifndef DLCRT_TEST_MODULEBUILDER_H
#define DLCRT_TEST_MODULEBUILDER_H

#include "Kernels.h"
#include "dlcrt/format.h"
#include "dlcrt/kernel_abi.h"
#include "dlcrt/runtime.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace dlcrt::test {

using Bytes = std::vector<uint8_t>;
using Numbers = std::vector<uint32_t>;

struct ExprPool {
  std::vector<dlcrt_expr_node> nodes;

  uint32_t constant(int64_t value) { return node(DLCRT_EXPR_CONST, {}, value); }
  uint32_t symbol(int64_t number) { return node(DLCRT_EXPR_SYMBOL, {}, number); }
  uint32_t binary(uint32_t kind, uint32_t a, uint32_t b) { return node(kind, {a, b}); }
  uint32_t add(uint32_t a, uint32_t b) { return binary(DLCRT_EXPR_ADD, a, b); }
  uint32_t mul(uint32_t a, uint32_t b) { return binary(DLCRT_EXPR_MUL, a, b); }
  uint32_t ceilDiv(uint32_t a, uint32_t b) { return binary(DLCRT_EXPR_CEILDIV, a, b); }
  uint32_t select(uint32_t kind, uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return node(kind, {a, b, c, d}); }
  uint32_t node(uint32_t kind, Numbers operands, int64_t value = 0);
};

/// A plan being written. Instructions that define a buffer return its register.
struct PlanBuilder {
  ExprPool exprs;
  Bytes instructions;
  dlcrt_plan_header header = {};
  uint32_t functionSymbols = 0;
  class ModuleBuilder *module = nullptr;

  uint32_t lateSymbol() { return functionSymbols + header.late_symbol_count++; }
  uint32_t constant(uint32_t number, uint32_t device = 0);
  uint32_t input(uint32_t number);
  uint32_t state(uint32_t number);
  uint32_t output(uint32_t number, uint32_t bytes, Numbers dims);
  uint32_t fixedSlot(uint64_t offset, uint32_t bytes, uint32_t first, uint32_t last, uint32_t device = 0);
  uint32_t symbolicSlot(uint32_t bytes, uint32_t first, uint32_t last, uint32_t device = 0);
  uint32_t lateSlot(uint32_t bytes, uint32_t first, uint32_t last, uint32_t device = 0);
  uint32_t view(uint32_t source, uint32_t offset, uint32_t bytes);
  void dim(uint32_t first, uint32_t count);
  /// Evaluates all nodes.
  void dimAll() { dim(0, uint32_t(exprs.nodes.size())); }
  void check(uint32_t condition, const std::string &message, uint32_t value0 = DLCRT_NONE,
             uint32_t value1 = DLCRT_NONE);
  void read(uint32_t buffer, uint32_t dtype, uint32_t index, uint32_t symbol);
  void launch(uint32_t kernel, uint32_t tiles, Numbers buffers, Numbers scalars, uint32_t scratch = DLCRT_NONE,
              uint32_t device = 0, uint32_t debug = DLCRT_NONE);
  void copy(uint32_t destination, uint32_t source, uint32_t bytes);
  void fill(uint32_t buffer, uint32_t dtype, uint32_t elements, Numbers values);
  void stage(uint32_t number);
  struct Tensor {
    uint32_t buffer, dtype;
    Numbers dims;
  };
  void call(const std::string &domain, const std::string &name, uint32_t version, const std::string &attributes,
            std::vector<Tensor> operands, std::vector<Tensor> results);
  /// The blocks are written by the functions given.
  template <typename Then, typename Else> void branch(uint32_t condition, Then then, Else otherwise) {
    Bytes outer = std::move(instructions);
    instructions.clear();
    then();
    Bytes thenBlock = std::move(instructions);
    instructions.clear();
    otherwise();
    Bytes elseBlock = std::move(instructions);
    instructions = std::move(outer);
    emitIf(condition, thenBlock, elseBlock);
  }
  template <typename Body> void loop(uint32_t trip, uint32_t iteration, uint32_t condition, Body body) {
    Bytes outer = std::move(instructions);
    instructions.clear();
    body();
    Bytes block = std::move(instructions);
    instructions = std::move(outer);
    emitLoop(trip, iteration, condition, block);
  }
  void ret();

  /// Appends a struct, and numbers after it.
  template <typename T> T *emit(uint32_t opcode, T instruction, const Numbers &numbers = {}) {
    instruction.head = {uint16_t(opcode), 0, uint32_t((sizeof(T) + 4 * numbers.size() + 7) / 8 * 8)};
    return reinterpret_cast<T *>(append(&instruction, sizeof(T), numbers));
  }
  uint32_t newBuffer() { return header.buffer_count++; }
  Bytes bytes() const;

private:
  uint8_t *append(const void *instruction, size_t bytes, const Numbers &numbers);
  void emitIf(uint32_t condition, const Bytes &thenBlock, const Bytes &elseBlock);
  void emitLoop(uint32_t trip, uint32_t iteration, uint32_t condition, const Bytes &body);
};

struct FunctionBuilder {
  std::string name;
  std::vector<dlcrt_symbol_desc> symbols;
  std::vector<dlcrt_value_desc> inputs, outputs;
};

struct VariantBuilder {
  dlcrt_variant_desc desc = {};
  std::vector<dlcrt_kernel_desc> kernels;
  Bytes code;
  PlanBuilder plan;
};

class ModuleBuilder {
public:
  ModuleBuilder();

  ExprPool exprs; // of the signatures
  std::vector<uint32_t> dims;
  std::vector<FunctionBuilder> functions;
  std::vector<std::unique_ptr<VariantBuilder>> variants;
  std::vector<uint32_t> imports;
  std::vector<dlcrt_constant> constants;
  Bytes constantBytes;
  std::vector<dlcrt_state_desc> states;
  std::vector<dlcrt_symbol_desc> stateSymbols;
  std::vector<dlcrt_state_function> stateFunctions;
  ExprPool stateExprs;
  Numbers stateDims, stateNumbers;
  std::vector<dlcrt_debug_entry> debug;
  std::string strings = std::string(1, '\0');
  dlcrt_file_header header = {};

  uint32_t string(const std::string &text);
  uint32_t addFunction(const std::string &name);
  uint32_t addSymbol(uint32_t function, const std::string &name, int64_t min = 0, int64_t max = INT64_MAX,
                     int64_t divisor = 1);
  /// Dims are nodes of `exprs`, or DLCRT_NONE.
  uint32_t addInput(uint32_t function, const std::string &name, int32_t dtype, Numbers dims);
  uint32_t addOutput(uint32_t function, const std::string &name, int32_t dtype, Numbers dims);
  uint32_t addConstant(const void *data, size_t bytes);
  /// The first symbol is the capacity. Returns a node of `stateExprs`.
  uint32_t addStateSymbol(const std::string &name, int64_t min = 0, int64_t max = INT64_MAX, int64_t divisor = 1);
  /// Dims are nodes of `stateExprs`.
  uint32_t addState(const std::string &name, int32_t dtype, Numbers dims, uint32_t axis);
  /// `symbols`: for each symbol of the states the function's. `growth`: a node of `exprs`.
  void addStateFunction(uint32_t function, uint32_t lengthSymbol, uint32_t growth, Numbers symbols, Numbers states);
  uint32_t addDebug(const std::string &nodes, const std::string &types);
  /// A variant for this machine with the test kernels.
  VariantBuilder &addVariant(uint32_t function, const std::string &target = "cpu:test", int32_t priority = 0);

  /// The file. Hashes are right.
  Bytes build() const;

private:
  dlcrt_value_desc value(const std::string &name, int32_t dtype, const Numbers &dims);
};

/// Makes all hashes of a module right again after its bytes were changed; false if the tables are too damaged for that.
bool rehash(Bytes &module);

/// The section of a kind, or null.
dlcrt_section *findSection(Bytes &module, uint32_t kind);

/// The image of the test kernels.
const Bytes &kernelImage();

/// y[n] = a[n] + b[n], with 'n' free: the module of many tests.
ModuleBuilder addModule();

/// x: i64[rows, n] is appended to state log: i64[rows, capacity], of length 'length' -> sum: i64[1] of all that is
/// there then. A key-value cache in small. "main" appends x once, "twice" two times; "none" has no state. `status`:
/// what a kernel behind the append reports.
ModuleBuilder logModule(uint32_t status = 0);

} // namespace dlcrt::test
#endif
