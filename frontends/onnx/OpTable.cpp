// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpTable.h"

using llvm::StringRef;

namespace dlc {

const OpTable &OpTable::get() {
  static const OpTable table = [] {
    OpTable all;
    addStructureOps(all);
    addElementwiseOps(all);
    addContractionOps(all);
    addReductionOps(all);
    addNormalizationOps(all);
    addAttentionOps(all);
    addRotaryOps(all);
    addMovementOps(all);
    addSelectionOps(all);
    addVisionOps(all);
    addSampleOps(all);
    addRecurrentOps(all);
    return all;
  }();
  return table;
}

/// The entry with the largest key that is not above `version`.
template <typename Map> static auto newest(const Map &versions, int64_t version) {
  auto it = versions.upper_bound(version);
  return it == versions.begin() ? nullptr : &std::prev(it)->second;
}

const OpTable::Handler *OpTable::find(StringRef domain, StringRef opType, int64_t version) const {
  auto it = entries.find({domain.str(), opType.str()});
  return it == entries.end() ? nullptr : newest(it->second, version);
}

std::optional<int64_t> OpTable::findBodyVersion(StringRef opType, int64_t version) const {
  auto it = bodies.find(opType.str());
  if (it == bodies.end())
    return std::nullopt;
  const int64_t *found = newest(it->second, version);
  return found && *found > version ? std::optional(*found) : std::nullopt;
}

void OpTable::add(StringRef opType, int64_t since, Handler handler, StringRef domain) {
  entries[{domain.str(), opType.str()}][since] = std::move(handler);
}

void OpTable::addBody(StringRef opType, int64_t since, int64_t bodyVersion) { bodies[opType.str()][since] = bodyVersion; }

void OpTable::forEach(llvm::function_ref<void(StringRef, StringRef, int64_t)> visit) const {
  for (const auto &[key, versions] : entries)
    for (const auto &[since, handler] : versions)
      visit(key.first, key.second, since);
}

} // namespace dlc
