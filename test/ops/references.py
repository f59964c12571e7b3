# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a node gives by ONNX Runtime and by the reference evaluator of the onnx package, and where one of them is wrong.

FAULTS is the list of what is known to be wrong: a reference is not asked where a line of it holds. Where the two differ and no
line says which is right, the test fails: the operator's text has to be read, and a line has to be written.
"""

import contextlib
import io
import math
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import driver
import ops
import texts

PLAIN = {np.dtype(t) for t in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()}
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-9}
IR = 10  # of models whose types are older
NEWER_TYPES = {TensorProto.FLOAT4E2M1: 11, TensorProto.FLOAT8E8M0: 12, TensorProto.UINT2: 13, TensorProto.INT2: 13,
               TensorProto.FLOAT6E2M3: 14, TensorProto.FLOAT6E3M2: 14}


def tolerance(dtype):
    """That of one operation that rounds."""
    return TOLERANCE.get(dtype.name, 0.25 if ops.is_small_float(dtype) else 0)


def make_model(nodes, inputs, outputs, initializers, opset):
    graph = helper.make_graph(nodes, "ops", inputs, outputs, initializers)
    numbers = [v.type.tensor_type.elem_type for v in (*inputs, *outputs)] + [t.data_type for t in initializers]
    numbers += [a.i for n in nodes for a in n.attribute if a.name in ("to", "dtype")]
    version = max([IR, *(NEWER_TYPES.get(n, 0) for n in numbers)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version, producer_name="test/ops")


def output_types(node, arrays):
    """Element types of the outputs, by the package's inference."""
    inputs = [helper.make_tensor_value_info(f"x{i}", ops.number_of(a.dtype), a.shape) for i, a in enumerate(arrays) if a is not None]
    names = [f"y{i}" for i in range(node.outputs)]
    made = helper.make_node(node.op, [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)], names, **node.attributes)
    model = make_model([made], inputs, [helper.make_empty_tensor_value_info(n) for n in names], [], node.opset)
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {v.name: v.type.tensor_type.elem_type for v in (*inferred.graph.output, *inferred.graph.value_info)}
    if not all(types.get(name) for name in names):
        schema = onnx.defs.get_schema(node.op, node.opset)
        same = {s.type_str: ops.number_of(a.dtype) for s, a in zip(schema.inputs, arrays) if a is not None}
        for name, output in zip(names, schema.outputs):
            fixed = ops.type_names().get(output.type_str[len("tensor("):-1])
            types[name] = types.get(name) or same.get(output.type_str) or (fixed and fixed[0])
            if not types[name]:
                raise ops.Skip
    return [types[name] for name in names]


def one_node(node, arrays, types, opset, as_weights, widen):
    """A model of this node alone. as_weights: the inputs are initializers, and the outputs are cast to float."""
    inputs, weights, names = [], [], []
    for i, a in enumerate(arrays):
        names.append(f"x{i}" if a is not None else "")
        if a is None:
            continue
        if as_weights or i in node.const:
            weights.append(numpy_helper.from_array(a, names[i]))
        else:
            inputs.append(helper.make_tensor_value_info(names[i], ops.number_of(a.dtype), [None] * a.ndim))
    outputs = [f"y{i}" for i in range(node.outputs)]
    nodes = [helper.make_node(node.op, names, outputs, **node.attributes)]
    results = []
    for name, number in zip(outputs, types):
        if widen:
            results.append(helper.make_tensor_value_info(name, number, None))
        elif as_weights and np.dtype(helper.tensor_dtype_to_np_dtype(number)) not in PLAIN:
            nodes.append(helper.make_node("Cast", [name], [name + "_float"], to=TensorProto.FLOAT))
            results.append(helper.make_tensor_value_info(name + "_float", TensorProto.FLOAT, None))
        else:
            results.append(helper.make_tensor_value_info(name, number, None))
    return make_model(nodes, inputs, results, weights, opset)


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, node, types):
        self.node, self.types, self.session = node, types, None

    def open(self, model):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def opsets(self):
        """The definition's opset, and one that it knows and that means the same where it knows no newer one."""
        return [self.node.opset] + ([26] if self.node.opset > 26 else [])

    def run(self, arrays):
        """Outputs; raises what ONNX Runtime raises."""
        plain = all(a is None or a.dtype in PLAIN for a in arrays) and all(
            np.dtype(helper.tensor_dtype_to_np_dtype(t)) in PLAIN for t in self.types)
        feeds = {} if not plain else {f"x{i}": a for i, a in enumerate(arrays) if a is not None and i not in self.node.const}
        if not plain or self.session is None:
            for opset in self.opsets():
                try:
                    self.session = self.open(one_node(self.node, arrays, self.types, opset, not plain, False))
                    break
                except Exception as error:
                    problem = error
            else:
                raise problem
        got = self.session.run(None, feeds)
        return [g.astype(helper.tensor_dtype_to_np_dtype(t)) for g, t in zip(got, self.types)]


