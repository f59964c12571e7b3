// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What is in a file. First all is gathered in one JSON value, so that --json and the text say the same.

#include "../RegisterAll.h"
#include "../Runtime.h"
#include "Inputs.h"
#include "Session.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Plan/Serialize.h"
#include "dlc/Support/NodeLocation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
namespace json = llvm::json;

namespace dlc {

static json::Value text(llvm::StringRef value) { return json::fixUTF8(value); }
static json::Value number(uint64_t value) { return static_cast<int64_t>(value); }

//===----------------------------------------------------------------------===//
// Modules: what the runtime sees
//===----------------------------------------------------------------------===//

namespace {

class ModuleReport {
public:
  /// `only`: the function that is shown; empty: all. `dims` says for which dims the arena is measured.
  ModuleReport(dlcrt_module *module, std::string subject, std::string only, const OnnxImportOptions &dims)
      : module(module), subject(std::move(subject)), only(std::move(only)), dims(dims) {}

  llvm::Expected<json::Object> make(MLIRContext &context, llvm::ArrayRef<char> bytes);

private:
  llvm::Expected<json::Array> states(uint32_t count);
  llvm::Expected<json::Array> values(uint32_t function, uint32_t direction, uint32_t count);
  llvm::Expected<json::Object> function(uint32_t index);
  llvm::Expected<json::Object> variant(uint32_t index, ModuleOp plan);
  json::Array kernels(ModuleOp plan, uint64_t codeBytes);
  json::Object memory(ModuleOp plan, uint64_t fixedBytes);
  llvm::Expected<json::Object> arena(uint32_t variant, uint32_t function);
  llvm::Error check(dlcrt_status status) { return toError(status, error, ""); } // the diagnostics name the file

  dlcrt_module *module;
  std::string subject, only;
  const OnnxImportOptions &dims;
  std::map<uint32_t, OnnxImportOptions> dimsOf; // by the number of a function that is shown
  RuntimeError error;
};

} // namespace

llvm::Expected<json::Array> ModuleReport::values(uint32_t function, uint32_t direction, uint32_t count) {
  json::Array list;
  for (uint32_t i = 0; i < count; ++i) {
    auto info = sized<dlcrt_value_info>();
    auto get = direction == DLCRT_INPUT ? dlcrt_module_input : dlcrt_module_output;
    if (llvm::Error failed = check(get(module, function, i, &info, &error)))
      return std::move(failed);
    json::Array dims;
    for (uint32_t d = 0; d < info.rank; ++d)
      dims.push_back(text(textOf([&](char *to, size_t size) { return dlcrt_module_dim_text(module, function, direction, i, d, to, size); })));
    json::Object value{{"name", text(info.name)}, {"type", dlcrt_dtype_name(info.dtype)}, {"dims", std::move(dims)}};
    if (info.flags & DLCRT_INFO_OPTIONAL)
      value["optional"] = true;
    if (info.flags & DLCRT_INFO_DEFAULT)
      value["default"] = true;
    if (info.flags & DLCRT_INFO_LATE)
      value["late"] = true;
    list.push_back(std::move(value));
  }
  return list;
}

llvm::Expected<json::Object> ModuleReport::function(uint32_t index) {
  auto info = sized<dlcrt_function_info>();
  if (llvm::Error failed = check(dlcrt_module_function(module, index, &info, &error)))
    return std::move(failed);
  json::Array symbols;
  for (uint32_t i = 0; i < info.symbol_count; ++i) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (llvm::Error failed = check(dlcrt_module_symbol(module, index, i, &symbol, &error)))
      return std::move(failed);
    json::Object entry{{"name", text(symbol.name)}, {"min", symbol.min}};
    if (symbol.max != INT64_MAX)
      entry["max"] = symbol.max;
    if (symbol.divisor > 1)
      entry["multiple_of"] = symbol.divisor;
    if (symbol.anonymous)
      entry["anonymous"] = true;
    symbols.push_back(std::move(entry));
  }
  llvm::Expected<json::Array> inputs = values(index, DLCRT_INPUT, info.input_count);
  if (!inputs)
    return inputs.takeError();
  llvm::Expected<json::Array> outputs = values(index, DLCRT_OUTPUT, info.output_count);
  if (!outputs)
    return outputs.takeError();
  json::Object entry{{"name", text(info.name)},
                     {"inputs", std::move(*inputs)},
                     {"outputs", std::move(*outputs)},
                     {"symbols", std::move(symbols)}};
  if (info.state_count != 0) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (llvm::Error failed = check(dlcrt_module_symbol(module, index, info.length_symbol, &symbol, &error)))
      return std::move(failed);
    entry["states"] = number(info.state_count);
    entry["state_length"] = text(symbol.name);
  }
  return entry;
}

