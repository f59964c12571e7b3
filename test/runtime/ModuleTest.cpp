/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Files that are not as they should be: each is refused with a message that says why, and nothing crashes.
#include "Hash.h"
#include "TestModel.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <unistd.h>

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

std::string openError(const Bytes &bytes, dlcrt_status expected = DLCRT_ERROR_BAD_MODULE) {
  Error error;
  Module module = Module::open(bytes.data(), bytes.size(), error);
  EXPECT_FALSE(module);
  EXPECT_EQ(error.code(), expected) << error.message();
  return error.message();
}

/// A module with something of everything.
ModuleBuilder richModule() {
  ModuleBuilder module = addModule();
  int64_t values[] = {3, 0, 5, 0};
  uint32_t constant = module.addConstant(values, sizeof(values));
  uint32_t debug = module.addDebug("node_a\nnode_b", "Compress\nCast");
  uint32_t f = module.addFunction("second");
  uint32_t n = module.addSymbol(f, "n", 1, 64, 2);
  module.addInput(f, "x", DLCRT_DTYPE_INT64, {n});
  module.addInput(f, "d", DLCRT_DTYPE_INT64, {module.exprs.constant(4)});
  module.functions[f].inputs[1].default_constant = constant;
  module.addSymbol(f, "length");
  module.addSymbol(f, "room");
  uint32_t room = module.addStateSymbol("room", 0, 1 << 20), rows = module.addStateSymbol("rows", 1, 4);
  uint32_t cache = module.addState("cache", DLCRT_DTYPE_INT64, {rows, room}, 1);
  module.addStateFunction(f, 1, module.exprs.constant(1), {2, DLCRT_NONE}, {cache});
  module.addOutput(f, "y", DLCRT_DTYPE_INT64, {DLCRT_NONE});
  module.imports = {DLCRT_IMPORT_EXP};
  VariantBuilder &variant = module.addVariant(f);
  variant.desc.guard = module.exprs.select(DLCRT_EXPR_SELECT_LT, n, module.exprs.constant(1000),
                                           module.exprs.constant(1), module.exprs.constant(0));
  PlanBuilder &plan = variant.plan;
  uint32_t count = plan.exprs.symbol(0), one = plan.exprs.constant(1), eight = plan.exprs.constant(8),
           zero = plan.exprs.constant(0), bytes = plan.exprs.mul(count, eight);
  uint32_t late = plan.lateSymbol(), iteration = plan.lateSymbol(), lateCount = plan.exprs.symbol(late),
           lateBytes = plan.exprs.mul(lateCount, eight);
  plan.header.fixed_bytes[0] = 64;
  uint32_t x = plan.input(0), d = plan.input(1), past = plan.state(cache), c = plan.constant(constant);
  uint32_t fixed = plan.fixedSlot(0, eight, 0, 2), copied = plan.symbolicSlot(bytes, 0, 2);
  plan.fill(fixed, DLCRT_DTYPE_INT64, one, {zero});
  plan.copy(copied, x, bytes);
  plan.view(copied, zero, eight);
  plan.stage(1);
  plan.launch(KERNEL_count_nonzero, one, {copied, fixed}, {count}, DLCRT_NONE, 0, debug);
  plan.read(fixed, DLCRT_DTYPE_INT64, zero, late);
  plan.dim(lateCount, 2);
  plan.check(one, "never {0}", lateCount);
  plan.stage(2);
  uint32_t y = plan.output(0, lateBytes, {lateCount});
  plan.lateSlot(lateBytes, 2, 2);
  plan.branch(
      one,
      [&] {
        plan.launch(KERNEL_compact, one, {copied, y}, {count});
      },
      [&] { plan.copy(y, d, zero); });
  plan.loop(one, iteration, DLCRT_NONE, [&] { plan.launch(KERNEL_increment, one, {c, past}, {one}); });
  plan.ret();
  return module;
}

/// Breaks one thing before the module is written.
std::string brokenModule(const std::function<void(ModuleBuilder &)> &breakIt,
                         dlcrt_status expected = DLCRT_ERROR_BAD_MODULE) {
  ModuleBuilder module = richModule();
  breakIt(module);
  return openError(module.build(), expected);
}

