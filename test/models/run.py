#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models, from the ONNX file to the numbers.

    test/models/run.py --build build/dev [--jobs 2] [--json FILE] [--all] [--filter REGEX]

The models of block.py are compiled once, with dlc's own choice of targets. The module is run at batch 1, 3 and 17 and sequence
1, 7 and 128, by itself and with each variant forced, on one thread and on two, and must equal ONNX Runtime and the ONNX
reference evaluator. What disagrees is refused; `dlc inspect` shows the plan that runs; compiling in two goes gives the same
module at every phase, and so do two builds in different folders and with 1 and 2 compile threads.

The caches of a small decoder become state, and what it says is the same as with a cache that is fed back; two models of it make one module,
which is about as large as one of them.

Graphs with If (branches.py) are run with each condition, and a small decoder with caches of several lengths.

Of the real models (zoo.py), MiniLM-L6 is compiled once and run at batch 1 and 3 and sequence 1, 7 and 128 with each variant; on 1 and on 2
threads it gives the same bits. MiniLM-L6 as ONNX Runtime's optimizer writes it, and out of its fused operators (fused.py), gives the same as by
itself; with --all SmolLM2 too. --all: SmolLM2-135M reads prompts and goes on from its cache, and what it says is known; with its cache as
state, prefill and decode as two functions of one module, it says the same. Networks of convolutions (IMAGES; more with --all) are run at several
sizes from one module, with each variant. And nothing is left
behind phase clean which only computes a shape; of SmolLM2 that is asked with --all too.

Then attention in random forms (attention.py), and random graphs (random_graphs.py): 60 seeds, 1,000 with --all. Fused and unfused, the static and the symbolic form of each must give the same (bit for bit, but where sums
round), and what the two references give; where those differ, or neither can, only the forms are compared, and it is said how often.
What fails is cut down and written to <build>/test-logs/random_graphs, with the seed and the commands that show it.
"""

import argparse
import contextlib
import ctypes
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import block
import attention
import branches
import decoder
import driver
import fused
import minilm
import random_graphs
import shapes
import smollm
import weights
import zoo

MODELS = {"mlp": block.mlp, "block": block.block}
BATCHES, LENGTHS = (1, 3, 17), (1, 7, 128)
PHASES = ("import", "clean", "precision", "fuse", "plan", "schedule", "codegen", "finish")
RTOL, ATOL = 1e-4, 2e-5
MINILM_BATCHES, MINILM_LIMIT = (1, 3), 1e-4
SMOLLM_LIMIT = 1e-3
SMOLLM_STEPS = 4
# Between a cache that is fed back and one that is state: only where it is read from differs.
STATE_LIMIT = 1e-5
STEPS = (5, 1, 1, 3, 1)  # tokens of runs that follow each other
# What is read, and how it goes on.
PROMPTS = [
    ("The", ""),
    ("The capital of France is", " Paris."),
    ("A compiler reads a program in one language and writes it in another one. Most of them do so in several steps: the text is split into words, "
     "the words are put together to a tree, names are looked up and types are checked, and then the tree is turned into simpler and simpler forms "
     "until only instructions of the machine are left. Between these steps the compiler looks for", ""),
]
SECONDS_A_TEST = 180
SECONDS_A_LARGE_MODEL = 120  # to compile it
FORMS, ALL_FORMS = 40, 300  # of attention
FORMS, ALL_FORMS = 40, 300  # of attention
GRAPHS, ALL_GRAPHS = 60, 1000
TOLERANCE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-7}


class Failed(Exception):
    """What a test has to say."""


def check(answer, what):
    if answer.exit != 0:
        raise Failed(f"{what}: exit code {answer.exit}\n{answer.err.strip()}")
    return answer


# --- references -------------------------------------------------------------------------------------------------------


def onnxruntime_session(model):
    """Of a model's bytes or of its file."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnxruntime(model, inputs):
    return onnxruntime_session(model.SerializeToString()).run(None, inputs)


def run_evaluator(model, inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(output) for output in ReferenceEvaluator(model).run(None, inputs)]


REFERENCES = {"ONNX Runtime": run_onnxruntime, "the reference evaluator": run_evaluator}


@functools.cache
def model_of(name):
    return MODELS[name]()


def inputs_of(name, shape):
    return block.mlp_inputs(*shape) if name == "mlp" else block.block_inputs(*shape)


@functools.cache
def wanted(name, shape):
    return {who: run(model_of(name), inputs_of(name, shape)) for who, run in REFERENCES.items()}


def compare(name, shape, outputs, where):
    for who, values in wanted(name, shape).items():
        for output, got, want in zip(model_of(name).graph.output, outputs, values, strict=True):
            if found := driver.difference(got, want, RTOL, ATOL):
                raise Failed(f"{where}, compared with {who}: output '{output.name}' is {found}")


# --- the two models ---------------------------------------------------------------------------------------------------


