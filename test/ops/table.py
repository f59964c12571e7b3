#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/operators.md: which operators, opsets and element types dlc takes, found by compiling nodes of each.

    test/ops/table.py --build build/dev [--jobs 2] [--update] [--op NAME]

For each operator of ops.py, each of its definitions and each type, some random nodes with named dims are compiled up to the plan.
Of the other operators, the models of the onnx package's test cases are compiled. Without --update, the table is compared with the file.
run.py compares what it sees with the file too, so a table that is old fails the tests.
"""

import argparse
import collections
import contextlib
import pathlib
import re
import sys
import warnings

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import ops
import references
import run

FILE = driver.ROOT / "docs" / "operators.md"
DRAWS = 4  # nodes of each type
MORE_DRAWS = {"Cast": 12, "CastLike": 8, "BitCast": 6, "OneHot": 6}
SHORT = {"double": "f64", "float": "f32", "float16": "f16", "bfloat16": "bf16", "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz",
         "float8e5m2": "f8e5m2", "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float6e2m3": "f6e2m3",
         "float6e3m2": "f6e3m2", "float4e2m1": "f4e2m1", "int64": "i64", "int32": "i32",
         "int16": "i16", "int8": "i8", "int4": "i4", "int2": "i2", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "uint4": "u4",
         "uint2": "u2", "bool": "bool", "string": "string", "complex64": "c64", "complex128": "c128"}
GROUPS = {  # a name for types that are all there
    "f8": ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"), "i8..i64": ("i64", "i32", "i16", "i8"), "u8..u64": ("u64", "u32", "u16", "u8"),
    "i2 i4 u2 u4": ("i4", "i2", "u4", "u2"), "complex": ("c64", "c128"),
}
FOREIGN = {"string": np.dtype(object), "complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128)}
HEAD = """# Which operators dlc takes

<!-- Generated: test/ops/table.py --build build/dev --update -->

Found by compiling, for each line, random nodes of each element type that ONNX's definition allows, with named dims (test/ops). *Taken*: all
nodes compiled, and test/ops/run.py compares what they compute with two references. *In part*: some were refused, for the reasons below the
table. Whatever is not taken is refused with a message that names the node. Opsets 6 to {newest}; each line is for the opsets that
mean the same by the operator. The type is that of the data; other inputs have any type that the definition allows.

`i8..i64`: i8 i16 i32 i64, `u8..u64` likewise; `f8`: f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz; `complex`: c64 c128.
"""


def short(allowed):
    """Short names of the types in a schema's list."""
    names = [a[len("tensor("):-1] for a in allowed if a.startswith("tensor(")]
    return [SHORT[n] for n in names if n in SHORT]


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
    types = ops.Draw(op, opset, schema, 0).types(ops.main_parameter(schema))
    for name in allowed_types(schema):
        if name in FOREIGN:
            numbers = range(1)
        else:
            first = types.index(ops.type_names()[name][1])
            numbers = [first + k * len(types) for k in range(MORE_DRAWS.get(op, DRAWS))]
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
        onnx.save(run.Form(some, False).model, source)
        found = {}
        try:
            answer = dlc("compile", source, "-o", folder / "plan.mlir", "--stop-after", "plan", "--target", run.TARGET, "--jobs", 1)
            if answer.exit == 0:
                continue
            for line in answer.errors:
                if match := run.NODE.search(line):
                    found[match[1]] = match[2]
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
    """{"taken": [types], "part": [types], "not": [types], "why": {reason: [types]}} of one definition."""
    entries = samples(op, opset, schema)
    refused = compile_all(dlc, folder, entries)
    by_type = collections.defaultdict(list)
    why = collections.defaultdict(list)
    for entry in entries:
        by_type[SHORT[entry.name]].append(refused.get(entry.label))
    result = {"taken": [], "part": [], "not": []}
    for name in short(f"tensor({n})" for n in allowed_types(schema)):
        reasons = by_type.get(name, ["nothing was drawn"])
        kind = "taken" if not any(reasons) else "not" if all(reasons) else "part"
        result[kind].append(name)
        for reason in sorted(set(filter(None, reasons))):
            why[reason].append(name)
    return result | {"why": dict(why)}


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


