// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Weights.h"
#include "ElementType.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Support/Format.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::Expected;
using onnx::TensorProto;

namespace dlc {

//===----------------------------------------------------------------------===//
// External files
//===----------------------------------------------------------------------===//

Expected<ExternalFiles::File> ExternalFiles::open(StringRef location) {
  auto known = files.find(location);
  if (known != files.end())
    return known->second;
  Expected<File> file = map(location);
  if (file)
    files[location] = *file;
  return file;
}

Expected<ExternalFiles::File> ExternalFiles::map(StringRef location) {
  namespace fs = llvm::sys::fs;
  namespace path = llvm::sys::path;
  if (folder.empty())
    return makeError("the model is in memory and has no folder to look for external data in");
  if (location.empty() || location.contains('\0'))
    return makeError("the location of its external data is no file name");
  if (path::is_absolute(location))
    return makeError("its external data lie at the absolute path {}; only files below the model's folder are read", quote(location));
  for (StringRef part : llvm::make_range(path::begin(location), path::end(location)))
    if (part == "..")
      return makeError("its external data lie at {}, which leaves the model's folder; only files below it are read", quote(location));

  // Links are followed to their end, which must be below the folder too.
  SmallString<256> wanted(folder), home, found;
  path::append(wanted, location);
  if (std::error_code error = fs::real_path(folder, home))
    return makeError("the model's folder cannot be read: {}", error.message());
  if (std::error_code error = fs::real_path(wanted, found))
    return makeError("its external data {} cannot be read: {}", quote(location), error.message());
  auto rest = std::mismatch(path::begin(found), path::end(found), path::begin(home), path::end(home));
  if (rest.second != path::end(home))
    return makeError("its external data {} are a link that leaves the model's folder; only files below it are read", quote(location));

  fs::file_status status;
  if (std::error_code error = fs::status(found, status))
    return makeError("its external data {} cannot be read: {}", quote(location), error.message());
  if (status.type() != fs::file_type::regular_file)
    return makeError("its external data {} are not a regular file", quote(location));
  if (status.getSize() == 0)
    return File{};
  Expected<fs::file_t> handle = fs::openNativeFileForRead(found);
  if (!handle)
    return makeError("its external data {} cannot be read: {}", quote(location), llvm::toString(handle.takeError()));
  std::error_code error;
  auto region = std::make_shared<fs::mapped_file_region>(*handle, fs::mapped_file_region::readonly, status.getSize(), 0, error);
  fs::closeFile(*handle);
  if (error)
    return makeError("its external data {} cannot be mapped: {}", quote(location), error.message());
  return File{ArrayRef(region->const_data(), region->size()), region};
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Expected<RankedTensorType> tensorTypeOf(MLIRContext *context, const TensorProto &tensor) {
  Type element = elementTypeFor(context, tensor.data_type());
  if (!element)
    return makeError("its element type is {}, which dlc does not support", typeName(tensor.data_type()));
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  if (llvm::any_of(dims, [](int64_t dim) { return dim < 0; }))
    return makeError("it has a negative dimension: {}", listText(dims));
  int64_t elements = 1;
  for (int64_t dim : dims) {
    std::optional<int64_t> product = llvm::checkedMul(elements, dim);
    if (!product || *product > INT64_MAX / 64)
      return makeError("its shape {} is larger than any memory", listText(dims));
    elements = *product;
  }
  return RankedTensorType::get(dims, element);
}

/// Copies the numbers of a typed field; nothing when one does not fit the element.
template <typename To, typename Field> static bool convert(const Field &field, std::string &bytes) {
  bytes.resize(field.size() * sizeof(To));
  char *out = bytes.data();
  for (auto number : field) {
    To element = static_cast<To>(number);
    if constexpr (!std::is_same_v<To, std::decay_t<decltype(number)>>)
      if (static_cast<decltype(number)>(element) != number)
        return false;
    memcpy(out, &element, sizeof(To));
    out += sizeof(To);
  }
  return true;
}

/// The bytes of a tensor whose data stand in the field for its type, which has so many entries.
static Expected<std::string> typedBytes(const TensorProto &tensor, int64_t entries) {
  std::string bytes;
  int64_t count = 0;
  bool fits = true;
  auto from = [&](const auto &field, auto convertTo) {
    count = field.size();
    fits = count != entries || convertTo(field, bytes);
  };
#define DLC_CONVERT(TYPE) [](const auto &field, std::string &bytes) { return convert<TYPE>(field, bytes); }
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    from(tensor.float_data(), DLC_CONVERT(float));
    break;
  case TensorProto::DOUBLE:
    from(tensor.double_data(), DLC_CONVERT(double));
    break;
  case TensorProto::INT64:
    from(tensor.int64_data(), DLC_CONVERT(int64_t));
    break;
  case TensorProto::UINT64:
    from(tensor.uint64_data(), DLC_CONVERT(uint64_t));
    break;
  case TensorProto::UINT32:
    from(tensor.uint64_data(), DLC_CONVERT(uint32_t));
    break;
  case TensorProto::INT32:
    from(tensor.int32_data(), DLC_CONVERT(int32_t));
    break;
  case TensorProto::INT16:
    from(tensor.int32_data(), DLC_CONVERT(int16_t));
    break;
  case TensorProto::INT8:
    from(tensor.int32_data(), DLC_CONVERT(int8_t));
    break;
  case TensorProto::UINT16:
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
    from(tensor.int32_data(), DLC_CONVERT(uint16_t));
    break;
  default: // one byte: an element, or several packed ones
    from(tensor.int32_data(), DLC_CONVERT(uint8_t));
    break;
  }
#undef DLC_CONVERT
  if (count != entries)
    return makeError("it holds {} elements, its shape {} needs {}", count,
                     listText(SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end())), entries);
  if (!fits)
    return makeError("it holds a number that is no {}", typeName(tensor.data_type()));
  return bytes;
}

