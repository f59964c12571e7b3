// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Attention: of ONNX, and as ONNX Runtime's optimizer and exporters for it write it (com.microsoft). All become the same composition
// (`attend`): a product of queries and transposed keys, element-wise ops, a softmax, a product with values.

#include "Compose.h"
#include "ElementType.h"
#include "OpTable.h"
#include "dlc/IR/Contraction.h"
#include "dlc/IR/Elementwise.h"
#include "dlc/IR/Movement.h"
#include "dlc/IR/Reduction.h"

using namespace mlir;

namespace dlc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Broadcasts with the scores [batch, heads, rows, columns].
struct Term {
  Value value;
  /// How the axis of heads is, which has to be cut where several heads of queries share one of keys.
  enum Heads { None, One, Any, UnknownRank } heads = None;
};

/// What the composition is made of. Heads are [batch, heads, length, size].
struct Attention {
  Value queries, keys, values;
  std::optional<int64_t> queryHeads, keyHeads; // where the import knows them
  Value scale;             // of a type that sums are made in
  bool scalesBoth = false; // 16 bits: queries and keys by its root each, as ONNX says, which rounds another way
  float softcap = 0;
  SmallVector<Term> biases;  // are added to the scores
  SmallVector<Term> allowed; // bools: where one is false, the score is -inf
  Term sink;                 // a score more for each row, which has no value
  Type softmaxType;
  bool hasEmptyRows = false; // rows that see nothing give 0
  enum Stage { None, Scaled, Capped, Biased, Softmax } wanted = None;
};

/// [batch, heads, rows, size of values], and the scores of the stage that is wanted, or null.
struct Attended {
  Value values, scores;
};

} // namespace

//===----------------------------------------------------------------------===//
// The composition
//===----------------------------------------------------------------------===//

/// Cuts the axis of heads in two, heads of keys and how many heads of queries share each; 1 becomes 1 x 1.
static Value cutHeads(NodeReader &n, Value x, Value keyHeads, bool hasBatch) {
  Type index = n.b().getI64Type();
  int64_t axis = hasBatch ? 1 : 0;
  Value heads = dimOf(n, x, axis), outer = n.make<MinOp>(index, heads, keyHeads), inner = n.make<DivOp>(index, heads, outer);
  SmallVector<Value> dims;
  if (hasBatch)
    dims.push_back(dimOf(n, x, 0));
  dims.append({outer, inner, dimOf(n, x, axis + 1), dimOf(n, x, axis + 2)});
  return reshape(n, x, concat(n, dims, 0), /*allowzero=*/true);
}

static Value cutHeads(NodeReader &n, Term term, Value keyHeads) {
  switch (term.heads) {
  case Term::None:
    return term.value;
  case Term::One:
    return unsqueeze(n, term.value, {1});
  case Term::Any:
    return cutHeads(n, term.value, keyHeads, /*hasBatch=*/true);
  case Term::UnknownRank:
    break;
  }
  auto withBatch = [&] { return cutHeads(n, term.value, keyHeads, /*hasBatch=*/true); };
  auto withoutBatch = [&] { return cutHeads(n, term.value, keyHeads, /*hasBatch=*/false); };
  return makeByRank(n, term.value, 4, withBatch,
                    [&] { return makeByRank(n, term.value, 3, withoutBatch, [&] { return term.value; }); });
}

/// exp(x) / (exp(sink) + the sum of exp(x)), along the last axis.
static Value softmaxWithSink(NodeReader &n, Value x, Value sink) {
  Type type = NodeReader::elementTypeOf(x);
  auto reduce = [&](Value value, ReduceKind kind) {
    return n.make<ReduceOp>(type, value, kind, SmallVector<int64_t>{-1}, /*keepdims=*/true, /*allAxes=*/false);
  };
  Value largest = n.make<MaxOp>(type, reduce(x, ReduceKind::Max), sink);
  Value exponentials = n.make<ExpOp>(type, n.make<SubOp>(type, x, largest));
  Value sum = n.make<AddOp>(type, reduce(exponentials, ReduceKind::Sum), n.make<ExpOp>(type, n.make<SubOp>(type, sink, largest)));
  return n.make<MulOp>(type, exponentials, n.make<ReciprocalOp>(type, sum));
}

