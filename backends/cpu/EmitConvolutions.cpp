// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// emit-convolutions: writes the code of convolutions over channels that lie side by side. They are products of a matrix that is never there,
// with a row for each window (its cells' channels one after the other), and the filters. What a row's cells are is said by addresses:
//
//   tiles of the launch: a batch, output positions, filters
//     for positions (a few hundred at a time)
//       table[position][cell] = address of the cell's channels, or of zeros where it lies in the padding
//       for groups; for filters (a register tile's columns at a time)
//         for positions (a register tile's rows at a time)
//           acc[rows][vectors] = 0
//           for cell: a[rows] = table[.., cell]
//             for channel: w[vectors] = W[cell, channel, filters..]; for each row: acc[row] += a[row][channel] * w
//           the epilogue on the accumulators, and out
//
// So any stride, dilation and padding runs at the speed of a product, and nothing is copied. The last rows of a tile are computed as often as it takes
// to fill a register tile: there is one kernel for all numbers of rows. Filters lie in panels of 16 (a constant that pack-constants has packed), or
// side by side as they are. Sums run over cells, then channels, whatever the tile.
//
// Few channels: the cells along the last axis, which lie side by side, count as one cell with as many more channels (a run). Runs that begin or end in
// the padding are copied, with zeros.
//
// Few filters (they then lie one after the other as wholes): vectors run along the channels, and the lanes of a sum are added up at the end.

#include "Contraction.h"
#include "WindowNest.h"
#include "dlc/IR/KernelOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

class ConvolutionEmitter final : WindowNest {
public:
  ConvolutionEmitter(RewriterBase &rewriter, func::FuncOp func, KernelConvOp op, const Target &target)
      : WindowNest(rewriter, func, op), op(op), x(op.getX()), w(op.getW()) {
    element = cast<RankedTensorType>(op.getInit().getType()).getElementType();
    bool isHalf = element.isF16() || element.isBF16();
    accumulator = isHalf ? Type(rewriter.getF32Type()) : element;
    tile = registerTile(accumulator.getIntOrFloatBitWidth(), target);
    auto packed = w.getDefiningOp<linalg::UnPackOp>();
    isPacked = packed != nullptr;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(w.getType()).getShape();
    isStatic = !ShapedType::isDynamicShape(shape);
    groups = shape.front();
    channels = shape[shape.size() - 2];
    filters = shape.back();
    kernel.assign(shape.begin() + 1, shape.end() - 2);
    for (int64_t size : kernel)
      cells *= size;
    if (packed) {
      w = packed.getSource();
      alongTerms = packed.getStaticInnerTiles()[0] == 1;
    }
    if (auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr))
      tiles.assign(schedule.getTiles().begin(), schedule.getTiles().end());
    tiles.resize(rank, 0);
  }

  /// Whether the kernel is of the form that is written here.
  bool canEmit() {
    if (!isa<FloatType>(element) || !isStatic || !isa<BlockArgument>(x) || !isa<BlockArgument>(w) || !matchEpilogue())
      return false;
    // Cut along the batch, the first spatial axis and, in whole register tiles, the filters of one group.
    for (unsigned d = 2; d + 1 < rank; ++d)
      if (tiles[d] > 0)
        return false;
    return tiles.back() == 0 || (groups == 1 && tiles.back() % tile.columns == 0);
  }

  void emit() {
    findRuns();
    chooseRows();
    enterKernel(x);
    makeWeights();
    Value origin = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, x);
    int64_t room = chunk / tile.rows;
    if (run > 1 && mayEnd)
      copies = allocate({room, cells, tile.rows, channels}, element);
    table = allocate({room, cells, tile.rows}, rewriter.getI64Type());
    zeros = allocate({groups * channels}, element);
    separate = work > kFew || !vectorEpilogue;
    inPieces = !alongTerms && cells * channels * tile.columns * (accumulator.getIntOrFloatBitWidth() / 8) > kLong;
    pieceChannels = llvm::divideCeil(channels, llvm::divideCeil(channels, kPiece));
    pieceCells = std::max<int64_t>(kPiece / channels, 1);
    if (inPieces)
      buffer = allocate({chunk, tile.columns}, accumulator);
    else if (separate && !alongTerms)
      buffer = allocate({tile.rows, tile.columns}, element);
    enterTiles(tiles, extents);
    each(index(0), index(groups * channels), 1, [&](Value c) {
      store(arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(element)), zeros, {c});
    });
    Value inner = number(1);
    for (unsigned d = 2; d + 1 < rank; ++d)
      inner = times(inner, extents[d]);
    Value first = times(from[1], inner), rows = times(counts[1], inner);
    each(from[0], plus(from[0], counts[0]), 1, [&](Value batch) {
      each(index(0), rows, chunk, [&](Value begin) {
        block = {batch, plus(first, begin), asValue(smaller(minus(rows, begin), index(chunk)))};
        fillTable(origin);
        each(index(0), index(groups), 1, [&](Value group) { emitGroup(group); });
      });
    });
    leaveMemory();
  }

