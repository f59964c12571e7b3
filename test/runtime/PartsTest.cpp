/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The runtime's parts by themselves: element types, expressions, strides, the arena's planner.
#include "Arena.h"
#include "Dtype.h"
#include "Expr.h"
#include "ModuleBuilder.h"
#include "Strided.h"
#include "pool/Available.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace dlcrt::impl;
using dlcrt::test::ExprPool;

TEST(Dtype, SizesAndNames) {
  EXPECT_EQ(dlcrt_dtype_bits(DLCRT_DTYPE_FLOAT32), 32u);
  EXPECT_EQ(dlcrt_dtype_bits(DLCRT_DTYPE_INT2), 2u);
  EXPECT_EQ(dlcrt_dtype_bits(DLCRT_DTYPE_COMPLEX128), 128u);
  EXPECT_EQ(dlcrt_dtype_bits(0), 0u);
  EXPECT_EQ(dlcrt_dtype_bits(27), 0u);
  EXPECT_EQ(dlcrt_dtype_bits(-1), 0u);
  EXPECT_STREQ(dlcrt_dtype_name(DLCRT_DTYPE_FLOAT8E5M2FNUZ), "f8e5m2fnuz");
  EXPECT_STREQ(dlcrt_dtype_name(DLCRT_DTYPE_INT2), "i2");
  EXPECT_STREQ(dlcrt_dtype_name(99), "unknown");
  EXPECT_STREQ(dlcrt_status_name(DLCRT_ERROR_SHAPE), "DLCRT_ERROR_SHAPE");
  EXPECT_STREQ(dlcrt_status_name(99), "unknown");
  EXPECT_EQ(dlcrt_version(), 1000u);
  EXPECT_STREQ(dlcrt_version_string(), "0.1.0");
}

TEST(Dtype, TensorBytes) {
  int64_t dims[] = {3, 5}, huge[] = {INT64_MAX, 2}, empty[] = {INT64_MAX, INT64_MAX, 0}, negative[] = {2, -1};
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_FLOAT32, 2, dims), 60u);
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_INT4, 2, dims), 8u);
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_INT2, 2, dims), 4u);
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_FLOAT64, 0, nullptr), 8u);
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_FLOAT32, 3, empty), 0u);
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_INT8, 2, huge), UINT64_MAX);
  EXPECT_EQ(dlcrt_tensor_bytes(DLCRT_DTYPE_INT8, 2, negative), UINT64_MAX);
  EXPECT_EQ(dlcrt_tensor_bytes(99, 2, dims), UINT64_MAX);
}

TEST(Dtype, EncodeElement) {
  for (int64_t value :
       {int64_t(0), int64_t(1), int64_t(-7), int64_t(123456789), int64_t(-(1ll << 53) - 1), INT64_MAX, INT64_MIN}) {
    float f = float(value);
    double d = double(value);
    uint32_t bits;
    uint64_t wide;
    memcpy(&bits, &f, 4);
    memcpy(&wide, &d, 8);
    EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT32, value), bits) << value;
    EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT64, value), wide) << value;
  }
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT16, 1), 0x3c00u);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT16, 2049), 0x6800u); // to even: 2048
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT16, 2051), 0x6802u); // to even: 2052
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT16, -65519), 0xfbffu);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT16, 65520), 0x7c00u);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_BFLOAT16, -3), 0xc040u);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT8E5M2, 5), 0x45u);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_FLOAT8E5M2, 1000000), 0x7cu);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_BOOL, 256), 1u);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_INT4, -1), 15u);
  EXPECT_EQ(encodeElement(DLCRT_DTYPE_UINT8, 257), 1u);
  EXPECT_FALSE(isFillable(DLCRT_DTYPE_FLOAT8E4M3FN));
  EXPECT_FALSE(isFillable(DLCRT_DTYPE_STRING));
}

