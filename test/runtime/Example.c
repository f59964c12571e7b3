/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The example of docs/runtime-api.md, as C compilers see runtime.h. ExampleTest.cpp runs it and compares the page's text. */
/* begin */
#include "dlcrt/runtime.h"

#include <stdio.h>

/* y = a + b, each of n floats. */
int add(const char *path, float *a, float *b, float *y, int64_t n) {
  struct dlcrt_error error = {.struct_size = sizeof(error)};
  struct dlcrt_module *module = NULL;
  struct dlcrt_instance *instance = NULL;
  int64_t dims[1] = {n}, result_dims[1];
  struct dlcrt_tensor in = {.struct_size = sizeof(in)}, out = {.struct_size = sizeof(out)};
  in.dtype = out.dtype = DLCRT_DTYPE_FLOAT32;
  in.rank = out.rank = 1;
  in.dims = dims;
  out.dims = result_dims; /* written by the run */
  out.data = y;
  out.capacity = (uint64_t)n * sizeof(float);

  int failed = dlcrt_module_open_file(path, NULL, &module, &error) ||
               dlcrt_instance_create(module, NULL, &instance, &error) ||
               (in.data = a, dlcrt_instance_bind_input(instance, 0, &in, &error)) ||
               (in.data = b, dlcrt_instance_bind_input(instance, 1, &in, &error)) ||
               dlcrt_instance_bind_output(instance, 0, &out, &error) || dlcrt_instance_run(instance, NULL, &error);
  if (failed)
    fprintf(stderr, "%s\n", error.message);
  dlcrt_instance_destroy(instance);
  dlcrt_module_close(module);
  return failed;
}
/* end */
