#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the test cases of the onnx package (1.23.2) and compares what comes out with test/onnx-conformance/expected.txt.

    test/onnx-conformance/run.py --build build/dev [--jobs 2] [--json FILE] [--all] [--filter REGEX] [--update]
                                 [--target TARGET [--runner COMMAND]]

The 2,024 cases: 1,884 of single operators, which the package makes in memory (onnx.backend.test.case.node), and 140 of folders
in the package: `simple` (23), `pytorch-converted` (82) and `pytorch-operator` (35). Its `light` and `real` folders are
networks without data or only addresses of some, and do not count.

A case is compiled by a long-lived `dlc serve` for this machine (--all: for the x86-64-v2 baseline too) and run in this
script's worker processes through runtime/python. A crash or a hang loses that one case. Every case ends in one class:

    pass         the right values, types and shapes, within the case's tolerances
    wrong        others; or the module, once compiled, cannot be run
    unsupported  refused with exit code 1, each error naming the node with its operator, and the reason
    unclear      refused in any other way
    crash        a signal, or a fault that dlc reports of itself (exit code 70)
    hang         no answer after 60 s of processor time, or after 300 s

expected.txt has a line for each case that does not pass. A case that ends in another class than its line says is a failure,
also if it passes now: `--update` writes the list anew (with --filter: only the lines of the cases that ran).
"""

import argparse
import collections
import contextlib
import os
import pathlib
import re
import shlex
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver

CASES = 2024
FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")
CLASSES = ("pass", "wrong", "unsupported", "unclear", "crash", "hang")
EXPECTED = pathlib.Path(__file__).with_name("expected.txt")
SECONDS_A_CASE = 60
NODE = re.compile(r"node (\d+)(?: '.*?')? \(([^()\s]+)\): *(.*\S)")


class Case:
    """A model and data sets of inputs and outputs, made when they are asked for."""

    def __init__(self, name, group, case):
        self.name, self.group, self.case = name, group, case
        self.rtol, self.atol = case.rtol, case.atol

    def load(self):
        """The model, and the data sets as lists of arrays, lists (sequences) or None (an empty optional)."""
        if self.case.model is not None:
            sets = [([to_value(x) for x in inputs], [to_value(x) for x in outputs]) for inputs, outputs in self.case.data_sets]
            return self.case.model, sets
        folder = pathlib.Path(self.case.model_dir)
        model = onnx.load(folder / "model.onnx")
        sets = []
        for data in sorted(folder.glob("test_data_set_*")):
            both = []
            for kind, infos in (("input", model.graph.input), ("output", model.graph.output)):
                count = len(list(data.glob(f"{kind}_*.pb")))
                both.append([read_value(data / f"{kind}_{i}.pb", infos[i].type) for i in range(count)])
            sets.append(tuple(both))
        return model, sets


def to_value(x):
    if isinstance(x, onnx.TensorProto):
        return numpy_helper.to_array(x)
    if isinstance(x, (list, tuple)):
        return [to_value(element) for element in x]
    return x if x is None else np.asarray(x)


def read_value(path, type_proto):
    kind = type_proto.WhichOneof("value")
    proto, convert = {
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }.get(kind, (onnx.TensorProto, numpy_helper.to_array))
    message = proto()
    message.ParseFromString(path.read_bytes())
    return convert(message)


def collect():
    """All cases, in a fixed order and with the same data each time."""
    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case import node
        from onnx.backend.test.loader import load_model_tests
        made = list(node.collect_testcases(None))
    operators = {name: made_from.op_type for name, made_from in node._existing_names.items()}
    cases = [Case(case.name, operators.get(case.name) or operators[case.name.partition("_expanded")[0]], case) for case in made]
    for kind in FOLDERS:
        cases += [Case(case.name, f"({kind})", case) for case in sorted(load_model_tests(kind=kind), key=lambda case: case.name)]
    if len(cases) != CASES or len({case.name for case in cases}) != CASES:
        sys.exit(f"the onnx package has {len(cases)} cases with {len({case.name for case in cases})} names, not {CASES}: is it 1.23.2?")
    return cases


# --- one case ---------------------------------------------------------------------------------------------------------


def operators_of(model):
    """All operators of a model, its functions and subgraphs, and the number of nodes of its graphs."""
    found, count = set(), 0
    lists = [model.graph.node, *(function.node for function in model.functions)]
    while lists:
        for node in lists.pop():
            count += 1
            domain = "" if node.domain in ("", "ai.onnx") else node.domain + "."
            found.add(domain + node.op_type)
            for attribute in node.attribute:
                lists += [g.node for g in ([attribute.g] if attribute.HasField("g") else attribute.graphs)]
    return found, count


def judge_refusal(answer, model):
    """(class, reason) of an answer that is not success."""
    first = (answer.errors or answer.err.strip().splitlines() or ["without a message"])[0]
    if answer.exit != 1:
        return "unclear", f"exit code {answer.exit}: {first}"
    if not answer.errors:
        return "unclear", f"no `error:` line: {first}"
    operators, count = operators_of(model)
    reasons = []
    for error in answer.errors:
        said = NODE.search(error)
        if not said and "no node reads it" in error:  # the fault of an input, and no node to name
            reasons.append(f"input: {error.partition(': ')[2]}")
            continue
        if not said:
            return "unclear", f"names no node: {error.partition(': ')[2] or error}"
        number, operator, reason = int(said[1]), said[2], said[3]
        if number >= count or operator not in operators:
            return "unclear", f"names node {number} ({operator}), which is not in the model"
        reasons.append(f"{operator}: {reason}")
    return "unsupported", reasons[0]


def run_case(case, dlc, dlcrt, load, folder, targets):
    """(class, reason). `load` makes something that runs of a module's path."""
    model, sets = case.load()
    source = folder / f"{case.name}.onnx"
    source.write_bytes(model.SerializeToString())
    inputs = [value.name for value in model.graph.input]
    for target in targets:
        compiled = folder / "case.dlcm"
        compiled.unlink(missing_ok=True)
        answer = dlc("compile", source, "-o", compiled, "--target", target, "--jobs", 1, seconds=SECONDS_A_CASE)
        where = f"{target}: " if len(targets) > 1 else ""
        if answer.exit != 0:
            name, reason = judge_refusal(answer, model)
            return name, where + reason
        try:
            instance = load(compiled)
            for given, wanted in sets:
                got = list(instance.run(dict(zip(inputs, given))).values())
                if len(got) != len(wanted):
                    return "wrong", f"{where}{len(got)} outputs, not {len(wanted)}"
                for output, g, w in zip(model.graph.output, got, wanted):
                    # As the package's own runner has it: two units in the last place of a bfloat16.
                    rtol = max(case.rtol, 2**-6) if getattr(w, "dtype", None) == "bfloat16" else case.rtol
                    if found := driver.difference(g, w, rtol, case.atol):
                        return "wrong", f"{where}output '{output.name}' is {found}"
        except dlcrt.DlcrtError as error:
            return "wrong", f"{where}cannot be run: {error}"
    return "pass", ""


