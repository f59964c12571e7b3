// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelRunner.h"
#include "dlc/IR/Dialect.h"
#include "dlcrt/kernel_abi.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace mlir;

namespace dlc::test {

static const Backend &cpuBackend() {
  static const std::unique_ptr<Backend> backend = createCpuBackend();
  return *backend;
}

static const DialectRegistry &dialects() {
  static const DialectRegistry registry = [] {
    DialectRegistry r;
    cpuBackend().registerDialects(r);
    return r;
  }();
  return registry;
}

KernelRunner::KernelRunner(llvm::StringRef text, llvm::StringRef targetName, const BackendOptions &options)
    : context(dialects(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  llvm::raw_string_ostream os(error);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    os << diagnostic.getLocation() << ": " << diagnostic << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      os << "  note: " << note << "\n";
    return success();
  });
  auto target = parseTarget(targetName);
  if (!target) {
    os << llvm::toString(target.takeError());
    return;
  }
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return;
  (*module)->setAttr(plan::kTargetAttr, StringAttr::get(&context, target->name));
  PassManager pm(&context);
  if (const char *trace = std::getenv("DLC_TRACE")) {
    (void)trace;
    pm.enableIRPrinting([](Pass *, Operation *) { return false; }, [](Pass *, Operation *) { return true; }, false, false, false, llvm::errs());
  }
  cpuBackend().buildKernelPipeline(pm, *target, options);
  if (failed(pm.run(*module))) {
    if (error.empty())
      error = "failed without a message";
    return;
  }
  auto weight = (*module)->getAttrOfType<WeightAttr>(plan::kImageAttr);
  auto bytes = context.getLoadedDialect<DlcDialect>()->getWeights().find(weight.getKey());
  image.assign(bytes->begin(), bytes->end());
  auto numbers = (*module)->getAttrOfType<DenseI32ArrayAttr>(plan::kImportsAttr).asArrayRef();
  imports.assign(numbers.begin(), numbers.end());
  for (auto kernel : module->getOps<plan::KernelOp>())
    kernels[kernel.getSymName().str()] = {int64_t(*kernel.getEntry()), int64_t(*kernel.getStack()), int64_t(*kernel.getScratch())};

  codeBytes = (image.size() + 4095) & ~size_t(4095);
  code = mmap(nullptr, codeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(code, image.data(), image.size());
  mprotect(code, codeBytes, PROT_READ | PROT_EXEC);
}

KernelRunner::~KernelRunner() {
  if (code)
    munmap(code, codeBytes);
}

uint32_t KernelRunner::run(llvm::StringRef name, llvm::ArrayRef<void *> buffers, llvm::ArrayRef<int64_t> scalars, uint32_t begin,
                           uint32_t end) const {
#define DLC_IMPORT_ADDRESS(number, NAME, function, signature) reinterpret_cast<const void *>(static_cast<Dlc_##signature>(::function)),
  using Dlc_d = double (*)(double);
  using Dlc_D = double (*)(double, double);
  using Dlc_f = float (*)(float);
  using Dlc_F = float (*)(float, float);
  static const void *const addresses[] = {DLCRT_FOREACH_IMPORT(DLC_IMPORT_ADDRESS)};
#undef DLC_IMPORT_ADDRESS
  // An import that the image did not ask for is not there.
  std::vector<const void *> offered(DLCRT_IMPORT_COUNT, nullptr);
  for (int32_t number : imports)
    offered[number] = addresses[number];

  const Kernel &kernel = kernels.at(name.str());
  // Scratch memory of exactly the size, with guard bytes around.
  size_t size = kernel.scratch;
  std::vector<unsigned char> scratch(size + 192, 0xAB);
  auto *base = reinterpret_cast<unsigned char *>((reinterpret_cast<uintptr_t>(scratch.data()) + 127) & ~uintptr_t(63));
  uint32_t status = 0;
  dlcrt_kernel_args args{sizeof(args), uint32_t(buffers.size()), uint32_t(scalars.size()), 0, buffers.data(), scalars.data(), offered.data()};
  dlcrt_worker worker{sizeof(worker), 0, 1, 0, base, size, &status};
  auto entry = reinterpret_cast<dlcrt_kernel_fn>(static_cast<char *>(code) + kernel.entry);
  entry(&args, &worker, begin, end);
  for (unsigned char *p = scratch.data(); p != scratch.data() + scratch.size(); ++p)
    if ((p < base || p >= base + size) && *p != 0xAB)
      return 0xbad;
  return status;
}

bool canRun(llvm::StringRef name) {
#if defined(__x86_64__) || defined(__aarch64__)
  auto target = parseTarget(name), host = parseTarget("cpu:host");
  if (!target || !host) {
    llvm::consumeError(target.takeError());
    llvm::consumeError(host.takeError());
    return false;
  }
  return target->arch == host->arch && !(target->features & ~host->features);
#else
  return false;
#endif
}

std::vector<std::string> testTargets() {
  std::vector<std::string> targets;
#if defined(__x86_64__)
  targets.push_back("cpu:x86-64-v2");
#endif
  if (hostTargetName() != "cpu:x86-64-v2")
    targets.push_back(hostTargetName());
  return targets;
}

} // namespace dlc::test
