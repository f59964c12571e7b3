# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of estimate.py on numbers whose answer is known."""

import math
import unittest

import estimate
import numpy as np


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
        for got, want in (([1.0], [[1.0]]), ([math.nan], [1.0]), ([1.0], [math.nan]), ([math.inf], [-math.inf]), ([1e-9], [0.0]), ([1], [2]), ([1], [1.0])):
            self.assertEqual(estimate.relative_error(np.array(got), np.array(want)), math.inf, (got, want))


if __name__ == "__main__":
    unittest.main()
