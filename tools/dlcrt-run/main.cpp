/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// dlcrt-run: runs a module with nothing but the runtime. Exit status: 0 done; 1 what the user can mend; 2 a wrong
// command line.
#include "Npy.h"

#include "dlcrt/dlcrt.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

using namespace dlcrt_run;

namespace {

const char usage[] =
    "usage: dlcrt-run MODULE.dlcm [options]\n"
    "\n"
    "Prints what the module computes; with --inputs or --random runs it.\n"
    "\n"
    "  --inputs DIR      read each input from DIR/NAME.npy\n"
    "  --outputs DIR     write each output to DIR/NAME.npy\n"
    "  --random SEED     make the inputs that --inputs does not give, from the signature\n"
    "  --dim NAME=N      value of a dimension for --random (else the smallest that is allowed, at least 1)\n"
    "  --function NAME   the function to run (else the only one, or 'main')\n"
    "  --target T        take only variants for this target, e.g. cpu:x86-64-v2\n"
    "  --threads N       threads, the main one included; 0 = as many as this process may use (default 1)\n"
    "  --repeat N        run N times and report the times\n"
    "  --state-capacity N  room in the state of a function that works on one (default: 1024 more than its length)\n"
    "  --state-length N  its length before each run, random numbers with --random (default: 0, and runs make it "
    "longer)\n"
    "  --trace           report each launch of the last run\n"
    "  --verify          check the constants' hashes first\n"
    "  --quiet           no report\n"
    "  --version, --help\n"
    "\n"
    "example: dlcrt-run model.dlcm --random 1 --dim batch=4 --threads 0 --repeat 100\n";

struct CommandLine {
  const char *module = nullptr, *inputs = nullptr, *outputs = nullptr, *function = nullptr, *target = nullptr;
  bool random = false, trace = false, verify = false, quiet = false;
  uint64_t seed = 0, threads = 1, repeat = 1;
  bool hasCapacity = false, hasLength = false;
  uint64_t capacity = 0, length = 0; // of the state
  std::vector<std::pair<std::string, int64_t>> dims;
};

int failUser(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return 1;
}

int failUsage(const std::string &message) {
  std::fprintf(stderr, "error: %s\n(dlcrt-run --help says what there is)\n", message.c_str());
  return 2;
}

bool parseNumber(const char *text, uint64_t most, uint64_t &value) {
  char *end;
  errno = 0;
  value = std::strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 && errno == 0 && value <= most;
}

/// 0, or the exit status with which to end; -1 = end well.
int parse(int argc, char **argv, CommandLine &line) {
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    const char *given = nullptr; // "--option=value" or "--option value"
    if (size_t equals = option.find('='); option.compare(0, 2, "--") == 0 && equals != std::string::npos) {
      given = argv[i] + equals + 1;
      option.resize(equals);
    }
    auto is = [&](const char *name) { return option == name && !given; };
    if (is("--help") || is("-h")) {
      std::fputs(usage, stdout);
      return -1;
    }
    if (is("--version")) {
      std::printf("dlcrt-run %s\n", dlcrt_version_string());
      return -1;
    }
    if (is("--trace") || is("--verify") || is("--quiet")) {
      (option == "--trace" ? line.trace : option == "--verify" ? line.verify : line.quiet) = true;
      continue;
    }
    if (option[0] != '-') {
      if (line.module)
        return failUsage("more than one module: '" + std::string(line.module) + "' and '" + option + "'");
      line.module = argv[i];
      continue;
    }
    static const char *const withValue[] = {"--inputs",         "--outputs",     "--random",  "--dim",
                                            "--function",       "--target",      "--threads", "--repeat",
                                            "--state-capacity", "--state-length"};
    if (std::find(std::begin(withValue), std::end(withValue), option) == std::end(withValue))
      return failUsage("unknown option '" + option + "'");
    if (!given) {
      if (++i == argc)
        return failUsage("'" + option + "' needs a value");
      given = argv[i];
    }
    bool ok = true;
    if (option == "--inputs")
      line.inputs = given;
    else if (option == "--outputs")
      line.outputs = given;
    else if (option == "--function")
      line.function = given;
    else if (option == "--target")
      line.target = given;
    else if (option == "--random")
      line.random = ok = parseNumber(given, UINT64_MAX, line.seed);
    else if (option == "--threads")
      ok = parseNumber(given, 4096, line.threads);
    else if (option == "--repeat")
      ok = parseNumber(given, 1000000000, line.repeat) && line.repeat > 0;
    else if (option == "--state-capacity")
      line.hasCapacity = ok = parseNumber(given, INT32_MAX, line.capacity);
    else if (option == "--state-length")
      line.hasLength = ok = parseNumber(given, INT32_MAX, line.length);
    else { // --dim
      const char *equals = std::strchr(given, '=');
      uint64_t value = 0;
      ok = equals && equals != given && parseNumber(equals + 1, INT64_MAX, value);
      if (ok) {
        std::string name(given, equals);
        for (const auto &[other, before] : line.dims)
          if (other == name && before != int64_t(value))
            return failUsage("--dim " + name + ": it is given twice, with different values");
        line.dims.emplace_back(std::move(name), int64_t(value));
      }
    }
    if (!ok)
      return failUsage("'" + std::string(given) + "' is no value for '" + option + "'");
  }
  if (!line.module)
    return failUsage("no module given");
  return 0;
}

