// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/KernelOps.h"
#include "dlc/IR/LowerContext.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"
#include "dlc/IR/ShapeContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

#define GET_OP_CLASSES
#include "dlc/IR/Contraction.cpp.inc"

namespace dlc {

void DlcDialect::addContractionOps() {
  addOperations<
#define GET_OP_LIST
#include "dlc/IR/Contraction.cpp.inc"
      >();
}

Form MatMulOp::form() { return Form::Lower; }
Role MatMulOp::role() { return Role::Contraction; }
PrecisionNeed MatMulOp::precision() { return PrecisionNeed::AccumulateF32; }

/// The dims of an operand of a product, of which a permutation may be given.
static SmallVector<DimExpr> permuted(SmallVector<DimExpr> dims, std::optional<ArrayRef<int64_t>> perm) {
  if (!perm)
    return dims;
  SmallVector<DimExpr> result;
  for (int64_t axis : *perm)
    result.push_back(dims[axis]);
  return result;
}

LogicalResult MatMulOp::shape(ShapeContext &context) {
  for (auto [i, perm] : {std::pair(0, getAPerm()), std::pair(1, getBPerm())})
    if (perm && (perm->size() != context.dims(i).size() || !isPermutationVector(*perm)))
      return context.emitError() << "'" << (i ? "bPerm" : "aPerm") << "' is no permutation of the operand's " << context.dims(i).size() << " axes";
  SmallVector<DimExpr> a = permuted(context.dims(0), getAPerm()), b = permuted(context.dims(1), getBPerm());
  if (a.empty() || b.empty())
    return context.emitError() << "a matrix product needs operands of at least one axis; dims are " << toString(a) << " and " << toString(b);
  if (context.elementType(0) != context.elementType(1))
    return context.emitError() << "operands have the element types " << context.elementType(0) << " and " << context.elementType(1)
                               << "; they must be equal (ONNX never converts: insert a Cast)";
  bool rowVector = a.size() == 1, columnVector = b.size() == 1;
  DimExpr inner = a.back(), other = columnVector ? b[0] : b[b.size() - 2];
  if (failed(context.requireEqual(inner, other, "inner dims " + toString(inner) + " and " + toString(other) + " of the matrix product differ: {0} and {1}")))
    return failure();
  SmallVector<DimExpr> aBatch, bBatch;
  if (!rowVector)
    aBatch.assign(a.begin(), a.end() - 2);
  if (!columnVector)
    bBatch.assign(b.begin(), b.end() - 2);
  FailureOr<SmallVector<DimExpr>> dims = context.broadcast(aBatch, bBatch);
  if (failed(dims))
    return failure();
  if (!rowVector)
    dims->push_back(a[a.size() - 2]);
  if (!columnVector)
    dims->push_back(b.back());
  context.setResult(0, context.elementType(0), *dims);
  return success();
}

DimExpr MatMulOp::cost() {
  SmallVector<DimExpr> a = permuted(dimsOf(getA().getType()), getAPerm());
  DimExpr twice = constantDim(getContext(), 2);
  return mulDims(twice, mulDims(a.back(), productOfDims(getContext(), dimsOf(getResult().getType()))));
}

FailureOr<SmallVector<Value>> MatMulOp::lower(LowerContext &context) {
  OpBuilder &builder = context.b();
  RankedTensorType type = context.resultType();
  SmallVector<DimExpr> dims = dimsOf(type), aDims = permuted(dimsOf(context.operandType(0)), getAPerm()),
                       bDims = permuted(dimsOf(context.operandType(1)), getBPerm());
  bool rowVector = aDims.size() == 1, columnVector = bDims.size() == 1;
  int64_t resultRank = dims.size(), batch = resultRank - !rowVector - !columnVector;
  unsigned loops = resultRank + 1; // batch..., row?, column?, inner
  AffineExpr inner = builder.getAffineDimExpr(loops - 1);

  // A batch dim of an operand is the result's, or 1. Anything between is decided at run time, which this op cannot do yet.
  auto batchExprs = [&](ArrayRef<DimExpr> operand, int64_t matrixAxes) -> FailureOr<SmallVector<AffineExpr>> {
    SmallVector<AffineExpr> exprs;
    int64_t count = static_cast<int64_t>(operand.size()) - matrixAxes;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = batch - count + i;
      if (operand[i] == dims[at])
        exprs.push_back(builder.getAffineDimExpr(at));
      else if (operand[i].isConstant(1))
        exprs.push_back(builder.getAffineConstantExpr(0));
      else
        return emitError() << "batch dim " << toString(operand[i]) << " may or may not be broadcast to " << toString(dims[at])
                           << "; give both the same name, or fix one with --dim",
               failure();
    }
    return exprs;
  };
  FailureOr<SmallVector<AffineExpr>> aExprs = batchExprs(aDims, rowVector ? 1 : 2), bExprs = batchExprs(bDims, columnVector ? 1 : 2);
  if (failed(aExprs) || failed(bExprs))
    return failure();
  if (!rowVector)
    aExprs->push_back(builder.getAffineDimExpr(batch));
  aExprs->push_back(inner);
  bExprs->push_back(inner);
  if (!columnVector)
    bExprs->push_back(builder.getAffineDimExpr(resultRank - 1));
  for (auto [exprs, perm] : {std::pair(&*aExprs, getAPerm()), std::pair(&*bExprs, getBPerm())})
    if (perm) {
      SmallVector<AffineExpr> product(*exprs);
      for (auto [i, axis] : llvm::enumerate(*perm))
        (*exprs)[axis] = product[i];
    }

