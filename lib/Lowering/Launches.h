// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What passes over the kernels of a variant ask first: who launches them, and what for they are compiled.

#ifndef DLC_LOWERING_LAUNCHES_H
#define DLC_LOWERING_LAUNCHES_H

#include "dlc/Plan/Plan.h"
#include "dlc/Target/BackendRegistry.h"
#include "dlc/Target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace dlc {

/// The launches of each kernel that has some.
llvm::MapVector<plan::KernelOp, llvm::SmallVector<plan::LaunchOp>> launchesByKernel(mlir::ModuleOp module, mlir::SymbolTable &symbols);

/// The target of a variant's module. Emits the error itself.
llvm::FailureOr<Target> targetOfVariant(mlir::ModuleOp module);
/// The backend for it. Emits the error itself; null then.
const Backend *backendOfVariant(mlir::ModuleOp module, const BackendRegistry &backends, const Target &target);

} // namespace dlc

#endif
