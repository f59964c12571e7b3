// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Importer.h"
#include "ElementType.h"
#include "Model.h"
#include "OpTable.h"
#include "SchemaCheck.h"
#include "dlc/IR/Movement.h"
#include "dlc/Support/CurrentWork.h"
#include "onnx/defs/schema.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <queue>

using namespace mlir;
using google::protobuf::RepeatedPtrField;
using onnx::GraphProto;
using onnx::NodeProto;

namespace dlc {

/// A model with more nodes, function bodies written out, is refused: bodies that call each other can grow without end.
static constexpr size_t kMostNodes = 200000;

StringRef canonicalDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef() : domain; }

Importer::Importer(MLIRContext *context, onnx::ModelProto &model, StringRef file, StringRef folder, const OnnxImportOptions &options)
    : context(context), model(model), file(printable(file)), options(options), weights(context, folder), builder(context),
      fileLoc(FileLineColLoc::get(context, this->file, 0, 0)) {}

//===----------------------------------------------------------------------===//
// Findings
//===----------------------------------------------------------------------===//

void Importer::reportAt(Location loc, StringRef opType, const Twine &message) {
  findings.push_back({loc, opType.str(), message.str()});
}
void Importer::report(const Twine &message) { reportAt(*nodeLoc, nodeType, Twine(nodePlace) + message); }
void Importer::reportModel(const Twine &message) { reportAt(fileLoc, "", message); }

/// About the model, but said where it bites: at the first node that reads the input `value` (null: at the first node).
void Importer::reportAtReader(const std::string *value, const Twine &message) {
  for (auto [position, node] : llvm::enumerate(model.graph().node())) {
    if (value && !llvm::is_contained(node.input(), *value))
      continue;
    NodeRef ref = refOf(node, position, Frame());
    return reportAt(nodeLocation(context, ref), ref.opType, message);
  }
  reportModel(value ? message + "; no node reads it" : message);
}