class Bench:
    """What tests work with, one for each worker."""

    def __init__(self, options, dlc, dlcrt, folder, modules):
        self.options, self.dlc, self.dlcrt, self.folder, self.modules = options, dlc, dlcrt, folder, modules

    def compile(self, path, *words, seconds=60):
        module = self.folder / "model.dlcm"
        check(self.dlc("compile", path, "-o", module, *words, seconds=seconds), "dlc compile")
        return self.dlcrt.Module(module)

    @functools.cache
    def module(self, name):
        return self.dlcrt.Module(self.modules / f"{name}.dlcm")

    def instance_of(self, model):
        """A small model of one test, compiled for this machine."""
        path = self.folder / "model.onnx"
        onnx.save(model, path)
        return self.dlcrt.Instance(self.compile(path, "--target", "cpu:host"))

    def direct(self, name):
        return (self.modules / f"{name}.dlcm").read_bytes()


def test_values(name, shape, variant, threads):
    def test(bench):
        instance = bench.dlcrt.Instance(bench.module(name), variant=variant, threads=threads)
        outputs = list(instance.run(inputs_of(name, shape)).values())
        if variant and instance.target != variant:
            raise Failed(f"{instance.target} ran, not {variant}")
        compare(name, shape, outputs, instance.target)

    return test


def test_one_instance(name, shapes):
    def test(bench):
        instance = bench.dlcrt.Instance(bench.module(name))
        for shape in shapes + shapes[::-1]:
            compare(name, shape, list(instance.run(inputs_of(name, shape)).values()), f"at {shape}")

    return test


def test_disagreement(bench):
    instance = bench.dlcrt.Instance(bench.module("block"))
    inputs = block.block_inputs(2, 7)
    inputs["attention_mask"] = block.block_inputs(2, 8)["attention_mask"]
    text = "inputs 'input_ids' and 'attention_mask' disagree on 'seq': 7 and 8"
    try:
        instance.run(inputs)
    except bench.dlcrt.DlcrtError as error:
        if text not in str(error):
            raise Failed(f"the message is: {error}")
    else:
        raise Failed("it ran")
    compare("block", (3, 7), list(instance.run(inputs_of("block", (3, 7))).values()), "the run after the refusal")


def traced(bench, name, variant, shape):
    """Names of the kernels that a run launches, in order."""
    library = bench.dlcrt._library
    names = []
    event_type = library._struct("TraceEvent", ("kind", ctypes.c_int32), ("name", ctypes.c_char_p))  # the first fields

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(event_type))
    def trace(_, event):
        if event.contents.kind == 0:  # DLCRT_TRACE_LAUNCH
            names.append(event.contents.name.decode())

    instance = bench.dlcrt.Instance(bench.module(name), variant=variant)
    for number, array in enumerate(inputs_of(name, shape).values()):
        instance._bind(number, array)
    options = library.RunOptions(trace=ctypes.cast(trace, ctypes.c_void_p))
    instance._lib.instance_run(instance._handle, options)
    return names


def test_inspect(name, shape):
    def test(bench):
        path = bench.modules / f"{name}.dlcm"
        report = json.loads(check(bench.dlc("inspect", path, "--verify", "--json"), "inspect --json").out)
        text = check(bench.dlc("inspect", path), "inspect").out
        for variant in report["variants"]:
            if variant["plan"].strip() not in text:
                raise Failed(f"the text does not hold the plan of {variant['target']}")
            launches = re.findall(r"plan\.launch @([\w.$-]+)", variant["plan"])
            if not launches:
                raise Failed(f"the plan of {variant['target']} launches nothing:\n{variant['plan'][:1000]}")
            if not variant["runs_here"]:
                continue
            ran = traced(bench, name, variant["target"], shape)
            if ran != launches:
                raise Failed(f"{variant['target']}: the plan launches {launches}, the run launched {ran}")
        nodes = {node["name"] for variant in report["variants"] for kernel in variant["kernels"] for node in kernel["nodes"]}
        matmuls = {node.name for node in model_of(name).graph.node if node.op_type in ("MatMul", "Gemm")}
        if matmuls - nodes:
            raise Failed(f"the kernels' node names lack {sorted(matmuls - nodes)}")

    return test


def test_round_trip(name, phase):
    def test(bench):
        model = bench.modules / f"{name}.onnx"
        folder = pathlib.Path(tempfile.mkdtemp(dir=bench.folder))
        stopped = check(bench.dlc("compile", model, "--stop-after", phase, "-o", folder / "text.mlir", "--json"), f"--stop-after {phase}")
        texts = json.loads(stopped.out)["texts"]
        again = folder / "again.dlcm"
        check(bench.dlc("compile", *texts, "--start-from", phase, "-o", again), f"--start-from {phase}")
        if again.read_bytes() != bench.direct(name):
            raise Failed(f"the module differs: {first_difference(again.read_bytes(), bench.direct(name))}")

    return test


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{len(a)} and {len(b)} bytes, the first difference at byte {at}"


def test_same_build(name, jobs):
    """A process of its own, in another folder."""

    def test(bench):
        folder = pathlib.Path(tempfile.mkdtemp(dir=bench.folder, prefix="another folder "))
        shutil.copy(bench.modules / f"{name}.onnx", folder)
        done = subprocess.run([str(bench.dlc.program), "compile", f"{name}.onnx", "-o", "out.dlcm", "--jobs", str(jobs)],
                              cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode}\n{done.stderr}")
        built = (folder / "out.dlcm").read_bytes()
        if built != bench.direct(name):
            raise Failed(f"the module differs: {first_difference(built, bench.direct(name))}")

    return test


