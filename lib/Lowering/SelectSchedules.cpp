// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Launches.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Lowering/Passes.h"

using namespace mlir;

namespace dlc {
namespace {

class SelectSchedules : public PassWrapper<SelectSchedules, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SelectSchedules)
  explicit SelectSchedules(const BackendRegistry &backends) : backends(&backends) {}
  StringRef getArgument() const override { return "select-schedules"; }
  StringRef getDescription() const override { return "Gives each kernel a schedule, and each launch its number of tiles"; }

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Target> target = targetOfVariant(module);
    const Backend *backend = succeeded(target) ? backendOfVariant(module, *backends, *target) : nullptr;
    if (!backend)
      return signalPassFailure();
    SymbolTable symbols(module);
    WalkResult result = module.walk([&](plan::LaunchOp launch) {
      auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
      if (!kernel)
        return launch.emitError() << "no kernel '" << launch.getKernel() << "'", WalkResult::interrupt();
      if (!kernel.getSchedule())
        kernel.setScheduleAttr(backend->defaultSchedule(kernel, sizesOf(launch), *target));
      return countTiles(launch, kernel.getScheduleAttr()) ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static SmallVector<std::optional<int64_t>> sizesOf(plan::LaunchOp launch) {
    SmallVector<std::optional<int64_t>> sizes;
    for (auto dim : launch.getDomain().getAsRange<DimExpr>())
      sizes.push_back(dim.getConstant());
    return sizes;
  }

  static bool countTiles(plan::LaunchOp launch, plan::ScheduleAttr schedule) {
    auto domain = llvm::to_vector(launch.getDomain().getAsRange<DimExpr>());
    ArrayRef<int64_t> sizes = schedule.getTiles();
    if (sizes.size() > domain.size())
      return launch.emitError() << "the schedule cuts " << sizes.size() << " dims of a domain of " << domain.size(), false;
    DimExpr tiles = constantDim(launch.getContext(), 1);
    for (auto [size, dim] : llvm::zip(sizes, domain))
      if (size > 0)
        tiles = mulDims(tiles, ceilDivDims(dim, constantDim(launch.getContext(), size)));
    if (!tiles)
      return launch.emitError() << "the number of tiles does not fit 64 bits", false;
    launch.setTilesAttr(tiles);
    return true;
  }

  const BackendRegistry *backends;
};

} // namespace

std::unique_ptr<Pass> createSelectSchedules(const BackendRegistry &backends) { return std::make_unique<SelectSchedules>(backends); }

} // namespace dlc
