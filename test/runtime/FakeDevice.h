/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// A device that an accelerator could be: its addresses are not the host's, and what is issued is done later. It fails
// when it is given a host address, or the host one of its own, and it sees to it that forgotten waits are noticed.
#ifndef DLCRT_TEST_FAKEDEVICE_H
#define DLCRT_TEST_FAKEDEVICE_H

#include "dlcrt/runtime.h"

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlcrt::test {

class FakeDevice {
public:
  /// Kernels are functions by name; buffers are already host addresses.
  using Kernel =
      std::function<void(const std::vector<void *> &buffers, const std::vector<int64_t> &scalars, uint32_t tiles)>;
  std::map<std::string, Kernel> kernels;
  std::vector<std::string> log; // what was done, in order
  dlcrt_status failLaunch = DLCRT_OK;
  int devices = 0, images = 0;

  dlcrt_device_factory factory() {
    return {sizeof(dlcrt_device_factory), DLCRT_MEMORY_HOST_CALLBACKS, this,
            [](void *ctx, dlcrt_device *device, dlcrt_error *) {
              static_cast<FakeDevice *>(ctx)->open(*device);
              return DLCRT_OK;
            }};
  }
  size_t allocations() const { return memory.size(); }
  /// Memory for an application that keeps its tensors on the device.
  void *allocate(uint64_t bytes) {
    uint64_t address = next;
    next += (bytes + 4096) / 4096 * 4096;
    memory[address].resize(bytes);
    return reinterpret_cast<void *>(address);
  }
  void write(void *to, const void *from, uint64_t bytes) {
    flush();
    memcpy(find(to, bytes), from, bytes);
  }
  void read(void *to, const void *from, uint64_t bytes) {
    flush();
    memcpy(to, find(from, bytes), bytes);
  }

private:
  static constexpr uint64_t base = 0xdead000000000000; // no host address looks like this
  uint64_t next = base;
  std::map<uint64_t, std::vector<char>> memory;
  std::vector<std::function<void()>> queue;

  static FakeDevice &of(void *ctx) { return *static_cast<FakeDevice *>(ctx); }

  /// The host memory behind a device address, or null.
  char *find(const void *address, uint64_t bytes) {
    uint64_t number = reinterpret_cast<uint64_t>(address);
    auto block = memory.upper_bound(number);
    if (block == memory.begin())
      return nullptr;
    --block;
    uint64_t offset = number - block->first;
    return offset + bytes <= block->second.size() ? block->second.data() + offset : nullptr;
  }
  static bool isHost(const void *address) { return reinterpret_cast<uint64_t>(address) < base; }
  void flush() {
    for (auto &work : queue)
      work();
    queue.clear();
  }
  static dlcrt_status fail(dlcrt_error *error, const char *what) {
    error->code = DLCRT_ERROR_DEVICE;
    snprintf(error->message, sizeof(error->message), "fake device: %s", what);
    return DLCRT_ERROR_DEVICE;
  }

  void open(dlcrt_device &d) {
    ++devices;
    d.kind = DLCRT_MEMORY_HOST_CALLBACKS;
    d.index = 4;
    d.ctx = this;
    d.load_image = [](void *ctx, const void *code, uint64_t bytes, void **image, dlcrt_error *) {
      ++of(ctx).images;
      *image = bytes ? const_cast<void *>(code) : nullptr;
      return DLCRT_OK;
    };
    d.unload_image = [](void *ctx, void *) { --of(ctx).images; };
    d.allocate = [](void *ctx, uint64_t bytes, void **result, dlcrt_error *) {
      *result = of(ctx).allocate(bytes);
      return DLCRT_OK;
    };
    d.release = [](void *ctx, void *address, uint64_t) {
      of(ctx).flush();
      of(ctx).memory.erase(reinterpret_cast<uint64_t>(address));
    };
    d.upload = [](void *ctx, void *, void *to, const void *from, uint64_t bytes, dlcrt_error *error) {
      char *target = of(ctx).find(to, bytes);
      if (!target || !isHost(from))
        return fail(error, "upload with wrong addresses");
      std::vector<char> data(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
      of(ctx).queue.push_back([=, &self = of(ctx)] {
        memcpy(target, data.data(), bytes);
        self.log.push_back("upload " + std::to_string(bytes));
      });
      return DLCRT_OK;
    };
    d.download = [](void *ctx, void *, void *to, const void *from, uint64_t bytes, dlcrt_error *error) {
      char *source = of(ctx).find(from, bytes);
      if (!source || !isHost(to))
        return fail(error, "download with wrong addresses");
      of(ctx).flush();
      memcpy(to, source, bytes);
      of(ctx).log.push_back("download " + std::to_string(bytes));
      return DLCRT_OK;
    };
    d.copy = [](void *ctx, void *, void *to, const void *from, uint64_t bytes, dlcrt_error *error) {
      char *target = of(ctx).find(to, bytes), *source = of(ctx).find(from, bytes);
      if (!target || !source)
        return fail(error, "copy with wrong addresses");
      of(ctx).queue.push_back([=, &self = of(ctx)] {
        memmove(target, source, bytes);
        self.log.push_back("copy " + std::to_string(bytes));
      });
      return DLCRT_OK;
    };
    d.fill = [](void *ctx, void *, void *to, uint64_t bytes, const void *pattern, uint32_t patternBytes,
                dlcrt_error *error) {
      char *target = of(ctx).find(to, bytes);
      if (!target || !isHost(pattern))
        return fail(error, "fill with wrong addresses");
      std::vector<char> data(static_cast<const char *>(pattern), static_cast<const char *>(pattern) + patternBytes);
      of(ctx).queue.push_back([=, &self = of(ctx)] {
        for (uint64_t i = 0; i < bytes; ++i)
          target[i] = data[i % patternBytes];
        self.log.push_back("fill " + std::to_string(bytes));
      });
      return DLCRT_OK;
    };
    d.launch = [](void *ctx, void *, const dlcrt_device_launch *launch, dlcrt_error *error) {
      FakeDevice &self = of(ctx);
      if (self.failLaunch)
        return fail(error, "no more launches");
      if (!launch->image || !self.kernels.count(launch->kernel_name))
        return fail(error, "no such kernel");
      std::vector<void *> buffers;
      for (uint32_t i = 0; i < launch->buffer_count; ++i) {
        buffers.push_back(self.find(launch->buffers[i], 1));
        if (!buffers.back())
          return fail(error, "launch with wrong addresses");
      }
      std::vector<int64_t> scalars(launch->scalars, launch->scalars + launch->scalar_count);
      std::string name = launch->kernel_name;
      self.queue.push_back([=, &self, tiles = launch->tiles] {
        self.kernels[name](buffers, scalars, tiles);
        self.log.push_back("launch " + name);
      });
      return DLCRT_OK;
    };
    d.wait = [](void *ctx, void *, dlcrt_error *) {
      of(ctx).flush();
      return DLCRT_OK;
    };
    d.destroy = [](void *ctx) { --of(ctx).devices; };
  }
};

} // namespace dlcrt::test
#endif
