#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator with random attributes, types, ranks and dims, in a static and a symbolic form.

    test/ops/run.py --build build/dev [--jobs 2] [--json FILE] [--all] [--filter REGEX] [--op NAME] [--opset N] [--seed N]

ops.py says how to draw nodes. A batch is some nodes of one operator and opset, and some runs of each: different dims, 0 and 1
among them, and other values. It is compiled twice: as a model with named dims that has each node once and does one run after the
other, and as a model of fixed dims that has each node once for each run. Both must give the same, bit for bit but where sums
round, and what ONNX Runtime and the ONNX reference evaluator give (references.py).
A node that dlc refuses with a message that names it is listed, unless docs/operators.md has it as taken; a wrong value, a crash, a hang or another error is a failure.
It is shown with the command that repeats it; its models and inputs are written to <build>/test-logs/ops.

What passes though that table does not have it is a failure too: table.py --update writes it anew.

Without --all, the newest definition of each operator with a few runs; with it, all types, 50 shapes and more for
each operator, and its older definitions. --references compares the references with each other, and asks dlc nothing.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import re
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import ops
import references
import supported

TARGET = "cpu:host"
NODES, RUNS = 3, 4  # of a batch
ALL_NODES, ALL_RUNS = 5, 5
LEAST_BATCHES = 2  # with --all, of the newest definition: 50 shapes
SECONDS_A_COMMAND, SECONDS_A_BATCH = 120, 600
NODE = re.compile(r"node (\d+) '\w+' \([^()\s]+\): *(.*\S)")
MORE_NODES = re.compile(r" \(the same holds for \d+ more: node ([\d ]+)\)")


class Failed(Exception):
    """What a node has to say."""


class Refused(Exception):
    """A clear word that dlc does not do this."""


class Entry:
    """A node of a batch with the inputs of its runs, and later its outputs."""

    def __init__(self, op, number, opset, schema, runs):
        self.op, self.number = op, number
        self.label = f"n{number}"
        self.node = ops.draw(op, number, opset, schema)
        self.runs = [[None if a is None else np.asarray(a) for a in self.node.arrays()] for _ in range(runs)]
        self.types = references.output_types(self.node, self.runs[0])
        self.share = number % 2 == 0  # whether dims that are always equal have one name
        self.outputs = {}

    def __str__(self):
        node = self.node
        attributes = ", ".join(f"{k}={v if not hasattr(v, 'dims') else numpy_helper.to_array(v)}" for k, v in node.attributes.items())
        kinds = ", ".join("-" if a is None else f"{a.dtype}{'' if i not in node.const else ' ' + str(a.tolist())}" for i, a in enumerate(self.runs[0]))
        return f"{self.op}-{node.opset}({kinds}) {{{attributes}}}"

    def shapes(self, run):
        return " ".join("-" if a is None else str(list(a.shape)) for a in self.runs[run])

    def symbolic_dims(self):
        """For each input its dims: a number where it is the same in all runs, else a name."""
        names, result = {}, []
        for i, first in enumerate(self.runs[0]):
            dims = []
            for axis in range(0 if first is None else first.ndim):
                sizes = tuple(run[i].shape[axis] for run in self.runs)
                if len(set(sizes)) == 1:
                    dims.append(sizes[0])
                else:
                    name = f"{self.label}_{i}_{axis}"
                    dims.append(names.setdefault(sizes, name) if self.share else name)
            result.append(dims)
        return result


