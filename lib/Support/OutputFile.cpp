// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Support/OutputFile.h"
#include "dlc/Support/Format.h"
#include <cerrno>
#include <unistd.h>

namespace fs = llvm::sys::fs;

namespace dlc {

static llvm::Error cannotWrite(llvm::StringRef path, const std::string &reason) {
  return makeError("cannot write '{}': {}", path, reason);
}

llvm::Error makeFolder(llvm::StringRef path) {
  std::error_code error = fs::create_directories(path);
  if (!error && !fs::is_directory(path))
    error = std::make_error_code(std::errc::not_a_directory);
  return error ? makeError("cannot make the folder '{}': {}", path, error.message()) : llvm::Error::success();
}

llvm::Expected<OutputFile> OutputFile::create(llvm::StringRef path) {
  if (path.empty())
    return makeError("cannot write a file without a name");
  fs::file_status status;
  std::error_code failed = fs::status(path, status);
  if (!failed && fs::is_directory(status))
    return cannotWrite(path, "it is a directory");
  if (!failed && !fs::is_regular_file(status)) {
    std::error_code error;
    auto stream = std::make_unique<llvm::raw_fd_ostream>(path, error, fs::OF_None);
    if (error)
      return cannotWrite(path, error.message());
    return OutputFile(path.str(), std::nullopt, std::move(stream));
  }
  if (!failed && ::access(path.str().c_str(), W_OK) != 0)
    return cannotWrite(path, std::error_code(errno, std::generic_category()).message());
  auto temporary = fs::TempFile::create(path + ".%%%%%%.part", fs::all_read | fs::all_write);
  if (!temporary)
    return cannotWrite(path, llvm::errorToErrorCode(temporary.takeError()).message());
  auto stream = std::make_unique<llvm::raw_fd_ostream>(temporary->FD, /*shouldClose=*/false);
  return OutputFile(path.str(), std::move(*temporary), std::move(stream));
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (stream)
    stream->clear_error(); // else its destructor ends the program
  stream.reset();
  if (temporary)
    llvm::consumeError(temporary->discard());
  temporary.reset();
}

llvm::Error OutputFile::commit(bool sync) {
  stream->flush();
  std::error_code error = stream->error();
  if (!error && sync && temporary && ::fsync(temporary->FD) != 0)
    error = std::error_code(errno, std::generic_category());
  if (error) {
    discard();
    return cannotWrite(path, error.message());
  }
  stream.reset();
  if (!temporary)
    return llvm::Error::success();
  llvm::Error renamed = temporary->keep(path);
  temporary.reset();
  if (renamed)
    return cannotWrite(path, llvm::errorToErrorCode(std::move(renamed)).message());
  return llvm::Error::success();
}

} // namespace dlc
