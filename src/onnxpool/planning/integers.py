"""Means of integers: exact sums, rounded once.

The kernels for floats add windows, of elements that are converted a part at a time, so that sums are integers that
float64 represents. If they are too large for that, elements are cut into pieces of few bits, whose sums are combined.
NumPy adds whole axes.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..windows import Axis, largest_divisor
from .request import Request

EXACT = 51  # bits of sums that can be recovered from a mean in float64
LONGEST = 62  # bits of sums in 64-bit integers
HUGE = 1 << 43  # divisors that are left to Python's integers
SLAB = 1 << 20  # bytes of elements of which pieces are made at a time, at least
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
FLOAT32_DIGITS, FLOAT64_DIGITS = 24, 53

Piece = Callable[[Array], Array]  # some bits of each element
Sums = Callable[[Piece], Array]  # exact sums of pieces over windows, as int64


def bits_of(dtype: np.dtype[Any]) -> int:
    """The number of bits of the magnitudes of a dtype."""
    return 1 if dtype.kind == "b" else 8 * dtype.itemsize - (dtype.kind == "i")


def held_in(dtype: np.dtype[Any], result: np.dtype[Any], axes: Sequence[Axis]) -> np.dtype[Any]:
    """The float dtype to which elements are converted."""
    if dtype.kind not in "biu":
        return result
    short = bits_of(dtype) + largest_divisor(axes).bit_length() <= FLOAT32_DIGITS
    return FLOAT32 if short and result == FLOAT32 else FLOAT64


FEW_TAPS = {"uint8": 16, "int16": 256, "uint16": 256}  # of means that loops round in fewer steps
MOST_TAPS = {"uint8": 257, "int16": 1 << 15, "uint16": 1 << 15}  # of means that loops round to integers


def is_compiled(request: Request) -> bool:
    """Whether there are loops that round means of these windows to integers."""
    fits = largest_divisor(request.axes) <= MOST_TAPS.get(request.dtype.name, 0)
    return request.result_dtype == request.dtype and not request.reduction.whole and fits


def has_few_taps(request: Request) -> bool:
    """Whether these loops can round means in fewer steps."""
    return largest_divisor(request.axes) <= FEW_TAPS[request.dtype.name]


def counts_along(axis: Axis) -> Array:
    """The divisor of each window along an axis."""
    counts = np.full(axis.out, axis.kernel, np.int64)
    for window in (*range(axis.begin), *range(axis.end, axis.out)):
        counts[window] = axis.window(window).divisor
    return counts


def counts_of(windows: Sequence[tuple[int, Axis]], ndim: int) -> Array:
    """The divisors of means, in a shape that can be broadcast to that of the result."""
    counts = np.ones((1,) * ndim, np.int64)
    for place, axis in windows:
        shape = [1] * ndim
        shape[place] = axis.out
        counts = counts * counts_along(axis).reshape(shape)
    return counts


def magnitude_bits(x: Array) -> int:
    """The number of bits of the magnitudes of an array."""
    if x.dtype.itemsize < FLOAT64.itemsize or not x.size:
        return bits_of(x.dtype)
    return max(int(x.max()).bit_length(), (~int(x.min()) if x.dtype.kind == "i" else 0).bit_length())


def piece_of(x: Array, shift: int, mask: int | None) -> Array:
    """The bits of elements from a place on, or only those of a mask."""
    x = x.astype(np.uint8) if x.dtype.kind == "b" else x  # 1 for any byte but 0
    x = x >> shift if shift else x
    return x if mask is None else x & mask


def pieces_of(x: Array, bits: int) -> list[Piece]:
    """The pieces of so many bits that the elements of an array consist of, the highest first, with its sign."""
    count = max(1, -(-magnitude_bits(x) // bits))
    masks = [None, *[(1 << bits) - 1] * (count - 1)]
    return [partial(piece_of, shift=bits * (count - 1 - place), mask=mask) for place, mask in enumerate(masks)]


def has_huge_divisors(axes: Sequence[Axis]) -> bool:
    """Whether 64-bit integers may not suffice for divisors and remainders: if much more padding counts than there is
    room for in any array."""
    return largest_divisor(axes) >= HUGE and any(axis.counts_pads for axis in axes)


def divided(x: Array, sums: Sums, counts: Array, bits: int) -> tuple[Array, Array]:
    """
    The quotients of sums and counts, rounded down, and the remainders.

    Parameters
    ----------
    x : ndarray of int
    sums : callable
        Adds pieces of the elements of windows. Exact for pieces of as many bits.
    counts : ndarray of int64
        Divisors, at least 1.
    bits : int
    """
    quotient = rest = np.zeros((), np.uint64 if x.dtype.kind == "u" and x.dtype.itemsize == 8 else np.int64)
    rest = rest.astype(np.int64)
    for piece in pieces_of(x, bits):
        total = (rest << bits) + sums(piece)
        low = total // counts
        rest = total - low * counts
        quotient = (quotient << quotient.dtype.type(bits)) + low.astype(quotient.dtype)
    return quotient, rest


def odd(quotient: Array, total: Array, counts: Array) -> Array:
    """
    total / counts in float64, of which `quotient` is the nearest, rounded to odd: if it is inexact, the last bit is 1.
    This prevents double rounding. The product of quotient and counts is that of Dekker (1971), with its error.
    """
    def halves(x: Array) -> tuple[Array, Array]:
        high = (x.view(np.int64) & ~0x7ffffff).view(np.float64)
        return high, x - high

    product = quotient * counts
    (a, b), (c, d) = halves(quotient), halves(counts)
    excess = (total - product) - (((a * c - product) + a * d + b * c) + b * d)
    even = (quotient.view(np.int64) & 1) == 0
    other: Array = np.nextafter(quotient, np.copysign(np.inf, excess))
    return np.where(even & (excess != 0), other, quotient)


def rounded(quotient: Array, rest: Array, counts: Array, result: np.dtype[Any]) -> Array:
    """quotient + rest / counts, rounded once: to the nearest value of the result, with ties to even."""
    kind = quotient.dtype
    if result.kind in "iu":
        up = (2 * rest > counts) | ((2 * rest == counts) & (quotient & kind.type(1)).astype(bool))
        nearest: Array = quotient + up.astype(kind)
        return nearest.astype(result)
    length = np.frexp(np.abs(quotient.astype(FLOAT64)))[1].astype(np.int64)
    width = int(counts.max()).bit_length()
    # Sums that float64 represents.
    divisors = counts.astype(FLOAT64)
    total = quotient.astype(FLOAT64) * divisors + rest
    y = total / divisors
    if result == FLOAT32:
        y = odd(y, total, np.broadcast_to(divisors, y.shape).copy())
    large = length + width > FLOAT64_DIGITS
    if not large.any():
        return y.astype(result)
    # Others: 55 to 64 binary digits of the mean, the last of which is 1 if others follow. Divisors of more than 30
    # digits leave room for fewer than that at a time.
    digits, shift = quotient, np.zeros_like(length)
    while True:
        step = np.clip(np.minimum(LONGEST - 2 - length - shift, LONGEST - width), 0, None)
        moved = rest << step
        digits = (digits << step.astype(kind)) + (moved // counts).astype(kind)
        rest, shift = moved % counts, shift + step
        if (length + shift)[large].min() >= FLOAT64_DIGITS + 2:
            break
    more = rest != 0
    if result == FLOAT32:
        extra = np.clip(length + shift - EXACT, 0, None).astype(kind)
        more |= digits & ((kind.type(1) << extra) - kind.type(1)) != 0
        digits, shift = digits >> extra, shift - extra.astype(np.int64)
    precise = np.ldexp((digits | more.astype(kind)).astype(FLOAT64), -shift.astype(np.int32))
    return np.where(large, precise, y).astype(result)


def nearest(means: Array, result: np.dtype[Any]) -> Array:
    """Means in float64 as integers. The largest ones of 64 bits round to floats that are beyond the range."""
    limits, means = np.iinfo(result), np.rint(means)
    beyond = means >= 2.0 ** bits_of(result)
    low = np.maximum(np.where(beyond, 0, means), limits.min).astype(result)
    return np.where(beyond, result.type(limits.max), low)


def means(x: Array, sums: Sums, counts: Array, bits: int, result: np.dtype[Any]) -> Array:
    """The means of windows, rounded once. Those of no elements are NaN, or 0 as an integer."""
    whole = np.maximum(counts, 1)
    y = rounded(*divided(x, sums, whole, bits), whole, result)
    if (counts == 0).any():
        y = np.where(counts == 0, result.type(0) if result.kind in "iu" else np.nan, y).astype(result)
    return y


def recovered(x: Array, mean: Callable[[Array], Array], counts: Array) -> Sums:
    """Exact sums from means in float64."""
    def sums(piece: Piece) -> Array:
        total: Array = np.rint(np.where(counts, mean(piece(x).astype(FLOAT64)), 0) * counts)
        return total.astype(np.int64)

    return sums


def window_means(x: Array, mean: Callable[[Array], Array], held: np.dtype[Any], windows: Sequence[tuple[int, Axis]],
                 result: np.dtype[Any]) -> Array:
    """
    Means of windows.

    Parameters
    ----------
    x : ndarray
    mean : callable
        The means of an array of the dtype that follows.
    held : numpy.dtype
    windows : sequence of (int, Axis)
    result : numpy.dtype
    """
    if x.dtype.kind not in "biu":
        return mean(x.astype(held))
    bits = EXACT - largest_divisor([axis for _, axis in windows]).bit_length()
    if held == FLOAT32 or (result == FLOAT64 and magnitude_bits(x) <= bits):  # these quotients are rounded once
        return mean(x.astype(held))
    counts = counts_of(windows, x.ndim)
    if result.kind in "iu" and magnitude_bits(x) <= bits:
        y = np.rint(mean(x.astype(held)))
        return np.where(counts, y, 0).astype(result)
    return means(x, recovered(x, mean, counts), counts, bits, result)


def huge_counts_of(windows: Sequence[tuple[int, Axis]], ndim: int) -> Array:
    """The divisors of means as Python's integers, in the shape of the result along the pooled axes."""
    counts = np.ones((1,) * ndim, object)
    for place, axis in windows:
        shape = [1] * ndim
        shape[place] = axis.out
        divisors = np.array([axis.window(index).divisor for index in range(axis.out)], object)
        counts = counts * divisors.reshape(shape)
    return counts


