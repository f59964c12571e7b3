// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Elementwise.h"
#include "dlc/IR/ShapeContext.h"
#include "dlc/Support/CurrentWork.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SaveAndRestore.h"

namespace dlc {
#define GEN_PASS_DEF_INFERSHAPES
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// A tensor whose elements are all known, as a constant or as dlc.from_dims; null for an element type that cannot hold them.
Value materialize(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<DimExpr> values) {
  auto integer = cast<IntegerType>(type.getElementType());
  bool isConstant = llvm::all_of(values, [](DimExpr e) { return e.getConstant().has_value(); });
  if (!isConstant) {
    SmallVector<Attribute> attributes(values.begin(), values.end());
    return FromDimsOp::create(builder, loc, type, builder.getArrayAttr(attributes));
  }
  SmallVector<APInt> elements;
  for (DimExpr e : values) {
    APInt wide(64, *e.getConstant(), /*isSigned=*/true);
    APInt element = wide.sextOrTrunc(integer.getWidth());
    bool fits = integer.isUnsigned() || integer.getWidth() == 1 ? element.zextOrTrunc(64) == wide : element.sextOrTrunc(64) == wide;
    if (!fits)
      return {};
    elements.push_back(element);
  }
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, elements));
}

/// The walk over a function.
class Inference {
public:
  explicit Inference(func::FuncOp function) : context(function.getContext()) {}

  /// False when an op failed, with an error. A block whose branches leave a rank open is tried with each of them.
  bool visit(Block &block);

private:
  /// Which of two branches of different ranks gives what follows, for each such If of a block in order: 0 is `then`.
  struct Choices {
    SmallVector<unsigned> made;
    unsigned next = 0;
    SmallVector<std::pair<Location, std::string>> warnings; // what they mean for a run
    unsigned choose() {
      if (next == made.size())
        made.push_back(0);
      return made[next++];
    }
  };

  bool visitOnce(Block &block);
  LogicalResult visit(Operation &op);
  LogicalResult visit(IfOp op);
  LogicalResult takeBranch(IfOp op, Block &branch);
  std::optional<Diagnostic> visitUndecided(Block &branch);
  void failAtRunTime(Block &branch, Location loc, StringRef why, Block &other);
  LogicalResult joinBranches(IfOp op, DimExpr condition);
  void replaceByValues(Value result);
  void recall(ReadOp read);
  void recallNames(ReadOp read, FromDimsOp expressions);
  DimExpr constant(int64_t value) { return constantDim(context, value); }

  MLIRContext *context;
  ShapeState state;
  Choices *choices = nullptr; // of the block that is visited
};

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// An op after a failed one is not looked at where it uses the failed one's result: one message a problem.
bool Inference::visitOnce(Block &block) {
  bool isComplete = true;
  for (Operation &op : llvm::make_early_inc_range(block))
    isComplete &= succeeded(visit(op));
  return isComplete;
}

/// Copies of all ops of a block, behind what stands in the other.
static void copyOps(Block &from, Block &to) {
  if (from.empty())
    return;
  OpBuilder builder(from.front().getContext());
  builder.setInsertionPointToEnd(&to);
  IRMapping mapping;
  for (Operation &op : from)
    builder.clone(op, mapping);
}

static void forEachReadAround(Block &block, llvm::function_ref<void(ReadOp)> visit) {
  for (Operation *op = block.getParentOp(); op && !isa<func::FuncOp>(op); op = op->getParentOp())
    for (auto read : llvm::make_early_inc_range(op->getBlock()->getOps<ReadOp>()))
      visit(read);
}

bool Inference::visit(Block &block) {
  if (block.getOps<IfOp>().empty())
    return visitOnce(block);
  constexpr unsigned kMostTries = 64;
  Region untouched;
  untouched.emplaceBlock();
  copyOps(block, untouched.front());
  ShapeState before = state;
  DenseSet<Operation *> reads;
  forEachReadAround(block, [&](ReadOp read) { reads.insert(read); });

  Choices own;
  llvm::SaveAndRestore inner(choices, &own);
  SmallVector<Diagnostic> firstErrors;
  bool isComplete = false;
  for (unsigned tries = 0; !isComplete && tries != kMostTries; ++tries) {
    SmallVector<Diagnostic> errors;
    own.next = 0;
    own.warnings.clear();
    {
      ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        errors.push_back(std::move(diagnostic));
        return success();
      });
      isComplete = visitOnce(block);
    }
    if (isComplete)
      break;
    if (tries == 0)
      firstErrors = std::move(errors);
    // The last choice that has another side.
    own.made.truncate(own.next);
    while (!own.made.empty() && own.made.back() == 1)
      own.made.pop_back();
    if (own.made.empty())
      break;
    own.made.back() = 1;
    for (Operation &op : block)
      op.dropAllReferences();
    block.getOperations().clear();
    copyOps(untouched.front(), block);
    forEachReadAround(block, [&](ReadOp read) {
      if (!reads.contains(read))
        read.erase();
    });
    state = before;
  }
  untouched.dropAllReferences();
  if (isComplete)
    for (const auto &[loc, warning] : own.warnings)
      mlir::emitWarning(loc) << warning;
  if (!isComplete)
    for (Diagnostic &error : firstErrors)
      context->getDiagEngine().emit(std::move(error));
  return isComplete;
}

