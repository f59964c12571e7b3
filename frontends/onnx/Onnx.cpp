// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The frontend as others see it. Nothing thrown by the libraries below leaves this file.

#include "dlc/Frontends/Onnx.h"
#include "ElementType.h"
#include "Importer.h"
#include "Model.h"
#include "dlc/Support/Format.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace dlc {

static void loadDialects(MLIRContext &context) {
  context.loadDialect<DlcDialect>();
  context.loadDialect<func::FuncDialect>();
}

static void emitFileError(MLIRContext &context, StringRef file, const Twine &message) {
  emitError(FileLineColLoc::get(&context, printable(file), 0, 0)) << message;
}

/// One error a finding; nodes of one operator about which there is the same to say share one.
static void emitFindings(const std::deque<Finding> &findings) {
  struct Group {
    const Finding *first;
    SmallVector<unsigned> others;
  };
  llvm::MapVector<std::pair<StringRef, StringRef>, Group> groups;
  for (const Finding &finding : findings) {
    auto [it, isNew] = groups.try_emplace({finding.opType, finding.message}, Group{&finding, {}});
    if (isNew)
      continue;
    SmallVector<NodeRef> nodes = nodesOf(finding.loc);
    if (!nodes.empty())
      it->second.others.push_back(nodes.front().index);
  }
  constexpr size_t kMostErrors = 200, kMostNumbers = 12;
  size_t emitted = 0;
  for (const auto &[key, group] : groups) {
    if (++emitted > kMostErrors) {
      emitError(group.first->loc) << "and " << groups.size() - kMostErrors << " more problems";
      return;
    }
    InFlightDiagnostic diagnostic = emitError(group.first->loc);
    diagnostic << group.first->message;
    if (group.others.empty())
      continue;
    diagnostic << " (the same holds for " << group.others.size() << " more: node";
    for (unsigned number : ArrayRef(group.others).take_front(kMostNumbers))
      diagnostic << " " << number;
    diagnostic << (group.others.size() > kMostNumbers ? " ...)" : ")");
  }
}

/// Runs the importer; whatever it throws is an error too.
template <typename Body> static bool guarded(MLIRContext &context, StringRef file, Body body) {
  try {
    body();
    return true;
  } catch (const std::bad_alloc &) {
    emitFileError(context, file, "there is not enough memory to import the model");
  } catch (const std::exception &error) {
    emitFileError(context, file, Twine("the model cannot be imported: ") + printable(error.what()));
  }
  return false;
}

static OwningOpRef<ModuleOp> importModel(MLIRContext &context, llvm::Expected<std::unique_ptr<onnx::ModelProto>> model, StringRef file,
                                         StringRef folder, const OnnxImportOptions &options) {
  if (!model) {
    emitFileError(context, file, llvm::toString(model.takeError()));
    return {};
  }
  loadDialects(context);
  Importer importer(&context, **model, file, folder, options);
  OwningOpRef<ModuleOp> module = importer.run();
  emitFindings(importer.getFindings());
  return module;
}

static std::string folderOf(StringRef path) {
  StringRef parent = llvm::sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

OwningOpRef<ModuleOp> importOnnx(MLIRContext &context, StringRef path, const OnnxImportOptions &options) {
  OwningOpRef<ModuleOp> module;
  StringRef file = llvm::sys::path::filename(path);
  bool done = guarded(context, file, [&] { module = importModel(context, readModel(path), file, folderOf(path), options); });
  return done ? std::move(module) : OwningOpRef<ModuleOp>();
}

OwningOpRef<ModuleOp> importOnnx(MLIRContext &context, llvm::ArrayRef<char> bytes, StringRef name, StringRef folder,
                                 const OnnxImportOptions &options) {
  OwningOpRef<ModuleOp> module;
  bool done = guarded(context, name, [&] { module = importModel(context, parseModel(bytes), name, folder, options); });
  return done ? std::move(module) : OwningOpRef<ModuleOp>();
}

//===----------------------------------------------------------------------===//
// Summary
//===----------------------------------------------------------------------===//

static void countOps(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, OnnxSummary &summary) {
  for (const onnx::NodeProto &node : nodes) {
    StringRef domain = canonicalDomain(node.domain());
    ++summary.ops[printable(domain.empty() ? node.op_type() : (domain + "." + node.op_type()).str())];
    ++summary.nodes;
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        countOps(attribute.g().node(), summary);
      for (const onnx::GraphProto &graph : attribute.graphs())
        countOps(graph.node(), summary);
    }
  }
}

