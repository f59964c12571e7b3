# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types of the runtime (numbers of onnx.TensorProto.DataType) and of NumPy."""

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

STRING = 8
_NUMPY = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
    11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
}
# Number: name in ml_dtypes, and the type that holds the same bits.
_EXTRA = {
    16: ("bfloat16", np.uint16), 17: ("float8_e4m3fn", np.uint8), 18: ("float8_e4m3fnuz", np.uint8),
    19: ("float8_e5m2", np.uint8), 20: ("float8_e5m2fnuz", np.uint8), 21: ("uint4", np.uint8), 22: ("int4", np.int8),
    23: ("float4_e2m1fn", np.uint8), 24: ("float8_e8m0fnu", np.uint8), 25: ("uint2", np.uint8), 26: ("int2", np.int8),
}
_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
_SIGNED = {22, 26}


def numpy_dtype(number):
    """The NumPy type of results."""
    if number in _NUMPY:
        return np.dtype(_NUMPY[number])
    if number not in _EXTRA:
        raise TypeError(f"no NumPy type for element type {number}")
    name, raw = _EXTRA[number]
    return np.dtype(getattr(ml_dtypes, name, raw) if ml_dtypes else raw)


def to_runtime(array, number):
    """(dtype number, dense array of what the runtime reads) for an input that should have type `number`. An array of another
    type is passed on as it is: the runtime's message says what is wrong with it."""
    if not isinstance(array, (np.ndarray, np.generic)):
        array = np.asarray(array, dtype=numpy_dtype(number))
    array = np.asarray(array, order="C")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    accepted = {numpy_dtype(number)}
    if number in _EXTRA:
        accepted.add(np.dtype(_EXTRA[number][1]))
    if array.dtype not in accepted:
        for other in (*_NUMPY, *_EXTRA):
            if numpy_dtype(other) == array.dtype:
                return other, array
        raise TypeError(f"no element type of the runtime for {array.dtype}")
    bits = _BITS.get(number)
    if not bits:
        return number, array
    # One element a byte to packed, the first in the lowest bits.
    loose = array.view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    per_byte = 8 // bits
    loose = np.pad(loose, (0, -len(loose) % per_byte)).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return number, np.bitwise_or.reduce(loose << shifts, axis=1).astype(np.uint8)


def from_runtime(data, number, dims):
    """A new array of the bytes of a result."""
    bits = _BITS.get(number)
    dtype = numpy_dtype(number)
    if not bits:
        return np.frombuffer(data, dtype=dtype).reshape(dims).copy()
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    loose = ((np.frombuffer(data, np.uint8)[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)
    loose = loose[:int(np.prod(dims, dtype=np.int64))]
    if number in _SIGNED:
        loose = (loose.astype(np.int8) ^ (1 << (bits - 1))) - (1 << (bits - 1))
        loose = loose.astype(np.int8)
    if dtype in (np.dtype(np.uint8), np.dtype(np.int8)):
        return loose.astype(dtype).reshape(dims)
    # ml_dtypes keeps integers by value and small floats by bits.
    return (loose.view(dtype) if number == 23 else loose.astype(dtype)).reshape(dims)