class Form:
    """A model of several nodes, and what its runs are fed."""

    def __init__(self, entries, static):
        self.entries, self.static = entries, static
        nodes, inputs, outputs, weights = [], [], [], []
        self.owners = []  # labels of the entries that the nodes are of
        self.feeds = [{} for _ in range(1 if static else max(len(e.runs) for e in entries))]
        for entry in entries:
            dims = entry.symbolic_dims()
            for run in range(len(entry.runs)):
                prefix = f"{entry.label}_r{run}" if static else entry.label
                names = []
                for i, array in enumerate(entry.runs[run]):
                    constant = i in entry.node.const
                    names.append("" if array is None else f"{entry.label}_w{i}" if constant else f"{prefix}_x{i}")
                    if array is None:
                        continue
                    if constant:
                        if run == 0:
                            weights.append(numpy_helper.from_array(array, names[i]))
                        assert np.array_equal(array, entry.runs[0][i]), f"{entry}: input {i} is not constant"
                        continue
                    self.feeds[0 if static else run][names[i]] = array
                    if static or run == 0:
                        inputs.append(helper.make_tensor_value_info(names[i], ops.number_of(array.dtype), array.shape if static else dims[i]))
                if static or run == 0:
                    self.owners.append(entry.label)
                    results = [f"{prefix}_y{i}" for i in range(entry.node.outputs)]
                    nodes.append(helper.make_node(entry.op, names, results, name=prefix, **entry.node.attributes))
                    outputs += [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, entry.types)]
        self.model = references.make_model(nodes, inputs, outputs, weights, entries[0].node.opset)

    @property
    def name(self):
        return "static" if self.static else "symbolic"

    def refusals(self, answer):
        """{label: reason} of the entries that a failed compilation names; none if a line names no node."""
        found = {}
        for line in answer.errors:
            if not (match := NODE.search(line)):
                return {}
            numbers = [match[1]]
            if more := MORE_NODES.search(line):
                numbers += more[1].split()
            for number in numbers:
                found.setdefault(self.owners[int(number)], MORE_NODES.sub("", match[2]))
        return found if answer.exit == 1 else {}

    def take(self, run, values):
        """Hands the results of a run to the entries."""
        for entry in self.entries:
            for number in range(len(entry.runs)) if self.static else [run]:
                prefix = f"{entry.label}_r{number}" if self.static else entry.label
                entry.outputs.setdefault((self.name, number), [values[f"{prefix}_y{i}"] for i in range(entry.node.outputs)])


class Bench:
    """What batches work with, one for each worker."""

    def __init__(self, options, dlc, dlcrt, folder):
        self.options, self.dlc, self.dlcrt, self.folder = options, dlc, dlcrt, folder

    def run(self, form):
        """Computes a form. Raises Refused with the labels of what is refused, or Failed."""
        source, module = self.folder / "model.onnx", self.folder / "model.dlcm"
        onnx.save(form.model, source)
        answer = self.dlc("compile", source, "-o", module, "--target", TARGET, "--jobs", 1, seconds=SECONDS_A_COMMAND)
        if answer.exit != 0:
            if not (found := form.refusals(answer)):
                raise Failed(f"compiling the {form.name} form: exit code {answer.exit}: {answer.err.strip()}")
            raise Refused(found)
        try:
            instance = self.dlcrt.Instance(self.dlcrt.Module(module))
            for run, feeds in enumerate(form.feeds):
                form.take(run, instance.run(feeds))
        except self.dlcrt.DlcrtError as error:
            raise Failed(f"running the {form.name} form: {error}")

    def attempt(self, entries, static, verdicts):
        """Computes a form of those that can be computed; what is wrong with the others goes into `verdicts`."""
        while entries:
            try:
                self.run(Form(entries, static))
                return
            except Refused as refused:
                labels = refused.args[0]
                verdicts.update((label, Refused(reason)) for label, reason in labels.items())
                entries = [entry for entry in entries if entry.label not in labels]
            except (Failed, driver.Crash, driver.Hang) as failed:
                if len(entries) == 1:
                    verdicts[entries[0].label] = failed
                    return
                half = len(entries) // 2
                self.attempt(entries[:half], static, verdicts)
                entries = entries[half:]


