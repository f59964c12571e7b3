/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The C API of dlcrt, the runtime that executes modules (.dlcm) made by dlc.
 *
 *   dlcrt_module_open_file        map a module; it is checked completely before anything in it is used
 *   dlcrt_module_open_static      the same for a module that is part of the program
 *   dlcrt_module_function, ...    ask for signatures and variants
 *   dlcrt_instance_create         one execution context of one function, with its own memory
 *   dlcrt_instance_bind_input     zero-copy: the runtime reads the caller's memory
 *   dlcrt_instance_bind_output    optional: without it the runtime owns the output
 *   dlcrt_instance_run            compute
 *   dlcrt_instance_output         look at the results
 *   dlcrt_state_create            memory that outlives runs (a key-value cache), for functions that work on it
 *
 * Conventions
 * - Sizes named `bytes` are in bytes, times named `ns` in nanoseconds, dims and strides in elements.
 * - Every struct starts with `struct_size`, which the caller sets to sizeof of the struct as it knows it; fields beyond
 *   that are not touched, so that structs can grow. Set the rest to zero ("= {.struct_size = sizeof(x)}"), then what you need.
 *   In an array of such structs the first one's struct_size is the stride.
 * - A function that can fail returns a status, DLCRT_OK = 0. `error` may be NULL; if not, code and message are written to
 *   it on failure, and on success its code is set to DLCRT_OK. Nothing else is written on failure if not said otherwise.
 * - A NULL handle is a fault of the caller that is reported, not a reason to crash, and so is a state of another module. A handle
 *   of another kind, or of what was destroyed, is not noticed: what happens then is undefined.
 * - Strings are NUL-terminated UTF-8. Strings that the runtime returns live as long as the module.
 * - The library reads no environment variables, prints nothing, installs no signal handlers, starts no threads (the pool
 *   below does, when asked) and has no global state beside a cache of the processor's features.
 *
 * Threads
 * - A module does not change after it was opened: any number of threads may use it.
 * - An instance belongs to one thread at a time. Two calls at once on one instance are an error (DLCRT_ERROR_BUSY where
 *   the runtime notices). Different instances are independent, also those of one module.
 * - A state belongs to one run, or one call, at a time, whichever instances it is attached to. Its length, capacity and bytes may be
 *   asked at any time.
 *
 * Trust: a module holds native code. The runtime withstands damaged and hostile bytes in everything it interprets itself,
 * but the kernels run with the rights of the process. Trust a module as you would trust a shared library.
 */
#ifndef DLCRT_RUNTIME_H
#define DLCRT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DLCRT_API __attribute__((visibility("default")))
#else
#define DLCRT_API
#endif

/* ------------------------------------------------------------------------------------------------ version */
#define DLCRT_VERSION_MAJOR 0
#define DLCRT_VERSION_MINOR 1
#define DLCRT_VERSION_PATCH 0

/* Version of the library that is linked: major * 1000000 + minor * 1000 + patch. */
DLCRT_API uint32_t dlcrt_version(void);
/* The same as text, e.g. "0.1.0". */
DLCRT_API const char *dlcrt_version_string(void);

/* ------------------------------------------------------------------------------------------------ errors */
/* The numbers are stable: codes are only ever added. */
enum dlcrt_status {
  DLCRT_OK = 0,
  DLCRT_ERROR_INVALID_ARGUMENT = 1,  /* NULL where it may not be, an index out of range, a struct_size that is too small */
  DLCRT_ERROR_OUT_OF_MEMORY = 2,     /* the allocator or the operating system gave no memory */
  DLCRT_ERROR_IO = 3,                /* a file cannot be opened, read or mapped */
  DLCRT_ERROR_BAD_MODULE = 4,        /* not a module, truncated, damaged, or inconsistent */
  DLCRT_ERROR_VERSION = 5,           /* a module that needs a newer runtime */
  DLCRT_ERROR_NOT_FOUND = 6,         /* no function, variant, input, output, state or host function of this name */
  DLCRT_ERROR_NO_VARIANT = 7,        /* no variant fits this machine, or none fits these dims */
  DLCRT_ERROR_DTYPE = 8,             /* element type differs from the signature's */
  DLCRT_ERROR_SHAPE = 9,             /* rank or dims differ from the signature, or break what it promises */
  DLCRT_ERROR_NOT_BOUND = 10,        /* an input that is needed was not bound */
  DLCRT_ERROR_CAPACITY = 11,         /* a bound tensor has fewer bytes than its dims need */
  DLCRT_ERROR_ARENA_LIMIT = 12,      /* the run would need more than dlcrt_instance_options::arena_limit */
  DLCRT_ERROR_CHECK = 13,            /* a check of the model failed on these inputs; the message says which */
  DLCRT_ERROR_OVERFLOW = 14,         /* a dimension does not fit into int64 or is negative */
  DLCRT_ERROR_CANCELLED = 15,        /* dlcrt_run_options::cancel became nonzero */
  DLCRT_ERROR_DEADLINE = 16,         /* dlcrt_run_options::deadline_ns passed */
  DLCRT_ERROR_DEVICE = 17,           /* a device reported a fault, or memory of the wrong device was given */
  DLCRT_ERROR_HOST_FUNCTION = 18,    /* a host function reported a fault */
  DLCRT_ERROR_UNSUPPORTED = 19,      /* declared in this header, but this version of the runtime does not do it */
  DLCRT_ERROR_CONSTANT_DAMAGED = 20, /* the bytes of a constant do not have the hash they should have */
  DLCRT_ERROR_BUSY = 21              /* the instance is in use by another thread */
};

