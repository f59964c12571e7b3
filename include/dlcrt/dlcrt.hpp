/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// The C API (runtime.h) with owners: C++17, header-only, without exceptions.
//
//   dlcrt::Error error;
//   dlcrt::Module module = dlcrt::Module::open("model.dlcm", error);
//   dlcrt::Instance instance = dlcrt::Instance::create(module, error);
//   int64_t dims[] = {1, 3, 224, 224};
//   if (!instance || !instance.bindInput("x", dlcrt::tensor(pixels, dims), error) || !instance.run(error))
//     return fail(error.message());
//   dlcrt::Tensor y = instance.output("y", error);
//
// A function that fails returns false, or an object that is false, and says why in `error`. An empty object may be used:
// its functions fail. Objects can be moved, not copied; destroying a Module that instances still use is allowed.
#ifndef DLCRT_DLCRT_HPP
#define DLCRT_DLCRT_HPP

#include "dlcrt/runtime.h"

#include <utility>

namespace dlcrt {

/// What went wrong in the last call that was given it.
class Error {
public:
  Error() : error{sizeof(dlcrt_error), DLCRT_OK, {0}} {}
  dlcrt_status code() const { return dlcrt_status(error.code); }
  const char *message() const { return error.message; }
  explicit operator bool() const { return error.code != DLCRT_OK; }
  dlcrt_error *c() { return &error; }

private:
  dlcrt_error error;
};

/// Element types by the C++ type that holds them; others are named with tensor(dtype, ...).
template <typename T> struct DtypeOf;
#define DLCRT_DTYPE_OF(TYPE, DTYPE)                                                                                    \
  template <> struct DtypeOf<TYPE> {                                                                                   \
    static constexpr int32_t value = DTYPE;                                                                            \
  };
DLCRT_DTYPE_OF(float, DLCRT_DTYPE_FLOAT32)
DLCRT_DTYPE_OF(double, DLCRT_DTYPE_FLOAT64)
DLCRT_DTYPE_OF(bool, DLCRT_DTYPE_BOOL)
DLCRT_DTYPE_OF(int8_t, DLCRT_DTYPE_INT8)
DLCRT_DTYPE_OF(int16_t, DLCRT_DTYPE_INT16)
DLCRT_DTYPE_OF(int32_t, DLCRT_DTYPE_INT32)
DLCRT_DTYPE_OF(int64_t, DLCRT_DTYPE_INT64)
DLCRT_DTYPE_OF(uint8_t, DLCRT_DTYPE_UINT8)
DLCRT_DTYPE_OF(uint16_t, DLCRT_DTYPE_UINT16)
DLCRT_DTYPE_OF(uint32_t, DLCRT_DTYPE_UINT32)
DLCRT_DTYPE_OF(uint64_t, DLCRT_DTYPE_UINT64)
#undef DLCRT_DTYPE_OF

/// A view, as dlcrt_tensor; owns neither memory nor dims.
struct Tensor : dlcrt_tensor {
  Tensor() : dlcrt_tensor() { struct_size = sizeof(dlcrt_tensor); }
  explicit operator bool() const { return dtype != DLCRT_DTYPE_UNDEFINED; }
  /// The elements, of dense memory in this process. The caller knows the type.
  template <typename T> T *elements() const { return reinterpret_cast<T *>(static_cast<char *>(data) + byte_offset); }
  uint64_t count() const {
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank; ++i)
      product *= uint64_t(dims[i]);
    return product;
  }
};

/// A dense tensor of any element type. `dims` must live as long as the view; capacity is what its dims need.
inline Tensor tensor(int32_t dtype, void *data, int64_t *dims, uint32_t rank) {
  Tensor result;
  result.dtype = dtype;
  result.data = data;
  result.dims = dims;
  result.rank = rank;
  result.device_kind = DLCRT_MEMORY_CPU;
  result.capacity = dlcrt_tensor_bytes(dtype, rank, dims);
  return result;
}
template <typename T, size_t rank> Tensor tensor(T *data, int64_t (&dims)[rank]) {
  return tensor(DtypeOf<T>::value, data, dims, uint32_t(rank));
}
/// A scalar.
template <typename T> Tensor tensor(T *data) { return tensor(DtypeOf<T>::value, data, nullptr, 0); }

