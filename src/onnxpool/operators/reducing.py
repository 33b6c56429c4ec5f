"""What operators that reduce windows have in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import schemas
from ..arrays import dtype_name
from ..dtypes import MAXIMA
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..explain import looks_coloured
from ..planning.axes import checked_axes
from ..planning.plan import WindowPlan
from ..planning.request import Reduction, Request
from ..planning.staged import plan_along
from ..windows import Axis, resolve, whole_windows
from .typed import Named, OneResult

if TYPE_CHECKING:
    from ..options import Sizes

INFINITE_P = 2.0**52  # and above: the p-th root of the number of taps is 1, so the norm is the largest magnitude


class Reducing(OneResult):
    """An operator that reduces windows."""

    __slots__ = ()

    reduces: ClassVar[str]
    takes_axes: ClassVar[bool] = True

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """What such windows become."""
        return Reduction(self.reduces, whole=not self.windowed)

    def _pooled(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Which axes of an array are pooled, in the order of attributes."""
        if self.axes is not None:
            return checked_axes(self.label, self.axes, shape)
        sizes, first = self._spatial(shape)
        return tuple(range(first, first + len(sizes)))

    def _windows(self, shape: tuple[int, ...]) -> dict[int, Axis]:
        """The windows of each pooled axis, in the order of the array."""
        places = self._pooled(shape)
        sizes = tuple(shape[axis] for axis in places)
        try:
            axes = (resolve(self.label, self.attributes, sizes, places) if self.windowed
                    else whole_windows(self.label, sizes, places))
        except PoolError as error:
            if not self.takes_axes or self.axes is not None or not looks_coloured(shape):
                raise
            raise PoolError(f"{error}, or name the pooled axes, such as axes=(0, 1) of (H, W, {shape[-1]})", self.label,
                            error.attribute, axis=error.axis, value=error.value) from None
        windows = zip(places, axes, strict=True)
        return dict(windows if self.axes is None else sorted(windows))

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        windows = self._windows(shape)
        sizes = (windows[i].out if i in windows else size for i, size in enumerate(shape))
        return tuple(size for i, size in enumerate(sizes) if self.keepdims or i not in windows)

    def _check_rank(self, shape: tuple[int, ...]) -> None:
        if self.axes is not None:
            return
        try:
            super()._check_rank(shape)
        except PoolError as error:
            if not self.takes_axes or not shape:
                raise
            raise PoolError(f"{error}, or name the pooled axes, such as axes={tuple(range(len(shape)))}", self.label,
                            error.attribute, value=error.value) from None

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        """Refuses a dtype. Maxima along named axes are outside of ONNX, and have integers too."""
        name = dtype_name(dtype)
        maxima = MAXIMA if self.takes_axes and self._reduction(()).name in ("max", "indexed_max") else {}
        try:
            schemas.check_dtype(self._version, name, () if self.axes is None else maxima)
        except PoolTypeError as error:
            if name not in maxima:
                raise
            raise PoolTypeError(f"{error}, or name the pooled axes: with axes= maxima of {name} are taken", self.label,
                                error.attribute, value=error.value) from None

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        windows = self._windows(shape)
        axes = tuple(windows.values())
        reduction = self._reduction(axes)
        if self.axes is not None or not self.keepdims:
            return plan_along(self, shape, dtype, windows, reduction)
        request = Request(shape=shape, dtype=dtype, axes=axes, channels_last=self.channels_last and len(shape) > 2,
                          reduction=reduction)
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