/* Name of a code, e.g. "DLCRT_ERROR_SHAPE"; "unknown" for other numbers. */
DLCRT_API const char *dlcrt_status_name(int32_t status);

#define DLCRT_ERROR_MESSAGE_BYTES 504
/* Owned by the caller, one per call (or per thread): the runtime keeps no "last error". */
struct dlcrt_error {
  uint32_t struct_size;
  int32_t code;                            /* enum dlcrt_status */
  char message[DLCRT_ERROR_MESSAGE_BYTES]; /* one line without a full stop; cut to fit, always terminated */
};

/* ------------------------------------------------------------------------------------------------ tensors */
/* Numbers of onnx.TensorProto.DataType. */
enum dlcrt_dtype {
  DLCRT_DTYPE_UNDEFINED = 0,
  DLCRT_DTYPE_FLOAT32 = 1,
  DLCRT_DTYPE_UINT8 = 2,
  DLCRT_DTYPE_INT8 = 3,
  DLCRT_DTYPE_UINT16 = 4,
  DLCRT_DTYPE_INT16 = 5,
  DLCRT_DTYPE_INT32 = 6,
  DLCRT_DTYPE_INT64 = 7,
  DLCRT_DTYPE_STRING = 8, /* elements are struct dlcrt_string */
  DLCRT_DTYPE_BOOL = 9,   /* one byte, 0 or 1 */
  DLCRT_DTYPE_FLOAT16 = 10,
  DLCRT_DTYPE_FLOAT64 = 11,
  DLCRT_DTYPE_UINT32 = 12,
  DLCRT_DTYPE_UINT64 = 13,
  DLCRT_DTYPE_COMPLEX64 = 14,
  DLCRT_DTYPE_COMPLEX128 = 15,
  DLCRT_DTYPE_BFLOAT16 = 16,
  DLCRT_DTYPE_FLOAT8E4M3FN = 17,
  DLCRT_DTYPE_FLOAT8E4M3FNUZ = 18,
  DLCRT_DTYPE_FLOAT8E5M2 = 19,
  DLCRT_DTYPE_FLOAT8E5M2FNUZ = 20,
  DLCRT_DTYPE_UINT4 = 21, /* 4-bit and 2-bit types are packed, the first element in the lowest bits of a byte */
  DLCRT_DTYPE_INT4 = 22,
  DLCRT_DTYPE_FLOAT4E2M1 = 23,
  DLCRT_DTYPE_FLOAT8E8M0 = 24,
  DLCRT_DTYPE_UINT2 = 25,
  DLCRT_DTYPE_INT2 = 26
};

/* Bits of one element (2, 4, 8, ... 128); 128 for strings; 0 for UNDEFINED and unknown numbers. */
DLCRT_API uint32_t dlcrt_dtype_bits(int32_t dtype);
/* Short name as messages spell it, e.g. "f32", "i64", "bool", "f8e4m3fn"; "unknown" for unknown numbers. */
DLCRT_API const char *dlcrt_dtype_name(int32_t dtype);

/* Element of a string tensor; not NUL-terminated. */
struct dlcrt_string {
  const char *data;
  uint64_t bytes;
};

/* Kinds of memory (enum dlcrt_device_kind of format.h). The numbers of CPU and CUDA are DLPack's kDLCPU and kDLCUDA. */
#define DLCRT_MEMORY_CPU 1
#define DLCRT_MEMORY_CUDA 2
#define DLCRT_MEMORY_HOST_CALLBACKS 3 /* a device that the application brings: dlcrt_device_factory */

/* A view of memory that somebody else owns. Convertible to and from a DLTensor without a copy: data, byte_offset, dims
 * (shape) and strides mean the same as there. */
struct dlcrt_tensor {
  uint32_t struct_size;
  int32_t dtype; /* enum dlcrt_dtype */
  void *data;    /* inputs are never written through it */
  uint32_t rank; /* <= 32 */
  uint32_t reserved;
  int64_t *dims;          /* rank entries; for a bound output the runtime writes them */
  const int64_t *strides; /* rank entries, in elements, may be negative or 0; NULL = dense row-major */
  int32_t device_kind;    /* DLCRT_MEMORY_*; 0 is taken as CPU */
  int32_t device_index;   /* number of the device among its kind */
  uint64_t byte_offset;   /* the first element is at (char *)data + byte_offset */
  uint64_t capacity;      /* bytes from there on that may be used; for a dense input 0 = enough for its dims */
};

/* Bytes of a dense tensor of this type and dims; UINT64_MAX if that does not fit or the dtype is unknown. */
DLCRT_API uint64_t dlcrt_tensor_bytes(int32_t dtype, uint32_t rank, const int64_t *dims);

/* ------------------------------------------------------------------------------------------------ modules */
struct dlcrt_module;   /* a checked, mapped module; counted: instances keep it alive */
struct dlcrt_instance; /* one execution context */
struct dlcrt_state;    /* what instances remember from run to run */
struct dlcrt_object;   /* a sequence or an optional */

