# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of estimate.py and run.py on numbers whose answer is known."""

import argparse
import math
import pathlib
import unittest

import cases
import estimate
import numpy as np
import run


class NearestRank(unittest.TestCase):
    def test_takes_one_of_the_values(self):
        values = [40, 10, 30, 20]
        self.assertEqual([estimate.nearest_rank(values, p) for p in (0, 25, 26, 50, 51, 75, 76, 100)], [10, 10, 20, 20, 30, 30, 40, 40])

    def test_one_value(self):
        self.assertEqual([estimate.nearest_rank([7], p) for p in (0, 50, 100)], [7, 7, 7])

    def test_hundred_values(self):
        values = list(range(1, 101))
        self.assertEqual([estimate.nearest_rank(values, p) for p in (1, 50, 90, 99, 100)], [1, 50, 90, 99, 100])


class Rounds(unittest.TestCase):
    def test_everybody_works_once_a_round_and_comes_first_in_turn(self):
        names = ["a", "b", "c"]
        orders = [estimate.order_of_round(names, i) for i in range(6)]
        self.assertTrue(all(sorted(order) == names for order in orders))
        self.assertEqual(sorted(order[0] for order in orders[:3]), names)
        self.assertEqual(orders[0], ["a", "b", "c"])
        self.assertEqual(orders[3], ["c", "b", "a"])


class Ratios(unittest.TestCase):
    def test_more_than_one_means_that_we_are_faster(self):
        self.assertEqual(estimate.ratio_of_minima([2.0, 3.0], [5.0, 4.0]), 2.0)

    def test_steady_times_leave_no_doubt(self):
        self.assertEqual(estimate.interval([2.0] * 8, [3.0] * 8), (1.5, 1.5))

    def test_rounds_stay_together(self):
        # The machine is 1 to 10 times as slow, for both alike: were rounds drawn apart, the interval would be wide.
        slow = np.linspace(1, 10, 10)
        low, high = estimate.interval(2 * slow, 3 * slow)
        self.assertAlmostEqual(low, 1.5)
        self.assertAlmostEqual(high, 1.5)

    def test_noise_widens_it_around_the_ratio(self):
        noise = np.random.default_rng(5)
        ours, theirs = 1 + 0.2 * noise.random(12), 1.5 + 0.3 * noise.random(12)
        low, high = estimate.interval(ours, theirs)
        self.assertLess(low, high)
        self.assertTrue(low <= estimate.ratio_of_minima(ours, theirs) <= high)
        self.assertEqual((low, high), estimate.interval(ours, theirs))

    def test_refuses_other_rounds(self):
        for ours, theirs in (([1.0], [1.0, 2.0]), ([], [])):
            with self.assertRaises(ValueError):
                estimate.interval(ours, theirs)


class RelativeError(unittest.TestCase):
    def test_is_relative_to_the_largest(self):
        self.assertAlmostEqual(estimate.relative_error(np.array([10.0, 1.5]), np.array([10.0, 1.0])), 0.05)

    def test_equal(self):
        for value in ([1.0, math.nan, math.inf], [], [0.0]):
            self.assertEqual(estimate.relative_error(np.array(value), np.array(value)), 0)

    def test_cannot_be_right(self):
        pairs = [([1.0], [[1.0]]), ([math.nan], [1.0]), ([1.0], [math.nan]), ([math.inf], [-math.inf]), ([1e-9], [0.0]), ([1], [2]), ([1], [1.0])]
        for got, want in pairs:
            self.assertEqual(estimate.relative_error(np.array(got), np.array(want)), math.inf, (got, want))


class Contender:
    """Answers what it was told to: results, nanoseconds of the calls in each turn, or nothing but an error."""

    def __init__(self, name, result, turns=((3000000, 2000000),), flops=None, error=None, **start):
        self.name, self.result, self.turns, self.flops, self.error, self.start = name, result, list(turns), flops, error, start
        self.prepare = lambda model, folder: model

    def ask(self, what, *words):
        if self.error:
            raise run.Failed(self.error)
        return {"load": {"way": "call", "flops": self.flops, "start": self.start}, "outputs": self.result, "turn": self.turns[0]}[what]