def check(entry, dlc):
    """Compares the forms and the references; raises Failed, or returns remarks."""
    node, judge, remarks = entry.node, references.Judge(entry.node, entry.types), set()
    for run, arrays in enumerate(entry.runs):
        where = f"run {run}, {entry.shapes(run)}"
        if dlc:
            static, symbolic = entry.outputs["static", run], entry.outputs["symbolic", run]
            for i, (a, b) in enumerate(zip(references.sort_sets(node, static), references.sort_sets(node, symbolic))):
                # Vectors cut a sum of static length another way than one of any length.
                allowed = 0 if node.exact else references.tolerance(a.dtype) / 4
                if found := driver.difference(b, a, allowed, allowed):
                    raise Failed(f"{where}: the symbolic form differs from the static one: output {i} is {found}")
        want, who, least, differ = judge.wanted(arrays)
        if differ:
            raise Failed(f"{where}: references differ, and references.py does not say which is right: {differ}")
        if want is None:
            remarks.add("no reference: " + "; ".join(f"{k}: {v}" for k, v in judge.errors.items()))
        elif dlc and (found := references.difference(node, entry.outputs["static", run], want, least)):
            raise Failed(f"{where}, compared with {who}: {found}")
    return remarks


def save(entry, options):
    """Models and inputs of a failing node."""
    folder = options.build / "test-logs" / "ops" / f"{entry.op}-{entry.node.opset}-{entry.number}"
    for run, arrays in enumerate(entry.runs):
        data = folder / f"test_data_set_{run}"
        data.mkdir(parents=True, exist_ok=True)
        for i, array in enumerate(a for k, a in enumerate(arrays) if a is not None and k not in entry.node.const):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    for static in (False, True):
        form = Form([entry], static)
        onnx.save(form.model, folder / f"{form.name}.onnx")
    return folder


# --- batches ----------------------------------------------------------------------------------------------------------