LogicalResult Inference::visit(Operation &op) {
  CurrentWork work("infer-shapes", op.getLoc());
  if (auto branches = dyn_cast<IfOp>(op))
    return visit(branches);
  auto dlcOp = dyn_cast<DlcOp>(op);
  if (!dlcOp) {
    if (auto read = dyn_cast<ReadOp>(op)) // from an earlier run of this pass
      recall(read);
    else if (auto check = dyn_cast<CheckOp>(op))
      state.checks.insert(check.getCondition());
    return success();
  }
  if (!llvm::all_of(op.getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return failure();
  ShapeContext shapes(&op, state);
  if (failed(dlcOp.shape(shapes)))
    return failure();
  if (isa<ConstantOp, FromDimsOp>(op))
    return success();
  if (isa<RequireOp>(op)) // its checks stand for it now
    return op.erase(), success();
  for (Value result : op.getResults())
    replaceByValues(result);
  return success();
}

void Inference::recall(ReadOp read) {
  SmallVector<DimExpr> &values = state.values[read.getX()];
  values.resize(read.getSymbols().size());
  for (auto [value, name] : llvm::zip_equal(values, read.getSymbols().getAsRange<StringAttr>()))
    if (!value)
      value = symbolDim(context, name.getValue());
  ++state.nextRead;
  if (auto named = read.getX().getDefiningOp<FromDimsOp>())
    recallNames(read, named);
}

/// Expressions that have names keep them.
void Inference::recallNames(ReadOp read, FromDimsOp expressions) {
  SmallVector<DimExpr> names;
  for (auto [e, name] : llvm::zip_equal(expressions.getValues().getAsRange<DimExprAttr>(), read.getSymbols().getAsRange<StringAttr>()))
    names.push_back(e.getConstant() || e.isSymbol() ? e : symbolDim(context, name.getValue()));
  state.named[expressions.getValues()] = names;
}

void Inference::replaceByValues(Value result) {
  auto found = state.values.find(result);
  auto type = cast<RankedTensorType>(result.getType());
  if (found == state.values.end() || !type.hasStaticShape() || !type.getElementType().isInteger() ||
      type.getNumElements() != static_cast<int64_t>(found->second.size()) || llvm::is_contained(found->second, DimExpr()))
    return;
  SmallVector<DimExpr> values = found->second;
  OpBuilder builder(context);
  builder.setInsertionPointAfterValue(result);
  Value known = materialize(builder, result.getLoc(), type, values);
  if (!known)
    return;
  result.replaceAllUsesWith(known);
  state.values[known] = values;
  state.values.erase(result);
  if (isOpTriviallyDead(result.getDefiningOp()))
    result.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

LogicalResult Inference::visit(IfOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getCondition().getType());
  if (!type)
    return failure();
  if (!type.getElementType().isInteger(1))
    return op.emitError() << "the condition must be a bool tensor, not " << type.getElementType();
  ShapeContext shapes(op, state);
  DimExpr elements = productOfDims(context, dimsOf(type)), one = constant(1);
  if (elements != one)
    return op.emitError() << "the condition must have one element; its dims are " << toString(dimsOf(type));
  FailureOr<SmallVector<DimExpr>> condition = shapes.valuesOrRead(0, "the condition");
  if (failed(condition))
    return failure();
  if (std::optional<int64_t> known = condition->front().getConstant())
    return takeBranch(op, *known ? op.getThenBranch().front() : op.getElseBranch().front());

  op.setResolvedConditionAttr(condition->front());
  Block &first = op.getThenBranch().front(), &second = op.getElseBranch().front();
  std::optional<Diagnostic> firstError = visitUndecided(first), secondError = visitUndecided(second);
  if (firstError && secondError) {
    for (const Diagnostic &error : {std::cref(*firstError), std::cref(*secondError)})
      mlir::emitError(error.getLocation()) << error.str();
    return failure();
  }
  if (firstError)
    failAtRunTime(first, firstError->getLocation(), firstError->str(), second);
  if (secondError)
    failAtRunTime(second, secondError->getLocation(), secondError->str(), first);
  return joinBranches(op, condition->front());
}

/// The branch is known: its ops stand where the If stood, and nothing of the other one was looked at.
LogicalResult Inference::takeBranch(IfOp op, Block &branch) {
  bool isComplete = true;
  for (Operation &inner : llvm::make_early_inc_range(branch.without_terminator())) {
    inner.moveBefore(op);
    isComplete &= succeeded(visit(inner));
  }
  op.replaceAllUsesWith(cast<YieldOp>(branch.getTerminator()).getValues());
  op.erase();
  return success(isComplete);
}

/// The first error, which may never matter: the branch need not be taken.
std::optional<Diagnostic> Inference::visitUndecided(Block &branch) {
  std::optional<Diagnostic> error;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    if (!error)
      error.emplace(std::move(diagnostic));
    return success();
  });
  // What is checked in a branch, or gets a name there, is not so elsewhere.
  llvm::DenseSet<Attribute> checks = state.checks;
  llvm::DenseMap<Attribute, SmallVector<DimExpr>> named = state.named;
  (void)visit(branch);
  state.checks = std::move(checks);
  state.named = std::move(named);
  return error;
}

