/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Checks the bytes of a module: header, sections, tables. VerifyPlan.cpp checks the plans. Whatever is not refused here
// or checked again when it is used must be harmless: hashes protect against damage, not against intent.
#include "Verify.h"

#include "Dtype.h"
#include "Hash.h"
#include "dlcrt/kernel_abi.h"

using namespace dlcrt::impl;

namespace {

/// Walks over a section, handing out arrays; notices when the section is shorter or longer than they are.
class Cursor {
public:
  explicit Cursor(Span<uint8_t> bytes) : bytes(bytes) {}

  template <typename T> bool take(uint64_t count, Span<T> &out) {
    if (count > (bytes.count - position) / sizeof(T))
      return false;
    out = {reinterpret_cast<const T *>(bytes.data + position), count};
    position += count * sizeof(T);
    return true;
  }
  template <typename T> bool take(const T *&out) {
    Span<T> one;
    bool ok = take(1, one);
    out = one.data;
    return ok;
  }
  /// At the end, but for the padding to 8 bytes.
  bool finished() const { return alignUp(position, 8) == bytes.count; }

private:
  Span<uint8_t> bytes;
  uint64_t position = 0;
};

class ModuleVerifier {
public:
  ModuleVerifier(Module &module, Error *error) : module(module), error(error), symbolLimits(module.memory) {}

  Status run() {
    Status (ModuleVerifier::*const steps[])() = {
        &ModuleVerifier::header,    &ModuleVerifier::sections, &ModuleVerifier::strings,
        &ModuleVerifier::constants, &ModuleVerifier::debug,    &ModuleVerifier::functions,
        &ModuleVerifier::states,    &ModuleVerifier::variants, &ModuleVerifier::allPlans};
    for (auto step : steps)
      if (Status status = (this->*step)())
        return status;
    return DLCRT_OK;
  }

private:
  [[gnu::format(printf, 2, 3)]] Status bad(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    failList(error, DLCRT_ERROR_BAD_MODULE, format, arguments);
    va_end(arguments);
    return DLCRT_ERROR_BAD_MODULE;
  }

  bool isString(uint32_t offset) const { return offset < module.strings.count; }
  bool isSymbol(const dlcrt_symbol_desc &symbol) const {
    return isString(symbol.name) && !(symbol.flags & ~DLCRT_SYMBOL_ANONYMOUS) && symbol.min >= 0 &&
           symbol.min <= symbol.max && symbol.divisor >= 1;
  }

  Status header();
  Status sections();
  Status strings();
  Status constants();
  Status states();
  Status state(uint64_t index, const Vector<uint8_t> &usesCapacity);
  Status stateFunction(uint64_t index);
  Status debug();
  Status functions();
  Status function(uint32_t index);
  Status value(const char *name, const char *what, const dlcrt_function_desc &function, const dlcrt_value_desc &value,
               bool isInput);
  Status variants();
  Status variant(uint32_t index);
  Status allPlans();

  Module &module;
  Error *error;
  Span<uint8_t> section[DLCRT_SECTION_DEBUG + 1];
  Vector<uint32_t> symbolLimits; // per node of FUNCTIONS' pool: 1 + the highest symbol below it
};

const char *const sectionNames[] = {"",     "STRINGS",     "FUNCTIONS", "VARIANTS", "PLAN",
                                    "CODE", "CONST_TABLE", "CONST",     "STATE",    "DEBUG"};

} // namespace

Status ModuleVerifier::header() {
  auto &header = *reinterpret_cast<const dlcrt_file_header *>(module.file.data);
  module.header = &header;
  if (memcmp(header.magic, DLCRT_FORMAT_MAGIC, sizeof(header.magic)) != 0) {
    // The magic holds both line ends, as PNG's does, to say what went wrong.
    if (memcmp(header.magic, DLCRT_FORMAT_MAGIC, 4) == 0)
      return bad("damaged by a transfer that changed line ends (text mode)");
    return bad("not a module: it does not begin with DLCM");
  }
  if (header.major != DLCRT_FORMAT_MAJOR || header.minor != DLCRT_FORMAT_MINOR)
    return fail(error, DLCRT_ERROR_VERSION, "module format %u.%u, but this runtime (%s) reads %u.%u",
                header.major, header.minor, dlcrt_version_string(), DLCRT_FORMAT_MAJOR, DLCRT_FORMAT_MINOR);
  if (!module.isStatic && module.file.bytes != header.file_bytes)
    return bad("%s: it should have %llu bytes, but has %llu",
               module.file.bytes < header.file_bytes ? "truncated" : "something was appended",
               (unsigned long long)header.file_bytes, (unsigned long long)module.file.bytes);
  if (header.reserved != 0)
    return bad("damaged header: a reserved field is not 0");
  return DLCRT_OK;
}

