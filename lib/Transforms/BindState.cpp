// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Movement.h"
#include "dlc/Support/NodeLocation.h"
#include "dlc/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace dlc {
#define GEN_PASS_DEF_BINDSTATE
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// One INPUT=OUTPUT, where the text that a * stands for is the same on both sides.
struct Pattern {
  StringRef input, output;

  /// The name of the output for this input; nothing where the pattern is about others.
  std::optional<std::string> outputOf(StringRef name) const {
    if (!input.contains('*'))
      return name == input ? std::optional<std::string>(output.str()) : std::nullopt;
    auto [begin, end] = input.split('*');
    if (name.size() < begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
      return std::nullopt;
    auto [outputBegin, outputEnd] = output.split('*');
    return (outputBegin + name.drop_front(begin.size()).drop_back(end.size()) + outputEnd).str();
  }
};

struct Pair {
  unsigned argument, result;
};

/// The states of one function.
class StateBinding {
public:
  explicit StateBinding(func::FuncOp function)
      : function(function), context(function.getContext()),
        ret(cast<func::ReturnOp>(function.getBody().front().getTerminator())) {}

  void findAll();
  LogicalResult find(ArrayRef<Pattern> patterns, llvm::StringSet<> &used);
  LogicalResult check();
  void rewrite();

  ArrayRef<Pair> getPairs() const { return pairs; }
  StringRef inputName(unsigned i) { return nameOf(function.getArgAttrOfType<StringAttr>(i, kNameAttr)); }
  StringRef outputName(unsigned i) { return nameOf(function.getResultAttrOfType<StringAttr>(i, kNameAttr)); }
  RankedTensorType stateType(const Pair &pair);
  DimExpr getLength() const { return length; } // null where there are no states

private:
  static StringRef nameOf(StringAttr name) { return name ? name.getValue() : StringRef(); }
  ConcatOp concatOf(unsigned result) { return ret.getOperand(result).getDefiningOp<ConcatOp>(); }
  Value addedOf(const Pair &pair) { return concatOf(pair.result).getXs()[1]; }
  InFlightDiagnostic fail(const Pair &pair) {
    return mlir::emitError(ret.getOperand(pair.result).getLoc())
           << "input '" << inputName(pair.argument) << "' and output '" << outputName(pair.result)
           << "' cannot be state: ";
  }
  LogicalResult check(const Pair &pair);
  std::string ownName(StringRef name);

