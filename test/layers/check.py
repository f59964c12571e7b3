#!/usr/bin/env python3
"""Checks who sees whom: the walls of docs/architecture.md, on what the sources include and on what the build links.

    test/layers/check.py [--build build/dev] [--json FILE] [--filter TEXT]

Reads the working tree (and <build>/link-graph.txt, which configuring writes), prints every violation as
`file:line: [rule] message`, and checks itself: for each rule a tree with one violation seeded, which must be caught.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIB = ["Support", "IR", "Target", "Plan", "Transforms", "Lowering", "Pipeline"]

# Which folders of include/dlc the code of a zone may include, beside its own. One header named: that header only.
BELOW = {
    "lib/Support": [],
    "lib/IR": ["Support"],
    "lib/Target": ["Support"],
    "lib/Plan": ["Support", "Target", "IR"],
    "lib/Transforms": ["Support", "Target", "IR"],
    "lib/Lowering": ["Support", "Target", "IR", "Plan"],
    "lib/Pipeline": ["Support", "Target", "IR", "Plan", "Transforms", "Lowering"],
    "frontends": LIB,
    "autotune": LIB,
    "backends": ["Support", "Target", "Plan", "IR/KernelOps.h", "IR/DimExpr.h"],
    "runtime": [],
    "dlcrt": [],
    "tools": LIB + ["Frontends", "Autotune", "Backends"],
}
# Which zones' targets a target may link, beside its own. (A library cannot be linked in part: Plan and backends link all of IR.)
LINKS = {
    "lib/Support": [],
    "lib/IR": ["lib/Support"],
    "lib/Target": ["lib/Support"],
    "lib/Plan": ["lib/Support", "lib/Target", "lib/IR"],
    "lib/Transforms": ["lib/Support", "lib/Target", "lib/IR"],
    "lib/Lowering": ["lib/Support", "lib/Target", "lib/IR", "lib/Plan"],
    "lib/Pipeline": [f"lib/{name}" for name in LIB],
    "frontends": [f"lib/{name}" for name in LIB],
    "autotune": [f"lib/{name}" for name in LIB] + ["runtime"],
    "backends": ["lib/Support", "lib/Target", "lib/Plan", "lib/IR"],
    "runtime": [],
    "tools": [f"lib/{name}" for name in LIB] + ["frontends", "autotune", "backends", "runtime"],
}
# Headers of dlcrt a zone may include; None: all.
DLCRT = {"backends": ["kernel_abi.h"]}

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "NOTICE", "dev",
    "include", "lib", "tools", "frontends", "backends", "runtime", "test", "autotune", "docs",
}

# Headers of the C++ library that are templates and declarations only, and need nothing of libstdc++ at link or run time.
FREESTANDING = {
    "algorithm", "array", "atomic", "bit", "cassert", "cerrno", "cfloat", "cinttypes", "climits", "cmath", "cstdarg", "cstddef",
    "cstdint", "cstdio", "cstdlib", "cstring", "ctime", "initializer_list", "iterator", "limits", "new", "numeric", "tuple",
    "type_traits", "utility",
}

RULES = {
    "top-level": "the top level of the tree is fixed",
    "folder-name": "no folder called Common, Utils or Misc",
    "below": "code includes only what lies below it (architecture, 'Who may see whom')",
    "private-header": "a header outside include/ is its folder's own",
    "siblings": "frontends, autotune, backends, and the backends among themselves, do not see each other",
    "wall": "compiler and runtime meet only in include/dlcrt",
    "protobuf": "ONNX and protobuf headers only in frontends/onnx",
    "kernel-abi": "backends see dlcrt/kernel_abi.h and no other header of dlcrt",
    "plain-c": "headers of include/dlcrt are plain C, except dlcrt.hpp",
    "runtime-library": "the runtime uses no header of the C++ library that brings libstdc++ in",
    "runtime-language": "the runtime has no virtual functions, exceptions, dynamic_cast or typeid",
    "command-line": "cl::opt, getenv, exit and std::cerr only in tools/ and test/",
    "link-below": "a target links only what lies below it",
    "link-wall": "no target of the compiler links the runtime, nor the other way round (tools and autotune may)",
    "link-mlir": "MLIR and LLVM are linked as the two shared libraries, through dlc_mlir, never as archives",
    "link-onnx": "dlc_onnx (ONNX, protobuf) is linked only by frontends/onnx",
}

SOURCE = {".h", ".hpp", ".c", ".cc", ".cpp", ".td"}
INCLUDE = re.compile(r'^[ \t]*(?:#[ \t]*include|include)[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
COMMAND_LINE = re.compile(
    r"\bcl::(?:opt|list|bits|alias)\b|\b(?:secure_)?getenv\s*\(|\bProcess::GetEnv\s*\(|\bstd::cerr\b"
    r"|(?:(?<![\w.:>])|\bstd::|(?<![\w:])::)(?:_exit|_Exit|quick_exit|exit)\s*\(")
RUNTIME_LANGUAGE = re.compile(r"\b(virtual|throw|try|catch|dynamic_cast|typeid)\b")


def zone_of(path):
    """The zone a file of the tree belongs to: lib/IR, backends, runtime, ...; None: not part of the walls."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "lib" and len(parts) > 1:
        return f"lib/{parts[1]}"
    if parts[:2] == ("include", "dlcrt"):
        return "dlcrt"
    if parts[:2] == ("include", "dlc") and len(parts) > 2:
        return {"Frontends": "frontends", "Autotune": "autotune", "Backends": "backends"}.get(parts[2], f"lib/{parts[2]}")
    if parts[0] in ("frontends", "autotune", "backends", "runtime", "tools", "test"):
        return parts[0]
    return None


