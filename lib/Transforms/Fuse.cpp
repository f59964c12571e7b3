// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace dlc {
#define GEN_PASS_DEF_FUSE
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// Calls `visit` for the symbols that the op's result types and attributes name. The dims of an if are those of its branches, or
/// are read from its own results.
void forEachSymbolOf(Operation *op, llvm::function_ref<void(StringRef)> visit) {
  auto visitExpr = [&](Attribute attribute) {
    if (auto e = dyn_cast<DimExpr>(attribute))
      forEachSymbol(e, visit);
  };
  if (!isa<IfOp>(op))
    for (Type type : op->getResultTypes())
      llvm::for_each(dimsOf(type), visitExpr);
  for (NamedAttribute attribute : op->getAttrs()) {
    visitExpr(attribute.getValue());
    if (auto array = dyn_cast<ArrayAttr>(attribute.getValue()))
      llvm::for_each(array, visitExpr);
  }
}

/// A group in the making: at most one op that is not element-wise, first, then element-wise ops over its result's dims.
struct Candidate {
  SmallVector<Operation *> ops;
  SmallVector<DimExpr> domain;
  bool takesElementwise;
};

bool isScalar(Operation *op) {
  auto dlcOp = dyn_cast<DlcOp>(op);
  return dlcOp && dlcOp.form() == Form::Scalar;
}

/// Whether the operand is a constant that repeats one number.
bool isNumber(OpOperand &operand) {
  auto constant = operand.get().getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return elements && elements.isSplat();
}

/// Element-wise, and made from nothing in memory: indices along an axis, a repeated number.
bool isSource(Operation *op) {
  return isScalar(op) && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    return isNumber(operand) || !cast<DlcOp>(op).readsData(operand.getOperandNumber());
  });
}

/// Whether an element of the user's result takes just one element of the operand, and both are element-wise.
bool isSameLoop(OpOperand &operand) {
  Operation *user = operand.getOwner();
  return isScalar(user) && dimsOf(operand.get().getType()) == dimsOf(user->getResult(0).getType());
}

/// Gives each element-wise user of a source over its dims a source of its own: making it anew costs less than reading it.
void copySources(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isSource(&op))
      continue;
    auto uses = llvm::make_early_inc_range(op.getUses());
    for (OpOperand &use : uses)
      if (!op.hasOneUse() && isSameLoop(use)) {
        OpBuilder builder(use.getOwner());
        use.set(builder.clone(op)->getResult(0));
      }
  }
}

/// Groups are numbered as they start, and a group uses only results of groups with smaller numbers. That is kept as follows: an
/// op joins only the group with the largest number among those that its operands come from. So there are no circles, and one
/// walk is enough.
class Grouping {
public:
  explicit Grouping(unsigned cap) : cap(cap) {}

  void add(DlcOp op) {
    Form form = op.form();
    if (form == Form::Host)
      return;
    int last = -1;
    for (OpOperand &operand : op->getOpOperands())
      if (op.readsData(operand.getOperandNumber()))
        last = std::max(last, groupOf(operand.get()));
    if (form == Form::View) { // renames its operand's memory; counts as a part of its group for the order
      int reader = std::max(lastReader(op), readerOf(op->getOperand(0)));
      views[op->getResult(0)] = std::max(last, reader);
      viewReaders[op->getResult(0)] = reader;
      return;
    }
    bool isElementwise = form == Form::Scalar;
    if (isElementwise && mayFloat(op))
      return;
    SmallVector<DimExpr> domain = dimsOf(op->getResult(0).getType());
    if (!(isElementwise && last >= 0 && mayJoin(op, last, domain))) {
      Role role = op.role();
      last = candidates.size();
      candidates.push_back({{}, std::move(domain), isElementwise || role == Role::Contraction || role == Role::Reduction});
    }
    put(op, last);
  }

  /// An op with branches: nothing joins it, and it stands behind the groups whose results its branches use.
  void addBarrier(Operation *op) {
    group[op] = candidates.size();
    candidates.push_back({{}, {}, false});
  }

