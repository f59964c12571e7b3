// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// How far functions may be off, in units of the last place: docs/math.md has the bounds, the tests measure (and print) over all
// exponents of f32 and around the points where functions or their formulas change. What goes through an import (f64) is as good
// as the C library.

#include "KernelRunner.h"
#include "dlc/IR/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>
#include <sstream>

using namespace dlc::test;

namespace {

struct Function {
  const char *name;
  double (*reference)(double);
};

#define DLC_FUNCTION(name) {#name, static_cast<double (*)(double)>(std::name)}
const Function functions[] = {
    DLC_FUNCTION(exp),   DLC_FUNCTION(exp2),  DLC_FUNCTION(expm1), DLC_FUNCTION(log),   DLC_FUNCTION(log2), DLC_FUNCTION(log10),
    DLC_FUNCTION(log1p), DLC_FUNCTION(sin),   DLC_FUNCTION(cos),   DLC_FUNCTION(tan),   DLC_FUNCTION(asin), DLC_FUNCTION(acos),
    DLC_FUNCTION(atan),  DLC_FUNCTION(sinh),  DLC_FUNCTION(cosh),  DLC_FUNCTION(tanh),  DLC_FUNCTION(asinh), DLC_FUNCTION(acosh),
    DLC_FUNCTION(atanh), DLC_FUNCTION(erf),   DLC_FUNCTION(cbrt),  DLC_FUNCTION(sqrt),  DLC_FUNCTION(floor), DLC_FUNCTION(ceil),
    DLC_FUNCTION(trunc), {"rsqrt", [](double x) { return 1 / std::sqrt(x); }}};

/// x to a power that is a constant.
template <int halves> dlc::Scalar powerOfHalves(const dlc::Scalar &x) {
  return dlc::pow(x, dlc::ScalarBuilder(x.b(), x.getLoc()).constant(halves * 0.5, x));
}

/// Functions that the dialect composes of those above.
struct Composed {
  const char *name;
  dlc::Scalar (*build)(const dlc::Scalar &);
  double (*reference)(double);
};
const Composed composed[] = {
    {"sigmoid", dlc::sigmoid, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
    {"softplus", dlc::softplus, [](double x) { return std::isnan(x) ? x : std::fmax(x, 0) + std::log1p(std::exp(-std::abs(x))); }},
    {"pow_half", powerOfHalves<1>, [](double x) { return std::pow(x, 0.5); }},
    {"pow_minus_half", powerOfHalves<-1>, [](double x) { return std::pow(x, -0.5); }},
    {"pow_2", powerOfHalves<4>, [](double x) { return std::pow(x, 2); }},
    {"pow_3", powerOfHalves<6>, [](double x) { return std::pow(x, 3); }}};

struct Function2 {
  const char *name, *op;
  double (*reference)(double, double);
};
const Function2 functions2[] = {{"pow", "math.powf", std::pow}, {"atan2", "math.atan2", std::atan2}};

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

std::string composedText(const Composed &f) {
  using namespace mlir;
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect>();
  Location loc = UnknownLoc::get(&context);
  OpBuilder b(&context);
  Type f32 = b.getF32Type();
  OwningOpRef<func::FuncOp> function = func::FuncOp::create(loc, "f", b.getFunctionType({f32}, {f32}));
  Block *block = function->addEntryBlock();
  b.setInsertionPointToStart(block);
  Value result = f.build(dlc::ScalarBuilder(b, loc).wrap(block->getArgument(0), f32)).getValue();
  std::string body;
  llvm::raw_string_ostream os(body);
  AsmState state(function->getOperation());
  for (Operation &op : *block) {
    op.print(os, state);
    os << "\n        ";
  }
  os << "linalg.yield ";
  result.printAsOperand(os, state);
  return R"(
    plan.kernel @)" + std::string(f.name) + R"( operands 1 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, plan.dims = [array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xf32>, %d: tensor<?xf32>, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x : tensor<?xf32>) outs(%d : tensor<?xf32>) {
      ^bb0(%arg0: f32, %out: f32):
        )" + body + R"( : f32
      } -> tensor<?xf32>
      plan.yield %r : tensor<?xf32>
    })";
}

