#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles models for cpu:aarch64 and runs them with the AArch64 build of the runtime (preset runtime-aarch64) under qemu-user.

    test/aarch64/run.py --build build/dev [--runtime build/runtime-aarch64] [--jobs 2] [--json FILE] [--all] [--filter REGEX]

- The cases of the onnx package (see test/onnx-conformance/run.py) of contractions, element-wise operators, reductions and what is
  made of these, without the expanded forms of functions; with --all every case. They must end as expected.txt there says.
- Models of our own, for what those are too small for: matrix products with tails in each dim, with fixed and with symbolic dims,
  transposed, batched and broadcast, of constants, by one thread and by two; long vectors through functions, conversions and sums.
  With --all for richer processors too, and in more sizes.
- Modules with several variants, each machine and processor taking the right one; and what a machine says of a module for another.
"""

import argparse
import contextlib
import functools
import importlib.util
import itertools
import math
import pathlib
import shutil
import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import driver

SPEC = importlib.util.spec_from_file_location("conformance", ROOT / "onnx-conformance" / "run.py")
conformance = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(conformance)

TARGET = "cpu:aarch64"
EMULATOR = "qemu-aarch64-static"
SECONDS_A_TEST = 120

CONTRACTIONS = "MatMul Gemm Einsum"
ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu
    Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual
    Log Max Mean Min Mish Mod Mul Neg Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub
    Sum Swish Tan Tanh ThresholdedRelu Where Xor"""
REDUCTIONS = """
    ArgMax BatchNormalization CumSum Hardmax LayerNormalization LogSoftmax LpNormalization RMSNormalization ReduceL2 ReduceLogSumExp
    ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Softmax"""
OTHERS = "Concat Det Gather Pad ScatterND Slice TopK Transpose"
NORMAL = set(f"{CONTRACTIONS} {ELEMENTWISE} {REDUCTIONS} {OTHERS}".split())


# --- models of our own ------------------------------------------------------------------------------------------------


