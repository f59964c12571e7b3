// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The dlc dialect: the interface through which passes question its ops, the ops that hold the graph together, and the store of
// weights. The other families of ops have headers of their own.

#ifndef DLC_IR_DIALECT_H
#define DLC_IR_DIALECT_H

#include "dlc/IR/DimExpr.h"
#include "dlc/IR/Scalar.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "dlc/IR/WeightStore.h"

namespace dlc {

class ShapeContext;
class LowerContext;

/// The implementation forms of an op; see the op interface.
enum class Form { Scalar, Expand, Lower, Kernel, View, Host, Missing };
enum class Role { Elementwise, Reduction, Contraction, Convolution, Window, Attention, Movement, Opaque };
enum class LayoutNeed { Any, ChannelAware, Plain };
enum class PrecisionNeed { Free, AccumulateF32, KeepF32 };
enum class QuantNeed { None, Integer };

/// The element of an operand, by number, at these indices.
using ElementReader = llvm::function_ref<mlir::Value(mlir::OpBuilder &, unsigned operand, mlir::ValueRange at)>;

/// Where an element-wise op gets its result's element type from.
enum class ElementRule { Same, First, Second, Bool, Attribute };
/// The shape rule of all element-wise ops: operands broadcast, element types agree.
llvm::LogicalResult shapeElementwise(ShapeContext &context, ElementRule rule);
/// One operation an element of the result.
DimExpr elementwiseCost(mlir::Operation *op);
/// How many elements a tensor has in memory; null when that does not fit 64 bits.
DimExpr elementsOf(mlir::Value tensor);
/// All elements of an operand; of an op that moves elements, at most as many as it gives.
DimExpr elementsReadBy(mlir::Operation *op, unsigned operand);

} // namespace dlc

#include "dlc/IR/DlcDialect.h.inc"
#include "dlc/IR/DlcInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dlc/IR/Structure.h.inc"

namespace dlc {

/// How many of the innermost dims of its operand 0 a reduction reduces, where it reduces no others; 0 for other ops.
unsigned rowAxesOf(DlcOp op);

/// The elements of a constant as bytes (little-endian, bool one byte), whatever attribute holds it. A splat is one element
/// long and `isSplat` says so. Nothing when `value` is no constant, or its weight is not in the store.
struct ConstantBytes {
  llvm::ArrayRef<char> data;
  bool isSplat = false;
  llvm::SmallVector<char> owned; // where the attribute does not hold the bytes in this layout
};
std::optional<ConstantBytes> constantBytes(mlir::Attribute value);

/// The elements of an integer or bool constant of at most `limit` elements.
std::optional<llvm::SmallVector<int64_t>> constantIntegers(mlir::Attribute value, unsigned limit = 64);

/// The number that `v` repeats where it is a constant of one number; null otherwise.
mlir::DenseElementsAttr splatOf(mlir::Value v);

/// A constant attribute for these bytes: small ones in the IR, large ones through the dialect's weight store (which then
/// shares `owner`'s memory: `bytes` must lie in it).
mlir::TypedAttr makeConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner);

/// A reshape of `x` to the dims of `type`; `x` itself where it has them already.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::RankedTensorType type);

/// Names of function arguments and results, and the symbols of a function: the attributes that keep the model's signature.
inline constexpr llvm::StringLiteral kNameAttr = "dlc.name";         // on arguments and results: StringAttr
inline constexpr llvm::StringLiteral kDefaultAttr = "dlc.default";   // on arguments: the initializer used when none is bound
inline constexpr llvm::StringLiteral kInlineAttr = "dlc.inline";     // on ops in a group: computed where they are read, at any index (UnitAttr)
inline constexpr llvm::StringLiteral kSymbolsAttr = "dlc.symbols";   // on the function: ArrayAttr of #dlc.symbol

} // namespace dlc

#endif
