// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Attention.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/Scalar.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Attention.cpp.inc"

namespace dlc {

void DlcDialect::addAttentionOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Attention.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// dlc.attention
//===----------------------------------------------------------------------===//

Form AttentionOp::form() { return Form::Lower; }
Role AttentionOp::role() { return Role::Attention; }
PrecisionNeed AttentionOp::precision() { return PrecisionNeed::AccumulateF32; }

static SmallVector<DimExpr> permutedDims(Value tensor, ArrayRef<int64_t> perm) {
  SmallVector<DimExpr> dims = dimsOf(tensor.getType()), result;
  for (int64_t axis : perm)
    result.push_back(dims[axis]);
  return result;
}

SmallVector<DimExpr> AttentionOp::scoreDims() {
  SmallVector<DimExpr> dims = permutedDims(getQ(), getQPerm());
  dims.back() = getKeys();
  return dims;
}

LogicalResult AttentionOp::verify() {
  unsigned rank = getResultPerm().size();
  ArrayRef<int64_t> perms[] = {getQPerm(), getKPerm(), getVPerm(), getResultPerm()};
  if (rank < 2)
    return emitOpError("has a result of fewer than two axes");
  for (auto [i, perm] : llvm::enumerate(perms)) {
    auto type = dyn_cast<RankedTensorType>((i < 3 ? getOperand(i) : getResult()).getType());
    if (perm.size() != rank || !isPermutationVector(perm) || !type || type.getRank() != int64_t(rank) || !type.getElementType().isF32())
      return emitOpError(i < 3 ? "operand " : "result ") << i % 3 << " is no tensor of f32 whose axes its permutation orders";
  }
  Block &body = getScore().front();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (body.getNumArguments() != 1 + getExtras().size() || !yield || yield.getValues().size() != 1)
    return emitOpError("its region does not make one score of the product and the extras");
  for (auto [argument, extra] : llvm::zip_equal(body.getArguments().drop_front(), getExtras()))
    if (argument.getType() != extra.getType())
      return emitOpError("its region has ") << argument.getType() << " for an operand of type " << extra.getType();
  return success();
}

LogicalResult AttentionOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> q = permutedDims(getQ(), getQPerm()), k = permutedDims(getK(), getKPerm()), v = permutedDims(getV(), getVPerm());
  if (failed(context.requireEqual(q.back(), k.back(), "the depths of queries and keys differ: {0} and {1}")))
    return failure();
  SmallVector<DimExpr> logical(q), dims;
  logical.back() = v.back();
  for (int64_t axis : getResultPerm())
    dims.push_back(logical[axis]);
  context.setResult(0, context.elementType(0), dims);
  return success();
}

DimExpr AttentionOp::cost() {
  DimExpr both = addDims(permutedDims(getQ(), getQPerm()).back(), permutedDims(getV(), getVPerm()).back());
  return mulDims(mulDims(constantDim(getContext(), 2), both), productOfDims(getContext(), scoreDims()));
}

