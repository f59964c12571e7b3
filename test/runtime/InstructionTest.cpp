/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Each instruction of a plan: what it does, and what it says when its values are wrong.
#include "TestModel.h"

#include <cmath>

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

/// A function without inputs but what the test adds, with one output y: i64[count].
struct PlanTest : testing::Test {
  ModuleBuilder module;
  uint32_t f = module.addFunction("main");
  VariantBuilder *variant = nullptr;
  PlanBuilder *p = nullptr;
  std::unique_ptr<TestModel> model;

  /// Call after the symbols and inputs were added.
  void begin(int64_t outputCount = 1) {
    module.addOutput(f, "y", DLCRT_DTYPE_INT64, {module.exprs.constant(outputCount)});
    variant = &module.addVariant(f);
    p = &variant->plan;
  }
  uint32_t number(int64_t value) { return p->exprs.constant(value); }
  uint32_t y(int64_t count = 1) { return p->output(0, number(8 * count), {number(count)}); }
  void load() {
    p->ret();
    model = std::make_unique<TestModel>(module);
    ASSERT_TRUE(model->instance) << model->message();
  }
  dlcrt_status run() {
    if (!model)
      load();
    return model->run();
  }
  std::vector<int64_t> result() { return model->output<int64_t>(0); }
};

} // namespace

TEST_F(PlanTest, ConstViewCopy) {
  int64_t data[] = {10, 11, 12, 13};
  uint32_t constant = module.addConstant(data, sizeof(data));
  begin(2);
  uint32_t c = p->constant(constant), out = y(2);
  p->copy(out, p->view(c, number(8), number(16)), number(16));
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result(), (std::vector<int64_t>{11, 12}));
}

TEST_F(PlanTest, ConstantsAreNotWritten) {
  int64_t data[] = {1};
  uint32_t constant = module.addConstant(data, sizeof(data));
  begin();
  uint32_t c = p->constant(constant), out = y();
  p->copy(c, out, number(8));
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan copies 8 bytes from a buffer of 8 to one of 8 that may not be written");
}

TEST_F(PlanTest, CopyTooMuch) {
  begin();
  uint32_t out = y(), slot = p->symbolicSlot(number(64), 0, 0);
  p->copy(out, slot, number(16));
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan copies 16 bytes from a buffer of 64 to one of 8");
}

TEST_F(PlanTest, ViewOutside) {
  begin();
  uint32_t out = y();
  p->view(out, number(4), number(8));
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan looks at bytes 4 to 12 of a buffer of 8");
}

TEST_F(PlanTest, NegativeSize) {
  begin();
  uint32_t out = y();
  p->view(out, number(0), number(-8));
  EXPECT_EQ(run(), DLCRT_ERROR_OVERFLOW);
  EXPECT_EQ(model->message(), "a size in the plan is negative for these inputs: -8");
}

TEST_F(PlanTest, BufferBeforeItIsSet) {
  begin();
  uint32_t later = p->newBuffer(), out = y();
  p->copy(out, later, number(8));
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan uses buffer 0 before it is set");
}

TEST_F(PlanTest, LateValueBeforeItIsRead) {
  begin();
  uint32_t late = p->exprs.symbol(p->lateSymbol()), out = y();
  p->view(out, late, number(0));
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan uses register 0 before it is computed");
}

TEST_F(PlanTest, DimensionOverflow) {
  uint32_t n = module.addSymbol(f, "n");
  module.addInput(f, "x", DLCRT_DTYPE_INT8, {n});
  begin();
  uint32_t huge = p->exprs.mul(p->exprs.symbol(0), number(INT64_MAX)), out = y();
  p->view(out, huge, number(0));
  load();
  model->input<int8_t>(0, {1, 2}, {2});
  EXPECT_EQ(run(), DLCRT_ERROR_OVERFLOW);
  EXPECT_EQ(model->message(), "dimension overflow: n * 9223372036854775807 does not fit into 64 bits, or divides by "
                              "zero, for these inputs");
}

