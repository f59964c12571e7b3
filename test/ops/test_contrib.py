#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators that ONNX Runtime's optimizer and exporters for it write (domain com.microsoft, and a few in the standard one).

    test/ops/test_contrib.py --build build/dev [--jobs 2] [--json FILE] [--filter REGEX]

Each case is a node and some runs of other dims. It is compiled with named dims behind nodes, so that the import knows no rank; the first of
each operator, and with --all each, with fixed dims for the first run and with named dims too. What each gives must be what ONNX Runtime gives on this processor, or, for the
forms that it has only elsewhere, what it gives for the same in another form. And what dlc refuses must be refused with the word that says so.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import sys
import time

import ml_dtypes  # noqa: F401 (registers bfloat16)
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import supported

MICROSOFT = "com.microsoft"
SECONDS = 300
TOLERANCE = {"float64": 3e-5, "float32": 3e-5, "float16": 8e-3, "bfloat16": 6e-2}  # what is right is computed in float
FLOATS = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


class Failed(Exception):
    """What a case has to say."""


@dataclasses.dataclass
class Case:
    """`inputs` makes the arrays of a run (None: left out) from the dims of the run. Those in `const` are known when it is compiled.
    `reference`: makes (operator, attributes, arrays) that ONNX Runtime gives the same for. `rows`: the outputs' rows that are compared."""

    op: str
    name: str
    attributes: dict
    inputs: object
    runs: list
    outputs: int = 1
    const: tuple = ()
    domain: str = MICROSOFT
    opset: int = 17
    reference: object = None
    output_types: tuple = ()  # where not the data's

    def arrays(self, run, dtype=None):
        """The inputs of a run, the same each time."""
        random = np.random.default_rng([len(self.name), run])
        arrays = [None if a is None else np.asarray(a) for a in self.inputs(Data(random), *self.runs[run])]
        return [a.astype(dtype) if dtype is not None and a is not None and a.dtype == np.float32 else a for a in arrays]


class Data:
    """Random tensors."""

    def __init__(self, random):
        self.random = random

    def x(self, *dims):
        return self.random.uniform(-1, 1, dims).astype(np.float32)

    def ints(self, high, *dims, low=0, dtype=np.int32):
        return self.random.integers(low, high, dims).astype(dtype)

    def bits(self, *dims):
        """A mask that hides a third, but never the first."""
        mask = (self.random.random(dims) < 0.67).astype(np.int32)
        mask[..., 0] = 1
        return mask

    def table(self, positions, pairs):
        """Cosines and sines of positions."""
        angles = np.outer(np.arange(positions), 100.0 ** (-np.arange(pairs) / pairs))
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


CASES = []


def case(op, name, inputs, runs, outputs=1, const=(), domain=MICROSOFT, opset=17, reference=None, output_types=(), **attributes):
    CASES.append(Case(op, f"{op} {name}", attributes, inputs, runs, outputs, const, domain, opset, reference, output_types))


# --- element-wise, products, norms ------------------------------------------------------------------------------------

PLAIN = [(2, 3), (1, 5), (4, 1)]
for op in ("Gelu", "FastGelu", "QuickGelu"):
    case(op, "plain", lambda d, b, s: [4 * d.x(b, s, 12)], PLAIN)
case("FastGelu", "bias", lambda d, b, s: [d.x(b, s, 12), d.x(12)], PLAIN, const=(1,))
case("BiasGelu", "plain", lambda d, b, s: [d.x(b, s, 12), d.x(12)], PLAIN, const=(1,))
case("QuickGelu", "alpha", lambda d, b, s: [d.x(b, s, 12)], PLAIN, alpha=0.5)
case("BiasAdd", "plain", lambda d, b, s: [d.x(b, s, 12), d.x(12), d.x(b, s, 12)], PLAIN,
     reference=lambda x, bias, skip: ("", "Sum", {}, [x, bias, skip]))


def split_gelu(x, bias):
    first, second = np.split(x + bias, 2, axis=-1)
    gelu = onnxruntime_of("Gelu", {}, [second], 1)[0]
    return "", "Mul", {}, [first, gelu]


case("BiasSplitGelu", "plain", lambda d, b, s: [d.x(b, s, 12), d.x(12)], PLAIN, reference=split_gelu)

