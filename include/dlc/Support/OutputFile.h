// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// A result file that is there whole or not at all: written under a temporary name in the same folder and renamed when done.
// A failure, an interrupt (llvm::sys::RunInterruptHandlers) or a destructor before `commit` removes it.

#ifndef DLC_SUPPORT_OUTPUTFILE_H
#define DLC_SUPPORT_OUTPUTFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>

namespace dlc {

class OutputFile {
public:
  /// What is no regular file (a pipe, a device) is written in place.
  static llvm::Expected<OutputFile> create(llvm::StringRef path);

  OutputFile(OutputFile &&other) = default;
  OutputFile &operator=(OutputFile &&other) = delete;
  ~OutputFile();

  llvm::raw_pwrite_stream &os() { return *stream; }
  /// Puts the file in place. With `sync` its bytes are on the disk before it gets its name. Reports what went wrong in any
  /// write before.
  llvm::Error commit(bool sync = false);

private:
  OutputFile(std::string path, std::optional<llvm::sys::fs::TempFile> temporary, std::unique_ptr<llvm::raw_fd_ostream> stream)
      : path(std::move(path)), temporary(std::move(temporary)), stream(std::move(stream)) {}
  void discard();

  std::string path;
  std::optional<llvm::sys::fs::TempFile> temporary;
  std::unique_ptr<llvm::raw_fd_ostream> stream; // null once committed or discarded
};

/// Makes a folder and those above it; one that is there is fine.
llvm::Error makeFolder(llvm::StringRef path);

} // namespace dlc

#endif