template <typename T> T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

template <typename Write> std::string textOf(Write write) {
  std::string text(write(nullptr, size_t(0)) + 1, 0);
  write(text.data(), text.size());
  text.pop_back();
  return text;
}

/// SplitMix64: the same inputs for the same seed on every machine.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  double uniform() { return double(next() >> 11) * 0x1p-53; } // [0, 1)
};

/// Bits of a float of the given format nearest towards zero; small normal numbers only.
uint64_t smallFloat(double value, unsigned exponentBits, unsigned mantissaBits) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  uint64_t sign = bits >> 63, mantissa = bits >> (52 - mantissaBits) & ((uint64_t(1) << mantissaBits) - 1);
  int64_t exponent = int64_t(bits >> 52 & 0x7ff) - 1023 + ((1 << (exponentBits - 1)) - 1);
  if (exponent <= 0)
    return sign << (exponentBits + mantissaBits);
  return sign << (exponentBits + mantissaBits) | uint64_t(exponent) << mantissaBits | mantissa;
}

/// Floats in [-1, 1), integers in [0, 8), bools.
void fillRandom(Array &array, Random &random) {
  auto write = [&](auto make) {
    for (size_t i = 0; i + sizeof(make()) <= array.bytes.size(); i += sizeof(make())) {
      auto value = make();
      std::memcpy(&array.bytes[i], &value, sizeof(value));
    }
  };
  auto real = [&] { return 2 * random.uniform() - 1; };
  auto integer = [&] { return random.next() >> 61; };
  switch (array.dtype) {
  case DLCRT_DTYPE_FLOAT32:
  case DLCRT_DTYPE_COMPLEX64:
    return write([&] { return float(real()); });
  case DLCRT_DTYPE_FLOAT64:
  case DLCRT_DTYPE_COMPLEX128:
    return write([&] { return real(); });
  case DLCRT_DTYPE_FLOAT16:
    return write([&] { return uint16_t(smallFloat(real(), 5, 10)); });
  case DLCRT_DTYPE_BFLOAT16:
    return write([&] { return uint16_t(smallFloat(real(), 8, 7)); });
  case DLCRT_DTYPE_BOOL:
    return write([&] { return uint8_t(random.next() >> 63); });
  case DLCRT_DTYPE_INT16:
  case DLCRT_DTYPE_UINT16:
    return write([&] { return uint16_t(integer()); });
  case DLCRT_DTYPE_INT32:
  case DLCRT_DTYPE_UINT32:
    return write([&] { return uint32_t(integer()); });
  case DLCRT_DTYPE_INT64:
  case DLCRT_DTYPE_UINT64:
    return write([&] { return uint64_t(integer()); });
  case DLCRT_DTYPE_INT8:
  case DLCRT_DTYPE_UINT8:
    return write([&] { return uint8_t(integer()); });
  default: // packed or 8-bit floats: any bits below those of infinities and NaNs
    return write([&] { return uint8_t(random.next() & 0x33); });
  }
}

