# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on images as their texts have them, cell by cell, in double precision."""

import itertools
import math
from fractions import Fraction

import numpy as np



def wide(x):
    return x if x is None else np.asarray(x).astype(np.float64)


def rounded(values, dtype):
    """As the type has them; integers drop the fraction."""
    return np.asarray(values).astype(dtype) if dtype != np.bool_ else np.asarray(values) != 0


def cubic(ratio, a=-0.75):
    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio)]


def mirrored(x, low, high):
    """x mirrored at both ends until it is between them."""
    span = high - low
    if low <= x <= high:
        return x
    if span <= 0:
        return low
    turns, rest = divmod(abs(x - low), span)
    return high - rest if turns % 2 else low + rest


def sample(x, position, mode, padding, align):
    """One position in x [channels, spatial...]."""
    sizes = x.shape[1:]
    taps = []
    for p, size in zip(position, sizes):
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        if mode == "nearest":
            p = np.rint(p)
        if not low <= p <= high:
            p = min(max(p, 0), size - 1) if padding == "border" else mirrored(p, low, high) if padding == "reflection" else p
        first = math.floor(p)
        ratio = p - first
        own = {"nearest": lambda: [(first, 1)], "linear": lambda: [(first, 1 - ratio), (first + 1, ratio)],
               "cubic": lambda: [(first - 1 + k, w) for k, w in enumerate(cubic(ratio))]}[mode]()
        cells = []
        for cell, weight in own:
            if padding == "zeros" and not 0 <= cell < size:
                continue
            cell = mirrored(cell, low, high) if padding == "reflection" else cell
            cells.append((int(min(max(cell, 0), size - 1)), weight))
        taps.append(cells)
    total = np.zeros(x.shape[0])
    for choice in itertools.product(*taps):
        total += math.prod(w for _, w in choice) * x[(slice(None), *(c for c, _ in choice))]
    return total


def grid_sample(node, arrays):
    x, grid = arrays
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(m := node.attributes.get("mode", "linear"), m)
    padding, align = node.attributes.get("padding_mode", "zeros"), node.attributes.get("align_corners", 0)
    # Positions in single precision but with doubles: halves are rounded as they come out there.
    kind = np.float64 if np.dtype(np.float64) in (x.dtype, grid.dtype) else np.float32
    sizes = np.array(x.shape[:1:-1], kind)
    places = grid.astype(kind)
    places = (places + kind(1)) / kind(2) * (sizes - kind(1)) if align else ((places + kind(1)) * sizes - kind(1)) / kind(2)
    result = np.zeros(x.shape[:2] + grid.shape[1:-1])
    for at in np.ndindex(grid.shape[:-1]):
        result[(at[0], slice(None), *at[1:])] = sample(wide(x[at[0]]), wide(places[at][::-1]), mode, padding, align)
    return [rounded(result, x.dtype)]


def affine_grid(node, arrays):
    theta, size = arrays
    align = node.attributes.get("align_corners", 0)
    axes = [(np.linspace(-1, 1, s) if s > 1 else np.zeros(s)) if align else (2 * np.arange(s) + 1) / max(s, 1) - 1 for s in size[2:].tolist()]
    grid = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones([len(a) for a in axes])], -1)
    return [np.einsum("nij,...j->n...i", wide(theta), grid).astype(theta.dtype)]


def roi_align(node, arrays):
    x, rois, batch = arrays
    get = node.attributes.get
    parts, scale = (get("output_height", 1), get("output_width", 1)), get("spatial_scale", 1.0)
    half = node.opset >= 16 and get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    height, width = x.shape[2:]
    result = np.zeros((len(rois), x.shape[1], *parts))
    for r, (x1, y1, x2, y2) in enumerate(wide(rois) * scale - (0.5 if half else 0)):
        image = wide(x[batch[r]])
        extent = (y2 - y1, x2 - x1) if half else (max(y2 - y1, 1), max(x2 - x1, 1))
        bins = [e / p for e, p in zip(extent, parts)]
        counts = [get("sampling_ratio", 0) or max(0, math.ceil(b)) for b in bins]
        for part in np.ndindex(parts):
            samples = []
            for at in np.ndindex(*counts):
                y, z = (start + p * b + (i + 0.5) * b / c for start, p, b, i, c in zip((y1, x1), part, bins, at, counts))
                if not (-1 <= y <= height and -1 <= z <= width):
                    samples.append(np.zeros((4, x.shape[1])))
                    continue
                y, z = min(max(y, 0), height - 1), min(max(z, 0), width - 1)
                cells = [(int(v), min(int(v) + 1, size - 1), v - int(v)) for v, size in ((y, height), (z, width))]
                samples.append(np.array([wy * wx * image[:, cy, cx] for cy, wy in ((cells[0][0], 1 - cells[0][2]), (cells[0][1], cells[0][2]))
                                         for cx, wx in ((cells[1][0], 1 - cells[1][2]), (cells[1][1], cells[1][2]))]))
            if samples:
                stacked = np.stack(samples)
                # The largest of the weighted neighbours: so have it the package's own case, and both references.
                pooled = stacked.max((0, 1)) if get("mode", "avg") == "max" else stacked.sum((0, 1)) / len(samples)
                result[(r, slice(None), *part)] = pooled
    return [result.astype(x.dtype)]


