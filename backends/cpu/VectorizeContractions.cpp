// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// vectorize-contractions: sums of products become register tiles. A contraction, its fill and its epilogue are cut into tiles
// of `rows x columns`, whose accumulators stay in vector registers for the whole sum:
//
//   for n, m (rows x columns at a time; then one vector of columns; then single columns; then single rows):
//     acc[rows] = 0
//     for k: b = B[k, n..]; for each row: acc[row] += A[row, k] * b
//     the epilogue on the tile, as plain loops of a static size, which LLVM unrolls and vectorises
//
// The columns are the result's last dim and lie side by side in one operand. Where instead the terms of a sum lie side by side in
// both operands (A * B^T, a matrix times a vector), vectors run along the sum:
//
//     acc[rows][columns] = 0
//     for k (a vector at a time): acc[row][column] += A[row, k..] * B[column, k..]
//     the sums of the accumulators' lanes; then single terms
//
// Other contractions stay as they are.

#include "BodyEvaluator.h"
#include "LoopNest.h"
#include "Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// A contraction acc + a * b (with casts of a and b) whose loops have been told apart.
struct Contraction {
  linalg::GenericOp op;
  unsigned narrow = 0, wide = 1; // operand numbers: `wide` depends on the columns, `narrow` does not
  unsigned column = 0;           // loops
  std::optional<unsigned> row;
  std::optional<unsigned> term; // the loop over terms that lie side by side; else the columns do

  AffineMap map(unsigned operand) const { return linalg::GenericOp(op).getIndexingMapsArray()[operand]; }
};

/// Dims, each at most once, and the constant 0 where an operand is broadcast.
bool isSimple(AffineMap map) { return map.isProjectedPermutation(/*allowZeroInResults=*/true); }

std::optional<unsigned> lastDim(AffineMap map) {
  if (map.getNumResults())
    if (auto last = dyn_cast<AffineDimExpr>(map.getResults().back()))
      return last.getPosition();
  return std::nullopt;
}

bool uses(AffineMap map, unsigned loop) { return map.isFunctionOfDim(loop); }

bool isSumOfProducts(linalg::GenericOp op) {
  Block &body = *op.getBody();
  auto yield = cast<linalg::YieldOp>(body.getTerminator());
  Operation *sum = yield.getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum))
    return false;
  for (unsigned i : {0, 1})
    if (sum->getOperand(i) == body.getArgument(2) && body.getArgument(2).hasOneUse()) {
      Operation *product = sum->getOperand(1 - i).getDefiningOp();
      if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
        return false;
      return BodyEvaluator::isElementwise(op);
    }
  return false;
}

std::optional<Contraction> match(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || !op.getNumReductionLoops() || !isSumOfProducts(op) ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return std::nullopt;
  Contraction c;
  c.op = op;
  auto column = lastDim(c.map(2));
  if (!column || !c.map(2).isProjectedPermutation() || !isSimple(c.map(0)) || !isSimple(c.map(1)))
    return std::nullopt;
  c.column = *column;
  if (!uses(c.map(0), c.column) && lastDim(c.map(1)) == c.column)
    c.narrow = 0, c.wide = 1;
  else if (!uses(c.map(1), c.column) && lastDim(c.map(0)) == c.column)
    c.narrow = 1, c.wide = 0;
  else if (auto term = lastDim(c.map(0)); term && term == lastDim(c.map(1)) && !uses(c.map(2), *term) &&
                                          uses(c.map(0), c.column) != uses(c.map(1), c.column)) {
    c.term = term;
    c.wide = uses(c.map(1), c.column) ? 1 : 0;
    c.narrow = 1 - c.wide;
  } else
    return std::nullopt;
  // Rows: the last dim of the result, columns apart, that the wide operand does not see.
  for (AffineExpr e : llvm::reverse(c.map(2).getResults().drop_back())) {
    unsigned loop = cast<AffineDimExpr>(e).getPosition();
    if (uses(c.map(c.narrow), loop) && !uses(c.map(c.wide), loop)) {
      c.row = loop;
      break;
    }
  }
  return c;
}