/// Breaks one thing in the written module, whose hashes are then made right again.
std::string brokenBytes(const std::function<void(Bytes &)> &breakIt) {
  Bytes bytes = richModule().build();
  breakIt(bytes);
  rehash(bytes);
  return openError(bytes);
}

template <typename T> T &at(Bytes &bytes, uint32_t section, uint64_t offset = 0) {
  return *reinterpret_cast<T *>(bytes.data() + findSection(bytes, section)->offset + offset);
}

/// The first instruction with the opcode, in the plan of the second function.
template <typename T> T &instruction(ModuleBuilder &module, uint16_t opcode) {
  Bytes &stream = module.variants[1]->plan.instructions;
  std::function<uint8_t *(size_t, size_t)> find = [&](size_t begin, size_t end) -> uint8_t * {
    for (size_t i = begin; i < end; i += reinterpret_cast<dlcrt_instr *>(&stream[i])->bytes)
      if (reinterpret_cast<dlcrt_instr *>(&stream[i])->opcode == opcode)
        return &stream[i];
    return nullptr;
  };
  return *reinterpret_cast<T *>(find(0, stream.size()));
}

} // namespace

TEST(Hash, KnownValues) {
  // The reference implementation's values, which `xxhsum -H64` prints too.
  EXPECT_EQ(impl::xxh64("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(impl::xxh64("a", 1), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(impl::xxh64("abc", 3), 0x44BC2CF5AD770999u);
  const char *text = "The quick brown fox jumps over the lazy dog";
  EXPECT_EQ(impl::xxh64(text, strlen(text)), 0x0B242D361FDA71BCu);
}

TEST(Module, RichModuleIsGood) {
  TestModel model(richModule());
  ASSERT_TRUE(model.module) << model.message();
  EXPECT_TRUE(model.module.verify(model.error)) << model.message();
  dlcrt_instance_options options = instanceOptions();
  options.function = "second";
  model.instance = Instance::create(model.module, options, model.error);
  const char *dimNames[] = {"rows"};
  int64_t dimValues[] = {2};
  dlcrt_state_options stateOptions = {sizeof(stateOptions), 1, dimNames, dimValues, 8, nullptr};
  State state = State::create(model.module, stateOptions, model.error);
  ASSERT_TRUE(model.instance.setState(state, model.error)) << model.message();
  ASSERT_TRUE(model.input<int64_t>(0, {7, 0, 9, 0}, {4}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<int64_t>(0), (std::vector<int64_t>{7, 9}));
}

TEST(Module, Header) {
  EXPECT_EQ(openError({1, 2, 3}), "module: not a module: it has only 3 bytes");
  EXPECT_EQ(openError(Bytes(1000, 'x')), "module: not a module: it does not begin with DLCM");
  Bytes bytes = richModule().build();
  memcpy(bytes.data(), "DLCM\n\x1a\n", 7);
  EXPECT_EQ(openError(bytes), "module: damaged by a transfer that changed line ends (text mode)");
  EXPECT_EQ(brokenModule([](ModuleBuilder &m) { m.header.major = 1; }, DLCRT_ERROR_VERSION),
            "module: module format 1.2, but this runtime (0.1.0) reads 0.2");
  for (uint16_t minor : {0, 1, 9})
    EXPECT_EQ(brokenModule([&](ModuleBuilder &m) { m.header.minor = minor; }, DLCRT_ERROR_VERSION),
              "module: module format 0." + std::to_string(minor) + ", but this runtime (0.1.0) reads 0.2");
  EXPECT_EQ(brokenModule([](ModuleBuilder &m) { m.header.producer = 1u << 30; }),
            "module: the producer's name lies outside STRINGS");
  bytes = richModule().build();
  bytes.push_back(0);
  EXPECT_NE(openError(bytes).find("something was appended: it should have"), std::string::npos);
  bytes = richModule().build();
  bytes.back() ^= 1;
  EXPECT_EQ(openError(bytes), "module: damaged: section DEBUG does not have the hash it should have");
  bytes = richModule().build();
  reinterpret_cast<dlcrt_file_header *>(bytes.data())->header_hash ^= 1;
  EXPECT_EQ(openError(bytes), "module: damaged: the section table does not have the hash it should have");
}

TEST(Module, Sections) {
  auto section = [](Bytes &bytes, uint32_t kind) -> dlcrt_section & { return *findSection(bytes, kind); };
  EXPECT_EQ(brokenBytes([&](Bytes &b) { section(b, DLCRT_SECTION_DEBUG).kind = 77; }),
            "module: section 8 has unknown kind 77");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { section(b, DLCRT_SECTION_DEBUG).kind = DLCRT_SECTION_STATE; }),
            "module: two sections STATE");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { section(b, DLCRT_SECTION_STATE).flags = 2; }),
            "module: section STATE has unknown flags 0x2");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { section(b, DLCRT_SECTION_CODE).offset += 4096; }),
            "module: section CODE is at offset 69632, which is not a multiple of 65536");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { section(b, DLCRT_SECTION_PLAN).bytes = UINT64_MAX; }),
            "module: section PLAN lies outside the file");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { section(b, DLCRT_SECTION_PLAN).offset = 8; }),
            "module: section PLAN lies outside the file");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { at<char>(b, DLCRT_SECTION_STRINGS) = 'x'; }),
            "module: section STRINGS does not begin and end with NUL");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { at<uint64_t>(b, DLCRT_SECTION_CONST_TABLE) = UINT64_MAX; }),
            "module: section CONST_TABLE has the wrong size");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { at<uint64_t>(b, DLCRT_SECTION_STATE) = 2; }),
            "module: section STATE has the wrong size");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { at<uint64_t>(b, DLCRT_SECTION_DEBUG) = 0; }),
            "module: section DEBUG has the wrong size");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { at<dlcrt_functions_header>(b, DLCRT_SECTION_FUNCTIONS).value_count = ~0u; }),
            "module: section FUNCTIONS has the wrong size");
  EXPECT_EQ(brokenBytes([&](Bytes &b) { at<dlcrt_variants_header>(b, DLCRT_SECTION_VARIANTS).import_count = 5; }),
            "module: section VARIANTS has the wrong size");
}

