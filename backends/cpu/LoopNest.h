// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What the emitters that write loops over a linalg op themselves share: the index of each of its loops at the place where code is
// being written, and scf.for nests that set them.

#ifndef DLC_BACKENDS_CPU_LOOPNEST_H
#define DLC_BACKENDS_CPU_LOOPNEST_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/PatternMatch.h"

namespace dlc::cpu {

class LoopNest {
protected:
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>;

  LoopNest(mlir::RewriterBase &rewriter, mlir::Location loc) : rewriter(rewriter), loc(loc) {}
  ~LoopNest() = default;

  /// How often a loop of the op runs.
  virtual mlir::Value extentOf(unsigned loop) = 0;

  /// Call first, where the code goes: all indices are 0.
  void begin(unsigned loops) {
    zero = mlir::arith::ConstantIndexOp::create(rewriter, loc, 0);
    indices.assign(loops, zero);
  }

  /// The indices of an operand's element.
  llvm::SmallVector<mlir::Value> at(mlir::AffineMap map) {
    llvm::SmallVector<mlir::Value> result;
    for (mlir::AffineExpr e : map.getResults()) {
      auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(e);
      int64_t constant = dim ? 0 : llvm::cast<mlir::AffineConstantExpr>(e).getValue();
      result.push_back(dim        ? indices[dim.getPosition()]
                       : constant ? mlir::Value(mlir::arith::ConstantIndexOp::create(rewriter, loc, constant))
                                  : zero);
    }
    return result;
  }

  llvm::SmallVector<mlir::Value> loop(unsigned number, mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange carried, Body body) {
    auto nest = mlir::scf::ForOp::create(rewriter, loc, begin, end, mlir::arith::ConstantIndexOp::create(rewriter, loc, step), carried);
    mlir::OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(nest.getBody());
    indices[number] = nest.getInductionVar();
    llvm::SmallVector<mlir::Value> next = body(nest.getRegionIterArgs());
    mlir::scf::YieldOp::create(rewriter, loc, next);
    return llvm::SmallVector<mlir::Value>(nest.getResults());
  }

  /// One loop in another, each over its whole extent.
  llvm::SmallVector<mlir::Value> loops(llvm::ArrayRef<unsigned> numbers, mlir::ValueRange carried, Body body) {
    if (numbers.empty())
      return body(carried);
    return loop(numbers.front(), zero, extentOf(numbers.front()), 1, carried,
                [&](mlir::ValueRange inner) { return loops(numbers.drop_front(), inner, body); });
  }

  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  mlir::Value zero;
  llvm::SmallVector<mlir::Value> indices; // one for each loop
};

} // namespace dlc::cpu

#endif
