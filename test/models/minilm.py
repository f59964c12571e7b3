# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""all-MiniLM-L6-v2, a BERT encoder, as exporters write one: attention and Gelu spelled out, any batch and any sequence up to 512."""

import numpy as np
from decoder import Builder
from onnx import TensorProto, helper
from weights import safetensors

LAYERS, HEADS, SIZE, POSITIONS, EPSILON = 6, 12, 32, 512, 1e-12
WIDTH = HEADS * SIZE


def build(path):
    """The model of the weights in `path`."""
    weights = safetensors(path)
    b = Builder()

    def linear(x, name):
        product = b.op("MatMul", x, b.weight(f"{name}.weight", weights[f"{name}.weight"].T))
        return b.op("Add", product, b.weight(f"{name}.bias", weights[f"{name}.bias"]))

    def norm(x, name):
        scale, bias = (b.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return b.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def embedded(kind, indices):
        name = f"embeddings.{kind}_embeddings.weight"
        return b.op("Gather", b.weight(name, weights[name]), indices)

    length = b.op("Slice", b.op("Shape", "input_ids"), np.array([1]), np.array([2]))
    positions = b.op("Slice", np.arange(POSITIONS)[None], np.array([0]), length, np.array([1]))
    x = b.op("Add", embedded("word", "input_ids"), embedded("token_type", "token_type_ids"))
    x = norm(b.op("Add", x, embedded("position", positions)), "embeddings.LayerNorm")
    # 0 where there is something to see, and else what no softmax lets through.
    mask = b.op("Cast", b.op("Unsqueeze", "attention_mask", np.array([1, 2])), to=TensorProto.FLOAT)
    mask = b.op("Mul", b.op("Sub", np.float32(1), mask), np.finfo(np.float32).min)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"

        def heads(name, order):
            apart = b.op("Reshape", linear(x, f"{prefix}.attention.self.{name}"), np.array([0, 0, HEADS, SIZE]))
            return b.op("Transpose", apart, perm=order)

        q, k, v = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
        scores = b.op("Add", b.op("Div", b.op("MatMul", q, k), np.float32(np.sqrt(SIZE))), mask)
        seen = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        seen = linear(b.op("Reshape", seen, np.array([0, 0, WIDTH])), f"{prefix}.attention.output.dense")
        x = norm(b.op("Add", seen, x), f"{prefix}.attention.output.LayerNorm")
        h = linear(x, f"{prefix}.intermediate.dense")
        bent = b.op("Add", b.op("Erf", b.op("Div", h, np.float32(np.sqrt(2)))), np.float32(1))
        h = linear(b.op("Mul", b.op("Mul", h, bent), np.float32(0.5)), f"{prefix}.output.dense")
        x = norm(b.op("Add", h, x), f"{prefix}.output.LayerNorm")
    b.op("Identity", x, outputs=["last_hidden_state"])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", WIDTH])]
    return b.model("minilm_l6", inputs, outputs)


def sentences(batch, length):
    """Inputs: numbers of the usual vocabulary beyond its special entries, no padding."""
    ids = np.random.default_rng([batch, length]).integers(1000, 30000, (batch, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def padded(inputs):
    """The same, each sentence but the first shorter than the one before it, where there is room."""
    mask = np.ones_like(inputs["attention_mask"])
    for row in range(1, len(mask)):
        mask[row, max(1, mask.shape[1] - 2 * row) :] = 0
    return {**inputs, "attention_mask": mask}
