// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

//
// The flags of `dlc`. A flag is visible to the verbs in its list and unknown to the others.

include "llvm/Option/OptParser.td"

def CompileVerb : OptionVisibility;
def RunVerb : OptionVisibility;
def InspectVerb : OptionVisibility;
def DoctorVerb : OptionVisibility;
def OtherVerb : OptionVisibility; // version, help, serve
def BenchVerb : OptionVisibility;
def CompareVerb : OptionVisibility;

/// Flags of the contract (docs/cli.md) that this version does not have: accepted, and refused with a clear message.
def Later : OptionGroup<"later">;

class On<list<OptionVisibility> verbs> : Visibility<verbs>;

class Switch<string name, string help, list<OptionVisibility> verbs>
    : Flag<["--"], name>, HelpText<help>, On<verbs>;

/// --name VALUE and --name=VALUE
multiclass Value<string name, string meta, string help, list<OptionVisibility> verbs> {
  def NAME : Separate<["--"], name>, MetaVarName<meta>, HelpText<help>, On<verbs>;
  def NAME # _eq : Joined<["--"], name # "=">, Alias<!cast<Separate>(NAME)>, Flags<[HelpHidden]>, On<verbs>;
}
multiclass LaterValue<string name, list<OptionVisibility> verbs> {
  def NAME : Separate<["--"], name>, Group<Later>, Flags<[HelpHidden]>, On<verbs>;
  def NAME # _eq : Joined<["--"], name # "=">, Alias<!cast<Separate>(NAME)>, Flags<[HelpHidden]>, On<verbs>;
}
class LaterSwitch<string name, list<OptionVisibility> verbs>
    : Flag<["--"], name>, Group<Later>, Flags<[HelpHidden]>, On<verbs>;

defvar Compiles = [CompileVerb, RunVerb, BenchVerb, CompareVerb];
defvar Runs = [RunVerb, BenchVerb, CompareVerb];

def help : Switch<"help", "This text", [CompileVerb, RunVerb, InspectVerb, DoctorVerb, OtherVerb, BenchVerb, CompareVerb]>;
def h : Flag<["-"], "h">, Alias<help>, Flags<[HelpHidden]>, On<[CompileVerb, RunVerb, InspectVerb, DoctorVerb, OtherVerb, BenchVerb, CompareVerb]>;
def verbose : Flag<["-"], "v">, HelpText<"More messages: remarks, variants">, On<Compiles>;
def json : Switch<"json", "Report as one JSON object on stdout", [CompileVerb, InspectVerb, DoctorVerb, BenchVerb, CompareVerb]>;

// --- compile
def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"FILE">, On<[CompileVerb]>,
        HelpText<"Where the result goes; - is stdout. Its suffix says what it is: .dlcm, .o or .a (for a program that has the module inside; a header .h goes beside it), .mlir, .ll, .s">;
defm emit : Value<"emit", "KIND", "What to make, whatever the suffix: dlcm (module), o, a (module as an object or an archive, with a header), mlir (the program's text after the last phase), llvm, asm", [CompileVerb]>;
defm target : Value<"target", "TARGET,...", "Targets, each a variant in the module: cpu, cpu:host, cpu:x86-64-v3, ... "
                    "(repeatable; compile: default the x86-64-v2 baseline and this machine; run, bench and compare: the variant to take)", [CompileVerb, RunVerb, DoctorVerb, BenchVerb, CompareVerb]>;
defm dim : Value<"dim", "NAME=...", "What a named dimension can be: NAME=8, NAME=1..512, NAME%8 (a multiple of 8); of a module, NAME=8 sizes random inputs, and the memory that inspect reports. Repeatable", [CompileVerb, RunVerb, BenchVerb, CompareVerb, InspectVerb]>;
defm shape : Value<"shape", "INPUT=DIMS", "The dims of an input, such as image=1x3x224x224; ? leaves a dim as it is. Repeatable", Compiles>;
defm function : Value<"function", "NAME", "Of a module with several functions, the one to run or to show; compile: NAME=FILE, a model that becomes the function "
                      "NAME (repeatable; without it, functions of several models are called as their files, one model's is called main)", [CompileVerb, RunVerb, InspectVerb, BenchVerb]>;
