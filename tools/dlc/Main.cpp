// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommandLine.h"
#include "Crash.h"
#include "llvm/Support/Process.h"

int main(int argc, char **argv) {
  dlc::installCrashHandlers(argc, argv);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  llvm::raw_fd_ostream &out = llvm::outs();
  int exit = dlc::runCommand(arguments, {out, llvm::errs(), llvm::sys::Process::StandardErrIsDisplayed()});
  out.flush();
  if (std::error_code error = out.error()) {
    out.clear_error();
    llvm::errs() << "error: cannot write to stdout: " << error.message() << '\n';
    return exit == dlc::kExitOk ? dlc::kExitFailed : exit;
  }
  return exit;
}
