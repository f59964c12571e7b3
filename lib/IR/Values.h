// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Values of small tensors, element by element.

#ifndef DLC_LIB_IR_VALUES_H
#define DLC_LIB_IR_VALUES_H

#include "dlc/IR/ShapeContext.h"

namespace dlc {

/// The sizes, where they are known and few enough elements have them.
std::optional<llvm::SmallVector<int64_t>> sizesForValues(llvm::ArrayRef<DimExpr> dims);

/// For each element of such sizes, row-major, its indices.
void forEachElement(llvm::ArrayRef<int64_t> sizes, llvm::function_ref<void(llvm::ArrayRef<int64_t> at)> visit);

/// The value of operand i at indices; null where it is not known, or its sizes are not.
DimExpr valueAt(const ShapeContext &context, unsigned i, llvm::ArrayRef<int64_t> at);

} // namespace dlc

#endif
