// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The page of the CPU backend: from kernel bodies on tensors to an image of machine code.

#include "Passes.h"
#include "dlc/IR/KernelOps.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/TensorTilingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/Transforms/SubsetOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace dlc {
namespace {

using namespace cpu;

class CpuBackend : public Backend {
public:
  TargetKind kind() const final { return TargetKind::Cpu; }
  StringRef name() const final { return "cpu"; }

  plan::ScheduleAttr defaultSchedule(plan::KernelOp kernel, ArrayRef<std::optional<int64_t>> domain, const Target &target) const final {
    return cpu::defaultSchedule(kernel, domain, target);
  }

  std::optional<PackedOperand> packedOperand(plan::KernelOp kernel, const Target &target) const final {
    return cpu::packedOperand(kernel, target);
  }

  void buildKernelPipeline(OpPassManager &pm, const Target &, const BackendOptions &options) const final {
    pm.addPass(createOutlineCodePass());
    OpPassManager &code = pm.nest<ModuleOp>();

    // Kernels of rows and attention, written on memory at once; nothing up to the loops' way to LLVM is left to do for them.
    code.addPass(createVectorizeRowsPass());
    code.addPass(createEmitAttentionPass());

    // The same for windows that slide over axes, once what follows them is in one form.
    code.addPass(createFuseElementwisePass());
    code.addPass(createEmitConvolutionsPass());
    code.addPass(createEmitWinogradPass());
    code.addPass(createEmitWindowsPass());

    // The others, on tensors: what is computed where.
    code.addPass(createEmitContractionsPass());
    code.addPass(createTileKernelsPass());
    code.addPass(createDecomposeKernelOpsPass());
    code.addPass(createCanonicalizerPass());
    code.addPass(createCSEPass());
    code.addPass(createVectorizeReductionsPass());
    code.addPass(createCanonicalizerPass());
    code.addPass(createCSEPass());

    // On memory.
    code.addPass(createBufferizeKernelsPass());
    code.addPass(createCanonicalizerPass());
    code.addPass(createCSEPass()); // a result that is in its place already is copied onto itself: by one name, it is nothing
    code.addPass(createAllocateScratchPass());
    code.addPass(createVectorizeTransposesPass());
    code.addPass(createLowerToLoopsPass());
    code.addPass(createSplitLoopsPass());
    code.addPass(createMapTilesPass());
    code.addPass(createCSEPass());

    // To LLVM. No canonicalize from here on: it would gather vectors element by element.
    code.addPass(createLowerMathPass());
    code.addPass(memref::createExpandStridedMetadataPass());
    code.addPass(createLowerAffinePass());
    code.addPass(createSCFToControlFlowPass());
    code.addPass(createConvertVectorToLLVMPass());
    code.addPass(createConvertToLLVMPass());
    code.addPass(createReconcileUnrealizedCastsPass());
    code.addPass(createCSEPass());

    pm.addPass(createEmitImagePass(options));
  }

  void registerDialects(DialectRegistry &registry) const final {
    registry.insert<DlcDialect, plan::PlanDialect, affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                    cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                    memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
    linalg::registerTilingInterfaceExternalModels(registry);
    tensor::registerTilingInterfaceExternalModels(registry);

    arith::registerBufferizableOpInterfaceExternalModels(registry);
    bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
    linalg::registerBufferizableOpInterfaceExternalModels(registry);
    scf::registerBufferizableOpInterfaceExternalModels(registry);
    tensor::registerBufferizableOpInterfaceExternalModels(registry);
    vector::registerBufferizableOpInterfaceExternalModels(registry);
    linalg::registerSubsetOpInterfaceExternalModels(registry);
    tensor::registerSubsetOpInterfaceExternalModels(registry);
    vector::registerSubsetOpInterfaceExternalModels(registry);

    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
    linalg::registerValueBoundsOpInterfaceExternalModels(registry);
    memref::registerValueBoundsOpInterfaceExternalModels(registry);
    scf::registerValueBoundsOpInterfaceExternalModels(registry);
    tensor::registerValueBoundsOpInterfaceExternalModels(registry);
    vector::registerValueBoundsOpInterfaceExternalModels(registry);

    arith::registerConvertArithToLLVMInterface(registry);
    cf::registerConvertControlFlowToLLVMInterface(registry);
    registerConvertComplexToLLVMInterface(registry);
    registerConvertFuncToLLVMInterface(registry);
    index::registerConvertIndexToLLVMInterface(registry);
    registerConvertMathToLLVMInterface(registry);
    registerConvertMemRefToLLVMInterface(registry);
    ub::registerConvertUBToLLVMInterface(registry);
    vector::registerConvertVectorToLLVMInterface(registry);
    registerConvertToLLVMDependentDialectLoading(registry); // asks the dialects for the interfaces above
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
  }

  void registerPasses() const final {
    for (auto create :
         {createOutlineCodePass, createVectorizeRowsPass, createEmitAttentionPass, createFuseElementwisePass, createEmitConvolutionsPass, createEmitWinogradPass, createEmitWindowsPass,
          createEmitContractionsPass, createTileKernelsPass, createDecomposeKernelOpsPass, createVectorizeReductionsPass, createBufferizeKernelsPass, createAllocateScratchPass,
          createVectorizeTransposesPass, createLowerToLoopsPass, createSplitLoopsPass, createMapTilesPass, createLowerMathPass})
      registerPass(create);
    registerPass([] { return createEmitImagePass(); });
  }
};

} // namespace

std::unique_ptr<Backend> createCpuBackend() { return std::make_unique<CpuBackend>(); }

} // namespace dlc
