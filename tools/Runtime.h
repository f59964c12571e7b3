// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The runtime's handles with owners, and its errors as llvm::Error. The runtime itself is used as any application would.

#ifndef DLC_TOOLS_RUNTIME_H
#define DLC_TOOLS_RUNTIME_H

#include "dlc/Support/Format.h"
#include "dlcrt/runtime.h"
#include <memory>

namespace dlc {

struct RuntimeError : dlcrt_error {
  RuntimeError() : dlcrt_error{} { struct_size = sizeof(dlcrt_error); }
};

/// The error of a call that returned `status`; `subject` may be empty.
inline llvm::Error toError(dlcrt_status status, const dlcrt_error &error, llvm::StringRef subject) {
  if (status == DLCRT_OK)
    return llvm::Error::success();
  llvm::StringRef message(error.message);
  if (subject.empty() || message.starts_with(subject))
    return makeError("{}", message);
  return makeError("{}: {}", subject, message);
}

struct CloseModule {
  void operator()(dlcrt_module *module) const { dlcrt_module_close(module); }
};
struct DestroyInstance {
  void operator()(dlcrt_instance *instance) const { dlcrt_instance_destroy(instance); }
};
struct DestroyState {
  void operator()(dlcrt_state *state) const { dlcrt_state_destroy(state); }
};
struct DestroyPool {
  void operator()(dlcrt_pool *pool) const { dlcrt_pool_destroy(pool); }
};
using ModuleHandle = std::unique_ptr<dlcrt_module, CloseModule>;
using InstanceHandle = std::unique_ptr<dlcrt_instance, DestroyInstance>;
using StateHandle = std::unique_ptr<dlcrt_state, DestroyState>;
using PoolHandle = std::unique_ptr<dlcrt_pool, DestroyPool>;

/// A struct of the API, zero but for its size.
template <typename Struct> Struct sized() {
  Struct value = {};
  value.struct_size = sizeof(Struct);
  return value;
}

/// The text that a function with snprintf's manners writes.
template <typename Function> std::string textOf(Function function) {
  std::string text(function(static_cast<char *>(nullptr), size_t(0)), '\0');
  function(text.data(), text.size() + 1);
  return text;
}

} // namespace dlc

#endif
