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

/// A group in the making. Either at most one op that is not element-wise, first, then element-wise ops over its
/// result's dims
/// (`domain`); or row-wise: reductions along the `rowAxes` innermost dims of `domain`, and element-wise ops over rows
/// or over what the reductions leave of each.
struct Candidate {
  SmallVector<Operation *> ops;
  SmallVector<DimExpr> domain;
  bool takesElementwise;
  unsigned rowAxes = 0;

  ArrayRef<DimExpr> outer() const { return ArrayRef(domain).drop_back(rowAxes); }
  ArrayRef<DimExpr> row() const { return ArrayRef(domain).take_back(rowAxes); }
};

/// What a value of a row-wise group has for each row: the row, one number, or one number under dims of 1 in place of
/// the row's.
enum class Share { None, Row, Number, SpreadNumber };

Share shareOf(const Candidate &candidate, ArrayRef<DimExpr> dims) {
  if (dims == ArrayRef(candidate.domain))
    return Share::Row;
  if (dims == candidate.outer())
    return Share::Number;
  bool isSpread = dims.size() == candidate.domain.size() && dims.drop_back(candidate.rowAxes) == candidate.outer() &&
                  llvm::all_of(dims.take_back(candidate.rowAxes), [](DimExpr e) { return e.isConstant(1); });
  return isSpread ? Share::SpreadNumber : Share::None;
}

/// Whether there are so few and so long rows that the element-wise ops had better go over threads without the
/// reduction.
bool hasFewLongRows(ArrayRef<DimExpr> domain, unsigned rowAxes) {
  auto sizeOf = [&](ArrayRef<DimExpr> dims) {
    DimExpr product = productOfDims(domain.front().getContext(), dims);
    return product ? product.getConstant() : std::nullopt;
  };
  std::optional<int64_t> rows = sizeOf(domain.drop_back(rowAxes)), length = sizeOf(domain.take_back(rowAxes));
  return rows && length && *rows <= 4 && *length >= 64 * 1024;
}

bool isScalar(Operation *op) {
  auto dlcOp = dyn_cast<DlcOp>(op);
  return dlcOp && dlcOp.form() == Form::Scalar;
}

/// Element-wise, and made from nothing in memory: indices along an axis, a repeated number.
bool isSource(Operation *op) {
  return isScalar(op) && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           return splatOf(operand.get()) || !cast<DlcOp>(op).readsData(operand.getOperandNumber());
         });
}

/// Whether an element of the user's result takes just one element of the operand, and both are element-wise.
bool isSameLoop(OpOperand &operand) {
  Operation *user = operand.getOwner();
  return isScalar(user) && dimsOf(operand.get().getType()) == dimsOf(user->getResult(0).getType());
}

/// Whether element-wise ops over the result of an op with this role can follow in its group.
bool mayHaveEpilogue(Role role) {
  return role == Role::Contraction || role == Role::Convolution || role == Role::Window || role == Role::Reduction;
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

/// Whether all that reads the op can compute its elements at the indices that it needs.
bool isReadByElements(Operation *op) {
  return !op->use_empty() && llvm::all_of(op->getUses(), [&](OpOperand &use) {
    auto user = dyn_cast<DlcOp>(use.getOwner());
    return user && user->getBlock() == op->getBlock() && (user.form() == Form::Scalar || user.isRemap());
  });
}

/// Marks ops that only rename elements, and element-wise ops between such, to be computed where they are read; each for one reader. So
/// slices, concatenations and transposes of rows (rotary embeddings are made of them) need no memory of their own.
void inlineRemaps(Block &block) {
  constexpr unsigned kMost = 16;
  DenseMap<Operation *, unsigned> sizes; // of what is computed with the op
  for (Operation &op : block) {
    auto dlcOp = dyn_cast<DlcOp>(op);
    if (!dlcOp || op.getNumResults() != 1 || !isReadByElements(&op))
      continue;
    unsigned size = 1;
    bool readsInlined = false, readsSources = false;
    for (OpOperand &operand : op.getOpOperands()) {
      Operation *definition = operand.get().getDefiningOp();
      if (!definition || splatOf(operand.get()) || !dlcOp.readsData(operand.getOperandNumber()))
        continue;
      if (auto known = sizes.find(definition); known != sizes.end()) {
        readsInlined = true;
        size += known->second;
      }
      readsSources |= isSource(definition);
    }
    bool isEachOnce = op.hasOneUse(); // an element-wise op is not computed twice
    if (size <= kMost && !readsSources && (dlcOp.isRemap() || (dlcOp.form() == Form::Scalar && readsInlined && isEachOnce &&
                                                              cast<DlcOp>(*op.user_begin()).isRemap())))
      sizes[&op] = size;
  }
  // From the back, so that each reader has its own copies of all that it reads.
  Builder b(block.getParentOp()->getContext());
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!sizes.contains(&op))
      continue;
    op.setAttr(kInlineAttr, b.getUnitAttr());
    for (OpOperand &use : llvm::make_early_inc_range(op.getUses()))
      if (!op.hasOneUse()) {
        OpBuilder builder(&op);
        builder.setInsertionPointAfter(&op);
        use.set(builder.clone(op)->getResult(0));
      }
  }
}

