/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Tensors of the application against the signature.
#include "Dtype.h"
#include "Instance.h"
#include "Strided.h"

using namespace dlcrt::impl;

/// Checks that hold for inputs and outputs alike, and copies the caller's struct.
static Status checkTensor(Instance &instance, const char *direction, const dlcrt_value_desc &value,
                          const dlcrt_tensor *given, dlcrt_tensor &tensor, uint32_t &device, Error *error) {
  const char *name = instance.module.string(value.name);
  if (Status status = readStruct(given, tensor, "dlcrt_tensor", error))
    return withPrefix(error, status, name);
  if (value.dtype == DLCRT_DTYPE_STRING)
    return fail(error, DLCRT_ERROR_UNSUPPORTED,
                "%s '%s' is a tensor of strings, which this version of the runtime does not take", direction, name);
  if (uint32_t(tensor.dtype) != value.dtype)
    return fail(error, DLCRT_ERROR_DTYPE, "%s '%s': expected %s, got %s", direction, name,
                dlcrt_dtype_name(int32_t(value.dtype)), dlcrt_dtype_name(tensor.dtype));
  if (tensor.rank != value.rank)
    return fail(error, DLCRT_ERROR_SHAPE, "%s '%s': expected rank %u, got %u", direction, name, value.rank,
                tensor.rank);
  if (tensor.rank && !tensor.dims)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s '%s': dims is NULL", direction, name);
  if (tensor.strides && dtypeBits(tensor.dtype) < 8)
    return fail(error, DLCRT_ERROR_UNSUPPORTED, "%s '%s': a tensor of %s has to be dense", direction, name,
                dlcrt_dtype_name(tensor.dtype));
  return instance.deviceOf(tensor, direction, name, device, error);
}

static bool isAligned(const dlcrt_tensor &tensor) {
  return (uintptr_t(tensor.data) + tensor.byte_offset) % dtypeAlignment(tensor.dtype) == 0;
}

Status dlcrt::impl::bindInput(Instance &instance, uint32_t index, const dlcrt_tensor *given, Error *error) {
  const Module &module = instance.module;
  const dlcrt_value_desc &value = module.input(instance.function, index);
  const char *name = module.string(value.name);
  dlcrt_tensor tensor;
  uint32_t device;
  if (Status status = checkTensor(instance, "input", value, given, tensor, device, error))
    return status;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    const dlcrt_expr_node &dim = module.exprs[module.dim(value, i)];
    if (tensor.dims[i] < 0 || (dim.kind == DLCRT_EXPR_CONST && tensor.dims[i] != dim.value)) {
      char expected[32] = "0 or more";
      if (dim.kind == DLCRT_EXPR_CONST)
        TextWriter(expected, sizeof(expected)).print("%lld", (long long)dim.value);
      return fail(error, DLCRT_ERROR_SHAPE, "input '%s': dimension %u is %lld, expected %s", name, i,
                  (long long)tensor.dims[i], expected);
    }
  }
  uint64_t elements, bytes;
  if (!elementCount(tensor.rank, tensor.dims, elements) || !denseBytes(tensor.dtype, elements, bytes))
    return fail(error, DLCRT_ERROR_OVERFLOW, "input '%s' has too many elements", name);
  if (bytes && !tensor.data)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "input '%s': data is NULL", name);
  bool dense = isDense(tensor.rank, tensor.dims, tensor.strides);
  uint64_t extent = bytes;
  if (tensor.capacity &&
      (dense || stridedExtent(dtypeBits(tensor.dtype) / 8, tensor.rank, tensor.dims, tensor.strides, extent)) &&
      extent > tensor.capacity)
    return fail(error, DLCRT_ERROR_CAPACITY, "input '%s' needs %llu bytes, but has %llu", name,
                (unsigned long long)extent, (unsigned long long)tensor.capacity);
  bool direct = dense && (device != 0 || isAligned(tensor));
  if (device != 0 && !dense)
    return fail(error, DLCRT_ERROR_UNSUPPORTED, "input '%s': a tensor on a device has to be dense", name);

  Input &input = instance.inputs[index];
  bool sameDims = input.bound;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    sameDims = sameDims && input.dims[i] == tensor.dims[i];
    input.dims[i] = tensor.dims[i];
    input.strides[i] = dense ? 0 : tensor.strides[i];
  }
  input.bound = true;
  input.direct = direct;
  input.device = device;
  input.bytes = bytes;
  input.tensor = tensor;
  input.tensor.dims = input.dims;
  input.tensor.strides = dense ? nullptr : input.strides;
  instance.symbolsKnown &= sameDims;
  return DLCRT_OK;
}

