// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Plan/Serialize.h"
#include "dlc/Support/NodeLocation.h"
#include "dlcrt/format.h"
#include "dlcrt/runtime.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dlc {

Type elementTypeOf(MLIRContext *context, int32_t dtype) {
  Builder b(context);
  switch (dtype) {
  case DLCRT_DTYPE_FLOAT32:
    return b.getF32Type();
  case DLCRT_DTYPE_FLOAT64:
    return b.getF64Type();
  case DLCRT_DTYPE_FLOAT16:
    return b.getF16Type();
  case DLCRT_DTYPE_BFLOAT16:
    return b.getBF16Type();
  case DLCRT_DTYPE_BOOL:
    return b.getI1Type();
  case DLCRT_DTYPE_UINT8:
    return b.getIntegerType(8, false);
  case DLCRT_DTYPE_UINT16:
    return b.getIntegerType(16, false);
  case DLCRT_DTYPE_UINT32:
    return b.getIntegerType(32, false);
  case DLCRT_DTYPE_UINT64:
    return b.getIntegerType(64, false);
  case DLCRT_DTYPE_INT8:
    return b.getIntegerType(8);
  case DLCRT_DTYPE_INT16:
    return b.getIntegerType(16);
  case DLCRT_DTYPE_INT32:
    return b.getIntegerType(32);
  case DLCRT_DTYPE_INT64:
    return b.getIntegerType(64);
  case DLCRT_DTYPE_INT4:
    return b.getIntegerType(4);
  case DLCRT_DTYPE_UINT4:
    return b.getIntegerType(4, false);
  case DLCRT_DTYPE_INT2:
    return b.getIntegerType(2);
  case DLCRT_DTYPE_UINT2:
    return b.getIntegerType(2, false);
  case DLCRT_DTYPE_FLOAT8E4M3FN:
    return b.getType<Float8E4M3FNType>();
  case DLCRT_DTYPE_FLOAT8E4M3FNUZ:
    return b.getType<Float8E4M3FNUZType>();
  case DLCRT_DTYPE_FLOAT8E5M2:
    return b.getType<Float8E5M2Type>();
  case DLCRT_DTYPE_FLOAT8E5M2FNUZ:
    return b.getType<Float8E5M2FNUZType>();
  case DLCRT_DTYPE_FLOAT8E8M0:
    return b.getType<Float8E8M0FNUType>();
  case DLCRT_DTYPE_FLOAT4E2M1:
    return b.getType<Float4E2M1FNType>();
  default:
    return {};
  }
}

namespace {

/// Bytes that are asked for by offset and count; what lies outside is zero and remembered as a fault.
class Section {
public:
  Section() = default;
  Section(ArrayRef<char> data, bool &isBad) : data(data), isBad(&isBad) {}

  template <typename T> T get(uint64_t offset) const {
    T value = {};
    if (offset > data.size() || data.size() - offset < sizeof(T))
      *isBad = true;
    else
      memcpy(&value, data.data() + offset, sizeof(T));
    return value;
  }
  template <typename T> SmallVector<T> getAll(uint64_t offset, uint64_t count) const {
    SmallVector<T> values;
    if (offset > data.size() || (data.size() - offset) / sizeof(T) < count) {
      *isBad = true;
      return values;
    }
    values.resize(count);
    if (count)
      memcpy(values.data(), data.data() + offset, count * sizeof(T));
    return values;
  }
  StringRef string(uint64_t offset) const {
    size_t end = offset < data.size() ? StringRef(data.data(), data.size()).find('\0', offset) : StringRef::npos;
    if (end == StringRef::npos) {
      *isBad = true;
      return {};
    }
    return StringRef(data.data() + offset, end - offset);
  }
  Section slice(uint64_t offset, uint64_t bytes) const {
    if (offset > data.size() || data.size() - offset < bytes) {
      *isBad = true;
      return Section({}, *isBad);
    }
    return Section(data.slice(offset, bytes), *isBad);
  }
  uint64_t size() const { return data.size(); }

private:
  ArrayRef<char> data;
  bool *isBad = nullptr;
};

class ModuleReader {
public:
  ModuleReader(MLIRContext &context, ArrayRef<char> bytes) : context(context), file(bytes, isBad), builder(&context) {}
  llvm::Expected<SmallVector<OwningOpRef<ModuleOp>>> read();

private:
  OwningOpRef<ModuleOp> variant(const dlcrt_variant_desc &desc);
  void readFunctions();
  /// All nodes of a pool as expressions.
  SmallVector<DimExpr> expressions(ArrayRef<dlcrt_expr_node> nodes, llvm::function_ref<std::string(int64_t)> symbolName);
  plan::ValueAttr value(uint32_t number);
  std::pair<ArrayAttr, plan::LengthAttr> statesOf(uint32_t function,
                                                  llvm::function_ref<std::string(int64_t)> functionSymbol);
  void block(const Section &code, OpBuilder &b);
  void instruction(const Section &code, const dlcrt_instr &head, OpBuilder &b);

