// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../RegisterAll.h"
#include "Runtime.h"
#include "Session.h"
#include "TensorFiles.h"
#include "dlc/Support/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace mlir;

namespace dlc {

namespace {

/// A module ready to run, and what it lives on.
struct Loaded {
  std::unique_ptr<llvm::MemoryBuffer> bytes; // where it was compiled here
  ModuleHandle module;
};

/// The numbers of --random: the same on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() { // splitmix64 (Steele, Lea, Flood 2014)
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [-1, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }

private:
  uint64_t state;
};

} // namespace

/// Compiles for one target: this machine, or what --target says.
static std::optional<int> compileHere(const Invocation &invocation, Loaded &loaded) {
  const std::string &model = invocation.inputs.front();
  llvm::Expected<OnnxImportOptions> import = importOptionsOf(invocation);
  if (!import)
    return invocation.fail(import.takeError(), kExitUsage);
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
  llvm::Expected<Target> target = parseTarget(invocation.has(OPT_target) ? invocation.value(OPT_target) : "cpu:host");
  if (!target)
    return invocation.fail(target.takeError());
  options.variants = variantsFor({std::move(*target)});
  options.codegen.jobs = *jobs;

  Session session(*jobs, subjectOf(model));
  FailureOr<Compiled> compiled = failure();
  {
    Progress progress(invocation, options, /*timing=*/false);
    compiled = compile(session.getContext(), [&](MLIRContext &context) { return importOnnx(context, model, *import); }, allBackends(), options);
  }
  if (failed(compiled))
    return session.fail(invocation);
  session.getDiagnostics().print(invocation.io.err, invocation.has(OPT_verbose));

  std::unique_ptr<llvm::WritableMemoryBuffer> bytes =
      llvm::WritableMemoryBuffer::getNewUninitMemBuffer(compiled->bytes.size(), model, llvm::Align(64));
  if (!bytes)
    return invocation.fail(makeError("{}: not enough memory for the module", subjectOf(model)));
  std::memcpy(bytes->getBufferStart(), compiled->bytes.data(), compiled->bytes.size());
  loaded.bytes = std::move(bytes);
  auto moduleOptions = sized<dlcrt_module_options>();
  std::string name = subjectOf(model);
  moduleOptions.name = name.c_str();
  RuntimeError error;
  dlcrt_module *module = nullptr;
  if (dlcrt_status status = dlcrt_module_open_memory(loaded.bytes->getBufferStart(), loaded.bytes->getBufferSize(), &moduleOptions, &module, &error)) {
    invocation.io.err << fmt::format("error: {}: internal fault of dlc: the runtime refuses the compiled module: {}\n", name, error.message)
                      << "note: please report it, with the model and the output of `dlc doctor`\n";
    return status == DLCRT_ERROR_OUT_OF_MEMORY ? kExitFailed : kExitFault;
  }
  loaded.module.reset(module);
  return std::nullopt;
}

/// Dims of an input when nobody gives any: constants as they are, symbols small (1, or the least that was promised).
static llvm::Expected<std::vector<int64_t>> smallDims(dlcrt_module *module, uint32_t function, uint32_t input, uint32_t rank, llvm::StringRef name) {
  std::vector<int64_t> dims;
  for (uint32_t i = 0; i < rank; ++i) {
    auto dim = sized<dlcrt_dim_info>();
    RuntimeError error;
    if (dlcrt_status status = dlcrt_module_dim(module, function, DLCRT_INPUT, input, i, &dim, &error))
      return toError(status, error, "");
    if (dim.kind == DLCRT_DIM_CONSTANT) {
      dims.push_back(dim.value);
      continue;
    }
    if (dim.kind != DLCRT_DIM_SYMBOL)
      return makeError("input '{}': --random cannot choose its dim {}; give --inputs", name, i);
    auto symbol = sized<dlcrt_symbol_info>();
    if (dlcrt_status status = dlcrt_module_symbol(module, function, dim.symbol, &symbol, &error))
      return toError(status, error, "");
    int64_t divisor = std::max<int64_t>(symbol.divisor, 1);
    int64_t value = std::max<int64_t>(symbol.min, 1);
    value = value / divisor * divisor + (value % divisor != 0 ? divisor : 0);
    dims.push_back(std::min(value, symbol.max));
  }
  return dims;
}

static uint16_t toHalf(float value) { // round to nearest even; |value| <= 1
  return static_cast<uint16_t>(llvm::bit_cast<uint16_t>(static_cast<_Float16>(value)));
}

