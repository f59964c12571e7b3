// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// map-tiles: from a function on memory to the kernel ABI of dlcrt/kernel_abi.h. Two functions come out of one:
//
//   func.func @k(ptr args, ptr worker, i32 begin, i32 end)   reads the addresses and scalars, calls
//   func.func @k.body(ptr noalias buffers..., index scalars..., ptr noalias scratch, ptr imports, ptr status, index begin, index end)
//
// in which the scf.forall over the launch's tiles is a loop from begin to end. Pointers are `noalias` in a function of their own
// because LLVM believes that of arguments best: no two buffers of a launch overlap where one of them is written.
// A kernel that is not cut computes everything when tile 0 is asked for.

#include "Passes.h"
#include "dlc/IR/KernelOps.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cstddef>

using namespace mlir;

namespace dlc::cpu {
namespace {

/// A memref of `type` at `address`, dense, with sizes from the function's scalars.
Value makeMemRef(OpBuilder &b, Location loc, const LLVMTypeConverter &converter, MemRefType type, Value address, ValueRange dynamicSizes) {
  auto constant = [&](int64_t value) -> Value { return LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(value)); };
  SmallVector<Value> sizes, strides(type.getRank());
  unsigned dynamic = 0;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size)
                        ? Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), dynamicSizes[dynamic++]))
                        : constant(size));
  Value stride = constant(1);
  for (int64_t d = type.getRank(); d-- > 0;) {
    strides[d] = stride;
    if (d > 0)
      stride = LLVM::MulOp::create(b, loc, stride, sizes[d], LLVM::IntegerOverflowFlags::nsw);
  }
  SmallVector<Value> fields{address, address, constant(0)};
  llvm::append_range(fields, sizes);
  llvm::append_range(fields, strides);
  Value descriptor = MemRefDescriptor::pack(b, loc, converter, type, fields);
  return UnrealizedConversionCastOp::create(b, loc, type, descriptor).getResult(0);
}

/// The loop over the tiles [begin, end) in place of a forall over all of them.
void mapForall(scf::ForallOp forall, Value begin, Value end) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  SmallVector<Value> lower = forall.getLowerBound(b), upper = forall.getUpperBound(b), step = forall.getStep(b);
  SmallVector<Value> counts;
  for (auto [l, u, s] : llvm::zip(lower, upper, step))
    counts.push_back(arith::CeilDivUIOp::create(b, loc, arith::SubIOp::create(b, loc, u, l), s));
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto loop = scf::ForOp::create(b, loc, begin, end, one);
  b.setInsertionPointToStart(loop.getBody());
  // Row-major: the last index runs fastest.
  Value rest = loop.getInductionVar();
  SmallVector<Value> ivs(counts.size());
  for (unsigned d = counts.size(); d-- > 0;) {
    Value index = d ? Value(arith::RemUIOp::create(b, loc, rest, counts[d])) : rest;
    if (d)
      rest = arith::DivUIOp::create(b, loc, rest, counts[d]);
    ivs[d] = arith::AddIOp::create(b, loc, lower[d], arith::MulIOp::create(b, loc, index, step[d]));
  }
  for (auto [iv, value] : llvm::zip(forall.getInductionVars(), ivs))
    iv.replaceAllUsesWith(value);
  forall.getTerminator()->erase();
  loop.getBody()->getOperations().splice(std::prev(loop.getBody()->end()), forall.getBody()->getOperations());
  forall.erase();
}

/// Any other forall is an ordinary loop nest.
void sequentialize(scf::ForallOp forall) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  auto nest = scf::buildLoopNest(b, loc, forall.getLowerBound(b), forall.getUpperBound(b), forall.getStep(b));
  for (auto [iv, loop] : llvm::zip(forall.getInductionVars(), nest.loops))
    iv.replaceAllUsesWith(loop.getInductionVar());
  forall.getTerminator()->erase();
  Block *body = nest.loops.back().getBody();
  body->getOperations().splice(std::prev(body->end()), forall.getBody()->getOperations());
  forall.erase();
}

