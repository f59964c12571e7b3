// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All op families of the dialect, for TableGen.

include "dlc/IR/Structure.td"
include "dlc/IR/Elementwise.td"
include "dlc/IR/Contraction.td"
include "dlc/IR/Reduction.td"
include "dlc/IR/Movement.td"
include "dlc/IR/KernelOps.td"