/// With `isGrouped`, several heads of queries share one of keys: the product has them in an axis of their own, over which keys broadcast.
static Attended attendBy(NodeReader &n, const Attention &a, bool isGrouped) {
  Type type = NodeReader::elementTypeOf(a.queries), boolean = n.b().getI1Type();
  Value queries = a.queries, keys = a.keys, values = a.values, keyHeads;
  if (isGrouped) {
    keyHeads = a.keyHeads ? n.ints({*a.keyHeads}) : dimOf(n, keys, 1);
    queries = cutHeads(n, queries, keyHeads, /*hasBatch=*/true);
    keys = unsqueeze(n, keys, {2});
    values = unsqueeze(n, values, {2});
  }
  auto fitted = [&](Term term) { return isGrouped ? cutHeads(n, term, keyHeads) : term.value; };
  auto ungrouped = [&](Value x) {
    if (!isGrouped)
      return x;
    Value heads = a.queryHeads ? n.ints({*a.queryHeads}) : dimOf(n, a.queries, 1);
    return reshape(n, x, concat(n, {dimOf(n, x, 0), heads, dimOf(n, x, 3), dimOf(n, x, 4)}, 0), /*allowzero=*/true);
  };

  // 16 bits may not hold a product that is scaled afterwards.
  bool scalesBefore = type.getIntOrFloatBitWidth() < 32;
  if (scalesBefore) {
    Type wide = NodeReader::elementTypeOf(a.scale);
    Value factor = n.cast(a.scalesBoth ? n.make<SqrtOp>(wide, a.scale) : a.scale, type);
    queries = n.make<MulOp>(type, queries, factor);
    if (a.scalesBoth)
      keys = n.make<MulOp>(type, keys, factor);
  }
  Value transposed = transpose(n, keys, isGrouped ? ArrayRef<int64_t>{0, 1, 2, 4, 3} : ArrayRef<int64_t>{0, 1, 3, 2});
  Value scores = n.make<MatMulOp>(type, queries, transposed);
  if (!scalesBefore)
    scores = n.make<MulOp>(type, scores, a.scale);
  Attended result;
  auto keep = [&](Attention::Stage stage) {
    if (a.wanted == stage)
      result.scores = ungrouped(n.cast(scores, type));
  };
  keep(Attention::Scaled);
  if (a.softcap != 0) {
    Value most = n.scalar(a.softcap, type);
    scores = n.make<MulOp>(type, n.make<TanhOp>(type, n.make<DivOp>(type, scores, most)), most);
  }
  keep(Attention::Capped);
  for (Term bias : a.biases)
    scores = n.make<AddOp>(type, scores, n.cast(fitted(bias), type));
  Value isAllowed;
  for (Term term : a.allowed)
    isAllowed = isAllowed ? n.make<AndOp>(boolean, isAllowed, fitted(term)) : fitted(term);
  if (isAllowed)
    scores = n.make<WhereOp>(type, isAllowed, scores, n.scalar(-kInfinity, type));
  keep(Attention::Biased);
  scores = n.cast(scores, a.softmaxType);
  scores = a.sink.value ? softmaxWithSink(n, scores, n.cast(fitted(a.sink), a.softmaxType))
                        : softmaxAlong(n, scores, -1, /*logarithm=*/false, a.hasEmptyRows);
  keep(Attention::Softmax);
  Type valueType = NodeReader::elementTypeOf(values);
  result.values = ungrouped(n.make<MatMulOp>(valueType, n.cast(scores, valueType), values));
  return result;
}

static Attended attend(NodeReader &n, const Attention &a) {
  if (a.queryHeads && a.keyHeads)
    return attendBy(n, a, *a.queryHeads != *a.keyHeads);
  auto make = [&](bool isGrouped) {
    Attended attended = attendBy(n, a, isGrouped);
    SmallVector<Value> values{attended.values};
    if (attended.scores)
      values.push_back(attended.scores);
    return values;
  };
  Value isSame = n.make<EqualOp>(n.b().getI1Type(), dimOf(n, a.queries, 1), dimOf(n, a.keys, 1));
  SmallVector<Value> values = makeIf(n, isSame, [&] { return make(false); }, [&] { return make(true); });
  return {values[0], values.size() > 1 ? values[1] : Value()};
}

//===----------------------------------------------------------------------===//
// Its parts
//===----------------------------------------------------------------------===//

/// [batch, length, heads * size] as [batch, heads, length, size].
static Value splitHeads(NodeReader &n, Value x, int64_t heads) { return transpose(n, reshape(n, x, n.ints({0, 0, heads, -1})), {0, 2, 1, 3}); }

/// [batch, heads, length, size] as [batch, length, heads * size].
static Value joinHeads(NodeReader &n, Value x) { return reshape(n, transpose(n, x, {0, 2, 1, 3}), n.ints({0, 0, -1})); }

