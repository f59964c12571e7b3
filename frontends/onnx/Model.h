// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// From the bytes of a file to an ONNX message, and nothing worse than an error when they are not one.

#ifndef DLC_FRONTENDS_ONNX_MODEL_H
#define DLC_FRONTENDS_ONNX_MODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace onnx {
class ModelProto;
}

namespace dlc {

/// How deep graphs may lie in attributes of nodes, and function bodies in function bodies. The stack is never the limit.
inline constexpr unsigned kMaxDepth = 64;

/// The model's message. Errors say what is wrong with the file, without its name.
llvm::Expected<std::unique_ptr<onnx::ModelProto>> parseModel(llvm::ArrayRef<char> bytes);
llvm::Expected<std::unique_ptr<onnx::ModelProto>> readModel(llvm::StringRef path);

} // namespace dlc

#endif
