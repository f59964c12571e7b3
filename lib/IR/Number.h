// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Floating-point arithmetic in the body of a kernel, for positions and weights. Not for elements of tensors, which have a sign and a storage
// type: see dlc/IR/Scalar.h.

#ifndef DLC_LIB_IR_NUMBER_H
#define DLC_LIB_IR_NUMBER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace dlc {

/// A value of a float type, and where what is computed from it goes.
struct Number {
  mlir::OpBuilder *b;
  mlir::Location loc;
  mlir::Value v;

  Number with(mlir::Value value) const { return {b, loc, value}; }
  /// The same value for code that another builder writes.
  Number in(mlir::OpBuilder &other) const { return {&other, loc, v}; }
  Number constant(double value) const { return with(mlir::arith::ConstantOp::create(*b, loc, b->getFloatAttr(v.getType(), value))); }
  /// Undefined for what no index is; see `clampedIndex`.
  mlir::Value asIndex() const {
    return mlir::arith::IndexCastOp::create(*b, loc, b->getIndexType(), mlir::arith::FPToSIOp::create(*b, loc, b->getI64Type(), v));
  }
  static Number ofIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, mlir::Value index) {
    return {&b, loc, mlir::arith::SIToFPOp::create(b, loc, type, mlir::arith::IndexCastOp::create(b, loc, b.getI64Type(), index))};
  }
};

inline Number operator+(Number x, Number y) { return x.with(mlir::arith::AddFOp::create(*x.b, x.loc, x.v, y.v)); }
inline Number operator-(Number x, Number y) { return x.with(mlir::arith::SubFOp::create(*x.b, x.loc, x.v, y.v)); }
inline Number operator*(Number x, Number y) { return x.with(mlir::arith::MulFOp::create(*x.b, x.loc, x.v, y.v)); }
inline Number operator/(Number x, Number y) { return x.with(mlir::arith::DivFOp::create(*x.b, x.loc, x.v, y.v)); }
inline Number operator+(Number x, double y) { return x + x.constant(y); }
inline Number operator-(Number x, double y) { return x - x.constant(y); }
inline Number operator*(Number x, double y) { return x * x.constant(y); }
inline Number operator-(double x, Number y) { return y.constant(x) - y; }
inline Number floorOf(Number x) { return x.with(mlir::math::FloorOp::create(*x.b, x.loc, x.v)); }
inline Number ceilOf(Number x) { return x.with(mlir::math::CeilOp::create(*x.b, x.loc, x.v)); }
inline Number absOf(Number x) { return x.with(mlir::math::AbsFOp::create(*x.b, x.loc, x.v)); }
// Comparisons are false where an operand is NaN.
inline mlir::Value isLess(Number x, Number y) { return mlir::arith::CmpFOp::create(*x.b, x.loc, mlir::arith::CmpFPredicate::OLT, x.v, y.v); }
inline mlir::Value isAtMost(Number x, Number y) { return mlir::arith::CmpFOp::create(*x.b, x.loc, mlir::arith::CmpFPredicate::OLE, x.v, y.v); }
inline mlir::Value isEqual(Number x, Number y) { return mlir::arith::CmpFOp::create(*x.b, x.loc, mlir::arith::CmpFPredicate::OEQ, x.v, y.v); }
inline Number select(mlir::Value condition, Number x, Number y) {
  return x.with(mlir::arith::SelectOp::create(*x.b, x.loc, condition, x.v, y.v));
}
inline Number minOf(Number x, Number y) { return select(isLess(x, y), x, y); }
inline Number maxOf(Number x, Number y) { return select(isLess(x, y), y, x); }
/// x in [low, high]; low where x is NaN.
inline Number clampOf(Number x, Number low, Number high) { return select(isLess(low, x), minOf(x, high), low); }
/// The index nearest to the whole number x in [0, size), whatever x is; `size` must be positive.
inline mlir::Value clampedIndex(Number x, mlir::Value size) {
  mlir::Value one = mlir::arith::ConstantIndexOp::create(*x.b, x.loc, 1);
  mlir::Value last = mlir::arith::SubIOp::create(*x.b, x.loc, size, one);
  // Once more as an index: the last one may be rounded up as a float.
  return mlir::arith::MinSIOp::create(*x.b, x.loc, clampOf(x, x.constant(0), Number::ofIndex(*x.b, x.loc, x.v.getType(), last)).asIndex(), last);
}

/// Weights of cubic interpolation at a distance below 1, and below 2.
inline Number cubicNear(Number d, double a) { return (d * (a + 2) - (a + 3)) * d * d + 1.0; }
inline Number cubicFar(Number d, double a) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; }

} // namespace dlc

#endif
