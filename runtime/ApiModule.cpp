/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The C API: modules, signatures, variants. Arguments are checked here.
#include "Dtype.h"
#include "Instance.h"
#include "Prepare.h"
#include "cpu/Features.h"

using namespace dlcrt::impl;

#define DLCRT_TEXT(x) DLCRT_TEXT2(x)
#define DLCRT_TEXT2(x) #x

uint32_t dlcrt_version(void) {
  return DLCRT_VERSION_MAJOR * 1000000u + DLCRT_VERSION_MINOR * 1000u + DLCRT_VERSION_PATCH;
}

const char *dlcrt_version_string(void) {
  return DLCRT_TEXT(DLCRT_VERSION_MAJOR) "." DLCRT_TEXT(DLCRT_VERSION_MINOR) "." DLCRT_TEXT(DLCRT_VERSION_PATCH);
}

static Status failNull(Error *error, const char *what) {
  return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
}

static Status failIndex(Error *error, const char *what, uint32_t index, uint64_t count) {
  return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "no %s %u: there are %llu", what, index, (unsigned long long)count);
}

enum dlcrt_status dlcrt_module_open_file(const char *path, const dlcrt_module_options *options, dlcrt_module **module,
                                         dlcrt_error *error) {
  succeed(error);
  if (!path || !module)
    return failNull(error, path ? "module" : "path");
  return openFile(path, options, module, error);
}

enum dlcrt_status dlcrt_module_open_memory(const void *data, uint64_t bytes, const dlcrt_module_options *options,
                                           dlcrt_module **module, dlcrt_error *error) {
  succeed(error);
  if (!data || !module)
    return failNull(error, data ? "module" : "data");
  return openMemory(data, bytes, options, module, error);
}

enum dlcrt_status dlcrt_module_open_static(const dlcrt_static_module *data, const dlcrt_module_options *options,
                                           dlcrt_module **module, dlcrt_error *error) {
  succeed(error);
  if (!data || !module)
    return failNull(error, data ? "module" : "data");
  return openStatic(data, options, module, error);
}

void dlcrt_module_close(dlcrt_module *module) {
  if (module)
    release(*module);
}

enum dlcrt_status dlcrt_module_verify(const dlcrt_module *module, dlcrt_error *error) {
  succeed(error);
  if (!module)
    return failNull(error, "module");
  if (Status status = verifyConstants(*module, error))
    return withPrefix(error, status, module->name.data());
  return DLCRT_OK;
}

