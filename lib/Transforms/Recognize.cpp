// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Attention as graphs spell it out: a product, element-wise ops on the scores (scale, masks, biases, whatever they are), a softmax along the
// keys, and a product. It becomes one dlc.attention, whose region holds the element-wise ops. What else the spelling has is taken apart:
// transposes around the products, a scale on the queries or the keys, keys and values repeated for groups of queries, batch dims made
// one and parted again, NaNs of empty rows replaced by 0.

#include "dlc/IR/Attention.h"
#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace dlc {
#define GEN_PASS_DEF_RECOGNIZE
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// The longest vectors of queries, keys and values: what a kernel keeps of them for a few rows stays small.
constexpr int64_t kLongest = 512;
/// Element-wise ops that do not depend on the product, but are computed with the scores because memory for them would be as large.
constexpr unsigned kMostRecomputed = 12;

bool isF32(Value v) { return cast<RankedTensorType>(v.getType()).getElementType().isF32(); }

/// A tensor seen with its axes in another order.
struct Permuted {
  Value tensor;
  SmallVector<int64_t> perm;

  SmallVector<DimExpr> dims() const {
    SmallVector<DimExpr> own = dimsOf(tensor.getType()), result;
    for (int64_t axis : perm)
      result.push_back(own[axis]);
    return result;
  }
};

Permuted permuted(Value v, std::optional<ArrayRef<int64_t>> perm) {
  Permuted result{v, {}};
  if (perm)
    result.perm.assign(perm->begin(), perm->end());
  else
    llvm::append_range(result.perm, llvm::seq<int64_t>(0, dimsOf(v.getType()).size()));
  return result;
}

/// `type` with the dim at `axis` parted into two.
RankedTensorType withSplit(RankedTensorType type, int64_t axis, DimExpr outer, DimExpr inner) {
  SmallVector<DimExpr> dims = dimsOf(type);
  dims[axis] = inner;
  dims.insert(dims.begin() + axis, outer);
  return tensorType(dims, type.getElementType());
}

class AttentionMatcher {
public:
  explicit AttentionMatcher(MatMulOp second) : second(second), builder(second) {}

  /// Puts a dlc.attention in the place of the second product, or of what only renames its result.
  bool run();

private:
  bool matchSoftmax();
  bool dependsOnProduct(Value v, unsigned depth = 0);
  bool mayRead(Value extra, ArrayRef<DimExpr> form) const;
  bool matchScores(Value value, ArrayRef<DimExpr> form);
  bool areUsedHereOnly();
  bool peel(Permuted &side, bool mayScale);
  bool adjustBatch(Permuted &side, MatMulOp product);
  void groupQueries();
  bool isReadable() const;
  void findEnd();
  void build();
  Value inRegion(Value value, OpBuilder &b);

  MatMulOp second, first;
  OpBuilder builder;
  Value scores;                   // what the softmax gets
  SmallVector<Operation *> softmax; // its ops, and those behind it up to the second product
  bool emptyIsZero = false, nanIsZero = false;
  SmallVector<DimExpr> logical;              // [batch..., queries, keys], in the form with the most batch dims
  llvm::MapVector<Operation *, bool> inside; // ops of the region, and whether they depend on the product
  llvm::SetVector<Value> extras;
  DenseMap<Value, bool> depends;
  Permuted q, k, v;
  SmallVector<std::pair<Value, bool>> factors; // numbers that queries or keys are multiplied, or divided, by
  SmallVector<int64_t> resultPerm;
  Operation *end = nullptr; // what the attention replaces
  DenseMap<Value, Value> parted, regionValues;
};

/// The float that `v` repeats, or nothing.
std::optional<APFloat> floatOf(Value v) {
  DenseElementsAttr splat = splatOf(v);
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>();
}

/// Whether a reshape leaves the last dim as it is.
bool keepsRows(ReshapeOp reshape) {
  SmallVector<DimExpr> from = dimsOf(reshape.getX().getType()), to = dimsOf(reshape.getResult().getType());
  return !from.empty() && !to.empty() && from.back() == to.back();
}