FailureOr<SmallVector<Value>> AttentionOp::lower(LowerContext &context) {
  OpBuilder &b = context.b();
  Location loc = getLoc();
  int64_t rank = getResultPerm().size();
  // Loops go over the result's memory: axis i of [batch..., queries, columns] is loop `loopOf[i]`.
  SmallVector<int64_t> loopOf(rank);
  for (auto [loop, axis] : llvm::enumerate(getResultPerm()))
    loopOf[axis] = loop;
  AffineExpr keys = b.getAffineDimExpr(rank), depth = b.getAffineDimExpr(rank + 1), zero = b.getAffineConstantExpr(0);
  SmallVector<DimExpr> scores = scoreDims();
  auto mapOf = [&](Value tensor, ArrayRef<int64_t> perm, AffineExpr beforeLast, AffineExpr last) -> FailureOr<AffineMap> {
    SmallVector<DimExpr> dims = permutedDims(tensor, perm);
    SmallVector<AffineExpr> exprs(rank);
    for (int64_t i = 0; i < rank; ++i) {
      if (i >= rank - 2)
        exprs[perm[i]] = i == rank - 1 ? last : beforeLast;
      else if (dims[i] == scores[i])
        exprs[perm[i]] = b.getAffineDimExpr(loopOf[i]);
      else if (dims[i].isConstant(1))
        exprs[perm[i]] = zero;
      else
        return emitError() << "a batch dim of attention may or may not be broadcast", failure();
    }
    return AffineMap::get(rank + 2, 0, exprs, getContext());
  };
  AffineExpr queries = b.getAffineDimExpr(loopOf[rank - 2]), columns = b.getAffineDimExpr(loopOf[rank - 1]);
  FailureOr<AffineMap> q = mapOf(getQ(), getQPerm(), queries, depth), k = mapOf(getK(), getKPerm(), keys, depth),
                       v = mapOf(getV(), getVPerm(), keys, columns);
  if (failed(q) || failed(k) || failed(v))
    return failure();
  SmallVector<AffineMap> maps{*q, *k, *v};
  SmallVector<Value> extras;
  for (auto [i, extra] : llvm::enumerate(getExtras())) {
    SmallVector<DimExpr> dims = dimsOf(extra.getType());
    SmallVector<AffineExpr> exprs;
    for (auto [d, e] : llvm::enumerate(dims)) {
      int64_t axis = rank - dims.size() + d;
      if (e == scores[axis])
        exprs.push_back(axis == rank - 1 ? keys : b.getAffineDimExpr(loopOf[axis]));
      else if (e.isConstant(1))
        exprs.push_back(zero);
      else
        return emitError() << "operand " << 3 + i << " of attention may or may not be broadcast", failure();
    }
    maps.push_back(AffineMap::get(rank + 2, 0, exprs, getContext()));
    extras.push_back(context.operand(3 + i));
  }
  // The keys that are there.
  auto used = [&](unsigned i, ArrayRef<int64_t> perm) -> Value {
    int64_t axis = perm[rank - 2];
    SmallVector<DimExpr> dims = dimsOf(context.operandType(i));
    if (dims[axis] == getKeys())
      return context.operand(i);
    SmallVector<OpFoldResult> sizes;
    for (DimExpr e : dims)
      sizes.push_back(context.dimOrConstant(e));
    sizes[axis] = context.dimOrConstant(getKeys());
    return tensor::ExtractSliceOp::create(b, loc, context.operand(i), SmallVector<OpFoldResult>(rank, b.getIndexAttr(0)), sizes,
                                          SmallVector<OpFoldResult>(rank, b.getIndexAttr(1)));
  };
  Value kUsed = used(1, getKPerm()), vUsed = used(2, getVPerm()), init = context.empty(context.resultType());
  auto kernel = KernelAttentionOp::create(b, loc, init.getType(), context.operand(0), kUsed, vUsed, extras, init,
                                          b.getAffineMapArrayAttr(maps), getEmptyIsZero(), getNanIsZero());
  // The region, on elements.
  Block &from = getScore().front();
  OpBuilder::InsertionGuard guard(b);
  Block *to = b.createBlock(&kernel.getScore());
  ScalarBuilder scalars(b, loc);
  DenseMap<Value, Scalar> scalarOf;
  for (BlockArgument argument : from.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    scalarOf[argument] = scalars.load(to->addArgument(storageType(type).getElementType(), loc), type.getElementType());
  }
  for (auto op : from.getOps<DlcOp>()) {
    ScalarBuilder own(b, op.getLoc());
    if (auto constant = dyn_cast<ConstantOp>(op.getOperation())) {
      DenseElementsAttr number = splatOf(constant.getResult());
      if (!number)
        return op.emitOpError("in the region of attention repeats no number"), failure();
      scalarOf[constant.getResult()] = own.constant(number);
      continue;
    }
    if (op.form() != Form::Scalar)
      return op.emitOpError("in the region of attention is not element-wise"), failure();
    SmallVector<Scalar> operands;
    for (Value operand : op->getOperands())
      operands.push_back(scalarOf.lookup(operand));
    scalarOf[op->getResult(0)] = op.scalar(own, operands);
  }
  Value yielded = cast<YieldOp>(from.getTerminator()).getValues()[0];
  KernelYieldOp::create(b, loc, scalars.store(scalarOf.lookup(yielded)));
  return SmallVector<Value>{kernel.getResult()};
}

