// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/WeightStore.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

namespace dlc {

std::string WeightStore::add(llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  auto digest = llvm::BLAKE3::hash<16>(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  std::string key = llvm::toHex(digest, /*LowerCase=*/true);
  std::lock_guard lock(mutex);
  entries.try_emplace(key, Entry{bytes, std::move(owner)});
  return key;
}

std::optional<llvm::ArrayRef<char>> WeightStore::find(llvm::StringRef key) const {
  std::lock_guard lock(mutex);
  auto found = entries.find(key);
  if (found == entries.end())
    return std::nullopt;
  return found->second.bytes;
}

} // namespace dlc
