/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Checks the instructions of a plan. What depends on values (sizes, offsets, whether a register was set) is checked by
// the interpreter; after this every number in an instruction is a valid one.
#include "Dtype.h"
#include "Verify.h"

#include <stdio.h>

using namespace dlcrt::impl;

namespace {

/// The interpreter recurses once per level.
constexpr unsigned maxNesting = 64;

class PlanVerifier {
public:
  PlanVerifier(Module &module, uint32_t index, Plan &plan, Error *error)
      : module(module), index(index), variant(module.variants[index]), function(module.functions[variant.function]),
        plan(plan), error(error), seenSymbolic(module.memory), seenLate(module.memory) {}

  Status run();

private:
  [[gnu::format(printf, 2, 3)]] Status bad(const char *format, ...);
  Status header();
  Status findSizing();
  Status block(const uint8_t *begin, const uint8_t *end, unsigned nesting);
  Status instruction(const dlcrt_instr &head, unsigned nesting);
  Status slot(const dlcrt_instr_slot &slot);
  Status launch(const dlcrt_instr_launch &launch);
  Status call(const dlcrt_instr_call &call);

  bool isBuffer(uint32_t r) const { return r < plan.header->buffer_count; }
  bool isRegister(uint32_t r) const { return r < plan.exprs.count; }
  bool isRegisterOrNone(uint32_t r) const { return r == DLCRT_NONE || isRegister(r); }
  bool isLateSymbol(uint32_t s) const {
    return s >= function.symbol_count && s - function.symbol_count < plan.header->late_symbol_count;
  }
  bool isDevice(uint32_t d) const { return d == 0 || (d == 1 && variant.device != DLCRT_NONE); }
  bool isString(uint32_t s) const { return s < module.strings.count; }
  template <typename Check> bool all(const uint32_t *numbers, uint64_t count, Check check) const {
    for (uint64_t i = 0; i < count; ++i)
      if (!check(numbers[i]))
        return false;
    return true;
  }
  bool areBuffers(const uint32_t *numbers, uint64_t count) const {
    return all(numbers, count, [this](uint32_t r) { return isBuffer(r); });
  }
  bool areRegisters(const uint32_t *numbers, uint64_t count) const {
    return all(numbers, count, [this](uint32_t r) { return isRegister(r); });
  }
  /// True if `bytes` is exactly what the instruction with so many trailing numbers takes.
  static bool hasSize(uint64_t bytes, uint64_t fixed, uint64_t numbers) {
    return bytes == alignUp(fixed + numbers * sizeof(uint32_t), 8);
  }
  static void raise(uint32_t &maximum, uint32_t value) { maximum = value > maximum ? value : maximum; }

  Module &module;
  uint32_t index;
  const dlcrt_variant_desc &variant;
  const dlcrt_function_desc &function;
  Plan &plan;
  Error *error;
  uint64_t position = 0; // of the instruction that is checked, in the stream
  Vector<uint8_t> seenSymbolic, seenLate;
};

const char *const opcodeNames[] = {"return", "const", "input", "output", "slot", "view", "dim",   "check", "read",
                                   "launch", "copy",  "fill",  "if",     "loop", "call", "stage", "state"};

} // namespace

Status PlanVerifier::bad(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  failList(error, DLCRT_ERROR_BAD_MODULE, format, arguments);
  va_end(arguments);
  char where[64];
  snprintf(where, sizeof(where), "plan of variant %u, offset %llu", index, (unsigned long long)position);
  return withPrefix(error, DLCRT_ERROR_BAD_MODULE, where);
}

