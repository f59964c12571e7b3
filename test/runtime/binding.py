# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the Python binding: binding.py FOLDER, which holds add.dlcm, types.dlcm and log.dlcm (ToolTest.cpp writes them)."""

import gc
import pathlib
import sys
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("NumPy is not installed")
    sys.exit(77)

import dlcrt

FOLDER = pathlib.Path(sys.argv.pop(1))


class Add(unittest.TestCase):
    def setUp(self):
        self.module = dlcrt.Module(FOLDER / "add.dlcm", verify=True)
        self.instance = dlcrt.Instance(self.module)

    def test_signature(self):
        (function,) = self.module.functions
        self.assertEqual(function.name, "main")
        self.assertEqual([value.name for value in function.inputs], ["a", "b"])
        self.assertEqual(function.inputs[0].dims, ["n"])
        self.assertEqual(function.inputs[0].dtype_name, "f32")
        self.assertEqual(function.symbols[0].name, "n")
        (variant,) = self.module.variants
        self.assertEqual((variant.target, variant.reason, variant.guard), ("cpu:test", None, ""))
        self.assertEqual(self.module.producer, "test 1.0")

    def test_run(self):
        a, b = np.arange(10, dtype=np.float32), np.ones(10, np.float32)
        result = self.instance.run({"a": a, "b": b})
        np.testing.assert_array_equal(result["y"], a + b)
        (again,) = self.instance.run([b, b])
        np.testing.assert_array_equal(again, b + b)
        np.testing.assert_array_equal(result["y"], a + b)  # a copy
        self.assertEqual(self.instance.target, "cpu:test")
        self.assertEqual(self.instance.statistics["runs"], 2)

    def test_other_layouts(self):
        a = np.arange(20, dtype=np.float32)[::-2]
        b = np.arange(10, dtype=">f4")
        np.testing.assert_array_equal(self.instance.run({"a": a, "b": b})["y"], a + b)
        np.testing.assert_array_equal(self.instance.run({"a": [1.5], "b": [2]})["y"], [3.5])

    def test_errors(self):
        with self.assertRaises(dlcrt.DlcrtError) as caught:
            self.instance.run({"a": np.zeros(3, np.float32), "b": np.zeros(4, np.float32)})
        self.assertEqual(str(caught.exception), "inputs 'a' and 'b' disagree on 'n': 3 and 4")
        self.assertEqual(caught.exception.name, "DLCRT_ERROR_SHAPE")
        with self.assertRaisesRegex(dlcrt.DlcrtError, "input 'a': expected f32, got i64"):
            self.instance.run({"a": np.zeros(3, np.int64)})
        with self.assertRaisesRegex(dlcrt.DlcrtError, "input 'b' is not bound"):
            self.instance.run({"a": np.zeros(3, np.float32)})
        with self.assertRaisesRegex(KeyError, "no input 'c'; there are: a, b"):
            self.instance.run({"c": 1})
        with self.assertRaisesRegex(dlcrt.DlcrtError, "no variant for target 'cpu:x'"):
            dlcrt.Instance(self.module, variant="cpu:x")
        for threads in (-1, 4097, 1 << 32):
            with self.assertRaisesRegex(ValueError, f"threads must be 0 .* to 4096, not {threads}"):
                dlcrt.Instance(self.module, threads=threads)
        with self.assertRaisesRegex(dlcrt.DlcrtError, "cannot open"):
            dlcrt.Module("/nowhere")
        with self.assertRaisesRegex(dlcrt.DlcrtError, "not a module"):
            dlcrt.Module(b"nothing at all" * 10)

    def test_lifetimes(self):
        # In whatever order things go.
        data = (FOLDER / "add.dlcm").read_bytes()
        for _ in range(20):
            instance = dlcrt.Instance(dlcrt.Module(data), threads=3)
            gc.collect()
            one = np.ones(100, np.float32)
            self.assertEqual(instance.run([one, one])[0][99], 2)

    def test_closed(self):
        one = np.ones(3, np.float32)
        self.instance.run([one, one])
        self.module.close()
        for use in (lambda: self.module.producer, lambda: self.module.states, lambda: self.module.verify(), lambda: dlcrt.Instance(self.module)):
            with self.assertRaisesRegex(ValueError, "^this Module is closed$"):
                use()
        self.assertEqual(self.instance.run([one, one])[0][2], 2)  # keeps what it needs
        self.assertEqual(self.instance.target, "cpu:test")
        self.instance.close()
        self.instance.close()
        for use in (lambda: self.instance.run([one, one]), lambda: self.instance.target, lambda: self.instance.statistics):
            with self.assertRaisesRegex(ValueError, "^this Instance is closed$"):
                use()

    def test_threads(self):
        failures = []

        def work(seed):
            instance = dlcrt.Instance(self.module, threads=2)
            for n in range(1, 200):
                a = np.full(n, seed, np.float32)
                if not np.array_equal(instance.run([a, a])[0], a + a):
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Types(unittest.TestCase):
    def test_all(self):
        module = dlcrt.Module(str(FOLDER / "types.dlcm"))
        instance = dlcrt.Instance(module)
        values = {}
        for value in module.functions[0].inputs:
            dtype = dlcrt._dtypes.numpy_dtype(value.dtype)
            source = [0, 1] if value.dtype_name.endswith("2") and value.dtype >= 25 else [0, 1, 0, 1, 1, 1]
            values[value.name] = np.array((source * 3)[:6]).astype(dtype)
        results = instance.run(values)
        for (name, given), result in zip(values.items(), results.values()):
            self.assertEqual(result.dtype, given.dtype, name)
            np.testing.assert_array_equal(result.astype(np.float64), given.astype(np.float64), name)

    def test_negative_small_integers(self):
        for number, low, high in ((22, -8, 7), (26, -2, 1)):
            given = np.array([low, high, -1, 0, 1 if high > 1 else 0, low], np.int8)
            _, packed = dlcrt._dtypes.to_runtime(given, number)
            result = dlcrt._dtypes.from_runtime(packed.tobytes(), number, given.shape)
            np.testing.assert_array_equal(result.astype(np.int64), given.astype(np.int64))