private:
  static constexpr unsigned kFew = 6; // operations an element that an epilogue may have where it is written for each accumulator
  static constexpr int64_t kChunk = 192;
  /// Bytes of a register tile's filters from which on sums go in pieces, and terms of a piece.
  static constexpr int64_t kLong = 96 * 1024, kPiece = 192;
  static constexpr int64_t kCopies = 128 * 1024; // bytes of runs that are copied at a time
  static constexpr int64_t kAhead = 24; // terms that filters are asked for before they are used

  static OpFoldResult asResult(Value v) { return getAsOpFoldResult(v); }
  Value times(Value x, Value y) {
    return asValue(fold(rewriter.getAffineSymbolExpr(0) * rewriter.getAffineSymbolExpr(1), {x, y}));
  }

  /// Cells along the last axis that count as one.
  void findRuns() {
    constexpr int64_t kFewChannels = 16;
    int64_t length = kernel.back();
    if (groups != 1 || length == 1 || channels >= kFewChannels || op.getDilations().back() != 1)
      return;
    run = length;
    channelsOfCell = channels;
    kernel.back() = 1;
    channels *= length;
    cells /= length;
    auto sizeOf = [&](Value v) { return cast<RankedTensorType>(v.getType()).getDimSize(rank - 2); };
    int64_t size = sizeOf(op.getX()), count = sizeOf(op.getInit());
    mayEnd = getConstantIntValue(op.getBegins().back()) != 0 || ShapedType::isDynamic(size) || ShapedType::isDynamic(count) ||
             (count - 1) * op.getStrides().back() + length > size;
  }

  /// Rows of a register tile, so that few are computed in vain; and how many make a chunk.
  void chooseRows() {
    if (alongTerms)
      tile.rows = std::min<int64_t>(12 / filters, 8);
    int64_t rows = 1;
    for (unsigned d = 1; d + 1 < rank; ++d) {
      int64_t size = cast<RankedTensorType>(op.getInit().getType()).getDimSize(d);
      rows = ShapedType::isDynamic(size) || rows < 0 ? -1 : rows * (d == 1 && tiles[1] > 0 ? std::min(tiles[1], size) : size);
    }
    int64_t most = run > 1 && mayEnd ? std::clamp<int64_t>(kCopies / (cells * channels * 4), tile.rows, kChunk) : kChunk;
    chunk = llvm::alignTo(most, tile.rows);
    if (rows <= 0 || alongTerms)
      return;
    auto computed = [&](int64_t r) { return llvm::divideCeil(rows, r) * r; };
    int64_t best = tile.rows;
    for (int64_t r = tile.rows - 1; r >= 4 && r >= tile.rows - 2; --r)
      if (computed(r) < computed(best))
        best = r;
    tile.rows = best;
    chunk = std::min<int64_t>(llvm::alignTo(most, best), llvm::alignTo(rows, best));
  }

  /// W as [group, panel, cell and channel, 16], [group, cell and channel, filter], or, along terms, [filter, cell and channel].
  void makeWeights() {
    if (alongTerms) {
      SmallVector<ReassociationIndices> sets{{0, 1}, {}};
      llvm::append_range(sets.back(), llvm::seq<int64_t>(2, cast<ShapedType>(w.getType()).getRank()));
      weights = memref::CollapseShapeOp::create(rewriter, loc, w, sets);
      return;
    }
    int64_t all = cast<ShapedType>(w.getType()).getRank();
    SmallVector<ReassociationIndices> sets{{0}};
    if (isPacked)
      sets.push_back({1});
    sets.emplace_back();
    for (int64_t d = isPacked ? 2 : 1; d + 1 < all; ++d)
      sets.back().push_back(d);
    sets.push_back({all - 1});
    weights = memref::CollapseShapeOp::create(rewriter, loc, w, sets);
  }

  /// table[position / rows][cell][position % rows], for the block's positions; the last one is repeated.
  void fillTable(Value origin) {
    Type i64 = rewriter.getI64Type();
    auto asAddress = [&](Value v) -> Value { return arith::IndexCastOp::create(rewriter, loc, i64, v); };
    Value none = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, zeros);
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    each(index(0), block.count, tile.rows, [&](Value begin) {
      Value at = asValue(fold(rewriter.getAffineSymbolExpr(0).floorDiv(tile.rows), {begin}));
      each(index(0), index(tile.rows), 1, [&](Value i) {
        Place place = placeOf(plus(block.first, positionAt(begin, i)), zero);
        SmallVector<Value> starts;
        for (unsigned d = 0; d < rank - 2; ++d) {
          Value scaled = asValue(fold(rewriter.getAffineSymbolExpr(0) * op.getStrides()[d], {spatial(place, d)}));
          starts.push_back(arith::SubIOp::create(rewriter, loc, scaled, op.getBegins()[d]));
        }
        std::function<void(unsigned, Value, Value, Value)> cell = [&](unsigned d, Value cellNumber, Value place, Value isInside) {
          if (d == rank - 2) {
            Value offset = arith::MulIOp::create(rewriter, loc, place, number(groups * channels / run * bytes));
            Value address = arith::AddIOp::create(rewriter, loc, origin, offset);
            if (isInside)
              address = arith::SelectOp::create(rewriter, loc, isInside, address, none);
            store(asAddress(address), table, {at, cellNumber, i});
            return;
          }
          if (run > 1 && d == rank - 3) {
            Value next = arith::AddIOp::create(rewriter, loc, arith::MulIOp::create(rewriter, loc, place, sizes[d + 1]), starts[d]);
            cell(d + 1, cellNumber, next, isInside);
            if (mayEnd)
              copyRun(next, starts[d], sizes[d + 1], isInside, origin, {at, cellNumber, i});
            return;
          }
          each(index(0), index(kernel[d]), 1, [&](Value k) {
            Value moved = asValue(fold(rewriter.getAffineSymbolExpr(0) * op.getDilations()[d], {k}));
            Value position = arith::AddIOp::create(rewriter, loc, starts[d], moved);
            // Unsigned: what lies before the axis is too large as well.
            Value isOn = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, position, sizes[d + 1]);
            Value next = arith::AddIOp::create(rewriter, loc, arith::MulIOp::create(rewriter, loc, place, sizes[d + 1]), position);
            AffineExpr x = rewriter.getAffineSymbolExpr(0), y = rewriter.getAffineSymbolExpr(1);
            cell(d + 1, asValue(fold(x * kernel[d] + y, {cellNumber, k})), next, isInside ? Value(arith::AndIOp::create(rewriter, loc, isInside, isOn)) : isOn);
          });
        };
        cell(0, zero, block.batch, {});
      });
    });
  }

  /// What a run has of the padding is zeros in a copy of it. `place`: where it begins in x, `start`: along the axis of `size`.
  void copyRun(Value place, Value start, Value size, Value isInside, Value origin, SmallVector<Value> where) {
    auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) { return arith::CmpIOp::create(rewriter, loc, predicate, x, y); };
    Value end = arith::AddIOp::create(rewriter, loc, start, number(run));
    Value isCut = arith::OrIOp::create(rewriter, loc, compare(arith::CmpIPredicate::slt, start, zero), compare(arith::CmpIPredicate::sgt, end, size));
    if (isInside)
      isCut = arith::AndIOp::create(rewriter, loc, isCut, isInside);
    auto cut = scf::IfOp::create(rewriter, loc, isCut, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(cut.thenBlock());
    Type i64 = rewriter.getI64Type();
    auto pointer = LLVM::LLVMPointerType::get(rewriter.getContext());
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    Value none = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(element));
    AffineExpr s = rewriter.getAffineSymbolExpr(0), t = rewriter.getAffineSymbolExpr(1);
    each(index(0), index(run), 1, [&](Value k) {
      Value isOn = compare(arith::CmpIPredicate::ult, arith::AddIOp::create(rewriter, loc, start, k), size);
      each(index(0), index(channelsOfCell), 1, [&](Value c) {
        auto read = scf::IfOp::create(rewriter, loc, isOn,
                                      [&](OpBuilder &b, Location) {
                                        Value at = arith::MulIOp::create(b, loc, arith::AddIOp::create(b, loc, place, k), number(channelsOfCell));
                                        Value offset = arith::MulIOp::create(b, loc, arith::AddIOp::create(b, loc, at, c), number(bytes));
                                        Value address = arith::IndexCastOp::create(b, loc, i64, arith::AddIOp::create(b, loc, origin, offset));
                                        Value from = LLVM::IntToPtrOp::create(b, loc, pointer, address);
                                        scf::YieldOp::create(b, loc, LLVM::LoadOp::create(b, loc, element, from, bytes).getResult());
                                      },
                                      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, none); });
        SmallVector<Value> to(where);
        to.push_back(asValue(fold(s * channelsOfCell + t, {k, c})));
        store(read.getResult(0), copies, to);
      });
    });
    Value first = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, copies);
    Value number = where[0];
    for (auto [by, next] : {std::pair(cells, where[1]), std::pair(tile.rows, where[2])})
      number = asValue(fold(s * by + t, {number, next}));
    Value address = arith::AddIOp::create(rewriter, loc, first, asValue(fold(s * (channels * bytes), {number})));
    store(arith::IndexCastOp::create(rewriter, loc, i64, address), table, where);
  }

  /// The block's position that is row `i` of the register tile from `begin` on.
  Value positionAt(Value begin, Value i) { return asValue(smaller(plus(begin, i), minus(block.count, index(1)))); }

  void emitGroup(Value group) {
    if (alongTerms) {
      each(index(0), block.count, tile.rows, [&](Value begin) { emitDots(begin); });
      return;
    }
    Value begin = from.back(), end = groups == 1 ? plus(begin, counts.back()) : number(filters);
    if (groups > 1)
      begin = zero;
    OpFoldResult whole = wholePieces(begin, end, tile.columns);
    each(begin, whole, tile.columns, [&](Value column) { emitColumns(group, column, tile.columns, {}); });
    // All tiles of the launch but the last have whole register tiles.
    int64_t left = filters % tile.columns;
    if (left == 0)
      return;
    each(whole, end, tile.columns, [&](Value column) { emitColumns(group, column, left, left % tile.vector ? number(left % tile.vector) : Value()); });
  }

  /// `count` filters of a group from `column` on; `inLast` of them in the last vector, if that is not full.
  void emitColumns(Value group, Value column, int64_t count, Value inLast) {
    int64_t vectors = llvm::divideCeil(count, tile.vector);
    Value mask = inLast ? maskOf(rewriter, loc, inLast, tile.vector) : Value();
    Value channel = groups == 1 ? column : plus(times(group, number(filters)), column);
    auto maskAt = [&](int64_t v) { return v + 1 == vectors ? mask : Value(); };
    Terms all{zero, number(cells), zero, number(channels)};
    if (inPieces) {
      emitPieces(group, column, vectors);
      each(index(0), block.count, 1, [&](Value i) { emitEpilogue(i, i, channel, count, vectors, mask); });
      return;
    }
    each(index(0), block.count, tile.rows, [&](Value begin) {
      State sums = emitSums(group, column, vectors, begin, all, State(tile.rows * vectors, none()));
      if (accumulator != element)
        for (Value &sum : sums)
          sum = arith::TruncFOp::create(rewriter, loc, VectorType::get(tile.vector, element), sum);
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t v = 0; v < vectors; ++v) {
          if (separate)
            store(sums[i * vectors + v], buffer, {number(i), number(v * tile.vector)});
          else
            writeResults(sums[i * vectors + v], placeOf(plus(block.first, positionAt(begin, number(i))), plus(channel, v * tile.vector)), tile.vector, maskAt(v));
        }
      if (separate)
        each(index(0), index(tile.rows), 1, [&](Value i) { emitEpilogue(i, positionAt(begin, i), channel, count, vectors, mask); });
    });
  }

  /// Long sums a piece after the other, each over all of the block's positions, so that a piece's part of the filters stays in the first cache.
  void emitPieces(Value group, Value column, int64_t vectors) {
    auto rowsOf = [&](Value begin, llvm::function_ref<void(Value, Value, int64_t, int64_t)> each) {
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          each(plus(begin, i), number(v * tile.vector), i, v);
    };
    each(index(0), block.count, tile.rows, [&](Value begin) {
      rowsOf(begin, [&](Value row, Value lane, int64_t, int64_t) { store(none(), buffer, {row, lane}); });
    });
    each(index(0), index(cells), pieceCells, [&](Value cell) {
      Value cellEnd = asValue(smaller(plus(cell, pieceCells), index(cells)));
      each(index(0), index(channels), pieceChannels, [&](Value first) {
        Terms piece{cell, cellEnd, first, asValue(smaller(plus(first, pieceChannels), index(channels)))};
        each(index(0), block.count, tile.rows, [&](Value begin) {
          State sums(tile.rows * vectors);
          rowsOf(begin, [&](Value row, Value lane, int64_t i, int64_t v) { sums[i * vectors + v] = load(buffer, {row, lane}, tile.vector); });
          sums = emitSums(group, column, vectors, begin, piece, sums);
          rowsOf(begin, [&](Value row, Value lane, int64_t i, int64_t v) { store(sums[i * vectors + v], buffer, {row, lane}); });
        });
      });
    });
  }

  /// The epilogue of one row of the buffer, which is the block's `position`.
  void emitEpilogue(Value row, Value position, Value channel, int64_t count, int64_t vectors, Value mask) {
    Value flat = plus(block.first, position);
    auto sumsAt = [&](Value j, int64_t lanes) {
      Value sum = load(buffer, {row, j}, lanes);
      if (cast<MemRefType>(buffer.getType()).getElementType() == element)
        return sum;
      return Value(arith::TruncFOp::create(rewriter, loc, lanes > 1 ? Type(VectorType::get(lanes, element)) : element, sum));
    };
    if (!vectorEpilogue) {
      each(index(0), index(count), 1, [&](Value j) { writeResults(sumsAt(j, 1), placeOf(flat, plus(channel, j)), 1); });
      return;
    }
    int64_t full = (mask ? vectors - 1 : vectors) * tile.vector;
    each(index(0), index(full), tile.vector, [&](Value j) { writeResults(sumsAt(j, tile.vector), placeOf(flat, plus(channel, j)), tile.vector); });
    if (mask)
      writeResults(sumsAt(number(full), tile.vector), placeOf(flat, plus(channel, full)), tile.vector, mask);
  }

  Value none() { return arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(VectorType::get(tile.vector, accumulator))); }

  Place placeOf(Value flat, Value channel) {
    Place place;
    place.batch = block.batch;
    place.flat = flat;
    place.channel = channel;
    return place;
  }

  /// What is added up: cells and channels, from the first ones on.
  struct Terms {
    Value cell, cellEnd, channel, channelEnd;
  };

  State emitSums(Value group, Value column, int64_t vectors, Value begin, Terms terms, State start) {
    Value at = asValue(fold(rewriter.getAffineSymbolExpr(0).floorDiv(tile.rows), {begin}));
    auto pointer = LLVM::LLVMPointerType::get(rewriter.getContext());
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    return range(asResult(terms.cell), asResult(terms.cellEnd), 1, std::move(start), [&](Value cell, State before) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < tile.rows; ++i) {
        Value address = load(table, {at, cell, number(i)}, 1);
        if (groups > 1) {
          Value offset = arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), times(group, number(channels * bytes)));
          address = arith::AddIOp::create(rewriter, loc, address, offset);
        }
        rows.push_back(LLVM::IntToPtrOp::create(rewriter, loc, pointer, address));
      }
      Value firstTerm = asValue(fold(rewriter.getAffineSymbolExpr(0) * channels, {cell}));
      return range(asResult(terms.channel), asResult(terms.channelEnd), 1, before, [&](Value channel, State sums) {
        State after;
        SmallVector<Value> wide;
        for (int64_t v = 0; v < vectors; ++v)
          wide.push_back(widened(readWeights(group, plus(firstTerm, channel), plus(column, v * tile.vector))));
        // Filters of long sums come from far away, a few at a time, and pages end the processor's own guesses.
        if (inPieces && isPacked)
          for (int64_t v = 0; v < vectors; v += std::max<int64_t>(kPanel / tile.vector, 1))
            prefetchWeights(group, plus(firstTerm, plus(channel, kAhead)), plus(column, v * tile.vector));
        Value offset = arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), channel);
        for (int64_t i = 0; i < tile.rows; ++i) {
          Value place = LLVM::GEPOp::create(rewriter, loc, pointer, element, rows[i], ArrayRef<LLVM::GEPArg>{offset});
          Value narrow = widened(LLVM::LoadOp::create(rewriter, loc, element, place, bytes));
          for (int64_t v = 0; v < vectors; ++v)
            after.push_back(multiplyAdd(narrow, wide[v], sums[i * vectors + v]));
        }
        return after;
      });
    });
  }

  /// All filters of a register tile's rows, with lanes along the channels.
  void emitDots(Value begin) {
    Value at = asValue(fold(rewriter.getAffineSymbolExpr(0).floorDiv(tile.rows), {begin}));
    auto pointer = LLVM::LLVMPointerType::get(rewriter.getContext());
    int64_t bytes = element.getIntOrFloatBitWidth() / 8, whole = llvm::alignDown(channels, tile.vector);
    State sums = range(index(0), index(cells), 1, State(tile.rows * filters, none()), [&](Value cell, State before) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < tile.rows; ++i)
        rows.push_back(LLVM::IntToPtrOp::create(rewriter, loc, pointer, load(table, {at, cell, number(i)}, 1)));
      Value first = asValue(fold(rewriter.getAffineSymbolExpr(0) * channels, {cell}));
      auto step = [&](Value channel, State so, Value mask) {
        auto type = VectorType::get(tile.vector, element);
        State after, own;
        for (int64_t f = 0; f < filters; ++f)
          own.push_back(widened(load(weights, {number(f), plus(first, channel)}, tile.vector, mask)));
        Value offset = arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), channel);
        for (int64_t i = 0; i < tile.rows; ++i) {
          Value place = LLVM::GEPOp::create(rewriter, loc, pointer, element, rows[i], ArrayRef<LLVM::GEPArg>{offset});
          Value cells;
          if (mask)
            cells = LLVM::MaskedLoadOp::create(rewriter, loc, type, place, mask, arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type)), bytes);
          else
            cells = LLVM::LoadOp::create(rewriter, loc, type, place, bytes);
          cells = widened(cells);
          for (int64_t f = 0; f < filters; ++f)
            after.push_back(multiplyAdd(cells, own[f], so[i * filters + f]));
        }
        return after;
      };
      before = range(index(0), index(whole), tile.vector, before, [&](Value channel, State so) { return step(channel, so, {}); });
      return whole == channels ? before : step(number(whole), before, maskOf(rewriter, loc, number(channels - whole), tile.vector));
    });
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t f = 0; f < filters; ++f) {
        Value sum = combineLanes(rewriter, loc, sums[i * filters + f], [&](Value x, Value y) { return add(x, y); });
        if (accumulator != element)
          sum = arith::TruncFOp::create(rewriter, loc, element, sum);
        writeResults(sum, placeOf(plus(block.first, positionAt(begin, number(i))), number(f)), 1);
      }
  }

  Value readWeights(Value group, Value term, Value column) {
    if (!isPacked) {
      Value count = minus(index(filters), column);
      bool mayEnd = filters % tile.vector != 0;
      return load(weights, {group, term, column}, tile.vector, mayEnd ? maskOf(rewriter, loc, count, tile.vector) : Value());
    }
    AffineExpr x = rewriter.getAffineSymbolExpr(0);
    return load(weights, {group, asValue(fold(x.floorDiv(kPanel), {column})), term, asValue(fold(x % kPanel, {column}))}, tile.vector);
  }

  void prefetchWeights(Value group, Value term, Value column) {
    AffineExpr x = rewriter.getAffineSymbolExpr(0);
    Value last = number(cells * channels - 1);
    memref::PrefetchOp::create(rewriter, loc, weights,
                               ValueRange{group, asValue(fold(x.floorDiv(kPanel), {column})), asValue(smaller(term, last)), zero},
                               /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
  }

  Value widened(Value v) {
    if (accumulator == element)
      return v;
    Type type = accumulator;
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      type = VectorType::get(vector.getShape(), accumulator);
    return arith::ExtFOp::create(rewriter, loc, type, v);
  }

  KernelConvOp op;
  Value x, w; // w may be packed
  bool isPacked = false, isStatic = true;
  SmallVector<int64_t> kernel;
  Type element, accumulator;
  RegisterTile tile;
  SmallVector<int64_t> tiles;
  int64_t groups = 1, channels = 1, filters = 1, cells = 1, chunk = kChunk;
  int64_t run = 1, channelsOfCell = 1; // cells that count as one
  bool mayEnd = false;                 // runs may reach into the padding
  bool alongTerms = false, separate = false, inPieces = false;
  int64_t pieceCells = 1, pieceChannels = 1;
  Value weights, table, zeros, copies, buffer;
  struct {
    Value batch, first, count;
  } block; // positions that the table has
};

} // namespace

std::unique_ptr<Pass> createEmitConvolutionsPass() {
  return std::make_unique<EmitterPass<KernelConvOp, ConvolutionEmitter>>("emit-convolutions", "Write the code of convolutions, in register tiles");
}

} // namespace dlc::cpu
