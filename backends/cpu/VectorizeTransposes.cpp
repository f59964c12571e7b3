// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// vectorize-transposes: copies whose two sides are contiguous along different dims go through registers in blocks. A
// block is loaded in pieces of 128 bits, of which a vector holds several from rows that lie as many apart as a piece
// has elements; interleaving vectors, each time with the one half of the block away, inside of these pieces alone, then
// leaves a column in each vector:
//
//   a0 a1 a2 a3 | e0 e1 e2 e3        a0 c0 a1 c1 | e0 g0 e1 g1        a0 b0 c0 d0 | e0 f0 g0 h0
//   b0 b1 b2 b3 | f0 f1 f2 f3   ->   a2 c2 a3 c3 | ..            ->   a1 b1 c1 d1 | ..
//   c0 ..         g0 ..              b0 d0 b1 d1 | ..                 a2 ..
//   d0 ..         h0 ..              b2 d2 b3 d3 | ..                 a3 ..
//
// Blocks go in an order that uses up whole cache lines of both sides while they are near.

#include "LoopNest.h"
#include "Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dlc::cpu {
namespace {

constexpr int64_t kPieceBits = 128, kLineBits = 512;

class Transpose final : LoopNest {
public:
  Transpose(RewriterBase &rewriter, linalg::GenericOp op, const Target &target) : LoopNest(rewriter, op.getLoc()), op(op), target(target) {}

  bool isOne() {
    if (op.getNumReductionLoops() || op.getNumLoops() < 2 || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1)
      return false;
    auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
    if (&op.getBody()->front() != yield || yield.getOperand(0) != op.getBody()->getArgument(0))
      return false;
    from = op.getDpsInputs()[0];
    to = op.getDpsInits()[0];
    for (Value side : {from, to}) {
      auto type = dyn_cast<MemRefType>(side.getType());
      SmallVector<int64_t> strides;
      int64_t offset;
      if (!type || failed(type.getStridesAndOffset(strides, offset)) || strides.empty() || strides.back() != 1)
        return false;
    }
    fromMap = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
    toMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    if (!fromMap.isPermutation() || !toMap.isPermutation())
      return false;
    column = fromMap.getDimPosition(fromMap.getNumResults() - 1);
    row = toMap.getDimPosition(toMap.getNumResults() - 1);
    bits = cast<MemRefType>(from.getType()).getElementTypeBitWidth();
    return row != column && bits >= 8 && bits <= 64;
  }

  void emit() {
    rewriter.setInsertionPoint(op);
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      for (auto [i, e] : llvm::enumerate(toMap.getResults()))
        if (e == rewriter.getAffineDimExpr(loop))
          extents.push_back(memref::DimOp::create(rewriter, loc, to, i));
    begin(op.getNumLoops());
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (loop != row && loop != column)
        enter(loop, zero, extents[loop], 1);

    lanes = kPieceBits / bits;
    pieces = std::max<int64_t>(target.vectorBits / kPieceBits, 1);
    int64_t height = lanes * pieces, line = kLineBits / bits;
    Value rows = extents[row], columns = extents[column];
    int64_t tall = std::max(height, line), wide = line;
    Value rowEnd = floorTo(rows, height), columnEnd = floorTo(columns, lanes);
    // Whole lines of both sides, then what is left of blocks, then of elements.
    Value tallEnd = floorTo(rows, tall), wideEnd = floorTo(columns, wide);
    blocks(zero, wideEnd, wide, zero, tallEnd, tall);
    blocks(zero, wideEnd, lanes, tallEnd, rowEnd, height);
    blocks(wideEnd, columnEnd, lanes, zero, rowEnd, height);
    elements(zero, columnEnd, rowEnd, rows);
    elements(columnEnd, columns, zero, rows);
    rewriter.eraseOp(op);
  }

private:
  Value floorTo(Value size, int64_t step) {
    return arith::SubIOp::create(rewriter, loc, size, arith::RemUIOp::create(rewriter, loc, size, number(step)));
  }

