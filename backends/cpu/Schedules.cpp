// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// How kernels are cut when no tuning result says better. A tile should be worth the few hundred nanoseconds that handing it to a
// thread costs, and there should be several tiles for each core.

#include "Contraction.h"
#include "Passes.h"
#include "dlc/IR/KernelOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace dlc::cpu {

namespace {

/// Elements of work per element of the domain: the product of the reduction loops, in kernel ops those over their first operand.
int64_t workPerElement(plan::KernelOp kernel) {
  int64_t most = 1;
  auto count = [&](ArrayRef<int64_t> ranges, ArrayRef<utils::IteratorType> kinds) {
    int64_t work = 1;
    for (auto [size, kind] : llvm::zip(ranges, kinds))
      if (kind == utils::IteratorType::reduction)
        work = llvm::SaturatingMultiply<uint64_t>(work, ShapedType::isDynamic(size) ? 128 : std::max<int64_t>(size, 1));
    most = std::max(most, work);
  };
  kernel.getBody().walk([&](linalg::LinalgOp op) { count(op.getStaticLoopRanges(), op.getIteratorTypesArray()); });
  kernel.getBody().walk([&](DlcKernelOp op) {
    auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    if (auto loops = dyn_cast<TilingInterface>(op.getOperation()); loops && type)
      count(type.getShape(), loops.getLoopIteratorTypes());
  });
  return most;
}

bool sumsUp(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  return op && (op.getNumReductionLoops() || llvm::any_of(op.getDpsInputs(), sumsUp));
}

/// Dims of the domain that are better not cut: what is reduced along them would be computed again for each tile.
SmallVector<bool> dimsToKeep(plan::KernelOp kernel, unsigned rank) {
  SmallVector<bool> keep(rank, false);
  auto yield = cast<plan::YieldOp>(kernel.getBody().front().getTerminator());
  for (Value yielded : yield.getValues()) {
    auto op = yielded.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumParallelLoops() != op.getNumLoops() || op.getNumLoops() != rank)
      continue;
    for (OpOperand *input : op.getDpsInputOperands())
      if (sumsUp(input->get()))
        for (unsigned d = 0; d < rank; ++d)
          if (!op.getMatchingIndexingMap(input).isFunctionOfDim(d))
            keep[d] = true;
  }
  return keep;
}

/// Whether a reduction's results lie side by side where its terms do not: it then goes over whole runs of them, term by
/// term.
bool reducesOverRows(plan::KernelOp kernel) {
  WalkResult walked = kernel.getBody().walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() == 0)
      return WalkResult::advance();
    bool isOver = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
      AffineMap map = op.getMatchingIndexingMap(input);
      auto last = dyn_cast_or_null<AffineDimExpr>(map.getNumResults() ? map.getResults().back() : AffineExpr());
      return last && op.getIteratorTypesArray()[last.getPosition()] == utils::IteratorType::parallel;
    });
    return isOver ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walked.wasInterrupted();
}

/// Tiles of about `elements` of the domain: inner dims that fit stay whole, the first that does not is cut, and outside of it each
/// index is a tile of its own.
SmallVector<int64_t> cutFromOutside(ArrayRef<std::optional<int64_t>> domain, int64_t elements, ArrayRef<bool> keep) {
  SmallVector<int64_t> tiles(domain.size(), 0);
  uint64_t inner = 1; // elements of a tile so far
  for (unsigned d = domain.size(); d-- > 0;) {
    uint64_t size = std::max<int64_t>(domain[d].value_or(256), 1), room = std::max<uint64_t>(elements / inner, 1);
    // An unknown dim may be large: it gets a tile size even where its likely size fits.
    if (!keep[d] && (size > room || !domain[d]))
      tiles[d] = room;
    inner = llvm::SaturatingMultiply(inner, std::min<uint64_t>(size, tiles[d] ? tiles[d] : size));
  }
  return tiles;
}

/// The kernel's contraction, if it has one whose loops can be told apart.
std::optional<Contraction> contractionOf(plan::KernelOp kernel) {
  for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>())
    if (op.getNumReductionLoops())
      return matchContraction(op);
  return std::nullopt;
}

