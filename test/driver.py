# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the Python suites share: commands through one `dlc serve`, worker processes, the ctypes binding, comparing tensors."""

import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Crash(Exception):
    """dlc ended by a signal, or reported a fault of its own (exit code 70)."""


class Hang(Exception):
    """No answer in time."""


class Answer:
    """What a command of dlc gave back."""

    def __init__(self, exit, out, err):
        self.exit, self.out, self.err = exit, out, err

    @property
    def errors(self):
        """The messages of the `error:` lines."""
        return [line[len("error: "):] for line in self.err.splitlines() if line.startswith("error: ")]


LIBC = ctypes.CDLL(None)


def end_with_parent():
    """For the child, after fork: the kernel ends it when its parent ends, whatever ended that."""
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def spent(pid):
    """Seconds of processor time that a process has had."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Limit:
    """Seconds of processor time for a process, because others may keep the machine busy; of time, if it only waits, 5 times as many."""

    def __init__(self, pid, seconds):
        self.pid, self.seconds = pid, seconds
        self.begin, self.begin_spent = time.monotonic(), spent(pid)

    def passed(self):
        return spent(self.pid) - self.begin_spent > self.seconds or time.monotonic() - self.begin > 5 * self.seconds


class Dlc:
    """Commands through one long-lived `dlc serve`, which is started when it is needed and after it died."""

    def __init__(self, build):
        self.program = pathlib.Path(build) / "bin" / "dlc"
        self.process = None
        self.buffer = b""
        self.count = 0

    def __call__(self, *words, seconds=60):
        """Raises Crash, or Hang after so many seconds (see Limit); everything else is an Answer."""
        if self.process is None or self.process.poll() is not None:
            self.close()
            self.process = subprocess.Popen([str(self.program), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        self.count += 1
        request = json.dumps({"id": self.count, "args": [str(word) for word in words]}) + "\n"
        try:
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
            line = self._line(Limit(self.process.pid, seconds))
        except BrokenPipeError:
            line = b""
        if not line:
            code = self.process.wait(5)
            self.close()
            raise Crash(f"dlc ended by {signal.Signals(-code).name}" if code < 0 else f"dlc ended with exit code {code}, and without an answer")
        answer = json.loads(line)
        if answer["id"] != self.count:
            self.close()
            raise Crash(f"dlc answered request {answer['id']}, not {self.count}")
        if answer["exit"] == 70:
            self.close()
            raise Crash(answer["stderr"].strip() or "exit code 70 without a message")
        return Answer(answer["exit"], answer["stdout"], answer["stderr"])

    def _line(self, limit):
        """Bytes up to the next end of line; none at the end of the output."""
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], 1)[0]:
                if not limit.passed():
                    continue
                self.close()
                raise Hang(f"dlc gives no answer in {limit.seconds} s")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                self.buffer = b""
                return b""
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def close(self):
        process, self.process, self.buffer = self.process, None, b""
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- worker processes -------------------------------------------------------------------------------------------------


def work(pipe, setup):
    """A worker: takes items, gives what the function that `setup` made returns of them."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder, setup(pathlib.Path(folder)) as handle:
        while True:
            (item,) = pipe.recv()
            try:
                result = handle(item)
            except (Crash, Hang) as error:
                result = error
            except Exception as error:  # a fault of the test or of the binding: shown, and the run goes on
                where = traceback.extract_tb(error.__traceback__)[-1]
                result = Crash(f"{type(error).__name__}: {error} ({pathlib.Path(where.filename).name}:{where.lineno})")
            pipe.send(result)


class Worker:
    """One worker process, and the item that it has."""

    context = multiprocessing.get_context("fork")  # what the items need is in memory already

    def __init__(self, setup, seconds):
        self.setup, self.seconds = setup, seconds
        self.process = None

    def give(self, number, item):
        if self.process is None:
            self.pipe, theirs = self.context.Pipe()
            self.process = self.context.Process(target=work, args=(theirs, self.setup), daemon=True)
            self.process.start()
            theirs.close()
        self.number, self.limit = number, Limit(self.process.pid, self.seconds)
        self.pipe.send((item,))

    def take(self):
        """The result if there is one, else None. What goes wrong with the worker is a result too."""
        if self.pipe.poll():
            try:
                return self.pipe.recv()
            except EOFError:
                pass
        elif self.process.is_alive():
            if not self.limit.passed():
                return None
            self.end()
            return Hang(f"no end after {self.seconds} s")
        self.process.join()
        code = self.process.exitcode
        self.end()
        return Crash("running the module: " + (signal.Signals(-code).name if code < 0 else f"exit code {code}"))

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def run_all(items, setup, jobs, seconds):
    """Yields (number of the item, result, seconds), as they come. In each worker process `with setup(folder) as handle` makes
    the function that is called with an item. A worker that dies or takes more than `seconds` (see Limit) costs its item only:
    then the result is a Crash or a Hang, as it is when `handle` raises one."""
    workers = [Worker(setup, seconds) for _ in range(max(1, min(jobs, len(items))))]
    idle, busy, done = list(workers), [], 0
    waiting = iter(enumerate(items))
    progress = sys.stderr.isatty()
    try:
        while True:
            while idle and (following := next(waiting, None)) is not None:
                busy.append(idle.pop())
                busy[-1].give(*following)
            if not busy:
                return
            multiprocessing.connection.wait([w.pipe for w in busy] + [w.process.sentinel for w in busy], timeout=1)
            for worker in list(busy):
                if (result := worker.take()) is not None:
                    busy.remove(worker)
                    idle.append(worker)
                    done += 1
                    yield worker.number, result, time.monotonic() - worker.limit.begin
            if progress:
                print(f"\r\033[K{done}/{len(items)}", end="", file=sys.stderr, flush=True)
    finally:
        if progress:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        for worker in workers:
            worker.end()