  func::FuncOp function;
  MLIRContext *context;
  func::ReturnOp ret;
  SmallVector<Pair> pairs;
  // Of all pairs.
  int64_t firstAxis = 0;
  DimExpr length, growth;
};

/// Every output that is an input, which nothing else uses, and more behind it along one axis.
void StateBinding::findAll() {
  for (unsigned i = 0, e = ret.getNumOperands(); i != e; ++i) {
    ConcatOp concat = concatOf(i);
    auto argument =
        concat && concat.getXs().size() == 2 ? dyn_cast<BlockArgument>(concat.getXs().front()) : BlockArgument();
    if (argument && argument.getOwner() == &function.getBody().front() && argument.hasOneUse() &&
        !function.getArgAttr(argument.getArgNumber(), kDefaultAttr) &&
        dimsOf(argument.getType())[concat.getAxis()].isSymbol() &&
        llvm::none_of(pairs, [&](const Pair &pair) { return pair.argument == argument.getArgNumber(); }))
      pairs.push_back({argument.getArgNumber(), i});
  }
}

LogicalResult StateBinding::find(ArrayRef<Pattern> patterns, llvm::StringSet<> &used) {
  for (unsigned i = 0, e = function.getNumArguments(); i != e; ++i)
    for (const Pattern &pattern : patterns) {
      std::optional<std::string> output = pattern.outputOf(inputName(i));
      if (!output)
        continue;
      used.insert(pattern.input);
      unsigned result = 0, count = function.getNumResults();
      while (result != count && outputName(result) != *output)
        ++result;
      if (result == count)
        return function.emitError() << "state '" << inputName(i) << "=" << *output << "': the model has no output '"
                                    << *output << "'";
      if (llvm::any_of(pairs, [&](const Pair &pair) { return pair.argument == i || pair.result == result; }))
        return function.emitError() << "state '" << inputName(i) << "=" << *output
                                    << "': the input or the output is part of two pairs";
      pairs.push_back({i, result});
    }
  return success();
}

LogicalResult StateBinding::check() {
  for (const Pair &pair : pairs)
    if (failed(check(pair)))
      return failure();
  if (pairs.empty())
    return success();
  // How long the states will be has to be known before a run: from the dims of its inputs.
  llvm::StringSet<> known;
  for (BlockArgument argument : function.getArguments())
    for (DimExpr dim : dimsOf(argument.getType()))
      forEachSymbol(dim, [&](StringRef name) { known.insert(name); });
  std::string unknown;
  forEachSymbol(growth, [&](StringRef name) {
    if (!known.contains(name))
      unknown = name;
  });
  if (!unknown.empty())
    return fail(pairs.front()) << "a run makes it longer by " << toString(growth) << ", and only the run knows '"
                               << unknown << "'";
  return success();
}

LogicalResult StateBinding::check(const Pair &pair) {
  Value input = function.getArgument(pair.argument);
  StringRef name = inputName(pair.argument);
  if (function.getArgAttr(pair.argument, kDefaultAttr))
    return fail(pair) << "the input has a default value";
  ConcatOp concat = concatOf(pair.result);
  if (!concat || concat.getXs().front() != input) {
    if (concat && llvm::is_contained(concat.getXs(), input))
      return fail(pair) << "the output must be Concat('" << name << "', x), with the input in front";
    SmallVector<NodeRef> nodes = nodesOf(ret.getOperand(pair.result).getLoc());
    InFlightDiagnostic error = fail(pair) << "the output must be Concat('" << name << "', x)";
    if (!nodes.empty())
      error << ", but " << nodes.front().toString() << " makes it of something else";
    return error;
  }
  if (concat.getXs().size() != 2)
    return fail(pair) << "the output joins " << concat.getXs().size() << " tensors; it must be Concat('" << name
                      << "', x)";
  int64_t axis = concat.getAxis();
  DimExpr own = dimsOf(input.getType())[axis], added = dimsOf(addedOf(pair).getType())[axis];
  if (own.getConstant())
    return fail(pair) << "the input has the fixed size " << toString(own) << " along axis " << axis
                      << ", along which a state grows; leave it open, as a named dim";
  if (!own.isSymbol())
    return fail(pair) << "along axis " << axis << ", along which a state grows, the input has the size "
                      << toString(own) << ", which is no dim with a name";
  for (auto [d, dim] : llvm::enumerate(dimsOf(input.getType()))) {
    bool isLength = false;
    forEachSymbol(dim, [&](StringRef symbol) { isLength |= symbol == own.getSymbol().getValue(); });
    if (isLength && int64_t(d) != axis)
      return fail(pair) << "its dim " << d << " is " << toString(dim) << ", and grows with it; a state grows along one axis";
  }
  if (!length) {
    firstAxis = axis;
    length = own;
    growth = added;
    return success();
  }
  if (own != length)
    return fail(pair) << "it grows along '" << toString(own) << "', and state '" << inputName(pairs.front().argument)
                      << "' along '" << toString(length) << "'; all states of a module have one length";
  if (added != growth)
    return fail(pair) << "a run makes it longer by " << toString(added) << ", and state '"
                      << inputName(pairs.front().argument) << "' by " << toString(growth);
  return success();
}

/// A name for a symbol that nothing of the function has.
std::string StateBinding::ownName(StringRef name) {
  llvm::StringSet<> taken;
  for (BlockArgument argument : function.getArguments())
    for (DimExpr dim : dimsOf(argument.getType()))
      forEachSymbol(dim, [&](StringRef symbol) { taken.insert(symbol); });
  std::string own = name.str();
  while (taken.contains(own))
    own += "_";
  return own;
}

RankedTensorType StateBinding::stateType(const Pair &pair) {
  auto type = cast<RankedTensorType>(function.getArgument(pair.argument).getType());
  SmallVector<DimExpr> dims = dimsOf(type);
  dims[concatOf(pair.result).getAxis()] =
      symbolDim(context, ownName((length.getSymbol().getValue() + "_capacity").str()));
  return tensorType(dims, type.getElementType());
}

void StateBinding::rewrite() {
  if (pairs.empty())
    return;
  std::string capacity = ownName((length.getSymbol().getValue() + "_capacity").str());
  OpBuilder builder(context);
  SmallVector<RankedTensorType> types; // before the first argument changes
  for (const Pair &pair : pairs)
    types.push_back(stateType(pair));
  for (auto [pair, type] : llvm::zip_equal(pairs, types)) {
    BlockArgument state = function.getArgument(pair.argument);
    ConcatOp concat = concatOf(pair.result);
    int64_t axis = concat.getAxis();
    Type before = state.getType();
    builder.setInsertionPoint(concat);
    Value append = AppendOp::create(builder, concat.getLoc(), type, state, addedOf(pair), axis, length);
    Value after = PrefixOp::create(builder, concat.getLoc(), concat.getType(), append, axis, addDims(length, growth));
    concat.getResult().replaceAllUsesWith(after);
    ret->setOperand(pair.result, append);
    concat.erase();
    state.setType(type);
    auto isOwn = [&](OpOperand &use) { return use.getOwner() == append.getDefiningOp() && use.getOperandNumber() == 0; };
    if (!llvm::all_of(state.getUses(), isOwn)) {
      builder.setInsertionPointToStart(&function.getBody().front());
      Value old = PrefixOp::create(builder, state.getLoc(), before, state, axis, length);
      state.replaceUsesWithIf(old, [&](OpOperand &use) { return !isOwn(use) && use.getOwner() != old.getDefiningOp(); });
    }
    function.setArgAttr(pair.argument, kStateAttr, builder.getI64IntegerAttr(axis));
    function.setResultAttr(pair.result, kStateOfAttr, builder.getI64IntegerAttr(pair.argument));
    mlir::emitRemark(append.getLoc()) << "state '" << inputName(pair.argument) << "', which output '"
                                      << outputName(pair.result) << "' extends along '" << toString(length) << "' by "
                                      << toString(growth);
  }
  function.setFunctionType(builder.getFunctionType(function.getBody().getArgumentTypes(), ret.getOperandTypes()));
  SmallVector<Attribute> symbols;
  if (auto known = function->getAttrOfType<ArrayAttr>(kSymbolsAttr))
    llvm::append_range(symbols, known);
  symbols.push_back(SymbolInfoAttr::get(context, capacity, 0, INT64_MAX, 1, false));
  function->setAttr(kSymbolsAttr, builder.getArrayAttr(symbols));
  function->setAttr(kLengthAttr,
                    builder.getDictionaryAttr({builder.getNamedAttr(kLengthSymbol, length.getSymbol()),
                                               builder.getNamedAttr(kLengthCapacity, builder.getStringAttr(capacity)),
                                               builder.getNamedAttr(kLengthGrowth, growth)}));
}

/// The type of a state, for a message and for comparing those of two functions.
std::string describe(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type.getElementType() << toString(dimsOf(type));
  return text;
}

class BindState : public impl::BindStateBase<BindState> {
public:
  using BindStateBase::BindStateBase;

private:
  void runOnOperation() override {
    if (pairs.empty())
      return;
    if (failed(bind()))
      signalPassFailure();
  }

