// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Sums of products, as the passes of this backend see them: which loop is what, the register tile that suits a target, and the
// format in which constant operands are packed.

#ifndef DLC_BACKENDS_CPU_CONTRACTION_H
#define DLC_BACKENDS_CPU_CONTRACTION_H

#include "dlc/Plan/Plan.h"
#include "dlc/Target/Target.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace dlc::cpu {

/// A contraction acc + a * b (with casts of a and b) whose loops have been told apart.
struct Contraction {
  mlir::linalg::GenericOp op;
  unsigned narrow = 0, wide = 1; // operand numbers: `wide` depends on the columns, `narrow` does not
  unsigned column = 0;           // loops; the columns are the result's last dim
  std::optional<unsigned> row;   // a dim of the result that `narrow` sees and `wide` does not
  std::optional<unsigned> term;  // the loop over terms that lie side by side in both operands; else the columns do, in `wide`

  mlir::AffineMap map(unsigned operand) const { return mlir::linalg::GenericOp(op).getIndexingMapsArray()[operand]; }
  mlir::Type accumulator() const { return mlir::linalg::GenericOp(op).getBody()->getArgument(2).getType(); }
};

/// Nothing if the op is no contraction, or neither its columns nor its terms lie side by side.
std::optional<Contraction> matchContraction(mlir::linalg::GenericOp op);

/// What is computed at a time: `rows` x `columns` accumulators in registers, as vectors of `vector` lanes along the columns, or, where
/// terms lie side by side, one vector along the terms for each accumulator.
struct RegisterTile {
  int64_t rows, columns, vector;
};
/// For accumulators of `bits` bits, along columns that lie side by side.
RegisterTile registerTile(unsigned bits, const Target &target);
/// `schedule` may be null, and may say otherwise.
RegisterTile registerTile(const Contraction &c, const Target &target, plan::ScheduleAttr schedule = nullptr);

/// Columns of a panel of a packed operand. One number for all targets, so that variants share packed constants; register tiles
/// are a multiple or a divisor of it.
inline constexpr int64_t kPanel = 16;

} // namespace dlc::cpu

#endif
