// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelRunner.h"
#include "dlc/IR/KernelOps.h"
#include "dlcrt/kernel_abi.h"
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace dlc::test;

namespace {

class Kernels : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(testTargets()), [](const auto &info) {
  std::string name = info.param;
  for (char &c : name)
    c = isalnum(c) ? c : '_';
  return name;
});

std::vector<float> randomFloats(size_t n, unsigned seed = 1, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(n);
  for (float &v : values)
    v = distribution(generator);
  return values;
}

TEST_P(Kernels, ElementwiseBroadcast) {
  KernelRunner runner(R"(
    plan.kernel @k operands 2 destinations 1 scalars 2 {kind = #plan.kind<elementwise, 0>, schedule = #plan.schedule<tiles = [7, 0]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 1>, array<i64: 0, 1>]}
        (%x: tensor<?x?xf32>, %y: tensor<?xf32>, %d: tensor<?x?xf32>, %m: index, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x, %y : tensor<?x?xf32>, tensor<?xf32>) outs(%d : tensor<?x?xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %s = arith.mulf %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<?x?xf32>
      plan.yield %r : tensor<?x?xf32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {7, 16}, {23, 67}, {100, 1}, {0, 5}}) {
    auto x = randomFloats(m * n), y = randomFloats(n, 2);
    std::vector<float> d(m * n, 99);
    uint32_t tiles = (m + 6) / 7;
    EXPECT_EQ(runner.run("k", {x.data(), y.data(), d.data()}, {m, n}, 0, tiles), 0u);
    for (int64_t i = 0; i < m * n; ++i)
      ASSERT_EQ(d[i], x[i] * y[i % n]) << m << "x" << n << " at " << i;
    // A tile writes its rows and no others.
    if (tiles > 1) {
      std::fill(d.begin(), d.end(), 99);
      runner.run("k", {x.data(), y.data(), d.data()}, {m, n}, 1, 2);
      for (int64_t i = 0; i < m * n; ++i)
        ASSERT_EQ(d[i], i / n / 7 == 1 ? x[i] * y[i % n] : 99);
    }
  }
}

/// relu(a * b + bias), cut into tiles of tm x tn. `terms`: how many there are, "?" where a run says it.
std::string matmulText(const char *tiles, const char *mapA, const char *mapB, const std::string &terms = "?") {
  std::string text = R"(
    plan.kernel @k operands 3 destinations 1 scalars 3 {kind = #plan.kind<contraction, 1>, schedule = #plan.schedule<tiles = [TILES]>,
        plan.dims = [array<i64: A0>, array<i64: B0>, array<i64: 1>, array<i64: 0, 1>]}
        (%a: tensor<TYPEA>, %b: tensor<TYPEB>, %bias: tensor<?xf32>, %d: tensor<?x?xf32>, %m: index, %n: index, %k: index) {
      %zero = arith.constant 0.0 : f32
      %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?x?xf32>) -> tensor<?x?xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (MAPA)>, affine_map<(m, n, k) -> (MAPB)>, affine_map<(m, n, k) -> (m, n)>],
                           iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<TYPEA>, tensor<TYPEB>) outs(%f : tensor<?x?xf32>) {
      ^bb0(%x: f32, %y: f32, %s: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.addf %s, %p : f32
        linalg.yield %q : f32
      } -> tensor<?x?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
          ins(%bias : tensor<?xf32>) outs(%c : tensor<?x?xf32>) {
      ^bb0(%x: f32, %y: f32):
        %t = arith.addf %x, %y : f32
        %zz = arith.constant 0.0 : f32
        %u = arith.maximumf %t, %zz : f32
        linalg.yield %u : f32
      } -> tensor<?x?xf32>
      plan.yield %r : tensor<?x?xf32>
    })";
  auto replace = [&](std::string from, std::string to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  std::string a = mapA, b = mapB;
  replace("TILES", tiles);
  replace("MAPA", a);
  replace("MAPB", b);
  replace("TYPEA", a == "m, k" ? "?x" + terms + "xf32" : terms + "x?xf32");
  replace("TYPEB", b == "k, n" ? terms + "x?xf32" : "?x" + terms + "xf32");
  replace("A0", a == "m, k" ? "0, 2" : "2, 0");
  replace("B0", b == "k, n" ? "2, 1" : "1, 2");
  return text;
}

/// relu(a * b + bias) of every size in tiles of tm x tn, against sums in double.
void checkMatmul(const std::string &target, int64_t tm, int64_t tn, std::vector<std::array<int64_t, 3>> sizes, const std::string &terms = "?") {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true}) {
      std::string tiles = std::to_string(tm) + ", " + std::to_string(tn);
      KernelRunner runner(matmulText(tiles.c_str(), transposeA ? "k, m" : "m, k", transposeB ? "n, k" : "k, n", terms), target);
      ASSERT_EQ(runner.error, "");
      for (auto [m, n, k] : sizes) {
        auto a = randomFloats(m * k), b = randomFloats(k * n, 2), bias = randomFloats(n, 3);
        std::vector<float> d(m * n, 99);
        uint32_t count = ((m + tm - 1) / tm) * ((n + tn - 1) / tn);
        // In two calls, the second part first.
        EXPECT_EQ(runner.run("k", {a.data(), b.data(), bias.data(), d.data()}, {m, n, k}, count / 2, count), 0u);
        EXPECT_EQ(runner.run("k", {a.data(), b.data(), bias.data(), d.data()}, {m, n, k}, 0, count / 2), 0u);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum += double(a[transposeA ? l * m + i : i * k + l]) * b[transposeB ? j * k + l : l * n + j];
            ASSERT_NEAR(d[i * n + j], std::max(0.0, sum + bias[j]), 1e-6 * (10 + k)) << m << "x" << n << "x" << k << " at " << i << ", " << j;
          }
      }
    }
}

TEST_P(Kernels, MatmulWithEpilogue) {
  checkMatmul(GetParam(), 12, 40, {{1, 1, 1}, {5, 3, 7}, {12, 40, 16}, {13, 41, 9}, {33, 100, 50}, {1, 64, 0}, {6, 16, 1}, {0, 4, 4}, {4, 0, 4}, {40, 1, 30}});
}

/// Tiles with rows enough for copying the columns into panels; few rows, and terms of several panels, too.
TEST_P(Kernels, MatmulThatPacks) {
  checkMatmul(GetParam(), 48, 96, {{48, 96, 64}, {50, 130, 300}, {100, 33, 513}, {13, 100, 200}, {3, 70, 257}, {60, 64, 0}, {49, 1, 9}, {96, 97, 384}, {50, 20, 769}});
  checkMatmul(GetParam(), 48, 96, {{50, 130, 33}, {100, 16, 33}, {5, 99, 33}}, "33"); // one panel holds all terms
}

/// One large term and many small ones: only the piece of the sum that holds the large one loses some. With and without packing.
TEST_P(Kernels, LongSumsInPieces) {
  for (const char *terms : {"?", "4097"}) {
    KernelRunner runner(matmulText("48, 64", "m, k", "k, n", terms), GetParam());
    ASSERT_EQ(runner.error, "");
    constexpr int64_t n = 20, k = 4097;
    constexpr float large = 16777216; // to which adding 1 changes nothing
    for (int64_t m : {1, 7, 40}) {
      std::vector<float> a(m * k, 1), b(k * n, 1), bias(n, 0), d(m * n);
      for (int64_t i = 0; i < m; ++i)
        a[i * k] = large;
      runner.run("k", {a.data(), b.data(), bias.data(), d.data()}, {m, n, k}, 0, 1);
      for (float sum : d)
        ASSERT_GE(sum, large + 4096 - 384) << m << " rows, " << terms << " terms";
    }
  }
}

