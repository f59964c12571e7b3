#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of transformers as exporters spell them out: right numbers at three sizes (with --all unfused too), and no more launches than they need.

    test/fusion/patterns.py --build build/dev [--jobs 2] [--json FILE] [--all] [--filter REGEX] [--table]

PATTERNS says for each how many launches it may take: attention from queries, keys and values to its context is one, and so is a gelu, a norm or
a rotation; a mask that is computed from the tokens' is one more. MORE has those that do not get there yet. --table prints the launches of each and compares no numbers. judge.py says what is right.
What fails is written to <build>/test-logs/patterns.
"""

import argparse
import pathlib
import sys

import numpy as np
from onnx import TensorProto, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import judge
import spellings
from graph import ENDS, Graph

SIZES = {"b": (2, 1, 3), "s": (7, 1, 16), "t": (9, 20, 5), "none": (3, 0, 4)}
HEADS, SIZE = 4, 8
WIDTH = HEADS * SIZE
SECONDS_A_PATTERN = 120
LOWEST = np.float32(np.finfo(np.float32).min)
PATTERNS = {}  # {name: (most launches, opset, element type, function that builds it in a graph)}


def pattern(name, launches, opset=17, dtype=np.float32):
    def add(build):
        PATTERNS[name] = launches, opset, dtype, build
        return build

    return add


# --- what attention is made of ----------------------------------------------------------------------------------------


def view(g, x, heads=HEADS, size=SIZE):
    """x.view(b, s, heads, size).transpose(1, 2), each size read from the shape."""
    shape = g.shape(g.dim(x, 0), g.dim(x, 1), heads, size)
    return g.Transpose(g.Reshape(x, shape), perm=[0, 2, 1, 3])


def joined(g, context, width=WIDTH):
    """transpose(1, 2).reshape(b, s, width)"""
    turned = g.Transpose(context, perm=[0, 2, 1, 3])
    return g.Reshape(turned, g.shape(g.dim(turned, 0), g.dim(turned, 1), width))


def hidden(g, length="s", heads=HEADS):
    return g.input(["b", length, heads * SIZE])


def padding(g, length="s"):
    """1 for tokens, 0 behind them; each sequence has at least one."""
    def ones(shape):
        lengths = 1 + g.random.integers(0, max(shape[1], 1), shape[:1])
        return (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)

    return g.input(["b", length], ones)


def truth(g, dims, share=0.7):
    """A boolean mask that leaves each query a key."""
    def some(shape):
        mask = g.random.random(shape) < share
        mask[..., 0] = True
        return mask

    return g.input(dims, some)


def linear(g, x, columns=WIDTH):
    """PyTorch: the bias is the first operand of the sum."""
    return g.Add(g.const(g.normal([columns], 0.3)), g.MatMul(x, g.matrix(x.dims[-1][0], columns)))


def layer_norm(g, x):
    return g.LayerNormalization(x, g.const(1 + g.normal([WIDTH], 0.2)), g.const(g.normal([WIDTH], 0.2)), axis=-1)


def inverse_mask(g, mask, low):
    """[b, 1, 1, t]: (1 - mask) * low"""
    wide = g.Cast(g.Unsqueeze(g.Unsqueeze(mask, [1]), [2]), to=TensorProto.FLOAT)
    return g.Mul(g.Sub(np.float32(1), wide), np.float32(low))


def turned(g, k):
    return g.Transpose(k, perm=[0, 1, 3, 2])


def attend(g, q, k, v, score=lambda scores: scores):
    """With the scale behind the product."""
    scores = score(g.Div(g.MatMul(q, turned(g, k)), np.float32(np.sqrt(SIZE))))
    return g.MatMul(g.Softmax(scores, axis=-1), v)


def bert(g, q, k, v, mask):
    return joined(g, attend(g, view(g, q), view(g, k), view(g, v), lambda scores: g.Add(scores, mask) if mask else scores))


# --- attention as PyTorch's exporters write it ------------------------------------------------------------------------


@pattern("attention, BERT, no mask", 1)
def _(g):
    return bert(g, hidden(g), hidden(g), hidden(g), None)


@pattern("attention, BERT, mask added", 1)
def _(g):
    return bert(g, hidden(g), hidden(g), hidden(g), g.input(["b", 1, 1, "s"], lambda shape: np.where(g.random.random(shape) < 0.7, 0, -10000.0)))


@pattern("attention, BERT, mask from the tokens'", 2)
def _(g):
    return bert(g, hidden(g), hidden(g), hidden(g), inverse_mask(g, padding(g), -10000))


@pattern("attention, BERT, keys of another sequence", 2)
def _(g):
    return bert(g, hidden(g), hidden(g, "t"), hidden(g, "t"), inverse_mask(g, padding(g, "t"), LOWEST))


@pattern("attention, BERT, opset 13", 2, opset=13)
def _(g):
    return bert(g, hidden(g), hidden(g), hidden(g), inverse_mask(g, padding(g), -10000))


@pattern("attention, BERT's layer with its products", 5)
def _(g):
    """Mask; the three products; attention; its output with the residual; the norm."""
    x = hidden(g)
    mask = inverse_mask(g, padding(g), -10000)
    context = bert(g, linear(g, x), linear(g, x), linear(g, x), mask)
    return layer_norm(g, g.Add(linear(g, context), x))


def both_sides(g, q, k, v, score):
    """F.scaled_dot_product_attention: the root of the scale, computed from the shape, on queries and on keys."""
    size = g.Cast(g.Squeeze(g.Slice(g.Shape(q), [-1], [ENDS])), to=TensorProto.FLOAT)
    root = g.Sqrt(g.Div(np.float32(1), g.Sqrt(size)))
    k = g.Mul(turned(g, k), root)
    weights = g.Softmax(score(g.MatMul(g.Mul(q, root), k)), axis=-1)
    return g.MatMul(weights, v)


@pattern("attention, scaled_dot_product_attention", 1)
def _(g):
    return joined(g, both_sides(g, view(g, hidden(g)), view(g, hidden(g)), view(g, hidden(g)), lambda scores: scores))


@pattern("attention, scaled_dot_product_attention, boolean mask", 1)
def _(g):
    mask = truth(g, ["b", 1, "s", "s"])
    return joined(g, both_sides(g, view(g, hidden(g)), view(g, hidden(g)), view(g, hidden(g)),
                                lambda scores: g.Add(scores, g.Where(mask, np.float32(0), np.float32(-np.inf)))))


@pattern("attention, scaled_dot_product_attention, causal", 1)
def _(g):
    """is_causal: a lower triangle of ones, as booleans, then 0 and -infinity."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))

    def causal(scores):
        shape = g.shape(g.dim(q, 2), g.dim(k, 2))
        ones = g.Expand(np.float32(1), shape)
        seen = g.Cast(g.Trilu(ones, upper=0), to=TensorProto.BOOL)
        return g.Add(scores, g.Where(seen, np.float32(0), np.float32(-np.inf)))

    return joined(g, both_sides(g, q, k, v, causal))


