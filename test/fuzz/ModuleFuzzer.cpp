// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loader: opens what might be a module and asks for all that it says of itself. No code of it is run.
#include "FuzzModule.h"

using namespace dlcrt::fuzz;

static void askForAll(const dlcrt_module *module) {
  dlcrt_error error = {};
  error.struct_size = sizeof(error);
  dlcrt_module_info info = {};
  info.struct_size = sizeof(info);
  dlcrt_module_get_info(module, &info, &error);
  char text[256];
  for (uint32_t f = 0; f < info.function_count && f < 64; ++f) {
    dlcrt_function_info function = {};
    function.struct_size = sizeof(function);
    if (dlcrt_module_function(module, f, &function, &error) != DLCRT_OK)
      continue;
    dlcrt_module_find_function(module, function.name);
    for (uint32_t s = 0; s < function.symbol_count && s < 64; ++s) {
      dlcrt_symbol_info symbol = {};
      symbol.struct_size = sizeof(symbol);
      dlcrt_module_symbol(module, f, s, &symbol, &error);
    }
    std::vector<int64_t> symbols(function.symbol_count < 4096 ? function.symbol_count : 4096, 3);
    for (uint32_t direction : {DLCRT_INPUT, DLCRT_OUTPUT}) {
      uint32_t count = direction == DLCRT_INPUT ? function.input_count : function.output_count;
      for (uint32_t v = 0; v < count && v < 64; ++v) {
        dlcrt_value_info value = {};
        value.struct_size = sizeof(value);
        auto ask = direction == DLCRT_INPUT ? dlcrt_module_input : dlcrt_module_output;
        if (ask(module, f, v, &value, &error) != DLCRT_OK)
          continue;
        for (uint32_t d = 0; d < value.rank; ++d) {
          dlcrt_dim_info dim = {};
          dim.struct_size = sizeof(dim);
          dlcrt_module_dim(module, f, direction, v, d, &dim, &error);
          dlcrt_module_dim_text(module, f, direction, v, d, text, sizeof(text));
        }
        std::vector<int64_t> dims(value.rank);
        uint64_t bytes = 0;
        dlcrt_module_value_dims(module, f, direction, v, symbols.data(), uint32_t(symbols.size()), dims.data(), &bytes, &error);
        dlcrt_tensor tensor = {};
        tensor.struct_size = sizeof(tensor);
        if (direction == DLCRT_INPUT)
          dlcrt_module_input_default(module, f, v, &tensor, dims.data(), &error);
      }
    }
  }
  for (uint32_t s = 0; s < info.state_count && s < 64; ++s) {
    dlcrt_state_info state = {};
    state.struct_size = sizeof(state);
    if (dlcrt_module_state(module, s, &state, &error) == DLCRT_OK)
      for (uint32_t d = 0; d < state.rank; ++d)
        dlcrt_module_state_dim_text(module, s, d, text, sizeof(text));
  }
  dlcrt_module_verify(module, &error);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  // As it is, which mostly ends at the hashes, and with the hashes that it should have.
  std::vector<uint8_t> plain(data, data + bytes), mended = repaired(data, bytes);
  dlcrt_module_close(open(plain));
  if (dlcrt_module *module = open(mended)) {
    askForAll(module);
    dlcrt_module_close(module);
  }
  return 0;
}
