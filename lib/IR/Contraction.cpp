// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Contraction.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Contraction.cpp.inc"

namespace dlc {

void DlcDialect::addContractionOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Contraction.cpp.inc"
      >();
}

Form MatMulOp::form() { return Form::Lower; }
Role MatMulOp::role() { return Role::Contraction; }
PrecisionNeed MatMulOp::precision() { return PrecisionNeed::AccumulateF32; }

LogicalResult MatMulOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> a = context.dims(0), b = context.dims(1);
  if (a.empty() || b.empty())
    return context.emitError() << "a matrix product needs operands of at least one axis; dims are " << toString(a) << " and " << toString(b);
  if (context.elementType(0) != context.elementType(1))
    return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(1)
                               << "; they must be equal (ONNX never converts: insert a Cast)";
  bool rowVector = a.size() == 1, columnVector = b.size() == 1;
  DimExpr inner = a.back(), other = columnVector ? b[0] : b[b.size() - 2];
  if (failed(context.requireEqual(inner, other, "inner dims " + toString(inner) + " and " + toString(other) + " of the matrix product differ: {0} and {1}")))
    return failure();
  SmallVector<DimExpr> aBatch, bBatch;
  if (!rowVector)
    aBatch.assign(a.begin(), a.end() - 2);
  if (!columnVector)
    bBatch.assign(b.begin(), b.end() - 2);
  FailureOr<SmallVector<DimExpr>> dims = context.broadcast(aBatch, bBatch);
  if (failed(dims))
    return failure();
  if (!rowVector)
    dims->push_back(a[a.size() - 2]);
  if (!columnVector)
    dims->push_back(b.back());
  context.setResult(0, context.elementType(0), *dims);
  return success();
}

DimExpr MatMulOp::cost() {
  SmallVector<DimExpr> a = dimsOf(getA().getType());
  DimExpr twice = constantDim(getContext(), 2);
  return mulDims(twice, mulDims(a.back(), productOfDims(getContext(), dimsOf(getResult().getType()))));
}

FailureOr<SmallVector<Value>> MatMulOp::lower(LowerContext &context) {
  OpBuilder &builder = context.b();
  RankedTensorType type = context.resultType();
  SmallVector<DimExpr> dims = dimsOf(type), aDims = dimsOf(context.operandType(0)), bDims = dimsOf(context.operandType(1));
  bool rowVector = aDims.size() == 1, columnVector = bDims.size() == 1;
  int64_t resultRank = dims.size(), batch = resultRank - !rowVector - !columnVector;
  unsigned loops = resultRank + 1; // batch..., row?, column?, inner
  AffineExpr inner = builder.getAffineDimExpr(loops - 1);

  // A batch dim of an operand is the result's, or 1. Anything between is decided at run time, which this op cannot do yet.
  auto batchExprs = [&](ArrayRef<DimExpr> operand, int64_t matrixAxes) -> FailureOr<SmallVector<AffineExpr>> {
    SmallVector<AffineExpr> exprs;
    int64_t count = static_cast<int64_t>(operand.size()) - matrixAxes;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = batch - count + i;
      if (operand[i] == dims[at])
        exprs.push_back(builder.getAffineDimExpr(at));
      else if (operand[i].isConstant(1))
        exprs.push_back(builder.getAffineConstantExpr(0));
      else
        return emitError() << "batch dim " << toString(operand[i]) << " may or may not be broadcast to " << toString(dims[at])
                           << "; give both the same name, or fix one with --dim",
               failure();
    }
    return exprs;
  };
  FailureOr<SmallVector<AffineExpr>> aExprs = batchExprs(aDims, rowVector ? 1 : 2), bExprs = batchExprs(bDims, columnVector ? 1 : 2);
  if (failed(aExprs) || failed(bExprs))
    return failure();
  if (!rowVector)
    aExprs->push_back(builder.getAffineDimExpr(batch));
  aExprs->push_back(inner);
  bExprs->push_back(inner);
  if (!columnVector)
    bExprs->push_back(builder.getAffineDimExpr(resultRank - 1));

  Type element = type.getElementType();
  Type storage = storageType(type).getElementType();
  // Half types accumulate in f32 and are rounded once.
  bool isHalf = element.isF16() || element.isBF16();
  Type accumulator = isHalf ? Type(builder.getF32Type()) : storage;
  Value init = context.filled(type, builder.getZeroAttr(accumulator));
  SmallVector<AffineExpr> resultExprs; // none for the product of two vectors
  for (int64_t i = 0; i != resultRank; ++i)
    resultExprs.push_back(builder.getAffineDimExpr(i));
  SmallVector<AffineMap> maps{AffineMap::get(loops, 0, *aExprs, getContext()), AffineMap::get(loops, 0, *bExprs, getContext()),
                              AffineMap::get(loops, 0, resultExprs, getContext())};
  SmallVector<utils::IteratorType> iterators(resultRank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  auto product = linalg::GenericOp::create(
      builder, getLoc(), init.getType(), ValueRange{context.operand(0), context.operand(1)}, init, maps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value x = args[0], y = args[1], sum;
        if (isa<FloatType>(element)) {
          if (isHalf) {
            x = arith::ExtFOp::create(b, loc, accumulator, x);
            y = arith::ExtFOp::create(b, loc, accumulator, y);
          }
          sum = arith::AddFOp::create(b, loc, args[2], arith::MulFOp::create(b, loc, x, y));
        } else {
          sum = arith::AddIOp::create(b, loc, args[2], arith::MulIOp::create(b, loc, x, y));
        }
        linalg::YieldOp::create(b, loc, sum);
      });
  Value result = product.getResult(0);
  if (isHalf)
    result = context.truncated(result, type);
  return SmallVector<Value>{result};
}

} // namespace dlc
