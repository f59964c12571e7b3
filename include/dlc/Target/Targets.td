// Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The processors that dlc knows: one record each. Features are names of DLCRT_FOREACH_X86_FEATURE and ..._AARCH64_FEATURE in
// dlcrt/format.h; a feature without a bit there is not used. Caches are those of the usual server part of the family.

#ifndef DLC_TARGET_TARGETS
#define DLC_TARGET_TARGETS

include "llvm/TableGen/SearchableTable.td"

class Arch<string name> { string Name = name; }
def X86_64 : Arch<"X86_64">;
def AArch64 : Arch<"AArch64">;

class Processor<string name, Arch arch, list<string> features> {
  string Name = name;            // after "cpu:"
  string ArchName = arch.Name;   // of enum TargetArch
  string TuneCpu = name;         // LLVM's name
  string Features = !interleave(features, ",");
  bit Generic = 0;               // a level, not a processor: what an unknown host is resolved to
  bits<16> L1KiB = 32;           // data, per core
  bits<16> L2KiB = 512;          // per core
  bits<16> L3KiB = 2048;         // one core's share
  bits<16> Cores = 8;
}

def ProcessorTable : GenericTable {
  let FilterClass = "Processor";
  let CppTypeName = "ProcessorRecord";
  let Fields = ["Name", "ArchName", "TuneCpu", "Features", "Generic", "L1KiB", "L2KiB", "L3KiB", "Cores"];
}

// --- x86-64 -----------------------------------------------------------------------------------------------------------

defvar V2 = ["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"];
defvar V3 = !listconcat(V2, ["avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"]);
defvar V4 = !listconcat(V3, ["avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"]);
defvar IceLake = !listconcat(V4, ["avx512vnni", "avx512vbmi"]);
defvar SapphireRapids = !listconcat(IceLake, ["avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-int8", "amx-bf16"]);
defvar Zen4 = !listconcat(IceLake, ["avx512bf16"]);

class Level<string name, list<string> features> : Processor<name, X86_64, features> { let Generic = 1; }
def : Level<"x86-64-v2", V2> { let TuneCpu = "x86-64-v2"; let L2KiB = 256; }
def : Level<"x86-64-v3", V3> { let TuneCpu = "x86-64-v3"; }
def : Level<"x86-64-v4", V4> { let TuneCpu = "x86-64-v4"; let L2KiB = 1024; }

class Intel<string name, list<string> features, int l1 = 32, int l2 = 256> : Processor<name, X86_64, features> {
  let L1KiB = l1;
  let L2KiB = l2;
}
def : Intel<"haswell", V3>;
def : Intel<"skylake", V3>;
def : Intel<"skylake-avx512", V4, 32, 1024>;
def : Intel<"cascadelake", !listconcat(V4, ["avx512vnni"]), 32, 1024>;
def : Intel<"icelake-server", IceLake, 48, 1280>;
def : Intel<"alderlake", !listconcat(V3, ["avxvnni"]), 48, 1280>;
def : Intel<"sapphirerapids", SapphireRapids, 48, 2048>;
def : Intel<"emeraldrapids", SapphireRapids, 48, 2048>;
def : Intel<"graniterapids", !listconcat(SapphireRapids, ["amx-fp16"]), 48, 2048>;

class Zen<string name, list<string> features, int l1 = 32, int l2 = 512> : Processor<name, X86_64, features> {
  let L1KiB = l1;
  let L2KiB = l2;
  let L3KiB = 4096;
}
def : Zen<"znver2", V3>;
def : Zen<"znver3", V3>;
def : Zen<"znver4", Zen4, 32, 1024>;
def : Zen<"znver5", !listconcat(Zen4, ["avxvnni"]), 48, 1024>;

// --- AArch64 ----------------------------------------------------------------------------------------------------------

def : Processor<"aarch64", AArch64, ["neon"]> {
  let Generic = 1;
  let TuneCpu = "generic";
  let L1KiB = 64;
  let L3KiB = 1024;
}

#endif
