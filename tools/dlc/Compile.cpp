// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../RegisterAll.h"
#include "Embed.h"
#include "Session.h"
#include "dlc/Pipeline/TextFile.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Support/Format.h"
#include "dlc/Support/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <sys/resource.h>

using namespace mlir;

namespace dlc {

namespace {

enum class Kind { Module, Object, Archive, Text, Llvm, Assembly };

/// What the command line asks for.
struct Request {
  Kind kind = Kind::Module;
  std::string output; // empty or "-": stdout
  std::optional<Phase> startFrom;
  CompileOptions options;
  std::vector<ModelFile> models; // empty: of a text
  OnnxImportOptions import;
  unsigned jobs = 1;

  bool toStdout() const { return output.empty() || output == "-"; }
  /// A module that becomes part of a program.
  bool isEmbedded() const { return kind == Kind::Object || kind == Kind::Archive; }
};

/// A folder that goes with its owner.
class TemporaryFolder {
public:
  llvm::Error create() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("dlc", path))
      return makeError("cannot make a temporary folder: {}", error.message());
    return llvm::Error::success();
  }
  ~TemporaryFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  llvm::StringRef get() const { return path; }

private:
  llvm::SmallString<128> path;
};

} // namespace

static llvm::Expected<Kind> kindOf(const Invocation &invocation, llvm::StringRef output, bool stops) {
  std::string name = invocation.value(OPT_emit);
  bool fromFlag = !name.empty();
  if (!fromFlag)
    name = llvm::StringSwitch<std::string>(llvm::sys::path::extension(output))
               .Case(".dlcm", "dlcm")
               .Case(".mlir", "mlir")
               .Case(".ll", "llvm")
               .Case(".s", "asm")
               .Case(".o", "o")
               .Case(".a", "a")
               .Case(".ptx", "ptx")
               .Default(stops ? "mlir" : "dlcm");
  if (name == "mlir")
    return Kind::Text;
  if (stops)
    return makeError("--stop-after writes texts: {} cannot be made of one", fromFlag ? "--emit " + name : "a " + name + " file");
  if (name == "dlcm")
    return Kind::Module;
  if (name == "llvm")
    return Kind::Llvm;
  if (name == "asm")
    return Kind::Assembly;
  if (name == "o")
    return Kind::Object;
  if (name == "a")
    return Kind::Archive;
  if (name == "ptx")
    return makeError("output of kind '{}' is not available in this version", name);
  return makeError("--emit takes dlcm, o, a, mlir, llvm or asm, not '{}'", name);
}

