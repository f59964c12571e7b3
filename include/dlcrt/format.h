/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The bytes of a module file (.dlcm). docs/module-format.md explains the reasons; this header is the definition.
 *
 * Everything is little-endian. All structs below are laid out as C does on LP64 targets, contain no implicit padding and
 * are aligned to 8 bytes in the file. Fields called `reserved` and flags without a meaning are 0. Offsets are in bytes; an
 * offset inside a section counts from the section's start.
 * A "string" is an offset into STRINGS, where a NUL-terminated UTF-8 text stands; offset 0 is the empty string.
 * A reader must check every offset, count, index and register number before it uses one; a module whose hash matches may
 * still have been written by an adversary.
 *
 * File = dlcrt_file_header, dlcrt_section[section_count], then the sections, each at an offset that is a multiple of its
 * alignment (CODE: 64 KiB, CONST: 4 KiB, the others 8).
 */
#ifndef DLCRT_FORMAT_H
#define DLCRT_FORMAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLCRT_FORMAT_MAGIC "DLCM\r\n\x1a\n" /* 8 bytes, no NUL */
#define DLCRT_FORMAT_MAJOR 0                /* another major is refused */
#define DLCRT_FORMAT_MINOR 2                /* so is another minor, as long as the major is 0 */
#define DLCRT_CODE_ALIGNMENT 65536
#define DLCRT_CONST_ALIGNMENT 4096
#define DLCRT_CONST_HASH_BLOCK 1048576
#define DLCRT_NONE 0xffffffffu /* "no such index" in every u32 index field */
#define DLCRT_MAX_RANK 32

struct dlcrt_file_header {
  uint8_t magic[8];
  uint16_t major, minor;
  uint32_t section_count;
  uint64_t file_bytes;  /* size of the whole file; a shorter file is truncated, a longer one is refused */
  uint64_t header_hash; /* XXH64, seed 0, of the section table, whose hashes cover the rest */
  uint32_t producer;    /* string: compiler name and version, e.g. "dlc 0.1.0" */
  uint32_t reserved;
};

enum dlcrt_section_kind {
  DLCRT_SECTION_STRINGS = 1,
  DLCRT_SECTION_FUNCTIONS = 2, /* dlcrt_functions_header */
  DLCRT_SECTION_VARIANTS = 3,  /* dlcrt_variants_header */
  DLCRT_SECTION_PLAN = 4,      /* all plans, one after the other */
  DLCRT_SECTION_CODE = 5,      /* all code images, each at a multiple of 64 KiB */
  DLCRT_SECTION_CONST_TABLE = 6, /* u64 count, dlcrt_constant[count], u64 block_count, u64 XXH64[block_count] of CONST */
  DLCRT_SECTION_CONST = 7,       /* bytes of the constants */
  DLCRT_SECTION_STATE = 8,       /* dlcrt_states_header; not there where no function has state */
  DLCRT_SECTION_DEBUG = 9        /* u64 count, dlcrt_debug_entry[count]; may be stripped */
};

struct dlcrt_section {
  uint32_t kind;
  uint32_t flags;  /* 0 */
  uint64_t offset; /* from the start of the file */
  uint64_t bytes;
  uint64_t hash; /* XXH64, seed 0, of the section's bytes; for CONST 0: it is hashed by blocks in CONST_TABLE */
};

/* ------------------------------------------------------------------------------------------------ expressions
 * A pool is an array of nodes. Operands are indices of earlier nodes of the same pool, so one forward pass evaluates all.
 * Values are int64; a result that does not fit, a division by a number <= 0, or a use of an undefined symbol is a run-time
 * error ("dimension overflow") where it is used, not where it is computed: the unused side of a select may be meaningless.
 * Node i of a plan's pool is i64 register i. The nodes' values always follow from the symbols' present ones. */
enum dlcrt_expr_kind {
  DLCRT_EXPR_CONST = 0,     /* value */
  DLCRT_EXPR_SYMBOL = 1,    /* symbol number `value`: a symbol of the function, or above those a late one of the plan */
  DLCRT_EXPR_ADD = 2,       /* a + b */
  DLCRT_EXPR_MUL = 3,       /* a * b */
  DLCRT_EXPR_FLOORDIV = 4,  /* floor(a / b), b > 0 */
  DLCRT_EXPR_CEILDIV = 5,   /* ceil(a / b), b > 0 */
  DLCRT_EXPR_MOD = 6,       /* a - floor(a / b) * b, b > 0 */
  DLCRT_EXPR_MIN = 7,
  DLCRT_EXPR_MAX = 8,
  DLCRT_EXPR_SELECT_EQ = 9,    /* a == b ? c : d */
  DLCRT_EXPR_SELECT_LT = 10,   /* a < b ? c : d */
  DLCRT_EXPR_SCALED_FLOOR = 11 /* floor(a * s), s = the float64 whose bits are `value` */
};

