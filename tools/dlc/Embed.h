// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Modules for programs that have them inside: an object or an archive, and a header that declares it.

#ifndef DLC_TOOLS_DLC_EMBED_H
#define DLC_TOOLS_DLC_EMBED_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace dlc {

/// The header that stands beside FILE.o or FILE.a: FILE.h.
std::string headerPathOf(llvm::StringRef output);

/// Whether `output` can have a header beside it: not where the two would be one file, or a header that dlc did not write would be lost.
llvm::Error checkHeader(llvm::StringRef output);

/// Writes the module as an object, or an archive with that object, and its header. `source`: the name of the model, for the header.
/// Returns the bytes of the object or archive.
llvm::Expected<uint64_t> writeEmbedded(llvm::ArrayRef<char> module, llvm::StringRef output, bool isArchive, llvm::StringRef source);

} // namespace dlc

#endif