NodeRef Importer::refOf(const NodeProto &node, int position, const Frame &frame) const {
  if (frame.caller)
    return *frame.caller;
  NodeRef ref;
  ref.file = file;
  auto it = numbers.find(&node);
  ref.index = it == numbers.end() ? position : it->second;
  StringRef domain = canonicalDomain(node.domain());
  ref.opType = printable(domain.empty() ? node.op_type() : (domain + "." + node.op_type()).str());
  ref.name = printable(node.name());
  return ref;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Importer::Binding *Importer::lookup(Frame &frame, StringRef name) {
  for (Frame *f = &frame; f; f = f->outer)
    if (auto it = f->values.find(name); it != f->values.end())
      return &it->second;
  return nullptr;
}

bool Importer::define(Frame &frame, StringRef name, Binding binding) {
  return frame.values.try_emplace(name, std::move(binding)).second;
}

/// The value that a name stands for, made if it must be. An empty name is an input left out.
NodeInfo::Input Importer::resolve(Frame &frame, StringRef name) {
  NodeInfo::Input input{name.str(), Value(), false};
  if (name.empty())
    return input;
  Binding *binding = lookup(frame, name);
  if (!binding) {
    report(Twine("it reads the value ") + quote(name) + ", which nothing makes");
    Binding poison;
    poison.value = makeStandIn(builder, *nodeLoc, {});
    poison.poisoned = true;
    frame.values[name] = poison;
    return {name.str(), poison.value, true};
  }
  if (!binding->value && binding->initializer) {
    llvm::Expected<TypedAttr> value = weights.read(*binding->initializer, /*take=*/true);
    if (value) {
      // A branch may be the first to read it, and not the last: it stands outside of all branches.
      OpBuilder::InsertionGuard guard(builder);
      Operation *around = builder.getInsertionBlock()->getParentOp();
      for (; around != function; around = around->getParentOp())
        builder.setInsertionPoint(around);
      Location loc = NameLoc::get(builder.getStringAttr(printable(name)), fileLoc);
      binding->value = ConstantOp::create(builder, loc, *value).getResult();
    } else {
      report(Twine("its weight ") + quote(name) + " cannot be used: " + llvm::toString(value.takeError()));
      binding->value = makeStandIn(builder, *nodeLoc, elementTypeFor(context, binding->initializer->data_type()));
      binding->poisoned = true;
    }
  } else if (!binding->value && !binding->complaint.empty()) {
    reportAt(*binding->complaintLoc, binding->complaintType, binding->complaint);
    binding->value = makeStandIn(builder, *nodeLoc, {});
    binding->poisoned = true;
  }
  input.value = binding->value;
  input.poisoned = binding->poisoned;
  return input;
}

//===----------------------------------------------------------------------===//
// The order of nodes
//===----------------------------------------------------------------------===//

/// All names that the nodes of a graph read, and the graph itself, which may be names of the graphs around it.
static void collectReads(const GraphProto &graph, llvm::StringSet<> &names) {
  for (const NodeProto &node : graph.node()) {
    for (const std::string &input : node.input())
      names.insert(input);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collectReads(attribute.g(), names);
      for (const GraphProto &inner : attribute.graphs())
        collectReads(inner, names);
    }
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    names.insert(output.name());
}

/// An order in which each node stands behind those that feed it, as near to the given one as can be. Reports values made
/// twice and cycles; nodes on a cycle are left out, and their outputs poisoned.
SmallVector<int> Importer::sortNodes(const RepeatedPtrField<NodeProto> &nodes, Frame &frame) {
  llvm::StringMap<int> makers;
  for (auto [position, node] : llvm::enumerate(nodes)) {
    for (const std::string &output : node.output()) {
      if (output.empty())
        continue;
      NodeRef ref = refOf(node, position, frame);
      auto [it, isNew] = makers.try_emplace(output, position);
      if (!isNew)
        reportAt(nodeLocation(context, ref), ref.opType,
                 Twine(frame.place) + "it makes the value " + quote(output) + ", which " +
                     refOf(nodes[it->second], it->second, Frame()).toString() + " makes already; names of values are unique in a graph");
      else if (frame.values.count(output))
        reportAt(nodeLocation(context, ref), ref.opType,
                 Twine(frame.place) + "it makes the value " + quote(output) +
                     ", which is an input or an initializer already; names of values are unique in a graph");
    }
  }

  std::vector<SmallVector<int>> readers(nodes.size()), feeders(nodes.size());
  std::vector<int> missing(nodes.size(), 0);
  for (auto [position, node] : llvm::enumerate(nodes)) {
    llvm::StringSet<> names;
    for (const std::string &input : node.input())
      names.insert(input);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        collectReads(attribute.g(), names);
      for (const GraphProto &graph : attribute.graphs())
        collectReads(graph, names);
    }
    for (const auto &name : names)
      if (auto it = makers.find(name.getKey()); it != makers.end()) {
        readers[it->second].push_back(position);
        feeders[position].push_back(it->second);
        ++missing[position];
      }
  }

  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int position = 0; position < nodes.size(); ++position)
    if (missing[position] == 0)
      ready.push(position);
  SmallVector<int> order;
  while (!ready.empty()) {
    int position = ready.top();
    ready.pop();
    order.push_back(position);
    for (int reader : readers[position])
      if (--missing[reader] == 0)
        ready.push(reader);
  }
  if (order.size() == static_cast<size_t>(nodes.size()))
    return order;

  // Walk from a node that is left to one that feeds it and is left too, until one comes twice.
  int position = 0;
  while (missing[position] == 0)
    ++position;
  llvm::DenseMap<int, size_t> seen;
  SmallVector<int> path;
  while (seen.try_emplace(position, path.size()).second) {
    path.push_back(position);
    position = *llvm::find_if(feeders[position], [&](int feeder) { return missing[feeder] > 0; });
  }
  std::string text;
  ArrayRef<int> cycle = ArrayRef(path).drop_front(seen[position]);
  for (int each : ArrayRef(cycle).take_front(8))
    for (const std::string &output : nodes[each].output())
      if (!output.empty()) {
        text += (text.empty() ? "" : ", ") + quote(output);
        break;
      }
  if (cycle.size() > 8)
    text += " and " + std::to_string(cycle.size() - 8) + " more";
  NodeRef ref = refOf(nodes[cycle.front()], cycle.front(), frame);
  reportAt(nodeLocation(context, ref), ref.opType,
           Twine(frame.place) + "it is part of a cycle: the values " + text + " feed each other; a graph has no cycle");
  for (int left = 0; left < nodes.size(); ++left)
    if (missing[left] > 0)
      for (const std::string &output : nodes[left].output())
        if (!output.empty()) {
          Binding poison;
          poison.value = makeStandIn(builder, fileLoc, {});
          poison.poisoned = true;
          define(frame, output, poison);
        }
  return order;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Numbers the nodes as messages do: those of the main graph from 0, those of subgraphs after them, in order of appearance.
