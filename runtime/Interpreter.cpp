/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Executes a plan. Numbers in instructions were verified when the module was opened; values are checked here.
#include "Dtype.h"
#include "Instance.h"
#include "Prepare.h"
#include "Strided.h"
#include "cpu/FpState.h"

using namespace dlcrt::impl;

namespace {

class Interpreter {
public:
  Interpreter(Instance &instance, const dlcrt_run_options &options, Error *error)
      : instance(instance), module(instance.module), function(instance.function), plan(instance.plan()),
        options(options), error(error), symbols(instance.symbols()), registers(instance.planRegisters()) {}

  Status run();

private:
  Status block(const uint8_t *begin, const uint8_t *end);
  Status execute(const dlcrt_instr &head);
  Status execute(const dlcrt_instr_const &i);
  Status execute(const dlcrt_instr_input &i);
  Status execute(const dlcrt_instr_state &i);
  Status execute(const dlcrt_instr_output &i);
  Status execute(const dlcrt_instr_slot &i);
  Status execute(const dlcrt_instr_view &i);
  Status execute(const dlcrt_instr_check &i);
  Status execute(const dlcrt_instr_read &i);
  Status execute(const dlcrt_instr_launch &i);
  Status execute(const dlcrt_instr_copy &i);
  Status execute(const dlcrt_instr_fill &i);
  Status execute(const dlcrt_instr_if &i);
  Status execute(const dlcrt_instr_loop &i);
  Status execute(const dlcrt_instr_call &i);

  Status boundInput(uint32_t index, Buffer &buffer);
  Status placeOutput(uint32_t index, Output &output);
  Status finishOutputs();

  /// The value of a register.
  Status value(uint32_t index, int64_t &out) {
    out = 0;
    if (registers.state[index] != ValueState::Valid)
      return failValue(module, function, plan.exprs, registers, index, error);
    out = registers.value[index];
    return DLCRT_OK;
  }
  /// A register that counts something.
  Status size(uint32_t index, uint64_t &out) {
    out = 0;
    int64_t signedValue;
    if (Status status = value(index, signedValue))
      return status;
    if (signedValue < 0)
      return fail(error, DLCRT_ERROR_OVERFLOW, "a size in the plan is negative for these inputs: %lld",
                  (long long)signedValue);
    out = uint64_t(signedValue);
    return DLCRT_OK;
  }
  /// Gives a late symbol its value, and all nodes that depend on it theirs.
  void setSymbol(uint32_t symbol, int64_t value) {
    symbols.set(symbol, value);
    for (uint32_t node : plan.lateNodes)
      evaluate(plan.exprs, node, 1, symbols, registers);
  }
  Status buffer(uint32_t index, const Buffer *&out) {
    out = &instance.buffers[index];
    if (!out->set)
      return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan uses buffer %u before it is set", index);
    return DLCRT_OK;
  }
  void setBuffer(uint32_t index, void *address, uint64_t bytes, uint32_t device, bool writable) {
    instance.buffers[index] = {static_cast<char *>(address), bytes, uint8_t(device), true, writable};
  }
  /// Makes a region of late memory large enough. Registers that name what it was before become unset.
  Status growLate(GrowRegion &region, uint64_t bytes, uint64_t &counter, const char *what) {
    if (bytes > region.capacity)
      for (Buffer &b : instance.buffers)
        b.set &= b.device != region.device || b.address < region.data ||
                 b.address >= static_cast<char *>(region.data) + region.capacity;
    return instance.grow(region, bytes, counter, what, error);
  }
  dlcrt_device &device(uint32_t index) { return instance.devices[index]; }
  /// Copies between any two devices.
  Status transfer(uint32_t toDevice, void *to, uint32_t fromDevice, const void *from, uint64_t bytes);

  uint64_t traceBegin() const { return options.trace ? nowNs() : 0; }
  void trace(uint64_t begin, enum dlcrt_trace_kind kind, const char *name, uint32_t device, uint64_t tiles,
             uint64_t bytes, uint32_t debug = DLCRT_NONE, uint64_t flops = 0);

  Instance &instance;
  const Module &module;
  const dlcrt_function_desc &function;
  const Plan &plan;
  const dlcrt_run_options &options;
  Error *error;
  Values symbols, registers;
  uint32_t stage = 0;
};

const uint32_t *numbersAfter(const void *instruction, size_t bytes) {
  return reinterpret_cast<const uint32_t *>(static_cast<const char *>(instruction) + bytes);
}

} // namespace

