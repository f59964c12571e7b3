// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/AxisSet.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/ShapeContext.h"
#include "dlcrt/kernel_abi.h"
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
  if (dims.size() != 1)
    return success();
  SmallVector<DimExpr> values;
  for (unsigned i = 0; i != getNumOperands(); ++i) {
    std::optional<int64_t> size = context.dims(i)[0].getConstant();
    if (!size || *size > ShapeContext::kMaxValues)
      return success();
    ArrayRef<DimExpr> part = context.values(i);
    if (part.empty())
      values.append(*size, DimExpr());
    else
      llvm::append_range(values, part);
  }
  if (!llvm::all_of(values, [](DimExpr e) { return !e; }))
    context.setValues(0, values);
  return success();
}

FailureOr<SmallVector<Value>> ConcatOp::lower(LowerContext &context) {
  Location loc = getLoc();
  int64_t axis = getAxis();
  // An element comes from the operand in whose range its index falls: a chain of scf.if, the last operand without a test.
  SmallVector<Value> ends;
  DimExpr end = constantDim(getContext(), 0);
  for (unsigned i = 0; i != getNumOperands(); ++i) {
    end = addDims(end, dimsOf(context.operandType(i))[axis]);
    ends.push_back(context.dim(end));
  }
  auto pick = [&](OpBuilder &b, ValueRange indices) {
    std::function<Value(OpBuilder &, unsigned)> from = [&](OpBuilder &inner, unsigned i) -> Value {
      SmallVector<Value> at(indices);
      if (i > 0)
        at[axis] = arith::SubIOp::create(inner, loc, at[axis], ends[i - 1]);
      if (i + 1 == getNumOperands())
        return tensor::ExtractOp::create(inner, loc, context.operand(i), at);
      Value isHere = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, indices[axis], ends[i]);
      auto branch = scf::IfOp::create(
          inner, loc, isHere,
          [&](OpBuilder &then, Location) { scf::YieldOp::create(then, loc, tensor::ExtractOp::create(then, loc, context.operand(i), at).getResult()); },
          [&](OpBuilder &otherwise, Location) { scf::YieldOp::create(otherwise, loc, from(otherwise, i + 1)); });
      return branch.getResult(0);
    };
    return from(b, 0);
  };
  return SmallVector<Value>{context.generate(context.resultType(), pick)};
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

Form GatherOp::form() { return Form::Lower; }
Role GatherOp::role() { return Role::Movement; }

LogicalResult GatherOp::shape(ShapeContext &context) {
  Type index = context.elementType(1);
  if (!index.isInteger(64) && !index.isInteger(32))
    return context.emitError() << "indices must be int32 or int64, not " << index;
  FailureOr<int64_t> axis = context.normalizeAxis(getAxis(), context.rank(0), "axis");
  if (failed(axis))
    return failure();
  setAxis(*axis);
  SmallVector<DimExpr> x = context.dims(0), indices = context.dims(1), dims(x.begin(), x.begin() + *axis);
  llvm::append_range(dims, indices);
  dims.append(x.begin() + *axis + 1, x.end());
  context.setResult(0, context.elementType(0), dims);

  // Indices that are constant must fit; those of a run are checked by the kernel.
  ArrayRef<DimExpr> picks = context.values(1), values = context.values(0);
  std::optional<int64_t> size = x[*axis].getConstant();
  SmallVector<DimExpr> picked;
  for (DimExpr pick : picks) {
    std::optional<int64_t> at = pick ? pick.getConstant() : std::nullopt;
    if (at && size && (*at < -*size || *at >= *size))
      return context.emitError() << "index " << *at << " is outside axis " << *axis << ", which has " << *size << " entries";
    if (at && size && x.size() == 1 && !values.empty())
      picked.push_back(values[*at < 0 ? *at + *size : *at]);
  }
  if (!picked.empty() && picked.size() == picks.size())
    context.setValues(0, picked);
  return success();
}

