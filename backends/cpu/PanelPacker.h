// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Copies columns of a contraction's wide operand into panels while the kernel runs, so that all rows read them from memory that lies
// together: buffer[panel][term][column in the panel].

#ifndef DLC_BACKENDS_CPU_PANELPACKER_H
#define DLC_BACKENDS_CPU_PANELPACKER_H

#include "Contraction.h"
#include "LoopNest.h"

namespace dlc::cpu {

/// Columns from `begin` (within the tile of the launch) on and terms [from, end), in panels of a register tile's columns.
struct Panels {
  mlir::Value begin, from;
  mlir::OpFoldResult end;
  mlir::Value isFirst; // the sums start here, or go on from a buffer; null where there is but one piece of them
};

class PanelPacker final : LoopNest {
public:
  /// `terms`: the loop of the sums. `tileColumn`: where the launch's tile begins. `indices`: of the loops of the contraction.
  PanelPacker(mlir::RewriterBase &rewriter, const Contraction &c, unsigned terms, const RegisterTile &tile, mlir::OpFoldResult tileColumn,
              llvm::ArrayRef<mlir::Value> indices)
      : LoopNest(rewriter, mlir::linalg::GenericOp(c.op).getLoc()), c(c), terms(terms), tile(tile), tileColumn(tileColumn) {
    begin(indices.size());
    this->indices.assign(indices.begin(), indices.end());
  }

  /// The buffer filled. Columns end at `end` (within the tile); what is left of the last panel becomes zero.
  mlir::Value pack(mlir::Value buffer, const Panels &to, mlir::OpFoldResult end);

private:
  State packColumns(State state, const Panels &to, mlir::Value column, std::optional<mlir::OpFoldResult> end);
  State packTerms(State state, const Panels &to, mlir::Value column);
  State packTermsOfLast(State state, const Panels &to, mlir::Value column, mlir::OpFoldResult end);

  /// `lanes` elements from a column and term on, along whichever lie side by side.
  mlir::Value read(mlir::Value column, mlir::Value term, int64_t lanes, mlir::Value mask = {});
  void store(State &state, mlir::Value value, mlir::Value panel, mlir::Value term, mlir::Value lane, int64_t lanes);
  mlir::Value panelOf(const Panels &to, mlir::Value column);
  mlir::Value extentOf(unsigned) override { llvm_unreachable("panels say which terms"); }

  const Contraction &c;
  unsigned terms;
  const RegisterTile &tile;
  mlir::OpFoldResult tileColumn;
  const Panels *current = nullptr;
};

/// As many vectors as they have lanes, transposed: line i of the result holds lane i of each line.
llvm::SmallVector<mlir::Value> transposeLanes(mlir::OpBuilder &b, mlir::Location loc, llvm::SmallVector<mlir::Value> lines);

} // namespace dlc::cpu

#endif