/// The elementwise op that computes the contraction's tile further, or null.
linalg::GenericOp epilogueOf(linalg::GenericOp op) {
  Operation *user = nullptr;
  for (OpOperand &use : op->getUses()) {
    if (user && user != use.getOwner())
      return {};
    user = use.getOwner();
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (!generic || generic->getBlock() != op->getBlock() || generic.getNumParallelLoops() != generic.getNumLoops() ||
        !generic.getMatchingIndexingMap(&use).isPermutation())
      return {};
  }
  return dyn_cast_or_null<linalg::GenericOp>(user);
}

/// The value that all sums start with, or null when they start with what is in memory.
Value startOf(linalg::GenericOp contraction) {
  auto fill = contraction.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs()[0] : Value();
}

/// The innermost loop nest of one tile, in vectors. `op` is the contraction cut to static rows and columns and to size 1 in all
/// other parallel loops.
class TileEmitter final : LoopNest {
public:
  /// `into`: what the tile is written into. `vector`: lanes of a vector.
  TileEmitter(RewriterBase &rewriter, const Contraction &c, linalg::GenericOp op, Value into, int64_t rows, int64_t columns, int64_t vector)
      : LoopNest(rewriter, op.getLoc()), c(c), op(op), into(into), rows(rows), columns(columns), vector(vector) {}

  void emit() {
    rewriter.setInsertionPoint(op);
    begin(op.getNumLoops());
    one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    SmallVector<unsigned> reductions;
    op.getReductionDims(reductions);
    if (c.term)
      emitAlongTerms(reductions);
    else
      emitAlongColumns(reductions);
    rewriter.replaceOp(op, into);
  }

private:
  void emitAlongColumns(ArrayRef<unsigned> reductions) {
    Value start = startOf(c.op);
    SmallVector<Value> sums;
    for (int64_t i = 0; i < rows; ++i) {
      set(i, 0);
      sums.push_back(start ? widen(rewriter, loc, start, columns) : read(op.getDpsInits()[0], c.map(2), columns));
    }
    sums = loops(reductions, sums, [&](ValueRange before) {
      set(0, 0);
      Value wide = read(op->getOperand(c.wide), c.map(c.wide), columns);
      SmallVector<Value> after;
      for (auto [i, sum] : llvm::enumerate(before)) {
        set(i, 0);
        after.push_back(multiplyAdd(read(op->getOperand(c.narrow), c.map(c.narrow), 1), wide, sum));
      }
      return after;
    });
    for (int64_t i = 0; i < rows; ++i) {
      set(i, 0);
      write(sums[i]);
    }
  }