  template <typename T> T pick(ArrayRef<T> list, uint64_t index) {
    if (index < list.size())
      return list[index];
    isBad = true;
    return T{};
  }
  DimExpr reg(uint32_t number) {
    DimExpr e = number < registers.size() ? registers[number] : DimExpr();
    isBad |= !e;
    return e ? e : constantDim(&context, 0);
  }
  ArrayAttr regs(ArrayRef<uint32_t> numbers) {
    SmallVector<Attribute> attributes;
    for (uint32_t number : numbers)
      attributes.push_back(reg(number));
    return builder.getArrayAttr(attributes);
  }
  Value buffer(uint32_t number) {
    Value v = buffers.lookup(number);
    isBad |= !v;
    return v;
  }
  SmallVector<Value> bufferList(ArrayRef<uint32_t> numbers) {
    SmallVector<Value> values;
    for (uint32_t number : numbers)
      values.push_back(buffer(number));
    return values;
  }
  TypeAttr type(uint32_t dtype) {
    Type element = elementTypeOf(&context, dtype);
    isBad |= !element;
    return TypeAttr::get(element ? element : builder.getI8Type());
  }
  Attribute constantName(uint32_t number);
  Location location(uint32_t debugEntry);

  MLIRContext &context;
  bool isBad = false;
  Section file;
  Builder builder;
  Section strings, plans, debug;
  SmallVector<dlcrt_function_desc> functions;
  SmallVector<dlcrt_symbol_desc> symbols;
  SmallVector<dlcrt_value_desc> values;
  SmallVector<dlcrt_expr_node> functionNodes;
  SmallVector<uint32_t> dims;
  SmallVector<dlcrt_state_desc> states;
  SmallVector<dlcrt_symbol_desc> stateSymbols;
  SmallVector<dlcrt_state_function> stateFunctions;
  SmallVector<dlcrt_expr_node> stateNodes;
  SmallVector<uint32_t> stateDims, stateNumbers;
  SmallVector<dlcrt_kernel_desc> kernels;
  SmallVector<dlcrt_constant> constants;
  // The plan being read.
  const dlcrt_variant_desc *current = nullptr;
  SmallVector<DimExpr> registers;
  DenseMap<uint32_t, Value> buffers;
  SmallVector<uint32_t> ownStates; // the function's, by the module's numbers
  llvm::function_ref<std::string(int64_t)> symbolName;
};

} // namespace

Attribute ModuleReader::constantName(uint32_t number) {
  dlcrt_constant constant = pick<dlcrt_constant>(constants, number);
  std::string key = llvm::toHex(ArrayRef(constant.content), /*LowerCase=*/true);
  return WeightAttr::get(&context, key, RankedTensorType::get({static_cast<int64_t>(constant.bytes)}, builder.getI8Type()));
}

Location ModuleReader::location(uint32_t entry) {
  if (entry == DLCRT_NONE || !debug.size())
    return UnknownLoc::get(&context);
  auto names = debug.get<dlcrt_debug_entry>(8 + uint64_t(entry) * sizeof(dlcrt_debug_entry));
  SmallVector<StringRef> nodes, types;
  strings.string(names.node_names).split(nodes, '\n');
  strings.string(names.op_types).split(types, '\n');
  SmallVector<Location> parts;
  for (auto [name, opType] : llvm::zip(nodes, types)) {
    NodeRef node{"", 0, opType.str(), name.str()};
    if (name.consume_front("#") && !name.getAsInteger(10, node.index))
      node.name.clear();
    parts.push_back(nodeLocation(&context, node));
  }
  return builder.getFusedLoc(parts);
}