class Evaluator:
    name = "the reference evaluator"

    def __init__(self, node, types):
        self.node, self.types = node, types

    def run(self, arrays):
        model = one_node(self.node, arrays, self.types, self.node.opset, False, False)
        feeds = {f"x{i}": a for i, a in enumerate(arrays) if a is not None and i not in self.node.const}
        with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            got = [np.asarray(g) for g in ReferenceEvaluator(model).run(None, feeds)]
        for g, number in zip(got, self.types):
            if g.dtype != np.dtype(helper.tensor_dtype_to_np_dtype(number)):
                raise TypeError(f"a result of type {g.dtype}")
        return got


class Wide:
    """ONNX Runtime on float or int64 where neither knows the type: numbers are small, so float and int64 hold them."""

    name = "ONNX Runtime in another type"

    def __init__(self, node, types):
        self.node, self.types = node, types

    def run(self, arrays):
        def wide(dtype):
            return np.dtype(np.float32 if ops.is_float(dtype) else np.int64)

        main = self.node.dtype
        if main == np.bool_ or wide(main) == main or self.node.op in ("Cast", "CastLike", "BitCast", "BitShift", "BitwiseNot"):
            raise TypeError("there is no wider type")
        widened = [a.astype(wide(a.dtype)) if a is not None and a.dtype == main else a for a in arrays]
        types = [ops.number_of(wide(main)) if t == ops.number_of(main) else t for t in self.types]
        got = OnnxRuntime(self.node, types).run(widened)
        with np.errstate(all="ignore"):
            return [g.astype(helper.tensor_dtype_to_np_dtype(t)) for g, t in zip(got, self.types)]


REFERENCES = {"ort": OnnxRuntime, "evaluator": Evaluator}

# --- where they are wrong ---------------------------------------------------------------------------------------------


def has_nan(arrays):
    return any(a is not None and not ops.is_int(a.dtype) and a.dtype != np.bool_ and np.isnan(a.astype(np.float64)).any() for a in arrays)


def has_infinity(arrays):
    return any(a is not None and not ops.is_int(a.dtype) and a.dtype != np.bool_ and np.isinf(a.astype(np.float64)).any() for a in arrays)


def is_empty(arrays):
    return any(a is not None and a.size == 0 for a in arrays)


def slices_backwards_to_the_top(node, arrays):
    """A negative step with the largest integer as the end."""
    if len(arrays) < 5 or arrays[4] is None:
        return False
    ends, steps = arrays[2], arrays[4]
    return bool(np.any((steps < 0) & (ends == np.iinfo(ends.dtype).max)))


def slices_backwards_from_below(node, arrays):
    """A negative step, and a start below the first cell."""
    if len(arrays) < 5 or arrays[4] is None:
        return False
    axes = range(len(arrays[1])) if arrays[3] is None else arrays[3]
    return any(step < 0 and int(start) < -arrays[0].shape[axis] for start, axis, step in zip(arrays[1], axes, arrays[4]))


