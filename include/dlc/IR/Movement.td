// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move, pick or rename elements without computing on them. Axes may be negative until infer-shapes has run.

#ifndef DLC_IR_MOVEMENT
#define DLC_IR_MOVEMENT

include "dlc/IR/Kinds.td"

class Dlc_Movement<string mnemonic, dag operands, list<string> methods = ["form", "role", "lower"], list<Trait> traits = []>
    : Dlc_Op<mnemonic, methods, !listconcat([Pure], traits)> {
  let arguments = operands;
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Dlc_ConcatOp : Dlc_Movement<"concat", (ins Variadic<AnyTensor>:$xs, I64Attr:$axis), ["form", "role", "isRemap", "element", "lower"]>;
def Dlc_AppendOp : Dlc_Movement<"append", (ins AnyTensor:$state, AnyTensor:$x, I64Attr:$axis, Dlc_DimExprAttr:$offset),
                                 ["form", "role", "lower", "elementsRead"]> {
  let summary = "The state with `x` written at [offset, offset + the size of x) along `axis`";
  let description = [{
    A value like any other; `bind-state` makes it of an argument that is state and returns its result as what the state holds afterwards. Its
    kernel writes x into the state's own memory and touches nothing else there, which is what the rest of the state means anyway. The
    runtime sees to it that x fits.
  }];
  let extraClassDefinition = [{
    ::dlc::DimExprAttr $cppClass::elementsRead(unsigned operand) {
      return operand == 0 ? ::dlc::constantDim(getContext(), 0) : ::dlc::elementsOf(getX());
    }
  }];
}

def Dlc_PrefixOp : Dlc_Movement<"prefix", (ins AnyTensor:$x, I64Attr:$axis, Dlc_DimExprAttr:$length), ["form", "role", "isRemap", "element", "lower"]> {
  let summary = "The first `length` entries along `axis`, of which x has at least so many";
}


def Dlc_FlattenOp : Dlc_Movement<"flatten", (ins AnyTensor:$x, I64Attr:$axis), ["form", "expand"]> {
  let summary = "A matrix: the axes before `axis` (0 .. rank) and those from it on";
}

def Dlc_GatherOp : Dlc_Movement<"gather", (ins AnyTensor:$x, AnyTensor:$indices, I64Attr:$axis)> {
  let summary = "Picks whole slices along an axis, as ONNX Gather; negative indices count from the end";
}

def Dlc_Col2ImOp : Dlc_Movement<"col2im", (ins AnyTensor:$x, AnyTensor:$imageShape, AnyTensor:$blockShape,
                                              OptionalAttr<DenseI64ArrayAttr>:$dilations, OptionalAttr<DenseI64ArrayAttr>:$pads,
                                              OptionalAttr<DenseI64ArrayAttr>:$strides,
                                              OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "size of a block along each axis">>:$resolvedBlock),
                                       ["form", "role", "readsData", "lower"]> {
  let summary = "An image that is the sum of blocks, the columns of x, as ONNX Col2Im";
  let description = [{ infer-shapes writes the values of `blockShape` into `resolvedBlock`, and all of the other attributes. }];
}

def Dlc_GatherElementsOp : Dlc_Movement<"gather_elements", (ins AnyTensor:$x, AnyTensor:$indices, I64Attr:$axis)> {
  let summary = "Picks one element for each index: result[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis, as ONNX GatherElements";
}

def Dlc_GatherNDOp : Dlc_Movement<"gather_nd", (ins AnyTensor:$x, AnyTensor:$indices, I64Attr:$batchDims)> {
  let summary = "Picks what tuples of indices (the last axis of `indices`) say, behind `batchDims` axes in common, as ONNX GatherND";
}

def Dlc_ScatterElementsOp : Dlc_Movement<"scatter_elements", (ins AnyTensor:$x, AnyTensor:$indices, AnyTensor:$updates, I64Attr:$axis,
                                                                  OptionalAttr<Dlc_ReduceKindAttr>:$kind)> {
  let summary = "x with one element for each index written, or combined by `kind`, as ONNX ScatterElements";
}

def Dlc_ScatterNDOp : Dlc_Movement<"scatter_nd", (ins AnyTensor:$x, AnyTensor:$indices, AnyTensor:$updates,
                                                      OptionalAttr<Dlc_ReduceKindAttr>:$kind)> {
  let summary = "x with what tuples of indices say written, or combined by `kind`, as ONNX ScatterND";
}

def Dlc_PadOp : Dlc_Movement<"pad", (ins AnyTensor:$x, AnyTensor:$pads, AnyTensor:$value, Optional<AnyTensor>:$axes, StrAttr:$mode,
                                         OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "pad in front of each axis">>:$resolvedFront,
                                         OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "pad behind each axis">>:$resolvedBehind),
                                    ["form", "role", "readsData", "lower"]> {
  let summary = "Adds elements around a tensor, or takes some away where a pad is negative, as ONNX Pad";
  let description = [{
    `mode` is `constant`, `edge`, `reflect` or `wrap`. What a negative pad takes away is gone before a mode looks for elements to
    repeat. infer-shapes writes the pads of all axes into `resolvedFront` and `resolvedBehind`.
  }];
}

def Dlc_TileOp : Dlc_Movement<"tile", (ins AnyTensor:$x, AnyTensor:$repeats,
                                          OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "how often each axis">>:$resolvedRepeats),
                                     ["form", "readsData", "expand"]> {
  let summary = "Each axis repeated as a whole, as ONNX Tile; expands into reshapes and an expand";
  let description = [{ infer-shapes writes the repeats into `resolvedRepeats`. }];
}

def Dlc_ReshapeOp : Dlc_Movement<"reshape", (ins AnyTensor:$x, AnyTensor:$shape, BoolAttr:$allowzero), ["form", "role", "readsData"]> {
  let summary = "The same elements under other dims: 0 copies a dim (unless allowzero), one -1 is inferred";
}

def Dlc_ShapeOp : Dlc_Movement<"shape", (ins AnyTensor:$x, I64Attr:$start, OptionalAttr<I64Attr>:$end), ["form", "role"]> {
  let summary = "The dims [start, end) as an int64 tensor";
}

def Dlc_SizeOp : Dlc_Movement<"size", (ins AnyTensor:$x), ["form", "role"]> {
  let summary = "The number of elements as an int64 scalar";
}

def Dlc_SliceOp : Dlc_Movement<"slice", (ins AnyTensor:$x, AnyTensor:$starts, AnyTensor:$ends, Optional<AnyTensor>:$axes,
                                            Optional<AnyTensor>:$steps,
                                            OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "first element of each axis">>:$resolvedStarts,
                                            OptionalAttr<TypedArrayAttrBase<Dlc_DimExprAttr, "step of each axis">>:$resolvedSteps),
                                       ["form", "role", "readsData", "isRemap", "element", "lower"], [AttrSizedOperandSegments]> {
  let summary = "As ONNX Slice from opset 10 on";
  let description = [{ infer-shapes writes what the bounds come to into `resolvedStarts` and `resolvedSteps`, one entry an axis. }];
  let assemblyFormat = [{ $x `,` $starts `,` $ends (`axes` `(` $axes^ `:` type($axes) `)`)? (`steps` `(` $steps^ `:` type($steps) `)`)?
      attr-dict `:` `(` type($x) `,` type($starts) `,` type($ends) `)` `->` type($result) }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$x, "::mlir::Value":$starts, "::mlir::Value":$ends,
                                 "::mlir::Value":$axes, "::mlir::Value":$steps), [{
      build($_builder, $_state, result, x, starts, ends, axes, steps, nullptr, nullptr);
    }]>];
}

