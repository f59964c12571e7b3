// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What code is compiled for: one plain struct, made from one string. The table of known processors is Targets.td; passes ask
// for capabilities, never for names.
//
// A target's name is stable text that says everything: `parseTarget(t.name)` gives `t` again on any machine.
//   cpu:x86-64-v2                  an entry of the table
//   cpu:sapphirerapids+noamx-tile  without a feature (and without what needs it), as a virtual machine may hide some
//   cpu:x86-64-v4+avx512vnni       with one more
//   cpu, cpu:host                  this machine, resolved to one of the above

#ifndef DLC_TARGET_TARGET_H
#define DLC_TARGET_TARGET_H

#include "dlcrt/format.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

enum class TargetKind { Cpu, Cuda };
enum class TargetArch { X86_64 = DLCRT_ARCH_X86_64, AArch64 = DLCRT_ARCH_AARCH64 };

/// Numbers of feature bits: X86Feature::AVX2 is bit 7 of Target::features.
#define DLC_TARGET_ENUMERATOR(number, NAME, name) NAME = number,
enum class X86Feature : unsigned { DLCRT_FOREACH_X86_FEATURE(DLC_TARGET_ENUMERATOR) };
enum class AArch64Feature : unsigned { DLCRT_FOREACH_AARCH64_FEATURE(DLC_TARGET_ENUMERATOR) };
#undef DLC_TARGET_ENUMERATOR

struct Target {
  std::string name; // "cpu:x86-64-v2"
  TargetKind kind = TargetKind::Cpu;
  TargetArch arch = TargetArch::X86_64;

  // For LLVM. Code is generated for the bare architecture plus `llvmFeatures`, which are exactly the bits of `features`, so that
  // no instruction appears whose bit the runtime has not tested; `tuneCpu` only chooses among the instructions there are.
  std::string triple;       // "x86_64-unknown-linux-gnu"
  std::string baseCpu;      // "x86-64"
  std::string tuneCpu;      // "znver3"
  std::string llvmFeatures; // "+sse3,+ssse3"

  /// What a machine must have to run the code: dlcrt_variant_desc::features[0].
  uint64_t features = 0;
  bool has(X86Feature f) const { return arch == TargetArch::X86_64 && (features >> unsigned(f) & 1); }
  bool has(AArch64Feature f) const { return arch == TargetArch::AArch64 && (features >> unsigned(f) & 1); }

  // Capabilities, derived from `features`.
  unsigned vectorBits = 128;     // width of the vectors to use
  unsigned vectorRegisters = 16; // of that width
  bool fma = false;              // fused multiply-add of f32 and f64
  bool f16Convert = false;       // f16 <-> f32 in hardware
  bool f16Arithmetic = false;
  bool bf16Dot = false;          // bf16 x bf16 + f32
  bool int8Dot = false;          // four products of int8, summed into int32
  bool amxInt8 = false;
  bool amxBf16 = false;

  // Facts that schedules go by. Cores are those that one model is usually given.
  int64_t l1Bytes = 0; // data, per core
  int64_t l2Bytes = 0; // per core
  int64_t l3Bytes = 0; // share of one core
  unsigned cores = 1;

  /// Vector lanes of an element of `bits` bits.
  int64_t lanes(unsigned bits) const { return vectorBits / bits; }
};

/// The target that `text` names. An error lists the known ones, or says what cannot be built yet.
llvm::Expected<Target> parseTarget(llvm::StringRef text);

/// The name of this machine as a target: "cpu:znver3", "cpu:sapphirerapids+noamx-tile".
std::string hostTargetName();

/// Names of the table's entries, "cpu:" included, in the table's order.
std::vector<std::string> knownTargets();

} // namespace dlc

#endif
