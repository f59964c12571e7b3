// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// emit-attention: writes the code of attention kernels. The scores of a few queries and a block of keys exist at a time, in the first cache;
// the softmax is completed as blocks go by (Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv 1805.02867):
//
//   tiles of the launch: a batch, rows (queries that share keys, whatever dims they come from)
//     q = the queries' vectors; largest = -inf, total = 0, sums = 0 of each row
//     for a block of keys
//       its keys into panels, its values into rows side by side
//       for a register tile's rows at a time
//         s = q * keys^T                                      register tiles
//         for each row: s = the region's score of s; m = max(largest, s...); p = exp(s - m)
//                       total = total * exp(largest - m) + the sum of p; largest = m
//         sums = sums * exp(largest before - m) + p * values  register tiles
//     result = sums / total
//
// Few rows do not repay the copies: then keys and values are read where they are, and where the depth lies side by side in the keys, vectors
// run along it. The order of sums does not depend on threads. A row whose scores are all -infinity sums up to 0 and
// gives 0 / 0, as a softmax does.

#include "Contraction.h"
#include "MemoryNest.h"
#include "PanelPacker.h"
#include "dlc/IR/KernelOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

class AttentionEmitter final : MemoryNest {
public:
  AttentionEmitter(RewriterBase &rewriter, func::FuncOp func, KernelAttentionOp op, const Target &target)
      : MemoryNest(rewriter, op.getLoc(), func), op(op), tile(registerTile(32, target)), body(op.getScore().front()),
        isVector(BodyEvaluator::isElementwise(body)) {
    auto sizeAlong = [&](unsigned operand, unsigned loop) {
      return cast<RankedTensorType>(op->getOperand(operand).getType()).getDimSize(*op.mapOf(operand).getResultPosition(dim(loop)));
    };
    depth = sizeAlong(0, op.depthLoop());
    columns = sizeAlong(2, op.columnLoop());
    wholeColumns = llvm::alignTo(columns, tile.vector);
    auto lastOf = [&](AffineMap map) { return map.getResults().back(); };
    isAlongDepth = lastOf(op.mapOf(1)) == dim(op.depthLoop());
    // A block's keys and values take a part of the second cache.
    int64_t room = std::max<int64_t>(target.l2Bytes / 4 / 4, 16 * 1024) / (depth + wholeColumns);
    blockKeys = std::clamp<int64_t>(llvm::alignDown(room, kStep), kStep, 256);
    if (int64_t keys = sizeAlong(1, op.keyLoop()); !ShapedType::isDynamic(keys))
      blockKeys = std::min<int64_t>(blockKeys, llvm::alignTo(std::max<int64_t>(keys, 1), tile.columns));
    blockKeys = llvm::alignTo(blockKeys, tile.columns);
  }

  /// Whether the kernel is of the form that is written here.
  bool canEmit() {
    auto isKnown = [](int64_t n) { return !ShapedType::isDynamic(n); };
    return isKnown(depth) && isKnown(columns) && op.mapOf(2).getResults().back() == dim(op.columnLoop()) &&
           (isAlongDepth || op.mapOf(1).getResults().back() == dim(op.keyLoop())) && op.getInit() == destination() && ret().getNumOperands() == 1 &&
           ret().getOperand(0) == op.getResult();
  }

  void emit();

private:
  static constexpr int64_t kStep = 64; // keys, in which the size of a block is counted

  AffineExpr dim(unsigned loop) { return getAffineDimExpr(loop, func.getContext()); }
  Value extentOf(unsigned loop) override { return extents[loop]; }
  static constexpr float kLowest = -std::numeric_limits<float>::infinity();

