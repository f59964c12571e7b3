// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The page: what happens to a program, in which order.

#include "dlc/Pipeline/Pipeline.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Pipeline/TextFile.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Plan/Serialize.h"
#include "dlc/Support/Format.h"
#include "dlc/Support/OutputFile.h"
#include "dlc/Target/BackendRegistry.h"
#include "dlc/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace mlir;

namespace dlc {

//===----------------------------------------------------------------------===//
// The phases
//===----------------------------------------------------------------------===//

void buildPhase(Phase phase, OpPassManager &pm, const BackendRegistry &backends, const CompileOptions &options) {
  switch (phase) {
  case Phase::Import: // the frontend's work
    break;
  case Phase::Clean:
    pm.addNestedPass<func::FuncOp>(createInferShapes());
    if (!options.state.empty())
      pm.addPass(createBindState({options.state}));
    pm.addNestedPass<func::FuncOp>(createSimplify());
    pm.addNestedPass<func::FuncOp>(createExpandOps());
    if (options.fusion)
      pm.addNestedPass<func::FuncOp>(createChooseLayout({options.winograd}));
    if (options.evaluator)
      pm.addPass(createFoldConstants(*options.evaluator));
    pm.addNestedPass<func::FuncOp>(createInferShapes());
    pm.addNestedPass<func::FuncOp>(createCSEPass());
    break;
  case Phase::Precision: // fp32 keeps the element types that the model has
    pm.addNestedPass<func::FuncOp>(createSimplify()); // what expand-ops has made
    if (options.fusion)
      pm.addNestedPass<func::FuncOp>(createRecognize());
    break;
  case Phase::Fuse: {
    FuseOptions fuse;
    fuse.fusion = options.fusion;
    pm.addNestedPass<func::FuncOp>(createFuse(fuse));
    break;
  }
  case Phase::Plan:
    pm.addPass(createOutlineKernels());
    pm.addPass(createLowerToLinalg());
    pm.addPass(createCollapseDims());
    pm.addPass(createSplitReductions());
    break;
  case Phase::Schedule:
    pm.addPass(createSelectSchedules(backends));
    pm.addPass(createPackConstants(backends));
    if (options.fusion)
      pm.addPass(createMergeLaunches());
    break;
  case Phase::Codegen:
    pm.addPass(createGenerateCode(backends, options.codegen));
    break;
  case Phase::Finish:
    pm.addPass(createAssignSlots());
    break;
  }
}

static void buildVerifier(Phase phase, OpPassManager &pm) {
  VerifyPhaseOptions options;
  options.phase = phaseName(phase).str();
  pm.addPass(createVerifyPhase(options));
}

void registerPipelines(const BackendRegistry &backends, const ConstantEvaluator &evaluator) {
  CompileOptions compileOptions;
  compileOptions.evaluator = &evaluator;
  registerPass([&backends] { return createGenerateCode(backends); });
  for (unsigned i = 0; i < kPhaseCount; ++i) {
    Phase phase = static_cast<Phase>(i);
    registerPassPipeline(
        fmt::format("dlc-{}", phaseName(phase)), fmt::format("The passes of phase {} and its verifier", phaseName(phase)),
        [phase, &backends, compileOptions](OpPassManager &pm, StringRef options, function_ref<LogicalResult(const Twine &)> onError) {
          if (!options.empty())
            return LogicalResult(onError("a phase takes no options"));
          buildPhase(phase, pm, backends, compileOptions);
          buildVerifier(phase, pm);
          return success();
        },
        [](function_ref<void(const mlir::detail::PassOptions &)>) {});
  }
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static int64_t priorityOf(ModuleOp variant) {
  auto priority = variant->getAttrOfType<IntegerAttr>(plan::kPriorityAttr);
  return priority ? priority.getInt() : 0;
}

Program::Program(OwningOpRef<ModuleOp> program) : Program(MutableArrayRef(program)) {}

Program::Program(MutableArrayRef<OwningOpRef<ModuleOp>> variants) {
  root = ModuleOp::create(UnknownLoc::get(variants.front()->getContext()));
  SmallVector<std::pair<int64_t, size_t>> order;
  for (auto [index, variant] : llvm::enumerate(variants))
    order.emplace_back(priorityOf(*variant), index);
  llvm::sort(order);
  for (auto [priority, index] : order) {
    perVariant |= (*variants[index])->hasAttr(plan::kTargetAttr);
    root->push_back(variants[index].release());
  }
}

SmallVector<ModuleOp> Program::getPrograms() { return llvm::to_vector(root->getOps<ModuleOp>()); }

void Program::split(ArrayRef<VariantOptions> variants) {
  OwningOpRef<ModuleOp> program = *root->getOps<ModuleOp>().begin();
  (*program)->remove();
  Builder builder(program->getContext());
  for (const VariantOptions &options : variants) {
    ModuleOp variant = program->clone();
    variant->setAttr(plan::kTargetAttr, builder.getStringAttr(options.target));
    variant->setAttr(plan::kPriorityAttr, builder.getI64IntegerAttr(options.priority));
    root->push_back(variant);
  }
  perVariant = true;
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

namespace {

class Run {
public:
  Run(MLIRContext &context, const BackendRegistry &backends, const CompileOptions &options)
      : context(context), backends(backends), options(options) {
    // Variants are compiled side by side, and then no dialect can be loaded any more.
    context.loadAllAvailableDialects();
  }

  FailureOr<Compiled> behind(Phase done, Program program);
  LogicalResult phase(Phase phase, Program &program);
  LogicalResult verify(Phase phase, Program &program);
  template <typename Function> auto timed(Phase phase, Function function);

  Compiled result;

private:
  LogicalResult dump(Phase phase, Program &program);
  LogicalResult fail(llvm::Error error) {
    return emitError(UnknownLoc::get(&context)) << llvm::toString(std::move(error));
  }

  MLIRContext &context;
  const BackendRegistry &backends;
  const CompileOptions &options;
};

} // namespace

template <typename Function> auto Run::timed(Phase phase, Function function) {
  if (options.onPhase)
    options.onPhase(phase);
  auto begin = std::chrono::steady_clock::now();
  auto outcome = function();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  result.phases.push_back({phase, seconds.count()});
  return outcome;
}

LogicalResult Run::phase(Phase phase, Program &program) {
  PassManager pm(&context, ModuleOp::getOperationName());
  buildPhase(phase, pm.nest<ModuleOp>(), backends, options);
  buildVerifier(phase, pm.nest<ModuleOp>());
  if (options.onPassManager)
    options.onPassManager(pm);
  if (failed(pm.run(program.getRoot())))
    return failure();
  return dump(phase, program);
}

LogicalResult Run::verify(Phase phase, Program &program) {
  PassManager pm(&context, ModuleOp::getOperationName());
  buildVerifier(phase, pm.nest<ModuleOp>());
  return pm.run(program.getRoot());
}

LogicalResult Run::dump(Phase phase, Program &program) {
  if (options.dumpDir.empty())
    return success();
  if (llvm::Error error = makeFolder(options.dumpDir))
    return fail(std::move(error));
  llvm::SmallString<256> path(options.dumpDir);
  llvm::sys::path::append(path, fmt::format("{}-{}", static_cast<unsigned>(phase) + 1, phaseName(phase)));
  auto written = writeTexts(path, phase, program.getPrograms());
  return written ? success() : fail(written.takeError());
}

FailureOr<Compiled> Run::behind(Phase done, Program program) {
  for (unsigned i = static_cast<unsigned>(done) + 1; i < kPhaseCount; ++i) {
    Phase next = static_cast<Phase>(i);
    if (options.stopAfter && *options.stopAfter < next)
      break;
    LogicalResult ran = timed(next, [&] {
      if (isPerVariant(next) && !program.isPerVariant())
        program.split(options.variants);
      return phase(next, program);
    });
    if (failed(ran))
      return failure();
  }
  for (ModuleOp variant : program.getPrograms())
    result.kernels += llvm::range_size(variant.getOps<plan::KernelOp>());
  if (!options.stopAfter) {
    llvm::raw_svector_ostream os(result.bytes);
    if (llvm::Error error = writeModule(program.getPrograms(), os))
      return fail(std::move(error));
  }
  result.program = std::move(program);
  return std::move(result);
}

FailureOr<Compiled> compile(MLIRContext &context, ImportFunction import, const BackendRegistry &backends,
                            const CompileOptions &options) {
  Run run(context, backends, options);
  std::optional<Program> program;
  LogicalResult imported = run.timed(Phase::Import, [&] {
    OwningOpRef<ModuleOp> module = import(context);
    if (!module)
      return failure();
    program.emplace(std::move(module));
    return run.phase(Phase::Import, *program);
  });
  if (failed(imported))
    return failure();
  return run.behind(Phase::Import, std::move(*program));
}

FailureOr<Compiled> continueCompile(MLIRContext &context, Phase done, Program program, const BackendRegistry &backends,
                                    const CompileOptions &options) {
  Run run(context, backends, options);
  // The text may be the work of a hand: is it what the phase leaves?
  if (failed(run.verify(done, program)))
    return failure();
  return run.behind(done, std::move(program));
}

} // namespace dlc
