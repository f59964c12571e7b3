/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ModuleBuilder.h"

#include "Hash.h"
#include "cpu/Features.h"

#include <cstring>
#include <fstream>
#include <iterator>

using namespace dlcrt;
using namespace dlcrt::test;

uint32_t ExprPool::node(uint32_t kind, Numbers operands, int64_t value) {
  operands.resize(4, DLCRT_NONE);
  nodes.push_back({kind, operands[0], operands[1], operands[2], operands[3], 0, value});
  return uint32_t(nodes.size() - 1);
}

template <typename T> static void appendTo(Bytes &bytes, const T *data, size_t count) {
  size_t at = bytes.size();
  bytes.resize(at + count * sizeof(T));
  if (count)
    memcpy(bytes.data() + at, data, count * sizeof(T));
}

template <typename T> static void appendTo(Bytes &bytes, const std::vector<T> &data) {
  appendTo(bytes, data.data(), data.size());
}

static void pad(Bytes &bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

// ---------------------------------------------------------------------------------------------- plans

uint8_t *PlanBuilder::append(const void *instruction, size_t bytes, const Numbers &numbers) {
  size_t at = instructions.size();
  appendTo(instructions, static_cast<const uint8_t *>(instruction), bytes);
  appendTo(instructions, numbers);
  pad(instructions, 8);
  return instructions.data() + at;
}

uint32_t PlanBuilder::constant(uint32_t number, uint32_t device) {
  return emit<dlcrt_instr_const>(DLCRT_OP_CONST, {{}, newBuffer(), number, device, 0})->buffer;
}

uint32_t PlanBuilder::input(uint32_t number) {
  return emit<dlcrt_instr_input>(DLCRT_OP_INPUT, {{}, newBuffer(), number})->buffer;
}

uint32_t PlanBuilder::state(uint32_t number) {
  return emit<dlcrt_instr_state>(DLCRT_OP_STATE, {{}, newBuffer(), number})->buffer;
}

uint32_t PlanBuilder::output(uint32_t number, uint32_t bytes, Numbers dims) {
  return emit<dlcrt_instr_output>(DLCRT_OP_OUTPUT, {{}, newBuffer(), number, bytes, uint32_t(dims.size())}, dims)
      ->buffer;
}

uint32_t PlanBuilder::fixedSlot(uint64_t offset, uint32_t bytes, uint32_t first, uint32_t last, uint32_t device) {
  return emit<dlcrt_instr_slot>(DLCRT_OP_SLOT, {{}, newBuffer(), DLCRT_SLOT_FIXED, device, bytes, first, last, offset})
      ->buffer;
}

uint32_t PlanBuilder::symbolicSlot(uint32_t bytes, uint32_t first, uint32_t last, uint32_t device) {
  return emit<dlcrt_instr_slot>(
             DLCRT_OP_SLOT,
             {{}, newBuffer(), DLCRT_SLOT_SYMBOLIC, device, bytes, first, last, header.symbolic_slot_count++})
      ->buffer;
}

uint32_t PlanBuilder::lateSlot(uint32_t bytes, uint32_t first, uint32_t last, uint32_t device) {
  return emit<dlcrt_instr_slot>(
             DLCRT_OP_SLOT, {{}, newBuffer(), DLCRT_SLOT_LATE, device, bytes, first, last, header.late_slot_count++})
      ->buffer;
}

uint32_t PlanBuilder::view(uint32_t source, uint32_t offset, uint32_t bytes) {
  return emit<dlcrt_instr_view>(DLCRT_OP_VIEW, {{}, newBuffer(), source, offset, bytes})->buffer;
}

void PlanBuilder::dim(uint32_t first, uint32_t count) { emit<dlcrt_instr_dim>(DLCRT_OP_DIM, {{}, first, count}); }

void PlanBuilder::check(uint32_t condition, const std::string &message, uint32_t value0, uint32_t value1) {
  emit<dlcrt_instr_check>(DLCRT_OP_CHECK, {{}, condition, module->string(message), value0, value1});
}

void PlanBuilder::read(uint32_t buffer, uint32_t dtype, uint32_t index, uint32_t symbol) {
  emit<dlcrt_instr_read>(DLCRT_OP_READ, {{}, buffer, dtype, index, symbol});
}

void PlanBuilder::launch(uint32_t kernel, uint32_t tiles, Numbers buffers, Numbers scalars, uint32_t scratch,
                         uint32_t device, uint32_t debug) {
  Numbers numbers = buffers;
  numbers.insert(numbers.end(), scalars.begin(), scalars.end());
  emit<dlcrt_instr_launch>(
      DLCRT_OP_LAUNCH,
      {{}, kernel, device, tiles, scratch, uint32_t(buffers.size()), uint32_t(scalars.size()), debug, DLCRT_NONE, DLCRT_NONE, 0}, numbers);
}

void PlanBuilder::copy(uint32_t destination, uint32_t source, uint32_t bytes) {
  emit<dlcrt_instr_copy>(DLCRT_OP_COPY, {{}, destination, source, bytes, 0});
}

void PlanBuilder::fill(uint32_t buffer, uint32_t dtype, uint32_t elements, Numbers values) {
  emit<dlcrt_instr_fill>(DLCRT_OP_FILL, {{}, buffer, dtype, elements, uint32_t(values.size())}, values);
}

void PlanBuilder::stage(uint32_t number) {
  if (header.stage_count <= number)
    header.stage_count = number + 1;
  emit<dlcrt_instr_stage>(DLCRT_OP_STAGE, {{}, number, 0});
}

void PlanBuilder::call(const std::string &domain, const std::string &name, uint32_t version,
                       const std::string &attributes, std::vector<Tensor> operands, std::vector<Tensor> results) {
  Numbers numbers;
  for (const auto *list : {&operands, &results})
    for (const Tensor &tensor : *list) {
      numbers.insert(numbers.end(), {tensor.buffer, tensor.dtype, uint32_t(tensor.dims.size())});
      numbers.insert(numbers.end(), tensor.dims.begin(), tensor.dims.end());
    }
  emit<dlcrt_instr_call>(DLCRT_OP_CALL,
                         {{},
                          module->string(domain),
                          module->string(name),
                          version,
                          module->string(attributes),
                          uint32_t(operands.size()),
                          uint32_t(results.size())},
                         numbers);
}

void PlanBuilder::emitIf(uint32_t condition, const Bytes &thenBlock, const Bytes &elseBlock) {
  emit<dlcrt_instr_if>(DLCRT_OP_IF, {{}, condition, 0, uint32_t(thenBlock.size()), uint32_t(elseBlock.size())})
      ->head.bytes += uint32_t(thenBlock.size() + elseBlock.size());
  appendTo(instructions, thenBlock);
  appendTo(instructions, elseBlock);
}

void PlanBuilder::emitLoop(uint32_t trip, uint32_t iteration, uint32_t condition, const Bytes &body) {
  emit<dlcrt_instr_loop>(DLCRT_OP_LOOP, {{}, trip, iteration, condition, uint32_t(body.size())})->head.bytes +=
      uint32_t(body.size());
  appendTo(instructions, body);
}

void PlanBuilder::ret() {
  dlcrt_instr head = {DLCRT_OP_RETURN, 0, sizeof(head)};
  append(&head, sizeof(head), {});
}

Bytes PlanBuilder::bytes() const {
  dlcrt_plan_header h = header;
  h.expr_count = uint32_t(exprs.nodes.size());
  h.instruction_bytes = instructions.size();
  Bytes result;
  appendTo(result, &h, 1);
  appendTo(result, exprs.nodes);
  appendTo(result, instructions);
  return result;
}

// ---------------------------------------------------------------------------------------------- modules

ModuleBuilder::ModuleBuilder() {
  memcpy(header.magic, DLCRT_FORMAT_MAGIC, 8);
  header.major = DLCRT_FORMAT_MAJOR;
  header.minor = DLCRT_FORMAT_MINOR;
  header.producer = string("test 1.0");
}

uint32_t ModuleBuilder::string(const std::string &text) {
  if (text.empty())
    return 0;
  size_t at = strings.find('\0' + text + '\0');
  if (at != std::string::npos)
    return uint32_t(at + 1);
  at = strings.size();
  strings += text + '\0';
  return uint32_t(at);
}

uint32_t ModuleBuilder::addFunction(const std::string &name) {
  functions.push_back({name, {}, {}, {}});
  string(name);
  return uint32_t(functions.size() - 1);
}

uint32_t ModuleBuilder::addSymbol(uint32_t function, const std::string &name, int64_t min, int64_t max,
                                  int64_t divisor) {
  auto &symbols = functions[function].symbols;
  symbols.push_back({string(name), 0, min, max, divisor});
  return exprs.symbol(int64_t(symbols.size() - 1));
}

dlcrt_value_desc ModuleBuilder::value(const std::string &name, int32_t dtype, const Numbers &valueDims) {
  dlcrt_value_desc desc = {
      string(name), uint32_t(dtype), uint32_t(valueDims.size()), uint32_t(dims.size()), 0, DLCRT_NONE, DLCRT_NONE, 0};
  dims.insert(dims.end(), valueDims.begin(), valueDims.end());
  return desc;
}

uint32_t ModuleBuilder::addInput(uint32_t function, const std::string &name, int32_t dtype, Numbers valueDims) {
  auto &inputs = functions[function].inputs;
  inputs.push_back(value(name, dtype, valueDims));
  return uint32_t(inputs.size() - 1);
}

uint32_t ModuleBuilder::addOutput(uint32_t function, const std::string &name, int32_t dtype, Numbers valueDims) {
  auto &outputs = functions[function].outputs;
  outputs.push_back(value(name, dtype, valueDims));
  for (uint32_t dim : valueDims)
    outputs.back().flags |= dim == DLCRT_NONE ? DLCRT_VALUE_LATE : 0;
  return uint32_t(outputs.size() - 1);
}

uint32_t ModuleBuilder::addConstant(const void *data, size_t bytes) {
  pad(constantBytes, 64);
  constants.push_back({constantBytes.size(), bytes, {}});
  appendTo(constantBytes, static_cast<const uint8_t *>(data), bytes);
  return uint32_t(constants.size() - 1);
}

uint32_t ModuleBuilder::addStateSymbol(const std::string &name, int64_t min, int64_t max, int64_t divisor) {
  stateSymbols.push_back({string(name), 0, min, max, divisor});
  return stateExprs.symbol(int64_t(stateSymbols.size() - 1));
}

uint32_t ModuleBuilder::addState(const std::string &name, int32_t dtype, Numbers dims, uint32_t axis) {
  states.push_back({string(name), uint32_t(dtype), uint32_t(dims.size()), uint32_t(stateDims.size()), axis, 0});
  stateDims.insert(stateDims.end(), dims.begin(), dims.end());
  return uint32_t(states.size() - 1);
}

void ModuleBuilder::addStateFunction(uint32_t function, uint32_t lengthSymbol, uint32_t growth, Numbers symbols,
                                     Numbers used) {
  uint32_t first = uint32_t(stateNumbers.size());
  stateNumbers.insert(stateNumbers.end(), symbols.begin(), symbols.end());
  stateNumbers.insert(stateNumbers.end(), used.begin(), used.end());
  stateFunctions.push_back(
      {function, lengthSymbol, growth, first, first + uint32_t(symbols.size()), uint32_t(used.size())});
}

uint32_t ModuleBuilder::addDebug(const std::string &nodes, const std::string &types) {
  debug.push_back({string(nodes), string(types)});
  return uint32_t(debug.size() - 1);
}

VariantBuilder &ModuleBuilder::addVariant(uint32_t function, const std::string &target, int32_t priority) {
  variants.push_back(std::make_unique<VariantBuilder>());
  VariantBuilder &variant = *variants.back();
  variant.desc.function = function;
  variant.desc.target = string(target);
  variant.desc.arch = impl::hostArch();
  variant.desc.device = DLCRT_NONE;
  variant.desc.guard = DLCRT_NONE;
  variant.desc.priority = priority;
  variant.code = kernelImage();
  auto *entries = reinterpret_cast<const uint32_t *>(variant.code.data());
#define DLCRT_ADD_KERNEL(name, buffers, scalars)                                                                       \
  variant.kernels.push_back({string(#name), 0, entries[KERNEL_##name], buffers, scalars, 256, 0});
  DLCRT_FOREACH_TEST_KERNEL(DLCRT_ADD_KERNEL)
#undef DLCRT_ADD_KERNEL
  variant.plan.functionSymbols = uint32_t(functions[function].symbols.size());
  variant.plan.module = this;
  variant.plan.stage(0);
  return variant;
}

Bytes ModuleBuilder::build() const {
  Bytes sections[DLCRT_SECTION_DEBUG + 1];

  dlcrt_functions_header functionsHeader = {uint32_t(functions.size()),   0, 0, uint32_t(dims.size()),
                                            uint32_t(exprs.nodes.size()), 0};
  std::vector<dlcrt_function_desc> functionTable;
  std::vector<dlcrt_symbol_desc> symbolTable;
  std::vector<dlcrt_value_desc> valueTable;
  for (const FunctionBuilder &f : functions) {
    uint32_t name = const_cast<ModuleBuilder *>(this)->string(f.name); // there already
    uint32_t firstSymbol = uint32_t(symbolTable.size());
    symbolTable.insert(symbolTable.end(), f.symbols.begin(), f.symbols.end());
    uint32_t firstInput = uint32_t(valueTable.size());
    valueTable.insert(valueTable.end(), f.inputs.begin(), f.inputs.end());
    uint32_t firstOutput = uint32_t(valueTable.size());
    valueTable.insert(valueTable.end(), f.outputs.begin(), f.outputs.end());
    functionTable.push_back({name, firstSymbol, uint32_t(f.symbols.size()), firstInput, uint32_t(f.inputs.size()),
                             firstOutput, uint32_t(f.outputs.size()), 0});
  }
  functionsHeader.symbol_count = uint32_t(symbolTable.size());
  functionsHeader.value_count = uint32_t(valueTable.size());
  Bytes &functionBytes = sections[DLCRT_SECTION_FUNCTIONS];
  appendTo(functionBytes, &functionsHeader, 1);
  appendTo(functionBytes, functionTable);
  appendTo(functionBytes, symbolTable);
  appendTo(functionBytes, valueTable);
  appendTo(functionBytes, exprs.nodes);
  appendTo(functionBytes, dims);
  pad(functionBytes, 8);

  dlcrt_variants_header variantsHeader = {uint32_t(variants.size()), 0, uint32_t(imports.size()), 0};
  std::vector<dlcrt_variant_desc> variantTable;
  std::vector<dlcrt_kernel_desc> kernelTable;
  for (const auto &variant : variants) {
    dlcrt_variant_desc desc = variant->desc;
    Bytes &plans = sections[DLCRT_SECTION_PLAN], &code = sections[DLCRT_SECTION_CODE];
    Bytes plan = variant->plan.bytes();
    desc.plan_offset = plans.size();
    desc.plan_bytes = plan.size();
    appendTo(plans, plan);
    pad(plans, 8);
    pad(code, DLCRT_CODE_ALIGNMENT);
    desc.code_offset = code.size();
    desc.code_bytes = variant->code.size();
    appendTo(code, variant->code);
    desc.first_kernel = uint32_t(kernelTable.size());
    desc.kernel_count = uint32_t(variant->kernels.size());
    kernelTable.insert(kernelTable.end(), variant->kernels.begin(), variant->kernels.end());
    variantTable.push_back(desc);
  }
  variantsHeader.kernel_count = uint32_t(kernelTable.size());
  Bytes &variantBytes = sections[DLCRT_SECTION_VARIANTS];
  appendTo(variantBytes, &variantsHeader, 1);
  appendTo(variantBytes, variantTable);
  appendTo(variantBytes, kernelTable);
  appendTo(variantBytes, imports);
  pad(variantBytes, 8);

  sections[DLCRT_SECTION_CONST] = constantBytes;
  Bytes &constTable = sections[DLCRT_SECTION_CONST_TABLE];
  uint64_t count = constants.size(),
           blocks = (constantBytes.size() + DLCRT_CONST_HASH_BLOCK - 1) / DLCRT_CONST_HASH_BLOCK;
  appendTo(constTable, &count, 1);
  appendTo(constTable, constants);
  appendTo(constTable, &blocks, 1);
  constTable.resize(constTable.size() + blocks * sizeof(uint64_t)); // filled by rehash

  dlcrt_states_header statesHeader = {uint32_t(states.size()),         uint32_t(stateSymbols.size()),
                                      uint32_t(stateFunctions.size()), uint32_t(stateExprs.nodes.size()),
                                      uint32_t(stateDims.size()),      uint32_t(stateNumbers.size())};
  Bytes &stateBytes = sections[DLCRT_SECTION_STATE];
  appendTo(stateBytes, &statesHeader, 1);
  appendTo(stateBytes, states);
  appendTo(stateBytes, stateSymbols);
  appendTo(stateBytes, stateFunctions);
  appendTo(stateBytes, stateExprs.nodes);
  appendTo(stateBytes, stateDims);
  appendTo(stateBytes, stateNumbers);
  pad(stateBytes, 8);
  count = debug.size();
  appendTo(sections[DLCRT_SECTION_DEBUG], &count, 1);
  appendTo(sections[DLCRT_SECTION_DEBUG], debug);
  sections[DLCRT_SECTION_STRINGS].assign(strings.begin(), strings.end());

  Bytes file;
  dlcrt_file_header fileHeader = header;
  fileHeader.section_count = DLCRT_SECTION_DEBUG;
  std::vector<dlcrt_section> table;
  uint64_t offset = sizeof(dlcrt_file_header) + DLCRT_SECTION_DEBUG * sizeof(dlcrt_section);
  for (uint32_t kind = 1; kind <= DLCRT_SECTION_DEBUG; ++kind) {
    uint64_t alignment = kind == DLCRT_SECTION_CODE    ? DLCRT_CODE_ALIGNMENT
                         : kind == DLCRT_SECTION_CONST ? DLCRT_CONST_ALIGNMENT
                                                       : 8;
    offset = (offset + alignment - 1) / alignment * alignment;
    table.push_back({kind, 0, offset, sections[kind].size(), 0});
    offset += sections[kind].size();
  }
  fileHeader.file_bytes = offset;
  appendTo(file, &fileHeader, 1);
  appendTo(file, table);
  for (const dlcrt_section &section : table) {
    file.resize(section.offset);
    appendTo(file, sections[section.kind]);
  }
  rehash(file);
  return file;
}

dlcrt_section *test::findSection(Bytes &module, uint32_t kind) {
  auto &header = *reinterpret_cast<dlcrt_file_header *>(module.data());
  auto *table = reinterpret_cast<dlcrt_section *>(module.data() + sizeof(header));
  if (header.section_count > (module.size() - sizeof(header)) / sizeof(dlcrt_section))
    return nullptr;
  for (uint32_t i = 0; i < header.section_count; ++i)
    if (table[i].kind == kind && table[i].offset <= module.size() && table[i].bytes <= module.size() - table[i].offset)
      return &table[i];
  return nullptr;
}

bool test::rehash(Bytes &module) {
  auto &header = *reinterpret_cast<dlcrt_file_header *>(module.data());
  if (dlcrt_section *table = findSection(module, DLCRT_SECTION_CONST_TABLE))
    if (dlcrt_section *constants = findSection(module, DLCRT_SECTION_CONST)) {
      uint64_t blocks = (constants->bytes + DLCRT_CONST_HASH_BLOCK - 1) / DLCRT_CONST_HASH_BLOCK;
      for (uint64_t i = 0; i < blocks && (blocks - i) * 8 <= table->bytes; ++i) {
        uint64_t at = i * DLCRT_CONST_HASH_BLOCK;
        uint64_t bytes = std::min<uint64_t>(constants->bytes - at, DLCRT_CONST_HASH_BLOCK);
        uint64_t hash = impl::xxh64(module.data() + constants->offset + at, bytes);
        memcpy(module.data() + table->offset + table->bytes - (blocks - i) * 8, &hash, 8);
      }
    }
  for (uint32_t kind = 1; kind <= DLCRT_SECTION_DEBUG; ++kind)
    if (dlcrt_section *section = findSection(module, kind))
      section->hash = kind == DLCRT_SECTION_CONST ? 0 : impl::xxh64(module.data() + section->offset, section->bytes);
  uint64_t tableBytes = uint64_t(header.section_count) * sizeof(dlcrt_section);
  if (tableBytes > module.size() - sizeof(header))
    return false;
  header.header_hash = impl::xxh64(module.data() + sizeof(header), tableBytes);
  return true;
}

const Bytes &test::kernelImage() {
  static const Bytes image = [] {
    std::ifstream file(DLCRT_TEST_KERNELS, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
  }();
  return image;
}

ModuleBuilder test::addModule() {
  ModuleBuilder module;
  uint32_t f = module.addFunction("main");
  uint32_t n = module.addSymbol(f, "n");
  module.addInput(f, "a", DLCRT_DTYPE_FLOAT32, {n});
  module.addInput(f, "b", DLCRT_DTYPE_FLOAT32, {n});
  module.addOutput(f, "y", DLCRT_DTYPE_FLOAT32, {n});
  PlanBuilder &plan = module.addVariant(f).plan;
  uint32_t count = plan.exprs.symbol(0);
  uint32_t bytes = plan.exprs.mul(count, plan.exprs.constant(4));
  uint32_t tiles = plan.exprs.ceilDiv(count, plan.exprs.constant(KERNEL_TILE));
  uint32_t a = plan.input(0), b = plan.input(1), y = plan.output(0, bytes, {count});
  plan.launch(KERNEL_add, tiles, {a, b, y}, {count});
  plan.ret();
  return module;
}

ModuleBuilder test::logModule(uint32_t status) {
  ModuleBuilder m;
  uint32_t capacity = m.addStateSymbol("capacity"), rows = m.addStateSymbol("rows", 1, 8);
  uint32_t log = m.addState("log", DLCRT_DTYPE_INT64, {rows, capacity}, 1);
  for (int64_t times : {1, 2}) {
    uint32_t f = m.addFunction(times == 1 ? "main" : "twice"), ownRows = m.addSymbol(f, "rows", 1, 8),
             n = m.addSymbol(f, "n");
    m.addSymbol(f, "length");
    m.addSymbol(f, "capacity");
    m.addInput(f, "x", DLCRT_DTYPE_INT64, {ownRows, n});
    m.addOutput(f, "sum", DLCRT_DTYPE_INT64, {m.exprs.constant(1)});
    m.addStateFunction(f, 2, m.exprs.mul(n, m.exprs.constant(times)), {3, 0}, {log});
    PlanBuilder &plan = m.addVariant(f).plan;
    uint32_t r = plan.exprs.symbol(0), count = plan.exprs.symbol(1), at = plan.exprs.symbol(2),
             room = plan.exprs.symbol(3), one = plan.exprs.constant(1), eight = plan.exprs.constant(8);
    uint32_t x = plan.input(0), state = plan.state(log), sum = plan.output(0, eight, {one});
    // A slot whose size does not depend on the length.
    plan.symbolicSlot(plan.exprs.mul(count, eight), 0, 0);
    for (int64_t i = 0; i < times; ++i, at = plan.exprs.add(at, count))
      plan.launch(KERNEL_append, one, {x, state}, {r, count, room, at});
    plan.stage(1);
    if (status)
      plan.launch(KERNEL_refuse, one, {sum}, {plan.exprs.constant(status)});
    plan.launch(KERNEL_sum_rows, one, {state, sum}, {r, at, room});
    plan.ret();
  }
  uint32_t none = m.addFunction("none");
  m.addVariant(none).plan.ret();
  return m;
}
