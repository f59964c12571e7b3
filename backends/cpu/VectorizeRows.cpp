// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// vectorize-rows: kernels whose reductions all run along the innermost dims (softmax, normalizations, sums of rows)
// become code on memory, one row at a time. What has to be known of the whole row before the next step (a maximum, a
// sum) splits the work into passes over the row, which is in the cache from the second one on. A value that a later
// pass needs again is computed anew where that is cheap; otherwise it waits in the row of a destination that is written
// only later, so no memory but the destinations is needed, whatever the length of a row.
//
// The order in which a row is summed up is part of the result, and must not depend on what is known of sizes:
//
//   acc[0 .. 4] = neutral, vectors; indices of acc are modulo 4
//   for t in the n whole vectors: acc[t] = acc[t] + f(x[t])
//   the rest, less than a vector: acc[n] = acc[n] + f(x[n]), lanes behind the end neutral
//   result = start + the lanes of ((acc[n] + acc[n + 1]) + (acc[n + 2] + acc[n + 3])), halves with halves
//
// Maxima and minima of floats go by comparisons alone, which a NaN does not pass; that there was one is kept beside,
// once for each pair of vectors.
//
// Several innermost dims are one row.

#include "BodyEvaluator.h"
#include "RowKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Accumulators of a sum: they hide the latency of an addition.
constexpr unsigned kAccumulators = 4;

TypedAttr neutralOf(Operation *combiner, Type type) {
  OpBuilder b(type.getContext());
  if (isa<arith::AddFOp, arith::AddIOp, arith::MaxUIOp>(combiner))
    return b.getZeroAttr(type);
  if (isa<arith::MulFOp, arith::MulIOp>(combiner))
    return b.getOneAttr(type);
  if (auto floating = dyn_cast<FloatType>(type))
    return b.getFloatAttr(floating,
                          APFloat::getInf(floating.getFloatSemantics(), /*Negative=*/isa<arith::MaximumFOp>(combiner)));
  unsigned width = type.getIntOrFloatBitWidth();
  if (isa<arith::MinUIOp>(combiner))
    return b.getIntegerAttr(type, APInt::getMaxValue(width));
  return b.getIntegerAttr(type, isa<arith::MaxSIOp>(combiner) ? APInt::getSignedMinValue(width)
                                                              : APInt::getSignedMaxValue(width));
}

class RowEmitter final : public RowKernel {
public:
  RowEmitter(func::FuncOp func, const Target &target)
      : RowKernel(func), target(target), loc(func.getLoc()), b(func.getContext()) {}
  void emit();

private:
  /// Where the code being written is in a row: `lanes` elements from `index` on, of which `mask` (where there is one)
  /// tells the real ones.
  struct Position {
    Value index;
    int64_t lanes = 1;
    Value mask;
  };

  Value extentOf(unsigned loop);
  void emitRow();
  void emitPass(unsigned pass);
  void computeNumbers(unsigned pass);
  void evaluate(Step &step, const Position &at, Operation *left = nullptr);
  Value read(Step &step, OpOperand &operand, const Position &at);
  Value apply(Step &step, Operation &inner, const Position &at, ValueRange captured);
  Value applyLanes(Operation &inner, const Position &at, ValueRange captured);
  Value load(Value memory, ArrayRef<Value> outer, const Position &at);
  void store(Value value, Value memory, const Position &at);
  Value rowsOf(Value argument);
  Value combined(Operation *combiner, Value x, Value y) {
    OperationState state(loc, combiner->getName().getStringRef(), ValueRange{x, y}, TypeRange{x.getType()},
                         combiner->getAttrs());
    return b.create(state)->getResult(0);
  }
  static bool isFloatExtremum(Operation *combiner) { return isa<arith::MaximumFOp, arith::MinimumFOp>(combiner); }
  /// The same without regard to NaNs.
  Value accumulated(Operation *combiner, Value sum, Value term) {
    if (!isFloatExtremum(combiner))
      return combined(combiner, sum, term);
    auto order = isa<arith::MaximumFOp>(combiner) ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
    return arith::SelectOp::create(b, loc, arith::CmpFOp::create(b, loc, order, term, sum), term, sum);
  }
  /// All bits of the lanes in which x or y is a NaN.
  Value unordered(Value x, Value y) {
    auto type = cast<VectorType>(x.getType());
    Value is = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, y);
    return arith::ExtSIOp::create(b, loc, type.clone(b.getIntegerType(type.getElementTypeBitWidth())), is);
  }
  Value splat(TypedAttr number, int64_t lanes) {
    return arith::ConstantOp::create(
        b, loc, SplatElementsAttr::get(VectorType::get(lanes, number.getType()), Attribute(number)));
  }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  int64_t lanesOf(unsigned pass);

  const Target &target;
  Location loc;
  OpBuilder b;
  SmallVector<Value> extents, indices; // of the loops over rows
  Value length;                        // of a row
  DenseMap<Value, Value> rows;         // memory with its innermost dims as one
  DenseMap<Value, Value> numbers;      // of this row
  IRMapping here;                      // values at this position
  unsigned now = 0;                    // the pass being written
};

