// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// How far a tensor is from what it should be.

#ifndef DLC_TOOLS_DLC_COMPARISON_H
#define DLC_TOOLS_DLC_COMPARISON_H

#include "dlc/Frontends/OnnxTensor.h"
#include "llvm/Support/Error.h"

namespace dlc {

/// An element may differ by absolute + relative * |reference|.
struct Tolerance {
  double absolute = 1e-4, relative = 1e-3;
};

/// Elements that are the same infinity, or NaN in both, are equal and in none of the sums; where only one of the two is
/// finite the largest differences are infinite. Of complex elements both parts count.
struct Comparison {
  size_t elements = 0;
  size_t mismatches = 0;           // outside of the tolerance; of elements that are no floats: not equal
  size_t firstMismatch = 0;        // its number in row-major order
  double value = 0, reference = 0; // there
  double maxAbs = 0;
  double maxRel = 0; // of |difference| / |reference|, where the reference is not 0
  double cosine = 1; // of the angle between the two as vectors; two zero vectors have the same direction
  double snr = 0;    // in dB: 10 log10(sum reference^2 / sum difference^2); infinite without a difference

  bool isOk() const { return mismatches == 0; }
};

/// Type and dims must be the same; the error says both.
llvm::Expected<Comparison> compareTensors(const HostTensor &tensor, const HostTensor &reference, Tolerance tolerance);

/// "f32[3, 16]"
std::string typeText(const HostTensor &tensor);

} // namespace dlc

#endif
