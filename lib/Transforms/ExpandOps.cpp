// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"

namespace dlc {
#define GEN_PASS_DEF_EXPANDOPS
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

class ExpandOps : public impl::ExpandOpsBase<ExpandOps> {
  void runOnOperation() override {
    // An expansion may hold ops that expand themselves; they stand before the op and are picked up from the list.
    SmallVector<DlcOp> worklist;
    getOperation().walk([&](DlcOp op) {
      if (op.form() == Form::Expand)
        worklist.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    struct Listener : RewriterBase::Listener {
      explicit Listener(SmallVectorImpl<DlcOp> &worklist) : worklist(worklist) {}
      void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
        if (auto dlcOp = dyn_cast<DlcOp>(op); dlcOp && dlcOp.form() == Form::Expand)
          worklist.push_back(dlcOp);
      }
      SmallVectorImpl<DlcOp> &worklist;
    } listener(worklist);
    rewriter.setListener(&listener);
    while (!worklist.empty()) {
      DlcOp op = worklist.pop_back_val();
      rewriter.setInsertionPoint(op);
      if (failed(op.expand(rewriter)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace dlc
