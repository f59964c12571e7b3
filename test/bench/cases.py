# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured. A new case is a line in CASES."""

import functools
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import minilm
import smollm
import zoo

OPSET = 17


def seeded(*shape):
    return np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)


class MatMul:
    """Y[M, N] = X[M, K] W[K, N]: one node, W a constant of the model, all float32."""

    tolerance = 1e-5

    def __init__(self, m, k, n):
        self.shape = m, k, n
        self.name = f"matmul_{m}x{k}x{n}"
        self.flops = 2 * m * k * n

    @functools.cached_property
    def weights(self):
        _, k, n = self.shape
        return seeded(k, n, 1)[:, :, 0]

    def inputs(self):
        m, k, _ = self.shape
        return {"X": seeded(m, k)}

    def model(self, folder):
        m, k, n = self.shape
        value = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        weights = numpy_helper.from_array(np.ascontiguousarray(self.weights), "W")
        graph = helper.make_graph([helper.make_node("MatMul", ["X", "W"], ["Y"])], self.name, [value("X", m, k)], [value("Y", m, n)], [weights])
        path = folder / f"{self.name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9), path)
        return path

    def wanted(self, inputs):
        return [(inputs["X"].astype(np.float64) @ self.weights.astype(np.float64)).astype(np.float32)]


class Model:
    """A model of the zoo on fixed inputs, which `make` makes. What the results must be, the first peer says."""

    flops = None

    def __init__(self, name, zoo_name, make, *arguments, tolerance=1e-4):
        self.name, self.zoo_name, self.tolerance = name, zoo_name, tolerance
        self.make, self.arguments = make, arguments

    def inputs(self):
        return self.make(*self.arguments)

    def model(self, folder):
        return zoo.fetch(self.zoo_name)

    def wanted(self, inputs):
        return None


class Chain:
    """`count` convolutions one after the other, each of `channels` to as many, without a bias: one alone would be as much moving channels to
    their place as computing."""

    tolerance = 1e-4

    def __init__(self, name, channels, size, kernel, groups=1, count=8):
        self.name, self.channels, self.size, self.kernel, self.groups, self.count = name, channels, size, kernel, groups, count
        self.flops = 2 * count * size * size * channels * (channels // groups) * kernel * kernel

    def inputs(self):
        return {"X": seeded(1, self.channels, self.size, self.size)}

    def model(self, folder):
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, self.channels, self.size, self.size])
        nodes, weights = [], []
        for i in range(self.count):
            shape = self.channels, self.channels // self.groups, self.kernel, self.kernel
            w = np.random.default_rng([i, *shape]).standard_normal(shape, dtype=np.float32) / np.float32(np.prod(shape[1:])) ** np.float32(0.5)
            weights.append(numpy_helper.from_array(w, f"W{i}"))
            nodes.append(helper.make_node("Conv", ["X" if i == 0 else f"T{i}", f"W{i}"], ["Y" if i + 1 == self.count else f"T{i + 1}"],
                                          pads=[self.kernel // 2] * 4, group=self.groups))
        graph = helper.make_graph(nodes, self.name, [value("X")], [value("Y")], weights)
        path = folder / f"{self.name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9), path)
        return path

    def wanted(self, inputs):
        return None


MATMULS = [
    MatMul(1024, 1024, 1024),
    MatMul(128, 768, 3072),
    MatMul(3136, 576, 64),
    MatMul(1, 768, 3072),
    MatMul(7, 768, 3072),
    MatMul(129, 768, 3072),
    MatMul(1, 2048, 1000),
]

CHAINS = [
    Chain("conv_3x3_64_56", 64, 56, 3),
    Chain("depthwise_3x3_64_112", 64, 112, 3, groups=64),
]

MODELS = [
    Model("minilm_l6_b1_s1", "minilm_l6", minilm.sentences, 1, 1),
    Model("minilm_l6_b1_s128", "minilm_l6", minilm.sentences, 1, 128),
    Model("minilm_l6_b3_s7", "minilm_l6", minilm.sentences, 3, 7),
    Model("minilm_l6_b3_s128", "minilm_l6", minilm.sentences, 3, 128),
    Model("minilm_l6_w8_b1_s128", "minilm_l6_w8", minilm.sentences, 1, 128),
    Model("smollm2_decode_p128", "smollm2", smollm.a_run, 1, 128, tolerance=1e-3),
    Model("smollm2_prefill_s64", "smollm2", smollm.a_run, 64, 0, tolerance=1e-3),
    Model("ppocr4_rec_w320", "ppocr4_rec", lambda: {"x": seeded(1, 3, 48, 320)}),
    Model("ppocr4_det_640", "ppocr4_det", lambda: {"x": seeded(1, 3, 640, 640)}),
    Model("ppocr_cls_w192", "ppocr_cls", lambda: {"x": seeded(1, 3, 48, 192)}),
    Model("ddddocr_det", "ddddocr_det", lambda: {"images": 255 * np.random.default_rng(7).random((1, 3, 416, 416), dtype=np.float32)}),
    Model("basic_pitch", "basic_pitch", lambda: {"serving_default_input_2:0": np.float32(0.1) * seeded(1, 43844, 1)}),
    Model("resnet50", "resnet50", lambda: {"gpu_0/data_0": seeded(1, 3, 224, 224)}),
    Model("squeezenet", "squeezenet", lambda: {"data_0": seeded(1, 3, 224, 224)}),
    Model("densenet121", "densenet121", lambda: {"data_0": seeded(1, 3, 224, 224)}),
    Model("shufflenet", "shufflenet", lambda: {"gpu_0/data_0": seeded(1, 3, 224, 224)}),
    Model("vgg19", "vgg19", lambda: {"data_0": seeded(1, 3, 224, 224)}),
]

# What --self-test runs.
TINY = MatMul(3, 5, 7)

CASES = MATMULS + CHAINS + MODELS
