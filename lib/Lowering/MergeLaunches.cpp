// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// merge-launches: launches that need nothing of each other become one, over the tiles of all: what follows each other, and what reads the same
// input a little later (the products that make queries, keys and values). All threads have work then, and are handed it once. A
// merged kernel has no body of its own, but `plan.parts`; the backend writes what hands a tile to its part.

#include "dlc/Lowering/Passes.h"
#include "dlc/Plan/Plan.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace dlc {
#define GEN_PASS_DEF_MERGELAUNCHES
#include "dlc/Lowering/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

constexpr unsigned kMostParts = 8, kMostBuffers = 48;
/// How many other launches one may pass on its way up to those that read the same input: its results live that much longer.
constexpr unsigned kMostPassed = 6;

/// The memory that a register names.
Value memoryOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<plan::ViewOp>())
    buffer = view.getSource();
  return buffer;
}

struct Group {
  SmallVector<plan::LaunchOp> launches;
  llvm::SmallDenseSet<Value> reads, writes;
  unsigned buffers = 0;
  DimExpr tiles; // null where nobody knows

  void add(plan::LaunchOp launch) {
    DimExpr own = launch.getTiles().value_or(DimExpr());
    tiles = launches.empty() ? own : addDims(tiles, own);
    launches.push_back(launch);
    for (Value v : launch.getSources())
      reads.insert(memoryOf(v));
    for (Value v : launch.getDestinations())
      writes.insert(memoryOf(v));
    buffers += launch.getSources().size() + launch.getDestinations().size();
  }
  bool conflictsWith(plan::LaunchOp launch) const {
    return llvm::any_of(launch.getSources(), [&](Value v) { return writes.contains(memoryOf(v)); }) ||
           llvm::any_of(launch.getDestinations(), [&](Value v) { return writes.contains(memoryOf(v)) || reads.contains(memoryOf(v)); });
  }
  bool sharesInput(plan::LaunchOp launch) const {
    return llvm::any_of(launch.getSources(), [&](Value v) {
      Value memory = memoryOf(v);
      return !memory.getDefiningOp<plan::ConstOp>() && reads.contains(memory);
    });
  }
};

class Merger {
public:
  Merger(ModuleOp module, SymbolTable &symbols) : module(module), symbols(symbols) {}

  void run(Block &block) {
    std::vector<Group> groups;
    auto flush = [&] {
      for (Group &group : groups)
        if (group.launches.size() > 1)
          merge(group.launches);
      groups.clear();
    };
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
        add(groups, launch);
      } else if (!isa<plan::ConstOp, plan::SlotOp, plan::ViewOp, plan::InputOp, plan::OutputOp, plan::StateOp>(op)) {
        flush(); // checks and reads stand before what relies on them; copies and fills work on memory
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            run(inner);
      }
    }
    flush();
  }