Status Interpreter::run() {
  for (uint32_t i = 0; i < plan.header->buffer_count; ++i)
    instance.buffers[i].set = false;
  for (Input &input : instance.inputs)
    input.staged = false;
  for (Output &output : instance.outputs)
    output.set = output.staged = false;
  if (Status status = block(plan.instructions.begin(), plan.instructions.end()))
    return status;
  if (instance.devices[1].kind && !options.stream)
    if (Status status = device(1).wait(device(1).ctx, nullptr, error))
      return status;
  return finishOutputs();
}

Status Interpreter::block(const uint8_t *begin, const uint8_t *end) {
  for (const uint8_t *next = begin; next != end;) {
    auto &head = *reinterpret_cast<const dlcrt_instr *>(next);
    if (Status status = execute(head))
      return status;
    next += head.bytes;
  }
  return DLCRT_OK;
}

Status Interpreter::execute(const dlcrt_instr &head) {
  switch (head.opcode) {
  case DLCRT_OP_CONST:
    return execute(reinterpret_cast<const dlcrt_instr_const &>(head));
  case DLCRT_OP_INPUT:
    return execute(reinterpret_cast<const dlcrt_instr_input &>(head));
  case DLCRT_OP_STATE:
    return execute(reinterpret_cast<const dlcrt_instr_state &>(head));
  case DLCRT_OP_OUTPUT:
    return execute(reinterpret_cast<const dlcrt_instr_output &>(head));
  case DLCRT_OP_SLOT:
    return execute(reinterpret_cast<const dlcrt_instr_slot &>(head));
  case DLCRT_OP_VIEW:
    return execute(reinterpret_cast<const dlcrt_instr_view &>(head));
  case DLCRT_OP_DIM: // setSymbol has done it
    return DLCRT_OK;
  case DLCRT_OP_CHECK:
    return execute(reinterpret_cast<const dlcrt_instr_check &>(head));
  case DLCRT_OP_READ:
    return execute(reinterpret_cast<const dlcrt_instr_read &>(head));
  case DLCRT_OP_LAUNCH:
    return execute(reinterpret_cast<const dlcrt_instr_launch &>(head));
  case DLCRT_OP_COPY:
    return execute(reinterpret_cast<const dlcrt_instr_copy &>(head));
  case DLCRT_OP_FILL:
    return execute(reinterpret_cast<const dlcrt_instr_fill &>(head));
  case DLCRT_OP_IF:
    return execute(reinterpret_cast<const dlcrt_instr_if &>(head));
  case DLCRT_OP_LOOP:
    return execute(reinterpret_cast<const dlcrt_instr_loop &>(head));
  case DLCRT_OP_CALL:
    return execute(reinterpret_cast<const dlcrt_instr_call &>(head));
  case DLCRT_OP_STAGE:
    stage = reinterpret_cast<const dlcrt_instr_stage &>(head).stage;
    return DLCRT_OK;
  default: // DLCRT_OP_RETURN, the last one
    return DLCRT_OK;
  }
}

// ---------------------------------------------------------------------------------------------- where buffers are

Status Interpreter::execute(const dlcrt_instr_const &i) {
  const dlcrt_constant &constant = module.constantTable[i.constant];
  void *address = const_cast<uint8_t *>(module.constant(i.constant));
  if (i.device == 1) {
    GrowRegion &region = instance.uploadedConstants[i.constant];
    if (!region.data && constant.bytes) {
      if (Status status =
              instance.grow(region, constant.bytes, instance.stagingBytes, "constants on the device", error))
        return status;
      if (Status status = transfer(1, region.data, 0, address, constant.bytes))
        return status;
    }
    address = region.data;
  }
  setBuffer(i.buffer, address, constant.bytes, i.device, false);
  return DLCRT_OK;
}

