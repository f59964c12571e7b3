// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Movement.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Support/CurrentWork.h"
#include "dlc/Support/NodeLocation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace dlc {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "dlc/Lowering/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// Of so many elements of a tensor.
DimExpr bytesOf(RankedTensorType type, DimExpr elements) {
  return mulDims(elements, constantDim(type.getContext(), storageType(type).getElementTypeBitWidth() / 8));
}
DimExpr bytesOf(RankedTensorType type) { return bytesOf(type, productOfDims(type.getContext(), storageDims(type))); }

/// The type as which plan instructions read and write integers: elements of fewer than 8 bits have a byte each.
Type instructionType(Type type) {
  if (!isSubByte(type))
    return type;
  return IntegerType::get(type.getContext(), 8, cast<IntegerType>(type).getSignedness());
}

/// What a group is named for and counted as: its first op that is not element-wise.
Operation *rootOf(GroupOp group) {
  Block &body = group.getBody().front();
  for (Operation &op : body.without_terminator())
    if (cast<DlcOp>(op).role() != Role::Elementwise)
      return &op;
  return &body.front();
}

plan::KernelKind kindOf(Operation *root) {
  switch (cast<DlcOp>(root).role()) {
  case Role::Elementwise:
    return plan::KernelKind::Elementwise;
  case Role::Contraction:
    return plan::KernelKind::Contraction;
  case Role::Convolution:
    return plan::KernelKind::Conv;
  case Role::Window:
    return plan::KernelKind::Window;
  case Role::Attention:
    return plan::KernelKind::Attention;
  case Role::Reduction:
    return plan::KernelKind::Reduction;
  case Role::Movement:
    return plan::KernelKind::Movement;
  case Role::Opaque:
    return plan::KernelKind::Other;
  }
  llvm_unreachable("all roles are handled");
}

/// Whether an element-wise op takes the same constant number for every element here.
bool isNumber(OpOperand &operand) {
  return cast<DlcOp>(operand.getOwner()).form() == Form::Scalar && splatOf(operand.get());
}

/// Arithmetic operations of a run of the group; null if some op's are not known.
DimExpr flopsOf(GroupOp group) {
  DimExpr sum = constantDim(group.getContext(), 0);
  for (auto op : group.getBody().front().getOps<DlcOp>())
    if (op.role() != Role::Movement && op.form() != Form::View && op.form() != Form::Host)
      sum = addDims(sum, op.cost());
  return sum;
}

/// Bytes that a run of the group reads and writes in memory.
DimExpr trafficOf(GroupOp group) {
  DimExpr sum = constantDim(group.getContext(), 0);
  llvm::MapVector<Value, DimExpr> read;
  for (auto op : group.getBody().front().getOps<DlcOp>())
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *definition = operand.get().getDefiningOp();
      if ((definition && definition->getParentOp() == group) || !op.readsData(operand.getOperandNumber()) || isNumber(operand))
        continue;
      DimExpr bytes = bytesOf(cast<RankedTensorType>(operand.get().getType()), op.elementsRead(operand.getOperandNumber()));
      auto [known, isNew] = read.try_emplace(operand.get(), bytes);
      if (!isNew)
        known->second = maxDims(known->second, bytes);
    }
  for (auto &[value, bytes] : read)
    sum = addDims(sum, bytes);
  auto yielded = cast<YieldOp>(group.getBody().front().getTerminator()).getValues();
  for (auto [result, inner] : llvm::zip_equal(group.getResults(), yielded)) {
    auto append = inner.getDefiningOp<AppendOp>(); // writes what it appends
    sum = addDims(sum, bytesOf(cast<RankedTensorType>(append ? append.getX().getType() : result.getType())));
  }
  return sum;
}

/// One function's plan.
class Outliner {
public:
  Outliner(func::FuncOp function, unsigned &nextKernel)
      : function(function), context(function.getContext()), builder(context), nextKernel(nextKernel) {}

  LogicalResult run();

private:
  LogicalResult visit(Operation &op);
  LogicalResult visitAll(Block &block);
  LogicalResult outline(GroupOp group);
  LogicalResult outline(IfOp op);
  LogicalResult writeOutputs(func::ReturnOp op);
  Value bufferOf(Value v);
  Value fill(FromDimsOp op);
  void addReadyChecks();
  DimExpr bytesOrError(RankedTensorType type, Location loc) {
    DimExpr bytes = bytesOf(type);
    if (!bytes)
      mlir::emitError(loc) << "the bytes of a tensor of dims " << toString(dimsOf(type)) << " do not fit 64 bits";
    return bytes;
  }