/// A kernel that moves what lies side by side apart goes over blocks that are short on both sides, so that whole cache lines are used
/// while they are near. Nothing for other kernels.
SmallVector<int64_t> transposeTiles(plan::KernelOp kernel, ArrayRef<std::optional<int64_t>> domain) {
  constexpr int64_t kRead = 64, kWritten = 256;
  auto yield = cast<plan::YieldOp>(kernel.getBody().front().getTerminator());
  auto op = yield.getValues()[0].getDefiningOp<linalg::LinalgOp>();
  if (!op || op.getNumDpsInputs() != 1 || op.getNumLoops() != domain.size() || op.getNumParallelLoops() != op.getNumLoops())
    return {};
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(0)), result = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!map.isPermutation() || !result.isIdentity())
    return {};
  unsigned last = domain.size() - 1, read = cast<AffineDimExpr>(map.getResults().back()).getPosition();
  if (read == last)
    return {};
  SmallVector<int64_t> tiles(domain.size(), 1);
  tiles[read] = kRead;
  tiles[last] = kWritten;
  int64_t inner = std::min<int64_t>(domain[read].value_or(kRead), kRead) * std::min<int64_t>(domain[last].value_or(kWritten), kWritten);
  // Several of small matrices to a tile.
  for (unsigned d = domain.size(); d-- > 0;)
    if (d != read && d != last) {
      int64_t room = std::max<int64_t>(kRead * kWritten / std::max<int64_t>(inner, 1), 1);
      tiles[d] = std::min<int64_t>(room, std::max<int64_t>(domain[d].value_or(1), 1));
      inner *= tiles[d];
    }
  for (unsigned d = 0; d < domain.size(); ++d)
    if (domain[d] && *domain[d] <= tiles[d])
      tiles[d] = 0;
  return tiles;
}

struct MatrixTile {
  int64_t rows, columns;
};

/// A tile has columns whose part of their operand fits into half of the second cache, and so many rows that going over them
/// again and again is worth fetching it; and no more work than leaves several tiles for each core. `others`: how many such products there are.
MatrixTile tileOfProduct(int64_t rows, int64_t columns, int64_t depth, uint64_t others, int64_t bytes, int64_t rowStep, int64_t columnStep,
                         const Target &target) {
  uint64_t total = llvm::SaturatingMultiply<uint64_t>(llvm::SaturatingMultiply<uint64_t>(depth, others), uint64_t(rows) * columns);
  int64_t wanted = std::clamp<uint64_t>(total / (4 * std::max(target.cores, 1u)), 64 * 1024, 4 * 1024 * 1024);
  int64_t most = llvm::alignTo(192, rowStep);
  MatrixTile tile;
  tile.rows = std::min<int64_t>(llvm::alignTo(rows, rowStep), most);
  int64_t room = std::max<int64_t>(target.l2Bytes / 2 / bytes / depth, 1), fair = std::max<int64_t>(wanted / depth / tile.rows, 1);
  tile.columns = llvm::alignDown(std::min(room, fair), columnStep);
  // Kernels for few rows take four register tiles side by side.
  if (tile.columns > 4 * columnStep)
    tile.columns = llvm::alignDown(tile.columns, 4 * columnStep);
  tile.columns = std::clamp<int64_t>(tile.columns, 4 * columnStep, 1024);
  // Fewer rows where there would be no work for all cores.
  auto count = [&] { return llvm::divideCeil(rows, tile.rows) * llvm::divideCeil(columns, tile.columns) * others; };
  while (count() < 2 * target.cores && tile.rows > 4 * rowStep && tile.rows * std::min(columns, tile.columns) * depth > 256 * 1024)
    tile.rows = llvm::alignTo(tile.rows / 2, rowStep);
  return tile;
}

