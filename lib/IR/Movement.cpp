// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Values.h"
#include "dlc/IR/AxisSet.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Movement.cpp.inc"

namespace dlc {

void DlcDialect::addMovementOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Movement.cpp.inc"
      >();
}

static Value indexConstant(OpBuilder &b, Location loc, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

/// The values of the result, if there are few, and any is known.
static void setMovedValues(ShapeContext &context, ArrayRef<DimExpr> dims, function_ref<DimExpr(ArrayRef<int64_t> at)> value) {
  std::optional<SmallVector<int64_t>> sizes = sizesForValues(dims);
  if (!sizes)
    return;
  SmallVector<DimExpr> values;
  forEachElement(*sizes, [&](ArrayRef<int64_t> at) { values.push_back(value(at)); });
  if (!llvm::all_of(values, [](DimExpr e) { return !e; }))
    context.setValues(0, values);
}

//===----------------------------------------------------------------------===//
// Concat
//===----------------------------------------------------------------------===//

Form ConcatOp::form() { return Form::Lower; }
Role ConcatOp::role() { return Role::Movement; }

LogicalResult ConcatOp::shape(ShapeContext &context) {
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  SmallVector<DimExpr> dims = context.dims(0);
  for (unsigned i = 1; i != getNumOperands(); ++i) {
    SmallVector<DimExpr> next = context.dims(i);
    if (next.size() != dims.size())
      return context.emitError() << "operand " << i << " has " << next.size() << " axes, operand 0 has " << dims.size();
    if (context.elementType(i) != context.elementType(0))
      return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(i)
                                 << "; they must be equal (ONNX never converts: insert a Cast)";
    for (size_t d = 0; d != dims.size(); ++d) {
      if (static_cast<int64_t>(d) == *axis)
        dims[d] = addDims(dims[d], next[d]);
      else if (failed(context.requireEqual(dims[d], next[d], "operands differ on axis " + Twine(d) + ", which is not concatenated: {0} and {1}")))
        return failure();
    }
    if (!dims[*axis])
      return context.emitError() << "the concatenated dim does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  }
  context.setResult(0, context.elementType(0), dims);
  setMovedValues(context, dims, [&](ArrayRef<int64_t> at) -> DimExpr {
    SmallVector<int64_t> from(at);
    for (unsigned i = 0; i != getNumOperands(); ++i) {
      int64_t size = *context.dims(i)[*axis].getConstant(); // the sum is known, so its parts are
      if (from[*axis] < size)
        return valueAt(context, i, from);
      from[*axis] -= size;
    }
    return {};
  });
  return success();
}

bool ConcatOp::isRemap() { return true; }

/// An element comes from the operand in whose range its index falls: a chain of scf.if, the last operand without a test.
Value ConcatOp::element(OpBuilder &builder, ValueRange indices, ElementReader read, llvm::function_ref<Value(DimExpr)> dim) {
  Location loc = getLoc();
  int64_t axis = getAxis();
  SmallVector<Value> ends;
  DimExpr end = constantDim(getContext(), 0);
  for (Value x : getXs()) {
    end = addDims(end, dimsOf(x.getType())[axis]);
    ends.push_back(dim(end));
  }
  std::function<Value(OpBuilder &, unsigned)> from = [&](OpBuilder &inner, unsigned i) -> Value {
    SmallVector<Value> at(indices);
    if (i > 0)
      at[axis] = arith::SubIOp::create(inner, loc, at[axis], ends[i - 1]);
    if (i + 1 == getNumOperands())
      return read(inner, i, at);
    Value isHere = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, indices[axis], ends[i]);
    auto branch = scf::IfOp::create(
        inner, loc, isHere, [&](OpBuilder &then, Location) { scf::YieldOp::create(then, loc, read(then, i, at)); },
        [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, from(otherwise, i + 1)); });
    return branch.getResult(0);
  };
  return from(builder, 0);
}

/// A remap by itself: reads its operands where they are.
static Value lowerRemap(LowerContext &context, DlcOp op) {
  auto read = [&](OpBuilder &b, unsigned operand, ValueRange at) -> Value {
    return tensor::ExtractOp::create(b, op.getLoc(), context.operand(operand), at);
  };
  auto dim = [&](DimExpr e) { return context.dim(e); };
  return context.generate(context.resultType(), [&](OpBuilder &b, ValueRange at) { return op.element(b, at, read, dim); });
}

FailureOr<SmallVector<Value>> ConcatOp::lower(LowerContext &context) {
  return SmallVector<Value>{lowerRemap(context, cast<DlcOp>(getOperation()))};
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

Form AppendOp::form() { return Form::Lower; }
Role AppendOp::role() { return Role::Movement; }

LogicalResult AppendOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> state = context.dims(0), x = context.dims(1);
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  if (state.size() != x.size() || context.elementType(0) != context.elementType(1))
    return context.emitError() << "what is appended has " << x.size() << " axes of " << context.elementType(1)
                               << ", the state " << state.size() << " of " << context.elementType(0);
  for (size_t d = 0; d != x.size(); ++d)
    if (static_cast<int64_t>(d) != *axis &&
        failed(context.requireEqual(state[d], x[d],
                                    "the state and what is appended differ on axis " + Twine(d) + ": {0} and {1}")))
      return failure();
  if (state[*axis] == x[*axis])
    return context.emitError() << "what is appended is as long as the state may be, " << toString(x[*axis]);
  context.setResult(0, context.elementType(0), state);
  return success();
}

FailureOr<SmallVector<Value>> AppendOp::lower(LowerContext &context) {
  // The destination is the state's memory: outline-kernels sees to that.
  Value init = context.empty(context.resultType());
  auto append = KernelAppendOp::create(context.b(), getLoc(), init.getType(), context.operand(1), init,
                                       context.dim(getOffset()), getAxis());
  return SmallVector<Value>{append.getResult()};
}

Form PrefixOp::form() { return Form::Lower; }
Role PrefixOp::role() { return Role::Movement; }

LogicalResult PrefixOp::shape(ShapeContext &context) {
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  SmallVector<DimExpr> dims = context.dims(0);
  dims[*axis] = getLength();
  context.setResult(0, context.elementType(0), dims);
  return success();
}

bool PrefixOp::isRemap() { return true; }

Value PrefixOp::element(OpBuilder &b, ValueRange indices, ElementReader read, llvm::function_ref<Value(DimExpr)>) { return read(b, 0, indices); }

FailureOr<SmallVector<Value>> PrefixOp::lower(LowerContext &context) {
  return SmallVector<Value>{lowerRemap(context, cast<DlcOp>(getOperation()))};
}

//===----------------------------------------------------------------------===//
// Indices that are data
//===----------------------------------------------------------------------===//

/// Operand i holds int32 or int64 indices. Those that are known must be on their axis, which for index k is axis
/// first + k % sizes.size(); those of a run are checked by the kernel.
static LogicalResult checkIndices(ShapeContext &context, unsigned i, int64_t first, ArrayRef<DimExpr> sizes) {
  Type type = context.elementType(i);
  if (!type.isInteger(64) && !type.isInteger(32))
    return context.emitError() << "indices must be int32 or int64, not " << type;
  for (auto [k, index] : llvm::enumerate(context.values(i))) {
    std::optional<int64_t> at = index ? index.getConstant() : std::nullopt, size = sizes[k % sizes.size()].getConstant();
    if (at && size && (*at < -*size || *at >= *size))
      return context.emitError() << "index " << *at << " is outside axis " << first + k % sizes.size() << ", which has " << *size << " entries";
  }
  return success();
}

/// The size of the last axis of operand i: how many axes a tuple of indices decides on, 1 .. most.
static FailureOr<int64_t> tupleSize(ShapeContext &context, unsigned i, int64_t most) {
  if (context.rank(i) == 0)
    return context.emitError() << "the indices have no axis; the last one must hold tuples of indices", failure();
  std::optional<int64_t> size = context.dims(i).back().getConstant();
  if (!size)
    return context.emitError() << "the last axis of the indices has the size " << toString(context.dims(i).back())
                               << ", which must be known when compiling; fix it with --dim",
           failure();
  if (*size < 1 || *size > most)
    return context.emitError() << "the last axis of the indices has " << *size << " entries; it must have 1 to " << most
                               << ", as many as there are axes to decide on",
           failure();
  return *size;
}

