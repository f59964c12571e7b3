/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// States, and the C API for them.
#include "State.h"

#include "Dtype.h"
#include "Strided.h"
#include "dlcrt/kernel_abi.h"

using namespace dlcrt::impl;

State::State(const Memory &given, Module &module)
    : memory(given.allocator), module(module), symbols(memory), buffers(memory) {
  retain(module);
}

State::~State() {
  for (StateBuffer &buffer : buffers)
    memory.release(buffer.data, buffer.bytes);
  release(module);
}

void dlcrt::impl::retain(State &state) { state.references.fetch_add(1, std::memory_order_relaxed); }

void dlcrt::impl::release(State &state) {
  if (state.references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  Memory memory(state.memory.allocator);
  auto &handle = static_cast<dlcrt_state &>(state);
  handle.~dlcrt_state();
  memory.release(&handle, sizeof(dlcrt_state));
}

StateHold::StateHold(const State *wanted, Error *error) {
  succeed(error);
  if (!wanted)
    status = fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "state is NULL");
  else if (wanted->busy.exchange(true, std::memory_order_acquire))
    status = fail(error, DLCRT_ERROR_BUSY, "the state is in use by another run or call; one uses it at a time");
  else
    state = wanted;
}

StateHold::~StateHold() {
  if (state)
    state->busy.store(false, std::memory_order_release);
}

Status State::dimsOf(uint32_t index, int64_t entries, int64_t *dims, Error *error) const {
  const dlcrt_state_desc &desc = module.states[index];
  Vector<int64_t> values(memory), symbolValues(memory);
  Vector<ValueState> valueStates(memory), symbolStates(memory);
  uint64_t nodes = module.stateExprs.count, count = symbols.size();
  if (!values.resize(nodes) || !valueStates.resize(nodes) || !symbolValues.resize(count) || !symbolStates.resize(count))
    return failOutOfMemory(error, "dimension expressions", nodes * sizeof(int64_t));
  Values given{symbolValues.data(), symbolStates.data(), count}, registers{values.data(), valueStates.data(), nodes};
  for (uint64_t i = 0; i < count; ++i)
    given.set(i, symbol(i));
  evaluate(module.stateExprs, 0, nodes, given, registers);
  for (uint32_t d = 0; d < desc.rank; ++d) {
    uint32_t node = module.stateDims[desc.first_dim + d];
    dims[d] = d == desc.axis ? entries : registers.value[node];
    if (d != desc.axis && (registers.state[node] != ValueState::Valid || dims[d] < 0))
      return fail(error, DLCRT_ERROR_OVERFLOW, "dimension %u of state '%s' does not fit into 64 bits or is negative", d,
                  name(index));
  }
  return DLCRT_OK;
}

/// Where the entries of a state lie: `outer` times, `entryBytes` for each of the capacity's entries.
static void rowsOf(const dlcrt_state_desc &desc, const int64_t *dims, uint64_t &outer, uint64_t &entryBytes) {
  outer = 1;
  entryBytes = dtypeBits(int32_t(desc.dtype)) / 8;
  for (uint32_t d = 0; d < desc.rank; ++d)
    if (d < desc.axis)
      outer *= uint64_t(dims[d]);
    else if (d > desc.axis)
      entryBytes *= uint64_t(dims[d]);
}

