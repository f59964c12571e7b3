// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The `plan` dialect: when and where. A plan.func is the program that the runtime steps through, its ops one-to-one with the
// instructions of dlcrt/format.h; a plan.kernel is the code that a launch runs. From phase plan to phase codegen a kernel's
// body is upstream MLIR on tensors; afterwards it is empty and the variant's image holds the code.

#ifndef DLC_PLAN_PLAN
#define DLC_PLAN_PLAN

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dlc/IR/Dlc.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::dlc::plan";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::dlc::DlcDialect"];
}

class Plan_Attr<string name, string mnemonicText> : AttrDef<Plan_Dialect, name> { let mnemonic = mnemonicText; }
class Plan_Type<string name, string mnemonicText> : TypeDef<Plan_Dialect, name> { let mnemonic = mnemonicText; }

def Plan_BufferType : Plan_Type<"Buffer", "buffer"> { let summary = "A buffer register: bytes in the memory of one device"; }
def Plan_ObjectType : Plan_Type<"Object", "object"> { let summary = "A host object register: strings, a sequence or an optional"; }
def Plan_BufferOrObject : AnyTypeOf<[Plan_BufferType, Plan_ObjectType]>;

def Plan_KernelKind : I32EnumAttr<"KernelKind", "what a kernel is in the main; schedules and providers are chosen by it", [
    I32EnumAttrCase<"Contraction", 0, "contraction">, I32EnumAttrCase<"Conv", 1, "conv">, I32EnumAttrCase<"Window", 2, "window">,
    I32EnumAttrCase<"Attention", 3, "attention">, I32EnumAttrCase<"Recurrent", 4, "recurrent">,
    I32EnumAttrCase<"Reduction", 5, "reduction">, I32EnumAttrCase<"Sort", 6, "sort">, I32EnumAttrCase<"Scatter", 7, "scatter">,
    I32EnumAttrCase<"Resize", 8, "resize">, I32EnumAttrCase<"Elementwise", 9, "elementwise">,
    I32EnumAttrCase<"Movement", 10, "movement">, I32EnumAttrCase<"Other", 11, "other">]> {
  let cppNamespace = "::dlc::plan";
  let genSpecializedAttr = 0;
}
def Plan_KindAttr : Plan_Attr<"Kind", "kind"> {
  let summary = "A kernel's kind and its anchor: which op of the body (counted among the linalg and kernel ops) the kind is about";
  let parameters = (ins "::dlc::plan::KernelKind":$kind, "int64_t":$anchor);
  let assemblyFormat = "`<` $kind `,` $anchor `>`";
}

def Plan_ScheduleAttr : Plan_Attr<"Schedule", "schedule"> {
  let summary = "How a kernel is cut: written by heuristics, the tuner or a person alike";
  let description = [{
    `tiles`: for each dim of the launch's domain the size of one tile of the launch (0: the dim is not cut).
    `registers`: for each loop of the anchor the size of the innermost, vectorised tile (0: not cut). Empty: not vectorised.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$tiles, ArrayRefParameter<"int64_t">:$registers);
  let hasCustomAssemblyFormat = 1;
}

def Plan_ValueAttr : Plan_Attr<"Value", "value"> {
  let summary = "An input or output of the function: its name, type and, for an input, the constant used when none is bound";
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::RankedTensorType":$type,
                        OptionalParameter<"::mlir::Attribute">:$defaultValue);
  let assemblyFormat = "`<` $name `,` $type (`,` $defaultValue^)? `>`";
}

def Plan_StateAttr : Plan_Attr<"State", "state"> {
  let summary = "A state that the function works on: its name, its type, and the axis that has the capacity";
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::RankedTensorType":$type, "int64_t":$axis);
  let assemblyFormat = "`<` $name `,` $type `,` $axis `>`";
}

def Plan_LengthAttr : Plan_Attr<"Length", "length"> {
  let summary = "How long the function's states are: the symbols of their length and capacity, and by how much a run makes them longer";
  let parameters = (ins "::mlir::StringAttr":$symbol, "::mlir::StringAttr":$capacity, "::dlc::DimExprAttr":$growth);
  let assemblyFormat = "`<` $symbol `,` $capacity `,` $growth `>`";
}

