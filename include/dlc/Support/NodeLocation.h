// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// ONNX nodes as MLIR locations and back, so that every later message and the module's debug table can name the node.
//
// The node number 17, named "conv1", of type Conv in model.onnx is loc("conv1"("Conv"("model.onnx":17:0))): a name location
// around a name location around a file location whose line is the node's number. Passes that merge ops fuse locations.

#ifndef DLC_SUPPORT_NODELOCATION_H
#define DLC_SUPPORT_NODELOCATION_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace dlc {

struct NodeRef {
  std::string file;   // without folder, so that results do not depend on where a model lies
  unsigned index = 0; // position in its graph, subgraphs counted in order of appearance
  std::string opType; // "Conv", "com.microsoft.Gelu"
  std::string name;   // may be empty

  /// "node 17 'conv1' (Conv)", without the name where there is none
  std::string toString() const;
  bool operator==(const NodeRef &other) const = default;
};

mlir::Location nodeLocation(mlir::MLIRContext *context, const NodeRef &node);
/// All nodes that a location speaks of, each once, in order.
llvm::SmallVector<NodeRef> nodesOf(mlir::Location location);

} // namespace dlc

#endif
