// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitObject.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace dlc::cpu {

static Expected<std::unique_ptr<TargetMachine>> makeTargetMachine(const dlc::Target &target) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86Target(), LLVMInitializeX86TargetMC(), LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64Target(), LLVMInitializeAArch64TargetMC(), LLVMInitializeAArch64AsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string error;
  Triple triple(target.triple);
  const llvm::Target *found = TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return createStringError("LLVM has no code generator for " + target.triple + ": " + error);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard; // fmuladd is fused, separate operations stay so
  options.EmitStackSizeSection = true;
  options.FunctionSections = true;
  options.MCOptions.AsmVerbose = true;
  return std::unique_ptr<TargetMachine>(found->createTargetMachine(triple, target.baseCpu, target.llvmFeatures, options, Reloc::PIC_,
                                                                   CodeModel::Small, CodeGenOptLevel::Aggressive));
}

static void setAttributes(Module &module, const dlc::Target &target) {
  std::string width = std::to_string(target.vectorBits);
  for (Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", target.baseCpu);
    f.addFnAttr("tune-cpu", target.tuneCpu);
    f.addFnAttr("target-features", target.llvmFeatures);
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
    f.addFnAttr("frame-pointer", "none");
    f.addFnAttr(Attribute::NoUnwind);
    f.setUWTableKind(UWTableKind::None);
    if (f.hasLocalLinkage())
      f.addFnAttr(Attribute::NoInline); // keeps what its arguments' attributes say
    else
      f.setVisibility(GlobalValue::HiddenVisibility);
  }
}

static void optimize(Module &module, TargetMachine &machine) {
  PipelineTuningOptions options;
  options.LoopVectorization = options.SLPVectorization = options.LoopInterleaving = options.LoopUnrolling = true;
  PassBuilder builder(&machine, options);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, modules);
}

static bool isFloatFunction(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::sqrt:
  case Intrinsic::fma:
  case Intrinsic::fmuladd:
  case Intrinsic::floor:
  case Intrinsic::ceil:
  case Intrinsic::trunc:
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::round:
  case Intrinsic::roundeven:
  case Intrinsic::minnum:
  case Intrinsic::maxnum:
  case Intrinsic::minimum:
  case Intrinsic::maximum:
  case Intrinsic::minimumnum:
  case Intrinsic::maximumnum:
    return true;
  default:
    return false;
  }
}

/// Arithmetic of bfloat in float, each result rounded. For AArch64 without BF16: there LLVM 22 itself rounds sums, products and
/// quotients of <8 x bfloat> by a bit of an operand instead of the result's, and takes other functions apart into single elements. This
/// comes behind the optimizer, which would make it narrow again.
static void widenBfloats(Module &module) {
  SmallVector<Instruction *> narrow;
  for (Function &f : module)
    for (BasicBlock &block : f)
      for (Instruction &i : block)
        if (i.getType()->getScalarType()->isBFloatTy())
          if (auto *call = dyn_cast<IntrinsicInst>(&i); isa<BinaryOperator>(i) || (call && isFloatFunction(call->getIntrinsicID())))
            narrow.push_back(&i);
  for (Instruction *i : narrow) {
    IRBuilder<> builder(i);
    Type *wide = i->getType()->getWithNewType(builder.getFloatTy());
    builder.setFastMathFlags(i->getFastMathFlags());
    auto *call = dyn_cast<IntrinsicInst>(i);
    SmallVector<Value *> operands;
    for (Use &operand : call ? call->args() : i->operands())
      operands.push_back(builder.CreateFPExt(operand, wide));
    Value *result = call ? builder.CreateIntrinsic(call->getIntrinsicID(), {wide}, operands)
                         : builder.CreateBinOp(cast<BinaryOperator>(i)->getOpcode(), operands[0], operands[1]);
    i->replaceAllUsesWith(builder.CreateFPTrunc(result, i->getType()));
    i->eraseFromParent();
  }
}

static Error dump(const std::string &path, function_ref<void(raw_ostream &)> print) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  if (error)
    return createStringError("cannot write '" + path + "': " + error.message());
  print(os);
  return Error::success();
}

static Error compile(Module &module, TargetMachine &machine, raw_pwrite_stream &os, CodeGenFileType type) {
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return createStringError("LLVM cannot write this kind of file");
  passes.run(module);
  return Error::success();
}

Expected<SmallVector<char, 0>> emitObject(Module &module, const dlc::Target &target, const std::string &dumpPath) {
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  setAttributes(module, target);
  if (!dumpPath.empty())
    if (Error error = dump(dumpPath + ".ll", [&](raw_ostream &os) { module.print(os, nullptr); }))
      return error;
  optimize(module, **machine);
  if (target.arch == TargetArch::AArch64 && !target.has(AArch64Feature::BF16))
    widenBfloats(module);
  if (!dumpPath.empty()) {
    // Code generation changes the module, so the assembly is made from a copy.
    SmallVector<char, 0> text;
    raw_svector_ostream os(text);
    auto copy = CloneModule(module);
    if (Error error = compile(*copy, **machine, os, CodeGenFileType::AssemblyFile))
      return error;
    if (Error error = dump(dumpPath + ".s", [&](raw_ostream &file) { file << os.str(); }))
      return error;
  }
  SmallVector<char, 0> object;
  raw_svector_ostream os(object);
  if (Error error = compile(module, **machine, os, CodeGenFileType::ObjectFile))
    return error;
  return object;
}

} // namespace dlc::cpu
