// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel ops: what linalg cannot say. The only dlc ops that backends see, inside plan.kernel bodies. They are in destination
// style, implement TilingInterface, and decompose into linalg and scf, so that a new backend works on its first day.

#ifndef DLC_IR_KERNELOPS
#define DLC_IR_KERNELOPS

include "dlc/IR/Kinds.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/TilingInterface.td"

def Dlc_KernelOpInterface : OpInterface<"DlcKernelOp"> {
  let cppNamespace = "::dlc";
  let methods = [
    InterfaceMethod<"The same computation in linalg, scf, tensor, arith and math; one value a result.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose", (ins "::mlir::OpBuilder &":$builder)>
  ];
}

def Dlc_KernelScanOp : Op<Dlc_Dialect, "kernel_scan", [Pure, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>]> {
  let summary = "Running combination along an axis: init[.., i, ..] = combine(x[.., j, ..]) over j <= i";
  let description = [{ `exclusive`: over j < i, starting from the neutral element. `reverse`: over j >= i (j > i). The axis is not tiled. }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$init, Dlc_ReduceKindAttr:$kind, I64Attr:$axis, BoolAttr:$exclusive,
                       BoolAttr:$reverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind `ins` `(` $x `:` type($x) `)` `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)";
  let extraClassDeclaration = [{ ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); } }];
}

/// A kernel op from one operand to one destination, which is cut along all axes but those that it goes through as wholes.
class Dlc_LineKernel<string mnemonic, dag extra = (ins)> : Op<Dlc_Dialect, mnemonic, [Pure, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>]> {
  let arguments = !con((ins AnyRankedTensor:$x, AnyRankedTensor:$init), extra);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`ins` `(` $x `:` type($x) `)` `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)";
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// Whether an axis of the result is gone through as a whole.
    bool isWhole(int64_t axis);
  }];
  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() { return ::dlc::lineLoops(*this); }
    ::llvm::SmallVector<::mlir::Range> $cppClass::getIterationDomain(::mlir::OpBuilder &b) { return ::dlc::lineDomain(*this, b); }
    ::llvm::FailureOr<::mlir::TilingResult> $cppClass::getTiledImplementation(
        ::mlir::OpBuilder &b, ::llvm::ArrayRef<::mlir::OpFoldResult> offsets, ::llvm::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::dlc::tileLines(*this, b, offsets, sizes);
    }
    ::llvm::LogicalResult $cppClass::getResultTilePosition(
        ::mlir::OpBuilder &b, unsigned, ::llvm::ArrayRef<::mlir::OpFoldResult> offsets, ::llvm::ArrayRef<::mlir::OpFoldResult> sizes,
        ::llvm::SmallVector<::mlir::OpFoldResult> &resultOffsets, ::llvm::SmallVector<::mlir::OpFoldResult> &resultSizes) {
      ::dlc::linesOf(*this, b, getInit(), offsets, sizes, resultOffsets, resultSizes);
      return ::mlir::success();
    }
  }];
}

def Dlc_KernelArgSortOp : Dlc_LineKernel<"kernel_argsort", (ins I64Attr:$axis, BoolAttr:$lexicographic)> {
  let summary = "The indices of the smallest elements (signed integers) along an axis, as many as init has entries there, in order";
  let description = [{
    Of equal elements the lower index comes first. `lexicographic`: whole slices are compared, and `init` has one axis. It works
    in `init` alone: a heap of the best so far, then heap sort; that the index decides between equals makes the order total.
  }];
}

def Dlc_KernelCompactOp : Dlc_LineKernel<"kernel_compact"> {
  let summary = "The positions of the elements of x that are not 0, in order; at most as many as init has entries";
}