def model(nodes, inputs, outputs, constants=()):
    """inputs, outputs: {name: (element type, dims)}."""
    values = [[helper.make_tensor_value_info(name, *value) for name, value in group.items()] for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "test", *values, [numpy_helper.from_array(array, name) for name, array in dict(constants).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class Test:
    """A model and runs of it: (inputs, {output: (what is wanted, how far off each element may be)})."""

    def __init__(self, name, model, runs, threads=1, features=""):
        self.name, self.model, self.runs, self.threads, self.target = name + features, model, runs, threads, TARGET + features


FLOATS = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.FLOAT16: np.float16,
          TensorProto.BFLOAT16: ml_dtypes.bfloat16}


def unit(dtype):
    """Half a unit in the last place of 1."""
    return float(ml_dtypes.finfo(dtype).eps) / 2


def product(a, b, c=0):
    """a x b + c, and how far off a sum of these products may be in any order, the result rounded to its type."""
    wide = [np.asarray(x, np.float64) for x in (a, b, c)]
    exact = np.matmul(*wide[:2]) + wide[2]
    size = np.matmul(*map(np.abs, wide[:2])) + np.abs(wide[2])
    if a.dtype.kind in "iu":
        return exact.astype(a.dtype), 0
    step = unit(np.float64 if a.dtype == np.float64 else np.float32)
    # What is wanted is rounded too.
    return exact.astype(a.dtype), (a.shape[-1] + 4) * step * size + unit(a.dtype) * np.abs(exact) * 2.02


def random(rng, shape, dtype=np.float32):
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-9, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# Each is a size with all kinds of tails somewhere: below a vector, one more and one less than vectors, tiles and cache blocks.
SIZES = [(1, 1, 1), (1, 65, 129), (7, 1, 65), (129, 65, 1), (65, 129, 7), (7, 7, 7), (8, 33, 24), (31, 300, 33), (129, 7, 65)]
MORE_SIZES = [(m, k, n) for m, k, n in itertools.product((1, 7, 65, 129), repeat=3)]


def matmuls(all_sizes):
    rng = np.random.default_rng(5)
    sizes = SIZES + MORE_SIZES * all_sizes
    mul = [helper.make_node("MatMul", ["a", "b"], ["y"])]

    def symbolic(name, kind, sizes, threads=1):
        dtype = FLOATS.get(kind) or helper.tensor_dtype_to_np_dtype(kind)
        runs = []
        for m, k, n in sizes:
            a, b = random(rng, (m, k), dtype), random(rng, (k, n), dtype)
            runs.append(({"a": a, "b": b}, {"y": product(a, b)}))
        return Test(name, model(mul, {"a": (kind, ["m", "k"]), "b": (kind, ["k", "n"])}, {"y": (kind, ["m", "n"])}), runs, threads)

    f32 = TensorProto.FLOAT
    yield symbolic("matmul_symbolic", f32, sizes)
    yield symbolic("matmul_empty", f32, [(0, 3, 5), (3, 0, 5), (3, 5, 0)])
    yield symbolic("matmul_two_threads", f32, [(257, 129, 65), (5, 129, 515), (64, 64, 64)], threads=2)
    for kind in (TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT32, TensorProto.INT64):
        yield symbolic(f"matmul_{TensorProto.DataType.Name(kind).lower()}", kind, sizes[:9:2] if not all_sizes else sizes)
    for m, k, n in sizes:
        a, b = random(rng, (m, k)), random(rng, (k, n))
        yield Test(f"matmul_{m}x{k}x{n}", model(mul, {"a": (f32, [m, k]), "b": (f32, [k, n])}, {"y": (f32, [m, n])}),
                   [({"a": a, "b": b}, {"y": product(a, b)})])

    # Constant weights, a bias and an activation behind; rows that only a run knows.
    b, bias = random(rng, (65, 129)), random(rng, (129,))
    nodes = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Add", ["p", "c"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    runs = []
    for rows in (1, 7, 65, 129):
        a = random(rng, (rows, 65))
        want, off = product(a, b, bias)
        runs.append(({"a": a}, {"y": (np.maximum(want, 0), off)}))
    yield Test("matmul_constant_bias_relu", model(nodes, {"a": (f32, ["m", 65])}, {"y": (f32, ["m", 129])}, {"b": b, "c": bias}), runs)

    for a_turned, b_turned in itertools.product((0, 1), repeat=2):
        nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=a_turned, transB=b_turned, alpha=0.5, beta=2.0)]
        dims = [["k", "m"] if a_turned else ["m", "k"], ["n", "k"] if b_turned else ["k", "n"], ["n"]]
        runs = []
        for m, k, n in SIZES:
            a, b, c = random(rng, (m, k)), random(rng, (k, n)), random(rng, (n,))
            given = {"a": a.T if a_turned else a, "b": b.T if b_turned else b, "c": c}
            runs.append((given, {"y": product(a * np.float32(0.5), b, c * 2)}))
        yield Test(f"gemm_{'t' if a_turned else 'n'}{'t' if b_turned else 'n'}",
                   model(nodes, {name: (f32, d) for name, d in zip("abc", dims)}, {"y": (f32, ["m", "n"])}), runs)

    # Batches: equal, broadcast on either side, of different rank; a vector on either side.
    for name, left, right in [
            ("batch", (3, 7, 65), (3, 65, 9)), ("batch_left_broadcast", (1, 7, 65), (3, 65, 9)), ("batch_right_broadcast", (3, 7, 65), (1, 65, 9)),
            ("batch_both", (2, 1, 7, 5), (1, 3, 5, 33)), ("batch_ranks", (2, 3, 7, 65), (65, 17)), ("vector_left", (65,), (65, 33)),
            ("vector_right", (33, 65), (65,)), ("vectors", (129,), (129,)), ("batch_vector", (3, 7, 65), (65,))]:
        a, b = random(rng, left), random(rng, right)
        want, off = product(a, b)
        yield Test(f"matmul_{name}", model(mul, {"a": (f32, left), "b": (f32, right)}, {"y": (f32, np.shape(want))}),
                   [({"a": a, "b": b}, {"y": (want, off)})])
    for equation, left, right in [("bij,bkj->bik", (2, 7, 65), (2, 9, 65)), ("ijk,kl->lij", (3, 5, 33), (33, 7)),
                                  ("bhqd,bhkd->bhqk", (1, 2, 9, 16), (1, 2, 31, 16))]:
        a, b = random(rng, left), random(rng, right)
        want, size = (np.einsum(equation, f(a.astype(np.float64)), f(b.astype(np.float64))) for f in (lambda x: x, np.abs))
        nodes = [helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)]
        yield Test(f"einsum_{equation}", model(nodes, {"a": (f32, left), "b": (f32, right)}, {"y": (f32, want.shape)}),
                   [({"a": a, "b": b}, {"y": (want.astype(np.float32), (left[-1] + 4) * unit(np.float32) * size)})])


