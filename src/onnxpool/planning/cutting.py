"""Cuts a plan into plans for parts of its result, or for shares of its input."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import dtype_name
from ..dtypes import DTYPES
from ..errors import PoolError
from ..execution import Plan
from ..parts import Limit, Part, Range, Share, grid
from ..places import row_major
from ..windows import Axis, whole_windows
from .request import MERGES, Reduction

INDEX_BYTES = 8
MOST_TILES = 256  # maximum number of plans for parts that a plan caches
MOST_CUTS = 32  # maximum number of recent parts that a plan caches
Kept = TypeVar("Kept")


class Line(NamedTuple):
    """How results depend on elements along one axis of an array."""

    size: int  # size of the array
    windows: Axis | None  # None if each element has a result of its own
    least: int  # minimum elements that must be read together, so that sums keep their order
    kept: bool  # whether the result has the axis

    def read_by(self, places: int) -> int:
        """The number of elements that this many neighbouring results read."""
        return self.windows.read_by(places) if self.windows else max(self.least, places)

    def part(self, begin: int, end: int) -> tuple[int, int, Axis | None]:
        """The range of elements that the results [begin, end) read, and their windows within it."""
        if self.windows is not None:
            low, windows = self.windows.part(begin, end)
            return low, low + windows.size, windows
        count = max(self.least, end - begin) if begin < end else 0
        low = min(begin, self.size - count)
        return low, low + count, None


class Cut(NamedTuple):
    """What a part consists of, besides the whole plan."""

    plan: Plan
    inputs: tuple[slice, ...]
    outputs: tuple[slice, ...]
    renumbering: Any


def known(kept: dict[Any, Kept], most: int, key: Any, make: Callable[[], Kept]) -> Kept:
    """The value cached for a key, made if it is missing. A full cache is emptied. Threads share one value."""
    found = kept.get(key)
    if found is None:
        found = make()
        if len(kept) >= most:
            kept.clear()
        found = kept.setdefault(key, found)
    return found


class Cuttable(Plan):
    """A plan that reduces windows, so it can be cut into parts."""

    __slots__ = ()

    reduction: Reduction
    _tiles: dict[str, Plan]  # plans of parts, by geometry
    _cuts: dict[tuple[Range, ...], Cut]  # recent parts, by their ranges

    def _places(self) -> Sequence[int]:
        """The pooled axes of the array."""
        raise NotImplementedError(f"{self.label} has no windows")

    def _like(self, shape: tuple[int, ...], windows: dict[int, Axis], dtype: np.dtype[Any],
              result: np.dtype[Any] | None = None) -> Plan:
        """A plan with these windows for an array of another shape."""
        raise NotImplementedError(f"{self.label} has no parts")

    def _cropped(self, plan: Plan, crop: tuple[slice, ...]) -> Plan:
        """A plan that returns some of another plan's results."""
        raise NotImplementedError(f"{self.label} has no parts")

    def _numbering(self) -> tuple[int, ...]:
        """The axes of an array in the order of flat indices, slowest first."""
        raise NotImplementedError(f"{self.label} has no indices")

    def _least(self, axis: int) -> int:
        """The minimum number of elements along an axis that must be read together, so that sums keep their order."""
        return 1

    def _result_axes(self) -> list[int]:
        """The axes of the array that remain in the result."""
        return list(range(len(self.shape)))

    @property
    def lines(self) -> tuple[Line, ...]:
        """How results depend on elements along each axis of the array."""
        along, kept = dict(zip(self._places(), self.axes, strict=True)), self._result_axes()
        return tuple(Line(size, along.get(axis), self._least(axis), axis in kept)
                     for axis, size in enumerate(self.shape))

    def _part(self, ranges: Sequence[Range]) -> Part:
        """A part. Only its cut is cached, because a cached part would be a reference cycle with this plan."""
        return Part(self, *known(self._cuts, MOST_CUTS, tuple(ranges), lambda: self._cut(ranges)))

    def _cut(self, ranges: Sequence[Range]) -> Cut:
        """What a part consists of. Parts with equal geometry share a plan."""
        wanted = iter(ranges)
        lows, sizes, windows, crop = [], [], {}, []
        for axis, line in enumerate(self.lines):
            begin, end = next(wanted) if line.kept else (0, 1)
            low, high, own = line.part(begin, end)
            if own is not None:
                windows[axis] = own
            if line.kept:
                crop.append(slice(begin - low, end - low) if own is None else slice(0, end - begin))
            lows.append(low)
            sizes.append(high - low)
        shape = tuple(end - begin for begin, end in ranges)

        def made() -> Plan:
            plan = self._like(tuple(sizes), windows, self.dtype, self.result_dtype)
            return plan if plan.output_shape == shape else self._cropped(plan, tuple(crop))

        plan = known(self._tiles, MOST_TILES, str((sizes, windows, crop)), made)
        renumbering = None
        if self.reduction.indexed:
            order = self._numbering()
            steps = row_major([self.shape[axis] for axis in order])
            base = sum(lows[axis] * step for axis, step in zip(order, steps, strict=True))
            renumbering = [sizes[axis] for axis in order], steps, base
        inputs = tuple(slice(low, low + size) for low, size in zip(lows, sizes, strict=True))
        return Cut(plan, inputs, tuple(slice(*one) for one in ranges), renumbering)

    def _parts(self, limit: Limit) -> Iterator[Part]:
        lines = [line for line in self.lines if line.kept]
        dropped = math.prod(line.size for line in self.lines if not line.kept)
        each = self.result_dtype.itemsize + INDEX_BYTES * self.reduction.indexed

        def reads(i: int, places: int) -> int:
            return lines[i].read_by(places)

        def held(blocks: list[int]) -> int:
            read = dropped * math.prod(map(reads, range(len(blocks)), blocks))
            return read * self.dtype.itemsize + math.prod(blocks) * each

        blocks = limit.blocks(self.label, self.output_shape, reads, held)
        return (self._part(ranges) for ranges in grid(self.output_shape, blocks))

    def share(self, slices: Sequence[slice]) -> Share:
        """A share of a global operator's input."""
        sizes = tuple(cut.stop - cut.start for cut in slices)
        places = self._places()
        windows = whole_windows(self.label, tuple(sizes[axis] for axis in places), places)
        dtype = np.dtype(self._wide_dtype() or self.dtype)
        plan = known(self._tiles, MOST_TILES, str(sizes),
                     lambda: self._like(sizes, dict(zip(places, windows, strict=True)), dtype))
        return Share(self, plan, tuple(slices), tuple(slice(0, size) for size in self.output_shape))

    def _wide_dtype(self) -> str | None:
        """The dtype of partial results, where it differs from the array's."""
        if self.reduction.name in MERGES:
            return None
        if self.dtype.kind not in "biu" and self.result_dtype != self.dtype:  # the result is wider
            return dtype_name(self.result_dtype)
        return DTYPES[dtype_name(self.dtype)].wide

    def _shares(self, limit: Limit) -> Iterator[Share]:
        if self.operator.windowed or self.operator.quantised:
            raise PoolError(f"{self.label}: only global operators that are not quantised have partial results; use "
                            f"`tiles`, which splits the result", self.label, "partials")
        places = set(self._places())
        cut = [size if axis in places else 1 for axis, size in enumerate(self.shape)]
        fixed = math.prod(size for axis, size in enumerate(self.shape) if axis not in places)
        wide = self._wide_dtype()
        each = self.dtype.itemsize + (np.dtype(wide).itemsize if wide else 0)

        def held(blocks: list[int]) -> int:
            return fixed * each * math.prod(blocks)

        blocks = limit.blocks(self.label, cut, lambda axis, places: places, held)
        return (self.share([slice(*one) if axis in places else slice(0, size)
                             for axis, (one, size) in enumerate(zip(ranges, self.shape, strict=True))])
                for ranges in grid(cut, blocks))
