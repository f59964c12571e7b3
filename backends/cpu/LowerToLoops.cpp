// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// lower-to-loops: linalg on memory becomes loops over elements, in the order that is good for memory: innermost the dim along
// which most accesses are contiguous. LLVM vectorises them.

#include "LoopNest.h"
#include "Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// How good a loop is as the innermost one.
int score(linalg::GenericOp op, unsigned loop) {
  int result = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!map.isFunctionOfDim(loop)) {
      result += 1;
      continue;
    }
    bool contiguous = map.getResults().back() == getAffineDimExpr(loop, op.getContext());
    for (AffineExpr outer : map.getResults().drop_back())
      contiguous &= !outer.isFunctionOfDim(loop);
    // Strided stores cost more than strided loads.
    result += contiguous ? 2 : op.isDpsInit(&operand) ? -3 : -2;
  }
  return result;
}

/// Moves the best loop to the innermost place. Among equal ones the innermost stays.
linalg::GenericOp orderLoops(linalg::GenericOp op, RewriterBase &rewriter) {
  unsigned loops = op.getNumLoops();
  if (loops < 2)
    return op;
  unsigned best = loops - 1;
  for (unsigned loop = loops - 1; loop-- > 0;)
    if (score(op, loop) > score(op, best))
      best = loop;
  if (best == loops - 1)
    return op;
  SmallVector<unsigned> order;
  for (unsigned loop = 0; loop < loops; ++loop)
    if (loop != best)
      order.push_back(loop);
  order.push_back(best);
  auto interchanged = linalg::interchangeGenericOp(rewriter, op, order);
  return succeeded(interchanged) ? *interchanged : op;
}

/// Where the innermost loop strides through an operand along which another loop is contiguous (a transpose), both go in small
/// squares: then all of a cache line is used while it is near.
linalg::GenericOp cutIntoSquares(linalg::GenericOp op, RewriterBase &rewriter) {
  constexpr int64_t kSquare = 16;
  unsigned inner = op.getNumLoops() - 1;
  std::optional<unsigned> other;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isProjectedPermutation() || map.getNumResults() < 2 || !map.isFunctionOfDim(inner))
      continue;
    unsigned last = cast<AffineDimExpr>(map.getResults().back()).getPosition();
    if (last != inner)
      other = last;
  }
  auto ranges = op.getStaticLoopRanges();
  auto isShort = [&](unsigned loop) { return !ShapedType::isDynamic(ranges[loop]) && ranges[loop] <= kSquare; };
  if (!other || op.getNumReductionLoops() || isShort(inner) || isShort(*other))
    return op;
  SmallVector<OpFoldResult> sizes(op.getNumLoops(), rewriter.getIndexAttr(0));
  sizes[inner] = sizes[*other] = rewriter.getIndexAttr(kSquare);
  auto tiled = scf::tileUsingSCF(rewriter, cast<TilingInterface>(op.getOperation()), scf::SCFTilingOptions().setTileSizes(sizes));
  if (failed(tiled))
    return op;
  rewriter.eraseOp(op);
  return cast<linalg::GenericOp>(tiled->tiledOps.front());
}

/// Several terms of a reduction at a time, in order, where the innermost loop goes over results that lie side by side
/// and the one outside of it over their terms: what is reduced so far is then read and written once for all of them.
class ReductionOverRows final : LoopNest {
public:
  static constexpr int64_t kRows = 8;

  ReductionOverRows(RewriterBase &rewriter, linalg::GenericOp op) : LoopNest(rewriter, op.getLoc()), op(op), depth(op.getNumLoops()) {}

