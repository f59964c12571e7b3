// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What a list of times says.

#ifndef DLC_TOOLS_DLC_STATISTICS_H
#define DLC_TOOLS_DLC_STATISTICS_H

#include <cstddef>
#include <vector>

namespace dlc {

/// Nearest rank: the smallest of the values that at least `percent` % of them do not exceed, which is number ceil(percent * n / 100), counted
/// from 1, and at least the first. `sorted` goes up and is not empty; percent <= 100.
double nearestRank(const std::vector<double> &sorted, unsigned percent);

/// In the unit of the values. All zero for none.
struct Statistics {
  size_t count = 0;
  double min = 0, mean = 0, median = 0, p90 = 0, p99 = 0; // median, p90 and p99 by nearest rank
};
Statistics statisticsOf(std::vector<double> values);

} // namespace dlc

#endif
