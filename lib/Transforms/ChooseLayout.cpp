// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// choose-layout: convolutions and windows work with channels last, and so does what lies between them.
//
// A value may have a double: the same elements with its axes in another order. One walk makes them. An op that prefers an order asks for the doubles
// of its operands in that order, and its result is a double. An op that does not care takes the order of its operands along; moving, parting and
// joining axes only changes what a double's order is. Others get the value itself, and only then are elements moved.
//
// Convolutions of 3 x 3 cells take Winograd's algorithm where it has less to do: filters grow with it, so they have to be used often.

#include "dlc/IR/Contraction.h"
#include "dlc/IR/Conv.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Pool.h"
#include "dlc/IR/Reduction.h"
#include "dlc/IR/Resize.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace dlc {
#define GEN_PASS_DEF_CHOOSELAYOUT
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

using Order = SmallVector<int64_t>;

bool isOne(DimExpr e) { return e.isConstant(1); }
bool isIdentity(ArrayRef<int64_t> order) { return llvm::equal(order, llvm::seq<int64_t>(0, order.size())); }

/// Whether the value depends on constants only, through a few ops.
bool isConstant(Value v, unsigned depth = 0) {
  Operation *op = v.getDefiningOp();
  if (!op || depth > 8)
    return false;
  return isa<ConstantOp>(op) || (isa<DlcOp>(op) && op->getNumOperands() && llvm::all_of(op->getOperands(), [&](Value o) { return isConstant(o, depth + 1); }));
}

class LayoutChooser {
public:
  LayoutChooser(Block &block, bool winograd) : block(block), b(block.getParentOp()->getContext()), winograd(winograd) {}
  void run();

private:
  /// Axis i of `value` is axis order[i] of what it is a double of.
  struct Double {
    Value value;
    Order order;
  };

  bool rewrite(Operation *op);
  bool rewrite(ConvOp op);
  bool rewrite(PoolOp op);
  bool rewrite(TransposeOp op);
  bool rewrite(ReshapeOp op);
  bool rewrite(ConcatOp op);
  bool rewrite(SliceOp op);
  bool rewrite(PadOp op);
  bool rewrite(ResampleOp op);
  template <typename OpTy> bool rewriteReduction(OpTy op);
  bool rewriteScalar(DlcOp op);
  void foldScale(ConvOp op);
  int64_t winogradTile(ConvOp op);
  Value winogradFilters(ConvOp op, int64_t tile);

  static bool isMovable(Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    return type && !layoutOf(type);
  }
  RankedTensorType permuted(Type type, ArrayRef<int64_t> order) {
    SmallVector<DimExpr> dims = dimsOf(type);
    return tensorType(applyPermutation(dims, order), cast<RankedTensorType>(type).getElementType());
  }
  Value transpose(Value v, ArrayRef<int64_t> order);
  Value inOrder(Value v, ArrayRef<int64_t> order);
  void setDouble(Value of, Value value, Order order);
  Value plain(Value v);
  ArrayAttr inOrder(ArrayAttr list, ArrayRef<int64_t> order);
  Value axesInOrder(Value given, int64_t count, ArrayRef<int64_t> order);
  static Order channelsLast(int64_t rank) {
    Order order{0};
    llvm::append_range(order, llvm::seq<int64_t>(2, rank));
    order.push_back(1);
    return order;
  }
  static int64_t positionOf(ArrayRef<int64_t> order, int64_t axis) { return llvm::find(order, axis) - order.begin(); }

  Block &block;
  OpBuilder b;
  bool winograd;
  Location loc = UnknownLoc::get(b.getContext());
  DenseMap<Value, Double> doubles;
  DenseMap<Value, Value> plains; // of doubles, once elements are moved
  bool hasWindows = false;
};

