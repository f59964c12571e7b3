// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommandLine.h"
#include "dlc/Support/Format.h"
#include "dlcrt/runtime.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"

using namespace llvm::opt;

namespace dlc {

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

#define OPTTABLE_STR_TABLE_CODE
#include "DlcOptions.inc"
#undef OPTTABLE_STR_TABLE_CODE
#define OPTTABLE_PREFIXES_TABLE_CODE
#include "DlcOptions.inc"
#undef OPTTABLE_PREFIXES_TABLE_CODE

static const OptTable::Info kOptions[] = {
#define OPTION(...) LLVM_CONSTRUCT_OPT_INFO(__VA_ARGS__),
#include "DlcOptions.inc"
#undef OPTION
};

namespace {
class DlcOptTable : public GenericOptTable {
public:
  DlcOptTable() : GenericOptTable(OptionStrTable, OptionPrefixesTable, kOptions) {}
};
} // namespace

//===----------------------------------------------------------------------===//
// Verbs
//===----------------------------------------------------------------------===//

namespace {
struct Verb {
  llvm::StringLiteral name;
  llvm::StringLiteral arguments;
  llvm::StringLiteral summary;
  llvm::StringLiteral example;
  unsigned visibility = 0;
  int (*run)(const Invocation &) = nullptr; // null: of a later version
};
} // namespace

static int runVersion(const Invocation &invocation);
static int runHelp(const Invocation &invocation);

static const Verb kVerbs[] = {
    {"compile", "MODEL.onnx -o OUT [flags]", "Compiles a model ahead of time into a module, or into a text on the way to it",
     "dlc compile bert.onnx -o bert.dlcm --target cpu:x86-64-v3,cpu:host --dim seq=1..512", CompileVerb, runCompile},
    {"run", "MODEL.onnx|MODEL.dlcm --inputs DIR --outputs DIR [flags]", "Runs a model once on inputs from files",
     "dlc run mlp.onnx --inputs test_data_set_0 --outputs out", RunVerb, runRun},
    {"bench", "MODEL.onnx|MODEL.dlcm [--inputs DIR] [flags]", "Measures how long a run takes, how much memory, and how long loading",
     "dlc bench bert.dlcm --dim batch=1 --dim seq=128 --threads 1", BenchVerb, runBench},
    {"compare", "MODEL.onnx|MODEL.dlcm [--reference DIR|fp32] [--inputs DIR] [flags]", "Runs a model and says how far its outputs are from a reference",
     "dlc compare bert.onnx --inputs test_data_set_0 --reference test_data_set_0 --rtol 1e-2", CompareVerb, runCompare},
    {"inspect", "MODEL.onnx|MODEL.dlcm [flags]", "Says what is in a module, or whether a model can be compiled",
     "dlc inspect bert.dlcm --verify", InspectVerb, runInspect},
    {"doctor", "[flags]", "Says what this machine can do", "dlc doctor --json", DoctorVerb, runDoctor},
    {"serve", "", "Answers commands, one JSON object a line, until its input ends",
     "echo '{\"id\": 1, \"args\": [\"compile\", \"a.onnx\", \"-o\", \"a.dlcm\"]}' | dlc serve", OtherVerb, runServe},
    {"version", "", "Versions of dlc and of what it is built on", "dlc version", OtherVerb, runVersion},
    {"help", "[VERB]", "This text, or a verb's", "dlc help compile", OtherVerb, runHelp},
    {"quantize", "", "", ""},
    {"blame", "", "", ""},
    {"tune", "", "", ""},
    {"db", "", "", ""},
    {"reduce", "", "", ""},
};

static const Verb *findVerb(llvm::StringRef name) {
  const Verb *found = llvm::find_if(kVerbs, [&](const Verb &verb) { return verb.name == name; });
  return found == std::end(kVerbs) ? nullptr : found;
}

static void printVerbs(llvm::raw_ostream &os) {
  os << "usage: dlc VERB ...\n\n";
  for (const Verb &verb : kVerbs)
    if (verb.run)
      os << fmt::format("  {:<9} {}\n", llvm::StringRef(verb.name), llvm::StringRef(verb.summary));
  os << "\n`dlc VERB --help` tells a verb's flags. Exit codes: 0 done; 1 something that you can mend (the model, a file, a target);\n"
        "2 a wrong command line; 70 a fault of dlc.\n";
}

static void printVerbHelp(const Verb &verb, llvm::raw_ostream &os) {
  std::string usage = ("dlc " + verb.name + (verb.arguments.empty() ? "" : " ") + verb.arguments).str();
  DlcOptTable().printHelp(os, usage.c_str(), verb.summary.data(), /*ShowHidden=*/false, /*ShowAllAliases=*/false,
                          Visibility(verb.visibility));
  os << "\nEXAMPLE: " << verb.example << "\n";
}

static int runHelp(const Invocation &invocation) {
  if (invocation.inputs.empty()) {
    printVerbs(invocation.io.out);
    return kExitOk;
  }
  const Verb *verb = findVerb(invocation.inputs.front());
  if (!verb || !verb->run)
    return invocation.usage("there is no help about '" + invocation.inputs.front() + "'");
  printVerbHelp(*verb, invocation.io.out);
  return kExitOk;
}

std::string versionText() { return "dlc " DLC_VERSION; }

static int runVersion(const Invocation &invocation) {
  invocation.io.out << versionText() << "\n"
                    << "runtime " << dlcrt_version_string() << "\n"
                    << "LLVM " << LLVM_VERSION_STRING << "\n";
  return kExitOk;
}

//===----------------------------------------------------------------------===//
// Invocations
//===----------------------------------------------------------------------===//

llvm::Expected<uint64_t> Invocation::number(OptionId flag, uint64_t otherwise, uint64_t min, uint64_t max) const {
  const Arg *arg = args.getLastArg(flag);
  if (!arg)
    return otherwise;
  uint64_t number = 0;
  llvm::StringRef text = arg->getValue();
  if (text.getAsInteger(10, number) || number < min || number > max)
    return makeError("{} takes a number from {} to {}, not '{}'", llvm::StringRef(arg->getSpelling()).rtrim('='), min, max, text);
  return number;
}

int Invocation::fail(llvm::Error error, int exit) const {
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) { io.err << "error: " << info.message() << '\n'; });
  return exit;
}

