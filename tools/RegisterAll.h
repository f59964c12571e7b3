// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Everything that this build has, in one place: dialects, passes, backends, and how constants are computed.

#ifndef DLC_TOOLS_REGISTERALL_H
#define DLC_TOOLS_REGISTERALL_H

namespace mlir {
class DialectRegistry;
}

namespace dlc {

class BackendRegistry;
class ConstantEvaluator;

/// The backends of this build.
const BackendRegistry &allBackends();
/// Compiles for the baseline of this machine's architecture and runs that with the runtime.
const ConstantEvaluator &constantEvaluator();
/// Dialects, and the interfaces that the passes and backends need of them.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Passes and pipelines, for programs that name them on the command line. Call it once.
void registerAllPasses();

} // namespace dlc

#endif
