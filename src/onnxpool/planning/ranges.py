"""Ranges: which sums are certainly right, and which results may have to be computed again."""

import math
import sys

from ..dtypes import DTYPES
from .request import Reduction

SAFE = 960  # a double holds any sum of up to 2^63 numbers between 2^-SAFE and 2^SAFE without overflow or underflow
MOST_FLOAT, MOST_DOUBLE = (2 - 2**-23) * 2.0**127, sys.float_info.max


def safe_range(reduction: Reduction, dtype: str) -> tuple[float, float]:
    """The range in which a sum of p-th powers certainly did not overflow or underflow."""
    if reduction.name == "norm":
        low, high = DTYPES[dtype].exponents
        if reduction.p * max(-low, high) > SAFE:
            return 0.0 if reduction.p == 1 else 2.0**-SAFE, 2.0**SAFE  # sums of small numbers are exact, powers are not
    return 0.0, math.inf


def retries(reduction: Reduction, dtype: str) -> bool:
    """Whether a sum may leave its range, so that results have to be computed again."""
    if reduction.name == "mean":
        return dtype != "float16"
    return reduction.name == "norm" and reduction.p < math.inf and safe_range(reduction, dtype)[1] < math.inf


def top(dtype: str) -> float:
    """The largest number that the accumulators of means hold."""
    return MOST_DOUBLE if dtype == "float64" else MOST_FLOAT