# --- real models ------------------------------------------------------------------------------------------------------


def check_apart(got, want, limit, where):
    """The largest difference, as a part of the largest number that is wanted."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise Failed(f"{where}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}")
    apart = np.max(np.abs(got.astype(np.float64) - want)) / np.max(np.abs(want))
    if not apart <= limit:
        raise Failed(f"{where}: differs by {apart:.1e} of the largest number, more than {limit:.0e}")


def test_minilm(bench):
    path = zoo.fetch("minilm_l6")
    module, session = bench.compile(path), onnxruntime_session(path)
    targets = [variant.target for variant in module.variants if variant.reason is None]
    feeds = [minilm.sentences(batch, length) for batch in MINILM_BATCHES for length in LENGTHS]
    feeds.append(minilm.padded(feeds[-1]))
    wanted = [session.run(None, feed)[0] for feed in feeds]
    for target in targets:
        one, two = (bench.dlcrt.Instance(module, variant=target, threads=threads) for threads in (1, 2))
        for feed, want in zip(feeds, wanted):
            where = f"{target}, batch {len(want)}, seq {want.shape[1]}"
            (got,), (again,) = (instance.run(feed).values() for instance in (one, two))
            check_apart(got, want, MINILM_LIMIT, where)
            if not np.array_equal(got, again):
                raise Failed(f"{where}: 2 threads give other bits than 1: {driver.difference(again, got, 0, 0)}")
    if bench.dlcrt.Instance(module).target not in targets:
        raise Failed("by itself it takes a variant that cannot run here")


def noise(*shape):
    return np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)


def page(*shape):
    """Black signs in lines on white. (Of noise a text detector makes something, but what differs in the last bits with each library.)"""
    random = np.random.default_rng(shape)
    batch, _, height, width = shape
    ink = np.zeros((batch, 1, height, width), np.float32)
    for image in ink[:, 0]:
        for top in range(8, height - 24, 32):
            for left in range(6, width - 14, 12):
                if random.random() < 0.8:
                    image[top : top + 16, left : left + 8] = np.kron(random.integers(0, 2, (8, 4)), np.ones((2, 2)))
    return 1 - 2 * ink + np.float32(0.05) * noise(*shape)


# Networks of convolutions: what they see, in the sizes that one module is run with.
IMAGES = {
    "squeezenet": (noise, [(1, 3, 224, 224)]),
    "shufflenet": (noise, [(1, 3, 224, 224)]),
    "ppocr4_det": (page, [(1, 3, 320, 224), (2, 3, 64, 96), (1, 3, 160, 160)]),
    "ppocr_cls": (noise, [(1, 3, 48, 192), (3, 3, 48, 100)]),
    "ddddocr_det": (noise, [(1, 3, 416, 416)]),
    "basic_pitch": (noise, [(1, 43844, 1)]),
}
ALL_IMAGES = {
    "resnet50": (noise, [(1, 3, 224, 224)]),
    "densenet121": (noise, [(1, 3, 224, 224)]),
    "vgg19": (noise, [(1, 3, 224, 224)]),
    "ppocr4_rec": (noise, [(1, 3, 48, 320), (2, 3, 48, 100)]),
}
IMAGES_LIMIT = 1e-4  # of the largest number of each output


def test_images(name, image, sizes):
    """Each variant on one thread equals ONNX Runtime, and on two threads gives the same bits."""

    def run(bench):
        path = zoo.fetch(name)
        module, session = bench.compile(path), onnxruntime_session(path)
        (value,) = session.get_inputs()
        for target in [variant.target for variant in module.variants if variant.reason is None]:
            one, two = (bench.dlcrt.Instance(module, variant=target, threads=threads) for threads in (1, 2))
            for size in sizes:
                feed = {value.name: image(*size)}
                for output, want in zip(session.get_outputs(), session.run(None, feed), strict=True):
                    got, again = (instance.run(feed)[output.name] for instance in (one, two))
                    where = f"{target}, input {list(size)}, output '{output.name}'"
                    if got.shape != want.shape:
                        raise Failed(f"{where}: dims {list(got.shape)}, not {list(want.shape)}")
                    apart = float(np.max(np.abs(got.astype(np.float64) - want))) / float(np.max(np.abs(want)))
                    if not apart <= IMAGES_LIMIT:
                        raise Failed(f"{where}: {apart:.1e} of the largest number off")
                    if not np.array_equal(got, again):
                        raise Failed(f"{where}: 2 threads give other bits than 1: {driver.difference(again, got, 0, 0)}")

    return run


def optimized(path, folder):
    """The model as ONNX Runtime's optimizer for CPUs makes it of another."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return folder / "optimized.onnx"


