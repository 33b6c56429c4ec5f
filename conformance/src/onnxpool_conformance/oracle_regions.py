"""The results that the operators on regions must return, from plain loops over regions, bins and samples.

Coordinates are computed in the same steps as in onnxruntime, each rounded to float32 (float64 for float64 data),
because they decide which elements belong to a bin; values are Python numbers.
"""

import math
import sys
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from .oracle import GeometryError, Truth, extrema, native, native_order, patterns_of, per_axis, widened

MOST_SAMPLES = 2**22
MOST_REACH = 2**31  # limit of corners and sides that are rounded to elements
SPARE = 64  # bits of exponent that sums may need beyond the range of float64


class Sample(NamedTuple):
    """An interpolated value, the largest finite magnitude among the elements it was computed from, and its samples."""

    value: float
    magnitude: float
    count: int


def coordinate_type(dtype):
    """The float type in which coordinates are computed."""
    return np.float64 if dtype.name == "float64" else np.float32


def planes_of(x, channels_last):
    """For each image and channel, the rows of the plane as lists of numbers."""
    if x.ndim != 4:
        raise GeometryError("x must have two spatial axes")
    first = np.moveaxis(x, -1, 1) if channels_last else x
    if 0 in first.shape[2:]:
        raise GeometryError("an empty spatial axis")
    return widened(first).tolist(), first.shape[2:]


def region_shape(x, regions, pooled, channels_last):
    """The shape of the result."""
    return (regions, *pooled, x.shape[-1]) if channels_last else (regions, x.shape[1], *pooled)


def check_finite(rois):
    """Refuse coordinates that are not numbers."""
    if not np.isfinite(rois.astype(np.float64)).all():
        raise GeometryError("rois must be finite")


