# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose weights are what is tested. Run with the folder for the models as third argument of import.py."""
import os
import struct
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

T = TensorProto


def model(*weights, sparse=()):
    """Reads each weight once."""
    names = [w.name for w in weights] + [w.values.name for w in sparse]
    kinds = [w.data_type for w in weights] + [T.FLOAT] * len(sparse)
    names = list(dict.fromkeys(names))
    nodes = [helper.make_node("Neg" if kind == T.FLOAT else "Identity", [n], ["out" + str(i)]) for i, (n, kind) in enumerate(zip(names, kinds))]
    outputs = [helper.make_tensor_value_info("out" + str(i), kind if kind < 30 else T.FLOAT, None) for i, (_, kind) in enumerate(zip(names, kinds))]
    graph = helper.make_graph(nodes, "g", [], outputs, list(weights))
    graph.sparse_initializer.extend(sparse)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def typed(kind, name="w", values=(1, -2), dims=None):
    return helper.make_tensor(name, kind, dims if dims is not None else [len(values)], values)


def external(location, name="w", dims=(2,), **entries):
    tensor = T(name=name, data_type=T.FLOAT, dims=dims, data_location=T.EXTERNAL)
    for key, value in dict(location=location, **entries).items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return tensor


def models():
    folder = Path(sys.argv[3])
    data = struct.pack("<8x2f4x", 10, 20)
    (folder / "data.bin").write_bytes(data)
    (folder / "more.bin").write_bytes(struct.pack("<2f", 1, 2))
    (folder.parent / "secret.bin").write_bytes(data)
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "up").symlink_to(folder.parent)
    (folder / "inner.bin").symlink_to("data.bin")
    os.mkfifo(folder / "pipe.bin")

    signed = [typed(kind, f"w{kind}") for kind in (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT8, T.INT16, T.INT32, T.INT64)]
    largest = {T.UINT8: 2**8 - 1, T.UINT16: 2**16 - 1, T.UINT32: 2**32 - 1, T.UINT64: 2**64 - 1}
    unsigned = [typed(kind, f"w{kind}", (1, most)) for kind, most in largest.items()]
    yield "typed", model(*signed, *unsigned, typed(T.BOOL, "wb", (1, 0))), []
    codes = [T(name=f"w{kind}", data_type=kind, dims=[2], int32_data=[0x38, 0xC0])
             for kind in (T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ, T.FLOAT8E8M0)]
    packed = [T(name=f"w{kind}", data_type=kind, dims=[3], int32_data=[0x81, 0xF7]) for kind in (T.INT4, T.UINT4, T.FLOAT4E2M1)]
    packed += [T(name=f"w{kind}", data_type=kind, dims=[5], raw_data=b"\xb1\xfe") for kind in (T.INT2, T.UINT2)]
    narrow = model(*codes, *packed, T(name="long", data_type=T.INT4, dims=[1000], raw_data=b"\x21" * 500))
    narrow.opset_import[0].version = 25
    yield "narrow", narrow, []
    raw = [numpy_helper.from_array(np.array(v), f"w{i}") for i, v in enumerate([np.float32([1, -2]), [True, False, True], np.int64(7), np.zeros((0, 3), np.float32)])]
    raw[1].raw_data = b"\x01\x00\x80"
    yield "raw", model(*raw), []
    yield "large", model(numpy_helper.from_array(np.arange(1000, dtype=np.float32), "w")), []
    yield "external", model(external("data.bin", "a", offset=8, length=8), external("more.bin", "b")), []
    unread = model(typed(T.FLOAT))
    unread.graph.initializer.add(name="nobody", data_type=T.STRING, dims=[-1])
    yield "unread", unread, []

    yield "parent", model(external("../secret.bin")), []
    yield "absolute", model(external(folder.resolve() / "data.bin")), []
    yield "link", model(external("link.bin")), []
    yield "folder_link", model(external("up/secret.bin")), []
    yield "inner_link", model(external("inner.bin", offset=8)), []
    yield "no_file", model(external("none.bin")), []
    yield "pipe", model(external("pipe.bin")), []
    yield "no_location", model(external(None)), []
    yield "zero_byte", model(external("data.bin\0.txt")), []
    yield "offset", model(external("data.bin", offset=16)), []
    yield "far_offset", model(external("data.bin", offset=2**64 - 4)), []
    yield "length", model(external("data.bin", length=4)), []
    yield "no_number", model(external("data.bin", offset=-8)), []
    yield "short", model(T(name="w", data_type=T.FLOAT, dims=[4], raw_data=b"\0" * 12)), []
    yield "few", model(T(name="w", data_type=T.FLOAT, dims=[4], float_data=[1, 2, 3])), []
    yield "no_data", model(T(name="w", data_type=T.FLOAT, dims=[4])), []
    yield "negative", model(T(name="w", data_type=T.FLOAT, dims=[-2, 2], raw_data=b"\0" * 16)), []
    yield "huge", model(T(name="w", data_type=T.FLOAT, dims=[2**62, 2**62], raw_data=b"\0" * 16)), []
    yield "does_not_fit", model(T(name="w", data_type=T.UINT8, dims=[2], int32_data=[1, 256])), []
    yield "string", model(helper.make_tensor("w", T.STRING, [1], [b"a"])), []
    yield "int4", model(T(name="w", data_type=T.INT4, dims=[3], raw_data=b"\0")), []
    yield "no_type", model(T(name="w", data_type=77, dims=[2], raw_data=b"\0")), []
    values = typed(T.FLOAT, values=(1.0,))
    yield "sparse", model(sparse=[helper.make_sparse_tensor(values, typed(T.INT64, "i", (0,)), [4])]), []
    yield "twice", model(typed(T.FLOAT), typed(T.FLOAT)), []