/// Lanes of the vectors of a pass: by the accumulators, and where there are none by the widest elements.
int64_t RowEmitter::lanesOf(unsigned pass) {
  unsigned accumulators = 0, elements = 8;
  for (Step *step : neededRows(pass)) {
    for (Value v : step->op->getOperands())
      elements = std::max(elements, cast<ShapedType>(v.getType()).getElementTypeBitWidth());
    if (step->isReduction)
      accumulators = std::max(accumulators, step->op.getRegionOutputArgs()[0].getType().getIntOrFloatBitWidth());
  }
  return std::max<int64_t>(target.lanes(accumulators ? accumulators : elements), 2);
}

/// How often a loop of the steps runs.
Value RowEmitter::extentOf(unsigned loop) {
  auto sizeOf = [&](Value tensor, unsigned dim) -> Value {
    auto type = cast<ShapedType>(tensor.getType());
    if (!type.isDynamicDim(dim))
      return constant(type.getDimSize(dim));
    if (auto argument = dyn_cast<BlockArgument>(tensor))
      return sizeOfArgument(func, argument.getArgNumber(), dim);
    while (auto fill = tensor.getDefiningOp<linalg::FillOp>())
      tensor = fill.getOutputs()[0];
    if (auto argument = dyn_cast<BlockArgument>(tensor))
      return sizeOfArgument(func, argument.getArgNumber(), dim);
    if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>())
      return empty.getDynamicSize(dim);
    return {};
  };
  for (auto &step : steps) {
    if (step->isNumber && loop >= outer)
      continue;
    for (OpOperand &operand : step->op->getOpOperands())
      for (auto [i, e] : llvm::enumerate(step->op.getMatchingIndexingMap(&operand).getResults()))
        if (e == getAffineDimExpr(loop, func.getContext()))
          if (Value size = sizeOf(operand.get(), i))
            return size;
  }
  llvm_unreachable("a loop has an operand or an init that it runs along");
}

/// Memory whose innermost dims are one.
Value RowEmitter::rowsOf(Value argument) {
  Value &known = rows[argument];
  if (known)
    return known;
  known = argument;
  int64_t rank = cast<MemRefType>(argument.getType()).getRank();
  if (inner > 1) {
    SmallVector<ReassociationIndices> groups;
    for (int64_t d = 0; d < rank - inner; ++d)
      groups.push_back({d});
    groups.push_back(llvm::to_vector(llvm::seq<int64_t>(rank - inner, rank)));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&func.getBody().front());
    known = memref::CollapseShapeOp::create(b, loc, argument, groups);
  }
  return known;
}

Value RowEmitter::load(Value memory, ArrayRef<Value> outerIndices, const Position &at) {
  SmallVector<Value> where(outerIndices);
  where.push_back(at.index);
  if (at.lanes == 1)
    return memref::LoadOp::create(b, loc, memory, where);
  auto type = VectorType::get(at.lanes, cast<MemRefType>(memory.getType()).getElementType());
  if (!at.mask)
    return vector::LoadOp::create(b, loc, type, memory, where);
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, loc, type, memory, where, at.mask, zeros);
}

void RowEmitter::store(Value value, Value memory, const Position &at) {
  SmallVector<Value> where(indices);
  where.push_back(at.index);
  if (!isa<VectorType>(value.getType()))
    value = widen(b, loc, value, at.lanes);
  if (at.mask)
    vector::MaskedStoreOp::create(b, loc, memory, where, at.mask, value);
  else
    vector::StoreOp::create(b, loc, value, memory, where);
}