private:
  static void add(std::vector<Group> &groups, plan::LaunchOp launch) {
    unsigned buffers = launch.getSources().size() + launch.getDestinations().size();
    auto mayJoin = [&](Group &group) {
      return group.launches.size() < kMostParts && group.buffers + buffers <= kMostBuffers && launch.getTiles() &&
             group.tiles && addDims(group.tiles, *launch.getTiles()) && group.launches.front().getDevice() == launch.getDevice();
    };
    Group *place = nullptr;
    for (size_t i = groups.size(), passed = 0; i-- > 0 && passed <= kMostPassed; ++passed) {
      if (groups[i].conflictsWith(launch))
        break;
      if (mayJoin(groups[i]) && (groups[i].sharesInput(launch) || (!place && i + 1 == groups.size())))
        place = &groups[i];
    }
    if (!place)
      place = &groups.emplace_back();
    place->add(launch);
  }

  static void moveBefore(Operation *op, Operation *place) {
    if (!op || op->getBlock() != place->getBlock() || op->isBeforeInBlock(place))
      return;
    for (Value operand : op->getOperands())
      moveBefore(operand.getDefiningOp(), place);
    op->moveBefore(place);
  }

  void merge(ArrayRef<plan::LaunchOp> launches) {
    plan::LaunchOp first = launches.front();
    MLIRContext *context = first.getContext();
    SmallVector<Value> sources, destinations;
    SmallVector<Attribute> scalars, parts;
    SmallVector<Location> locations;
    DimExpr tiles = constantDim(context, 0);
    for (plan::LaunchOp launch : launches) {
      for (Value v : launch->getOperands())
        moveBefore(v.getDefiningOp(), first);
      llvm::append_range(sources, launch.getSources());
      llvm::append_range(destinations, launch.getDestinations());
      parts.push_back(launch.getKernelAttr());
      scalars.push_back(*launch.getTiles());
      locations.push_back(launch.getLoc());
      tiles = addDims(tiles, *launch.getTiles());
    }
    for (plan::LaunchOp launch : launches)
      llvm::append_range(scalars, launch.getScalars());
    OpBuilder b(first);
    Location loc = b.getFusedLoc(locations);
    SmallVector<NamedAttribute> sums; // of what the launches report
    for (StringRef name : {plan::kFlopsAttr, plan::kTrafficAttr}) {
      DimExpr sum = constantDim(context, 0);
      for (plan::LaunchOp launch : launches) {
        auto own = launch->getAttrOfType<DimExpr>(name);
        sum = own ? addDims(sum, own) : DimExpr();
      }
      if (sum)
        sums.push_back(b.getNamedAttr(name, sum));
    }
    FlatSymbolRefAttr kernel = kernelOf(loc, parts, sources.size(), destinations.size(), scalars.size());
    auto merged =
        plan::LaunchOp::create(b, loc, kernel, sources, destinations, b.getArrayAttr(scalars), b.getArrayAttr({}), tiles, nullptr, first.getDeviceAttr());
    for (NamedAttribute sum : sums)
      merged->setAttr(sum.getName(), sum.getValue());
    for (plan::LaunchOp launch : launches)
      launch.erase();
  }

  /// One kernel for each list of parts.
  FlatSymbolRefAttr kernelOf(Location loc, ArrayRef<Attribute> parts, size_t sources, size_t destinations, size_t scalars) {
    OpBuilder b(module.getContext());
    ArrayAttr list = b.getArrayAttr(parts);
    plan::KernelOp &kernel = kernels[list];
    if (!kernel) {
      auto first = symbols.lookup<plan::KernelOp>(cast<FlatSymbolRefAttr>(parts.front()).getValue());
      bool isOneKind = llvm::all_of(parts, [&](Attribute part) {
        auto own = symbols.lookup<plan::KernelOp>(cast<FlatSymbolRefAttr>(part).getValue());
        return own.getKind().getKind() == first.getKind().getKind();
      });
      auto kind = isOneKind ? first.getKind().getKind() : plan::KernelKind::Other;
      std::string name = (first.getSymName() + "_and_" + Twine(parts.size() - 1)).str();
      b.setInsertionPointAfter(symbols.lookup(cast<FlatSymbolRefAttr>(parts.back()).getValue()));
      kernel = plan::KernelOp::create(b, loc, name, plan::KindAttr::get(b.getContext(), kind, 0), sources, destinations, scalars, nullptr, nullptr,
                                      nullptr, nullptr);
      kernel->setAttr(plan::kPartsAttr, list);
      symbols.insert(kernel); // renames where the name is taken
    }
    return FlatSymbolRefAttr::get(kernel);
  }

  ModuleOp module;
  SymbolTable &symbols;
  DenseMap<Attribute, plan::KernelOp> kernels; // by their parts
};

class MergeLaunches : public impl::MergeLaunchesBase<MergeLaunches> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    Merger merger(getOperation(), symbols);
    for (auto function : getOperation().getOps<plan::FuncOp>())
      merger.run(function.getBody().front());
  }
};

} // namespace
} // namespace dlc
