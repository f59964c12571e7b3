/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The C library's functions that kernels may call.
#ifndef DLCRT_CPU_IMPORTS_H
#define DLCRT_CPU_IMPORTS_H

namespace dlcrt::impl {

/// Addresses by enum dlcrt_import.
extern const void *const kernelImports[];

} // namespace dlcrt::impl
#endif
