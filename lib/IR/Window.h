// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Windows that slide over the spatial axes of a tensor: what convolution and pooling share.

#ifndef DLC_LIB_IR_WINDOW_H
#define DLC_LIB_IR_WINDOW_H

#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace dlc {

/// One spatial axis.
struct WindowAxis {
  DimExpr size, kernel;      // of the axis, of the window
  int64_t stride, dilation;
  DimExpr begin, end, count; // padding before and behind, number of windows
};

/// Fills in what comes of pads and autoPad; lists may be empty, which means ones or zeros. Emits the error itself.
llvm::FailureOr<llvm::SmallVector<WindowAxis>> resolveWindows(ShapeContext &context, llvm::ArrayRef<DimExpr> sizes, llvm::ArrayRef<DimExpr> kernel,
                                                              llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations,
                                                              llvm::ArrayRef<int64_t> pads, llvm::StringRef autoPad, bool ceilMode);

/// Lists that may be empty, with an entry for each of `rank` axes.
llvm::SmallVector<int64_t> onesOr(llvm::ArrayRef<int64_t> list, size_t rank);

/// How many cells of the window that is number `window` along an axis of `size` elements lie on it; with `end`, on it and its padding.
mlir::Value countCells(mlir::OpBuilder &b, mlir::Location loc, mlir::Value window, mlir::Value size, int64_t kernel, int64_t stride, int64_t dilation,
                       mlir::Value begin, mlir::Value end);

/// Loops over the cells of one window: `cell` gets the indices inside the window, those of the operand along its spatial axes,
/// whether those lie in the operand, and the values so far.
llvm::SmallVector<mlir::Value>
loopOverWindow(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange kernel, mlir::ValueRange sizes, mlir::ValueRange windows,
               llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations, mlir::ValueRange begins, mlir::ValueRange initial,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange inWindow, mlir::ValueRange at,
                                                                 mlir::Value isInside, mlir::ValueRange carried)>
                   cell);

} // namespace dlc

#endif
