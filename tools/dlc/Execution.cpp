// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"
#include "../RegisterAll.h"
#include "Session.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <cstring>

using namespace mlir;

namespace dlc {

llvm::Expected<ExecutionRequest> executionRequestOf(const Invocation &invocation, std::optional<uint64_t> defaultSeed) {
  ExecutionRequest request;
  request.model = invocation.inputs.front();
  request.isModule = llvm::sys::path::extension(request.model) == ".dlcm";
  bool fromFiles = invocation.has(OPT_inputs);
  if (fromFiles && invocation.has(OPT_random))
    return makeError("give the inputs' folder with --inputs DIR, or a seed with --random SEED, not both");
  if (!fromFiles && !invocation.has(OPT_random) && !defaultSeed)
    return makeError("give the inputs' folder with --inputs DIR, or a seed with --random SEED");
  if (invocation.values(OPT_target).size() > 1 || llvm::StringRef(invocation.value(OPT_target)).contains(','))
    return makeError("a run has one --target");
  llvm::Expected<uint64_t> seed = invocation.number(OPT_random, defaultSeed.value_or(0), 0, UINT64_MAX);
  if (!seed)
    return seed.takeError();
  if (!fromFiles)
    request.seed = *seed;
  request.inputs = invocation.value(OPT_inputs);
  llvm::Expected<uint64_t> threads = invocation.number(OPT_threads, 0, 0, 4096);
  if (!threads)
    return threads.takeError();
  request.threads = *threads != 0 ? static_cast<uint32_t>(*threads) : dlcrt_pool_available_threads();
  llvm::Expected<OnnxImportOptions> dims = importOptionsOf(invocation);
  if (!dims)
    return dims.takeError();
  request.dims = std::move(*dims);
  request.target = invocation.value(OPT_target);
  request.fusion = !invocation.has(OPT_no_fusion);
  request.winograd = !invocation.has(OPT_no_winograd);
  request.function = invocation.value(OPT_function);
  llvm::Expected<std::string> state = stateOf(invocation);
  if (!state)
    return state.takeError();
  request.state = std::move(*state);
  if (!request.isModule && !request.function.empty())
    return makeError("--function is for a module; a model is one function");
  llvm::Expected<uint64_t> length = invocation.number(OPT_state_length, 0, 0, INT32_MAX);
  if (!length)
    return length.takeError();
  llvm::Expected<uint64_t> capacity = invocation.number(OPT_state_capacity, *length + 1024, 0, INT32_MAX);
  if (!capacity)
    return capacity.takeError();
  request.stateLength = static_cast<int64_t>(*length);
  request.stateCapacity = static_cast<int64_t>(*capacity);
  request.sizesState = invocation.has(OPT_state_length) || invocation.has(OPT_state_capacity);
  if (!request.isModule)
    return request;

  for (OptionId flag : {OPT_precision, OPT_jobs, OPT_state, OPT_no_fusion, OPT_no_winograd})
    if (invocation.has(flag))
      return makeError("--precision, --jobs, --state, --no-fusion and --no-winograd are for a model that is compiled; this is a module");
  if (fromFiles && (invocation.has(OPT_dim) || invocation.has(OPT_shape)))
    return makeError("--dim and --shape are for a model that is compiled, and for random inputs of a module; this is a module, and its inputs "
                     "have their dims from files");
  if (!request.dims.ranges.empty() || !request.dims.divisors.empty())
    return makeError("--dim NAME=MIN..MAX and NAME%N are for a model that is compiled; random inputs of a module are sized with NAME=N");
  return request;
}

std::optional<int> Execution::load(const Invocation &invocation, const ExecutionRequest &request) {
  subject = subjectOf(request.model);
  if (!request.isModule)
    if (std::optional<int> exit = compileModel(invocation, request))
      return exit;
  auto options = sized<dlcrt_module_options>();
  options.name = subject.c_str();
  RuntimeError error;
  dlcrt_module *opened = nullptr;
  auto begin = std::chrono::steady_clock::now();
  dlcrt_status status = request.isModule
                            ? dlcrt_module_open_file(request.model.c_str(), &options, &opened, &error)
                            : dlcrt_module_open_memory(bytes->getBufferStart(), bytes->getBufferSize(), &options, &opened, &error);
  loadSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  module.reset(opened);
  if (status == DLCRT_OK)
    return std::nullopt;
  if (request.isModule)
    return invocation.fail(toError(status, error, subject));
  invocation.io.err << fmt::format("error: {}: internal fault of dlc: the runtime refuses the compiled module: {}\n", subject, error.message)
                    << "note: please report it, with the model and the output of `dlc doctor`\n";
  return status == DLCRT_ERROR_OUT_OF_MEMORY ? kExitFailed : kExitFault;
}

std::optional<int> Execution::compileModel(const Invocation &invocation, const ExecutionRequest &request) {
  llvm::Expected<unsigned> jobs = jobsOf(invocation);
  if (!jobs)
    return invocation.fail(jobs.takeError(), kExitUsage);
  CompileOptions options;
  if (invocation.has(OPT_precision)) {
    llvm::Expected<Precision> precision = parsePrecision(invocation.value(OPT_precision));
    if (!precision)
      return invocation.fail(precision.takeError());
    options.precision.precision = *precision;
  }
  llvm::Expected<Target> target = parseTarget(request.target.empty() ? "cpu:host" : request.target);
  if (!target)
    return invocation.fail(target.takeError());
  options.variants = variantsFor({std::move(*target)});
  options.codegen.jobs = *jobs;
  options.fusion = request.fusion;
  options.winograd = request.winograd;
  options.state = request.state;
  options.evaluator = &constantEvaluator();

  Session session(*jobs, subject);
  FailureOr<Compiled> compiled = failure();
  {
    Progress progress(invocation, options, /*timing=*/false);
    compiled = compile(
        session.getContext(), [&](MLIRContext &context) { return importOnnx(context, request.model, request.dims); }, allBackends(), options);
  }
  if (failed(compiled))
    return session.fail(invocation);
  if (!request.quiet)
    session.getDiagnostics().print(invocation.io.err, invocation.has(OPT_verbose));

  // Aligned, so that the runtime uses it in place.
  std::unique_ptr<llvm::WritableMemoryBuffer> copy =
      llvm::WritableMemoryBuffer::getNewUninitMemBuffer(compiled->bytes.size(), request.model, llvm::Align(64));
  if (!copy)
    return invocation.fail(makeError("{}: not enough memory for the module", subject));
  std::memcpy(copy->getBufferStart(), compiled->bytes.data(), compiled->bytes.size());
  bytes = std::move(copy);
  return std::nullopt;
}

llvm::Error Execution::createInstance(const ExecutionRequest &request) {
  RuntimeError error;
  auto options = sized<dlcrt_instance_options>();
  if (request.threads > 1) {
    pool.reset(dlcrt_pool_create(request.threads));
    if (!pool)
      return makeError("not enough memory for the threads");
    options.workers = dlcrt_pool_threads(pool.get());
    options.parallel_for = dlcrt_pool_parallel_for;
    options.parallel_ctx = pool.get();
  }
  std::string variant;
  if (!request.target.empty()) {
    llvm::Expected<Target> target = parseTarget(request.target);
    if (!target)
      return target.takeError();
    variant = target->name;
    options.variant = variant.c_str();
  }
  if (!request.function.empty())
    options.function = request.function.c_str();
  auto begin = std::chrono::steady_clock::now();
  dlcrt_instance *created = nullptr;
  dlcrt_status status = dlcrt_instance_create(module.get(), &options, &created, &error);
  loadSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  instance.reset(created);
  return toError(status, error, subject);
}

llvm::Error Execution::bindInputs(const ExecutionRequest &request) {
  inputs = std::make_unique<InputSet>(module.get(), instance.get(), subject);
  madeUp = request.seed.has_value();
  if (!request.seed) {
    if (llvm::Error failed = inputs->read(request.inputs))
      return failed;
  } else if (llvm::Error failed = inputs->make(
                 *request.seed,
                 request.isModule ? request.dims : OnnxImportOptions(), // of a model the importer took them
                 {request.stateLength, request.stateCapacity})) {
    return failed;
  }
  return makeState(request);
}

/// Where the function works on one. It has the dims of the inputs.
llvm::Error Execution::makeState(const ExecutionRequest &request) {
  RuntimeError error;
  auto function = sized<dlcrt_function_info>();
  auto info = sized<dlcrt_module_info>();
  if (dlcrt_status status = dlcrt_module_function(module.get(), getFunction(), &function, &error))
    return toError(status, error, subject);
  if (dlcrt_status status = dlcrt_module_get_info(module.get(), &info, &error))
    return toError(status, error, subject);
  if (function.state_count == 0 && request.sizesState)
    return makeError("--state-capacity and --state-length: function '{}' works on no state", function.name);
  if (function.state_count == 0)
    return llvm::Error::success();
  std::vector<const char *> names;
  std::vector<int64_t> values;
  for (uint32_t i = 1; i < info.state_symbol_count; ++i) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (dlcrt_status status = dlcrt_module_state_symbol(module.get(), i, &symbol, &error))
      return toError(status, error, subject);
    names.push_back(symbol.name);
    values.push_back(inputs->valueOf(symbol.name).value_or(std::max<int64_t>(symbol.min, 1)));
  }
  auto options = sized<dlcrt_state_options>();
  options.dim_count = static_cast<uint32_t>(names.size());
  options.dim_names = names.data();
  options.dim_values = values.data();
  options.capacity = request.stateCapacity;
  dlcrt_state *created = nullptr;
  dlcrt_status status = dlcrt_state_create(module.get(), &options, &created, &error);
  state.reset(created);
  if (status != DLCRT_OK)
    return toError(status, error, subject);
  stateLength = request.stateLength;
  if (llvm::Error failed = rewind())
    return failed;
  if (stateLength != 0)
    if (llvm::Error failed = fillState(module.get(), created, request.seed.value_or(1)))
      return failed;
  return toError(dlcrt_instance_set_state(instance.get(), created, &error), error, subject);
}