/// Fills the caller's struct if it is one.
template <typename T> static Status give(T *out, const T &value, const char *name, Error *error) {
  if (Status status = checkStruct(out, name, error))
    return status;
  writeStruct(out, value);
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_module_get_info(const dlcrt_module *module, dlcrt_module_info *info, dlcrt_error *error) {
  succeed(error);
  if (!module)
    return failNull(error, "module");
  dlcrt_module_info value = {};
  value.format_major = module->header->major;
  value.format_minor = module->header->minor;
  value.producer = module->string(module->header->producer);
  value.function_count = uint32_t(module->functions.count);
  value.variant_count = uint32_t(module->variants.count);
  value.state_count = uint32_t(module->states.count);
  value.state_symbol_count = uint32_t(module->stateSymbols.count);
  value.file_bytes = module->header->file_bytes;
  value.weight_bytes = module->constantBytes.count;
  value.code_bytes = module->codeBytes.count;
  return give(info, value, "dlcrt_module_info", error);
}

static Status findFunction(const dlcrt_module *module, uint32_t function, Error *error) {
  if (!module)
    return failNull(error, "module");
  if (function >= module->functions.count)
    return failIndex(error, "function", function, module->functions.count);
  return DLCRT_OK;
}

static Status findValue(const dlcrt_module *module, uint32_t function, uint32_t direction, uint32_t index,
                        const dlcrt_value_desc *&value, Error *error) {
  if (Status status = findFunction(module, function, error))
    return status;
  const dlcrt_function_desc &f = module->functions[function];
  if (direction > DLCRT_OUTPUT)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "direction is %u", direction);
  uint32_t count = direction == DLCRT_INPUT ? f.input_count : f.output_count;
  if (index >= count)
    return failIndex(error, direction == DLCRT_INPUT ? "input" : "output", index, count);
  value = direction == DLCRT_INPUT ? &module->input(f, index) : &module->output(f, index);
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_module_function(const dlcrt_module *module, uint32_t function, dlcrt_function_info *info,
                                        dlcrt_error *error) {
  succeed(error);
  if (Status status = findFunction(module, function, error))
    return status;
  const dlcrt_function_desc &f = module->functions[function];
  dlcrt_function_info value = {};
  value.name = module->string(f.name);
  value.input_count = f.input_count;
  value.output_count = f.output_count;
  value.symbol_count = f.symbol_count;
  value.length_symbol = value.capacity_symbol = DLCRT_NO_INDEX;
  if (const dlcrt_state_function *use = module->stateUse(function)) {
    value.state_count = use->state_count;
    value.length_symbol = use->length_symbol;
    value.capacity_symbol = module->stateNumbers[use->first_symbol];
  }
  return give(info, value, "dlcrt_function_info", error);
}

uint32_t dlcrt_module_find_function(const dlcrt_module *module, const char *name) {
  return module && name ? module->findFunction(name) : DLCRT_NO_INDEX;
}

uint32_t dlcrt_module_find_state(const dlcrt_module *module, const char *name) {
  for (uint32_t i = 0; module && name && i < module->states.count; ++i)
    if (strcmp(module->string(module->states[i].name), name) == 0)
      return i;
  return DLCRT_NO_INDEX;
}

static uint32_t findName(const dlcrt_module *module, uint32_t function, uint32_t direction, const char *name) {
  const dlcrt_value_desc *value;
  for (uint32_t i = 0; name && findValue(module, function, direction, i, value, nullptr) == DLCRT_OK; ++i)
    if (strcmp(module->string(value->name), name) == 0)
      return i;
  return DLCRT_NO_INDEX;
}

uint32_t dlcrt_module_find_input(const dlcrt_module *module, uint32_t function, const char *name) {
  return findName(module, function, DLCRT_INPUT, name);
}

uint32_t dlcrt_module_find_output(const dlcrt_module *module, uint32_t function, const char *name) {
  return findName(module, function, DLCRT_OUTPUT, name);
}

static Status giveSymbol(const Module &module, const dlcrt_symbol_desc &desc, dlcrt_symbol_info *info, Error *error) {
  dlcrt_symbol_info value = {};
  value.anonymous = (desc.flags & DLCRT_SYMBOL_ANONYMOUS) != 0;
  value.name = module.string(desc.name);
  value.min = desc.min;
  value.max = desc.max;
  value.divisor = desc.divisor;
  return give(info, value, "dlcrt_symbol_info", error);
}

enum dlcrt_status dlcrt_module_symbol(const dlcrt_module *module, uint32_t function, uint32_t symbol,
                                      dlcrt_symbol_info *info, dlcrt_error *error) {
  succeed(error);
  if (Status status = findFunction(module, function, error))
    return status;
  const dlcrt_function_desc &f = module->functions[function];
  if (symbol >= f.symbol_count)
    return failIndex(error, "symbol", symbol, f.symbol_count);
  return giveSymbol(*module, module->symbols[f.first_symbol + symbol], info, error);
}

static Status valueInfo(const dlcrt_module *module, uint32_t function, uint32_t direction, uint32_t index,
                        dlcrt_value_info *info, Error *error) {
  succeed(error);
  const dlcrt_value_desc *desc;
  if (Status status = findValue(module, function, direction, index, desc, error))
    return status;
  dlcrt_value_info value = {};
  value.dtype = int32_t(desc->dtype);
  value.name = module->string(desc->name);
  value.rank = desc->rank;
  value.flags = (desc->flags & DLCRT_VALUE_OPTIONAL ? DLCRT_INFO_OPTIONAL : 0) |
                (desc->flags & DLCRT_VALUE_LATE ? DLCRT_INFO_LATE : 0) |
                (desc->default_constant != DLCRT_NONE ? DLCRT_INFO_DEFAULT : 0);
  value.alias = desc->alias;
  return give(info, value, "dlcrt_value_info", error);
}

enum dlcrt_status dlcrt_module_input(const dlcrt_module *module, uint32_t function, uint32_t input,
                                     dlcrt_value_info *info, dlcrt_error *error) {
  return valueInfo(module, function, DLCRT_INPUT, input, info, error);
}

enum dlcrt_status dlcrt_module_output(const dlcrt_module *module, uint32_t function, uint32_t output,
                                      dlcrt_value_info *info, dlcrt_error *error) {
  return valueInfo(module, function, DLCRT_OUTPUT, output, info, error);
}

enum dlcrt_status dlcrt_module_dim(const dlcrt_module *module, uint32_t function, uint32_t direction, uint32_t index,
                                   uint32_t dim, dlcrt_dim_info *info, dlcrt_error *error) {
  succeed(error);
  const dlcrt_value_desc *desc;
  if (Status status = findValue(module, function, direction, index, desc, error))
    return status;
  if (dim >= desc->rank)
    return failIndex(error, "dimension", dim, desc->rank);
  uint32_t node = module->dim(*desc, dim);
  dlcrt_dim_info value = {};
  value.symbol = DLCRT_NO_INDEX;
  if (node == DLCRT_NONE) {
    value.kind = DLCRT_DIM_LATE;
  } else if (module->exprs[node].kind == DLCRT_EXPR_CONST) {
    value.kind = DLCRT_DIM_CONSTANT;
    value.value = module->exprs[node].value;
  } else if (module->exprs[node].kind == DLCRT_EXPR_SYMBOL) {
    value.kind = DLCRT_DIM_SYMBOL;
    value.symbol = uint32_t(module->exprs[node].value);
  } else {
    value.kind = DLCRT_DIM_EXPRESSION;
  }
  return give(info, value, "dlcrt_dim_info", error);
}

size_t dlcrt_module_dim_text(const dlcrt_module *module, uint32_t function, uint32_t direction, uint32_t index,
                             uint32_t dim, char *text, size_t text_bytes) {
  TextWriter out(text, text_bytes);
  const dlcrt_value_desc *desc;
  if (findValue(module, function, direction, index, desc, nullptr) != DLCRT_OK || dim >= desc->rank)
    return 0;
  uint32_t node = module->dim(*desc, dim);
  if (node == DLCRT_NONE)
    out.print("?");
  else
    printExpr(out, module->exprs, node, FunctionSymbols{*module, module->functions[function]}.names());
  return out.length();
}

enum dlcrt_status dlcrt_module_input_default(const dlcrt_module *module, uint32_t function, uint32_t input,
                                             dlcrt_tensor *tensor, int64_t *dims, dlcrt_error *error) {
  succeed(error);
  const dlcrt_value_desc *desc;
  if (Status status = findValue(module, function, DLCRT_INPUT, input, desc, error))
    return status;
  const char *name = module->string(desc->name);
  if (desc->default_constant == DLCRT_NONE)
    return fail(error, DLCRT_ERROR_NOT_FOUND, "input '%s' has no default", name);
  if (desc->rank && !dims)
    return failNull(error, "dims");
  for (uint32_t i = 0; i < desc->rank; ++i) {
    const dlcrt_expr_node &dim = module->exprs[module->dim(*desc, i)];
    if (dim.kind != DLCRT_EXPR_CONST)
      return fail(error, DLCRT_ERROR_UNSUPPORTED, "the default of input '%s' has no constant dims", name);
    dims[i] = dim.value;
  }
  dlcrt_tensor value = {};
  value.dtype = int32_t(desc->dtype);
  value.data = const_cast<uint8_t *>(module->constant(desc->default_constant));
  value.rank = desc->rank;
  value.dims = dims;
  value.device_kind = DLCRT_MEMORY_CPU;
  value.capacity = module->constantTable[desc->default_constant].bytes;
  return give(tensor, value, "dlcrt_tensor", error);
}

enum dlcrt_status dlcrt_module_value_dims(const dlcrt_module *module, uint32_t function, uint32_t direction,
                                          uint32_t value, const int64_t *symbols, uint32_t symbol_count, int64_t *dims,
                                          uint64_t *bytes, dlcrt_error *error) {
  succeed(error);
  const dlcrt_value_desc *desc;
  if (Status status = findValue(module, function, direction, value, desc, error))
    return status;
  const dlcrt_function_desc &f = module->functions[function];
  if (symbol_count != f.symbol_count || (symbol_count && !symbols))
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "function '%s' has %u symbols, not %u", module->string(f.name),
                f.symbol_count, symbol_count);
  Memory memory;
  Vector<int64_t> symbolValues(memory), values(memory);
  Vector<ValueState> symbolStates(memory), states(memory);
  if (!symbolValues.resize(symbol_count) || !symbolStates.resize(symbol_count) || !values.resize(module->exprs.count) ||
      !states.resize(module->exprs.count))
    return failOutOfMemory(error, "dimension expressions", module->exprs.count * sizeof(int64_t));
  Values given{symbolValues.data(), symbolStates.data(), symbol_count};
  for (uint32_t i = 0; i < symbol_count; ++i)
    given.set(i, symbols[i]);
  Values registers{values.data(), states.data(), values.size()};
  evaluate(module->exprs, 0, module->exprs.count, given, registers);
  return evaluateDims(*module, f, *desc, registers, dims, bytes, error);
}

