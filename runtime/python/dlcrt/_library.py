# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""include/dlcrt/runtime.h in ctypes, as far as the binding uses it."""

import ctypes as c
import ctypes.util
import os
import pathlib

NO_INDEX = 0xFFFFFFFF
MOST_THREADS = 4096  # of a pool
INPUT, OUTPUT = 0, 1
OPTIONAL, LATE, DEFAULT = 1, 2, 4
READ_CONSTANTS, VERIFY_CONSTANTS = 1, 2
DIM_CONSTANT, DIM_SYMBOL, DIM_EXPRESSION, DIM_LATE = range(4)


def _struct(name, *fields):
    """A struct that begins with struct_size, which new objects have set."""

    def init(self, **values):
        c.Structure.__init__(self, struct_size=c.sizeof(type(self)), **values)

    return type(name, (c.Structure,), {"_fields_": [("struct_size", c.c_uint32), *fields], "__init__": init})


u32, i32, u64, i64, text, pointer = c.c_uint32, c.c_int32, c.c_uint64, c.c_int64, c.c_char_p, c.c_void_p

Error = _struct("Error", ("code", i32), ("message", c.c_char * 504))
Tensor = _struct(
    "Tensor", ("dtype", i32), ("data", pointer), ("rank", u32), ("reserved", u32), ("dims", c.POINTER(i64)),
    ("strides", c.POINTER(i64)), ("device_kind", i32), ("device_index", i32), ("byte_offset", u64), ("capacity", u64))
ModuleOptions = _struct("ModuleOptions", ("flags", u32), ("name", text))
ModuleInfo = _struct(
    "ModuleInfo", ("format_major", c.c_uint16), ("format_minor", c.c_uint16), ("producer", text), ("function_count", u32),
    ("variant_count", u32), ("state_count", u32), ("state_symbol_count", u32), ("file_bytes", u64), ("weight_bytes", u64),
    ("code_bytes", u64))
FunctionInfo = _struct(
    "FunctionInfo", ("reserved", u32), ("name", text), ("input_count", u32), ("output_count", u32), ("symbol_count", u32),
    ("state_count", u32), ("length_symbol", u32), ("capacity_symbol", u32))
SymbolInfo = _struct("SymbolInfo", ("anonymous", u32), ("name", text), ("min", i64), ("max", i64), ("divisor", i64))
ValueInfo = _struct(
    "ValueInfo", ("dtype", i32), ("name", text), ("rank", u32), ("flags", u32), ("alias", u32), ("reserved", u32))
DimInfo = _struct("DimInfo", ("kind", i32), ("value", i64), ("symbol", u32), ("reserved", u32))
StateInfo = _struct("StateInfo", ("dtype", i32), ("name", text), ("rank", u32), ("axis", u32))
StateOptions = _struct(
    "StateOptions", ("dim_count", u32), ("dim_names", c.POINTER(text)), ("dim_values", c.POINTER(i64)), ("capacity", i64),
    ("allocator", pointer))
VariantInfo = _struct(
    "VariantInfo", ("function", u32), ("target", text), ("priority", i32), ("device_kind", u32), ("guarded", u32),
    ("kernel_count", u32), ("code_bytes", u64), ("fixed_arena_bytes", u64))
InstanceOptions = _struct(
    "InstanceOptions", ("workers", u32), ("function", text), ("variant", text), ("arena_limit", u64), ("allocator", pointer),
    ("parallel_for", pointer), ("parallel_ctx", pointer), ("host_functions", pointer), ("host_function_count", u32),
    ("device_factory_count", u32), ("device_factories", pointer))
RunOptions = _struct(
    "RunOptions", ("reserved", u32), ("stream", pointer), ("cancel", pointer), ("deadline_ns", u64), ("trace", pointer),
    ("trace_ctx", pointer))
Statistics = _struct(
    "Statistics", ("reserved", u32), *((name, u64) for name in (
        "arena_bytes", "late_bytes", "output_bytes", "staging_bytes", "scratch_bytes", "state_bytes", "weight_bytes",
        "allocations", "runs", "layouts_computed", "arena_lower_bound_bytes")))

