// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TensorFiles.h"
#include "dlc/Support/Format.h"
#include "dlc/Support/OutputFile.h"
#include "dlcrt/runtime.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace dlc {

std::string fileNameOf(llvm::StringRef tensorName) {
  std::string name = tensorName.str();
  for (char &c : name)
    if (!llvm::isAlnum(c) && c != '-' && c != '_' && c != '.')
      c = '_';
  return name;
}

//===----------------------------------------------------------------------===//
// NumPy
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kNpyMagic("\x93NUMPY");

static constexpr std::pair<llvm::StringLiteral, int32_t> kNpyTypes[] = {
    {"<f4", DLCRT_DTYPE_FLOAT32}, {"|u1", DLCRT_DTYPE_UINT8},    {"|i1", DLCRT_DTYPE_INT8},      {"<u2", DLCRT_DTYPE_UINT16},
    {"<i2", DLCRT_DTYPE_INT16},   {"<i4", DLCRT_DTYPE_INT32},    {"<i8", DLCRT_DTYPE_INT64},     {"|b1", DLCRT_DTYPE_BOOL},
    {"<f2", DLCRT_DTYPE_FLOAT16}, {"<f8", DLCRT_DTYPE_FLOAT64},  {"<u4", DLCRT_DTYPE_UINT32},    {"<u8", DLCRT_DTYPE_UINT64},
    {"<c8", DLCRT_DTYPE_COMPLEX64}, {"<c16", DLCRT_DTYPE_COMPLEX128},
};

/// How NumPy would call the elements of a type it does not have, as ml_dtypes and we write them; empty for other types.
static llvm::StringRef npyStandIn(int32_t dtype) {
  switch (dtype) {
  case DLCRT_DTYPE_BFLOAT16:
    return "<V2";
  case DLCRT_DTYPE_FLOAT8E4M3FN:
  case DLCRT_DTYPE_FLOAT8E4M3FNUZ:
  case DLCRT_DTYPE_FLOAT8E5M2:
  case DLCRT_DTYPE_FLOAT8E5M2FNUZ:
  case DLCRT_DTYPE_FLOAT8E8M0:
    return "|V1";
  case DLCRT_DTYPE_FLOAT4E2M1:
  case DLCRT_DTYPE_UINT4:
  case DLCRT_DTYPE_UINT2:
    return "|u1";
  case DLCRT_DTYPE_INT4:
  case DLCRT_DTYPE_INT2:
    return "|i1";
  default:
    return {};
  }
}

/// Whether elements that NumPy calls `type` can be ones of a type that it does not have. It writes some of ml_dtypes as f1.
static bool canHold(llvm::StringRef type, int32_t dtype) {
  llvm::StringRef standIn = npyStandIn(dtype);
  return type.size() == 3 && !standIn.empty() && type[0] != '>' && type[2] == standIn[2] &&
         (type[1] == 'V' || type[1] == 'u' || type[1] == standIn[1] || type.ends_with("f1"));
}

/// Elements of fewer than 8 bits: from one a byte to packed, and back.
static std::vector<char> pack(llvm::StringRef elements, uint32_t bits) {
  std::vector<char> packed((elements.size() * bits + 7) / 8);
  for (size_t i = 0; i < elements.size(); ++i)
    packed[i * bits / 8] |= static_cast<char>((elements[i] & ((1u << bits) - 1)) << (i * bits % 8));
  return packed;
}

static std::vector<char> unpack(llvm::ArrayRef<char> packed, size_t count, int32_t dtype) {
  uint32_t bits = dlcrt_dtype_bits(dtype);
  std::vector<char> elements(count);
  for (size_t i = 0; i < count; ++i) {
    auto top = static_cast<uint8_t>(static_cast<uint8_t>(packed[i * bits / 8]) << (8 - bits - i * bits % 8));
    elements[i] = static_cast<char>(npyStandIn(dtype)[1] == 'i' ? static_cast<int8_t>(top) >> (8 - bits) : top >> (8 - bits));
  }
  return elements;
}

/// The text behind `'KEY':` in the header's dictionary.
static llvm::StringRef npyField(llvm::StringRef header, llvm::StringRef key) {
  size_t at = header.find(key);
  if (at == llvm::StringRef::npos)
    return {};
  return header.drop_front(at + key.size()).ltrim(" :");
}

