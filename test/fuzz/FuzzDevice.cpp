// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In place of runtime/cpu/CpuDevice.cpp: memory is the host's, and a launch runs nothing, since the code of a damaged module may do anything. Copies, fills and
// what the interpreter reads go to memory that AddressSanitizer watches.
#include "cpu/CpuDevice.h"

#include <string.h>

using namespace dlcrt::impl;

Status CpuDevice::launch(const dlcrt_device_launch &, Error *) { return DLCRT_OK; }

dlcrt_device CpuDevice::device() {
  dlcrt_device device = {};
  device.struct_size = sizeof(device);
  device.kind = DLCRT_MEMORY_CPU;
  device.ctx = this;
  device.load_image = [](void *, const void *code, uint64_t, void **image, Error *) {
    *image = const_cast<void *>(code);
    return DLCRT_OK;
  };
  device.unload_image = [](void *, void *) {};
  device.allocate = [](void *ctx, uint64_t bytes, void **memory, Error *error) {
    *memory = static_cast<CpuDevice *>(ctx)->memory.allocate(bytes, 64);
    return *memory ? DLCRT_OK : failOutOfMemory(error, "buffers", bytes);
  };
  device.release = [](void *ctx, void *memory, uint64_t bytes) { static_cast<CpuDevice *>(ctx)->memory.release(memory, bytes); };
  auto copy = [](void *, void *, void *to, const void *from, uint64_t bytes, Error *) {
    if (bytes)
      memmove(to, from, bytes);
    return DLCRT_OK;
  };
  device.upload = copy;
  device.download = copy;
  device.copy = copy;
  device.fill = [](void *, void *, void *to, uint64_t bytes, const void *pattern, uint32_t patternBytes, Error *) {
    for (uint64_t i = 0; i < bytes; ++i)
      static_cast<char *>(to)[i] = static_cast<const char *>(pattern)[i % patternBytes];
    return DLCRT_OK;
  };
  device.launch = [](void *ctx, void *, const dlcrt_device_launch *launch, Error *error) {
    return static_cast<CpuDevice *>(ctx)->launch(*launch, error);
  };
  device.wait = [](void *, void *, Error *) { return DLCRT_OK; };
  device.destroy = [](void *) {};
  return device;
}
