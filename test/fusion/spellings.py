# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What exporters write where a model has a function that the operator set does not have, or did not have: {name: how}. The first argument is a
graph (graph.py), then come values of it."""

import numpy as np
from graph import ENDS
from onnx import TensorProto

ROOT = float(np.sqrt(2))


def constant(g, number):
    return g.const(np.array(number, g.dtype))


# --- activations ------------------------------------------------------------------------------------------------------


def tanh_gelu(cube, scaled_first=False):
    def build(g, x):
        if cube == "pow":
            cubed = g.Pow(x, constant(g, 3))
        elif cube == "products":
            cubed = g.Mul(x, g.Mul(x, x))
        else:
            cubed = g.Mul(g.Mul(x, x), x)
        inner = g.Mul(g.Add(x, g.Mul(cubed, constant(g, 0.044715))), constant(g, np.sqrt(2 / np.pi)))
        plus = g.Add(g.Tanh(inner), constant(g, 1))
        half = constant(g, 0.5)
        return g.Mul(g.Mul(half, x), plus) if scaled_first else g.Mul(x, g.Mul(half, plus))

    return build


def erf_plus_one(g, x):
    return g.Add(g.Erf(g.Div(x, constant(g, ROOT))), constant(g, 1))


def fast_gelu(g, x):
    """x * (1 + x * x * 0.044715) * 0.797... under the tangent, as transformers has it for some models."""
    inner = g.Mul(g.Mul(x, constant(g, 0.7978845608)), g.Add(g.Mul(g.Mul(constant(g, 0.044715), x), x), constant(g, 1)))
    return g.Mul(g.Mul(constant(g, 0.5), x), g.Add(constant(g, 1), g.Tanh(inner)))


GELUS = {
    "PyTorch": lambda g, x: g.Mul(g.Mul(x, erf_plus_one(g, x)), constant(g, 0.5)),
    "PyTorch, the half inside": lambda g, x: g.Mul(x, g.Mul(constant(g, 0.5), erf_plus_one(g, x))),
    "BERT by TensorFlow": lambda g, x: g.Mul(g.Mul(constant(g, 0.5), x), g.Add(constant(g, 1), g.Erf(g.Mul(x, constant(g, 1 / ROOT))))),
    "Paddle": lambda g, x: g.Mul(g.Mul(x, constant(g, 0.5)), erf_plus_one(g, x)),
    "tanh, PyTorch": tanh_gelu("pow", scaled_first=True),
    "tanh, the half last": lambda g, x: g.Mul(tanh_gelu("pow")(g, x), constant(g, 1)),
    "tanh, products": tanh_gelu("products"),
    "tanh, squares first": tanh_gelu("squares", scaled_first=True),
    "tanh, fast": fast_gelu,
    "sigmoid": lambda g, x: g.Mul(x, g.Sigmoid(g.Mul(x, constant(g, 1.702)))),
}

ACTIVATIONS = {
    "SiLU": lambda g, x: g.Mul(x, g.Sigmoid(x)),
    "SiLU, as a quotient": lambda g, x: g.Div(x, g.Add(constant(g, 1), g.Exp(g.Neg(x)))),
    "SiLU with a factor, Paddle": lambda g, x: g.Mul(x, g.Sigmoid(g.Mul(x, constant(g, 1)))),
    "hard swish, PyTorch": lambda g, x: g.Mul(x, g.HardSigmoid(x, alpha=1 / 6, beta=0.5)),
    "hard swish, Clip": lambda g, x: g.Div(g.Mul(x, g.Clip(g.Add(x, constant(g, 3)), constant(g, 0), constant(g, 6))), constant(g, 6)),
    "hard swish, Paddle": lambda g, x: g.Mul(g.Mul(x, g.Min(g.Max(g.Add(x, constant(g, 3)), constant(g, 0)), constant(g, 6))), constant(g, 1 / 6)),
    "Mish": lambda g, x: g.Mul(x, g.Tanh(g.Softplus(x))),
    "squared ReLU": lambda g, x: g.Pow(g.Relu(x), constant(g, 2)),
    "softcap": lambda g, x: g.Mul(g.Tanh(g.Div(x, constant(g, 5))), constant(g, 5)),
}


# --- norms ------------------------------------------------------------------------------------------------------------


def centred_norm(square, root="Div"):
    def build(g, x, scale, bias, epsilon=1e-5):
        centred = g.Sub(x, g.reduce("ReduceMean", x, [-1]))
        squares = g.Mul(centred, centred) if square == "product" else g.Pow(centred, constant(g, 2))
        spread = g.Add(g.reduce("ReduceMean", squares, [-1]), constant(g, epsilon))
        if root == "Div":
            normal = g.Div(centred, g.Sqrt(spread))
        elif root == "Reciprocal":
            normal = g.Mul(centred, g.Reciprocal(g.Sqrt(spread)))
        else:
            normal = g.Mul(centred, g.Pow(spread, constant(g, -0.5)))
        return g.Add(g.Mul(normal, scale), bias)

    return build


def double_mean_norm(g, x, scale, bias, epsilon=1e-5):
    """One exporter subtracted the mean once for the variance and once for the result."""
    mean = g.reduce("ReduceMean", x, [-1])
    a, b = g.Sub(x, mean), g.Sub(x, mean)
    spread = g.reduce("ReduceMean", g.Pow(a, constant(g, 2)), [-1])
    return g.Add(g.Mul(g.Div(b, g.Sqrt(g.Add(spread, constant(g, epsilon)))), scale), bias)


def batch_form_norm(g, x, scale, bias, epsilon=1e-5):
    """x * (scale / root) + (bias - mean * (scale / root)), TensorFlow's tf.nn.batch_normalization over moments."""
    mean = g.reduce("ReduceMean", x, [-1])
    difference = g.Sub(x, mean)
    spread = g.reduce("ReduceMean", g.Mul(difference, difference), [-1])
    factor = g.Mul(g.Reciprocal(g.Sqrt(g.Add(spread, constant(g, epsilon)))), scale)
    return g.Add(g.Mul(x, factor), g.Sub(bias, g.Mul(mean, factor)))


