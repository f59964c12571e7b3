// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Target/BackendRegistry.h"
#include "dlc/Target/Target.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include <gtest/gtest.h>

using namespace dlc;

static std::string errorOf(llvm::StringRef text) {
  auto target = parseTarget(text);
  return target ? "no error" : llvm::toString(target.takeError());
}

TEST(Target, EveryEntryNamesItself) {
  ASSERT_FALSE(knownTargets().empty());
  for (const std::string &name : knownTargets()) {
    auto target = parseTarget(name);
    ASSERT_TRUE(bool(target)) << name;
    EXPECT_EQ(target->name, name);
    EXPECT_GT(target->l1Bytes, 0);
    EXPECT_GE(target->l2Bytes, target->l1Bytes);
    EXPECT_GE(target->vectorBits, 128u);
  }
}

TEST(Target, Levels) {
  Target v2 = cantFail(parseTarget("cpu:x86-64-v2")), v3 = cantFail(parseTarget("cpu:x86-64-v3")),
         v4 = cantFail(parseTarget("cpu:x86-64-v4")), arm = cantFail(parseTarget("cpu:aarch64"));
  EXPECT_EQ(v2.vectorBits, 128u);
  EXPECT_FALSE(v2.fma);
  EXPECT_EQ(v2.llvmFeatures, "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16");
  EXPECT_EQ(v2.features, 0x3fu);
  EXPECT_EQ(v3.vectorBits, 256u);
  EXPECT_TRUE(v3.fma && v3.f16Convert && !v3.int8Dot);
  EXPECT_EQ(v4.vectorBits, 512u);
  EXPECT_EQ(v4.vectorRegisters, 32u);
  EXPECT_EQ(v4.lanes(32), 16);
  EXPECT_EQ(v2.features & v3.features & v4.features, v2.features);
  EXPECT_EQ(arm.arch, TargetArch::AArch64);
  EXPECT_EQ(arm.features, 1u);
}

TEST(Target, Modifiers) {
  Target t = cantFail(parseTarget("cpu:graniterapids+noamx-tile"));
  EXPECT_FALSE(t.amxInt8 || t.amxBf16 || t.has(X86Feature::AMX_FP16));
  EXPECT_TRUE(t.bf16Dot);
  EXPECT_EQ(t.name, "cpu:graniterapids+noamx-tile");
  // What needs a removed feature goes too, what an added one needs comes along, and equal targets have one name.
  t = cantFail(parseTarget("cpu:sapphirerapids+noavx512f"));
  EXPECT_EQ(t.vectorBits, 256u);
  EXPECT_FALSE(t.has(X86Feature::AVX512BF16));
  t = cantFail(parseTarget("cpu:x86-64-v2+avx512vnni"));
  EXPECT_TRUE(t.has(X86Feature::AVX512F) && t.has(X86Feature::FMA) && t.int8Dot);
  t = cantFail(parseTarget("cpu:znver4+avxvnni+noavx512bf16"));
  EXPECT_EQ(t.name, "cpu:znver4+noavx512bf16+avxvnni");
  EXPECT_TRUE(cantFail(parseTarget("cpu:aarch64+sve")).has(AArch64Feature::FULLFP16));
  EXPECT_FALSE(cantFail(parseTarget("cpu:aarch64+sve+nofullfp16")).has(AArch64Feature::SVE));
  for (const char *name : {"cpu:sapphirerapids+noavx512f", "cpu:x86-64-v2+avx512vnni", "cpu:znver4+avxvnni+noavx512bf16",
                           "cpu:graniterapids+nosse3", "cpu:aarch64+dotprod+sve"}) {
    Target a = cantFail(parseTarget(name)), b = cantFail(parseTarget(a.name));
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.features, b.features);
    EXPECT_EQ(a.llvmFeatures, b.llvmFeatures);
  }
}

TEST(Target, Host) {
  Target host = cantFail(parseTarget("cpu:host"));
  EXPECT_EQ(host.name, cantFail(parseTarget("cpu")).name);
  EXPECT_EQ(host.name, hostTargetName());
  EXPECT_EQ(cantFail(parseTarget(host.name)).features, host.features);
  // Nothing is promised that the machine does not have.
  auto detected = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(host.llvmFeatures).split(features, ',');
  for (llvm::StringRef f : features)
    EXPECT_TRUE(detected.lookup(f.drop_front())) << f.str();
}

TEST(Target, Errors) {
  EXPECT_NE(errorOf("cpu:i486").find("unknown target 'cpu:i486': no processor 'i486'; known are cpu:host, cpu:aarch64"), std::string::npos)
      << errorOf("cpu:i486");
  EXPECT_NE(errorOf("gpu").find("it must start with 'cpu' or 'cuda'"), std::string::npos);
  EXPECT_NE(errorOf("").find("it must start with 'cpu' or 'cuda'"), std::string::npos);
  EXPECT_NE(errorOf("cpu:").find("no processor is named"), std::string::npos);
  EXPECT_NE(errorOf("cpu:znver3+").find("a feature's name is missing"), std::string::npos);
  EXPECT_NE(errorOf("cpu:znver3+no").find("no feature ''"), std::string::npos);
  EXPECT_NE(errorOf("cpu:znver3+neon").find("no feature 'neon'; there are sse3, ssse3"), std::string::npos);
  EXPECT_EQ(errorOf("cuda:sm_90"), "target 'cuda:sm_90' cannot be built yet: this dlc has no CUDA backend");
}

TEST(BackendRegistry, FindsByKind) {
  BackendRegistry registry;
  EXPECT_EQ(registry.find(TargetKind::Cpu), nullptr);
}
