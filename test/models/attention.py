# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention spelled out, in random combinations of the forms that exporters write, and what it comes to in float64.

`Form(seed)` draws a form: the order of axes of queries, keys and values in memory, where the scale stands, masks, softcap, guards against
rows that are masked out, heads that share keys, batch dims joined for the products, and the sizes of some runs.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
MASKS = ("none", "keys", "additive", "boolean", "causal", "rows", "heads")


class Form:
    def __init__(self, seed):
        random = self.random = np.random.default_rng([seed, 77])
        pick = lambda choices: choices[int(random.integers(len(choices)))]
        chance = lambda probability: random.random() < probability
        self.depth, self.columns = int(pick([1, 4, 8, 15, 16, 32, 64, 20])), int(pick([1, 4, 8, 15, 16, 32, 64, 20]))
        self.group = int(pick([1, 1, 1, 2, 3]))
        self.heads = self.group * int(pick([1, 2, 4]))
        self.layout = pick(["heads first", "heads last", "joined"])  # [b, h, s, d], [b, s, h * d], and [b * h, s, d] in the products
        if self.group > 1 and self.layout == "joined":
            self.layout = "heads first"
        self.turned_keys = chance(0.25)  # the transposed keys come from memory
        self.scale = pick(["scores", "scores by division", "queries", "both sides", "none"])
        self.mask = pick(MASKS)
        self.softcap = chance(0.2)
        self.guard = pick(["none", "none", "isnan", "not a number"])
        self.back = chance(0.6)  # heads last behind it
        self.symbolic = chance(0.75)
        runs = [(int(random.integers(1, 4)), int(pick([1, 1, 2, 5, 13, 33, 140])), int(pick([1, 3, 8, 17, 64, 130, 300, 600]))) for _ in range(3)]
        self.runs = [(b, s, t if b * s * t * self.heads < 400000 else 40) for b, s, t in runs][: 3 if self.symbolic else 1]

    def __str__(self):
        return ", ".join(f"{k} {v}" for k, v in vars(self).items() if k != "random")

    # --- the graph ---

    def model(self):
        nodes, weights, self.names = [], [], {}
        batch, queries, keys = ("b", "s", "t") if self.symbolic else self.runs[0]
        h, kv = self.heads, self.heads // self.group

        def add(op, *inputs, **attributes):
            name = f"v{len(nodes)}"
            nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{len(nodes)}", **attributes))
            return name

        def constant(value, dtype=np.float32):
            weights.append(numpy_helper.from_array(np.array(value, dtype), f"c{len(weights)}"))
            return weights[-1].name

        def heads(name, length, count, size):
            """[b, h, s, d] as it comes."""
            if self.layout == "heads last":
                return add("Transpose", add("Reshape", name, constant([0, 0, count, size], np.int64)), perm=[0, 2, 1, 3])
            return name

        def repeated(x, size):
            if self.group == 1:
                return x
            one = add("Unsqueeze", x, constant([2], np.int64))
            shape = add("Shape", x)
            b, t = (add("Gather", shape, constant([i], np.int64), axis=0) for i in (0, 2))
            wide = add("Concat", b, constant([kv, self.group], np.int64), t, constant([size], np.int64), axis=0)
            return add("Reshape", add("Expand", one, wide), add("Concat", b, constant([h], np.int64), t, constant([size], np.int64), axis=0))

        def merged(x):
            """[b * h, ...] of [b, h, ...]."""
            rest = add("Slice", add("Shape", x), constant([2], np.int64), constant([4], np.int64))
            return add("Reshape", x, add("Concat", constant([-1], np.int64), rest, axis=0))

        def parted(x):
            rest = add("Slice", add("Shape", x), constant([1], np.int64), constant([3], np.int64))
            return add("Reshape", x, add("Concat", constant([-1, h], np.int64), rest, axis=0))

        q, k, v = heads("q", queries, h, self.depth), heads("k", keys, kv, self.depth), heads("v", keys, kv, self.columns)
        if self.turned_keys and self.layout == "heads first":
            k = add("Transpose", "k", perm=[0, 1, 3, 2])  # [b, h, d, t] in memory; for repeating, as the others
        q_shape = add("Shape", q)
        k, v = repeated(k, self.depth), repeated(v, self.columns)
        factor = 1 / np.sqrt(self.depth)
        if self.scale in ("queries", "both sides"):
            q = add("Mul", q, constant(factor if self.scale == "queries" else np.sqrt(factor)))
        k = add("Transpose", k, perm=[0, 1, 3, 2])
        if self.scale == "both sides":
            k = add("Mul", k, constant(np.sqrt(factor)))
        joined = self.layout == "joined"
        if joined:
            q, k, v = (merged(x) for x in (q, k, v))
        scores = add("MatMul", q, k)
        if self.scale == "scores":
            scores = add("Mul", scores, constant(factor))
        elif self.scale == "scores by division":
            scores = add("Div", scores, constant(1 / factor))
        if self.softcap:
            scores = add("Mul", add("Tanh", add("Div", scores, constant(2.0))), constant(2.0))
        if self.mask != "none" and joined:
            scores = parted(scores)
        if self.mask in ("keys", "additive", "rows", "heads"):
            scores = add("Add", scores, "mask")
        elif self.mask == "boolean":
            scores = add("Where", "mask", scores, constant(-np.inf))
        elif self.mask == "causal":
            s = add("Squeeze", add("Slice", q_shape, constant([2], np.int64), constant([3], np.int64)))
            t = add("Squeeze", add("Slice", add("Shape", scores), constant([-1], np.int64), constant([9], np.int64)))
            zero, one = constant(0, np.int64), constant(1, np.int64)
            rows = add("Unsqueeze", add("Range", zero, s, one), constant([1], np.int64))
            columns = add("Unsqueeze", add("Range", zero, t, one), constant([0], np.int64))
            scores = add("Where", add("LessOrEqual", columns, rows), scores, constant(-3.4028235e38))
        if self.mask != "none" and joined:
            scores = merged(scores)
        p = add("Softmax", scores, axis=-1)
        if self.guard == "isnan":
            p = add("Where", add("IsNaN", p), constant(0.0), p)
        elif self.guard == "not a number":
            p = add("Where", add("Equal", p, p), p, constant(0.0))
        out = add("MatMul", p, v)
        if joined:
            out = parted(out)
        if self.back:
            out = add("Reshape", add("Transpose", out, perm=[0, 2, 1, 3]), constant([0, 0, h * self.columns], np.int64))
        nodes[-1].output[0] = "out"
        f32 = TensorProto.FLOAT
        flat = self.layout == "heads last"
        inputs = [helper.make_tensor_value_info("q", f32, [batch, queries, h * self.depth] if flat else [batch, h, queries, self.depth]),
                  helper.make_tensor_value_info("k", f32, [batch, keys, kv * self.depth] if flat else [batch, kv, *self.order(keys, self.depth)]),
                  helper.make_tensor_value_info("v", f32, [batch, keys, kv * self.columns] if flat else [batch, kv, keys, self.columns])]
        dims = {"keys": [batch, 1, 1, keys], "additive": [1, 1, queries, keys], "boolean": [batch, 1, queries, keys], "rows": [queries, 1],
                "heads": [1, h, 1, keys]}.get(self.mask)
        if dims:
            inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL if self.mask == "boolean" else f32, dims))
        graph = helper.make_graph(nodes, "attention", inputs, [helper.make_tensor_value_info("out", f32, None)], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def order(self, keys, depth):
        return [depth, keys] if self.turned_keys and self.layout == "heads first" else [keys, depth]

    # --- runs ---

    def inputs(self, run):
        random = np.random.default_rng(run)
        b, s, t = self.runs[run]
        h, kv = self.heads, self.heads // self.group
        normal = lambda *shape: random.standard_normal(shape).astype(np.float32)
        feed = {"q": normal(b, h, s, self.depth), "k": normal(b, kv, t, self.depth), "v": normal(b, kv, t, self.columns)}
        if self.mask == "keys":
            feed["mask"] = np.where(random.random((b, 1, 1, t)) < 0.3, np.float32(-10000), np.float32(0))
        elif self.mask == "boolean":
            feed["mask"] = random.random((b, 1, s, t)) < 0.6
            feed["mask"][0, 0, 0] = False  # a row without any key
        elif self.mask in ("additive", "rows", "heads"):
            feed["mask"] = normal(*{"additive": (1, 1, s, t), "rows": (s, 1), "heads": (1, h, 1, t)}[self.mask])
        return feed

    def fed(self, feed):
        """The inputs as they lie in memory."""
        feed = dict(feed)
        for name in "qkv":
            x = feed[name]
            if self.layout == "heads last":
                feed[name] = np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1)
            elif name == "k" and self.turned_keys and self.layout == "heads first":
                feed[name] = np.ascontiguousarray(x.swapaxes(2, 3))
        return feed

    def result(self, feed):
        q, k, v = (feed[name].astype(np.float64) for name in "qkv")
        k, v = (np.repeat(x, self.group, 1) for x in (k, v))
        scores = q @ k.swapaxes(2, 3)
        if self.scale != "none":
            scores = scores / np.sqrt(self.depth)
        if self.softcap:
            scores = np.tanh(scores / 2) * 2
        if self.mask == "boolean":
            scores = np.where(feed["mask"], scores, -np.inf)
        elif self.mask == "causal":
            s, t = scores.shape[2:]
            scores = np.where(np.arange(t) <= np.arange(s)[:, None], scores, -3.4028235e38)
        elif self.mask != "none":
            scores = scores + feed["mask"]
        with np.errstate(invalid="ignore"):
            p = np.exp(scores - scores.max(-1, keepdims=True))
            p = p / p.sum(-1, keepdims=True)
        if self.guard != "none":
            p = np.nan_to_num(p)
        out = p @ v
        return out.transpose(0, 2, 1, 3).reshape(out.shape[0], out.shape[2], -1) if self.back else out