SmallVector<DimExpr> ModuleReader::expressions(ArrayRef<dlcrt_expr_node> nodes, llvm::function_ref<std::string(int64_t)> nameOf) {
  SmallVector<DimExpr> result;
  for (const dlcrt_expr_node &node : nodes) {
    auto operand = [&](uint32_t index) { return index < result.size() ? result[index] : DimExpr(); };
    DimExpr a = operand(node.a), b = operand(node.b), c = operand(node.c), d = operand(node.d), e;
    switch (node.kind) {
    case DLCRT_EXPR_CONST:
      e = constantDim(&context, node.value);
      break;
    case DLCRT_EXPR_SYMBOL:
      e = symbolDim(&context, nameOf(node.value));
      break;
    case DLCRT_EXPR_ADD:
      e = addDims(a, b);
      break;
    case DLCRT_EXPR_MUL:
      e = mulDims(a, b);
      break;
    case DLCRT_EXPR_FLOORDIV:
      e = floorDivDims(a, b);
      break;
    case DLCRT_EXPR_CEILDIV:
      e = ceilDivDims(a, b);
      break;
    case DLCRT_EXPR_MOD:
      e = modDims(a, b);
      break;
    case DLCRT_EXPR_MIN:
      e = minDims(a, b);
      break;
    case DLCRT_EXPR_MAX:
      e = maxDims(a, b);
      break;
    case DLCRT_EXPR_SELECT_EQ:
      e = selectEqDims(a, b, c, d);
      break;
    case DLCRT_EXPR_SELECT_LT:
      e = selectLtDims(a, b, c, d);
      break;
    case DLCRT_EXPR_SCALED_FLOOR:
      e = scaledFloorDims(a, llvm::bit_cast<double>(node.value));
      break;
    }
    isBad |= !e;
    result.push_back(e);
  }
  return result;
}

void ModuleReader::block(const Section &code, OpBuilder &b) {
  for (uint64_t at = 0; at < code.size() && !isBad;) {
    auto head = code.get<dlcrt_instr>(at);
    if (isBad || head.bytes < sizeof(head) || head.bytes > code.size() - at) {
      isBad = true;
      return;
    }
    instruction(code.slice(at, head.bytes), head, b);
    at += head.bytes;
  }
}

