#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the start of a process to its first result, and the most memory on the way: dlcrt-run against ONNX Runtime, one thread.

    test/bench/startup.py --build build/dev [--rounds 15] [--json FILE]

Both read MiniLM-L6 and one sentence of 128 tokens from files. ONNX Runtime comes as a Python package without C headers, so what Python and numpy
alone take, measured in the same rounds, is taken off its figures.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import zoo

PYTHON = "import numpy as np, sys; feed = {n: np.load(f'{sys.argv[2]}/{n}.npy') for n in ('input_ids', 'attention_mask', 'token_type_ids')}\n"
ORT = PYTHON + """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"]).run(None, feed)
"""


def measure(command):
    """Seconds and peak resident bytes of a process."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{command[0]} ended with status {status}")
    child.returncode = 0
    return seconds, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    model = zoo.fetch("minilm_l6")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.build / "bin" / "dlc", "compile", model, "-o", folder / "minilm.dlcm"], check=True)
        random = np.random.default_rng(1)
        feed = {"input_ids": random.integers(1, 30000, (1, 128)), "attention_mask": np.ones((1, 128), np.int64), "token_type_ids": np.zeros((1, 128), np.int64)}
        for key, value in feed.items():
            np.save(folder / f"{key}.npy", value)
        commands = {"dlc": [options.build / "bin" / "dlcrt-run", folder / "minilm.dlcm", "--inputs", folder, "--threads", "1", "--quiet"],
                    "ort": [sys.executable, "-c", ORT, model, folder], "python": [sys.executable, "-c", PYTHON, model, folder]}
        samples = {who: [] for who in commands}
        for _ in range(options.rounds + 1):
            for who, command in commands.items():
                samples[who].append(measure(command))
    samples = {who: values[1:] for who, values in samples.items()}  # the first round fills the file cache
    seconds = {who: statistics.median(s for s, _ in values) for who, values in samples.items()}
    memory = {who: statistics.median(m for _, m in values) for who, values in samples.items()}
    ort_seconds, ort_memory = seconds["ort"] - seconds["python"], memory["ort"] - memory["python"]
    result = {"dlc_ms": seconds["dlc"] * 1e3, "ort_ms": ort_seconds * 1e3, "dlc_peak_bytes": memory["dlc"], "ort_peak_bytes": ort_memory,
              "time_ratio": seconds["dlc"] / ort_seconds, "memory_ratio": memory["dlc"] / ort_memory}
    print(f"start to first result: dlc {result['dlc_ms']:.1f} ms, ONNX Runtime {result['ort_ms']:.1f} ms (without Python and numpy): {result['time_ratio']:.2f}")
    print(f"peak memory: dlc {memory['dlc'] / 1e6:.0f} MB, ONNX Runtime {ort_memory / 1e6:.0f} MB (without Python and numpy): {result['memory_ratio']:.2f}")
    if options.json:
        options.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
