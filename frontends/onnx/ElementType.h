// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// ONNX's element types and MLIR's, and how names of the model appear in messages.

#ifndef DLC_FRONTENDS_ONNX_ELEMENTTYPE_H
#define DLC_FRONTENDS_ONNX_ELEMENTTYPE_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace dlc {

/// The element type for a TensorProto.DataType; null where dlc has none.
mlir::Type elementTypeFor(mlir::MLIRContext *context, int onnxType);
/// The TensorProto.DataType of an element type; UNDEFINED (0) where there is none.
int onnxTypeFor(mlir::Type elementType);
/// As ONNX spells it: "float", "int64", "float8e4m3fn".
std::string typeName(int onnxType);
std::string typeName(mlir::Type elementType);
/// Bits of one element where it lies in a file; elements of 4 and 2 bits lie there packed.
unsigned bitsPerElement(mlir::Type elementType);

/// A name of the model for a message: quoted, on one line, of bearable length.
std::string quote(llvm::StringRef name);
/// The same without the quotes.
std::string printable(llvm::StringRef name);
/// "[2, 3]"
std::string listText(llvm::ArrayRef<int64_t> numbers);

} // namespace dlc

#endif
