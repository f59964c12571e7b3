// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// split-loops: takes out of innermost loops what is the same for all of their elements, and makes the branches there
// that are decided for whole runs of elements loops of their own:
//
//   for j: x = load at[i]; if x < n: d[i, j] = t[x, j] else raise     ->  x = load at[i]; if x < n: for j: .. else for
//   j: .. for j: if j < e: d[i, j] = a[i, j] else d[i, j] = b[i, j - e]     ->  for j in [0, e): ..   for j in [e, n):
//   ..
//
// So Gather tests an index once a row, Concat and Pad test nothing inside, and what is left are copies of contiguous
// runs, which LLVM vectorises.

#include "Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Loops made of one: enough for the longest Concat of real models, and a limit to code.
constexpr unsigned kMostLoops = 64;

class LoopSplitter {
public:
  explicit LoopSplitter(scf::ForOp loop) : b(loop) { split(loop, 1); }

private:
  static bool isOutside(Value v, scf::ForOp loop) { return !loop->isAncestor(v.getParentBlock()->getParentOp()); }

  /// Memory that the kernel only reads.
  static bool isReadOnly(Value memory) {
    while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
      memory = view.getViewSource();
    auto argument = dyn_cast<BlockArgument>(memory);
    auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    return func && argument.getArgNumber() < func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt();
  }

  static bool isSameForAll(Operation &op, scf::ForOp loop) {
    if (op.getNumRegions() || op.hasTrait<OpTrait::IsTerminator>() ||
        !llvm::all_of(op.getOperands(), [&](Value v) { return isOutside(v, loop); }))
      return false;
    auto load = dyn_cast<memref::LoadOp>(op);
    return load ? isReadOnly(load.getMemRef()) : isPure(&op);
  }

