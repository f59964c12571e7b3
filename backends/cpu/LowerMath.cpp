// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// lower-math: functions of the math dialect become polynomials where accurate ones are at hand, and calls through the kernel's import
// table elsewhere; f16 and bf16 compute in f32. What stays is what LLVM has instructions for. Nothing may become a call by name.

#include "Passes.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Approximation.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Functions of f32 whose upstream approximation is as accurate as a library's, if need be with the care that `Approximator`
/// takes of special values. test/backends/cpu/MathTests.cpp has the bounds.
bool isApproximatedUpstream(StringRef name) { return name == "math.log" || name == "math.log2" || name == "math.log1p" || name == "math.erf"; }

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


/// Our own polynomials for f32 (their coefficients are minimax fits of the relative error, made for this file), and what the
/// upstream ones need in addition. On scalars and on vectors.
class Approximator {
public:
  explicit Approximator(Operation *op) : op(op), b(op->getLoc(), op) {}

  void run() {
    Value x = op->getOperand(0);
    shape = dyn_cast<VectorType>(x.getType());
    if (!getElementTypeOrSelf(x).isF32())
      return;
    Value result = llvm::TypeSwitch<Operation *, Value>(op)
                       .Case([&](math::ExpOp) { return exp(x); })
                       .Case([&](math::TanhOp) { return tanh(x); })
                       .Case([&](math::ErfOp) { return copySign(math::ErfOp::create(b, x), x); })
                       .Case([&](math::LogOp) { return scaledLog<math::LogOp>(x, 25 * 0.693147180559945309); })
                       .Case([&](math::Log2Op) { return scaledLog<math::Log2Op>(x, 25); })
                       .Default(Value());
    if (!result)
      return;
    op->replaceAllUsesWith(ValueRange{result});
    op->erase();
  }

private:
  Type like(Type element) { return shape ? shape.clone(element) : element; }
  Value constant(TypedAttr value) {
    return arith::ConstantOp::create(b, shape ? TypedAttr(DenseElementsAttr::get(shape.clone(value.getType()), value)) : value);
  }
  Value f(double value) { return constant(b.getF32FloatAttr(float(value))); }
  Value i(int32_t value) { return constant(b.getI32IntegerAttr(value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value less(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y); }
  Value select(Value c, Value x, Value y) { return arith::SelectOp::create(b, c, x, y); }
  Value copySign(Value x, Value sign) { return math::CopySignOp::create(b, x, sign); }
  Value bits(Value x) { return arith::BitcastOp::create(b, like(b.getI32Type()), x); }
  Value polynomial(Value x, ArrayRef<double> coefficients) { // from the highest power down
    Value sum = f(coefficients.front());
    for (double c : coefficients.drop_front())
      sum = fma(sum, x, f(c));
    return sum;
  }
  /// 2^n for -127 < n <= 127.
  Value power(Value n) {
    Value shifted = arith::ShLIOp::create(b, arith::AddIOp::create(b, n, i(127)), i(23));
    return arith::BitcastOp::create(b, like(b.getF32Type()), shifted);
  }

  /// exp(x) = 2^n e^r, x = n ln 2 + r, |r| <= ln 2 / 2. Within 1 ulp, denormal results included.
  Value exp(Value x) {
    // Out of these bounds all results are the same: infinity and 0. NaN stays.
    x = select(less(f(89), x), f(89), x);
    x = select(less(x, f(-104)), f(-104), x);
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits, without an undefined conversion of NaN.
    Value magic = f(12582912), shifted = fma(x, f(1.44269504088896341), magic);
    Value n = arith::SubIOp::create(b, bits(shifted), i(0x4b400000));
    Value whole = arith::SubFOp::create(b, shifted, magic);
    // ln 2 in two parts: whole * 0.693359375 is exact.
    Value r = fma(whole, f(2.12194440054690583e-4), fma(whole, f(-0.693359375), x));
    Value q = polynomial(r, {0.0013814610429108143, 0.008368710987269878, 0.04166838899254799, 0.1666652113199234, 0.4999999403953552});
    Value e = add(fma(mul(r, r), q, r), f(1));
    // 2^n in two factors: one alone may be too small or too large for a float.
    Value half = arith::ShRSIOp::create(b, n, i(1)), rest = arith::SubIOp::create(b, n, half);
    return mul(mul(e, power(half)), power(rest));
  }

  /// A polynomial near 0, 1 - 2 / (e^2|x| + 1) elsewhere. Within 2 ulp.
  Value tanh(Value x) {
    Value z = mul(x, x);
    Value p = polynomial(z, {-0.005704987328499556, 0.0206390880048275, -0.05373971536755562, 0.13331441581249237, -0.3333328068256378});
    Value near = fma(mul(x, z), p, x);
    Value a = math::AbsFOp::create(b, x);
    Value far = arith::SubFOp::create(b, f(1), arith::DivFOp::create(b, f(2), add(exp(add(a, a)), f(1))));
    return copySign(select(less(a, f(0.625)), near, far), x); // tanh(-0) is -0
  }

  /// Denormals are scaled by 2^25 before, and the result mended by log(2^25).
  template <typename LogOp>
  Value scaledLog(Value x, double log) {
    Value denormal = less(x, f(1.17549435e-38));
    Value scaled = LogOp::create(b, select(denormal, mul(x, f(33554432)), x));
    return arith::SubFOp::create(b, scaled, select(denormal, f(log), f(0)));
  }

  Operation *op;
  ImplicitLocOpBuilder b;
  VectorType shape; // null: scalars
};

struct LowerMath : PassWrapper<LowerMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerMath)
  StringRef getArgument() const final { return "lower-math"; }
  StringRef getDescription() const final { return "Rewrite math functions into polynomials and calls of imports"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, vector::VectorDialect>();
  }

  /// Those ops that `takes` names become calls.
  LogicalResult callImports(func::FuncOp func, llvm::SmallSetVector<int32_t, 8> &used, function_ref<bool(Operation *)> takes) {
    MLIRContext *context = &getContext();
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) {
      if (takes(op))
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
      Approximator(op).run();
    llvm::SmallSetVector<int32_t, 8> used;
    auto callAll = [&](function_ref<bool(Operation *)> takes) {
      for (auto func : module.getOps<func::FuncOp>())
        if (func.getSymName().ends_with(".body") && failed(callImports(func, used, takes)))
          return failure();
      return success();
    };
    // Upstream's polynomial is one for f32, whatever the type.
    if (failed(callAll([](Operation *op) { return isa<math::ErfOp>(op) && getElementTypeOrSelf(op->getResult(0)).isF64(); })))
      return signalPassFailure();
    RewritePatternSet upstream(&getContext());
    populateMathPolynomialApproximationPatterns(upstream, isApproximatedUpstream);
    if (failed(applyPatternsGreedily(module, std::move(upstream))))
      return signalPassFailure();

    if (failed(callAll([](Operation *op) { return (isa<math::MathDialect>(op->getDialect()) && !isInstruction(op)) || isa<arith::RemFOp>(op); })))
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
