# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench.py EXPECTED: what `dlc bench --json` printed comes in on stdin, has the keys of the contract, and figures that fit together; EXPECTED
is a dict of some of its entries."""
import ast
import json
import sys

text = sys.stdin.read()
assert text.count("\n") == 1 and text.endswith("\n"), text
got = json.loads(text)
keys = ("model target precision threads runs min_ms mean_ms median_ms p90_ms p99_ms load_ms first_run_ms arena_bytes arena_lower_bound_bytes weight_bytes "
        "peak_rss_bytes runs_per_second inputs").split()
assert set(keys) <= set(got), sorted(set(keys) - set(got))
assert got["target"].startswith("cpu:"), got
assert got["runs"] >= 5, got
assert 0 < got["min_ms"] <= got["median_ms"] <= got["p90_ms"] <= got["p99_ms"], got
assert got["min_ms"] <= got["mean_ms"], got
assert 0 < got["runs_per_second"] <= 1e3 / got["mean_ms"] * 1.001, got  # reading the clock takes time too
assert got["load_ms"] > 0 and got["first_run_ms"] > 0, got
assert got["arena_bytes"] >= got["arena_lower_bound_bytes"] >= 0 and got["weight_bytes"] >= 0, got
assert got["peak_rss_bytes"] > 1 << 20, got
if got["model"].startswith("mlp"):
    assert got["weight_bytes"] >= 4 * (16 * 64 + 64 + 64 * 4), got
    assert got["arena_bytes"] >= 4 * 64, got
for key, value in ast.literal_eval(sys.argv[1]).items():
    assert got[key] == value, (key, got[key], value)