def fused_forms(bench, name, build):
    """[(what it is, path)] of forms of a real model that have operators of com.microsoft."""
    path = bench.folder / "fused.onnx"
    onnx.save(build(zoo.packed(name)), path)
    forms = [("optimized", optimized(zoo.fetch(name), bench.folder)), ("out of fused operators", path)]
    for where, path in forms:
        if not any(node.domain == fused.MICROSOFT for node in onnx.load(path).graph.node):
            raise Failed(f"{where}, the model has no operator of {fused.MICROSOFT}")
    return forms


def test_fused_minilm(bench):
    session = onnxruntime_session(zoo.fetch("minilm_l6"))
    feeds = [minilm.sentences(1, 7), minilm.padded(minilm.sentences(3, 30))]
    for where, path in fused_forms(bench, "minilm_l6", fused.minilm):
        instance = bench.dlcrt.Instance(bench.compile(path, "--target", "cpu:host"))
        for feed in feeds:
            (got,), want, mask = instance.run(feed).values(), session.run(None, feed)[0], feed["attention_mask"] != 0
            check_apart(got[mask], want[mask], MINILM_LIMIT, f"{where}, batch {len(want)}")  # rows that are padding see what they like


def test_fused_smollm2(bench):
    """A prompt, and a word behind its cache."""
    session = onnxruntime_session(zoo.fetch("smollm2"))
    names = [output.name for output in session.get_outputs()]
    for where, path in fused_forms(bench, "smollm2", fused.smollm2):
        instance = bench.dlcrt.Instance(bench.compile(path, "--target", "cpu:host", seconds=SECONDS_A_LARGE_MODEL))
        taken = {value.name for value in onnx.load(path).graph.input}
        past, ours, theirs = 0, smollm.no_cache(), smollm.no_cache()
        for numbers in ([504, 3575, 282, 4649, 314], [7042], [29]):
            feed = smollm.tokens(numbers, past)
            got = instance.run({name: value for name, value in {**feed, **ours}.items() if name in taken})
            want = dict(zip(names, session.run(None, {**feed, **theirs})))
            for name in names:
                check_apart(got[name], want[name], SMOLLM_LIMIT, f"{where}, {len(numbers)} tokens behind {past}, output '{name}'")
            ours, theirs, past = smollm.following(got), smollm.following(want), past + len(numbers)


def test_smollm2(bench):
    """The cache of each is fed back to it, while what is said is what ONNX Runtime says."""
    path = zoo.fetch("smollm2")
    vocabulary = weights.Vocabulary(weights.Gguf(zoo.packed("smollm2")).metadata)
    instance = bench.dlcrt.Instance(bench.compile(path, "--target", "cpu:host", seconds=SECONDS_A_LARGE_MODEL), threads=2)
    session = onnxruntime_session(path)
    names = [output.name for output in session.get_outputs()]
    for prompt, continuation in PROMPTS:
        numbers = vocabulary.encode(prompt)
        if vocabulary.decode(numbers) != prompt:
            raise Failed(f"'{prompt}' is encoded as {numbers}, which says '{vocabulary.decode(numbers)}'")
        past, said = 0, []
        ours = theirs = smollm.no_cache()
        for step in range(1 + SMOLLM_STEPS):
            feed = smollm.tokens(numbers, past)
            got, want = instance.run({**feed, **ours}), dict(zip(names, session.run(None, {**feed, **theirs})))
            for name in names:
                check_apart(got[name], want[name], SMOLLM_LIMIT, f"{len(numbers)} tokens behind {past} ('{prompt[:30]}'), output '{name}'")
            ours, theirs, past = smollm.following(got), smollm.following(want), past + len(numbers)
            choice, wanted = (int(outputs["logits"][0, -1].argmax()) for outputs in (got, want))
            said.append(choice)
            numbers = [wanted]
        if not vocabulary.decode(said).startswith(continuation):
            raise Failed(f"'{prompt}' goes on with '{vocabulary.decode(said)}', not '{continuation}'")


def empty_cache(batch):
    return {f"past_{kind}.{layer}": np.empty((batch, decoder.KV_HEADS, 0, decoder.SIZE), np.float32) for layer in range(decoder.LAYERS) for kind in "kv"}


def following(outputs):
    """The cache that the next run takes, of the outputs by name."""
    return {name.replace("present", "past"): value for name, value in outputs.items() if name.startswith("present")}


def one_token(model):
    """The same decoder, for runs of one token each."""
    for value in (*model.graph.input[:2], model.graph.output[0]):
        value.type.tensor_type.shape.dim[1].dim_value = 1
    return model


def check_state(state, cache, where):
    for name, want in cache.items():
        check_apart(state.read(name), want, STATE_LIMIT, f"{where}, state '{name}'")