/// The reduction of the last axis that `v` holds, one number for each row, under the dims of what is reduced but for a 1 at the end.
ReduceOp rowReduction(Value v, ReduceKind kind, SmallVectorImpl<Operation *> &ops) {
  auto view = v.getDefiningOp<ReshapeOp>();
  Value inner = view ? view.getX() : v;
  auto reduce = inner.getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != kind || rowAxesOf(cast<DlcOp>(reduce.getOperation())) != 1)
    return {};
  SmallVector<DimExpr> dims = dimsOf(reduce.getX().getType());
  dims.back() = constantDim(v.getContext(), 1);
  if (dims != dimsOf(v.getType()))
    return {};
  if (inner != v)
    ops.push_back(v.getDefiningOp());
  ops.push_back(reduce);
  return reduce;
}

bool AttentionMatcher::matchSoftmax() {
  Value weights = second.getA();
  if (second.getAPerm() && !llvm::equal(*second.getAPerm(), llvm::seq<int64_t>(0, second.getAPerm()->size())))
    return false;
  if (!isF32(weights) || dimsOf(weights.getType()).size() < 2)
    return false;
  // Dims that are joined for the product only, or for the softmax (of rows, as ONNX had it before opset 13).
  SmallVector<DimExpr> form = dimsOf(weights.getType());
  if (auto renamed = weights.getDefiningOp<ReshapeOp>(); renamed && keepsRows(renamed)) {
    softmax.push_back(renamed);
    weights = renamed.getX();
  }
  Value emptyRow; // what is tested to be -inf
  if (auto guard = weights.getDefiningOp<WhereOp>()) {
    // where(x == x, x, 0), where(not (x == x), 0, x), or where(largest == -inf, 0, x)
    auto test = guard.getCondition().getDefiningOp<EqualOp>();
    Value x = guard.getY(), none = guard.getX();
    if (auto isNan = guard.getCondition().getDefiningOp<NotOp>()) {
      test = isNan->getOperand(0).getDefiningOp<EqualOp>();
      softmax.push_back(isNan);
    } else if (test && test.getX() == test.getY()) {
      std::swap(x, none);
    }
    std::optional<APFloat> zero = floatOf(none);
    if (!test || !zero || !zero->isZero() || guard.getResult().getType() != x.getType())
      return false;
    softmax.append({guard, test});
    if (test.getX() == x && test.getY() == x) {
      nanIsZero = true;
    } else {
      std::optional<APFloat> least = floatOf(test.getY());
      if (guard.getCondition() != test.getResult() || !least || !least->isInfinity() || !least->isNegative())
        return false;
      emptyRow = test.getX();
      emptyIsZero = true;
    }
    weights = x;
  }
  Value exponentials, total;
  if (auto product = weights.getDefiningOp<MulOp>()) {
    auto inverse = product.getY().getDefiningOp<ReciprocalOp>();
    if (!inverse)
      return false;
    softmax.append({product, inverse});
    exponentials = product.getX();
    total = inverse->getOperand(0);
  } else if (auto quotient = weights.getDefiningOp<DivOp>()) {
    softmax.push_back(quotient);
    exponentials = quotient.getX();
    total = quotient.getY();
  } else {
    return false;
  }
  auto exponential = exponentials.getDefiningOp<ExpOp>();
  ReduceOp sum = rowReduction(total, ReduceKind::Sum, softmax);
  auto shifted = exponential ? exponential->getOperand(0).getDefiningOp<SubOp>() : SubOp();
  if (!shifted || !sum || sum.getX() != exponentials)
    return false;
  ReduceOp largest = rowReduction(shifted.getY(), ReduceKind::Max, softmax);
  scores = shifted.getX();
  softmax.append({exponential, shifted});
  if (emptyRow && emptyRow != shifted.getY())
    return false;
  if (!largest || largest.getX() != scores || !isF32(scores))
    return false;
  if (auto renamed = scores.getDefiningOp<ReshapeOp>(); renamed && keepsRows(renamed) && ArrayRef(form) == ArrayRef(dimsOf(renamed.getX().getType()))) {
    softmax.push_back(renamed);
    scores = renamed.getX();
  }
  SmallVector<DimExpr> dims = dimsOf(scores.getType()); // of whole matrices: their rows are the second product's
  return dims.size() >= 2 && ArrayRef(dims).take_back(2) == ArrayRef(form).take_back(2);
}

