// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Profile.h"
#include "dlc/Support/OutputFile.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

namespace dlc {

static constexpr size_t kLeastRuns = 5, kTopLaunches = 20;

static uint64_t nowNs() { // the runtime's clock
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

static std::vector<std::string> linesOf(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  return {lines.begin(), lines.end()};
}

static void record(void *context, const dlcrt_trace_event *event) {
  bool isNamed = event->kind == DLCRT_TRACE_LAUNCH || event->kind == DLCRT_TRACE_CALL;
  static_cast<Profile *>(context)->records.push_back({isNamed                           ? event->name
                                                      : event->kind == DLCRT_TRACE_COPY ? "copy"
                                                                                        : "fill",
                                                      linesOf(event->node_names), linesOf(event->op_types),
                                                      event->stage, event->tiles, event->bytes, event->flops,
                                                      event->begin_ns, event->end_ns});
}

llvm::Expected<Profile> profileRuns(Execution &execution, double seconds) {
  Profile best;
  uint64_t start = nowNs();
  for (size_t runs = 0; runs < kLeastRuns || static_cast<double>(nowNs() - start) < seconds * 1e9; ++runs) {
    Profile profile;
    profile.records.reserve(best.records.size());
    auto options = sized<dlcrt_run_options>();
    options.trace = record;
    options.trace_ctx = &profile;
    if (llvm::Error failed = execution.rewind())
      return std::move(failed);
    profile.beginNs = nowNs();
    if (llvm::Error failed = execution.run(&options))
      return std::move(failed);
    profile.endNs = nowNs();
    if (runs == 0 || profile.endNs - profile.beginNs < best.endNs - best.beginNs)
      best = std::move(profile);
  }
  return best;
}

namespace {

/// What one launch, or all of a kernel, took.
struct Sum {
  size_t launches = 0;
  double milliseconds = 0;
  uint64_t bytes = 0, flops = 0;

  void add(const ProfileRecord &record) {
    ++launches;
    milliseconds += record.getMilliseconds();
    bytes += record.bytes;
    flops += record.flops;
  }
  double getSpeed() const { return milliseconds > 0 ? static_cast<double>(flops) / milliseconds * 1e-6 : 0; } // GFLOP/s
  double getBandwidth() const { return milliseconds > 0 ? static_cast<double>(bytes) / milliseconds * 1e-6 : 0; }
};

} // namespace

static double shareOf(double milliseconds, const Profile &profile) {
  return profile.getMilliseconds() > 0 ? milliseconds / profile.getMilliseconds() : 0;
}

/// The slowest first.
static std::vector<std::pair<std::string, Sum>> sumByName(const Profile &profile, double &all) {
  llvm::MapVector<llvm::StringRef, Sum> sums;
  for (const ProfileRecord &record : profile.records) {
    sums[record.name].add(record);
    all += record.getMilliseconds();
  }
  std::vector<std::pair<std::string, Sum>> sorted;
  for (auto &[name, sum] : sums)
    sorted.emplace_back(name.str(), sum);
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return std::pair(-a.second.milliseconds, a.first) < std::pair(-b.second.milliseconds, b.first);
  });
  return sorted;
}

void printProfile(const Profile &profile, llvm::json::OStream &json) {
  double all = 0;
  auto kernels = sumByName(profile, all);
  auto attributes = [&](const Sum &sum) {
    json.attribute("ms", sum.milliseconds);
    json.attribute("share", shareOf(sum.milliseconds, profile));
    json.attribute("flops", static_cast<int64_t>(sum.flops));
    json.attribute("gflop_per_s", sum.getSpeed());
    json.attribute("bytes", static_cast<int64_t>(sum.bytes));
    json.attribute("gb_per_s", sum.getBandwidth());
  };
  auto list = [&](llvm::StringRef name, const std::vector<std::string> &words) {
    json.attributeArray(name, [&] {
      for (const std::string &word : words)
        json.value(llvm::json::fixUTF8(word));
    });
  };
  json.attributeObject("profile", [&] {
    json.attribute("run_ms", profile.getMilliseconds());
    json.attribute("other_ms", profile.getMilliseconds() - all);
    json.attribute("other_share", shareOf(profile.getMilliseconds() - all, profile));
    json.attributeArray("kernels", [&] {
      for (const auto &[name, sum] : kernels)
        json.object([&] {
          json.attribute("name", llvm::json::fixUTF8(name));
          json.attribute("launches", static_cast<int64_t>(sum.launches));
          attributes(sum);
        });
    });
    json.attributeArray("launches", [&] {
      for (const ProfileRecord &record : profile.records)
        json.object([&] {
          Sum sum;
          sum.add(record);
          json.attribute("kernel", llvm::json::fixUTF8(record.name));
          list("nodes", record.nodes);
          list("ops", record.ops);
          json.attribute("stage", record.stage);
          json.attribute("tiles", static_cast<int64_t>(record.tiles));
          attributes(sum);
        });
    });
  });
}

