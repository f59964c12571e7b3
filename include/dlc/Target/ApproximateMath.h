// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The functions of the math dialect as arithmetic, the same for every target and for whoever evaluates constants. docs/math.md
// has the bounds of their errors.

#ifndef DLC_TARGET_APPROXIMATEMATH_H
#define DLC_TARGET_APPROXIMATEMATH_H

namespace mlir {
class Operation;
} // namespace mlir

namespace dlc {

/// Replaces a function of the math dialect on f32, a scalar or a vector, by straight-line arith, math.fma, math.copysign,
/// math.absf, math.sqrt and math.roundeven: no branch, call or table, so loops over it vectorise. Returns whether it did: f64 and
/// what is an instruction (sqrt, floor, ...) stay. An fma may be computed as a product and a sum.
bool approximateMath(mlir::Operation *op);

} // namespace dlc

#endif
