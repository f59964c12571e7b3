// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// How kernels are cut when no tuning result says better. A tile should be worth the few hundred nanoseconds that handing it to a
// thread costs, and there should be several tiles for each core.

#include "Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dlc::cpu {

/// Sizes that are not known are taken to be middling.
static int64_t sizeOr(std::optional<int64_t> size, int64_t guess) { return size.value_or(guess); }

/// Elements of work per element of the domain: the product of the reduction loops.
static int64_t workPerElement(plan::KernelOp kernel) {
  int64_t most = 1;
  kernel.getBody().walk([&](linalg::LinalgOp op) {
    int64_t work = 1;
    auto ranges = op.getStaticLoopRanges();
    for (auto [size, kind] : llvm::zip(ranges, op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction)
        work = llvm::SaturatingMultiply<uint64_t>(work, ShapedType::isDynamic(size) ? 128 : std::max<int64_t>(size, 1));
    most = std::max(most, work);
  });
  return most;
}

/// Cuts outer dims, then inner ones, until a tile holds about `elements` of the domain. The last `whole` dims stay whole.
static SmallVector<int64_t> cutFromOutside(ArrayRef<std::optional<int64_t>> domain, int64_t elements, unsigned whole) {
  SmallVector<int64_t> tiles(domain.size(), 0);
  uint64_t inner = 1;
  // From the innermost on: dims that fit into a tile stay whole, the first that does not is cut, those outside it go one by one.
  for (unsigned d = domain.size(); d-- > 0;) {
    uint64_t size = std::max<int64_t>(sizeOr(domain[d], 256), 1);
    bool mayCut = d + whole < domain.size();
    if (mayCut && llvm::SaturatingMultiply(inner, size) > uint64_t(elements)) {
      tiles[d] = std::max<int64_t>(elements / inner, 1);
      inner = elements;
      continue;
    }
    inner = llvm::SaturatingMultiply(inner, size);
    // An unknown dim may be large: outside of what is known to fill a tile it is cut all the same.
    if (mayCut && !domain[d])
      tiles[d] = std::max<int64_t>(llvm::divideCeil(uint64_t(elements), std::max<uint64_t>(inner / size, 1)), 1);
  }
  return tiles;
}

plan::ScheduleAttr defaultSchedule(plan::KernelOp kernel, ArrayRef<std::optional<int64_t>> domain, const Target &target) {
  MLIRContext *context = kernel.getContext();
  SmallVector<int64_t> tiles, registers;
  switch (kernel.getKind().getKind()) {
  case plan::KernelKind::Contraction: {
    // Rows and columns in multiples of the register tile, a few hundred kiloflops a tile.
    int64_t work = workPerElement(kernel), wanted = std::max<int64_t>(512 * 1024 / work, 64);
    int64_t columns = 2 * target.lanes(32);
    tiles.assign(domain.size(), 0);
    if (domain.empty())
      break;
    int64_t n = sizeOr(domain.back(), 512);
    if (domain.size() == 1) {
      tiles[0] = llvm::alignTo(std::max<int64_t>(wanted, columns), columns);
      break;
    }
    int64_t tileN = std::min<int64_t>(n, std::max<int64_t>(256, columns));
    if (!domain.back() || n > tileN)
      tiles.back() = llvm::alignTo(tileN, columns);
    int64_t rows = target.vectorRegisters >= 32 ? 8 : target.fma ? 6 : 4;
    tiles[domain.size() - 2] = llvm::alignTo(std::clamp<int64_t>(wanted / std::max<int64_t>(tileN, 1), rows, 120), rows);
    for (unsigned d = 0; d + 2 < domain.size(); ++d)
      tiles[d] = 1;
    break;
  }
  case plan::KernelKind::Reduction: {
    int64_t work = workPerElement(kernel);
    tiles = cutFromOutside(domain, std::max<int64_t>(32 * 1024 / work, 1), 0);
    break;
  }
  case plan::KernelKind::Elementwise:
  case plan::KernelKind::Movement:
    tiles = cutFromOutside(domain, 16 * 1024, 0);
    break;
  default:
    tiles = cutFromOutside(domain, std::max<int64_t>(32 * 1024 / workPerElement(kernel), 1), 0);
    break;
  }
  return plan::ScheduleAttr::get(context, tiles, registers);
}

} // namespace dlc::cpu