/// What the op gets from an operand.
Value RowEmitter::read(Step &step, OpOperand &operand, const Position &at) {
  AffineMap map = step.op.getMatchingIndexingMap(&operand);
  Value source = withoutRenaming(operand.get());
  if (Step *from = stepOf.lookup(source.getDefiningOp())) {
    if (from->isReduction || from->isNumber)
      return numbers.lookup(source);
    if (Value known = here.lookupOrNull(source))
      return known;
    if (auto place = home.find(source); place != home.end() && from->pass < now) {
      Value destination = func.getArgument(func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt() + place->second);
      Value loaded = load(rowsOf(destination), indices, at);
      here.map(source, loaded);
      return loaded;
    }
    evaluate(*from, at);
    return here.lookup(source);
  }
  SmallVector<Value> where;
  bool isRow = false;
  for (AffineExpr e : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    if (dim && dim.getPosition() >= outer && !step.isNumber) {
      isRow = true;
      break;
    }
    where.push_back(!dim                        ? constant(cast<AffineConstantExpr>(e).getValue())
                    : dim.getPosition() < outer ? indices[dim.getPosition()]
                                                : constant(0));
  }
  return isRow ? load(rowsOf(source), where, at) : Value(memref::LoadOp::create(b, loc, source, where));
}

/// Lane by lane: what has no form on vectors.
Value RowEmitter::applyLanes(Operation &op, const Position &at, ValueRange captured) {
  Value result;
  Type type = op.getNumResults() ? op.getResult(0).getType() : Type();
  if (type)
    result = arith::ConstantOp::create(b, loc, b.getZeroAttr(VectorType::get(at.lanes, type)));
  for (int64_t lane = 0; lane < at.lanes; ++lane) {
    IRMapping one;
    for (Value v : captured) {
      Value value = here.lookupOrDefault(v);
      one.map(v, isa<VectorType>(value.getType())
                     ? Value(vector::ExtractOp::create(b, loc, value, ArrayRef<int64_t>{lane}))
                     : value);
    }
    Value element;
    if (at.mask) { // lanes behind the end may not raise a status
      Value isReal = vector::ExtractOp::create(b, loc, at.mask, ArrayRef<int64_t>{lane});
      auto branch =
          scf::IfOp::create(b, loc, type ? TypeRange{type} : TypeRange{}, isReal, /*withElseRegion=*/bool(type));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Operation *clone = b.clone(op, one);
      if (type) {
        scf::YieldOp::create(b, loc, clone->getResults());
        b.setInsertionPointToStart(branch.elseBlock());
        scf::YieldOp::create(b, loc, Value(arith::ConstantOp::create(b, loc, b.getZeroAttr(type))));
        element = branch.getResult(0);
      }
    } else {
      Operation *clone = b.clone(op, one);
      element = type ? clone->getResult(0) : Value();
    }
    if (type)
      result = vector::InsertOp::create(b, loc, element, result, ArrayRef<int64_t>{lane});
  }
  return result;
}

Value RowEmitter::apply(Step &step, Operation &op, const Position &at, ValueRange captured) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    if (index.getDim() < outer)
      return indices[index.getDim()];
    if (step.isNumber)
      return constant(0);
    if (inner > 1) // part of a whole address
      return {};
    if (at.lanes == 1)
      return at.index;
    Value steps = vector::StepOp::create(b, loc, VectorType::get(at.lanes, b.getIndexType()));
    return arith::AddIOp::create(b, loc, widen(b, loc, at.index, at.lanes), steps);
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Value memory = extract->getOperand(0); // the operand's type has changed already
    bool isRow = !step.isNumber && isRowIndex(extract.getIndices());
    SmallVector<Value> where;
    for (Value v : extract.getIndices().drop_back(isRow ? inner : 0))
      where.push_back(here.lookupOrDefault(v));
    return isRow ? load(rowsOf(memory), where, at) : Value(memref::LoadOp::create(b, loc, memory, where));
  }
  auto isWide = [&](Value v) { return isa<VectorType>(here.lookupOrDefault(v).getType()); };
  bool wide = llvm::any_of(captured, isWide);
  if (!wide) {
    Operation *clone = b.clone(op, here);
    return clone->getNumResults() ? clone->getResult(0) : Value();
  }
  if (!isVectorizable(op))
    return applyLanes(op, at, captured);
  SmallVector<Value> operands;
  for (Value v : op.getOperands()) {
    Value value = here.lookupOrDefault(v);
    operands.push_back(isa<VectorType>(value.getType()) ? value : widen(b, loc, value, at.lanes));
  }
  return b
      .create(op.getLoc(), op.getName().getIdentifier(), operands, VectorType::get(at.lanes, op.getResult(0).getType()),
              op.getAttrs())
      ->getResult(0);
}

