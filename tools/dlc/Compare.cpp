// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Comparison.h"
#include "Execution.h"
#include "Session.h"
#include "TensorFiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>

namespace dlc {

/// --atol and --rtol.
static llvm::Expected<double> toleranceOf(const Invocation &invocation, OptionId flag, double otherwise) {
  if (!invocation.has(flag))
    return otherwise;
  std::string text = invocation.value(flag);
  double value = 0;
  if (!llvm::to_float(text, value) || !std::isfinite(value) || value < 0)
    return makeError("{} takes a number from 0 up, such as 1e-3, not '{}'",
                     llvm::StringRef(invocation.args.getLastArg(flag)->getSpelling()).rtrim('='), text);
  return value;
}

namespace {
/// What a run left behind.
struct Results {
  std::vector<HostTensor> outputs, states;
  std::string target;
};

/// A tensor, what it should be, and how far it is from that.
struct Compared {
  bool isState;
  const HostTensor &tensor;
  Comparison comparison;
};
} // namespace

/// Runs the model once. Prints what went wrong and returns the exit code.
static std::optional<int> runOnce(const Invocation &invocation, const ExecutionRequest &request, Results &results) {
  Execution execution;
  if (std::optional<int> exit = execution.load(invocation, request))
    return exit;
  if (llvm::Error failed = execution.createInstance(request))
    return invocation.fail(std::move(failed));
  if (llvm::Error failed = execution.bindInputs(request))
    return invocation.fail(std::move(failed));
  if (llvm::Error failed = execution.run())
    return invocation.fail(std::move(failed));
  llvm::Expected<std::string> taken = execution.getTarget();
  if (!taken)
    return invocation.fail(taken.takeError());
  results.target = std::move(*taken);
  llvm::Expected<std::vector<HostTensor>> outputs = execution.readOutputs();
  if (!outputs)
    return invocation.fail(outputs.takeError());
  results.outputs = std::move(*outputs);
  llvm::Expected<std::vector<HostTensor>> states = execution.readStates();
  if (!states)
    return invocation.fail(states.takeError());
  results.states = std::move(*states);
  return std::nullopt;
}

/// What the folder holds for each output. All problems at once.
static llvm::Expected<std::vector<HostTensor>> readReference(const std::string &folder,
                                                             llvm::ArrayRef<HostTensor> outputs) {
  std::vector<HostTensor> references;
  llvm::Error errors = llvm::Error::success();
  for (auto [i, output] : llvm::enumerate(outputs)) {
    auto tensor = readTensor(folder, "output", static_cast<unsigned>(i), output.name, output.dtype);
    if (!tensor)
      errors = llvm::joinErrors(std::move(errors), tensor.takeError());
    else if (!*tensor)
      errors = llvm::joinErrors(std::move(errors),
                                makeError("--reference {}: there is neither output_{}.pb nor {}.npy for output '{}'",
                                          folder, i, fileNameOf(output.name), output.name));
    else
      references.push_back(std::move(**tensor));
  }
  if (errors)
    return std::move(errors);
  return references;
}

/// The indices of an element, from its number in row-major order.
static std::string positionOf(const HostTensor &tensor, size_t number) {
  std::vector<size_t> indices(tensor.dims.size());
  for (size_t d = indices.size(); d-- > 0;) {
    auto size = static_cast<size_t>(tensor.dims[d]);
    indices[d] = number % size;
    number /= size;
  }
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

/// JSON knows only finite numbers.
static llvm::json::Value finite(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

int runCompare(const Invocation &invocation) {
  if (std::optional<int> exit = refuseAllButOne(invocation, "say which model to compare: dlc compare MODEL.onnx"))
    return *exit;
  Tolerance tolerance;
  for (auto [flag, value] : {std::pair(OPT_atol, &tolerance.absolute), std::pair(OPT_rtol, &tolerance.relative)}) {
    llvm::Expected<double> given = toleranceOf(invocation, flag, *value);
    if (!given)
      return invocation.fail(given.takeError(), kExitUsage);
    *value = *given;
  }
  std::string folder = invocation.value(OPT_reference);
  bool isComputed = folder.empty() || folder == "fp32";
  if (!isComputed && !invocation.has(OPT_inputs))
    return invocation.usage(
        "the outputs in --reference DIR belong to certain inputs: give their folder with --inputs DIR");
  llvm::Expected<ExecutionRequest> request = executionRequestOf(invocation, /*defaultSeed=*/1);
  if (!request)
    return invocation.fail(request.takeError(), kExitUsage);
  if (isComputed && request->isModule)
    return invocation.usage(
        "the fp32 reference is compiled from a model, and this is a module: give the model, or --reference DIR");

  std::string subject = subjectOf(request->model);
  Results results, reference;
  if (std::optional<int> exit = runOnce(invocation, *request, results))
    return *exit;
  if (isComputed) {
    llvm::Expected<Target> baseline = baselineTarget();
    if (!baseline)
      return invocation.fail(baseline.takeError());
    ExecutionRequest plain = *request;
    plain.target = baseline->name;
    plain.fusion = false;
    plain.quiet = true;
    if (std::optional<int> exit = runOnce(invocation, plain, reference))
      return *exit;
  } else if (results.outputs.empty()) {
    return invocation.fail(makeError("{}: there is nothing to compare with --reference {}: it has no outputs, and states are compared with fp32 only",
                                     subject, folder));
  } else {
    llvm::Expected<std::vector<HostTensor>> read = readReference(folder, results.outputs);
    if (!read)
      return invocation.fail(read.takeError());
    reference.outputs = std::move(*read);
    results.states.clear();
  }

  std::vector<Compared> all;
  llvm::Error errors = llvm::Error::success();
  auto compareAll = [&](bool isState, llvm::ArrayRef<HostTensor> tensors, llvm::ArrayRef<HostTensor> expected) {
    for (auto [tensor, wanted] : llvm::zip_equal(tensors, expected)) {
      llvm::Expected<Comparison> comparison = compareTensors(tensor, wanted, tolerance);
      if (comparison)
        all.push_back({isState, tensor, *comparison});
      else
        errors =
            llvm::joinErrors(std::move(errors), makeError("{}: {}", subject, llvm::toString(comparison.takeError())));
    }
  };
  compareAll(/*isState=*/false, results.outputs, reference.outputs);
  compareAll(/*isState=*/true, results.states, reference.states);
  if (errors)
    return invocation.fail(std::move(errors));
  bool ok = llvm::all_of(all, [](const Compared &one) { return one.comparison.isOk(); });
  std::string referenceName = isComputed ? "fp32" : folder;

  llvm::raw_ostream &os = invocation.io.out;
  if (invocation.has(OPT_json)) {
    llvm::json::OStream json(os);
    json.object([&] {
      json.attribute("model", llvm::json::fixUTF8(subject));
      json.attribute("target", results.target);
      json.attribute("reference", llvm::json::fixUTF8(referenceName));
      json.attribute("atol", tolerance.absolute);
      json.attribute("rtol", tolerance.relative);
      auto list = [&](llvm::StringRef name, bool isState) {
        json.attributeArray(name, [&] {
          for (const auto &[ofState, tensor, comparison] : all)
            if (ofState == isState)
              json.object([&] {
                json.attribute("name", llvm::json::fixUTF8(tensor.name));
                json.attribute("type", typeText(tensor));
                json.attribute("max_abs", finite(comparison.maxAbs));
                json.attribute("max_rel", finite(comparison.maxRel));
                json.attribute("cosine", finite(comparison.cosine));
                json.attribute("snr_db", finite(comparison.snr));
                json.attribute("mismatches", static_cast<int64_t>(comparison.mismatches));
                json.attribute("ok", comparison.isOk());
              });
        });
      };
      list("outputs", /*isState=*/false);
      if (!results.states.empty())
        list("states", /*isState=*/true);
      json.attribute("ok", ok);
    });
    os << '\n';
    return ok ? kExitOk : kExitFailed;
  }
  os << fmt::format("{}: {} against {}\n", subject, results.target,
                    isComputed ? fmt::format("fp32 ({}, unfused)", reference.target)
                               : fmt::format("the outputs in '{}'", folder));
  for (const auto &[isState, tensor, comparison] : all) {
    os << fmt::format("{} '{}' {}: max_abs {:.3g}, max_rel {:.3g}, cosine {:.9f}, snr {:.1f} dB, {}\n",
                      isState ? "state" : "output", tensor.name, typeText(tensor), comparison.maxAbs, comparison.maxRel, comparison.cosine, comparison.snr,
                      comparison.isOk() ? "ok" : "not ok");
    if (!comparison.isOk())
      os << fmt::format("  {} of {} elements are outside of {} + {} * |reference|, first {}: {} instead of {}\n",
                        comparison.mismatches, comparison.elements, tolerance.absolute, tolerance.relative,
                        positionOf(tensor, comparison.firstMismatch), comparison.value, comparison.reference);
  }
  os << (ok ? "ok\n" : "not ok\n");
  return ok ? kExitOk : kExitFailed;
}

} // namespace dlc