/// Operand i, `what`, must have these dims.
static LogicalResult requireDims(ShapeContext &context, unsigned i, StringRef what, ArrayRef<DimExpr> dims) {
  SmallVector<DimExpr> own = context.dims(i);
  if (own.size() != dims.size())
    return context.emitError() << what << " must have " << dims.size() << " axes, not " << own.size();
  for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(own, dims)))
    if (failed(context.requireEqual(std::get<0>(pair), std::get<1>(pair), what + Twine(" must have size {1} on axis ") + Twine(d) + ", not {0}")))
      return failure();
  return success();
}

/// Indices with an axis for each of x's, and no more entries along any but the one that they decide on.
static LogicalResult requireIndicesInside(ShapeContext &context, int64_t axis) {
  SmallVector<DimExpr> x = context.dims(0), indices = context.dims(1);
  if (x.size() != indices.size())
    return context.emitError() << "the indices must have as many axes as the operand, which has " << x.size() << ", not " << indices.size();
  DimExpr zero = constantDim(context.getContext(), 0), one = constantDim(context.getContext(), 1);
  for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(x, indices)))
    if (auto [size, count] = pair; static_cast<int64_t>(d) != axis &&
                                   failed(context.require(selectLtDims(size, count, zero, one), count, size,
                                                          "the indices have {0} entries on axis " + Twine(d) + ", the operand {1}")))
      return failure();
  return success();
}

/// Where a known index points in a list of as many values; nothing where it is not known.
static std::optional<int64_t> knownPlace(DimExpr index, int64_t count) {
  std::optional<int64_t> at = index ? index.getConstant() : std::nullopt;
  return at && *at < 0 ? *at + count : at;
}

/// The values of a list that known indices pick, for a result with these elements.
static void setPickedValues(ShapeContext &context) {
  ArrayRef<DimExpr> values = context.values(0);
  if (context.rank(0) != 1 || values.empty())
    return;
  SmallVector<DimExpr> picked;
  for (DimExpr index : context.values(1)) {
    std::optional<int64_t> at = knownPlace(index, values.size());
    picked.push_back(at ? values[*at] : DimExpr());
  }
  if (!llvm::all_of(picked, [](DimExpr e) { return !e; }))
    context.setValues(0, picked);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

Form GatherOp::form() { return Form::Lower; }
Role GatherOp::role() { return Role::Movement; }

LogicalResult GatherOp::shape(ShapeContext &context) {
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  SmallVector<DimExpr> x = context.dims(0), indices = context.dims(1), dims(x.begin(), x.begin() + *axis);
  llvm::append_range(dims, indices);
  dims.append(x.begin() + *axis + 1, x.end());
  context.setResult(0, context.elementType(0), dims);
  if (failed(checkIndices(context, 1, *axis, x[*axis])))
    return failure();
  setPickedValues(context);
  return success();
}

FailureOr<SmallVector<Value>> GatherOp::lower(LowerContext &context) {
  Location loc = getLoc();
  int64_t axis = getAxis(), indexRank = context.operandType(1).getRank();
  Value size = context.dim(dimsOf(context.operandType(0))[axis]);
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value raw = tensor::ExtractOp::create(b, loc, context.operand(1), indices.slice(axis, indexRank));
    auto [index, isInside] = makeDataIndex(b, loc, raw, size);
    SmallVector<Value> at(indices.take_front(axis));
    at.push_back(index);
    llvm::append_range(at, indices.drop_front(axis + indexRank));
    return extractOrRaise(b, loc, isInside, context.operand(0), at);
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

Form GatherElementsOp::form() { return Form::Lower; }
Role GatherElementsOp::role() { return Role::Movement; }

LogicalResult GatherElementsOp::shape(ShapeContext &context) {
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  if (failed(requireIndicesInside(context, *axis)) || failed(checkIndices(context, 1, *axis, context.dims(0)[*axis])))
    return failure();
  context.setResult(0, context.elementType(0), context.dims(1));
  setPickedValues(context);
  return success();
}

FailureOr<SmallVector<Value>> GatherElementsOp::lower(LowerContext &context) {
  Location loc = getLoc();
  Value size = context.dim(dimsOf(context.operandType(0))[getAxis()]);
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    auto [index, isInside] = makeDataIndex(b, loc, tensor::ExtractOp::create(b, loc, context.operand(1), indices), size);
    SmallVector<Value> at(indices);
    at[getAxis()] = index;
    return extractOrRaise(b, loc, isInside, context.operand(0), at);
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

Form GatherNDOp::form() { return Form::Lower; }
Role GatherNDOp::role() { return Role::Movement; }

LogicalResult GatherNDOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), indices = context.dims(1);
  int64_t rank = x.size(), batch = getBatchDims();
  if (batch < 0 || batch >= std::min<int64_t>(rank, indices.size()))
    return context.emitError() << "batch_dims is " << batch << "; it must be at least 0 and less than the axes of the operand (" << rank
                               << ") and of the indices (" << indices.size() << ")";
  FailureOr<int64_t> tuple = tupleSize(context, 1, rank - batch);
  if (failed(tuple) || failed(checkIndices(context, 1, batch, ArrayRef(x).slice(batch, *tuple))))
    return failure();
  for (int64_t d = 0; d != batch; ++d)
    if (failed(context.requireEqual(x[d], indices[d], "the operand and the indices differ on axis " + Twine(d) + ", which they have in common: {0} and {1}")))
      return failure();
  SmallVector<DimExpr> dims(indices.begin(), indices.end() - 1);
  dims.append(x.begin() + batch + *tuple, x.end());
  context.setResult(0, context.elementType(0), dims);
  setPickedValues(context);
  return success();
}

FailureOr<SmallVector<Value>> GatherNDOp::lower(LowerContext &context) {
  Location loc = getLoc();
  RankedTensorType indexType = context.operandType(1);
  SmallVector<DimExpr> x = dimsOf(context.operandType(0));
  int64_t batch = getBatchDims(), tuple = indexType.getShape().back();
  SmallVector<Value> sizes;
  for (int64_t d = 0; d != tuple; ++d)
    sizes.push_back(context.dim(x[batch + d]));
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    SmallVector<Value> at(indices.take_front(batch)), from(indices.take_front(indexType.getRank() - 1));
    Value isInside;
    for (auto [d, size] : llvm::enumerate(sizes)) {
      from.push_back(indexConstant(b, loc, d));
      DataIndex next = makeDataIndex(b, loc, tensor::ExtractOp::create(b, loc, context.operand(1), from), size);
      from.pop_back();
      at.push_back(next.index);
      isInside = isInside ? arith::AndIOp::create(b, loc, isInside, next.isInside) : next.isInside;
    }
    llvm::append_range(at, indices.drop_front(indexType.getRank() - 1));
    return extractOrRaise(b, loc, isInside, context.operand(0), at);
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

Form ScatterElementsOp::form() { return Form::Kernel; }
Role ScatterElementsOp::role() { return Role::Movement; }
Form ScatterNDOp::form() { return Form::Kernel; }
Role ScatterNDOp::role() { return Role::Movement; }

/// What both have in common: the result is like x, and shape vectors may be put together by scatters.
static LogicalResult shapeScatter(ShapeContext &context, std::optional<ReduceKind> kind) {
  if (context.elementType(0) != context.elementType(2))
    return context.emitError() << "the operand and the updates have the element types " << context.elementType(0) << " and "
                               << context.elementType(2) << "; they must be equal (ONNX never converts: insert a Cast)";
  context.setResult(0, context.elementType(0), context.dims(0));
  std::optional<int64_t> count = context.rank(0) == 1 ? context.dims(0)[0].getConstant() : std::nullopt;
  ArrayRef<DimExpr> indices = context.values(1), updates = context.values(2);
  if (!count || *count > ShapeContext::kMaxValues || indices.empty() || llvm::is_contained(indices, DimExpr()))
    return success();
  SmallVector<DimExpr> values(context.values(0));
  values.resize(*count);
  for (auto [k, index] : llvm::enumerate(indices)) {
    std::optional<int64_t> at = knownPlace(index, *count);
    if (!at) // anywhere
      return success();
    DimExpr &value = values[*at], update = updates.empty() ? DimExpr() : updates[k];
    if (!kind)
      value = update;
    else if (*kind == ReduceKind::Sum)
      value = addDims(value, update);
    else if (*kind == ReduceKind::Prod)
      value = mulDims(value, update);
    else
      value = *kind == ReduceKind::Max ? maxDims(value, update) : minDims(value, update);
  }
  if (!llvm::all_of(values, [](DimExpr e) { return !e; }))
    context.setValues(0, values);
  return success();
}

static SmallVector<Value> lowerScatter(LowerContext &context, IntegerAttr axis, ReduceKindAttr kind) {
  RankedTensorType type = context.resultType();
  Value init = context.empty(type);
  auto scatter = KernelScatterOp::create(context.b(), context.getLoc(), init.getType(), context.operand(0), context.operand(1),
                                         context.operand(2), init, axis, kind, TypeAttr::get(type.getElementType()));
  return {scatter.getResult()};
}

LogicalResult ScatterElementsOp::shape(ShapeContext &context) {
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  if (failed(requireIndicesInside(context, *axis)) || failed(checkIndices(context, 1, *axis, context.dims(0)[*axis])) ||
      failed(requireDims(context, 2, "the updates", context.dims(1))))
    return failure();
  return shapeScatter(context, getKind());
}

FailureOr<SmallVector<Value>> ScatterElementsOp::lower(LowerContext &context) { return lowerScatter(context, getAxisAttr(), getKindAttr()); }

LogicalResult ScatterNDOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), dims = context.dims(1);
  FailureOr<int64_t> tuple = tupleSize(context, 1, x.size());
  if (failed(tuple) || failed(checkIndices(context, 1, 0, ArrayRef(x).take_front(*tuple))))
    return failure();
  dims.pop_back();
  dims.append(x.begin() + *tuple, x.end());
  if (failed(requireDims(context, 2, "the updates", dims)))
    return failure();
  return shapeScatter(context, getKind());
}