/// Batches of i8 products summed up in i32, without an epilogue; unsigned times signed. `mapB` chooses columns or terms side by side.
TEST_P(Kernels, IntegerContraction) {
  for (bool transposed : {false, true}) {
    std::string text = R"(
    plan.kernel @k operands 2 destinations 1 scalars 4 {kind = #plan.kind<contraction, 1>, schedule = #plan.schedule<tiles = [1, 5, 0]>,
        plan.dims = [array<i64: 0, 1, 3>, array<i64: 0, DIMS>, array<i64: 0, 1, 2>]}
        (%a: tensor<?x?x?xi8>, %b: tensor<?x?x?xi8>, %d: tensor<?x?x?xi32>, %batch: index, %m: index, %n: index, %k: index) {
      %zero = arith.constant 0 : i32
      %f = linalg.fill ins(%zero : i32) outs(%d : tensor<?x?x?xi32>) -> tensor<?x?x?xi32>
      %c = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, MAP)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                           iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<?x?x?xi8>, tensor<?x?x?xi8>) outs(%f : tensor<?x?x?xi32>) {
      ^bb0(%x: i8, %y: i8, %s: i32):
        %xx = arith.extui %x : i8 to i32
        %yy = arith.extsi %y : i8 to i32
        %p = arith.muli %xx, %yy : i32
        %q = arith.addi %s, %p : i32
        linalg.yield %q : i32
      } -> tensor<?x?x?xi32>
      plan.yield %c : tensor<?x?x?xi32>
    })";
    text.replace(text.find("DIMS"), 4, transposed ? "2, 3" : "3, 2");
    text.replace(text.find("MAP"), 3, transposed ? "n, k" : "k, n");
    KernelRunner runner(text, GetParam());
    ASSERT_EQ(runner.error, "");
    for (auto [batch, m, n, k] : {std::array<int64_t, 4>{1, 1, 1, 1}, {3, 7, 33, 20}, {2, 5, 4, 70}, {2, 11, 17, 0}}) {
      std::vector<uint8_t> a(batch * m * k);
      std::vector<int8_t> b(batch * k * n);
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = i * 37;
      for (size_t i = 0; i < b.size(); ++i)
        b[i] = i * 91;
      std::vector<int32_t> d(batch * m * n, 77);
      runner.run("k", {a.data(), b.data(), d.data()}, {batch, m, n, k}, 0, batch * ((m + 4) / 5));
      for (int64_t l = 0; l < batch; ++l)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            int32_t sum = 0;
            for (int64_t t = 0; t < k; ++t)
              sum += a[(l * m + i) * k + t] * b[transposed ? (l * n + j) * k + t : (l * k + t) * n + j];
            ASSERT_EQ(d[(l * m + i) * n + j], sum) << transposed << " " << n << " " << k;
          }
    }
  }
}

