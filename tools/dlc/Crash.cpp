// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Crash.h"
#include "CommandLine.h"
#include "dlc/Support/CurrentWork.h"
#include "dlc/Support/Diagnostics.h"
#include "dlc/Support/Format.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace dlc {

static std::string commandLine;
static std::atomic<const char *> crashSubject{nullptr};
static std::atomic<const char *> crashRequest{nullptr};

void setCrashSubject(const char *subject) { crashSubject = subject; }
void setCrashRequest(const char *id) { crashRequest = id; }

//===----------------------------------------------------------------------===//
// The report. It may run inside a signal handler of a broken process: a second fault, or no end within some seconds, leads
// to a report without details.
//===----------------------------------------------------------------------===//

static void writeAll(int fd, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0)
      return;
    text = text.drop_front(static_cast<size_t>(written));
  }
}

static void answer(llvm::StringRef report, int exit) {
  const char *request = crashRequest.load();
  if (!request)
    return writeAll(STDERR_FILENO, report);
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  os << llvm::json::Value(llvm::json::fixUTF8(report));
  writeAll(STDOUT_FILENO, fmt::format("{{\"id\":{},\"exit\":{},\"stdout\":\"\",\"stderr\":{}}}\n", request, exit, quoted));
}

static std::string describeWork() {
  std::string text;
  if (const CurrentWork *work = CurrentWork::get()) {
    text = fmt::format(" in {}", work->getWhat());
    // The innermost scope whose location names a node; passes on the whole program name none.
    for (const CurrentWork *scope = work; scope; scope = scope->getOuter())
      if (std::string nodes = describeNodes(scope->getLocation()); !nodes.empty())
        return text + fmt::format(", at {}", nodes);
  }
  return text;
}

static std::atomic<bool> reporting{false};
static std::atomic<pid_t> reporter{0};

[[noreturn]] static void finishAbruptly(int exit) {
  llvm::sys::RunInterruptHandlers(); // removes half-written files
  ::_exit(exit);
}

/// `what`: "signal SIGSEGV (stack overflow)", "LLVM gave up: ...".
[[noreturn]] static void report(llvm::StringRef what) {
  pid_t self = ::gettid();
  if (reporting.exchange(true)) {
    if (reporter == self) { // the report itself failed
      writeAll(STDERR_FILENO, "error: internal fault of dlc, and its report failed too\n");
      ::_exit(kExitFault);
    }
    for (;;)
      ::pause(); // another thread reports and ends the process
  }
  reporter = self;
  ::alarm(5);
  const char *subject = crashSubject.load();
  std::string text = fmt::format("error: {}{}internal fault of dlc{}: {}\n", subject ? subject : "", subject ? ": " : "", describeWork(), what);
  text += "note: this is a fault of dlc, not of your model; please report it, with the model and the output of `dlc doctor`\n";
  text += fmt::format("note: the command was: {}\n", commandLine);
  answer(text, kExitFault);
  finishAbruptly(kExitFault);
}

[[noreturn]] static void reportNoMemory() {
  if (reporting.exchange(true))
    ::_exit(kExitFault);
  ::alarm(5);
  // There may be no memory for a std::string any more.
  if (!crashRequest.load()) {
    writeAll(STDERR_FILENO, "error: ");
    if (const char *subject = crashSubject.load()) {
      writeAll(STDERR_FILENO, subject);
      writeAll(STDERR_FILENO, ": ");
    }
    writeAll(STDERR_FILENO, "not enough memory\n");
  } else {
    std::set_new_handler(nullptr);
    answer("error: not enough memory\n", kExitFailed);
  }
  finishAbruptly(kExitFailed);
}

//===----------------------------------------------------------------------===//
// Ways to fail
//===----------------------------------------------------------------------===//

static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGALRM};

static bool isStackOverflow(const siginfo_t *info, const void *context) {
  uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  uintptr_t stack = static_cast<uintptr_t>(static_cast<const ucontext_t *>(context)->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  uintptr_t stack = static_cast<uintptr_t>(static_cast<const ucontext_t *>(context)->uc_mcontext.sp);
#else
  uintptr_t stack = 0;
#endif
  uintptr_t distance = address > stack ? address - stack : stack - address;
  return distance < 65536;
}

static void onSignal(int signal, siginfo_t *info, void *context) {
  if (signal == SIGALRM) {
    if (reporting)
      ::_exit(kExitFault);
    return;
  }
  sigset_t mask; // a second fault while reporting has to come through
  sigemptyset(&mask);
  for (int one : kSignals)
    sigaddset(&mask, one);
  ::pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
  const char *name = ::sigabbrev_np(signal);
  std::string what = fmt::format("signal SIG{}", name ? name : "?");
  if (signal == SIGSEGV && isStackOverflow(info, context))
    what += " (stack overflow)";
  report(what);
}

namespace {
/// A thread's second stack.
class AlternateStack {
public:
  AlternateStack() {
    constexpr size_t kBytes = 256 * 1024;
    memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return;
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = bytes = kBytes;
    ::sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    if (memory == MAP_FAILED)
      return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    ::munmap(memory, bytes);
  }

private:
  void *memory = MAP_FAILED;
  size_t bytes = 0;
};
} // namespace

void prepareThreadForCrash() {
  static thread_local AlternateStack stack;
  (void)stack;
}

void installCrashHandlers(int argc, char **argv) {
  for (int i = 0; i < argc; ++i)
    commandLine += (i == 0 ? "" : " ") + std::string(argv[i]);
  llvm::install_fatal_error_handler(
      [](void *, const char *reason, bool) { report(fmt::format("LLVM gave up: {}", llvm::StringRef(reason).rtrim())); });
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { reportNoMemory(); });
  std::set_new_handler([] { reportNoMemory(); });
  std::set_terminate([] { report("std::terminate"); });

  // LLVM installs its own handlers when it first has a file to remove; do that now, so that ours stand above them.
  llvm::sys::AddSignalHandler([](void *) {}, nullptr);
  prepareThreadForCrash();
  struct sigaction action = {};
  action.sa_sigaction = onSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int signal : kSignals)
    ::sigaction(signal, &action, nullptr);
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {
class CrashInstrumentation : public mlir::PassInstrumentation {
public:
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override {
    prepareThreadForCrash();
    llvm::StringRef name = pass->getArgument();
    running().emplace_back(name.empty() ? pass->getName() : name, op->getLoc());
  }
  void runAfterPass(mlir::Pass *, mlir::Operation *) override { running().pop_back(); }
  void runAfterPassFailed(mlir::Pass *, mlir::Operation *) override { running().pop_back(); }

private:
  /// Passes nest on a thread, so they end in the reverse order.
  static std::deque<CurrentWork> &running() {
    static thread_local std::deque<CurrentWork> scopes;
    return scopes;
  }
};
} // namespace

std::unique_ptr<mlir::PassInstrumentation> createCrashInstrumentation() { return std::make_unique<CrashInstrumentation>(); }

} // namespace dlc
