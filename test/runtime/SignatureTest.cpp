/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// What a module says about itself.
#include "TestModel.h"

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

template <typename T> T info() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

/// x: f32[batch, seq, 8], mask: optional bool[batch, seq], axes: i64[2] = {4, 5}, with state cache: i8[heads, room], of
/// length len
/// -> y: f32[batch, ceil(seq / 2)] living in x, z: f32[?, 8]
ModuleBuilder signature() {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  uint32_t batch = m.addSymbol(f, "batch", 1, 64), seq = m.addSymbol(f, "seq", 1, 512, 8),
           any = m.addSymbol(f, "dim_1");
  m.functions[f].symbols[2].flags = DLCRT_SYMBOL_ANONYMOUS;
  uint32_t eight = m.exprs.constant(8), two = m.exprs.constant(2), one = m.exprs.constant(1),
           zero = m.exprs.constant(0);
  int64_t axes[] = {4, 5};
  m.addInput(f, "x", DLCRT_DTYPE_FLOAT32, {batch, seq, eight});
  m.addInput(f, "mask", DLCRT_DTYPE_BOOL, {batch, any});
  m.functions[f].inputs[1].flags = DLCRT_VALUE_OPTIONAL;
  m.addInput(f, "axes", DLCRT_DTYPE_INT64, {two});
  m.functions[f].inputs[2].default_constant = m.addConstant(axes, sizeof(axes));
  m.addSymbol(f, "len");
  m.addSymbol(f, "room");
  uint32_t room = m.addStateSymbol("room"), heads = m.addStateSymbol("heads", 1, 16);
  uint32_t cache = m.addState("cache", DLCRT_DTYPE_INT8, {heads, room}, 1);
  m.addStateFunction(f, 3, one, {4, DLCRT_NONE}, {cache});
  m.addOutput(f, "y", DLCRT_DTYPE_FLOAT32, {batch, m.exprs.ceilDiv(seq, two)});
  m.functions[f].outputs[0].alias = 0;
  m.addOutput(f, "z", DLCRT_DTYPE_FLOAT32, {DLCRT_NONE, eight});
  m.addVariant(f, "cpu:plain", 1).plan.ret();
  VariantBuilder &hot = m.addVariant(f, "cpu:hot", 2);
  hot.desc.guard = m.exprs.select(DLCRT_EXPR_SELECT_EQ, seq, m.exprs.constant(128), one, zero);
  hot.plan.header.fixed_bytes[0] = 640;
  hot.plan.ret();
  VariantBuilder &impossible = m.addVariant(f, "cpu:future", 9);
  impossible.desc.features[0] = uint64_t(1) << 62;
  impossible.plan.ret();
  VariantBuilder &foreign = m.addVariant(f, "cpu:other", 9);
  foreign.desc.arch = foreign.desc.arch == DLCRT_ARCH_X86_64 ? DLCRT_ARCH_AARCH64 : DLCRT_ARCH_X86_64;
  foreign.plan.ret();
  VariantBuilder &cuda = m.addVariant(f, "cuda:sm_90", 9);
  cuda.desc.device = DLCRT_DEVICE_CUDA;
  cuda.plan.ret();
  return m;
}

} // namespace

