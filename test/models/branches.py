# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs with If: a text in ONNX's own notation, and feeds."""

import numpy as np
import onnx.parser

HEAD = '<ir_version: 9, opset_import: ["": 16]>\n'
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
FLAGS = [np.array(False), np.array(True)]

# name: (text of the graph, feeds)
GRAPHS = {
    "branch in a branch": (
        """g (bool c, bool[1] d, float[n,4] x) => (float[n,4] out) {
          o = If (c) <then_branch = t () => (float[n,4] y1) {
                        y = Add (x, x)
                        r = If (d) <then_branch = tt () => (float[n,4] q) { q = Mul (x, y) },
                                    else_branch = te () => (float[n,4] p) <float[1,4] w = {1, 2, 3, 4}> { p = Sub (x, w) }>
                        y1 = Relu (r)
                      }, else_branch = e () => (float[n,4] z) { z = Exp (x) }>
          out = Neg (o)
        }""",
        [{"c": c, "d": d.reshape(1), "x": X} for c in FLAGS for d in FLAGS]),
    "other dims in each branch": (
        """g (bool c, float[n,4] x) => (float[4] sum, int64[2] dims, float[m,4] o) <int64[1] axis = {0}> {
          o = If (c) <then_branch = t () => (float[m,4] y) { y = Concat <axis = 0> (x, x) },
                      else_branch = e () => (float[k,4] z) { z = Identity (x) }>
          sum = ReduceSum <keepdims = 0> (o, axis)
          dims = Shape (o)
        }""",
        [{"c": c, "x": X[:n]} for c in FLAGS for n in (0, 1, 3)]),
    "dims that a branch computes from data": (
        """g (bool c, int64[1] k, float v, float[n,4] x) => (float[m] out) {
          o = If (c) <then_branch = t () => (float[m] y) { k2 = Add (k, k)  y = Expand (v, k2) },
                      else_branch = e () => (float[j] z) <int64[1] all = {-1}> { z = Reshape (x, all) }>
          out = Mul (o, o)
        }""",
        [{"c": c, "k": np.array([k]), "v": np.array(2.5, np.float32), "x": X} for c in FLAGS for k in (0, 5)]),
    "shapes by a condition on dims": (
        """g (float[n,4] x) => (float[a,b] o) <int64[1] zero = {0}, int64[1] three = {3}, int64[2] wide = {2, -1}, int64[2] high = {-1, 2}> {
          dims = Shape (x)
          rows = Gather (dims, zero)
          is = Equal (rows, three)
          shape = If (is) <then_branch = t () => (int64[2] y) { y = Identity (wide) }, else_branch = e () => (int64[2] z) { z = Identity (high) }>
          o = Reshape (x, shape)
        }""",
        [{"x": X}, {"x": X[:2]}]),
    "ranks of which one fits": (
        """g (float[n,k] x, float[m] y) => (float[j] out) <int64[1] axis = {1}, int64 second = {1}, int64 one = {1}> {
          dims = Shape (x)
          columns = Gather (dims, second)
          is = Equal (columns, one)
          flat = If (is) <then_branch = t () => (float[a] s) { s = Squeeze (x, axis) }, else_branch = e () => (float[a,b] z) { z = Identity (x) }>
          out = Concat <axis = 0> (flat, y)
        }""",
        [{"x": X[:, :1], "y": X[0]}, {"x": X[:0, :1], "y": X[0]}]),
    "two results, captured and constant": (
        """g (bool c, float[n,4] x) => (float[n,4] out, float[a,b] out2)
           <float[4,4] w = {1, 2, 0, 1, 0, 1, 1, 3, 1, 1, 2, 0, 2, 0, 1, 1}> {
          before = Tanh (x)
          o, p = If (c) <then_branch = t () => (float[n,4] y, float[n,4] y2) {
                           a = MatMul (x, w)  b = Softmax (a)  d = MatMul (b, w)
                           y = Add (d, before)  y2 = Identity (before)
                         }, else_branch = e () => (float[n,4] z, float[4,4] z2) { z = Mul (before, before)  z2 = Identity (w) }>
          out = Add (o, before)
          out2 = Neg (p)
        }""",
        [{"c": c, "x": X[:n]} for c in FLAGS for n in (0, 1, 3)]),
}

# A branch that cannot be computed matters only to the run that takes it.
UNUSABLE = """g (bool c, float[n,4] x) => (float[n,4] o) <float[5,6] w = {}> {
  o = If (c) <then_branch = t () => (float[a,b] y) { y = MatMul (x, w) }, else_branch = e () => (float[n,4] z) { z = Neg (x) }>
}""".replace("{}", "{" + ", ".join(["1"] * 30) + "}", 1)


def model(text):
    return onnx.parser.parse_model(HEAD + text)
