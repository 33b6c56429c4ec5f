"""The results of calls with named axes, which also pool integers and times, take minima, and skip NaNs."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from onnxpool_conformance.oracle import (
    DTYPES,
    FORMATS,
    SLIDING,
    GeometryError,
    KindError,
    Truth,
    axes_of,
    divisors,
    extrema,
    flat_windows,
    means,
    native,
    native_order,
    norms,
    patterns_of,
    per_axis,
    widened,
)
from onnxpool_conformance.oracle_indices import NOTHING, first_extremum

INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool")
TIMES = ("datetime64[s]", "timedelta64[ns]", "datetime64[D]")
ALL = {**DTYPES, **{name: np.dtype(name) for name in (*INTEGERS, *TIMES)}}
DIGITS = {name: (form.precision, form.top) for name, form in FORMATS.items()}


@dataclass(frozen=True)
class AlongAxes(Truth):
    """The result of a call with named axes. For each place along the other axes, the result has cells along the pooled
    axes."""

    order: tuple = ()  # the axes of the result, in the order of the cells

    def cells_of(self, y):
        """A result, flattened in the order of the cells."""
        return y.transpose(self.order).reshape(-1)

    def result(self):
        """The expected result as an array."""
        flat = Truth("", self.dtype, (len(self.cells),), False, self.cells).result()
        return flat.reshape([self.shape[axis] for axis in self.order]).transpose(np.argsort(self.order))


def nearest(value, dtype):
    """A fraction, rounded to the nearest value of a dtype, with ties to even."""
    if dtype.kind in "iu":
        return round(value)
    if value == 0:
        return 0.0
    form = FORMATS[dtype.name]
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - form.precision + 1, -form.unit)
    return float(round(value / unit) * unit)


def integer_means(plane, windows, counts, dtype):
    """The mean of each window of integers, rounded once; NaN, or 0 as an integer, for a window without elements."""
    nothing = 0 if dtype.kind in "iu" else math.nan
    return [nearest(Fraction(sum(plane[i] for i in window), count), dtype) if count else nothing
            for window, count in zip(windows, counts, strict=True)]


def result_dtype(x, given):
    """The dtype of means."""
    if x.kind not in "biu" and x.name not in FORMATS:
        raise KindError(f"means of {x}")
    if given is None:
        return np.dtype(np.float64) if x.kind in "biu" else x
    given = native(np.dtype(given))
    least = DIGITS["float32" if x.kind in "biu" else x.name]
    if given == x and x.kind != "b":
        return x
    if given.name not in FORMATS or any(low > high for low, high in zip(least, DIGITS[given.name], strict=True)):
        raise KindError(f"{given} for a mean of {x}")
    return given


def nothing_of(dtype, least, skipna):
    """The extremum of no elements, as in a plane."""
    if dtype.name in FORMATS:
        return math.nan if skipna else math.inf if least else -math.inf
    if dtype.kind in "mM":
        limits = np.iinfo(np.int64)
        return math.nan if skipna else limits.max if least else limits.min + 1  # the minimum is NaT
    if dtype.kind == "b":
        return int(least)
    return int(np.iinfo(dtype).max if least else np.iinfo(dtype).min)


def numbers_of(planes):
    """The elements of each plane as Python numbers. NaT becomes NaN, and a bool is 1 for any byte but 0."""
    if planes.dtype.kind == "b":
        return (planes.view(np.uint8) != 0).astype(int).tolist()
    if planes.dtype.kind in "mM":
        rows = planes.view(np.int64).tolist()
        return [[math.nan if value == np.iinfo(np.int64).min else value for value in row] for row in rows]
    if planes.dtype.name in FORMATS:
        return widened(planes).tolist()
    return planes.tolist()


def ascending(places, attributes):
    """The attributes of axes in ascending order."""
    order, rank = sorted(range(len(places)), key=places.__getitem__), len(places)
    changed = dict(attributes)
    for name in ("kernel_shape", "strides", "dilations"):
        if name in changed:
            row = per_axis(changed[name], rank, None)
            changed[name] = tuple(row[i] for i in order)
    if "pads" in changed:
        row = per_axis(changed["pads"], 2 * rank, 0)
        changed["pads"] = tuple(row[i + side] for side in (0, rank) for i in order)
    return changed


def places_of(axes, ndim):
    """The numbers of named axes from 0 on."""
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    if any(not -ndim <= axis < ndim for axis in axes) or len({axis % ndim for axis in axes}) < len(axes):
        raise GeometryError(f"axes={axes} of {ndim}")
    return [axis % ndim for axis in axes]


def left(plane, windows):
    """Windows without the positions of a plane's NaNs."""
    return [[i for i in window if plane[i] == plane[i]] for window in windows]


