#!/usr/bin/env python3
# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random networks of convolutions and pooling, fused and unfused, against ONNX Runtime without its optimizer.

    test/fusion/windows.py --build build/dev [--count N] [--seed S] [--jobs 2] [--json FILE] [--all] [--filter REGEX]

One, two or three spatial axes; any stride, dilation, padding and number of groups; transposed convolutions and resizing; and between them what
networks have there: batch normalization, activations, residuals, gates of channels, concatenations, slices, shuffled channels, channels moved to
the end and back. Two of three have named dims and are run with three sizes from one module. Targets take turns. judge.py says what is right; what
fails is cut down and written to <build>/test-logs/windows.

Without --count 40 networks from seed S on (0 by default); with --all 300.
"""

import argparse
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import driver
import judge
from graph import Graph, Impossible

SIZES = {"n": (2, 1, 1), "a": (9, 6, 14), "b": (7, 12, 5), "c": (5, 4, 8)}
TARGETS = "cpu:host", "cpu:x86-64-v3", "cpu:x86-64-v2"
MOST_ELEMENTS = 30_000
SECONDS_A_NETWORK = 240


class Network:
    def __init__(self, seed):
        self.random = np.random.default_rng([seed, 77])
        self.isopen = seed % 3 != 0
        self.axes = int(self.random.choice([1, 2, 2, 2, 3]))
        self.g = Graph(SIZES, int(self.random.choice([15, 17, 19])), seed)
        self.values = [self.g.input([self.size("n"), self.pick(1, 3, 5, 8, 16), *(self.size(d) for d in "abc"[: self.axes])])]

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def size(self, name):
        return name if self.isopen else SIZES[name][0]

    def channels(self, x):
        return x.dims[1][0]

    def weights(self, *shape):
        return self.g.const(self.g.normal(shape, max(1, int(np.prod(shape[1:]))) ** -0.5))

    def of_channels(self, x, positive=False):
        values = self.g.normal([self.channels(x)], 0.3)
        return self.g.const(np.abs(values) + 0.5 if positive else values)

    # --- steps ---

    def window(self):
        kernel = [self.pick(1, 2, 3, 3, 3, 5) for _ in range(self.axes)]
        attributes = {"strides": [self.pick(1, 1, 2, 3) for _ in kernel]}
        if self.random.random() < 0.2:
            attributes["auto_pad"] = self.pick("SAME_UPPER", "SAME_LOWER", "VALID")
            kernel = [max(k, s) for k, s in zip(kernel, attributes["strides"])]  # else padding is negative, which nobody agrees on
        else:
            attributes["pads"] = [int(self.random.integers(0, k)) for k in kernel * 2]
            if self.random.random() < 0.3:
                attributes["dilations"] = [self.pick(1, 2) for _ in kernel]
        return kernel, attributes

    def conv(self, x):
        channels = self.channels(x)
        groups = self.pick(*[g for g in (1, 1, 2, channels) if channels % g == 0])
        filters = groups * self.pick(1, 1, 2) if groups == channels else groups * self.pick(1, 3, 8, 17)
        kernel, attributes = self.window()
        if self.random.random() < 0.3:
            kernel, attributes = [1] * self.axes, {}
        operands = [x, self.weights(filters, channels // groups, *kernel)]
        if self.random.random() < 0.5:
            operands.append(self.g.const(self.g.normal([filters], 0.3)))
        return self.g.Conv(*operands, group=groups, **attributes)

    def square(self, x):
        """3 x 3 cells and many channels, which Winograd's algorithm is for."""
        if self.axes != 2:
            raise Impossible("two axes")
        if self.channels(x) < 16:
            x = self.g.Conv(x, self.weights(self.pick(16, 19), self.channels(x), 1, 1))
        return self.g.Conv(x, self.weights(self.pick(16, 21), self.channels(x), 3, 3), pads=[int(self.random.integers(0, 3)) for _ in range(4)])

    def transposed(self, x):
        kernel, attributes = self.window()
        attributes.pop("auto_pad", None)
        if self.random.random() < 0.5:
            kernel, attributes = list(attributes["strides"]), {"strides": attributes["strides"]}
        channels = self.channels(x)
        groups = self.pick(*[g for g in (1, 1, 2) if channels % g == 0])
        return self.g.ConvTranspose(x, self.weights(channels, self.pick(1, 4, 8) , *kernel), group=groups, **attributes)

    def pool(self, x):
        kernel, attributes = self.window()
        for name in ("dilations", "auto_pad"):  # the references differ from each other
            attributes.pop(name, None)
        if "pads" in attributes:  # as wide everywhere: the reference takes one for the other
            attributes["pads"] = [min(attributes["pads"] + [(k - 1) // 2 for k in kernel])] * 2 * len(kernel)
        kind = self.random.random()
        if kind < 0.5:
            return self.g.MaxPool(x, kernel_shape=kernel, **attributes)
        if kind < 0.6:
            return self.g.LpPool(x, kernel_shape=kernel, p=self.pick(1, 2, 3), **attributes)
        return self.g.AveragePool(x, kernel_shape=kernel, count_include_pad=int("pads" in attributes and self.random.random() < 0.5), **attributes)

    def norm(self, x):
        if self.random.random() < 0.3:
            return self.g.InstanceNormalization(x, self.of_channels(x, True), self.of_channels(x))
        return self.g.BatchNormalization(x, self.of_channels(x, True), self.of_channels(x), self.of_channels(x), self.of_channels(x, True), epsilon=1e-5)

    def activation(self, x):
        kind = self.pick("Relu", "Sigmoid", "HardSigmoid", "LeakyRelu", "swish", "clip")
        if kind == "swish":
            return self.g.Mul(x, self.g.Sigmoid(x))
        return self.g.Clip(x, np.float32(-0.5), np.float32(1)) if kind == "clip" else self.g.op(kind, x)

    def residual(self, x):
        same = [v for v in self.values if v.dims == x.dims]
        return self.g.op(self.pick("Add", "Mul", "Max"), x, same[self.random.integers(len(same))])

    def gate(self, x):
        """Squeeze and excitation."""
        channels = self.channels(x)
        few = self.g.Relu(self.g.Conv(self.g.GlobalAveragePool(x), self.weights(4, channels, *[1] * self.axes)))
        return self.g.Mul(x, self.g.Sigmoid(self.g.Conv(few, self.weights(channels, 4, *[1] * self.axes))))

    def join(self, x):
        fitting = [v for v in self.values if v.dims[2:] == x.dims[2:]]
        return self.g.Concat(x, fitting[self.random.integers(len(fitting))], axis=1)

    def cut(self, x):
        axis = int(self.random.integers(1, 2 + self.axes))
        least = min(x.dims[axis])
        start = int(self.random.integers(0, max(least // 2, 1)))
        return self.g.slice(x, axis, start, self.pick(least, np.int64(2**63 - 1)), self.pick(1, 1, 2))

    def shuffle(self, x):
        channels = self.channels(x)
        groups = self.pick(*[g for g in (2, 4, channels) if channels % g == 0] or [1])
        sizes = [self.g.dim(x, 2 + d) for d in range(self.axes)]
        batch = self.g.dim(x, 0)
        parted = self.g.Reshape(x, self.g.shape(batch, groups, channels // groups, *sizes))
        turned = self.g.Transpose(parted, perm=[0, 2, 1, *range(3, 3 + self.axes)])
        return self.g.Reshape(turned, self.g.shape(batch, channels, *sizes))

    def last(self, x):
        """Channels at the end for a while."""
        moved = self.g.Transpose(x, perm=[0, *range(2, 2 + self.axes), 1])
        scaled = self.g.Add(self.g.Mul(moved, self.of_channels(x)), self.of_channels(x))
        return self.g.Transpose(scaled, perm=[0, 1 + self.axes, *range(1, 1 + self.axes)])

    def resize(self, x):
        scales = np.array([1, 1] + [self.pick(1, 2, 2, 0.5, 1.5) for _ in range(self.axes)], np.float32)
        mode = self.pick("nearest", "linear") if self.axes < 3 else "nearest"
        coordinates = self.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        more = {"nearest_mode": self.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
        return self.g.Resize(x, None, self.g.const(scales), mode=mode, coordinate_transformation_mode=coordinates, **more)

    def pad(self, x):
        pads = [0, 0] + [int(self.random.integers(0, 3)) for _ in range(self.axes)]
        return self.g.Pad(x, self.g.const(np.array(pads * 2, np.int64)), mode=self.pick("constant", "edge"))

    def rows(self, x):
        axes = self.pick([1], list(range(2, 2 + self.axes)), [1 + self.axes])
        return self.g.Sub(x, self.g.reduce(self.pick("ReduceMean", "ReduceMax"), x, axes))

    def build(self):
        steps = [self.conv] * 8 + [self.square] * 2 + [self.pool] * 3 + [self.norm] * 3 + [self.activation] * 4 + [self.residual] * 3 + [self.gate, self.join, self.join,
                 self.cut, self.shuffle, self.last, self.resize, self.pad, self.rows, self.transposed, self.transposed]
        for step in range(14):
            x = self.values[-1 if self.random.random() < 0.8 else self.random.integers(len(self.values))]
            with self.g.attempt():
                try:
                    value = (self.conv if step == 0 else self.pick(*steps))(x)
                except ValueError as error:  # of the reference, for a few forms of windows
                    raise Impossible(str(error)) from error
                if value.elements > MOST_ELEMENTS or value.elements == 0 or min(min(d) for d in value.dims) == 0 or not value.peak < 1e4:
                    raise Impossible("too large, too small, or nothing")
                if min(np.max(np.abs(a)) for a in value.low) < 1e-5:
                    raise Impossible("what is left is rounding")
                self.values.append(value)
        self.g.output(self.values[-1])
        for value in self.values[1:-1]:
            if self.random.random() < 0.15:
                self.g.output(value)
        return self.g.whole()


def test(seed, options):
    def run(bench):
        part, target = Network(seed).build(), TARGETS[seed % len(TARGETS)]
        try:
            remarks, _ = bench.check(part, target)
        except (judge.Failed, driver.Crash, driver.Hang) as failed:
            folder = options.build / "test-logs" / "windows" / str(seed)
            smallest = bench.smallest(part, target) if isinstance(failed, judge.Failed) else part
            smallest.save(folder)
            raise type(failed)(f"{failed}\n    cut down to {', '.join(n.kind for n in smallest.nodes)}: {folder}/model.onnx, test_data_set_*; --target {target}")
        return remarks

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    driver.add_common_arguments(parser)
    parser.add_argument("--count", type=int, help="how many networks")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    options = parser.parse_args()
    options.build = options.build.resolve()
    count = options.count or (300 if options.all else 40)
    names = {f"network {seed}": seed for seed in range(options.seed, options.seed + count)}
    return judge.run_suite("windows", {name: test(seed, options) for name, seed in names.items() if driver.matches(options.filter, name)}, options, SECONDS_A_NETWORK)


if __name__ == "__main__":
    sys.exit(main())
