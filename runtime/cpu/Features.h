/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// What this processor and its operating system offer.
#ifndef DLCRT_CPU_FEATURES_H
#define DLCRT_CPU_FEATURES_H

#include "Expr.h"
#include "Status.h"

namespace dlcrt::impl {

/// enum dlcrt_arch that this library was compiled for; 0 for others.
uint32_t hostArch();

/// Bits of DLCRT_FOREACH_X86_FEATURE or DLCRT_FOREACH_AARCH64_FEATURE. A feature counts only if the operating system
/// saves its registers.
uint64_t hostFeatures();

/// DLCRT_OK if code for this architecture with these features runs here. Asks the system for the use of AMX, once, when
/// the features contain it.
Status checkFeatures(uint32_t arch, uint64_t features, Error *error);

/// Names of the features, separated by `separator`.
void printFeatures(TextWriter &out, uint32_t arch, uint64_t features, const char *separator);

} // namespace dlcrt::impl
#endif
