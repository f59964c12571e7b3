/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// What outlives runs: lengths, capacities, several functions on one state, failures, views and copies.
#include "TestModel.h"

#include <atomic>
#include <thread>

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

State makeState(const Module &module, int64_t capacity, int64_t rows, Error &error,
                const dlcrt_allocator *allocator = nullptr) {
  const char *names[] = {"rows"};
  dlcrt_state_options options = {sizeof(options), 1, names, &rows, capacity, allocator};
  return State::create(module, options, error);
}

Instance makeInstance(const Module &module, const char *function, Error &error) {
  dlcrt_instance_options options = instanceOptions();
  options.function = function;
  return Instance::create(module, options, error);
}

bool bindRows(Instance &instance, std::vector<int64_t> &x, int64_t rows, Error &error) {
  int64_t dims[] = {rows, int64_t(x.size()) / rows};
  return instance.bindInput("x", tensor(x.data(), dims), error);
}

int64_t sumOf(Instance &instance, Error &error) {
  Tensor sum = instance.output("sum", error);
  EXPECT_TRUE(sum) << error.message();
  return sum ? sum.elements<int64_t>()[0] : -1;
}

std::vector<int64_t> contents(State &state, int64_t rows) {
  Error error;
  std::vector<int64_t> values(size_t(rows * state.length()));
  int64_t dims[] = {rows, state.length()};
  EXPECT_TRUE(state.read(0, 0, tensor(values.data(), dims), error)) << error.message();
  return values;
}

struct StateTest : testing::Test {
  TestModel model{logModule()};
  State state = makeState(model.module, 6, 2, model.error);
};

} // namespace

TEST_F(StateTest, GrowsFromRunToRun) {
  ASSERT_TRUE(state) << model.message();
  EXPECT_EQ(state.length(), 0);
  EXPECT_EQ(state.capacity(), 6);
  EXPECT_GE(dlcrt_state_bytes(state.c()), 2u * 6 * 8);
  ASSERT_TRUE(model.instance.setState(state, model.error)) << model.message();
  std::vector<int64_t> x{1, 2, 10, 20};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error)) << model.message();
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(sumOf(model.instance, model.error), 33);
  EXPECT_EQ(state.length(), 2);
  x = {3, 4, 30, 40}; // bound as it is
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(sumOf(model.instance, model.error), 110);
  EXPECT_EQ(state.length(), 4);
  EXPECT_EQ(contents(state, 2), (std::vector<int64_t>{1, 2, 3, 4, 10, 20, 30, 40}));
  EXPECT_EQ(model.instance.statistics().state_bytes, dlcrt_state_bytes(state.c()));
  // Nothing lies elsewhere because the state is longer.
  EXPECT_EQ(model.instance.statistics().layouts_computed, 1u);
  ASSERT_TRUE(state.reset(model.error));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(sumOf(model.instance, model.error), 77);
  EXPECT_EQ(state.length(), 2);
}

TEST_F(StateTest, ARunAllocatesNothing) {
  ASSERT_TRUE(model.instance.setState(state, model.error));
  std::vector<int64_t> x{1, 10};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  uint64_t before = model.instance.statistics().allocations;
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(model.instance.statistics().allocations, before);
  EXPECT_EQ(state.length(), 6);
}

TEST_F(StateTest, FullIsAnErrorAndGrowMends) {
  ASSERT_TRUE(model.instance.setState(state, model.error));
  std::vector<int64_t> x{1, 2, 3, 4, 10, 20, 30, 40};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY,
               "state 'log' is full: 8 of 6; create the state with a larger capacity, or let it grow", model.run());
  EXPECT_EQ(state.length(), 4);
  ASSERT_TRUE(state.grow(9, model.error)) << model.message();
  EXPECT_EQ(state.capacity(), 9);
  EXPECT_EQ(contents(state, 2), x);
  ASSERT_TRUE(state.grow(3, model.error)); // never smaller
  EXPECT_EQ(state.capacity(), 9);
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(sumOf(model.instance, model.error), 220);
  EXPECT_EQ(contents(state, 2), (std::vector<int64_t>{1, 2, 3, 4, 1, 2, 3, 4, 10, 20, 30, 40, 10, 20, 30, 40}));
}

