#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the lines of text in a picture: PP-OCRv4, a network that finds lines and one that reads them.

    dlc compile ch_PP-OCRv4_det_infer.onnx -o det.dlcm
    dlc compile ch_PP-OCRv4_rec_infer.onnx -o rec.dlcm
    read_text.py det.dlcm rec.dlcm characters.txt picture.png

characters.txt: the entry `character` of the second model's metadata, one character a line. Needs dlcrt (runtime/python), NumPy and Pillow.
One module each serves pictures and lines of every size. Lines are taken to be level.
"""

import pathlib
import sys

import dlcrt
import numpy as np
from PIL import Image

LIKELY = 0.3  # from which probability on a pixel belongs to text
HEIGHT = 48  # of a line, as the second network knows it


class Reader:
    def __init__(self, det, rec, characters, threads=0):
        self.det = dlcrt.Instance(dlcrt.Module(det), threads=threads)
        self.rec = dlcrt.Instance(dlcrt.Module(rec), threads=threads)
        self.alphabet = ["", *characters, " "]  # the first means: nothing new

    def read(self, picture):
        """The lines of an RGB picture, from top to bottom: (box, text), a box being left, top, right, bottom in pixels."""
        return [(box, self.read_line(picture.crop(box))) for box in self.find_lines(picture)]

    def find_lines(self, picture):
        (likelihood,) = self.det.run({"x": detector_input(picture)}).values()
        isText = likelihood[0, 0] > LIKELY
        scale = picture.width / isText.shape[1], picture.height / isText.shape[0]
        boxes = []
        for top, bottom in runs(isText.any(axis=1)):
            columns = np.flatnonzero(isText[top:bottom].any(axis=0))
            left, right = columns[0], columns[-1] + 1
            # The network marks the core of a line; around it is as much as its area and outline say.
            width, height = right - left, bottom - top
            margin = 0.75 * width * height / (width + height)
            box = np.array([left - margin, top - margin, right + margin, bottom + margin]) * [*scale, *scale]
            boxes.append(tuple(int(v) for v in np.clip(box, 0, [picture.width, picture.height] * 2)))
        return boxes

    def read_line(self, picture):
        (likelihood,) = self.rec.run({"x": recognizer_input(picture)}).values()
        best = likelihood[0].argmax(axis=1)
        # What stays the same from one place to the next is one character.
        new = np.flatnonzero(np.diff(best, prepend=0))
        return "".join(self.alphabet[best[i]] for i in new)


def detector_input(picture):
    """[1, 3, height, width], both multiples of 32, normalised as in training."""
    size = [max(32, round(side / 32) * 32) for side in picture.size]
    pixels = np.asarray(picture.resize(size), np.float32) / 255
    pixels = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)


def recognizer_input(picture):
    """[1, 3, 48, width], from -1 to 1."""
    width = max(HEIGHT, round(picture.width * HEIGHT / picture.height))
    pixels = np.asarray(picture.resize((width, HEIGHT)), np.float32) / 127.5 - 1
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def runs(flags):
    """(begin, end) of each run of what is true."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return zip(edges[::2], edges[1::2])


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    det, rec, characters, picture = sys.argv[1:]
    reader = Reader(det, rec, pathlib.Path(characters).read_text(encoding="utf-8").splitlines())
    for box, text in reader.read(Image.open(picture).convert("RGB")):
        print(*box, text, sep="\t")