void printProfile(const Profile &profile, llvm::raw_ostream &os) {
  double all = 0;
  auto kernels = sumByName(profile, all);
  auto line = [&](const Sum &sum, llvm::StringRef what) {
    os << fmt::format("{:>10.3f} {:>6.1f} {:>9.2f} {:>9.2f}  {}\n", sum.milliseconds * 1e3,
                      100 * shareOf(sum.milliseconds, profile), sum.getSpeed(), sum.getBandwidth(), what);
  };
  os << fmt::format("\nthe fastest run with a profile: {:.3f} ms, {:.1f} % of it outside of what is listed\n",
                    profile.getMilliseconds(), 100 * shareOf(profile.getMilliseconds() - all, profile));
  os << fmt::format("\n{:>10} {:>6} {:>9} {:>9}  {}\n", "us", "%", "GFLOP/s", "GB/s", "kernel");
  for (const auto &[name, sum] : kernels)
    line(sum, fmt::format("{} ({} launch{})", name, sum.launches, sum.launches == 1 ? "" : "es"));
  std::vector<const ProfileRecord *> sorted;
  for (const ProfileRecord &record : profile.records)
    sorted.push_back(&record);
  llvm::sort(sorted, [](auto *a, auto *b) {
    return std::pair(b->endNs - b->beginNs, a->beginNs) < std::pair(a->endNs - a->beginNs, b->beginNs);
  });
  os << fmt::format("\n{:>10} {:>6} {:>9} {:>9}  {}\n", "us", "%", "GFLOP/s", "GB/s", "launch: nodes");
  for (const ProfileRecord *record : llvm::ArrayRef(sorted).take_front(std::min(kTopLaunches, sorted.size()))) {
    Sum sum;
    sum.add(*record);
    std::string nodes;
    for (auto [node, op] : llvm::zip(record->nodes, record->ops))
      nodes += fmt::format("{}{} ({})", nodes.empty() ? ": " : ", ", node, op);
    line(sum, record->name + nodes);
  }
  if (sorted.size() > kTopLaunches)
    os << fmt::format("and {} more, which --json has\n", sorted.size() - kTopLaunches);
}

llvm::Error writeTrace(const Profile &profile, llvm::StringRef path) {
  llvm::Expected<OutputFile> file = OutputFile::create(path.str());
  if (!file)
    return file.takeError();
  llvm::json::OStream json(file->os());
  auto event = [&](llvm::StringRef name, uint64_t begin, uint64_t end, llvm::function_ref<void()> arguments) {
    json.object([&] {
      json.attribute("name", llvm::json::fixUTF8(name));
      json.attribute("ph", "X");
      json.attribute("pid", 0);
      json.attribute("tid", 0);
      json.attribute("ts", static_cast<double>(begin - profile.beginNs) * 1e-3);
      json.attribute("dur", static_cast<double>(end - begin) * 1e-3);
      json.attributeObject("args", arguments);
    });
  };
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeArray("traceEvents", [&] {
      event("run", profile.beginNs, profile.endNs, [] {});
      for (const ProfileRecord &record : profile.records)
        event(record.name, record.beginNs, record.endNs, [&] {
          json.attribute("nodes", llvm::json::fixUTF8(llvm::join(record.nodes, ", ")));
          json.attribute("ops", llvm::json::fixUTF8(llvm::join(record.ops, ", ")));
          json.attribute("flops", static_cast<int64_t>(record.flops));
          json.attribute("bytes", static_cast<int64_t>(record.bytes));
          json.attribute("tiles", static_cast<int64_t>(record.tiles));
          json.attribute("stage", record.stage);
        });
    });
  });
  file->os() << '\n';
  return file->commit();
}

} // namespace dlc