void ModuleReader::instruction(const Section &code, const dlcrt_instr &head, OpBuilder &b) {
  Location loc = UnknownLoc::get(&context);
  Type bufferType = plan::BufferType::get(&context);
  switch (head.opcode) {
  case DLCRT_OP_RETURN:
    plan::ReturnOp::create(b, loc);
    return;
  case DLCRT_OP_CONST: {
    auto i = code.get<dlcrt_instr_const>(0);
    buffers[i.buffer] = plan::ConstOp::create(b, loc, bufferType, constantName(i.constant), i.device);
    return;
  }
  case DLCRT_OP_INPUT: {
    auto i = code.get<dlcrt_instr_input>(0);
    buffers[i.buffer] = plan::InputOp::create(b, loc, bufferType, i.input);
    return;
  }
  case DLCRT_OP_STATE: {
    auto i = code.get<dlcrt_instr_state>(0);
    auto *found = llvm::find(ownStates, i.state);
    isBad |= found == ownStates.end();
    buffers[i.buffer] = plan::StateOp::create(b, loc, bufferType, found - ownStates.begin());
    return;
  }
  case DLCRT_OP_OUTPUT: {
    auto i = code.get<dlcrt_instr_output>(0);
    buffers[i.buffer] = plan::OutputOp::create(b, loc, bufferType, i.output, regs(code.getAll<uint32_t>(sizeof(i), i.rank)), reg(i.bytes_expr));
    return;
  }
  case DLCRT_OP_SLOT: {
    auto i = code.get<dlcrt_instr_slot>(0);
    std::optional<plan::SlotClass> kind = plan::symbolizeSlotClass(i.slot_class);
    isBad |= !kind;
    auto placement = plan::PlacementAttr::get(&context, kind.value_or(plan::SlotClass::Fixed), i.first_stage, i.last_stage, i.offset);
    buffers[i.buffer] = plan::SlotOp::create(b, loc, bufferType, reg(i.bytes_expr), i.device, placement);
    return;
  }
  case DLCRT_OP_VIEW: {
    auto i = code.get<dlcrt_instr_view>(0);
    if (Value source = buffer(i.source))
      buffers[i.buffer] = plan::ViewOp::create(b, loc, bufferType, source, reg(i.offset_expr), reg(i.bytes_expr));
    return;
  }
  case DLCRT_OP_DIM: {
    auto i = code.get<dlcrt_instr_dim>(0);
    SmallVector<Attribute> list;
    for (uint64_t k = i.first; k < uint64_t(i.first) + i.count && !isBad; ++k)
      list.push_back(reg(k));
    plan::DimOp::create(b, loc, b.getArrayAttr(list));
    return;
  }
  case DLCRT_OP_CHECK: {
    auto i = code.get<dlcrt_instr_check>(0);
    DimExpr zero = constantDim(&context, 0);
    plan::CheckOp::create(b, loc, reg(i.condition), i.value0 == DLCRT_NONE ? zero : reg(i.value0), i.value1 == DLCRT_NONE ? zero : reg(i.value1),
                          b.getStringAttr(strings.string(i.message)));
    return;
  }
  case DLCRT_OP_READ: {
    auto i = code.get<dlcrt_instr_read>(0);
    if (Value source = buffer(i.buffer))
      plan::ReadOp::create(b, loc, source, type(i.dtype), b.getI64IntegerAttr(reg(i.index).getConstant().value_or(0)), b.getStringAttr(symbolName(i.symbol)));
    return;
  }
  case DLCRT_OP_LAUNCH: {
    auto i = code.get<dlcrt_instr_launch>(0);
    auto list = code.getAll<uint32_t>(sizeof(i), uint64_t(i.buffer_count) + i.scalar_count);
    if (isBad)
      return;
    auto kernel = pick<dlcrt_kernel_desc>(kernels, uint64_t(current->first_kernel) + i.kernel);
    // Which of the buffers are written is the kernel's business; the last one certainly is.
    SmallVector<Value> all = bufferList(ArrayRef(list).take_front(i.buffer_count));
    if (isBad || all.empty())
      return;
    plan::LaunchOp::create(b, location(i.debug), FlatSymbolRefAttr::get(&context, strings.string(kernel.name)), ValueRange(all).drop_back(),
                           ValueRange(all).take_back(), regs(ArrayRef(list).drop_front(i.buffer_count)), b.getArrayAttr({}), reg(i.tiles),
                           i.scratch == DLCRT_NONE ? DimExpr() : reg(i.scratch), b.getI64IntegerAttr(i.device));
    return;
  }
  case DLCRT_OP_COPY: {
    auto i = code.get<dlcrt_instr_copy>(0);
    Value destination = buffer(i.destination), source = buffer(i.source);
    if (!isBad)
      plan::CopyOp::create(b, loc, destination, source, reg(i.bytes_expr));
    return;
  }
  case DLCRT_OP_FILL: {
    auto i = code.get<dlcrt_instr_fill>(0);
    if (Value destination = buffer(i.buffer))
      plan::FillOp::create(b, loc, destination, type(i.dtype), reg(i.elements), regs(code.getAll<uint32_t>(sizeof(i), i.count)));
    return;
  }
  case DLCRT_OP_IF: {
    auto i = code.get<dlcrt_instr_if>(0);
    // A register that both branches set is a result.
    Region regions[2];
    DenseMap<uint32_t, Value> set[2], before = buffers;
    OpBuilder inner(&context);
    for (auto [k, region] : llvm::enumerate(regions)) {
      inner.createBlock(&region);
      block(code.slice(sizeof(i) + (k ? uint64_t(i.then_bytes) : 0), k ? i.else_bytes : i.then_bytes), inner);
      set[k] = std::exchange(buffers, before);
    }
    SmallVector<uint32_t> results;
    for (auto [number, value] : set[0])
      if (Value other = set[1].lookup(number); other && value.getParentRegion() == &regions[0] && other.getParentRegion() == &regions[1])
        results.push_back(number);
    llvm::sort(results);
    auto op = plan::IfOp::create(b, loc, SmallVector<Type>(results.size(), bufferType), reg(i.condition));
    for (auto [k, region] : llvm::enumerate(regions)) {
      SmallVector<Value> values;
      for (uint32_t number : results)
        values.push_back(set[k].lookup(number));
      inner.setInsertionPointToEnd(&region.front());
      plan::YieldOp::create(inner, loc, values);
      op->getRegion(k).takeBody(region);
    }
    for (auto [number, result] : llvm::zip_equal(results, op.getBuffers()))
      buffers[number] = result;
    return;
  }
  case DLCRT_OP_LOOP: {
    auto i = code.get<dlcrt_instr_loop>(0);
    auto op = plan::LoopOp::create(b, loc, i.trip == DLCRT_NONE ? DimExpr() : reg(i.trip), b.getStringAttr(symbolName(i.iteration)),
                                   i.condition == DLCRT_NONE ? StringAttr() : b.getStringAttr(symbolName(i.condition)));
    OpBuilder inner(&context);
    inner.createBlock(&op.getBody());
    block(code.slice(sizeof(i), i.body_bytes), inner);
    return;
  }
  case DLCRT_OP_CALL: {
    auto i = code.get<dlcrt_instr_call>(0);
    SmallVector<Value> list;
    SmallVector<Attribute> types;
    uint64_t at = sizeof(i);
    for (uint64_t k = 0; k < uint64_t(i.operand_count) + i.result_count && !isBad; ++k) {
      auto head = code.getAll<uint32_t>(at, 3);
      if (isBad)
        return;
      auto dimNumbers = code.getAll<uint32_t>(at + 12, head[2]);
      at += 12 + 4 * uint64_t(head[2]);
      list.push_back(buffer(head[0]));
      SmallVector<DimExpr> shape;
      for (uint32_t number : dimNumbers)
        shape.push_back(reg(number));
      types.push_back(TypeAttr::get(tensorType(shape, type(head[1]).getValue())));
    }
    if (!isBad)
      plan::CallOp::create(b, loc, b.getStringAttr(strings.string(i.domain)), b.getStringAttr(strings.string(i.name)), b.getI64IntegerAttr(i.version),
                           b.getStringAttr(strings.string(i.attributes)), ValueRange(list).take_front(i.operand_count),
                           ValueRange(list).drop_front(i.operand_count), b.getArrayAttr(types));
    return;
  }
  case DLCRT_OP_STAGE:
    plan::StageOp::create(b, loc, code.get<dlcrt_instr_stage>(0).stage);
    return;
  default:
    isBad = true;
  }
}