def cells_of_plane(base, plane, bits, windows, counts, attributes, dtype, result, skipna):
    """The cells of one plane, for all but Indices. `counts` are the divisors of means, in which NaNs count."""
    kept = left(plane, windows) if skipna else windows
    if "Max" in base or "Min" in base:
        least = "Min" in base
        return extrema(plane, kept, nothing_of(dtype, least, skipna), bits, min if least else max)
    if "Average" in base:
        counts = [count - len(window) + len(rest) for count, window, rest in zip(counts, windows, kept, strict=True)]
        if dtype.kind in "biu":
            return integer_means(plane, kept, counts, result)
        return means(plane, kept, counts, FORMATS[result.name])
    cells = norms(plane, kept, attributes.get("p", 2), FORMATS[dtype.name])
    return [math.nan if skipna and not rest else cell for cell, rest in zip(cells, kept, strict=True)]


def expect_along_axes(base, x, attributes, axes, *, keepdims=True, dtype=None, skipna=False, indexed=False):
    """The truths about one call; raises GeometryError if the library must refuse it."""
    kind = native(x.dtype)
    if kind.name not in ALL and str(kind) not in ALL:
        raise KindError(str(kind))
    if "Lp" in base and kind.name not in FORMATS:
        raise KindError(f"norms of {kind}")
    result = result_dtype(kind, dtype) if "Average" in base else kind
    places = places_of(axes, x.ndim)
    attributes = ascending(places, attributes)
    places = sorted(places)
    batch = [axis for axis in range(x.ndim) if axis not in places]
    order = (*batch, *places)
    sizes = [x.shape[axis] for axis in places]
    sliding = base if base in SLIDING else "MaxPool" if base == "MinPool" else base
    windows_of_axes = axes_of(sliding, sizes, attributes)
    windows = flat_windows(windows_of_axes, sizes)
    counts = divisors(windows_of_axes, windows, attributes.get("count_include_pad"))
    skipna = skipna and kind.kind not in "biu"
    planes = np.ascontiguousarray(native_order(x).transpose(order)).reshape(
        math.prod(x.shape[axis] for axis in batch), math.prod(sizes))
    rows, patterns = numbers_of(planes), patterns_of(planes)
    cells = [cell for plane, bits in zip(rows, patterns, strict=True) for cell in cells_of_plane(
        base, plane, bits, windows, counts, attributes, kind, result, skipna)]
    if kind.kind in "mM":
        cells = [int(np.iinfo(np.int64).min) if cell != cell else cell for cell in cells]
    shape = list(x.shape)
    for axis, along in zip(places, windows_of_axes, strict=True):
        shape[axis] = len(along.taps)
    if not keepdims:
        shape, order = [shape[axis] for axis in batch], range(len(batch))
    label = "exact" if "Average" in base and kind.kind in "biu" else base.replace("Min", "Max")
    made = (tuple(shape), False)
    truths = (AlongAxes(label, result, *made, cells, attributes.get("p", 2), order=tuple(order)),)
    if not indexed:
        return truths
    numbers = np.arange(x.size).reshape(x.shape, order="F" if attributes.get("storage_order") else "C")
    found = []
    for plane, here in zip(rows, numbers.transpose(order).reshape(planes.shape).tolist(), strict=True):
        choose = min if "Min" in base else max
        first = [first_extremum(plane, window, choose) for window in (left(plane, windows) if skipna else windows)]
        found += [NOTHING if place == NOTHING else here[place] for place in first]
    return (*truths, AlongAxes("Indices", np.dtype(np.int64), *made, found, order=tuple(order)))
