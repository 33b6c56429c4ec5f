"""Means of integers: exact sums, rounded once.

Loops for integers average elements of 8 and 16 bits. Wider elements are converted to floats a part at a time, and so
are all elements if means are floats. Sums are then integers that float64 represents. If sums are too large for that,
elements are cut into pieces of few bits, whose sums are combined. NumPy adds whole axes.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import kernels
from ..arrays import Array
from ..attributes import INT64_MAX
from ..windows import Axis, largest_divisor
from .request import Request

EXACT = 51  # bits of sums that can be recovered from a mean in float64
LONGEST = 62  # bits of sums in 64-bit integers
HUGE = 1 << 43  # minimum divisor for which a mean no longer determines its sum
SLAB = 1 << 20  # minimum bytes of elements that are cut into pieces at a time
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT16 = np.dtype(np.int16)  # bytes are averaged in this dtype if sums do not fit into 16 bits
FLOAT32_DIGITS = 24
DIVISOR = 2  # row of `kernels.windows_of`

Piece = Callable[[Array], Array]  # some bits of each element


def bits_of(dtype: np.dtype[Any]) -> int:
    """The number of bits that a dtype's magnitudes have."""
    return 1 if dtype.kind == "b" else 8 * dtype.itemsize - (dtype.kind == "i")


def exact_divisor(dtype: np.dtype[Any], held: np.dtype[Any]) -> int:
    """The largest divisor for which a dtype's sums are exact in floats, so that quotients are rounded once."""
    digits = FLOAT32_DIGITS if held == FLOAT32 else EXACT
    return int((1 << max(0, digits - bits_of(dtype))) - 1)


FEW_TAPS = {"uint8": 16, "int16": 256, "uint16": 256}  # maximum for means that loops round in fewer steps
MOST_TAPS = {"uint8": 257, "int16": 1 << 15, "uint16": 1 << 15}  # maximum for means that loops round to integers


def held_in(request: Request) -> np.dtype[Any]:
    """The dtype to which elements are converted for the loops. Loops that round integers take the elements' own
    dtype."""
    dtype, result = request.dtype, request.result_dtype
    if dtype.kind not in "biu":
        return result
    divisor = largest_divisor(request.axes)
    if result == dtype and not request.reduction.whole:
        if divisor <= MOST_TAPS.get(dtype.name, 0):
            return dtype
        if dtype.itemsize == 1 and divisor <= MOST_TAPS[INT16.name]:
            return INT16
    return FLOAT32 if result == FLOAT32 and divisor <= exact_divisor(dtype, FLOAT32) else FLOAT64


