/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// A module with an instance, for tests.
#ifndef DLCRT_TEST_TESTMODEL_H
#define DLCRT_TEST_TESTMODEL_H

#include "ModuleBuilder.h"
#include "dlcrt/dlcrt.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>

namespace dlcrt::test {

using Dims = std::vector<int64_t>;

class TestModel {
public:
  explicit TestModel(const ModuleBuilder &builder, const dlcrt_instance_options &options = instanceOptions())
      : bytes(builder.build()), module(Module::open(bytes.data(), bytes.size(), error)) {
    EXPECT_TRUE(module) << error.message();
    if (module)
      instance = Instance::create(module, options, error);
  }

  /// Binds memory that the caller owns.
  template <typename T> bool bind(uint32_t input, std::vector<T> &data, Dims dims, std::vector<int64_t> strides = {}) {
    Tensor view = tensor(DtypeOf<T>::value, data.data(), dims.data(), uint32_t(dims.size()));
    view.strides = strides.empty() ? nullptr : strides.data();
    view.capacity = data.size() * sizeof(T);
    return instance.bindInput(input, view, error);
  }
  /// Binds a copy.
  template <typename T> bool input(uint32_t input, std::vector<T> data, Dims dims) {
    kept.emplace_back(reinterpret_cast<uint8_t *>(data.data()), reinterpret_cast<uint8_t *>(data.data() + data.size()));
    Tensor view = tensor(DtypeOf<T>::value, kept.back().data(), dims.data(), uint32_t(dims.size()));
    return instance.bindInput(input, view, error);
  }
  dlcrt_status run() {
    instance.run(error);
    return error.code();
  }
  dlcrt_status run(const dlcrt_run_options &options) {
    instance.run(options, error);
    return error.code();
  }
  template <typename T> std::vector<T> output(uint32_t output) {
    Tensor result = instance.output(output, error);
    EXPECT_TRUE(result) << error.message();
    if (!result)
      return {};
    return std::vector<T>(result.elements<T>(), result.elements<T>() + result.count());
  }
  Dims outputDims(uint32_t output) {
    Tensor result = instance.output(output, error);
    return result ? Dims(result.dims, result.dims + result.rank) : Dims();
  }
  std::string message() const { return error.message(); }

  Bytes bytes;
  Error error;
  Module module;
  Instance instance;

private:
  std::deque<Bytes> kept;
};

/// Expects `call` to fail with this code and message.
#define EXPECT_FAILS(model, CODE, MESSAGE, call)                                                                       \
  do {                                                                                                                 \
    (void)(call);                                                                                                      \
    EXPECT_EQ((model).error.code(), CODE) << (model).message();                                                        \
    EXPECT_EQ((model).message(), MESSAGE);                                                                             \
  } while (0)

inline std::vector<float> iotaFloats(size_t count, float first = 0) {
  std::vector<float> data(count);
  std::iota(data.begin(), data.end(), first);
  return data;
}

} // namespace dlcrt::test
#endif