TEST_F(PlanTest, FixedSlots) {
  begin();
  p->header.fixed_bytes[0] = 128;
  uint32_t a = p->fixedSlot(0, number(8), 0, 0), b = p->fixedSlot(64, number(8), 0, 0), out = y();
  p->fill(a, DLCRT_DTYPE_INT64, number(1), {number(5)});
  p->fill(b, DLCRT_DTYPE_INT64, number(1), {number(6)});
  p->copy(out, a, number(8));
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result()[0], 5);
  EXPECT_EQ(model->instance.statistics().arena_bytes, 128u);
}

TEST_F(PlanTest, FixedSlotOutside) {
  begin();
  p->header.fixed_bytes[0] = 128;
  p->fixedSlot(64, number(65), 0, 0);
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "a fixed slot of 65 bytes ends outside the arena");
}

TEST_F(PlanTest, CheckHoldsOrFails) {
  uint32_t n = module.addSymbol(f, "n");
  module.addInput(f, "x", DLCRT_DTYPE_INT8, {n});
  begin();
  uint32_t symbol = p->exprs.symbol(0), three = number(3);
  uint32_t holds = p->exprs.select(DLCRT_EXPR_SELECT_LT, symbol, three, number(1), number(0));
  p->check(holds, "reshape: {0} elements, fewer than {1} fit; {2} {", symbol, three);
  y();
  load();
  model->input<int8_t>(0, {1, 2}, {2});
  EXPECT_EQ(run(), DLCRT_OK);
  model->input<int8_t>(0, {1, 2, 3, 4, 5}, {5});
  EXPECT_EQ(run(), DLCRT_ERROR_CHECK);
  EXPECT_EQ(model->message(), "reshape: 5 elements, fewer than 3 fit; {2} {");
}

TEST_F(PlanTest, ReadOfEachType) {
  struct {
    int32_t dtype;
    uint64_t bits;
    int64_t value;
  } cases[] = {{DLCRT_DTYPE_BOOL, 1, 1},
               {DLCRT_DTYPE_UINT8, 0xfe, 254},
               {DLCRT_DTYPE_INT8, 0xfe, -2},
               {DLCRT_DTYPE_UINT16, 0xfffe, 65534},
               {DLCRT_DTYPE_INT16, 0xfffe, -2},
               {DLCRT_DTYPE_UINT32, 0xfffffffe, 4294967294},
               {DLCRT_DTYPE_INT32, 0xfffffffe, -2},
               {DLCRT_DTYPE_INT64, 0xfffffffffffffffe, -2}};
  begin(8);
  uint32_t out = y(8), position = 0;
  for (auto &c : cases) {
    uint64_t padded[2] = {};
    memcpy(reinterpret_cast<char *>(padded) + dlcrt_dtype_bits(c.dtype) / 8, &c.bits, 8); // at index 1
    uint32_t constant = p->constant(module.addConstant(padded, 16)), symbol = p->lateSymbol();
    p->read(constant, uint32_t(c.dtype), number(1), symbol);
    uint32_t value = p->exprs.symbol(symbol);
    p->dim(value, 1);
    p->fill(p->view(out, number(8 * position), number(8)), DLCRT_DTYPE_INT64, number(1), {value});
    ++position;
  }
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(result()[i], cases[i].value);
}

TEST_F(PlanTest, NodesFollowTheirSymbols) {
  // One DIM, in a branch that is not taken, or before a second READ: the values are right all the same.
  int64_t data[] = {5, 7};
  uint32_t constant = module.addConstant(data, sizeof(data));
  begin(2);
  uint32_t c = p->constant(constant), out = y(2), late = p->lateSymbol(), one = number(1), eight = number(8);
  uint32_t value = p->exprs.symbol(late), sum = p->exprs.add(value, number(100));
  p->read(c, DLCRT_DTYPE_INT64, number(0), late);
  p->branch(
      number(0), [&] { p->dim(value, 2); }, [] {});
  p->fill(p->view(out, number(0), eight), DLCRT_DTYPE_INT64, one, {sum});
  p->read(c, DLCRT_DTYPE_INT64, one, late);
  p->fill(p->view(out, eight, eight), DLCRT_DTYPE_INT64, one, {sum});
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result(), (std::vector<int64_t>{105, 107}));
}