@pattern("attention, scaled_dot_product_attention, NaN guard, PyTorch 2.6 and later", 2)
def _(g):
    """The transposed keys pass through three dims; the mask of tokens is made a boolean one by positions."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    scale = np.float32(SIZE**-0.25)
    shape = g.Shape(k, start=0)
    keys, size, batch = g.Slice(shape, [-2], [-1]), g.Slice(shape, [-1], [ENDS]), g.Slice(shape, [np.iinfo(np.int64).min], [-2])
    three = g.Transpose(g.Reshape(k, g.Concat([-1], keys, size, axis=0)), perm=[0, 2, 1])
    k = g.Reshape(three, g.Concat(batch, size, keys, axis=0))
    seen = g.Cast(g.Unsqueeze(g.Unsqueeze(padding(g), [1]), [2]), to=TensorProto.BOOL)
    bias = g.Where(seen, np.float32(0), LOWEST)
    weights = g.Softmax(g.Add(g.MatMul(g.Mul(q, scale), g.Mul(k, scale)), bias), axis=-1)
    weights = g.Where(g.IsNaN(weights), np.float32(0), weights)
    return joined(g, g.MatMul(weights, v))


@pattern("attention, rows without any key, guarded", 1)
def _(g):
    mask = g.input(["b", 1, "s", "s"], lambda shape: g.random.random(shape) < 0.3)
    scores = g.MatMul(g.Mul(view(g, hidden(g)), np.float32(SIZE**-0.5)), turned(g, view(g, hidden(g))))
    weights = g.Softmax(g.Where(mask, scores, np.float32(-np.inf)), axis=-1)
    weights = g.Where(g.IsNaN(weights), np.float32(0), weights)
    return joined(g, g.MatMul(weights, view(g, hidden(g))))


@pattern("attention, masked_fill before and after the softmax", 1)
def _(g):
    """DeBERTa and speech encoders: the masked weights are made 0 once more."""
    mask = truth(g, ["b", 1, "s", "s"])
    hide = g.Not(mask)
    scores = g.Div(g.MatMul(view(g, hidden(g)), turned(g, view(g, hidden(g)))), np.float32(np.sqrt(SIZE)))
    weights = g.Softmax(g.Where(hide, LOWEST, scores), axis=-1)
    return joined(g, g.MatMul(g.Where(hide, np.float32(0), weights), view(g, hidden(g))))


@pattern("attention, GPT-2, causal by a slice of a table", 1)
def _(g):
    """The triangle is a constant of the longest length, sliced; masked scores are -10000."""
    qkv = g.input(["b", "s", 3 * WIDTH])
    q, k, v = g.op("Split", qkv, [WIDTH] * 3, outputs=3, axis=2)
    q, k, v = view(g, q), view(g, k), view(g, v)
    scores = g.Div(g.MatMul(q, turned(g, k)), np.float32(np.sqrt(SIZE)))
    length, total = g.Unsqueeze(g.dim(scores, -2), [0]), g.Unsqueeze(g.dim(scores, -1), [0])
    triangle = g.const(np.tril(np.ones((1, 1, 64, 64), bool)))
    seen = g.Slice(g.Slice(triangle, g.Sub(total, length), total, [2], [1]), [0], total, [3], [1])
    scores = g.Where(seen, scores, np.float32(-10000))
    return joined(g, g.MatMul(g.Softmax(scores, axis=3), v))


@pattern("attention, causal by Trilu of ConstantOfShape", 1)
def _(g):
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    full = g.ConstantOfShape(g.shape(g.dim(q, 2), g.dim(k, 2)), value=numpy_helper.from_array(np.array([LOWEST])))
    mask = g.Unsqueeze(g.Unsqueeze(g.Trilu(full, np.int64(1), upper=1), [0]), [0])
    return joined(g, attend(g, q, k, v, lambda scores: g.Add(scores, mask)))


@pattern("attention, causal and padding in one mask, transformers", 2)
def _(g):
    """_prepare_4d_causal_attention_mask: the triangle is expanded to the batch, and padding is filled in."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    mask = padding(g)
    positions = g.Range(np.int64(0), g.dim(mask, 1), np.int64(1))
    seen = g.Less(positions, g.Reshape(g.Add(positions, np.int64(1)), [-1, 1]))
    causal = g.Where(seen, np.float32(0), LOWEST)
    length = g.dim(mask, 1)
    shape = g.shape(g.dim(mask, 0), 1, length, length)
    causal = g.Expand(g.Unsqueeze(g.Unsqueeze(causal, [0]), [0]), shape)
    wide = g.Sub(np.float32(1), g.Cast(g.Expand(g.Unsqueeze(g.Unsqueeze(mask, [1]), [2]), shape), to=TensorProto.FLOAT))
    both = g.Where(g.Cast(wide, to=TensorProto.BOOL), LOWEST, causal)
    return joined(g, attend(g, q, k, v, lambda scores: g.Add(scores, both)))