/// An operand that all batches share, spelled as one with a batch dim of 1.
TEST_P(Kernels, BroadcastBatch) {
  KernelRunner runner(R"(
    plan.kernel @k operands 2 destinations 1 scalars 4 {kind = #plan.kind<contraction, 1>, schedule = #plan.schedule<tiles = [1, 8, 16]>,
        plan.dims = [array<i64: 0, 1, 3>, array<i64: -1, 3, 2>, array<i64: 0, 1, 2>]}
        (%a: tensor<?x?x?xf32>, %b: tensor<1x?x?xf32>, %d: tensor<?x?x?xf32>, %batch: index, %m: index, %n: index, %k: index) {
      %zero = arith.constant 0.0 : f32
      %f = linalg.fill ins(%zero : f32) outs(%d : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (0, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
                           iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<?x?x?xf32>, tensor<1x?x?xf32>) outs(%f : tensor<?x?x?xf32>) {
      ^bb0(%x: f32, %y: f32, %s: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.addf %s, %p : f32
        linalg.yield %q : f32
      } -> tensor<?x?x?xf32>
      plan.yield %c : tensor<?x?x?xf32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  int64_t batch = 3, m = 9, n = 21, k = 6;
  auto a = randomFloats(batch * m * k), b = randomFloats(k * n, 2);
  std::vector<float> d(batch * m * n);
  runner.run("k", {a.data(), b.data(), d.data()}, {batch, m, n, k}, 0, batch * 2 * 2);
  for (int64_t i = 0; i < batch * m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t)
        sum += double(a[i * k + t]) * b[t * n + j];
      ASSERT_NEAR(d[i * n + j], sum, 1e-5);
    }
}

/// f64: a matrix times a vector, with what was in the result before as the start.
TEST_P(Kernels, MatrixTimesVector) {
  KernelRunner runner(R"(
    plan.kernel @k operands 3 destinations 1 scalars 2 {kind = #plan.kind<contraction, 0>, schedule = #plan.schedule<tiles = [9]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 1>, array<i64: 0>, array<i64: 0>]}
        (%a: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>, %d: tensor<?xf64>, %m: index, %k: index) {
      %c = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
                           iterator_types = ["parallel", "reduction"]} ins(%a, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%y : tensor<?xf64>) {
      ^bb0(%x0: f64, %y0: f64, %s: f64):
        %p = arith.mulf %x0, %y0 : f64
        %q = arith.addf %p, %s : f64
        linalg.yield %q : f64
      } -> tensor<?xf64>
      plan.yield %c : tensor<?xf64>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  for (auto [m, k] : {std::pair<int64_t, int64_t>{1, 1}, {10, 3}, {29, 67}, {4, 0}}) {
    std::vector<double> a(m * k), x(k), y(m), d(m, 99);
    for (auto *v : {&a, &x, &y})
      for (size_t i = 0; i < v->size(); ++i)
        (*v)[i] = int(i * 29 % 23) - 11;
    auto before = y;
    runner.run("k", {a.data(), x.data(), y.data(), d.data()}, {m, k}, 0, (m + 8) / 9);
    EXPECT_EQ(y, before);
    for (int64_t i = 0; i < m; ++i) {
      double sum = y[i];
      for (int64_t t = 0; t < k; ++t)
        sum += a[i * k + t] * x[t];
      ASSERT_EQ(d[i], sum) << m << "x" << k;
    }
  }
}

/// bf16 in plain integers: compilers' libraries do not always have its conversions.
struct Bf16 {
  uint16_t bits;
  Bf16(float x = 0) {
    uint32_t u;
    memcpy(&u, &x, 4);
    bits = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  }
  operator float() const {
    uint32_t u = uint32_t(bits) << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
  }
};

/// One elementwise op on `type`: d = OP(x, y), rows cut.
std::string binaryText(const std::string &type, const std::string &op) {
  std::string text = R"(
    plan.kernel @k operands 2 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, schedule = #plan.schedule<tiles = [100]>,
        plan.dims = [array<i64: 0>, array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xTYPE>, %y: tensor<?xTYPE>, %d: tensor<?xTYPE>, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<?xTYPE>, tensor<?xTYPE>) outs(%d : tensor<?xTYPE>) {
      ^bb0(%a: TYPE, %b: TYPE, %c: TYPE):
        %s = OP
        linalg.yield %s : TYPE
      } -> tensor<?xTYPE>
      plan.yield %r : tensor<?xTYPE>
    })";
  for (auto [from, to] : {std::pair<std::string, std::string>{"OP", op}, {"TYPE", type}})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

template <typename T, typename F>
void checkBinary(const std::string &target, const std::string &type, const std::string &op, F reference, double low, double high) {
  KernelRunner runner(binaryText(type, op), target);
  ASSERT_EQ(runner.error, "") << type << " " << op;
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> distribution(low, high);
  for (int64_t n : {0, 1, 7, 100, 333}) {
    std::vector<T> x(n), y(n), d(n, T(77));
    for (auto *v : {&x, &y})
      for (T &e : *v)
        e = T(distribution(generator));
    runner.run("k", {x.data(), y.data(), d.data()}, {n}, 0, (n + 99) / 100);
    for (int64_t i = 0; i < n; ++i) {
      T expected = T(reference(x[i], y[i]));
      ASSERT_EQ(0, memcmp(&d[i], &expected, sizeof(T))) << type << " " << op << ": " << double(x[i]) << ", " << double(y[i]) << " -> " << double(d[i]);
    }
  }
}

TEST_P(Kernels, ElementTypes) {
  auto add = [](auto x, auto y) { return x + y; };
  auto mul = [](auto x, auto y) { return x * y; };
  checkBinary<float>(GetParam(), "f32", "arith.addf %a, %b : f32", add, -9, 9);
  checkBinary<double>(GetParam(), "f64", "arith.mulf %a, %b : f64", mul, -9, 9);
  checkBinary<_Float16>(GetParam(), "f16", "arith.addf %a, %b : f16", [](float x, float y) { return _Float16(x + y); }, -9, 9);
  checkBinary<_Float16>(GetParam(), "f16", "arith.mulf %a, %b : f16", [](float x, float y) { return _Float16(x * y); }, -9, 9);
  checkBinary<Bf16>(GetParam(), "bf16", "arith.addf %a, %b : bf16", [](float x, float y) { return Bf16(x + y); }, -9, 9);
  checkBinary<int8_t>(GetParam(), "i8", "arith.addi %a, %b : i8", add, -128, 127);
  checkBinary<int8_t>(GetParam(), "i8", "arith.maxsi %a, %b : i8", [](int x, int y) { return std::max(x, y); }, -128, 127);
  checkBinary<uint8_t>(GetParam(), "i8", "arith.maxui %a, %b : i8", [](int x, int y) { return std::max(x, y); }, 0, 255);
  checkBinary<int16_t>(GetParam(), "i16", "arith.muli %a, %b : i16", mul, -100, 100);
  checkBinary<int32_t>(GetParam(), "i32", "arith.divsi %a, %b : i32", [](int x, int y) { return x / y; }, 1, 1e6);
  checkBinary<int64_t>(GetParam(), "i64", "arith.muli %a, %b : i64", mul, -1e9, 1e9);
  checkBinary<uint64_t>(GetParam(), "i64", "arith.remui %a, %b : i64", [](uint64_t x, uint64_t y) { return x % y; }, 1, 1e18);
  checkBinary<float>(GetParam(), "f32", "arith.remf %a, %b : f32", [](float x, float y) { return std::fmod(x, y); }, 1, 1e6);
  checkBinary<double>(GetParam(), "f64", "math.powf %a, %b : f64", [](double x, double y) { return std::pow(x, y); }, 0, 9);
  checkBinary<float>(GetParam(), "f32", "math.roundeven %a : f32", [](float x, float) { return std::nearbyint(x); }, -9, 9);
  checkBinary<float>(GetParam(), "f32", "math.round %a : f32", [](float x, float) { return std::round(x); }, -9, 9);
  checkBinary<float>(GetParam(), "f32", "math.fma %a, %b, %a : f32", [&](float x, float y) {
    bool fused = cantFail(dlc::parseTarget(GetParam())).fma;
    return fused ? std::fma(x, y, x) : float(x * y) + x;
  }, -9, 9);
}

TEST_P(Kernels, NanPropagates) {
  KernelRunner runner(binaryText("f32", "arith.maximumf %a, %b : f32"), GetParam());
  ASSERT_EQ(runner.error, "");
  float nan = std::nanf("");
  std::vector<float> x{nan, 1, -0.0f, 0.0f, INFINITY}, y{1, nan, 0.0f, -0.0f, -INFINITY}, d(5);
  runner.run("k", {x.data(), y.data(), d.data()}, {5}, 0, 1);
  EXPECT_TRUE(std::isnan(d[0]) && std::isnan(d[1]));
  EXPECT_FALSE(std::signbit(d[2]) || std::signbit(d[3]));
  EXPECT_EQ(d[4], INFINITY);
}

/// A reduction over dim `axis` of a 2-d tensor, then a product with 0.5.
TEST_P(Kernels, Reductions) {
  for (bool overRows : {false, true})
    for (const char *combine : {"arith.addf %s, %x : f32", "arith.maximumf %s, %x : f32", "arith.mulf %s, %x : f32"}) {
      std::string text = R"(
    plan.kernel @k operands 1 destinations 1 scalars 2 {kind = #plan.kind<reduction, 1>, schedule = #plan.schedule<tiles = [5]>,
        plan.dims = [array<i64: 0, 1>, array<i64: KEPT>]}
        (%a: tensor<?x?xf32>, %d: tensor<?xf32>, %m: index, %n: index) {
      %start = arith.constant 1.0 : f32
      %e = tensor.empty(KEPTSIZE) : tensor<?xf32>
      %f = linalg.fill ins(%start : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (MAP)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
          ins(%a : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
      ^bb0(%x: f32, %s: f32):
        %q = COMBINE
        linalg.yield %q : f32
      } -> tensor<?xf32>
      %h = arith.constant 0.5 : f32
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%c : tensor<?xf32>) outs(%d : tensor<?xf32>) {
      ^bb0(%x: f32, %y: f32):
        %t = arith.mulf %x, %h : f32
        linalg.yield %t : f32
      } -> tensor<?xf32>
      plan.yield %r : tensor<?xf32>
    })";
      for (auto [from, to] : {std::pair<std::string, std::string>{"COMBINE", combine}, {"MAP", overRows ? "j, i" : "i, j"},
                              {"KEPTSIZE", overRows ? "%n" : "%m"}, {"KEPT", overRows ? "1" : "0"}})
        for (size_t at; (at = text.find(from)) != std::string::npos;)
          text.replace(at, from.size(), to);
      KernelRunner runner(text, GetParam());
      ASSERT_EQ(runner.error, "");
      for (auto [m, n] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 17}, {12, 100}, {31, 5}, {8, 33}, {16, 64}, {4, 0}, {0, 4}}) {
        auto a = randomFloats(m * n, 5, 0.5, 1.5);
        int64_t kept = overRows ? n : m, reduced = overRows ? m : n;
        std::vector<float> d(kept, 99);
        runner.run("k", {a.data(), d.data()}, {m, n}, 0, (kept + 4) / 5);
        for (int64_t i = 0; i < kept; ++i) {
          double expected = 1;
          for (int64_t j = 0; j < reduced; ++j) {
            double x = overRows ? a[j * n + i] : a[i * n + j];
            expected = combine[6] == 'a' ? expected + x : combine[7] == 'a' ? std::max(expected, x) : expected * x;
          }
          ASSERT_NEAR(d[i], expected * 0.5, 1e-5 * std::abs(expected)) << combine << " " << m << "x" << n;
        }
      }
    }
}

/// What is known of sizes does not change a single bit, neither of sums nor of products of matrices.
TEST_P(Kernels, SameBitsForStaticAndDynamicSizes) {
  auto text = [](bool isStatic) {
    std::string text = R"(
    #row = affine_map<(i, j) -> (i)>
    plan.kernel @sum operands 1 destinations 2 scalars 2 {kind = #plan.kind<reduction, 1>, plan.dims = [array<i64: 0, 1>, array<i64: 0>, array<i64: 1>]}
        (%x: tensor<MxNxf32>, %d: tensor<Mxf32>, %e: tensor<Nxf32>, %m: index, %n: index) {
      %zero = arith.constant 0.0 : f32
      %f = linalg.fill ins(%zero : f32) outs(%d : tensor<Mxf32>) -> tensor<Mxf32>
      %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<MxNxf32>) outs(%f : tensor<Mxf32>) {
      ^bb0(%a: f32, %s: f32):
        %t = math.tanh %a : f32
        %p = arith.mulf %t, %a : f32
        %q = arith.addf %p, %s : f32
        linalg.yield %q : f32
      } -> tensor<Mxf32>
      %g = linalg.fill ins(%zero : f32) outs(%e : tensor<Nxf32>) -> tensor<Nxf32>
      %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<MxNxf32>) outs(%g : tensor<Nxf32>) {
      ^bb0(%a: f32, %s: f32):
        %q = arith.addf %a, %s : f32
        linalg.yield %q : f32
      } -> tensor<Nxf32>
      plan.yield %c, %h : tensor<Mxf32>, tensor<Nxf32>
    }
    plan.kernel @product operands 2 destinations 1 scalars 2 {kind = #plan.kind<contraction, 1>, plan.dims = [array<i64: 0, 1>, array<i64: 0, 1>, array<i64: 0, 0>]}
        (%x: tensor<MxNxf32>, %y: tensor<MxNxf32>, %d: tensor<MxMxf32>, %m: index, %n: index) {
      %zero = arith.constant 0.0 : f32
      %f = linalg.fill ins(%zero : f32) outs(%d : tensor<MxMxf32>) -> tensor<MxMxf32>
      %c = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                           iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %y : tensor<MxNxf32>, tensor<MxNxf32>) outs(%f : tensor<MxMxf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %q = arith.addf %p, %s : f32
        linalg.yield %q : f32
      } -> tensor<MxMxf32>
      plan.yield %c : tensor<MxMxf32>
    })";
    for (auto [from, to] : {std::pair<std::string, std::string>{"MxMx", isStatic ? "7x7x" : "?x?x"}, {"MxNx", isStatic ? "7x45x" : "?x?x"},
                            {"<Mx", isStatic ? "<7x" : "<?x"}, {"<Nx", isStatic ? "<45x" : "<?x"}})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    return text;
  };
  KernelRunner fixed(text(true), GetParam()), dynamic(text(false), GetParam());
  ASSERT_EQ(fixed.error, "");
  ASSERT_EQ(dynamic.error, "");
  auto x = randomFloats(7 * 45), y = randomFloats(7 * 45, 2);
  std::vector<float> sums[2], columns[2], products[2];
  for (int i : {0, 1}) {
    const KernelRunner &runner = i ? fixed : dynamic;
    sums[i].resize(7), columns[i].resize(45), products[i].resize(49);
    runner.run("sum", {x.data(), sums[i].data(), columns[i].data()}, {7, 45}, 0, 1);
    runner.run("product", {x.data(), y.data(), products[i].data()}, {7, 45}, 0, 1);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(columns[0], columns[1]);
  EXPECT_EQ(products[0], products[1]);
}

