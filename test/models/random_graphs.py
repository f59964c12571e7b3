#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small graphs of the operators that dlc has, each with static and with symbolic dims, and inputs for them.

    test/models/random_graphs.py SEED FOLDER     writes FOLDER/static.onnx, symbolic.onnx and test_data_set_0 for a look
    test/models/random_graphs.py --count N       how often each operator occurs in the first N graphs

A graph is valid by construction: it knows the size of every dim, and which dims are equal by name. It avoids what has no one
right answer: integers divided by 0, floats that do not fit the integer type they are cast to, steps (Floor, casts, comparisons)
over values that carry a rounding error.
"""

import collections
import copy
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOATS = ("float32", "float64", "float16")
INTS = ("int64", "int32", "int8", "uint8")
TYPES = {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16, "int64": TensorProto.INT64,
    "int32": TensorProto.INT32, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL,
}
# Largest value that stays finite, and whole, through one more operation.
LIMIT = {"float16": 60, "int8": 10, "uint8": 10}
MOST_ELEMENTS = 4000


class Dim:
    """A size; `name`: the symbol that it is in the symbolic form. Dims are the same if they are the same object."""

    def __init__(self, size, name=None):
        self.size, self.name = size, name


ONE = Dim(1)


class Value:
    def __init__(self, name, dtype, dims, bound=2.0, exact=True, finite=True):
        self.name, self.dtype, self.dims = name, dtype, list(dims)
        self.bound = bound    # no element is larger
        self.exact = exact    # no rounding so far: every correct implementation has the same bits
        self.finite = finite  # no infinity, no NaN

    @property
    def shape(self):
        return [dim.size for dim in self.dims]

    @property
    def rank(self):
        return len(self.dims)

    @property
    def elements(self):
        return int(np.prod(self.shape, dtype=np.int64))


class RandomGraph:
    """`static` and `symbolic` are the two forms of one graph; `inputs` a dict of arrays."""

    def __init__(self, seed):
        self.seed = seed
        self.random = np.random.default_rng([seed, 20240])
        self.nodes, self.weights, self.arguments, self.values = [], [], [], []
        self.made = {}  # all values by name, also those that no step may use
        self.inputs = {}
        sizes = [1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33] + ([0, 0] if self.chance(0.25) else [])
        self.symbols = [Dim(self.pick(sizes), name) for name in ("n", "m", "k")]
        for _ in range(self.pick([1, 1, 2])):
            self.argument()
        wanted = self.pick([1, 2, 3, 4, 5, 6, 8])
        tries = 0
        while len(self.nodes) < wanted and tries < 200:
            tries += 1
            self.step()
        self._finish()

    # --- choosing ---

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def between(self, low, high):
        return int(self.random.integers(low, high + 1))

    # --- making ---

    def fresh(self, stem):
        return f"{stem}{len(self.nodes) + len(self.weights) + len(self.arguments)}"

    def data(self, dtype, shape):
        """Quarters between -2 and 2 and small integers: exact in all types, and through a few operations."""
        if dtype == "bool":
            return np.asarray(self.random.integers(0, 2, shape)).astype(bool)
        if dtype in FLOATS:
            return np.asarray(self.random.integers(-8, 9, shape) / 4).astype(dtype)
        return np.asarray(self.random.integers(0 if dtype == "uint8" else -2, 3, shape)).astype(dtype)

    def dim(self):
        return self.pick(self.symbols + self.symbols + [ONE, Dim(self.pick([2, 3, 5, 8]))])

    def argument(self, dtype=None, dims=None):
        dtype = dtype or self.pick(["float32"] * 6 + list(TYPES))
        if dims is None:
            dims = [self.dim() for _ in range(self.pick([0, 1, 2, 2, 2, 3, 3, 4]))]
            while np.prod([dim.size for dim in dims], dtype=np.int64) > MOST_ELEMENTS:
                dims.pop()
        value = Value(self.fresh("x"), dtype, dims)
        self.arguments.append(value)
        self.inputs[value.name] = self.data(dtype, value.shape)
        self.values.append(value)
        return value

    def weight(self, array, stem="w"):
        array = np.asarray(array)
        name = self.fresh(stem)
        self.weights.append(numpy_helper.from_array(array, name))
        return Value(name, str(array.dtype), [Dim(size) for size in array.shape], float(np.max(np.abs(array), initial=0)))

    def integers(self, numbers):
        return self.weight(np.array(numbers, np.int64), "c").name

    def other(self, dtype, dims):
        """A value of this type and dims: an input if the dims can be said in a signature, else a weight."""
        if all(dim.name or dim.size == 1 for dim in dims) and self.chance(0.5) and len(self.arguments) < 6:
            return self.argument(dtype, dims)
        return self.weight(self.data(dtype, [dim.size for dim in dims]))

    def add(self, op, inputs, like, dims=None, dtype=None, bound=None, exact=None, finite=None, **attributes):
        """A node with one output, described by what differs from `like`."""
        name = self.fresh("v")
        self.nodes.append(helper.make_node(op, [getattr(i, "name", i) for i in inputs], [name], name=f"{op.lower()}_{len(self.nodes)}",
                                           **attributes))
        value = Value(name, dtype or like.dtype, like.dims if dims is None else dims, like.bound if bound is None else bound,
                      like.exact if exact is None else exact, like.finite if finite is None else finite)
        self.values.append(value)
        self.made[name] = value
        return value

    def tame(self, x, limit=None):
        """x, or something smaller of its shape."""
        limit = limit or LIMIT.get(x.dtype, 1000)
        if x.bound <= limit:
            return x
        if x.dtype in FLOATS:
            return self.add("Tanh", [x], x, bound=1, exact=False)
        small = min(limit, 2)
        return self.add("Clip", [x, self.weight(np.array(0 if x.dtype == "uint8" else -small, x.dtype)),
                                 self.weight(np.array(small, x.dtype))], x, bound=small)

    def rounds(self, x, bound):
        """Whether a sum or product of this size still has the quarters it is made of."""
        return x.dtype in FLOATS and bound > {"float16": 100, "float32": 1e5, "float64": 1e12}[x.dtype]

    # --- operators ---

    def step(self):
        x = self.pick(self.values[-3:] + [self.pick(self.values)])
        kind = self.pick([self.unary, self.unary, self.unary, self.binary, self.binary, self.binary, self.compare, self.where, self.reduce, self.reduce, self.softmax,
                          self.matmul, self.matmul, self.transpose, self.concat, self.slice, self.slice, self.gather,
                          self.reshape, self.reshape, self.expand, self.axes, self.cast, self.split, self.shape, self.cumsum,
                          self.variadic, self.norm, self.rotary, self.gelu])
        kind(x)

    def unary(self, x):
        if x.dtype == "bool":
            return self.add("Not", [x], x)
        if x.dtype not in FLOATS:
            return self.add("Abs" if x.dtype == "uint8" or self.chance(0.5) else "Neg", [x], x)
        op = self.pick(["Abs", "Neg", "Relu", "Identity", "Ceil", "Floor", "Erf", "Exp", "Log", "Reciprocal", "Sigmoid", "Sqrt", "Tanh"])
        if op in ("Abs", "Neg", "Relu", "Identity"):
            return self.add(op, [x], x)
        if op in ("Ceil", "Floor"):
            return self.add(op, [x], x, bound=x.bound + 1) if x.exact and x.finite else None
        if op in ("Erf", "Sigmoid", "Tanh"):
            return self.add(op, [x], x, bound=1, exact=False)
        if op == "Exp":
            x = self.tame(x, 3)
            return self.add(op, [x], x, bound=21, exact=False)
        x = self.add("Abs", [x], x)
        if op == "Sqrt":
            return self.add(op, [x], x, bound=max(1, x.bound**0.5), exact=False) if x.exact else None
        x = self.add("Add", [x, self.weight(np.array(0.5, x.dtype))], x, bound=x.bound + 0.5)
        return self.add(op, [x], x, bound=max(2, x.bound), exact=False)

    def partner(self, x):
        """A value that broadcasts with x, and the dims of the result."""
        dims = list(x.dims)
        kind = self.pick(["same", "same", "ones", "lower", "scalar", "higher", "self", "reduced"])
        if kind == "self":
            return x, dims
        if kind == "scalar":
            return self.other(x.dtype, []), dims
        if kind == "reduced" and x.dtype in FLOATS and x.rank > 0:
            axis = self.between(0, x.rank - 1)
            if dims[axis].size > 0:
                reduced = self.add("ReduceMax", [x], x, dims=dims[:axis] + [ONE] + dims[axis + 1:], axes=[axis], keepdims=1)
                return reduced, dims
        if kind == "ones":
            dims = [ONE if self.chance(0.5) else dim for dim in dims]
        elif kind == "lower":
            dims = dims[self.between(0, x.rank):]
        elif kind == "higher" and x.rank < 5 and x.elements * 2 <= MOST_ELEMENTS:
            dims = [Dim(2)] + dims
            return self.other(x.dtype, dims), dims
        return self.other(x.dtype, dims), list(x.dims)

    def binary(self, x):
        if x.dtype == "bool":
            y, dims = self.partner(x)
            return self.add(self.pick(["And", "Or", "Xor"]), [x, y], x, dims=dims)
        x = self.tame(x)
        y, dims = self.partner(x)
        y = self.tame(y)
        inputs = [x, y] if self.chance(0.5) else [y, x]
        op = self.pick(["Add", "Sub", "Mul", "Max", "Min", "Div", "Pow"] + (["Mod"] if x.dtype in INTS else []))
        exact, finite = x.exact and y.exact, x.finite and y.finite
        if op in ("Max", "Min"):
            return self.add(op, inputs, x, dims=dims, bound=max(x.bound, y.bound), exact=exact, finite=finite)
        if op in ("Add", "Sub", "Mul"):
            bound = x.bound * y.bound if op == "Mul" else x.bound + y.bound
            if op == "Sub" and x.dtype == "uint8":
                return None
            # A product of quarters has sixteenths.
            exact = exact and not self.rounds(x, bound * (16 if op == "Mul" else 1)) and not (op == "Mul" and x.dtype == "float16")
            return self.add(op, inputs, x, dims=dims, bound=max(bound, 1e-3), exact=exact, finite=finite)
        if x.dtype in FLOATS:
            if op == "Pow":
                base = self.add("Abs", [x], x)
                exponent = self.pick([0.5, 1.0, 2.0, 3.0])
                base = self.tame(base, 4)
                return self.add("Pow", [base, self.weight(np.array(exponent, x.dtype))], base, bound=max(2, base.bound**3), exact=False)
            y = self.add("Add", [self.add("Abs", [y], y), self.weight(np.array(0.75, x.dtype))], y, bound=y.bound + 1)
            return self.add("Div", [x, y], x, dims=dims, bound=x.bound * 2, exact=False, finite=finite)
        if op == "Pow":
            return None
        divisor = self.pick([1, 2, 3] if x.dtype == "uint8" else [1, 2, 3, -1, -2, -3])
        return self.add(op, [x, self.weight(np.array(divisor, x.dtype))], x, bound=max(x.bound, 3))

    def compare(self, x):
        if x.dtype == "bool" or not x.exact or not x.finite:
            return None
        y, dims = self.partner(x)
        if not y.exact:
            return None
        op = self.pick(["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
        return self.add(op, [x, y], x, dims=dims, dtype="bool", bound=1)

    def where(self, x):
        y, dims = self.partner(x)
        condition = self.other("bool", [dim if self.chance(0.7) else ONE for dim in dims])
        return self.add("Where", [condition, x, y] if self.chance(0.5) else [condition, y, x], x, dims=dims, bound=max(x.bound, y.bound),
                        exact=x.exact and y.exact, finite=x.finite and y.finite)

    def variadic(self, x):
        if x.dtype not in ("float32", "float64") or x.bound > 1000:
            return None
        y, dims = self.partner(x)
        z = self.other(x.dtype, [])
        op = self.pick(["Sum", "Mean", "Max", "Min"])
        return self.add(op, [x, y, z], x, dims=dims, bound=x.bound + y.bound + z.bound, exact=False, finite=x.finite and y.finite)

    def reduce(self, x):
        if x.dtype == "bool" or x.dtype in ("int8", "uint8"):
            return None
        ops = ["ReduceSum", "ReduceMax", "ReduceMin"]
        if x.dtype in FLOATS:
            ops += ["ReduceSum", "ReduceMean", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd"]
        op = self.pick(ops)
        axes = sorted(self.random.permutation(x.rank)[: self.between(0, x.rank)].tolist())
        reduced = axes or list(range(x.rank))
        count = int(np.prod([x.dims[axis].size for axis in reduced], dtype=np.int64))
        if count == 0 and op not in ("ReduceSum", "ReduceProd"):
            return None
        if op == "ReduceProd":
            x = self.tame(x, 1)
        elif op in ("ReduceLogSumExp", "ReduceSumSquare", "ReduceL2") or x.bound * count > LIMIT.get(x.dtype, 1e5):
            x = self.tame(x, 4 if count * 4 < LIMIT.get(x.dtype, 1e6) else 1)
        keepdims = self.between(0, 1)
        dims = [ONE if axis in reduced else dim for axis, dim in enumerate(x.dims) if keepdims or axis not in reduced]
        exact = x.exact and (op in ("ReduceMax", "ReduceMin") or op == "ReduceSum" and not self.rounds(x, x.bound * count))
        bound = {"ReduceMax": x.bound, "ReduceMin": x.bound, "ReduceMean": x.bound, "ReduceProd": 1,
                 "ReduceLogSumExp": x.bound + 10}.get(op, max(x.bound, 1) ** 2 * max(count, 1))
        inputs, attributes = [x], {"keepdims": keepdims}
        given = [axis - x.rank if self.chance(0.3) else axis for axis in axes]
        if given and op == "ReduceSum":
            inputs.append(self.integers(given))
        elif given:
            attributes["axes"] = given
        return self.add(op, inputs, x, dims=dims, bound=bound, exact=exact, **attributes)

    def softmax(self, x):
        if x.dtype not in FLOATS or x.rank == 0 or not x.finite:
            return None
        axis = self.between(-x.rank, x.rank - 1)
        if x.dims[axis].size == 0:
            return None
        x = self.tame(x, 20)
        return self.add(self.pick(["Softmax", "Softmax", "LogSoftmax"]), [x], x, bound=50, exact=False, axis=axis)

    def norm(self, x):
        if x.dtype != "float32" or x.rank == 0 or x.dims[-1].size == 0 or x.dims[-1].name:
            return None
        width = x.dims[-1].size
        return self.add("LayerNormalization", [x, self.weight(self.data(x.dtype, [width])), self.weight(self.data(x.dtype, [width]))],
                        x, bound=2 + 2 * max(1, width**0.5), exact=False, axis=-1, epsilon=0.1)

    def cumsum(self, x):
        if x.dtype not in ("float32", "float64", "int32", "int64") or x.rank == 0:
            return None
        axis = self.between(-x.rank, x.rank - 1)
        bound = x.bound * max(1, x.dims[axis].size)
        return self.add("CumSum", [x, self.weight(np.array(axis, np.int64), "c")], x, bound=bound, exact=x.exact and not self.rounds(x, bound),
                        exclusive=self.between(0, 1), reverse=self.between(0, 1))

    def matmul(self, x):
        if x.dtype not in ("float32", "float32", "float64", "int32") or x.rank == 0:
            return None
        x = self.tame(x, 10)
        inner, columns = x.dims[-1], self.pick([Dim(self.pick([1, 2, 5, 8, 16])), self.symbols[0]])
        kind = self.pick(["weight", "weight", "vector", "batched", "left", "gemm"])
        bound = max(1, 2 * x.bound * max(1, inner.size))
        attributes = dict(bound=bound, exact=False if x.dtype in FLOATS else x.exact)
        if kind == "vector":
            return self.add("MatMul", [x, self.other(x.dtype, [inner])], x, dims=x.dims[:-1], **attributes)
        if kind == "gemm" and x.rank == 2 and x.dtype in FLOATS:
            transposed = self.between(0, 1)
            y = self.other(x.dtype, [columns, inner] if transposed else [inner, columns])
            bias = self.other(x.dtype, self.pick([[columns], [], [ONE, columns]]))
            return self.add("Gemm", [x, y, bias], x, dims=[x.dims[0], columns], transB=transposed, alpha=self.pick([1.0, 0.5]),
                            beta=self.pick([1.0, 2.0]), **attributes)
        if x.elements // max(1, inner.size) * columns.size > MOST_ELEMENTS:
            return None
        if kind == "left" and x.rank >= 2:  # x on the right
            rows = Dim(self.pick([1, 3, 6]))
            y = self.other(x.dtype, [rows, x.dims[-2]])
            attributes["bound"] = max(1, 2 * x.bound * max(1, x.dims[-2].size))
            return self.add("MatMul", [y, x], x, dims=x.dims[:-2] + [rows, x.dims[-1]], **attributes)
        # A batch dim that is a symbol here and a number there would be refused: it may or may not be one to repeat.
        batch = [dim if self.chance(0.6) and not dim.name else ONE for dim in x.dims[:-2]] if kind == "batched" and x.rank > 2 else []
        if kind == "batched" and len(x.dims) > 2 and all(dim.name or dim is ONE for dim in x.dims) and columns.name:
            y = self.argument(x.dtype, x.dims[:-2] + [inner, columns])
        else:
            y = self.other(x.dtype, batch + [inner, columns])
        return self.add("MatMul", [x, y], x, dims=x.dims[:-1] + [columns], **attributes)

    def rotary(self, x):
        """Rotated by angles: the second halves of rows, negated, before the first ones."""
        if x.dtype != "float32" or x.rank == 0 or x.dims[-1].name or x.dims[-1].size == 0 or x.dims[-1].size % 2:
            return None
        size = x.dims[-1].size
        half = Dim(size // 2)
        x = self.tame(x, 100)
        cosine, sine = (self.weight(self.data(x.dtype, [size])) for _ in range(2))

        def part(begin, end):
            return self.add("Slice", [x, self.integers([begin]), self.integers([end]), self.integers([-1])], x, dims=x.dims[:-1] + [half])

        turned = self.add("Neg", [part(half.size, size)], x, dims=x.dims[:-1] + [half])
        other = self.add("Concat", [turned, part(0, half.size)], x, axis=x.rank - 1)
        a = self.add("Mul", [x, cosine], x, bound=2 * x.bound, exact=False)
        b = self.add("Mul", [other, sine], x, bound=2 * x.bound, exact=False)
        return self.add("Add", [a, b], x, bound=4 * x.bound, exact=False)

    def gelu(self, x):
        """Spelled out, in one of the orders that there are."""
        if x.dtype != "float32":
            return None
        x = self.tame(x, 50)
        root, one, half = (self.weight(np.array(value, np.float32)) for value in (2**0.5, 1, 0.5))
        scaled = self.add("Div", [x, root], x, exact=False)
        plus = self.add("Add", [self.add("Erf", [scaled], x, bound=1, exact=False), one], x, bound=2, exact=False)
        if self.chance(0.5):
            return self.add("Mul", [self.add("Mul", [x, plus], x, bound=2 * x.bound, exact=False), half], x, exact=False)
        return self.add("Mul", [self.add("Mul", [x, half], x, exact=False), plus], x, exact=False)

    def transpose(self, x):
        perm = self.random.permutation(x.rank).tolist()
        attributes = {"perm": perm} if x.rank == 0 or self.chance(0.8) else {}
        order = perm if attributes else list(reversed(range(x.rank)))
        if not attributes.get("perm", True):
            attributes = {}
        return self.add("Transpose", [x], x, dims=[x.dims[axis] for axis in order], **attributes)

    def concat(self, x):
        if x.rank == 0:
            return None
        axis = self.between(0, x.rank - 1)
        parts = [x]
        for _ in range(self.between(1, 2)):
            parts.append(x if self.chance(0.3) else self.other(x.dtype, x.dims[:axis] + [self.dim()] + x.dims[axis + 1:]))
        self.random.shuffle(parts)
        size = sum(part.dims[axis].size for part in parts)
        dims = x.dims[:axis] + [Dim(size)] + x.dims[axis + 1:]
        return self.add("Concat", parts, x, dims=dims, bound=max(p.bound for p in parts), axis=axis if self.chance(0.7) else axis - x.rank,
                        exact=all(p.exact for p in parts), finite=all(p.finite for p in parts))

    def slice(self, x):
        if x.rank == 0:
            return None
        axes = sorted(self.random.permutation(x.rank)[: self.between(1, min(3, x.rank))].tolist())
        starts, ends, steps, dims = [], [], [], list(x.dims)
        for axis in axes:
            size = dims[axis].size
            step = self.pick([1, 1, 1, 2, 3, -1, -1, -2, -5, 100])
            start, end = (self.pick([0, 1, 2, -1, -2, size, size + 3, -size - 4, self.between(-size - 1, size + 1)]) for _ in "ab")
            if self.chance(0.4):  # the whole axis
                start, end = (0, 2**63 - 1) if step > 0 else (2**63 - 1, -(2**63))
            elif self.chance(0.5) and (end - start) * step < 0:
                start, end = end, start
            first, last = start, end
            if first < 0:
                first += size
            if last < 0:
                last += size
            if step > 0:
                first, last = min(max(first, 0), size), min(max(last, 0), size)
            else:
                first, last = min(max(first, 0), size - 1), min(max(last, -1), size - 1)
            dims[axis] = Dim(max(0, -((first - last) // step)))
            starts.append(start), ends.append(end), steps.append(step)
        named = [axis - x.rank if self.chance(0.3) else axis for axis in axes]
        return self.add("Slice", [x, self.integers(starts), self.integers(ends), self.integers(named), self.integers(steps)], x, dims=dims)

    def gather(self, x):
        candidates = [axis for axis in range(x.rank) if x.dims[axis].size > 0]
        if not candidates:
            return None
        axis = self.pick(candidates)
        size = x.dims[axis].size
        dims = self.pick([[], [Dim(3)], [self.symbols[1]], [Dim(2), self.symbols[2]]])
        count = int(np.prod([dim.size for dim in dims], dtype=np.int64))
        if x.elements // size * count > MOST_ELEMENTS:
            return None
        numbers = np.asarray(self.random.integers(-size, size, [dim.size for dim in dims])).astype(self.pick(["int64", "int64", "int32"]))
        if all(dim.name for dim in dims) and dims and len(self.arguments) < 4:
            indices = self.argument(str(numbers.dtype), dims)
            self.inputs[indices.name] = numbers
            self.values.remove(indices)  # its range is what the axis allows: not for others to count with
        else:
            indices = self.weight(numbers)
        return self.add("Gather", [x, indices], x, dims=x.dims[:axis] + dims + x.dims[axis + 1:], axis=axis)

    def reshape(self, x):
        kind = self.pick(["flat", "copy", "chain", "chain", "merge", "flatten", "split"])
        if kind == "flat":
            return self.add("Reshape", [x, self.integers([-1])], x, dims=[Dim(x.elements)])
        if kind == "flatten" and x.rank > 0:
            axis = self.between(0, x.rank)
            sizes = [int(np.prod(x.shape[:axis], dtype=np.int64)), int(np.prod(x.shape[axis:], dtype=np.int64))]
            return self.add("Flatten", [x], x, dims=[Dim(size) for size in sizes], axis=axis)
        if x.rank < 2 or x.elements == 0:
            return None
        if kind == "copy":  # the first dims as they are, the rest in one
            keep = self.between(1, x.rank - 1)
            return self.add("Reshape", [x, self.integers([0] * keep + [-1])], x, dims=x.dims[:keep] + [Dim(int(np.prod(x.shape[keep:])))])
        if kind == "merge":
            axis = self.between(0, x.rank - 2)
            shape = [0] * axis + [-1] + [dim.size for dim in x.dims[axis + 2:]]
            if any(dim.name for dim in x.dims[axis + 2:]):
                return None
            return self.add("Reshape", [x, self.integers(shape)], x, dims=x.dims[:axis] + [Dim(x.shape[axis] * x.shape[axis + 1])] + x.dims[axis + 2:])
        if kind == "split":
            even = [axis for axis in range(x.rank) if not x.dims[axis].name and x.shape[axis] % 2 == 0]
            if not even or x.rank > 4:
                return None
            axis = self.pick(even)
            if any(dim.name for dim in x.dims[axis + 1:]):
                return None
            shape = [0] * axis + [2, -1] + x.shape[axis + 1:]
            return self.add("Reshape", [x, self.integers(shape)], x, dims=x.dims[:axis] + [Dim(2), Dim(x.shape[axis] // 2)] + x.dims[axis + 1:])
        # chain: Shape -> Gather -> Unsqueeze -> Concat -> Reshape, the dims permuted
        order = self.random.permutation(x.rank).tolist()
        shape = self.add("Shape", [x], x, dims=[Dim(x.rank)], dtype="int64", bound=MOST_ELEMENTS, exact=True, finite=True)
        parts = []
        for axis in order:
            one = self.add("Gather", [shape, self.weight(np.array(axis, np.int64), "c")], shape, dims=[], axis=0)
            parts.append(self.add("Unsqueeze", [one, self.integers([0])], one, dims=[ONE]))
        wanted = self.add("Concat", parts, shape, axis=0)
        for part in parts:
            self.values.remove(part)
        return self.add("Reshape", [x, wanted], x, dims=[x.dims[axis] for axis in order])

    def expand(self, x):
        """Each dim of 1 may grow, new ones may come in front. The shape is a constant, or that of another value."""
        ones = [axis for axis in range(x.rank) if x.dims[axis] is ONE]
        front = self.between(0, 2 if x.rank < 3 else 0)
        if not ones and not front:
            return None
        if self.chance(0.5):
            dims = [self.dim() for _ in range(front)] + [self.dim() if axis in ones else dim for axis, dim in enumerate(x.dims)]
            if int(np.prod([dim.size for dim in dims], dtype=np.int64)) > MOST_ELEMENTS:
                return None
            like = self.other("float32", dims)
            shape = self.add("Shape", [like], like, dims=[Dim(len(dims))], dtype="int64", bound=MOST_ELEMENTS)
            return self.add("Expand", [x, shape], x, dims=dims)
        sizes = [self.pick([1, 2, 3]) for _ in range(front)] + [self.pick([1, 2, 3]) if axis in ones else 1 for axis in range(x.rank)]
        if x.elements * int(np.prod(sizes)) > MOST_ELEMENTS:
            return None
        dims = [Dim(size) for size in sizes[:front]] + [Dim(size) if axis in ones else dim
                                                        for axis, (size, dim) in enumerate(zip(sizes[front:], x.dims))]
        return self.add("Expand", [x, self.integers(sizes)], x, dims=dims)

    def axes(self, x):
        ones = [axis for axis in range(x.rank) if x.dims[axis] is ONE]
        if ones and self.chance(0.5):
            chosen = sorted(self.random.permutation(ones)[: self.between(1, len(ones))].tolist())
            given = [axis - x.rank if self.chance(0.3) else axis for axis in chosen]
            return self.add("Squeeze", [x, self.integers(given)], x, dims=[dim for axis, dim in enumerate(x.dims) if axis not in chosen])
        if x.rank > 4:
            return None
        axis = self.between(0, x.rank)
        return self.add("Unsqueeze", [x, self.integers([axis if self.chance(0.7) else axis - x.rank - 1])], x,
                        dims=x.dims[:axis] + [ONE] + x.dims[axis:])

    def cast(self, x):
        to = self.pick(list(TYPES))
        if to == x.dtype:
            return None
        if x.dtype in FLOATS and to not in FLOATS:
            # To bool everything but 0 is true; to integers the fraction goes, which a rounding error may turn into another number.
            if not x.exact or not x.finite or x.bound > 100 or (to == "uint8"):
                return None
            return self.add("Cast", [x], x, dtype=to, bound=1 if to == "bool" else x.bound, to=TYPES[to])
        if to == "float64" and x.dtype != to and not x.exact:  # would be asked to be as exact as its type
            return None
        if x.bound > {"int8": 100, "uint8": 100, "float16": 1000}.get(to, 1e9) or (to == "uint8" and x.dtype != "bool"):
            return None
        exact = x.exact and not (to in FLOATS and x.bound > (250 if to == "float16" else 1e5)) and not (x.dtype in FLOATS and to == "float16")
        return self.add("Cast", [x], x, dtype=to, exact=exact, bound=1 if "bool" in (x.dtype, to) else x.bound, to=TYPES[to])

    def split(self, x):
        fixed = [axis for axis in range(x.rank) if not x.dims[axis].name and x.dims[axis].size >= 2]
        if not fixed:
            return None
        axis = self.pick(fixed)
        size = x.dims[axis].size
        first = self.between(1, size - 1)
        names = [self.fresh("v") + letter for letter in "ab"]
        self.nodes.append(helper.make_node("Split", [x.name, self.integers([first, size - first])], names, name=f"split_{len(self.nodes)}",
                                           axis=axis))
        for name, part in zip(names, (first, size - first)):
            self.made[name] = Value(name, x.dtype, x.dims[:axis] + [Dim(part)] + x.dims[axis + 1:], x.bound, x.exact, x.finite)
            self.values.append(self.made[name])

    def shape(self, x):
        kind = self.pick(["shape", "size", "fill"])
        if kind == "size":
            return self.add("Size", [x], x, dims=[], dtype="int64", bound=MOST_ELEMENTS, exact=True, finite=True)
        if kind == "fill" and x.rank > 0:
            shape = self.add("Shape", [x], x, dims=[Dim(x.rank)], dtype="int64", bound=MOST_ELEMENTS, exact=True, finite=True)
            value = self.data(x.dtype, [1])
            return self.add("ConstantOfShape", [shape], x, exact=True, finite=True, bound=2, value=numpy_helper.from_array(value))
        start = self.between(0, x.rank)
        return self.add("Shape", [x], x, dims=[Dim(x.rank - start)], dtype="int64", bound=MOST_ELEMENTS, exact=True, finite=True, start=start)

    # --- the two models ---

    def _finish(self):
        read = {name for node in self.nodes for name in node.input}
        self.outputs = [value for value in self.made.values() if value.name not in read or value in self.values and self.chance(0.15)]
        self.static, self.symbolic = (self._model(symbolic) for symbolic in (False, True))

    def up_to(self, value):
        """The graph of what this one value needs; itself if that is all."""
        part = copy.copy(self)
        needed, nodes = {value.name}, []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                nodes.insert(0, node)
        part.nodes, part.outputs = nodes, [value]
        part.arguments = [v for v in self.arguments if v.name in needed]
        part.weights = [w for w in self.weights if w.name in needed]
        part.inputs = {v.name: self.inputs[v.name] for v in part.arguments}
        part.static, part.symbolic = (part._model(symbolic) for symbolic in (False, True))
        return part

    def _model(self, symbolic):
        def info(value, said):
            return helper.make_tensor_value_info(value.name, TYPES[value.dtype], said)

        inputs = [info(v, [dim.name if symbolic and dim.name else dim.size for dim in v.dims]) for v in self.arguments]
        # Declared dims of outputs are only hints: the symbolic form declares names of its own.
        outputs = [info(v, [f"{v.name}_{i}" if symbolic else dim.size for i, dim in enumerate(v.dims)]) for v in self.outputs]
        graph = helper.make_graph(self.nodes, f"random_{self.seed}", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="dlc tests")

    def save(self, folder):
        """static.onnx, symbolic.onnx, and the inputs as `dlc run --inputs` takes them."""
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        for i, value in enumerate(self.arguments):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(self.inputs[value.name], value.name).SerializeToString())
        onnx.save(self.static, folder / "static.onnx")
        onnx.save(self.symbolic, folder / "symbolic.onnx")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--count":
        counts = collections.Counter(node.op_type for seed in range(int(sys.argv[2])) for node in RandomGraph(seed).nodes)
        for op, count in counts.most_common():
            print(f"{count:6} {op}")
        return
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    graph = RandomGraph(int(sys.argv[1]))
    graph.save(pathlib.Path(sys.argv[2]))
    print(onnx.printer.to_text(graph.symbolic))


if __name__ == "__main__":
    main()
