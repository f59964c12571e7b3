/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The processor as a device: memory of the instance's allocator, tiles spread over parallel_for.
#ifndef DLCRT_CPU_CPUDEVICE_H
#define DLCRT_CPU_CPUDEVICE_H

#include "Device.h"
#include "Memory.h"

namespace dlcrt::impl {

class CpuDevice {
public:
  explicit CpuDevice(Memory &memory) : memory(memory) {}
  CpuDevice(const CpuDevice &) = delete;
  CpuDevice &operator=(const CpuDevice &) = delete;
  ~CpuDevice() { memory.release(scratch, scratchBytes); }

  /// Its struct of functions. Images are addresses of mapped code; the struct must not outlive the object.
  dlcrt_device device();

  dlcrt_parallel_for_fn parallelFor = nullptr; // null: everything on the calling thread
  void *parallelCtx = nullptr;
  uint32_t workers = 1;
  RunControl control; // of the run that is going on

  uint64_t allScratchBytes() const { return scratchBytes; }

private:
  Status launch(const dlcrt_device_launch &launch, Error *error);

  Memory &memory;
  void *scratch = nullptr; // one piece a worker
  uint64_t scratchBytes = 0;
};

} // namespace dlcrt::impl
#endif