Status Interpreter::execute(const dlcrt_instr_input &i) {
  const dlcrt_value_desc &value = module.input(function, i.input);
  Buffer result = {nullptr, 0, 0, true, false};
  if (instance.inputs[i.input].bound) {
    if (Status status = boundInput(i.input, result))
      return status;
  } else if (value.default_constant != DLCRT_NONE) {
    uint64_t bytes = module.constantTable[value.default_constant].bytes, expected;
    if (evaluateDims(module, function, value, instance.functionRegisters(), nullptr, &expected, nullptr) == DLCRT_OK &&
        expected != bytes)
      return fail(error, DLCRT_ERROR_BAD_MODULE, "the default of input '%s' has %llu bytes, not %llu",
                  instance.inputName(i.input), (unsigned long long)bytes, (unsigned long long)expected);
    result.address = reinterpret_cast<char *>(const_cast<uint8_t *>(module.constant(value.default_constant)));
    result.bytes = bytes;
  } else if (!(value.flags & DLCRT_VALUE_OPTIONAL)) {
    return fail(error, DLCRT_ERROR_NOT_BOUND, "input '%s' is not bound", instance.inputName(i.input));
  }
  instance.buffers[i.buffer] = result;
  return DLCRT_OK;
}

Status Interpreter::boundInput(uint32_t index, Buffer &buffer) {
  Input &input = instance.inputs[index];
  char *address = static_cast<char *>(input.tensor.data) + input.tensor.byte_offset;
  if (!input.direct) {
    if (!input.staged) {
      if (Status status =
              instance.grow(input.staging, input.bytes, instance.stagingBytes, "a dense copy of an input", error))
        return status;
      if (input.tensor.strides)
        copyFromStrided(input.staging.data, address, dtypeBits(input.tensor.dtype) / 8, input.tensor.rank, input.dims,
                        input.strides);
      else
        memcpy(input.staging.data, address, input.bytes);
      input.staged = true;
    }
    address = static_cast<char *>(input.staging.data);
  }
  buffer = {address, input.bytes, uint8_t(input.device), true, false};
  return DLCRT_OK;
}

Status Interpreter::execute(const dlcrt_instr_state &i) {
  const StateBuffer &memory = instance.state->buffers[i.state];
  setBuffer(i.buffer, memory.data, memory.bytes, 0, true);
  return DLCRT_OK;
}

Status Interpreter::execute(const dlcrt_instr_output &i) {
  const dlcrt_value_desc &value = module.output(function, i.output);
  Output &output = instance.outputs[i.output];
  const uint32_t *dims = numbersAfter(&i, sizeof(i));
  for (uint32_t d = 0; d < i.rank; ++d) {
    uint64_t dim;
    if (Status status = size(dims[d], dim))
      return withPrefix(error, status, instance.outputName(i.output));
    output.dims[d] = int64_t(dim);
  }
  uint64_t elements, bytes, planned;
  if (!elementCount(i.rank, output.dims, elements) || !denseBytes(int32_t(value.dtype), elements, bytes))
    return fail(error, DLCRT_ERROR_OVERFLOW, "output '%s' has too many elements", instance.outputName(i.output));
  if (Status status = size(i.bytes_expr, planned))
    return status;
  if (planned != bytes)
    return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan has %llu bytes for output '%s', which has %llu",
                (unsigned long long)planned, instance.outputName(i.output), (unsigned long long)bytes);
  output.bytes = bytes;
  output.staged = false;
  if (Status status = placeOutput(i.output, output))
    return status;
  output.set = true;
  setBuffer(i.buffer, output.staged ? output.owned.data : output.address, bytes,
            output.mode == Output::Mode::Bound ? output.device : 0, true);
  return DLCRT_OK;
}

