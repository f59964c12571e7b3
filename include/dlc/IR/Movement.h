// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The ops that move elements; see Movement.td.

#ifndef DLC_IR_MOVEMENT_H
#define DLC_IR_MOVEMENT_H

#include "dlc/IR/Dialect.h"

#define GET_OP_CLASSES
#include "dlc/IR/Movement.h.inc"

namespace dlc {

/// What makes an argument state: memory that the caller keeps from run to run. See bind-state.
inline constexpr llvm::StringLiteral kStateAttr = "dlc.state"; // on arguments: I64Attr, the axis along which it grows
inline constexpr llvm::StringLiteral kStateOfAttr =
    "dlc.state_of"; // on results: I64Attr, the argument whose next value it is
inline constexpr llvm::StringLiteral kLengthAttr = "dlc.length"; // on the function: DictionaryAttr of
inline constexpr llvm::StringLiteral kLengthSymbol = "symbol";   //   StringAttr: how long all states are before the run
inline constexpr llvm::StringLiteral kLengthCapacity = "capacity"; //   StringAttr: how long they can become
inline constexpr llvm::StringLiteral kLengthGrowth = "growth";     //   DimExpr: by how much a run makes them longer

} // namespace dlc

#endif
