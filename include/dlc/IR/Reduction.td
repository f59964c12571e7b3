// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions and scans.

#ifndef DLC_IR_REDUCTION
#define DLC_IR_REDUCTION

include "dlc/IR/Kinds.td"

/// The axes of a reduction are `axes`, all axes, or the elements of the operand `axesTensor` (where it has none: all axes or none, as
/// `allAxes` says). What a constant operand names is in `axes` after infer-shapes; what only a run names is in `reduced`.
class Dlc_Reduction<string mnemonic, dag kind, list<string> methods> : Dlc_Op<mnemonic, !listconcat(["form", "readsData", "expand"], methods), [Pure]> {
  let arguments = !con((ins AnyTensor:$x, Optional<AnyTensor>:$axesTensor), kind,
                       (ins DenseI64ArrayAttr:$axes, BoolAttr:$keepdims, BoolAttr:$allAxes,
                            OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "of each axis, 1 where it is reduced">>:$reduced));
  let results = (outs AnyTensor:$result);
}

def Dlc_ReduceOp : Dlc_Reduction<"reduce", (ins Dlc_ReduceKindAttr:$kind), ["role", "reducedAxes", "lower", "precision"]> {
  let summary = "Combines the elements along axes; a NaN anywhere gives NaN in max and min";
  let description = [{
    `axes` may be negative until infer-shapes has run; afterwards they are sorted and not negative. No axes: nothing is
    reduced (the frontend writes all axes where ONNX means all). With `keepdims`, or axes that only a run names, it expands into one
    without, between reshapes.
  }];
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$x, "::dlc::ReduceKind":$kind, "::llvm::ArrayRef<int64_t>":$axes,
                   "bool":$keepdims, "bool":$allAxes), [{
      build($_builder, $_state, result, x, ::mlir::Value(), kind, axes, keepdims, allAxes, nullptr);
    }]>];
}

def Dlc_MeanOp : Dlc_Reduction<"mean", (ins), []> {
  let summary = "The arithmetic mean along axes; expands into a sum and a division (of 16-bit floats: in 32 bits)";
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$axes, "bool":$keepdims, "bool":$allAxes), [{
      build($_builder, $_state, result, x, ::mlir::Value(), axes, keepdims, allAxes, nullptr);
    }]>];
}

def Dlc_ArgReduceOp : Dlc_Op<"arg_reduce", ["form", "role", "expand", "lower"], [Pure]> {
  let summary = "Where along an axis the largest (smallest) element stands, as int64; a NaN counts as larger (smaller) than all numbers";
  let description = [{ Of equal elements the first counts, or with `last` the last. A reduction of pairs of an element and its index. }];
  let arguments = (ins AnyTensor:$x, Dlc_ReduceKindAttr:$kind, I64Attr:$axis, BoolAttr:$keepdims, BoolAttr:$last);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_ScanOp : Dlc_Op<"scan", ["form", "role", "readsData", "expand", "lower"], [Pure]> {
  let summary = "Running sums or products along an axis, as ONNX CumSum and CumProd; becomes the kernel op `dlc.kernel_scan`";
  let description = [{
    An axis that only a run names is the middle one of three after a reshape; infer-shapes writes what these three come to into `threeDims`.
  }];
  let arguments = (ins AnyTensor:$x, Optional<AnyTensor>:$axisTensor, Dlc_ReduceKindAttr:$kind, I64Attr:$axis, BoolAttr:$exclusive, BoolAttr:$reverse,
                       OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "dims before the axis, of it and behind it">>:$threeDims);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
  let builders = [ // running sums along a known axis
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$x, "int64_t":$axis, "bool":$exclusive, "bool":$reverse), [{
      build($_builder, $_state, result, x, ::mlir::Value(), ::dlc::ReduceKind::Sum, axis, exclusive, reverse, nullptr);
    }]>];
}

#endif
