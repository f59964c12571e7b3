// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// tile-kernels: makes results compute in place in their destinations, and cuts the ops that yield them into the tiles that the
// schedule says, with their producers fused in: one scf.forall over the tiles of the launch (several with the same tiles, where
// results are independent). A kernel that cannot be cut stays whole.

#include "Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

/// Makes `operand`, an init, start from `destination` where what it holds before is not read, following the chain of inits.
void bindInit(OpOperand &operand, Value destination, RewriterBase &rewriter) {
  Value init = operand.get();
  if (init == destination || init.getType() != destination.getType())
    return;
  Operation *op = init.getDefiningOp();
  auto linalgOp = dyn_cast<linalg::LinalgOp>(operand.getOwner());
  if (isa_and_nonnull<tensor::EmptyOp>(op) ||
      (linalgOp && linalgOp.getDpsInits().size() && linalgOp.isDpsInit(&operand) && !linalgOp.payloadUsesValueFromOperand(&operand))) {
    rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(destination); });
    return;
  }
  if (!op) {
    // An operand, which is not to be written: the destination starts as a copy of it.
    rewriter.setInsertionPoint(operand.getOwner());
    auto copy = linalg::CopyOp::create(rewriter, operand.getOwner()->getLoc(), init, destination);
    rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(copy->getResult(0)); });
    return;
  }
  // The chain goes on through an op that writes its own init. One with other uses is made anew for this one: a fill for
  // instance, that CSE shared.
  auto style = dyn_cast<DestinationStyleOpInterface>(op);
  if (style && !init.hasOneUse()) {
    if (!isa<linalg::FillOp>(op))
      return;
    rewriter.setInsertionPoint(op);
    Operation *copy = rewriter.clone(*op);
    rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(copy->getResult(cast<OpResult>(init).getResultNumber())); });
    style = cast<DestinationStyleOpInterface>(copy);
  }
  if (style)
    return bindInit(*style.getTiedOpOperand(cast<OpResult>(operand.get())), destination, rewriter);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return bindInit(loop.getInitArgsMutable()[cast<OpResult>(init).getResultNumber()], destination, rewriter);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return bindInit(insert.getDestMutable(), destination, rewriter);
}

void bindDestinations(func::FuncOp func, func::ReturnOp ret, RewriterBase &rewriter) {
  unsigned operands = func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt();
  SmallPtrSet<Value, 4> bound;
  for (OpOperand &yielded : ret->getOpOperands())
    if (bound.insert(yielded.get()).second)
      if (Operation *op = yielded.get().getDefiningOp()) {
        Value destination = func.getArgument(operands + yielded.getOperandNumber());
        unsigned number = cast<OpResult>(yielded.get()).getResultNumber();
        if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
          bindInit(*style.getTiedOpOperand(cast<OpResult>(yielded.get())), destination, rewriter);
        else if (auto loop = dyn_cast<scf::ForOp>(op))
          bindInit(loop.getInitArgsMutable()[number], destination, rewriter);
        else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
          bindInit(insert.getDestMutable(), destination, rewriter);
      }
}

/// For each loop of `op` the size of a tile, 0 where it is not cut. Nothing when the schedule does not fit the op.
std::optional<SmallVector<int64_t>> tilesOfLoops(TilingInterface op, ArrayRef<int64_t> tiles) {
  SmallVector<int64_t> sizes;
  unsigned dim = 0;
  for (utils::IteratorType type : op.getLoopIteratorTypes()) {
    bool parallel = type == utils::IteratorType::parallel;
    if (parallel && dim >= tiles.size())
      return std::nullopt;
    sizes.push_back(parallel ? tiles[dim++] : 0);
  }
  if (dim != tiles.size())
    return std::nullopt;
  return sizes;
}