case("FusedMatMul", "plain", lambda d, b, s: [d.x(b, s, 6), d.x(6, 5)], PLAIN, alpha=0.25)
case("FusedMatMul", "transB", lambda d, b, s: [d.x(b, 2, s, 6), d.x(b, 2, 7, 6)], PLAIN, transB=1, alpha=0.5)
case("FusedMatMul", "transA", lambda d, b, s: [d.x(b, 6, s), d.x(b, 6, 7)], PLAIN, transA=1)
case("FusedMatMul", "transposed matrices", lambda d, b, s: [d.x(6, s), d.x(b, 6)], PLAIN, transA=1, transB=1)
case("FusedMatMul", "vector", lambda d, b, s: [d.x(b, s, 6), d.x(6)], PLAIN, transB=1)
case("FusedMatMul", "five axes", lambda d, b, s: [d.x(b, 2, 1, s, 6), d.x(b, 2, 3, 4, 6)], PLAIN, transB=1)
case("FusedMatMul", "transBatchA", lambda d, b, s: [d.x(s, b, 2, 6), d.x(b, 2, 6, 7)], PLAIN, transBatchA=1)
case("FusedMatMul", "five axes, transBatchA", lambda d, b, s: [d.x(6, b, 2, 3, s), d.x(b, 2, 3, 6, 7)], PLAIN, transBatchA=1, transA=1)
case("FusedMatMul", "transBatchB", lambda d, b, s: [d.x(b, s, 6), d.x(6, b, 7)], PLAIN, transBatchB=1)
case("FusedMatMul", "all", lambda d, b, s: [d.x(6, b, 2, s), d.x(5, b, 2, 6)], PLAIN, transBatchA=1, transBatchB=1, transA=1, transB=1)

case("SkipLayerNormalization", "all", lambda d, b, s: [d.x(b, s, 12), d.x(b, s, 12), d.x(12), d.x(12), d.x(12)], PLAIN, const=(2, 3, 4), epsilon=1e-5)
case("SkipLayerNormalization", "least", lambda d, b, s: [d.x(b, s, 12), d.x(b, s, 12), d.x(12)], PLAIN)
case("SkipLayerNormalization", "broadcast skip", lambda d, b, s: [d.x(b, s, 12), d.x(1, s, 12), d.x(12), d.x(12)], PLAIN)
case("SkipLayerNormalization", "sum", lambda d, b, s: [d.x(b, s, 12), d.x(b, s, 12), d.x(12), None, d.x(12)], PLAIN, outputs=(0, 3))
case("SkipSimplifiedLayerNormalization", "bias", lambda d, b, s: [d.x(b, s, 12), d.x(b, s, 12), d.x(12), d.x(12)], PLAIN, epsilon=1e-6)
case("SkipSimplifiedLayerNormalization", "sum", lambda d, b, s: [d.x(b, s, 12), d.x(b, s, 12), d.x(12)], PLAIN, outputs=(0, 3))
case("SimplifiedLayerNormalization", "plain", lambda d, b, s: [d.x(b, s, 12), d.x(12)], PLAIN, domain="", epsilon=1e-6)
case("SimplifiedLayerNormalization", "axis", lambda d, b, s: [d.x(b, s, 3, 4), d.x(3, 4)], PLAIN, domain="", axis=2)
case("SimplifiedLayerNormalization", "from the end", lambda d, b, s: [d.x(b, s, 3, 4), d.x(3, 4)], PLAIN, domain="", axis=-2)
case("LayerNormalization", "before opset 17", lambda d, b, s: [d.x(b, s, 12), d.x(12), d.x(12)], PLAIN, domain="", opset=13, axis=-1)
case("LayerNormalization", "statistics", lambda d, b, s: [d.x(b, s, 3, 4), d.x(3, 4), d.x(3, 4)], PLAIN, domain="", axis=2, outputs=3)


def embedding(d, b, s, segments=True, positions=False, mask=False):
    return [d.ints(20, b, s), d.ints(2, b, s) if segments else None, d.x(20, 12), d.x(16, 12), d.x(2, 12) if segments else None, d.x(12), d.x(12),
            d.bits(b, s) if mask else None, d.ints(16, b, s) if positions else None]


case("EmbedLayerNormalization", "segments", embedding, PLAIN, const=(2, 3, 4, 5, 6), outputs=2, output_types=(None, np.int32), epsilon=1e-5)
case("EmbedLayerNormalization", "no segments", lambda d, b, s: embedding(d, b, s, False), PLAIN, outputs=2, output_types=(None, np.int32))
case("EmbedLayerNormalization", "all", lambda d, b, s: embedding(d, b, s, True, True, True), PLAIN, outputs=3, output_types=(None, np.int32, None))
case("EmbedLayerNormalization", "one row of positions", lambda d, b, s: [*embedding(d, b, s)[:8], d.ints(16, 1, s)], PLAIN, outputs=2,
     output_types=(None, np.int32))

# --- rotary positions -------------------------------------------------------------------------------------------------


def rotary(d, x, positions, pairs):
    return [x, positions, *d.table(24, pairs)]


for interleaved in (0, 1):
    i = f", interleaved {interleaved}"
    case("RotaryEmbedding", "positions" + i, lambda d, b, s: rotary(d, d.x(b, s, 32), d.ints(24, b, s, dtype=np.int64), 4), PLAIN, const=(2, 3),
         interleaved=interleaved)
    case("RotaryEmbedding", "offset" + i, lambda d, b, s: rotary(d, d.x(b, s, 32), np.array([3]), 4), PLAIN, interleaved=interleaved, num_heads=4)
    case("RotaryEmbedding", "four axes" + i, lambda d, b, s: rotary(d, d.x(b, 4, s, 8), d.ints(24, b, s, dtype=np.int64), 4), PLAIN,
         interleaved=interleaved)
    case("RotaryEmbedding", "four axes, offset" + i, lambda d, b, s: rotary(d, d.x(b, 4, s, 8), np.array([2]), 4), PLAIN, interleaved=interleaved)
    case("RotaryEmbedding", "partial" + i, lambda d, b, s: rotary(d, d.x(b, s, 40), d.ints(24, b, s, dtype=np.int64), 3), PLAIN,
         interleaved=interleaved, num_heads=4, rotary_embedding_dim=6)

