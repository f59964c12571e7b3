// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Recurrent.h"
#include "dlc/IR/ShapeContext.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Recurrent.cpp.inc"

namespace dlc {

void DlcDialect::addRecurrentOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Recurrent.cpp.inc"
      >();
}

Form RecurrentOp::form() { return Form::Missing; }

static int64_t gatesOf(CellKind kind) { return kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1; }

LogicalResult RecurrentOp::shape(ShapeContext &context) {
  MLIRContext *c = getContext();
  SmallVector<DimExpr> x = context.dims(0), w = context.dims(1), r = context.dims(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3)
    return context.emitError() << "the sequence and the weights must have 3 axes; dims are " << toString(x) << ", " << toString(w) << " and " << toString(r);
  DimExpr hidden = constantDim(c, getHidden()), directions = constantDim(c, getDirections());
  DimExpr gates = constantDim(c, gatesOf(getKind()) * getHidden());
  DimExpr batch = x[getBatchFirst() ? 0 : 1], sequence = x[getBatchFirst() ? 1 : 0];
  auto require = [&](DimExpr have, DimExpr want, StringRef what) {
    return context.requireEqual(have, want, Twine(what) + " is {0}, not {1}");
  };
  if (failed(require(w[0], directions, "the number of directions of the input weights")) ||
      failed(require(w[1], gates, "the number of rows of the input weights")) ||
      failed(require(w[2], x[2], "the number of columns of the input weights")) ||
      failed(require(r[0], directions, "the number of directions of the recurrence weights")) ||
      failed(require(r[1], gates, "the number of rows of the recurrence weights")) ||
      failed(require(r[2], hidden, "the number of columns of the recurrence weights")))
    return failure();
  auto check = [&](Value operand, ArrayRef<DimExpr> want, StringRef what) -> LogicalResult {
    if (!operand)
      return success();
    SmallVector<DimExpr> have = dimsOf(operand.getType());
    if (have.size() != want.size())
      return context.emitError() << what << " must have " << want.size() << " axes, not " << have.size();
    for (auto [a, b] : llvm::zip_equal(have, want))
      if (failed(require(a, b, ("a dim of " + what).str())))
        return failure();
    return success();
  };
  SmallVector<DimExpr> state = getBatchFirst() ? SmallVector<DimExpr>{batch, directions, hidden} : SmallVector<DimExpr>{directions, batch, hidden};
  if (failed(check(getBias(), {directions, mulDims(gates, constantDim(c, 2))}, "the bias")) || failed(check(getLengths(), {batch}, "the list of lengths")) ||
      failed(check(getInitialHidden(), state, "the initial state")) || failed(check(getInitialCell(), state, "the initial cell state")) ||
      failed(check(getPeepholes(), {directions, constantDim(c, 3 * getHidden())}, "the peepholes")))
    return failure();
  SmallVector<DimExpr> all = getBatchFirst() ? SmallVector<DimExpr>{batch, sequence, directions, hidden}
                                             : SmallVector<DimExpr>{sequence, directions, batch, hidden};
  context.setResult(0, context.elementType(0), all);
  context.setResult(1, context.elementType(0), state);
  context.setResult(2, context.elementType(0), state);
  return success();
}

} // namespace dlc
