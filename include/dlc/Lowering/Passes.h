// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Passes from dlc ops to plans and kernel bodies. Each is described in Passes.td, and those that ask the backend here.

#ifndef DLC_LOWERING_PASSES_H
#define DLC_LOWERING_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dlc {

class BackendRegistry;

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dlc/Lowering/Passes.h.inc"

/// select-schedules: asks the backend of the module's target for a schedule of each kernel that has none yet (one that a person
/// or the tuner wrote stays), and counts the tiles of each launch. `backends` must outlive the pass.
std::unique_ptr<mlir::Pass> createSelectSchedules(const BackendRegistry &backends);

/// pack-constants: constants that a kernel reads in another order than the model has them are put into that order now (see
/// Backend::packedOperand). Variants that want the same format share the packed constant.
std::unique_ptr<mlir::Pass> createPackConstants(const BackendRegistry &backends);

} // namespace dlc

#endif
