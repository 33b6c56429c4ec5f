"""What operators that reduce windows have in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..execution import Plan
from ..planning.plan import WindowPlan
from ..planning.request import Reduction, Request
from ..windows import Axis, resolve, whole_windows, with_spatial
from .typed import Named, OneResult

if TYPE_CHECKING:
    from ..options import Sizes

INFINITE_P = 2.0**52  # and above: the p-th root of the number of taps is 1, so the norm is the largest magnitude


class Reducing(OneResult):
    """An operator that reduces windows."""

    __slots__ = ()

    reduces: ClassVar[str]

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """What such windows become."""
        return Reduction(self.reduces, whole=not self.windowed)

    def _axes(self, shape: tuple[int, ...]) -> tuple[Axis, ...]:
        """The windows of each spatial axis."""
        sizes, first = self._spatial(shape)
        if self.windowed:
            return resolve(self.label, self.attributes, sizes, first)
        return whole_windows(self.label, sizes, first)

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return with_spatial(shape, tuple(axis.out for axis in self._axes(shape)), self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        axes = self._axes(shape)
        request = Request(shape=shape, dtype=dtype, axes=axes, channels_last=self.channels_last and len(shape) > 2,
                          reduction=self._reduction(axes))
        return WindowPlan(self, request, self.zero_points_optional)


class Windowed:
    """The attributes that all operators on windows have."""

    __slots__ = ()

    kernel_shape: Named[Sizes] = Named()
    strides: Named[Sizes] = Named()
    pads: Named[Sizes] = Named()
    auto_pad: Named[str] = Named()
    ceil_mode: Named[int] = Named()


class Norm(Reducing):
    """An operator that takes an Lp norm."""

    __slots__ = ()

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """The norm, or the largest magnitude."""
        p = float(self._value("p"))
        return Reduction("norm", p=p if p < INFINITE_P else math.inf, whole=not self.windowed)