/// Kernels of rows, for any number and length of rows. No other memory than the destinations is needed.
struct RowKernels {
  explicit RowKernels(const std::string &target, const std::string &rows, const std::string &length)
      : runner(text(rows, length), target) {}

  static std::string text(const std::string &rows, const std::string &length) {
    std::string text = R"(
    #id = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (i)>
    #one = affine_map<(i) -> (i)>
    #spread = affine_map<(i, j) -> (i, 0)>
    #column = affine_map<(i, j) -> (j)>
    plan.kernel @softmax operands 1 destinations 1 scalars 2 {kind = #plan.kind<reduction, 1>, schedule = #plan.schedule<tiles = [4, 0]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 0, 1>]}
        (%x: tensor<MxNxf32>, %d: tensor<MxNxf32>, %m: index, %n: index) {
      %low = arith.constant 0xff800000 : f32
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(SIZEM) : tensor<Mxf32>
      %ee = tensor.empty(SIZEMN) : tensor<MxNxf32>
      %f0 = linalg.fill ins(%low : f32) outs(%e : tensor<Mxf32>) -> tensor<Mxf32>
      %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<MxNxf32>) outs(%f0 : tensor<Mxf32>) {
      ^bb0(%a: f32, %s: f32):
        %q = arith.maximumf %a, %s : f32
        linalg.yield %q : f32
      } -> tensor<Mxf32>
      %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<MxNxf32>, tensor<Mxf32>) outs(%ee : tensor<MxNxf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %q = arith.subf %a, %b : f32
        %p = math.exp %q : f32
        linalg.yield %p : f32
      } -> tensor<MxNxf32>
      %f1 = linalg.fill ins(%zero : f32) outs(%e : tensor<Mxf32>) -> tensor<Mxf32>
      %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<MxNxf32>) outs(%f1 : tensor<Mxf32>) {
      ^bb0(%a: f32, %s: f32):
        %q = arith.addf %a, %s : f32
        linalg.yield %q : f32
      } -> tensor<Mxf32>
      %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<MxNxf32>, tensor<Mxf32>) outs(%d : tensor<MxNxf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %q = arith.divf %a, %b : f32
        linalg.yield %q : f32
      } -> tensor<MxNxf32>
      plan.yield %r : tensor<MxNxf32>
    }
    // x / (|x| summed up, in another type) * scale, and the sum as f32 in [rows, 1].
    plan.kernel @norm operands 2 destinations 2 scalars 2 {kind = #plan.kind<reduction, 1>, schedule = #plan.schedule<tiles = [2]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 1>, array<i64: 0, 1>, array<i64: 0, -1>]}
        (%x: tensor<MxNxf16>, %scale: tensor<Nxf32>, %d: tensor<MxNxf32>, %t: tensor<Mx1xf32>, %m: index, %n: index) {
      %zero = arith.constant 0.0 : f64
      %e = tensor.empty(SIZEM) : tensor<Mxf64>
      %f = linalg.fill ins(%zero : f64) outs(%e : tensor<Mxf64>) -> tensor<Mxf64>
      %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<MxNxf16>) outs(%f : tensor<Mxf64>) {
      ^bb0(%a: f16, %s: f64):
        %b = math.absf %a : f16
        %c = arith.extf %b : f16 to f64
        %q = arith.addf %s, %c : f64
        linalg.yield %q : f64
      } -> tensor<Mxf64>
      %wide = tensor.expand_shape %sum [[0, 1]] output_shape [OUTM, 1] : tensor<Mxf64> into tensor<Mx1xf64>
      %total = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%wide : tensor<Mx1xf64>) outs(%t : tensor<Mx1xf32>) {
      ^bb0(%a: f64, %s: f32):
        %q = arith.truncf %a : f64 to f32
        linalg.yield %q : f32
      } -> tensor<Mx1xf32>
      %r = linalg.generic {indexing_maps = [#id, #spread, #column, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x, %total, %scale : tensor<MxNxf16>, tensor<Mx1xf32>, tensor<Nxf32>) outs(%d : tensor<MxNxf32>) {
      ^bb0(%a: f16, %b: f32, %c: f32, %s: f32):
        %w = arith.extf %a : f16 to f32
        %q = arith.divf %w, %b : f32
        %p = arith.mulf %q, %c : f32
        linalg.yield %p : f32
      } -> tensor<MxNxf32>
      plan.yield %r, %total : tensor<MxNxf32>, tensor<Mx1xf32>
    }
    // The largest i64 and the number of bytes that are not 0.
    plan.kernel @integers operands 2 destinations 2 scalars 2 {kind = #plan.kind<reduction, 1>, schedule = #plan.schedule<tiles = [0]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 0, 1>, array<i64: 0>, array<i64: 0>]}
        (%x: tensor<MxNxi64>, %y: tensor<MxNxi8>, %d: tensor<Mxi64>, %c: tensor<Mxi32>, %m: index, %n: index) {
      %low = arith.constant -9223372036854775808 : i64
      %zero = arith.constant 0 : i32
      %f0 = linalg.fill ins(%low : i64) outs(%d : tensor<Mxi64>) -> tensor<Mxi64>
      %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<MxNxi64>) outs(%f0 : tensor<Mxi64>) {
      ^bb0(%a: i64, %s: i64):
        %q = arith.maxsi %a, %s : i64
        linalg.yield %q : i64
      } -> tensor<Mxi64>
      %f1 = linalg.fill ins(%zero : i32) outs(%c : tensor<Mxi32>) -> tensor<Mxi32>
      %count = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<MxNxi8>) outs(%f1 : tensor<Mxi32>) {
      ^bb0(%a: i8, %s: i32):
        %none = arith.constant 0 : i8
        %is = arith.cmpi ne, %a, %none : i8
        %one = arith.extui %is : i1 to i32
        %q = arith.addi %s, %one : i32
        linalg.yield %q : i32
      } -> tensor<Mxi32>
      plan.yield %max, %count : tensor<Mxi64>, tensor<Mxi32>
    })";
    bool anyRows = rows == "?", anyLength = length == "?";
    for (auto [from, to] : {std::pair<std::string, std::string>{"SIZEMN", anyRows     ? anyLength ? "%m, %n" : "%m"
                                                                          : anyLength ? "%n"
                                                                                      : ""},
                            {"SIZEM", anyRows ? "%m" : ""},
                            {"OUTM", anyRows ? "%m" : rows},
                            {"<MxN", "<" + rows + "x" + length},
                            {"<Mx", "<" + rows + "x"},
                            {"<Nx", "<" + length + "x"}})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    return text;
  }

  std::vector<float> softmax(const std::vector<float> &x, int64_t m, int64_t n) const {
    std::vector<float> d(m * n, 99);
    EXPECT_EQ(runner.run("softmax", {const_cast<float *>(x.data()), d.data()}, {m, n}, 0, (m + 3) / 4), 0u);
    return d;
  }

  KernelRunner runner;
};