struct dlcrt_expr_node {
  uint32_t kind;
  uint32_t a, b, c, d; /* operand nodes, DLCRT_NONE where not used */
  uint32_t reserved;
  int64_t value;
};

/* ------------------------------------------------------------------------------------------------ functions */
struct dlcrt_functions_header {
  uint32_t function_count;
  uint32_t symbol_count;
  uint32_t value_count; /* inputs and outputs of all functions */
  uint32_t dim_count;
  uint32_t expr_count; /* pool for dims and guards; its symbols are numbered inside their function */
  uint32_t reserved;
  /* then, in this order: dlcrt_function_desc[], dlcrt_symbol_desc[], dlcrt_value_desc[], dlcrt_expr_node[], uint32_t dims[]
   * (padded to 8 bytes) */
};

struct dlcrt_function_desc {
  uint32_t name; /* string */
  uint32_t first_symbol, symbol_count;
  uint32_t first_input, input_count;   /* in the value table */
  uint32_t first_output, output_count; /* in the value table */
  uint32_t reserved;
};

/* A named dimension. It is bound by the first input dimension that is exactly this symbol; the others must agree. */
struct dlcrt_symbol_desc {
  uint32_t name;  /* string; anonymous dims have names of the compiler's making */
  uint32_t flags; /* DLCRT_SYMBOL_* */
  int64_t min, max; /* inclusive; what the caller promised at compile time, checked at bind */
  int64_t divisor;  /* the value is a multiple of this; 1 = no promise */
};
#define DLCRT_SYMBOL_ANONYMOUS 1u

struct dlcrt_value_desc {
  uint32_t name; /* string */
  uint32_t dtype; /* enum dlcrt_dtype of runtime.h */
  uint32_t rank;
  uint32_t first_dim; /* rank entries of dims[], each a node of the pool, or DLCRT_NONE = known only after the run;
                         first_dim = DLCRT_NONE: none of them is known before */
  uint32_t flags;     /* DLCRT_VALUE_* */
  uint32_t default_constant; /* input: used when none is bound; else DLCRT_NONE */
  uint32_t alias;            /* output: the input, numbered inside the function, whose memory it may share; else DLCRT_NONE */
  uint32_t reserved;
};
#define DLCRT_VALUE_OPTIONAL 1u /* input may stay unbound */
#define DLCRT_VALUE_LATE 2u     /* output whose dims hold late symbols: the memory comes from the runtime */

/* ------------------------------------------------------------------------------------------------ variants */
enum dlcrt_arch { DLCRT_ARCH_X86_64 = 1, DLCRT_ARCH_AARCH64 = 2 };
enum dlcrt_device_kind { DLCRT_DEVICE_CPU = 1, DLCRT_DEVICE_CUDA = 2, DLCRT_DEVICE_HOST_CALLBACKS = 3 };

/* Bits of dlcrt_variant_desc::features[0], x86-64. The runtime offers a variant whose every bit the machine has (the
 * operating system must save the registers too). Append only.   X(bit, NAME, "LLVM feature name") */