/// Floats in [-1, 1), integers 0 to 7 (so that they can be indices and sizes), bool 0 or 1.
static llvm::Error fillRandom(HostTensor &tensor, Random &random) {
  uint32_t bits = dlcrt_dtype_bits(tensor.dtype);
  auto each = [&](auto make) {
    using Element = decltype(make());
    for (size_t at = 0; at + sizeof(Element) <= tensor.bytes.size(); at += sizeof(Element)) {
      Element element = make();
      std::memcpy(tensor.bytes.data() + at, &element, sizeof(Element));
    }
    return llvm::Error::success();
  };
  switch (tensor.dtype) {
  case DLCRT_DTYPE_FLOAT32:
  case DLCRT_DTYPE_COMPLEX64:
    return each([&] { return static_cast<float>(random.real()); });
  case DLCRT_DTYPE_FLOAT64:
  case DLCRT_DTYPE_COMPLEX128:
    return each([&] { return random.real(); });
  case DLCRT_DTYPE_FLOAT16:
    return each([&] { return toHalf(static_cast<float>(random.real())); });
  case DLCRT_DTYPE_BFLOAT16:
    return each([&] { return static_cast<uint16_t>(llvm::bit_cast<uint32_t>(static_cast<float>(random.real())) >> 16); });
  case DLCRT_DTYPE_BOOL:
    return each([&] { return static_cast<uint8_t>(random.next() & 1); });
  case DLCRT_DTYPE_STRING:
    return makeError("input '{}': --random makes no strings; give --inputs", tensor.name);
  default:
    break;
  }
  switch (bits) {
  case 64:
    return each([&] { return random.next() & 7; });
  case 32:
    return each([&] { return static_cast<uint32_t>(random.next() & 7); });
  case 16:
    return each([&] { return static_cast<uint16_t>(random.next() & 7); });
  default: // 8-bit integers; of narrower types and 8-bit floats small positive ones
    return each([&] { return static_cast<uint8_t>(random.next() & (bits == 8 ? 0x07 : 0x11)); });
  }
}

/// Feeds input `index` from a file or at random; an input that has neither keeps its default.
static llvm::Expected<std::optional<HostTensor>> makeInput(const Invocation &invocation, dlcrt_module *module, uint32_t function,
                                                           uint32_t index, const dlcrt_value_info &info, Random *random) {
  if (!random)
    return readTensor(invocation.value(OPT_inputs), "input", index, info.name, info.dtype);
  if (info.flags & (DLCRT_INFO_DEFAULT | DLCRT_INFO_OPTIONAL))
    return std::optional<HostTensor>();
  HostTensor tensor;
  tensor.name = info.name;
  tensor.dtype = info.dtype;
  llvm::Expected<std::vector<int64_t>> dims = smallDims(module, function, index, info.rank, info.name);
  if (!dims)
    return dims.takeError();
  tensor.dims = std::move(*dims);
  uint64_t bytes = dlcrt_tensor_bytes(tensor.dtype, info.rank, tensor.dims.data());
  if (bytes == UINT64_MAX)
    return makeError("input '{}' is too large", tensor.name);
  tensor.bytes.resize(bytes);
  if (llvm::Error failed = fillRandom(tensor, *random))
    return std::move(failed);
  return std::optional(std::move(tensor));
}

/// input_7.pb where the model has three inputs is a mistake of somebody.
static llvm::Error refuseStrayInputs(llvm::StringRef folder, uint32_t inputCount) {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(folder, error), end; at != end && !error; at.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(at->path());
    unsigned index = 0;
    if (name.consume_front("input_") && name.consume_back(".pb") && !name.getAsInteger(10, index) && index >= inputCount)
      return makeError("there is input_{}.pb, but the model has {} input{}", index, inputCount, inputCount == 1 ? "" : "s");
  }
  if (error)
    return makeError("cannot read the folder '{}': {}", folder, error.message());
  return llvm::Error::success();
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
    return makeError("output '{}' cannot be written: its type is {}", info.name, dlcrt_dtype_name(view.dtype));
  const char *data = static_cast<const char *>(view.data) + view.byte_offset;
  if (bytes != 0)
    tensor.bytes.assign(data, data + bytes);
  return tensor;
}

