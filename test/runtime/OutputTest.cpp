/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The forms in which results come: the runtime's memory, the caller's, a callback's; known and late sizes.
#include "TestModel.h"


using namespace dlcrt;
using namespace dlcrt::test;

namespace {

/// y: i64[?] = the elements of x: i64[n] that are not 0. The pattern of NonZero, Compress and the like.
ModuleBuilder compactModule() {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  uint32_t n = m.addSymbol(f, "n");
  m.addInput(f, "x", DLCRT_DTYPE_INT64, {n});
  m.addOutput(f, "y", DLCRT_DTYPE_INT64, {DLCRT_NONE});
  PlanBuilder &plan = m.addVariant(f).plan;
  plan.header.fixed_bytes[0] = 64;
  uint32_t length = plan.exprs.symbol(0), one = plan.exprs.constant(1), zero = plan.exprs.constant(0),
           eight = plan.exprs.constant(8);
  uint32_t late = plan.lateSymbol(), count = plan.exprs.symbol(late), bytes = plan.exprs.mul(count, eight);
  uint32_t x = plan.input(0), counter = plan.fixedSlot(0, eight, 0, 0);
  plan.launch(KERNEL_count_nonzero, one, {x, counter}, {length});
  plan.stage(1);
  plan.read(counter, DLCRT_DTYPE_INT64, zero, late);
  plan.dim(count, 2);
  uint32_t kept = plan.lateSlot(bytes, 1, 1), y = plan.output(0, bytes, {count});
  plan.launch(KERNEL_compact, one, {x, kept}, {length});
  plan.copy(y, kept, bytes);
  plan.ret();
  return m;
}

struct AddOutput : testing::Test {
  TestModel model{addModule()};

  void SetUp() override {
    ASSERT_TRUE(model.input<float>(0, iotaFloats(6), {6}) && model.input<float>(1, iotaFloats(6, 10), {6}));
  }
};

const std::vector<float> sums = {10, 12, 14, 16, 18, 20};

} // namespace

TEST_F(AddOutput, OwnedByTheRuntime) {
  ASSERT_EQ(model.run(), DLCRT_OK);
  EXPECT_EQ(model.output<float>(0), sums);
  EXPECT_EQ(model.outputDims(0), Dims{6});
  EXPECT_EQ(model.instance.output(0u, model.error).capacity, 24u);
  EXPECT_GT(model.instance.statistics().output_bytes, 0u);
}

TEST_F(AddOutput, Bound) {
  std::vector<float> memory(6);
  int64_t dims[] = {-5};
  Tensor tensor = dlcrt::tensor(memory.data(), dims);
  tensor.capacity = 24;
  ASSERT_TRUE(model.instance.bindOutput("y", tensor, model.error)) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(memory, sums);
  EXPECT_EQ(dims[0], 6);
  EXPECT_EQ(model.instance.output(0u, model.error).data, memory.data());
  EXPECT_EQ(model.instance.statistics().output_bytes, 0u);
  // Too small for other dims.
  ASSERT_TRUE(model.input<float>(0, iotaFloats(7), {7}) && model.input<float>(1, iotaFloats(7), {7}));
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY, "output 'y' needs 28 bytes, but has 24", model.run());
  ASSERT_EQ(dlcrt_instance_unbind_output(model.instance.c(), 0, model.error.c()), DLCRT_OK);
  EXPECT_EQ(model.run(), DLCRT_OK);
  EXPECT_EQ(model.output<float>(0).size(), 7u);
}

TEST_F(AddOutput, BoundStrided) {
  std::vector<float> memory(11, -1);
  int64_t dims[1], strides[] = {2};
  Tensor tensor = dlcrt::tensor(DLCRT_DTYPE_FLOAT32, memory.data(), dims, 1);
  tensor.strides = strides;
  tensor.capacity = 40;
  ASSERT_TRUE(model.instance.bindOutput(0u, tensor, model.error)) << model.message();
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY, "output 'y' needs 44 bytes, but has 40", model.run());
  tensor.capacity = 44;
  ASSERT_TRUE(model.instance.bindOutput(0u, tensor, model.error)) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  for (size_t i = 0; i < 11; ++i)
    EXPECT_EQ(memory[i], i % 2 ? -1 : sums[i / 2]);
  EXPECT_EQ(model.instance.output(0u, model.error).strides[0], 2);
  strides[0] = -1;
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "output 'y': stride 0 is negative",
               model.instance.bindOutput(0u, tensor, model.error));
}

