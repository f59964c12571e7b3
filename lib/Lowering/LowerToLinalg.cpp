// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/ShapeContext.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Support/CurrentWork.h"
#include "dlc/Target/BackendRegistry.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dlc {
#define GEN_PASS_DEF_LOWERTOLINALG
#include "dlc/Lowering/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// Whether a value is computed where it is read.
bool isInlined(Value v) { return v.getDefiningOp() && v.getDefiningOp()->hasAttr(kInlineAttr); }

/// Lowers one kernel's group.
class KernelLowering {
public:
  explicit KernelLowering(plan::KernelOp kernel)
      : kernel(kernel), group(cast<GroupOp>(kernel.getBody().front().front())), builder(kernel.getContext()), loc(kernel.getLoc()) {}

  LogicalResult run();
  ArrayRef<DimExpr> getScalars() const { return scalars; }
  ArrayRef<DimExpr> getDomain() const { return domain; }

private:
  Value dim(DimExpr e);
  SmallVector<OpFoldResult> sizesOf(RankedTensorType type);
  LogicalResult lowerRootFirst(ArrayRef<DlcOp> ops, ArrayRef<Value> results, MutableArrayRef<Value> destinations);
  LogicalResult lowerRows(ArrayRef<DlcOp> ops, ArrayRef<Value> results, ArrayRef<Value> destinations);
  FailureOr<Value> renamed(DlcOp view);
  LogicalResult lowerRoot(DlcOp op, Value destination);
  LogicalResult lowerElementwise(ArrayRef<DlcOp> ops, ArrayRef<Value> results, MutableArrayRef<Value> destinations);
  SmallVector<Value> aligned(OpBuilder &b, ValueRange at, ArrayRef<DimExpr> result, ArrayRef<DimExpr> operand);
  Value elementAt(OpBuilder &b, Value v, ValueRange at);
  void findDomain(ValueRange yielded, ArrayRef<DimExpr> resultDims);

  plan::KernelOp kernel;
  GroupOp group;
  OpBuilder builder;
  Location loc;
  Block *block = nullptr;
  DenseMap<Value, Value> tensors; // dlc value -> tensor without encoding
  SmallVector<DimExpr> scalars, domain;
  DenseMap<Attribute, Value> dims;
};

/// Index values of dims: constants, or scalars of the kernel, which a launch computes.
Value KernelLowering::dim(DimExpr e) {
  Value &known = dims[e];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(block);
  if (std::optional<int64_t> constant = e.getConstant()) {
    known = arith::ConstantIndexOp::create(builder, loc, *constant);
  } else {
    known = block->addArgument(builder.getIndexType(), loc);
    scalars.push_back(e);
  }
  return known;
}

/// The sizes of the memory of a tensor.
SmallVector<OpFoldResult> KernelLowering::sizesOf(RankedTensorType type) {
  SmallVector<OpFoldResult> sizes;
  for (DimExpr e : storageDims(type))
    sizes.push_back(e.getConstant() ? OpFoldResult(builder.getIndexAttr(*e.getConstant())) : OpFoldResult(dim(e)));
  return sizes;
}

