// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dlc/Plan/PlanDialect.cpp.inc"
#include "dlc/Plan/PlanEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dlc/Plan/PlanTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dlc/Plan/PlanAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dlc/Plan/PlanOps.cpp.inc"

namespace dlc::plan {

void PlanDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dlc/Plan/PlanTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dlc/Plan/PlanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dlc/Plan/PlanOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Schedule: #plan.schedule<tiles = [8, 0], registers = [0, 16]>
//===----------------------------------------------------------------------===//

void ScheduleAttr::print(AsmPrinter &p) const {
  p << "<tiles = [" << getTiles() << "]";
  if (!getRegisters().empty())
    p << ", registers = [" << getRegisters() << "]";
  p << ">";
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> tiles, registers;
  auto parseList = [&](StringRef name, SmallVectorImpl<int64_t> &list) -> ParseResult {
    return failure(parser.parseKeyword(name) || parser.parseEqual() ||
                   parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parser.parseInteger(list.emplace_back()); }));
  };
  if (parser.parseLess() || parseList("tiles", tiles) ||
      (succeeded(parser.parseOptionalComma()) && parseList("registers", registers)) || parser.parseGreater())
    return {};
  return get(parser.getContext(), tiles, registers);
}

//===----------------------------------------------------------------------===//
// Kernel. plan.kernel @name #plan.kind<...> operands 2 destinations 1 scalars 1 {attributes} (%0: tensor<...>, ...) { body }
//===----------------------------------------------------------------------===//

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << " operands " << getOperandCount() << " destinations " << getDestinationCount() << " scalars " << getScalarCount();
  p.printOptionalAttrDict((*this)->getAttrs(), {"sym_name", "operandCount", "destinationCount", "scalarCount"});
  if (!hasBody())
    return;
  p << " (";
  llvm::interleaveComma(getBody().getArguments(), p, [&](BlockArgument argument) { p.printRegionArgument(argument); });
  p << ") ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  int64_t operands, destinations, scalars;
  if (parser.parseSymbolName(name, "sym_name", state.attributes) || parser.parseKeyword("operands") || parser.parseInteger(operands) ||
      parser.parseKeyword("destinations") || parser.parseInteger(destinations) || parser.parseKeyword("scalars") ||
      parser.parseInteger(scalars) || parser.parseOptionalAttrDict(state.attributes))
    return failure();
  state.addAttribute("operandCount", b.getI64IntegerAttr(operands));
  state.addAttribute("destinationCount", b.getI64IntegerAttr(destinations));
  state.addAttribute("scalarCount", b.getI64IntegerAttr(scalars));
  Region *body = state.addRegion();
  SmallVector<OpAsmParser::Argument> arguments;
  if (failed(parser.parseOptionalLParen()))
    return success();
  if (failed(parser.parseOptionalRParen()) &&
      (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::None, /*allowType=*/true) || parser.parseRParen()))
    return failure();
  return parser.parseRegion(*body, arguments);
}

bool KernelOp::isGroup() { return hasBody() && !getBody().front().empty() && isa<GroupOp>(getBody().front().front()); }

LogicalResult KernelOp::verify() {
  if (getDestinationCount() < 1)
    return emitOpError("needs at least one destination");
  if (!hasBody())
    return success();
  Block &block = getBody().front();
  if (isGroup())
    return success();
  uint64_t tensors = getOperandCount() + getDestinationCount();
  if (block.getNumArguments() != tensors + getScalarCount())
    return emitOpError("has ") << block.getNumArguments() << " block arguments for " << tensors << " tensors and " << getScalarCount() << " scalars";
  for (auto [i, type] : llvm::enumerate(block.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (i < tensors ? !tensor || tensor.getEncoding() : !type.isIndex())
      return emitOpError("argument ") << i << " must be " << (i < tensors ? "a ranked tensor without encoding" : "an index");
  }
  // Code generation may hold a body in other forms; only while it computes on tensors does it end like this.
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return success();
  if (yield.getNumOperands() != getDestinationCount())
    return emitOpError("yields ") << yield.getNumOperands() << " tensors for " << getDestinationCount() << " destinations";
  for (auto [i, type] : llvm::enumerate(yield.getOperandTypes()))
    if (type != block.getArgument(getOperandCount() + i).getType())
      return emitOpError("yields ") << type << " for a destination of type " << block.getArgument(getOperandCount() + i).getType();
  return success();
}

} // namespace dlc::plan
