# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops of a dlc text compute nothing but shapes."""

import re

# Operands from this one on say how large or where, and are used up when shapes are inferred.
FIRST_SHAPE_OPERAND = {"reshape": 1, "expand": 1, "slice": 1, "pad": 1, "tile": 1, "iota": 0}
VALUE = re.compile(r"%[\w$.-]+")


def shape_only(text):
    """The lines, first to last. A condition of dlc.if is no shape."""
    ops, readers, conditions = [], {}, set()
    for line in text.splitlines():
        found = re.match(r"\s*(?:(%.*?) = )?dlc\.(\w+)(.*)", line)
        if not found:
            if line.strip().startswith("return"):
                for value in VALUE.findall(line):
                    readers.setdefault(value, []).append(("return", 0))
            continue
        results, name, rest = found.groups()
        operands = VALUE.findall(rest.split(" : ")[0] if name != "slice" else rest)
        for i, value in enumerate(operands):
            readers.setdefault(value, []).append((len(ops), i))
        if name == "if":
            conditions.update(operands[:1])
        ops.append((line.strip(), name, [r for r in VALUE.findall(results or "")]))
    useless = set()
    for number in range(len(ops) - 1, -1, -1):
        line, name, results = ops[number]
        if name in ("constant", "from_dims", "if") or not results:
            continue

        def is_shape(reader, position):
            if reader == "return":
                return False
            other = ops[reader][1]
            return reader in useless or other in ("read", "check") or position >= FIRST_SHAPE_OPERAND.get(other, 99)

        if not conditions.intersection(results) and all(is_shape(*use) for result in results for use in readers.get(result, [])):
            useless.add(number)
    return [ops[number][0] for number in sorted(useless)]