#define DLCRT_NO_INDEX 0xffffffffu

#define DLCRT_MODULE_READ_CONSTANTS 1u   /* read the constants into memory now instead of paging them in when used */
#define DLCRT_MODULE_VERIFY_CONSTANTS 2u /* as if dlcrt_module_verify was called */

struct dlcrt_module_options {
  uint32_t struct_size;
  uint32_t flags;   /* DLCRT_MODULE_* */
  const char *name; /* how messages call the module; NULL = the path, or "module" for one in memory */
};

/* Maps the file and checks header, hashes, signatures and plans (time grows with those, not with the weights).
 * The file must not be changed while the module is open; replace modules by renaming a new file over the old one.
 * `options` may be NULL. On success *module is owned by the caller: dlcrt_module_close. */
DLCRT_API enum dlcrt_status dlcrt_module_open_file(const char *path, const struct dlcrt_module_options *options,
                                                   struct dlcrt_module **module, struct dlcrt_error *error);

/* The same for a module in memory. Code is copied to executable pages; everything else is used in place, so `data`, aligned
 * to 64 bytes or it is copied, has to stay unchanged until the last instance and the module are gone. */
DLCRT_API enum dlcrt_status dlcrt_module_open_memory(const void *data, uint64_t bytes,
                                                     const struct dlcrt_module_options *options,
                                                     struct dlcrt_module **module, struct dlcrt_error *error);

#define DLCRT_STATIC_ALIGNMENT 4096

/* A module that is part of the program: `dlc compile MODEL.onnx -o X.a` makes one, and X.h that declares it. It is the bytes of a module
 * file whose last section is CODE, in two pieces. */
struct dlcrt_static_module {
  uint32_t struct_size;
  uint32_t reserved;   /* 0 */
  const char *name;    /* how messages call it where the options do not say */
  const void *data;    /* all that comes before CODE; need not be writable; aligned to DLCRT_STATIC_ALIGNMENT */
  uint64_t data_bytes; /* without the padding before CODE */
  const void *code;    /* CODE, executable where it lies; likewise aligned. NULL if there are no bytes of it */
  uint64_t code_bytes;
};

/* Checks it as a file is checked, and uses it where it is: opens no file, makes no memory executable, copies nothing. Both pieces have to
 * stay until the last instance and the module are gone. DLCRT_MODULE_READ_CONSTANTS changes nothing. */
DLCRT_API enum dlcrt_status dlcrt_module_open_static(const struct dlcrt_static_module *data,
                                                     const struct dlcrt_module_options *options,
                                                     struct dlcrt_module **module, struct dlcrt_error *error);

/* Gives up the caller's hold. The module goes when its last instance is destroyed. NULL is allowed. */
DLCRT_API void dlcrt_module_close(struct dlcrt_module *module);

/* Reads all constants and compares their hashes: DLCRT_ERROR_CONSTANT_DAMAGED names the first bad block. */
DLCRT_API enum dlcrt_status dlcrt_module_verify(const struct dlcrt_module *module, struct dlcrt_error *error);

struct dlcrt_module_info {
  uint32_t struct_size;
  uint16_t format_major, format_minor;
  const char *producer; /* e.g. "dlc 0.1.0" */
  uint32_t function_count;
  uint32_t variant_count;
  uint32_t state_count;
  uint32_t state_symbol_count; /* the capacity, number 0, and the dims to be given when a state is created */
  uint64_t file_bytes;
  uint64_t weight_bytes; /* of all constants */
  uint64_t code_bytes;   /* of all code images */
};
DLCRT_API enum dlcrt_status dlcrt_module_get_info(const struct dlcrt_module *module, struct dlcrt_module_info *info,
                                                  struct dlcrt_error *error);

/* ------------------------------------------------------------------------------------------------ signatures */
/* Functions are numbered 0 ... function_count - 1, their inputs, outputs and symbols likewise. */
struct dlcrt_function_info {
  uint32_t struct_size;
  uint32_t reserved;
  const char *name;
  uint32_t input_count, output_count, symbol_count;
  uint32_t state_count;     /* how many of the module's states it works on; if any, an instance of it needs a state */
  uint32_t length_symbol;   /* the symbol that is the states' length before a run; DLCRT_NO_INDEX without states */
  uint32_t capacity_symbol; /* that which is their capacity, or DLCRT_NO_INDEX where the function does not ask for it */
};
DLCRT_API enum dlcrt_status dlcrt_module_function(const struct dlcrt_module *module, uint32_t function,
                                                  struct dlcrt_function_info *info, struct dlcrt_error *error);
/* Number of the function, state, input or output with this name, or DLCRT_NO_INDEX. */
DLCRT_API uint32_t dlcrt_module_find_function(const struct dlcrt_module *module, const char *name);
DLCRT_API uint32_t dlcrt_module_find_state(const struct dlcrt_module *module, const char *name);
DLCRT_API uint32_t dlcrt_module_find_input(const struct dlcrt_module *module, uint32_t function, const char *name);
DLCRT_API uint32_t dlcrt_module_find_output(const struct dlcrt_module *module, uint32_t function, const char *name);

