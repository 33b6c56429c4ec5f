"""A case in words: attributes, arrays, the picture of its windows, and how each result follows."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from .cases import Array, Case
from .models import MOST_STORED
from .oracle import AVERAGE, LP, MAX, SLIDING, axes_of, divisors, flat_windows, per_axis, placement
from .oracle_regions import bins, grid, round_away, samples

MOST_RESULTS = 24  # maximum results that are explained
MOST_TERMS = 9  # maximum terms of a sum that are written out
WIDEST = 40  # maximum positions of a picture


def show(case: Case) -> Iterator[str]:
    """The lines that explain a case."""
    rule = case.decided
    yield f"{case.name}: {rule.tests}"
    yield f"  {case.operator}-{case.version}, in a model of opset {case.opset}"
    for name, value in case.attributes.items():
        yield f"  {name} = {value}"
    quoted = f'the specification says "{rule.reason}"' if rule.tier == "spec" and rule.quoted else rule.reason
    yield f"  {rule.tier}: {quoted}"
    if rule.agreed:
        yield f"  runtimes that agree: {rule.agreed}"
    if rule.decision:
        yield f"  decision {rule.decision} of onnxpool, in docs/reference/decisions.md"
    for place, array in enumerate(case.inputs):
        yield from shown(f"input {place}", array)
    if case.error:
        yield f"A runtime must refuse it: {case.error}."
        return
    spatial = case.x.shape[1:-1] if case.channels_last else case.x.shape[2:]
    if case.operator in SLIDING:
        for axis in range(len(spatial)):
            yield from pictured(case, spatial, axis)
    for place, y in enumerate(case.expected()):
        yield from shown(f"output {place}", y)
    yield from explained(case, spatial)


def shown(title: str, array: Array | None) -> Iterator[str]:
    """An array."""
    if array is None:
        yield f"{title}: omitted"
        return
    yield f"{title}: {array.dtype.name} {list(array.shape)}"
    if array.size > MOST_STORED:
        yield f"  {array.flat[0]} everywhere"
    elif array.size:
        wide = array.astype(np.float64) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array
        text = np.array2string(wide, max_line_width=110, threshold=MOST_STORED)
        yield from (f"  {line}".rstrip() for line in text.splitlines())


def pictured(case: Case, spatial: tuple[int, ...], axis: int) -> Iterator[str]:
    """The windows along an axis. # is an element of a window, o is covered padding, and . is a place between taps."""
    rank, given, size = len(spatial), case.attributes, spatial[axis]
    kernel = per_axis(given["kernel_shape"], rank, None)[axis]
    stride = per_axis(given.get("strides"), rank, 1)[axis]
    dilation = per_axis(given.get("dilations"), rank, 1)[axis]
    pads = per_axis(given.get("pads"), 2 * rank, 0)
    begin, end, count = placement(size, (kernel - 1) * dilation + 1, stride, (pads[axis], pads[axis + rank]),
                                  given.get("auto_pad") or "NOTSET", given.get("ceil_mode") or 0)
    last = max(size + end, (count - 1) * stride - begin + (kernel - 1) * dilation + 1)
    yield f"windows along spatial axis {axis}: {size} elements, padding {begin} before and {end} after them"
    if begin + last > WIDEST:
        return
    names = ["p" if place < 0 or size <= place < size + end else str(place) if place < size else "-"
             for place in range(-begin, last)]
    width = max(map(len, names)) + 1
    yield f"  {'position':12}" + "".join(name.rjust(width) for name in names)
    for window in range(count):
        first = window * stride - begin
        taps = range(first, first + kernel * dilation, dilation)
        cells = ["#" if place in taps and 0 <= place < size else "o" if place in taps else
                 "." if taps[0] < place < taps[-1] else " " for place in range(-begin, last)]
        yield f"  {f'window {window}':12}" + "".join(cell.rjust(width) for cell in cells).rstrip()
    if last > size + end:
        yield "  p: padding; -: beyond it, which never counts"


