// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementType.h"
#include "OpTable.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {

namespace {
/// Along which axes a Reduce operator works.
struct Axes {
  SmallVector<int64_t> axes; // where it is not all of them
  bool all = false;
  bool none = false; // nothing is combined, only the steps around the reduction are left
  bool keepdims = true;
};
} // namespace

/// The axes are an attribute before version `inputSince`, and an input from it on.
static Axes readAxes(NodeReader &n, int64_t inputSince) {
  Axes result;
  result.keepdims = n.getFlag("keepdims", true);
  bool noop = false;
  std::optional<SmallVector<int64_t>> axes;
  if (n.getVersion() >= inputSince) {
    axes = n.optionalConstantInts(1, "axes");
    noop = n.getFlag("noop_with_empty_axes", false);
  } else {
    axes = n.findInts("axes");
  }
  if (axes)
    result.axes = *axes;
  result.none = result.axes.empty() && noop;
  result.all = result.axes.empty() && !noop;
  return result;
}

static Value reduce(NodeReader &n, Value x, ReduceKind kind, const Axes &axes) {
  if (axes.none)
    return x;
  return n.make<ReduceOp>(NodeReader::elementTypeOf(x), x, kind, axes.axes, axes.keepdims, axes.all);
}

static void requireFloat(NodeReader &n) {
  Type type = n.elementType(0);
  if (!isa<FloatType>(type))
    n.failInput(0, Twine("its ") + n.describeInput(0) + " is " + typeName(type) + "; only float types are supported");
}

/// Reduces what `before` makes of the input.
static void reduction(OpTable &table, StringRef name, int64_t inputSince, ReduceKind kind,
                      std::function<Value(NodeReader &, Value)> before = nullptr,
                      std::function<Value(NodeReader &, Value)> after = nullptr) {
  table.add(name, 1, [=](NodeReader &n) {
    Axes axes = readAxes(n, inputSince);
    Value x = n.input(0);
    if (before)
      x = before(n, x);
    x = reduce(n, x, kind, axes);
    n.setOutput(0, after ? after(n, x) : x);
  });
}

static Value absolute(NodeReader &n, Value x) { return n.make<AbsOp>(NodeReader::elementTypeOf(x), x); }
static Value square(NodeReader &n, Value x) { return n.make<MulOp>(NodeReader::elementTypeOf(x), x, x); }

static Value root(NodeReader &n, Value x) {
  requireFloat(n);
  return n.make<SqrtOp>(NodeReader::elementTypeOf(x), x);
}

static Value logarithm(NodeReader &n, Value x) {
  requireFloat(n);
  return n.make<LogOp>(NodeReader::elementTypeOf(x), x);
}

static void mean(NodeReader &n) {
  Axes axes = readAxes(n, 18);
  Value x = n.input(0);
  n.setOutput(0, axes.none ? x : n.make<MeanOp>(NodeReader::elementTypeOf(x), x, axes.axes, axes.keepdims, axes.all));
}

/// log(sum(exp(x))), with the maximum taken out first so that nothing overflows. A maximum that is not finite stays in.
static void logSumExp(NodeReader &n) {
  requireFloat(n);
  Axes axes = readAxes(n, 18);
  Value x = n.input(0);
  Type type = NodeReader::elementTypeOf(x), boolean = n.b().getI1Type();
  if (axes.none)
    return n.setOutput(0, n.make<LogOp>(type, n.make<ExpOp>(type, x)));
  Axes kept = axes;
  kept.keepdims = true;
  Value largest = reduce(n, x, ReduceKind::Max, kept);
  Value finite = n.make<LessOp>(boolean, absolute(n, largest), n.scalar(std::numeric_limits<double>::infinity(), type));
  Value offset = n.make<WhereOp>(type, finite, largest, n.scalar(0, type));
  Value sum = reduce(n, n.make<ExpOp>(type, n.make<SubOp>(type, x, offset)), ReduceKind::Sum, axes);
  if (!axes.keepdims)
    offset = n.make<SqueezeOp>(type, offset, axes.all ? DenseI64ArrayAttr() : n.b().getDenseI64ArrayAttr(axes.axes));
  n.setOutput(0, n.make<AddOp>(type, n.make<LogOp>(type, sum), offset));
}

static void cumSum(NodeReader &n) {
  int64_t axis = n.constantInt(1, "axis");
  bool exclusive = n.getFlag("exclusive", false), reverse = n.getFlag("reverse", false);
  n.setOutput(0, n.make<CumSumOp>(n.elementType(0), n.input(0), axis, exclusive, reverse));
}

void addReductionOps(OpTable &t) {
  reduction(t, "ReduceSum", 13, ReduceKind::Sum);
  reduction(t, "ReduceProd", 18, ReduceKind::Prod);
  reduction(t, "ReduceMax", 18, ReduceKind::Max);
  reduction(t, "ReduceMin", 18, ReduceKind::Min);
  reduction(t, "ReduceL1", 18, ReduceKind::Sum, absolute);
  reduction(t, "ReduceL2", 18, ReduceKind::Sum, square, root);
  reduction(t, "ReduceSumSquare", 18, ReduceKind::Sum, square);
  reduction(t, "ReduceLogSum", 18, ReduceKind::Sum, nullptr, logarithm);
  t.add("ReduceLogSumExp", 1, logSumExp);
  t.add("ReduceMean", 1, mean);
  t.add("CumSum", 11, cumSum);
}

} // namespace dlc
