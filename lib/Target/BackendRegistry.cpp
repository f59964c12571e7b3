// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Target/BackendRegistry.h"

namespace dlc {

Backend::~Backend() = default;
BackendRegistry::BackendRegistry() = default;
BackendRegistry::~BackendRegistry() = default;
BackendRegistry::BackendRegistry(BackendRegistry &&) = default;

void BackendRegistry::add(std::unique_ptr<Backend> backend) { backends.push_back(std::move(backend)); }

const Backend *BackendRegistry::find(TargetKind kind) const {
  for (const auto &backend : backends)
    if (backend->kind() == kind)
      return backend.get();
  return nullptr;
}

} // namespace dlc
