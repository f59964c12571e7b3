#!/usr/bin/env python3
"""Runs every test suite there is and counts what came out. `./dev test` calls it after the build.

    test/report.py --build build/dev [--jobs N] [--all] [--filter TEXT]

The suites, each run if it exists:
    lit           every lit test below test/
    unit          every GoogleTest program in <build>/unittests
    runtime-only  the runtime configured, built and tested without LLVM; what libdlcrt.so weighs, needs and imports
    tsan, runtime-asan
                  the runtime's unit tests under ThreadSanitizer; under AddressSanitizer and UndefinedBehaviorSanitizer
    conformance, models, ops, casts, contrib, fusion, patterns, windows, layers
                  test/onnx-conformance/run.py, test/models/run.py, test/ops/run.py, test/ops/test_casts.py, test/ops/test_contrib.py,
                  test/fusion/random_graphs.py, test/fusion/patterns.py, test/fusion/windows.py, test/layers/check.py, called with
                  --build DIR --jobs N --json FILE [--all] [--filter TEXT]. They exit 0 if all is as expected and write
                  {"passed": N, "failed": N, "unexpected": ["name: what was seen", ...]}
    examples      test/examples/run.py, called as those are, behind a build of the preset runtime-aarch64
    aarch64       the runtime built for AArch64; its unit tests, and test/aarch64/run.py, which is called as those are, under qemu-user

Each suite's whole output is in <build>/test-logs; what failed is shown with its output. The last line is `N passed, N failed`;
the exit code is 0 only if something passed and nothing failed.
"""

import argparse
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOWN_LINES = 80  # of a failing test's output; the log has the rest
SECONDS_A_TEST = 900
SECONDS_A_SUITE = 4 * 3600
LIBRARY_LIMIT = 300 * 1000  # bytes of libdlcrt.so, stripped
LIBRARY_NEEDS = re.compile(r"^(libc\.so\.6|libm\.so\.6|ld-linux[\w.-]*\.so\.\d+)$")
SANITIZER = re.compile(r"(WARNING|ERROR): \w+Sanitizer|: runtime error: ")

SCRIPTS = {
    "conformance": "test/onnx-conformance/run.py",
    "models": "test/models/run.py",
    "ops": "test/ops/run.py",
    "casts": "test/ops/test_casts.py",
    "contrib": "test/ops/test_contrib.py",
    "fusion": "test/fusion/random_graphs.py",
    "patterns": "test/fusion/patterns.py",
    "windows": "test/fusion/windows.py",
    "layers": "test/layers/check.py",
    "aarch64": "test/aarch64/run.py",
    "examples": "test/examples/run.py",
}
EMULATOR = "qemu-aarch64-static"


class Suite:
    """The results of one suite, and the file its output goes to."""

    def __init__(self, name, logs):
        self.name = name
        self.log = logs / f"{name}.log"
        self.log.write_text("")
        self.json = logs / f"{name}.json"
        self.json.unlink(missing_ok=True)
        self.passed = 0
        self.skipped = 0
        self.failures = []  # (name, output)
        self.unnamed_failures = 0  # counted by a script but not named by it

    @property
    def failed(self):
        return len(self.failures) + self.unnamed_failures

    def add(self, name, ok, output=""):
        if ok:
            self.passed += 1
        else:
            self.failures.append((name, output))

    def run(self, command, timeout=SECONDS_A_SUITE, **options):
        """Runs a command, output into the log and back. A process group of its own: what outlives it is ended with it."""
        command = [str(word) for word in command]
        with self.log.open("a") as log:
            log.write("$ " + " ".join(command) + "\n")
            log.flush()
            begin = self.log.stat().st_size
            with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT,
                                  start_new_session=True, **options) as process:
                try:
                    code = process.wait(timeout)
                except BaseException as error:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    if not isinstance(error, subprocess.TimeoutExpired):
                        raise
                    code = f"no end after {timeout} s"
        with self.log.open(errors="replace") as log:
            log.seek(begin)
            return code, log.read()


def ended(code):
    """An exit status in words."""
    if isinstance(code, int) and code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return code if isinstance(code, str) else f"exit code {code}"


def tail(text, lines=SHOWN_LINES):
    rows = text.rstrip().splitlines()
    return "\n".join(([f"[... {len(rows) - lines} lines before, see the log]"] if len(rows) > lines else []) + rows[-lines:])


def run_lit(suite, options):
    command = [sys.executable, pathlib.Path(sys.executable).with_name("lit"), "-v", "-j", options.jobs, "--allow-empty-runs",
               "--order", "lexical", "--timeout", SECONDS_A_TEST, "--output", suite.json]
    if options.all:
        command += ["--param", "all=1"]
    if options.filter:
        command += ["--filter", re.escape(options.filter)]
    code, output = suite.run(command + [options.build / "test"])
    try:
        tests = json.loads(suite.json.read_text())["tests"]
    except (OSError, ValueError, KeyError):
        if code == 0 and "filter did not match any tests" in output:
            return
        suite.add("lit itself", False, f"{ended(code)}, no results\n{tail(output)}")
        return
    for test in tests:
        if test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            suite.skipped += 1
        else:
            suite.add(test["name"], test["code"] in ("PASS", "XFAIL", "FLAKYPASS"), f"{test['code']}\n{test['output']}")
    if code != 0 and not suite.failures:
        suite.add("lit itself", False, f"{ended(code)}\n{tail(output)}")


