/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// One execution context of one function: what is bound, the memory it works in, and what it remembers between runs.
#ifndef DLCRT_INSTANCE_H
#define DLCRT_INSTANCE_H

#include "Arena.h"
#include "Module.h"
#include "State.h"
#include "cpu/CpuDevice.h"

namespace dlcrt::impl {

/// Memory that grows when more is needed and is kept.
struct GrowRegion {
  void *data = nullptr;
  uint64_t capacity = 0;
  uint32_t device = 0;
};

struct Input {
  bool bound = false;
  bool direct = false; // dense and aligned: read in place
  bool staged = false; // in this run
  uint32_t device = 0;
  dlcrt_tensor tensor = {}; // dims and strides point to the instance's copies
  uint64_t bytes = 0;       // of the dense tensor
  int64_t *dims = nullptr, *strides = nullptr;
  GrowRegion staging;

  explicit Input(Memory &) {}
};

struct Output {
  enum class Mode : uint8_t { Owned, Bound, Callback };
  Mode mode = Mode::Owned;
  uint32_t device = 0;
  dlcrt_tensor tensor = {};      // Bound: what the caller gave
  int64_t *callerDims = nullptr; // Bound
  int64_t *strides = nullptr;    // Bound: copy of the caller's, if any
  dlcrt_output_fn callback = nullptr;
  void *callbackCtx = nullptr;
  GrowRegion owned; // the runtime's memory, also the dense copy of a strided output

  // Of the last run.
  bool set = false;    // its OUTPUT instruction was executed
  bool staged = false; // the result has to be copied from `owned` to where the caller wants it
  void *address = nullptr;
  uint64_t bytes = 0;
  int64_t *dims = nullptr;

  explicit Output(Memory &) {}
};

/// Where the symbolic slots lie for one set of dims.
struct Layout {
  Vector<int64_t> symbols;  // the key
  Vector<uint64_t> offsets; // by ordinal
  uint64_t bytes[2] = {0, 0};
  uint64_t lowerBound = 0; // of both together
  uint64_t lastUse = 0; // 0 = empty

  explicit Layout(Memory &memory) : symbols(memory), offsets(memory) {}
};

/// A variant that this machine can run.
struct Candidate {
  static constexpr uint32_t layoutCount = 16;

  uint32_t variant = 0;
  void *image[2] = {nullptr, nullptr}; // by device; null = not loaded
  Array<Layout> layouts;

  explicit Candidate(Memory &memory) : layouts(memory) {}
};

/// A register that names memory.
struct Buffer {
  char *address;
  uint64_t bytes;
  uint8_t device;
  bool set, writable;
};

struct Instance {
  Memory memory;
  Module &module;
  const dlcrt_function_desc &function;
  std::atomic<bool> busy{false};
  uint64_t arenaLimit = 0;
  Vector<dlcrt_host_function> hostFunctions;

  CpuDevice cpu;
  dlcrt_device devices[2] = {}; // [1].kind = 0: there is none

  Array<Candidate> candidates;  // the best first
  Candidate *current = nullptr; // of the last run, or the best

  Array<Input> inputs;
  Array<Output> outputs;
  Vector<int64_t> dimStorage; // what the dims and strides of inputs and outputs point to
  const dlcrt_state_function *stateUse = nullptr; // null: the function has no states
  State *state = nullptr;
  uint64_t boundVersion = 0; // of the state, for which symbolsKnown holds

  // Symbols: the function's, then the late ones of the current plan.
  bool symbolsKnown = false; // for what is bound now
  Vector<int64_t> symbolValues;
  Vector<ValueState> symbolStates;
  Vector<uint32_t> symbolInputs; // which input gave it; DLCRT_NONE: the state
  // Registers of FUNCTIONS' pool, and of the current plan.
  Vector<int64_t> functionValues, planValues;
  Vector<ValueState> functionStates, planStates;
  bool planValuesKnown = false; // all but the late ones

  ArenaPlanner planner;
  Vector<ArenaBlock> blocks;
  Vector<uint32_t> blockSlots;
  const Layout *layout = nullptr;
  uint64_t layoutClock = 0;
  GrowRegion arena[2];
  Vector<GrowRegion> lateSlots;
  Vector<GrowRegion> uploadedConstants; // on devices[1]
  GrowRegion bounce;                    // host memory for FILL on a device

  // What the interpreter hands to kernels and host functions.
  Vector<Buffer> buffers;
  Vector<void *> addresses;
  Vector<int64_t> scalars;
  Vector<dlcrt_tensor> callTensors;
  Vector<int64_t> callDims;

  // Statistics.
  uint64_t arenaBytes = 0, lateBytes = 0, outputBytes = 0, stagingBytes = 0, deviceAllocations = 0, runs = 0,
           layoutsComputed = 0;

  Instance(const Memory &memory, Module &module, uint32_t function);
  ~Instance();

  Values symbols() { return {symbolValues.data(), symbolStates.data(), symbolValues.size()}; }
  Values functionSymbols() { return {symbolValues.data(), symbolStates.data(), function.symbol_count}; }
  Values functionRegisters() { return {functionValues.data(), functionStates.data(), functionValues.size()}; }
  Values planRegisters() { return {planValues.data(), planStates.data(), planValues.size()}; }
  const char *inputName(uint32_t i) const { return module.string(module.input(function, i).name); }
  const char *outputName(uint32_t i) const { return module.string(module.output(function, i).name); }
  const Plan &plan() const { return module.plans[current->variant]; }
  uint32_t functionIndex() const { return uint32_t(&function - module.functions.data); }

  /// Makes the region at least so large; its contents are lost. `counter` is the statistic it belongs to.
  Status grow(GrowRegion &region, uint64_t bytes, uint64_t &counter, const char *what, Error *error);
  void free(GrowRegion &region);
  /// The number of the device that a tensor's memory is on.
  Status deviceOf(const dlcrt_tensor &tensor, const char *direction, const char *name, uint32_t &device, Error *error);
};

Status createInstance(Module &module, const dlcrt_instance_options *options, dlcrt_instance **instance, Error *error);
void destroyInstance(dlcrt_instance *instance);

// Binding.cpp
Status bindInput(Instance &instance, uint32_t input, const dlcrt_tensor *tensor, Error *error);
Status bindOutput(Instance &instance, uint32_t output, const dlcrt_tensor *tensor, Error *error);
/// Gives the symbols their values from the state and the bound inputs, evaluates FUNCTIONS' pool, and checks all
/// promises.
Status bindSymbols(Instance &instance, Error *error);
/// Dims and bytes of a signature's value, from registers of FUNCTIONS' pool. Late dims are -1 and make bytes
/// UINT64_MAX.
Status evaluateDims(const Module &module, const dlcrt_function_desc &function, const dlcrt_value_desc &value,
                    const Values &registers, int64_t *dims, uint64_t *bytes, Error *error);
/// Why register `node` has no value.
Status failValue(const Module &module, const dlcrt_function_desc &function, Span<dlcrt_expr_node> nodes,
                 const Values &registers, uint32_t node, Error *error);

// Interpreter.cpp
Status run(Instance &instance, const dlcrt_run_options &options, Error *error);

} // namespace dlcrt::impl

/// The handle of the C API.
struct dlcrt_instance : dlcrt::impl::Instance {
  using Instance::Instance;
};

#endif
