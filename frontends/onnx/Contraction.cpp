// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

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
}

} // namespace dlc