class Stateful(unittest.TestCase):
    def setUp(self):
        self.module = dlcrt.Module(FOLDER / "log.dlcm")
        self.state = dlcrt.State(self.module, capacity=4, dims={"rows": 2})
        self.main, self.twice = (dlcrt.Instance(self.module, function=name, state=self.state) for name in ("main", "twice"))

    def test_signature(self):
        (log,) = self.module.states
        self.assertEqual((log.name, log.dtype_name, log.dims, log.axis), ("log", "i64", ["rows", "capacity"], 1))
        main, _, none = self.module.functions
        self.assertEqual((main.states, main.length, main.capacity), (1, "length", "capacity"))
        self.assertEqual((none.states, none.length, none.capacity), (0, None, None))

    def test_run(self):
        self.assertEqual(self.main.run([[[1], [10]]])[0], [11])
        self.assertEqual(self.twice.run([[[2], [20]]])[0], [55])
        self.assertEqual((self.state.length, self.state.capacity), (3, 4))
        np.testing.assert_array_equal(self.state.read("log"), [[1, 2, 2], [10, 20, 20]])
        with self.assertRaisesRegex(dlcrt.DlcrtError, "state 'log' is full: 5 of 4"):
            self.twice.run([[[2], [20]]])
        with self.assertRaisesRegex(dlcrt.DlcrtError, "the capacity is -6"):
            self.state.grow(-6)
        self.state.grow(6)
        self.assertGreaterEqual(self.state.nbytes, 2 * 6 * 8)
        self.assertEqual(self.twice.run([[[3], [30]]])[0], [121])
        self.state.length = 1
        self.assertEqual(self.main.run([[[5], [50]]])[0], [66])
        self.state.reset()
        self.assertEqual(self.state.read("log").shape, (2, 0))

    def test_write(self):
        self.state.write("log", np.array([[7, 8], [70, 80]]), first=1)
        self.state.length = 3
        np.testing.assert_array_equal(self.state.read("log"), [[0, 7, 8], [0, 70, 80]])
        with self.assertRaisesRegex(dlcrt.DlcrtError, "2 entries from 3 on lie outside state 'log', which has a capacity of 4"):
            self.state.write("log", np.array([[7, 8], [70, 80]]), first=3)
        with self.assertRaisesRegex(KeyError, "no state 'x'; there are: log"):
            self.state.read("x")

    def test_attached(self):
        with self.assertRaisesRegex(dlcrt.DlcrtError, "a value for dimension 'rows' of the states is missing"):
            dlcrt.State(self.module, capacity=4)
        with self.assertRaisesRegex(dlcrt.DlcrtError, "function 'none' has no state"):
            dlcrt.Instance(self.module, function="none", state=self.state)
        self.main.state = None
        with self.assertRaisesRegex(dlcrt.DlcrtError, "works on a state and has none"):
            self.main.run([[[1], [10]]])
        self.state.close()  # the other instance keeps it
        self.assertEqual(self.twice.run([[[1], [10]]])[0], [22])
        for use in (lambda: self.state.length, lambda: self.state.capacity, lambda: self.state.nbytes, lambda: self.state.reset(),
                    lambda: self.state.grow(8), lambda: self.state.read("log"), lambda: self.state.write("log", np.zeros((2, 1), np.int64)),
                    lambda: setattr(self.main, "state", self.state),
                    lambda: dlcrt.Instance(self.module, function="main", state=self.state)):
            with self.assertRaisesRegex(ValueError, "^this State is closed$"):
                use()

    def test_lifetimes(self):
        # A state of a module from bytes outlives the module.
        state = dlcrt.State(dlcrt.Module((FOLDER / "log.dlcm").read_bytes()), capacity=4, dims={"rows": 2})
        gc.collect()
        state.write("log", np.array([[7], [70]]))
        state.length = 1
        np.testing.assert_array_equal(state.read("log"), [[7], [70]])


if __name__ == "__main__":
    unittest.main()
