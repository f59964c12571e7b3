// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Compose.h"
#include "ElementType.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

SmallVector<Value> makeIf(NodeReader &n, Value condition, Make then, Make otherwise) {
  // The types of the results are known only behind the branches.
  OpBuilder &b = n.b();
  auto draft = IfOp::create(b, n.getLoc(), TypeRange(), condition, DimExpr(), DenseI64ArrayAttr());
  SmallVector<Type> types;
  for (auto [i, region] : llvm::enumerate(draft->getRegions())) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    SmallVector<Value> values = i == 0 ? then() : otherwise();
    YieldOp::create(b, n.getLoc(), values);
    if (i == 0)
      for (Value value : values)
        types.push_back(UnrankedTensorType::get(NodeReader::elementTypeOf(value)));
  }
  auto op = IfOp::create(b, n.getLoc(), types, condition, DimExpr(), DenseI64ArrayAttr());
  for (auto [from, to] : llvm::zip_equal(draft->getRegions(), op->getRegions()))
    to.takeBody(from);
  draft.erase();
  return op.getResults();
}

Value makeByRank(NodeReader &n, Value x, int64_t rank, llvm::function_ref<Value()> then, llvm::function_ref<Value()> otherwise) {
  if (std::optional<int64_t> known = NodeReader::rankOf(x))
    return *known == rank ? then() : otherwise();
  Type index = n.b().getI64Type();
  Value dims = n.make<ShapeOp>(index, x, /*start=*/0, /*end=*/IntegerAttr());
  Value isThat = n.make<EqualOp>(n.b().getI1Type(), n.make<ShapeOp>(index, dims, /*start=*/0, /*end=*/IntegerAttr()), n.ints({rank}));
  return makeIf(n, isThat, [&] { return SmallVector<Value>{then()}; }, [&] { return SmallVector<Value>{otherwise()}; }).front();
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

Value dimOf(NodeReader &n, Value x, int64_t axis) {
  return n.make<ShapeOp>(n.b().getI64Type(), x, axis, axis == -1 ? IntegerAttr() : n.b().getI64IntegerAttr(axisBehind(axis)));
}

std::optional<int64_t> knownDim(Value x, int64_t axis) {
  auto type = dyn_cast<RankedTensorType>(x.getType());
  if (!type || axis >= type.getRank() || axis < -type.getRank())
    return std::nullopt;
  int64_t dim = type.getDimSize(axis < 0 ? axis + type.getRank() : axis);
  return ShapedType::isDynamic(dim) ? std::nullopt : std::optional(dim);
}

Value reshape(NodeReader &n, Value x, Value shape, bool allowzero) {
  return n.make<ReshapeOp>(NodeReader::elementTypeOf(x), x, shape, allowzero);
}

Value transpose(NodeReader &n, Value x, ArrayRef<int64_t> perm) {
  return n.make<TransposeOp>(NodeReader::elementTypeOf(x), x, n.b().getDenseI64ArrayAttr(perm));
}

Value unsqueeze(NodeReader &n, Value x, ArrayRef<int64_t> axes) { return n.make<UnsqueezeOp>(NodeReader::elementTypeOf(x), x, axes); }

Value concat(NodeReader &n, ArrayRef<Value> parts, int64_t axis) {
  return n.make<ConcatOp>(NodeReader::elementTypeOf(parts.front()), parts, axis);
}

Value slice(NodeReader &n, Value x, Value start, Value end, int64_t axis) {
  return n.make<SliceOp>(NodeReader::elementTypeOf(x), x, start, end, n.ints({axis}), Value());
}

Value pick(NodeReader &n, Value x, int64_t index, int64_t axis) {
  return n.make<GatherOp>(NodeReader::elementTypeOf(x), x, n.scalar(index, n.b().getI64Type()), axis);
}

//===----------------------------------------------------------------------===//
// Parts of operators
//===----------------------------------------------------------------------===//

Type typeOfSums(NodeReader &n, Type type) { return type.getIntOrFloatBitWidth() < 32 ? Type(n.b().getF32Type()) : type; }

Value softmaxAlong(NodeReader &n, Value x, int64_t axis, bool logarithm, bool isMasked) {
  Type type = NodeReader::elementTypeOf(x);
  auto reduce = [&](Value value, ReduceKind kind) {
    return n.make<ReduceOp>(type, value, kind, SmallVector<int64_t>{axis}, /*keepdims=*/true, /*allAxes=*/false);
  };
  Value largest = reduce(x, ReduceKind::Max);
  Value shifted = n.make<SubOp>(type, x, largest);
  Value exponentials = n.make<ExpOp>(type, shifted);
  Value sum = reduce(exponentials, ReduceKind::Sum);
  if (logarithm)
    return n.make<SubOp>(type, shifted, n.make<LogOp>(type, sum));
  // The sum is at least 1. A division for each element would take longer than the rest; in 16 bits its rounding would
  // be seen.
  Value result;
  if (type.getIntOrFloatBitWidth() >= 32)
    result = n.make<MulOp>(type, exponentials, n.make<ReciprocalOp>(type, sum));
  else
    result = n.make<DivOp>(type, exponentials, sum);
  if (!isMasked)
    return result;
  Value isEmpty = n.make<EqualOp>(n.b().getI1Type(), largest, n.scalar(-std::numeric_limits<double>::infinity(), type));
  return n.make<WhereOp>(type, isEmpty, n.scalar(0, type), result);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void requireOneFloatType(NodeReader &n, ArrayRef<unsigned> inputs) {
  const NodeInfo &node = n.getNode();
  std::optional<unsigned> first;
  for (unsigned i : inputs) {
    if (i >= node.inputs.size() || !node.inputs[i].value || node.inputs[i].poisoned)
      continue;
    Type type = NodeReader::elementTypeOf(node.inputs[i].value);
    if (!first) {
      first = i;
      if (!isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type))
        return n.failInput(i, Twine("its ") + n.describeInput(i) + " is " + typeName(type) + "; it can be bfloat16, double, float, float16");
    } else if (Type other = NodeReader::elementTypeOf(node.inputs[*first].value); type != other) {
      n.failInput(i, Twine("its ") + n.describeInput(i) + " is " + typeName(type) + ", but its " + n.describeInput(*first) + " is " +
                         typeName(other) + "; both must be of one type (put a Cast before one of them)");
    }
  }
}

void requireIntegers(NodeReader &n, unsigned i) {
  const NodeInfo &node = n.getNode();
  if (i >= node.inputs.size() || !node.inputs[i].value || node.inputs[i].poisoned)
    return;
  Type type = NodeReader::elementTypeOf(node.inputs[i].value);
  if (!type.isSignlessInteger(32) && !type.isSignlessInteger(64))
    n.failInput(i, Twine("its ") + n.describeInput(i) + " is " + typeName(type) + "; it can be int32, int64");
}

void refuseFlag(NodeReader &n, StringRef name) {
  if (n.getFlag(name, false))
    n.fail(Twine("its attribute ") + quote(name) + " is set, which dlc does not support");
}

} // namespace dlc