/* A named dimension. Equal dims of inputs and outputs are the same symbol. */
struct dlcrt_symbol_info {
  uint32_t struct_size;
  uint32_t anonymous; /* 1: the name is the compiler's, not the model's */
  const char *name;
  int64_t min, max; /* inclusive */
  int64_t divisor;  /* the value is a multiple of it; 1 = any */
};
DLCRT_API enum dlcrt_status dlcrt_module_symbol(const struct dlcrt_module *module, uint32_t function, uint32_t symbol,
                                                struct dlcrt_symbol_info *info, struct dlcrt_error *error);

#define DLCRT_INFO_OPTIONAL 1u /* input: may stay unbound */
#define DLCRT_INFO_LATE 2u     /* output: some dims are known only when the run computes them */
#define DLCRT_INFO_DEFAULT 4u  /* input: has a default value, used when nothing is bound */

struct dlcrt_value_info {
  uint32_t struct_size;
  int32_t dtype;
  const char *name;
  uint32_t rank;
  uint32_t flags; /* DLCRT_INFO_* */
  uint32_t alias; /* output: the input in whose memory it may live (bind both to one buffer for that); else NO_INDEX */
  uint32_t reserved;
};
DLCRT_API enum dlcrt_status dlcrt_module_input(const struct dlcrt_module *module, uint32_t function, uint32_t input,
                                               struct dlcrt_value_info *info, struct dlcrt_error *error);
DLCRT_API enum dlcrt_status dlcrt_module_output(const struct dlcrt_module *module, uint32_t function, uint32_t output,
                                                struct dlcrt_value_info *info, struct dlcrt_error *error);

enum dlcrt_dim_kind {
  DLCRT_DIM_CONSTANT = 0,   /* `value` */
  DLCRT_DIM_SYMBOL = 1,     /* number `symbol` of the function */
  DLCRT_DIM_EXPRESSION = 2, /* computed from symbols; see dlcrt_module_dim_text */
  DLCRT_DIM_LATE = 3        /* known only after the run */
};
struct dlcrt_dim_info {
  uint32_t struct_size;
  int32_t kind;    /* enum dlcrt_dim_kind */
  int64_t value;   /* CONSTANT */
  uint32_t symbol; /* SYMBOL, else DLCRT_NO_INDEX */
  uint32_t reserved;
};
#define DLCRT_INPUT 0
#define DLCRT_OUTPUT 1
/* Dimension `dim` of input (direction DLCRT_INPUT) or output number `value`. */
DLCRT_API enum dlcrt_status dlcrt_module_dim(const struct dlcrt_module *module, uint32_t function, uint32_t direction,
                                             uint32_t value, uint32_t dim, struct dlcrt_dim_info *info,
                                             struct dlcrt_error *error);
/* Writes the dimension as text, e.g. "8", "seq", "floor((seq + 1) / 2)", "?" for a late one, into `text` and returns its
 * length as snprintf does; 0 for a wrong index. */
DLCRT_API size_t dlcrt_module_dim_text(const struct dlcrt_module *module, uint32_t function, uint32_t direction,
                                       uint32_t value, uint32_t dim, char *text, size_t text_bytes);

/* The default value of an input, as a view into the module that must not be written to. `dims` gets its dims and has room
 * for its rank. DLCRT_ERROR_NOT_FOUND if it has none. */
DLCRT_API enum dlcrt_status dlcrt_module_input_default(const struct dlcrt_module *module, uint32_t function,
                                                       uint32_t input, struct dlcrt_tensor *tensor, int64_t *dims,
                                                       struct dlcrt_error *error);

/* Dims and bytes of an input or output for given values of the function's symbols. A late dimension is written as -1, and
 * then *bytes is UINT64_MAX: no bound is known. `dims` (room for the value's rank) and `bytes` may be NULL. */
DLCRT_API enum dlcrt_status dlcrt_module_value_dims(const struct dlcrt_module *module, uint32_t function,
                                                    uint32_t direction, uint32_t value, const int64_t *symbols,
                                                    uint32_t symbol_count, int64_t *dims, uint64_t *bytes,
                                                    struct dlcrt_error *error);

/* A tensor that outlives runs, such as the keys of one layer of a decoder; see "state" below. Along `axis` it has room for as many
 * entries as the capacity says. */
struct dlcrt_state_info {
  uint32_t struct_size;
  int32_t dtype;
  const char *name;
  uint32_t rank, axis;
};
DLCRT_API enum dlcrt_status dlcrt_module_state(const struct dlcrt_module *module, uint32_t state,
                                               struct dlcrt_state_info *info, struct dlcrt_error *error);
/* A symbol of the states' dims; number 0 is the capacity. Functions have symbols of the same names for them. */
DLCRT_API enum dlcrt_status dlcrt_module_state_symbol(const struct dlcrt_module *module, uint32_t symbol,
                                                      struct dlcrt_symbol_info *info, struct dlcrt_error *error);
/* dlcrt_module_dim_text of a dim of a state. */
DLCRT_API size_t dlcrt_module_state_dim_text(const struct dlcrt_module *module, uint32_t state, uint32_t dim, char *text,
                                             size_t text_bytes);

/* ------------------------------------------------------------------------------------------------ variants */
/* One compilation of one function. At each run the supported variant with the highest priority whose guard holds for the
 * dims is taken; of equal ones the later. */
