"""Whether a result agrees with the truth: the only place that defines how large the error of each operator may be."""

import decimal
import functools
import math
from typing import NamedTuple

import numpy as np
from onnxpool_conformance.oracle import (
    AVERAGE,
    DECIMALS,
    FORMATS,
    LP,
    MAX,
    Copied,
    Mean,
    Norm,
    exact_array,
    patterns_of,
    widened,
)
from onnxpool_conformance.oracle_regions import Sample

# Errors of means are compared in units of 2**-(bits of the accumulator + FRACTION).
FRACTION = 20

# The float type in which sums are kept, as (bits of the significand, exponent of its smallest subnormal).
ACCUMULATORS = {"float16": (24, 149), "bfloat16": (24, 149), "float32": (24, 149), "float64": (53, 1074)}

# The error allowed for an interpolated value, relative to the largest element it was computed from.
INTERPOLATION = {"float16": 1e-6, "bfloat16": 1e-6, "float32": 1e-6, "float64": 1e-14}
COMPUTED = (*AVERAGE, *LP, "RoiAlign", "exact")  # results whose NaNs all have the same bits
OVERFLOWING = ("float64",)  # dtypes whose sums of samples may exceed the range of the accumulator


class Verdict(NamedTuple):
    """The outcome of a comparison: the worst error in units of the bound, and a description of a mismatch."""

    worst: float
    problem: str | None


@functools.cache
def mean_limit(taps):
    """The error allowed for a mean of this many taps, in units of u * mean|x|."""
    return 2 * math.log2(taps) + 4 if taps else 0


@functools.cache
def norm_limit(dtype_name, p, taps):
    """The error allowed for a p-norm of this many taps, in ulps of the result."""
    if math.isinf(p):
        return 0
    if dtype_name == "float64":
        return (2 * math.log2(max(taps, 1)) + 8) * max(1, 1 / p)
    return 1 if p in (1, 2) else 4


def same_number(value, expected):
    """Whether numbers are equal, or both NaN."""
    return value == expected or (value != value and expected != expected)


