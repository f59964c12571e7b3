// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// fmt for LLVM's strings, and the small text helpers that messages need.

#ifndef DLC_SUPPORT_FORMAT_H
#define DLC_SUPPORT_FORMAT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <fmt/format.h>
#include <string>

template <> struct fmt::formatter<llvm::StringRef> : fmt::formatter<fmt::string_view> {
  template <typename Context> auto format(llvm::StringRef text, Context &context) const {
    return fmt::formatter<fmt::string_view>::format(fmt::string_view(text.data(), text.size()), context);
  }
};

namespace dlc {

/// 1536 -> "1.5 KiB"
std::string formatBytes(uint64_t bytes);

/// The entry of `known` that `word` was probably meant to be; empty when none is near.
llvm::StringRef nearestWord(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> known);

/// An error whose text is fmt::format(...).
template <typename... Arguments> llvm::Error makeError(fmt::format_string<Arguments...> format, Arguments &&...arguments) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::Twine(fmt::format(format, std::forward<Arguments>(arguments)...)));
}

} // namespace dlc

#endif
