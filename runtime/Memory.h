/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// Memory comes from the application's allocator or from malloc, and is counted, so that tests can say that a run
// allocates nothing. The containers are the few that the runtime needs: no libstdc++ is linked.
#ifndef DLCRT_MEMORY_H
#define DLCRT_MEMORY_H

#include "Status.h"
#include "dlcrt/runtime.h"

#include <new>
#include <string.h>
#include <type_traits>

namespace dlcrt::impl {

struct Memory {
  dlcrt_allocator allocator;
  uint64_t allocations = 0;

  /// malloc, with huge pages for what is large.
  Memory();
  explicit Memory(const dlcrt_allocator &allocator) : allocator(allocator) {}

  void *allocate(uint64_t bytes, uint64_t alignment) {
    ++allocations;
    return allocator.allocate(allocator.ctx, bytes, alignment);
  }
  void release(void *memory, uint64_t bytes) {
    if (memory)
      allocator.release(allocator.ctx, memory, bytes);
  }
};

/// Memory from the caller's allocator; `memory` stays as it is where there is none.
Status useAllocator(const dlcrt_allocator *given, Memory &memory, Error *error);

/// Read-only elements that live elsewhere.
template <typename T> struct Span {
  const T *data = nullptr;
  uint64_t count = 0;

  const T &operator[](uint64_t i) const { return data[i]; }
  const T *begin() const { return data; }
  const T *end() const { return data + count; }
};

/// Elements that can be copied as bytes.
template <typename T> class Vector {
  static_assert(std::is_trivially_copyable<T>::value, "elements are moved as bytes");

public:
  explicit Vector(Memory &memory) : memory(memory) {}
  Vector(const Vector &) = delete;
  Vector &operator=(const Vector &) = delete;
  ~Vector() { memory.release(elements, room * sizeof(T)); }

  T *data() { return elements; }
  const T *data() const { return elements; }
  uint64_t size() const { return count; }
  T &operator[](uint64_t i) { return elements[i]; }
  const T &operator[](uint64_t i) const { return elements[i]; }
  T *begin() { return elements; }
  T *end() { return elements + count; }
  const T *begin() const { return elements; }
  const T *end() const { return elements + count; }
  void clear() { count = 0; }

  /// New elements are zero. False = no memory, and then nothing has changed.
  [[nodiscard]] bool resize(uint64_t size) {
    if (!reserve(size))
      return false;
    if (size > count)
      memset(static_cast<void *>(elements + count), 0, (size - count) * sizeof(T));
    count = size;
    return true;
  }

  [[nodiscard]] bool append(const T &element) {
    T copy = element;
    if (count == room && !reserve(room ? 2 * room : 8))
      return false;
    elements[count++] = copy;
    return true;
  }

  [[nodiscard]] bool reserve(uint64_t size) {
    if (size <= room)
      return true;
    if (size > UINT64_MAX / 2 / sizeof(T))
      return false;
    T *grown = static_cast<T *>(memory.allocate(size * sizeof(T), alignof(T) < 16 ? 16 : alignof(T)));
    if (!grown)
      return false;
    if (count)
      memcpy(static_cast<void *>(grown), elements, count * sizeof(T));
    memory.release(elements, room * sizeof(T));
    elements = grown;
    room = size;
    return true;
  }

private:
  Memory &memory;
  T *elements = nullptr;
  uint64_t count = 0, room = 0;
};

/// A fixed number of objects, each constructed from the memory it shall use.
template <typename T> class Array {
public:
  explicit Array(Memory &memory) : memory(memory) {}
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() {
    for (uint64_t i = 0; i < count; ++i)
      elements[i].~T();
    memory.release(elements, count * sizeof(T));
  }

  [[nodiscard]] bool create(uint64_t size) {
    if (size == 0)
      return true;
    if (size > UINT64_MAX / 2 / sizeof(T))
      return false;
    elements = static_cast<T *>(memory.allocate(size * sizeof(T), alignof(T) < 16 ? 16 : alignof(T)));
    if (!elements)
      return false;
    for (; count < size; ++count)
      new (&elements[count]) T(memory);
    return true;
  }

  uint64_t size() const { return count; }
  T &operator[](uint64_t i) { return elements[i]; }
  const T &operator[](uint64_t i) const { return elements[i]; }
  T *begin() { return elements; }
  T *end() { return elements + count; }

private:
  Memory &memory;
  T *elements = nullptr;
  uint64_t count = 0;
};

inline uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

} // namespace dlcrt::impl
#endif
