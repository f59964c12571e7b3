// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// How far the functions of the math dialect may be off, in units of the last place, over random floats of all sizes, ranges that
// occur, and special values. What goes through an import is as good as the C library.

#include "KernelRunner.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace dlc::test;

namespace {

struct Function {
  const char *name;
  double (*reference)(double);
  double ulps;
};

#define DLC_FUNCTION(name, ulps) {#name, static_cast<double (*)(double)>(std::name), ulps}
const Function functions[] = {
    DLC_FUNCTION(exp, 1.0),   DLC_FUNCTION(exp2, 1.0),  DLC_FUNCTION(expm1, 1.0), DLC_FUNCTION(log, 1.5),   DLC_FUNCTION(log2, 2.0),
    DLC_FUNCTION(log10, 2.5), DLC_FUNCTION(log1p, 2.5), DLC_FUNCTION(sin, 1.0),   DLC_FUNCTION(cos, 1.0),   DLC_FUNCTION(tan, 1.5),
    DLC_FUNCTION(asin, 1.5),  DLC_FUNCTION(acos, 1.5),  DLC_FUNCTION(atan, 1.5),  DLC_FUNCTION(sinh, 2.5),  DLC_FUNCTION(cosh, 2.5),
    DLC_FUNCTION(tanh, 1.5),  DLC_FUNCTION(asinh, 2.5), DLC_FUNCTION(acosh, 2.5), DLC_FUNCTION(atanh, 2.5), DLC_FUNCTION(erf, 4.6),
    DLC_FUNCTION(cbrt, 1.5),  DLC_FUNCTION(sqrt, 0.5),  DLC_FUNCTION(floor, 0),   DLC_FUNCTION(ceil, 0),    DLC_FUNCTION(trunc, 0),
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 2.0}};

std::string kernelText(const char *name, const char *type) {
  std::string text = R"(
    plan.kernel @NAME operands 1 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, plan.dims = [array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xTYPE>, %d: tensor<?xTYPE>, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x : tensor<?xTYPE>) outs(%d : tensor<?xTYPE>) {
      ^bb0(%a: TYPE, %c: TYPE):
        %s = math.NAME %a : TYPE
        linalg.yield %s : TYPE
      } -> tensor<?xTYPE>
      plan.yield %r : tensor<?xTYPE>
    })";
  for (auto [from, to] : {std::pair<std::string, std::string>{"NAME", name}, {"TYPE", type}})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

/// Distance in units of the last place of `expected` as a float; a denormal has the unit of the smallest normal number.
double distance(float actual, double expected) {
  if (std::isnan(actual) || std::isnan(expected))
    return std::isnan(actual) == std::isnan(expected) ? 0 : INFINITY;
  float rounded = float(expected);
  if (actual == rounded)
    return std::signbit(actual) == std::signbit(rounded) ? 0 : INFINITY;
  if (std::isinf(actual) || std::isinf(rounded)) // one of the largest numbers for infinity is near enough
    return std::abs(double(actual)) > 3.4028e38 && std::abs(expected) > 3.4028e38 ? 1 : INFINITY;
  int exponent;
  std::frexp(std::max(std::abs(expected), 0x1p-126), &exponent);
  return std::abs(actual - expected) / std::ldexp(1.0, exponent - 24);
}

std::vector<float> arguments() {
  std::mt19937 generator(3);
  std::vector<float> x;
  for (int i = 0; i < 50000; ++i) {
    uint32_t bits = generator();
    float f;
    std::memcpy(&f, &bits, 4);
    x.push_back(f);
  }
  std::uniform_real_distribution<float> unit(-1, 1);
  for (float scale : {1e-3f, 0.1f, 1.f, 10.f, 100.f, 1000.f, 1e5f})
    for (int i = 0; i < 10000; ++i)
      x.push_back(unit(generator) * scale);
  for (int i = 0; i < 10000; ++i)
    x.push_back(1 + unit(generator) * 1e-3f);
  using limits = std::numeric_limits<float>;
  for (float f : {0.f, 0.5f, 0.625f, 1.f, 1e-39f, 1e-5f, 87.3f, 88.7f, 88.73f, 89.f, 103.9f, 104.f, 2.5f, 3.5f, limits::denorm_min(), limits::min(),
                  limits::max(), limits::infinity()}) {
    x.push_back(f);
    x.push_back(-f);
  }
  x.push_back(limits::quiet_NaN());
  return x;
}

