// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Dimension expressions: integers over named symbols. Two dimensions are equal exactly when their expressions are the same
// attribute, so every builder here canonicalises: sums of products in one order, constants folded.
//
// Symbols stand for sizes and are never negative, except late symbols read from data (`dlc.read`), which may be anything
// unless they count something.
// All builders return a null expression when an operand is null, a constant does not fit 64 bits, or the expression would have
// more than 512 parts; callers test once, at the end.

#ifndef DLC_IR_DIMEXPR_H
#define DLC_IR_DIMEXPR_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace dlc {

/// Kinds of expressions; the meaning of each stands at enum dlcrt_expr_kind in dlcrt/format.h, in the same order.
enum class DimKind { Const, Symbol, Add, Mul, FloorDiv, CeilDiv, Mod, Min, Max, SelectEq, SelectLt, ScaledFloor };

} // namespace dlc

#include "dlc/IR/Kinds.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dlc/IR/DlcAttrs.h.inc"

namespace dlc {

using DimExpr = DimExprAttr;

DimExpr constantDim(mlir::MLIRContext *context, int64_t value);
DimExpr symbolDim(mlir::MLIRContext *context, llvm::StringRef name);
/// The name of the symbol that stands for element `k` of a tensor, to be read at run time. A count is never negative.
std::string lateSymbolName(llvm::StringRef stem, int64_t k, bool isCount);

DimExpr addDims(DimExpr a, DimExpr b);
DimExpr subDims(DimExpr a, DimExpr b);
DimExpr mulDims(DimExpr a, DimExpr b);
DimExpr floorDivDims(DimExpr a, DimExpr b);
DimExpr ceilDivDims(DimExpr a, DimExpr b);
DimExpr modDims(DimExpr a, DimExpr b);
DimExpr minDims(DimExpr a, DimExpr b);
DimExpr maxDims(DimExpr a, DimExpr b);
/// a == b ? x : y
DimExpr selectEqDims(DimExpr a, DimExpr b, DimExpr x, DimExpr y);
/// a < b ? x : y
DimExpr selectLtDims(DimExpr a, DimExpr b, DimExpr x, DimExpr y);
/// floor(a * scale)
DimExpr scaledFloorDims(DimExpr a, double scale);
DimExpr productOfDims(mlir::MLIRContext *context, llvm::ArrayRef<DimExpr> dims);

/// Lower and upper bounds over all values of the symbols, as far as they can be told; symbols count as >= 0.
std::optional<int64_t> lowerBound(DimExpr e);
std::optional<int64_t> upperBound(DimExpr e);
/// True when a == b (a != b) holds for every value of the symbols; false when that is not known.
bool provablyEqual(DimExpr a, DimExpr b);
bool provablyDifferent(DimExpr a, DimExpr b);

/// Replaces symbols; a null answer keeps the symbol.
DimExpr substituteDims(DimExpr e, llvm::function_ref<DimExpr(llvm::StringRef)> replacement);
/// Calls `visit` for each symbol in `e`, in order of appearance, repeats included.
void forEachSymbol(DimExpr e, llvm::function_ref<void(llvm::StringRef)> visit);
/// The value for given values of the symbols; nothing for an unknown symbol, an overflow or a division by a number <= 0.
std::optional<int64_t> evaluateDim(DimExpr e, llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> value);

/// As written in the IR and in messages: `batch * seq + 1`.
std::string toString(DimExpr e);
std::string toString(llvm::ArrayRef<DimExpr> dims);

/// The dims of a ranked tensor type, constants included.
llvm::SmallVector<DimExpr> dimsOf(mlir::Type type);
/// A tensor type with these dims; it carries an encoding only when a dim is not constant or the layout is not plain (null).
mlir::RankedTensorType tensorType(llvm::ArrayRef<DimExpr> dims, mlir::Type elementType, mlir::Attribute layout = {});
/// The same as the caller of a module sees it: 4-bit and 2-bit elements are packed.
mlir::RankedTensorType boundaryType(llvm::ArrayRef<DimExpr> dims, mlir::Type elementType);
mlir::Attribute layoutOf(mlir::Type type);
bool isPacked(mlir::Type type);

/// Integers of 4 and 2 bits and float4e2m1: the types that ONNX packs. Not bool.
bool isSubByte(mlir::Type elementType);
/// Floats of at most 8 bits. They are stored and converted; nothing computes in them.
bool isSmallFloat(mlir::Type elementType);

/// The type in which memory holds an element: signless integers; bool, 4-bit and 2-bit types and all floats of at most 8 bits as
/// i8. In their byte, elements of fewer than 8 bits stand in the low bits; above them are copies of the sign bit for signed integers
/// and zeros for all other types.
mlir::Type storageElementType(mlir::Type elementType);
/// The type of the memory of a tensor: without encoding, in the storage element type; one axis of bytes where it is packed.
mlir::RankedTensorType storageType(mlir::RankedTensorType type);
/// The dims of that memory.
llvm::SmallVector<DimExpr> storageDims(mlir::RankedTensorType type);

} // namespace dlc

#endif