struct MapTiles : PassWrapper<MapTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MapTiles)
  StringRef getArgument() const final { return "map-tiles"; }
  StringRef getDescription() const final { return "Give kernels the calling convention of the runtime"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<LLVM::LLVMDialect, arith::ArithDialect, scf::SCFDialect, memref::MemRefDialect>();
  }

  void map(func::FuncOp func) {
    MLIRContext *context = func.getContext();
    OpBuilder b(context);
    Location loc = func.getLoc();
    Block &entry = func.getBody().front();
    Type ptr = LLVM::LLVMPointerType::get(context), index = b.getIndexType();
    unsigned tensors = func->getAttrOfType<ArrayAttr>(kDimsAttr).size();
    unsigned scratch = func.getNumArguments() - 1;
    LLVMTypeConverter converter(context);

    // imports, status, begin, end
    unsigned imports = scratch + 1, status = scratch + 2;
    for (Type type : {ptr, ptr, index, index})
      entry.addArgument(type, loc);
    Value begin = entry.getArgument(scratch + 3), end = entry.getArgument(scratch + 4);

    // Memory from addresses.
    b.setInsertionPointToStart(&entry);
    for (unsigned i = 0; i <= scratch; ++i) {
      BlockArgument argument = entry.getArgument(i);
      auto type = dyn_cast<MemRefType>(argument.getType());
      if (!type)
        continue;
      SmallVector<Value> sizes;
      if (i == scratch)
        sizes.push_back(arith::ConstantIndexOp::create(b, loc, func->getAttrOfType<IntegerAttr>(kScratchAttr).getInt()));
      else
        for (int64_t d = 0; d < type.getRank(); ++d)
          if (type.isDynamicDim(d))
            sizes.push_back(sizeOfArgument(func, i, d));
      argument.setType(ptr);
      if (argument.use_empty())
        continue;
      // Uses change before the memref is built from the argument itself.
      Value standIn = UnrealizedConversionCastOp::create(b, loc, type, ValueRange{}).getResult(0);
      argument.replaceAllUsesWith(standIn);
      Value memory = makeMemRef(b, loc, converter, type, argument, sizes);
      standIn.replaceAllUsesWith(memory);
      standIn.getDefiningOp()->erase();
    }

    SmallVector<scf::ForallOp> cut;
    for (auto forall : entry.getOps<scf::ForallOp>())
      if (forall->hasAttr(kCutAttr))
        cut.push_back(forall);
    for (scf::ForallOp forall : cut)
      mapForall(forall, begin, end);
    func.walk([](scf::ForallOp forall) { sequentialize(forall); });
    if (cut.empty()) {
      // All of it, with tile 0.
      b.setInsertionPoint(entry.getTerminator());
      Value zero = arith::ConstantIndexOp::create(b, loc, 0);
      Value first = arith::AndIOp::create(b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, begin, zero),
                                          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, begin, end));
      auto guard = scf::IfOp::create(b, loc, first);
      Block *then = guard.thenBlock();
      auto &operations = entry.getOperations();
      then->getOperations().splice(then->begin(), operations, operations.begin(), zero.getDefiningOp()->getIterator());
    }

    func.walk([&](RaiseOp raise) {
      b.setInsertionPoint(raise);
      Value value = LLVM::ConstantOp::create(b, raise.getLoc(), b.getI32Type(), raise.getStatusAttr());
      LLVM::StoreOp::create(b, raise.getLoc(), value, entry.getArgument(status));
      raise.erase();
    });

    // The body's own signature.
    std::string name = func.getSymName().str();
    func.setType(b.getFunctionType(entry.getArgumentTypes(), {}));
    func.setSymName(name + ".body");
    func->setAttr("llvm.linkage", LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
    func.setPrivate();
    for (unsigned i = 0; i < tensors; ++i)
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    for (unsigned i = func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt(); i-- > 0;)
      func.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
    for (unsigned i : {scratch, status})
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    func.setArgAttr(imports, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());

    // The entry.
    b.setInsertionPoint(func);
    auto wrapper = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, ptr, b.getI32Type(), b.getI32Type()}, {}));
    wrapper->setAttr(kScratchAttr, func->getAttr(kScratchAttr));
    Block *block = wrapper.addEntryBlock();
    b.setInsertionPointToStart(block);
    auto load = [&](Type loaded, Value base, size_t offset) -> Value {
      Value address = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
      return LLVM::LoadOp::create(b, loc, loaded, address);
    };
    Value args = block->getArgument(0), worker = block->getArgument(1);
    Value buffers = load(ptr, args, offsetof(dlcrt_kernel_args, buffers)), scalars = load(ptr, args, offsetof(dlcrt_kernel_args, scalars));
    SmallVector<Value> values;
    for (unsigned i = 0; i < tensors; ++i)
      values.push_back(load(ptr, buffers, i * sizeof(void *)));
    for (unsigned i = tensors; i < scratch; ++i)
      values.push_back(arith::IndexCastOp::create(b, loc, index, load(b.getI64Type(), scalars, (i - tensors) * sizeof(int64_t))));
    values.push_back(load(ptr, worker, offsetof(dlcrt_worker, scratch)));
    values.push_back(load(ptr, args, offsetof(dlcrt_kernel_args, imports)));
    values.push_back(load(ptr, worker, offsetof(dlcrt_worker, status)));
    for (unsigned i : {2, 3})
      values.push_back(arith::IndexCastUIOp::create(b, loc, index, block->getArgument(i)));
    func::CallOp::create(b, loc, func, values);
    func::ReturnOp::create(b, loc);
  }

  void runOnOperation() final {
    for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      map(func);
  }
};

} // namespace

std::unique_ptr<Pass> createMapTilesPass() { return std::make_unique<MapTiles>(); }

} // namespace dlc::cpu