TEST(Module, Tables) {
  using M = ModuleBuilder;
  EXPECT_EQ(brokenModule([](M &m) { m.constants[0].bytes = 1000; }),
            "module: constant 0 lies outside CONST or is not aligned");
  EXPECT_EQ(brokenModule([](M &m) { m.constants[0].offset = 8; }),
            "module: constant 0 lies outside CONST or is not aligned");
  EXPECT_EQ(brokenModule([](M &m) { m.debug[0].op_types = ~0u; }),
            "module: entry 0 of DEBUG has a name outside STRINGS");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].symbols[0].divisor = 0; }),
            "module: function 'second': symbol 0 has an invalid name, range or divisor");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].inputs[0].rank = 33; }),
            "module: function 'second': input 'x' has an invalid type, rank or flag");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].inputs[0].flags = DLCRT_VALUE_LATE; }),
            "module: function 'second': input 'x' has an invalid type, rank or flag");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].inputs[0].first_dim = 1u << 31; }),
            "module: function 'second': dims of input 'x' are not there");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].outputs[0].flags = 0; }),
            "module: function 'second': output 'y' has an unknown dim, but is not late");
  EXPECT_EQ(brokenModule([](M &m) { m.dims[m.functions[1].inputs[0].first_dim] = 1000; }),
            "module: function 'second': dim 0 of input 'x' is no dimension of it");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].inputs[1].default_constant = 4; }),
            "module: function 'second': input 'd' has a default that is not there");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].inputs[1].alias = 0; }),
            "module: function 'second': input 'd' is the alias of what is not there");
  EXPECT_EQ(brokenModule([](M &m) { m.functions[1].outputs[0].alias = 3; }),
            "module: function 'second': output 'y' is the alias of what is not there");
  EXPECT_EQ(brokenModule([](M &m) { m.exprs.nodes[0].kind = 50; }),
            "module: FUNCTIONS: expression 0 has unknown kind 50");
  EXPECT_EQ(brokenModule([](M &m) { m.exprs.nodes.back().a = 1000; }),
            "module: FUNCTIONS: expression 9 has an invalid operand 0");
  EXPECT_EQ(brokenModule([](M &m) { m.exprs.nodes[0].value = 9; }), "module: FUNCTIONS: expression 0 is no symbol");
  EXPECT_EQ(brokenModule([](M &m) { m.imports = {900}; }, DLCRT_ERROR_VERSION),
            "module: it needs number 900 of the C library's functions, which this runtime (0.1.0) does not offer");
  EXPECT_EQ(brokenModule([](M &m) { m.variants[1]->desc.function = 2; }),
            "module: variant 1 has no valid function or target");
  EXPECT_EQ(brokenModule([](M &m) { m.variants[1]->desc.guard = 2000; }),
            "module: variant 1: its guard is no expression of the function");
  EXPECT_EQ(brokenModule([](M &m) { m.variants[1]->kernels[2].entry = 1u << 20; }),
            "module: variant 1: kernel 'exponential' begins outside the code");
  EXPECT_EQ(brokenModule([](M &m) { m.variants[1]->kernels[0].device = 1; }),
            "module: variant 1: kernel 'add' is for device 1, which the variant does not have");
  EXPECT_EQ(brokenModule([](M &m) { m.variants[1]->kernels[0].stack_bytes = 20000; }),
            "module: variant 1: kernel 'add' needs 20000 bytes of stack, at most 16384 are allowed");
}