Status PlanVerifier::header() {
  const uint8_t *bytes = module.planBytes.data + variant.plan_offset;
  if (variant.plan_bytes < sizeof(dlcrt_plan_header))
    return bad("too short for a plan");
  plan.header = reinterpret_cast<const dlcrt_plan_header *>(bytes);
  const dlcrt_plan_header &h = *plan.header;
  uint64_t exprBytes = uint64_t(h.expr_count) * sizeof(dlcrt_expr_node), left = variant.plan_bytes - sizeof(h);
  if (exprBytes > left || h.instruction_bytes != left - exprBytes || h.instruction_bytes % 8 != 0)
    return bad("expressions and instructions do not fill it");
  // Every register, symbol, slot and stage has an instruction of its own; so their number, and with it the memory that
  // an instance needs, is bounded by the size of the file.
  uint64_t most = h.instruction_bytes / sizeof(dlcrt_instr);
  if (h.buffer_count > most || h.object_count > most || h.stage_count > most || h.symbolic_slot_count > most ||
      h.late_slot_count > most || h.late_symbol_count > most || h.reserved != 0)
    return bad("it has more registers, slots or stages than instructions");
  // Fixed offsets and sizes are added up; leave room.
  if (h.fixed_bytes[0] > INT64_MAX / 2 || h.fixed_bytes[1] > INT64_MAX / 2 ||
      (h.fixed_bytes[1] != 0 && variant.device == DLCRT_NONE))
    return bad("its arena is too large or on a device that the variant does not have");
  plan.exprs = {reinterpret_cast<const dlcrt_expr_node *>(bytes + sizeof(h)), h.expr_count};
  plan.instructions = {bytes + sizeof(h) + exprBytes, h.instruction_bytes};
  return DLCRT_OK;
}

Status PlanVerifier::run() {
  if (Status status = header())
    return status;
  char where[32];
  snprintf(where, sizeof(where), "plan of variant %u", index);
  uint64_t symbolCount = uint64_t(function.symbol_count) + plan.header->late_symbol_count;
  if (Status status = verifyExprs(plan.exprs, symbolCount, where, error))
    return status;

  if (!plan.late.resize(plan.exprs.count) || !plan.symbolic.resize(plan.header->symbolic_slot_count) ||
      !seenSymbolic.resize(plan.header->symbolic_slot_count) || !seenLate.resize(plan.header->late_slot_count))
    return failOutOfMemory(error, "the module's plans", plan.exprs.count);
  for (uint64_t i = 0; i < plan.exprs.count; ++i) {
    const dlcrt_expr_node &node = plan.exprs[i];
    const uint32_t operands[] = {node.a, node.b, node.c, node.d};
    plan.late[i] = node.kind == DLCRT_EXPR_SYMBOL && uint64_t(node.value) >= function.symbol_count;
    for (int j = 0; j < operandCount(node.kind); ++j)
      plan.late[i] |= plan.late[operands[j]];
    if (plan.late[i] && !plan.lateNodes.append(uint32_t(i)))
      return failOutOfMemory(error, "the module's plans", plan.exprs.count);
  }

  Span<uint8_t> stream = plan.instructions;
  if (stream.count < sizeof(dlcrt_instr))
    return bad("no instructions");
  if (Status status = block(stream.begin(), stream.end(), 0))
    return status;
  for (uint8_t seen : seenSymbolic)
    if (!seen)
      return bad("a symbolic slot has no instruction");
  for (uint8_t seen : seenLate)
    if (!seen)
      return bad("a late slot has no instruction");
  return findSizing();
}

Status PlanVerifier::findSizing() {
  Vector<uint8_t> used(module.memory);
  if (!used.resize(plan.exprs.count) || !plan.sizing.resize(function.symbol_count))
    return failOutOfMemory(error, "the module's plans", plan.exprs.count);
  for (const PlannedSlot &slot : plan.symbolic)
    used[slot.bytesExpr] = 1;
  for (const PlannedSlot &slot : plan.fixed)
    used[slot.bytesExpr] = 1;
  for (uint64_t i = plan.exprs.count; i-- > 0;) {
    const dlcrt_expr_node &node = plan.exprs[i];
    const uint32_t operands[] = {node.a, node.b, node.c, node.d};
    for (int j = 0; used[i] && j < operandCount(node.kind); ++j)
      used[operands[j]] = 1;
    if (used[i] && node.kind == DLCRT_EXPR_SYMBOL) // none is late
      plan.sizing[uint64_t(node.value)] = 1;
  }
  return DLCRT_OK;
}