FailureOr<SmallVector<Value>> ScatterNDOp::lower(LowerContext &context) { return lowerScatter(context, IntegerAttr(), getKindAttr()); }

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

Form PadOp::form() { return Form::Lower; }
Role PadOp::role() { return Role::Movement; }
bool PadOp::readsData(unsigned operand) { return operand == 0 || (operand == 2 && getMode() == "constant"); }

LogicalResult PadOp::shape(ShapeContext &context) {
  if (!llvm::is_contained({"constant", "edge", "reflect", "wrap"}, getMode()))
    return context.emitError() << "mode is '" << getMode() << "'; it must be constant, edge, reflect or wrap";
  if (context.elementType(2) != context.elementType(0) || !(context.rank(2) == 0 || (context.rank(2) == 1 && context.dims(2)[0].isConstant(1))))
    return context.emitError() << "the value to pad with must be one element of type " << context.elementType(0) << ", not "
                               << toString(context.dims(2)) << " of " << context.elementType(2);
  SmallVector<DimExpr> x = context.dims(0);
  FailureOr<SmallVector<DimExpr>> pads = context.valuesOrRead(1, "pads");
  if (failed(pads))
    return failure();
  SmallVector<DimExpr> axes;
  for (size_t d = 0; d != x.size(); ++d)
    axes.push_back(constantDim(getContext(), d));
  if (getAxes()) {
    FailureOr<SmallVector<DimExpr>> given = context.axesOrRead(3, x.size(), "axes");
    if (failed(given))
      return failure();
    axes = *given;
  }
  if (pads->size() != 2 * axes.size())
    return context.emitError() << "pads has " << pads->size() << " entries; it must have two for each of " << axes.size() << " axes";
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  SmallVector<DimExpr> dims(x), front(x.size(), zero), behind(x.size(), zero);
  for (size_t d = 0; d != x.size(); ++d)
    for (auto [k, axis] : llvm::enumerate(axes)) {
      DimExpr own = constantDim(getContext(), d);
      front[d] = selectEqDims(axis, own, (*pads)[k], front[d]);
      behind[d] = selectEqDims(axis, own, (*pads)[axes.size() + k], behind[d]);
    }
  if (!llvm::all_of(axes, [](DimExpr axis) { return axis.getConstant().has_value(); })) {
    front = context.named(front);
    behind = context.named(behind);
  }
  for (size_t d = 0; d != x.size(); ++d) {
    dims[d] = addDims(addDims(x[d], front[d]), behind[d]);
    if (lowerBound(dims[d]).value_or(-1) < 0 &&
        failed(context.require(selectLtDims(dims[d], zero, zero, one), x[d], dims[d],
                               "more is taken away from axis " + Twine(d) + " than its {0} elements: {1} would be left")))
      return failure();
    if (getMode() == "constant")
      continue;
    // What is repeated must be there.
    DimExpr left = addDims(x[d], addDims(minDims(front[d], zero), minDims(behind[d], zero)));
    DimExpr fits = selectLtDims(zero, left, one, selectEqDims(dims[d], zero, one, zero));
    if (!(front[d] == zero && behind[d] == zero) &&
        failed(context.require(fits, x[d], dims[d], "axis " + Twine(d) + " of {0} elements cannot be padded to {1}: it has no element to repeat")))
      return failure();
  }
  if (failed(context.requireSizes(dims, "the result")))
    return failure();
  context.setResult(0, context.elementType(0), dims);
  setResolvedFrontAttr(ArrayAttr::get(getContext(), SmallVector<Attribute>(front.begin(), front.end())));
  setResolvedBehindAttr(ArrayAttr::get(getContext(), SmallVector<Attribute>(behind.begin(), behind.end())));

  ArrayRef<DimExpr> values = context.values(0), value = context.values(2);
  std::optional<int64_t> size = x.size() == 1 ? dims[0].getConstant() : std::nullopt;
  if (getMode() != "constant" || values.empty() || !size || *size > ShapeContext::kMaxValues || !front[0].getConstant())
    return success();
  SmallVector<DimExpr> padded;
  for (int64_t i = 0, first = *front[0].getConstant(); i != *size; ++i)
    padded.push_back(i >= first && i - first < static_cast<int64_t>(values.size()) ? values[i - first] : value.empty() ? DimExpr() : value[0]);
  context.setValues(0, padded);
  return success();
}

/// Where an element comes from that stands at `at` relative to the first of `size` > 0 elements, outside of which they are repeated.
static Value repeatedIndex(OpBuilder &b, Location loc, StringRef mode, Value at, Value size) {
  Value zero = indexConstant(b, loc, 0), one = indexConstant(b, loc, 1), last = arith::SubIOp::create(b, loc, size, one);
  if (mode == "edge")
    return arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, at, last), zero);
  Value period = size;
  if (mode == "reflect") // there and back; one element is its own mirror image
    period = arith::MaxSIOp::create(b, loc, arith::AddIOp::create(b, loc, last, last), one);
  Value rest = arith::RemSIOp::create(b, loc, at, period);
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, rest, zero);
  rest = arith::SelectOp::create(b, loc, isNegative, arith::AddIOp::create(b, loc, rest, period), rest);
  return mode == "wrap" ? rest : Value(arith::MinSIOp::create(b, loc, rest, arith::SubIOp::create(b, loc, period, rest)));
}

FailureOr<SmallVector<Value>> PadOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedFront() || !getResolvedBehind())
    return emitOpError("its pads are not resolved; run infer-shapes"), failure();
  bool isConstant = getMode() == "constant";
  DimExpr zero = constantDim(getContext(), 0);
  SmallVector<DimExpr> x = dimsOf(context.operandType(0));
  // For each axis that is padded: how far the result's indices are ahead, how many elements stay, and how many are gone before them.
  struct Axis {
    int64_t number;
    Value ahead, size, gone;
  };
  SmallVector<Axis> padded;
  for (auto [d, dim] : llvm::enumerate(x)) {
    auto front = cast<DimExpr>((*getResolvedFront())[d]), behind = cast<DimExpr>((*getResolvedBehind())[d]);
    if (front == zero && behind == zero)
      continue;
    DimExpr gone = minDims(front, zero);
    DimExpr stay = addDims(dim, addDims(gone, minDims(behind, zero)));
    if (isConstant)
      padded.push_back({static_cast<int64_t>(d), context.dim(front), context.dim(dim), Value()});
    else
      padded.push_back({static_cast<int64_t>(d), context.dim(maxDims(front, zero)), context.dim(stay), context.dim(subDims(zero, gone))});
  }
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    SmallVector<Value> at(indices);
    Value isInside;
    for (const Axis &axis : padded) {
      Value &index = at[axis.number];
      index = arith::SubIOp::create(b, loc, index, axis.ahead);
      if (!isConstant) {
        index = arith::AddIOp::create(b, loc, repeatedIndex(b, loc, getMode(), index, axis.size), axis.gone);
        continue;
      }
      Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, axis.size); // unsigned: not negative either
      isInside = isInside ? arith::AndIOp::create(b, loc, isInside, here) : here;
    }
    if (!isInside)
      return tensor::ExtractOp::create(b, loc, context.operand(0), at);
    auto branch = scf::IfOp::create(
        b, loc, isInside,
        [&](OpBuilder &then, Location) { scf::YieldOp::create(then, loc, tensor::ExtractOp::create(then, loc, context.operand(0), at).getResult()); },
        [&](OpBuilder &otherwise, Location) {
          SmallVector<Value> first(context.operandType(2).getRank(), indexConstant(otherwise, loc, 0));
          scf::YieldOp::create(otherwise, loc, tensor::ExtractOp::create(otherwise, loc, context.operand(2), first).getResult());
        });
    return branch.getResult(0);
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