TEST(Module, States) {
  using M = ModuleBuilder;
  EXPECT_EQ(brokenBytes([](Bytes &b) { at<dlcrt_states_header>(b, DLCRT_SECTION_STATE).state_count = 2; }),
            "module: section STATE has the wrong size");
  EXPECT_EQ(brokenBytes([](Bytes &b) { at<dlcrt_states_header>(b, DLCRT_SECTION_STATE).number_count = ~0u; }),
            "module: section STATE has the wrong size");
  EXPECT_EQ(brokenModule([](M &m) { m.stateSymbols.clear(); }), "module: the states have no capacity");
  EXPECT_EQ(brokenModule([](M &m) { m.stateSymbols[1].divisor = 0; }),
            "module: symbol 1 of the states has an invalid name, range or divisor");
  EXPECT_EQ(brokenModule([](M &m) { m.stateExprs.nodes[1].value = 2; }), "module: STATE: expression 1 is no symbol");
  for (uint32_t dtype : {99u, uint32_t(DLCRT_DTYPE_INT4), uint32_t(DLCRT_DTYPE_STRING)})
    EXPECT_EQ(brokenModule([&](M &m) { m.states[0].dtype = dtype; }), "module: state 0 has no valid name or type");
  EXPECT_EQ(brokenModule([](M &m) { m.states[0].name = ~0u; }), "module: state 0 has no valid name or type");
  EXPECT_EQ(brokenModule([](M &m) { m.states.push_back(m.states[0]); }), "module: two states 'cache'");
  EXPECT_EQ(brokenModule([](M &m) { m.states[0].rank = 3; }), "module: state 'cache' has an invalid rank or axis");
  EXPECT_EQ(brokenModule([](M &m) { m.states[0].axis = 2; }), "module: state 'cache' has an invalid rank or axis");
  EXPECT_EQ(brokenModule([](M &m) { m.stateDims[0] = 7; }), "module: dim 0 of state 'cache' is no dimension of it");
  // It grows along its axis and nowhere else, or views and growing would be wrong.
  EXPECT_EQ(brokenModule([](M &m) { m.states[0].axis = 0; }), "module: dim 0 of state 'cache' is no dimension of it");
  EXPECT_EQ(brokenModule([](M &m) { m.stateDims[0] = m.stateDims[1]; }),
            "module: dim 0 of state 'cache' is no dimension of it");
  EXPECT_EQ(brokenModule([](M &m) { m.stateDims[1] = m.stateExprs.add(0, 0); }),
            "module: dim 1 of state 'cache' is no dimension of it");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions[0].function = 2; }),
            "module: entry 0 of the functions with states has no function, or one that another has");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions.push_back(m.stateFunctions[0]); }),
            "module: entry 1 of the functions with states has no function, or one that another has");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions[0].length_symbol = 3; }),
            "module: function 'second': the length of its states is not one of its dims");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions[0].growth = m.exprs.symbol(5); }),
            "module: FUNCTIONS: expression 10 is no symbol");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions[0].growth = 50; }),
            "module: function 'second': the length of its states is not one of its dims");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions[0].first_symbol = ~0u; }),
            "module: function 'second': its states are not there");
  EXPECT_EQ(brokenModule([](M &m) { m.stateFunctions[0].state_count = 0; }),
            "module: function 'second': its states are not there");
  EXPECT_EQ(brokenModule([](M &m) { m.stateNumbers[2] = 1; }), "module: function 'second': its states are not there");
  EXPECT_EQ(brokenModule([](M &m) { m.stateNumbers[0] = 9; }),
            "module: function 'second': symbol 0 of the states is none of its own");
  EXPECT_EQ(brokenModule([](M &m) { m.stateNumbers[1] = 2; }), // that of the capacity
            "module: function 'second': symbol 1 of the states is none of its own");
  EXPECT_EQ(brokenModule([](M &m) { m.stateNumbers[0] = 1; }), // that of the length
            "module: function 'second': symbol 0 of the states is none of its own");
}

