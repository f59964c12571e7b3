// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What machine this is. A processor's name promises features that a virtual machine or the operating system may hide, so what
// counts is what was detected; the name decides tuning and caches.

#include "ProcessorTable.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;
using namespace dlc::targets;

namespace dlc {

#if defined(__aarch64__)
static constexpr TargetArch kHostArch = TargetArch::AArch64;
#else
static constexpr TargetArch kHostArch = TargetArch::X86_64;
#endif

std::string hostTargetName() {
  uint64_t features = 0;
  StringMap<bool> detected = sys::getHostCPUFeatures();
  ArrayRef<StringRef> names = featureNames(kHostArch);
  for (auto [bit, name] : llvm::enumerate(names))
    if (detected.lookup(name))
      features |= uint64_t(1) << bit;
  // A feature whose needs are hidden cannot be used.
  for (unsigned bit = 0; bit < names.size(); ++bit)
    if ((features >> bit & 1) && withFeature(kHostArch, 0, bit) & ~features)
      features = withoutFeature(kHostArch, features, bit);

  const ProcessorRecord *record = findProcessor(sys::getHostCPUName());
  if (!record || record->arch() != kHostArch) {
    // The richest level that the machine has.
    record = nullptr;
    for (const ProcessorRecord &level : processors())
      if (level.generic && level.arch() == kHostArch && !(level.featureBits() & ~features) &&
          (!record || popcount(level.featureBits()) > popcount(record->featureBits())))
        record = &level;
    if (!record)
      record = findProcessor(kHostArch == TargetArch::X86_64 ? "x86-64-v2" : "aarch64");
  }
  return targetName(*record, features);
}

} // namespace dlc
