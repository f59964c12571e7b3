// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Launches.h"

using namespace mlir;

namespace dlc {

llvm::MapVector<plan::KernelOp, SmallVector<plan::LaunchOp>> launchesByKernel(ModuleOp module, SymbolTable &symbols) {
  llvm::MapVector<plan::KernelOp, SmallVector<plan::LaunchOp>> launches;
  module.walk([&](plan::LaunchOp launch) {
    if (auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel()))
      launches[kernel].push_back(launch);
  });
  return launches;
}

FailureOr<Target> targetOfVariant(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(plan::kTargetAttr);
  if (!name)
    return module.emitError() << "the module has no attribute '" << plan::kTargetAttr << "'", failure();
  llvm::Expected<Target> target = parseTarget(name.getValue());
  if (!target)
    return module.emitError() << llvm::toString(target.takeError()), failure();
  return *target;
}

const Backend *backendOfVariant(ModuleOp module, const BackendRegistry &backends, const Target &target) {
  const Backend *backend = backends.find(target.kind);
  if (!backend)
    module.emitError() << "no backend for target '" << target.name << "'";
  return backend;
}

} // namespace dlc