def Dlc_KernelSuppressOp : Op<Dlc_Dialect, "kernel_suppress", [Pure, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>]> {
  let summary = "The boxes that stay when each suppresses those behind it that overlap it too much; see dlc.suppress";
  let description = [{
    Loops are those over `init` [batch, classes, boxes], of which the last one is gone through as a whole. A line of `init` holds a heap of the
    candidates, of which the first one is taken until there are enough or none is left; behind it lie those that stayed.
  }];
  let arguments = (ins AnyRankedTensor:$boxes, AnyRankedTensor:$keys, AnyRankedTensor:$candidates, AnyRankedTensor:$limit,
                       AnyRankedTensor:$threshold, AnyRankedTensor:$init, UnitAttr:$centered);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{ `ins` `(` $boxes `,` $keys `,` $candidates `,` $limit `,` $threshold `:` type($boxes) `,` type($keys) `,` type($candidates)
      `,` type($limit) `,` type($threshold) `)` `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result) }];
  let extraClassDeclaration = [{ ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); } }];
  let hasVerifier = 1;
}

def Dlc_KernelTriangularizeOp : Dlc_LineKernel<"kernel_triangularize"> {
  let summary = "Upper triangular matrices with the determinants of the (float) matrices in the last two axes";
  let description = [{ Gaussian elimination with partial pivoting in `init`; of two rows that change places one changes its sign. }];
}

def Dlc_KernelScatterOp : Op<Dlc_Dialect, "kernel_scatter", [Pure, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>]> {
  let summary = "x with updates written, or combined by `kind`, where indices say, in the order of the updates";
  let description = [{
    With `axis`, there is an index for each update, which stands for the update's own along that axis. Without, the last axis of
    `indices` holds indices of x's first axes, and the other axes of `updates` run with those of x. Negative indices count from the
    end; one outside of its axis raises a status. `element` is the element type, with sign and bool. Axes that no index decides on
    are tiled.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$indices, AnyRankedTensor:$updates, AnyRankedTensor:$init, OptionalAttr<I64Attr>:$axis,
                       OptionalAttr<Dlc_ReduceKindAttr>:$kind, TypeAttr:$element);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{ `ins` `(` $x `,` $indices `,` $updates `:` type($x) `,` type($indices) `,` type($updates) `)`
      `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result) }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// Whether indices decide on an axis of the result.
    bool isScattered(int64_t dim);
  }];
}

