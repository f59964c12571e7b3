/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Prepare.h"

#include "dlcrt/kernel_abi.h"

using namespace dlcrt::impl;

static Status chooseVariant(Instance &instance, Error *error) {
  const Module &module = instance.module;
  Values registers = instance.functionRegisters();
  for (Candidate &candidate : instance.candidates) {
    uint32_t guard = module.variants[candidate.variant].guard;
    if (guard != DLCRT_NONE && (registers.state[guard] != ValueState::Valid || registers.value[guard] == 0))
      continue;
    instance.planValuesKnown &= instance.current == &candidate;
    instance.current = &candidate;
    return DLCRT_OK;
  }
  return fail(error, DLCRT_ERROR_NO_VARIANT, "function '%s' has no variant for these dims",
              module.string(instance.function.name));
}

static Status loadImages(Instance &instance, Error *error) {
  const dlcrt_variant_desc &variant = instance.module.variants[instance.current->variant];
  if (variant.code_bytes == 0)
    return DLCRT_OK;
  uint32_t deviceCount = variant.device == DLCRT_NONE ? 1 : 2;
  for (uint32_t i = 0; i < deviceCount; ++i)
    if (!instance.current->image[i])
      if (Status status =
              instance.devices[i].load_image(instance.devices[i].ctx, instance.module.code.data + variant.code_offset,
                                             variant.code_bytes, &instance.current->image[i], error))
        return status;
  return DLCRT_OK;
}

/// All registers that do not depend on late symbols get their values, the others none.
static void evaluatePlan(Instance &instance) {
  const Plan &plan = instance.plan();
  Values symbols = instance.symbols(), registers = instance.planRegisters();
  for (uint64_t i = instance.function.symbol_count; i < symbols.count; ++i)
    symbols.state[i] = ValueState::Undefined;
  if (!instance.planValuesKnown) {
    evaluate(plan.exprs, 0, plan.exprs.count, symbols, registers);
    instance.planValuesKnown = true;
    instance.layout = nullptr;
    return;
  }
  for (uint32_t node : plan.lateNodes)
    registers.state[node] = ValueState::Undefined;
}

/// A symbol's value as part of a layout's key. One on which no size depends is none: a cache that grows from run to run
/// moves nothing.
static int64_t keyOf(const Plan &plan, const Values &symbols, uint64_t i) {
  return plan.sizing[i] && symbols.state[i] == ValueState::Valid ? symbols.value[i] : INT64_MIN;
}

/// The cached layout for the symbols' values, or the one to replace.
static bool findLayout(Instance &instance, Layout *&found) {
  Values symbols = instance.functionSymbols();
  Layout *oldest = nullptr;
  for (Layout &layout : instance.current->layouts) {
    bool same = layout.lastUse != 0;
    for (uint64_t i = 0; same && i < symbols.count; ++i)
      same = layout.symbols[i] == keyOf(instance.plan(), symbols, i);
    if (same) {
      found = &layout;
      return true;
    }
    if (!oldest || layout.lastUse < oldest->lastUse)
      oldest = &layout;
  }
  found = oldest;
  return false;
}

/// A slot whose size cannot be computed may stand in a branch that is not taken: it has no bytes, and an error arises
/// where it is used.
static uint64_t slotBytes(const Values &registers, const PlannedSlot &slot) {
  bool ok = registers.state[slot.bytesExpr] == ValueState::Valid && registers.value[slot.bytesExpr] > 0;
  return ok ? alignUp(uint64_t(registers.value[slot.bytesExpr]), DLCRT_BUFFER_ALIGNMENT) : 0; // int64: no overflow
}

BlockCounts dlcrt::impl::blocksOf(const Plan &plan, const Values &registers, uint32_t device, ArenaBlock *blocks,
                                  uint32_t *slots) {
  BlockCounts counts = {0, 0};
  for (const PlannedSlot &slot : plan.fixed)
    if (slot.device == device)
      blocks[counts.fixed++] = {slotBytes(registers, slot), slot.offset, slot.firstStage, slot.lastStage};
  counts.all = counts.fixed;
  for (uint64_t i = 0; i < plan.symbolic.size(); ++i) {
    const PlannedSlot &slot = plan.symbolic[i];
    if (slot.device != device)
      continue;
    if (slots)
      slots[counts.all] = uint32_t(i);
    blocks[counts.all++] = {slotBytes(registers, slot), 0, slot.firstStage, slot.lastStage};
  }
  return counts;
}

