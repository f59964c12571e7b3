// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RowKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace dlc::cpu {

Value RowKernel::withoutRenaming(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    v = op->getOperand(0);
  }
  return v;
}

/// What combines the terms of a reduction: an associative operation on the element so far and one term.
static Operation *combinerOf(linalg::GenericOp op) {
  BlockArgument sum = op.getRegionOutputArgs()[0];
  Operation *combine = cast<linalg::YieldOp>(op.getBody()->getTerminator()).getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::MulFOp, arith::AddIOp, arith::MulIOp, arith::MaximumFOp, arith::MinimumFOp,
                       arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp>(combine) ||
      combine->getBlock() != op.getBody() || !combine->hasOneUse() || !sum.hasOneUse() ||
      (combine->getOperand(0) != sum && combine->getOperand(1) != sum))
    return nullptr;
  return combine;
}

bool RowKernel::isVectorizable(Operation &op) {
  return op.getNumResults() == 1 && op.hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(&op) &&
         op.getNumRegions() == 0 && op.getResult(0).getType().isIntOrIndexOrFloat();
}

unsigned RowKernel::costOf(linalg::GenericOp op) {
  unsigned cost = 0;
  for (Operation &inner : op.getBody()->without_terminator())
    cost += inner.hasTrait<OpTrait::ConstantLike>()                                     ? 0
            : !isVectorizable(inner) && !isa<linalg::IndexOp, tensor::ExtractOp>(inner) ? 2 * kCheap
            : isa<math::MathDialect>(inner.getDialect())                                ? kCheap + 2
            : isa<arith::DivFOp>(inner)                                                 ? kCheap - 2
                                                                                        : 1;
  return cost;
}

//===----------------------------------------------------------------------===//
// What a kernel must look like
//===----------------------------------------------------------------------===//

bool RowKernel::dependsOnRow(Value v) const {
  Operation *op = v.getDefiningOp();
  if (!op)
    return !isa<func::FuncOp>(v.getParentBlock()->getParentOp()); // an element of an operand
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return index.getDim() >= outer;
  return isa<linalg::GenericOp>(op->getParentOp()) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnRow(operand); });
}

bool RowKernel::isRowIndex(ValueRange at) const {
  if (at.size() < inner)
    return false;
  for (auto [i, v] : llvm::enumerate(at.take_back(inner))) {
    auto index = v.getDefiningOp<linalg::IndexOp>();
    if (!index || index.getDim() != outer + i)
      return false;
  }
  return llvm::none_of(at.drop_back(inner), [&](Value v) { return dependsOnRow(v); });
}

bool RowKernel::mayEvaluate(Step &step) {
  for (Operation &op : step.op.getBody()->without_terminator()) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      if (!isa<BlockArgument>(extract.getTensor()))
        return false;
      if (step.isNumber || isRowIndex(extract.getIndices()))
        continue;
      if (llvm::any_of(extract.getIndices(), [&](Value v) { return dependsOnRow(v); }))
        return false;
      continue;
    }
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      // An index along a row of several dims is none of the row: only whole addresses may use it.
      if (index.getDim() >= outer && inner > 1 && !step.isNumber)
        for (Operation *user : index->getUsers())
          if (!isa<tensor::ExtractOp>(user) || !isRowIndex(cast<tensor::ExtractOp>(user).getIndices()))
            return false;
      continue;
    }
    if (op.getNumResults() > 1 || (op.getNumResults() == 1 && !op.getResult(0).getType().isIntOrIndexOrFloat()))
      return false;
    WalkResult walked = op.walk([&](Operation *nested) {
      bool onTensors = llvm::any_of(nested->getOperandTypes(), llvm::IsaPred<ShapedType>);
      return onTensors || isa<linalg::IndexOp>(nested) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return false;
  }
  return true;
}