/// The number given, or 1 / sqrt(size of a head).
static Value scaleOr(NodeReader &n, std::optional<float> scale, Value queries, std::optional<int64_t> size) {
  Type type = typeOfSums(n, NodeReader::elementTypeOf(queries));
  if (scale)
    return n.scalar(*scale, type);
  if (!size)
    size = knownDim(queries, 3);
  if (size && *size > 0)
    return n.scalar(1.0 / std::sqrt(static_cast<double>(*size)), type);
  return n.make<ReciprocalOp>(type, n.make<SqrtOp>(type, n.cast(dimOf(n, queries, 3), type)));
}

/// The index of each row of scores, [rows, 1], and of each column, [columns].
static Value rowsOf(NodeReader &n, Value queries) {
  return n.make<IotaOp>(n.b().getI64Type(), concat(n, {dimOf(n, queries, 2), n.ints({1})}, 0), /*axis=*/0);
}
static Value columnsOf(NodeReader &n, Value keys) { return n.make<IotaOp>(n.b().getI64Type(), dimOf(n, keys, 2), /*axis=*/0); }

/// Which columns a row sees that is `offset` rows behind the first column: those up to itself.
static Value isBefore(NodeReader &n, Value rows, Value columns, Value offset) {
  Value last = offset ? n.make<AddOp>(n.b().getI64Type(), rows, offset) : rows;
  return n.make<LessOrEqualOp>(n.b().getI1Type(), columns, last);
}

/// 0 where it is true, else `number`.
static Value additive(NodeReader &n, Value condition, float number, Type type) {
  return n.make<WhereOp>(type, condition, n.scalar(0, type), n.scalar(number, type));
}

/// A cache in front of what is new, along the axis of lengths.
static Value behind(NodeReader &n, Value past, Value x) { return past ? concat(n, {past, x}, 2) : x; }

/// A number of heads, which must be there; 1 after an error.
static int64_t headsAttribute(NodeReader &n, StringRef name) {
  std::optional<int64_t> heads = n.findInt(name);
  if (heads && *heads > 0)
    return *heads;
  if (!n.failed())
    n.fail(heads ? Twine("its attribute ") + quote(name) + " is " + Twine(*heads) + "; it must be positive"
                 : Twine("its attribute ") + quote(name) + " is missing");
  return 1;
}

static void requireBoth(NodeReader &n, Value first, Value second, const Twine &names) {
  if (!first != !second)
    n.fail(Twine("it has only one of its inputs ") + names + "; they belong together");
}

/// A scale attribute of com.microsoft, where 0 means that there is none.
static std::optional<float> scaleAttribute(NodeReader &n) {
  float scale = n.getFloat("scale", 0);
  return scale == 0 ? std::nullopt : std::optional(scale);
}

//===----------------------------------------------------------------------===//
// ONNX
//===----------------------------------------------------------------------===//

