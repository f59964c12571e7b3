/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The memory of an instance: what it takes, when it takes it, and that it takes no more than it may.
#include "TestModel.h"

#include <set>

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

/// y = ((x * 2) * 2) * 2 over symbolic slots, with 'n' free.
ModuleBuilder chainModule(int length = 3) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  uint32_t n = m.addSymbol(f, "n");
  m.addInput(f, "x", DLCRT_DTYPE_FLOAT32, {n});
  m.addOutput(f, "y", DLCRT_DTYPE_FLOAT32, {n});
  PlanBuilder &plan = m.addVariant(f).plan;
  uint32_t count = plan.exprs.symbol(0), bytes = plan.exprs.mul(count, plan.exprs.constant(4)),
           tiles = plan.exprs.ceilDiv(count, plan.exprs.constant(KERNEL_TILE)), two = plan.exprs.constant(2);
  uint32_t value = plan.input(0);
  for (int i = 0; i < length; ++i) {
    if (i)
      plan.stage(uint32_t(i));
    uint32_t next =
        i == length - 1 ? plan.output(0, bytes, {count}) : plan.symbolicSlot(bytes, uint32_t(i), uint32_t(i) + 1);
    plan.launch(KERNEL_scale, tiles, {value, next}, {count, two});
    value = next;
  }
  plan.ret();
  return m;
}

struct CountingAllocator {
  uint64_t calls = 0, live = 0, limit = UINT64_MAX;
  dlcrt_allocator c() {
    return {sizeof(dlcrt_allocator), 0, this,
            [](void *ctx, uint64_t bytes, uint64_t alignment) -> void * {
              auto &self = *static_cast<CountingAllocator *>(ctx);
              void *memory = nullptr;
              EXPECT_EQ(alignment & (alignment - 1), 0u);
              EXPECT_LE(alignment, 4096u);
              if (++self.calls > self.limit || posix_memalign(&memory, alignment < 8 ? 8 : alignment, bytes + 1))
                return nullptr;
              self.live += bytes;
              return memory;
            },
            [](void *ctx, void *memory, uint64_t bytes) {
              EXPECT_NE(memory, nullptr);
              static_cast<CountingAllocator *>(ctx)->live -= bytes;
              free(memory);
            }};
  }
};

} // namespace

TEST(Memory, SlotsAreReused) {
  TestModel model(chainModule(10));
  ASSERT_TRUE(model.input<float>(0, iotaFloats(1600), {1600}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<float>(0)[3], 3 * 1024);
  EXPECT_EQ(model.instance.statistics().arena_bytes, 2u * 6400); // two of nine at a time
}

TEST(Memory, ArenaOfGivenDims) {
  TestModel model(chainModule(10));
  dlcrt_arena_info info = {};
  info.struct_size = sizeof(info);
  int64_t n = 1600;
  ASSERT_EQ(dlcrt_module_variant_arena(model.module.c(), 0, &n, 1, &info, model.error.c()), DLCRT_OK)
      << model.message();
  EXPECT_EQ(info.bytes, 2u * 6400);
  EXPECT_EQ(info.lower_bound_bytes, 2u * 6400);
  n = INT64_MAX / 2; // more bytes than 64 bits can say
  EXPECT_FAILS(model, DLCRT_ERROR_OVERFLOW, "the size of a buffer for these dims does not fit into 64 bits",
               dlcrt_module_variant_arena(model.module.c(), 0, &n, 1, &info, model.error.c()));
  n = INT64_MAX / 8; // each of them fits, and both do not
  EXPECT_FAILS(model, DLCRT_ERROR_OVERFLOW, "the buffers for these dims need more than 2^62 bytes",
               dlcrt_module_variant_arena(model.module.c(), 0, &n, 1, &info, model.error.c()));
}

TEST(Memory, NoAllocationInARunForKnownDims) {
  CountingAllocator counting;
  dlcrt_allocator allocator = counting.c();
  dlcrt_instance_options options = instanceOptions();
  options.allocator = &allocator;
  TestModel model(chainModule(5), options);
  std::vector<std::vector<float>> inputs;
  for (size_t n : {100u, 3000u, 16u, 777u})
    inputs.push_back(iotaFloats(n));
  auto runAll = [&] {
    for (auto &x : inputs) {
      ASSERT_TRUE(model.bind(0, x, {int64_t(x.size())}));
      ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
      EXPECT_EQ(model.instance.output(0u, model.error).elements<float>()[5], 5 * 32);
    }
  };
  runAll();
  uint64_t calls = counting.calls, layouts = model.instance.statistics().layouts_computed;
  EXPECT_EQ(layouts, 4u);
  EXPECT_EQ(model.instance.statistics().allocations, calls);
  for (int i = 0; i < 10; ++i)
    runAll();
  EXPECT_EQ(counting.calls, calls);
  EXPECT_EQ(model.instance.statistics().layouts_computed, layouts);
  EXPECT_EQ(model.instance.statistics().runs, 44u);
  model.instance = Instance();
  EXPECT_EQ(counting.live, 0u);
}

TEST(Memory, LayoutCacheIsBounded) {
  TestModel model(chainModule(3));
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 1; n <= 40; ++n) {
      ASSERT_TRUE(model.input<float>(0, iotaFloats(size_t(n)), {n}));
      ASSERT_EQ(model.run(), DLCRT_OK);
      EXPECT_EQ(model.output<float>(0).back(), float(n - 1) * 8);
    }
  EXPECT_EQ(model.instance.statistics().layouts_computed, 80u);
}