/// Maps the results of the op at this position; of a reduction what it combines, without `left`, which does.
void RowEmitter::evaluate(Step &step, const Position &at, Operation *left) {
  Block *body = step.op.getBody();
  for (OpOperand *operand : step.op.getDpsInputOperands())
    if (BlockArgument argument = step.op.getMatchingBlockArgument(operand); !argument.use_empty())
      here.map(argument, read(step, *operand, at));
  for (Operation &op : body->without_terminator()) {
    if (&op == left)
      continue;
    llvm::SetVector<Value> captured(op.operand_begin(), op.operand_end());
    for (Region &region : op.getRegions())
      getUsedValuesDefinedAbove(region, captured);
    Value value = apply(step, op, at, captured.getArrayRef());
    if (value)
      here.map(op.getResult(0), value);
  }
  if (!left)
    for (auto [result, value] : llvm::zip_equal(step.op.getResults(), body->getTerminator()->getOperands()))
      here.map(result, here.lookupOrDefault(value));
}

/// The numbers that pass `pass` is the first to be able to use.
void RowEmitter::computeNumbers(unsigned pass) {
  for (auto &step : steps)
    if (step->isNumber && step->pass == pass) {
      here.clear();
      evaluate(*step, Position{constant(0), 1, {}});
      for (Value result : step->op.getResults())
        numbers[result] = here.lookup(result);
    }
}

