// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Where the time of a run goes: one record for each launch, copy, fill and call, with the nodes of the model that it
// computes.

#ifndef DLC_TOOLS_DLC_PROFILE_H
#define DLC_TOOLS_DLC_PROFILE_H

#include "Execution.h"
#include "llvm/Support/JSON.h"

namespace dlc {

struct ProfileRecord {
  std::string name;                    // of the kernel or host function; "copy" or "fill"
  std::vector<std::string> nodes, ops; // of the model; a node without a name is called '#' and its number
  uint32_t stage = 0;
  uint64_t tiles = 0, bytes = 0, flops = 0;
  uint64_t beginNs = 0, endNs = 0;

  double getMilliseconds() const { return static_cast<double>(endNs - beginNs) * 1e-6; }
};

/// One run.
struct Profile {
  std::vector<ProfileRecord> records; // in the order of the run
  uint64_t beginNs = 0, endNs = 0;    // CLOCK_MONOTONIC

  double getMilliseconds() const { return static_cast<double>(endNs - beginNs) * 1e-6; }
};

/// The fastest of the runs of so many seconds, of at least 5.
llvm::Expected<Profile> profileRuns(Execution &execution, double seconds);

/// The attribute "profile" of an object.
void printProfile(const Profile &profile, llvm::json::OStream &json);
/// Kernels with all their launches, then the launches that take longest.
void printProfile(const Profile &profile, llvm::raw_ostream &os);
/// The format of chrome://tracing: complete events, times in microseconds from the begin of the run.
llvm::Error writeTrace(const Profile &profile, llvm::StringRef path);

} // namespace dlc

#endif