/// Decides where the result goes: into the caller's memory, the callback's, or memory of the runtime.
Status Interpreter::placeOutput(uint32_t index, Output &output) {
  const dlcrt_value_desc &value = module.output(function, index);
  if (output.mode == Output::Mode::Bound) {
    uint64_t needed = output.bytes;
    bool dense = isDense(value.rank, output.dims, output.tensor.strides);
    if (!dense && !stridedExtent(dtypeBits(int32_t(value.dtype)) / 8, value.rank, output.dims, output.strides, needed))
      needed = UINT64_MAX;
    if (needed > output.tensor.capacity)
      return fail(error, DLCRT_ERROR_CAPACITY, "output '%s' needs %llu bytes, but has %llu", instance.outputName(index),
                  (unsigned long long)needed, (unsigned long long)output.tensor.capacity);
    output.address = static_cast<char *>(output.tensor.data) + output.tensor.byte_offset;
    bool aligned = uintptr_t(output.address) % dtypeAlignment(int32_t(value.dtype)) == 0;
    if (dense && (aligned || output.device != 0))
      return DLCRT_OK;
    output.staged = true;
  }
  if (output.mode == Output::Mode::Callback) {
    dlcrt_tensor wanted = {};
    wanted.struct_size = sizeof(wanted);
    wanted.dtype = int32_t(value.dtype);
    wanted.rank = value.rank;
    wanted.dims = output.dims;
    wanted.device_kind = DLCRT_MEMORY_CPU;
    wanted.capacity = output.bytes;
    output.address = output.callback(output.callbackCtx, index, &wanted);
    if (!output.address && output.bytes)
      return fail(error, DLCRT_ERROR_OUT_OF_MEMORY, "the callback for output '%s' gave no memory for %llu bytes",
                  instance.outputName(index), (unsigned long long)output.bytes);
    if (uintptr_t(output.address) % dtypeAlignment(int32_t(value.dtype)) != 0)
      return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "the callback for output '%s' gave memory that is not aligned",
                  instance.outputName(index));
    return DLCRT_OK;
  }
  if (Status status = growLate(output.owned, output.bytes, instance.outputBytes, "an output"))
    return status;
  if (!output.staged) // otherwise `address` is where the result goes in the end
    output.address = output.owned.data;
  return DLCRT_OK;
}

Status Interpreter::execute(const dlcrt_instr_slot &i) {
  uint64_t bytes;
  if (Status status = size(i.bytes_expr, bytes))
    return status;
  GrowRegion &arena = instance.arena[i.device];
  switch (i.slot_class) {
  case DLCRT_SLOT_FIXED:
    if (bytes > plan.header->fixed_bytes[i.device] - i.offset)
      return fail(error, DLCRT_ERROR_BAD_MODULE, "a fixed slot of %llu bytes ends outside the arena",
                  (unsigned long long)bytes);
    setBuffer(i.buffer, static_cast<char *>(arena.data) + i.offset, bytes, i.device, true);
    return DLCRT_OK;
  case DLCRT_SLOT_SYMBOLIC: // placed for exactly this size
    setBuffer(i.buffer, static_cast<char *>(arena.data) + instance.layout->offsets[i.offset], bytes, i.device, true);
    return DLCRT_OK;
  default: { // DLCRT_SLOT_LATE
    GrowRegion &region = instance.lateSlots[i.offset];
    if (!region.data)
      region.device = i.device;
    if (region.device != i.device) { // another variant's slot of the same number
      instance.lateBytes -= region.capacity;
      instance.free(region);
      region.device = i.device;
    }
    if (Status status = growLate(region, bytes, instance.lateBytes, "a buffer"))
      return status;
    setBuffer(i.buffer, region.data, bytes, i.device, true);
    return DLCRT_OK;
  }
  }
}

Status Interpreter::execute(const dlcrt_instr_view &i) {
  const Buffer *source;
  uint64_t offset, bytes;
  if (Status status = buffer(i.source, source))
    return status;
  if (Status status = size(i.offset_expr, offset))
    return status;
  if (Status status = size(i.bytes_expr, bytes))
    return status;
  if (offset > source->bytes || bytes > source->bytes - offset)
    return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan looks at bytes %llu to %llu of a buffer of %llu",
                (unsigned long long)offset, (unsigned long long)(offset + bytes), (unsigned long long)source->bytes);
  Buffer view = *source;
  view.address = view.address ? view.address + offset : nullptr;
  view.bytes = bytes;
  instance.buffers[i.buffer] = view;
  return DLCRT_OK;
}

// ---------------------------------------------------------------------------------------------- work

Status Interpreter::transfer(uint32_t toDevice, void *to, uint32_t fromDevice, const void *from, uint64_t bytes) {
  if (bytes == 0)
    return DLCRT_OK;
  if (toDevice == fromDevice)
    return device(toDevice).copy(device(toDevice).ctx, options.stream, to, from, bytes, error);
  if (toDevice == 0)
    return device(1).download(device(1).ctx, options.stream, to, from, bytes, error);
  return device(1).upload(device(1).ctx, options.stream, to, from, bytes, error);
}