enum dlcrt_status dlcrt_module_state(const dlcrt_module *module, uint32_t state, dlcrt_state_info *info,
                                     dlcrt_error *error) {
  succeed(error);
  if (!module)
    return failNull(error, "module");
  if (state >= module->states.count)
    return failIndex(error, "state", state, module->states.count);
  dlcrt_state_info value = {};
  value.dtype = int32_t(module->states[state].dtype);
  value.name = module->string(module->states[state].name);
  value.rank = module->states[state].rank;
  value.axis = module->states[state].axis;
  return give(info, value, "dlcrt_state_info", error);
}

enum dlcrt_status dlcrt_module_state_symbol(const dlcrt_module *module, uint32_t symbol, dlcrt_symbol_info *info,
                                            dlcrt_error *error) {
  succeed(error);
  if (!module)
    return failNull(error, "module");
  if (symbol >= module->stateSymbols.count)
    return failIndex(error, "symbol", symbol, module->stateSymbols.count);
  return giveSymbol(*module, module->stateSymbols[symbol], info, error);
}

size_t dlcrt_module_state_dim_text(const dlcrt_module *module, uint32_t state, uint32_t dim, char *text,
                                   size_t text_bytes) {
  TextWriter out(text, text_bytes);
  if (!module || state >= module->states.count || dim >= module->states[state].rank)
    return 0;
  printExpr(out, module->stateExprs, module->stateDims[module->states[state].first_dim + dim],
            StateSymbols{*module}.names());
  return out.length();
}