TEST(Module, Plans) {
  using M = ModuleBuilder;
  auto plan = [](const std::function<void(M &)> &breakIt) {
    std::string message = brokenModule(breakIt), prefix = "module: plan of variant 1, offset ";
    EXPECT_EQ(message.compare(0, prefix.size(), prefix), 0) << message;
    return message.substr(message.find(": ", prefix.size()) + 2);
  };
  EXPECT_EQ(plan([](M &m) { m.variants[1]->plan.header.buffer_count = 1u << 30; }),
            "it has more registers, slots or stages than instructions");
  EXPECT_EQ(plan([](M &m) { m.variants[1]->plan.header.fixed_bytes[1] = 64; }),
            "its arena is too large or on a device that the variant does not have");
  EXPECT_EQ(plan([](M &m) { m.variants[1]->plan.instructions.clear(); }),
            "it has more registers, slots or stages than instructions");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr>(m, DLCRT_OP_STAGE).opcode = 99; }), "unknown instruction 99");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr>(m, DLCRT_OP_STAGE).bytes = 12; }), "an instruction has 12 bytes");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr>(m, DLCRT_OP_STAGE).bytes = 1u << 20; }),
            "an instruction has 1048576 bytes");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr>(m, DLCRT_OP_STAGE).flags = 1; }), "stage: unknown flags 0x1");
  EXPECT_EQ(plan([](M &m) { m.variants[1]->plan.ret(); }), "return stands before the end");
  EXPECT_EQ(plan([](M &m) {
              auto &stream = m.variants[1]->plan.instructions;
              stream.resize(stream.size() - 8);
            }),
            "no return at the end");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_stage>(m, DLCRT_OP_STAGE).stage = 50; }),
            "stage: invalid number or flag");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_const>(m, DLCRT_OP_CONST).constant = 50; }),
            "const: invalid buffer, constant or device");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_const>(m, DLCRT_OP_CONST).device = 1; }),
            "const: invalid buffer, constant or device");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_input>(m, DLCRT_OP_INPUT).input = 50; }),
            "input: invalid buffer or input");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_state>(m, DLCRT_OP_STATE).state = 1; }),
            "state: invalid buffer or state");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_state>(m, DLCRT_OP_STATE).buffer = 50; }),
            "state: invalid buffer or state");
  EXPECT_EQ(plan([](M &m) {
              m.stateFunctions[0].function = 0;
              m.stateFunctions[0].length_symbol = 0;
              m.stateNumbers[0] = DLCRT_NONE;
            }),
            "state: invalid buffer or state");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_output>(m, DLCRT_OP_OUTPUT).buffer = 50; }),
            "output: invalid buffer, output or dim");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_output>(m, DLCRT_OP_OUTPUT).rank = 33; }), "output: invalid size");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_slot>(m, DLCRT_OP_SLOT).slot_class = 3; }),
            "slot: unknown class 3");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_slot>(m, DLCRT_OP_SLOT).offset = 32; }),
            "slot: its offset is outside the arena or not a multiple of 64");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_slot>(m, DLCRT_OP_SLOT).last_stage = 3; }),
            "slot: invalid lifetime");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_slot>(m, DLCRT_OP_SLOT).device = 1; }),
            "slot: invalid buffer, device or register");
  EXPECT_EQ(plan([](M &m) { m.variants[1]->plan.header.symbolic_slot_count = 2; }),
            "a symbolic slot has no instruction");
  EXPECT_EQ(plan([](M &m) { m.variants[1]->plan.header.late_slot_count = 0; }), "slot: invalid or repeated number");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_view>(m, DLCRT_OP_VIEW).source = 99; }),
            "view: invalid buffer or register");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_dim>(m, DLCRT_OP_DIM).count = ~0u; }), "dim: invalid register");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_check>(m, DLCRT_OP_CHECK).message = ~0u; }),
            "check: invalid register or message");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_read>(m, DLCRT_OP_READ).dtype = DLCRT_DTYPE_FLOAT32; }),
            "read: invalid buffer, type, register or symbol");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_read>(m, DLCRT_OP_READ).symbol = 0; }),
            "read: invalid buffer, type, register or symbol");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_launch>(m, DLCRT_OP_LAUNCH).kernel = 99; }),
            "launch: no kernel 99");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_launch>(m, DLCRT_OP_LAUNCH).device = 1; }),
            "launch: kernel 'count_nonzero' on device 1");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_launch>(m, DLCRT_OP_LAUNCH).kernel = KERNEL_add; }),
            "launch: kernel 'add' takes 3 buffers and 1 scalars, not 2 and 1");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_launch>(m, DLCRT_OP_LAUNCH).tiles = 99; }),
            "launch: invalid register");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_launch>(m, DLCRT_OP_LAUNCH).debug = 99; }),
            "launch: no entry 99 in DEBUG");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_copy>(m, DLCRT_OP_COPY).bytes_expr = 99; }),
            "copy: invalid buffer or register");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_fill>(m, DLCRT_OP_FILL).dtype = DLCRT_DTYPE_STRING; }),
            "fill: invalid buffer, type or register");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_fill>(m, DLCRT_OP_FILL).count = 50; }), "fill: invalid size");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_if>(m, DLCRT_OP_IF).then_bytes += 8; }), "if: invalid size");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_loop>(m, DLCRT_OP_LOOP).body_bytes -= 8; }), "loop: invalid size");
  EXPECT_EQ(plan([](M &m) { instruction<dlcrt_instr_loop>(m, DLCRT_OP_LOOP).trip = DLCRT_NONE; }),
            "loop: it has no end");
  EXPECT_EQ(brokenModule([](M &m) { m.variants[1]->plan.exprs.nodes[1].kind = 99; }),
            "module: plan of variant 1: expression 1 has unknown kind 99");
}

