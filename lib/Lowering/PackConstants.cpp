// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Launches.h"
#include "dlc/IR/Dialect.h"
#include "dlc/Lowering/Passes.h"
#include "dlc/Support/CurrentWork.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <mutex>

using namespace mlir;

namespace dlc {
namespace {

/// Packed constants by constant and format. The variants of a program share one.
struct PackedConstants {
  std::mutex mutex;
  llvm::DenseMap<std::pair<Attribute, Attribute>, TypedAttr> known;
};

/// The elements of a constant in the order of linalg.pack, with zeros behind the last of each row of panels.
std::vector<char> pack(ArrayRef<char> elements, bool isSplat, RankedTensorType type, RankedTensorType packed, const PackedOperand &format) {
  const int64_t size = (type.getElementTypeBitWidth() + 7) / 8, rank = type.getRank();
  SmallVector<int64_t> strides(rank); // bytes from one element to the next
  for (int64_t d = rank, stride = size; d-- > 0; stride *= type.getDimSize(d))
    strides[d] = isSplat ? 0 : stride;
  std::vector<char> bytes(packed.getNumElements() * size, 0);
  char *to = bytes.data();
  SmallVector<int64_t> at(rank, 0); // of the packed dims but the last
  for (int64_t row = packed.getNumElements() / format.panel; row-- > 0;) {
    const char *from = elements.data();
    int64_t first = 0;
    for (auto [index, d] : llvm::zip_equal(at, format.order)) {
      first = d == format.dim ? index * format.panel : first;
      from += (d == format.dim ? index * format.panel : index) * strides[d];
    }
    int64_t count = std::min(format.panel, type.getDimSize(format.dim) - first), stride = strides[format.dim];
    if (stride == size)
      memcpy(to, from, count * size);
    else if (size == 4)
      for (int64_t i = 0; i < count; ++i)
        memcpy(to + 4 * i, from + stride * i, 4);
    else
      for (int64_t i = 0; i < count; ++i)
        memcpy(to + size * i, from + stride * i, size);
    to += format.panel * size;
    for (int64_t d = rank; d-- > 0;) {
      if (++at[d] < packed.getDimSize(d))
        break;
      at[d] = 0;
    }
  }
  return bytes;
}

class PackConstants : public PassWrapper<PackConstants, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PackConstants)
  explicit PackConstants(const BackendRegistry &backends) : backends(&backends), constants(std::make_shared<PackedConstants>()) {}
  StringRef getArgument() const override { return "pack-constants"; }
  StringRef getDescription() const override { return "Puts constants into the order in which kernels read them"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<linalg::LinalgDialect, tensor::TensorDialect>(); }

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Target> target = targetOfVariant(module);
    const Backend *backend = succeeded(target) ? backendOfVariant(module, *backends, *target) : nullptr;
    if (!backend)
      return signalPassFailure();
    SymbolTable symbols(module);
    auto launches = launchesByKernel(module, symbols);
    for (auto &[kernel, users] : launches)
      if (kernel.hasBody())
        if (std::optional<PackedOperand> format = backend->packedOperand(kernel, *target))
          packOperand(kernel, users, *format, symbols);
    module.walk([](plan::ConstOp op) {
      if (op->use_empty())
        op.erase();
    });
  }

  void packOperand(plan::KernelOp kernel, ArrayRef<plan::LaunchOp> launches, const PackedOperand &format, SymbolTable &symbols) {
    CurrentWork work("pack-constants", kernel.getLoc());
    auto type = cast<RankedTensorType>(kernel.getBody().getArgument(format.operand).getType());
    if (!type.hasStaticShape() || type.getNumElements() == 0)
      return;
    SmallVector<int64_t> shape;
    for (int64_t d : format.order)
      shape.push_back(d == format.dim ? llvm::divideCeil(type.getDimSize(d), format.panel) : type.getDimSize(d));
    shape.push_back(format.panel);
    auto packed = RankedTensorType::get(shape, type.getElementType());

    SmallVector<plan::LaunchOp> withConstant;
    for (plan::LaunchOp launch : launches)
      if (auto constant = launch.getSources()[format.operand].getDefiningOp<plan::ConstOp>())
        if (TypedAttr value = packedConstant(constant.getValue(), type, packed, format)) {
          // Beside the constant, so that all launches of it find one.
          OpBuilder builder(constant);
          Value buffer = plan::ConstOp::create(builder, constant.getLoc(), constant.getType(), value, constant.getDevice());
          launch.getSourcesMutable()[format.operand].assign(buffer);
          withConstant.push_back(launch);
        }
    if (withConstant.empty())
      return;
    if (withConstant.size() != launches.size()) { // others compute the operand: theirs stays as it is
      auto own = cast<plan::KernelOp>(kernel->clone());
      own.setSymName((kernel.getSymName() + "_packed").str());
      symbols.insert(own, std::next(kernel->getIterator()));
      for (plan::LaunchOp launch : withConstant)
        launch.setKernelAttr(FlatSymbolRefAttr::get(own.getSymNameAttr()));
      kernel = own;
    }
    Block &body = kernel.getBody().front();
    BlockArgument argument = body.getArgument(format.operand);
    argument.setType(packed);
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    Value plain = tensor::EmptyOp::create(builder, argument.getLoc(), type.getShape(), type.getElementType());
    auto unpack = linalg::UnPackOp::create(builder, argument.getLoc(), argument, plain, {format.dim}, {builder.getIndexAttr(format.panel)}, format.order);
    argument.replaceAllUsesExcept(unpack->getResult(0), unpack);
    SmallVector<Attribute> dims(kernel->getAttrOfType<ArrayAttr>(kDimsAttr).getValue());
    dims[format.operand] = builder.getDenseI64ArrayAttr(SmallVector<int64_t>(packed.getRank(), -1));
    kernel->setAttr(kDimsAttr, builder.getArrayAttr(dims));
  }

  TypedAttr packedConstant(Attribute value, RankedTensorType type, RankedTensorType packed, const PackedOperand &format) {
    SmallVector<int64_t> recipe(format.order);
    recipe.append({format.dim, format.panel});
    recipe.append(type.getShape().begin(), type.getShape().end()); // the same bytes may serve as tensors of several shapes
    std::pair<Attribute, Attribute> key(value, DenseI64ArrayAttr::get(&getContext(), recipe));
    std::lock_guard lock(constants->mutex);
    TypedAttr &known = constants->known[key];
    if (known)
      return known;
    std::optional<ConstantBytes> bytes = constantBytes(value);
    int64_t size = (type.getElementTypeBitWidth() + 7) / 8;
    if (!bytes)
      return {};
    ArrayRef<char> data = bytes->owned.empty() ? bytes->data : ArrayRef<char>(bytes->owned);
    if (int64_t(data.size()) != (bytes->isSplat ? size : type.getNumElements() * size))
      return {};
    auto own = std::make_shared<std::vector<char>>(pack(data, bytes->isSplat, type, packed, format));
    return known = makeConstant(packed, ArrayRef(*own), own);
  }

  const BackendRegistry *backends;
  std::shared_ptr<PackedConstants> constants;
};

} // namespace

std::unique_ptr<Pass> createPackConstants(const BackendRegistry &backends) { return std::make_unique<PackConstants>(backends); }

} // namespace dlc
