# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs modules compiled by dlc.

    module = dlcrt.Module("model.dlcm")
    instance = dlcrt.Instance(module, threads=4)
    outputs = instance.run({"x": array})

A function that works on states (a decoder with its key-value cache) needs one, which instances of several functions may share:

    state = dlcrt.State(module, capacity=2048)
    prefill = dlcrt.Instance(module, function="prefill", state=state)
    decode = dlcrt.Instance(module, function="decode", state=state)
"""

import collections
import collections.abc
import ctypes as c
import os
import threading
import weakref

import numpy as np

from . import _dtypes
from . import _library as _l
from ._library import DlcrtError, load

__all__ = ["DlcrtError", "Function", "Instance", "Module", "State", "StateInfo", "Symbol", "Value", "Variant", "load"]
__version__ = "0.1.0"

# dims: int, or a str with the expression, "?" for those known only after a run. dtype: the number of onnx.TensorProto.
Value = collections.namedtuple("Value", "name dtype dtype_name dims optional has_default alias late")
Symbol = collections.namedtuple("Symbol", "name min max divisor anonymous")
# length, capacity: the symbols that are the states' before a run, of a function that works on `states` of them; else None.
Function = collections.namedtuple("Function", "name inputs outputs symbols states length capacity")
StateInfo = collections.namedtuple("StateInfo", "name dtype dtype_name dims axis")
# reason: why this machine cannot run it, or None.
Variant = collections.namedtuple("Variant", "function target priority guard reason")


def _text(write):
    size = write(None, 0) + 1
    buffer = c.create_string_buffer(size)
    write(buffer, size)
    return buffer.value.decode()


class _Owner:
    """Has something of the runtime's until close()."""

    def _own(self, handle, destroy, *arguments):
        self._open_handle = handle
        self._finalizer = weakref.finalize(self, destroy, *arguments, handle)

    @property
    def _handle(self):
        if self._open_handle is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._open_handle

    def close(self):
        self._open_handle = None
        self._finalizer()


class Module(_Owner):
    """A module from a file (str or os.PathLike) or from its bytes. May be used by several threads."""

    def __init__(self, source, verify=False, library=None):
        self._lib = load(library)
        handle = c.c_void_p()
        options = _l.ModuleOptions(flags=_l.VERIFY_CONSTANTS if verify else 0)
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._data = bytes(source)  # has to stay
            self._lib.module_open_memory(self._data, len(self._data), options, handle)
        else:
            self._lib.module_open_file(os.fsencode(source), options, handle)
        self._own(handle, self._lib.module_close)
        self._functions = None

    def close(self):
        """Gives the module up now instead of when it is collected. Instances and states keep what they need."""
        super().close()

    def verify(self):
        """Checks the hashes of all constants; raises DlcrtError."""
        self._lib.module_verify(self._handle)

    @property
    def producer(self):
        return self._info().producer.decode()

    @property
    def weight_bytes(self):
        return self._info().weight_bytes

    @property
    def functions(self):
        """Signatures, a list of Function."""
        if self._functions is None:
            self._functions = [self._function(i) for i in range(self._info().function_count)]
        return self._functions

    @property
    def states(self):
        """What functions keep from run to run, a list of StateInfo."""
        result = []
        for i in range(self._info().state_count):
            info = _l.StateInfo()
            self._lib.module_state(self._handle, i, info)
            dims = [_text(lambda to, size: self._lib.module_state_dim_text(self._handle, i, d, to, size)) for d in range(info.rank)]
            dims = [int(dim) if dim.isdigit() else dim for dim in dims]
            result.append(StateInfo(info.name.decode(), info.dtype, self._lib.dtype_name(info.dtype).decode(), dims, info.axis))
        return result

    @property
    def variants(self):
        """Compilations of the functions, a list of Variant."""
        result = []
        for i in range(self._info().variant_count):
            info = _l.VariantInfo()
            self._lib.module_variant(self._handle, i, info)
            reason = None
            try:
                self._lib.module_variant_supported(self._handle, i)
            except DlcrtError as error:
                reason = str(error)
            guard = _text(lambda to, size: self._lib.module_variant_guard_text(self._handle, i, to, size))
            result.append(Variant(self.functions[info.function].name, info.target.decode(), info.priority, guard, reason))
        return result

    def _info(self):
        info = _l.ModuleInfo()
        self._lib.module_get_info(self._handle, info)
        return info

    def _function(self, index):
        info = _l.FunctionInfo()
        self._lib.module_function(self._handle, index, info)
        symbols = []
        for i in range(info.symbol_count):
            symbol = _l.SymbolInfo()
            self._lib.module_symbol(self._handle, index, i, symbol)
            symbols.append(Symbol(symbol.name.decode(), symbol.min, symbol.max, symbol.divisor, bool(symbol.anonymous)))
        inputs = [self._value(index, _l.INPUT, i) for i in range(info.input_count)]
        outputs = [self._value(index, _l.OUTPUT, i) for i in range(info.output_count)]
        name = lambda i: None if i == _l.NO_INDEX else symbols[i].name
        return Function(info.name.decode(), inputs, outputs, symbols, info.state_count, name(info.length_symbol), name(info.capacity_symbol))

    def _value(self, function, direction, index):
        info = _l.ValueInfo()
        get = self._lib.module_input if direction == _l.INPUT else self._lib.module_output
        get(self._handle, function, index, info)
        dims = []
        for d in range(info.rank):
            dim = _l.DimInfo()
            self._lib.module_dim(self._handle, function, direction, index, d, dim)
            if dim.kind == _l.DIM_CONSTANT:
                dims.append(dim.value)
            else:
                dims.append(_text(
                    lambda to, size: self._lib.module_dim_text(self._handle, function, direction, index, d, to, size)))
        number = lambda i: None if i == _l.NO_INDEX else i
        return Value(info.name.decode(), info.dtype, self._lib.dtype_name(info.dtype).decode(), dims,
                     bool(info.flags & _l.OPTIONAL), bool(info.flags & _l.DEFAULT), number(info.alias),
                     bool(info.flags & _l.LATE))