/// Whether a reshape parts or joins batch dims, over the same queries and keys.
bool keepsMatrices(ReshapeOp reshape) {
  SmallVector<DimExpr> from = dimsOf(reshape.getX().getType()), to = dimsOf(reshape.getResult().getType());
  return from.size() >= 2 && to.size() >= 2 && ArrayRef(from).take_back(2) == ArrayRef(to).take_back(2);
}

/// Whether `v` is computed from the scores' product, through element-wise ops; finds the product, and the widest form.
bool AttentionMatcher::dependsOnProduct(Value v, unsigned depth) {
  if (auto known = depends.find(v); known != depends.end())
    return known->second;
  Operation *op = v.getDefiningOp();
  bool result = false;
  if (op && op->getBlock() == second->getBlock() && depth < 32) {
    SmallVector<DimExpr> dims = dimsOf(v.getType());
    if (auto product = dyn_cast<MatMulOp>(op)) {
      // A bias may come from a product as well: of smaller matrices.
      result = (!first || first == product) && dims.size() >= 2 && ArrayRef(dims).take_back(2) == ArrayRef(logical).take_back(2) && isF32(v);
      if (result)
        first = product;
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      result = keepsMatrices(reshape) && dependsOnProduct(reshape.getX(), depth + 1);
    } else if (auto scalar = dyn_cast<DlcOp>(op); scalar && scalar.form() == Form::Scalar) {
      for (OpOperand &operand : op->getOpOperands())
        if (scalar.readsData(operand.getOperandNumber()))
          result |= dependsOnProduct(operand.get(), depth + 1);
    }
    if (result && dims.size() > logical.size())
      logical = dims;
  }
  return depends[v] = result;
}

/// Whether an element for each score is certain: each dim is that of `form`, the scores' at that place, or 1. Where batch dims have another
/// form for a while, what is read there has none.
bool AttentionMatcher::mayRead(Value extra, ArrayRef<DimExpr> form) const {
  SmallVector<DimExpr> dims = dimsOf(extra.getType());
  if (dims.size() > form.size())
    return false;
  for (auto [i, e] : llvm::enumerate(llvm::reverse(dims)))
    if (!e.isConstant(1) && (e != form[form.size() - 1 - i] || (i >= 2 && form != ArrayRef(logical))))
      return false;
  return true;
}

/// Takes what an op over `form` reads into the region, or among the region's operands.
bool AttentionMatcher::matchScores(Value value, ArrayRef<DimExpr> form) {
  Operation *op = value.getDefiningOp();
  if (value == first.getResult() || splatOf(value) || (op && inside.count(op)))
    return true;
  auto scalar = dyn_cast_or_null<DlcOp>(op);
  auto matchOperands = [&](ArrayRef<DimExpr> own) {
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return !scalar.readsData(operand.getOperandNumber()) || matchScores(operand.get(), own);
    });
  };
  SmallVector<DimExpr> dims = dimsOf(value.getType());
  if (dependsOnProduct(value)) {
    inside[op] = true;
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      return matchScores(reshape.getX(), dimsOf(reshape.getX().getType()));
    return ArrayRef(dims) == form && matchOperands(form); // else the product is broadcast to more scores
  }
  if (!mayRead(value, form))
    return false;
  // As large as the scores, and made of less: computed again where it is needed.
  bool isLarge = dims.size() >= 2 && ArrayRef(dims).take_back(2) == ArrayRef(logical).take_back(2) && !dims[dims.size() - 2].isConstant(1);
  unsigned recomputed = llvm::count_if(inside, [](auto &entry) { return !entry.second; });
  if (isLarge && scalar && scalar.form() == Form::Scalar && !isa<IotaOp>(op) && op->getBlock() == second->getBlock() && recomputed < kMostRecomputed) {
    inside[op] = false;
    return matchOperands(form);
  }
  extras.insert(value);
  return true;
}