def repeat_kv(g, x, count, groups):
    batch, length, size = (g.dim(x, i) for i in (0, 2, 3))
    wide = g.Expand(g.Unsqueeze(x, [2]), g.shape(batch, count, groups, length, size))
    return g.Reshape(wide, g.shape(batch, count * groups, length, size))


def causal_by_positions(g, queries, keys):
    """Keys that are not behind the query; the newest query sees the newest key."""
    columns = g.Unsqueeze(g.Range(np.int64(0), keys, np.int64(1)), [0])
    rows = g.Unsqueeze(g.Range(g.Sub(keys, queries), keys, np.int64(1)), [1])
    return g.Where(g.LessOrEqual(columns, rows), np.float32(0), LOWEST)


@pattern("attention, LLaMA, grouped queries", 1)
def _(g):
    q = view(g, hidden(g))
    k, v = (repeat_kv(g, view(g, hidden(g, heads=2), heads=2), 2, 2) for _ in range(2))
    scores = g.Mul(g.MatMul(q, turned(g, k)), np.float32(SIZE**-0.5))
    scores = g.Add(scores, causal_by_positions(g, g.dim(q, 2), g.dim(k, 2)))
    return joined(g, g.MatMul(g.Softmax(scores, axis=-1), v))


@pattern("attention, LLaMA with a cache", 3)
def _(g):
    """Keys and values are joined with those before; both are results too."""
    q = view(g, hidden(g))
    k, v = (g.Concat(g.input(["b", 2, "t", SIZE]), view(g, hidden(g, heads=2), heads=2), axis=2) for _ in range(2))
    wide_k, wide_v = (repeat_kv(g, x, 2, 2) for x in (k, v))
    scores = g.Mul(g.MatMul(q, turned(g, wide_k)), np.float32(SIZE**-0.5))
    scores = g.Add(scores, causal_by_positions(g, g.dim(q, 2), g.dim(k, 2)))
    return joined(g, g.MatMul(g.Softmax(scores, axis=-1), wide_v)), k, v


@pattern("attention, multi-query, one head of keys", 1)
def _(g):
    q, k, v = view(g, hidden(g)), view(g, hidden(g, heads=1), heads=1), view(g, hidden(g, heads=1), heads=1)
    return joined(g, attend(g, q, k, v))