Status PlanVerifier::block(const uint8_t *begin, const uint8_t *end, unsigned nesting) {
  if (nesting > maxNesting)
    return bad("blocks are nested more than %u deep", maxNesting);
  const uint8_t *next = begin;
  const dlcrt_instr *last = nullptr;
  while (next != end) {
    position = uint64_t(next - plan.instructions.data);
    uint64_t left = uint64_t(end - next);
    if (left < sizeof(dlcrt_instr))
      return bad("an instruction is cut off");
    auto &head = *reinterpret_cast<const dlcrt_instr *>(next);
    if (head.bytes < sizeof(dlcrt_instr) || head.bytes % 8 != 0 || head.bytes > left)
      return bad("an instruction has %u bytes", head.bytes);
    if (head.opcode > DLCRT_OP_STATE)
      return bad("unknown instruction %u", head.opcode);
    if (head.flags != 0)
      return bad("%s: unknown flags 0x%x", opcodeNames[head.opcode], head.flags);
    if (head.opcode == DLCRT_OP_RETURN && (nesting > 0 || head.bytes != left))
      return bad("return stands before the end");
    if (Status status = instruction(head, nesting))
      return status;
    last = &head;
    next += head.bytes;
  }
  position = uint64_t(end - plan.instructions.data);
  if (nesting == 0 && (!last || last->opcode != DLCRT_OP_RETURN))
    return bad("no return at the end");
  return DLCRT_OK;
}