TEST(Memory, EveryFailingAllocation) {
  // Whichever allocation fails, the error says so, nothing leaks, and the instance works once there is memory.
  for (uint64_t limit = 0;; ++limit) {
    CountingAllocator counting;
    counting.limit = limit;
    dlcrt_allocator allocator = counting.c();
    dlcrt_instance_options options = instanceOptions();
    options.allocator = &allocator;
    bool done = false;
    {
      TestModel model(chainModule(4), options);
      if (!model.instance) {
        EXPECT_EQ(model.error.code(), DLCRT_ERROR_OUT_OF_MEMORY);
      } else {
        ASSERT_TRUE(model.input<float>(0, iotaFloats(50), {50}));
        done = model.run() == DLCRT_OK;
        EXPECT_EQ(model.error.code(), done ? DLCRT_OK : DLCRT_ERROR_OUT_OF_MEMORY);
        counting.limit = UINT64_MAX;
        ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
        EXPECT_EQ(model.output<float>(0)[1], 16);
      }
    }
    EXPECT_EQ(counting.live, 0u);
    if (done)
      break;
    ASSERT_LT(limit, 200u);
  }
}

TEST(Memory, ArenaLimit) {
  dlcrt_instance_options options = instanceOptions();
  options.arena_limit = 3 * 4096;
  TestModel model(chainModule(5), options);
  ASSERT_TRUE(model.input<float>(0, iotaFloats(1024), {1024}));
  EXPECT_EQ(model.run(), DLCRT_OK) << model.message(); // two slots and the output
  ASSERT_TRUE(model.input<float>(0, iotaFloats(1040), {1040}));
  EXPECT_FAILS(model, DLCRT_ERROR_ARENA_LIMIT, "these dims need 12416 bytes of memory, but the arena limit is 12288",
               model.run());
  ASSERT_TRUE(model.input<float>(0, iotaFloats(512), {512}));
  EXPECT_EQ(model.run(), DLCRT_OK) << model.message();
}

TEST(Memory, SymbolicSlotsFillGapsBetweenFixedOnes) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main"), one = m.exprs.constant(1);
  m.addOutput(f, "y", DLCRT_DTYPE_INT64, {one});
  PlanBuilder &plan = m.addVariant(f).plan;
  plan.header.fixed_bytes[0] = 4096;
  uint32_t eight = plan.exprs.constant(8), unit = plan.exprs.constant(1), large = plan.exprs.constant(2048),
           four = plan.exprs.constant(4);
  plan.fixedSlot(0, large, 0, 0);
  uint32_t kept = plan.fixedSlot(2048, eight, 0, 1);
  plan.fill(kept, DLCRT_DTYPE_INT64, unit, {four});
  plan.stage(1);
  uint32_t slot = plan.symbolicSlot(large, 1, 1); // where the first fixed one was
  plan.fill(slot, DLCRT_DTYPE_UINT8, large, {unit});
  plan.copy(plan.output(0, eight, {unit}), kept, eight);
  plan.ret();
  TestModel model(m);
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<int64_t>(0)[0], 4);
  EXPECT_EQ(model.instance.statistics().arena_bytes, 4096u);
}

TEST(Memory, SizesThatMakeNoSenseInBranchesNotTaken) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main"), n = m.addSymbol(f, "n");
  m.addInput(f, "x", DLCRT_DTYPE_INT8, {n});
  m.addOutput(f, "y", DLCRT_DTYPE_INT8, {n});
  PlanBuilder &plan = m.addVariant(f).plan;
  uint32_t count = plan.exprs.symbol(0), hundred = plan.exprs.constant(-100), fewer = plan.exprs.add(count, hundred),
           zero = plan.exprs.constant(0);
  uint32_t many = plan.exprs.select(DLCRT_EXPR_SELECT_LT, zero, fewer, plan.exprs.constant(1), zero);
  uint32_t x = plan.input(0), y = plan.output(0, count, {count});
  plan.branch(
      many, [&] { plan.copy(plan.symbolicSlot(fewer, 0, 0), x, fewer); }, [] {});
  plan.copy(y, x, count);
  plan.ret();
  TestModel model(m);
  for (int64_t length : {5, 150}) {
    ASSERT_TRUE(model.input<int8_t>(0, std::vector<int8_t>(size_t(length), 3), {length}));
    EXPECT_EQ(model.run(), DLCRT_OK) << model.message();
  }
}

TEST(Memory, ModulesInAlignedMemoryAreUsedInPlace) {
  ModuleBuilder builder = addModule();
  int64_t data[] = {1, 2};
  uint32_t f = builder.addFunction("constants"), two = builder.exprs.constant(2);
  builder.addInput(f, "d", DLCRT_DTYPE_INT64, {two});
  builder.functions[f].inputs[0].default_constant = builder.addConstant(data, sizeof(data));
  builder.addVariant(f).plan.ret();
  Bytes bytes = builder.build();
  void *aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 64, bytes.size()), 0);
  memcpy(aligned, bytes.data(), bytes.size());
  Error error;
  {
    Module module = Module::open(aligned, bytes.size(), error);
    ASSERT_TRUE(module) << error.message();
    Tensor tensor;
    int64_t dims[1];
    ASSERT_EQ(dlcrt_module_input_default(module.c(), f, 0, &tensor, dims, error.c()), DLCRT_OK);
    EXPECT_GE(tensor.data, aligned);
    EXPECT_LT(tensor.data, static_cast<char *>(aligned) + bytes.size());
  }
  free(aligned);
}
