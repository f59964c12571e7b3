/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Kernels.h"

#include "dlcrt/kernel_abi.h"

#define PARAMETERS const struct dlcrt_kernel_args *args, const struct dlcrt_worker *worker, uint32_t begin, uint32_t end
#define BUFFER(type, i) ((type *)args->buffers[i])
#define FOR_EACH_ELEMENT(i)                                                                                            \
  for (int64_t i = (int64_t)begin * KERNEL_TILE, stop = (int64_t)end * KERNEL_TILE;                                    \
       i < (stop < args->scalars[0] ? stop : args->scalars[0]); ++i)
#define UNUSED (void)worker, (void)begin, (void)end

void add(PARAMETERS) {
  UNUSED;
  FOR_EACH_ELEMENT(i) BUFFER(float, 2)[i] = BUFFER(float, 0)[i] + BUFFER(float, 1)[i];
}

void scale(PARAMETERS) {
  UNUSED;
  FOR_EACH_ELEMENT(i) BUFFER(float, 1)[i] = BUFFER(float, 0)[i] * (float)args->scalars[1];
}

void exponential(PARAMETERS) {
  UNUSED;
  double (*exp)(double) = (double (*)(double))(uintptr_t)args->imports[DLCRT_IMPORT_EXP];
  FOR_EACH_ELEMENT(i) BUFFER(float, 1)[i] = (float)exp(BUFFER(float, 0)[i]);
}

void count_nonzero(PARAMETERS) {
  UNUSED;
  int64_t count = 0;
  for (int64_t i = 0; i < args->scalars[0]; ++i)
    count += BUFFER(int64_t, 0)[i] != 0;
  BUFFER(int64_t, 1)[0] = count;
}

void compact(PARAMETERS) {
  UNUSED;
  int64_t *out = BUFFER(int64_t, 1);
  for (int64_t i = 0; i < args->scalars[0]; ++i)
    if (BUFFER(int64_t, 0)[i] != 0)
      *out++ = BUFFER(int64_t, 0)[i];
}

void increment(PARAMETERS) {
  UNUSED;
  BUFFER(int64_t, 1)[0] = BUFFER(int64_t, 0)[0] + args->scalars[0];
}

void less(PARAMETERS) {
  UNUSED;
  BUFFER(uint8_t, 1)[0] = BUFFER(int64_t, 0)[0] < args->scalars[0];
}

void worker(PARAMETERS) {
  for (uint32_t i = begin; i < end; ++i)
    BUFFER(int64_t, 0)[i] = worker->worker < worker->workers ? worker->worker : -1;
}

void scratch(PARAMETERS) {
  volatile uint8_t *memory = worker->scratch;
  for (uint32_t i = begin; i < end; ++i) {
    int64_t sum = 0;
    for (uint64_t j = 0; j < worker->scratch_bytes; ++j)
      memory[j] = (uint8_t)(i + j);
    for (uint64_t j = 0; j < worker->scratch_bytes; ++j)
      sum += memory[j] == (uint8_t)(i + j);
    BUFFER(int64_t, 0)[i] = (uintptr_t)memory % DLCRT_BUFFER_ALIGNMENT == 0 ? sum : -1;
  }
}

void spin(PARAMETERS) {
  UNUSED;
  for (uint32_t i = begin; i < end; ++i) {
    volatile int64_t n = 0;
    while (n < args->scalars[1])
      n = n + 1;
    BUFFER(int64_t, 0)[i] = n;
  }
}

void float_state(PARAMETERS) {
  UNUSED;
  volatile float smallest = 1.17549435e-38f, half = 0.5f;
  FOR_EACH_ELEMENT(i) BUFFER(float, 0)[i] = smallest * half;
}

void refuse(PARAMETERS) {
  UNUSED;
  *worker->status = (uint32_t)args->scalars[0];
}

void append(PARAMETERS) {
  UNUSED;
  int64_t rows = args->scalars[0], n = args->scalars[1], capacity = args->scalars[2], offset = args->scalars[3];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < n; ++i)
      BUFFER(int64_t, 1)[row * capacity + offset + i] = BUFFER(int64_t, 0)[row * n + i];
}

void sum_rows(PARAMETERS) {
  UNUSED;
  int64_t sum = 0;
  for (int64_t row = 0; row < args->scalars[0]; ++row)
    for (int64_t i = 0; i < args->scalars[1]; ++i)
      sum += BUFFER(int64_t, 0)[row * args->scalars[2] + i];
  BUFFER(int64_t, 1)[0] = sum;
}

#define ENTRY(name, buffers, scalars) ".long " #name "\n"
__asm__(".pushsection .entries, \"a\"\n" DLCRT_FOREACH_TEST_KERNEL(ENTRY) ".popsection\n");
