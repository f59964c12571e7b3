#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user has in hand: installs the build into a prefix, moves that, and builds and runs docs/examples with it.

    test/examples/run.py --build build/dev [--runtime build/runtime-aarch64] [--jobs 2] [--json FILE] [--all] [--filter REGEX]

- The outside project docs/examples finds dlcrt with find_package: its programs in C and C++, one of them static with the model inside;
  so does a project of C alone. Others go by pkg-config, dynamic and static.
- `pip install ./runtime/python` into a fresh environment, without a network, and docs/examples/sentences.py there.
- A static program for AArch64, with the build of the preset runtime-aarch64, under qemu-user.

What the programs print is compared with ONNX Runtime. The models are small but for MiniLM-L6, inside a static program and for Python; with
--all there is SmolLM2, and PP-OCRv4 for read_text.py.
"""

import argparse
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples"
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test" / "models"), str(EXAMPLES)]
import decoder
import driver
import smollm
import zoo

EMULATOR = "qemu-aarch64-static"
TOKENS = [101, 7592, 2088, 1010, 2129, 102]
SMALL_TOKENS = [7, 3, 99, 0, 42]
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6"}
NEEDS_LINUX_LOADER = re.compile(r"^ld-linux[\w.-]*\.so\.\d+$")


class Failed(Exception):
    """What was seen, in words."""


def call(*command, env=None, folder=None):
    """What the command prints. It must succeed, and say nothing on stderr that sounds like a warning."""
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder, env={**os.environ, **(env or {})},
                          preexec_fn=driver.end_with_parent)
    if done.returncode != 0:
        raise Failed(f"{shlex.join(command)}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    if "warning:" in done.stderr:
        raise Failed(f"{shlex.join(command)} warns: {done.stderr[-3000:]}")
    return done.stdout


def small_encoder(path):
    """With the inputs and the output of MiniLM, but nothing to learn from."""
    b = decoder.Builder()
    x = b.op("Add", b.op("Gather", b.matrix(100, 24), "input_ids"), b.op("Gather", b.matrix(2, 24), "token_type_ids"))
    seen = b.op("Unsqueeze", b.op("Cast", "attention_mask", to=TensorProto.FLOAT), np.array([2]))
    b.op("Tanh", b.op("MatMul", b.op("Mul", x, seen), b.matrix(24, 16)), outputs=["last_hidden_state"])
    value = helper.make_tensor_value_info
    inputs = [value(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    onnx.save(b.model("encoder", inputs, [value("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", 16])]), path)


def encoder_inputs(tokens):
    ids = np.array([tokens])
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def wanted_vector(path, tokens):
    """What embed prints: the first numbers of the mean over the tokens, and its length."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (hidden,) = session.run(None, encoder_inputs(tokens))
    mean = hidden[0].astype(np.float64).mean(axis=0)
    return [*mean[:8], np.linalg.norm(mean)]


def check_vector(printed, path, tokens):
    got = [float(word) for word in printed.replace("norm", "").split()]
    if found := driver.difference(np.array(got), np.array(wanted_vector(path, tokens)), 1e-4, 2e-5):
        raise Failed(f"the vector is not ONNX Runtime's: {found}")