@pattern("attention, Gemma, softcap and a window", 1)
def _(g):
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    scores = g.Mul(g.MatMul(q, turned(g, k)), np.float32(SIZE**-0.5))
    scores = g.Mul(g.Tanh(g.Div(scores, np.float32(50))), np.float32(50))
    columns = g.Unsqueeze(g.Range(np.int64(0), g.dim(k, 2), np.int64(1)), [0])
    rows = g.Unsqueeze(g.Range(np.int64(0), g.dim(q, 2), np.int64(1)), [1])
    seen = g.And(g.LessOrEqual(columns, rows), g.Greater(columns, g.Sub(rows, np.int64(4))))
    return joined(g, g.MatMul(g.Softmax(g.Where(seen, scores, LOWEST), axis=-1), v))


@pattern("attention, Phi, softmax in float32", 1)
def _(g):
    """softmax(..., dtype=float32).to(dtype), which changes nothing in a model of float32."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    scores = g.Add(g.Div(g.MatMul(q, turned(g, k)), np.float32(np.sqrt(SIZE))), causal_by_positions(g, g.dim(q, 2), g.dim(k, 2)))
    weights = g.Cast(g.Softmax(g.Cast(scores, to=TensorProto.FLOAT), axis=-1), to=TensorProto.FLOAT)
    return joined(g, g.MatMul(weights, v))


@pattern("attention, BLOOM, alibi and heads joined with the batch", 1)
def _(g):
    """baddbmm: the scores are parts of beta * alibi + product * scale, [b * h, s, t]."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    q, k, v = (g.Reshape(x, g.shape(-1, g.dim(x, 2), SIZE)) for x in (q, k, v))
    slopes = g.const((2.0 ** -np.arange(1, HEADS + 1)).astype(np.float32).reshape(1, HEADS, 1, 1))
    scores = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 2, 1])), np.float32(SIZE**-0.5))
    scores = g.Reshape(scores, g.shape(-1, HEADS, g.dim(q, 1), g.dim(k, 1)))
    positions = g.Cast(g.Range(np.int64(0), g.dim(k, 1), np.int64(1)), to=TensorProto.FLOAT)
    scores = g.Add(scores, g.Mul(slopes, positions))
    weights = g.Reshape(g.Softmax(scores, axis=-1), g.shape(-1, g.dim(q, 1), g.dim(k, 1)))
    context = g.Reshape(g.MatMul(weights, v), g.shape(-1, HEADS, g.dim(q, 1), SIZE))
    return joined(g, context)