SmallVector<int64_t> contractionTiles(plan::KernelOp kernel, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  constexpr int64_t kLikely = 256; // for a dim that is not known
  unsigned rank = domain.size();
  SmallVector<int64_t> tiles(rank, 1);
  std::optional<Contraction> c = contractionOf(kernel);
  if (rank == 0)
    return tiles;
  int64_t depth = std::max<int64_t>(workPerElement(kernel), 1), bytes = 4, rowStep = 1, columnStep = kPanel;
  std::optional<unsigned> row;
  if (c) {
    RegisterTile tile = registerTile(*c, target);
    bytes = std::max<int64_t>(c->accumulator().getIntOrFloatBitWidth() / 8, 1);
    columnStep = c->term ? kPanel : std::lcm(tile.columns, kPanel);
    rowStep = tile.rows;
    auto results = c->map(2).getResults();
    if (c->row && results.size() == rank)
      row = llvm::find(results, getAffineDimExpr(*c->row, kernel.getContext())) - results.begin();
  } else if (rank > 1) {
    row = rank - 2;
  }
  auto sizeOf = [&](unsigned d) { return std::max<int64_t>(domain[d].value_or(kLikely), 1); };
  int64_t rows = row ? sizeOf(*row) : 1, columns = sizeOf(rank - 1);
  uint64_t others = 1;
  for (unsigned d = 0; d + 1 < rank; ++d)
    if (d != row)
      others = llvm::SaturatingMultiply<uint64_t>(others, sizeOf(d));
  auto [tileRows, tileColumns] = tileOfProduct(rows, columns, depth, others, bytes, rowStep, columnStep, target);
  tiles[rank - 1] = domain[rank - 1] && columns <= tileColumns ? 0 : tileColumns;
  if (row)
    tiles[*row] = domain[*row] && rows <= tileRows ? 0 : tileRows;
  // Small matrices: several to a tile.
  uint64_t work = uint64_t(depth) * std::min(rows, tileRows) * std::min(columns, tileColumns);
  for (unsigned d = rank - 1; d-- > 0;) {
    if (d == row || work >= 64 * 1024)
      continue;
    int64_t count = std::max<uint64_t>(64 * 1024 / work, 1);
    tiles[d] = domain[d] && sizeOf(d) <= count ? 0 : count;
    work *= std::min(count, sizeOf(d));
  }
  return tiles;
}

/// As a product with a row for each window. The first spatial axis is cut, and the filters where they are of one group.
SmallVector<int64_t> convolutionTiles(KernelConvOp op, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  constexpr int64_t kLikely = 32;
  unsigned rank = domain.size();
  SmallVector<int64_t> tiles(rank, 0);
  auto sizeOf = [&](unsigned d) { return std::max<int64_t>(domain[d].value_or(kLikely), 1); };
  int64_t inner = 1, depth = 1;
  for (unsigned d = 2; d + 1 < rank; ++d)
    inner *= sizeOf(d);
  ArrayRef<int64_t> w = cast<RankedTensorType>(op.getW().getType()).getShape();
  for (int64_t size : w.drop_front().drop_back())
    depth *= std::max<int64_t>(ShapedType::isDynamic(size) ? kLikely : size, 1);
  int64_t bits = std::max(cast<RankedTensorType>(op.getInit().getType()).getElementTypeBitWidth(), 32u);
  RegisterTile registers = registerTile(bits, target);
  int64_t columnStep = std::lcm(registers.columns, kPanel);
  MatrixTile tile = tileOfProduct(sizeOf(1) * inner, sizeOf(rank - 1), depth, sizeOf(0), bits / 8, registers.rows, columnStep, target);
  int64_t lines = std::max<int64_t>(llvm::divideNearest(uint64_t(tile.rows), uint64_t(inner)), 1);
  tiles[0] = domain[0] && *domain[0] == 1 ? 0 : 1;
  tiles[1] = domain[1] && *domain[1] <= lines ? 0 : lines;
  bool isOneGroup = w.front() == 1;
  tiles.back() = !isOneGroup || (domain.back() && *domain.back() <= tile.columns) ? 0 : tile.columns;
  return tiles;
}

/// Whole lines of tiles of results, some dozens at a time at least, so that filters are read for many; filters are cut only where else there would be
/// no work for all cores, because windows are transformed for each part of them.
SmallVector<int64_t> winogradTiles(KernelWinogradOp op, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  constexpr int64_t kLikely = 56, kLeast = 40;
  SmallVector<int64_t> tiles{domain[0] && *domain[0] == 1 ? 0 : 1, 0, 0, 0};
  auto sizeOf = [&](unsigned d) { return std::max<int64_t>(domain[d].value_or(kLikely), 1); };
  int64_t m = op.getTile(), lines = llvm::divideCeil(sizeOf(1), m), inLine = llvm::divideCeil(sizeOf(2), m), filters = sizeOf(3);
  int64_t wanted = 4 * std::max(target.cores, 1u), images = domain[0].value_or(1);
  int64_t together = std::clamp<int64_t>(llvm::divideCeil(kLeast, inLine), 1, lines);
  together = std::max<int64_t>(together, llvm::divideCeil(lines, std::max<int64_t>(wanted / images, 1)));
  int64_t parts = llvm::divideCeil(lines, together) * images, group = 2 * std::lcm(registerTile(32, target).columns, kPanel);
  if (!domain[1] || together < lines)
    tiles[1] = together * m;
  if (parts < target.cores && filters >= 2 * group)
    tiles[3] = llvm::alignTo(llvm::divideCeil(filters, llvm::divideCeil(2 * target.cores, parts)), group);
  return tiles;
}

