// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The table of Targets.td, for the files of this folder.

#ifndef DLC_LIB_TARGET_PROCESSORTABLE_H
#define DLC_LIB_TARGET_PROCESSORTABLE_H

#include "dlc/Target/Target.h"
#include "llvm/ADT/ArrayRef.h"

namespace dlc::targets {

struct ProcessorRecord {
  const char *name, *archName, *tuneCpu, *features;
  bool generic;
  unsigned l1KiB, l2KiB, l3KiB, cores;

  TargetArch arch() const;
  uint64_t featureBits() const;
};

llvm::ArrayRef<ProcessorRecord> processors();
const ProcessorRecord *findProcessor(llvm::StringRef name);

/// The names of an architecture's feature bits; an empty name has no bit.
llvm::ArrayRef<llvm::StringRef> featureNames(TargetArch arch);
/// `features` with one more (and what it needs), or without it (and what needs it).
uint64_t withFeature(TargetArch arch, uint64_t features, unsigned bit);
uint64_t withoutFeature(TargetArch arch, uint64_t features, unsigned bit);
/// "cpu:znver4+noavx512bf16+avxvnni": the record's name and how `features` differ from it.
std::string targetName(const ProcessorRecord &record, uint64_t features);

} // namespace dlc::targets

#endif
