/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Instance.h"

#include "cpu/Features.h"
#include "dlcrt/kernel_abi.h"

using namespace dlcrt::impl;

Instance::Instance(const Memory &given, Module &module, uint32_t function)
    : memory(given), module(module), function(module.functions[function]), hostFunctions(memory), cpu(memory),
      candidates(memory), inputs(memory), outputs(memory), dimStorage(memory), symbolValues(memory),
      symbolStates(memory), symbolInputs(memory), functionValues(memory), planValues(memory), functionStates(memory),
      planStates(memory), planner(memory), blocks(memory), blockSlots(memory), lateSlots(memory),
      uploadedConstants(memory), buffers(memory), addresses(memory), scalars(memory), callTensors(memory),
      callDims(memory) {
  retain(module);
  devices[0] = cpu.device();
  stateUse = module.stateUse(function);
}

Instance::~Instance() {
  for (Input &input : inputs)
    free(input.staging);
  for (Output &output : outputs)
    free(output.owned);
  for (GrowRegion &region : lateSlots)
    free(region);
  for (GrowRegion &region : uploadedConstants)
    free(region);
  free(arena[0]);
  free(arena[1]);
  free(bounce);
  for (Candidate &candidate : candidates)
    for (uint32_t device = 0; device < 2; ++device)
      if (candidate.image[device])
        devices[device].unload_image(devices[device].ctx, candidate.image[device]);
  if (devices[1].kind)
    devices[1].destroy(devices[1].ctx);
  if (state)
    release(*state);
  release(module);
}

void Instance::free(GrowRegion &region) {
  if (region.data)
    devices[region.device].release(devices[region.device].ctx, region.data, region.capacity);
  region.data = nullptr;
  region.capacity = 0;
}

Status Instance::grow(GrowRegion &region, uint64_t bytes, uint64_t &counter, const char *what, Error *error) {
  if (bytes <= region.capacity)
    return DLCRT_OK;
  if (bytes > INT64_MAX / 2)
    return failOutOfMemory(error, what, bytes);
  uint64_t capacity = alignUp(bytes, DLCRT_BUFFER_ALIGNMENT);
  bool limited = arenaLimit && (&counter == &arenaBytes || &counter == &lateBytes || &counter == &outputBytes);
  if (limited) {
    uint64_t total = arenaBytes + lateBytes + outputBytes - region.capacity + capacity;
    if (total > arenaLimit)
      return fail(error, DLCRT_ERROR_ARENA_LIMIT, "these dims need %llu bytes of memory, but the arena limit is %llu",
                  (unsigned long long)total, (unsigned long long)arenaLimit);
  }
  dlcrt_device &device = devices[region.device];
  if (region.data && region.device == 1) // work that was issued may still use it
    if (Status status = device.wait(device.ctx, nullptr, error))
      return status;
  counter -= region.capacity;
  free(region);
  void *data = nullptr;
  if (region.device == 1)
    ++deviceAllocations;
  if (Status status = device.allocate(device.ctx, capacity, &data, error))
    return status;
  region.data = data;
  region.capacity = capacity;
  counter += capacity;
  return DLCRT_OK;
}

Status Instance::deviceOf(const dlcrt_tensor &tensor, const char *direction, const char *name, uint32_t &device,
                          Error *error) {
  if (tensor.device_kind == 0 || tensor.device_kind == DLCRT_MEMORY_CPU) {
    device = 0;
    return DLCRT_OK;
  }
  if (tensor.device_kind == devices[1].kind && tensor.device_index == devices[1].index) {
    device = 1;
    return DLCRT_OK;
  }
  return fail(error, DLCRT_ERROR_DEVICE, "%s '%s' is in memory of kind %d, device %d, which this instance does not use",
              direction, name, tensor.device_kind, tensor.device_index);
}

namespace {

/// Makes an instance step by step.
class Builder {
public:
  Builder(Module &module, const dlcrt_instance_options &options, Error *error)
      : module(module), options(options), error(error) {}

  Status chooseFunction(uint32_t &index);
  Status build(Instance &instance);

private:
  Status chooseCandidates(Instance &instance);
  Status checkVariant(Instance &instance, uint32_t variant, Error *reason);
  Status openDevice(Instance &instance, uint32_t kind, Error *reason);
  Status failNoVariant(Instance &instance, const char *reasons);
  Status reserve(Instance &instance);
  const dlcrt_device_factory *factory(uint32_t kind) const;

  Module &module;
  const dlcrt_instance_options &options;
  Error *error;
};

/// Entry `i` of an array of structs that may be larger than ours.
template <typename T> const T &entryOf(const T *array, uint32_t i) {
  return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) + uint64_t(i) * array->struct_size);
}

} // namespace

Status Builder::chooseFunction(uint32_t &index) {
  if (!options.function && module.functions.count == 1) {
    index = 0;
    return DLCRT_OK;
  }
  const char *name = options.function ? options.function : "main";
  index = module.findFunction(name);
  if (index != DLCRT_NO_INDEX)
    return DLCRT_OK;
  char names[200];
  TextWriter out(names, sizeof(names));
  for (uint32_t i = 0; i < module.functions.count; ++i)
    out.print("%s'%s'", i ? ", " : "", module.string(module.functions[i].name));
  return fail(error, DLCRT_ERROR_NOT_FOUND, "no function '%s'; there are: %s", name, names);
}