def run_gtest(suite, program, options, *emulator, **environment):
    """One GoogleTest program, behind an emulator if it needs one. A test is passed if the program said so; a program that dies fails
    the test it was in."""
    results = suite.json.with_name(f"{suite.name}.{program.name}.json")
    results.unlink(missing_ok=True)
    command = [*emulator, program, f"--gtest_output=json:{results}", "--gtest_color=no"]
    if options.filter and options.filter.lower() not in program.name.lower():
        command.append(f"--gtest_filter=*{options.filter}*")
    code, output = suite.run(command, timeout=SECONDS_A_TEST, env={**os.environ, **environment})
    name = program.name
    before = suite.failed
    outputs = dict(re.findall(r"^\[ RUN      \] (\S+)\n(.*?)(?=^\[ RUN      \] |^\[ *-+\]|\Z)", output, re.S | re.M))
    done = {}
    for verdict, test in re.findall(r"^\[ *(OK|FAILED|SKIPPED) *\] (\S+?),?(?: \(\d+ ms\)| where .*)?$", output, re.M):
        if test in outputs:
            done.setdefault(test, verdict)
    for test, said in outputs.items():
        verdict = done.get(test)
        if verdict == "SKIPPED":
            suite.skipped += 1
        else:
            suite.add(f"{name}.{test}", verdict == "OK" and not SANITIZER.search(said), said if verdict else f"{ended(code)} in this test\n{said}")
    if code != 0 and suite.failed == before:
        suite.add(name, False, f"{ended(code)}, though its tests passed\n{tail(output)}")
    elif code == 0 and not results.exists():
        suite.add(name, False, "exit code 0, but the program did not run to its end (exit called in a test?)")


def unittests(build):
    folder = build / "unittests"
    return sorted(p for p in folder.glob("*Tests") if os.access(p, os.X_OK)) if folder.is_dir() else []


def run_unittests(suite, options, build=None, *emulator, **environment):
    for program in unittests(build or options.build):
        run_gtest(suite, program, options, *emulator, **environment)


def configure_and_build(suite, preset, options):
    build = ROOT / "build" / preset
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (["cmake", "--preset", preset], ["cmake", "--build", build, "-j", options.jobs]):
            code, output = suite.run(command)
            if code != 0:
                suite.add(f"{preset} builds", False, f"{' '.join(map(str, command))}: {ended(code)}\n{tail(output)}")
                return None
    suite.add(f"{preset} builds", True)
    return build


def check_library(suite, build):
    """What an application takes on board with libdlcrt.so: no more than this."""
    library = build / "lib" / "libdlcrt.so"
    if not library.exists():
        return
    stripped = build / "libdlcrt.stripped.so"
    # LLVM's tools read the code of every machine, the system's only its own.
    prefix = "" if "CMAKE_SYSTEM_PROCESSOR" not in (build / "CMakeCache.txt").read_text() else "llvm-"
    code, output = suite.run([f"{prefix}strip", "-o", stripped, library])
    size = stripped.stat().st_size if code == 0 else None
    suite.add("libdlcrt.so is small", code == 0 and size <= LIBRARY_LIMIT,
              output if code else f"{size} bytes stripped, at most {LIBRARY_LIMIT} are allowed")
    code, output = suite.run(["readelf", "-d", "-W", library])
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output)
    extra = [n for n in needed if not LIBRARY_NEEDS.match(n)]
    suite.add("libdlcrt.so needs only libc and libm", code == 0 and not extra, f"it needs {', '.join(extra)}" if extra else output)
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", output)
    suite.add("libdlcrt.so is called libdlcrt.so.0", soname == ["libdlcrt.so.0"], f"SONAME {soname}")
    code, output = suite.run([f"{prefix}nm", "-D", "--defined-only", library])
    exports = [line.split()[-1] for line in output.splitlines()]
    others = [n for n in exports if not n.startswith("dlcrt_")]
    suite.add("libdlcrt.so exports only dlcrt_*", code == 0 and not others, f"it also exports {', '.join(others[:20])}")