/// Groups are numbered as they start, and a group uses only results of groups with smaller numbers. That is kept as follows: an
/// op joins only the group with the largest number among those that its operands come from. So there are no circles, and one
/// walk is enough.
class Grouping {
public:
  /// `alone`: every op is a group of its own, sources too.
  Grouping(unsigned cap, bool alone) : cap(alone ? 1 : cap), alone(alone) {}

  void add(DlcOp op) {
    Form form = op.form();
    if (form == Form::Host)
      return;
    if (op->hasAttr(kInlineAttr)) { // goes to whoever reads it
      inlined[op] = lastRead(op);
      return;
    }
    int last = lastRead(op), lastInlined = -1;
    for (Value operand : op->getOperands())
      if (auto found = inlined.find(operand.getDefiningOp()); found != inlined.end())
        lastInlined = std::max(lastInlined, found->second);
    bool readsInlined = llvm::any_of(op->getOperands(), [&](Value v) { return inlined.contains(v.getDefiningOp()); });
    if (form == Form::View) { // renames its operand's memory; counts as a part of its group for the order
      int reader = std::max(lastReader(op), readerOf(op->getOperand(0)));
      views[op->getResult(0)] = std::max(last, reader);
      viewReaders[op->getResult(0)] = reader;
      return;
    }
    bool isElementwise = form == Form::Scalar;
    if (isElementwise && !alone && !readsInlined && mayFloat(op))
      return;
    SmallVector<DimExpr> domain = dimsOf(op->getResult(0).getType());
    unsigned rowAxes = rowAxesOf(op);
    // What is read at other indices has to be there before: it comes from another group.
    bool mayBeLast = !readsInlined || (last > lastInlined && candidates[last].rowAxes == 0 && llvm::all_of(candidates[last].ops, [](Operation *member) {
      return isScalar(member) || member->hasAttr(kInlineAttr);
    }));
    if (isElementwise && !alone && !(last >= 0 && mayBeLast && mayJoin(op, last, domain)))
      if (int beside = groupOfSibling(op, std::max(last, lastInlined), domain); beside >= 0) {
        put(op, beside);
        return;
      }
    if (last >= 0 && mayBeLast && (isElementwise ? mayJoin(op, last, domain) : rowAxes > 0 && mayReduce(op, last, rowAxes))) {
      candidates[last].rowAxes = std::max(candidates[last].rowAxes, rowAxes);
    } else {
      Role role = op.role();
      last = candidates.size();
      if (rowAxes > 0)
        domain = dimsOf(op->getOperand(0).getType());
      candidates.push_back(
          {{}, std::move(domain), isElementwise || (readsInlined && op.isRemap()) || mayHaveEpilogue(role), rowAxes});
    }
    put(op, last);
    if (isElementwise && !alone)
      absorbInto(last, op);
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
  /// The last group that the op's operands come from.
  int lastRead(DlcOp op) const {
    int last = -1;
    for (OpOperand &operand : op->getOpOperands())
      if (op.readsData(operand.getOperandNumber()))
        last = std::max(last, groupOf(operand.get()));
    return last;
  }

  /// Element-wise ops that only this group reads, over its dims, become part of it: `op`, which has just joined, is the last to read them.
  void absorbInto(int number, Operation *op) {
    Candidate &candidate = candidates[number];
    if (candidate.rowAxes > 0)
      return;
    for (Value operand : op->getOperands()) {
      auto found = operand.getDefiningOp() ? group.find(operand.getDefiningOp()) : group.end();
      if (found == group.end() || found->second == number)
        continue;
      int from = found->second;
      Candidate &other = candidates[from];
      auto isPlain = [](Operation *member) { return isScalar(member) && !member->hasAttr(kInlineAttr); };
      // At its own indices: not by what is computed at others, or by an op that is not element-wise.
      auto isReadHere = [&](Operation *member) {
        return llvm::all_of(member->getUsers(), [&](Operation *user) {
          auto place = group.find(user);
          return place != group.end() && (place->second == number || place->second == from) && isPlain(user);
        });
      };
      if (other.rowAxes > 0 || other.domain != candidate.domain || candidate.ops.size() + other.ops.size() > cap ||
          !llvm::all_of(other.ops, isPlain) || !llvm::all_of(other.ops, isReadHere))
        continue;
      // Behind an op that is not element-wise, which is the first of its group.
      auto *at = candidate.ops.begin() + (isScalar(candidate.ops.front()) || candidate.ops.front()->hasAttr(kInlineAttr) ? 0 : 1);
      candidate.ops.insert(at, other.ops.begin(), other.ops.end());
      for (Operation *member : other.ops)
        group[member] = number;
      other.ops.clear();
    }
  }

  /// A group of element-wise ops that the op's only user will join too, behind all that the op reads.
  int groupOfSibling(DlcOp op, int after, ArrayRef<DimExpr> domain) const {
    if (!op->hasOneUse() || !isSameLoop(*op->use_begin()))
      return -1;
    for (Value other : op->use_begin()->getOwner()->getOperands()) {
      int number = groupOf(other);
      if (number > after && other != op->getResult(0) && isMember(other, number) && candidates[number].rowAxes == 0 &&
          llvm::all_of(candidates[number].ops, [](Operation *member) { return isScalar(member) || member->hasAttr(kInlineAttr); }) &&
          mayJoin(op, number, domain))
        return number;
    }
    return -1;
  }

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
      else if (!splatOf(operand.get()) && op.readsData(operand.getOperandNumber()))
        return false;
    if (!op->hasOneUse() || op->use_begin()->getOwner()->getBlock() != op->getBlock() || !isSameLoop(*op->use_begin()) || size > kMost)
      return false;
    floating[op] = size;
    return true;
  }

