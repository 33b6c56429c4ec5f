"""Orders: how elements become signed integers whose maximum is the maximum or minimum of the elements.

Loops compare these integers; `Order` in `core/job.h` says how they compute them. Several elements of one reduction thus
share a unit. Negative zero is less than zero. Any NaN is an extremum, whatever its sign. If NaNs are skipped, any other
element takes precedence over them.
"""

from typing import Any, NamedTuple

import numpy as np

from ..arrays import dtype_name
from ..dtypes import DTYPES, MOMENTS, SIGNED


class Order(NamedTuple):
    """The bit patterns of `Order` in `core/job.h`, each repeated to fill 64 bits."""

    mask: int = 0
    flip: int = 0
    shift: int = 0
    truth: int = 0
    infinity: int = 0


def repeated(bits: int, value: int) -> int:
    """The pattern of 64 bits that repeats the lowest bits of a value."""
    return (value & (1 << bits) - 1) * (((1 << 64) - 1) // ((1 << bits) - 1))


def held_as(dtype: np.dtype[Any]) -> str:
    """The name of a dtype in the table. Times have the elements of int64."""
    return f"int{8 * dtype.itemsize}" if dtype.kind in MOMENTS else dtype_name(dtype)


def order_of(extremum: str, dtype: np.dtype[Any], skips: bool = False) -> Order:
    """The order of elements for "max", "min" or "magnitude", which is the largest absolute value of floats. If NaNs are
    skipped, the shift moves the greatest integers to the bottom, instead of the least integers to the top."""
    name = held_as(dtype)
    row = DTYPES[name]
    bits = 8 * row.itemsize
    sign, flip = 1 << bits - 1, -1 if extremum == "min" else 0
    nans = (1 << row.digits - 1) - 1 if row.digits else 0  # the number of NaNs with one sign
    if extremum == "magnitude":  # a negative element loses its sign, and then all are unsigned integers
        mask, flip, shift = sign, 0 if skips else sign, -nans if skips else 0
    elif row.digits:  # a sign and a magnitude; the NaNs of either sign are beyond infinity
        mask, shift = sign - 1, -nans if skips else nans
    else:
        mask, shift = 0, 0
        if dtype.kind in MOMENTS and skips == (extremum == "min"):  # NaT is the least integer
            shift = -1 if skips else 1
        if name not in SIGNED:
            flip ^= sign
    truth, largest = -(name == "bool"), infinity(dtype) if extremum == "magnitude" else 0
    return Order(*[repeated(bits, pattern) for pattern in (mask, flip, shift, truth, largest)])


def indexed_order_of(extremum: str, dtype: np.dtype[Any], skips: bool = False) -> Order:
    """The order of extrema with indices. Integers are widened. Floats are compared as floats, so that the first NaN
    counts. If NaNs are skipped, floats are compared as integers."""
    own, bits = 8 * dtype.itemsize, 64 if dtype.itemsize == 8 else 32
    if DTYPES[held_as(dtype)].digits and skips:
        return Order(mask=repeated(bits, (1 << own - 1) - 1), flip=repeated(bits, -1) if extremum == "min" else 0)
    if DTYPES[held_as(dtype)].digits:
        return Order(flip=repeated(bits, 1 << bits - 1) if extremum == "min" else 0)
    order = order_of(extremum, dtype, skips)
    flip = order.flip & (1 << own) - 1
    negative = flip >> own - 1
    return order._replace(flip=repeated(bits, flip - (negative << own)))


def infinity(dtype: np.dtype[Any]) -> int:
    """The bits of infinity, the largest magnitude that is not NaN."""
    row = DTYPES[dtype_name(dtype)]
    return ((1 << row.exponent_bits) - 1) << row.digits - 1
