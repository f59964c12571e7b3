// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// fold-constants: what depends on constants only is computed now, all of a module by one call of the evaluator.
//
// An op can be computed now if it is pure, its dims are numbers, and so are all operands that it reads. Of these ops, the ones whose
// results something else reads become constants, unless they hold many more bytes than the constants they are made of.

#include "dlc/IR/Dialect.h"
#include "dlc/Support/CurrentWork.h"
#include "dlc/Transforms/ConstantEvaluator.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dlc {

ConstantEvaluator::~ConstantEvaluator() = default;

namespace {

/// Results of up to so many bytes are always worth their place in the module.
constexpr uint64_t kFreeBytes = 64 * 1024;
/// Larger ones may hold so many bytes for each byte of the constants that they are made of. 4: weights of 8 bits that a model stores to
/// be small and computes with as f32 are converted once and not by every run, at the price of a larger file. A scalar or a row that is
/// repeated over a large tensor stays an op.
constexpr uint64_t kGrowth = 4;

uint64_t bytesOf(RankedTensorType type) { return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8); }

bool isPlainTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && !tensor.getEncoding() && tensor.getElementType().isIntOrFloat();
}

/// The same elements under the dims of `type`.
TypedAttr withType(TypedAttr constant, RankedTensorType type) {
  if (auto weight = dyn_cast<WeightAttr>(constant))
    return WeightAttr::get(type.getContext(), weight.getKey(), type);
  return cast<DenseElementsAttr>(constant).reshape(type);
}

class Folding {
public:
  explicit Folding(ModuleOp module) : module(module) {}

  void collect();
  void choose();
  bool isNeeded() const { return !roots.empty(); }
  /// The chosen ops as functions: what hangs together is one, so that data that cannot be computed keeps nothing else from being folded.
  OwningOpRef<ModuleOp> outline();
  void replace(std::vector<llvm::Expected<ConstantEvaluator::Values>> answers);
  /// Views of constants become constants, and what nothing uses any more goes.
  void tidy();

private:
  void collect(DlcOp op);
  bool isKnown(OpOperand &operand, DlcOp op) const;
  bool isReadAtRunTime(Value v) const;
  bool isWorthItsBytes(Operation *op) const;
  void addFunction(ModuleOp program, ArrayRef<Operation *> ops, unsigned number);
  template <typename Visit> void forEachMaker(Operation *op, Visit visit) const;

  ModuleOp module;
  DenseMap<Value, TypedAttr> constants; // of `plainConstants` and `views`
  SmallVector<Operation *> plainConstants, views;
  llvm::SetVector<Operation *> known;   // ops that can be computed now, in the order of the program
  DenseSet<Operation *> staying;        // those of them that stay for run time
  SmallVector<Operation *> roots;       // those whose results become constants
  DenseSet<Operation *> chosen;         // roots, and what they are made by
  std::vector<SmallVector<Value>> wanted; // values that each function gives
};

void Folding::collect() {
  module.walk<WalkOrder::PreOrder>([&](DlcOp op) { collect(op); });
}

void Folding::collect(DlcOp op) {
  if (auto constant = dyn_cast<ConstantOp>(*op)) {
    auto value = dyn_cast<TypedAttr>(constant.getValue());
    if (value && isPlainTensor(value.getType()) && value.getType() == constant.getType() && constantBytes(value))
      constants[constant] = value, plainConstants.push_back(op);
    return;
  }
  if (op->getNumResults() == 0 || op->getNumRegions() != 0 || !isPure(op) || !llvm::all_of(op->getResultTypes(), isPlainTensor) ||
      llvm::any_of(op->getResultTypes(), [](Type type) { return cast<RankedTensorType>(type).getNumElements() == 0; }))
    return;
  Form form = op.form();
  if (form == Form::Missing || form == Form::Expand || (form == Form::Host && !isa<FromDimsOp>(op)))
    return;
  bool namesSymbols = false;
  op->getAttrDictionary().walk([&](DimExpr e) { namesSymbols |= e.isSymbol(); });
  if (namesSymbols || !llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) { return isKnown(operand, op); }))
    return;
  TypedAttr viewed = form == Form::View ? constants.lookup(op->getOperand(0)) : TypedAttr();
  if (!viewed) {
    known.insert(op);
    return;
  }
  constants[op->getResult(0)] = withType(viewed, cast<RankedTensorType>(op->getResult(0).getType()));
  views.push_back(op);
}

bool Folding::isKnown(OpOperand &operand, DlcOp op) const {
  Value v = operand.get();
  if (!op.readsData(operand.getOperandNumber())) // any tensor of the type will do
    return isPlainTensor(v.getType());
  return constants.contains(v) || known.contains(v.getDefiningOp());
}

/// Calls `visit` for the ops that can be computed now and whose results `op` reads.
template <typename Visit> void Folding::forEachMaker(Operation *op, Visit visit) const {
  for (OpOperand &operand : op->getOpOperands())
    if (Operation *maker = operand.get().getDefiningOp(); known.contains(maker) && cast<DlcOp>(op).readsData(operand.getOperandNumber()))
      visit(maker);
}

bool Folding::isReadAtRunTime(Value v) const {
  return llvm::any_of(v.getUsers(), [&](Operation *user) { return !known.contains(user) || staying.contains(user); });
}

/// Users come before what they use, so that one walk decides: where an op stays, what it reads is read at run time.
void Folding::choose() {
  for (Operation *op : llvm::reverse(known)) {
    if (llvm::none_of(op->getResults(), [&](Value v) { return isReadAtRunTime(v); }))
      continue;
    if (isa<FromDimsOp>(op) || !isWorthItsBytes(op))
      staying.insert(op);
    else
      roots.push_back(op);
  }
  SmallVector<Operation *> open(roots);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (chosen.insert(op).second)
      forEachMaker(op, [&](Operation *maker) { open.push_back(maker); });
  }
}

