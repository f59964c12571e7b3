// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// One node while it is imported: typed access to its inputs and attributes, and the ops it becomes. The reader knows what was
// asked of it; an attribute or an input that nobody read is an error, and so is one of the wrong type.
//
// A handler is straight-line code: whatever goes wrong is kept, and reading goes on with a stand-in, so that no handler tests
// for failure before the end.

#ifndef DLC_FRONTENDS_ONNX_NODEREADER_H
#define DLC_FRONTENDS_ONNX_NODEREADER_H

#include "dlc/IR/Dialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"

namespace onnx {
class AttributeProto;
}

namespace dlc {

class Weights;

/// A node whose names are resolved.
struct NodeInfo {
  struct Input {
    std::string name;
    mlir::Value value;     // null where the input is left out
    bool poisoned = false; // made by a node that could not be imported: stands for anything
  };
  std::string opType;
  std::string domain;  // "" for the standard one
  int64_t version = 0; // of the operator set
  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<std::string> outputs; // "" where the output is not asked for
  llvm::SmallVector<std::pair<std::string, const onnx::AttributeProto *>> attributes;
  bool takeWeights = false; // tensors in attributes are the model's own, and their bytes may move out of the message

  const onnx::AttributeProto *findAttribute(llvm::StringRef name) const;
  bool anyPoisoned() const;
  /// "Conv", "com.microsoft.Gelu"
  std::string fullType() const { return domain.empty() ? opType : domain + "." + opType; }
};

class NodeReader {
public:
  NodeReader(mlir::OpBuilder &builder, mlir::Location loc, const NodeInfo &node, Weights &weights);

  const NodeInfo &getNode() const { return node; }
  int64_t getVersion() const { return node.version; }

  //===--- inputs ---===//
  unsigned getNumInputs() const { return node.inputs.size(); }
  /// Never null: an input that is missing is an error, and something stands in for it.
  mlir::Value input(unsigned i);
  /// Null where the input is left out.
  mlir::Value optionalInput(unsigned i);
  /// All inputs from i on, which may not be left out.
  llvm::SmallVector<mlir::Value> inputsFrom(unsigned i);
  mlir::Type elementType(unsigned i) { return elementTypeOf(input(i)); }
  static mlir::Type elementTypeOf(mlir::Value value) { return llvm::cast<mlir::ShapedType>(value.getType()).getElementType(); }
  /// The rank, where the import knows it.
  static std::optional<int64_t> rankOf(mlir::Value value);
  /// The constant that a value is, or null. Initializers and the results of Constant nodes are.
  static mlir::TypedAttr constantOf(mlir::Value value);
  /// The elements of an integer input that must be constant; `what` it is, for the error.
  llvm::SmallVector<int64_t> constantInts(unsigned i, llvm::StringRef what);
  /// The same where the input may be left out.
  std::optional<llvm::SmallVector<int64_t>> optionalConstantInts(unsigned i, llvm::StringRef what);
  int64_t constantInt(unsigned i, llvm::StringRef what);
  /// A list of integers: numbers where they are known, else the tensor that holds them when it runs; neither where it is left out.
  struct Ints {
    std::optional<llvm::SmallVector<int64_t>> numbers;
    mlir::Value tensor;
  };
  /// Such a list as an input.
  Ints optionalInts(unsigned i, llvm::StringRef what);

  //===--- attributes ---===//
  bool hasAttribute(llvm::StringRef name) const { return node.findAttribute(name) != nullptr; }
  std::optional<int64_t> findInt(llvm::StringRef name);
  std::optional<float> findFloat(llvm::StringRef name);
  std::optional<std::string> findString(llvm::StringRef name);
  std::optional<llvm::SmallVector<int64_t>> findInts(llvm::StringRef name);
  std::optional<llvm::SmallVector<float>> findFloats(llvm::StringRef name);
  /// A tensor as a constant; null where there is none, or none that can be had.
  mlir::TypedAttr findTensor(llvm::StringRef name);
  int64_t getInt(llvm::StringRef name, int64_t otherwise) { return findInt(name).value_or(otherwise); }
  bool getFlag(llvm::StringRef name, bool otherwise) { return getInt(name, otherwise) != 0; }
  float getFloat(llvm::StringRef name, float otherwise) { return findFloat(name).value_or(otherwise); }
  /// An element type given as a TensorProto.DataType; f32 after an error.
  mlir::Type getElementType(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  /// Counts as read: attributes that have no meaning here.
  void ignore(llvm::StringRef name);

  //===--- what the node becomes ---===//
  mlir::OpBuilder &b() { return builder; }
  mlir::Location getLoc() const { return loc; }
  /// An op with one result of unknown rank.
  template <typename OpT, typename... Arguments> mlir::Value make(mlir::Type elementType, Arguments &&...arguments) {
    return OpT::create(builder, loc, mlir::UnrankedTensorType::get(elementType), std::forward<Arguments>(arguments)...).getResult();
  }
  mlir::Value constant(mlir::TypedAttr value);
  /// A one-dimensional int64 constant.
  mlir::Value ints(llvm::ArrayRef<int64_t> values);
  /// A constant without dimensions.
  mlir::Value scalar(double value, mlir::Type elementType);
  mlir::Value scalarLike(double value, mlir::Value like) { return scalar(value, elementTypeOf(like)); }
  mlir::Value cast(mlir::Value value, mlir::Type to);

  bool wantsOutput(unsigned i) const { return i < node.outputs.size() && !node.outputs[i].empty(); }
  void setOutput(unsigned i, mlir::Value value);

  //===--- errors ---===//
  void fail(const llvm::Twine &message);
  /// An error about input i; not worth a word when what stands there came of another error.
  void failInput(unsigned i, const llvm::Twine &message);
  bool failed() const { return hasFailed; }

  /// Complains of whatever was not read. Call once, after the handler.
  void finish();
  llvm::ArrayRef<std::string> getErrors() const { return errors; }
  llvm::ArrayRef<mlir::Value> getOutputs() const { return outputs; }

  /// "input 1 'shape'"
  std::string describeInput(unsigned i) const;

private:
  /// The attribute if it is there and has this AttributeProto.AttributeType.
  const onnx::AttributeProto *find(llvm::StringRef name, int type);
  mlir::Value standIn();

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const NodeInfo &node;
  Weights &weights;
  llvm::SmallBitVector readInputs;
  llvm::SmallBitVector readAttributes;
  llvm::SmallVector<mlir::Value> outputs;
  llvm::SmallVector<std::string> errors;
  bool hasFailed = false;
};

/// The axis behind. A number that is no axis at all stays one, for the shape rules to refuse.
inline int64_t axisBehind(int64_t axis) { return axis == INT64_MAX ? axis : axis + 1; }

/// A value that stands for one that could not be made, so that the import can go on to further errors.
mlir::Value makeStandIn(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType);

} // namespace dlc

#endif