/// Moves axes; a reshape where those that move have size 1.
Value LayoutChooser::transpose(Value v, ArrayRef<int64_t> order) {
  if (isIdentity(order))
    return v;
  SmallVector<DimExpr> dims = dimsOf(v.getType());
  RankedTensorType type = permuted(v.getType(), order);
  int64_t last = -1;
  bool staysInPlace = llvm::all_of(order, [&](int64_t axis) { return isOne(dims[axis]) || std::exchange(last, axis) < axis; });
  if (staysInPlace)
    return reshapeTo(b, loc, v, type);
  if (auto inner = v.getDefiningOp<TransposeOp>(); inner && inner.getPerm())
    return transpose(inner.getX(), applyPermutation(*inner.getPerm(), order));
  return TransposeOp::create(b, loc, type, v, b.getDenseI64ArrayAttr(order));
}

/// The elements of a value with its axes in an order.
Value LayoutChooser::inOrder(Value v, ArrayRef<int64_t> order) {
  auto found = doubles.find(v);
  if (found == doubles.end())
    return transpose(v, order);
  SmallVector<int64_t> from;
  for (int64_t axis : order)
    from.push_back(positionOf(found->second.order, axis));
  return transpose(found->second.value, from);
}

void LayoutChooser::setDouble(Value of, Value value, Order order) {
  if (isIdentity(order))
    of.replaceAllUsesWith(value);
  else
    doubles[of] = {value, std::move(order)};
}

/// The value itself. What it is a double of goes.
Value LayoutChooser::plain(Value v) {
  auto found = doubles.find(v);
  if (found == doubles.end())
    return v;
  Value &known = plains[v];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(found->second.value);
    known = transpose(found->second.value, invertPermutationVector(found->second.order));
  }
  return known;
}

/// Numbers that a convolution's channels are multiplied by, and that are added, go into its filters and one sum.
void LayoutChooser::foldScale(ConvOp op) {
  if (op.getChannelsLast() || op.getBias() || !isConstant(op.getW()))
    return;
  auto type = cast<RankedTensorType>(op.getResult().getType());
  unsigned rank = type.getRank();
  auto ofChannels = [&](Value v) {
    SmallVector<DimExpr> dims = dimsOf(v.getType());
    if (v.getType() == type || dims.size() > rank || !isConstant(v) || cast<RankedTensorType>(v.getType()).getElementType() != type.getElementType())
      return false;
    for (auto [i, e] : llvm::enumerate(llvm::reverse(dims)))
      if (!isOne(e) && i != rank - 2)
        return false;
    return true;
  };
  Value scale, sum, last = op.getResult();
  Operation *end = nullptr; // the last op that is taken in
  unsigned behind = 0;
  SmallVector<std::pair<Operation *, Value>> chain;
  while (last.hasOneUse()) {
    Operation *user = *last.user_begin();
    if (!isa<AddOp, SubOp, MulOp, DivOp>(user) || user->getBlock() != &block || user->getResult(0).getType() != type)
      break;
    bool isFirst = user->getOperand(0) == last;
    Value other = user->getOperand(isFirst ? 1 : 0);
    if (!ofChannels(other) || (!isFirst && isa<SubOp, DivOp>(user)))
      break;
    chain.push_back({user, other});
    if (isa<MulOp, DivOp>(user))
      behind = chain.size();
    last = user->getResult(0);
  }
  if (!behind)
    return;
  if (chain.size() > behind && isa<AddOp, SubOp>(chain[behind].first))
    ++behind;
  end = chain[behind - 1].first;
  b.setInsertionPoint(end);
  loc = op.getLoc();
  SmallVector<DimExpr> one(rank, constantDim(b.getContext(), 1)), all(one);
  all[1] = dimsOf(type)[1];
  RankedTensorType channels = tensorType(all, type.getElementType());
  for (auto [user, other] : ArrayRef(chain).take_front(behind)) {
    RankedTensorType own = tensorType(SmallVector<DimExpr>(rank - dimsOf(other.getType()).size(), one[0]), type.getElementType());
    SmallVector<DimExpr> dims = dimsOf(own);
    llvm::append_range(dims, dimsOf(other.getType()));
    Value number = reshapeTo(b, loc, other, tensorType(dims, type.getElementType()));
    auto both = [&](Value x) { return x ? x.getType() == channels || number.getType() == channels ? channels : x.getType() : number.getType(); };
    if (isa<AddOp>(user))
      sum = sum ? Value(AddOp::create(b, loc, both(sum), sum, number)) : number;
    else if (isa<SubOp>(user))
      sum = sum ? Value(SubOp::create(b, loc, both(sum), sum, number)) : Value(NegOp::create(b, loc, number.getType(), number));
    else if (isa<MulOp>(user)) {
      scale = scale ? Value(MulOp::create(b, loc, both(scale), scale, number)) : number;
      sum = sum ? Value(MulOp::create(b, loc, both(sum), sum, number)) : Value();
    } else {
      Value inverse = ReciprocalOp::create(b, loc, number.getType(), number);
      scale = scale ? Value(MulOp::create(b, loc, both(scale), scale, inverse)) : inverse;
      sum = sum ? Value(MulOp::create(b, loc, both(sum), sum, inverse)) : Value();
    }
  }
  if (scale.getType() == channels) {
    SmallVector<DimExpr> ofFilters(rank, one[0]);
    ofFilters[0] = all[1];
    scale = reshapeTo(b, loc, scale, tensorType(ofFilters, type.getElementType()));
  }
  Value w = MulOp::create(b, loc, op.getW().getType(), op.getW(), scale);
  auto conv = cast<ConvOp>(b.clone(*op));
  conv.getWMutable().assign(w);
  Value result = conv.getResult();
  if (sum) {
    loc = b.getFusedLoc({op.getLoc(), end->getLoc()});
    result = AddOp::create(b, loc, type, result, sum);
  }
  end->getResult(0).replaceAllUsesWith(result);
  for (auto [user, other] : llvm::reverse(ArrayRef(chain).take_front(behind)))
    user->erase();
}