def side_of(zone):
    """On which side of the wall a zone lives."""
    if zone == "runtime":
        return "runtime"
    return "compiler" if zone and (zone.startswith("lib/") or zone in ("frontends", "backends")) else "both"


def code_only(text, keep_strings=False):
    """The text with comments (and strings) blanked out, lines kept."""
    def blank(match):
        word = match.group()
        if word[0] == '"' and keep_strings:
            return word
        return re.sub(r"[^\n]", " ", word)

    return re.sub(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def files_of(root):
    """What is or would be in git, else everything."""
    git = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True)
    if git.returncode == 0 and (root / ".git").exists():
        names = [name for name in git.stdout.split("\0") if name]
    else:
        made = {"build", ".deps", ".venv", "__pycache__"}
        names = [str(path.relative_to(root)) for top in root.iterdir() if top.name not in made
                 for path in ([top] if top.is_file() else top.rglob("*")) if path.is_file() and not made & set(path.parts)]
    return sorted(name for name in names if (root / name).is_file())


class Checker:
    def __init__(self, root):
        self.root = root
        self.found = []  # (file, line, rule, message)

    def report(self, where, line, rule, message):
        self.found.append((where, line, rule, message))

    def check_tree(self, names):
        for entry in sorted({name.split("/")[0] for name in names}):
            if entry not in TOP_LEVEL and not entry.startswith("."):
                self.report(entry, 1, "top-level", f"'{entry}' does not belong at the top level")
        for folder in sorted({str(pathlib.PurePosixPath(name).parent) for name in names}):
            if re.fullmatch(r"(?i)commons?|utils?|utilities|misc", pathlib.PurePosixPath(folder).name):
                self.report(folder, 1, "folder-name", f"'{folder}' says nothing about what is in it")

    def check_include(self, name, line, zone, text, quoted):
        own = pathlib.PurePosixPath(name)
        onnx = re.match(r"(onnx|google/protobuf)/", text) or text.endswith(".pb.h")
        if onnx and not name.startswith(("frontends/onnx/", "test/frontends/")):
            self.report(name, line, "protobuf", f"includes {text}")
        if zone in (None, "test"):
            return
        if name == "tools/dlcrt-run.cpp" and re.match(r"(dlc|mlir|llvm|lld)/", text):
            self.report(name, line, "wall", f"includes {text}, and is the proof that the runtime stands alone")
            return
        # A private header: next to the file, or reached by a path.
        target = None
        if quoted and not text.startswith(("dlc/", "dlcrt/")):
            for base in (own.parent, pathlib.PurePosixPath(".")):
                path = (self.root / base / text).resolve()
                if path.is_file() and self.root in path.parents:
                    target = str(path.relative_to(self.root))
                    break
        elif text.startswith(("dlc/", "dlcrt/")):
            target = f"include/{text}"
        if target is None:
            if zone in ("runtime", "dlcrt") and re.match(r"(mlir|llvm|lld|llvm-c|mlir-c)/", text):
                self.report(name, line, "wall", f"includes {text} of the compiler's world")
            return
        there = zone_of(target)
        private = not target.startswith("include/")
        if private:
            if there == zone and (zone != "backends" or own.parts[:2] == pathlib.PurePosixPath(target).parts[:2]):
                return
            if zone == "tools" and there in ("frontends", "autotune", "backends"):
                return
        if "runtime" in (side_of(zone), side_of(there)) and zone != there and there != "dlcrt":
            self.report(name, line, "wall", f"includes {target}")
        elif zone != there and {zone, there} <= {"frontends", "autotune", "backends"} or (private and zone == there == "backends"):
            self.report(name, line, "siblings", f"includes {target}")
        elif private:
            self.report(name, line, "private-header", f"includes {target}, which is private to {there}")
        elif there == "dlcrt":
            header = target.removeprefix("include/dlcrt/")
            if header not in DLCRT.get(zone, [header]):
                self.report(name, line, "kernel-abi", f"includes {text}")
        elif there != zone:
            inside = target.removeprefix("include/dlc/")
            if zone == "dlcrt":
                self.report(name, line, "wall", f"includes {text}")
            elif inside not in BELOW.get(zone, []) and inside.split("/")[0] not in BELOW.get(zone, []):
                self.report(name, line, "below", f"{zone} does not see {text}")

    def check_file(self, name):
        zone = zone_of(name)
        text = (self.root / name).read_text(errors="replace")
        code = code_only(text, keep_strings=True)
        line_of = lambda at: code.count("\n", 0, at) + 1
        td = name.endswith(".td")
        for match in INCLUDE.finditer(code):
            if td == match.group().lstrip().startswith("#"):
                continue
            quoted, angle = match.groups()
            included, line = quoted or angle, line_of(match.start())
            self.check_include(name, line, zone, included, quoted is not None)
            if zone == "dlcrt" and not name.endswith(".hpp") and not re.fullmatch(r"[\w/]+\.h", included):
                self.report(name, line, "plain-c", f"includes {included}")
            if zone == "runtime" and angle and "." not in included and included not in FREESTANDING:
                self.report(name, line, "runtime-library", f"includes <{included}>")
        if td:
            return
        code = code_only(text)
        if zone not in ("tools", "test", None):
            for match in COMMAND_LINE.finditer(code):
                self.report(name, line_of(match.start()), "command-line", f"uses {match.group().rstrip('( ').strip()}")
        if zone == "runtime" and not name.startswith("runtime/python/"):
            for match in RUNTIME_LANGUAGE.finditer(code):
                self.report(name, line_of(match.start()), "runtime-language", f"uses {match.group()}")

    def check_links(self, graph):
        """Lines of link-graph.txt: target|folder|link,link."""
        targets = {}
        for row in graph.read_text().splitlines():
            target, folder, links = row.split("|")
            targets[target] = (folder, [re.sub(r"^\$<LINK_ONLY:(.*)>$", r"\1", link) for link in links.split(",") if link])
        for target, (folder, links) in targets.items():
            if folder == ".":
                continue
            where, zone = f"{folder}/CMakeLists.txt", zone_of(folder + "/CMakeLists.txt")
            for link in dict.fromkeys(links):
                there = zone_of(targets[link][0] + "/x") if link in targets and targets[link][0] != "." else None
                if re.match(r"(LLVM|MLIR|lld)\w*$", link):
                    self.report(where, 1, "link-mlir", f"{target} links {link}")
                if link in ("dlc_onnx", "protobuf::libprotobuf") or link.startswith("ONNX::"):
                    if not folder.startswith(("frontends/onnx", "test/frontends")):
                        self.report(where, 1, "link-onnx", f"{target} links {link}")
                if zone in (None, "test"):
                    continue
                if target == "dlcrt-run" and (link in ("dlc_mlir", "dlc_lld") or there not in (None, "runtime")):
                    self.report(where, 1, "link-wall", f"{target} links {link}, and is the proof that the runtime stands alone")
                    continue
                if link in ("dlc_mlir", "dlc_lld") and zone == "runtime":
                    self.report(where, 1, "link-wall", f"{target} links {link}")
                elif there is None or there == zone and (zone != "backends" or targets[link][0] == folder):
                    continue
                elif "runtime" in (side_of(zone), side_of(there)) and there not in LINKS.get(zone, []):
                    self.report(where, 1, "link-wall", f"{target} links {link}")
                elif there not in LINKS.get(zone, []):
                    self.report(where, 1, "link-below", f"{target} ({zone}) links {link} ({there})")

    def run(self, graph=None):
        names = files_of(self.root)
        self.check_tree(names)
        for name in names:
            if pathlib.PurePosixPath(name).suffix in SOURCE:
                self.check_file(name)
        if graph and graph.is_file():
            self.check_links(graph)
        return self.found