void RowEmitter::emitPass(unsigned pass) {
  now = pass;
  int64_t lanes = lanesOf(pass);
  unsigned operands = func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt(), cost = 0;
  SmallVector<Step *> reductions;
  SmallVector<std::pair<Value, unsigned>> stores;
  for (auto &step : steps) {
    if (step->isNumber || step->pass != pass)
      continue;
    if (step->isReduction)
      reductions.push_back(step.get());
    for (Value result : step->op.getResults())
      if (auto place = home.find(result); place != home.end())
        stores.push_back(*place);
  }
  for (Step *step : neededRows(pass))
    cost += costOf(step->op);
  if (reductions.empty() && stores.empty())
    return;
  // What takes long enough by itself needs no unrolling, and all the registers.
  unsigned unroll = cost > 2 * kCheap ? 1 : reductions.empty() ? 2 : kAccumulators;

  SmallVector<Value> state; // of each reduction its accumulators, and what is not 0 where there was a NaN
  constexpr unsigned kState = kAccumulators + 1;
  for (Step *step : reductions) {
    Type type = step->op.getRegionOutputArgs()[0].getType();
    state.append(kAccumulators, splat(neutralOf(step->combiner, type), lanes));
    state.push_back(splat(b.getZeroAttr(b.getIntegerType(type.getIntOrFloatBitWidth())),
                          isFloatExtremum(step->combiner) ? lanes : 1));
  }
  /// The terms of each reduction and the rows to store, at one position.
  auto work = [&](const Position &at) {
    here.clear();
    SmallVector<Value> terms;
    for (Step *step : reductions) {
      evaluate(*step, at, step->combiner);
      BlockArgument sum = step->op.getRegionOutputArgs()[0];
      Value term = here.lookupOrDefault(step->combiner->getOperand(step->combiner->getOperand(0) == sum ? 1 : 0));
      if (!isa<VectorType>(term.getType()))
        term = widen(b, loc, term, lanes);
      if (at.mask)
        term = arith::SelectOp::create(b, loc, at.mask, term,
                                       splat(neutralOf(step->combiner, getElementTypeOrSelf(term)), lanes));
      terms.push_back(term);
    }
    SmallVector<Value> values;
    for (auto [row, place] : stores) {
      if (!here.contains(row))
        evaluate(*stepOf.lookup(row.getDefiningOp()), at);
      values.push_back(here.lookup(row));
    }
    for (auto [value, entry] : llvm::zip_equal(values, stores))
      store(value, rowsOf(func.getArgument(operands + entry.second)), at);
    return terms;
  };
  auto add = [&](MutableArrayRef<Value> sums, ArrayRef<SmallVector<Value>> terms) {
    for (auto [i, step] : llvm::enumerate(reductions)) {
      MutableArrayRef<Value> own = sums.slice(i * kState, kState);
      for (unsigned v = 0; v < terms.size(); ++v)
        own[v] = accumulated(step->combiner, own[v], terms[v][i]);
      for (unsigned v = 0; isFloatExtremum(step->combiner) && v < terms.size(); v += 2)
        own.back() = arith::OrIOp::create(b, loc, own.back(),
                                          unordered(terms[v][i], terms[std::min<size_t>(v + 1, terms.size() - 1)][i]));
    }
  };

  Value begin = constant(0);
  SmallVector<unsigned> pieces{unroll, 1};
  if (unroll == 1)
    pieces.pop_back();
  for (unsigned vectors : pieces) {
    int64_t step = vectors * lanes;
    Value left = arith::SubIOp::create(b, loc, length, begin);
    Value end = arith::SubIOp::create(b, loc, length, arith::RemUIOp::create(b, loc, left, constant(step)));
    auto loop = scf::ForOp::create(b, loc, begin, end, constant(step), state);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> next(loop.getRegionIterArgs());
      SmallVector<SmallVector<Value>> terms;
      for (unsigned v = 0; v < vectors; ++v) {
        Value index = v ? Value(arith::AddIOp::create(b, loc, loop.getInductionVar(), constant(v * lanes)))
                        : loop.getInductionVar();
        terms.push_back(work(Position{index, lanes, {}}));
      }
      add(next, terms);
      if (vectors == 1) // the next accumulator comes to the front
        for (unsigned i = 0; i < next.size(); i += kState)
          std::rotate(&next[i], &next[i] + 1, &next[i] + kAccumulators);
      if (!next.empty())
        scf::YieldOp::create(b, loc, next);
    }
    state.assign(loop.result_begin(), loop.result_end());
    begin = end;
  }
  // The rest, less than a vector.
  Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, begin, length);
  SmallVector<Type> types;
  SmallVector<unsigned> changed; // of the state: the first accumulator and the NaNs
  for (unsigned i = 0; i < reductions.size(); ++i)
    for (unsigned part : {0u, kAccumulators}) {
      changed.push_back(i * kState + part);
      types.push_back(state[changed.back()].getType());
    }
  auto rest = scf::IfOp::create(b, loc, types, isLeft, /*withElseRegion=*/!types.empty());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rest.thenBlock());
    SmallVector<int32_t> positions = llvm::to_vector(llvm::seq<int32_t>(0, lanes));
    Value lane = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(VectorType::get(lanes, b.getI32Type()), ArrayRef(positions)));
    Value count = arith::IndexCastOp::create(b, loc, b.getI32Type(), arith::SubIOp::create(b, loc, length, begin));
    Value mask = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lane, widen(b, loc, count, lanes));
    SmallVector<Value> next(state);
    SmallVector<Value> terms = work(Position{begin, lanes, mask});
    add(next, terms);
    if (!types.empty()) {
      auto yield = [&](ArrayRef<Value> values) {
        SmallVector<Value> yielded;
        for (unsigned i : changed)
          yielded.push_back(values[i]);
        scf::YieldOp::create(b, loc, yielded);
      };
      yield(next);
      b.setInsertionPointToStart(rest.elseBlock());
      yield(state);
    }
  }
  for (auto [i, value] : llvm::zip_equal(changed, rest.getResults()))
    state[i] = value;

  for (auto [i, step] : llvm::enumerate(reductions)) {
    auto combine = [&](Value x, Value y) { return accumulated(step->combiner, x, y); };
    SmallVector<Value> sums(state.begin() + i * kState, state.begin() + i * kState + kAccumulators);
    for (; sums.size() > 1; sums.resize(sums.size() / 2))
      for (unsigned v = 0; v < sums.size() / 2; ++v)
        sums[v] = combine(sums[2 * v], sums[2 * v + 1]);
    Value total = combineLanes(b, loc, sums[0], combine);
    if (isFloatExtremum(step->combiner)) {
      auto type = cast<FloatType>(total.getType());
      Value nans = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, state[i * kState + kAccumulators]);
      Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(nans.getType()));
      Value nan = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, APFloat::getNaN(type.getFloatSemantics())));
      total = arith::SelectOp::create(b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, nans, none), nan,
                                      total);
    }
    auto fill = step->op.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
    numbers[step->op.getResult(0)] = combined(step->combiner, fill.getInputs()[0], total);
  }
}