llvm::Expected<HostTensor> readNpy(llvm::StringRef path, int32_t dtype) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read '{}': {}", path, buffer.getError().message());
  llvm::StringRef data = (*buffer)->getBuffer();
  auto wrong = [&](llvm::StringRef what) { return makeError("'{}' is not a usable .npy file: {}", path, what); };
  if (data.size() < 12 || !data.starts_with(kNpyMagic))
    return wrong("it does not start as one");
  unsigned major = static_cast<unsigned char>(data[6]);
  if (major < 1 || major > 3)
    return wrong(fmt::format("its version is {}", major));
  size_t headerAt = major == 1 ? 10 : 12;
  size_t headerBytes = major == 1 ? llvm::support::endian::read16le(data.data() + 8) : llvm::support::endian::read32le(data.data() + 8);
  if (headerBytes > data.size() - headerAt)
    return wrong("it is cut short");
  llvm::StringRef header = data.substr(headerAt, headerBytes);
  llvm::StringRef values = data.drop_front(headerAt + headerBytes);

  HostTensor tensor;
  llvm::StringRef type = npyField(header, "'descr'").ltrim("'").split('\'').first;
  for (auto [name, known] : kNpyTypes)
    if (type == name)
      tensor.dtype = known;
  if (canHold(type, dtype))
    tensor.dtype = dtype;
  if (tensor.dtype == 0)
    return wrong(fmt::format("element type {} is not supported", type));
  if (!npyField(header, "'fortran_order'").starts_with("False"))
    return wrong("it is in Fortran order");
  llvm::StringRef shape = npyField(header, "'shape'");
  if (!shape.consume_front("("))
    return wrong("it has no shape");
  llvm::SmallVector<llvm::StringRef> words;
  shape.split(')').first.split(words, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words) {
    if (word.trim().empty())
      continue;
    int64_t dim = 0;
    if (word.trim().getAsInteger(10, dim) || dim < 0)
      return wrong("its shape is not one");
    tensor.dims.push_back(dim);
  }
  bool isPacked = dlcrt_dtype_bits(tensor.dtype) < 8;
  uint64_t needed = dlcrt_tensor_bytes(isPacked ? DLCRT_DTYPE_UINT8 : tensor.dtype, static_cast<uint32_t>(tensor.dims.size()), tensor.dims.data());
  if (values.size() != needed)
    return wrong(fmt::format("it holds {} bytes of values, and its shape needs {}", values.size(), needed));
  if (isPacked)
    tensor.bytes = pack(values, dlcrt_dtype_bits(tensor.dtype));
  else
    tensor.bytes.assign(values.begin(), values.end());
  return tensor;
}

llvm::Expected<llvm::SmallVector<char, 0>> npyBytes(const HostTensor &tensor) {
  llvm::StringRef type = npyStandIn(tensor.dtype);
  for (auto [name, dtype] : kNpyTypes)
    if (tensor.dtype == dtype)
      type = name;
  if (type.empty())
    return makeError("output '{}': NumPy has no type for {}; --format pb does", tensor.name, dlcrt_dtype_name(tensor.dtype));
  std::string shape;
  for (int64_t dim : tensor.dims)
    shape += fmt::format("{}, ", dim);
  if (tensor.dims.size() == 1)
    shape.pop_back(); // "(3,)"
  else if (!shape.empty())
    shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  header.append(63 - (10 + header.size()) % 64, ' '); // values start at a multiple of 64
  header += '\n';
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  char length[2];
  llvm::support::endian::write16le(length, static_cast<uint16_t>(header.size()));
  os << kNpyMagic << '\x01' << '\x00';
  os.write(length, 2);
  os << header;
  std::vector<char> elements;
  if (dlcrt_dtype_bits(tensor.dtype) < 8)
    elements = unpack(tensor.bytes, dlcrt_tensor_bytes(DLCRT_DTYPE_UINT8, static_cast<uint32_t>(tensor.dims.size()), tensor.dims.data()), tensor.dtype);
  const std::vector<char> &values = elements.empty() ? tensor.bytes : elements;
  os.write(values.data(), values.size());
  return bytes;
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

static std::string join(llvm::StringRef folder, const std::string &file) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, file);
  return path.str().str();
}

llvm::Expected<std::optional<HostTensor>> readTensor(llvm::StringRef folder, llvm::StringRef prefix, unsigned index, llvm::StringRef name,
                                                       int32_t dtype) {
  auto read = [&](llvm::Expected<HostTensor> tensor) -> llvm::Expected<std::optional<HostTensor>> {
    if (!tensor)
      return tensor.takeError();
    return std::optional(std::move(*tensor));
  };
  if (std::string path = join(folder, fmt::format("{}_{}.pb", prefix, index)); llvm::sys::fs::exists(path))
    return read(readTensorFile(path));
  for (const std::string &file : {fileNameOf(name) + ".npy", fmt::format("{}_{}.npy", prefix, index)})
    if (std::string path = join(folder, file); llvm::sys::fs::exists(path))
      return read(readNpy(path, dtype));
  return std::optional<HostTensor>();
}

llvm::Error writeTensor(llvm::StringRef folder, llvm::StringRef prefix, unsigned index, const HostTensor &tensor, bool npy) {
  llvm::Expected<llvm::SmallVector<char, 0>> bytes = npy ? npyBytes(tensor) : tensorProtoBytes(tensor);
  if (!bytes)
    return bytes.takeError();
  auto file = OutputFile::create(join(folder, npy ? fileNameOf(tensor.name) + ".npy" : fmt::format("{}_{}.pb", prefix, index)));
  if (!file)
    return file.takeError();
  file->os().write(bytes->data(), bytes->size());
  return file->commit();
}

} // namespace dlc