bool AttentionMatcher::areUsedHereOnly() {
  llvm::SmallPtrSet<Operation *, 16> own(softmax.begin(), softmax.end());
  own.insert(second);
  for (auto [op, isDependent] : inside)
    own.insert(op);
  auto isUsedHere = [&](Operation *op) { return llvm::all_of(op->getUsers(), [&](Operation *user) { return own.contains(user); }); };
  return isUsedHere(first) && llvm::all_of(softmax, isUsedHere) &&
         llvm::all_of(inside, [&](auto &entry) { return !entry.second || isUsedHere(entry.first); });
}

/// Takes a transpose, or a scale by a number, off an operand of a product.
bool AttentionMatcher::peel(Permuted &side, bool mayScale) {
  Operation *op = side.tensor.getDefiningOp();
  if (auto transpose = dyn_cast_or_null<TransposeOp>(op); transpose && transpose.getPerm()) {
    for (int64_t &axis : side.perm)
      axis = (*transpose.getPerm())[axis];
    side.tensor = transpose.getX();
    return true;
  }
  // reshape(transpose(reshape(x))): batch dims joined, matrices transposed, batch dims parted again
  if (auto outer = dyn_cast_or_null<ReshapeOp>(op))
    if (auto transpose = outer.getX().getDefiningOp<TransposeOp>();
        transpose && transpose.getPerm() && llvm::equal(*transpose.getPerm(), ArrayRef<int64_t>{0, 2, 1}))
      if (auto inner = transpose.getX().getDefiningOp<ReshapeOp>(); inner && keepsMatrices(inner)) {
        SmallVector<DimExpr> to = dimsOf(outer.getResult().getType()), from = dimsOf(inner.getX().getType());
        int64_t rank = to.size();
        if (int64_t(from.size()) == rank && rank >= 3 && ArrayRef(from).drop_back(2) == ArrayRef(to).drop_back(2) &&
            from[rank - 2] == to[rank - 1] && from[rank - 1] == to[rank - 2]) {
          for (int64_t &axis : side.perm)
            axis = axis == rank - 1 ? rank - 2 : axis == rank - 2 ? rank - 1 : axis;
          side.tensor = inner.getX();
          return true;
        }
      }
  if (mayScale && isa_and_nonnull<MulOp, DivOp>(op) && op->getResult(0).getType() == op->getOperand(0).getType() && splatOf(op->getOperand(1))) {
    factors.push_back({op->getOperand(1), isa<DivOp>(op)});
    side.tensor = op->getOperand(0);
    return true;
  }
  return false;
}

/// Gives an operand of a product as many batch dims as the scores' widest form has: parts the one that joins all of them, or broadcasts.
bool AttentionMatcher::adjustBatch(Permuted &side, MatMulOp product) {
  int64_t rank = logical.size(), own = side.perm.size();
  if (own == rank)
    return true;
  if (own > rank || !llvm::equal(ArrayRef(side.perm).drop_back(2), llvm::seq<int64_t>(0, own - 2)))
    return false;
  DimExpr one = constantDim(builder.getContext(), 1);
  SmallVector<DimExpr> dims = dimsOf(side.tensor.getType()), all(rank - own, one);
  if (int64_t(dimsOf(product.getResult().getType()).size()) == rank) {
    llvm::append_range(all, dims);
  } else if (own == 3) {
    ArrayRef<DimExpr> batch = ArrayRef(logical).drop_back(2);
    if (dims[0] == productOfDims(builder.getContext(), batch))
      all.assign(batch.begin(), batch.end());
    else if (dims[0].isConstant(1))
      all.assign(batch.size(), one);
    else
      return false;
    llvm::append_range(all, ArrayRef(dims).drop_front());
  } else {
    return false;
  }
  RankedTensorType type = tensorType(all, builder.getF32Type());
  // What was joined before is as it was.
  auto join = side.tensor.getDefiningOp<ReshapeOp>();
  side.tensor = join && join.getX().getType() == type ? join.getX() : reshapeTo(builder, second.getLoc(), side.tensor, type);
  SmallVector<int64_t> perm(llvm::to_vector(llvm::seq<int64_t>(0, rank - 2)));
  for (int64_t axis : ArrayRef(side.perm).take_back(2))
    perm.push_back(axis + rank - own);
  side.perm = perm;
  return true;
}

