/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Tensors that do not fit the signature, and those that do in unusual forms.
#include "TestModel.h"

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

/// ids: i64[batch, seq], mask: i64[batch, seq], table: f32[seq + 1, 4], square: f32[n, n] -> y = first of ids
ModuleBuilder bindings() {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  uint32_t batch = m.addSymbol(f, "batch", 1), seq = m.addSymbol(f, "seq", 2, 512, 2), n = m.addSymbol(f, "n");
  uint32_t one = m.exprs.constant(1), four = m.exprs.constant(4);
  m.addInput(f, "input_ids", DLCRT_DTYPE_INT64, {batch, seq});
  m.addInput(f, "attention_mask", DLCRT_DTYPE_INT64, {batch, seq});
  m.addInput(f, "table", DLCRT_DTYPE_FLOAT32, {m.exprs.add(seq, one), four});
  m.addInput(f, "square", DLCRT_DTYPE_FLOAT32, {n, n});
  m.addOutput(f, "y", DLCRT_DTYPE_INT64, {one});
  PlanBuilder &plan = m.addVariant(f).plan;
  uint32_t bytes = plan.exprs.constant(8), dim = plan.exprs.constant(1);
  uint32_t x = plan.input(0), y = plan.output(0, bytes, {dim});
  plan.copy(y, x, bytes);
  plan.ret();
  return m;
}

struct Binding : testing::Test {
  TestModel model{bindings()};

  bool bindAll() {
    return model.input<int64_t>(0, std::vector<int64_t>(8, 5), {2, 4}) &&
           model.input<int64_t>(1, std::vector<int64_t>(8), {2, 4}) &&
           model.input<float>(2, std::vector<float>(20), {5, 4}) &&
           model.input<float>(3, std::vector<float>(9), {3, 3});
  }
};

} // namespace

TEST_F(Binding, Good) {
  ASSERT_TRUE(bindAll()) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<int64_t>(0)[0], 5);
}

TEST_F(Binding, WrongTensor) {
  EXPECT_FAILS(model, DLCRT_ERROR_DTYPE, "input 'input_ids': expected i64, got f32",
               model.input<float>(0, {1}, {1, 1}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'input_ids': expected rank 2, got 3",
               model.input<int64_t>(0, {1}, {1, 1, 1}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'table': dimension 1 is 5, expected 4",
               model.input<float>(2, std::vector<float>(25), {5, 5}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'input_ids': dimension 0 is -1, expected 0 or more",
               model.input<int64_t>(0, {1}, {-1, 1}));
  EXPECT_FAILS(model, DLCRT_ERROR_OVERFLOW, "input 'input_ids' has too many elements",
               model.input<int64_t>(0, {1}, {INT64_MAX, 4}));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "no input 9: there are 4", model.input<float>(9, {1}, {1}));
  std::vector<int64_t> data(7), none;
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY, "input 'input_ids' needs 64 bytes, but has 56",
               model.bind(0, data, {2, 4}));
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY, "input 'input_ids' needs 80 bytes, but has 56",
               model.bind(0, data, {2, 4}, {6, 1}));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "input 'input_ids': data is NULL", model.bind(0, none, {2, 4}));
  Tensor tensor;
  tensor.dtype = DLCRT_DTYPE_INT64;
  tensor.rank = 2;
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "input 'input_ids': dims is NULL",
               model.instance.bindInput(0u, tensor, model.error));
  int64_t dims[] = {2, 2};
  tensor.dims = dims;
  tensor.data = data.data();
  tensor.device_kind = DLCRT_MEMORY_CUDA;
  EXPECT_FAILS(model, DLCRT_ERROR_DEVICE,
               "input 'input_ids' is in memory of kind 2, device 0, which this instance does not use",
               model.instance.bindInput(0u, tensor, model.error));
  EXPECT_EQ(dlcrt_instance_bind_input(model.instance.c(), 0, nullptr, model.error.c()), DLCRT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(model.message(), "input_ids: dlcrt_tensor is NULL");
}