//===----------------------------------------------------------------------===//
// dlc.kernel_attention
//===----------------------------------------------------------------------===//

LogicalResult KernelAttentionOp::verify() {
  if (getMaps().size() != 3 + getExtras().size())
    return emitOpError("has ") << getMaps().size() << " maps for " << 3 + getExtras().size() << " operands";
  if (mapOf(0).getNumDims() != cast<RankedTensorType>(getInit().getType()).getRank() + 2)
    return emitOpError("maps do not go from the loops of its result");
  for (auto [i, operand] : llvm::enumerate(getOperands().drop_back())) {
    AffineMap map = mapOf(i);
    if (map.getNumDims() != parallelLoops() + 2 || map.getNumResults() != cast<RankedTensorType>(operand.getType()).getRank() ||
        !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return emitOpError("map ") << i << " does not fit its operand";
  }
  auto uses = [&](unsigned operand, unsigned loop) { return mapOf(operand).isFunctionOfDim(loop); };
  for (auto [operand, loop, expected] : {std::tuple(0u, depthLoop(), true), {0u, keyLoop(), false}, {0u, columnLoop(), false},
                                         {1u, depthLoop(), true}, {1u, keyLoop(), true}, {1u, columnLoop(), false},
                                         {2u, depthLoop(), false}, {2u, keyLoop(), true}, {2u, columnLoop(), true}})
    if (uses(operand, loop) != expected)
      return emitOpError("operand ") << operand << (expected ? " lacks" : " has") << " loop " << loop;
  for (unsigned i = 3; i < getMaps().size(); ++i)
    if (uses(i, columnLoop()) || uses(i, depthLoop()))
      return emitOpError("operand ") << i << " runs along columns or depth";
  if (getScore().getNumArguments() != 1 + getExtras().size())
    return emitOpError("its region has ") << getScore().getNumArguments() << " arguments";
  auto elementOf = [](Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); };
  for (auto [i, argument] : llvm::enumerate(getScore().getArguments()))
    if (argument.getType() != elementOf(i ? getExtras()[i - 1] : getInit()))
      return emitOpError("argument ") << i << " of its region is of type " << argument.getType();
  auto yield = dyn_cast<KernelYieldOp>(getScore().front().getTerminator());
  if (!yield || yield.getValue().getType() != elementOf(getInit()))
    return emitOpError("its region yields no score");
  return success();
}

SmallVector<unsigned> KernelAttentionOp::queryLoops() {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < columnLoop(); ++loop)
    if (!mapOf(1).isFunctionOfDim(loop) && !mapOf(2).isFunctionOfDim(loop))
      loops.push_back(loop);
  return loops;
}

SmallVector<utils::IteratorType> KernelAttentionOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types(parallelLoops(), utils::IteratorType::parallel);
  types.append(2, utils::IteratorType::reduction);
  return types;
}

SmallVector<Range> KernelAttentionOp::getIterationDomain(OpBuilder &b) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, getLoc(), getInit());
  for (unsigned loop : {keyLoop(), depthLoop()})
    sizes.push_back(tensor::getMixedSize(b, getLoc(), getK(), *mapOf(1).getResultPosition(b.getAffineDimExpr(loop))));
  SmallVector<Range> domain;
  for (OpFoldResult size : sizes)
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

LogicalResult KernelAttentionOp::getResultTilePosition(OpBuilder &, unsigned, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                                                       SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.begin() + parallelLoops());
  resultSizes.assign(sizes.begin(), sizes.begin() + parallelLoops());
  return success();
}