/// A file name of a value's name, which may be a path.
std::string fileOf(const char *folder, const char *name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '_');
  return std::string(folder) + "/" + file + ".npy";
}

class Runner {
public:
  explicit Runner(const CommandLine &line) : line(line), pool(nullptr) {}
  ~Runner() {
    instance = dlcrt::Instance(); // before the pool that it runs on
    dlcrt_pool_destroy(pool);
  }
  int run();

private:
  int fail() { return failUser(error.message()); }
  void describe();
  void describeValues(uint32_t direction, uint32_t count);
  void describeStates();
  int bindInputs();
  int readInput(uint32_t index, const dlcrt_value_info &info, bool &found);
  int bindRandom();
  void noteInputDims();
  int64_t capacity() const { return int64_t(line.hasCapacity ? line.capacity : line.length + 1024); }
  int makeState();
  int fillState();
  int execute();
  int writeOutputs();

  const CommandLine &line;
  dlcrt::Error error;
  dlcrt::Module module;
  dlcrt::State state;
  dlcrt::Instance instance;
  dlcrt_pool *pool;
  uint32_t function = 0;
  dlcrt_function_info functionInfo = {};
  std::vector<Array> inputs; // dtype 0: stays unbound
  std::vector<bool> given;   // by a file
  std::vector<int64_t> symbols; // the function's, as far as inputs and options say
  double loadMs = 0;
};

double msSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

void Runner::describeValues(uint32_t direction, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    auto info = sized<dlcrt_value_info>();
    (direction == DLCRT_INPUT ? dlcrt_module_input : dlcrt_module_output)(module.c(), function, i, &info, nullptr);
    std::string dims;
    for (uint32_t d = 0; d < info.rank; ++d)
      dims += (d ? ", " : "") + textOf([&](char *text, size_t room) {
                return dlcrt_module_dim_text(module.c(), function, direction, i, d, text, room);
              });
    std::printf("  %s %s: %s[%s]%s%s\n", direction == DLCRT_INPUT ? "input" : "output", info.name,
                dlcrt_dtype_name(info.dtype), dims.c_str(), info.flags & DLCRT_INFO_OPTIONAL ? ", optional" : "",
                info.flags & DLCRT_INFO_DEFAULT ? ", has a default" : "");
  }
}

void Runner::describeStates() {
  for (uint32_t i = 0; i < module.info().state_count; ++i) {
    auto info = sized<dlcrt_state_info>();
    dlcrt_module_state(module.c(), i, &info, nullptr);
    std::string dims;
    for (uint32_t d = 0; d < info.rank; ++d)
      dims += (d ? ", " : "") + textOf([&](char *text, size_t room) {
                return dlcrt_module_state_dim_text(module.c(), i, d, text, room);
              });
    std::printf("  state %s: %s[%s]\n", info.name, dlcrt_dtype_name(info.dtype), dims.c_str());
  }
}

void Runner::describe() {
  dlcrt_module_info about = module.info();
  std::printf("%s: made by %s, %.1f MB of constants, loaded in %.2f ms\n", line.module, about.producer,
              double(about.weight_bytes) / 1e6, loadMs);
  for (uint32_t i = 0; i < about.function_count; ++i) {
    auto other = sized<dlcrt_function_info>();
    dlcrt_module_function(module.c(), i, &other, nullptr);
    if (i != function)
      std::printf("function %s (--function %s tells more)\n", other.name, other.name);
  }
  std::printf("function %s\n", functionInfo.name);
  describeValues(DLCRT_INPUT, functionInfo.input_count);
  describeValues(DLCRT_OUTPUT, functionInfo.output_count);
  if (functionInfo.state_count)
    describeStates();
  for (uint32_t i = 0; i < functionInfo.symbol_count; ++i) {
    auto info = sized<dlcrt_symbol_info>();
    dlcrt_module_symbol(module.c(), function, i, &info, nullptr);
    std::string range = info.max == INT64_MAX ? std::to_string(info.min) + " or more"
                                              : std::to_string(info.min) + " to " + std::to_string(info.max);
    std::printf("  dimension %s: %s%s\n", info.name, range.c_str(),
                info.divisor == 1 ? "" : (", a multiple of " + std::to_string(info.divisor)).c_str());
  }
  for (uint32_t i = 0; i < about.variant_count; ++i) {
    auto info = sized<dlcrt_variant_info>();
    dlcrt_module_variant(module.c(), i, &info, nullptr);
    if (info.function != function)
      continue;
    dlcrt::Error reason;
    bool supported = dlcrt_module_variant_supported(module.c(), i, reason.c()) == DLCRT_OK;
    std::string guard =
        textOf([&](char *text, size_t room) { return dlcrt_module_variant_guard_text(module.c(), i, text, room); });
    std::printf("  variant %s%s%s%s%s%s\n", info.target, guard.empty() ? "" : " for ", guard.c_str(),
                supported ? "" : " (not here: ", supported ? "" : reason.message(), supported ? "" : ")");
  }
}

