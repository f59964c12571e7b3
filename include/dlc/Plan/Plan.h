// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The plan dialect's C++ face.

#ifndef DLC_PLAN_PLAN_H
#define DLC_PLAN_PLAN_H

#include "dlc/IR/DimExpr.h"
#include "dlc/IR/Dialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dlc/Plan/PlanDialect.h.inc"
#include "dlc/Plan/PlanEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dlc/Plan/PlanTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dlc/Plan/PlanAttrs.h.inc"

#define GET_OP_CLASSES
#include "dlc/Plan/PlanOps.h.inc"

namespace dlc::plan {

/// Attributes of a variant's module.
inline constexpr llvm::StringLiteral kTargetAttr = "plan.target"; // StringAttr: the resolved target, "cpu:x86-64-v2"
inline constexpr llvm::StringLiteral kImageAttr = "plan.image";   // #dlc.weight: the code image, there after codegen
inline constexpr llvm::StringLiteral kImportsAttr = "plan.imports"; // DenseI32ArrayAttr: numbers of enum dlcrt_import that the code calls; also on each kernel that calls some
inline constexpr llvm::StringLiteral kPartsAttr = "plan.parts"; // on a merged kernel, which has no body: ArrayAttr of FlatSymbolRefAttr
// On launches: DimExprs, for reports only.
inline constexpr llvm::StringLiteral kFlopsAttr = "plan.flops";     // arithmetic operations
inline constexpr llvm::StringLiteral kTrafficAttr = "plan.traffic"; // bytes read and written
inline constexpr llvm::StringLiteral kPriorityAttr = "plan.priority"; // I64Attr: of the variants that fit, the highest wins

} // namespace dlc::plan

#endif