/// The values go along where the elements keep their order.
static void keepValues(ShapeContext &context) {
  if (!context.values(0).empty())
    context.setValues(0, SmallVector<DimExpr>(context.values(0)));
}

//===----------------------------------------------------------------------===//
// Reshape and the ops that expand into it
//===----------------------------------------------------------------------===//

/// The longest list of dims that a message shows.
static constexpr size_t kReadable = 80;

/// Both lists without the dims that they share, in their order.
static std::pair<SmallVector<DimExpr>, SmallVector<DimExpr>> withoutCommon(ArrayRef<DimExpr> a, ArrayRef<DimExpr> b) {
  SmallVector<DimExpr> left(a), right;
  for (DimExpr dim : b) {
    auto *same = llvm::find(left, dim);
    if (same == left.end() || !dim)
      right.push_back(dim);
    else
      left.erase(same);
  }
  return {left, right};
}

Form ReshapeOp::form() { return Form::View; }
Role ReshapeOp::role() { return Role::Movement; }
bool ReshapeOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult ReshapeOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0);
  FailureOr<SmallVector<DimExpr>> shape = context.valuesOrRead(1, "the shape of Reshape");
  if (failed(shape))
    return failure();
  if (context.rank(1) != 1)
    return context.emitError() << "the shape must have one axis, not " << context.rank(1);
  MLIRContext *c = getContext();
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1), minusOne = constantDim(c, -1);
  SmallVector<DimExpr> asked; // the sizes that are multiplied into `known`
  SmallVector<DimExpr> dims(*shape);
  // Sizes that multiply to the operand's as expressions are what they say, also those read from data: none is -1.
  bool anyNegative = llvm::any_of(dims, [](DimExpr dim) { return dim.getConstant().value_or(0) < 0; });
  if (getAllowzero() && !anyNegative && provablyEqual(productOfDims(c, x), productOfDims(c, dims))) {
    context.setResult(0, context.elementType(0), dims, layoutOf(getX().getType()));
    keepValues(context);
    return success();
  }
  unsigned inferred = 0;
  bool maybeInferred = false, hasZero = false;
  // What is a size of the operand is not negative, whatever its expression may be.
  auto mayBeInferred = [&](DimExpr dim) { return lowerBound(dim).value_or(-1) < 0 && !llvm::is_contained(x, dim); };
  bool mayInfer = llvm::any_of(dims, mayBeInferred);
  DimExpr openEntries = zero; // how many are -1
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!dim.getConstant() && lowerBound(dim).value_or(-2) < -1 && mayBeInferred(dim) &&
        failed(context.require(selectLtDims(dim, minusOne, zero, one), dim, minusOne, "the shape holds {0}; sizes are -1 or not negative")))
      return failure();
    if (mayBeInferred(dim))
      openEntries = addDims(openEntries, selectEqDims(dim, minusOne, one, zero));
    if (dim.getConstant() && *dim.getConstant() < -1)
      return context.emitError() << "the shape holds " << toString(dim) << "; sizes are -1 or not negative";
    if (dim == minusOne) {
      ++inferred;
      continue;
    }
    hasZero |= dim == zero;
    if (!getAllowzero()) {
      if (dim == zero && i >= x.size())
        return context.emitError() << "the shape copies dim " << i << " of its operand, which has " << x.size() << " axes";
      // Where a size that is one of the operand's is 0, no copied dim could give as many elements, but none; so it says what it is. Only
      // beside an inferred size it might copy, which would make two sizes of each such shape: it must not be 0 there.
      bool isOwn = !dim.getConstant() && llvm::is_contained(x, dim);
      if (i < x.size() && !isOwn)
        dim = selectEqDims(dim, zero, x[i], dim);
      else if (i < x.size() && mayInfer && x[i] != dim && lowerBound(dim).value_or(0) < 1 &&
               failed(context.require(selectEqDims(dim, zero, zero, one), dim, x[i],
                                      "the shape holds {0} beside a size that is inferred, which would stand for " + toString(x[i]) + " there")))
        return failure();
    }
    // A size read at run time may turn out to be -1.
    if (mayBeInferred(dim))
      maybeInferred = true;
    asked.push_back(selectEqDims(dim, minusOne, one, dim));
  }
  if (inferred > 1)
    return context.emitError() << "the shape " << toString(*shape) << " holds more than one -1";
  if (failed(context.require(selectLtDims(one, openEntries, zero, one), openEntries, one, "the shape holds -1 {0} times; only one size can be inferred")))
    return failure();
  if (getAllowzero() && maybeInferred) {
    DimExpr zeros = zero;
    for (DimExpr dim : dims)
      zeros = addDims(zeros, selectEqDims(dim, zero, one, zero));
    if (failed(context.require(selectEqDims(openEntries, zero, one, selectEqDims(zeros, zero, one, zero)), openEntries, zeros,
                               "the shape holds -1 beside 0 with allowzero; the -1 cannot be inferred")))
      return failure();
  }
  if (inferred && hasZero && getAllowzero())
    return context.emitError() << "the shape " << toString(*shape) << " holds -1 beside 0 with allowzero; the -1 cannot be inferred";
  auto tooLarge = [&] {
    return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  };
  if (inferred || maybeInferred) {
    // Dims that stay as they are say nothing about the rest, even if they are 0.
    DimExpr rest = zero;
    if (!llvm::is_contained(asked, zero)) {
      auto [given, wanted] = withoutCommon(x, asked);
      DimExpr dividend = productOfDims(c, given), divisor = productOfDims(c, wanted);
      rest = floorDivDims(dividend, divisor);
      // Where the known dims divide the operand's as expressions, the quotient is the rest, whatever their values.
      if (DimExpr back = mulDims(rest, divisor); back != dividend)
        rest = floorDivDims(dividend, selectEqDims(divisor, zero, one, divisor));
    }
    if (!rest)
      return tooLarge();
    for (DimExpr &dim : dims)
      dim = dim == minusOne ? rest : mayBeInferred(dim) ? selectEqDims(dim, minusOne, rest, dim) : dim;
  }
  if (failed(context.requireSizes(dims, "the shape")))
    return failure();
  auto [given, wanted] = withoutCommon(x, dims);
  DimExpr had = productOfDims(c, given), got = productOfDims(c, wanted);
  if (!had || had != got) {
    DimExpr total = productOfDims(c, x), product = productOfDims(c, dims);
    if (!total || !product)
      return tooLarge();
    // Dims that only a run decides are long expressions, which would tell nobody anything.
    std::string to = toString(dims);
    std::string target = to.size() <= kReadable ? " to " + to : "";
    if (failed(context.requireEqual(total, product, "a tensor of dims " + toString(x) + " cannot be reshaped" + target + ": it has {0} elements, not {1}")))
      return failure();
  }
  context.setResult(0, context.elementType(0), dims, layoutOf(getX().getType()));
  keepValues(context);
  return success();
}

Value reshapeTo(OpBuilder &builder, Location loc, Value x, RankedTensorType type) {
  if (x.getType() == type)
    return x;
  SmallVector<Attribute> dims;
  for (DimExpr dim : dimsOf(type))
    dims.push_back(dim);
  auto shapeType = RankedTensorType::get({type.getRank()}, builder.getI64Type());
  Value shape = FromDimsOp::create(builder, loc, shapeType, builder.getArrayAttr(dims));
  return ReshapeOp::create(builder, loc, type, x, shape, /*allowzero=*/true);
}

/// Replaces the op by a reshape to its result's dims.
static LogicalResult expandToReshape(Operation *op, RewriterBase &rewriter) {
  rewriter.replaceOp(op, reshapeTo(rewriter, op->getLoc(), op->getOperand(0), cast<RankedTensorType>(op->getResult(0).getType())));
  return success();
}