def quotient_of(total: int, divisor: int, result: np.dtype[Any]) -> float:
    """A mean, rounded once."""
    if result.kind in "iu":
        whole, rest = divmod(total, divisor or 1)
        return whole + (2 * rest > divisor or (2 * rest == divisor and whole % 2))
    if divisor == 0:
        return math.nan
    quotient = total / divisor  # rounded once, to float64
    if result == FLOAT32:  # as `odd` does
        above, below = quotient.as_integer_ratio()
        excess = total * below - above * divisor
        mantissa = int(math.ldexp(math.frexp(quotient)[0], FLOAT64_DIGITS))
        if excess and mantissa % 2 == 0:
            return math.nextafter(quotient, math.copysign(math.inf, excess))
    return quotient


def huge_window_means(x: Array, mean: Callable[[Array], Array], windows: Sequence[tuple[int, Axis]], counts: Array,
                      result: np.dtype[Any]) -> Array:
    """Means of windows as in `window_means`, whose divisors are `counts`, while `mean` divides by the elements."""
    axes = [axis for _, axis in windows]
    bits = EXACT - largest_divisor(axes).bit_length()
    sums = recovered(x, mean, counts_of(windows, x.ndim))
    total: Any = 0
    for piece in pieces_of(x, bits):
        total = total * (1 << bits) + sums(piece).astype(object)
    each = np.frompyfunc(partial(quotient_of, result=result), 2, 1)
    return np.asarray(each(total, counts)).astype(result)


def whole_means(x: Array, axes: tuple[int, ...], keepdims: bool, result: np.dtype[Any]) -> Array:
    """Means over whole axes. Pieces of elements are made for one slab of the array at a time."""
    taps = math.prod([x.shape[axis] for axis in axes])
    kind = np.uint64 if x.dtype.kind == "u" else np.int64
    along = max(axes, key=lambda axis: x.shape[axis], default=0)
    slabs = 1
    if axes and bits_of(x.dtype) > LONGEST - taps.bit_length():
        slabs = min(-(-x.nbytes // (SLAB + 8 * x.nbytes // taps)), x.shape[along])

    def sums(piece: Piece) -> Array:
        total = np.zeros((), np.int64)
        for slab in np.array_split(x, slabs, along) if axes else [x]:
            total = total + piece(slab).sum(axis=axes, dtype=kind, keepdims=keepdims).astype(np.int64)
        return total

    return means(x, sums, np.full((), taps, np.int64), LONGEST - taps.bit_length(), result)