def test_state(pattern):
    """A decoder whose cache is state says what the same one says whose cache is fed back to it."""

    def test(bench):
        model = decoder.decoder()
        plain = bench.instance_of(model)
        module = bench.compile(bench.folder / "model.onnx", "--target", "cpu:host", "--state", pattern)
        (function,) = module.functions
        if {value.name for value in function.inputs} != {"input_ids", "position_ids"} or [value.name for value in function.outputs] != ["logits"]:
            raise Failed(f"states are part of the signature: {function}")
        if function.states != 2 * decoder.LAYERS or (function.length, function.capacity) != ("past", "past_capacity"):
            raise Failed(f"the function's states: {function}")
        for batch in (1, 2):
            state = bench.dlcrt.State(module, capacity=sum(STEPS), dims={"batch": batch})
            instance = bench.dlcrt.Instance(module, state=state, threads=2)
            cache, said = empty_cache(batch), []
            for step in STEPS:
                feed = {name: value for name, value in decoder.inputs(batch, step, state.length).items() if not name.startswith("past")}
                want = plain.run({**feed, **cache})
                got = instance.run(feed)
                where = f"batch {batch}, {step} tokens behind {state.length - step}"
                check_apart(got["logits"], want["logits"], STATE_LIMIT, where)
                cache = following(want)
                check_state(state, cache, where)
                said.append((feed, want["logits"], state.length - step))
            try:
                instance.run(feed)
            except bench.dlcrt.DlcrtError as error:
                if f"is full: {sum(STEPS) + 1} of {sum(STEPS)}" not in str(error):
                    raise Failed(f"the message is: {error}")
            else:
                raise Failed("it ran without room")
            if state.length != sum(STEPS):
                raise Failed(f"a run that was refused left the length {state.length}")
            # What is behind the end is forgotten, and moving does not change what is in front of it.
            state.grow(100)
            check_state(state, cache, "grown")
            for feed, logits, length in said[::-1]:
                state.length = length
                check_apart(instance.run(feed)["logits"], logits, STATE_LIMIT, f"again behind {length}")
            # What was written is as good as what was computed.
            copy = bench.dlcrt.State(module, capacity=64, dims={"batch": batch})
            for name, values in cache.items():
                copy.write(name, values)
            copy.length = sum(STEPS)
            instance.state = copy
            feed = {name: value for name, value in decoder.inputs(batch, 2, copy.length).items() if not name.startswith("past")}
            check_apart(instance.run(feed)["logits"], plain.run({**feed, **cache})["logits"], STATE_LIMIT, "behind what was written")

    return test


def test_functions(bench):
    """Prefill and decode in one module: they share constants and state."""
    plain = bench.instance_of(decoder.decoder())
    for name, model in (("prefill", decoder.decoder()), ("decode", one_token(decoder.decoder()))):
        onnx.save(model, bench.folder / f"{name}.onnx")
    paths, words = [bench.folder / f"{name}.onnx" for name in ("prefill", "decode")], ("--target", "cpu:host", "--state", "auto")
    alone = bench.compile(paths[0], *words).weight_bytes
    check(bench.dlc("compile", *paths, "-o", bench.folder / "both.dlcm", *words), "dlc compile of two models")
    module = bench.dlcrt.Module(bench.folder / "both.dlcm")
    if [function.name for function in module.functions] != ["prefill", "decode"]:
        raise Failed(f"functions: {[function.name for function in module.functions]}")
    if module.weight_bytes > 1.02 * alone:
        raise Failed(f"{module.weight_bytes} bytes of constants, {alone} of one function")
    if len(module.states) != 2 * decoder.LAYERS:
        raise Failed(f"states: {module.states}")
    state = bench.dlcrt.State(module, capacity=32, dims={"batch": 1})
    prefill, decode = (bench.dlcrt.Instance(module, function=name, state=state) for name in ("prefill", "decode"))
    cache = empty_cache(1)
    for step in STEPS:
        feed = {name: value for name, value in decoder.inputs(1, step, state.length).items() if not name.startswith("past")}
        want = plain.run({**feed, **cache})
        got = (decode if step == 1 else prefill).run(feed)
        check_apart(got["logits"], want["logits"], STATE_LIMIT, f"{step} tokens behind {state.length - step}")
        cache = following(want)
        check_state(state, cache, f"behind {state.length}")
    # By other names, in the other order.
    check(bench.dlc("compile", "--function", f"one={paths[1]}", "--function", f"many={paths[0]}", "-o", bench.folder / "named.dlcm", *words), "--function")
    names = [function.name for function in bench.dlcrt.Module(bench.folder / "named.dlcm").functions]
    if names != ["one", "many"]:
        raise Failed(f"--function gives {names}")
    report = json.loads(check(bench.dlc("inspect", bench.folder / "both.dlcm", "--function", "decode", "--json"), "inspect --function").out)
    if [function["name"] for function in report["functions"]] != ["decode"] or len(report["states"]) != 2 * decoder.LAYERS:
        raise Failed(f"inspect says {report['functions']}, {report.get('states')}")
    (variant,) = report["variants"]
    if not all(kernel["launches"] for kernel in variant["kernels"]) or "plan.state 0" not in variant["plan"]:
        raise Failed("inspect shows kernels of the other function, or no state")
    for words in (("bench", "--function", "decode", "--state-length", 20, "--seconds", 0.01, "--warmup", 0, "--json"),
                  ("run", "--function", "prefill", "--random", 1, "--dim", "step=7", "--state-capacity", 7)):
        check(bench.dlc(words[0], bench.folder / "both.dlcm", *words[1:]), words[0])
    answer = bench.dlc("run", bench.folder / "both.dlcm", "--function", "prefill", "--random", 1, "--dim", "step=7", "--state-capacity", 6)
    if answer.exit != 1 or "is full: 7 of 6" not in answer.err or "--state-capacity" not in answer.err:
        raise Failed(f"without room: exit code {answer.exit}, {answer.err}")