TEST_F(Binding, DisagreeingDims) {
  ASSERT_TRUE(bindAll());
  ASSERT_TRUE(model.input<int64_t>(1, std::vector<int64_t>(6), {1, 6}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "inputs 'input_ids' and 'attention_mask' disagree on 'batch': 2 and 1",
               model.run());
  ASSERT_TRUE(model.input<int64_t>(1, std::vector<int64_t>(12), {2, 6}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "inputs 'input_ids' and 'attention_mask' disagree on 'seq': 4 and 6",
               model.run());
  ASSERT_TRUE(bindAll());
  ASSERT_TRUE(model.input<float>(2, std::vector<float>(24), {6, 4}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'table': dimension 0 is 6, expected 5, which is seq + 1", model.run());
  ASSERT_TRUE(bindAll());
  ASSERT_TRUE(model.input<float>(3, std::vector<float>(6), {2, 3}));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'square' has two values for 'n': 2 and 3", model.run());
  // It recovers.
  ASSERT_TRUE(bindAll());
  EXPECT_EQ(model.run(), DLCRT_OK) << model.message();
}

TEST_F(Binding, Promises) {
  auto withSeq = [&](int64_t batch, int64_t seq) {
    for (uint32_t i : {0u, 1u})
      EXPECT_TRUE(model.input<int64_t>(i, std::vector<int64_t>(size_t(batch * seq)), {batch, seq}));
    EXPECT_TRUE(model.input<float>(2, std::vector<float>(size_t(seq + 1) * 4), {seq + 1, 4}));
    return model.run();
  };
  ASSERT_TRUE(bindAll());
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'input_ids': 'seq' is 600, but has to be between 2 and 512",
               withSeq(1, 600));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'input_ids': 'seq' is 7, but has to be a multiple of 2", withSeq(1, 7));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "input 'input_ids': 'batch' is 0, but has to be at least 1", withSeq(0, 4));
  EXPECT_EQ(withSeq(1, 512), DLCRT_OK) << model.message();
}

TEST_F(Binding, MissingInputs) {
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, "input 'input_ids' is not bound", model.run());
  ASSERT_TRUE(bindAll());
  EXPECT_EQ(model.run(), DLCRT_OK);
  ASSERT_EQ(dlcrt_instance_unbind_input(model.instance.c(), 2, model.error.c()), DLCRT_OK);
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, "input 'table' is not bound", model.run());
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, "output 'y' has no value: there was no run, or it failed",
               dlcrt_instance_output(model.instance.c(), 0, nullptr, model.error.c()));
}

TEST(Inputs, StridedUnalignedAndOffset) {
  TestModel model(addModule());
  std::vector<float> spread = iotaFloats(60), ones(20, 1.0f);
  ASSERT_TRUE(model.bind(0, spread, {20}, {3}));
  ASSERT_TRUE(model.bind(1, ones, {20}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(model.output<float>(0)[i], 3 * i + 1);
  // What is bound may change between runs.
  spread[3] = 100;
  ASSERT_EQ(model.run(), DLCRT_OK);
  EXPECT_EQ(model.output<float>(0)[1], 101);
  // Negative strides and broadcasting.
  int64_t dims[] = {20}, backwards[] = {-1}, zero[] = {0};
  Tensor tensor = dlcrt::tensor(spread.data(), dims);
  tensor.data = spread.data() + 19;
  tensor.strides = backwards;
  ASSERT_TRUE(model.instance.bindInput(0u, tensor, model.error));
  tensor.data = ones.data();
  tensor.strides = zero;
  ASSERT_TRUE(model.instance.bindInput(1u, tensor, model.error));
  ASSERT_EQ(model.run(), DLCRT_OK);
  EXPECT_EQ(model.output<float>(0)[0], 20);
  // Unaligned by a byte, through byte_offset.
  std::vector<char> bytes(81);
  memcpy(bytes.data() + 1, iotaFloats(20, 7).data(), 80);
  tensor = dlcrt::tensor(reinterpret_cast<float *>(bytes.data()), dims);
  tensor.byte_offset = 1;
  ASSERT_TRUE(model.instance.bindInput(0u, tensor, model.error)) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK);
  EXPECT_EQ(model.output<float>(0)[19], 27);
  EXPECT_GT(model.instance.statistics().staging_bytes, 0u);
}

TEST(Inputs, EmptyTensors) {
  TestModel model(addModule());
  std::vector<float> none;
  ASSERT_TRUE(model.bind(0, none, {0}) && model.bind(1, none, {0})) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.outputDims(0), Dims{0});
}

