/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "CpuDevice.h"

#include "FpState.h"
#include "Imports.h"
#include "dlcrt/format.h"
#include "dlcrt/kernel_abi.h"

#include <atomic>

using namespace dlcrt::impl;

namespace {

/// One launch that the workers share.
struct Launch {
  dlcrt_kernel_fn kernel;
  dlcrt_kernel_args args;
  const RunControl *control;
  char *scratch;
  uint64_t scratchBytes, scratchStride;
  uint32_t tiles, chunk, workers;
  std::atomic<uint32_t> status{DLCRT_KERNEL_OK};
  // Tiles differ in time, and so do cores: each worker takes the next piece when it is done with one.
  alignas(64) std::atomic<uint64_t> next{0};

  /// In steps short enough that a cancelled run ends soon. False: it was stopped.
  bool runStoppable(const dlcrt_worker &worker, uint64_t begin, uint64_t end) {
    constexpr uint64_t stepNs = 500000;
    for (uint64_t step = 1; begin < end;) {
      if (control->shouldStop())
        return false;
      uint64_t stop = begin + step < end ? begin + step : end, start = nowNs();
      kernel(&args, &worker, uint32_t(begin), uint32_t(stop));
      step *= nowNs() - start < stepNs ? 2 : 1;
      begin = stop;
    }
    return true;
  }

  static void run(void *self, uint32_t worker) { static_cast<Launch *>(self)->run(worker); }

  void run(uint32_t number) {
    DefaultFpState fpState;
    uint32_t kernelStatus = DLCRT_KERNEL_OK; // its own word, so that kernels need no atomic store
    dlcrt_worker worker = {};
    worker.struct_size = sizeof(worker);
    worker.worker = number;
    worker.workers = workers;
    worker.scratch = scratch ? scratch + number * scratchStride : nullptr;
    worker.scratch_bytes = scratchBytes;
    worker.status = &kernelStatus;
    while (true) {
      uint64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= tiles)
        break;
      uint64_t end = begin + chunk < tiles ? begin + chunk : tiles;
      if (!control->canStop())
        kernel(&args, &worker, uint32_t(begin), uint32_t(end));
      else if (!runStoppable(worker, begin, end))
        break;
    }
    if (kernelStatus != DLCRT_KERNEL_OK)
      status.store(kernelStatus, std::memory_order_relaxed);
  }
};

} // namespace

Status CpuDevice::launch(const dlcrt_device_launch &launch, Error *error) {
  uint32_t count = launch.tiles < workers ? launch.tiles : workers;
  if (!parallelFor)
    count = 1;
  // Pieces of different workers in different cache lines, and not in lines that are prefetched together.
  if (launch.scratch_bytes > UINT64_MAX / 4 / workers)
    return fail(error, DLCRT_ERROR_OVERFLOW, "kernel '%s' needs %llu bytes of scratch memory", launch.kernel_name,
                (unsigned long long)launch.scratch_bytes);
  uint64_t stride = alignUp(launch.scratch_bytes, 128), needed = stride * workers;
  if (needed > scratchBytes) {
    memory.release(scratch, scratchBytes);
    scratchBytes = 0;
    scratch = memory.allocate(needed, 4096);
    if (!scratch)
      return failOutOfMemory(error, "the kernels' scratch memory", needed);
    scratchBytes = needed;
  }

  Launch shared;
  shared.kernel = reinterpret_cast<dlcrt_kernel_fn>(static_cast<char *>(launch.image) + launch.entry);
  shared.args = {sizeof(dlcrt_kernel_args),
                 launch.buffer_count,
                 launch.scalar_count,
                 0,
                 launch.buffers,
                 launch.scalars,
                 kernelImports};
  shared.control = &control;
  shared.scratch = static_cast<char *>(launch.scratch_bytes ? scratch : nullptr);
  shared.scratchBytes = launch.scratch_bytes;
  shared.scratchStride = stride;
  shared.tiles = launch.tiles;
  shared.workers = count;
  // A few pieces a worker even out their differences; more would only cost.
  constexpr uint32_t piecesPerWorker = 8;
  uint32_t chunk = launch.tiles / (count > UINT32_MAX / piecesPerWorker ? UINT32_MAX : count * piecesPerWorker);
  shared.chunk = chunk ? chunk : 1;
  if (count == 1) {
    shared.chunk = launch.tiles;
    shared.run(0);
  } else {
    parallelFor(parallelCtx, count, Launch::run, &shared);
  }
  switch (shared.status.load(std::memory_order_relaxed)) {
  case DLCRT_KERNEL_OK:
    return DLCRT_OK;
  case DLCRT_KERNEL_INDEX_OUT_OF_RANGE:
    return fail(error, DLCRT_ERROR_CHECK, "an index is out of range");
  case DLCRT_KERNEL_DIVISION_BY_ZERO:
    return fail(error, DLCRT_ERROR_CHECK, "an integer is divided by zero");
  default:
    return fail(error, DLCRT_ERROR_CHECK, "the kernel cannot compute these values");
  }
}

dlcrt_device CpuDevice::device() {
  dlcrt_device device = {};
  device.struct_size = sizeof(device);
  device.kind = DLCRT_MEMORY_CPU;
  device.ctx = this;
  device.load_image = [](void *, const void *code, uint64_t, void **image, Error *) {
    *image = const_cast<void *>(code); // the module has mapped it as executable
    return DLCRT_OK;
  };
  device.unload_image = [](void *, void *) {};
  device.allocate = [](void *ctx, uint64_t bytes, void **memory, Error *error) {
    // Pages: buffers of one instance do not share them with the heap, and vectors never straddle lines by accident.
    *memory = static_cast<CpuDevice *>(ctx)->memory.allocate(bytes, 4096);
    return *memory ? DLCRT_OK : failOutOfMemory(error, "buffers", bytes);
  };
  device.release = [](void *ctx, void *memory, uint64_t bytes) {
    static_cast<CpuDevice *>(ctx)->memory.release(memory, bytes);
  };
  auto copy = [](void *, void *, void *to, const void *from, uint64_t bytes, Error *) {
    if (bytes)
      memmove(to, from, bytes);
    return DLCRT_OK;
  };
  device.upload = copy;
  device.download = copy;
  device.copy = copy;
  device.fill = [](void *, void *, void *to, uint64_t bytes, const void *pattern, uint32_t patternBytes, Error *) {
    if (bytes == 0)
      return DLCRT_OK;
    if (patternBytes == 1) {
      memset(to, *static_cast<const unsigned char *>(pattern), bytes);
      return DLCRT_OK;
    }
    // Double what is there: memcpy is the fastest way to write memory.
    char *memory = static_cast<char *>(to);
    uint64_t done = patternBytes < bytes ? patternBytes : bytes;
    memcpy(memory, pattern, done);
    while (done < bytes) {
      uint64_t more = done < bytes - done ? done : bytes - done;
      memcpy(memory + done, memory, more);
      done += more;
    }
    return DLCRT_OK;
  };
  device.launch = [](void *ctx, void *, const dlcrt_device_launch *launch, Error *error) {
    return static_cast<CpuDevice *>(ctx)->launch(*launch, error);
  };
  device.wait = [](void *, void *, Error *) { return DLCRT_OK; };
  device.destroy = [](void *) {};
  return device;
}
