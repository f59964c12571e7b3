// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Plan/Serialize.h"
#include "dlc/Support/NodeLocation.h"
#include "dlc/Target/Target.h"
#include "dlcrt/format.h"
#include "dlcrt/kernel_abi.h"
#include "dlcrt/runtime.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"
#include <set>

using namespace mlir;

namespace dlc {

std::optional<int32_t> dtypeOf(Type type) {
  if (type.isF32())
    return DLCRT_DTYPE_FLOAT32;
  if (type.isF64())
    return DLCRT_DTYPE_FLOAT64;
  if (type.isF16())
    return DLCRT_DTYPE_FLOAT16;
  if (type.isBF16())
    return DLCRT_DTYPE_BFLOAT16;
  if (isa<Float8E4M3FNType>(type))
    return DLCRT_DTYPE_FLOAT8E4M3FN;
  if (isa<Float8E4M3FNUZType>(type))
    return DLCRT_DTYPE_FLOAT8E4M3FNUZ;
  if (isa<Float8E5M2Type>(type))
    return DLCRT_DTYPE_FLOAT8E5M2;
  if (isa<Float8E5M2FNUZType>(type))
    return DLCRT_DTYPE_FLOAT8E5M2FNUZ;
  if (isa<Float8E8M0FNUType>(type))
    return DLCRT_DTYPE_FLOAT8E8M0;
  if (isa<Float4E2M1FNType>(type))
    return DLCRT_DTYPE_FLOAT4E2M1;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return DLCRT_DTYPE_BOOL;
  case 2:
    return isUnsigned ? DLCRT_DTYPE_UINT2 : DLCRT_DTYPE_INT2;
  case 4:
    return isUnsigned ? DLCRT_DTYPE_UINT4 : DLCRT_DTYPE_INT4;
  case 8:
    return isUnsigned ? DLCRT_DTYPE_UINT8 : DLCRT_DTYPE_INT8;
  case 16:
    return isUnsigned ? DLCRT_DTYPE_UINT16 : DLCRT_DTYPE_INT16;
  case 32:
    return isUnsigned ? DLCRT_DTYPE_UINT32 : DLCRT_DTYPE_INT32;
  case 64:
    return isUnsigned ? DLCRT_DTYPE_UINT64 : DLCRT_DTYPE_INT64;
  default:
    return std::nullopt;
  }
}

namespace {

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// A section in the making. Only on little-endian hosts is memory laid out as the file is.
static_assert(llvm::endianness::native == llvm::endianness::little);

class Bytes {
public:
  template <typename T> void append(const T &value) {
    const char *from = reinterpret_cast<const char *>(&value);
    data.append(from, from + sizeof(T));
  }
  template <typename T> void appendAll(ArrayRef<T> values) {
    const char *from = reinterpret_cast<const char *>(values.data());
    data.append(from, from + values.size() * sizeof(T));
  }
  void align(uint64_t alignment) { data.resize(llvm::alignTo(data.size(), alignment)); }
  uint64_t size() const { return data.size(); }
  StringRef str() const { return StringRef(data.data(), data.size()); }
  template <typename T> T &at(uint64_t offset) { return *reinterpret_cast<T *>(data.data() + offset); }
  ArrayRef<char> getData() const { return data; }

private:
  SmallVector<char, 0> data;
};

class Strings {
public:
  Strings() { bytes.append('\0'); }
  uint32_t add(StringRef text) {
    if (text.empty())
      return 0;
    auto [entry, isNew] = offsets.try_emplace(text, bytes.size());
    if (isNew) {
      bytes.appendAll(ArrayRef(text.data(), text.size()));
      bytes.append('\0');
    }
    return entry->second;
  }
  Bytes bytes;

private:
  llvm::StringMap<uint32_t> offsets;
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

class ExprPool {
public:
  /// Numbers of symbols; a missing one makes `add` fail.
  llvm::StringMap<int64_t> symbols;
  SmallVector<dlcrt_expr_node> nodes;

