// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Contraction.h"
#include "BodyEvaluator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Dims, each at most once, and the constant 0 where an operand is broadcast.
bool isSimple(AffineMap map) { return map.isProjectedPermutation(/*allowZeroInResults=*/true); }

std::optional<unsigned> lastDim(AffineMap map) {
  if (map.getNumResults())
    if (auto last = dyn_cast<AffineDimExpr>(map.getResults().back()))
      return last.getPosition();
  return std::nullopt;
}

bool uses(AffineMap map, unsigned loop) { return map.isFunctionOfDim(loop); }

bool isSumOfProducts(linalg::GenericOp op) {
  Block &body = *op.getBody();
  auto yield = cast<linalg::YieldOp>(body.getTerminator());
  Operation *sum = yield.getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum))
    return false;
  for (unsigned i : {0, 1})
    if (sum->getOperand(i) == body.getArgument(2) && body.getArgument(2).hasOneUse()) {
      Operation *product = sum->getOperand(1 - i).getDefiningOp();
      if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
        return false;
      return BodyEvaluator::isElementwise(op);
    }
  return false;
}

} // namespace

std::optional<Contraction> matchContraction(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || !op.getNumReductionLoops() || !isSumOfProducts(op))
    return std::nullopt;
  for (auto [size, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (size == 0 && kind == utils::IteratorType::parallel) // nothing is computed
      return std::nullopt;
  Contraction c;
  c.op = op;
  auto column = lastDim(c.map(2));
  if (!column || !c.map(2).isProjectedPermutation() || !isSimple(c.map(0)) || !isSimple(c.map(1)))
    return std::nullopt;
  c.column = *column;
  if (!uses(c.map(0), c.column) && lastDim(c.map(1)) == c.column)
    c.narrow = 0, c.wide = 1;
  else if (!uses(c.map(1), c.column) && lastDim(c.map(0)) == c.column)
    c.narrow = 1, c.wide = 0;
  else if (auto term = lastDim(c.map(0)); term && term == lastDim(c.map(1)) && !uses(c.map(2), *term) &&
                                          uses(c.map(0), c.column) != uses(c.map(1), c.column)) {
    c.term = term;
    c.wide = uses(c.map(1), c.column) ? 1 : 0;
    c.narrow = 1 - c.wide;
  } else
    return std::nullopt;
  // Rows: the last dim of the result, columns apart, that the wide operand does not see.
  for (AffineExpr e : llvm::reverse(c.map(2).getResults().drop_back())) {
    unsigned loop = cast<AffineDimExpr>(e).getPosition();
    if (uses(c.map(c.narrow), loop) && !uses(c.map(c.wide), loop)) {
      c.row = loop;
      break;
    }
  }
  return c;
}

RegisterTile registerTile(unsigned bits, const Target &target) {
  int64_t vector = std::max<int64_t>(target.lanes(std::max(bits, 8u)), 2);
  bool many = target.vectorRegisters >= 32;
  // Accumulators fill the registers but for the columns that are read, an element of the rows, and, without fused
  // multiplication and addition, a product. Loads of the columns are worth it from two vectors on; short vectors take four.
  int64_t vectors = many && target.vectorBits < 256 ? 4 : 2;
  return {!target.fma ? 4 : many && target.vectorBits >= 512 ? 8 : 6, vectors * vector, vector};
}

RegisterTile registerTile(const Contraction &c, const Target &target, plan::ScheduleAttr schedule) {
  RegisterTile tile = registerTile(c.accumulator().getIntOrFloatBitWidth(), target);
  if (c.term)
    tile = {4, target.vectorRegisters >= 32 ? 4 : 2, tile.vector};
  if (schedule && schedule.getRegisters().size() == linalg::GenericOp(c.op).getNumLoops()) {
    tile.columns = std::max<int64_t>(schedule.getRegisters()[c.column], 1);
    tile.rows = c.row ? std::max<int64_t>(schedule.getRegisters()[*c.row], 1) : 1;
    if (!c.term)
      while (tile.columns % tile.vector)
        tile.vector /= 2;
  }
  return tile;
}

} // namespace dlc::cpu