def others():
    """Vectors of all lengths around those of the processor, through functions, conversions and sums."""
    rng = np.random.default_rng(6)
    f32 = TensorProto.FLOAT
    lengths = (1, 3, 4, 5, 17, 1031)

    def elementwise(name, nodes, reference, low=-8.0, high=8.0, off=4e-6):
        runs = []
        for n in lengths:
            x = rng.uniform(low, high, n).astype(np.float32)
            want = reference(x.astype(np.float64))
            runs.append(({"x": x}, {"y": (want.astype(np.float32), off * np.maximum(1, np.abs(want)))}))
        return Test(name, model(nodes, {"x": (f32, ["n"])}, {"y": (f32, ["n"])}), runs)

    erf = np.vectorize(math.erf, otypes=[np.float64])
    for op, reference, *domain in [
            ("Exp", np.exp), ("Log", np.log, 1e-3, 50), ("Tanh", np.tanh), ("Erf", erf), ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("Sin", np.sin),
            ("Cos", np.cos), ("Tan", np.tan, -1.5, 1.5), ("Asin", np.arcsin, -1, 1), ("Atan", np.arctan), ("Sinh", np.sinh),
            ("Asinh", np.arcsinh), ("Acosh", np.arccosh, 1, 9), ("Sqrt", np.sqrt, 0, 9), ("Softplus", lambda x: np.log1p(np.exp(x))),
            ("Round", np.round), ("Floor", np.floor), ("Gelu", lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))), ("Reciprocal", np.reciprocal, 0.1, 9)]:
        yield elementwise(f"function_{op}", [helper.make_node(op, ["x"], ["y"])], reference, *domain)
    yield elementwise("function_Pow", [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Pow", ["a", "x"], ["y"])], lambda x: np.abs(x) ** x,
                      0.1, 4.0)

    for kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32,
                 TensorProto.INT64):
        nodes = [helper.make_node("Cast", ["x"], ["t"], to=kind), helper.make_node("Cast", ["t"], ["y"], to=f32)]
        dtype = FLOATS.get(kind) or helper.tensor_dtype_to_np_dtype(kind)
        runs = []
        for n in lengths:
            x = rng.uniform(0 if kind == TensorProto.UINT8 else -100, 100, n).astype(np.float32)
            runs.append(({"x": x}, {"y": (x.astype(dtype).astype(np.float32), 0)}))
        yield Test(f"cast_{TensorProto.DataType.Name(kind).lower()}", model(nodes, {"x": (f32, ["n"])}, {"y": (f32, ["n"])}), runs)

    # Half floats round after each op.
    for kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        nodes = [helper.make_node("Mul", ["x", "x"], ["square"]), helper.make_node("Sub", ["square", "x"], ["less"]),
                 helper.make_node("Div", ["less", "z"], ["part"]), helper.make_node("Add", ["part", "z"], ["sum"]),
                 helper.make_node("Max", ["sum", "x"], ["most"]), helper.make_node("Abs", ["most"], ["positive"]),
                 helper.make_node("Sqrt", ["positive"], ["root"]), helper.make_node("Less", ["root", "z"], ["small"]),
                 helper.make_node("Where", ["small", "less", "root"], ["y"])]
        runs = []
        for n in lengths:
            x, z = (rng.uniform(low, 3, n).astype(FLOATS[kind]) for low in (-3, 0.5))
            less = x * x - x
            root = np.sqrt(np.abs(np.maximum(less / z + z, x)))
            runs.append(({"x": x, "z": z}, {"y": (np.where(root < z, less, root), 0)}))
        yield Test(f"half_{TensorProto.DataType.Name(kind).lower()}",
                   model(nodes, {"x": (kind, ["n"]), "z": (kind, ["n"])}, {"y": (kind, ["n"])}), runs)

    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    for name, nodes, reference, dims in [
            ("softmax", [helper.make_node("Softmax", ["x"], ["y"], axis=-1)], softmax, ["m", "n"]),
            ("reduce_sum_rows", [helper.make_node("ReduceSum", ["x", "axis"], ["y"], keepdims=1)], lambda x: x.sum(-1, keepdims=True), ["m", 1]),
            ("reduce_max_rows", [helper.make_node("ReduceMax", ["x", "axis"], ["y"], keepdims=1)], lambda x: x.max(-1, keepdims=True), ["m", 1])]:
        runs = []
        for m, n in ((1, 1), (3, 7), (7, 129), (65, 33)):
            x = random(rng, (m, n))
            want = reference(x.astype(np.float64))
            runs.append(({"x": x}, {"y": (want.astype(np.float32), 2e-5)}))
        constants = {} if name == "softmax" else {"axis": np.array([-1], np.int64)}
        yield Test(name, model(nodes, {"x": (f32, ["m", "n"])}, {"y": (f32, dims)}, constants), runs)
    x, ones = random(rng, (7, 129)), np.ones(129, np.float32)
    yield Test("layer_norm", model([helper.make_node("LayerNormalization", ["x", "s"], ["y"], axis=-1)], {"x": (f32, ["m", 129])},
                                   {"y": (f32, ["m", 129])}, {"s": ones}), [({"x": x}, {"y": (norm(x.astype(np.float64)).astype(np.float32), 2e-5)})])