def Plan_SlotClass : I32EnumAttr<"SlotClass", "when a slot's size is known; values as in dlcrt/format.h", [
    I32EnumAttrCase<"Fixed", 0, "fixed">, I32EnumAttrCase<"Symbolic", 1, "symbolic">, I32EnumAttrCase<"Late", 2, "late">]> {
  let cppNamespace = "::dlc::plan";
  let genSpecializedAttr = 0;
}
def Plan_PlacementAttr : Plan_Attr<"Placement", "placement"> {
  let summary = "Where assign-slots put a slot: its class, the stages it lives in (inclusive), and its offset (fixed) or ordinal";
  let parameters = (ins "::dlc::plan::SlotClass":$slotClass, "int64_t":$firstStage, "int64_t":$lastStage, "int64_t":$offset);
  let assemblyFormat = "`<` $slotClass `,` `stages` $firstStage `to` $lastStage `,` $offset `>`";
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_KernelOp : Plan_Op<"kernel", [Symbol, IsolatedFromAbove]> {
  let summary = "The definition of a kernel";
  let description = [{
    Between outline-kernels and lower-to-linalg the body is the outlined dlc.group. Afterwards, block arguments of the body: `operandCount` operand tensors, then the destination tensors, then index scalars, one for each
    entry of a launch's `scalars`. Tensors carry no encoding and have storage element types. The body ends with plan.yield of
    one tensor a destination, in the shape and type of the destination (destination-passing style: it is what the destination
    holds afterwards). After codegen the body is empty, `entry` is the offset in the variant's image, and `stack` and `scratch`
    are bytes.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_KindAttr:$kind, I64Attr:$operandCount, I64Attr:$destinationCount,
                       I64Attr:$scalarCount, OptionalAttr<Plan_ScheduleAttr>:$schedule, OptionalAttr<I64Attr>:$entry,
                       OptionalAttr<I64Attr>:$stack, OptionalAttr<I64Attr>:$scratch);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool hasBody() { return !getBody().empty(); }
    /// The body is still the dlc.group that was outlined (its arguments are the operands, in dlc types).
    bool isGroup();
  }];
}

def Plan_YieldOp : Plan_Op<"yield", [Pure, Terminator, ParentOneOf<["KernelOp", "IfOp"]>]> {
  let summary = "The tensors that a kernel's destinations hold afterwards, or the buffers that a branch gives";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Plan_FuncOp : Plan_Op<"func", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "A function's plan: a straight list of instructions, some with blocks of their own, ending in plan.return";
  let description = [{ `states` and `length` are there where the function works on states, and then both. }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$inputs, ArrayAttr:$outputs, ArrayAttr:$symbols, OptionalAttr<ArrayAttr>:$states,
                       OptionalAttr<Plan_LengthAttr>:$length);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ $sym_name `inputs` $inputs `outputs` $outputs `symbols` $symbols (`states` $states^)? (`length` $length^)?
      attr-dict-with-keyword $body }];
}

//===----------------------------------------------------------------------===//
// Instructions. Dimension expressions stand in attributes; the runtime evaluates them where plan.dim says so.
//===----------------------------------------------------------------------===//

