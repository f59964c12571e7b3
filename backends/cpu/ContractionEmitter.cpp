// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ContractionEmitter.h"
#include "BodyEvaluator.h"
#include "LoopNest.h"
#include "PanelPacker.h"
#include "Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

class ContractionEmitter final : LoopNest {
public:
  ContractionEmitter(RewriterBase &rewriter, ContractionKernel kernel, const Target &target, plan::ScheduleAttr schedule)
      : LoopNest(rewriter, kernel.c.op.getLoc()), kernel(kernel), c(kernel.c), op(c.op), tile(registerTile(c, target, schedule)),
        alongColumns(tile),
        tiles(schedule ? schedule.getTiles() : ArrayRef<int64_t>()), rank(c.map(2).getNumResults()), columnDim(rank - 1) {
    for (AffineExpr e : c.map(2).getResults())
      loopOf.push_back(cast<AffineDimExpr>(e).getPosition());
    if (c.row)
      rowDim = llvm::find(loopOf, *c.row) - loopOf.begin();
    op.getReductionDims(reductions);
    if (c.term) {
      Contraction packed = c;
      packed.term = std::nullopt;
      alongColumns = registerTile(packed, target);
    }
    unsigned work = 0;
    for (linalg::GenericOp e : kernel.epilogue)
      for (Operation &inner : e.getBody()->without_terminator())
        work += isa<math::MathDialect>(inner.getDialect()) ? 8 : !isa<arith::ConstantOp>(inner);
    constexpr unsigned kFew = 6;
    separate = work > kFew || !kernel.vectorEpilogue;
  }

  void emit() {
    func::ReturnOp ret = kernel.ret();
    rewriter.setInsertionPoint(ret);
    begin(op.getNumLoops());
    unsigned first = kernel.func->getAttrOfType<IntegerAttr>(kOperandsAttr).getInt();
    SmallVector<Value> destinations(kernel.func.getArguments().slice(first, ret.getNumOperands()));
    SmallVector<OpFoldResult> extents = tensor::getMixedSizes(rewriter, loc, destinations.front());
    returned.assign(ret.getOperands().begin(), ret.getOperands().end());
    ret->setOperands(emitTiles(destinations, extents));
    // Only sizes are still asked of their results.
    for (linalg::GenericOp e : llvm::reverse(kernel.epilogue))
      rewriter.replaceOp(e, e.getDpsInits());
    rewriter.replaceOp(op, op.getDpsInits()[0].getDefiningOp<linalg::FillOp>().getOutputs());
  }

private:
  static constexpr int64_t kDepth = 384; // terms of a panel, which so stays in the first cache, and of a piece of a sum

  //===--------------------------------------------------------------------===//
  // Tiles of the launch, and the dims that are neither rows nor columns
  //===--------------------------------------------------------------------===//

  SmallVector<Value> emitTiles(ArrayRef<Value> destinations, ArrayRef<OpFoldResult> extents) {
    offsets.assign(rank, rewriter.getIndexAttr(0));
    sizes.assign(extents.begin(), extents.end());
    position.assign(rank, zero);
    SmallVector<unsigned> cut;
    SmallVector<OpFoldResult> lower, upper, step;
    for (unsigned d = 0; d < rank && d < tiles.size(); ++d)
      if (tiles[d] > 0) {
        cut.push_back(d);
        lower.push_back(rewriter.getIndexAttr(0));
        upper.push_back(extents[d]);
        step.push_back(rewriter.getIndexAttr(tiles[d]));
      }
    if (cut.empty())
      return emitTile(State(destinations));
    auto forall = scf::ForallOp::create(rewriter, loc, lower, upper, step, destinations, std::nullopt);
    forall->setAttr(kCutAttr, rewriter.getUnitAttr());
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(forall.getBody());
    for (auto [d, iv] : llvm::zip_equal(cut, forall.getInductionVars())) {
      offsets[d] = iv;
      std::optional<int64_t> extent = getConstantIntValue(extents[d]);
      AffineExpr from = rewriter.getAffineSymbolExpr(0), end = rewriter.getAffineSymbolExpr(1);
      if (extent && *extent % tiles[d] == 0)
        sizes[d] = rewriter.getIndexAttr(tiles[d]);
      else
        sizes[d] = affine::makeComposedFoldedAffineMin(
            rewriter, loc, AffineMap::get(0, 2, {rewriter.getAffineConstantExpr(tiles[d]), end - from}, rewriter.getContext()), {offsets[d], extents[d]});
    }
    SmallVector<OpFoldResult> strides(rank, rewriter.getIndexAttr(1));
    State own;
    for (BlockArgument destination : forall.getRegionIterArgs())
      own.push_back(tensor::ExtractSliceOp::create(rewriter, loc, destination, offsets, sizes, strides));
    State written = emitTile(own);
    rewriter.setInsertionPointToStart(forall.getTerminator().getBody());
    for (auto [value, destination] : llvm::zip(written, forall.getRegionIterArgs()))
      tensor::ParallelInsertSliceOp::create(rewriter, loc, value, destination, offsets, sizes, strides);
    return SmallVector<Value>(forall.getResults());
  }

