// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Window.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dlc {

FailureOr<SmallVector<WindowAxis>> resolveWindows(ShapeContext &context, ArrayRef<DimExpr> sizes, ArrayRef<DimExpr> kernel, ArrayRef<int64_t> strides,
                                                  ArrayRef<int64_t> dilations, ArrayRef<int64_t> pads, StringRef autoPad, bool ceilMode) {
  MLIRContext *c = context.getContext();
  size_t rank = sizes.size();
  auto hasLength = [&](StringRef name, ArrayRef<int64_t> list, size_t wanted) -> LogicalResult {
    if (list.empty() || list.size() == wanted)
      return success();
    return context.emitError() << name << " has " << list.size() << " entries; " << rank << " spatial axes need " << wanted;
  };
  if (kernel.size() != rank)
    return context.emitError() << "the kernel has " << kernel.size() << " axes, the operand " << rank << " spatial ones", failure();
  if (failed(hasLength("strides", strides, rank)) || failed(hasLength("dilations", dilations, rank)) || failed(hasLength("pads", pads, 2 * rank)))
    return failure();
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!isSame && autoPad != "NOTSET" && autoPad != "VALID")
    return context.emitError() << "auto_pad is '" << autoPad << "'; it can be NOTSET, VALID, SAME_UPPER and SAME_LOWER", failure();
  DimExpr zero = constantDim(c, 0), one = constantDim(c, 1);
  SmallVector<WindowAxis> axes;
  for (size_t i = 0; i != rank; ++i) {
    WindowAxis axis{sizes[i], kernel[i], strides.empty() ? 1 : strides[i], dilations.empty() ? 1 : dilations[i], zero, zero, {}};
    if (axis.stride < 1 || axis.dilation < 1)
      return context.emitError() << "strides and dilations must be positive; those of spatial axis " << i << " are " << axis.stride << " and "
                                 << axis.dilation,
             failure();
    if (kernel[i].getConstant() && *kernel[i].getConstant() < 1)
      return context.emitError() << "the kernel has size " << toString(kernel[i]) << " along spatial axis " << i, failure();
    DimExpr stride = constantDim(c, axis.stride);
    // What a window spans: (kernel - 1) * dilation + 1.
    DimExpr span = addDims(mulDims(subDims(kernel[i], one), constantDim(c, axis.dilation)), one);
    if (isSame) {
      axis.count = ceilDivDims(axis.size, stride);
      DimExpr total = maxDims(subDims(addDims(mulDims(subDims(axis.count, one), stride), span), axis.size), zero);
      DimExpr half = floorDivDims(total, constantDim(c, 2));
      axis.begin = autoPad == "SAME_UPPER" ? half : subDims(total, half);
      axis.end = subDims(total, axis.begin);
    } else {
      if (autoPad == "NOTSET" && !pads.empty()) {
        if (pads[i] < 0 || pads[i + rank] < 0)
          return context.emitError() << "pads of spatial axis " << i << " are " << pads[i] << " and " << pads[i + rank] << "; they must not be negative",
                 failure();
        axis.begin = constantDim(c, pads[i]);
        axis.end = constantDim(c, pads[i + rank]);
      }
      DimExpr room = subDims(addDims(addDims(axis.size, axis.begin), axis.end), span);
      if (failed(context.require(selectLtDims(room, zero, zero, one), axis.size, span,
                                 "spatial axis " + Twine(i) + " with its padding is shorter than the window: it has {0} elements, the window spans {1}")))
        return failure();
      if (ceilMode) {
        axis.count = addDims(ceilDivDims(room, stride), one);
        // A window that would begin behind the axis does not count.
        DimExpr last = mulDims(subDims(axis.count, one), stride);
        axis.count = subDims(axis.count, selectLtDims(last, addDims(axis.size, axis.begin), zero, one));
      } else {
        axis.count = addDims(floorDivDims(room, stride), one);
      }
    }
    if (!axis.count || !axis.begin || !axis.end)
      return context.emitError() << "the number of windows does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)",
             failure();
    axes.push_back(axis);
  }
  return axes;
}

SmallVector<int64_t> onesOr(ArrayRef<int64_t> list, size_t rank) { return list.empty() ? SmallVector<int64_t>(rank, 1) : SmallVector<int64_t>(list); }

Value countCells(OpBuilder &b, Location loc, Value window, Value size, int64_t kernel, int64_t stride, int64_t dilation, Value begin, Value end) {
  auto number = [&](int64_t n) -> Value { return arith::ConstantIndexOp::create(b, loc, n); };
  Value zero = number(0), most = number(kernel);
  // First position of the window, counted from the axis; the range of positions that count is [low, high).
  Value start = arith::SubIOp::create(b, loc, arith::MulIOp::create(b, loc, window, number(stride)), begin);
  Value low = zero, high = size;
  if (end) {
    low = arith::SubIOp::create(b, loc, zero, begin);
    high = arith::AddIOp::create(b, loc, high, end);
  }
  // Cells before a bound: ceil((bound - start) / dilation), within the window.
  auto before = [&](Value bound) -> Value {
    Value distance = arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, bound, start), zero);
    if (dilation > 1)
      distance = arith::DivUIOp::create(b, loc, arith::AddIOp::create(b, loc, distance, number(dilation - 1)), number(dilation));
    return arith::MinSIOp::create(b, loc, distance, most);
  };
  return arith::SubIOp::create(b, loc, before(high), before(low));
}

SmallVector<Value> loopOverWindow(OpBuilder &b, Location loc, ValueRange kernel, ValueRange sizes, ValueRange windows, ArrayRef<int64_t> strides,
                                  ArrayRef<int64_t> dilations, ValueRange begins, ValueRange initial,
                                  llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange, ValueRange, Value, ValueRange)> cell) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> inWindow, at;
  std::function<SmallVector<Value>(OpBuilder &, size_t, Value, ValueRange)> nest = [&](OpBuilder &outer, size_t axis, Value isInside, ValueRange carried) {
    if (axis == kernel.size())
      return cell(outer, inWindow, at, isInside, carried);
    auto loop = scf::ForOp::create(outer, loc, zero, kernel[axis], one, carried, [&](OpBuilder &body, Location, Value k, ValueRange values) {
      auto scaled = [&](Value v, ArrayRef<int64_t> factors) -> Value {
        if (factors.empty() || factors[axis] == 1)
          return v;
        return arith::MulIOp::create(body, loc, v, arith::ConstantIndexOp::create(body, loc, factors[axis]));
      };
      Value position = arith::AddIOp::create(body, loc, scaled(windows[axis], strides), scaled(k, dilations));
      position = arith::SubIOp::create(body, loc, position, begins[axis]);
      // Unsigned: what lies before the axis is too large as well.
      Value isOn = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::ult, position, sizes[axis]);
      isOn = isInside ? Value(arith::AndIOp::create(body, loc, isInside, isOn)) : isOn;
      inWindow.push_back(k);
      at.push_back(position);
      SmallVector<Value> results = nest(body, axis + 1, isOn, values);
      inWindow.pop_back();
      at.pop_back();
      scf::YieldOp::create(body, loc, results);
    });
    return SmallVector<Value>(loop.getResults());
  };
  return nest(b, 0, Value(), initial);
}

} // namespace dlc
