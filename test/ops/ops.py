# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How to draw a node of each operator at random: attributes, types, ranks, dims, and which inputs are known when it is compiled.

OPS has a function for each operator. It is called with a Draw, which knows the opset and the main type, decides what the
compiled forms share (attributes, ranks, constant inputs), and returns a Node with a function that makes the inputs of one
run after the other. Nothing undefined is drawn: no repeated indices for a scatter without reduction, no division of integers by
0, no cast of a float to an integer type that does not hold it, no ties for a cast to 4 or 2 bits.
"""

import dataclasses
import functools
import math
import zlib

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

OLDEST, NEWEST = 6, 28
INT64_MAX = (1 << 63) - 1
OPS = {}


class Skip(Exception):
    """There is nothing to draw for this opset and type."""


@dataclasses.dataclass
class Node:
    """What the forms of a node share. `arrays` makes a run's inputs (None: left out); those in `const` are the same in each run
    and known when the node is compiled; `exact`: no output rounds; `sets`: outputs that are compared sorted, as sets."""

    op: str
    opset: int
    attributes: dict
    arrays: object
    const: frozenset
    outputs: int
    exact: bool
    sets: frozenset
    tolerance: float
    dtype: np.dtype


# --- types ------------------------------------------------------------------------------------------------------------


@functools.cache
def history():
    """{operator: [schema, ...]}, the oldest first, of the default domain."""
    result = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: s.since_version):
        if schema.domain in ("", "ai.onnx"):
            result.setdefault(schema.name, []).append(schema)
    return result


@functools.cache
def definitions(op):
    """[(first opset, last opset, schema)] of each definition that an opset from OLDEST to NEWEST can mean, the newest first."""
    schemas = history()[op]
    ends = [s.since_version - 1 for s in schemas[1:]] + [NEWEST]
    return [(max(OLDEST, s.since_version), end, s) for s, end in zip(schemas, ends) if end >= OLDEST and not s.deprecated][::-1]


@functools.cache
def type_names():
    """{"float": (number of TensorProto, NumPy type)}, as schemas spell them, of the types that tensors of numbers have."""
    result = {}
    for name, number in TensorProto.DataType.items():
        if name not in ("UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128"):
            result[name.lower()] = (number, np.dtype(helper.tensor_dtype_to_np_dtype(number)))
    return result


MAIN = {"Where": "T", "ConstantOfShape": "T2", "Constant": "T"}


def main_parameter(schema):
    """The type parameter that the nodes of an operator go through."""
    return MAIN.get(schema.name) or schema.inputs[0].type_str


def input_parameter(schema, i):
    return schema.inputs[min(i, len(schema.inputs) - 1)].type_str


def types_of(schema, parameter):
    """The NumPy types that a type parameter (or a type) of a schema can be."""
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == parameter), [parameter])
    names = [a[len("tensor("):-1] for a in allowed if a.startswith("tensor(")]
    return [type_names()[n][1] for n in names if n in type_names()]


def turns(schema):
    """The main types in the order in which nodes have them, which is another one for each operator."""
    types = types_of(schema, main_parameter(schema))
    return [types[i] for i in np.random.default_rng(zlib.crc32(schema.name.encode())).permutation(len(types))]


def number_of(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def is_bool(dtype):
    return dtype == np.bool_


INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}


def is_int(dtype):
    return dtype.kind in "iu" or dtype.name in INTEGERS


def is_float(dtype):
    return not is_bool(dtype) and not is_int(dtype)


def limits(dtype):
    """Smallest and largest value of an integer type."""
    return INTEGERS[dtype.name] if dtype.name in INTEGERS else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def is_unsigned(dtype):
    return is_int(dtype) and limits(dtype)[0] == 0 or dtype.name == "float8_e8m0fnu"


def bits(dtype):
    return BITS.get(dtype.name, 8 * dtype.itemsize)


def is_small_float(dtype):
    return dtype.name.startswith(("float8", "float6", "float4"))


# --- drawing ----------------------------------------------------------------------------------------------------------


class Draw:
    """Random decisions for one node. `number` counts the nodes of an operator, so that all types have their turn."""

    def __init__(self, op, opset, schema, number, dtype=None):
        self.op, self.opset, self.schema = op, opset, schema
        self.random = np.random.default_rng([zlib.crc32(op.encode()), opset, number])
        types = turns(schema)
        self.dtype = dtype or types[number % len(types)]

    def types(self, parameter):
        return types_of(self.schema, parameter)

    def input_type(self, i):
        """A type for input i: the main one if they share a parameter."""
        parameter = input_parameter(self.schema, i)
        return self.dtype if parameter == main_parameter(self.schema) else self.pick(self.types(parameter))

    def chance(self, p):
        return bool(self.random.random() < p)

    def between(self, low, high):
        return int(self.random.integers(low, high, endpoint=True))

    def pick(self, options):
        return options[self.between(0, len(options) - 1)]

    def real(self, low, high):
        """A number for a float attribute: exact in binary."""
        return self.between(int(low * 8), int(high * 8)) / 8

    def rank(self, low=0, high=4):
        return self.between(low, high)

    def axis(self, rank, negative=True):
        """An axis, maybe counted from the end."""
        axis = self.between(0, rank - 1)
        return axis - rank if negative and self.chance(0.4) else axis

    def axes(self, rank, low=0, negative=True):
        """Some axes, in any order."""
        some = self.random.permutation(rank)[:self.between(low, rank)] if rank else []
        return [int(a) - rank if negative and self.chance(0.3) else int(a) for a in some]

    def dim(self, low=0):
        return max(low, self.pick([0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 17]))

    def dims(self, rank, low=0, most=1500):
        dims = [self.dim(low) for _ in range(rank)]
        while math.prod(dims) > most:
            dims[int(np.argmax(dims))] = max(low, 2)
        return dims

    def small(self, dims, dtype=None, low=-6, high=6, whole=False):
        """Small numbers that every type in question holds: quarters for floats."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        if is_bool(dtype):
            return self.random.integers(0, 2, dims).astype(np.bool_)
        if is_int(dtype):
            bottom, top = limits(dtype)
            return self.random.integers(max(low, bottom), min(high, top), dims, endpoint=True).astype(dtype)
        if dtype.name == "float8_e8m0fnu":
            top = max(0, int(math.log2(max(1, high))))
            return (2.0 ** self.random.integers(0 if whole else -4, top, dims, endpoint=True)).astype(np.float32).astype(dtype)
        if dtype.name == "float4_e2m1fn":
            cells = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
            return self.random.choice(cells[(cells >= low) & (cells <= high)], dims).astype(dtype)
        step = 1 if whole or is_small_float(dtype) else 4
        numbers = self.random.integers(math.ceil(low * step), math.floor(high * step), dims, endpoint=True) / step
        return numbers.astype(np.float32).astype(dtype)

    def reals(self, dims, low, high, dtype=None):
        return self.random.uniform(low, high, dims).astype(self.dtype if dtype is None else dtype)

    def full(self, dims, dtype=None):
        """Integers of the whole range; small numbers of other types."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        if not is_int(dtype):
            return self.small(dims, dtype)
        bottom, top = limits(dtype)
        if dtype.name in INTEGERS:
            return self.random.integers(bottom, top, dims, endpoint=True).astype(dtype)
        numbers = self.random.integers(bottom, top, dims, dtype=dtype, endpoint=True)
        ends = self.random.random(dims) < 0.1
        return np.where(ends, np.where(self.random.random(dims) < 0.5, dtype.type(bottom), dtype.type(top)), numbers).astype(dtype)

    def special(self, array, nan=True, p=0.15):
        """Puts infinities, zeros of both signs and NaN into an array of floats."""
        if array.dtype.kind != "f" and array.dtype.name != "bfloat16" or not array.size:
            return array
        values = np.array([np.inf, -np.inf, 0.0, -0.0] + [np.nan] * nan, np.float32).astype(array.dtype)
        return np.where(self.random.random(array.shape) < p, self.random.choice(values, array.shape), array).astype(array.dtype)

    def broadcast(self, count, most=4):
        """A function that makes the dims of `count` inputs that broadcast with each other."""
        rank = self.rank(0, most)
        ranks = [self.between(0, rank) if self.chance(0.3) else rank for _ in range(count)]
        ones = [[self.chance(0.2) for _ in range(rank)] for _ in range(count)]
        changing = self.chance(0.25)

        def dims():
            full = self.dims(rank)
            result = []
            for r, one in zip(ranks, ones):
                mine = [1 if o or changing and self.chance(0.3) else d for d, o in zip(full, one)]
                result.append(mine[rank - r:])
            return result

        return dims

    def node(self, arrays, attributes=None, const=(), outputs=1, exact=True, sets=(), tolerance=1):
        """`const` may be the numbers of inputs, or says of each number whether it is constant. Half of the runs have fixed dims."""
        return Node(self.op, self.opset, attributes or {}, arrays, frozenset(const), outputs, exact, frozenset(sets), tolerance, self.dtype)

    def once(self, make):
        """Whether an input is constant, and a function for its value: drawn once if it is, else for each run."""
        if self.chance(0.5):
            value = make()
            return True, lambda: value
        return False, make


def constant(*flags):
    """Numbers of the inputs that are constant: pairs of a number and whether it is."""
    return [number for number, is_constant in flags if is_constant]


def op(*names):
    def register(function):
        for name in names:
            OPS[name] = function
        return function

    return register


def ints(values):
    return np.array(values, np.int64)


def draw(name, number, opset, schema, dtype=None):
    """The Node number `number` for an operator, of the type whose turn it is or of that one; raises Skip."""
    return OPS[name](Draw(name, opset, schema, number, dtype))


# --- element-wise -----------------------------------------------------------------------------------------------------

# Operator: (whether the result is exact, smallest and largest input, attributes).
FREE = (-6, 6)
UNARY = {
    "Abs": (True, *FREE), "Acos": (False, -1, 1), "Acosh": (False, 1, 8), "Asin": (False, -1, 1), "Asinh": (False, *FREE),
    "Atan": (False, *FREE), "Atanh": (False, -0.95, 0.95), "Ceil": (True, *FREE), "Celu": (False, *FREE), "Cos": (False, *FREE),
    "Cosh": (False, -4, 4), "Elu": (False, *FREE), "Erf": (False, -3, 3), "Exp": (False, -5, 5), "Floor": (True, *FREE),
    "Gelu": (False, *FREE), "HardSigmoid": (False, *FREE), "HardSwish": (False, *FREE), "LeakyRelu": (False, *FREE), "Log": (False, 0.1, 8),
    "Mish": (False, *FREE), "Neg": (True, *FREE), "Reciprocal": (False, 0.2, 4), "Relu": (True, *FREE), "Round": (True, *FREE),
    "Selu": (False, *FREE), "Sigmoid": (False, *FREE), "Sign": (True, *FREE), "Sin": (False, *FREE), "Sinh": (False, -4, 4),
    "Softplus": (False, *FREE), "Softsign": (False, *FREE), "Sqrt": (False, 0, 9), "Swish": (False, *FREE), "Tan": (False, -1.2, 1.2),
    "Tanh": (False, -4, 4), "ThresholdedRelu": (True, *FREE), "IsNaN": (True, *FREE), "IsInf": (True, *FREE),
}
UNARY_ATTRIBUTES = {
    "Celu": {"alpha": (0.5, 2)}, "Elu": {"alpha": (0.5, 2)}, "HardSigmoid": {"alpha": (0.125, 0.5), "beta": (0, 1)},
    "LeakyRelu": {"alpha": (0, 0.5)}, "Selu": {"alpha": (0.5, 2), "gamma": (0.5, 2)}, "Swish": {"alpha": (0.5, 2)},
    "ThresholdedRelu": {"alpha": (0, 2)},
}
NO_SPECIALS = {"Mish", "Softsign", "Swish", "HardSwish", "Gelu", "Tan", "Sin", "Cos"}  # inf - inf, inf / inf, inf * 0: as they are written


@op(*UNARY)
def unary(d):
    exact, low, high = UNARY[d.op]
    attributes = {k: d.real(*r) for k, r in UNARY_ATTRIBUTES.get(d.op, {}).items() if d.chance(0.6)}
    if d.op == "Gelu" and d.chance(0.6):
        attributes["approximate"] = d.pick(["none", "tanh"])
    if d.op == "IsInf":
        attributes = {k: d.between(0, 1) for k in ("detect_negative", "detect_positive") if d.chance(0.5)}
    rank, special = d.rank(), d.op in ("IsNaN", "IsInf") or d.op not in NO_SPECIALS and d.chance(0.3)

    def arrays():
        dims = d.dims(rank)
        if not is_float(d.dtype) or exact:
            x = d.small(dims, low=low, high=high)
        else:
            x = d.reals(dims, low, high)
        return [d.special(x) if special else x]

    return d.node(arrays, attributes, exact=exact)


@op("Identity", "Not", "BitwiseNot")
def any_value(d):
    rank = d.rank()
    return d.node(lambda: [d.full(d.dims(rank))])


@op("Shrink")
def shrink(d):
    attributes = {"lambd": float(d.between(1, 3)), "bias": float(d.between(0, 1))}
    rank = d.rank()
    return d.node(lambda: [d.small(d.dims(rank))], attributes)


@op("Dropout")
def dropout(d):
    rank = d.rank()
    attributes = {"ratio": d.real(0, 0.75)} if d.opset < 12 and d.chance(0.5) else {}
    ratio = d.opset >= 12 and d.chance(0.5)

    def arrays():
        x = [d.small(d.dims(rank))]
        return x + ([np.array(0.5, np.float32)] if ratio else [])

    return d.node(arrays, attributes, const=[1] if ratio else [], outputs=d.between(1, 2) if d.opset >= 12 else 1)


def old_broadcast(d):
    """Attributes and dims of a binary operator before opset 7: the second input's dims are some of the first's, from `axis` on."""
    if d.chance(0.4):
        rank = d.rank()
        return {}, lambda: [d.dims(rank)] * 2
    rank = d.rank(1, 4)
    length = d.between(1, rank)
    start = d.between(0, rank - length)
    attributes = {"broadcast": 1}
    if start + length != rank or d.chance(0.3):
        attributes["axis"] = start

    def dims():
        full = d.dims(rank)
        return [full, full[start:start + length]]

    return attributes, dims


def binary_dims(d):
    return old_broadcast(d) if d.opset < 7 else ({}, d.broadcast(2))


@op("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "PRelu", "SwiGLU")
def binary(d):
    attributes, dims = binary_dims(d)
    if d.op == "PRelu":
        both = d.broadcast(1)
        rank = None

        def dims():
            nonlocal rank
            (x,) = both()
            rank = d.between(0, len(x)) if rank is None else rank
            return [x, [d.pick([1, n]) for n in x[len(x) - rank:]]]

    if d.op == "SwiGLU":
        rank = d.rank()
        attributes = {"alpha": d.real(0.5, 2)} if d.chance(0.5) else {}
        dims = lambda: [d.dims(rank)] * 2
    wrap, special = d.chance(0.5), d.chance(0.3) and d.op not in ("SwiGLU", "PRelu")
    wrap = wrap and d.op in ("Add", "Sub", "Mul", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual") or d.op.startswith("Bitwise")

    def arrays():
        a, b = dims()
        if is_int(d.dtype) and wrap:
            return [d.full(a), d.full(b)]
        low = 0 if is_unsigned(d.dtype) else -6
        x, y = d.small(a, low=low), d.small(b, low=low)
        if d.op == "Sub" and is_unsigned(d.dtype):
            x, y = d.small(a, low=5, high=11), d.small(b, low=0, high=5)
        if d.op == "Div":
            y = np.where(y == 0, np.array(3, y.dtype), y)
        return [d.special(x), d.special(y)] if special else [x, y]

    exact = d.op not in ("Div", "PRelu", "SwiGLU") and d.dtype.itemsize > 2 or not is_float(d.dtype)
    return d.node(arrays, attributes, exact=exact)


@op("Mod")
def modulo(d):
    fmod = 1 if is_float(d.dtype) or d.chance(0.5) else 0
    dims = d.broadcast(2)

    def arrays():
        a, b = dims()
        y = d.small(b)
        return [d.full(a) if is_int(d.dtype) else d.small(a), np.where(y == 0, np.array(3, y.dtype), y)]

    return d.node(arrays, {"fmod": fmod} if fmod or d.chance(0.5) else {})


@op("Pow")
def power(d):
    attributes, dims = binary_dims(d)
    exponent = d.input_type(1)

    def arrays():
        a, b = dims()
        if is_int(d.dtype):
            return [d.small(a, low=-3, high=3), d.small(b, exponent, 0, 3, whole=True)]
        y = d.small(b, exponent, 0 if is_unsigned(exponent) else -2, 3) if is_int(exponent) else d.reals(b, -2, 3, exponent)
        return [d.reals(a, 0.25, 3), y]

    return d.node(arrays, attributes, exact=False)


@op("BitShift")
def shift(d):
    dims = d.broadcast(2)

    def arrays():
        a, b = dims()
        return [d.full(a), d.small(b, low=0, high=bits(d.dtype) - 1)]

    return d.node(arrays, {"direction": d.pick(["LEFT", "RIGHT"])})


@op("Max", "Min", "Sum", "Mean")
def variadic(d):
    count = d.between(1, 4)
    if d.opset < 8:
        rank = d.rank()
        dims = lambda: [d.dims(rank)] * count
    else:
        dims = d.broadcast(count)
    special = d.chance(0.3)

    def arrays():
        # One list of dims for all where they must be equal.
        xs = [d.full(x) if d.op in ("Max", "Min") else d.small(x) for x in dims()]
        return [d.special(x) for x in xs] if special else xs

    return d.node(arrays, exact=d.op in ("Max", "Min"))


@op("Clip")
def clip(d):
    rank = d.rank()
    if d.opset < 11:
        attributes = {k: float(v) for k, v in (("min", d.between(-4, 0)), ("max", d.between(-1, 4))) if d.chance(0.7)}
        return d.node(lambda: [d.small(d.dims(rank))], attributes)
    low, high = d.chance(0.7), d.chance(0.7)
    low_is, lower = d.once(lambda: d.small([], low=-4, high=2))
    high_is, upper = d.once(lambda: d.small([], low=-1, high=4))
    special = d.chance(0.3)

    def arrays():
        x = d.small(d.dims(rank))
        return [d.special(x) if special else x, lower() if low else None, upper() if high else None]

    return d.node(arrays, const=constant((1, low and low_is), (2, high and high_is)))


@op("Where")
def where(d):
    dims = d.broadcast(3)

    def arrays():
        c, a, b = dims()
        return [d.small(c, np.bool_), d.full(a), d.full(b)]

    return d.node(arrays)


def castable(d, dims, source, target, saturate):
    """Values of type `source` that `target` holds after rounding, so that every way to convert gives the same."""
    if is_bool(source):
        return d.small(dims, source)
    if is_bool(target):
        return d.small(dims, source)
    if is_int(source):
        if is_int(target):
            return d.full(dims, source)
        if is_small_float(target):
            return d.small(dims, source, 1 if is_unsigned(target) else -6, 6)
        top = 1000 if target.itemsize > 2 else 200
        return d.small(dims, source, -top, top)
    if is_int(target):
        bottom, top = limits(target)
        bottom, top = max(bottom, -100), min(top, 100)
        if is_unsigned(source):
            bottom = 1
        if is_small_float(source):
            bottom, top = max(bottom, -6), min(top, 6)
        return d.small(dims, source, bottom, top, whole=bits(target) < 8)
    if is_small_float(source):
        return d.small(dims, source, 1 if is_unsigned(target) else -6)
    if target.name == "float8_e8m0fnu":
        return d.reals(dims, 0.3, 40, source)
    x = d.reals(dims, -5, 5, source)
    return d.special(x, p=0.1) if saturate and not target.name.startswith(("float4", "float6")) else x


def cast_attributes(d, target):
    attributes = {}
    if d.opset >= 19 and target.name.startswith("float8") and d.chance(0.5):
        attributes["saturate"] = d.between(0, 1)
    if d.opset >= 24 and target.name == "float8_e8m0fnu" and d.chance(0.6):
        attributes["round_mode"] = d.pick(["up", "down", "nearest"])
    return attributes


@op("Cast")
def cast(d):
    targets = d.types(d.schema.outputs[0].type_str)
    target = d.pick(targets)
    rank, saturate = d.rank(), d.chance(0.5)
    attributes = {"to": number_of(target), **cast_attributes(d, target)}
    return d.node(lambda: [castable(d, d.dims(rank), d.dtype, target, saturate)], attributes)


@op("CastLike")
def cast_like(d):
    target = d.pick(d.types(d.schema.outputs[0].type_str))
    rank, other, saturate = d.rank(), d.rank(0, 2), d.chance(0.5)
    attributes = cast_attributes(d, target)
    return d.node(lambda: [castable(d, d.dims(rank), d.dtype, target, saturate), d.small(d.dims(other), target)], attributes)


@op("BitCast")
def bit_cast(d):
    targets = [t for t in d.types(d.schema.outputs[0].type_str) if bits(t) == bits(d.dtype) and not (is_bool(t) or is_bool(d.dtype)) or t == d.dtype]
    if not targets:
        raise Skip
    target, rank = d.pick(targets), d.rank()
    return d.node(lambda: [d.full(d.dims(rank))], {"to": number_of(target)})


# --- reductions -------------------------------------------------------------------------------------------------------


@op("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
    "ReduceLogSumExp")
def reduce(d):
    rank = d.rank()
    as_input = d.opset >= (13 if d.op == "ReduceSum" else 18)
    attributes = {"keepdims": d.between(0, 1)} if d.chance(0.7) else {}
    axes = d.axes(rank, negative=d.opset >= 11) if d.chance(0.8) and (rank or as_input) else None
    const, side = [], None
    if as_input:
        if d.chance(0.4):
            attributes["noop_with_empty_axes"] = d.between(0, 1)
        if axes is not None:
            side = ints(axes)
            # Without its values, only the number of axes is known, which is enough if the dims stay.
            const = [1] if attributes.get("keepdims", 1) == 0 or d.chance(0.7) else []
    elif axes:
        attributes["axes"] = axes
    low = 1 if d.op == "ReduceMean" and is_int(d.dtype) else 0

    def arrays():
        dims = d.dims(rank, low)
        if d.op == "ReduceProd":
            x = d.small(dims, low=-2, high=2)
        elif d.op == "ReduceLogSum":
            x = d.small(dims, low=1, high=9) if is_int(d.dtype) else d.reals(dims, 0.5, 4)
        elif d.op == "ReduceLogSumExp":
            x = d.small(dims, low=0, high=4) if is_int(d.dtype) else d.reals(dims, -4, 4)
        elif d.op in ("ReduceMax", "ReduceMin"):
            x = d.full(dims)
        else:
            x = d.small(dims, low=-4, high=4)
        return [x] if side is None else [x, side]

    return d.node(arrays, attributes, const, exact=d.op in ("ReduceMax", "ReduceMin"), tolerance=4)


@op("ArgMax", "ArgMin")
def arg(d):
    rank = d.rank(1)
    axis = d.axis(rank, d.opset >= 11)
    attributes = {"axis": axis} if axis or d.chance(0.5) else {}
    if d.chance(0.7):
        attributes["keepdims"] = d.between(0, 1)
    if d.opset >= 12 and d.chance(0.6):
        attributes["select_last_index"] = d.between(0, 1)

    def arrays():
        dims = d.dims(rank)
        dims[axis] = max(1, dims[axis])
        return [d.small(dims)]

    return d.node(arrays, attributes)


@op("CumSum", "CumProd")
def cumulate(d):
    rank = d.rank(1)
    kind = d.input_type(1)
    attributes = {k: d.between(0, 1) for k in ("exclusive", "reverse") if d.chance(0.6)}
    axis_is, axis = d.once(lambda: np.array(d.axis(rank), kind))
    low, high = (-6, 6) if d.op == "CumSum" else (-2, 2)
    return d.node(lambda: [d.small(d.dims(rank), low=low, high=high), axis()], attributes, constant((1, axis_is)), exact=False, tolerance=4)


@op("Softmax", "LogSoftmax", "Hardmax")
def softmax(d):
    rank = d.rank(1)
    attributes = {"axis": d.axis(rank, d.opset >= 11)} if rank < 2 or d.chance(0.8) else {}

    def arrays():
        dims = d.dims(rank)
        return [d.small(dims) if d.op == "Hardmax" else d.reals(dims, -5, 5)]

    return d.node(arrays, attributes, exact=d.op == "Hardmax", tolerance=2)


# --- movement ---------------------------------------------------------------------------------------------------------


@op("Reshape")
def reshape(d):
    rank = d.rank(0, 4)
    allow_zero = d.opset >= 14 and d.chance(0.3)
    attributes = {"allowzero": 1} if allow_zero else {}
    if d.chance(0.5):  # a constant shape
        copied = 0 if allow_zero else d.between(0, rank)
        tail = d.pick([[-1], [-1, 1], [1, -1]]) if copied < rank or rank == 0 else d.pick([[], [1], [-1]])
        shape = ints([0] * copied + tail)

        def arrays():
            dims = d.dims(rank)
            if -1 in tail:
                dims = [max(1, n) for n in dims[:copied]] + dims[copied:]
            return [d.full(dims), shape]

        return d.node(arrays, attributes, [1])
    length = d.rank(1, 4) if rank else d.rank(0, 3)

    def arrays():
        dims = d.dims(rank, 0 if allow_zero else 1)
        count = math.prod(dims)
        shape = []
        if count == 0:
            shape = [d.between(0, 3) for _ in range(length)]
            shape[d.between(0, length - 1)] = 0
        else:
            for _ in range(max(0, length - 1)):
                shape.append(d.pick([f for f in range(1, count + 1) if count % f == 0]))
                count //= shape[-1]
            shape += [count] if length else []
            if length and d.chance(0.3):
                shape[d.between(0, length - 1)] = -1
        return [d.full(dims), ints(shape)]

    return d.node(arrays, attributes)


@op("Expand")
def expand(d):
    rank = d.rank(0, 3)
    if d.chance(0.5):
        shape = ints([d.pick([1, 1, 2, 3]) for _ in range(d.rank(0, 4))])
        at = len(shape) - rank  # of the input's first axis in the shape

        def arrays():
            dims = [d.dim() if i + at < 0 or shape[i + at] == 1 else d.pick([1, int(shape[i + at])]) for i in range(rank)]
            return [d.full(dims), shape]

        return d.node(arrays, {}, [1])
    length = d.rank(0, 4)

    def arrays():
        full = d.dims(max(rank, length), most=400)
        x = [d.pick([1, n]) for n in full[len(full) - rank:]]
        shape = full[len(full) - length:]
        for i in range(1, min(rank, length) + 1):
            if x[-i] == shape[-i] and d.chance(0.3):
                shape[-i] = 1
        if length < rank:
            x[:rank - length] = full[:rank - length]
        return [d.full(x), ints(shape)]

    return d.node(arrays)


@op("Tile")
def tile(d):
    rank = d.rank(0 if d.opset >= 6 else 1, 4)
    repeats_is, repeats = d.once(lambda: ints([d.pick([0, 1, 1, 2, 3]) for _ in range(rank)]))
    return d.node(lambda: [d.full(d.dims(rank, most=200)), repeats()], {}, constant((1, repeats_is)))


@op("Pad")
def pad(d):
    rank = d.rank(1)
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if d.opset >= 19 else [])
    mode = d.pick(modes)
    axes = d.axes(rank, 1) if d.opset >= 18 and d.chance(0.5) else None
    places = [a % rank for a in axes] if axes is not None else list(range(rank))
    if len(set(places)) != len(places):
        raise Skip

    def make():
        """Pads of the axes; a negative one takes cells away."""
        low = -1 if mode in ("constant", "edge") else 0
        return [d.between(low, 2) for _ in range(2 * len(places))]

    pads_is, pads = d.once(make)
    attributes = {"mode": mode} if mode != "constant" or d.chance(0.5) else {}
    inputs = d.opset >= 11
    value = mode == "constant" and d.chance(0.6)
    kind = d.dtype
    if not inputs:
        pads_is, fixed = True, make()
        pads = lambda: fixed
        attributes["pads"] = fixed
        if value:
            attributes["value"] = d.real(-2, 2)
    value_is, number = d.once(lambda: d.small([], kind))

    def arrays():
        p = pads()
        dims = d.dims(rank)
        for i, axis in enumerate(places):
            begin, end = p[i], p[i + len(places)]
            least = max(0, -begin) + max(0, -end)
            if mode == "reflect":
                least = max(least, max(begin, end) + 1)
            elif mode != "constant":
                least = max(least + 1, begin, end)
            dims[axis] = max(dims[axis], least)
        x = [d.full(dims)]
        if inputs:
            x += [ints(p), number() if value else None]
            if axes is not None:
                x.append(ints(axes))
        return x

    return d.node(arrays, attributes, constant((1, inputs and pads_is), (2, inputs and value and value_is), (3, inputs and axes is not None)))


@op("Slice")
def slices(d):
    rank = d.rank(1)
    places = d.axes(rank, 1, d.opset >= 10)
    with_axes = d.chance(0.7)
    if not with_axes:
        places = list(range(d.between(1, rank) if d.opset >= 10 else rank))
    far = INT64_MAX

    def bounds():
        steps = [d.pick([1, 1, 2, 3, -1, -2, far, -far]) if d.opset >= 10 else 1 for _ in places]
        starts = [d.pick([0, 0, 1, 2, -1, -3, far, -far]) for _ in places]
        ends = [d.pick([0, 1, 3, -1, 100, far, -far, -far - 1]) for _ in places]
        return starts, ends, steps

    if d.opset < 10:
        starts, ends, _ = bounds()
        attributes = {"starts": starts, "ends": ends, **({"axes": [a % rank for a in places]} if with_axes else {})}
        return d.node(lambda: [d.full(d.dims(rank))], attributes)
    with_steps = d.chance(0.7)
    is_constant, now = d.once(bounds)
    kind = np.dtype(np.int64) if d.chance(0.7) else np.dtype(np.int32)

    def arrays():
        starts, ends, steps = [np.clip(np.array(v, np.int64), *limits(kind)).astype(kind) for v in now()]
        x = [d.full(d.dims(rank)), starts, ends, np.array(places, kind) if with_axes else None]
        return x + ([steps] if with_steps else [])

    flags = [(1, is_constant), (2, is_constant), (3, with_axes), (4, is_constant and with_steps)]
    return d.node(arrays, {}, constant(*flags))


@op("Split")
def split(d):
    rank = d.rank(1)
    axis = d.axis(rank, d.opset >= 11)
    attributes = {"axis": axis} if axis or d.chance(0.5) else {}
    count = d.between(1, 4)
    equal = d.chance(0.4)
    side_is, sizes = d.once(lambda: [d.dim() for _ in range(count)])
    if d.opset < 13:
        side_is, fixed = True, sizes()
        sizes = lambda: fixed
    if not equal and d.opset < 13:
        attributes["split"] = fixed
    if equal and d.opset >= 18:
        attributes["num_outputs"] = count

    def arrays():
        dims = d.dims(rank)
        if not equal:
            each = sizes()
            dims[axis] = sum(each)
            return [d.full(dims)] + ([ints(each)] if d.opset >= 13 else [])
        dims[axis] = count * d.between(0, 4)
        if d.opset >= 18 and dims[axis] and d.chance(0.4):
            chunk = dims[axis] // count
            dims[axis] -= d.between(0, chunk - 1)  # the last part is smaller
        return [d.full(dims)]

    return d.node(arrays, attributes, constant((1, not equal and d.opset >= 13 and side_is)), outputs=count)


@op("Concat")
def concat(d):
    rank = d.rank(1)
    axis = d.axis(rank, d.opset >= 11)
    count = d.between(1, 4)

    def arrays():
        dims = d.dims(rank)
        return [d.full(dims[:axis % rank] + [d.dim()] + dims[axis % rank + 1:]) for _ in range(count)]

    return d.node(arrays, {"axis": axis})


@op("Transpose")
def transpose(d):
    rank = d.rank()
    attributes = {"perm": [int(i) for i in d.random.permutation(rank)]} if rank and d.chance(0.8) else {}
    return d.node(lambda: [d.full(d.dims(rank))], attributes)


@op("Squeeze")
def squeeze(d):
    rank = d.rank(0, 5)
    negative = d.opset >= 11
    axes = d.axes(rank, 1, negative) if rank else []
    if not axes or d.chance(0.2):  # which dims are 1 decides the rank
        fixed = [d.pick([1, 2, 3]) for _ in range(rank)]
        return d.node(lambda: [d.full(fixed)])

    def arrays():
        dims = d.dims(rank)
        for axis in axes:
            dims[axis] = 1
        return [d.full(dims)] + ([ints(axes)] if d.opset >= 13 else [])

    return d.node(arrays, {} if d.opset >= 13 else {"axes": axes}, [1] if d.opset >= 13 else [])


@op("Unsqueeze")
def unsqueeze(d):
    rank, more = d.rank(0, 3), d.between(1, 2)
    places = [int(a) for a in d.random.permutation(rank + more)[:more]]
    axes = [a - rank - more if d.opset >= 11 and d.chance(0.4) else a for a in places]
    if d.opset < 13:
        return d.node(lambda: [d.full(d.dims(rank))], {"axes": axes})
    return d.node(lambda: [d.full(d.dims(rank)), ints(axes)], {}, [1])


@op("Flatten")
def flatten(d):
    rank = d.rank(0 if d.opset >= 9 else 1)
    axis = d.between(-rank if d.opset >= 11 else 0, rank)
    return d.node(lambda: [d.full(d.dims(rank))], {"axis": axis} if axis != 1 or d.chance(0.5) else {})


@op("Shape", "Size")
def shape(d):
    rank = d.rank()
    attributes = {}
    if d.op == "Shape" and d.opset >= 15:
        attributes = {k: d.between(-rank - 2, rank + 2) for k in ("start", "end") if d.chance(0.5)}
    return d.node(lambda: [d.full(d.dims(rank))], attributes)


@op("DepthToSpace", "SpaceToDepth")
def blocks(d):
    size = d.between(1, 3)
    attributes = {"blocksize": size}
    if "mode" in d.schema.attributes and d.chance(0.7):
        attributes["mode"] = d.pick(["DCR", "CRD"])

    def arrays():
        n, c, h, w = [d.between(0, 3) if d.chance(0.2) else d.between(1, 3) for _ in range(4)]
        dims = [n, c * size * size, h, w] if d.op == "DepthToSpace" else [n, c, h * size, w * size]
        return [d.full(dims)]

    return d.node(arrays, attributes)


@op("Trilu")
def trilu(d):
    rank = d.rank(2, 4)
    given = d.chance(0.7)
    k_is, k = d.once(lambda: np.array(d.between(-4, 4), np.int64))
    attributes = {"upper": d.between(0, 1)} if d.chance(0.7) else {}
    return d.node(lambda: [d.full(d.dims(rank))] + ([k()] if given else []), attributes, constant((1, given and k_is)))


@op("EyeLike")
def eye_like(d):
    attributes = {"k": d.between(-4, 4)} if d.chance(0.6) else {}
    if d.chance(0.5):
        attributes["dtype"] = number_of(d.pick(d.types("T2")))
    return d.node(lambda: [d.small(d.dims(2))], attributes)


@op("ConstantOfShape")
def constant_of_shape(d):
    attributes = {}
    if d.dtype != np.float32 or d.chance(0.5):
        attributes["value"] = onnx.numpy_helper.from_array(d.small([1]), "value")
    rank = d.rank()
    is_constant, dims = d.once(lambda: ints(d.dims(rank)))
    return d.node(lambda: [dims()], attributes, constant((0, is_constant)))


@op("Range")
def arange(d):
    def bounds():
        start, delta = d.small([], low=0, high=6), d.small([], low=1, high=3)
        count = d.pick([0, 1, 2, 5, 17])
        backwards = not is_unsigned(d.dtype) and d.chance(0.4)
        delta = -delta if backwards else delta
        limit = (start + delta * np.array(count, delta.dtype)).astype(d.dtype)
        return start, limit, delta.astype(d.dtype)

    is_constant, now = d.once(bounds)
    return d.node(lambda: list(now()), {}, [0, 1, 2] if is_constant else [], exact=is_int(d.dtype))


@op("Constant")
def constant_node(d):
    attributes = {"value": onnx.numpy_helper.from_array(d.small(d.dims(d.rank())), "value")}
    if d.opset >= 12 and d.dtype in (np.float32, np.int64) and d.chance(0.5):
        name = d.pick(["value_float", "value_floats"] if d.dtype == np.float32 else ["value_int", "value_ints"])
        number = d.real(-4, 4) if "float" in name else d.between(-9, 9)
        attributes = {name: [number, number + 1] if name.endswith("s") else number}
    return d.node(lambda: [], attributes)


@op("CenterCropPad")
def center(d):
    rank = d.rank(1)
    kind = d.input_type(1)
    axes = d.axes(rank, 1) if d.chance(0.5) else None
    is_constant, target = d.once(lambda: np.array([d.between(1, 6) for _ in range(rank if axes is None else len(axes))], kind))
    return d.node(lambda: [d.full(d.dims(rank, 1)), target()], {} if axes is None else {"axes": axes}, constant((1, is_constant)))


@op("OneHot")
def one_hot(d):
    rank = d.rank(0, 3)
    depth_type, value_type = d.input_type(1), d.input_type(2)
    attributes = {"axis": d.between(-rank - 1, rank)} if d.chance(0.7) else {}
    flat = d.chance(0.3)

    def make():
        n = d.between(1, 6)
        return np.array([n] if flat else n).astype(depth_type)

    is_constant, depth = d.once(make)
    values_is, values = d.once(lambda: d.small([2], value_type))

    def arrays():
        n = depth()
        top = int(np.ravel(n)[0])
        low = 0 if is_unsigned(d.dtype) or d.opset < 11 else -top
        return [d.small(d.dims(rank, most=200), low=low, high=top - 1 if d.opset < 11 else top + 1, whole=True), n, values()]

    return d.node(arrays, attributes, constant((1, is_constant), (2, values_is)))


# --- selection --------------------------------------------------------------------------------------------------------


def index(d, dims, length, kind, negative):
    """Indices into an axis of that length; there are none if it is empty."""
    return d.random.integers(-length if negative else 0, length - 1, dims, endpoint=True).astype(kind)


@op("Gather")
def gather(d):
    rank, other = d.rank(1, 3), d.rank(0, 2)
    axis, kind = d.axis(rank, d.opset >= 11), d.input_type(1)
    attributes = {"axis": axis} if axis or d.chance(0.5) else {}
    is_constant = d.chance(0.3)
    fixed = index(d, d.dims(other, 1, 30), 3, kind, d.opset >= 11)

    def arrays():
        dims = d.dims(rank, most=300)
        if is_constant:
            dims[axis] = max(3, dims[axis])
            return [d.full(dims), fixed]
        picked = d.dims(other, most=30)
        if math.prod(picked):
            dims[axis] = max(1, dims[axis])
        length = max(1, dims[axis])
        return [d.full(dims), index(d, picked, length, kind, d.opset >= 11)]

    return d.node(arrays, attributes, [1] if is_constant else [])


@op("GatherElements")
def gather_elements(d):
    rank = d.rank(1)
    axis, kind = d.axis(rank), d.input_type(1)

    def arrays():
        dims = d.dims(rank, most=300)
        picked = [d.between(min(1, n), n) for n in dims]
        picked[axis] = d.dim() if dims[axis] else 0
        return [d.full(dims), index(d, picked, max(1, dims[axis]), kind, True)]

    return d.node(arrays, {"axis": axis} if axis or d.chance(0.5) else {})


@op("GatherND")
def gather_nd(d):
    rank = d.rank(1)
    other = d.rank(1, 3)
    batch = d.between(0, min(rank, other) - 1) if d.opset >= 12 and d.chance(0.5) else 0
    depth = d.between(1, rank - batch)

    def arrays():
        dims = d.dims(rank, 0 if d.chance(0.2) else 1, 300)
        lead = dims[:batch] + d.dims(other - 1 - batch, most=30)
        if math.prod(lead):
            dims = [max(1, n) if batch <= i < batch + depth else n for i, n in enumerate(dims)]
        columns = [index(d, lead, max(1, dims[batch + i]), np.int64, True) for i in range(depth)]
        return [d.full(dims), np.stack(columns, axis=-1)]

    return d.node(arrays, {"batch_dims": batch} if batch or d.opset >= 12 and d.chance(0.3) else {})


def reduction(d):
    """An attribute of scatter operators: what happens to the cells."""
    kinds = ["none"] + (["add", "mul"] if d.opset >= 16 else []) + (["max", "min"] if d.opset >= 18 else [])
    kind = d.pick(kinds)
    # Sums of truth values have no meaning.
    return "none" if is_bool(d.dtype) else kind


@op("Scatter", "ScatterElements")
def scatter_elements(d):
    rank = d.rank(1)
    axis, kind = d.axis(rank, d.opset >= 11), d.input_type(1)
    how = reduction(d) if d.op == "ScatterElements" else "none"
    attributes = ({"axis": axis} if axis or d.chance(0.5) else {}) | ({"reduction": how} if how != "none" else {})

    def arrays():
        dims = d.dims(rank, most=300)
        picked = [d.between(min(1, n), n) for n in dims]
        length = dims[axis]
        where = index(d, picked, max(1, length), kind, d.opset >= 11)
        if how == "none" and where.size:
            lines = np.argsort(d.random.random(picked[:axis % rank] + [length] + picked[axis % rank + 1:]), axis=axis)
            lines = np.take(lines, range(picked[axis]), axis)
            where = np.where((where < 0), lines - length, lines).astype(kind)
        low, high = (-2, 2) if how == "mul" else (-6, 6)
        return [d.small(dims, low=low, high=high), where, d.small(picked, low=low, high=high)]

    return d.node(arrays, attributes, exact=how in ("none", "max", "min"))


@op("ScatterND")
def scatter_nd(d):
    rank, other = d.rank(1), d.rank(1, 3)
    depth = d.between(1, rank)
    how = reduction(d)

    def arrays():
        dims = d.dims(rank, 1, 300)
        lead = d.dims(other - 1, most=30)
        cells = math.prod(dims[:depth])
        count = math.prod(lead)
        if how == "none":
            while count > cells:
                lead[int(np.argmax(lead))] = 1
                count = math.prod(lead)
        chosen = d.random.permutation(cells)[:count] if how == "none" else d.random.integers(0, cells, count)
        columns = np.stack(np.unravel_index(chosen, dims[:depth]), -1).reshape(lead + [depth]).astype(np.int64)
        columns = np.where(d.random.random(columns.shape) < 0.3, columns - ints(dims[:depth]), columns)
        low, high = (-2, 2) if how == "mul" else (-6, 6)
        return [d.small(dims, low=low, high=high), columns, d.small(lead + dims[depth:], low=low, high=high)]

    return d.node(arrays, {"reduction": how} if how != "none" else {}, exact=how in ("none", "max", "min"))


@op("Compress")
def compress(d):
    rank = d.rank(1)
    axis = d.axis(rank, d.opset >= 11) if d.chance(0.7) else None

    def arrays():
        dims = d.dims(rank)
        length = math.prod(dims) if axis is None else dims[axis]
        return [d.full(dims), d.small([length if d.chance(0.6) else d.between(0, length)], np.bool_)]

    return d.node(arrays, {} if axis is None else {"axis": axis})


@op("NonZero")
def non_zero(d):
    rank = d.rank(0 if d.chance(0.2) else 1)
    return d.node(lambda: [d.small(d.dims(rank), low=0 if is_unsigned(d.dtype) else -1, high=1, whole=True)])


@op("TopK")
def top_k(d):
    rank = d.rank(1)
    axis = d.axis(rank, d.opset >= 11)
    attributes = {"axis": axis} if axis != -1 or d.chance(0.5) else {}
    ordered = True
    if d.opset >= 11:
        attributes |= {"largest": d.between(0, 1)} if d.chance(0.7) else {}
        ordered = d.chance(0.8)
        attributes |= {} if ordered else {"sorted": 0}
    is_constant, wanted = d.once(lambda: d.between(0 if d.chance(0.2) else 1, 4))
    if d.opset < 10:
        is_constant, fixed = True, d.between(1, 4)
        wanted = lambda: fixed
        attributes["k"] = fixed

    def arrays():
        dims = d.dims(rank)
        k = wanted()
        dims[axis] = max(k, dims[axis])
        x = d.small(dims)
        if not ordered:  # which of equals is taken, and where it stands, is open
            x = d.random.permutation(math.prod(dims)).reshape(dims) if math.prod(dims) < 100 else d.small(dims, np.int8)
            x = x.astype(d.dtype)
        return [x] + ([ints([k])] if d.opset >= 10 else [])

    return d.node(arrays, attributes, constant((1, d.opset >= 10 and is_constant)), outputs=2, sets=[] if ordered else [0, 1])


@op("Unique")
def unique(d):
    rank = d.rank(1, 3)
    attributes = {"axis": d.axis(rank)} if d.chance(0.6) else {}
    attributes |= {"sorted": d.between(0, 1)} if d.chance(0.6) else {}
    return d.node(lambda: [d.small(d.dims(rank, 1, 60), low=-1, high=2, whole=True)], attributes, outputs=d.between(1, 4))


@op("ReverseSequence")
def reverse_sequence(d):
    rank = d.rank(2)
    attributes = d.pick([{}, {"batch_axis": 1, "time_axis": 0}, {"batch_axis": 0, "time_axis": 1}])
    batch, time = attributes.get("batch_axis", 1), attributes.get("time_axis", 0)

    def arrays():
        dims = d.dims(rank)
        dims[time] = max(1, dims[time])
        return [d.full(dims), d.random.integers(1, dims[time], dims[batch], endpoint=True).astype(np.int64)]

    return d.node(arrays, attributes)


@op("TensorScatter")
def tensor_scatter(d):
    rank = d.rank(2)
    axis = d.between(1, rank - 1) - (rank if d.chance(0.5) else 0)
    attributes = {"axis": axis} if axis != -2 or d.chance(0.5) else {}
    if rank == 2 and "axis" not in attributes:
        attributes["axis"] = 1
    mode = d.pick(["linear", "circular"])
    attributes |= {"mode": mode} if mode != "linear" or d.chance(0.5) else {}
    at = attributes.get("axis", -2) % rank
    given = d.chance(0.7)

    def arrays():
        dims = d.dims(rank, 1)
        length = d.between(1, dims[at])
        x = [d.full(dims), d.full(dims[:at] + [length] + dims[at + 1:])]
        top = dims[at] - length if mode == "linear" else dims[at] - 1
        return x + ([d.random.integers(0, top, dims[0], endpoint=True)] if given else [])

    return d.node(arrays, attributes)


# --- others -----------------------------------------------------------------------------------------------------------

EQUATIONS = ["ij->ji", "ij,jk->ik", "ij,jk", "bij,bjk->bik", "ii->i", "ii", "ij->", "i,j->ij", "...ij,...jk->...ik", "ijk->ki", "ij,ij->i",
             "a b , b -> a", "...i->...", "ij,jk,kl->il", "i,i", "b...,b...->...", ",i->i", "iji->j", "ijkl->"]


@op("Einsum")
def einsum(d):
    equation = d.pick(EQUATIONS)
    terms = equation.replace(" ", "").split("->")[0].split(",")
    more = d.rank(0, 2)

    def arrays():
        sizes = {}
        result = []
        extra = d.dims(more, most=20)
        for term in terms:
            dims = []
            for label in term.replace("...", "*"):
                dims += extra if label == "*" else [sizes.setdefault(label, min(9, d.dim()))]
            result.append(d.small(dims, low=-3, high=3))
        return result

    return d.node(arrays, {"equation": equation}, exact=False, tolerance=4)


@op("Det")
def determinant(d):
    rank = d.rank(2, 4)

    def arrays():
        dims, n = d.dims(rank - 2, most=20), d.between(0 if d.chance(0.2) else 1, 5)
        return [(d.small(dims + [n, n], low=-2, high=2) + 3 * np.eye(n)).astype(d.dtype)]

    return d.node(arrays, exact=False, tolerance=4)


# --- images -----------------------------------------------------------------------------------------------------------


@op("MaxPool")
def max_pool(d):
    axes = d.between(1, 3)
    both = d.opset >= 8 and d.chance(0.6)
    kernel = [d.between(1, 3) for _ in range(axes)]
    attributes = {"kernel_shape": kernel}
    if d.chance(0.6):
        attributes["strides"] = [d.between(1, 3) for _ in range(axes)]
    if d.opset >= 10 and d.chance(0.4):
        attributes["dilations"] = [d.between(1, 2) for _ in range(axes)]
    if d.opset >= 10 and d.chance(0.4):
        attributes["ceil_mode"] = 1
    padding = d.pick(["", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if padding == "pads":
        attributes["pads"] = [d.between(0, k - 1) for k in kernel * 2]
    elif padding:
        attributes["auto_pad"] = padding
    if both and d.chance(0.5):
        attributes["storage_order"] = 1

    def arrays():
        spans = [(k - 1) * dilation + 1 for k, dilation in zip(kernel, attributes.get("dilations", [1] * axes))]
        dims = d.dims(2, most=6) + [d.between(s, 9) for s in spans]
        return [d.small(dims)]

    return d.node(arrays, attributes, outputs=2 if both else 1)


@op("GlobalLpPool")
def global_lp_pool(d):
    axes = d.between(1, 3)
    p = d.pick([1, 2, 3])
    return d.node(lambda: [d.small(d.dims(axes + 2, 1, 300))], {"p": p} if p != 2 or d.chance(0.5) else {}, exact=False, tolerance=4)


@op("MaxUnpool")
def max_unpool(d):
    axes = d.between(1, 3)
    kernel = [d.between(1, 3) for _ in range(axes)]
    attributes = {"kernel_shape": kernel}
    strides, pads = [1] * axes, [0] * 2 * axes
    if d.chance(0.8):
        attributes["strides"] = strides = [d.between(1, 3) for _ in range(axes)]
    if d.chance(0.3):
        attributes["pads"] = pads = [d.between(0, 1) if k > 2 else 0 for k in kernel * 2]
    shaped = d.chance(0.4)
    known = shaped and d.chance(0.5)
    fixed = d.dims(2, 1, 6) + [d.between(2, 4) for _ in range(axes)]
    more = [0, 0] + [d.between(0, 2) for _ in range(axes)]

    def arrays():
        dims = fixed if known else d.dims(2, 1, 6) + [d.between(2, 4) for _ in range(axes)]
        out = dims[:2] + [(dims[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + axes] for i in range(axes)]
        count, room = math.prod(dims), math.prod(out)
        places = d.random.permutation(room)[:count] if count <= room else d.random.integers(0, room, count)
        x = d.small(dims)
        if count > room:  # the last one of those in one place stays
            x = np.ones_like(x)
        return [x, places.astype(np.int64).reshape(dims)] + ([ints(out) + ints(more)] if shaped else [])

    return d.node(arrays, attributes, constant((2, known)))


@op("Resize")
def resize(d):
    kinds = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + ["tf_crop_and_resize"] * 2 + ["half_pixel_symmetric"] * (d.opset >= 19)
    how = d.pick(kinds) if d.opset >= 11 else "asymmetric"
    crops = how == "tf_crop_and_resize"
    mode = d.pick(["nearest", "linear"] + ["cubic"] * (d.opset >= 11)) if is_float(d.dtype) else "nearest"
    attributes = {"mode": mode} | ({"coordinate_transformation_mode": how} if d.opset >= 11 else {})
    if mode == "nearest" and d.opset >= 11 and d.chance(0.6):
        attributes["nearest_mode"] = d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic" and d.chance(0.5):
        attributes |= {"cubic_coeff_a": d.pick([-0.5, -0.75])} | ({"exclude_outside": 1} if not crops else {})
    if crops and d.chance(0.5):
        attributes["extrapolation_value"] = float(d.between(0, 4))
    by_sizes = d.opset >= 11 and d.chance(0.6)
    if d.opset >= 18 and by_sizes and not crops and d.chance(0.6):
        attributes["keep_aspect_ratio_policy"] = d.pick(["not_larger", "not_smaller"])
    axes = d.pick([[], [2, 3], [3, 2]]) if d.opset >= 18 else []
    attributes |= {"axes": axes} if axes else {}
    known = d.chance(0.4)
    fixed = [d.pick([1, 2, 0.5, 1.5, 3]) for _ in range(2)], [d.between(1, 9) for _ in range(2)]

    def arrays():
        dims = d.dims(4, 2, 400)
        scales, sizes = fixed if known else ([d.pick([1, 2, 0.5, 1.5, 3]) for _ in range(2)], [d.between(1, 9) for _ in range(2)])
        if by_sizes and known and not axes:
            dims[:2] = [2, 3]
        scales, sizes = [scales if axes else [1, 1, *scales], sizes if axes else [*dims[:2], *sizes]]
        count = len(sizes)
        roi = np.concatenate([d.random.integers(-1, 3, count) / 8, d.random.integers(5, 10, count) / 8]).astype(np.float32)
        if not axes:
            roi[[0, 1, count, count + 1]] = [0, 0, 1, 1]
        scales = np.array(scales, np.float32)
        if d.opset < 11:
            return [d.small(dims), scales]
        none = np.zeros(0, np.float32) if d.opset < 13 else None
        return [d.small(dims), roi if crops else none] + ([none, ints(sizes)] if by_sizes else [scales])

    if d.opset < 11:
        return d.node(arrays, attributes, constant((1, known)), exact=mode == "nearest", tolerance=4)
    missing = [1] * (d.opset < 13 and not crops) + [2] * (d.opset < 13 and by_sizes)
    return d.node(arrays, attributes, missing + constant((3 if by_sizes else 2, known)), exact=mode == "nearest", tolerance=4)


@op("GridSample")
def grid_sample(d):
    axes = 2 if d.opset < 20 else d.pick([1, 2, 2, 2, 3])
    mode = d.pick(["nearest", "linear", "linear", "cubic"])
    attributes = {"mode": {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode) if d.opset < 20 else mode}
    if mode == "linear" and d.chance(0.3):
        attributes = {}
    padding = d.pick(["zeros", "border", "reflection"])
    attributes |= {"padding_mode": padding} if padding != "zeros" or d.chance(0.5) else {}
    # Where a step rounds, positions lie on quarters, so that it makes no difference.
    exact = mode == "nearest" or not is_float(d.dtype)
    align = 0 if exact else d.between(0, 1)
    attributes |= {"align_corners": align} if align or d.chance(0.3) else {}
    grid_type = d.dtype if d.dtype in d.types("T2") and d.chance(0.7) else d.input_type(1)

    def arrays():
        dims = d.dims(2, most=4) + [d.pick([1, 2, 4, 8]) if exact else d.between(1, 6) for _ in range(axes)]
        out = d.dims(axes, most=40)
        places = d.random.integers(-12, 40, [dims[0], *out, axes]) / 4
        sizes = np.array(dims[:1:-1], np.float64)
        grid = (2 * places + 1) / sizes - 1 if exact else d.random.uniform(-2.5, 2.5, places.shape)
        return [d.small(dims), grid.astype(grid_type)]

    return d.node(arrays, attributes, exact=exact, tolerance=4)


@op("AffineGrid")
def affine_grid(d):
    axes = d.between(2, 3)
    known = d.chance(0.5)
    fixed = [d.between(1, 3), 1] + [d.between(1, 5) for _ in range(axes)]
    align = d.between(0, 1)

    def arrays():
        size = fixed if known else [d.between(1, 3), 1] + [d.between(2 if d.chance(0.8) else 1, 5) for _ in range(axes)]
        return [d.small([size[0], axes, axes + 1], low=-2, high=2), ints(size)]

    return d.node(arrays, {"align_corners": align} if align or d.chance(0.5) else {}, constant((1, known)), exact=False, tolerance=2)


@op("RoiAlign")
def roi_align(d):
    attributes = {"output_height": d.pick([1, 2, 4]), "output_width": d.pick([1, 2, 4])} if d.chance(0.8) else {}
    attributes |= {"sampling_ratio": d.pick([0, 1, 2, 4])} if d.chance(0.7) else {}
    attributes |= {"spatial_scale": d.pick([0.25, 0.5, 1.0, 2.0])} if d.chance(0.7) else {}
    attributes |= {"mode": d.pick(["avg", "max"])} if d.chance(0.6) else {}
    if d.opset >= 16 and d.chance(0.6):
        attributes["coordinate_transformation_mode"] = d.pick(["half_pixel", "output_half_pixel"])

    def arrays():
        dims = d.dims(2, 1, 6) + [d.between(1, 7), d.between(1, 7)]
        count = d.between(0 if d.chance(0.2) else 1, 4)
        corners = d.random.integers(-4, 24, [count, 2, 2]) / 2
        if d.chance(0.8):
            corners = np.sort(corners, 1)
        return [d.small(dims), corners.reshape(count, 4).astype(d.dtype), d.random.integers(0, dims[0], count)]

    return d.node(arrays, attributes, exact=False, tolerance=4)


@op("DeformConv")
def deform_conv(d):
    axes = d.pick([1, 2, 2, 2, 3])
    kernel = [d.between(1, 3) for _ in range(axes)]
    attributes = {"kernel_shape": kernel} if d.chance(0.4) else {}
    strides, dilations, pads = [1] * axes, [1] * axes, [0] * 2 * axes
    if d.chance(0.5):
        attributes["strides"] = strides = [d.between(1, 2) for _ in range(axes)]
    if d.chance(0.4):
        attributes["dilations"] = dilations = [d.between(1, 2) for _ in range(axes)]
    if d.chance(0.5):
        attributes["pads"] = pads = [d.between(0, 2) for _ in range(2 * axes)]
    groups, shared = d.pick([1, 1, 2]), d.pick([1, 1, 2])
    attributes |= ({"group": groups} if groups > 1 else {}) | ({"offset_group": shared} if shared > 1 else {})
    channels, filters = 2 * d.between(1, 2), 2 * d.between(1, 2)
    has_bias, has_mask = d.chance(0.5), d.chance(0.5)
    weights = d.small([filters, channels // groups, *kernel], low=-2, high=2)
    known = d.chance(0.6)

    def arrays():
        sizes = [(k - 1) * dilation + 1 + d.between(0, 3) for k, dilation in zip(kernel, dilations)]
        out = [(s + pads[i] + pads[i + axes] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, s in enumerate(sizes)]
        batch, cells = d.between(1, 2), math.prod(kernel)
        offset = d.small([batch, shared * cells * axes, *out], low=-3, high=3)
        w = weights if known else d.small(weights.shape, low=-2, high=2)
        bias = d.small([filters]) if has_bias else None
        mask = d.small([batch, shared * cells, *out], low=0, high=2) if has_mask else None
        tail = [bias, mask] if has_mask else [bias] if has_bias else []
        return [d.small([batch, channels, *sizes], low=-3, high=3), w, offset, *tail]

    return d.node(arrays, attributes, constant((1, known)), exact=False, tolerance=8)


@op("NonMaxSuppression")
def non_max_suppression(d):
    centered = d.between(0, 1)
    count = d.between(2, 5)
    known = [d.chance(0.5) for _ in range(3)]
    dims = [[], [1]][d.between(0, 1)]
    fixed = [np.full(dims, d.pick([0, 1, 2, 3, 100]), np.int64), np.full(dims, d.pick([0, 0.25, 0.5, 1]), np.float32), np.full(dims, d.pick([-1, 0, 0.5]), np.float32)]

    def arrays():
        batch, classes, boxes = d.between(1, 2), d.between(1, 3), d.between(0 if d.chance(0.1) else 1, 12)
        corners = d.random.integers(0, 12, [batch, boxes, 4]) / 2
        scores = d.random.integers(-2, 9, [batch, classes, boxes]) / 8
        limits = [fixed[0] if known[0] else np.full(dims, d.between(0, 5), np.int64),
                  fixed[1] if known[1] else np.full(dims, d.pick([0, 0.25, 0.5]), np.float32),
                  fixed[2] if known[2] else np.full(dims, d.pick([-1, 0.25, 0.5]), np.float32)]
        return [corners.astype(np.float32), scores.astype(np.float32), *limits[:count - 2]]

    return d.node(arrays, {"center_point_box": centered} if centered or d.chance(0.3) else {}, constant(*((2 + i, k) for i, k in enumerate(known[:count - 2]))))
