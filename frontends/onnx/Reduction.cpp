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
  Value tensor;              // or this, whose elements only a run knows
  bool all = false;          // also where `tensor` turns out to have no element
  bool none = false;         // nothing is combined, only the steps around the reduction are left
  bool keepdims = true;
};
} // namespace

/// The axes are an attribute before version `inputSince`, and an input from it on.
static Axes readAxes(NodeReader &n, int64_t inputSince) {
  Axes result;
  result.keepdims = n.getFlag("keepdims", true);
  bool noop = false;
  NodeReader::Ints axes;
  if (n.getVersion() >= inputSince) {
    axes = n.optionalInts(1, "axes");
    noop = n.getFlag("noop_with_empty_axes", false);
  } else {
    axes.numbers = n.findInts("axes");
  }
  result.tensor = axes.tensor;
  if (axes.numbers)
    result.axes = *axes.numbers;
  result.none = result.axes.empty() && !result.tensor && noop;
  result.all = result.axes.empty() && !noop;
  return result;
}

static Value reduce(NodeReader &n, Value x, ReduceKind kind, const Axes &axes) {
  if (axes.none)
    return x;
  return n.make<ReduceOp>(NodeReader::elementTypeOf(x), x, axes.tensor, kind, axes.axes, axes.keepdims, axes.all, ArrayAttr());
}

/// The type in which more than one step is computed: 16-bit floats in 32 bits, so that what lies between may be large.
static Type wideType(NodeReader &n, Type type) { return type.isF16() || type.isBF16() ? Type(n.b().getF32Type()) : type; }

/// The same where a step needs floats: integers go through f64, and what comes of them loses its fraction.
static Type floatType(NodeReader &n, Type type) { return isa<FloatType>(type) ? wideType(n, type) : Type(n.b().getF64Type()); }

/// Reduces what `before` makes of the input; `after` gets the result as a float.
static void reduction(OpTable &table, StringRef name, int64_t inputSince, ReduceKind kind,
                      std::function<Value(NodeReader &, Value)> before = nullptr,
                      std::function<Value(NodeReader &, Value)> after = nullptr) {
  table.add(name, 1, [=](NodeReader &n) {
    Axes axes = readAxes(n, inputSince);
    Value x = n.input(0);
    Type type = n.elementType(0);
    if (before || after)
      x = n.cast(x, wideType(n, type));
    if (before)
      x = before(n, x);
    x = reduce(n, x, kind, axes);
    if (after)
      x = after(n, n.cast(x, floatType(n, type)));
    n.setOutput(0, n.cast(x, type));
  });
}

static Value absolute(NodeReader &n, Value x) { return n.make<AbsOp>(NodeReader::elementTypeOf(x), x); }
static Value square(NodeReader &n, Value x) { return n.make<MulOp>(NodeReader::elementTypeOf(x), x, x); }
static Value root(NodeReader &n, Value x) { return n.make<SqrtOp>(NodeReader::elementTypeOf(x), x); }
static Value logarithm(NodeReader &n, Value x) { return n.make<LogOp>(NodeReader::elementTypeOf(x), x); }

static void mean(NodeReader &n) {
  Axes axes = readAxes(n, 18);
  Value x = n.input(0);
  Type type = n.elementType(0);
  n.setOutput(0, axes.none ? x : n.make<MeanOp>(type, x, axes.tensor, axes.axes, axes.keepdims, axes.all, ArrayAttr()));
}

/// log(sum(exp(x))), with the maximum taken out first so that nothing overflows. A maximum that is not finite stays in.
static void logSumExp(NodeReader &n) {
  Axes axes = readAxes(n, 18);
  Type given = n.elementType(0), type = floatType(n, given), boolean = n.b().getI1Type();
  Value x = n.cast(n.input(0), type);
  if (axes.none)
    return n.setOutput(0, n.cast(n.make<LogOp>(type, n.make<ExpOp>(type, x)), given));
  Axes kept = axes;
  kept.keepdims = true;
  Value largest = reduce(n, x, ReduceKind::Max, kept);
  Value finite = n.make<LessOp>(boolean, absolute(n, largest), n.scalar(std::numeric_limits<double>::infinity(), type));
  Value offset = n.make<WhereOp>(type, finite, largest, n.scalar(0, type));
  Value sum = reduce(n, n.make<ExpOp>(type, n.make<SubOp>(type, x, offset)), ReduceKind::Sum, axes);
  if (!axes.keepdims) {
    Value shape = n.make<ShapeOp>(n.b().getI64Type(), sum, /*start=*/0, /*end=*/IntegerAttr());
    offset = n.make<ReshapeOp>(type, offset, shape, /*allowzero=*/true);
  }
  n.setOutput(0, n.cast(n.make<AddOp>(type, n.make<LogOp>(type, sum), offset), given));
}

static void argReduce(NodeReader &n, ReduceKind kind) {
  bool last = n.getVersion() >= 12 && n.getFlag("select_last_index", false);
  n.setOutput(0, n.make<ArgReduceOp>(n.b().getI64Type(), n.input(0), kind, n.getInt("axis", 0), n.getFlag("keepdims", true), last));
}

static void scan(NodeReader &n, ReduceKind kind) {
  NodeReader::Ints axis = n.optionalInts(1, "axis");
  if (!axis.tensor && !axis.numbers)
    n.fail("its axis (input 1) is missing");
  if (axis.numbers && axis.numbers->size() != 1 && !n.failed())
    n.failInput(1, Twine("its axis (") + n.describeInput(1) + ") must be one number, not " + Twine(axis.numbers->size()));
  if (n.failed())
    axis.numbers = SmallVector<int64_t>{0};
  bool exclusive = n.getFlag("exclusive", false), reverse = n.getFlag("reverse", false);
  int64_t constant = axis.numbers ? axis.numbers->front() : 0;
  n.setOutput(0, n.make<ScanOp>(n.elementType(0), n.input(0), axis.tensor, kind, constant, exclusive, reverse, ArrayAttr()));
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
  t.add("ArgMax", 1, [](NodeReader &n) { argReduce(n, ReduceKind::Max); });
  t.add("ArgMin", 1, [](NodeReader &n) { argReduce(n, ReduceKind::Min); });
  t.add("CumProd", 26, [](NodeReader &n) { scan(n, ReduceKind::Prod); });
  t.add("CumSum", 11, [](NodeReader &n) { scan(n, ReduceKind::Sum); });
}

} // namespace dlc