/// Returns an exit code when the command line is no good.
static std::optional<int> readFlags(const Invocation &invocation, Request &request) {
  request.output = invocation.value(OPT_o);
  for (auto [flag, phase] : {std::pair(OPT_stop_after, &request.options.stopAfter), std::pair(OPT_start_from, &request.startFrom)}) {
    if (!invocation.has(flag))
      continue;
    llvm::Expected<Phase> parsed = parsePhase(invocation.value(flag));
    if (!parsed)
      return invocation.fail(parsed.takeError(), kExitUsage);
    *phase = *parsed;
  }
  if (request.startFrom && request.options.stopAfter && *request.options.stopAfter < *request.startFrom)
    return invocation.usage("--stop-after names a phase before that of --start-from");

  llvm::Expected<Kind> kind = kindOf(invocation, request.output, request.options.stopAfter.has_value());
  if (!kind)
    return invocation.fail(kind.takeError());
  request.kind = *kind;
  if (request.kind == Kind::Module && request.output.empty())
    return invocation.usage("say where the module goes: -o FILE.dlcm (or -o - for stdout)");
  if (request.isEmbedded()) {
    if (request.toStdout())
      return invocation.usage("a header goes beside the object: say where both go, -o FILE.o or -o FILE.a");
    if (llvm::Error failed = checkHeader(request.output))
      return invocation.fail(std::move(failed));
  }
  if (invocation.has(OPT_json) && request.toStdout())
    return invocation.usage("--json and the result cannot both go to stdout: give -o FILE");
  if (request.kind == Kind::Text && !request.options.stopAfter)
    request.options.stopAfter = Phase::Finish;

  if (invocation.inputs.empty() && (request.startFrom || !invocation.has(OPT_function)))
    return invocation.usage("say what to compile: dlc compile MODEL.onnx -o OUT");
  if (invocation.inputs.size() > 1 && request.startFrom && !isPerVariant(*request.startFrom))
    return invocation.usage("one text at a time: " + invocation.inputs[0] + " or " + invocation.inputs[1]);
  if (!request.startFrom) {
    llvm::Expected<std::vector<ModelFile>> models = modelsOf(invocation);
    if (!models)
      return invocation.fail(models.takeError(), kExitUsage);
    request.models = std::move(*models);
  }
  if (request.startFrom && invocation.has(OPT_function))
    return invocation.usage("--function belongs to the import, which --start-from leaves out");
  if (request.startFrom && *request.startFrom != Phase::Import && invocation.has(OPT_state))
    return invocation.usage("--state belongs to phase clean, which --start-from leaves out");
  llvm::Expected<std::string> state = stateOf(invocation);
  if (!state)
    return invocation.fail(state.takeError(), kExitUsage);
  request.options.state = std::move(*state);

  llvm::Expected<OnnxImportOptions> import = importOptionsOf(invocation);
  if (!import)
    return invocation.fail(import.takeError(), kExitUsage);
  request.import = std::move(*import);
  if (request.startFrom && (invocation.has(OPT_dim) || invocation.has(OPT_shape)))
    return invocation.usage("--dim and --shape belong to the import, which --start-from leaves out");

  request.options.fusion = !invocation.has(OPT_no_fusion);
  if (request.startFrom && *request.startFrom >= Phase::Fuse && !request.options.fusion)
    return invocation.usage("--no-fusion is about phase fuse, which --start-from leaves out");

  request.options.winograd = !invocation.has(OPT_no_winograd);
  if (request.startFrom && *request.startFrom >= Phase::Clean && !request.options.winograd)
    return invocation.usage("--no-winograd is about phase clean, which --start-from leaves out");

  llvm::Expected<unsigned> jobs = jobsOf(invocation);
  if (!jobs)
    return invocation.fail(jobs.takeError(), kExitUsage);
  request.jobs = *jobs;

  if (invocation.has(OPT_precision)) {
    llvm::Expected<Precision> precision = parsePrecision(invocation.value(OPT_precision));
    if (!precision)
      return invocation.fail(precision.takeError());
    request.options.precision.precision = *precision;
  }

  llvm::Expected<std::vector<Target>> targets = invocation.has(OPT_target) ? targetsOf(invocation) : defaultTargets();
  if (!targets)
    return invocation.fail(targets.takeError());
  if (request.isEmbedded() && !(request.startFrom && isPerVariant(*request.startFrom)))
    for (const Target &target : *targets)
      if (target.arch != targets->front().arch)
        return invocation.fail(makeError("an object holds code for one architecture, and {} and {} are two: make one object for each",
                                         targets->front().name, target.name));
  request.options.variants = variantsFor(std::move(*targets));
  request.options.codegen.jobs = request.jobs;
  request.options.evaluator = &constantEvaluator();
  request.options.dumpDir = invocation.value(OPT_dump_dir);
  return std::nullopt;
}

/// Everything but the output.
static FailureOr<Compiled> build(const Invocation &invocation, Session &session, const Request &request) {
  MLIRContext &context = session.getContext();
  if (!request.startFrom) {
    return compile(
        context, [&](MLIRContext &into) { return importModels(into, request.models, request.import); }, allBackends(),
        request.options);
  }
  context.loadAllAvailableDialects();
  SmallVector<OwningOpRef<ModuleOp>> programs;
  for (const std::string &path : invocation.inputs) {
    llvm::Expected<OwningOpRef<ModuleOp>> program = readText(context, path);
    if (!program) {
      session.getDiagnostics().error(program.takeError());
      return failure();
    }
    programs.push_back(std::move(*program));
  }
  for (auto [path, program] : llvm::zip_equal(invocation.inputs, programs)) {
    bool variant = (*program)->hasAttr(plan::kTargetAttr);
    if (variant != isPerVariant(*request.startFrom)) {
      session.getDiagnostics().error(fmt::format("'{}' is the text of {}; the text after phase {} is {}", path,
                                                 variant ? "one variant" : "a program before it is split into variants",
                                                 phaseName(*request.startFrom), variant ? "not" : "that of one variant"));
      return failure();
    }
  }
  return continueCompile(context, *request.startFrom, Program(programs), allBackends(), request.options);
}

static llvm::Error writeBytes(const Invocation &invocation, const Request &request, llvm::ArrayRef<char> bytes) {
  if (request.toStdout()) {
    invocation.io.out.write(bytes.data(), bytes.size());
    return llvm::Error::success();
  }
  llvm::Expected<OutputFile> file = OutputFile::create(request.output);
  if (!file)
    return file.takeError();
  file->os().write(bytes.data(), bytes.size());
  return file->commit();
}

/// The text, or one for each variant. Where the command line asks for one variant, its text is called OUT itself.
static llvm::Error writeTextsOf(const Invocation &invocation, const Request &request, Compiled &compiled, std::vector<std::string> &written) {
  SmallVector<ModuleOp> programs = compiled.program->getPrograms();
  if (request.toStdout()) {
    for (auto [index, program] : llvm::enumerate(programs)) {
      if (index != 0)
        invocation.io.out << "// -----\n";
      printText(program, *request.options.stopAfter, /*weights=*/"", invocation.io.out);
    }
    return llvm::Error::success();
  }
  llvm::Expected<std::vector<std::string>> paths = writeTexts(request.output, *request.options.stopAfter, programs,
                                                                 /*exactly=*/request.startFrom || invocation.has(OPT_target));
  if (!paths)
    return paths.takeError();
  written = std::move(*paths);
  return llvm::Error::success();
}

