// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The walk over a model: graphs, function bodies, the names in them, and everything that is wrong, found in one go.

#ifndef DLC_FRONTENDS_ONNX_IMPORTER_H
#define DLC_FRONTENDS_ONNX_IMPORTER_H

#include "NodeReader.h"
#include "OpTable.h"
#include "Weights.h"
#include "dlc/Frontends/Onnx.h"
#include "dlc/Support/NodeLocation.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringMap.h"
#include <deque>

namespace onnx {
class OpSchema;
}

namespace dlc {

/// Something that keeps the model from being compiled.
struct Finding {
  mlir::Location loc;
  std::string opType; // of the node; empty where it concerns the model as a whole
  std::string message;
};

/// The dimensions of the model's inputs, with what the caller said about them.
class Signature {
public:
  Signature(mlir::MLIRContext *context, const OnnxImportOptions &options) : context(context), options(options) {}

  /// The dims of an input, symbols for all that is no number in the model; nothing after an error.
  std::optional<llvm::SmallVector<DimExpr>> addInput(const onnx::ValueInfoProto &input);
  /// Call after the last input: checks that all that the caller named exists.
  void finish();
  /// After `finish`: a dim with numbers for the symbols that have one.
  DimExpr substitute(DimExpr dim) const;
  /// After `finish`: the symbols that are left.
  mlir::ArrayAttr getSymbols() const;
  llvm::ArrayRef<std::string> getErrors() const { return errors; }

  /// Reserves the names that dimensions have, so that none made up is one of them.
  void reserveNames(const onnx::GraphProto &graph);
  /// Dimension names that exporters write when they know none.
  static bool isAnonymous(llvm::StringRef name);

private:
  struct Symbol {
    std::string name;
    bool anonymous = false;
    std::optional<int64_t> fixed; // by --shape
    std::string fixedBy;
  };
  DimExpr symbol(llvm::StringRef name, bool anonymous);
  std::string inventName(llvm::StringRef input, unsigned dim);
  bool fix(llvm::StringRef name, int64_t value, llvm::StringRef input);
  void checkPromises();

  mlir::MLIRContext *context;
  const OnnxImportOptions &options;
  llvm::SmallVector<Symbol> symbols;
  llvm::StringMap<unsigned> symbolNumbers;
  llvm::StringMap<bool> taken;
  llvm::SmallVector<std::string> inputs;
  llvm::SmallVector<std::string> errors;
};

class Importer {
public:
  /// `model` loses its weights to the result. `file`: its name in messages and locations.
  Importer(mlir::MLIRContext *context, onnx::ModelProto &model, llvm::StringRef file, llvm::StringRef folder,
           const OnnxImportOptions &options);

  /// Null when there are findings.
  mlir::OwningOpRef<mlir::ModuleOp> run();
  const std::deque<Finding> &getFindings() const { return findings; }

private:
  /// What a name stands for.
  struct Binding {
    mlir::Value value; // null: left out, or not made yet
    bool poisoned = false;
    const onnx::TensorProto *initializer = nullptr; // becomes a constant when it is first read
    std::string complaint;                          // why it cannot be had, told when somebody reads it
    std::optional<mlir::Location> complaintLoc;
    std::string complaintType;
  };

  /// The names of one graph or function body while it is imported.
  struct Frame {
    Frame *outer = nullptr; // of the graph around it; null for function bodies, which see nothing outside
    llvm::StringMap<Binding> values;
    llvm::StringMap<int64_t> opsets;
    /// In a function body: the values of its attributes.
    const llvm::StringMap<const onnx::AttributeProto *> *attributes = nullptr;
    bool ownsMessages = true; // the messages are the model's own, so weights may move out of them
    unsigned depth = 0;
    /// In a function body: the node of the model that it stands for, and how errors say where they are.
    std::optional<NodeRef> caller;
    std::string place;
  };

  //===--- Importer.cpp ---===//
  void checkModel();
  void number(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes);
  void importArguments(Frame &frame);
  void addInitializers(const onnx::GraphProto &graph, Frame &frame);
  void importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, Frame &frame);
  llvm::SmallVector<int> sortNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, Frame &frame);
  void importNode(const onnx::NodeProto &node, int position, Frame &frame);
  void importByHandler(const NodeInfo &info, const OpTable::Handler &handler, Frame &frame);
  void importResults(Frame &frame);
  bool define(Frame &frame, llvm::StringRef name, Binding binding);
  static Binding *lookup(Frame &frame, llvm::StringRef name);
  NodeInfo::Input resolve(Frame &frame, llvm::StringRef name);
  bool resolveAttributes(const onnx::NodeProto &node, Frame &frame, NodeInfo &info);
  /// Binds the outputs; null values become stand-ins.
  void bindOutputs(const NodeInfo &info, llvm::ArrayRef<mlir::Value> values, bool poisoned, Frame &frame);
  mlir::Type guessType(const NodeInfo &info, const onnx::OpSchema *schema, unsigned output);

  //===--- Functions.cpp ---===//
  void indexFunctions();
  /// Whether there was a body; then the outputs are bound, or there is a finding.
  bool importSchemaBody(const NodeInfo &info, const onnx::OpSchema &schema, Frame &frame);
  void importFunction(const NodeInfo &info, const onnx::FunctionProto &function, const onnx::OpSchema *schema, int64_t version,
                      Frame &frame);

  //===--- Control.cpp ---===//
  void importIf(const NodeInfo &info, Frame &frame);
  llvm::SmallVector<mlir::Value> importBranch(const onnx::GraphProto &graph, Frame &frame, bool &poisoned);

  //===--- findings ---===//
  void report(const llvm::Twine &message); // about the node being imported
  void reportAt(mlir::Location loc, llvm::StringRef opType, const llvm::Twine &message);
  void reportAtReader(const std::string *value, const llvm::Twine &message);
  void reportModel(const llvm::Twine &message);
  NodeRef refOf(const onnx::NodeProto &node, int position, const Frame &frame) const;

  mlir::MLIRContext *context;
  onnx::ModelProto &model;
  std::string file;
  const OnnxImportOptions &options;
  Weights weights;
  mlir::OpBuilder builder;
  mlir::Location fileLoc;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  llvm::DenseMap<const onnx::NodeProto *, unsigned> numbers;
  std::map<std::tuple<std::string, std::string, std::string>, const onnx::FunctionProto *> functions; // domain, name, overload
  std::deque<onnx::FunctionProto> builtBodies; // live as long as constants made of their tensors are looked up by address
  std::deque<Finding> findings;
  size_t imported = 0;
  bool overflown = false;

  // The node being imported.
  std::optional<mlir::Location> nodeLoc;
  std::string nodeType;
  std::string nodePlace;
};

/// "" for both spellings of the standard domain.
llvm::StringRef canonicalDomain(llvm::StringRef domain);

} // namespace dlc

#endif
