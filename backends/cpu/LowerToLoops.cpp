// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// lower-to-loops: linalg on memory becomes loops over elements, in the order that is good for memory: innermost the dim along
// which most accesses are contiguous. LLVM vectorises them.

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
class ReductionOverRows {
public:
  static constexpr int64_t kRows = 8;

  explicit ReductionOverRows(linalg::GenericOp op) : op(op), b(op), loc(op.getLoc()), loops(op.getNumLoops()) {}

  bool isOne() {
    if (loops < 2 || op.getIteratorTypesArray()[loops - 1] != utils::IteratorType::parallel ||
        op.getIteratorTypesArray()[loops - 2] != utils::IteratorType::reduction)
      return false;
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      return !isa<MemRefType>(operand.get().getType())
                 ? op.isDpsInput(&operand)
                 : llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
    });
  }

  void emit() {
    SmallVector<Range> domain = cast<TilingInterface>(op.getOperation()).getIterationDomain(b);
    indices.resize(loops);
    for (unsigned loop = 0; loop + 2 < loops; ++loop)
      enter(loop, constant(0), asValue(domain[loop].size), 1);
    Value rows = asValue(domain[loops - 2].size), columns = asValue(domain[loops - 1].size);
    Value end = arith::SubIOp::create(b, loc, rows, arith::RemUIOp::create(b, loc, rows, constant(kRows)));
    for (auto [from, to, count] : {std::tuple(constant(0), end, kRows), std::tuple(end, rows, int64_t(1))}) {
      OpBuilder::InsertionGuard guard(b);
      enter(loops - 2, from, to, count);
      enter(loops - 1, constant(0), columns, 1);
      combine(count);
    }
    op.erase();
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value asValue(OpFoldResult size) { return getValueOrCreateConstantIndexOp(b, loc, size); }

  /// A loop, with the code that follows inside of it.
  void enter(unsigned loop, Value begin, Value end, int64_t step) {
    auto nest = scf::ForOp::create(b, loc, begin, end, constant(step));
    b.setInsertionPointToStart(nest.getBody());
    indices[loop] = nest.getInductionVar();
  }

  SmallVector<Value> at(AffineMap map) {
    SmallVector<Value> result;
    for (AffineExpr e : map.getResults())
      result.push_back(isa<AffineDimExpr>(e) ? indices[cast<AffineDimExpr>(e).getPosition()]
                                             : constant(cast<AffineConstantExpr>(e).getValue()));
    return result;
  }

  void combine(int64_t count) {
    SmallVector<Value> results;
    for (OpOperand &init : op.getDpsInitsMutable())
      results.push_back(memref::LoadOp::create(b, loc, init.get(), at(op.getMatchingIndexingMap(&init))));
    Value first = indices[loops - 2];
    for (int64_t i = 0; i < count; ++i) {
      indices[loops - 2] = i ? Value(arith::AddIOp::create(b, loc, first, constant(i))) : first;
      IRMapping body;
      for (auto [argument, value] : llvm::zip_equal(op.getRegionOutputArgs(), results))
        body.map(argument, value);
      for (OpOperand *input : op.getDpsInputOperands())
        body.map(op.getMatchingBlockArgument(input),
                 isa<MemRefType>(input->get().getType())
                     ? Value(memref::LoadOp::create(b, loc, input->get(), at(op.getMatchingIndexingMap(input))))
                     : input->get());
      for (Operation &inner : op.getBody()->without_terminator())
        if (auto index = dyn_cast<linalg::IndexOp>(inner))
          body.map(index, indices[index.getDim()]);
        else
          b.clone(inner, body);
      for (auto [result, yielded] : llvm::zip_equal(results, op.getBody()->getTerminator()->getOperands()))
        result = body.lookupOrDefault(yielded);
    }
    indices[loops - 2] = first;
    for (auto [init, result] : llvm::zip_equal(op.getDpsInitsMutable(), results))
      memref::StoreOp::create(b, loc, result, init.get(), at(op.getMatchingIndexingMap(&init)));
  }

  linalg::GenericOp op;
  OpBuilder b;
  Location loc;
  unsigned loops;
  SmallVector<Value> indices;
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
        if (ReductionOverRows reduction(generic); reduction.isOne()) {
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
