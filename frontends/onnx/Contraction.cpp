// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Compose.h"
#include "ElementType.h"
#include "OpTable.h"
#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {

/// alpha * A' * B' + beta * C, where ' may transpose.
static void gemm(NodeReader &n) {
  Value a = n.input(0), b = n.input(1), c = n.optionalInput(2);
  Type type = NodeReader::elementTypeOf(a);
  float alpha = n.getFloat("alpha", 1.0f), beta = n.getFloat("beta", 1.0f);
  if (n.getVersion() < 7)
    n.ignore("broadcast"); // C broadcasts now whenever it must
  for (auto [i, operand] : {std::pair(0u, a), std::pair(1u, b)})
    if (std::optional<int64_t> rank = NodeReader::rankOf(operand); rank && *rank != 2)
      n.failInput(i, Twine("its ") + n.describeInput(i) + " has " + Twine(*rank) + " dimensions; it must be a matrix");
  if (isa<IntegerType>(type) && (alpha != 1.0f || (c && beta != 1.0f)))
    n.fail(Twine("its attributes 'alpha' and 'beta' other than 1 are not supported with elements of type ") + typeName(type));
  if (n.getFlag("transA", false))
    a = n.make<TransposeOp>(type, a, n.b().getDenseI64ArrayAttr({1, 0}));
  if (n.getFlag("transB", false))
    b = n.make<TransposeOp>(type, b, n.b().getDenseI64ArrayAttr({1, 0}));
  Value result = n.make<MatMulOp>(type, a, b);
  if (alpha != 1.0f)
    result = n.make<MulOp>(type, result, n.scalar(alpha, type));
  if (c) {
    if (beta != 1.0f)
      c = n.make<MulOp>(type, c, n.scalar(beta, type));
    result = n.make<AddOp>(type, result, c);
  }
  n.setOutput(0, result);
}

/// An operand of FusedMatMul as that of a plain product: its first axis may stand before the last one, behind the batch, and then the last two
/// may be swapped. One axis stays as it is.
static Value asOperand(NodeReader &n, Value x, bool transposes, bool transposesBatch) {
  if (!transposes && !transposesBatch)
    return x;
  auto byPermutation = [&](int64_t rank) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::seq(rank));
    if (transposesBatch)
      std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
    if (transposes)
      std::swap(perm[rank - 1], perm[rank - 2]);
    return transpose(n, x, perm);
  };
  if (std::optional<int64_t> rank = NodeReader::rankOf(x))
    return *rank < 2 ? x : byPermutation(*rank);
  // Those that occur, and any other one as three axes.
  auto other = [&] {
    Type index = n.b().getI64Type();
    Value shape = n.make<ShapeOp>(index, x, /*start=*/0, /*end=*/IntegerAttr());
    auto dims = [&](int64_t start, int64_t end) { return slice(n, shape, n.ints({start}), n.ints({end}), 0); };
    Value last = dims(-1, INT64_MAX), before = transposesBatch ? dims(0, 1) : dims(-2, -1), batch = transposesBatch ? dims(1, -1) : dims(0, -2);
    Value flat = reshape(n, x, transposesBatch ? concat(n, {before, n.ints({-1}), last}, 0) : concat(n, {n.ints({-1}), before, last}, 0));
    SmallVector<int64_t> perm = transposesBatch ? SmallVector<int64_t>{1, 0, 2} : SmallVector<int64_t>{0, 1, 2};
    if (transposes)
      std::swap(perm[1], perm[2]);
    Value result = transposes ? concat(n, {batch, last, before}, 0) : concat(n, {batch, before, last}, 0);
    return reshape(n, transpose(n, flat, perm), result, /*allowzero=*/true);
  };
  auto two = [&] { return byPermutation(2); };
  auto three = [&] { return byPermutation(3); };
  auto four = [&] { return byPermutation(4); };
  auto orOne = [&] { return makeByRank(n, x, 1, [&] { return x; }, other); };
  auto orTwo = [&] { return makeByRank(n, x, 2, two, orOne); };
  auto orThree = [&] { return makeByRank(n, x, 3, three, orTwo); };
  return makeByRank(n, x, 4, four, orThree);
}

/// alpha * A' * B'.
static void fusedMatMul(NodeReader &n) {
  requireOneFloatType(n, {0, 1});
  Value a = asOperand(n, n.input(0), n.getFlag("transA", false), n.getFlag("transBatchA", false));
  Value b = asOperand(n, n.input(1), n.getFlag("transB", false), n.getFlag("transBatchB", false));
  Type type = NodeReader::elementTypeOf(a);
  float alpha = n.getFloat("alpha", 1.0f);
  Value result = n.make<MatMulOp>(type, a, b);
  n.setOutput(0, alpha == 1.0f ? result : n.make<MulOp>(type, result, n.scalar(alpha, type)));
}

static void einsum(NodeReader &n) {
  std::optional<std::string> equation = n.findString("equation");
  if (!equation && !n.failed())
    n.fail("its attribute 'equation' is missing");
  if (n.getNumInputs() == 0)
    return n.fail("it has no input");
  n.setOutput(0, n.make<EinsumOp>(n.elementType(0), n.inputsFrom(0), equation.value_or("")));
}

/// The product of the diagonal, once elimination has made the matrices triangular. Half types compute in f32.
static void determinant(NodeReader &n) {
  Value x = n.input(0);
  Type type = NodeReader::elementTypeOf(x), compute = type.getIntOrFloatBitWidth() < 32 ? Type(n.b().getF32Type()) : type;
  Value triangles = n.make<TriangularizeOp>(compute, n.cast(x, compute));
  Value diagonal = n.make<DiagonalOp>(compute, triangles, SmallVector<int64_t>{-2, -1});
  Value product = n.make<ReduceOp>(compute, diagonal, ReduceKind::Prod, SmallVector<int64_t>{-1}, /*keepdims=*/false, /*allAxes=*/false);
  n.setOutput(0, n.cast(product, type));
}

void addContractionOps(OpTable &t) {
  t.add("Det", 11, determinant);
  t.add("Einsum", 12, einsum);
  t.add("MatMul", 1, [](NodeReader &n) { n.setOutput(0, n.make<MatMulOp>(n.elementType(0), n.input(0), n.input(1))); });
  t.add("Gemm", 6, gemm);
  t.add("FusedMatMul", 1, fusedMatMul, kMicrosoft);
}

} // namespace dlc