  void emitAlongTerms(ArrayRef<unsigned> reductions) {
    Type type = op.getBody()->getArgument(2).getType();
    Value start = startOf(c.op), none = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
    // Vectors of partial sums, then one number for each element.
    SmallVector<Value> sums(rows * columns, widen(rewriter, loc, none, vector));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        set(i, j);
        sums.push_back(start ? start : read(op.getDpsInits()[0], c.map(2), 1));
      }
    SmallVector<unsigned> outer(reductions);
    llvm::erase(outer, *c.term);
    sums = loops(outer, sums, [&](ValueRange before) {
      auto products = [&](int64_t lanes) {
        return [&, lanes](ValueRange accumulators) {
          SmallVector<Value> wide, after;
          for (int64_t j = 0; j < columns; ++j) {
            set(0, j);
            wide.push_back(read(op->getOperand(c.wide), c.map(c.wide), lanes));
          }
          for (int64_t i = 0; i < rows; ++i) {
            set(i, 0);
            Value narrow = read(op->getOperand(c.narrow), c.map(c.narrow), lanes);
            for (int64_t j = 0; j < columns; ++j)
              after.push_back(multiplyAdd(narrow, wide[j], accumulators[i * columns + j]));
          }
          return after;
        };
      };
      Value size = extentOf(*c.term);
      AffineExpr extent = rewriter.getAffineSymbolExpr(0);
      Value whole = affine::makeComposedAffineApply(rewriter, loc, extent.floorDiv(vector) * vector, {OpFoldResult(size)});
      SmallVector<Value> vectors = loop(*c.term, zero, whole, vector, before.take_front(rows * columns), products(vector));
      SmallVector<Value> numbers = loop(*c.term, whole, size, 1, before.drop_front(rows * columns), products(1));
      llvm::append_range(vectors, numbers);
      return vectors;
    });
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        auto add = [&](Value x, Value y) {
          return isa<FloatType>(type) ? Value(arith::AddFOp::create(rewriter, loc, x, y)) : Value(arith::AddIOp::create(rewriter, loc, x, y));
        };
        Value total = add(sums[(rows + i) * columns + j], combineLanes(rewriter, loc, sums[i * columns + j], add));
        set(i, j);
        write(total);
      }
  }

  void set(int64_t row, int64_t column) {
    if (c.row)
      indices[*c.row] = arith::ConstantIndexOp::create(rewriter, loc, row);
    indices[c.column] = arith::ConstantIndexOp::create(rewriter, loc, column);
  }
  Value read(Value from, AffineMap map, int64_t lanes) { return readLanes(rewriter, loc, from, at(map), lanes); }
  void write(Value value) {
    if (isa<VectorType>(value.getType()))
      into = vector::TransferWriteOp::create(rewriter, loc, value, into, at(c.map(2)), ArrayRef<bool>{true}).getResult();
    else
      into = tensor::InsertOp::create(rewriter, loc, value, into, at(c.map(2)));
  }

  /// The size of a reduction loop, which stands in either operand.
  Value extentOf(unsigned reduction) override {
    for (unsigned operand : {c.narrow, c.wide})
      if (auto dim = c.map(operand).getResultPosition(getAffineDimExpr(reduction, rewriter.getContext())))
        return getValueOrCreateConstantIndexOp(rewriter, loc, tensor::getMixedSize(rewriter, loc, op->getOperand(operand), *dim));
    llvm_unreachable("each loop of a contraction runs along an operand");
  }

  /// The body of the contraction: sum + narrow * wide.
  Value multiplyAdd(Value narrow, Value wide, Value sum) {
    BodyEvaluator body(rewriter, op);
    body.setArgument(c.narrow, narrow);
    body.setArgument(c.wide, wide);
    body.setArgument(2, sum);
    Operation *add = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
    Operation *term = add->getOperand(add->getOperand(0) == op.getBody()->getArgument(2) ? 1 : 0).getDefiningOp();
    if (!isa<arith::MulFOp>(term) || !term->hasOneUse()) {
      body.run();
      return body.lookup(add->getResult(0));
    }
    // fmuladd: fused where that is one instruction, a product and a sum elsewhere.
    body.run({add, term});
    Value x = widenLike(rewriter, loc, body.lookup(term->getOperand(0)), sum), y = widenLike(rewriter, loc, body.lookup(term->getOperand(1)), sum);
    if (isa<VectorType>(sum.getType()))
      return vector::FMAOp::create(rewriter, loc, x, y, sum);
    return LLVM::FMulAddOp::create(rewriter, loc, x, y, sum);
  }

  const Contraction &c;
  linalg::GenericOp op;
  Value into;
  int64_t rows, columns, vector;
  Value one;
};

/// Cuts a contraction and its epilogue into register tiles.
class ContractionTiler {
public:
  ContractionTiler(RewriterBase &rewriter, const Contraction &c, int64_t rows, int64_t columns, int64_t vector)
      : rewriter(rewriter), c(c), root(c.op), rows(c.row ? rows : 1), columns(columns), vector(vector) {}