  func::FuncOp function;
  MLIRContext *context;
  OpBuilder builder;
  unsigned &nextKernel;
  plan::FuncOp planFunction;
  DenseMap<Value, Value> buffers;           // tensor -> buffer register
  DenseSet<Value> states;                   // registers of states
  llvm::MapVector<Attribute, Value> constants; // one register a constant
  llvm::StringSet<> symbols;                // known at this point of the plan
  SmallVector<CheckOp> checks;              // waiting for their symbols
};

LogicalResult Outliner::run() {
  SmallVector<Attribute> inputs, outputs, stateAttrs;
  for (BlockArgument argument : function.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!name || !type)
      return function.emitError() << "argument " << argument.getArgNumber() << " has no name or no ranked type";
    for (DimExpr dim : dimsOf(type))
      forEachSymbol(dim, [&](StringRef symbol) { symbols.insert(symbol); });
    if (auto axis = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kStateAttr))
      stateAttrs.push_back(plan::StateAttr::get(context, name, type, axis.getInt()));
    else
      inputs.push_back(
          plan::ValueAttr::get(context, name, type, function.getArgAttr(argument.getArgNumber(), kDefaultAttr)));
  }
  plan::LengthAttr length;
  if (!stateAttrs.empty()) {
    auto given = function->getAttrOfType<DictionaryAttr>(kLengthAttr);
    auto symbol = given ? given.getAs<StringAttr>(kLengthSymbol) : StringAttr(),
         capacity = given ? given.getAs<StringAttr>(kLengthCapacity) : StringAttr();
    auto growth = given ? given.getAs<DimExprAttr>(kLengthGrowth) : DimExprAttr();
    if (!symbol || !capacity || !growth)
      return function.emitError() << "it has arguments that are state, and no " << kLengthAttr
                                  << " that says how long they are";
    length = plan::LengthAttr::get(context, symbol, capacity, growth);
    symbols.insert(symbol.getValue());
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    if (function.getResultAttr(i, kStateOfAttr))
      continue;
    auto name = function.getResultAttrOfType<StringAttr>(i, kNameAttr);
    if (!name || !isa<RankedTensorType>(type))
      return function.emitError() << "result " << i << " has no name or no ranked type";
    outputs.push_back(plan::ValueAttr::get(context, name, cast<RankedTensorType>(type), Attribute()));
  }
  auto symbolInfos = function->getAttrOfType<ArrayAttr>(kSymbolsAttr);
  builder.setInsertionPoint(function);
  planFunction =
      plan::FuncOp::create(builder, function.getLoc(), function.getSymName(), builder.getArrayAttr(inputs),
                           builder.getArrayAttr(outputs), symbolInfos ? symbolInfos : builder.getArrayAttr({}),
                           stateAttrs.empty() ? ArrayAttr() : builder.getArrayAttr(stateAttrs), length);
  builder.createBlock(&planFunction.getBody());
  unsigned nextInput = 0, nextState = 0;
  for (BlockArgument argument : function.getArguments()) {
    Type type = plan::BufferType::get(context);
    if (function.getArgAttr(argument.getArgNumber(), kStateAttr))
      states.insert(buffers[argument] = plan::StateOp::create(builder, argument.getLoc(), type, nextState++));
    else
      buffers[argument] = plan::InputOp::create(builder, argument.getLoc(), type, nextInput++);
  }
  return visitAll(function.getBody().front());
}

LogicalResult Outliner::visitAll(Block &block) {
  checks.assign(block.getOps<CheckOp>().begin(), block.getOps<CheckOp>().end());
  addReadyChecks();
  for (Operation &op : block)
    if (failed(visit(op)))
      return failure();
  if (!checks.empty())
    return checks.front().emitError() << "the check needs a symbol that nothing defines";
  return success();
}

/// Checks stand before everything that could rely on them: as soon as their symbols are known.
void Outliner::addReadyChecks() {
  llvm::erase_if(checks, [&](CheckOp check) {
    bool isReady = true;
    for (DimExpr e : {check.getCondition(), check.getLhs(), check.getRhs()})
      forEachSymbol(e, [&](StringRef name) { isReady &= symbols.contains(name); });
    if (!isReady)
      return false;
    std::string message;
    for (const NodeRef &node : nodesOf(check.getLoc()))
      message += node.toString() + ": ";
    plan::CheckOp::create(builder, check.getLoc(), check.getCondition(), check.getLhs(), check.getRhs(),
                          builder.getStringAttr(message + check.getMessage()));
    return true;
  });
}

/// The register that holds a tensor. Constants and values of dims get one where they are first read.
Value Outliner::bufferOf(Value v) {
  if (Value known = buffers.lookup(v))
    return known;
  Operation *definition = v.getDefiningOp();
  if (auto constant = dyn_cast<ConstantOp>(definition)) {
    Value &buffer = constants[constant.getValue()];
    if (!buffer) {
      OpBuilder front(context);
      front.setInsertionPointToStart(&planFunction.getBody().front());
      buffer = plan::ConstOp::create(front, constant.getLoc(), plan::BufferType::get(context), constant.getValue());
    }
    return buffer;
  }
  Value buffer;
  if (auto fromDims = dyn_cast<FromDimsOp>(definition))
    buffer = fill(fromDims);
  else if (auto reshape = dyn_cast<ReshapeOp>(definition)) // the same bytes under other dims
    buffer = bufferOf(reshape.getX());
  buffers[v] = buffer;
  return buffer;
}

