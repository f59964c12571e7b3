// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Plans to the bytes of a module (dlcrt/format.h) and back. The only writer of that format.

#ifndef DLC_PLAN_SERIALIZE_H
#define DLC_PLAN_SERIALIZE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace dlc {

/// The element type's number in a module (enum dlcrt_dtype, which is ONNX's); nothing for types that a module cannot hold.
std::optional<int32_t> dtypeOf(mlir::Type elementType);
/// The element type of a number; null for numbers that dlc does not know.
mlir::Type elementTypeOf(mlir::MLIRContext *context, int32_t dtype);

/// Writes one module file from the programs of its variants, as phase finish leaves them: each has plan.target and plan.image.
/// The bytes depend on nothing but the programs. Constants that occur more than once are written once.
llvm::Error writeModule(llvm::ArrayRef<mlir::ModuleOp> variants, llvm::raw_ostream &os);

/// The plans of a module's variants, each in a builtin.module as writeModule takes it, but with kernels known by name only.
/// Constants become #dlc.weight; their bytes are not read.
llvm::Expected<llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>> readModule(mlir::MLIRContext &context, llvm::ArrayRef<char> bytes);

} // namespace dlc

#endif