/// Where a tensor is reshape(expand(x)) and repeats x along an axis: which one of the tensor's, and x, which has a dim of 1 behind it.
std::optional<std::pair<int64_t, Value>> findRepeated(Value tensor) {
  auto outer = tensor.getDefiningOp<ReshapeOp>();
  auto expand = outer ? outer.getX().getDefiningOp<ExpandOp>() : ExpandOp();
  if (!expand)
    return std::nullopt;
  SmallVector<DimExpr> to = dimsOf(tensor.getType()), wide = dimsOf(expand.getResult().getType()), from = dimsOf(expand.getX().getType());
  if (wide.size() != to.size() + 1 || from.size() != wide.size())
    return std::nullopt;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    SmallVector<DimExpr> parted(to);
    parted[axis] = wide[axis];
    parted.insert(parted.begin() + axis + 1, wide[axis + 1]);
    SmallVector<DimExpr> once(parted);
    once[axis + 1] = constantDim(tensor.getContext(), 1);
    if (parted == wide && once == from && mulDims(wide[axis], wide[axis + 1]) == to[axis])
      return std::pair(int64_t(axis), expand.getX());
  }
  return std::nullopt;
}

/// Keys and values that are repeated for groups of queries are read once: the batch dim becomes two, of which they know the first.
void AttentionMatcher::groupQueries() {
  auto ofK = findRepeated(k.tensor), ofV = findRepeated(v.tensor);
  if (!ofK || !ofV)
    return;
  int64_t rank = logical.size(), axis = llvm::find(k.perm, ofK->first) - k.perm.begin();
  SmallVector<DimExpr> dims = dimsOf(ofK->second.getType());
  DimExpr outer = dims[ofK->first], inner = floorDivDims(logical[axis], outer);
  if (axis >= rank - 2 || v.perm[axis] != ofV->first || dimsOf(ofV->second.getType())[ofV->first] != outer || mulDims(outer, inner) != logical[axis])
    return;
  Location loc = second.getLoc();
  auto part = [&](Value tensor, int64_t at, DimExpr a, DimExpr b) {
    return reshapeTo(builder, loc, tensor, withSplit(cast<RankedTensorType>(tensor.getType()), at, a, b));
  };
  q.tensor = part(q.tensor, q.perm[axis], outer, inner);
  k.tensor = ofK->second;
  v.tensor = ofV->second;
  for (Permuted *side : {&q, &k, &v}) {
    int64_t own = side->perm[axis];
    for (int64_t &a : side->perm)
      a += a > own;
    side->perm.insert(side->perm.begin() + axis + 1, own + 1);
  }
  DimExpr one = constantDim(builder.getContext(), 1);
  for (Value extra : extras) {
    SmallVector<DimExpr> own = dimsOf(extra.getType());
    int64_t at = int64_t(own.size()) - (rank - axis);
    if (at >= 0)
      parted[extra] = own[at].isConstant(1) ? part(extra, at, one, one) : part(extra, at, outer, inner);
  }
  auto *place = llvm::find(resultPerm, axis);
  int64_t position = place - resultPerm.begin();
  for (int64_t &a : resultPerm)
    a += a > axis;
  resultPerm.insert(resultPerm.begin() + position + 1, axis + 1);
  logical[axis] = inner;
  logical.insert(logical.begin() + axis, outer);
}

/// Where keys (or values) are the first ones of a longer axis (a cache with room for more), takes all of it. `axis` counts in the tensor.
Value withCapacity(Value tensor, int64_t axis, OpBuilder &b) {
  auto renamed = tensor.getDefiningOp<ReshapeOp>();
  auto prefix = (renamed ? renamed.getX() : tensor).getDefiningOp<PrefixOp>();
  if (!prefix)
    return tensor;
  SmallVector<DimExpr> from = dimsOf(prefix.getX().getType()), to = dimsOf(prefix.getResult().getType()), dims = dimsOf(tensor.getType());
  // The view may add a dim of 1.
  if (renamed) {
    size_t at = 0;
    while (at < to.size() && at < dims.size() && to[at] == dims[at])
      ++at;
    if (at == dims.size() || dims.size() != to.size() + 1 || !dims[at].isConstant(1) || ArrayRef(dims).drop_front(at + 1) != ArrayRef(to).drop_front(at))
      return tensor;
    to.insert(to.begin() + at, dims[at]);
    from.insert(from.begin() + at, dims[at]);
  }
  for (size_t i = 0; i < to.size(); ++i)
    if (int64_t(i) != axis && from[i] != to[i])
      return tensor;
  return reshapeTo(b, tensor.getLoc(), prefix.getX(), tensorType(from, b.getF32Type()));
}

