// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `dlc` dialect: what to compute, tensors by value, at ONNX granularity but normalised. This file holds the dialect,
// its attributes, the op interface and the base classes of the ops; each op family has a .td of its own beside it.

#ifndef DLC_IR_DLC
#define DLC_IR_DLC

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dlc_Dialect : Dialect {
  let name = "dlc";
  let cppNamespace = "::dlc";
  let summary = "Deep learning graphs on tensors with symbolic dimensions";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let hasConstantMaterializer = 0;
  let extraClassDeclaration = [{
    /// The bytes of the weights that `#dlc.weight` attributes name.
    WeightStore &getWeights() { return *weights; }
  private:
    // Each family's ops, in its own file.
    void addStructureOps();
    void addElementwiseOps();
    void addContractionOps();
    void addConvOps();
    void addPoolOps();
    void addResizeOps();
    void addSampleOps();
    void addReductionOps();
    void addNormalizationOps();
    void addMovementOps();
    void addSelectionOps();
    void addRecurrentOps();
    void addAttentionOps();
    void addKernelOps();
    std::shared_ptr<WeightStore> weights;
  public:
  }];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Dlc_Attr<string name, string mnemonicText> : AttrDef<Dlc_Dialect, name> {
  let mnemonic = mnemonicText;
}

def Dlc_DimExprAttr : Dlc_Attr<"DimExpr", "dim"> {
  let summary = "A dimension: an integer expression over named symbols, in canonical form";
  let description = [{
    Two dimensions are the same exactly when their expressions are the same attribute. Build them with the functions of
    dlc/IR/DimExpr.h, which canonicalise; never with `get`. `value` is the value of a constant, the bits of a scale (float64),
    and of other composite expressions the number of their parts.
  }];
  let parameters = (ins "::dlc::DimKind":$kind, "int64_t":$value, "::mlir::StringAttr":$symbol,
                        ArrayRefParameter<"::mlir::Attribute">:$operands);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    DimExprAttr getOperand(unsigned i) const { return ::llvm::cast<DimExprAttr>(getOperands()[i]); }
    /// The value when it is a constant.
    std::optional<int64_t> getConstant() const {
      return getKind() == ::dlc::DimKind::Const ? std::optional<int64_t>(getValue()) : std::nullopt;
    }
    bool isConstant(int64_t v) const { return getKind() == ::dlc::DimKind::Const && getValue() == v; }
    bool isSymbol() const { return getKind() == ::dlc::DimKind::Symbol; }
  }];
}

def Dlc_InfoAttr : Dlc_Attr<"Info", "info"> {
  let summary = "The encoding of a tensor type: its dimensions, and from choose-layout on its layout";
  let description = [{
    `tensor<?x?x384xf32, #dlc.info<[batch, seq, 384]>>`. A type whose dimensions are all constant and whose layout is
    plain carries no encoding.
  }];
  let parameters = (ins ArrayRefParameter<"::dlc::DimExprAttr">:$dims, DefaultValuedParameter<"::mlir::Attribute", "{}">:$layout);
  let hasCustomAssemblyFormat = 1;
}

def Dlc_PackedAttr : Dlc_Attr<"Packed", "packed"> {
  let summary = "Layout of 4-bit and 2-bit elements where a module meets its caller: as ONNX packs them, the first in the lowest bits of a byte";
  let description = [{
    Inside a plan every element has a byte of its own (see storageType in dlc/IR/DimExpr.h); `dlc.unpack` and `dlc.pack` convert.
  }];
}

def Dlc_WeightAttr : AttrDef<Dlc_Dialect, "Weight", [TypedAttrInterface]> {
  let mnemonic = "weight";
  let summary = "The bytes of a large constant, held outside the IR and named by their content";
  let description = [{
    `key` is the BLAKE3 of the bytes (first 128 bits, hexadecimal); the bytes live in the dialect's WeightStore and, beside a
    text file, in a weights file. They are laid out as `type` says, little-endian, elements of
    fewer than 8 bits as one byte each.
  }];
  let parameters = (ins StringRefParameter<"content hash">:$key, "::mlir::RankedTensorType":$type);
  let assemblyFormat = "`<` $key `,` $type `>`";
}

def Dlc_SymbolInfoAttr : Dlc_Attr<"SymbolInfo", "symbol"> {
  let summary = "What the caller promised about a named dimension";
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$min, "int64_t":$max, "int64_t":$divisor, "bool":$anonymous);
  let assemblyFormat = "`<` $name `,` $min `,` $max `,` $divisor `,` $anonymous `>`";
}

//===----------------------------------------------------------------------===//
// The op interface
//===----------------------------------------------------------------------===//

