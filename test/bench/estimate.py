# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the figures of a comparison are made of."""

import math

import numpy as np

RESAMPLES = 4000


def nearest_rank(values, percent):
    """The smallest of the values that at least `percent` of them do not exceed: number ceil(percent / 100 * n) of the sorted ones."""
    ordered = sorted(values)
    return ordered[max(math.ceil(percent * len(ordered) / 100), 1) - 1]


def order_of_round(names, number):
    """Who runs when in a round: everybody comes first in turn, and once all did, the circle is walked the other way round, so that nobody
    has always the same one before him."""
    first = number % len(names)
    order = list(names[first:]) + list(names[:first])
    return order[::-1] if number // len(names) % 2 else order


def ratio_of_minima(ours, theirs):
    """How many times as fast we are: their least time over ours."""
    return min(theirs) / min(ours)


def interval(ours, theirs, percent=95, resamples=RESAMPLES):
    """Where that ratio lies with this probability: low and high. A bootstrap over rounds; `ours[i]` and `theirs[i]` are the least times of round i
    and stay together, since what slows the machine down slows both."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape or ours.ndim != 1 or not len(ours):
        raise ValueError(f"{ours.shape} and {theirs.shape} are not the same rounds")
    rounds = np.random.default_rng(1).integers(0, len(ours), (resamples, len(ours)))
    ratios = theirs[rounds].min(axis=1) / ours[rounds].min(axis=1)
    outside = (100 - percent) / 2
    return float(nearest_rank(ratios, outside)), float(nearest_rank(ratios, 100 - outside))


def relative_error(got, want):
    """Largest difference over the largest number wanted; infinite where shapes or types differ, a NaN stands alone, or integers differ at all."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return math.inf
    if want.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else math.inf
    if not want.size:
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return math.inf
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return math.inf
    difference = np.abs(got[finite] - want[finite]).max(initial=0.0)
    largest = np.abs(want)[finite].max(initial=0.0)
    return float(difference / largest) if largest else math.inf if difference else 0.0
