/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dlcrt::impl;

uint32_t Module::findFunction(const char *function) const {
  for (uint32_t i = 0; i < functions.count; ++i)
    if (strcmp(string(functions[i].name), function) == 0)
      return i;
  return DLCRT_NO_INDEX;
}

const dlcrt_state_function *Module::stateUse(uint32_t function) const {
  for (const dlcrt_state_function &use : stateFunctions)
    if (use.function == function)
      return &use;
  return nullptr;
}

static void unmap(Module &module, Region &region) {
  if (region.owner == Region::System)
    munmap(region.data, region.bytes);
  else if (region.owner == Region::Allocator)
    module.memory.release(region.data, region.bytes);
  region = Region();
}

static void destroy(dlcrt_module *module) {
  unmap(*module, module->constants);
  unmap(*module, module->code);
  unmap(*module, module->file);
  Memory memory = module->memory;
  module->~dlcrt_module();
  memory.release(module, sizeof(dlcrt_module));
}

void dlcrt::impl::retain(Module &module) { module.references.fetch_add(1, std::memory_order_relaxed); }

void dlcrt::impl::release(Module &module) {
  if (module.references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(static_cast<dlcrt_module *>(&module));
}

static dlcrt_module *createModule(const char *name) {
  Memory memory;
  void *place = memory.allocate(sizeof(dlcrt_module), alignof(dlcrt_module));
  if (!place)
    return nullptr;
  dlcrt_module *module = new (place) dlcrt_module;
  if (!module->name.resize(strlen(name) + 1)) {
    destroy(module);
    return nullptr;
  }
  memcpy(module->name.data(), name, strlen(name));
  return module;
}

/// Memory for a copy of the module or its constants: huge pages where the system has them.
static Status copyRegion(Module &module, const void *data, uint64_t bytes, Region &region, Error *error) {
  region.data = static_cast<uint8_t *>(module.memory.allocate(bytes, DLCRT_CONST_ALIGNMENT));
  if (!region.data)
    return failOutOfMemory(error, "the module's bytes", bytes);
  region.bytes = bytes;
  region.owner = Region::Allocator;
  memcpy(region.data, data, bytes);
  return DLCRT_OK;
}

/// Code from a file is mapped from it, so that processes share its pages and no page is ever both writable and
/// executable.
static Status mapCode(Module &module, int file, Error *error) {
  uint64_t bytes = module.codeBytes.count;
  if (bytes == 0 || module.isStatic)
    return DLCRT_OK;
  void *code;
  if (file >= 0) {
    code =
        mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, off_t(module.codeBytes.data - module.file.data));
  } else {
    code = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code != MAP_FAILED) {
      memcpy(code, module.codeBytes.data, bytes);
      __builtin___clear_cache(static_cast<char *>(code), static_cast<char *>(code) + bytes);
      if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) {
        int reason = errno;
        munmap(code, bytes);
        errno = reason;
        code = MAP_FAILED;
      }
    }
  }
  if (code == MAP_FAILED)
    return fail(error, DLCRT_ERROR_IO, "cannot map the code as executable: %s%s", strerror(errno),
                errno == EPERM || errno == EACCES ? " (is the file system mounted noexec?)" : "");
  module.code.data = static_cast<uint8_t *>(code);
  module.code.bytes = bytes;
  module.code.owner = Region::System;
  return DLCRT_OK;
}

/// All that follows once the bytes are there. `file` = -1 for a module in memory.
static Status load(Module &module, int file, uint32_t flags, Error *error) {
  if (Status status = verifyModule(module, error))
    return status;
  if (Status status = mapCode(module, file, error))
    return status;
  if ((flags & DLCRT_MODULE_READ_CONSTANTS) && module.constantBytes.count && module.file.owner == Region::System) {
    if (Status status =
            copyRegion(module, module.constantBytes.data, module.constantBytes.count, module.constants, error))
      return status;
    module.constantBytes.data = module.constants.data;
  }
  if (flags & DLCRT_MODULE_VERIFY_CONSTANTS)
    return verifyConstants(module, error);
  return DLCRT_OK;
}

static Status mapFile(Module &module, const char *path, int &file, Error *error) {
  file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(error, DLCRT_ERROR_IO, "cannot open: %s", strerror(errno));
  struct stat info;
  if (fstat(file, &info) != 0)
    return fail(error, DLCRT_ERROR_IO, "cannot read: %s", strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(error, DLCRT_ERROR_IO, "not a regular file");
  if (uint64_t(info.st_size) < sizeof(dlcrt_file_header))
    return fail(error, DLCRT_ERROR_BAD_MODULE, "not a module: it has only %llu bytes",
                (unsigned long long)info.st_size);
  void *data = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED)
    return fail(error, DLCRT_ERROR_IO, "cannot map: %s", strerror(errno));
  module.file.data = static_cast<uint8_t *>(data);
  module.file.bytes = uint64_t(info.st_size);
  module.file.owner = Region::System;
  return DLCRT_OK;
}