struct dlcrt_variant_info {
  uint32_t struct_size;
  uint32_t function;
  const char *target; /* e.g. "cpu:x86-64-v2" */
  int32_t priority;
  uint32_t device_kind; /* kind of the second device it needs, 0 = none */
  uint32_t guarded;     /* 1: serves only some dims; see dlcrt_module_variant_guard_text */
  uint32_t kernel_count;
  uint64_t code_bytes;
  uint64_t fixed_arena_bytes; /* of slots whose place is known at compile time */
};
DLCRT_API enum dlcrt_status dlcrt_module_variant(const struct dlcrt_module *module, uint32_t variant,
                                                 struct dlcrt_variant_info *info, struct dlcrt_error *error);
/* DLCRT_OK if this machine can run the variant; else DLCRT_ERROR_NO_VARIANT, and the error's message is the reason, e.g.
 * "the processor lacks avx512f, avx512bw". Devices that an application brings are not considered here. */
DLCRT_API enum dlcrt_status dlcrt_module_variant_supported(const struct dlcrt_module *module, uint32_t variant,
                                                           struct dlcrt_error *error);
/* The guard as text, e.g. "seq == 128"; as dlcrt_module_dim_text. "" if there is none. */
DLCRT_API size_t dlcrt_module_variant_guard_text(const struct dlcrt_module *module, uint32_t variant, char *text,
                                                 size_t text_bytes);
/* What the fixed and symbolic slots of a variant take, all devices together. Late slots are in neither. */
struct dlcrt_arena_info {
  uint32_t struct_size;
  uint32_t slot_count;
  uint64_t bytes;             /* of the arena */
  uint64_t lower_bound_bytes; /* of the slots that live at once, where they are most: no placement takes less */
};
/* For given values of the symbols of the variant's function. Guards and ranges are not looked at; a slot whose size these values do
 * not give has 0 bytes. DLCRT_ERROR_OVERFLOW: a size does not fit into 64 bits, or no arena holds them all. */
DLCRT_API enum dlcrt_status dlcrt_module_variant_arena(const struct dlcrt_module *module, uint32_t variant,
                                                       const int64_t *symbols, uint32_t symbol_count,
                                                       struct dlcrt_arena_info *info, struct dlcrt_error *error);
/* Names of the processor features that this machine has, separated by ','; as dlcrt_module_dim_text. */
DLCRT_API size_t dlcrt_cpu_features_text(char *text, size_t text_bytes);

/* ------------------------------------------------------------------------------------------------ callbacks */
/* Memory of an instance. `alignment` is a power of two <= 4096. Must be thread-safe when instances share it. */
struct dlcrt_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void *ctx;
  void *(*allocate)(void *ctx, uint64_t bytes, uint64_t alignment); /* NULL = no memory */
  void (*release)(void *ctx, void *memory, uint64_t bytes);         /* never called with NULL */
};

/* Calls task(task_ctx, i) once for every i in [0, count), on any threads and in any order, at once or one after the other,
 * and returns when all have returned; what they wrote is then visible to the caller. count <= the instance's `workers`.
 * It may be called from several threads at once if instances on several threads use it. */
typedef void (*dlcrt_task_fn)(void *task_ctx, uint32_t index);
typedef void (*dlcrt_parallel_for_fn)(void *ctx, uint32_t count, dlcrt_task_fn task, void *task_ctx);

/* A function outside the module which a model calls: a custom operator. */
struct dlcrt_host_call {
  uint32_t struct_size;
  uint32_t version;
  const char *domain, *name;
  const char *attributes; /* JSON object, "" = none */
  uint32_t operand_count, result_count;
  const struct dlcrt_tensor *operands; /* dense */
  struct dlcrt_tensor *results;        /* dense, dims given; write to their memory only */
};
typedef enum dlcrt_status (*dlcrt_host_fn)(void *ctx, const struct dlcrt_host_call *call, struct dlcrt_error *error);
struct dlcrt_host_function {
  uint32_t struct_size;
  uint32_t version; /* of the operator; must be equal to the model's */
  const char *domain, *name;
  dlcrt_host_fn function;
  void *ctx;
};

/* One launch on a device. */
struct dlcrt_device_launch {
  uint32_t struct_size;
  uint32_t kernel;         /* number inside the variant */
  const char *kernel_name;
  void *image;             /* what load_image returned */
  uint64_t entry;          /* offset of the kernel in the image */
  uint32_t tiles;          /* > 0 */
  uint32_t buffer_count, scalar_count;
  uint32_t reserved;
  uint64_t scratch_bytes;  /* per worker */
  void *const *buffers;    /* addresses in the device's memory */
  const int64_t *scalars;
};

/* A device as a struct of functions. `stream` is dlcrt_run_options::stream. Work on one stream is done in order, and may
 * still be going on when a function returns, but upload and download are done with the host's memory by then. `wait` ends
 * when all of it is done. A launch or `wait` reports what kernels found out about their data. Memory addresses are the device's: the
 * runtime adds offsets to them and looks at nothing behind them. `fill` repeats a pattern of 1, 2, 4, 8 or 16 bytes. */
