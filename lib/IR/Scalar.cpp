// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Scalar.h"
#include "dlc/IR/DimExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dlc {

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// The type that arith computes in: what memory holds, but bool as i1.
static Type computeType(Type type) { return type.isInteger(1) ? type : storageElementType(type); }

static Value constantOf(OpBuilder &b, Location loc, Type type, double value) {
  if (auto floating = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(floating, value));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(computeType(type), static_cast<int64_t>(value)));
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
static Scalar arithmetic(const Scalar &x, const Scalar &y) {
  OpBuilder &b = x.b();
  if (x.isFloat())
    return x.with(FloatOp::create(b, x.getLoc(), x.getValue(), y.getValue()));
  if (x.isUnsigned())
    return x.with(UnsignedOp::create(b, x.getLoc(), x.getValue(), y.getValue()));
  return x.with(SignedOp::create(b, x.getLoc(), x.getValue(), y.getValue()));
}

static Scalar compare(const Scalar &x, const Scalar &y, arith::CmpFPredicate ordered, arith::CmpIPredicate isSigned,
                      arith::CmpIPredicate isUnsigned) {
  OpBuilder &b = x.b();
  if (x.isFloat())
    return x.asBool(arith::CmpFOp::create(b, x.getLoc(), ordered, x.getValue(), y.getValue()));
  return x.asBool(
      arith::CmpIOp::create(b, x.getLoc(), x.isUnsigned() ? isUnsigned : isSigned, x.getValue(), y.getValue()));
}

template <typename MathOp> static Scalar unary(const Scalar &x) { return x.with(MathOp::create(x.b(), x.getLoc(), x.getValue())); }

//===----------------------------------------------------------------------===//
// Constants and conversions
//===----------------------------------------------------------------------===//

Scalar ScalarBuilder::constant(double value, const Scalar &like) {
  return like.with(constantOf(builder, loc, like.getType(), value));
}

Scalar ScalarBuilder::constant(DenseElementsAttr splat) {
  Type type = splat.getElementType();
  Type compute = computeType(type);
  TypedAttr element;
  if (isa<FloatType>(compute)) {
    element = builder.getFloatAttr(type, splat.getSplatValue<APFloat>());
  } else {
    APInt bits = isa<FloatType>(type) ? splat.getSplatValue<APFloat>().bitcastToAPInt() : splat.getSplatValue<APInt>();
    unsigned width = compute.getIntOrFloatBitWidth();
    element = builder.getIntegerAttr(compute, type.isSignlessInteger() ? bits.sextOrTrunc(width) : bits.zextOrTrunc(width));
  }
  return wrap(arith::ConstantOp::create(builder, loc, element), type);
}

Scalar ScalarBuilder::index(int64_t axis) {
  Type type = builder.getI64Type();
  Value position = linalg::IndexOp::create(builder, loc, axis);
  return wrap(arith::IndexCastOp::create(builder, loc, type, position), type);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Scalar operator+(const Scalar &x, const Scalar &y) { return arithmetic<arith::AddFOp, arith::AddIOp, arith::AddIOp>(x, y); }
Scalar operator-(const Scalar &x, const Scalar &y) { return arithmetic<arith::SubFOp, arith::SubIOp, arith::SubIOp>(x, y); }
Scalar operator*(const Scalar &x, const Scalar &y) { return arithmetic<arith::MulFOp, arith::MulIOp, arith::MulIOp>(x, y); }

Scalar operator-(const Scalar &x) {
  if (x.isFloat())
    return unary<arith::NegFOp>(x);
  return x.with(arith::SubIOp::create(x.b(), x.getLoc(), constantOf(x.b(), x.getLoc(), x.getType(), 0), x.getValue()));
}

Scalar operator!(const Scalar &x) { // all bits, which in a bool are one
  Value ones = constantOf(x.b(), x.getLoc(), x.getType(), -1);
  return x.with(arith::XOrIOp::create(x.b(), x.getLoc(), x.getValue(), ones));
}

Scalar operator&(const Scalar &x, const Scalar &y) { return x.with(arith::AndIOp::create(x.b(), x.getLoc(), x.getValue(), y.getValue())); }
Scalar operator|(const Scalar &x, const Scalar &y) { return x.with(arith::OrIOp::create(x.b(), x.getLoc(), x.getValue(), y.getValue())); }

Scalar operator==(const Scalar &x, const Scalar &y) {
  return compare(x, y, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq);
}
Scalar operator<(const Scalar &x, const Scalar &y) {
  return compare(x, y, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult);
}
Scalar operator<=(const Scalar &x, const Scalar &y) {
  return compare(x, y, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule);
}
Scalar operator>(const Scalar &x, const Scalar &y) {
  return compare(x, y, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt);
}
Scalar operator>=(const Scalar &x, const Scalar &y) {
  return compare(x, y, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge);
}

Scalar select(const Scalar &condition, const Scalar &x, const Scalar &y) {
  return x.with(arith::SelectOp::create(x.b(), x.getLoc(), condition.getValue(), x.getValue(), y.getValue()));
}

Scalar min(const Scalar &x, const Scalar &y) { return arithmetic<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(x, y); }
Scalar max(const Scalar &x, const Scalar &y) { return arithmetic<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(x, y); }

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Scalar abs(const Scalar &x) {
  if (x.isFloat())
    return unary<math::AbsFOp>(x);
  if (x.isUnsigned())
    return x;
  return unary<math::AbsIOp>(x);
}

Scalar ceil(const Scalar &x) { return unary<math::CeilOp>(x); }
Scalar exp(const Scalar &x) { return unary<math::ExpOp>(x); }
Scalar floor(const Scalar &x) { return unary<math::FloorOp>(x); }
Scalar log(const Scalar &x) { return unary<math::LogOp>(x); }
Scalar log1p(const Scalar &x) { return unary<math::Log1pOp>(x); }
Scalar sqrt(const Scalar &x) { return unary<math::SqrtOp>(x); }
Scalar tanh(const Scalar &x) { return unary<math::TanhOp>(x); }

/// e^-|x| is at most 1, so nothing overflows and small results keep their digits.
Scalar sigmoid(const Scalar &x) {
  ScalarBuilder scalars(x.b(), x.getLoc());
  Scalar zero = scalars.constant(0, x), one = scalars.constant(1, x), e = exp(-abs(x));
  return select(x < zero, e, one) / (one + e);
}

} // namespace dlc