int Runner::readInput(uint32_t index, const dlcrt_value_info &info, bool &found) {
  std::string path = fileOf(line.inputs, info.name);
  struct stat status;
  found = stat(path.c_str(), &status) == 0;
  if (!found)
    return 0;
  if (std::string wrong = readNpy(path, info.dtype, inputs[index]); !wrong.empty())
    return failUser(path + ": " + wrong);
  return 0;
}

int Runner::bindInputs() {
  inputs.resize(functionInfo.input_count);
  given.resize(functionInfo.input_count);
  for (uint32_t i = 0; i < functionInfo.input_count; ++i) {
    auto info = sized<dlcrt_value_info>();
    dlcrt_module_input(module.c(), function, i, &info, nullptr);
    bool found = false;
    if (line.inputs)
      if (int status = readInput(i, info, found))
        return status;
    given[i] = found;
    bool needed = !(info.flags & (DLCRT_INFO_OPTIONAL | DLCRT_INFO_DEFAULT));
    if (!found && needed && !line.random)
      return failUser(fileOf(line.inputs, info.name) + ": no such file, and input '" + info.name + "' needs one");
    if (!found && needed)
      inputs[i].dtype = info.dtype; // bindRandom makes it
  }
  symbols.assign(functionInfo.symbol_count, 1);
  noteInputDims();
  if (line.random)
    if (int status = bindRandom())
      return status;
  for (uint32_t i = 0; i < functionInfo.input_count; ++i) {
    Array &input = inputs[i];
    if (input.dtype == 0)
      continue;
    dlcrt::Tensor tensor =
        dlcrt::tensor(input.dtype, input.bytes.data(), input.dims.data(), uint32_t(input.dims.size()));
    if (!instance.bindInput(i, tensor, error))
      return fail();
  }
  return 0;
}

/// Inputs from files say how large the others, and the state, have to be.
void Runner::noteInputDims() {
  for (uint32_t i = 0; i < functionInfo.input_count; ++i)
    for (uint32_t d = 0; given[i] && d < inputs[i].dims.size(); ++d) {
      auto info = sized<dlcrt_dim_info>();
      if (dlcrt_module_dim(module.c(), function, DLCRT_INPUT, i, d, &info, nullptr) == DLCRT_OK &&
          info.kind == DLCRT_DIM_SYMBOL)
        symbols[info.symbol] = inputs[i].dims[d];
    }
}

