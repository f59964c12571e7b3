/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Features.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

using namespace dlcrt::impl;

uint32_t dlcrt::impl::hostArch() {
#if defined(__x86_64__)
  return DLCRT_ARCH_X86_64;
#elif defined(__aarch64__)
  return DLCRT_ARCH_AARCH64;
#else
  return 0;
#endif
}

#if defined(__x86_64__)

#define DLCRT_FEATURE_BIT(bit, NAME, name) static constexpr uint64_t NAME = uint64_t(1) << bit;
namespace feature {
DLCRT_FOREACH_X86_FEATURE(DLCRT_FEATURE_BIT)
}
#undef DLCRT_FEATURE_BIT

static constexpr uint64_t amxFeatures = feature::AMX_TILE | feature::AMX_INT8 | feature::AMX_BF16 | feature::AMX_FP16;

namespace {
enum CpuidRegister { EAX, EBX, ECX, EDX };
/// Where CPUID reports a feature, and which parts of the register state (XCR0) it needs the system to save.
struct CpuidBit {
  uint64_t feature;
  uint32_t leaf, subleaf;
  CpuidRegister where;
  uint32_t bit;
  uint64_t state;
};
} // namespace

static constexpr uint64_t avxState = 0x6, avx512State = 0xe6, amxState = 0x60000;

static const CpuidBit cpuidBits[] = {
    {feature::SSE3, 1, 0, ECX, 0, 0},
    {feature::SSSE3, 1, 0, ECX, 9, 0},
    {feature::FMA, 1, 0, ECX, 12, avxState},
    {feature::CX16, 1, 0, ECX, 13, 0},
    {feature::SSE41, 1, 0, ECX, 19, 0},
    {feature::SSE42, 1, 0, ECX, 20, 0},
    {feature::MOVBE, 1, 0, ECX, 22, 0},
    {feature::POPCNT, 1, 0, ECX, 23, 0},
    {feature::AVX, 1, 0, ECX, 28, avxState},
    {feature::F16C, 1, 0, ECX, 29, avxState},
    {feature::BMI, 7, 0, EBX, 3, 0},
    {feature::AVX2, 7, 0, EBX, 5, avxState},
    {feature::BMI2, 7, 0, EBX, 8, 0},
    {feature::AVX512F, 7, 0, EBX, 16, avx512State},
    {feature::AVX512DQ, 7, 0, EBX, 17, avx512State},
    {feature::AVX512CD, 7, 0, EBX, 28, avx512State},
    {feature::AVX512BW, 7, 0, EBX, 30, avx512State},
    {feature::AVX512VL, 7, 0, EBX, 31, avx512State},
    {feature::AVX512VBMI, 7, 0, ECX, 1, avx512State},
    {feature::AVX512VNNI, 7, 0, ECX, 11, avx512State},
    {feature::AMX_BF16, 7, 0, EDX, 22, amxState},
    {feature::AVX512FP16, 7, 0, EDX, 23, avx512State},
    {feature::AMX_TILE, 7, 0, EDX, 24, amxState},
    {feature::AMX_INT8, 7, 0, EDX, 25, amxState},
    {feature::AVXVNNI, 7, 1, EAX, 4, avxState},
    {feature::AVX512BF16, 7, 1, EAX, 5, avx512State},
    {feature::AMX_FP16, 7, 1, EAX, 21, amxState},
    {feature::AVXVNNIINT8, 7, 1, EDX, 4, avxState},
    {feature::LZCNT, 0x80000001, 0, ECX, 5, 0},
};

static uint64_t savedState() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

static uint64_t detect() {
  uint32_t leaf = 0, subleaf = 0, registers[4] = {};
  bool readable = __get_cpuid_count(1, 0, &registers[EAX], &registers[EBX], &registers[ECX], &registers[EDX]);
  bool hasXgetbv = readable && (registers[ECX] >> 27 & 1);
  uint64_t state = hasXgetbv ? savedState() : 0, found = 0;
  for (const CpuidBit &entry : cpuidBits) {
    if (entry.leaf != leaf || entry.subleaf != subleaf) {
      leaf = entry.leaf;
      subleaf = entry.subleaf;
      readable = __get_cpuid_count(leaf, subleaf, &registers[EAX], &registers[EBX], &registers[ECX], &registers[EDX]);
    }
    if (readable && (registers[entry.where] >> entry.bit & 1) && (state & entry.state) == entry.state)
      found |= entry.feature;
  }
  return found;
}