Status dlcrt::impl::bindOutput(Instance &instance, uint32_t index, const dlcrt_tensor *given, Error *error) {
  const dlcrt_value_desc &value = instance.module.output(instance.function, index);
  const char *name = instance.module.string(value.name);
  dlcrt_tensor tensor;
  uint32_t device;
  if (Status status = checkTensor(instance, "output", value, given, tensor, device, error))
    return status;
  if (tensor.capacity && !tensor.data)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "output '%s': data is NULL", name);
  if (device != 0 && tensor.strides)
    return fail(error, DLCRT_ERROR_UNSUPPORTED, "output '%s': a tensor on a device has to be dense", name);
  Output &output = instance.outputs[index];
  for (uint32_t i = 0; tensor.strides && i < tensor.rank; ++i)
    if (tensor.strides[i] < 0)
      return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "output '%s': stride %u is negative", name, i);
  for (uint32_t i = 0; tensor.strides && i < tensor.rank; ++i)
    output.strides[i] = tensor.strides[i];
  output.mode = Output::Mode::Bound;
  output.device = device;
  output.tensor = tensor;
  output.callerDims = tensor.dims;
  output.tensor.strides = tensor.strides ? output.strides : nullptr;
  output.set = false;
  return DLCRT_OK;
}

Status dlcrt::impl::failValue(const Module &module, const dlcrt_function_desc &function, Span<dlcrt_expr_node> nodes,
                              const Values &registers, uint32_t node, Error *error) {
  FunctionSymbols symbols{module, function};
  if (registers.state[node] == ValueState::Overflow) {
    char text[200];
    TextWriter out(text, sizeof(text));
    printExpr(out, nodes, node, symbols.names());
    return fail(error, DLCRT_ERROR_OVERFLOW,
                "dimension overflow: %s does not fit into 64 bits, or divides by zero, for these inputs", text);
  }
  // Which symbol has no value?
  while (operandCount(nodes[node].kind) > 0) {
    const dlcrt_expr_node &n = nodes[node];
    const uint32_t operands[] = {n.a, n.b, n.c, n.d};
    uint32_t next = DLCRT_NONE;
    for (int i = 0; i < operandCount(n.kind) && next == DLCRT_NONE; ++i)
      if (registers.state[operands[i]] == ValueState::Undefined)
        next = operands[i];
    if (next == DLCRT_NONE)
      break;
    node = next;
  }
  if (nodes[node].kind == DLCRT_EXPR_SYMBOL && uint64_t(nodes[node].value) < function.symbol_count)
    return fail(error, DLCRT_ERROR_NOT_BOUND, "dimension '%s' is not known: no bound input has it",
                FunctionSymbols::nameOf(&symbols, nodes[node].value));
  return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan uses register %u before it is computed", node);
}