FailureOr<TilingResult> KernelAttentionOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  SmallVector<Value> parts;
  SmallVector<Operation *> slices;
  for (auto [i, tensor] : llvm::enumerate(getOperands())) {
    AffineMap map = i == getMaps().size() ? b.getMultiDimIdentityMap(parallelLoops()) : mapOf(i);
    SmallVector<OpFoldResult> at, size = tensor::getMixedSizes(b, loc, tensor);
    for (auto [d, e] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(e);
      bool isCut = loop && loop.getPosition() < parallelLoops(); // keys and depth are gone through as wholes
      at.push_back(isCut ? offsets[loop.getPosition()] : OpFoldResult(b.getIndexAttr(0)));
      if (isCut)
        size[d] = sizes[loop.getPosition()];
    }
    slices.push_back(tensor::ExtractSliceOp::create(b, loc, tensor, at, size, SmallVector<OpFoldResult>(at.size(), b.getIndexAttr(1))));
    parts.push_back(slices.back()->getResult(0));
  }
  Operation *tile = mlir::clone(b, getOperation(), TypeRange(parts.back().getType()), parts);
  return TilingResult{{tile}, {tile->getResult(0)}, slices};
}

/// As a product, the score, a softmax, and a product.
FailureOr<SmallVector<Value>> KernelAttentionOp::decompose(OpBuilder &b) {
  Location loc = getLoc();
  MLIRContext *context = getContext();
  unsigned rows = parallelLoops() - 1; // loops that scores share with the result
  Type type = cast<RankedTensorType>(getInit().getType()).getElementType();
  SmallVector<OpFoldResult> rowSizes = tensor::getMixedSizes(b, loc, getInit());
  rowSizes.pop_back();
  SmallVector<OpFoldResult> scoreSizes(rowSizes);
  scoreSizes.push_back(tensor::getMixedSize(b, loc, getK(), *mapOf(1).getResultPosition(b.getAffineDimExpr(keyLoop()))));

  auto parallel = utils::IteratorType::parallel, reduction = utils::IteratorType::reduction;
  auto constant = [&](TypedAttr value) { return arith::ConstantOp::create(b, loc, value); };
  auto filled = [&](ArrayRef<OpFoldResult> sizes, TypedAttr value) -> Value {
    Value empty = tensor::EmptyOp::create(b, loc, sizes, type);
    return linalg::FillOp::create(b, loc, Value(constant(value)), empty).getResult(0);
  };
  TypedAttr none = b.getZeroAttr(type);
  auto floatType = cast<FloatType>(type);
  TypedAttr lowest = b.getFloatAttr(floatType, APFloat::getInf(floatType.getFloatSemantics(), /*Negative=*/true));
  // Loops of an operand in another numbering: rows as they are, and then those given.
  auto renumbered = [&](AffineMap map, unsigned loops, std::initializer_list<std::pair<unsigned, unsigned>> to) {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop = 0; loop < rows + 3; ++loop)
      exprs.push_back(b.getAffineDimExpr(loop < rows ? loop : 0));
    for (auto [from, own] : to)
      exprs[from] = b.getAffineDimExpr(own);
    return map.replaceDimsAndSymbols(exprs, {}, loops, 0);
  };
  auto sumOfProducts = [&](OpBuilder &inner, Location at, ValueRange args) {
    Value product = arith::MulFOp::create(inner, at, args[0], args[1]);
    linalg::YieldOp::create(inner, at, Value(arith::AddFOp::create(inner, at, args[2], product)));
  };
  auto generic = [&](ValueRange ins, Value out, ArrayRef<AffineMap> maps, utils::IteratorType last,
                     function_ref<void(OpBuilder &, Location, ValueRange)> body) -> Value {
    SmallVector<utils::IteratorType> kinds(maps.back().getNumDims(), parallel);
    kinds.back() = last;
    return linalg::GenericOp::create(b, loc, out.getType(), ins, out, maps, kinds, body).getResult(0);
  };
  unsigned loops = rows + 2;
  AffineMap scoresAll = b.getMultiDimIdentityMap(rows + 1), rowOnly = AffineMap::getMultiDimIdentityMap(rows + 1, context).getMajorSubMap(rows);
  Value products = generic({getQ(), getK()}, filled(scoreSizes, none),
                           {renumbered(mapOf(0), loops, {{keyLoop(), rows}, {depthLoop(), rows + 1}}),
                            renumbered(mapOf(1), loops, {{keyLoop(), rows}, {depthLoop(), rows + 1}}),
                            AffineMap::getMultiDimIdentityMap(loops, context).getMajorSubMap(rows + 1)},
                           reduction, sumOfProducts);
  SmallVector<Value> ins{products};
  SmallVector<AffineMap> maps{scoresAll};
  for (auto [i, extra] : llvm::enumerate(getExtras())) {
    ins.push_back(extra);
    maps.push_back(renumbered(mapOf(3 + i), rows + 1, {{keyLoop(), rows}}));
  }
  maps.push_back(scoresAll);
  Value scores = generic(ins, tensor::EmptyOp::create(b, loc, scoreSizes, type), maps, parallel, [&](OpBuilder &inner, Location at, ValueRange args) {
    IRMapping mapping;
    mapping.map(getScore().getArguments(), args.drop_back());
    for (Operation &op : getScore().front().without_terminator())
      inner.clone(op, mapping);
    Value score = cast<KernelYieldOp>(getScore().front().getTerminator()).getValue();
    linalg::YieldOp::create(inner, at, mapping.lookupOrDefault(score));
  });
  Value largest = generic(scores, filled(rowSizes, lowest), {scoresAll, rowOnly}, reduction, [](OpBuilder &inner, Location at, ValueRange args) {
    linalg::YieldOp::create(inner, at, Value(arith::MaximumFOp::create(inner, at, args[0], args[1])));
  });
  Value weights = generic({scores, largest}, tensor::EmptyOp::create(b, loc, scoreSizes, type), {scoresAll, rowOnly, scoresAll}, parallel,
                          [](OpBuilder &inner, Location at, ValueRange args) {
                            Value shifted = arith::SubFOp::create(inner, at, args[0], args[1]);
                            linalg::YieldOp::create(inner, at, Value(math::ExpOp::create(inner, at, shifted)));
                          });
  Value total = generic(weights, filled(rowSizes, none), {scoresAll, rowOnly}, reduction, [](OpBuilder &inner, Location at, ValueRange args) {
    linalg::YieldOp::create(inner, at, Value(arith::AddFOp::create(inner, at, args[1], args[0])));
  });
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, getInit());
  AffineMap withColumns = AffineMap::getMultiDimIdentityMap(loops, context);
  AffineMap weightsMap = AffineMap::get(loops, 0, [&] {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop = 0; loop < rows; ++loop)
      exprs.push_back(b.getAffineDimExpr(loop));
    exprs.push_back(b.getAffineDimExpr(rows + 1));
    return exprs;
  }(), context);
  Value sums = generic({weights, getV()}, filled(sizes, none),
                       {weightsMap, renumbered(mapOf(2), loops, {{columnLoop(), rows}, {keyLoop(), rows + 1}}), withColumns.getMajorSubMap(rows + 1)},
                       reduction, sumOfProducts);
  // Of a row without a score above -inf, the largest is -inf, and the total NaN.
  bool emptyIsZero = getEmptyIsZero(), nanIsZero = getNanIsZero();
  // A sum over no keys is 0.
  Value keys = getValueOrCreateConstantIndexOp(b, loc, scoreSizes.back());
  Value hasKeys = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, keys, arith::ConstantIndexOp::create(b, loc, 0));
  Value result = generic({sums, total, largest}, getInit(), {scoresAll, rowOnly, rowOnly, scoresAll}, parallel, [&](OpBuilder &inner, Location at, ValueRange args) {
    Value mean = arith::DivFOp::create(inner, at, args[0], args[1]);
    Value zero = arith::ConstantOp::create(inner, at, none);
    if (emptyIsZero) {
      Value least = arith::ConstantOp::create(inner, at, lowest);
      mean = arith::SelectOp::create(inner, at, arith::CmpFOp::create(inner, at, arith::CmpFPredicate::OEQ, args[2], least), zero, mean);
    }
    if (nanIsZero)
      mean = arith::SelectOp::create(inner, at, arith::CmpFOp::create(inner, at, arith::CmpFPredicate::UNO, args[1], args[1]), zero, mean);
    mean = arith::SelectOp::create(inner, at, hasKeys, mean, zero);
    linalg::YieldOp::create(inner, at, mean);
  });
  return SmallVector<Value>{result};
}

} // namespace dlc
