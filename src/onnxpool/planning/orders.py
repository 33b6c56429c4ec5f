"""Orders: how elements become signed integers whose maximum is the maximum or minimum of the elements.

Loops compare these integers; `Order` in `core/job.h` says how they compute them. Several elements of one reduction thus
share a unit. Negative zero is less than zero. Any NaN is an extremum, whatever its sign.
"""

from typing import NamedTuple

from ..dtypes import DTYPES, SIGNED


class Order(NamedTuple):
    """The patterns of bits of `Order` in `core/job.h`, each repeated to fill 64 bits."""

    mask: int = 0
    flip: int = 0
    shift: int = 0


def repeated(bits: int, value: int) -> int:
    """The pattern of 64 bits that repeats the lowest bits of a value."""
    return (value & (1 << bits) - 1) * (((1 << 64) - 1) // ((1 << bits) - 1))


def order_of(extremum: str, dtype: str) -> Order:
    """The order of elements: "max", "min" or "magnitude", the largest absolute value of floats."""
    row = DTYPES[dtype]
    bits = 8 * row.itemsize
    sign, flip = 1 << bits - 1, -1 if extremum == "min" else 0
    if extremum == "magnitude":  # a negative element loses its sign, and then all are unsigned integers
        mask, flip, shift = sign, sign, 0
    elif row.digits:  # a sign and a magnitude; the NaNs of either sign are beyond infinity
        mask, shift = sign - 1, (1 << row.digits - 1) - 1
    else:
        mask, shift = 0, 0
        if dtype not in SIGNED:
            flip ^= sign
        if dtype == "bool" and extremum == "min":  # the minimum of no elements is 1
            flip = sign | 1
    return Order(repeated(bits, mask), repeated(bits, flip), repeated(bits, shift))


def indexed_order_of(extremum: str, dtype: str) -> Order:
    """The order of extrema with indices. Integers are widened, and floats are compared as floats, so that the first NaN
    counts."""
    row = DTYPES[dtype]
    bits = 64 if row.itemsize == 8 else 32
    if row.digits:
        return Order(flip=repeated(bits, 1 << bits - 1) if extremum == "min" else 0)
    flip = order_of(extremum, dtype).flip & (1 << 8 * row.itemsize) - 1
    negative = flip >> 8 * row.itemsize - 1
    return Order(flip=repeated(bits, flip - (negative << 8 * row.itemsize)))