void Interpreter::trace(uint64_t begin, enum dlcrt_trace_kind kind, const char *name, uint32_t device, uint64_t tiles,
                        uint64_t bytes, uint32_t debug, uint64_t flops) {
  if (!options.trace)
    return;
  bool known = debug < module.debug.count;
  dlcrt_trace_event event = {};
  event.struct_size = sizeof(event);
  event.kind = kind;
  event.name = name;
  event.node_names = known ? module.string(module.debug[debug].node_names) : "";
  event.op_types = known ? module.string(module.debug[debug].op_types) : "";
  event.stage = stage;
  event.device = device;
  event.tiles = tiles;
  event.bytes = bytes;
  event.flops = flops;
  event.begin_ns = begin;
  event.end_ns = nowNs();
  options.trace(options.trace_ctx, &event);
}

Status Interpreter::execute(const dlcrt_instr_check &i) {
  int64_t condition;
  if (Status status = value(i.condition, condition))
    return status;
  if (condition != 0)
    return DLCRT_OK;
  char message[DLCRT_ERROR_MESSAGE_BYTES];
  TextWriter out(message, sizeof(message));
  for (const char *text = module.string(i.message); *text;) {
    bool isValue = text[0] == '{' && (text[1] == '0' || text[1] == '1') && text[2] == '}';
    uint32_t index = !isValue ? DLCRT_NONE : text[1] == '0' ? i.value0 : i.value1;
    if (index == DLCRT_NONE) {
      out.print("%c", *text++);
      continue;
    }
    if (registers.state[index] == ValueState::Valid)
      out.print("%lld", (long long)registers.value[index]);
    else
      out.print("?");
    text += 3;
  }
  return fail(error, DLCRT_ERROR_CHECK, "%s", message);
}

Status Interpreter::execute(const dlcrt_instr_read &i) {
  const Buffer *source;
  uint64_t index;
  if (Status status = buffer(i.buffer, source))
    return status;
  if (Status status = size(i.index, index))
    return status;
  uint64_t elementBytes = dtypeBits(int32_t(i.dtype)) / 8;
  if (index >= source->bytes / elementBytes)
    return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan reads element %llu of a buffer of %llu bytes",
                (unsigned long long)index, (unsigned long long)source->bytes);
  uint64_t element = 0;
  if (Status status = transfer(0, &element, source->device, source->address + index * elementBytes, elementBytes))
    return status;
  setSymbol(i.symbol, readElement(int32_t(i.dtype), &element, 0));
  return DLCRT_OK;
}

/// "node 'a' (Add)" or "nodes 'a' (Add), 17 (Mul)", the second of which has no name, for messages about what a launch computes.
static void printNodes(TextWriter &out, const Module &module, uint32_t debug, const char *kernel) {
  if (debug >= module.debug.count || !*module.string(module.debug[debug].node_names)) {
    out.print("kernel '%s'", kernel);
    return;
  }
  const char *names = module.string(module.debug[debug].node_names),
             *types = module.string(module.debug[debug].op_types);
  const char *several = strchr(types, '\n') ? "s" : "";
  out.print("node%s ", several);
  for (const char *before = ""; *types; before = ", ") {
    size_t nameBytes = strcspn(names, "\n"), typeBytes = strcspn(types, "\n");
    if (*names == '#')
      out.print("%s%.*s (%.*s)", before, int(nameBytes) - 1, names + 1, int(typeBytes), types);
    else
      out.print("%s'%.*s' (%.*s)", before, int(nameBytes), names, int(typeBytes), types);
    names += nameBytes + (names[nameBytes] != 0);
    types += typeBytes + (types[typeBytes] != 0);
  }
}

