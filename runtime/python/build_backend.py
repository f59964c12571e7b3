# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the package for pip (PEP 517): the library comes into the wheel, compiled from the runtime's sources by the system's C++ compiler
(CXX, or c++); it needs nothing else. With DLCRT_LIBRARY, that file instead."""

import base64
import concurrent.futures
import hashlib
import io
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
# In the source tree the runtime is the folder above; a source package has a copy of its own.
NATIVE = HERE / "native"
RUNTIME, INCLUDE, LICENSE = ((NATIVE / "runtime", NATIVE / "include", NATIVE / "LICENSE") if NATIVE.is_dir() else
                             (HERE.parent, HERE.parent.parent / "include", HERE.parent.parent / "LICENSE"))
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = f"{PROJECT['name']}-{PROJECT['version']}"
# As runtime/CMakeLists.txt has them.
COMPILE = ["-std=c++17", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fno-exceptions", "-fno-rtti",
           "-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-ffunction-sections", "-fdata-sections"]
LINK = ["-shared", "-nodefaultlibs", "-Wl,-soname,libdlcrt.so.0", "-Wl,-z,defs", "-Wl,--gc-sections", "-Wl,--as-needed", "-s"]
LIBRARIES = ["-lpthread", "-lm", "-lc", "-lgcc"]


def native_sources():
    return sorted(path for folder in ("", "cpu", "pool") for path in (RUNTIME / folder).glob("*.cpp"))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\n{done.stdout}\ndlcrt's library could not be compiled. Set CXX to a C++17 compiler, or DLCRT_LIBRARY to a libdlcrt.so")


def library(folder):
    """The library's file."""
    if given := os.environ.get("DLCRT_LIBRARY"):
        return pathlib.Path(given)
    if not sys.platform.startswith("linux"):
        sys.exit("dlcrt is for Linux")
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if not shutil.which(compiler[0]):
        sys.exit(f"there is no C++ compiler {compiler[0]}: install one, set CXX, or set DLCRT_LIBRARY to a libdlcrt.so")
    objects = {str(source): str(folder / f"{number}.o") for number, source in enumerate(native_sources())}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [[*compiler, *COMPILE, f"-I{INCLUDE}", f"-I{RUNTIME}", "-c", source, "-o", made] for source, made in objects.items()]
        for _ in pool.map(run, commands):
            pass
    path = folder / "libdlcrt.so.0"
    run([*compiler, *LINK, *objects.values(), *LIBRARIES, "-o", str(path)])
    return path


def metadata():
    lines = ["Metadata-Version: 2.1", f"Name: {PROJECT['name']}", f"Version: {PROJECT['version']}", f"Summary: {PROJECT['description']}",
             f"License: {PROJECT['license']['text']}", f"Requires-Python: {PROJECT['requires-python']}"]
    lines += [f"Requires-Dist: {what}" for what in PROJECT["dependencies"]]
    for extra, packages in PROJECT["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {what}; extra == "{extra}"' for what in packages)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (HERE / PROJECT["readme"]).read_text(encoding="utf-8")])


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"{NAME}.dist-info"
    files = {f"dlcrt/{path.name}": path.read_bytes() for path in sorted((HERE / "dlcrt").glob("*.py"))}
    with tempfile.TemporaryDirectory() as folder:
        files["dlcrt/libdlcrt.so.0"] = library(pathlib.Path(folder)).read_bytes()
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: dlcrt {PROJECT['version']}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/LICENSE"] = LICENSE.read_bytes()
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
                     for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{NAME}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # with the same time always
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    paths = {name: HERE / name for name in ("pyproject.toml", "README.md", "build_backend.py")}
    paths.update({f"dlcrt/{path.name}": path for path in (HERE / "dlcrt").glob("*.py")})
    paths.update({f"native/include/{path.relative_to(INCLUDE)}": path for path in (INCLUDE / "dlcrt").glob("*.h")})
    headers = (path for folder in ("", "cpu", "pool") for path in (RUNTIME / folder).glob("*.h"))
    paths.update({f"native/runtime/{path.relative_to(RUNTIME)}": path for path in [*native_sources(), *headers]})
    files = {"PKG-INFO": metadata().encode(), "native/LICENSE": LICENSE.read_bytes(), **{name: path.read_bytes() for name, path in paths.items()}}
    sdist = f"{NAME}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / sdist, "w:gz") as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size, entry.mode = len(files[name]), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return sdist