def explained(case: Case, spatial: tuple[int, ...]) -> Iterator[str]:
    """How the first results follow from the elements."""
    operator = case.operator
    if case.x.size == 0 or case.x.size > MOST_STORED:
        return
    if operator == "MaxUnpool":
        indices = case.inputs[1]
        assert indices is not None
        rows = zip(case.x.ravel().tolist(), indices.ravel().tolist(), strict=True)
        yield from limited(f"  element {place} is {value:g}" for value, place in rows)
        return
    if operator in ("MaxRoiPool", "RoiAlign"):
        yield from limited(bins_of(case, spatial) if operator == "MaxRoiPool" else samples_of(case, spatial))
        return
    first = np.moveaxis(case.x, -1, 1) if case.channels_last else case.x
    planes = first.reshape(-1, math.prod(spatial)).astype(np.float64)
    axes = axes_of(operator, spatial, case.attributes)
    windows = flat_windows(axes, spatial)
    counts = divisors(axes, windows, case.attributes.get("count_include_pad"))
    results = [truth.cells_of(y).tolist() for truth, y in zip(case.truths, case.expected(), strict=True)]
    sizes = tuple(len(axis.taps) for axis in axes)
    formulas = [formula(case, plane[window].tolist(), count) for plane in planes
                for window, count in zip(windows, counts, strict=True)]
    cells = [" at ".join(map(str, each)) for each in zip(*results, strict=True)]
    places = product(*map(range, (*first.shape[:2], *sizes)))
    yield "each result (batch, channel, spatial axes):"
    yield from limited(f"  {list(place)}: {text} = {cell}"
                       for place, text, cell in zip(places, formulas, cells, strict=True))


def bins_of(case: Case, spatial: tuple[int, ...]) -> Iterator[str]:
    """The elements of the bins of MaxRoiPool."""
    rois, scale = case.inputs[1], case.attributes.get("spatial_scale", 1.0)
    assert rois is not None
    for region, (image, *corners) in enumerate(rois.astype(np.float32)):
        left, top, right, bottom = (round_away(float(np.float32(place) * np.float32(scale))) for place in corners)
        pooled = per_axis(case.attributes["pooled_shape"], 2, None)
        yield f"region {region}: image {int(image)}, rows {top} to {bottom}, columns {left} to {right}"
        for name, begin, end, count, size in (("rows", top, bottom, pooled[0], spatial[0]),
                                              ("columns", left, right, pooled[1], spatial[1])):
            found = [[*each] for each in bins(begin, end, count, size, np.float32)]
            yield f"  {name} of the bins: {'; '.join(', '.join(map(str, each)) or 'none' for each in found)}"


def samples_of(case: Case, spatial: tuple[int, ...]) -> Iterator[str]:
    """The positions of RoiAlign's samples: the two elements beside each, with their weights."""
    given, rois, images = case.attributes, case.inputs[1], case.inputs[2]
    assert rois is not None
    assert images is not None
    half = case.version >= 16 and given.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    scale, ratio = np.float32(given.get("spatial_scale", 1.0)), given.get("sampling_ratio", 0)
    for region, roi in enumerate(rois.astype(np.float32)):
        left, top, right, bottom = roi * scale - np.float32(0.5 if half else 0)
        yield f"region {region}: image {images[region]}, rows {top:g} to {bottom:g}, columns {left:g} to {right:g}"
        for name, begin, end, count, size in (("rows", top, bottom, given.get("output_height", 1), spatial[0]),
                                              ("columns", left, right, given.get("output_width", 1), spatial[1])):
            lines = samples(grid(begin, end, count, ratio, half, np.float32), count, size, np.float32)
            texts = [", ".join("outside" if each is None else f"{each.weight_low:g} of {each.low}"
                               + (f" and {each.weight_high:g} of {each.high}" if each.weight_high else "")
                               for each in bin_samples) for bin_samples in lines]
            yield f"  {name} of the samples of the bins: {'; '.join(texts)}"


def formula(case: Case, taps: list[Any], count: int) -> str:
    """How a result follows from the elements of its window."""
    terms = [f"{tap:g}" for tap in taps[:MOST_TERMS]] + ["..."] * (len(taps) > MOST_TERMS)
    if case.operator in MAX:
        return f"max({', '.join(terms)})"
    if case.operator in AVERAGE:
        return f"({' + '.join(terms) or '0'}) / {count}"
    if case.operator in LP:
        p = case.attributes.get("p", 2)
        powers = " + ".join(f"|{term}|^{p:g}" if term != "..." else term for term in terms)
        return f"max of |x| of {', '.join(terms)}" if math.isinf(p) else f"({powers or '0'})^(1/{p:g})"
    x_scale, x_zero, y_scale, y_zero = ("0" if each is None else f"{each:g}" for each in case.inputs[1:])
    total = f"{' + '.join(terms) or '0'} - {len(taps)}*{x_zero}"
    return f"(({total}) * {x_scale} / {count}) / {y_scale} + {y_zero}, rounded"


def limited(lines: Iterator[str]) -> Iterator[str]:
    """The first lines, and how many more there are."""
    found = list(lines)
    yield from found[:MOST_RESULTS]
    if len(found) > MOST_RESULTS:
        yield f"  and {len(found) - MOST_RESULTS} more"