/// Lines of windows that fill a part of the second cache; all channels together.
SmallVector<int64_t> windowTiles(KernelWindowOp op, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  constexpr int64_t kLikely = 32;
  unsigned rank = domain.size();
  auto sizeOf = [&](unsigned d) { return std::max<int64_t>(domain[d].value_or(kLikely), 1); };
  int64_t cells = 1, elements = 64 * 1024;
  for (int64_t size : op.getKernel())
    cells *= std::max<int64_t>(size, 1);
  elements = std::max<int64_t>(std::min<int64_t>(elements, 256 * 1024 / cells), 1024);
  uint64_t total = 1;
  for (unsigned d = 0; d < rank; ++d)
    total = llvm::SaturatingMultiply<uint64_t>(total, sizeOf(d));
  elements = std::max<int64_t>(std::min<uint64_t>(elements, total / (2 * std::max(target.cores, 1u))), 1024);
  SmallVector<bool> keep(rank, false);
  keep.back() = true;
  return cutFromOutside(domain, elements, keep);
}

/// A tile has the queries of one batch that share keys, as many as repay putting the keys and values in order; dims of queries that
/// are known to be short go along whole.
SmallVector<int64_t> attentionTiles(KernelAttentionOp op, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  constexpr int64_t kMostRows = 128, kShort = 32, kLikely = 256;
  SmallVector<int64_t> tiles(domain.size(), 1);
  tiles[op.columnLoop()] = 0;
  SmallVector<unsigned> queries = op.queryLoops();
  if (queries.empty())
    return tiles;
  auto sizeOf = [&](unsigned d) { return std::max<int64_t>(domain[d].value_or(kLikely), 1); };
  unsigned longest = *llvm::max_element(queries, [&](unsigned a, unsigned b) { return sizeOf(a) < sizeOf(b); });
  int64_t rows = 1, count = 1;
  for (unsigned d : queries)
    if (d != longest && domain[d] && rows * *domain[d] <= kShort) {
      tiles[d] = 0;
      rows *= std::max<int64_t>(*domain[d], 1);
    }
  for (unsigned d = 0; d < op.columnLoop(); ++d)
    if (d != longest && tiles[d] > 0)
      count *= sizeOf(d);
  int64_t most = std::max<int64_t>(kMostRows / rows, 1);
  while (count * llvm::divideCeil(sizeOf(longest), most) < 2 * target.cores && most * rows > 16)
    most /= 2;
  tiles[longest] = domain[longest] && *domain[longest] <= most ? 0 : most;
  return tiles;
}

} // namespace

/// The filters of a convolution: groups, of which there are dims in front, then the panels, then cells and channels.
static std::optional<PackedOperand> packedFilters(plan::KernelOp kernel, Value w, int64_t groups) {
  auto argument = dyn_cast<BlockArgument>(w);
  auto type = cast<RankedTensorType>(w.getType());
  if (!argument || argument.getArgNumber() >= kernel.getOperandCount() || !argument.hasOneUse() || !type.hasStaticShape())
    return std::nullopt;
  int64_t last = type.getRank() - 1;
  PackedOperand format{argument.getArgNumber(), last, kPanel, llvm::to_vector(llvm::seq<int64_t>(0, groups))};
  format.order.push_back(last);
  llvm::append_range(format.order, llvm::seq<int64_t>(groups, last));
  return format;
}

/// So few that vectors had better run along the terms. The same for all targets, so that variants share packed constants.
static bool hasFewFilters(KernelConvOp op) {
  constexpr int64_t kFew = 4, kLeastTerms = 64;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getW().getType()).getShape();
  if (ShapedType::isDynamicShape(shape) || shape.front() != 1 || shape.back() > kFew)
    return false;
  int64_t cells = llvm::product_of(shape.drop_front().drop_back(2)), channels = shape[shape.size() - 2];
  bool hasRuns = channels < 16 && op.getDilations().back() == 1;
  return cells * channels >= kLeastTerms && (hasRuns ? channels * shape[shape.size() - 3] : channels) >= 8;
}

