# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""profile.py TRACE: the profile of the model mlp at batch 64, as `dlc bench --profile --json` printed it on stdin and as the trace file has it,
names the model's nodes and has figures that fit together."""
import json
import sys

profile = json.load(sys.stdin)["profile"]
launches, kernels = profile["launches"], profile["kernels"]
assert [launch["nodes"] for launch in launches] == [["fc1", "bias1", "relu1"], ["fc2"]], launches
assert [launch["ops"] for launch in launches] == [["MatMul", "Add", "Relu"], ["MatMul"]], launches
# Each buffer once; a packed operand has columns in panels of 16.
assert launches[0]["bytes"] == 4 * (64 * 16 + 16 * 64 + 64 + 64 * 64), launches[0]
assert 4 * (64 * 64 + 64 * 4 + 64 * 4) <= launches[1]["bytes"] <= 4 * (64 * 64 + 64 * 16 + 64 * 4), launches[1]
assert launches[0]["flops"] == 2 * 64 * 16 * 64 + 2 * 64 * 64, launches[0]  # the product, and an addition and a relu for each element
assert launches[1]["flops"] == 2 * 64 * 64 * 4, launches[1]
for entries in (launches, kernels):
    assert all(entry["ms"] > 0 and 0 < entry["share"] < 1 for entry in entries), entries
    assert all(abs(entry["bytes"] / entry["ms"] * 1e-6 / entry["gb_per_s"] - 1) < 1e-6 for entry in entries), entries
    assert all(abs(entry["flops"] / entry["ms"] * 1e-6 / entry["gflop_per_s"] - 1) < 1e-6 for entry in entries), entries
    assert abs(sum(entry["share"] for entry in entries) + profile["other_share"] - 1) < 1e-6, profile
assert sum(kernel["launches"] for kernel in kernels) == len(launches), kernels
assert kernels == sorted(kernels, key=lambda kernel: -kernel["ms"]), kernels

with open(sys.argv[1]) as file:
    events = json.load(file)["traceEvents"]
assert [event["name"] for event in events] == ["run"] + [launch["kernel"] for launch in launches], events
run = events[0]
assert all(event["ph"] == "X" and run["ts"] <= event["ts"] and event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 1e-3 for event in events), events
assert [event["args"]["nodes"] for event in events[1:]] == ["fc1, bias1, relu1", "fc2"], events
assert abs(run["dur"] * 1e-3 / profile["run_ms"] - 1) < 1e-6, run
