// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Inputs of a run: from a folder, or made up from the signature.

#ifndef DLC_TOOLS_DLC_INPUTS_H
#define DLC_TOOLS_DLC_INPUTS_H

#include "../Runtime.h"
#include "dlc/Frontends/Onnx.h"
#include "dlc/Frontends/OnnxTensor.h"
#include <optional>
#include <vector>

namespace dlc {

/// A value for each symbol of a function: what --dim NAME=N and --shape say, else the least that is promised, at least 1. All problems
/// at once.
llvm::Expected<std::vector<int64_t>> chooseSymbols(dlcrt_module *module, uint32_t function, const OnnxImportOptions &dims);

/// For each of the functions what --dim NAME=N says about its own symbols. A name that none of them has is an error.
llvm::Expected<std::vector<OnnxImportOptions>> dimsOfFunctions(dlcrt_module *module, llvm::ArrayRef<uint32_t> functions,
                                                               const OnnxImportOptions &dims);

/// What the inputs of one instance are bound to. An input without a tensor keeps its default.
class InputSet {
public:
  /// `subject`: how messages call the model.
  InputSet(dlcrt_module *module, dlcrt_instance *instance, llvm::StringRef subject) : module(module), instance(instance), subject(subject) {}

  /// input_0.pb, ... or NAME.npy of a folder, bound to the instance.
  llvm::Error read(llvm::StringRef folder);
  /// Floats in [-1, 1), integers from 0 to 7 (so that they can be indices and sizes), bool 0 or 1; the same on every
  /// machine. `dims` says how large they are (its fixedDims and shapes), and `state` how large a state of the function
  /// is; what is left open is as small as it may be, but at least 1.
  struct StateSize {
    int64_t length, capacity;
  };
  llvm::Error make(uint64_t seed, const OnnxImportOptions &dims, StateSize state);

  /// What the inputs, or what they were made for, say about a symbol of the function; nothing where they do not.
  std::optional<int64_t> valueOf(llvm::StringRef symbol) const;

  const std::vector<std::optional<HostTensor>> &get() const { return tensors; }

private:
  llvm::Error bind(uint32_t index);

  dlcrt_module *module;
  dlcrt_instance *instance;
  std::string subject;
  std::vector<std::optional<HostTensor>> tensors;
  std::vector<std::vector<dlcrt_string>> strings; // views of the tensors' strings
  std::vector<int64_t> symbols;                   // values of the function's, where inputs were made for some
};

/// Random numbers for the entries that are there.
llvm::Error fillState(dlcrt_module *module, dlcrt_state *state, uint64_t seed);

} // namespace dlc

#endif
