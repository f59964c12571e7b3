# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are computed while they are built: each value knows what it is in some runs (named dims have another size in each), once as numpy
computes it in the types of the model and once in float64. So a graph is valid by construction, comes with its inputs and with what they
should give, and can be cut anywhere: what a part needs of the rest are inputs with known values."""

import contextlib
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops import load_op

ENDS = np.int64(2**63 - 1)  # of a slice: to the end


class Impossible(Exception):
    """The operands do not fit, or what comes out is not certain."""


class Value:
    """low, high: for each run the array in the model's type, and in float64 from the start if that is one of floats."""

    def __init__(self, name, low, high=None):
        self.name, self.low = name, low
        self.high = high or [a.astype(np.float64) if a.dtype.kind == "f" else a for a in low]
        if len({(a.dtype, a.ndim) for a in low}) != 1:
            raise Impossible(f"{name} has not one type and rank")
        self.dtype, self.rank = low[0].dtype, low[0].ndim

    @property
    def dims(self):
        """For each axis its sizes in the runs."""
        return list(zip(*(a.shape for a in self.low)))

    @property
    def isfloat(self):
        return self.dtype.kind == "f"

    @property
    def peak(self):
        """The largest magnitude; infinite if something is not finite."""
        peaks = [np.max(np.abs(a), initial=0) for a in self.low]
        return max(float(p) if np.isfinite(p) else np.inf for p in peaks)

    @property
    def elements(self):
        return max(a.size for a in self.low)


class Node:
    def __init__(self, kind, inputs, outputs, attributes):
        self.kind, self.inputs, self.outputs, self.attributes = kind, inputs, outputs, attributes


def softmax_of_nothing(x):
    return [x.copy()]


class Graph:
    """`g.MatMul(a, b)` adds a node. Operands may be numbers and lists: floats are of `dtype`, whole numbers int64."""

    def __init__(self, symbols, opset=17, seed=0, dtype=np.float32):
        """symbols: {name: sizes in the runs}"""
        self.symbols, self.opset, self.dtype = symbols, opset, np.dtype(dtype)
        self.runs = len(next(iter(symbols.values()))) if symbols else 1
        self.random = np.random.default_rng([seed, 41])
        self.nodes, self.inputs, self.weights, self.outputs = [], [], [], []
        self.count = 0

    # --- values ---

    def fresh(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def input(self, dims, values=None, name=None):
        """dims: numbers and names of symbols. values: takes a shape and gives an array; normal numbers by default."""
        values = values or self.normal
        shapes = [[self.symbols[d][run] if isinstance(d, str) else d for d in dims] for run in range(self.runs)]
        low = [np.asarray(values(shape)) for shape in shapes]
        value = Value(name or self.fresh("x"), [a.astype(self.dtype) if a.dtype == np.float64 else a for a in low])
        self.inputs.append(value)
        return value

    def const(self, array):
        array = np.asarray(array)
        if array.dtype.kind == "f" and array.dtype == np.float64:
            array = array.astype(self.dtype)
        value = Value(self.fresh("w"), [array] * self.runs)
        self.weights.append(value)
        return value

    def normal(self, shape, scale=1.0):
        return (self.random.standard_normal(shape) * scale).astype(self.dtype)

    def matrix(self, *shape):
        """Scaled so that a product has numbers as large as its operand's."""
        return self.const(self.normal(shape, max(1, shape[-2] if len(shape) > 1 else 1) ** -0.5))

    def output(self, *values):
        self.outputs += values

    # --- nodes ---

    def __getattr__(self, kind):
        if not kind[0].isupper():
            raise AttributeError(kind)
        return lambda *operands, **attributes: self.op(kind, *operands, **attributes)

    def op(self, kind, *operands, outputs=1, **attributes):
        inputs = [v if v is None or isinstance(v, Value) else self.const(v) for v in operands]
        names = [self.fresh(kind.lower() + "_") for _ in range(outputs)]
        node = helper.make_node(kind, [v.name if v else "" for v in inputs], names, **attributes)
        low, high = [], []
        for run in range(self.runs):
            lows, highs = ([None if v is None else side(v)[run] for v in inputs] for side in (lambda v: v.low, lambda v: v.high))
            low.append(self.computed(node, lows))
            high.append(low[-1] if all(a is b for a, b in zip(lows, highs)) else self.computed(node, highs))
        results = []
        for i, name in enumerate(names):
            own = [outputs[i] for outputs in low]
            wide = [outputs[i] for outputs in high]
            if own[0].dtype.kind == "f":
                results.append(Value(name, own, [a.astype(np.float64) for a in wide]))
            elif all(np.array_equal(a, b) for a, b in zip(own, wide)):
                results.append(Value(name, own))
            else:
                raise Impossible(f"{kind}: rounding decides")
        self.nodes.append(Node(kind, inputs, results, attributes))
        return results[0] if outputs == 1 else results

    def computed(self, node, arrays):
        wide = any(a is not None and a.dtype == np.float64 for a in arrays)
        if node.op_type == "Softmax" and arrays[0].size == 0:
            return softmax_of_nothing(arrays[0])
        if node.op_type == "Cast" and wide:
            to = helper.tensor_dtype_to_np_dtype(helper.get_node_attr_value(node, "to"))
            return [arrays[0] if to.kind == "f" else arrays[0].astype(to)]
        context = {"log": lambda *_: None, "opsets": {"": self.opset}, "verbose": 0, "new_ops": None}
        with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.suppress(StopIteration):
            warnings.simplefilter("ignore")
            try:
                try:
                    kernel = load_op("", node.op_type, self.opset)(node, context)
                    results = kernel.run(*arrays)
                except onnx.reference.op_run.RuntimeContextError:  # defined by other operators, for each type anew
                    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                              for n, a in zip(node.input, arrays) if n]
                    graph = helper.make_graph([node], "node", inputs, [helper.make_tensor_value_info(n, 0, None) for n in node.output])
                    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
                    results = ReferenceEvaluator(model).run(None, {n: a for n, a in zip(node.input, arrays) if n})
            except Exception as error:
                raise Impossible(f"{node.op_type}: {error}") from error
        results = [np.asarray(r) for r in results]
        if any(r.dtype == np.float64 and not wide and self.dtype != np.float64 for r in results):
            results = [r.astype(self.dtype) if r.dtype == np.float64 else r for r in results]
        return results

    def reduce(self, kind, x, axes, keepdims=1):
        """Axes became an input with opset 13 and 18."""
        if self.opset >= 18 or kind == "ReduceSum":
            return self.op(kind, x, list(axes), keepdims=keepdims)
        return self.op(kind, x, axes=list(axes), keepdims=keepdims)

    def dim(self, x, axis):
        """A number."""
        return self.Gather(self.Shape(x), np.int64(axis), axis=0)

    def shape(self, *sizes):
        """A list of sizes: numbers, or scalars of the graph."""
        parts = [[s] if isinstance(s, int) else self.Unsqueeze(s, [0]) for s in sizes]
        return self.Concat(*parts, axis=0)

    def slice(self, x, axis, start, end, step=1):
        return self.Slice(x, [start], [end], [axis], [step])

    # --- models ---

    def whole(self):
        return Part(self, self.outputs)

    @contextlib.contextmanager
    def attempt(self):
        """What is added inside goes again if it is impossible."""
        before = len(self.nodes), len(self.inputs), len(self.weights), len(self.outputs)
        try:
            yield
        except Impossible:
            for items, count in zip((self.nodes, self.inputs, self.weights, self.outputs), before):
                del items[count:]


