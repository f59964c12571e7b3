# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""crash.py DLC FOLDER: makes dlc fail in several ways (see crash.test)."""
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

dlc, folder = sys.argv[1], Path(sys.argv[2])

for name in ("SIGSEGV", "SIGABRT", "SIGFPE"):
    server = subprocess.Popen([dlc, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.stdin.write('{"id": 1, "args": ["version"]}\n')
    server.stdin.flush()
    server.stdout.readline()  # it is up
    os.kill(server.pid, getattr(signal, name))
    _, err = server.communicate()
    print(name, server.returncode, repr(err.splitlines()[0]))
print("tells how to report", "please report it" in err and "dlc serve" in err)

deep = folder / "deep.mlir"
deep.write_text("module attributes {a = " + "[" * 1000000 + "]" * 1000000 + "} {}\n")
command = ["compile", "--start-from", "clean", str(deep), "-o", str(folder / "x.dlcm")]
run = subprocess.run([dlc, *command], capture_output=True, text=True)
print("overflow", run.returncode, "(stack overflow)" in run.stderr, run.stderr.startswith("error: deep.mlir: internal fault of dlc"))
run = subprocess.run([dlc, "serve"], input=json.dumps({"id": 9, "args": command}) + "\n", capture_output=True, text=True)
print("overflow while serving", run.returncode, run.stdout[:30])

big = folder / "big.mlir"
big.write_text("module attributes {a = [" + ", ".join(map(str, range(4000000))) + "]} {}\n")


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))


command = ["compile", "--start-from", "clean", str(big), "-o", str(folder / "x.dlcm"), "--jobs", "1"]
run = subprocess.run([dlc, *command], capture_output=True, text=True, preexec_fn=limit)
print("memory", run.returncode, repr(run.stderr.splitlines()[0]))
run = subprocess.run([dlc, "serve"], input=json.dumps({"id": 9, "args": command}) + "\n", capture_output=True, text=True, preexec_fn=limit)
print("memory while serving", run.returncode, run.stdout.strip())
big.unlink()