Form FlattenOp::form() { return Form::Expand; }
LogicalResult FlattenOp::expand(RewriterBase &rewriter) { return expandToReshape(*this, rewriter); }

LogicalResult FlattenOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0);
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), x.size(), "axis", /*end=*/true);
  if (failed(axis))
    return failure();
  setAxis(*axis);
  DimExpr rows = productOfDims(getContext(), ArrayRef(x).take_front(*axis)), columns = productOfDims(getContext(), ArrayRef(x).drop_front(*axis));
  if (!rows || !columns)
    return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  context.setResult(0, context.elementType(0), {rows, columns});
  return success();
}

/// The constants among `axes`, where all of them are.
static std::optional<SmallVector<int64_t>> constantAxes(ArrayRef<DimExpr> axes) {
  SmallVector<int64_t> constants;
  for (DimExpr axis : axes) {
    if (!axis.getConstant())
      return std::nullopt;
    constants.push_back(*axis.getConstant());
  }
  return constants;
}

Form SqueezeOp::form() { return Form::Expand; }
bool SqueezeOp::readsData(unsigned operand) { return operand == 0; }
LogicalResult SqueezeOp::expand(RewriterBase &rewriter) { return expandToReshape(*this, rewriter); }

LogicalResult SqueezeOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), dims;
  SmallVector<int64_t> axes;
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  auto requireOne = [&](size_t axis, DimExpr isDropped) {
    DimExpr isOne = selectEqDims(x[axis], one, one, zero);
    return context.require(selectEqDims(isDropped, zero, one, isOne), x[axis], one,
                           "axis " + Twine(axis) + " cannot be squeezed: its size is {0}, not 1");
  };
  if (getAxesTensor()) {
    FailureOr<SmallVector<DimExpr>> named = context.axesOrRead(1, x.size(), "axes");
    if (failed(named))
      return failure();
    std::optional<SmallVector<int64_t>> constants = constantAxes(*named);
    if (!constants) {
      AxisSet set(context, *named, x.size());
      for (auto [i, flag] : llvm::enumerate(set.getFlags()))
        if (failed(requireOne(i, flag)))
          return failure();
      context.setResult(0, context.elementType(0), set.without(x));
      keepValues(context);
      return success();
    }
    getAxesTensorMutable().clear();
    setAxes(*constants);
  }
  if (getAxes()) {
    FailureOr<SmallVector<int64_t>> normal = context.normalizeAxes(*getAxes(), x.size(), "axes");
    if (failed(normal))
      return failure();
    axes = *normal;
  } else {
    for (auto [i, dim] : llvm::enumerate(x)) {
      if (dim == one)
        axes.push_back(i);
      else if (!provablyDifferent(dim, one))
        return context.emitError() << "whether axis " << i << " of size " << toString(dim)
                                   << " is dropped is not known when compiling; name the axes, or fix the dim with --dim";
    }
  }
  setAxes(axes);
  for (auto [i, dim] : llvm::enumerate(x)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      dims.push_back(dim);
    else if (failed(requireOne(i, one)))
      return failure();
  }
  context.setResult(0, context.elementType(0), dims);
  keepValues(context);
  return success();
}

Form UnsqueezeOp::form() { return Form::Expand; }
bool UnsqueezeOp::readsData(unsigned operand) { return operand == 0; }
LogicalResult UnsqueezeOp::expand(RewriterBase &rewriter) { return expandToReshape(*this, rewriter); }

LogicalResult UnsqueezeOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  if (getAxesTensor()) {
    // How many axes there are to insert is needed to tell what they mean.
    FailureOr<SmallVector<DimExpr>> raw = context.valuesOrRead(1, "axes");
    if (failed(raw))
      return failure();
    int64_t rank = dims.size() + raw->size();
    FailureOr<SmallVector<DimExpr>> named = context.axesOrRead(1, rank, "axes");
    if (failed(named))
      return failure();
    std::optional<SmallVector<int64_t>> constants = constantAxes(*named);
    if (!constants) {
      context.setResult(0, context.elementType(0), AxisSet(context, *named, rank).withOnes(dims));
      keepValues(context);
      return success();
    }
    getAxesTensorMutable().clear();
    setAxes(*constants);
  }
  FailureOr<SmallVector<int64_t>> axes = context.normalizeAxes(getAxes(), dims.size() + getAxes().size(), "axes");
  if (failed(axes))
    return failure();
  setAxes(*axes);
  for (int64_t axis : *axes)
    dims.insert(dims.begin() + axis, constantDim(getContext(), 1));
  context.setResult(0, context.elementType(0), dims);
  keepValues(context);
  return success();
}

//===----------------------------------------------------------------------===//
// Tile
//===----------------------------------------------------------------------===//

Form TileOp::form() { return Form::Expand; }
bool TileOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult TileOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  FailureOr<SmallVector<DimExpr>> repeats = context.sizes(1, "repeats");
  if (failed(repeats))
    return failure();
  if (repeats->size() != dims.size())
    return context.emitError() << "repeats has " << repeats->size() << " entries for " << dims.size() << " axes";
  for (auto [dim, repeat] : llvm::zip_equal(dims, *repeats))
    dim = mulDims(dim, repeat);
  if (failed(context.requireSizes(dims, "the result")))
    return failure();
  context.setResult(0, context.elementType(0), dims);
  setResolvedRepeatsAttr(ArrayAttr::get(getContext(), SmallVector<Attribute>(repeats->begin(), repeats->end())));
  ArrayRef<DimExpr> values = context.values(0);
  std::optional<int64_t> size = dims.size() == 1 ? dims[0].getConstant() : std::nullopt;
  if (values.empty() || !size || *size > ShapeContext::kMaxValues)
    return success();
  SmallVector<DimExpr> repeated;
  for (int64_t i = 0; i != *size; ++i)
    repeated.push_back(values[i % values.size()]);
  context.setValues(0, repeated);
  return success();
}

/// [a, b] -> [1, a, 1, b], expanded to [r, a, s, b] -> [r * a, s * b].
LogicalResult TileOp::expand(RewriterBase &rewriter) {
  if (!getResolvedRepeats())
    return emitOpError("its repeats are not resolved; run infer-shapes");
  auto type = cast<RankedTensorType>(getX().getType());
  DimExpr one = constantDim(getContext(), 1);
  SmallVector<DimExpr> apart, repeated;
  for (auto [dim, repeat] : llvm::zip_equal(dimsOf(type), *getResolvedRepeats())) {
    if (repeat != one) {
      apart.push_back(one);
      repeated.push_back(cast<DimExpr>(repeat));
    }
    apart.push_back(dim);
    repeated.push_back(dim);
  }
  Type element = type.getElementType();
  Value x = reshapeTo(rewriter, getLoc(), getX(), tensorType(apart, element));
  Value shape = FromDimsOp::create(rewriter, getLoc(), RankedTensorType::get({static_cast<int64_t>(repeated.size())}, rewriter.getI64Type()),
                                   rewriter.getArrayAttr(SmallVector<Attribute>(repeated.begin(), repeated.end())));
  Value expanded = ExpandOp::create(rewriter, getLoc(), tensorType(repeated, element), x, shape);
  rewriter.replaceOp(*this, reshapeTo(rewriter, getLoc(), expanded, cast<RankedTensorType>(getResult().getType())));
  return success();
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

Form Col2ImOp::form() { return Form::Lower; }
Role Col2ImOp::role() { return Role::Reduction; }
bool Col2ImOp::readsData(unsigned operand) { return operand == 0; }

/// How often a block fits along each axis of the image.
static SmallVector<DimExpr> blockCounts(Col2ImOp op, ArrayRef<DimExpr> image, ArrayRef<DimExpr> block) {
  MLIRContext *c = op.getContext();
  SmallVector<DimExpr> counts;
  for (auto [d, size] : llvm::enumerate(image)) {
    DimExpr padded = addDims(size, constantDim(c, (*op.getPads())[d] + (*op.getPads())[image.size() + d]));
    DimExpr last = mulDims(constantDim(c, (*op.getDilations())[d]), subDims(block[d], constantDim(c, 1))); // of a block
    counts.push_back(addDims(floorDivDims(subDims(subDims(padded, last), constantDim(c, 1)), constantDim(c, (*op.getStrides())[d])), constantDim(c, 1)));
  }
  return counts;
}

LogicalResult Col2ImOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<DimExpr>> image = context.sizes(1, "image_shape"), block = context.sizes(2, "block_shape");
  if (failed(image) || failed(block))
    return failure();
  size_t rank = image->size();
  if (context.rank(0) != 3 || block->size() != rank)
    return context.emitError() << "x must have 3 axes, not " << context.rank(0) << ", and image_shape (" << rank << ") and block_shape ("
                               << block->size() << ") as many entries as each other";
  if (!getDilations())
    setDilations(SmallVector<int64_t>(rank, 1));
  if (!getPads())
    setPads(SmallVector<int64_t>(2 * rank, 0));
  if (!getStrides())
    setStrides(SmallVector<int64_t>(rank, 1));
  constexpr int64_t kMost = INT32_MAX;
  for (auto [name, list, entries, least] : {std::tuple("dilations", *getDilations(), rank, 1), std::tuple("pads", *getPads(), 2 * rank, 0),
                                            std::tuple("strides", *getStrides(), rank, 1)})
    if (list.size() != entries || llvm::any_of(list, [least = least](int64_t i) { return i < least || i > kMost; }))
      return context.emitError() << name << " must have " << entries << " entries for an image of " << rank << " axes, each at least " << least
                                 << " and at most " << kMost;
  SmallVector<DimExpr> x = context.dims(0);
  DimExpr inBlock = productOfDims(getContext(), *block), blocks = productOfDims(getContext(), blockCounts(*this, *image, *block));
  DimExpr channels = floorDivDims(x[1], inBlock);
  if (failed(context.requireEqual(x[2], blocks, "x has {0} columns, but {1} blocks fit into the image")) ||
      failed(context.requireEqual(mulDims(channels, inBlock), x[1], "x has {1} rows, which is no multiple of the elements of a block")))
    return failure();
  SmallVector<DimExpr> dims{x[0], channels};
  llvm::append_range(dims, *image);
  context.setResult(0, context.elementType(0), dims);
  setResolvedBlockAttr(ArrayAttr::get(getContext(), SmallVector<Attribute>(block->begin(), block->end())));
  return success();
}