Status PlanVerifier::instruction(const dlcrt_instr &head, unsigned nesting) {
  const char *name = opcodeNames[head.opcode];
  auto wrong = [&](const char *what) { return bad("%s: invalid %s", name, what); };
  // The instruction as its struct, if it has at least that size.
#define DLCRT_AS(STRUCT)                                                                                               \
  if (head.bytes < sizeof(STRUCT))                                                                                     \
    return wrong("size");                                                                                              \
  auto &i = reinterpret_cast<const STRUCT &>(head)

  switch (head.opcode) {
  case DLCRT_OP_RETURN:
    return head.bytes == sizeof(head) ? DLCRT_OK : wrong("size");
  case DLCRT_OP_CONST: {
    DLCRT_AS(dlcrt_instr_const);
    if (head.bytes != sizeof(i) || i.reserved != 0)
      return wrong("size");
    if (!isBuffer(i.buffer) || i.constant >= module.constantTable.count || !isDevice(i.device))
      return wrong("buffer, constant or device");
    return DLCRT_OK;
  }
  case DLCRT_OP_INPUT: {
    DLCRT_AS(dlcrt_instr_input);
    if (head.bytes != sizeof(i))
      return wrong("size");
    if (!isBuffer(i.buffer) || i.input >= function.input_count)
      return wrong("buffer or input");
    return DLCRT_OK;
  }
  case DLCRT_OP_OUTPUT: {
    DLCRT_AS(dlcrt_instr_output);
    if (i.rank > DLCRT_MAX_RANK || !hasSize(head.bytes, sizeof(i), i.rank))
      return wrong("size");
    if (!isBuffer(i.buffer) || i.output >= function.output_count || !isRegister(i.bytes_expr) ||
        !areRegisters(reinterpret_cast<const uint32_t *>(&i + 1), i.rank))
      return wrong("buffer, output or dim");
    if (i.rank != module.output(function, i.output).rank)
      return wrong("rank");
    return DLCRT_OK;
  }
  case DLCRT_OP_SLOT: {
    DLCRT_AS(dlcrt_instr_slot);
    return head.bytes == sizeof(i) ? slot(i) : wrong("size");
  }
  case DLCRT_OP_VIEW: {
    DLCRT_AS(dlcrt_instr_view);
    if (head.bytes != sizeof(i))
      return wrong("size");
    if (!isBuffer(i.buffer) || !isBuffer(i.source) || !isRegister(i.offset_expr) || !isRegister(i.bytes_expr))
      return wrong("buffer or register");
    return DLCRT_OK;
  }
  case DLCRT_OP_DIM: {
    DLCRT_AS(dlcrt_instr_dim);
    if (head.bytes != sizeof(i))
      return wrong("size");
    if (uint64_t(i.first) + i.count > plan.exprs.count)
      return wrong("register");
    return DLCRT_OK;
  }
  case DLCRT_OP_CHECK: {
    DLCRT_AS(dlcrt_instr_check);
    if (head.bytes != sizeof(i))
      return wrong("size");
    if (!isRegister(i.condition) || !isString(i.message) || !isRegisterOrNone(i.value0) || !isRegisterOrNone(i.value1))
      return wrong("register or message");
    return DLCRT_OK;
  }
  case DLCRT_OP_READ: {
    DLCRT_AS(dlcrt_instr_read);
    if (head.bytes != sizeof(i))
      return wrong("size");
    if (!isBuffer(i.buffer) || !isReadable(int32_t(i.dtype)) || !isRegister(i.index) || !isLateSymbol(i.symbol))
      return wrong("buffer, type, register or symbol");
    return DLCRT_OK;
  }
  case DLCRT_OP_LAUNCH: {
    DLCRT_AS(dlcrt_instr_launch);
    return launch(i);
  }
  case DLCRT_OP_COPY: {
    DLCRT_AS(dlcrt_instr_copy);
    if (head.bytes != sizeof(i) || i.reserved != 0)
      return wrong("size");
    if (!isBuffer(i.destination) || !isBuffer(i.source) || !isRegister(i.bytes_expr))
      return wrong("buffer or register");
    return DLCRT_OK;
  }
  case DLCRT_OP_FILL: {
    DLCRT_AS(dlcrt_instr_fill);
    if (!hasSize(head.bytes, sizeof(i), i.count))
      return wrong("size");
    if (!isBuffer(i.buffer) || !isFillable(int32_t(i.dtype)) || !isRegister(i.elements) || i.count == 0 ||
        !areRegisters(reinterpret_cast<const uint32_t *>(&i + 1), i.count))
      return wrong("buffer, type or register");
    return DLCRT_OK;
  }
  case DLCRT_OP_IF: {
    DLCRT_AS(dlcrt_instr_if);
    if (uint64_t(i.then_bytes) + i.else_bytes != head.bytes - sizeof(i) || i.then_bytes % 8 != 0 || i.reserved != 0)
      return wrong("size");
    if (!isRegister(i.condition))
      return wrong("register");
    const uint8_t *thenBlock = reinterpret_cast<const uint8_t *>(&i + 1), *elseBlock = thenBlock + i.then_bytes;
    if (Status status = block(thenBlock, elseBlock, nesting + 1))
      return status;
    return block(elseBlock, elseBlock + i.else_bytes, nesting + 1);
  }
  case DLCRT_OP_LOOP: {
    DLCRT_AS(dlcrt_instr_loop);
    if (i.body_bytes != head.bytes - sizeof(i))
      return wrong("size");
    if (!isRegisterOrNone(i.trip) || !isLateSymbol(i.iteration) ||
        (i.condition != DLCRT_NONE && !isLateSymbol(i.condition)))
      return wrong("register or symbol");
    if (i.trip == DLCRT_NONE && i.condition == DLCRT_NONE)
      return bad("loop: it has no end");
    const uint8_t *body = reinterpret_cast<const uint8_t *>(&i + 1);
    return block(body, body + i.body_bytes, nesting + 1);
  }
  case DLCRT_OP_CALL: {
    DLCRT_AS(dlcrt_instr_call);
    return call(i);
  }
  case DLCRT_OP_STATE: {
    DLCRT_AS(dlcrt_instr_state);
    if (head.bytes != sizeof(i))
      return wrong("size");
    const dlcrt_state_function *use = module.stateUse(variant.function);
    bool isOwn = false;
    for (uint32_t k = 0; use && k < use->state_count; ++k)
      isOwn |= module.stateNumbers[use->first_state + k] == i.state;
    if (!isBuffer(i.buffer) || !isOwn)
      return wrong("buffer or state");
    return DLCRT_OK;
  }
  default: { // DLCRT_OP_STAGE
    DLCRT_AS(dlcrt_instr_stage);
    if (head.bytes != sizeof(i))
      return wrong("size");
    if (i.stage >= plan.header->stage_count || (i.flags & ~1u))
      return wrong("number or flag");
    return DLCRT_OK;
  }
  }
#undef DLCRT_AS
}