Status Interpreter::execute(const dlcrt_instr_launch &i) {
  uint64_t tiles, scratch = 0;
  if (Status status = size(i.tiles, tiles))
    return status;
  if (tiles == 0)
    return DLCRT_OK;
  if (i.scratch != DLCRT_NONE)
    if (Status status = size(i.scratch, scratch))
      return status;
  const dlcrt_variant_desc &variant = module.variants[instance.current->variant];
  const dlcrt_kernel_desc &kernel = module.kernels[variant.first_kernel + i.kernel];
  const char *name = module.string(kernel.name);
  if (tiles > UINT32_MAX)
    return fail(error, DLCRT_ERROR_OVERFLOW, "kernel '%s' would have %llu tiles", name, (unsigned long long)tiles);
  const uint32_t *numbers = numbersAfter(&i, sizeof(i));
  for (uint32_t b = 0; b < i.buffer_count; ++b) {
    const Buffer *operand;
    if (Status status = buffer(numbers[b], operand))
      return status;
    if (operand->device != i.device && operand->bytes)
      return fail(error, DLCRT_ERROR_DEVICE, "kernel '%s' runs on device %u, but its buffer %u is on device %u", name,
                  i.device, b, operand->device);
    instance.addresses[b] = operand->address;
  }
  for (uint32_t s = 0; s < i.scalar_count; ++s)
    if (Status status = value(numbers[i.buffer_count + s], instance.scalars[s]))
      return status;
  if (Status status = instance.cpu.control.check(error))
    return status;

  uint64_t begin = traceBegin();
  dlcrt_device_launch launch = {};
  launch.struct_size = sizeof(launch);
  launch.kernel = i.kernel;
  launch.kernel_name = name;
  launch.image = instance.current->image[i.device];
  launch.entry = kernel.entry;
  launch.tiles = uint32_t(tiles);
  launch.buffer_count = i.buffer_count;
  launch.scalar_count = i.scalar_count;
  launch.scratch_bytes = scratch;
  launch.buffers = instance.addresses.data();
  launch.scalars = instance.scalars.data();
  if (Status status = device(i.device).launch(device(i.device).ctx, options.stream, &launch, error)) {
    char nodes[300];
    TextWriter out(nodes, sizeof(nodes));
    printNodes(out, module, i.debug, name);
    return withPrefix(error, status, nodes);
  }
  if (options.trace) {
    uint64_t bytes = 0, flops = 0;
    if (i.traffic != DLCRT_NONE)
      if (Status status = size(i.traffic, bytes))
        return status;
    if (i.flops != DLCRT_NONE)
      if (Status status = size(i.flops, flops))
        return status;
    trace(begin, DLCRT_TRACE_LAUNCH, name, i.device, tiles, bytes, i.debug, flops);
  }
  return instance.cpu.control.check(error); // the launch may have stopped half-way
}

Status Interpreter::execute(const dlcrt_instr_copy &i) {
  const Buffer *to, *from;
  uint64_t bytes;
  if (Status status = buffer(i.destination, to))
    return status;
  if (Status status = buffer(i.source, from))
    return status;
  if (Status status = size(i.bytes_expr, bytes))
    return status;
  if (bytes > to->bytes || bytes > from->bytes || !to->writable)
    return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan copies %llu bytes from a buffer of %llu to one of %llu%s",
                (unsigned long long)bytes, (unsigned long long)from->bytes, (unsigned long long)to->bytes,
                to->writable ? "" : " that may not be written");
  if (Status status = instance.cpu.control.check(error))
    return status;
  uint64_t begin = traceBegin();
  if (Status status = transfer(to->device, to->address, from->device, from->address, bytes))
    return status;
  trace(begin, DLCRT_TRACE_COPY, "", to->device, 0, bytes);
  return DLCRT_OK;
}

/// Writes the first `elements` repetitions of the encoded values, element by element.
static void writePattern(void *memory, int32_t dtype, uint64_t elements, const int64_t *values, uint64_t count) {
  uint32_t bits = dtypeBits(dtype);
  if (bits < 8) {
    memset(memory, 0, (elements * bits + 7) / 8);
    for (uint64_t e = 0; e < elements; ++e)
      static_cast<uint8_t *>(memory)[e * bits / 8] |=
          uint8_t(encodeElement(dtype, values[e % count]) << (e * bits % 8));
    return;
  }
  for (uint64_t e = 0; e < elements; ++e) {
    uint64_t element = encodeElement(dtype, values[e % count]);
    memcpy(static_cast<char *>(memory) + e * (bits / 8), &element, bits / 8);
  }
}