  State emitTile(State state) {
    SmallVector<unsigned> batch;
    for (unsigned d = 0; d < rank; ++d)
      if (d != columnDim && d != rowDim)
        batch.push_back(d);
    return emitBatch(batch, std::move(state));
  }

  State emitBatch(ArrayRef<unsigned> dims, State state) {
    if (dims.empty())
      return emitMatrix(std::move(state));
    unsigned d = dims.front();
    return range(rewriter.getIndexAttr(0), sizes[d], 1, state, [&](Value at, State inner) {
      position[d] = at;
      indices[loopOf[d]] = plus(offsets[d], at);
      return emitBatch(dims.drop_front(), std::move(inner));
    });
  }

  //===--------------------------------------------------------------------===//
  // One matrix of the tile
  //===--------------------------------------------------------------------===//

  State emitMatrix(State state) {
    OpFoldResult rows = rowCount();
    if (!mayPack())
      return emitChunks(std::move(state), false);
    int64_t enough = 2 * tile.rows;
    if (auto known = getConstantIntValue(rows))
      return emitChunks(std::move(state), *known >= enough);
    // Few rows do not repay the packing.
    Value many = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::uge, asValue(rows), number(enough));
    auto either = scf::IfOp::create(rewriter, loc, TypeRange(ValueRange(state)), many, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    for (bool packs : {true, false}) {
      rewriter.setInsertionPointToStart(packs ? either.thenBlock() : either.elseBlock());
      scf::YieldOp::create(rewriter, loc, emitChunks(state, packs));
    }
    return State(either.getResults());
  }

  OpFoldResult rowCount() { return rowDim ? sizes[*rowDim] : OpFoldResult(rewriter.getIndexAttr(1)); }

  /// Whether columns that many rows need are better copied into panels first: those that lie far from each other.
  bool mayPack() {
    if (kernel.packed || reductions.size() != 1 || !rowDim || !boundOf(*rowDim) || *boundOf(*rowDim) < 4 * tile.rows)
      return false;
    auto ranges = op.getStaticLoopRanges();
    auto isMany = [&](unsigned loop, int64_t many) { return ShapedType::isDynamic(ranges[loop]) || ranges[loop] >= many; };
    return c.term || (isMany(c.column, 128) && isMany(reductions[0], 129));
  }

