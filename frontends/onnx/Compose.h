// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Compositions that several families of operators are made of. Ranks of values that nodes make are not known during the import, so
// that what depends on one is a dlc.if whose condition infer-shapes knows.

#ifndef DLC_FRONTENDS_ONNX_COMPOSE_H
#define DLC_FRONTENDS_ONNX_COMPOSE_H

#include "NodeReader.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace dlc {

using Make = llvm::function_ref<llvm::SmallVector<mlir::Value>()>;

/// What `then` makes where the condition (a bool tensor of one element) is true, else what `otherwise` makes: as many values of the same types.
llvm::SmallVector<mlir::Value> makeIf(NodeReader &n, mlir::Value condition, Make then, Make otherwise);
/// The same by whether x has that many axes; decided at once where the import knows it.
mlir::Value makeByRank(NodeReader &n, mlir::Value x, int64_t rank, llvm::function_ref<mlir::Value()> then,
                       llvm::function_ref<mlir::Value()> otherwise);

/// The size of an axis, as an int64 tensor of one element.
mlir::Value dimOf(NodeReader &n, mlir::Value x, int64_t axis);
/// The same as a number, where the import knows it.
std::optional<int64_t> knownDim(mlir::Value x, int64_t axis);
mlir::Value reshape(NodeReader &n, mlir::Value x, mlir::Value shape, bool allowzero = false);
mlir::Value transpose(NodeReader &n, mlir::Value x, llvm::ArrayRef<int64_t> perm);
mlir::Value unsqueeze(NodeReader &n, mlir::Value x, llvm::ArrayRef<int64_t> axes);
mlir::Value concat(NodeReader &n, llvm::ArrayRef<mlir::Value> parts, int64_t axis);
/// The elements [start, end) along an axis; both are tensors of one element.
mlir::Value slice(NodeReader &n, mlir::Value x, mlir::Value start, mlir::Value end, int64_t axis);
/// What stands at one index of an axis, which goes.
mlir::Value pick(NodeReader &n, mlir::Value x, int64_t index, int64_t axis);

/// f32 for narrower floats, in which sums are made; else the type itself.
mlir::Type typeOfSums(NodeReader &n, mlir::Type type);

/// x with the maximum along `axis` taken out, so that nothing overflows, and the exponentials of that and their sum. In the type of x. With
/// `isMasked`, rows of -inf alone give 0.
mlir::Value softmaxAlong(NodeReader &n, mlir::Value x, int64_t axis, bool logarithm, bool isMasked = false);

/// In Rotary.cpp: pairs of elements of the last axis of x turned by angles whose cosines and sines broadcast with the first of each pair. Pairs
/// are elements side by side, or half of what is turned apart. With `mayHaveRest`, what lies behind the pairs stays as it is.
mlir::Value rotate(NodeReader &n, mlir::Value x, mlir::Value cosines, mlir::Value sines, bool interleaved, bool mayHaveRest);

/// For operators that no schema checks: the inputs that are there have the type of the first one, a float of 16 bits or more.
void requireOneFloatType(NodeReader &n, llvm::ArrayRef<unsigned> inputs);
/// The same: an input that is there has integers.
void requireIntegers(NodeReader &n, unsigned input);
/// An attribute that must be 0 or left out.
void refuseFlag(NodeReader &n, llvm::StringRef name);

} // namespace dlc

#endif
