// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// A model made ready to run: opened or compiled, an instance on its threads, inputs bound. What the verbs that run
// a model have in common.

#ifndef DLC_TOOLS_DLC_EXECUTION_H
#define DLC_TOOLS_DLC_EXECUTION_H

#include "../Runtime.h"
#include "CommandLine.h"
#include "Inputs.h"
#include "llvm/Support/MemoryBuffer.h"

namespace dlc {

/// What the command line says about running.
struct ExecutionRequest {
  std::string model;
  bool isModule = false;          // a .dlcm; else it is compiled here
  uint32_t threads = 1;           // --threads; as many as this process may use where that is 0 or absent
  std::optional<uint64_t> seed;   // --random: inputs are made up; else they are read from `inputs`
  std::string inputs;             // --inputs
  OnnxImportOptions dims;         // --dim and --shape
  std::string target;             // --target: what to compile for, the variant of a module to take; empty: this machine, the best
  bool fusion = true;             // without --no-fusion
  bool winograd = true;           // without --no-winograd
  bool quiet = false;             // no warnings of the compiler: they have been told
  std::string function;           // --function; empty: the only one, or main
  std::string state;              // --state, of a model that is compiled here
  int64_t stateLength = 0;        // --state-length
  int64_t stateCapacity = 0;      // --state-capacity
  bool sizesState = false;        // one of these two was given
};

/// Of a wrong command line an error. With neither --inputs nor --random the seed is `defaultSeed`; where there is none, that is an error too.
llvm::Expected<ExecutionRequest> executionRequestOf(const Invocation &invocation, std::optional<uint64_t> defaultSeed);

class Execution {
public:
  /// Opens the module or compiles the model, for the request's target or this machine. Prints what went wrong and returns the exit code.
  std::optional<int> load(const Invocation &invocation, const ExecutionRequest &request);
  /// Makes the instance; of a module, the request's target is the variant to take.
  llvm::Error createInstance(const ExecutionRequest &request);
  /// Binds inputs in place.
  llvm::Error bindInputs(const ExecutionRequest &request);
  llvm::Error run(const dlcrt_run_options *options = nullptr);
  /// Copies of all outputs of the last run.
  llvm::Expected<std::vector<HostTensor>> readOutputs() const;
  /// Copies of what the states hold now; none where the function works on none.
  llvm::Expected<std::vector<HostTensor>> readStates() const;
  /// The state as it was before the first run. Nothing where the function works on none.
  llvm::Error rewind();

  dlcrt_module *getModule() const { return module.get(); }
  dlcrt_instance *getInstance() const { return instance.get(); }
  /// The module's number of the function that runs.
  uint32_t getFunction() const { return dlcrt_instance_function(instance.get()); }
  /// Threads that there are: fewer than asked for when the system gives no more.
  uint32_t getThreads() const { return pool ? dlcrt_pool_threads(pool.get()) : 1; }
  const InputSet &getInputs() const { return *inputs; }
  /// Target of the variant that the last run took.
  llvm::Expected<std::string> getTarget() const;
  /// How messages call the model.
  const std::string &getSubject() const { return subject; }
  /// Seconds that opening the module and making the instance took; compiling is not part of it.
  double getLoadSeconds() const { return loadSeconds; }

private:
  std::optional<int> compileModel(const Invocation &invocation, const ExecutionRequest &request);
  llvm::Error makeState(const ExecutionRequest &request);

  // In the order of their making: each lives on those before it.
  std::string subject;
  std::unique_ptr<llvm::MemoryBuffer> bytes; // where it was compiled here
  ModuleHandle module;
  PoolHandle pool;
  StateHandle state;
  InstanceHandle instance;
  std::unique_ptr<InputSet> inputs; // destroying an instance does not touch what it is bound to
  bool madeUp = false;              // by --random
  int64_t stateLength = 0;
  double loadSeconds = 0;
};

} // namespace dlc

#endif
