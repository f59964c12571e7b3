// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Patterns that name ops; each is right for static and symbolic dims alike.

#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace dlc {
#define GEN_PASS_DEF_SIMPLIFY
#include "dlc/Transforms/Passes.h.inc"
} // namespace dlc

using namespace mlir;

namespace dlc {
namespace {

/// The number that a constant repeats; nothing for other values.
std::optional<double> numberOf(Value v) {
  DenseElementsAttr elements = splatOf(v);
  if (!elements)
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  if (elements.getElementType().isInteger(1))
    return std::nullopt;
  APInt value = elements.getSplatValue<APInt>();
  return elements.getElementType().isUnsignedInteger() ? value.roundToDouble(false) : value.roundToDouble(true);
}

/// x op neutral -> x, where the result has x's type (no broadcast). Adding 0 is not neutral for floats: -0 + 0 is 0.
template <typename OpTy> struct DropNeutral : OpRewritePattern<OpTy> {
  DropNeutral(MLIRContext *context, double neutral, bool commutes) : OpRewritePattern<OpTy>(context), neutral(neutral), commutes(commutes) {}
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    for (auto [x, y] : {std::pair(op.getX(), op.getY()), std::pair(op.getY(), op.getX())}) {
      if (x.getType() == op.getResult().getType() && numberOf(y) == neutral)
        return rewriter.replaceOp(op, x), success();
      if (!commutes)
        break;
    }
    return failure();
  }
  double neutral;
  bool commutes;
};

struct DropIdentityCast : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    if (op.getX().getType() != op.getResult().getType())
      return failure();
    return rewriter.replaceOp(op, op.getX()), success();
  }
};

/// Packed elements that nothing but the boundary of the module sees stay as they are.
struct DropUnpackAndPack : OpRewritePattern<PackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PackOp op, PatternRewriter &rewriter) const override {
    auto unpack = op.getX().getDefiningOp<UnpackOp>();
    if (!unpack || unpack.getX().getType() != op.getResult().getType())
      return failure();
    return rewriter.replaceOp(op, unpack.getX()), success();
  }
};

struct DropIdentityExpand : OpRewritePattern<ExpandOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandOp op, PatternRewriter &rewriter) const override {
    if (op.getX().getType() != op.getResult().getType())
      return failure();
    return rewriter.replaceOp(op, op.getX()), success();
  }
};

struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    if (op.getX().getType() == op.getResult().getType())
      return rewriter.replaceOp(op, op.getX()), success();
    auto first = op.getX().getDefiningOp<ReshapeOp>();
    // The dims are in the types once shapes are inferred; `shape` is only right for the operand that it was written for.
    if (!first || !isa<RankedTensorType>(op.getResult().getType()))
      return failure();
    rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), first.getX(), cast<RankedTensorType>(op.getResult().getType())));
    return success();
  }
};

struct SimplifyTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    if (!op.getPerm())
      return failure();
    SmallVector<int64_t> perm(*op.getPerm());
    if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
      return rewriter.replaceOp(op, op.getX()), success();
    auto first = op.getX().getDefiningOp<TransposeOp>();
    if (!first || !first.getPerm())
      return failure();
    for (int64_t &axis : perm)
      axis = (*first.getPerm())[axis];
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getResult().getType(), first.getX(), rewriter.getDenseI64ArrayAttr(perm));
    return success();
  }
};

/// A product reads its operands through the transposes before it, where what lies side by side still does so along a dim that matters:
/// the terms of the first operand; terms or columns of the second.
struct TransposeIntoMatMul : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatMulOp op, PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned i : {0, 1}) {
      auto transpose = op->getOperand(i).getDefiningOp<TransposeOp>();
      if (!transpose || !transpose.getPerm() || !transpose->hasOneUse() || transpose->getBlock() != op->getBlock())
        continue;
      std::optional<ArrayRef<int64_t>> outer = i ? op.getBPerm() : op.getAPerm();
      SmallVector<int64_t> perm(*transpose.getPerm());
      if (outer)
        for (auto [axis, position] : llvm::zip_equal(perm, *outer))
          axis = (*transpose.getPerm())[position];
      int64_t last = perm.size() - 1, at = llvm::find(perm, last) - perm.begin();
      bool isConstant = transpose.getX().getDefiningOp<ConstantOp>() != nullptr;
      if (at != last && !(i == 1 && (at == last - 1 || isConstant)))
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(i, transpose.getX());
        (i ? op.setBPermAttr(rewriter.getDenseI64ArrayAttr(perm)) : op.setAPermAttr(rewriter.getDenseI64ArrayAttr(perm)));
      });
      changed = true;
    }
    return success(changed);
  }
};

class Simplify : public impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<DropIdentityCast, DropIdentityExpand, DropUnpackAndPack, MergeReshapes, SimplifyTranspose, TransposeIntoMatMul>(context);
    patterns.add<DropNeutral<MulOp>>(context, 1.0, true);
    patterns.add<DropNeutral<DivOp>>(context, 1.0, false);
    patterns.add<DropNeutral<SubOp>>(context, 0.0, false);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace dlc
