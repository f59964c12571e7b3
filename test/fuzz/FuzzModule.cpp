// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FuzzModule.h"

#include "Hash.h"
#include "dlcrt/format.h"

#include <cstdlib>
#include <cstring>

namespace dlcrt::fuzz {

std::vector<uint8_t> repaired(const uint8_t *data, size_t bytes) {
  std::vector<uint8_t> module(data, data + bytes);
  if (bytes < sizeof(dlcrt_file_header))
    return module;
  auto &header = *reinterpret_cast<dlcrt_file_header *>(module.data());
  memcpy(header.magic, DLCRT_FORMAT_MAGIC, sizeof(header.magic));
  header.major = DLCRT_FORMAT_MAJOR;
  header.minor = DLCRT_FORMAT_MINOR;
  header.file_bytes = bytes;
  uint64_t room = (bytes - sizeof(header)) / sizeof(dlcrt_section);
  if (header.section_count > room)
    return module;
  auto *sections = reinterpret_cast<dlcrt_section *>(module.data() + sizeof(header));
  for (uint32_t i = 0; i < header.section_count; ++i) {
    dlcrt_section &entry = sections[i];
    if (entry.offset > bytes || entry.bytes > bytes - entry.offset)
      continue;
    entry.hash = entry.kind == DLCRT_SECTION_CONST ? 0 : impl::xxh64(module.data() + entry.offset, entry.bytes);
  }
  header.header_hash = impl::xxh64(sections, header.section_count * sizeof(dlcrt_section));
  return module;
}

dlcrt_module *open(const std::vector<uint8_t> &bytes) {
  dlcrt_module *module = nullptr;
  dlcrt_error error = {};
  error.struct_size = sizeof(error);
  dlcrt_status status = dlcrt_module_open_memory(bytes.data(), bytes.size(), nullptr, &module, &error);
  if ((status == DLCRT_OK) != (module != nullptr) || (status != DLCRT_OK && error.message[0] == 0))
    abort(); // refused without a reason, or not refused and not there
  return module;
}

} // namespace dlcrt::fuzz
