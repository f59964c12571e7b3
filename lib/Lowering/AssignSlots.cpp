// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Plan/Plan.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

namespace dlc {
#define GEN_PASS_DEF_ASSIGNSLOTS
#include "dlc/Lowering/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// Calls `visit` for the memory that a register names: the slot, output, input or constant behind its views and branches.
void forEachMemory(Value buffer, llvm::function_ref<void(Value)> visit) {
  if (auto view = buffer.getDefiningOp<plan::ViewOp>())
    return forEachMemory(view.getSource(), visit);
  if (auto branches = buffer.getDefiningOp<plan::IfOp>()) {
    for (Region &region : branches->getRegions())
      forEachMemory(region.front().getTerminator()->getOperand(cast<OpResult>(buffer).getResultNumber()), visit);
    return;
  }
  visit(buffer);
}

struct Accesses {
  SmallVector<Value> reads, writes;
};

/// What an instruction does to memory; nothing for those that only name it, and for what stands in blocks of an instruction.
Accesses accessesOf(Operation *op) {
  Accesses accesses;
  auto add = [](SmallVectorImpl<Value> &list, ValueRange buffers) {
    for (Value buffer : buffers)
      forEachMemory(buffer, [&](Value memory) { list.push_back(memory); });
  };
  if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
    add(accesses.reads, launch.getSources());
    add(accesses.writes, launch.getDestinations());
  } else if (auto copy = dyn_cast<plan::CopyOp>(op)) {
    add(accesses.reads, copy.getSource());
    add(accesses.writes, copy.getDestination());
  } else if (auto fill = dyn_cast<plan::FillOp>(op)) {
    add(accesses.writes, fill.getDestination());
  } else if (auto read = dyn_cast<plan::ReadOp>(op)) {
    add(accesses.reads, read.getSource());
  } else if (auto call = dyn_cast<plan::CallOp>(op)) {
    add(accesses.reads, call.getSources());
    add(accesses.writes, call.getDestinations());
  }
  return accesses;
}

bool isLate(DimExpr e, const llvm::StringSet<> &late) {
  bool found = false;
  forEachSymbol(e, [&](StringRef name) { found |= late.contains(name); });
  return found;
}

class Assignment {
public:
  explicit Assignment(plan::FuncOp function) : function(function), block(function.getBody().front()) {}

  void run() {
    function.walk([&](plan::ReadOp read) { late.insert(read.getSymbol()); });
    function.walk([&](plan::LoopOp loop) { late.insert(loop.getIteration()); });
    insertDims();
    countStages(block);
    placeSlots();
  }

private:
  void insertDims();
  void countStages(Block &block);
  void placeSlots();

  plan::FuncOp function;
  Block &block;
  llvm::StringSet<> late;
  struct Life {
    int64_t first = -1, last = -1;
  };
  DenseMap<Value, Life> lives;
  int64_t stage = -1;
};

/// Every expression is evaluated as soon as its symbols are known: those of the inputs at the start, others behind their reads.
void Assignment::insertDims() {
  llvm::SetVector<Attribute> early, waiting;
  function.walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs()) {
      auto add = [&](Attribute value) {
        if (auto e = dyn_cast<DimExpr>(value))
          (isLate(e, late) ? waiting : early).insert(e);
      };
      add(attribute.getValue());
      if (auto array = dyn_cast<ArrayAttr>(attribute.getValue()))
        for (Attribute element : array)
          add(element);
    }
    if (auto read = dyn_cast<plan::ReadOp>(op)) // its index is a register as well
      early.insert(constantDim(op->getContext(), read.getIndex()));
  });
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  if (!early.empty())
    plan::DimOp::create(builder, function.getLoc(), builder.getArrayAttr(early.getArrayRef()));
  llvm::StringSet<> known;
  SmallVector<Operation *> reads;
  function.walk([&](plan::ReadOp read) { reads.push_back(read); });
  for (Operation *op : reads) {
    known.insert(cast<plan::ReadOp>(op).getSymbol());
    SmallVector<Attribute> ready;
    for (Attribute e : waiting) {
      bool isReady = true;
      forEachSymbol(cast<DimExpr>(e), [&](StringRef name) { isReady &= !late.contains(name) || known.contains(name); });
      if (isReady)
        ready.push_back(e);
    }
    if (ready.empty())
      continue;
    for (Attribute e : ready)
      waiting.remove(e);
    builder.setInsertionPointAfter(op);
    plan::DimOp::create(builder, op->getLoc(), builder.getArrayAttr(ready));
  }
}

