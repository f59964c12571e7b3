// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Functions of elements, beyond the operators of dlc/IR/Scalar.h.

#ifndef DLC_IR_SCALARMATH_H
#define DLC_IR_SCALARMATH_H

#include "dlc/IR/Scalar.h"

namespace dlc {

/// x in the type that a formula of several steps computes in: f32 for narrower floats.
Scalar widened(const Scalar &x);

Scalar operator^(const Scalar &x, const Scalar &y);
/// The remainder with the sign of the dividend (as C's % and fmod), and with that of the divisor. A run that divides an integer by
/// 0 fails.
Scalar remainder(const Scalar &x, const Scalar &y);
Scalar modulo(const Scalar &x, const Scalar &y);
/// Integers. A shift by less than 0, or by all bits or more, leaves only copies of the sign bit (right) or zeros.
Scalar shiftLeft(const Scalar &x, const Scalar &y);
Scalar shiftRight(const Scalar &x, const Scalar &y);

Scalar sign(const Scalar &x);
Scalar roundEven(const Scalar &x);
Scalar acos(const Scalar &x);
Scalar acosh(const Scalar &x);
Scalar asin(const Scalar &x);
Scalar asinh(const Scalar &x);
Scalar atan(const Scalar &x);
Scalar atanh(const Scalar &x);
Scalar cos(const Scalar &x);
Scalar cosh(const Scalar &x);
Scalar expm1(const Scalar &x);
Scalar sin(const Scalar &x);
Scalar sinh(const Scalar &x);
Scalar tan(const Scalar &x);

Scalar gelu(const Scalar &x);
Scalar geluTanh(const Scalar &x);
/// log(1 + exp(x)), without overflow.
Scalar softplus(const Scalar &x);
/// Towards 0 by `bias` outside of -lambda .. lambda, 0 inside. Integers compare and move as the numbers they are, and truncate.
Scalar shrink(const Scalar &x, double lambda, double bias);

} // namespace dlc

#endif