namespace {
struct Evaluated {
  std::vector<int64_t> values;
  std::vector<ValueState> states;
};
Evaluated evaluateAll(const ExprPool &pool, std::vector<int64_t> symbols) {
  Evaluated result{std::vector<int64_t>(pool.nodes.size()), std::vector<ValueState>(pool.nodes.size())};
  std::vector<ValueState> known(symbols.size(), ValueState::Valid);
  evaluate({pool.nodes.data(), pool.nodes.size()}, 0, pool.nodes.size(), {symbols.data(), known.data(), symbols.size()},
           {result.values.data(), result.states.data(), result.values.size()});
  return result;
}
std::string print(const ExprPool &pool, uint32_t root) {
  char text[4000];
  TextWriter out(text, sizeof(text));
  SymbolNames names{nullptr, [](const void *, int64_t symbol) { return symbol == 0 ? "n" : "m"; }};
  printExpr(out, {pool.nodes.data(), pool.nodes.size()}, root, names);
  return text;
}
} // namespace

TEST(Expr, Arithmetic) {
  for (int64_t a : {-7, -6, -1, 0, 1, 6, 7, 1000}) {
    ExprPool p;
    uint32_t n = p.symbol(0), three = p.constant(3);
    uint32_t ops[] = {p.binary(DLCRT_EXPR_ADD, n, three),
                      p.binary(DLCRT_EXPR_MUL, n, three),
                      p.binary(DLCRT_EXPR_FLOORDIV, n, three),
                      p.binary(DLCRT_EXPR_CEILDIV, n, three),
                      p.binary(DLCRT_EXPR_MOD, n, three),
                      p.binary(DLCRT_EXPR_MIN, n, three),
                      p.binary(DLCRT_EXPR_MAX, n, three),
                      p.select(DLCRT_EXPR_SELECT_EQ, n, three, n, three),
                      p.select(DLCRT_EXPR_SELECT_LT, n, three, n, three)};
    double d = double(a) / 3;
    int64_t floored = int64_t(std::floor(d)), expected[] = {a + 3,
                                                            a * 3,
                                                            floored,
                                                            int64_t(std::ceil(d)),
                                                            a - floored * 3,
                                                            std::min<int64_t>(a, 3),
                                                            std::max<int64_t>(a, 3),
                                                            3,
                                                            a < 3 ? a : 3};
    Evaluated e = evaluateAll(p, {a});
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(e.states[ops[i]], ValueState::Valid);
      EXPECT_EQ(e.values[ops[i]], expected[i]) << a << " op " << i;
    }
  }
}

TEST(Expr, ScaledFloor) {
  auto scaled = [](int64_t n, double scale) {
    ExprPool p;
    int64_t bits;
    memcpy(&bits, &scale, 8);
    uint32_t root = p.node(DLCRT_EXPR_SCALED_FLOOR, {p.symbol(0)}, bits);
    Evaluated e = evaluateAll(p, {n});
    return e.states[root] == ValueState::Valid ? e.values[root] : INT64_MIN;
  };
  EXPECT_EQ(scaled(7, 0.5), 3);
  EXPECT_EQ(scaled(-7, 0.5), -4);
  EXPECT_EQ(scaled(10, 2.5), 25);
  EXPECT_EQ(scaled(1, 1e30), INT64_MIN);
  EXPECT_EQ(scaled(1, std::nan("")), INT64_MIN);
}

TEST(Expr, ErrorsStayWhereTheyAre) {
  ExprPool p;
  uint32_t n = p.symbol(0), unknown = p.symbol(5), zero = p.constant(0), max = p.constant(INT64_MAX);
  uint32_t over = p.add(max, n), divided = p.binary(DLCRT_EXPR_MOD, n, zero), product = p.mul(max, max);
  uint32_t uses = p.add(over, n), late = p.mul(unknown, n);
  uint32_t taken = p.select(DLCRT_EXPR_SELECT_EQ, n, zero, n, over);
  uint32_t avoided = p.select(DLCRT_EXPR_SELECT_LT, zero, n, n, over);
  Evaluated e = evaluateAll(p, {1});
  for (uint32_t node : {over, divided, product, uses, taken})
    EXPECT_EQ(e.states[node], ValueState::Overflow) << node;
  for (uint32_t node : {unknown, late})
    EXPECT_EQ(e.states[node], ValueState::Undefined);
  EXPECT_EQ(e.states[avoided], ValueState::Valid);
  EXPECT_EQ(e.values[avoided], 1);
  // The one quotient that does not fit has a divisor that is refused anyway.
  ExprPool q;
  uint32_t quotient = q.binary(DLCRT_EXPR_FLOORDIV, q.symbol(0), q.constant(-1));
  EXPECT_EQ(evaluateAll(q, {INT64_MIN}).states[quotient], ValueState::Overflow);
}