def squares_norm(g, x, scale, bias, epsilon=1e-5):
    """The variance as the mean of the squares without the square of the mean."""
    mean = g.reduce("ReduceMean", x, [-1])
    spread = g.Sub(g.reduce("ReduceMean", g.Mul(x, x), [-1]), g.Mul(mean, mean))
    return g.Add(g.Mul(g.Div(g.Sub(x, mean), g.Sqrt(g.Add(spread, constant(g, epsilon)))), scale), bias)


NORMS = {
    "PyTorch": centred_norm("pow"),
    "x * x": centred_norm("product"),
    "reciprocal of the root": centred_norm("product", "Reciprocal"),
    "power of -1/2": centred_norm("pow", "Pow"),
    "two means": double_mean_norm,
    "TensorFlow's moments": batch_form_norm,
    "mean of squares": squares_norm,
}


def rms_norm(root, swapped=False):
    def build(g, x, scale, epsilon=1e-6):
        spread = g.Add(g.reduce("ReduceMean", g.Pow(x, constant(g, 2)), [-1]), constant(g, epsilon))
        if root == "Div":
            normal = g.Div(x, g.Sqrt(spread))
        elif root == "Reciprocal":
            normal = g.Mul(x, g.Reciprocal(g.Sqrt(spread)))
        else:
            normal = g.Mul(x, g.Div(constant(g, 1), g.Sqrt(spread)))
        return g.Mul(scale, normal) if swapped else g.Mul(normal, scale)

    return build


def cast_rms_norm(g, x, scale, epsilon=1e-6):
    """LLaMA: to float32 and back, though it may be float32 already."""
    own = TensorProto.FLOAT16 if g.dtype == np.float16 else TensorProto.FLOAT
    wide = g.Cast(x, to=TensorProto.FLOAT)
    squares = g.reduce("ReduceMean", g.Pow(wide, np.float32(2)), [-1])
    normal = g.Mul(wide, g.Div(np.float32(1), g.Sqrt(g.Add(squares, np.float32(epsilon)))))
    return g.Mul(scale, g.Cast(normal, to=own))


def norm_by_l2(g, x, scale, epsilon=1e-6):
    """x / max(|x|, epsilon), as F.normalize has it."""
    length = g.reduce("ReduceL2", x, [-1])
    return g.Mul(g.Div(x, g.Clip(length, constant(g, epsilon))), scale)


RMS_NORMS = {
    "LLaMA with casts": cast_rms_norm,
    "LLaMA": rms_norm("one over", swapped=True),
    "T5": rms_norm("Div", swapped=True),
    "reciprocal": rms_norm("Reciprocal"),
    "by length": norm_by_l2,
}