  void run() {
    // From loops of the contraction to loops of the root, through the maps of the values between them.
    SmallVector<std::optional<unsigned>> rootLoop(root.getNumLoops());
    for (unsigned i = 0; i < rootLoop.size(); ++i)
      rootLoop[i] = i;
    while (linalg::GenericOp consumer = epilogueOf(root)) {
      AffineMap from = root.getIndexingMapMatchingResult(root->getResult(0)), to;
      for (OpOperand &operand : consumer->getOpOperands())
        if (operand.get() == root->getResult(0))
          to = consumer.getMatchingIndexingMap(&operand);
      for (auto &loop : rootLoop) {
        if (!loop)
          continue;
        std::optional<unsigned> dim = from.getResultPosition(getAffineDimExpr(*loop, from.getContext()));
        loop = dim ? std::optional<unsigned>(to.getDimPosition(*dim)) : std::nullopt;
      }
      root = consumer;
      if (root->getNumResults() != 1)
        break;
    }
    column = *rootLoop[c.column];
    if (c.row)
      row = rootLoop[*c.row];

    rewriter.setInsertionPoint(root);
    Location loc = root.getLoc();
    auto tiling = cast<TilingInterface>(root.getOperation());
    for (Range &range : tiling.getIterationDomain(rewriter))
      extents.push_back(range.size);
    SmallVector<unsigned> order;
    for (unsigned i = 0; i < extents.size(); ++i)
      if (i != column && i != row && root.getIteratorTypesArray()[i] == utils::IteratorType::parallel)
        order.push_back(i);
    order.push_back(column);
    if (row)
      order.push_back(*row);
    offsets.assign(extents.size(), rewriter.getIndexAttr(0));
    sizes = extents;
    zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    SmallVector<Value> into(root.getDpsInits());
    if (root == c.op && startOf(c.op))
      into[0] = into[0].getDefiningOp<linalg::FillOp>().getOutputs()[0];
    SmallVector<Value> results = nest(order, into);
    rewriter.replaceOp(root, results);
  }

private:
  /// How the loop is gone through: pieces of one size each, from the largest on.
  SmallVector<int64_t> steps(unsigned loop) const {
    if (loop == column)
      return c.term ? distinct({columns, 1}) : distinct({columns, vector, 1});
    if (row && loop == *row)
      return distinct({rows, 1});
    return {1};
  }

  static SmallVector<int64_t> distinct(SmallVector<int64_t> sizes) {
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  }

  SmallVector<Value> nest(ArrayRef<unsigned> order, SmallVector<Value> results) {
    if (order.empty())
      return emitTile(results);
    Location loc = root.getLoc();
    unsigned loop = order.front();
    OpFoldResult begin = rewriter.getIndexAttr(0);
    AffineExpr first = rewriter.getAffineSymbolExpr(0), extent = rewriter.getAffineSymbolExpr(1);
    for (int64_t step : steps(loop)) {
      // As many whole pieces of this size as are left.
      OpFoldResult end = affine::makeComposedFoldedAffineApply(rewriter, loc, first + (extent - first).floorDiv(step) * step,
                                                               {begin, extents[loop]});
      if (getConstantIntValue(begin) && getConstantIntValue(end) && *getConstantIntValue(begin) >= *getConstantIntValue(end)) {
        begin = end;
        continue;
      }
      auto each = scf::ForOp::create(rewriter, loc, getValueOrCreateConstantIndexOp(rewriter, loc, begin),
                                     getValueOrCreateConstantIndexOp(rewriter, loc, end),
                                     arith::ConstantIndexOp::create(rewriter, loc, step), results);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(each.getBody());
      offsets[loop] = each.getInductionVar();
      sizes[loop] = rewriter.getIndexAttr(step);
      SmallVector<Value> inner = nest(order.drop_front(), SmallVector<Value>(each.getRegionIterArgs()));
      scf::YieldOp::create(rewriter, loc, inner);
      results.assign(each.getResults().begin(), each.getResults().end());
      begin = end;
    }
    return results;
  }

