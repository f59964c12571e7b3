// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Files that hold one ONNX TensorProto, such as the inputs and outputs of ONNX test data sets.

#ifndef DLC_FRONTENDS_ONNXTENSOR_H
#define DLC_FRONTENDS_ONNXTENSOR_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace dlc {

/// A dense tensor in host memory.
struct HostTensor {
  std::string name;
  int32_t dtype = 0;                // onnx.TensorProto.DataType = enum dlcrt_dtype
  std::vector<int64_t> dims;
  std::vector<char> bytes;          // row-major, little-endian, sub-byte types packed low bits first, bool one byte
  std::vector<std::string> strings; // the elements instead, where dtype is a string
};

/// Refuses what is no tensor, has other than the bytes its dims need, or keeps them in another file.
llvm::Expected<HostTensor> readTensorFile(llvm::StringRef path);

/// The bytes of a TensorProto.
llvm::Expected<llvm::SmallVector<char, 0>> tensorProtoBytes(const HostTensor &tensor);

} // namespace dlc

#endif