  Type element = type.getElementType();
  Type storage = storageType(type).getElementType();
  // Half types accumulate in f32 and are rounded once.
  bool isHalf = element.isF16() || element.isBF16();
  Type accumulator = isHalf ? Type(builder.getF32Type()) : storage;
  Value init = context.filled(type, builder.getZeroAttr(accumulator));
  SmallVector<AffineExpr> resultExprs; // none for the product of two vectors
  for (int64_t i = 0; i != resultRank; ++i)
    resultExprs.push_back(builder.getAffineDimExpr(i));
  SmallVector<AffineMap> maps{AffineMap::get(loops, 0, *aExprs, getContext()), AffineMap::get(loops, 0, *bExprs, getContext()),
                              AffineMap::get(loops, 0, resultExprs, getContext())};
  SmallVector<utils::IteratorType> iterators(resultRank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  auto product = linalg::GenericOp::create(
      builder, getLoc(), init.getType(), ValueRange{context.operand(0), context.operand(1)}, init, maps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value x = args[0], y = args[1], sum;
        if (isa<FloatType>(element)) {
          if (isHalf) {
            x = arith::ExtFOp::create(b, loc, accumulator, x);
            y = arith::ExtFOp::create(b, loc, accumulator, y);
          }
          sum = arith::AddFOp::create(b, loc, args[2], arith::MulFOp::create(b, loc, x, y));
        } else {
          sum = arith::AddIOp::create(b, loc, args[2], arith::MulIOp::create(b, loc, x, y));
        }
        linalg::YieldOp::create(b, loc, sum);
      });
  Value result = product.getResult(0);
  if (isHalf)
    result = context.truncated(result, type);
  return SmallVector<Value>{result};
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// An axis of an operand: the letter that names it, or one of those that `...` stands for, counted from the end: -1, -2 ...
using Label = int;
using Labels = SmallVector<Label>;

/// The labels of each operand's axes and of the result's.
struct EinsumEquation {
  SmallVector<Labels> terms;
  Labels result;
};

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// The letters of one term and at most one `...`, which stands for `ellipsis` axes, or as many as are left of `rank`.
FailureOr<Labels> parseTerm(StringRef term, std::optional<int64_t> rank, int64_t ellipsis, const Twine &what, EmitError emitError) {
  std::string letters;
  std::optional<size_t> dots;
  for (StringRef rest = term; !rest.empty();) {
    if (llvm::isAlpha(rest.front())) {
      letters += rest.front();
      rest = rest.drop_front();
    } else if (!dots && rest.consume_front("...")) {
      dots = letters.size();
    } else {
      return emitError() << what << ", '" << term << "', is not made of letters and at most one '...'", failure();
    }
  }
  int64_t count = letters.size();
  if (rank && (dots ? count > *rank : count != *rank))
    return emitError() << what << ", '" << term << "', names " << count << " axes, but the operand has " << *rank, failure();
  Labels labels(letters.begin(), letters.end());
  if (rank)
    ellipsis = *rank - count;
  for (int64_t i = 1; dots && i <= ellipsis; ++i)
    labels.insert(labels.begin() + *dots, -i);
  return labels;
}

FailureOr<EinsumEquation> parseEquation(StringRef text, ArrayRef<int64_t> ranks, EmitError emitError) {
  std::string compact;
  llvm::copy_if(text, std::back_inserter(compact), [](char c) { return c != ' '; });
  bool isExplicit = StringRef(compact).contains("->");
  auto [left, right] = StringRef(compact).split("->");
  SmallVector<StringRef> texts;
  left.split(texts, ',');
  if (texts.size() != ranks.size())
    return emitError() << "the equation '" << text << "' has " << texts.size() << " terms for " << ranks.size() << " operands", failure();
  EinsumEquation equation;
  int64_t ellipsis = 0;
  std::map<Label, unsigned> uses;
  for (auto [i, term] : llvm::enumerate(texts)) {
    FailureOr<Labels> labels = parseTerm(term, ranks[i], 0, "term " + Twine(i) + " of the equation", emitError);
    if (failed(labels))
      return failure();
    for (Label label : *labels) {
      ++uses[label];
      ellipsis = std::max<int64_t>(ellipsis, -label);
    }
    equation.terms.push_back(*labels);
  }
  if (isExplicit) {
    FailureOr<Labels> labels = parseTerm(right, std::nullopt, ellipsis, "the right side of the equation", emitError);
    if (failed(labels))
      return failure();
    for (auto [i, label] : llvm::enumerate(*labels)) {
      if (llvm::is_contained(ArrayRef(*labels).take_front(i), label))
        return emitError() << "the right side of the equation '" << text << "' names axis '" << char(label) << "' twice", failure();
      if (!uses.count(label))
        return emitError() << "the right side of the equation '" << text << "' names axis '" << char(label) << "', which no operand has",
               failure();
    }
    equation.result = *labels;
  } else {
    for (auto [label, count] : uses) // in the order of the labels: those of '...' first
      if (label < 0 || count == 1)
        equation.result.push_back(label);
  }
  return equation;
}

FailureOr<EinsumEquation> equationOf(EinsumOp op) {
  SmallVector<int64_t> ranks;
  for (Type type : op.getOperandTypes())
    ranks.push_back(cast<RankedTensorType>(type).getRank());
  return parseEquation(op.getEquation(), ranks, [&] { return op->emitError(); });
}

/// Rewrites an einsum into ops on two operands at most.
class EinsumExpansion {
public:
  EinsumExpansion(EinsumOp op, EinsumEquation equation, RewriterBase &rewriter)
      : op(op), equation(std::move(equation)), b(rewriter), loc(op.getLoc()),
        element(cast<RankedTensorType>(op.getResult().getType()).getElementType()) {}

