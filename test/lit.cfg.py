# How lit runs the tests below this folder. `./dev test` runs them all; by hand, after a build:
#   .venv/bin/lit -v build/dev/test --filter=NAME
#
# Substitutions: the programs by name (dlc, dlc-opt, dlcrt-run, FileCheck, not, split-file, ...) or as %dlc %dlc-opt %FileCheck ...;
# %python (with onnx, numpy, onnxruntime), %root (the source), %build, %t, %s, %S as ever.
# Features: x86, aarch64, avx2, avx512f, amx, ..., aarch64-qemu, asan, all (only with `./dev test --all`: put `REQUIRES: all` in a slow test).
# lit from PyPI has only the internal shell.

import os
import platform
import shutil

import lit.formats

config.name = "dlc"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".mlir", ".test", ".onnxtxt", ".onnx.py"]
config.excludes = ["Inputs", "onnx-conformance", "models", "fuzz", "golden", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.dlc_build_dir, "test")

tools = os.path.join(config.dlc_build_dir, "bin")
path = [tools, config.test_tools_dir, config.llvm_tools_dir, os.path.dirname(config.python)]
config.environment["PATH"] = os.pathsep.join(path + [config.environment.get("PATH", "")])
for name in ("HOME", "XDG_CACHE_HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["LD_LIBRARY_PATH"] = os.path.join(config.dlc_build_dir, "lib")

# Longer names first: lit replaces in this order, and %dlc would else eat the head of %dlc-opt.
for name in ("dlc-lsp-server", "dlc-translate", "dlc-reduce", "dlc-opt", "dlcrt-run", "dlc"):
    config.substitutions.append(("%" + name + r"(?![\w-])", os.path.join(tools, name)))
for name in ("FileCheck", "split-file", "not", "llvm-objdump", "llvm-readelf", "clang"):
    config.substitutions.append(("%" + name + r"(?![\w-])", shutil.which(name, path=config.environment["PATH"]) or name))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%root", config.dlc_source_dir))
config.substitutions.append(("%build", config.dlc_build_dir))

machine = platform.machine()
config.available_features.add({"x86_64": "x86", "arm64": "aarch64"}.get(machine, machine))
if machine == "x86_64":
    with open("/proc/cpuinfo") as info:
        flags = next((line.split(":", 1)[1].split() for line in info if line.startswith("flags")), [])
    config.available_features.update(flag for flag in flags if flag.startswith(("avx", "amx")))
    if "amx_tile" in flags:
        config.available_features.add("amx")
if shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static"):
    config.available_features.add("aarch64-qemu")
if "address" in config.sanitize:
    config.available_features.add("asan")
if "all" in lit_config.params:
    config.available_features.add("all")
