// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Pipeline/WeightsFile.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Support/Format.h"
#include "dlc/Support/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace dlc {

static constexpr llvm::StringLiteral kMagic = "DLCWGT\r\n";
static constexpr uint32_t kVersion = 1;
static constexpr uint64_t kAlignment = 64;
static constexpr uint64_t kHeaderBytes = 16, kEntryBytes = 32, kKeyBytes = 16;

std::set<std::string> weightKeysOf(mlir::Operation *op) {
  std::set<std::string> keys;
  mlir::AttrTypeWalker walker;
  walker.addWalk([&](WeightAttr weight) { keys.insert(weight.getKey().str()); });
  op->walk([&](mlir::Operation *inner) { walker.walk(inner->getAttrDictionary()); });
  return keys;
}

llvm::Error writeWeightsFile(llvm::StringRef path, const std::set<std::string> &keys, const WeightStore &store) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  std::vector<std::pair<std::string, llvm::ArrayRef<char>>> entries;
  for (const std::string &key : keys) {
    std::optional<llvm::ArrayRef<char>> bytes = store.find(key);
    std::string raw;
    if (!bytes || !llvm::tryGetFromHex(key, raw) || raw.size() != kKeyBytes)
      return makeError("cannot write '{}': the program names a weight {} that is not there", path, key);
    entries.emplace_back(std::move(raw), *bytes);
  }

  llvm::raw_ostream &os = file->os();
  llvm::support::endian::Writer writer(os, llvm::endianness::little);
  os << kMagic;
  writer.write<uint32_t>(kVersion);
  writer.write<uint32_t>(entries.size());
  uint64_t offset = kHeaderBytes + kEntryBytes * entries.size();
  for (const auto &[key, bytes] : entries) {
    offset = llvm::alignTo(offset, kAlignment);
    os << key;
    writer.write<uint64_t>(offset);
    writer.write<uint64_t>(bytes.size());
    offset += bytes.size();
  }
  for (const auto &[key, bytes] : entries) {
    os.write_zeros(llvm::offsetToAlignment(os.tell(), llvm::Align(kAlignment)));
    os.write(bytes.data(), bytes.size());
  }
  return file->commit();
}

llvm::Error readWeightsFile(llvm::StringRef path, WeightStore &store) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return makeError("cannot read the weights in '{}': {}", path, buffer.getError().message());
  std::shared_ptr<llvm::MemoryBuffer> owner = std::move(*buffer);
  llvm::StringRef data = owner->getBuffer();
  auto damaged = [&](llvm::StringRef what) { return makeError("'{}' is not a usable weights file: {}", path, what); };

  if (data.size() < kHeaderBytes || !data.starts_with(kMagic))
    return damaged("it does not start as one");
  const char *at = data.data() + kMagic.size();
  if (uint32_t version = llvm::support::endian::read32le(at); version != kVersion)
    return damaged(fmt::format("its version is {}, and this program reads {}", version, kVersion));
  uint64_t count = llvm::support::endian::read32le(at + 4);
  if (count > (data.size() - kHeaderBytes) / kEntryBytes)
    return damaged("it is cut short");
  for (uint64_t i = 0; i < count; ++i) {
    const char *entry = data.data() + kHeaderBytes + kEntryBytes * i;
    std::string key = llvm::toHex(llvm::StringRef(entry, kKeyBytes), /*LowerCase=*/true);
    uint64_t offset = llvm::support::endian::read64le(entry + kKeyBytes);
    uint64_t bytes = llvm::support::endian::read64le(entry + kKeyBytes + 8);
    if (offset > data.size() || bytes > data.size() - offset)
      return damaged("it is cut short");
    if (store.add(llvm::ArrayRef<char>(data.data() + offset, bytes), owner) != key)
      return damaged(fmt::format("the bytes of weight {} have another hash", key));
  }
  return llvm::Error::success();
}

} // namespace dlc