Value Outliner::fill(FromDimsOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Value slot = plan::SlotOp::create(builder, op.getLoc(), plan::BufferType::get(context), bytesOf(type), 0, nullptr);
  plan::FillOp::create(builder, op.getLoc(), slot, instructionType(type.getElementType()), productOfDims(context, dimsOf(type)), op.getValues());
  return slot;
}

LogicalResult Outliner::visit(Operation &op) {
  CurrentWork work("outline-kernels", op.getLoc());
  if (isa<ConstantOp, FromDimsOp, CheckOp, ReshapeOp>(op))
    return success();
  if (auto group = dyn_cast<GroupOp>(op))
    return outline(group);
  if (auto branches = dyn_cast<IfOp>(op))
    return outline(branches);
  if (isa<YieldOp>(op)) // its values are taken by who looks at the branch
    return success();
  if (auto read = dyn_cast<ReadOp>(op)) {
    auto type = cast<RankedTensorType>(read.getX().getType());
    Value buffer = bufferOf(read.getX());
    for (auto [i, symbol] : llvm::enumerate(read.getSymbols().getAsRange<StringAttr>())) {
      plan::ReadOp::create(builder, read.getLoc(), buffer, TypeAttr::get(instructionType(type.getElementType())), builder.getI64IntegerAttr(i), symbol);
      symbols.insert(symbol.getValue());
    }
    addReadyChecks();
    return success();
  }
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return writeOutputs(ret);
  return op.emitError() << "'" << op.getName() << "' does not stand in a group and is no instruction";
}

LogicalResult Outliner::outline(GroupOp group) {
  Location loc = group.getLoc();
  // Operands: what the members read from outside, each once. A number that element-wise ops take is part of the code.
  llvm::MapVector<Value, unsigned> operands;
  llvm::SetVector<Operation *> numbers;
  for (Operation &op : group.getBody().front().without_terminator())
    for (OpOperand &operand : op.getOpOperands()) {
      Operation *definition = operand.get().getDefiningOp();
      bool isInner = definition && definition->getParentOp() == group;
      if (isInner || !cast<DlcOp>(op).readsData(operand.getOperandNumber()))
        continue;
      if (isNumber(operand))
        numbers.insert(definition);
      else
        operands.insert({operand.get(), operands.size()});
    }
  SmallVector<Value> sources, destinations;
  for (auto [value, number] : operands) {
    sources.push_back(bufferOf(value));
    if (!sources.back())
      return mlir::emitError(loc) << "an operand of this group has no buffer";
  }
  auto yielded = cast<YieldOp>(group.getBody().front().getTerminator()).getValues();
  for (auto [result, inner] : llvm::zip_equal(group.getResults(), yielded)) {
    if (auto append = inner.getDefiningOp<AppendOp>()) {
      // In place: the kernel writes into the state itself, and only where the state holds nothing yet. So what it held
      // before stays, and whoever reads that may do so before or behind. (The state is an operand as well, which the
      // kernel does not look at.)
      destinations.push_back(bufferOf(append.getState()));
      if (!states.contains(destinations.back()))
        return append.emitError() << "what it extends is no state of the function";
      buffers[result] = destinations.back();
      continue;
    }
    DimExpr bytes = bytesOrError(cast<RankedTensorType>(result.getType()), loc);
    if (!bytes)
      return failure();
    destinations.push_back(plan::SlotOp::create(builder, loc, plan::BufferType::get(context), bytes, 0, nullptr));
    buffers[result] = destinations.back();
  }

  Operation *root = rootOf(group);
  std::string name = ("k" + Twine(nextKernel++) + "_" + root->getName().stripDialect()).str();
  OpBuilder outside(planFunction);
  auto kernel = plan::KernelOp::create(outside, loc, name, plan::KindAttr::get(context, kindOf(root), 0), operands.size(),
                                       destinations.size(), 0, nullptr, nullptr, nullptr, nullptr);
  Block *body = outside.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (auto [value, number] : operands)
    mapping.map(value, body->addArgument(value.getType(), value.getLoc()));
  auto clone = cast<GroupOp>(outside.clone(*group, mapping));
  OpBuilder inside = OpBuilder::atBlockBegin(&clone.getBody().front());
  for (Operation *number : numbers) {
    Operation *own = inside.clone(*number);
    for (OpOperand &use : llvm::make_early_inc_range(number->getResult(0).getUses()))
      if (use.getOwner()->getParentOp() == clone)
        use.set(own->getResult(0));
  }
  // Operands whose values the shape rules have used up are not passed: any tensor of their type stands in for them.
  outside.setInsertionPointToStart(&clone.getBody().front());
  for (Operation &op : clone.getBody().front().without_terminator())
    for (OpOperand &operand : op.getOpOperands())
      if (auto dlcOp = cast<DlcOp>(op); !dlcOp.readsData(operand.getOperandNumber())) {
        auto type = cast<RankedTensorType>(operand.get().getType());
        operand.set(ConstantOp::create(outside, loc, cast<TypedAttr>(outside.getZeroAttr(type))));
      }
  outside.setInsertionPointToEnd(body);
  plan::YieldOp::create(outside, loc, clone->getResults());
  auto launch = plan::LaunchOp::create(builder, loc, FlatSymbolRefAttr::get(context, name), sources, destinations, builder.getArrayAttr({}),
                                       builder.getArrayAttr({}), nullptr, nullptr);
  if (DimExpr flops = flopsOf(group))
    launch->setAttr(plan::kFlopsAttr, flops);
  if (DimExpr traffic = trafficOf(group))
    launch->setAttr(plan::kTrafficAttr, traffic);
  return success();
}