# --- does it catch what it should? ------------------------------------------------------------------------------------

# A tree in which everything is as it should be, for all that could be taken for a violation.
CLEAN = {
    "include/dlc/Support/Diagnostics.h": "#include <string>\n",
    "include/dlc/IR/DimExpr.h": '#include "dlc/Support/Diagnostics.h"\n',
    "include/dlc/IR/KernelOps.h": "",
    "include/dlc/IR/Dialect.h": "",
    "include/dlc/Plan/Plan.h": '#include "dlc/IR/DimExpr.h"\n',
    "include/dlc/Target/Target.h": "",
    "include/dlc/Frontends/Onnx.h": '#include "dlc/IR/Dialect.h"\n',
    "include/dlc/Autotune/Tuner.h": "",
    "include/dlcrt/runtime.h": "#include <stdint.h>\n",
    "include/dlcrt/format.h": '#include "dlcrt/runtime.h"\n',
    "include/dlcrt/kernel_abi.h": "",
    "include/dlcrt/dlcrt.hpp": "#include <vector>\n",
    "include/dlc/IR/Dlc.td": 'include "mlir/IR/OpBase.td"\n',
    "lib/IR/Private.h": "",
    "lib/IR/Dialect.cpp": '#include "Private.h"\n#include "dlc/IR/Dialect.h"\n// getenv("X"), std::cerr\n'
                          'const char *s = "cl::opt exit(1)";\nvoid f() { block.exit(1); on_exit(2); region->exit(); }\n',
    "lib/Plan/Serialize.cpp": '#include "dlcrt/format.h"\n#include "dlc/Target/Target.h"\n',
    "lib/Pipeline/Pipeline.cpp": '#include "dlc/Plan/Plan.h"\n',
    "frontends/onnx/Importer.cpp": '#include "onnx/onnx_pb.h"\n#include "dlc/Frontends/Onnx.h"\n',
    "autotune/Search.cpp": '#include "dlcrt/runtime.h"\n#include "dlc/Autotune/Tuner.h"\n',
    "backends/cpu/Private.h": "",
    "backends/cpu/CpuBackend.cpp": '#include "Private.h"\n#include "dlc/IR/KernelOps.h"\n#include "dlcrt/kernel_abi.h"\n',
    "backends/cuda/Private2.h": "",
    "runtime/Module.h": "",
    "runtime/Module.cpp": '#include "Module.h"\n#include "dlcrt/format.h"\n#include <atomic>\n#include <sys/mman.h>\n',
    "runtime/cpu/CpuDevice.cpp": '#include "../Module.h"\n#include "cpu/Other.h"\n',
    "tools/dlc.cpp": '#include "dlc/Frontends/Onnx.h"\n#include "dlcrt/runtime.h"\nint main() { getenv("A"); exit(1); }\n',
    "test/runtime/ModuleTest.cpp": '#include "../../runtime/Module.h"\n#include <vector>\n',
    "README.md": "", "CMakeLists.txt": "", ".gitignore": "",
}
CLEAN_LINKS = """dlc_mlir|.|MLIR,LLVM
dlc_onnx|.|ONNX::onnx
dlc_lld|.|lldELF
dlcrt|runtime|m,c
dlcrt_pool|runtime|Threads::Threads,$<LINK_ONLY:m>
dlcSupport|lib/Support|dlc_mlir
dlcIR|lib/IR|dlcSupport,dlc_mlir
dlcPlan|lib/Plan|dlcIR,dlcSupport
dlcOnnx|frontends/onnx|dlcIR,dlc_onnx
dlcAutotune|autotune|dlcIR,dlcrt
dlcCpu|backends/cpu|dlcPlan,dlc_lld
dlcCuda|backends/cuda|dlcPlan
dlc|tools|dlcOnnx,dlcAutotune,dlcCpu,dlcrt
RuntimeTests|test/runtime|dlcrt,GTest::gtest
"""
# (rule, file, its text). The violation stands in the text's last line; for links, the last line is one row of the graph.
SEEDS = [
    ("top-level", "scripts/x.sh", "echo"),
    ("top-level", "cmake/x.cmake", ""),
    ("folder-name", "lib/Utils/x.cpp", ""),
    ("below", "lib/Support/a.cpp", '#include "dlc/IR/Dialect.h"'),
    ("below", "lib/IR/a.cpp", '\n\n#include "dlc/Plan/Plan.h"'),
    ("below", "lib/IR/b.cpp", '#include "dlc/Plan/Plan.h"'),
    ("below", "lib/Target/a.cpp", '#include "dlc/IR/DimExpr.h"'),
    ("below", "lib/Transforms/a.cpp", '#include "dlc/Plan/Plan.h"'),
    ("below", "lib/Lowering/a.cpp", '#include "dlc/Transforms/Passes.h"'),
    ("below", "lib/Pipeline/a.cpp", '#include "dlc/Frontends/Onnx.h"'),
    ("below", "include/dlc/IR/A.td", 'include "dlc/Plan/Plan.td"'),
    ("below", "backends/cpu/a.cpp", '#include "dlc/IR/Dialect.h"'),
    ("below", "backends/cpu/b.cpp", '#include "dlc/Lowering/Passes.h"'),
    ("private-header", "lib/Plan/b.cpp", '#include "../IR/Private.h"'),
    ("private-header", "tools/a.cpp", '#include "../lib/IR/Private.h"'),
    ("siblings", "autotune/a.cpp", '#include "dlc/Frontends/Onnx.h"'),
    ("siblings", "frontends/onnx/a.cpp", '#include "dlc/Autotune/Tuner.h"'),
    ("siblings", "frontends/onnx/b.cpp", '#include "../../backends/cpu/Private.h"'),
    ("siblings", "backends/cuda/a.cpp", '#include "../cpu/Private.h"'),
    ("wall", "lib/Plan/c.cpp", '#include "../../runtime/Module.h"'),
    ("wall", "tools/b.cpp", '#include "../runtime/Module.h"'),
    ("wall", "runtime/a.cpp", '#include "dlc/Plan/Plan.h"'),
    ("wall", "runtime/b.cpp", '#include "llvm/ADT/SmallVector.h"'),
    ("wall", "include/dlcrt/a.h", '#include "dlc/Plan/Plan.h"'),
    ("wall", "tools/dlcrt-run.cpp", '#include "dlc/Support/Diagnostics.h"'),
    ("protobuf", "lib/IR/b.cpp", "#include <onnx/onnx_pb.h>"),
    ("protobuf", "include/dlc/Frontends/B.h", '#include "onnx/onnx-ml.pb.h"'),
    ("protobuf", "tools/c.cpp", "#include <google/protobuf/message.h>"),
    ("kernel-abi", "backends/cpu/c.cpp", '#include "dlcrt/runtime.h"'),
    ("plain-c", "include/dlcrt/b.h", "#include <cstdint>"),
    ("runtime-library", "runtime/c.cpp", "#include <vector>"),
    ("runtime-library", "runtime/cpu/d.cpp", "#include <string>"),
    ("runtime-library", "runtime/pool/e.cpp", "#include <thread>"),
    ("runtime-language", "runtime/f.cpp", "struct A { virtual void f(); };"),
    ("runtime-language", "runtime/g.cpp", "void f() { throw 1; }"),
    ("command-line", "lib/Transforms/b.cpp", "static llvm::cl::opt<bool> x;"),
    ("command-line", "runtime/h.cpp", 'auto *p = getenv("DLC");'),
    ("command-line", "backends/cpu/d.cpp", "void f() { exit(1); }"),
    ("command-line", "frontends/onnx/c.cpp", "void f() { std::exit(1); }"),
    ("command-line", "lib/IR/c.cpp", "void f() { ::exit(1); }"),
    ("command-line", "autotune/b.cpp", 'void f() { std::cerr << "x"; }'),
    ("link-below", None, "dlcIR2|lib/IR|dlcPlan"),
    ("link-below", None, "dlcOnnx2|frontends/onnx|dlcCpu"),
    ("link-below", None, "dlcCuda2|backends/cuda|dlcCpu"),
    ("link-wall", None, "dlcPlan2|lib/Plan|dlcrt"),
    ("link-wall", None, "dlcrt2|runtime|dlcSupport"),
    ("link-wall", None, "dlcrt3|runtime|dlc_mlir"),
    ("link-wall", None, "dlcrt-run|tools|dlcSupport"),
    ("link-wall", None, "dlcrt-run|tools|dlc_mlir"),
    ("link-mlir", None, "dlcIR3|lib/IR|MLIRFuncDialect"),
    ("link-mlir", None, "dlc2|tools|LLVMSupport"),
    ("link-onnx", None, "dlcIR4|lib/IR|dlc_onnx"),
    ("link-onnx", None, "dlc3|tools|ONNX::onnx"),
]


