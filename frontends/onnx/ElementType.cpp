// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementType.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using onnx::TensorProto;

namespace dlc {

namespace {
struct Row {
  int onnxType;
  Type (*make)(MLIRContext *);
};
} // namespace

template <typename FloatT> static Type floatType(MLIRContext *context) { return FloatT::get(context); }
template <unsigned width, IntegerType::SignednessSemantics sign = IntegerType::Signless>
static Type intType(MLIRContext *context) {
  return IntegerType::get(context, width, sign);
}

static constexpr Row kTypes[] = {
    {TensorProto::FLOAT, floatType<Float32Type>},
    {TensorProto::DOUBLE, floatType<Float64Type>},
    {TensorProto::FLOAT16, floatType<Float16Type>},
    {TensorProto::BFLOAT16, floatType<BFloat16Type>},
    {TensorProto::INT8, intType<8>},
    {TensorProto::INT16, intType<16>},
    {TensorProto::INT32, intType<32>},
    {TensorProto::INT64, intType<64>},
    {TensorProto::UINT8, intType<8, IntegerType::Unsigned>},
    {TensorProto::UINT16, intType<16, IntegerType::Unsigned>},
    {TensorProto::UINT32, intType<32, IntegerType::Unsigned>},
    {TensorProto::UINT64, intType<64, IntegerType::Unsigned>},
    {TensorProto::BOOL, intType<1>},
    {TensorProto::FLOAT8E4M3FN, floatType<Float8E4M3FNType>},
    {TensorProto::FLOAT8E4M3FNUZ, floatType<Float8E4M3FNUZType>},
    {TensorProto::FLOAT8E5M2, floatType<Float8E5M2Type>},
    {TensorProto::FLOAT8E5M2FNUZ, floatType<Float8E5M2FNUZType>},
    {TensorProto::FLOAT8E8M0, floatType<Float8E8M0FNUType>},
    {TensorProto::FLOAT4E2M1, floatType<Float4E2M1FNType>},
    {TensorProto::INT4, intType<4>},
    {TensorProto::UINT4, intType<4, IntegerType::Unsigned>},
    {TensorProto::INT2, intType<2>},
    {TensorProto::UINT2, intType<2, IntegerType::Unsigned>},
};

Type elementTypeFor(MLIRContext *context, int onnxType) {
  for (const Row &row : kTypes)
    if (row.onnxType == onnxType)
      return row.make(context);
  return {};
}

int onnxTypeFor(Type elementType) {
  for (const Row &row : kTypes)
    if (row.make(elementType.getContext()) == elementType)
      return row.onnxType;
  return TensorProto::UNDEFINED;
}

std::string typeName(int onnxType) {
  if (!onnx::TensorProto_DataType_IsValid(onnxType))
    return "unknown (" + std::to_string(onnxType) + ")";
  return StringRef(onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(onnxType))).lower();
}

std::string typeName(Type elementType) { return typeName(onnxTypeFor(elementType)); }

unsigned bitsPerElement(Type elementType) { return elementType.isInteger(1) ? 8 : elementType.getIntOrFloatBitWidth(); }

std::string printable(StringRef name) {
  constexpr size_t kMost = 120;
  std::string text;
  for (char c : name.take_front(kMost)) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      text += "\\x" + llvm::toHex(StringRef(&c, 1), /*LowerCase=*/true);
    else
      text += c;
  }
  if (name.size() > kMost)
    text += "...";
  return text;
}

std::string quote(StringRef name) { return "'" + printable(name) + "'"; }

std::string listText(ArrayRef<int64_t> numbers) {
  std::string text = "[";
  for (auto [i, number] : llvm::enumerate(numbers)) {
    if (i == 16) {
      text += ", ...";
      break;
    }
    text += (i ? ", " : "") + std::to_string(number);
  }
  return text + "]";
}

} // namespace dlc