  Value larger(Value x, Value y) { // of numbers; a NaN shows in the exponentials
    return arith::SelectOp::create(rewriter, loc, arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGT, x, y), x, y);
  }
  /// Pieces of a vector that is known to have `size` elements: (offset, lanes, mask) of each.
  void pieces(int64_t size, llvm::function_ref<void(int64_t, Value)> piece) {
    for (int64_t at = 0; at < size; at += tile.vector)
      piece(at, at + tile.vector <= size ? Value() : maskOf(rewriter, loc, number(size - at), tile.vector));
  }

  void setRow(Value row);
  void emitRows();
  void emitVariant(bool packs);
  void packKeys(Value from, Value count);
  void packValues(Value from, Value count);
  void forRowCount(Value count, llvm::function_ref<void(int64_t)> body);
  void products(Value row, int64_t rows, Value from, Value count, bool packs);
  void productsOfPanels(Value row, int64_t rows, Value count);
  void productsAlongKeys(Value row, int64_t rows, Value from, Value count);
  void productsAlongDepth(Value row, int64_t rows, Value from, Value count);
  void normalize(Value row, Value rows, Value from, Value count);
  void addValues(Value row, int64_t rows, Value from, Value count, bool packs);
  void writeRow(Value row);
  Value scoreOf(Value product, ArrayRef<Value> ofRow, Value key, int64_t lanes, Value mask);

  KernelAttentionOp op;
  RegisterTile tile;
  Block &body; // of the score
  bool isVector;
  int64_t depth = 0, columns = 0, wholeColumns = 0, blockKeys = 0, mostRows = 1;
  bool isAlongDepth = true; // the depth lies side by side in the keys, else the keys do
  SmallVector<Value> extents;               // of the loops
  SmallVector<unsigned> rowLoops;           // loops whose indices make a row
  Value queryMemory, keyMemory, valueMemory;
  Value rowCount;
  // Scratch: queries, sums, largest and total of each row; of a register tile's rows the scores and the factor of what was before.
  Value queries, sums, largest, totals, scores, factors, keyPanels, valueRows;
};

void AttentionEmitter::emit() {
  rewriter.setInsertionPoint(ret());
  unsigned parallel = op.parallelLoops();
  begin(parallel + 2);
  for (unsigned d = 0; d < parallel; ++d)
    extents.push_back(asValue(sizeOf(op.getInit(), d)));
  for (unsigned loop : {op.keyLoop(), op.depthLoop()})
    extents.push_back(asValue(sizeOf(op.getK(), *op.mapOf(1).getResultPosition(dim(loop)))));
  enterMemory();
  queryMemory = memoryOf(op->getOperand(0));
  keyMemory = memoryOf(op->getOperand(1));
  valueMemory = memoryOf(op->getOperand(2));
  for (Value extra : op.getExtras())
    (void)memoryOf(extra);
  auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr);
  SmallVector<int64_t> tiles(schedule ? schedule.getTiles() : ArrayRef<int64_t>());
  tiles.resize(parallel, 0);
  tiles[op.columnLoop()] = 0;
  // Rows are what a tile has of the loops over queries, as far as that has a bound.
  for (unsigned loop : op.queryLoops()) {
    std::optional<int64_t> bound = tiles[loop] > 0 ? tiles[loop] : getConstantIntValue(extents[loop]);
    if (!bound || mostRows * std::max<int64_t>(*bound, 1) > 1024)
      continue;
    rowLoops.push_back(loop);
    mostRows *= std::max<int64_t>(*bound, 1);
  }
  queries = allocate({mostRows, depth});
  sums = allocate({mostRows, wholeColumns});
  largest = allocate({mostRows});
  totals = allocate({mostRows});
  scores = allocate({tile.rows, blockKeys + tile.vector});
  factors = allocate({tile.rows});
  bool packs = mostRows >= 2 * tile.rows;
  if (packs) {
    keyPanels = allocate({blockKeys / tile.columns, depth, tile.columns});
    valueRows = allocate({blockKeys, wholeColumns});
  }

  enterTiles(tiles, ArrayRef(extents).take_front(parallel));
  for (unsigned d = 0; d < op.columnLoop(); ++d) {
    indices[d] = from[d];
    if (!llvm::is_contained(rowLoops, d) && tiles[d] != 1)
      enter(d, from[d], plus(from[d], counts[d]), 1);
  }
  rowCount = number(1);
  for (unsigned loop : rowLoops)
    rowCount = loop == rowLoops.front() ? counts[loop] : Value(arith::MulIOp::create(rewriter, loc, rowCount, counts[loop]));
  emitRows();

  leaveMemory();
}