# --- softmax ----------------------------------------------------------------------------------------------------------


def spelled_softmax(g, x, axis):
    e = g.Exp(g.Sub(x, g.reduce("ReduceMax", x, [axis])))
    return g.Div(e, g.reduce("ReduceSum", e, [axis]))


def log_softmax(g, x, axis):
    shifted = g.Sub(x, g.reduce("ReduceMax", x, [axis]))
    return g.Exp(g.Sub(shifted, g.Log(g.reduce("ReduceSum", g.Exp(shifted), [axis]))))


SOFTMAXES = {
    "operator": lambda g, x, axis: g.Softmax(x, axis=axis),
    "spelled out": spelled_softmax,
    "reciprocal of the sum": lambda g, x, axis: (lambda e: g.Mul(e, g.Reciprocal(g.reduce("ReduceSum", e, [axis]))))(
        g.Exp(g.Sub(x, g.reduce("ReduceMax", x, [axis])))),
    "through logarithms": log_softmax,
}


# --- rotary positions: x [..., size], cosines and sines that broadcast to it --------------------------------------------


def halves_by_slices(g, x):
    size = x.dims[-1][0] // 2
    return g.slice(x, -1, 0, size), g.slice(x, -1, size, ENDS)


def halves_by_split(g, x):
    size = x.dims[-1][0] // 2
    return g.op("Split", x, [size, size], outputs=2, axis=-1)


def rotate_half(halves):
    def build(g, x, cosines, sines):
        a, b = halves(g, x)
        turned = g.Concat(g.Neg(b), a, axis=-1)
        return g.Add(g.Mul(x, cosines), g.Mul(turned, sines))

    return build


def rotate_parts(g, x, cosines, sines):
    """Each half by itself, then together."""
    a, b = halves_by_slices(g, x)
    size = x.dims[-1][0] // 2
    c, s = (g.slice(t, -1, 0, size) for t in (cosines, sines))
    return g.Concat(g.Sub(g.Mul(a, c), g.Mul(b, s)), g.Add(g.Mul(b, c), g.Mul(a, s)), axis=-1)


def rotate_pairs(g, x, cosines, sines):
    """GPT-J: x[0], x[1] are turned together; -x[1], x[0] by stacking and joining."""
    even, odd = g.slice(x, -1, 0, ENDS, 2), g.slice(x, -1, 1, ENDS, 2)
    pairs = g.Concat(g.Unsqueeze(g.Neg(odd), [x.rank]), g.Unsqueeze(even, [x.rank]), axis=-1)
    turned = g.Reshape(pairs, g.Shape(x))
    return g.Add(g.Mul(x, cosines), g.Mul(turned, sines))


def rotate_complex(g, x, cosines, sines):
    """Complex numbers as exporters write them: [..., size / 2, 2], products of parts, stacked and joined."""
    size, shape = x.dims[-1][0] // 2, g.Shape(x)
    pairs = g.Reshape(x, g.Concat(g.Slice(shape, [0], [x.rank - 1], [0]), [size, 2], axis=0))
    real, imaginary = (g.Gather(pairs, np.int64(i), axis=-1) for i in range(2))
    c, s = (g.slice(t, -1, 0, size) for t in (cosines, sines))
    parts = g.Sub(g.Mul(real, c), g.Mul(imaginary, s)), g.Add(g.Mul(real, s), g.Mul(imaginary, c))
    return g.Reshape(g.Concat(*[g.Unsqueeze(p, [x.rank]) for p in parts], axis=-1), shape)


def rotate_some(g, x, cosines, sines):
    """Only the first half of the dims is turned."""
    size = x.dims[-1][0] // 2
    first, rest = g.slice(x, -1, 0, size), g.slice(x, -1, size, ENDS)
    c, s = (g.slice(t, -1, 0, size) for t in (cosines, sines))
    return g.Concat(rotate_half(halves_by_slices)(g, first, c, s), rest, axis=-1)


ROTARIES = {
    "rotate_half": rotate_half(halves_by_slices),
    "rotate_half by Split": rotate_half(halves_by_split),
    "parts": rotate_parts,
    "GPT-J's pairs": rotate_pairs,
    "complex numbers": rotate_complex,
    "some of the dims": rotate_some,
}
