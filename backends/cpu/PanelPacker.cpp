// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PanelPacker.h"
#include "BodyEvaluator.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dlc::cpu {

Value PanelPacker::read(Value column, Value term, int64_t lanes, Value mask) {
  indices[c.column] = plus(tileColumn, column);
  indices[terms] = term;
  Value source = linalg::GenericOp(c.op)->getOperand(c.wide);
  return mask ? readMasked(rewriter, loc, source, at(c.map(c.wide)), lanes, mask) : readLanes(rewriter, loc, source, at(c.map(c.wide)), lanes);
}

void PanelPacker::store(State &state, Value value, Value panel, Value term, Value lane, int64_t lanes) {
  state[0] = writeLanes(rewriter, loc, value, state[0], {panel, minus(term, current->from), lane}, lanes);
}

Value PanelPacker::panelOf(const Panels &to, Value column) {
  return asValue(fold((rewriter.getAffineSymbolExpr(0) - rewriter.getAffineSymbolExpr(1)).floorDiv(tile.columns), {column, to.begin}));
}

Value PanelPacker::pack(Value buffer, const Panels &to, OpFoldResult end) {
  current = &to;
  OpFoldResult whole = wholePieces(to.begin, end, tile.columns);
  State state = range(to.begin, whole, tile.columns, {buffer}, [&](Value column, State inner) {
    return c.term ? packTerms(std::move(inner), to, column) : packColumns(std::move(inner), to, column, std::nullopt);
  });
  state = range(whole, end, tile.columns, state, [&](Value column, State inner) {
    return c.term ? packTermsOfLast(std::move(inner), to, column, end) : packColumns(std::move(inner), to, column, end);
  });
  return state[0];
}

/// Columns lie side by side; those before `end` if it is given.
PanelPacker::State PanelPacker::packColumns(State state, const Panels &to, Value column, std::optional<OpFoldResult> end) {
  Value panel = panelOf(to, column);
  return range(to.from, to.end, 1, state, [&](Value term, State now) {
    for (int64_t v = 0; v < tile.columns; v += tile.vector) {
      Value first = plus(column, v), mask = end ? maskOf(rewriter, loc, minus(*end, first), tile.vector) : Value();
      store(now, read(first, term, tile.vector, mask), panel, term, number(v), tile.vector);
    }
    return now;
  });
}

/// Terms lie side by side: squares of a vector's columns by as many terms are transposed.
PanelPacker::State PanelPacker::packTerms(State state, const Panels &to, Value column) {
  Value panel = panelOf(to, column);
  int64_t vector = tile.vector;
  OpFoldResult squares = wholePieces(to.from, to.end, vector);
  state = range(to.from, squares, vector, state, [&](Value term, State now) {
    for (int64_t v = 0; v < tile.columns; v += vector) {
      SmallVector<Value> lines;
      for (int64_t j = 0; j < vector; ++j)
        lines.push_back(read(plus(column, v + j), term, vector));
      for (auto [k, line] : llvm::enumerate(transposeLanes(rewriter, loc, lines)))
        store(now, line, panel, plus(term, k), number(v), vector);
    }
    return now;
  });
  return range(squares, to.end, 1, state, [&](Value term, State now) {
    for (int64_t j = 0; j < tile.columns; ++j)
      store(now, read(plus(column, j), term, 1), panel, term, number(j), 1);
    return now;
  });
}

PanelPacker::State PanelPacker::packTermsOfLast(State state, const Panels &to, Value column, OpFoldResult end) {
  Value panel = panelOf(to, column);
  Type element = cast<RankedTensorType>(state[0].getType()).getElementType();
  Value none = widen(rewriter, loc, arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(element)), tile.vector);
  return range(to.from, to.end, 1, state, [&](Value term, State now) {
    for (int64_t v = 0; v < tile.columns; v += tile.vector)
      store(now, none, panel, term, number(v), tile.vector);
    return range(column, end, 1, now, [&](Value own, State last) {
      store(last, read(own, term, 1), panel, term, minus(own, column), 1);
      return last;
    });
  });
}

SmallVector<Value> transposeLanes(OpBuilder &builder, Location loc, SmallVector<Value> lines) {
  int64_t count = lines.size();
  for (int64_t distance = 1; distance < count; distance *= 2)
    for (int64_t i = 0; i < count; ++i) {
      if (i & distance)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < count; ++lane) {
        low.push_back(lane & distance ? count + lane - distance : lane);
        high.push_back(lane & distance ? count + lane : lane + distance);
      }
      Value a = lines[i], b = lines[i + distance];
      lines[i] = vector::ShuffleOp::create(builder, loc, a, b, low);
      lines[i + distance] = vector::ShuffleOp::create(builder, loc, a, b, high);
    }
  return lines;
}

} // namespace dlc::cpu
