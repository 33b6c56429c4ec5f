"""Geometry of windows: from attributes and a shape, the windows along each axis and their taps inside the input.

Padding, strides, dilation and rounding are handled only here. The arithmetic is exact, and no window is stored.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .attributes import INT64_MAX, SIDES
from .constants import MOST_BORDER
from .errors import PoolError
from .planning import planner


def ceil_div(a: int, b: int) -> int:
    """The quotient a / b, rounded up."""
    return -(-a // b)


def floor_sum(count: int, slope: int, offset: int, divisor: int) -> int:
    """The sum of (slope * i + offset) // divisor over all i < count, in logarithmic time."""
    total = 0
    while True:
        total += slope // divisor * (count * (count - 1) // 2) + offset // divisor * count
        slope, offset = slope % divisor, offset % divisor
        top = slope * count + offset
        if top < divisor:
            return total
        count, offset = divmod(top, divisor)
        slope, divisor = divisor, slope


class Window(NamedTuple):
    """A window: its first tap inside the input, its number of taps inside, and the divisor of a mean."""

    first: int
    taps: int
    divisor: int


class Axis:
    """
    Windows along one axis.

    Parameters
    ----------
    size, out : int
        Number of elements, and number of windows.
    kernel, stride, dilation : int
        Number of taps, distance between windows, and distance between taps.
    pads : (int, int)
        Padding at the beginning and at the end.
    counts_pads : bool
        Whether the divisor of a mean counts padding.

    Attributes
    ----------
    span : int
        Number of elements from the first tap of a window to its last.
    begin, end : int
        The range of windows whose taps are all inside the input.
    most : int
        Maximum number of taps of a window that can be inside the input.
    """

    __slots__ = ("begin", "counts_pads", "dilation", "end", "kernel", "most", "out", "pads", "size", "span", "stride")

    def __init__(self, size: int, out: int, kernel: int, stride: int = 1, dilation: int = 1,
                 pads: tuple[int, int] = (0, 0), counts_pads: bool = False) -> None:
        span = (kernel - 1) * dilation + 1
        begin = max(0, min(out, -(-pads[0] // stride)))  # a part may begin after its only element
        self.size, self.out, self.kernel, self.stride, self.dilation = size, out, kernel, stride, dilation
        self.pads, self.counts_pads, self.span, self.begin = pads, counts_pads, span, begin
        self.end = max(begin, min(out, (size - span + pads[0]) // stride + 1))
        self.most = min(kernel, -(-size // dilation))

    def __repr__(self) -> str:
        return (f"Axis({self.size}, {self.out}, {self.kernel}, {self.stride}, {self.dilation}, {self.pads}, "
                f"{self.counts_pads})")

    def _key(self) -> tuple[Any, ...]:
        return self.size, self.out, self.kernel, self.stride, self.dilation, self.pads, self.counts_pads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def window(self, index: int) -> Window:
        """The window with this index, as loops see it."""
        return Window(*planner.window_of(self, index))

    def uncounted(self) -> "Axis":
        """The same windows, for means whose divisors do not count padding."""
        return Axis(self.size, self.out, self.kernel, self.stride, self.dilation, self.pads)

    def part(self, begin: int, end: int) -> tuple[int, "Axis"]:
        """The first element that windows [begin, end) read, and these windows as an axis with the same divisors."""
        if begin == end:
            return 0, Axis(0, out=0, kernel=1)
        place, behind = (index * self.stride - self.pads[0] for index in (begin, end - 1))
        behind += self.span
        low = min(max(0, place), self.size - 1)
        high = max(low + 1, min(self.size, behind))
        pads = low - place, max(0, min(self.size + self.pads[1], behind) - high)
        return low, Axis(high - low, end - begin, self.kernel, self.stride, self.dilation, pads, self.counts_pads)

    def read_by(self, windows: int) -> int:
        """The maximum number of elements that this many neighbouring windows read."""
        return min(self.size, (windows - 1) * self.stride + self.span)

    def _first_at(self, place: int) -> int:
        """The first window that begins at this position or after it."""
        return min(self.out, max(0, ceil_div(place + self.pads[0], self.stride)))

    def _reaching(self, begin: int, end: int, depth: int) -> int:
        """The number of windows [begin, end), all reaching the end, with a tap on one of the last `depth` elements."""
        offset = self.size - 1 + self.pads[0] - begin * self.stride
        steps = (floor_sum(end - begin, -self.stride, shifted, self.dilation) for shifted in (offset, offset - depth))
        return next(steps) - next(steps)

    @property
    def kept(self) -> bool:
        """Whether every element is a window by itself."""
        return self.kernel == 1 and self.out == self.size and self.pads == (0, 0)

    @property
    def covers(self) -> bool:
        """Whether the only window is the whole axis."""
        return self.kernel == self.span == self.size and self.pads == (0, 0)

    @property
    def picked(self) -> slice | None:
        """A slice of the elements that windows contain, if every window is a single element."""
        if self.kernel > 1 or self.end - self.begin < self.out:
            return None
        return slice(None, (self.out - 1) * self.stride + 1, self.stride)

    @property
    def taps(self) -> int:
        """The total number of taps of all windows that are inside the input."""
        return self._taps_before(self.size) - self._taps_before(0)

    def _taps_before(self, limit: int) -> int:
        """The total number of taps of all windows at positions before `limit`."""
        room = limit + self.pads[0]  # before the limit, from the first tap of window 0
        whole = min(self.out, max(0, (room - self.span) // self.stride + 1))  # windows that end before the limit
        some = min(self.out, max(0, ceil_div(room, self.stride)))  # windows that begin before the limit
        cut = floor_sum(some - whole, -self.stride, room - whole * self.stride + self.dilation - 1, self.dilation)
        return whole * self.kernel + cut

    @property
    def empty(self) -> int:
        """The number of windows without a tap inside the input."""
        touching, inside, behind = (self._first_at(place) for place in (1 - self.span, 0, self.size))
        around = 0
        if self.dilation > self.size:  # the whole input may lie between two taps
            around = inside - touching - self._reaching(touching, inside, self.size)
        return self.out - (behind - touching) + around

    @property
    def unread(self) -> int:
        """The number of elements at the end that no window reads."""
        across, behind = self._first_at(self.size - self.span + 1), self._first_at(self.size)
        unread = self.size
        if across:
            unread = min(unread, self.size - ((across - 1) * self.stride - self.pads[0] + self.span))
        if across < behind:
            from bisect import bisect_left

            unread = min(unread, bisect_left(range(min(self.size, self.dilation)), 1,
                                             key=lambda depth: self._reaching(across, behind, depth + 1)))
        return unread


def largest_divisor(axes: Iterable[Axis]) -> int:
    """A bound on the divisors of means."""
    return math.prod([axis.kernel if axis.counts_pads else axis.most for axis in axes])


def with_spatial(shape: tuple[int, ...], sizes: tuple[int, ...], channels_last: bool) -> tuple[int, ...]:
    """A shape with its spatial sizes replaced."""
    return (shape[0], *sizes, shape[-1]) if channels_last else (*shape[:2], *sizes)


def pooled_shape(shape: tuple[int, ...], windows: Iterable[tuple[int, Axis]], keepdims: bool) -> tuple[int, ...]:
    """The shape of a result, whose pooled axes have one element per window or are dropped."""
    along = dict(windows)
    return tuple([along[axis].out if axis in along else size for axis, size in enumerate(shape)
                  if keepdims or axis not in along])


def per_axis(label: str, attributes: dict[str, Any], name: str, rank: int) -> tuple[int, ...]:
    """The values of an attribute for each of `rank` axes, or for each of their sides."""
    value, sides = attributes[name], rank * SIDES[name]
    if isinstance(value, int):
        return (value,) * sides
    if len(value) != sides:
        raise PoolError(f"{label}: {name}={value} has {len(value)} values, but {rank} spatial axes take {sides}; "
                        f"pass {SIDES[name]} for each axis", label, name, value=value)
    given: tuple[int, ...] = value
    return given


def check_lengths(label: str, attributes: dict[str, Any], rank: int) -> None:
    """Refuse an attribute that does not have one value per axis or side."""
    for name in SIDES:
        if name in attributes:
            per_axis(label, attributes, name, rank)


def check_sizes(label: str, sizes: tuple[int, ...], places: Sequence[int]) -> None:
    """Refuse an empty spatial axis. `places` are the numbers of the axes in the array."""
    if 0 in sizes:
        axis = places[sizes.index(0)]
        raise PoolError(f"{label}: spatial axis {axis} is empty (size 0), but a window needs at least 1 element; "
                        f"only the batch and channel axes may be empty", label, "X", axis=axis, value=0)


def whole_windows(label: str, sizes: tuple[int, ...], places: Sequence[int]) -> tuple[Axis, ...]:
    """For every axis, one window that covers it."""
    check_sizes(label, sizes, places)
    return tuple([Axis(size, out=1, kernel=size) for size in sizes])


def resolve_axis(label: str, index: int, axis: int, size: int, kernel: int, stride: int, dilation: int,
                 pads: tuple[int, int], mode: str, ceil: bool, counts_pads: bool) -> Axis:
    """The windows along spatial axis number `index`, which is axis number `axis` of the array; `mode` is auto_pad."""
    span = (kernel - 1) * dilation + 1
    if mode.startswith("SAME"):
        out = ceil_div(size, stride)
        total = max(0, (out - 1) * stride + span - size)
        pads = (total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2)
        if total > INT64_MAX:
            raise PoolError(f"{label}: kernel_shape[{index}]={kernel} with dilations[{index}]={dilation} spans {span}, "
                            f"and auto_pad={mode} pads axis {axis} by {total}, more than the limit of {INT64_MAX}; "
                            f"lower kernel_shape or dilations", label, "kernel_shape", axis=axis, value=kernel)
    else:
        room = size + sum(pads) - span
        out = (ceil_div(room, stride) if ceil else room // stride) + 1
        if out < 1:
            limit = f", and with ceil_mode=1 less than strides[{index}]={stride} may be missing" if ceil else ""
            way = "pass pads with auto_pad='NOTSET'" if mode == "VALID" else "add pads"
            raise PoolError(f"{label}: kernel_shape[{index}]={kernel} with dilations[{index}]={dilation} spans {span}, "
                            f"but axis {axis} has {size} (+{pads[0]}+{pads[1]} pads){limit}; "
                            f"{way} or shrink kernel_shape", label, "kernel_shape", axis=axis, value=kernel)
        if ceil and (out - 1) * stride >= size + pads[0]:
            out -= 1  # drop a window that would start in the padding at the end
    windows = Axis(size, out, kernel, stride, dilation, pads, counts_pads)
    border = out - (windows.end - windows.begin)
    if border > MOST_BORDER:
        way = "lower pads or raise strides" if mode == "NOTSET" else "lower kernel_shape or dilations"
        raise PoolError(f"{label}: axis {axis} with pads {pads[0]}+{pads[1]}: {border} windows reach into padding, "
                        f"more than the limit of {MOST_BORDER}; {way}", label, "pads", axis=axis, value=pads)
    return windows


def resolve(label: str, attributes: dict[str, Any], sizes: tuple[int, ...],
            places: Sequence[int]) -> tuple[Axis, ...]:
    """
    The windows along every spatial axis.

    Parameters
    ----------
    label : str
        Name of the operator in messages.
    attributes : dict
        The values of all attributes of the operator.
    sizes : tuple of int
        Sizes of the spatial axes.
    places : sequence of int
        Numbers of these axes in the array, for messages.
    """
    rank = len(sizes)
    if attributes["kernel_shape"] is None:
        raise PoolError(f"{label}: kernel_shape is required to compute a result; pass kernel_shape",
                        label, "kernel_shape")
    kernel = per_axis(label, attributes, "kernel_shape", rank)
    strides = per_axis(label, attributes, "strides", rank)
    dilations = per_axis(label, attributes, "dilations", rank)
    pads = per_axis(label, attributes, "pads", rank)
    check_sizes(label, sizes, places)
    mode = attributes["auto_pad"]
    if mode != "NOTSET" and any(pads):
        raise PoolError(f"{label}: pads={pads} given together with auto_pad={mode}; "
                        f"leave pads out or pass auto_pad='NOTSET'", label, "pads", value=pads)
    ceil, counts_pads = bool(attributes.get("ceil_mode")), bool(attributes.get("count_include_pad"))
    return tuple([resolve_axis(label, i, places[i], sizes[i], kernel[i], strides[i], dilations[i],
                               (pads[i], pads[i + rank]), mode, ceil, counts_pads) for i in range(rank)])