TEST_F(PlanTest, ReadOutside) {
  begin();
  uint32_t out = y();
  p->read(out, DLCRT_DTYPE_INT32, number(2), p->lateSymbol());
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan reads element 2 of a buffer of 8 bytes");
}

TEST_F(PlanTest, LaunchOfNoTiles) {
  begin();
  uint32_t out = y();
  p->fill(out, DLCRT_DTYPE_INT64, number(1), {number(3)});
  p->launch(KERNEL_worker, number(0), {out}, {number(1)});
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result()[0], 3);
}

TEST_F(PlanTest, LaunchOfTooManyTiles) {
  begin();
  p->launch(KERNEL_worker, number(int64_t(1) << 32), {y()}, {number(1)});
  EXPECT_EQ(run(), DLCRT_ERROR_OVERFLOW);
  EXPECT_EQ(model->message(), "kernel 'worker' would have 4294967296 tiles");
}

TEST_F(PlanTest, KernelsCallTheCLibrary) {
  begin(2);
  float data[] = {0, 1, 2, 3};
  uint32_t x = p->constant(module.addConstant(data, sizeof(data))), out = y(2);
  p->launch(KERNEL_exponential, number(1), {x, out}, {number(4)});
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  float *values = model->instance.output(0u, model->error).elements<float>();
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(values[i], float(std::exp(double(i))));
}

TEST_F(PlanTest, KernelsReportBadValues) {
  begin();
  uint32_t debug = module.addDebug("gather_1\n#17\nadd_2", "Gather\nMul\nAdd"), out = y();
  p->launch(KERNEL_refuse, number(1), {out}, {number(DLCRT_KERNEL_INDEX_OUT_OF_RANGE)}, DLCRT_NONE, 0, debug);
  EXPECT_EQ(run(), DLCRT_ERROR_CHECK);
  EXPECT_EQ(model->message(), "nodes 'gather_1' (Gather), 17 (Mul), 'add_2' (Add): an index is out of range");
}

TEST_F(PlanTest, KernelsReportDivisionByZero) {
  begin();
  p->launch(KERNEL_refuse, number(1), {y()}, {number(DLCRT_KERNEL_DIVISION_BY_ZERO)});
  EXPECT_EQ(run(), DLCRT_ERROR_CHECK);
  EXPECT_EQ(model->message(), "kernel 'refuse': an integer is divided by zero");
}

TEST_F(PlanTest, Fill) {
  begin(4);
  uint32_t out = y(4);
  p->fill(out, DLCRT_DTYPE_INT64, number(4), {number(-1), number(7)});                               // repeated
  p->fill(p->view(out, number(8), number(8)), DLCRT_DTYPE_FLOAT32, number(2), {number(3)});          // one float
  p->fill(p->view(out, number(16), number(8)), DLCRT_DTYPE_INT4, number(5), {number(1), number(2)}); // packed
  p->fill(p->view(out, number(24), number(8)), DLCRT_DTYPE_UINT2, number(32), {number(3)});          // all bits
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  std::vector<int64_t> values = result();
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[1], 0x4040000040400000);
  EXPECT_EQ(values[2], (-1 & ~0xffffffll) | 0x012121);
  EXPECT_EQ(values[3], -1);
}

TEST_F(PlanTest, FillTooMuch) {
  begin();
  p->fill(y(), DLCRT_DTYPE_INT64, number(2), {number(0)});
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan fills 2 elements of a buffer of 8 bytes");
}