std::string kernelText2(const Function2 &f) {
  return R"(
    plan.kernel @)" + std::string(f.name) + R"( operands 2 destinations 1 scalars 1 {kind = #plan.kind<elementwise, 0>, plan.dims = [array<i64: 0>, array<i64: 0>, array<i64: 0>]}
        (%x: tensor<?xf32>, %y: tensor<?xf32>, %d: tensor<?xf32>, %n: index) {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%d : tensor<?xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %s = )" + f.op + R"( %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<?xf32>
      plan.yield %r : tensor<?xf32>
    })";
}

float ofBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
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

/// `samples` mantissas of each exponent and sign, ten times as many from 2^-8 to 2^8, and all floats near what is a point of some
/// function or formula.
std::vector<float> denseArguments(unsigned samples) {
  std::mt19937 generator(7);
  std::vector<float> x;
  for (uint32_t top = 0; top < 512; ++top)
    for (unsigned i = 0; i < ((top & 255) - 119 < 16 ? 10 : 1) * samples; ++i) {
      const uint32_t first[] = {0, 1, 0x7ffffe, 0x7fffff, 0x400000, 0x3504f3};
      x.push_back(ofBits(top << 23 | (i < std::size(first) ? first[i] : generator() & 0x7fffff)));
    }
  auto around = [&](double point, int steps) {
    for (float center : {float(point), float(-point)}) {
      float below = center, above = center;
      x.push_back(center);
      for (int i = 0; i < steps; ++i) {
        x.push_back(below = std::nextafter(below, -INFINITY));
        x.push_back(above = std::nextafter(above, INFINITY));
      }
    }
  };
  for (double point : {0.0, 0x1p-30, 0x1p-12, 0x1p-6, 0x1p-5, 0.25, 0.5, M_SQRT1_2, 1.0, M_SQRT2, 2.0, 3.92, 4.0, 9.01, 9.1, 17.33, 20.0, 87.34, 88.03, 88.73,
                       89.0, 89.42, 103.28, 103.98, 104.0, 126.0, 127.0, 128.0, 129.0, 149.0, 150.0, 151.0, 0x1p32, 0x1p64, 0x1p96, 0x1p126})
    around(point, 300);
  for (int k = 1; k < 5000; ++k) { // where a reduction changes its integer, and zeros of sine and cosine
    around(k * M_PI_4, 2);
    around(k * 0.5 * M_LN2, k < 256 ? 4 : 0);
    around(k * 0.5, k < 300 ? 1 : 0);
  }
  return x;
}

/// All pairs of exponents, and what is more usual.
std::pair<std::vector<float>, std::vector<float>> densePairs() {
  std::mt19937 generator(11);
  std::pair<std::vector<float>, std::vector<float>> pairs;
  auto push = [&](float x, float y) { pairs.first.push_back(x), pairs.second.push_back(y); };
  for (uint32_t i = 0; i < 512; ++i)
    for (uint32_t j = 0; j < 512; ++j)
      for (int k = 0; k < 3; ++k)
        push(ofBits(i << 23 | (k ? generator() & 0x7fffff : 0)), ofBits(j << 23 | (k ? generator() & 0x7fffff : 0)));
  std::uniform_real_distribution<float> unit(-1, 1);
  for (int i = 0; i < 400000; ++i) {
    push(std::exp2(unit(generator) * 126), unit(generator) * 2);
    push(std::exp2(unit(generator) * 3), unit(generator) * 60);
    push(1 + unit(generator) * 0x1p-8f, std::exp2(unit(generator) * 20));
    push(unit(generator) * 10, std::round(unit(generator) * 40));
    push(unit(generator) * 10, unit(generator) * 10);
  }
  std::vector<float> special{0, 0x1p-149f, 0x1p-126f, 0.5, 1 - 0x1p-24f, 1, 1 + 0x1p-23f, 1.5, 2, 3, 4, 5, 0x1p23f - 1, 0x1p24f - 1, 0x1p24f, 0x1p25f, 0x1p127f,
                             std::numeric_limits<float>::max(), INFINITY, NAN};
  for (float x : special)
    for (float y : special)
      push(x, y), push(x, -y), push(-x, y), push(-x, -y);
  return pairs;
}

