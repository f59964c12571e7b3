// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// From LLVM IR to an object, and from objects to an image.

#ifndef DLC_BACKENDS_CPU_EMITOBJECT_H
#define DLC_BACKENDS_CPU_EMITOBJECT_H

#include "dlc/Target/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace dlc::cpu {

/// Optimises a module and compiles it to an ELF object. Thread-safe for modules of different contexts. `dumpPath`: where to write
/// the LLVM IR and assembly, without suffix; empty: nowhere.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, const Target &target, const std::string &dumpPath);

struct CodeImage {
  std::vector<char> bytes;          // position-independent code and constants
  llvm::StringMap<uint64_t> entries; // offsets of the symbols that were asked for
  llvm::StringMap<uint64_t> stack;   // frame bytes of each function
};

/// Links objects and the support functions that they need. The image depends on nothing outside it: names that it would have to
/// import, writable data, or addresses to be filled in at load time are errors.
llvm::Expected<CodeImage> linkImage(llvm::ArrayRef<llvm::StringRef> objects, llvm::ArrayRef<llvm::StringRef> symbols, const Target &target);

/// The object of KernelSupport.c.
llvm::StringRef supportObject(TargetArch arch);

} // namespace dlc::cpu

#endif