def Plan_ConstOp : Plan_Op<"const", [Pure]> {
  let arguments = (ins AnyAttr:$value, DefaultValuedAttr<I64Attr, "0">:$device);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$value (`device` $device^)? attr-dict";
}
def Plan_InputOp : Plan_Op<"input", [Pure]> {
  let arguments = (ins I64Attr:$index);
  let results = (outs Plan_BufferOrObject:$buffer);
  let assemblyFormat = "$index attr-dict `:` type($buffer)";
}
def Plan_StateOp : Plan_Op<"state", [Pure]> {
  let summary = "All of the memory of the function's state number `index`, which outlives the run";
  let arguments = (ins I64Attr:$index);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$index attr-dict";
}
def Plan_OutputOp : Plan_Op<"output", []> {
  let arguments = (ins I64Attr:$index, TypedArrayAttrBase<Dlc_DimExprAttr, "dims">:$dims, Dlc_DimExprAttr:$bytes);
  let results = (outs Plan_BufferOrObject:$buffer);
  let assemblyFormat = "$index `dims` $dims `bytes` $bytes attr-dict `:` type($buffer)";
}
def Plan_SlotOp : Plan_Op<"slot", []> {
  let summary = "Memory for a value; its placement is there after assign-slots";
  let arguments = (ins Dlc_DimExprAttr:$bytes, DefaultValuedAttr<I64Attr, "0">:$device, OptionalAttr<Plan_PlacementAttr>:$placement);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$bytes (`device` $device^)? (`at` $placement^)? attr-dict";
}
def Plan_ViewOp : Plan_Op<"view", [Pure]> {
  let summary = "`bytes` bytes of the source from `offset` on";
  let arguments = (ins Plan_BufferType:$source, Dlc_DimExprAttr:$offset, Dlc_DimExprAttr:$bytes);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$source `offset` $offset `bytes` $bytes attr-dict";
}
def Plan_DimOp : Plan_Op<"dim", []> {
  let summary = "Evaluates the expressions (and what they are made of); the instructions after it may use them";
  let arguments = (ins TypedArrayAttrBase<Dlc_DimExprAttr, "expressions">:$values);
  let assemblyFormat = "$values attr-dict";
}
def Plan_CheckOp : Plan_Op<"check", []> {
  let arguments = (ins Dlc_DimExprAttr:$condition, Dlc_DimExprAttr:$lhs, Dlc_DimExprAttr:$rhs, StrAttr:$message);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs `,` $message attr-dict";
}
def Plan_ReadOp : Plan_Op<"read", []> {
  let summary = "Defines a late symbol: element `index` of an integer or bool buffer";
  let arguments = (ins Plan_BufferType:$source, TypeAttr:$type, I64Attr:$index, StrAttr:$symbol);
  let assemblyFormat = "$source `[` $index `]` `:` $type `as` $symbol attr-dict";
}
def Plan_LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments]> {
  let summary = "Runs a kernel's tiles";
  let description = [{ `domain`: the dims that the schedule's tiles cut. `tiles`, their number, is there after select-schedules. }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_BufferType>:$sources, Variadic<Plan_BufferType>:$destinations,
                       TypedArrayAttrBase<Dlc_DimExprAttr, "scalars">:$scalars,
                       TypedArrayAttrBase<Dlc_DimExprAttr, "domain">:$domain, OptionalAttr<Dlc_DimExprAttr>:$tiles,
                       OptionalAttr<Dlc_DimExprAttr>:$scratch, DefaultValuedAttr<I64Attr, "0">:$device);
  let assemblyFormat = [{ $kernel (`device` $device^)? `(` $sources `)` `to` `(` $destinations `)` `scalars` $scalars `domain` $domain
      (`tiles` $tiles^)? (`scratch` $scratch^)? attr-dict }];
}
def Plan_CopyOp : Plan_Op<"copy", []> {
  let arguments = (ins Plan_BufferOrObject:$destination, Plan_BufferOrObject:$source, Dlc_DimExprAttr:$bytes);
  let assemblyFormat = "$destination `from` $source `bytes` $bytes attr-dict `:` type($destination) `,` type($source)";
}
def Plan_FillOp : Plan_Op<"fill", []> {
  let summary = "Element i of the buffer = values[i mod n], converted to `type`";
  let arguments = (ins Plan_BufferType:$destination, TypeAttr:$type, Dlc_DimExprAttr:$elements,
                       TypedArrayAttrBase<Dlc_DimExprAttr, "values">:$values);
  let assemblyFormat = "$destination `:` $type `elements` $elements `values` $values attr-dict";
}
def Plan_IfOp : Plan_Op<"if", [NoRegionArguments, SingleBlock]> {
  let summary = "Runs one of two blocks; a result is the buffer that the block yields, each yielded buffer being a plan.view of that block";
  let arguments = (ins Dlc_DimExprAttr:$condition);
  let results = (outs Variadic<Plan_BufferType>:$buffers);
  let regions = (region SizedRegion<1>:$thenBlock, SizedRegion<1>:$elseBlock);
  let assemblyFormat = "$condition (`->` type($buffers)^)? attr-dict-with-keyword $thenBlock `else` $elseBlock";
}
def Plan_LoopOp : Plan_Op<"loop", [NoRegionArguments, NoTerminator]> {
  let summary = "Repeats the body while iteration < trip and the condition symbol is not 0";
  let arguments = (ins OptionalAttr<Dlc_DimExprAttr>:$trip, StrAttr:$iteration, OptionalAttr<StrAttr>:$condition);
  let regions = (region MaxSizedRegion<1>:$body);
  let assemblyFormat = "$iteration (`trip` $trip^)? (`condition` $condition^)? attr-dict-with-keyword $body";
}
def Plan_CallOp : Plan_Op<"call", [AttrSizedOperandSegments]> {
  let summary = "Calls a host function registered with the runtime";
  let arguments = (ins StrAttr:$domain, StrAttr:$name, I64Attr:$version, StrAttr:$settings, Variadic<Plan_BufferType>:$sources,
                       Variadic<Plan_BufferType>:$destinations, ArrayAttr:$types);
  let assemblyFormat = [{ $domain `:` $name `version` $version $settings `(` $sources `)` `to` `(` $destinations `)` `:` $types attr-dict }];
}
def Plan_StageOp : Plan_Op<"stage", []> {
  let summary = "The instructions up to the next stage are independent of each other";
  let arguments = (ins I64Attr:$stage);
  let assemblyFormat = "$stage attr-dict";
}
def Plan_ReturnOp : Plan_Op<"return", [Terminator]> {
  let assemblyFormat = "attr-dict";
}

#endif
