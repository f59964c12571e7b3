// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Support/NodeLocation.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace dlc {

std::string NodeRef::toString() const {
  std::string text = "node " + std::to_string(index);
  if (!name.empty())
    text += " '" + name + "'";
  return text + " (" + opType + ")";
}

Location nodeLocation(MLIRContext *context, const NodeRef &node) {
  Location file = FileLineColLoc::get(context, node.file, node.index, 0);
  Location type = NameLoc::get(StringAttr::get(context, node.opType), file);
  return NameLoc::get(StringAttr::get(context, node.name), type);
}

static void collect(Location location, SmallVectorImpl<NodeRef> &nodes) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      collect(part, nodes);
    return;
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return collect(call.getCaller(), nodes);
  auto name = dyn_cast<NameLoc>(location);
  if (!name)
    return;
  auto type = dyn_cast<NameLoc>(name.getChildLoc());
  auto file = type ? dyn_cast<FileLineColLoc>(type.getChildLoc()) : FileLineColLoc();
  if (!file)
    return collect(name.getChildLoc(), nodes);
  NodeRef node{file.getFilename().str(), file.getLine(), type.getName().str(), name.getName().str()};
  if (!llvm::is_contained(nodes, node))
    nodes.push_back(node);
}

SmallVector<NodeRef> nodesOf(Location location) {
  SmallVector<NodeRef> nodes;
  collect(location, nodes);
  return nodes;
}

} // namespace dlc