void Importer::number(const RepeatedPtrField<NodeProto> &nodes) {
  for (const NodeProto &node : nodes)
    numbers.try_emplace(&node, numbers.size());
  for (const NodeProto &node : nodes)
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        number(attribute.g().node());
      for (const GraphProto &graph : attribute.graphs())
        number(graph.node());
    }
}

void Importer::addInitializers(const GraphProto &graph, Frame &frame) {
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty()) {
      reportModel("an initializer has no name");
      continue;
    }
    Binding binding;
    binding.initializer = &tensor;
    if (!define(frame, tensor.name(), binding))
      reportModel(Twine("the initializer ") + quote(tensor.name()) +
                  (frame.values[tensor.name()].initializer ? " is there twice" : " has the name of another value") +
                  "; names of values are unique in a graph");
  }
  for (const onnx::SparseTensorProto &tensor : graph.sparse_initializer()) {
    Binding binding;
    binding.complaint = ("the initializer " + quote(tensor.values().name()) + " is sparse, which dlc does not support; store it as a " +
                         "dense tensor");
    binding.complaintLoc = fileLoc;
    define(frame, tensor.values().name(), binding);
  }
}

void Importer::importNodes(const RepeatedPtrField<NodeProto> &nodes, Frame &frame) {
  for (int position : sortNodes(nodes, frame)) {
    if (overflown)
      return;
    importNode(nodes[position], position, frame);
  }
}

/// The attributes of a node, those that stand for one of the function around it replaced by its value.
bool Importer::resolveAttributes(const NodeProto &node, Frame &frame, NodeInfo &info) {
  llvm::StringSet<> seen;
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (!seen.insert(attribute.name()).second) {
      report(Twine("its attribute ") + quote(attribute.name()) + " is there twice");
      return false;
    }
    const onnx::AttributeProto *value = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      if (!frame.attributes) {
        report(Twine("its attribute ") + quote(attribute.name()) + " stands for an attribute of a function, and there is none around it");
        return false;
      }
      auto it = frame.attributes->find(attribute.ref_attr_name());
      if (it == frame.attributes->end())
        continue; // left out by the caller, so left out here
      value = it->second;
    }
    info.attributes.push_back({attribute.name(), value});
  }
  return true;
}

Type Importer::guessType(const NodeInfo &info, const onnx::OpSchema *schema, unsigned output) {
  if (!schema || schema->outputs().empty())
    return {};
  const auto &parameter = schema->outputs()[std::min<size_t>(output, schema->outputs().size() - 1)];
  for (auto [i, input] : llvm::enumerate(info.inputs))
    if (input.value && !schema->inputs().empty() &&
        schema->inputs()[std::min(i, schema->inputs().size() - 1)].GetTypeStr() == parameter.GetTypeStr())
      return NodeReader::elementTypeOf(input.value);
  if (parameter.GetTypes().size() == 1)
    for (int type = 1; type < onnx::TensorProto_DataType_DataType_ARRAYSIZE; ++type)
      if ("tensor(" + typeName(type) + ")" == **parameter.GetTypes().begin())
        return elementTypeFor(context, type);
  return {};
}

void Importer::bindOutputs(const NodeInfo &info, ArrayRef<Value> values, bool poisoned, Frame &frame) {
  const onnx::OpSchema *schema = nullptr;
  if (poisoned && info.domain.empty())
    schema = onnx::OpSchemaRegistry::Schema(info.opType, static_cast<int>(info.version), "");
  for (auto [i, name] : llvm::enumerate(info.outputs)) {
    if (name.empty())
      continue;
    Binding binding;
    binding.value = i < values.size() ? values[i] : Value();
    binding.poisoned = poisoned;
    if (!binding.value && poisoned) {
      binding.value = makeStandIn(builder, *nodeLoc, guessType(info, schema, i));
    } else if (!binding.value) {
      binding.complaint = nodePlace + "its output " + std::to_string(i) + " " + quote(name) + " is used, which dlc does not support";
      binding.complaintLoc = *nodeLoc;
      binding.complaintType = nodeType;
    }
    define(frame, name, std::move(binding));
  }
}

void Importer::importByHandler(const NodeInfo &info, const OpTable::Handler &handler, Frame &frame) {
  NodeReader reader(builder, *nodeLoc, info, weights);
  handler(reader);
  reader.finish();
  for (const std::string &error : reader.getErrors())
    report(error);
  bindOutputs(info, reader.getOutputs(), reader.failed() || info.anyPoisoned(), frame);
}

