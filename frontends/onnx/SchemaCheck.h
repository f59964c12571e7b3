// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// A node against the ONNX library's own definition of its operator: numbers of inputs and outputs, attributes, element types.

#ifndef DLC_FRONTENDS_ONNX_SCHEMACHECK_H
#define DLC_FRONTENDS_ONNX_SCHEMACHECK_H

#include "NodeReader.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace onnx {
class OpSchema;
}

namespace dlc {

/// Calls `fail` for each thing that is wrong; inputs that came of another error are not looked at.
void checkSchema(const onnx::OpSchema &schema, const NodeInfo &node, llvm::function_ref<void(const llvm::Twine &)> fail);

} // namespace dlc

#endif