  /// A null value, after an error, where a dim cannot be told.
  Value run() {
    findDims();
    SmallVector<Term> terms;
    for (auto [operand, labels] : llvm::zip_equal(op.getXs(), equation.terms))
      terms.push_back(plain({operand, labels}));
    // What occurs in one operand only is summed before anything is multiplied.
    for (auto [i, term] : llvm::enumerate(terms)) {
      Labels kept = equation.result;
      for (auto [j, other] : llvm::enumerate(terms))
        if (i != j)
          llvm::append_range(kept, other.labels);
      term = sum(term, kept);
    }
    Term product = terms.front();
    for (size_t i = 1; i < terms.size(); ++i) {
      Labels kept = equation.result;
      for (const Term &later : ArrayRef(terms).drop_front(i + 1))
        llvm::append_range(kept, later.labels);
      product = multiply(product, terms[i], kept);
      if (!product.x)
        return {};
    }
    return transpose(product, equation.result).x;
  }

private:
  struct Term {
    Value x;
    Labels labels;
  };

  /// The dim of each label: of `...` the one that operands are broadcast to.
  void findDims() {
    for (auto [operand, labels] : llvm::zip_equal(op.getXs(), equation.terms))
      for (auto [label, dim] : llvm::zip_equal(labels, dimsOf(operand.getType())))
        dims.try_emplace(label, dim);
    for (auto [label, dim] : llvm::zip_equal(equation.result, dimsOf(op.getResult().getType())))
      dims[label] = dim;
  }

  RankedTensorType typeOf(ArrayRef<Label> labels) {
    SmallVector<DimExpr> own;
    for (Label label : labels)
      own.push_back(dims.at(label));
    return tensorType(own, element);
  }