llvm::Error Execution::rewind() {
  RuntimeError error;
  if (!state)
    return llvm::Error::success();
  return toError(dlcrt_state_set_length(state.get(), stateLength, &error), error, subject);
}

llvm::Error Execution::run(const dlcrt_run_options *options) {
  RuntimeError error;
  dlcrt_status status = dlcrt_instance_run(instance.get(), options, &error);
  if (status == DLCRT_ERROR_CHECK && madeUp)
    return makeError("{}; the inputs were made up: give real ones with --inputs DIR", llvm::toString(toError(status, error, subject)));
  if (status == DLCRT_ERROR_CAPACITY && state)
    return makeError("{} (--state-capacity N)", llvm::toString(toError(status, error, subject)));
  return toError(status, error, subject);
}

static llvm::Expected<HostTensor> readOutput(dlcrt_module *module, dlcrt_instance *instance, uint32_t function, uint32_t index) {
  RuntimeError error;
  auto info = sized<dlcrt_value_info>();
  if (dlcrt_status status = dlcrt_module_output(module, function, index, &info, &error))
    return toError(status, error, "");
  auto view = sized<dlcrt_tensor>();
  if (dlcrt_status status = dlcrt_instance_output(instance, index, &view, &error))
    return toError(status, error, "");
  HostTensor tensor;
  tensor.name = info.name;
  tensor.dtype = view.dtype;
  tensor.dims.assign(view.dims, view.dims + view.rank);
  uint64_t bytes = dlcrt_tensor_bytes(view.dtype, view.rank, view.dims);
  if (view.dtype == DLCRT_DTYPE_STRING || bytes == UINT64_MAX)
    return makeError("output '{}' cannot be read: its type is {}", info.name, dlcrt_dtype_name(view.dtype));
  const char *data = static_cast<const char *>(view.data) + view.byte_offset;
  if (bytes != 0)
    tensor.bytes.assign(data, data + bytes);
  return tensor;
}

