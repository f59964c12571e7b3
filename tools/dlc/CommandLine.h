// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// A command line of `dlc`: parsed, given to its verb, answered with an exit code. Nothing here keeps state between two of them.

#ifndef DLC_TOOLS_DLC_COMMANDLINE_H
#define DLC_TOOLS_DLC_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <vector>

namespace dlc {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1, // what the user can mend: a bad file, an unsupported node, a target that does not exist
  kExitUsage = 2,  // a wrong command line
  kExitFault = 70  // dlc's own fault
};

enum VerbFlag : unsigned {
  CompileVerb = 1u << 1, // bit 0 is llvm::opt::DefaultVis
  RunVerb = 1u << 2,
  InspectVerb = 1u << 3,
  DoctorVerb = 1u << 4,
  OtherVerb = 1u << 5,
  BenchVerb = 1u << 6,
  CompareVerb = 1u << 7
};

enum OptionId {
  OPT_INVALID = 0,
#define OPTION(...) LLVM_MAKE_OPT_ID(__VA_ARGS__),
#include "DlcOptions.inc"
#undef OPTION
};

/// Where an answer goes.
struct Streams {
  llvm::raw_ostream &out; // results
  llvm::raw_ostream &err; // messages
  bool progress = false;  // err is a terminal
};

struct Invocation {
  Streams io;
  const llvm::opt::InputArgList &args;
  std::vector<std::string> inputs;

  bool has(OptionId flag) const { return args.hasArg(flag); }
  /// The last value given; empty when there is none.
  std::string value(OptionId flag) const { return args.getLastArgValue(flag).str(); }
  std::vector<std::string> values(OptionId flag) const { return args.getAllArgValues(flag); }
  /// A number in [min, max]; `otherwise` when the flag was not given.
  llvm::Expected<uint64_t> number(OptionId flag, uint64_t otherwise, uint64_t min, uint64_t max) const;

  /// Print errors, one line each; return the exit code.
  int fail(llvm::Error error, int exit = kExitFailed) const;
  int usage(const llvm::Twine &message) const;
};

/// The exit code of a command line that has not one input; `missing` is what is said where there is none.
std::optional<int> refuseAllButOne(const Invocation &invocation, llvm::StringRef missing);

/// `arguments` without the program's name.
int runCommand(llvm::ArrayRef<std::string> arguments, Streams io);

// The verbs.
int runCompile(const Invocation &invocation);
int runRun(const Invocation &invocation);
int runBench(const Invocation &invocation);
int runCompare(const Invocation &invocation);
int runInspect(const Invocation &invocation);
int runDoctor(const Invocation &invocation);
int runServe(const Invocation &invocation);

/// "dlc 0.1.0"
std::string versionText();

} // namespace dlc

#endif
