// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitDispatch.h"
#include "dlcrt/kernel_abi.h"
#include "llvm/IR/IRBuilder.h"
#include <cstddef>

using namespace llvm;

namespace dlc::cpu {

namespace {

/// Writes the entry of one merged kernel.
class Dispatcher {
public:
  Dispatcher(Module &module, const MergedKernel &kernel) : kernel(kernel), module(module), b(module.getContext()) {
    Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty();
    signature = FunctionType::get(b.getVoidTy(), {ptr, ptr, i32, i32}, false);
    function = Function::Create(signature, Function::ExternalLinkage, kernel.name, module);
    b.SetInsertPoint(BasicBlock::Create(b.getContext(), "", function));
  }

  void emit() {
    Value *args = function->getArg(0);
    begin = function->getArg(2);
    end = function->getArg(3);
    buffers = load(b.getPtrTy(), args, offsetof(dlcrt_kernel_args, buffers));
    scalars = load(b.getPtrTy(), args, offsetof(dlcrt_kernel_args, scalars));
    uint32_t most = 0;
    for (const MergedKernel::Part &part : kernel.parts) {
      sourcesBefore += part.sources;
      scalarsBefore += 1;
      most = std::max(most, part.sources + part.destinations);
    }
    // Sources of all parts come before the destinations of all, and the parts' tile counts before their scalars.
    uint32_t source = 0, destination = sourcesBefore, scalar = scalarsBefore;
    ownBuffers = b.CreateAlloca(ArrayType::get(b.getPtrTy(), std::max(most, 1u)));
    ownArgs = b.CreateAlloca(ArrayType::get(b.getInt64Ty(), sizeof(dlcrt_kernel_args) / 8));
    first = b.getInt32(0);
    for (auto [i, part] : enumerate(kernel.parts)) {
      emitPart(part, i, source, destination, scalar);
      source += part.sources;
      destination += part.destinations;
      scalar += part.scalars;
    }
    b.CreateRetVoid();
  }

private:
  Value *at(Value *base, uint64_t bytes) { return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, bytes); }
  Value *load(Type *type, Value *base, uint64_t bytes) { return b.CreateLoad(type, at(base, bytes)); }
  void copyBuffer(uint32_t from, uint32_t to) { b.CreateStore(load(b.getPtrTy(), buffers, from * sizeof(void *)), at(ownBuffers, to * sizeof(void *))); }

  /// The part's share of [begin, end).
  void emitPart(const MergedKernel::Part &part, uint64_t number, uint32_t source, uint32_t destination, uint32_t scalar) {
    Value *tiles = b.CreateTrunc(load(b.getInt64Ty(), scalars, number * sizeof(int64_t)), b.getInt32Ty());
    Value *last = b.CreateAdd(first, tiles);
    Value *from = b.CreateBinaryIntrinsic(Intrinsic::umax, begin, first), *to = b.CreateBinaryIntrinsic(Intrinsic::umin, end, last);
    auto *call = BasicBlock::Create(b.getContext(), "", function), *next = BasicBlock::Create(b.getContext(), "", function);
    b.CreateCondBr(b.CreateICmpULT(from, to), call, next);
    b.SetInsertPoint(call);
    for (uint32_t i = 0; i < part.sources; ++i)
      copyBuffer(source + i, i);
    for (uint32_t i = 0; i < part.destinations; ++i)
      copyBuffer(destination + i, part.sources + i);
    auto set = [&](uint64_t offset, Value *value) { b.CreateStore(value, at(ownArgs, offset)); };
    set(offsetof(dlcrt_kernel_args, struct_size), b.getInt32(sizeof(dlcrt_kernel_args)));
    set(offsetof(dlcrt_kernel_args, buffer_count), b.getInt32(part.sources + part.destinations));
    set(offsetof(dlcrt_kernel_args, scalar_count), b.getInt32(part.scalars));
    set(offsetof(dlcrt_kernel_args, reserved), b.getInt32(0));
    set(offsetof(dlcrt_kernel_args, buffers), ownBuffers);
    set(offsetof(dlcrt_kernel_args, scalars), at(scalars, scalar * sizeof(int64_t)));
    set(offsetof(dlcrt_kernel_args, imports), load(b.getPtrTy(), function->getArg(0), offsetof(dlcrt_kernel_args, imports)));
    b.CreateCall(module.getOrInsertFunction(part.name, signature), {ownArgs, function->getArg(1), b.CreateSub(from, first), b.CreateSub(to, first)});
    b.CreateBr(next);
    b.SetInsertPoint(next);
    first = last;
  }

  const MergedKernel &kernel;
  Module &module;
  IRBuilder<> b;
  FunctionType *signature;
  Function *function;
  Value *begin = nullptr, *end = nullptr, *buffers = nullptr, *scalars = nullptr, *ownBuffers = nullptr, *ownArgs = nullptr;
  Value *first = nullptr; // tile of the part
  uint32_t sourcesBefore = 0, scalarsBefore = 0;
};

} // namespace

std::unique_ptr<Module> emitDispatch(LLVMContext &context, ArrayRef<MergedKernel> kernels) {
  auto module = std::make_unique<Module>("dispatch", context);
  for (const MergedKernel &kernel : kernels)
    Dispatcher(*module, kernel).emit();
  return module;
}

} // namespace dlc::cpu
