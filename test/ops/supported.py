# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes and reads docs/operators.md, the table of what dlc takes."""

import re

import driver
import ops

FILE = driver.ROOT / "docs" / "operators.md"
SHORT = {"double": "f64", "float": "f32", "float16": "f16", "bfloat16": "bf16", "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz",
         "float8e5m2": "f8e5m2", "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float6e2m3": "f6e2m3",
         "float6e3m2": "f6e3m2", "float4e2m1": "f4e2m1", "int64": "i64", "int32": "i32",
         "int16": "i16", "int8": "i8", "int4": "i4", "int2": "i2", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "uint4": "u4",
         "uint2": "u2", "bool": "bool", "string": "string", "complex64": "c64", "complex128": "c128"}
GROUPS = {  # a name for types that are all there
    "f8": ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"), "i8..i64": ("i64", "i32", "i16", "i8"), "u8..u64": ("u64", "u32", "u16", "u8"),
    "complex": ("c64", "c128"),
}
HEAD = """# Which operators dlc takes

<!-- Generated: test/ops/table.py --build build/dev --update -->

Found by compiling, for each line, random nodes of each element type that ONNX's definition allows, with named dims (test/ops). *Taken*: nodes
of this type compile; what they compute is compared with two references by test/ops/run.py. What is not taken is refused with a message
that names the node; so is what is listed under *Limits*. Opsets 6 to {newest}; a line is for the opsets that mean the same by the
operator. The type is that of the data; other inputs have any type that the definition allows.

`i8..i64`: i8 i16 i32 i64, `u8..u64` likewise; `f8`: f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz; `complex`: c64 c128.

| operator | opsets | taken | not |
| --- | --- | --- | --- |
"""


def plain(reason):
    """A message without the names that run.py gives to values."""
    return re.sub(r"'n\d+\w*'", "'...'", reason)


def short(dtype):
    """The short name of a NumPy type."""
    return next(SHORT[name] for name, (_, known) in ops.type_names().items() if known == dtype)


def list_types(names):
    names = sorted(names, key=list(SHORT.values()).index)
    for group, members in GROUPS.items():
        if set(members) <= set(names):
            at = names.index(members[0])
            names[at:at + 1] = [group]
            names = [n for n in names if n not in members]
    return " ".join(names)


def expand_types(text):
    return {name for word in text.split() for name in GROUPS.get(word, (word,))}


def span(first, last):
    return f"{first}" if first == last else f"{first}-" if last == ops.NEWEST else f"{first}-{last}"


def contrib_section(contrib):
    """{(domain, operator): types taken} of operators that are not of ONNX."""
    text = "\n## Operators of ONNX Runtime\n\nWhat its optimizer and exporters for it write, domain `com.microsoft` (version 1) where no other is named. "
    text += "Which forms of them are\ntested, and what is refused, says test/ops/test_contrib.py.\n\n| operator | taken |\n| --- | --- |\n"
    for (domain, op), types in sorted(contrib.items(), key=lambda item: item[0][1].lower()):
        text += f"| {op}{'' if domain else ' (domain `ai.onnx`)'} | {list_types(types)} |\n"
    return text


def write(measured, cases, contrib):
    """The file's text. measured: {(op, first, last): {"taken": types, "not": types, "limits": messages}};
    cases: {op: (number compiled, number of cases)}; contrib: see contrib_section"""
    lines, limits, nothing = [], [], []
    for op in sorted({key[0] for key in measured}, key=str.lower):
        rows = []
        for (_, first, last), result in sorted((k, v) for k, v in measured.items() if k[0] == op):
            row = list_types(result["taken"]), list_types(result["not"])
            if rows and rows[-1][2] == row:
                rows[-1][1] = last
            else:
                rows.append([first, last, row])
        if not any(taken for _, _, (taken, _) in rows):
            nothing.append(op)
            continue
        lines += [" ".join(f"| {op} | {span(first, last)} | {taken} | {refused} |".split()) + "\n" for first, last, (taken, refused) in rows]
        found = sorted({text for key, result in measured.items() if key[0] == op for text in result["limits"]})
        limits += [f"- {op}: {text}\n" for text in found]
    nothing += [op for op, (good, _) in cases.items() if not good]
    others = [f"{op} ({good} of {count})" for op, (good, count) in sorted(cases.items()) if good]
    text = HEAD.format(newest=ops.NEWEST) + "".join(lines)
    text += "\n## Limits\n\n" + "".join(limits or ["None.\n"])
    text += "\n## Other operators\n\nHow many of the onnx package's own cases compile: " + (", ".join(others) or "none") + ".\n"
    text += contrib_section(contrib)
    return text + "\n## Not supported\n\n" + (", ".join(sorted(nothing, key=str.lower)) or "None") + ".\n"


class Table:
    """What the file says."""

    def __init__(self):
        self.types = {}  # {(operator, opset): {type: whether it is taken}}
        self.limits = {}  # {operator: messages}
        for line in FILE.read_text().splitlines():
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if limit := re.fullmatch(r"- (\w+): (.*)", line):
                self.limits.setdefault(limit[1], set()).add(limit[2])
            if len(cells) != 4 or not re.fullmatch(r"\d+(-\d*)?", cells[1]):
                continue
            first, dash, last = cells[1].partition("-")
            kinds = {name: cell == cells[2] for cell in cells[2:] for name in expand_types(cell)}
            for opset in range(int(first), (int(last) if last else ops.NEWEST if dash else int(first)) + 1):
                self.types[cells[0], opset] = kinds

    def takes(self, op, opset, dtype):
        return self.types.get((op, opset), {}).get(short(dtype), False)
