/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Modules that are part of the program: dlcrt_module_open_static.
#include "Hash.h"
#include "TestModel.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

using namespace dlcrt;
using namespace dlcrt::test;

namespace {

/// The pieces of a module, as a linker would have placed them.
class StaticModule {
public:
  explicit StaticModule(Bytes bytes) {
    // CODE becomes the last section; where it was nobody looks.
    dlcrt_section &code = *findSection(bytes, DLCRT_SECTION_CODE);
    map(this->code, bytes.data() + code.offset, code.bytes);
    code.offset = (bytes.size() + DLCRT_CODE_ALIGNMENT - 1) / DLCRT_CODE_ALIGNMENT * DLCRT_CODE_ALIGNMENT;
    auto &header = *reinterpret_cast<dlcrt_file_header *>(bytes.data());
    header.file_bytes = code.offset + code.bytes;
    seal(bytes);
    map(data, bytes.data(), bytes.size());
    mprotect(this->code, code.bytes, PROT_READ | PROT_EXEC);
    desc = {sizeof(desc), 0, "built_in", data, bytes.size(), this->code, code.bytes};
  }
  ~StaticModule() {
    munmap(data, desc.data_bytes);
    munmap(code, desc.code_bytes);
  }

  dlcrt_section &section(uint32_t kind) {
    auto &header = *reinterpret_cast<dlcrt_file_header *>(data);
    auto *table = reinterpret_cast<dlcrt_section *>(data + sizeof(header));
    return *std::find_if(table, table + header.section_count, [&](dlcrt_section &s) { return s.kind == kind; });
  }
  /// Makes the hash of the section table right again.
  template <typename Memory> static void seal(Memory &memory) {
    auto &header = *reinterpret_cast<dlcrt_file_header *>(&memory[0]);
    header.header_hash = impl::xxh64(&memory[sizeof(header)], header.section_count * sizeof(dlcrt_section));
  }
  std::string openError(dlcrt_status expected = DLCRT_ERROR_BAD_MODULE) const {
    Error error;
    Module module = Module::open(desc, error);
    EXPECT_FALSE(module);
    EXPECT_EQ(error.code(), expected) << error.message();
    return error.message();
  }

  dlcrt_static_module desc;
  uint8_t *data = nullptr, *code = nullptr;

private:
  static void map(uint8_t *&to, const uint8_t *bytes, size_t count) {
    to = static_cast<uint8_t *>(mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memcpy(to, bytes, count);
    __builtin___clear_cache(reinterpret_cast<char *>(to), reinterpret_cast<char *>(to) + count);
  }
};

} // namespace

TEST(Static, Runs) {
  StaticModule pieces(addModule().build());
  // The first piece is only read.
  ASSERT_EQ(mprotect(pieces.data, pieces.desc.data_bytes, PROT_READ), 0);
  Error error;
  Module module = Module::open(pieces.desc, error);
  ASSERT_TRUE(module) << error.message();
  EXPECT_TRUE(module.verify(error)) << error.message();
  EXPECT_EQ(module.info().code_bytes, pieces.desc.code_bytes);
  Instance instance = Instance::create(module, error);
  ASSERT_TRUE(instance) << error.message();
  module = Module(); // the instance keeps it
  std::vector<float> a = iotaFloats(9), b = iotaFloats(9, 1);
  int64_t dims[] = {9};
  ASSERT_TRUE(instance.bindInput(0, tensor(a.data(), dims), error) && instance.bindInput(1, tensor(b.data(), dims), error));
  ASSERT_TRUE(instance.run(error)) << error.message();
  EXPECT_EQ(instance.output(0, error).elements<float>()[8], 17);
}

TEST(Static, TwoAtOnce) {
  StaticModule pieces(addModule().build());
  Error error;
  Module first = Module::open(pieces.desc, error), second = Module::open(pieces.desc, error);
  EXPECT_TRUE(first && second) << error.message();
}

TEST(Static, IsChecked) {
  {
    StaticModule pieces(addModule().build());
    mprotect(pieces.code, pieces.desc.code_bytes, PROT_READ | PROT_WRITE);
    pieces.code[0] ^= 1;
    EXPECT_EQ(pieces.openError(), "built_in: damaged: section CODE does not have the hash it should have");
  }
  StaticModule pieces(addModule().build());
  pieces.desc.code_bytes -= 8;
  EXPECT_EQ(pieces.openError(), "built_in: its code is not the last section, or not the code it was made with");
  pieces.desc.code_bytes += 8;
  pieces.section(DLCRT_SECTION_CODE).offset = 0;
  StaticModule::seal(pieces.data);
  EXPECT_EQ(pieces.openError(), "built_in: its code is not the last section, or not the code it was made with");
  pieces.section(DLCRT_SECTION_CODE).kind = DLCRT_SECTION_STATE;
  StaticModule::seal(pieces.data);
  EXPECT_EQ(pieces.openError(), "built_in: section STATE lies outside the file");
  pieces.desc.data_bytes = 100;
  EXPECT_EQ(pieces.openError(), "built_in: damaged header: 9 sections");
  pieces.desc.data_bytes = 10;
  EXPECT_EQ(pieces.openError(), "built_in: not a module: it has only 10 bytes");
}

TEST(Static, WrongArguments) {
  StaticModule pieces(addModule().build());
  auto refused = [&](auto change) {
    dlcrt_static_module kept = pieces.desc;
    change(pieces.desc);
    std::string message = pieces.openError(DLCRT_ERROR_INVALID_ARGUMENT);
    pieces.desc = kept;
    return message;
  };
  EXPECT_EQ(refused([](dlcrt_static_module &m) { m.struct_size = 8; }),
            "dlcrt_static_module: struct_size is 8, but has to be at least 48");
  EXPECT_EQ(refused([](dlcrt_static_module &m) { m.code = static_cast<const char *>(m.code) + 64; }),
            "built_in: its pieces do not lie at multiples of 4096 bytes");
  EXPECT_EQ(refused([](dlcrt_static_module &m) { m.code = nullptr; }), "built_in: code is NULL");
  EXPECT_EQ(refused([](dlcrt_static_module &m) {
              m.name = nullptr;
              m.data = static_cast<const char *>(m.data) + 1;
            }),
            "module: its pieces do not lie at multiples of 4096 bytes");
  dlcrt_module *module = nullptr;
  EXPECT_EQ(dlcrt_module_open_static(nullptr, nullptr, &module, nullptr), DLCRT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(dlcrt_module_open_static(&pieces.desc, nullptr, nullptr, nullptr), DLCRT_ERROR_INVALID_ARGUMENT);
}