# --- values and arguments ---------------------------------------------------------------------------------------------


def runtime(build):
    """The module dlcrt (runtime/python), with the library of this build."""
    folder = str(ROOT / "runtime" / "python")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import dlcrt
    dlcrt.load(pathlib.Path(build).resolve() / "lib" / "libdlcrt.so")
    return dlcrt


class RemoteInstance:
    """As dlcrt.Instance, but each run is a run of dlcrt-run: for modules that are no code for this machine. `command` starts it, under
    an emulator for instance; `folder` is for the arrays on their way."""

    def __init__(self, dlcrt, module, command, folder, threads=1):
        self.dlcrt, self.module = dlcrt, module
        self.function, = dlcrt.Module(module).functions
        self.inputs, self.outputs = folder / "inputs", folder / "outputs"
        self.command = [*command, str(module), "--quiet", "--threads", str(threads), "--inputs", str(self.inputs), "--outputs", str(self.outputs)]

    def run(self, inputs):
        for files in (self.inputs, self.outputs):
            shutil.rmtree(files, ignore_errors=True)
            files.mkdir()
        for name, array in inputs.items():
            if array is not None:
                array = np.asarray(array, order="C")
                # NumPy's files know no types of ml_dtypes: their bits, which are a byte for a smaller element.
                if array.dtype.isbuiltin != 1:
                    array = array.view(f"{'i' if array.dtype.name.startswith('int') else 'u'}{array.itemsize}")
                np.save(self.file(self.inputs, name), array)
        done = subprocess.run(self.command, capture_output=True, text=True, errors="replace", preexec_fn=end_with_parent)
        if done.returncode < 0:
            raise Crash(f"running the module: {signal.Signals(-done.returncode).name}")
        if done.returncode != 0:
            raise self.dlcrt.DlcrtError(done.returncode, "exit code", done.stderr.strip())
        return {value.name: self.read(value) for value in self.function.outputs}

    def read(self, value):
        array = np.load(self.file(self.outputs, value.name))
        dtype = self.dlcrt._dtypes.numpy_dtype(value.dtype)
        if array.dtype == dtype:
            return array
        # Small integers of ml_dtypes are converted, as their values are; all else are bits.
        return array.astype(dtype) if dtype.itemsize == 1 and array.dtype.kind in "iu" and "int" in dtype.name else array.view(dtype)

    @staticmethod
    def file(folder, name):
        return folder / (name.replace("/", "_") + ".npy")


def is_text(array):
    return array.dtype.kind in "OUS"


def difference(got, want, rtol, atol):
    """None, or in words how `got` differs from `want`: lists (sequences), None (an empty optional) or arrays. NaN equals NaN."""
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)):
            return f"a tensor, not a sequence of {len(want)}"
        if len(got) != len(want):
            return f"a sequence of {len(got)}, not of {len(want)}"
        for i, (g, w) in enumerate(zip(got, want)):
            if found := difference(g, w, rtol, atol):
                return f"element {i}: {found}"
        return None
    if want is None or got is None:
        return None if want is got else "there where it must be empty" if want is None else "empty"
    want = np.asarray(want)
    if is_text(want):
        if not is_text(got) or got.shape != want.shape:
            return f"{got.dtype}{list(got.shape)}, not string{list(want.shape)}"
        text = [[w.decode() if isinstance(w, bytes) else str(w) for w in a.ravel()] for a in (got, want)]
        return None if text[0] == text[1] else f"{text[0][:4]}, not {text[1][:4]}"
    if got.dtype != want.dtype:
        return f"of type {got.dtype}, not {want.dtype}"
    if got.shape != want.shape:
        return f"of shape {list(got.shape)}, not {list(want.shape)}"
    if want.dtype.kind in "iub":
        # Exact where the tolerance is 0; through differences, because float64 does not hold every int64.
        low, high = np.minimum(got, want), np.maximum(got, want)
        apart = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
        good = apart <= atol + rtol * np.abs(want.astype(np.float64))
    else:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore", over="ignore"):
            good = np.isclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    if np.all(good):
        return None
    bad = np.argwhere(~np.atleast_1d(good))
    at = tuple(int(i) for i in bad[0])
    return (f"{len(bad)} of {want.size} elements differ, the first at {list(at) if want.ndim else '[]'}: "
            f"{np.atleast_1d(got)[at]}, not {np.atleast_1d(want)[at]}")


def add_common_arguments(parser):
    """The contract of test/report.py's scripts."""
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="worker processes")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there")
    parser.add_argument("--all", action="store_true", help="the slow ones too")
    parser.add_argument("--filter", metavar="REGEX", help="only those whose name matches")


def write_results(path, passed, unexpected, **more):
    """The JSON that test/report.py reads, if it asked for it."""
    if path:
        path.write_text(json.dumps({"passed": passed, "failed": len(unexpected), "unexpected": unexpected, **more}))


def cannot_load(options):
    """Says so, and that nothing failed, where Python cannot load the build's library: one with sanitizers needs a program with them."""
    cache = options.build / "CMakeCache.txt"
    sanitize = re.search(r"^DLC_SANITIZE:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
    if sanitize:
        print(f"not run: a library with sanitizers ({sanitize[1]}) cannot be loaded into Python")
        write_results(options.json, 0, [])
    return bool(sanitize)


def matches(pattern, name):
    """Whether a test is meant by --filter, which is a regular expression, or else simply a part of the name."""
    if not pattern:
        return True
    try:
        return re.search(pattern, name, re.I) is not None or pattern.lower() in name.lower()
    except re.error:
        return pattern.lower() in name.lower()