/// The state has the inputs' dims.
int Runner::makeState() {
  if (!functionInfo.state_count) {
    if (line.hasCapacity || line.hasLength)
      return failUser("--state-capacity and --state-length: function '" + std::string(functionInfo.name) +
                      "' works on no state");
    return 0;
  }
  std::vector<const char *> names;
  std::vector<int64_t> values;
  for (uint32_t i = 1; i < module.info().state_symbol_count; ++i) {
    auto wanted = sized<dlcrt_symbol_info>();
    dlcrt_module_state_symbol(module.c(), i, &wanted, nullptr);
    names.push_back(wanted.name);
    values.push_back(std::max<int64_t>(wanted.min, 1));
    for (uint32_t s = 0; s < functionInfo.symbol_count; ++s) {
      auto own = sized<dlcrt_symbol_info>();
      dlcrt_module_symbol(module.c(), function, s, &own, nullptr);
      if (std::strcmp(own.name, wanted.name) == 0)
        values.back() = symbols[s];
    }
  }
  auto options = sized<dlcrt_state_options>();
  options.dim_count = uint32_t(names.size());
  options.dim_names = names.data();
  options.dim_values = values.data();
  options.capacity = capacity();
  state = dlcrt::State::create(module, options, error);
  if (!state || !state.setLength(int64_t(line.length), error) || !instance.setState(state, error))
    return fail();
  return line.random && line.length ? fillState() : 0;
}

int Runner::fillState() {
  Random random{line.seed};
  for (uint32_t i = 0; i < module.info().state_count; ++i) {
    auto info = sized<dlcrt_state_info>();
    dlcrt_module_state(module.c(), i, &info, nullptr);
    std::vector<int64_t> dims(info.rank), strides(info.rank);
    if (!state.view(i, dims.data(), strides.data(), error))
      return fail();
    Array array{info.dtype, dims, {}};
    array.bytes.resize(dlcrt_tensor_bytes(info.dtype, info.rank, dims.data()));
    fillRandom(array, random);
    if (!state.write(i, 0, dlcrt::tensor(info.dtype, array.bytes.data(), dims.data(), info.rank), error))
      return fail();
  }
  return 0;
}

int Runner::bindRandom() {
  symbols.resize(functionInfo.symbol_count);
  std::vector<std::string> names(functionInfo.symbol_count);
  for (uint32_t i = 0; i < functionInfo.symbol_count; ++i) {
    auto info = sized<dlcrt_symbol_info>();
    dlcrt_module_symbol(module.c(), function, i, &info, nullptr);
    names[i] = info.name;
    int64_t least = std::max<int64_t>(info.min, 1);
    symbols[i] = (least + info.divisor - 1) / info.divisor * info.divisor;
  }
  for (auto &[name, value] : line.dims) {
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return failUser("--dim " + name + ": function '" + functionInfo.name + "' has no dimension of this name");
    uint32_t symbol = uint32_t(found - names.begin());
    if (symbol == functionInfo.length_symbol || symbol == functionInfo.capacity_symbol)
      return failUser("--dim " + name + ": the state says it: --state-length or --state-capacity");
    symbols[symbol] = value;
  }
  if (functionInfo.state_count) {
    symbols[functionInfo.length_symbol] = int64_t(line.length);
    if (functionInfo.capacity_symbol != DLCRT_NO_INDEX)
      symbols[functionInfo.capacity_symbol] = capacity();
  }
  noteInputDims();
  Random random{line.seed};
  for (uint32_t i = 0; i < functionInfo.input_count; ++i) {
    if (inputs[i].dtype == 0 || given[i])
      continue;
    auto info = sized<dlcrt_value_info>();
    dlcrt_module_input(module.c(), function, i, &info, nullptr);
    uint64_t bytes = 0;
    inputs[i].dims.resize(info.rank);
    if (dlcrt_module_value_dims(module.c(), function, DLCRT_INPUT, i, symbols.data(), uint32_t(symbols.size()),
                                inputs[i].dims.data(), &bytes, error.c()) != DLCRT_OK)
      return fail();
    if (bytes > uint64_t(1) << 40)
      return failUser("input '" + std::string(info.name) + "' would have " + std::to_string(bytes) + " bytes");
    inputs[i].bytes.resize(bytes);
    fillRandom(inputs[i], random);
  }
  return 0;
}

