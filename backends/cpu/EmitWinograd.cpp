// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// emit-winograd: writes the code of dlc.kernel_winograd. For some dozens of tiles at a time, everything between input and result stays in the second cache:
//
//   tiles of the launch: a batch, lines of tiles, filters
//     for tiles of results (a block of some dozens)
//       table[tile][cell] = address of the cell's channels, or of zeros where it lies in the padding
//       for tile; for channels (a vector at a time): windows[cell][tile][channels] = input * d * input'
//       for filters (a group of register tiles at a time)
//         for cell: for register tiles of tiles x filters: products[cell][tile][filters] = sum over channels of windows * w
//         for tile: results = output * products * output', and through the epilogue those that lie on the axes
//
// Rows of a register tile are tiles of results. The last ones are computed as often as it takes to fill one.

#include "Contraction.h"
#include "WindowNest.h"
#include "dlc/IR/KernelOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

class WinogradEmitter final : WindowNest {
public:
  WinogradEmitter(RewriterBase &rewriter, func::FuncOp func, KernelWinogradOp op, const Target &target)
      : WindowNest(rewriter, func, op), op(op), x(op.getX()), w(op.getW()), m(op.getTile()), a(op.window()), matrices(winogradMatrices(op.getTile())) {
    element = cast<RankedTensorType>(op.getInit().getType()).getElementType();
    tile = registerTile(element.getIntOrFloatBitWidth(), target);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(w.getType()).getShape();
    isStatic = !ShapedType::isDynamicShape(shape);
    channels = shape[1];
    filters = shape[2];
    if (auto packed = w.getDefiningOp<linalg::UnPackOp>()) {
      isPacked = true;
      w = packed.getSource();
    }
    if (auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr))
      tiles.assign(schedule.getTiles().begin(), schedule.getTiles().end());
    tiles.resize(rank, 0);
    group = 2 * std::lcm(tile.columns, kPanel);
    l2Bytes = target.l2Bytes;
  }

  /// Whether the kernel is of the form that is written here.
  bool canEmit() {
    if (!element.isF32() || !isStatic || !isa<BlockArgument>(x) || !isa<BlockArgument>(w) || !matchEpilogue())
      return false;
    return tiles[2] == 0 && tiles[1] % m == 0 && tiles[3] % group == 0;
  }

  void emit() {
    chooseRows();
    enterKernel(x);
    weights = w;
    Value origin = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, x);
    int64_t padded = llvm::alignTo(channels, tile.vector);
    table = allocate({chunk, a * a}, rewriter.getI64Type());
    zeros = allocate({padded}, element);
    // A line more than the tiles need, so that what belongs to one tile does not all fall into the same place of the first cache.
    windows = allocate({a * a, chunk * padded + kPanel}, element);
    products = allocate({a * a, chunk * group + kPanel}, element);
    results = allocate({m * m, group}, element);
    enterTiles(tiles, extents);
    each(index(0), index(padded), 1, [&](Value c) { store(real(0), zeros, {c}); });
    AffineExpr s = rewriter.getAffineSymbolExpr(0);
    inLine = asValue(fold(s.ceilDiv(m), {extents[2]}));
    Value all = arith::MulIOp::create(rewriter, loc, asValue(fold(s.ceilDiv(m), {counts[1]})), inLine);
    each(from[0], plus(from[0], counts[0]), 1, [&](Value batch) {
      each(index(0), all, chunk, [&](Value first) {
        block = {batch, first, asValue(smaller(minus(all, first), index(chunk))), {}};
        block.computed = asValue(fold(s.ceilDiv(tile.rows) * tile.rows, {block.count}));
        each(index(0), block.computed, 1, [&](Value t) { transformWindow(t, origin, padded); });
        emitFilters(padded);
      });
    });
    leaveMemory();
  }