def test_smollm2_state(bench):
    """Greedy generation with prefill and decode as two functions of one module, whose cache is state, against the cache fed back by hand."""
    path = zoo.fetch("smollm2")
    vocabulary = weights.Vocabulary(weights.Gguf(zoo.packed("smollm2")).metadata)
    plain = bench.compile(path, "--target", "cpu:host", seconds=SECONDS_A_LARGE_MODEL)
    alone = (bench.folder / "model.dlcm").stat().st_size
    instance = bench.dlcrt.Instance(plain, threads=2)
    onnx.save(one_token(onnx.load(path)), bench.folder / "decode.onnx")
    check(bench.dlc("compile", "--function", f"prefill={path}", "--function", f"decode={bench.folder / 'decode.onnx'}", "-o", bench.folder / "both.dlcm",
                    "--target", "cpu:host", "--state", "past_k.*=present_k.*,past_v.*=present_v.*", seconds=2 * SECONDS_A_LARGE_MODEL), "dlc compile")
    both = (bench.folder / "both.dlcm").stat().st_size
    if both > 1.05 * alone:
        raise Failed(f"the module of two functions has {both} bytes, that of one {alone}")
    module = bench.dlcrt.Module(bench.folder / "both.dlcm")
    state = bench.dlcrt.State(module, capacity=128)
    functions = {name: bench.dlcrt.Instance(module, function=name, state=state, threads=2) for name in ("prefill", "decode")}
    for prompt, continuation in PROMPTS:
        state.reset()
        numbers, cache, said = vocabulary.encode(prompt), smollm.no_cache(), []
        for step in range(1 + SMOLLM_STEPS):
            feed = smollm.tokens(numbers, state.length)
            want = instance.run({**feed, **cache})
            got = functions["prefill" if step == 0 else "decode"].run(feed)
            check_apart(got["logits"], want["logits"], STATE_LIMIT * 10, f"{len(numbers)} tokens behind {state.length - len(numbers)} ('{prompt[:30]}')")
            cache = smollm.following(want)
            numbers = [int(got["logits"][0, -1].argmax())]
            said += numbers
            if numbers[0] != int(want["logits"][0, -1].argmax()):
                raise Failed(f"'{prompt[:30]}' goes on with '{vocabulary.decode(said)}', which is not what the cache that is fed back gives")
        check_state(state, {name: cache[name] for name in list(cache)[:2]}, f"'{prompt[:30]}'")
        if not vocabulary.decode(said).startswith(continuation):
            raise Failed(f"'{prompt}' goes on with '{vocabulary.decode(said)}', not '{continuation}'")


# --- attention -----------------------------------------------------------------------------------------------------


def test_attention(seed):
    """One kernel, whatever the form; right, and the same as a kernel for each operator but for rounding."""

    def test(bench):
        form = attention.Form(seed)
        source = bench.folder / "attention.onnx"
        onnx.save(form.model(), source)
        target = ("cpu:host", "cpu:x86-64-v2")[seed % 4 == 3]
        instances = {}
        for name, flags in (("fused", []), ("unfused", ["--no-fusion"])):
            module = bench.folder / f"{name}.dlcm"
            check(bench.dlc("compile", source, "-o", module, "--target", target, "--jobs", 1, *flags), f"compiling it {name} ({form})")
            instances[name] = bench.dlcrt.Instance(bench.dlcrt.Module(module))
        clean = bench.folder / "precision.mlir"
        check(bench.dlc("compile", source, "--stop-after", "precision", "-o", clean), "--stop-after precision")
        if (count := clean.read_text().count("dlc.attention")) != 1:
            raise Failed(f"{count} times attention is recognised in it ({form})")
        for run in range(len(form.runs)):
            feed = form.inputs(run)
            want = form.result(feed).astype(np.float32)
            for name, instance in instances.items():
                (got,) = instance.run(form.fed(feed)).values()
                if found := driver.difference(got, want, RTOL, RTOL * max(1, np.nanmax(np.abs(want), initial=0))):
                    raise Failed(f"{name}, sizes {form.runs[run]}: {found} ({form})")

    return test


# --- random graphs ----------------------------------------------------------------------------------------------------


def run_forms(bench, graph, target):
    """Outputs of the static and the symbolic form, and of the second one with a kernel for each operator."""
    results = []
    for form, flags in (("static", []), ("symbolic", []), ("symbolic", ["--no-fusion"])):
        source, module = bench.folder / f"{form}.onnx", bench.folder / f"{form}.dlcm"
        onnx.save(getattr(graph, form), source)
        check(bench.dlc("compile", source, "-o", module, "--target", target, "--jobs", 1, *flags), f"compiling the {' '.join([form, *flags])} form")
        try:
            results.append(list(bench.dlcrt.Instance(bench.dlcrt.Module(module)).run(graph.inputs).values()))
        except bench.dlcrt.DlcrtError as error:
            raise Failed(f"running the {form} form: {error}")
    return results