/// Of each function of docs/math.md: how many ulps it may be off with a fused multiply-add, and without one.
std::map<std::string, std::pair<double, double>> readBounds() {
  std::map<std::string, std::pair<double, double>> bounds;
  std::ifstream file(DLC_SOURCE_DIR "/docs/math.md");
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    std::string bar1, name, bar2, bar3, bar4;
    double fused, unfused;
    if (row >> bar1 >> name >> bar2 >> fused >> bar3 >> unfused >> bar4 && name.size() > 2 && bar1 + bar2 + bar3 + bar4 == "||||")
      bounds[name.substr(1, name.size() - 2)] = {fused, unfused};
  }
  return bounds;
}

bool isFused(const std::string &target) { return target != "cpu:x86-64-v2"; }

struct Worst {
  double ulps = 0;
  size_t at = 0;
  void see(const std::vector<float> &y, const std::vector<double> &expected) {
    for (size_t i = 0; i < y.size(); ++i)
      if (double d = distance(y[i], expected[i]); d > ulps)
        ulps = d, at = i;
  }
};

void report(const char *name, const std::string &target, double ulps, const std::string &where) {
  std::printf("| `%s` | %-15s | %.3f | %s\n", name, target.c_str(), ulps, where.c_str());
}

std::string shown(double x) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g (%a)", x, x);
  return buffer;
}

/// What this machine runs of the levels, with fused multiply-add and without, and the machine itself.
std::vector<std::string> levels() {
  std::vector<std::string> targets;
  for (const char *level : {"cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"})
    if (canRun(level))
      targets.push_back(level);
  return targets;
}

TEST(MathBounds, EveryExponent) {
  std::string text;
  for (const Function &f : functions)
    text += kernelText(f.name, "f32");
  for (const Composed &f : composed)
    text += composedText(f);
  std::vector<std::pair<std::string, std::unique_ptr<KernelRunner>>> runners;
  for (const std::string &target : levels()) {
    runners.emplace_back(target, std::make_unique<KernelRunner>(text, target));
    ASSERT_EQ(runners.back().second->error, "");
  }
  std::vector<float> x = denseArguments(2048), y(x.size());
  std::vector<double> expected(x.size());
  auto bounds = readBounds();
  auto check = [&](const char *name, double (*reference)(double)) {
    for (size_t i = 0; i < x.size(); ++i)
      expected[i] = reference(x[i]);
    ASSERT_TRUE(bounds.count(name)) << "docs/math.md has no bound of " << name;
    for (auto &[target, runner] : runners) {
      runner->run(name, {x.data(), y.data()}, {int64_t(x.size())}, 0, 1);
      Worst worst;
      worst.see(y, expected);
      std::string where = shown(x[worst.at]) + " -> " + shown(y[worst.at]) + ", not " + shown(expected[worst.at]);
      report(name, target, worst.ulps, where);
      EXPECT_LE(worst.ulps, isFused(target) ? bounds[name].first : bounds[name].second) << name << " on " << target << ": " << where;
    }
  };
  for (const Function &f : functions)
    check(f.name, f.reference);
  for (const Composed &f : composed)
    check(f.name, f.reference);
}

TEST(MathBounds, EveryPairOfExponents) {
  std::string text;
  for (const Function2 &f : functions2)
    text += kernelText2(f);
  auto [x, y] = densePairs();
  std::vector<float> z(x.size());
  std::vector<double> expected(x.size());
  auto bounds = readBounds();
  for (const std::string &target : levels()) {
    KernelRunner runner(text, target);
    ASSERT_EQ(runner.error, "");
    for (const Function2 &f : functions2) {
      for (size_t i = 0; i < x.size(); ++i)
        expected[i] = f.reference(x[i], y[i]);
      ASSERT_TRUE(bounds.count(f.name)) << "docs/math.md has no bound of " << f.name;
      runner.run(f.name, {x.data(), y.data(), z.data()}, {int64_t(x.size())}, 0, 1);
      Worst worst;
      worst.see(z, expected);
      std::string where = shown(x[worst.at]) + ", " + shown(y[worst.at]) + " -> " + shown(z[worst.at]) + ", not " + shown(expected[worst.at]);
      report(f.name, target, worst.ulps, where);
      EXPECT_LE(worst.ulps, isFused(target) ? bounds[f.name].first : bounds[f.name].second) << f.name << " on " << target << ": " << where;
    }
  }
}