private:
  using Matrix = WinogradMatrices::Matrix;

  /// Rows of a register tile, so that few are computed in vain, and how many tiles make a block.
  void chooseRows() {
    auto type = cast<RankedTensorType>(op.getInit().getType());
    int64_t most = std::clamp<int64_t>(l2Bytes / 2 / (a * a * channels * 4), 4 * tile.rows, 8 * tile.rows);
    chunk = llvm::alignDown(most, tile.rows);
    if (type.isDynamicDim(1) || type.isDynamicDim(2))
      return;
    int64_t lines = llvm::divideCeil(tiles[1] > 0 ? std::min(tiles[1], type.getDimSize(1)) : type.getDimSize(1), m);
    int64_t all = std::max<int64_t>(lines * llvm::divideCeil(type.getDimSize(2), m), 1);
    int64_t count = llvm::divideCeil(all, llvm::divideCeil(all, most)); // blocks of about the same size
    auto computed = [&](int64_t r) { return llvm::alignTo(count, r); };
    int64_t best = tile.rows;
    for (int64_t r = tile.rows - 1; r >= 4 && r >= tile.rows - 2; --r)
      if (computed(r) < computed(best))
        best = r;
    tile.rows = best;
    chunk = computed(best);
  }

  /// Where the tile of results that is number `t` of the block begins, inside the launch's lines. The last one is repeated.
  std::pair<Value, Value> placeOf(Value t) {
    Value number = plus(block.first, smaller(t, minus(block.count, index(1))));
    Value line = arith::DivUIOp::create(rewriter, loc, number, inLine), column = arith::RemUIOp::create(rewriter, loc, number, inLine);
    AffineExpr s = rewriter.getAffineSymbolExpr(0);
    return {asValue(fold(s * m, {line})), asValue(fold(s * m, {column}))};
  }

  void transformWindow(Value t, Value origin, int64_t padded) {
    Type i64 = rewriter.getI64Type();
    auto pointer = LLVM::LLVMPointerType::get(rewriter.getContext());
    Value none = memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, zeros);
    auto [line, column] = placeOf(t);
    Value top = arith::SubIOp::create(rewriter, loc, plus(from[1], line), op.getBegins()[0]), left = arith::SubIOp::create(rewriter, loc, column, op.getBegins()[1]);
    Value image = arith::MulIOp::create(rewriter, loc, block.batch, sizes[1]);
    Value bytes = number(channels * 4);
    each(index(0), index(a), 1, [&](Value i) {
      // Unsigned: what lies before the axis is too large as well.
      auto isOn = [&](Value at, Value size) { return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, at, size); };
      Value y = arith::AddIOp::create(rewriter, loc, top, i), onY = isOn(y, sizes[1]);
      Value row = arith::MulIOp::create(rewriter, loc, arith::AddIOp::create(rewriter, loc, image, y), sizes[2]);
      AffineExpr p = rewriter.getAffineSymbolExpr(0);
      for (int64_t j = 0; j < a; ++j) {
        Value x = plus(left, j), onX = isOn(x, sizes[2]);
        Value offset = arith::MulIOp::create(rewriter, loc, arith::AddIOp::create(rewriter, loc, row, x), bytes);
        Value address = arith::SelectOp::create(rewriter, loc, arith::AndIOp::create(rewriter, loc, onY, onX), arith::AddIOp::create(rewriter, loc, origin, offset), none);
        store(arith::IndexCastOp::create(rewriter, loc, i64, address), table, {t, asValue(fold(p * a + j, {i}))});
      }
    });
    Value place = asValue(fold(rewriter.getAffineSymbolExpr(0) * padded, {t}));
    auto transform = [&](Value channel, Value mask) {
      Value offset = arith::IndexCastOp::create(rewriter, loc, i64, channel);
      auto type = VectorType::get(tile.vector, element);
      auto cell = [&](int64_t i, int64_t j) -> Value {
        Value base = LLVM::IntToPtrOp::create(rewriter, loc, pointer, load(table, {t, number(i * a + j)}, 1));
        Value at = LLVM::GEPOp::create(rewriter, loc, pointer, element, base, ArrayRef<LLVM::GEPArg>{offset});
        if (!mask)
          return LLVM::LoadOp::create(rewriter, loc, type, at, /*alignment=*/4);
        return LLVM::MaskedLoadOp::create(rewriter, loc, type, at, mask, real(0, tile.vector), /*alignment=*/4);
      };
      transformBoth(matrices.input, cell, [&](int64_t i, int64_t j, Value v) { store(v, windows, {number(i * a + j), plus(place, channel)}); });
    };
    int64_t whole = llvm::alignDown(channels, tile.vector);
    each(index(0), index(whole), tile.vector, [&](Value channel) { transform(channel, {}); });
    if (whole < channels)
      transform(number(whole), maskOf(rewriter, loc, number(channels - whole), tile.vector));
  }

  /// matrix * cells * matrix': rows first.
  void transformBoth(const Matrix &matrix, llvm::function_ref<Value(int64_t, int64_t)> cell, llvm::function_ref<void(int64_t, int64_t, Value)> out) {
    int64_t columns = matrix.front().size();
    SmallVector<State> half; // [column][row of the matrix]
    for (int64_t j = 0; j < columns; ++j) {
      State line;
      for (int64_t i = 0; i < columns; ++i)
        line.push_back(cell(i, j));
      half.push_back(multiplyLine(matrix, line));
    }
    for (size_t i = 0; i < matrix.size(); ++i) {
      State line;
      for (int64_t j = 0; j < columns; ++j)
        line.push_back(half[j][i]);
      for (auto [j, v] : llvm::enumerate(multiplyLine(matrix, line)))
        out(i, j, v);
    }
  }

  /// matrix * line. Points in pairs of +-p make rows, or columns, that differ in signs only: what they share is computed once.
  State multiplyLine(const Matrix &matrix, ArrayRef<Value> line) {
    size_t columns = line.size();
    bool isSquare = matrix.size() == columns;
    State sums(matrix.size());
    if (isSquare) {
      for (size_t i = 0; i < sums.size(); ++i) {
        if (i == 0 || i + 1 == sums.size()) {
          sums[i] = weighted(matrix[i], line);
          continue;
        }
        SmallVector<double> same(matrix[i]), other(matrix[i]);
        for (size_t k = 0; k < columns; ++k)
          (matrix[i][k] == matrix[i + 1][k] ? other : same)[k] = 0;
        Value even = weighted(same, line), odd = weighted(other, line);
        sums[i] = add(even, odd);
        sums[i + 1] = arith::SubFOp::create(rewriter, loc, even, odd);
        ++i;
      }
      return sums;
    }
    State even(columns), odd(columns); // sums and differences of a pair of columns
    for (size_t k = 1; k + 1 < columns; k += 2) {
      even[k] = add(line[k], line[k + 1]);
      odd[k] = arith::SubFOp::create(rewriter, loc, line[k], line[k + 1]);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      SmallVector<double> numbers;
      State terms;
      for (size_t k = 0; k < columns; ++k) {
        bool isPair = even[k] != nullptr;
        terms.push_back(!isPair ? line[k] : matrix[i][k] == matrix[i][k + 1] ? even[k] : odd[k]);
        numbers.push_back(matrix[i][k]);
        k += isPair;
      }
      sums[i] = weighted(numbers, terms);
    }
    return sums;
  }

  Value weighted(ArrayRef<double> numbers, ArrayRef<Value> terms) {
    Value sum;
    for (bool isOne : {true, false}) // what needs no product comes first
      for (auto [number, term] : llvm::zip_equal(numbers, terms)) {
        if (number == 0 || (number == 1) != isOne)
          continue;
        if (isOne)
          sum = sum ? add(sum, term) : term;
        else
          sum = sum ? multiplyAdd(term, real(number, tile.vector), sum) : multiply(term, real(number, tile.vector));
      }
    return sum;
  }

  void emitFilters(int64_t padded) {
    Value begin = from[3], end = plus(begin, counts[3]);
    OpFoldResult whole = wholePieces(begin, end, group);
    each(begin, whole, group, [&](Value first) { emitGroup(first, group, padded); });
    // All tiles of the launch but the last have whole groups.
    if (int64_t left = filters % group)
      each(whole, end, group, [&](Value first) { emitGroup(first, left, padded); });
  }

  /// `count` filters from `first` on.
  void emitGroup(Value first, int64_t count, int64_t padded) {
    each(index(0), index(a * a), 1, [&](Value cell) {
      auto columns = [&](Value column, int64_t vectors) {
        each(index(0), block.computed, tile.rows, [&](Value row) { multiplyTile(cell, row, first, column, vectors, padded); });
      };
      int64_t whole = llvm::alignDown(count, tile.columns);
      each(index(0), index(whole), tile.columns, [&](Value column) { columns(column, tile.columns / tile.vector); });
      if (whole < count)
        columns(number(whole), llvm::divideCeil(count - whole, tile.vector));
    });
    each(index(0), block.count, 1, [&](Value t) { writeTile(t, first, count); });
  }

  void multiplyTile(Value cell, Value row, Value first, Value column, int64_t vectors, int64_t padded) {
    AffineExpr s = rewriter.getAffineSymbolExpr(0);
    Value none = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(VectorType::get(tile.vector, element)));
    SmallVector<Value> rows;
    for (int64_t i = 0; i < tile.rows; ++i)
      rows.push_back(asValue(fold((s + i) * padded, {row})));
    State sums = range(index(0), index(channels), 1, State(tile.rows * vectors, none), [&](Value channel, State before) {
      State wide, after;
      for (int64_t v = 0; v < vectors; ++v) {
        Value filter = plus(plus(first, column), v * tile.vector);
        if (isPacked) {
          wide.push_back(load(weights, {asValue(fold(s.floorDiv(kPanel), {filter})), cell, channel, asValue(fold(s % kPanel, {filter}))}, tile.vector));
        } else {
          Value mask = filters % tile.vector ? maskOf(rewriter, loc, minus(index(filters), filter), tile.vector) : Value();
          wide.push_back(load(weights, {cell, channel, filter}, tile.vector, mask));
        }
      }
      for (int64_t i = 0; i < tile.rows; ++i) {
        Value narrow = load(windows, {cell, plus(rows[i], channel)}, 1);
        for (int64_t v = 0; v < vectors; ++v)
          after.push_back(multiplyAdd(narrow, wide[v], before[i * vectors + v]));
      }
      return after;
    });
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        store(sums[i * vectors + v], products, {cell, plus(plus(asValue(fold((s + i) * group, {row})), column), v * tile.vector)});
  }

  void writeTile(Value t, Value first, int64_t count) {
    auto [line, column] = placeOf(t);
    Value place = asValue(fold(rewriter.getAffineSymbolExpr(0) * group, {t}));
    each(index(0), index(llvm::alignTo(count, tile.vector)), tile.vector, [&](Value lane) {
      auto cell = [&](int64_t i, int64_t j) { return load(products, {number(i * a + j), plus(place, lane)}, tile.vector); };
      transformBoth(matrices.output, cell, [&](int64_t i, int64_t j, Value v) { store(v, results, {number(i * m + j), lane}); });
    });
    // An axis may end inside of the tile.
    Value height = asValue(smaller(minus(counts[1], line), index(m))), width = asValue(smaller(minus(extents[2], column), index(m)));
    each(index(0), height, 1, [&](Value i) {
      each(index(0), width, 1, [&](Value j) {
        Value cell = asValue(fold(rewriter.getAffineSymbolExpr(0) * m + rewriter.getAffineSymbolExpr(1), {i, j}));
        auto write = [&](Value lane, int64_t lanes, Value mask) {
          Place at;
          at.batch = block.batch;
          at.spatial = {plus(from[1], plus(line, i)), plus(column, j)};
          at.channel = plus(first, lane);
          writeResults(load(results, {cell, lane}, lanes), at, lanes, mask);
        };
        if (!vectorEpilogue)
          return each(index(0), index(count), 1, [&](Value lane) { write(lane, 1, {}); });
        int64_t whole = llvm::alignDown(count, tile.vector);
        each(index(0), index(whole), tile.vector, [&](Value lane) { write(lane, tile.vector, {}); });
        if (whole < count)
          write(number(whole), tile.vector, maskOf(rewriter, loc, number(count - whole), tile.vector));
      });
    });
  }

  KernelWinogradOp op;
  Value x, w; // w may be packed
  int64_t m, a; // results of a tile along an axis, cells of its window
  WinogradMatrices matrices;
  bool isPacked = false, isStatic = true;
  Type element;
  RegisterTile tile;
  SmallVector<int64_t> tiles;
  int64_t channels = 1, filters = 1, group = 1, chunk = 1;
  uint64_t l2Bytes = 0;
  Value weights, table, zeros, windows, products, results, inLine;
  struct {
    Value batch, first, count, computed;
  } block; // of tiles
};

} // namespace

std::unique_ptr<Pass> createEmitWinogradPass() {
  return std::make_unique<EmitterPass<KernelWinogradOp, WinogradEmitter>>("emit-winograd", "Write the code of convolutions by Winograd's algorithm");
}

} // namespace dlc::cpu
