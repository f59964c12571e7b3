// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// How kernels are cut when no tuning result says better. A tile should be worth the few hundred nanoseconds that handing it to a
// thread costs, and there should be several tiles for each core.

#include "Passes.h"
#include "dlc/IR/KernelOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dlc::cpu {

namespace {

/// Elements of work per element of the domain: the product of the reduction loops, in kernel ops those over their first operand.
int64_t workPerElement(plan::KernelOp kernel) {
  int64_t most = 1;
  auto count = [&](ArrayRef<int64_t> ranges, ArrayRef<utils::IteratorType> kinds) {
    int64_t work = 1;
    for (auto [size, kind] : llvm::zip(ranges, kinds))
      if (kind == utils::IteratorType::reduction)
        work = llvm::SaturatingMultiply<uint64_t>(work, ShapedType::isDynamic(size) ? 128 : std::max<int64_t>(size, 1));
    most = std::max(most, work);
  };
  kernel.getBody().walk([&](linalg::LinalgOp op) { count(op.getStaticLoopRanges(), op.getIteratorTypesArray()); });
  kernel.getBody().walk([&](DlcKernelOp op) {
    auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    if (auto loops = dyn_cast<TilingInterface>(op.getOperation()); loops && type)
      count(type.getShape(), loops.getLoopIteratorTypes());
  });
  return most;
}

bool sumsUp(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  return op && (op.getNumReductionLoops() || llvm::any_of(op.getDpsInputs(), sumsUp));
}

/// Dims of the domain that are better not cut: what is reduced along them would be computed again for each tile.
SmallVector<bool> dimsToKeep(plan::KernelOp kernel, unsigned rank) {
  SmallVector<bool> keep(rank, false);
  auto yield = cast<plan::YieldOp>(kernel.getBody().front().getTerminator());
  for (Value yielded : yield.getValues()) {
    auto op = yielded.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumParallelLoops() != op.getNumLoops() || op.getNumLoops() != rank)
      continue;
    for (OpOperand *input : op.getDpsInputOperands())
      if (sumsUp(input->get()))
        for (unsigned d = 0; d < rank; ++d)
          if (!op.getMatchingIndexingMap(input).isFunctionOfDim(d))
            keep[d] = true;
  }
  return keep;
}

/// Whether a reduction's results lie side by side where its terms do not: it then goes over whole runs of them, term by
/// term.
bool reducesOverRows(plan::KernelOp kernel) {
  WalkResult walked = kernel.getBody().walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() == 0)
      return WalkResult::advance();
    bool isOver = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
      AffineMap map = op.getMatchingIndexingMap(input);
      auto last = dyn_cast_or_null<AffineDimExpr>(map.getNumResults() ? map.getResults().back() : AffineExpr());
      return last && op.getIteratorTypesArray()[last.getPosition()] == utils::IteratorType::parallel;
    });
    return isOver ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walked.wasInterrupted();
}

/// Tiles of about `elements` of the domain: inner dims that fit stay whole, the first that does not is cut, and outside of it each
/// index is a tile of its own.
SmallVector<int64_t> cutFromOutside(ArrayRef<std::optional<int64_t>> domain, int64_t elements, ArrayRef<bool> keep) {
  SmallVector<int64_t> tiles(domain.size(), 0);
  uint64_t inner = 1; // elements of a tile so far
  for (unsigned d = domain.size(); d-- > 0;) {
    uint64_t size = std::max<int64_t>(domain[d].value_or(256), 1), room = std::max<uint64_t>(elements / inner, 1);
    // An unknown dim may be large: it gets a tile size even where its likely size fits.
    if (!keep[d] && (size > room || !domain[d]))
      tiles[d] = room;
    inner = llvm::SaturatingMultiply(inner, std::min<uint64_t>(size, tiles[d] ? tiles[d] : size));
  }
  return tiles;
}

} // namespace

plan::ScheduleAttr defaultSchedule(plan::KernelOp kernel, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  MLIRContext *context = kernel.getContext();
  SmallVector<int64_t> tiles, registers;
  SmallVector<bool> keep = dimsToKeep(kernel, domain.size());
  int64_t work = workPerElement(kernel);
  switch (kernel.getKind().getKind()) {
  case plan::KernelKind::Contraction: {
    // A few hundred kiloflops a tile, in multiples of the register tile. Few columns, so that what is read of the operand with
    // the columns stays near while many rows go over it.
    int64_t wanted = std::max<int64_t>(512 * 1024 / work, 64), columns = 8 * target.lanes(32), rows = 24;
    tiles.assign(domain.size(), 0);
    unsigned rank = domain.size();
    if (rank == 1)
      tiles[0] = llvm::alignTo(std::max(wanted, columns), columns);
    if (rank < 2)
      break;
    if (!domain[rank - 1] || *domain[rank - 1] > columns)
      tiles[rank - 1] = columns;
    int64_t tileColumns = std::min(domain[rank - 1].value_or(columns), columns);
    tiles[rank - 2] = llvm::alignTo(std::clamp<int64_t>(wanted / std::max<int64_t>(tileColumns, 1), rows, 4 * rows), rows);
    std::fill(tiles.begin(), tiles.end() - 2, 1);
    break;
  }
  case plan::KernelKind::Elementwise:
  case plan::KernelKind::Movement:
    tiles = cutFromOutside(domain, 16 * 1024, keep);
    break;
  default:
    // Runs of a few hundred elements keep pages and prefetchers busy.
    tiles = cutFromOutside(domain, std::max<int64_t>(32 * 1024 / work, reducesOverRows(kernel) ? 256 : 1), keep);
    break;
  }
  return plan::ScheduleAttr::get(context, tiles, registers);
}

} // namespace dlc::cpu