#define DLCRT_FOREACH_X86_FEATURE(X)                                                                                   \
  X(0, SSE3, "sse3")                                                                                                   \
  X(1, SSSE3, "ssse3")                                                                                                 \
  X(2, SSE41, "sse4.1")                                                                                                \
  X(3, SSE42, "sse4.2")                                                                                                \
  X(4, POPCNT, "popcnt")                                                                                               \
  X(5, CX16, "cx16")                                                                                                   \
  X(6, AVX, "avx")                                                                                                     \
  X(7, AVX2, "avx2")                                                                                                   \
  X(8, FMA, "fma")                                                                                                     \
  X(9, F16C, "f16c")                                                                                                   \
  X(10, BMI, "bmi")                                                                                                    \
  X(11, BMI2, "bmi2")                                                                                                  \
  X(12, LZCNT, "lzcnt")                                                                                                \
  X(13, MOVBE, "movbe")                                                                                                \
  X(14, AVX512F, "avx512f")                                                                                            \
  X(15, AVX512DQ, "avx512dq")                                                                                          \
  X(16, AVX512BW, "avx512bw")                                                                                          \
  X(17, AVX512VL, "avx512vl")                                                                                          \
  X(18, AVX512CD, "avx512cd")                                                                                          \
  X(19, AVX512VNNI, "avx512vnni")                                                                                      \
  X(20, AVX512BF16, "avx512bf16")                                                                                      \
  X(21, AVX512FP16, "avx512fp16")                                                                                      \
  X(22, AVXVNNI, "avxvnni")                                                                                            \
  X(23, AMX_TILE, "amx-tile")                                                                                          \
  X(24, AMX_INT8, "amx-int8")                                                                                          \
  X(25, AMX_BF16, "amx-bf16")                                                                                          \
  X(26, AVX512VBMI, "avx512vbmi")                                                                                      \
  X(27, AVXVNNIINT8, "avxvnniint8")                                                                                    \
  X(28, AMX_FP16, "amx-fp16")
/* AArch64: LLVM feature names; bit numbers are separate from x86's. */
#define DLCRT_FOREACH_AARCH64_FEATURE(X)                                                                               \
  X(0, NEON, "neon")                                                                                                   \
  X(1, DOTPROD, "dotprod")                                                                                             \
  X(2, FULLFP16, "fullfp16")                                                                                           \
  X(3, BF16, "bf16")                                                                                                   \
  X(4, I8MM, "i8mm")                                                                                                   \
  X(5, SVE, "sve")

struct dlcrt_variants_header {
  uint32_t variant_count;
  uint32_t kernel_count;
  uint32_t import_count; /* numbers of enum dlcrt_import that any kernel calls */
  uint32_t reserved;
  /* then dlcrt_variant_desc[], dlcrt_kernel_desc[], uint32_t imports[] (padded to 8 bytes) */
};

struct dlcrt_variant_desc {
  uint32_t function;
  uint32_t target; /* string as given to --target and resolved, e.g. "cpu:x86-64-v2", "cpu:znver3" */
  uint32_t arch;   /* enum dlcrt_arch of the host code */
  uint32_t device; /* enum dlcrt_device_kind of launches on device 1; DLCRT_NONE when all run on device 0, the CPU */
  uint64_t features[2]; /* [0] CPU bits above; [1] for CUDA: sm as major * 10 + minor */
  uint32_t guard;       /* node of FUNCTIONS' pool: the variant serves only when it is not 0; DLCRT_NONE = always */
  int32_t priority;     /* the highest that fits wins; ties: the later one */
  uint64_t plan_offset, plan_bytes; /* in PLAN */
  uint64_t code_offset, code_bytes; /* in CODE; offset a multiple of DLCRT_CODE_ALIGNMENT */
  uint32_t first_kernel, kernel_count; /* in the kernel table */
};

struct dlcrt_kernel_desc {
  uint32_t name;        /* string */
  uint32_t device;      /* 0 or 1 */
  uint64_t entry;       /* offset of the entry in the variant's code image */
  uint32_t buffer_count, scalar_count;
  uint32_t stack_bytes; /* measured by the compiler */
  uint32_t reserved;
};

/* ------------------------------------------------------------------------------------------------ constants */
struct dlcrt_constant {
  uint64_t offset, bytes; /* in CONST; offset a multiple of 64 */
  uint8_t content[16];    /* first 16 bytes of the BLAKE3 of the bytes, the key by which constants are shared */
};

/* ------------------------------------------------------------------------------------------------ state
 * Tensors that outlive the run: key-value caches. All of a module grow together: along its axis each has room for `capacity` entries,
 * of which the first `length` are there. The section has symbols of its own, numbered from 0; number 0 is the capacity. The others (a
 * batch size) get their values when the states are created. */
struct dlcrt_states_header {
  uint32_t state_count;
  uint32_t symbol_count; /* > 0 where there are states */
  uint32_t function_count; /* that work on states */
  uint32_t expr_count;   /* pool for dims */
  uint32_t dim_count;
  uint32_t number_count;
  /* then, in this order: dlcrt_state_desc[], dlcrt_symbol_desc[], dlcrt_state_function[], dlcrt_expr_node[], uint32_t dims[],
   * uint32_t numbers[] (padded to 8 bytes) */
};

