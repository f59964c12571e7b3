#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports models and prints what comes of them, for FileCheck.

usage: import.py DLC SOURCE FOLDER [--locations]

SOURCE is a text that holds models in ONNX's text format, or a Python file with a function `models()` that yields them.
In a text, each model stands behind a line

    # ----- NAME [opset=N] [flags of dlc compile]

and may do without its header; then it is written in opset 17, or in the one named. A Python file yields tuples
(name, ModelProto or bytes, list of flags). For each one `=== NAME` is printed, then the program after import, or the exit code
and the errors. Files are written below FOLDER. Locations are cut from the programs, unless --locations is given.
"""
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import onnx.parser


def models_of_text(text):
    parts = re.split(r"^# ----- (.*)$", text, flags=re.M)
    for words, body in zip(parts[1::2], parts[2::2]):
        name, *flags = shlex.split(words)
        opset = "17"
        if flags and flags[0].startswith("opset="):
            opset = flags.pop(0)[len("opset="):]
        model = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("#")).strip()
        if not model.startswith("<"):
            model = f'<ir_version: 8, opset_import: ["" : {opset}]>\n' + model
        yield name, onnx.parser.parse_model(model), flags


def models_of_python(path):
    spec = importlib.util.spec_from_file_location("models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.models()


def without_locations(text):
    """Cuts ` loc(...)`, whose parentheses nest and may stand in quotes too."""
    out, at = [], 0
    while (start := text.find(" loc(", at)) >= 0:
        out.append(text[at:start])
        at, depth, quoted = start + len(" loc("), 1, False
        while depth:
            char = text[at]
            if char == "\\":
                at += 1
            elif char == '"':
                quoted = not quoted
            elif not quoted:
                depth += {"(": 1, ")": -1}.get(char, 0)
            at += 1
    return "".join(out) + text[at:]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--locations"]
    keep = len(arguments) < len(sys.argv) - 1
    dlc, source, folder = arguments[0], Path(arguments[1]), Path(arguments[2])
    folder.mkdir(parents=True, exist_ok=True)
    found = models_of_python(source) if source.suffix == ".py" else models_of_text(source.read_text())
    for name, model, flags in found:
        file = folder / f"{name}.onnx"
        file.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        result = folder / f"{name}.mlir"
        result.unlink(missing_ok=True)
        run = subprocess.run([dlc, "compile", str(file), "-o", str(result), "--stop-after", "import", *flags], capture_output=True,
                             text=True, errors="replace", timeout=100)
        print(f"=== {name}")
        if run.returncode == 0:
            text = result.read_text()
            print(text if keep else without_locations(text))
        else:
            print(f"exit code {run.returncode}")
        print(run.stderr, flush=True)


main()