def run_runtime_only(suite, options):
    build = configure_and_build(suite, "runtime-only", options)
    if not build:
        return
    cache = (build / "CMakeCache.txt").read_text()
    found = re.findall(r"^((?:LLVM|MLIR|LLD|ONNX|Protobuf)\w*):\w+=(?!.*NOTFOUND)(.+)$", cache, re.M)
    commands = build / "compile_commands.json"
    used = sorted(set(re.findall(r"\S*(?:llvm-\d+/include|\.deps/)\S*", commands.read_text()))) if commands.exists() else []
    suite.add("runtime-only finds nothing of LLVM", not found and not used, "\n".join([f"{k}={v}" for k, v in found] + used))
    check_library(suite, build)
    run_unittests(suite, options, build)


def run_sanitized(suite, options):
    build = configure_and_build(suite, suite.name, options)
    if build:
        run_unittests(suite, options, build, TSAN_OPTIONS="exitcode=66:second_deadlock_stack=1")


def run_aarch64(suite, options):
    emulator = shutil.which(EMULATOR)
    if not emulator:
        suite.add("aarch64", False, f"{EMULATOR} is not installed (Debian package qemu-user-static; ./dev setup installs it)")
        return
    build = configure_and_build(suite, "runtime-aarch64", options)
    if not build:
        return
    if not unittests(build):
        suite.add("aarch64 unit tests", False, "they were not built: is GoogleTest's source there (Debian package googletest)?")
    check_library(suite, build)
    run_unittests(suite, options, build, emulator)
    run_script(suite, options)


def run_examples(suite, options):
    if configure_and_build(suite, "runtime-aarch64", options):
        run_script(suite, options)


def run_script(suite, options):
    command = [sys.executable, ROOT / SCRIPTS[suite.name], "--build", options.build, "--jobs", options.jobs, "--json", suite.json]
    if options.all:
        command.append("--all")
    if options.filter:
        command += ["--filter", options.filter]
    code, output = suite.run(command)
    try:
        result = json.loads(suite.json.read_text())
        passed, failed, unexpected = int(result["passed"]), int(result["failed"]), [str(u) for u in result.get("unexpected", [])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        suite.add(SCRIPTS[suite.name], False, f"{ended(code)}, no results ({error})\n{tail(output)}")
        return
    suite.passed += passed
    for line in unexpected:
        name, _, what = line.partition(": ")
        suite.add(name, False, what)
    suite.unnamed_failures = max(0, failed - len(suite.failures))
    if code != 0 and not suite.failed:
        suite.add(SCRIPTS[suite.name], False, f"{ended(code)}, though nothing failed\n{tail(output)}")
    elif code == 0 and suite.failed:
        suite.add(SCRIPTS[suite.name], False, "exit code 0, though something failed")
    elif suite.unnamed_failures:
        print(tail(output))


def suites(options):
    """What there is to run for this build, in order: the quick and telling first."""
    if (ROOT / SCRIPTS["layers"]).exists():
        yield "layers", run_script
    if (options.build / "test" / "lit.site.cfg.py").exists():
        yield "lit", run_lit
    if unittests(options.build):
        yield "unit", run_unittests
    if options.build.name in ("dev", "release") and any((ROOT / "runtime").glob("*.cpp")):
        yield "runtime-only", run_runtime_only
        yield "tsan", run_sanitized
        yield "runtime-asan", run_sanitized
    if options.build.name in ("dev", "release") and (options.build / "test" / "lit.site.cfg.py").exists():
        yield "aarch64", run_aarch64
        yield "examples", run_examples
    for name in ("conformance", "models", "ops", "casts", "contrib", "fusion", "patterns", "windows"):
        if (ROOT / SCRIPTS[name]).exists() and (options.build / "test" / "lit.site.cfg.py").exists():
            yield name, run_script


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true", help="the slow tests too")
    parser.add_argument("--filter", metavar="TEXT", help="only tests whose name contains TEXT")
    parser.add_argument("--suite", action="append", help="only this suite (repeatable)")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if not options.build.is_dir():
        parser.error(f"{options.build} is not there; ./dev build makes it")
    bin_folder = str(pathlib.Path(sys.executable).parent)
    os.environ["PATH"] = bin_folder + os.pathsep + os.environ.get("PATH", "")
    if not shutil.which("cmake"):
        parser.error("no cmake in PATH; call this through ./dev test")
    logs = options.build / "test-logs"
    logs.mkdir(exist_ok=True)

    passed = failed = 0
    for name, run in suites(options):
        if options.suite and name not in options.suite:
            continue
        print(f"== {name}", flush=True)
        suite = Suite(name, logs)
        start = time.monotonic()
        run(suite, options)
        for test, output in suite.failures:
            print(f"FAILED {name}: {test}\n{tail(output)}\n", flush=True)
        skipped = f", {suite.skipped} not for this machine or run" if suite.skipped else ""
        print(f"   {suite.passed} passed, {suite.failed} failed{skipped}; {time.monotonic() - start:.1f} s; {os.path.relpath(suite.log)}",
              flush=True)
        passed += suite.passed
        failed += suite.failed
    if not passed and not failed:
        print("nothing ran" + (f" (no test's name contains '{options.filter}')" if options.filter else ""))
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
