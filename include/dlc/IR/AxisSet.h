// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// A set of axes that is known only at run time, as dimension expressions: of each axis of a tensor, whether the set holds it. How
// many axes the set holds is known, so the rank of what is made with it is known too.

#ifndef DLC_IR_AXISSET_H
#define DLC_IR_AXISSET_H

#include "dlc/IR/ShapeContext.h"

namespace dlc {

class AxisSet {
public:
  /// `axes` are different and in 0 .. rank - 1.
  AxisSet(ShapeContext &context, llvm::ArrayRef<DimExpr> axes, int64_t rank);

  /// For each axis 1 where it is in the set, else 0.
  llvm::ArrayRef<DimExpr> getFlags() const { return flags; }
  /// The dims of the axes outside of the set. How many there are is known; which they are is chosen at run time.
  llvm::SmallVector<DimExpr> without(llvm::ArrayRef<DimExpr> dims) const;
  /// `dims` with an axis of size 1 for each one of the set, which counts the axes of the result.
  llvm::SmallVector<DimExpr> withOnes(llvm::ArrayRef<DimExpr> dims) const;

private:
  ShapeContext &context;
  int64_t count;
  llvm::SmallVector<DimExpr> flags;
};

/// Each dim as two, the one outside of the set and the one in it: the dim itself and 1, or 1 and the dim. The same elements in the
/// same order, so a reshape gives them.
llvm::SmallVector<DimExpr> splitDims(llvm::ArrayRef<DimExpr> dims, llvm::ArrayRef<DimExpr> flags);

} // namespace dlc

#endif
