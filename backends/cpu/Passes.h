// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The passes of the CPU backend, in the order in which they run. CpuBackend.cpp is the page that puts them together.
//
// outline-code copies the body of each plan.kernel into a module of its own (a "code module") inside the variant's module, so
// that the passes after it are upstream's ordinary passes on func.func and run on all kernels at once:
//
//   builtin.module attributes {plan.code = @k, plan.target = "cpu:..."} {
//     func.func @k(operands, destinations, scalars) -> destinations attributes {plan.operands = 2, plan.destinations = 1,
//         plan.dims = [...], plan.kind = #plan.kind<...>, plan.schedule = #plan.schedule<...>}
//   }
//
// emit-image takes all code modules together, makes the image, and leaves plan.kernel ops without body.

#ifndef DLC_BACKENDS_CPU_PASSES_H
#define DLC_BACKENDS_CPU_PASSES_H

#include "dlc/Plan/Plan.h"
#include "dlc/Target/BackendRegistry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace dlc::cpu {

inline constexpr llvm::StringLiteral kCodeAttr = "plan.code";               // on a code module: FlatSymbolRefAttr
inline constexpr llvm::StringLiteral kOperandsAttr = "plan.operands";       // on its function: I64Attr
inline constexpr llvm::StringLiteral kDestinationsAttr = "plan.destinations"; // I64Attr
inline constexpr llvm::StringLiteral kKindAttr = "plan.kind";
inline constexpr llvm::StringLiteral kScheduleAttr = "plan.schedule";
inline constexpr llvm::StringLiteral kScratchAttr = "plan.scratch"; // I64Attr, after allocate-scratch
inline constexpr llvm::StringLiteral kCutAttr = "plan.cut";         // UnitAttr on an scf.forall over the tiles of the launch

std::unique_ptr<mlir::Pass> createOutlineCodePass();
// On a code module:
std::unique_ptr<mlir::Pass> createVectorizeRowsPass();
std::unique_ptr<mlir::Pass> createEmitAttentionPass();
std::unique_ptr<mlir::Pass> createFuseElementwisePass();
std::unique_ptr<mlir::Pass> createEmitConvolutionsPass();
std::unique_ptr<mlir::Pass> createEmitWinogradPass();
std::unique_ptr<mlir::Pass> createEmitWindowsPass();
std::unique_ptr<mlir::Pass> createEmitContractionsPass();
std::unique_ptr<mlir::Pass> createTileKernelsPass();
std::unique_ptr<mlir::Pass> createDecomposeKernelOpsPass();
std::unique_ptr<mlir::Pass> createVectorizeReductionsPass();
std::unique_ptr<mlir::Pass> createBufferizeKernelsPass();
std::unique_ptr<mlir::Pass> createAllocateScratchPass();
std::unique_ptr<mlir::Pass> createVectorizeTransposesPass();
std::unique_ptr<mlir::Pass> createLowerToLoopsPass();
std::unique_ptr<mlir::Pass> createSplitLoopsPass();
std::unique_ptr<mlir::Pass> createMapTilesPass();
std::unique_ptr<mlir::Pass> createLowerMathPass();
// On the variant's module:
std::unique_ptr<mlir::Pass> createEmitImagePass(const BackendOptions &options = {});

/// From `op` or what encloses it. Emits the error itself.
llvm::FailureOr<Target> targetOf(mlir::Operation *op);

/// The scalar argument that is the size of dim `dim` of the tensor or memref argument `argument`, or null.
mlir::Value sizeOfArgument(mlir::func::FuncOp func, unsigned argument, unsigned dim);

std::optional<PackedOperand> packedOperand(plan::KernelOp kernel, const Target &target);

plan::ScheduleAttr defaultSchedule(plan::KernelOp kernel, llvm::ArrayRef<std::optional<int64_t>> domain, const Target &target);

} // namespace dlc::cpu

#endif