  /// What names the symbols that it defines uses the group of what it reads.
  void add(ReadOp read) {
    for (auto symbol : read.getSymbols().getAsRange<StringAttr>())
      readers[symbol.getValue()] = groupOf(read.getX());
  }

  void build() {
    for (Candidate &candidate : candidates)
      if (!candidate.ops.empty())
        build(candidate);
  }

private:
  /// The last group that the symbols which the op names are read from.
  int lastReader(Operation *op) const {
    int last = -1;
    forEachSymbolOf(op, [&](StringRef name) {
      if (auto reader = readers.find(name); reader != readers.end())
        last = std::max(last, reader->second);
    });
    return last;
  }

  /// An op over nothing but sources waits for its only user, whatever group that goes to, unless it is long.
  bool mayFloat(DlcOp op) {
    constexpr unsigned kMost = 8;
    unsigned size = 1;
    for (OpOperand &operand : op->getOpOperands())
      if (auto waiting = floating.find(operand.get().getDefiningOp()); waiting != floating.end())
        size += waiting->second;
      else if (!isNumber(operand) && op.readsData(operand.getOperandNumber()))
        return false;
    if (!op->hasOneUse() || op->use_begin()->getOwner()->getBlock() != op->getBlock() || !isSameLoop(*op->use_begin()) || size > kMost)
      return false;
    floating[op] = size;
    return true;
  }

  void put(Operation *op, int number) {
    for (Value operand : op->getOperands())
      if (floating.erase(operand.getDefiningOp()))
        put(operand.getDefiningOp(), number);
    candidates[number].ops.push_back(op);
    group[op] = number;
  }

  int groupOf(Value v) const {
    if (auto view = views.find(v); view != views.end())
      return view->second;
    if (auto fromDims = v.getDefiningOp<FromDimsOp>())
      return lastReader(fromDims);
    auto found = v.getDefiningOp() ? group.find(v.getDefiningOp()) : group.end();
    return found == group.end() ? -1 : found->second;
  }

  /// The last group that the sizes which a value holds, or has, are read from.
  int readerOf(Value v) const {
    if (auto fromDims = v.getDefiningOp<FromDimsOp>())
      return lastReader(fromDims);
    auto view = viewReaders.find(v);
    return view == viewReaders.end() ? -1 : view->second;
  }

  bool mayJoin(Operation *op, int number, ArrayRef<DimExpr> domain) const {
    // What is read from a group is not there before the whole group has run.
    if (llvm::any_of(op->getOperands(), [&](Value v) { return readerOf(v) == number; }))
      return false;
    const Candidate &candidate = candidates[number];
    if (!candidate.takesElementwise || candidate.ops.size() >= cap || ArrayRef(candidate.domain) != domain)
      return false;
    // A view of the group's own result would be read before it is written.
    return llvm::none_of(op->getOperands(), [&](Value v) {
      auto view = views.find(v);
      return view != views.end() && view->second == group.lookup(candidate.ops.front());
    });
  }

  static void build(Candidate &candidate) {
    llvm::SmallPtrSet<Operation *, 16> members(candidate.ops.begin(), candidate.ops.end());
    SmallVector<Value> results;
    SmallVector<Location> locations;
    for (Operation *op : candidate.ops) {
      locations.push_back(op->getLoc());
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !members.contains(user); }))
          results.push_back(result);
    }
    // At the last member every value that the group uses is there.
    OpBuilder builder(candidate.ops.back());
    Location loc = builder.getFusedLoc(locations);
    auto groupOp = GroupOp::create(builder, loc, TypeRange(ValueRange(results)));
    for (auto [inner, outer] : llvm::zip_equal(results, groupOp.getResults()))
      inner.replaceUsesWithIf(outer, [&](OpOperand &use) { return !members.contains(use.getOwner()); });
    Block *body = builder.createBlock(&groupOp.getBody());
    for (Operation *op : candidate.ops)
      op->moveBefore(body, body->end());
    builder.setInsertionPointToEnd(body);
    YieldOp::create(builder, loc, results);
  }

  unsigned cap;
  std::vector<Candidate> candidates;
  DenseMap<Operation *, int> group;
  DenseMap<Value, int> views, viewReaders;
  llvm::StringMap<int> readers; // of symbols
  DenseMap<Operation *, unsigned> floating; // ops in no group yet, with how many they are together with those that they wait for
};