TEST(Expr, Text) {
  ExprPool p;
  uint32_t n = p.symbol(0), m = p.symbol(1), two = p.constant(2), one = p.constant(1), zero = p.constant(0);
  uint32_t sum = p.add(n, one);
  EXPECT_EQ(print(p, p.binary(DLCRT_EXPR_FLOORDIV, sum, two)), "floor((n + 1) / 2)");
  EXPECT_EQ(print(p, p.mul(sum, m)), "(n + 1) * m");
  EXPECT_EQ(print(p, p.add(p.mul(n, m), two)), "n * m + 2");
  EXPECT_EQ(print(p, p.binary(DLCRT_EXPR_CEILDIV, n, two)), "ceil(n / 2)");
  EXPECT_EQ(print(p, p.binary(DLCRT_EXPR_MOD, n, two)), "n mod 2");
  EXPECT_EQ(print(p, p.binary(DLCRT_EXPR_MIN, n, m)), "min(n, m)");
  EXPECT_EQ(print(p, p.select(DLCRT_EXPR_SELECT_EQ, n, two, one, zero)), "n == 2");
  EXPECT_EQ(print(p, p.select(DLCRT_EXPR_SELECT_LT, n, two, m, zero)), "(n < 2 ? m : 0)");
  double half = 0.5;
  int64_t bits;
  memcpy(&bits, &half, 8);
  EXPECT_EQ(print(p, p.node(DLCRT_EXPR_SCALED_FLOOR, {n}, bits)), "floor(n * 0.5)");
  // A graph that is exponentially large as a tree.
  uint32_t node = n;
  for (int i = 0; i < 60; ++i)
    node = p.add(node, node);
  EXPECT_NE(print(p, node).find("..."), std::string::npos);
}

TEST(Strided, AgainstTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    uint32_t rank = random() % 5, elementBytes = 1u << random() % 5;
    std::vector<int64_t> dims, strides;
    int64_t low = 0, high = 0;
    for (uint32_t i = 0; i < rank; ++i) {
      dims.push_back(random() % 4);
      strides.push_back(int64_t(random() % 9) - 4);
      int64_t reach = strides[i] * (dims[i] ? dims[i] - 1 : 0);
      (reach < 0 ? low : high) += reach;
    }
    std::vector<uint8_t> memory(size_t(high - low + 1) * elementBytes);
    for (uint8_t &byte : memory)
      byte = uint8_t(random());
    uint8_t *first = memory.data() - low * elementBytes;
    size_t count = 1;
    for (int64_t dim : dims)
      count *= size_t(dim);
    std::vector<uint8_t> dense(count * elementBytes + 1, 0), expected = dense;
    for (size_t i = 0; i < count; ++i) {
      int64_t rest = int64_t(i), offset = 0;
      for (uint32_t d = rank; d-- > 0; rest /= dims[d])
        offset += rest % dims[d] * strides[d];
      memcpy(&expected[i * elementBytes], first + offset * elementBytes, elementBytes);
    }
    copyFromStrided(dense.data(), first, elementBytes, rank, dims.data(), strides.data());
    EXPECT_EQ(dense, expected);
    // And back, where no two elements share a place.
    std::vector<int64_t> spread(rank);
    int64_t step = 2;
    for (uint32_t d = 0; d < rank; ++d, step *= 5)
      spread[d] = step;
    uint64_t extent;
    ASSERT_TRUE(stridedExtent(elementBytes, rank, dims.data(), spread.data(), extent));
    std::vector<uint8_t> target(extent), again(count * elementBytes + 1, 0);
    copyToStrided(target.data(), dense.data(), elementBytes, rank, dims.data(), spread.data());
    copyFromStrided(again.data(), target.data(), elementBytes, rank, dims.data(), spread.data());
    EXPECT_EQ(again, dense);
  }
  int64_t dims[] = {2, 1, 3}, dense[] = {3, 77, 1}, not_dense[] = {3, 77, 2};
  EXPECT_TRUE(isDense(3, dims, dense));
  EXPECT_TRUE(isDense(3, dims, nullptr));
  EXPECT_FALSE(isDense(3, dims, not_dense));
}