static void onnxAttention(NodeReader &n) {
  Value q = n.input(0), k = n.input(1), v = n.input(2), mask = n.optionalInput(3), pastKey = n.optionalInput(4), pastValue = n.optionalInput(5),
        lengths = n.optionalInput(6);
  Type type = NodeReader::elementTypeOf(q), boolean = n.b().getI1Type(), index = n.b().getI64Type();
  requireBoth(n, pastKey, pastValue, "'past_key' and 'past_value'");
  if (lengths && pastKey)
    n.fail("it has both a cache and 'nonpad_kv_seqlen'; they exclude each other");
  std::optional<int64_t> queryHeads = n.findInt("q_num_heads"), keyHeads = n.findInt("kv_num_heads");
  // The attributes are for three axes, but may be there with four too, where they say nothing.
  std::optional<int64_t> rank = NodeReader::rankOf(q);
  bool isFlat = rank == 3, mayBeFlat = isFlat || (!rank && (queryHeads || keyHeads));
  if (mayBeFlat) {
    queryHeads = headsAttribute(n, "q_num_heads");
    keyHeads = headsAttribute(n, "kv_num_heads");
    auto split = [&](Value x, int64_t heads) { return makeByRank(n, x, 4, [&] { return x; }, [&] { return splitHeads(n, x, heads); }); };
    q = split(q, *queryHeads);
    k = split(k, *keyHeads);
    v = split(v, *keyHeads);
  }
  Attention a;
  a.queryHeads = isFlat ? queryHeads : knownDim(q, 1);
  a.keyHeads = isFlat ? keyHeads : knownDim(k, 1);
  if (a.queryHeads && a.keyHeads && (*a.keyHeads == 0 || *a.queryHeads % *a.keyHeads != 0))
    return n.fail(Twine("its ") + Twine(*a.queryHeads) + " heads of queries are no multiple of its " + Twine(*a.keyHeads) + " heads of keys");
  a.queries = q;
  a.keys = behind(n, pastKey, k);
  a.values = behind(n, pastValue, v);
  std::optional<int64_t> hidden = knownDim(n.input(0), 2);
  a.scale = scaleOr(n, n.findFloat("scale"), q, isFlat && hidden ? std::optional(*hidden / *a.queryHeads) : std::nullopt);
  a.scalesBoth = true;
  a.softcap = n.getFloat("softcap", 0);
  a.softmaxType = type;
  if (n.hasAttribute("softmax_precision")) {
    a.softmaxType = n.getElementType("softmax_precision");
    if (!isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(a.softmaxType))
      n.fail("its attribute 'softmax_precision' must be bfloat16, double, float or float16");
  }
  int64_t mode = n.getInt("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    n.fail(Twine("its attribute 'qk_matmul_output_mode' is ") + Twine(mode) + "; it can be 0, 1, 2 and 3");
  else if (n.wantsOutput(3))
    a.wanted = static_cast<Attention::Stage>(Attention::Scaled + mode);

  if (mask) {
    bool isBool = NodeReader::elementTypeOf(mask) == boolean;
    if (n.getVersion() >= 24) { // may be shorter than the keys
      Type maskType = NodeReader::elementTypeOf(mask);
      Value missing = n.make<SubOp>(index, dimOf(n, a.keys, 2), dimOf(n, mask, -1)), pads = concat(n, {n.ints({0}), missing}, 0);
      mask = n.make<PadOp>(maskType, mask, pads, n.scalar(isBool ? 0 : -kInfinity, maskType), n.ints({-1}), n.b().getStringAttr("constant"),
                           ArrayAttr(), ArrayAttr());
    }
    (isBool ? a.allowed : a.biases).push_back({mask, Term::UnknownRank});
    a.hasEmptyRows = true;
  }
  // Where the first row stands among the columns: a number for all, or one for each of the batch.
  bool isCausal = n.getFlag("is_causal", false);
  int64_t left = n.getVersion() >= 25 ? n.getInt("left_window_size", -1) : -1, right = n.getVersion() >= 25 ? n.getInt("right_window_size", -1) : -1;
  for (auto [name, size] : {std::pair("left_window_size", left), std::pair("right_window_size", right)})
    if (size < -1)
      n.fail(Twine("its attribute '") + name + "' is " + Twine(size) + "; it must be -1 or a number of columns");
  Value columns = lengths || isCausal || left >= 0 || right >= 0 ? columnsOf(n, a.keys) : Value();
  if (isCausal || left >= 0 || right >= 0) {
    Value offset = pastKey ? dimOf(n, pastKey, 2) : Value();
    if (lengths)
      offset = unsqueeze(n, n.make<SubOp>(index, lengths, dimOf(n, q, 2)), {1, 2, 3});
    auto add = [&](Value allowed) { a.allowed.push_back({allowed, lengths ? Term::One : Term::None}); };
    Value rows = rowsOf(n, q), position = offset ? n.make<AddOp>(index, rows, offset) : rows;
    if (isCausal)
      add(isBefore(n, position, columns, Value()));
    if (left >= 0)
      add(n.make<LessOrEqualOp>(boolean, n.make<SubOp>(index, position, columns), n.scalar(left, index)));
    if (right >= 0)
      add(n.make<LessOrEqualOp>(boolean, n.make<SubOp>(index, columns, position), n.scalar(right, index)));
    a.hasEmptyRows |= lengths || left >= 0 || right >= 0;
  }
  if (lengths) {
    a.allowed.push_back({n.make<LessOp>(boolean, columns, unsqueeze(n, lengths, {1, 2, 3})), Term::One});
    a.hasEmptyRows = true;
  }
  Attended attended = attend(n, a);
  Value values = n.cast(attended.values, type);
  n.setOutput(0, mayBeFlat ? makeByRank(n, n.input(0), 4, [&] { return values; }, [&] { return joinHeads(n, values); }) : values);
  n.setOutput(1, a.keys);
  n.setOutput(2, a.values);
  n.setOutput(3, attended.scores);
}

//===----------------------------------------------------------------------===//
// com.microsoft
//===----------------------------------------------------------------------===//

/// Numbers that are added to the scores because of a mask of keys, `filter` where it hides one. Its forms: [batch, total] and [batch, rows, total]
/// of 0 (hidden) and 1; [batch]: how many keys there are to see; [2 * batch]: behind those, where they begin.
static Value maskOfKeys(NodeReader &n, unsigned input, const Attention &a, float filter) {
  Value mask = n.optionalInput(input);
  Type index = n.b().getI64Type(), boolean = n.b().getI1Type(), type = NodeReader::elementTypeOf(a.queries);
  if (std::optional<int64_t> rank = NodeReader::rankOf(mask); rank && (*rank < 1 || *rank > 3)) {
    n.failInput(input, Twine("its ") + n.describeInput(input) + " has " + Twine(*rank) + " dimensions; dlc takes masks of one, two and three");
    return n.scalar(0, type);
  }
  auto byLength = [&] {
    Value batch = dimOf(n, a.queries, 0);
    RequireOp::create(n.b(), n.getLoc(), n.make<MulOp>(index, batch, n.ints({2})), dimOf(n, mask, 0), /*atLeast=*/true,
                      "its mask of one dimension has {1} elements; dlc takes at most two for each of the batch ({0})");
    Value numbers = reshape(n, n.cast(mask, index), concat(n, {n.ints({-1}), batch}, 0));
    Value none = n.make<ExpandOp>(index, n.scalar(0, index), concat(n, {n.ints({1}), batch}, 0));
    Value both = concat(n, {numbers, none}, 0), columns = columnsOf(n, a.keys);
    Value ends = unsqueeze(n, pick(n, both, 0, 0), {1, 2, 3}), starts = unsqueeze(n, pick(n, both, 1, 0), {1, 2, 3});
    return n.make<AndOp>(boolean, n.make<LessOp>(boolean, columns, ends), n.make<GreaterOrEqualOp>(boolean, columns, starts));
  };
  auto isSet = [&] { return n.make<GreaterOp>(boolean, mask, n.scalarLike(0, mask)); };
  auto byKey = [&] { return unsqueeze(n, isSet(), {1, 2}); };
  auto byRow = [&] {
    Value dims = n.make<ShapeOp>(index, mask, /*start=*/0, /*end=*/IntegerAttr());
    RequireOp::create(n.b(), n.getLoc(), dimOf(n, dims, 0), n.ints({3}), /*atLeast=*/false,
                      "its mask has {0} dimensions; dlc takes masks of one, two and three");
    return unsqueeze(n, isSet(), {1});
  };
  Value seen = makeByRank(n, mask, 2, byKey, [&] { return makeByRank(n, mask, 1, byLength, byRow); });
  return additive(n, seen, filter, type);
}

/// What MultiHeadAttention and Attention add to the scores: the mask of keys, `attention_bias` and, with 'unidirectional', what hides the keys
/// that come later.
static void addBiases(NodeReader &n, Attention &a, unsigned mask, unsigned bias, Value past) {
  float filter = n.getFloat("mask_filter_value", -10000.0f);
  if (n.optionalInput(mask))
    a.biases.push_back({maskOfKeys(n, mask, a, filter), Term::One});
  if (n.getFlag("unidirectional", false))
    a.biases.push_back({additive(n, isBefore(n, rowsOf(n, a.queries), columnsOf(n, a.keys), past ? dimOf(n, past, 2) : Value()), filter,
                                 NodeReader::elementTypeOf(a.queries)),
                        Term::None});
  if (Value value = n.optionalInput(bias))
    a.biases.push_back({value, Term::Any});
}

/// The input by the weights of queries, keys and values at once. Weights that are constant are cut, which costs a run nothing; else the product is.
static void attention(NodeReader &n) {
  requireOneFloatType(n, {0, 1, 2, 4, 5});
  requireIntegers(n, 3);
  Value x = n.input(0), weights = n.input(1), bias = n.optionalInput(2), past = n.optionalInput(4);
  Type type = NodeReader::elementTypeOf(x), index = n.b().getI64Type();
  int64_t heads = headsAttribute(n, "num_heads");
  std::optional<SmallVector<int64_t>> sizes = n.findInts("qkv_hidden_sizes");
  refuseFlag(n, "do_rotary");
  refuseFlag(n, "past_present_share_buffer");
  n.ignore("rotary_embedding_dim");
  auto isUneven = [&](int64_t size) { return size <= 0 || size % heads != 0; };
  if (sizes && (sizes->size() != 3 || llvm::any_of(*sizes, isUneven) || (*sizes)[0] != (*sizes)[1]))
    n.fail("its attribute 'qkv_hidden_sizes' must be three multiples of 'num_heads', the first two of which are equal");
  if (std::optional<int64_t> columns = knownDim(weights, 1); columns && !sizes && *columns % (3 * heads) != 0)
    n.fail(Twine("its weights have ") + Twine(*columns) + " columns, which cannot be cut into queries, keys and values of " +
           Twine(heads) + " heads");
  if (n.failed())
    return;

  SmallVector<Value> bounds{n.ints({0})};
  if (!sizes)
    if (std::optional<int64_t> columns = knownDim(weights, 1))
      sizes = SmallVector<int64_t>(3, *columns / 3);
  if (sizes) {
    int64_t end = 0;
    for (int64_t size : *sizes)
      bounds.push_back(n.ints({end += size}));
    RequireOp::create(n.b(), n.getLoc(), dimOf(n, weights, 1), bounds.back(), /*atLeast=*/false,
                      "its weights have {0} columns, but its attribute 'qkv_hidden_sizes' comes to {1}");
  } else {
    Value third = n.make<DivOp>(index, dimOf(n, weights, 1), n.ints({3}));
    for (int64_t i : {1, 2, 3})
      bounds.push_back(n.make<MulOp>(index, third, n.ints({i})));
  }
  bool isConstant = !!NodeReader::constantOf(weights);
  Value product = isConstant ? Value() : n.make<MatMulOp>(type, x, weights);
  SmallVector<Value> parts;
  for (unsigned i = 0; i != 3; ++i) {
    auto part = [&](Value whole, int64_t axis) { return slice(n, whole, bounds[i], bounds[i + 1], axis); };
    Value value = isConstant ? n.make<MatMulOp>(type, x, part(weights, 1)) : part(product, -1);
    if (bias)
      value = n.make<AddOp>(type, value, part(bias, 0));
    parts.push_back(splitHeads(n, value, heads));
  }

  Attention a;
  a.queryHeads = a.keyHeads = heads;
  Value pastKey = past ? pick(n, past, 0, 0) : Value(), pastValue = past ? pick(n, past, 1, 0) : Value();
  a.queries = parts[0];
  a.keys = behind(n, pastKey, parts[1]);
  a.values = behind(n, pastValue, parts[2]);
  a.scale = scaleOr(n, scaleAttribute(n), a.queries, sizes ? std::optional((*sizes)[0] / heads) : std::nullopt);
  a.softmaxType = typeOfSums(n, type);
  addBiases(n, a, 3, 5, pastKey);
  n.setOutput(0, joinHeads(n, attend(n, a).values));
  if (n.wantsOutput(1))
    n.setOutput(1, concat(n, {unsqueeze(n, a.keys, {0}), unsqueeze(n, a.values, {0})}, 0));
}

static void multiHeadAttention(NodeReader &n) {
  requireOneFloatType(n, {0, 1, 2, 3, 5, 6, 7});
  requireIntegers(n, 4);
  Value q = n.input(0), k = n.optionalInput(1), v = n.optionalInput(2), bias = n.optionalInput(3), pastKey = n.optionalInput(6),
        pastValue = n.optionalInput(7);
  Type type = NodeReader::elementTypeOf(q), index = n.b().getI64Type();
  int64_t heads = headsAttribute(n, "num_heads");
  requireBoth(n, pastKey, pastValue, "'past_key' and 'past_value'");
  if (v && !k)
    n.fail("it has 'value' without 'key'");
  if (n.failed())
    return;

  std::optional<int64_t> size;
  // The part of the bias from `start` on, as long as the axes of x behind the first two.
  auto biased = [&](Value x, Value start, Value length) {
    return bias ? n.make<AddOp>(type, x, slice(n, bias, start, n.make<AddOp>(index, start, length), 0)) : x;
  };
  auto plain = [&](Value x, Value start) { return splitHeads(n, biased(x, start, dimOf(n, x, 2)), heads); };
  // [batch, length, heads, `count`, size], of which one.
  auto packed = [&](Value x, int64_t i, int64_t count, Value start) {
    Value parts = reshape(n, pick(n, x, i, 3), n.ints({0, 0, -1}));
    RequireOp::create(n.b(), n.getLoc(), concat(n, {dimOf(n, x, 2), dimOf(n, x, 3)}, 0), n.ints({heads, count}), /*atLeast=*/false,
                      "its packed heads have the size {0} where {1} is expected");
    return splitHeads(n, biased(parts, start, dimOf(n, parts, 2)), heads);
  };
  auto times = [&](Value x, int64_t factor) { return n.make<MulOp>(index, x, n.ints({factor})); };
  Attention a;
  a.queryHeads = a.keyHeads = heads;
  Value keys, values;
  if (!k) {
    Value width = times(dimOf(n, q, 4), heads);
    a.queries = packed(q, 0, 3, n.ints({0}));
    keys = packed(q, 1, 3, width);
    values = packed(q, 2, 3, times(width, 2));
    size = knownDim(q, 4);
  } else {
    Value width = dimOf(n, q, 2);
    a.queries = plain(q, n.ints({0}));
    if (std::optional<int64_t> known = knownDim(q, 2))
      size = *known / heads;
    // Of four axes they are as they are wanted; of five, keys and values lie in one tensor.
    if (!v) {
      keys = packed(k, 0, 2, width);
      values = packed(k, 1, 2, times(width, 2));
    } else {
      keys = makeByRank(n, k, 4, [&] { return k; }, [&] { return plain(k, width); });
      values = makeByRank(n, v, 4, [&] { return v; }, [&] { return plain(v, times(width, 2)); });
    }
  }
  a.keys = behind(n, pastKey, keys);
  a.values = behind(n, pastValue, values);
  a.scale = scaleOr(n, scaleAttribute(n), a.queries, size);
  a.softmaxType = typeOfSums(n, type);
  addBiases(n, a, 4, 5, pastKey);
  n.setOutput(0, joinHeads(n, attend(n, a).values));
  n.setOutput(1, a.keys);
  n.setOutput(2, a.values);
}

/// The smallest element. Nodes that share their lengths share it too, so that a run reads it once.
static Value smallestOf(NodeReader &n, Value x) {
  for (Operation *user : x.getUsers())
    if (auto reduce = dyn_cast<ReduceOp>(user); reduce && reduce.getKind() == ReduceKind::Min && reduce.getAxes() == ArrayRef<int64_t>{0} &&
                                                reduce->getBlock() == n.b().getInsertionBlock())
      return reduce.getResult();
  return n.make<ReduceOp>(NodeReader::elementTypeOf(x), x, ReduceKind::Min, SmallVector<int64_t>{0}, /*keepdims=*/true, /*allAxes=*/false);
}

static void groupQueryAttention(NodeReader &n) {
  requireOneFloatType(n, {0, 1, 2, 3, 4, 7, 8, 10, 11});
  for (unsigned i : {5, 6, 9})
    requireIntegers(n, i);
  Value q = n.input(0), k = n.optionalInput(1), v = n.optionalInput(2), pastKey = n.optionalInput(3), pastValue = n.optionalInput(4),
        lengths = n.input(5), total = n.input(6);
  Type type = NodeReader::elementTypeOf(q), index = n.b().getI64Type(), boolean = n.b().getI1Type();
  int64_t heads = headsAttribute(n, "num_heads"), keyHeads = headsAttribute(n, "kv_num_heads"), window = n.getInt("local_window_size", -1);
  bool isCausal = n.getFlag("causal", true), rotates = n.getFlag("do_rotary", false), interleaved = n.getFlag("rotary_interleaved", false);
  for (StringRef name : {"sliding_window_cache", "qk_output", "kv_cache_bit_width"})
    refuseFlag(n, name);
  for (StringRef name : {"k_quant_type", "v_quant_type"})
    if (std::string kind = n.findString(name).value_or("NONE"); kind != "NONE")
      n.fail(Twine("its attribute ") + quote(name) + " is " + quote(kind) + "; dlc supports no quantized cache");
  for (StringRef name : {"qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"})
    n.ignore(name); // of norms whose weights are inputs, which are not supported
  requireBoth(n, k, v, "'key' and 'value'");
  requireBoth(n, pastKey, pastValue, "'past_key' and 'past_value'");
  if (heads % keyHeads != 0)
    n.fail(Twine("its attribute 'num_heads' is ") + Twine(heads) + ", no multiple of 'kv_num_heads', which is " + Twine(keyHeads));
  if (!isCausal && window > 0)
    n.fail("its attribute 'local_window_size' needs 'causal'");
  Value cosines = n.optionalInput(7), sines = n.optionalInput(8), positions = n.optionalInput(9);
  if (rotates && (!cosines || !sines))
    n.fail("its attribute 'do_rotary' is set, but 'cos_cache' or 'sin_cache' is missing");
  if (n.failed())
    return;

  Attention a;
  a.queryHeads = heads;
  a.keyHeads = keyHeads;
  // Packed, all of it has the axis of heads.
  std::optional<int64_t> size, hidden = knownDim(q, 2);
  if (hidden)
    size = *hidden / (k ? heads : heads + 2 * keyHeads);
  if (!size && pastKey)
    size = knownDim(pastKey, 3);
  Value keys, values;
  if (k) {
    a.queries = splitHeads(n, q, heads);
    keys = splitHeads(n, k, keyHeads);
    values = splitHeads(n, v, keyHeads);
  } else {
    Value packed = reshape(n, q, n.ints({0, 0, heads + 2 * keyHeads, -1}));
    auto part = [&](int64_t start, int64_t end) { return transpose(n, slice(n, packed, n.ints({start}), n.ints({end}), 2), {0, 2, 1, 3}); };
    a.queries = part(0, heads);
    keys = part(heads, heads + keyHeads);
    values = part(heads + keyHeads, heads + 2 * keyHeads);
  }
  // The cache grows: what is new stands behind all of it, in each of the batch.
  Value rows = dimOf(n, a.queries, 2), past = pastKey ? dimOf(n, pastKey, 2) : n.ints({0}), length = n.make<AddOp>(index, past, rows);
  RequireOp::create(n.b(), n.getLoc(), total, length, /*atLeast=*/false,
                    "'total_sequence_length' is {0}, but the cache and what is new have {1} together; dlc supports only caches that grow, none of a "
                    "fixed length that past and present share");
  if (pastKey) {
    Value least = n.make<SubOp>(index, n.make<MulOp>(index, n.make<MinOp>(index, past, n.ints({1})), length), n.ints({1}));
    RequireOp::create(n.b(), n.getLoc(), smallestOf(n, lengths), least, /*atLeast=*/true,
                      "'seqlens_k' holds {0} where {1} is expected; dlc supports caches of different lengths only before the first token");
  }
  if (rotates) {
    Value steps = n.make<IotaOp>(index, concat(n, {n.ints({1}), rows}, 0), /*axis=*/1);
    Value all = positions ? n.cast(positions, index) : n.make<AddOp>(index, steps, past);
    auto ofRows = [&](Value table) { return unsqueeze(n, n.make<GatherOp>(type, table, all, 0), {1}); };
    cosines = ofRows(cosines);
    sines = ofRows(sines);
    a.queries = rotate(n, a.queries, cosines, sines, interleaved, /*mayHaveRest=*/true);
    keys = rotate(n, keys, cosines, sines, interleaved, /*mayHaveRest=*/true);
  }
  a.keys = behind(n, pastKey, keys);
  a.values = behind(n, pastValue, values);
  a.scale = scaleOr(n, scaleAttribute(n), a.queries, size);
  a.softcap = n.getFloat("softcap", 0);
  a.softmaxType = typeOfSums(n, type);
  if (Value bias = n.optionalInput(10))
    a.biases.push_back({bias, Term::Any});
  Value columns = columnsOf(n, a.keys);
  if (!isCausal) { // what stands behind a sequence's end; causal, only rows that stand there too see it
    Value last = unsqueeze(n, n.cast(lengths, index), {1, 2, 3});
    a.allowed.push_back({isBefore(n, last, columns, Value()), Term::One});
  } else {
    Value position = n.make<AddOp>(index, rowsOf(n, a.queries), past);
    a.allowed.push_back({isBefore(n, position, columns, Value())});
    if (window > 0)
      a.allowed.push_back({n.make<LessOp>(boolean, n.make<SubOp>(index, position, columns), n.scalar(window, index))});
  }
  Value sink = n.optionalInput(11);
  if (sink)
    a.sink = {reshape(n, sink, n.ints({1, heads, 1, 1})), Term::Any};
  else if (n.getInt("smooth_softmax", 0) > 0)
    a.sink = {n.scalar(0, a.softmaxType), Term::None};
  n.ignore("smooth_softmax");
  n.setOutput(0, joinHeads(n, attend(n, a).values));
  n.setOutput(1, a.keys);
  n.setOutput(2, a.values);
}

void addAttentionOps(OpTable &t) {
  t.add("Attention", 23, onnxAttention);
  t.add("Attention", 1, attention, kMicrosoft);
  t.add("GroupQueryAttention", 1, groupQueryAttention, kMicrosoft);
  t.add("MultiHeadAttention", 1, multiHeadAttention, kMicrosoft);
}

} // namespace dlc