/// Sets the indices of the loops that make a row, the `row`th of the tile.
void AttentionEmitter::setRow(Value row) {
  for (unsigned i = rowLoops.size(); i-- > 0;) {
    unsigned loop = rowLoops[i];
    Value own = i ? Value(arith::RemUIOp::create(rewriter, loc, row, counts[loop])) : row;
    if (i)
      row = arith::DivUIOp::create(rewriter, loc, row, counts[loop]);
    indices[loop] = plus(from[loop], own);
  }
}

void AttentionEmitter::emitRows() {
  each(index(0), rowCount, 1, [&](Value row) {
    setRow(row);
    bool isPlain = op.mapOf(0).getResults().back() == dim(op.depthLoop());
    auto copy = [&](OpFoldResult begin, OpFoldResult end, int64_t lanes) {
      each(begin, end, lanes, [&](Value d) {
        indices[op.depthLoop()] = d;
        store(load(queryMemory, at(op.mapOf(0)), lanes), queries, {row, d});
      });
    };
    int64_t whole = isPlain ? llvm::alignDown(depth, tile.vector) : 0;
    copy(index(0), index(whole), tile.vector);
    copy(index(whole), index(depth), 1);
    each(index(0), index(wholeColumns), tile.vector, [&](Value c) { store(real(0.f, tile.vector), sums, {row, c}); });
    store(real(kLowest), largest, {row});
    store(real(0.f), totals, {row});
  });
  if (!keyPanels) {
    emitVariant(false);
  } else {
    // Few rows do not repay the copies.
    Value many = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::uge, rowCount, number(2 * tile.rows));
    auto either = scf::IfOp::create(rewriter, loc, many, /*withElseRegion=*/true);
    for (bool packs : {true, false}) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(packs ? either.thenBlock() : either.elseBlock());
      emitVariant(packs);
    }
  }
  each(index(0), rowCount, 1, [&](Value row) { writeRow(row); });
}

void AttentionEmitter::emitVariant(bool packs) {
  each(index(0), extents[op.keyLoop()], blockKeys, [&](Value key) {
    Value count = asValue(smaller(minus(extents[op.keyLoop()], key), index(blockKeys)));
    if (packs) {
      packKeys(key, count);
      packValues(key, count);
    }
    each(index(0), rowCount, tile.rows, [&](Value row) {
      Value rows = asValue(smaller(minus(rowCount, row), index(tile.rows)));
      forRowCount(rows, [&](int64_t n) { products(row, n, key, count, packs); });
      normalize(row, rows, key, count);
      forRowCount(rows, [&](int64_t n) { addValues(row, n, key, count, packs); });
    });
  });
}

/// The code for each number of rows.
void AttentionEmitter::forRowCount(Value count, llvm::function_ref<void(int64_t)> body) {
  if (auto known = getConstantIntValue(count))
    return body(*known);
  SmallVector<int64_t> cases;
  for (int64_t n = 1; n < std::min(tile.rows, mostRows + 1); ++n)
    cases.push_back(n);
  auto choice = scf::IndexSwitchOp::create(rewriter, loc, TypeRange{}, count, cases, cases.size());
  OpBuilder::InsertionGuard guard(rewriter);
  for (auto [n, region] : llvm::zip_equal(cases, choice.getCaseRegions())) {
    rewriter.createBlock(&region);
    body(n);
    scf::YieldOp::create(rewriter, loc);
  }
  rewriter.createBlock(&choice.getDefaultRegion());
  if (mostRows >= tile.rows)
    body(tile.rows);
  scf::YieldOp::create(rewriter, loc);
}