LogicalResult KernelLowering::run() {
  Block &old = kernel.getBody().front();
  block = new Block;
  kernel.getBody().push_back(block);
  builder.setInsertionPointToStart(block);

  auto yield = cast<YieldOp>(group.getBody().front().getTerminator());
  SmallVector<RankedTensorType> types;
  for (BlockArgument argument : old.getArguments()) {
    types.push_back(cast<RankedTensorType>(argument.getType()));
    tensors[argument] = block->addArgument(storageType(types.back()), argument.getLoc());
  }
  SmallVector<Value> destinations;
  for (Value result : yield.getValues()) {
    types.push_back(cast<RankedTensorType>(result.getType()));
    destinations.push_back(block->addArgument(storageType(types.back()), result.getLoc()));
  }
  // The size of every dynamic dim is a scalar, whether the body asks for it or not.
  SmallVector<Attribute> scalarOfDims;
  for (RankedTensorType type : types) {
    SmallVector<int64_t> numbers;
    for (DimExpr e : storageDims(type)) {
      if (!e.getConstant())
        (void)dim(e);
      auto *found = llvm::find(scalars, e);
      numbers.push_back(found == scalars.end() ? -1 : found - scalars.begin());
    }
    scalarOfDims.push_back(builder.getDenseI64ArrayAttr(numbers));
  }
  kernel->setAttr(kDimsAttr, builder.getArrayAttr(scalarOfDims));

  SmallVector<DlcOp> ops;
  bool isRowWise = false;
  for (auto op : group.getBody().front().getOps<DlcOp>()) {
    if (isa<ConstantOp>(op) || op->hasAttr(kInlineAttr))
      continue;
    ops.push_back(op);
    isRowWise |= rowAxesOf(op) > 0;
  }
  SmallVector<Value> results(yield.getValues());
  if (failed(isRowWise ? lowerRows(ops, results, destinations) : lowerRootFirst(ops, results, destinations)))
    return failure();

  builder.setInsertionPointToEnd(block);
  SmallVector<Value> yielded;
  for (Value result : results)
    yielded.push_back(tensors[result]);
  if (isRowWise) {
    domain = dimsOf((*llvm::find_if(ops, [](DlcOp op) { return rowAxesOf(op) > 0; }))->getResult(0).getType());
  } else if (auto append = results.front().getDefiningOp<AppendOp>()) { // loops over what is written
    domain = storageDims(cast<RankedTensorType>(append.getX().getType()));
  } else {
    findDomain(yielded, storageDims(cast<RankedTensorType>(results.front().getType())));
  }
  plan::YieldOp::create(builder, loc, yielded);
  old.erase();
  kernel.setScalarCount(scalars.size());

  int64_t anchor = 0, position = 0;
  for (Operation &op : *block) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && linalgOp.getNumReductionLoops() > 0)
      anchor = position;
    position += linalgOp || isa<DlcKernelOp>(op);
  }
  kernel.setKindAttr(plan::KindAttr::get(kernel.getContext(), kernel.getKind().getKind(), anchor));
  return success();
}

/// One op that is not element-wise, if there is one, and then element-wise ops over its result's dims.
LogicalResult KernelLowering::lowerRootFirst(ArrayRef<DlcOp> ops, ArrayRef<Value> results,
                                             MutableArrayRef<Value> destinations) {
  DlcOp root;
  SmallVector<DlcOp> elementwise;
  for (DlcOp op : ops) {
    if (op.form() == Form::Scalar)
      elementwise.push_back(op);
    else if (elementwise.empty() && !root && op.isRemap() && llvm::any_of(op->getOperands(), isInlined))
      elementwise.push_back(op); // it reads what is computed where it is read
    else if (root || !elementwise.empty())
      return op.emitError() << "a group that is not row-wise holds one op that is not element-wise, in front";
    else
      root = op;
  }
  if (root) {
    // A root that nobody outside sees may use a destination of its type as its memory; the epilogue then works in place.
    Value rootResult = root->getResult(0);
    Type rootStorage = storageType(cast<RankedTensorType>(rootResult.getType()));
    auto *own = llvm::find(results, rootResult);
    Value destination;
    unsigned inPlace = own - results.begin();
    if (own == results.end()) {
      auto *sameType = llvm::find_if(destinations, [&](Value d) { return d.getType() == rootStorage; });
      inPlace = sameType - destinations.begin();
    }
    if (inPlace < destinations.size())
      destination = destinations[inPlace];
    if (failed(lowerRoot(root, destination)))
      return failure();
    if (destination)
      destinations[inPlace] = tensors[rootResult];
  }
  return elementwise.empty() ? success() : lowerElementwise(elementwise, results, destinations);
}

