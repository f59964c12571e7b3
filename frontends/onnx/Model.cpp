// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Model.h"
#include "dlc/Support/Format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "onnx/onnx_pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using llvm::ArrayRef;
using llvm::Expected;
using llvm::StringRef;

namespace dlc {

namespace {

/// Walks the wire format of a model along the fields that can hold graphs, and builds nothing: so that a file nested too
/// deep is refused before anything recurses into it.
class DepthScanner {
public:
  enum class Kind { Model, Training, Graph, Function, Node, Attribute };
  enum class Result { Fine, Damaged, TooDeep };

  Result scan(ArrayRef<uint8_t> bytes, Kind kind, unsigned depth) {
    if (kind == Kind::Graph && ++depth > kMaxDepth)
      return Result::TooDeep;
    while (!bytes.empty()) {
      std::optional<uint64_t> tag = varint(bytes);
      if (!tag)
        return Result::Damaged;
      switch (*tag & 7) {
      case 0:
        if (!varint(bytes))
          return Result::Damaged;
        break;
      case 1:
      case 5: {
        size_t size = (*tag & 7) == 1 ? 8 : 4;
        if (bytes.size() < size)
          return Result::Damaged;
        bytes = bytes.drop_front(size);
        break;
      }
      case 2: {
        std::optional<uint64_t> size = varint(bytes);
        if (!size || *size > bytes.size())
          return Result::Damaged;
        if (std::optional<Kind> inner = child(kind, *tag >> 3))
          if (Result result = scan(bytes.take_front(*size), *inner, depth); result != Result::Fine)
            return result;
        bytes = bytes.drop_front(*size);
        break;
      }
      default: // groups, which ONNX does not use
        return Result::Damaged;
      }
    }
    return Result::Fine;
  }

private:
  static std::optional<uint64_t> varint(ArrayRef<uint8_t> &bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < bytes.size(); ++i) {
      value |= static_cast<uint64_t>(bytes[i] & 0x7f) << (7 * i);
      if (bytes[i] < 0x80) {
        bytes = bytes.drop_front(i + 1);
        return value;
      }
    }
    return std::nullopt;
  }

  static std::optional<Kind> child(Kind kind, uint64_t field) {
    switch (kind) {
    case Kind::Model:
      return field == onnx::ModelProto::kGraphFieldNumber          ? std::optional(Kind::Graph)
             : field == onnx::ModelProto::kTrainingInfoFieldNumber ? std::optional(Kind::Training)
             : field == onnx::ModelProto::kFunctionsFieldNumber    ? std::optional(Kind::Function)
                                                                   : std::nullopt;
    case Kind::Training:
      return field <= onnx::TrainingInfoProto::kAlgorithmFieldNumber ? std::optional(Kind::Graph) : std::nullopt;
    case Kind::Graph:
      return field == onnx::GraphProto::kNodeFieldNumber ? std::optional(Kind::Node) : std::nullopt;
    case Kind::Function:
      return field == onnx::FunctionProto::kNodeFieldNumber ? std::optional(Kind::Node) : std::nullopt;
    case Kind::Node:
      return field == onnx::NodeProto::kAttributeFieldNumber ? std::optional(Kind::Attribute) : std::nullopt;
    case Kind::Attribute:
      return field == onnx::AttributeProto::kGFieldNumber || field == onnx::AttributeProto::kGraphsFieldNumber
                 ? std::optional(Kind::Graph)
                 : std::nullopt;
    }
    return std::nullopt;
  }
};

} // namespace

static llvm::Error checkDepth(ArrayRef<char> bytes) {
  if (bytes.empty())
    return makeError("not an ONNX model: the file is empty");
  if (bytes.size() > INT32_MAX)
    return makeError("not an ONNX model: {} is more than a protobuf message can be (2 GiB); keep the weights in external data",
                     formatBytes(bytes.size()));
  ArrayRef<uint8_t> data(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  switch (DepthScanner().scan(data, DepthScanner::Kind::Model, 0)) {
  case DepthScanner::Result::Fine:
    return llvm::Error::success();
  case DepthScanner::Result::Damaged:
    break;
  case DepthScanner::Result::TooDeep:
    return makeError("subgraphs are nested deeper than {}, the most that dlc follows", kMaxDepth);
  }
  return makeError("not an ONNX model: the file cannot be parsed; it is damaged, truncated, or of another kind");
}

static Expected<std::unique_ptr<onnx::ModelProto>> parse(google::protobuf::io::ZeroCopyInputStream &input) {
  google::protobuf::LogSilencer silence;
  auto model = std::make_unique<onnx::ModelProto>();
  google::protobuf::io::CodedInputStream stream(&input);
  stream.SetTotalBytesLimit(INT32_MAX);
  // A graph lies three messages deep in the one around it; types and tensors need a few more.
  stream.SetRecursionLimit(3 * kMaxDepth + 64);
  if (!model->MergeFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return makeError("not an ONNX model: the file cannot be parsed; it is damaged, truncated, or of another kind");
  if (!model->has_graph())
    return makeError("not an ONNX model: there is no graph in it");
  return model;
}

Expected<std::unique_ptr<onnx::ModelProto>> parseModel(ArrayRef<char> bytes) {
  if (llvm::Error error = checkDepth(bytes))
    return error;
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
  return parse(input);
}

Expected<std::unique_ptr<onnx::ModelProto>> readModel(StringRef path) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  if (std::error_code error = fs::status(path, status))
    return makeError("cannot be read: {}", error.message());
  if (status.type() == fs::file_type::directory_file)
    return makeError("cannot be read: it is a folder, not an ONNX model");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot be read: {}", buffer.getError().message());
  ArrayRef<char> bytes((*buffer)->getBufferStart(), (*buffer)->getBufferSize());
  constexpr size_t kLarge = 1 << 20;
  if (status.type() != fs::file_type::regular_file || bytes.size() < kLarge)
    return parseModel(bytes);

  // The look for depth touches only a few pages of a large file. Parsed from the map, all of it would be in memory twice.
  if (llvm::Error error = checkDepth(bytes))
    return error;
  buffer->reset();
  Expected<fs::file_t> file = fs::openNativeFileForRead(path);
  if (!file)
    return makeError("cannot be read: {}", llvm::toString(file.takeError()));
  google::protobuf::io::FileInputStream input(*file, kLarge);
  Expected<std::unique_ptr<onnx::ModelProto>> model = parse(input);
  fs::closeFile(*file);
  return model;
}

} // namespace dlc
