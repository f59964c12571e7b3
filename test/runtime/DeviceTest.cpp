/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Plans over two devices. The second one is fake, but as strict as a real one about whose memory is whose.
#include "FakeDevice.h"
#include "TestModel.h"

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

struct DeviceTest : testing::Test {
  FakeDevice fake;
  ModuleBuilder module;
  uint32_t f = module.addFunction("main"), n = module.addSymbol(f, "n");
  PlanBuilder *p = nullptr;
  uint32_t count = 0, bytes = 0, tiles = 0, one = 0;
  dlcrt_device_factory factory = fake.factory();

  void SetUp() override {
    fake.kernels["triple"] = [](auto &buffers, auto &scalars, uint32_t) {
      for (int64_t i = 0; i < scalars[0]; ++i)
        static_cast<float *>(buffers[1])[i] = 3 * static_cast<float *>(buffers[0])[i];
    };
    module.addInput(f, "x", DLCRT_DTYPE_FLOAT32, {n});
    module.addOutput(f, "y", DLCRT_DTYPE_FLOAT32, {n});
    VariantBuilder &variant = module.addVariant(f, "fake:test");
    variant.desc.device = DLCRT_DEVICE_HOST_CALLBACKS;
    variant.kernels.push_back({module.string("triple"), 1, 0, 2, 1, 0, 0});
    p = &variant.plan;
    count = p->exprs.symbol(0);
    bytes = p->exprs.mul(count, p->exprs.constant(4));
    tiles = p->exprs.ceilDiv(count, p->exprs.constant(KERNEL_TILE));
    one = p->exprs.constant(1);
  }
  void triple(uint32_t from, uint32_t to) { p->launch(KERNEL_COUNT, one, {from, to}, {count}, DLCRT_NONE, 1); }
  dlcrt_instance_options options() {
    dlcrt_instance_options options = instanceOptions();
    options.device_factories = &factory;
    options.device_factory_count = 1;
    return options;
  }
};

} // namespace

TEST_F(DeviceTest, UploadComputeDownload) {
  uint32_t x = p->input(0), a = p->symbolicSlot(bytes, 0, 2, 1), b = p->symbolicSlot(bytes, 1, 2, 1),
           c = p->symbolicSlot(bytes, 0, 2, 0), two = p->exprs.constant(2);
  p->copy(a, x, bytes);
  p->stage(1);
  triple(a, b);
  p->copy(a, b, bytes);
  p->stage(2);
  p->copy(c, a, bytes);
  p->launch(KERNEL_scale, tiles, {c, p->output(0, bytes, {count})}, {count, two});
  p->ret();
  {
    TestModel model(module, options());
    ASSERT_TRUE(model.instance) << model.message();
    for (size_t length : {20u, 50u, 20u}) {
      fake.log.clear();
      ASSERT_TRUE(model.input<float>(0, iotaFloats(length), {int64_t(length)}));
      ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
      EXPECT_EQ(model.output<float>(0)[7], 42);
      std::string size = std::to_string(4 * length);
      EXPECT_EQ(fake.log,
                (std::vector<std::string>{"upload " + size, "launch triple", "copy " + size, "download " + size}));
    }
    // Both arenas, each with its own slots.
    EXPECT_EQ(model.instance.statistics().arena_bytes, 256u + 512u);
    EXPECT_EQ(fake.devices, 1);
    EXPECT_EQ(fake.images, 1);
    EXPECT_EQ(fake.allocations(), 1u);
  }
  EXPECT_EQ(fake.devices, 0);
  EXPECT_EQ(fake.images, 0);
  EXPECT_EQ(fake.allocations(), 0u);
}

TEST_F(DeviceTest, ConstantsAreUploadedOnce) {
  float data[] = {1, 2, 3, 4};
  p->header.fixed_bytes[1] = 64;
  uint32_t four = p->exprs.constant(4), sixteen = p->exprs.constant(16);
  uint32_t c = p->constant(module.addConstant(data, sizeof(data)), 1), slot = p->fixedSlot(0, sixteen, 0, 0, 1);
  p->launch(KERNEL_COUNT, one, {c, slot}, {four}, DLCRT_NONE, 1);
  p->copy(p->output(0, bytes, {count}), slot, bytes);
  p->ret();
  TestModel model(module, options());
  ASSERT_TRUE(model.input<float>(0, {0, 0, 0, 0}, {4})) << model.message();
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<float>(0), (std::vector<float>{3, 6, 9, 12}));
  EXPECT_EQ(std::count(fake.log.begin(), fake.log.end(), "upload 16"), 1);
}