  /// Other symbols from here on; nodes that are there stay.
  void start() {
    symbols.clear();
    indices.clear();
  }
  std::optional<uint32_t> find(DimExpr e) const {
    auto found = indices.find(e);
    return found == indices.end() ? std::nullopt : std::optional<uint32_t>(found->second);
  }
  /// DLCRT_NONE when a symbol has no number.
  uint32_t add(DimExpr e) {
    if (std::optional<uint32_t> known = find(e))
      return *known;
    bool hasValue = e.getKind() == DimKind::Const || e.getKind() == DimKind::ScaledFloor;
    dlcrt_expr_node node = {static_cast<uint32_t>(e.getKind()), DLCRT_NONE, DLCRT_NONE, DLCRT_NONE, DLCRT_NONE, 0, hasValue ? e.getValue() : 0};
    SmallVector<uint32_t, 4> operands;
    for (Attribute operand : e.getOperands()) {
      operands.push_back(add(cast<DimExpr>(operand)));
      if (operands.back() == DLCRT_NONE)
        return DLCRT_NONE;
    }
    if (e.isSymbol()) {
      auto number = symbols.find(e.getSymbol().getValue());
      if (number == symbols.end())
        return DLCRT_NONE;
      node.value = number->second;
    } else if (e.getKind() == DimKind::Add || e.getKind() == DimKind::Mul) { // of two in the file
      uint32_t left = operands[0];
      for (uint32_t right : ArrayRef(operands).drop_front()) {
        node.a = left;
        node.b = right;
        nodes.push_back(node);
        left = nodes.size() - 1;
      }
      return indices[e] = left;
    } else {
      uint32_t *fields[] = {&node.a, &node.b, &node.c, &node.d};
      for (auto [i, operand] : llvm::enumerate(operands))
        *fields[i] = operand;
    }
    nodes.push_back(node);
    return indices[e] = nodes.size() - 1;
  }

private:
  DenseMap<Attribute, uint32_t> indices;
};

//===----------------------------------------------------------------------===//
// The writer
//===----------------------------------------------------------------------===//

llvm::Error failed(const Twine &message) { return llvm::createStringError("cannot write the module: " + message); }

class ModuleWriter {
public:
  llvm::Error write(ArrayRef<ModuleOp> variants, llvm::raw_ostream &os);

private:
  friend class PlanWriter;
  llvm::Expected<uint32_t> constant(Attribute value);
  llvm::Error function(plan::FuncOp op);
  llvm::Error variant(ModuleOp module);
  llvm::Error states(plan::FuncOp op, uint32_t number);
  Bytes stateSection();
  uint32_t debugEntry(Location loc);
  void emit(llvm::raw_ostream &os);