def run_graph(bench, graph, target):
    """Raises Failed, or returns remarks about the references."""
    static, symbolic, unfused = run_forms(bench, graph, target)
    for value, a, b, c in zip(graph.outputs, static, symbolic, unfused):
        # Vectors cut a sum of static length another way than one of any length.
        tolerance = 0 if value.exact else TOLERANCE.get(value.dtype, 0) / 10
        if found := driver.difference(b, a, tolerance, tolerance):
            raise Failed(f"'{value.name}': the symbolic form differs from the static one: {found}")
        tolerance = 0 if value.exact else TOLERANCE.get(value.dtype, 0)
        if found := driver.difference(b, c, tolerance, tolerance):
            raise Failed(f"'{value.name}': fused differs from unfused: {found}")
    references = {}
    for who, run in REFERENCES.items():
        with contextlib.suppress(Exception):  # neither knows every operator for every type, and the second not every empty tensor
            references[who] = run(graph.static, graph.inputs)
    if not references:
        return ["no reference"]
    remarks = []
    for i, value in enumerate(graph.outputs):
        tolerance = TOLERANCE.get(value.dtype, 0)
        values = [outputs[i] for outputs in references.values()]
        if any(driver.difference(v, values[0], tolerance, tolerance) for v in values[1:]):
            remarks.append("the references differ")
            continue
        if found := driver.difference(static[i], values[0], tolerance, tolerance):
            raise Failed(f"'{value.name}', compared with {' and '.join(references)}: {found}")
    return remarks


def smallest(bench, graph, target):
    """The part of a failing graph up to the first value that is not right, in the order of its nodes."""
    for node in graph.nodes:
        for name in node.output:
            part = graph.up_to(graph.made[name])
            try:
                run_graph(bench, part, target)
            except (Failed, driver.Crash, driver.Hang) as failed:
                return part, str(failed)
    return graph, None


def test_random(seed):
    target = ("cpu:host", "cpu:x86-64-v2")[seed % 2]

    def test(bench):
        graph = random_graphs.RandomGraph(seed)
        try:
            return run_graph(bench, graph, target)
        except (Failed, driver.Crash, driver.Hang) as failed:
            part, text = smallest(bench, graph, target)
            folder = bench.options.build / "test-logs" / "random_graphs" / str(seed)
            part.save(folder)
            raise Failed(f"{text or failed}\n"
                         f"the graph, cut down: {folder}\n"
                         f"    dlc run {folder}/symbolic.onnx --inputs {folder}/test_data_set_0 --outputs OUT --target {target}\n"
                         f"the whole graph: test/models/random_graphs.py {seed} FOLDER\n"
                         f"{onnx.printer.to_text(part.symbolic)}")

    return test


# --- all of it --------------------------------------------------------------------------------------------------------


def compile_models(options, folder):
    """Names of the models that compiled, their variants, and what went wrong with the others."""
    dlcrt = driver.runtime(options.build)
    variants, failures = {}, {}
    with driver.Dlc(options.build) as dlc:
        for name in MODELS:
            onnx.save(model_of(name), folder / f"{name}.onnx")
            try:
                check(dlc("compile", folder / f"{name}.onnx", "-o", folder / f"{name}.dlcm"), "compile")
                variants[name] = [v.target for v in dlcrt.Module(folder / f"{name}.dlcm").variants if v.reason is None]
            except (Failed, driver.Crash, driver.Hang, dlcrt.DlcrtError) as error:
                failures[name] = str(error)
    return variants, failures


def test_branches(name):
    def run(bench):
        text, feeds = branches.GRAPHS[name]
        model = branches.model(text)
        instance = bench.instance_of(model)
        for feed in feeds:
            outputs = list(instance.run(feed).values())
            for who, reference in REFERENCES.items():
                for output, got, want in zip(model.graph.output, outputs, reference(model, feed), strict=True):
                    if found := driver.difference(got, want, RTOL, ATOL):
                        raise Failed(f"compared with {who}: output '{output.name}' is {found}")

    return run


def test_decoder(bench):
    model = decoder.decoder()
    instance = bench.instance_of(model)
    for shape in [(1, 7, 0), (1, 1, 7), (2, 3, 5), (3, 1, 0)]:
        feed = decoder.inputs(*shape)
        got = list(instance.run(feed).values())
        for who, reference in REFERENCES.items():
            for output, value, want in zip(model.graph.output, got, reference(model, feed), strict=True):
                if found := driver.difference(value, want, RTOL, ATOL):
                    raise Failed(f"batch, step, past {shape}, compared with {who}: output '{output.name}' is {found}")


def test_shapes_fold(name):
    """After phase clean nothing is left that only computes a shape."""

    def run(bench):
        path, text = bench.folder / "model.onnx", bench.folder / "clean.mlir"
        if name == "decoder":
            onnx.save(decoder.decoder(), path)
        else:
            path = zoo.fetch(name)
        check(bench.dlc("compile", path, "--stop-after", "clean", "-o", text), "--stop-after clean")
        if left := shapes.shape_only(text.read_text()):
            raise Failed(f"{len(left)} ops only compute shapes:\n  " + "\n  ".join(line[:160] for line in left[:10]))

    return run


