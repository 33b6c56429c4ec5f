"""The behaviour of operators, which the generated public classes in `__init__.py` inherit.

Modules that only regions and unpooling need are imported when the first such plan is made. See `base.importing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

import numpy as np

from .. import kernels, schemas
from ..arrays import Array, ArrayLike, dtype_name
from ..base import Operator
from ..dtypes import DTYPES, MOMENTS
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..planning import layout
from ..planning.kinds import plan_of
from ..planning.request import Reduction, Request
from ..windows import Axis, check_lengths, per_axis, pooled_shape, resolve, whole_windows, with_spatial

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import T
    from ..planning.regions import Regions

V = TypeVar("V")
Sizes = int | tuple[int, ...]  # a checked attribute: one value for all axes, or one per axis
INFINITE_P = 2.0**52  # for p >= this, the p-th root of any number of taps is 1: the norm is the largest magnitude


class Named(Generic[V]):
    """Descriptor that reads an attribute of an operator: the given value, or the default."""

    __slots__ = ("name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, operator: None, owner: type) -> Named[V]: ...

    @overload
    def __get__(self, operator: object, owner: type) -> V: ...

    def __get__(self, operator: Any, owner: type) -> Any:
        return self if operator is None else operator._values[self.name]


class OneResult(Operator):
    """An operator that returns one array, with the annotations to match."""

    __slots__ = ()

    if TYPE_CHECKING:
        @overload
        def __call__(self, x: NDArray[T], *inputs: ArrayLike | None, out: None = None,
                     num_threads: int | None = None) -> NDArray[T]: ...

        @overload
        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Array: ...

        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Any: ...


def checked_axes(label: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of axes in an array of that shape, without negative numbers."""
    places: list[int] = []
    for i, axis in enumerate(axes):
        if not -len(shape) <= axis < len(shape):
            room = f"pass {-len(shape)} to {len(shape) - 1}" if shape else "pass an array with axes"
            raise PoolError(f"{label}: axes[{i}]={axis}, but X has {len(shape)} axes, shape {shape}; {room}", label,
                            "axes", axis=axis, value=axis)
        if axis % len(shape) in places:
            raise PoolError(f"{label}: axes={axes} names axis {axis % len(shape)} twice; name each axis once", label,
                            "axes", axis=axis % len(shape), value=axis)
        places.append(axis % len(shape))
    return tuple(places)


class Reducing(kernels.RecentCall, OneResult):
    """An operator that reduces windows."""

    __slots__ = ()

    reduces: ClassVar[str]

    def _reduction(self, axes: Iterable[Axis]) -> dict[str, Any]:
        """The fields of the reduction of windows along these axes."""
        return {"name": self.reduces, "whole": not self.windowed}

    def _pooled(self, shape: tuple[int, ...]) -> Sequence[int]:
        """The pooled axes of an array, in the order of attributes."""
        if self.axes is not None:
            return checked_axes(self.label, self.axes, shape)
        sizes, first = self._spatial(shape)
        return range(first, first + len(sizes))

    def _windows(self, shape: tuple[int, ...]) -> tuple[tuple[int, Axis], ...]:
        """The pooled axes, in ascending order, and the windows along each."""
        places = self._pooled(shape)
        sizes = tuple([shape[axis] for axis in places])
        try:
            axes = (resolve(self.label, self._values, sizes, places) if self.windowed
                    else whole_windows(self.label, sizes, places))
        except PoolError as error:
            from ..explain import looks_coloured

            if not self._schema.axes or self.axes is not None or not looks_coloured(shape):
                raise
            raise PoolError(f"{error}, or name the pooled axes, such as axes=(0, 1) of (H, W, {shape[-1]})", self.label,
                            error.attribute, axis=error.axis, value=error.value) from None
        windows = zip(places, axes, strict=True)
        return tuple(windows if self.axes is None else sorted(windows))

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return pooled_shape(shape, self._windows(shape), self.keepdims)

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
            raise PoolTypeError(f"{error}, or name the pooled axes: with axes=, {name} is accepted",
                                self.label, error.attribute, value=error.value) from None

    def _dtypes_along_axes(self) -> tuple[str, ...]:
        """The dtypes beyond ONNX that are accepted with `axes`."""
        return ()

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        windows = self._windows(shape)
        channel = len(shape) - 1 if self.channels_last and len(shape) > 2 else 1
        reduction = Reduction(**self._reduction([axis for _, axis in windows]),
                              skips=self.skipna and dtype.kind not in "biu")
        return plan_of(self, Request(
            shape, dtype, windows, reduction, channel if self.axes is None and self.keepdims else None, self.keepdims,
            self.dtype))

    def _learn(self, plan: Plan) -> None:
        if self._shapes is None or self._shapes.lacks(plan.dtype.num, len(plan.shape)):
            template = layout.template_of(plan, self._pooled(plan.shape), self._values if self.windowed else None)
            if template is not None:
                shapes = self._shapes or layout.new_shapes()
                shapes.add(template)
                self._freeze(_shapes=shapes)


class Whole(Reducing):
    """A global operator: one window holds all elements of the pooled axes."""

    __slots__ = ()
    windowed = False