def batches(options):
    """[(operator, seed, opset, schema, numbers of its nodes, runs of each)]"""
    result = []
    for op in sorted(ops.OPS):
        if options.op and op not in options.op or not driver.matches(options.filter, op):
            continue
        for age, (first, last, schema) in enumerate(ops.definitions(op)):
            if options.opset and not first <= options.opset <= last:
                continue
            opset = options.opset or first
            if options.seed is not None:
                result += [(op, options.seed, opset, schema, options)]
            elif options.all:
                kinds = len(ops.turns(schema))
                wanted = 1 if age else max(LEAST_BATCHES, -(-kinds // ALL_NODES))
                result += [(op, seed, opset, schema, options) for seed in range(wanted)]
            elif age == 0 or options.op:
                result += [(op, age, opset, schema, options)]
    return result


def entries_of(batch):
    op, seed, opset, schema, options = batch
    nodes, runs = (ALL_NODES, ALL_RUNS) if options.all else (NODES, RUNS)
    nodes, runs = options.nodes or nodes, options.runs or runs
    entries = []
    for number in range(seed * nodes, (seed + 1) * nodes):
        with contextlib.suppress(ops.Skip):
            entries.append(Entry(op, number, opset, schema, runs))
    return entries


def against_table(entry, verdict, table):
    """A failure if docs/operators.md says something else than what was seen, else the verdict."""
    taken = table.takes(entry.op, entry.node.opset, entry.node.dtype)
    if isinstance(verdict, Refused) and taken and supported.plain(str(verdict)) not in table.limits.get(entry.op, ()):
        return Failed(f"refused, which is not among the limits in docs/operators.md (see test/ops/table.py): {verdict}")
    if verdict is None and not taken:
        return Failed("this is taken, but not by docs/operators.md, which is old (see test/ops/table.py)")
    return verdict


def run_batch(bench, batch, table):
    """[(name, class, text)] of its nodes. table: what docs/operators.md says, where it is compared with that."""
    op, seed, opset, _, options = batch
    entries, verdicts, results = entries_of(batch), {}, []
    if not options.references:
        for static in (False, True):
            bench.attempt([e for e in entries if e.label not in verdicts], static, verdicts)
    for entry in entries:
        name = f"{op}-{opset} seed {seed} node {entry.number}"
        verdict, remarks = verdicts.get(entry.label), ()
        if verdict is None:
            try:
                remarks = check(entry, not options.references)
            except Failed as failed:
                verdict = failed
        if table:
            verdict = against_table(entry, verdict, table)
        if verdict is None:
            results.append((name, "pass", sorted(remarks)))
        elif isinstance(verdict, Refused):
            results.append((name, "refused", f"{entry.node.dtype}: {verdict}"))
        else:
            kind = "" if isinstance(verdict, Failed) else type(verdict).__name__.lower() + ": "
            flags = "".join(f" --{k} {v}" for k, v in (("nodes", options.nodes), ("runs", options.runs)) if v) + " --all" * options.all
            results.append((name, "failed", f"{kind}{verdict}\n    {entry}\n    models and inputs: {save(entry, options)}\n    again: "
                            f"test/ops/run.py --build {options.build} --op {op} --opset {opset} --seed {seed}{flags}"))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--op", action="append", help="only this operator (repeatable), in all its definitions")
    parser.add_argument("--opset", type=int, help="only this opset")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--nodes", type=int, help="nodes of a batch")
    parser.add_argument("--runs", type=int, help="runs of each node")
    parser.add_argument("--references", action="store_true", help="only compare the references with each other")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if unknown := set(options.op or []) - set(ops.OPS):
        parser.error(f"no operator {', '.join(sorted(unknown))} in ops.py")
    if driver.cannot_load(options):
        return 0

    start = time.monotonic()
    todo = batches(options)
    counts, failures, refused, remarks = collections.Counter(), [], collections.defaultdict(list), collections.defaultdict(list)
    worst = []
    # With other numbers of nodes than these, other nodes are drawn than table.py compiled.
    plain = not (options.all or options.op or options.references or options.nodes or options.runs)
    table = supported.Table() if plain and supported.FILE.exists() else None

    @contextlib.contextmanager
    def setup(folder):
        with driver.Dlc(options.build) as dlc:
            bench = Bench(options, dlc, driver.runtime(options.build), folder)
            yield lambda number: run_batch(bench, todo[number], table)

    for number, results, seconds in driver.run_all(range(len(todo)), setup, options.jobs, SECONDS_A_BATCH):
        op, seed, opset = todo[number][:3]
        worst.append((seconds, f"{op}-{opset}"))
        if isinstance(results, Exception):
            again = f"    again: test/ops/run.py --build {options.build} --op {op} --opset {opset} --seed {seed}{' --all' * options.all}"
            results = [(f"{op}-{opset} seed {seed}", "failed", f"{type(results).__name__.lower()}: {results}\n{again}")]
        for name, kind, text in results:
            counts[kind] += 1
            if kind == "failed":
                failures.append((name, text))
                print(f"FAILED {name}: {text}\n", flush=True)
            elif kind == "refused":
                refused[op, supported.plain(text.partition(": ")[2])].append(text.partition(": ")[0])
            else:
                for remark in text:
                    remarks[op, remark].append(name)
    for (op, text), kinds in sorted(refused.items()):
        print(f"refused: {op}: {text} ({len(kinds)}: {', '.join(sorted(set(kinds)))})")
    for (op, text), names in sorted(remarks.items()):
        print(f"{op}: {text} ({len(names)} nodes)")
    print("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for seconds, name in sorted(worst, reverse=True)[:5]))
    print(f"ops: {counts['pass']} passed, {counts['refused']} refused, {counts['failed']} failed in {time.monotonic() - start:.0f} s")
    driver.write_results(options.json, counts["pass"], [f"{name}: {text}" for name, text in failures], refused=counts["refused"])
    return 0 if not failures else 1


if __name__ == "__main__":
    sys.exit(main())