TEST_P(Kernels, Rows) {
  RowKernels any(GetParam(), "?", "?");
  ASSERT_EQ(any.runner.error, "");
  for (auto &[name, kernel] : any.runner.kernels)
    EXPECT_EQ(kernel.scratch, 0) << name;
  for (int64_t m : {3, 0, 9})
    for (int64_t n : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 130, 1000}) {
      auto x = randomFloats(m * n, 5, -4, 4);
      auto d = any.softmax(x, m, n);
      for (int64_t i = 0; i < m; ++i) {
        double max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; ++j)
          max = std::max<double>(max, x[i * n + j]);
        for (int64_t j = 0; j < n; ++j)
          sum += std::exp(x[i * n + j] - max);
        for (int64_t j = 0; j < n; ++j)
          ASSERT_NEAR(d[i * n + j], std::exp(x[i * n + j] - max) / sum, 1e-6) << m << "x" << n;
      }

      std::vector<_Float16> half(x.begin(), x.end());
      auto scale = randomFloats(n, 6);
      std::vector<float> r(m * n, 99), total(m, 99);
      EXPECT_EQ(any.runner.run("norm", {half.data(), scale.data(), r.data(), total.data()}, {m, n}, 0, (m + 1) / 2),
                0u);
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += std::abs(double(half[i * n + j]));
        ASSERT_EQ(total[i], float(sum)); // exact in f64
        for (int64_t j = 0; j < n; ++j)
          ASSERT_EQ(r[i * n + j], float(half[i * n + j]) / total[i] * scale[j]);
      }

      std::vector<int64_t> numbers(m * n), largest(m, 99);
      std::vector<int8_t> bytes(m * n);
      std::vector<int32_t> counts(m, 99);
      for (int64_t i = 0; i < m * n; ++i)
        numbers[i] = int64_t(x[i] * 1e15), bytes[i] = int8_t(x[i]);
      EXPECT_EQ(any.runner.run("integers", {numbers.data(), bytes.data(), largest.data(), counts.data()}, {m, n}, 0, 1),
                0u);
      for (int64_t i = 0; i < m; ++i) {
        ASSERT_EQ(largest[i], n ? *std::max_element(&numbers[i * n], &numbers[i * n] + n) : INT64_MIN);
        ASSERT_EQ(counts[i], n - std::count(&bytes[i * n], &bytes[i * n] + n, 0));
      }
    }
}

/// What is known of the length or number of rows, and the tile that a row is in, do not change a bit.
TEST_P(Kernels, RowsOfKnownLength) {
  RowKernels any(GetParam(), "?", "?");
  for (int64_t n : {1, 7, 8, 9, 63, 64, 65, 1000}) {
    RowKernels length(GetParam(), "?", std::to_string(n)), both(GetParam(), "5", std::to_string(n));
    ASSERT_EQ(length.runner.error, "");
    ASSERT_EQ(both.runner.error, "");
    auto x = randomFloats(5 * n, 5, -4, 4);
    auto d = any.softmax(x, 5, n);
    EXPECT_EQ(d, length.softmax(x, 5, n)) << n;
    EXPECT_EQ(d, both.softmax(x, 5, n)) << n;
    auto alone = any.softmax(std::vector<float>(x.begin() + 4 * n, x.end()), 1, n);
    EXPECT_EQ(alone, std::vector<float>(d.begin() + 4 * n, d.end())) << n;
  }
}

TEST_P(Kernels, NanInRows) {
  RowKernels any(GetParam(), "?", "?");
  for (int64_t n : {5, 40})
    for (int64_t at = 0; at < n; ++at) {
      auto x = randomFloats(n);
      x[at] = std::nanf("");
      for (float v : any.softmax(x, 1, n))
        ASSERT_TRUE(std::isnan(v));
    }
}

