/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Running: workers, variants by dims, stopping early, the floating-point state, tracing, many instances at once.
#include "TestModel.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

/// out: i64[tiles] of one launch with one element a tile.
ModuleBuilder tilesModule(uint32_t kernel, int64_t tiles, std::vector<int64_t> scalars, int64_t scratch = 0) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main"), size = m.exprs.constant(tiles);
  m.addOutput(f, "out", DLCRT_DTYPE_INT64, {size});
  VariantBuilder &variant = m.addVariant(f);
  PlanBuilder &p = variant.plan;
  uint32_t count = p.exprs.constant(tiles), bytes = p.exprs.constant(8 * tiles),
           scratchBytes = p.exprs.constant(scratch);
  Numbers values;
  for (int64_t scalar : scalars)
    values.push_back(p.exprs.constant(scalar));
  uint32_t debug = m.addDebug("layer", "Gemm");
  p.launch(kernel, count, {p.output(0, bytes, {count})}, values, scratch ? scratchBytes : DLCRT_NONE, 0, debug);
  p.ret();
  return m;
}

dlcrt_instance_options onPool(const Pool &pool) {
  dlcrt_instance_options options = instanceOptions();
  pool.use(options);
  return options;
}

uint64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

} // namespace

TEST(Run, WorkerNumbersAndTilesAreComplete) {
  for (uint32_t threads : {1u, 2u, 5u}) {
    Pool pool(threads);
    for (int64_t tiles : {1, 2, 7, 1000}) {
      TestModel model(tilesModule(KERNEL_worker, tiles, {tiles}), onPool(pool));
      ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
      for (int64_t worker : model.output<int64_t>(0))
        EXPECT_TRUE(worker >= 0 && worker < threads) << worker;
    }
  }
}

TEST(Run, ScratchIsEachWorkersOwn) {
  Pool pool(4);
  TestModel model(tilesModule(KERNEL_scratch, 200, {200}, 1000), onPool(pool));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  for (int64_t sum : model.output<int64_t>(0))
    EXPECT_EQ(sum, 1000);
  EXPECT_EQ(model.instance.statistics().scratch_bytes, 4u * 1024);
}

TEST(Run, ParallelForOfTheApplication) {
  // A serial one in reverse order is allowed, too.
  struct Context {
    uint32_t calls = 0, most = 0;
  } context;
  dlcrt_instance_options options = instanceOptions();
  options.workers = 3;
  options.parallel_ctx = &context;
  options.parallel_for = [](void *ctx, uint32_t count, dlcrt_task_fn task, void *taskCtx) {
    Context &c = *static_cast<Context *>(ctx);
    ++c.calls;
    c.most = std::max(c.most, count);
    while (count-- > 0)
      task(taskCtx, count);
  };
  TestModel model(tilesModule(KERNEL_worker, 50, {50}), options);
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.output<int64_t>(0), std::vector<int64_t>(50, 2));
  EXPECT_EQ(context.calls, 1u);
  EXPECT_EQ(context.most, 3u);
}

TEST(Run, VariantByDims) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main"), n = m.addSymbol(f, "n");
  m.addInput(f, "x", DLCRT_DTYPE_INT8, {n});
  m.addOutput(f, "y", DLCRT_DTYPE_INT64, {m.exprs.constant(1)});
  uint32_t guard =
      m.exprs.select(DLCRT_EXPR_SELECT_EQ, n, m.exprs.constant(4), m.exprs.constant(1), m.exprs.constant(0));
  for (int i = 0; i < 3; ++i) {
    VariantBuilder &variant = m.addVariant(f, "cpu:test", i == 0 ? 0 : 5); // the last two: equal priorities
    if (i)
      variant.desc.guard = guard;
    PlanBuilder &p = variant.plan;
    uint32_t one = p.exprs.constant(1), value = p.exprs.constant(100 + i);
    p.fill(p.output(0, p.exprs.constant(8), {one}), DLCRT_DTYPE_INT64, one, {value});
    p.ret();
  }
  TestModel model(m);
  for (int64_t length : {3, 4, 5, 4}) {
    ASSERT_TRUE(model.input<int8_t>(0, std::vector<int8_t>(size_t(length)), {length}));
    ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
    EXPECT_EQ(model.output<int64_t>(0)[0], length == 4 ? 102 : 100);
    EXPECT_EQ(dlcrt_instance_variant(model.instance.c()), length == 4 ? 2u : 0u);
  }
  m.variants[0]->desc.guard = guard;
  TestModel none(m);
  ASSERT_TRUE(none.input<int8_t>(0, {1}, {1}));
  EXPECT_FAILS(none, DLCRT_ERROR_NO_VARIANT, "function 'main' has no variant for these dims", none.run());
}

TEST(Run, CancelBeforeAndDuring) {
  Pool pool(2);
  TestModel model(tilesModule(KERNEL_spin, 100000, {100000, 100000}), onPool(pool)); // much longer than anyone waits
  std::atomic<uint32_t> cancel{1};
  dlcrt_run_options options = runOptions();
  options.cancel = reinterpret_cast<const uint32_t *>(&cancel);
  EXPECT_FAILS(model, DLCRT_ERROR_CANCELLED, "the run was cancelled", model.run(options));
  cancel = 0;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel = 1;
  });
  uint64_t begin = nowNs();
  EXPECT_FAILS(model, DLCRT_ERROR_CANCELLED, "the run was cancelled", model.run(options));
  canceller.join();
  EXPECT_GT(nowNs() - begin, 10000000u);
  EXPECT_EQ(dlcrt_instance_output(model.instance.c(), 0, nullptr, nullptr), DLCRT_ERROR_NOT_BOUND);
}

