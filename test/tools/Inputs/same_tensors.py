# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""same_tensors.py EXPECTED GOT: every EXPECTED/output_I.pb is in GOT (as .pb, or as the one .npy) with about the same values."""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, numpy_helper


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


expected, got = Path(sys.argv[1]), Path(sys.argv[2])
files = sorted(expected.glob("output_*.pb"))
assert files, expected
for file in files:
    other = got / file.name
    if not other.exists():
        (other,) = got.glob("*.npy")
    a, b = read(file), read(other)
    assert a.dtype == b.dtype and a.shape == b.shape, (file, a.dtype, a.shape, b.dtype, b.shape)
    np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
print(f"{len(files)} outputs are right")