def scaled(corners, scale, limit):
    """Corners times the scale. Corners and sides that are not below the limit are refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        left, top, right, bottom = places = corners * scale
        if not all(abs(place) < limit for place in (*places, right - left, bottom - top)):
            raise GeometryError("a region beyond the numbers that it is computed in")
    return places


# MaxRoiPool


def round_away(value):
    """The nearest integer; halves are rounded away from zero."""
    whole = math.trunc(value)
    return whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole


def bins(begin, end, count, size, real):
    """For each bin of an axis, the positions in it."""
    length = max(end - begin + 1, 1)
    step = real(length) / real(count)
    rows = []
    for place in range(count):
        low = math.floor(real(place) * step) + begin
        high = math.ceil(real(place + 1) * step) + begin
        rows.append(range(min(max(low, 0), size), min(max(high, 0), size)))
    return rows


def quiet(x):
    """The same elements with quiet NaNs of 16 bits, because elements are converted to be compared."""
    if x.dtype.itemsize != 2:
        return x
    bits = np.ascontiguousarray(x).view(np.uint16).copy()
    infinity, highest = (0x7F80, 0x40) if x.dtype.name == "bfloat16" else (0x7C00, 0x200)
    bits[bits & 0x7FFF > infinity] |= highest  # np.isnan would warn of signalling NaNs
    return bits.view(x.dtype)


def expect_max_roi_pool(inputs, attributes, *, channels_last=False):
    """The truth about one call; raises GeometryError if the library must refuse it."""
    x, rois = inputs
    images, (height, width) = planes_of(x, channels_last)
    check_finite(rois)
    real = coordinate_type(x.dtype)
    scale = real(attributes.get("spatial_scale", 1.0))
    pooled = per_axis(attributes["pooled_shape"], 2, None)
    patterns = patterns_of(quiet(native_order(np.moveaxis(x, -1, 1) if channels_last else x)))
    cells = []
    for image, *corners in rois.astype(real):
        if image != math.floor(image) or not 0 <= image < len(images):
            raise GeometryError(f"no image {image}")
        left, top, right, bottom = (round_away(float(place)) for place in scaled(np.array(corners), scale, MOST_REACH))
        rows, columns = bins(top, bottom, pooled[0], height, real), bins(left, right, pooled[1], width, real)
        windows = [[row * width + column for row, column in product(*pair)] for pair in product(rows, columns)]
        for plane, bits in zip(images[int(image)], patterns[int(image)], strict=True):
            cells += extrema([*chain(*plane)], windows, 0.0, [*chain(*bits)])
    shape = region_shape(x, len(rois), pooled, channels_last)
    return Truth("MaxRoiPool", native(x.dtype), shape, channels_last, cells)


# RoiAlign


class Line(NamedTuple):
    """The position of a sample along one axis: between two elements, with a weight for each."""

    low: int
    high: int
    weight_low: float
    weight_high: float


def line(position, size):
    """The position of a coordinate on an axis; None if it is outside."""
    if position < -1 or position > size:
        return None
    position = max(float(position), 0.0)
    low = int(position)
    if low >= size - 1:
        return Line(size - 1, size - 1, 1.0, 0.0)
    return Line(low, low + 1, 1 - (position - low), position - low)


def grid(begin, end, count, sampling_ratio, half_pixel, real):
    """The number of samples per bin of an axis, the beginning of the region, and the length of a bin."""
    length = end - begin
    if not half_pixel:
        length = max(length, real(1))
    step = length / real(count)
    return (sampling_ratio if sampling_ratio > 0 else math.ceil(step)), begin, step


def samples(axis, count, size, real):
    """For each bin of an axis, the positions of its samples."""
    per_bin, begin, step = axis
    with np.errstate(over="ignore"):
        ways = [real(k + 0.5) * step / real(per_bin) for k in range(per_bin)]
    # The product may overflow although its quotient is no longer than the bin.
    ways = [way if np.isfinite(way) else real(k + 0.5) / real(per_bin) * step for k, way in enumerate(ways)]
    return [[line(begin + real(place) * step + way, size) for way in ways] for place in range(count)]


def products(plane, vertical, horizontal):
    """The four weighted elements around a sample, and the largest finite magnitude of these elements."""
    corners = [
        (down * across, plane[row][column])
        for row, down in ((vertical.low, vertical.weight_low), (vertical.high, vertical.weight_high))
        for column, across in ((horizontal.low, horizontal.weight_low), (horizontal.high, horizontal.weight_high))
    ]
    magnitude = max((abs(value) for _, value in corners if math.isfinite(value)), default=0.0)
    return [weight * value for weight, value in corners], magnitude


def mean(values, count):
    """The exact sum divided by a count, rounded twice; infinities and NaN follow IEEE rules."""
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    try:
        return math.fsum(values) / count
    except OverflowError:  # only in between: rounding alone can take the mean beyond the largest number
        value = math.fsum(math.ldexp(value, -SPARE) for value in values) / count
        reach = math.ldexp(sys.float_info.max, -SPARE)
        return math.ldexp(min(max(value, -reach), reach), SPARE)


def bin_value(plane, rows, columns, mode):
    """The mean of the samples of a bin, or the maximum of their weighted elements, where NaN wins."""
    values, magnitude = [], 0.0
    for vertical, horizontal in product(rows, columns):
        if vertical is None or horizontal is None:
            values.append(0.0)
            continue
        four, size = products(plane, vertical, horizontal)
        magnitude = max(magnitude, size)
        values += four if mode == "max" else [mean(four, 1)]
    if mode == "max":
        value = math.nan if any(v != v for v in values) else max(values, default=0.0)
    else:
        value = mean(values, max(len(rows) * len(columns), 1))
    return Sample(value, magnitude, len(rows) * len(columns))


def expect_roi_align(inputs, attributes, opset, *, channels_last=False):
    """The truth about one call; raises GeometryError if the library must refuse it."""
    x, rois, batch_indices = inputs
    images, (height, width) = planes_of(x, channels_last)
    check_finite(rois)
    real = coordinate_type(x.dtype)
    scale = real(attributes.get("spatial_scale", 1.0))
    newer = opset is None or opset >= 16
    half_pixel = newer and attributes.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    ratio = attributes.get("sampling_ratio", 0)
    pooled = (attributes.get("output_height", 1), attributes.get("output_width", 1))
    cells = []
    for roi, image in zip(rois.astype(real), batch_indices.tolist(), strict=True):
        if not 0 <= image < len(images):
            raise GeometryError(f"no image {image}")
        left, top, right, bottom = scaled(roi, scale, math.inf) - real(0.5 if half_pixel else 0)
        down = grid(top, bottom, pooled[0], ratio, half_pixel, real)
        across = grid(left, right, pooled[1], ratio, half_pixel, real)
        if math.prod(pooled) * max(down[0], 0) * max(across[0], 0) > MOST_SAMPLES:
            raise GeometryError("too many samples")
        rows, columns = samples(down, pooled[0], height, real), samples(across, pooled[1], width, real)
        for plane in images[image]:
            cells += [bin_value(plane, *pair, attributes.get("mode", "avg")) for pair in product(rows, columns)]
    shape = region_shape(x, len(rois), pooled, channels_last)
    return Truth("RoiAlign", native(x.dtype), shape, channels_last, cells)
