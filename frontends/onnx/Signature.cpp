// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The dimensions of the model's inputs: which are named, which are the same, and what the caller promised about them.

#include "ElementType.h"
#include "Importer.h"
#include "dlc/Support/Format.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dlc {

bool Signature::isAnonymous(StringRef name) {
  return name.empty() || name == "?" || name == "-1" || name == "None" || name.starts_with("unk__") || name.contains("DynamicDimension.");
}

/// The name as C would take it.
static std::string identifier(StringRef name) {
  std::string text;
  for (char c : name)
    text += llvm::isAlnum(c) ? c : '_';
  if (text.empty() || llvm::isDigit(text.front()))
    text.insert(0, "_");
  return text;
}

void Signature::reserveNames(const onnx::GraphProto &graph) {
  for (const onnx::ValueInfoProto &input : graph.input())
    for (const auto &dim : input.type().tensor_type().shape().dim())
      if (!isAnonymous(dim.dim_param()))
        taken[dim.dim_param()] = true;
}

std::string Signature::inventName(StringRef input, unsigned dim) {
  std::string base = identifier(input) + "_d" + std::to_string(dim), name = base;
  for (unsigned i = 1; taken.count(name); ++i)
    name = base + "_" + std::to_string(i);
  taken[name] = true;
  return name;
}

DimExpr Signature::symbol(StringRef name, bool anonymous) {
  if (symbolNumbers.try_emplace(name, symbols.size()).second)
    symbols.push_back({name.str(), anonymous, std::nullopt, ""});
  return symbolDim(context, name);
}

/// What the caller's --dim says a name is; --dim NAME=4..4 is a number too.
static std::optional<int64_t> fixedByOption(const OnnxImportOptions &options, StringRef name) {
  if (auto it = options.fixedDims.find(name.str()); it != options.fixedDims.end())
    return it->second;
  if (auto it = options.ranges.find(name.str()); it != options.ranges.end() && it->second.min == it->second.max)
    return it->second.min;
  return std::nullopt;
}

/// --shape gives a number to a dimension with a name: it has that number everywhere.
bool Signature::fix(StringRef name, int64_t value, StringRef input) {
  Symbol &known = symbols[symbolNumbers[name]];
  std::optional<int64_t> before = known.fixed ? known.fixed : fixedByOption(options, name);
  if (before && *before != value) {
    errors.push_back(fmt::format("--shape {} makes dimension {} {}, but {} makes it {}", printable(input), quote(name), value,
                                 known.fixed ? "--shape " + known.fixedBy : "--dim", *before));
    return false;
  }
  known.fixed = value;
  known.fixedBy = printable(input);
  return true;
}

std::optional<SmallVector<DimExpr>> Signature::addInput(const onnx::ValueInfoProto &input) {
  StringRef name = input.name();
  inputs.push_back(name.str());
  const onnx::TypeProto_Tensor &type = input.type().tensor_type();
  const std::vector<std::optional<int64_t>> *given = nullptr;
  if (auto it = options.shapes.find(name.str()); it != options.shapes.end())
    given = &it->second;

  if (!type.has_shape() && !given) {
    errors.push_back(fmt::format("the model does not say how many dimensions its input {} has; say so with --shape {}=1x3x224x224 (`?` for a "
                                 "dimension that varies)",
                                 quote(name), printable(name)));
    return std::nullopt;
  }
  if (type.has_shape() && given && type.shape().dim_size() != static_cast<int>(given->size())) {
    errors.push_back(fmt::format("--shape gives {} dimensions to input {}, which has {}", given->size(), quote(name), type.shape().dim_size()));
    return std::nullopt;
  }

  SmallVector<DimExpr> dims;
  unsigned rank = given ? given->size() : type.shape().dim_size();
  for (unsigned i = 0; i < rank; ++i) {
    std::optional<int64_t> wanted = given ? (*given)[i] : std::nullopt;
    if (wanted && *wanted < 0) {
      errors.push_back(fmt::format("--shape gives input {} the dimension {}", quote(name), *wanted));
      return std::nullopt;
    }
    std::optional<int64_t> declared;
    std::string symbolName;
    if (type.has_shape()) {
      const auto &dim = type.shape().dim(i);
      if (dim.has_dim_value() && dim.dim_value() != -1)
        declared = dim.dim_value();
      else if (dim.has_dim_param() && !isAnonymous(dim.dim_param()))
        symbolName = dim.dim_param();
    }
    if (declared) {
      if (*declared < 0) {
        errors.push_back(fmt::format("dimension {} of input {} is {}", i, quote(name), *declared));
        return std::nullopt;
      }
      if (wanted && *wanted != *declared) {
        errors.push_back(fmt::format("--shape makes dimension {} of input {} {}, but the model says {}", i, quote(name), *wanted, *declared));
        return std::nullopt;
      }
      dims.push_back(constantDim(context, *declared));
      continue;
    }
    bool anonymous = symbolName.empty();
    if (anonymous)
      symbolName = inventName(name, i);
    DimExpr dim = symbol(symbolName, anonymous);
    if (wanted && !fix(symbolName, *wanted, name))
      return std::nullopt;
    dims.push_back(dim);
  }
  return dims;
}

