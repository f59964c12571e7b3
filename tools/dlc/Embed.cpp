// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Embed.h"
#include "../Runtime.h"
#include "dlc/Plan/ObjectFile.h"
#include "dlc/Support/OutputFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace dlc {

static constexpr llvm::StringLiteral kMark = "/* Made by dlc compile";

std::string headerPathOf(llvm::StringRef output) {
  llvm::SmallString<128> path(output);
  llvm::sys::path::replace_extension(path, ".h");
  return path.str().str();
}

llvm::Error checkHeader(llvm::StringRef output) {
  if (llvm::sys::path::stem(output).empty())
    return makeError("'{}' has no name before its suffix, by which the header and its symbols could be called", output);
  std::string header = headerPathOf(output);
  if (header == output)
    return makeError("'{}' is the name of the header that goes beside the object: give the object another, such as {}.o", output,
                     output.drop_back(2));
  auto there = llvm::MemoryBuffer::getFileSlice(header, kMark.size(), 0);
  if (there && !(*there)->getBuffer().starts_with(kMark))
    return makeError("'{}' is there, and dlc did not write it: the header would replace it; give -o another name", header);
  return llvm::Error::success();
}

/// What stands in a comment: in one line, without ends of comments or beginnings.
static std::string inComment(llvm::StringRef text) {
  std::string line;
  for (char c : llvm::json::fixUTF8(text)) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '?';
    if (!line.empty() && ((line.back() == '*' && c == '/') || (line.back() == '/' && c == '*')))
      line += ' ';
    line += c;
  }
  return line;
}

/// The module's signature and variants, as lines of a comment.
static llvm::Expected<std::string> describe(llvm::ArrayRef<char> bytes) {
  RuntimeError error;
  dlcrt_module *handle = nullptr;
  if (dlcrt_status status = dlcrt_module_open_memory(bytes.data(), bytes.size(), nullptr, &handle, &error))
    return toError(status, error, "");
  ModuleHandle module(handle);
  auto info = sized<dlcrt_module_info>();
  dlcrt_module_get_info(handle, &info, nullptr);
  std::string text;
  auto line = [&](const std::string &what) { text += " * " + inComment(what) + "\n"; };
  auto dims = [](uint32_t rank, auto get) {
    std::string list;
    for (uint32_t d = 0; d < rank; ++d)
      list += (d ? ", " : "") + textOf([&](char *to, size_t size) { return get(d, to, size); });
    return "[" + list + "]";
  };
  for (uint32_t f = 0; f < info.function_count; ++f) {
    auto function = sized<dlcrt_function_info>();
    dlcrt_module_function(handle, f, &function, nullptr);
    line(fmt::format("function {}", function.name));
    for (uint32_t direction : {DLCRT_INPUT, DLCRT_OUTPUT})
      for (uint32_t i = 0; i < (direction == DLCRT_INPUT ? function.input_count : function.output_count); ++i) {
        auto value = sized<dlcrt_value_info>();
        (direction == DLCRT_INPUT ? dlcrt_module_input : dlcrt_module_output)(handle, f, i, &value, nullptr);
        std::string shape = dims(value.rank, [&](uint32_t d, char *to, size_t size) { return dlcrt_module_dim_text(handle, f, direction, i, d, to, size); });
        line(fmt::format("  {} {} {}: {}{}{}", direction == DLCRT_INPUT ? "input " : "output", i, value.name, dlcrt_dtype_name(value.dtype), shape,
                         value.flags & (DLCRT_INFO_DEFAULT | DLCRT_INFO_OPTIONAL) ? ", may stay unbound" : ""));
      }
    for (uint32_t s = 0; s < function.symbol_count; ++s) {
      auto symbol = sized<dlcrt_symbol_info>();
      dlcrt_module_symbol(handle, f, s, &symbol, nullptr);
      line(fmt::format("  dim {}: {}{}{}", symbol.name, symbol.min, symbol.max == INT64_MAX ? " or more" : fmt::format(" to {}", symbol.max),
                       symbol.divisor == 1 ? "" : fmt::format(", a multiple of {}", symbol.divisor)));
    }
  }
  for (uint32_t i = 0; i < info.state_count; ++i) {
    auto state = sized<dlcrt_state_info>();
    dlcrt_module_state(handle, i, &state, nullptr);
    line(fmt::format("state {} {}: {}{}", i, state.name, dlcrt_dtype_name(state.dtype),
                     dims(state.rank, [&](uint32_t d, char *to, size_t size) { return dlcrt_module_state_dim_text(handle, i, d, to, size); })));
  }
  std::vector<std::string> targets;
  for (uint32_t i = 0; i < info.variant_count; ++i) {
    auto variant = sized<dlcrt_variant_info>();
    dlcrt_module_variant(handle, i, &variant, nullptr);
    if (std::find(targets.begin(), targets.end(), variant.target) == targets.end())
      targets.push_back(variant.target);
  }
  line("code for " + llvm::join(targets, ", "));
  return text;
}

llvm::Expected<uint64_t> writeEmbedded(llvm::ArrayRef<char> module, llvm::StringRef output, bool isArchive, llvm::StringRef source) {
  llvm::StringRef stem = llvm::sys::path::stem(output);
  std::string name = cIdentifier(stem), guard = llvm::StringRef(name).upper() + "_MODULE_H";
  llvm::Expected<std::string> description = describe(module);
  if (!description)
    return description.takeError();
  std::string header = fmt::format("{} of {}: a module that is part of the program. Link {} and libdlcrt.a.\n"
                                   " *\n"
                                   "{}"
                                   " *\n"
                                   " *   struct dlcrt_error error = {{sizeof(error)}};\n"
                                   " *   struct dlcrt_module *module = NULL;\n"
                                   " *   dlcrt_module_open_static(&{}_module, NULL, &module, &error);\n"
                                   " */\n"
                                   "#ifndef {}\n#define {}\n\n"
                                   "#include \"dlcrt/runtime.h\"\n\n"
                                   "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n"
                                   "extern const struct dlcrt_static_module {}_module;\n"
                                   "#ifdef __cplusplus\n}}\n#endif\n"
                                   "#endif\n",
                                   kMark.str(), inComment(llvm::sys::path::filename(source)), inComment(llvm::sys::path::filename(output)), *description, name,
                                   guard, guard, name);
  llvm::Expected<llvm::SmallVector<char, 0>> object = writeObject(module, name);
  if (!object)
    return object.takeError();
  llvm::SmallVector<char, 0> bytes = std::move(*object);
  if (isArchive) {
    llvm::Expected<llvm::SmallVector<char, 0>> archive = writeArchive(bytes, (stem + ".o").str());
    if (!archive)
      return archive.takeError();
    bytes = std::move(*archive);
  }
  // Both or none, as far as that can be known before.
  llvm::Expected<OutputFile> objectFile = OutputFile::create(output);
  if (!objectFile)
    return objectFile.takeError();
  llvm::Expected<OutputFile> headerFile = OutputFile::create(headerPathOf(output));
  if (!headerFile)
    return headerFile.takeError();
  objectFile->os().write(bytes.data(), bytes.size());
  headerFile->os() << header;
  if (llvm::Error failed = objectFile->commit())
    return failed;
  if (llvm::Error failed = headerFile->commit())
    return failed;
  return bytes.size();
}

} // namespace dlc
