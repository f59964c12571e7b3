/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// NumPy's .npy files, version 1.0 to 3.0 (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#ifndef DLCRT_RUN_NPY_H
#define DLCRT_RUN_NPY_H

#include <cstdint>
#include <string>
#include <vector>

namespace dlcrt_run {

/// A tensor in dense row-major order, sub-byte elements packed, as the runtime has it.
struct Array {
  int32_t dtype = 0; // enum dlcrt_dtype
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

/// Reads an array that shall have element type `dtype`. What NumPy has no type for is taken as it writes it with
/// ml_dtypes: bfloat16 and the 8-bit floats as raw bytes of that size, 4-bit and 2-bit elements as one byte each. "" or
/// what is wrong.
std::string readNpy(const std::string &path, int32_t dtype, Array &array);

/// Writes to a temporary name, then renames: a file is complete or not there. "" or what is wrong.
std::string writeNpy(const std::string &path, const Array &array);

} // namespace dlcrt_run
#endif
