// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Session.h"
#include "../RegisterAll.h"
#include "Crash.h"
#include "dlc/Support/Format.h"
#include "dlcrt/runtime.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace dlc {

std::string subjectOf(llvm::StringRef path) { return llvm::sys::path::filename(path).str(); }

Session::Session(unsigned jobs, llvm::StringRef subjectName) : subject(subjectName) {
  setCrashSubject(subject.c_str());
  DialectRegistry registry;
  registerAllDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  if (jobs > 1) {
    pool = std::make_unique<llvm::DefaultThreadPool>(llvm::hardware_concurrency(jobs));
    context->setThreadPool(*pool);
  }
  diagnostics = std::make_unique<Diagnostics>(context.get(), subject);
}

Session::~Session() {
  diagnostics.reset();
  context.reset();
  setCrashSubject(nullptr);
}

int Session::fail(const Invocation &invocation) {
  diagnostics->print(invocation.io.err, invocation.has(OPT_verbose));
  if (diagnostics->hasErrors())
    return kExitFailed;
  invocation.io.err << fmt::format("error: {}: internal fault of dlc: it failed without a reason\n", subject)
                    << "note: please report it, with the model and the output of `dlc doctor`\n";
  return kExitFault;
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

Progress::Progress(const Invocation &invocation, CompileOptions &options, bool timing) : io(invocation.io) {
  if (timing) {
    timer.setEnabled(true);
    timer.setOutput(createOutputStrategy(DefaultTimingManager::OutputFormat::Text, io.err));
    root = timer.getRootScope();
  }
  options.onPhase = [this](Phase next) {
    phase.stop();
    phase = root.nest(phaseName(next));
    if (io.progress) {
      io.err << fmt::format("\r\033[K[{}/{}] {}", static_cast<unsigned>(next) + 1, kPhaseCount, phaseName(next));
      io.err.flush();
      drawn = true;
    }
  };
  options.onPassManager = [this](PassManager &pm) {
    pm.addInstrumentation(createCrashInstrumentation());
    if (timer.isEnabled())
      pm.enableTiming(phase);
  };
}

Progress::~Progress() {
  phase.stop();
  root.stop();
  if (drawn) {
    io.err << "\r\033[K";
    io.err.flush();
  }
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

llvm::Expected<unsigned> jobsOf(const Invocation &invocation) {
  auto jobs = invocation.number(OPT_jobs, dlcrt_pool_available_threads(), 1, 1024);
  if (!jobs)
    return jobs.takeError();
  return static_cast<unsigned>(*jobs);
}

static llvm::Error wrongDim(llvm::StringRef text) {
  return makeError("--dim takes NAME=N, NAME=MIN..MAX or NAME%N, with numbers from 0 up (a divisor from 1 up), not '{}'", text);
}

/// What was said before must be the same.
template <typename Map> static llvm::Error addOnce(Map &map, llvm::StringRef flag, llvm::StringRef name, typename Map::mapped_type value) {
  auto [entry, isNew] = map.emplace(name.str(), value);
  if (!isNew && entry->second != value)
    return makeError("{} {}: it is given twice, with different values", flag, name);
  return llvm::Error::success();
}

static llvm::Error addDim(OnnxImportOptions &options, llvm::StringRef text) {
  // A name may hold either sign, a number none.
  size_t sign = text.find_last_of("=%");
  if (sign == llvm::StringRef::npos || sign == 0)
    return wrongDim(text);
  std::string name = text.take_front(sign).str();
  llvm::StringRef value = text.drop_front(sign + 1);
  int64_t number = 0;
  if (text[sign] == '%') {
    if (value.getAsInteger(10, number) || number < 1)
      return wrongDim(text);
    return addOnce(options.divisors, "--dim", name, number);
  }
  auto [low, high] = value.split("..");
  if (value.contains("..")) {
    OnnxImportOptions::Range range;
    if (low.getAsInteger(10, range.min) || high.getAsInteger(10, range.max) || range.min < 0)
      return wrongDim(text);
    if (range.min > range.max)
      return makeError("--dim {}: the smaller number comes first", text);
    return addOnce(options.ranges, "--dim", name, range);
  }
  if (value.getAsInteger(10, number) || number < 0)
    return wrongDim(text);
  return addOnce(options.fixedDims, "--dim", name, number);
}

static llvm::Error addShape(OnnxImportOptions &options, llvm::StringRef text) {
  size_t sign = text.rfind('=');
  auto wrong = [&] { return makeError("--shape takes INPUT=1x3x224x224 with numbers from 0 up, or ? for a dim that stays, not '{}'", text); };
  if (sign == llvm::StringRef::npos || sign == 0)
    return wrong();
  std::vector<std::optional<int64_t>> dims;
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef list = text.drop_front(sign + 1);
  if (!list.empty()) // nothing: a scalar
    list.split(words, 'x');
  for (llvm::StringRef word : words) {
    int64_t dim = 0;
    if (word == "?") {
      dims.emplace_back();
      continue;
    }
    if (word.getAsInteger(10, dim) || dim < 0)
      return wrong();
    dims.emplace_back(dim);
  }
  return addOnce(options.shapes, "--shape", text.take_front(sign), std::move(dims));
}

llvm::Expected<OnnxImportOptions> importOptionsOf(const Invocation &invocation) {
  OnnxImportOptions options;
  llvm::Error errors = llvm::Error::success();
  for (const std::string &text : invocation.values(OPT_dim))
    errors = llvm::joinErrors(std::move(errors), addDim(options, text));
  for (const std::string &text : invocation.values(OPT_shape))
    errors = llvm::joinErrors(std::move(errors), addShape(options, text));
  if (errors)
    return std::move(errors);
  return options;
}

llvm::Expected<std::string> stateOf(const Invocation &invocation) {
  std::string state = invocation.value(OPT_state);
  if (invocation.has(OPT_state) && state.empty())
    return makeError("--state takes INPUT=OUTPUT,... or auto, not ''");
  return state;
}

llvm::Expected<std::vector<ModelFile>> modelsOf(const Invocation &invocation) {
  std::vector<ModelFile> models;
  for (const std::string &path : invocation.inputs)
    models.push_back({path, llvm::sys::path::stem(path).str()});
  for (const std::string &text : invocation.values(OPT_function)) {
    auto [name, path] = llvm::StringRef(text).split('=');
    if (name.empty() || path.empty())
      return makeError("--function takes NAME=FILE, not '{}'", text);
    models.push_back({path.str(), name.str()});
  }
  if (models.size() == 1 && !invocation.has(OPT_function))
    models.front().function = "main";
  for (size_t i = 0; i != models.size(); ++i)
    for (size_t j = 0; j != i; ++j)
      if (models[i].function == models[j].function)
        return makeError("two functions '{}', of {} and of {}: name them with --function NAME=FILE", models[i].function,
                         models[j].path, models[i].path);
  return models;
}

/// What of the options is about this model, where some other model may be meant: a dim or an input that it does not
/// have is left out, unless none has it.
static OnnxImportOptions optionsFor(size_t model, llvm::ArrayRef<OnnxSummary> summaries,
                                    const OnnxImportOptions &options) {
  auto hasDim = [](const OnnxSummary &summary, const std::string &name) {
    return llvm::any_of(summary.inputs,
                        [&](const OnnxSummary::Value &input) { return llvm::is_contained(input.dims, name); });
  };
  auto hasInput = [](const OnnxSummary &summary, const std::string &name) {
    return llvm::any_of(summary.inputs, [&](const OnnxSummary::Value &input) { return input.name == name; });
  };
  auto dropOthers = [&](auto &map, auto has) {
    for (auto entry = map.begin(); entry != map.end();) {
      bool isOther = !has(summaries[model], entry->first) &&
                     llvm::any_of(summaries, [&](const OnnxSummary &other) { return has(other, entry->first); });
      entry = isOther ? map.erase(entry) : std::next(entry);
    }
  };
  OnnxImportOptions own = options;
  dropOthers(own.fixedDims, hasDim);
  dropOthers(own.ranges, hasDim);
  dropOthers(own.divisors, hasDim);
  dropOthers(own.shapes, hasInput);
  return own;
}

OwningOpRef<ModuleOp> importModels(MLIRContext &context, llvm::ArrayRef<ModelFile> models,
                                   const OnnxImportOptions &options) {
  std::vector<OnnxSummary> summaries;
  bool hasOptions =
      !options.fixedDims.empty() || !options.ranges.empty() || !options.divisors.empty() || !options.shapes.empty();
  for (const ModelFile &model : models) {
    if (models.size() == 1 || !hasOptions)
      break;
    llvm::Expected<OnnxSummary> summary = summarizeOnnx(model.path);
    if (!summary)
      return emitError(UnknownLoc::get(&context)) << llvm::toString(summary.takeError()), nullptr;
    summaries.push_back(std::move(*summary));
  }
  OwningOpRef<ModuleOp> all;
  for (auto [i, model] : llvm::enumerate(models)) {
    OwningOpRef<ModuleOp> one =
        importOnnx(context, model.path, summaries.empty() ? options : optionsFor(i, summaries, options));
    if (!one)
      return {};
    for (auto function : llvm::make_early_inc_range(one->getOps<func::FuncOp>())) {
      function.setSymName(model.function);
      if (all)
        function->moveBefore(all->getBody(), all->getBody()->end());
    }
    if (!all)
      all = std::move(one);
  }
  return all;
}

llvm::Expected<std::vector<Target>> targetsOf(const Invocation &invocation) {
  std::vector<Target> targets;
  llvm::Error errors = llvm::Error::success();
  for (const std::string &text : invocation.values(OPT_target)) {
    llvm::SmallVector<llvm::StringRef> words;
    llvm::StringRef(text).split(words, ',');
    for (llvm::StringRef word : words) {
      llvm::Expected<Target> target = parseTarget(word.trim());
      if (!target)
        errors = llvm::joinErrors(std::move(errors), target.takeError());
      else if (llvm::none_of(targets, [&](const Target &other) { return other.name == target->name; }))
        targets.push_back(std::move(*target));
    }
  }
  if (errors)
    return std::move(errors);
  return targets;
}

llvm::Expected<Target> baselineTarget() {
  llvm::Expected<Target> host = parseTarget("cpu:host");
  if (!host)
    return host.takeError();
  return parseTarget(host->arch == TargetArch::X86_64 ? "cpu:x86-64-v2" : "cpu:aarch64");
}

llvm::Expected<std::vector<Target>> defaultTargets() {
  llvm::Expected<Target> host = parseTarget("cpu:host");
  if (!host)
    return host.takeError();
  std::vector<Target> targets;
  if (host->arch == TargetArch::X86_64) {
    llvm::Expected<Target> baseline = baselineTarget();
    if (!baseline)
      return baseline.takeError();
    if (baseline->name != host->name)
      targets.push_back(std::move(*baseline));
  }
  targets.push_back(std::move(*host));
  return targets;
}

std::vector<VariantOptions> variantsFor(std::vector<Target> targets) {
  SmallVector<std::pair<int, size_t>> order; // of equal ones the later wins
  for (auto [index, target] : llvm::enumerate(targets))
    order.emplace_back(llvm::popcount(target.features), index);
  llvm::sort(order);
  std::vector<VariantOptions> variants;
  for (auto [rank, entry] : llvm::enumerate(order))
    variants.push_back({targets[entry.second].name, static_cast<int32_t>(rank)});
  return variants;
}

} // namespace dlc