class _Pool:
    """A thread pool that instances share."""

    _pools = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    @classmethod
    def of(cls, library, threads):
        with cls._lock:
            pool = cls._pools.get((library.path, threads))
            if pool is None:
                pool = cls._pools[(library.path, threads)] = cls(library, threads)
            return pool

    def __init__(self, library, threads):
        self.handle = library.pool_create(threads)
        if not self.handle:
            raise MemoryError("cannot make a thread pool")
        self.threads = library.pool_threads(self.handle)
        weakref.finalize(self, library.pool_destroy, self.handle)


class State(_Owner):
    """What is kept from run to run: all states of a module, with one length and one capacity.

    dims: values for the other symbols of the states' dims, such as {"batch": 1}. One run uses a state at a time."""

    def __init__(self, module, capacity, dims=None):
        self._lib = module._lib
        self._module = module  # whose bytes have to stay
        self._numbers = {info.name: i for i, info in enumerate(module.states)}
        self._infos = module.states
        names = list(dims or {})
        options = _l.StateOptions(capacity=capacity, dim_count=len(names))
        options.dim_names = (c.c_char_p * len(names))(*(name.encode() for name in names))
        options.dim_values = (c.c_int64 * len(names))(*(dims[name] for name in names))
        handle = c.c_void_p()
        self._lib.state_create(module._handle, options, handle)
        self._own(handle, self._lib.state_destroy)

    def close(self):
        """Frees the state now, or when the last instance that has it goes."""
        super().close()

    @property
    def length(self):
        """Entries that are there. It may be set: to fewer, which forgets the last ones, or to more, behind which something was written."""
        return self._lib.state_length(self._handle)

    @length.setter
    def length(self, length):
        self._lib.state_set_length(self._handle, length)

    @property
    def capacity(self):
        return self._lib.state_capacity(self._handle)

    @property
    def nbytes(self):
        return self._lib.state_bytes(self._handle)

    def reset(self):
        """Forgets all entries."""
        self.length = 0

    def grow(self, capacity):
        """Makes the capacity at least so large; what is there is copied."""
        self._lib.state_grow(self._handle, capacity)

    def read(self, name):
        """A copy of the entries of one state, an array."""
        index = self._number(name)
        rank = len(self._infos[index].dims)
        tensor, dims, strides = _l.Tensor(), (c.c_int64 * rank)(), (c.c_int64 * rank)()
        self._lib.state_view(self._handle, index, tensor, dims, strides)
        result = np.empty(dims[:rank], _dtypes.numpy_dtype(tensor.dtype))
        tensor = _l.Tensor(dtype=tensor.dtype, data=result.ctypes.data, rank=rank, dims=dims, device_kind=1)
        self._lib.state_read(self._handle, index, 0, tensor)
        return result

    def write(self, name, array, first=0):
        """Writes entries from `first` on, within the capacity. The length stays as it is."""
        index = self._number(name)
        info = self._infos[index]
        shape = getattr(array, "shape", None)
        dtype, dense = _dtypes.to_runtime(array, info.dtype)
        shape = tuple(shape) if shape is not None else dense.shape
        dims = (c.c_int64 * len(shape))(*shape)
        tensor = _l.Tensor(dtype=dtype, data=dense.ctypes.data, rank=len(shape), dims=dims, device_kind=1)
        self._lib.state_write(self._handle, index, first, tensor)

    def _number(self, name):
        if name not in self._numbers:
            raise KeyError(f"no state {name!r}; there are: {', '.join(self._numbers)}")
        return self._numbers[name]