TEST_P(Kernels, GatherRaises) {
  KernelRunner runner(R"(
    plan.kernel @k operands 2 destinations 1 scalars 3 {kind = #plan.kind<movement, 0>, schedule = #plan.schedule<tiles = [8, 0]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 2>, array<i64: 2, 1>]}
        (%x: tensor<?x?xf32>, %at: tensor<?xi64>, %d: tensor<?x?xf32>, %m: index, %n: index, %k: index) {
      %c0 = arith.constant 0 : index
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%at : tensor<?xi64>) outs(%d : tensor<?x?xf32>) {
      ^bb0(%i: i64, %c: f32):
        %index = arith.index_cast %i : i64 to index
        %j = linalg.index 1 : index
        %bad = arith.cmpi uge, %index, %m : index
        scf.if %bad {
          dlc.kernel_raise 1
        }
        %safe = arith.select %bad, %c0, %index : index
        %v = tensor.extract %x[%safe, %j] : tensor<?x?xf32>
        linalg.yield %v : f32
      } -> tensor<?x?xf32>
      plan.yield %r : tensor<?x?xf32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  int64_t m = 10, n = 7, k = 21;
  auto x = randomFloats(m * n);
  std::vector<int64_t> at(k);
  for (int64_t i = 0; i < k; ++i)
    at[i] = i * 3 % m;
  std::vector<float> d(k * n);
  EXPECT_EQ(runner.run("k", {x.data(), at.data(), d.data()}, {m, n, k}, 0, 3), 0u);
  for (int64_t i = 0; i < k * n; ++i)
    ASSERT_EQ(d[i], x[at[i / n] * n + i % n]);
  at[20] = -1;
  EXPECT_EQ(runner.run("k", {x.data(), at.data(), d.data()}, {m, n, k}, 0, 2), 0u);
  EXPECT_EQ(runner.run("k", {x.data(), at.data(), d.data()}, {m, n, k}, 2, 3), 1u);
}

template <typename T>
void testTranspose(const std::string &target, std::string type, bool isStatic) {
  for (auto [a, b, c] :
       {std::tuple<int64_t, int64_t, int64_t>{4, 5, 7}, {3, 70, 37}, {2, 16, 64}, {1, 33, 4}, {2, 1, 40}, {2, 0, 3}}) {
    std::string text = R"(
    plan.kernel @k operands 1 destinations 1 scalars 3 {kind = #plan.kind<movement, 0>, schedule = #plan.schedule<tiles = [35, 2, 0]>,
        plan.dims = [array<i64: 0, 1, 2>, array<i64: 2, 0, 1>]}
        (%x: tensor<AxBxCxT>, %d: tensor<CxAxBxT>, %a: index, %b: index, %c: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k, i)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x : tensor<AxBxCxT>) outs(%d : tensor<CxAxBxT>) {
      ^bb0(%v: T, %w: T):
        linalg.yield %v : T
      } -> tensor<CxAxBxT>
      plan.yield %r : tensor<CxAxBxT>
    })";
    for (auto [from, to] :
         {std::pair<std::string, std::string>{"AxBxCxT", isStatic ? std::to_string(a) + "x" + std::to_string(b) + "x" +
                                                                        std::to_string(c) + "x" + type
                                                                  : "?x?x?x" + type},
          {"CxAxBxT", isStatic ? std::to_string(c) + "x" + std::to_string(a) + "x" + std::to_string(b) + "x" + type
                               : "?x?x?x" + type},
          {": T", ": " + type}})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    KernelRunner runner(text, target);
    ASSERT_EQ(runner.error, "");
    std::vector<T> x(a * b * c), d(a * b * c + 1, 99);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i * 7;
    runner.run("k", {x.data(), d.data()}, {a, b, c}, 0, (c + 34) / 35 * ((a + 1) / 2));
    for (int64_t i = 0; i < c; ++i)
      for (int64_t j = 0; j < a; ++j)
        for (int64_t k = 0; k < b; ++k)
          ASSERT_EQ(d[(i * a + j) * b + k], x[(j * b + k) * c + i]) << type << " " << a << "x" << b << "x" << c;
    ASSERT_EQ(d.back(), T(99));
  }
}

TEST_P(Kernels, TransposeThreeDims) {
  for (bool isStatic : {false, true}) {
    testTranspose<int8_t>(GetParam(), "i8", isStatic);
    testTranspose<int16_t>(GetParam(), "f16", isStatic);
    testTranspose<float>(GetParam(), "f32", isStatic);
    testTranspose<int64_t>(GetParam(), "i64", isStatic);
  }
}

TEST_P(Kernels, SeveralDestinations) {
  KernelRunner runner(R"(
    plan.kernel @k operands 1 destinations 3 scalars 1 {kind = #plan.kind<elementwise, 0>, schedule = #plan.schedule<tiles = [6]>,
        plan.dims = [array<i64: 0>, array<i64: 0>, array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xf32>, %d0: tensor<?xf32>, %d1: tensor<?xi8>, %d2: tensor<?xf32>, %n: index) {
      %zero = arith.constant 0.0 : f32
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x : tensor<?xf32>) outs(%d0, %d1 : tensor<?xf32>, tensor<?xi8>) {
      ^bb0(%a: f32, %b: f32, %c: i8):
        %s = arith.addf %a, %a : f32
        %p = arith.cmpf ogt, %a, %zero : f32
        %q = arith.extui %p : i1 to i8
        linalg.yield %s, %q : f32, i8
      } -> (tensor<?xf32>, tensor<?xi8>)
      %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%r#0 : tensor<?xf32>) outs(%d2 : tensor<?xf32>) {
      ^bb0(%a: f32, %b: f32):
        %s = math.sqrt %a : f32
        linalg.yield %s : f32
      } -> tensor<?xf32>
      plan.yield %r#0, %r#1, %t : tensor<?xf32>, tensor<?xi8>, tensor<?xf32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  EXPECT_EQ(runner.kernels["k"].scratch, 0);
  for (int64_t n : {1, 6, 20}) {
    auto x = randomFloats(n);
    std::vector<float> d0(n), d2(n);
    std::vector<int8_t> d1(n);
    runner.run("k", {x.data(), d0.data(), d1.data(), d2.data()}, {n}, 0, (n + 5) / 6);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(d0[i], 2 * x[i]);
      ASSERT_EQ(d1[i], x[i] > 0);
      ASSERT_TRUE(x[i] < 0 ? std::isnan(d2[i]) : d2[i] == std::sqrt(2 * x[i]));
    }
  }
}

TEST_P(Kernels, RankZeroAndCopies) {
  KernelRunner runner(R"(
    plan.kernel @scalar operands 1 destinations 1 scalars 0 {kind = #plan.kind<elementwise, 0>} (%x: tensor<f32>, %d: tensor<f32>) {
      %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%x : tensor<f32>) outs(%d : tensor<f32>) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.negf %a : f32
        linalg.yield %s : f32
      } -> tensor<f32>
      plan.yield %r : tensor<f32>
    }
    plan.kernel @copy operands 1 destinations 2 scalars 1 {kind = #plan.kind<movement, 0>, schedule = #plan.schedule<tiles = [4]>,
        plan.dims = [array<i64: 0>, array<i64: 0>, array<i64: 0>]} (%x: tensor<?xi32>, %d: tensor<?xi32>, %e: tensor<?xi32>, %n: index) {
      plan.yield %x, %x : tensor<?xi32>, tensor<?xi32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  float x = 3, d = 0;
  runner.run("scalar", {&x, &d}, {}, 0, 1);
  EXPECT_EQ(d, -3);
  std::vector<int32_t> from{1, 2, 3, 4, 5}, a(5), b(5);
  // Not cut: the first tile does all, the second nothing.
  runner.run("copy", {from.data(), a.data(), b.data()}, {5}, 1, 2);
  EXPECT_EQ(a, std::vector<int32_t>(5));
  runner.run("copy", {from.data(), a.data(), b.data()}, {5}, 0, 1);
  EXPECT_EQ(a, from);
  EXPECT_EQ(b, from);
}