defm state : Value<"state", "INPUT=OUTPUT,...", "Inputs and outputs that are state, kept from run to run and no part of the signature: each output is Concat(input, x). "
                   "A * stands for the same text on both sides. auto: all pairs that there are", Compiles>;
defm precision : Value<"precision", "P", "fp32", Compiles>;
def no_fusion : Switch<"no-fusion", "Make every op a kernel of its own: slow, to find out whether fusion is to blame", Compiles>;
def no_winograd : Switch<"no-winograd", "Compute convolutions without Winograd's algorithm: a smaller module, slower, a little more exact", Compiles>;
defm jobs : Value<"jobs", "N", "Threads of the compiler; the result does not depend on it (default: as many as this process may use)", Compiles>;
defm stop_after : Value<"stop-after", "PHASE", "Write the program as text after this phase, weights beside it in a .weights file", [CompileVerb]>;
defm start_from : Value<"start-from", "PHASE", "The inputs are texts that --stop-after PHASE wrote; go on behind that phase", [CompileVerb]>;
defm dump_dir : Value<"dump-dir", "DIR", "Write the program as text after every phase into this folder", [CompileVerb]>;
def timing : Switch<"timing", "Time of each pass, to stderr", [CompileVerb]>;

// --- run
defm inputs : Value<"inputs", "DIR", "Folder with input_0.pb, input_1.pb, ... (ONNX TensorProto) or NAME.npy; what is missing takes its default", Runs>;
defm outputs : Value<"outputs", "DIR", "Where output_0.pb, ... (or NAME.npy) go; made if it is not there", [RunVerb]>;
defm format : Value<"format", "pb|npy", "How outputs are written (default: pb)", [RunVerb]>;
defm random : Value<"random", "SEED", "Make inputs from the signature instead of reading them (without --inputs bench does so with seed 1, and compare with the fp32 reference); dims that "
                    "nothing says are as small as they may be, but at least 1", Runs>;
defm threads : Value<"threads", "N", "Threads of the run, the main one included; 0 = as many as this process may use (default: 0)", Runs>;

defm state_capacity : Value<"state-capacity", "N", "Entries for which the state of a function that works on one has room (default: 1024 more than its length)", Runs>;

// --- bench
defm state_length : Value<"state-length", "N", "Entries of the state before each run, random numbers (default: 0)", [BenchVerb]>;
defm seconds : Value<"seconds", "S", "How long to measure, but at least 5 runs (default: 2)", [BenchVerb]>;
defm warmup : Value<"warmup", "S", "How long to run before that, but at least once (default: 0.5)", [BenchVerb]>;

def profile : Switch<"profile", "After that, say where the time of the fastest run goes: for each kernel and launch time, share, operations, bytes, and the nodes of the model", [BenchVerb]>;
defm trace : Value<"trace", "FILE", "Write that run as Chrome trace JSON (chrome://tracing, Perfetto)", [BenchVerb]>;

// --- compare
defm reference : Value<"reference", "DIR|fp32", "What the outputs should be: a folder with output_0.pb, ... or NAME.npy, or fp32, the model compiled without fusion for "
                       "the baseline target and run on the same inputs (default: fp32; a folder of that name is ./fp32)", [CompareVerb]>;
defm atol : Value<"atol", "X", "An element may differ by X + (--rtol) * |reference| (default: 1e-4). Elements that are no floats must be equal", [CompareVerb]>;
defm rtol : Value<"rtol", "X", "The part of the reference's element that it may differ by (default: 1e-3)", [CompareVerb]>;

// --- inspect
def verify : Switch<"verify", "Check the hashes of the constants too", [InspectVerb]>;
def plan : Switch<"plan", "Only the plan that runs, as text", [InspectVerb]>;

// --- of the contract, not yet there
defm hot : LaterValue<"hot", [CompileVerb]>;
defm db : LaterValue<"db", [CompileVerb]>;
defm tune : LaterValue<"tune", [CompileVerb]>;
defm calib : LaterValue<"calib", [CompileVerb]>;
defm precision_config : LaterValue<"precision-config", [CompileVerb]>;
defm cuda_driver : LaterValue<"cuda-driver", [CompileVerb, RunVerb, DoctorVerb, BenchVerb]>;
def html : LaterSwitch<"html", [InspectVerb]>;
