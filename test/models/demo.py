#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows dlc on a small network: what `./dev demo` runs.

    test/models/demo.py --build build/dev [--batch 4] [--seq 64] [--folder FOLDER]

Compiles the block of block.py, looks into the module, runs it, compares the results with ONNX Runtime, and times both on one
thread. With --folder the model and the module stay there.
"""

import argparse
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import block
import driver

SHOWN_PLAN_LINES = 14
SECONDS_OF_TIMING = 3


def heading(text):
    print(f"\n--- {text}", flush=True)


def size(count):
    return f"{count / 1024:.0f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def command(program, *words, shown=None):
    """Runs dlc as a user would, and shows how."""
    print("$ " + shlex.join(["dlc", *(str(word) for word in shown or words)]), flush=True)
    done = subprocess.run([program, *(str(word) for word in words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or f"dlc ended with exit code {done.returncode}")
    return done.stdout


def shorten(line, width=118):
    return line if len(line) <= width else line[: width - 3] + "..."


def show_inspection(text):
    """The head, and of each variant its first lines and those of its plan's run."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("variant ")), len(lines))
    for line in lines[:first]:
        print(shorten(line))
    for line in lines[first:]:
        if line.startswith("variant ") or re.match(r"  (needs|code|memory)", line):
            print(shorten(line))
    launches = [line.strip() for line in lines if "plan.launch" in line]
    per_variant = len(launches) // max(1, sum(line.startswith("variant ") for line in lines))
    print(f"  of the plan, the first of {per_variant} launches:")
    for line in launches[:SHOWN_PLAN_LINES]:
        print("    " + shorten(line, 114))


def interleaved(*runs):
    """Median milliseconds of each, measured in turns so that whatever slows the machine down slows them all."""
    for run in runs:
        for _ in range(5):
            run()
    times = [[] for _ in runs]
    end = time.perf_counter() + SECONDS_OF_TIMING
    while time.perf_counter() < end or len(times[0]) < 10:
        for run, list_ in zip(runs, times):
            start = time.perf_counter()
            run()
            list_.append((time.perf_counter() - start) * 1000)
    return [statistics.median(list_) for list_ in times], len(times[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--folder", type=pathlib.Path, help="keep what is made there")
    options = parser.parse_args()
    if not 1 <= options.seq <= block.POSITIONS or options.batch < 1:
        parser.error(f"the block takes a batch from 1 up and a sequence of 1 to {block.POSITIONS}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        show(options, folder)


def show(options, folder):
    program = str(options.build.resolve() / "bin" / "dlc")
    dlcrt = driver.runtime(options.build)
    source, module = folder / "block.onnx", folder / "block.dlcm"

    heading("a small transformer block without attention, symbolic batch and sequence")
    model = block.block()
    onnx.save(model, source)
    print(f"block.onnx: {len(model.graph.node)} nodes, {size(source.stat().st_size)}, opset {block.OPSET}")

    heading("compile it, once, for every batch and sequence")
    start = time.perf_counter()
    report = json.loads(command(program, "compile", source, "-o", module, "--json", shown=["compile", "block.onnx", "-o", "block.dlcm"]))
    print(f"block.dlcm: {size(module.stat().st_size)} in {time.perf_counter() - start:.2f} s, for {' and '.join(report['targets'])}")
    slowest = sorted(report["phases"], key=lambda phase: -phase["seconds"])[:3]
    print("most of the time: " + ", ".join(f"{phase['name']} {phase['seconds']:.2f} s" for phase in slowest))

    heading("look inside")
    show_inspection(command(program, "inspect", module, shown=["inspect", "block.dlcm"]))

    heading(f"run it on batch {options.batch}, sequence {options.seq}")
    instance = dlcrt.Instance(dlcrt.Module(module), threads=1)
    inputs = block.block_inputs(options.batch, options.seq)
    outputs = instance.run(inputs)
    for name, value in outputs.items():
        print(f"{name}: {value.dtype}{list(value.shape)}, mean {value.mean():+.5f}, deviation {value.std():.5f}")
    print(f"variant {instance.target}; arena {size(instance.statistics['arena_bytes'])}")

    heading("compare with ONNX Runtime")
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(source), session_options, providers=["CPUExecutionProvider"])
    agree = True
    for (name, got), want in zip(outputs.items(), session.run(None, inputs)):
        found = driver.difference(got, want, 1e-4, 2e-5)
        agree &= found is None
        print(f"{name}: largest difference {np.max(np.abs(got - want)):.2e}" + (f"; WRONG: it is {found}" if found else ""))

    heading("time, one thread each")
    (ours, theirs), count = interleaved(lambda: instance.run(inputs), lambda: session.run(None, inputs))
    print(f"dlc          {ours:8.3f} ms\nONNX Runtime {theirs:8.3f} ms    (medians of {count} runs in turns, through Python)")
    print(f"dlc takes {ours / theirs:.2f} times as long" if ours > theirs else f"dlc is {theirs / ours:.2f} times as fast")
    if not agree:
        sys.exit("the results differ from those of ONNX Runtime")


if __name__ == "__main__":
    main()