/// Different tiles must touch different elements: each loop that is cut runs along a dim.
bool coversCutLoops(AffineMap map, ArrayRef<int64_t> sizes) {
  for (auto [loop, size] : llvm::enumerate(sizes))
    if (size && !llvm::is_contained(map.getResults(), getAffineDimExpr(loop, map.getContext())))
      return false;
  return true;
}

class KernelTiler {
public:
  KernelTiler(func::FuncOp func, ArrayRef<int64_t> tiles)
      : func(func), ret(cast<func::ReturnOp>(func.getBody().front().getTerminator())), tiles(tiles), rewriter(func.getContext()) {}

  void run() {
    bindDestinations(func, ret, rewriter);
    if (llvm::all_of(tiles, [](int64_t t) { return t == 0; }) || !findRoots())
      return;
    // From the last one: it may take those before it along.
    for (Operation *root : llvm::reverse(roots))
      if (!taken.contains(root) && !tile(root))
        return;
  }

private:
  /// The ops that yield, in the order of the block; false unless all of them can be cut.
  bool findRoots() {
    // Nothing to cut where nothing is computed, by a root or by what it takes along. (A size of 0 means something else to upstream.)
    for (auto op : func.getBody().front().getOps<linalg::LinalgOp>())
      if (llvm::is_contained(op.getStaticLoopRanges(), 0))
        return false;
    SmallPtrSet<Operation *, 4> set;
    for (Value yielded : ret.getOperands()) {
      auto op = dyn_cast_or_null<TilingInterface>(yielded.getDefiningOp());
      std::optional<SmallVector<int64_t>> sizes;
      if (!op || !(sizes = tilesOfLoops(op, tiles)))
        return false;
      if (llvm::is_contained(cast<RankedTensorType>(yielded.getType()).getShape(), 0))
        return false;
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op.getOperation()))
        for (OpOperand &init : linalgOp.getDpsInitsMutable())
          if (!coversCutLoops(linalgOp.getMatchingIndexingMap(&init), *sizes))
            return false;
      set.insert(op);
    }
    for (Operation &op : func.getBody().front())
      if (set.contains(&op))
        roots.push_back(&op);
    // A root may feed another one only element by element, directly: then both come from one tile.
    for (auto [i, root] : llvm::enumerate(roots))
      for (Operation *user : root->getUsers()) {
        if (user == ret)
          continue;
        auto consumer = dyn_cast<linalg::GenericOp>(user);
        if (!consumer || !set.contains(consumer) || !isa<linalg::LinalgOp>(root))
          return false;
        auto sizes = *tilesOfLoops(cast<TilingInterface>(user), tiles);
        for (OpOperand &operand : consumer->getOpOperands())
          if (operand.get().getDefiningOp() == root) {
            AffineMap map = consumer.getMatchingIndexingMap(&operand);
            if (!map.isProjectedPermutation() || !coversCutLoops(map, sizes))
              return false;
          }
        takenBy[root] = user;
      }
    return true;
  }

  bool tile(Operation *root) {
    SmallVector<OpFoldResult> sizes;
    auto loopTiles = tilesOfLoops(cast<TilingInterface>(root), tiles);
    for (int64_t size : *loopTiles)
      sizes.push_back(rewriter.getIndexAttr(size));
    scf::SCFTileAndFuseOptions options;
    options.tilingOptions.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp).setTileSizes(sizes);
    options.setFusionControlFn([&](tensor::ExtractSliceOp, OpResult producer,
                                   bool) -> std::optional<scf::SCFTileAndFuseOptions::ControlFnResult> {
      bool yields = takenBy.contains(producer.getOwner());
      if (yields)
        taken.insert(producer.getOwner());
      return scf::SCFTileAndFuseOptions::ControlFnResult{yields};
    });
    rewriter.setInsertionPoint(root);
    auto result = scf::tileConsumerAndFuseProducersUsingSCF(rewriter, cast<TilingInterface>(root), options);
    if (failed(result) || result->loops.empty())
      return false;
    auto forall = cast<scf::ForallOp>(result->loops.front());
    forall->setAttr(kCutAttr, rewriter.getUnitAttr());
    useOwnDestinations(forall);
    for (auto [from, to] : result->replacements)
      rewriter.replaceUsesWithIf(from, to, [&](OpOperand &use) { return use.getOwner() == ret; });
    // Gone, even if they may raise a status: the tiles do that now.
    SmallVector<Operation *> originals{root};
    llvm::append_range(originals, llvm::reverse(result->fusedProducers));
    for (bool erased = true; std::exchange(erased, false);)
      for (Operation *&op : originals)
        if (op && op->use_empty()) {
          takenBy.erase(op);
          rewriter.eraseOp(std::exchange(op, nullptr));
          erased = true;
        }
    dropUnusedResults(forall);
    return true;
  }

  /// A result that nobody takes (the values that go with the indices of an arg-max) needs memory for a tile only.
  void dropUnusedResults(scf::ForallOp forall) {
    for (auto [result, argument] : llvm::zip_equal(forall.getResults(), forall.getRegionIterArgs()))
      if (result.use_empty())
        for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
          rewriter.setInsertionPoint(user);
          if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user))
            rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, slice.getMixedSizes(),
                                                         slice.getType().getElementType());
          else if (isa<tensor::ParallelInsertSliceOp>(user))
            rewriter.eraseOp(user);
        }
  }

  /// Fused producers still start from the destinations as they are outside of the loop, where they would have to be copied. What
  /// a destination holds at first means nothing: they start from the tile of the result that their consumer writes, else from
  /// memory of their own.
  void useOwnDestinations(scf::ForallOp forall) {
    SmallVector<tensor::ExtractSliceOp> own, foreign;
    forall.walk([&](tensor::ExtractSliceOp slice) {
      auto argument = dyn_cast<BlockArgument>(slice.getSource());
      if (argument && argument.getOwner() == forall.getBody())
        own.push_back(slice);
      else if (argument && argument.getOwner()->getParentOp() == func && llvm::is_contained(forall.getOutputs(), argument))
        foreign.push_back(slice);
    });
    for (tensor::ExtractSliceOp slice : foreign) {
      auto same = llvm::find_if(own, [&](tensor::ExtractSliceOp other) {
        return forall.getTiedOpOperand(cast<BlockArgument>(other.getSource()))->get() == slice.getSource() &&
               other.isSameAs(slice, [](OpFoldResult a, OpFoldResult b) { return isEqualConstantIntOrValue(a, b); });
      });
      rewriter.setInsertionPoint(slice);
      if (same != own.end())
        rewriter.modifyOpInPlace(slice, [&] { slice.getSourceMutable().assign((*same).getSource()); });
      else
        rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, slice.getMixedSizes(), slice.getType().getElementType());
    }
  }

  func::FuncOp func;
  func::ReturnOp ret;
  SmallVector<int64_t> tiles;
  IRRewriter rewriter;
  SmallVector<Operation *> roots;
  llvm::SmallDenseMap<Operation *, Operation *> takenBy; // a root, and one that it feeds
  SmallPtrSet<Operation *, 4> taken;
};

struct TileKernels : PassWrapper<TileKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TileKernels)
  StringRef getArgument() const final { return "tile-kernels"; }
  StringRef getDescription() const final { return "Cut kernels into the tiles of their launch"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<linalg::LinalgDialect, scf::SCFDialect, tensor::TensorDialect, affine::AffineDialect>();
  }

  void runOnOperation() final {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr);
      KernelTiler(func, schedule ? schedule.getTiles() : ArrayRef<int64_t>()).run();
    }
    // What a tile needs for itself is as small as the tile.
    RewritePatternSet patterns(&getContext());
    tensor::populateFoldTensorEmptyPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createTileKernelsPass() { return std::make_unique<TileKernels>(); }

} // namespace dlc::cpu
