// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The evaluator of constants: compiles their functions for a fixed baseline, with the phases that every program goes through, and
// runs them with the runtime on the calling thread.
//
// A module must not depend on the machine that it was made on. The baseline has no fused multiply-add, its schedules come from a
// fixed entry of the target table, and all else that it computes with is exact as IEEE 754 says; only functions of the math library
// differ from one library to another, so what calls them is refused.

#include "RegisterAll.h"
#include "Runtime.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Pipeline/Pipeline.h"
#include "dlc/Plan/Plan.h"
#include "dlc/Target/BackendRegistry.h"
#include "dlc/Target/Target.h"
#include "dlc/Transforms/ConstantEvaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace mlir;

namespace dlc {
namespace {

/// A function, and what its arguments are bound to.
struct Function {
  std::string name;
  SmallVector<TypedAttr> arguments;
  SmallVector<RankedTensorType> results;
};

/// An input of a module can be bound to the bytes of the constant where they lie: it is not copied, and kernels that differ in their
/// constants alone are one. The boundary packs elements of few bits, and a repeated element is best kept as it is.
bool canBeArgument(TypedAttr constant) {
  auto type = cast<RankedTensorType>(constant.getType());
  if (type.getNumElements() == 0 || isSubByte(type.getElementType()))
    return false;
  auto elements = dyn_cast<DenseElementsAttr>(constant);
  return !elements || !elements.isSplat() || elements.getNumElements() == 1;
}

/// Gives a function the names that a module wants, and its constants as arguments.
Function prepare(func::FuncOp op) {
  Function function{op.getSymName().str(), {}, {}};
  Builder builder(op.getContext());
  Block &body = op.getBody().front();
  for (auto constant : llvm::make_early_inc_range(body.getOps<ConstantOp>())) {
    auto value = cast<TypedAttr>(constant.getValue());
    if (!canBeArgument(value))
      continue;
    constant.getResult().replaceAllUsesWith(body.addArgument(value.getType(), constant.getLoc()));
    constant.erase();
    function.arguments.push_back(value);
  }
  op.setType(builder.getFunctionType(body.getArgumentTypes(), op.getResultTypes()));
  for (unsigned i = 0; i != op.getNumArguments(); ++i)
    op.setArgAttr(i, kNameAttr, builder.getStringAttr("constant" + Twine(i)));
  for (auto [i, type] : llvm::enumerate(op.getResultTypes())) {
    op.setResultAttr(i, kNameAttr, builder.getStringAttr("result" + Twine(i)));
    function.results.push_back(cast<RankedTensorType>(type));
  }
  op->setAttr(kSymbolsAttr, builder.getArrayAttr({}));
  return function;
}

/// Functions whose kernels call the math library.
llvm::StringSet<> callersOfTheMathLibrary(ModuleOp program) {
  SymbolTable symbols(program);
  llvm::StringSet<> callers;
  program.walk([&](plan::LaunchOp launch) {
    if (symbols.lookup(launch.getKernel())->hasAttr(plan::kImportsAttr))
      callers.insert(launch->getParentOfType<plan::FuncOp>().getSymName());
  });
  return callers;
}

dlcrt_tensor tensorOf(int32_t dtype, char *data, uint64_t bytes, SmallVectorImpl<int64_t> &dims) {
  auto tensor = sized<dlcrt_tensor>();
  tensor.dtype = dtype;
  tensor.data = data;
  tensor.rank = dims.size();
  tensor.dims = dims.data();
  tensor.capacity = bytes;
  return tensor;
}

/// One element for all where they are equal; else the bytes as they are.
TypedAttr constantOf(RankedTensorType type, std::shared_ptr<char[]> data, size_t bytes) {
  size_t size = bytes / type.getNumElements();
  ArrayRef<char> elements(data.get(), bytes);
  if (std::memcmp(data.get(), data.get() + size, bytes - size) == 0)
    elements = elements.take_front(size);
  return makeConstant(type, elements, data);
}

llvm::Expected<ConstantEvaluator::Values> run(dlcrt_module *module, const Function &function) {
  RuntimeError error;
  auto options = sized<dlcrt_instance_options>();
  options.function = function.name.c_str();
  dlcrt_instance *created = nullptr;
  if (dlcrt_status status = dlcrt_instance_create(module, &options, &created, &error))
    return toError(status, error, "");
  InstanceHandle instance(created);
  uint32_t number = dlcrt_instance_function(created);

  SmallVector<ConstantBytes> constants; // stay until the run is over
  constants.reserve(function.arguments.size());
  for (auto [i, argument] : llvm::enumerate(function.arguments)) {
    ConstantBytes &bytes = constants.emplace_back(*constantBytes(argument));
    ArrayRef<char> data = bytes.owned.empty() ? bytes.data : ArrayRef<char>(bytes.owned);
    SmallVector<int64_t> dims(cast<RankedTensorType>(argument.getType()).getShape());
    auto info = sized<dlcrt_value_info>();
    if (dlcrt_status status = dlcrt_module_input(module, number, i, &info, &error))
      return toError(status, error, "");
    dlcrt_tensor tensor = tensorOf(info.dtype, const_cast<char *>(data.data()), data.size(), dims); // inputs are only read
    if (dlcrt_status status = dlcrt_instance_bind_input(created, i, &tensor, &error))
      return toError(status, error, "");
  }
  SmallVector<std::shared_ptr<char[]>> results;
  SmallVector<size_t> sizes;
  std::vector<SmallVector<int64_t>> dims(function.results.size()); // the runtime writes them
  for (auto [i, type] : llvm::enumerate(function.results)) {
    dims[i].assign(type.getShape().begin(), type.getShape().end());
    auto info = sized<dlcrt_value_info>();
    if (dlcrt_status status = dlcrt_module_output(module, number, i, &info, &error))
      return toError(status, error, "");
    sizes.push_back(dlcrt_tensor_bytes(info.dtype, type.getRank(), dims[i].data()));
    results.push_back(std::make_shared_for_overwrite<char[]>(sizes.back()));
    dlcrt_tensor tensor = tensorOf(info.dtype, results.back().get(), sizes.back(), dims[i]);
    if (dlcrt_status status = dlcrt_instance_bind_output(created, i, &tensor, &error))
      return toError(status, error, "");
  }
  if (dlcrt_status status = dlcrt_instance_run(created, nullptr, &error))
    return toError(status, error, "");
  ConstantEvaluator::Values values;
  for (auto [type, data, bytes] : llvm::zip_equal(function.results, results, sizes))
    values.push_back(constantOf(type, data, bytes));
  return values;
}

class RuntimeEvaluator : public ConstantEvaluator {
public:
  void registerDialects(DialectRegistry &registry) const override { registerAllDialects(registry); }

