// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// ONNX models in, dlc modules out. No ONNX or protobuf type is seen from outside, and nothing is thrown.
//
// The result holds one function, `@main`, of dlc ops on tensors. Its arguments are the model's inputs (`dlc.name`, and
// `dlc.default` where an initializer is the default of an input); its results are the model's outputs (`dlc.name`). The
// types of arguments have their final dims; those of all other values are `tensor<*xELEMENT>` until infer-shapes.

#ifndef DLC_FRONTENDS_ONNX_H
#define DLC_FRONTENDS_ONNX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlc {

/// What the caller says about the model's dimensions. A name or an input that the model does not have is an error.
struct OnnxImportOptions {
  struct Range {
    int64_t min = 0;
    int64_t max = INT64_MAX;
    bool operator==(const Range &) const = default;
  };
  std::map<std::string, int64_t> fixedDims;   // --dim NAME=N
  std::map<std::string, Range> ranges;        // --dim NAME=MIN..MAX, both included
  std::map<std::string, int64_t> divisors;    // --dim NAME%N
  /// --shape INPUT=1x3x?x?: all dims of one input; an empty one keeps what the model says.
  std::map<std::string, std::vector<std::optional<int64_t>>> shapes;
};

/// Imports the model in a file. Every problem of one kind is found before it gives up; each is one error on the context's
/// diagnostic engine, located at its node (dlc/Support/NodeLocation.h), or at FileLineColLoc(FILE, 0, 0) where it concerns
/// the file as a whole. FILE is the name without its folder. Returns null after an error.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(mlir::MLIRContext &context, llvm::StringRef path, const OnnxImportOptions &options = {});

/// The same for a model in memory. `name` stands for the file in messages and locations; external data are looked for below
/// `folder`, and refused where it is empty. `bytes` need not outlive the call.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(mlir::MLIRContext &context, llvm::ArrayRef<char> bytes, llvm::StringRef name,
                                             llvm::StringRef folder, const OnnxImportOptions &options = {});

/// What `dlc inspect MODEL.onnx` tells.
struct OnnxSummary {
  struct Value {
    std::string name;
    std::string type;              // "float", "int64", "string"; "sequence" ... for what is not a tensor
    bool ranked = true;            // false: the model does not say how many dimensions there are
    std::vector<std::string> dims; // "3", "batch", "?"
    bool hasDefault = false;       // an input that need not be bound
  };
  struct Problem {
    std::string node;   // "node 17 'conv1' (Conv)"; empty where it concerns the model as a whole
    std::string opType; // "Conv", "com.microsoft.Gelu"; empty likewise
    std::string reason;
  };
  int64_t irVersion = 0;
  std::string producer;                                 // "pytorch 2.4.0"
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("ai.onnx" for the standard one), version
  std::map<std::string, uint64_t> ops;                  // op type -> nodes, subgraphs included
  uint64_t nodes = 0;
  uint64_t functions = 0; // model-local ones
  uint64_t weights = 0;   // initializers
  uint64_t weightBytes = 0;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::vector<Problem> problems; // all that keeps the model from being compiled; one entry a node
};

/// Fails only when the file cannot be read or is not an ONNX model, with a text that begins with the file's name; anything
/// else is a problem in the summary.
llvm::Expected<OnnxSummary> summarizeOnnx(llvm::StringRef path);

} // namespace dlc

#endif