llvm::Expected<json::Array> ModuleReport::states(uint32_t count) {
  json::Array list;
  for (uint32_t i = 0; i < count; ++i) {
    auto info = sized<dlcrt_state_info>();
    if (llvm::Error failed = check(dlcrt_module_state(module, i, &info, &error)))
      return std::move(failed);
    json::Array dims;
    for (uint32_t d = 0; d < info.rank; ++d)
      dims.push_back(
          text(textOf([&](char *to, size_t size) { return dlcrt_module_state_dim_text(module, i, d, to, size); })));
    list.push_back(json::Object{{"name", text(info.name)},
                                {"type", dlcrt_dtype_name(info.dtype)},
                                {"dims", std::move(dims)},
                                {"axis", number(info.axis)}});
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Modules: what the plans say
//===----------------------------------------------------------------------===//

json::Array ModuleReport::kernels(ModuleOp plan, uint64_t codeBytes) {
  llvm::MapVector<llvm::StringRef, SmallVector<NodeRef>> nodes;
  llvm::StringMap<unsigned> launches;
  plan.walk([&](plan::LaunchOp launch) {
    ++launches[launch.getKernel()];
    SmallVector<NodeRef> &known = nodes[launch.getKernel()];
    for (NodeRef &node : nodesOf(launch.getLoc()))
      if (!llvm::is_contained(known, node))
        known.push_back(std::move(node));
  });
  SmallVector<uint64_t> entries{codeBytes};
  for (plan::KernelOp kernel : plan.getOps<plan::KernelOp>())
    if (kernel.getEntry())
      entries.push_back(*kernel.getEntry());
  llvm::sort(entries);
  json::Array list;
  for (plan::KernelOp kernel : plan.getOps<plan::KernelOp>()) {
    if (!launches.contains(kernel.getSymName())) // another function's
      continue;
    json::Object entry{{"name", text(kernel.getSymName())}, {"launches", number(launches.lookup(kernel.getSymName()))}};
    if (std::optional<uint64_t> start = kernel.getEntry())
      entry["bytes"] = number(*std::upper_bound(entries.begin(), entries.end() - 1, *start) - *start); // up to the next one
    if (kernel.getStack())
      entry["stack_bytes"] = number(*kernel.getStack());
    if (kernel.getScratch() && *kernel.getScratch() != 0)
      entry["scratch_bytes"] = number(*kernel.getScratch());
    json::Array names;
    for (const NodeRef &node : nodes.lookup(kernel.getSymName()))
      names.push_back(json::Object{{"name", text(node.name)}, {"op", text(node.opType)}});
    entry["nodes"] = std::move(names);
    list.push_back(std::move(entry));
  }
  return list;
}

json::Object ModuleReport::memory(ModuleOp plan, uint64_t fixedBytes) {
  json::Array slots;
  plan.walk([&](plan::SlotOp slot) {
    json::Object entry{{"bytes", text(toString(slot.getBytes()))}, {"device", number(slot.getDevice())}};
    if (plan::PlacementAttr place = slot.getPlacementAttr()) {
      entry["class"] = text(plan::stringifySlotClass(place.getSlotClass()));
      entry["first_stage"] = place.getFirstStage();
      entry["last_stage"] = place.getLastStage();
      if (place.getSlotClass() == plan::SlotClass::Fixed)
        entry["offset"] = place.getOffset();
    }
    slots.push_back(std::move(entry));
  });
  return json::Object{{"fixed_bytes", number(fixedBytes)}, {"slots", std::move(slots)}};
}

/// What the slots take for the dims that the command line gives; the others are as small as they may be.
llvm::Expected<json::Object> ModuleReport::arena(uint32_t variant, uint32_t function) {
  llvm::Expected<std::vector<int64_t>> symbols = chooseSymbols(module, function, dimsOf.at(function));
  if (!symbols)
    return symbols.takeError();
  json::Object used;
  for (auto [i, value] : llvm::enumerate(*symbols)) {
    auto symbol = sized<dlcrt_symbol_info>();
    if (llvm::Error failed = check(dlcrt_module_symbol(module, function, static_cast<uint32_t>(i), &symbol, &error)))
      return std::move(failed);
    used[json::fixUTF8(symbol.name)] = value;
  }
  auto info = sized<dlcrt_arena_info>();
  if (llvm::Error failed = check(dlcrt_module_variant_arena(module, variant, symbols->data(), static_cast<uint32_t>(symbols->size()), &info, &error)))
    return std::move(failed);
  return json::Object{{"dims", std::move(used)}, {"bytes", number(info.bytes)}, {"lower_bound_bytes", number(info.lower_bound_bytes)}};
}

llvm::Expected<json::Object> ModuleReport::variant(uint32_t index, ModuleOp plan) {
  auto info = sized<dlcrt_variant_info>();
  if (llvm::Error failed = check(dlcrt_module_variant(module, index, &info, &error)))
    return std::move(failed);
  auto function = sized<dlcrt_function_info>();
  if (llvm::Error failed = check(dlcrt_module_function(module, info.function, &function, &error)))
    return std::move(failed);
  json::Object entry{{"function", text(function.name)},
                     {"target", text(info.target)},
                     {"priority", info.priority},
                     {"code_bytes", number(info.code_bytes)}};
  if (llvm::Expected<Target> target = parseTarget(info.target)) {
    json::Array features;
    SmallVector<llvm::StringRef> words;
    llvm::StringRef(target->llvmFeatures).split(words, ',', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef word : words)
      features.push_back(text(word.ltrim('+')));
    entry["features"] = std::move(features);
  } else {
    llvm::consumeError(target.takeError()); // made by a compiler that knows more targets
  }
  dlcrt_status supported = dlcrt_module_variant_supported(module, index, &error);
  entry["runs_here"] = supported == DLCRT_OK;
  if (supported != DLCRT_OK)
    entry["reason"] = text(error.message);
  if (info.guarded)
    entry["guard"] = text(textOf([&](char *to, size_t size) { return dlcrt_module_variant_guard_text(module, index, to, size); }));
  entry["kernels"] = kernels(plan, info.code_bytes);
  json::Object slots = memory(plan, info.fixed_arena_bytes);
  llvm::Expected<json::Object> measured = arena(index, info.function);
  if (!measured)
    return measured.takeError();
  slots["arena"] = std::move(*measured);
  entry["memory"] = std::move(slots);
  std::string program;
  llvm::raw_string_ostream os(program);
  plan->print(os);
  entry["plan"] = text(program);
  return entry;
}

llvm::Expected<json::Object> ModuleReport::make(MLIRContext &context, llvm::ArrayRef<char> bytes) {
  auto info = sized<dlcrt_module_info>();
  if (llvm::Error failed = check(dlcrt_module_get_info(module, &info, &error)))
    return std::move(failed);
  auto plans = readModule(context, bytes);
  if (!plans)
    return plans.takeError();
  if (plans->size() != info.variant_count)
    return makeError("the module has {} variants and {} plans", info.variant_count, plans->size());
  json::Object report{{"file", text(subject)},
                      {"kind", "module"},
                      {"bytes", number(info.file_bytes)},
                      {"format", fmt::format("{}.{}", info.format_major, info.format_minor)},
                      {"producer", text(info.producer)},
                      {"weight_bytes", number(info.weight_bytes)},
                      {"code_bytes", number(info.code_bytes)}};
  json::Array functions, variants;
  std::vector<uint32_t> shown;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < info.function_count; ++i) {
    auto about = sized<dlcrt_function_info>();
    if (llvm::Error failed = check(dlcrt_module_function(module, i, &about, &error)))
      return std::move(failed);
    names.push_back(about.name);
    if (!only.empty() && only != about.name)
      continue;
    llvm::Expected<json::Object> entry = function(i);
    if (!entry)
      return entry.takeError();
    functions.push_back(std::move(*entry));
    shown.push_back(i);
  }
  if (functions.empty())
    return makeError("no function '{}'; there are: '{}'", only, fmt::join(names, "', '"));
  llvm::Expected<std::vector<OnnxImportOptions>> own = dimsOfFunctions(module, shown, dims);
  if (!own)
    return own.takeError();
  for (auto [function, options] : llvm::zip_equal(shown, *own))
    dimsOf.emplace(function, std::move(options));
  if (info.state_count != 0) {
    llvm::Expected<json::Array> list = states(info.state_count);
    if (!list)
      return list.takeError();
    report["states"] = std::move(*list);
  }
  for (uint32_t i = 0; i < info.variant_count; ++i) {
    auto about = sized<dlcrt_variant_info>();
    auto own = sized<dlcrt_function_info>();
    if (llvm::Error failed = check(dlcrt_module_variant(module, i, &about, &error)))
      return std::move(failed);
    if (llvm::Error failed = check(dlcrt_module_function(module, about.function, &own, &error)))
      return std::move(failed);
    if (!only.empty() && only != own.name)
      continue;
    llvm::Expected<json::Object> entry = variant(i, *(*plans)[i]);
    if (!entry)
      return entry.takeError();
    variants.push_back(std::move(*entry));
  }
  report["functions"] = std::move(functions);
  report["variants"] = std::move(variants);
  return report;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static json::Array valuesOf(llvm::ArrayRef<OnnxSummary::Value> values) {
  json::Array list;
  for (const OnnxSummary::Value &value : values) {
    json::Object entry{{"name", text(value.name)}, {"type", text(value.type)}};
    if (value.ranked) {
      json::Array dims;
      for (const std::string &dim : value.dims)
        dims.push_back(text(dim));
      entry["dims"] = std::move(dims);
    }
    if (value.hasDefault)
      entry["default"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

static json::Object modelReport(const OnnxSummary &summary, llvm::StringRef subject) {
  json::Object opsets, ops;
  for (const auto &[domain, version] : summary.opsets)
    opsets[json::fixUTF8(domain)] = version;
  for (const auto &[op, count] : summary.ops)
    ops[json::fixUTF8(op)] = number(count);
  json::Array problems;
  for (const OnnxSummary::Problem &problem : summary.problems)
    problems.push_back(json::Object{{"node", text(problem.node)}, {"op", text(problem.opType)}, {"reason", text(problem.reason)}});
  return json::Object{{"file", text(subject)},
                      {"kind", "model"},
                      {"ir_version", summary.irVersion},
                      {"producer", text(summary.producer)},
                      {"opsets", std::move(opsets)},
                      {"inputs", valuesOf(summary.inputs)},
                      {"outputs", valuesOf(summary.outputs)},
                      {"nodes", number(summary.nodes)},
                      {"functions", number(summary.functions)},
                      {"weights", number(summary.weights)},
                      {"weight_bytes", number(summary.weightBytes)},
                      {"ops", std::move(ops)},
                      {"compiles", summary.problems.empty()},
                      {"problems", std::move(problems)}};
}

//===----------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------===//

static std::string stringOf(const json::Object &object, llvm::StringRef key) { return object.getString(key).value_or("").str(); }
static uint64_t numberOf(const json::Object &object, llvm::StringRef key) { return static_cast<uint64_t>(object.getInteger(key).value_or(0)); }
static const json::Array &listOf(const json::Object &object, llvm::StringRef key) {
  static const json::Array none;
  const json::Array *list = object.getArray(key);
  return list ? *list : none;
}
static std::string join(const json::Array &list, llvm::StringRef separator) {
  std::string all;
  for (const json::Value &value : list)
    all += (all.empty() ? "" : separator.str()) + value.getAsString().value_or("").str();
  return all;
}

static void printValues(const json::Array &values, llvm::StringRef what, llvm::raw_ostream &os) {
  for (const json::Value &value : values) {
    const json::Object &v = *value.getAsObject();
    std::string dims = v.get("dims") ? fmt::format("[{}]", join(listOf(v, "dims"), ", ")) : "[unknown rank]";
    os << fmt::format("  {} {}: {}{}{}{}\n", what, stringOf(v, "name"), stringOf(v, "type"), dims,
                      v.get("default") ? ", has a default" : "", v.get("optional") && !v.get("default") ? ", optional" : "");
  }
}

/// Each node once, those that read the same with their number.
static std::string nodesText(const json::Array &nodes) {
  std::vector<std::pair<std::string, size_t>> counts; // in the order of the nodes
  llvm::StringMap<size_t> places;
  for (const json::Value &value : nodes) {
    const json::Object &node = *value.getAsObject();
    std::string name = stringOf(node, "name"), op = stringOf(node, "op");
    std::string reads = name.empty() ? op : fmt::format("'{}' ({})", name, op);
    auto [place, isNew] = places.try_emplace(reads, counts.size());
    if (isNew)
      counts.emplace_back(reads, 0);
    ++counts[place->second].second;
  }
  std::string all;
  for (const auto &[node, count] : counts)
    all += fmt::format("{}{}{}", all.empty() ? "" : ", ", node, count == 1 ? "" : fmt::format(" x{}", count));
  return all;
}

static void printModule(const json::Object &report, llvm::raw_ostream &os) {
  os << fmt::format("module {}: {}, format {}, made by {}\n", stringOf(report, "file"), formatBytes(numberOf(report, "bytes")),
                    stringOf(report, "format"), stringOf(report, "producer"));
  os << fmt::format("weights {}, code {}\n", formatBytes(numberOf(report, "weight_bytes")), formatBytes(numberOf(report, "code_bytes")));
  for (const json::Value &value : listOf(report, "functions")) {
    const json::Object &function = *value.getAsObject();
    os << fmt::format("function {}\n", stringOf(function, "name"));
    printValues(listOf(function, "inputs"), "input ", os);
    printValues(listOf(function, "outputs"), "output", os);
    if (function.get("states"))
      os << fmt::format("  works on {} state{}, of length '{}'\n", numberOf(function, "states"),
                        numberOf(function, "states") == 1 ? "" : "s", stringOf(function, "state_length"));
    for (const json::Value &entry : listOf(function, "symbols")) {
      const json::Object &symbol = *entry.getAsObject();
      std::string line = fmt::format("  symbol {}: {}..", stringOf(symbol, "name"), numberOf(symbol, "min"));
      if (symbol.get("max"))
        line += fmt::format("{}", numberOf(symbol, "max"));
      if (symbol.get("multiple_of"))
        line += fmt::format(", a multiple of {}", numberOf(symbol, "multiple_of"));
      os << line << (symbol.get("anonymous") ? ", anonymous\n" : "\n");
    }
  }
  for (const json::Value &value : listOf(report, "states")) {
    const json::Object &state = *value.getAsObject();
    os << fmt::format("state {}: {}[{}], grows along axis {}\n", stringOf(state, "name"), stringOf(state, "type"),
                      join(listOf(state, "dims"), ", "), numberOf(state, "axis"));
  }
  for (const json::Value &value : listOf(report, "variants")) {
    const json::Object &variant = *value.getAsObject();
    const json::Object &memory = *variant.getObject("memory");
    std::string function =
        listOf(report, "functions").size() > 1 ? fmt::format(" of function {}", stringOf(variant, "function")) : "";
    os << fmt::format("variant {}{}: priority {}, {}\n", stringOf(variant, "target"), function,
                      variant.getInteger("priority").value_or(0),
                      variant.getBoolean("runs_here").value_or(false) ? "runs here"
                                                                      : "not here: " + stringOf(variant, "reason"));
    os << fmt::format("  needs {}\n", join(listOf(variant, "features"), " "));
    if (variant.get("guard"))
      os << fmt::format("  serves {}\n", stringOf(variant, "guard"));
    os << fmt::format("  code {}, {} kernels\n", formatBytes(numberOf(variant, "code_bytes")), listOf(variant, "kernels").size());
    for (const json::Value &entry : listOf(variant, "kernels")) {
      const json::Object &kernel = *entry.getAsObject();
      std::string nodes = nodesText(listOf(kernel, "nodes"));
      os << fmt::format("    {}: {} B, stack {} B{}{}\n", stringOf(kernel, "name"), numberOf(kernel, "bytes"), numberOf(kernel, "stack_bytes"),
                        kernel.get("scratch_bytes") ? fmt::format(", scratch {} B", numberOf(kernel, "scratch_bytes")) : "",
                        nodes.empty() ? "" : ": " + nodes);
    }
    os << fmt::format("  memory: {} at fixed places, {} slots\n", formatBytes(numberOf(memory, "fixed_bytes")), listOf(memory, "slots").size());
    const json::Object &arena = *memory.getObject("arena");
    std::string dims;
    for (const auto &[name, value] : *arena.getObject("dims"))
      dims += fmt::format("{}{}={}", dims.empty() ? " for " : ", ", llvm::StringRef(name), value.getAsInteger().value_or(0));
    uint64_t bytes = numberOf(arena, "bytes"), least = numberOf(arena, "lower_bound_bytes");
    os << fmt::format("  arena{}: {}, at least {}{}\n", dims, formatBytes(bytes), formatBytes(least),
                      least == 0 ? "" : fmt::format(" ({:.3f} times that)", static_cast<double>(bytes) / static_cast<double>(least)));
    for (const json::Value &entry : listOf(memory, "slots")) {
      const json::Object &slot = *entry.getAsObject();
      os << fmt::format("    {} slot of {} bytes, stages {} to {}{}\n", stringOf(slot, "class"), stringOf(slot, "bytes"),
                        numberOf(slot, "first_stage"), numberOf(slot, "last_stage"),
                        slot.get("offset") ? fmt::format(", at {}", numberOf(slot, "offset")) : "");
    }
    os << "  plan:\n" << stringOf(variant, "plan") << '\n';
  }
  if (report.get("verified"))
    os << "constants: all hashes are right\n";
}

static void printModel(const json::Object &report, llvm::raw_ostream &os) {
  os << fmt::format("model {}: ONNX IR version {}, made by {}\n", stringOf(report, "file"), numberOf(report, "ir_version"),
                    stringOf(report, "producer").empty() ? "an unnamed tool" : stringOf(report, "producer"));
  SmallVector<std::pair<std::string, int64_t>> opsets;
  for (const auto &[domain, version] : *report.getObject("opsets"))
    opsets.emplace_back(llvm::StringRef(domain).str(), version.getAsInteger().value_or(0));
  llvm::sort(opsets);
  for (const auto &[domain, version] : opsets)
    os << fmt::format("opset {} {}\n", domain, version);
  printValues(listOf(report, "inputs"), "input ", os);
  printValues(listOf(report, "outputs"), "output", os);
  os << fmt::format("{} nodes, {} weights of {}\n", numberOf(report, "nodes"), numberOf(report, "weights"), formatBytes(numberOf(report, "weight_bytes")));
  SmallVector<std::pair<int64_t, std::string>> ops;
  for (const auto &[op, count] : *report.getObject("ops"))
    ops.emplace_back(-count.getAsInteger().value_or(0), llvm::StringRef(op).str());
  llvm::sort(ops);
  for (const auto &[count, op] : ops)
    os << fmt::format("  {:>6} {}\n", -count, op);
  const json::Array &problems = listOf(report, "problems");
  if (problems.empty()) {
    os << "nothing is known that would keep it from being compiled\n";
    return;
  }
  os << fmt::format("cannot be compiled, {} problem{}:\n", problems.size(), problems.size() == 1 ? "" : "s");
  for (const json::Value &value : problems) {
    const json::Object &problem = *value.getAsObject();
    os << fmt::format("  {}{}{}\n", stringOf(problem, "node"), stringOf(problem, "node").empty() ? "" : ": ", stringOf(problem, "reason"));
  }
}

//===----------------------------------------------------------------------===//
// The verb
//===----------------------------------------------------------------------===//

static int inspectModule(const Invocation &invocation, const std::string &path) {
  llvm::Expected<OnnxImportOptions> dims = importOptionsOf(invocation);
  if (!dims)
    return invocation.fail(dims.takeError(), kExitUsage);
  if (!dims->ranges.empty() || !dims->divisors.empty())
    return invocation.usage("--dim takes NAME=N here: the dims for which memory is reported");
  std::string subject = subjectOf(path);
  RuntimeError error;
  auto options = sized<dlcrt_module_options>();
  options.name = subject.c_str();
  dlcrt_module *opened = nullptr;
  if (dlcrt_status status = dlcrt_module_open_file(path.c_str(), &options, &opened, &error))
    return invocation.fail(toError(status, error, subject));
  ModuleHandle module(opened);
  if (invocation.has(OPT_verify))
    if (dlcrt_status status = dlcrt_module_verify(opened, &error))
      return invocation.fail(toError(status, error, subject));

  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return invocation.fail(makeError("cannot read '{}': {}", path, buffer.getError().message()));
  Session session(/*jobs=*/1, subject);
  session.getContext().loadAllAvailableDialects();
  llvm::Expected<json::Object> report =
      ModuleReport(opened, subject, invocation.value(OPT_function), *dims)
          .make(session.getContext(), {(*buffer)->getBufferStart(), (*buffer)->getBufferSize()});
  if (!report) {
    session.getDiagnostics().error(report.takeError());
    return session.fail(invocation);
  }
  if (invocation.has(OPT_verify))
    (*report)["verified"] = true;
  llvm::raw_ostream &os = invocation.io.out;
  if (invocation.has(OPT_json)) {
    os << llvm::formatv("{0:2}", json::Value(std::move(*report))).str() << '\n';
  } else if (invocation.has(OPT_plan)) {
    for (const json::Value &variant : listOf(*report, "variants"))
      os << stringOf(*variant.getAsObject(), "plan") << '\n';
  } else {
    printModule(*report, os);
  }
  return kExitOk;
}

static int inspectModel(const Invocation &invocation, const std::string &path) {
  std::string subject = subjectOf(path);
  llvm::Expected<OnnxSummary> summary = summarizeOnnx(path);
  if (!summary)
    return invocation.fail(summary.takeError());
  json::Object report = modelReport(*summary, subject);
  if (invocation.has(OPT_json))
    invocation.io.out << llvm::formatv("{0:2}", json::Value(std::move(report))).str() << '\n';
  else
    printModel(report, invocation.io.out);
  return kExitOk;
}

int runInspect(const Invocation &invocation) {
  if (std::optional<int> exit = refuseAllButOne(invocation, "say what to look at: dlc inspect MODEL.onnx or MODEL.dlcm"))
    return *exit;
  if (invocation.has(OPT_plan) && invocation.has(OPT_json))
    return invocation.usage("--plan is text, and --json has the plan in it: give one of them");
  const std::string &path = invocation.inputs.front();
  if (llvm::sys::path::extension(path) == ".dlcm")
    return inspectModule(invocation, path);
  if (invocation.has(OPT_verify) || invocation.has(OPT_plan) || invocation.has(OPT_function))
    return invocation.usage("--verify, --plan and --function are for modules (.dlcm)");
  if (invocation.has(OPT_dim))
    return invocation.usage("--dim is for modules (.dlcm): the dims for which memory is reported");
  return inspectModel(invocation, path);
}

} // namespace dlc