/// keyPanels[panel][d][key in the panel]; what is behind the last key is 0.
void AttentionEmitter::packKeys(Value first, Value count) {
  auto read = [&](Value key, OpFoldResult d, int64_t lanes, Value mask = {}) {
    indices[op.keyLoop()] = plus(first, key);
    indices[op.depthLoop()] = asValue(d);
    return load(keyMemory, at(op.mapOf(1)), lanes, mask);
  };
  each(index(0), count, tile.columns, [&](Value key) {
    Value panel = asValue(fold(rewriter.getAffineSymbolExpr(0).floorDiv(tile.columns), {key}));
    Value isWhole = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ule, plus(key, tile.columns), count);
    auto either = scf::IfOp::create(rewriter, loc, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    for (bool whole : {true, false}) {
      rewriter.setInsertionPointToStart(whole ? either.thenBlock() : either.elseBlock());
      if (!isAlongDepth) {
        each(index(0), index(depth), 1, [&](Value d) {
          for (int64_t v = 0; v < tile.columns; v += tile.vector) {
            Value at = plus(key, v), mask = whole ? Value() : maskOf(rewriter, loc, minus(count, at), tile.vector);
            store(read(at, d, tile.vector, mask), keyPanels, {panel, d, number(v)});
          }
        });
        continue;
      }
      // Squares of a vector's keys by as much depth are transposed.
      int64_t squares = whole ? llvm::alignDown(depth, tile.vector) : 0;
      each(index(0), index(squares), tile.vector, [&](Value d) {
        for (int64_t v = 0; v < tile.columns; v += tile.vector) {
          SmallVector<Value> lines;
          for (int64_t j = 0; j < tile.vector; ++j)
            lines.push_back(read(plus(key, v + j), d, tile.vector));
          for (auto [i, line] : llvm::enumerate(transposeLanes(rewriter, loc, lines)))
            store(line, keyPanels, {panel, plus(d, i), number(v)});
        }
      });
      if (squares == depth)
        continue;
      if (!whole)
        each(index(0), index(depth), 1, [&](Value d) {
          for (int64_t v = 0; v < tile.columns; v += tile.vector)
            store(real(0.f, tile.vector), keyPanels, {panel, d, number(v)});
        });
      OpFoldResult end = whole ? index(tile.columns) : OpFoldResult(minus(count, key));
      each(index(0), end, 1, [&](Value j) {
        each(index(squares), index(depth), 1, [&](Value d) { store(read(plus(key, j), d, 1), keyPanels, {panel, d, j}); });
      });
    }
  });
}

/// valueRows[key][column]; what is behind the last column is 0.
void AttentionEmitter::packValues(Value first, Value count) {
  each(index(0), count, 1, [&](Value key) {
    indices[op.keyLoop()] = plus(first, key);
    pieces(columns, [&](int64_t c, Value mask) {
      indices[op.columnLoop()] = number(c);
      store(load(valueMemory, at(op.mapOf(2)), tile.vector, mask), valueRows, {key, number(c)});
    });
  });
}

/// scores[row][key] for `rows` rows from `row` on and the block's keys.
void AttentionEmitter::products(Value row, int64_t rows, Value first, Value count, bool packs) {
  if (packs)
    productsOfPanels(row, rows, count);
  else if (isAlongDepth)
    productsAlongDepth(row, rows, first, count);
  else
    productsAlongKeys(row, rows, first, count);
}

void AttentionEmitter::productsOfPanels(Value row, int64_t rows, Value count) {
  int64_t vectors = tile.columns / tile.vector;
  each(index(0), count, tile.columns, [&](Value key) {
    Value panel = asValue(fold(rewriter.getAffineSymbolExpr(0).floorDiv(tile.columns), {key}));
    State sums(rows * vectors, real(0.f, tile.vector));
    sums = range(index(0), index(depth), 1, sums, [&](Value d, State before) {
      State after;
      SmallVector<Value> wide;
      for (int64_t v = 0; v < vectors; ++v)
        wide.push_back(load(keyPanels, {panel, d, number(v * tile.vector)}, tile.vector));
      for (int64_t i = 0; i < rows; ++i) {
        Value narrow = load(queries, {plus(row, i), d}, 1);
        for (int64_t v = 0; v < vectors; ++v)
          after.push_back(multiplyAdd(narrow, wide[v], before[i * vectors + v]));
      }
      return after;
    });
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        store(sums[i * vectors + v], scores, {number(i), plus(key, v * tile.vector)});
  });
}

