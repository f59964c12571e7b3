/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The kernels that the runtime's tests launch. The image begins with one uint32_t for each: its entry. */
#ifndef DLCRT_TEST_KERNELS_H
#define DLCRT_TEST_KERNELS_H

/* X(name, buffers, scalars) */
#define DLCRT_FOREACH_TEST_KERNEL(X)                                                                                   \
  X(add, 3, 1)           /* f32 a, b, out; n */                                                                        \
  X(scale, 2, 2)         /* f32 x, out; n, factor */                                                                   \
  X(exponential, 2, 1)   /* f32 x, out; n: calls exp of the C library */                                               \
  X(count_nonzero, 2, 1) /* i64 x, count[1]; n */                                                                      \
  X(compact, 2, 1)       /* i64 x, out; n: the elements that are not 0 */                                              \
  X(increment, 2, 1)     /* i64 x[1], out[1]; by */                                                                    \
  X(less, 2, 1)          /* i64 x[1], bool out[1]; limit */                                                            \
  X(worker, 1, 1)        /* i64 out; n: each tile writes its worker's number */                                        \
  X(scratch, 1, 1)       /* i64 out; n: each tile fills its scratch, then writes the sum or -1 */                      \
  X(spin, 1, 2)          /* i64 out; n, iterations: takes time */                                                      \
  X(float_state, 1, 1)   /* f32 out; n: a denormal result */                                                           \
  X(refuse, 1, 1)        /* i64 out; status: reports this status */                                                    \
  X(append, 2, 4)        /* i64 x[rows, n], log[rows, capacity]; rows, n, capacity, offset: log[:, offset:] = x */     \
  X(sum_rows, 2, 3)      /* i64 log[rows, capacity], out[1]; rows, n, capacity: the sum of log[:, :n] */

#define DLCRT_TEST_KERNEL_ENUMERATOR(name, buffers, scalars) KERNEL_##name,
enum { DLCRT_FOREACH_TEST_KERNEL(DLCRT_TEST_KERNEL_ENUMERATOR) KERNEL_COUNT };
#undef DLCRT_TEST_KERNEL_ENUMERATOR

/* Elements of one tile of the element-wise kernels. */
#define KERNEL_TILE 16

#endif