  Strings strings;
  // Functions.
  SmallVector<dlcrt_function_desc> functions;
  SmallVector<dlcrt_symbol_desc> symbols;
  SmallVector<dlcrt_value_desc> values;
  SmallVector<uint32_t> dims;
  ExprPool functionPool;
  llvm::StringMap<uint32_t> functionNumbers;
  // States.
  plan::LengthAttr length; // of the first function that has some
  SmallVector<std::pair<plan::StateAttr, dlcrt_state_desc>> stateDescs;
  llvm::StringMap<uint32_t> stateNumbers;
  SmallVector<dlcrt_symbol_desc> stateSymbols;
  SmallVector<StringRef> stateSymbolNames;
  SmallVector<uint32_t> stateDims;
  ExprPool statePool;
  struct StateFunction {
    dlcrt_state_function desc;
    SmallVector<uint32_t> states;
    llvm::StringMap<int64_t> symbols; // of the function
  };
  SmallVector<StateFunction> stateFunctions;
  // Variants.
  SmallVector<dlcrt_variant_desc> variantDescs;
  SmallVector<dlcrt_kernel_desc> kernels;
  std::set<uint32_t> imports;
  Bytes plans, code;
  // Constants: their bytes are written straight from where they lie.
  SmallVector<dlcrt_constant> constants;
  SmallVector<std::pair<Attribute, ConstantBytes>> constantData;
  std::map<std::array<uint8_t, 16>, uint32_t> constantNumbers;
  DenseMap<Attribute, uint32_t> constantOfAttr;
  uint64_t constBytes = 0;
  // Debug.
  SmallVector<dlcrt_debug_entry> debug;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> debugNumbers;
};

/// Symbols of a function in the order of the module: those of the inputs' dims, as they appear, then those of its
/// states.
SmallVector<StringRef> symbolsOf(plan::FuncOp op) {
  llvm::SetVector<StringRef> names;
  auto add = [&](DimExpr e) { forEachSymbol(e, [&](StringRef name) { names.insert(name); }); };
  for (auto input : op.getInputs().getAsRange<plan::ValueAttr>())
    llvm::for_each(dimsOf(input.getType()), add);
  if (op.getStates())
    for (auto state : op.getStates()->getAsRange<plan::StateAttr>())
      llvm::for_each(dimsOf(state.getType()), add);
  if (plan::LengthAttr length = op.getLengthAttr())
    names.insert(length.getSymbol().getValue());
  return names.takeVector();
}

llvm::Error ModuleWriter::function(plan::FuncOp op) {
  auto [known, isNew] = functionNumbers.try_emplace(op.getSymName(), functions.size());
  if (!isNew) // another variant of it
    return llvm::Error::success();
  dlcrt_function_desc desc = {};
  desc.name = strings.add(op.getSymName());
  desc.first_symbol = symbols.size();
  functionPool.start();
  for (StringRef name : symbolsOf(op)) {
    dlcrt_symbol_desc symbol = {strings.add(name), 0, 0, INT64_MAX, 1};
    for (auto info : op.getSymbols().getAsRange<SymbolInfoAttr>())
      if (info.getName() == name)
        symbol = {symbol.name, info.getAnonymous() ? DLCRT_SYMBOL_ANONYMOUS : 0u, info.getMin(), info.getMax(), info.getDivisor()};
    functionPool.symbols[name] = symbols.size() - desc.first_symbol;
    symbols.push_back(symbol);
  }
  desc.symbol_count = symbols.size() - desc.first_symbol;
  auto addValue = [&](plan::ValueAttr value) -> llvm::Error {
    dlcrt_value_desc v = {};
    v.name = strings.add(value.getName());
    std::optional<int32_t> dtype = dtypeOf(value.getType().getElementType());
    if (!dtype)
      return failed("'" + value.getName().getValue() + "' has an element type that a module cannot hold");
    v.dtype = *dtype;
    v.rank = value.getType().getRank();
    v.default_constant = v.alias = DLCRT_NONE;
    SmallVector<uint32_t> nodes;
    for (DimExpr dim : dimsOf(value.getType()))
      nodes.push_back(functionPool.add(dim));
    if (llvm::is_contained(nodes, DLCRT_NONE)) {
      v.flags |= DLCRT_VALUE_LATE;
      v.first_dim = DLCRT_NONE;
    } else {
      v.first_dim = dims.size();
      llvm::append_range(dims, nodes);
    }
    if (value.getDefaultValue()) {
      llvm::Expected<uint32_t> number = constant(value.getDefaultValue());
      if (!number)
        return number.takeError();
      v.default_constant = *number;
      v.flags |= DLCRT_VALUE_OPTIONAL;
    }
    values.push_back(v);
    return llvm::Error::success();
  };
  desc.first_input = values.size();
  for (auto input : op.getInputs().getAsRange<plan::ValueAttr>())
    if (llvm::Error error = addValue(input))
      return error;
  desc.input_count = values.size() - desc.first_input;
  desc.first_output = values.size();
  for (auto output : op.getOutputs().getAsRange<plan::ValueAttr>())
    if (llvm::Error error = addValue(output))
      return error;
  desc.output_count = values.size() - desc.first_output;
  functions.push_back(desc);
  return op.getStates() ? states(op, functions.size() - 1) : llvm::Error::success();
}

/// The states of a function, whose symbols are those of the pool now. Functions share a state of one name.
llvm::Error ModuleWriter::states(plan::FuncOp op, uint32_t number) {
  plan::LengthAttr own = op.getLengthAttr();
  if (!own)
    return failed("function '" + op.getSymName() + "' has states, but not how long they are");
  if (length && (length.getSymbol() != own.getSymbol() || length.getCapacity() != own.getCapacity()))
    return failed("the states of function '" + op.getSymName() + "' grow along '" + own.getSymbol().getValue() +
                  "', those of another along '" + length.getSymbol().getValue() + "'");
  auto addSymbol = [&](StringRef name) {
    if (!statePool.symbols.try_emplace(name, stateSymbolNames.size()).second)
      return;
    stateSymbolNames.push_back(name);
    stateSymbols.push_back(symbols[functions[number].first_symbol + functionPool.symbols.lookup(name)]);
  };
  if (!length)
    addSymbol(own.getCapacity()); // the first of all
  length = own;
  StateFunction &use = stateFunctions.emplace_back();
  use.symbols = functionPool.symbols;
  use.desc.function = number;
  use.desc.length_symbol = functionPool.symbols.lookup(own.getSymbol());
  use.desc.growth = functionPool.add(own.getGrowth());
  if (use.desc.growth == DLCRT_NONE)
    return failed("'" + toString(own.getGrowth()) + "', by which states of function '" + op.getSymName() +
                  "' grow, needs a symbol of no input");
  for (auto state : op.getStates()->getAsRange<plan::StateAttr>()) {
    auto [known, isNew] = stateNumbers.try_emplace(state.getName(), stateDescs.size());
    use.states.push_back(known->second);
    if (!isNew) {
      if (stateDescs[known->second].first != state)
        return failed("state '" + state.getName().getValue() + "' has another type in function '" + op.getSymName() +
                      "' than in one before it");
      continue;
    }
    std::optional<int32_t> dtype = dtypeOf(state.getType().getElementType());
    SmallVector<DimExpr> all = dimsOf(state.getType());
    if (!dtype || isSubByte(state.getType().getElementType()) || state.getAxis() < 0 ||
        state.getAxis() >= static_cast<int64_t>(all.size()))
      return failed("state '" + state.getName().getValue() +
                    "' has an element type or an axis that a state cannot have");
    dlcrt_state_desc desc = {strings.add(state.getName()),           static_cast<uint32_t>(*dtype),
                             static_cast<uint32_t>(all.size()),      static_cast<uint32_t>(stateDims.size()),
                             static_cast<uint32_t>(state.getAxis()), 0};
    for (DimExpr dim : all) {
      forEachSymbol(dim, addSymbol);
      stateDims.push_back(statePool.add(dim));
    }
    stateDescs.push_back({state, desc});
  }
  return llvm::Error::success();
}

Bytes ModuleWriter::stateSection() {
  Bytes bytes;
  SmallVector<uint32_t> numbers;
  for (StateFunction &use : stateFunctions) {
    use.desc.first_symbol = numbers.size();
    for (StringRef name : stateSymbolNames) {
      auto found = use.symbols.find(name);
      numbers.push_back(found == use.symbols.end() ? DLCRT_NONE : found->second);
    }
    use.desc.first_state = numbers.size();
    use.desc.state_count = use.states.size();
    llvm::append_range(numbers, use.states);
  }
  bytes.append(dlcrt_states_header{static_cast<uint32_t>(stateDescs.size()), static_cast<uint32_t>(stateSymbols.size()),
                                   static_cast<uint32_t>(stateFunctions.size()),
                                   static_cast<uint32_t>(statePool.nodes.size()),
                                   static_cast<uint32_t>(stateDims.size()), static_cast<uint32_t>(numbers.size())});
  for (const auto &[attribute, desc] : stateDescs)
    bytes.append(desc);
  bytes.appendAll(ArrayRef(stateSymbols));
  for (const StateFunction &use : stateFunctions)
    bytes.append(use.desc);
  bytes.appendAll(ArrayRef(statePool.nodes));
  bytes.appendAll(ArrayRef(stateDims));
  bytes.appendAll(ArrayRef(numbers));
  bytes.align(8);
  return bytes;
}

llvm::Expected<uint32_t> ModuleWriter::constant(Attribute value) {
  if (auto known = constantOfAttr.find(value); known != constantOfAttr.end())
    return known->second;
  std::optional<ConstantBytes> bytes = constantBytes(value);
  if (!bytes)
    return failed("the bytes of a constant are not there (a weights file is missing?)");
  if (bytes->isSplat) {
    ArrayRef<char> element = bytes->owned.empty() ? bytes->data : ArrayRef<char>(bytes->owned);
    SmallVector<char> repeated;
    for (int64_t i = 0, e = cast<DenseElementsAttr>(value).getNumElements(); i != e; ++i)
      llvm::append_range(repeated, element);
    bytes->owned = std::move(repeated);
    bytes->isSplat = false;
    bytes->data = {};
  }
  ArrayRef<char> data = bytes->owned.empty() ? bytes->data : ArrayRef<char>(bytes->owned);
  auto content = llvm::BLAKE3::hash<16>(ArrayRef(reinterpret_cast<const uint8_t *>(data.data()), data.size()));
  auto [entry, isNew] = constantNumbers.try_emplace(content, constants.size());
  constantOfAttr[value] = entry->second;
  if (!isNew)
    return entry->second;
  dlcrt_constant desc = {constBytes, data.size(), {}};
  llvm::copy(content, desc.content);
  constants.push_back(desc);
  constBytes = llvm::alignTo(constBytes + data.size(), 64);
  constantData.push_back({value, std::move(*bytes)});
  return entry->second;
}

uint32_t ModuleWriter::debugEntry(Location loc) {
  std::string names, types;
  for (auto [i, node] : llvm::enumerate(nodesOf(loc))) {
    names += (i ? "\n" : "") + (node.name.empty() ? "#" + std::to_string(node.index) : node.name);
    types += (i ? "\n" : "") + node.opType;
  }
  if (types.empty())
    return DLCRT_NONE;
  dlcrt_debug_entry entry = {strings.add(names), strings.add(types)};
  auto [known, isNew] = debugNumbers.try_emplace({entry.node_names, entry.op_types}, debug.size());
  if (isNew)
    debug.push_back(entry);
  return known->second;
}

//===----------------------------------------------------------------------===//
// One plan
//===----------------------------------------------------------------------===//

class PlanWriter {
public:
  PlanWriter(ModuleWriter &module, plan::FuncOp op, const llvm::StringMap<uint32_t> &kernels) : module(module), op(op), kernels(kernels) {}
  llvm::Error write();

private:
  llvm::Error block(Region &region);
  llvm::Error instruction(Operation &op);

