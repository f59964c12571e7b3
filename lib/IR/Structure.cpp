// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/IR/ShapeContext.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Structure.cpp.inc"

namespace dlc {

void DlcDialect::addStructureOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Structure.cpp.inc"
      >();
}

void ConstantOp::build(OpBuilder &builder, OperationState &state, TypedAttr value) {
  build(builder, state, value.getType(), value);
}

Form ConstantOp::form() { return Form::Host; }
Role ConstantOp::role() { return Role::Opaque; }

LogicalResult ConstantOp::shape(ShapeContext &context) {
  auto type = cast<RankedTensorType>(cast<TypedAttr>(getValue()).getType());
  getResult().setType(type);
  if (std::optional<SmallVector<int64_t>> integers = constantIntegers(getValue(), ShapeContext::kMaxValues)) {
    SmallVector<DimExpr> values;
    for (int64_t v : *integers)
      values.push_back(constantDim(getContext(), v));
    context.setValues(0, values);
  }
  return success();
}

Form FromDimsOp::form() { return Form::Host; }
Role FromDimsOp::role() { return Role::Opaque; }

LogicalResult FromDimsOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> values;
  for (Attribute v : getValues())
    values.push_back(cast<DimExpr>(v));
  context.setValues(0, values);
  return success();
}

Form RequireOp::form() { return Form::Host; }
Role RequireOp::role() { return Role::Opaque; }
bool RequireOp::readsData(unsigned) { return false; }

LogicalResult RequireOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<DimExpr>> lhs = context.valuesOrRead(0, "what is required to hold a value");
  FailureOr<SmallVector<DimExpr>> rhs = context.valuesOrRead(1, "the required value");
  if (failed(lhs) || failed(rhs))
    return failure();
  if (lhs->empty() || rhs->empty()) // taken from an axis that does not exist; the op that works on it says so
    return success();
  if (rhs->size() != 1 && rhs->size() != lhs->size())
    return context.emitError() << "there are " << lhs->size() << " elements and " << rhs->size() << " required values";
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  for (auto [i, x] : llvm::enumerate(*lhs)) {
    DimExpr y = (*rhs)[rhs->size() == 1 ? 0 : i];
    DimExpr holds = getAtLeast() ? selectLtDims(x, y, zero, one) : selectEqDims(x, y, one, zero);
    if (failed(context.require(holds, x, y, getMessage())))
      return failure();
  }
  return success();
}

} // namespace dlc