TEST(Module, NestingIsLimited) {
  ModuleBuilder module = addModule();
  PlanBuilder &plan = module.variants[0]->plan;
  plan.instructions.clear();
  uint32_t one = plan.exprs.constant(1);
  std::function<void(int)> nest = [&](int depth) {
    if (depth)
      plan.branch(
          one, [&] { nest(depth - 1); }, [] {});
  };
  nest(70);
  plan.ret();
  EXPECT_NE(openError(module.build()).find("blocks are nested more than 64 deep"), std::string::npos);
}

TEST(Module, EveryTruncation) {
  Bytes whole = richModule().build();
  void *aligned = nullptr; // is not copied by the runtime
  ASSERT_EQ(posix_memalign(&aligned, 64, whole.size()), 0);
  auto *bytes = static_cast<uint8_t *>(aligned);
  memcpy(bytes, whole.data(), whole.size());
  auto refused = [](const uint8_t *data, size_t length) {
    Error error;
    return !Module::open(data, length, error) && error.code() == DLCRT_ERROR_BAD_MODULE;
  };
  for (size_t length = 0; length < whole.size(); ++length) {
    // As it comes, and with a header that claims to be right, so that later checks have to notice.
    ASSERT_TRUE(refused(bytes, length)) << length;
    if (length < sizeof(dlcrt_file_header))
      continue;
    auto &header = *reinterpret_cast<dlcrt_file_header *>(bytes);
    header.file_bytes = length;
    ASSERT_TRUE(refused(bytes, length)) << length;
    // In memory that ends there, for the sanitizer; in the middle there is only code.
    if (length < 8192 || length + 4096 > whole.size()) {
      ASSERT_TRUE(refused(Bytes(bytes, bytes + length).data(), length)) << length;
    }
    header.file_bytes = whole.size();
  }
  free(aligned);
}