/// Calls `visit` for the ops of the same block that `op` must stand behind: what defines its operands, and the reads that define
/// the symbols of its types and attributes.
void forEachUsed(Operation *op, const llvm::StringMap<Operation *> &reads, llvm::function_ref<void(Operation *)> visit) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *definition = operand.getDefiningOp(); definition && definition->getBlock() == op->getBlock())
        visit(definition);
    forEachSymbolOf(inner, [&](StringRef name) {
      if (Operation *read = reads.lookup(name))
        visit(read);
    });
  });
}

/// An operand of a group may be defined behind the group's first user: puts ops into an order of definitions before uses, as close
/// to the present one as that allows.
void sortByUse(Block &block) {
  llvm::StringMap<Operation *> reads;
  for (auto read : block.getOps<ReadOp>())
    for (auto symbol : read.getSymbols().getAsRange<StringAttr>())
      reads[symbol.getValue()] = read;
  DenseMap<Operation *, unsigned> missing; // uses (with repeats) whose definition is not placed yet
  DenseMap<Operation *, SmallVector<Operation *>> users;
  SmallVector<Operation *> order;
  for (Operation &op : block.without_terminator()) {
    order.push_back(&op);
    forEachUsed(&op, reads, [&](Operation *definition) {
      ++missing[&op];
      users[definition].push_back(&op);
    });
  }
  DenseMap<Operation *, unsigned> position;
  for (auto [i, op] : llvm::enumerate(order))
    position[op] = i;
  // Depth first from the front: an op goes where it stands unless it waits for a later one.
  SmallVector<Operation *> sorted, ready;
  for (Operation *op : order)
    if (missing.lookup(op) == 0)
      ready.push_back(op);
  auto later = [&](Operation *a, Operation *b) { return position[a] > position[b]; };
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    Operation *op = ready.pop_back_val();
    sorted.push_back(op);
    for (Operation *user : users.lookup(op))
      if (--missing[user] == 0) {
        ready.push_back(user);
        std::push_heap(ready.begin(), ready.end(), later);
      }
  }
  for (Operation *op : sorted)
    op->moveBefore(block.getTerminator());
}

class Fuse : public impl::FuseBase<Fuse> {
public:
  using FuseBase::FuseBase;

private:
  void runOnOperation() override {
    if (!isComplete())
      return signalPassFailure();
    fuse(getOperation().getBody().front());
  }

  /// One error for each kind of op that has no code yet.
  bool isComplete() {
    llvm::MapVector<OperationName, SmallVector<Operation *>> missing;
    getOperation().walk([&](DlcOp op) {
      if (op.form() == Form::Missing)
        missing[op->getName()].push_back(op);
    });
    for (auto &[name, ops] : missing) {
      InFlightDiagnostic error = ops.front()->emitError() << "dlc infers its shapes, but cannot generate code for it yet";
      if (ops.size() > 1)
        error << " (the same holds for " << ops.size() - 1 << " more)";
    }
    return missing.empty();
  }

  void fuse(Block &block) {
    copySources(block);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    Grouping grouping(cap);
    for (Operation &op : block) {
      for (Region &region : op.getRegions())
        fuse(region.front());
      if (auto dlcOp = dyn_cast<DlcOp>(op))
        grouping.add(dlcOp);
      else if (auto read = dyn_cast<ReadOp>(op))
        grouping.add(read);
      else if (op.getNumRegions() > 0)
        grouping.addBarrier(&op);
    }
    grouping.build();
    sortByUse(block);
  }
};

} // namespace
} // namespace dlc