static llvm::Error runModule(const Invocation &invocation, dlcrt_module *module, uint32_t threads, std::optional<uint64_t> seed) {
  std::string subject = subjectOf(invocation.inputs.front());
  RuntimeError error;
  auto options = sized<dlcrt_instance_options>();
  PoolHandle pool;
  if (threads > 1) {
    pool.reset(dlcrt_pool_create(threads));
    if (!pool)
      return makeError("not enough memory for the threads");
    options.workers = dlcrt_pool_threads(pool.get());
    options.parallel_for = dlcrt_pool_parallel_for;
    options.parallel_ctx = pool.get();
  }
  std::string variant;
  if (invocation.has(OPT_target)) {
    llvm::Expected<Target> target = parseTarget(invocation.value(OPT_target));
    if (!target)
      return target.takeError();
    variant = target->name;
    options.variant = variant.c_str();
  }
  dlcrt_instance *created = nullptr;
  if (dlcrt_status status = dlcrt_instance_create(module, &options, &created, &error))
    return toError(status, error, subject);
  InstanceHandle instance(created);
  uint32_t function = dlcrt_instance_function(created);
  auto info = sized<dlcrt_function_info>();
  if (dlcrt_status status = dlcrt_module_function(module, function, &info, &error))
    return toError(status, error, subject);
  if (!seed)
    if (llvm::Error failed = refuseStrayInputs(invocation.value(OPT_inputs), info.input_count))
      return failed;

  std::optional<Random> random;
  if (seed)
    random.emplace(*seed);
  // The instance reads them in place.
  std::vector<HostTensor> inputs(info.input_count);
  std::vector<std::vector<dlcrt_string>> strings(info.input_count);
  static char nothing = 0; // an empty tensor still has an address
  llvm::Error failed = llvm::Error::success();
  for (uint32_t i = 0; i < info.input_count; ++i) {
    auto value = sized<dlcrt_value_info>();
    if (dlcrt_status status = dlcrt_module_input(module, function, i, &value, &error))
      return llvm::joinErrors(std::move(failed), toError(status, error, subject));
    llvm::Expected<std::optional<HostTensor>> tensor = makeInput(invocation, module, function, i, value, random ? &*random : nullptr);
    if (!tensor) {
      failed = llvm::joinErrors(std::move(failed), tensor.takeError());
      continue;
    }
    if (!*tensor)
      continue;
    inputs[i] = std::move(**tensor);
    HostTensor &input = inputs[i];
    auto view = sized<dlcrt_tensor>();
    view.dtype = input.dtype;
    view.rank = static_cast<uint32_t>(input.dims.size());
    view.dims = input.dims.data();
    view.data = input.bytes.data();
    view.capacity = input.bytes.size();
    if (input.dtype == DLCRT_DTYPE_STRING) {
      for (const std::string &text : input.strings)
        strings[i].push_back({text.data(), text.size()});
      view.data = strings[i].data();
      view.capacity = strings[i].size() * sizeof(dlcrt_string);
    }
    if (!view.data)
      view.data = &nothing;
    if (dlcrt_status status = dlcrt_instance_bind_input(created, i, &view, &error))
      failed = llvm::joinErrors(std::move(failed), toError(status, error, subject));
  }
  if (failed)
    return failed;
  if (dlcrt_status status = dlcrt_instance_run(created, nullptr, &error))
    return toError(status, error, subject);
  if (invocation.has(OPT_verbose)) {
    auto taken = sized<dlcrt_variant_info>();
    if (dlcrt_module_variant(module, dlcrt_instance_variant(created), &taken, &error) == DLCRT_OK)
      invocation.io.err << fmt::format("ran variant {} on {} thread{}\n", taken.target, threads, threads == 1 ? "" : "s");
  }

  std::string folder = invocation.value(OPT_outputs);
  if (folder.empty())
    return llvm::Error::success();
  if (llvm::Error failed = makeFolder(folder))
    return failed;
  for (uint32_t i = 0; i < info.output_count; ++i) {
    llvm::Expected<HostTensor> output = readOutput(module, created, function, i);
    if (!output)
      return output.takeError();
    if (llvm::Error unwritten = writeTensor(folder, "output", i, *output, invocation.value(OPT_format) == "npy"))
      return unwritten;
  }
  return llvm::Error::success();
}

int runRun(const Invocation &invocation) {
  if (invocation.inputs.size() != 1)
    return invocation.usage("say which model to run: dlc run MODEL.onnx --inputs DIR --outputs DIR");
  if (invocation.has(OPT_inputs) == invocation.has(OPT_random))
    return invocation.usage("give the inputs' folder with --inputs DIR, or a seed with --random SEED");
  if (invocation.values(OPT_target).size() > 1 || llvm::StringRef(invocation.value(OPT_target)).contains(','))
    return invocation.usage("a run has one --target");
  std::string format = invocation.value(OPT_format);
  if (!format.empty() && format != "pb" && format != "npy")
    return invocation.usage("--format takes pb or npy, not '" + format + "'");
  llvm::Expected<uint64_t> seed = invocation.number(OPT_random, 0, 0, UINT64_MAX);
  if (!seed)
    return invocation.fail(seed.takeError(), kExitUsage);
  llvm::Expected<uint64_t> threads = invocation.number(OPT_threads, dlcrt_pool_available_threads(), 1, 4096);
  if (!threads)
    return invocation.fail(threads.takeError(), kExitUsage);

  const std::string &model = invocation.inputs.front();
  Loaded loaded;
  if (llvm::sys::path::extension(model) == ".dlcm") {
    for (OptionId flag : {OPT_dim, OPT_shape, OPT_precision, OPT_jobs})
      if (invocation.has(flag))
        return invocation.usage("--dim, --shape, --precision and --jobs are for a model that is compiled; this is a module");
    RuntimeError error;
    dlcrt_module *module = nullptr;
    std::string name = subjectOf(model);
    auto options = sized<dlcrt_module_options>();
    options.name = name.c_str();
    if (dlcrt_status status = dlcrt_module_open_file(model.c_str(), &options, &module, &error))
      return invocation.fail(toError(status, error, name));
    loaded.module.reset(module);
  } else if (std::optional<int> exit = compileHere(invocation, loaded)) {
    return *exit;
  }
  llvm::Error failed = runModule(invocation, loaded.module.get(), static_cast<uint32_t>(*threads),
                                 invocation.has(OPT_random) ? std::optional(*seed) : std::nullopt);
  return failed ? invocation.fail(std::move(failed)) : kExitOk;
}

} // namespace dlc