TEST(Module, EveryFlippedByteOfTablesIsNoticed) {
  Bytes whole = richModule().build();
  for (uint32_t kind = 1; kind <= DLCRT_SECTION_DEBUG; ++kind) {
    if (kind == DLCRT_SECTION_CONST)
      continue;
    dlcrt_section section = *findSection(whole, kind);
    for (uint64_t i = 0; i < section.bytes; i += kind == DLCRT_SECTION_CODE ? 1009 : 1) {
      whole[section.offset + i] ^= 0x10;
      Error error;
      ASSERT_FALSE(Module::open(whole.data(), whole.size(), error)) << kind << " " << i;
      whole[section.offset + i] ^= 0x10;
    }
  }
}

TEST(Module, DamagedConstantsAreFoundByVerify) {
  ModuleBuilder builder = addModule();
  std::vector<uint8_t> large(3 * DLCRT_CONST_HASH_BLOCK + 100, 7);
  builder.addConstant(large.data(), large.size());
  Bytes bytes = builder.build();
  Error error;
  Module module = Module::open(bytes.data(), bytes.size(), error);
  EXPECT_TRUE(module.verify(error)) << error.message();
  bytes[findSection(bytes, DLCRT_SECTION_CONST)->offset + 2 * DLCRT_CONST_HASH_BLOCK + 5] ^= 1;
  module = Module::open(bytes.data(), bytes.size(), error);
  ASSERT_TRUE(module);
  EXPECT_FALSE(module.verify(error));
  EXPECT_EQ(error.code(), DLCRT_ERROR_CONSTANT_DAMAGED);
  EXPECT_STREQ(error.message(),
               "module: damaged constants: bytes 2097152 to 3145728 of CONST do not have the hash they should have");
  EXPECT_FALSE(Module::open(bytes.data(), bytes.size(), error, DLCRT_MODULE_VERIFY_CONSTANTS));
  EXPECT_EQ(error.code(), DLCRT_ERROR_CONSTANT_DAMAGED);
}

TEST(Module, Files) {
  Error error;
  EXPECT_FALSE(Module::open("/nowhere/model.dlcm", error));
  EXPECT_EQ(error.code(), DLCRT_ERROR_IO);
  EXPECT_STREQ(error.message(), "/nowhere/model.dlcm: cannot open: No such file or directory");
  EXPECT_FALSE(Module::open("/", error));
  EXPECT_STREQ(error.message(), "/: not a regular file");
  EXPECT_FALSE(Module::open("/dev/null", error));
  EXPECT_STREQ(error.message(), "/dev/null: not a regular file");

  std::string path = testing::TempDir() + "/dlcrt-" + std::to_string(getpid()) + ".dlcm";
  Bytes bytes = richModule().build();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size()));
  for (uint32_t flags : {0u, DLCRT_MODULE_READ_CONSTANTS, DLCRT_MODULE_VERIFY_CONSTANTS}) {
    Module module = Module::open(path.c_str(), error, flags);
    ASSERT_TRUE(module) << error.message();
    // Code that was mapped from a file.
    Instance instance = Instance::create(module, error);
    std::vector<float> a = iotaFloats(100), b = iotaFloats(100, 1000);
    int64_t dims[] = {100};
    ASSERT_TRUE(instance.bindInput("a", tensor(a.data(), dims), error)) << error.message();
    ASSERT_TRUE(instance.bindInput("b", tensor(b.data(), dims), error)) << error.message();
    module = Module(); // the instance keeps what it needs
    ASSERT_TRUE(instance.run(error)) << error.message();
    EXPECT_EQ(instance.output("y", error).elements<float>()[99], 99 + 1099);
  }
  dlcrt_module_options unknown = {sizeof(unknown), 0x80, nullptr};
  dlcrt_module *handle = nullptr;
  EXPECT_EQ(dlcrt_module_open_file(path.c_str(), &unknown, &handle, error.c()), DLCRT_ERROR_INVALID_ARGUMENT);
  bytes.resize(100);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), 100);
  EXPECT_FALSE(Module::open(path.c_str(), error));
  EXPECT_NE(std::string(error.message()).find(path + ": truncated: it should have"), std::string::npos);
  unlink(path.c_str());
}

