"""Cutting: a plan becomes plans of parts of its result, or of shares of its input."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import PoolError
from ..execution import Plan
from ..parts import Limit, Part, Range, Share, grid
from ..places import row_major
from ..windows import Axis, whole_windows
from .request import Reduction

INDEX_BYTES = 8
# In these dtypes shares are reduced: results of 16 bits would be too coarse to be combined.
WIDE = {"float16": np.float32, "bfloat16": np.float32}


class Cuttable(Plan):
    """A plan that reduces windows, and so has parts."""

    __slots__ = ()

    reduction: Reduction

    def _places(self) -> Sequence[int]:
        """Which axes of the array have windows."""
        raise NotImplementedError(f"{self.label} has no windows")

    def _like(self, shape: tuple[int, ...], windows: dict[int, Axis], dtype: np.dtype[Any]) -> Plan:
        """A plan for other windows of an array of that shape."""
        raise NotImplementedError(f"{self.label} has no parts")

    def _cropped(self, plan: Plan, crop: tuple[slice, ...]) -> Plan:
        """A plan for some results of another plan."""
        raise NotImplementedError(f"{self.label} has no parts")

    def _numbering(self) -> tuple[int, ...]:
        """The axes of an array in the order in which indices count them, slowest first."""
        raise NotImplementedError(f"{self.label} has no indices")

    def _least(self, axis: int) -> int:
        """How many places along an axis must be read together, so that sums keep their order."""
        return 1

    def _result_axes(self) -> list[int]:
        """The axes of the array that the result has."""
        return list(range(len(self.shape)))

    def _part(self, ranges: Sequence[Range], known: dict[Any, Plan] | None = None) -> Part:
        """A part; plans of equal ones are shared in `known`."""
        along = dict(zip(self._places(), self.axes, strict=True))
        wanted = dict(zip(self._result_axes(), ranges, strict=True))
        lows, sizes, windows, crop = [], [], {}, []
        for axis, size in enumerate(self.shape):
            begin, end = wanted.get(axis, (0, 1))
            least = max(self._least(axis), end - begin) if begin < end else 0
            low = min(begin, size - least) if axis not in along else begin
            if axis in wanted:
                crop.append(slice(begin - low, end - low))
            if axis in along:
                low, windows[axis] = along[axis].part(begin, end)
                least = windows[axis].size
            lows.append(low)
            sizes.append(least)
        key = str((sizes, windows, crop))
        plan = None if known is None else known.get(key)
        if plan is None:
            plan = self._like(tuple(sizes), windows, self.dtype)
            if plan.output_shape != tuple(end - begin for begin, end in ranges):
                plan = self._cropped(plan, tuple(crop))
            if known is not None:
                known[key] = plan
        renumbering = None
        if self.reduction.name == "indexed_max":
            order = self._numbering()
            steps = row_major([self.shape[axis] for axis in order])
            base = sum(lows[axis] * step for axis, step in zip(order, steps, strict=True))
            renumbering = [sizes[axis] for axis in order], steps, base
        inputs = tuple(slice(low, low + size) for low, size in zip(lows, sizes, strict=True))
        return Part(self, plan, inputs, tuple(slice(*one) for one in ranges), renumbering)

    def _parts(self, limit: Limit) -> Iterator[Part]:
        along = dict(zip(self._places(), self.axes, strict=True))
        axes = self._result_axes()
        dropped = math.prod(self.axes[i].size for i, axis in enumerate(self._places()) if axis not in axes)
        each = self.dtype.itemsize + INDEX_BYTES * (self.reduction.name == "indexed_max")

        def reads(i: int, places: int) -> int:
            axis = axes[i]
            return along[axis].read_by(places) if axis in along else max(self._least(axis), places)

        def held(blocks: list[int]) -> int:
            read = dropped * math.prod(reads(i, places) for i, places in enumerate(blocks))
            return read * self.dtype.itemsize + math.prod(blocks) * each

        blocks = limit.blocks(self.label, self.output_shape, reads, held)
        known: dict[Any, Plan] = {}
        return (self._part(ranges, known) for ranges in grid(self.output_shape, blocks))

    def _share(self, slices: Sequence[slice]) -> Share:
        """A share of the input."""
        sizes = tuple(cut.stop - cut.start for cut in slices)
        places = self._places()
        windows = whole_windows(self.label, tuple(sizes[axis] for axis in places), places)
        dtype = np.dtype(WIDE.get(self.dtype.name, self.dtype)) if self.reduction.name != "max" else self.dtype
        plan = self._like(sizes, dict(zip(places, windows, strict=True)), dtype)
        return Share(self, plan, tuple(slices), tuple(slice(0, size) for size in self.output_shape))

    def _shares(self, limit: Limit) -> Iterator[Share]:
        if self.operator.windowed or self.operator.quantised:
            raise PoolError(f"{self.label}: only global operators on floats and maxima have partial results; use "
                            f"tiles, whose parts are parts of the result", self.label, "partials")
        places = set(self._places())
        cut = [size if axis in places else 1 for axis, size in enumerate(self.shape)]
        fixed = math.prod(size for axis, size in enumerate(self.shape) if axis not in places)
        wide = 0 if self.reduction.name == "max" else np.dtype(WIDE.get(self.dtype.name, np.int8)).itemsize
        each = self.dtype.itemsize + (wide if wide > 1 else 0)

        def held(blocks: list[int]) -> int:
            return fixed * each * math.prod(blocks)

        blocks = limit.blocks(self.label, cut, lambda axis, places: places, held)
        return (self._share([slice(*one) if axis in places else slice(0, size)
                             for axis, (one, size) in enumerate(zip(ranges, self.shape, strict=True))])
                for ranges in grid(cut, blocks))
