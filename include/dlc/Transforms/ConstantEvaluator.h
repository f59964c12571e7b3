// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Who computes constants for fold-constants. Passes on dlc ops can neither generate code nor run it; a tool that can do both brings an
// evaluator along.

#ifndef DLC_TRANSFORMS_CONSTANTEVALUATOR_H
#define DLC_TRANSFORMS_CONSTANTEVALUATOR_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace dlc {

class ConstantEvaluator {
public:
  using Values = llvm::SmallVector<mlir::TypedAttr>;

  virtual ~ConstantEvaluator();

  /// The dialects that must be there before `evaluate` is called.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;

  /// Runs the functions of a module. They have no arguments; their ops are as phase clean leaves them, types of results static, not
  /// empty, and of elements that a module's boundary does not pack. Gives for each function, in the order of the module, the values
  /// of its results, or why there are none: its data divides by zero, it computes what another machine would compute differently.
  ///
  /// The same values on every machine of one architecture. Large values live in the weight store of the module's context. Reports
  /// nothing through the context's diagnostics. Thread-safe, apart from the context.
  virtual std::vector<llvm::Expected<Values>> evaluate(mlir::OwningOpRef<mlir::ModuleOp> module) const = 0;
};

} // namespace dlc

#endif
