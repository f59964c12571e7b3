/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Element types: sizes, and integers written as elements.
#ifndef DLCRT_DTYPE_H
#define DLCRT_DTYPE_H

#include "dlcrt/runtime.h"

namespace dlcrt::impl {

/// Bits of an element, 0 for what is no type.
uint32_t dtypeBits(int32_t dtype);

/// Alignment that a kernel may assume: the element's size, for complex numbers that of a part.
uint32_t dtypeAlignment(int32_t dtype);

/// False if the bits do not fit into 64 bits.
[[nodiscard]] bool denseBytes(int32_t dtype, uint64_t elements, uint64_t &bytes);

/// Product of the dims. False if one is negative or the product does not fit into 63 bits.
[[nodiscard]] bool elementCount(uint32_t rank, const int64_t *dims, uint64_t &elements);

/// Whether READ can take an element of this type.
bool isReadable(int32_t dtype);
/// Element `index` of dense memory of a readable type.
int64_t readElement(int32_t dtype, const void *data, uint64_t index);

/// Whether FILL can write an element of this type.
bool isFillable(int32_t dtype);
/// `value` as an element, in the low bits: integers are cut, floats rounded to nearest even.
uint64_t encodeElement(int32_t dtype, int64_t value);

} // namespace dlcrt::impl
#endif