llvm::Expected<std::vector<HostTensor>> Execution::readOutputs() const {
  RuntimeError error;
  auto info = sized<dlcrt_function_info>();
  if (dlcrt_status status = dlcrt_module_function(module.get(), getFunction(), &info, &error))
    return toError(status, error, subject);
  std::vector<HostTensor> outputs;
  for (uint32_t i = 0; i < info.output_count; ++i) {
    llvm::Expected<HostTensor> output = readOutput(module.get(), instance.get(), getFunction(), i);
    if (!output)
      return output.takeError();
    outputs.push_back(std::move(*output));
  }
  return outputs;
}

llvm::Expected<std::vector<HostTensor>> Execution::readStates() const {
  RuntimeError error;
  auto about = sized<dlcrt_module_info>();
  if (dlcrt_status status = dlcrt_module_get_info(module.get(), &about, &error))
    return toError(status, error, subject);
  std::vector<HostTensor> states;
  for (uint32_t i = 0; state && i < about.state_count; ++i) {
    auto info = sized<dlcrt_state_info>();
    if (dlcrt_status status = dlcrt_module_state(module.get(), i, &info, &error))
      return toError(status, error, subject);
    HostTensor tensor;
    tensor.name = info.name;
    tensor.dtype = info.dtype;
    tensor.dims.resize(info.rank);
    std::vector<int64_t> strides(info.rank);
    auto view = sized<dlcrt_tensor>();
    if (dlcrt_status status = dlcrt_state_view(state.get(), i, &view, tensor.dims.data(), strides.data(), &error))
      return toError(status, error, subject);
    tensor.bytes.resize(dlcrt_tensor_bytes(info.dtype, info.rank, tensor.dims.data()));
    view.data = tensor.bytes.data();
    view.strides = nullptr;
    view.capacity = tensor.bytes.size();
    if (dlcrt_status status = dlcrt_state_read(state.get(), i, 0, &view, &error))
      return toError(status, error, subject);
    states.push_back(std::move(tensor));
  }
  return states;
}

llvm::Expected<std::string> Execution::getTarget() const {
  RuntimeError error;
  auto variant = sized<dlcrt_variant_info>();
  if (dlcrt_status status = dlcrt_module_variant(module.get(), dlcrt_instance_variant(instance.get()), &variant, &error))
    return toError(status, error, subject);
  return std::string(variant.target);
}

} // namespace dlc
