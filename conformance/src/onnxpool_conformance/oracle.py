"""The results that every pooling operator must return, from plain loops over windows and exact arithmetic.

Nothing here shares code with the library. A float is represented as a multiple of its type's smallest
subnormal, so sums are Python integers and exact; powers and roots are decimals of 40 digits.
"""

import decimal
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from operator import index
from typing import NamedTuple

import numpy as np

try:
    import ml_dtypes
except ImportError:  # packagers' tests run without bfloat16
    ml_dtypes = None

AVERAGE = ("AveragePool", "GlobalAveragePool")
MAX = ("MaxPool", "GlobalMaxPool", "NhwcMaxPool")
LP = ("LpPool", "GlobalLpPool")
QLINEAR_GLOBAL = "QLinearGlobalAveragePool"
QLINEAR_AVERAGE = "QLinearAveragePool"
NHWC_MAX = "NhwcMaxPool"
SLIDING = ("AveragePool", "MaxPool", "LpPool", QLINEAR_AVERAGE, NHWC_MAX)

DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name, None) or name)
    for name in ("float16", "bfloat16", "float32", "float64", "int8", "uint8")
    if ml_dtypes or name != "bfloat16"
}

DECIMALS = decimal.Context(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class Format(NamedTuple):
    """A binary floating-point format: its smallest subnormal is 2**-unit, finite values are below 2**top."""

    unit: int
    precision: int
    top: int

    def units(self, value):
        """A finite value as a multiple of the smallest subnormal."""
        numerator, denominator = value.as_integer_ratio()
        return numerator * ((1 << self.unit) // denominator)


FORMATS = {
    "float16": Format(24, 11, 16),
    "bfloat16": Format(133, 8, 128),
    "float32": Format(149, 24, 128),
    "float64": Format(1074, 53, 1024),
}


class GeometryError(ValueError):
    """The attributes do not fit the input; the library must refuse the call with PoolError."""


class KindError(GeometryError):
    """The operator does not accept a dtype; the library must refuse the call with PoolTypeError."""


# Windows


class Axis(NamedTuple):
    """One spatial axis: per output position, the input positions inside its window, and how many positions
    count_include_pad=1 counts there."""

    taps: tuple
    counted: tuple


def placement(size, span, stride, pads, auto_pad, ceil_mode):
    """The padding at the beginning and at the end of an axis, and the number of windows that span `span`."""
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        count = -(-size // stride)
        needed = max(0, (count - 1) * stride + span - size)
        small, large = needed // 2, needed - needed // 2
        return (small, large, count) if auto_pad == "SAME_UPPER" else (large, small, count)
    begin, end = (0, 0) if auto_pad == "VALID" else pads
    room = size + begin + end - span
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if count < 1:
        raise GeometryError(f"no window of {span} for {size}+{begin}+{end}")
    if ceil_mode and (count - 1) * stride >= size + begin:  # the last window would start in the padding at the end
        count -= 1
    return begin, end, count


@lru_cache(maxsize=4096)
def axis_windows(size, kernel, stride, dilation, pads, auto_pad, ceil_mode):
    """All windows along one axis."""
    if size == 0:
        raise GeometryError("an empty spatial axis")
    begin, end, count = placement(size, (kernel - 1) * dilation + 1, stride, pads, auto_pad, ceil_mode)
    taps, counted = [], []
    for output in range(count):
        start = output * stride - begin
        window = range(start, start + kernel * dilation, dilation)
        taps.append(tuple(window[below(window, 0):below(window, size)]))
        counted.append(below(window, size + end))
    return Axis(tuple(taps), tuple(counted))


def below(window, limit):
    """How many positions of a window are below a limit. This takes no longer for huge windows."""
    return min(len(window), max(0, -((window.start - limit) // window.step)))


def per_axis(value, rank, default):
    """An attribute as one number per axis. None means the default, and a single number applies to every axis."""
    if value is None:
        return (default,) * rank
    return (value,) * rank if isinstance(value, int) else tuple(map(index, value))


def axes_of(operator, spatial, attributes):
    """The windows of every spatial axis."""
    if operator not in SLIDING:
        if 0 in spatial:
            raise GeometryError("an empty spatial axis")
        return [Axis((tuple(range(size)),), (size,)) for size in spatial]
    rank = len(spatial)
    if rank == 0:
        raise GeometryError("no spatial axis")
    kernel = per_axis(attributes["kernel_shape"], rank, None)
    strides = per_axis(attributes.get("strides"), rank, 1)
    dilations = per_axis(attributes.get("dilations"), rank, 1)
    pads = per_axis(attributes.get("pads"), 2 * rank, 0)
    auto_pad = attributes.get("auto_pad") or "NOTSET"
    if auto_pad != "NOTSET" and any(pads):
        raise GeometryError("pads together with auto_pad")
    ceil_mode = attributes.get("ceil_mode") or 0
    ends = zip(pads[:rank], pads[rank:], strict=True)
    return [
        axis_windows(*row, auto_pad, ceil_mode) for row in zip(spatial, kernel, strides, dilations, ends, strict=True)
    ]


def flat_windows(axes, spatial):
    """For each output in row-major order, the positions of its taps in the flattened plane, also in row-major order."""
    windows = []
    for window in product(*(axis.taps for axis in axes)):
        flat = [0]
        for taps, size in zip(window, spatial, strict=True):
            flat = [base * size + tap for base in flat for tap in taps]
        windows.append(flat)
    return windows


def divisors(axes, windows, count_include_pad):
    """For each output, the divisor of its sum; 0 means that the window contains nothing."""
    if not count_include_pad:
        return [len(window) for window in windows]
    return [math.prod(counts) for counts in product(*(axis.counted for axis in axes))]


# Reductions: one plane (a list of numbers) to a list of cells


class Mean(NamedTuple):
    """The mean total / divisor, where `magnitude` is the sum of |x|; sums are in units of the smallest subnormal."""

    total: int
    magnitude: int
    divisor: int
    taps: int


class Norm(NamedTuple):
    """A norm, as a decimal number in units of the smallest subnormal."""

    value: decimal.Decimal
    taps: int


class Copied(float):
    """A NaN that must be one of the elements of its window, bit for bit."""

    __slots__ = ("patterns",)

    def __new__(cls, patterns):
        """A NaN with one of these bit patterns."""
        made = super().__new__(cls, math.nan)
        made.patterns = patterns
        return made


def extrema(plane, windows, nothing, patterns, choose=max):
    """The maximum (or minimum) of each window, where zeros of both signs are equal; NaN wins; `nothing` if the window
    is empty. `patterns` are the bits of the elements."""
    cells = []
    for window in windows:
        values = [plane[i] for i in window]
        if any(v != v for v in values):
            cells.append(Copied({patterns[i] for i in window if plane[i] != plane[i]}))
        else:
            cells.append(choose(values, default=nothing))
    return cells


def patterns_of(planes):
    """The bits of some elements as lists of integers."""
    return np.ascontiguousarray(planes).view(f"u{planes.dtype.itemsize}").tolist()


def means(plane, windows, counts, form):
    """The mean of each window: NaN if it is empty, a plain float if it contains infinities or NaN."""
    exact = [form.units(v) if math.isfinite(v) else None for v in plane]
    cells = []
    for window, count in zip(windows, counts, strict=True):
        special = [plane[i] for i in window if exact[i] is None]
        if special:
            cells.append(sum(special))  # inf + -inf is NaN
        elif count == 0:
            cells.append(math.nan)
        else:
            values = [exact[i] for i in window]
            cells.append(Mean(sum(values), sum(map(abs, values)), count, len(values)))
    return cells


def norms(plane, windows, p, form):
    """(sum |x|**p) ** (1/p) of each window. For p = inf, this is the largest |x|; for an empty window, it is 0."""
    with decimal.localcontext(DECIMALS) as context:
        exponent = context.create_decimal(p)
        sizes = [context.create_decimal(form.units(abs(v))) if math.isfinite(v) else None for v in plane]
        powers = sizes if math.isinf(p) else [v if v is None else v**exponent if v else v for v in sizes]
        zero = decimal.Decimal(0)
        cells = []
        for window in windows:
            special = [abs(plane[i]) for i in window if sizes[i] is None]
            values = [powers[i] for i in window]
            if special:
                cells.append(sum(special))
            elif math.isinf(p):
                cells.append(Norm(max(values, default=zero), len(values)))
            else:
                cells.append(Norm(root(sum(values, zero), exponent), len(values)))
    return cells


def root(total, p):
    """total ** (1/p) in the current decimal context."""
    if p == 1 or not total:
        return total
    return total.sqrt() if p == 2 else total ** (1 / p)


def quantised_mean(plane, x_scale, x_zero_point, y_scale, y_zero_point, limits):
    """The quantised global mean of an array of int64: an exact integer sum, followed by float32 steps."""
    total = int(plane.sum()) - x_zero_point * len(plane)
    scale = np.float32(x_scale) / (np.float32(y_scale) * np.float32(len(plane)))
    value = np.float32(total) * scale
    low, high = np.float32(limits.min - y_zero_point), np.float32(limits.max - y_zero_point)
    return int(np.rint(min(max(value, low), high))) + y_zero_point


def quantised_means(plane, windows, counts, x_scale, x_zero_point, y_scale, y_zero_point, limits):
    """The quantised mean of each window: real values summed in order, each step rounded to float32."""
    x_scale, y_scale = np.float32(x_scale), np.float32(y_scale)
    cells = []
    with np.errstate(over="ignore"):
        real = x_scale * (np.array(plane, np.int64) - x_zero_point).astype(np.float32)
        for window, count in zip(windows, counts, strict=True):
            total = np.add.accumulate(real[window])[-1] if window else np.float32(0)  # accumulate never regroups
            mean = total / np.float32(count) if count else np.float32(0)
            value = mean / y_scale + np.float32(y_zero_point)
            cells.append(int(min(max(np.rint(value), limits.min), limits.max)))
    return cells


def covers_all(attributes, spatial):
    """Whether there is one window, which covers the whole input without any padding."""
    rank = len(spatial)
    if per_axis(attributes["kernel_shape"], rank, None) != tuple(spatial):
        return False
    strides = per_axis(attributes.get("strides"), rank, 1)
    pads = per_axis(attributes.get("pads"), 2 * rank, 0)
    auto_pad, ceil_mode = attributes.get("auto_pad") or "NOTSET", attributes.get("ceil_mode") or 0
    rows = zip(spatial, strides, zip(pads[:rank], pads[rank:], strict=True), strict=True)
    return all(placement(size, size, stride, ends, auto_pad, ceil_mode)[:2] == (0, 0) for size, stride, ends in rows)


# A whole call


@dataclass(frozen=True)
class Truth:
    """The results that a call must return: one cell per output, channels first and row-major.

    A cell is a Mean, a Norm, or the exact number (as for all cells of the max and quantised operators).
    """

    operator: str
    dtype: np.dtype
    shape: tuple
    channels_last: bool
    cells: list
    p: float | None = None

    def cells_of(self, y):
        """A result, flattened in the order of the cells."""
        return (np.moveaxis(y, -1, 1) if self.channels_last else y).reshape(-1)

    def result(self):
        """The expected result as an array, every cell rounded to float64 and then to the dtype."""
        y = exact_array([as_number(cell, self.dtype.name) for cell in self.cells], self.dtype)
        if not self.channels_last:
            return y.reshape(self.shape)
        first = (self.shape[0], self.shape[-1], *self.shape[1:-1])
        return np.moveaxis(y.reshape(first), 1, -1)


def exact_array(numbers, dtype):
    """Numbers as an array: integers as they are, times as integers, floats rounded from float64."""
    if dtype.name in FORMATS:
        with np.errstate(over="ignore"):
            return np.array(numbers, np.float64).astype(dtype)
    return np.array(numbers, np.int64 if dtype.kind in "mM" else dtype).view(dtype)


def as_number(cell, name):
    """A cell as the nearest Python number."""
    if isinstance(cell, Mean):
        return cell.total / (cell.divisor << FORMATS[name].unit)
    if isinstance(cell, tuple) and not isinstance(cell, Norm):
        return cell.value  # the value of a sample
    if isinstance(cell, Norm):
        return float(DECIMALS.divide(cell.value, decimal.Decimal(1 << FORMATS[name].unit)))
    return cell


def native(dtype):
    """The dtype in the byte order of this machine (bfloat16 has no other)."""
    return dtype if dtype.name == "bfloat16" else dtype.newbyteorder("=")


def widened(x):
    """Floats as float64."""
    with np.errstate(invalid="ignore"):  # from signalling NaNs
        return x.astype(np.float64)


def native_order(x):
    """An array in the byte order of this machine."""
    return x.astype(native(x.dtype), copy=False)


def expect(operator, inputs, attributes=None, *, channels_last=False):
    """The truth about one call; raises GeometryError if the library must refuse it."""
    x, *quantisation = inputs
    attributes = attributes or {}
    if x.ndim < 2:
        raise GeometryError("no batch and channel axes")
    dtype = native(x.dtype)
    first = np.moveaxis(x, -1, 1) if channels_last else x
    spatial = first.shape[2:]
    axes = axes_of(operator, spatial, attributes)
    wide = widened(first) if dtype.name in FORMATS else first.astype(np.int64)
    arrays = wide.reshape(math.prod(first.shape[:2]), math.prod(spatial))
    p, numbers = None, [0 if value is None else np.asarray(value).item() for value in quantisation]
    if dtype.name not in FORMATS:
        numbers.append(np.iinfo(dtype))
    if operator == QLINEAR_GLOBAL or (operator == QLINEAR_AVERAGE and covers_all(attributes, spatial)):
        cells = [[quantised_mean(array, *numbers)] for array in arrays]
    else:
        windows, planes = flat_windows(axes, spatial), arrays.tolist()
        if operator in MAX:
            patterns = patterns_of(native_order(first).reshape(arrays.shape))
            nothing = -math.inf if dtype.name in FORMATS else int(np.iinfo(dtype).min)
            cells = [extrema(plane, windows, nothing, row) for plane, row in zip(planes, patterns, strict=True)]
        elif operator in LP:
            p = attributes.get("p", 2)
            cells = [norms(plane, windows, p, FORMATS[dtype.name]) for plane in planes]
        else:
            counts = divisors(axes, windows, attributes.get("count_include_pad"))
            cells = [means(plane, windows, counts, FORMATS[dtype.name]) if operator in AVERAGE else
                     quantised_means(plane, windows, counts, *numbers) for plane in planes]
    outputs = tuple(len(axis.taps) for axis in axes)
    shape = (x.shape[0], *outputs, x.shape[-1]) if channels_last else (*x.shape[:2], *outputs)
    return Truth(operator, dtype, shape, channels_last, [cell for row in cells for cell in row], p)
