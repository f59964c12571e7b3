// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Entries of merged kernels (see merge-launches): a tile goes to the part that it belongs to, with that part's own arguments.

#ifndef DLC_BACKENDS_CPU_EMITDISPATCH_H
#define DLC_BACKENDS_CPU_EMITDISPATCH_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include <memory>
#include <string>

namespace dlc::cpu {

struct MergedKernel {
  struct Part {
    std::string name; // of its entry
    uint32_t sources, destinations, scalars;
  };
  std::string name;
  llvm::SmallVector<Part> parts;
};

/// A function for each, with the calling convention of dlcrt/kernel_abi.h. It gets the sources of all parts, then their destinations; of the
/// scalars first the number of tiles of each part.
std::unique_ptr<llvm::Module> emitDispatch(llvm::LLVMContext &context, llvm::ArrayRef<MergedKernel> kernels);

} // namespace dlc::cpu

#endif