class Case:
    name, tolerance, flops = "case", 1e-5, 4e6

    def __init__(self, wanted):
        self.answer = wanted

    def inputs(self):
        return {}

    def model(self, folder):
        return folder / "model.onnx"

    def wanted(self, inputs):
        return self.answer


def measure(*field, wanted=None, rounds=3):
    return run.measure(Case(wanted), {one.name: one for one in field}, argparse.Namespace(rounds=rounds, seconds=0), pathlib.Path("nowhere"))


class Measuring(unittest.TestCase):
    good = [np.array([1.0, 2.0], np.float32)]
    bad = [np.array([1.0, 2.1], np.float32)]

    def peak(self, name=run.PEAK, flops=16e6):
        return Contender(name, None, [[1000000]], flops)

    def test_figures(self):
        found = measure(Contender("dlc", self.good), Contender("onnxruntime", self.good, [[1000000]]), self.peak(), wanted=self.good)
        dlc = found["contenders"]["dlc"]
        self.assertEqual([dlc[key] for key in ("calls", "min_ms", "median_ms", "p90_ms", "round_min_ms")], [6, 2, 2, 3, [2, 2, 2]])
        self.assertEqual(dlc["gflops"], 2)
        self.assertEqual(found["peaks"][run.PEAK]["gflops"], 16)
        self.assertEqual(dlc["peak_share"], 2 / 16)
        self.assertEqual(found["ratios"], {"onnxruntime": {"ratio": 0.5, "low": 0.5, "high": 0.5}})

    def test_start(self):
        found = measure(Contender("dlc", self.good, load_ms=0.5, first_run_ms=5), Contender("onnxruntime", self.good), self.peak(), wanted=self.good)
        said = [remark for remark in run.remarks(found) if "loads" in remark]
        self.assertEqual(said, ["case: dlc loads in 0.50 ms and runs for the first time in 5.00 ms, +3.00 ms beside the least"])

    def test_scaling(self):
        found = measure(Contender("dlc", self.good, [[2500000]]), Contender(run.DLC_ALONE, self.good, [[4000000]]), self.peak(flops=20e6),
                        self.peak(run.PEAK_ALONE, 10e6), wanted=self.good)
        self.assertEqual(found["scaling"], {"dlc": 1.6, "peak": 2, "share": 0.8})
        self.assertEqual(found["ratios"], {})
        self.assertEqual(found["contenders"][run.DLC_ALONE]["peak_share"], 1 / 10)

    def test_wrong_numbers_are_not_measured(self):
        for dlc, peer, who in ((self.bad, self.good, "dlc"), (self.good, self.bad, "openvino"), (self.good + self.good, self.good, "dlc")):
            with self.assertRaisesRegex(run.Failed, f"{who}: .*result"):
                measure(Contender("dlc", dlc), Contender("openvino", peer), self.peak(), wanted=self.good)

    def test_the_first_peer_says_what_is_right(self):
        found = measure(Contender("dlc", self.good), Contender("openvino", self.good), self.peak())
        self.assertIn("openvino", found["ratios"])
        with self.assertRaisesRegex(run.Failed, "dlc: WRONG"):
            measure(Contender("dlc", self.bad), Contender("openvino", self.good), self.peak())
        with self.assertRaisesRegex(run.Failed, "must be a peer"):
            measure(Contender("dlc", self.good), self.peak())

    def test_a_peer_may_be_unable(self):
        found = measure(Contender("dlc", self.good), Contender("openvino", None, error="openvino: no such op"), self.peak(), wanted=self.good)
        self.assertEqual((found["absent"], found["ratios"]), ({"openvino": "openvino: no such op"}, {}))
        with self.assertRaisesRegex(run.Failed, "no such op"):
            measure(Contender("dlc", None, error="dlc: no such op"), self.peak(), wanted=self.good)


class Cases(unittest.TestCase):
    def test_names_are_different(self):
        names = [case.name for case in cases.MATMULS + cases.MODELS]
        self.assertEqual(len(set(names)), len(names))


if __name__ == "__main__":
    unittest.main()
