"""Borders: which elements the windows of a filter read beyond the ends of an axis, and strips of these elements.

This is the only place that knows the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..arrays import Array

Range = tuple[int, int]
Ranges = tuple[Range, ...]  # one for each axis
Elements = tuple[slice | np.ndarray[Any, Any], ...]  # positions of elements along an axis, in parts


class Gap(NamedTuple):
    """A range of an axis that is left out, because it is not at a border."""

    axis: int
    low: int
    high: int


class Strip(NamedTuple):
    """Results at the borders, at one end of an axis or at both."""

    ranges: Ranges
    gap: Gap | None = None


def reflected(places: Array, size: int) -> Array:
    """The elements at these places of d c b a | a b c d | d c b a."""
    places = places % (2 * size)
    return np.asarray(np.minimum(places, 2 * size - 1 - places))


def mirrored(places: Array, size: int) -> Array:
    """The elements at these places of d c b | a b c d | c b a."""
    places = places % max(1, 2 * size - 2)
    return np.asarray(np.minimum(places, max(1, 2 * size - 2) - places))


def repeated(places: Array, size: int) -> Array:
    """The elements at these places of a a a | a b c d | d d d."""
    return places.clip(0, size - 1)


def wrapped(places: Array, size: int) -> Array:
    """The elements at these places of b c d | a b c d | a b c."""
    return places % size


MODES: dict[str, Callable[[Array, int], Array] | None] = {
    "reflect": reflected, "grid-mirror": reflected, "mirror": mirrored, "nearest": repeated, "wrap": wrapped,
    "grid-wrap": wrapped, "constant": None, "grid-constant": None}  # None: constants


class Fill(Enum):
    """How constants affect a result: as padding does, as a comparison with the constant does, or in any way."""

    LOST, CLAMPS, READ = range(3)


class Line(NamedTuple):
    """Windows along an axis, one for each element."""

    axis: int
    size: int
    before: int  # taps before the element to which a window belongs
    after: int
    mode: str
    clipped: tuple[bool, bool]  # whether windows can be clipped at the beginning, and at the end
    clamps: bool = False  # whether results of clipped windows must be compared with the constant

    @property
    def taps(self) -> int:
        """The number of taps of a window."""
        return self.before + 1 + self.after


def line_of_extrema(axis: int, size: int, before: int, after: int, mode: str, fill: Fill) -> Line:
    """
    The windows of maxima or minima along an axis.

    A window can be clipped if every element that it reads beyond the end is also in the clipped window. For repeated
    edges, this always holds. The window of element i reaches back to position i - before. With reflection, element
    before - i - 1 is there, and with mirroring, element before - i. For all i < before, these elements are at most
    i + after if they are so for i = 0.

    Beyond the other end, the same holds in reverse order. A window that spans a whole period covers the whole axis.
    """
    extend, clipped = MODES[mode], (before == 0, after == 0)
    if extend in (repeated, None):
        before, after = min(before, size), min(after, size)
        if extend or fill is not Fill.READ:
            clipped = True, True
    elif before + after + 1 >= (size if extend is wrapped else 2 * size):
        before, after, clipped = size - 1, size - 1, (True, True)
    elif extend is not wrapped:
        more = extend is reflected
        clipped = before <= after + more, after <= before + more
    return Line(axis, size, before, after, mode, clipped, extend is None and fill is Fill.CLAMPS)


def line_of_means(axis: int, size: int, before: int, after: int, mode: str, fill: Fill) -> Line:
    """The windows of means along an axis. Windows of a pool that counts padding can be clipped if padding is zero."""
    zeros = MODES[mode] is None and fill is Fill.LOST
    return Line(axis, size, before, after, mode, (zeros or before == 0, zeros or after == 0))


def clamped(line: Line) -> list[tuple[slice, ...]]:
    """The results that still have to be compared with the constant."""
    ends = ((0, line.before), (max(0, line.size - line.after), line.size)) if line.clamps else ()
    return [(*(slice(None),) * line.axis, slice(begin, end)) for begin, end in ends if begin < end]


def elements(line: Line, ranges: Sequence[Range]) -> Elements:
    """The elements at positions [low, high) of an extended axis, in parts. Constants replace some."""
    extend, size = MODES[line.mode] or repeated, line.size
    parts = [part for low, high in ranges
             for part in ((low, min(high, 0)), (max(low, 0), min(high, size)), (max(low, size), high))]
    return tuple([slice(begin, end) if 0 <= begin < size else extend(np.arange(begin, end), size)
                  for begin, end in parts if begin < end])


def constants(line: Line, low: int, high: int, count: int) -> list[tuple[slice, ...]]:
    """Where constants are among `count` elements, the first at position `low` and the last before `high`."""
    ends = ((0, -low), (count + line.size - high, count)) if MODES[line.mode] is None else ()
    return [(*(slice(None),) * line.axis, slice(begin, end)) for begin, end in ends if begin < end]


def frame(shape: Sequence[int], lines: Sequence[Line]) -> tuple[Ranges, list[Strip]]:
    """The inner results, whose windows can be clipped, and strips of all others. There may be no inner results."""
    inner: list[Range] = [(0, size) for size in shape]
    strips = []
    for line in lines:
        low = 0 if line.clipped[0] else min(line.before, line.size)
        high = line.size if line.clipped[1] else max(line.size - line.after, low)
        if low == 0 and high == line.size:
            continue
        gap = None
        if low and high < line.size:
            place = 0, line.size
            if high - low < line.taps:
                low = high = line.size
            else:
                gap = Gap(line.axis, low, high)
        else:
            place = (0, low) if low else (high, line.size)
        strips.append(Strip((*inner[:line.axis], place, *inner[line.axis + 1:]), gap))
        inner[line.axis] = low, high
        if low >= high:
            break  # the strips cover everything
    return tuple(inner), strips