TEST(Signature, Module) {
  Bytes bytes = signature().build();
  Error error;
  Module module = Module::open(bytes.data(), bytes.size(), error);
  ASSERT_TRUE(module) << error.message();
  dlcrt_module_info about = module.info();
  EXPECT_STREQ(about.producer, "test 1.0");
  EXPECT_EQ(about.function_count, 1u);
  EXPECT_EQ(about.variant_count, 5u);
  EXPECT_EQ(about.state_count, 1u);
  EXPECT_EQ(about.state_symbol_count, 2u);
  EXPECT_EQ(about.file_bytes, bytes.size());
  EXPECT_EQ(about.weight_bytes, 16u);

  auto function = info<dlcrt_function_info>();
  ASSERT_EQ(dlcrt_module_function(module.c(), 0, &function, error.c()), DLCRT_OK);
  EXPECT_STREQ(function.name, "main");
  EXPECT_EQ(function.input_count, 3u);
  EXPECT_EQ(function.output_count, 2u);
  EXPECT_EQ(function.symbol_count, 5u);
  EXPECT_EQ(function.state_count, 1u);
  EXPECT_EQ(function.length_symbol, 3u);
  EXPECT_EQ(function.capacity_symbol, 4u);
  EXPECT_EQ(dlcrt_module_find_function(module.c(), "main"), 0u);
  EXPECT_EQ(dlcrt_module_find_function(module.c(), "other"), DLCRT_NO_INDEX);
  EXPECT_EQ(dlcrt_module_find_input(module.c(), 0, "axes"), 2u);
  EXPECT_EQ(dlcrt_module_find_input(module.c(), 0, "y"), DLCRT_NO_INDEX);
  EXPECT_EQ(dlcrt_module_find_output(module.c(), 0, "z"), 1u);

  auto symbol = info<dlcrt_symbol_info>();
  ASSERT_EQ(dlcrt_module_symbol(module.c(), 0, 1, &symbol, error.c()), DLCRT_OK);
  EXPECT_STREQ(symbol.name, "seq");
  EXPECT_EQ(symbol.min, 1);
  EXPECT_EQ(symbol.max, 512);
  EXPECT_EQ(symbol.divisor, 8);
  EXPECT_EQ(symbol.anonymous, 0u);
  ASSERT_EQ(dlcrt_module_symbol(module.c(), 0, 2, &symbol, error.c()), DLCRT_OK);
  EXPECT_EQ(symbol.anonymous, 1u);

  auto value = info<dlcrt_value_info>();
  ASSERT_EQ(dlcrt_module_input(module.c(), 0, 1, &value, error.c()), DLCRT_OK);
  EXPECT_STREQ(value.name, "mask");
  EXPECT_EQ(value.dtype, DLCRT_DTYPE_BOOL);
  EXPECT_EQ(value.rank, 2u);
  EXPECT_EQ(value.flags, DLCRT_INFO_OPTIONAL);
  ASSERT_EQ(dlcrt_module_input(module.c(), 0, 2, &value, error.c()), DLCRT_OK);
  EXPECT_EQ(value.flags, DLCRT_INFO_DEFAULT);
  ASSERT_EQ(dlcrt_module_output(module.c(), 0, 0, &value, error.c()), DLCRT_OK);
  EXPECT_EQ(value.alias, 0u);
  ASSERT_EQ(dlcrt_module_output(module.c(), 0, 1, &value, error.c()), DLCRT_OK);
  EXPECT_EQ(value.flags, DLCRT_INFO_LATE);
  EXPECT_EQ(value.alias, DLCRT_NO_INDEX);

  auto dim = info<dlcrt_dim_info>();
  auto kind = [&](uint32_t direction, uint32_t index, uint32_t d) {
    EXPECT_EQ(dlcrt_module_dim(module.c(), 0, direction, index, d, &dim, error.c()), DLCRT_OK);
    return dim.kind;
  };
  auto text = [&](uint32_t direction, uint32_t index, uint32_t d) {
    char buffer[64];
    size_t length = dlcrt_module_dim_text(module.c(), 0, direction, index, d, buffer, sizeof(buffer));
    EXPECT_EQ(length, strlen(buffer));
    EXPECT_EQ(dlcrt_module_dim_text(module.c(), 0, direction, index, d, nullptr, 0), length);
    return std::string(buffer);
  };
  EXPECT_EQ(kind(DLCRT_INPUT, 0, 1), DLCRT_DIM_SYMBOL);
  EXPECT_EQ(dim.symbol, 1u);
  EXPECT_EQ(kind(DLCRT_INPUT, 0, 2), DLCRT_DIM_CONSTANT);
  EXPECT_EQ(dim.value, 8);
  EXPECT_EQ(kind(DLCRT_OUTPUT, 0, 1), DLCRT_DIM_EXPRESSION);
  EXPECT_EQ(kind(DLCRT_OUTPUT, 1, 0), DLCRT_DIM_LATE);
  EXPECT_EQ(text(DLCRT_INPUT, 0, 0), "batch");
  EXPECT_EQ(text(DLCRT_INPUT, 0, 2), "8");
  EXPECT_EQ(text(DLCRT_OUTPUT, 0, 1), "ceil(seq / 2)");
  EXPECT_EQ(text(DLCRT_OUTPUT, 1, 0), "?");
  EXPECT_EQ(dlcrt_module_dim_text(module.c(), 0, DLCRT_INPUT, 0, 9, nullptr, 0), 0u);
  char small[4];
  EXPECT_EQ(dlcrt_module_dim_text(module.c(), 0, DLCRT_INPUT, 0, 0, small, sizeof(small)), 5u);
  EXPECT_STREQ(small, "bat");

  Tensor tensor;
  int64_t dims[1] = {};
  ASSERT_EQ(dlcrt_module_input_default(module.c(), 0, 2, &tensor, dims, error.c()), DLCRT_OK);
  EXPECT_EQ(dims[0], 2);
  EXPECT_EQ(tensor.elements<int64_t>()[1], 5);
  EXPECT_EQ(dlcrt_module_input_default(module.c(), 0, 0, &tensor, dims, error.c()), DLCRT_ERROR_NOT_FOUND);

  auto state = info<dlcrt_state_info>();
  ASSERT_EQ(dlcrt_module_state(module.c(), 0, &state, error.c()), DLCRT_OK);
  EXPECT_STREQ(state.name, "cache");
  EXPECT_EQ(state.dtype, DLCRT_DTYPE_INT8);
  EXPECT_EQ(state.rank, 2u);
  EXPECT_EQ(state.axis, 1u);
  EXPECT_EQ(dlcrt_module_find_state(module.c(), "cache"), 0u);
  EXPECT_EQ(dlcrt_module_find_state(module.c(), "other"), DLCRT_NO_INDEX);
  char dimText[16];
  EXPECT_EQ(dlcrt_module_state_dim_text(module.c(), 0, 1, dimText, sizeof(dimText)), 4u);
  EXPECT_STREQ(dimText, "room");
  EXPECT_EQ(dlcrt_module_state_dim_text(module.c(), 0, 2, dimText, sizeof(dimText)), 0u);
  ASSERT_EQ(dlcrt_module_state_symbol(module.c(), 1, &symbol, error.c()), DLCRT_OK);
  EXPECT_STREQ(symbol.name, "heads");
  EXPECT_EQ(symbol.max, 16);
}