FailureOr<SmallVector<Value>> GatherOp::lower(LowerContext &context) {
  Location loc = getLoc();
  int64_t axis = getAxis(), indexRank = context.operandType(1).getRank();
  Value size = context.dim(dimsOf(context.operandType(0))[axis]);
  Type element = storageType(context.resultType()).getElementType();
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value raw = tensor::ExtractOp::create(b, loc, context.operand(1), indices.slice(axis, indexRank));
    Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), raw);
    Value zero = indexConstant(b, loc, 0);
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, zero);
    index = arith::SelectOp::create(b, loc, isNegative, arith::AddIOp::create(b, loc, index, size), index);
    // Unsigned: what is still negative is too large as well.
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, size);
    auto branch = scf::IfOp::create(
        b, loc, isInside,
        [&](OpBuilder &then, Location) {
          SmallVector<Value> at(indices.begin(), indices.begin() + axis);
          at.push_back(index);
          llvm::append_range(at, indices.drop_front(axis + indexRank));
          scf::YieldOp::create(then, loc, tensor::ExtractOp::create(then, loc, context.operand(0), at).getResult());
        },
        [&](OpBuilder &otherwise, Location) {
          RaiseOp::create(otherwise, loc, DLCRT_KERNEL_INDEX_OUT_OF_RANGE);
          scf::YieldOp::create(otherwise, loc, arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(element)).getResult());
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
  DimExpr openEntries = zero; // how many are -1
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!dim.getConstant() && lowerBound(dim).value_or(-2) < -1 &&
        failed(context.require(selectLtDims(dim, minusOne, zero, one), dim, minusOne, "the shape holds {0}; sizes are -1 or not negative")))
      return failure();
    if (lowerBound(dim).value_or(-1) < 0)
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
      if (i < x.size())
        dim = selectEqDims(dim, zero, x[i], dim);
    }
    // A size read at run time may turn out to be -1.
    if (lowerBound(dim).value_or(-1) < 0)
      maybeInferred = true;
    asked.push_back(selectEqDims(dim, minusOne, one, dim));
  }
  if (inferred > 1)
    return context.emitError() << "the shape " << toString(*shape) << " holds more than one -1";
  if (failed(context.require(selectLtDims(one, openEntries, zero, one), openEntries, one, "the shape holds -1 {0} times; only one size can be inferred")))
    return failure();
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
      dim = dim == minusOne ? rest : lowerBound(dim).value_or(-1) < 0 ? selectEqDims(dim, minusOne, rest, dim) : dim;
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
  ArrayRef<DimExpr> values = context.values(0);
  const AxisSlice *slice = slices->size() == 1 ? &slices->front() : nullptr;
  if (!values.empty() && slice && slice->start.getConstant() && slice->size.getConstant() && slice->step.getConstant()) {
    SmallVector<DimExpr> picked;
    for (int64_t i = 0; i != *slice->size.getConstant(); ++i)
      picked.push_back(values[*slice->start.getConstant() + i * *slice->step.getConstant()]);
    context.setValues(0, picked);
  }
  return success();
}

FailureOr<SmallVector<Value>> SliceOp::lower(LowerContext &context) {
  Location loc = getLoc();
  if (!getResolvedStarts() || !getResolvedSteps())
    return emitOpError("its bounds are not resolved; run infer-shapes"), failure();
  SmallVector<Value> starts, steps;
  for (auto [start, step] : llvm::zip_equal(getResolvedStarts()->getAsRange<DimExprAttr>(), getResolvedSteps()->getAsRange<DimExprAttr>())) {
    starts.push_back(context.dim(start));
    steps.push_back(context.dim(step));
  }
  auto pick = [&](OpBuilder &b, ValueRange indices) -> Value {
    SmallVector<Value> at;
    for (auto [index, start, step] : llvm::zip_equal(indices, starts, steps))
      at.push_back(arith::AddIOp::create(b, loc, start, arith::MulIOp::create(b, loc, index, step)));
    return tensor::ExtractOp::create(b, loc, context.operand(0), at);
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
  if (rank <= 1)
    keepValues(context);
  return success();
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