struct dlcrt_device {
  uint32_t struct_size;
  int32_t kind, index; /* what the tensors' device_kind and device_index say */
  uint32_t reserved;
  void *ctx;
  enum dlcrt_status (*load_image)(void *ctx, const void *code, uint64_t bytes, void **image, struct dlcrt_error *error);
  void (*unload_image)(void *ctx, void *image);
  enum dlcrt_status (*allocate)(void *ctx, uint64_t bytes, void **memory, struct dlcrt_error *error);
  void (*release)(void *ctx, void *memory, uint64_t bytes);
  enum dlcrt_status (*upload)(void *ctx, void *stream, void *to, const void *from_host, uint64_t bytes,
                              struct dlcrt_error *error);
  enum dlcrt_status (*download)(void *ctx, void *stream, void *to_host, const void *from, uint64_t bytes,
                                struct dlcrt_error *error);
  enum dlcrt_status (*copy)(void *ctx, void *stream, void *to, const void *from, uint64_t bytes,
                            struct dlcrt_error *error);
  enum dlcrt_status (*fill)(void *ctx, void *stream, void *to, uint64_t bytes, const void *pattern,
                            uint32_t pattern_bytes, struct dlcrt_error *error);
  enum dlcrt_status (*launch)(void *ctx, void *stream, const struct dlcrt_device_launch *launch,
                              struct dlcrt_error *error);
  enum dlcrt_status (*wait)(void *ctx, void *stream, struct dlcrt_error *error);
  void (*destroy)(void *ctx);
};
/* Makes the second device of an instance whose variant asks for this kind. `device` comes zeroed with struct_size set. */
struct dlcrt_device_factory {
  uint32_t struct_size;
  int32_t kind; /* DLCRT_MEMORY_* */
  void *ctx;
  enum dlcrt_status (*create)(void *ctx, struct dlcrt_device *device, struct dlcrt_error *error);
};

/* ------------------------------------------------------------------------------------------------ instances */
struct dlcrt_instance_options {
  uint32_t struct_size;
  uint32_t workers;      /* most tasks that parallel_for is asked for at once; without parallel_for 1 */
  const char *function;  /* NULL = the only one, or "main" */
  const char *variant;   /* a target: only its variants are taken, an error if this machine cannot run them; NULL = best */
  uint64_t arena_limit;  /* most bytes of arena, late and output memory together; 0 = no limit */
  const struct dlcrt_allocator *allocator; /* copied; NULL = malloc */
  dlcrt_parallel_for_fn parallel_for;      /* NULL = everything on the thread that calls run */
  void *parallel_ctx;
  const struct dlcrt_host_function *host_functions; /* copied; the strings must live as long as the instance */
  uint32_t host_function_count;
  uint32_t device_factory_count;
  const struct dlcrt_device_factory *device_factories; /* copied */
};

/* `options` may be NULL. On success *instance is owned by the caller: dlcrt_instance_destroy. */
DLCRT_API enum dlcrt_status dlcrt_instance_create(struct dlcrt_module *module,
                                                  const struct dlcrt_instance_options *options,
                                                  struct dlcrt_instance **instance, struct dlcrt_error *error);
/* NULL is allowed. What was bound is not touched. Outputs that the runtime owned go. */
DLCRT_API void dlcrt_instance_destroy(struct dlcrt_instance *instance);

/* The module's number of the function that this instance computes. */
DLCRT_API uint32_t dlcrt_instance_function(const struct dlcrt_instance *instance);
/* The module's number of the variant that the last run took; before the first, of the one with the highest priority. */
DLCRT_API uint32_t dlcrt_instance_variant(const struct dlcrt_instance *instance);

/* Binds memory that the caller owns and keeps until it is bound anew, unbound, or the instance is destroyed. The struct,
 * dims and strides are copied. Element type, rank and constant dims are checked now, the rest when all is known, in run.
 * The contents may change between runs without binding again. A dense tensor aligned to its element's size is read in
 * place; others are copied into memory of the instance at each run. Sub-byte types must be dense. */
DLCRT_API enum dlcrt_status dlcrt_instance_bind_input(struct dlcrt_instance *instance, uint32_t input,
                                                      const struct dlcrt_tensor *tensor, struct dlcrt_error *error);
DLCRT_API enum dlcrt_status dlcrt_instance_unbind_input(struct dlcrt_instance *instance, uint32_t input,
                                                        struct dlcrt_error *error);

/* Binds memory for an output: dense or strided, `capacity` bytes (required). Each run writes the result's dims to the
 * caller's `dims` array (rank entries, kept by pointer; what it holds before does not matter). If capacity is too small
 * the run fails with DLCRT_ERROR_CAPACITY. With strides, capacity must cover the last element. */
DLCRT_API enum dlcrt_status dlcrt_instance_bind_output(struct dlcrt_instance *instance, uint32_t output,
                                                       const struct dlcrt_tensor *tensor, struct dlcrt_error *error);
/* Asks for an output's memory in each run, when its dims are known: `tensor` has dtype, rank, dims and, in capacity, the
 * bytes that are needed; the callback returns memory in host memory, aligned to the element's size, or NULL to fail. */