/// One filter after the other.
static std::optional<PackedOperand> wholeFilters(plan::KernelOp kernel, Value w) {
  std::optional<PackedOperand> format = packedFilters(kernel, w, /*groups=*/1);
  if (format)
    format->panel = 1;
  return format;
}

std::optional<PackedOperand> packedOperand(plan::KernelOp kernel, const Target &) {
  for (auto op : kernel.getBody().front().getOps<KernelConvOp>())
    return hasFewFilters(op) ? wholeFilters(kernel, op.getW()) : packedFilters(kernel, op.getW(), /*groups=*/1);
  for (auto op : kernel.getBody().front().getOps<KernelWinogradOp>())
    return packedFilters(kernel, op.getW(), /*groups=*/0);
  // What emit-contractions can write: one contraction and what is computed from its elements.
  std::optional<Contraction> c = contractionOf(kernel);
  if (!c)
    return std::nullopt;
  for (Operation &op : kernel.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (generic ? generic != c->op && generic.getNumReductionLoops() : op.getNumRegions() && !isa<linalg::FillOp>(op))
      return std::nullopt;
    if (isa<DlcKernelOp>(op))
      return std::nullopt;
  }
  auto argument = dyn_cast<BlockArgument>(c->op->getOperand(c->wide));
  SmallVector<unsigned> reductions;
  linalg::GenericOp(c->op).getReductionDims(reductions);
  if (!argument || argument.getArgNumber() >= kernel.getOperandCount() || !argument.hasOneUse() || reductions.size() != 1)
    return std::nullopt;
  Type element = cast<RankedTensorType>(argument.getType()).getElementType();
  plan::ScheduleAttr schedule = kernel.getScheduleAttr();
  int64_t columns = schedule && !schedule.getTiles().empty() ? schedule.getTiles().back() : 0;
  if (element.getIntOrFloatBitWidth() < 8 || columns % kPanel)
    return std::nullopt;
  // Other dims first, then the panels, then the terms.
  AffineMap map = c->map(c->wide);
  PackedOperand format{argument.getArgNumber(), -1, kPanel, {}};
  std::optional<int64_t> terms;
  for (auto [d, e] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    if (dim && dim.getPosition() == c->column)
      format.dim = d;
    else if (dim && dim.getPosition() == reductions[0])
      terms = d;
    else
      format.order.push_back(d);
  }
  if (format.dim < 0 || !terms)
    return std::nullopt;
  format.order.append({format.dim, *terms});
  return format;
}

plan::ScheduleAttr defaultSchedule(plan::KernelOp kernel, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  MLIRContext *context = kernel.getContext();
  SmallVector<int64_t> tiles, registers;
  SmallVector<bool> keep = dimsToKeep(kernel, domain.size());
  int64_t work = workPerElement(kernel);
  switch (kernel.getKind().getKind()) {
  case plan::KernelKind::Contraction:
    tiles = contractionTiles(kernel, domain, target);
    break;
  case plan::KernelKind::Attention:
    for (auto op : kernel.getBody().front().getOps<KernelAttentionOp>())
      tiles = attentionTiles(op, domain, target);
    break;
  case plan::KernelKind::Conv:
    for (auto op : kernel.getBody().front().getOps<KernelConvOp>())
      tiles = convolutionTiles(op, domain, target);
    for (auto op : kernel.getBody().front().getOps<KernelWinogradOp>())
      tiles = winogradTiles(op, domain, target);
    break;
  case plan::KernelKind::Window:
    for (auto op : kernel.getBody().front().getOps<KernelWindowOp>())
      tiles = windowTiles(op, domain, target);
    break;
  case plan::KernelKind::Movement:
    tiles = transposeTiles(kernel, domain);
    [[fallthrough]];
  case plan::KernelKind::Elementwise:
    if (tiles.empty())
      tiles = cutFromOutside(domain, 16 * 1024, keep);
    break;
  default:
    // Runs of a few hundred elements keep pages and prefetchers busy.
    tiles = cutFromOutside(domain, std::max<int64_t>(32 * 1024 / work, reducesOverRows(kernel) ? 256 : 1), keep);
    break;
  }
  return plan::ScheduleAttr::get(context, tiles, registers);
}

} // namespace dlc::cpu