static OnnxSummary::Value describeValue(const onnx::ValueInfoProto &info) {
  OnnxSummary::Value value;
  value.name = printable(info.name());
  value.ranked = false;
  switch (info.type().value_case()) {
  case onnx::TypeProto::kTensorType: {
    const auto &type = info.type().tensor_type();
    value.type = typeName(type.elem_type());
    value.ranked = type.has_shape();
    for (const auto &dim : type.shape().dim())
      value.dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0                         ? std::to_string(dim.dim_value())
                           : dim.has_dim_param() && !Signature::isAnonymous(dim.dim_param()) ? printable(dim.dim_param())
                                                                                             : "?");
    break;
  }
  case onnx::TypeProto::kSequenceType:
    value.type = "sequence";
    break;
  case onnx::TypeProto::kMapType:
    value.type = "map";
    break;
  case onnx::TypeProto::kOptionalType:
    value.type = "optional";
    break;
  case onnx::TypeProto::kSparseTensorType:
    value.type = "sparse tensor";
    break;
  default:
    value.type = "unknown";
  }
  return value;
}

static uint64_t bytesOf(const onnx::TensorProto &tensor, MLIRContext &context) {
  llvm::Expected<RankedTensorType> type = tensorTypeOf(&context, tensor);
  if (type)
    return llvm::divideCeil(static_cast<uint64_t>(type->getNumElements()) * bitsPerElement(type->getElementType()), 8);
  llvm::consumeError(type.takeError());
  return tensor.raw_data().size();
}

static OnnxSummary summarize(onnx::ModelProto &model, StringRef path) {
  OnnxSummary summary;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  summary.irVersion = model.ir_version();
  summary.producer = printable(model.producer_name());
  if (!model.producer_version().empty())
    summary.producer += (summary.producer.empty() ? "" : " ") + printable(model.producer_version());
  for (const onnx::OperatorSetIdProto &opset : model.opset_import()) {
    StringRef domain = canonicalDomain(opset.domain());
    summary.opsets.push_back({domain.empty() ? "ai.onnx" : printable(domain), opset.version()});
  }
  const onnx::GraphProto &graph = model.graph();
  countOps(graph.node(), summary);
  summary.functions = model.functions_size();
  llvm::StringMap<bool> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    initializers[tensor.name()] = true;
    ++summary.weights;
    summary.weightBytes += bytesOf(tensor, context);
  }
  for (const onnx::ValueInfoProto &input : graph.input()) {
    bool isInitializer = initializers.count(input.name());
    if (isInitializer && model.ir_version() < 4)
      continue;
    summary.inputs.push_back(describeValue(input));
    summary.inputs.back().hasDefault = isInitializer;
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    summary.outputs.push_back(describeValue(output));

  OnnxImportOptions options;
  Importer importer(&context, model, llvm::sys::path::filename(path), folderOf(path), options);
  importer.run();
  for (const Finding &finding : importer.getFindings()) {
    SmallVector<NodeRef> nodes = nodesOf(finding.loc);
    summary.problems.push_back({nodes.empty() ? "" : nodes.front().toString(), finding.opType, finding.message});
  }
  return summary;
}

llvm::Expected<OnnxSummary> summarizeOnnx(StringRef path) {
  std::string file = printable(llvm::sys::path::filename(path));
  try {
    llvm::Expected<std::unique_ptr<onnx::ModelProto>> model = readModel(path);
    if (!model)
      return makeError("{}: {}", file, llvm::toString(model.takeError()));
    return summarize(**model, path);
  } catch (const std::bad_alloc &) {
    return makeError("{}: there is not enough memory to read the model", file);
  } catch (const std::exception &error) {
    return makeError("{}: the model cannot be read: {}", file, printable(error.what()));
  }
}

} // namespace dlc
