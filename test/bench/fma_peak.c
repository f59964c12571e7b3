/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fp32 fused multiply-adds on registers alone: as fast as this processor can do them. contenders.py compiles it with -march=native, which
 * chooses the vectors, and calls fma_run on pinned threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

/* Enough accumulators to fill two pipelines of latency 4 (AArch64: four of 4), and as few as the registers hold. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define ACCUMULATORS 16
#elif defined(__FMA__)
#define VECTOR_BYTES 32
#define ACCUMULATORS 12
#elif defined(__aarch64__)
#define VECTOR_BYTES 16
#define ACCUMULATORS 24
#else
#error "the processor has no fused multiply-add that this program knows"
#endif
#define LANES (VECTOR_BYTES / 4)

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

struct loop {
  pthread_t thread;
  int core;
  long steps;
  int *waiting;
  int64_t begin, end; /* nanoseconds */
  float sum;
};

int fma_vector_bits(void) { return VECTOR_BYTES * 8; }
double fma_flops_per_step(void) { return 2.0 * LANES * ACCUMULATORS; }

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static float run_steps(long steps) {
  vector accumulators[ACCUMULATORS];
  for (int i = 0; i < ACCUMULATORS; ++i)
    accumulators[i] = (vector){0} + (float)(i + 1);
  vector factor = (vector){0} + 0.999f, addend = (vector){0} + 0.001f;
  __asm__ volatile("" : "+m"(factor), "+m"(addend)); /* their values are nobody's to know */
  for (long step = 0; step < steps; ++step)
#pragma GCC unroll 32
    for (int i = 0; i < ACCUMULATORS; ++i)
      accumulators[i] = accumulators[i] * factor + addend;
  vector sum = accumulators[0];
  for (int i = 1; i < ACCUMULATORS; ++i)
    sum += accumulators[i];
  return sum[0];
}

static void *run_loop(void *argument) {
  struct loop *loop = argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(loop->core, &set);
  sched_setaffinity(0, sizeof set, &set);
  /* All begin at once. */
  __atomic_sub_fetch(loop->waiting, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(loop->waiting, __ATOMIC_SEQ_CST) > 0)
    sched_yield();
  loop->begin = now();
  loop->sum = run_steps(loop->steps);
  loop->end = now();
  return 0;
}

/* So many steps on each of the cores (at most 64), at the same time; on one core, by the thread that calls. Returns the nanoseconds from when
 * the first began until the last was done, without the making of threads; -1 if there are none to be had. */
int64_t fma_run(long steps, int count, const int *cores) {
  static volatile float sink;
  if (count == 1) {
    int64_t begin = now();
    sink = run_steps(steps);
    return now() - begin;
  }
  struct loop loops[64];
  if (count > 64)
    return -1;
  int waiting = count, started = 0;
  for (; started < count; ++started) {
    loops[started] = (struct loop){.core = cores[started], .steps = steps, .waiting = &waiting};
    if (pthread_create(&loops[started].thread, 0, run_loop, &loops[started]))
      break;
  }
  if (started < count)
    __atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST); /* the others need not wait for what never comes */
  int64_t begin = INT64_MAX, end = 0;
  for (int i = 0; i < started; ++i) {
    pthread_join(loops[i].thread, 0);
    sink = loops[i].sum;
    begin = loops[i].begin < begin ? loops[i].begin : begin;
    end = loops[i].end > end ? loops[i].end : end;
  }
  return started < count ? -1 : end - begin;
}
