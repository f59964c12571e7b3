// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Pipeline/TextFile.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Pipeline/WeightsFile.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Support/Format.h"
#include "dlc/Support/OutputFile.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace dlc {

static constexpr llvm::StringLiteral kFirstLine = "// dlc text after phase ";
static constexpr llvm::StringLiteral kWeightsWord = "; weights ";

static StringRef stem(StringRef path) {
  path.consume_back(".mlir");
  return path;
}

std::string textPath(StringRef path, ModuleOp program) {
  auto target = program->getAttrOfType<StringAttr>(plan::kTargetAttr);
  if (!target)
    return stem(path).str() + ".mlir";
  std::string name = target.getValue().str();
  for (char &c : name)
    if (!llvm::isAlnum(c) && c != '-' && c != '_' && c != '.')
      c = '-';
  return fmt::format("{}.{}.mlir", stem(path), name);
}

std::string weightsPath(StringRef path) { return stem(path).str() + ".weights"; }

void printText(ModuleOp program, Phase phase, StringRef weights, llvm::raw_ostream &os) {
  os << kFirstLine << phaseName(phase);
  if (!weights.empty())
    os << kWeightsWord << weights;
  os << '\n';
  OpPrintingFlags flags;
  flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  program->print(os, flags);
  os << '\n';
}

llvm::Expected<std::vector<std::string>> writeTexts(StringRef path, Phase phase, ArrayRef<ModuleOp> programs, bool exactly) {
  std::set<std::string> keys;
  for (ModuleOp program : programs)
    keys.merge(weightKeysOf(program));
  std::string weights;
  if (!keys.empty()) {
    weights = weightsPath(path);
    MLIRContext *context = ModuleOp(programs.front()).getContext();
    if (llvm::Error failed = writeWeightsFile(weights, keys, context->getOrLoadDialect<DlcDialect>()->getWeights()))
      return std::move(failed);
  }
  std::vector<std::string> texts;
  for (ModuleOp program : programs) {
    texts.push_back(exactly && programs.size() == 1 ? path.str() : textPath(path, program));
    auto file = OutputFile::create(texts.back());
    if (!file)
      return file.takeError();
    printText(program, phase, llvm::sys::path::filename(weights), file->os());
    if (llvm::Error failed = file->commit())
      return std::move(failed);
  }
  return texts;
}

llvm::Expected<OwningOpRef<ModuleOp>> readText(MLIRContext &context, StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!buffer)
    return makeError("cannot read '{}': {}", path, buffer.getError().message());

  // Weights first: ops may look at them while they are verified.
  StringRef firstLine = (*buffer)->getBuffer().split('\n').first.rtrim();
  std::string weights;
  if (firstLine.starts_with(kFirstLine)) {
    StringRef named = firstLine.split(kWeightsWord).second;
    if (!named.empty()) {
      llvm::SmallString<256> file(llvm::sys::path::parent_path(path));
      llvm::sys::path::append(file, llvm::sys::path::filename(named));
      weights = file.str().str();
    }
  } else if (llvm::sys::fs::exists(weightsPath(path))) {
    weights = weightsPath(path);
  }
  if (!weights.empty())
    if (llvm::Error failed = readWeightsFile(weights, context.getOrLoadDialect<DlcDialect>()->getWeights()))
      return std::move(failed);

  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> program = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!program)
    return makeError("'{}' is not a text of this program", path);
  WeightStore &store = context.getOrLoadDialect<DlcDialect>()->getWeights();
  for (const std::string &key : weightKeysOf(*program))
    if (!store.find(key))
      return makeError("'{}' names a weight {} that {} does not hold", path, key,
                       weights.empty() ? std::string("no weights file beside it") : fmt::format("'{}'", weights));
  return program;
}

} // namespace dlc