TEST_F(PlanTest, If) {
  uint32_t n = module.addSymbol(f, "n");
  module.addInput(f, "x", DLCRT_DTYPE_INT8, {n});
  begin();
  uint32_t out = y(),
           condition = p->exprs.select(DLCRT_EXPR_SELECT_LT, p->exprs.symbol(0), number(2), number(1), number(0));
  p->branch(
      condition, [&] { p->fill(out, DLCRT_DTYPE_INT64, number(1), {number(100)}); },
      [&] {
        p->branch(
            condition, [] {}, [&] { p->fill(out, DLCRT_DTYPE_INT64, number(1), {number(200)}); });
      });
  load();
  model->input<int8_t>(0, {1}, {1});
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result()[0], 100);
  model->input<int8_t>(0, {1, 2}, {2});
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result()[0], 200);
}

TEST_F(PlanTest, LoopWithTripCount) {
  begin();
  uint32_t out = y(), iteration = p->lateSymbol();
  uint32_t n = p->exprs.symbol(iteration);
  p->fill(out, DLCRT_DTYPE_INT64, number(1), {number(0)});
  p->loop(number(5), iteration, DLCRT_NONE, [&] {
    p->dim(n, 1);
    p->launch(KERNEL_increment, number(1), {out, out}, {n});
  });
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result()[0], 0 + 1 + 2 + 3 + 4);
}

TEST_F(PlanTest, LoopWithCondition) {
  begin();
  p->header.fixed_bytes[0] = 64;
  uint32_t out = y(), iteration = p->lateSymbol(), condition = p->lateSymbol(), flag = p->fixedSlot(0, number(1), 0, 0),
           one = number(1), seven = number(7), zero = number(0);
  p->fill(out, DLCRT_DTYPE_INT64, one, {zero});
  p->fill(flag, DLCRT_DTYPE_BOOL, one, {one});
  p->read(flag, DLCRT_DTYPE_BOOL, zero, condition);
  p->loop(DLCRT_NONE, iteration, condition, [&] {
    p->launch(KERNEL_increment, one, {out, out}, {number(3)});
    p->launch(KERNEL_less, one, {out, flag}, {seven});
    p->read(flag, DLCRT_DTYPE_BOOL, zero, condition);
  });
  ASSERT_EQ(run(), DLCRT_OK) << model->message();
  EXPECT_EQ(result()[0], 9);
}

TEST_F(PlanTest, LoopWithoutItsCondition) {
  begin();
  y();
  p->loop(DLCRT_NONE, p->lateSymbol(), p->lateSymbol(), [] {});
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "a loop's condition was not read before the loop");
}

TEST_F(PlanTest, ViewsOfALateSlotThatGrew) {
  begin();
  uint32_t out = y(), iteration = p->lateSymbol(), n = p->exprs.symbol(iteration), eight = number(8);
  uint32_t bytes = p->exprs.add(eight, p->exprs.mul(n, number(100000)));
  uint32_t first = p->exprs.select(DLCRT_EXPR_SELECT_EQ, n, number(0), number(1), number(0));
  p->loop(number(2), iteration, DLCRT_NONE, [&] {
    uint32_t slot = p->lateSlot(bytes, 0, 0), view = p->newBuffer();
    p->branch(
        first,
        [&] {
          p->emit<dlcrt_instr_view>(DLCRT_OP_VIEW, {{}, view, slot, number(0), eight});
        },
        [] {});
    p->copy(out, view, eight);
  });
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan uses buffer 2 before it is set");
}

TEST_F(PlanTest, OutputsMustBeComputed) {
  begin();
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan does not compute output 'y'");
}

TEST_F(PlanTest, OutputOfTheWrongSize) {
  begin();
  p->output(0, number(16), {number(1)});
  EXPECT_EQ(run(), DLCRT_ERROR_BAD_MODULE);
  EXPECT_EQ(model->message(), "the plan has 16 bytes for output 'y', which has 8");
}

TEST_F(PlanTest, OutputOfNegativeSize) {
  begin();
  p->output(0, number(16), {number(-1)});
  EXPECT_EQ(run(), DLCRT_ERROR_OVERFLOW);
  EXPECT_EQ(model->message(), "y: a size in the plan is negative for these inputs: -1");
}

// ---------------------------------------------------------------------------------------------- calls