/// What a branch makes known (buffers, symbols) is known in it alone.
LogicalResult Outliner::outline(IfOp op) {
  Location loc = op.getLoc();
  if (!op.getResolvedCondition())
    return op.emitError() << "its condition is not resolved; run infer-shapes";
  SmallVector<Type> types(op.getNumResults(), plan::BufferType::get(context));
  auto branches = plan::IfOp::create(builder, loc, types, *op.getResolvedCondition());
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), branches->getRegions())) {
    OpBuilder::InsertionGuard guard(builder);
    auto outerBuffers = buffers;
    auto outerSymbols = symbols;
    auto outerChecks = std::move(checks);
    builder.createBlock(&to);
    if (failed(visitAll(from.front())))
      return failure();
    SmallVector<Value> views;
    for (Value value : cast<YieldOp>(from.front().getTerminator()).getValues()) {
      Value buffer = bufferOf(value);
      DimExpr bytes = bytesOrError(cast<RankedTensorType>(value.getType()), loc);
      if (!buffer || !bytes)
        return op.emitError() << "a value of a branch has no buffer";
      views.push_back(plan::ViewOp::create(builder, loc, plan::BufferType::get(context), buffer, constantDim(context, 0), bytes));
    }
    plan::YieldOp::create(builder, loc, views);
    buffers = std::move(outerBuffers);
    symbols = std::move(outerSymbols);
    checks = std::move(outerChecks);
  }
  for (auto [result, buffer] : llvm::zip_equal(op.getResults(), branches.getBuffers()))
    buffers[result] = buffer;
  return success();
}

LogicalResult Outliner::writeOutputs(func::ReturnOp op) {
  unsigned next = 0;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    auto type = cast<RankedTensorType>(value.getType());
    Value buffer = bufferOf(value);
    if (!buffer)
      return op.emitError() << "result " << i << " has no buffer";
    if (auto argument = function.getResultAttrOfType<IntegerAttr>(i, kStateOfAttr)) {
      auto index = argument.getValue().getZExtValue();
      if (index >= function.getNumArguments() || buffers.lookup(function.getArgument(index)) != buffer ||
          !states.contains(buffer))
        return op.emitError() << "result " << i << " is not what a state holds after the run";
      continue; // it is there already
    }
    unsigned number = next++;
    DimExpr bytes = bytesOrError(type, op.getLoc());
    if (!bytes)
      return failure();
    SmallVector<Attribute> dims;
    for (DimExpr dim : dimsOf(type))
      dims.push_back(dim);
    auto makeOutput = [&](OpBuilder &at) {
      return plan::OutputOp::create(at, op.getLoc(), plan::BufferType::get(context), number, at.getArrayAttr(dims),
                                    bytes);
    };
    // A value of its own is computed where the output belongs; one that is an input, a constant or another output is copied.
    if (auto slot = buffer.getDefiningOp<plan::SlotOp>()) {
      OpBuilder at(slot);
      Value output = makeOutput(at);
      slot.getBuffer().replaceAllUsesWith(output);
      for (auto &[tensor, known] : buffers)
        if (known == slot.getBuffer())
          known = output;
      slot.erase();
      continue;
    }
    Value output = makeOutput(builder);
    plan::CopyOp::create(builder, op.getLoc(), output, buffer, bytes);
  }
  plan::ReturnOp::create(builder, op.getLoc());
  return success();
}

class OutlineKernels : public impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    unsigned nextKernel = 0;
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (failed(Outliner(function, nextKernel).run()))
        return signalPassFailure();
      function.erase();
    }
  }
};

} // namespace
} // namespace dlc
