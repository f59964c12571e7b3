/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Kernels are compiled for the default floating-point environment; applications may run with another.
#ifndef DLCRT_CPU_FPSTATE_H
#define DLCRT_CPU_FPSTATE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dlcrt::impl {

/// While it lives: round to nearest, denormals kept, no traps. The caller's state, exception flags included, comes
/// back.
class DefaultFpState {
public:
#if defined(__x86_64__)
  DefaultFpState() : saved(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFpState() { _mm_setcsr(saved); }

private:
  uint32_t saved;
#elif defined(__aarch64__)
  DefaultFpState() {
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("mrs %0, fpsr" : "=r"(status));
    asm volatile("msr fpcr, %0" ::"r"(uint64_t(0)));
  }
  ~DefaultFpState() {
    asm volatile("msr fpcr, %0" ::"r"(control));
    asm volatile("msr fpsr, %0" ::"r"(status));
  }

private:
  uint64_t control, status;
#else
  DefaultFpState() {}
  ~DefaultFpState() {}
#endif
  DefaultFpState(const DefaultFpState &) = delete;
  DefaultFpState &operator=(const DefaultFpState &) = delete;
};

} // namespace dlcrt::impl
#endif