TEST(Inputs, DefaultsAndOptionals) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  float values[] = {1, 2, 3, 4};
  uint32_t four = m.exprs.constant(4);
  m.addInput(f, "a", DLCRT_DTYPE_FLOAT32, {four});
  m.functions[f].inputs[0].default_constant = m.addConstant(values, sizeof(values));
  m.addInput(f, "b", DLCRT_DTYPE_FLOAT32, {four});
  m.functions[f].inputs[1].flags = DLCRT_VALUE_OPTIONAL;
  m.addOutput(f, "y", DLCRT_DTYPE_FLOAT32, {four});
  PlanBuilder &plan = m.addVariant(f).plan;
  uint32_t count = plan.exprs.constant(4), two = plan.exprs.constant(2), bytes = plan.exprs.constant(16),
           tile = plan.exprs.constant(1), zero = plan.exprs.constant(0);
  uint32_t a = plan.input(0), b = plan.input(1), y = plan.output(0, bytes, {count});
  plan.view(b, zero, zero); // of nothing, when it is absent
  plan.launch(KERNEL_scale, tile, {a, y}, {count, two});
  plan.ret();
  TestModel model(m);
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<float>(0), (std::vector<float>{2, 4, 6, 8}));
  ASSERT_TRUE(model.input<float>(0, {5, 5, 5, 5}, {4}) && model.input<float>(1, {0, 0, 0, 0}, {4}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<float>(0)[0], 10);
}

TEST(Inputs, StringsAndObjectsAreRefusedByName) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  m.addInput(f, "text", DLCRT_DTYPE_STRING, {m.exprs.constant(1)});
  m.addInput(f, "packed", DLCRT_DTYPE_INT4, {m.exprs.constant(2)});
  m.addOutput(f, "words", DLCRT_DTYPE_STRING, {m.exprs.constant(1)});
  m.addVariant(f).plan.ret();
  TestModel model(m);
  dlcrt_string string = {"a", 1};
  int64_t one[] = {1}, two[] = {2}, strides[] = {2};
  EXPECT_FAILS(model, DLCRT_ERROR_UNSUPPORTED,
               "input 'text' is a tensor of strings, which this version of the runtime does not take",
               model.instance.bindInput(0u, tensor(DLCRT_DTYPE_STRING, &string, one, 1), model.error));
  EXPECT_FAILS(model, DLCRT_ERROR_UNSUPPORTED,
               "input 'text': this version of the runtime does not take sequences and optionals",
               dlcrt_instance_bind_input_object(model.instance.c(), 0, nullptr, model.error.c()));
  dlcrt_object *object;
  EXPECT_FAILS(model, DLCRT_ERROR_UNSUPPORTED,
               "output 'words': this version of the runtime does not make sequences and optionals",
               dlcrt_instance_output_object(model.instance.c(), 0, &object, model.error.c()));
  uint8_t packed[1] = {0x21};
  Tensor tensor = dlcrt::tensor(DLCRT_DTYPE_INT4, packed, two, 1);
  tensor.strides = strides;
  EXPECT_FAILS(model, DLCRT_ERROR_UNSUPPORTED, "input 'packed': a tensor of i4 has to be dense",
               model.instance.bindInput(1u, tensor, model.error));
}