  SmallVector<Value> emitTile(ArrayRef<Value> into) {
    OpBuilder::InsertionGuard guard(rewriter);
    Location loc = root.getLoc();
    auto whole = cast<linalg::GenericOp>(rewriter.clone(*root));
    whole.getOutputsMutable().assign(into);
    auto tiling = cast<TilingInterface>(whole.getOperation());
    auto tile = tiling.getTiledImplementation(rewriter, offsets, sizes);
    SmallVector<Value> results(into);
    SmallVector<Operation *> inserts;
    for (unsigned i = 0; i < results.size(); ++i) {
      SmallVector<OpFoldResult> at, size, strides;
      (void)tiling.getResultTilePosition(rewriter, i, offsets, sizes, at, size);
      strides.assign(at.size(), rewriter.getIndexAttr(1));
      results[i] = tensor::InsertSliceOp::create(rewriter, loc, tile->tiledValues[i], results[i], at, size, strides);
    }
    Operation *tiledContraction = root == c.op ? tile->tiledOps[0] : nullptr;
    // Producers come along: the contraction, its fill, and elementwise ones.
    SmallVector<Operation *> slices(tile->generatedSlices);
    while (!slices.empty()) {
      auto slice = dyn_cast<tensor::ExtractSliceOp>(slices.pop_back_val());
      if (!slice)
        continue;
      auto producer = dyn_cast<OpResult>(slice.getSource());
      auto generic = producer ? dyn_cast<linalg::LinalgOp>(producer.getOwner()) : linalg::LinalgOp();
      if (!generic || (generic != c.op && generic.getNumReductionLoops()))
        continue;
      rewriter.setInsertionPoint(slice);
      auto fused = tensor::replaceExtractSliceWithTiledProducer(rewriter, slice, producer);
      if (failed(fused))
        continue;
      rewriter.replaceOp(slice, fused->tiledValues[0]);
      llvm::append_range(slices, fused->generatedSlices);
      if (generic == c.op)
        tiledContraction = fused->tiledOps[0];
    }
    rewriter.eraseOp(whole);
    int64_t tileColumns = *getConstantIntValue(sizes[column]), tileRows = row ? *getConstantIntValue(sizes[*row]) : 1;
    // The root writes to where it always did; sums that an epilogue takes further have a place of their own.
    auto tiled = cast<linalg::GenericOp>(tiledContraction);
    Value place = tiled.getDpsInits()[0];
    if (root != c.op) {
      rewriter.setInsertionPoint(tiled);
      auto type = cast<RankedTensorType>(place.getType());
      place = tensor::EmptyOp::create(rewriter, loc, type.getShape(), type.getElementType());
    }
    TileEmitter(rewriter, c, tiled, place, tileRows, tileColumns, vector).emit();
    return results;
  }

  RewriterBase &rewriter;
  const Contraction &c;
  linalg::GenericOp root;
  int64_t rows, columns, vector;
  unsigned column = 0; // loops of the root
  std::optional<unsigned> row;
  SmallVector<OpFoldResult> extents, offsets, sizes;
  Value zero;
};

struct VectorizeContractions : PassWrapper<VectorizeContractions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VectorizeContractions)
  StringRef getArgument() const final { return "vectorize-contractions"; }
  StringRef getDescription() const final { return "Compute sums of products in register tiles"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect, scf::SCFDialect, tensor::TensorDialect,
                    vector::VectorDialect, LLVM::LLVMDialect>();
  }

  void runOnOperation() final {
    auto target = targetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      SmallVector<linalg::GenericOp> ops;
      func.walk([&](linalg::GenericOp op) { ops.push_back(op); });
      auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr);
      for (linalg::GenericOp op : ops) {
        auto c = match(op);
        if (!c)
          continue;
        unsigned bits = op.getBody()->getArgument(2).getType().getIntOrFloatBitWidth();
        // As many accumulators as leave registers for what is read.
        bool many = target->vectorRegisters >= 32;
        int64_t vector = std::max<int64_t>(target->lanes(std::max(bits, 8u)), 2);
        int64_t rows = c->term ? 4 : many ? 8 : target->fma ? 6 : 4, columns = c->term ? (many ? 4 : 2) : 2 * vector;
        if (schedule && schedule.getRegisters().size() == op.getNumLoops()) {
          columns = std::max<int64_t>(schedule.getRegisters()[c->column], 1);
          rows = c->row ? std::max<int64_t>(schedule.getRegisters()[*c->row], 1) : 1;
          if (!c->term)
            vector = std::min(vector, columns);
        }
        ContractionTiler(rewriter, *c, rows, columns, vector).run();
      }
    }
  }
};

} // namespace

std::unique_ptr<Pass> createVectorizeContractionsPass() { return std::make_unique<VectorizeContractions>(); }

} // namespace dlc::cpu