def unsorted(axes):
    axes = list(axes)
    return axes != sorted(axes) or any(a < 0 for a in axes)


def strides_exceed_windows(node):
    kernel = node.attributes["kernel_shape"]
    ones = [1] * len(kernel)
    return any(s > (k - 1) * d + 1 for s, k, d in zip(node.attributes.get("strides", ones), kernel, node.attributes.get("dilations", ones)))


# (which, operators, when: called with the node and the inputs, why: what the operator's text says)
FAULTS = [
    ("evaluator", {"Softmax", "LogSoftmax", "Hardmax"}, lambda n, x: n.opset < 13,
     "before version 13 all axes from `axis` on are one row; it takes one axis"),
    ("evaluator", {"Pad"}, lambda n, x: any(p < 0 for p in n.attributes.get("pads", []) or (x[1].tolist() if len(x) > 1 else [])),
     "a negative pad takes cells away; it has none"),
    ("evaluator", {"Shape"}, lambda n, x: any(a < -x[0].ndim for a in n.attributes.values()),
     "`start` and `end` are clamped to [0, rank] after the rank is added; it clamps nothing below"),
    ("evaluator", {"Unsqueeze"}, lambda n, x: unsorted(n.attributes.get("axes", [])),
     "the order of `axes` does not matter, and they count in the result; it inserts one after the other"),
    ("evaluator", {"HardSwish"}, lambda n, x: x[0].dtype == np.float64, "alpha is 1/6; it has the number of single precision next to that"),
    ("evaluator", {"Erf", "Gelu"}, lambda n, x: x[0].dtype == np.float64, "its error function is right to 2e-8 only, whatever the type"),
    ("evaluator", None, lambda n, x: n.opset < 7 and "broadcast" in n.attributes,
     "before version 7 the second operand is put at `axis` of the first one; it broadcasts as later versions do"),
    ("evaluator", {"ReduceLogSum", "ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp"},
     lambda n, x: x[0].dtype.itemsize == 2 and not is_empty(x), "it adds in 16 bits, where long sums stand still"),
    ("evaluator", {"Unique"}, lambda n, x: n.attributes.get("sorted", 1) == 0,
     "unsorted means in the order of first occurrence: [2, 1, 1, 3] -> [2, 1, 3]; it sorts"),
    ("evaluator", {"Slice"}, slices_backwards_from_below,
     "a start below the axis is clamped to 0 where the step is negative, which leaves one cell; it takes none"),
    ("ort", {"Slice"}, slices_backwards_to_the_top, "a far end is clamped to dim - 1 where the step is negative, which leaves nothing; it takes everything"),
    ("ort", {"Clip"}, lambda n, x: has_infinity(x), "a bound that is left out does not bound; it takes the largest and the smallest number then"),
    ("ort", {"Sign"}, lambda n, x: has_nan(x), "NaN is neither positive nor negative nor 0: it stays; of a float16 NaN it makes 0"),
    ("ort", {"ReduceLogSumExp"}, lambda n, x: x[0].dtype.kind in "iu",
     "the logarithm of the sum loses its fraction, 9.07 becomes 9; it drops the fractions of the exponentials before they are added, and has 8"),
    ("ort", {"Gelu"}, lambda n, x: x[0].dtype == np.float64, "its constants are those of single precision"),
    ("ort", {"NonZero"}, lambda n, x: x[0].ndim == 0, "the result for a scalar has the shape (0, N); it gives (1, N)"),
    ("ort", {"ReduceMean"}, lambda n, x: is_empty(x), "the mean of nothing is undefined by the text, and NaN with us (0 / 0); it gives 0"),
    ("ort", {"ReduceMax", "ReduceMin", "Max", "Min"}, lambda n, x: has_nan(x), "the text is silent, NaN wins with us; there it depends on its place"),
    ("evaluator", {"GridSample"}, lambda n, x: not ops.is_float(x[0].dtype) and n.attributes.get("mode", "linear") != "nearest",
     "elements that are integers are made of floats; its weights are integers too"),
    ("evaluator", {"GridSample"}, lambda n, x: x[1].dtype != np.float32 or x[0].dtype.itemsize in (2, 8),
     "it has positions for doubles in single precision, and computes in 16 bits what is given so"),
    ("ort", {"GridSample"}, lambda n, x: n.attributes.get("padding_mode") == "border" and n.attributes.get("mode") in ("cubic", "bicubic"),
     "a location outside has the value at the border; it goes on from there with the weights of the location"),
    ("evaluator", {"GridSample", "AffineGrid", "RoiAlign", "DeformConv", "MaxPool", "NonMaxSuppression"}, lambda n, x: is_empty(x),
     "a result without elements has its dims; its own has one axis, or none"),
    ("evaluator", {"AffineGrid", "RoiAlign", "DeformConv"}, lambda n, x: x[0].dtype != np.float32,
     "the result has the type of the input; it computes in the input's type, or gives single precision"),
    ("ort", {"GridSample"}, lambda n, x: n.attributes.get("align_corners") and 1 in x[0].shape[2:] and n.attributes.get("padding_mode") == "reflection",
     "between the ends of one element nothing can be mirrored; it divides by 0 there"),
    ("ort", {"AffineGrid"}, lambda n, x: n.attributes.get("align_corners") and 1 in x[1].tolist()[2:],
     "by the PyTorch function that the text refers to, one element lies at 0; it has it at 1"),
    ("evaluator", {"AffineGrid"}, lambda n, x: n.attributes.get("align_corners") and 1 in x[1].tolist()[2:],
     "by the PyTorch function that the text refers to, one element lies at 0; it has it at -1"),
    ("ort", {"MaxPool"}, lambda n, x: n.attributes.get("auto_pad", "").startswith("SAME") and {*n.attributes.get("dilations", [1])} != {1},
     "with SAME there are ceil(size / stride) windows, however far apart their cells lie; it has fewer"),
    ("ort", {"MaxPool"}, lambda n, x: n.attributes.get("auto_pad", "").startswith("SAME") and strides_exceed_windows(n),
     "padding is 0 or more, and nothing is padded where the stride is longer than the window; it takes elements away there"),
    ("evaluator", {"Resize"}, lambda n, x: x[0].dtype != np.float32, "it has weights in the type of the data, or in single precision"),
    ("ort", {"Resize"}, lambda n, x: unsorted(n.attributes.get("axes", [])), "roi and sizes are in the order of `axes`; it has them in that of the tensor"),
    ("ort", {"Resize"}, lambda n, x: n.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize",
     "what lies outside of [0, length - 1] has the extrapolation value; it bounds that otherwise"),
    ("ort", {"Resize"}, lambda n, x: n.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch" or
     n.attributes.get("coordinate_transformation_mode") == "align_corners" and len(x) < 4,
     "the length after the scale counts before it is rounded, as in the package's reference; it takes the rounded one"),
    ("ort", {"MaxUnpool"}, lambda n, x: len(x) > 2, "indices count in what the attributes give, by the package's own case; in `output_shape` there"),
    ("evaluator", {"RoiAlign"}, lambda n, x: n.opset < 16, "before version 16 regions are not shifted; it shifts them by half an element"),
    ("evaluator", {"MaxPool"}, lambda n, x: {*n.attributes.get("strides", [1]), *n.attributes.get("dilations", [1])} == {1},
     "pads are those in front, then those behind, and indices count in the whole tensor; it has pairs of pads, and indices in a channel"),
    ("evaluator", {"MaxPool"}, lambda n, x: n.attributes.get("auto_pad", "NOTSET") != "NOTSET" or n.attributes.get("ceil_mode"),
     "SAME_LOWER has as many windows as SAME_UPPER, with the odd cell of padding in front, and is not padded less than nothing"),
]