TEST(Signature, ValueDims) {
  TestModel model(signature());
  int64_t symbols[] = {3, 9, 1, 0, 0}, dims[2];
  uint64_t bytes;
  ASSERT_EQ(dlcrt_module_value_dims(model.module.c(), 0, DLCRT_OUTPUT, 0, symbols, 5, dims, &bytes, model.error.c()),
            DLCRT_OK);
  EXPECT_EQ(dims[0], 3);
  EXPECT_EQ(dims[1], 5);
  EXPECT_EQ(bytes, 60u);
  ASSERT_EQ(dlcrt_module_value_dims(model.module.c(), 0, DLCRT_OUTPUT, 1, symbols, 5, dims, &bytes, model.error.c()),
            DLCRT_OK);
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 8);
  EXPECT_EQ(bytes, UINT64_MAX);
  ASSERT_EQ(dlcrt_module_value_dims(model.module.c(), 0, DLCRT_INPUT, 1, symbols, 5, dims, &bytes, model.error.c()),
            DLCRT_OK);
  EXPECT_EQ(bytes, 3u);
  EXPECT_FAILS(
      model, DLCRT_ERROR_INVALID_ARGUMENT, "function 'main' has 5 symbols, not 2",
      dlcrt_module_value_dims(model.module.c(), 0, DLCRT_OUTPUT, 0, symbols, 2, dims, &bytes, model.error.c()));
  const char *names[] = {"heads"};
  int64_t values[] = {1};
  dlcrt_state_options options = {sizeof(options), 1, names, values, 4, nullptr};
  ASSERT_TRUE(model.instance.setState(State::create(model.module, options, model.error), model.error));
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, "dimension 'batch' is not known: no bound input has it",
               dlcrt_instance_output_bound(model.instance.c(), 0, dims, &bytes, model.error.c()));
  ASSERT_TRUE(model.input<float>(0, std::vector<float>(2 * 16 * 8), {2, 16, 8})) << model.message();
  ASSERT_EQ(dlcrt_instance_output_bound(model.instance.c(), 0, dims, &bytes, model.error.c()), DLCRT_OK);
  EXPECT_EQ(bytes, 64u);
}

TEST(Signature, Variants) {
  TestModel model(signature());
  dlcrt_module *module = model.module.c();
  auto variant = info<dlcrt_variant_info>();
  ASSERT_EQ(dlcrt_module_variant(module, 1, &variant, model.error.c()), DLCRT_OK);
  EXPECT_STREQ(variant.target, "cpu:hot");
  EXPECT_EQ(variant.priority, 2);
  EXPECT_EQ(variant.guarded, 1u);
  EXPECT_EQ(variant.kernel_count, uint32_t(KERNEL_COUNT));
  EXPECT_EQ(variant.fixed_arena_bytes, 640u);
  char text[64];
  EXPECT_EQ(dlcrt_module_variant_guard_text(module, 1, text, sizeof(text)), 10u);
  EXPECT_STREQ(text, "seq == 128");
  EXPECT_EQ(dlcrt_module_variant_guard_text(module, 0, text, sizeof(text)), 0u);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(dlcrt_module_variant_supported(module, 0, model.error.c()), DLCRT_OK);
  EXPECT_FAILS(model, DLCRT_ERROR_NO_VARIANT, "the processor lacks a feature unknown to this runtime",
               dlcrt_module_variant_supported(module, 2, model.error.c()));
  EXPECT_EQ(dlcrt_module_variant_supported(module, 3, model.error.c()), DLCRT_ERROR_NO_VARIANT);
  EXPECT_EQ(model.message().substr(0, 15), "it is code for ");
  EXPECT_FAILS(model, DLCRT_ERROR_NO_VARIANT, "it needs a device of kind 2, which this runtime does not drive itself",
               dlcrt_module_variant_supported(module, 4, model.error.c()));
  EXPECT_GT(dlcrt_cpu_features_text(nullptr, 0), 0u);
}