  void put(Operation *op, int number) {
    for (Value operand : op->getOperands())
      if (floating.erase(operand.getDefiningOp()) || inlined.erase(operand.getDefiningOp()))
        put(operand.getDefiningOp(), number);
    candidates[number].ops.push_back(op);
    group[op] = number;
  }

  int groupOf(Value v) const {
    if (auto view = views.find(v); view != views.end())
      return view->second;
    if (auto fromDims = v.getDefiningOp<FromDimsOp>())
      return lastReader(fromDims);
    if (auto found = inlined.find(v.getDefiningOp()); found != inlined.end())
      return found->second;
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
    if (!candidate.takesElementwise || candidate.ops.size() >= cap)
      return false;
    if (candidate.rowAxes > 0)
      return fitsRows(op, number, candidate.rowAxes);
    if (ArrayRef(candidate.domain) != domain)
      return false;
    // A view of the group's own result would be read before it is written.
    return llvm::none_of(op->getOperands(), [&](Value v) {
      auto view = views.find(v);
      return view != views.end() && view->second == group.lookup(candidate.ops.front());
    });
  }

  bool isMember(Value v, int number) const {
    auto found = v.getDefiningOp() ? group.find(v.getDefiningOp()) : group.end();
    return found != group.end() && found->second == number;
  }

  /// What of the group's own values a view renames; null for others.
  Value memberBehindView(Value v, int number) const {
    auto view = dyn_cast_or_null<DlcOp>(v.getDefiningOp());
    if (!view || view.form() != Form::View)
      return {};
    Value source = view->getOperand(0);
    return isMember(source, number) ? source : memberBehindView(source, number);
  }