  /// Blocks of a register's height and a piece's width, in larger ones of `wide` columns and `tall` rows.
  void blocks(Value columnBegin, Value columnEnd, int64_t wide, Value rowBegin, Value rowEnd, int64_t tall) {
    OpBuilder::InsertionGuard guard(rewriter);
    enter(column, columnBegin, columnEnd, wide);
    enter(row, rowBegin, rowEnd, tall);
    Value firstColumn = indices[column], firstRow = indices[row];
    for (int64_t c = 0; c < wide; c += lanes)
      for (int64_t r = 0; r < tall; r += lanes * pieces) {
        indices[column] = arith::AddIOp::create(rewriter, loc, firstColumn, number(c));
        indices[row] = arith::AddIOp::create(rewriter, loc, firstRow, number(r));
        block();
      }
  }

  void block() {
    Value firstColumn = indices[column], firstRow = indices[row];
    Type element = cast<MemRefType>(from.getType()).getElementType();
    auto piece = VectorType::get(lanes, element);
    SmallVector<Value> block;
    for (int64_t i = 0; i < lanes; ++i) {
      SmallVector<Value> parts;
      for (int64_t p = 0; p < pieces; ++p) {
        indices[row] = arith::AddIOp::create(rewriter, loc, firstRow, number(p * lanes + i));
        parts.push_back(vector::LoadOp::create(rewriter, loc, piece, from, at(fromMap)));
      }
      for (; parts.size() > 1; parts.resize(parts.size() / 2))
        for (size_t p = 0; p < parts.size() / 2; ++p)
          parts[p] = join(parts[2 * p], parts[2 * p + 1]);
      block.push_back(parts[0]);
    }
    for (int64_t distance = lanes / 2, round = 1; round < lanes; round *= 2) {
      SmallVector<Value> next;
      for (int64_t i = 0; i < lanes / 2; ++i)
        for (bool high : {false, true})
          next.push_back(interleave(block[i], block[i + distance], high));
      block = std::move(next);
    }
    indices[row] = firstRow;
    for (int64_t i = 0; i < lanes; ++i) {
      indices[column] = arith::AddIOp::create(rewriter, loc, firstColumn, number(i));
      vector::StoreOp::create(rewriter, loc, block[i], to, at(toMap));
    }
  }

  /// Two vectors as one.
  Value join(Value x, Value y) {
    return vector::ShuffleOp::create(
        rewriter, loc, x, y, llvm::to_vector(llvm::seq<int64_t>(0, 2 * cast<VectorType>(x.getType()).getDimSize(0))));
  }

  /// x0 y0 x1 y1 .. of the low or the high half of each piece.
  Value interleave(Value x, Value y, bool high) {
    SmallVector<int64_t> mask;
    for (int64_t p = 0; p < pieces; ++p)
      for (int64_t i = 0; i < lanes / 2; ++i) {
        int64_t source = p * lanes + (high ? lanes / 2 : 0) + i;
        mask.push_back(source);
        mask.push_back(source + lanes * pieces);
      }
    return vector::ShuffleOp::create(rewriter, loc, x, y, mask);
  }

  void elements(Value columnBegin, Value columnEnd, Value rowBegin, Value rowEnd) {
    OpBuilder::InsertionGuard guard(rewriter);
    enter(column, columnBegin, columnEnd, 1);
    enter(row, rowBegin, rowEnd, 1);
    Value x = memref::LoadOp::create(rewriter, loc, from, at(fromMap));
    memref::StoreOp::create(rewriter, loc, x, to, at(toMap));
  }

  Value extentOf(unsigned loop) override { return extents[loop]; }

  linalg::GenericOp op;
  const Target &target;
  Value from, to;
  AffineMap fromMap, toMap;
  unsigned row = 0, column = 0; // the loops along which `to` and `from` are contiguous
  int64_t bits = 0, lanes = 0, pieces = 0;
  SmallVector<Value> extents;
};

struct VectorizeTransposes : PassWrapper<VectorizeTransposes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VectorizeTransposes)
  StringRef getArgument() const final { return "vectorize-transposes"; }
  StringRef getDescription() const final { return "Transpose through registers, block by block"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    auto target = targetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::GenericOp op : ops)
      if (Transpose transpose(rewriter, op, *target); transpose.isOne())
        transpose.emit();
  }
};

} // namespace

std::unique_ptr<Pass> createVectorizeTransposesPass() { return std::make_unique<VectorizeTransposes>(); }

} // namespace dlc::cpu
