// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Kernels whose reductions all run along the innermost dims: what their ops have to do with rows, and the passes over a
// row that they need. vectorize-rows writes them.

#ifndef DLC_BACKENDS_CPU_ROWKERNEL_H
#define DLC_BACKENDS_CPU_ROWKERNEL_H

#include "Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace dlc::cpu {

class RowKernel {
public:
  explicit RowKernel(mlir::func::FuncOp func)
      : func(func), ret(llvm::cast<mlir::func::ReturnOp>(func.getBody().front().getTerminator())) {}

  /// Whether the kernel is one. Nothing is changed.
  bool analyse();

protected:
  /// Operations that cost less than a trip through memory.
  static constexpr unsigned kCheap = 6;

  /// One op of the kernel. What it computes is a row, or one number a row.
  struct Step {
    mlir::linalg::GenericOp op;
    bool isReduction = false, isNumber = false;
    unsigned pass =
        0; // of a row, and of what is reduced: the first that can compute it; of a number: the first that can use it
    mlir::Operation *combiner = nullptr; // of a reduction

    bool isRow() const { return !isReduction && !isNumber; }
  };

  /// The tensor that a value renames by adding or dropping dims of 1.
  static mlir::Value withoutRenaming(mlir::Value v);
  /// Whether the op, which stands in a body, has a form on vectors.
  static bool isVectorizable(mlir::Operation &op);
  static unsigned costOf(mlir::linalg::GenericOp op);

  /// Whether indices in a body end with those along the row.
  bool isRowIndex(mlir::ValueRange indices) const;
  /// The rows, and what is reduced, whose value at each position a pass needs; without those that it can load.
  llvm::SetVector<Step *> neededRows(unsigned pass);

  mlir::func::FuncOp func;
  mlir::func::ReturnOp ret;
  unsigned outer = 0, inner = 0; // loops over rows, and dims that make a row
  llvm::SmallVector<int64_t> tiles;
  llvm::SmallVector<std::unique_ptr<Step>> steps;
  llvm::DenseMap<mlir::Operation *, Step *> stepOf;
  unsigned passes = 0;
  llvm::DenseMap<mlir::Value, unsigned>
      home; // rows that are in memory from their pass on: the number of the destination

private:
  bool addStep(mlir::linalg::GenericOp op);
  bool addReduction(Step &step);
  bool addElementwise(Step &step);
  bool mayRead(Step &step, mlir::OpOperand &operand);
  bool mayEvaluate(Step &step);
  bool dependsOnRow(mlir::Value v) const;
  void plan();
  unsigned costAgain(Step &step);
};

} // namespace dlc::cpu

#endif
