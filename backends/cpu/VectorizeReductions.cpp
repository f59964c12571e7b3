// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// vectorize-reductions: sums and products of floats along contiguous elements. A sum's value depends on the order of its terms,
// and that order must not depend on what the compiler happens to know about sizes; so it is written down here, and LLVM gets no
// licence to change it:
//
//   acc[0 .. 4] = 0, vectors
//   for j (4 vectors at a time): acc[v] += f(x[i, j + v..])
//   for j (1 vector at a time):  acc[0] += f(x[i, j..])
//   for j:                       s += f(x[i, j]), s = the start value at first
//   result = s + the lanes of ((acc[0] + acc[1]) + (acc[2] + acc[3])), halves with halves
//
// Other reductions are loops over single elements in order. Minima, maxima and integers do not depend on the order: LLVM
// vectorises them.

#include "BodyEvaluator.h"
#include "LoopNest.h"
#include "Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// The operation that combines the terms of result `i`, if it is a sum or product of floats that is used for nothing else.
Operation *combinerOf(linalg::GenericOp op, unsigned i) {
  Value yielded = cast<linalg::YieldOp>(op.getBody()->getTerminator()).getOperand(i);
  BlockArgument sum = op.getRegionOutputArgs()[i];
  Operation *combine = yielded.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::MulFOp>(combine) || combine->getBlock() != op.getBody() || !yielded.hasOneUse() ||
      !sum.hasOneUse() || (combine->getOperand(0) != sum && combine->getOperand(1) != sum))
    return nullptr;
  return combine;
}

/// The reduction loop along which each input is contiguous or constant.
std::optional<unsigned> contiguousReduction(linalg::GenericOp op) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  for (unsigned loop : llvm::reverse(reductions)) {
    bool contiguous = false, possible = true;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      for (auto [i, e] : llvm::enumerate(map.getResults())) {
        if (!isa<AffineDimExpr, AffineConstantExpr>(e))
          return std::nullopt;
        if (e.isFunctionOfDim(loop)) {
          possible &= i + 1 == map.getNumResults();
          contiguous = true;
        }
      }
    }
    if (possible && contiguous)
      return loop;
  }
  return std::nullopt;
}

bool mayVectorize(linalg::GenericOp op) {
  if (!op.getNumReductionLoops() || !op.hasPureTensorSemantics() || !BodyEvaluator::isElementwise(op) || !contiguousReduction(op))
    return false;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (!combinerOf(op, i) || !op.getIndexingMapMatchingResult(op->getResult(i)).isProjectedPermutation())
      return false;
  return llvm::all_of(op.getDpsInputs(), [](Value input) { return isa<RankedTensorType>(input.getType()); });
}

class ReductionEmitter final : LoopNest {
public:
  ReductionEmitter(RewriterBase &rewriter, linalg::GenericOp op, const Target &target)
      : LoopNest(rewriter, op.getLoc()), op(op), along(*contiguousReduction(op)) {
    unsigned bits = 8, work = 0;
    for (BlockArgument sum : op.getRegionOutputArgs())
      bits = std::max(bits, sum.getType().getIntOrFloatBitWidth());
    vector = std::max<int64_t>(target.lanes(bits), 2);
    // Several accumulators hide the latency of an addition; a long body does that by itself.
    for (Operation &inner : op.getBody()->without_terminator())
      work += isa<math::MathDialect>(inner.getDialect()) ? 8 : 1;
    accumulators = work <= 8 ? 4 : 1;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      combiners.push_back(combinerOf(op, i));
  }