void AttentionEmitter::productsAlongKeys(Value row, int64_t rows, Value first, Value count) {
  auto piece = [&](Value key, int64_t vectors, int64_t lanes) {
    State sums(rows * vectors, real(0.f, lanes));
    sums = range(index(0), index(depth), 1, sums, [&](Value d, State before) {
      State after;
      SmallVector<Value> wide;
      indices[op.depthLoop()] = d;
      for (int64_t v = 0; v < vectors; ++v) {
        indices[op.keyLoop()] = plus(first, plus(key, v * lanes));
        wide.push_back(load(keyMemory, at(op.mapOf(1)), lanes));
      }
      for (int64_t i = 0; i < rows; ++i) {
        Value narrow = load(queries, {plus(row, i), d}, 1);
        for (int64_t v = 0; v < vectors; ++v) {
          Value sum = before[i * vectors + v];
          after.push_back(lanes > 1 ? multiplyAdd(narrow, wide[v], sum) : Value(math::FmaOp::create(rewriter, loc, narrow, wide[v], sum)));
        }
      }
      return after;
    });
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        store(sums[i * vectors + v], scores, {number(i), plus(key, v * lanes)});
  };
  OpFoldResult at = index(0);
  int64_t many = std::max<int64_t>(2 * tile.rows / rows, 1);
  for (auto [vectors, lanes] : {std::pair(std::min<int64_t>(many, 4), tile.vector), std::pair(int64_t(1), tile.vector), std::pair(int64_t(1), int64_t(1))}) {
    OpFoldResult end = wholePieces(at, count, vectors * lanes);
    each(at, end, vectors * lanes, [&, vectors = vectors, lanes = lanes](Value key) { piece(key, vectors, lanes); });
    at = end;
  }
}

void AttentionEmitter::productsAlongDepth(Value row, int64_t rows, Value first, Value count) {
  int64_t whole = llvm::alignDown(depth, tile.vector);
  auto piece = [&](Value key, int64_t keys) {
    auto along = [&](OpFoldResult begin, OpFoldResult end, int64_t lanes) {
      State sums(rows * keys, real(0.f, lanes));
      return range(begin, end, lanes, sums, [&](Value d, State before) {
        State after;
        SmallVector<Value> wide;
        indices[op.depthLoop()] = d;
        for (int64_t j = 0; j < keys; ++j) {
          indices[op.keyLoop()] = plus(first, plus(key, j));
          wide.push_back(load(keyMemory, at(op.mapOf(1)), lanes));
        }
        for (int64_t i = 0; i < rows; ++i) {
          Value narrow = load(queries, {plus(row, i), d}, lanes);
          for (int64_t j = 0; j < keys; ++j) {
            Value sum = before[i * keys + j];
            after.push_back(lanes > 1 ? multiplyAdd(narrow, wide[j], sum) : add(multiply(narrow, wide[j]), sum));
          }
        }
        return after;
      });
    };
    State vectors = along(index(0), index(whole), tile.vector), single = along(index(whole), index(depth), 1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        Value sum = combineLanes(rewriter, loc, vectors[i * keys + j], [&](Value x, Value y) { return add(x, y); });
        if (whole < depth)
          sum = add(sum, single[i * keys + j]);
        store(sum, scores, {number(i), plus(key, j)});
      }
  };
  OpFoldResult at = index(0);
  for (int64_t keys : {std::clamp<int64_t>(2 * tile.rows / rows, 1, 4), int64_t(1)}) {
    OpFoldResult end = wholePieces(at, count, keys);
    each(at, end, keys, [&, keys](Value key) { piece(key, keys); });
    at = end;
  }
}