/// Each op by itself, with tensors between them: the backend decides which of these are ever in memory.
LogicalResult KernelLowering::lowerRows(ArrayRef<DlcOp> ops, ArrayRef<Value> results, ArrayRef<Value> destinations) {
  for (DlcOp op : ops) {
    if (op.form() == Form::View) {
      FailureOr<Value> value = renamed(op);
      if (failed(value))
        return failure();
      tensors[op->getResult(0)] = *value;
      continue;
    }
    auto *yielded = llvm::find(results, op->getResult(0));
    Value destination = yielded == results.end() ? Value() : destinations[yielded - results.begin()];
    if (op.form() != Form::Scalar) {
      if (rowAxesOf(op) == 0)
        return op.emitError() << "a row-wise group holds reductions and element-wise ops only";
      if (failed(lowerRoot(op, destination)))
        return failure();
      continue;
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (!destination)
      destination = tensor::EmptyOp::create(builder, loc, sizesOf(type), storageType(type).getElementType());
    if (failed(lowerElementwise(op, op->getResult(0), destination)))
      return failure();
  }
  return success();
}

/// A value of the group under dims that differ from its own by dims of 1 at the end.
FailureOr<Value> KernelLowering::renamed(DlcOp view) {
  Value x = tensors.lookup(view->getOperand(0));
  RankedTensorType from = cast<RankedTensorType>(x.getType()),
                   to = storageType(cast<RankedTensorType>(view->getResult(0).getType()));
  int64_t kept = std::min(from.getRank(), to.getRank());
  auto rest = [&](RankedTensorType type) { return type.getShape().drop_front(kept); };
  if (from.getShape().take_front(kept) != to.getShape().take_front(kept) ||
      !llvm::all_of(rest(from), [](int64_t n) { return n == 1; }) ||
      !llvm::all_of(rest(to), [](int64_t n) { return n == 1; }))
    return view.emitError() << "a view in a group adds or drops dims of 1 at the end", failure();
  if (from == to)
    return x;
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < kept; ++d)
    groups.push_back({d});
  if (kept > 0)
    for (int64_t d = kept; d < std::max(from.getRank(), to.getRank()); ++d)
      groups.back().push_back(d);
  if (from.getRank() > to.getRank())
    return Value(tensor::CollapseShapeOp::create(builder, loc, to, x, groups));
  return Value(tensor::ExpandShapeOp::create(builder, loc, to, x, groups,
                                             sizesOf(cast<RankedTensorType>(view->getResult(0).getType()))));
}

LogicalResult KernelLowering::lowerRoot(DlcOp op, Value destination) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(tensors.lookup(operand));
  auto dimValue = [&](DimExpr e) { return dim(e); };
  LowerContext context(builder, op, operands, dimValue, destination);
  FailureOr<SmallVector<Value>> lowered = op.lower(context);
  if (failed(lowered))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *lowered))
    tensors[result] = value;
  return success();
}

/// Indices of an operand's element for those of the result's: dims are aligned at their ends, and one of 1 has but index 0.
SmallVector<Value> KernelLowering::aligned(OpBuilder &b, ValueRange at, ArrayRef<DimExpr> result, ArrayRef<DimExpr> operand) {
  SmallVector<Value> indices;
  for (auto [i, e] : llvm::enumerate(operand)) {
    int64_t own = result.size() - operand.size() + i;
    Value index = at[own];
    if (e != result[own]) {
      Value zero = arith::ConstantIndexOp::create(b, loc, 0);
      if (e.isConstant(1)) {
        index = zero;
      } else {
        Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, dim(e), arith::ConstantIndexOp::create(b, loc, 1));
        index = arith::SelectOp::create(b, loc, isOne, zero, index);
      }
    }
    indices.push_back(index);
  }
  return indices;
}

/// The element of a value at any indices, as memory would hold it: read, or computed by the inlined ops that define it.
Value KernelLowering::elementAt(OpBuilder &b, Value v, ValueRange at) {
  auto op = dyn_cast_or_null<DlcOp>(v.getDefiningOp());
  bool isComputed = op && (isInlined(v) || (op.isRemap() && op->getParentOp() == group && !tensors.contains(v)));
  if (!isComputed)
    return tensor::ExtractOp::create(b, loc, tensors.lookup(v), at);
  if (op.isRemap())
    return op.element(
        b, at, [&](OpBuilder &inner, unsigned operand, ValueRange from) { return elementAt(inner, op->getOperand(operand), from); },
        [&](DimExpr e) { return dim(e); });
  ScalarBuilder scalars(b, op.getLoc());
  SmallVector<DimExpr> dims = dimsOf(v.getType());
  SmallVector<Scalar> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (auto number = operand.get().getDefiningOp<ConstantOp>())
      operands.push_back(scalars.constant(cast<DenseElementsAttr>(number.getValue())));
    else if (op.readsData(operand.getOperandNumber()))
      operands.push_back(scalars.load(elementAt(b, operand.get(), aligned(b, at, dims, dimsOf(type))), type.getElementType()));
    else
      operands.push_back({});
  }
  return scalars.store(op.scalar(scalars, operands));
}