  /// Whether an element-wise op computes row by row, given that the group's rows are the `rowAxes` innermost dims of
  /// its domain.
  bool fitsRows(Operation *op, int number, unsigned rowAxes) const {
    Candidate candidate = candidates[number];
    candidate.rowAxes = rowAxes;
    Share share = shareOf(candidate, dimsOf(op->getResult(0).getType()));
    if (share == Share::None)
      return false;
    if (share == Share::Row && !llvm::all_of(candidate.ops, isScalar) && hasFewLongRows(candidate.domain, rowAxes))
      return false;
    bool readsData = false;
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (splatOf(v) || !cast<DlcOp>(op).readsData(operand.getOperandNumber()))
        continue;
      if (floating.contains(v.getDefiningOp())) {
        if (rowAxes > 1) // it may be an index, and one along one of several dims that make a row is none along the row
          return false;
        continue;
      }
      readsData = true;
      SmallVector<DimExpr> dims = dimsOf(v.getType());
      Value behind = memberBehindView(v, number);
      if (behind || isMember(v, number)) {
        Share own = shareOf(candidate, dims);
        // A view only gives a number other dims: one of rows would be read before it is written.
        if (behind &&
            (own == Share::Row || own == Share::None || shareOf(candidate, dimsOf(behind.getType())) == Share::Row))
          return false;
        // One number for each row, where dims are aligned at their ends: only under dims of 1 does it go with its row.
        if (own != share && own != Share::SpreadNumber && !(own == Share::Number && candidate.outer().empty()))
          return false;
      } else if (share == Share::Row) {
        // All of a row, or one element for it.
        SmallVector<DimExpr> inner(rowAxes, constantDim(op->getContext(), 1));
        size_t count = std::min<size_t>(dims.size(), rowAxes);
        std::copy(dims.end() - count, dims.end(), inner.end() - count);
        if (ArrayRef(inner) != candidate.row() && !llvm::all_of(inner, [](DimExpr e) { return e.isConstant(1); }))
          return false;
      }
    }
    return readsData || rowAxes == 1;
  }

  /// Whether a reduction of the `rowAxes` innermost dims joins the group whose value it reduces.
  bool mayReduce(DlcOp op, int number, unsigned rowAxes) const {
    const Candidate &candidate = candidates[number];
    Value x = op->getOperand(0);
    if (candidate.ops.size() >= cap || !isMember(x, number) ||
        ArrayRef(candidate.domain) != ArrayRef(dimsOf(x.getType())))
      return false;
    if (candidate.rowAxes > 0)
      return candidate.rowAxes == rowAxes;
    return !hasFewLongRows(candidate.domain, rowAxes) && llvm::all_of(candidate.ops, [&](Operation *member) {
      return isScalar(member) && fitsRows(member, number, rowAxes);
    });
  }

  /// Views of the group's own values become part of it.
  void takeViews(Candidate &candidate) {
    SmallVector<Operation *> ops;
    llvm::SmallPtrSet<Operation *, 16> members(candidate.ops.begin(), candidate.ops.end());
    DenseMap<Value, Value> own;
    std::function<Value(Value, Operation *)> inside = [&](Value v, Operation *user) -> Value {
      Operation *view = v.getDefiningOp();
      if (!view || members.contains(view) || !views.contains(v))
        return v;
      if (Value known = own.lookup(v))
        return known;
      Value source = inside(view->getOperand(0), user);
      if (!source.getDefiningOp() || !members.contains(source.getDefiningOp()))
        return v;
      OpBuilder builder(user);
      Operation *copy = builder.clone(*view);
      copy->setOperand(0, source);
      members.insert(copy);
      ops.push_back(copy);
      return own[v] = copy->getResult(0);
    };
    for (Operation *op : candidate.ops) {
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *view = operand.get().getDefiningOp();
        operand.set(inside(operand.get(), op));
        if (view && view->use_empty() && views.contains(view->getResult(0))) {
          views.erase(view->getResult(0));
          view->erase();
        }
      }
      ops.push_back(op);
    }
    candidate.ops = std::move(ops);
  }

  void build(Candidate &candidate) {
    takeViews(candidate);
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
  bool alone;
  std::vector<Candidate> candidates;
  DenseMap<Operation *, int> group;
  DenseMap<Value, int> views, viewReaders;
  llvm::StringMap<int> readers; // of symbols
  DenseMap<Operation *, int> inlined; // ops to be computed where they are read, until they are put there; the last group that they read
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
    if (fusion) {
      copySources(block);
      inlineRemaps(block);
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    Grouping grouping(cap, /*alone=*/!fusion);
    for (Operation &op : block) {
      if (isa<IfOp>(op))
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
