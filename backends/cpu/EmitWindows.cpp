// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// emit-windows: writes the code of windows that each channel sees by itself (pooling, depthwise convolution), over channels that lie side by side.
//
//   tiles of the launch: batches, output positions, channels
//     for positions along all but the last spatial axis: which cells of the window are on x
//       for positions along the last axis, a few neighbours at a time where their windows lie on x as a whole, else one
//         for channels, a vector at a time
//           acc[neighbours] = start
//           for cells: acc[neighbour] = step(acc[neighbour], x[..], w[cell])    a cell that neighbours share is read once
//           the epilogue, and out
//
// Where the channels are no multiple of a vector, the last vector begins so much earlier: what it computes again comes out the same.

#include "WindowNest.h"
#include "dlc/IR/KernelOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

class WindowEmitter final : WindowNest {
public:
  WindowEmitter(RewriterBase &rewriter, func::FuncOp func, KernelWindowOp op, const Target &target) : WindowNest(rewriter, func, op), op(op), x(op.getX()), w(op.getW()) {
    stored = cast<RankedTensorType>(op.getInit().getType()).getElementType();
    element = cast<RankedTensorType>(op.getX().getType()).getElementType();
    accumulator = op.getStart().getType();
    channels = cast<RankedTensorType>(op.getX().getType()).getShape().back();
    lanes = std::max<int64_t>(target.lanes(std::max(accumulator.getIntOrFloatBitWidth(), 8u)), 1);
    last = rank - 3; // the spatial axis
    if (auto schedule = func->getAttrOfType<plan::ScheduleAttr>(kScheduleAttr))
      tiles.assign(schedule.getTiles().begin(), schedule.getTiles().end());
    tiles.resize(rank, 0);
  }

  bool canEmit() {
    if (!isa<BlockArgument>(x) || (w && !isa<BlockArgument>(w)) || ShapedType::isDynamic(channels) || channels < 1 ||
        !BodyEvaluator::isElementwise(op.getStep().front()) || !matchEpilogue())
      return false;
    while (lanes > channels)
      lanes /= 2;
    if (!vectorEpilogue)
      lanes = 1;
    return tiles.back() == 0 || tiles.back() % lanes == 0;
  }

  void emit() {
    enterKernel(x);
    enterTiles(tiles, extents);
    each(from[0], plus(from[0], counts[0]), 1, [&](Value batch) {
      place.batch = batch;
      place.spatial.assign(rank - 2, Value());
      emitAxis(0);
    });
    leaveMemory();
  }

private:
  static constexpr int64_t kNeighbours = 4, kMostCells = 16;

  Value minOf(Value a, Value b) { return arith::MinSIOp::create(rewriter, loc, a, b); }
  Value maxOf(Value a, Value b) { return arith::MaxSIOp::create(rewriter, loc, a, b); }
  Value sum(Value a, Value b) { return arith::AddIOp::create(rewriter, loc, a, b); }
  Value difference(Value a, Value b) { return arith::SubIOp::create(rewriter, loc, a, b); }
  Value scaled(Value v, int64_t factor) { return factor == 1 ? v : Value(arith::MulIOp::create(rewriter, loc, v, number(factor))); }
  /// ceil(v / divisor) of what is not negative.
  Value ceilOf(Value v, int64_t divisor) {
    return divisor == 1 ? v : Value(arith::DivUIOp::create(rewriter, loc, sum(v, number(divisor - 1)), number(divisor)));
  }

  /// Where the first cell of a window is.
  Value startOf(unsigned axis, Value window) { return difference(scaled(window, op.getStrides()[axis]), op.getBegins()[axis]); }
  /// The cells [first, second) of a window that are on x.
  std::pair<Value, Value> cellsOnX(unsigned axis, Value start) {
    int64_t dilation = op.getDilations()[axis];
    auto before = [&](Value bound) { return minOf(ceilOf(maxOf(difference(bound, start), zero), dilation), number(op.getKernel()[axis])); };
    return {before(zero), before(sizes[axis + 1])};
  }