Status ModuleVerifier::sections() {
  const dlcrt_file_header &header = *module.header;
  uint64_t tableBytes = uint64_t(header.section_count) * sizeof(dlcrt_section);
  if (header.section_count > DLCRT_SECTION_DEBUG || tableBytes > module.file.bytes - sizeof(header))
    return bad("damaged header: %u sections", header.section_count);
  const uint8_t *table = module.file.data + sizeof(header);
  if (xxh64(table, tableBytes) != header.header_hash)
    return bad("damaged: the section table does not have the hash it should have");

  for (uint32_t i = 0; i < header.section_count; ++i) {
    const dlcrt_section &entry = reinterpret_cast<const dlcrt_section *>(table)[i];
    if (entry.kind == 0 || entry.kind > DLCRT_SECTION_DEBUG)
      return bad("section %u has unknown kind %u", i, entry.kind);
    const char *name = sectionNames[entry.kind];
    if (section[entry.kind].data)
      return bad("two sections %s", name);
    if (entry.flags != 0)
      return bad("section %s has unknown flags 0x%x", name, entry.flags);
    uint64_t alignment = entry.kind == DLCRT_SECTION_CODE    ? DLCRT_CODE_ALIGNMENT
                         : entry.kind == DLCRT_SECTION_CONST ? DLCRT_CONST_ALIGNMENT
                                                             : 8;
    if (entry.offset % alignment != 0)
      return bad("section %s is at offset %llu, which is not a multiple of %llu", name,
                 (unsigned long long)entry.offset, (unsigned long long)alignment);
    if (module.isStatic && entry.kind == DLCRT_SECTION_CODE) {
      if (entry.offset < module.file.bytes || entry.bytes != module.code.bytes ||
          entry.offset > header.file_bytes || header.file_bytes - entry.offset != entry.bytes)
        return bad("its code is not the last section, or not the code it was made with");
      section[entry.kind] = {module.code.data, entry.bytes};
    } else {
      if (entry.offset < sizeof(header) + tableBytes || entry.offset > module.file.bytes ||
          entry.bytes > module.file.bytes - entry.offset)
        return bad("section %s lies outside the file", name);
      section[entry.kind] = {module.file.data + entry.offset, entry.bytes};
    }
    uint64_t hash = entry.kind == DLCRT_SECTION_CONST ? 0 : xxh64(section[entry.kind].data, entry.bytes);
    if (hash != entry.hash)
      return bad("damaged: section %s does not have the hash it should have", name);
  }
  const uint32_t required[] = {DLCRT_SECTION_STRINGS, DLCRT_SECTION_FUNCTIONS, DLCRT_SECTION_VARIANTS,
                               DLCRT_SECTION_PLAN};
  for (uint32_t kind : required)
    if (!section[kind].data)
      return bad("section %s is missing", sectionNames[kind]);
  if (module.isStatic && !section[DLCRT_SECTION_CODE].data && module.code.bytes)
    return bad("it has code, but no section CODE");
  module.planBytes = section[DLCRT_SECTION_PLAN];
  module.codeBytes = section[DLCRT_SECTION_CODE];
  module.constantBytes = section[DLCRT_SECTION_CONST];
  return DLCRT_OK;
}

Status ModuleVerifier::strings() {
  Span<uint8_t> bytes = section[DLCRT_SECTION_STRINGS];
  // With these, every offset inside begins a terminated string.
  if (bytes.count == 0 || bytes[0] != 0 || bytes[bytes.count - 1] != 0)
    return bad("section STRINGS does not begin and end with NUL");
  module.strings = {reinterpret_cast<const char *>(bytes.data), bytes.count};
  if (!isString(module.header->producer))
    return bad("the producer's name lies outside STRINGS");
  return DLCRT_OK;
}

