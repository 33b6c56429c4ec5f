"""What operators do that reduce windows: the public classes in `__init__.py` inherit from those here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import schemas
from ..arrays import dtype_name
from ..errors import PoolError, PoolTypeError
from ..planning.plan import WindowPlan
from ..planning.request import Reduction, Request
from ..windows import Axis, resolve, whole_windows
from .typed import OneResult

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..arrays import Array
    from ..execution import Plan

INFINITE_P = 2.0**52  # and above: the p-th root of the number of taps is 1, so the norm is the largest magnitude


class Reducing(OneResult):
    """An operator that reduces windows."""

    __slots__ = ()

    reduces: ClassVar[str]

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """What such windows become."""
        return Reduction(self.reduces, whole=not self.windowed)

    def _pooled(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Which axes of an array are pooled, in the order of attributes."""
        if self.axes is not None:
            from ..planning.axes import checked_axes

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
            from ..explain import looks_coloured

            if not self._schema.axes or self.axes is not None or not looks_coloured(shape):
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
            if not self._schema.axes or not shape:
                raise
            raise PoolError(f"{error}, or name the pooled axes, such as axes={tuple(range(len(shape)))}", self.label,
                            error.attribute, value=error.value) from None

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        name = dtype_name(dtype)
        more = () if self.axes is None else self._dtypes_along_axes()
        try:
            schemas.check_dtype(self._version, name, more)
        except PoolTypeError as error:
            if self.axes is not None or name not in self._dtypes_along_axes():
                raise
            raise PoolTypeError(f"{error}, or name the pooled axes: with axes= maxima of {name} are taken", self.label,
                                error.attribute, value=error.value) from None

    def _dtypes_along_axes(self) -> tuple[str, ...]:
        """The dtypes that are taken besides those of ONNX if the pooled axes are named."""
        return ()

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        windows = self._windows(shape)
        axes = tuple(windows.values())
        reduction = self._reduction(axes)
        if self.axes is not None or not self.keepdims:
            from ..planning.staged import plan_along

            return plan_along(self, shape, dtype, windows, reduction)
        request = Request(shape=shape, dtype=dtype, axes=axes, channels_last=self.channels_last and len(shape) > 2,
                          reduction=reduction)
        return WindowPlan(self, request, "x_zero_point" in self._schema.optional)


class Whole(Reducing):
    """A global operator: one window holds all elements of the pooled axes."""

    __slots__ = ()
    windowed = False


class Mean(Reducing):
    """An operator that takes means."""

    __slots__ = ()
    reduces = "mean"


class Maximum(Reducing):
    """An operator that takes maxima."""

    __slots__ = ()
    reduces = "max"

    def _dtypes_along_axes(self) -> tuple[str, ...]:
        from ..planning.axes import HELD

        return tuple(HELD) if self._schema.axes else ()


class MaximumAndIndex(Maximum):
    """An operator that takes maxima, and can return their indices too."""

    __slots__ = ()

    if TYPE_CHECKING:
        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Array | Any: ...  # a tuple with Indices

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        return Reduction("indexed_max" if self.return_indices else "max",
                         column_major=bool(self.attributes.get("storage_order")))


class Norm(Reducing):
    """An operator that takes Lp norms."""

    __slots__ = ()

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """The norm, or the largest magnitude."""
        p = float(self._value("p"))
        return Reduction("norm", p=p if p < INFINITE_P else math.inf, whole=not self.windowed)


class QuantisedMean(Reducing):
    """An operator that takes means of quantised elements, as onnxruntime does."""

    __slots__ = ()
    quantised = True

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """A sum of integers if one window is the whole input, else of real values in order."""
        whole = all(axis.kernel == axis.size and axis.pads == (0, 0) for axis in axes)
        return Reduction("quantised_mean" if whole else "mean_in_order", whole=whole)
