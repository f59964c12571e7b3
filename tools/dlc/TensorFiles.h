// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Folders of tensors: input_0.pb or NAME.npy in, output_0.pb or NAME.npy out.

#ifndef DLC_TOOLS_DLC_TENSORFILES_H
#define DLC_TOOLS_DLC_TENSORFILES_H

#include "dlc/Frontends/OnnxTensor.h"
#include <optional>

namespace dlc {

/// The file name that a tensor's name gives: what is not a letter, a digit, '.', '-' or '_' becomes '_'.
std::string fileNameOf(llvm::StringRef tensorName);

/// NumPy's format, versions 1 to 3, C order, little-endian numbers and bool. For types that NumPy does not have, the file holds raw or
/// unsigned elements of the same size, of 4-bit and 2-bit types one a byte; then `dtype`, the type that is wanted, says what they are.
llvm::Expected<HostTensor> readNpy(llvm::StringRef path, int32_t dtype);
/// Refuses strings.
llvm::Expected<llvm::SmallVector<char, 0>> npyBytes(const HostTensor &tensor);

/// PREFIX_INDEX.pb, or NAME.npy, or PREFIX_INDEX.npy; nothing when none is there.
llvm::Expected<std::optional<HostTensor>> readTensor(llvm::StringRef folder, llvm::StringRef prefix, unsigned index, llvm::StringRef name,
                                                       int32_t dtype);

/// Writes the tensor as PREFIX_INDEX.pb or NAME.npy.
llvm::Error writeTensor(llvm::StringRef folder, llvm::StringRef prefix, unsigned index, const HostTensor &tensor, bool npy);

} // namespace dlc

#endif
