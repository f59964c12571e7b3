// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Compiles kernels given as text, maps the image and calls them as the runtime would.

#ifndef DLC_TEST_BACKENDS_CPU_KERNELRUNNER_H
#define DLC_TEST_BACKENDS_CPU_KERNELRUNNER_H

#include "dlc/Plan/Plan.h"
#include "dlc/Target/BackendRegistry.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <string>
#include <vector>

namespace dlc::test {

class KernelRunner {
public:
  /// `text`: plan.kernel ops. Check `error` before use.
  KernelRunner(llvm::StringRef text, llvm::StringRef target, const BackendOptions &options = {});
  ~KernelRunner();

  std::string error;
  std::vector<char> image;
  std::vector<int32_t> imports;

  struct Kernel {
    int64_t entry, stack, scratch;
  };
  std::map<std::string, Kernel> kernels;

  /// Runs tiles [begin, end) and returns the status.
  uint32_t run(llvm::StringRef kernel, llvm::ArrayRef<void *> buffers, llvm::ArrayRef<int64_t> scalars, uint32_t begin, uint32_t end) const;

private:
  mlir::MLIRContext context;
  void *code = nullptr;
  size_t codeBytes = 0;
};

/// Whether this machine can run code for `target`.
bool canRun(llvm::StringRef target);

/// The baseline and this machine.
std::vector<std::string> testTargets();

} // namespace dlc::test

#endif
