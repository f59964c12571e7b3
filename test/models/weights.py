# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads weights out of the formats in which models are handed around: safetensors and GGUF."""

import json
import math
import pathlib
import re
import struct

import numpy as np

SAFETENSORS_TYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}


def safetensors(path):
    """{name: array}. A length, a JSON header of that length, and the data that it describes."""
    data = pathlib.Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, about in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = about["data_offsets"]
            arrays[name] = np.frombuffer(data[begin + first : begin + last], SAFETENSORS_TYPES[about["dtype"]]).reshape(about["shape"])
    return arrays


# --- GGUF -------------------------------------------------------------------------------------------------------------

GGUF_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
GGUF_STRING, GGUF_ARRAY = 8, 9
GGUF_ALIGNMENT = 32

# Blocks of 32 numbers of a row: q4_1 has a scale, a least number, and 4 bits for each, the first 16 numbers in the low halves; q8_0 a scale
# and 8 bits for each.
Q4_1 = np.dtype([("scale", "<f2"), ("least", "<f2"), ("bits", "u1", 16)])
Q8_0 = np.dtype([("scale", "<f2"), ("bits", "i1", 32)])


def from_q4_1(blocks):
    numbers = np.concatenate([blocks["bits"] & 15, blocks["bits"] >> 4], axis=-1).astype(np.float32)
    return numbers * blocks["scale"].astype(np.float32)[..., None] + blocks["least"].astype(np.float32)[..., None]


def from_q8_0(blocks):
    return blocks["bits"].astype(np.float32) * blocks["scale"].astype(np.float32)[..., None]


# number of the type: its unit, how many numbers a unit holds, how they are made float32
GGUF_TENSORS = {0: (np.dtype("<f4"), 1, np.array), 3: (Q4_1, 32, from_q4_1), 8: (Q8_0, 32, from_q8_0)}


class Gguf:
    """`metadata` {key: value}, and tensors by name."""

    def __init__(self, path):
        self.data, self.at = pathlib.Path(path).read_bytes(), 4
        version = self._scalar("I")
        if self.data[:4] != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path} is no GGUF file of version 2 or 3")
        tensors, entries = self._scalar("Q"), self._scalar("Q")
        self.metadata = {}
        for _ in range(entries):
            key = self._string()
            self.metadata[key] = self._value(self._scalar("I"))
        self.tensors = {}
        for _ in range(tensors):
            name = self._string()
            shape = [self._scalar("Q") for _ in range(self._scalar("I"))][::-1]  # the file has the dense dim first
            self.tensors[name] = (shape, self._scalar("I"), self._scalar("Q"))
        alignment = self.metadata.get("general.alignment", GGUF_ALIGNMENT)
        self.begin = -(-self.at // alignment) * alignment

    def _scalar(self, kind):
        (value,) = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def _string(self):
        length = self._scalar("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def _value(self, kind):
        if kind == GGUF_STRING:
            return self._string()
        if kind == GGUF_ARRAY:
            of = self._scalar("I")
            return [self._value(of) for _ in range(self._scalar("Q"))]
        return self._scalar(GGUF_SCALARS[kind])

    def tensor(self, name):
        """As float32."""
        shape, kind, offset = self.tensors[name]
        if kind not in GGUF_TENSORS:
            raise ValueError(f"tensor '{name}' is of GGUF type {kind}; read are {', '.join(map(str, GGUF_TENSORS))}")
        unit, holds, widened = GGUF_TENSORS[kind]
        units = np.frombuffer(self.data, unit, math.prod(shape) // holds, self.begin + offset)
        return widened(units).reshape(shape)


class Vocabulary:
    """The byte pair encoding of a GGUF file, for plain text: neither its special tokens nor the rarer rules of splitting."""

    WORDS = re.compile(r" ?[^\W\d_]+| ?\d| ?(?:[^\s\w]|_)+|\s+")

    def __init__(self, metadata):
        if metadata["tokenizer.ggml.model"] != "gpt2":
            raise ValueError(f"the vocabulary is of kind '{metadata['tokenizer.ggml.model']}', not byte pairs (gpt2)")
        self.words = metadata["tokenizer.ggml.tokens"]
        self.numbers = {word: number for number, word in enumerate(self.words)}
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(metadata["tokenizer.ggml.merges"])}
        # Bytes that print stand for themselves, the others for characters from 256 up.
        printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printed]
        self.letters = {byte: chr(byte) for byte in printed} | {byte: chr(256 + i) for i, byte in enumerate(others)}
        self.bytes = {letter: byte for byte, letter in self.letters.items()}

    def encode(self, text):
        numbers = []
        for word in self.WORDS.findall(text):
            parts = [self.letters[byte] for byte in word.encode()]
            while len(parts) > 1:
                at = min(range(len(parts) - 1), key=lambda i: self.ranks.get((parts[i], parts[i + 1]), math.inf))
                if (parts[at], parts[at + 1]) not in self.ranks:
                    break
                parts[at : at + 2] = [parts[at] + parts[at + 1]]
            numbers += [self.numbers[part] for part in parts]
        return numbers

    def decode(self, numbers):
        return bytes(self.bytes[letter] for number in numbers for letter in self.words[number]).decode(errors="replace")