/// Results of a tile of Winograd's algorithm along each axis, where that is the better way; else 0.
int64_t LayoutChooser::winogradTile(ConvOp op) {
  constexpr int64_t kNarrow = 16, kFew = 14 * 14, kMany = 24 * 24;
  auto type = cast<RankedTensorType>(op.getW().getType());
  auto isOnes = [](ArrayRef<int64_t> list) { return llvm::all_of(list, [](int64_t n) { return n == 1; }); };
  if (!winograd || type.getRank() != 4 || type.getDimSize(2) != 3 || type.getDimSize(3) != 3 || op.getGroup() != 1 || !isOnes(op.getStrides()) ||
      !isOnes(op.getDilations()) || !type.getElementType().isF32() || type.getDimSize(0) < kNarrow || type.getDimSize(1) < kNarrow || !isConstant(op.getW()))
    return 0;
  int64_t results = 1;
  for (DimExpr size : ArrayRef(dimsOf(op.getResult().getType())).drop_front(2))
    results *= std::min(size.getConstant().value_or(kMany), kMany);
  return results >= kMany ? 4 : results >= kFew ? 2 : 0;
}

/// [cells, channels, filters]: both axes of a filter transformed at once, which is a product with all pairs of numbers. In f64, rounded once.
Value LayoutChooser::winogradFilters(ConvOp op, int64_t tile) {
  auto type = cast<RankedTensorType>(op.getW().getType());
  int64_t filters = type.getDimSize(0), channels = type.getDimSize(1), cells = (tile + 2) * (tile + 2);
  auto typeOf = [&](ArrayRef<int64_t> shape, bool isWide = true) {
    return RankedTensorType::get(shape, isWide ? Type(b.getF64Type()) : type.getElementType());
  };
  WinogradMatrices::Matrix one = winogradMatrices(tile).filter;
  SmallVector<double> both;
  for (const auto &y : one)
    for (const auto &x : one)
      for (double p : y)
        for (double q : x)
          both.push_back(p * q);
  Value matrix = ConstantOp::create(b, loc, cast<TypedAttr>(DenseElementsAttr::get(typeOf({cells, 9}), ArrayRef(both))));
  Value w = CastOp::create(b, loc, typeOf({9, channels, filters}), transpose(reshapeTo(b, loc, op.getW(), typeOf({filters, channels, 9}, false)), {2, 1, 0}), b.getF64Type());
  w = MatMulOp::create(b, loc, typeOf({cells, channels * filters}), matrix, reshapeTo(b, loc, w, typeOf({9, channels * filters})));
  return CastOp::create(b, loc, typeOf({cells, channels, filters}, false), reshapeTo(b, loc, w, typeOf({cells, channels, filters})), type.getElementType());
}

