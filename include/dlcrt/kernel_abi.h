/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The contract between compiled CPU kernels and the runtime that calls them. Plain C, no dependency but stdint.h.
 *
 * A kernel computes the tiles [begin, end) of one launch. Tiles of one launch are independent: the runtime may run them
 * in any order, on any worker, in any split. A kernel
 *   - calls nothing but the functions of `dlcrt_kernel_args::imports`,
 *   - uses no thread-local storage, no heap, and at most DLCRT_KERNEL_STACK_BYTES of stack,
 *   - writes only to its destination buffers and to its worker's scratch memory,
 *   - leaves the floating-point control state as it found it (AMX tiles are configured and released inside one call).
 * Buffers are dense row-major (sub-byte elements packed, low nibble first) unless the kernel was compiled for strided
 * operands, in which case its strides are among the scalars. Buffers placed by the runtime are aligned to
 * DLCRT_BUFFER_ALIGNMENT; buffers bound by the application only to their element size.
 */
#ifndef DLCRT_KERNEL_ABI_H
#define DLCRT_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLCRT_BUFFER_ALIGNMENT 64
#define DLCRT_KERNEL_STACK_BYTES 16384

/* Functions of the C library that a kernel may call through `imports`. The number is part of the module format: a
 * module holds the numbers it needs, and a runtime that does not know one refuses the module. Append only.
 *   X(number, NAME, name, signature)  signature: d = double(double), D = double(double, double), and f/F for float. */
#define DLCRT_FOREACH_IMPORT(X)                                                                                        \
  X(0, EXP, exp, d)                                                                                                    \
  X(1, EXP2, exp2, d)                                                                                                  \
  X(2, EXPM1, expm1, d)                                                                                                \
  X(3, LOG, log, d)                                                                                                    \
  X(4, LOG2, log2, d)                                                                                                  \
  X(5, LOG10, log10, d)                                                                                                \
  X(6, LOG1P, log1p, d)                                                                                                \
  X(7, POW, pow, D)                                                                                                    \
  X(8, SIN, sin, d)                                                                                                    \
  X(9, COS, cos, d)                                                                                                    \
  X(10, TAN, tan, d)                                                                                                   \
  X(11, ASIN, asin, d)                                                                                                 \
  X(12, ACOS, acos, d)                                                                                                 \
  X(13, ATAN, atan, d)                                                                                                 \
  X(14, SINH, sinh, d)                                                                                                 \
  X(15, COSH, cosh, d)                                                                                                 \
  X(16, TANH, tanh, d)                                                                                                 \
  X(17, ASINH, asinh, d)                                                                                               \
  X(18, ACOSH, acosh, d)                                                                                               \
  X(19, ATANH, atanh, d)                                                                                               \
  X(20, ERF, erf, d)                                                                                                   \
  X(21, CBRT, cbrt, d)                                                                                                 \
  X(22, ATAN2, atan2, D)                                                                                               \
  X(23, FMOD, fmod, D)                                                                                                 \
  X(24, EXPF, expf, f)                                                                                                 \
  X(25, EXP2F, exp2f, f)                                                                                               \
  X(26, EXPM1F, expm1f, f)                                                                                             \
  X(27, LOGF, logf, f)                                                                                                 \
  X(28, LOG2F, log2f, f)                                                                                               \
  X(29, LOG10F, log10f, f)                                                                                             \
  X(30, LOG1PF, log1pf, f)                                                                                             \
  X(31, POWF, powf, F)                                                                                                 \
  X(32, SINF, sinf, f)                                                                                                 \
  X(33, COSF, cosf, f)                                                                                                 \
  X(34, TANF, tanf, f)                                                                                                 \
  X(35, ASINF, asinf, f)                                                                                               \
  X(36, ACOSF, acosf, f)                                                                                               \
  X(37, ATANF, atanf, f)                                                                                               \
  X(38, SINHF, sinhf, f)                                                                                               \
  X(39, COSHF, coshf, f)                                                                                               \
  X(40, TANHF, tanhf, f)                                                                                               \
  X(41, ASINHF, asinhf, f)                                                                                             \
  X(42, ACOSHF, acoshf, f)                                                                                             \
  X(43, ATANHF, atanhf, f)                                                                                             \
  X(44, ERFF, erff, f)                                                                                                 \
  X(45, CBRTF, cbrtf, f)                                                                                               \
  X(46, ATAN2F, atan2f, F)                                                                                             \
  X(47, FMODF, fmodf, F)
#define DLCRT_IMPORT_COUNT 48

#define DLCRT_IMPORT_ENUMERATOR(number, NAME, name, signature) DLCRT_IMPORT_##NAME = number,
enum dlcrt_import { DLCRT_FOREACH_IMPORT(DLCRT_IMPORT_ENUMERATOR) };
#undef DLCRT_IMPORT_ENUMERATOR

/* Shared by all calls of one launch; read-only to the kernel. */
struct dlcrt_kernel_args {
  uint32_t struct_size;   /* sizeof(struct dlcrt_kernel_args) of the caller */
  uint32_t buffer_count;  /* entries of `buffers`: operands first, destinations last, in the kernel's declared order */
  uint32_t scalar_count;  /* entries of `scalars` */
  uint32_t reserved;      /* 0 */
  void *const *buffers;   /* one address each; may be NULL only where the buffer has no bytes */
  const int64_t *scalars; /* values of the dimension expressions that the kernel declares */
  const void *const *imports; /* DLCRT_IMPORT_COUNT addresses of functions, indexed by enum dlcrt_import */
};

/* One call's own surroundings. */
struct dlcrt_worker {
  uint32_t struct_size; /* sizeof(struct dlcrt_worker) of the caller */
  uint32_t worker;      /* 0 <= worker < workers; no two calls at one time share a number */
  uint32_t workers;
  uint32_t reserved; /* 0 */
  void *scratch;     /* `scratch_bytes` of memory, aligned to DLCRT_BUFFER_ALIGNMENT, undefined content */
  uint64_t scratch_bytes;
  uint32_t *status; /* shared by the launch, 0 before it; a kernel that meets data it cannot compute stores one of
                       enum dlcrt_kernel_status (a plain store: any of several may win) and stays inside its buffers;
                       the runtime then fails the run, naming the nodes of the launch */
};

enum dlcrt_kernel_status {
  DLCRT_KERNEL_OK = 0,
  DLCRT_KERNEL_INDEX_OUT_OF_RANGE = 1, /* an index operand points outside its axis */
  DLCRT_KERNEL_DIVISION_BY_ZERO = 2    /* integer division or remainder by 0 */
};

typedef void (*dlcrt_kernel_fn)(const struct dlcrt_kernel_args *args, const struct dlcrt_worker *worker, uint32_t begin,
                                uint32_t end);

#ifdef __cplusplus
}
#endif
#endif
