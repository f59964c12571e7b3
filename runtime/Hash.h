/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// XXH64 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), written from its specification.
#ifndef DLCRT_HASH_H
#define DLCRT_HASH_H

#include <stdint.h>

namespace dlcrt::impl {

uint64_t xxh64(const void *data, uint64_t bytes, uint64_t seed = 0);

} // namespace dlcrt::impl
#endif
