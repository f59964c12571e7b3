# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who is measured. Each contender lives in a process of its own, pinned to its cores, and is asked through a pipe."""

import ctypes
import hashlib
import multiprocessing
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import traceback

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver

PEERS_FOLDER = driver.ROOT / ".deps" / "bench"
CHOOSING_SECONDS = 0.1
PEAK_SECONDS = 0.003  # short, so that on a busy machine some of them run undisturbed on all cores
CALLS_A_TURN = 5
STARTS = 5


class Failed(Exception):
    """What a contender has to say."""


# --- what runs inside the processes -----------------------------------------------------------------------------------
#
# A contender has: version; load(path, inputs), after which `ways` are functions that compute once, by name, and `flops` what one call does
# where the contender knows; outputs(). `measured`, where it is there, says how many nanoseconds the last call took; `start`, how many
# milliseconds it took to load and to run for the first time.


def aligned(array):
    """A copy on a cache line's boundary, so that no contender is lucky."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Dlc:
    """Inputs bound once, outputs read in place; a call is dlcrt_instance_run through ctypes, which adds about a microsecond. The start is the
    quickest of some: the file is in memory, the threads are there, and the rest is new each time."""

    def __init__(self, threads, build):
        self.dlcrt = driver.runtime(build)
        self.threads = threads
        self.version = self.dlcrt.load().version_string().decode()

    def load(self, path, inputs):
        clock, starts = time.perf_counter_ns, []
        for number in range(1 + STARTS):  # the first one brings the file into memory
            if number:
                instance.close()
                module.close()
            begin = clock()
            module = self.dlcrt.Module(path)
            instance = self.dlcrt.Instance(module, threads=self.threads)
            loaded = clock()
            for index, value in enumerate(instance.function.inputs):
                instance._bind(index, inputs[value.name])
            call = self._call(instance)
            bound = clock()
            call()
            starts.append((loaded - begin, clock() - bound))
        self.instance = instance
        self.start = {name: min(times) / 1e6 for name, times in zip(("load_ms", "first_run_ms"), zip(*starts[1:]))}
        self.ways = {"instance_run": call}

    @staticmethod
    def _call(instance):
        library, handle = instance._lib, instance._handle
        run = library._c.dlcrt_instance_run

        def call():
            if run(handle, None, None):
                library.instance_run(handle, None)  # the same again, to hear why

        return call

    def outputs(self):
        return [self.instance._output(i) for i in range(len(self.instance.function.outputs))]


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime
        self.onnxruntime = onnxruntime
        self.threads = threads
        self.version = onnxruntime.__version__

    def load(self, path, inputs):
        options = self.onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.graph_optimization_level = self.onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = self.onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.binding = binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_ortvalue_input(name, self.onnxruntime.OrtValue.ortvalue_from_numpy(array))
        names = [output.name for output in session.get_outputs()]
        for name in names:
            binding.bind_output(name, "cpu")
        session.run_with_iobinding(binding)
        for name, value in zip(names, binding.get_outputs()):  # now that the shapes are known, into the same memory each time
            binding.bind_ortvalue_output(name, value)
        self.ways = {"run_with_iobinding": lambda: session.run_with_iobinding(binding), "run": lambda: session.run(names, inputs)}

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    def __init__(self, threads):
        sys.path.insert(0, str(PEERS_FOLDER))
        import openvino
        self.openvino = openvino
        self.threads = threads
        self.version = openvino.__version__

    def load(self, path, inputs):
        core = self.openvino.Core()
        model = core.read_model(path)
        if model.is_dynamic():  # known shapes make it faster
            model.reshape({name: list(array.shape) for name, array in inputs.items()})
        settings = {"INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
                    "ENABLE_CPU_PINNING": False}  # the whole process is pinned
        self.compiled = core.compile_model(model, "CPU", settings)
        self.request = request = self.compiled.create_infer_request()
        for name, array in inputs.items():
            request.set_tensor(name, self.openvino.Tensor(array, shared_memory=True))

        def start_and_wait():
            request.start_async()
            request.wait()

        self.ways = {"infer": lambda: request.infer(share_inputs=True, share_outputs=True), "start_async": start_and_wait}

    def outputs(self):
        return [np.array(self.request.get_tensor(output).data) for output in self.compiled.outputs]


class Peak:
    """fused multiply-adds on registers (fma_peak.c), on each of the cores at once: what no contender can surpass."""

    def __init__(self, threads, library):
        self.loops = ctypes.CDLL(str(library))
        self.loops.fma_flops_per_step.restype = ctypes.c_double
        self.loops.fma_run.restype = ctypes.c_int64
        self.loops.fma_run.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
        self.cores = (ctypes.c_int * threads)(*sorted(os.sched_getaffinity(0)))
        self.version = f"{self.loops.fma_vector_bits()}-bit vectors"

    def load(self, path, inputs):
        steps = 10000
        while (least := min(self._run(steps, 1) for _ in range(10))) < PEAK_SECONDS * 1e9 / 2:
            steps *= 2
        steps = round(steps * PEAK_SECONDS * 1e9 / least)
        self.flops = steps * self.loops.fma_flops_per_step() * len(self.cores)
        self.ways = {"fma_run": lambda: self._run(steps, len(self.cores))}

    def _run(self, steps, count):
        self.last = self.loops.fma_run(steps, count, self.cores)
        if self.last < 0:
            raise Failed("no threads to be had")
        return self.last

    def measured(self):
        return self.last

    def outputs(self):
        return None


def take_turn(call, seconds, calls, measured=None):
    """Nanoseconds of each call; at least so many calls, and so many seconds. One before them is not counted: others had the caches.
    `measured` says how long a call took, if the call itself knows better."""
    clock = time.perf_counter_ns
    call()
    times = []
    end = clock() + int(seconds * 1e9)
    while True:
        begin = clock()
        call()
        now = clock()
        times.append(measured() if measured else now - begin)
        if now >= end and len(times) >= calls:
            return times


def choose_way(ways):
    """The name of the quickest."""
    return min(ways, key=lambda name: min(take_turn(ways[name], CHOOSING_SECONDS, CALLS_A_TURN))) if len(ways) > 1 else next(iter(ways))


class Served:
    """What a contender's process does."""

    def __init__(self, kind, arguments):
        self.contender = kind(**arguments)

    def version(self):
        return self.contender.version

    def load(self, path, inputs):
        self.inputs = {name: aligned(array) for name, array in inputs.items()}  # read in place, so they have to stay
        self.contender.load(str(path), self.inputs)
        way = choose_way(self.contender.ways)
        self.call = self.contender.ways[way]
        self.call()
        return {"way": way, "flops": getattr(self.contender, "flops", None), "start": getattr(self.contender, "start", {})}

    def outputs(self):
        return self.contender.outputs()

    def turn(self, seconds):
        return take_turn(self.call, seconds, CALLS_A_TURN, getattr(self.contender, "measured", None))


