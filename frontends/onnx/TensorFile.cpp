// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Frontends/OnnxTensor.h"
#include "dlc/Support/Format.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>
#include <limits>

namespace dlc {

using onnx::TensorProto;

/// Bits of one element; 0 for strings and for numbers that are no type.
static unsigned bitsOf(int32_t dtype) {
  switch (dtype) {
  case TensorProto::COMPLEX128:
    return 128;
  case TensorProto::DOUBLE:
  case TensorProto::INT64:
  case TensorProto::UINT64:
  case TensorProto::COMPLEX64:
    return 64;
  case TensorProto::FLOAT:
  case TensorProto::INT32:
  case TensorProto::UINT32:
    return 32;
  case TensorProto::INT16:
  case TensorProto::UINT16:
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
    return 16;
  case TensorProto::INT8:
  case TensorProto::UINT8:
  case TensorProto::BOOL:
  case TensorProto::FLOAT8E4M3FN:
  case TensorProto::FLOAT8E4M3FNUZ:
  case TensorProto::FLOAT8E5M2:
  case TensorProto::FLOAT8E5M2FNUZ:
  case TensorProto::FLOAT8E8M0:
    return 8;
  case TensorProto::INT4:
  case TensorProto::UINT4:
  case TensorProto::FLOAT4E2M1:
    return 4;
  case TensorProto::INT2:
  case TensorProto::UINT2:
    return 2;
  default:
    return 0;
  }
}

/// Appends each entry as a `To`, which is how the field keeps it.
template <typename To, typename Field> static void append(std::vector<char> &bytes, const Field &field) {
  size_t at = bytes.size();
  bytes.resize(at + sizeof(To) * field.size());
  for (int i = 0; i < field.size(); ++i, at += sizeof(To)) {
    To value = static_cast<To>(field.Get(i));
    std::memcpy(bytes.data() + at, &value, sizeof(To));
  }
}

static void takeTypedField(const TensorProto &proto, std::vector<char> &bytes) {
  switch (proto.data_type()) {
  case TensorProto::FLOAT:
  case TensorProto::COMPLEX64:
    return append<float>(bytes, proto.float_data());
  case TensorProto::DOUBLE:
  case TensorProto::COMPLEX128:
    return append<double>(bytes, proto.double_data());
  case TensorProto::INT64:
    return append<int64_t>(bytes, proto.int64_data());
  case TensorProto::UINT64:
    return append<uint64_t>(bytes, proto.uint64_data());
  case TensorProto::UINT32:
    return append<uint32_t>(bytes, proto.uint64_data());
  case TensorProto::INT32:
    return append<int32_t>(bytes, proto.int32_data());
  default: // narrow types share int32_data; sub-byte ones put one packed byte into each entry
    if (bitsOf(proto.data_type()) == 16)
      return append<uint16_t>(bytes, proto.int32_data());
    return append<uint8_t>(bytes, proto.int32_data());
  }
}

llvm::Expected<HostTensor> readTensorFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read '{}': {}", path, buffer.getError().message());
  TensorProto proto;
  size_t size = (*buffer)->getBufferSize();
  if (size > std::numeric_limits<int>::max() || !proto.ParseFromArray((*buffer)->getBufferStart(), static_cast<int>(size)))
    return makeError("'{}' is not an ONNX TensorProto", path);
  if (proto.data_location() == TensorProto::EXTERNAL)
    return makeError("'{}' keeps its values in another file, which is not read here", path);

  HostTensor tensor;
  tensor.name = proto.name();
  tensor.dtype = proto.data_type();
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  uint64_t elements = 1;
  for (int64_t dim : tensor.dims) {
    bool overflow = dim < 0;
    elements = overflow ? 0 : llvm::SaturatingMultiply<uint64_t>(elements, dim, &overflow);
    if (overflow)
      return makeError("'{}': the dims of the tensor are negative or too large", path);
  }
  if (tensor.dtype == TensorProto::STRING) {
    tensor.strings.assign(proto.string_data().begin(), proto.string_data().end());
    if (tensor.strings.size() != elements)
      return makeError("'{}' holds {} strings, and its dims need {}", path, tensor.strings.size(), elements);
    return tensor;
  }
  unsigned bits = bitsOf(tensor.dtype);
  if (bits == 0)
    return makeError("'{}' is not a tensor: element type {} is not one of ONNX's", path, tensor.dtype);
  if (proto.has_raw_data())
    tensor.bytes.assign(proto.raw_data().begin(), proto.raw_data().end());
  else
    takeTypedField(proto, tensor.bytes);
  bool overflow = false;
  uint64_t needed = llvm::SaturatingMultiply<uint64_t>(elements, bits, &overflow);
  needed = needed / 8 + (needed % 8 != 0);
  if (overflow || tensor.bytes.size() != needed)
    return makeError("'{}' holds {} bytes, and its dims need {}", path, tensor.bytes.size(), needed);
  return tensor;
}

llvm::Expected<llvm::SmallVector<char, 0>> tensorProtoBytes(const HostTensor &tensor) {
  TensorProto proto;
  proto.set_name(tensor.name);
  proto.set_data_type(tensor.dtype);
  for (int64_t dim : tensor.dims)
    proto.add_dims(dim);
  if (tensor.dtype == TensorProto::STRING)
    for (const std::string &text : tensor.strings)
      proto.add_string_data(text);
  else
    proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
  size_t size = proto.ByteSizeLong();
  if (size > std::numeric_limits<int>::max())
    return makeError("a tensor of {} does not fit into an ONNX file; --format npy does", formatBytes(tensor.bytes.size()));
  llvm::SmallVector<char, 0> bytes;
  bytes.resize_for_overwrite(size);
  if (!proto.SerializeToArray(bytes.data(), static_cast<int>(size)))
    return makeError("tensor '{}' cannot be written as a TensorProto", tensor.name);
  return bytes;
}

} // namespace dlc
