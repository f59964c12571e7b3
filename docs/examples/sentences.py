#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much sentences have in common: MiniLM, which makes a vector of 384 numbers of each.

    dlc compile minilm.onnx -o minilm.dlcm
    sentences.py minilm.dlcm vocab.txt "A cat sits on the mat." "A kitten is on a rug." "Stocks fell on Monday."

vocab.txt: the pieces of words that the model knows, one a line, as it comes with the model. Needs dlcrt (runtime/python) and NumPy.
One module serves any number of sentences of any length.
"""

import pathlib
import re
import sys
import unicodedata

import dlcrt
import numpy as np


class Tokenizer:
    """WordPiece: each word becomes the longest pieces that the vocabulary has, from the front; `##` marks those inside of a word."""

    def __init__(self, pieces):
        self.numbers = {piece: number for number, piece in enumerate(pieces)}

    def __call__(self, text):
        plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        tokens = ["[CLS]"]
        for word in re.findall(r"\w+|[^\w\s]", plain):
            tokens += self.pieces(word)
        return [self.numbers[token] for token in [*tokens, "[SEP]"]]

    def pieces(self, word):
        found, begin = [], 0
        while begin < len(word):
            ends = (end for end in range(len(word), begin, -1) if "##" * (begin > 0) + word[begin:end] in self.numbers)
            end = next(ends, None)
            if end is None:
                return ["[UNK]"]
            found.append("##" * (begin > 0) + word[begin:end])
            begin = end
        return found


class Encoder:
    def __init__(self, module, pieces, threads=0):
        self.instance = dlcrt.Instance(dlcrt.Module(module), threads=threads)
        self.tokenize = Tokenizer(pieces)

    def inputs(self, sentences):
        """[sentences, tokens of the longest]; the mask says which are there."""
        tokens = [self.tokenize(sentence) for sentence in sentences]
        ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, list_ in enumerate(tokens):
            ids[row, : len(list_)] = list_
            mask[row, : len(list_)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    def __call__(self, sentences):
        """One vector a sentence, of length 1: the mean over its tokens."""
        inputs = self.inputs(sentences)
        hidden = next(iter(self.instance.run(inputs).values()))
        mask = inputs["attention_mask"][:, :, None]
        mean = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    module, vocabulary, *sentences = sys.argv[1:]
    vectors = Encoder(module, pathlib.Path(vocabulary).read_text(encoding="utf-8").splitlines())(sentences)
    for i, first in enumerate(sentences):
        for j in range(i + 1, len(sentences)):
            print(f"{vectors[i] @ vectors[j]:6.3f}  {first}  |  {sentences[j]}")