Status State::allocate(int64_t entries, Error *error) {
  Vector<StateBuffer> made(memory);
  if (!made.resize(module.states.count))
    return failOutOfMemory(error, "the state", module.states.count * sizeof(StateBuffer));
  uint64_t total = 0;
  Status status = DLCRT_OK;
  for (uint32_t i = 0; i < module.states.count && !status; ++i) {
    const dlcrt_state_desc &desc = module.states[i];
    int64_t dims[DLCRT_MAX_RANK];
    uint64_t elements, size = 0;
    if ((status = dimsOf(i, entries, dims, error)))
      break;
    if (!elementCount(desc.rank, dims, elements) || !denseBytes(int32_t(desc.dtype), elements, size) ||
        size > INT64_MAX / 2) {
      status = fail(error, DLCRT_ERROR_OVERFLOW, "state '%s' has too many elements", name(i));
      break;
    }
    // At least a byte, so that there is an address.
    size = alignUp(size ? size : 1, DLCRT_BUFFER_ALIGNMENT);
    void *data = memory.allocate(size, DLCRT_BUFFER_ALIGNMENT);
    if (!data) {
      status = failOutOfMemory(error, "the state", size);
      break;
    }
    made[i] = {static_cast<char *>(data), size};
    total += size;
    memset(data, 0, size);
    if (length == 0)
      continue;
    uint64_t outer, entryBytes;
    rowsOf(desc, dims, outer, entryBytes);
    for (uint64_t o = 0; o < outer; ++o)
      memcpy(made[i].data + o * uint64_t(entries) * entryBytes,
             buffers[i].data + o * uint64_t(capacity) * entryBytes, uint64_t(length) * entryBytes);
  }
  if (!status && buffers.size() == 0 && !buffers.resize(module.states.count))
    status = failOutOfMemory(error, "the state", module.states.count * sizeof(StateBuffer));
  for (uint32_t i = 0; i < module.states.count; ++i) {
    StateBuffer old = status ? made[i] : buffers[i]; // what is of no more use
    if (!status)
      buffers[i] = made[i];
    memory.release(old.data, old.bytes);
  }
  if (status)
    return status;
  capacity = entries;
  bytes = total;
  ++version;
  return DLCRT_OK;
}

/// Values of the symbols beside the capacity, each of which must be there and keep what was promised.
static Status setSymbols(State &state, const dlcrt_state_options &options, Error *error) {
  Module &module = state.module;
  if (options.dim_count && (!options.dim_names || !options.dim_values))
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "dim_names or dim_values is NULL");
  if (!state.symbols.resize(module.stateSymbols.count))
    return failOutOfMemory(error, "the state", module.stateSymbols.count * sizeof(int64_t));
  for (uint32_t i = 0; i < options.dim_count; ++i) {
    const char *name = options.dim_names[i];
    uint64_t symbol = 1;
    while (name && symbol < module.stateSymbols.count &&
           strcmp(module.string(module.stateSymbols[symbol].name), name) != 0)
      ++symbol;
    if (!name || symbol == module.stateSymbols.count)
      return fail(error, DLCRT_ERROR_NOT_FOUND, "the states have no dimension '%s'", name ? name : "");
  }
  for (uint64_t s = 1; s < module.stateSymbols.count; ++s) {
    const dlcrt_symbol_desc &desc = module.stateSymbols[s];
    const char *name = module.string(desc.name);
    bool found = false;
    for (uint32_t i = 0; i < options.dim_count; ++i)
      if (strcmp(options.dim_names[i], name) == 0) {
        state.symbols[s] = options.dim_values[i];
        found = true;
      }
    if (!found)
      return fail(error, DLCRT_ERROR_NOT_BOUND, "a value for dimension '%s' of the states is missing", name);
    int64_t value = state.symbols[s];
    if (value < desc.min || value > desc.max || value % desc.divisor != 0)
      return fail(error, DLCRT_ERROR_SHAPE, "'%s' is %lld, but has to be between %lld and %lld and a multiple of %lld",
                  name, (long long)value, (long long)desc.min, (long long)desc.max, (long long)desc.divisor);
  }
  return DLCRT_OK;
}

static Status createState(Module &module, const dlcrt_state_options *given, dlcrt_state **out, Error *error) {
  dlcrt_state_options options;
  if (Status status = readStruct(given, options, "dlcrt_state_options", error))
    return status;
  if (module.states.count == 0)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "no function of the module works on states");
  if (options.capacity < 0)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "the capacity is %lld", (long long)options.capacity);
  Memory memory;
  if (Status status = useAllocator(options.allocator, memory, error))
    return status;
  void *place = memory.allocate(sizeof(dlcrt_state), alignof(dlcrt_state));
  if (!place)
    return failOutOfMemory(error, "the state", sizeof(dlcrt_state));
  dlcrt_state *state = new (place) dlcrt_state(memory, module);
  Status status = setSymbols(*state, options, error);
  if (!status)
    status = state->allocate(options.capacity, error);
  if (status) {
    release(*state);
    return status;
  }
  *out = state;
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_state_create(dlcrt_module *module, const dlcrt_state_options *options, dlcrt_state **state,
                                     dlcrt_error *error) {
  succeed(error);
  if (!module || !state)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s is NULL", module ? "state" : "module");
  if (Status status = createState(*module, options, state, error))
    return withPrefix(error, status, module->name.data());
  return DLCRT_OK;
}