typedef void *(*dlcrt_output_fn)(void *ctx, uint32_t output, const struct dlcrt_tensor *tensor);
DLCRT_API enum dlcrt_status dlcrt_instance_bind_output_callback(struct dlcrt_instance *instance, uint32_t output,
                                                                dlcrt_output_fn callback, void *ctx,
                                                                struct dlcrt_error *error);
/* The output is the runtime's again, as at the beginning. */
DLCRT_API enum dlcrt_status dlcrt_instance_unbind_output(struct dlcrt_instance *instance, uint32_t output,
                                                         struct dlcrt_error *error);

/* dlcrt_module_value_dims of an output for the inputs that are bound now. */
DLCRT_API enum dlcrt_status dlcrt_instance_output_bound(struct dlcrt_instance *instance, uint32_t output, int64_t *dims,
                                                        uint64_t *bytes, struct dlcrt_error *error);

enum dlcrt_trace_kind { DLCRT_TRACE_LAUNCH = 0, DLCRT_TRACE_COPY = 1, DLCRT_TRACE_FILL = 2, DLCRT_TRACE_CALL = 3 };
/* Reported after the work was issued (on an asynchronous device: not necessarily done). */
struct dlcrt_trace_event {
  uint32_t struct_size;
  int32_t kind;           /* enum dlcrt_trace_kind */
  const char *name;       /* of the kernel or host function; "" for others */
  const char *node_names; /* original nodes, separated by '\n' ('#' and its number for one without a name); "" where the module does
                             not say */
  const char *op_types;   /* in the same order */
  uint32_t stage;
  uint32_t device;           /* 0 or 1 */
  uint64_t tiles;            /* LAUNCH */
  uint64_t bytes;            /* COPY, FILL: bytes written; LAUNCH: read and written, as the compiler counts them */
  uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
  uint64_t flops;            /* LAUNCH: arithmetic operations; 0 where the module does not say */
};
typedef void (*dlcrt_trace_fn)(void *ctx, const struct dlcrt_trace_event *event);

struct dlcrt_run_options {
  uint32_t struct_size;
  uint32_t reserved;
  void *stream;           /* for the second device: e.g. a CUstream; NULL = its default, and run waits for the results */
  const uint32_t *cancel; /* another thread stores nonzero there (atomically) to stop the run; or NULL. The run notices
                             between tiles, within about a millisecond or the time of one tile, whichever is longer. */
  uint64_t deadline_ns;   /* CLOCK_MONOTONIC time at which the run gives up, as promptly; 0 = none */
  dlcrt_trace_fn trace;   /* called on the thread that runs; or NULL */
  void *trace_ctx;
};

/* Computes. `options` may be NULL. After a failure the contents of outputs are undefined and a state is as it was before, and
 * the instance stays usable. Kernels run with the default floating-point state (round to nearest, no flush to zero, no traps);
 * the caller's is restored. */
DLCRT_API enum dlcrt_status dlcrt_instance_run(struct dlcrt_instance *instance, const struct dlcrt_run_options *options,
                                               struct dlcrt_error *error);

/* The result of the last run, wherever it lives. `tensor`: data, dtype, rank, dims, device and capacity (its bytes) are
 * written; memory and dims are the instance's (or what was bound) and valid until the next run, unbind or destroy. */
DLCRT_API enum dlcrt_status dlcrt_instance_output(struct dlcrt_instance *instance, uint32_t output,
                                                  struct dlcrt_tensor *tensor, struct dlcrt_error *error);

/* Attaches a state of the same module, which the instance then holds too; NULL detaches the present one. A function that works on
 * states needs one to run, and others take none. */
DLCRT_API enum dlcrt_status dlcrt_instance_set_state(struct dlcrt_instance *instance, struct dlcrt_state *state,
                                                     struct dlcrt_error *error);

struct dlcrt_instance_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t arena_bytes;        /* of the fixed and symbolic slots, all devices, as allocated now */
  uint64_t late_bytes;         /* of late slots */
  uint64_t output_bytes;       /* of outputs that the runtime owns */
  uint64_t staging_bytes;      /* dense copies of strided or unaligned tensors, copies of constants for other devices */
  uint64_t scratch_bytes;      /* of the kernels, all workers */
  uint64_t state_bytes;        /* of the state that is attached, wherever else it is */
  uint64_t weight_bytes;       /* of the module's constants, shared by its instances */
  uint64_t allocations;        /* calls of the allocator and of device allocation since the instance was created */
  uint64_t runs;               /* that ended with DLCRT_OK */
  uint64_t layouts_computed;   /* times that symbolic slots were placed anew; other runs used a cached placement */
  uint64_t arena_lower_bound_bytes; /* as in dlcrt_arena_info, for the dims of the last run; 0 before the first */
};
DLCRT_API enum dlcrt_status dlcrt_instance_get_statistics(const struct dlcrt_instance *instance,
                                                          struct dlcrt_instance_statistics *statistics,
                                                          struct dlcrt_error *error);

/* Sequences and optionals, and tensors of strings: their place in the API. This version of the runtime answers
 * DLCRT_ERROR_UNSUPPORTED, and says which input or output it is. */
DLCRT_API enum dlcrt_status dlcrt_instance_bind_input_object(struct dlcrt_instance *instance, uint32_t input,
                                                             struct dlcrt_object *object, struct dlcrt_error *error);
