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

FailureOr<SmallVector<DimExpr>> ShapeContext::valuesOrRead(unsigned i, StringRef what, bool areCounts) {
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
    std::string name = lateSymbolName(stem, k, areCounts);
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
  if (failed(sizes) || failed(requireSizes(*sizes, what)))
    return failure();
  return sizes;
}

void ShapeContext::setResult(unsigned i, Type elementType, ArrayRef<DimExpr> dims, Attribute layout) {
  op->getResult(i).setType(tensorType(dims, elementType, layout));
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

FailureOr<SmallVector<DimExpr>> ShapeContext::axesOrRead(unsigned i, int64_t rank, StringRef what) {
  FailureOr<SmallVector<DimExpr>> axes = valuesOrRead(i, what);
  if (failed(axes))
    return failure();
  if (static_cast<int64_t>(axes->size()) > rank)
    return emitError() << what << " has " << axes->size() << " entries, but the tensor has " << rank << " axes", failure();
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  DimExpr size = constantDim(getContext(), rank), first = constantDim(getContext(), -rank);
  for (auto [k, axis] : llvm::enumerate(*axes)) {
    if (std::optional<int64_t> constant = axis.getConstant()) {
      FailureOr<int64_t> normal = normalizeAxis(*constant, rank, what);
      if (failed(normal))
        return failure();
      axis = constantDim(getContext(), *normal);
    } else {
      DimExpr isInside = selectLtDims(axis, first, zero, selectLtDims(axis, size, one, zero));
      if (failed(require(isInside, axis, size, what + " is {0}, but the tensor has {1} axes")))
        return failure();
      axis = selectLtDims(axis, zero, addDims(axis, size), axis);
    }
    for (DimExpr other : ArrayRef(*axes).take_front(k))
      if (failed(require(selectEqDims(other, axis, zero, one), axis, other, what + " names axis {0} twice")))
        return failure();
  }
  return axes;
}

SmallVector<DimExpr> ShapeContext::named(ArrayRef<DimExpr> expressions) {
  SmallVector<DimExpr> names(expressions);
  auto isShort = [](DimExpr e) { return !e || e.getConstant() || e.isSymbol(); };
  if (llvm::all_of(expressions, isShort) || llvm::is_contained(expressions, DimExpr()))
    return names;
  OpBuilder builder(op);
  ArrayAttr key = builder.getArrayAttr(SmallVector<Attribute>(expressions.begin(), expressions.end()));
  auto [known, isNew] = state.named.try_emplace(key);
  if (isNew) {
    auto type = RankedTensorType::get({static_cast<int64_t>(expressions.size())}, builder.getI64Type());
    Value values = FromDimsOp::create(builder, op->getLoc(), type, key);
    std::string stem = "v" + std::to_string(state.nextRead++);
    SmallVector<Attribute> symbols;
    for (auto [k, e] : llvm::enumerate(expressions)) {
      std::string name = stem + "[" + std::to_string(k) + "]";
      symbols.push_back(builder.getStringAttr(name));
      if (!isShort(e))
        names[k] = symbolDim(getContext(), name);
    }
    ReadOp::create(builder, op->getLoc(), values, builder.getArrayAttr(symbols));
    state.values[values] = SmallVector<DimExpr>(expressions);
    known->second = names;
  }
  return known->second;
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

/// Whether an element that is read from data decides `e`.
static bool isLate(DimExpr e) {
  bool late = false;
  forEachSymbol(e, [&](StringRef name) { late |= name.contains('['); });
  return late;
}

LogicalResult ShapeContext::requireSizes(ArrayRef<DimExpr> dims, const Twine &what) {
  DimExpr zero = constantDim(getContext(), 0), one = constantDim(getContext(), 1);
  bool anyLate = false;
  for (DimExpr dim : dims) {
    if (!dim)
      return require({}, zero, zero, "");
    anyLate |= isLate(dim);
    if (lowerBound(dim).value_or(-1) < 0 &&
        failed(require(selectLtDims(dim, zero, zero, one), dim, zero, what + " holds the negative size {0}")))
      return failure();
  }
  if (!anyLate)
    return success();
  // Dividing the limit by each size in turn does not overflow, where their product might. No element has more than 16 bytes.
  DimExpr room = constantDim(getContext(), INT64_MAX / 16);
  for (DimExpr dim : dims)
    room = floorDivDims(room, maxDims(dim, one));
  if (!room) // too long to be tested; the runtime still refuses what does not fit, in words of its own
    return success();
  return require(selectEqDims(room, zero, zero, one), room, zero, what + " has more elements than memory can hold");
}

} // namespace dlc