bool Folding::isWorthItsBytes(Operation *op) const {
  uint64_t bytes = 0;
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    if (!isReadAtRunTime(result))
      continue;
    if (isSubByte(type.getElementType())) // a module's boundary packs them
      return false;
    bytes += bytesOf(type);
  }
  if (bytes <= kFreeBytes)
    return true;
  uint64_t allowed = 0;
  llvm::SmallPtrSet<Operation *, 16> seen;
  llvm::SmallPtrSet<const void *, 16> counted; // each constant once
  SmallVector<Operation *> open{op};
  while (!open.empty()) {
    Operation *made = open.pop_back_val();
    if (!seen.insert(made).second)
      continue;
    for (OpOperand &operand : made->getOpOperands()) {
      auto constant = constants.find(operand.get());
      if (constant == constants.end() || !cast<DlcOp>(made).readsData(operand.getOperandNumber()))
        continue;
      ConstantBytes data = *constantBytes(constant->second);
      if (counted.insert(constant->second.getAsOpaquePointer()).second)
        allowed += kGrowth * (data.data.size() + data.owned.size());
    }
    if (bytes <= allowed)
      return true;
    forEachMaker(made, [&](Operation *maker) { open.push_back(maker); });
  }
  return false;
}

OwningOpRef<ModuleOp> Folding::outline() {
  llvm::EquivalenceClasses<Operation *> together;
  for (Operation *op : known)
    if (chosen.contains(op)) {
      together.insert(op);
      forEachMaker(op, [&](Operation *maker) { together.unionSets(op, maker); });
    }
  llvm::MapVector<Operation *, SmallVector<Operation *>> functions;
  for (Operation *op : known)
    if (chosen.contains(op))
      functions[together.getLeaderValue(op)].push_back(op);
  OwningOpRef<ModuleOp> program = ModuleOp::create(module.getLoc());
  for (auto [number, function] : llvm::enumerate(functions))
    addFunction(*program, function.second, number);
  return program;
}

void Folding::addFunction(ModuleOp program, ArrayRef<Operation *> ops, unsigned number) {
  SmallVector<Value> &results = wanted.emplace_back();
  for (Operation *op : ops)
    llvm::copy_if(op->getResults(), std::back_inserter(results), [&](Value v) { return isReadAtRunTime(v); });
  OpBuilder builder = OpBuilder::atBlockEnd(program.getBody());
  Location loc = ops.front()->getLoc();
  auto type = builder.getFunctionType({}, TypeRange(ValueRange(results)));
  auto function = func::FuncOp::create(builder, loc, ("constants_" + Twine(number)).str(), type);
  builder.setInsertionPointToEnd(function.addEntryBlock());
  IRMapping mapping;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (auto constant = constants.find(operand); constant != constants.end() && !mapping.contains(operand))
        mapping.map(operand, ConstantOp::create(builder, operand.getLoc(), constant->second).getResult());
    Operation *copy = builder.clone(*op, mapping);
    OpBuilder before(copy);
    for (OpOperand &operand : copy->getOpOperands())
      if (!cast<DlcOp>(copy).readsData(operand.getOperandNumber()))
        operand.set(ConstantOp::create(before, loc, cast<TypedAttr>(before.getZeroAttr(operand.get().getType()))));
  }
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(mapping.lookup(result));
  func::ReturnOp::create(builder, loc, returned);
}

void Folding::replace(std::vector<llvm::Expected<ConstantEvaluator::Values>> answers) {
  for (auto [values, answer] : llvm::zip_equal(wanted, answers)) {
    if (!answer) {
      mlir::emitRemark(values.front().getLoc()) << "depends on constants only, and stays for run time: " << llvm::toString(answer.takeError());
      continue;
    }
    for (auto [value, constant] : llvm::zip_equal(values, *answer)) {
      OpBuilder builder(value.getDefiningOp());
      value.replaceAllUsesWith(ConstantOp::create(builder, value.getLoc(), constant));
    }
  }
}

void Folding::tidy() {
  for (Operation *op : llvm::reverse(known))
    if (chosen.contains(op) && op->use_empty())
      op->erase();
  for (Operation *view : llvm::reverse(views)) { // there are views of views
    OpBuilder builder(view);
    Value result = view->getResult(0);
    if (!result.use_empty())
      result.replaceAllUsesWith(ConstantOp::create(builder, view->getLoc(), constants.lookup(result)));
    view->erase();
  }
  for (Operation *constant : plainConstants)
    if (constant->use_empty())
      constant->erase();
}

class FoldConstants : public PassWrapper<FoldConstants, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldConstants)
  explicit FoldConstants(const ConstantEvaluator &evaluator) : evaluator(&evaluator) {}
  StringRef getArgument() const override { return "fold-constants"; }
  StringRef getDescription() const override { return "Computes what depends on constants only"; }
  void getDependentDialects(DialectRegistry &registry) const override { evaluator->registerDialects(registry); }

private:
  void runOnOperation() override {
    CurrentWork work("fold-constants", getOperation().getLoc());
    Folding folding(getOperation());
    folding.collect();
    folding.choose();
    if (folding.isNeeded())
      folding.replace(evaluator->evaluate(folding.outline()));
    folding.tidy();
  }

  const ConstantEvaluator *evaluator;
};

} // namespace

std::unique_ptr<Pass> createFoldConstants(const ConstantEvaluator &evaluator) { return std::make_unique<FoldConstants>(evaluator); }

} // namespace dlc