TEST_F(StateTest, FunctionsShareIt) {
  Instance twice = makeInstance(model.module, "twice", model.error);
  ASSERT_TRUE(twice) << model.message();
  ASSERT_TRUE(model.instance.setState(state, model.error) && twice.setState(state, model.error)) << model.message();
  std::vector<int64_t> x{5, 50};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error) && bindRows(twice, x, 2, model.error));
  ASSERT_TRUE(twice.run(model.error)) << model.message();
  EXPECT_EQ(sumOf(twice, model.error), 110);
  EXPECT_EQ(state.length(), 2);
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(sumOf(model.instance, model.error), 165);
  EXPECT_EQ(state.length(), 3);
  // Instances hold it.
  state = State();
  ASSERT_TRUE(twice.run(model.error)) << model.message();
  EXPECT_EQ(sumOf(twice, model.error), 275);
}

TEST_F(StateTest, StatesAreIndependent) {
  State other = makeState(model.module, 4, 1, model.error);
  std::vector<int64_t> x{7, 70};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error) && model.instance.setState(state, model.error));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  ASSERT_TRUE(model.instance.setState(other, model.error));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "the state and input 'x' disagree on 'rows': 1 and 2", model.run());
  ASSERT_TRUE(bindRows(model.instance, x, 1, model.error));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  EXPECT_EQ(other.length(), 2);
  EXPECT_EQ(state.length(), 1);
}

TEST_F(StateTest, NeedsOne) {
  const char *missing =
      "function 'main' works on a state and has none: make one with dlcrt_state_create and attach it with "
      "dlcrt_instance_set_state";
  std::vector<int64_t> x{1, 10};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error));
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, missing, model.run());
  ASSERT_TRUE(model.instance.setState(state, model.error));
  ASSERT_EQ(model.run(), DLCRT_OK) << model.message();
  ASSERT_TRUE(model.instance.setState(State(), model.error));
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, missing, model.run());
  Instance none = makeInstance(model.module, "none", model.error);
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "function 'none' has no state", none.setState(state, model.error));
  TestModel foreign(logModule());
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "the state is one of another module",
               foreign.instance.setState(state, model.error));
  TestModel without(addModule());
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "function 'main' has no state",
               without.instance.setState(state, model.error));
}

TEST(State, AFailedRunLeavesItAsItWas) {
  TestModel model(logModule(DLCRT_KERNEL_INDEX_OUT_OF_RANGE));
  State state = makeState(model.module, 6, 2, model.error);
  ASSERT_TRUE(model.instance.setState(state, model.error));
  std::vector<int64_t> x{1, 10}, before{5, 50};
  int64_t dims[] = {2, 1};
  ASSERT_TRUE(state.write(0, 0, tensor(before.data(), dims), model.error) && state.setLength(1, model.error))
      << model.message();
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error));
  EXPECT_NE(model.run(), DLCRT_OK);
  EXPECT_EQ(state.length(), 1);
  EXPECT_EQ(contents(state, 2), before);
  // Nor does one that is stopped.
  uint32_t cancel = 1;
  dlcrt_run_options options = runOptions();
  options.cancel = &cancel;
  EXPECT_EQ(model.run(options), DLCRT_ERROR_CANCELLED);
  EXPECT_EQ(state.length(), 1);
  EXPECT_TRUE(state.reset(model.error)) << "it is not held any more: " << model.message();
}