def wanted_tokens(path, prompt, count, layers, heads, size):
    """The likeliest tokens, each with the cache of those before it."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    cache = {f"{kind}.{layer}": np.empty((1, heads, 0, size), np.float32) for layer in range(layers) for kind in "kv"}
    names = [output.name for output in session.get_outputs()]
    made, step, past = [], prompt, 0
    for _ in range(count):
        feed = {"input_ids": np.array([step]), "position_ids": past + np.arange(len(step))[None]}
        said = dict(zip(names, session.run(None, {**feed, **{f"past_{name}": value for name, value in cache.items()}})))
        cache = {name: said[f"present_{name}"] for name in cache}
        past += len(step)
        step = [int(said["logits"][0, -1].argmax())]
        made += step
    return made


class Bench:
    """What the tests share; made when the first asks for it."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.dlc = driver.Dlc(options.build)

    @functools.cached_property
    def prefix(self):
        """Installed, and then moved: what is found there must be found from where it is."""
        first, then = self.folder / "first", self.folder / "moved here"
        call("cmake", "--install", self.options.build, "--prefix", first)
        first.rename(then)
        return then

    @functools.cached_property
    def encoder(self):
        path = self.folder / "encoder.onnx"
        small_encoder(path)
        return path

    def compile(self, model, output, *words):
        answer = self.dlc("compile", model, "-o", output, *words, seconds=600)
        if answer.exit != 0:
            raise Failed(f"dlc compile {model.name}: {answer.err}")
        return output

    def pkg_config(self, *words):
        # The folder's name has a space in it: pkg-config writes it as a shell reads it.
        return shlex.split(call("pkg-config", *words, "dlcrt", env={"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}))

    def project(self, source, name, *words):
        """The folder of an outside project's programs."""
        build = self.folder / name
        call("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}", *words, folder=self.folder)
        call("cmake", "--build", build, "-j", self.options.jobs)
        return build


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", call("readelf", "-dW", program))


def check_static(program):
    """The program needs no library and no loader, and its code and data are where they should be."""
    if libraries := needed(program):
        raise Failed(f"{program.name} needs {', '.join(libraries)}")
    headers = call("readelf", "-lW", program)
    if "INTERP" in headers:
        raise Failed(f"{program.name} needs a loader")
    if re.search(r"GNU_STACK.*RWE", headers) or re.search(r"LOAD.* RWE ", headers):
        raise Failed(f"{program.name} has memory that is both written and executed:\n{headers}")


# --- tests ------------------------------------------------------------------------------------------------------------


def test_install(bench):
    """What there is, that nothing of it says where it was made, and that the tools run."""
    files = {str(path.relative_to(bench.prefix)) for path in bench.prefix.rglob("*") if not path.is_dir()}
    wanted = {"bin/dlc", "bin/dlcrt-run", "include/dlcrt/dlcrt.hpp", "include/dlcrt/format.h", "include/dlcrt/kernel_abi.h",
              "include/dlcrt/runtime.h", "lib/libdlcrt.so", "lib/libdlcrt.so.0", "lib/libdlcrt.a", "lib/libdlcrt_pool.a",
              "lib/pkgconfig/dlcrt.pc", "lib/cmake/dlcrt/dlcrtConfig.cmake", "lib/cmake/dlcrt/dlcrtConfigVersion.cmake"}
    more = {name for name in files - wanted if not re.fullmatch(r"lib/libdlcrt\.so\.0\.\d+\.\d+", name)}
    if wanted - files or more:
        raise Failed(f"missing: {sorted(wanted - files)}; too much: {sorted(more)}")
    for name in files:
        text = (bench.prefix / name).read_bytes()
        if name.endswith((".cmake", ".pc")) and re.search(rb"/first|" + re.escape(str(bench.options.build).encode()) + b"|" + re.escape(str(ROOT).encode()), text):
            raise Failed(f"{name} names a folder of the machine it was made on")
    model = bench.folder / "installed.dlcm"
    call(bench.prefix / "bin" / "dlc", "compile", bench.encoder, "-o", model, "--target", "cpu:host")
    inputs = bench.folder / "inputs"
    inputs.mkdir()
    for name, value in encoder_inputs(SMALL_TOKENS).items():
        np.save(inputs / f"{name}.npy", value)
    call(bench.prefix / "bin" / "dlcrt-run", model, "--inputs", inputs)


def test_find_package(bench):
    """docs/examples as it is, with the model inside one of its programs."""
    build = bench.project(EXAMPLES, "examples", f"-DMODEL={bench.encoder.name}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    module = bench.compile(bench.encoder, bench.folder / "encoder.dlcm")
    for words in ((build / "embed", module), (build / "embed_cpp", module), (build / "embed_static",)):
        check_vector(call(*words, *SMALL_TOKENS), bench.encoder, SMALL_TOKENS)
    check_static(build / "embed_static")
    if libraries := [name for name in needed(build / "embed") if name != "libdlcrt.so.0" and name not in SYSTEM_LIBRARIES]:
        raise Failed(f"embed needs {', '.join(libraries)}")
    # What goes wrong is said.
    done = subprocess.run([build / "embed", bench.folder / "nothing.dlcm", "1"], capture_output=True, text=True)
    if done.returncode != 1 or not done.stderr.endswith("nothing.dlcm: cannot open: No such file or directory\n"):
        raise Failed(f"without a module: exit code {done.returncode}, {done.stderr!r}")


def test_find_package_of_c(bench):
    """A project that knows no C++; and one that asks for another version."""
    source = bench.folder / "c project"
    source.mkdir()
    text = """cmake_minimum_required(VERSION 3.16)
project(c LANGUAGES C)
find_package(dlcrt %s REQUIRED)
add_executable(shared "%s/generate.c")
target_link_libraries(shared PRIVATE dlcrt::dlcrt)
add_executable(static "%s/generate.c")
target_link_libraries(static PRIVATE dlcrt::static dlcrt::pool)
target_link_options(static PRIVATE -static)
"""
    (source / "CMakeLists.txt").write_text(text % ("0.1", EXAMPLES, EXAMPLES))
    build = bench.project(source, "c")
    check_static(build / "static")
    check_generated(bench, (build / "shared",), (build / "static",))
    (source / "CMakeLists.txt").write_text(text % ("0.2", EXAMPLES, EXAMPLES))
    try:
        bench.project(source, "newer")
    except Failed as failed:
        if 'with requested version "0.2"' not in str(failed):
            raise
    else:
        raise Failed("version 0.2 was asked for and found")


def check_generated(bench, *programs):
    path, prompt, count = bench.folder / "decoder.onnx", [5, 17, 60], 12
    onnx.save(decoder.decoder(), path)
    module = bench.compile(path, bench.folder / "decoder.dlcm", "--state", "auto", "--dim", "batch=1")
    want = wanted_tokens(path, prompt, count, decoder.LAYERS, decoder.KV_HEADS, decoder.SIZE)
    for program in programs:
        got = [int(word) for word in call(*program, module, count, *prompt).split()]
        if got != want:
            raise Failed(f"{program[0].name} makes the tokens {got}, not {want}")


def test_pkg_config(bench):
    """Without CMake; the model in a file, and inside, in an object beside the shared library and in a static program. C++ alike."""
    warnings = ["-Wall", "-Wextra", "-Werror"]
    shared, static = bench.pkg_config("--cflags", "--libs"), bench.pkg_config("--cflags", "--libs", "--static")
    module = bench.compile(bench.encoder, bench.folder / "by_hand.dlcm")
    inside = bench.compile(bench.encoder, bench.folder / "by-hand.o")
    with_model = ["-include", inside.with_suffix(".h"), "-DMODEL=by_hand_module"]
    library = {"LD_LIBRARY_PATH": str(bench.prefix / "lib")}
    for name, words, arguments in (("shared", [EXAMPLES / "embed.c", *shared, "-lm"], [module]),
                                   ("inside", [*with_model, EXAMPLES / "embed.c", inside, *shared, "-lm"], []),
                                   ("static", [*with_model, EXAMPLES / "embed.c", inside, *static, "-static"], []),
                                   ("pie", [*with_model, "-fPIE", EXAMPLES / "embed.c", inside, *static, "-static-pie"], [])):
        program = bench.folder / f"by-hand-{name}"
        call("cc", "-std=c11", *warnings, *words, "-o", program)
        check_vector(call(program, *arguments, *SMALL_TOKENS, env=library), bench.encoder, SMALL_TOKENS)
        if "static" in words or "-static" in words:
            check_static(program)
    program = bench.folder / "by-hand-cpp"
    call("c++", "-std=c++17", *warnings, EXAMPLES / "embed.cpp", *shared, "-o", program)
    check_vector(call(program, module, *SMALL_TOKENS, env=library), bench.encoder, SMALL_TOKENS)


def environment(bench):
    """The Python of a fresh environment with dlcrt in it. NumPy and what else the examples need are those of this one."""
    folder = bench.folder / "environment"
    python = folder / "bin" / "python"
    if not python.exists():
        call(sys.executable, "-m", "venv", folder)
        site, = (folder / "lib").glob("python*/site-packages")
        (site / "host.pth").write_text(f"{pathlib.Path(np.__file__).parent.parent}\n")
        call(python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", ROOT / "runtime" / "python")
    return python


def run_example(bench, name, *words):
    return call(environment(bench), EXAMPLES / name, *words, folder=bench.folder)


def test_pip_install(bench):
    """The package has its library with it."""
    python = environment(bench)
    where = call(python, "-c", "import dlcrt._library as l; print(l.load().path)").strip()
    if not where.startswith(str(bench.folder)):
        raise Failed(f"the library is {where}")
    if libraries := [name for name in needed(where) if name not in SYSTEM_LIBRARIES and not NEEDS_LINUX_LOADER.match(name)]:
        raise Failed(f"the library needs {', '.join(libraries)}")
    module = bench.compile(bench.encoder, bench.folder / "words.dlcm")
    vocabulary = bench.folder / "words.txt"
    vocabulary.write_text("\n".join(["[CLS]", "[SEP]", "[UNK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]))
    said = run_example(bench, "sentences.py", module, vocabulary, "One.", "One.", "Another")
    if not said.startswith(" 1.000  One.  |  One.\n") or len(said.splitlines()) != 3:
        raise Failed(f"sentences.py says {said}")


def test_source_package(bench):
    """The package that pip makes a wheel of elsewhere has all it needs."""
    source = bench.folder / "source"
    source.mkdir()
    call(sys.executable, "-c", "import build_backend, sys; print(build_backend.build_sdist(sys.argv[1]))", source, folder=ROOT / "runtime" / "python",
         env={"PYTHONDONTWRITEBYTECODE": "1"})
    package, = source.iterdir()
    python = environment(bench)
    other = bench.folder / "other"
    call(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", other, package)
    said = call(python, "-c", "import dlcrt._library as l; print(l.load().path)", env={"PYTHONPATH": str(other)}).strip()
    if said != str(other / "dlcrt" / "libdlcrt.so.0"):
        raise Failed(f"the library is {said}")


def test_aarch64(bench):
    """A static program for another machine."""
    runtime = bench.options.runtime
    if not (runtime / "lib" / "libdlcrt.a").exists():
        raise Failed(f"{runtime} is not built: ./dev build --preset runtime-aarch64")
    if not shutil.which(EMULATOR):
        raise Failed(f"{EMULATOR} is not installed (Debian package qemu-user-static; ./dev setup installs it)")
    prefix = bench.folder / "aarch64"
    call("cmake", "--install", runtime, "--prefix", prefix)
    archive = bench.compile(bench.encoder, bench.folder / "arm.a", "--target", "cpu:aarch64")
    program = bench.folder / "arm"
    call("clang-22", "--target=aarch64-linux-gnu", "-fuse-ld=lld", "-static", "-Wall", "-Werror", "-include", archive.with_suffix(".h"), "-DMODEL=arm_module",
         f"-I{prefix}/include", EXAMPLES / "embed.c", archive, f"-L{prefix}/lib", "-ldlcrt", "-lm", "-o", program)
    check_static(program)
    check_vector(call(EMULATOR, program, *SMALL_TOKENS), bench.encoder, SMALL_TOKENS)


def test_minilm(bench):
    """MiniLM-L6 inside a static program."""
    model = zoo.fetch("minilm_l6")
    archive = bench.compile(model, bench.folder / "minilm.a")
    program = bench.folder / "minilm"
    call("cc", "-std=c11", "-O2", "-include", archive.with_suffix(".h"), "-DMODEL=minilm_module", EXAMPLES / "embed.c", archive,
         *bench.pkg_config("--cflags", "--libs", "--static"), "-static", "-o", program)
    check_static(program)
    check_vector(call(program, *TOKENS), model, TOKENS)
    module = bench.compile(model, bench.folder / "minilm.dlcm")
    said = run_example(bench, "sentences.py", module, zoo.fetch("minilm_vocabulary"), "A cat sits on the mat.", "A kitten is on a rug.", "Stocks fell on Monday.")
    alike = [float(line.split()[0]) for line in said.splitlines()]
    if not (len(alike) == 3 and alike[0] > 0.5 > max(alike[1:])):
        raise Failed(f"sentences.py says\n{said}")


def test_smollm2(bench):
    model, prompt, count = zoo.fetch("smollm2"), [504, 3575, 282, 4649, 314], 12
    module = bench.compile(model, bench.folder / "smollm2.dlcm", "--state", "auto")
    program = bench.folder / "generate"
    call("cc", "-std=c11", "-O2", EXAMPLES / "generate.c", *bench.pkg_config("--cflags", "--libs", "--static"), "-static", "-o", program)
    got = [int(word) for word in call(program, module, count, *prompt).split()]
    want = wanted_tokens(model, prompt, count, smollm.LAYERS, smollm.KV_HEADS, smollm.SIZE)
    if got != want:
        raise Failed(f"the tokens {got}, not {want}")


def test_read_text(bench):
    """PP-OCRv4 reads what was drawn."""
    from PIL import Image, ImageDraw, ImageFont
    text = "One module, two lines of C."
    picture = bench.folder / "picture.png"
    font = ImageFont.load_default(36)
    _, _, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (right + 60, bottom + 80), "white")
    ImageDraw.Draw(image).text((30, 40), text, "black", font=font)
    image.save(picture)
    rec = zoo.fetch("ppocr4_rec")
    characters = {entry.key: entry.value for entry in onnx.load(rec, load_external_data=False).metadata_props}["character"]
    (bench.folder / "characters.txt").write_text(characters, encoding="utf-8")
    modules = [bench.compile(zoo.fetch(name), bench.folder / f"{name}.dlcm", "--target", "cpu:host") for name in ("ppocr4_det", "ppocr4_rec")]
    said = run_example(bench, "read_text.py", *modules, bench.folder / "characters.txt", picture)
    if [line.split("\t")[-1] for line in said.splitlines()] != [text]:
        raise Failed(f"read_text.py reads {said!r}")


TESTS = [test_install, test_find_package, test_find_package_of_c, test_pkg_config, test_pip_install, test_source_package, test_aarch64, test_minilm]
SLOW = [test_smollm2, test_read_text]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--runtime", type=pathlib.Path, default=ROOT / "build" / "runtime-aarch64", help="the runtime for AArch64")
    options = parser.parse_args()
    options.build, options.runtime = options.build.resolve(), options.runtime.resolve()
    if driver.cannot_load(options):
        return 0
    for name in ("DLCRT_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH"):  # what helps here would hide what is missing there
        os.environ.pop(name, None)
    tests = [test for test in TESTS + SLOW * options.all if driver.matches(options.filter, test.__name__.removeprefix("test_"))]
    passed, unexpected = 0, []
    with tempfile.TemporaryDirectory(prefix="dlc-examples-") as folder:
        bench = Bench(options, pathlib.Path(folder))
        with bench.dlc:
            for test in tests:
                name, begin = test.__name__.removeprefix("test_"), time.monotonic()
                try:
                    test(bench)
                    passed += 1
                    print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
                except (Failed, driver.Crash, driver.Hang) as failed:
                    unexpected.append(f"{name}: {failed}")
                    print(f"FAILED {unexpected[-1]}", flush=True)
    driver.write_results(options.json, passed, unexpected)
    print(f"{passed} passed, {len(unexpected)} failed")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
