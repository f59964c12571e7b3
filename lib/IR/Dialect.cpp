// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Dialect.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Endian.h"

using namespace mlir;

#include "dlc/IR/DlcDialect.cpp.inc"
#include "dlc/IR/Kinds.cpp.inc"
#include "dlc/IR/DlcInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dlc/IR/DlcAttrs.cpp.inc"

namespace dlc {

void DlcDialect::initialize() {
  weights = std::make_shared<WeightStore>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dlc/IR/DlcAttrs.cpp.inc"
      >();
  addStructureOps();
  addElementwiseOps();
  addContractionOps();
  addConvOps();
  addPoolOps();
  addResizeOps();
  addSampleOps();
  addReductionOps();
  addNormalizationOps();
  addMovementOps();
  addSelectionOps();
  addRecurrentOps();
  addAttentionOps();
  addKernelOps();
}

DimExpr elementwiseCost(Operation *op) {
  if (op->getNumResults() == 0 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return {};
  return productOfDims(op->getContext(), dimsOf(op->getResult(0).getType()));
}

DimExpr elementsOf(Value tensor) {
  return productOfDims(tensor.getContext(), storageDims(cast<RankedTensorType>(tensor.getType())));
}

DimExpr elementsReadBy(Operation *op, unsigned operand) {
  DimExpr elements = elementsOf(op->getOperand(operand));
  bool isMovement = cast<DlcOp>(op).role() == Role::Movement && op->getNumResults() == 1;
  return isMovement ? minDims(elements, elementsOf(op->getResult(0))) : elements;
}

unsigned rowAxesOf(DlcOp op) {
  SmallVector<int64_t> axes = op.reducedAxes();
  if (axes.empty())
    return 0;
  int64_t first = dimsOf(op->getOperand(0).getType()).size() - axes.size();
  return llvm::equal(axes, llvm::seq<int64_t>(first, first + axes.size())) ? axes.size() : 0;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

DenseElementsAttr splatOf(Value v) {
  auto constant = v.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return elements && elements.isSplat() ? elements : DenseElementsAttr();
}

/// Up to this many bytes a constant stands in the IR, where it can be read.
static constexpr size_t kInlineBytes = 256;

static unsigned bytesOfElement(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

std::optional<ConstantBytes> constantBytes(Attribute value) {
  if (auto weight = dyn_cast_or_null<WeightAttr>(value)) {
    auto *dialect = value.getContext()->getLoadedDialect<DlcDialect>();
    std::optional<ArrayRef<char>> data = dialect ? dialect->getWeights().find(weight.getKey()) : std::nullopt;
    if (!data)
      return std::nullopt;
    return ConstantBytes{*data, false, {}};
  }
  auto elements = dyn_cast_or_null<DenseElementsAttr>(value);
  if (!elements || !elements.getElementType().isIntOrFloat())
    return std::nullopt;
  ConstantBytes bytes;
  bytes.isSplat = elements.isSplat() && elements.getNumElements() > 1;
  if (elements.getElementType().isInteger(1)) { // packed into bits there
    if (bytes.isSplat) {
      bytes.owned.push_back(elements.getSplatValue<bool>());
    } else {
      for (bool element : elements.getValues<bool>())
        bytes.owned.push_back(element);
    }
    return bytes;
  }
  if (isSubByte(elements.getElementType())) { // attributes keep the upper bits as they like
    Type element = elements.getElementType();
    auto add = [&](APInt bits) { bytes.owned.push_back(static_cast<char>((element.isSignlessInteger() ? bits.sext(8) : bits.zext(8)).getZExtValue())); };
    unsigned count = bytes.isSplat ? 1 : elements.getNumElements();
    if (isa<FloatType>(element)) {
      for (APFloat number : llvm::make_range(elements.value_begin<APFloat>(), elements.value_begin<APFloat>() + count))
        add(number.bitcastToAPInt());
    } else {
      for (APInt number : llvm::make_range(elements.value_begin<APInt>(), elements.value_begin<APInt>() + count))
        add(number);
    }
    return bytes;
  }
  bytes.data = elements.getRawData();
  return bytes;
}

std::optional<SmallVector<int64_t>> constantIntegers(Attribute value, unsigned limit) {
  auto typed = dyn_cast_or_null<TypedAttr>(value);
  RankedTensorType type;
  if (auto weight = dyn_cast_or_null<WeightAttr>(value))
    type = weight.getType();
  else if (typed)
    type = dyn_cast<RankedTensorType>(typed.getType());
  if (!type || !type.getElementType().isInteger() || type.getNumElements() > limit)
    return std::nullopt;
  std::optional<ConstantBytes> bytes = constantBytes(value);
  if (!bytes)
    return std::nullopt;
  ArrayRef<char> data = bytes->owned.empty() ? bytes->data : ArrayRef<char>(bytes->owned);
  auto integer = cast<IntegerType>(type.getElementType());
  unsigned width = bytesOfElement(integer); // in a byte, the upper bits are those of the number
  SmallVector<int64_t> result;
  for (int64_t i = 0, e = type.getNumElements(); i != e; ++i) {
    uint64_t raw = 0;
    memcpy(&raw, data.data() + (bytes->isSplat ? 0 : i * width), width);
    unsigned shift = 64 - 8 * width;
    bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
    result.push_back(isUnsigned ? static_cast<int64_t>(raw) : static_cast<int64_t>(raw << shift) >> shift);
  }
  return result;
}

TypedAttr makeConstant(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() <= kInlineBytes) {
    if (type.getElementType().isInteger(1)) {
      SmallVector<bool> values;
      for (char byte : bytes)
        values.push_back(byte != 0);
      return DenseElementsAttr::get(type, values);
    }
    if (isSubByte(type.getElementType())) {
      unsigned width = type.getElementTypeBitWidth();
      SmallVector<APInt> values;
      for (char byte : bytes)
        values.push_back(APInt(width, static_cast<uint8_t>(byte), /*isSigned=*/false, /*implicitTrunc=*/true));
      if (isa<IntegerType>(type.getElementType()))
        return DenseElementsAttr::get(type, values);
      SmallVector<APFloat> numbers;
      for (const APInt &bits : values)
        numbers.push_back(APFloat(cast<FloatType>(type.getElementType()).getFloatSemantics(), bits));
      return DenseElementsAttr::get(type, numbers);
    }
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  }
  auto *dialect = type.getContext()->getOrLoadDialect<DlcDialect>();
  return WeightAttr::get(type.getContext(), dialect->getWeights().add(bytes, std::move(owner)), type);
}

} // namespace dlc