_ERROR = c.POINTER(Error)
# Functions that return a status and take an error last.
_CHECKED = {
    "module_open_file": [text, c.POINTER(ModuleOptions), c.POINTER(pointer)],
    "module_open_memory": [pointer, u64, c.POINTER(ModuleOptions), c.POINTER(pointer)],
    "module_verify": [pointer],
    "module_get_info": [pointer, c.POINTER(ModuleInfo)],
    "module_function": [pointer, u32, c.POINTER(FunctionInfo)],
    "module_symbol": [pointer, u32, u32, c.POINTER(SymbolInfo)],
    "module_input": [pointer, u32, u32, c.POINTER(ValueInfo)],
    "module_output": [pointer, u32, u32, c.POINTER(ValueInfo)],
    "module_dim": [pointer, u32, u32, u32, u32, c.POINTER(DimInfo)],
    "module_state": [pointer, u32, c.POINTER(StateInfo)],
    "module_state_symbol": [pointer, u32, c.POINTER(SymbolInfo)],
    "module_variant": [pointer, u32, c.POINTER(VariantInfo)],
    "module_variant_supported": [pointer, u32],
    "instance_create": [pointer, c.POINTER(InstanceOptions), c.POINTER(pointer)],
    "instance_bind_input": [pointer, u32, c.POINTER(Tensor)],
    "instance_unbind_input": [pointer, u32],
    "instance_run": [pointer, c.POINTER(RunOptions)],
    "instance_output": [pointer, u32, c.POINTER(Tensor)],
    "instance_set_state": [pointer, pointer],
    "instance_get_statistics": [pointer, c.POINTER(Statistics)],
    "state_create": [pointer, c.POINTER(StateOptions), c.POINTER(pointer)],
    "state_set_length": [pointer, i64],
    "state_grow": [pointer, i64],
    "state_view": [pointer, u32, c.POINTER(Tensor), c.POINTER(i64), c.POINTER(i64)],
    "state_read": [pointer, u32, i64, c.POINTER(Tensor)],
    "state_write": [pointer, u32, i64, c.POINTER(Tensor)],
}
_PLAIN = {
    "version_string": (text, []),
    "status_name": (text, [i32]),
    "dtype_bits": (u32, [i32]),
    "dtype_name": (text, [i32]),
    "module_close": (None, [pointer]),
    "module_dim_text": (c.c_size_t, [pointer, u32, u32, u32, u32, pointer, c.c_size_t]),
    "module_state_dim_text": (c.c_size_t, [pointer, u32, u32, pointer, c.c_size_t]),
    "module_variant_guard_text": (c.c_size_t, [pointer, u32, pointer, c.c_size_t]),
    "instance_destroy": (None, [pointer]),
    "state_destroy": (None, [pointer]),
    "state_length": (i64, [pointer]),
    "state_capacity": (i64, [pointer]),
    "state_bytes": (u64, [pointer]),
    "instance_function": (u32, [pointer]),
    "instance_variant": (u32, [pointer]),
    "pool_available_threads": (u32, []),
    "pool_create": (pointer, [u32]),
    "pool_destroy": (None, [pointer]),
    "pool_threads": (u32, [pointer]),
}


class DlcrtError(Exception):
    """A call failed. `code` is its enum dlcrt_status, `name` that number's name."""

    def __init__(self, code, name, message):
        super().__init__(message)
        self.code, self.name = code, name


class Library:
    """The loaded library; its functions without the prefix `dlcrt_`. Those that can fail raise DlcrtError."""

    def __init__(self, path):
        self.path = path
        self._c = c.CDLL(path)
        for name, (result, arguments) in _PLAIN.items():
            function = getattr(self._c, "dlcrt_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        for name, arguments in _CHECKED.items():
            function = getattr(self._c, "dlcrt_" + name)
            function.restype, function.argtypes = i32, [*arguments, _ERROR]
            setattr(self, name, self._checked(function))
        self.parallel_for = c.cast(self._c.dlcrt_pool_parallel_for, pointer)

    def _checked(self, function):
        def call(*arguments):
            error = Error()
            if status := function(*arguments, c.byref(error)):
                raise DlcrtError(status, self.status_name(status).decode(), error.message.decode(errors="replace"))

        return call


_loaded = None


def load(path=None):
    """Loads the library, once; see README.md for where it is looked for."""
    global _loaded
    if _loaded is None or (path is not None and str(path) != _loaded.path):
        if path is None:
            path = os.environ.get("DLCRT_LIBRARY")
        if path is None:
            beside = sorted(pathlib.Path(__file__).parent.glob("libdlcrt.so*"))
            path = str(beside[0]) if beside else ctypes.util.find_library("dlcrt")
        if path is None:
            raise OSError("libdlcrt.so not found: set DLCRT_LIBRARY to its path, or call dlcrt.load(path)")
        _loaded = Library(str(path))
    return _loaded