TEST(Module, CodeIsNeverWritable) {
  TestModel model(addModule());
  ASSERT_TRUE(model.input<float>(0, {1}, {1}) && model.input<float>(1, {2}, {1}));
  ASSERT_EQ(model.run(), DLCRT_OK);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    EXPECT_EQ(line.find(" rwxp"), std::string::npos) << line;
}

// Mutations that keep the hashes right. The code is all `ret`, because what hostile machine code does is not the
// runtime's to prevent; everything else must hold.
TEST(Module, Mutations) {
#if defined(__x86_64__)
  ModuleBuilder builder = richModule();
  for (auto &variant : builder.variants)
    std::fill(variant->code.begin(), variant->code.end(), 0xc3);
  const Bytes whole = builder.build();
  std::vector<uint64_t> positions; // of bytes that matter
  for (uint64_t i = 0; i < sizeof(dlcrt_file_header) + DLCRT_SECTION_DEBUG * sizeof(dlcrt_section); ++i)
    positions.push_back(i);
  Bytes copy = whole;
  for (uint32_t kind = 1; kind <= DLCRT_SECTION_DEBUG; ++kind)
    if (kind != DLCRT_SECTION_CODE)
      for (uint64_t i = 0; i < findSection(copy, kind)->bytes; ++i)
        positions.push_back(findSection(copy, kind)->offset + i);

  // Sizes that a mutation makes up must not take the machine's memory.
  auto allocate = [](void *, uint64_t bytes, uint64_t alignment) -> void * {
    void *memory = nullptr;
    return bytes > (16u << 20) || posix_memalign(&memory, alignment, bytes + 1) ? nullptr : memory;
  };
  dlcrt_allocator allocator = {sizeof(allocator), 0, nullptr, allocate, [](void *, void *m, uint64_t) { free(m); }};
  std::mt19937_64 random(20240607);
  int opened = 0, ran = 0;
  const int rounds = 6000;
  for (int round = 0; round < rounds; ++round) {
    Bytes bytes = whole;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      uint64_t where = positions[random() % positions.size()];
      switch (random() % 4) {
      case 0:
        bytes[where] ^= uint8_t(1u << random() % 8);
        break;
      case 1:
        bytes[where] = uint8_t(random());
        break;
      case 2:
        bytes[where] = uint8_t(bytes[where] + (random() % 2 ? 1 : -1));
        break;
      default:
        bytes[where] = random() % 2 ? 0xff : 0;
      }
    }
    rehash(bytes);
    Error error;
    Module module = Module::open(bytes.data(), bytes.size(), error);
    EXPECT_EQ(bool(module), !error);
    if (!module)
      continue;
    ++opened;
    for (const char *name : {"main", "second"}) {
      dlcrt_instance_options options = instanceOptions();
      options.function = name;
      options.allocator = &allocator;
      Instance instance = Instance::create(module, options, error);
      if (!instance)
        continue;
      char text[64];
      std::vector<int64_t> data(64, 1);
      int64_t dims[] = {4};
      for (uint32_t i = 0; i < 3; ++i) {
        dlcrt_module_dim_text(module.c(), dlcrt_instance_function(instance.c()), DLCRT_INPUT, i, 0, text, sizeof(text));
        dlcrt_value_info info = {};
        info.struct_size = sizeof(info);
        if (dlcrt_module_input(module.c(), dlcrt_instance_function(instance.c()), i, &info, nullptr) == DLCRT_OK &&
            i < 2)
          instance.bindInput(i, tensor(info.dtype, data.data(), dims, 1), error);
      }
      dlcrt_run_options run = runOptions();
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      run.deadline_ns = uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec) + 5000000;
      ran += instance.run(run, error);
    }
  }
  // The mutations would prove nothing if none got through.
  EXPECT_GT(opened, rounds / 20);
  EXPECT_GT(ran, rounds / 50);
  RecordProperty("opened", opened);
  RecordProperty("ran", ran);
#endif
}
