// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/ShapeContext.h"
#include "dlc/IR/Dialect.h"
#include "llvm/Support/Endian.h"

using namespace mlir;

namespace dlc {

Attribute ShapeContext::constant(unsigned i) const {
  auto definition = op->getOperand(i).getDefiningOp<ConstantOp>();
  return definition ? definition.getValue() : Attribute();
}

ArrayRef<DimExpr> ShapeContext::valuesOf(Value v) const {
  auto found = state.values.find(v);
  return found == state.values.end() ? ArrayRef<DimExpr>() : ArrayRef<DimExpr>(found->second);
}

/// The elements of a small float or double constant.
static SmallVector<DimValue> floatConstants(Attribute value) {
  auto type = cast<ShapedType>(cast<TypedAttr>(value).getType());
  std::optional<ConstantBytes> bytes = constantBytes(value);
  if (!bytes || type.getNumElements() > ShapeContext::kMaxValues)
    return {};
  Type element = type.getElementType();
  SmallVector<DimValue> numbers;
  for (int64_t k = 0, e = type.getNumElements(); k != e; ++k) {
    const char *at = bytes->data.data() + (bytes->isSplat ? 0 : k) * (element.getIntOrFloatBitWidth() / 8);
    numbers.push_back(dimValueOf(element.isF32() ? llvm::support::endian::read<float, llvm::endianness::little>(at)
                                                 : llvm::support::endian::read<double, llvm::endianness::little>(at),
                                 element));
  }
  return numbers;
}

SmallVector<DimValue> ShapeContext::numbers(unsigned i) const {
  Type type = elementType(i);
  if (!isTypeOfDimValues(type))
    return {};
  if (isa<FloatType>(type)) {
    if (Attribute value = constant(i))
      return floatConstants(value);
    return state.floatValues.lookup(op->getOperand(i));
  }
  SmallVector<DimValue> numbers;
  for (DimExpr e : values(i))
    numbers.push_back({e, 1, type});
  return numbers;
}

FailureOr<SmallVector<DimExpr>> ShapeContext::valuesOrRead(unsigned i, StringRef what) {
  Value operand = op->getOperand(i);
  auto type = cast<RankedTensorType>(operand.getType());
  if (!type.getElementType().isInteger())
    return emitError() << what << " must be an integer tensor, not " << type.getElementType(), failure();
  if (!type.hasStaticShape() || type.getNumElements() > kMaxValues)
    return emitError() << what << " must have a number of elements that is known when compiling and at most " << kMaxValues
                       << "; its dims are " << toString(dimsOf(type)),
           failure();
  SmallVector<DimExpr> values(valuesOf(operand));
  values.resize(type.getNumElements());
  if (!llvm::is_contained(values, DimExpr()))
    return values;

  // Symbols are named after the function argument where it is one, and unique in the function.
  std::string stem = "v" + std::to_string(state.nextRead++);
  if (auto argument = dyn_cast<BlockArgument>(operand))
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr))
        stem = name.str();
  OpBuilder builder(op);
  builder.setInsertionPointAfterValue(operand);
  SmallVector<Attribute> names;
  for (int64_t k = 0, e = type.getNumElements(); k != e; ++k) {
    std::string name = stem + "[" + std::to_string(k) + "]";
    names.push_back(builder.getStringAttr(name));
    if (!values[k])
      values[k] = symbolDim(getContext(), name);
  }
  ReadOp::create(builder, op->getLoc(), operand, builder.getArrayAttr(names));
  state.values[operand] = values;
  return values;
}

FailureOr<SmallVector<DimExpr>> ShapeContext::sizes(unsigned i, StringRef what) {
  if (rank(i) != 1)
    return emitError() << what << " must have one axis, not " << rank(i), failure();
  FailureOr<SmallVector<DimExpr>> sizes = valuesOrRead(i, what);
  if (failed(sizes))
    return failure();
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  for (DimExpr size : *sizes)
    if (lowerBound(size).value_or(-1) < 0 &&
        failed(require(selectLtDims(size, zero, zero, one), size, zero, what + Twine(" holds the negative size {0}"))))
      return failure();
  return sizes;
}

void ShapeContext::setResult(unsigned i, Type elementType, ArrayRef<DimExpr> dims) {
  op->getResult(i).setType(tensorType(dims, elementType));
}

