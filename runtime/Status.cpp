/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Status.h"

#include <stdio.h>

using namespace dlcrt::impl;

/// Bytes of the message that the caller's version of the struct has room for.
static size_t messageRoom(const Error *error) {
  size_t header = offsetof(Error, message);
  if (error->struct_size <= header)
    return 0;
  size_t room = error->struct_size - header;
  return room < DLCRT_ERROR_MESSAGE_BYTES ? room : size_t(DLCRT_ERROR_MESSAGE_BYTES);
}

Status dlcrt::impl::failList(Error *error, Status code, const char *format, va_list arguments) {
  if (error && messageRoom(error) > 0) {
    error->code = code;
    vsnprintf(error->message, messageRoom(error), format, arguments);
  }
  return code;
}

Status dlcrt::impl::fail(Error *error, Status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  failList(error, code, format, arguments);
  va_end(arguments);
  return code;
}

Status dlcrt::impl::succeed(Error *error) {
  if (error && messageRoom(error) > 0) {
    error->code = DLCRT_OK;
    error->message[0] = 0;
  }
  return DLCRT_OK;
}

Status dlcrt::impl::withPrefix(Error *error, Status status, const char *prefix) {
  if (!error || messageRoom(error) == 0)
    return status;
  size_t room = messageRoom(error), length = strlen(prefix), kept = strnlen(error->message, room - 1);
  if (length + 2 >= room)
    return status;
  if (kept > room - 1 - length - 2)
    kept = room - 1 - length - 2;
  memmove(error->message + length + 2, error->message, kept);
  memcpy(error->message, prefix, length);
  memcpy(error->message + length, ": ", 2);
  error->message[length + 2 + kept] = 0;
  return status;
}

Status dlcrt::impl::failOutOfMemory(Error *error, const char *what, uint64_t bytes) {
  return fail(error, DLCRT_ERROR_OUT_OF_MEMORY, "out of memory: %llu bytes for %s", (unsigned long long)bytes, what);
}

const char *dlcrt_status_name(int32_t status) {
  switch (status) {
#define DLCRT_CASE(NAME)                                                                                               \
  case NAME:                                                                                                           \
    return #NAME;
    DLCRT_CASE(DLCRT_OK)
    DLCRT_CASE(DLCRT_ERROR_INVALID_ARGUMENT)
    DLCRT_CASE(DLCRT_ERROR_OUT_OF_MEMORY)
    DLCRT_CASE(DLCRT_ERROR_IO)
    DLCRT_CASE(DLCRT_ERROR_BAD_MODULE)
    DLCRT_CASE(DLCRT_ERROR_VERSION)
    DLCRT_CASE(DLCRT_ERROR_NOT_FOUND)
    DLCRT_CASE(DLCRT_ERROR_NO_VARIANT)
    DLCRT_CASE(DLCRT_ERROR_DTYPE)
    DLCRT_CASE(DLCRT_ERROR_SHAPE)
    DLCRT_CASE(DLCRT_ERROR_NOT_BOUND)
    DLCRT_CASE(DLCRT_ERROR_CAPACITY)
    DLCRT_CASE(DLCRT_ERROR_ARENA_LIMIT)
    DLCRT_CASE(DLCRT_ERROR_CHECK)
    DLCRT_CASE(DLCRT_ERROR_OVERFLOW)
    DLCRT_CASE(DLCRT_ERROR_CANCELLED)
    DLCRT_CASE(DLCRT_ERROR_DEADLINE)
    DLCRT_CASE(DLCRT_ERROR_DEVICE)
    DLCRT_CASE(DLCRT_ERROR_HOST_FUNCTION)
    DLCRT_CASE(DLCRT_ERROR_UNSUPPORTED)
    DLCRT_CASE(DLCRT_ERROR_CONSTANT_DAMAGED)
    DLCRT_CASE(DLCRT_ERROR_BUSY)
#undef DLCRT_CASE
  }
  return "unknown";
}