class Part:
    """A model of some values of a graph. `cuts`: values that are inputs, though the graph computes them."""

    def __init__(self, graph, outputs, cuts=()):
        self.graph, self.outputs, self.cuts = graph, list(outputs), list(cuts)
        needed = {v.name for v in self.outputs}
        cut = {v.name for v in self.cuts}
        self.nodes = []
        for node in reversed(graph.nodes):
            if any(v.name in needed and v.name not in cut for v in node.outputs):
                self.nodes.insert(0, node)
                needed.update(v.name for v in node.inputs if v)
        self.inputs = [v for v in [*graph.inputs, *self.cuts] if v.name in needed]
        self.weights = [v for v in graph.weights if v.name in needed]

    def model(self):
        # Of a single run every dim is fixed: nothing says which are the same by chance.
        names = {sizes: name for name, sizes in self.graph.symbols.items()} if self.graph.runs > 1 else {}

        def declared(sizes):
            if sizes not in names and len(set(sizes)) > 1:
                names[sizes] = f"d{len(names)}"
            return names.get(sizes, sizes[0])

        def info(value, dims):
            return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.dtype), dims)

        nodes = [helper.make_node(node.kind, [v.name if v else "" for v in node.inputs], [v.name for v in node.outputs], name=node.outputs[0].name,
                                  **node.attributes) for node in self.nodes]
        graph = helper.make_graph(nodes, "fusion", [info(v, [declared(sizes) for sizes in v.dims]) for v in self.inputs],
                                  [info(v, None) for v in self.outputs], [numpy_helper.from_array(v.low[0], v.name) for v in self.weights])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.graph.opset)], ir_version=8 if self.graph.opset < 21 else 10,
                                 producer_name="dlc tests")

    def feeds(self, run):
        return {v.name: v.low[run] for v in self.inputs}

    def save(self, folder):
        """model.onnx, and the inputs of each run as `dlc run --inputs` takes them."""
        for run in range(self.graph.runs):
            data = folder / f"test_data_set_{run}"
            data.mkdir(parents=True, exist_ok=True)
            for stale in data.glob("*.pb"):
                stale.unlink()
            for i, value in enumerate(self.inputs):
                (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value.low[run], value.name).SerializeToString())
        onnx.save(self.model(), folder / "model.onnx")
