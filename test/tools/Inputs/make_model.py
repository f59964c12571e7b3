# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a small model, with a data set beside it: make_model.py KIND FOLDER writes FOLDER/KIND.onnx, FOLDER/KIND/input_I.pb and
output_I.pb (as numpy computes them)."""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

kind, folder = sys.argv[1], Path(sys.argv[2])
rng = np.random.default_rng(7)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape):
    return numpy_helper.from_array(rng.standard_normal(shape, dtype=np.float32), name)


inputs, outputs = [], []
if kind == "mlp":  # two layers; the weights are large enough to live outside the text
    w1, b1, w2 = weight("w1", 16, 64), weight("b1", 64), weight("w2", 64, 4)
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], "fc1"),
        helper.make_node("Add", ["h", "b1"], ["h2"], "bias1"),
        helper.make_node("Relu", ["h2"], ["h3"], "relu1"),
        helper.make_node("MatMul", ["h3", "w2"], ["y"], "fc2"),
    ]
    graph = helper.make_graph(nodes, "mlp", [value("x", ["batch", 16])], [value("y", ["batch", 4])], [w1, b1, w2])
    x = rng.standard_normal((3, 16), dtype=np.float32)
    a1, c1, a2 = map(numpy_helper.to_array, (w1, b1, w2))
    inputs, outputs = [x], [np.maximum(x @ a1 + c1, 0) @ a2]
elif kind == "unnamed":  # three products that one kernel computes
    weights = [weight(f"w{i}", 16, 16) for i in range(3)]
    nodes = [helper.make_node("MatMul", [f"x{i}" if i else "x", f"w{i}"], [f"x{i + 1}"]) for i in range(3)]
    graph = helper.make_graph(nodes, "unnamed", [value("x", ["batch", 16])], [value("x3", ["batch", 16])], weights)
elif kind == "add":  # two inputs that share a dim
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"], "plus")]
    graph = helper.make_graph(nodes, "add", [value("a", ["seq"]), value("b", ["seq"])], [value("sum", ["seq"])])
    inputs = [np.arange(5, dtype=np.float32), np.ones(5, np.float32)]
    outputs = [inputs[0] + inputs[1]]
elif kind == "default":  # an input that need not be bound
    scale = numpy_helper.from_array(np.array([2, 3], np.float32), "scale")
    nodes = [helper.make_node("Mul", ["x", "scale"], ["y"], "times")]
    graph = helper.make_graph(nodes, "default", [value("x", [2]), value("scale", [2])], [value("y", [2])], [scale])
    inputs = [np.array([1, 1], np.float32)]
    outputs = [np.array([2, 3], np.float32)]
elif kind == "lookup":  # indices that random numbers are too large for
    table = weight("table", 2, 4)
    nodes = [helper.make_node("Gather", ["table", "rows"], ["y"], "lookup")]
    graph = helper.make_graph(nodes, "lookup", [value("rows", ["n"], TensorProto.INT64)], [value("y", ["n", 4])], [table])
    inputs = [np.array([1, 0, 1])]
    outputs = [numpy_helper.to_array(table)[inputs[0]]]
elif kind == "linear":  # weights that a run should not have to convert: 8 bits with a scale for each row, and transposed
    narrow = rng.integers(-127, 128, (48, 96)).astype(np.int8)
    scale, bias = rng.random((48, 1), dtype=np.float32), rng.standard_normal(48, dtype=np.float32)
    nodes = [
        helper.make_node("Cast", ["narrow"], ["wide"], "widen", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["w"], "scaled"),
        helper.make_node("Gemm", ["x", "w", "bias"], ["y"], "fc", transB=1),
    ]
    weights = [numpy_helper.from_array(array, name) for array, name in ((narrow, "narrow"), (scale, "scale"), (bias, "bias"))]
    graph = helper.make_graph(nodes, "linear", [value("x", ["batch", 96])], [value("y", ["batch", 48])], weights)
    inputs = [rng.standard_normal((5, 96), dtype=np.float32)]
    outputs = [inputs[0] @ (narrow.astype(np.float32) * scale).T + bias]
elif kind == "integers":  # outputs that are no floats
    nodes = [helper.make_node("Add", ["x", "x"], ["twice"], "plus"), helper.make_node("Greater", ["twice", "x"], ["more"], "greater")]
    graph = helper.make_graph(nodes, "integers", [value("x", [3], TensorProto.INT64)],
                              [value("twice", [3], TensorProto.INT64), value("more", [3], TensorProto.BOOL)])
    inputs = [np.array([-1, 0, 1 << 60])]
    outputs = [2 * inputs[0], 2 * inputs[0] > inputs[0]]
elif kind == "unsupported":  # two nodes that no version will ever have
    nodes = [
        helper.make_node("NoSuchOp", ["x"], ["h"], "first", domain="nowhere"),
        helper.make_node("NoOtherOp", ["h"], ["y"], "second", domain="nowhere"),
    ]
    graph = helper.make_graph(nodes, "unsupported", [value("x", [2])], [value("y", [2])])
elif kind == "mismatch":  # its shapes do not fit
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
    graph = helper.make_graph(nodes, "mismatch", [value("x", [2, 3])], [value("y", [2, 5])], [weight("w", 4, 5)])
elif kind in ("cache", "cache_one", "cache_fixed", "cache_rows", "cache_only"):
    # What came before and what is new, and its sum; one new entry; a cache of fixed size; of rows that no input names; without the sum.
    rows = "rows" if kind == "cache_rows" else "batch"
    step, past = 1 if kind == "cache_one" else "step", 3 if kind == "cache_fixed" else "past"
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["present"], "joined", axis=1),
        helper.make_node("ReduceSum", ["present", "axes"], ["sum"], "sum", keepdims=0),
    ]
    axes = numpy_helper.from_array(np.array([1]), "axes")
    graph = helper.make_graph(nodes, kind, [value("past", [rows, past, 4]), value("x", ["batch", step, 4])],
                              [value("sum", ["batch", 4]), value("present", ["batch", "total", 4])], [axes])
    if kind == "cache_only":
        del graph.node[1], graph.output[0], graph.initializer[0]
    inputs = [rng.standard_normal((2, 1, 4), dtype=np.float32)]  # of a state: x alone
    outputs = [inputs[0].sum(axis=1)]
else:
    sys.exit(f"no model {kind}")

opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid("nowhere", 1)] if kind == "unsupported" else [])
model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="test")
(folder / kind).mkdir(parents=True, exist_ok=True)
save(model, str(folder / f"{kind}.onnx"))
for stem, arrays in (("input", inputs), ("output", outputs)):
    for i, array in enumerate(arrays):
        (folder / kind / f"{stem}_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
