"""Ranges: which sums are sure to be right, and which results may have to be computed again."""

import math
import sys

from ..dtypes import DTYPES
from .request import Reduction

SAFE = 960  # a double holds sums of powers of two from -SAFE to SAFE without loss, up to 2^63 of them
MOST_FLOAT, MOST_DOUBLE = (2 - 2**-23) * 2.0**127, sys.float_info.max


def safe_range(reduction: Reduction, dtype: str) -> tuple[float, float]:
    """The sums of p-th powers that are sure to have neither overflowed nor lost digits to an underflow."""
    low, high = DTYPES[dtype].exponents
    if reduction.p * max(-low, high) <= SAFE:
        return 0.0, math.inf
    return 2.0**-SAFE, 2.0**SAFE


def retries(reduction: Reduction, dtype: str) -> bool:
    """Whether results may have to be computed again, as a sum may have left its range."""
    if reduction.name == "mean":
        return dtype != "float16"
    return reduction.name == "norm" and reduction.p < math.inf and safe_range(reduction, dtype)[1] < math.inf


def harmless(reduction: Reduction, dtype: str, taps: int) -> tuple[float, float]:
    """Magnitudes between which elements never take a sum of so many taps out of its range."""
    taps = max(taps, 1)
    if reduction.name != "norm":
        return 0.0, (MOST_DOUBLE if dtype == "float64" else MOST_FLOAT) / (2 * taps)
    low, high = safe_range(reduction, dtype)
    if math.isinf(reduction.p) or math.isinf(high):
        return 0.0, math.inf
    return 1.001 * low ** (1 / reduction.p), 0.999 * (high / (2 * taps)) ** (1 / reduction.p)