def test_unusable_branch(bench):
    instance = bench.instance_of(branches.model(branches.UNUSABLE))
    (got,) = instance.run({"c": branches.FLAGS[0], "x": branches.X}).values()
    if not np.array_equal(got, -branches.X):
        raise Failed("the branch that can be computed is wrong")
    try:
        instance.run({"c": branches.FLAGS[1], "x": branches.X})
    except bench.dlcrt.DlcrtError as error:
        if "(MatMul)" not in str(error) or "inner dims 4 and 5" not in str(error):
            raise Failed(f"the error says: {error}")
    else:
        raise Failed("the branch that cannot be computed gave something")


def all_tests(options, variants):
    """[(name, function)]"""
    tests = []
    for name, targets in variants.items():
        shapes = [(batch,) for batch in BATCHES] if name == "mlp" else [(b, s) for b in BATCHES for s in LENGTHS]
        for shape in shapes:
            said = f"{name} at batch {shape[0]}" + (f", seq {shape[1]}" if len(shape) > 1 else "")
            for variant in [None, *targets]:
                for threads in (1, 2):
                    tests.append((f"{said}, {'variant ' + variant if variant else 'the best variant'}, {threads} thread{'s'[threads == 1:]}",
                                  test_values(name, shape, variant, threads)))
        tests.append((f"{name}, one instance at all shapes in turn", test_one_instance(name, shapes)))
        tests.append((f"{name}, inspect shows the plan that runs", test_inspect(name, shapes[-1])))
        tests += [(f"{name}, in two goes at phase {phase}", test_round_trip(name, phase)) for phase in PHASES]
        tests += [(f"{name}, the same module from another folder with --jobs {jobs}", test_same_build(name, jobs)) for jobs in (1, 2)]
    if "block" in variants:
        tests.append(("block, inputs that disagree on 'seq' are refused", test_disagreement))
    tests.append(("decoder, with a cache of any length", test_decoder))
    tests += [(f"decoder, its cache as state, --state {pattern}", test_state(pattern)) for pattern in ("auto", "past_k.*=present_k.*,past_v.*=present_v.*")]
    tests.append(("decoder, two functions of one module", test_functions))
    tests.append(("minilm_l6, each variant at all shapes", test_minilm))
    tests.append(("minilm_l6, fused", test_fused_minilm))
    tests += [(f"{name}, each variant", test_images(name, *seen)) for name, seen in IMAGES.items()]
    if options.all:
        tests += [(f"{name}, each variant", test_images(name, *seen)) for name, seen in ALL_IMAGES.items()]
        tests.append(("smollm2, its cache as state of two functions", test_smollm2_state))
        tests.append(("smollm2, prompts and what follows", test_smollm2))
        tests.append(("smollm2, fused", test_fused_smollm2))
    tests += [(f"shapes fold, {name}", test_shapes_fold(name)) for name in ["decoder", *zoo.MODELS] if options.all or name != "smollm2"]
    tests += [(f"If, {name}", test_branches(name)) for name in branches.GRAPHS]
    tests.append(("If, a branch that cannot be computed", test_unusable_branch))
    tests += [(f"attention {seed}", test_attention(seed)) for seed in range(ALL_FORMS if options.all else FORMS)]
    tests += [(f"random graph {seed}", test_random(seed)) for seed in range(ALL_GRAPHS if options.all else GRAPHS)]
    return tests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if driver.cannot_load(options):
        return 0
    start = time.monotonic()
    passed, failures, remarks = 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        modules = pathlib.Path(folder)
        variants, broken = compile_models(options, modules)
        for name in MODELS:
            if name in broken:
                failures.append((f"{name} compiles", broken[name]))
            elif driver.matches(options.filter, f"{name} compiles"):
                passed += 1
        tests = [test for test in all_tests(options, variants) if driver.matches(options.filter, test[0])]

        @contextlib.contextmanager
        def setup(own):
            with driver.Dlc(options.build) as dlc:
                bench = Bench(options, dlc, driver.runtime(options.build), own, modules)

                def handle(number):
                    try:
                        return tests[number][1](bench) or []
                    except Failed as failed:
                        return failed

                yield handle

        for number, result, _ in driver.run_all(range(len(tests)), setup, options.jobs, SECONDS_A_TEST):
            name = tests[number][0]
            if isinstance(result, Exception):
                failures.append((name, f"{type(result).__name__.lower()}: {result}" if not isinstance(result, Failed) else str(result)))
                print(f"FAILED {name}: {failures[-1][1]}\n", flush=True)
            else:
                passed += 1
                remarks += [(name, remark) for remark in result]
    for what in sorted({remark for _, remark in remarks}):
        names = [name for name, remark in remarks if remark == what]
        print(f"{what}, so values were not checked: {len(names)} times ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})")
    print(f"models: {passed} passed, {len(failures)} failed in {time.monotonic() - start:.0f} s")
    driver.write_results(options.json, passed, [f"{name}: {text}" for name, text in failures])
    return 0 if not failures else 1


if __name__ == "__main__":
    sys.exit(main())