def run_all(cases, options, targets, runner=None):
    """{name: (class, reason, seconds)}. runner: the command that starts dlcrt-run, where modules are not for this machine."""

    @contextlib.contextmanager
    def setup(folder):
        dlcrt = driver.runtime(options.build)

        def load(module):
            if runner:
                return driver.RemoteInstance(dlcrt, module, runner, folder)
            return dlcrt.Instance(dlcrt.Module(module))

        with driver.Dlc(options.build) as dlc:
            yield lambda number: run_case(cases[number], dlc, dlcrt, load, folder, targets)

    results = {}
    for number, result, seconds in driver.run_all(range(len(cases)), setup, options.jobs, SECONDS_A_CASE + 10):
        if isinstance(result, driver.Crash):
            result = "crash", str(result)
        elif isinstance(result, driver.Hang):
            result = "hang", str(result)
        results[cases[number].name] = (*result, seconds)
    return results


# --- the list of what does not pass -----------------------------------------------------------------------------------


def read_expected():
    """{name: (class, line)}"""
    expected = {}
    if EXPECTED.exists():
        for number, line in enumerate(EXPECTED.read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            name, _, rest = line.partition(": ")
            kind = rest.partition(":")[0]
            if kind not in CLASSES[1:] or name in expected:
                sys.exit(f"{EXPECTED}:{number}: not a line `name: class: reason`, or the case is there twice")
            expected[name] = (kind, line)
    return expected


def one_line(reason, limit=110):
    """The reason without what differs from machine to machine."""
    text = " ".join(reason.split())
    text = re.sub(r"^\w+: \S+\.onnx: ", "", text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def write_expected(results, known, expected):
    lines = [line for name, (_, line) in expected.items() if name in known and name not in results]
    lines += [f"{name}: {kind}: {one_line(reason)}" for name, (kind, reason, _) in results.items() if kind != "pass"]
    EXPECTED.write_text("# Cases of the onnx package that do not pass, one a line: `name: class: reason`. Only name and class are compared.\n"
                        "# Made by: test/onnx-conformance/run.py --build DIR --update\n" + "".join(f"{line}\n" for line in sorted(lines)))


def compare(cases, results, expected):
    """What did not come out as expected.txt says, a line each."""
    unexpected = []
    for case in cases:
        kind, reason, _ = results[case.name]
        wanted = expected.get(case.name, ("pass",))[0]
        if kind != wanted:
            unexpected.append(f"{case.name}: {kind}, expected {wanted}" + (f": {one_line(reason, 400)}" if reason else " (run.py --update)"))
    return unexpected


def print_table(cases, results):
    counts = collections.defaultdict(collections.Counter)
    for case in cases:
        counts[case.group][results[case.name][0]] += 1
    print(f"{'operator':28}" + "".join(f"{kind:>13}" for kind in CLASSES))
    for group in sorted(counts):
        print(f"{group:28}" + "".join(f"{counts[group][kind] or '.':>13}" for kind in CLASSES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--update", action="store_true", help="write expected.txt as things are now")
    parser.add_argument("--target", action="append", help="compile for this target instead (repeatable)")
    parser.add_argument("--runner", metavar="COMMAND", type=shlex.split, help="what starts dlcrt-run, to run modules for another machine")
    options = parser.parse_args()
    if options.runner and not options.target:
        parser.error("--runner needs --target")
    if driver.cannot_load(options):
        return 0
    start = time.monotonic()
    everything = collect()
    collected = time.monotonic() - start
    cases = [case for case in everything if driver.matches(options.filter, case.name)]
    targets = options.target or (["cpu:host", "cpu:x86-64-v2"] if options.all else ["cpu:host"])
    results = run_all(cases, options, targets, options.runner)

    expected = read_expected()
    known = {case.name for case in everything}
    unexpected = [f"{name}: is in expected.txt, but there is no such case" for name in expected if name not in known]
    unexpected += compare(cases, results, expected)

    print_table(cases, results)
    slowest = sorted(results.items(), key=lambda item: -item[1][2])[:5]
    print("slowest: " * bool(slowest) + ", ".join(f"{name} {seconds:.1f} s" for name, (_, _, seconds) in slowest))
    totals = collections.Counter(kind for kind, _, _ in results.values())
    for line in unexpected:
        print(f"UNEXPECTED {line}")
    print(f"made the cases in {collected:.0f} s, ran them in {time.monotonic() - start - collected:.0f} s")
    print(f"conformance: {totals['pass']} of {len(cases)} pass, " + ", ".join(f"{totals[kind]} {kind}" for kind in CLASSES[1:]))
    if options.update:
        write_expected(results, known, expected)
        print(f"wrote {EXPECTED}")
        unexpected = []
    driver.write_results(options.json, len(cases) - sum(line.partition(": ")[0] in results for line in unexpected), unexpected,
                         classes=dict(totals),
                         results={name: {"class": kind, "reason": reason} for name, (kind, reason, _) in results.items()})
    return 0 if not unexpected else 1


if __name__ == "__main__":
    sys.exit(main())
