#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs of what fusion is about, fused and unfused, against ONNX Runtime without its optimizer.

    test/fusion/random_graphs.py --build build/dev [--count N] [--seed S] [--jobs 2] [--json FILE] [--all] [--filter REGEX] [--step NAME]

Products with constant and computed operands, element-wise chains with several users, softmax and norms as operators and spelled out, reductions that
feed element-wise operators, movement between all of these, attention in many forms (and some that only look like it), rotary positions; dims of
size 0 and 1; values in the middle that are outputs too. Three of four have named dims and are run with three sizes from one module; the dims of
the others are fixed. judge.py says what is right. What fails is cut down and written to <build>/test-logs/fusion, with the commands that show it.

Without --count 40 graphs from seed S on (0 by default); with --all 200.
"""

import argparse
import collections
import functools
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import judge
import spellings
from graph import ENDS, Graph, Impossible

GRAPHS, ALL_GRAPHS = 40, 200
SECONDS_A_GRAPH = 180
MOST_ELEMENTS = 30000
LOWEST = float(np.finfo(np.float32).min)


class RandomGraph(Graph):
    def __init__(self, seed, only=None):
        """only: the names of the steps that there may be."""
        self.choices = np.random.default_rng([seed, 977])
        self.only = only
        self.static = self.chance(0.25)
        dtype = np.float16 if self.chance(0.08) else np.float32
        super().__init__(self.sizes(), opset=self.pick([13, 17, 17, 17, 18, 20, 23]), seed=seed, dtype=dtype)
        self.values = []  # floats that steps may take
        self.steps = []
        self.source()
        wanted, tries = self.pick([1, 2, 3, 4, 6, 8]), 0
        while len(self.steps) < wanted and tries < 60:
            tries += 1
            before = len(self.nodes), len(self.values)
            with self.attempt():
                self.step()
            if len(self.nodes) == before[0]:
                del self.values[before[1]:]
        used = {v.name for node in self.nodes for v in node.inputs if v}
        made = [v for node in self.nodes for v in node.outputs]
        asked = {v.name for v in self.outputs}
        self.outputs = [v for v in made if v.name not in used or v.name in asked or self.chance(0.07)]

    def sizes(self):
        runs = 1 if self.static else 3
        result = {}
        for name, sizes in (("b", [1, 1, 2, 3]), ("s", [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33]), ("t", [1, 2, 5, 6, 9, 16, 20, 40])):
            while True:
                drawn = tuple(self.pick(sizes) for _ in range(runs))
                if runs == 1 or len(set(drawn)) > 1 and drawn not in result.values():
                    break
            result[name] = drawn
        if self.chance(0.15):
            name = self.pick(list(result))
            at = self.between(0, runs - 1)
            drawn = (*result[name][:at], 0, *result[name][at + 1:])
            if drawn not in result.values():
                result[name] = drawn
        return result

    # --- choosing ---

    def chance(self, probability):
        return self.choices.random() < probability

    def pick(self, choices):
        return choices[int(self.choices.integers(len(choices)))]

    def between(self, low, high):
        return int(self.choices.integers(low, high + 1))

    def any(self, least_rank=0, last_fixed=False):
        """A value that is finite and not too large, a late one most often."""
        fit = [v for v in self.values if v.rank >= least_rank and not (last_fixed and (len(set(v.dims[-1])) > 1 or v.dims[-1][0] == 0))]
        if not fit or self.chance(0.1):
            return self.source([*[self.dim_name() for _ in range(max(least_rank, 2) - 1)], self.pick([4, 8, 16, 6, 12])])
        return self.pick(fit[-3:] if self.chance(0.6) else fit)

    def dim_name(self):
        return self.pick(["b", "s", "s", "t", 1, 2, 3, 8])

    # --- making ---

    def source(self, dims=None):
        if dims is None:
            dims = self.pick([["b", "s", 16], ["b", "s", 8], ["s", 12], ["b", 2, "s", 8], ["b", "s", 1], ["b", "t", 16], ["b", 4, "s", "t"], ["b", 3, "s", 4],
                              ["s"], [1, "s", 16], ["b", 1, 16]])
        return self.keep(self.input(dims))

    def keep(self, value):
        """Lets later steps use it, if it is what they can use."""
        if value.isfloat and value.dtype == self.dtype and value.peak < np.inf:
            self.values.append(value)
        return value

    def op(self, kind, *operands, outputs=1, **attributes):
        results = super().op(kind, *operands, outputs=outputs, **attributes)
        for value in results if outputs > 1 else [results]:
            if value.elements > MOST_ELEMENTS:
                raise Impossible("too large")
        return results

    def number(self, number):
        return spellings.constant(self, number)

    def sizes_of(self, value):
        """Its dims as an input would declare them; Impossible if they have no names."""
        names = {sizes: name for name, sizes in self.symbols.items()} if not self.static else {}
        result = []
        for sizes in value.dims:
            if sizes not in names and len(set(sizes)) > 1:
                raise Impossible("a dim without a name")
            result.append(names.get(sizes, sizes[0]))
        return result

    def other(self, x):
        """Something that broadcasts to x."""
        kind = self.pick(["same", "ones", "lower", "scalar", "row", "existing", "reduced"])
        if kind == "scalar":
            return self.number(self.pick([0.5, -1.25, 2.0, 0.1, 1.0]))
        if kind == "existing":
            fit = [v for v in self.values if v.rank <= x.rank and all(d == e or set(d) == {1} for d, e in zip(v.dims[::-1], x.dims[::-1]))]
            if fit:
                return self.pick(fit)
        if kind == "reduced" and x.rank:
            return self.reduce(self.pick(["ReduceMean", "ReduceMax", "ReduceSum"]), x, [self.between(-x.rank, -1)])
        dims = self.sizes_of(x)
        if kind == "row" and dims and not isinstance(dims[-1], str):
            return self.const(self.normal(dims[-1:]))
        if kind == "lower":
            dims = dims[self.between(0, len(dims)):]
        elif kind == "ones":
            dims = [1 if self.chance(0.5) else d for d in dims]
        if all(not isinstance(d, str) for d in dims) and self.chance(0.5):
            return self.const(self.normal(dims))
        return self.keep(self.input(dims))

    def tame(self, x, limit=8.0):
        """x, or x made smaller."""
        if x.peak <= limit:
            return x
        if x.peak == np.inf:
            raise Impossible("not finite")
        return self.Mul(x, self.number(2.0 ** np.floor(np.log2(limit / x.peak)))) if self.chance(0.5) else self.Tanh(x)

    def swapped(self, kind, x, y):
        return self.op(kind, x, y) if self.chance(0.5) else self.op(kind, y, x)

    # --- steps ---

    def step(self):
        kinds = [self.chain, self.chain, self.residual, self.diamond, self.matmul, self.matmul, self.gemm, self.conv, self.softmax, self.norm, self.norm,
                 self.reduced, self.reduced, self.move, self.move, self.move, self.attention, self.attention, self.attention, self.rotary, self.activation,
                 self.whole_numbers, self.gated, self.pooled, self.fan_out]
        kind = self.pick([kind for kind in kinds if not self.only or kind.__name__ in self.only])
        result = kind()
        self.steps.append(kind.__name__)
        if result is not None:
            self.keep(result)

    def unary(self, x):
        kind = self.pick(["Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Erf", "Exp", "Sqrt", "Softplus", "LeakyRelu", "Elu", "Clip", "Log", "Sin", "Cos", "HardSigmoid",
                          "Reciprocal", "Identity", "spelled"])
        if kind == "spelled":
            return self.pick(list(spellings.ACTIVATIONS.values()))(self, self.tame(x))
        if kind in ("Exp", "Softplus", "Elu"):
            x = self.tame(x, 4)
        if kind in ("Sin", "Cos", "Erf"):
            x = self.tame(x, 20)
        if kind in ("Sqrt", "Log", "Reciprocal"):
            x = self.Add(self.Abs(x), self.number(0.5))
        if kind == "Clip":
            return self.Clip(x, self.number(-1.5), *[self.number(2)] * self.chance(0.7))
        return self.op(kind, x)

    def binary(self, x):
        kind = self.pick(["Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min", "Pow", "Where", "PRelu", "Mean"])
        if kind == "Pow":
            return self.Pow(self.tame(self.Abs(x), 4), self.number(self.pick([2, 3, 1, 0.5]))) if self.chance(0.5) else self.Pow(self.tame(x, 4), self.number(2))
        y = self.other(x)
        if kind == "Where":
            condition = self.Less(self.Cast(self.positions_like(x), to=TensorProto.INT64), np.int64(self.between(0, 6)))
            return self.Where(condition, x, y) if self.chance(0.5) else self.Where(condition, y, x)
        if kind == "Mul":
            x = self.tame(x, 50)
        if kind == "Div":
            return self.Div(x, self.Add(self.Abs(y), self.number(0.75)))
        if kind == "PRelu":
            return self.PRelu(x, y) if self.dtype != np.float16 else self.Add(x, y)
        return self.swapped(kind, x, y)

    def positions_like(self, x):
        """Whole numbers along the last axis."""
        if not x.rank:
            return self.const(np.int64(3))
        return self.Range(np.int64(0), self.dim(x, x.rank - 1), np.int64(1))

    def chain(self, x=None):
        x = x or self.any()
        for _ in range(self.between(1, 5)):
            x = self.unary(x) if self.chance(0.45) else self.binary(x)
            if x.peak > 1e4:
                x = self.tame(x)
            if self.chance(0.15):
                self.keep(x)
        return x

    def residual(self):
        x = self.any()
        return self.swapped("Add", x, self.chain(x))

    def diamond(self):
        x = self.any()
        a, b = self.chain(x), self.chain(x)
        return self.op(self.pick(["Add", "Mul", "Sub", "Max"]), self.tame(a, 30), self.tame(b, 30))

    def gated(self):
        x = self.any(2, last_fixed=True)
        size, width = x.dims[-1][0], self.pick([4, 8, 16])
        if self.chance(0.5):
            both = self.MatMul(x, self.matrix(size, 2 * width))
            gate, up = self.op("Split", both, [width, width], outputs=2, axis=-1)
        else:
            gate, up = (self.MatMul(x, self.matrix(size, width)) for _ in range(2))
        return self.Mul(self.pick([*spellings.ACTIVATIONS.values(), *spellings.GELUS.values()])(self, self.tame(gate)), up)

    def activation(self):
        return self.pick([*spellings.ACTIVATIONS.values(), *spellings.GELUS.values()])(self, self.tame(self.any()))

    def fan_out(self):
        """Several products and rows of one value, as queries, keys and values are."""
        x = self.any(2, last_fixed=True)
        size = x.dims[-1][0]
        for width in (self.pick([4, 8, 16]) for _ in range(self.between(2, 3))):
            y = self.Add(self.MatMul(x, self.matrix(size, width)), self.const(self.normal([width])))
            self.keep(self.unary(y) if self.chance(0.5) else y)

    def matmul(self):
        kind = self.pick(["weight", "weight", "transposed", "square", "batched weight", "vector", "broadcast", "outer"])
        if kind == "transposed":
            x = self.any(2)
            perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
            y = self.Transpose(x, perm=perm)
            result = self.MatMul(x, y) if self.chance(0.5) else self.MatMul(y, x)
            return self.tame(result, 100)
        if kind == "square":
            a = self.any(2)
            b = self.any(2)
            return self.tame(self.MatMul(a, b), 100)
        if kind == "outer":
            x = self.any(1)
            return self.MatMul(self.Unsqueeze(x, [x.rank]), self.Unsqueeze(x, [x.rank - 1]))
        x = self.any(2, last_fixed=True)
        size, width = x.dims[-1][0], self.pick([1, 2, 8, 16, 20, 33])
        if kind == "vector":
            return self.MatMul(x, self.matrix(size))
        if kind == "batched weight":
            y = self.matrix(self.pick([1, 2]), size, width)
            return self.MatMul(x, y) if x.rank < 3 else self.MatMul(self.Unsqueeze(x, [x.rank - 2]), y)
        if kind == "broadcast":
            y = self.input([*([] if self.chance(0.5) else ["b"] if x.rank > 2 and x.dims[-3] == self.symbols["b"] else [1]), size, self.pick(["s", "t", width])])
            y = self.chain_if(y)
        else:
            y = self.matrix(size, width)
            if self.chance(0.2):
                y = self.Transpose(self.matrix(width, size), perm=[1, 0])
        x = self.chain_if(x)
        result = self.MatMul(x, y)
        if kind == "weight" and self.chance(0.6):
            result = self.swapped("Add", result, self.const(self.normal([width])))
        return self.chain_if(result, 0.5)

    def chain_if(self, x, probability=0.3):
        return self.chain(x) if self.chance(probability) else x

    def gemm(self):
        x = self.any(2, last_fixed=True)
        if x.rank != 2:
            x = self.Reshape(x, [-1, x.dims[-1][0]])
        size, width = x.dims[-1][0], self.pick([1, 5, 8, 16])
        turned = self.chance(0.5)
        operands = [x, self.matrix(width, size) if turned else self.matrix(size, width)]
        attributes = {"transB": int(turned)}
        if self.chance(0.6):
            operands.append(self.const(self.normal(self.pick([[width], [1, width], [1], [1, 1]]))))
            attributes["beta"] = self.pick([1.0, 0.5])
        if self.chance(0.3):
            attributes["alpha"] = self.pick([0.5, -1.0])
        return self.chain_if(self.Gemm(*operands, **attributes), 0.5)

    def conv(self):
        channels, wide = self.pick([1, 2, 4]), self.pick([1, 3, 4])
        x = self.keep(self.input([self.pick(["b", 1]), channels, self.pick(["s", 6]), 5]))
        x = self.chain_if(x)
        y = self.Conv(x, self.matrix(wide, channels, self.pick([1, 3]), self.pick([1, 3])), *([self.const(self.normal([wide]))] if self.chance(0.5) else []),
                      auto_pad="SAME_UPPER")
        return self.chain_if(y, 0.6)

    def softmax(self):
        x = self.tame(self.chain_if(self.any(1)), 30)
        axis = self.pick([-1, -1, -1, 0, x.rank // 2, x.rank - 1])
        result = self.pick(list(spellings.SOFTMAXES.values()))(self, x, axis)
        return self.chain_if(result)

    def norm(self):
        x = self.chain_if(self.any(1, last_fixed=True), 0.4)
        width = x.dims[-1][0] if x.rank else 0
        if width == 0 or len(set(x.dims[-1])) > 1:
            raise Impossible("no fixed width")
        scale, bias = (self.const((self.normal([width], 0.3) + (i == 0)).astype(self.dtype)) for i in range(2))
        kind = self.pick(["layer", "layer", "rms", "operator"])
        if kind == "layer":
            result = self.pick(list(spellings.NORMS.values()))(self, x, scale, bias)
        elif kind == "rms":
            result = self.pick(list(spellings.RMS_NORMS.values()))(self, x, scale, epsilon=1e-3)
        elif self.opset >= 23 and self.chance(0.5):
            result = self.RMSNormalization(x, scale, epsilon=1e-3)
        elif self.opset >= 17:
            result = self.LayerNormalization(x, scale, bias, axis=-1)
        else:
            raise Impossible("no such operator")
        return self.chain_if(result)

    def reduced(self):
        """A reduction, something on what is left, and back to the whole."""
        x = self.chain_if(self.any(1))
        axes = sorted({self.between(-x.rank, -1) for _ in range(self.pick([1, 1, 2]))})
        kind = self.pick(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp"])
        if kind in ("ReduceLogSumExp", "ReduceSumSquare"):
            x = self.tame(x, 8)
        keep = self.chance(0.6)
        r = self.reduce(kind, x, axes, int(keep))
        r = self.tame(r, 1000)
        r = self.chain_if(r, 0.5)
        if not keep and self.chance(0.6):
            return self.keep(r) and None
        if not keep:
            r = self.Unsqueeze(r, [a + x.rank for a in axes])
        if self.chance(0.4):
            self.keep(r)
        return self.op(self.pick(["Sub", "Add", "Mul", "Max"]), self.tame(x, 100), self.tame(r, 100))

    def pooled(self):
        """The mean over what a mask leaves."""
        x = self.any(2)
        mask = self.input(self.sizes_of(x)[:-1], lambda shape: self.random.integers(0, 2, shape))
        mask = self.Unsqueeze(self.Cast(mask, to=TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT), [x.rank - 1])
        if self.chance(0.5):
            mask = self.Expand(mask, self.Shape(x))
        axis = self.between(-x.rank, -2)
        total = self.reduce("ReduceSum", self.Mul(x, mask), [axis], 0)
        count = self.Max(self.reduce("ReduceSum", mask, [axis], 0), self.number(1e-3 if self.dtype == np.float16 else 1e-9))
        return self.tame(self.Div(total, self.Max(count, self.number(0.5))))

    def whole_numbers(self):
        """A table looked up, positions, comparisons."""
        kind = self.pick(["table", "positions", "compare", "shapes", "one hot"])
        rows, width = self.pick([3, 10]), self.pick([4, 8, 16])
        ids = self.input(self.pick([["b", "s"], ["b", "t"], ["s"]]), lambda shape: self.random.integers(0, rows, shape))
        if kind == "table":
            found = self.Gather(self.matrix(rows, width), ids, axis=0)
            if self.chance(0.5):
                found = self.Add(found, self.Gather(self.matrix(50, width), self.Range(np.int64(0), self.dim(ids, ids.rank - 1), np.int64(1)), axis=0))
            return self.chain_if(found, 0.5)
        to = TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT
        if kind == "positions":
            positions = self.CumSum(self.Cast(self.Greater(ids, np.int64(1)), to=TensorProto.INT64), np.int64(ids.rank - 1))
            return self.Mul(self.Cast(self.Sub(positions, np.int64(1)), to=to), self.number(0.25))
        if kind == "compare":
            condition = self.op(self.pick(["Equal", "Less", "GreaterOrEqual"]), self.Unsqueeze(ids, [ids.rank]), self.Unsqueeze(ids, [ids.rank - 1]))
            return self.Where(condition, self.number(1), self.number(-0.5))
        if kind == "one hot":
            return self.Cast(self.Equal(self.Unsqueeze(ids, [ids.rank]), self.const(np.arange(rows))), to=to)
        length = self.Cast(self.dim(ids, ids.rank - 1), to=to)
        return self.Div(self.any(), self.Max(length, self.number(1)))

    # --- movement ---

    def move(self):
        x = self.any(1)
        for _ in range(self.between(1, 3)):
            x = self.moved(x)
        return self.chain_if(x, 0.5)

    def moved(self, x):
        kind = self.pick(["transpose", "transpose", "reshape", "reshape", "slice", "slice", "concat", "split", "expand", "pad", "gather", "where", "tile", "flip",
                          "unsqueeze", "squeeze"])
        axis = self.between(0, x.rank - 1) if x.rank else 0
        if x.rank == 0:
            return self.Unsqueeze(x, [0])
        if kind == "transpose":
            return self.Transpose(x, perm=self.choices.permutation(x.rank).tolist())
        if kind == "unsqueeze" and x.rank < 5:
            return self.Unsqueeze(x, [self.between(0, x.rank)])
        if kind == "squeeze":
            ones = [i for i, d in enumerate(x.dims) if set(d) == {1}]
            return self.Squeeze(x, [self.pick(ones)]) if ones else self.Neg(x)
        if kind == "reshape":
            return self.reshaped(x)
        if kind == "slice":
            start, end = self.pick([(0, 2), (1, ENDS), (0, -1), (-2, ENDS), (2, 5), (1, -1)])
            return self.slice(x, axis, start, end, self.pick([1, 1, 1, 2]))
        if kind == "flip":
            return self.slice(x, axis, -1, -ENDS, -1)
        if kind == "concat":
            y = self.pick([x, self.Neg(x), self.slice(x, axis, 0, 1), self.chain(x)])
            if y.rank != x.rank:
                raise Impossible("another rank")
            parts = [x, y] if self.chance(0.5) else [y, x, x]
            return self.Concat(*parts, axis=axis)
        if kind == "split":
            fixed = [i for i, d in enumerate(x.dims) if len(set(d)) == 1 and d[0] > 1]
            if not fixed:
                raise Impossible("nothing to split")
            axis = self.pick(fixed)
            size = x.dims[axis][0]
            first = size // 2 if self.chance(0.6) else self.between(1, size - 1)
            a, b = self.op("Split", x, [first, size - first], outputs=2, axis=axis)
            a, b = self.chain_if(a), self.chain_if(b)
            self.keep(a)
            if a.dims == b.dims and self.chance(0.5):
                return self.Mul(self.tame(a, 50), self.tame(b, 50))
            if self.chance(0.3) and a.rank == b.rank == x.rank:
                return self.Concat(b, a, axis=axis)
            return b
        if kind == "expand":
            wide = self.Unsqueeze(x, [axis])
            shape = self.shape(*[self.pick([2, 3]) if i == axis else self.dim(wide, i) for i in range(wide.rank)])
            wide = self.Expand(wide, shape)
            return wide if self.chance(0.5) or axis == x.rank else self.merged(wide, axis)
        if kind == "pad":
            pads = [self.between(0, 1) for _ in range(2 * x.rank)]
            return self.Pad(x, pads, self.number(self.pick([0, 0, 1]))) if self.chance(0.6) else self.Pad(x, pads, mode=self.pick(["edge", "reflect"]))
        if kind == "gather":
            if min(x.dims[axis]) < 1:
                raise Impossible("nothing to gather")
            size = min(x.dims[axis])
            numbers = self.random.integers(-size, size, self.pick([[], [1], [3], [2, 2]]))
            return self.Gather(x, self.const(np.asarray(numbers)), axis=axis)
        if kind == "where":
            mask = self.input([d if self.chance(0.7) else 1 for d in self.sizes_of(x)], lambda shape: self.random.random(shape) < 0.6)
            return self.Where(mask, x, self.number(self.pick([0, -1]))) if self.chance(0.5) else self.Where(mask, self.number(0), x)
        if kind == "tile":
            return self.Tile(x, [self.pick([1, 1, 2]) for _ in range(x.rank)])
        return self.Identity(x)

    def merged(self, x, axis):
        """Two axes become one."""
        sizes = [self.dim(x, i) for i in range(x.rank)]
        return self.Reshape(x, self.shape(*sizes[:axis], self.Mul(sizes[axis], sizes[axis + 1]), *sizes[axis + 2:]))

    def reshaped(self, x):
        if any(0 in d for d in x.dims):
            raise Impossible("0 means another thing here")
        fixed = [i for i, d in enumerate(x.dims) if len(set(d)) == 1 and d[0] % 2 == 0]
        kind = self.pick(["flat", "merge", "parted", "parted"])
        if kind == "flat":
            return self.Reshape(x, [-1])
        if kind == "merge" and x.rank > 1:
            return self.merged(x, self.between(0, x.rank - 2))
        if not fixed or x.rank > 4:
            raise Impossible("nothing to part")
        axis = self.pick(fixed)
        size = x.dims[axis][0]
        parts = [2, size // 2] if self.chance(0.5) else [size // 2, 2]
        if axis == x.rank - 1:
            y = self.Reshape(x, [*[0] * axis, *parts])
        else:
            y = self.Reshape(x, self.shape(*[self.dim(x, i) for i in range(axis)], *parts, *[self.dim(x, i) for i in range(axis + 1, x.rank)]))
        return self.Transpose(y, perm=self.choices.permutation(y.rank).tolist()) if self.chance(0.5) else y

    # --- attention ---

    def rotary(self):
        x = self.any(2, last_fixed=True)
        size = x.dims[-1][0]
        if size % 4:
            raise Impossible("no halves of halves")
        return self.rotated(x, size, self.pick(list(spellings.ROTARIES.values())))

    def rotated(self, x, size, how):
        """Angles of the positions along the axis before the last."""
        angles = self.Mul(self.Unsqueeze(self.Cast(self.Range(np.int64(0), self.dim(x, x.rank - 2), np.int64(1)), to=TensorProto.FLOAT), [1]),
                          self.const((100.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32)))
        angles = self.Concat(angles, angles, axis=-1)
        tables = [self.Cos(angles), self.Sin(angles)]
        if self.dtype == np.float16:
            tables = [self.Cast(t, to=TensorProto.FLOAT16) for t in tables]
        if x.rank == 4 and self.chance(0.5):
            tables = [self.Unsqueeze(t, [0, 1]) for t in tables]
        return how(self, x, *tables)

    def heads(self, count, size, length):
        """[b, count, length, size] in one of the ways that it comes about."""
        kind = self.pick(["input", "projected", "hidden"])
        if kind == "input":
            return self.input(["b", count, length, size])
        x = self.input(["b", length, count * size if kind == "hidden" else 8])
        if kind == "projected":
            x = self.MatMul(x, self.matrix(8, count * size))
            if self.chance(0.5):
                x = self.Add(x, self.const(self.normal([count * size])))
        shape = self.shape(self.dim(x, 0), self.dim(x, 1), count, size) if self.chance(0.5) else self.const(np.array([0, -1 if self.symbols[length].count(0) == 0 else 0, count, size]))
        return self.Transpose(self.Reshape(x, shape), perm=[0, 2, 1, 3])

    def qkv(self, count, size):
        """All of one product."""
        x = self.any(3, last_fixed=True)
        if x.rank != 3 or any(0 in d for d in x.dims):
            raise Impossible("not [b, s, width]")
        both = self.MatMul(x, self.matrix(x.dims[-1][0], 3 * count * size))
        if self.chance(0.3):
            parts = self.op("Split", both, [count * size] * 3, outputs=3, axis=-1)
            return [self.Transpose(self.Reshape(p, [0, 0, count, size]), perm=[0, 2, 1, 3]) for p in parts]
        five = self.Transpose(self.Reshape(both, [0, 0, 3, count, size]), perm=[2, 0, 3, 1, 4])
        if self.chance(0.5):
            return [self.Gather(five, np.int64(i), axis=0) for i in range(3)]
        return [self.Squeeze(self.slice(five, 0, i, i + 1), [0]) for i in range(3)]

    def repeated(self, x, group):
        """Each head of keys or values for several of queries."""
        if group == 1:
            return x
        kind = self.pick(["expand", "expand", "tile", "concat", "gather"])
        count = x.dims[1][0]
        if kind == "concat":
            return self.Concat(*[x] * group, axis=1)
        if kind == "gather":
            return self.Gather(x, self.const(np.repeat(np.arange(count), group)), axis=1)
        batch, length, size = (self.dim(x, i) for i in (0, 2, 3))
        one = self.Unsqueeze(x, [2])
        wide = self.Tile(one, [1, 1, group, 1, 1]) if kind == "tile" else self.Expand(one, self.shape(batch, count, group, length, size))
        return self.Reshape(wide, self.shape(batch, count * group, length, size))

    def masked(self, scores, heads, s, t):
        kind = self.pick(["none", "none", "additive", "keys", "where", "where", "trilu", "trilu", "range", "range", "computed", "rows", "wide", "alibi", "relative"])
        low = self.pick([-1e4, -1e4, LOWEST, -np.inf]) if self.dtype == np.float32 else -1e4
        queries, keys = self.dim(scores, scores.rank - 2), self.dim(scores, scores.rank - 1)
        leading = ["b", 1] if scores.rank == 4 and not self.static else []
        if kind == "none":
            return scores
        if kind in ("additive", "keys", "rows"):
            dims = {"additive": [*leading, s, t], "keys": [*leading, 1, t], "rows": [s, 1]}[kind]
            return self.swapped("Add", scores, self.input(dims, lambda shape: np.where(self.random.random(shape) < 0.7, 0, low).astype(self.dtype)))
        if kind == "relative":
            return self.Add(scores, self.input([1, heads, s, t]) if scores.rank == 4 else self.input([s, t]))
        if kind == "where":
            mask = self.input(self.pick([[*leading, s, t], [*leading, 1, t], [s, t]]), lambda shape: self.random.random(shape) < 0.6)
            if self.chance(0.5):
                return self.Where(self.Not(mask), self.number(low), scores) if self.chance(0.7) else self.Where(mask, self.number(low), scores)
            return self.Where(mask, scores, self.number(low))
        if kind == "computed":
            mask = self.input(["b", t], lambda shape: self.random.integers(0, 2, shape))
            mask = self.Unsqueeze(self.Unsqueeze(mask, [1]), [2])
            to = TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT
            if scores.rank != 4:
                raise Impossible("no batch")
            return self.Add(scores, self.Mul(self.Sub(self.number(1), self.Cast(mask, to=to)), self.number(max(low, LOWEST))))
        if kind == "trilu":
            full = self.ConstantOfShape(self.shape(queries, keys), value=onnx.numpy_helper.from_array(np.array([low], np.float32)))
            if self.dtype != np.float32 or self.opset < 14:
                raise Impossible("no Trilu")
            mask = self.Trilu(full, np.int64(self.pick([1, 1, 0, 2])), upper=1)
            if low == -np.inf:  # numpy multiplies
                raise Impossible("not with infinity")
            return self.Add(scores, mask)
        if kind == "range":
            rows = self.Unsqueeze(self.Range(np.int64(0), queries, np.int64(1)), [1])
            columns = self.Unsqueeze(self.Range(np.int64(0), keys, np.int64(1)), [0])
            if self.chance(0.5):
                rows = self.Add(rows, self.Sub(keys, queries))
            seen = self.LessOrEqual(columns, rows)
            if self.chance(0.3):
                seen = self.And(seen, self.Greater(self.Add(columns, np.int64(3)), rows))  # a window
            if self.chance(0.4):
                return self.Add(scores, self.Where(seen, self.number(0), self.number(low)))
            return self.Where(seen, scores, self.number(low))
        if kind == "alibi":
            if scores.rank != 4:
                raise Impossible("no heads")
            slopes = self.const((0.5 ** np.arange(heads)).astype(self.dtype).reshape(1, heads, 1, 1))
            to = TensorProto.FLOAT16 if self.dtype == np.float16 else TensorProto.FLOAT
            return self.Add(scores, self.Mul(slopes, self.Cast(self.Range(np.int64(0), keys, np.int64(1)), to=to)))
        # wide: the mask has more dims, or larger ones, than the scores
        return self.Add(scores, self.input([2, 1, *(["b"] if not self.static and scores.rank > 3 else [1]), 1, 1, t][-scores.rank - 1:]))

    def attention(self):
        heads, size = self.pick([1, 2, 4]), self.pick([1, 4, 8, 8, 16, 20])
        group = self.pick([1, 1, 1, 2]) if heads > 1 else 1
        columns = size if self.chance(0.8) else self.pick([1, 4, 8, 24])
        s, t = "s", self.pick(["s", "s", "t"])
        kv = heads // group
        if self.chance(0.25):
            q, k, v = self.qkv(heads, size)
            if q.dims[2] != self.symbols["s"] or q.dims[0] != self.symbols["b"]:
                raise Impossible("other sizes")
            kv, group, t = heads, 1, "s"
        else:
            q, k, v = self.heads(heads, size, s), self.heads(kv, size, t), self.heads(kv, columns, t)
        if self.chance(0.25) and size % 4 == 0:
            how = self.pick(list(spellings.ROTARIES.values()))
            q, k = self.rotated(q, size, how), self.rotated(k, size, how)
        if self.chance(0.15):
            past_k, past_v = self.input(["b", kv, 3, size]), self.input(["b", kv, 3, v.dims[-1][0]])
            k, v = self.Concat(past_k, k, axis=2), self.Concat(past_v, v, axis=2)
            self.output(k, v)
            t = None
        k, v = self.repeated(k, group), self.repeated(v, group)
        scale = self.pick(["scores", "scores", "division", "queries", "keys", "both", "none", "heads", "vector", "first"])
        factor = float(1 / np.sqrt(size))
        if scale == "queries":
            q = self.swapped("Mul", q, self.number(factor))
        elif scale == "vector":
            q = self.Mul(q, self.const(self.normal([size], 0.5)))
        elif scale == "both":
            q = self.Mul(q, self.number(np.sqrt(factor)))
        three = self.chance(0.15) and not any(0 in d for d in (*q.dims, *k.dims))
        k = self.Transpose(k, perm=[0, 1, 3, 2])
        if scale in ("keys", "both"):
            k = self.Mul(k, self.number(factor if scale == "keys" else np.sqrt(factor)))
        if three:
            q, k, v = (self.Reshape(x, self.shape(-1, self.dim(x, 2), self.dim(x, 3))) for x in (q, k, v))
        scores = self.MatMul(q, k)
        extra = self.pick(["scores", "weights"]) if self.chance(0.12) else None
        if extra == "scores":
            self.keep(scores)
            self.output(scores)
        if scale in ("scores", "first"):
            scores = self.Mul(self.number(factor), scores) if scale == "first" else self.Mul(scores, self.number(factor))
        elif scale == "division":
            scores = self.Div(scores, self.number(1 / factor))
        elif scale == "heads" and not three:
            scores = self.Mul(scores, self.const(np.abs(self.normal([1, heads, 1, 1]))))
        if self.chance(0.15):
            scores = spellings.ACTIVATIONS["softcap"](self, scores)
        if t:
            for _ in range(self.pick([1, 1, 2])):
                scores = self.masked(scores, heads, s, t)
        if self.chance(0.1):
            scores = self.unary(scores) if scores.peak < np.inf else self.Neg(scores)
        if self.chance(0.3):
            scores = self.Sub(scores, self.reduce("ReduceMax", scores, [-1])) if self.chance(0.3) else self.Max(scores, self.number(LOWEST if self.dtype == np.float32 else -6e4))
        axis = self.pick([-1] * 12 + [scores.rank - 1] * 4 + [-2])
        weights = self.pick([spellings.SOFTMAXES["operator"]] * 4 + list(spellings.SOFTMAXES.values()))(self, scores, axis)
        guard = self.pick(["none", "none", "none", "isnan", "equal", "mask", "scaled"])
        if guard == "isnan":
            weights = self.Where(self.IsNaN(weights), self.number(0), weights)
        elif guard == "equal":
            weights = self.Where(self.Equal(weights, weights), weights, self.number(0))
        elif guard == "scaled":
            weights = self.Mul(weights, self.number(1.25))
        elif guard == "mask" and t and not three:
            weights = self.Where(self.input([s, t], lambda shape: self.random.random(shape) < 0.8), weights, self.number(0))
        if extra == "weights":
            self.output(weights)
        context = self.MatMul(weights, v)
        if three:
            context = self.Reshape(context, self.shape(-1, heads, self.dim(context, 1), self.dim(context, 2)))
        end = self.pick(["heads", "joined", "joined", "joined", "projected", "projected"])
        if end == "heads" or context.rank != 4:
            return context
        width = context.dims[1][0] * context.dims[3][0]
        turned = self.Transpose(context, perm=[0, 2, 1, 3])
        joined = self.Reshape(turned, self.shape(self.dim(turned, 0), self.dim(turned, 1), width))
        if end == "joined":
            return joined
        result = self.Add(self.MatMul(joined, self.matrix(width, 16)), self.const(self.normal([16])))
        return self.Add(result, self.input(["b", s, 16])) if self.chance(0.5) else result


# --- the suite --------------------------------------------------------------------------------------------------------


def test(bench, seed):
    target = "cpu:x86-64-v2" if seed % 4 == 3 else "cpu:host"
    only = bench.options.step
    part = RandomGraph(seed, only).whole()
    try:
        remarks, _ = bench.check(part, target)
        return remarks
    except (judge.Failed, driver.Crash, driver.Hang) as failed:
        small = bench.smallest(part, target)
        folder = bench.options.build / "test-logs" / "fusion" / str(seed)
        small.save(folder)
        text = bench.fails(small, target)
        raise judge.Failed(f"{'' if isinstance(failed, judge.Failed) else type(failed).__name__.lower() + ': '}{failed}\n"
                           f"cut down ({len(small.nodes)} of {len(part.nodes)} nodes): {text or 'it no longer fails'}\n"
                           f"    dlc run {folder}/model.onnx --inputs {folder}/test_data_set_0 --outputs OUT --target {target}\n"
                           f"again: test/fusion/random_graphs.py --build {bench.options.build} --seed {seed} --count 1{''.join(f' --step {name}' for name in only or ())}\n"
                           f"{onnx.printer.to_text(small.model())[:6000]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--count", type=int, help="how many graphs")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--step", action="append", metavar="NAME", help="only steps of this kind, such as attention or move (repeatable)")
    parser.add_argument("--statistics", action="store_true", help="only say what the graphs are made of")
    options = parser.parse_args()
    options.build = options.build.resolve()
    count = options.count or (ALL_GRAPHS if options.all else GRAPHS)
    seeds = [seed for seed in range(options.seed, options.seed + count) if driver.matches(options.filter, f"random graph {seed}")]
    if options.statistics:
        graphs = [RandomGraph(seed, options.step) for seed in seeds]
        for what in (lambda g: [node.kind for node in g.nodes], lambda g: g.steps):
            print(", ".join(f"{k} {v}" for k, v in collections.Counter(kind for g in graphs for kind in what(g)).most_common()))
        print(f"nodes: {sorted(len(g.nodes) for g in graphs)}")
        return 0
    tests = {f"random graph {seed}": functools.partial(test, seed=seed) for seed in seeds}
    return judge.run_suite("fusion, random graphs", tests, options, SECONDS_A_GRAPH)


if __name__ == "__main__":
    sys.exit(main())