/// A stage takes instructions until one needs what another of the stage writes, or writes what another uses. An instruction with
/// blocks ends the stage before it; those of its blocks follow each other, and behind it a new one begins.
void Assignment::countStages(Block &block) {
  DenseSet<Value> read, written;
  bool isOpen = false;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (op.getNumRegions() > 0) {
      int64_t before = stage;
      for (Region &region : op.getRegions())
        countStages(region.front());
      isOpen = false;
      if (isa<plan::LoopOp>(op)) // what comes into the loop is needed until it ends
        for (auto &[memory, life] : lives)
          if (life.last > before && memory.getParentRegion() != &op.getRegion(0))
            life.last = stage;
      continue;
    }
    Accesses accesses = accessesOf(&op);
    if (accesses.reads.empty() && accesses.writes.empty())
      continue;
    bool depends = llvm::any_of(accesses.reads, [&](Value v) { return written.contains(v); }) ||
                   llvm::any_of(accesses.writes, [&](Value v) { return written.contains(v) || read.contains(v); });
    if (!isOpen || depends) {
      ++stage;
      isOpen = true;
      OpBuilder builder(&op);
      plan::StageOp::create(builder, op.getLoc(), stage);
      read.clear();
      written.clear();
    }
    read.insert(accesses.reads.begin(), accesses.reads.end());
    written.insert(accesses.writes.begin(), accesses.writes.end());
    for (ArrayRef<Value> list : {ArrayRef(accesses.reads), ArrayRef(accesses.writes)})
      for (Value v : list) {
        Life &life = lives[v];
        life.first = life.first < 0 ? stage : life.first;
        life.last = stage;
      }
  }
}

/// Fixed slots: largest first, each at the lowest offset that is free over its whole life. The others get numbers; the runtime
/// places them when it knows their sizes.
void Assignment::placeSlots() {
  struct Placed {
    int64_t offset, bytes;
    Life life;
    int64_t device;
  };
  SmallVector<Placed> placed;
  struct Fixed {
    plan::SlotOp slot;
    int64_t bytes;
    size_t position; // orders equal sizes
  };
  SmallVector<Fixed> fixed;
  int64_t symbolic = 0, lateCount = 0;
  auto place = [&](plan::SlotOp slot, plan::SlotClass kind, int64_t offset) {
    Life life = lives.lookup(slot.getBuffer());
    slot.setPlacementAttr(plan::PlacementAttr::get(slot.getContext(), kind, std::max<int64_t>(life.first, 0), std::max<int64_t>(life.last, 0), offset));
  };
  function.walk([&](plan::SlotOp slot) {
    if (std::optional<int64_t> bytes = slot.getBytes().getConstant())
      fixed.push_back({slot, static_cast<int64_t>(llvm::alignTo(*bytes, DLCRT_BUFFER_ALIGNMENT)), fixed.size()});
    else if (isLate(slot.getBytes(), late))
      place(slot, plan::SlotClass::Late, lateCount++);
    else
      place(slot, plan::SlotClass::Symbolic, symbolic++);
  });
  llvm::sort(fixed, [](const Fixed &a, const Fixed &b) { return std::tuple(-a.bytes, a.position) < std::tuple(-b.bytes, b.position); });
  for (auto [slot, bytes, position] : fixed) {
    Life life = lives.lookup(slot.getBuffer());
    SmallVector<Placed> rivals;
    for (const Placed &other : placed)
      if (other.device == static_cast<int64_t>(slot.getDevice()) && other.life.first <= life.last && life.first <= other.life.last)
        rivals.push_back(other);
    llvm::sort(rivals, [](const Placed &a, const Placed &b) { return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes); });
    int64_t offset = 0;
    for (const Placed &other : rivals) {
      if (offset + bytes <= other.offset)
        break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    placed.push_back({offset, bytes, life, static_cast<int64_t>(slot.getDevice())});
    place(slot, plan::SlotClass::Fixed, offset);
  }
}

class AssignSlots : public impl::AssignSlotsBase<AssignSlots> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    getOperation().walk([&](plan::LaunchOp launch) {
      auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
      if (kernel && kernel.getScratch().value_or(0) > 0)
        launch.setScratchAttr(constantDim(&getContext(), *kernel.getScratch()));
      if (!launch.getTiles())
        launch.setTilesAttr(constantDim(&getContext(), 1));
    });
    for (auto function : getOperation().getOps<plan::FuncOp>())
      Assignment(function).run();
  }
};

} // namespace
} // namespace dlc