Status dlcrt::impl::evaluateDims(const Module &module, const dlcrt_function_desc &function,
                                 const dlcrt_value_desc &value, const Values &registers, int64_t *dims, uint64_t *bytes,
                                 Error *error) {
  int64_t all[DLCRT_MAX_RANK];
  bool late = false;
  for (uint32_t i = 0; i < value.rank; ++i) {
    uint32_t node = module.dim(value, i);
    if (node == DLCRT_NONE) {
      late = true;
      all[i] = -1;
      continue;
    }
    if (registers.state[node] != ValueState::Valid)
      return failValue(module, function, module.exprs, registers, node, error);
    all[i] = registers.value[node];
    if (all[i] < 0)
      return fail(error, DLCRT_ERROR_OVERFLOW, "dimension %u of '%s' is %lld", i, module.string(value.name),
                  (long long)all[i]);
  }
  uint64_t elements, size = UINT64_MAX;
  if (!late && (!elementCount(value.rank, all, elements) || !denseBytes(int32_t(value.dtype), elements, size)))
    return fail(error, DLCRT_ERROR_OVERFLOW, "'%s' has too many elements", module.string(value.name));
  if (dims && value.rank)
    memcpy(dims, all, value.rank * sizeof(int64_t));
  if (bytes)
    *bytes = size;
  return DLCRT_OK;
}

/// The first input dimension that is a symbol gives it its value; the others must agree.
static Status collectSymbols(Instance &instance, Error *error) {
  const Module &module = instance.module;
  Values symbols = instance.functionSymbols();
  for (uint64_t i = 0; i < symbols.count; ++i)
    symbols.state[i] = ValueState::Undefined;
  if (const dlcrt_state_function *use = instance.stateUse) {
    auto set = [&](uint32_t symbol, int64_t value) {
      if (symbol == DLCRT_NONE)
        return;
      symbols.set(symbol, value);
      instance.symbolInputs[symbol] = DLCRT_NONE;
    };
    set(use->length_symbol, instance.state->length);
    for (uint64_t i = 0; i < module.stateSymbols.count; ++i)
      set(module.stateNumbers[use->first_symbol + i], instance.state->symbol(i));
  }
  for (uint32_t i = 0; i < instance.function.input_count; ++i) {
    const dlcrt_value_desc &value = module.input(instance.function, i);
    const Input &input = instance.inputs[i];
    for (uint32_t d = 0; input.bound && d < value.rank; ++d) {
      const dlcrt_expr_node &node = module.exprs[module.dim(value, d)];
      if (node.kind != DLCRT_EXPR_SYMBOL)
        continue;
      uint64_t symbol = uint64_t(node.value);
      if (symbols.state[symbol] != ValueState::Valid) {
        symbols.set(symbol, input.dims[d]);
        instance.symbolInputs[symbol] = i;
        continue;
      }
      if (symbols.value[symbol] == input.dims[d])
        continue;
      const dlcrt_symbol_desc &desc = module.symbols[instance.function.first_symbol + symbol];
      uint32_t other = instance.symbolInputs[symbol];
      if (other == DLCRT_NONE)
        return fail(error, DLCRT_ERROR_SHAPE, "the state and input '%s' disagree on '%s': %lld and %lld",
                    instance.inputName(i), module.string(desc.name), (long long)symbols.value[symbol],
                    (long long)input.dims[d]);
      if (other == i)
        return fail(error, DLCRT_ERROR_SHAPE, "input '%s' has two values for '%s': %lld and %lld",
                    instance.inputName(i), module.string(desc.name), (long long)symbols.value[symbol],
                    (long long)input.dims[d]);
      return fail(error, DLCRT_ERROR_SHAPE, "inputs '%s' and '%s' disagree on '%s': %lld and %lld",
                  instance.inputName(other), instance.inputName(i), module.string(desc.name),
                  (long long)symbols.value[symbol], (long long)input.dims[d]);
    }
  }
  return DLCRT_OK;
}