  /// Starts an instruction; `finish` sets its length.
  template <typename T> uint64_t start(uint16_t opcode, T value) {
    uint64_t offset = out.size();
    value.head = {opcode, 0, 0};
    out.append(value);
    return offset;
  }
  void finish(uint64_t offset) {
    out.align(8);
    out.at<dlcrt_instr>(offset).bytes = out.size() - offset;
  }
  template <typename T> void whole(uint16_t opcode, T value) { finish(start(opcode, value)); }

  uint32_t define(Value buffer) {
    auto [entry, isNew] = buffers.try_emplace(buffer, bufferCount); // there already: a view that a branch yields
    bufferCount += isNew;
    return entry->second;
  }
  uint32_t use(Value buffer) { return buffers.lookup(buffer); }
  uint32_t expr(DimExpr e) {
    std::optional<uint32_t> index = pool.find(e);
    if (!index)
      missing = e;
    return index.value_or(DLCRT_NONE);
  }
  uint32_t dtype(Type type) { return dtypeOf(type).value_or(DLCRT_DTYPE_UNDEFINED); }

  ModuleWriter &module;
  plan::FuncOp op;
  const llvm::StringMap<uint32_t> &kernels;
  ExprPool pool;
  DenseMap<Value, uint32_t> buffers;
  uint32_t bufferCount = 0;
  Bytes out;
  dlcrt_plan_header header = {};
  DimExpr missing;
};

llvm::Error PlanWriter::write() {
  for (StringRef name : symbolsOf(op))
    pool.symbols.try_emplace(name, pool.symbols.size());
  unsigned functionSymbols = pool.symbols.size();
  op.walk([&](Operation *inner) {
    if (auto read = dyn_cast<plan::ReadOp>(inner))
      pool.symbols.try_emplace(read.getSymbol(), pool.symbols.size());
    else if (auto loop = dyn_cast<plan::LoopOp>(inner))
      pool.symbols.try_emplace(loop.getIteration(), pool.symbols.size());
  });
  if (llvm::Error error = block(op.getBody()))
    return error;
  header.late_symbol_count = pool.symbols.size() - functionSymbols;
  header.expr_count = pool.nodes.size();
  header.buffer_count = bufferCount;
  header.instruction_bytes = out.size();
  module.plans.append(header);
  module.plans.appendAll(ArrayRef(pool.nodes));
  module.plans.appendAll(out.getData());
  return llvm::Error::success();
}

llvm::Error PlanWriter::block(Region &region) {
  for (Operation &op : region.getOps()) {
    if (llvm::Error error = instruction(op))
      return error;
    if (missing)
      return failed("an instruction uses '" + toString(missing) + "', which no plan.dim before it evaluates");
  }
  return llvm::Error::success();
}

llvm::Error PlanWriter::instruction(Operation &inner) {
  if (auto i = dyn_cast<plan::DimOp>(inner)) {
    uint32_t first = pool.nodes.size();
    for (auto e : i.getValues().getAsRange<DimExpr>())
      if (pool.add(e) == DLCRT_NONE)
        return failed("'" + toString(e) + "' needs a symbol that nothing defines");
    whole(DLCRT_OP_DIM, dlcrt_instr_dim{{}, first, static_cast<uint32_t>(pool.nodes.size()) - first});
  } else if (auto i = dyn_cast<plan::ConstOp>(inner)) {
    llvm::Expected<uint32_t> number = module.constant(i.getValue());
    if (!number)
      return number.takeError();
    whole(DLCRT_OP_CONST, dlcrt_instr_const{{}, define(i.getBuffer()), *number, static_cast<uint32_t>(i.getDevice()), 0});
  } else if (auto i = dyn_cast<plan::InputOp>(inner)) {
    whole(DLCRT_OP_INPUT, dlcrt_instr_input{{}, define(i.getBuffer()), static_cast<uint32_t>(i.getIndex())});
  } else if (auto i = dyn_cast<plan::StateOp>(inner)) {
    ArrayAttr states = op.getStatesAttr();
    if (!states || i.getIndex() >= states.size())
      return failed("function '" + op.getSymName() + "' has no state " + Twine(i.getIndex()));
    uint32_t number = module.stateNumbers.lookup(cast<plan::StateAttr>(states[i.getIndex()]).getName());
    whole(DLCRT_OP_STATE, dlcrt_instr_state{{}, define(i.getBuffer()), number});
  } else if (auto i = dyn_cast<plan::OutputOp>(inner)) {
    auto dims = llvm::to_vector(i.getDims().getAsRange<DimExpr>());
    uint64_t at = start(DLCRT_OP_OUTPUT, dlcrt_instr_output{{}, define(i.getBuffer()), static_cast<uint32_t>(i.getIndex()), expr(i.getBytes()),
                                                            static_cast<uint32_t>(dims.size())});
    for (DimExpr dim : dims)
      out.append(expr(dim));
    finish(at);
  } else if (auto i = dyn_cast<plan::SlotOp>(inner)) {
    plan::PlacementAttr placement = i.getPlacementAttr();
    if (!placement)
      return failed("a slot has no placement; run assign-slots");
    dlcrt_instr_slot slot = {{}, define(i.getBuffer()), static_cast<uint32_t>(placement.getSlotClass()), static_cast<uint32_t>(i.getDevice()),
                             expr(i.getBytes()), static_cast<uint32_t>(placement.getFirstStage()), static_cast<uint32_t>(placement.getLastStage()),
                             static_cast<uint64_t>(placement.getOffset())};
    if (placement.getSlotClass() == plan::SlotClass::Symbolic)
      ++header.symbolic_slot_count;
    else if (placement.getSlotClass() == plan::SlotClass::Late)
      ++header.late_slot_count;
    else if (i.getDevice() < 2)
      header.fixed_bytes[i.getDevice()] = std::max<uint64_t>(header.fixed_bytes[i.getDevice()],
                                                             slot.offset + llvm::alignTo(*i.getBytes().getConstant(), DLCRT_BUFFER_ALIGNMENT));
    whole(DLCRT_OP_SLOT, slot);
  } else if (auto i = dyn_cast<plan::ViewOp>(inner)) {
    uint32_t source = use(i.getSource());
    whole(DLCRT_OP_VIEW, dlcrt_instr_view{{}, define(i.getBuffer()), source, expr(i.getOffset()), expr(i.getBytes())});
  } else if (auto i = dyn_cast<plan::CheckOp>(inner)) {
    whole(DLCRT_OP_CHECK, dlcrt_instr_check{{}, expr(i.getCondition()), module.strings.add(i.getMessage()), expr(i.getLhs()), expr(i.getRhs())});
  } else if (auto i = dyn_cast<plan::ReadOp>(inner)) {
    whole(DLCRT_OP_READ, dlcrt_instr_read{{}, use(i.getSource()), dtype(i.getType()), expr(constantDim(op.getContext(), i.getIndex())),
                                          static_cast<uint32_t>(pool.symbols.lookup(i.getSymbol()))});
  } else if (auto i = dyn_cast<plan::LaunchOp>(inner)) {
    auto kernel = kernels.find(i.getKernel());
    if (kernel == kernels.end() || !i.getTiles())
      return failed("a launch of '" + i.getKernel() + "' has no kernel or no number of tiles");
    auto exprAttr = [&](StringRef name) {
      auto e = i->getAttrOfType<DimExpr>(name);
      return e ? expr(e) : DLCRT_NONE;
    };
    dlcrt_instr_launch launch = {{},
                                 kernel->second,
                                 static_cast<uint32_t>(i.getDevice()),
                                 expr(*i.getTiles()),
                                 i.getScratch() ? expr(*i.getScratch()) : DLCRT_NONE,
                                 static_cast<uint32_t>(i.getSources().size() + i.getDestinations().size()),
                                 static_cast<uint32_t>(i.getScalars().size()),
                                 module.debugEntry(i.getLoc()),
                                 exprAttr(plan::kFlopsAttr),
                                 exprAttr(plan::kTrafficAttr),
                                 0};
    uint64_t at = start(DLCRT_OP_LAUNCH, launch);
    for (ValueRange list : {ValueRange(i.getSources()), ValueRange(i.getDestinations())})
      for (Value buffer : list)
        out.append(use(buffer));
    for (auto e : i.getScalars().getAsRange<DimExpr>())
      out.append(expr(e));
    finish(at);
  } else if (auto i = dyn_cast<plan::CopyOp>(inner)) {
    whole(DLCRT_OP_COPY, dlcrt_instr_copy{{}, use(i.getDestination()), use(i.getSource()), expr(i.getBytes()), 0});
  } else if (auto i = dyn_cast<plan::FillOp>(inner)) {
    auto list = llvm::to_vector(i.getValues().getAsRange<DimExpr>());
    uint64_t at = start(DLCRT_OP_FILL, dlcrt_instr_fill{{}, use(i.getDestination()), dtype(i.getType()), expr(i.getElements()),
                                                        static_cast<uint32_t>(list.size())});
    for (DimExpr e : list)
      out.append(expr(e));
    finish(at);
  } else if (auto i = dyn_cast<plan::IfOp>(inner)) {
    // Both branches leave a result in the same register.
    for (Value result : i.getBuffers())
      for (Region &region : i->getRegions()) {
        Value yielded = region.front().getTerminator()->getOperand(cast<OpResult>(result).getResultNumber());
        auto view = yielded.getDefiningOp<plan::ViewOp>();
        if (!view || view->getParentRegion() != &region || !buffers.try_emplace(yielded, define(result)).second)
          return failed("a branch yields a buffer that is no view of its own");
      }
    uint64_t at = start(DLCRT_OP_IF, dlcrt_instr_if{{}, expr(i.getCondition()), 0, 0, 0});
    uint64_t begin = out.size();
    if (llvm::Error error = block(i.getThenBlock()))
      return error;
    uint64_t middle = out.size();
    if (llvm::Error error = block(i.getElseBlock()))
      return error;
    out.at<dlcrt_instr_if>(at).then_bytes = middle - begin;
    out.at<dlcrt_instr_if>(at).else_bytes = out.size() - middle;
    finish(at);
  } else if (auto i = dyn_cast<plan::LoopOp>(inner)) {
    uint32_t condition = i.getCondition() ? pool.symbols.lookup(*i.getCondition()) : DLCRT_NONE;
    uint64_t at = start(DLCRT_OP_LOOP, dlcrt_instr_loop{{}, i.getTrip() ? expr(*i.getTrip()) : DLCRT_NONE,
                                                        static_cast<uint32_t>(pool.symbols.lookup(i.getIteration())), condition, 0});
    uint64_t begin = out.size();
    if (llvm::Error error = block(i.getBody()))
      return error;
    out.at<dlcrt_instr_loop>(at).body_bytes = out.size() - begin;
    finish(at);
  } else if (auto i = dyn_cast<plan::CallOp>(inner)) {
    uint64_t at = start(DLCRT_OP_CALL, dlcrt_instr_call{{}, module.strings.add(i.getDomain()), module.strings.add(i.getName()),
                                                        static_cast<uint32_t>(i.getVersion()), module.strings.add(i.getSettings()),
                                                        static_cast<uint32_t>(i.getSources().size()),
                                                        static_cast<uint32_t>(i.getDestinations().size())});
    SmallVector<Value> values(i.getSources());
    llvm::append_range(values, i.getDestinations());
    for (auto [value, type] : llvm::zip_equal(values, i.getTypes().getAsValueRange<TypeAttr>())) {
      auto tensor = cast<RankedTensorType>(type);
      out.append(use(value));
      out.append(dtype(tensor.getElementType()));
      out.append(static_cast<uint32_t>(tensor.getRank()));
      for (DimExpr dim : dimsOf(tensor))
        out.append(expr(dim));
    }
    finish(at);
  } else if (auto i = dyn_cast<plan::StageOp>(inner)) {
    header.stage_count = std::max<uint32_t>(header.stage_count, i.getStage() + 1);
    whole(DLCRT_OP_STAGE, dlcrt_instr_stage{{}, static_cast<uint32_t>(i.getStage()), 0});
  } else if (isa<plan::YieldOp>(inner)) { // of a branch: its views have set the registers
  } else if (isa<plan::ReturnOp>(inner)) {
    uint64_t at = out.size();
    out.append(dlcrt_instr{DLCRT_OP_RETURN, 0, 0});
    finish(at);
  } else {
    return failed("'" + inner.getName().getStringRef() + "' is no instruction");
  }
  return llvm::Error::success();
}

llvm::Error ModuleWriter::variant(ModuleOp op) {
  auto targetName = op->getAttrOfType<StringAttr>(plan::kTargetAttr);
  auto image = op->getAttrOfType<WeightAttr>(plan::kImageAttr);
  if (!targetName)
    return failed("a variant has no attribute plan.target");
  llvm::Expected<Target> target = parseTarget(targetName.getValue());
  if (!target)
    return target.takeError();
  llvm::StringMap<uint32_t> numbers;
  uint32_t firstKernel = kernels.size();
  for (auto kernel : op.getOps<plan::KernelOp>()) {
    if (!kernel.getEntry())
      return failed("kernel '" + kernel.getSymName() + "' has no code; run phase codegen");
    numbers[kernel.getSymName()] = kernels.size() - firstKernel;
    kernels.push_back({strings.add(kernel.getSymName()), 0, *kernel.getEntry(),
                       static_cast<uint32_t>(kernel.getOperandCount() + kernel.getDestinationCount()),
                       static_cast<uint32_t>(kernel.getScalarCount()), static_cast<uint32_t>(kernel.getStack().value_or(0)), 0});
  }
  code.align(DLCRT_CODE_ALIGNMENT);
  uint64_t codeOffset = code.size(), codeBytes = 0;
  if (image) {
    std::optional<ConstantBytes> bytes = constantBytes(image);
    if (!bytes)
      return failed("the code image of '" + targetName.getValue() + "' is not there (a weights file is missing?)");
    code.appendAll(bytes->data);
    codeBytes = bytes->data.size();
  } else if (kernels.size() != firstKernel) {
    return failed("the variant '" + targetName.getValue() + "' has kernels and no code image");
  }
  if (auto list = op->getAttrOfType<DenseI32ArrayAttr>(plan::kImportsAttr))
    imports.insert(list.asArrayRef().begin(), list.asArrayRef().end());
  auto priority = op->getAttrOfType<IntegerAttr>(plan::kPriorityAttr);
  for (auto func : op.getOps<plan::FuncOp>()) {
    if (llvm::Error error = function(func))
      return error;
    dlcrt_variant_desc desc = {};
    desc.function = functionNumbers.lookup(func.getSymName());
    desc.target = strings.add(targetName.getValue());
    desc.arch = static_cast<uint32_t>(target->arch);
    desc.device = DLCRT_NONE;
    desc.features[0] = target->features;
    desc.guard = DLCRT_NONE;
    desc.priority = priority ? priority.getInt() : 0;
    desc.plan_offset = plans.size();
    if (llvm::Error error = PlanWriter(*this, func, numbers).write())
      return error;
    desc.plan_bytes = plans.size() - desc.plan_offset;
    desc.code_offset = codeOffset;
    desc.code_bytes = codeBytes;
    desc.first_kernel = firstKernel;
    desc.kernel_count = kernels.size() - firstKernel;
    variantDescs.push_back(desc);
  }
  return llvm::Error::success();
}

llvm::Error ModuleWriter::write(ArrayRef<ModuleOp> variants, llvm::raw_ostream &os) {
  for (ModuleOp module : variants)
    if (llvm::Error error = variant(module))
      return error;
  emit(os);
  return llvm::Error::success();
}

void ModuleWriter::emit(llvm::raw_ostream &os) {
  Bytes functionBytes, variantBytes, constTable, debugBytes, stateBytes = stateSection();
  functionBytes.append(dlcrt_functions_header{static_cast<uint32_t>(functions.size()), static_cast<uint32_t>(symbols.size()),
                                              static_cast<uint32_t>(values.size()), static_cast<uint32_t>(dims.size()),
                                              static_cast<uint32_t>(functionPool.nodes.size()), 0});
  functionBytes.appendAll(ArrayRef(functions));
  functionBytes.appendAll(ArrayRef(symbols));
  functionBytes.appendAll(ArrayRef(values));
  functionBytes.appendAll(ArrayRef(functionPool.nodes));
  functionBytes.appendAll(ArrayRef(dims));
  functionBytes.align(8);
  SmallVector<uint32_t> importList(imports.begin(), imports.end());
  variantBytes.append(dlcrt_variants_header{static_cast<uint32_t>(variantDescs.size()), static_cast<uint32_t>(kernels.size()),
                                            static_cast<uint32_t>(importList.size()), 0});
  variantBytes.appendAll(ArrayRef(variantDescs));
  variantBytes.appendAll(ArrayRef(kernels));
  variantBytes.appendAll(ArrayRef(importList));
  variantBytes.align(8);
  debugBytes.append<uint64_t>(debug.size());
  debugBytes.appendAll(ArrayRef(debug));
  uint32_t producer = strings.add("dlc " DLC_VERSION);
  strings.bytes.align(8);

  // The constants, hashed by block as they stand in the file.
  std::vector<uint64_t> blocks;
  std::string block;
  auto flush = [&] {
    blocks.push_back(llvm::xxHash64(block));
    block.clear();
  };
  auto feed = [&](ArrayRef<char> data) {
    while (!data.empty()) {
      size_t take = std::min(data.size(), DLCRT_CONST_HASH_BLOCK - block.size());
      block.append(data.data(), take);
      data = data.drop_front(take);
      if (block.size() == DLCRT_CONST_HASH_BLOCK)
        flush();
    }
  };
  auto forEachPiece = [&](llvm::function_ref<void(ArrayRef<char>)> visit) {
    static const char zeros[64] = {};
    for (auto &[value, bytes] : constantData) {
      ArrayRef<char> data = bytes.owned.empty() ? bytes.data : ArrayRef<char>(bytes.owned);
      visit(data);
      visit(ArrayRef(zeros, llvm::alignTo(data.size(), 64) - data.size()));
    }
  };
  forEachPiece(feed);
  if (!block.empty())
    flush();
  constTable.append<uint64_t>(constants.size());
  constTable.appendAll(ArrayRef(constants));
  constTable.append<uint64_t>(blocks.size());
  constTable.appendAll(ArrayRef(blocks));

  struct Section {
    uint32_t kind;
    const Bytes *bytes; // null: the constants
    uint64_t alignment;
  };
  SmallVector<Section> order = {
      {DLCRT_SECTION_STRINGS, &strings.bytes, 8},        {DLCRT_SECTION_FUNCTIONS, &functionBytes, 8},
      {DLCRT_SECTION_VARIANTS, &variantBytes, 8},        {DLCRT_SECTION_PLAN, &plans, 8},
      {DLCRT_SECTION_CONST_TABLE, &constTable, 8},       {DLCRT_SECTION_DEBUG, &debugBytes, 8},
      {DLCRT_SECTION_CONST, nullptr, DLCRT_CONST_ALIGNMENT},
      // The last, so that a module in a program (ObjectFile.cpp) is the same bytes in two pieces.
      {DLCRT_SECTION_CODE, &code, DLCRT_CODE_ALIGNMENT}};
  if (!stateDescs.empty())
    order.insert(order.begin() + 4, {DLCRT_SECTION_STATE, &stateBytes, 8});
  SmallVector<dlcrt_section> table;
  uint64_t offset = sizeof(dlcrt_file_header) + order.size() * sizeof(dlcrt_section);
  for (const Section &section : order) {
    offset = llvm::alignTo(offset, section.alignment);
    uint64_t size = section.bytes ? section.bytes->size() : constBytes;
    table.push_back({section.kind, 0, offset, size, section.bytes ? llvm::xxHash64(section.bytes->str()) : 0});
    offset += size;
  }
  dlcrt_file_header header = {};
  memcpy(header.magic, DLCRT_FORMAT_MAGIC, sizeof(header.magic));
  header.major = DLCRT_FORMAT_MAJOR;
  header.minor = DLCRT_FORMAT_MINOR;
  header.section_count = table.size();
  header.file_bytes = offset;
  header.producer = producer;
  StringRef tableBytes(reinterpret_cast<const char *>(table.data()), table.size() * sizeof(dlcrt_section));
  header.header_hash = llvm::xxHash64(tableBytes);
  os.write(reinterpret_cast<const char *>(&header), sizeof(header));
  os << tableBytes;
  uint64_t position = sizeof(header) + tableBytes.size();
  for (auto [section, entry] : llvm::zip_equal(order, table)) {
    os.write_zeros(entry.offset - position);
    if (section.bytes)
      os << section.bytes->str();
    else
      forEachPiece([&](ArrayRef<char> data) { os.write(data.data(), data.size()); });
    position = entry.offset + entry.bytes;
  }
}

} // namespace

llvm::Error writeModule(ArrayRef<ModuleOp> variants, llvm::raw_ostream &os) { return ModuleWriter().write(variants, os); }

} // namespace dlc