TEST(Signature, LateDimsWithoutATable) {
  ModuleBuilder m = signature();
  m.functions[0].outputs[1].first_dim = DLCRT_NONE; // not even the 8 is said
  TestModel model(m);
  int64_t symbols[] = {3, 9, 1, 0, 0}, dims[2];
  ASSERT_EQ(dlcrt_module_value_dims(model.module.c(), 0, DLCRT_OUTPUT, 1, symbols, 5, dims, nullptr, model.error.c()),
            DLCRT_OK);
  EXPECT_EQ(dims[1], -1);
  char text[8];
  EXPECT_EQ(dlcrt_module_dim_text(model.module.c(), 0, DLCRT_OUTPUT, 1, 1, text, sizeof(text)), 1u);
  EXPECT_STREQ(text, "?");
}

TEST(Signature, WrongArguments) {
  TestModel model(signature());
  dlcrt_module *module = model.module.c();
  auto value = info<dlcrt_value_info>();
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "no input 7: there are 3",
               dlcrt_module_input(module, 0, 7, &value, model.error.c()));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "no function 3: there are 1",
               dlcrt_module_input(module, 3, 0, &value, model.error.c()));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "module is NULL",
               dlcrt_module_input(nullptr, 0, 0, &value, model.error.c()));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "dlcrt_value_info is NULL",
               dlcrt_module_input(module, 0, 0, nullptr, model.error.c()));
  value.struct_size = 4;
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT,
               "dlcrt_value_info: struct_size is 4, but has to be at least " + std::to_string(sizeof(value)),
               dlcrt_module_input(module, 0, 0, &value, model.error.c()));
  // Errors are optional, and small ones are respected.
  EXPECT_EQ(dlcrt_module_input(module, 7, 0, &value, nullptr), DLCRT_ERROR_INVALID_ARGUMENT);
  struct {
    dlcrt_error error;
  } small;
  memset(&small, 0x55, sizeof(small));
  small.error.struct_size = 8 + 10;
  dlcrt_module_input(module, 7, 0, &value, &small.error);
  EXPECT_STREQ(small.error.message, "no functi");
  EXPECT_EQ(small.error.message[10], 0x55);
  small.error.struct_size = 0;
  small.error.code = 77;
  dlcrt_module_input(module, 7, 0, &value, &small.error);
  EXPECT_EQ(small.error.code, 77);
  // A newer caller's structs are larger.
  struct {
    dlcrt_value_info info;
    uint64_t more;
  } newer = {{}, 42};
  newer.info.struct_size = sizeof(newer);
  EXPECT_EQ(dlcrt_module_input(module, 0, 0, &newer.info, nullptr), DLCRT_OK);
  EXPECT_EQ(newer.info.struct_size, sizeof(newer));
  EXPECT_EQ(newer.more, 42u);
}

TEST(Instance, ChoosesFunctionAndVariant) {
  ModuleBuilder builder = signature();
  builder.addVariant(builder.addFunction("decode")).plan.ret();
  TestModel model(builder);
  ASSERT_TRUE(model.instance) << model.message();
  EXPECT_EQ(dlcrt_instance_function(model.instance.c()), 0u);
  EXPECT_EQ(dlcrt_instance_variant(model.instance.c()), 1u); // the highest priority that can run here
  auto create = [&](const char *function, const char *variant) {
    dlcrt_instance_options options = instanceOptions();
    options.function = function;
    options.variant = variant;
    return Instance::create(model.module, options, model.error);
  };
  EXPECT_EQ(dlcrt_instance_variant(create("main", "cpu:plain").c()), 0u);
  EXPECT_EQ(dlcrt_instance_function(create("decode", nullptr).c()), 1u);
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_FOUND, "module: no function 'x'; there are: 'main', 'decode'",
               create("x", nullptr));
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_FOUND,
               "module: function 'main' has no variant for target 'cpu:x'; there are: 'cpu:plain', 'cpu:hot', "
               "'cpu:future', 'cpu:other', 'cuda:sm_90'",
               create("main", "cpu:x"));
  EXPECT_FAILS(model, DLCRT_ERROR_NO_VARIANT,
               "module: no variant of function 'main' can run here: cpu:future: the processor lacks a feature unknown "
               "to this runtime",
               create("main", "cpu:future"));
  EXPECT_FAILS(model, DLCRT_ERROR_NO_VARIANT,
               "module: no variant of function 'main' can run here: cuda:sm_90: it needs a device of kind 2, for which "
               "there is no factory",
               create("main", "cuda:sm_90"));
  ModuleBuilder empty;
  empty.addFunction("main");
  TestModel none(empty);
  EXPECT_FALSE(none.instance);
  EXPECT_EQ(none.message(), "module: function 'main' has no variants");
}