bool LayoutChooser::rewrite(ConvOp op) {
  auto wType = cast<RankedTensorType>(op.getW().getType());
  int64_t rank = wType.getRank(), axes = rank - 2;
  Type element = wType.getElementType();
  if (op.getChannelsLast() || op.getBias() || !op.getResolvedPads() || ShapedType::isDynamicShape(wType.getShape()) || !isa<FloatType>(element))
    return false;
  int64_t group = op.getGroup(), filters = wType.getDimSize(0), channels = wType.getDimSize(1);
  Order order = channelsLast(rank);
  Value x = inOrder(op.getX(), order);
  RankedTensorType type = permuted(op.getResult().getType(), order);
  SmallVector<int64_t> kernel(wType.getShape().drop_front(2));
  auto reshaped = [&](Value v, ArrayRef<int64_t> shape) { return reshapeTo(b, loc, v, RankedTensorType::get(shape, element)); };
  bool isPoint = group == 1 && llvm::all_of(kernel, [](int64_t k) { return k == 1; }) && dimsOf(x.getType()).size() == dimsOf(type).size() &&
                 ArrayRef(dimsOf(x.getType())).drop_back() == ArrayRef(dimsOf(type)).drop_back() &&
                 llvm::all_of(op.getResolvedPads()->getAsRange<DimExpr>(), [](DimExpr e) { return e.isConstant(0); }) &&
                 llvm::all_of(op.getStrides(), [](int64_t s) { return s == 1; });
  Value result;
  if (isPoint) {
    Value w = transpose(reshaped(op.getW(), {filters, channels}), {1, 0});
    result = MatMulOp::create(b, loc, type, x, w);
  } else if (group > 1 && channels == 1) {
    if (int64_t copies = filters / group; copies > 1) {
      // Several filters for each channel: as many copies of it, side by side.
      SmallVector<DimExpr> dims = dimsOf(x.getType()), alone(dims), side(dims), all(dims);
      alone.push_back(constantDim(b.getContext(), 1));
      side.push_back(constantDim(b.getContext(), copies));
      all.back() = constantDim(b.getContext(), filters);
      SmallVector<Value> parts(copies, reshapeTo(b, loc, x, tensorType(alone, element)));
      x = reshapeTo(b, loc, ConcatOp::create(b, loc, tensorType(side, element), parts, /*axis=*/rank), tensorType(all, element));
    }
    SmallVector<int64_t> shape{filters};
    llvm::append_range(shape, kernel);
    Order last = llvm::to_vector(llvm::seq<int64_t>(1, axes + 1));
    last.push_back(0);
    Value w = transpose(reshaped(op.getW(), shape), last);
    result = DepthwiseConvOp::create(b, loc, type, x, w, op.getStrides(), op.getDilations(), op.getPads(), op.getAutoPad(), op.getResolvedPadsAttr());
  } else if (int64_t tile = winogradTile(op)) {
    result = WinogradConvOp::create(b, loc, type, x, winogradFilters(op, tile), tile, op.getPads(), op.getAutoPad(), op.getResolvedPadsAttr());
  } else {
    SmallVector<int64_t> shape{group, filters / group, channels};
    llvm::append_range(shape, kernel);
    Order last{0};
    llvm::append_range(last, llvm::seq<int64_t>(3, axes + 3));
    last.append({2, 1});
    Value w = transpose(reshaped(op.getW(), shape), last);
    result = ConvOp::create(b, loc, type, x, w, Value(), op.getStrides(), op.getDilations(), op.getPads(), op.getAutoPad(), group,
                            /*channelsLast=*/true, op.getResolvedPadsAttr());
  }
  setDouble(op.getResult(), result, order);
  return true;
}