/// For each pixel a sum over the places it may have in a block; at most one block has it at each of them.
FailureOr<SmallVector<Value>> Col2ImOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedBlock())
    return emitOpError("its block is not resolved; run infer-shapes"), failure();
  RankedTensorType type = context.resultType();
  SmallVector<DimExpr> dims = dimsOf(type), image(dims.begin() + 2, dims.end()), block;
  llvm::append_range(block, getResolvedBlockAttr().getAsRange<DimExpr>());
  SmallVector<Value> blockSizes, counts;
  for (auto [size, count] : llvm::zip_equal(block, blockCounts(*this, image, block))) {
    blockSizes.push_back(context.dim(size));
    counts.push_back(context.dim(count));
  }
  Value inBlock = context.dim(productOfDims(getContext(), block));
  Type element = type.getElementType(), storage = storageType(type).getElementType();
  auto pixel = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value zero = indexConstant(b, loc, 0), one = indexConstant(b, loc, 1);
    SmallVector<Value> begin(blockSizes.size(), zero), step(blockSizes.size(), one);
    Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(storage));
    auto nest = scf::buildLoopNest(b, loc, begin, blockSizes, step, none, [&](OpBuilder &inner, Location, ValueRange place, ValueRange carried) {
      Value row = arith::MulIOp::create(inner, loc, indices[1], inBlock), inRow = zero, column = zero, exists;
      for (auto [d, at] : llvm::enumerate(place)) {
        auto times = [&](Value x, int64_t y) { return arith::MulIOp::create(inner, loc, x, indexConstant(inner, loc, y)); };
        // Where the block starts, in the padded image.
        Value start = arith::AddIOp::create(inner, loc, indices[2 + d], indexConstant(inner, loc, (*getPads())[d]));
        start = arith::SubIOp::create(inner, loc, start, times(at, (*getDilations())[d]));
        Value stride = indexConstant(inner, loc, (*getStrides())[d]), number = arith::DivSIOp::create(inner, loc, start, stride);
        Value isInside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::sge, start, zero);
        Value isWhole = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, arith::MulIOp::create(inner, loc, number, stride), start);
        Value isCounted = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, number, counts[d]);
        Value here = arith::AndIOp::create(inner, loc, isInside, arith::AndIOp::create(inner, loc, isWhole, isCounted));
        exists = exists ? arith::AndIOp::create(inner, loc, exists, here) : here;
        inRow = arith::AddIOp::create(inner, loc, arith::MulIOp::create(inner, loc, inRow, blockSizes[d]), at);
        column = arith::AddIOp::create(inner, loc, arith::MulIOp::create(inner, loc, column, counts[d]), number);
      }
      row = arith::AddIOp::create(inner, loc, row, inRow);
      auto branch = scf::IfOp::create(
          inner, loc, exists,
          [&](OpBuilder &then, Location) {
            Value term = tensor::ExtractOp::create(then, loc, context.operand(0), ValueRange{indices[0], row, column});
            ScalarBuilder scalars(then, loc);
            Value sum = element.isInteger(1) ? Value(arith::OrIOp::create(then, loc, carried[0], term))
                                             : (scalars.wrap(carried[0], element) + scalars.wrap(term, element)).getValue();
            scf::YieldOp::create(then, loc, sum);
          },
          [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, carried[0]); });
      return scf::ValueVector{branch.getResult(0)};
    });
    return nest.results[0];
  };
  return SmallVector<Value>{context.generate(type, pixel)};
}

//===----------------------------------------------------------------------===//
// Shape, Size
//===----------------------------------------------------------------------===//

Form ShapeOp::form() { return Form::Host; }
Role ShapeOp::role() { return Role::Opaque; }

LogicalResult ShapeOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0);
  int64_t rank = dims.size();
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(getStart()), end = clamp(getEnd().value_or(rank));
  ArrayRef<DimExpr> taken = ArrayRef(dims).slice(start, std::max<int64_t>(end - start, 0));
  context.setResult(0, IntegerType::get(getContext(), 64), {constantDim(getContext(), taken.size())});
  context.setValues(0, taken);
  return success();
}

Form SizeOp::form() { return Form::Host; }
Role SizeOp::role() { return Role::Opaque; }

LogicalResult SizeOp::shape(ShapeContext &context) {
  DimExpr size = productOfDims(getContext(), context.dims(0));
  if (!size)
    return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  context.setResult(0, IntegerType::get(getContext(), 64), {});
  context.setValues(0, {size});
  return success();
}

Form StridesOp::form() { return Form::Host; }
Role StridesOp::role() { return Role::Opaque; }

LogicalResult StridesOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> dims = context.dims(0), strides(dims.size());
  for (size_t i = 0; i != dims.size(); ++i)
    if (!(strides[i] = productOfDims(getContext(), ArrayRef(dims).drop_front(i + 1))))
      return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  context.setResult(0, IntegerType::get(getContext(), 64), {constantDim(getContext(), dims.size())});
  context.setValues(0, strides);
  return success();
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

Form SliceOp::form() { return Form::Lower; }
Role SliceOp::role() { return Role::Movement; }
bool SliceOp::readsData(unsigned operand) { return operand == 0; }

namespace {
/// One axis of a slice: result element i is operand element start + i * step.
struct AxisSlice {
  DimExpr start, size, step;
};
} // namespace

/// start, end clamped as the standard says for a step; the number of steps between them.
static AxisSlice sliceAxis(DimExpr dim, DimExpr start, DimExpr end, DimExpr step) {
  MLIRContext *c = dim.getContext();
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1), minusOne = constantDim(c, -1);
  // A bound below 0 counts from the end. Bounds may be as far off as 64 bits allow; what is known only at run time is brought
  // near the axis first, so that adding its size cannot overflow.
  auto fromEnd = [&](DimExpr at) -> DimExpr {
    if (std::optional<int64_t> constant = at.getConstant())
      return *constant < 0 ? addDims(at, dim) : at;
    if (lowerBound(at) >= 0)
      return at;
    DimExpr beyond = addDims(dim, one);
    at = maxDims(minDims(at, beyond), mulDims(beyond, minusOne));
    return selectLtDims(at, zero, addDims(at, dim), at);
  };
  DimExpr from = fromEnd(start), to = fromEnd(end), last = addDims(dim, minusOne);
  // Forwards the bounds are clamped to 0 .. dim, backwards to dim - 1 .. 0 and, for the end, -1. The smallest int64 has no negative;
  // no tensor has so many elements.
  DimExpr low = minDims(maxDims(from, zero), dim), high = minDims(maxDims(from, zero), last);
  DimExpr forwards = subDims(minDims(maxDims(to, zero), dim), low), backwards = subDims(high, minDims(maxDims(to, minusOne), last));
  DimExpr stride = selectLtDims(step, zero, mulDims(maxDims(step, constantDim(c, -INT64_MAX)), minusOne), step);
  AxisSlice slice;
  slice.step = step;
  slice.start = selectLtDims(step, zero, high, low);
  slice.size = ceilDivDims(maxDims(selectLtDims(step, zero, backwards, forwards), zero), stride);
  // An axis of size 0 has last = -1: start would be below stop's clamp.
  slice.size = selectLtDims(step, zero, selectEqDims(dim, zero, zero, slice.size), slice.size);
  return slice;
}

