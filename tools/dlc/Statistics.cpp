// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Statistics.h"
#include <algorithm>
#include <numeric>

namespace dlc {

double nearestRank(const std::vector<double> &sorted, unsigned percent) {
  size_t rank = (percent * sorted.size() + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

Statistics statisticsOf(std::vector<double> values) {
  Statistics result;
  if (values.empty())
    return result;
  std::sort(values.begin(), values.end());
  result.count = values.size();
  result.min = values.front();
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.median = nearestRank(values, 50);
  result.p90 = nearestRank(values, 90);
  result.p99 = nearestRank(values, 99);
  return result;
}

} // namespace dlc