plan::ValueAttr ModuleReader::value(uint32_t number) {
  auto desc = pick<dlcrt_value_desc>(values, number);
  SmallVector<DimExpr> shape;
  for (uint64_t i = 0; i < desc.rank && i < DLCRT_MAX_RANK; ++i)
    shape.push_back(desc.first_dim == DLCRT_NONE ? symbolDim(&context, "?") : reg(pick<uint32_t>(dims, desc.first_dim + i)));
  Attribute defaultValue = desc.default_constant == DLCRT_NONE ? Attribute() : constantName(desc.default_constant);
  return plan::ValueAttr::get(&context, builder.getStringAttr(strings.string(desc.name)), boundaryType(shape, type(desc.dtype).getValue()), defaultValue);
}

/// What the function does with states, its own numbers of which go into `ownStates`; nulls where there are none.
/// `registers` are FUNCTIONS'.
std::pair<ArrayAttr, plan::LengthAttr> ModuleReader::statesOf(uint32_t function,
                                                              llvm::function_ref<std::string(int64_t)> functionSymbol) {
  ownStates.clear();
  auto *use = llvm::find_if(stateFunctions, [&](const dlcrt_state_function &use) { return use.function == function; });
  if (use == stateFunctions.end())
    return {};
  auto stateSymbol = [&](int64_t number) {
    return strings.string(pick<dlcrt_symbol_desc>(stateSymbols, static_cast<uint64_t>(number)).name).str();
  };
  SmallVector<DimExpr> nodes = expressions(stateNodes, stateSymbol);
  SmallVector<Attribute> list;
  for (uint64_t k = 0; k < use->state_count && !isBad; ++k) {
    ownStates.push_back(pick<uint32_t>(stateNumbers, uint64_t(use->first_state) + k));
    auto desc = pick<dlcrt_state_desc>(states, ownStates.back());
    SmallVector<DimExpr> shape;
    for (uint64_t d = 0; d < desc.rank && d < DLCRT_MAX_RANK && !isBad; ++d)
      shape.push_back(pick<DimExpr>(nodes, pick<uint32_t>(stateDims, uint64_t(desc.first_dim) + d)));
    if (!isBad)
      list.push_back(plan::StateAttr::get(&context, builder.getStringAttr(strings.string(desc.name)),
                                          tensorType(shape, type(desc.dtype).getValue()), desc.axis));
  }
  if (isBad)
    return {};
  auto length = plan::LengthAttr::get(&context, builder.getStringAttr(functionSymbol(use->length_symbol)),
                                      builder.getStringAttr(stateSymbol(0)), reg(use->growth));
  return {builder.getArrayAttr(list), length};
}