struct dlcrt_state_desc {
  uint32_t name; /* string; no two have the same */
  uint32_t dtype; /* of 8 bits or more */
  uint32_t rank;
  uint32_t first_dim; /* rank entries of dims[], each a node of the pool */
  uint32_t axis;      /* the dim that is symbol 0; the others do not depend on it */
  uint32_t reserved;
};

/* What a function does with states. A run begins with its length symbol set to the states' length and its other symbols to the states'
 * symbols that they are, and makes the states longer by `growth`, which must leave them within their capacity. */
struct dlcrt_state_function {
  uint32_t function;      /* each at most once */
  uint32_t length_symbol; /* of the function */
  uint32_t growth;        /* node of FUNCTIONS' pool; < 0 is an error of the run */
  uint32_t first_symbol;  /* symbol_count entries of numbers[]: for each symbol of the section the function's, or DLCRT_NONE */
  uint32_t first_state, state_count; /* in numbers[]: the states that its plans name; at least one */
};

/* Which nodes of the original model a launch computes. */
struct dlcrt_debug_entry {
  uint32_t node_names; /* string: names separated by '\n'; '#' and its number for a node without one */
  uint32_t op_types;   /* string, in the same order */
};

/* ------------------------------------------------------------------------------------------------ plans */
struct dlcrt_plan_header {
  uint32_t late_symbol_count; /* numbered from the function's symbol_count on */
  uint32_t expr_count;        /* nodes of the pool = i64 registers */
  uint32_t buffer_count;      /* buffer registers */
  uint32_t object_count;      /* host object registers: strings, sequences, optionals */
  uint32_t stage_count;
  uint32_t symbolic_slot_count, late_slot_count;
  uint32_t reserved;
  uint64_t fixed_bytes[2];    /* arena bytes that fixed slots take, for device 0 and device 1 */
  uint64_t instruction_bytes; /* length of the instruction stream */
  /* then dlcrt_expr_node[expr_count], instructions */
};

enum dlcrt_opcode {
  DLCRT_OP_RETURN = 0,
  DLCRT_OP_CONST = 1,
  DLCRT_OP_INPUT = 2,
  DLCRT_OP_OUTPUT = 3,
  DLCRT_OP_SLOT = 4,
  DLCRT_OP_VIEW = 5,
  DLCRT_OP_DIM = 6,
  DLCRT_OP_CHECK = 7,
  DLCRT_OP_READ = 8,
  DLCRT_OP_LAUNCH = 9,
  DLCRT_OP_COPY = 10,
  DLCRT_OP_FILL = 11,
  DLCRT_OP_IF = 12,
  DLCRT_OP_LOOP = 13,
  DLCRT_OP_CALL = 14,
  DLCRT_OP_STAGE = 15,
  DLCRT_OP_STATE = 16
};

/* Every instruction starts with this; `bytes` counts it and is a multiple of 8. RETURN is this alone; it stands once, at the
 * end of the stream, and not in the blocks of IF and LOOP. */
struct dlcrt_instr {
  uint16_t opcode;
  uint16_t flags; /* 0 where nothing else is said */
  uint32_t bytes;
};