Status ModuleVerifier::constants() {
  uint64_t bytes = module.constantBytes.count;
  if (!section[DLCRT_SECTION_CONST_TABLE].data)
    return bytes == 0 ? DLCRT_OK : bad("section CONST_TABLE is missing");
  Cursor cursor(section[DLCRT_SECTION_CONST_TABLE]);
  const uint64_t *count, *blocks;
  if (!cursor.take(count) || !cursor.take(*count, module.constantTable) || !cursor.take(blocks) ||
      !cursor.take(*blocks, module.constantHashes) || !cursor.finished())
    return bad("section CONST_TABLE has the wrong size");
  for (uint64_t i = 0; i < *count; ++i) {
    const dlcrt_constant &constant = module.constantTable[i];
    if (constant.offset % DLCRT_BUFFER_ALIGNMENT != 0 || constant.offset > bytes ||
        constant.bytes > bytes - constant.offset)
      return bad("constant %llu lies outside CONST or is not aligned", (unsigned long long)i);
  }
  uint64_t expected = bytes / DLCRT_CONST_HASH_BLOCK + (bytes % DLCRT_CONST_HASH_BLOCK != 0);
  if (*blocks != expected)
    return bad("CONST has %llu blocks, but %llu hashes", (unsigned long long)expected, (unsigned long long)*blocks);
  return DLCRT_OK;
}

Status ModuleVerifier::states() {
  if (!section[DLCRT_SECTION_STATE].data)
    return DLCRT_OK;
  Cursor cursor(section[DLCRT_SECTION_STATE]);
  const dlcrt_states_header *header;
  if (!cursor.take(header) || !cursor.take(header->state_count, module.states) ||
      !cursor.take(header->symbol_count, module.stateSymbols) ||
      !cursor.take(header->function_count, module.stateFunctions) ||
      !cursor.take(header->expr_count, module.stateExprs) || !cursor.take(header->dim_count, module.stateDims) ||
      !cursor.take(header->number_count, module.stateNumbers) || !cursor.finished())
    return bad("section STATE has the wrong size");
  if (header->symbol_count == 0 && header->state_count != 0)
    return bad("the states have no capacity");
  for (uint32_t i = 0; i < header->symbol_count; ++i)
    if (!isSymbol(module.stateSymbols[i]))
      return bad("symbol %u of the states has an invalid name, range or divisor", i);
  if (Status status = verifyExprs(module.stateExprs, header->symbol_count, "STATE", error))
    return status;
  Vector<uint8_t> usesCapacity(module.memory);
  if (!usesCapacity.resize(header->expr_count))
    return failOutOfMemory(error, "the module's tables", header->expr_count);
  for (uint64_t i = 0; i < header->expr_count; ++i) {
    const dlcrt_expr_node &node = module.stateExprs[i];
    const uint32_t operands[] = {node.a, node.b, node.c, node.d};
    usesCapacity[i] = node.kind == DLCRT_EXPR_SYMBOL && node.value == 0;
    for (int j = 0; j < operandCount(node.kind); ++j)
      usesCapacity[i] |= usesCapacity[operands[j]];
  }
  for (uint64_t i = 0; i < header->state_count; ++i)
    if (Status status = state(i, usesCapacity))
      return status;
  for (uint64_t i = 0; i < header->function_count; ++i)
    if (Status status = stateFunction(i))
      return status;
  return DLCRT_OK;
}

/// A state grows along its axis and nowhere else.
Status ModuleVerifier::state(uint64_t index, const Vector<uint8_t> &usesCapacity) {
  const dlcrt_state_desc &desc = module.states[index];
  if (!isString(desc.name) || dtypeBits(int32_t(desc.dtype)) < 8 || desc.dtype == DLCRT_DTYPE_STRING ||
      desc.reserved != 0)
    return bad("state %llu has no valid name or type", (unsigned long long)index);
  const char *name = module.string(desc.name);
  for (uint64_t i = 0; i < index; ++i)
    if (strcmp(module.string(module.states[i].name), name) == 0)
      return bad("two states '%s'", name);
  if (desc.rank > DLCRT_MAX_RANK || desc.axis >= desc.rank ||
      uint64_t(desc.first_dim) + desc.rank > module.stateDims.count)
    return bad("state '%s' has an invalid rank or axis", name);
  for (uint32_t i = 0; i < desc.rank; ++i) {
    uint32_t dim = module.stateDims[desc.first_dim + i];
    if (dim >= module.stateExprs.count || usesCapacity[dim] != (i == desc.axis) ||
        (i == desc.axis && module.stateExprs[dim].kind != DLCRT_EXPR_SYMBOL))
      return bad("dim %u of state '%s' is no dimension of it", i, name);
  }
  return DLCRT_OK;
}

