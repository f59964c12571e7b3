// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What the emitters of convolutions and of windows share: the element-wise ops behind a root whose result is [batch, spatial..., channels], computed
// where its elements are in registers, and stored.

#ifndef DLC_BACKENDS_CPU_WINDOWNEST_H
#define DLC_BACKENDS_CPU_WINDOWNEST_H

#include "MemoryNest.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace dlc::cpu {

class WindowNest : protected MemoryNest {
protected:
  WindowNest(mlir::RewriterBase &rewriter, mlir::func::FuncOp func, mlir::Operation *root)
      : MemoryNest(rewriter, root->getLoc(), func), root(root), rank(llvm::cast<mlir::RankedTensorType>(root->getResult(0).getType()).getRank()) {}
  ~WindowNest() = default;

  /// Whether all that the kernel returns is the root's result, or element-wise in it. Nothing is changed.
  bool matchEpilogue();
  /// Call first: the kernel's sizes, then memory.
  void enterKernel(mlir::Value x);

  mlir::Value extentOf(unsigned loop) override { return extents[loop]; }

  /// Where results are. The spatial indices, or `flat`, which is all of them as one.
  struct Place {
    mlir::Value batch, flat;
    llvm::SmallVector<mlir::Value> spatial;
    mlir::Value channel;
  };
  /// The index along a spatial axis; worked out of `flat` where there is only that.
  mlir::Value spatial(Place &place, unsigned axis);
  /// The root's results `value` (a vector along channels, or one) go through the ops behind it, and out.
  void writeResults(mlir::Value value, Place place, int64_t lanes, mlir::Value mask = {});

  mlir::Operation *root;
  unsigned rank;
  llvm::SmallVector<mlir::Value> extents;     // of the result
  llvm::SmallVector<mlir::Value> sizes;       // of x
  bool vectorEpilogue = true;                 // it can be computed on vectors along the channels
  unsigned work = 0;                          // of the epilogue, in cheap operations an element

private:
  mlir::Value read(mlir::Value tensor, mlir::AffineMap map, Place &place, int64_t lanes, mlir::Value mask);
  mlir::Value indexOf(Place &place, unsigned loop);
  /// The memory of a tensor of the result's dims as [batch, spatial, channels].
  mlir::Value flatMemory(mlir::Value tensor);

  llvm::SmallVector<mlir::linalg::GenericOp> epilogue;
  llvm::SmallVector<mlir::Value> returned;
  llvm::DenseMap<mlir::Value, mlir::Value> flat;
};

} // namespace dlc::cpu

#endif
