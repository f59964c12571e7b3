/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Dtype.h"

#include <string.h>

using namespace dlcrt::impl;

namespace {
struct DtypeInfo {
  const char *name;
  uint8_t bits, alignment;            // alignment in bytes
  uint8_t exponentBits, mantissaBits; // of the binary floats that encodeElement makes
};
} // namespace

static const DtypeInfo dtypes[] = {
    {"undefined", 0, 1, 0, 0},  {"f32", 32, 4, 8, 23},    {"ui8", 8, 1, 0, 0},        {"i8", 8, 1, 0, 0},
    {"ui16", 16, 2, 0, 0},      {"i16", 16, 2, 0, 0},     {"i32", 32, 4, 0, 0},       {"i64", 64, 8, 0, 0},
    {"string", 128, 8, 0, 0},   {"bool", 8, 1, 0, 0},     {"f16", 16, 2, 5, 10},      {"f64", 64, 8, 11, 52},
    {"ui32", 32, 4, 0, 0},      {"ui64", 64, 8, 0, 0},    {"complex64", 64, 4, 0, 0}, {"complex128", 128, 8, 0, 0},
    {"bf16", 16, 2, 8, 7},      {"f8e4m3fn", 8, 1, 0, 0}, {"f8e4m3fnuz", 8, 1, 0, 0}, {"f8e5m2", 8, 1, 5, 2},
    {"f8e5m2fnuz", 8, 1, 0, 0}, {"ui4", 4, 1, 0, 0},      {"i4", 4, 1, 0, 0},         {"f4e2m1", 4, 1, 0, 0},
    {"f8e8m0", 8, 1, 0, 0},     {"ui2", 2, 1, 0, 0},      {"i2", 2, 1, 0, 0}};

static const DtypeInfo &infoOf(int32_t dtype) {
  return dtypes[dtype > 0 && dtype < int32_t(sizeof(dtypes) / sizeof(dtypes[0])) ? dtype : 0];
}

uint32_t dlcrt::impl::dtypeBits(int32_t dtype) { return infoOf(dtype).bits; }

uint32_t dlcrt::impl::dtypeAlignment(int32_t dtype) { return infoOf(dtype).alignment; }

bool dlcrt::impl::denseBytes(int32_t dtype, uint64_t elements, uint64_t &bytes) {
  uint64_t bits;
  if (__builtin_mul_overflow(elements, uint64_t(dtypeBits(dtype)), &bits))
    return false;
  bytes = bits / 8 + (bits % 8 != 0);
  return true;
}

bool dlcrt::impl::elementCount(uint32_t rank, const int64_t *dims, uint64_t &elements) {
  uint64_t product = 1;
  bool overflow = false, empty = false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return false;
    empty |= dims[i] == 0;
    overflow |= __builtin_mul_overflow(product, uint64_t(dims[i]), &product);
  }
  elements = empty ? 0 : product;
  return empty || (!overflow && product <= INT64_MAX);
}

bool dlcrt::impl::isReadable(int32_t dtype) {
  switch (dtype) {
  case DLCRT_DTYPE_BOOL:
  case DLCRT_DTYPE_UINT8:
  case DLCRT_DTYPE_INT8:
  case DLCRT_DTYPE_UINT16:
  case DLCRT_DTYPE_INT16:
  case DLCRT_DTYPE_UINT32:
  case DLCRT_DTYPE_INT32:
  case DLCRT_DTYPE_UINT64:
  case DLCRT_DTYPE_INT64:
    return true;
  default:
    return false;
  }
}

template <typename T> static int64_t readAs(const void *data, uint64_t index) {
  T value;
  memcpy(&value, static_cast<const char *>(data) + index * sizeof(T), sizeof(T));
  return int64_t(value);
}

int64_t dlcrt::impl::readElement(int32_t dtype, const void *data, uint64_t index) {
  switch (dtype) {
  case DLCRT_DTYPE_BOOL:
    return readAs<uint8_t>(data, index) != 0;
  case DLCRT_DTYPE_UINT8:
    return readAs<uint8_t>(data, index);
  case DLCRT_DTYPE_INT8:
    return readAs<int8_t>(data, index);
  case DLCRT_DTYPE_UINT16:
    return readAs<uint16_t>(data, index);
  case DLCRT_DTYPE_INT16:
    return readAs<int16_t>(data, index);
  case DLCRT_DTYPE_UINT32:
    return readAs<uint32_t>(data, index);
  case DLCRT_DTYPE_INT32:
    return readAs<int32_t>(data, index);
  default:
    return readAs<int64_t>(data, index);
  }
}

bool dlcrt::impl::isFillable(int32_t dtype) {
  const DtypeInfo &info = infoOf(dtype);
  switch (dtype) {
  case DLCRT_DTYPE_UINT4:
  case DLCRT_DTYPE_INT4:
  case DLCRT_DTYPE_UINT2:
  case DLCRT_DTYPE_INT2:
    return true;
  default:
    return isReadable(dtype) || info.exponentBits != 0;
  }
}

/// An integer as an IEEE binary float, rounded to nearest even; too large ones become infinite.
static uint64_t encodeFloat(int64_t value, uint32_t exponentBits, uint32_t mantissaBits) {
  uint64_t sign = value < 0 ? uint64_t(1) << (exponentBits + mantissaBits) : 0;
  uint64_t magnitude = value < 0 ? 0 - uint64_t(value) : uint64_t(value);
  if (magnitude == 0)
    return 0;
  uint32_t exponent = 63 - __builtin_clzll(magnitude);
  uint64_t significand; // with the leading one at bit mantissaBits
  if (exponent <= mantissaBits) {
    significand = magnitude << (mantissaBits - exponent);
  } else {
    uint32_t shift = exponent - mantissaBits;
    uint64_t rest = magnitude & ((uint64_t(1) << shift) - 1), half = uint64_t(1) << (shift - 1);
    significand = magnitude >> shift;
    significand += rest > half || (rest == half && (significand & 1));
  }
  uint64_t bias = (uint64_t(1) << (exponentBits - 1)) - 1, infinity = ((uint64_t(1) << exponentBits) - 1)
                                                                      << mantissaBits;
  // A carry out of the significand goes into the exponent by itself.
  uint64_t bits = ((exponent + bias - 1) << mantissaBits) + significand;
  return sign | (bits > infinity ? infinity : bits);
}

uint64_t dlcrt::impl::encodeElement(int32_t dtype, int64_t value) {
  const DtypeInfo &info = infoOf(dtype);
  if (info.exponentBits)
    return encodeFloat(value, info.exponentBits, info.mantissaBits);
  if (dtype == DLCRT_DTYPE_BOOL)
    return value != 0;
  return info.bits >= 64 ? uint64_t(value) : uint64_t(value) & ((uint64_t(1) << info.bits) - 1);
}

uint32_t dlcrt_dtype_bits(int32_t dtype) { return dtypeBits(dtype); }

const char *dlcrt_dtype_name(int32_t dtype) {
  const DtypeInfo &info = infoOf(dtype);
  return info.bits ? info.name : "unknown";
}

uint64_t dlcrt_tensor_bytes(int32_t dtype, uint32_t rank, const int64_t *dims) {
  uint64_t elements, bytes;
  if (!dtypeBits(dtype) || (rank && !dims) || !elementCount(rank, dims, elements) ||
      !denseBytes(dtype, elements, bytes))
    return UINT64_MAX;
  return bytes;
}
