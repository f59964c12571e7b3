#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/operators.md: which operators, opsets and element types dlc takes, found by compiling nodes of each.

    test/ops/table.py --build build/dev [--jobs 2] [--update] [--op NAME]

For each operator of ops.py, each of its definitions and each type, some random nodes with named dims are compiled up to the plan.
Of the other operators, the models of the onnx package's test cases are compiled; of those of ONNX Runtime, a case of test_contrib.py. Without --update, the table is compared with the file.
run.py compares what it sees with the file too, so a table that is old fails the tests.
"""

import argparse
import contextlib
import pathlib
import sys
import warnings

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import ops
import references
import run
import supported
import test_contrib
from supported import FILE, SHORT

DRAWS, OLD_DRAWS = 4, 2  # nodes of each type: of the newest definition and of the others
MORE_DRAWS = {"Cast": 12, "CastLike": 8, "BitCast": 6, "OneHot": 6}
FOREIGN = {"string": np.dtype(object), "complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128)}
def allowed_types(schema):
    parameter = ops.main_parameter(schema)
    found = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == parameter), [parameter])
    return [a[len("tensor("):-1] for a in found if a.startswith("tensor(")]


class Sample(run.Entry):
    """A node of one type, as run.py draws it; of text or complex numbers it is one of floats, with another type."""

    def __init__(self, op, number, opset, schema, name):
        foreign = FOREIGN.get(name)
        dtype = np.dtype(np.float32) if foreign is not None else ops.type_names()[name][1]
        self.op, self.number, self.label, self.share = op, number, f"n{number}_{SHORT[name]}", number % 2 == 0
        self.name = name
        self.node = ops.draw(op, number, opset, schema, dtype)
        self.runs = [[None if a is None else np.asarray(a) for a in self.node.arrays()] for _ in range(run.RUNS)]
        if foreign is not None:
            main = ops.main_parameter(schema)
            if main not in [i.type_str for i in schema.inputs]:
                raise ops.Skip
            for arrays in self.runs:
                for i, a in enumerate(arrays):
                    if a is not None and ops.input_parameter(schema, i) == main:
                        arrays[i] = a.astype(str).astype(object) if foreign == object else a.astype(foreign)
        self.types = references.output_types(self.node, self.runs[0])


def samples(op, opset, schema):
    """Nodes of all types: of each the numbers at which run.py has its turn for it."""
    result = []
    types = ops.turns(schema)
    for name in allowed_types(schema):
        if name in FOREIGN:
            numbers = range(1)
        else:
            first = types.index(ops.type_names()[name][1])
            draws = MORE_DRAWS.get(op, DRAWS) if schema is ops.definitions(op)[0][2] else OLD_DRAWS
            numbers = [first + k * len(types) for k in range(draws)]
        for number in numbers:
            with contextlib.suppress(ops.Skip):
                result.append(Sample(op, number, opset, schema, name))
    return result


def compile_all(dlc, folder, entries):
    """{label: why it was refused} of the nodes."""
    refused, source = {}, folder / "model.onnx"
    waiting = [entries[i:i + 24] for i in range(0, len(entries), 24)]
    while waiting:
        some = waiting.pop()
        form, found = run.Form(some, False), {}
        onnx.save(form.model, source)
        try:
            answer = dlc("compile", source, "-o", folder / "plan.mlir", "--stop-after", "plan", "--target", run.TARGET, "--jobs", 1)
            if answer.exit == 0:
                continue
            found = form.refusals(answer)
            problem = f"unclear: {answer.err.strip()[:200]}"
        except (driver.Crash, driver.Hang) as error:
            problem = f"{type(error).__name__.lower()}: {str(error)[:200]}"
        refused.update(found)
        rest = [e for e in some if e.label not in found]
        if found and len(rest) < len(some):
            waiting += [rest] if rest else []
        elif len(some) == 1:
            refused[some[0].label] = problem
        else:
            waiting += [some[:len(some) // 2], some[len(some) // 2:]]
    return refused


def measure(dlc, folder, op, opset, schema):
    """{"taken": types, "not": types, "limits": why nodes of types that are taken were refused, "faults"} of one definition."""
    entries = samples(op, opset, schema)
    refused = compile_all(dlc, folder, entries)
    taken = {entry.name for entry in entries if entry.label not in refused}
    limits = {supported.plain(refused[e.label]) for e in entries if e.name in taken and e.label in refused}
    faults = {reason for reason in refused.values() if reason.startswith(("crash: ", "hang: ", "unclear: "))}
    return {"taken": [SHORT[n] for n in allowed_types(schema) if n in taken], "not": [SHORT[n] for n in allowed_types(schema) if n not in taken],
            "limits": limits - faults, "faults": faults}


def measure_cases(dlc, folder):
    """{operator: (compiled, all)} of the onnx package's cases for the operators that ops.py does not draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node
        cases = list(node.collect_testcases(None))
    counts = {name: [0, 0] for name, schemas in ops.history().items() if name not in ops.OPS and not schemas[-1].deprecated}
    for case in cases:
        op = node._existing_names[case.name].op_type if case.name in node._existing_names else None
        if op not in counts:
            continue
        counts[op][1] += 1
        onnx.save(case.model, folder / "case.onnx")
        with contextlib.suppress(driver.Crash, driver.Hang):
            counts[op][0] += dlc("compile", folder / "case.onnx", "-o", folder / "plan.mlir", "--stop-after", "plan", "--target", run.TARGET,
                                 "--jobs", 1).exit == 0
    return {op: tuple(count) for op, count in counts.items()}