Status PlanVerifier::slot(const dlcrt_instr_slot &slot) {
  if (!isBuffer(slot.buffer) || !isDevice(slot.device) || !isRegister(slot.bytes_expr))
    return bad("slot: invalid buffer, device or register");
  if (slot.first_stage > slot.last_stage || slot.last_stage >= plan.header->stage_count)
    return bad("slot: invalid lifetime");
  PlannedSlot planned{slot.offset, slot.bytes_expr, slot.device, slot.first_stage, slot.last_stage};
  switch (slot.slot_class) {
  case DLCRT_SLOT_FIXED:
    if (slot.offset % 64 != 0 || slot.offset > plan.header->fixed_bytes[slot.device])
      return bad("slot: its offset is outside the arena or not a multiple of 64");
    if (plan.late[slot.bytes_expr])
      return bad("slot: the size of a fixed slot depends on a late symbol");
    return plan.fixed.append(planned) ? DLCRT_OK : failOutOfMemory(error, "the module's plans", sizeof(planned));
  case DLCRT_SLOT_SYMBOLIC:
    if (slot.offset >= plan.symbolic.size() || seenSymbolic[slot.offset])
      return bad("slot: invalid or repeated number");
    if (plan.late[slot.bytes_expr])
      return bad("slot: the size of a symbolic slot depends on a late symbol");
    seenSymbolic[slot.offset] = 1;
    plan.symbolic[slot.offset] = planned;
    return DLCRT_OK;
  case DLCRT_SLOT_LATE:
    if (slot.offset >= seenLate.size() || seenLate[slot.offset])
      return bad("slot: invalid or repeated number");
    seenLate[slot.offset] = 1;
    return DLCRT_OK;
  default:
    return bad("slot: unknown class %u", slot.slot_class);
  }
}

Status PlanVerifier::launch(const dlcrt_instr_launch &launch) {
  if (!hasSize(launch.head.bytes, sizeof(launch), uint64_t(launch.buffer_count) + launch.scalar_count) ||
      launch.reserved != 0)
    return bad("launch: invalid size");
  if (launch.kernel >= variant.kernel_count)
    return bad("launch: no kernel %u", launch.kernel);
  const dlcrt_kernel_desc &kernel = module.kernels[variant.first_kernel + launch.kernel];
  if (launch.device != kernel.device)
    return bad("launch: kernel '%s' on device %u", module.string(kernel.name), launch.device);
  if (launch.buffer_count != kernel.buffer_count || launch.scalar_count != kernel.scalar_count)
    return bad("launch: kernel '%s' takes %u buffers and %u scalars, not %u and %u", module.string(kernel.name),
               kernel.buffer_count, kernel.scalar_count, launch.buffer_count, launch.scalar_count);
  const uint32_t *buffers = reinterpret_cast<const uint32_t *>(&launch + 1);
  if (!isRegister(launch.tiles) || !isRegisterOrNone(launch.scratch) || !isRegisterOrNone(launch.flops) || !isRegisterOrNone(launch.traffic) || !areBuffers(buffers, launch.buffer_count) ||
      !areRegisters(buffers + launch.buffer_count, launch.scalar_count))
    return bad("launch: invalid register");
  if (launch.debug != DLCRT_NONE && launch.debug >= module.debug.count && module.debug.count != 0)
    return bad("launch: no entry %u in DEBUG", launch.debug);
  raise(plan.maxBuffers, launch.buffer_count);
  raise(plan.maxScalars, launch.scalar_count);
  return DLCRT_OK;
}

Status PlanVerifier::call(const dlcrt_instr_call &call) {
  const uint32_t *next = reinterpret_cast<const uint32_t *>(&call + 1);
  uint64_t left = (call.head.bytes - sizeof(call)) / sizeof(uint32_t);
  uint64_t tensors = uint64_t(call.operand_count) + call.result_count, dims = 0;
  if (!isString(call.domain) || !isString(call.name) || !isString(call.attributes))
    return bad("call: invalid name");
  if (tensors > left / 3)
    return bad("call: invalid size");
  for (uint64_t i = 0; i < tensors; ++i) {
    if (left < 3)
      return bad("call: invalid size");
    uint32_t buffer = next[0], dtype = next[1], rank = next[2];
    if (!isBuffer(buffer) || !dtypeBits(int32_t(dtype)) || rank > DLCRT_MAX_RANK)
      return bad("call: invalid buffer, type or rank");
    if (left - 3 < rank)
      return bad("call: invalid size");
    if (!areRegisters(next + 3, rank))
      return bad("call: invalid register");
    next += 3 + rank;
    left -= 3 + rank;
    dims += rank;
  }
  if (left > 1)
    return bad("call: invalid size");
  raise(plan.maxTensors, uint32_t(tensors));
  raise(plan.maxDims, uint32_t(dims));
  return plan.calls.append(&call) ? DLCRT_OK : failOutOfMemory(error, "the module's plans", sizeof(void *));
}

Status dlcrt::impl::verifyPlan(Module &module, uint32_t index, Plan &plan, Error *error) {
  return PlanVerifier(module, index, plan, error).run();
}
