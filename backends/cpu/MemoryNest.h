// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What the emitters share that replace a kernel's body on tensors by loops on memory at once.

#ifndef DLC_BACKENDS_CPU_MEMORYNEST_H
#define DLC_BACKENDS_CPU_MEMORYNEST_H

#include "BodyEvaluator.h"
#include "LoopNest.h"
#include "Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace dlc::cpu {

class MemoryNest : protected LoopNest {
protected:
  MemoryNest(mlir::RewriterBase &rewriter, mlir::Location loc, mlir::func::FuncOp func) : LoopNest(rewriter, loc), func(func) {}
  ~MemoryNest() = default;

  mlir::func::ReturnOp ret() { return llvm::cast<mlir::func::ReturnOp>(func.getBody().front().getTerminator()); }
  mlir::Value destination(unsigned i = 0) {
    return func.getArgument(func->getAttrOfType<mlir::IntegerAttr>(kOperandsAttr).getInt() + i);
  }

  /// Call first: arguments become memory. Sizes have to be asked for before that.
  void enterMemory();
  /// Call last: what is left of the kernel on tensors goes.
  void leaveMemory();

  /// The size of an argument, or of a slice of one.
  mlir::OpFoldResult sizeOf(mlir::Value tensor, unsigned d);
  /// The memory of an argument, or of a slice of one.
  mlir::Value memoryOf(mlir::Value tensor);

  /// The tiles of the launch: a loop over each dim that `tiles` cuts. `from` and `counts` say what of each dim belongs to a tile; a dim that is
  /// not cut does as a whole. The code that follows goes inside.
  void enterTiles(llvm::ArrayRef<int64_t> tiles, llvm::ArrayRef<mlir::Value> extents);
  llvm::SmallVector<mlir::Value> from, counts;

  mlir::Value allocate(llvm::ArrayRef<int64_t> shape, mlir::Type element = {}) {
    return mlir::memref::AllocOp::create(rewriter, loc, mlir::MemRefType::get(shape, element ? element : mlir::Type(rewriter.getF32Type())));
  }
  void each(mlir::OpFoldResult begin, mlir::OpFoldResult end, int64_t step, llvm::function_ref<void(mlir::Value)> body) {
    range(begin, end, step, {}, [&](mlir::Value at, State) { return body(at), State(); });
  }
  mlir::OpFoldResult index(int64_t value) { return rewriter.getIndexAttr(value); }
  mlir::Value real(float value, int64_t lanes = 1) {
    return widen(rewriter, loc, mlir::arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(value)), lanes);
  }
  mlir::Value load(mlir::Value memory, mlir::ValueRange where, int64_t lanes, mlir::Value mask = {});
  void store(mlir::Value value, mlir::Value memory, mlir::ValueRange where, mlir::Value mask = {});
  /// x * y + sum, fused where the target can.
  mlir::Value multiplyAdd(mlir::Value x, mlir::Value y, mlir::Value sum);
  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddFOp::create(rewriter, loc, x, y); }
  mlir::Value multiply(mlir::Value x, mlir::Value y) { return mlir::arith::MulFOp::create(rewriter, loc, x, y); }

  mlir::func::FuncOp func;

private:
  llvm::DenseMap<mlir::Value, mlir::Value> memories;
};

/// Writes the kernels of a code module that hold one OpTy, where the emitter can.
template <typename OpTy, typename Emitter>
class EmitterPass final : public mlir::PassWrapper<EmitterPass<OpTy, Emitter>, mlir::OperationPass<mlir::ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitterPass)
  EmitterPass(llvm::StringRef argument, llvm::StringRef description) : argument(argument), description(description) {}
  llvm::StringRef getArgument() const final { return argument; }
  llvm::StringRef getDescription() const final { return description; }
  void getDependentDialects(mlir::DialectRegistry &registry) const final {
    registry.insert<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect,
                    mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  }

  void runOnOperation() final {
    mlir::ModuleOp code = this->getOperation();
    auto target = targetOf(code);
    if (failed(target))
      return this->signalPassFailure();
    mlir::IRRewriter rewriter(code.getContext());
    for (auto func : code.getOps<mlir::func::FuncOp>()) {
      auto ops = func.getBody().front().template getOps<OpTy>();
      if (ops.empty() || !llvm::hasSingleElement(ops))
        continue;
      Emitter emitter(rewriter, func, *ops.begin(), *target);
      if (emitter.canEmit())
        emitter.emit();
    }
  }

private:
  llvm::StringRef argument, description; // literals
};

} // namespace dlc::cpu

#endif