def Dlc_OpInterface : OpInterface<"DlcOp"> {
  let cppNamespace = "::dlc";
  let description = [{
    Everything that a pass asks of an op. An op has exactly one implementation form (`form`): `Scalar` ops define one
    element, `Expand` ops rewrite themselves into other dlc ops, `Lower` ops yield linalg on tensors, `Kernel` ops become
    a kernel op (KernelOps.td), `View` ops only name memory differently, `Host` ops run on plan registers. `Missing`: shapes can be
    inferred, but code generation is not there yet; fuse refuses the op.
  }];
  let methods = [
    InterfaceMethod<"The shape rule: sets the result types, and values of small integer tensors, through the context. Written "
                    "once for static, symbolic and run-time shapes. Emits the error itself.",
      "::llvm::LogicalResult", "shape", (ins "::dlc::ShapeContext &":$context)>,
    InterfaceMethod<"Which of the implementation forms this op has.", "::dlc::Form", "form", (ins), [{}], [{ return ::dlc::Form::Lower; }]>,
    InterfaceMethod<"How the op iterates; decides what it may be fused with.", "::dlc::Role", "role", (ins), [{}], [{ return ::dlc::Role::Opaque; }]>,
    InterfaceMethod<"Role Reduction: the axes of operand 0 that the one result lacks, sorted, where the op combines the elements along them "
                    "in one loop nest; what does not work so names none.",
      "::llvm::SmallVector<int64_t>", "reducedAxes", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"Form Scalar: the result element for one element of each operand.",
      "::dlc::Scalar", "scalar", (ins "::dlc::ScalarBuilder &":$builder, "::llvm::ArrayRef<::dlc::Scalar>":$operands), [{}],
      [{ ::llvm::report_fatal_error("op has no scalar form"); }]>,
    InterfaceMethod<"Form Expand: replaces the op by other dlc ops.",
      "::llvm::LogicalResult", "expand", (ins "::mlir::RewriterBase &":$rewriter), [{}],
      [{ return $_op->emitOpError("has no expansion"); }]>,
    InterfaceMethod<"Form Lower or Kernel: yields linalg (or kernel ops) on tensors without encoding, one value a result.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "lower", (ins "::dlc::LowerContext &":$context), [{}],
      [{ return $_op->emitOpError("has no lowering"), ::mlir::failure(); }]>,
    InterfaceMethod<"Role Movement: whether an element of the result is one of an operand's, at indices that `element` can give, so that "
                    "element-wise ops behind it need no copy in memory.",
      "bool", "isRemap", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"For isRemap: the element of the result at `at` (in its storage type). `read` gives those of operands, `dim` the value of an expression.",
      "::mlir::Value", "element", (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$at, "::dlc::ElementReader":$read,
                                       "::llvm::function_ref<::mlir::Value(::dlc::DimExprAttr)>":$dim), [{}],
      [{ ::llvm::report_fatal_error("op is no remap"); }]>,
    InterfaceMethod<"Whether a run reads the elements of operand i; false for one whose values the shape rule has used up.",
      "bool", "readsData", (ins "unsigned":$operand), [{}], [{ return true; }]>,
    InterfaceMethod<"How many elements of operand i a run reads in memory, as an expression over the symbols; null when it does not fit 64 bits.",
      "::dlc::DimExprAttr", "elementsRead", (ins "unsigned":$operand), [{}], [{ return ::dlc::elementsReadBy($_op, operand); }]>,
    InterfaceMethod<"Which layouts the op can work in.", "::dlc::LayoutNeed", "layout", (ins), [{}], [{ return ::dlc::LayoutNeed::Plain; }]>,
    InterfaceMethod<"What a change of precision may do to the op.", "::dlc::PrecisionNeed", "precision", (ins), [{}], [{ return ::dlc::PrecisionNeed::Free; }]>,
    InterfaceMethod<"Whether the op can take quantized operands as they are.", "::dlc::QuantNeed", "quant", (ins), [{}], [{ return ::dlc::QuantNeed::None; }]>,
    InterfaceMethod<"Arithmetic operations of one run, as an expression over the symbols; null when not known.",
      "::dlc::DimExprAttr", "cost", (ins), [{}], [{ return ::dlc::elementwiseCost($_op); }]>
  ];
}

//===----------------------------------------------------------------------===//
// Base classes of ops
//===----------------------------------------------------------------------===//

/// Any dlc op that computes tensors from tensors. Ops override interface methods by naming them in `methods`.
class Dlc_Op<string mnemonic, list<string> methods = [], list<Trait> traits = []>
    : Op<Dlc_Dialect, mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<Dlc_OpInterface, !listconcat(["shape"], methods)>])>;

#endif
