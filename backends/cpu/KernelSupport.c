/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What LLVM may call by name in any code: freestanding, for the oldest processor of an architecture. Compiled when dlc is built
 * (one object for each architecture), kept inside the compiler, and linked into an image as far as its kernels need it.
 * No function here may be compiled into a call of itself: see the flags in CMakeLists.txt. */

#include <stddef.h>
#include <stdint.h>

typedef uint64_t word __attribute__((aligned(1), may_alias));

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  char *t = to;
  const char *f = from;
  for (; n >= 32; n -= 32, t += 32, f += 32) {
    word a = ((const word *)f)[0], b = ((const word *)f)[1], c = ((const word *)f)[2], d = ((const word *)f)[3];
    ((word *)t)[0] = a, ((word *)t)[1] = b, ((word *)t)[2] = c, ((word *)t)[3] = d;
  }
  for (; n; --n)
    *t++ = *f++;
  return to;
}

void *memmove(void *to, const void *from, size_t n) {
  char *t = to;
  const char *f = from;
  if ((uintptr_t)t - (uintptr_t)f >= n) { /* reading ahead of writing is safe */
    for (; n >= 8; n -= 8, t += 8, f += 8)
      *(word *)t = *(const word *)f;
    for (; n; --n)
      *t++ = *f++;
  } else {
    for (; n >= 8; n -= 8)
      *(word *)(t + n - 8) = *(const word *)(f + n - 8);
    while (n--)
      t[n] = f[n];
  }
  return to;
}

void *memset(void *to, int value, size_t n) {
  char *t = to;
  uint64_t pattern = 0x0101010101010101u * (unsigned char)value;
  for (; n >= 32; n -= 32, t += 32)
    ((word *)t)[0] = pattern, ((word *)t)[1] = pattern, ((word *)t)[2] = pattern, ((word *)t)[3] = pattern;
  for (; n; --n)
    *t++ = (char)value;
  return to;
}

int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *x = a, *y = b;
  for (; n; --n, ++x, ++y)
    if (*x != *y)
      return *x < *y ? -1 : 1;
  return 0;
}

/* Conversions of half-width floats, round to nearest even. A value of the narrow type travels in a vector register. */

static uint32_t bits_of(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}
static float float_of(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}
static uint64_t bits_of_double(double x) {
  uint64_t u;
  __builtin_memcpy(&u, &x, 8);
  return u;
}

/* A double as a float that rounds to the same narrow value: truncated, the lost bits kept as one sticky bit. */
static float round_to_odd(double x) {
  uint64_t u = bits_of_double(x), magnitude = u & 0x7fffffffffffffffu;
  uint32_t sign = (uint32_t)(u >> 63) << 31;
  if (magnitude > 0x7ff0000000000000u)
    return float_of(sign | 0x7fc00000u | (uint32_t)(magnitude >> 29 & 0x3fffff));
  if (magnitude == 0x7ff0000000000000u)
    return float_of(sign | 0x7f800000u);
  int exponent = (int)(magnitude >> 52) - 1023;
  uint64_t fraction = magnitude & 0xfffffffffffffu;
  if (exponent > 127)
    return float_of(sign | 0x7f7fffffu); /* rounds up to infinity in the narrow type */
  if (exponent < -126) {                 /* a denormal float, or below */
    int shift = 29 + (-126 - exponent);
    uint64_t whole = fraction | (magnitude >> 52 ? 0x10000000000000u : 0);
    if (shift > 60)
      return float_of(sign | (magnitude != 0));
    return float_of(sign | (uint32_t)(whole >> shift) | ((whole & (((uint64_t)1 << shift) - 1)) != 0));
  }
  return float_of(sign | (uint32_t)(exponent + 127) << 23 | (uint32_t)(fraction >> 29) | ((fraction & 0x1fffffff) != 0));
}

static uint16_t half_bits(float x) {
  uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
  if (magnitude > 0x7f800000) /* NaN: stays one, quiet */
    return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x47800000) /* 65536 and more */
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) { /* below 2^-14: denormal */
    /* 0.5 has the unit 2^-24 of half's denormals as its last bit, so that the addition rounds. */
    return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000));
  }
  return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

static uint16_t bfloat_bits(float x) {
  uint32_t u = bits_of(x);
  if ((u & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

typedef _Float16 half;
static half half_of(uint16_t u) {
  half h;
  __builtin_memcpy(&h, &u, 2);
  return h;
}

float __extendhfsf2(half h) {
  uint16_t u;
  __builtin_memcpy(&u, &h, 2);
  uint32_t sign = (uint32_t)(u & 0x8000) << 16, magnitude = u & 0x7fff;
  if (magnitude >= 0x7c00) /* infinity, NaN */
    return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13 | (magnitude > 0x7c00 ? 0x400000 : 0));
  if (magnitude < 0x400) { /* denormal or zero: exact in float */
    float x = (float)(int32_t)magnitude * 0x1p-24f;
    return float_of(sign | bits_of(x));
  }
  return float_of(sign | ((magnitude << 13) + 0x38000000));
}
half __truncsfhf2(float x) { return half_of(half_bits(x)); }
half __truncdfhf2(double x) { return half_of(half_bits(round_to_odd(x))); }

typedef __bf16 bfloat;
static bfloat bfloat_of(uint16_t u) {
  bfloat b;
  __builtin_memcpy(&b, &u, 2);
  return b;
}
bfloat __truncsfbf2(float x) { return bfloat_of(bfloat_bits(x)); }
bfloat __truncdfbf2(double x) { return bfloat_of(bfloat_bits(round_to_odd(x))); }
