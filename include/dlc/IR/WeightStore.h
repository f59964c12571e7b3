// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Where the bytes of large constants live. Keyed by content, so equal weights are held once; the bytes are owned by whoever
// the store was told (a memory map, a parsed message) and never copied.

#ifndef DLC_IR_WEIGHTSTORE_H
#define DLC_IR_WEIGHTSTORE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace dlc {

/// Thread-safe.
class WeightStore {
public:
  /// Adds bytes and returns their key: 32 hexadecimal digits. `owner` keeps `bytes` alive.
  std::string add(llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner);
  /// The bytes of a key, or nothing.
  std::optional<llvm::ArrayRef<char>> find(llvm::StringRef key) const;

private:
  struct Entry {
    llvm::ArrayRef<char> bytes;
    std::shared_ptr<const void> owner;
  };
  mutable std::mutex mutex;
  llvm::StringMap<Entry> entries;
};

} // namespace dlc

#endif