void dlcrt_state_destroy(dlcrt_state *state) {
  if (state)
    release(*state);
}

int64_t dlcrt_state_length(const dlcrt_state *state) { return state ? state->length.load() : 0; }
int64_t dlcrt_state_capacity(const dlcrt_state *state) { return state ? state->capacity.load() : 0; }
uint64_t dlcrt_state_bytes(const dlcrt_state *state) { return state ? state->bytes.load() : 0; }

enum dlcrt_status dlcrt_state_set_length(dlcrt_state *state, int64_t length, dlcrt_error *error) {
  StateHold hold(state, error);
  if (hold.status)
    return hold.status;
  if (length < 0 || length > state->capacity)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "length %lld is not between 0 and the capacity, %lld",
                (long long)length, (long long)state->capacity);
  state->setLength(length);
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_state_reset(dlcrt_state *state, dlcrt_error *error) {
  return dlcrt_state_set_length(state, 0, error);
}

enum dlcrt_status dlcrt_state_grow(dlcrt_state *state, int64_t capacity, dlcrt_error *error) {
  StateHold hold(state, error);
  if (hold.status)
    return hold.status;
  if (capacity < 0)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "the capacity is %lld", (long long)capacity);
  return capacity <= state->capacity ? DLCRT_OK : state->allocate(capacity, error);
}

static Status checkIndex(const State &state, uint32_t index, Error *error) {
  if (index < state.module.states.count)
    return DLCRT_OK;
  return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "no state %u: there are %llu", index,
              (unsigned long long)state.module.states.count);
}

enum dlcrt_status dlcrt_state_view(const dlcrt_state *state, uint32_t index, dlcrt_tensor *tensor, int64_t *dims,
                                   int64_t *strides, dlcrt_error *error) {
  StateHold hold(state, error);
  if (hold.status)
    return hold.status;
  if (Status status = checkIndex(*state, index, error))
    return status;
  if (!dims || !strides)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s is NULL", dims ? "strides" : "dims");
  if (Status status = checkStruct(tensor, "dlcrt_tensor", error))
    return status;
  const dlcrt_state_desc &desc = state->module.states[index];
  if (Status status = state->dimsOf(index, state->length, dims, error))
    return status;
  int64_t stride = 1;
  for (uint32_t d = desc.rank; d-- > 0;) {
    strides[d] = stride;
    stride *= d == desc.axis ? state->capacity.load() : dims[d];
  }
  dlcrt_tensor value = {};
  value.dtype = int32_t(desc.dtype);
  value.data = state->buffers[index].data;
  value.rank = desc.rank;
  value.dims = dims;
  value.strides = strides;
  value.device_kind = DLCRT_MEMORY_CPU;
  value.capacity = state->buffers[index].bytes;
  writeStruct(tensor, value);
  return DLCRT_OK;
}