/// A branch that cannot be computed fails when a run takes it. What it would give has the dims of what the other one gives.
void Inference::failAtRunTime(Block &branch, Location loc, StringRef why, Block &other) {
  branch.walk([&](Operation *op) {
    for (Value result : op->getResults())
      state.values.erase(result);
  });
  while (!branch.empty())
    branch.back().erase();
  OpBuilder builder = OpBuilder::atBlockBegin(&branch);
  CheckOp::create(builder, loc, constant(0), constant(0), constant(0), why);
  llvm::StringSet<> local;
  other.walk([&](ReadOp read) {
    for (auto name : read.getSymbols().getAsRange<StringAttr>())
      local.insert(name.getValue());
  });
  SmallVector<Value> values;
  for (Value given : cast<YieldOp>(other.getTerminator()).getValues()) {
    auto type = cast<RankedTensorType>(given.getType());
    SmallVector<DimExpr> dims = dimsOf(type);
    for (DimExpr &dim : dims) {
      bool isLocal = false;
      forEachSymbol(dim, [&](StringRef name) { isLocal |= local.contains(name); });
      dim = isLocal ? constant(0) : dim;
    }
    auto scalar = RankedTensorType::get({}, type.getElementType());
    Value zero = ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(scalar)));
    SmallVector<Attribute> sizes(dims.begin(), dims.end());
    Value shape = FromDimsOp::create(builder, loc, RankedTensorType::get({type.getRank()}, builder.getI64Type()), builder.getArrayAttr(sizes));
    values.push_back(ExpandOp::create(builder, loc, tensorType(dims, type.getElementType()), zero, shape));
  }
  YieldOp::create(builder, loc, values);
}