Status Interpreter::execute(const dlcrt_instr_fill &i) {
  const Buffer *to;
  uint64_t elements, bytes;
  if (Status status = buffer(i.buffer, to))
    return status;
  if (Status status = size(i.elements, elements))
    return status;
  if (!denseBytes(int32_t(i.dtype), elements, bytes) || bytes > to->bytes || !to->writable)
    return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan fills %llu elements of a buffer of %llu bytes%s",
                (unsigned long long)elements, (unsigned long long)to->bytes,
                to->writable ? "" : " that may not be written");
  const uint32_t *numbers = numbersAfter(&i, sizeof(i));
  if (Status status = instance.cpu.control.check(error))
    return status;
  uint64_t begin = traceBegin();
  uint32_t bits = dtypeBits(int32_t(i.dtype));
  if (i.count == 1) {
    // The device's own fill, with a pattern of at least one byte.
    int64_t number;
    if (Status status = value(numbers[0], number))
      return status;
    uint64_t pattern = 0;
    writePattern(&pattern, int32_t(i.dtype), bits < 8 ? 8 / bits : 1, &number, 1);
    if (Status status = device(to->device)
                            .fill(device(to->device).ctx, options.stream, to->address, bytes, &pattern,
                                  bits < 8 ? 1 : bits / 8, error))
      return status;
  } else {
    // Few values, as a shape's; written on the host.
    if (Status status = instance.grow(instance.bounce, i.count * sizeof(int64_t) + (to->device ? bytes : 0),
                                      instance.stagingBytes, "a fill", error))
      return status;
    int64_t *values = static_cast<int64_t *>(instance.bounce.data);
    for (uint32_t v = 0; v < i.count; ++v)
      if (Status status = value(numbers[v], values[v]))
        return status;
    void *memory = to->device ? static_cast<void *>(values + i.count) : to->address;
    writePattern(memory, int32_t(i.dtype), elements, values, i.count);
    if (to->device)
      if (Status status = transfer(1, to->address, 0, memory, bytes))
        return status;
  }
  trace(begin, DLCRT_TRACE_FILL, "", to->device, 0, bytes);
  return DLCRT_OK;
}

// ---------------------------------------------------------------------------------------------- control

Status Interpreter::execute(const dlcrt_instr_if &i) {
  int64_t condition;
  if (Status status = value(i.condition, condition))
    return status;
  const uint8_t *thenBlock = reinterpret_cast<const uint8_t *>(&i + 1), *elseBlock = thenBlock + i.then_bytes;
  return condition != 0 ? block(thenBlock, elseBlock) : block(elseBlock, elseBlock + i.else_bytes);
}

Status Interpreter::execute(const dlcrt_instr_loop &i) {
  int64_t trip = INT64_MAX;
  if (i.trip != DLCRT_NONE)
    if (Status status = value(i.trip, trip))
      return status;
  const uint8_t *body = reinterpret_cast<const uint8_t *>(&i + 1);
  for (int64_t n = 0; n < trip; ++n) {
    if (i.condition != DLCRT_NONE) {
      if (symbols.state[i.condition] != ValueState::Valid)
        return fail(error, DLCRT_ERROR_BAD_MODULE, "a loop's condition was not read before the loop");
      if (symbols.value[i.condition] == 0)
        break;
    }
    setSymbol(i.iteration, n);
    if (Status status = instance.cpu.control.check(error))
      return status;
    if (Status status = block(body, body + i.body_bytes))
      return status;
  }
  return DLCRT_OK;
}