class Math : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Math, ::testing::ValuesIn(testTargets()), [](const auto &info) {
  std::string name = info.param;
  for (char &c : name)
    c = isalnum(c) ? c : '_';
  return name;
});

TEST_P(Math, F32) {
  std::string text;
  for (const Function &f : functions)
    text += kernelText(f.name, "f32");
  KernelRunner runner(text, GetParam());
  ASSERT_EQ(runner.error, "");
  std::vector<float> x = arguments(), y(x.size());
  for (const Function &f : functions) {
    runner.run(f.name, {x.data(), y.data()}, {int64_t(x.size())}, 0, 1);
    double worst = -1;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (double d = distance(y[i], f.reference(x[i])); d > worst)
        worst = d, at = i;
    EXPECT_LE(worst, f.ulps) << f.name << "(" << x[at] << ") = " << y[at] << ", not " << f.reference(x[at]);
  }
}

TEST_P(Math, F64) {
  std::string text;
  for (const Function &f : functions)
    text += kernelText(f.name, "f64");
  KernelRunner runner(text, GetParam());
  ASSERT_EQ(runner.error, "");
  std::vector<double> x, y;
  for (float f : arguments())
    x.push_back(f * 1.000000001);
  y.resize(x.size());
  for (const Function &f : functions) {
    runner.run(f.name, {x.data(), y.data()}, {int64_t(x.size())}, 0, 1);
    for (size_t i = 0; i < x.size(); ++i) {
      double expected = f.reference(x[i]);
      ASSERT_TRUE(std::memcmp(&y[i], &expected, 8) == 0 || (std::isnan(y[i]) && std::isnan(expected)) ||
                  (std::string(f.name) == "rsqrt" && std::abs(y[i] - expected) <= 1e-15 * expected))
          << f.name << "(" << x[i] << ") = " << y[i] << ", not " << expected;
    }
  }
}

/// All 65536 values of f16, computed in f32 and rounded once.
TEST_P(Math, F16) {
  std::string text;
  for (const char *name : {"exp", "tanh", "sqrt", "floor"})
    text += kernelText(name, "f16");
  KernelRunner runner(text, GetParam());
  ASSERT_EQ(runner.error, "");
  std::vector<_Float16> x(65536), y(65536);
  for (unsigned i = 0; i < 65536; ++i) {
    uint16_t bits = i;
    std::memcpy(&x[i], &bits, 2);
  }
  for (auto [name, reference] : {std::pair<const char *, double (*)(double)>{"exp", std::exp}, {"tanh", std::tanh}, {"sqrt", std::sqrt}, {"floor", std::floor}}) {
    runner.run(name, {x.data(), y.data()}, {65536}, 0, 1);
    for (unsigned i = 0; i < 65536; ++i) {
      float actual = float(y[i]), expected = float(_Float16(float(reference(float(x[i])))));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(actual));
        continue;
      }
      if (actual == expected)
        continue;
      // A value half way between two may round either way after an error in f32.
      ASSERT_LE(std::abs(actual - expected), std::abs(expected) * 0x1p-10 + 0x1p-24) << name << " " << float(x[i]);
    }
  }
}

