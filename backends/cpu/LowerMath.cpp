// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// lower-math: functions of the math dialect on f32 become arithmetic (dlc/Target/ApproximateMath.h), those on f64 calls through the
// kernel's import table; f16 and bf16 compute in f32. What stays is what LLVM has instructions for. Nothing may become a call by name.

#include "Passes.h"
#include "dlc/Target/ApproximateMath.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Ops that become instructions, or a handful of them.
bool isInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp, math::TruncOp, math::RoundEvenOp, math::RoundOp, math::SqrtOp,
             math::CopySignOp, math::CtPopOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::IsNaNOp, math::IsInfOp,
             math::IsFiniteOp, math::IsNormalOp, math::FmaOp>(op);
}

/// The import that computes an op on f64 ("exp") or, with an f behind, on f32.
StringRef importName(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("math.exp", "exp").Case("math.exp2", "exp2").Case("math.expm1", "expm1")
      .Case("math.log", "log").Case("math.log2", "log2").Case("math.log10", "log10").Case("math.log1p", "log1p")
      .Case("math.powf", "pow").Case("math.sin", "sin").Case("math.cos", "cos").Case("math.tan", "tan")
      .Case("math.asin", "asin").Case("math.acos", "acos").Case("math.atan", "atan").Case("math.atan2", "atan2")
      .Case("math.sinh", "sinh").Case("math.cosh", "cosh").Case("math.tanh", "tanh")
      .Case("math.asinh", "asinh").Case("math.acosh", "acosh").Case("math.atanh", "atanh")
      .Case("math.erf", "erf").Case("math.cbrt", "cbrt").Case("arith.remf", "fmod").Default("");
}

std::optional<int> importNumber(StringRef name) {
#define DLC_IMPORT_CASE(number, NAME, symbol, signature) .Case(#symbol, number)
  return llvm::StringSwitch<std::optional<int>>(name) DLCRT_FOREACH_IMPORT(DLC_IMPORT_CASE).Default(std::nullopt);
#undef DLC_IMPORT_CASE
}

/// arith.remf in a type narrower than f32, which has no import of its own.
struct WidenRemainder : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const final {
    if (getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth() >= 32)
      return failure();
    Type f32 = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      f32 = vector.clone(f32);
    Value x = arith::ExtFOp::create(rewriter, op.getLoc(), f32, op.getLhs()), y = arith::ExtFOp::create(rewriter, op.getLoc(), f32, op.getRhs());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), arith::RemFOp::create(rewriter, op.getLoc(), x, y));
    return success();
  }
};

struct LowerMath : PassWrapper<LowerMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerMath)
  StringRef getArgument() const final { return "lower-math"; }
  StringRef getDescription() const final { return "Rewrite math functions into arithmetic and calls of imports"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, vector::VectorDialect>();
  }

  /// What is neither arithmetic now nor an instruction becomes a call.
  LogicalResult callImports(func::FuncOp func, llvm::SmallSetVector<int32_t, 8> &used) {
    MLIRContext *context = &getContext();
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if ((isa<math::MathDialect>(op->getDialect()) && !isInstruction(op)) || isa<arith::RemFOp>(op))
        ops.push_back(op);
    });
    if (ops.empty())
      return success();
    OpBuilder b(context);
    Type ptr = LLVM::LLVMPointerType::get(context);
    Value imports = func.getArgument(func.getNumArguments() - 4); // scratch, imports, status, begin, end
    llvm::SmallDenseMap<int, Value> functions;
    for (Operation *op : ops) {
      Type type = getElementTypeOrSelf(op->getResult(0));
      std::optional<int> number;
      if (StringRef name = importName(op); !name.empty() && (type.isF32() || type.isF64()))
        number = importNumber(type.isF64() ? name.str() : name.str() + "f");
      if (!number)
        return op->emitError("the CPU backend has no code for ") << op->getName() << " on " << type;
      used.insert(*number);
      Value &function = functions[*number];
      if (!function) {
        b.setInsertionPointToStart(&func.getBody().front());
        Value address = LLVM::GEPOp::create(b, func.getLoc(), ptr, ptr, imports, ArrayRef<LLVM::GEPArg>{*number});
        function = LLVM::LoadOp::create(b, func.getLoc(), ptr, address);
      }
      b.setInsertionPoint(op);
      auto call = [&](ValueRange arguments) {
        SmallVector<Value> operands{function};
        llvm::append_range(operands, arguments);
        auto result = LLVM::CallOp::create(b, op->getLoc(), LLVM::LLVMFunctionType::get(type, SmallVector<Type>(arguments.getTypes())), operands);
        using Effect = LLVM::ModRefInfo;
        result.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(context, SmallVector<Effect>(6, Effect::NoModRef)));
        result.setNoUnwind(true);
        result.setWillReturn(true);
        return result.getResult();
      };
      Value result;
      if (auto vector = dyn_cast<VectorType>(op->getResult(0).getType())) { // lane by lane
        result = arith::ConstantOp::create(b, op->getLoc(), b.getZeroAttr(vector));
        for (int64_t lane = 0; lane < vector.getDimSize(0); ++lane) {
          SmallVector<Value> arguments;
          for (Value operand : op->getOperands())
            arguments.push_back(vector::ExtractOp::create(b, op->getLoc(), operand, ArrayRef<int64_t>{lane}));
          result = vector::InsertOp::create(b, op->getLoc(), call(arguments), result, ArrayRef<int64_t>{lane});
        }
      } else {
        result = call(op->getOperands());
      }
      op->replaceAllUsesWith(ValueRange{result});
      op->erase();
    }
    return success();
  }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto target = targetOf(module);
    if (failed(target))
      return signalPassFailure();
    RewritePatternSet common(&getContext());
    populateMathF32ExpansionPatterns(common, [](StringRef) { return true; });
    math::populateExpansionPatterns(common, {"rsqrt", "fpowi", "clampf"});
    arith::populateCeilFloorDivExpandOpsPatterns(common);
    arith::populateExpandBFloat16Patterns(common); // conversions from and to f32, which LLVM would make calls an element at a time
    common.add<WidenRemainder>(&getContext());
    if (failed(applyPatternsGreedily(module, std::move(common))))
      return signalPassFailure();

    SmallVector<Operation *> functions;
    module.walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()))
        functions.push_back(op);
    });
    for (Operation *op : functions)
      approximateMath(op);
    llvm::SmallSetVector<int32_t, 8> used;
    for (auto func : module.getOps<func::FuncOp>())
      if (func.getSymName().ends_with(".body") && failed(callImports(func, used)))
        return signalPassFailure();
    // Fused only where that is an instruction: by name, fma would be a call.
    module.walk([&](math::FmaOp op) {
      OpBuilder b(op);
      op.replaceAllUsesWith(LLVM::FMulAddOp::create(b, op.getLoc(), op.getA(), op.getB(), op.getC()).getResult());
      op.erase();
    });
    module->setAttr(plan::kImportsAttr, DenseI32ArrayAttr::get(&getContext(), used.getArrayRef()));
  }
};

} // namespace

std::unique_ptr<Pass> createLowerMathPass() { return std::make_unique<LowerMath>(); }

} // namespace dlc::cpu
