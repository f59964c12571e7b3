/* The vector of a text, by MiniLM, from the numbers of its tokens:
 *
 *   dlc compile minilm.onnx -o minilm.dlcm
 *   embed minilm.dlcm 101 7592 2088 102
 *
 * With the model inside the program, which then takes the numbers alone:
 *   dlc compile minilm.onnx -o minilm.a
 *   cc -include minilm.h -DMODEL=minilm_module embed.c minilm.a -ldlcrt -lm -static
 */
#include "dlcrt/runtime.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  struct dlcrt_error error = {.struct_size = sizeof(error)};
  struct dlcrt_module *module = NULL;
  struct dlcrt_instance *instance = NULL;
#ifdef MODEL
  int first = 1, failed = dlcrt_module_open_static(&MODEL, NULL, &module, &error);
#else
  int first = 2, failed = dlcrt_module_open_file(argc > 1 ? argv[1] : "", NULL, &module, &error);
#endif
  failed = failed || dlcrt_instance_create(module, NULL, &instance, &error);
  /* One text: all inputs are [1, tokens]. */
  int64_t tokens = argc > first ? argc - first : 0, dims[2] = {1, tokens};
  int64_t *data = calloc(3 * (size_t)tokens + 1, sizeof(int64_t)); /* the types are 0 */
  for (int64_t i = 0; i < tokens; ++i) {
    data[i] = atoll(argv[first + i]);
    data[tokens + i] = 1;
  }
  const char *names[3] = {"input_ids", "attention_mask", "token_type_ids"};
  struct dlcrt_tensor in = {.struct_size = sizeof(in), .dtype = DLCRT_DTYPE_INT64, .rank = 2, .dims = dims};
  for (int i = 0; i < 3 && !failed; ++i) {
    in.data = data + i * tokens;
    failed = dlcrt_instance_bind_input(instance, dlcrt_module_find_input(module, 0, names[i]), &in, &error);
  }
  struct dlcrt_tensor out = {.struct_size = sizeof(out)};
  failed = failed || dlcrt_instance_run(instance, NULL, &error) || dlcrt_instance_output(instance, 0, &out, &error);
  if (failed) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  /* [1, tokens, width]; the text's vector is the mean over the tokens. */
  const float *hidden = (const float *)((const char *)out.data + out.byte_offset);
  double norm = 0;
  for (int64_t i = 0; i < out.dims[2]; ++i) {
    double sum = 0;
    for (int64_t token = 0; token < tokens; ++token)
      sum += hidden[token * out.dims[2] + i];
    norm += sum / tokens * (sum / tokens);
    if (i < 8)
      printf("%.6f ", sum / tokens);
  }
  printf("norm %.6f\n", sqrt(norm));
  dlcrt_instance_destroy(instance);
  dlcrt_module_close(module);
  free(data);
}