  void emitAxis(unsigned axis) {
    if (axis == last)
      return emitLine();
    each(from[axis + 1], plus(from[axis + 1], counts[axis + 1]), 1, [&](Value window) {
      place.spatial[axis] = window;
      starts.resize(axis);
      starts.push_back(startOf(axis, window));
      cells.resize(axis);
      cells.push_back(cellsOnX(axis, starts[axis]));
      emitAxis(axis + 1);
    });
  }

  /// Along the last spatial axis.
  void emitLine() {
    int64_t kernel = op.getKernel()[last], stride = op.getStrides()[last], span = (kernel - 1) * op.getDilations()[last];
    Value begin = from[last + 1], end = plus(begin, counts[last + 1]);
    if (kernel > kMostCells) {
      each(begin, end, 1, [&](Value window) { emitOne(window); });
      return;
    }
    // Windows [low, high) lie on x as a whole.
    Value low = minOf(maxOf(ceilOf(maxOf(op.getBegins()[last], zero), stride), begin), end);
    Value room = sum(difference(sizes[last + 1], number(span + 1)), op.getBegins()[last]);
    Value isAny = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge, room, zero);
    Value most = sum(arith::DivUIOp::create(rewriter, loc, maxOf(room, zero), number(stride)), number(1));
    Value high = maxOf(minOf(arith::SelectOp::create(rewriter, loc, isAny, most, zero), end), low);
    Value blocks = sum(low, scaled(arith::DivUIOp::create(rewriter, loc, difference(high, low), number(kNeighbours)), kNeighbours));
    auto each = [&](Value first, Value behind, int64_t step, llvm::function_ref<void(Value)> body) {
      MemoryNest::each(first, behind, step, body);
    };
    // One loop for the windows before, and one for those behind, written once: windows of [begin, low) and [blocks, end).
    each(low, blocks, kNeighbours, [&](Value window) { emitBlock(window); });
    Value single = sum(difference(low, begin), difference(end, blocks));
    each(zero, single, 1, [&](Value i) {
      Value isBefore = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, i, difference(low, begin));
      Value behind = sum(blocks, difference(i, difference(low, begin)));
      emitOne(arith::SelectOp::create(rewriter, loc, isBefore, sum(begin, i), behind));
    });
  }

  /// Neighbours whose windows lie on x along the last axis.
  void emitBlock(Value window) {
    Value start = startOf(last, window);
    SmallVector<Value> counted = countCells(kNeighbours, window, /*isWhole=*/true);
    eachChannel([&](Value channel) {
      State sums = overOuterCells(0, State(kNeighbours, startValue()), [&](State before) {
        DenseMap<int64_t, Value> known; // of x, by distance from the first window's start
        for (int64_t k = 0; k < op.getKernel()[last]; ++k) {
          Value weight = w ? readWeight(number(k), channel) : Value();
          for (int64_t j = 0; j < kNeighbours; ++j) {
            int64_t distance = j * op.getStrides()[last] + k * op.getDilations()[last];
            Value &cell = known[distance];
            if (!cell)
              cell = readCell(sum(start, number(distance)), channel);
            before[j] = step(before[j], cell, weight);
          }
        }
        return before;
      });
      for (int64_t j = 0; j < kNeighbours; ++j)
        write(sums[j], counted.empty() ? Value() : counted[j], sum(window, number(j)), channel);
    });
  }

  void emitOne(Value window) {
    Value start = startOf(last, window);
    auto [firstCell, behindCells] = cellsOnX(last, start);
    SmallVector<Value> counted = countCells(1, window, /*isWhole=*/false);
    eachChannel([&, firstCell = firstCell, behindCells = behindCells](Value channel) {
      State sums = overOuterCells(0, State(1, startValue()), [&](State before) {
        return range(firstCell, behindCells, 1, before, [&](Value k, State now) {
          Value cell = readCell(sum(start, scaled(k, op.getDilations()[last])), channel);
          return State{step(now[0], cell, w ? readWeight(k, channel) : Value())};
        });
      });
      write(sums[0], counted.empty() ? Value() : counted[0], window, channel);
    });
  }

  void eachChannel(llvm::function_ref<void(Value)> body) {
    Value end = plus(from.back(), counts.back());
    MemoryNest::each(from.back(), end, lanes, [&](Value channel) {
      body(channels % lanes ? minOf(channel, number(channels - lanes)) : channel);
    });
  }

  State overOuterCells(unsigned axis, State state, llvm::function_ref<State(State)> body) {
    if (axis == last)
      return body(std::move(state));
    return range(cells[axis].first, cells[axis].second, 1, state, [&](Value k, State inner) {
      inWindow.resize(axis);
      inWindow.push_back(k);
      at.resize(axis);
      at.push_back(sum(starts[axis], scaled(k, op.getDilations()[axis])));
      return overOuterCells(axis + 1, std::move(inner), body);
    });
  }

  Value readCell(Value position, Value channel) {
    SmallVector<Value> where{place.batch};
    llvm::append_range(where, ArrayRef(at).take_front(last));
    where.append({position, channel});
    return load(x, where, lanes);
  }
  Value readWeight(Value k, Value channel) {
    SmallVector<Value> where(ArrayRef(inWindow).take_front(last));
    where.append({k, channel});
    return load(w, where, lanes);
  }

  Value startValue() { return widen(rewriter, loc, arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(op.getStart())), lanes); }

  Value step(Value before, Value cell, Value weight) {
    Block &body = op.getStep().front();
    Operation *total = cast<KernelYieldOp>(body.getTerminator()).getValue().getDefiningOp();
    BodyEvaluator evaluator(rewriter, body);
    evaluator.setArgument(0, before);
    evaluator.setArgument(1, cell);
    if (weight)
      evaluator.setArgument(2, weight);
    // before + a * b, fused.
    if (auto addition = dyn_cast_or_null<arith::AddFOp>(total); addition && addition.getLhs() == body.getArgument(0))
      if (auto product = addition.getRhs().getDefiningOp<arith::MulFOp>(); product && product->hasOneUse()) {
        evaluator.run({total, product});
        return multiplyAdd(evaluator.lookup(product.getLhs()), evaluator.lookup(product.getRhs()), before);
      }
    evaluator.run();
    return evaluator.lookup(cast<KernelYieldOp>(body.getTerminator()).getValue());
  }

  /// What averages of neighbours are divided by; nothing for others.
  SmallVector<Value> countCells(int64_t neighbours, Value window, bool isWhole) {
    if (!op.getAverage())
      return {};
    Value outer = number(1);
    for (unsigned axis = 0; axis < last; ++axis)
      outer = arith::MulIOp::create(rewriter, loc, outer, cellsOfWindow(rewriter, loc, op, axis, place.spatial[axis], sizes[axis + 1]));
    SmallVector<Value> counts;
    for (int64_t j = 0; j < neighbours; ++j) {
      Value own = isWhole ? number(op.getKernel()[last]) : cellsOfWindow(rewriter, loc, op, last, sum(window, number(j)), sizes[last + 1]);
      Value count = arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), arith::MulIOp::create(rewriter, loc, outer, own));
      counts.push_back(widen(rewriter, loc, arith::UIToFPOp::create(rewriter, loc, accumulator, count), lanes));
    }
    return counts;
  }

  void write(Value value, Value count, Value window, Value channel) {
    if (count)
      value = arith::DivFOp::create(rewriter, loc, value, count);
    if (accumulator != stored)
      value = arith::TruncFOp::create(rewriter, loc, lanes > 1 ? Type(VectorType::get(lanes, stored)) : stored, value);
    Place own = place;
    own.spatial[last] = window;
    own.channel = channel;
    writeResults(value, own, lanes);
  }

  KernelWindowOp op;
  Value x, w;
  Type element, accumulator, stored;
  int64_t channels = 1, lanes = 1;
  unsigned last = 0;
  SmallVector<int64_t> tiles;
  Place place;
  SmallVector<Value> starts, inWindow, at;        // of the outer spatial axes
  SmallVector<std::pair<Value, Value>> cells;
};

} // namespace

std::unique_ptr<Pass> createEmitWindowsPass() {
  return std::make_unique<EmitterPass<KernelWindowOp, WindowEmitter>>("emit-windows", "Write the code of pooling and depthwise convolution");
}

} // namespace dlc::cpu