  /// Each label once, and with the label's own dim; without axes of `...` that are broadcast.
  Term plain(Term term) {
    for (size_t i = 0; i < term.labels.size(); ++i) {
      SmallVector<int64_t> axes;
      SmallVector<DimExpr> rest;
      Labels labels;
      for (auto [axis, label, dim] : llvm::enumerate(term.labels, dimsOf(term.x.getType()))) {
        if (label == term.labels[i])
          axes.push_back(axis);
        if (label == term.labels[i] && axes.size() > 1)
          continue;
        labels.push_back(label);
        rest.push_back(dim);
      }
      if (axes.size() > 1)
        term = {DiagonalOp::create(b, loc, tensorType(rest, element), term.x, axes), labels};
    }
    SmallVector<DimExpr> own;
    Labels labels;
    for (auto [label, dim] : llvm::zip_equal(term.labels, dimsOf(term.x.getType()))) {
      if (label < 0 && dim.isConstant(1) && dim != dims.at(label))
        continue;
      labels.push_back(label);
      own.push_back(label < 0 ? dim : dims.at(label)); // the dims of a letter are the same, however they are written
    }
    Value x = reshapeTo(b, loc, term.x, tensorType(own, element));
    RankedTensorType type = typeOf(labels);
    if (x.getType() != type) {
      // Whether an axis is repeated is decided at run time. The dims of the broadcast are those of the labels, under another name.
      SmallVector<DimExpr> repeated;
      DimExpr one = constantDim(b.getContext(), 1);
      for (auto [dim, label] : llvm::zip_equal(dimsOf(x.getType()), labels))
        repeated.push_back(dim == dims.at(label) || provablyDifferent(dim, one) ? dim : selectEqDims(dim, one, dims.at(label), dim));
      x = ExpandOp::create(b, loc, tensorType(repeated, element), x, shapeOf(type));
      x = reshapeTo(b, loc, x, type);
    }
    return {x, labels};
  }

  Value shapeOf(RankedTensorType type) {
    SmallVector<Attribute> values;
    for (DimExpr dim : dimsOf(type))
      values.push_back(dim);
    return FromDimsOp::create(b, loc, RankedTensorType::get({type.getRank()}, b.getI64Type()), b.getArrayAttr(values));
  }

  Term sum(Term term, ArrayRef<Label> kept) {
    SmallVector<int64_t> axes;
    Labels labels;
    for (auto [axis, label] : llvm::enumerate(term.labels)) {
      if (llvm::is_contained(kept, label))
        labels.push_back(label);
      else
        axes.push_back(axis);
    }
    if (axes.empty())
      return term;
    return {ReduceOp::create(b, loc, typeOf(labels), term.x, ReduceKind::Sum, axes, /*keepdims=*/false, /*allAxes=*/false), labels};
  }

  Term transpose(Term term, ArrayRef<Label> order) {
    if (ArrayRef(term.labels) == order)
      return term;
    SmallVector<int64_t> perm;
    for (Label label : order)
      perm.push_back(llvm::find(term.labels, label) - term.labels.begin());
    return {TransposeOp::create(b, loc, typeOf(order), term.x, b.getDenseI64ArrayAttr(perm)), Labels(order)};
  }

  /// The product, summed over the labels that both have and nobody needs any more.
  Term multiply(Term x, Term y, ArrayRef<Label> kept) {
    Labels batch, summed, rows, columns;
    for (Label label : x.labels) {
      bool isShared = llvm::is_contained(y.labels, label);
      (!isShared ? rows : llvm::is_contained(kept, label) ? batch : summed).push_back(label);
    }
    for (Label label : y.labels)
      if (!llvm::is_contained(x.labels, label))
        columns.push_back(label);
    Labels all = llvm::to_vector(llvm::concat<Label>(batch, rows, columns));
    DimExpr one = constantDim(b.getContext(), 1);
    SmallVector<DimExpr> batchDims;
    for (Label label : batch)
      batchDims.push_back(dims.at(label));
    auto withBatch = [&](ArrayRef<DimExpr> more) {
      SmallVector<DimExpr> both(batchDims);
      llvm::append_range(both, more);
      return tensorType(both, element);
    };
    if (summed.empty()) {
      SmallVector<DimExpr> xDims = dimsOf(typeOf(rows)), yDims(rows.size(), one);
      xDims.append(columns.size(), one);
      llvm::append_range(yDims, dimsOf(typeOf(columns)));
      Value left = transpose(x, llvm::to_vector(llvm::concat<Label>(batch, rows))).x;
      Value right = transpose(y, llvm::to_vector(llvm::concat<Label>(batch, columns))).x;
      left = reshapeTo(b, loc, left, withBatch(xDims));
      right = reshapeTo(b, loc, right, withBatch(yDims));
      return {MulOp::create(b, loc, typeOf(all), left, right), all};
    }
    auto size = [&](ArrayRef<Label> labels) { return productOfDims(b.getContext(), dimsOf(typeOf(labels))); };
    DimExpr rowCount = size(rows), columnCount = size(columns), depth = size(summed);
    if (!rowCount || !columnCount || !depth) {
      op->emitError() << "a dimension does not fit 64 bits, or depends on the dims of the inputs in too many ways (fix some of them with --dim)";
      return {};
    }
    Value left = transpose(x, llvm::to_vector(llvm::concat<Label>(batch, rows, summed))).x;
    Value right = transpose(y, llvm::to_vector(llvm::concat<Label>(batch, summed, columns))).x;
    left = reshapeTo(b, loc, left, withBatch({rowCount, depth}));
    right = reshapeTo(b, loc, right, withBatch({depth, columnCount}));
    Value product = MatMulOp::create(b, loc, withBatch({rowCount, columnCount}), left, right);
    return {reshapeTo(b, loc, product, typeOf(all)), all};
  }