/// Sizes of 0 that are known: nothing, or the start of a sum.
TEST_P(Kernels, StaticZeroSizes) {
  KernelRunner runner(R"(
    plan.kernel @nothing operands 1 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, schedule = #plan.schedule<tiles = [0, 4]>,
        plan.dims = [array<i64: -1, 0>, array<i64: -1, 0>]} (%x: tensor<0x?xf32>, %d: tensor<0x?xf32>, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<0x?xf32>) outs(%d : tensor<0x?xf32>) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.negf %a : f32
        linalg.yield %s : f32
      } -> tensor<0x?xf32>
      plan.yield %r : tensor<0x?xf32>
    }
    plan.kernel @product operands 2 destinations 1 scalars 1 {kind = #plan.kind<contraction, 1>, schedule = #plan.schedule<tiles = [2, 0]>,
        plan.dims = [array<i64: 0, -1>, array<i64: -1, -1>, array<i64: 0, -1>]} (%x: tensor<?x0xf32>, %y: tensor<0x3xf32>, %d: tensor<?x3xf32>, %m: index) {
      %two = arith.constant 2.0 : f32
      %f = linalg.fill ins(%two : f32) outs(%d : tensor<?x3xf32>) -> tensor<?x3xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                           iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<?x0xf32>, tensor<0x3xf32>) outs(%f : tensor<?x3xf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %q = arith.addf %s, %p : f32
        linalg.yield %q : f32
      } -> tensor<?x3xf32>
      plan.yield %c : tensor<?x3xf32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  float x = 1, d[6] = {};
  runner.run("nothing", {&x, &x}, {4}, 0, 0);
  runner.run("product", {nullptr, nullptr, d}, {2}, 0, 1);
  for (float v : d)
    EXPECT_EQ(v, 2);

  // Sums without terms that are computed further: what they start with, wherever they have their place.
  KernelRunner half(R"(
    plan.kernel @half operands 2 destinations 1 scalars 1 {kind = #plan.kind<contraction, 1>, schedule = #plan.schedule<tiles = [0, 1024]>,
        plan.dims = [array<i64: -1, -1>, array<i64: -1, 0>, array<i64: -1, 0>]} (%x: tensor<2x0xf16>, %y: tensor<0x?xf16>, %d: tensor<2x?xf16>, %n: index) {
      %two = arith.constant 2.0 : f32
      %e = tensor.empty(%n) : tensor<2x?xf32>
      %f = linalg.fill ins(%two : f32) outs(%e : tensor<2x?xf32>) -> tensor<2x?xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                           iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<2x0xf16>, tensor<0x?xf16>) outs(%f : tensor<2x?xf32>) {
      ^bb0(%a: f16, %b: f16, %s: f32):
        %aa = arith.extf %a : f16 to f32
        %bb = arith.extf %b : f16 to f32
        %p = arith.mulf %aa, %bb : f32
        %q = arith.addf %s, %p : f32
        linalg.yield %q : f32
      } -> tensor<2x?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
          ins(%c : tensor<2x?xf32>) outs(%d : tensor<2x?xf16>) {
      ^bb0(%a: f32, %b: f16):
        %t = arith.truncf %a : f32 to f16
        linalg.yield %t : f16
      } -> tensor<2x?xf16>
      plan.yield %r : tensor<2x?xf16>
    })", GetParam());
  ASSERT_EQ(half.error, "");
  uint16_t halves[6] = {};
  half.run("half", {nullptr, nullptr, halves}, {3}, 0, 1);
  for (uint16_t v : halves)
    EXPECT_EQ(v, 0x4000); // 2
}

/// What dlc.kernel_winograd makes of x is the plain convolution with the filters whose transforms it gets, for any size, padding and cut; tiles that are not
/// whole lines of its own go by what it decomposes into.
TEST_P(Kernels, Winograd) {
  struct Case {
    int64_t m, batch, height, width, channels, filters;
    const char *tiles;
    int64_t lines; // of a tile; 0: all
  };
  for (const Case &c : {Case{4, 2, 9, 7, 17, 33, "1, 4, 0, 0", 4}, Case{4, 1, 16, 21, 16, 100, "1, 0, 0, 0", 0}, Case{2, 1, 14, 14, 24, 40, "1, 6, 0, 0", 6},
                        Case{2, 2, 5, 6, 16, 16, "1, 0, 0, 0", 0}, Case{4, 1, 7, 9, 9, 20, "1, 3, 0, 0", 3}, Case{2, 1, 1, 2, 3, 2, "1, 0, 0, 0", 0}}) {
    int64_t a = c.m + 2, rows = c.height + 1, columns = c.width - 1; // padded by 2 and 1, 0 and 1
    std::string text = R"(
      plan.kernel @k operands 3 destinations 1 scalars 2 {kind = #plan.kind<conv, 0>, schedule = #plan.schedule<tiles = [TILES]>,
          plan.dims = [array<i64: -1, 0, 1, -1>, array<i64: -1, -1, -1>, array<i64: -1>, array<i64: -1, -1, -1, -1>]}
          (%x: tensor<BATCHx?x?xCHANNELSxf32>, %w: tensor<CELLSxCHANNELSxFILTERSxf32>, %b: tensor<FILTERSxf32>,
           %d: tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>, %h: index, %v: index) {
        %two = arith.constant 2 : index
        %zero = arith.constant 0 : index
        %c = dlc.kernel_winograd ins(%x, %w : tensor<BATCHx?x?xCHANNELSxf32>, tensor<CELLSxCHANNELSxFILTERSxf32>)
            outs(%d : tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>) begins(%two, %zero) {tile = SIDE : i64} -> tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>
        %e = tensor.empty() : tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>
        %r = linalg.generic {indexing_maps = [affine_map<(n, i, j, f) -> (n, i, j, f)>, affine_map<(n, i, j, f) -> (f)>, affine_map<(n, i, j, f) -> (n, i, j, f)>],
                             iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
            ins(%c, %b : tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>, tensor<FILTERSxf32>) outs(%e : tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>) {
        ^bb0(%s: f32, %o: f32, %u: f32):
          %t = arith.addf %s, %o : f32
          linalg.yield %t : f32
        } -> tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>
        plan.yield %r : tensor<BATCHxROWSxCOLUMNSxFILTERSxf32>
      })";
    for (auto [name, value] : {std::pair<std::string, std::string>{"TILES", c.tiles}, {"BATCH", std::to_string(c.batch)}, {"CHANNELS", std::to_string(c.channels)},
                               {"FILTERS", std::to_string(c.filters)}, {"CELLS", std::to_string(a * a)}, {"ROWS", std::to_string(rows)},
                               {"COLUMNS", std::to_string(columns)}, {"SIDE", std::to_string(c.m)}})
      for (size_t at; (at = text.find(name)) != std::string::npos;)
        text.replace(at, name.size(), value);
    KernelRunner runner(text, GetParam());
    ASSERT_EQ(runner.error, "");
    auto x = randomFloats(c.batch * c.height * c.width * c.channels), w = randomFloats(9 * c.channels * c.filters, 2), bias = randomFloats(c.filters, 3);
    dlc::WinogradMatrices::Matrix filter = dlc::winogradMatrices(c.m).filter;
    std::vector<float> transformed(a * a * c.channels * c.filters), d(c.batch * rows * columns * c.filters, NAN);
    for (int64_t i = 0; i < c.channels * c.filters; ++i)
      for (int64_t cell = 0; cell < a * a; ++cell) {
        double sum = 0;
        for (int64_t k = 0; k < 9; ++k)
          sum += filter[cell / a][k / 3] * filter[cell % a][k % 3] * w[k * c.channels * c.filters + i];
        transformed[cell * c.channels * c.filters + i] = float(sum);
      }
    uint32_t tiles = uint32_t(c.batch * (c.lines ? (rows + c.lines - 1) / c.lines : 1));
    EXPECT_EQ(runner.run("k", {x.data(), transformed.data(), bias.data(), d.data()}, {c.height, c.width}, 0, tiles), 0u);
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t f = 0; f < c.filters; ++f) {
            double sum = bias[f];
            for (int64_t k = 0; k < 9; ++k) {
              int64_t row = i + k / 3 - 2, column = j + k % 3;
              if (row >= 0 && row < c.height && column < c.width)
                for (int64_t channel = 0; channel < c.channels; ++channel)
                  sum += double(x[((n * c.height + row) * c.width + column) * c.channels + channel]) * w[(k * c.channels + channel) * c.filters + f];
            }
            ASSERT_NEAR(d[((n * rows + i) * columns + j) * c.filters + f], sum, 5e-5) << c.m << ": " << n << ", " << i << ", " << j << ", " << f;
          }
  }
}

