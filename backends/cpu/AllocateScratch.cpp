// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// allocate-scratch: gives every memref.alloc a place in the worker's scratch memory, which becomes the function's last argument,
// memref<?xi8>. A size that depends on a dim needs an upper bound that is known now.

#include "Passes.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// The most bytes an allocation can need, or nothing.
std::optional<int64_t> boundBytes(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (llvm::is_contained(type.getShape(), 0))
    return 0;
  int64_t bytes = std::max(type.getElementTypeBitWidth() / 8, 1u);
  unsigned dynamic = 0;
  for (int64_t size : type.getShape()) {
    if (ShapedType::isDynamic(size)) {
      auto bound = ValueBoundsConstraintSet::computeConstantBound(presburger::BoundType::UB, Value(alloc.getDynamicSizes()[dynamic++]),
                                                                  nullptr, /*closedUB=*/true);
      if (failed(bound))
        return std::nullopt;
      size = std::max<int64_t>(*bound, 0);
    }
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > (int64_t(1) << 40))
      return std::nullopt;
  }
  return bytes;
}

struct AllocateScratch : PassWrapper<AllocateScratch, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AllocateScratch)
  StringRef getArgument() const final { return "allocate-scratch"; }
  StringRef getDescription() const final { return "Place allocations in the worker's scratch memory"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<memref::MemRefDialect, arith::ArithDialect>(); }

  LogicalResult allocate(func::FuncOp func) {
    OpBuilder b(func.getContext());
    Type scratchType = MemRefType::get(ShapedType::kDynamic, b.getI8Type());
    unsigned number = func.getNumArguments();
    if (failed(func.insertArgument(number, scratchType, {}, func.getLoc())))
      return failure();
    Value scratch = func.getArgument(number);

    // An allocation has one place for its whole life, so none may still be used when it is made the next time.
    WalkResult walked = func.walk([&](scf::ForOp loop) {
      for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues()))
        if (isa<BaseMemRefType>(argument.getType()) && yielded != argument && loop->isAncestor(yielded.getParentBlock()->getParentOp())) {
          loop.emitError("a buffer changes place from one iteration to the next");
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();

    uint64_t used = 0;
    SmallVector<memref::AllocOp> allocs;
    func.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    for (memref::AllocOp alloc : allocs) {
      auto bytes = boundBytes(alloc);
      if (!bytes)
        return alloc.emitError("needs ") << alloc.getType() << " of scratch memory, whose size has no bound that is known at compile time";
      b.setInsertionPoint(alloc);
      Value offset = arith::ConstantIndexOp::create(b, alloc.getLoc(), used);
      Value view = memref::ViewOp::create(b, alloc.getLoc(), alloc.getType(), scratch, offset, alloc.getDynamicSizes());
      alloc.replaceAllUsesWith(view);
      alloc.erase();
      used += llvm::alignTo(*bytes, DLCRT_BUFFER_ALIGNMENT);
    }
    func.walk([](memref::DeallocOp op) { op.erase(); });
    func->setAttr(kScratchAttr, b.getI64IntegerAttr(used));
    return success();
  }

  void runOnOperation() final {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (failed(allocate(func)))
        return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createAllocateScratchPass() { return std::make_unique<AllocateScratch>(); }

} // namespace dlc::cpu