# --- text -------------------------------------------------------------------------------------------------------------


def list_types(names):
    names = sorted(names, key=list(SHORT.values()).index)
    for group, members in GROUPS.items():
        if set(members) <= set(names):
            at = names.index(members[0])
            names[at:at + 1] = [group]
            names = [n for n in names if n not in members]
    return " ".join(names)


def expand_types(text):
    names = set()
    for group, members in GROUPS.items():
        if re.search(rf"(^| ){re.escape(group)}( |$)", text):
            names |= set(members)
            text = text.replace(group, "", 1)
    return names | set(text.split())


def span(first, last):
    return f"{first}" if first == last else f"{first}-" if last == ops.NEWEST else f"{first}-{last}"


def write(measured, cases):
    """The file's text. measured: {(op, first, last): result of measure}"""
    lines = [HEAD.format(newest=ops.NEWEST), "| operator | opsets | taken | in part | not |", "| --- | --- | --- | --- | --- |"]
    reasons, nothing = [], []
    for op in sorted({key[0] for key in measured}, key=str.lower):
        rows = []
        for (_, first, last), result in sorted((k, v) for k, v in measured.items() if k[0] == op):
            row = tuple(list_types(result[kind]) for kind in ("taken", "part", "not"))
            if rows and rows[-1][2] == row:
                rows[-1][1] = last
            else:
                rows.append([first, last, row])
        if not any(row[0] or row[1] for _, _, row in rows):
            nothing.append(op)
            continue
        lines += [f"| {op} | {span(first, last)} | {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for first, last, row in rows]
        found = collections.defaultdict(set)
        for (name, first, last), result in measured.items():
            if name == op:
                for reason, types in result["why"].items():
                    if partial := set(types) & set(result["part"]):
                        found[reason] |= partial
        reasons += [f"- **{op}** ({list_types(types)}): {reason}" for reason, types in sorted(found.items())]
    if reasons:
        lines += ["", "## What was refused in part", "", *reasons]
    lines += ["", "## Other operators", "", "Measured with the onnx package's own cases: how many compile.", ""]
    lines += [", ".join(f"{op} ({good} of {count})" for op, (good, count) in sorted(cases.items()) if good) + "."]
    nothing += [op for op, (good, _) in cases.items() if not good]
    lines += ["", "## Not supported", "", ", ".join(sorted(nothing)) + "." if nothing else "All have something."]
    return "\n".join(lines) + "\n"


def read():
    """{(operator, opset): {type: "taken", "part" or "not"}} of the file."""
    result = {}
    text = FILE.read_text() if FILE.exists() else ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 5 or not re.fullmatch(r"\d+(-\d*)?", cells[1]):
            continue
        first, dash, last = cells[1].partition("-")
        kinds = {name: kind for kind, cell in zip(("taken", "part", "not"), cells[2:]) for name in expand_types(cell)}
        for opset in range(int(first), (int(last) if last else ops.NEWEST if dash else int(first)) + 1):
            result[cells[0], opset] = kinds
    return result


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
            yield lambda n: measure(dlc, folder, todo[n][0], *todo[n][1::2]) if n < len(todo) else measure_cases(dlc, folder)

    measured, cases, broken = {}, {}, []
    for n, result, _ in driver.run_all(range(len(todo) + (not options.op)), setup, options.jobs, 900):
        if isinstance(result, Exception):
            broken.append(f"{todo[n][0] if n < len(todo) else 'cases'}: {type(result).__name__}: {result}")
        elif n < len(todo):
            measured[todo[n][:3]] = result
            broken += [f"{todo[n][0]}-{todo[n][1]}: {why}" for why in result["why"] if why.startswith(("crash: ", "hang: ", "unclear: "))]
        else:
            cases = result
    for line in broken:
        print(f"FAILED {line}")
    text = write(measured, cases)
    if options.op:
        print(text[len(HEAD.format(newest=ops.NEWEST)):])
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