def Dlc_SqueezeOp : Dlc_Movement<"squeeze", (ins AnyTensor:$x, Optional<AnyTensor>:$axesTensor, OptionalAttr<DenseI64ArrayAttr>:$axes),
                                 ["form", "readsData", "expand"]> {
  let summary = "Drops axes of size 1: those that `axes` or the elements of `axesTensor` name; all of them where both are missing";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$x, "::mlir::DenseI64ArrayAttr":$axes), [{
      build($_builder, $_state, result, x, ::mlir::Value(), axes);
    }]>];
}

def Dlc_UnsqueezeOp : Dlc_Movement<"unsqueeze", (ins AnyTensor:$x, Optional<AnyTensor>:$axesTensor, DenseI64ArrayAttr:$axes),
                                   ["form", "readsData", "expand"]> {
  let summary = "Inserts axes of size 1 at positions of the result, which `axes` or the elements of `axesTensor` name";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$axes), [{
      build($_builder, $_state, result, x, ::mlir::Value(), axes);
    }]>];
}

def Dlc_StridesOp : Dlc_Movement<"strides", (ins AnyTensor:$x), ["form", "role"]> {
  let summary = "For each axis, by how many elements its next entry is away in row-major order, as an int64 tensor";
}

def Dlc_DiagonalOp : Dlc_Movement<"diagonal", (ins AnyTensor:$x, DenseI64ArrayAttr:$axes)> {
  let summary = "Where the indices along `axes` (of equal size) are the same; those axes become one, in place of the first";
}

def Dlc_TransposeOp : Dlc_Movement<"transpose", (ins AnyTensor:$x, OptionalAttr<DenseI64ArrayAttr>:$perm), ["form", "role", "isRemap", "element", "lower"]> {
  let summary = "result dim i = x dim perm[i]; all axes reversed where `perm` is missing";
}

def Dlc_UnpackOp : Dlc_Movement<"unpack", (ins AnyTensor:$x), ["form", "role", "lower", "expand"]> {
  let summary = "One byte an element from a tensor of layout #dlc.packed: how 4-bit and 2-bit inputs come into a module";
  let description = [{ Tensors of other than one axis are reshaped, before and behind. }];
}

def Dlc_PackOp : Dlc_Movement<"pack", (ins AnyTensor:$x), ["form", "role", "lower", "expand"]> {
  let summary = "The reverse of dlc.unpack, for outputs; computes whole bytes, so that no two tiles write to one";
}

def Dlc_ConstantOfShapeOp : Dlc_Movement<"constant_of_shape", (ins AnyTensor:$shape, AnyAttr:$value), ["form", "readsData", "expand"]> {
  let summary = "Every element is `value` (elements attribute with one element); expands into a constant and expand";
}

#endif