# --- attention --------------------------------------------------------------------------------------------------------

LENGTHS = [(2, 3, 4), (1, 5, 0), (3, 1, 6)]  # batch, new, past


def attention(d, b, s, p=0, sizes=(16, 16, 16), bias=True, mask=None, past=False, added=None):
    """Inputs of Attention for two heads."""
    total = s + (p if past else 0)
    return [d.x(b, s, 10), d.x(10, sum(sizes)), d.x(sum(sizes)) if bias else None, mask(d, b, s, total) if mask else None,
            d.x(2, b, 2, p, sizes[0] // 2) if past else None, d.x(*added, s, total) if added else None]


def ends(d, b, s, total):
    return d.ints(total + 1, b, low=1)


def ends_and_starts(d, b, s, total):
    return np.concatenate([d.ints(total + 1, b, low=1), np.zeros(b, np.int32) + (total > 2)]).astype(np.int32)


MASKS = {"ends": ends, "ends and starts": ends_and_starts, "keys": lambda d, b, s, total: d.bits(b, total),
         "rows and keys": lambda d, b, s, total: d.bits(b, s, total)}

case("Attention", "plain", lambda d, b, s, p: attention(d, b, s), LENGTHS, const=(1, 2), num_heads=2)
case("Attention", "no bias, computed weights", lambda d, b, s, p: attention(d, b, s, bias=False), LENGTHS, num_heads=2)
case("Attention", "scale", lambda d, b, s, p: attention(d, b, s), LENGTHS, const=(1, 2), num_heads=2, scale=0.3)
case("Attention", "sizes", lambda d, b, s, p: attention(d, b, s, sizes=(16, 16, 24)), LENGTHS, const=(1, 2), num_heads=2, qkv_hidden_sizes=[16, 16, 24])
case("Attention", "unidirectional", lambda d, b, s, p: attention(d, b, s), LENGTHS, const=(1, 2), num_heads=2, unidirectional=1)
for name, mask in MASKS.items():
    case("Attention", f"mask of {name}", lambda d, b, s, p, m=mask: attention(d, b, s, mask=m), LENGTHS, const=(1, 2), num_heads=2)
    case("Attention", f"weak mask of {name}", lambda d, b, s, p, m=mask: attention(d, b, s, mask=m), LENGTHS, const=(1, 2), num_heads=2,
         mask_filter_value=-1.5)
case("Attention", "mask, unidirectional", lambda d, b, s, p: attention(d, b, s, mask=MASKS["keys"]), LENGTHS, const=(1, 2), num_heads=2, unidirectional=1)
case("Attention", "past", lambda d, b, s, p: attention(d, b, s, p, past=True), LENGTHS, const=(1, 2), num_heads=2, outputs=2)
case("Attention", "past, mask, unidirectional", lambda d, b, s, p: attention(d, b, s, p, past=True, mask=MASKS["keys"]), LENGTHS, const=(1, 2),
     num_heads=2, outputs=2, unidirectional=1)
case("Attention", "present", lambda d, b, s, p: attention(d, b, s), LENGTHS, const=(1, 2), num_heads=2, outputs=2)
case("Attention", "added", lambda d, b, s, p: attention(d, b, s, added=(b, 2)), LENGTHS, const=(1, 2), num_heads=2)
case("Attention", "added for all", lambda d, b, s, p: attention(d, b, s, added=(1, 1), mask=MASKS["keys"]), LENGTHS, const=(1, 2), num_heads=2)


def multi_head(d, b, s, t, bias=False, mask=None, added=None, past=None, width=16, value_width=16):
    total = t + (past or 0)
    return [d.x(b, s, width), d.x(b, t, width), d.x(b, t, value_width), d.x(2 * width + value_width) if bias else None,
            mask(d, b, s, total) if mask else None, d.x(*added, s, total) if added else None,
            *([d.x(b, 2, past, width // 2), d.x(b, 2, past, value_width // 2)] if past is not None else [])]


def unpacked(query, key=None, value=None, bias=None, *others):
    """Packed heads, apart."""
    b, s, heads = query.shape[:3]
    if key is None:
        q, k, v = (query[:, :, :, i].reshape(b, s, -1) for i in range(3))
    else:
        q, (k, v) = query, (key[:, :, :, i].reshape(b, key.shape[1], -1) for i in range(2))
    return MICROSOFT, "MultiHeadAttention", {"num_heads": 2}, [q, k, v, bias, *others]


CROSS = [(2, 3, 4), (1, 5, 1), (3, 1, 6)]
case("MultiHeadAttention", "plain", multi_head, CROSS, num_heads=2)
case("MultiHeadAttention", "values of another size", lambda d, b, s, t: multi_head(d, b, s, t, True, value_width=24), CROSS, num_heads=2)
case("MultiHeadAttention", "bias", lambda d, b, s, t: multi_head(d, b, s, t, True), CROSS, const=(3,), num_heads=2)
case("MultiHeadAttention", "scale", multi_head, CROSS, num_heads=2, scale=0.4)
for name in ("ends", "keys", "rows and keys"):
    case("MultiHeadAttention", f"mask of {name}", lambda d, b, s, t, m=MASKS[name]: multi_head(d, b, s, t, mask=m), CROSS, num_heads=2)
    case("MultiHeadAttention", f"weak mask of {name}", lambda d, b, s, t, m=MASKS[name]: multi_head(d, b, s, t, mask=m), CROSS, num_heads=2,
         mask_filter_value=-2.0)
case("MultiHeadAttention", "added", lambda d, b, s, t: multi_head(d, b, s, t, added=(b, 2)), CROSS, num_heads=2)
case("MultiHeadAttention", "added for all", lambda d, b, s, t: multi_head(d, b, s, t, added=(1, 1)), CROSS, num_heads=2)
case("MultiHeadAttention", "past", lambda d, b, s, p: multi_head(d, b, s, s, True, past=p), LENGTHS, num_heads=2, outputs=3)
case("MultiHeadAttention", "past, unidirectional", lambda d, b, s, p: multi_head(d, b, s, s, past=p), LENGTHS, num_heads=2, outputs=3, unidirectional=1)
case("MultiHeadAttention", "past, mask, added", lambda d, b, s, p: multi_head(d, b, s, s, past=p, mask=MASKS["keys"], added=(b, 2)), LENGTHS, num_heads=2,
     outputs=3)
case("MultiHeadAttention", "present", lambda d, b, s, t: multi_head(d, b, s, t, True), CROSS, num_heads=2, outputs=3)
case("MultiHeadAttention", "keys of a cache", lambda d, b, s, t: [d.x(b, s, 16), d.x(b, 2, t, 8), d.x(b, 2, t, 8)], CROSS, num_heads=2)
case("MultiHeadAttention", "packed", lambda d, b, s, t: [d.x(b, s, 2, 3, 8)], CROSS, num_heads=2, reference=unpacked)
case("MultiHeadAttention", "packed, bias, mask", lambda d, b, s, t: [d.x(b, s, 2, 3, 8), None, None, d.x(48), d.bits(b, s)], CROSS, num_heads=2,
     reference=unpacked)
case("MultiHeadAttention", "packed keys", lambda d, b, s, t: [d.x(b, s, 16), d.x(b, t, 2, 2, 8)], CROSS, num_heads=2, reference=unpacked)


def grouped(d, b, s, p, packed=False, tables=None, positions=False, added=None, sink=False, past=True, heads=4, key_heads=2, size=8):
    """Inputs of GroupQueryAttention, no padding."""
    total = s + p
    q, k, v = d.x(b, s, heads * size), d.x(b, s, key_heads * size), d.x(b, s, key_heads * size)
    inputs = [np.concatenate([q, k, v], axis=-1), None, None] if packed else [q, k, v]
    inputs += [d.x(b, key_heads, p, size), d.x(b, key_heads, p, size)] if past else [None, None]
    inputs += [np.full(b, total - 1, np.int32), np.array(total, np.int32)]
    inputs += d.table(24, tables) if tables else [None, None]
    inputs.append(p + np.tile(np.arange(s), (b, 1)) if positions else None)
    inputs.append(d.x(*added, s, total) if added else None)
    inputs.append(d.x(heads) if sink else None)
    return inputs


def with_lengths(inputs, lengths, total):
    return [*inputs[:5], np.array(lengths, np.int32), np.array(total, np.int32), *inputs[7:]]


STEPS = [(1, 3, 4), (2, 5, 0), (3, 1, 6)]  # with a cache, more than one step is for a batch of one
HEADS = dict(num_heads=4, kv_num_heads=2)
case("GroupQueryAttention", "plain", grouped, STEPS, outputs=3, **HEADS)
case("GroupQueryAttention", "as many heads", lambda d, b, s, p: grouped(d, b, s, p, key_heads=4), STEPS, outputs=3, num_heads=4, kv_num_heads=4)
case("GroupQueryAttention", "one head of keys", lambda d, b, s, p: grouped(d, b, s, p, key_heads=1), STEPS, outputs=3, num_heads=4, kv_num_heads=1)
case("GroupQueryAttention", "no cache", lambda d, b, s, p: grouped(d, b, s, 0, past=False), STEPS, outputs=3, **HEADS)
case("GroupQueryAttention", "packed", lambda d, b, s, p: grouped(d, b, s, p, packed=True), STEPS, outputs=3, **HEADS)
case("GroupQueryAttention", "scale, softcap", grouped, STEPS, outputs=3, scale=0.9, softcap=0.7, **HEADS)
case("GroupQueryAttention", "window", grouped, STEPS, outputs=3, local_window_size=2, **HEADS)
case("GroupQueryAttention", "smooth", grouped, STEPS, outputs=3, smooth_softmax=1, **HEADS)
case("GroupQueryAttention", "sink", lambda d, b, s, p: grouped(d, b, s, p, sink=True), STEPS, outputs=3, **HEADS)
case("GroupQueryAttention", "added", lambda d, b, s, p: grouped(d, b, s, p, added=(b, 4)), STEPS, outputs=3, softcap=0.5, **HEADS)
case("GroupQueryAttention", "added for all", lambda d, b, s, p: grouped(d, b, s, p, added=(1, 1)), STEPS, outputs=3, **HEADS)
case("GroupQueryAttention", "bidirectional", lambda d, b, s, p: grouped(d, b, s, 0), STEPS, outputs=3, causal=0, **HEADS)
case("GroupQueryAttention", "bidirectional, ends of sequences", lambda d, b, s, p: with_lengths(grouped(d, b, s, 0), np.maximum(s - 1 - np.arange(b), 0), s),
     STEPS, outputs=3, causal=0, **HEADS)
for interleaved in (0, 1):
    i = f", interleaved {interleaved}"
    turned = dict(outputs=3, const=(7, 8), do_rotary=1, rotary_interleaved=interleaved, **HEADS)
    case("GroupQueryAttention", "rotary" + i, lambda d, b, s, p: grouped(d, b, s, p, tables=8, size=16), STEPS, **turned)
    case("GroupQueryAttention", "rotary, packed" + i, lambda d, b, s, p: grouped(d, b, s, p, tables=8, size=16, packed=True), STEPS, **turned)
    case("GroupQueryAttention", "rotary, positions" + i, lambda d, b, s, p: grouped(d, b, s, p, tables=8, size=16, positions=True), STEPS, **turned)
    case("GroupQueryAttention", "rotary, partial" + i, lambda d, b, s, p: grouped(d, b, s, p, tables=8, size=32), STEPS, **turned)

# --- the same of ONNX, where the import knows no rank -----------------------------------------------------------------


def onnx_attention(d, b, s, p, heads=4, key_heads=2, flat=False, mask=None, past=False):
    total = s + (p if past else 0)
    shapes = [(b, heads, s, 8), (b, key_heads, s, 8), (b, key_heads, s, 8)]
    inputs = [d.x(*shape) for shape in shapes]
    if flat:
        inputs = [x.transpose(0, 2, 1, 3).reshape(b, s, -1) for x in inputs]
    inputs.append(mask(d, b, s, total) if mask else None)
    return inputs + ([d.x(b, key_heads, p, 8), d.x(b, key_heads, p, 8)] if past else [])


def bools(*axes):
    """A mask of some of the axes [batch, heads, rows, columns], counted from the end."""
    return lambda d, b, s, total: d.bits(*(b, 4, s, total)[-len(axes):] if all(axes) else [n if a else 1 for a, n in zip(axes, (b, 4, s, total))]) > 0


STANDARD = dict(domain="", opset=23)
case("Attention", "of ONNX", onnx_attention, LENGTHS, **STANDARD)
case("Attention", "of ONNX, as many heads", lambda d, b, s, p: onnx_attention(d, b, s, p, key_heads=4), LENGTHS, **STANDARD)
case("Attention", "of ONNX, flat, causal, cache", lambda d, b, s, p: onnx_attention(d, b, s, p, flat=True, past=True), LENGTHS, outputs=3, q_num_heads=4,
     kv_num_heads=2, is_causal=1, **STANDARD)
case("Attention", "of ONNX, heads that are named too", onnx_attention, LENGTHS, q_num_heads=4, kv_num_heads=2, **STANDARD)
case("Attention", "of ONNX, softcap, scale, scores", onnx_attention, LENGTHS, outputs=(0, 3), softcap=0.6, scale=0.4, **STANDARD)
for rank in (2, 3, 4):
    case("Attention", f"of ONNX, mask of {rank} axes", lambda d, b, s, p, r=rank: onnx_attention(d, b, s, p, mask=bools(*[1] * r)), LENGTHS, **STANDARD)
    case("Attention", f"of ONNX, numbers of {rank} axes, cache",
         lambda d, b, s, p, r=rank: onnx_attention(d, b, s, p, past=True, mask=lambda d, b, s, t: d.x(*(b, 4, s, t)[-r:])), LENGTHS, outputs=3, **STANDARD)
case("Attention", "of ONNX, one mask for all heads", lambda d, b, s, p: onnx_attention(d, b, s, p, mask=bools(1, 0, 1, 1)), LENGTHS, **STANDARD)
for interleaved in (0, 1):
    i = f", interleaved {interleaved}"
    case("RotaryEmbedding", "of ONNX" + i, lambda d, b, s: [d.x(b, 4, s, 8), *d.table(24, 4), d.ints(24, b, s, dtype=np.int64)], PLAIN,
         interleaved=interleaved, **STANDARD)
    case("RotaryEmbedding", "of ONNX, partial" + i, lambda d, b, s: [d.x(b, s, 40), *d.table(24, 3), d.ints(24, b, s, dtype=np.int64)], PLAIN,
         interleaved=interleaved, num_heads=4, rotary_embedding_dim=6, **STANDARD)
    case("RotaryEmbedding", "of ONNX, its own angles" + i, lambda d, b, s: [d.x(b, 4, s, 8), d.x(b, s, 4), d.x(b, s, 4)], PLAIN,
         interleaved=interleaved, **STANDARD)
case("RMSNormalization", "of ONNX", lambda d, b, s: [d.x(b, s, 3, 4), d.x(3, 4)], PLAIN, axis=2, **STANDARD)

# --- what is refused: (case by its inputs, what the message says) ------------------------------------------------------

REFUSED = []


def refused(op, message, inputs, outputs=1, run=(2, 3, 4), const=(), behind=None, **attributes):
    """behind: what the message says when the import does not know the rank."""
    REFUSED.append((Case(op, f"{op} refused: {message}", attributes, inputs, [run], outputs, const), message, behind or message))


refused("Attention", "its attribute 'num_heads' is missing", lambda d, b, s, p: attention(d, b, s))
refused("Attention", "its attribute 'do_rotary' is set", lambda d, b, s, p: attention(d, b, s), num_heads=2, do_rotary=1)
refused("Attention", "its attribute 'past_present_share_buffer' is set", lambda d, b, s, p: attention(d, b, s), num_heads=2, past_present_share_buffer=1)
refused("Attention", "its attribute 'qkv_hidden_sizes' must be", lambda d, b, s, p: attention(d, b, s), num_heads=2, qkv_hidden_sizes=[16, 32])
refused("Attention", "cannot be cut into queries", lambda d, b, s, p: attention(d, b, s), const=(1,), num_heads=5)
refused("Attention", "its input 3 'x3' has 4 dimensions; dlc takes masks of one, two and three",
        lambda d, b, s, p: attention(d, b, s, mask=lambda d, b, s, total: d.bits(b, 1, 8, 8)), num_heads=2,
        behind="its mask has 4 dimensions; dlc takes masks of one, two and three")
refused("Attention", "its mask of one dimension has 8 elements",
        lambda d, b, s, p: attention(d, b, s, mask=lambda d, b, s, total: d.ints(3, 3 * b + 2)), num_heads=2)
refused("Attention", "is int8; it can be int32, int64",
        lambda d, b, s, p: attention(d, b, s, mask=lambda d, b, s, total: d.bits(b, total).astype(np.int8)), num_heads=2)
refused("MultiHeadAttention", "it has only one of its inputs 'past_key' and 'past_value'", lambda d, b, s, p: multi_head(d, b, s, s, past=p)[:7],
        num_heads=2)
refused("MultiHeadAttention", "its output 3 'y3' is used", lambda d, b, s, p: multi_head(d, b, s, s), outputs=(0, 3), num_heads=2)
refused("MultiHeadAttention", "its attribute 'num_heads' is 0; it must be positive", lambda d, b, s, p: multi_head(d, b, s, s), num_heads=0)
refused("MultiHeadAttention", "its input 8 'x8' is not supported", lambda d, b, s, p: [*multi_head(d, b, s, s, past=p), np.array([1], np.int32)],
        num_heads=2)
refused("GroupQueryAttention", "no multiple of 'kv_num_heads'", grouped, num_heads=4, kv_num_heads=3)
refused("GroupQueryAttention", "its attribute 'sliding_window_cache' is set", grouped, sliding_window_cache=1, local_window_size=2, **HEADS)
refused("GroupQueryAttention", "its attribute 'qk_output' is set", grouped, qk_output=1, **HEADS)
refused("GroupQueryAttention", "its attribute 'k_quant_type' is 'PER_TENSOR'", grouped, k_quant_type="PER_TENSOR", **HEADS)
refused("GroupQueryAttention", "'cos_cache' or 'sin_cache' is missing", grouped, do_rotary=1, **HEADS)
refused("GroupQueryAttention", "its attribute 'unheard' is not supported", grouped, unheard=1, **HEADS)
refused("RotaryEmbedding", "its attribute 'is_packed_batching' is set",
        lambda d, b, s, p: rotary(d, d.x(b, s, 32), np.array([3]), 4), is_packed_batching=1)
refused("RotaryEmbedding", "its attribute 'scale' is not 1", lambda d, b, s, p: rotary(d, d.x(b, s, 32), np.array([3]), 4), scale=2.0)
refused("RotaryEmbedding", "its attribute 'num_heads' is missing", lambda d, b, s, p: rotary(d, d.x(b, s, 32), np.array([3]), 4), rotary_embedding_dim=4)
refused("SkipLayerNormalization", "is float16, but its input 0 'x0' is float",
        lambda d, b, s, p: [d.x(b, s, 4), d.x(b, s, 4).astype(np.float16), d.x(4)])
refused("Gelu", "is int32; it can be", lambda d, b, s, p: [d.ints(4, b, s)])
refused("EmbedLayerNormalization", "belong together", lambda d, b, s, p: [*embedding(d, b, s)[:4], None, *embedding(d, b, s)[5:7]])

# What only a run can see.
REFUSED_RUNS = []


def refused_run(op, message, inputs, outputs=1, run=(2, 3, 4), **attributes):
    REFUSED_RUNS.append((Case(op, f"{op} refused by a run: {message}", attributes, inputs, [run], outputs), message))


refused_run("GroupQueryAttention", "dlc supports only caches that grow", lambda d, b, s, p: with_lengths(grouped(d, b, s, p), [2, 2], 3), outputs=3, **HEADS)
refused_run("GroupQueryAttention", "dlc supports caches of different lengths only before the first token",
            lambda d, b, s, p: with_lengths(grouped(d, b, s, p), [6, 3], 7), outputs=3, **HEADS)

# --- models -----------------------------------------------------------------------------------------------------------


def number_of(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def outputs_of(case):
    """The numbers of the outputs that are asked for."""
    return tuple(range(case.outputs)) if isinstance(case.outputs, int) else case.outputs


def symbolic(case, all_arrays):
    """For each input its dims: a number where it is the same in all runs, else a name, which dims that are always equal share."""
    names, result = {}, []
    for i, first in enumerate(all_arrays[0]):
        sizes = [] if first is None else [tuple(run[i].shape[axis] for run in all_arrays) for axis in range(first.ndim)]
        result.append([s[0] if len(set(s)) == 1 else names.setdefault(s, f"d{len(names)}") for s in sizes])
    return result


def model(op, domain, attributes, arrays, wanted, types, opset=17, dims=None, const=(), behind=False):
    """A model of one node. behind: its inputs come from nodes, which leave them as they are."""
    nodes, inputs, weights, names = [], [], [], []
    for i, a in enumerate(arrays):
        if a is None:
            names.append("")
        elif i in const:
            weights.append(numpy_helper.from_array(a, f"w{i}"))
            names.append(f"w{i}")
        else:
            inputs.append(helper.make_tensor_value_info(f"x{i}", number_of(a.dtype), a.shape if dims is None else dims[i]))
            names.append(f"x{i}")
            if behind:
                turn = "Not" if a.dtype == np.bool_ else "Neg"
                nodes.append(helper.make_node(turn, [f"x{i}"], [f"n{i}"]))
                nodes.append(helper.make_node(turn, [f"n{i}"], [f"m{i}"]))
                names[-1] = f"m{i}"
    made = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    nodes.append(helper.make_node(op, names, made, domain=domain, **attributes))
    outputs = [helper.make_tensor_value_info(f"y{i}", number_of(t), None) for i, t in zip(wanted, types)]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(helper.make_graph(nodes, "contrib", inputs, outputs, weights), opset_imports=imports, ir_version=10)


def types_of(case, dtype):
    kinds = case.output_types or (None,) * (max(outputs_of(case)) + 1)
    statistics = {1, 2} if case.op == "LayerNormalization" else set()
    return [np.dtype(np.float32) if i in statistics else kinds[i] or dtype for i in outputs_of(case)]


def onnxruntime_of(op, attributes, arrays, wanted, domain=MICROSOFT, types=None, opset=17):
    wanted = tuple(range(wanted)) if isinstance(wanted, int) else wanted
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    made = model(op, domain, attributes, arrays, wanted, types or [np.float32] * len(wanted), opset)
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {f"x{i}": a for i, a in enumerate(arrays) if a is not None})


def wanted_of(case, run, dtype):
    """What is right, in the case's element type: ONNX Runtime's, computed in float."""
    arrays = [a.astype(np.float32) if a is not None and a.dtype == dtype else a for a in case.arrays(run, dtype)]
    types = types_of(case, np.dtype(np.float32))
    if case.reference:
        domain, op, attributes, arrays = case.reference(*arrays)
        return onnxruntime_of(op, attributes, arrays, outputs_of(case), domain, types, case.opset)
    return onnxruntime_of(case.op, case.attributes, arrays, outputs_of(case), case.domain, types, case.opset)


FORMS = ("static", "symbolic", "behind nodes")


def form_of(case, form, all_arrays, dtype):
    dims = None if form == "static" else symbolic(case, all_arrays)
    return model(case.op, case.domain, case.attributes, all_arrays[0], outputs_of(case), types_of(case, dtype), case.opset, dims, case.const,
                 behind=form == "behind nodes")


def run_case(bench, case, dtype, forms):
    dlc, dlcrt, folder = bench
    all_arrays = [case.arrays(run, dtype) for run in range(len(case.runs))]
    for i in case.const:
        for arrays in all_arrays:
            arrays[i] = all_arrays[0][i]
    case = dataclasses.replace(case, inputs=lambda data, *run: all_arrays[case.runs.index(run)])
    tolerance = TOLERANCE[dtype.name]
    wants = [wanted_of(case, run, dtype) for run in range(len(case.runs))]
    for form in forms:
        source, module = folder / "model.onnx", folder / "model.dlcm"
        onnx.save(form_of(case, form, all_arrays, dtype), source)
        answer = dlc("compile", source, "-o", module, "--target", "cpu:host", "--jobs", 1, seconds=SECONDS)
        if answer.exit != 0:
            raise Failed(f"{form}: exit code {answer.exit}: {answer.err.strip()}")
        instance = dlcrt.Instance(dlcrt.Module(module))
        for run in range(1 if form == "static" else len(case.runs)):
            feeds = {f"x{i}": a for i, a in enumerate(all_arrays[run]) if a is not None and i not in case.const}
            try:
                got = instance.run(feeds)
            except dlcrt.DlcrtError as error:
                raise Failed(f"{form}, run {case.runs[run]}: {error}") from error
            for i, want in zip(outputs_of(case), wants[run], strict=True):
                exact = want.dtype.kind in "iu"
                value = got[f"y{i}"] if exact else got[f"y{i}"].astype(np.float32)
                if found := driver.difference(value, want, 0 if exact else tolerance, 0 if exact else tolerance):
                    raise Failed(f"{form}, run {case.runs[run]}: output {i} is {found}")


def run_refusal(bench, case, *messages):
    dlc, _, folder = bench
    for form, message in zip(("static", "behind nodes"), messages, strict=True):
        onnx.save(form_of(case, form, [case.arrays(0)], np.dtype(np.float32)), folder / "model.onnx")
        answer = dlc("compile", folder / "model.onnx", "-o", folder / "model.dlcm", "--target", "cpu:host", "--jobs", 1, seconds=SECONDS)
        if form == "behind nodes":
            message = message.replace("'x", "'m")
        if answer.exit != 1 or message not in answer.err or "node" not in answer.err:
            raise Failed(f"{form}: exit code {answer.exit}, not the message {message!r}: {answer.err.strip()}")


def run_refusal_of_run(bench, case, message):
    dlc, dlcrt, folder = bench
    arrays = case.arrays(0)
    onnx.save(form_of(case, "static", [arrays], np.dtype(np.float32)), folder / "model.onnx")
    answer = dlc("compile", folder / "model.onnx", "-o", folder / "model.dlcm", "--target", "cpu:host", "--jobs", 1, seconds=SECONDS)
    if answer.exit != 0:
        raise Failed(f"exit code {answer.exit}: {answer.err.strip()}")
    try:
        dlcrt.Instance(dlcrt.Module(folder / "model.dlcm")).run({f"x{i}": a for i, a in enumerate(arrays) if a is not None})
    except dlcrt.DlcrtError as error:
        if message not in str(error):
            raise Failed(f"not the message {message!r}: {error}") from error
        return
    raise Failed("the run succeeded")


def run_table(_):
    """docs/operators.md has the operators, and has of each the types that are tested."""
    text = supported.FILE.read_text()
    for op in sorted({case.op for case in CASES if case.domain}):
        if f"| {op} | {supported.list_types(FLOATS)} |\n" not in text:
            raise Failed(f"{supported.FILE.name} does not say so of {op}, which is taken (see test/ops/table.py)")


def tests(everything):
    """{name: function of the bench}"""
    found = {"docs/operators.md": run_table}
    firsts = {case.op: case for case in reversed(CASES)}
    for case in CASES:
        forms = FORMS if everything or case is firsts[case.op] else FORMS[2:]
        found[case.name] = lambda bench, c=case, f=forms: run_case(bench, c, FLOATS["f32"], f)
    # The other types, with the first case of each operator.
    for case in firsts.values():
        for short, dtype in FLOATS.items():
            if short != "f32":
                found[f"{case.name} {short}"] = lambda bench, c=case, t=dtype: run_case(bench, c, t, FORMS if everything else FORMS[2:])
    for case, *messages in REFUSED:
        found[case.name] = lambda bench, c=case, m=messages: run_refusal(bench, c, *m)
    for case, message in REFUSED_RUNS:
        found[case.name] = lambda bench, c=case, m=message: run_refusal_of_run(bench, c, m)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if driver.cannot_load(options):
        return 0
    start, all_tests = time.monotonic(), tests(options.all)
    names = [name for name in all_tests if driver.matches(options.filter, name)]

    @contextlib.contextmanager
    def setup(folder):
        with driver.Dlc(options.build) as dlc:
            bench = dlc, driver.runtime(options.build), folder

            def run(name):
                try:
                    all_tests[name](bench)
                except Failed as failed:
                    return str(failed)
                return ""

            yield run

    failures = []
    for number, result, _ in driver.run_all(names, setup, options.jobs, SECONDS):
        text = f"{type(result).__name__}: {result}" if isinstance(result, Exception) else result
        if text:
            failures.append(f"{names[number]}: {text}")
            print(f"FAILED {failures[-1]}\n", flush=True)
    print(f"contrib: {len(names) - len(failures)} passed, {len(failures)} failed in {time.monotonic() - start:.0f} s")
    driver.write_results(options.json, len(names) - len(failures), failures)
    return 0 if not failures else 1


if __name__ == "__main__":
    sys.exit(main())
