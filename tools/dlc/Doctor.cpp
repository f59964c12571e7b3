// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../RegisterAll.h"
#include "../Runtime.h"
#include "Session.h"
#include "dlc/Target/BackendRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"
#include "llvm/TargetParser/Host.h"

namespace dlc {

/// What the target needs and the machine has not.
static std::string missingFeatures(const Target &target, llvm::ArrayRef<llvm::StringRef> machine) {
  std::string missing;
  llvm::SmallVector<llvm::StringRef> needed;
  llvm::StringRef(target.llvmFeatures).split(needed, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef feature : needed) {
    feature.consume_front("+");
    if (!llvm::is_contained(machine, feature))
      missing += (missing.empty() ? "" : ", ") + feature.str();
  }
  return missing;
}

int runDoctor(const Invocation &invocation) {
  if (!invocation.inputs.empty())
    return invocation.usage("doctor looks at this machine, not at '" + invocation.inputs.front() + "'");
  llvm::Expected<std::vector<Target>> asked = targetsOf(invocation);
  if (!asked)
    return invocation.fail(asked.takeError());
  std::vector<Target> targets = std::move(*asked);
  if (targets.empty()) {
    for (const std::string &name : knownTargets()) {
      if (llvm::Expected<Target> target = parseTarget(name))
        targets.push_back(std::move(*target));
      else
        llvm::consumeError(target.takeError()); // in the table, but not to be built for in this version
    }
  }

  std::string featureText = textOf(dlcrt_cpu_features_text);
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(featureText).split(features, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef &feature : features)
    feature = feature.trim();
  std::string host = hostTargetName();
  llvm::Expected<Target> hostTarget = parseTarget(host);
  TargetArch arch = TargetArch::X86_64;
  if (hostTarget)
    arch = hostTarget->arch;
  else
    llvm::consumeError(hostTarget.takeError());
  auto reason = [&](const Target &target) -> std::string {
    if (target.arch != arch || target.kind != TargetKind::Cpu)
      return "another kind of processor";
    std::string missing = missingFeatures(target, features);
    return missing.empty() ? "" : "lacks " + missing;
  };

  llvm::raw_ostream &os = invocation.io.out;
  if (invocation.has(OPT_json)) {
    llvm::json::OStream json(os);
    json.object([&] {
      json.attribute("version", versionText());
      json.attribute("llvm", LLVM_VERSION_STRING);
      json.attribute("runtime", dlcrt_version_string());
      json.attribute("host_target", host);
      json.attribute("llvm_cpu", llvm::sys::getHostCPUName());
      json.attribute("threads", static_cast<int64_t>(dlcrt_pool_available_threads()));
      json.attributeArray("features", [&] {
        for (llvm::StringRef feature : features)
          json.value(feature);
      });
      json.attributeArray("backends", [&] {
        for (const std::unique_ptr<Backend> &backend : allBackends().all())
          json.value(backend->name());
      });
      json.attributeArray("targets", [&] {
        for (const Target &target : targets)
          json.object([&] {
            std::string why = reason(target);
            json.attribute("name", target.name);
            json.attribute("runs_here", why.empty());
            if (!why.empty())
              json.attribute("reason", why);
            json.attribute("vector_bits", target.vectorBits);
            json.attribute("features", target.llvmFeatures);
          });
      });
    });
    os << '\n';
    return kExitOk;
  }
  os << versionText() << ", runtime " << dlcrt_version_string() << ", LLVM " << LLVM_VERSION_STRING << '\n';
  os << fmt::format("this machine: {} (LLVM calls it {}), {} thread{} for this process\n", host, llvm::sys::getHostCPUName(),
                    dlcrt_pool_available_threads(), dlcrt_pool_available_threads() == 1 ? "" : "s");
  os << fmt::format("features: {}\n", llvm::join(features, " "));
  os << "backends:";
  for (const std::unique_ptr<Backend> &backend : allBackends().all())
    os << ' ' << backend->name();
  os << "\ntargets:\n";
  for (const Target &target : targets) {
    std::string why = reason(target);
    os << fmt::format("  {:<28} {:>4}-bit vectors  {}\n", target.name, target.vectorBits, why.empty() ? "runs here" : "not here: " + why);
  }
  return kExitOk;
}

} // namespace dlc