namespace {

struct CallTest : PlanTest {
  struct Seen {
    std::string domain, name, attributes;
    uint32_t version;
    Dims operandDims, resultDims;
    dlcrt_status answer = DLCRT_OK;
  } seen;

  static dlcrt_status addTen(void *ctx, const dlcrt_host_call *call, dlcrt_error *error) {
    Seen &seen = *static_cast<Seen *>(ctx);
    seen.domain = call->domain;
    seen.name = call->name;
    seen.attributes = call->attributes;
    seen.version = call->version;
    const dlcrt_tensor &x = call->operands[0], &y = call->results[0];
    seen.operandDims.assign(x.dims, x.dims + x.rank);
    seen.resultDims.assign(y.dims, y.dims + y.rank);
    for (int64_t i = 0; i < y.dims[0]; ++i)
      static_cast<int64_t *>(y.data)[i] = static_cast<int64_t *>(x.data)[i] + 10;
    if (seen.answer)
      snprintf(error->message, sizeof(error->message), "it is Sunday");
    return seen.answer;
  }

  void build() {
    int64_t data[] = {1, 2};
    uint32_t constant = module.addConstant(data, sizeof(data));
    begin(2);
    uint32_t x = p->constant(constant), out = y(2), two = number(2), one = number(1);
    p->call("my.domain", "AddTen", 3, "{\"a\": 1}", {{x, DLCRT_DTYPE_INT64, {two, one}}},
            {{out, DLCRT_DTYPE_INT64, {two}}});
    p->ret();
  }
};

} // namespace

TEST_F(CallTest, Calls) {
  build();
  dlcrt_host_function functions[] = {{sizeof(dlcrt_host_function), 2, "my.domain", "AddTen", addTen, nullptr},
                                     {sizeof(dlcrt_host_function), 3, "my.domain", "AddTen", addTen, &seen}};
  dlcrt_instance_options options = instanceOptions();
  options.host_functions = functions;
  options.host_function_count = 2;
  TestModel loaded(module, options);
  ASSERT_EQ(loaded.run(), DLCRT_OK) << loaded.message();
  EXPECT_EQ(loaded.output<int64_t>(0), (std::vector<int64_t>{11, 12}));
  EXPECT_EQ(seen.domain, "my.domain");
  EXPECT_EQ(seen.name, "AddTen");
  EXPECT_EQ(seen.attributes, "{\"a\": 1}");
  EXPECT_EQ(seen.version, 3u);
  EXPECT_EQ(seen.operandDims, (Dims{2, 1}));
  EXPECT_EQ(seen.resultDims, (Dims{2}));
  seen.answer = DLCRT_ERROR_CHECK;
  EXPECT_FAILS(loaded, DLCRT_ERROR_HOST_FUNCTION, "host function 'AddTen': it is Sunday", loaded.run());
}

TEST_F(CallTest, IsMissing) {
  build();
  TestModel loaded(module);
  EXPECT_FALSE(loaded.instance);
  EXPECT_EQ(loaded.error.code(), DLCRT_ERROR_NO_VARIANT);
  EXPECT_EQ(loaded.message(), "module: no variant of function 'main' can run here: cpu:test: it calls host function "
                              "'AddTen' version 3 of domain 'my.domain', which is not registered");
}

TEST_F(CallTest, DoesNotFit) {
  begin(1);
  uint32_t out = y(), three = number(3);
  p->call("", "AddTen", 3, "", {{out, DLCRT_DTYPE_INT64, {three}}}, {});
  p->ret();
  dlcrt_host_function functions[] = {{sizeof(dlcrt_host_function), 3, "", "AddTen", addTen, &seen}};
  dlcrt_instance_options options = instanceOptions();
  options.host_functions = functions;
  options.host_function_count = 1;
  TestModel loaded(module, options);
  EXPECT_FAILS(loaded, DLCRT_ERROR_BAD_MODULE, "tensor 0 of the call of 'AddTen' does not fit into its buffer",
               loaded.run());
}