TEST_F(StateTest, OneRunAtATime) {
  // Calls from inside of a run find it in use.
  ASSERT_TRUE(model.instance.setState(state, model.error));
  Instance twice = makeInstance(model.module, "twice", model.error);
  ASSERT_TRUE(twice.setState(state, model.error));
  std::vector<int64_t> x{1, 10};
  ASSERT_TRUE(bindRows(model.instance, x, 2, model.error) && bindRows(twice, x, 2, model.error));
  struct Inner {
    Instance &twice;
    State &state;
    int calls;
  } inner{twice, state, 0};
  dlcrt_run_options options = runOptions();
  options.trace_ctx = &inner;
  options.trace = [](void *ctx, const dlcrt_trace_event *) {
    auto &inner = *static_cast<Inner *>(ctx);
    Error error;
    const char *busy = "the state is in use by another run or call; one uses it at a time";
    EXPECT_FALSE(inner.twice.run(error));
    EXPECT_EQ(error.code(), DLCRT_ERROR_BUSY);
    EXPECT_STREQ(error.message(), busy);
    EXPECT_FALSE(inner.state.reset(error));
    EXPECT_STREQ(error.message(), busy);
    EXPECT_FALSE(inner.state.grow(100, error));
    int64_t dims[DLCRT_MAX_RANK];
    uint64_t bytes;
    EXPECT_EQ(dlcrt_instance_output_bound(inner.twice.c(), 0, dims, &bytes, error.c()), DLCRT_ERROR_BUSY);
    EXPECT_STREQ(error.message(), busy);
    // What may be asked at any time.
    EXPECT_EQ(inner.state.length(), 0);
    EXPECT_EQ(inner.state.capacity(), 6);
    EXPECT_EQ(inner.twice.statistics().state_bytes, dlcrt_state_bytes(inner.state.c()));
    ++inner.calls;
  };
  ASSERT_EQ(model.run(options), DLCRT_OK) << model.message();
  EXPECT_EQ(inner.calls, 2);
  EXPECT_EQ(state.length(), 1);

  // Of many at once some are refused, and those that are not count.
  ASSERT_TRUE(state.grow(1 << 16, model.error) && state.reset(model.error));
  std::atomic<int64_t> added{0};
  auto work = [&](Instance &instance, int64_t growth) {
    Error error;
    for (int i = 0; i < 500; ++i) {
      if (instance.run(error))
        added += growth;
      else
        EXPECT_EQ(error.code(), DLCRT_ERROR_BUSY) << error.message();
    }
  };
  Instance third = makeInstance(model.module, "main", model.error);
  ASSERT_TRUE(third.setState(state, model.error) && bindRows(third, x, 2, model.error));
  std::atomic<bool> isDone{false};
  auto look = [&] {
    Error error;
    int64_t dims[DLCRT_MAX_RANK], before = 0;
    uint64_t bytes;
    while (!isDone) {
      dlcrt_status status = dlcrt_instance_output_bound(third.c(), 0, dims, &bytes, error.c());
      EXPECT_TRUE(status == DLCRT_OK || status == DLCRT_ERROR_BUSY) << error.message();
      int64_t length = state.length();
      EXPECT_GE(length, before);
      EXPECT_LE(length, state.capacity());
      EXPECT_GE(third.statistics().state_bytes, 2u * (1 << 16) * 8);
      before = length;
    }
  };
  std::thread first([&] { work(model.instance, 1); }), second([&] { work(twice, 2); }), observer(look);
  first.join();
  second.join();
  while (!state.grow(1 << 17, model.error))
    EXPECT_EQ(model.error.code(), DLCRT_ERROR_BUSY) << model.message();
  isDone = true;
  observer.join();
  EXPECT_EQ(state.length(), added);
}

TEST_F(StateTest, Options) {
  Error &error = model.error;
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_BOUND, "module: a value for dimension 'rows' of the states is missing",
               State::create(model.module, 4, error));
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "module: 'rows' is 9, but has to be between 1 and 8 and a multiple of 1",
               makeState(model.module, 4, 9, error));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "module: the capacity is -1",
               makeState(model.module, -1, 2, error));
  EXPECT_FAILS(model, DLCRT_ERROR_OVERFLOW, "module: state 'log' has too many elements",
               makeState(model.module, INT64_MAX, 2, error));
  const char *names[] = {"rows", "heads"};
  int64_t values[] = {1, 1};
  dlcrt_state_options options = {sizeof(options), 2, names, values, 4, nullptr};
  EXPECT_FAILS(model, DLCRT_ERROR_NOT_FOUND, "module: the states have no dimension 'heads'",
               State::create(model.module, options, error));
  options.dim_names = nullptr;
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "module: dim_names or dim_values is NULL",
               State::create(model.module, options, error));
  EXPECT_EQ(dlcrt_state_create(model.module.c(), nullptr, nullptr, error.c()), DLCRT_ERROR_INVALID_ARGUMENT);
  TestModel plain(addModule());
  EXPECT_FAILS(plain, DLCRT_ERROR_INVALID_ARGUMENT, "module: no function of the module works on states",
               State::create(plain.module, 4, plain.error));
  EXPECT_EQ(dlcrt_state_length(nullptr), 0);
  EXPECT_EQ(dlcrt_state_set_length(nullptr, 0, error.c()), DLCRT_ERROR_INVALID_ARGUMENT);
  dlcrt_state_destroy(nullptr);
  State empty = makeState(model.module, 0, 2, error);
  ASSERT_TRUE(empty) << error.message();
  ASSERT_TRUE(empty.grow(2, error));
  EXPECT_EQ(empty.capacity(), 2);
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "the capacity is -6", empty.grow(-6, error));
}