void Signature::checkPromises() {
  SmallVector<StringRef> names;
  for (const Symbol &symbol : symbols)
    names.push_back(symbol.name);
  auto unknown = [&](StringRef name) {
    if (symbolNumbers.count(name))
      return false;
    std::string known;
    for (StringRef each : names)
      known += (known.empty() ? "" : ", ") + printable(each);
    errors.push_back(fmt::format("--dim names {}, which is no dimension of this model; {}", quote(name),
                                 known.empty() ? "all its dimensions are numbers" : "it has " + known));
    return true;
  };
  for (const auto &[name, value] : options.fixedDims)
    if (!unknown(name) && value < 0)
      errors.push_back(fmt::format("--dim {}={}: a dimension is not negative", printable(name), value));
  for (const auto &[name, range] : options.ranges)
    if (!unknown(name) && (range.min < 0 || range.min > range.max))
      errors.push_back(fmt::format("--dim {}={}..{}: no dimension lies in this range", printable(name), range.min, range.max));
  for (const auto &[name, divisor] : options.divisors)
    if (!unknown(name) && divisor < 1)
      errors.push_back(fmt::format("--dim {}%{}: a divisor is at least 1", printable(name), divisor));
  for (const auto &[name, dims] : options.shapes)
    if (!llvm::is_contained(inputs, name)) {
      std::string known;
      for (const std::string &each : inputs)
        known += (known.empty() ? "" : ", ") + printable(each);
      errors.push_back(fmt::format("--shape names {}, which is no input of this model; it has {}", quote(name), known));
    }
}

void Signature::finish() {
  checkPromises();
  if (!errors.empty())
    return;
  for (Symbol &symbol : symbols) {
    if (!symbol.fixed)
      symbol.fixed = fixedByOption(options, symbol.name);
    if (!symbol.fixed)
      continue;
    auto range = options.ranges.find(symbol.name);
    if (range != options.ranges.end() && (*symbol.fixed < range->second.min || *symbol.fixed > range->second.max))
      errors.push_back(fmt::format("dimension {} is fixed at {}, outside of the range {}..{} promised for it", quote(symbol.name), *symbol.fixed,
                                   range->second.min, range->second.max));
    auto divisor = options.divisors.find(symbol.name);
    if (divisor != options.divisors.end() && *symbol.fixed % divisor->second != 0)
      errors.push_back(fmt::format("dimension {} is fixed at {}, no multiple of the {} promised for it", quote(symbol.name), *symbol.fixed,
                                   divisor->second));
  }
}

DimExpr Signature::substitute(DimExpr dim) const {
  return substituteDims(dim, [&](StringRef name) -> DimExpr {
    auto it = symbolNumbers.find(name);
    if (it == symbolNumbers.end() || !symbols[it->second].fixed)
      return {};
    return constantDim(context, *symbols[it->second].fixed);
  });
}

ArrayAttr Signature::getSymbols() const {
  SmallVector<Attribute> infos;
  for (const Symbol &symbol : symbols) {
    if (symbol.fixed)
      continue;
    OnnxImportOptions::Range range;
    if (auto it = options.ranges.find(symbol.name); it != options.ranges.end())
      range = it->second;
    int64_t divisor = 1;
    if (auto it = options.divisors.find(symbol.name); it != options.divisors.end())
      divisor = it->second;
    infos.push_back(SymbolInfoAttr::get(context, symbol.name, range.min, range.max, divisor, symbol.anonymous));
  }
  return ArrayAttr::get(context, infos);
}

} // namespace dlc
