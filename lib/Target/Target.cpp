// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Target/Target.h"
#include "ProcessorTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace llvm;

namespace dlc {
namespace targets {

#define GET_ProcessorTable_IMPL
#include "dlc/Target/Targets.inc"

TargetArch ProcessorRecord::arch() const {
  return StringRef(archName) == "X86_64" ? TargetArch::X86_64 : TargetArch::AArch64;
}

uint64_t ProcessorRecord::featureBits() const {
  uint64_t bits = 0;
  for (StringRef feature : split(features, ','))
    bits |= uint64_t(1) << (llvm::find(featureNames(arch()), feature) - featureNames(arch()).begin());
  return bits;
}

ArrayRef<ProcessorRecord> processors() { return ProcessorTable; }

const ProcessorRecord *findProcessor(StringRef name) {
  for (const ProcessorRecord &record : processors())
    if (record.name == name)
      return &record;
  return nullptr;
}

ArrayRef<StringRef> featureNames(TargetArch arch) {
#define DLC_FEATURE_NAME(number, NAME, name) name,
  static constexpr StringRef x86[] = {DLCRT_FOREACH_X86_FEATURE(DLC_FEATURE_NAME)};
  static constexpr StringRef aarch64[] = {DLCRT_FOREACH_AARCH64_FEATURE(DLC_FEATURE_NAME)};
#undef DLC_FEATURE_NAME
#define DLC_FEATURE_IN_ORDER(number, NAME, name) static_assert(std::string_view(x86[number]) == name);
  DLCRT_FOREACH_X86_FEATURE(DLC_FEATURE_IN_ORDER)
#undef DLC_FEATURE_IN_ORDER
#define DLC_FEATURE_IN_ORDER(number, NAME, name) static_assert(std::string_view(aarch64[number]) == name);
  DLCRT_FOREACH_AARCH64_FEATURE(DLC_FEATURE_IN_ORDER)
#undef DLC_FEATURE_IN_ORDER
  return arch == TargetArch::X86_64 ? ArrayRef<StringRef>(x86) : ArrayRef<StringRef>(aarch64);
}

/// The bits that go with one: what it needs (`on`), or what needs it (off).
static uint64_t impliedFeatures(TargetArch arch, unsigned bit, bool on) {
  ArrayRef<StringRef> names = featureNames(arch);
  uint64_t implied = uint64_t(1) << bit;
  if (arch == TargetArch::AArch64) {
    auto flag = [](AArch64Feature f) { return uint64_t(1) << unsigned(f); };
    const uint64_t neon = flag(AArch64Feature::NEON), half = flag(AArch64Feature::FULLFP16), sve = flag(AArch64Feature::SVE);
    if (on)
      return implied | neon | (implied == sve ? half : 0); // LLVM computes in f16 too where it has SVE
    return implied == neon ? (uint64_t(1) << names.size()) - 1 : implied == half ? half | sve : implied;
  }
  StringMap<bool> map;
  X86::updateImpliedFeatures(names[bit], on, map);
  for (auto [i, name] : llvm::enumerate(names))
    if (auto it = map.find(name); it != map.end() && it->second == on)
      implied |= uint64_t(1) << i;
  return implied;
}

uint64_t withFeature(TargetArch arch, uint64_t features, unsigned bit) { return features | impliedFeatures(arch, bit, true); }
uint64_t withoutFeature(TargetArch arch, uint64_t features, unsigned bit) { return features & ~impliedFeatures(arch, bit, false); }

std::string targetName(const ProcessorRecord &record, uint64_t features) {
  std::string name = std::string("cpu:") + record.name;
  TargetArch arch = record.arch();
  uint64_t reached = record.featureBits();
  for (auto [bit, feature] : llvm::enumerate(featureNames(arch)))
    if ((reached & ~features) >> bit & 1) {
      name += "+no" + feature.str();
      reached = withoutFeature(arch, reached, bit);
    }
  for (auto [bit, feature] : llvm::enumerate(featureNames(arch)))
    if ((features & ~reached) >> bit & 1) {
      name += "+" + feature.str();
      reached = withFeature(arch, reached, bit);
    }
  return name;
}

} // namespace targets

using namespace targets;

std::vector<std::string> knownTargets() {
  std::vector<std::string> names;
  for (const ProcessorRecord &record : processors())
    names.push_back(std::string("cpu:") + record.name);
  return names;
}

static Error unknownTarget(StringRef text, const Twine &why) {
  return createStringError("unknown target '" + text + "': " + why + "; known are cpu:host, " + join(knownTargets(), ", ") +
                           ", each with +FEATURE or +noFEATURE appended");
}

static Target makeTarget(const ProcessorRecord &record, uint64_t features) {
  Target t;
  t.name = targetName(record, features);
  t.arch = record.arch();
  t.tuneCpu = record.tuneCpu;
  t.features = features;
  for (auto [bit, feature] : llvm::enumerate(featureNames(t.arch)))
    if (features >> bit & 1)
      t.llvmFeatures += (t.llvmFeatures.empty() ? "+" : ",+") + feature.str();
  if (t.arch == TargetArch::X86_64) {
    using F = X86Feature;
    t.triple = "x86_64-unknown-linux-gnu";
    t.baseCpu = "x86-64";
    bool avx512 = t.has(F::AVX512F) && t.has(F::AVX512BW) && t.has(F::AVX512DQ) && t.has(F::AVX512VL);
    t.vectorBits = avx512 ? 512 : t.has(F::AVX2) ? 256 : 128;
    t.vectorRegisters = avx512 ? 32 : 16;
    t.fma = t.has(F::FMA);
    t.f16Convert = t.has(F::F16C);
    t.f16Arithmetic = t.has(F::AVX512FP16);
    t.bf16Dot = t.has(F::AVX512BF16);
    t.int8Dot = t.has(F::AVX512VNNI) || t.has(F::AVXVNNI) || t.has(F::AVXVNNIINT8);
    t.amxInt8 = t.has(F::AMX_INT8);
    t.amxBf16 = t.has(F::AMX_BF16);
  } else {
    using F = AArch64Feature;
    t.triple = "aarch64-unknown-linux-gnu";
    t.baseCpu = "generic";
    t.vectorRegisters = 32;
    t.fma = t.f16Convert = t.has(F::NEON);
    t.f16Arithmetic = t.has(F::FULLFP16);
    t.bf16Dot = t.has(F::BF16);
    t.int8Dot = t.has(F::DOTPROD);
  }
  t.l1Bytes = int64_t(record.l1KiB) << 10;
  t.l2Bytes = int64_t(record.l2KiB) << 10;
  t.l3Bytes = int64_t(record.l3KiB) << 10;
  t.cores = record.cores;
  return t;
}

Expected<Target> parseTarget(StringRef text) {
  auto [kind, rest] = text.split(':');
  if (kind == "cuda")
    return createStringError("target '" + text + "' cannot be built yet: this dlc has no CUDA backend");
  if (kind != "cpu")
    return unknownTarget(text, "it must start with 'cpu' or 'cuda'");
  if (rest.empty() && text.ends_with(":"))
    return unknownTarget(text, "no processor is named");
  if (rest.empty() || rest == "host")
    return parseTarget(hostTargetName());

  auto [processor, modifiers] = rest.split('+');
  const ProcessorRecord *record = findProcessor(processor);
  if (!record)
    return unknownTarget(text, "no processor '" + processor + "'");
  TargetArch arch = record->arch();
  uint64_t features = record->featureBits();
  if (rest.ends_with("+"))
    return unknownTarget(text, "a feature's name is missing");
  if (!modifiers.empty())
    for (StringRef modifier : split(modifiers, '+')) {
      ArrayRef<StringRef> names = featureNames(arch);
      bool remove = modifier.consume_front("no");
      auto it = llvm::find(names, modifier);
      if (modifier.empty() || it == names.end())
        return unknownTarget(text, "no feature '" + modifier + "'; there are " + join(names, ", "));
      unsigned bit = it - names.begin();
      features = remove ? withoutFeature(arch, features, bit) : withFeature(arch, features, bit);
    }
  return makeTarget(*record, features);
}

} // namespace dlc