def measure_contrib(dlc, folder):
    """{(domain, operator): types of which its first case in test_contrib.py compiles}, of the operators that are not of ONNX."""
    taken = {}
    for case in {case.op: case for case in reversed(test_contrib.CASES)}.values():
        if not case.domain and case.op in ops.history():
            continue
        types = taken.setdefault((case.domain, case.op), [])
        for short, dtype in test_contrib.FLOATS.items():
            arrays = [case.arrays(number, dtype) for number in range(len(case.runs))]
            onnx.save(test_contrib.form_of(case, "behind nodes", arrays, dtype), folder / "contrib.onnx")
            with contextlib.suppress(driver.Crash, driver.Hang):
                if dlc("compile", folder / "contrib.onnx", "-o", folder / "plan.mlir", "--stop-after", "plan", "--target", run.TARGET,
                       "--jobs", 1).exit == 0:
                    types.append(short)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--update", action="store_true", help=f"write {FILE.relative_to(driver.ROOT)}")
    parser.add_argument("--op", action="append", help="only this operator (repeatable): its lines are printed")
    options = parser.parse_args()
    options.build = options.build.resolve()
    todo = [(op, first, last, schema) for op in sorted(ops.OPS) if not options.op or op in options.op
            for first, last, schema in ops.definitions(op)]

    @contextlib.contextmanager
    def setup(folder):
        with driver.Dlc(options.build) as dlc:
            def handle(n):
                if n < len(todo):
                    return measure(dlc, folder, todo[n][0], *todo[n][1::2])
                return measure_cases(dlc, folder), measure_contrib(dlc, folder)

            yield handle

    measured, cases, contrib, broken = {}, {}, {}, []
    for n, result, _ in driver.run_all(range(len(todo) + (not options.op)), setup, options.jobs, 900):
        if isinstance(result, Exception):
            broken.append(f"{todo[n][0] if n < len(todo) else 'cases'}: {type(result).__name__}: {result}")
        elif n < len(todo):
            measured[todo[n][:3]] = result
            broken += [f"{todo[n][0]}-{todo[n][1]}: {why}" for why in sorted(result["faults"])]
        else:
            cases, contrib = result
    for line in broken:
        print(f"FAILED {line}")
    text = supported.write(measured, cases, contrib)
    if options.op:
        print(text[text.index("| operator"):])
        return 1 if broken else 0
    old = FILE.read_text() if FILE.exists() else ""
    if options.update:
        FILE.write_text(text)
    same = options.update or text == old
    if not same:
        print(f"{FILE.relative_to(driver.ROOT)} is not what dlc does: test/ops/table.py --build {options.build} --update")
    driver.write_results(options.json, int(same), broken + [] if same else [f"{FILE.name}: old"])
    return 1 if broken or not same else 0


if __name__ == "__main__":
    sys.exit(main())
