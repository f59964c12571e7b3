// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Pipeline/Options.h"
#include "dlc/Support/Format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace dlc {

static constexpr llvm::StringLiteral kPhaseNames[kPhaseCount] = {"import", "clean",    "precision", "fuse",
                                                                 "plan",   "schedule", "codegen",   "finish"};

llvm::StringRef phaseName(Phase phase) { return kPhaseNames[static_cast<unsigned>(phase)]; }

llvm::Expected<Phase> parsePhase(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names(std::begin(kPhaseNames), std::end(kPhaseNames));
  for (auto [index, known] : llvm::enumerate(names))
    if (name == known)
      return static_cast<Phase>(index);
  llvm::StringRef near = nearestWord(name, names);
  return makeError("there is no phase '{}'{}; the phases are {}", name, near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                   llvm::join(names, ", "));
}

llvm::Expected<Precision> parsePrecision(llvm::StringRef name) {
  if (name == "fp32")
    return Precision::F32;
  if (name == "fp16" || name == "bf16" || name == "int8")
    return makeError("precision {} is not available in this version; fp32 is", name);
  return makeError("there is no precision '{}'; this version has fp32", name);
}

} // namespace dlc