static Status findVariant(const dlcrt_module *module, uint32_t variant, Error *error) {
  if (!module)
    return failNull(error, "module");
  if (variant >= module->variants.count)
    return failIndex(error, "variant", variant, module->variants.count);
  return DLCRT_OK;
}

enum dlcrt_status dlcrt_module_variant(const dlcrt_module *module, uint32_t variant, dlcrt_variant_info *info,
                                       dlcrt_error *error) {
  succeed(error);
  if (Status status = findVariant(module, variant, error))
    return status;
  const dlcrt_variant_desc &desc = module->variants[variant];
  const dlcrt_plan_header &plan = *module->plans[variant].header;
  dlcrt_variant_info value = {};
  value.function = desc.function;
  value.target = module->string(desc.target);
  value.priority = desc.priority;
  value.device_kind = desc.device == DLCRT_NONE ? 0 : desc.device;
  value.guarded = desc.guard != DLCRT_NONE;
  value.kernel_count = desc.kernel_count;
  value.code_bytes = desc.code_bytes;
  value.fixed_arena_bytes = plan.fixed_bytes[0] + plan.fixed_bytes[1];
  return give(info, value, "dlcrt_variant_info", error);
}

enum dlcrt_status dlcrt_module_variant_arena(const dlcrt_module *module, uint32_t variant, const int64_t *symbols,
                                             uint32_t symbol_count, dlcrt_arena_info *info, dlcrt_error *error) {
  succeed(error);
  if (Status status = findVariant(module, variant, error))
    return status;
  const dlcrt_function_desc &f = module->functions[module->variants[variant].function];
  if (symbol_count != f.symbol_count || (symbol_count && !symbols))
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "function '%s' has %u symbols, not %u", module->string(f.name),
                f.symbol_count, symbol_count);
  Memory memory;
  Vector<int64_t> values(memory);
  Vector<ValueState> states(memory);
  if (!values.resize(symbol_count) || !states.resize(symbol_count))
    return failOutOfMemory(error, "dimension expressions", symbol_count * sizeof(int64_t));
  Values given{values.data(), states.data(), symbol_count};
  for (uint32_t i = 0; i < symbol_count; ++i)
    given.set(i, symbols[i]);
  dlcrt_arena_info value = {};
  if (Status status = measureArena(*module, variant, given, value, error))
    return status;
  return give(info, value, "dlcrt_arena_info", error);
}

enum dlcrt_status dlcrt_module_variant_supported(const dlcrt_module *module, uint32_t variant, dlcrt_error *error) {
  succeed(error);
  if (Status status = findVariant(module, variant, error))
    return status;
  const dlcrt_variant_desc &desc = module->variants[variant];
  if (desc.device != DLCRT_NONE && desc.device != DLCRT_DEVICE_HOST_CALLBACKS)
    return fail(error, DLCRT_ERROR_NO_VARIANT, "it needs a device of kind %u, which this runtime does not drive itself",
                desc.device);
  return checkFeatures(desc.arch, desc.features[0], error);
}

size_t dlcrt_module_variant_guard_text(const dlcrt_module *module, uint32_t variant, char *text, size_t text_bytes) {
  TextWriter out(text, text_bytes);
  if (findVariant(module, variant, nullptr) != DLCRT_OK || module->variants[variant].guard == DLCRT_NONE)
    return 0;
  const dlcrt_variant_desc &desc = module->variants[variant];
  printExpr(out, module->exprs, desc.guard, FunctionSymbols{*module, module->functions[desc.function]}.names());
  return out.length();
}

size_t dlcrt_cpu_features_text(char *text, size_t text_bytes) {
  TextWriter out(text, text_bytes);
  printFeatures(out, hostArch(), hostFeatures(), ",");
  return out.length();
}
