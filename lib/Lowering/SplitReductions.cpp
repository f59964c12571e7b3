// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Launches.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Support/CurrentWork.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace dlc {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "dlc/Lowering/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// A product with few elements and long sums, all of it known now.
struct LongProduct {
  plan::KernelOp kernel;
  linalg::GenericOp product;
  linalg::FillOp fill;
  unsigned terms; // the loop
  int64_t parts;  // that its sums are cut into
};

std::optional<LongProduct> match(plan::KernelOp kernel, const Target &target) {
  if (!kernel.hasBody() || kernel.isGroup() || kernel.getScalarCount() || kernel.getKind().getKind() != plan::KernelKind::Contraction)
    return std::nullopt;
  LongProduct found{kernel, {}, {}, 0, 0};
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    if (!generic.getNumReductionLoops())
      continue;
    if (found.product || generic.getNumReductionLoops() != 1 || generic.getNumDpsInputs() != 2)
      return std::nullopt;
    found.product = generic;
  }
  if (!found.product)
    return std::nullopt;
  found.fill = found.product.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!found.fill || !(matchPattern(found.fill.getInputs()[0], m_AnyZeroFloat()) || matchPattern(found.fill.getInputs()[0], m_Zero())))
    return std::nullopt;
  for (OpOperand *input : found.product.getDpsInputOperands()) {
    auto argument = dyn_cast<BlockArgument>(input->get());
    if (!argument || !argument.hasOneUse() || !found.product.getMatchingIndexingMap(input).isProjectedPermutation(/*allowZeroInResults=*/true))
      return std::nullopt;
  }
  SmallVector<unsigned> reductions;
  found.product.getReductionDims(reductions);
  found.terms = reductions[0];
  uint64_t elements = 1;
  for (auto [loop, size] : llvm::enumerate(found.product.getStaticLoopRanges()))
    if (loop != found.terms)
      elements = llvm::SaturatingMultiply<uint64_t>(elements, std::max<int64_t>(size, 1));
  // A tile of 64 elements for each core, or the sums in parts; a part is worth a launch.
  constexpr uint64_t kTile = 64, kLeastTerms = 1024;
  uint64_t depth = found.product.getStaticLoopRanges()[found.terms], tiles = llvm::divideCeil(elements, kTile);
  if (tiles >= target.cores || elements == 0)
    return std::nullopt;
  for (uint64_t parts = std::min<uint64_t>(2 * target.cores / tiles, depth / kLeastTerms); parts > 1 && !found.parts; --parts)
    if (depth % parts == 0)
      found.parts = parts;
  return found.parts ? std::optional<LongProduct>(found) : std::nullopt;
}

class Splitter {
public:
  Splitter(LongProduct what, SymbolTable &symbols) : what(what), kernel(what.kernel), symbols(symbols), context(kernel.getContext()) {}

  void run(ArrayRef<plan::LaunchOp> launches) {
    CurrentWork work("split-reductions", kernel.getLoc());
    auto result = cast<RankedTensorType>(what.product->getResult(0).getType());
    SmallVector<int64_t> shape{what.parts};
    llvm::append_range(shape, result.getShape());
    partial = RankedTensorType::get(shape, result.getElementType());
    SmallVector<unsigned> operands;
    for (Value input : what.product.getInputs())
      operands.push_back(cast<BlockArgument>(input).getArgNumber());
    plan::KernelOp parts = makeParts(operands), sum = makeSum(operands);
    for (plan::LaunchOp launch : launches)
      relaunch(launch, parts, sum, operands);
    symbols.erase(kernel);
  }

private:
  plan::KernelOp makeKernel(StringRef suffix, plan::KernelKind kind, unsigned operandCount, unsigned destinationCount, ArrayRef<RankedTensorType> types) {
    OpBuilder builder(context);
    auto made = plan::KernelOp::create(builder, kernel.getLoc(), (kernel.getSymName() + suffix).str(), plan::KindAttr::get(context, kind, 1),
                                       operandCount, destinationCount, 0, nullptr, nullptr, nullptr, nullptr);
    symbols.insert(made, kernel->getIterator());
    Block &body = made.getBody().emplaceBlock();
    SmallVector<Attribute> dims;
    for (RankedTensorType type : types) {
      body.addArgument(type, kernel.getLoc());
      dims.push_back(DenseI64ArrayAttr::get(context, SmallVector<int64_t>(type.getRank(), -1)));
    }
    made->setAttr(kDimsAttr, ArrayAttr::get(context, dims));
    return made;
  }

  /// The product, part by part: each operand has two dims where it had that of the terms.
  plan::KernelOp makeParts(ArrayRef<unsigned> operands) {
    SmallVector<RankedTensorType> types;
    SmallVector<AffineMap> maps;
    unsigned loops = what.product.getNumLoops() + 1; // the first one goes over the parts
    for (OpOperand &operand : what.product->getOpOperands()) {
      AffineMap map = what.product.getMatchingIndexingMap(&operand);
      auto type = cast<RankedTensorType>(operand.get().getType());
      bool isResult = what.product.isDpsInit(&operand);
      SmallVector<int64_t> shape;
      SmallVector<AffineExpr> exprs;
      if (isResult)
        exprs.push_back(getAffineDimExpr(0, context));
      for (auto [d, e] : llvm::enumerate(map.getResults())) {
        if (e.isFunctionOfDim(what.terms)) {
          shape.append({what.parts, type.getDimSize(d) / what.parts});
          exprs.push_back(getAffineDimExpr(0, context));
        } else {
          shape.push_back(type.getDimSize(d));
        }
        exprs.push_back(e.shiftDims(map.getNumDims(), 1));
      }
      types.push_back(isResult ? partial : RankedTensorType::get(shape, type.getElementType()));
      maps.push_back(AffineMap::get(loops, 0, exprs, context));
    }
    plan::KernelOp made = makeKernel("_parts", plan::KernelKind::Contraction, 2, 1, types);
    Block &body = made.getBody().front();
    OpBuilder b = OpBuilder::atBlockEnd(&body);
    Value zero = b.clone(*what.fill.getInputs()[0].getDefiningOp())->getResult(0);
    Value init = linalg::FillOp::create(b, kernel.getLoc(), zero, body.getArgument(2)).getResult(0);
    SmallVector<utils::IteratorType> kinds{utils::IteratorType::parallel};
    llvm::append_range(kinds, what.product.getIteratorTypesArray());
    auto product = linalg::GenericOp::create(b, kernel.getLoc(), TypeRange{partial}, ValueRange{body.getArgument(0), body.getArgument(1)}, ValueRange{init},
                                             maps, kinds);
    IRMapping mapping;
    what.product.getRegion().cloneInto(&product.getRegion(), mapping);
    plan::YieldOp::create(b, kernel.getLoc(), product.getResults());
    return made;
  }