/// Copies between entries from `first` on and a tensor of the caller's.
static Status transfer(State &state, uint32_t index, int64_t first, const dlcrt_tensor *given, bool isWrite,
                       Error *error) {
  dlcrt_tensor tensor;
  if (Status status = checkIndex(state, index, error))
    return status;
  if (Status status = readStruct(given, tensor, "dlcrt_tensor", error))
    return status;
  const dlcrt_state_desc &desc = state.module.states[index];
  const char *name = state.name(index);
  if (uint32_t(tensor.dtype) != desc.dtype)
    return fail(error, DLCRT_ERROR_DTYPE, "state '%s': expected %s, got %s", name,
                dlcrt_dtype_name(int32_t(desc.dtype)), dlcrt_dtype_name(tensor.dtype));
  if (tensor.rank != desc.rank || !tensor.dims)
    return fail(error, DLCRT_ERROR_SHAPE, "state '%s': expected rank %u, got %u", name, desc.rank,
                tensor.dims ? tensor.rank : 0);
  if (tensor.device_kind != 0 && tensor.device_kind != DLCRT_MEMORY_CPU)
    return fail(error, DLCRT_ERROR_DEVICE, "state '%s' is copied from and to memory of the host only", name);
  int64_t entries = tensor.dims[desc.axis], most = isWrite ? state.capacity.load() : state.length.load(), dims[DLCRT_MAX_RANK];
  if (first < 0 || entries < 0 || first > most || entries > most - first)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%lld entries from %lld on lie outside state '%s', which has %s %lld",
                (long long)entries, (long long)first, name,
                isWrite ? "a capacity of" : "a length of", (long long)most);
  if (Status status = state.dimsOf(index, entries, dims, error))
    return status;
  for (uint32_t d = 0; d < desc.rank; ++d)
    if (tensor.dims[d] != dims[d])
      return fail(error, DLCRT_ERROR_SHAPE, "state '%s': dimension %u is %lld, expected %lld", name, d,
                  (long long)tensor.dims[d], (long long)dims[d]);
  uint64_t outer, entryBytes, elements, bytes, extent;
  rowsOf(desc, dims, outer, entryBytes);
  if (!elementCount(desc.rank, dims, elements) || !denseBytes(int32_t(desc.dtype), elements, bytes))
    return fail(error, DLCRT_ERROR_OVERFLOW, "state '%s': too many elements", name);
  if (bytes == 0)
    return DLCRT_OK;
  if (!tensor.data)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "state '%s': data is NULL", name);
  bool dense = isDense(tensor.rank, tensor.dims, tensor.strides);
  uint32_t elementBytes = dtypeBits(tensor.dtype) / 8;
  extent = bytes;
  bool forwards = dense || stridedExtent(elementBytes, tensor.rank, tensor.dims, tensor.strides, extent);
  if (!forwards && !isWrite)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "state '%s': a stride is negative, or too large", name);
  if (forwards && tensor.capacity && extent > tensor.capacity)
    return fail(error, DLCRT_ERROR_CAPACITY, "state '%s': its entries need %llu bytes, the tensor has %llu", name,
                (unsigned long long)extent, (unsigned long long)tensor.capacity);
  char *data = static_cast<char *>(tensor.data) + tensor.byte_offset, *staged = data;
  if (!dense) {
    staged = static_cast<char *>(state.memory.allocate(bytes, DLCRT_BUFFER_ALIGNMENT));
    if (!staged)
      return failOutOfMemory(error, "a dense copy of a tensor", bytes);
    if (isWrite)
      copyFromStrided(staged, data, elementBytes, tensor.rank, tensor.dims, tensor.strides);
  }
  char *memory = state.buffers[index].data + uint64_t(first) * entryBytes;
  uint64_t row = uint64_t(entries) * entryBytes;
  for (uint64_t o = 0; o < outer; ++o) {
    char *mine = memory + o * uint64_t(state.capacity) * entryBytes, *theirs = staged + o * row;
    memcpy(isWrite ? mine : theirs, isWrite ? theirs : mine, row);
  }
  if (!dense) {
    if (!isWrite)
      copyToStrided(data, staged, elementBytes, tensor.rank, tensor.dims, tensor.strides);
    state.memory.release(staged, bytes);
  }
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_state_read(dlcrt_state *state, uint32_t index, int64_t first, const dlcrt_tensor *tensor,
                                   dlcrt_error *error) {
  StateHold hold(state, error);
  return hold.status ? hold.status : transfer(*state, index, first, tensor, /*isWrite=*/false, error);
}

enum dlcrt_status dlcrt_state_write(dlcrt_state *state, uint32_t index, int64_t first, const dlcrt_tensor *tensor,
                                    dlcrt_error *error) {
  StateHold hold(state, error);
  return hold.status ? hold.status : transfer(*state, index, first, tensor, /*isWrite=*/true, error);
}
