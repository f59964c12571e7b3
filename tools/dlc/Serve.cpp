// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// Commands and answers as JSON objects, one a line:
//   {"id": 1, "args": ["compile", "a.onnx", "-o", "a.dlcm"]}
//   {"id":1,"exit":0,"stdout":"","stderr":""}
// `id` is any JSON value and comes back as it was. Commands are done one after the other. A fault of dlc is answered too (exit
// 70), and then the program ends with 70, because what it has in memory cannot be trusted any more.

#include "CommandLine.h"
#include "Crash.h"
#include "dlc/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <iostream>

namespace dlc {

static llvm::Expected<std::vector<std::string>> argumentsOf(const llvm::json::Value &request) {
  const llvm::json::Object *object = request.getAsObject();
  const llvm::json::Array *list = object ? object->getArray("args") : nullptr;
  if (!list)
    return makeError("a request is a JSON object with an array \"args\"");
  std::vector<std::string> arguments;
  for (const llvm::json::Value &value : *list) {
    auto text = value.getAsString();
    if (!text)
      return makeError("\"args\" holds strings only");
    arguments.push_back(text->str());
  }
  return arguments;
}

int runServe(const Invocation &invocation) {
  if (!invocation.inputs.empty())
    return invocation.usage("serve takes no arguments; it reads requests from its input");
  std::string line;
  while (std::getline(std::cin, line)) {
    if (llvm::StringRef(line).trim().empty())
      continue;
    std::string out, err, id = "null";
    int exit = kExitUsage;
    {
      llvm::raw_string_ostream outStream(out), errStream(err);
      llvm::Expected<llvm::json::Value> request = llvm::json::parse(line);
      if (!request) {
        errStream << "error: " << llvm::toString(request.takeError()) << '\n';
      } else {
        if (const llvm::json::Object *object = request->getAsObject())
          if (const llvm::json::Value *given = object->get("id"))
            id = llvm::formatv("{0}", *given).str();
        llvm::Expected<std::vector<std::string>> arguments = argumentsOf(*request);
        if (!arguments) {
          errStream << "error: " << llvm::toString(arguments.takeError()) << '\n';
        } else if (!arguments->empty() && arguments->front() == "serve") {
          errStream << "error: serve cannot serve itself\n";
        } else {
          setCrashRequest(id.c_str());
          exit = runCommand(*arguments, {outStream, errStream, /*progress=*/false});
          setCrashRequest(nullptr);
        }
      }
    }
    invocation.io.out << "{\"id\":" << id << ",\"exit\":" << exit << ",\"stdout\":" << llvm::json::Value(llvm::json::fixUTF8(out))
                      << ",\"stderr\":" << llvm::json::Value(llvm::json::fixUTF8(err)) << "}\n";
    invocation.io.out.flush();
  }
  return kExitOk;
}

} // namespace dlc
