// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interpreter: runs each function of what might be a module, twice, with small dims of two sizes, which the last byte chooses. Launches go to
// FuzzDevice.cpp.
#include "FuzzModule.h"

#include <algorithm>
#include <time.h>

using namespace dlcrt::fuzz;

namespace {

constexpr uint64_t mostBytes = 8 << 20, runNs = 200000000;

template <typename T> T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

uint64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

/// Binds memory of its own to every input; false where that cannot be.
bool bindInputs(const dlcrt_module *module, uint32_t f, const dlcrt_function_info &function, dlcrt_instance *instance, uint8_t seed,
                std::vector<std::vector<char>> &memory) {
  auto error = sized<dlcrt_error>();
  if (function.symbol_count > 256 || function.input_count > 64)
    return false;
  std::vector<int64_t> symbols;
  for (uint32_t s = 0; s < function.symbol_count; ++s) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (dlcrt_module_symbol(module, f, s, &symbol, &error) != DLCRT_OK)
      return false;
    int64_t divisor = std::max<int64_t>(symbol.divisor, 1), value = 1 + (seed >> (s % 4 * 2)) % 4;
    symbols.push_back(std::clamp<int64_t>(divisor < 64 ? value * divisor : value, symbol.min, std::max(symbol.min, std::min<int64_t>(symbol.max, 64))));
  }
  memory.resize(function.input_count);
  for (uint32_t i = 0; i < function.input_count; ++i) {
    auto value = sized<dlcrt_value_info>();
    if (dlcrt_module_input(module, f, i, &value, &error) != DLCRT_OK)
      return false;
    std::vector<int64_t> dims(value.rank);
    uint64_t bytes = 0;
    if (dlcrt_module_value_dims(module, f, DLCRT_INPUT, i, symbols.data(), uint32_t(symbols.size()), dims.data(), &bytes, &error) != DLCRT_OK ||
        bytes > mostBytes)
      return false;
    memory[i].assign(bytes, char(seed));
    auto tensor = sized<dlcrt_tensor>();
    tensor.data = memory[i].data();
    tensor.dtype = value.dtype;
    tensor.rank = value.rank;
    tensor.dims = dims.data();
    tensor.device_kind = DLCRT_MEMORY_CPU;
    tensor.capacity = bytes;
    dlcrt_instance_bind_input(instance, i, &tensor, &error);
  }
  return true;
}

dlcrt_state *makeState(dlcrt_module *module, uint32_t symbolCount) {
  auto error = sized<dlcrt_error>();
  std::vector<const char *> names;
  std::vector<int64_t> values;
  for (uint32_t s = 1; s < symbolCount && s < 64; ++s) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (dlcrt_module_state_symbol(module, s, &symbol, &error) != DLCRT_OK)
      return nullptr;
    names.push_back(symbol.name);
    values.push_back(std::clamp<int64_t>(2, symbol.min, std::max<int64_t>(symbol.min, 4)));
  }
  auto options = sized<dlcrt_state_options>();
  options.dim_count = uint32_t(names.size());
  options.dim_names = names.data();
  options.dim_values = values.data();
  options.capacity = 8;
  dlcrt_state *state = nullptr;
  return dlcrt_state_create(module, &options, &state, &error) == DLCRT_OK ? state : nullptr;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  if (bytes == 0)
    return 0;
  std::vector<uint8_t> mended = repaired(data, bytes - 1);
  dlcrt_module *module = open(mended);
  if (!module)
    return 0;
  auto error = sized<dlcrt_error>();
  auto info = sized<dlcrt_module_info>();
  dlcrt_module_get_info(module, &info, &error);
  dlcrt_state *state = info.state_count ? makeState(module, info.state_symbol_count) : nullptr;
  for (uint32_t f = 0; f < info.function_count && f < 4; ++f) {
    auto function = sized<dlcrt_function_info>();
    if (dlcrt_module_function(module, f, &function, &error) != DLCRT_OK)
      continue;
    auto options = sized<dlcrt_instance_options>();
    options.workers = 1;
    options.function = function.name;
    options.arena_limit = mostBytes;
    dlcrt_instance *instance = nullptr;
    if (dlcrt_instance_create(module, &options, &instance, &error) != DLCRT_OK)
      continue;
    if (function.state_count && state)
      dlcrt_instance_set_state(instance, state, &error);
    std::vector<std::vector<char>> memory;
    for (uint8_t seed : {data[bytes - 1], uint8_t(data[bytes - 1] ^ 0x5a)}) {
      if (!bindInputs(module, f, function, instance, seed, memory))
        break;
      auto run = sized<dlcrt_run_options>();
      run.deadline_ns = nowNs() + runNs; // plans may loop
      if (dlcrt_instance_run(instance, &run, &error) != DLCRT_OK)
        continue;
      for (uint32_t o = 0; o < function.output_count && o < 64; ++o) {
        auto tensor = sized<dlcrt_tensor>();
        if (dlcrt_instance_output(instance, o, &tensor, &error) == DLCRT_OK && tensor.data && tensor.capacity)
          static_cast<volatile char *>(tensor.data)[tensor.capacity - 1];
      }
    }
    dlcrt_instance_destroy(instance);
  }
  dlcrt_state_destroy(state);
  dlcrt_module_close(module);
  return 0;
}