bool LayoutChooser::rewrite(PoolOp op) {
  if (op.getChannelsLast() || !op.getResolvedPads() || !isMovable(op.getX()))
    return false;
  Order order = channelsLast(dimsOf(op.getX().getType()).size());
  Value x = inOrder(op.getX(), order);
  auto pool = cast<PoolOp>(b.clone(*op));
  pool.getXMutable().assign(x);
  pool.setChannelsLast(true);
  pool.getResult().setType(permuted(op.getResult().getType(), order));
  setDouble(op.getResult(), pool.getResult(), order);
  return true;
}

bool LayoutChooser::rewrite(TransposeOp op) {
  auto found = doubles.find(op.getX());
  if (!op.getPerm())
    return false;
  if (found == doubles.end()) {
    // Channels that the model itself had last.
    Order order = channelsLast(op.getPerm()->size());
    if (order.size() < 4 || invertPermutationVector(*op.getPerm()) != order)
      return false;
    setDouble(op.getResult(), op.getX(), order);
    return true;
  }
  // Axis a of x is axis positionOf(perm, a) of the result.
  Order order;
  for (int64_t axis : found->second.order)
    order.push_back(positionOf(*op.getPerm(), axis));
  setDouble(op.getResult(), found->second.value, order);
  return true;
}

/// Axes that are parted or joined among themselves, while the others stay: the double's are too, once those to be joined are side by side.
bool LayoutChooser::rewrite(ReshapeOp op) {
  auto found = doubles.find(op.getX());
  if (found == doubles.end())
    return false;
  Double own = found->second;
  SmallVector<DimExpr> from = dimsOf(op.getX().getType()), to = dimsOf(op.getResult().getType());
  auto isSmaller = [](DimExpr a, DimExpr b) {
    if (a.getConstant() && b.getConstant())
      return *a.getConstant() < *b.getConstant();
    DimExpr quotient = floorDivDims(b, a);
    return quotient && mulDims(quotient, a) == b;
  };
  // Runs of axes of both sides that hold the same number of elements.
  struct Run {
    SmallVector<int64_t> from, to;
  };
  SmallVector<Run> runs;
  size_t i = 0, j = 0;
  MLIRContext *context = b.getContext();
  while (i < from.size() || j < to.size()) {
    Run run;
    DimExpr left = constantDim(context, 1), right = left;
    do {
      // The side that is a factor of the other one, or smaller, goes on.
      bool takesLeft = run.from.empty() || (!run.to.empty() && isSmaller(left, right));
      if (takesLeft && i < from.size()) {
        left = mulDims(left, from[i]);
        run.from.push_back(i++);
      } else if (!takesLeft && j < to.size()) {
        right = mulDims(right, to[j]);
        run.to.push_back(j++);
      } else if (run.from.empty() && j < to.size() && isOne(to[j])) { // ones at the end
        run.to.push_back(j++);
      } else {
        return false;
      }
      if (!left || !right)
        return false;
    } while (run.to.empty() ? j < to.size() || !isOne(left) : left != right);
    runs.push_back(run);
  }
  // The runs in the order of the double's axes.
  llvm::sort(runs, [&](const Run &a, const Run &c) {
    auto place = [&](const Run &run) {
      int64_t first = run.from.empty() ? 0 : positionOf(own.order, run.from.front());
      for (int64_t axis : llvm::reverse(run.from))
        if (!isOne(from[axis]))
          first = positionOf(own.order, axis);
      return first;
    };
    return place(a) < place(c);
  });
  Order before, after;
  for (const Run &run : runs) {
    llvm::append_range(before, run.from);
    llvm::append_range(after, run.to);
  }
  if (before.size() != from.size() || after.size() != to.size())
    return false;
  Value x = inOrder(op.getX(), before);
  setDouble(op.getResult(), reshapeTo(b, loc, x, permuted(op.getResult().getType(), after)), after);
  return true;
}

bool LayoutChooser::rewrite(ConcatOp op) {
  Order order;
  for (Value x : op.getXs())
    if (auto found = doubles.find(x); found != doubles.end() && order.empty())
      order = found->second.order;
  if (order.empty() || op.getAxis() < 0)
    return false;
  SmallVector<Value> xs;
  for (Value x : op.getXs())
    xs.push_back(inOrder(x, order));
  setDouble(op.getResult(), ConcatOp::create(b, loc, permuted(op.getResult().getType(), order), xs, positionOf(order, op.getAxis())), order);
  return true;
}

