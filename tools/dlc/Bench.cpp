// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"
#include "Profile.h"
#include "Statistics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <chrono>
#include <cmath>
#include <sys/resource.h>

namespace dlc {

/// Runs that are measured however long they take.
static constexpr size_t kLeastRuns = 5;
static constexpr double kSeconds = 2, kWarmupSeconds = 0.5, kMostSeconds = 86400;

namespace {

using Clock = std::chrono::steady_clock;

/// All that is reported.
struct Report {
  std::string target;
  uint32_t threads = 1;
  Statistics milliseconds;
  double measuredSeconds = 0; // from the begin of the first run that counts to the end of the last
  double loadMilliseconds = 0, firstRunMilliseconds = 0;
  uint64_t arenaBytes = 0, arenaLowerBoundBytes = 0, stateBytes = 0, weightBytes = 0, peakRssBytes = 0;

  double runsPerSecond() const { return static_cast<double>(milliseconds.count) / measuredSeconds; }
};

} // namespace

/// --seconds and --warmup: seconds, also such as 0.5.
static llvm::Expected<double> secondsOf(const Invocation &invocation, OptionId flag, double otherwise) {
  if (!invocation.has(flag))
    return otherwise;
  std::string text = invocation.value(flag);
  double seconds = 0;
  if (!llvm::to_float(text, seconds) || !std::isfinite(seconds) || seconds < 0 || seconds > kMostSeconds)
    return makeError("{} takes seconds from 0 to {}, such as 0.5, not '{}'",
                     llvm::StringRef(invocation.args.getLastArg(flag)->getSpelling()).rtrim('='), kMostSeconds, text);
  return seconds;
}

static double millisecondsSince(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

static uint64_t peakRssBytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

static llvm::Expected<Report> measure(Execution &execution, double seconds, double warmupSeconds) {
  Report report;
  report.loadMilliseconds = execution.getLoadSeconds() * 1e3;
  auto begin = Clock::now();
  if (llvm::Error failed = execution.run())
    return std::move(failed);
  report.firstRunMilliseconds = millisecondsSince(begin);
  // Every run finds the state as the first one did.
  auto runAgain = [&] {
    if (llvm::Error failed = execution.rewind())
      return failed;
    return execution.run();
  };
  while (millisecondsSince(begin) < warmupSeconds * 1e3)
    if (llvm::Error failed = runAgain())
      return std::move(failed);
  report.peakRssBytes = peakRssBytes(); // now, because the list of times is not the model's memory

  std::vector<double> times;
  begin = Clock::now();
  auto end = begin;
  while (times.size() < kLeastRuns || std::chrono::duration<double>(end - begin).count() < seconds) {
    if (llvm::Error failed = execution.rewind())
      return std::move(failed);
    auto start = Clock::now();
    if (llvm::Error failed = execution.run())
      return std::move(failed);
    end = Clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(end - start).count());
  }
  report.measuredSeconds = std::chrono::duration<double>(end - begin).count();
  report.milliseconds = statisticsOf(std::move(times));

  report.threads = execution.getThreads();
  llvm::Expected<std::string> target = execution.getTarget();
  if (!target)
    return target.takeError();
  report.target = *target;
  RuntimeError error;
  auto memory = sized<dlcrt_instance_statistics>();
  if (dlcrt_status status = dlcrt_instance_get_statistics(execution.getInstance(), &memory, &error))
    return toError(status, error, execution.getSubject());
  report.arenaBytes = memory.arena_bytes;
  report.arenaLowerBoundBytes = memory.arena_lower_bound_bytes;
  report.stateBytes = memory.state_bytes;
  report.weightBytes = memory.weight_bytes;
  return report;
}

/// The element types of this version's modules are those of the model.
static constexpr llvm::StringLiteral kPrecision = "fp32";

static void printJson(const Report &report, const Profile *profile, const Execution &execution, llvm::raw_ostream &os) {
  const Statistics &times = report.milliseconds;
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("model", llvm::json::fixUTF8(execution.getSubject()));
    json.attribute("target", report.target);
    json.attribute("precision", kPrecision);
    json.attribute("threads", report.threads);
    json.attributeArray("inputs", [&] {
      for (const std::optional<HostTensor> &input : execution.getInputs().get())
        if (input)
          json.object([&] {
            json.attribute("name", llvm::json::fixUTF8(input->name));
            json.attribute("dtype", dlcrt_dtype_name(input->dtype));
            json.attributeArray("dims", [&] {
              for (int64_t dim : input->dims)
                json.value(dim);
            });
          });
    });
    json.attribute("runs", static_cast<int64_t>(times.count));
    json.attribute("min_ms", times.min);
    json.attribute("mean_ms", times.mean);
    json.attribute("median_ms", times.median);
    json.attribute("p90_ms", times.p90);
    json.attribute("p99_ms", times.p99);
    json.attribute("runs_per_second", report.runsPerSecond());
    json.attribute("load_ms", report.loadMilliseconds);
    json.attribute("first_run_ms", report.firstRunMilliseconds);
    json.attribute("arena_bytes", static_cast<int64_t>(report.arenaBytes));
    json.attribute("arena_lower_bound_bytes", static_cast<int64_t>(report.arenaLowerBoundBytes));
    json.attribute("state_bytes", static_cast<int64_t>(report.stateBytes));
    json.attribute("weight_bytes", static_cast<int64_t>(report.weightBytes));
    json.attribute("peak_rss_bytes", static_cast<int64_t>(report.peakRssBytes));
    if (profile)
      printProfile(*profile, json);
  });
  os << '\n';
}