/// The slice of each axis, from the operands' values. `context` may add reads; in later phases all values are known.
static FailureOr<SmallVector<AxisSlice>> slicesOf(SliceOp op, ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0);
  MLIRContext *c = op.getContext();
  FailureOr<SmallVector<DimExpr>> starts = context.valuesOrRead(1, "starts"), ends = context.valuesOrRead(2, "ends");
  if (failed(starts) || failed(ends))
    return failure();
  unsigned next = 3;
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1), farthest = constantDim(c, INT64_MAX);
  SmallVector<DimExpr> axes, steps(starts->size(), one);
  for (size_t i = 0; i != starts->size(); ++i)
    axes.push_back(constantDim(c, i));
  if (op.getAxes()) {
    FailureOr<SmallVector<DimExpr>> values = context.axesOrRead(next++, x.size(), "axes");
    if (failed(values))
      return failure();
    axes = *values;
  }
  if (op.getSteps()) {
    FailureOr<SmallVector<DimExpr>> values = context.valuesOrRead(next++, "steps");
    if (failed(values))
      return failure();
    steps = *values;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size())
    return context.emitError() << "starts, ends, axes and steps have " << starts->size() << ", " << ends->size() << ", " << axes.size()
                               << " and " << steps.size() << " entries; they must have as many",
           failure();
  if (starts->size() > x.size())
    return context.emitError() << "starts has " << starts->size() << " entries, but the tensor has " << x.size() << " axes", failure();
  for (auto [axis, step] : llvm::zip_equal(axes, steps))
    if (failed(context.require(selectEqDims(step, zero, zero, one), step, axis,
                               axis.getConstant() ? "the step of axis {1} is {0}" : Twine("the step of an axis is {0}"))))
      return failure();

  // What each axis gets: where axes or steps are known only at run time, in expressions that are named, for they are long.
  bool isLate = !llvm::all_of(axes, [](DimExpr axis) { return axis.getConstant(); }) ||
                !llvm::all_of(steps, [](DimExpr step) { return step.getConstant(); });
  SmallVector<DimExpr> bounds; // start, end, step
  SmallVector<DimExpr> chosen = context.named(axes);
  for (size_t i = 0; i != x.size(); ++i) {
    DimExpr start = zero, end = farthest, step = one, here = constantDim(c, i);
    for (auto [axis, s, e, by] : llvm::zip_equal(chosen, *starts, *ends, steps)) {
      start = selectEqDims(axis, here, s, start);
      end = selectEqDims(axis, here, e, end);
      step = selectEqDims(axis, here, by, step);
    }
    bounds.append({start, end, step});
  }
  if (isLate)
    bounds = context.named(bounds);
  SmallVector<AxisSlice> slices;
  for (auto [i, dim] : llvm::enumerate(x)) {
    DimExpr start = bounds[3 * i], end = bounds[3 * i + 1], step = bounds[3 * i + 2];
    bool isWhole = start == zero && end == farthest && step == one;
    slices.push_back(isWhole ? AxisSlice{zero, dim, one} : start && end && step ? sliceAxis(dim, start, end, step) : AxisSlice());
    if (!slices.back().start || !slices.back().size)
      return context.emitError() << "a bound of axis " << i << " does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)", failure();
  }
  if (isLate) {
    SmallVector<DimExpr> results;
    for (const AxisSlice &slice : slices)
      results.append({slice.start, slice.size});
    results = context.named(results);
    for (auto [i, slice] : llvm::enumerate(slices)) {
      slice.start = results[2 * i];
      slice.size = slice.size == results[2 * i + 1] ? slice.size : maxDims(results[2 * i + 1], zero); // a name does not say that it is not negative
    }
  }
  return slices;
}

LogicalResult SliceOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<AxisSlice>> slices = slicesOf(*this, context);
  if (failed(slices))
    return failure();
  SmallVector<DimExpr> dims;
  SmallVector<Attribute> starts, steps;
  for (const AxisSlice &slice : *slices) {
    dims.push_back(slice.size);
    starts.push_back(slice.start);
    steps.push_back(slice.step);
  }
  context.setResult(0, context.elementType(0), dims);
  // What the bounds came to, for the lowering.
  setResolvedStartsAttr(ArrayAttr::get(getContext(), starts));
  setResolvedStepsAttr(ArrayAttr::get(getContext(), steps));
  setMovedValues(context, dims, [&](ArrayRef<int64_t> at) -> DimExpr {
    SmallVector<int64_t> from;
    for (auto [index, slice] : llvm::zip_equal(at, *slices)) {
      if (!slice.start.getConstant() || !slice.step.getConstant())
        return {};
      from.push_back(*slice.start.getConstant() + index * *slice.step.getConstant());
    }
    return valueAt(context, 0, from);
  });
  return success();
}

bool SliceOp::isRemap() { return getResolvedStarts() && getResolvedSteps(); }

Value SliceOp::element(OpBuilder &b, ValueRange indices, ElementReader read, llvm::function_ref<Value(DimExpr)> dim) {
  SmallVector<Value> at;
  for (auto [index, start, step] :
       llvm::zip_equal(indices, getResolvedStarts()->getAsRange<DimExprAttr>(), getResolvedSteps()->getAsRange<DimExprAttr>())) {
    Value offset = step.isConstant(1) ? index : Value(arith::MulIOp::create(b, getLoc(), index, dim(step)));
    at.push_back(start.isConstant(0) ? offset : Value(arith::AddIOp::create(b, getLoc(), dim(start), offset)));
  }
  return read(b, 0, at);
}

FailureOr<SmallVector<Value>> SliceOp::lower(LowerContext &context) {
  if (!isRemap())
    return emitOpError("its bounds are not resolved; run infer-shapes"), failure();
  return SmallVector<Value>{lowerRemap(context, cast<DlcOp>(getOperation()))};
}

//===----------------------------------------------------------------------===//
// Diagonal
//===----------------------------------------------------------------------===//

Form DiagonalOp::form() { return Form::Lower; }
Role DiagonalOp::role() { return Role::Movement; }

LogicalResult DiagonalOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), dims;
  FailureOr<SmallVector<int64_t>> axes = context.normalizeAxes(getAxes(), x.size(), "axes");
  if (failed(axes))
    return failure();
  if (axes->empty())
    return context.emitError() << "a diagonal goes along one axis at least";
  setAxes(*axes);
  for (auto [i, dim] : llvm::enumerate(x)) {
    auto *found = llvm::find(*axes, static_cast<int64_t>(i));
    if (found == axes->end() || found == axes->begin())
      dims.push_back(dim);
    else if (failed(context.requireEqual(x[axes->front()], dim, "axes " + Twine(axes->front()) + " and " + Twine(i) + " of a diagonal differ: {0} and {1}")))
      return failure();
  }
  context.setResult(0, context.elementType(0), dims);
  return success();
}

