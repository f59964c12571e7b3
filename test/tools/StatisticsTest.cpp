// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Statistics.h"
#include <gtest/gtest.h>
#include <numeric>

namespace dlc {
namespace {

TEST(NearestRank, IsOneOfTheValues) {
  const std::vector<double> four = {10, 20, 30, 40};
  EXPECT_EQ(nearestRank(four, 0), 10);
  EXPECT_EQ(nearestRank(four, 25), 10);
  EXPECT_EQ(nearestRank(four, 26), 20);
  EXPECT_EQ(nearestRank(four, 50), 20);
  EXPECT_EQ(nearestRank(four, 51), 30);
  EXPECT_EQ(nearestRank(four, 75), 30);
  EXPECT_EQ(nearestRank(four, 76), 40);
  EXPECT_EQ(nearestRank(four, 100), 40);
}

TEST(NearestRank, OneToHundred) {
  std::vector<double> values(100);
  std::iota(values.begin(), values.end(), 1.0);
  for (unsigned percent = 1; percent <= 100; ++percent)
    EXPECT_EQ(nearestRank(values, percent), percent);
}

TEST(Statistics, OfUnsortedValues) {
  Statistics found = statisticsOf({5, 1, 4, 2, 13});
  EXPECT_EQ(found.count, 5u);
  EXPECT_EQ(found.min, 1);
  EXPECT_EQ(found.mean, 5);
  EXPECT_EQ(found.median, 4);
  EXPECT_EQ(found.p90, 13);
  EXPECT_EQ(found.p99, 13);
}

TEST(Statistics, TailOfManyValues) {
  std::vector<double> values(1000, 1.0);
  for (size_t i = 0; i < 100; ++i)
    values[i] = 2; // a tenth is slow
  for (size_t i = 0; i < 10; ++i)
    values[i] = 9; // a hundredth very slow
  Statistics found = statisticsOf(values);
  EXPECT_EQ(found.median, 1);
  EXPECT_EQ(found.p90, 1); // 900 of 1000 are not above it
  EXPECT_EQ(found.p99, 2);
  values[100] = 2;
  values[101] = 9;
  found = statisticsOf(values);
  EXPECT_EQ(found.p90, 2);
  EXPECT_EQ(found.p99, 9);
}

TEST(Statistics, OfOneAndOfNone) {
  Statistics one = statisticsOf({7});
  EXPECT_EQ(one.count, 1u);
  for (double value : {one.min, one.mean, one.median, one.p90, one.p99})
    EXPECT_EQ(value, 7);
  EXPECT_EQ(statisticsOf({}).count, 0u);
}

} // namespace
} // namespace dlc
