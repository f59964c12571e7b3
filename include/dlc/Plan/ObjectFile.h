// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// A module as an object file, for programs that have it inside.

#ifndef DLC_PLAN_OBJECTFILE_H
#define DLC_PLAN_OBJECTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace dlc {

/// A relocatable ELF object for the one architecture of the module's variants: all but CODE in .rodata.NAME, CODE in .text.NAME with a
/// local symbol NAME_TARGET_KERNEL at each entry, and in .data.rel.ro.NAME the global NAME_module, a dlcrt_static_module. `name` is a C
/// identifier. The bytes depend on nothing but the arguments.
llvm::Expected<llvm::SmallVector<char, 0>> writeObject(llvm::ArrayRef<char> module, llvm::StringRef name);

/// An archive with one member, that object.
llvm::Expected<llvm::SmallVector<char, 0>> writeArchive(llvm::ArrayRef<char> object, llvm::StringRef memberName);

/// `text` with '_' for each byte that a C identifier cannot have, and in front of a digit.
std::string cIdentifier(llvm::StringRef text);

} // namespace dlc

#endif