TEST_F(DeviceTest, FillsAndReads) {
  uint32_t slot = p->lateSlot(bytes, 0, 0, 1), late = p->lateSymbol(), value = p->exprs.symbol(late),
           five = p->exprs.constant(5), six = p->exprs.constant(6), y = p->output(0, bytes, {count});
  p->fill(slot, DLCRT_DTYPE_FLOAT32, count, {five, six});
  p->copy(y, slot, bytes);
  p->fill(slot, DLCRT_DTYPE_INT32, count, {six});
  p->read(slot, DLCRT_DTYPE_INT32, one, late);
  p->dim(value, 1);
  p->fill(p->view(y, p->exprs.constant(0), p->exprs.constant(4)), DLCRT_DTYPE_FLOAT32, one, {value});
  p->ret();
  TestModel model(module, options());
  ASSERT_TRUE(model.input<float>(0, {0, 0, 0, 0}, {4})) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<float>(0), (std::vector<float>{6, 6, 5, 6}));
}

TEST_F(DeviceTest, TensorsOnTheDevice) {
  // An application that keeps its data there: nothing goes through the host.
  uint32_t x = p->input(0), y = p->output(0, bytes, {count});
  triple(x, y);
  p->ret();
  TestModel model(module, options());
  std::vector<float> data = iotaFloats(8), result(8);
  int64_t dims[] = {8};
  Tensor in = tensor(DLCRT_DTYPE_FLOAT32, fake.allocate(32), dims, 1), out = in;
  out.data = fake.allocate(32);
  in.device_kind = out.device_kind = DLCRT_MEMORY_HOST_CALLBACKS;
  in.device_index = 3;
  EXPECT_FAILS(model, DLCRT_ERROR_DEVICE,
               "input 'x' is in memory of kind 3, device 3, which this instance does not use",
               model.instance.bindInput(0u, in, model.error));
  in.device_index = out.device_index = 4;
  fake.write(in.data, data.data(), 32);
  ASSERT_TRUE(model.instance.bindInput(0u, in, model.error)) << model.message();
  ASSERT_TRUE(model.instance.bindOutput(0u, out, model.error)) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(fake.log, (std::vector<std::string>{"launch triple"})); // the run has waited
  fake.read(result.data(), out.data, 32);
  EXPECT_EQ(result[7], 21);
  Tensor seen = model.instance.output(0u, model.error);
  EXPECT_EQ(seen.device_kind, DLCRT_MEMORY_HOST_CALLBACKS);
  EXPECT_EQ(seen.device_index, 4);
  EXPECT_EQ(seen.data, out.data);
  // With a stream of its own the application waits itself.
  fake.log.clear();
  dlcrt_run_options run = runOptions();
  run.stream = &run;
  ASSERT_EQ(model.run(run), DLCRT_OK);
  EXPECT_TRUE(fake.log.empty());
}

TEST_F(DeviceTest, MemoryOfTheWrongDevice) {
  uint32_t x = p->input(0), y = p->output(0, bytes, {count});
  triple(x, y);
  p->ret();
  TestModel model(module, options());
  ASSERT_TRUE(model.input<float>(0, {1}, {1}));
  EXPECT_FAILS(model, DLCRT_ERROR_DEVICE, "kernel 'triple' runs on device 1, but its buffer 0 is on device 0",
               model.run());
}

TEST_F(DeviceTest, FailingDevice) {
  p->header.fixed_bytes[1] = 64;
  uint32_t slot = p->fixedSlot(0, p->exprs.constant(64), 0, 0, 1);
  triple(slot, slot);
  p->output(0, bytes, {count});
  p->ret();
  TestModel model(module, options());
  ASSERT_TRUE(model.input<float>(0, {1}, {1}));
  fake.failLaunch = DLCRT_ERROR_DEVICE;
  EXPECT_FAILS(model, DLCRT_ERROR_DEVICE, "kernel 'triple': fake device: no more launches", model.run());
}

TEST_F(DeviceTest, FallsBackToTheProcessor) {
  p->ret();
  ModuleBuilder &m = module;
  PlanBuilder &cpu = m.addVariant(f, "cpu:test", -5).plan;
  uint32_t length = cpu.exprs.symbol(0), size = cpu.exprs.mul(length, cpu.exprs.constant(4));
  cpu.copy(cpu.output(0, size, {length}), cpu.input(0), size);
  cpu.ret();
  TestModel model(module); // no factory
  ASSERT_TRUE(model.instance) << model.message();
  EXPECT_EQ(dlcrt_instance_variant(model.instance.c()), 1u);
  ASSERT_TRUE(model.input<float>(0, {9}, {1}));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<float>(0)[0], 9);
}
