// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The body of a linalg.generic, computed on vectors: what the passes that emit vectors share.

#ifndef DLC_BACKENDS_CPU_BODYEVALUATOR_H
#define DLC_BACKENDS_CPU_BODYEVALUATOR_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace dlc::cpu {

/// Values are scalars or vectors of one length; a scalar is widened when it meets a vector.
class BodyEvaluator {
public:
  BodyEvaluator(mlir::OpBuilder &builder, mlir::Block &body) : builder(builder), body(body) {}
  BodyEvaluator(mlir::OpBuilder &builder, mlir::linalg::GenericOp op) : BodyEvaluator(builder, *op.getBody()) {}

  /// Whether every op of the body works element by element, so that all this is possible.
  static bool isElementwise(mlir::Block &body);
  static bool isElementwise(mlir::linalg::GenericOp op) { return isElementwise(*op.getBody()); }

  void setArgument(unsigned i, mlir::Value value) { map.map(body.getArgument(i), value); }
  /// Computes all of the body but the ops in `left`, and what only they need, if it has to.
  void run(llvm::ArrayRef<mlir::Operation *> left = {});
  mlir::Value lookup(mlir::Value value) const { return map.lookupOrDefault(value); }

  /// A copy of `inner` for the values that its operands have now.
  mlir::Value apply(mlir::Operation &inner);

private:
  mlir::OpBuilder &builder;
  mlir::Block &body;
  mlir::IRMapping map;
};

/// `scalar` in all of `lanes` lanes; itself for one.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value scalar, int64_t lanes);
/// `value`, widened if `model` is a vector and it is none.
mlir::Value widenLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Value model);
/// All lanes combined, always in the same order: halves with halves. `lanes` is a vector of a power of two.
mlir::Value combineLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lanes,
                         llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
/// One element, or `lanes` from there on, of a tensor.
mlir::Value readLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, mlir::ValueRange indices, int64_t lanes);
/// The lanes that `mask` sets; zero in the others.
mlir::Value readMasked(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, mlir::ValueRange indices, int64_t lanes, mlir::Value mask);
/// The tensor with `value`, one element or a vector of `lanes`, written there: the lanes that `mask` sets, or all if it is null.
mlir::Value writeLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Value tensor, mlir::ValueRange indices, int64_t lanes,
                       mlir::Value mask = {});
/// The mask of the first `count` lanes.
mlir::Value maskOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value count, int64_t lanes);

/// What the body of an all-parallel linalg.generic yields for one element, or for vectors of them where it is element-wise: `arguments` are those of its
/// inputs, `index` gives the element's place along a loop. Ops that are no vector's go into `cloned` if it is given.
llvm::SmallVector<mlir::Value> evaluate(mlir::OpBuilder &b, mlir::linalg::GenericOp op, llvm::ArrayRef<mlir::Value> arguments,
                                        llvm::function_ref<mlir::Value(unsigned)> index, llvm::SmallVectorImpl<mlir::Operation *> *cloned = nullptr);

} // namespace dlc::cpu

#endif
