// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that hold the graph together: constants, values of dimensions, checks, fusion groups.

#ifndef DLC_IR_STRUCTURE
#define DLC_IR_STRUCTURE

include "dlc/IR/Dlc.td"

def Dlc_ConstantOp : Dlc_Op<"constant", ["form", "role"], [Pure]> {
  let summary = "A constant tensor: small ones in the IR, large ones as #dlc.weight";
  let arguments = (ins AnyAttr:$value);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "`<` $value `>` attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::TypedAttr":$value)>];
}

def Dlc_FromDimsOp : Dlc_Op<"from_dims", ["form", "role"], [Pure]> {
  let summary = "A small integer tensor whose elements are dimension expressions (row-major)";
  let arguments = (ins TypedArrayAttrBase<Dlc_DimExprAttr, "dimension expressions">:$values);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
}

def Dlc_ReadOp : Op<Dlc_Dialect, "read", []> {
  let summary = "Defines symbols from the elements of a small integer tensor that is known only at run time";
  let arguments = (ins AnyTensor:$x, StrArrayAttr:$symbols);
  let assemblyFormat = "$x `as` $symbols attr-dict `:` type($x)";
}

def Dlc_CheckOp : Op<Dlc_Dialect, "check", []> {
  let summary = "Fails the run with `message` unless `condition` is not 0; {0} and {1} in it stand for lhs and rhs";
  let arguments = (ins Dlc_DimExprAttr:$condition, Dlc_DimExprAttr:$lhs, Dlc_DimExprAttr:$rhs, StrAttr:$message);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs `,` $message attr-dict";
}

def Dlc_RequireOp : Dlc_Op<"require", ["form", "role", "readsData"]> {
  let summary = "Elements of `lhs` and `rhs` are equal (with `atLeast`: lhs is not below rhs), or the run fails with `message`";
  let description = [{ What a frontend demands of small integer tensors. infer-shapes makes it an error, nothing, or checks at run time;
      {0} and {1} in the message stand for the two elements. `rhs` may be one element for all of `lhs`. }];
  let arguments = (ins AnyTensor:$lhs, AnyTensor:$rhs, UnitAttr:$atLeast, StrAttr:$message);
  let assemblyFormat = "$lhs `,` $rhs `,` $message attr-dict `:` type($lhs) `,` type($rhs)";
}

def Dlc_GroupOp : Op<Dlc_Dialect, "group", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Ops that become one kernel; made by fuse";
  let description = [{ Values from outside are used directly. The results are the values of dlc.yield. }];
  let results = (outs Variadic<AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword `:` type($results) $body";
}

def Dlc_IfOp : Op<Dlc_Dialect, "if", [SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "One of two branches, by a condition of one element; values from outside are used directly";
  let description = [{
    infer-shapes puts the branch in the op's place where the condition is known. Otherwise it writes the condition as an expression
    into `resolvedCondition`. A result's dims are those of both branches, or chosen by the condition; where a branch reads
    them from its data, both branches yield them too: `dimsResult` says for each result which other one holds its dims (-1: none).
  }];
  let arguments = (ins AnyTensor:$condition, OptionalAttr<Dlc_DimExprAttr>:$resolvedCondition, OptionalAttr<DenseI64ArrayAttr>:$dimsResult);
  let results = (outs Variadic<AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$thenBranch, SizedRegion<1>:$elseBranch);
  let assemblyFormat = "$condition attr-dict-with-keyword `:` type($condition) (`->` type($results)^)? $thenBranch `else` $elseBranch";
}

def Dlc_YieldOp : Op<Dlc_Dialect, "yield", [Pure, Terminator]> {
  let arguments = (ins Variadic<AnyTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
