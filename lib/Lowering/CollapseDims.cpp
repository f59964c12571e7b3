// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Launches.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Lowering/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace dlc {
#define GEN_PASS_DEF_COLLAPSEDIMS
#include "dlc/Lowering/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// Which neighbours are one: bit i says that dim (or loop) i and dim i + 1 are.
using Joins = SmallVector<bool>;

/// One kernel's body. First every pair of neighbouring dims counts as joined; what an op cannot do with joined dims takes joins away
/// until nothing changes, which each time removes at least one.
class KernelCollapse {
public:
  KernelCollapse(plan::KernelOp kernel, ArrayRef<plan::LaunchOp> launches) : kernel(kernel), launches(launches) {}

  void run() {
    if (!collect())
      return;
    while (removeImpossible()) {
    }
    if (llvm::all_of(tensors, [](auto &entry) { return llvm::none_of(entry.second, [](bool joined) { return joined; }); }))
      return;
    rewrite();
  }

private:
  bool collect() {
    Block &body = kernel.getBody().front();
    for (BlockArgument argument : body.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
        tensors[argument] = Joins(std::max<int64_t>(type.getRank() - 1, 0), true);
    for (Operation &op : body.without_terminator()) {
      if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
        if (generic.getNumReductionLoops() == generic.getNumLoops() || !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
              return map.isProjectedPermutation(/*allowZeroInResults=*/true);
            }))
          return false;
        for (Operation &inner : generic.getBody()->without_terminator())
          if (isa<linalg::IndexOp>(inner) || inner.getNumRegions() || llvm::any_of(inner.getOperandTypes(), llvm::IsaPred<RankedTensorType>))
            return false;
        loops[generic] = Joins(generic.getNumLoops() - 1, true);
      } else if (!isa<linalg::FillOp>(op)) {
        if (llvm::any_of(op.getOperandTypes(), llvm::IsaPred<RankedTensorType>) || llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
          return false;
        continue;
      }
      for (Value result : op.getResults())
        tensors[result] = Joins(std::max<int64_t>(cast<RankedTensorType>(result.getType()).getRank() - 1, 0), true);
    }
    auto last = cast<plan::YieldOp>(body.getTerminator()).getValues().front().getDefiningOp<linalg::GenericOp>();
    return last && llvm::all_of(launches, [&](plan::LaunchOp launch) { return launch.getDomain().size() == last.getNumParallelLoops(); });
  }

  bool removeImpossible() {
    bool changed = false;
    auto remove = [&](Joins &joins, size_t i) {
      changed |= joins[i];
      joins[i] = false;
    };
    for (auto &[op, joins] : loops) {
      auto generic = cast<linalg::GenericOp>(op);
      auto kinds = generic.getIteratorTypesArray();
      for (unsigned l = 0; l < joins.size(); ++l)
        if (kinds[l] != utils::IteratorType::parallel || kinds[l + 1] != utils::IteratorType::parallel)
          remove(joins, l);
      for (OpOperand &operand : generic->getOpOperands()) {
        AffineMap map = generic.getMatchingIndexingMap(&operand);
        auto tensor = tensors.find(operand.get());
        if (!isa<RankedTensorType>(operand.get().getType()) || tensor == tensors.end())
          continue;
        Joins &dims = tensor->second;
        auto loopAt = [&](unsigned d) {
          auto e = dyn_cast<AffineDimExpr>(map.getResult(d));
          return e ? std::optional<unsigned>(e.getPosition()) : std::nullopt;
        };
        for (unsigned d = 0; d < dims.size(); ++d) { // two dims that run along joined loops, or that are both broadcast
          auto first = loopAt(d), second = loopAt(d + 1);
          if (first && second ? *second != *first + 1 || !joins[*first] : first || second)
            remove(dims, d);
        }
        for (unsigned l = 0; l < joins.size(); ++l) {
          auto position = map.getResultPosition(getAffineDimExpr(l, map.getContext())), next = map.getResultPosition(getAffineDimExpr(l + 1, map.getContext()));
          if (position && next ? *next != *position + 1 || !dims[*position] : position || next)
            remove(joins, l);
        }
      }
      // A result and its init are the same memory.
      for (auto [result, init] : llvm::zip(generic.getResults(), generic.getDpsInits()))
        agree(tensors[result], tensors[init], changed);
    }
    for (auto fill : kernel.getBody().front().getOps<linalg::FillOp>())
      agree(tensors[fill.getResult(0)], tensors[fill.getOutputs()[0]], changed);
    auto yielded = cast<plan::YieldOp>(kernel.getBody().front().getTerminator()).getValues();
    for (auto [i, value] : llvm::enumerate(yielded))
      agree(tensors[value], tensors[kernel.getBody().getArgument(kernel.getOperandCount() + i)], changed);
    return changed;
  }

  static void agree(Joins &x, Joins &y, bool &changed) {
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] != y[i])
        x[i] = y[i] = false, changed = true;
  }

  /// For each dim the number of the one that it becomes a part of.
  static SmallVector<unsigned> places(const Joins &joins, unsigned count) {
    SmallVector<unsigned> result;
    for (unsigned i = 0, place = 0; i < count; ++i) {
      place += i > 0 && !joins[i - 1];
      result.push_back(place);
    }
    return result;
  }

  RankedTensorType collapsed(RankedTensorType type, const Joins &joins) {
    SmallVector<int64_t> shape;
    for (auto [d, place] : llvm::enumerate(places(joins, type.getRank()))) {
      int64_t size = type.getDimSize(d);
      if (place == shape.size())
        shape.push_back(size);
      else
        shape[place] = ShapedType::isDynamic(shape[place]) || ShapedType::isDynamic(size) ? ShapedType::kDynamic : shape[place] * size;
    }
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// The maps of a generic whose loops and operands have been collapsed.
  AffineMap collapsed(AffineMap map, const Joins &loopJoins, const Joins &dimJoins) {
    SmallVector<unsigned> newLoop = places(loopJoins, map.getNumDims()), place = places(dimJoins, map.getNumResults());
    SmallVector<AffineExpr> exprs;
    for (auto [d, e] : llvm::enumerate(map.getResults())) {
      if (place[d] < exprs.size())
        continue;
      auto dim = dyn_cast<AffineDimExpr>(e);
      exprs.push_back(dim ? getAffineDimExpr(newLoop[dim.getPosition()], map.getContext()) : getAffineConstantExpr(0, map.getContext()));
    }
    return AffineMap::get(newLoop.empty() ? 0 : newLoop.back() + 1, 0, exprs, map.getContext());
  }

  void rewrite() {
    Block &body = kernel.getBody().front();
    Builder builder(kernel.getContext());
    auto last = cast<plan::YieldOp>(body.getTerminator()).getValues().front().getDefiningOp<linalg::GenericOp>();
    rewriteDomains(last);
    // Arguments; where joined dims are dynamic, their size is a scalar of its own.
    SmallVector<Attribute> dims;
    unsigned count = kernel.getOperandCount() + kernel.getDestinationCount();
    auto oldDims = kernel->getAttrOfType<ArrayAttr>(kDimsAttr);
    for (unsigned i = 0; i < count; ++i) {
      auto type = cast<RankedTensorType>(body.getArgument(i).getType());
      RankedTensorType now = collapsed(type, tensors[body.getArgument(i)]);
      ArrayRef<int64_t> old = cast<DenseI64ArrayAttr>(oldDims[i]).asArrayRef();
      SmallVector<SmallVector<unsigned>> members(now.getRank());
      for (auto [d, place] : llvm::enumerate(places(tensors[body.getArgument(i)], type.getRank())))
        members[place].push_back(d);
      SmallVector<int64_t> numbers;
      for (int64_t d = 0; d < now.getRank(); ++d)
        numbers.push_back(!now.isDynamicDim(d) ? -1 : members[d].size() == 1 ? old[members[d][0]] : scalarOf(type, old, members[d]));
      dims.push_back(builder.getDenseI64ArrayAttr(numbers));
    }
    kernel->setAttr(kDimsAttr, builder.getArrayAttr(dims));
    for (unsigned i = 0; i < count; ++i)
      body.getArgument(i).setType(collapsed(cast<RankedTensorType>(body.getArgument(i).getType()), tensors[body.getArgument(i)]));
    for (auto &[op, joins] : loops) {
      auto generic = cast<linalg::GenericOp>(op);
      SmallVector<AffineMap> maps;
      for (OpOperand &operand : generic->getOpOperands()) {
        AffineMap map = generic.getMatchingIndexingMap(&operand);
        maps.push_back(collapsed(map, joins, isa<RankedTensorType>(operand.get().getType()) ? tensors[operand.get()] : Joins(std::max(map.getNumResults(), 1u) - 1, false)));
      }
      SmallVector<Attribute> kinds;
      for (auto [l, place] : llvm::enumerate(places(joins, generic.getNumLoops())))
        if (place == kinds.size())
          kinds.push_back(generic.getIteratorTypes()[l]);
      generic.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
      generic.setIteratorTypesAttr(builder.getArrayAttr(kinds));
    }
    for (Operation &op : body.without_terminator())
      for (Value result : op.getResults())
        if (auto type = dyn_cast<RankedTensorType>(result.getType()))
          result.setType(collapsed(type, tensors[result]));
  }

  /// The domain of a launch is the parallel loops of what yields the first result.
  void rewriteDomains(linalg::GenericOp last) {
    const Joins &joins = loops[last];
    SmallVector<unsigned> place = places(joins, last.getNumLoops());
    for (plan::LaunchOp launch : launches) {
      SmallVector<Attribute> domain;
      SmallVector<unsigned> seen;
      auto old = launch.getDomain().getAsRange<DimExpr>().begin();
      for (auto [l, kind] : llvm::enumerate(last.getIteratorTypesArray())) {
        if (kind != utils::IteratorType::parallel)
          continue;
        DimExpr size = *old++;
        if (!seen.empty() && seen.back() == place[l]) {
          domain.back() = mulDims(cast<DimExpr>(domain.back()), size);
        } else {
          domain.push_back(size);
          seen.push_back(place[l]);
        }
      }
      launch.setDomainAttr(ArrayAttr::get(kernel.getContext(), domain));
    }
  }

  /// The number of the scalar that is the product of dims of an argument; a new one if there is none.
  int64_t scalarOf(RankedTensorType type, ArrayRef<int64_t> numbers, ArrayRef<unsigned> dims) {
    SmallVector<Attribute> factors; // the same for the same product
    Builder builder(kernel.getContext());
    for (unsigned d : dims)
      factors.push_back(builder.getI64ArrayAttr({type.getDimSize(d), numbers[d]}));
    auto [known, isNew] = products.try_emplace(builder.getArrayAttr(factors), int64_t(kernel.getScalarCount()));
    if (!isNew)
      return known->second;
    for (plan::LaunchOp launch : launches) {
      DimExpr product = constantDim(kernel.getContext(), 1);
      for (unsigned d : dims)
        product = mulDims(product, type.isDynamicDim(d) ? cast<DimExpr>(launch.getScalars()[numbers[d]]) : constantDim(kernel.getContext(), type.getDimSize(d)));
      SmallVector<Attribute> scalars(launch.getScalars().getValue());
      scalars.push_back(product);
      launch.setScalarsAttr(ArrayAttr::get(kernel.getContext(), scalars));
    }
    kernel.getBody().front().addArgument(builder.getIndexType(), kernel.getLoc());
    kernel.setScalarCount(kernel.getScalarCount() + 1);
    return known->second;
  }

  plan::KernelOp kernel;
  ArrayRef<plan::LaunchOp> launches;
  llvm::MapVector<Value, Joins> tensors;
  llvm::MapVector<Operation *, Joins> loops;
  DenseMap<Attribute, int64_t> products;
};

class CollapseDims : public impl::CollapseDimsBase<CollapseDims> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto launches = launchesByKernel(getOperation(), symbols);
    for (auto &[kernel, users] : launches)
      if (kernel.hasBody() && !kernel.isGroup())
        KernelCollapse(kernel, users).run();
  }
};

} // namespace
} // namespace dlc