/// All ops in one loop nest over the domain. Operands come through indexing maps; one that may or may not be broadcast, which is
/// decided at run time, is read at a computed index.
LogicalResult KernelLowering::lowerElementwise(ArrayRef<DlcOp> ops, ArrayRef<Value> results, MutableArrayRef<Value> destinations) {
  MLIRContext *context = kernel.getContext();
  SmallVector<DimExpr> loops = dimsOf(ops.front()->getResult(0).getType());
  bool hasInlined = llvm::any_of(ops, [](DlcOp op) { return op.isRemap() || llvm::any_of(op->getOperands(), isInlined); });
  int64_t rank = loops.size();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);

  llvm::SmallPtrSet<Operation *, 16> members;
  for (DlcOp op : ops)
    members.insert(op);
  SmallVector<Value> computed, outs; // the results that these ops make, and where
  DenseMap<Value, unsigned> outOfRoot;
  for (auto [result, destination] : llvm::zip_equal(results, destinations)) {
    if (!members.contains(result.getDefiningOp()))
      continue;
    for (auto [value, tensor] : tensors)
      if (tensor == destination) // the root's memory: read through the destination's own argument
        outOfRoot[value] = outs.size();
    computed.push_back(result);
    outs.push_back(destination);
  }

  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  DenseMap<Value, unsigned> inOf;
  SmallVector<Value> indexed; // read at computed indices
  for (DlcOp op : ops)
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (members.contains(v.getDefiningOp()) || isInlined(v) || op.isRemap() || v.getDefiningOp<ConstantOp>() || !op.readsData(operand.getOperandNumber()) || inOf.contains(v) || outOfRoot.contains(v) ||
          llvm::is_contained(indexed, v))
        continue;
      SmallVector<DimExpr> own = dimsOf(v.getType());
      SmallVector<AffineExpr> exprs;
      bool isPlain = true;
      for (auto [i, e] : llvm::enumerate(own)) {
        int64_t loop = rank - own.size() + i;
        isPlain &= e == loops[loop] || e.isConstant(1);
        exprs.push_back(e == loops[loop] ? builder.getAffineDimExpr(loop) : builder.getAffineConstantExpr(0));
      }
      if (!isPlain) {
        indexed.push_back(v);
        continue;
      }
      inOf[v] = ins.size();
      ins.push_back(tensors.lookup(v));
      maps.push_back(AffineMap::get(rank, 0, exprs, context));
    }
  maps.append(outs.size(), identity);

  // Sizes that the body compares are made outside of it.
  for (Value v : indexed)
    for (DimExpr e : dimsOf(v.getType()))
      (void)dim(e);

  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(builder, loc, TypeRange(ValueRange(outs)), ins, outs, maps, iterators, [&](OpBuilder &b, Location, ValueRange args) {
    DenseMap<Value, Scalar> scalarOf;
    ScalarBuilder scalarBuilder(b, loc);
    auto load = [&](Value v, Value element) {
      scalarOf[v] = scalarBuilder.load(element, cast<RankedTensorType>(v.getType()).getElementType());
    };
    for (auto [v, number] : inOf)
      load(v, args[number]);
    for (auto [v, number] : outOfRoot)
      load(v, args[ins.size() + number]);
    for (Value v : indexed) {
      SmallVector<DimExpr> own = dimsOf(v.getType());
      SmallVector<Value> at;
      for (auto [i, e] : llvm::enumerate(own)) {
        int64_t loop = rank - own.size() + i;
        Value zero = arith::ConstantIndexOp::create(b, loc, 0);
        Value index = linalg::IndexOp::create(b, loc, loop);
        if (e != loops[loop]) {
          Value one = arith::ConstantIndexOp::create(b, loc, 1);
          Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, dim(e), one);
          index = e.isConstant(1) ? zero : Value(arith::SelectOp::create(b, loc, isOne, zero, index));
        }
        at.push_back(index);
      }
      load(v, tensor::ExtractOp::create(b, loc, tensors.lookup(v), at));
    }
    SmallVector<Value> here;
    for (int64_t loop = 0; loop < rank; ++loop)
      here.push_back(hasInlined ? Value(linalg::IndexOp::create(b, loc, loop)) : Value());
    for (DlcOp op : ops) {
      SmallVector<Scalar> operands;
      ScalarBuilder own(b, op.getLoc());
      if (op.isRemap()) {
        scalarOf[op->getResult(0)] = own.load(elementAt(b, op->getResult(0), here), cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
        continue;
      }
      for (OpOperand &operand : op->getOpOperands()) {
        auto number = operand.get().getDefiningOp<ConstantOp>();
        if (isInlined(operand.get())) {
          auto type = cast<RankedTensorType>(operand.get().getType());
          operands.push_back(own.load(elementAt(b, operand.get(), aligned(b, here, loops, dimsOf(type))), type.getElementType()));
          continue;
        }
        operands.push_back(number ? own.constant(cast<DenseElementsAttr>(number.getValue())) : scalarOf.lookup(operand.get()));
      }
      scalarOf[op->getResult(0)] = op.scalar(own, operands);
    }
    SmallVector<Value> stored;
    for (Value result : computed)
      stored.push_back(scalarBuilder.store(scalarOf.lookup(result)));
    linalg::YieldOp::create(b, loc, stored);
  });
  for (auto [result, value] : llvm::zip_equal(computed, generic.getResults()))
    tensors[result] = value;
  return success();
}