Status ModuleVerifier::stateFunction(uint64_t index) {
  const dlcrt_state_function &use = module.stateFunctions[index];
  if (use.function >= module.functions.count || module.stateUse(use.function) != &use)
    return bad("entry %llu of the functions with states has no function, or one that another has",
               (unsigned long long)index);
  const dlcrt_function_desc &f = module.functions[use.function];
  const char *name = module.string(f.name);
  if (use.length_symbol >= f.symbol_count || use.growth >= module.exprs.count ||
      symbolLimits[use.growth] > f.symbol_count)
    return bad("function '%s': the length of its states is not one of its dims", name);
  uint64_t symbols = module.stateSymbols.count, numbers = module.stateNumbers.count;
  if (uint64_t(use.first_symbol) + symbols > numbers || uint64_t(use.first_state) + use.state_count > numbers ||
      use.state_count == 0)
    return bad("function '%s': its states are not there", name);
  for (uint64_t i = 0; i < symbols; ++i) {
    uint32_t symbol = module.stateNumbers[use.first_symbol + i];
    bool isTaken = symbol == use.length_symbol;
    for (uint64_t j = 0; j < i; ++j)
      isTaken |= module.stateNumbers[use.first_symbol + j] == symbol;
    if (symbol != DLCRT_NONE && (symbol >= f.symbol_count || isTaken))
      return bad("function '%s': symbol %llu of the states is none of its own", name, (unsigned long long)i);
  }
  for (uint32_t i = 0; i < use.state_count; ++i)
    if (module.stateNumbers[use.first_state + i] >= module.states.count)
      return bad("function '%s': its states are not there", name);
  return DLCRT_OK;
}

Status ModuleVerifier::debug() {
  if (!section[DLCRT_SECTION_DEBUG].data)
    return DLCRT_OK;
  Cursor cursor(section[DLCRT_SECTION_DEBUG]);
  const uint64_t *count;
  if (!cursor.take(count) || !cursor.take(*count, module.debug) || !cursor.finished())
    return bad("section DEBUG has the wrong size");
  for (uint64_t i = 0; i < *count; ++i)
    if (!isString(module.debug[i].node_names) || !isString(module.debug[i].op_types))
      return bad("entry %llu of DEBUG has a name outside STRINGS", (unsigned long long)i);
  return DLCRT_OK;
}

Status ModuleVerifier::functions() {
  Cursor cursor(section[DLCRT_SECTION_FUNCTIONS]);
  const dlcrt_functions_header *header;
  if (!cursor.take(header) || !cursor.take(header->function_count, module.functions) ||
      !cursor.take(header->symbol_count, module.symbols) || !cursor.take(header->value_count, module.values) ||
      !cursor.take(header->expr_count, module.exprs) || !cursor.take(header->dim_count, module.dims) ||
      !cursor.finished())
    return bad("section FUNCTIONS has the wrong size");
  if (header->function_count == 0)
    return bad("it has no function");
  for (const dlcrt_function_desc &f : module.functions) // before the pool: it tells how many symbols there can be
    module.maxSymbols = f.symbol_count > module.maxSymbols ? f.symbol_count : module.maxSymbols;
  if (module.maxSymbols > header->symbol_count)
    return bad("a function has %u symbols, but the module only %u", module.maxSymbols, header->symbol_count);
  if (Status status = verifyExprs(module.exprs, module.maxSymbols, "FUNCTIONS", error))
    return status;

  if (!symbolLimits.resize(module.exprs.count))
    return failOutOfMemory(error, "the module's tables", module.exprs.count * sizeof(uint32_t));
  for (uint64_t i = 0; i < module.exprs.count; ++i) {
    const dlcrt_expr_node &node = module.exprs[i];
    uint32_t limit = node.kind == DLCRT_EXPR_SYMBOL ? uint32_t(node.value) + 1 : 0;
    const uint32_t operands[] = {node.a, node.b, node.c, node.d};
    for (int j = 0; j < operandCount(node.kind); ++j)
      limit = symbolLimits[operands[j]] > limit ? symbolLimits[operands[j]] : limit;
    symbolLimits[i] = limit;
  }
  for (uint32_t i = 0; i < header->function_count; ++i)
    if (Status status = function(i))
      return status;
  return DLCRT_OK;
}