  bool isOne() {
    if (depth < 2 || op.getIteratorTypesArray()[depth - 1] != utils::IteratorType::parallel ||
        op.getIteratorTypesArray()[depth - 2] != utils::IteratorType::reduction)
      return false;
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      return !isa<MemRefType>(operand.get().getType())
                 ? op.isDpsInput(&operand)
                 : llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
    });
  }

  void emit() {
    rewriter.setInsertionPoint(op);
    domain = cast<TilingInterface>(op.getOperation()).getIterationDomain(rewriter);
    begin(depth);
    for (unsigned loop = 0; loop + 2 < depth; ++loop)
      enter(loop, zero, extentOf(loop), 1);
    Value rows = extentOf(depth - 2), columns = extentOf(depth - 1);
    Value end = arith::SubIOp::create(rewriter, loc, rows, arith::RemUIOp::create(rewriter, loc, rows, number(kRows)));
    for (auto [from, to, count] : {std::tuple(zero, end, kRows), std::tuple(end, rows, int64_t(1))}) {
      OpBuilder::InsertionGuard guard(rewriter);
      enter(depth - 2, from, to, count);
      enter(depth - 1, zero, columns, 1);
      combine(count);
    }
    rewriter.eraseOp(op);
  }

private:
  void combine(int64_t count) {
    SmallVector<Value> results;
    for (OpOperand &init : op.getDpsInitsMutable())
      results.push_back(memref::LoadOp::create(rewriter, loc, init.get(), at(op.getMatchingIndexingMap(&init))));
    Value first = indices[depth - 2];
    for (int64_t i = 0; i < count; ++i) {
      indices[depth - 2] = i ? Value(arith::AddIOp::create(rewriter, loc, first, number(i))) : first;
      IRMapping body;
      for (auto [argument, value] : llvm::zip_equal(op.getRegionOutputArgs(), results))
        body.map(argument, value);
      for (OpOperand *input : op.getDpsInputOperands())
        body.map(op.getMatchingBlockArgument(input),
                 isa<MemRefType>(input->get().getType())
                     ? Value(memref::LoadOp::create(rewriter, loc, input->get(), at(op.getMatchingIndexingMap(input))))
                     : input->get());
      for (Operation &inner : op.getBody()->without_terminator())
        if (auto index = dyn_cast<linalg::IndexOp>(inner))
          body.map(index, indices[index.getDim()]);
        else
          rewriter.clone(inner, body);
      for (auto [result, yielded] : llvm::zip_equal(results, op.getBody()->getTerminator()->getOperands()))
        result = body.lookupOrDefault(yielded);
    }
    indices[depth - 2] = first;
    for (auto [init, result] : llvm::zip_equal(op.getDpsInitsMutable(), results))
      memref::StoreOp::create(rewriter, loc, result, init.get(), at(op.getMatchingIndexingMap(&init)));
  }

  Value extentOf(unsigned loop) override { return asValue(domain[loop].size); }

  linalg::GenericOp op;
  unsigned depth; // loops
  SmallVector<Range> domain;
};

struct LowerToLoops : PassWrapper<LowerToLoops, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLoops)
  StringRef getArgument() const final { return "lower-to-loops"; }
  StringRef getDescription() const final { return "Rewrite linalg on memory into loops"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      if (isa<linalg::CopyOp>(op) && op->getOperand(0) == op->getOperand(1)) {
        op->erase();
        continue;
      }
      rewriter.setInsertionPoint(op);
      if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation())) {
        generic = orderLoops(generic, rewriter);
        rewriter.setInsertionPoint(generic);
        if (generic.getNumLoops() > 1)
          generic = cutIntoSquares(generic, rewriter);
        if (ReductionOverRows reduction(rewriter, generic); reduction.isOne()) {
          reduction.emit();
          continue;
        }
        op = generic;
        rewriter.setInsertionPoint(op);
      }
      if (failed(linalg::linalgOpToLoops(rewriter, op))) {
        op.emitError("cannot be written as loops");
        return signalPassFailure();
      }
      rewriter.eraseOp(op);
    }
  }
};

} // namespace

std::unique_ptr<Pass> createLowerToLoopsPass() { return std::make_unique<LowerToLoops>(); }

} // namespace dlc::cpu