def serve(pipe, kind, arguments):
    driver.end_with_parent()
    served = None
    while True:
        try:
            what, *words = pipe.recv()
        except EOFError:
            return
        try:
            served = served or Served(kind, arguments)
            answer = True, getattr(served, what)(*words)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            answer = False, f"{type(error).__name__}: {error} ({pathlib.Path(where.filename).name}:{where.lineno})"
        pipe.send(answer)


# --- what stands outside of them --------------------------------------------------------------------------------------


class Contender:
    """A contender's process. `prepare(model, folder)` makes of the ONNX file the file that it loads."""

    context = multiprocessing.get_context("spawn")  # nothing of one library may be in the process of another

    def __init__(self, name, kind, cores, prepare=lambda model, folder: model, **arguments):
        self.name, self.prepare = name, prepare
        self.pipe, theirs = self.context.Pipe()
        # A process has its cores from its beginning, so that no thread of any library has others.
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            self.process = self.context.Process(target=serve, args=(theirs, kind, {"threads": len(cores), **arguments}), daemon=True)
            self.process.start()
        finally:
            os.sched_setaffinity(0, before)
        theirs.close()
        self.version = self.ask("version")

    def ask(self, *words):
        try:
            self.pipe.send(words)
            good, answer = self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join()
            good, answer = False, f"its process ended with {self.process.exitcode} in '{words[0]}'"
        if not good:
            raise Failed(f"{self.name}: {answer}")
        return answer

    def end(self):
        self.pipe.close()
        self.process.join(5)
        self.process.kill()


def compiled_by(build):
    """How a contender of this build prepares a model: compiled for this machine alone, all dims as the model has them."""
    program = build / "bin" / "dlc"

    def prepare(model, folder):
        path = folder / (hashlib.sha256(f"{build} {model}".encode()).hexdigest()[:16] + ".dlcm")
        if not path.exists():
            done = subprocess.run([program, "compile", model, "-o", path, "--target", "cpu:host"], capture_output=True, text=True)
            if done.returncode:
                raise Failed(f"{program} compile: {done.stderr.strip() or f'exit code {done.returncode}'}")
        return path

    return prepare


def build_peak(folder):
    """The library of fma_peak.c, for this processor."""
    compilers = [name for name in ("clang-22", "clang", "gcc", "cc") if shutil.which(name)]
    if not compilers:
        raise Failed("the peak of the processor is measured by a C program, and there is no C compiler (clang-22, clang, gcc, cc)")
    library = folder / "fma_peak.so"
    # Else compilers cut 512-bit vectors in two for some processors.
    whole = ["-mprefer-vector-width=512"] if platform.machine() == "x86_64" else []
    done = subprocess.run([compilers[0], "-O2", "-march=native", *whole, "-shared", "-fPIC", "-pthread", pathlib.Path(__file__).with_name("fma_peak.c"),
                           "-o", library], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{compilers[0]} cannot compile fma_peak.c: {done.stderr.strip()}")
    return library