/// Where axes stand in a double: those that a constant names, or without one the first `count`. Null where only a run knows them.
Value LayoutChooser::axesInOrder(Value given, int64_t count, ArrayRef<int64_t> order) {
  std::optional<SmallVector<int64_t>> axes = llvm::to_vector(llvm::seq<int64_t>(0, count));
  if (given) {
    auto constant = given.getDefiningOp<ConstantOp>();
    axes = constant ? constantIntegers(constant.getValue()) : std::nullopt;
    if (!axes)
      return {};
  }
  for (int64_t &axis : *axes)
    axis = positionOf(order, axis < 0 ? axis + order.size() : axis);
  return ConstantOp::create(b, loc, b.getI64TensorAttr(*axes));
}

/// A list with an entry for each axis.
ArrayAttr LayoutChooser::inOrder(ArrayAttr list, ArrayRef<int64_t> order) {
  return b.getArrayAttr(llvm::map_to_vector(order, [&](int64_t axis) { return list[axis]; }));
}

bool LayoutChooser::rewrite(SliceOp op) {
  auto found = doubles.find(op.getX());
  if (found == doubles.end() || !op.getResolvedStarts() || !op.getResolvedSteps())
    return false;
  Order order = found->second.order;
  Value axes = axesInOrder(op.getAxes(), dimsOf(op.getStarts().getType())[0].getConstant().value_or(0), order);
  if (!axes)
    return false;
  auto slice = SliceOp::create(b, loc, permuted(op.getResult().getType(), order), found->second.value, op.getStarts(), op.getEnds(), axes, op.getSteps());
  slice.setResolvedStartsAttr(inOrder(*op.getResolvedStarts(), order));
  slice.setResolvedStepsAttr(inOrder(*op.getResolvedSteps(), order));
  setDouble(op.getResult(), slice.getResult(), order);
  return true;
}

bool LayoutChooser::rewrite(PadOp op) {
  auto found = doubles.find(op.getX());
  if (found == doubles.end() || !op.getResolvedFront() || !op.getResolvedBehind())
    return false;
  Order order = found->second.order;
  Value axes = axesInOrder(op.getAxes(), order.size(), order);
  if (!axes)
    return false;
  Value pad = PadOp::create(b, loc, permuted(op.getResult().getType(), order), found->second.value, op.getPads(), op.getValue(), axes, op.getMode(),
                            inOrder(*op.getResolvedFront(), order), inOrder(*op.getResolvedBehind(), order));
  setDouble(op.getResult(), pad, order);
  return true;
}

bool LayoutChooser::rewrite(ResampleOp op) {
  auto found = doubles.find(op.getX());
  if (found == doubles.end())
    return false;
  Order order = found->second.order;
  auto resample = cast<ResampleOp>(b.clone(*op));
  resample.getXMutable().assign(found->second.value);
  resample.setAxis(positionOf(order, op.getAxis()));
  resample.getResult().setType(permuted(op.getResult().getType(), order));
  setDouble(op.getResult(), resample.getResult(), order);
  return true;
}

template <typename OpTy> bool LayoutChooser::rewriteReduction(OpTy op) {
  auto found = doubles.find(op.getX());
  if (found == doubles.end() || op.getAxesTensor() || op.getAllAxes())
    return false;
  Order order = found->second.order, kept;
  SmallVector<int64_t> axes, original;
  for (int64_t axis : op.getAxes())
    original.push_back(axis < 0 ? axis + order.size() : axis);
  for (int64_t axis : original)
    axes.push_back(positionOf(order, axis));
  llvm::sort(axes);
  auto reduction = cast<OpTy>(b.clone(*op));
  reduction.getXMutable().assign(found->second.value);
  reduction.setAxes(axes);
  if (op.getKeepdims()) {
    kept = order;
  } else {
    for (int64_t axis : order)
      if (!llvm::is_contained(original, axis))
        kept.push_back(axis - llvm::count_if(original, [&](int64_t gone) { return gone < axis; }));
  }
  reduction.getResult().setType(permuted(op.getResult().getType(), kept));
  setDouble(op.getResult(), reduction.getResult(), kept);
  return true;
}