FailureOr<SmallVector<Value>> DiagonalOp::lower(LowerContext &context) {
  ArrayRef<int64_t> axes = getAxes();
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    SmallVector<Value> at;
    unsigned next = 0;
    for (int64_t i = 0; i != context.operandType(0).getRank(); ++i)
      at.push_back(llvm::is_contained(axes.drop_front(), i) ? at[axes.front()] : indices[next++]);
    return tensor::ExtractOp::create(b, getLoc(), context.operand(0), at);
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

//===----------------------------------------------------------------------===//
// Transpose
//===----------------------------------------------------------------------===//

Form TransposeOp::form() { return Form::Lower; }
Role TransposeOp::role() { return Role::Movement; }

LogicalResult TransposeOp::shape(ShapeContext &context) {
  SmallVector<DimExpr> x = context.dims(0), dims;
  int64_t rank = x.size();
  SmallVector<int64_t> perm;
  if (getPerm())
    perm = llvm::to_vector(*getPerm());
  if (!getPerm())
    for (int64_t i = rank; i-- > 0;)
      perm.push_back(i);
  if (static_cast<int64_t>(perm.size()) != rank)
    return context.emitError() << "perm has " << perm.size() << " entries for " << rank << " axes";
  FailureOr<SmallVector<int64_t>> sorted = context.normalizeAxes(perm, rank, "perm");
  if (failed(sorted))
    return failure();
  for (int64_t &axis : perm) {
    axis = axis < 0 ? axis + rank : axis;
    dims.push_back(x[axis]);
  }
  setPerm(perm);
  context.setResult(0, context.elementType(0), dims);
  setMovedValues(context, dims, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> from(rank);
    for (auto [axis, index] : llvm::zip_equal(perm, at))
      from[axis] = index;
    return valueAt(context, 0, from);
  });
  return success();
}

/// Rows stay as they are; else reading them one by one would cost more than transposing them in registers.
bool TransposeOp::isRemap() { return getPerm() && !getPerm()->empty() && getPerm()->back() == static_cast<int64_t>(getPerm()->size()) - 1; }

Value TransposeOp::element(OpBuilder &b, ValueRange indices, ElementReader read, llvm::function_ref<Value(DimExpr)>) {
  SmallVector<Value> at(indices.size());
  for (auto [i, axis] : llvm::enumerate(*getPerm()))
    at[axis] = indices[i];
  return read(b, 0, at);
}

FailureOr<SmallVector<Value>> TransposeOp::lower(LowerContext &context) {
  OpBuilder &builder = context.b();
  unsigned rank = context.resultType().getRank();
  // Operand axis perm[i] runs with result axis i.
  SmallVector<AffineExpr> from(rank);
  for (auto [i, axis] : llvm::enumerate(*getPerm()))
    from[axis] = builder.getAffineDimExpr(i);
  SmallVector<AffineMap> maps{AffineMap::get(rank, 0, from, getContext()), builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  Value init = context.empty(context.resultType());
  auto moved = linalg::GenericOp::create(builder, getLoc(), init.getType(), context.operand(0), init, maps, iterators,
                                         [](OpBuilder &b, Location loc, ValueRange args) { linalg::YieldOp::create(b, loc, args[0]); });
  return SmallVector<Value>{moved.getResult(0)};
}

//===----------------------------------------------------------------------===//
// Unpack and Pack
//===----------------------------------------------------------------------===//

Role UnpackOp::role() { return Role::Movement; }
Role PackOp::role() { return Role::Movement; }
/// Only over one axis do they have a lowering.
static Form formOverOneAxis(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 ? Form::Lower : Form::Expand;
}
Form UnpackOp::form() { return formOverOneAxis(getResult().getType()); }
Form PackOp::form() { return formOverOneAxis(getResult().getType()); }

LogicalResult UnpackOp::shape(ShapeContext &context) {
  if (!isPacked(getX().getType()))
    return context.emitError() << "the operand is not packed";
  context.setResult(0, context.elementType(0), context.dims(0));
  return success();
}

LogicalResult PackOp::shape(ShapeContext &context) {
  if (!isSubByte(context.elementType(0)) || isPacked(getX().getType()))
    return context.emitError() << "the operand must have elements of 4 or 2 bits, and not be packed";
  auto type = boundaryType(context.dims(0), context.elementType(0));
  if (!storageDims(type).front())
    return context.emitError() << "the number of elements does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  context.setResult(0, context.elementType(0), context.dims(0), layoutOf(type));
  return success();
}

/// Puts the op between reshapes, so that it sees one axis. What is packed is the same bytes under any dims.
template <typename OpT> static LogicalResult expandToOneAxis(OpT op, RewriterBase &rewriter) {
  auto flat = [&](Type type) {
    return tensorType(productOfDims(op.getContext(), dimsOf(type)), cast<RankedTensorType>(type).getElementType(), layoutOf(type));
  };
  auto result = cast<RankedTensorType>(op.getResult().getType());
  Value x = reshapeTo(rewriter, op.getLoc(), op.getX(), flat(op.getX().getType()));
  Value y = OpT::create(rewriter, op.getLoc(), flat(result), x);
  rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), y, result));
  return success();
}

LogicalResult UnpackOp::expand(RewriterBase &rewriter) { return expandToOneAxis(*this, rewriter); }
LogicalResult PackOp::expand(RewriterBase &rewriter) { return expandToOneAxis(*this, rewriter); }

FailureOr<SmallVector<Value>> UnpackOp::lower(LowerContext &context) {
  Location loc = getLoc();
  Type element = context.resultType().getElementType();
  unsigned width = element.getIntOrFloatBitWidth();
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value perByte = indexConstant(b, loc, 8 / width);
    Value byte = tensor::ExtractOp::create(b, loc, context.operand(0), Value(arith::DivUIOp::create(b, loc, indices[0], perByte)));
    Value place = arith::IndexCastOp::create(b, loc, b.getI8Type(), arith::RemUIOp::create(b, loc, indices[0], perByte));
    auto number = [&](int8_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(value)); };
    // The element to the top of the byte, and from there to its bottom.
    Value behind = arith::SubIOp::create(b, loc, number(8 / width - 1), place);
    Value top = arith::ShLIOp::create(b, loc, byte, arith::MulIOp::create(b, loc, behind, number(width)));
    if (element.isSignlessInteger())
      return arith::ShRSIOp::create(b, loc, top, number(8 - width));
    return arith::ShRUIOp::create(b, loc, top, number(8 - width));
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

FailureOr<SmallVector<Value>> PackOp::lower(LowerContext &context) {
  Location loc = getLoc();
  unsigned width = context.resultType().getElementTypeBitWidth(), perByte = 8 / width;
  Value count = context.dim(dimsOf(context.operandType(0)).front());
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value first = arith::MulIOp::create(b, loc, indices[0], indexConstant(b, loc, perByte));
    auto number = [&](int8_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(value)); };
    Value byte;
    for (unsigned i = 0; i != perByte; ++i) {
      // Behind the last element stand zeros; what is read there instead is an element that exists.
      Value at = arith::AddIOp::create(b, loc, first, indexConstant(b, loc, i));
      Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, count);
      Value element = tensor::ExtractOp::create(b, loc, context.operand(0), Value(arith::SelectOp::create(b, loc, isInside, at, first)));
      element = arith::SelectOp::create(b, loc, isInside, arith::AndIOp::create(b, loc, element, number((1 << width) - 1)), number(0));
      element = arith::ShLIOp::create(b, loc, element, number(i * width));
      byte = byte ? Value(arith::OrIOp::create(b, loc, byte, element)) : element;
    }
    return byte;
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

//===----------------------------------------------------------------------===//
// ConstantOfShape
//===----------------------------------------------------------------------===//

Form ConstantOfShapeOp::form() { return Form::Expand; }
bool ConstantOfShapeOp::readsData(unsigned) { return false; }

LogicalResult ConstantOfShapeOp::shape(ShapeContext &context) {
  auto value = dyn_cast<DenseElementsAttr>(getValue());
  if (!value || value.getNumElements() != 1)
    return context.emitError() << "value must be a tensor of one element";
  FailureOr<SmallVector<DimExpr>> dims = context.sizes(0, "the shape of ConstantOfShape");
  if (failed(dims))
    return failure();
  context.setResult(0, value.getElementType(), *dims);
  std::optional<int64_t> count = productOfDims(getContext(), *dims) ? productOfDims(getContext(), *dims).getConstant() : std::nullopt;
  if (std::optional<SmallVector<int64_t>> element = constantIntegers(value, 1); element && count && *count <= ShapeContext::kMaxValues)
    context.setValues(0, SmallVector<DimExpr>(*count, constantDim(getContext(), element->front())));
  return success();
}

LogicalResult ConstantOfShapeOp::expand(RewriterBase &rewriter) {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto value = cast<DenseElementsAttr>(getValue()).reshape(RankedTensorType::get({}, type.getElementType()));
  Value element = ConstantOp::create(rewriter, getLoc(), value);
  rewriter.replaceOpWithNewOp<ExpandOp>(*this, type, element, getShape());
  return success();
}

} // namespace dlc