void Importer::importNode(const NodeProto &node, int position, Frame &frame) {
  // Bodies are imported inside of the node that they stand for.
  llvm::scope_exit restore([this, loc = nodeLoc, type = nodeType, place = nodePlace] {
    nodeLoc = loc;
    nodeType = type;
    nodePlace = place;
  });
  NodeRef ref = refOf(node, position, frame);
  nodeLoc = nodeLocation(context, ref);
  nodeType = ref.opType;
  nodePlace = frame.place;
  if (frame.caller) {
    NodeRef inner;
    inner.index = position;
    inner.name = printable(node.name());
    inner.opType = printable(node.op_type());
    nodePlace += inner.toString() + ": ";
  }
  CurrentWork work("import", *nodeLoc);

  if (++imported > kMostNodes) {
    reportAt(*nodeLoc, nodeType, Twine("with its function bodies written out, the model has more than ") + Twine(kMostNodes) + " nodes");
    overflown = true;
    return;
  }

  NodeInfo info;
  info.opType = node.op_type();
  info.domain = canonicalDomain(node.domain()).str();
  info.takeWeights = frame.ownsMessages;
  info.outputs.assign(node.output().begin(), node.output().end());
  bool good = resolveAttributes(node, frame, info);
  for (const std::string &name : node.input())
    info.inputs.push_back(resolve(frame, name));
  auto giveUp = [&](const Twine &message) {
    report(message);
    bindOutputs(info, {}, /*poisoned=*/true, frame);
  };
  if (!good)
    return bindOutputs(info, {}, /*poisoned=*/true, frame);
  auto opset = frame.opsets.find(info.domain);
  info.version = opset == frame.opsets.end() ? 0 : opset->second;

  auto local = functions.find({info.domain, info.opType, node.overload()});
  if (local != functions.end())
    return importFunction(info, *local->second, nullptr, 0, frame);
  if (!node.overload().empty())
    return giveUp(Twine("the model has no function ") + quote(info.fullType()) + " with the overload " + quote(node.overload()));
  if (opset == frame.opsets.end())
    return giveUp(Twine("the model uses operators of domain ") + quote(info.domain.empty() ? "ai.onnx" : info.domain) +
                  " without saying which version of it (opset_import)");

  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(info.opType, static_cast<int>(info.version), info.domain);
  const OpTable::Handler *handler = OpTable::get().find(info.domain, info.opType, info.version);
  if (!schema && handler) // not of ONNX: the handler is all that knows it
    return importByHandler(info, *handler, frame);
  if (!schema && info.domain.empty()) {
    const onnx::OpSchema *other = onnx::OpSchemaRegistry::Schema(info.opType, static_cast<int>(kNewestOpset), "");
    if (other)
      return giveUp(Twine(info.opType) + " is not in opset " + Twine(info.version) + ", which the model imports; it came with opset " +
                    Twine(other->since_version()) + " or was changed since");
    return giveUp(Twine("there is no operator ") + quote(info.opType) + " in opset " + Twine(info.version));
  }
  if (!schema && info.domain == kMicrosoft)
    return giveUp(Twine("dlc does not support the operator ") + printable(info.opType) + " of domain " + quote(info.domain) +
                  "; save the model with less of ONNX Runtime's optimizations (ORT_ENABLE_BASIC), or export it from standard operators");
  if (!schema)
    return giveUp(Twine("the operator ") + printable(info.opType) + " of domain " + quote(info.domain) +
                  " is unknown, and the model holds no function body for it; export it as a model-local function or from standard operators");
  if (schema->deprecated())
    return giveUp(Twine(info.opType) + " is no operator any more in opset " + Twine(info.version));

  size_t before = findings.size();
  checkSchema(*schema, info, [&](const Twine &message) { report(message); });
  if (findings.size() != before)
    return bindOutputs(info, {}, /*poisoned=*/true, frame);

  if (info.domain.empty() && info.opType == "If")
    return importIf(info, frame);

  if (handler)
    return importByHandler(info, *handler, frame);
  if (importSchemaBody(info, *schema, frame))
    return;
  giveUp(Twine("dlc does not support ") + (info.domain.empty() ? "" : "the domain " + quote(info.domain) + " or ") + "this operator");
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

void Importer::checkModel() {
  if (model.ir_version() < 1)
    reportModel("the model does not say which version of the ONNX format it has (ir_version)");
  if (model.ir_version() > onnx::Version::IR_VERSION)
    reportModel(Twine("the model's IR version ") + Twine(model.ir_version()) + " is newer than " + Twine(int(onnx::Version::IR_VERSION)) +
                ", the newest that dlc knows; export it with an older one");
  llvm::StringSet<> domains;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import()) {
    StringRef domain = canonicalDomain(opset.domain());
    if (!domains.insert(domain).second)
      reportModel(Twine("the model imports two versions of the operator set ") + quote(domain.empty() ? "ai.onnx" : domain));
    if (!domain.empty())
      continue;
    if (opset.version() > kNewestOpset)
      reportModel(Twine("the model is written in opset ") + Twine(opset.version()) + ", newer than " + Twine(kNewestOpset) +
                  ", the newest that dlc knows; export it in an older one");
    if (opset.version() < kOldestOpset)
      reportAtReader(nullptr, Twine("the model is written in opset ") + Twine(opset.version()) + ", older than " + Twine(kOldestOpset) +
                                  ", the oldest that dlc knows; convert it with onnx.version_converter");
  }
  if (domains.empty())
    reportModel("the model does not say in which opset it is written (opset_import)");
  if (model.graph().output_size() == 0)
    reportModel("the model has no output");
}