class Instance(_Owner):
    """Runs one function of a module. Belongs to one thread at a time.

    function: name (default: the only one, or "main"). variant: only those for this target, e.g. "cpu:x86-64-v2".
    threads: 0 = as many as this process may use, at most 4096. state: the State that runs use, of a function that works on one."""

    def __init__(self, module, variant=None, threads=1, function=None, arena_limit=0, state=None):
        self._lib = module._lib
        self._module = module
        if not 0 <= threads <= _l.MOST_THREADS:
            raise ValueError(f"threads must be 0 (as many as this process may use) to {_l.MOST_THREADS}, not {threads}")
        self._pool = _Pool.of(self._lib, threads) if threads != 1 else None
        options = _l.InstanceOptions(arena_limit=arena_limit)
        options.function = function.encode() if function is not None else None
        options.variant = variant.encode() if variant is not None else None
        if self._pool:
            options.workers = self._pool.threads
            options.parallel_for = self._lib.parallel_for
            options.parallel_ctx = self._pool.handle
        handle = c.c_void_p()
        self._lib.instance_create(module._handle, options, handle)
        # The finalizer holds the pool: it must be there until the instance is gone.
        self._own(handle, _destroy, self._lib, self._pool)
        self._module_handle = module._handle  # good as long as the instance is, though the module be closed
        self._bound = {}  # number of an input: what its memory belongs to
        self.function = module.functions[self._lib.instance_function(self._handle)]
        self._input_numbers = {value.name: i for i, value in enumerate(self.function.inputs)}
        self._state = None
        if state is not None:
            self.state = state

    @property
    def state(self):
        """The State that is attached, or None."""
        return self._state

    @state.setter
    def state(self, state):
        self._lib.instance_set_state(self._handle, state._handle if state is not None else None)
        self._state = state

    def close(self):
        """Frees the instance now instead of when it is collected."""
        super().close()
        self._bound = {}
        self._state = None

    @property
    def target(self):
        """Target of the variant that the last run took."""
        info = _l.VariantInfo()
        self._lib.module_variant(self._module_handle, self._lib.instance_variant(self._handle), info)
        return info.target.decode()

    @property
    def statistics(self):
        """Memory and counts, as a dict; see struct dlcrt_instance_statistics."""
        values = _l.Statistics()
        self._lib.instance_get_statistics(self._handle, values)
        return {name: getattr(values, name) for name, *_ in values._fields_ if name not in ("struct_size", "reserved")}

    def run(self, inputs=()):
        """Computes. inputs: a dict of arrays by name, and the result is one; or a sequence in the signature's order (None for
        one that is left out), and the result is a list. Results are new arrays."""
        by_name = isinstance(inputs, collections.abc.Mapping)
        if by_name:
            unknown = [name for name in inputs if name not in self._input_numbers]
            if unknown:
                raise KeyError(f"no input {', '.join(map(repr, unknown))}; there are: {', '.join(self._input_numbers)}")
            given = {self._input_numbers[name]: array for name, array in inputs.items()}
        else:
            if len(inputs) > len(self.function.inputs):
                raise ValueError(f"{len(inputs)} inputs for a function of {len(self.function.inputs)}")
            given = dict(enumerate(inputs))
        for index in range(len(self.function.inputs)):
            if given.get(index) is not None:
                self._bind(index, given[index])
            elif index in self._bound:
                self._lib.instance_unbind_input(self._handle, index)
                del self._bound[index]
        self._lib.instance_run(self._handle, None)
        results = [self._output(index) for index in range(len(self.function.outputs))]
        return {v.name: r for v, r in zip(self.function.outputs, results)} if by_name else results

    def _bind(self, index, array):
        value = self.function.inputs[index]
        shape = getattr(array, "shape", None)
        dtype, dense = _dtypes.to_runtime(array, value.dtype)
        shape = tuple(shape) if shape is not None else dense.shape
        dims = (c.c_int64 * len(shape))(*shape)
        tensor = _l.Tensor(dtype=dtype, data=dense.ctypes.data, rank=len(shape), dims=dims, device_kind=1)
        self._lib.instance_bind_input(self._handle, index, tensor)
        self._bound[index] = dense

    def _output(self, index):
        tensor = _l.Tensor()
        self._lib.instance_output(self._handle, index, tensor)
        data = c.string_at(tensor.data, tensor.capacity) if tensor.capacity else b""
        return _dtypes.from_runtime(data, tensor.dtype, tensor.dims[:tensor.rank])


def _destroy(library, pool, handle):
    library.instance_destroy(handle)
