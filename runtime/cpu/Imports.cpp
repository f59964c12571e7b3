/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Imports.h"

#include "dlcrt/kernel_abi.h"

// <math.h> of a C++ compiler overloads these names; a table wants the C functions.
using d = double(double);
using D = double(double, double);
using f = float(float);
using F = float(float, float);
#define DLCRT_DECLARE(number, NAME, name, signature) extern "C" signature name;
DLCRT_FOREACH_IMPORT(DLCRT_DECLARE)
#undef DLCRT_DECLARE

#define DLCRT_ADDRESS(number, NAME, name, signature) reinterpret_cast<const void *>(&name),
const void *const dlcrt::impl::kernelImports[] = {DLCRT_FOREACH_IMPORT(DLCRT_ADDRESS)};
#undef DLCRT_ADDRESS

static_assert(sizeof(dlcrt::impl::kernelImports) == DLCRT_IMPORT_COUNT * sizeof(void *), "one address for each number");