/// The score of a product: of one key, or of `lanes` from there on.
Value AttentionEmitter::scoreOf(Value product, ArrayRef<Value> ofRow, Value key, int64_t lanes, Value mask) {
  indices[op.keyLoop()] = key;
  SmallVector<Value> arguments{product};
  for (auto [i, extra] : llvm::enumerate(op.getExtras())) {
    Value value = ofRow[i];
    if (!value) {
      AffineMap map = op.mapOf(3 + i);
      if (lanes == 1 || map.getResults().back() == dim(op.keyLoop())) {
        value = load(memoryOf(extra), at(map), lanes, mask);
      } else { // keys lie apart
        Type type = cast<MemRefType>(memoryOf(extra).getType()).getElementType();
        value = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(VectorType::get(lanes, type)));
        Value last = minus(extents[op.keyLoop()], index(1));
        for (int64_t lane = 0; lane < lanes; ++lane) {
          Value own = plus(key, lane);
          indices[op.keyLoop()] = mask ? asValue(smaller(own, last)) : own;
          value = vector::InsertOp::create(rewriter, loc, load(memoryOf(extra), at(map), 1), value, ArrayRef<int64_t>{lane});
        }
        indices[op.keyLoop()] = key;
      }
    }
    arguments.push_back(value);
  }
  Value yielded = cast<KernelYieldOp>(body.getTerminator()).getValue();
  if (!isVector) {
    IRMapping map;
    map.map(body.getArguments(), arguments);
    for (Operation &inner : body.without_terminator())
      rewriter.clone(inner, map);
    return map.lookupOrDefault(yielded);
  }
  BodyEvaluator evaluator(rewriter, body);
  for (auto [i, argument] : llvm::enumerate(arguments))
    evaluator.setArgument(i, argument);
  evaluator.run();
  Value score = evaluator.lookup(yielded);
  return lanes > 1 && !isa<VectorType>(score.getType()) ? widen(rewriter, loc, score, lanes) : score;
}

/// Turns the products of `rows` rows into the exponentials of their scores, by the largest score so far; and keeps the totals.
void AttentionEmitter::normalize(Value row, Value rows, Value first, Value count) {
  each(index(0), rows, 1, [&](Value i) {
    Value own = plus(row, i);
    setRow(own);
    SmallVector<Value> ofRow;
    for (auto [n, extra] : llvm::enumerate(op.getExtras()))
      ofRow.push_back(op.mapOf(3 + n).isFunctionOfDim(op.keyLoop()) ? Value() : load(memoryOf(extra), at(op.mapOf(3 + n)), 1));
    int64_t lanes = tile.vector;
    OpFoldResult whole = wholePieces(index(0), count, lanes);
    auto maskAt = [&](Value key) { return maskOf(rewriter, loc, minus(count, key), lanes); };
    // Scores, and the largest.
    auto score = [&](Value key, int64_t width, Value mask) {
      Value value = scoreOf(load(scores, {i, key}, width), ofRow, plus(first, key), width, mask);
      if (mask)
        value = arith::SelectOp::create(rewriter, loc, mask, value, real(kLowest, width));
      store(value, scores, {i, key});
      return value;
    };
    State most{real(kLowest, lanes)};
    if (isVector) {
      most = range(index(0), whole, lanes, most, [&](Value key, State now) { return State{larger(score(key, lanes, {}), now[0])}; });
      most = range(whole, count, lanes, most, [&](Value key, State now) { return State{larger(score(key, lanes, maskAt(key)), now[0])}; });
    } else {
      each(index(0), count, 1, [&](Value key) { score(key, 1, {}); });
      each(count, smaller(plus(whole, lanes), index(blockKeys + lanes)), 1, [&](Value key) { store(real(kLowest), scores, {i, key}); });
      most = range(index(0), count, lanes, most, [&](Value key, State now) { return State{larger(load(scores, {i, key}, lanes), now[0])}; });
    }
    Value before = load(largest, {own}, 1);
    Value now = larger(combineLanes(rewriter, loc, most[0], [&](Value x, Value y) { return larger(x, y); }), before);
    store(now, largest, {own});
    // Where there is no score above -inf yet, all are -inf, and so are the differences from any number.
    Value isNone = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OEQ, now, real(kLowest));
    Value origin = arith::SelectOp::create(rewriter, loc, isNone, real(0.f), now);
    Value factor = math::ExpOp::create(rewriter, loc, arith::SubFOp::create(rewriter, loc, before, origin));
    store(factor, factors, {i});
    State total{real(0.f, lanes)};
    total = range(index(0), count, lanes, total, [&](Value key, State sum) {
      Value shifted = arith::SubFOp::create(rewriter, loc, load(scores, {i, key}, lanes), widen(rewriter, loc, origin, lanes));
      Value weight = math::ExpOp::create(rewriter, loc, shifted);
      store(weight, scores, {i, key});
      return State{add(sum[0], weight)};
    });
    Value blockTotal = combineLanes(rewriter, loc, total[0], [&](Value x, Value y) { return add(x, y); });
    store(add(multiply(load(totals, {own}, 1), factor), blockTotal), totals, {own});
  });
}