TEST_P(Kernels, Scan) {
  for (bool exclusive : {false, true}) {
    std::string text = R"(
    plan.kernel @k operands 1 destinations 1 scalars 2 {kind = #plan.kind<other, 0>, schedule = #plan.schedule<tiles = [3]>,
        plan.dims = [array<i64: 0, 1>, array<i64: 0, 1>]}
        (%x: tensor<?x?xf32>, %d: tensor<?x?xf32>, %m: index, %n: index) {
      %r = dlc.kernel_scan sum ins(%x : tensor<?x?xf32>) outs(%d : tensor<?x?xf32>) {axis = 1 : i64, exclusive = EXCLUSIVE, reverse = false} -> tensor<?x?xf32>
      plan.yield %r : tensor<?x?xf32>
    })";
    text.replace(text.find("EXCLUSIVE"), 9, exclusive ? "true" : "false");
    KernelRunner runner(text, GetParam());
    ASSERT_EQ(runner.error, "");
    int64_t m = 8, n = 5;
    auto x = randomFloats(m * n);
    std::vector<float> d(m * n);
    runner.run("k", {x.data(), d.data()}, {m, n}, 0, 3);
    for (int64_t i = 0; i < m; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        float before = sum;
        sum += x[i * n + j];
        ASSERT_EQ(d[i * n + j], exclusive ? before : sum);
      }
    }
  }
}

/// A producer that is read at computed indices has to be whole: scratch memory of a static size.
TEST_P(Kernels, StaticScratch) {
  KernelRunner runner(R"(
    plan.kernel @k operands 1 destinations 1 scalars 0 {kind = #plan.kind<movement, 0>, schedule = #plan.schedule<tiles = [16]>}
        (%x: tensor<50xf32>, %d: tensor<50xf32>) {
      %c49 = arith.constant 49 : index
      %e = tensor.empty() : tensor<50xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<50xf32>) outs(%e : tensor<50xf32>) {
      ^bb0(%a: f32, %b: f32):
        %q = arith.mulf %a, %a : f32
        linalg.yield %q : f32
      } -> tensor<50xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%d : tensor<50xf32>) {
      ^bb0(%b: f32):
        %i = linalg.index 0 : index
        %j = arith.subi %c49, %i : index
        %v = tensor.extract %s[%j] : tensor<50xf32>
        linalg.yield %v : f32
      } -> tensor<50xf32>
      plan.yield %r : tensor<50xf32>
    })", GetParam());
  ASSERT_EQ(runner.error, "");
  EXPECT_EQ(runner.kernels["k"].scratch, 256);
  auto x = randomFloats(50);
  std::vector<float> d(50);
  EXPECT_EQ(runner.run("k", {x.data(), d.data()}, {}, 0, 4), 0u);
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(d[i], x[49 - i] * x[49 - i]);
}

TEST(Emission, SameImageForAnyNumberOfJobs) {
  std::string text;
  for (int i = 0; i < 70; ++i) {
    std::string kernel = binaryText("f32", i % 2 ? "arith.addf %a, %b : f32" : "arith.remf %a, %b : f32");
    kernel.replace(kernel.find("@k"), 2, "@k" + std::to_string(i));
    text += kernel;
  }
  dlc::BackendOptions one, three;
  three.jobs = 3;
  KernelRunner a(text, "cpu:x86-64-v2", one), b(text, "cpu:x86-64-v2", three);
  ASSERT_EQ(a.error, "");
  ASSERT_EQ(b.error, "");
  EXPECT_FALSE(a.image.empty());
  EXPECT_EQ(a.image, b.image);
  EXPECT_EQ(a.kernels.size(), 70u);
  EXPECT_EQ(a.imports, (std::vector<int32_t>{DLCRT_IMPORT_FMODF}));
  for (auto &[name, kernel] : a.kernels) {
    EXPECT_EQ(kernel.entry, b.kernels[name].entry);
    EXPECT_GT(kernel.stack, 0);
    EXPECT_LT(kernel.stack, 2048);
  }
}

TEST(Emission, EveryTargetCompiles) {
  for (const std::string &target : dlc::knownTargets()) {
    KernelRunner runner(matmulText("12, 40", "m, k", "k, n"), target);
    EXPECT_EQ(runner.error, "") << target;
    EXPECT_GT(runner.image.size(), 500u);
  }
}

TEST(Emission, Errors) {
  KernelRunner scratch(R"(
    plan.kernel @k operands 1 destinations 1 scalars 1 {kind = #plan.kind<movement, 0>, plan.dims = [array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) {
      %e = tensor.empty(%n) : tensor<?xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
      ^bb0(%a: f32, %b: f32):
        %q = math.sqrt %a : f32
        linalg.yield %q : f32
      } -> tensor<?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%d : tensor<?xf32>) {
      ^bb0(%b: f32):
        %i = linalg.index 0 : index
        %j = arith.subi %n, %i : index
        %v = tensor.extract %s[%j] : tensor<?xf32>
        linalg.yield %v : f32
      } -> tensor<?xf32>
      plan.yield %r : tensor<?xf32>
    })", "cpu:x86-64-v2");
  EXPECT_NE(scratch.error.find("needs 'memref<?xf32>' of scratch memory, whose size has no bound that is known at compile time"), std::string::npos)
      << scratch.error;
  KernelRunner dims(R"(
    plan.kernel @k operands 1 destinations 1 scalars 1 {kind = #plan.kind<movement, 0>, plan.dims = [array<i64: 0>, array<i64: 1>]}
        (%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) { plan.yield %x : tensor<?xf32> })", "cpu:x86-64-v2");
  EXPECT_NE(dims.error.find("plan.dims does not say which scalar is dim 0 of argument 1"), std::string::npos) << dims.error;
  KernelRunner math(binaryText("f80", "math.sin %a : f80"), "cpu:x86-64-v2");
  EXPECT_NE(math.error.find("the CPU backend has no code for math.sin on 'f80'"), std::string::npos) << math.error;
}

} // namespace