def own_tests(everything):
    """Half floats for processors with more than NEON too; with `everything`, all for those and for SVE."""
    for test in itertools.chain(matmuls(everything), others()):
        yield test
        for features in ("+dotprod+fullfp16+bf16+i8mm", "+sve+bf16"):
            if everything or "sve" not in features and "float16" in test.name:
                yield Test(test.name, test.model, test.runs, test.threads, features)


def run_test(test, dlc, dlcrt, runner, folder):
    """What is wrong, or nothing."""
    source, module = folder / "test.onnx", folder / "test.dlcm"
    module.unlink(missing_ok=True)
    onnx.save(test.model, source)
    answer = dlc("compile", source, "-o", module, "--target", test.target, "--jobs", 1)
    if answer.exit != 0:
        return f"exit code {answer.exit}: {answer.err.strip()}"
    instance = driver.RemoteInstance(dlcrt, module, runner, folder, test.threads)
    for inputs, wanted in test.runs:
        try:
            got = instance.run(inputs)
        except dlcrt.DlcrtError as error:
            return f"cannot be run: {error}"
        shapes = ", ".join(f"{name} {list(np.shape(array))}" for name, array in inputs.items())
        for name, (want, off) in wanted.items():
            want = np.asarray(want)
            if got[name].dtype != want.dtype or got[name].shape != want.shape:
                return f"{shapes}: {name} is {got[name].dtype}{list(got[name].shape)}, not {want.dtype}{list(want.shape)}"
            apart = np.abs(got[name].astype(np.float64) - want.astype(np.float64))
            if not np.all(apart <= off):
                at = np.unravel_index(np.argmax(np.where(np.isnan(apart), np.inf, apart - off)), want.shape)
                return f"{shapes}: {name}{[int(i) for i in at]} is {got[name][at]}, not {want[at]}"
    return ""


# --- modules for several machines -------------------------------------------------------------------------------------


