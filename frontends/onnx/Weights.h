// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Tensors of the model as constants. Bytes stay where they are: those of the message move into an owner of their own, those
// of external files are mapped. Nothing outside the model's folder is ever opened.

#ifndef DLC_FRONTENDS_ONNX_WEIGHTS_H
#define DLC_FRONTENDS_ONNX_WEIGHTS_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace onnx {
class TensorProto;
}

namespace dlc {

/// Files below one folder, each mapped once.
class ExternalFiles {
public:
  /// `folder` is empty for a model that has none.
  explicit ExternalFiles(llvm::StringRef folder) : folder(folder.str()) {}

  struct File {
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner;
  };
  llvm::Expected<File> open(llvm::StringRef location);

private:
  llvm::Expected<File> map(llvm::StringRef location);

  std::string folder;
  llvm::StringMap<File> files;
};

class Weights {
public:
  Weights(mlir::MLIRContext *context, llvm::StringRef folder) : context(context), files(folder) {}

  /// The constant that a tensor is. Its message is read once and must live as long as this object. With `take` the bytes are
  /// moved out of it.
  llvm::Expected<mlir::TypedAttr> read(const onnx::TensorProto &tensor, bool take);

private:
  llvm::Expected<mlir::TypedAttr> readNew(const onnx::TensorProto &tensor, bool take);
  llvm::Expected<mlir::TypedAttr> readExternal(const onnx::TensorProto &tensor, mlir::RankedTensorType type, uint64_t size);

  mlir::MLIRContext *context;
  ExternalFiles files;
  llvm::DenseMap<const onnx::TensorProto *, mlir::TypedAttr> known;
};

/// The type of a tensor message: dims that are no size, and element types that dlc does not have, are errors.
llvm::Expected<mlir::RankedTensorType> tensorTypeOf(mlir::MLIRContext *context, const onnx::TensorProto &tensor);

} // namespace dlc

#endif
