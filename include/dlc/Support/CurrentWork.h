// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What each thread is busy with, so that a crash report can name the node. A scope is two stores; passes that walk over ops
// may open one for each op.

#ifndef DLC_SUPPORT_CURRENTWORK_H
#define DLC_SUPPORT_CURRENTWORK_H

#include "mlir/IR/Location.h"

namespace dlc {

class CurrentWork {
public:
  /// `what` is a literal or outlives the scope: a pass's name, "import".
  CurrentWork(llvm::StringRef what, mlir::Location location) : what(what), location(location), outer(innermost) { innermost = this; }
  ~CurrentWork() { innermost = outer; }
  CurrentWork(const CurrentWork &) = delete;
  CurrentWork &operator=(const CurrentWork &) = delete;

  llvm::StringRef getWhat() const { return what; }
  mlir::Location getLocation() const { return location; }
  const CurrentWork *getOuter() const { return outer; }
  /// Of the calling thread; null when it does nothing for us.
  static const CurrentWork *get() { return innermost; }

private:
  llvm::StringRef what;
  mlir::Location location;
  const CurrentWork *outer;
  static thread_local const CurrentWork *innermost;
};

} // namespace dlc

#endif