def results_of(name: str) -> list[str]:
    """The dtypes that means of a dtype can have: the dtype itself, unless it is bool, and wider floats."""
    row = DTYPES[name]
    least = DTYPES["float32"] if not row.digits else row
    larger = [one.name for one in DTYPES.values()
              if one.digits >= least.digits and one.exponent_bits >= least.exponent_bits]
    return list(dict.fromkeys((*larger, *([] if name == "bool" else [name]))))


class Mean(Reducing):
    """An operator that takes means; along named axes, also means of integers."""

    __slots__ = ()
    reduces = "mean"

    def _dtypes_along_axes(self) -> tuple[str, ...]:
        return tuple(DTYPES)

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        super()._check_dtype(dtype)
        if self.dtype is None:
            return
        name, given = dtype_name(dtype), dtype_name(self.dtype)
        allowed = results_of(name)
        if given not in allowed:
            raise PoolTypeError(f"{self.label}: dtype={given} cannot be the dtype of a mean of {name}, only "
                                f"{', '.join(allowed)}; cast the result", self.label, "dtype", value=given)


class Extremum(Reducing):
    """An operator that takes maxima or minima."""

    __slots__ = ()

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        if dtype.kind not in MOMENTS or not self._schema.axes or self.axes is None:
            super()._check_dtype(dtype)

    def _dtypes_along_axes(self) -> tuple[str, ...]:
        return tuple(DTYPES) if self._schema.axes else ()


class Maximum(Extremum):
    """An operator that takes maxima."""

    __slots__ = ()
    reduces = "max"


class Minimum(Extremum):
    """An operator that takes minima."""

    __slots__ = ()
    reduces = "min"


class Indexed(Extremum):
    """An operator that can return the indices of extrema."""

    __slots__ = ()

    if TYPE_CHECKING:
        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Array | Any: ...  # a tuple with Indices

    def _reduction(self, axes: Iterable[Axis]) -> dict[str, Any]:
        return {"name": self.reduces, "indexed": self.return_indices,
                "column_major": bool(self._values["storage_order"])}


class Norm(Reducing):
    """An operator that takes Lp norms."""

    __slots__ = ()

    def _reduction(self, axes: Iterable[Axis]) -> dict[str, Any]:
        """A norm, or the largest magnitude if p is practically infinite."""
        p = float(self._values["p"])
        return {"name": "norm", "p": p if p < INFINITE_P else math.inf, "whole": not self.windowed}


class QuantisedMean(Reducing):
    """An operator that takes means of quantised elements as onnxruntime does."""

    __slots__ = ()
    quantised = True

    def _reduction(self, axes: Iterable[Axis]) -> dict[str, Any]:
        """A sum of integers if one window covers the input. Otherwise, a sum of real values in the order of taps."""
        whole = all(axis.covers for axis in axes)
        return {"name": "quantised_mean" if whole else "mean_in_order", "whole": whole}


class OnRegions(OneResult):
    """An operator that pools regions of images."""

    __slots__ = ()

    def _regions(self) -> Regions:
        """The division of regions into bins, and the reduction of a bin."""
        raise NotImplementedError(f"{self.label} has no regions")

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for one region."""
        from ..planning.regions import check_planes

        check_planes(self.label, shape, self.channels_last)
        return with_spatial((1, *shape[1:]), self._regions().pooled, self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        from ..planning.regions import RegionPlan

        return RegionPlan(self, shape, dtype, regions=self._regions(), output_shape=self._output_shape(shape))


class MaximumOfBins(OnRegions):
    """An operator that takes the maximum of each bin of a region."""

    __slots__ = ()

    def _check(self) -> None:
        check_lengths(self.label, self.attributes, 2)

    def _regions(self) -> Regions:
        from ..planning.regions import Regions

        height, width = per_axis(self.label, self._values, "pooled_shape", 2)
        return Regions("roi_max", (height, width), scale=self._values["spatial_scale"])


class SamplesOfBins(OnRegions):
    """An operator that takes means or maxima of samples interpolated between the elements of a region."""

    __slots__ = ()

    def _regions(self) -> Regions:
        from ..planning.regions import Regions

        half_pixel = self._values["coordinate_transformation_mode"] == "half_pixel"
        return Regions(
            f"align_{self._values['mode']}", (self._values["output_height"], self._values["output_width"]),
            scale=self._values["spatial_scale"], sampling=self._values["sampling_ratio"],
            offset=0.5 if half_pixel else 0.0, at_least_one=not half_pixel)


class Scatter(OneResult):
    """An operator that stores values at the positions given by indices."""

    __slots__ = ()

    def _undone(self, shape: tuple[int, ...]) -> tuple[Axis, ...]:
        """The windows of the max-pool that is undone."""
        from ..planning.unpooling import inferred_windows

        return inferred_windows(self.label, self._values, *self._spatial(shape))

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return with_spatial(shape, tuple([axis.size for axis in self._undone(shape)]), self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        from ..planning.unpooling import UnpoolPlan

        return UnpoolPlan(self, shape, dtype, undone=self._undone(shape))
