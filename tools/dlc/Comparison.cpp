// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Comparison.h"
#include "dlc/Support/Format.h"
#include "dlcrt/runtime.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>
#include <limits>

namespace dlc {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// How the numbers of an element type lie in memory; a complex element is two of them.
struct NumberFormat {
  uint32_t bits = 0;
  bool isFloat = false, isSigned = false;
  const llvm::fltSemantics *semantics = nullptr; // of floats that C++ has no type for
};

} // namespace

static NumberFormat formatOf(int32_t dtype) {
  uint32_t bits = dlcrt_dtype_bits(dtype);
  switch (dtype) {
  case DLCRT_DTYPE_FLOAT32:
  case DLCRT_DTYPE_FLOAT64:
  case DLCRT_DTYPE_FLOAT16:
  case DLCRT_DTYPE_BFLOAT16:
    return {bits, true, true, nullptr};
  case DLCRT_DTYPE_COMPLEX64:
  case DLCRT_DTYPE_COMPLEX128:
    return {bits / 2, true, true, nullptr};
  case DLCRT_DTYPE_FLOAT8E4M3FN:
    return {bits, true, true, &llvm::APFloat::Float8E4M3FN()};
  case DLCRT_DTYPE_FLOAT8E4M3FNUZ:
    return {bits, true, true, &llvm::APFloat::Float8E4M3FNUZ()};
  case DLCRT_DTYPE_FLOAT8E5M2:
    return {bits, true, true, &llvm::APFloat::Float8E5M2()};
  case DLCRT_DTYPE_FLOAT8E5M2FNUZ:
    return {bits, true, true, &llvm::APFloat::Float8E5M2FNUZ()};
  case DLCRT_DTYPE_FLOAT8E8M0:
    return {bits, true, true, &llvm::APFloat::Float8E8M0FNU()};
  case DLCRT_DTYPE_FLOAT4E2M1:
    return {bits, true, true, &llvm::APFloat::Float4E2M1FN()};
  case DLCRT_DTYPE_INT8:
  case DLCRT_DTYPE_INT16:
  case DLCRT_DTYPE_INT32:
  case DLCRT_DTYPE_INT64:
  case DLCRT_DTYPE_INT4:
  case DLCRT_DTYPE_INT2:
    return {bits, false, true, nullptr};
  default:
    return {bits, false, false, nullptr};
  }
}

/// The bits of number `i`. Those of fewer than 8 bits are packed, the first in the lowest.
static uint64_t rawAt(const std::vector<char> &bytes, uint32_t bits, size_t i) {
  uint64_t raw = 0;
  if (bits >= 8) {
    std::memcpy(&raw, bytes.data() + i * (bits / 8), bits / 8);
    return raw;
  }
  return (static_cast<uint8_t>(bytes[i * bits / 8]) >> (i * bits % 8)) & ((1u << bits) - 1);
}

static double toDouble(const NumberFormat &format, int32_t dtype, uint64_t raw) {
  if (!format.isFloat) {
    if (!format.isSigned)
      return static_cast<double>(raw);
    unsigned unused = 64 - format.bits;
    return static_cast<double>(static_cast<int64_t>(raw << unused) >> unused);
  }
  if (format.semantics)
    return llvm::APFloat(*format.semantics, llvm::APInt(format.bits, raw)).convertToDouble();
  if (format.bits == 64)
    return llvm::bit_cast<double>(raw);
  if (format.bits == 32)
    return llvm::bit_cast<float>(static_cast<uint32_t>(raw));
  if (dtype == DLCRT_DTYPE_BFLOAT16)
    return llvm::bit_cast<float>(static_cast<uint32_t>(raw << 16));
  return static_cast<double>(llvm::bit_cast<_Float16>(static_cast<uint16_t>(raw)));
}

std::string typeText(const HostTensor &tensor) {
  return fmt::format("{}[{}]", dlcrt_dtype_name(tensor.dtype), fmt::join(tensor.dims, ", "));
}

llvm::Expected<Comparison> compareTensors(const HostTensor &tensor, const HostTensor &reference, Tolerance tolerance) {
  if (tensor.dtype != reference.dtype || tensor.dims != reference.dims)
    return makeError("output '{}': the model gives {}, the reference {}", tensor.name, typeText(tensor),
                     typeText(reference));
  NumberFormat format = formatOf(tensor.dtype);
  if (format.bits == 0 || tensor.dtype == DLCRT_DTYPE_STRING)
    return makeError("output '{}': elements of type {} cannot be compared", tensor.name,
                     dlcrt_dtype_name(tensor.dtype));
  Comparison result;
  result.elements = 1;
  for (int64_t dim : tensor.dims)
    result.elements *= static_cast<size_t>(dim);
  bool isComplex = dlcrt_dtype_bits(tensor.dtype) != format.bits;
  double dot = 0, ownSquares = 0, squares = 0, errorSquares = 0;
  for (size_t i = 0, e = result.elements * (isComplex ? 2 : 1); i < e; ++i) {
    uint64_t rawOwn = rawAt(tensor.bytes, format.bits, i), rawOther = rawAt(reference.bytes, format.bits, i);
    double own = toDouble(format, tensor.dtype, rawOwn), other = toDouble(format, tensor.dtype, rawOther);
    bool isWithin = rawOwn == rawOther;
    if (!std::isfinite(own) || !std::isfinite(other)) {
      isWithin = own == other || (std::isnan(own) && std::isnan(other));
      if (!isWithin)
        result.maxAbs = result.maxRel = errorSquares = kInfinity;
    } else {
      double difference = std::fabs(own - other), size = std::fabs(other);
      result.maxAbs = std::fmax(result.maxAbs, difference);
      if (size != 0)
        result.maxRel = std::fmax(result.maxRel, difference / size);
      if (format.isFloat)
        isWithin = difference <= tolerance.absolute + tolerance.relative * size;
      dot += own * other;
      ownSquares += own * own;
      squares += other * other;
      errorSquares += difference * difference;
    }
    if (!isWithin && result.mismatches++ == 0) {
      result.firstMismatch = isComplex ? i / 2 : i;
      result.value = own;
      result.reference = other;
    }
  }
  if (ownSquares != 0 || squares != 0)
    result.cosine =
        ownSquares == 0 || squares == 0 ? 0 : std::fmin(1, dot / (std::sqrt(ownSquares) * std::sqrt(squares)));
  result.snr = errorSquares == 0 ? kInfinity : 10 * std::log10(squares / errorSquares);
  return result;
}

} // namespace dlc