/// How the op reads an operand, and what pass it has to wait for because of that.
bool RowKernel::mayRead(Step &step, OpOperand &operand) {
  AffineMap map = step.op.getMatchingIndexingMap(&operand);
  if (!isa<RankedTensorType>(operand.get().getType()))
    return false;
  for (AffineExpr e : map.getResults())
    if (!isa<AffineDimExpr, AffineConstantExpr>(e))
      return false;
  auto isDim = [&](AffineExpr e, unsigned dim) { return e == getAffineDimExpr(dim, e.getContext()); };
  auto startsWithRow = [&] {
    if (map.getNumResults() < outer)
      return false;
    for (unsigned d = 0; d < outer; ++d)
      if (!isDim(map.getResult(d), d))
        return false;
    return true;
  };
  Value source = withoutRenaming(operand.get());
  if (Step *from = stepOf.lookup(source.getDefiningOp())) {
    if (!startsWithRow())
      return false;
    if (from->isReduction || from->isNumber) {
      step.pass = std::max(step.pass, from->isReduction ? from->pass + 1 : from->pass);
      return true;
    }
    step.pass = std::max(step.pass, from->pass);
    return !step.isNumber && source == operand.get() && map.isIdentity();
  }
  if (!isa<BlockArgument>(source) || source != operand.get())
    return false;
  if (step.isNumber)
    return true;
  // All of a row, or one element for it.
  unsigned count = 0;
  for (unsigned d = outer; d < outer + inner; ++d)
    count += map.isFunctionOfDim(d);
  if (count == 0)
    return true;
  if (count < inner || map.getNumResults() < inner)
    return false;
  for (unsigned i = 0; i < inner; ++i)
    if (!isDim(map.getResult(map.getNumResults() - inner + i), outer + i))
      return false;
  return llvm::none_of(map.getResults().drop_back(inner), [&](AffineExpr e) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    return dim && dim.getPosition() >= outer;
  });
}

/// Whether the map begins with the first `count` dims.
static bool isMajorIdentity(AffineMap map, unsigned count) {
  if (map.getNumResults() < count)
    return false;
  for (unsigned d = 0; d < count; ++d)
    if (map.getResult(d) != getAffineDimExpr(d, map.getContext()))
      return false;
  return true;
}

bool RowKernel::addReduction(Step &step) {
  linalg::GenericOp op = step.op;
  if (op.getNumResults() != 1 || op.getNumLoops() != outer + inner || op.getNumReductionLoops() != inner)
    return false;
  for (unsigned d = 0; d < outer; ++d)
    if (op.getIteratorTypesArray()[d] != utils::IteratorType::parallel)
      return false;
  OpOperand *init = op.getDpsInitOperand(0);
  step.combiner = combinerOf(op);
  return isMajorIdentity(op.getMatchingIndexingMap(init), outer) && op.getMatchingIndexingMap(init).getNumResults() == outer &&
         init->get().getDefiningOp<linalg::FillOp>() && step.combiner;
}

bool RowKernel::addElementwise(Step &step) {
  linalg::GenericOp op = step.op;
  unsigned loops = op.getNumLoops();
  step.isNumber = loops == outer;
  if (loops != outer && loops != outer + inner)
    return false;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (op.payloadUsesValueFromOperand(&init) || !isMajorIdentity(map, loops))
      return false;
    auto shape = cast<RankedTensorType>(init.get().getType()).getShape();
    if (!step.isNumber)
      step.isNumber = llvm::all_of(shape.take_back(inner), [](int64_t size) { return size == 1; });
  }
  return true;
}

bool RowKernel::addStep(linalg::GenericOp op) {
  steps.push_back(std::make_unique<Step>());
  Step &step = *steps.back();
  step.op = op;
  step.isReduction = op.getNumReductionLoops() > 0;
  stepOf[op] = &step;
  return (step.isReduction ? addReduction(step) : addElementwise(step)) &&
         llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) { return mayRead(step, *operand); }) &&
         mayEvaluate(step);
}

