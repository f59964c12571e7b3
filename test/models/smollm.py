# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SmolLM2-135M, a decoder of the Llama family, as exporters write one: RMS norms, rotary positions and grouped queries spelled out. The
cache of keys and values comes in (`past`, of any length, 0 too) and goes out longer by `step` (`present`). Weights are made float32."""

import numpy as np
from decoder import Builder
from onnx import TensorProto, helper
from weights import Gguf

LAYERS, HEADS, KV_HEADS, SIZE, WORDS = 30, 9, 3, 64, 49152
WIDTH = HEADS * SIZE
POSITIONS = 2048  # the longest text
CACHES = [f"{kind}.{layer}" for layer in range(LAYERS) for kind in "kv"]


def rotary(base):
    """Cosines and sines of the angles of each position: [POSITIONS, SIZE], both halves alike."""
    angles = np.outer(np.arange(POSITIONS), base ** (-np.arange(0, SIZE, 2) / SIZE))
    angles = np.concatenate([angles, angles], axis=-1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def halves(matrix):
    """GGUF files have the two rows that are turned together side by side; here they are SIZE / 2 apart."""
    order = np.arange(SIZE).reshape(-1, 2).T.ravel()
    return matrix.reshape(-1, SIZE, WIDTH)[:, order].reshape(matrix.shape)


def build(path):
    """The model of the weights in `path`."""
    gguf = Gguf(path)
    known = {"block_count": LAYERS, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "embedding_length": WIDTH,
             "rope.dimension_count": SIZE}
    if found := {name: gguf.metadata[f"llama.{name}"] for name, value in known.items() if gguf.metadata[f"llama.{name}"] != value}:
        raise ValueError(f"{path} is not SmolLM2-135M: {found}")
    epsilon = np.float32(gguf.metadata["llama.attention.layer_norm_rms_epsilon"])
    b = Builder()

    def norm(x, name):
        mean = b.op("ReduceMean", b.op("Pow", x, np.float32(2)), axes=[-1], keepdims=1)
        scaled = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, epsilon)))
        return b.op("Mul", scaled, b.weight(name, gguf.tensor(f"{name}.weight")))

    def linear(x, name, arranged=lambda matrix: matrix):
        return b.op("MatMul", x, b.weight(name, arranged(gguf.tensor(f"{name}.weight")).T))

    def heads(x, count):
        return b.op("Transpose", b.op("Reshape", x, np.array([1, -1, count, SIZE])), perm=[0, 2, 1, 3])

    embedding = b.weight("token_embd", gguf.tensor("token_embd.weight"))
    x = b.op("Gather", embedding, "input_ids")
    cosines, sines = (b.op("Unsqueeze", b.op("Gather", b.weight(name, table), "position_ids"), np.array([1]))
                      for name, table in zip(("cosines", "sines"), rotary(gguf.metadata["llama.rope.freq_base"])))
    total = b.op("Add", b.dim("past_k.0", 2), b.dim("input_ids", 1))
    # Rows see the columns up to their own position.
    columns = b.op("Unsqueeze", b.op("Range", np.int64(0), total, np.int64(1)), np.array([0, 1, 2]))
    rows = b.op("Unsqueeze", "position_ids", np.array([1, 3]))
    mask = b.op("Where", b.op("LessOrEqual", columns, rows), np.float32(0), np.finfo(np.float32).min)

    def rotate(x):
        first = b.op("Slice", x, np.array([0]), np.array([SIZE // 2]), np.array([3]))
        second = b.op("Slice", x, np.array([SIZE // 2]), np.array([SIZE]), np.array([3]))
        turned = b.op("Concat", b.op("Neg", second), first, axis=3)
        return b.op("Add", b.op("Mul", x, cosines), b.op("Mul", turned, sines))

    def repeat(x):
        """Each head of keys and values serves several of queries."""
        wide = b.op("Expand", b.op("Unsqueeze", x, np.array([2])), b.shape(1, KV_HEADS, HEADS // KV_HEADS, total, SIZE))
        return b.op("Reshape", wide, np.array([1, HEADS, -1, SIZE]))

    for layer in range(LAYERS):
        prefix = f"blk.{layer}"
        h = norm(x, f"{prefix}.attn_norm")
        q = rotate(heads(linear(h, f"{prefix}.attn_q", halves), HEADS))
        k = rotate(heads(linear(h, f"{prefix}.attn_k", halves), KV_HEADS))
        v = heads(linear(h, f"{prefix}.attn_v"), KV_HEADS)
        k = b.op("Concat", f"past_k.{layer}", k, outputs=[f"present_k.{layer}"], axis=2)
        v = b.op("Concat", f"past_v.{layer}", v, outputs=[f"present_v.{layer}"], axis=2)
        scores = b.op("MatMul", q, b.op("Transpose", repeat(k), perm=[0, 1, 3, 2]))
        scores = b.op("Add", b.op("Mul", scores, np.float32(SIZE**-0.5)), mask)
        seen = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), repeat(v)), perm=[0, 2, 1, 3])
        x = b.op("Add", x, linear(b.op("Reshape", seen, np.array([1, -1, WIDTH])), f"{prefix}.attn_output"))
        h = norm(x, f"{prefix}.ffn_norm")
        gate = linear(h, f"{prefix}.ffn_gate")
        gate = b.op("Mul", b.op("Mul", gate, b.op("Sigmoid", gate)), linear(h, f"{prefix}.ffn_up"))
        x = b.op("Add", x, linear(gate, f"{prefix}.ffn_down"))
    # The words come out through the table by which they went in.
    flat = b.op("Reshape", norm(x, "output_norm"), np.array([-1, WIDTH]))
    b.op("Reshape", b.op("Gemm", flat, embedding, transB=1), np.array([1, -1, WORDS]), outputs=["logits"])

    value = helper.make_tensor_value_info
    inputs = [value(name, TensorProto.INT64, [1, "step"]) for name in ("input_ids", "position_ids")]
    outputs = [value("logits", TensorProto.FLOAT, [1, "step", WORDS])]
    for cache in CACHES:
        inputs.append(value(f"past_{cache}", TensorProto.FLOAT, [1, KV_HEADS, "past", SIZE]))
        outputs.append(value(f"present_{cache}", TensorProto.FLOAT, [1, KV_HEADS, "total", SIZE]))
    return b.model("smollm2", inputs, outputs)


def no_cache():
    return {f"past_{cache}": np.empty((1, KV_HEADS, 0, SIZE), np.float32) for cache in CACHES}


def a_run(step, past):
    """Inputs for measuring: words and a cache that nobody said."""
    numbers = np.random.default_rng([step, past])
    caches = {name: numbers.standard_normal((1, KV_HEADS, past, SIZE), dtype=np.float32) for name in no_cache()}
    return {**tokens(numbers.integers(100, WORDS, step), past), **caches}


def following(outputs):
    """The cache that the next run takes, of the outputs by name."""
    return {f"past_{cache}": outputs[f"present_{cache}"] for cache in CACHES}


def tokens(numbers, past=0):
    """Inputs beside the cache."""
    ids = np.array(numbers).reshape(1, -1)
    return {"input_ids": ids, "position_ids": past + np.arange(ids.size)[None]}
