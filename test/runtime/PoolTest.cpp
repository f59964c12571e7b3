/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The default thread pool.
#include "dlcrt/dlcrt.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

using namespace dlcrt;

namespace {

/// Counts how often each index was run.
struct Job {
  std::vector<std::atomic<uint32_t>> counts;
  explicit Job(uint32_t count) : counts(count) {}
  static void task(void *self, uint32_t index) {
    static_cast<Job *>(self)->counts[index].fetch_add(1, std::memory_order_relaxed);
  }
  bool each(uint32_t expected) const {
    for (auto &count : counts)
      if (count != expected)
        return false;
    return true;
  }
};

} // namespace

TEST(Pool, Threads) {
  EXPECT_GE(dlcrt_pool_available_threads(), 1u);
  EXPECT_EQ(Pool(3).threads(), 3u);
  EXPECT_EQ(Pool(1).threads(), 1u);
  EXPECT_EQ(Pool(0).threads(), dlcrt_pool_available_threads());
  EXPECT_EQ(dlcrt_pool_threads(nullptr), 1u);
}

TEST(Pool, EachIndexOnce) {
  for (uint32_t threads : {1u, 2u, 4u, 9u}) {
    Pool pool(threads);
    for (uint32_t count : {0u, 1u, 2u, 3u, 8u, 100u, 70000u}) {
      Job job(count);
      dlcrt_pool_parallel_for(pool.c(), count, Job::task, &job);
      EXPECT_TRUE(job.each(1)) << threads << " threads, " << count;
    }
  }
}

TEST(Pool, WritesAreVisibleAfterwards) {
  Pool pool(4);
  std::vector<int> values(4); // plain memory: the sanitizer sees what is missing
  for (int round = 0; round < 2000; ++round) {
    dlcrt_pool_parallel_for(
        pool.c(), 4, [](void *ctx, uint32_t i) { ++static_cast<int *>(ctx)[i]; }, values.data());
    for (int value : values)
      ASSERT_EQ(value, round + 1);
  }
}

TEST(Pool, WakesUpAfterAPause) {
  Pool pool(2);
  for (int round = 0; round < 10; ++round) {
    Job job(2);
    dlcrt_pool_parallel_for(pool.c(), 2, Job::task, &job);
    EXPECT_TRUE(job.each(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2)); // longer than anyone spins
  }
}

TEST(Pool, ManyCallersAtOnce) {
  Pool pool(4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 24; ++t) // more than the pool has slots
    callers.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      for (int round = 0; round < 300; ++round) {
        uint32_t count = random() % 9;
        Job job(count);
        dlcrt_pool_parallel_for(pool.c(), count, Job::task, &job);
        wrong += !job.each(1);
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, NestedCalls) {
  // Not asked for by the runtime, but an application's task may do it: no deadlock.
  Pool pool(3);
  struct Context {
    Pool &pool;
    std::atomic<uint32_t> done{0};
  } context{pool};
  dlcrt_pool_parallel_for(
      pool.c(), 3,
      [](void *ctx, uint32_t) {
        auto &c = *static_cast<Context *>(ctx);
        dlcrt_pool_parallel_for(
            c.pool.c(), 3, [](void *inner, uint32_t) { ++static_cast<Context *>(inner)->done; }, ctx);
      },
      &context);
  EXPECT_EQ(context.done, 9u);
}

TEST(Pool, ComesAndGoes) {
  for (int round = 0; round < 50; ++round) {
    Pool pool(uint32_t(1 + round % 6));
    Job job(5);
    if (round % 2)
      dlcrt_pool_parallel_for(pool.c(), 5, Job::task, &job);
    EXPECT_TRUE(job.each(round % 2));
  }
}