TEST(Arena, NoOverlapWhateverTheLifetimes) {
  std::mt19937_64 random(7);
  Memory memory;
  ArenaPlanner planner(memory);
  uint64_t total = 0, bound = 0;
  for (int round = 0; round < 400; ++round) {
    uint32_t count = 1 + random() % 60, stages = 1 + random() % 30, fixedCount = random() % 3 ? 0 : count / 3;
    std::vector<ArenaBlock> blocks(count);
    uint64_t fixedEnd = 0;
    for (uint32_t i = 0; i < count; ++i) {
      ArenaBlock &block = blocks[i];
      block.bytes = random() % 8 ? random() % 5000 : 0;
      block.firstStage = uint32_t(random() % stages);
      block.lastStage = std::min<uint32_t>(stages - 1, block.firstStage + uint32_t(random() % 5));
      if (i < fixedCount) {
        block.offset = fixedEnd;
        fixedEnd += (block.bytes + 63) / 64 * 64 + random() % 3 * 6400;
        fixedEnd &= ~uint64_t(63);
      }
    }
    std::vector<ArenaBlock> before = blocks;
    uint64_t end;
    ASSERT_EQ(planner.place(blocks.data(), fixedCount, count, end, nullptr), DLCRT_OK);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(blocks[i].offset % 64, 0u);
      ASSERT_GE(blocks[i].bytes, before[i].bytes);
      ASSERT_LE(blocks[i].offset + blocks[i].bytes, end);
      if (i < fixedCount) {
        ASSERT_EQ(blocks[i].offset, before[i].offset);
      }
      for (uint32_t j = 0; j < i; ++j) {
        if (i < fixedCount || blocks[i].firstStage > blocks[j].lastStage || blocks[j].firstStage > blocks[i].lastStage)
          continue;
        ASSERT_TRUE(blocks[i].offset >= blocks[j].offset + blocks[j].bytes ||
                    blocks[j].offset >= blocks[i].offset + blocks[i].bytes)
            << "blocks " << i << " and " << j << " in round " << round;
      }
    }
    if (fixedCount == 0) {
      total += end;
      uint64_t own = arenaLowerBound(blocks.data(), count);
      ASSERT_LE(own, end);
      bound += own;
    }
  }
  // Not worse than a tenth above what is impossible to beat, on average.
  EXPECT_LT(double(total), 1.1 * double(bound)) << double(total) / double(bound);
}

TEST(Arena, LowerBound) {
  ArenaBlock blocks[] = {{64, 0, 0, 1}, {128, 0, 1, 2}, {256, 0, 2, 2}, {320, 0, 4, 4}};
  EXPECT_EQ(arenaLowerBound(blocks, 4), 384u);
  EXPECT_EQ(arenaLowerBound(blocks, 2), 192u);
  EXPECT_EQ(arenaLowerBound(blocks, 0), 0u);
}

TEST(Arena, HoldsWhatCannotFit) {
  Memory memory;
  ArenaPlanner planner(memory);
  ArenaBlock blocks[] = {{uint64_t(1) << 62, 0, 0, 1}, {uint64_t(1) << 62, 0, 0, 1}};
  uint64_t end;
  dlcrt_error error = {sizeof(error), 0, ""};
  EXPECT_EQ(planner.place(blocks, 0, 2, end, &error), DLCRT_ERROR_OVERFLOW);
  EXPECT_STREQ(error.message, "the buffers for these dims need more than 2^62 bytes");
  ArenaBlock huge[] = {{UINT64_MAX - 5, 0, 0, 1}};
  EXPECT_EQ(planner.place(huge, 0, 1, end, &error), DLCRT_ERROR_OVERFLOW);
}

TEST(Available, Quotas) {
  EXPECT_EQ(threadsOfQuota("max 100000"), 0u);
  EXPECT_EQ(threadsOfQuota("-1 100000"), 0u);
  EXPECT_EQ(threadsOfQuota("200000 100000\n"), 2u);
  EXPECT_EQ(threadsOfQuota("250000 100000"), 3u);
  EXPECT_EQ(threadsOfQuota("1000 100000"), 1u);
  EXPECT_EQ(threadsOfQuota(""), 0u);
  EXPECT_EQ(threadsOfQuota("5"), 0u);
  EXPECT_GE(availableThreads(), 1u);
}
