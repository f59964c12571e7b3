// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Shape rules of element-wise ops. Their computation is in Elementwise.td.

#include "dlc/IR/Elementwise.h"
#include "Values.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dlc {

/// See OrderKeyOp.
static Scalar orderKey(ScalarBuilder &builder, const Scalar &x, Type to, bool descending) {
  OpBuilder &b = x.b();
  Location loc = x.getLoc();
  unsigned width = to.getIntOrFloatBitWidth();
  auto constant = [&](const APInt &value) -> Value { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(to, value)); };
  Value key;
  if (x.isFloat()) {
    // Negative floats have the opposite order of their bits.
    Value bits = arith::BitcastOp::create(b, loc, to, x.getValue());
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, bits, constant(APInt(width, 0)));
    Value turned = arith::XOrIOp::create(b, loc, bits, constant(APInt::getSignedMaxValue(width)));
    key = arith::SelectOp::create(b, loc, isNegative, turned, bits);
    Value isZero = (x == builder.constant(0, x)).getValue(), isNumber = (x == x).getValue();
    key = arith::SelectOp::create(b, loc, isZero, constant(APInt(width, 0)), key);
    key = arith::SelectOp::create(b, loc, isNumber, key, constant(APInt::getSignedMaxValue(width)));
  } else if (x.isBool()) {
    key = arith::ExtUIOp::create(b, loc, to, x.getValue());
  } else if (x.isUnsigned()) {
    key = arith::XOrIOp::create(b, loc, x.getValue(), constant(APInt::getSignedMinValue(width)));
  } else {
    key = x.getValue();
  }
  if (descending)
    key = arith::XOrIOp::create(b, loc, key, constant(APInt::getAllOnes(width)));
  return builder.wrap(key, to);
}

} // namespace dlc

#define GET_OP_CLASSES
#include "dlc/IR/Elementwise.cpp.inc"

namespace dlc {

void DlcDialect::addElementwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Elementwise.cpp.inc"
      >();
}

/// The width of an element; a bool is a byte.
static unsigned bitsOf(Type type) { return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth(); }

/// For each element of the result, row-major, the number of the element of a tensor of dims `own` that is broadcast to it.
static SmallVector<int64_t> broadcastElements(ArrayRef<int64_t> result, ArrayRef<int64_t> own) {
  SmallVector<int64_t> elements{0};
  int64_t ownSize = 1;
  // From the last axis to the first, each axis repeats what is there.
  for (size_t axis = result.size(); axis-- > 0;) {
    size_t behind = result.size() - axis;
    int64_t size = behind <= own.size() ? own[own.size() - behind] : 1;
    SmallVector<int64_t> next;
    for (int64_t i = 0; i < result[axis]; ++i)
      for (int64_t element : elements)
        next.push_back(element + (size == 1 ? 0 : i * ownSize));
    ownSize *= size;
    elements = std::move(next);
  }
  return elements;
}

std::optional<SmallVector<int64_t>> sizesForValues(ArrayRef<DimExpr> dims) {
  SmallVector<int64_t> sizes;
  int64_t count = 1;
  for (DimExpr dim : dims) {
    if (!dim.getConstant() || *dim.getConstant() > ShapeContext::kMaxValues)
      return std::nullopt;
    sizes.push_back(*dim.getConstant());
    count *= sizes.back();
    if (count > ShapeContext::kMaxValues)
      return std::nullopt;
  }
  return sizes;
}

void forEachElement(ArrayRef<int64_t> sizes, function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> at(sizes.size());
  for (int64_t left = llvm::product_of(sizes); left > 0; --left) {
    visit(at);
    for (size_t axis = sizes.size(); axis-- > 0 && ++at[axis] == sizes[axis];)
      at[axis] = 0;
  }
}

DimExpr valueAt(const ShapeContext &context, unsigned i, ArrayRef<int64_t> at) {
  ArrayRef<DimExpr> values = context.values(i);
  std::optional<SmallVector<int64_t>> sizes = sizesForValues(context.dims(i));
  if (values.empty() || !sizes)
    return {};
  int64_t place = 0;
  for (auto [size, index] : llvm::zip_equal(*sizes, at))
    place = place * size + index;
  return values[place];
}

/// Values of small tensors flow through arithmetic, so that computed shapes resolve.
static void propagateValues(ShapeContext &context, ArrayRef<DimExpr> resultDims,
                            function_ref<DimValue(ArrayRef<DimValue>)> dims) {
  std::optional<SmallVector<int64_t>> sizes = sizesForValues(resultDims);
  if (!sizes)
    return;
  unsigned operands = context.getOp()->getNumOperands();
  SmallVector<SmallVector<DimValue>> numbers;
  SmallVector<SmallVector<int64_t>> elements;
  for (unsigned i = 0; i != operands; ++i) {
    std::optional<SmallVector<int64_t>> own = sizesForValues(context.dims(i));
    numbers.push_back(context.numbers(i));
    if (!own || static_cast<int64_t>(numbers.back().size()) != llvm::product_of(*own) || numbers.back().empty())
      return;
    elements.push_back(broadcastElements(*sizes, *own));
  }
  SmallVector<DimValue> results, operand(operands);
  for (int64_t k = 0, count = llvm::product_of(*sizes); k != count; ++k) {
    for (unsigned i = 0; i != operands; ++i)
      operand[i] = numbers[i][elements[i][k]];
    results.push_back(dims(operand));
  }
  if (llvm::any_of(results, [](const DimValue &value) { return static_cast<bool>(value); }))
    context.setNumbers(0, results);
}

LogicalResult shapeElementwise(ShapeContext &context, ElementRule rule) { return shapeElementwise(context, rule, {}); }