Status ModuleVerifier::function(uint32_t index) {
  const dlcrt_function_desc &f = module.functions[index];
  auto outside = [](uint32_t first, uint32_t count, uint64_t total) { return uint64_t(first) + count > total; };
  if (!isString(f.name) || f.reserved != 0 || outside(f.first_symbol, f.symbol_count, module.symbols.count) ||
      outside(f.first_input, f.input_count, module.values.count) ||
      outside(f.first_output, f.output_count, module.values.count))
    return bad("function %u refers to what is not there", index);
  const char *name = module.string(f.name);
  for (uint32_t i = 0; i < f.symbol_count; ++i) {
    const dlcrt_symbol_desc &symbol = module.symbols[f.first_symbol + i];
    if (!isSymbol(symbol))
      return bad("function '%s': symbol %u has an invalid name, range or divisor", name, i);
  }
  for (uint32_t i = 0; i < f.input_count; ++i)
    if (Status status = value(name, "input", f, module.input(f, i), true))
      return status;
  for (uint32_t i = 0; i < f.output_count; ++i)
    if (Status status = value(name, "output", f, module.output(f, i), false))
      return status;
  return DLCRT_OK;
}

Status ModuleVerifier::value(const char *function, const char *what, const dlcrt_function_desc &f,
                             const dlcrt_value_desc &value, bool isInput) {
  if (!isString(value.name))
    return bad("function '%s': an %s has no valid name", function, what);
  const char *name = module.string(value.name);
  if (!dtypeBits(int32_t(value.dtype)) || value.rank > DLCRT_MAX_RANK || value.reserved != 0 ||
      (value.flags & ~(isInput ? DLCRT_VALUE_OPTIONAL : DLCRT_VALUE_LATE)))
    return bad("function '%s': %s '%s' has an invalid type, rank or flag", function, what, name);
  if (value.rank && value.first_dim != DLCRT_NONE && uint64_t(value.first_dim) + value.rank > module.dims.count)
    return bad("function '%s': dims of %s '%s' are not there", function, what, name);
  bool late = false;
  for (uint32_t i = 0; i < value.rank; ++i) {
    uint32_t dim = module.dim(value, i);
    late |= dim == DLCRT_NONE;
    if (dim != DLCRT_NONE && (dim >= module.exprs.count || symbolLimits[dim] > f.symbol_count))
      return bad("function '%s': dim %u of %s '%s' is no dimension of it", function, i, what, name);
  }
  if (late && !(value.flags & DLCRT_VALUE_LATE))
    return bad("function '%s': %s '%s' has an unknown dim, but is not late", function, what, name);
  if (value.default_constant != DLCRT_NONE && (!isInput || value.default_constant >= module.constantTable.count))
    return bad("function '%s': %s '%s' has a default that is not there", function, what, name);
  if (value.alias != DLCRT_NONE && (isInput || value.alias >= f.input_count))
    return bad("function '%s': %s '%s' is the alias of what is not there", function, what, name);
  return DLCRT_OK;
}

Status ModuleVerifier::variants() {
  Cursor cursor(section[DLCRT_SECTION_VARIANTS]);
  const dlcrt_variants_header *header;
  if (!cursor.take(header) || !cursor.take(header->variant_count, module.variants) ||
      !cursor.take(header->kernel_count, module.kernels) || !cursor.take(header->import_count, module.imports) ||
      !cursor.finished())
    return bad("section VARIANTS has the wrong size");
  if (header->reserved != 0)
    return bad("section VARIANTS: a reserved field is not 0");
  for (uint32_t import : module.imports)
    if (import >= DLCRT_IMPORT_COUNT)
      return fail(error, DLCRT_ERROR_VERSION,
                  "it needs number %u of the C library's functions, which this runtime (%s) does not offer", import,
                  dlcrt_version_string());
  for (uint32_t i = 0; i < header->variant_count; ++i)
    if (Status status = variant(i))
      return status;
  return DLCRT_OK;
}