  std::vector<llvm::Expected<Values>> evaluate(OwningOpRef<ModuleOp> module) const override {
    SmallVector<Function> functions;
    for (auto op : module->getOps<func::FuncOp>())
      functions.push_back(prepare(op));
    std::vector<llvm::Expected<Values>> answers;
    if (llvm::Error failed = evaluate(std::move(module), functions, answers)) {
      std::string why = llvm::toString(std::move(failed));
      for (size_t i = answers.size(); i != functions.size(); ++i)
        answers.push_back(makeError("{}", why));
    }
    return answers;
  }

private:
  static llvm::Error evaluate(OwningOpRef<ModuleOp> module, ArrayRef<Function> functions, std::vector<llvm::Expected<Values>> &answers) {
    llvm::Expected<Target> host = parseTarget("cpu:host");
    if (!host)
      return host.takeError();
    CompileOptions options;
    options.variants.push_back({host->arch == TargetArch::X86_64 ? "cpu:x86-64-v2" : "cpu:aarch64", 0});
    MLIRContext &context = *module->getContext();
    std::string why;
    FailureOr<Compiled> compiled = failure();
    {
      ScopedDiagnosticHandler silence(&context, [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && why.empty())
          why = diagnostic.str();
        return success();
      });
      compiled = continueCompile(context, Phase::Clean, Program(std::move(module)), allBackends(), options);
    }
    if (failed(compiled))
      return makeError("{}", why);

    llvm::StringSet<> refused = callersOfTheMathLibrary(compiled->program->getPrograms().front());
    // The runtime uses in place what is aligned.
    std::unique_ptr<llvm::WritableMemoryBuffer> bytes =
        llvm::WritableMemoryBuffer::getNewUninitMemBuffer(compiled->bytes.size(), "constants", llvm::Align(64));
    if (!bytes)
      return makeError("there is not enough memory");
    std::memcpy(bytes->getBufferStart(), compiled->bytes.data(), compiled->bytes.size());
    compiled = failure();
    RuntimeError error;
    dlcrt_module *opened = nullptr;
    if (dlcrt_status status = dlcrt_module_open_memory(bytes->getBufferStart(), bytes->getBufferSize(), nullptr, &opened, &error))
      return toError(status, error, "");
    ModuleHandle handle(opened);
    for (const Function &function : functions) {
      if (refused.contains(function.name))
        answers.push_back(makeError("it calls functions of the math library, which are not the same everywhere"));
      else
        answers.push_back(run(opened, function));
    }
    return llvm::Error::success();
  }
};

} // namespace

const ConstantEvaluator &constantEvaluator() {
  static const RuntimeEvaluator evaluator;
  return evaluator;
}

} // namespace dlc