def deform_conv(node, arrays):
    x, w, offset, bias, mask = [*arrays, None, None][:5]
    axes = x.ndim - 2
    get = node.attributes.get
    kernel, strides, dilations = w.shape[2:], get("strides", [1] * axes), get("dilations", [1] * axes)
    pads, groups, shared = get("pads", [0] * 2 * axes), get("group", 1), get("offset_group", 1)
    cells, out = list(np.ndindex(kernel)), offset.shape[2:]
    offsets = wide(offset).reshape(x.shape[0], shared, len(cells), axes, *out)
    samples = np.zeros((x.shape[0], x.shape[1], len(cells), *out))
    each = x.shape[1] // shared
    for b, s, (k, cell), *o in itertools.product(range(x.shape[0]), range(shared), enumerate(cells), *map(range, out)):
        place = [o[i] * strides[i] - pads[i] + cell[i] * dilations[i] + offsets[(b, s, k, i, *o)] for i in range(axes)]
        samples[(b, slice(s * each, (s + 1) * each), k, *o)] = sample(wide(x[b, s * each:(s + 1) * each]), place, "linear", "zeros", 1)
    if mask is not None:
        samples *= np.repeat(wide(mask).reshape(x.shape[0], shared, len(cells), *out), each, 1)
    split = samples.reshape(x.shape[0], groups, -1, math.prod(out))
    filters = wide(w).reshape(groups, w.shape[0] // groups, split.shape[2])
    result = (filters @ split).reshape(x.shape[0], w.shape[0], *out)
    return [(result if bias is None else result + wide(bias).reshape(-1, *[1] * axes)).astype(x.dtype)]


def resize(node, arrays):
    x, get = arrays[0], node.attributes.get
    roi, scales, sizes = (None, arrays[1], None) if node.opset < 11 else [None if a is None or not a.size else a for a in [*arrays[1:], None, None, None][:3]]
    mode, policy = get("mode", "nearest"), get("keep_aspect_ratio_policy", "stretch")
    how = get("coordinate_transformation_mode", "half_pixel") if node.opset >= 11 else "asymmetric"
    rounding = get("nearest_mode", "round_prefer_floor") if node.opset >= 11 else "floor"
    axes = [a % x.ndim for a in get("axes", range(x.ndim))]
    if scales is None:
        scales = [Fraction(int(s), x.shape[a]) for s, a in zip(sizes, axes)]
        if policy != "stretch":
            scales = [(min if policy == "not_larger" else max)(scales)] * len(axes)
    widths = [x.shape[a] * float(s) for s, a in zip(scales, axes)]  # before they are rounded
    if sizes is None:
        sizes = [math.floor(w) for w in widths]
    elif policy == "stretch":
        widths = [float(s) for s in sizes]
    else:
        sizes = [math.floor(s * x.shape[a] + Fraction(1, 2)) for s, a in zip(scales, axes)]
    values = wide(x)
    for k, (axis, size, scale, width) in enumerate(zip(axes, sizes, scales, widths)):
        n, scale = x.shape[axis], float(scale)
        if size == n and scale == 1 and how != "tf_crop_and_resize":
            continue
        begin, end = (float(roi[k]), float(roi[k + len(axes)])) if how == "tf_crop_and_resize" else (0, 1)
        weights, outside = np.zeros((size, n)), np.zeros(size, bool)
        for i in range(size):
            place = {"asymmetric": lambda: i / scale, "align_corners": lambda: 0 if width == 1 else i * (n - 1) / (width - 1),
                     "pytorch_half_pixel": lambda: -0.5 if width == 1 else (i + 0.5) / scale - 0.5, "half_pixel": lambda: (i + 0.5) / scale - 0.5,
                     "half_pixel_symmetric": lambda: n * 0.5 * (1 - size / width) + (i + 0.5) / scale - 0.5,
                     "tf_crop_and_resize": lambda: begin * (n - 1) + ((end - begin) * (n - 1) / 2 if width == 1 else i * (end - begin) * (n - 1) / (width - 1))}[how]()
            outside[i] = how == "tf_crop_and_resize" and not 0 <= place <= n - 1
            first = math.floor(place)
            ratio = place - first
            if mode == "nearest":
                nearest = {"round_prefer_floor": math.ceil(place - 0.5), "round_prefer_ceil": math.floor(place + 0.5), "floor": first, "ceil": math.ceil(place)}
                taps = [(nearest[rounding], 1)]
            elif mode == "linear":
                taps = [(first, 1 - ratio), (first + 1, ratio)]
            else:
                taps = [(first - 1 + j, w) for j, w in enumerate(cubic(ratio, get("cubic_coeff_a", -0.75)))]
            if get("exclude_outside", 0) and mode != "nearest":
                taps = [(t, w) for t, w in taps if 0 <= t < n]
                taps = [(t, w / sum(w for _, w in taps)) for t, w in taps]
            for tap, weight in taps:
                weights[i, min(max(tap, 0), n - 1)] += weight
        values = np.moveaxis(np.tensordot(weights, values, (1, axis)), 0, axis)
        values[(slice(None),) * axis + (outside,)] = get("extrapolation_value", 0)
    return [rounded(values, x.dtype)]


def max_unpool(node, arrays):
    x, indices, shape = [*arrays, None][:3]
    axes = x.ndim - 2
    get = node.attributes.get
    kernel, strides, pads = get("kernel_shape"), get("strides", [1] * axes), get("pads", [0] * 2 * axes)
    own = list(x.shape[:2]) + [(x.shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + axes] for i in range(axes)]
    flat = np.zeros(math.prod(own), x.dtype)
    for index, value in zip(indices.ravel(), x.ravel()):
        flat[index] = value
    result = np.zeros(own if shape is None else shape, x.dtype)
    result[tuple(map(slice, own))] = flat.reshape(own)
    return [result]


def global_lp_pool(node, arrays):
    x, p = wide(arrays[0]), node.attributes.get("p", 2)
    return [((np.abs(x) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)).astype(arrays[0].dtype)]


def max_pool(node, arrays):
    x, axes = arrays[0], arrays[0].ndim - 2
    get = node.attributes.get
    kernel, strides, dilations = get("kernel_shape"), get("strides", [1] * axes), get("dilations", [1] * axes)
    sizes, ceil, same = x.shape[2:], get("ceil_mode", 0), get("auto_pad", "NOTSET")
    begins, counts = [], []
    for i, size in enumerate(sizes):
        span = (kernel[i] - 1) * dilations[i] + 1
        if same.startswith("SAME"):
            counts.append(-(-size // strides[i]))
            total = max(0, (counts[-1] - 1) * strides[i] + span - size)
            begins.append(total // 2 if same == "SAME_UPPER" else total - total // 2)
            continue
        begin, end = (get("pads", [0] * 2 * axes)[k] if same == "NOTSET" else 0 for k in (i, i + axes))
        room = size + begin + end - span
        count = (-(-room // strides[i]) if ceil else room // strides[i]) + 1
        begins.append(begin)
        counts.append(count - (ceil and (count - 1) * strides[i] >= size + begin))
    values, indices = np.zeros(list(x.shape[:2]) + counts, x.dtype), np.zeros(list(x.shape[:2]) + counts, np.int64)
    order = range(axes)[::-1] if get("storage_order", 0) else range(axes)
    for at in np.ndindex(*values.shape):
        best = None
        for cell in np.ndindex(*kernel):
            place = [at[2 + i] * strides[i] - begins[i] + cell[i] * dilations[i] for i in range(axes)]
            if all(0 <= p < s for p, s in zip(place, sizes)) and (best is None or x[(*at[:2], *place)] > x[(*at[:2], *best)]):
                best = place
        index = at[0] * x.shape[1] + at[1]
        index *= math.prod(sizes)
        inner = 0
        for i in order:
            inner = inner * sizes[i] + best[i]
        values[at], indices[at] = x[(*at[:2], *best)], index + inner
    return [values, indices][:node.outputs]


def non_max_suppression(node, arrays):
    boxes, scores, limit, overlap, least = [*arrays, None, None, None][:5]
    limit = 0 if limit is None else int(np.ravel(limit)[0])
    overlap = np.float32(0) if overlap is None else np.ravel(overlap)[0]
    found = []

    def extent(box):
        if node.attributes.get("center_point_box", 0):
            return [box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2]
        return [min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])]

    def area(e):
        return (e[2] - e[0]) * (e[3] - e[1])

    for b, c in np.ndindex(*scores.shape[:2]):
        stays = []
        line = scores[b, c]
        for i in sorted(range(len(line)), key=lambda i: (-line[i], i)):
            if len(stays) >= limit or least is not None and not line[i] > np.ravel(least)[0]:
                continue
            own = extent(boxes[b, i])
            for other in (extent(boxes[b, j]) for j in stays):
                common = [max(own[0], other[0]), max(own[1], other[1]), min(own[2], other[2]), min(own[3], other[3])]
                if common[2] > common[0] and common[3] > common[1]:
                    shared = area(common)
                    both = area(own) + area(other) - shared
                    if min(shared, area(own), area(other), both) > 0 and shared / both > overlap:
                        break
            else:
                stays.append(i)
        found += [[b, c, i] for i in stays]
    return [np.array(found, np.int64).reshape(-1, 3)]


BY_TEXT = {"Resize": resize, "GridSample": grid_sample, "AffineGrid": affine_grid, "RoiAlign": roi_align, "DeformConv": deform_conv, "MaxUnpool": max_unpool,
           "GlobalLpPool": global_lp_pool, "MaxPool": max_pool, "NonMaxSuppression": non_max_suppression}