Status ModuleVerifier::variant(uint32_t index) {
  const dlcrt_variant_desc &v = module.variants[index];
  if (v.function >= module.functions.count || !isString(v.target))
    return bad("variant %u has no valid function or target", index);
  if (v.guard != DLCRT_NONE &&
      (v.guard >= module.exprs.count || symbolLimits[v.guard] > module.functions[v.function].symbol_count))
    return bad("variant %u: its guard is no expression of the function", index);
  if (v.plan_offset % 8 != 0 || v.plan_offset > module.planBytes.count ||
      v.plan_bytes > module.planBytes.count - v.plan_offset)
    return bad("variant %u: its plan lies outside PLAN", index);
  if (v.code_offset % DLCRT_CODE_ALIGNMENT != 0 || v.code_offset > module.codeBytes.count ||
      v.code_bytes > module.codeBytes.count - v.code_offset)
    return bad("variant %u: its code lies outside CODE", index);
  if (uint64_t(v.first_kernel) + v.kernel_count > module.kernels.count)
    return bad("variant %u: its kernels are not there", index);
  for (uint32_t i = 0; i < v.kernel_count; ++i) {
    const dlcrt_kernel_desc &kernel = module.kernels[v.first_kernel + i];
    if (!isString(kernel.name) || kernel.reserved != 0)
      return bad("variant %u: kernel %u has no valid name", index, i);
    const char *name = module.string(kernel.name);
    if (kernel.device > 1 || (kernel.device == 1 && v.device == DLCRT_NONE))
      return bad("variant %u: kernel '%s' is for device %u, which the variant does not have", index, name,
                 kernel.device);
    if (kernel.entry >= v.code_bytes)
      return bad("variant %u: kernel '%s' begins outside the code", index, name);
    if (kernel.device == 0 && kernel.stack_bytes > DLCRT_KERNEL_STACK_BYTES)
      return bad("variant %u: kernel '%s' needs %u bytes of stack, at most %u are allowed", index, name,
                 kernel.stack_bytes, DLCRT_KERNEL_STACK_BYTES);
  }
  return DLCRT_OK;
}

Status ModuleVerifier::allPlans() {
  if (!module.plans.create(module.variants.count))
    return failOutOfMemory(error, "the module's plans", module.variants.count * sizeof(Plan));
  for (uint32_t i = 0; i < module.variants.count; ++i)
    if (Status status = verifyPlan(module, i, module.plans[i], error))
      return status;
  return DLCRT_OK;
}

Status dlcrt::impl::verifyExprs(Span<dlcrt_expr_node> nodes, uint64_t symbolCount, const char *where, Error *error) {
  for (uint64_t i = 0; i < nodes.count; ++i) {
    const dlcrt_expr_node &node = nodes[i];
    int operands = operandCount(node.kind);
    if (operands < 0)
      return fail(error, DLCRT_ERROR_BAD_MODULE, "%s: expression %llu has unknown kind %u", where,
                  (unsigned long long)i, node.kind);
    const uint32_t operand[] = {node.a, node.b, node.c, node.d};
    for (int j = 0; j < 4; ++j)
      if (j < operands ? operand[j] >= i : operand[j] != DLCRT_NONE)
        return fail(error, DLCRT_ERROR_BAD_MODULE, "%s: expression %llu has an invalid operand %d", where,
                    (unsigned long long)i, j);
    if (node.reserved != 0 || (node.kind == DLCRT_EXPR_SYMBOL && uint64_t(node.value) >= symbolCount))
      return fail(error, DLCRT_ERROR_BAD_MODULE, "%s: expression %llu is no symbol", where, (unsigned long long)i);
  }
  return DLCRT_OK;
}

Status dlcrt::impl::verifyModule(Module &module, Error *error) { return ModuleVerifier(module, error).run(); }

Status dlcrt::impl::verifyConstants(const Module &module, Error *error) {
  for (uint64_t i = 0; i < module.constantHashes.count; ++i) {
    uint64_t offset = i * DLCRT_CONST_HASH_BLOCK, left = module.constantBytes.count - offset;
    uint64_t bytes = left < DLCRT_CONST_HASH_BLOCK ? left : uint64_t(DLCRT_CONST_HASH_BLOCK);
    if (xxh64(module.constantBytes.data + offset, bytes) != module.constantHashes[i])
      return fail(error, DLCRT_ERROR_CONSTANT_DAMAGED,
                  "damaged constants: bytes %llu to %llu of CONST do not have the hash they should have",
                  (unsigned long long)offset, (unsigned long long)(offset + bytes));
  }
  return DLCRT_OK;
}
