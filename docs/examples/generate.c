/* The tokens that follow others, by a decoder whose cache of keys and values is state: the likeliest one, each time.
 *
 *   dlc compile smollm2.onnx -o smollm2.dlcm --state auto
 *   generate smollm2.dlcm 20 504 3575 282 4649 314
 *
 * The first number says how many tokens to make, the others are the prompt. The model's inputs are input_ids and position_ids, both
 * [1, step], its output logits, [1, step, words].
 */
#include "dlcrt/runtime.h"

#include <stdio.h>
#include <stdlib.h>

struct decoder {
  struct dlcrt_module *module;
  struct dlcrt_state *state;
  struct dlcrt_instance *instance;
};

static int load(struct decoder *decoder, const char *path, struct dlcrt_pool *pool, int64_t capacity, struct dlcrt_error *error) {
  struct dlcrt_instance_options options = {.struct_size = sizeof(options), .workers = dlcrt_pool_threads(pool)};
  options.parallel_for = dlcrt_pool_parallel_for;
  options.parallel_ctx = pool;
  struct dlcrt_state_options room = {.struct_size = sizeof(room), .capacity = capacity};
  return dlcrt_module_open_file(path, NULL, &decoder->module, error) ||
         dlcrt_instance_create(decoder->module, &options, &decoder->instance, error) ||
         dlcrt_state_create(decoder->module, &room, &decoder->state, error) ||
         dlcrt_instance_set_state(decoder->instance, decoder->state, error);
}

/* Reads tokens behind those that the state has seen; *next is the one that should follow. */
static int step(struct decoder *decoder, int64_t *tokens, int64_t count, int64_t *next, struct dlcrt_error *error) {
  int64_t dims[2] = {1, count}, *positions = malloc((size_t)count * sizeof(int64_t));
  for (int64_t i = 0; i < count; ++i)
    positions[i] = dlcrt_state_length(decoder->state) + i;
  struct dlcrt_tensor in = {.struct_size = sizeof(in), .dtype = DLCRT_DTYPE_INT64, .rank = 2, .dims = dims};
  struct dlcrt_tensor logits = {.struct_size = sizeof(logits)};
  in.data = tokens;
  int failed = dlcrt_instance_bind_input(decoder->instance, dlcrt_module_find_input(decoder->module, 0, "input_ids"), &in, error);
  in.data = positions;
  failed = failed ||
           dlcrt_instance_bind_input(decoder->instance, dlcrt_module_find_input(decoder->module, 0, "position_ids"), &in, error) ||
           dlcrt_instance_run(decoder->instance, NULL, error) || /* which makes the state longer */
           dlcrt_instance_output(decoder->instance, dlcrt_module_find_output(decoder->module, 0, "logits"), &logits, error);
  free(positions);
  if (failed)
    return failed;
  int64_t words = logits.dims[2];
  const float *last = (const float *)((const char *)logits.data + logits.byte_offset) + (count - 1) * words;
  *next = 0;
  for (int64_t word = 1; word < words; ++word)
    if (last[word] > last[*next])
      *next = word;
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: generate MODULE COUNT TOKEN...\n");
    return 2;
  }
  struct dlcrt_error error = {.struct_size = sizeof(error)};
  struct decoder decoder = {NULL, NULL, NULL};
  struct dlcrt_pool *pool = dlcrt_pool_create(0);
  int64_t count = atoll(argv[2]), prompt = argc - 3, next = 0;
  int64_t *tokens = malloc((size_t)prompt * sizeof(int64_t));
  for (int64_t i = 0; i < prompt; ++i)
    tokens[i] = atoll(argv[3 + i]);

  int failed = load(&decoder, argv[1], pool, prompt + count, &error);
  for (int64_t i = 0; i < count && !failed; ++i) {
    failed = i == 0 ? step(&decoder, tokens, prompt, &next, &error) : step(&decoder, &next, 1, &next, &error);
    if (!failed)
      printf("%lld%c", (long long)next, i + 1 < count ? ' ' : '\n');
    fflush(stdout);
  }
  if (failed)
    fprintf(stderr, "%s\n", error.message);
  dlcrt_instance_destroy(decoder.instance);
  dlcrt_state_destroy(decoder.state);
  dlcrt_module_close(decoder.module);
  dlcrt_pool_destroy(pool);
  free(tokens);
  return failed ? 1 : 0;
}
