// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WindowNest.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dlc::cpu {

/// An argument, or a slice of one.
static bool isReadable(Value tensor) {
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    return !slice.getDroppedDims().any() && isReadable(slice.getSource());
  return isa<BlockArgument>(tensor);
}

bool WindowNest::matchEpilogue() {
  llvm::SmallDenseSet<Value> computed{root->getResult(0)};
  for (Operation &op : func.getBody().front()) {
    if (&op == root)
      continue;
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (generic.getNumReductionLoops() || generic.getNumLoops() != rank ||
          !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isProjectedPermutation(/*allowZeroInResults=*/true); }))
        return false;
      for (OpOperand &init : generic.getDpsInitsMutable())
        if (!generic.getMatchingIndexingMap(&init).isIdentity() || generic.payloadUsesValueFromOperand(&init))
          return false;
      for (OpOperand *input : generic.getDpsInputOperands()) {
        AffineMap map = generic.getMatchingIndexingMap(input);
        if (computed.contains(input->get()) ? !map.isIdentity() : !isReadable(input->get()))
          return false;
        for (AffineExpr e : map.getResults().drop_back(map.getNumResults() ? 1 : 0))
          vectorEpilogue &= !e.isFunctionOfDim(rank - 1);
      }
      WalkResult walked = generic.getBody()->walk([](tensor::ExtractOp extract) {
        return isReadable(extract.getTensor()) ? WalkResult::advance() : WalkResult::interrupt();
      });
      if (walked.wasInterrupted())
        return false;
      vectorEpilogue &= BodyEvaluator::isElementwise(generic);
      for (Operation &inner : generic.getBody()->without_terminator())
        work += isa<math::MathDialect>(inner.getDialect()) ? 8 : !isa<arith::ConstantOp>(inner);
      computed.insert(generic->result_begin(), generic->result_end());
      epilogue.push_back(generic);
    } else if (isa<linalg::LinalgOp>(op) || op.getNumRegions() || !(isMemoryEffectFree(&op) || op.hasTrait<OpTrait::IsTerminator>())) {
      return false;
    }
  }
  returned.assign(ret().getOperands().begin(), ret().getOperands().end());
  return llvm::all_of(returned, [&](Value v) { return computed.contains(v); });
}

void WindowNest::enterKernel(Value x) {
  rewriter.setInsertionPoint(ret());
  begin(rank);
  for (unsigned d = 0; d < rank; ++d) {
    extents.push_back(asValue(sizeOf(destination(), d)));
    sizes.push_back(asValue(sizeOf(x, d)));
  }
  enterMemory();
  // In front of all loops.
  for (unsigned i = 0; i < returned.size(); ++i)
    (void)flatMemory(destination(i));
  for (linalg::GenericOp e : epilogue) {
    e.getBody()->walk([&](tensor::ExtractOp extract) { (void)memoryOf(extract.getTensor()); });
    for (OpOperand *input : e.getDpsInputOperands())
      if (isReadable(input->get())) {
        Value memory = memoryOf(input->get());
        if (e.getMatchingIndexingMap(input).isIdentity() && cast<MemRefType>(memory.getType()).getLayout().isIdentity())
          (void)flatMemory(input->get());
      }
  }
}

Value WindowNest::flatMemory(Value tensor) {
  Value &known = flat[tensor];
  if (!known) {
    SmallVector<ReassociationIndices> groups{{0}, {}, {static_cast<int64_t>(rank) - 1}};
    for (int64_t d = 1; d + 1 < rank; ++d)
      groups[1].push_back(d);
    known = rank == 3 ? memoryOf(tensor) : Value(memref::CollapseShapeOp::create(rewriter, loc, memoryOf(tensor), groups));
  }
  return known;
}

Value WindowNest::spatial(Place &place, unsigned axis) {
  if (place.spatial.empty()) {
    place.spatial.resize(rank - 2);
    Value left = place.flat;
    for (unsigned i = rank - 2; i-- > 1;) {
      place.spatial[i] = arith::RemUIOp::create(rewriter, loc, left, extents[i + 1]);
      left = arith::DivUIOp::create(rewriter, loc, left, extents[i + 1]);
    }
    place.spatial[0] = left;
  }
  return place.spatial[axis];
}

Value WindowNest::indexOf(Place &place, unsigned loop) {
  return loop == 0 ? place.batch : loop == rank - 1 ? place.channel : spatial(place, loop - 1);
}

Value WindowNest::read(Value tensor, AffineMap map, Place &place, int64_t lanes, Value mask) {
  Value memory = flat.lookup(tensor);
  SmallVector<Value> where;
  if (memory && place.flat && map.isIdentity()) {
    where = {place.batch, place.flat, place.channel};
  } else {
    memory = memoryOf(tensor);
    for (AffineExpr e : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(e);
      where.push_back(dim ? indexOf(place, dim.getPosition()) : zero);
    }
  }
  bool isAlong = map.isFunctionOfDim(rank - 1);
  return load(memory, where, isAlong ? lanes : 1, isAlong ? mask : Value());
}

void WindowNest::writeResults(Value value, Place place, int64_t lanes, Value mask) {
  DenseMap<Value, Value> values{{root->getResult(0), value}};
  for (linalg::GenericOp e : epilogue) {
    SmallVector<Value> arguments;
    for (OpOperand *input : e.getDpsInputOperands()) {
      Value known = values.lookup(input->get());
      arguments.push_back(known ? known : read(input->get(), e.getMatchingIndexingMap(input), place, lanes, mask));
    }
    SmallVector<Operation *> cloned;
    SmallVector<Value> made = evaluate(rewriter, e, arguments, [&](unsigned loop) { return indexOf(place, loop); }, &cloned);
    SmallVector<tensor::ExtractOp> extracts;
    for (Operation *clone : cloned)
      clone->walk([&](tensor::ExtractOp extract) { extracts.push_back(extract); });
    for (tensor::ExtractOp extract : extracts) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(extract);
      Value element = memref::LoadOp::create(rewriter, loc, memoryOf(extract.getTensor()), extract.getIndices());
      llvm::replace(made, Value(extract.getResult()), element);
      rewriter.replaceOp(extract, element);
    }
    for (auto [result, own] : llvm::zip_equal(e.getResults(), made))
      values[result] = own;
  }
  for (auto [i, result] : llvm::enumerate(returned)) {
    Value own = values.lookup(result);
    if (lanes > 1 && !isa<VectorType>(own.getType()))
      own = widen(rewriter, loc, own, lanes);
    if (place.flat) {
      store(own, flatMemory(destination(i)), {place.batch, place.flat, place.channel}, mask);
      continue;
    }
    SmallVector<Value> where{place.batch};
    llvm::append_range(where, place.spatial);
    where.push_back(place.channel);
    store(own, destination(i), where, mask);
  }
}

} // namespace dlc::cpu
