/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// How functions of the runtime report failure: they return a Status and have written the message to the caller's error
// object. `if (Status status = f(...)) return status;` passes it on, because DLCRT_OK is 0.
#ifndef DLCRT_STATUS_H
#define DLCRT_STATUS_H

#include "dlcrt/runtime.h"

#include <stdarg.h>
#include <string.h>

namespace dlcrt::impl {

using Status = enum dlcrt_status;
using Error = struct dlcrt_error;

/// Writes code and message (as printf) to `error`, which may be null, and returns `code`.
[[gnu::format(printf, 3, 4)]] Status fail(Error *error, Status code, const char *format, ...);
[[gnu::format(printf, 3, 0)]] Status failList(Error *error, Status code, const char *format, va_list arguments);

/// Resets `error` to DLCRT_OK.
Status succeed(Error *error);

/// Puts "PREFIX: " before the message of a failed call and returns `status`.
Status withPrefix(Error *error, Status status, const char *prefix);

Status failOutOfMemory(Error *error, const char *what, uint64_t bytes);

/// Copies a struct of the caller's into `out`, which has all fields that this version knows. The first version of every
/// struct has the fields it has now, so a smaller struct_size is a mistake.
template <typename T> Status readStruct(const T *in, T &out, const char *name, Error *error) {
  if (!in)
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s is NULL", name);
  if (in->struct_size < sizeof(T))
    return fail(error, DLCRT_ERROR_INVALID_ARGUMENT, "%s: struct_size is %u, but has to be at least %u", name,
                in->struct_size, unsigned(sizeof(T)));
  memcpy(&out, in, sizeof(T));
  return DLCRT_OK;
}

/// Checks a struct that the runtime is to fill.
template <typename T> Status checkStruct(const T *out, const char *name, Error *error) {
  T ignored;
  return readStruct(out, ignored, name, error);
}

/// Fills a struct of the caller's, keeping its struct_size.
template <typename T> void writeStruct(T *out, const T &value) {
  uint32_t size = out->struct_size;
  memcpy(out, &value, sizeof(T));
  out->struct_size = size;
}

} // namespace dlcrt::impl
#endif