@pattern("attention, T5, relative positions", 2)
def _(g):
    """No scale; the bias is looked up by a bucket for each pair of positions."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    rows = g.Unsqueeze(g.Range(np.int64(0), g.dim(q, 2), np.int64(1)), [1])
    columns = g.Unsqueeze(g.Range(np.int64(0), g.dim(k, 2), np.int64(1)), [0])
    distance = g.Sub(columns, rows)
    bucket = g.Add(g.Min(g.Abs(distance), np.int64(7)), g.Mul(g.Cast(g.Greater(distance, np.int64(0)), to=TensorProto.INT64), np.int64(8)))
    bias = g.Unsqueeze(g.Transpose(g.Gather(g.matrix(16, HEADS), bucket, axis=0), perm=[2, 0, 1]), [0])
    weights = g.Softmax(g.Add(g.MatMul(q, turned(g, k)), bias), axis=-1)
    return joined(g, g.MatMul(weights, v))


def of_five(g, x, pick):
    """timm: qkv(x).reshape(b, s, 3, heads, size).permute(2, 0, 3, 1, 4)"""
    five = g.Reshape(x, g.shape(g.dim(x, 0), g.dim(x, 1), 3, HEADS, SIZE))
    five = g.Transpose(five, perm=[2, 0, 3, 1, 4])
    if pick == "Gather":
        return [g.Gather(five, np.int64(i), axis=0) for i in range(3)]
    if pick == "Split":
        return [g.Squeeze(x, [0]) for x in g.op("Split", five, [1, 1, 1], outputs=3, axis=0)]
    return [g.Squeeze(g.slice(five, 0, i, i + 1), [0]) for i in range(3)]


@pattern("attention, ViT, Gather of five dims", 1)
def _(g):
    q, k, v = of_five(g, g.input(["b", "s", 3 * WIDTH]), "Gather")
    return joined(g, attend(g, q, k, v))


@pattern("attention, ViT, Split of five dims, scale on queries", 1)
def _(g):
    q, k, v = of_five(g, g.input(["b", "s", 3 * WIDTH]), "Split")
    weights = g.Softmax(g.MatMul(g.Mul(q, np.float32(SIZE**-0.5)), turned(g, k)), axis=-1)
    return joined(g, g.MatMul(weights, v))


@pattern("attention, ViT's layer with its products", 4)
def _(g):
    """The norm; the product; attention; its output with the residual."""
    x = hidden(g)
    q, k, v = of_five(g, linear(g, layer_norm(g, x), 3 * WIDTH), "Gather")
    return g.Add(x, linear(g, joined(g, attend(g, q, k, v))))


@pattern("attention, Swin, windows with a table of biases", 1)
def _(g):
    q, k, v = of_five(g, g.input(["b", 16, 3 * WIDTH]), "Gather")
    scores = g.Add(g.MatMul(g.Mul(q, np.float32(SIZE**-0.5)), turned(g, k)), g.const(g.normal([1, HEADS, 16, 16])))
    return joined(g, g.MatMul(g.Softmax(scores, axis=-1), v))


@pattern("attention, keys permuted at once", 1)
def _(g):
    """transpose_for_scores with (0, 2, 3, 1) for keys, which optimizers make of two transposes."""
    q, v = view(g, hidden(g)), view(g, hidden(g))
    k = hidden(g)
    k = g.Transpose(g.Reshape(k, [0, 0, HEADS, SIZE]), perm=[0, 2, 3, 1])
    weights = g.Softmax(g.Mul(g.MatMul(q, k), np.float32(SIZE**-0.5)), axis=-1)
    return joined(g, g.MatMul(weights, v))


@pattern("attention, Conformer, images and one head", 1)
def _(g):
    """A non-local block: channels first, keys and values in place as [b, c, n]."""
    q, k, v = (g.Reshape(g.input(["b", SIZE, "s", 5]), [0, 0, -1]) for _ in range(3))
    weights = g.Softmax(g.Mul(g.MatMul(g.Transpose(q, perm=[0, 2, 1]), k), np.float32(SIZE**-0.5)), axis=-1)
    return g.MatMul(weights, g.Transpose(v, perm=[0, 2, 1]))


# --- of other exporters -----------------------------------------------------------------------------------------------


@pattern("attention, TensorFlow's BERT", 2)
def _(g):
    """Shapes are constants but the batch; the mask is adder = (1 - mask) * -10000 of an outer product with ones."""
    mask = padding(g)
    length = g.dim(mask, 1)
    ones = g.ConstantOfShape(g.shape(g.dim(mask, 0), length, 1), value=numpy_helper.from_array(np.array([1], np.float32)))
    pairs = g.Mul(ones, g.Cast(g.Unsqueeze(mask, [1]), to=TensorProto.FLOAT))
    adder = g.Mul(g.Sub(np.float32(1), g.Unsqueeze(pairs, [1])), np.float32(-10000))
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    scores = g.Add(g.Mul(g.MatMul(q, turned(g, k)), np.float32(SIZE**-0.5)), adder)
    return joined(g, g.MatMul(g.Softmax(scores, axis=-1), v))


@pattern("attention, Keras, einsum made products", 1)
def _(g):
    """abcd,aecd->acbe and acbe,aecd->abcd, with the scale on the queries."""
    q, k, v = (g.input(["b", "s", HEADS, SIZE]) for _ in range(3))
    q = g.Transpose(g.Mul(q, np.float32(SIZE**-0.5)), perm=[0, 2, 1, 3])
    weights = g.Softmax(g.MatMul(q, g.Transpose(k, perm=[0, 2, 3, 1])), axis=-1)
    return g.Transpose(g.MatMul(weights, g.Transpose(v, perm=[0, 2, 1, 3])), perm=[0, 2, 1, 3])


@pattern("attention, Keras, Einsum", 1)
def _(g):
    q, k, v = (g.input(["b", "s", HEADS, SIZE]) for _ in range(3))
    scores = g.Einsum(k, g.Mul(q, np.float32(SIZE**-0.5)), equation="aecd,abcd->acbe")
    return g.Einsum(g.Softmax(scores, axis=-1), v, equation="acbe,aecd->abcd")


@pattern("attention, Paddle, slices of one product", 1)
def _(g):
    """Squeezed slices of five dims, queries scaled, sizes through int32."""
    x = g.input(["b", "s", 3 * WIDTH])
    length = g.Cast(g.Slice(g.Cast(g.Shape(x), to=TensorProto.INT32), [1], [2], [0]), to=TensorProto.INT64)
    five = g.Transpose(g.Reshape(x, g.Concat([0], length, [3], [HEADS], [SIZE], axis=0)), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.Squeeze(g.slice(five, 0, i, i + 1), [0]) for i in range(3))
    weights = g.Softmax(g.MatMul(g.Mul(q, np.float32(SIZE**-0.5)), turned(g, k)), axis=3)
    context = g.Transpose(g.MatMul(weights, v), perm=[0, 2, 1, 3])
    return g.Reshape(context, g.Concat([0], length, [WIDTH], axis=0))


@pattern("attention, Paddle's layer with its products", 4)
def _(g):
    """The norm spelled out; the product; attention; its output with the residual."""
    x = hidden(g)
    y = spellings.NORMS["PyTorch"](g, x, g.const(1 + g.normal([WIDTH], 0.2)), g.const(g.normal([WIDTH], 0.2)))
    y = g.Add(g.MatMul(y, g.matrix(WIDTH, 3 * WIDTH)), g.const(g.normal([3 * WIDTH], 0.3)))
    five = g.Transpose(g.Reshape(y, g.Concat([0], g.Slice(g.Shape(y), [1], [2], [0]), [3], [HEADS], [SIZE], axis=0)), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.Squeeze(g.slice(five, 0, i, i + 1), [0]) for i in range(3))
    weights = g.Softmax(g.MatMul(g.Mul(q, np.float32(SIZE**-0.5)), turned(g, k)), axis=3)
    context = g.Transpose(g.MatMul(weights, v), perm=[0, 2, 1, 3])
    context = g.Reshape(context, g.Concat([0], g.Slice(g.Shape(y), [1], [2], [0]), [WIDTH], axis=0))
    return g.Add(x, g.Add(g.MatMul(context, g.matrix(WIDTH, WIDTH)), g.const(g.normal([WIDTH], 0.3))))


@pattern("attention, ONNX Runtime's optimizer, constant shapes", 2)
def _(g):
    """Shapes folded to 0 and -1, masks shared."""
    q, k, v = (g.Transpose(g.Reshape(hidden(g), [0, 0, HEADS, SIZE]), perm=[0, 2, 1, 3]) for _ in range(3))
    scores = g.Add(g.Div(g.MatMul(q, turned(g, k)), np.float32(np.sqrt(SIZE))), inverse_mask(g, padding(g), -10000))
    return g.Reshape(g.Transpose(g.MatMul(g.Softmax(scores), v), perm=[0, 2, 1, 3]), [0, 0, WIDTH])


@pattern("attention, the operator of opset 23", 1, opset=23)
def _(g):
    return g.Attention(hidden(g), hidden(g), hidden(g), None, q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)


@pattern("attention, with rotary positions", 2)
def _(g):
    """Both rotations in one launch, then attention."""
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    tables = angles(g)
    rotate = spellings.ROTARIES["rotate_half"]
    q, k = rotate(g, q, *tables), rotate(g, k, *tables)
    scores = g.Add(g.Mul(g.MatMul(q, turned(g, k)), np.float32(SIZE**-0.5)), causal_by_positions(g, g.dim(q, 2), g.dim(k, 2)))
    return joined(g, g.MatMul(g.Softmax(scores, axis=-1), v))


@pattern("attention, softmax spelled out", 1)
def _(g):
    q, k, v = (view(g, hidden(g)) for _ in range(3))
    scores = g.Mul(g.MatMul(q, turned(g, k)), np.float32(SIZE**-0.5))
    return joined(g, g.MatMul(spellings.spelled_softmax(g, scores, -1), v))


# --- rotary positions, gelus, norms: each spelling ------------------------------------------------------------------------


def angles(g):
    """Cosines and sines as inputs, [1, 1, s, size], both halves alike."""
    return [g.input([1, 1, "s", SIZE], lambda shape: np.concatenate([half := g.normal([*shape[:-1], SIZE // 2]), half], axis=-1)) for _ in range(2)]


def rotary_pattern(name, rotate):
    @pattern(f"rotary, {name}", 1)
    def _(g):
        return rotate(g, g.input(["b", HEADS, "s", SIZE]), *angles(g))


def rotary_of_hidden(name, rotate):
    @pattern(f"rotary, {name}, of the product's result", 1)
    def _(g):
        return rotate(g, view(g, hidden(g)), *angles(g))


for name, rotate in spellings.ROTARIES.items():
    rotary_pattern(name, rotate)
rotary_of_hidden("rotate_half", spellings.ROTARIES["rotate_half"])


@pattern("rotary, angles from positions", 3)
def _(g):
    """LLaMA's inv_freq @ position_ids; cosines and sines; then both rotations."""
    positions = g.input(["b", "s"], lambda shape: np.tile(np.arange(shape[1]), (shape[0], 1)))
    frequencies = g.const((100.0 ** (-np.arange(0, SIZE, 2) / SIZE)).astype(np.float32).reshape(1, SIZE // 2, 1))
    wide = g.Expand(frequencies, g.shape(g.dim(positions, 0), SIZE // 2, 1))
    turns = g.Transpose(g.MatMul(wide, g.Cast(g.Unsqueeze(positions, [1]), to=TensorProto.FLOAT)), perm=[0, 2, 1])
    turns = g.Concat(turns, turns, axis=-1)
    tables = [g.Unsqueeze(g.Mul(t, np.float32(1)), [1]) for t in (g.Cos(turns), g.Sin(turns))]
    rotate = spellings.ROTARIES["rotate_half"]
    return tuple(rotate(g, g.input(["b", HEADS, "s", SIZE]), *tables) for _ in range(2))


def element_wise(name, function):
    @pattern(name, 1)
    def _(g):
        return function(g, hidden(g))


def behind_product(name, function):
    @pattern(f"{name}, behind a product", 1)
    def _(g):
        return function(g, linear(g, hidden(g), 48))


for name, function in spellings.GELUS.items():
    element_wise(f"gelu, {name}", function)
    behind_product(f"gelu, {name}", function)
for name, function in spellings.ACTIVATIONS.items():
    element_wise(f"activation, {name}", function)


@pattern("activation, SwiGLU", 3)
def _(g):
    """Each product is a launch; what is element-wise goes with the second."""
    x = hidden(g)
    gate, up = (g.MatMul(x, g.matrix(WIDTH, 48)) for _ in range(2))
    return g.MatMul(g.Mul(g.Mul(gate, g.Sigmoid(gate)), up), g.matrix(48, WIDTH))


def norm_pattern(name, norm):
    @pattern(f"layer norm, {name}", 1)
    def _(g):
        return norm(g, hidden(g), g.const(1 + g.normal([WIDTH], 0.2)), g.const(g.normal([WIDTH], 0.2)))

    @pattern(f"layer norm, {name}, of a residual that is a result too", 1)
    def _(g):
        x = g.Add(hidden(g), hidden(g))
        return norm(g, x, g.const(1 + g.normal([WIDTH], 0.2)), g.const(g.normal([WIDTH], 0.2))), x


for name, norm in spellings.NORMS.items():
    norm_pattern(name, norm)


def rms_pattern(name, norm, dtype):
    @pattern(f"RMS norm, {name}{'' if dtype == np.float32 else ', of float16'}", 1, dtype=dtype)
    def _(g):
        return norm(g, hidden(g), g.const(1 + g.normal([WIDTH], 0.2)))


for name, norm in spellings.RMS_NORMS.items():
    rms_pattern(name, norm, np.float32)
rms_pattern("LLaMA with casts", spellings.RMS_NORMS["LLaMA with casts"], np.float16)


# --- what only looks like attention, or is written over batch dims that do not go one by one ------------------------------


def product_of(g, q, k, v, change=lambda scores: scores, after=lambda weights: weights):
    return g.MatMul(after(g.Softmax(change(g.MatMul(q, k)), axis=-1)), v)


@pattern("look-alike, attention over no keys", 1)
def _(g):
    return product_of(g, g.input(["b", 4, "s", 8]), g.input(["b", 4, 8, "none"]), g.input(["b", 4, "none", 8]))


@pattern("look-alike, sums of other rows", 4)
def _(g):
    exponentials = g.Exp(g.MatMul(g.input(["b", 2, 8, 16]), g.input(["b", 2, 16, 8])))
    sums = g.Unsqueeze(g.ReduceSum(exponentials, [-1], keepdims=0), [-2])
    return g.MatMul(g.Div(exponentials, sums), g.input(["b", 2, 8, 16]))


@pattern("look-alike, weights hidden by integers that are equal", 4)
def _(g):
    hide = g.Equal(g.input(["b", 1, "s", "t"], lambda shape: g.random.integers(0, 2, shape)), np.int64(0))
    return product_of(g, g.input(["b", 2, "s", 8]), g.input(["b", 2, 8, "t"]), g.input(["b", 2, "t", 8]),
                      after=lambda weights: g.Where(hide, np.float32(0), weights))


@pattern("look-alike, weights hidden by booleans that are equal", 4)
def _(g):
    hide = g.Equal(truth(g, ["b", 1, "s", "t"]), np.bool_(False))
    return product_of(g, g.input(["b", 2, "s", 8]), g.input(["b", 2, 8, "t"]), g.input(["b", 2, "t", 8]),
                      after=lambda weights: g.Where(hide, np.float32(0), weights))


@pattern("look-alike, keys without a batch", 1)
def _(g):
    return product_of(g, g.input(["b", 2, "s", 8]), g.input([2, 8, "t"]), g.input(["b", 2, "t", 8]))


@pattern("look-alike, keys and values without a batch, of open heads", 1)
def _(g):
    return product_of(g, g.input(["b", "t", "s", 8]), g.input(["t", 8, "t"]), g.input(["t", "t", 8]))


@pattern("look-alike, heads joined, keys and values of all", 1)
def _(g):
    mask = g.input([3, 1, 1, 9])
    return product_of(g, g.input([6, "s", 8]), g.input([1, 8, 9]), g.input([1, 9, 8]),
                      lambda scores: g.Reshape(g.Add(g.Reshape(scores, [3, 2, -1, 9]), mask), [6, -1, 9]))


@pattern("look-alike, a bias over batch dims in another order", 4)
def _(g):
    bias = g.input([1, 3, 1, 8, 8])
    return product_of(g, g.input([2, 3, 4, 8, 16]), g.input([2, 3, 4, 16, 8]), g.input([2, 3, 4, 8, 16]),
                      lambda scores: g.Reshape(g.Add(g.Reshape(scores, [4, 3, 2, 8, 8]), bias), [2, 3, 4, 8, 8]))


@pattern("look-alike, a bias over batch dims in another place", 4)
def _(g):
    bias = g.input([4, 1, 8, 8])
    return product_of(g, g.input([1, 4, 8, 16]), g.input([1, 4, 16, 8]), g.input([1, 4, 8, 16]),
                      lambda scores: g.Reshape(g.Add(g.Reshape(scores, [4, 1, 8, 8]), bias), [1, 4, 8, 8]))


@pattern("look-alike, a guard that repeats the weights", 4)
def _(g):
    zeros = g.const(np.zeros((3, 1, 1, 1), np.float32))
    return product_of(g, g.input([1, 2, "s", 8]), g.input([1, 2, 8, "t"]), g.input([1, 2, "t", 8]),
                      after=lambda weights: g.Where(g.IsNaN(weights), zeros, weights))


@pattern("look-alike, read in place and at other indices", 2)
def _(g):
    x = g.Exp(g.input([5, 5, 4]))
    return g.Add(g.Sigmoid(x), g.Transpose(x, perm=[1, 0, 2]))


@pattern("look-alike, a rotation of a product that is read beside it", 2)
def _(g):
    x = g.Mul(g.input(["b", "s", 4, 8]), g.const(g.normal([8], 0.5)))
    turned = g.Concat(g.Neg(g.Slice(x, [4], [8], [3])), g.Slice(x, [0], [4], [3]), axis=3)
    return g.Add(g.Mul(x, g.const(g.normal([8], 0.5))), g.Mul(turned, g.const(g.normal([8], 0.5))))


# Patterns that take more launches than they need, and how many. Fewer are a failure too: the row is to go then.
MORE = {
    "attention, scaled_dot_product_attention, causal": 2,  # positions are a launch of their own
    "attention, masked_fill before and after the softmax": 5,  # a product on the weights stands between softmax and values
    "attention, GPT-2, causal by a slice of a table": 6,
    "attention, causal by Trilu of ConstantOfShape": 2,
    "attention, causal and padding in one mask, transformers": 3,
    "attention, LLaMA, grouped queries": 2,  # a transpose of keys that are repeated is made
    "attention, Gemma, softcap and a window": 3,
    "attention, Phi, softmax in float32": 2,
    "attention, BLOOM, alibi and heads joined with the batch": 3,
    "attention, T5, relative positions": 5,
    "attention, ViT, Gather of five dims": 3,  # parts of one product are copied
    "attention, ViT, Split of five dims, scale on queries": 2,
    "attention, ViT's layer with its products": 6,
    "attention, Swin, windows with a table of biases": 3,
    "attention, Conformer, images and one head": 4,  # values lie with their columns apart
    "attention, TensorFlow's BERT": 3,
    "attention, Keras, Einsum": 6,
    "attention, Paddle, slices of one product": 2,
    "attention, Paddle's layer with its products": 5,
    "attention, the operator of opset 23": 2,
    "rotary, parts": 2,  # a part that two read is in memory
    "rotary, GPT-J's pairs": 3,
    "rotary, complex numbers": 3,
    "rotary, some of the dims": 2,
    "rotary, angles from positions": 5,
    "layer norm, mean of squares": 2,
}


# --- the suite --------------------------------------------------------------------------------------------------------


def built(name):
    _, opset, dtype, build = PATTERNS[name]
    graph = Graph(SIZES, opset, seed=len(name), dtype=dtype)
    results = build(graph)
    graph.output(*(results if isinstance(results, tuple) else [results]))
    return graph.whole()


def test(name, options):
    def run(bench):
        most, part = PATTERNS[name][0], built(name)
        try:
            if options.table:
                launched, remarks = bench.launches(bench.compile(part.model(), "--target", "cpu:host")), []
            else:
                remarks, launched = bench.check(part, "cpu:host", ("fused", "unfused") if options.all else ("fused",))
            allowed = MORE.get(name, most)
            if len(launched) > allowed:
                raise judge.Failed(f"{len(launched)} launches, at most {most} are needed (and {allowed} known): {', '.join(launched)}")
            if name in MORE and len(launched) < allowed:
                raise judge.Failed(f"{len(launched)} launches, fewer than MORE has for it")
        except (judge.Failed, driver.Crash, driver.Hang) as failed:
            folder = options.build / "test-logs" / "patterns" / "".join(c if c.isalnum() else "_" for c in name)
            part.save(folder)
            raise type(failed)(f"{failed}\n    {folder}/model.onnx, test_data_set_*")
        return [f"{len(launched)} launches"] if options.table else remarks

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--table", action="store_true", help="only count launches")
    options = parser.parse_args()
    options.build = options.build.resolve()
    names = [name for name in PATTERNS if driver.matches(options.filter, name)]
    return judge.run_suite("patterns", {name: test(name, options) for name in names}, options, SECONDS_A_PATTERN)


if __name__ == "__main__":
    sys.exit(main())
