# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Image classifiers that the onnx package carries without weights: every weight is one number, repeated by a ConstantOfShape. Here they get
seeded ones of a size that keeps numbers about as large from layer to layer, so that nothing can be folded or guessed."""

import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SEED = 50


def draw(random, shape, users):
    """users: (operator, number of the input) that take the weight."""
    kinds = {kind if kind != "BatchNormalization" else f"{kind}{number}" for kind, number in users}
    if kinds & {"BatchNormalization1", "BatchNormalization4"}:  # scale, variance
        return random.uniform(0.5, 1.5, shape)
    if len(shape) > 1 and kinds & {"Conv", "Gemm", "MatMul"}:
        fan_in = int(np.prod(shape[1:]))
        return random.standard_normal(shape) * (2 / fan_in) ** 0.5
    return random.standard_normal(shape) * 0.05


def build(name):
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    graph, random = model.graph, np.random.default_rng(SEED)
    initializers = {i.name: i for i in graph.initializer}
    users = {}
    for node in graph.node:
        for number, value in enumerate(node.input):
            users.setdefault(value, []).append((node.op_type, number))
    fills = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    for node in fills:
        shape = numpy_helper.to_array(initializers[node.input[0]])
        graph.initializer.append(numpy_helper.from_array(draw(random, tuple(shape), users[node.output[0]]).astype(np.float32), node.output[0]))
        graph.node.remove(node)
    for initializer in list(graph.initializer):
        if initializer.data_type == onnx.TensorProto.FLOAT and initializer.name in users and initializer.name not in {n.output[0] for n in fills}:
            shape = tuple(initializer.dims)
            initializer.CopyFrom(numpy_helper.from_array(draw(random, shape, users[initializer.name]).astype(np.float32), initializer.name))
    used = {value for node in graph.node for value in node.input}
    for initializer in [i for i in graph.initializer if i.name not in used]:
        graph.initializer.remove(initializer)
    weights = {i.name for i in graph.initializer}
    for value in [v for v in graph.input if v.name in weights or v.name not in used]:
        graph.input.remove(value)
    return model
