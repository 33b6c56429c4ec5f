"""Stages: if batch axes lie between pooled ones, the first pooled axes are reduced alone, and then the others.

All that lies behind the first pooled axes is then side by side, so that memory is read in long rows. Only maxima are
reduced so: the bits of a sum would depend on how many batch elements a call has, as that decides about stages.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array, dtype_name
from ..dtypes import MAXIMA
from ..execution import Plan
from ..limits import FEW
from ..parts import Limit, Part
from ..windows import Axis
from .axes import ALL, AxesPlan, Frame, framed
from .request import Reduction

BETWEEN = 1 << 20  # bytes that the first stage leaves at a time
WORTH = 1 << 16  # elements of an image from which on two stages are faster than one, with more than FEW early taps


def plan_along(operator: Any, shape: tuple[int, ...], dtype: np.dtype[Any], windows: Mapping[int, Axis],
               reduction: Reduction) -> AxesPlan:
    """The plan for windows along axes of an array, in ascending order."""
    frame = framed(operator.label, shape, tuple(windows), operator.keepdims, reduction.whole)
    plan = AxesPlan(operator, shape, dtype, frame, windows, reduction)
    early = early_axes(shape, frame)
    if not early or not keeps_maxima(reduction, dtype):
        return plan
    first = AxesPlan(operator, shape, dtype, framed(operator.label, shape, early, False, True),
                     {axis: windows[axis] for axis in early}, reduction)
    second = plan_along(operator, first.output_shape, dtype, behind(windows, early), reduction)
    staged = StagedPlan(operator, shape, dtype, frame, windows, reduction, (first, second))
    smallest = math.prod(line.size if line.windows else line.least for line in staged.lines) * dtype.itemsize
    return staged if smallest // staged.taps <= BETWEEN // 2 else plan


def behind(windows: Mapping[int, Axis], early: Sequence[int]) -> dict[int, Axis]:
    """Windows by the numbers that axes have without the early ones."""
    return {axis - sum(one < axis for one in early): own for axis, own in windows.items() if axis not in early}


def early_axes(shape: tuple[int, ...], frame: Frame) -> tuple[int, ...]:
    """The pooled axes before the first batch axis that lies between pooled ones, in a large array."""
    reduced = frame.reduced
    if not reduced or math.prod(shape[reduced[0]:]) < WORTH:
        return ()
    between = [axis for axis in range(reduced[0], reduced[-1]) if axis not in reduced and shape[axis] > 1]
    early = tuple(axis for axis in reduced if between and axis < between[0])
    return early if math.prod(shape[axis] for axis in early) > FEW else ()


def keeps_maxima(reduction: Reduction, dtype: np.dtype[Any]) -> bool:
    """Whether an operator on whole axes leaves maxima of the array's dtype, which the next stage takes as they are."""
    held = np.dtype(MAXIMA.get(dtype_name(dtype), dtype))
    return reduction.whole and reduction.name == "max" and held.itemsize == dtype.itemsize


class StagedPlan(AxesPlan):
    """The plan of an operator that reduces the first of its pooled axes before the others."""

    __slots__ = ("_cut", "_stages", "taps")

    _stages: tuple[AxesPlan, AxesPlan]
    _cut: list[Part] | None  # parts whose first stages leave little, once they are made
    taps: int  # of the first stage

    def __init__(self, operator: Any, shape: tuple[int, ...], dtype: np.dtype[Any], frame: Frame,
                 windows: Mapping[int, Axis], reduction: Reduction, stages: tuple[AxesPlan, AxesPlan],
                 joins: bool = False) -> None:
        super().__init__(operator, shape, dtype, frame, windows, reduction, joins)
        taps = math.prod(axis.size for axis in stages[0].axes)
        for name, value in {"_stages": stages, "_cut": None, "taps": taps}.items():
            object.__setattr__(self, name, value)

    def _row_major(self) -> None:
        """None: one pool is not enough."""

    @property
    def _early(self) -> tuple[int, ...]:
        """The axes that the first stage reduces."""
        return self._stages[0].frame.pooled

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Any, team: int) -> None:
        first, second = self._stages
        if not (self._joins or x.flags.c_contiguous):
            super()._reduce(x, y, indices, rule, team)
        elif x.nbytes <= BETWEEN * self.taps:
            y = y if y.ndim < x.ndim else y[tuple(0 if axis in self._early else ALL for axis in range(x.ndim))]
            second(first(x, num_threads=team), out=y, num_threads=team)
        else:
            parts = self._cut
            if parts is None:  # other threads see all of them or none
                parts = list(self._parts(Limit(None, BETWEEN * self.taps, strict=False)))
                object.__setattr__(self, "_cut", parts)
            for part in parts:
                part(x[part.inputs], out=y[part.outputs], num_threads=team)

    def _least(self, axis: int) -> int:
        first, second = self._stages
        if axis in self._early:
            return 1
        return max(first._least(axis), second._least(axis - sum(early < axis for early in self._early)))

    def _like(self, shape: tuple[int, ...], windows: dict[int, Axis], dtype: np.dtype[Any]) -> Plan:
        first, second = self._stages
        begun: Any = first._like(shape, {axis: windows[axis] for axis in self._early}, dtype)
        ended: Any = second._like(begun.output_shape, behind(windows, self._early), dtype)
        return StagedPlan(self.operator, shape, dtype, self.frame, windows, self.reduction, (begun, ended), True)

    def _route(self) -> list[str]:
        return [step for stage in self._stages for step in stage._route()]
