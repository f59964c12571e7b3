// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// What the compiler asks of a backend, and where backends are found. Tools put the backends they have into a registry and pass
// it down; nothing registers itself.

#ifndef DLC_TARGET_BACKENDREGISTRY_H
#define DLC_TARGET_BACKENDREGISTRY_H

#include "dlc/Target/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace dlc {

namespace plan {
class KernelOp;
class ScheduleAttr;
} // namespace plan

/// How a kernel wants a constant operand: in panels. Dim `dim` is cut into pieces of `panel` elements, the last one padded with zeros,
/// which become the innermost dim; `order` says which of the operand's dims (`dim` standing for its pieces) comes where. That is
/// linalg.unpack with inner_dims_pos = [dim], inner_tiles = [panel], outer_dims_perm = order, and the only packed format there is.
struct PackedOperand {
  unsigned operand; // number
  int64_t dim, panel;
  llvm::SmallVector<int64_t> order;
};

/// Options of phase codegen. The code does not depend on them.
struct BackendOptions {
  unsigned jobs = 1;   // threads that generate code
  std::string dumpDir; // an existing folder for the LLVM IR and assembly of each chunk of code; empty: none
};

class Backend {
public:
  virtual ~Backend();

  virtual TargetKind kind() const = 0;
  virtual llvm::StringRef name() const = 0; // "cpu"

  /// Dialects, interfaces and translations that the pipeline's passes need. To be called once, before a context is made.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;
  /// The passes, for the command line of dlc-opt. To be called at most once a process.
  virtual void registerPasses() const = 0;

  /// How to cut a kernel when nobody knows better. `domain`: the sizes of the launch's domain, none where symbolic.
  virtual plan::ScheduleAttr defaultSchedule(plan::KernelOp kernel, llvm::ArrayRef<std::optional<int64_t>> domain,
                                             const Target &target) const = 0;

  /// The operand that a kernel with a schedule reads best in panels if it is a constant; nothing for most kernels. Where the
  /// operand is one, pack-constants packs it, and the body begins with the linalg.unpack that says so.
  virtual std::optional<PackedOperand> packedOperand(plan::KernelOp kernel, const Target &target) const = 0;

  /// Phase codegen for a variant's module whose `plan.target` is `target`. In: plan.kernel ops with bodies, each with a schedule
  /// (one without is computed as one tile). The size of each dynamic dim of a block argument is an index argument; which one,
  /// says the kernel's attribute `plan.dims` (kDimsAttr). Out: plan.kernel ops with `entry`, `stack` and `scratch` and without
  /// body; on the module plan.image and plan.imports.
  ///
  /// A kernel without `schedule` tiles, or one that the backend cannot cut, computes all when tile 0 is asked for, so that any
  /// number of tiles is right.
  virtual void buildKernelPipeline(mlir::OpPassManager &pm, const Target &target, const BackendOptions &options) const = 0;
};

/// On a plan.kernel: ArrayAttr with one DenseI64ArrayAttr for each tensor argument (operands, then destinations), which holds for
/// each dim of it, dynamic or not, the number of the scalar that is its size; -1 where the dim is static.
inline constexpr llvm::StringLiteral kDimsAttr = "plan.dims";

/// The backends there are; each is defined in its own library (dlcCpu), which a tool links if it wants it.
std::unique_ptr<Backend> createCpuBackend();

class BackendRegistry {
public:
  BackendRegistry();
  ~BackendRegistry();
  BackendRegistry(BackendRegistry &&);

  void add(std::unique_ptr<Backend> backend);
  /// The backend for a kind of target, or null.
  const Backend *find(TargetKind kind) const;
  llvm::ArrayRef<std::unique_ptr<Backend>> all() const { return backends; }

private:
  std::vector<std::unique_ptr<Backend>> backends;
};

} // namespace dlc

#endif