TEST(Run, Deadline) {
  TestModel model(tilesModule(KERNEL_spin, 100000, {100000, 100000}));
  dlcrt_run_options options = runOptions();
  options.deadline_ns = nowNs() + 20000000;
  EXPECT_FAILS(model, DLCRT_ERROR_DEADLINE, "the run's deadline has passed", model.run(options));
  EXPECT_GE(nowNs(), options.deadline_ns);
  TestModel quick(tilesModule(KERNEL_spin, 3, {3, 1}));
  options.deadline_ns = nowNs() + 60000000000;
  EXPECT_EQ(quick.run(options), DLCRT_OK) << quick.message();
}

TEST(Run, Trace) {
  TestModel model(tilesModule(KERNEL_worker, 5, {5}));
  std::vector<std::string> events;
  dlcrt_run_options options = runOptions();
  options.trace_ctx = &events;
  options.trace = [](void *ctx, const dlcrt_trace_event *event) {
    EXPECT_GE(event->end_ns, event->begin_ns);
    EXPECT_EQ(event->kind, DLCRT_TRACE_LAUNCH);
    static_cast<std::vector<std::string> *>(ctx)->push_back(std::string(event->name) + " " + event->node_names + " " +
                                                            event->op_types + " " + std::to_string(event->tiles));
  };
  ASSERT_EQ(model.run(options), DLCRT_OK);
  EXPECT_EQ(events, (std::vector<std::string>{"worker layer Gemm 5"}));
}

#if defined(__x86_64__)
TEST(Run, FloatingPointState) {
  ModuleBuilder m;
  uint32_t f = m.addFunction("main");
  m.addOutput(f, "out", DLCRT_DTYPE_FLOAT32, {m.exprs.constant(64)});
  PlanBuilder &p = m.addVariant(f).plan;
  uint32_t count = p.exprs.constant(64), bytes = p.exprs.constant(256), tiles = p.exprs.constant(4);
  p.launch(KERNEL_float_state, tiles, {p.output(0, bytes, {count})}, {count});
  p.ret();
  unsigned before = _mm_getcsr();
  _mm_setcsr(0xffc0 & ~0x3f); // flush to zero, denormals are zero, round to zero
  unsigned set = _mm_getcsr();
  {
    Pool pool(3); // its threads inherit this state
    TestModel model(m, onPool(pool));
    dlcrt_status status = model.run();
    EXPECT_EQ(_mm_getcsr(), set);
    _mm_setcsr(before);
    ASSERT_EQ(status, DLCRT_OK) << model.message();
    for (float value : model.output<float>(0))
      EXPECT_NE(value, 0.0f);
  }
}
#endif

TEST(Run, InstancesOfOneModuleAtOnce) {
  ModuleBuilder builder = addModule();
  TestModel model(builder);
  Pool pool(3);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Error error;
      dlcrt_instance_options options = instanceOptions();
      if (t % 2)
        pool.use(options);
      Instance instance = Instance::create(model.module, options, error);
      for (int round = 0; round < 60; ++round) {
        size_t n = size_t(1 + (round * 37 + t * 11) % 900);
        std::vector<float> a = iotaFloats(n, float(t)), b = iotaFloats(n, float(round));
        int64_t dims[] = {int64_t(n)};
        bool ok = instance.bindInput(0u, tensor(a.data(), dims), error) &&
                  instance.bindInput(1u, tensor(b.data(), dims), error) && instance.run(error);
        Tensor y = instance.output(0u, error);
        ok = ok && y && y.count() == n;
        for (size_t i = 0; ok && i < n; ++i)
          ok = y.elements<float>()[i] == float(t) + float(round) + 2 * float(i);
        failures += !ok;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
}

TEST(Run, TwoThreadsOnOneInstanceAreNoticed) {
  TestModel model(tilesModule(KERNEL_spin, 100000, {100000, 100000}));
  std::atomic<uint32_t> cancel{0};
  dlcrt_run_options options = runOptions();
  options.cancel = reinterpret_cast<const uint32_t *>(&cancel);
  std::thread runner([&] {
    while (model.run(options) == DLCRT_ERROR_BUSY)
      ;
  });
  // Until the other thread is inside, ours gets in and is cancelled at once.
  const uint32_t cancelled = 1;
  dlcrt_run_options probe = runOptions();
  probe.cancel = &cancelled;
  Error error;
  while (dlcrt_instance_run(model.instance.c(), &probe, error.c()) == DLCRT_ERROR_CANCELLED)
    std::this_thread::yield();
  EXPECT_EQ(error.code(), DLCRT_ERROR_BUSY);
  EXPECT_STREQ(error.message(), "the instance is in use by another thread");
  cancel = 1;
  runner.join();
}

TEST(Run, WrongArguments) {
  TestModel model(addModule());
  EXPECT_EQ(dlcrt_instance_run(nullptr, nullptr, model.error.c()), DLCRT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(model.message(), "instance is NULL");
  dlcrt_run_options options = {};
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT,
               "dlcrt_run_options: struct_size is 0, but has to be at least " + std::to_string(sizeof(options)),
               model.run(options));
  Instance empty;
  EXPECT_FALSE(empty.run(model.error));
  EXPECT_EQ(dlcrt_instance_create(nullptr, nullptr, nullptr, model.error.c()), DLCRT_ERROR_INVALID_ARGUMENT);
  dlcrt_instance_destroy(nullptr);
  dlcrt_module_close(nullptr);
  dlcrt_pool_destroy(nullptr);
}
