// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/IR/ShapeContext.h"
#include "dlc/Support/CurrentWork.h"
#include "dlc/Transforms/Passes.h"

namespace dlc {
#define GEN_PASS_DEF_INFERSHAPES
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// A tensor whose elements are all known, as a constant or as dlc.from_dims; null for an element type that cannot hold them.
Value materialize(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<DimExpr> values) {
  auto integer = cast<IntegerType>(type.getElementType());
  bool isConstant = llvm::all_of(values, [](DimExpr e) { return e.getConstant().has_value(); });
  if (!isConstant) {
    SmallVector<Attribute> attributes(values.begin(), values.end());
    return FromDimsOp::create(builder, loc, type, builder.getArrayAttr(attributes));
  }
  SmallVector<APInt> elements;
  for (DimExpr e : values) {
    APInt wide(64, *e.getConstant(), /*isSigned=*/true);
    APInt element = wide.sextOrTrunc(integer.getWidth());
    bool fits = integer.isUnsigned() || integer.getWidth() == 1 ? element.zextOrTrunc(64) == wide : element.sextOrTrunc(64) == wide;
    if (!fits)
      return {};
    elements.push_back(element);
  }
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, elements));
}

class InferShapes : public impl::InferShapesBase<InferShapes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    ShapeState state;
    bool isComplete = true;
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      isComplete &= succeeded(visit(op, state));
    if (!isComplete)
      return signalPassFailure();
    // The function's type follows what it returns.
    auto results = function.getBody().front().getTerminator()->getOperandTypes();
    function.setType(FunctionType::get(&getContext(), function.getArgumentTypes(), results));
  }

  /// An op after a failed one is not looked at where it uses the failed one's result: one message a problem.
  static LogicalResult visit(Operation &op, ShapeState &state) {
    CurrentWork work("infer-shapes", op.getLoc());
    auto dlcOp = dyn_cast<DlcOp>(op);
    if (!dlcOp) {
      if (auto read = dyn_cast<ReadOp>(op)) // from an earlier run of this pass
        recall(read, state);
      else if (auto check = dyn_cast<CheckOp>(op))
        state.checks.insert(check.getCondition());
      return success();
    }
    if (!llvm::all_of(op.getOperandTypes(), llvm::IsaPred<RankedTensorType>))
      return failure();
    ShapeContext context(&op, state);
    if (failed(dlcOp.shape(context)))
      return failure();
    if (isa<ConstantOp, FromDimsOp>(op))
      return success();
    if (isa<RequireOp>(op)) // its checks stand for it now
      return op.erase(), success();
    for (Value result : op.getResults())
      replaceByValues(result, state);
    return success();
  }

  static void recall(ReadOp read, ShapeState &state) {
    SmallVector<DimExpr> &values = state.values[read.getX()];
    values.resize(read.getSymbols().size());
    for (auto [value, name] : llvm::zip_equal(values, read.getSymbols().getAsRange<StringAttr>()))
      if (!value)
        value = symbolDim(read.getContext(), name.getValue());
    ++state.nextRead;
    if (auto named = read.getX().getDefiningOp<FromDimsOp>())
      recallNames(read, named, state);
  }

  /// Expressions that have names keep them.
  static void recallNames(ReadOp read, FromDimsOp expressions, ShapeState &state) {
    SmallVector<DimExpr> names;
    for (auto [e, name] : llvm::zip_equal(expressions.getValues().getAsRange<DimExprAttr>(), read.getSymbols().getAsRange<StringAttr>()))
      names.push_back(e.getConstant() || e.isSymbol() ? e : symbolDim(read.getContext(), name.getValue()));
    state.named[expressions.getValues()] = names;
  }

  static void replaceByValues(Value result, ShapeState &state) {
    auto found = state.values.find(result);
    auto type = cast<RankedTensorType>(result.getType());
    if (found == state.values.end() || !type.hasStaticShape() || !type.getElementType().isInteger() ||
        type.getNumElements() != static_cast<int64_t>(found->second.size()) || llvm::is_contained(found->second, DimExpr()))
      return;
    SmallVector<DimExpr> values = found->second;
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfterValue(result);
    Value known = materialize(builder, result.getLoc(), type, values);
    if (!known)
      return;
    result.replaceAllUsesWith(known);
    state.values[known] = values;
    state.values.erase(result);
    if (isOpTriviallyDead(result.getDefiningOp()))
      result.getDefiningOp()->erase();
  }
};

} // namespace
} // namespace dlc