OwningOpRef<ModuleOp> ModuleReader::variant(const dlcrt_variant_desc &desc) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  (*module)->setAttr(plan::kTargetAttr, builder.getStringAttr(strings.string(desc.target)));
  (*module)->setAttr(plan::kPriorityAttr, builder.getI64IntegerAttr(desc.priority));
  OpBuilder b(&context);
  b.setInsertionPointToEnd(module->getBody());
  for (uint64_t k = 0; k < desc.kernel_count && !isBad; ++k) {
    auto kernel = pick<dlcrt_kernel_desc>(kernels, desc.first_kernel + k);
    plan::KernelOp::create(b, b.getUnknownLoc(), strings.string(kernel.name), plan::KindAttr::get(&context, plan::KernelKind::Other, 0),
                           kernel.buffer_count - 1, 1, kernel.scalar_count, nullptr, b.getI64IntegerAttr(kernel.entry),
                           b.getI64IntegerAttr(kernel.stack_bytes), nullptr);
  }
  auto function = pick<dlcrt_function_desc>(functions, desc.function);
  auto functionSymbol = [&](int64_t number) -> std::string {
    if (number < 0 || number >= function.symbol_count)
      return "late" + std::to_string(number - function.symbol_count);
    return strings.string(pick<dlcrt_symbol_desc>(symbols, function.first_symbol + number).name).str();
  };
  symbolName = functionSymbol;
  registers = expressions(functionNodes, functionSymbol);
  SmallVector<Attribute> inputs, outputs, infos;
  for (uint64_t i = 0; i < function.input_count && !isBad; ++i)
    inputs.push_back(value(function.first_input + i));
  for (uint64_t i = 0; i < function.output_count && !isBad; ++i)
    outputs.push_back(value(function.first_output + i));
  for (uint64_t i = 0; i < function.symbol_count && !isBad; ++i) {
    auto symbol = pick<dlcrt_symbol_desc>(symbols, function.first_symbol + i);
    infos.push_back(SymbolInfoAttr::get(&context, strings.string(symbol.name), symbol.min, symbol.max, symbol.divisor,
                                        symbol.flags & DLCRT_SYMBOL_ANONYMOUS));
  }
  auto [stateList, length] = statesOf(desc.function, functionSymbol);
  if (isBad)
    return module;
  auto func = plan::FuncOp::create(b, b.getUnknownLoc(), strings.string(function.name), b.getArrayAttr(inputs),
                                   b.getArrayAttr(outputs), b.getArrayAttr(infos), stateList, length);
  b.createBlock(&func.getBody());
  Section text = plans.slice(desc.plan_offset, desc.plan_bytes);
  auto header = text.get<dlcrt_plan_header>(0);
  auto nodes = text.getAll<dlcrt_expr_node>(sizeof(header), header.expr_count);
  registers = expressions(nodes, functionSymbol);
  buffers.clear();
  current = &desc;
  block(text.slice(sizeof(header) + uint64_t(nodes.size()) * sizeof(dlcrt_expr_node), header.instruction_bytes), b);
  return module;
}