  void emit() {
    rewriter.setInsertionPoint(op);
    for (Range &range : cast<TilingInterface>(op.getOperation()).getIterationDomain(rewriter))
      extents.push_back(asValue(range.size));
    begin(extents.size());
    SmallVector<Value> into;
    for (Value init : op.getDpsInits()) {
      auto fill = init.getDefiningOp<linalg::FillOp>();
      starts.push_back(fill ? fill.getInputs()[0] : Value());
      into.push_back(fill ? fill.getOutputs()[0] : init);
    }
    SmallVector<unsigned> parallel;
    op.getParallelDims(parallel);
    rewriter.replaceOp(op, loops(parallel, into, [&](ValueRange results) { return emitOne(results); }));
  }

private:
  /// One element of each result.
  SmallVector<Value> emitOne(ValueRange results) {
    unsigned count = combiners.size();
    SmallVector<unsigned> outer;
    op.getReductionDims(outer);
    llvm::erase(outer, along);
    // Carried: `accumulators` vectors for each result, then its number so far.
    SmallVector<Value> state;
    for (unsigned i = 0; i < count; ++i)
      state.append(accumulators, widen(rewriter, loc, neutral(i), vector));
    for (unsigned i = 0; i < count; ++i)
      state.push_back(starts[i] ? starts[i] : readLanes(rewriter, loc, results[i], at(outputMap(i)), 1));

    state = loops(outer, state, [&](ValueRange before) {
      SmallVector<Value> now(before);
      OpFoldResult begin = rewriter.getIndexAttr(0);
      SmallVector<std::pair<unsigned, int64_t>> pieces{{accumulators, vector}, {1, vector}, {1, 1}};
      if (accumulators == 1)
        pieces.erase(pieces.begin());
      for (auto [vectors, lanes] : pieces) {
        int64_t step = vectors * lanes;
        OpFoldResult end = wholePieces(begin, extents[along], step);
        now = loop(along, asValue(begin), asValue(end), step, now, [&, vectors = vectors, lanes = lanes](ValueRange inner) {
          SmallVector<Value> next(inner);
          Value position = indices[along];
          for (unsigned v = 0; v < vectors; ++v) {
            if (v)
              indices[along] = arith::AddIOp::create(rewriter, loc, position, number(v * lanes));
            addTerms(next, lanes == 1 ? std::nullopt : std::optional<unsigned>(v), lanes);
          }
          return next;
        });
        begin = end;
      }
      return now;
    });

    SmallVector<Value> after;
    for (unsigned i = 0; i < count; ++i) {
      auto combine = [&](Value x, Value y) { return combined(i, x, y); };
      SmallVector<Value> lanes(state.begin() + i * accumulators, state.begin() + (i + 1) * accumulators);
      for (; lanes.size() > 1; lanes.resize(lanes.size() / 2))
        for (unsigned v = 0; v < lanes.size() / 2; ++v)
          lanes[v] = combine(lanes[2 * v], lanes[2 * v + 1]);
      Value total = combine(state[count * accumulators + i], combineLanes(rewriter, loc, lanes[0], combine));
      after.push_back(tensor::InsertOp::create(rewriter, loc, total, results[i], at(outputMap(i))));
    }
    return after;
  }

  /// Adds the terms at `indices` to accumulator `v` of each result, or to the number.
  void addTerms(SmallVector<Value> &state, std::optional<unsigned> v, int64_t lanes) {
    BodyEvaluator body(rewriter, op);
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      body.setArgument(input->getOperandNumber(), readLanes(rewriter, loc, input->get(), at(map), map.isFunctionOfDim(along) ? lanes : 1));
    }
    body.run(combiners);
    for (auto [i, combiner] : llvm::enumerate(combiners)) {
      Value &sum = v ? state[i * accumulators + *v] : state[combiners.size() * accumulators + i];
      BlockArgument argument = op.getRegionOutputArgs()[i];
      Value term = body.lookup(combiner->getOperand(combiner->getOperand(0) == argument ? 1 : 0));
      sum = combined(i, sum, widenLike(rewriter, loc, term, sum));
    }
  }

  Value combined(unsigned i, Value x, Value y) {
    return isa<arith::AddFOp>(combiners[i]) ? Value(arith::AddFOp::create(rewriter, loc, x, y)) : Value(arith::MulFOp::create(rewriter, loc, x, y));
  }
  Value neutral(unsigned i) {
    Type type = op.getRegionOutputArgs()[i].getType();
    return arith::ConstantOp::create(rewriter, loc, rewriter.getFloatAttr(type, isa<arith::AddFOp>(combiners[i]) ? 0 : 1));
  }
  AffineMap outputMap(unsigned i) { return op.getIndexingMapMatchingResult(op->getResult(i)); }

  Value extentOf(unsigned loop) override { return extents[loop]; }

  linalg::GenericOp op;
  unsigned along; // the reduction loop that vectors run along
  int64_t vector;
  unsigned accumulators;
  SmallVector<Operation *> combiners;
  SmallVector<Value> extents, starts;
};

struct VectorizeReductions : PassWrapper<VectorizeReductions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VectorizeReductions)
  StringRef getArgument() const final { return "vectorize-reductions"; }
  StringRef getDescription() const final { return "Sum and multiply floats in vectors, in an order of our own"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect, scf::SCFDialect, tensor::TensorDialect,
                    vector::VectorDialect>();
  }

  void runOnOperation() final {
    auto target = targetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) {
      if (mayVectorize(op))
        ops.push_back(op);
    });
    for (linalg::GenericOp op : ops)
      ReductionEmitter(rewriter, op, *target).emit();
  }
};

} // namespace

std::unique_ptr<Pass> createVectorizeReductionsPass() { return std::make_unique<VectorizeReductions>(); }

} // namespace dlc::cpu