class Module {
public:
  Module() = default;
  explicit Module(dlcrt_module *handle) : handle(handle) {} // takes ownership
  Module(Module &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Module &operator=(Module &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Module() { dlcrt_module_close(handle); }

  static Module open(const char *path, Error &error, uint32_t flags = 0) {
    dlcrt_module_options options = {sizeof(options), flags, nullptr};
    Module module;
    dlcrt_module_open_file(path, &options, &module.handle, error.c());
    return module;
  }
  /// `data` stays the caller's and unchanged; see dlcrt_module_open_memory.
  static Module open(const void *data, uint64_t bytes, Error &error, uint32_t flags = 0) {
    dlcrt_module_options options = {sizeof(options), flags, nullptr};
    Module module;
    dlcrt_module_open_memory(data, bytes, &options, &module.handle, error.c());
    return module;
  }
  /// A module that is part of the program: `x_module` of the X.h that dlc wrote beside X.a.
  static Module open(const dlcrt_static_module &data, Error &error, uint32_t flags = 0) {
    dlcrt_module_options options = {sizeof(options), flags, nullptr};
    Module module;
    dlcrt_module_open_static(&data, &options, &module.handle, error.c());
    return module;
  }

  explicit operator bool() const { return handle != nullptr; }
  dlcrt_module *c() const { return handle; }
  bool verify(Error &error) const { return dlcrt_module_verify(handle, error.c()) == DLCRT_OK; }
  dlcrt_module_info info() const {
    dlcrt_module_info info = {};
    info.struct_size = sizeof(info);
    dlcrt_module_get_info(handle, &info, nullptr);
    return info;
  }

private:
  dlcrt_module *handle = nullptr;
};

class Pool {
public:
  /// 0 threads = as many as this process may use.
  explicit Pool(uint32_t threads = 0) : handle(dlcrt_pool_create(threads)) {}
  Pool(Pool &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Pool &operator=(Pool &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Pool() { dlcrt_pool_destroy(handle); }
  explicit operator bool() const { return handle != nullptr; }
  dlcrt_pool *c() const { return handle; }
  uint32_t threads() const { return dlcrt_pool_threads(handle); }
  /// Makes instances run on this pool, which must outlive them.
  void use(dlcrt_instance_options &options) const {
    if (!handle)
      return;
    options.parallel_for = dlcrt_pool_parallel_for;
    options.parallel_ctx = handle;
    options.workers = threads();
  }

private:
  dlcrt_pool *handle;
};

/// Options with struct_size set and everything else at its default.
inline dlcrt_instance_options instanceOptions() {
  dlcrt_instance_options options = {};
  options.struct_size = sizeof(options);
  return options;
}
inline dlcrt_run_options runOptions() {
  dlcrt_run_options options = {};
  options.struct_size = sizeof(options);
  return options;
}

/// What is kept from run to run; see "state" in runtime.h.
class State {
public:
  State() = default;
  State(State &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  State &operator=(State &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~State() { dlcrt_state_destroy(handle); }

  static State create(const Module &module, const dlcrt_state_options &options, Error &error) {
    State state;
    dlcrt_state_create(module.c(), &options, &state.handle, error.c());
    return state;
  }
  /// For states whose dims have no other symbols than the capacity.
  static State create(const Module &module, int64_t capacity, Error &error) {
    dlcrt_state_options options = {};
    options.struct_size = sizeof(options);
    options.capacity = capacity;
    return create(module, options, error);
  }

  explicit operator bool() const { return handle != nullptr; }
  dlcrt_state *c() const { return handle; }
  int64_t length() const { return dlcrt_state_length(handle); }
  int64_t capacity() const { return dlcrt_state_capacity(handle); }
  bool setLength(int64_t length, Error &error) { return dlcrt_state_set_length(handle, length, error.c()) == DLCRT_OK; }
  bool reset(Error &error) { return dlcrt_state_reset(handle, error.c()) == DLCRT_OK; }
  bool grow(int64_t capacity, Error &error) { return dlcrt_state_grow(handle, capacity, error.c()) == DLCRT_OK; }
  bool read(uint32_t index, int64_t first, const dlcrt_tensor &tensor, Error &error) {
    return dlcrt_state_read(handle, index, first, &tensor, error.c()) == DLCRT_OK;
  }
  bool write(uint32_t index, int64_t first, const dlcrt_tensor &tensor, Error &error) {
    return dlcrt_state_write(handle, index, first, &tensor, error.c()) == DLCRT_OK;
  }
  /// The entries that are there, in place; false if there is no such state. `dims` and `strides` have an entry for each
  /// of its axes and must live as long as the view.
  Tensor view(uint32_t index, int64_t *dims, int64_t *strides, Error &error) const {
    Tensor tensor;
    if (dlcrt_state_view(handle, index, &tensor, dims, strides, error.c()) != DLCRT_OK)
      return Tensor();
    return tensor;
  }

private:
  dlcrt_state *handle = nullptr;
};

class Instance {
public:
  Instance() = default;
  Instance(Instance &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)), module(std::exchange(other.module, nullptr)) {}
  Instance &operator=(Instance &&other) noexcept {
    std::swap(handle, other.handle);
    std::swap(module, other.module);
    return *this;
  }
  ~Instance() { dlcrt_instance_destroy(handle); }

  static Instance create(const Module &module, const dlcrt_instance_options &options, Error &error) {
    Instance instance;
    if (dlcrt_instance_create(module.c(), &options, &instance.handle, error.c()) == DLCRT_OK)
      instance.module = module.c();
    return instance;
  }
  static Instance create(const Module &module, Error &error) { return create(module, instanceOptions(), error); }

  explicit operator bool() const { return handle != nullptr; }
  dlcrt_instance *c() const { return handle; }

  /// Numbers of inputs and outputs by name; DLCRT_NO_INDEX if there is none, which the functions below report.
  uint32_t findInput(const char *name) const {
    return dlcrt_module_find_input(module, dlcrt_instance_function(handle), name);
  }
  uint32_t findOutput(const char *name) const {
    return dlcrt_module_find_output(module, dlcrt_instance_function(handle), name);
  }

  // Numbers may be int too: 0 would else be a pointer as well.
  bool bindInput(uint32_t input, const dlcrt_tensor &tensor, Error &error) {
    return dlcrt_instance_bind_input(handle, input, &tensor, error.c()) == DLCRT_OK;
  }
  bool bindInput(int input, const dlcrt_tensor &tensor, Error &error) { return bindInput(uint32_t(input), tensor, error); }
  bool bindInput(const char *name, const dlcrt_tensor &tensor, Error &error) {
    return bindInput(findInput(name), tensor, error);
  }
  bool bindOutput(uint32_t output, const dlcrt_tensor &tensor, Error &error) {
    return dlcrt_instance_bind_output(handle, output, &tensor, error.c()) == DLCRT_OK;
  }
  bool bindOutput(int output, const dlcrt_tensor &tensor, Error &error) {
    return bindOutput(uint32_t(output), tensor, error);
  }
  bool bindOutput(const char *name, const dlcrt_tensor &tensor, Error &error) {
    return bindOutput(findOutput(name), tensor, error);
  }
  /// The instance keeps the state as long as it is attached.
  bool setState(const State &state, Error &error) {
    return dlcrt_instance_set_state(handle, state.c(), error.c()) == DLCRT_OK;
  }
  bool run(Error &error) { return dlcrt_instance_run(handle, nullptr, error.c()) == DLCRT_OK; }
  bool run(const dlcrt_run_options &options, Error &error) {
    return dlcrt_instance_run(handle, &options, error.c()) == DLCRT_OK;
  }
  /// The result of the last run; false if there is none.
  Tensor output(uint32_t output, Error &error) {
    Tensor tensor;
    if (dlcrt_instance_output(handle, output, &tensor, error.c()) != DLCRT_OK)
      return Tensor();
    return tensor;
  }
  Tensor output(int output, Error &error) { return this->output(uint32_t(output), error); }
  Tensor output(const char *name, Error &error) { return output(findOutput(name), error); }
  dlcrt_instance_statistics statistics() const {
    dlcrt_instance_statistics statistics = {};
    statistics.struct_size = sizeof(statistics);
    dlcrt_instance_get_statistics(handle, &statistics, nullptr);
    return statistics;
  }

private:
  dlcrt_instance *handle = nullptr;
  dlcrt_module *module = nullptr; // kept alive by the instance
};

} // namespace dlcrt
#endif
