// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"
#include "TensorFiles.h"
#include "dlc/Support/OutputFile.h"
#include "llvm/ADT/STLExtras.h"

namespace dlc {

static llvm::Error runModel(const Invocation &invocation, const ExecutionRequest &request, Execution &execution) {
  if (llvm::Error failed = execution.createInstance(request))
    return failed;
  if (llvm::Error failed = execution.bindInputs(request))
    return failed;
  if (llvm::Error failed = execution.run())
    return failed;
  if (invocation.has(OPT_verbose)) {
    llvm::Expected<std::string> target = execution.getTarget();
    if (!target)
      return target.takeError();
    uint32_t threads = execution.getThreads();
    invocation.io.err << fmt::format("ran variant {} on {} thread{}\n", *target, threads, threads == 1 ? "" : "s");
  }

  std::string folder = invocation.value(OPT_outputs);
  if (folder.empty())
    return llvm::Error::success();
  if (llvm::Error failed = makeFolder(folder))
    return failed;
  llvm::Expected<std::vector<HostTensor>> outputs = execution.readOutputs();
  if (!outputs)
    return outputs.takeError();
  for (auto [i, output] : llvm::enumerate(*outputs))
    if (llvm::Error unwritten = writeTensor(folder, "output", static_cast<unsigned>(i), output, invocation.value(OPT_format) == "npy"))
      return unwritten;
  return llvm::Error::success();
}

int runRun(const Invocation &invocation) {
  if (std::optional<int> exit = refuseAllButOne(invocation, "say which model to run: dlc run MODEL.onnx --inputs DIR --outputs DIR"))
    return *exit;
  std::string format = invocation.value(OPT_format);
  if (!format.empty() && format != "pb" && format != "npy")
    return invocation.usage("--format takes pb or npy, not '" + format + "'");
  llvm::Expected<ExecutionRequest> request = executionRequestOf(invocation, /*defaultSeed=*/std::nullopt);
  if (!request)
    return invocation.fail(request.takeError(), kExitUsage);
  Execution execution;
  if (std::optional<int> exit = execution.load(invocation, *request))
    return *exit;
  llvm::Error failed = runModel(invocation, *request, execution);
  return failed ? invocation.fail(std::move(failed)) : kExitOk;
}

} // namespace dlc