static Status computeLayout(Instance &instance, Layout &layout, Error *error) {
  const Plan &plan = instance.plan();
  Values symbols = instance.functionSymbols(), registers = instance.planRegisters();
  layout.lastUse = 0; // not valid while it is changed
  layout.lowerBound = 0;
  if (!layout.symbols.resize(symbols.count) || !layout.offsets.resize(plan.symbolic.size()))
    return failOutOfMemory(error, "the arena's layout", plan.symbolic.size() * sizeof(uint64_t));
  for (uint64_t i = 0; i < symbols.count; ++i)
    layout.symbols[i] = keyOf(plan, symbols, i);
  for (uint32_t device = 0; device < 2; ++device) {
    auto [fixedCount, count] = blocksOf(plan, registers, device, instance.blocks.data(), instance.blockSlots.data());
    uint64_t end = 0;
    if (count != fixedCount)
      if (Status status = instance.planner.place(instance.blocks.data(), fixedCount, count, end, error))
        return status;
    for (uint32_t i = fixedCount; i < count; ++i)
      layout.offsets[instance.blockSlots[i]] = instance.blocks[i].offset;
    layout.lowerBound += arenaLowerBound(instance.blocks.data(), count);
    uint64_t fixedBytes = plan.header->fixed_bytes[device];
    layout.bytes[device] = end > fixedBytes ? end : fixedBytes;
  }
  ++instance.layoutsComputed;
  return DLCRT_OK;
}

static Status placeSlots(Instance &instance, Error *error) {
  if (instance.layout)
    return DLCRT_OK;
  Layout *layout;
  if (!findLayout(instance, layout))
    if (Status status = computeLayout(instance, *layout, error))
      return status;
  layout->lastUse = ++instance.layoutClock;
  for (uint32_t device = 0; device < 2; ++device)
    if (Status status = instance.grow(instance.arena[device], layout->bytes[device], instance.arenaBytes,
                                      device ? "the arena on the device" : "the arena", error))
      return status;
  instance.layout = layout;
  return DLCRT_OK;
}

static bool overflows(const Vector<PlannedSlot> &slots, const Values &registers) {
  for (const PlannedSlot &slot : slots)
    if (registers.state[slot.bytesExpr] == ValueState::Overflow)
      return true;
  return false;
}

Status dlcrt::impl::measureArena(const Module &module, uint32_t variant, const Values &symbols, dlcrt_arena_info &info,
                                 Error *error) {
  const Plan &plan = module.plans[variant];
  uint64_t slots = plan.fixed.size() + plan.symbolic.size();
  Memory memory;
  Vector<int64_t> values(memory), symbolValues(memory);
  Vector<ValueState> states(memory), symbolStates(memory);
  Vector<ArenaBlock> blocks(memory);
  uint64_t symbolCount = symbols.count + plan.header->late_symbol_count;
  if (!values.resize(plan.exprs.count) || !states.resize(plan.exprs.count) || !blocks.resize(slots) ||
      !symbolValues.resize(symbolCount) || !symbolStates.resize(symbolCount))
    return failOutOfMemory(error, "the arena's layout", slots * sizeof(ArenaBlock));
  Values all{symbolValues.data(), symbolStates.data(), symbolCount}, registers{values.data(), states.data(), values.size()};
  for (uint64_t i = 0; i < symbolCount; ++i) {
    all.value[i] = i < symbols.count ? symbols.value[i] : 0;
    all.state[i] = i < symbols.count ? symbols.state[i] : ValueState::Undefined;
  }
  evaluate(plan.exprs, 0, plan.exprs.count, all, registers);
  if (overflows(plan.fixed, registers) || overflows(plan.symbolic, registers))
    return fail(error, DLCRT_ERROR_OVERFLOW, "the size of a buffer for these dims does not fit into 64 bits");
  ArenaPlanner planner(memory);
  info.slot_count = uint32_t(slots);
  info.bytes = info.lower_bound_bytes = 0;
  for (uint32_t device = 0; device < 2; ++device) {
    BlockCounts counts = blocksOf(plan, registers, device, blocks.data(), nullptr);
    uint64_t end = 0, fixedBytes = plan.header->fixed_bytes[device];
    if (Status status = planner.place(blocks.data(), counts.fixed, counts.all, end, error))
      return status;
    info.bytes += end > fixedBytes ? end : fixedBytes;
    info.lower_bound_bytes += arenaLowerBound(blocks.data(), counts.all);
  }
  return DLCRT_OK;
}

Status dlcrt::impl::prepare(Instance &instance, Error *error) {
  if (Status status = bindSymbols(instance, error))
    return status;
  if (Status status = chooseVariant(instance, error))
    return status;
  if (Status status = loadImages(instance, error))
    return status;
  evaluatePlan(instance);
  return placeSlots(instance, error);
}
