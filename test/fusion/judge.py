# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles parts of graphs with and without fusion, and compares what they give.

What is right is computed in float64 (graph.py). An element may be off by RTOL of itself, by half of that of the largest numbers around it (but
not of numbers as large as masks), and by a few times what numpy and ONNX Runtime are off in the model's own types: no more can be asked where
numbers nearly cancel. Infinities and NaNs must stand where ONNX Runtime, without its optimizer, has them."""

import collections
import contextlib
import json
import re
import time

import driver
import numpy as np
import onnx
import onnxruntime
from graph import Part

RTOL = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-10}
MOST_NOISE = 1e-3  # of the largest: above, a graph says little
NOISES = 8


class Failed(Exception):
    """What a test has to say."""


def places(a):
    """Where there is no finite number, and which one instead."""
    return np.where(np.isnan(a), 2, np.where(np.isinf(a), np.sign(a), 0))


def first(bad, got, want):
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0])
    return f"{np.count_nonzero(bad)} of {bad.size} elements differ, the first at {list(at)}: {np.atleast_1d(got)[at]}, not {np.atleast_1d(want)[at]}"


class Expected:
    """What one output is in one run, and how far off it may be."""

    def __init__(self, value, run, theirs):
        """theirs: what ONNX Runtime says, or None."""
        self.low, self.high = value.low[run], value.high[run]
        self.remarks = []
        if not value.isfloat:
            return
        low, high = self.low.astype(np.float64), self.high
        self.places = [places(low)]
        others = [low]
        if theirs is not None:
            others.append(theirs.astype(np.float64))
            self.places.insert(0, places(others[1]))
            if not np.array_equal(*self.places):
                self.remarks.append("numpy and ONNX Runtime have NaN or infinity in different places")
        rtol = RTOL[value.dtype.name]
        self.finite = np.isfinite(high) & np.all([p == 0 for p in self.places], axis=0)
        sizes = np.abs(high[self.finite])
        largest = min(np.max(sizes, initial=0), 100 * np.median(sizes[sizes > 0])) if np.any(sizes > 0) else 0
        noise = 0
        for other in others:
            off = np.max(np.abs(other[self.finite] - high[self.finite]) - rtol / 4 * sizes, initial=0)
            if off > MOST_NOISE * largest and value.dtype != np.float16:
                self.remarks.append("a reference is far off, so little was checked" if other is low else "ONNX Runtime is far off")
                off = 0 if other is not low else off
            noise = max(noise, off)
        with np.errstate(invalid="ignore"):
            self.allowed = np.where(self.finite, rtol * np.abs(high) + rtol / 2 * largest + NOISES * noise, 0)

    def difference(self, got):
        """None, or how it differs."""
        want = self.low
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if want.dtype.kind != "f":
            return first(got != want, got, want) if np.any(got != want) else None
        if not any(np.array_equal(places(got), p) for p in self.places):
            return "NaN or infinity in another place: " + first(places(got) != self.places[0], got, want)
        with np.errstate(invalid="ignore"):
            bad = self.finite & (np.abs(got.astype(np.float64) - self.high) > self.allowed)
        return f"{first(bad, got, self.high)} (+- {self.allowed[bad].flat[0]:.1e})" if np.any(bad) else None

    def apart(self, fused, unfused):
        if fused.dtype.kind != "f":
            return first(fused != unfused, fused, unfused) if np.any(fused != unfused) else None
        if not np.array_equal(places(fused), places(unfused)):
            return "NaN or infinity in another place: " + first(places(fused) != places(unfused), fused, unfused)
        with np.errstate(invalid="ignore"):
            bad = self.finite & (np.abs(fused.astype(np.float64) - unfused) > self.allowed)
        return first(bad, fused, unfused) if np.any(bad) else None


def onnxruntime_session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Bench:
    """What tests work with, one for each worker."""

    def __init__(self, options, dlc, dlcrt, folder):
        self.options, self.dlc, self.dlcrt, self.folder = options, dlc, dlcrt, folder

    def compile(self, model, *flags):
        source, module = self.folder / "model.onnx", self.folder / "model.dlcm"
        onnx.save(model, source)
        answer = self.dlc("compile", source, "-o", module, "--jobs", 1, *flags, seconds=120)
        if answer.exit != 0:
            raise Failed(f"compiling {' '.join(map(str, flags))}: exit code {answer.exit}\n{answer.err.strip()}")
        return module

    def launches(self, module):
        answer = self.dlc("inspect", module, "--json")
        if answer.exit != 0:
            raise Failed(f"dlc inspect: {answer.err.strip()}")
        (variant,) = json.loads(answer.out)["variants"]
        return re.findall(r"plan\.launch @([\w.$-]+)", variant["plan"])

    def check(self, part, target, forms=("fused", "unfused")):
        """Raises Failed, or returns remarks and the names of what the fused form launches."""
        model = part.model()
        remarks, launched = [], None
        instances = {}
        for form in forms:
            module = self.compile(model, "--target", target, *["--no-fusion"] * (form == "unfused"))
            instances[form] = self.dlcrt.Instance(self.dlcrt.Module(module))
            if form == "fused":
                launched = self.launches(module)
        try:
            session = onnxruntime_session(model)
        except Exception as error:
            session = None
            remarks.append(f"ONNX Runtime does not take it: {re.sub(r'.* : ', '', str(error).splitlines()[0])[:80]}")
        for run in range(part.graph.runs):
            feed = part.feeds(run)
            theirs = None
            if session:
                try:
                    theirs = session.run(None, feed)
                except Exception as error:
                    remarks.append(f"ONNX Runtime does not run it: {str(error).splitlines()[0][:80]}")
            expected = [Expected(v, run, theirs and theirs[i]) for i, v in enumerate(part.outputs)]
            where = f"run {run}, {', '.join(f'{k} = {v[run]}' for k, v in part.graph.symbols.items())}"
            results = {}
            for form, instance in instances.items():
                try:
                    results[form] = list(instance.run(feed).values())
                except self.dlcrt.DlcrtError as error:
                    raise Failed(f"{where}, {form}: {error}")
                for value, want, got in zip(part.outputs, expected, results[form], strict=True):
                    remarks += want.remarks
                    if found := want.difference(got):
                        raise Failed(f"{where}, {form}: output '{value.name}': {found}")
            if len(results) == 2:
                for value, want, a, b in zip(part.outputs, expected, results["fused"], results["unfused"]):
                    if found := want.apart(a, b):
                        raise Failed(f"{where}: fused differs from unfused: output '{value.name}': {found}")
        return sorted(set(remarks)), launched

    def fails(self, part, target):
        """What is wrong with it, or None."""
        try:
            self.check(part, target)
        except (Failed, driver.Crash, driver.Hang) as failed:
            return f"{type(failed).__name__.lower() + ': ' if not isinstance(failed, Failed) else ''}{failed}"
        return None

    def smallest(self, part, target, most=120):
        """A part of it that still fails: with one output if that does, and with as little above it as possible."""
        tries = 0

        def try_next(candidate):
            nonlocal part, tries
            tries += 1
            if tries <= most and candidate.nodes and self.fails(candidate, target):
                part = candidate
                return True
            return False

        for output in part.outputs:
            if len(part.outputs) > 1 and try_next(Part(part.graph, [output])):
                break
        for output in list(part.outputs):
            if len(part.outputs) > 1:
                try_next(Part(part.graph, [v for v in part.outputs if v is not output], part.cuts))
        # From the bottom: what is above a value goes if it is an input.
        index = len(part.nodes) - 1
        while index >= 0:
            if index < len(part.nodes):
                outputs = {v.name for v in part.outputs}
                new = [v for v in part.nodes[index].outputs if v.name not in outputs]
                if new and len(new) == len(part.nodes[index].outputs):
                    try_next(Part(part.graph, part.outputs, [*part.cuts, *new]))
            index -= 1
        return part


def run_suite(title, tests, options, seconds):
    """tests: {name: function of a bench, which raises Failed or returns remarks}. Gives the exit code."""
    if driver.cannot_load(options):
        return 0
    start = time.monotonic()
    passed, failures, remarks = 0, [], collections.defaultdict(list)
    names = list(tests)

    @contextlib.contextmanager
    def setup(folder):
        with driver.Dlc(options.build) as dlc:
            bench = Bench(options, dlc, driver.runtime(options.build), folder)

            def handle(name):
                try:
                    return tests[name](bench)
                except Failed as failed:
                    return failed

            yield handle

    for number, result, _ in driver.run_all(names, setup, options.jobs, seconds):
        name = names[number]
        if isinstance(result, Exception):
            failures.append(f"{name}: {'' if isinstance(result, Failed) else type(result).__name__.lower() + ': '}{result}")
            print(f"FAILED {failures[-1]}\n", flush=True)
        else:
            passed += 1
            for remark in result:
                remarks[remark].append(name)
    for remark, which in remarks.items():
        print(f"{remark}: {len(which)} times ({'; '.join(which[:5])}{'; ...' if len(which) > 5 else ''})")
    print(f"{title}: {passed} passed, {len(failures)} failed in {time.monotonic() - start:.0f} s")
    driver.write_results(options.json, passed, failures)
    return 0 if not failures else 1