static std::string describeType(const onnx::TypeProto &type) {
  switch (type.value_case()) {
  case onnx::TypeProto::kTensorType:
    return "a tensor of " + typeName(type.tensor_type().elem_type());
  case onnx::TypeProto::kSequenceType:
    return "a sequence";
  case onnx::TypeProto::kMapType:
    return "a map";
  case onnx::TypeProto::kOptionalType:
    return "an optional";
  case onnx::TypeProto::kSparseTensorType:
    return "a sparse tensor";
  default:
    return "of no type";
  }
}

/// A constant as the caller of the module would pass it: 4-bit and 2-bit elements packed into a tensor of bytes.
static TypedAttr packed(TypedAttr constant) {
  auto type = cast<RankedTensorType>(constant.getType());
  std::optional<ConstantBytes> bytes = isSubByte(type.getElementType()) ? constantBytes(constant) : std::nullopt;
  if (!bytes)
    return constant;
  ArrayRef<char> elements = bytes->owned.empty() ? bytes->data : ArrayRef<char>(bytes->owned);
  unsigned width = type.getElementTypeBitWidth(), perByte = 8 / width;
  auto owner = std::make_shared<std::string>(llvm::divideCeil(type.getNumElements(), perByte), 0);
  for (int64_t i = 0, e = type.getNumElements(); i != e; ++i)
    (*owner)[i / perByte] |= static_cast<char>((elements[bytes->isSplat ? 0 : i] & ((1 << width) - 1)) << (i % perByte * width));
  auto byteType = RankedTensorType::get({static_cast<int64_t>(owner->size())}, IntegerType::get(type.getContext(), 8, IntegerType::Unsigned));
  return makeConstant(byteType, *owner, owner);
}

