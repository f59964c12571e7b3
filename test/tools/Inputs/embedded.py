# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""embedded.py OBJECT NAME MODULE: the sections .rodata.NAME and .text.NAME of the object hold the bytes of the module's file."""
import struct
import sys
from pathlib import Path

object_file, name, module = Path(sys.argv[1]).read_bytes(), sys.argv[2], Path(sys.argv[3]).read_bytes()
table, = struct.unpack_from("<Q", object_file, 0x28)
size, count, names = struct.unpack_from("<HHH", object_file, 0x3A)
headers = [struct.unpack_from("<IIQQQQIIQQ", object_file, table + i * size) for i in range(count)]
strings = headers[names][4]
sections = {}
for header in headers:
    begin = strings + header[0]
    sections[object_file[begin : object_file.index(b"\0", begin)].decode()] = object_file[header[4] : header[4] + header[5]]
data, code = sections[f".rodata.{name}"], sections[f".text.{name}"]
end = f"{name}\0".encode()
assert data.endswith(end)
data = data[: -len(end)]
assert module.startswith(data) and module.endswith(code), "the pieces are not the module's"
between = module[len(data) : len(module) - len(code)]
assert len(between) < 65536 and not any(between), "something is missing between the pieces"
