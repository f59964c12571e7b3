#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the fuzzers (preset fuzz) side by side, for a while.

    test/fuzz/run.py --build build/fuzz [--tools build/dev] [--seconds 60] [--only import|module|plan]

ImportFuzzer reads ONNX models and infers their shapes, ModuleFuzzer opens modules, PlanFuzzer runs them without their code. Seeds are the small
models of the onnx package and some of our own, and what the dlc of another build compiles them to. What is found to be worth keeping stays in
BUILD/corpus. An input that crashes, leaks, takes more than 20 s or 3 GB is written to BUILD/corpus/NAME-failures, and the run fails.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import onnx
from onnx import TensorProto, helper

FUZZERS = {"import": "ImportFuzzer", "module": "ModuleFuzzer", "plan": "PlanFuzzer"}
MOST_BYTES = 200_000  # of a seed
# LLVM's allocators mark memory as free from code that is instrumented, and as used again from code that is not (the shared libraries).
ENVIRONMENT = os.environ | {"ASAN_OPTIONS": "allow_user_poisoning=0"}
DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


def tensor(name, *dims, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, dims)


def graph(name, nodes, inputs, outputs):
    return helper.make_model(helper.make_graph(nodes, name, inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def own_models():
    """What the package's models have little of: branches, sizes that are data, state, several outputs."""
    yield "branches", graph("branches", [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Less", ["s", "s"], ["c"]),
        helper.make_node("If", ["c"], ["y"],
                         then_branch=helper.make_graph([helper.make_node("Relu", ["x"], ["a"])], "a", [], [tensor("a", "n", 4)]),
                         else_branch=helper.make_graph([helper.make_node("Concat", ["x", "x"], ["b"], axis=0)], "b", [], [tensor("b", "m", 4)])),
    ], [tensor("x", "n", 4)], [tensor("y", "k", 4)]), []
    yield "late", graph("late", [
        helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Transpose", ["i"], ["t"]), helper.make_node("GatherND", ["x", "t"], ["y"]),
    ], [tensor("x", "n", 3)], [tensor("y", "k"), tensor("i", 2, "k", type=TensorProto.INT64)]), []
    yield "state", graph("state", [
        helper.make_node("Concat", ["past", "x"], ["all"], axis=1), helper.make_node("ReduceSum", ["all"], ["y"], keepdims=0),
    ], [tensor("past", "b", "t", 2), tensor("x", "b", 1, 2)], [tensor("y"), tensor("all", "b", "u", 2)]), ["--state", "past=all"]


def make_seeds(folders, dlc):
    models = {f"{path.parent.parent.name}_{path.parent.name}": path.read_bytes() for path in sorted(DATA.glob("*/*/model.onnx")) if path.stat().st_size < 20_000}
    flags = {}
    for name, model, more in own_models():
        models[name] = model.SerializeToString()
        flags[name] = more
    for name, bytes_ in models.items():
        (folders["import"] / name).write_bytes(bytes_)
    compiled = 0
    for name, bytes_ in list(models.items())[:: max(1, len(models) // 60)] + [(name, models[name]) for name in flags]:
        source, module = folders["import"] / name, folders["module"] / name
        done = subprocess.run([dlc, "compile", source, "-o", module, "--emit", "dlcm", "--target", "cpu:x86-64-v2", *flags.get(name, [])], capture_output=True)
        if done.returncode == 0 and module.stat().st_size < MOST_BYTES:
            (folders["plan"] / name).write_bytes(module.read_bytes() + b"\x1b")
            compiled += 1
        else:
            module.unlink(missing_ok=True)
    print(f"seeds: {len(models)} models, {compiled} modules", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build with the fuzzers")
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path("build/dev"), help="the build whose dlc makes the seeds")
    parser.add_argument("--seconds", type=int, default=60, help="how long each fuzzer runs")
    parser.add_argument("--only", choices=FUZZERS, help="one of them")
    options = parser.parse_args()
    names = [options.only] if options.only else list(FUZZERS)
    folders = {name: options.build.resolve() / "corpus" / name for name in FUZZERS}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    make_seeds(folders, options.tools.resolve() / "bin" / "dlc")
    running = {}
    for name in names:
        failures = options.build.resolve() / "corpus" / f"{name}-failures"
        failures.mkdir(exist_ok=True)
        log = (options.build / "corpus" / f"{name}.log").open("w")
        running[name] = subprocess.Popen([options.build.resolve() / "fuzz" / FUZZERS[name], folders[name], f"-max_total_time={options.seconds}", "-timeout=20",
                                          "-rss_limit_mb=3072", f"-max_len={MOST_BYTES}", f"-artifact_prefix={failures}/"], stdout=log, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    failed = 0
    for name, process in running.items():
        code = process.wait()
        text = (options.build / "corpus" / f"{name}.log").read_text(errors="replace").strip().splitlines()
        print(f"{name}: {'passed' if code == 0 else f'FAILED (exit code {code})'}; {text[-1] if text else 'it said nothing'}")
        failed += code != 0
        if code != 0:
            print("\n".join("    " + line for line in text[-40:]))
    print(f"{len(running) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
