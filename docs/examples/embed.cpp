// The vector of a text, by MiniLM, from the numbers of its tokens, as embed.c makes it, on several threads:
//
//   dlc compile minilm.onnx -o minilm.dlcm
//   embed minilm.dlcm 101 7592 2088 102
#include "dlcrt/dlcrt.hpp"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

static int fail(const dlcrt::Error &error) {
  std::fprintf(stderr, "%s\n", error.message());
  return 1;
}

int main(int argc, char **argv) {
  dlcrt::Error error;
  dlcrt::Module module = dlcrt::Module::open(argc > 1 ? argv[1] : "", error);
  dlcrt::Pool pool; // as many threads as this process may use
  dlcrt_instance_options options = dlcrt::instanceOptions();
  pool.use(options);
  if (!module)
    return fail(error);
  dlcrt::Instance instance = dlcrt::Instance::create(module, options, error);

  std::vector<int64_t> ids;
  for (int i = 2; i < argc; ++i)
    ids.push_back(std::stoll(argv[i]));
  std::vector<int64_t> mask(ids.size(), 1), types(ids.size());
  int64_t dims[] = {1, int64_t(ids.size())};
  if (!instance || !instance.bindInput("input_ids", dlcrt::tensor(ids.data(), dims), error) ||
      !instance.bindInput("attention_mask", dlcrt::tensor(mask.data(), dims), error) ||
      !instance.bindInput("token_type_ids", dlcrt::tensor(types.data(), dims), error) || !instance.run(error))
    return fail(error);
  dlcrt::Tensor hidden = instance.output(0, error); // [1, tokens, width]
  if (!hidden)
    return fail(error);

  double norm = 0;
  for (int64_t i = 0; i < hidden.dims[2]; ++i) {
    double mean = 0;
    for (size_t token = 0; token < ids.size(); ++token)
      mean += hidden.elements<float>()[int64_t(token) * hidden.dims[2] + i] / double(ids.size());
    norm += mean * mean;
    if (i < 8)
      std::printf("%.6f ", mean);
  }
  std::printf("norm %.6f\n", std::sqrt(norm));
}
