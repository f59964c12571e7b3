#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two small networks of the tests, made with onnx.helper from seeded weights.

    test/models/block.py FOLDER      writes FOLDER/mlp.onnx and FOLDER/block.onnx

mlp    rows of features through three layers; the number of rows is the symbol `batch`
block  an embedding, a mixing step over the sequence that needs no attention, a feed-forward part and two heads, spelled as
       exporters spell them (shapes computed in the graph, Gelu out of Erf); symbols `batch` and `seq`, shared by both inputs
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
VOCABULARY = 97
POSITIONS = 256  # the longest sequence
WIDTH = 48
HEADS = 4
CLASSES = 11
FEATURES = 24


class Graph:
    """Collects nodes and weights. Values are named after the node that makes them."""

    def __init__(self, name, seed):
        self.name = name
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def add(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name, *shape):
        """Scaled so that activations keep their size through a matrix product."""
        scale = 1 / np.sqrt(shape[-2] if len(shape) > 1 else 4)
        return self.constant(name, (self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, x, name, columns_in, columns_out):
        product = self.add("MatMul", [x, self.weight(name + ".weight", columns_in, columns_out)], name + ".product")
        return self.add("Add", [product, self.weight(name + ".bias", columns_out)], name)

    def norm(self, x, name, width):
        scale = self.constant(name + ".scale", self.random.uniform(0.5, 1.5, width).astype(np.float32))
        return self.add("LayerNormalization", [x, scale, self.weight(name + ".bias", width)], name, axis=-1, epsilon=1e-5)

    def model(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, self.name, [helper.make_tensor_value_info(*value) for value in inputs],
                                  [helper.make_tensor_value_info(*value) for value in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="dlc tests")
        onnx.checker.check_model(model, full_check=True)
        return model


def mlp(seed=1):
    g = Graph("mlp", seed)
    h = g.add("Gemm", ["x", g.weight("fc1.weight", FEATURES, 64), g.weight("fc1.bias", 64)], "fc1")
    h = g.linear(g.add("Relu", [h], "relu1"), "fc2", 64, 40)
    h = g.add("Tanh", [h], "tanh2")
    g.add("Gemm", [h, g.weight("fc3.weight", CLASSES, 40), g.weight("fc3.bias", CLASSES)], "logits", transB=1, alpha=0.5, beta=2.0)
    g.add("Softmax", ["logits"], "probabilities", axis=-1)
    return g.model([("x", TensorProto.FLOAT, ["batch", FEATURES])],
                   [("probabilities", TensorProto.FLOAT, ["batch", CLASSES]), ("logits", TensorProto.FLOAT, ["batch", CLASSES])])


def block(seed=2):
    g = Graph("block", seed)
    g.constant("zero", np.int64(0))
    g.constant("one", np.int64(1))
    g.constant("axis0", np.array([0], np.int64))
    g.constant("axis1", np.array([1], np.int64))
    g.constant("axis2", np.array([2], np.int64))
    g.constant("start", np.array([0], np.int64))
    g.constant("at_least", np.float32(1e-6))

    # The dims as the graph sees them.
    g.add("Shape", ["input_ids"], "ids.shape")
    g.add("Gather", ["ids.shape", "zero"], "ids.batch", axis=0)
    g.add("Gather", ["ids.shape", "one"], "ids.seq", axis=0)
    g.add("Unsqueeze", ["ids.batch", "axis0"], "batch1")
    g.add("Unsqueeze", ["ids.seq", "axis0"], "seq1")

    # Embedding and positions.
    g.add("Gather", [g.weight("words", VOCABULARY, WIDTH), "input_ids"], "embedded", axis=0)
    g.add("Slice", [g.weight("positions", POSITIONS, WIDTH), "start", "seq1", "axis0"], "position")
    g.add("Unsqueeze", ["position", "axis0"], "position1")
    x = g.norm(g.add("Add", ["embedded", "position1"], "summed"), "embed_norm", WIDTH)

    # The mask as a column of ones and zeros.
    g.add("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    g.add("Unsqueeze", ["mask", "axis2"], "mask1")

    # Mixing over the sequence. Each head turns its part of the channels by its own matrix ...
    normed = g.norm(x, "mix_norm", WIDTH)
    masked = g.add("Mul", [normed, "mask1"], "masked")
    g.constant("heads1", np.array([HEADS, WIDTH // HEADS], np.int64))
    g.constant("width1", np.array([WIDTH], np.int64))
    g.add("Concat", ["batch1", "seq1", "heads1"], "split.shape", axis=0)
    g.add("Reshape", [masked, "split.shape"], "split")
    g.add("Transpose", ["split"], "by_head", perm=[0, 2, 1, 3])
    g.add("MatMul", ["by_head", g.weight("turn.weight", HEADS, WIDTH // HEADS, WIDTH // HEADS)], "turned")
    g.add("Transpose", ["turned"], "by_token", perm=[0, 2, 1, 3])
    g.add("Concat", ["batch1", "seq1", "width1"], "join.shape", axis=0)
    g.add("Reshape", ["by_token", "join.shape"], "joined")
    # ... the mean of the tokens up to each one, and the mean of all of them.
    g.add("CumSum", [masked, "one"], "running")
    g.add("CumSum", ["mask1", "one"], "seen")
    g.add("Max", ["seen", g.constant("least_seen", np.float32(1))], "seen1")
    g.add("Div", ["running", "seen1"], "past")
    g.add("ReduceMean", [masked], "all", axes=[1], keepdims=1)
    g.add("Sub", ["past", "all"], "centred")
    g.add("Concat", ["joined", "centred"], "context", axis=2)
    gate = g.add("Sigmoid", [g.linear(normed, "gate", WIDTH, WIDTH)], "gated")
    mixed = g.add("Mul", [g.linear("context", "mix", 2 * WIDTH, WIDTH), gate], "mixed")
    x = g.add("Add", [x, g.add("Mul", [mixed, "mask1"], "mixed_masked")], "after_mix")

    # Feed forward, Gelu as exporters write it: x / 2 * (1 + erf(x / sqrt(2))).
    h = g.linear(g.norm(x, "ffn_norm", WIDTH), "up", WIDTH, 4 * WIDTH)
    g.add("Div", [h, g.constant("root2", np.float32(np.sqrt(2)))], "gelu.scaled")
    g.add("Erf", ["gelu.scaled"], "gelu.erf")
    g.add("Add", ["gelu.erf", g.constant("one_f", np.float32(1))], "gelu.plus")
    g.add("Mul", [h, "gelu.plus"], "gelu.times")
    h = g.add("Mul", ["gelu.times", g.constant("half", np.float32(0.5))], "gelu")
    x = g.add("Add", [x, g.linear(h, "down", 4 * WIDTH, WIDTH)], "after_ffn")
    hidden = g.norm(x, "hidden", WIDTH)

    # Two heads: one for each token, one for each sequence.
    g.add("Softmax", [g.linear(hidden, "logits", WIDTH, CLASSES)], "probabilities", axis=-1)
    g.add("Mul", [hidden, "mask1"], "hidden_masked")
    g.add("ReduceSum", ["hidden_masked", "axis1"], "pool.sum", keepdims=0)
    g.add("ReduceSum", ["mask1", "axis1"], "pool.count", keepdims=0)
    g.add("Add", ["pool.count", "at_least"], "pool.count1")
    g.add("Div", ["pool.sum", "pool.count1"], "pool.mean")
    g.add("Tanh", [g.linear("pool.mean", "pool", WIDTH, WIDTH)], "pooled")
    return g.model([("input_ids", TensorProto.INT64, ["batch", "seq"]), ("attention_mask", TensorProto.INT64, ["batch", "seq"])],
                   [("probabilities", TensorProto.FLOAT, ["batch", "seq", CLASSES]),
                    ("hidden", TensorProto.FLOAT, ["batch", "seq", WIDTH]), ("pooled", TensorProto.FLOAT, ["batch", WIDTH])])


def mlp_inputs(batch, seed=3):
    return {"x": np.random.default_rng(seed).standard_normal((batch, FEATURES)).astype(np.float32)}


def block_inputs(batch, seq, seed=4):
    """Sequences of different lengths, filled up with zeros as a tokenizer does; the first one is full."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, seq + 1, batch)
    lengths[0] = seq
    mask = (np.arange(seq) < lengths[:, None]).astype(np.int64)
    return {"input_ids": random.integers(0, VOCABULARY, (batch, seq)) * mask, "attention_mask": mask}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(mlp(), folder / "mlp.onnx")
    onnx.save(block(), folder / "block.onnx")