struct dlcrt_instr_const { /* buffer = a constant, read-only */
  struct dlcrt_instr head;
  uint32_t buffer, constant;
  uint32_t device, reserved; /* the memory in which the instructions after it want it; uploaded once per instance */
};
struct dlcrt_instr_input { /* buffer = what the caller bound, or the default */
  struct dlcrt_instr head;
  uint32_t buffer, input;
};
struct dlcrt_instr_output { /* buffer = where the output's value belongs. Its dims are the signature's. A late output stands
                               after the READ that defines its dims. Every output stands at least once where control passes. */
  struct dlcrt_instr head;
  uint32_t buffer, output;
  uint32_t bytes_expr, rank; /* rank i64 registers follow: the dims */
  /* uint32_t dims[rank], padded to 8 bytes */
};
enum dlcrt_slot_class {
  DLCRT_SLOT_FIXED = 0,    /* offset known at compile time */
  DLCRT_SLOT_SYMBOLIC = 1, /* size known at bind: placed by the runtime, best fit over the lifetimes, cached per shape */
  DLCRT_SLOT_LATE = 2      /* size known only when this instruction runs: a grow-only region of its own */
};
struct dlcrt_instr_slot {
  struct dlcrt_instr head;
  uint32_t buffer, slot_class;
  uint32_t device, bytes_expr;
  uint32_t first_stage, last_stage; /* inclusive; two slots whose ranges meet never share memory */
  uint64_t offset;                  /* fixed: in the arena, a multiple of 64; else the ordinal among its class, each used once.
                                       bytes_expr holds a late symbol only in a late slot. */
};
struct dlcrt_instr_view { /* buffer = `bytes` bytes of `source` from `offset` on */
  struct dlcrt_instr head;
  uint32_t buffer, source;
  uint32_t offset_expr, bytes_expr;
};
struct dlcrt_instr_dim { /* nodes [first, first + count) are used from here on: all their symbols have values */
  struct dlcrt_instr head;
  uint32_t first, count;
};
struct dlcrt_instr_check { /* fails with `message` unless the condition is not 0; "{0}" and "{1}" in it stand for the values */
  struct dlcrt_instr head;
  uint32_t condition, message;
  uint32_t value0, value1; /* i64 registers or DLCRT_NONE */
};
struct dlcrt_instr_read { /* symbol = element `index` of an integer or bool buffer, waiting for what computes it */
  struct dlcrt_instr head;
  uint32_t buffer, dtype;
  uint32_t index, symbol; /* index: i64 register. symbol: a late one */
};
struct dlcrt_instr_launch {
  struct dlcrt_instr head;
  uint32_t kernel, device;      /* kernel: number inside the variant */
  uint32_t tiles, scratch;      /* i64 registers; scratch may be DLCRT_NONE. 0 tiles: nothing runs */
  uint32_t buffer_count, scalar_count;
  uint32_t debug;          /* entry of DEBUG, or DLCRT_NONE */
  uint32_t flops, traffic; /* i64 registers, or DLCRT_NONE: arithmetic operations; bytes read and written. For reports only */
  uint32_t reserved;       /* 0 */
  /* uint32_t buffers[buffer_count], uint32_t scalars[scalar_count] (i64 registers), padded to 8 bytes */
};
struct dlcrt_instr_copy { /* whole buffers of equal size, on any devices */
  struct dlcrt_instr head;
  uint32_t destination, source;
  uint32_t bytes_expr, reserved;
};
struct dlcrt_instr_fill { /* element i of the buffer = i64 register values[i % count], converted to dtype */
  struct dlcrt_instr head;
  uint32_t buffer, dtype;
  uint32_t elements, count; /* elements: i64 register */
  /* uint32_t values[count], padded to 8 bytes */
};
struct dlcrt_instr_if { /* then-block, else-block follow, as many bytes as said */
  struct dlcrt_instr head;  /* head.bytes counts the blocks too */
  uint32_t condition, reserved;
  uint32_t then_bytes, else_bytes;
};
struct dlcrt_instr_loop { /* while iteration < trip and condition: body; the body may set `condition` by READ */
  struct dlcrt_instr head; /* head.bytes counts the body too */
  uint32_t trip, iteration;  /* trip: i64 register or DLCRT_NONE = no limit. iteration: a late symbol, 0, 1, ... */
  uint32_t condition, body_bytes; /* condition: a late symbol or DLCRT_NONE; set before the loop */
};
struct dlcrt_instr_call { /* a host function registered by (domain, name, version) */
  struct dlcrt_instr head;
  uint32_t domain, name; /* strings */
  uint32_t version, attributes; /* attributes: string, JSON */
  uint32_t operand_count, result_count; /* buffers; dtype, rank and dims of each follow */
  /* then for each operand and result: uint32_t buffer, dtype, rank, dims[rank] (i64 registers); padded to 8 bytes at the end */
};
struct dlcrt_instr_stage { /* the instructions up to the next STAGE are independent of each other */
  struct dlcrt_instr head;
  uint32_t stage, flags; /* flags bit 0: this stage and the next ones with the bit can be captured as one device graph */
};

struct dlcrt_instr_state { /* buffer = all of the memory of a state of the function, on device 0, that instructions may write: nothing but
                              the entries from the state's length on, whose number is the growth */
  struct dlcrt_instr head;
  uint32_t buffer, state; /* state: the module's number */
};

#ifdef __cplusplus
}
#endif
#endif