/// Operands broadcast: their axes are aligned at the end, and those that are missing are of size 1.
bool LayoutChooser::rewriteScalar(DlcOp op) {
  if (op->getNumResults() != 1 || !isMovable(op->getResult(0)))
    return false;
  SmallVector<DimExpr> dims = dimsOf(op->getResult(0).getType());
  int64_t rank = dims.size();
  Order order;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.readsData(operand.getOperandNumber()) || !isMovable(operand.get()))
      return false;
    auto found = doubles.find(operand.get());
    // Dims that a run may find to be those of the result (two ways of rounding, say) are as good as the same.
    auto mayBeWhole = [&](ArrayRef<DimExpr> own) {
      return int64_t(own.size()) == rank && llvm::all_of(llvm::zip_equal(own, dims), [](auto pair) { return !isOne(std::get<0>(pair)) || isOne(std::get<1>(pair)); });
    };
    if (found != doubles.end() && order.empty() && mayBeWhole(dimsOf(operand.get().getType())))
      order = found->second.order;
  }
  if (order.empty())
    return false;
  SmallVector<Value> operands;
  for (Value v : op->getOperands()) {
    SmallVector<DimExpr> own = dimsOf(v.getType());
    if (llvm::all_of(own, isOne)) {
      operands.push_back(plain(v));
      continue;
    }
    if (int64_t(own.size()) == rank) {
      operands.push_back(inOrder(v, order));
      continue;
    }
    own.insert(own.begin(), rank - own.size(), constantDim(b.getContext(), 1));
    operands.push_back(transpose(reshapeTo(b, loc, plain(v), tensorType(own, cast<RankedTensorType>(v.getType()).getElementType())), order));
  }
  Operation *clone = b.clone(*op.getOperation());
  clone->setOperands(operands);
  clone->getResult(0).setType(permuted(op->getResult(0).getType(), order));
  setDouble(op->getResult(0), clone->getResult(0), order);
  return true;
}

bool LayoutChooser::rewrite(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return rewrite(conv);
  if (auto pool = dyn_cast<PoolOp>(op))
    return rewrite(pool);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return hasWindows && rewrite(transpose);
  if (doubles.empty() || !isa<DlcOp>(op))
    return false;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return rewrite(reshape);
  if (auto concat = dyn_cast<ConcatOp>(op))
    return rewrite(concat);
  if (auto slice = dyn_cast<SliceOp>(op))
    return rewrite(slice);
  if (auto pad = dyn_cast<PadOp>(op))
    return rewrite(pad);
  if (auto resample = dyn_cast<ResampleOp>(op))
    return rewrite(resample);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return rewriteReduction(reduce);
  if (auto mean = dyn_cast<MeanOp>(op))
    return rewriteReduction(mean);
  auto scalar = cast<DlcOp>(op);
  return scalar.form() == Form::Scalar && rewriteScalar(scalar);
}

void LayoutChooser::run() {
  for (auto conv : llvm::make_early_inc_range(block.getOps<ConvOp>()))
    foldScale(conv);
  SmallVector<Operation *> ops;
  for (Operation &op : block) {
    ops.push_back(&op);
    hasWindows |= isa<ConvOp, PoolOp, ResampleOp>(op);
  }
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    loc = op->getLoc();
    if (rewrite(op))
      continue;
    // What is inside of branches uses values too.
    op->walk([&](Operation *user) {
      for (OpOperand &operand : user->getOpOperands())
        if (doubles.contains(operand.get()))
          operand.set(plain(operand.get()));
    });
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

class ChooseLayout : public impl::ChooseLayoutBase<ChooseLayout> {
public:
  using ChooseLayoutBase::ChooseLayoutBase;

private:
  void runOnOperation() override {
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](IfOp op) {
      for (Region &region : op->getRegions())
        blocks.push_back(&region.front());
    });
    for (Block *block : blocks)
      LayoutChooser(*block, winograd).run();
  }
};

} // namespace
} // namespace dlc