static void printText(const Report &report, const Execution &execution, llvm::raw_ostream &os) {
  const Statistics &times = report.milliseconds;
  os << fmt::format("{}: {}, {}, {} thread{}\n", execution.getSubject(), report.target, kPrecision, report.threads,
                    report.threads == 1 ? "" : "s");
  for (const std::optional<HostTensor> &input : execution.getInputs().get())
    if (input)
      os << fmt::format("input '{}' {}[{}]\n", input->name, dlcrt_dtype_name(input->dtype), fmt::join(input->dims, ", "));
  os << fmt::format("\n{:<8} {:>10}\n", "runs", times.count);
  bool small = times.median < 0.1;
  for (auto [name, value] : {std::pair("min", times.min), {"mean", times.mean}, {"median", times.median}, {"p90", times.p90}, {"p99", times.p99}})
    os << fmt::format("{:<8} {:>10.3f} {}\n", name, small ? value * 1e3 : value, small ? "us" : "ms");
  os << fmt::format("{:<8} {:>10.1f} runs/s\n\n", "speed", report.runsPerSecond());
  os << fmt::format("load {:.3f} ms, first run {:.3f} ms\n", report.loadMilliseconds, report.firstRunMilliseconds);
  os << fmt::format("arena {} (at least {}), {}weights {}, process at most {}\n", formatBytes(report.arenaBytes),
                    formatBytes(report.arenaLowerBoundBytes),
                    report.stateBytes ? fmt::format("state {}, ", formatBytes(report.stateBytes)) : "",
                    formatBytes(report.weightBytes), formatBytes(report.peakRssBytes));
}

int runBench(const Invocation &invocation) {
  if (std::optional<int> exit = refuseAllButOne(invocation, "say which model to measure: dlc bench MODEL.onnx|MODEL.dlcm"))
    return *exit;
  llvm::Expected<double> seconds = secondsOf(invocation, OPT_seconds, kSeconds);
  if (!seconds)
    return invocation.fail(seconds.takeError(), kExitUsage);
  llvm::Expected<double> warmup = secondsOf(invocation, OPT_warmup, kWarmupSeconds);
  if (!warmup)
    return invocation.fail(warmup.takeError(), kExitUsage);
  llvm::Expected<ExecutionRequest> request = executionRequestOf(invocation, /*defaultSeed=*/1);
  if (!request)
    return invocation.fail(request.takeError(), kExitUsage);

  Execution execution;
  if (std::optional<int> exit = execution.load(invocation, *request))
    return *exit;
  if (llvm::Error failed = execution.createInstance(*request))
    return invocation.fail(std::move(failed));
  if (llvm::Error failed = execution.bindInputs(*request))
    return invocation.fail(std::move(failed));
  llvm::Expected<Report> report = measure(execution, *seconds, *warmup);
  if (!report)
    return invocation.fail(report.takeError());
  bool shows = invocation.has(OPT_profile);
  std::string trace = invocation.value(OPT_trace);
  Profile profile;
  if (shows || !trace.empty()) {
    llvm::Expected<Profile> measured = profileRuns(execution, *seconds);
    if (!measured)
      return invocation.fail(measured.takeError());
    profile = std::move(*measured);
  }
  if (!trace.empty())
    if (llvm::Error failed = writeTrace(profile, trace))
      return invocation.fail(std::move(failed));
  if (invocation.has(OPT_json)) {
    printJson(*report, shows ? &profile : nullptr, execution, invocation.io.out);
  } else {
    printText(*report, execution, invocation.io.out);
    if (shows)
      printProfile(profile, invocation.io.out);
  }
  return kExitOk;
}

} // namespace dlc