DLCRT_API enum dlcrt_status dlcrt_instance_output_object(struct dlcrt_instance *instance, uint32_t output,
                                                         struct dlcrt_object **object, struct dlcrt_error *error);

/* ------------------------------------------------------------------------------------------------ state
 * What is kept from run to run, such as the key-value cache of a decoder: all states of a module together, as one object. They have one
 * length and one capacity. A run reads the entries [0, length) along each state's axis, writes some behind them in place, and, when it
 * succeeds, makes the length longer by what it wrote. A run that fails or is stopped leaves the length, and with it the state, as it was.
 * Instances of several functions of the module (prefill, decode) may be attached to one state; one run uses it at a time, and a second
 * one, or a call meanwhile that changes or looks at it (dlcrt_instance_output_bound does), fails with DLCRT_ERROR_BUSY. */
struct dlcrt_state_options {
  uint32_t struct_size;
  uint32_t dim_count;               /* of the arrays */
  const char *const *dim_names;     /* values for the symbols of the states' dims beside the capacity: */
  const int64_t *dim_values;        /*   every one that dlcrt_module_state_symbol names, such as "batch" */
  int64_t capacity;                 /* entries for which there is memory */
  const struct dlcrt_allocator *allocator; /* copied; NULL = malloc */
};

/* Length 0. On success *state is owned by the caller: dlcrt_state_destroy. The memory is zero. */
DLCRT_API enum dlcrt_status dlcrt_state_create(struct dlcrt_module *module, const struct dlcrt_state_options *options,
                                               struct dlcrt_state **state, struct dlcrt_error *error);
/* Gives up the caller's hold; instances that it is attached to keep it. NULL is allowed. */
DLCRT_API void dlcrt_state_destroy(struct dlcrt_state *state);

/* Entries that are there, entries that there is room for, and bytes of memory; 0 for NULL. Any thread may ask, also during a run, which
 * changes the length only when it has succeeded. */
DLCRT_API int64_t dlcrt_state_length(const struct dlcrt_state *state);
DLCRT_API int64_t dlcrt_state_capacity(const struct dlcrt_state *state);
DLCRT_API uint64_t dlcrt_state_bytes(const struct dlcrt_state *state);

/* Forgets entries from the end (0: all), or counts in what was written behind the present end. */
DLCRT_API enum dlcrt_status dlcrt_state_set_length(struct dlcrt_state *state, int64_t length, struct dlcrt_error *error);
/* Length 0. */
DLCRT_API enum dlcrt_status dlcrt_state_reset(struct dlcrt_state *state, struct dlcrt_error *error);
/* Makes the capacity at least so large, by copying what is there into new memory. Views of the old one end. A negative one is
 * DLCRT_ERROR_INVALID_ARGUMENT. */
DLCRT_API enum dlcrt_status dlcrt_state_grow(struct dlcrt_state *state, int64_t capacity, struct dlcrt_error *error);

/* The entries that are there of state number `index`, in place: `tensor` gets data, dtype, rank, dims and strides, the last two in the
 * caller's arrays of as many entries as the rank. Valid until the next run, set_length, grow or destroy; may be written through. */
DLCRT_API enum dlcrt_status dlcrt_state_view(const struct dlcrt_state *state, uint32_t index, struct dlcrt_tensor *tensor,
                                             int64_t *dims, int64_t *strides, struct dlcrt_error *error);
/* Copies entries [first, first + n) of a state to or from a tensor (of any strides) that has n of them along the state's axis and the
 * state's other dims. What is read must be there; what is written must be within the capacity, and does not change the length. */
DLCRT_API enum dlcrt_status dlcrt_state_read(struct dlcrt_state *state, uint32_t index, int64_t first,
                                             const struct dlcrt_tensor *tensor, struct dlcrt_error *error);
DLCRT_API enum dlcrt_status dlcrt_state_write(struct dlcrt_state *state, uint32_t index, int64_t first,
                                              const struct dlcrt_tensor *tensor, struct dlcrt_error *error);

/* ------------------------------------------------------------------------------------------------ thread pool
 * A library of its own, libdlcrt_pool.a (libdlcrt.so contains it). Any number of instances may use one pool, also at once.
 * The thread that calls run takes part, so `threads` = 1 starts none. Idle threads sleep. */
struct dlcrt_pool;

/* Threads that this process may run at once: processor affinity and the cgroup's cpu quota considered; at least 1. */
DLCRT_API uint32_t dlcrt_pool_available_threads(void);
/* threads = 0: as many as available. Fewer threads than asked for when the system gives no more. NULL = no memory. */
DLCRT_API struct dlcrt_pool *dlcrt_pool_create(uint32_t threads);
/* No run may be using it. NULL is allowed. */
DLCRT_API void dlcrt_pool_destroy(struct dlcrt_pool *pool);
/* Threads, the caller's included: what to put into dlcrt_instance_options::workers. */
DLCRT_API uint32_t dlcrt_pool_threads(const struct dlcrt_pool *pool);
/* A dlcrt_parallel_for_fn: parallel_for = dlcrt_pool_parallel_for, parallel_ctx = the pool. */
DLCRT_API void dlcrt_pool_parallel_for(void *pool, uint32_t count, dlcrt_task_fn task, void *task_ctx);

#ifdef __cplusplus
}
#endif
#endif