def check_variants(dlc, dlcrt, runner, folder):
    """Yields (name, what is wrong or None)."""
    x = np.arange(7, dtype=np.float32)
    source = folder / "double.onnx"
    onnx.save(model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (TensorProto.FLOAT, ["n"])}, {"y": (TensorProto.FLOAT, ["n"])}), source)
    both, other, host, rich = (folder / f"{name}.dlcm" for name in ("both", "other", "host", "rich"))
    for module, targets in ((both, f"{TARGET},cpu:host"), (other, TARGET), (host, "cpu:host"), (rich, f"{TARGET}+fullfp16+bf16,{TARGET}")):
        answer = dlc("compile", source, "-o", module, "--target", targets, "--jobs", 1)
        if answer.exit != 0:
            yield "variants_compile", f"{targets}: {answer.err.strip()}"
            return

    def foreign(run):
        try:
            return f"it ran and gave {run()}"
        except dlcrt.DlcrtError as error:
            message = str(error)
        here, there = ("x86-64", "AArch64") if run is on_host else ("AArch64", "x86-64")
        wanted = f"it is code for {there}, and this is {here}"
        return None if "no variant of function 'main' can run here" in message and wanted in message else f"the message is: {message}"

    def on_host():
        return dlcrt.Instance(dlcrt.Module(other)).run({"x": x})["y"]

    instance = dlcrt.Instance(dlcrt.Module(both))
    good = np.array_equal(instance.run({"x": x})["y"], x + x) and instance.target != TARGET
    yield "variants_both_here", None if good else f"it took {instance.target}"

    def says(words, *command):
        said = subprocess.run([str(word) for word in command], capture_output=True, text=True).stdout
        return None if all(word in said for word in words) else said

    yield "variants_both_on_aarch64", says([f"ran on {TARGET} with 2 threads"], *runner, both, "--random", 1, "--threads", 2)
    # The emulator's default processor has all features, a Cortex-A57 has none but NEON.
    full = f"{TARGET}+fullfp16+bf16"
    yield "variants_of_features", says([f"ran on {full} with"], *runner, rich, "--random", 1)
    yield "variants_without_features", says([f"{full} (not here: the processor lacks fullfp16, bf16)", f"ran on {TARGET} with"],
                                            runner[0], "-cpu", "cortex-a57", *runner[1:], rich, "--random", 1)
    yield "variants_aarch64_here", foreign(on_host)
    yield "variants_host_on_aarch64", foreign(lambda: driver.RemoteInstance(dlcrt, host, runner, folder).run({"x": x})["y"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--runtime", type=pathlib.Path, default=ROOT.parent / "build" / "runtime-aarch64",
                        help="the build of the preset runtime-aarch64")
    options = parser.parse_args()
    if driver.cannot_load(options):
        return 0
    emulator, program = shutil.which(EMULATOR), (options.runtime / "bin" / "dlcrt-run").resolve()
    if not emulator or not program.exists():
        sys.exit(f"error: {EMULATOR} is not installed (Debian package qemu-user-static; ./dev setup installs it)" if not emulator else
                 f"error: {program} is not there: ./dev build --preset runtime-aarch64 makes it")
    runner = [emulator, str(program)]
    start = time.monotonic()
    todo = [test for test in own_tests(options.all) if driver.matches(options.filter, test.name)]
    cases = [case for case in conformance.collect() if (options.all or case.group in NORMAL and "_expanded" not in case.name)
             and driver.matches(options.filter, case.name)]

    failures, count = [], len(todo)

    def make(function, folder):
        dlcrt = driver.runtime(options.build)
        with driver.Dlc(options.build) as dlc:
            yield functools.partial(function, dlc=dlc, dlcrt=dlcrt, runner=runner, folder=folder)

    own = contextlib.contextmanager(functools.partial(make, lambda number, **rest: run_test(todo[number], **rest)))
    for number, result, _ in driver.run_all(range(len(todo)), own, options.jobs, SECONDS_A_TEST):
        if result:
            failures.append(f"{todo[number].name}: {result}")
    print(f"{count} models of our own: {len(failures)} failed; {time.monotonic() - start:.0f} s")
    if driver.matches(options.filter, "variants"):
        several = contextlib.contextmanager(functools.partial(make, lambda _, **rest: list(check_variants(**rest))))
        for _, results, _ in driver.run_all([0], several, 1, SECONDS_A_TEST):
            results = results if isinstance(results, list) else [("variants", str(results))]
            count += len(results)
            failures += [f"{name}: {wrong}" for name, wrong in results if wrong]

    results = conformance.run_all(cases, options, [TARGET], runner)
    unexpected = conformance.compare(cases, results, conformance.read_expected())
    failures += unexpected
    count += len(cases)
    for line in failures:
        print(f"FAILED {line}")
    print(f"{len(cases)} cases of the onnx package: {len(unexpected)} not as expected; {time.monotonic() - start:.0f} s in all")
    driver.write_results(options.json, count - len(failures), failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