/// Linux gives a process the large tile registers only when it asks, before its first use of them.
static bool mayUseAmx() {
  static std::atomic<int> answer{0}; // 1 = yes, 2 = no
  int known = answer.load(std::memory_order_relaxed);
  if (known == 0) {
    constexpr int requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    known = syscall(SYS_arch_prctl, requestPermission, tileData) == 0 ? 1 : 2;
    answer.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

#elif defined(__aarch64__)

static uint64_t detect() {
  // Bits of the kernel's asm/hwcap.h.
  uint64_t first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2), found = 0;
  auto add = [&](bool has, int bit) { found |= has ? uint64_t(1) << bit : 0; };
  add(first >> 1 & 1, 0);                        // neon: ASIMD
  add(first >> 20 & 1, 1);                       // dotprod: ASIMDDP
  add((first >> 9 & 1) && (first >> 10 & 1), 2); // fullfp16: FPHP, ASIMDHP
  add(second >> 14 & 1, 3);                      // bf16: BF16
  add(second >> 13 & 1, 4);                      // i8mm: I8MM
  add(first >> 22 & 1, 5);                       // sve: SVE
  return found;
}
static constexpr uint64_t amxFeatures = 0;
static bool mayUseAmx() { return false; }

#else

static uint64_t detect() { return 0; }
static constexpr uint64_t amxFeatures = 0;
static bool mayUseAmx() { return false; }

#endif

uint64_t dlcrt::impl::hostFeatures() {
  // CPUID is slow in virtual machines. Threads that come here at the same time find the same.
  static constexpr uint64_t known = uint64_t(1) << 63;
  static std::atomic<uint64_t> cache{0};
  uint64_t features = cache.load(std::memory_order_relaxed);
  if (!features) {
    features = detect() | known;
    cache.store(features, std::memory_order_relaxed);
  }
  return features & ~known;
}

static const char *archName(uint32_t arch) {
  return arch == DLCRT_ARCH_X86_64 ? "x86-64" : arch == DLCRT_ARCH_AARCH64 ? "AArch64" : "another architecture";
}

static const char *featureName(uint32_t arch, unsigned bit) {
#define DLCRT_FEATURE_NAME(number, NAME, name)                                                                         \
  if (bit == number)                                                                                                   \
    return name;
  if (arch == DLCRT_ARCH_X86_64) {
    DLCRT_FOREACH_X86_FEATURE(DLCRT_FEATURE_NAME)
  } else if (arch == DLCRT_ARCH_AARCH64) {
    DLCRT_FOREACH_AARCH64_FEATURE(DLCRT_FEATURE_NAME)
  }
#undef DLCRT_FEATURE_NAME
  return "a feature unknown to this runtime";
}

void dlcrt::impl::printFeatures(TextWriter &out, uint32_t arch, uint64_t features, const char *separator) {
  const char *before = "";
  for (unsigned bit = 0; bit < 64; ++bit)
    if (features >> bit & 1) {
      out.print("%s%s", before, featureName(arch, bit));
      before = separator;
    }
}

Status dlcrt::impl::checkFeatures(uint32_t arch, uint64_t features, Error *error) {
  if (arch != hostArch())
    return fail(error, DLCRT_ERROR_NO_VARIANT, "it is code for %s, and this is %s", archName(arch),
                archName(hostArch()));
  uint64_t missing = features & ~hostFeatures();
  if (missing) {
    char names[256];
    TextWriter out(names, sizeof(names));
    printFeatures(out, arch, missing, ", ");
    return fail(error, DLCRT_ERROR_NO_VARIANT, "the processor lacks %s", names);
  }
  if ((features & amxFeatures) && !mayUseAmx())
    return fail(error, DLCRT_ERROR_NO_VARIANT, "the operating system does not permit the use of AMX");
  return DLCRT_OK;
}
