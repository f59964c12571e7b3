// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/AxisSet.h"

using namespace mlir;

namespace dlc {

AxisSet::AxisSet(ShapeContext &context, ArrayRef<DimExpr> axes, int64_t rank) : context(context), count(axes.size()) {
  MLIRContext *c = context.getContext();
  DimExpr one = constantDim(c, 1);
  SmallVector<DimExpr> chosen = context.named(axes);
  for (int64_t i = 0; i != rank; ++i) {
    DimExpr flag = constantDim(c, 0);
    for (DimExpr axis : chosen)
      flag = selectEqDims(axis, constantDim(c, i), one, flag);
    flags.push_back(flag);
  }
  flags = context.named(flags);
}

SmallVector<DimExpr> AxisSet::without(ArrayRef<DimExpr> dims) const {
  MLIRContext *c = context.getContext();
  int64_t rank = dims.size();
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1);
  SmallVector<DimExpr> kept; // how many of the axes 0 .. i stay
  for (DimExpr flag : flags)
    kept.push_back(addDims(kept.empty() ? zero : kept.back(), subDims(one, flag)));
  // The j-th axis that stays is the first with more than j kept up to it: one of j .. j + count.
  SmallVector<DimExpr> places;
  for (int64_t j = 0; j != rank - count; ++j) {
    DimExpr place = constantDim(c, j);
    for (int64_t i = j; i != j + count; ++i)
      place = addDims(place, selectLtDims(kept[i], constantDim(c, j + 1), one, zero));
    places.push_back(place);
  }
  places = context.named(places);
  SmallVector<DimExpr> result;
  for (int64_t j = 0; j != rank - count; ++j) {
    DimExpr dim = dims[j + count];
    for (int64_t i = j + count; i-- > j;)
      dim = selectEqDims(places[j], constantDim(c, i), dims[i], dim);
    result.push_back(dim);
  }
  return result;
}

SmallVector<DimExpr> AxisSet::withOnes(ArrayRef<DimExpr> dims) const {
  MLIRContext *c = context.getContext();
  int64_t rank = dims.size();
  DimExpr one = constantDim(c, 1), none = constantDim(c, -1), before = constantDim(c, 0);
  SmallVector<DimExpr> sources; // which dim stands at i, or -1
  for (auto [i, flag] : llvm::enumerate(flags)) {
    sources.push_back(selectEqDims(flag, one, none, subDims(constantDim(c, i), before)));
    before = addDims(before, flag);
  }
  sources = context.named(sources);
  SmallVector<DimExpr> result;
  for (int64_t i = 0; i != rank + count; ++i) {
    DimExpr dim = one;
    for (int64_t k = std::max<int64_t>(i - count, 0); k <= std::min(i, rank - 1); ++k)
      dim = selectEqDims(sources[i], constantDim(c, k), dims[k], dim);
    result.push_back(dim);
  }
  return result;
}

SmallVector<DimExpr> splitDims(ArrayRef<DimExpr> dims, ArrayRef<DimExpr> flags) {
  SmallVector<DimExpr> result;
  for (auto [dim, flag] : llvm::zip_equal(dims, flags)) {
    DimExpr zero = constantDim(dim.getContext(), 0), one = constantDim(dim.getContext(), 1);
    result.push_back(selectEqDims(flag, zero, dim, one));
    result.push_back(selectEqDims(flag, zero, one, dim));
  }
  return result;
}

} // namespace dlc
