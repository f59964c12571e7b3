// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// emit-image: LLVM IR of all code modules -> objects -> one image, whose bytes go into the weight store. Kernels go through LLVM
// in chunks, each chunk in a context of its own, on as many threads as there are; the image does not depend on
// how many.

#include "EmitDispatch.h"
#include "EmitObject.h"
#include "Passes.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Few enough that all threads have work, many enough that starting LLVM does not count. Depends on nothing but the number of kernels.
size_t kernelsPerChunk(size_t kernels) { return std::clamp<size_t>(kernels / 32, 8, 64); }

struct Chunk {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::SmallVector<char, 0> object;
  std::string error;
};

struct EmitImage : PassWrapper<EmitImage, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitImage)
  EmitImage(const BackendOptions &options) : options(options) {}
  StringRef getArgument() const final { return "emit-image"; }
  StringRef getDescription() const final { return "Compile the code modules into the image of the variant"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<LLVM::LLVMDialect, DlcDialect>(); }

  /// Functions and globals of several code modules, in one.
  static OwningOpRef<ModuleOp> merge(ArrayRef<ModuleOp> modules) {
    OwningOpRef<ModuleOp> merged(ModuleOp::create(UnknownLoc::get(ModuleOp(modules.front()).getContext())));
    for (ModuleOp module : modules) {
      StringRef kernel = module->getAttrOfType<FlatSymbolRefAttr>(kCodeAttr).getValue();
      for (auto global : module.getOps<LLVM::GlobalOp>()) {
        auto name = StringAttr::get(module.getContext(), kernel + "." + global.getSymName());
        (void)SymbolTable::replaceAllSymbolUses(global, name, module);
        SymbolTable::setSymbolName(global, name);
      }
      merged->getBody()->getOperations().splice(merged->getBody()->end(), module.getBody()->getOperations());
    }
    return merged;
  }

  LogicalResult emit(ModuleOp module, const Target &target) {
    SmallVector<ModuleOp> modules;
    SmallVector<plan::KernelOp> kernels;
    SymbolTable symbols(module);
    llvm::SmallSetVector<int32_t, 8> imports;
    llvm::StringMap<int64_t> scratch;
    for (auto code : module.getOps<ModuleOp>()) {
      auto name = code->getAttrOfType<FlatSymbolRefAttr>(kCodeAttr);
      if (!name)
        continue;
      auto kernel = symbols.lookup<plan::KernelOp>(name.getValue());
      if (!kernel)
        return code.emitError("there is no kernel ") << name;
      modules.push_back(code);
      kernels.push_back(kernel);
      if (auto used = code->getAttrOfType<DenseI32ArrayAttr>(plan::kImportsAttr); used && !used.empty()) {
        imports.insert(used.asArrayRef().begin(), used.asArrayRef().end());
        kernel->setAttr(plan::kImportsAttr, used);
      }
      auto entry = code.lookupSymbol<LLVM::LLVMFuncOp>(name.getValue());
      auto bytes = entry ? entry->getAttrOfType<IntegerAttr>(kScratchAttr) : IntegerAttr();
      if (!bytes)
        return code.emitError("its entry function has not been lowered");
      scratch[name.getValue()] = bytes.getInt();
    }

    SmallVector<MergedKernel> merged;
    SmallVector<plan::KernelOp> mergedOps;
    for (auto kernel : module.getOps<plan::KernelOp>()) {
      auto parts = kernel->getAttrOfType<ArrayAttr>(plan::kPartsAttr);
      if (!parts)
        continue;
      mergedOps.push_back(kernel);
      merged.push_back({kernel.getSymName().str(), {}});
      llvm::SmallSetVector<int32_t, 8> own;
      for (auto name : parts.getAsRange<FlatSymbolRefAttr>()) {
        auto part = symbols.lookup<plan::KernelOp>(name.getValue());
        if (!part || !scratch.contains(name.getValue()))
          return kernel.emitError("there is no code for its part ") << name;
        merged.back().parts.push_back({name.getValue().str(), uint32_t(part.getOperandCount()), uint32_t(part.getDestinationCount()),
                                       uint32_t(part.getScalarCount())});
        if (auto used = part->getAttrOfType<DenseI32ArrayAttr>(plan::kImportsAttr))
          own.insert(used.asArrayRef().begin(), used.asArrayRef().end());
        int64_t &most = scratch[kernel.getSymName()];
        most = std::max(most, scratch.lookup(name.getValue()));
      }
      if (!own.empty())
        kernel->setAttr(plan::kImportsAttr, DenseI32ArrayAttr::get(module.getContext(), llvm::to_vector(own)));
    }

    // Translation reads the MLIR context, so it is done here, one chunk after the other; all after it is parallel.
    size_t perChunk = kernelsPerChunk(modules.size());
    std::vector<Chunk> chunks(llvm::divideCeil(modules.size(), perChunk));
    for (auto [i, chunk] : llvm::enumerate(chunks)) {
      auto merged = merge(ArrayRef(modules).slice(i * perChunk).take_front(perChunk));
      chunk.context = std::make_unique<llvm::LLVMContext>();
      chunk.module = translateModuleToLLVMIR(*merged, *chunk.context, "kernels");
      if (!chunk.module)
        return failure();
    }
    if (!merged.empty()) {
      Chunk &chunk = chunks.emplace_back();
      chunk.context = std::make_unique<llvm::LLVMContext>();
      chunk.module = emitDispatch(*chunk.context, merged);
    }
    auto compile = [&](size_t i) {
      Chunk &chunk = chunks[i];
      auto object = emitObject(*chunk.module, target, options.dumpDir.empty() ? "" : options.dumpDir + "/kernels-" + std::to_string(i));
      chunk.module.reset();
      chunk.context.reset();
      if (object)
        chunk.object = std::move(*object);
      else
        chunk.error = llvm::toString(object.takeError());
    };
    if (options.jobs > 1 && chunks.size() > 1) {
      llvm::DefaultThreadPool pool(llvm::hardware_concurrency(std::min<unsigned>(options.jobs, chunks.size())));
      for (size_t i = 0; i < chunks.size(); ++i)
        pool.async(compile, i);
      pool.wait();
    } else {
      for (size_t i = 0; i < chunks.size(); ++i)
        compile(i);
    }
    SmallVector<StringRef> objects, names;
    for (const Chunk &chunk : chunks) {
      if (!chunk.error.empty())
        return module.emitError(chunk.error);
      objects.push_back(StringRef(chunk.object.data(), chunk.object.size()));
    }
    for (ArrayRef<plan::KernelOp> list : {ArrayRef(kernels), ArrayRef(mergedOps)})
      for (plan::KernelOp kernel : list)
        names.push_back(kernel.getSymName());
    auto image = linkImage(objects, names, target);
    if (!image)
      return module.emitError(llvm::toString(image.takeError()));

    // What a kernel may need: its entry, its body, one support function, and their return addresses.
    uint64_t support = 0;
    for (const auto &frame : image->stack)
      if (!symbols.lookup(frame.first()) && !frame.first().ends_with(".body"))
        support = std::max(support, frame.second);
    for (plan::KernelOp kernel : kernels) {
      StringRef name = kernel.getSymName();
      int64_t stack = image->stack.lookup(name) + image->stack.lookup((name + ".body").str()) + support + 3 * 8;
      if (stack > DLCRT_KERNEL_STACK_BYTES)
        return kernel.emitError("its code needs ") << stack << " bytes of stack; a kernel may use " << DLCRT_KERNEL_STACK_BYTES;
      kernel.setEntry(image->entries.lookup(name));
      kernel.setStack(stack);
      kernel.setScratch(scratch.lookup(name));
      kernel.getBody().dropAllReferences();
      kernel.getBody().getBlocks().clear();
    }
    for (plan::KernelOp kernel : mergedOps) {
      int64_t most = 0;
      for (auto name : kernel->getAttrOfType<ArrayAttr>(plan::kPartsAttr).getAsRange<FlatSymbolRefAttr>())
        most = std::max<int64_t>(most, *symbols.lookup<plan::KernelOp>(name.getValue()).getStack());
      int64_t stack = most + image->stack.lookup(kernel.getSymName()) + 8;
      if (stack > DLCRT_KERNEL_STACK_BYTES)
        return kernel.emitError("its code needs ") << stack << " bytes of stack; a kernel may use " << DLCRT_KERNEL_STACK_BYTES;
      kernel.setEntry(image->entries.lookup(kernel.getSymName()));
      kernel.setStack(stack);
      kernel.setScratch(scratch.lookup(kernel.getSymName()));
    }
    for (ModuleOp code : modules)
      code.erase();
    // What is only a part is no kernel of the module's.
    llvm::StringSet<> launched;
    module.walk([&](plan::LaunchOp launch) { launched.insert(launch.getKernel()); });
    if (!merged.empty())
      for (plan::KernelOp kernel : kernels)
        if (!launched.contains(kernel.getSymName()))
          kernel.erase();

    MLIRContext *context = module.getContext();
    auto bytes = std::make_shared<std::vector<char>>(std::move(image->bytes));
    auto type = RankedTensorType::get({int64_t(bytes->size())}, IntegerType::get(context, 8));
    std::string key = context->getLoadedDialect<DlcDialect>()->getWeights().add(ArrayRef(*bytes), bytes);
    module->setAttr(plan::kImageAttr, WeightAttr::get(context, key, type));
    SmallVector<int32_t> sorted(imports.begin(), imports.end());
    llvm::sort(sorted);
    module->setAttr(plan::kImportsAttr, DenseI32ArrayAttr::get(context, sorted));
    return success();
  }

  void runOnOperation() final {
    auto target = targetOf(getOperation());
    if (failed(target) || failed(emit(getOperation(), *target)))
      signalPassFailure();
  }

  BackendOptions options;
};

} // namespace

std::unique_ptr<Pass> createEmitImagePass(const BackendOptions &options) { return std::make_unique<EmitImage>(options); }

} // namespace dlc::cpu