def divisors_for(dtype: np.dtype[Any], held: np.dtype[Any], result: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest divisor for which loops compute the means in `held`, so that only a cast follows."""
    own = MOST_TAPS.get(dtype.name, 0)
    if held == dtype:
        return 0, own
    if held == INT16:
        return own + 1, MOST_TAPS[INT16.name]
    return 0, min(exact_divisor(dtype, held), HUGE - 1) if held == result else 0


def divisors_of(request: Request, ranges: Sequence[slice]) -> list[Array]:
    """The factors of these results' divisors: one array for each pooled axis, shaped to be multiplied."""
    divisors = []
    for place, axis in request.windows:
        along = kernels.windows_of(axis, ranges[place].start, ranges[place].stop)[DIVISOR]
        divisors.append(along.reshape([-1 if own == place else 1 for own in range(len(ranges))]))
    return divisors


def magnitude_bits(x: Array) -> int:
    """The number of bits that an array's magnitudes need."""
    if x.dtype.itemsize < FLOAT64.itemsize or not x.size:
        return bits_of(x.dtype)
    return max(int(x.max()).bit_length(), (~int(x.min()) if x.dtype.kind == "i" else 0).bit_length())


def piece_of(x: Array, shift: int, mask: int | None) -> Array:
    """The bits of elements from position `shift` on, or only the bits in a mask there."""
    x = x.astype(np.uint8) if x.dtype.kind == "b" else x  # 1 for any byte but 0
    x = x >> shift if shift else x
    return x if mask is None else x & mask


def pieces_of(x: Array, bits: int) -> list[Piece]:
    """Functions that cut an array's elements into pieces of this many bits. The highest piece is first, and signed."""
    count = max(1, -(-magnitude_bits(x) // bits))
    masks = [None, *[(1 << bits) - 1] * (count - 1)]
    return [partial(piece_of, shift=bits * (count - 1 - place), mask=mask) for place, mask in enumerate(masks)]


def has_huge_divisors(axes: Sequence[Axis]) -> bool:
    """Whether sums cannot be recovered from means, because far more padding counts than any array has elements."""
    return largest_divisor(axes) >= HUGE and any(axis.counts_pads for axis in axes)


def nearest(means: Array, result: np.dtype[Any]) -> Array:
    """Means in float64 as integers. The largest 64-bit integers round to floats beyond the range, so means are
    clipped."""
    limits, means = np.iinfo(result), np.rint(means)
    beyond = means >= 2.0 ** bits_of(result)
    low = np.maximum(np.where(beyond, 0, means), limits.min).astype(result)
    return np.where(beyond, result.type(limits.max), low)


def means(parts: list[Array], bits: int, divisors: Sequence[Array], result: np.dtype[Any]) -> Array:
    """
    The means of windows, rounded once. Means of no elements are NaN, or 0 as an integer.

    Parameters
    ----------
    parts : list of ndarray of int64
        Exact sums of pieces of the elements, the highest first.
    bits : int
        The size of a piece.
    divisors : sequence of ndarray of int64
        The factors of divisors, shaped to be multiplied.
    result : numpy.dtype
    """
    shape = np.broadcast_shapes(parts[0].shape, *[factor.shape for factor in divisors])
    factors = [np.ones((), np.int64)]  # factors are multiplied while products fit into 63 bits
    for factor in divisors:
        if int(factors[-1].max(initial=0)) * int(factor.max(initial=0)) > INT64_MAX:
            factors.append(factor)
        else:
            factors[-1] = factors[-1] * factor
    y = np.empty(shape, result.str)  # NumPy's canonical dtype for this size
    parts, factors = ([np.ascontiguousarray(np.broadcast_to(one, shape)) for one in some] for some in (parts, factors))
    kernels.round_quotients(parts, bits, factors, y)
    return y


def adds_pieces(held: Request, request: Request) -> bool:
    """Whether exact sums, perhaps sums of pieces, are divided, because float quotients do not determine all means."""
    fits = largest_divisor(held.axes) <= exact_divisor(request.dtype, FLOAT64)
    short = held.dtype in (INT16, FLOAT32) or (request.result_dtype != FLOAT32 and fits)
    return not short or has_huge_divisors(request.axes)


def are_casts(held: Request, request: Request) -> bool:
    """Whether elements are cast before the mean is taken, and the mean perhaps cast back."""
    if request.dtype.kind not in "biu":
        return True
    return held.dtype in (INT16, request.result_dtype) and not adds_pieces(held, request)


def window_means(x: Array, mean: Callable[[Array], Array], held: Request, request: Request,
                 ranges: Sequence[slice]) -> Array:
    """
    Means of windows of integers, from exact sums.

    Parameters
    ----------
    x : ndarray
        The elements of these windows.
    mean : callable
        The means of floats, according to the request `held`.
    held, request : Request
    ranges : sequence of slice
        The results that `mean` returns.
    """
    dtype, result = held.dtype, request.result_dtype
    counts = math.prod(divisors_of(held, ranges), start=np.ones((), np.int64))
    bits = EXACT - int(counts.max(initial=1)).bit_length()
    if magnitude_bits(x) <= bits and result != FLOAT32 and not has_huge_divisors(request.axes):
        y = mean(x.astype(dtype))
        return y if result == FLOAT64 else np.where(counts, np.rint(y), 0).astype(result)

    def sums(piece: Piece) -> Array:
        total: Array = np.rint(np.where(counts, mean(piece(x).astype(dtype)), 0) * counts)
        return total.astype(np.int64)

    return means([sums(piece) for piece in pieces_of(x, bits)], bits, divisors_of(request, ranges), result)


def whole_means(x: Array, axes: tuple[int, ...], keepdims: bool, result: np.dtype[Any]) -> Array:
    """Means over whole axes. Pieces of elements are made for one slab of the array at a time."""
    taps = math.prod([x.shape[axis] for axis in axes])
    bits = LONGEST - taps.bit_length()
    kind = np.uint64 if x.dtype.kind == "u" else np.int64
    along = max(axes, key=lambda axis: x.shape[axis], default=0)
    slabs = 1
    if axes and bits_of(x.dtype) > bits:
        slabs = min(-(-x.nbytes // (SLAB + 8 * x.nbytes // taps)), x.shape[along])

    def sums(piece: Piece) -> Array:
        total = np.zeros((), np.int64)
        for slab in np.array_split(x, slabs, along) if axes else [x]:
            total = total + piece(slab).sum(axis=axes, dtype=kind, keepdims=keepdims).astype(np.int64)
        return total

    return means([sums(piece) for piece in pieces_of(x, bits)], bits, [np.array(taps)], result)
