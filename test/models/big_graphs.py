#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long large generated graphs take to compile, and how much memory.

    test/models/big_graphs.py --build build/release [--only chain|mixed|random]

chain: 10,000 element-wise nodes, each reading the one before it. mixed: 5,000 nodes of a network, element-wise, products, softmax,
means, transposes, slices and reshapes. random: 5,000 nodes of small graphs that have nothing in common (random_graphs.py).
Each is compiled for the two targets of `dlc compile`; chain and mixed are then run and compared with ONNX Runtime.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import random_graphs

WIDTH = 64
UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg"]
BINARY = ["Add", "Mul", "Sub", "Max", "Min"]


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.values = [], [], ["x"]
        self.random = random.Random(7)
        self.numbers = np.random.default_rng(7)

    def weight(self, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def op(self, kind, *operands, **attributes):
        self.nodes.append(helper.make_node(kind, operands, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def recent(self):
        return self.values[-self.random.randrange(1, min(len(self.values), 20) + 1)]

    def model(self):
        # A last Tanh keeps the numbers near 1.
        last = self.op("Tanh", self.values[-1])
        graph = helper.make_graph(self.nodes, "big", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
                                  [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", WIDTH])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def element_wise(g, x):
    draw = g.random.random()
    if draw < 0.5:
        return g.op(g.random.choice(UNARY), x)
    other = g.weight(np.float32(g.random.uniform(0.5, 1.2))) if draw < 0.8 else g.recent()
    return g.op("Tanh", g.op(g.random.choice(BINARY), x, other))


def chain(count):
    g = Graph()
    while len(g.nodes) < count - 1:
        g.values.append(element_wise(g, g.values[-1]))
    return g.model()


def mixed(count):
    g = Graph()
    while len(g.nodes) < count - 1:
        x, draw = g.values[-1], g.random.random()
        if draw < 0.5:
            x = element_wise(g, x)
        elif draw < 0.62:
            x = g.op("MatMul", x, g.weight((g.numbers.standard_normal((WIDTH, WIDTH)) / 8).astype(np.float32)))
        elif draw < 0.72:
            x = g.op("Softmax", x, axis=-1)
        elif draw < 0.8:
            x = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
        elif draw < 0.88:
            x = g.op("Transpose", g.op("Tanh", g.op("Transpose", x, perm=[1, 0])), perm=[1, 0])
        elif draw < 0.95:
            at, axis = g.random.randrange(1, WIDTH), g.weight(np.array([1]))
            first = g.op("Slice", x, g.weight(np.array([0])), g.weight(np.array([at])), axis)
            x = g.op("Concat", g.op("Slice", x, g.weight(np.array([at])), g.weight(np.array([WIDTH])), axis), first, axis=1)
        else:
            parts = g.random.choice([1, 2, 4, 8, 16, 32])
            x = g.op("Relu", g.op("Reshape", x, g.weight(np.array([0, parts, WIDTH // parts]))))
            x = g.op("Reshape", x, g.weight(np.array([0, WIDTH])))
        g.values.append(x)
    return g.model()


def unrelated(count):
    nodes, inputs, outputs, weights, seed = [], [], [], [], 1000
    while len(nodes) < count:
        part = random_graphs.RandomGraph(seed).static
        opsets = part.opset_import
        part = onnx.compose.add_prefix(part, f"g{seed}_")
        nodes += part.graph.node
        inputs += part.graph.input
        outputs += part.graph.output
        weights += part.graph.initializer
        seed += 1
    return helper.make_model(helper.make_graph(nodes, "big", inputs, outputs, weights), opset_imports=opsets, ir_version=9)


GRAPHS = {"chain": lambda: chain(10000), "mixed": lambda: mixed(5000), "random": lambda: unrelated(5000)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--only", choices=GRAPHS)
    options = parser.parse_args()
    build, failed = options.build.resolve(), 0
    dlcrt = driver.runtime(build)
    with tempfile.TemporaryDirectory() as folder:
        path, module = pathlib.Path(folder) / "big.onnx", pathlib.Path(folder) / "big.dlcm"
        for name, make in GRAPHS.items():
            if options.only not in (None, name):
                continue
            model = make()
            onnx.save(model, path)
            start = time.monotonic()
            command = ["/usr/bin/env", "python3", "-c", "import resource, subprocess, sys\nr = subprocess.run(sys.argv[1:]).returncode\n"
                       "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\nsys.exit(r)"]
            done = subprocess.run([*command, str(build / "bin" / "dlc"), "compile", str(path), "-o", str(module)], capture_output=True, text=True)
            seconds = time.monotonic() - start
            if done.returncode:
                print(f"{name}: {done.stderr.strip()}")
                failed += 1
                continue
            print(f"{name}: {len(model.graph.node)} nodes compiled in {seconds:.1f} s with {int(done.stdout.split()[-1]) / 1e6:.2f} GB", end="")
            if name != "random":
                x = np.random.default_rng(1).standard_normal((3, WIDTH)).astype(np.float32)
                (got,) = dlcrt.Instance(dlcrt.Module(module)).run({"x": x}).values()
                session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
                found = driver.difference(got, session.run(None, {"x": x})[0], 1e-3, 1e-3)
                print(f"; its result is {found or 'that of ONNX Runtime'}", end="")
                failed += bool(found)
            print(flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