/// Whether kernels can read the operands: vectors of a length that is known and small lie side by side.
bool AttentionMatcher::isReadable() const {
  int64_t rank = logical.size();
  SmallVector<DimExpr> qDims = q.dims(), kDims = k.dims(), vDims = v.dims(), dims(logical);
  dims.back() = vDims.back();
  // What it takes the place of has as many elements.
  MLIRContext *context = builder.getContext();
  if (productOfDims(context, dims) != productOfDims(context, dimsOf(end->getResult(0).getType())))
    return false;
  auto isShort = [](DimExpr e) { return e.getConstant() && *e.getConstant() >= 1 && *e.getConstant() <= kLongest; };
  if (!isShort(qDims.back()) || !isShort(vDims.back()) || kDims.back() != qDims.back())
    return false;
  if (ArrayRef(qDims).drop_back() != ArrayRef(logical).drop_back() || kDims[rank - 2] != logical.back() || vDims[rank - 2] != logical.back())
    return false;
  for (int64_t i = 0; i < rank - 2; ++i)
    for (DimExpr e : {kDims[i], vDims[i]})
      if (e != logical[i] && !e.isConstant(1))
        return false;
  return v.perm[rank - 1] == rank - 1 && (k.perm[rank - 1] == rank - 1 || k.perm[rank - 2] == rank - 1);
}

/// A transpose behind the second product is the attention's own, as long as a row of the result stays one.
void AttentionMatcher::findEnd() {
  end = second;
  llvm::append_range(resultPerm, llvm::seq<int64_t>(0, logical.size()));
  SmallVector<DimExpr> dims(logical);
  dims.back() = v.dims().back();
  Operation *last = second;
  auto onlyUser = [](Operation *op) { return op->hasOneUse() ? *op->user_begin() : nullptr; };
  if (auto parting = dyn_cast_or_null<ReshapeOp>(onlyUser(last)); parting && dimsOf(parting.getResult().getType()) == dims)
    last = parting;
  auto transpose = dyn_cast_or_null<TransposeOp>(onlyUser(last));
  if (!transpose || !transpose.getPerm() || dimsOf(last->getResult(0).getType()) != dims || transpose.getPerm()->back() != int64_t(dims.size()) - 1 ||
      transpose->getBlock() != second->getBlock())
    return;
  end = transpose;
  resultPerm.assign(transpose.getPerm()->begin(), transpose.getPerm()->end());
}

/// The value as the region computes it.
Value AttentionMatcher::inRegion(Value value, OpBuilder &b) {
  if (Value known = regionValues.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value result;
  if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && inside.count(op)) {
    result = inRegion(reshape.getX(), b);
  } else {
    IRMapping mapping;
    if (!splatOf(value))
      for (OpOperand &operand : op->getOpOperands()) {
        bool isRead = cast<DlcOp>(op).readsData(operand.getOperandNumber());
        // A shape is used up; the first operand stands in for it.
        mapping.map(operand.get(), isRead ? inRegion(operand.get(), b) : inRegion(op->getOperand(0), b));
      }
    Operation *clone = b.clone(*op, mapping);
    result = clone->getResult(0);
    if (!splatOf(value))
      result.setType(tensorType(logical, cast<RankedTensorType>(value.getType()).getElementType()));
  }
  return regionValues[value] = result;
}

