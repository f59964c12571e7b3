// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/Transforms/Passes.h"

namespace dlc {
#define GEN_PASS_DEF_VERIFYPHASE
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// What must hold behind each phase, beyond what the ops' own verifiers see. Ops of dialects that this folder does not know are
/// told by their names.
class VerifyPhase : public impl::VerifyPhaseBase<VerifyPhase> {
public:
  using VerifyPhaseBase::VerifyPhaseBase;

private:
  void runOnOperation() override {
    static constexpr StringLiteral phases[] = {"import", "clean", "precision", "fuse", "plan", "schedule", "codegen", "finish"};
    auto *found = llvm::find(phases, phase);
    if (found == std::end(phases)) {
      getOperation().emitError() << "no phase '" << phase << "'";
      return signalPassFailure();
    }
    unsigned number = found - std::begin(phases);
    WalkResult result = getOperation().walk([&](Operation *op) {
      StringRef problem = problemOf(op, number);
      if (problem.empty())
        return WalkResult::advance();
      op->emitError() << "after phase " << phase << ": '" << op->getName() << "' " << problem;
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static StringRef problemOf(Operation *op, unsigned phase) {
    enum { Import, Clean, Precision, Fuse, Plan, Schedule, Codegen, Finish };
    auto dlcOp = dyn_cast<DlcOp>(op);
    StringRef name = op->getName().getStringRef();
    if (phase >= Clean && isa<DlcOp, IfOp>(op) && !llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return "has a result without dims";
    if (phase >= Clean && dlcOp && dlcOp.form() == Form::Expand)
      return "was not expanded";
    if (dlcOp && phase >= Plan)
      return "was not lowered";
    bool isInRegionOfOp = op->getParentOp() && isa<DlcOp>(op->getParentOp()); // element-wise, a part of that op
    if (phase == Fuse && dlcOp && !isa<ConstantOp>(op) && !isInRegionOfOp) {
      bool isInGroup = op->getParentOp() && isa<GroupOp>(op->getParentOp());
      bool needsGroup = dlcOp.form() != Form::Host && dlcOp.form() != Form::View;
      if (isInGroup != needsGroup && !(isInGroup && dlcOp.form() == Form::View))
        return needsGroup ? "does not stand in a group" : "stands in a group";
    }
    if (phase >= Plan && isa<func::FuncOp>(op))
      return "was not turned into a plan";
    if (phase >= Schedule && name == "plan.launch" && !op->getAttr("tiles"))
      return "has no number of tiles";
    if (phase >= Codegen && name == "plan.kernel" && (!op->getAttr("entry") || !op->getRegion(0).empty()))
      return "has no code";
    if (phase >= Finish && name == "plan.slot" && !op->getAttr("placement"))
      return "has no placement";
    return {};
  }
};

} // namespace
} // namespace dlc
