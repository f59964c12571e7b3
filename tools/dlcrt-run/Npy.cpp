/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Npy.h"

#include "dlcrt/runtime.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

using namespace dlcrt_run;

/// How NumPy writes an element type; "V" for those it has none for.
static std::string descriptor(int32_t dtype) {
  switch (dtype) {
  case DLCRT_DTYPE_FLOAT16:
    return "<f2";
  case DLCRT_DTYPE_FLOAT32:
    return "<f4";
  case DLCRT_DTYPE_FLOAT64:
    return "<f8";
  case DLCRT_DTYPE_INT8:
  case DLCRT_DTYPE_INT4:
  case DLCRT_DTYPE_INT2:
    return "|i1";
  case DLCRT_DTYPE_INT16:
    return "<i2";
  case DLCRT_DTYPE_INT32:
    return "<i4";
  case DLCRT_DTYPE_INT64:
    return "<i8";
  case DLCRT_DTYPE_UINT8:
  case DLCRT_DTYPE_UINT4:
  case DLCRT_DTYPE_UINT2:
  case DLCRT_DTYPE_FLOAT4E2M1:
    return "|u1";
  case DLCRT_DTYPE_UINT16:
    return "<u2";
  case DLCRT_DTYPE_UINT32:
    return "<u4";
  case DLCRT_DTYPE_UINT64:
    return "<u8";
  case DLCRT_DTYPE_BOOL:
    return "|b1";
  case DLCRT_DTYPE_COMPLEX64:
    return "<c8";
  case DLCRT_DTYPE_COMPLEX128:
    return "<c16";
  default:
    return dlcrt_dtype_bits(dtype) == 16 ? "<V2" : "|V1";
  }
}

/// Bytes of one element in the file.
static size_t fileElementBytes(int32_t dtype) {
  uint32_t bits = dlcrt_dtype_bits(dtype);
  return bits < 8 ? 1 : bits / 8;
}

/// Whether a file with this descriptor can hold the element type: it is the type's own, or raw bytes of the same size.
static bool matches(const std::string &found, int32_t dtype) {
  std::string wanted = descriptor(dtype);
  if (found == wanted)
    return true;
  if (found.size() < 3 || found[0] == '>')
    return false;
  bool sameSize = std::strtoul(found.c_str() + 2, nullptr, 10) == fileElementBytes(dtype);
  // NumPy writes some types of ml_dtypes as f1; f2 is another type than bfloat16.
  bool raw = found[1] == 'V' || (wanted[1] == 'V' && (found[1] == 'u' || found.compare(1, 2, "f1") == 0));
  return sameSize && (raw || (found[1] == wanted[1]));
}

/// Sub-byte elements: from one a byte to packed, and back.
static std::vector<uint8_t> pack(const std::vector<uint8_t> &loose, uint32_t bits) {
  std::vector<uint8_t> packed((loose.size() * bits + 7) / 8);
  for (size_t i = 0; i < loose.size(); ++i)
    packed[i * bits / 8] |= uint8_t((loose[i] & ((1u << bits) - 1)) << (i * bits % 8));
  return packed;
}

static std::vector<uint8_t> unpack(const std::vector<uint8_t> &packed, size_t count, int32_t dtype) {
  uint32_t bits = dlcrt_dtype_bits(dtype);
  bool isSigned = dtype == DLCRT_DTYPE_INT4 || dtype == DLCRT_DTYPE_INT2;
  std::vector<uint8_t> loose(count);
  for (size_t i = 0; i < count; ++i) {
    unsigned value = packed[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
    if (isSigned && value >> (bits - 1))
      value |= 0xffu << bits;
    loose[i] = uint8_t(value);
  }
  return loose;
}

static std::string readFile(const std::string &path, std::vector<uint8_t> &bytes) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return std::string("cannot open: ") + std::strerror(errno);
  uint8_t buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
    bytes.insert(bytes.end(), buffer, buffer + n);
  bool failed = std::ferror(file);
  std::fclose(file);
  return failed ? std::string("cannot read: ") + std::strerror(errno) : "";
}

/// The text after `'key':` in the header, which is a Python dictionary of three known entries.
static const char *valueOf(const std::string &header, const char *key) {
  size_t at = header.find(std::string("'") + key + "':");
  if (at == std::string::npos)
    return nullptr;
  const char *text = header.c_str() + at + std::strlen(key) + 3;
  return text + std::strspn(text, " ");
}