def slice_by_text(node, arrays):
    """Slice as its text has it, cell by cell."""
    x, starts, ends, axes, steps = arrays
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), range(len(starts)) if axes is None else axes.tolist(), steps.tolist()):
        length = x.shape[axis]
        first, last = ((start + length if start < 0 else start), (end + length if end < 0 else end))
        if step > 0:
            cells = range(min(max(first, 0), length), min(max(last, 0), length), step)
        else:
            cells = range(min(max(first, 0), length - 1), min(max(last, -1), length - 1), step)
        x = np.take(x, list(cells) if length else [], axis)
    return [x]


def erf_by_text(node, arrays):
    return [np.vectorize(math.erf, otypes=[arrays[0].dtype])(arrays[0])]


def gelu_by_text(node, arrays):
    x = arrays[0]
    if node.attributes.get("approximate", "none") == "tanh":
        return [0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))]
    return [0.5 * x * (1 + erf_by_text(node, [x / np.sqrt(2)])[0])]


def log_sum_exp_by_text(node, arrays):
    x, axes = arrays[0], node.attributes.get("axes")
    if len(arrays) > 1 and arrays[1] is not None:
        axes = arrays[1].tolist()
    if not axes and node.attributes.get("noop_with_empty_axes"):
        return [x]
    sums = np.exp(x.astype(np.float64)).sum(tuple(axes) if axes else None, keepdims=bool(node.attributes.get("keepdims", 1)))
    return [np.asarray(np.log(sums)).astype(x.dtype)]