int Runner::execute() {
  std::vector<double> times;
  dlcrt_run_options options = dlcrt::runOptions();
  for (uint64_t i = 0; i < line.repeat; ++i) {
    if (line.trace && i + 1 == line.repeat)
      options.trace = [](void *, const dlcrt_trace_event *event) {
        std::printf("%10.3f ms  %s  %s\n", double(event->end_ns - event->begin_ns) / 1e6, event->name,
                    std::string(event->node_names, std::strcspn(event->node_names, "\n")).c_str());
      };
    if (line.hasLength && !state.setLength(int64_t(line.length), error))
      return fail();
    auto begin = std::chrono::steady_clock::now();
    if (!instance.run(options, error))
      return fail();
    times.push_back(msSince(begin));
  }
  if (line.quiet)
    return 0;
  auto variant = sized<dlcrt_variant_info>();
  dlcrt_module_variant(module.c(), dlcrt_instance_variant(instance.c()), &variant, nullptr);
  dlcrt_instance_statistics memory = instance.statistics();
  std::printf("ran on %s with %u thread%s\n", variant.target, dlcrt_pool_threads(pool),
              dlcrt_pool_threads(pool) == 1 ? "" : "s");
  double first = times.front(), sum = 0;
  for (double time : times)
    sum += time;
  std::sort(times.begin(), times.end());
  std::printf("first run %.3f ms", first);
  if (times.size() > 1)
    std::printf("; %zu runs: min %.3f, median %.3f, mean %.3f, max %.3f ms", times.size(), times.front(),
                times[times.size() / 2], sum / double(times.size()), times.back());
  std::printf("\narena %.1f MB, late %.1f MB, outputs %.1f MB, scratch %.1f MB\n", double(memory.arena_bytes) / 1e6,
              double(memory.late_bytes) / 1e6, double(memory.output_bytes) / 1e6, double(memory.scratch_bytes) / 1e6);
  return 0;
}

int Runner::writeOutputs() {
  if (mkdir(line.outputs, 0777) != 0 && errno != EEXIST)
    return failUser(std::string(line.outputs) + ": cannot make this folder: " + std::strerror(errno));
  for (uint32_t i = 0; i < functionInfo.output_count; ++i) {
    auto info = sized<dlcrt_value_info>();
    dlcrt_module_output(module.c(), function, i, &info, nullptr);
    dlcrt::Tensor result = instance.output(i, error);
    if (!result)
      return fail();
    Array array{result.dtype,
                {result.dims, result.dims + result.rank},
                {result.elements<uint8_t>(), result.elements<uint8_t>() + result.capacity}};
    std::string path = fileOf(line.outputs, info.name);
    if (std::string wrong = writeNpy(path, array); !wrong.empty())
      return failUser(path + ": " + wrong);
  }
  return 0;
}

int Runner::run() {
  auto begin = std::chrono::steady_clock::now();
  module = dlcrt::Module::open(line.module, error, line.verify ? DLCRT_MODULE_VERIFY_CONSTANTS : 0);
  if (!module)
    return fail();
  loadMs = msSince(begin);
  dlcrt_instance_options options = dlcrt::instanceOptions();
  options.function = line.function;
  options.variant = line.target;
  bool runs = line.random || line.inputs;
  if (line.threads != 1 && runs) {
    pool = dlcrt_pool_create(uint32_t(line.threads));
    if (!pool)
      return failUser("cannot make a thread pool");
    options.parallel_for = dlcrt_pool_parallel_for;
    options.parallel_ctx = pool;
    options.workers = dlcrt_pool_threads(pool);
  }
  instance = dlcrt::Instance::create(module, options, error);
  if (instance)
    function = dlcrt_instance_function(instance.c());
  else if (runs || line.function || line.target)
    return fail();
  functionInfo.struct_size = sizeof(functionInfo);
  if (dlcrt_module_function(module.c(), function, &functionInfo, error.c()) != DLCRT_OK)
    return fail();
  if (!line.quiet)
    describe();
  if (!runs)
    return line.outputs ? failUsage("--outputs without --inputs or --random") : 0;
  if (int status = bindInputs())
    return status;
  if (int status = makeState())
    return status;
  if (int status = execute())
    return status;
  return line.outputs ? writeOutputs() : 0;
}

int main(int argc, char **argv) {
  CommandLine line;
  if (int status = parse(argc, argv, line))
    return status < 0 ? 0 : status;
  int status = Runner(line).run();
  // What was printed must have arrived.
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return status ? status : failUser("cannot write to standard output");
  return status;
}