static Status readOptions(const dlcrt_module_options *options, dlcrt_module_options &out, Error *error) {
  out = {sizeof(dlcrt_module_options), 0, nullptr};
  if (!options)
    return DLCRT_OK;
  if (Status status = readStruct(options, out, "dlcrt_module_options", error))
    return status;
  if (out.flags & ~(DLCRT_MODULE_READ_CONSTANTS | DLCRT_MODULE_VERIFY_CONSTANTS))
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "unknown module flags 0x%x", out.flags);
  return DLCRT_OK;
}

/// Hands the module out, or takes it down and says whose failure it was.
static Status finish(dlcrt_module *module, Status status, dlcrt_module **out, Error *error) {
  if (status == DLCRT_OK) {
    *out = module;
    return DLCRT_OK;
  }
  withPrefix(error, status, module->name.data());
  destroy(module);
  return status;
}

Status dlcrt::impl::openFile(const char *path, const dlcrt_module_options *options, dlcrt_module **out, Error *error) {
  dlcrt_module_options given;
  if (Status status = readOptions(options, given, error))
    return status;
  dlcrt_module *module = createModule(given.name ? given.name : path);
  if (!module)
    return failOutOfMemory(error, "the module", sizeof(Module));
  int file = -1;
  Status status = mapFile(*module, path, file, error);
  if (status == DLCRT_OK)
    status = load(*module, file, given.flags, error);
  if (file >= 0)
    close(file); // mappings stay
  return finish(module, status, out, error);
}

Status dlcrt::impl::openMemory(const void *data, uint64_t bytes, const dlcrt_module_options *options,
                               dlcrt_module **out, Error *error) {
  dlcrt_module_options given;
  if (Status status = readOptions(options, given, error))
    return status;
  dlcrt_module *module = createModule(given.name ? given.name : "module");
  if (!module)
    return failOutOfMemory(error, "the module", sizeof(Module));
  Status status = DLCRT_OK;
  if (bytes < sizeof(dlcrt_file_header)) {
    status = fail(error, DLCRT_ERROR_BAD_MODULE, "not a module: it has only %llu bytes", (unsigned long long)bytes);
  } else if (uintptr_t(data) % 64 != 0) {
    status = copyRegion(*module, data, bytes, module->file, error);
  } else {
    module->file.data = static_cast<uint8_t *>(const_cast<void *>(data));
    module->file.bytes = bytes;
  }
  if (status == DLCRT_OK)
    status = load(*module, -1, given.flags, error);
  return finish(module, status, out, error);
}

static Status takeStatic(Module &module, const dlcrt_static_module &data, Error *error) {
  if (uintptr_t(data.data) % DLCRT_STATIC_ALIGNMENT != 0 || uintptr_t(data.code) % DLCRT_STATIC_ALIGNMENT != 0)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "its pieces do not lie at multiples of %u bytes",
                DLCRT_STATIC_ALIGNMENT);
  if (!data.data || data.data_bytes < sizeof(dlcrt_file_header))
    return fail(error, DLCRT_ERROR_BAD_MODULE, "not a module: it has only %llu bytes",
                (unsigned long long)(data.data ? data.data_bytes : 0));
  if (!data.code && data.code_bytes)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "code is NULL");
  auto bytes = [](const void *data) { return static_cast<uint8_t *>(const_cast<void *>(data)); };
  module.file = {bytes(data.data), data.data_bytes, Region::Application};
  module.code = {bytes(data.code), data.code_bytes, Region::Application};
  module.isStatic = true;
  return DLCRT_OK;
}

Status dlcrt::impl::openStatic(const dlcrt_static_module *data, const dlcrt_module_options *options,
                               dlcrt_module **out, Error *error) {
  dlcrt_static_module known;
  if (Status status = readStruct(data, known, "dlcrt_static_module", error))
    return status;
  dlcrt_module_options given;
  if (Status status = readOptions(options, given, error))
    return status;
  dlcrt_module *module = createModule(given.name ? given.name : known.name ? known.name : "module");
  if (!module)
    return failOutOfMemory(error, "the module", sizeof(Module));
  Status status = takeStatic(*module, known, error);
  if (status == DLCRT_OK)
    status = load(*module, -1, given.flags, error);
  return finish(module, status, out, error);
}

const char *FunctionSymbols::nameOf(const void *self, int64_t symbol) {
  auto &symbols = *static_cast<const FunctionSymbols *>(self);
  if (uint64_t(symbol) >= symbols.function.symbol_count)
    return "?";
  return symbols.module.string(symbols.module.symbols[symbols.function.first_symbol + uint64_t(symbol)].name);
}

const char *StateSymbols::nameOf(const void *self, int64_t symbol) {
  const Module &module = static_cast<const StateSymbols *>(self)->module;
  return uint64_t(symbol) < module.stateSymbols.count ? module.string(module.stateSymbols[uint64_t(symbol)].name) : "?";
}
