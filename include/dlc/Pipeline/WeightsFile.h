// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The file beside a text dump that holds the bytes of its `#dlc.weight` constants.
//
// Little-endian:
//   8 bytes   "DLCWGT\r\n"
//   u32       version: 1
//   u32       number of entries n
//   n times   16 bytes key (the 32 hexadecimal digits of #dlc.weight as bytes), u64 offset from the start of the file, u64 bytes;
//             sorted by key
//   the bytes of the entries, in the same order, each at a multiple of 64
//
// A key is the hash of its bytes; reading checks it.

#ifndef DLC_PIPELINE_WEIGHTSFILE_H
#define DLC_PIPELINE_WEIGHTSFILE_H

#include "dlc/IR/WeightStore.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"
#include <set>
#include <string>

namespace dlc {

/// Keys of the weights that `op` and the ops in it name.
std::set<std::string> weightKeysOf(mlir::Operation *op);

/// Writes the weights with these keys; one that the store does not have is an error.
llvm::Error writeWeightsFile(llvm::StringRef path, const std::set<std::string> &keys, const WeightStore &store);

/// Maps the file and adds its weights to the store, which keeps the mapping alive.
llvm::Error readWeightsFile(llvm::StringRef path, WeightStore &store);

} // namespace dlc

#endif
