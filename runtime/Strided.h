/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Copies between dense and strided tensors of whole-byte elements.
#ifndef DLCRT_STRIDED_H
#define DLCRT_STRIDED_H

#include <stdint.h>

namespace dlcrt::impl {

/// Whether the strides (in elements; null = dense) are those of a dense row-major tensor.
bool isDense(uint32_t rank, const int64_t *dims, const int64_t *strides);

/// Bytes from the first element to the end of the last. False if a stride is negative or the extent does not fit.
[[nodiscard]] bool stridedExtent(uint32_t elementBytes, uint32_t rank, const int64_t *dims, const int64_t *strides,
                                 uint64_t &bytes);

/// `strided` points to the first element; strides are in elements.
void copyFromStrided(void *dense, const void *strided, uint32_t elementBytes, uint32_t rank, const int64_t *dims,
                     const int64_t *strides);
void copyToStrided(void *strided, const void *dense, uint32_t elementBytes, uint32_t rank, const int64_t *dims,
                   const int64_t *strides);

} // namespace dlcrt::impl
#endif