def Dlc_KernelAttentionOp : Op<Dlc_Dialect, "kernel_attention", [Pure, SingleBlock, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>]> {
  let summary = "softmax(score(q * k^T)) * v; see dlc.attention";
  let description = [{
    Loops: those over the elements of `init`, of which the last one runs along v's columns, then one over keys, then one along the
    depth of q and k. `maps` say for q, k, v and each of `extras` which loops index its dims: each at most once, or 0. The region gets
    the product of q and k, and the elements of `extras`, and yields the score.
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k, AnyRankedTensor:$v, Variadic<AnyRankedTensor>:$extras, AnyRankedTensor:$init,
                       AffineMapArrayAttr:$maps, UnitAttr:$emptyIsZero, UnitAttr:$nanIsZero);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$score);
  let assemblyFormat = [{ `ins` `(` $q `,` $k `,` $v (`,` $extras^)? `:` type($q) `,` type($k) `,` type($v) (`,` type($extras)^)? `)`
      `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result) $score }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// The loops that index an operand: q, k, v, then extras.
    ::mlir::AffineMap mapOf(unsigned operand) { return ::llvm::cast<::mlir::AffineMapAttr>(getMaps()[operand]).getValue(); }
    unsigned parallelLoops() { return mapOf(0).getNumDims() - 2; }
    unsigned columnLoop() { return parallelLoops() - 1; }
    unsigned keyLoop() { return parallelLoops(); }
    unsigned depthLoop() { return parallelLoops() + 1; }
    /// Loops over queries: neither k nor v knows them.
    ::llvm::SmallVector<unsigned> queryLoops();
  }];
}

/// A kernel op that slides windows over the spatial axes of x [batch, spatial..., channels]: window o of an axis has its cell k at position
/// o * stride + k * dilation - begin of x. Its loops are those over `init`.
class Dlc_WindowKernel<string mnemonic, list<Trait> traits = []> : Op<Dlc_Dialect, mnemonic, !listconcat([Pure, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>], traits)> {
  let results = (outs AnyRankedTensor:$result);
  let hasVerifier = 1;
  string initDeclaration = [{ ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); } }];
  string windowDeclarations = initDeclaration # [{ unsigned spatialAxes() { return getStrides().size(); } }];
  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return ::llvm::SmallVector<::mlir::utils::IteratorType>(spatialAxes() + 2, ::mlir::utils::IteratorType::parallel);
    }
    ::llvm::SmallVector<::mlir::Range> $cppClass::getIterationDomain(::mlir::OpBuilder &b) { return ::dlc::domainOfWindows(b, getLoc(), getInit()); }
    ::llvm::LogicalResult $cppClass::getResultTilePosition(
        ::mlir::OpBuilder &, unsigned, ::llvm::ArrayRef<::mlir::OpFoldResult> offsets, ::llvm::ArrayRef<::mlir::OpFoldResult> sizes,
        ::llvm::SmallVector<::mlir::OpFoldResult> &resultOffsets, ::llvm::SmallVector<::mlir::OpFoldResult> &resultSizes) {
      resultOffsets.assign(offsets.begin(), offsets.end());
      resultSizes.assign(sizes.begin(), sizes.end());
      return ::mlir::success();
    }
  }];
}

def Dlc_KernelConvOp : Dlc_WindowKernel<"kernel_conv"> {
  let summary = "Convolution with w [groups, kernel..., channels / group, filters / group]; see dlc.conv";
  let description = [{ f16 and bf16 are summed up in f32. }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, AnyRankedTensor:$init, Variadic<Index>:$begins, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations);
  let assemblyFormat = [{ `ins` `(` $x `,` $w `:` type($x) `,` type($w) `)` `outs` `(` $init `:` type($init) `)` `begins` `(` $begins `)`
      attr-dict `->` type($result) }];
  let extraClassDeclaration = windowDeclarations;
}

def Dlc_KernelWinogradOp : Dlc_WindowKernel<"kernel_winograd"> {
  let summary = "Convolution in tiles of `tile` x `tile` results with w [(tile + 2)^2, channels, filters]; see dlc.winograd_conv";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, AnyRankedTensor:$init, Variadic<Index>:$begins, I64Attr:$tile);
  let assemblyFormat = [{ `ins` `(` $x `,` $w `:` type($x) `,` type($w) `)` `outs` `(` $init `:` type($init) `)` `begins` `(` $begins `)`
      attr-dict `->` type($result) }];
  let extraClassDeclaration = initDeclaration # [{
    static unsigned spatialAxes() { return 2; }
    /// Cells of a window along an axis, of which `tile` results are made.
    int64_t window() { return getTile() + 2; }
  }];
}

def Dlc_KernelWindowOp : Dlc_WindowKernel<"kernel_window", [SingleBlock, AttrSizedOperandSegments]> {
  let summary = "What the cells of a window make of `start` one after the other, for each channel by itself: pooling, depthwise convolution";
  let description = [{
    The region gets what there is so far, a cell, and where w [kernel..., channels] is given its element, and yields what there is then.
    Cells outside of x are left out. `average`: divided by the number of cells, with `ends` by those up to there behind x, and
    from `begins` on before it.
  }];
  let arguments = (ins AnyRankedTensor:$x, Optional<AnyRankedTensor>:$w, AnyRankedTensor:$init, Variadic<Index>:$begins, Variadic<Index>:$ends,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, TypedAttrInterface:$start,
                       UnitAttr:$average);
  let regions = (region SizedRegion<1>:$step);
  let assemblyFormat = [{ `ins` `(` $x (`,` $w^)? `:` type($x) (`,` type($w)^)? `)` `outs` `(` $init `:` type($init) `)` `begins` `(` $begins `)`
      (`ends` `(` $ends^ `)`)? attr-dict `->` type($result) $step }];
  let extraClassDeclaration = windowDeclarations;
}

def Dlc_KernelYieldOp : Op<Dlc_Dialect, "kernel_yield", [Pure, Terminator, ParentOneOf<["::dlc::KernelAttentionOp", "::dlc::KernelWindowOp"]>]> {
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Dlc_KernelAppendOp : Op<Dlc_Dialect, "kernel_append", [Pure, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>,
    DeclareOpInterfaceMethods<Dlc_KernelOpInterface>]> {
  let summary = "init with x written at `offset` along `axis`";
  let description = [{ Its loops are those over x. What init holds elsewhere is neither read nor written. }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$init, Index:$offset, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`ins` `(` $x `:` type($x) `)` `outs` `(` $init `:` type($init) `)` `at` $offset attr-dict `->` type($result)";
  let extraClassDeclaration = [{ ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); } }];
  let hasVerifier = 1;
}

def Dlc_RaiseOp : Op<Dlc_Dialect, "kernel_raise", [MemoryEffects<[MemWrite]>]> {
  let summary = "Makes the run fail after this launch: the data cannot be computed";
  let description = [{ `status` is one of enum dlcrt_kernel_status. The kernel goes on, inside its buffers. }];
  let arguments = (ins I32Attr:$status);
  let assemblyFormat = "$status attr-dict";
}

#endif