/// The parallel loops of what yields the first result, as dims.
void KernelLowering::findDomain(ValueRange yielded, ArrayRef<DimExpr> resultDims) {
  Operation *last = yielded.front().getDefiningOp();
  if (auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(last)) {
    AffineMap map = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(cast<OpResult>(yielded.front()).getResultNumber()));
    for (auto [loop, kind] : llvm::enumerate(linalgOp.getIteratorTypesArray())) {
      if (kind != utils::IteratorType::parallel)
        continue;
      for (auto [i, e] : llvm::enumerate(map.getResults()))
        if (e == builder.getAffineDimExpr(loop))
          domain.push_back(resultDims[i]);
    }
  } else if (auto tiled = dyn_cast_or_null<TilingInterface>(last)) { // kernel ops loop over the dims of their result
    for (auto [loop, kind] : llvm::enumerate(tiled.getLoopIteratorTypes()))
      if (kind == utils::IteratorType::parallel)
        domain.push_back(resultDims[loop]);
  }
}

class LowerToLinalg : public impl::LowerToLinalgBase<LowerToLinalg> {
  void runOnOperation() override {
    llvm::StringMap<std::pair<SmallVector<DimExpr>, SmallVector<DimExpr>>> launches;
    for (auto kernel : getOperation().getOps<plan::KernelOp>()) {
      if (!kernel.isGroup())
        continue;
      CurrentWork work("lower-to-linalg", kernel.getLoc());
      KernelLowering lowering(kernel);
      if (failed(lowering.run()))
        return signalPassFailure();
      launches[kernel.getSymName()] = {SmallVector<DimExpr>(lowering.getScalars()), SmallVector<DimExpr>(lowering.getDomain())};
    }
    getOperation().walk([&](plan::LaunchOp launch) {
      auto found = launches.find(launch.getKernel());
      if (found == launches.end())
        return;
      auto array = [&](ArrayRef<DimExpr> exprs) {
        return ArrayAttr::get(&getContext(), SmallVector<Attribute>(exprs.begin(), exprs.end()));
      };
      launch.setScalarsAttr(array(found->second.first));
      launch.setDomainAttr(array(found->second.second));
    });
    mergeEqualKernels();
  }

  /// Kernels that differ in nothing but their name and locations are one.
  void mergeEqualKernels() {
    llvm::StringMap<plan::KernelOp> byText;
    llvm::StringMap<StringAttr> renamed;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<plan::KernelOp>())) {
      StringAttr name = kernel.getSymNameAttr();
      std::string text;
      llvm::raw_string_ostream os(text);
      kernel.setSymName("k");
      kernel.print(os, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs(1 << 30));
      kernel.setSymNameAttr(name);
      auto [first, isNew] = byText.try_emplace(text, kernel);
      if (isNew)
        continue;
      renamed[name.getValue()] = first->second.getSymNameAttr();
      kernel.erase();
    }
    getOperation().walk([&](plan::LaunchOp launch) {
      auto found = renamed.find(launch.getKernel());
      if (found != renamed.end())
        launch.setKernelAttr(FlatSymbolRefAttr::get(found->second));
    });
  }
};

} // namespace
} // namespace dlc