TEST_F(StateTest, ItsMemoryIsTheAllocators) {
  struct Counts {
    int64_t blocks, aligned;
  } counts{0, 1};
  dlcrt_allocator allocator = {sizeof(allocator), 0, &counts,
                               [](void *ctx, uint64_t bytes, uint64_t alignment) -> void * {
                                 void *memory = nullptr;
                                 auto &counts = *static_cast<Counts *>(ctx);
                                 if (posix_memalign(&memory, alignment < 16 ? 16 : alignment, bytes) != 0)
                                   return nullptr;
                                 ++counts.blocks;
                                 return memory;
                               },
                               [](void *ctx, void *memory, uint64_t) {
                                 --static_cast<Counts *>(ctx)->blocks;
                                 free(memory);
                               }};
  State own = makeState(model.module, 3, 2, model.error, &allocator);
  ASSERT_TRUE(own) << model.message();
  EXPECT_GT(counts.blocks, 0);
  int64_t dims[2], strides[2];
  Tensor view = own.view(0, dims, strides, model.error);
  EXPECT_EQ(uintptr_t(view.data) % 64, 0u);
  ASSERT_TRUE(own.grow(5, model.error));
  own = State();
  EXPECT_EQ(counts.blocks, 0);
  allocator.allocate = [](void *, uint64_t, uint64_t) -> void * { return nullptr; };
  EXPECT_FALSE(makeState(model.module, 3, 2, model.error, &allocator));
  EXPECT_EQ(model.error.code(), DLCRT_ERROR_OUT_OF_MEMORY);
}

TEST_F(StateTest, ViewsAndCopies) {
  Error &error = model.error;
  std::vector<int64_t> x{1, 2, 3, 10, 20, 30};
  int64_t dims[] = {2, 3};
  ASSERT_TRUE(state.write(0, 1, tensor(x.data(), dims), error)) << error.message();
  EXPECT_EQ(state.length(), 0); // until somebody says so
  ASSERT_TRUE(state.setLength(4, error));
  EXPECT_EQ(contents(state, 2), (std::vector<int64_t>{0, 1, 2, 3, 0, 10, 20, 30}));
  // A transposed tensor, both ways.
  std::vector<int64_t> columns{7, 70, 8, 80};
  int64_t pair[] = {2, 2};
  const int64_t strides[] = {1, 2};
  Tensor transposed = tensor(columns.data(), pair);
  transposed.strides = strides;
  ASSERT_TRUE(state.write(0, 0, transposed, error)) << error.message();
  EXPECT_EQ(contents(state, 2), (std::vector<int64_t>{7, 8, 2, 3, 70, 80, 20, 30}));
  ASSERT_TRUE(state.read(0, 2, transposed, error)) << error.message();
  EXPECT_EQ(columns, (std::vector<int64_t>{2, 20, 3, 30}));

  int64_t viewDims[2], viewStrides[2];
  Tensor view = state.view(0, viewDims, viewStrides, error);
  ASSERT_TRUE(view) << error.message();
  EXPECT_EQ(viewDims[0], 2);
  EXPECT_EQ(viewDims[1], 4);
  EXPECT_EQ(viewStrides[0], 6);
  EXPECT_EQ(viewStrides[1], 1);
  EXPECT_EQ(view.elements<int64_t>()[6 + 3], 30);
  view.elements<int64_t>()[6 + 3] = 31;
  EXPECT_EQ(contents(state, 2).back(), 31);

  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "no state 1: there are 1",
               state.view(1, viewDims, viewStrides, error));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "3 entries from 2 on lie outside state 'log', which has a length of 4",
               state.read(0, 2, tensor(x.data(), dims), error));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "3 entries from 4 on lie outside state 'log', which has a capacity of 6",
               state.write(0, 4, tensor(x.data(), dims), error));
  int64_t tooMany[] = {2, INT64_MAX};
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT,
               "9223372036854775807 entries from 1 on lie outside state 'log', which has a capacity of 6",
               state.write(0, 1, tensor(x.data(), tooMany), error));
  EXPECT_FAILS(model, DLCRT_ERROR_INVALID_ARGUMENT, "length 7 is not between 0 and the capacity, 6",
               state.setLength(7, error));
  int64_t wrongRows[] = {3, 2};
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "state 'log': dimension 0 is 3, expected 2",
               state.write(0, 0, tensor(x.data(), wrongRows), error));
  std::vector<float> floats(6);
  EXPECT_FAILS(model, DLCRT_ERROR_DTYPE, "state 'log': expected i64, got f32",
               state.write(0, 0, tensor(floats.data(), dims), error));
  int64_t flat[] = {6};
  EXPECT_FAILS(model, DLCRT_ERROR_SHAPE, "state 'log': expected rank 2, got 1",
               state.write(0, 0, tensor(x.data(), flat), error));
  Tensor small = tensor(x.data(), dims);
  small.capacity = 40;
  EXPECT_FAILS(model, DLCRT_ERROR_CAPACITY, "state 'log': its entries need 48 bytes, the tensor has 40",
               state.write(0, 0, small, error));
}