  LogicalResult bind() {
    SmallVector<Pattern> patterns;
    bool isAuto = pairs == "auto";
    if (!isAuto && failed(parse(patterns)))
      return failure();
    SmallVector<StateBinding> bindings;
    llvm::StringSet<> used;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      StateBinding &binding = bindings.emplace_back(function);
      if (isAuto)
        binding.findAll();
      else if (failed(binding.find(patterns, used)))
        return failure();
      if (failed(binding.check()))
        return failure();
    }
    if (isAuto && llvm::all_of(bindings, [](const StateBinding &binding) { return binding.getPairs().empty(); }))
      return getOperation().emitError()
             << "there is no state: no output is Concat(P, x) of an input P with a named dim that nothing else uses";
    for (const Pattern &pattern : patterns)
      if (!used.contains(pattern.input)) {
        InFlightDiagnostic error = getOperation().emitError()
                                   << "state '" << pattern.input << "=" << pattern.output << "': no input is '"
                                   << pattern.input << "'; there are: ";
        const char *before = "";
        for (auto [binding, function] : llvm::zip_equal(bindings, getOperation().getOps<func::FuncOp>()))
          for (unsigned i = 0; i != function.getNumArguments(); ++i) {
            error << before << "'" << binding.inputName(i) << "'";
            before = ", ";
          }
        return error;
      }
    // A state of several functions is one memory.
    llvm::StringMap<std::pair<std::string, StringRef>> known;
    DimExpr length;
    for (auto [binding, function] : llvm::zip_equal(bindings, getOperation().getOps<func::FuncOp>())) {
      if (length && binding.getLength() && binding.getLength() != length)
        return function.emitError() << "the states of function '" << function.getSymName() << "' grow along '"
                                    << toString(binding.getLength()) << "', those of a function before it along '"
                                    << toString(length) << "'; all states of a module have one length";
      length = length ? length : binding.getLength();
      for (const Pair &pair : binding.getPairs()) {
        std::string type = describe(binding.stateType(pair));
        auto [other, isNew] = known.try_emplace(binding.inputName(pair.argument), type, function.getSymName());
        if (!isNew && other->second.first != type)
          return function.emitError() << "state '" << binding.inputName(pair.argument) << "' is " << other->second.first
                                      << " in function '" << other->second.second << "' and " << type
                                      << " in function '" << function.getSymName()
                                      << "'; functions of one module share a state of one name";
      }
    }
    for (StateBinding &binding : bindings)
      binding.rewrite();
    return success();
  }

  LogicalResult parse(SmallVector<Pattern> &patterns) {
    SmallVector<StringRef> words;
    StringRef(pairs).split(words, ',');
    for (StringRef word : words) {
      auto [input, output] = word.trim().split('=');
      if (input.empty() || output.empty() || output.contains('=') || input.count('*') > 1 ||
          input.count('*') != output.count('*'))
        return getOperation().emitError()
               << "'" << word
               << "' is no pair of an input and an output: INPUT=OUTPUT, with one * on each side or none";
      patterns.push_back({input, output});
    }
    return success();
  }
};

} // namespace
} // namespace dlc
