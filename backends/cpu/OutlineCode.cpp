// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// outline-code: copies the body of each kernel into a func.func of a code module.

#include "Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace dlc::cpu {

FailureOr<Target> targetOf(Operation *op) {
  for (Operation *at = op; at; at = at->getParentOp())
    if (auto name = at->getAttrOfType<StringAttr>(plan::kTargetAttr)) {
      auto target = parseTarget(name.getValue());
      if (target)
        return *target;
      return op->emitError(llvm::toString(target.takeError())), failure();
    }
  return op->emitError("no '") << plan::kTargetAttr << "' says what to compile for", failure();
}

Value sizeOfArgument(func::FuncOp func, unsigned argument, unsigned dim) {
  auto all = func->getAttrOfType<ArrayAttr>(kDimsAttr);
  if (!all || argument >= all.size())
    return {};
  int64_t scalar = cast<DenseI64ArrayAttr>(all[argument])[dim];
  return scalar < 0 ? Value() : func.getArgument(all.size() + scalar);
}

namespace {

/// plan.dims as passes may rely on it: complete, and within range.
FailureOr<ArrayAttr> checkedDims(plan::KernelOp kernel) {
  unsigned tensors = kernel.getOperandCount() + kernel.getDestinationCount();
  Block &body = kernel.getBody().front();
  auto given = kernel->getAttrOfType<ArrayAttr>(kDimsAttr);
  SmallVector<Attribute> dims;
  for (unsigned i = 0; i < tensors; ++i) {
    auto type = cast<RankedTensorType>(body.getArgument(i).getType());
    SmallVector<int64_t> scalars(type.getRank(), -1);
    if (given && i < given.size()) {
      auto list = dyn_cast<DenseI64ArrayAttr>(given[i]);
      if (!list || list.size() != type.getRank())
        return kernel.emitError() << kDimsAttr << " of argument " << i << " does not have " << type.getRank() << " entries", failure();
      llvm::copy(list.asArrayRef(), scalars.begin());
    }
    for (auto [d, scalar] : llvm::enumerate(scalars)) {
      if (!type.isDynamicDim(d))
        scalar = -1;
      else if (scalar < 0 || scalar >= int64_t(kernel.getScalarCount()))
        return kernel.emitError() << kDimsAttr << " does not say which scalar is dim " << d << " of argument " << i, failure();
    }
    dims.push_back(DenseI64ArrayAttr::get(kernel.getContext(), scalars));
  }
  return ArrayAttr::get(kernel.getContext(), dims);
}

struct OutlineCode : PassWrapper<OutlineCode, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OutlineCode)
  StringRef getArgument() const final { return "outline-code"; }
  StringRef getDescription() const final { return "Copy the body of each kernel into a function of a module of its own"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<func::FuncDialect>(); }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<StringAttr>(plan::kTargetAttr);
    if (failed(targetOf(module)))
      return signalPassFailure();
    for (plan::KernelOp kernel : llvm::make_early_inc_range(module.getOps<plan::KernelOp>())) {
      if (!kernel.hasBody())
        continue;
      auto dims = checkedDims(kernel);
      if (failed(dims))
        return signalPassFailure();
      OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
      auto code = ModuleOp::create(b, kernel.getLoc());
      code->setAttr(kCodeAttr, FlatSymbolRefAttr::get(kernel));
      code->setAttr(plan::kTargetAttr, target);

      Operation *yield = kernel.getBody().front().getTerminator();
      auto type = b.getFunctionType(kernel.getBody().getArgumentTypes(), yield->getOperandTypes());
      b.setInsertionPointToStart(code.getBody());
      auto func = func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(), type);
      func->setAttr(kOperandsAttr, kernel.getOperandCountAttr());
      func->setAttr(kDestinationsAttr, kernel.getDestinationCountAttr());
      func->setAttr(kDimsAttr, *dims);
      func->setAttr(kKindAttr, kernel.getKindAttr());
      if (kernel.getScheduleAttr())
        func->setAttr(kScheduleAttr, kernel.getScheduleAttr());
      IRMapping mapping;
      kernel.getBody().cloneInto(&func.getBody(), mapping);
      Operation *copiedYield = func.getBody().front().getTerminator();
      b.setInsertionPoint(copiedYield);
      func::ReturnOp::create(b, copiedYield->getLoc(), copiedYield->getOperands());
      copiedYield->erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createOutlineCodePass() { return std::make_unique<OutlineCode>(); }

} // namespace dlc::cpu