LogicalResult shapeElementwise(ShapeContext &context, ElementRule rule, function_ref<DimValue(ArrayRef<DimValue>)> valueOf) {
  Operation *op = context.getOp();
  unsigned first = rule == ElementRule::Second ? 1 : 0; // the condition has a type of its own
  if (first == 1 && !context.elementType(0).isInteger(1))
    return context.emitError() << "the condition must be a bool tensor, not " << context.elementType(0);
  if (rule != ElementRule::First)
    for (unsigned i = first + 1; i < op->getNumOperands(); ++i)
      if (context.elementType(i) != context.elementType(first))
        return context.emitError() << "operands have the element types " << context.elementType(first) << " and "
                                   << context.elementType(i) << "; they must be equal (ONNX never converts: insert a Cast)";
  Type narrow = context.elementType(first);
  if (rule != ElementRule::Attribute && first == 0 && (isSubByte(narrow) || isSmallFloat(narrow)))
    return context.emitError() << "elements of type " << narrow << " are stored, not computed with (insert a Cast)";
  if (auto cast = dyn_cast<CastOp>(op); cast && !parsePowerRounding(cast.getRoundMode()))
    return context.emitError() << "round_mode is '" << cast.getRoundMode() << "'; it can be 'up', 'down' and 'nearest'";
  if (auto bits = dyn_cast<BitCastOp>(op); bits && bitsOf(bits.getTo()) != bitsOf(narrow))
    return context.emitError() << narrow << " and " << bits.getTo() << " have different widths";
  SmallVector<DimExpr> dims = context.dims(0);
  for (unsigned i = 1; i < op->getNumOperands(); ++i) {
    FailureOr<SmallVector<DimExpr>> both = context.broadcast(dims, context.dims(i));
    if (failed(both))
      return failure();
    dims = *both;
  }
  Type element = context.elementType(first);
  if (rule == ElementRule::Bool)
    element = IntegerType::get(context.getContext(), 1);
  else if (rule == ElementRule::Attribute)
    element = op->getAttrOfType<TypeAttr>("to").getValue();
  context.setResult(0, element, dims);
  if (valueOf)
    propagateValues(context, dims, valueOf);
  return success();
}

//===----------------------------------------------------------------------===//
// Iota
//===----------------------------------------------------------------------===//

Form IotaOp::form() { return Form::Scalar; }
Role IotaOp::role() { return Role::Elementwise; }
LayoutNeed IotaOp::layout() { return LayoutNeed::Any; }
bool IotaOp::readsData(unsigned) { return false; }
Scalar IotaOp::scalar(ScalarBuilder &b, ArrayRef<Scalar>) { return b.index(getAxis()); }

LogicalResult IotaOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<DimExpr>> dims = context.sizes(0, "the shape of Iota");
  if (failed(dims))
    return failure();
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), dims->size(), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  context.setResult(0, IntegerType::get(getContext(), 64), *dims);
  if (std::optional<int64_t> count = dims->size() == 1 ? dims->front().getConstant() : std::nullopt; count && *count <= ShapeContext::kMaxValues) {
    SmallVector<DimExpr> values;
    for (int64_t i = 0; i != *count; ++i)
      values.push_back(constantDim(getContext(), i));
    context.setValues(0, values);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Expand
//===----------------------------------------------------------------------===//

Form ExpandOp::form() { return Form::Scalar; }
Role ExpandOp::role() { return Role::Elementwise; }
LayoutNeed ExpandOp::layout() { return LayoutNeed::Any; }
bool ExpandOp::readsData(unsigned operand) { return operand == 0; }
Scalar ExpandOp::scalar(ScalarBuilder &, ArrayRef<Scalar> operands) { return operands[0]; }

LogicalResult ExpandOp::shape(ShapeContext &context) {
  FailureOr<SmallVector<DimExpr>> shape = context.sizes(1, "the shape of Expand");
  if (failed(shape))
    return failure();
  FailureOr<SmallVector<DimExpr>> dims = context.broadcast(context.dims(0), *shape);
  if (failed(dims) || failed(context.requireSizes(*dims, "the result")))
    return failure();
  context.setResult(0, context.elementType(0), *dims);
  std::optional<SmallVector<int64_t>> sizes = sizesForValues(*dims), own = sizesForValues(context.dims(0));
  SmallVector<DimValue> numbers = context.numbers(0), repeated;
  if (sizes && own && !numbers.empty()) {
    for (int64_t element : broadcastElements(*sizes, *own))
      repeated.push_back(numbers[element]);
    context.setNumbers(0, repeated);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Align axes
//===----------------------------------------------------------------------===//

Form AlignAxesOp::form() { return Form::Expand; }
Role AlignAxesOp::role() { return Role::Movement; }
bool AlignAxesOp::readsData(unsigned operand) { return operand == 0; }

LogicalResult AlignAxesOp::shape(ShapeContext &context) {
  int64_t axis = getAxis(), others = context.rank(1) - context.rank(0);
  if (axis > others)
    return context.emitError() << "the second input has " << context.rank(0) << " dims, which do not fit the first one's from " << axis
                               << " on: it has " << context.rank(1);
  SmallVector<DimExpr> dims = context.dims(0);
  dims.append(others - axis, constantDim(getContext(), 1));
  context.setResult(0, context.elementType(0), dims);
  context.setNumbers(0, context.numbers(0));
  return success();
}

LogicalResult AlignAxesOp::expand(RewriterBase &rewriter) {
  rewriter.replaceOp(*this, reshapeTo(rewriter, getLoc(), getX(), cast<RankedTensorType>(getResult().getType())));
  return success();
}

} // namespace dlc