static Status checkPromises(Instance &instance, Error *error) {
  const Module &module = instance.module;
  Values symbols = instance.functionSymbols();
  for (uint64_t i = 0; i < symbols.count; ++i) {
    if (symbols.state[i] != ValueState::Valid)
      continue;
    const dlcrt_symbol_desc &desc = module.symbols[instance.function.first_symbol + i];
    const char *name = module.string(desc.name);
    char source[200];
    TextWriter out(source, sizeof(source));
    if (instance.symbolInputs[i] == DLCRT_NONE)
      out.print("the state");
    else
      out.print("input '%s'", instance.inputName(instance.symbolInputs[i]));
    int64_t value = symbols.value[i];
    if (value < desc.min || value > desc.max) {
      if (desc.max == INT64_MAX)
        return fail(error, DLCRT_ERROR_SHAPE, "%s: '%s' is %lld, but has to be at least %lld", source, name,
                    (long long)value, (long long)desc.min);
      return fail(error, DLCRT_ERROR_SHAPE, "%s: '%s' is %lld, but has to be between %lld and %lld", source, name,
                  (long long)value, (long long)desc.min, (long long)desc.max);
    }
    if (value % desc.divisor != 0)
      return fail(error, DLCRT_ERROR_SHAPE, "%s: '%s' is %lld, but has to be a multiple of %lld", source, name,
                  (long long)value, (long long)desc.divisor);
  }
  return DLCRT_OK;
}

/// Whether what the run writes fits behind what is there.
static Status checkGrowth(Instance &instance, Error *error) {
  const Module &module = instance.module;
  const dlcrt_state_function &use = *instance.stateUse;
  Values registers = instance.functionRegisters();
  if (registers.state[use.growth] != ValueState::Valid)
    return failValue(module, instance.function, module.exprs, registers, use.growth, error);
  int64_t growth = registers.value[use.growth], length = instance.state->length, capacity = instance.state->capacity;
  if (growth < 0)
    return fail(error, DLCRT_ERROR_OVERFLOW, "the run would make the state longer by %lld", (long long)growth);
  if (growth > capacity - length) // neither is negative
    return fail(error, DLCRT_ERROR_CAPACITY,
                "state '%s' is full: %llu of %lld; create the state with a larger capacity, or let it grow",
                instance.state->name(module.stateNumbers[use.first_state]),
                (unsigned long long)length + (unsigned long long)growth, (long long)capacity);
  return DLCRT_OK;
}

/// Input dims that are expressions of symbols.
static Status checkDims(Instance &instance, Error *error) {
  const Module &module = instance.module;
  Values registers = instance.functionRegisters();
  for (uint32_t i = 0; i < instance.function.input_count; ++i) {
    const dlcrt_value_desc &value = module.input(instance.function, i);
    for (uint32_t d = 0; instance.inputs[i].bound && d < value.rank; ++d) {
      uint32_t node = module.dim(value, d);
      if (registers.state[node] != ValueState::Valid)
        return failValue(module, instance.function, module.exprs, registers, node, error);
      if (registers.value[node] == instance.inputs[i].dims[d])
        continue;
      FunctionSymbols names{module, instance.function};
      char text[200];
      TextWriter out(text, sizeof(text));
      printExpr(out, module.exprs, node, names.names());
      return fail(error, DLCRT_ERROR_SHAPE, "input '%s': dimension %u is %lld, expected %lld, which is %s",
                  instance.inputName(i), d, (long long)instance.inputs[i].dims[d], (long long)registers.value[node],
                  text);
    }
  }
  return DLCRT_OK;
}

Status dlcrt::impl::bindSymbols(Instance &instance, Error *error) {
  if (instance.stateUse && !instance.state)
    return fail(error, DLCRT_ERROR_NOT_BOUND,
                "function '%s' works on a state and has none: make one with dlcrt_state_create and attach it with "
                "dlcrt_instance_set_state",
                instance.module.string(instance.function.name));
  uint64_t version = instance.state ? instance.state->version : 0;
  if (instance.symbolsKnown && instance.boundVersion == version)
    return DLCRT_OK;
  instance.symbolsKnown = false;
  instance.boundVersion = version;
  instance.planValuesKnown = false;
  if (Status status = collectSymbols(instance, error))
    return status;
  if (Status status = checkPromises(instance, error))
    return status;
  evaluate(instance.module.exprs, 0, instance.module.exprs.count, instance.functionSymbols(),
           instance.functionRegisters());
  if (Status status = checkDims(instance, error))
    return status;
  if (instance.stateUse)
    if (Status status = checkGrowth(instance, error))
      return status;
  instance.symbolsKnown = true;
  return DLCRT_OK;
}
