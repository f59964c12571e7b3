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

} // namespace dlc