# Values by hand, where no reference is to be trusted.
HAND = texts.BY_TEXT | {"Slice": slice_by_text, "Erf": erf_by_text, "Gelu": gelu_by_text, "ReduceLogSumExp": log_sum_exp_by_text}


def fault(who, node, arrays):
    """Why a reference is not to be trusted here, or None."""
    for which, names, when, why in FAULTS:
        if which == who and (names is None or node.op in names) and when(node, arrays):
            return why
    return None


def sort_sets(node, outputs):
    """Outputs that are sets, sorted, to be compared."""
    return [np.sort(o.ravel()) if i in node.sets else o for i, o in enumerate(outputs)]


def difference(node, got, want, least=0):
    """None, or in words how the outputs differ more than rounding explains. least: how much may differ where results round at all."""
    for i, (g, w) in enumerate(zip(sort_sets(node, got), sort_sets(node, want))):
        allowed = tolerance(w.dtype)
        allowed = 0 if node.exact or not allowed else max(allowed, least) * node.tolerance
        if found := driver.difference(g, w, allowed, allowed):
            return f"output {i} is {found}"
    return None


class Judge:
    """The right outputs of a node for one run after the other."""

    def __init__(self, node, types):
        self.node, self.types = node, types
        self.references = {who: kind(node, types) for who, kind in REFERENCES.items()}
        self.errors = {}  # what a reference said when it could not

    def wanted(self, arrays):
        """(outputs or None, whose, how much they may be off, None or how the references differ)"""
        values = {}
        for who, reference in self.references.items():
            if fault(who, self.node, arrays):
                continue
            try:
                values[who] = reference.run(arrays)
            except Exception as error:  # neither knows every operator for every type and every empty tensor
                self.errors[who] = f"{type(error).__name__}: {error}".splitlines()[0][:150]
        if not values:
            if self.node.op in HAND:
                return HAND[self.node.op](self.node, arrays), "the operator's text", 0, None
            with contextlib.suppress(Exception):
                wide = Wide(self.node, self.types)
                return wide.run(arrays), wide.name, TOLERANCE["float32"], None
            return None, None, 0, None
        if len(values) == 2:
            a, b = values.values()
            if found := difference(self.node, a, b):
                return None, None, 0, f"{OnnxRuntime.name} differs from {Evaluator.name}: {found}"
        who = next(iter(values))
        return values[who], " and ".join(REFERENCES[w].name for w in values), 0, None
