/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The C API: instances. Arguments are checked here.
#include "Instance.h"

using namespace dlcrt::impl;

namespace {

/// Takes the instance for one call.
class Session {
public:
  Session(Instance *instance, Error *error) : instance(instance) {
    succeed(error);
    if (!instance)
      status = fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "instance is NULL");
    else if (instance->busy.exchange(true, std::memory_order_acquire))
      status = fail(error, DLCRT_ERROR_BUSY, "the instance is in use by another thread");
    else
      taken = true;
  }
  ~Session() {
    if (taken)
      instance->busy.store(false, std::memory_order_release);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  Status status = DLCRT_OK;

private:
  Instance *instance;
  bool taken = false;
};

} // namespace

static Status checkIndex(const char *what, uint32_t index, uint64_t count, Error *error) {
  if (index < count)
    return DLCRT_OK;
  return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "no %s %u: there are %llu", what, index, (unsigned long long)count);
}

enum dlcrt_status dlcrt_instance_create(dlcrt_module *module, const dlcrt_instance_options *options,
                                        dlcrt_instance **instance, dlcrt_error *error) {
  succeed(error);
  if (!module || !instance)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s is NULL", module ? "instance" : "module");
  if (Status status = createInstance(*module, options, instance, error))
    return withPrefix(error, status, module->name.data());
  return DLCRT_OK;
}

void dlcrt_instance_destroy(dlcrt_instance *instance) {
  if (instance)
    destroyInstance(instance);
}

uint32_t dlcrt_instance_function(const dlcrt_instance *instance) {
  return instance ? instance->functionIndex() : DLCRT_NO_INDEX;
}

uint32_t dlcrt_instance_variant(const dlcrt_instance *instance) {
  return instance ? instance->current->variant : DLCRT_NO_INDEX;
}

enum dlcrt_status dlcrt_instance_bind_input(dlcrt_instance *instance, uint32_t input, const dlcrt_tensor *tensor,
                                            dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("input", input, instance->inputs.size(), error))
    return status;
  return bindInput(*instance, input, tensor, error);
}

enum dlcrt_status dlcrt_instance_unbind_input(dlcrt_instance *instance, uint32_t input, dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("input", input, instance->inputs.size(), error))
    return status;
  instance->inputs[input].bound = false;
  instance->symbolsKnown = false;
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_instance_bind_output(dlcrt_instance *instance, uint32_t output, const dlcrt_tensor *tensor,
                                             dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("output", output, instance->outputs.size(), error))
    return status;
  return bindOutput(*instance, output, tensor, error);
}

enum dlcrt_status dlcrt_instance_bind_output_callback(dlcrt_instance *instance, uint32_t output,
                                                      dlcrt_output_fn callback, void *ctx, dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("output", output, instance->outputs.size(), error))
    return status;
  if (!callback)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "callback is NULL");
  Output &bound = instance->outputs[output];
  bound.mode = Output::Mode::Callback;
  bound.callback = callback;
  bound.callbackCtx = ctx;
  bound.set = false;
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_instance_unbind_output(dlcrt_instance *instance, uint32_t output, dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("output", output, instance->outputs.size(), error))
    return status;
  instance->outputs[output].mode = Output::Mode::Owned;
  instance->outputs[output].set = false;
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_instance_output_bound(dlcrt_instance *instance, uint32_t output, int64_t *dims, uint64_t *bytes,
                                              dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("output", output, instance->outputs.size(), error))
    return status;
  auto bound = [&] {
    if (Status status = bindSymbols(*instance, error))
      return status;
    return evaluateDims(instance->module, instance->function, instance->module.output(instance->function, output),
                        instance->functionRegisters(), dims, bytes, error);
  };
  if (!instance->state)
    return bound();
  StateHold hold(instance->state, error);
  return hold.status ? hold.status : bound();
}

enum dlcrt_status dlcrt_instance_run(dlcrt_instance *instance, const dlcrt_run_options *options, dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  dlcrt_run_options given = {};
  if (options)
    if (Status status = readStruct(options, given, "dlcrt_run_options", error))
      return status;
  return run(*instance, given, error);
}

enum dlcrt_status dlcrt_instance_output(dlcrt_instance *instance, uint32_t output, dlcrt_tensor *tensor,
                                        dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("output", output, instance->outputs.size(), error))
    return status;
  Output &result = instance->outputs[output];
  if (!result.set)
    return fail(error, DLCRT_ERROR_NOT_BOUND, "output '%s' has no value: there was no run, or it failed",
                instance->outputName(output));
  if (Status status = checkStruct(tensor, "dlcrt_tensor", error))
    return status;
  const dlcrt_value_desc &desc = instance->module.output(instance->function, output);
  dlcrt_tensor value = {};
  value.dtype = int32_t(desc.dtype);
  value.data = result.address;
  value.rank = desc.rank;
  value.dims = result.dims;
  value.device_kind = DLCRT_MEMORY_CPU;
  value.capacity = result.bytes;
  if (result.mode == Output::Mode::Bound) {
    value.strides = result.tensor.strides;
    value.device_kind = instance->devices[result.device].kind;
    value.device_index = instance->devices[result.device].index;
  }
  writeStruct(tensor, value);
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_instance_set_state(dlcrt_instance *instance, dlcrt_state *state, dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (state && !instance->stateUse)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "function '%s' has no state",
                instance->module.string(instance->function.name));
  if (state && &state->module != &instance->module)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "the state is one of another module");
  if (state)
    retain(*state);
  if (instance->state)
    release(*instance->state);
  instance->state = state;
  instance->symbolsKnown = false;
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_instance_get_statistics(const dlcrt_instance *instance, dlcrt_instance_statistics *statistics,
                                                dlcrt_error *error) {
  succeed(error);
  if (!instance)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "instance is NULL");
  if (Status status = checkStruct(statistics, "dlcrt_instance_statistics", error))
    return status;
  dlcrt_instance_statistics value = {};
  value.arena_bytes = instance->arenaBytes;
  value.late_bytes = instance->lateBytes;
  value.output_bytes = instance->outputBytes;
  value.staging_bytes = instance->stagingBytes;
  value.scratch_bytes = instance->cpu.allScratchBytes();
  value.state_bytes = instance->state ? instance->state->bytes.load() : 0;
  value.weight_bytes = instance->module.constantBytes.count;
  value.allocations = instance->memory.allocations + instance->deviceAllocations;
  value.runs = instance->runs;
  value.layouts_computed = instance->layoutsComputed;
  value.arena_lower_bound_bytes = instance->layout ? instance->layout->lowerBound : 0;
  writeStruct(statistics, value);
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_instance_bind_input_object(dlcrt_instance *instance, uint32_t input, dlcrt_object *,
                                                   dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("input", input, instance->inputs.size(), error))
    return status;
  return fail(error, DLCRT_ERROR_UNSUPPORTED,
              "input '%s': this version of the runtime does not take sequences and optionals",
              instance->inputName(input));
}

enum dlcrt_status dlcrt_instance_output_object(dlcrt_instance *instance, uint32_t output, dlcrt_object **,
                                               dlcrt_error *error) {
  Session session(instance, error);
  if (session.status)
    return session.status;
  if (Status status = checkIndex("output", output, instance->outputs.size(), error))
    return status;
  return fail(error, DLCRT_ERROR_UNSUPPORTED,
              "output '%s': this version of the runtime does not make sequences and optionals",
              instance->outputName(output));
}