  /// What is added to the loop's variable to give `v`, where it is that: the invariant summands.
  static bool isShifted(Value v, scf::ForOp loop, SmallVector<std::pair<Value, bool>> &added, unsigned depth = 0) {
    if (v == loop.getInductionVar())
      return true;
    if (depth > 8)
      return false;
    if (auto add = v.getDefiningOp<arith::AddIOp>())
      for (auto [x, y] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
        if (isOutside(y, loop) && isShifted(x, loop, added, depth + 1))
          return added.push_back({y, true}), true;
    if (auto sub = v.getDefiningOp<arith::SubIOp>())
      if (isOutside(sub.getRhs(), loop) && isShifted(sub.getLhs(), loop, added, depth + 1))
        return added.push_back({sub.getRhs(), false}), true;
    if (auto apply = v.getDefiningOp<affine::AffineApplyOp>()) {
      auto sum = dyn_cast<AffineBinaryOpExpr>(apply.getAffineMap().getResult(0));
      if (!sum || sum.getKind() != AffineExprKind::Add || apply.getMapOperands().size() != 2)
        return false;
      auto operandOf = [&](AffineExpr e) -> Value {
        if (auto dim = dyn_cast<AffineDimExpr>(e))
          return apply.getMapOperands()[dim.getPosition()];
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          return apply.getMapOperands()[apply.getAffineMap().getNumDims() + symbol.getPosition()];
        return {};
      };
      Value x = operandOf(sum.getLHS()), y = operandOf(sum.getRHS());
      if (!x || !y)
        return false;
      if (isOutside(x, loop))
        std::swap(x, y);
      if (isOutside(y, loop) && isShifted(x, loop, added, depth + 1))
        return added.push_back({y, true}), true;
    }
    return false;
  }

  /// Where in the loop the condition changes from true to false (`isLess`) or the other way; null where it does not do
  /// that once.
  Value turningPoint(Value condition, scf::ForOp loop, bool &isLess) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || !isa<IndexType>(compare.getLhs().getType()) || !isOutside(compare.getRhs(), loop))
      return {};
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
      isLess = true;
      break;
    case arith::CmpIPredicate::sge:
      isLess = false;
      break;
    default:
      return {};
    }
    SmallVector<std::pair<Value, bool>> added;
    if (!isShifted(compare.getLhs(), loop, added))
      return {};
    Value point = compare.getRhs();
    for (auto [value, isAdded] : added)
      point = isAdded ? Value(arith::SubIOp::create(b, loop.getLoc(), point, value))
                      : Value(arith::AddIOp::create(b, loop.getLoc(), point, value));
    return point;
  }

  /// A copy of the loop from `begin` to `end` in which the branch `number` of its block's ops goes the way that `way`
  /// says.
  scf::ForOp copy(scf::ForOp loop, Value begin, Value end, unsigned number, bool way) {
    IRMapping mapping;
    auto clone = cast<scf::ForOp>(b.clone(*loop, mapping));
    clone.setLowerBound(begin);
    clone.setUpperBound(end);
    auto branch = cast<scf::IfOp>(*std::next(clone.getBody()->begin(), number));
    Region &taken = way ? branch.getThenRegion() : branch.getElseRegion();
    if (!taken.empty()) {
      Operation *yield = taken.front().getTerminator();
      branch->replaceAllUsesWith(yield->getOperands());
      yield->erase();
      clone.getBody()->getOperations().splice(branch->getIterator(), taken.front().getOperations());
    }
    branch.erase();
    return clone;
  }

  void split(scf::ForOp loop, unsigned loops) {
    Location loc = loop.getLoc();
    if (loops > kMostLoops || loop.getNumResults() || !isConstantOne(loop.getStep()))
      return;
    Block *body = loop.getBody();
    if (llvm::none_of(*body, llvm::IsaPred<scf::IfOp>))
      return; // what is left, LLVM does itself
    // Nothing may be read before it is known that the loop runs.
    bool isGuarded = false;
    for (Operation &op : llvm::make_early_inc_range(*body))
      if (isSameForAll(op, loop)) {
        if (isa<memref::LoadOp>(op) && !std::exchange(isGuarded, true))
          guard(loop);
        op.moveBefore(loop);
      }
    for (auto [number, op] : llvm::enumerate(*body)) {
      auto branch = dyn_cast<scf::IfOp>(op);
      if (!branch)
        continue;
      b.setInsertionPoint(loop);
      Value condition = branch.getCondition();
      if (isOutside(condition, loop)) {
        auto outer = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
        for (bool way : {true, false}) {
          b.setInsertionPointToStart(way ? outer.thenBlock() : outer.elseBlock());
          split(copy(loop, loop.getLowerBound(), loop.getUpperBound(), number, way), loops * 2);
        }
        loop.erase();
        return;
      }
      bool isLess = false;
      if (Value point = turningPoint(condition, loop, isLess)) {
        Value first = arith::MaxSIOp::create(b, loc, loop.getLowerBound(),
                                             arith::MinSIOp::create(b, loc, point, loop.getUpperBound()));
        scf::ForOp before = copy(loop, loop.getLowerBound(), first, number, isLess),
                   after = copy(loop, first, loop.getUpperBound(), number, !isLess);
        loop.erase();
        split(before, loops + 1);
        split(after, loops + 1);
        return;
      }
    }
  }

  /// Puts the loop under a test that it runs at all.
  void guard(scf::ForOp loop) {
    b.setInsertionPoint(loop);
    Value runs =
        arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    auto test = scf::IfOp::create(b, loop.getLoc(), runs, /*withElseRegion=*/false);
    loop->moveBefore(test.thenBlock()->getTerminator());
  }

  static bool isConstantOne(Value v) { return isConstantIntValue(v, 1); }

  OpBuilder b;
};

struct SplitLoops : PassWrapper<SplitLoops, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SplitLoops)
  StringRef getArgument() const final { return "split-loops"; }
  StringRef getDescription() const final {
    return "Take branches that are decided for many elements out of innermost loops";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<scf::ForOp> innermost;
    getOperation().walk([&](scf::ForOp loop) {
      bool hasLoop = false;
      loop.getBody()->walk([&](LoopLikeOpInterface) { hasLoop = true; });
      if (!hasLoop)
        innermost.push_back(loop);
    });
    for (scf::ForOp loop : innermost)
      LoopSplitter{loop};
  }
};

} // namespace

std::unique_ptr<Pass> createSplitLoopsPass() { return std::make_unique<SplitLoops>(); }

} // namespace dlc::cpu