  State emitChunks(State state, bool packs) {
    OpFoldResult columns = sizes[columnDim];
    // A packed operand's columns lie together, so all of the tile goes at once; else a few columns are reused row after row.
    llvm::SaveAndRestore ownTile(tile, packs && c.term ? alongColumns : tile);
    int64_t chunk = c.term && !packs ? 4 * tile.vector : 4 * tile.columns;
    if (kernel.packed)
      chunk = std::max<int64_t>(boundOf(columnDim).value_or(chunk), 1);
    chunk = llvm::alignTo(std::min<int64_t>(chunk, 1024), tile.columns);
    bool inPieces = packs && hasPieces();
    llvm::SaveAndRestore ownSeparate(separate, separate || inPieces);
    unsigned results = state.size();
    if (packs) {
      Type element = cast<RankedTensorType>(op->getOperand(c.wide).getType()).getElementType();
      state.push_back(tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>{chunk / tile.columns, kDepth, tile.columns}, element));
    }
    if (separate) {
      int64_t rows = inPieces ? llvm::alignTo(*boundOf(*rowDim), tile.rows) : tile.rows;
      state.push_back(tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>{rows, chunk}, c.accumulator()));
    }
    state = range(rewriter.getIndexAttr(0), columns, chunk, state, [&](Value begin, State inner) {
      OpFoldResult end = smaller(plus(begin, chunk), columns);
      return packs ? emitPacked(std::move(inner), begin, end) : emitRows(std::move(inner), begin, end);
    });
    state.resize(results);
    return state;
  }

  /// Whether the terms of a sum may be too many for one panel.
  bool hasPieces() {
    int64_t depth = op.getStaticLoopRanges()[reductions[0]];
    return ShapedType::isDynamic(depth) || depth > kDepth;
  }

  /// A piece of the sums after the other: its columns go into panels, all rows go over them. Then the epilogue.
  State emitPacked(State state, Value begin, OpFoldResult end) {
    Value depth = extentOf(reductions[0]);
    if (!hasPieces()) {
      Panels own{begin, zero, depth, Value()};
      fillPanels(state, own, end);
      llvm::SaveAndRestore current(panels, std::optional<Panels>(own));
      return emitRows(std::move(state), begin, end);
    }
    block = {zero, begin};
    state = range(rewriter.getIndexAttr(0), depth, kDepth, state, [&](Value from, State inner) {
      Panels own{begin, from, smaller(plus(from, kDepth), depth),
                 arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, from, zero)};
      fillPanels(inner, own, end);
      llvm::SaveAndRestore current(panels, std::optional<Panels>(own));
      return emitRows(std::move(inner), begin, end);
    });
    // No terms: the sums are what they start with.
    Value none = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, depth, zero);
    auto either = scf::IfOp::create(rewriter, loc, TypeRange(ValueRange(state)), none, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(either.elseBlock());
      scf::YieldOp::create(rewriter, loc, state);
      rewriter.setInsertionPointToStart(either.thenBlock());
      State filled = state;
      filled.back() = linalg::FillOp::create(rewriter, loc, kernel.start, filled.back()).getResult(0);
      scf::YieldOp::create(rewriter, loc, filled);
    }
    return emitEpilogues(State(either.getResults()), zero, rowCount(), begin, end);
  }

  void fillPanels(State &state, const Panels &to, OpFoldResult end) {
    Value &buffer = state[panelsAt()];
    buffer = PanelPacker(rewriter, c, reductions[0], tile, offsets[columnDim], indices).pack(buffer, to, end);
  }
  unsigned panelsAt() const { return returned.size(); }

  /// The most that the size of a tile can be.
  std::optional<int64_t> boundOf(unsigned d) const {
    if (d < tiles.size() && tiles[d] > 0)
      return tiles[d];
    return getConstantIntValue(sizes[d]);
  }

  State emitRows(State state, Value begin, OpFoldResult end) {
    OpFoldResult rows = rowCount();
    AffineExpr all = rewriter.getAffineSymbolExpr(0);
    OpFoldResult whole = fold(all.floorDiv(tile.rows) * tile.rows, {rows});
    state = range(rewriter.getIndexAttr(0), whole, tile.rows, state,
                  [&](Value row, State inner) { return emitBlock(std::move(inner), row, tile.rows, begin, end); });
    OpFoldResult left = fold(all % tile.rows, {rows});
    if (auto known = getConstantIntValue(left))
      return *known ? emitBlock(std::move(state), asValue(whole), *known, begin, end) : state;
    int64_t most = std::min(tile.rows - 1, (rowDim ? boundOf(*rowDim) : std::nullopt).value_or(tile.rows));
    SmallVector<int64_t> cases;
    for (int64_t r = 1; r <= most; ++r)
      cases.push_back(r);
    if (cases.empty())
      return state;
    Value row = asValue(whole);
    auto choice = scf::IndexSwitchOp::create(rewriter, loc, TypeRange(ValueRange(state)), asValue(left), cases, cases.size());
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.createBlock(&choice.getDefaultRegion());
    scf::YieldOp::create(rewriter, loc, state);
    for (auto [r, region] : llvm::zip_equal(cases, choice.getCaseRegions())) {
      rewriter.createBlock(&region);
      scf::YieldOp::create(rewriter, loc, emitBlock(state, row, r, begin, end));
    }
    return State(choice.getResults());
  }

  /// `rows` rows from `row` on, columns [begin, end), both within the tile.
  State emitBlock(State state, Value row, int64_t rows, Value begin, OpFoldResult end) {
    if (panels && panels->isFirst)
      return emitAlongColumns(std::move(state), row, rows, begin, end);
    block = {row, begin};
    state = c.term && !panels ? emitAlongTerms(std::move(state), row, rows, begin, end) : emitAlongColumns(std::move(state), row, rows, begin, end);
    return separate ? emitEpilogues(std::move(state), row, rewriter.getIndexAttr(rows), begin, end) : state;
  }

  /// The epilogue for `rows` rows from `row` on, columns [begin, end), whose sums are the buffer's first ones.
  State emitEpilogues(State state, Value row, OpFoldResult rows, Value begin, OpFoldResult end) {
    return range(rewriter.getIndexAttr(0), rows, 1, state, [&](Value i, State inner) {
      Value at = plus(row, i);
      auto piece = [&](int64_t lanes, bool isPartial) {
        return [&, lanes, isPartial](Value column, State now) {
          Value sum = readLanes(rewriter, loc, now.back(), {i, minus(column, begin)}, lanes);
          return emitEpilogue(std::move(now), sum, at, column, lanes, isPartial ? maskUntil(column, end, lanes) : Value());
        };
      };
      int64_t lanes = kernel.vectorEpilogue ? std::min(tile.vector, cast<RankedTensorType>(inner.back().getType()).getDimSize(1)) : 1;
      OpFoldResult whole = wholePieces(begin, end, lanes);
      inner = range(begin, whole, lanes, inner, piece(lanes, false));
      return range(whole, end, lanes, inner, piece(lanes, true));
    });
  }

  State emitAlongColumns(State state, Value row, int64_t rows, Value begin, OpFoldResult end) {
    // Few rows leave registers for more columns at a time, which hides the latency of the sums.
    int64_t vectors = tile.columns / tile.vector, group = 1;
    for (int64_t most = tile.rows * vectors; group < 4 && 2 * group * rows * vectors <= most;)
      group *= 2;
    OpFoldResult from = begin;
    SmallVector<int64_t> widths{group * tile.columns, tile.columns};
    if (group == 1)
      widths.pop_back();
    for (int64_t width : widths) {
      OpFoldResult whole = wholePieces(from, end, width);
      state = range(from, whole, width, state, [&, width](Value column, State inner) {
        return emitTileOfColumns(std::move(inner), row, rows, column, width / tile.vector, tile.vector, {});
      });
      from = whole;
    }
    if (kernel.packed || panels) // zeros follow the last column
      return range(from, end, tile.columns, state, [&](Value column, State inner) {
        return emitTileOfColumns(std::move(inner), row, rows, column, vectors, tile.vector, end);
      });
    for (int64_t lanes : {tile.vector, int64_t(1)}) {
      OpFoldResult whole = wholePieces(from, end, lanes);
      state = range(from, whole, lanes, state, [&, lanes](Value column, State inner) {
        return emitTileOfColumns(std::move(inner), row, rows, column, 1, lanes, {});
      });
      from = whole;
    }
    return state;
  }

  /// `end`: where the tile's columns end, if that may be before the last of these.
  State emitTileOfColumns(State state, Value row, int64_t rows, Value column, int64_t vectors, int64_t lanes, OpFoldResult end) {
    SmallVector<Value> rowsAt, columnsAt;
    for (int64_t i = 0; i < rows; ++i)
      rowsAt.push_back(rowDim ? plus(offsets[*rowDim], plus(row, i)) : zero);
    auto columnOf = [&](int64_t v) { return plus(column, v * lanes); };
    for (int64_t v = 0; v < vectors; ++v)
      columnsAt.push_back(plus(offsets[columnDim], columnOf(v)));
    // Where the columns are in panels: the panel, and the lane in it.
    SmallVector<std::pair<Value, Value>> places;
    int64_t width = panels ? tile.columns : kPanel;
    if (kernel.packed || panels)
      for (int64_t v = 0; v < vectors; ++v) {
        AffineExpr at = rewriter.getAffineSymbolExpr(0);
        Value place = panels ? minus(columnOf(v), panels->begin) : columnsAt[v];
        places.push_back({asValue(fold(at.floorDiv(width), {place})), asValue(fold(at % width, {place}))});
      }
    SmallVector<Value> sums(rows * vectors, widen(rewriter, loc, kernel.start, lanes));
    if (panels && panels->isFirst)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t v = 0; v < vectors; ++v) {
          Value &sum = sums[i * vectors + v];
          Value before = readLanes(rewriter, loc, state.back(), {plus(row, i), minus(columnOf(v), panels->begin)}, lanes);
          sum = arith::SelectOp::create(rewriter, loc, panels->isFirst, sum, before);
        }
    auto step = [&](ValueRange before) {
      SmallVector<Value> wide, after;
      for (int64_t v = 0; v < vectors; ++v) {
        indices[c.column] = columnsAt[v];
        wide.push_back(kernel.packed ? readPacked(places[v], lanes)
                       : panels      ? readLanes(rewriter, loc, state[panelsAt()], {places[v].first, minus(indices[reductions[0]], panels->from), places[v].second}, lanes)
                                     : readLanes(rewriter, loc, op->getOperand(c.wide), at(c.map(c.wide)), lanes));
      }
      for (int64_t i = 0; i < rows; ++i) {
        if (c.row)
          indices[*c.row] = rowsAt[i];
        Value narrow = readLanes(rewriter, loc, op->getOperand(c.narrow), at(c.map(c.narrow)), 1);
        for (int64_t v = 0; v < vectors; ++v)
          after.push_back(multiplyAdd(narrow, wide[v], before[i * vectors + v]));
      }
      return after;
    };
    if (panels && panels->isFirst)
      sums = addPiece(sums, panels->from, panels->end, step);
    else if (panels || !isa<FloatType>(c.accumulator()) || reductions.size() != 1 || !hasPieces())
      sums = loops(reductions, sums, step);
    else
      sums = emitPieces(sums, step);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v) {
        Value at = columnOf(v);
        Value mask = end && !separate ? maskUntil(at, end, lanes) : Value();
        state = write(std::move(state), sums[i * vectors + v], plus(row, i), at, lanes, mask);
      }
    return state;
  }

  /// Long sums in pieces of kDepth terms, whose totals are added up: a sum of few large and many small terms loses less.
  SmallVector<Value> emitPieces(SmallVector<Value> totals, Body step) {
    Value depth = extentOf(reductions[0]);
    int64_t known = op.getStaticLoopRanges()[reductions[0]];
    return range(rewriter.getIndexAttr(0), depth, kDepth, totals, [&](Value from, State now) {
      bool isWhole = !ShapedType::isDynamic(known) && known % kDepth == 0;
      OpFoldResult end = isWhole ? OpFoldResult(plus(from, kDepth)) : smaller(plus(from, kDepth), depth);
      return addPiece(now, from, end, step);
    });
  }

  /// The totals so far and the sums of the terms [from, end).
  SmallVector<Value> addPiece(ArrayRef<Value> totals, Value from, OpFoldResult end, Body step) {
    SmallVector<Value> sums;
    for (Value total : totals)
      sums.push_back(arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(total.getType())));
    sums = loop(reductions[0], from, asValue(end), 1, sums, step);
    for (auto [sum, total] : llvm::zip_equal(sums, totals))
      sum = isa<FloatType>(c.accumulator()) ? Value(arith::AddFOp::create(rewriter, loc, total, sum)) : Value(arith::AddIOp::create(rewriter, loc, total, sum));
    return sums;
  }

  State emitAlongTerms(State state, Value row, int64_t rows, Value begin, OpFoldResult end) {
    OpFoldResult from = begin;
    for (int64_t columns : {tile.columns, int64_t(1)}) {
      OpFoldResult whole = wholePieces(from, end, columns);
      state = range(from, whole, columns, state, [&, columns](Value column, State inner) {
        return emitTileOfTerms(std::move(inner), row, rows, column, columns);
      });
      from = whole;
    }
    return state;
  }

  State emitTileOfTerms(State state, Value row, int64_t rows, Value column, int64_t columns) {
    Type type = c.accumulator();
    Value none = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
    SmallVector<Value> rowsAt, columnsAt;
    for (int64_t i = 0; i < rows; ++i)
      rowsAt.push_back(rowDim ? plus(offsets[*rowDim], plus(row, i)) : zero);
    for (int64_t j = 0; j < columns; ++j)
      columnsAt.push_back(plus(offsets[columnDim], plus(column, j)));
    // Vectors of partial sums, then one number for each element.
    SmallVector<Value> sums(rows * columns, widen(rewriter, loc, none, tile.vector));
    sums.append(rows * columns, kernel.start);
    SmallVector<unsigned> outer(reductions);
    llvm::erase(outer, *c.term);
    sums = loops(outer, sums, [&](ValueRange before) {
      auto products = [&](int64_t lanes) {
        return [&, lanes](ValueRange accumulators) {
          SmallVector<Value> wide, after;
          for (int64_t j = 0; j < columns; ++j) {
            indices[c.column] = columnsAt[j];
            wide.push_back(readLanes(rewriter, loc, op->getOperand(c.wide), at(c.map(c.wide)), lanes));
          }
          for (int64_t i = 0; i < rows; ++i) {
            if (c.row)
              indices[*c.row] = rowsAt[i];
            Value narrow = readLanes(rewriter, loc, op->getOperand(c.narrow), at(c.map(c.narrow)), lanes);
            for (int64_t j = 0; j < columns; ++j)
              after.push_back(multiplyAdd(narrow, wide[j], accumulators[i * columns + j]));
          }
          return after;
        };
      };
      Value size = extentOf(*c.term), whole = asValue(wholePieces(zero, size, tile.vector));
      SmallVector<Value> vectors = loop(*c.term, zero, whole, tile.vector, before.take_front(rows * columns), products(tile.vector));
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
        state = write(std::move(state), total, plus(row, i), plus(column, j), 1, Value());
      }
    return state;
  }

  //===--------------------------------------------------------------------===//
  // Reading, computing, writing
  //===--------------------------------------------------------------------===//

  Value readPacked(std::pair<Value, Value> panel, int64_t lanes) {
    SmallVector<Value> plain = at(c.map(c.wide)), packed;
    unsigned inner = kernel.packed.getInnerDimsPos()[0];
    plain[inner] = panel.first;
    ArrayRef<int64_t> order = kernel.packed.getOuterDimsPerm();
    for (unsigned d = 0; d < plain.size(); ++d)
      packed.push_back(plain[order.empty() ? d : order[d]]);
    packed.push_back(panel.second);
    return readLanes(rewriter, loc, kernel.packed.getSource(), packed, lanes);
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

  /// Sums of the tile's elements from (row, column) on: into the buffer, or through the epilogue.
  State write(State state, Value sums, Value row, Value column, int64_t lanes, Value mask) {
    if (!separate)
      return emitEpilogue(std::move(state), sums, row, column, lanes, mask);
    state.back() = writeLanes(rewriter, loc, sums, state.back(), {minus(row, block.first), minus(column, block.second)}, lanes);
    return state;
  }

  State emitEpilogue(State state, Value sums, Value row, Value column, int64_t lanes, Value mask) {
    SmallVector<Value> within(position), absolute(rank);
    within[columnDim] = column;
    if (rowDim)
      within[*rowDim] = row;
    for (unsigned d = 0; d < rank; ++d)
      absolute[d] = plus(offsets[d], within[d]);
    DenseMap<Value, Value> values{{op.getResult(0), sums}};
    for (linalg::GenericOp e : kernel.epilogue) {
      SmallVector<Value> arguments;
      for (OpOperand *input : e.getDpsInputOperands()) {
        Value known = values.lookup(input->get());
        arguments.push_back(known ? known : readOperand(input->get(), e.getMatchingIndexingMap(input), absolute, lanes, mask));
      }
      SmallVector<Value> made = evaluate(rewriter, e, arguments, [&](unsigned loop) { return absolute[loop]; });
      for (auto [result, value] : llvm::zip_equal(e.getResults(), made))
        values[result] = value;
    }
    for (auto [i, value] : llvm::enumerate(returned)) {
      Value result = values.lookup(value);
      if (lanes > 1 && !isa<VectorType>(result.getType()))
        result = widen(rewriter, loc, result, lanes);
      state[i] = writeLanes(rewriter, loc, result, state[i], within, lanes, mask);
    }
    return state;
  }

  Value readOperand(Value tensor, AffineMap map, ArrayRef<Value> absolute, int64_t lanes, Value mask) {
    SmallVector<Value> where;
    for (AffineExpr e : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(e);
      where.push_back(dim ? absolute[dim.getPosition()] : zero);
    }
    if (lanes == 1 || !map.isFunctionOfDim(columnDim))
      return readLanes(rewriter, loc, tensor, where, 1);
    if (!mask)
      return readLanes(rewriter, loc, tensor, where, lanes);
    return readMasked(rewriter, loc, tensor, where, lanes, mask);
  }

  /// The lanes of [column, column + lanes) that stand before `end`.
  Value maskUntil(Value column, OpFoldResult end, int64_t lanes) { return lanes == 1 ? Value() : maskOf(rewriter, loc, minus(end, column), lanes); }

  /// The size of a reduction loop, which stands in either operand.
  Value extentOf(unsigned reduction) override {
    for (unsigned operand : {c.narrow, c.wide})
      if (auto dim = c.map(operand).getResultPosition(getAffineDimExpr(reduction, rewriter.getContext())))
        return asValue(tensor::getMixedSize(rewriter, loc, op->getOperand(operand), *dim));
    llvm_unreachable("each loop of a contraction runs along an operand");
  }

  ContractionKernel kernel;
  const Contraction c;
  linalg::GenericOp op;
  RegisterTile tile, alongColumns; // the second one for columns side by side, which packing makes of others
  std::optional<Panels> panels;    // while rows go over them
  SmallVector<int64_t> tiles; // of the launch
  unsigned rank, columnDim;   // of the result
  std::optional<unsigned> rowDim;
  SmallVector<unsigned> loopOf, reductions; // loop of each dim of the result
  SmallVector<Value> returned;
  bool separate = false; // the epilogue follows behind the sums
  SmallVector<OpFoldResult> offsets, sizes; // of the tile
  SmallVector<Value> position;              // within the tile
  std::pair<Value, Value> block;            // row and column that the buffer of sums starts at
};

} // namespace

void emitContraction(RewriterBase &rewriter, const ContractionKernel &kernel, const Target &target, plan::ScheduleAttr schedule) {
  ContractionEmitter(rewriter, kernel, target, schedule).emit();
}

} // namespace dlc::cpu