bool RowKernel::analyse() {
  Block &block = func.getBody().front();
  for (auto op : block.getOps<linalg::GenericOp>())
    if (op.getNumReductionLoops() > 0) {
      outer = op.getNumParallelLoops();
      inner = op.getNumReductionLoops();
      break;
    }
  if (inner == 0)
    return false;
  for (Operation &op : block.without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (!generic.hasPureTensorSemantics() || !addStep(generic))
        return false;
      continue;
    }
    bool isPlain = op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
                   llvm::none_of(op.getOperandTypes(), llvm::IsaPred<ShapedType>) &&
                   llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
    if (!isPlain && !isa<linalg::FillOp, tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return false;
  }
  llvm::SmallPtrSet<Value, 4> yields;
  for (Value yielded : ret.getOperands()) {
    Value source = withoutRenaming(yielded);
    Step *step = stepOf.lookup(source.getDefiningOp());
    if (!step || (step->isRow() && (source != yielded || !yields.insert(yielded).second)))
      return false;
  }
  auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr);
  if (schedule)
    tiles.assign(schedule.getTiles().begin(), schedule.getTiles().end());
  if (tiles.size() < outer && !tiles.empty())
    return false;
  if (llvm::any_of(ArrayRef(tiles).drop_front(std::min<size_t>(outer, tiles.size())), [](int64_t t) { return t != 0; }))
    return false;
  tiles.resize(outer, 0);
  plan();
  return true;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

auto RowKernel::neededRows(unsigned pass) -> llvm::SetVector<Step *> {
  llvm::SetVector<Step *> needed;
  SmallVector<Step *> work;
  for (auto &step : steps)
    if (!step->isNumber && step->pass == pass &&
        (step->isReduction || llvm::any_of(step->op.getResults(), [&](Value v) { return home.contains(v); })))
      work.push_back(step.get());
  while (!work.empty()) {
    Step *step = work.pop_back_val();
    if (!needed.insert(step))
      continue;
    for (Value operand : step->op.getDpsInputs())
      if (Step *from = stepOf.lookup(operand.getDefiningOp());
          from && from->isRow() && !(from->pass < pass && home.contains(operand)))
        work.push_back(from);
  }
  return needed;
}

/// What computing a row in a later pass costs, from what is in memory there; 0 where no later pass needs it.
unsigned RowKernel::costAgain(Step &step) {
  bool isNeeded = false;
  for (unsigned pass = step.pass + 1; pass < passes; ++pass)
    isNeeded |= neededRows(pass).contains(&step);
  if (!isNeeded)
    return 0;
  unsigned cost = 0;
  llvm::SetVector<Step *> again;
  again.insert(&step);
  for (unsigned i = 0; i < again.size(); ++i) {
    cost += costOf(again[i]->op);
    for (Value operand : again[i]->op.getDpsInputs())
      if (Step *from = stepOf.lookup(operand.getDefiningOp()); from && from->isRow() && !home.contains(operand))
        again.insert(from);
  }
  return cost;
}

/// Finds rows that are better kept than computed again, and places for them.
void RowKernel::plan() {
  SmallVector<std::optional<unsigned>> written(
      ret.getNumOperands()); // the pass that writes a row of the destination for good
  for (auto &step : steps)
    if (!step->isNumber)
      passes = std::max(passes, step->pass + 1);
  for (auto [i, v] : llvm::enumerate(ret.getOperands()))
    if (Step *step = stepOf.lookup(v.getDefiningOp()); step && step->isRow()) {
      home.insert({v, i});
      written[i] = step->pass;
    }
  // From the last one: what it is made of may then not be needed again.
  for (auto &step : llvm::reverse(steps)) {
    Value row = step->op.getResult(0);
    if (!step->isRow() || step->op.getNumResults() != 1 || home.contains(row) || costAgain(*step) <= kCheap)
      continue;
    unsigned last = step->pass;
    for (unsigned pass = step->pass + 1; pass < passes; ++pass)
      if (neededRows(pass).contains(step.get()))
        last = pass;
    for (auto [i, pass] : llvm::enumerate(written))
      if (pass && *pass >= last && ret.getOperand(i).getType() == row.getType()) {
        home[row] = i;
        pass.reset(); // taken
        break;
      }
  }
}

} // namespace dlc::cpu