void ShapeContext::setValues(unsigned i, ArrayRef<DimExpr> values) {
  if (static_cast<int64_t>(values.size()) <= kMaxValues)
    state.values[op->getResult(i)] = SmallVector<DimExpr>(values);
}

void ShapeContext::setNumbers(unsigned i, ArrayRef<DimValue> numbers) {
  Type type = cast<ShapedType>(op->getResult(i).getType()).getElementType();
  if (static_cast<int64_t>(numbers.size()) > kMaxValues || !isTypeOfDimValues(type))
    return;
  if (isa<FloatType>(type)) {
    state.floatValues[op->getResult(i)] = SmallVector<DimValue>(numbers);
    return;
  }
  setValues(i, llvm::map_to_vector(numbers, [](const DimValue &number) { return number.numerator; }));
}

FailureOr<int64_t> ShapeContext::normalizeAxis(int64_t axis, int64_t rank, StringRef what, bool end) {
  int64_t limit = rank + (end ? 1 : 0);
  if (axis < -rank || axis >= limit)
    return emitError() << what << " is " << axis << ", but the tensor has " << rank << " axes", failure();
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> ShapeContext::normalizeAxes(ArrayRef<int64_t> axes, int64_t rank, StringRef what) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    FailureOr<int64_t> normal = normalizeAxis(axis, rank, what);
    if (failed(normal))
      return failure();
    if (llvm::is_contained(result, *normal))
      return emitError() << what << " names axis " << *normal << " twice", failure();
    result.push_back(*normal);
  }
  llvm::sort(result);
  return result;
}

FailureOr<DimExpr> ShapeContext::broadcast(DimExpr a, DimExpr b) {
  DimExpr one = constantDim(getContext(), 1);
  if (provablyEqual(a, b) || b == one)
    return a;
  if (a == one)
    return b;
  bool aMayBeOne = !provablyDifferent(a, one), bMayBeOne = !provablyDifferent(b, one);
  if (provablyDifferent(a, b) && !aMayBeOne && !bMayBeOne)
    return emitError() << "operands cannot be broadcast: dims " << toString(a) << " and " << toString(b) << " differ and none is 1",
           failure();
  DimExpr zero = constantDim(getContext(), 0);
  DimExpr condition = selectEqDims(a, b, one, zero);
  if (bMayBeOne)
    condition = selectEqDims(b, one, one, condition);
  if (aMayBeOne)
    condition = selectEqDims(a, one, one, condition);
  if (failed(require(condition, a, b, "dims " + toString(a) + " and " + toString(b) + " cannot be broadcast: {0} and {1}")))
    return failure();
  if (!aMayBeOne)
    return a;
  if (!bMayBeOne)
    return b;
  return selectEqDims(a, one, b, a);
}

FailureOr<SmallVector<DimExpr>> ShapeContext::broadcast(ArrayRef<DimExpr> a, ArrayRef<DimExpr> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<DimExpr> result(a);
  size_t shift = a.size() - b.size();
  for (size_t i = 0; i != b.size(); ++i) {
    FailureOr<DimExpr> dim = broadcast(a[i + shift], b[i]);
    if (failed(dim))
      return failure();
    result[i + shift] = *dim;
  }
  return result;
}

LogicalResult ShapeContext::requireEqual(DimExpr a, DimExpr b, const Twine &message) {
  DimExpr one = constantDim(getContext(), 1), zero = constantDim(getContext(), 0);
  return require(selectEqDims(a, b, one, zero), a, b, message);
}

LogicalResult ShapeContext::require(DimExpr condition, DimExpr a, DimExpr b, const Twine &message) {
  if (!condition || !a || !b)
    return emitError() << "a dimension does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
  std::string text = message.str();
  if (std::optional<int64_t> constant = condition.getConstant()) {
    if (*constant)
      return success();
    for (auto [mark, value] : {std::pair("{0}", a), std::pair("{1}", b)})
      if (size_t at = text.find(mark); at != std::string::npos)
        text.replace(at, 3, toString(value));
    return emitError() << text;
  }
  if (!state.checks.insert(condition).second)
    return success();
  OpBuilder builder(op);
  CheckOp::create(builder, op->getLoc(), condition, a, b, builder.getStringAttr(text));
  return success();
}

} // namespace dlc