/// What the backends left in the folder: the files with this suffix, in the order of their names.
static llvm::Expected<std::string> gather(llvm::StringRef folder, llvm::StringRef suffix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator at(folder, error), end; at != end && !error; at.increment(error))
    if (llvm::StringRef(at->path()).ends_with(suffix))
      paths.push_back(at->path());
  llvm::sort(paths);
  std::string text;
  for (const std::string &path : paths) {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!buffer)
      return makeError("cannot read '{}': {}", path, buffer.getError().message());
    llvm::StringRef name = llvm::StringRef(path).drop_front(folder.size()).ltrim('/');
    text += fmt::format("{} --- {}\n{}", suffix == ".ll" ? ";" : "#", name, (*buffer)->getBuffer());
  }
  if (paths.empty())
    return makeError("the backends of these targets give no {} text", suffix == ".ll" ? "LLVM" : "assembly");
  return text;
}

int runCompile(const Invocation &invocation) {
  auto begin = std::chrono::steady_clock::now();
  Request request;
  if (std::optional<int> exit = readFlags(invocation, request))
    return *exit;

  TemporaryFolder folder;
  if (request.kind == Kind::Llvm || request.kind == Kind::Assembly) {
    request.options.stopAfter = Phase::Codegen;
    if (llvm::Error failed = folder.create())
      return invocation.fail(std::move(failed));
    request.options.codegen.dumpDir = folder.get().str();
  }

  Session session(request.jobs, subjectOf(request.startFrom ? invocation.inputs.front() : request.models.front().path));
  if (invocation.has(OPT_verbose) && !request.startFrom)
    for (const VariantOptions &variant : request.options.variants)
      invocation.io.err << "variant " << variant.target << '\n';
  FailureOr<Compiled> compiled = failure();
  {
    Progress progress(invocation, request.options, invocation.has(OPT_timing));
    compiled = build(invocation, session, request);
  }
  if (failed(compiled))
    return session.fail(invocation);

  std::vector<std::string> written;
  llvm::Error failed = llvm::Error::success();
  uint64_t outputBytes = compiled->bytes.size();
  if (request.kind == Kind::Module) {
    failed = writeBytes(invocation, request, compiled->bytes);
  } else if (request.isEmbedded()) {
    llvm::Expected<uint64_t> bytes =
        writeEmbedded(compiled->bytes, request.output, request.kind == Kind::Archive, request.startFrom ? invocation.inputs.front() : request.models.front().path);
    if (bytes)
      outputBytes = *bytes;
    else
      failed = bytes.takeError();
  } else if (request.kind == Kind::Text) {
    failed = writeTextsOf(invocation, request, *compiled, written);
  } else {
    llvm::Expected<std::string> text = gather(folder.get(), request.kind == Kind::Llvm ? ".ll" : ".s");
    failed = text ? writeBytes(invocation, request, *text) : text.takeError();
  }
  if (failed) {
    session.getDiagnostics().error(std::move(failed));
    return session.fail(invocation);
  }
  session.getDiagnostics().print(invocation.io.err, invocation.has(OPT_verbose)); // warnings

  if (invocation.has(OPT_json)) {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    llvm::json::OStream json(invocation.io.out);
    json.object([&] {
      json.attribute("output", llvm::json::fixUTF8(request.output));
      if (request.isEmbedded())
        json.attribute("header", llvm::json::fixUTF8(headerPathOf(request.output)));
      if (!written.empty())
        json.attributeArray("texts", [&] {
          for (const std::string &path : written)
            json.value(llvm::json::fixUTF8(path));
        });
      json.attribute("bytes", static_cast<int64_t>(outputBytes));
      json.attribute("seconds", seconds.count());
      json.attribute("peak_rss_bytes", static_cast<int64_t>(usage.ru_maxrss) * 1024);
      json.attribute("kernels", compiled->kernels);
      json.attributeArray("targets", [&] {
        for (ModuleOp program : compiled->program->getPrograms())
          if (auto target = program->getAttrOfType<StringAttr>(plan::kTargetAttr))
            json.value(target.getValue());
      });
      json.attributeArray("phases", [&] {
        for (const PhaseTime &time : compiled->phases)
          json.object([&] {
            json.attribute("name", phaseName(time.phase));
            json.attribute("seconds", time.seconds);
          });
      });
    });
    invocation.io.out << '\n';
  }
  return kExitOk;
}

} // namespace dlc
