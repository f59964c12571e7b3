// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the dlc dialect that backends see.

#ifndef DLC_IR_KERNELOPS_H
#define DLC_IR_KERNELOPS_H

#include "dlc/IR/Dialect.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "dlc/IR/KernelInterfaces.h.inc"

namespace dlc {
/// The loops of ops that slide windows: those over `init`.
llvm::SmallVector<mlir::Range> domainOfWindows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value init);

/// What Winograd's algorithm transforms by, along one axis: m results y of m + 2 cells d and 3 weights g are y = output * ((filter * g) . (input * d)), where
/// . multiplies element by element. (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks.)
struct WinogradMatrices {
  using Matrix = llvm::SmallVector<llvm::SmallVector<double>>;
  Matrix output, filter, input; // m x (m + 2), (m + 2) x 3, (m + 2) x (m + 2)
};
/// For tiles of m = 2 or 4 results. The numbers of `output` and `input` are floats.
WinogradMatrices winogradMatrices(int64_t m);
} // namespace dlc

#define GET_OP_CLASSES
#include "dlc/IR/KernelOps.h.inc"

namespace dlc {
/// How many cells of the window that is number `window` along a spatial axis (of `size` elements) an average counts there.
mlir::Value cellsOfWindow(mlir::OpBuilder &b, mlir::Location loc, KernelWindowOp op, unsigned axis, mlir::Value window, mlir::Value size);
} // namespace dlc

#endif
