// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What the emitters that write loops over a linalg op themselves share: the index of each of its loops at the place where code is
// being written, scf.for nests that set them, and arithmetic on indices that folds what is known.

#ifndef DLC_BACKENDS_CPU_LOOPNEST_H
#define DLC_BACKENDS_CPU_LOOPNEST_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
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
    zero = number(0);
    indices.assign(loops, zero);
  }

  /// The indices of an operand's element.
  llvm::SmallVector<mlir::Value> at(mlir::AffineMap map) {
    llvm::SmallVector<mlir::Value> result;
    for (mlir::AffineExpr e : map.getResults()) {
      auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(e);
      int64_t constant = dim ? 0 : llvm::cast<mlir::AffineConstantExpr>(e).getValue();
      result.push_back(dim ? indices[dim.getPosition()] : constant ? number(constant) : zero);
    }
    return result;
  }

  llvm::SmallVector<mlir::Value> loop(unsigned which, mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange carried, Body body) {
    auto nest = mlir::scf::ForOp::create(rewriter, loc, begin, end, number(step), carried);
    mlir::OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(nest.getBody());
    indices[which] = nest.getInductionVar();
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

  /// A loop that carries nothing; the code that follows goes inside of it.
  void enter(unsigned loop, mlir::Value begin, mlir::Value end, int64_t step) {
    auto nest = mlir::scf::ForOp::create(rewriter, loc, begin, end, number(step));
    rewriter.setInsertionPointToStart(nest.getBody());
    indices[loop] = nest.getInductionVar();
  }

  /// Values that a loop carries.
  using State = llvm::SmallVector<mlir::Value>;

  /// A loop; nothing, or its body alone, where it is known to run never or once.
  State range(mlir::OpFoldResult begin, mlir::OpFoldResult end, int64_t step, State state,
              llvm::function_ref<State(mlir::Value, State)> body) {
    std::optional<int64_t> distance =
        mlir::getConstantIntValue(fold(rewriter.getAffineSymbolExpr(1) - rewriter.getAffineSymbolExpr(0), {begin, end}));
    if (distance && *distance <= 0)
      return state;
    if (distance && *distance <= step)
      return body(asValue(begin), std::move(state));
    auto each = mlir::scf::ForOp::create(rewriter, loc, asValue(begin), asValue(end), number(step), state);
    mlir::OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(each.getBody());
    State next = body(each.getInductionVar(), State(each.getRegionIterArgs()));
    if (!next.empty()) // else it is there already
      mlir::scf::YieldOp::create(rewriter, loc, next);
    return State(each.getResults());
  }

  mlir::OpFoldResult fold(mlir::AffineExpr e, llvm::ArrayRef<mlir::OpFoldResult> symbols) {
    return mlir::affine::makeComposedFoldedAffineApply(rewriter, loc, e, symbols);
  }
  mlir::Value asValue(mlir::OpFoldResult v) { return mlir::getValueOrCreateConstantIndexOp(rewriter, loc, v); }
  mlir::Value number(int64_t value) { return mlir::arith::ConstantIndexOp::create(rewriter, loc, value); }
  mlir::Value plus(mlir::OpFoldResult x, mlir::OpFoldResult y) {
    return asValue(fold(rewriter.getAffineSymbolExpr(0) + rewriter.getAffineSymbolExpr(1), {x, y}));
  }
  mlir::Value plus(mlir::OpFoldResult x, int64_t y) { return y ? plus(x, rewriter.getIndexAttr(y)) : asValue(x); }
  mlir::Value minus(mlir::OpFoldResult x, mlir::OpFoldResult y) {
    return asValue(fold(rewriter.getAffineSymbolExpr(0) - rewriter.getAffineSymbolExpr(1), {x, y}));
  }
  mlir::OpFoldResult smaller(mlir::OpFoldResult x, mlir::OpFoldResult y) {
    auto map = mlir::AffineMap::get(0, 2, {rewriter.getAffineSymbolExpr(0), rewriter.getAffineSymbolExpr(1)}, rewriter.getContext());
    return mlir::affine::makeComposedFoldedAffineMin(rewriter, loc, map, {x, y});
  }
  /// Where the last whole piece of `step` from `begin` on ends.
  mlir::OpFoldResult wholePieces(mlir::OpFoldResult begin, mlir::OpFoldResult end, int64_t step) {
    mlir::AffineExpr from = rewriter.getAffineSymbolExpr(0), stop = rewriter.getAffineSymbolExpr(1);
    return fold(from + (stop - from).floorDiv(step) * step, {begin, end});
  }

  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  mlir::Value zero;
  llvm::SmallVector<mlir::Value> indices; // one for each loop
};

} // namespace dlc::cpu

#endif