void RowEmitter::emitRow() {
  numbers.clear();
  for (unsigned pass = 0; pass < passes; ++pass) {
    computeNumbers(pass);
    emitPass(pass);
  }
  computeNumbers(passes);
  unsigned operands = func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt();
  for (auto [i, v] : llvm::enumerate(ret.getOperands()))
    if (Value number = numbers.lookup(withoutRenaming(v))) {
      Value destination = func.getArgument(operands + i);
      SmallVector<Value> where(indices);
      where.resize(cast<MemRefType>(destination.getType()).getRank(), constant(0));
      memref::StoreOp::create(b, loc, number, destination, where);
    }
}

void RowEmitter::emit() {
  b.setInsertionPoint(ret);
  for (unsigned loop = 0; loop < outer; ++loop)
    extents.push_back(extentOf(loop));
  length = constant(1);
  for (unsigned loop = outer; loop < outer + inner; ++loop)
    length = loop == outer ? extentOf(loop) : Value(arith::MulIOp::create(b, loc, length, extentOf(loop)));
  // The old ops, which the code is read from, go at the end.
  for (BlockArgument argument : func.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      argument.setType(MemRefType::get(type.getShape(), type.getElementType()));
  SmallVector<OpFoldResult> lower, upper, step;
  for (auto [size, extent] : llvm::zip_equal(tiles, extents))
    if (size > 0) {
      lower.push_back(b.getIndexAttr(0));
      upper.push_back(extent);
      step.push_back(b.getIndexAttr(size));
    }
  SmallVector<Value> from(outer, constant(0)), to(extents);
  if (!lower.empty()) {
    auto forall = scf::ForallOp::create(b, loc, lower, upper, step, ValueRange{}, std::nullopt);
    forall->setAttr(kCutAttr, b.getUnitAttr());
    b.setInsertionPointToStart(forall.getBody());
    unsigned next = 0;
    for (unsigned loop = 0; loop < outer; ++loop)
      if (tiles[loop] > 0) {
        from[loop] = forall.getInductionVar(next++);
        to[loop] = arith::MinUIOp::create(b, loc, arith::AddIOp::create(b, loc, from[loop], constant(tiles[loop])),
                                          extents[loop]);
      }
  }
  Value one = constant(1);
  for (unsigned loop = 0; loop < outer; ++loop) {
    auto nest = scf::ForOp::create(b, loc, from[loop], to[loop], one);
    indices.push_back(nest.getInductionVar());
    b.setInsertionPointToStart(nest.getBody());
  }
  emitRow();

  SmallVector<Operation *> old;
  for (Operation &op : func.getBody().front())
    if (isa<linalg::LinalgOp, tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      old.push_back(&op);
  ret->setOperands({});
  for (Operation *op : llvm::reverse(old))
    op->erase();
  func.setType(FunctionType::get(func.getContext(), func.getBody().getArgumentTypes(), {}));
}

struct VectorizeRows : PassWrapper<VectorizeRows, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VectorizeRows)
  StringRef getArgument() const final { return "vectorize-rows"; }
  StringRef getDescription() const final {
    return "Compute kernels with reductions along rows one row at a time, in vectors";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    auto target = targetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (RowEmitter kernel(func, *target); kernel.analyse())
        kernel.emit();
  }
};

} // namespace

std::unique_ptr<Pass> createVectorizeRowsPass() { return std::make_unique<VectorizeRows>(); }

} // namespace dlc::cpu
