"""Coordinates of windows: one value for the elements of each window."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.lib.stride_tricks import sliding_window_view

from ..arrays import Array, dtype_name, native
from ..attributes import shown
from ..dtypes import DTYPES, MOMENTS
from ..errors import PoolError, PoolTypeError
from .names import Call, Function, foreign, is_lazy, listed, pool

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..windows import Axis

# Functions with names: reductions of xarray, which leave missing values out.
REDUCTIONS = ("mean", "median", "min", "max", "sum", "prod", "std", "var", "count", "all", "any")


def functions(label: str, given: Any, coords: Sequence[Hashable]) -> dict[Hashable, Function]:
    """The function of each coordinate, from one for all of them or some by name."""
    by_name, default = (given, "mean") if isinstance(given, Mapping) else ({}, given)
    for name in by_name:
        if name not in coords:
            raise PoolError(f"{label}: coord_func names {name!r}, but the coordinates of X are "
                            f"{listed(coords, 'none')}; give some of these", label, "coord_func", value=name)
    for function in (default, *by_name.values()):
        if not callable(function) and function not in REDUCTIONS:
            kind = PoolError if isinstance(function, str) else PoolTypeError
            raise kind(f"{label}: coord_func must be a function like numpy.mean, or one of {', '.join(REDUCTIONS)}, "
                       f"got {shown(function)}; give one of these, or a mapping from names of coordinates to them",
                       label, "coord_func", value=function)
    return {name: by_name.get(name, default) for name in coords}


class Coordinate(NamedTuple):
    """A coordinate with pooled dimensions, and the function that reduces its windows."""

    name: Hashable
    dims: tuple[Hashable, ...]
    function: Function
    call: Call

    def pooled(self, variable: xr.Variable) -> Any:
        """The values of all windows. Those of a dask array stay lazy."""
        data = variable.data if isinstance(variable.dtype, np.dtype) else variable.values  # pandas has other dtypes
        if isinstance(data, np.ndarray):
            return self.values(data)
        if is_lazy(data):
            return self.means(data) if self.has_means(data.dtype) else self.lazy(data)
        raise foreign(self.call.label, data)

    def windows(self, shape: tuple[int, ...]) -> dict[int, Axis]:
        """The windows along each pooled axis."""
        plan: Any = self.call.means(np.float64).along(self.dims).plan(shape, np.float64)
        return {axis: line.windows for axis, line in enumerate(plan.lines) if line.windows}

    def has_means(self, dtype: np.dtype[Any]) -> bool:
        """Whether the values are means that pools compute."""
        return self.function == "mean" and dtype_name(dtype) in DTYPES

    def values(self, data: Array) -> Array:
        """The values of all windows of a NumPy array."""
        if self.has_means(data.dtype):
            means: Array = self.means(data)
            return means
        if self.function == "mean" and data.dtype.kind in MOMENTS and not np.isnat(data).any():
            return self.means_of_moments(data)
        return self.reduced(data)

    def means(self, data: Any) -> Any:
        """Means of numbers, without NaNs. Those of floats have the dtype of the coordinate, and others float64."""
        own = native(data.dtype) if DTYPES[dtype_name(data.dtype)].digits else np.dtype(np.float64)
        return pool(self.call.means(np.float64).along(self.dims), data).astype(own)

    def means_of_moments(self, data: Array) -> Array:
        """Means of dates or durations, rounded once to their unit."""
        dtype = native(data.dtype)
        means = pool(self.call.means(np.int64).along(self.dims), data.astype(dtype, copy=False).view(np.int64))
        inside = pool(self.call.means(np.float64).along(self.dims), np.ones(data.shape, np.bool_))
        result: Array = np.where(np.isnan(inside), np.array("NaT", dtype), means.view(dtype))
        return result

    def reduced(self, data: Array) -> Array:
        """The values of the function. It is called for groups of windows with the same number of elements."""
        windows = self.windows(data.shape)
        shape = tuple(windows[axis].out if axis in windows else size for axis, size in enumerate(data.shape))
        found = []
        for taken in product(*map(runs, windows.values())):
            if all(run.taps for run in taken):
                place, elements, step = [slice(None)] * data.ndim, [slice(None)] * data.ndim, [slice(None)] * data.ndim
                for run, (axis, own) in zip(taken, windows.items(), strict=True):
                    place[axis], step[axis] = slice(run.begin, run.end), slice(None, None, own.stride)
                    last = run.first + (run.end - run.begin - 1) * own.stride + (run.taps - 1) * own.dilation
                    elements[axis] = slice(run.first, last + 1)
                    step.append(slice(None, None, own.dilation))
                spans = [(run.taps - 1) * own.dilation + 1 for run, own in zip(taken, windows.values(), strict=True)]
                view = sliding_window_view(data[tuple(elements)], spans, tuple(windows))[tuple(step)]
                found.append((tuple(place), self.applied(view, data.ndim)))
        dtype = np.result_type(*{value.dtype for _, value in found} or {data.dtype})
        if any(own.empty for own in windows.values()):
            dtype = missing_dtype(dtype)
        y: Array = np.full(shape, "NaT" if dtype.kind in MOMENTS else np.nan if dtype.kind in "fcO" else "0", dtype)
        for at, value in found:
            y[at] = value
        return y

    def applied(self, windows: Array, ndim: int) -> Array:
        """The values of the function for windows, whose elements lie along the axes from `ndim` on."""
        axes = tuple(range(ndim, windows.ndim))
        if callable(self.function):
            y = np.asarray(self.function(windows, axis=axes))
            if y.shape != windows.shape[:ndim]:
                raise PoolError(f"{self.call.label}: coord_func returned shape {y.shape} for an array of shape "
                                f"{windows.shape} and axis={axes}, instead of {windows.shape[:ndim]}; reduce these "
                                f"axes, like numpy.mean", self.call.label, "coord_func", value=y.shape)
            return y
        dims = [str(axis) for axis in range(windows.ndim)]
        try:
            reduced: Array = getattr(xr.Variable(dims, windows), self.function)(dims[ndim:]).values
        except (TypeError, ValueError) as error:
            raise PoolTypeError(f"{self.call.label}: dtype {windows.dtype} has no {self.function}: {error}; give "
                                f"coord_func={{{self.name!r}: function}}, or x.drop_vars({self.name!r})",
                                self.call.label, "coord_func", value=self.function) from None
        return reduced

    def lazy(self, data: Any) -> Any:
        """The values of the function for a dask array, whose chunks are joined along pooled axes."""
        windows, dtype = self.windows(data.shape), data.dtype
        if dtype.kind != "O":
            taps = [1] * data.ndim + [own.most for own in windows.values()]
            dtype = self.applied(np.ones(taps, dtype), data.ndim).dtype
        if any(own.empty for own in windows.values()):
            dtype = missing_dtype(dtype)
        chunks = tuple((windows[axis].out,) if axis in windows else own for axis, own in enumerate(data.chunks))
        return data.rechunk(dict.fromkeys(windows, -1)).map_blocks(
            self.values, chunks=chunks, dtype=dtype, meta=np.empty((0,) * data.ndim, dtype))


class Run(NamedTuple):
    """Windows along an axis that are next to each other and have the same number of elements."""

    begin: int
    end: int
    first: int  # element of the first window
    taps: int


def runs(axis: Axis) -> list[Run]:
    """All windows inside the array as one run, and each window at its border."""
    borders = [(i, i + 1) for i in (*range(axis.begin), *range(axis.end, axis.out))]
    inside = [(axis.begin, axis.end)] if axis.begin < axis.end else []
    return [Run(begin, end, *axis.window(begin)[:2]) for begin, end in (*borders, *inside)]


def missing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of values of which some are missing, because their windows have no elements."""
    return dtype if dtype.kind in "fcmMO" else np.dtype(np.float64 if dtype.kind in "iu" else object)