def mean_error(value, mean, name):
    """The error of a finite mean in units of the bound. A non-finite result is infinitely wrong."""
    if not math.isfinite(value):
        return math.inf
    form = FORMATS[name]
    bits, accumulator_unit = ACCUMULATORS[name]
    units = form.units(value)
    error = abs(units * mean.divisor - mean.total)
    if error == 0:
        return 0.0
    scale = bits + FRACTION
    # Every term below is doubled, because roundings are half an ulp.
    allowed = 2 * mean.magnitude * math.ceil(mean_limit(mean.taps) * 2**FRACTION)
    allowed += mean.divisor << max(0, scale + form.unit - accumulator_unit)  # rounding among the subnormals
    if form.precision < bits:
        largest = max(abs(units), abs(mean.total) // mean.divisor)
        allowed += (mean.divisor << max(0, largest.bit_length() - form.precision)) << scale
    return ratio(error << (scale + 1), allowed)


def ratio(error, allowed):
    """The quotient of two integers of any size."""
    return math.inf if error >> 1000 > allowed else error / allowed


def norm_error(value, norm, name, p):
    """The error of a norm in units of the bound. Infinity stands for the first number beyond the finite numbers."""
    if math.isnan(value) or math.copysign(1, value) < 0:
        return math.inf
    form = FORMATS[name]
    beyond = 1 << (form.unit + form.top)
    units = form.units(value) if math.isfinite(value) else beyond
    if units == beyond and norm.value >= beyond:
        return 0.0
    ulp = 1 << max(0, int(norm.value).bit_length() - form.precision)
    with decimal.localcontext(DECIMALS) as context:
        error = float(abs(context.create_decimal(units) - norm.value) / ulp)
    limit = norm_limit(name, p, norm.taps)
    if error == 0:
        return 0.0
    return error / limit if limit else math.inf


def sample_error(value, sample, name):
    """The error of an interpolated value in units of the bound. Infinities and NaN must match exactly."""
    if same_number(value, sample.value):
        return 0.0
    form = FORMATS[name]
    rounding = 2.0**-form.precision if name in ("float16", "bfloat16") else 0.0
    # A product with a weight may lose half of the smallest subnormal. There are at most two for each sample of an axis.
    subnormals = (3 + sample.count) * math.ldexp(1.0, -form.unit)
    allowed = sample.magnitude * (INTERPOLATION[name] + rounding) + subnormals
    largest = math.ldexp(2.0 - 2.0 ** (1 - form.precision), form.top - 1)
    if not math.isfinite(sample.value):
        return math.inf
    if not math.isfinite(value):
        if name in OVERFLOWING:
            return 0.0 if sample.magnitude * sample.count >= largest else math.inf
        return 0.0 if not math.isnan(value) and abs(sample.value) + allowed >= largest else math.inf
    return abs(value - sample.value) / allowed


def cell_error(value, cell, name, p=None):
    """The error of one output of a dtype in units of the bound, for norms of order p."""
    if isinstance(cell, Mean):
        return mean_error(value, cell, name)
    if isinstance(cell, Norm):
        return norm_error(value, cell, name, p)
    if isinstance(cell, Sample):
        return sample_error(value, cell, name)
    return 0.0 if same_number(value, cell) else math.inf


def bits_differ(values, cells, dtype, signed_zeros):
    """For each output, whether its bits differ from the expected ones. All NaNs count as equal, except those that are
    copied from elements. Both zeros count as equal, as for maxima, unless `signed_zeros`. A bool is true for any byte
    but 0."""
    expected = exact_array(cells, dtype)
    pattern = np.dtype(f"u{dtype.itemsize}")
    found = values.view(pattern)
    if dtype.kind == "b":
        return (found != 0) != expected
    differ = found != expected.view(pattern)
    if dtype.name not in FORMATS:
        return differ
    values, expected = widened(values), widened(expected)
    if not signed_zeros:
        differ &= (values != 0) | (expected != 0)
    differ &= ~((values != values) & (expected != expected))
    for place in np.flatnonzero(expected != expected):
        if isinstance(cells[place], Copied):
            differ[place] = int(found[place]) not in cells[place].patterns
    return differ


def odd_nans(values):
    """For each output, whether it is a NaN other than the positive quiet one without payload."""
    form, bits = FORMATS[values.dtype.name], 8 * values.dtype.itemsize
    usual = (1 << bits - 1) - (1 << form.precision - 2)
    return np.isnan(widened(values)) & (values.view(f"u{values.dtype.itemsize}") != usual)


def judge(truth, y):
    """Compare a result with the truth."""
    if y.dtype != truth.dtype:
        return Verdict(math.inf, f"dtype {y.dtype!r}, expected {truth.dtype!r}")
    if y.shape != truth.shape:
        return Verdict(math.inf, f"shape {y.shape}, expected {truth.shape}")
    values = np.ascontiguousarray(truth.cells_of(np.ascontiguousarray(y).reshape(y.shape)))
    if truth.operator in COMPUTED and truth.dtype.name in FORMATS and (odd := odd_nans(values)).any():
        where = int(odd.argmax())
        return Verdict(math.inf, f"output {where} is the NaN {patterns_of(values)[where]:#x}, not the usual one")
    if truth.operator in (*AVERAGE, *LP, "RoiAlign"):
        numbers, name = widened(values).tolist(), truth.dtype.name  # properties, which are slow to compute
        errors = [cell_error(value, cell, name, truth.p) for value, cell in zip(numbers, truth.cells, strict=True)]
    else:
        signed_zeros = truth.operator not in (*MAX, "MaxRoiPool")
        differ = bits_differ(values, truth.cells, truth.dtype, signed_zeros)
        errors = np.where(differ, math.inf, 0.0).tolist()
    worst = max(errors, default=0.0)
    if worst <= 1:
        return Verdict(worst, None)
    where = errors.index(worst)
    wrong = sum(error > 1 for error in errors)
    position = f"output {where} of {len(errors)} (channels first), {wrong} wrong"
    return Verdict(worst, f"{position}: got {values[where]!r}, expected {truth.cells_of(truth.result())[where]!r}")