/// Conversions of all f16 values and many f32 and f64 ones, by instruction or by KernelSupport.c.
TEST_P(Math, HalfConversions) {
  auto cast = [](const char *name, const char *op, const char *from, const char *to) {
    std::string text = R"(
    plan.kernel @NAME operands 1 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, plan.dims = [array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xFROM>, %d: tensor<?xTO>, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x : tensor<?xFROM>) outs(%d : tensor<?xTO>) {
      ^bb0(%a: FROM, %c: TO):
        %s = OP %a : FROM to TO
        linalg.yield %s : TO
      } -> tensor<?xTO>
      plan.yield %r : tensor<?xTO>
    })";
    for (auto [key, value] : {std::pair<std::string, std::string>{"NAME", name}, {"OP", op}, {"FROM", from}, {"TO", to}})
      for (size_t at; (at = text.find(key)) != std::string::npos;)
        text.replace(at, key.size(), value);
    return text;
  };
  KernelRunner runner(cast("widen", "arith.extf", "f16", "f32") + cast("narrow", "arith.truncf", "f32", "f16") +
                          cast("narrow64", "arith.truncf", "f64", "f16") + cast("widenb", "arith.extf", "bf16", "f32") +
                          cast("narrowb", "arith.truncf", "f32", "bf16"),
                      GetParam());
  ASSERT_EQ(runner.error, "");
  std::vector<uint16_t> half(65536), back(65536);
  for (unsigned i = 0; i < 65536; ++i)
    half[i] = i;
  auto isNan = [](uint16_t h, uint16_t infinity) { return (h & 0x7fff) > infinity; };
  std::vector<float> wide(65536);
  for (auto [widen, narrow, infinity] : {std::tuple<const char *, const char *, uint16_t>{"widen", "narrow", 0x7c00}, {"widenb", "narrowb", 0x7f80}}) {
    runner.run(widen, {half.data(), wide.data()}, {65536}, 0, 1);
    runner.run(narrow, {wide.data(), back.data()}, {65536}, 0, 1);
    for (unsigned i = 0; i < 65536; ++i)
      ASSERT_TRUE(isNan(half[i], infinity) ? isNan(back[i], infinity) && std::isnan(wide[i]) : back[i] == half[i]) << narrow << " " << i;
  }
  // Rounding: halfway cases, their neighbours, and everything in between.
  std::vector<float> x = arguments();
  std::vector<double> x64;
  for (unsigned h = 0; h < 0x7c00; h += 7)
    for (float step : {0.25f, 0.5f, 0.75f}) {
      uint16_t at = h, next = h + 1;
      _Float16 a, b;
      std::memcpy(&a, &at, 2), std::memcpy(&b, &next, 2);
      float between = float(a) + (std::isinf(float(b)) ? 32 : float(b) - float(a)) * step;
      for (float f : {between, std::nextafter(between, 0.f), std::nextafter(between, INFINITY)})
        x.push_back(f), x.push_back(-f);
    }
  for (float f : x)
    for (double d : {double(f), std::nextafter(double(f), 0.0), std::nextafter(double(f), HUGE_VAL)})
      x64.push_back(d);
  std::vector<uint16_t> y(x.size()), y64(x64.size());
  runner.run("narrow", {x.data(), y.data()}, {int64_t(x.size())}, 0, 1);
  runner.run("narrow64", {x64.data(), y64.data()}, {int64_t(x64.size())}, 0, 1);
  auto nearest = [](double d) { // by the definition: to the nearest multiple of the unit, ties to even
    if (std::isnan(d))
      return std::nan("");
    int exponent;
    std::frexp(std::max(std::abs(d), 0x1p-14), &exponent);
    double unit = std::ldexp(1.0, exponent - 11), rounded = std::nearbyint(d / unit) * unit;
    return std::abs(rounded) >= 65536 ? std::copysign(INFINITY, d) : rounded;
  };
  auto check = [&](uint16_t bits, double from) {
    _Float16 h;
    std::memcpy(&h, &bits, 2);
    double expected = std::isinf(from) ? from : nearest(from);
    return std::isnan(expected) ? std::isnan(float(h)) : double(float(h)) == expected;
  };
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(check(y[i], x[i])) << x[i] << " -> " << y[i];
  for (size_t i = 0; i < x64.size(); ++i)
    ASSERT_TRUE(check(y64[i], x64[i])) << x64[i] << " -> " << y64[i];
}

} // namespace
