# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve.py DLC FOLDER: talks to `dlc serve` (see serve.test)."""
import json
import subprocess
import sys
from pathlib import Path

dlc, folder = sys.argv[1], Path(sys.argv[2])
server = subprocess.Popen([dlc, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(line):
    server.stdin.write(line + "\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


def ask(id, *args):
    answer = send(json.dumps({"id": id, "args": [str(a) for a in args]}))
    assert answer["id"] == id, answer
    return answer


a = ask(1, "version")
print("version", a["exit"], a["stdout"].startswith("dlc "))
a = ask("two", "compile", folder / "mlp.onnx", "-o", folder / "a.dlcm")
print("compile", a["exit"], repr(a["stdout"] + a["stderr"]))
a = ask([3], "compile", folder / "unsupported.onnx", "-o", folder / "b.dlcm")
print("unsupported", a["exit"], "node 1 'second'" in a["stderr"])
a = ask(4, "compile", folder / "mlp.onnx", "-o", folder / "c.dlcm")
print("again", a["exit"], repr(a["stdout"] + a["stderr"]))
print("same bytes", (folder / "a.dlcm").read_bytes() == (folder / "c.dlcm").read_bytes())
a = ask(5, "run", folder / "c.dlcm", "--inputs", folder / "mlp", "--outputs", folder / "out")
print("run", a["exit"], repr(a["stdout"] + a["stderr"]))
a = ask(6, "compile", "--nonsense")
print("usage", a["exit"], a["stderr"].startswith("error: "))
a = send("nonsense")
print("not json", a["exit"], a["id"], a["stderr"].startswith("error: "))
a = send('{"id": 7}')
print("no args", a["exit"], a["stderr"].startswith("error: "))
a = ask(8, "serve")
print("itself", a["exit"], "cannot serve itself" in a["stderr"])
server.stdin.close()
print("ended", server.wait())
