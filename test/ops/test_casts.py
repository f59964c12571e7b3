#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts between all element types: every code of the types of up to 16 bits, and many values of the wider ones.

    test/ops/test_casts.py --build build/dev [--jobs 2] [--json FILE] [--filter REGEX]

What is right is computed here, from the values of all codes of the result's type and the tables of ONNX Cast: rounding happens once,
to nearest even, from the exact value. Where ONNX leaves it open, as lib/IR/Cast.cpp says. What ml_dtypes and the ONNX reference give
must be the same wherever they follow those tables.
One model for each type moves elements: their bytes must come out as they went in, whatever is packed on the way in and out.
Another one is for casts: an input, and casts of it to all types; in some, a few elements stand as constants too, so that what the compiler
computes is compared with what kernels compute.
"""

import argparse
import contextlib
import functools
import pathlib
import sys
import time
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops.op_cast import cast_to

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver

warnings.simplefilter("ignore")  # of casts out of range
OPSET, SECONDS = 25, 300
INTEGERS = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "INT4", "UINT4", "INT2", "UINT2"]
FLOATS = ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"]
SATURATING = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]
SMALL = [*SATURATING, "FLOAT4E2M1", "FLOAT8E8M0"]
TYPES = [*INTEGERS, *FLOATS, *SMALL, "BOOL"]


def number(name):
    return getattr(TensorProto, name)


def dtype(name):
    return helper.tensor_dtype_to_np_dtype(number(name))


def width(name):
    return {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}.get(name, dtype(name).itemsize * 8)


def codes(name, array):
    """The bits of the elements, as an unsigned type."""
    array = np.ascontiguousarray(array)
    if array.dtype != dtype(name):  # a shape
        return array
    return array.view(f"u{array.dtype.itemsize}") & np.uint64(2 ** width(name) - 1).astype(f"u{array.dtype.itemsize}")


@functools.cache
def all_values(name):
    """All values of a type of up to 16 bits, in the order of their codes."""
    if name == "BOOL":
        return np.array([False, True])
    raw = np.arange(2 ** width(name), dtype=f"u{dtype(name).itemsize}")
    if name in ("INT4", "INT2"):  # ml_dtypes keeps them sign-extended
        return raw.astype(np.int8).astype(dtype(name))
    return raw.view(dtype(name))


@functools.cache
def inputs(name):
    """What is cast."""
    if name == "BOOL" or width(name) <= 16:
        return all_values(name) if name not in ("INT16", "UINT16") else np.append(all_values(name)[::13], all_values(name)[-1:])
    random = np.random.default_rng(width(name))
    if name in INTEGERS:
        low, high = np.iinfo(dtype(name)).min, np.iinfo(dtype(name)).max
        values = {low, low + 1, high - 1, high, 0}
        for shift in range(64):
            values |= {sign * ((1 << shift) + more) for more in (-1, 0, 1) for sign in (-1, 1)}
            values |= {sign * ((3 << shift) + more) for more in (-1, 0, 1) for sign in (-1, 1)}
            values |= {(257 << shift) + more for more in (-1, 0, 1)}  # halfway between two bfloat16
        values = [v for v in values if low <= v <= high]
        return np.concatenate([np.array(values, dtype(name)), random.integers(low, high, 500, dtype(name), endpoint=True)])
    # All numbers of the narrow types, what lies halfway between two of them, and their neighbours; any bits.
    parts = []
    for narrow in (*SMALL, "BFLOAT16", "FLOAT16"):
        exact = np.unique(np.abs(all_values(narrow).astype(np.float64)))
        exact = exact[np.isfinite(exact)]
        if width(narrow) == 16:
            exact = exact[::37]
        parts += [exact, (exact[1:] + exact[:-1]) / 2, [exact[-1] * 1.02, exact[-1] * 1.1, exact[-1] * 1.3, exact[-1] * 2, exact[1] / 2, exact[1] / 4]]
    bound = np.exp2(np.arange(66.0))
    parts += [bound, bound - 0.5, bound + 0.5, bound + 1, 100 * random.standard_normal(500), np.exp(40 * random.standard_normal(500))]
    exact = np.concatenate(parts).astype(dtype(name))
    exact = np.concatenate([exact, np.nextafter(exact, dtype(name).type(np.inf)), np.nextafter(exact, dtype(name).type(0))])
    bits = random.integers(0, 2 ** width(name), 1000, np.uint64, endpoint=False).astype(f"u{dtype(name).itemsize}").view(dtype(name))
    special = np.array([np.nan, np.inf], dtype(name))
    positive = np.concatenate([exact, bits, special])
    return np.concatenate([positive, -positive])


@functools.cache
def grid(name):
    """(the finite numbers >= 0 of a float type, their codes), in order."""
    values = all_values(name).astype(np.float64)
    index = np.flatnonzero(np.isfinite(values) & ~np.signbit(values))
    index = index[np.argsort(values[index])]
    return values[index], index


def nearest(name, x):
    """Codes of the nearest numbers of a float type to x >= 0; the even code of two. What lies above all gets `len`."""
    values, index = grid(name)
    last = 2 * values[-1] - values[-2]  # what would follow
    ends = np.append(values, last)
    middles = (ends[1:] + ends[:-1]) / 2
    place = np.searchsorted(middles, x, side="left")  # x == middle: below it
    tie = (place < len(middles)) & (x == middles[np.minimum(place, len(middles) - 1)])
    return place + (tie & (place % 2 == 1)), index


def to_small(name, x, saturate):
    """Codes of float64 numbers in one of the types of 4 and 8 bits with a sign."""
    e5m2, e2m1, zero_is_one = name == "FLOAT8E5M2", name == "FLOAT4E2M1", name.endswith("FNUZ")
    place, index = nearest(name, np.where(np.isnan(x), 0, np.abs(x)))
    high = place >= len(index)
    code = index[np.minimum(place, len(index) - 1)].astype(np.uint8)
    if not (saturate or e2m1):
        code[high] = {"FLOAT8E4M3FN": 0x7f, "FLOAT8E5M2": 0x7c}.get(name, 0x80)
    code[np.isnan(x)] = 0x80 if zero_is_one else 0 if e2m1 else 0x7e if e5m2 else 0x7f
    sign = np.signbit(x) & ~(zero_is_one & np.isin(code, (0, 0x80))) & ~(e2m1 & np.isnan(x))
    return np.where(sign, code | (8 if e2m1 else 0x80), code).astype(np.uint8)


def to_power(x, saturate, mode):
    """Codes of numbers, given as (mantissa in [1, 2), exponent), in float8e8m0."""
    fraction, exponent, nan, infinite, zero = x
    up = {"up": fraction > 1, "nearest": fraction >= 1.5, "down": False & (fraction > 1)}[mode]
    code = exponent + 127 + up
    small, large = zero | (exponent < -127), infinite | (code > 254)
    code = np.where(small, 0 if saturate else 255, np.where(large, 254 if saturate else 255, code))
    return np.where(nan, 255, code).astype(np.uint8)


def split(x):
    """Numbers (float64, or integers as Python has them) for to_power, without their sign."""
    if x.dtype != object:
        fraction, exponent = np.frexp(np.abs(x))
        return fraction * 2, exponent - 1, np.isnan(x), np.isinf(x), x == 0
    exponent = np.array([abs(v).bit_length() - 1 for v in x])
    fraction = np.array([1 if v == 0 else 1 if abs(v) == 1 << abs(v).bit_length() - 1 else 1.5 if abs(v) * 2 >= 3 << abs(v).bit_length() - 1 else 1.25
                         for v in x], np.float64)
    no = np.zeros(len(x), bool)
    return fraction, exponent, no, no, x == 0


def to_integer(name, x):
    """Integers as the codes of an integer type: the low bits."""
    mask = 2 ** width(name) - 1
    x = np.array([int(v) & mask for v in x], np.uint64) if x.dtype == object else x & np.uint64(mask)
    return x.astype(f"u{dtype(name).itemsize}")


def truncated(name, x):
    """Floats as integers, the bits of an int64, before the upper ones are dropped."""
    bits = 64 if name in ("UINT32", "INT64", "UINT64") else 32
    big = (x >= 2.0 ** 63) & (name == "UINT64")
    x = np.trunc(np.where(big, x - 2.0 ** 63, x))
    inside = (x >= -2.0 ** (bits - 1)) & (x < 2.0 ** (bits - 1))
    result = np.where(inside, x, 0).astype(np.int64)
    result[~inside] = -2 ** (bits - 1)
    return result.view(np.uint64) ^ (big.astype(np.uint64) << np.uint64(63))


def to_float(name, x):
    """Floats of 16 bits and more; each rounded once."""
    if name == "FLOAT" or name == "DOUBLE":
        return codes(name, x.astype(dtype(name)) if x.dtype != object else np.array([float_of(name, int(v)) for v in x], dtype(name)))
    if x.dtype == object:  # exact in float64 up to 2^53; above, the last bit stands for all lost ones
        x = np.array([float(v) if abs(v) < 2 ** 53 else float((abs(v) >> 11 | (abs(v) & 2047 != 0)) << 11) * (1 if v > 0 else -1) for v in x])
    place, index = nearest(name, np.where(np.isnan(x), 0, np.abs(x)))
    infinity = 0x7c00 if name == "FLOAT16" else 0x7f80
    code = np.where(place >= len(index), infinity, index[np.minimum(place, len(index) - 1)])
    code = np.where(np.isnan(x), infinity + 1, code)
    return np.where(np.signbit(x), code | 0x8000, code).astype(np.uint16)


def float_of(name, value):
    return np.float64(value) if name == "DOUBLE" else np.int64(value).astype(np.float32) if value < 2 ** 63 else np.uint64(value).astype(np.float32)


def expected(source, target, x, saturate, mode):
    """Codes of the result."""
    exact = np.array([int(v) for v in x], object) if source in INTEGERS or source == "BOOL" else x.astype(np.float64)
    if target == source:
        return codes(target, x)
    if target == "BOOL":
        return (exact != 0).astype(np.uint8)
    if target == "FLOAT8E8M0":
        return to_power(split(exact), saturate, mode)
    if target in SMALL:
        return to_small(target, exact.astype(np.float64), saturate)
    if target in FLOATS:
        return to_float(target, exact)
    return to_integer(target, exact if exact.dtype == object else truncated(target, exact))


def is_nan(name, code):
    if name in FLOATS:
        return np.isnan(code.view(dtype(name)).astype(np.float64))
    return np.isnan(all_values(name)[code].astype(np.float64)) if name in SMALL else np.zeros(code.shape, bool)


def differing(name, got, want):
    """Where codes differ; a NaN is like the other."""
    return (got != want) & ~(is_nan(name, got) & is_nan(name, want))


def variants(target):
    """(saturate, round_mode) of the casts to a type."""
    if target == "FLOAT8E8M0":
        return [(s, mode) for s in (1, 0) for mode in ("up", "down", "nearest")]
    return [(1, None), (0, None)] if target in SATURATING else [(1, None)]


def casts():
    return [(target, *variant) for target in TYPES for variant in variants(target)]


def cast_node(x, result, target, saturate, mode):
    more = {} if mode is None else {"round_mode": mode}
    return helper.make_node("Cast", [x], [result], to=number(target), saturate=saturate, **more)


def model(source, constants):
    """x, and its casts; c, a list of scalars, and theirs."""
    nodes, outputs = [], []
    for i, (target, saturate, mode) in enumerate(casts()):
        nodes.append(cast_node("x", f"y{i}", target, saturate, mode))
        outputs.append(helper.make_tensor_value_info(f"y{i}", number(target), ["n"]))
    initializers = []
    for k, value in enumerate(constants):
        initializers.append(numpy_helper.from_array(np.asarray(value, dtype(source)).reshape(1), f"c{k}"))
        for i, (target, saturate, mode) in enumerate(casts()):
            nodes.append(cast_node(f"c{k}", f"y{i}_{k}", target, saturate, mode))
            outputs.append(helper.make_tensor_value_info(f"y{i}_{k}", number(target), [1]))
    graph = helper.make_graph(nodes, source, [helper.make_tensor_value_info("x", number(source), ["n"])], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=12)


def constants_of(source):
    """Few: what the compiler itself converts, if it does."""
    return {"FLOAT": [np.nan, -np.inf, -3e9, 1e20], "DOUBLE": [np.nan, 300.7], "INT64": [-2 ** 40 - 200]}.get(source, [])


def reference_faults(source, target, saturate, mode, x, want):
    """Elements for which the ONNX reference gives something else, although it follows the tables there; none if it is not asked."""
    if target in INTEGERS and source not in INTEGERS and source != "BOOL":
        exact = x.astype(np.float64)
        low, high = (-(2 ** (width(target) - 1)), 2 ** (width(target) - 1)) if target.startswith("INT") else (0, 2 ** width(target))
        defined = (exact > low - 1) & (exact < high)
    elif target == "FLOAT8E8M0":  # its reference goes through float32, treats subnormals as powers, and knows no infinity or zero
        exact = x.astype(np.float64)
        defined = (exact >= 2.0 ** -126) & (exact < 2.0 ** 127) & np.array([a == b for a, b in zip(x.astype(np.float32).tolist(), x.tolist())])
    elif target == source:  # no conversion, so that infinities stay
        return []
    elif target == "FLOAT4E2M1" and source != "DOUBLE":
        defined = ~np.isnan(x.astype(np.float64))
    elif source in INTEGERS and target in ("BFLOAT16", "FLOAT16", "FLOAT"):  # through float32 or float64, in ml_dtypes
        defined = np.array([abs(int(v)) < 2 ** 24 for v in x])
    elif source == "DOUBLE" and (target == "BFLOAT16" or target in SMALL):  # ml_dtypes goes through float32, and rounds twice
        defined = x.astype(np.float32) == x
    else:
        defined = np.ones(len(x), bool)
    try:
        got = codes(target, cast_to(x, number(target), bool(saturate), mode or "up"))
    except TypeError:  # between types that ml_dtypes does not convert
        return []
    return np.flatnonzero(defined & differing(target, got, want))


def moves(source):
    """(model, {output: function of the input}), with a constant of this type. The dims are odd, so that bytes are shared by rows."""
    kind = number(source)
    constant = all_values(source)[[-1, 1, 0, -1, 1]] if width(source) <= 16 else inputs(source)[:5]
    steps = [
        ("Transpose", ["x"], {"perm": [1, 0]}, lambda x: x.T),
        ("Reshape", ["x", "flat"], {}, lambda x: x.reshape(-1)),
        ("Flatten", ["x"], {"axis": 0}, lambda x: x.reshape(1, -1)),
        ("Unsqueeze", ["x", "first"], {}, lambda x: x[None]),
        ("Identity", ["x"], {}, lambda x: x),
        ("Identity", ["c"], {}, lambda x: constant),
        ("Constant", [], {"value": numpy_helper.from_array(constant.reshape(5, 1))}, lambda x: constant.reshape(5, 1)),
        ("ConstantOfShape", ["shape"], {"value": numpy_helper.from_array(constant[:1])}, lambda x: np.full_like(x, constant[0])),
        ("Shape", ["x"], {}, lambda x: np.array(x.shape, np.int64)),
        ("Size", ["x"], {}, lambda x: np.array(x.size, np.int64)),
    ]
    nodes = [helper.make_node("Shape", ["x"], ["shape"])]
    outputs, wanted = [], {}
    for i, (operator, operands, attributes, what) in enumerate(steps):
        name = f"{operator}{i}"
        nodes.append(helper.make_node(operator, operands, [name], **attributes))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.INT64 if operator in ("Shape", "Size") else kind, None))
        wanted[name] = what
    initializers = [numpy_helper.from_array(np.array([-1]), "flat"), numpy_helper.from_array(np.array([0]), "first"),
                    numpy_helper.from_array(constant, "c")]
    # The constant c is an input too, which nobody gives.
    operands = [helper.make_tensor_value_info("x", kind, ["n", "m"]), helper.make_tensor_value_info("c", kind, [5])]
    graph = helper.make_graph(nodes, source, operands, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=12), wanted


def check_moves(source, dlc, dlcrt, folder):
    """Failures, as (name, text)."""
    path, compiled, failures = folder / "moves.onnx", folder / "moves.dlcm", []
    made, wanted = moves(source)
    path.write_bytes(made.SerializeToString())
    answer = dlc("compile", path, "-o", compiled, "--target", "cpu:host", "--jobs", 1, seconds=SECONDS)
    if answer.exit != 0:
        return [(f"{source}_moved", answer.err.strip())]
    instance = dlcrt.Instance(dlcrt.Module(compiled))
    for dims in ((3, 5), (1, 1), (7, 4), (0, 3)):
        x = np.resize(inputs(source), dims)
        results = instance.run({"x": x})
        for name, what in wanted.items():
            want, got = what(x), results[name]
            if got.shape != want.shape or got.dtype != want.dtype or not np.array_equal(codes(source, got), codes(source, want)):
                failures.append((f"{source}_moved", f"{name} of {x.tolist()} is {got.tolist()}, not {want.tolist()}"))
    return failures


def check(source, dlc, dlcrt, folder):
    """Failures, as (name, text), and the number of casts."""
    failures, x, constants = check_moves(source, dlc, dlcrt, folder), inputs(source), constants_of(source)
    path, compiled = folder / "casts.onnx", folder / "casts.dlcm"
    path.write_bytes(model(source, constants).SerializeToString())
    answer = dlc("compile", path, "-o", compiled, "--target", "cpu:host", "--jobs", 1, seconds=SECONDS)
    if answer.exit != 0:
        return [(source, answer.err.strip())], 1
    results = dlcrt.Instance(dlcrt.Module(compiled)).run({"x": x})
    scalars = np.array([np.asarray(c, dtype(source)) for c in constants], dtype(source))
    for i, (target, saturate, mode) in enumerate(casts()):
        name = f"{source}_to_{target}" + ("" if saturate else "_no_saturate") + (f"_{mode}" if mode else "")
        for what, values, got in (("", x, results[f"y{i}"]),
                                  (" as a constant", scalars, [results[f"y{i}_{k}"][0] for k in range(len(constants))])):
            if not len(values):
                continue
            want = expected(source, target, values, saturate, mode)
            found = codes(target, np.asarray(got, dtype(target)))
            wrong = differing(target, found, want)
            if target == "FLOAT4E2M1" and source not in INTEGERS:  # either 0 stands for NaN
                wrong &= ~np.isnan(values.astype(np.float64)) | (found & 7 != 0)
            wrong = np.flatnonzero(wrong)
            if len(wrong):
                shown = ", ".join(f"{values[k]!r} -> {found[k]:#x}, not {want[k]:#x}" for k in wrong[:5])
                failures.append((name, f"{len(wrong)} of {len(values)} elements{what} are wrong: {shown}"))
            if what:
                continue
            other = reference_faults(source, target, saturate, mode, values, want)
            if len(other):
                shown = ", ".join(f"{values[k]!r} -> {want[k]:#x}" for k in other[:5])
                failures.append((name, f"this test and the ONNX reference differ in {len(other)} elements: {shown}"))
    return failures, len(casts()) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if driver.cannot_load(options):
        return 0
    todo = [name for name in TYPES if driver.matches(options.filter, name)]
    start, passed, unexpected = time.monotonic(), 0, []

    @contextlib.contextmanager
    def setup(folder):
        dlcrt = driver.runtime(options.build)
        with driver.Dlc(options.build) as dlc:
            yield lambda number: check(todo[number], dlc, dlcrt, folder)

    for index, result, _ in driver.run_all(range(len(todo)), setup, options.jobs, SECONDS):
        failures, count = ([(todo[index], str(result))], 1) if isinstance(result, Exception) else result
        names = {name for name, _ in failures}
        passed += count - len(names)
        unexpected += sorted(names)
        for name, text in failures:
            print(f"FAILED {name}: {text}", flush=True)
    print(f"{passed} casts passed, {len(unexpected)} failed, {time.monotonic() - start:.0f} s")
    driver.write_results(options.json, passed, unexpected)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