/// Makes bools 0 or 1, whatever the file says; copies only where it must.
static TypedAttr boolConstant(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  if (llvm::all_of(bytes, [](char byte) { return byte == 0 || byte == 1; }))
    return makeConstant(type, bytes, std::move(owner));
  auto copy = std::make_shared<std::string>(bytes.data(), bytes.size());
  for (char &byte : *copy)
    byte = byte != 0;
  return makeConstant(type, *copy, copy);
}

/// Gives each of the packed elements a byte of its own (see storageElementType in dlc/IR/DimExpr.h).
static TypedAttr packedConstant(RankedTensorType type, ArrayRef<char> bytes) {
  unsigned width = type.getElementTypeBitWidth(), perByte = 8 / width;
  auto copy = std::make_shared<std::string>(type.getNumElements(), 0);
  for (auto [i, element] : llvm::enumerate(*copy)) {
    auto top = static_cast<uint8_t>(static_cast<uint8_t>(bytes[i / perByte]) << (8 - width - i % perByte * width));
    element = static_cast<char>(type.getElementType().isSignlessInteger() ? static_cast<int8_t>(top) >> (8 - width) : top >> (8 - width));
  }
  return makeConstant(type, *copy, copy);
}

/// `bytes` are as in the file.
static TypedAttr constant(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  if (isSubByte(type.getElementType()))
    return packedConstant(type, bytes);
  if (type.getElementType().isInteger(1))
    return boolConstant(type, bytes, std::move(owner));
  return makeConstant(type, bytes, std::move(owner));
}

Expected<TypedAttr> Weights::readExternal(const TensorProto &tensor, RankedTensorType type, uint64_t size) {
  StringRef location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    StringRef key = entry.key(), text = entry.value();
    uint64_t number = 0;
    if (key == "location") {
      location = text;
    } else if (key == "offset" || key == "length") {
      if (text.getAsInteger(10, number))
        return makeError("the {} of its external data is no number: {}", key, quote(text));
      if (key == "offset")
        offset = number;
      else
        length = number;
    }
  }
  if (length && *length != size)
    return makeError("its external data have {} bytes, its type {} needs {}", *length,
                     listText(type.getShape()) + " of " + typeName(type.getElementType()), size);
  Expected<ExternalFiles::File> file = files.open(location);
  if (!file)
    return file.takeError();
  if (offset > file->bytes.size() || size > file->bytes.size() - offset)
    return makeError("its external data are bytes {} to {} of {}, which has only {}", offset, offset + size, quote(location),
                     file->bytes.size());
  return constant(type, file->bytes.slice(offset, size), file->owner);
}

Expected<TypedAttr> Weights::readNew(const TensorProto &tensor, bool take) {
  Expected<RankedTensorType> type = tensorTypeOf(context, tensor);
  if (!type)
    return type.takeError();
  if (tensor.has_segment())
    return makeError("it is a segment of a larger tensor, which dlc does not support");
  int64_t elements = type->getNumElements();
  uint64_t size = llvm::divideCeil(static_cast<uint64_t>(elements) * bitsPerElement(type->getElementType()), 8);
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return readExternal(tensor, *type, size);
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != size)
      return makeError("it holds {} bytes of raw_data, its type {} of {} needs {}", tensor.raw_data().size(),
                       listText(type->getShape()), typeName(type->getElementType()), size);
    auto owner = std::make_shared<std::string>();
    if (take)
      *owner = std::move(*const_cast<TensorProto &>(tensor).mutable_raw_data());
    else
      *owner = tensor.raw_data();
    return constant(*type, *owner, owner);
  }
  Expected<std::string> bytes = typedBytes(tensor, isSubByte(type->getElementType()) ? size : elements);
  if (!bytes)
    return bytes.takeError();
  auto owner = std::make_shared<std::string>(std::move(*bytes));
  return constant(*type, *owner, owner);
}

Expected<TypedAttr> Weights::read(const TensorProto &tensor, bool take) {
  TypedAttr &value = known[&tensor];
  if (value)
    return value;
  Expected<TypedAttr> read = readNew(tensor, take);
  if (read)
    value = *read;
  return read;
}

} // namespace dlc