  EinsumOp op;
  EinsumEquation equation;
  RewriterBase &b;
  Location loc;
  Type element;
  std::map<Label, DimExpr> dims;
};
} // namespace

Form EinsumOp::form() { return Form::Expand; }

LogicalResult EinsumOp::shape(ShapeContext &context) {
  if (getXs().empty())
    return context.emitError() << "an einsum needs an operand";
  Type element = context.elementType(0);
  for (unsigned i = 0; i != getXs().size(); ++i)
    if (context.elementType(i) != element)
      return context.emitError() << "operands have the element types " << element << " and " << context.elementType(i)
                                 << "; they must be equal (ONNX never converts: insert a Cast)";
  if (element.isInteger(1))
    return context.emitError() << "a bool tensor has no sum";
  FailureOr<EinsumEquation> equation = equationOf(*this);
  if (failed(equation))
    return failure();
  std::map<Label, DimExpr> known;
  for (auto [i, labels] : llvm::enumerate(equation->terms))
    for (auto [label, dim] : llvm::zip_equal(labels, context.dims(i))) {
      auto [found, isNew] = known.try_emplace(label, dim);
      if (isNew)
        continue;
      if (label < 0) {
        FailureOr<DimExpr> both = context.broadcast(found->second, dim);
        if (failed(both))
          return failure();
        found->second = *both;
      } else if (failed(context.requireEqual(found->second, dim, "axes named '" + Twine(char(label)) + "' differ: {0} and {1}"))) {
        return failure();
      }
    }
  SmallVector<DimExpr> dims;
  for (Label label : equation->result)
    dims.push_back(known.at(label));
  context.setResult(0, element, dims);
  return success();
}

LogicalResult EinsumOp::expand(RewriterBase &rewriter) {
  FailureOr<EinsumEquation> equation = equationOf(*this);
  if (failed(equation))
    return failure();
  Value result = EinsumExpansion(*this, *equation, rewriter).run();
  if (!result)
    return failure();
  rewriter.replaceOp(*this, result);
  return success();
}

//===----------------------------------------------------------------------===//
// Triangularize
//===----------------------------------------------------------------------===//

Form TriangularizeOp::form() { return Form::Kernel; }
Role TriangularizeOp::role() { return Role::Opaque; }
PrecisionNeed TriangularizeOp::precision() { return PrecisionNeed::KeepF32; }

LogicalResult TriangularizeOp::shape(ShapeContext &context) {
  Type element = context.elementType(0);
  if (!element.isF32() && !element.isF64())
    return context.emitError() << "elements must be f32 or f64, not " << element;
  SmallVector<DimExpr> dims = context.dims(0);
  if (dims.size() < 2)
    return context.emitError() << "a matrix has two axes at least; dims are " << toString(dims);
  if (failed(context.requireEqual(dims[dims.size() - 2], dims.back(), "a determinant needs square matrices, not {0} by {1}")))
    return failure();
  context.setResult(0, element, dims);
  return success();
}

FailureOr<SmallVector<Value>> TriangularizeOp::lower(LowerContext &context) {
  Value init = context.empty(context.resultType());
  return SmallVector<Value>{KernelTriangularizeOp::create(context.b(), getLoc(), init.getType(), context.operand(0), init)};
}

} // namespace dlc