  /// The kernel as it was, but that the parts are summed up where the product was.
  plan::KernelOp makeSum(ArrayRef<unsigned> operands) {
    Block &old = kernel.getBody().front();
    SmallVector<RankedTensorType> types{partial};
    for (BlockArgument argument : old.getArguments())
      if (!llvm::is_contained(operands, argument.getArgNumber()))
        types.push_back(cast<RankedTensorType>(argument.getType()));
    plan::KernelOp made = makeKernel("_sum", plan::KernelKind::Reduction, kernel.getOperandCount() - 1, kernel.getDestinationCount(), types);
    Block &body = made.getBody().front();
    OpBuilder b = OpBuilder::atBlockEnd(&body);
    IRMapping mapping;
    unsigned next = 1;
    for (BlockArgument argument : old.getArguments())
      if (!llvm::is_contained(operands, argument.getArgNumber()))
        mapping.map(argument, body.getArgument(next++));
    for (Operation &op : old) {
      if (&op != what.product) {
        b.clone(op, mapping);
        continue;
      }
      unsigned rank = partial.getRank() - 1;
      SmallVector<AffineExpr> from{getAffineDimExpr(rank, context)}, to;
      for (unsigned d = 0; d < rank; ++d)
        to.push_back(getAffineDimExpr(d, context));
      llvm::append_range(from, to);
      SmallVector<AffineMap> maps{AffineMap::get(rank + 1, 0, from, context), AffineMap::get(rank + 1, 0, to, context)};
      SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
      kinds.push_back(utils::IteratorType::reduction);
      Value init = mapping.lookup(what.product.getDpsInits()[0]);
      auto sum = linalg::GenericOp::create(b, op.getLoc(), init.getType(), body.getArgument(0), init, maps, kinds, [&](OpBuilder &inner, Location loc, ValueRange args) {
        Value total = isa<FloatType>(args[0].getType()) ? Value(arith::AddFOp::create(inner, loc, args[1], args[0])) : Value(arith::AddIOp::create(inner, loc, args[1], args[0]));
        linalg::YieldOp::create(inner, loc, total);
      });
      mapping.map(what.product.getResult(0), sum.getResult(0));
    }
    return made;
  }

  void relaunch(plan::LaunchOp launch, plan::KernelOp parts, plan::KernelOp sum, ArrayRef<unsigned> operands) {
    OpBuilder b(launch);
    Location loc = launch.getLoc();
    auto number = [&](int64_t value) { return constantDim(context, value); };
    Value slot = plan::SlotOp::create(b, loc, plan::BufferType::get(context),
                                      number(partial.getNumElements() * ((partial.getElementTypeBitWidth() + 7) / 8)), launch.getDevice(), nullptr);
    SmallVector<Attribute> domain{number(what.parts)};
    for (int64_t size : cast<RankedTensorType>(what.product->getResult(0).getType()).getShape())
      domain.push_back(number(size));
    SmallVector<Value> factors, rest{slot};
    for (unsigned i : operands)
      factors.push_back(launch.getSources()[i]);
    for (auto [i, source] : llvm::enumerate(launch.getSources()))
      if (!llvm::is_contained(operands, i))
        rest.push_back(source);
    auto sums = plan::LaunchOp::create(b, loc, FlatSymbolRefAttr::get(parts.getSymNameAttr()), factors, ValueRange{slot}, b.getArrayAttr({}),
                                       b.getArrayAttr(domain), nullptr, nullptr);
    sums.setDevice(launch.getDevice());
    for (StringRef name : {plan::kFlopsAttr, plan::kTrafficAttr}) // the second launch has little of both
      if (Attribute own = launch->getAttr(name))
        sums->setAttr(name, own);
    plan::LaunchOp::create(b, loc, FlatSymbolRefAttr::get(sum.getSymNameAttr()), rest, launch.getDestinations(), launch.getScalars(), launch.getDomain(),
                           nullptr, nullptr)
        .setDevice(launch.getDevice());
    launch.erase();
  }

  LongProduct what;
  plan::KernelOp kernel;
  SymbolTable &symbols;
  MLIRContext *context;
  RankedTensorType partial;
};

class SplitReductions : public impl::SplitReductionsBase<SplitReductions> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Target> target = targetOfVariant(module);
    if (failed(target))
      return signalPassFailure();
    SymbolTable symbols(module);
    auto launches = launchesByKernel(module, symbols);
    for (auto &[kernel, users] : launches)
      if (std::optional<LongProduct> found = match(kernel, *target))
        Splitter(*found, symbols).run(users);
  }
};

} // namespace
} // namespace dlc
