// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"
#include "TensorFiles.h"
#include "dlc/Support/OutputFile.h"

namespace dlc {

static llvm::Expected<HostTensor> readOutput(dlcrt_module *module, dlcrt_instance *instance, uint32_t function, uint32_t index) {
  RuntimeError error;
  auto info = sized<dlcrt_value_info>();
  if (dlcrt_status status = dlcrt_module_output(module, function, index, &info, &error))
    return toError(status, error, "");
  auto view = sized<dlcrt_tensor>();
  if (dlcrt_status status = dlcrt_instance_output(instance, index, &view, &error))
    return toError(status, error, "");
  HostTensor tensor;
  tensor.name = info.name;
  tensor.dtype = view.dtype;
  tensor.dims.assign(view.dims, view.dims + view.rank);
  uint64_t bytes = dlcrt_tensor_bytes(view.dtype, view.rank, view.dims);
  if (view.dtype == DLCRT_DTYPE_STRING || bytes == UINT64_MAX)
    return makeError("output '{}' cannot be written: its type is {}", info.name, dlcrt_dtype_name(view.dtype));
  const char *data = static_cast<const char *>(view.data) + view.byte_offset;
  if (bytes != 0)
    tensor.bytes.assign(data, data + bytes);
  return tensor;
}

static llvm::Error runModel(const Invocation &invocation, const ExecutionRequest &request, Execution &execution) {
  if (llvm::Error failed = execution.createInstance(invocation, request))
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
  RuntimeError error;
  auto info = sized<dlcrt_function_info>();
  if (dlcrt_status status = dlcrt_module_function(execution.getModule(), execution.getFunction(), &info, &error))
    return toError(status, error, execution.getSubject());
  for (uint32_t i = 0; i < info.output_count; ++i) {
    llvm::Expected<HostTensor> output = readOutput(execution.getModule(), execution.getInstance(), execution.getFunction(), i);
    if (!output)
      return output.takeError();
    if (llvm::Error unwritten = writeTensor(folder, "output", i, *output, invocation.value(OPT_format) == "npy"))
      return unwritten;
  }
  return llvm::Error::success();
}

int runRun(const Invocation &invocation) {
  if (invocation.inputs.size() != 1)
    return invocation.usage("say which model to run: dlc run MODEL.onnx --inputs DIR --outputs DIR");
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
