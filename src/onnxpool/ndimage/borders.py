"""Borders: which elements the windows of a filter read beyond the ends of an axis, and strips of these elements.

This is the only place that knows the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..arrays import Array

Range = tuple[int, int]


def reflected(places: Array, size: int) -> Array:
    """The elements at these places of d c b a | a b c d | d c b a."""
    places = places % (2 * size)
    return np.minimum(places, 2 * size - 1 - places)


def mirrored(places: Array, size: int) -> Array:
    """The elements at these places of d c b | a b c d | c b a."""
    places = places % max(1, 2 * size - 2)
    return np.minimum(places, max(1, 2 * size - 2) - places)


def repeated(places: Array, size: int) -> Array:
    """The elements at these places of a a a | a b c d | d d d."""
    return places.clip(0, size - 1)


def wrapped(places: Array, size: int) -> Array:
    """The elements at these places of b c d | a b c d | a b c."""
    return places % size


MODES: dict[str, Callable[[Array, int], Array] | None] = {
    "reflect": reflected, "grid-mirror": reflected, "mirror": mirrored, "nearest": repeated, "wrap": wrapped,
    "grid-wrap": wrapped, "constant": None, "grid-constant": None}  # None: constants


class Line(NamedTuple):
    """
    Windows along an axis, one for each element.

    Attributes
    ----------
    axis, size : int
        Number of the axis, and of its elements.
    before, after : int
        Taps before the element to which a window belongs, and after it.
    mode : str
    clipped : (bool, bool)
        Whether windows that reach beyond the beginning, and beyond the end, can be clipped there.
    """

    axis: int
    size: int
    before: int
    after: int
    mode: str
    clipped: tuple[bool, bool] = (False, False)

    @property
    def taps(self) -> int:
        """The number of taps of a window."""
        return self.before + 1 + self.after


def line_of_extrema(axis: int, size: int, before: int, after: int, mode: str, fill_is_lost: bool) -> Line:
    """
    The windows of maxima or minima along an axis. `fill_is_lost` says that no constant is ever a result.

    A window can be clipped if everything beyond the end is an element of the clipped window as well. The repeated edge
    always is. The window of element i reaches back to place i - before; reflected, this is element before - i - 1, and
    mirrored, element before - i. For all i < before, these are at most i + after if they are so for i = 0.

    Beyond the end, the same holds in reverse order. Two periods of the extended axis contain all its elements.
    """
    extend = MODES[mode]
    most = size if extend in (repeated, None) else 2 * size
    before, after = min(before, most), min(after, most)
    if extend is repeated or (extend is None and fill_is_lost):
        clipped = True, True
    elif extend in (reflected, mirrored):
        more = extend is reflected
        clipped = before <= after + more, after <= before + more
    else:
        clipped = before == 0, after == 0
    return Line(axis, size, before, after, mode, clipped)


def line_of_means(axis: int, size: int, before: int, after: int, mode: str, fill_is_zero: bool) -> Line:
    """The windows of means along an axis. Those of a pool that counts padding can be clipped if padding is zero."""
    zeros = MODES[mode] is None and fill_is_zero
    return Line(axis, size, before, after, mode, (zeros or before == 0, zeros or after == 0))


def is_constant(line: Line) -> bool:
    """Whether constants lie beyond an end of an axis, and count."""
    return MODES[line.mode] is None and not all(line.clipped)


def elements(line: Line, low: int, high: int) -> Array:
    """The elements at places [low, high) of an extended axis. Those at places of constants are arbitrary."""
    return (MODES[line.mode] or repeated)(np.arange(low, high), line.size)


def constants(line: Line, low: int, high: int) -> Iterator[slice]:
    """Where constants are among the elements of these places."""
    if MODES[line.mode] is None:
        for begin, end in ((0, -low), (line.size - low, high - low)):
            if begin < end:
                yield slice(begin, end)


def frame(shape: Sequence[int], lines: Sequence[Line]) -> tuple[tuple[Range, ...], list[tuple[Range, ...]]]:
    """The inner results, whose windows can be clipped, and strips of all others. The inner ones may be none."""
    inner: list[Range] = [(0, size) for size in shape]
    strips = []
    for line in lines:
        low = 0 if line.clipped[0] else min(line.before, line.size)
        high = line.size if line.clipped[1] else max(line.size - line.after, low)
        for place in ((0, low), (high, line.size)):
            if place[0] < place[1]:
                strips.append((*inner[:line.axis], place, *inner[line.axis + 1:]))
        inner[line.axis] = low, high
        if low >= high:
            break  # the strips cover everything
    return tuple(inner), strips
