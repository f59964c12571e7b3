// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dlc/Support/Diagnostics.h"
#include "dlc/Support/Format.h"
#include "dlc/Support/NodeLocation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dlc {

static StringRef severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "error";
}

std::string Problem::toString() const {
  if (where.empty())
    return fmt::format("{}: {}", severityName(severity), message);
  return fmt::format("{}: {}: {}", severityName(severity), where, message);
}

std::string describeNodes(Location location) {
  SmallVector<NodeRef> nodes = nodesOf(location);
  std::string text;
  constexpr size_t kMost = 3;
  for (const NodeRef &node : ArrayRef(nodes).take_front(kMost))
    text += (text.empty() ? "" : ", ") + node.toString();
  if (nodes.size() > kMost)
    text += fmt::format(" and {} more", nodes.size() - kMost);
  return text;
}

/// "file.mlir:3:7" for the first position in a text that the location holds; "model.onnx" where line 0 stands for the whole.
static std::string describePosition(Location location) {
  std::string text;
  location->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    text = file.getFilename().str();
    if (file.getLine() != 0)
      text += fmt::format(":{}:{}", file.getLine(), file.getColumn());
    return WalkResult::interrupt();
  });
  return text;
}

static std::string describe(Location location, StringRef subject) {
  SmallVector<NodeRef> nodes = nodesOf(location);
  if (nodes.empty()) {
    std::string position = describePosition(location);
    return position.empty() ? subject.str() : position;
  }
  return nodes.front().file + ": " + describeNodes(location);
}

/// One line, and without the "'dlc.matmul' op " that MLIR puts before a message when the node is named already.
static std::string tidy(StringRef message, bool hasNode) {
  message = message.trim();
  if (hasNode && message.starts_with("'dlc.")) {
    auto [op, rest] = message.split("' op ");
    if (!op.contains(' ') && !rest.empty())
      message = rest;
  }
  SmallVector<StringRef> lines;
  message.split(lines, '\n', -1, /*KeepEmpty=*/false);
  return llvm::join(lines, " ");
}

Diagnostics::Diagnostics(MLIRContext *context, std::string subject)
    : subject(std::move(subject)), handler(context, [this](Diagnostic &diagnostic) { return take(diagnostic); }) {}

LogicalResult Diagnostics::take(Diagnostic &diagnostic) {
  Location location = diagnostic.getLocation();
  Problem problem;
  problem.severity = diagnostic.getSeverity();
  problem.where = describe(location, subject);
  problem.message = tidy(diagnostic.str(), !nodesOf(location).empty());
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string text = tidy(note.str(), !nodesOf(note.getLocation()).empty());
    if (StringRef(text).starts_with("see current operation"))
      continue;
    std::string where = describe(note.getLocation(), subject);
    problem.notes.push_back(where == problem.where ? text : where + ": " + text);
  }
  add(std::move(problem));
  return success();
}

void Diagnostics::add(Problem problem) {
  std::lock_guard lock(mutex);
  if (!llvm::is_contained(found, problem))
    found.push_back(std::move(problem));
}

void Diagnostics::error(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) { this->error(info.message()); });
}

void Diagnostics::error(const llvm::Twine &message) {
  Problem problem;
  problem.where = subject;
  problem.message = tidy(message.str(), /*hasNode=*/false);
  add(std::move(problem));
}

void Diagnostics::advise(const llvm::Twine &note) {
  std::lock_guard lock(mutex);
  std::string text = note.str();
  if (!llvm::is_contained(advice, text))
    advice.push_back(std::move(text));
}

bool Diagnostics::hasErrors() const {
  std::lock_guard lock(mutex);
  return llvm::any_of(found, [](const Problem &p) { return p.severity == DiagnosticSeverity::Error; });
}

std::vector<Problem> Diagnostics::problems() const {
  std::lock_guard lock(mutex);
  return found;
}

void Diagnostics::print(llvm::raw_ostream &os, bool verbose) const {
  std::lock_guard lock(mutex);
  auto printAll = [&](DiagnosticSeverity severity) {
    for (const Problem &problem : found) {
      if (problem.severity != severity)
        continue;
      os << problem.toString() << '\n';
      for (const std::string &note : problem.notes)
        os << "note: " << note << '\n';
    }
  };
  printAll(DiagnosticSeverity::Error);
  printAll(DiagnosticSeverity::Warning);
  if (verbose) {
    printAll(DiagnosticSeverity::Remark);
    printAll(DiagnosticSeverity::Note);
  }
  for (const std::string &note : advice)
    os << "note: " << note << '\n';
}

} // namespace dlc