/// On each target the loop over each function is vector code, and nothing is called.
TEST(MathBounds, LoopsAreVectorCode) {
  std::string text;
  for (const Function &f : functions)
    text += kernelText(f.name, "f32");
  for (const Composed &f : composed)
    text += composedText(f);
  for (const Function2 &f : functions2)
    text += kernelText2(f);
  size_t count = std::size(functions) + std::size(composed) + std::size(functions2);
  namespace fs = std::filesystem;
  for (const char *target : {"cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"}) {
    std::string folder = testing::TempDir() + "dlc-math-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    dlc::BackendOptions options;
    options.dumpDir = folder;
    KernelRunner runner(text, target, options);
    EXPECT_EQ(runner.error, "");
    std::set<std::string> withLoop; // the file and the label's number of the function: .LBB12_3: # %vector.body
    size_t calls = 0;
    for (const auto &entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".s")
        continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        if (line.find("%vector.body") != std::string::npos)
          withLoop.insert(entry.path().string() + line.substr(0, line.find('_')));
        std::string mnemonic;
        std::istringstream(line) >> mnemonic;
        calls += mnemonic == "call" || mnemonic == "callq" || mnemonic == "bl" || mnemonic == "blr";
      }
    }
    fs::remove_all(folder);
    EXPECT_EQ(withLoop.size(), count) << target;
    EXPECT_EQ(calls, 0u) << target;
  }
}

/// No bound in the document but for what is tested.
TEST(MathBounds, Document) {
  auto bounds = readBounds();
  EXPECT_EQ(bounds.size(), std::size(functions) + std::size(composed) + std::size(functions2));
}

/// All floats: minutes for each function, so only on demand (docs/math.md).
class EveryFloat : public ::testing::TestWithParam<Function> {
protected:
  void sweep(uint32_t firstExponent, uint32_t lastExponent);
};
INSTANTIATE_TEST_SUITE_P(Functions, EveryFloat, ::testing::ValuesIn(functions), [](const auto &info) { return std::string(info.param.name); });

TEST_P(EveryFloat, DISABLED_Bounds) { sweep(0, 255); }
TEST_P(EveryFloat, DISABLED_UsualSizes) { sweep(119, 134); } // 2^-8 to 2^8

void EveryFloat::sweep(uint32_t firstExponent, uint32_t lastExponent) {
  const Function &f = GetParam();
  auto bounds = readBounds();
  std::vector<std::string> targets = levels();
  std::vector<std::unique_ptr<KernelRunner>> runners;
  for (const std::string &target : targets)
    runners.push_back(std::make_unique<KernelRunner>(kernelText(f.name, "f32"), target));
  constexpr uint32_t chunk = 1 << 20;
  std::vector<float> x(chunk), y(chunk);
  std::vector<double> expected(chunk);
  std::vector<std::pair<double, float>> worst(targets.size());
  for (uint64_t begin = 0; begin < uint64_t(1) << 32; begin += chunk) {
    if (uint32_t exponent = begin >> 23 & 255; exponent < firstExponent || exponent > lastExponent)
      continue;
    for (uint32_t i = 0; i < chunk; ++i)
      expected[i] = f.reference(x[i] = ofBits(begin + i));
    for (size_t t = 0; t < targets.size(); ++t) {
      runners[t]->run(f.name, {x.data(), y.data()}, {chunk}, 0, 1);
      Worst here;
      here.see(y, expected);
      if (here.ulps > worst[t].first)
        worst[t] = {here.ulps, x[here.at]};
    }
  }
  for (size_t t = 0; t < targets.size(); ++t) {
    report(f.name, targets[t], worst[t].first, shown(worst[t].second));
    EXPECT_LE(worst[t].first, isFused(targets[t]) ? bounds[f.name].first : bounds[f.name].second) << f.name << " of " << shown(worst[t].second);
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
