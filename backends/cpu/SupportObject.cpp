// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The objects that KernelSupport.c was compiled to, as bytes of this program.

#include "EmitObject.h"

#define DLC_INCLUDE_BYTES(symbol, file)                                                                                          \
  __asm__(".pushsection .rodata\n.balign 16\n.local " #symbol "\n" #symbol ":\n.incbin \"" DLC_KERNEL_SUPPORT_DIR "/" file       \
          "\"\n.local " #symbol "_end\n" #symbol "_end:\n.byte 0\n.popsection\n");                                               \
  extern "C" __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[]

DLC_INCLUDE_BYTES(dlc_kernel_support_x86_64, "KernelSupport.x86_64.o");
DLC_INCLUDE_BYTES(dlc_kernel_support_aarch64, "KernelSupport.aarch64.o");

namespace dlc::cpu {

llvm::StringRef supportObject(TargetArch arch) {
  if (arch == TargetArch::X86_64)
    return {dlc_kernel_support_x86_64, size_t(dlc_kernel_support_x86_64_end - dlc_kernel_support_x86_64)};
  return {dlc_kernel_support_aarch64, size_t(dlc_kernel_support_aarch64_end - dlc_kernel_support_aarch64)};
}

} // namespace dlc::cpu
