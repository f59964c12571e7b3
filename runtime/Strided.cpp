/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Strided.h"

#include "dlcrt/format.h"

#include <string.h>

bool dlcrt::impl::isDense(uint32_t rank, const int64_t *dims, const int64_t *strides) {
  if (!strides)
    return true;
  for (uint32_t i = 0; i < rank; ++i)
    if (dims[i] == 0)
      return true;
  int64_t expected = 1;
  for (uint32_t i = rank; i-- > 0;) {
    if (dims[i] != 1 && strides[i] != expected)
      return false;
    expected *= dims[i];
  }
  return true;
}

bool dlcrt::impl::stridedExtent(uint32_t elementBytes, uint32_t rank, const int64_t *dims, const int64_t *strides,
                                uint64_t &bytes) {
  uint64_t last = 0;
  bool ok = true;
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t step;
    if (dims[i] == 0) {
      bytes = 0;
      return true;
    }
    ok = ok && strides[i] >= 0 && !__builtin_mul_overflow(uint64_t(dims[i] - 1), uint64_t(strides[i]), &step) &&
         !__builtin_add_overflow(last, step, &last);
  }
  return ok && !__builtin_add_overflow(last, uint64_t(1), &last) &&
         !__builtin_mul_overflow(last, uint64_t(elementBytes), &bytes);
}

/// Calls row(strided offset in elements, dense offset in elements) for each row along the last dimension.
template <typename Row> static void forEachRow(uint32_t rank, const int64_t *dims, const int64_t *strides, Row row) {
  int64_t index[DLCRT_MAX_RANK] = {}, offset = 0, dense = 0;
  for (uint32_t i = 0; i < rank; ++i)
    if (dims[i] == 0)
      return;
  int64_t length = rank ? dims[rank - 1] : 1;
  while (true) {
    row(offset, dense);
    dense += length;
    uint32_t i = rank ? rank - 1 : 0;
    while (i > 0) { // the odometer of all dims but the last
      --i;
      offset += strides[i];
      if (++index[i] < dims[i])
        break;
      offset -= strides[i] * dims[i];
      index[i] = 0;
      if (i == 0)
        return;
    }
    if (rank <= 1)
      return;
  }
}

template <int bytes> static void copyElements(char *to, int64_t toStep, const char *from, int64_t fromStep, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    memcpy(to + i * toStep, from + i * fromStep, bytes);
}

/// Steps are in bytes.
static void copyRow(char *to, int64_t toStep, const char *from, int64_t fromStep, uint32_t elementBytes, int64_t n) {
  if (toStep == elementBytes && fromStep == elementBytes) {
    memcpy(to, from, size_t(n) * elementBytes);
    return;
  }
  switch (elementBytes) {
  case 1:
    return copyElements<1>(to, toStep, from, fromStep, n);
  case 2:
    return copyElements<2>(to, toStep, from, fromStep, n);
  case 4:
    return copyElements<4>(to, toStep, from, fromStep, n);
  case 8:
    return copyElements<8>(to, toStep, from, fromStep, n);
  default:
    return copyElements<16>(to, toStep, from, fromStep, n);
  }
}

void dlcrt::impl::copyFromStrided(void *dense, const void *strided, uint32_t elementBytes, uint32_t rank,
                                  const int64_t *dims, const int64_t *strides) {
  int64_t length = rank ? dims[rank - 1] : 1, step = rank ? strides[rank - 1] * int64_t(elementBytes) : elementBytes;
  forEachRow(rank, dims, strides, [&](int64_t from, int64_t to) {
    copyRow(static_cast<char *>(dense) + to * elementBytes, elementBytes,
            static_cast<const char *>(strided) + from * int64_t(elementBytes), step, elementBytes, length);
  });
}

void dlcrt::impl::copyToStrided(void *strided, const void *dense, uint32_t elementBytes, uint32_t rank,
                                const int64_t *dims, const int64_t *strides) {
  int64_t length = rank ? dims[rank - 1] : 1, step = rank ? strides[rank - 1] * int64_t(elementBytes) : elementBytes;
  forEachRow(rank, dims, strides, [&](int64_t to, int64_t from) {
    copyRow(static_cast<char *>(strided) + to * int64_t(elementBytes), step,
            static_cast<const char *>(dense) + from * elementBytes, elementBytes, elementBytes, length);
  });
}
