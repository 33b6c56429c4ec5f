"""Combining the partial results of shares into the result of the whole."""

import math
from typing import Any

import numpy as np

from ..arrays import Array
from ..dtypes import MOMENTS
from . import integers
from .request import MERGES, Reduction

LARGEST = np.finfo(np.float64).max


def ratio(a: Array, b: Array) -> Array:
    """a / b for 0 <= a <= b. If b is 0 or infinite, the ratio is 1 if a equals b, and otherwise 0."""
    plain = (b > 0) & np.isfinite(b)
    return np.where(plain, a / np.where(plain, b, 1), a == b)


def scaled(a: Array, b: Array, error: float) -> Array:
    """a * b. A product that this relative error alone makes infinite becomes the largest number."""
    product = a * b
    fits = np.isfinite(a) & (a / 2 * b <= LARGEST / 2 * (1 + error))
    return np.where(fits, np.minimum(product, LARGEST), product)


def counted(mean: Array, count: Array) -> Array:
    """A partial result of means that skip NaNs."""
    both = np.empty(mean.shape, [("mean", mean.dtype), ("count", np.int64)])
    both["mean"], both["count"] = mean, count
    return both


class Total:
    """
    The result of the shares added so far.

    Extrema are exact. So are integer sums below 2**EXACT, which a mean in float64 determines. Other means are added in
    float64, weighted by the sizes of their shares. Norms are scaled by the largest norm before their powers are added,
    so that no sum overflows. If NaNs are skipped, a NaN in a partial result stands for a share without a number, and
    means come with the number of their elements.
    """

    def __init__(self, reduction: Reduction, taps: int, dtype: np.dtype[Any]) -> None:
        self.reduction, self.taps, self.seen, self.shares = reduction, taps, 0, 0
        self.adds_integers = reduction.name == "mean" and dtype.kind in "biu"
        self.value: Array | None = None
        self.exact: Array | None = None  # where sums of integers are exact
        self.scale: Array | None = None  # the largest norm
        self.valid: Array | None = None  # how many elements (for norms, shares) are not NaN

    def add(self, value: Array, taps: int) -> None:
        """Add the partial result of one share."""
        self.seen += taps
        self.shares += 1
        reduction = self.reduction
        with np.errstate(all="ignore"):  # infinities and NaNs are results
            if reduction.name in MERGES or np.isinf(reduction.p):
                merge = MERGES.get(reduction.name, MERGES["max"])[reduction.skips]
                if reduction.skips and value.dtype.kind not in MOMENTS:
                    value = np.where(np.isnan(value), np.nan, value).astype(value.dtype)  # fmax returns signalling NaNs
                value = value if reduction.name in MERGES else value.astype(np.float64)
                self.value = value if self.value is None else getattr(np, merge)(self.value, value)
            elif reduction.name == "mean":
                self._add_mean(value, taps)
            else:
                self._add_norm(value)

    def _add_mean(self, value: Array, taps: int | Array) -> None:
        if self.reduction.skips:
            value, taps = value["mean"], value["count"]
            value = self._numbers(value, taps)
        value = value.astype(np.float64)
        if self.adds_integers:
            self._add_sum(np.rint(value * taps))
            return
        value = value * (taps / self.taps)
        if self.value is not None:
            finite, value = np.isfinite(self.value) & np.isfinite(value), self.value + value
            value = np.where(finite, np.clip(value, -LARGEST, LARGEST), value)  # rounding must not make it infinite
        self.value = value

    def _add_sum(self, value: Array) -> None:
        exact = abs(value) < 2.0**integers.EXACT
        if self.value is not None and self.exact is not None:
            value = self.value + value
            exact &= self.exact & (abs(value) < 2.0**integers.EXACT)
        self.value, self.exact = value, exact

    def _numbers(self, value: Array, count: Array) -> Array:
        """Partial results, with 0 for shares without a number. `count` is added to the numbers counted so far."""
        self.valid = count.astype(np.int64) if self.valid is None else self.valid + count
        return np.where(count, value, 0)

    def _add_norm(self, value: Array) -> None:
        value = value.astype(np.float64)
        if self.reduction.skips:
            value = self._numbers(value, ~np.isnan(value))
        if self.value is None or self.scale is None:
            self.value, self.scale = np.ones_like(value), value
            return
        p, scale = self.reduction.p, np.maximum(self.scale, value)
        self.value = self.value * ratio(self.scale, scale) ** p + ratio(value, scale) ** p
        self.scale = scale

    @property
    def error(self) -> float:
        """The bound on the relative error of a norm, as `Plan.combine` states it."""
        digits = 2 * math.log2(max(1, self.taps)) + 4 + self.shares
        return float(digits * 2**-53 * max(1.0, 1 / self.reduction.p))

    def result(self, dtype: np.dtype[Any] | None = None) -> Array | None:
        """The result, by default in the dtype in which shares were added. None without any share."""
        value = self.value
        with np.errstate(all="ignore"):
            if value is not None and self.exact is not None:
                return self._mean_of_integers(value, self.exact, dtype or np.dtype(np.float64))
            if value is not None and self.scale is not None:
                value = scaled(self.scale, value ** (1 / self.reduction.p), self.error)
            if value is not None and self.valid is not None:
                if self.reduction.name == "mean":
                    most = np.where(np.isfinite(value), LARGEST, np.inf)
                    value = np.clip(value * (self.taps / self.valid), -most, most)
                value = np.where(self.valid, value, np.nan)
                if dtype is None and self.reduction.name == "mean":
                    return counted(value, self.valid)
            if value is not None and self.reduction.name not in MERGES:
                value = np.where(np.isnan(value), np.nan, value)  # NaNs with the same bits, whatever the shares
            return value if value is None or dtype is None else value.astype(dtype)

    def _mean_of_integers(self, value: Array, exact: Array, dtype: np.dtype[Any]) -> Array:
        parts = [np.where(exact, value, 0).astype(np.int64)]
        means = integers.means(parts, integers.LONGEST, [np.array(self.taps)], dtype)
        if exact.all():
            return means
        value = value / self.taps
        return np.where(exact, means, integers.nearest(value, dtype) if dtype.kind in "iu" else value.astype(dtype))
