/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The default thread pool: fork and join, for work of microseconds. Any number of threads may call parallel_for at
// once.
//
// A job lies in a slot of the pool, so that a worker may look at it at any time. The slot's state is one word: the
// job's generation, the next index to hand out, and the number of indices. Taking an index is one compare-and-swap,
// which fails when the job has changed; so what was read of the job before belongs to the index that was taken.
#include "Available.h"
#include "dlcrt/runtime.h"

#include <atomic>
#include <linux/futex.h>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr uint32_t slotCount = 16; // jobs at the same time; one more runs on its own thread alone
constexpr uint32_t maxThreads = 4096;
// Between two launches of a run there are a few microseconds; a sleeping thread needs about fifty to wake up.
constexpr uint64_t spinNs = 30000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

/// Sleeps while `word` holds `value`. May wake up without a reason.
void futexWait(std::atomic<uint32_t> &word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futexWake(std::atomic<uint32_t> &word, uint32_t count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// Spins until `done()` or the time is over.
template <typename Done> bool spinUntil(Done done) {
  for (int i = 0; i < 64; ++i) {
    if (done())
      return true;
    pause();
  }
  for (uint64_t end = nowNs() + spinNs; nowNs() < end;)
    for (int i = 0; i < 32; ++i) {
      if (done())
        return true;
      pause();
    }
  return false;
}

struct alignas(64) Slot {
  // generation << 32 | next index << 16 | count
  std::atomic<uint64_t> state{0};
  std::atomic<dlcrt_task_fn> task{nullptr};
  std::atomic<void *> ctx{nullptr};
  std::atomic<bool> taken{false};                // by a caller of parallel_for
  alignas(64) std::atomic<uint32_t> finished{0}; // indices whose task has returned
  std::atomic<uint32_t> waiting{0};              // 1: the caller sleeps on `finished`
};

} // namespace

struct dlcrt_pool {
  Slot slots[slotCount];
  alignas(64) std::atomic<uint32_t> epoch{0}; // changes with each job
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  bool maySpin = false;
  uint32_t threads = 1;         // with the caller
  pthread_t *started = nullptr; // threads - 1

  void work();
  bool runOne(Slot &slot);
  void parallelFor(uint32_t count, dlcrt_task_fn task, void *ctx);
};

/// Takes one index of the slot's job and runs it. False: there was none.
bool dlcrt_pool::runOne(Slot &slot) {
  uint64_t state = slot.state.load(std::memory_order_acquire);
  uint32_t next, count;
  dlcrt_task_fn task;
  void *ctx;
  do {
    next = state >> 16 & 0xffff;
    count = state & 0xffff;
    if (next >= count)
      return false;
    task = slot.task.load(std::memory_order_relaxed);
    ctx = slot.ctx.load(std::memory_order_relaxed);
  } while (!slot.state.compare_exchange_weak(state, state + (1u << 16), std::memory_order_acq_rel,
                                             std::memory_order_acquire));
  task(ctx, next);
  // From here on the slot may belong to another job; a wake-up for nothing does no harm.
  if (slot.finished.fetch_add(1, std::memory_order_seq_cst) + 1 == count &&
      slot.waiting.load(std::memory_order_seq_cst))
    futexWake(slot.finished, 1);
  return true;
}

void dlcrt_pool::work() {
  while (true) {
    uint32_t seen = epoch.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_acquire))
      return;
    bool found = false;
    for (Slot &slot : slots)
      while (runOne(slot))
        found = true;
    if (found)
      continue;
    auto changed = [&] { return epoch.load(std::memory_order_acquire) != seen; };
    if (maySpin && spinUntil(changed))
      continue;
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    while (epoch.load(std::memory_order_seq_cst) == seen)
      futexWait(epoch, seen);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

void dlcrt_pool::parallelFor(uint32_t count, dlcrt_task_fn task, void *ctx) {
  Slot *mine = nullptr;
  if (count > 1 && threads > 1 && count <= 0xffff)
    for (Slot &slot : slots)
      if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true, std::memory_order_acquire)) {
        mine = &slot;
        break;
      }
  if (!mine) {
    for (uint32_t i = 0; i < count; ++i)
      task(ctx, i);
    return;
  }

  mine->task.store(task, std::memory_order_relaxed);
  mine->ctx.store(ctx, std::memory_order_relaxed);
  mine->finished.store(0, std::memory_order_relaxed);
  mine->waiting.store(0, std::memory_order_relaxed);
  uint64_t generation = (mine->state.load(std::memory_order_relaxed) >> 32) + 1;
  mine->state.store(generation << 32 | count, std::memory_order_release);
  epoch.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst))
    futexWake(epoch, count - 1);

  while (runOne(*mine))
    ;
  auto isDone = [&] { return mine->finished.load(std::memory_order_seq_cst) == count; };
  if (!(maySpin ? spinUntil(isDone) : isDone())) {
    mine->waiting.store(1, std::memory_order_seq_cst);
    for (uint32_t finished; (finished = mine->finished.load(std::memory_order_seq_cst)) != count;)
      futexWait(mine->finished, finished);
  }
  mine->taken.store(false, std::memory_order_release);
}

uint32_t dlcrt_pool_available_threads(void) { return dlcrt::impl::availableThreads(); }

dlcrt_pool *dlcrt_pool_create(uint32_t threads) {
  uint32_t available = dlcrt::impl::availableThreads();
  if (threads == 0)
    threads = available;
  if (threads > maxThreads)
    threads = maxThreads;
  void *place = nullptr;
  void *handles = calloc(threads, sizeof(pthread_t));
  if (!handles || posix_memalign(&place, alignof(dlcrt_pool), sizeof(dlcrt_pool)) != 0) {
    free(handles);
    return nullptr;
  }
  dlcrt_pool *pool = new (place) dlcrt_pool;
  pool->started = static_cast<pthread_t *>(handles);
  pool->maySpin = threads <= available;

  // The application's signal handlers shall not run on our threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto entry = [](void *self) -> void * {
    static_cast<dlcrt_pool *>(self)->work();
    return nullptr;
  };
  // `threads` grows only here; workers do not read it.
  while (pool->threads < threads && pthread_create(&pool->started[pool->threads - 1], nullptr, entry, pool) == 0)
    ++pool->threads;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pool;
}

void dlcrt_pool_destroy(dlcrt_pool *pool) {
  if (!pool)
    return;
  pool->stopping.store(true, std::memory_order_release);
  pool->epoch.fetch_add(1, std::memory_order_seq_cst);
  futexWake(pool->epoch, maxThreads);
  for (uint32_t i = 0; i + 1 < pool->threads; ++i)
    pthread_join(pool->started[i], nullptr);
  free(pool->started);
  pool->~dlcrt_pool();
  free(pool);
}

uint32_t dlcrt_pool_threads(const dlcrt_pool *pool) { return pool ? pool->threads : 1; }

void dlcrt_pool_parallel_for(void *pool, uint32_t count, dlcrt_task_fn task, void *task_ctx) {
  static_cast<dlcrt_pool *>(pool)->parallelFor(count, task, task_ctx);
}
