// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the fuzzers of modules share.
#ifndef DLC_TEST_FUZZ_FUZZMODULE_H
#define DLC_TEST_FUZZ_FUZZMODULE_H

#include "dlcrt/runtime.h"

#include <cstdint>
#include <vector>

namespace dlcrt::fuzz {

/// The bytes with every hash as it should be (where the section table can be read), so that what lies behind the hashes is
/// reached.
std::vector<uint8_t> repaired(const uint8_t *data, size_t bytes);

/// Opens a module, which may use the bytes until it is closed; null if it is refused, and then there has to be a message.
dlcrt_module *open(const std::vector<uint8_t> &bytes);

} // namespace dlcrt::fuzz
#endif