Status Interpreter::execute(const dlcrt_instr_call &i) {
  const char *domain = module.string(i.domain), *name = module.string(i.name);
  const dlcrt_host_function *function = nullptr;
  for (const dlcrt_host_function &f : instance.hostFunctions)
    if (f.version == i.version && strcmp(f.domain, domain) == 0 && strcmp(f.name, name) == 0)
      function = &f;
  if (!function) // the variant would not have been taken
    return fail(error, DLCRT_ERROR_NOT_FOUND, "no host function '%s'", name);
  const uint32_t *next = numbersAfter(&i, sizeof(i));
  int64_t *dims = instance.callDims.data();
  uint32_t count = i.operand_count + i.result_count;
  for (uint32_t t = 0; t < count; ++t) {
    const Buffer *memory;
    if (Status status = buffer(next[0], memory))
      return status;
    dlcrt_tensor &tensor = instance.callTensors[t];
    tensor = {};
    tensor.struct_size = sizeof(tensor);
    tensor.dtype = int32_t(next[1]);
    tensor.rank = next[2];
    tensor.dims = dims;
    tensor.data = memory->address;
    tensor.device_kind = DLCRT_MEMORY_CPU;
    next += 3;
    for (uint32_t d = 0; d < tensor.rank; ++d) {
      uint64_t dim;
      if (Status status = size(*next++, dim))
        return status;
      *dims++ = int64_t(dim);
    }
    tensor.capacity = dlcrt_tensor_bytes(tensor.dtype, tensor.rank, tensor.dims);
    if (tensor.capacity > memory->bytes || (t >= i.operand_count && !memory->writable))
      return fail(error, DLCRT_ERROR_BAD_MODULE, "tensor %u of the call of '%s' does not fit into its buffer", t, name);
    if (memory->device != 0)
      return fail(error, DLCRT_ERROR_DEVICE, "host function '%s' is given a buffer on device 1", name);
  }
  if (Status status = instance.cpu.control.check(error))
    return status;
  uint64_t begin = traceBegin();
  dlcrt_host_call call = {};
  call.struct_size = sizeof(call);
  call.version = i.version;
  call.domain = domain;
  call.name = name;
  call.attributes = module.string(i.attributes);
  call.operand_count = i.operand_count;
  call.result_count = i.result_count;
  call.operands = instance.callTensors.data();
  call.results = instance.callTensors.data() + i.operand_count;
  Error reason = {sizeof(Error), 0, ""};
  if (function->function(function->ctx, &call, &reason) != DLCRT_OK)
    return fail(error, DLCRT_ERROR_HOST_FUNCTION, "host function '%s': %.*s", name, int(sizeof(reason.message) - 1),
                reason.message[0] ? reason.message : "failed");
  trace(begin, DLCRT_TRACE_CALL, name, 0, 0, 0);
  return DLCRT_OK;
}

// ---------------------------------------------------------------------------------------------- end

Status Interpreter::finishOutputs() {
  for (uint32_t i = 0; i < function.output_count; ++i) {
    Output &output = instance.outputs[i];
    if (!output.set)
      return fail(error, DLCRT_ERROR_BAD_MODULE, "the plan does not compute output '%s'", instance.outputName(i));
    const dlcrt_value_desc &value = module.output(function, i);
    if (output.staged && output.tensor.strides)
      copyToStrided(output.address, output.owned.data, dtypeBits(int32_t(value.dtype)) / 8, value.rank, output.dims,
                    output.strides);
    else if (output.staged)
      memcpy(output.address, output.owned.data, output.bytes);
    if (output.mode == Output::Mode::Bound && value.rank)
      memcpy(output.callerDims, output.dims, value.rank * sizeof(int64_t));
  }
  return DLCRT_OK;
}

/// One run, which nobody disturbs.
static Status runHeld(Instance &instance, const dlcrt_run_options &options, Error *error) {
  // Kernels run on this thread too; and the runtime's own rounding must not depend on the caller's.
  DefaultFpState fpState;
  for (Output &output : instance.outputs)
    output.set = false;
  instance.cpu.control = {options.cancel, options.deadline_ns};
  if (Status status = instance.cpu.control.check(error))
    return status;
  for (uint32_t i = 0; i < instance.function.input_count; ++i) {
    const dlcrt_value_desc &value = instance.module.input(instance.function, i);
    if (!instance.inputs[i].bound && !(value.flags & DLCRT_VALUE_OPTIONAL) && value.default_constant == DLCRT_NONE)
      return fail(error, DLCRT_ERROR_NOT_BOUND, "input '%s' is not bound", instance.inputName(i));
  }
  if (Status status = prepare(instance, error))
    return status;
  Status status = Interpreter(instance, options, error).run();
  if (status != DLCRT_OK) {
    for (Output &output : instance.outputs)
      output.set = false;
    return status;
  }
  if (instance.stateUse) // what the run wrote behind the end is part of the state only now
    instance.state->setLength(instance.state->length + instance.functionRegisters().value[instance.stateUse->growth]);
  ++instance.runs;
  return DLCRT_OK;
}

Status dlcrt::impl::run(Instance &instance, const dlcrt_run_options &options, Error *error) {
  if (!instance.state)
    return runHeld(instance, options, error);
  StateHold hold(instance.state, error);
  return hold.status ? hold.status : runHeld(instance, options, error);
}