void AttentionMatcher::build() {
  builder.setInsertionPoint(end);
  Type f32 = builder.getF32Type();
  SmallVector<Location> locations{first.getLoc()};
  for (auto [op, isDependent] : llvm::reverse(inside))
    locations.push_back(op->getLoc());
  for (Operation *op : llvm::reverse(softmax))
    locations.push_back(op->getLoc());
  locations.push_back(second.getLoc());
  Location loc = builder.getFusedLoc(locations);
  SmallVector<Value> operands;
  for (Value extra : extras)
    operands.push_back(parted.contains(extra) ? parted.lookup(extra) : extra);
  SmallVector<DimExpr> own(logical), dims;
  own.back() = v.dims().back();
  for (int64_t axis : resultPerm)
    dims.push_back(own[axis]);
  auto attention = AttentionOp::create(builder, loc, tensorType(dims, f32), q.tensor, k.tensor, v.tensor, operands, q.perm, k.perm, v.perm, resultPerm,
                                       logical.back(), emptyIsZero, nanIsZero);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&attention.getScore());
  RankedTensorType scoreType = tensorType(logical, f32);
  Value score = body->addArgument(scoreType, first.getLoc());
  for (auto [extra, operand] : llvm::zip_equal(extras, operands))
    regionValues[extra] = body->addArgument(operand.getType(), extra.getLoc());
  for (auto [factor, divides] : factors) {
    Value number = builder.clone(*factor.getDefiningOp())->getResult(0);
    score = divides ? Value(DivOp::create(builder, first.getLoc(), scoreType, score, number))
                    : Value(MulOp::create(builder, first.getLoc(), scoreType, score, number));
  }
  regionValues[first.getResult()] = score;
  Value computed = inRegion(scores, builder);
  YieldOp::create(builder, loc, computed);
  builder.setInsertionPoint(end);
  Value result = reshapeTo(builder, second.getLoc(), attention.getResult(), cast<RankedTensorType>(end->getResult(0).getType()));
  end->getResult(0).replaceAllUsesWith(result);
}

bool AttentionMatcher::run() {
  if (!isF32(second.getResult()) || !matchSoftmax())
    return false;
  logical = dimsOf(scores.getType());
  if (!dependsOnProduct(scores) || !first || !matchScores(scores, dimsOf(scores.getType())) || !areUsedHereOnly())
    return false;
  q = permuted(first.getA(), first.getAPerm());
  k = permuted(first.getB(), first.getBPerm());
  v = permuted(second.getB(), second.getBPerm());
  if (q.perm.size() < 2 || k.perm.size() < 2 || v.perm.size() < 2)
    return false;
  std::swap(k.perm[k.perm.size() - 1], k.perm[k.perm.size() - 2]);
  while (peel(q, true))
    ;
  // Vectors that lie side by side stay so.
  auto isUseful = [](const Permuted &side, unsigned choices) {
    int64_t last = side.perm.size() - 1;
    return side.perm[last] == last || (choices > 1 && side.perm[last - 1] == last);
  };
  for (auto [side, choices] : {std::pair(&k, 2u), std::pair(&v, 1u)})
    while (true) {
      Permuted before = *side;
      size_t count = factors.size();
      if (!peel(*side, side == &k))
        break;
      if (!isUseful(*side, choices)) {
        *side = before;
        factors.resize(count);
        break;
      }
    }
  builder.setInsertionPoint(second);
  if (!adjustBatch(q, first) || !adjustBatch(k, first) || !adjustBatch(v, second))
    return false;
  findEnd();
  builder.setInsertionPoint(end);
  groupQueries();
  if (!isReadable())
    return false;
  for (Permuted *side : {&k, &v})
    side->tensor = withCapacity(side->tensor, side->perm[side->perm.size() - 2], builder);
  build();
  return true;
}

class Recognize : public impl::RecognizeBase<Recognize> {
  void runOnOperation() override {
    SmallVector<MatMulOp> products;
    getOperation().walk([&](MatMulOp op) { products.push_back(op); });
    llvm::SetVector<Block *> changed;
    for (MatMulOp op : products)
      if (!op->use_empty() && AttentionMatcher(op).run())
        changed.insert(op->getBlock());
    for (Block *block : changed)
      eraseDead(*block);
  }

  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace dlc