const dlcrt_device_factory *Builder::factory(uint32_t kind) const {
  for (uint32_t i = 0; i < options.device_factory_count; ++i)
    if (uint32_t(entryOf(options.device_factories, i).kind) == kind)
      return &entryOf(options.device_factories, i);
  return nullptr;
}

Status Builder::openDevice(Instance &instance, uint32_t kind, Error *reason) {
  dlcrt_device &device = instance.devices[1];
  if (uint32_t(device.kind) == kind)
    return DLCRT_OK;
  if (device.kind)
    return fail(reason, DLCRT_ERROR_NO_VARIANT, "it needs a device of kind %u beside one of kind %d", kind,
                device.kind);
  const dlcrt_device_factory *found = factory(kind);
  if (!found)
    return fail(reason, DLCRT_ERROR_NO_VARIANT, "it needs a device of kind %u, for which there is no factory", kind);
  dlcrt_device made = {};
  made.struct_size = sizeof(made);
  if (Status status = found->create(found->ctx, &made, reason))
    return status;
  made.kind = int32_t(kind);
  device = made;
  return DLCRT_OK;
}

Status Builder::checkVariant(Instance &instance, uint32_t index, Error *reason) {
  const dlcrt_variant_desc &variant = module.variants[index];
  if (Status status = checkFeatures(variant.arch, variant.features[0], reason))
    return status;
  for (const dlcrt_instr_call *call : module.plans[index].calls) {
    const char *domain = module.string(call->domain), *name = module.string(call->name);
    bool found = false;
    for (const dlcrt_host_function &f : instance.hostFunctions)
      found |= f.version == call->version && strcmp(f.domain, domain) == 0 && strcmp(f.name, name) == 0;
    if (!found)
      return fail(reason, DLCRT_ERROR_NO_VARIANT,
                  "it calls host function '%s' version %u of domain '%s', which is not "
                  "registered",
                  name, call->version, domain);
  }
  if (variant.device != DLCRT_NONE)
    return openDevice(instance, variant.device, reason);
  return DLCRT_OK;
}

Status Builder::failNoVariant(Instance &instance, const char *reasons) {
  const char *function = module.string(instance.function.name);
  if (*reasons)
    return fail(error, DLCRT_ERROR_NO_VARIANT, "no variant of function '%s' can run here: %s", function, reasons);
  if (!options.variant)
    return fail(error, DLCRT_ERROR_NO_VARIANT, "function '%s' has no variants", function);
  char names[200];
  TextWriter out(names, sizeof(names));
  const char *before = "";
  for (const dlcrt_variant_desc &variant : module.variants)
    if (variant.function == instance.functionIndex()) {
      out.print("%s'%s'", before, module.string(variant.target));
      before = ", ";
    }
  return fail(error, DLCRT_ERROR_NOT_FOUND, "function '%s' has no variant for target '%s'; there are: %s", function,
              options.variant, names);
}

Status Builder::chooseCandidates(Instance &instance) {
  char reasons[400];
  TextWriter out(reasons, sizeof(reasons));
  Vector<uint32_t> usable(instance.memory);
  const char *before = "";
  for (uint32_t i = 0; i < module.variants.count; ++i) {
    const dlcrt_variant_desc &variant = module.variants[i];
    const char *target = module.string(variant.target);
    if (variant.function != instance.functionIndex() || (options.variant && strcmp(options.variant, target) != 0))
      continue;
    Error reason = {sizeof(Error), 0, ""};
    if (checkVariant(instance, i, &reason) != DLCRT_OK) {
      out.print("%s%s: %s", before, target, reason.message);
      before = "; ";
      continue;
    }
    // The highest priority first; of equal ones the later.
    if (!usable.append(i))
      return failOutOfMemory(error, "the instance", sizeof(i));
    for (uint64_t j = usable.size() - 1; j > 0 && module.variants[usable[j - 1]].priority <= variant.priority; --j) {
      usable[j] = usable[j - 1];
      usable[j - 1] = i;
    }
  }
  if (usable.size() == 0)
    return failNoVariant(instance, reasons);
  if (!instance.candidates.create(usable.size()))
    return failOutOfMemory(error, "the instance", usable.size() * sizeof(Candidate));
  for (uint64_t i = 0; i < usable.size(); ++i) {
    Candidate &candidate = instance.candidates[i];
    candidate.variant = usable[i];
    if (!candidate.layouts.create(Candidate::layoutCount))
      return failOutOfMemory(error, "the instance", Candidate::layoutCount * sizeof(Layout));
  }
  instance.current = &instance.candidates[0];
  return DLCRT_OK;
}

