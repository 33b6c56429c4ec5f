"""How far results may differ from expected results, and whether they do."""

from typing import Any, NamedTuple

import numpy as np

from .cases import Array
from .oracle import AVERAGE, FORMATS, LP, Mean, Truth, as_number, widened
from .oracle_regions import Sample

# Relative errors of a sum of some thousand elements that is added in any order, and rounded to its type; in bfloat16,
# OpenVINO rounds every step.
RELATIVE = {"float16": 2.0**-9, "bfloat16": 2.0**-5, "float32": 1e-5, "float64": 1e-12}


class Tolerance(NamedTuple):
    """A result may differ from the expected one by `absolute` + `relative` * |expected|."""

    relative: float = 0.0
    absolute: float = 0.0


def tolerance(truth: Truth) -> Tolerance:
    """
    The tolerance of an output: 0 for elements, indices and quantised results.

    Errors of means and interpolated values are relative to their terms, which may cancel each other.
    """
    name = truth.dtype.name
    if truth.operator not in (*AVERAGE, *LP, "RoiAlign"):
        return Tolerance()
    terms = [as_number(Mean(cell.magnitude, 0, cell.divisor, 0), name) if isinstance(cell, Mean) else cell.magnitude
             for cell in truth.cells if isinstance(cell, (Mean, Sample))]
    return Tolerance(RELATIVE[name], RELATIVE[name] * max(terms, default=0.0))


def difference(found: Any, expected: Array, limit: Tolerance) -> str:
    """How a result differs from the expected one, in words; empty if it is within the tolerance."""
    if isinstance(found, str):
        return found  # why it cannot be read
    if not isinstance(found, np.ndarray):
        return f"a result that is no array, but a {type(found).__name__}"
    if found.dtype.name != expected.dtype.name:
        return f"dtype {found.dtype}, expected {expected.dtype}"
    if found.shape != expected.shape:
        return f"shape {list(found.shape)}, expected {list(expected.shape)}"
    if expected.dtype.name not in FORMATS:
        wrong = found != expected
    else:
        values, wanted = widened(found), widened(expected)
        with np.errstate(invalid="ignore"):
            near = np.abs(values - wanted) <= limit.absolute + limit.relative * np.abs(wanted)
        near &= np.isfinite(wanted)
        wrong = ~(near | (values == wanted) | (np.isnan(values) & np.isnan(wanted)))
    if not wrong.any():
        return ""
    place = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} elements: {list(place)} is {found[place]}, expected {expected[place]}"
