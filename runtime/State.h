/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
//
// What is kept from run to run: the states of a module with their length.
#ifndef DLCRT_STATE_H
#define DLCRT_STATE_H

#include "Module.h"

namespace dlcrt::impl {

/// Memory of one state: dense, with `capacity` entries along its axis.
struct StateBuffer {
  char *data;
  uint64_t bytes;
};

struct State {
  std::atomic<uint32_t> references{1};
  mutable std::atomic<bool> busy{false}; // a run or a call uses it
  mutable Memory memory;
  Module &module;
  Vector<int64_t> symbols;     // values of STATE's symbols; the first, the capacity, stands apart
  Vector<StateBuffer> buffers; // one a state of the module
  uint64_t version = 1;        // another one whenever length or capacity were set
  // Set by who holds the state, read by anybody.
  std::atomic<int64_t> length{0}, capacity{0};
  std::atomic<uint64_t> bytes{0};

  State(const Memory &memory, Module &module);
  ~State();

  int64_t symbol(uint64_t i) const { return i == 0 ? capacity.load() : symbols[i]; }
  void setLength(int64_t entries) {
    length = entries;
    ++version;
  }
  const char *name(uint32_t i) const { return module.string(module.states[i].name); }
  /// Dims of state `i` for a number of entries along its axis.
  Status dimsOf(uint32_t i, int64_t entries, int64_t *dims, Error *error) const;
  /// Memory for so many entries, zero but for the `length` ones that are copied there.
  Status allocate(int64_t entries, Error *error);
};

void retain(State &state);
void release(State &state);

/// Takes the state for one run or call.
class StateHold {
public:
  StateHold(const State *state, Error *error);
  ~StateHold();
  StateHold(const StateHold &) = delete;
  StateHold &operator=(const StateHold &) = delete;

  Status status = DLCRT_OK;

private:
  const State *state = nullptr; // what is held
};

} // namespace dlcrt::impl

/// The handle of the C API.
struct dlcrt_state : dlcrt::impl::State {
  using State::State;
};

#endif