TEST_F(AddOutput, BoundUnaligned) {
  std::vector<char> memory(25);
  int64_t dims[1];
  Tensor tensor = dlcrt::tensor(DLCRT_DTYPE_FLOAT32, memory.data(), dims, 1);
  tensor.byte_offset = 1;
  tensor.capacity = 24;
  ASSERT_TRUE(model.instance.bindOutput(0u, tensor, model.error)) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(memcmp(memory.data() + 1, sums.data(), 24), 0);
}

TEST_F(AddOutput, FromACallback) {
  struct Context {
    std::vector<float> memory;
    Dims dims;
    bool give = true;
  } context;
  auto callback = [](void *ctx, uint32_t output, const dlcrt_tensor *tensor) -> void * {
    Context &context = *static_cast<Context *>(ctx);
    EXPECT_EQ(output, 0u);
    EXPECT_EQ(tensor->dtype, DLCRT_DTYPE_FLOAT32);
    context.dims.assign(tensor->dims, tensor->dims + tensor->rank);
    context.memory.resize(tensor->capacity / 4);
    return context.give ? context.memory.data() : nullptr;
  };
  ASSERT_EQ(dlcrt_instance_bind_output_callback(model.instance.c(), 0, callback, &context, model.error.c()), DLCRT_OK);
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(context.memory, sums);
  EXPECT_EQ(context.dims, Dims{6});
  context.give = false;
  EXPECT_FAILS(model, DLCRT_ERROR_OUT_OF_MEMORY, "the callback for output 'y' gave no memory for 24 bytes",
               model.run());
}

TEST_F(AddOutput, WrongTensors) {
  float data;
  int64_t data64, dims[2] = {1, 1};
  EXPECT_FAILS(model, DLCRT_ERROR_DTYPE, "output 'y': expected f32, got i64",
               model.instance.bindOutput(0u, tensor(DLCRT_DTYPE_INT64, &data64, dims, 1), model.error));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "output 'y': expected rank 1, got 2",
               model.instance.bindOutput(0u, tensor(DLCRT_DTYPE_FLOAT32, &data, dims, 2), model.error));
}

TEST_F(AddOutput, MayBeAnInput) {
  // Element-wise kernels allow it; the runtime does not stand in the way.
  std::vector<float> memory = iotaFloats(6);
  int64_t dims[] = {6};
  ASSERT_TRUE(model.instance.bindInput(0u, tensor(memory.data(), dims), model.error));
  ASSERT_TRUE(model.instance.bindOutput(0u, tensor(memory.data(), dims), model.error));
  ASSERT_EQ(model.run(), DLCRT_OK);
  EXPECT_EQ(memory, sums);
}

TEST(LateOutput, AllForms) {
  TestModel model(compactModule());
  ASSERT_TRUE(model.input<int64_t>(0, {0, 4, 0, 6, 7}, {5}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<int64_t>(0), (std::vector<int64_t>{4, 6, 7}));
  EXPECT_GT(model.instance.statistics().late_bytes, 0u);
  // Nothing is left.
  ASSERT_TRUE(model.input<int64_t>(0, {0, 0}, {2}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.outputDims(0), Dims{0});
  // More than ever.
  ASSERT_TRUE(model.input<int64_t>(0, std::vector<int64_t>(5000, 3), {5000}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<int64_t>(0).size(), 5000u);
  // Into the caller's memory, if it is enough.
  std::vector<int64_t> memory(2);
  int64_t dims[1];
  Tensor tensor = dlcrt::tensor(DLCRT_DTYPE_INT64, memory.data(), dims, 1);
  tensor.capacity = 16;
  ASSERT_TRUE(model.instance.bindOutput(0u, tensor, model.error));
  ASSERT_TRUE(model.input<int64_t>(0, {5, 0, 6}, {3}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(memory, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(dims[0], 2);
  ASSERT_TRUE(model.input<int64_t>(0, {5, 5, 6}, {3}));
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY, "output 'y' needs 24 bytes, but has 16", model.run());
}

TEST(LateOutput, NoAllocationOnceLargeEnough) {
  TestModel model(compactModule());
  ASSERT_TRUE(model.input<int64_t>(0, std::vector<int64_t>(100, 1), {100}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  uint64_t before = model.instance.statistics().allocations;
  for (int64_t n = 100; n > 90; --n) {
    ASSERT_TRUE(model.input<int64_t>(0, std::vector<int64_t>(100, 1), {100}));
    ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  }
  EXPECT_EQ(model.instance.statistics().allocations, before);
}
