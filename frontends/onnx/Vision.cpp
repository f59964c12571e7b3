// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Operators that slide a window over spatial axes, and what stands around them.

#include "OpTable.h"
#include "dlc/IR/Conv.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Normalization.h"
#include "dlc/IR/Pool.h"

using namespace mlir;

namespace dlc {

static SmallVector<int64_t> intsOrNone(NodeReader &n, StringRef name) { return n.findInts(name).value_or(SmallVector<int64_t>()); }

static void conv(NodeReader &n) {
  Value x = n.input(0), w = n.input(1), bias = n.optionalInput(2);
  SmallVector<int64_t> kernel = intsOrNone(n, "kernel_shape");
  if (auto type = dyn_cast<RankedTensorType>(w.getType()); type && !kernel.empty()) {
    bool agrees = static_cast<int64_t>(kernel.size()) + 2 == type.getRank();
    for (size_t i = 0; agrees && i != kernel.size(); ++i)
      agrees = type.isDynamicDim(i + 2) || type.getDimSize(i + 2) == kernel[i];
    if (!agrees)
      return n.fail("its attribute 'kernel_shape' is not what its weights have");
  }
  n.setOutput(0, n.make<ConvOp>(n.elementType(0), x, w, bias, intsOrNone(n, "strides"), intsOrNone(n, "dilations"), intsOrNone(n, "pads"),
                                n.findString("auto_pad").value_or("NOTSET"), n.getInt("group", 1), ArrayAttr()));
}

static Value pool(NodeReader &n, PoolKind kind, bool countPads) {
  std::optional<SmallVector<int64_t>> kernel = n.findInts("kernel_shape");
  if (!kernel && !n.failed())
    n.fail("its attribute 'kernel_shape' is missing");
  Value x = n.input(0);
  return n.make<PoolOp>(n.elementType(0), x, kind, kernel.value_or(SmallVector<int64_t>()), intsOrNone(n, "strides"), intsOrNone(n, "dilations"),
                        intsOrNone(n, "pads"), n.findString("auto_pad").value_or("NOTSET"), n.getFlag("ceil_mode", false), countPads, ArrayAttr(),
                        ArrayAttr());
}

static void maxPool(NodeReader &n) {
  n.ignore("storage_order"); // of the indices
  n.setOutput(0, pool(n, PoolKind::Max, false));
}

static void averagePool(NodeReader &n) { n.setOutput(0, pool(n, PoolKind::Average, n.getFlag("count_include_pad", false))); }

static void globalPool(NodeReader &n, PoolKind kind) { n.setOutput(0, n.make<GlobalPoolOp>(n.elementType(0), n.input(0), kind)); }

static void batchNorm(NodeReader &n) {
  n.ignore("momentum");
  int64_t version = n.getVersion();
  if (version < 9 && !n.getFlag("spatial", true))
    return n.fail("its attribute 'spatial' is 0, which dlc does not support; export the model in opset 9 or later");
  bool isTraining = version >= 14 ? n.getFlag("training_mode", false) : version < 7 && !n.getFlag("is_test", false);
  if (isTraining)
    return n.fail("it is in training mode; dlc compiles for inference only: export the model in inference mode");
  Value x = n.input(0);
  n.setOutput(0, n.make<BatchNormOp>(n.elementType(0), x, n.input(1), n.input(2), n.input(3), n.input(4),
                                     n.b().getF32FloatAttr(n.getFloat("epsilon", 1e-5f))));
}

void addVisionOps(OpTable &t) {
  t.add("Conv", 1, conv);
  t.add("MaxPool", 1, maxPool);
  t.add("AveragePool", 1, averagePool);
  t.add("GlobalAveragePool", 1, [](NodeReader &n) { globalPool(n, PoolKind::Average); });
  t.add("GlobalMaxPool", 1, [](NodeReader &n) { globalPool(n, PoolKind::Max); });
  t.add("BatchNormalization", 6, batchNorm);
}

} // namespace dlc