/// Room for everything whose size is known: nothing of it is allocated in a run.
Status Builder::reserve(Instance &instance) {
  const dlcrt_function_desc &function = instance.function;
  uint64_t dims = 0, exprs = 0, buffers = 0, lateSymbols = 0, lateSlots = 0, addresses = 0, scalars = 0, tensors = 0,
           callDims = 0, slots = 0;
  auto raise = [](uint64_t &maximum, uint64_t value) { maximum = value > maximum ? value : maximum; };
  for (Candidate &candidate : instance.candidates) {
    const Plan &plan = module.plans[candidate.variant];
    raise(exprs, plan.exprs.count);
    raise(buffers, plan.header->buffer_count);
    raise(lateSymbols, plan.header->late_symbol_count);
    raise(lateSlots, plan.header->late_slot_count);
    raise(addresses, plan.maxBuffers);
    raise(scalars, plan.maxScalars);
    raise(tensors, plan.maxTensors);
    raise(callDims, plan.maxDims);
    raise(slots, plan.fixed.size() + plan.symbolic.size());
  }
  for (uint32_t i = 0; i < function.input_count; ++i)
    dims += 2 * module.input(function, i).rank; // and strides
  for (uint32_t i = 0; i < function.output_count; ++i)
    dims += 2 * module.output(function, i).rank;
  bool ok = instance.inputs.create(function.input_count) && instance.outputs.create(function.output_count) &&
            instance.dimStorage.resize(dims) && instance.symbolValues.resize(function.symbol_count + lateSymbols) &&
            instance.symbolStates.resize(function.symbol_count + lateSymbols) &&
            instance.symbolInputs.resize(function.symbol_count) && instance.functionValues.resize(module.exprs.count) &&
            instance.functionStates.resize(module.exprs.count) && instance.planValues.resize(exprs) &&
            instance.planStates.resize(exprs) && instance.buffers.resize(buffers) &&
            instance.lateSlots.resize(lateSlots) && instance.addresses.resize(addresses) &&
            instance.scalars.resize(scalars) && instance.callTensors.resize(tensors) &&
            instance.callDims.resize(callDims) && instance.blocks.resize(slots) && instance.blockSlots.resize(slots) &&
            (!instance.devices[1].kind || instance.uploadedConstants.resize(module.constantTable.count));
  if (!ok)
    return failOutOfMemory(error, "the instance", 0);
  int64_t *next = instance.dimStorage.data();
  for (uint32_t i = 0; i < function.input_count; ++i) {
    Input &input = instance.inputs[i];
    input.dims = next;
    input.strides = next + module.input(function, i).rank;
    next += 2 * module.input(function, i).rank;
  }
  for (uint32_t i = 0; i < function.output_count; ++i) {
    Output &output = instance.outputs[i];
    output.dims = next;
    output.strides = next + module.output(function, i).rank;
    next += 2 * module.output(function, i).rank;
  }
  instance.arena[1].device = 1;
  for (GrowRegion &region : instance.uploadedConstants)
    region.device = 1;
  return DLCRT_OK;
}

Status Builder::build(Instance &instance) {
  if (options.host_function_count && !options.host_functions)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "host_functions is NULL");
  if (options.device_factory_count && !options.device_factories)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "device_factories is NULL");
  for (uint32_t i = 0; i < options.host_function_count; ++i) {
    const dlcrt_host_function &f = entryOf(options.host_functions, i);
    if (f.struct_size < sizeof(f) || !f.domain || !f.name || !f.function)
      return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "host function %u has no name or no function", i);
    if (!instance.hostFunctions.append(f))
      return failOutOfMemory(error, "the instance", sizeof(f));
  }
  instance.arenaLimit = options.arena_limit;
  if (options.parallel_for) {
    instance.cpu.parallelFor = options.parallel_for;
    instance.cpu.parallelCtx = options.parallel_ctx;
    instance.cpu.workers = options.workers ? options.workers : 1;
  }
  if (Status status = chooseCandidates(instance))
    return status;
  return reserve(instance);
}

Status dlcrt::impl::createInstance(Module &module, const dlcrt_instance_options *given, dlcrt_instance **out,
                                   Error *error) {
  dlcrt_instance_options options = {};
  options.struct_size = sizeof(options);
  if (given)
    if (Status status = readStruct(given, options, "dlcrt_instance_options", error))
      return status;
  Memory memory;
  if (Status status = useAllocator(options.allocator, memory, error))
    return status;
  Builder builder(module, options, error);
  uint32_t function;
  if (Status status = builder.chooseFunction(function))
    return status;
  void *place = memory.allocate(sizeof(dlcrt_instance), alignof(dlcrt_instance));
  if (!place)
    return failOutOfMemory(error, "the instance", sizeof(Instance));
  dlcrt_instance *instance = new (place) dlcrt_instance(memory, module, function);
  if (Status status = builder.build(*instance)) {
    destroyInstance(instance);
    return status;
  }
  *out = instance;
  return DLCRT_OK;
}

void dlcrt::impl::destroyInstance(dlcrt_instance *instance) {
  Memory memory(instance->memory.allocator);
  instance->~dlcrt_instance();
  memory.release(instance, sizeof(dlcrt_instance));
}