static bool parseShape(const char *text, std::vector<int64_t> &dims) {
  if (*text++ != '(')
    return false;
  while (true) {
    text += std::strspn(text, " ,");
    if (*text == ')')
      return true;
    char *end;
    errno = 0;
    long long dim = std::strtoll(text, &end, 10);
    if (end == text || dim < 0 || errno)
      return false;
    dims.push_back(dim);
    text = end;
  }
}

/// From column-major to row-major order.
static std::vector<uint8_t> transposed(const uint8_t *data, const std::vector<int64_t> &dims, size_t elementBytes,
                                       size_t count) {
  std::vector<uint8_t> result(count * elementBytes);
  std::vector<int64_t> index(dims.size());
  for (size_t from = 0; from < count; ++from) {
    size_t to = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      to = to * size_t(dims[d]) + size_t(index[d]);
    std::memcpy(&result[to * elementBytes], data + from * elementBytes, elementBytes);
    for (size_t d = 0; d < dims.size() && ++index[d] == dims[d]; ++d)
      index[d] = 0;
  }
  return result;
}

std::string dlcrt_run::readNpy(const std::string &path, int32_t dtype, Array &array) {
  std::vector<uint8_t> file;
  if (std::string wrong = readFile(path, file); !wrong.empty())
    return wrong;
  if (file.size() < 12 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0)
    return "not a .npy file";
  size_t lengthBytes = file[6] == 1 ? 2 : 4, begin = 8 + lengthBytes, length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= size_t(file[8 + i]) << (8 * i);
  if (file[6] < 1 || file[6] > 3 || length > file.size() - begin)
    return "a .npy file whose header is damaged";
  std::string header(file.begin() + long(begin), file.begin() + long(begin + length));
  const char *type = valueOf(header, "descr"), *order = valueOf(header, "fortran_order"),
             *shape = valueOf(header, "shape");
  if (!type || !order || !shape || !parseShape(shape, array.dims))
    return "a .npy file whose header is damaged";
  std::string found = *type == '\'' ? std::string(type + 1, std::strcspn(type + 1, "'")) : "a structure";
  if (!matches(found, dtype))
    return "its elements are '" + found + "', but " + dlcrt_dtype_name(dtype) + " is needed (in NumPy: '" +
           descriptor(dtype) + "')";

  uint64_t count = dlcrt_tensor_bytes(DLCRT_DTYPE_UINT8, uint32_t(array.dims.size()), array.dims.data());
  size_t elementBytes = fileElementBytes(dtype), there = file.size() - begin - length;
  if (count > there / elementBytes || count * elementBytes != there)
    return "it should hold " + std::to_string(count) + " elements of " + std::to_string(elementBytes) +
           " bytes, but holds " + std::to_string(there) + " bytes";
  const uint8_t *data = file.data() + begin + length;
  if (std::strncmp(order, "True", 4) == 0 && array.dims.size() > 1)
    array.bytes = transposed(data, array.dims, elementBytes, count);
  else
    array.bytes.assign(data, data + there);
  if (dlcrt_dtype_bits(dtype) < 8)
    array.bytes = pack(array.bytes, dlcrt_dtype_bits(dtype));
  array.dtype = dtype;
  return "";
}

std::string dlcrt_run::writeNpy(const std::string &path, const Array &array) {
  std::string shape;
  for (int64_t dim : array.dims)
    shape += std::to_string(dim) + (array.dims.size() == 1 ? "," : ", ");
  if (array.dims.size() > 1)
    shape.resize(shape.size() - 2);
  std::string header =
      "{'descr': '" + descriptor(array.dtype) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  uint64_t count = dlcrt_tensor_bytes(DLCRT_DTYPE_UINT8, uint32_t(array.dims.size()), array.dims.data());
  const std::vector<uint8_t> loose =
      dlcrt_dtype_bits(array.dtype) < 8 ? unpack(array.bytes, count, array.dtype) : std::vector<uint8_t>();
  const std::vector<uint8_t> &data = dlcrt_dtype_bits(array.dtype) < 8 ? loose : array.bytes;

  std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  FILE *file = std::fopen(temporary.c_str(), "wb");
  if (!file)
    return std::string("cannot write: ") + std::strerror(errno);
  const uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, uint8_t(header.size()), uint8_t(header.size() >> 8)};
  bool ok = std::fwrite(start, 1, sizeof(start), file) == sizeof(start) &&
            std::fwrite(header.data(), 1, header.size(), file) == header.size() &&
            std::fwrite(data.data(), 1, data.size(), file) == data.size();
  ok = std::fclose(file) == 0 && ok && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (ok)
    return "";
  std::string wrong = std::string("cannot write: ") + std::strerror(errno);
  std::remove(temporary.c_str());
  return wrong;
}