/// Types, and values where they are known, of what the branches give. Dims that only a branch knows are yielded and read. Where the
/// branches give different numbers of axes, what follows can be made for one of them only: a run that takes the other one fails.
LogicalResult Inference::joinBranches(IfOp op, DimExpr condition) {
  Block *branches[] = {&op.getThenBranch().front(), &op.getElseBranch().front()};
  auto given = [&](unsigned branch, unsigned i) {
    return cast<RankedTensorType>(cast<YieldOp>(branches[branch]->getTerminator()).getValues()[i].getType());
  };
  for (unsigned i = 0; i != op.getNumResults(); ++i) {
    if (given(0, i).getRank() == given(1, i).getRank())
      continue;
    unsigned taken = choices->choose();
    std::string why = ("the condition takes the " + Twine(taken ? "then" : "else") + " branch, which gives a tensor of " +
                       Twine(given(1 - taken, i).getRank()) + " axes; what follows is compiled for the " + Twine(given(taken, i).getRank()) +
                       " axes of the other branch")
                          .str();
    int64_t ranks[] = {given(0, i).getRank(), given(1, i).getRank()};
    choices->warnings.emplace_back(op.getLoc(), ("its branches give tensors of " + Twine(ranks[0]) + " and of " + Twine(ranks[1]) +
                                                 " axes; what follows is compiled for " + Twine(ranks[taken]) + ", so a run that takes the " +
                                                 (taken ? "then" : "else") + " branch fails (dims that decide it can be fixed with --dim)")
                                                    .str());
    failAtRunTime(*branches[1 - taken], op.getLoc(), why, *branches[taken]);
    break;
  }
  llvm::StringSet<> local;
  op.walk([&](ReadOp read) {
    if (read->getParentOp() != op->getParentOp())
      for (auto name : read.getSymbols().getAsRange<StringAttr>())
        local.insert(name.getValue());
  });
  // Null where the expression means nothing behind the branches.
  auto choose = [&](DimExpr then, DimExpr otherwise) -> DimExpr {
    bool isLocal = !then || !otherwise;
    for (DimExpr e : {then, otherwise})
      if (e)
        forEachSymbol(e, [&](StringRef name) { isLocal |= local.contains(name); });
    if (isLocal)
      return {};
    return provablyEqual(then, otherwise) ? then : selectEqDims(condition, constant(0), otherwise, then);
  };
  auto first = cast<YieldOp>(op.getThenBranch().front().getTerminator()), second = cast<YieldOp>(op.getElseBranch().front().getTerminator());
  unsigned count = op.getDimsResult() ? op.getDimsResult()->size() : op.getNumResults();
  SmallVector<int64_t> dimsResult;
  SmallVector<Type> types;
  for (unsigned i = 0; i != count; ++i) {
    auto then = cast<RankedTensorType>(first.getValues()[i].getType()), otherwise = cast<RankedTensorType>(second.getValues()[i].getType());
    if (op.getDimsResult() && (*op.getDimsResult())[i] >= 0) { // from an earlier run of this pass
      types.push_back(op.getResult(i).getType());
      dimsResult.push_back((*op.getDimsResult())[i]);
      continue;
    }
    SmallVector<DimExpr> dims;
    for (auto [a, b] : llvm::zip_equal(dimsOf(then), dimsOf(otherwise)))
      dims.push_back(choose(a, b));
    bool isKnown = !llvm::is_contained(dims, DimExpr());
    types.push_back(isKnown ? Type(tensorType(dims, then.getElementType())) : Type());
    dimsResult.push_back(isKnown ? -1 : 0);
  }

  // The dims of results that lack them become results.
  SmallVector<unsigned> missing;
  if (!op.getDimsResult())
    for (unsigned i = 0; i != count; ++i)
      if (!types[i])
        missing.push_back(i);
  if (!missing.empty()) {
    for (unsigned i : missing) {
      dimsResult[i] = types.size();
      for (YieldOp yield : {first, second}) {
        auto type = cast<RankedTensorType>(yield.getValues()[i].getType());
        SmallVector<Attribute> sizes;
        for (DimExpr dim : dimsOf(type))
          sizes.push_back(dim);
        OpBuilder inner(yield);
        auto dimsType = RankedTensorType::get({type.getRank()}, inner.getI64Type());
        yield.getValuesMutable().append(FromDimsOp::create(inner, op.getLoc(), dimsType, inner.getArrayAttr(sizes)).getResult());
      }
      types.push_back(first.getValues().back().getType());
    }
    OpBuilder builder(op);
    SmallVector<Type> drafted;
    for (Type type : types)
      drafted.push_back(type ? type : Type(UnrankedTensorType::get(builder.getI64Type())));
    auto wider = IfOp::create(builder, op.getLoc(), drafted, op.getCondition(), op.getResolvedConditionAttr(), DenseI64ArrayAttr());
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), wider->getRegions()))
      to.takeBody(from);
    builder.setInsertionPointAfter(wider);
    for (unsigned i : missing) {
      auto branchType = cast<RankedTensorType>(first.getValues()[i].getType());
      SmallVector<Attribute> names;
      SmallVector<DimExpr> dims;
      std::string stem = "v" + std::to_string(state.nextRead++);
      for (int64_t k = 0; k != branchType.getRank(); ++k) {
        std::string name = stem + "[" + std::to_string(k) + "]";
        names.push_back(builder.getStringAttr(name));
        dims.push_back(symbolDim(context, name));
      }
      ReadOp::create(builder, op.getLoc(), wider.getResult(dimsResult[i]), builder.getArrayAttr(names));
      types[i] = tensorType(dims, branchType.getElementType());
    }
    op.replaceAllUsesWith(wider.getResults().take_front(count));
    op.erase();
    op = wider;
  }
  op.setDimsResult(dimsResult);
  for (auto [result, type] : llvm::zip(op.getResults(), types))
    result.setType(cast<RankedTensorType>(type));

  for (unsigned i = 0; i != count; ++i) {
    auto then = state.values.find(first.getValues()[i]), otherwise = state.values.find(second.getValues()[i]);
    if (then == state.values.end() || otherwise == state.values.end() || then->second.size() != otherwise->second.size())
      continue;
    SmallVector<DimExpr> values;
    for (auto [a, b] : llvm::zip_equal(then->second, otherwise->second))
      values.push_back(choose(a, b));
    state.values[op.getResult(i)] = values;
    replaceByValues(op.getResult(i));
  }
  return success();
}

class InferShapes : public impl::InferShapesBase<InferShapes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    Block &body = function.getBody().front();
    if (!Inference(function).visit(body))
      return signalPassFailure();
    // The function's type follows what it returns.
    auto results = body.getTerminator()->getOperandTypes();
    function.setType(FunctionType::get(&getContext(), function.getArgumentTypes(), results));
  }
};

} // namespace
} // namespace dlc