def self_test():
    """Yields (name, what went wrong or None)."""
    def run(extra=None, row=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in {**CLEAN, **(extra or {})}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            (root / ".graph").write_text(CLEAN_LINKS + row)
            return Checker(root).run(root / ".graph")

    found = run()
    yield "a clean tree is clean", "\n".join(map(str, found)) or None
    for rule, name, text in SEEDS:
        found = run({name: text}) if name else run(row=text + "\n")
        if name is None:
            where, line = text.split("|")[1] + "/CMakeLists.txt", 1
        elif rule == "top-level":
            where, line = name.split("/")[0], 1
        elif rule == "folder-name":
            where, line = str(pathlib.PurePosixPath(name).parent), 1
        else:
            where, line = name, text.count("\n") + 1
        ok = [f[:3] for f in found] == [(where, line, rule)]
        yield f"catches [{rule}] in {name or text}", None if ok else f"expected {where}:{line} and nothing else, found {found}"
    untested = set(RULES) - {seed[0] for seed in SEEDS}
    yield "each rule has a seeded violation", f"not {sorted(untested)}" if untested else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--jobs", help="taken for uniformity; one is enough")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="taken for uniformity; this is quick")
    parser.add_argument("--filter", metavar="TEXT", help="only checks whose name contains TEXT")
    options = parser.parse_args()

    graph = options.build / "link-graph.txt"
    found = Checker(ROOT).run(graph)
    results = []  # (name, problem or None)
    for rule, meaning in RULES.items():
        if rule.startswith("link-") and not graph.is_file():
            print(f"{rule}: not checked, {graph} is not there (configure first)")
            continue
        rows = [f"{where}:{line}: [{rule}] {message}" for where, line, r, message in found if r == rule]
        results.append((f"{rule}: {meaning}", "\n".join(rows) or None))
    results += [(f"self-test: {name}", problem) for name, problem in self_test()]
    if options.filter:
        results = [r for r in results if options.filter.lower() in f"layers {r[0]}".lower()]
    bad = [(name, problem) for name, problem in results if problem]
    for name, problem in bad:
        print(f"{name}\n{problem}\n")
    print(f"{len(results) - len(bad)} passed, {len(bad)} failed")
    if options.json:
        options.json.write_text(json.dumps({"passed": len(results) - len(bad), "failed": len(bad),
                                            "unexpected": [f"{name.replace(': ', ', ')}: {problem}" for name, problem in bad]}, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
