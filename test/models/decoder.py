# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small decoder of the Llama family, as exporters write one: grouped queries, rotary positions, a cache that comes in and goes
out longer, and every shape computed from the shapes of inputs. Its weights are random."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, KV_HEADS, SIZE, HIDDEN, WORDS = 2, 6, 2, 8, 64, 100
WIDTH = HEADS * SIZE


class Builder:
    def __init__(self):
        self.nodes, self.weights = [], []
        self.random = np.random.default_rng(3)

    def op(self, kind, *operands, outputs=None, **attributes):
        outputs = outputs or [f"{kind.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, [self.value(v) for v in operands], outputs, **attributes))
        return outputs[0]

    def value(self, v):
        if isinstance(v, str):
            return v
        self.weights.append(numpy_helper.from_array(np.asarray(v), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def model(self, name, inputs, outputs):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def matrix(self, rows, columns):
        return (self.random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    def dim(self, x, axis):
        return self.op("Gather", self.op("Shape", x), np.int64(axis), axis=0)

    def shape(self, *sizes):
        """Sizes are numbers or scalars of the graph."""
        parts = [np.array([s]) if isinstance(s, int) else self.op("Unsqueeze", s, np.array([0])) for s in sizes]
        return self.op("Concat", *parts, axis=0)

    def norm(self, x):
        mean = self.op("ReduceMean", self.op("Pow", x, np.float32(2)), axes=[-1])
        scaled = self.op("Div", x, self.op("Sqrt", self.op("Add", mean, np.float32(1e-5))))
        return self.op("Mul", scaled, self.random.uniform(0.5, 1.5, WIDTH).astype(np.float32))

    def rotate(self, x, cosines, sines):
        half = self.op("Div", self.dim(x, 3), np.int64(2))
        first = self.op("Slice", x, np.array([0]), self.op("Unsqueeze", half, np.array([0])), np.array([3]))
        second = self.op("Slice", x, self.op("Unsqueeze", half, np.array([0])), np.array([2**63 - 1]), np.array([3]))
        turned = self.op("Concat", self.op("Neg", second), first, axis=-1)
        return self.op("Add", self.op("Mul", x, cosines), self.op("Mul", turned, sines))

    def repeat(self, x):
        """Each head of keys and values serves several of queries."""
        batch, length = self.dim(x, 0), self.dim(x, 2)
        wide = self.op("Expand", self.op("Unsqueeze", x, np.array([2])), self.shape(batch, KV_HEADS, HEADS // KV_HEADS, length, SIZE))
        return self.op("Reshape", wide, self.shape(batch, HEADS, length, SIZE))


def decoder():
    b = Builder()
    table = b.matrix(WORDS, WIDTH)
    x = b.op("Gather", table, "input_ids")
    batch, step, past = b.dim("input_ids", 0), b.dim("input_ids", 1), b.dim("past_k.0", 2)
    total = b.op("Add", past, step)
    # Rows see the columns up to their own position.
    columns = b.op("Unsqueeze", b.op("Range", np.int64(0), total, np.int64(1)), np.array([0, 1, 2]))
    rows = b.op("Unsqueeze", b.op("Unsqueeze", "position_ids", np.array([1])), np.array([3]))
    mask = b.op("Where", b.op("LessOrEqual", columns, rows), np.float32(0), np.float32(np.finfo(np.float32).min))
    positions = b.op("Unsqueeze", b.op("Cast", "position_ids", to=TensorProto.FLOAT), np.array([2]))
    frequencies = (10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)).astype(np.float32).reshape(1, 1, -1)
    angles = b.op("Mul", positions, frequencies)
    angles = b.op("Unsqueeze", b.op("Concat", angles, angles, axis=-1), np.array([1]))
    cosines, sines = b.op("Cos", angles), b.op("Sin", angles)
    for layer in range(LAYERS):
        h = b.norm(x)

        def heads(count):
            flat = b.op("MatMul", h, b.matrix(WIDTH, count * SIZE))
            return b.op("Transpose", b.op("Reshape", flat, b.shape(batch, step, count, SIZE)), perm=[0, 2, 1, 3])

        q, k, v = b.rotate(heads(HEADS), cosines, sines), b.rotate(heads(KV_HEADS), cosines, sines), heads(KV_HEADS)
        k = b.op("Concat", f"past_k.{layer}", k, outputs=[f"present_k.{layer}"], axis=2)
        v = b.op("Concat", f"past_v.{layer}", v, outputs=[f"present_v.{layer}"], axis=2)
        scores = b.op("MatMul", q, b.op("Transpose", b.repeat(k), perm=[0, 1, 3, 2]))
        scores = b.op("Add", b.op("Div", scores, np.float32(np.sqrt(SIZE))), mask)
        seen = b.op("MatMul", b.op("Softmax", scores, axis=-1), b.repeat(v))
        seen = b.op("Reshape", b.op("Transpose", seen, perm=[0, 2, 1, 3]), b.shape(batch, step, WIDTH))
        x = b.op("Add", x, b.op("MatMul", seen, b.matrix(WIDTH, WIDTH)))
        h = b.norm(x)
        gate = b.op("MatMul", h, b.matrix(WIDTH, HIDDEN))
        gate = b.op("Mul", b.op("Mul", gate, b.op("Sigmoid", gate)), b.op("MatMul", h, b.matrix(WIDTH, HIDDEN)))
        x = b.op("Add", x, b.op("MatMul", gate, b.matrix(HIDDEN, WIDTH)))
    b.op("MatMul", b.norm(x), np.ascontiguousarray(table.T), outputs=["logits"])

    def value(name, dtype, dims):
        return helper.make_tensor_value_info(name, dtype, dims)

    inputs = [value("input_ids", TensorProto.INT64, ["batch", "step"]), value("position_ids", TensorProto.INT64, ["batch", "step"])]
    outputs = [value("logits", TensorProto.FLOAT, ["batch", "step", WORDS])]
    for layer in range(LAYERS):
        for kind in "kv":
            inputs.append(value(f"past_{kind}.{layer}", TensorProto.FLOAT, ["batch", KV_HEADS, "past", SIZE]))
            outputs.append(value(f"present_{kind}.{layer}", TensorProto.FLOAT, ["batch", KV_HEADS, "total", SIZE]))
    return b.model("decoder", inputs, outputs)


def inputs(batch, step, past):
    random = np.random.default_rng(batch * 1000 + step * 100 + past)
    feed = {"input_ids": random.integers(0, WORDS, (batch, step)), "position_ids": np.tile(past + np.arange(step), (batch, 1))}
    for layer in range(LAYERS):
        for kind in "kv":
            feed[f"past_{kind}.{layer}"] = random.standard_normal((batch, KV_HEADS, past, SIZE)).astype(np.float32)
    return feed