llvm::Expected<SmallVector<OwningOpRef<ModuleOp>>> ModuleReader::read() {
  auto bad = [] { return llvm::createStringError("not a module, or a damaged one"); };
  context.loadDialect<DlcDialect, plan::PlanDialect>();
  auto header = file.get<dlcrt_file_header>(0);
  if (isBad || memcmp(header.magic, DLCRT_FORMAT_MAGIC, sizeof(header.magic)) != 0)
    return bad();
  DenseMap<uint32_t, Section> sections;
  for (const dlcrt_section &entry : file.getAll<dlcrt_section>(sizeof(header), header.section_count))
    sections[entry.kind] = file.slice(entry.offset, entry.bytes);
  for (uint32_t kind : {DLCRT_SECTION_STRINGS, DLCRT_SECTION_FUNCTIONS, DLCRT_SECTION_VARIANTS, DLCRT_SECTION_PLAN, DLCRT_SECTION_CONST_TABLE})
    if (isBad || !sections.contains(kind))
      return bad();
  strings = sections[DLCRT_SECTION_STRINGS];
  plans = sections[DLCRT_SECTION_PLAN];
  if (sections.contains(DLCRT_SECTION_DEBUG))
    debug = sections[DLCRT_SECTION_DEBUG];

  auto take = [](const Section &section, uint64_t &at, auto &list, uint64_t count) {
    using T = typename std::remove_reference_t<decltype(list)>::value_type;
    list = section.getAll<T>(at, count);
    at += count * sizeof(T);
  };
  const Section &functionBytes = sections[DLCRT_SECTION_FUNCTIONS];
  auto counts = functionBytes.get<dlcrt_functions_header>(0);
  uint64_t at = sizeof(counts);
  take(functionBytes, at, functions, counts.function_count);
  take(functionBytes, at, symbols, counts.symbol_count);
  take(functionBytes, at, values, counts.value_count);
  take(functionBytes, at, functionNodes, counts.expr_count);
  take(functionBytes, at, dims, counts.dim_count);
  if (sections.contains(DLCRT_SECTION_STATE)) {
    const Section &stateBytes = sections[DLCRT_SECTION_STATE];
    auto stateCounts = stateBytes.get<dlcrt_states_header>(0);
    at = sizeof(stateCounts);
    take(stateBytes, at, states, stateCounts.state_count);
    take(stateBytes, at, stateSymbols, stateCounts.symbol_count);
    take(stateBytes, at, stateFunctions, stateCounts.function_count);
    take(stateBytes, at, stateNodes, stateCounts.expr_count);
    take(stateBytes, at, stateDims, stateCounts.dim_count);
    take(stateBytes, at, stateNumbers, stateCounts.number_count);
  }
  const Section &variantBytes = sections[DLCRT_SECTION_VARIANTS];
  auto variantCounts = variantBytes.get<dlcrt_variants_header>(0);
  SmallVector<dlcrt_variant_desc> variants;
  at = sizeof(variantCounts);
  take(variantBytes, at, variants, variantCounts.variant_count);
  take(variantBytes, at, kernels, variantCounts.kernel_count);
  const Section &constantBytes = sections[DLCRT_SECTION_CONST_TABLE];
  at = 8;
  take(constantBytes, at, constants, constantBytes.get<uint64_t>(0));

  SmallVector<OwningOpRef<ModuleOp>> result;
  for (const dlcrt_variant_desc &desc : variants) {
    if (isBad)
      break;
    result.push_back(variant(desc));
  }
  if (isBad)
    return bad();
  return std::move(result);
}

llvm::Expected<SmallVector<OwningOpRef<ModuleOp>>> readModule(MLIRContext &context, ArrayRef<char> bytes) {
  return ModuleReader(context, bytes).read();
}

} // namespace dlc