void Importer::importArguments(Frame &frame) {
  // Up to IR version 3 every initializer had to be listed as an input too; only later does that make it a default.
  bool haveDefaults = model.ir_version() >= 4;
  const GraphProto &graph = model.graph();
  Signature signature(context, options);
  signature.reserveNames(graph);
  llvm::StringSet<> seen;
  struct Argument {
    const onnx::ValueInfoProto *input;
    Type element;
    SmallVector<DimExpr> dims;
    TypedAttr initial;
  };
  std::vector<Argument> arguments;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    auto known = frame.values.find(input.name());
    bool isInitializer = known != frame.values.end();
    if (isInitializer && !haveDefaults)
      continue;
    if (input.name().empty() || !seen.insert(input.name()).second) {
      reportModel(input.name().empty() ? "an input has no name"
                                       : Twine("the input ") + quote(input.name()) + " is there twice; names of values are unique in a graph");
      continue;
    }
    Argument argument{&input, elementTypeFor(context, input.type().tensor_type().elem_type()), {}, {}};
    Binding poison;
    poison.poisoned = true;
    if (input.type().value_case() != onnx::TypeProto::kTensorType || !argument.element) {
      reportAtReader(&input.name(), Twine("the input ") + quote(input.name()) + " is " + describeType(input.type()) +
                                        ", which dlc does not support; inputs can be tensors of all types but string, complex numbers and 6-bit floats");
      poison.value = makeStandIn(builder, fileLoc, {});
      frame.values[input.name()] = poison;
      continue;
    }
    std::optional<SmallVector<DimExpr>> dims = signature.addInput(input);
    if (!dims) {
      poison.value = makeStandIn(builder, fileLoc, argument.element);
      frame.values[input.name()] = poison;
      continue;
    }
    argument.dims = *dims;
    if (isInitializer && known->second.initializer) {
      llvm::Expected<TypedAttr> initial = weights.read(*known->second.initializer, /*take=*/true);
      if (!initial) {
        reportModel(Twine("the default of input ") + quote(input.name()) + " cannot be used: " + llvm::toString(initial.takeError()));
      } else {
        auto type = cast<RankedTensorType>(initial->getType());
        if (type.getElementType() != argument.element || type.getRank() != static_cast<int64_t>(dims->size()))
          reportModel(Twine("the default of input ") + quote(input.name()) + " is of another type than the input");
        argument.initial = *initial;
      }
    }
    arguments.push_back(std::move(argument));
  }
  signature.finish();
  for (const std::string &error : signature.getErrors())
    reportModel(error);

  Block &body = function.getBody().front();
  SmallVector<Type> types;
  for (Argument &argument : arguments) {
    SmallVector<DimExpr> dims;
    for (DimExpr dim : argument.dims)
      dims.push_back(signature.substitute(dim));
    RankedTensorType type = boundaryType(dims, argument.element);
    types.push_back(type);
    Binding binding;
    binding.value = body.addArgument(type, NameLoc::get(builder.getStringAttr(printable(argument.input->name())), fileLoc));
    if (isPacked(type))
      binding.value = UnpackOp::create(builder, binding.value.getLoc(), tensorType(dims, argument.element), binding.value);
    frame.values[argument.input->name()] = binding;
  }
  function.setFunctionType(builder.getFunctionType(types, {}));
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    function.setArgAttr(i, kNameAttr, builder.getStringAttr(argument.input->name()));
    if (argument.initial)
      function.setArgAttr(i, kDefaultAttr, packed(argument.initial));
  }
  function->setAttr(kSymbolsAttr, signature.getSymbols());
}

void Importer::importResults(Frame &frame) {
  nodeLoc = fileLoc;
  nodeType.clear();
  nodePlace.clear();
  SmallVector<Value> values;
  SmallVector<Type> types;
  llvm::StringSet<> seen;
  for (const onnx::ValueInfoProto &output : model.graph().output()) {
    if (output.name().empty() || !seen.insert(output.name()).second) {
      reportModel(output.name().empty() ? Twine("an output has no name") : Twine("the output ") + quote(output.name()) + " is there twice");
      continue;
    }
    if (!lookup(frame, output.name())) {
      reportModel(Twine("nothing makes the output ") + quote(output.name()));
      continue;
    }
    NodeInfo::Input result = resolve(frame, output.name());
    if (!result.value)
      continue;
    Type element = NodeReader::elementTypeOf(result.value);
    if (isSubByte(element))
      result.value = PackOp::create(builder, result.value.getLoc(), UnrankedTensorType::get(element), result.value);
    values.push_back(result.value);
    types.push_back(result.value.getType());
    if (result.poisoned || output.type().value_case() == onnx::TypeProto::VALUE_NOT_SET)
      continue;
    if (output.type().value_case() != onnx::TypeProto::kTensorType ||
        (output.type().tensor_type().elem_type() != onnxTypeFor(element) && output.type().tensor_type().elem_type() != 0))
      reportModel(Twine("the output ") + quote(output.name()) + " is declared as " + describeType(output.type()) + ", but is a tensor of " +
                  typeName(element));
  }
  func::ReturnOp::create(builder, fileLoc, values);
  if (!findings.empty())
    return;
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [i, output] : llvm::enumerate(model.graph().output()))
    function.setResultAttr(i, kNameAttr, builder.getStringAttr(output.name()));
}

OwningOpRef<ModuleOp> Importer::run() {
  checkModel();
  if (!findings.empty())
    return {}; // nothing that follows would mean what it says
  module = ModuleOp::create(fileLoc);
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, fileLoc, "main", builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());

  number(model.graph().node());
  indexFunctions();
  Frame frame;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import())
    frame.opsets[canonicalDomain(opset.domain())] = opset.version();
  addInitializers(model.graph(), frame);
  importArguments(frame);
  importNodes(model.graph().node(), frame);
  if (!overflown)
    importResults(frame);
  if (!findings.empty())
    return {};
  return std::move(module);
}

} // namespace dlc
