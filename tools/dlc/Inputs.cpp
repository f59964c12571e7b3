// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Inputs.h"
#include "TensorFiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

namespace dlc {

namespace {

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

/// A function's signature, as far as its inputs are concerned.
struct Signature {
  dlcrt_module *module = nullptr;
  uint32_t function = 0;
  dlcrt_function_info info = sized<dlcrt_function_info>();
  std::vector<dlcrt_value_info> inputs;
  std::vector<dlcrt_symbol_info> symbols;

  llvm::Error read(dlcrt_module *theModule, uint32_t theFunction) {
    module = theModule;
    function = theFunction;
    RuntimeError error;
    if (dlcrt_status status = dlcrt_module_function(module, function, &info, &error))
      return toError(status, error, "");
    inputs.assign(info.input_count, sized<dlcrt_value_info>());
    for (uint32_t i = 0; i < info.input_count; ++i)
      if (dlcrt_status status = dlcrt_module_input(module, function, i, &inputs[i], &error))
        return toError(status, error, "");
    symbols.assign(info.symbol_count, sized<dlcrt_symbol_info>());
    for (uint32_t i = 0; i < info.symbol_count; ++i)
      if (dlcrt_status status = dlcrt_module_symbol(module, function, i, &symbols[i], &error))
        return toError(status, error, "");
    return llvm::Error::success();
  }
};

} // namespace

static uint16_t toHalf(float value) { // round to nearest even; |value| <= 1
  return static_cast<uint16_t>(llvm::bit_cast<uint16_t>(static_cast<_Float16>(value)));
}

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

/// Names in a message.
template <typename Infos> static std::string listNames(const Infos &infos) {
  return infos.empty() ? "none" : llvm::join(llvm::map_range(infos, [](const auto &info) { return std::string(info.name); }), ", ");
}

static llvm::Error noSuchDim(llvm::StringRef name, int64_t value, const std::vector<dlcrt_symbol_info> &symbols) {
  return makeError("--dim {}={}: the module has no such open dimension; it has: {}", name, value, listNames(symbols));
}

static llvm::Error checkPromise(const dlcrt_symbol_info &symbol, int64_t value) {
  if (value < symbol.min || value > symbol.max)
    return makeError("--dim {0}={1}: '{0}' has to be {2}", symbol.name, value,
                     symbol.max == INT64_MAX ? fmt::format("at least {}", symbol.min)
                                             : fmt::format("between {} and {}", symbol.min, symbol.max));
  if (value % std::max<int64_t>(symbol.divisor, 1) != 0)
    return makeError("--dim {0}={1}: '{0}' has to be a multiple of {2}", symbol.name, value, symbol.divisor);
  return llvm::Error::success();
}

/// A value for each symbol: what --dim and --shape say, else the least that is promised, at least 1. Where there is a `state`, it decides on
/// its own symbols.
static llvm::Expected<std::vector<int64_t>> chooseSymbols(const Signature &signature, const OnnxImportOptions &dims,
                                                          std::optional<InputSet::StateSize> state) {
  std::vector<int64_t> symbols;
  for (const dlcrt_symbol_info &symbol : signature.symbols) {
    int64_t divisor = std::max<int64_t>(symbol.divisor, 1), least = std::max<int64_t>(symbol.min, 1);
    symbols.push_back(std::min(least / divisor * divisor + (least % divisor != 0 ? divisor : 0), symbol.max));
  }
  llvm::Error errors = llvm::Error::success();
  auto add = [&](llvm::Error error) { errors = llvm::joinErrors(std::move(errors), std::move(error)); };
  for (const auto &[input, shape] : dims.shapes) {
    auto found = llvm::find_if(signature.inputs, [&](const dlcrt_value_info &info) { return input == info.name; });
    if (found == signature.inputs.end()) {
      add(makeError("--shape {}: there is no such input; there are: {}", input, listNames(signature.inputs)));
      continue;
    }
    if (shape.size() != found->rank) {
      add(makeError("--shape {}: the input has {} dims, not {}", input, found->rank, shape.size()));
      continue;
    }
    for (uint32_t d = 0; d < found->rank; ++d) {
      auto dim = sized<dlcrt_dim_info>();
      RuntimeError error;
      uint32_t index = static_cast<uint32_t>(found - signature.inputs.begin());
      if (dlcrt_status status = dlcrt_module_dim(signature.module, signature.function, DLCRT_INPUT, index, d, &dim, &error))
        add(toError(status, error, ""));
      else if (shape[d] && dim.kind == DLCRT_DIM_SYMBOL)
        symbols[dim.symbol] = *shape[d];
    }
  }
  for (const auto &[name, value] : dims.fixedDims) {
    auto found = llvm::find_if(signature.symbols, [&](const dlcrt_symbol_info &info) { return name == info.name; });
    auto number = static_cast<size_t>(found - signature.symbols.begin());
    if (found == signature.symbols.end())
      add(noSuchDim(name, value, signature.symbols));
    else if (!state || signature.info.state_count == 0)
      symbols[number] = value;
    else if (number == signature.info.length_symbol || number == signature.info.capacity_symbol)
      add(makeError("--dim {}={}: the state says it: {}", name, value,
                    number == signature.info.length_symbol ? "bench --state-length N" : "--state-capacity N"));
    else
      symbols[number] = value;
  }
  if (state && signature.info.state_count != 0) {
    symbols[signature.info.length_symbol] = state->length;
    if (signature.info.capacity_symbol != DLCRT_NO_INDEX)
      symbols[signature.info.capacity_symbol] = state->capacity;
  }
  if (errors)
    return std::move(errors);
  return symbols;
}

llvm::Expected<std::vector<int64_t>> chooseSymbols(dlcrt_module *module, uint32_t function, const OnnxImportOptions &dims) {
  Signature signature;
  if (llvm::Error failed = signature.read(module, function))
    return std::move(failed);
  llvm::Error errors = llvm::Error::success();
  for (const dlcrt_symbol_info &symbol : signature.symbols)
    if (auto given = dims.fixedDims.find(symbol.name); given != dims.fixedDims.end())
      errors = llvm::joinErrors(std::move(errors), checkPromise(symbol, given->second));
  if (errors)
    return std::move(errors);
  return chooseSymbols(signature, dims, std::nullopt);
}

llvm::Expected<std::vector<OnnxImportOptions>> dimsOfFunctions(dlcrt_module *module, llvm::ArrayRef<uint32_t> functions,
                                                               const OnnxImportOptions &dims) {
  std::vector<OnnxImportOptions> own(functions.size());
  std::vector<dlcrt_symbol_info> all;
  for (auto [function, options] : llvm::zip_equal(functions, own)) {
    Signature signature;
    if (llvm::Error failed = signature.read(module, function))
      return std::move(failed);
    for (const dlcrt_symbol_info &symbol : signature.symbols) {
      if (auto given = dims.fixedDims.find(symbol.name); given != dims.fixedDims.end())
        options.fixedDims.insert(*given);
      if (llvm::none_of(all, [&](const dlcrt_symbol_info &known) { return llvm::StringRef(known.name) == symbol.name; }))
        all.push_back(symbol);
    }
  }
  llvm::Error errors = llvm::Error::success();
  for (const auto &[name, value] : dims.fixedDims)
    if (llvm::none_of(own, [&](const OnnxImportOptions &options) { return options.fixedDims.count(name) != 0; }))
      errors = llvm::joinErrors(std::move(errors), noSuchDim(name, value, all));
  if (errors)
    return std::move(errors);
  return own;
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

llvm::Error InputSet::read(llvm::StringRef folder) {
  Signature signature;
  if (llvm::Error failed = signature.read(module, dlcrt_instance_function(instance)))
    return failed;
  if (llvm::Error failed = refuseStrayInputs(folder, signature.info.input_count))
    return failed;
  tensors.assign(signature.info.input_count, std::nullopt);
  strings.assign(signature.info.input_count, {});
  llvm::Error errors = llvm::Error::success();
  for (auto [i, info] : llvm::enumerate(signature.inputs)) {
    uint32_t index = static_cast<uint32_t>(i);
    llvm::Expected<std::optional<HostTensor>> tensor = readTensor(folder, "input", index, info.name, info.dtype);
    if (!tensor) {
      errors = llvm::joinErrors(std::move(errors), tensor.takeError());
      continue;
    }
    tensors[i] = std::move(*tensor);
    if (tensors[i])
      tensors[i]->name = info.name;
    errors = llvm::joinErrors(std::move(errors), bind(index));
  }
  return errors;
}

std::optional<int64_t> InputSet::valueOf(llvm::StringRef name) const {
  uint32_t function = dlcrt_instance_function(instance);
  for (uint32_t i = 0; i < tensors.size(); ++i)
    for (uint32_t d = 0; tensors[i] && d < tensors[i]->dims.size(); ++d) {
      auto dim = sized<dlcrt_dim_info>();
      auto symbol = sized<dlcrt_symbol_info>();
      if (dlcrt_module_dim(module, function, DLCRT_INPUT, i, d, &dim, nullptr) == DLCRT_OK &&
          dim.kind == DLCRT_DIM_SYMBOL &&
          dlcrt_module_symbol(module, function, dim.symbol, &symbol, nullptr) == DLCRT_OK && name == symbol.name)
        return tensors[i]->dims[d];
    }
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (dlcrt_module_symbol(module, function, i, &symbol, nullptr) == DLCRT_OK && name == symbol.name)
      return symbols[i];
  }
  return std::nullopt;
}

llvm::Error fillState(dlcrt_module *module, dlcrt_state *state, uint64_t seed) {
  RuntimeError error;
  Random random(seed);
  auto about = sized<dlcrt_module_info>();
  if (dlcrt_status status = dlcrt_module_get_info(module, &about, &error))
    return toError(status, error, "");
  for (uint32_t i = 0; i < about.state_count; ++i) {
    auto info = sized<dlcrt_state_info>();
    if (dlcrt_status status = dlcrt_module_state(module, i, &info, &error))
      return toError(status, error, "");
    HostTensor tensor;
    tensor.name = info.name;
    tensor.dtype = info.dtype;
    tensor.dims.resize(info.rank);
    std::vector<int64_t> strides(info.rank);
    auto view = sized<dlcrt_tensor>();
    if (dlcrt_status status = dlcrt_state_view(state, i, &view, tensor.dims.data(), strides.data(), &error))
      return toError(status, error, "");
    tensor.bytes.resize(dlcrt_tensor_bytes(info.dtype, info.rank, tensor.dims.data()));
    if (llvm::Error failed = fillRandom(tensor, random))
      return failed;
    view.data = tensor.bytes.data();
    view.strides = nullptr;
    view.capacity = tensor.bytes.size();
    if (dlcrt_status status = dlcrt_state_write(state, i, 0, &view, &error))
      return toError(status, error, "");
  }
  return llvm::Error::success();
}

llvm::Error InputSet::make(uint64_t seed, const OnnxImportOptions &dims, StateSize state) {
  Signature signature;
  if (llvm::Error failed = signature.read(module, dlcrt_instance_function(instance)))
    return failed;
  llvm::Expected<std::vector<int64_t>> chosen = chooseSymbols(signature, dims, state);
  if (!chosen)
    return chosen.takeError();
  symbols = std::move(*chosen);
  tensors.assign(signature.info.input_count, std::nullopt);
  strings.assign(signature.info.input_count, {});
  Random random(seed);
  llvm::Error errors = llvm::Error::success();
  auto add = [&](llvm::Error error) { errors = llvm::joinErrors(std::move(errors), std::move(error)); };
  for (auto [i, info] : llvm::enumerate(signature.inputs)) {
    uint32_t index = static_cast<uint32_t>(i);
    HostTensor tensor;
    tensor.name = info.name;
    tensor.dtype = info.dtype;
    tensor.dims.resize(info.rank);
    uint64_t bytes = 0;
    RuntimeError error;
    if (dlcrt_status status = dlcrt_module_value_dims(module, signature.function, DLCRT_INPUT, index, symbols.data(),
                                                      static_cast<uint32_t>(symbols.size()), tensor.dims.data(), &bytes, &error)) {
      add(toError(status, error, subject));
      continue;
    }
    // A symbol that --dim, or the shape of another input, says too; a constant; an expression.
    bool agrees = true;
    if (auto shape = dims.shapes.find(tensor.name); shape != dims.shapes.end())
      for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(shape->second, tensor.dims)))
        if (auto [asked, is] = pair; asked && *asked != is) {
          add(makeError("--shape {}: dim {} of the input must be {}, not {}", tensor.name, d, is, *asked));
          agrees = false;
        }
    if (!agrees || (info.flags & (DLCRT_INFO_DEFAULT | DLCRT_INFO_OPTIONAL)))
      continue;
    if (bytes > uint64_t(1) << 40) {
      add(makeError("input '{}' is too large", tensor.name));
      continue;
    }
    tensor.bytes.resize(bytes);
    if (llvm::Error failed = fillRandom(tensor, random)) {
      add(std::move(failed));
      continue;
    }
    tensors[i] = std::move(tensor);
    add(bind(index));
  }
  return errors;
}

llvm::Error InputSet::bind(uint32_t index) {
  if (!tensors[index])
    return llvm::Error::success();
  HostTensor &input = *tensors[index];
  static char nothing = 0; // an empty tensor still has an address
  auto view = sized<dlcrt_tensor>();
  view.dtype = input.dtype;
  view.rank = static_cast<uint32_t>(input.dims.size());
  view.dims = input.dims.data();
  view.data = input.bytes.data();
  view.capacity = input.bytes.size();
  if (input.dtype == DLCRT_DTYPE_STRING) {
    for (const std::string &text : input.strings)
      strings[index].push_back({text.data(), text.size()});
    view.data = strings[index].data();
    view.capacity = strings[index].size() * sizeof(dlcrt_string);
  }
  if (!view.data)
    view.data = &nothing;
  RuntimeError error;
  return toError(dlcrt_instance_bind_input(instance, index, &view, &error), error, subject);
}

} // namespace dlc