/// sums[row] = sums[row] * factor + scores * values, for the block's keys.
void AttentionEmitter::addValues(Value row, int64_t rows, Value first, Value count, bool packs) {
  int64_t width = std::max<int64_t>(std::min<int64_t>(2 * tile.rows / rows, 4), 1) * tile.vector;
  if (packs)
    width = std::min(width, tile.columns);
  for (int64_t begin = 0; begin < wholeColumns;) {
    int64_t vectors = std::min(width, wholeColumns - begin) / tile.vector;
    int64_t groups = std::max<int64_t>((wholeColumns - begin) / width, 1);
    bool mayBePartial = !packs && columns < wholeColumns;
    if (mayBePartial && begin + groups * width > columns) // the last vector by itself, with a mask
      groups = std::max<int64_t>((columns - begin) / width, 1);
    Value mask;
    if (mayBePartial && begin + groups * vectors * tile.vector > columns)
      mask = maskOf(rewriter, loc, number(columns - (begin + (vectors - 1) * tile.vector)), tile.vector);
    int64_t end = begin + groups * vectors * tile.vector;
    each(index(begin), index(end), vectors * tile.vector, [&](Value column) {
      auto place = [&](int64_t v) { return plus(column, v * tile.vector); };
      State state;
      for (int64_t i = 0; i < rows; ++i) {
        Value factor = widen(rewriter, loc, load(factors, {number(i)}, 1), tile.vector);
        for (int64_t v = 0; v < vectors; ++v)
          state.push_back(multiply(load(sums, {plus(row, i), place(v)}, tile.vector), factor));
      }
      state = range(index(0), count, 1, state, [&](Value key, State before) {
        State after;
        SmallVector<Value> wide;
        for (int64_t v = 0; v < vectors; ++v) {
          if (packs) {
            wide.push_back(load(valueRows, {key, place(v)}, tile.vector));
            continue;
          }
          indices[op.keyLoop()] = plus(first, key);
          indices[op.columnLoop()] = place(v);
          wide.push_back(load(valueMemory, at(op.mapOf(2)), tile.vector, v + 1 == vectors ? mask : Value()));
        }
        for (int64_t i = 0; i < rows; ++i) {
          Value narrow = load(scores, {number(i), key}, 1);
          for (int64_t v = 0; v < vectors; ++v)
            after.push_back(multiplyAdd(narrow, wide[v], before[i * vectors + v]));
        }
        return after;
      });
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          store(state[i * vectors + v], sums, {plus(row, i), place(v)});
    });
    begin = end;
  }
}

void AttentionEmitter::writeRow(Value row) {
  setRow(row);
  Value total = load(totals, {row}, 1);
  Value inverse = arith::DivFOp::create(rewriter, loc, real(1.f), total), isSum;
  // Of an empty row the total is 0, of one with a NaN it is NaN.
  if (op.getNanIsZero())
    isSum = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGT, total, real(0.f));
  else if (op.getEmptyIsZero())
    isSum = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNE, total, real(0.f));
  if (getConstantIntValue(extents[op.keyLoop()]).value_or(0) == 0) { // a sum over no keys is 0
    Value hasKeys = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, extents[op.keyLoop()], zero);
    isSum = isSum ? Value(arith::AndIOp::create(rewriter, loc, isSum, hasKeys)) : hasKeys;
  }
  pieces(columns, [&](int64_t c, Value mask) {
    Value result = multiply(load(sums, {row, number(c)}, tile.vector), widen(rewriter, loc, inverse, tile.vector));
    if (isSum)
      result = arith::SelectOp::create(rewriter, loc, isSum, result, real(0.f, tile.vector));
    SmallVector<Value> where(indices.begin(), indices.begin() + op.parallelLoops());
    where.back() = number(c);
    store(result, destination(), where, mask);
  });
}

} // namespace

std::unique_ptr<Pass> createEmitAttentionPass() {
  return std::make_unique<EmitterPass<KernelAttentionOp, AttentionEmitter>>("emit-attention", "Write the code of attention, a block of keys at a time");
}

} // namespace dlc::cpu