int Invocation::usage(const llvm::Twine &message) const {
  io.err << "error: " << message << '\n';
  return kExitUsage;
}

std::optional<int> refuseAllButOne(const Invocation &invocation, llvm::StringRef missing) {
  if (invocation.inputs.size() == 1)
    return std::nullopt;
  if (invocation.inputs.empty())
    return invocation.usage(missing);
  return invocation.usage("one model at a time: " + invocation.inputs[0] + " or " + invocation.inputs[1]);
}

/// A flag whose value, the next argument, is a flag itself: somebody forgot the value.
static const Arg *findSwallowedFlag(const InputArgList &args) {
  for (const Arg *arg : args) {
    unsigned next = arg->getIndex() + 1;
    if (arg->getNumValues() == 1 && next < args.getNumInputArgStrings() && arg->getValue() == args.getArgString(next) &&
        llvm::StringRef(arg->getValue()).starts_with("--"))
      return arg;
  }
  return nullptr;
}

int runCommand(llvm::ArrayRef<std::string> arguments, Streams io) {
  auto wrong = [&](const std::string &message) {
    io.err << "error: " << message << '\n';
    return kExitUsage;
  };
  if (arguments.empty()) {
    printVerbs(io.err);
    return kExitUsage;
  }
  llvm::StringRef name = arguments.front();
  if (name == "--help" || name == "-h")
    name = "help";
  if (name == "--version")
    name = "version";
  const Verb *verb = findVerb(name);
  if (!verb) {
    llvm::SmallVector<llvm::StringRef> names;
    for (const Verb &known : kVerbs)
      if (known.run)
        names.push_back(known.name);
    llvm::StringRef near = nearestWord(name, names);
    return wrong(fmt::format("there is no verb '{}'; {}", name,
                             near.empty() ? std::string("`dlc help` lists them") : fmt::format("did you mean '{}'?", near)));
  }
  if (!verb->run) {
    io.err << fmt::format("error: dlc {} is not available in this version\n", name);
    return kExitFailed;
  }

  llvm::SmallVector<const char *> rest;
  for (const std::string &argument : arguments.drop_front())
    rest.push_back(argument.c_str());
  DlcOptTable table;
  Visibility visible(verb->visibility);
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList args = table.ParseArgs(rest, missingIndex, missingCount, visible);
  for (const Arg *unknown : args.filtered(OPT_UNKNOWN)) {
    std::string flag = unknown->getAsString(args), nearest;
    std::string message = fmt::format("dlc {} has no flag '{}'", name, flag);
    if (table.findNearest(flag, nearest, visible) <= 2 && !nearest.empty())
      message += fmt::format("; did you mean '{}'?", llvm::StringRef(nearest).rtrim('='));
    else
      message += fmt::format("; `dlc {} --help` lists them", name);
    return wrong(message);
  }
  if (args.hasArg(OPT_help)) {
    printVerbHelp(*verb, io.out);
    return kExitOk;
  }
  if (missingCount != 0)
    return wrong(fmt::format("{} needs a value", llvm::StringRef(args.getArgString(missingIndex))));
  if (const Arg *flag = findSwallowedFlag(args))
    return wrong(fmt::format("{0} needs a value; '{1}' is a flag (a value that begins so is given as {0}{2}{1})", flag->getSpelling(),
                             flag->getValue(), flag->getSpelling().starts_with("--") ? "=" : ""));
  if (const Arg *later = args.getLastArg(OPT_Later)) {
    io.err << fmt::format("error: {} is not available in this version\n", llvm::StringRef(later->getSpelling()).rtrim('='));
    return kExitFailed;
  }
  return verb->run(Invocation{io, args, args.getAllArgValues(OPT_INPUT)});
}

} // namespace dlc
