"""Coordinates of windows: one value for the elements of each window."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import xarray as xr
from numpy.lib.stride_tricks import sliding_window_view

from .. import kernels
from ..arrays import Array, dtype_name, native
from ..attributes import shown
from ..dtypes import DTYPES, MOMENTS
from ..errors import PoolError, PoolTypeError
from ..operators import MaxPool, MinPool
from .names import Function, LabelledCall, check_data, is_lazy, listed, pool

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..base import Operator
    from ..windows import Axis

# Functions with names: reductions of xarray, which leave missing values out.
REDUCTIONS = ("mean", "median", "min", "max", "sum", "prod", "std", "var", "count", "all", "any")
EXTREMA: dict[Any, type[Operator]] = {"min": MinPool, "max": MaxPool}
ENDS = ("first", "last")  # elements of a window, whatever their values
NAMES = (*REDUCTIONS, *ENDS)
SLAB = 2**20  # elements of windows for which a function is called at once, unless a single row has more


def functions(label: str, given: Any, coords: Sequence[Hashable]) -> dict[Hashable, Function]:
    """Each coordinate's function, from one function for all, or from functions by name."""
    by_name, default = (given, "mean") if isinstance(given, Mapping) else ({}, given)
    for name in by_name:
        if name not in coords:
            raise PoolError(f"{label}: coord_func names {name!r}, but the coordinates of X are "
                            f"{listed(coords, 'none')}; pass some of these", label, "coord_func", value=name)
    for function in (default, *by_name.values()):
        if not callable(function) and function not in NAMES:
            kind = PoolError if isinstance(function, str) else PoolTypeError
            raise kind(f"{label}: coord_func must be a function like numpy.mean, or one of {', '.join(NAMES)}, "
                       f"got {shown(function)}; pass one of these, or a mapping from names of coordinates to them",
                       label, "coord_func", value=function)
    return {name: by_name.get(name, default) for name in coords}


class Coordinate(NamedTuple):
    """A coordinate with pooled dimensions, and the function that reduces its windows."""

    name: Hashable
    dims: tuple[Hashable, ...]
    function: Function
    call: LabelledCall

    def pooled(self, variable: xr.Variable) -> Any:
        """The values of all windows. The values of a dask array stay lazy."""
        if self.function in ENDS:
            return self.ends(variable.to_base_variable())
        if getattr(variable.dtype, "tz", None) is not None:
            raise PoolTypeError(f"{self.call.label}: dtype {variable.dtype} has a time zone, and is not reduced; pass "
                                f"coord_func={{{self.name!r}: 'first'}}, or x.assign_coords({{{self.name!r}: "
                                f"({self.dims[0]!r}, x[{self.name!r}].to_index().tz_convert(None))}})",
                                self.call.label, "coord_func", value=self.function)
        data = variable.data if isinstance(variable.dtype, np.dtype) else variable.values  # pandas has other dtypes
        check_data(self.call.label, data)
        if self.function == "mean" and dtype_name(data.dtype) in DTYPES:
            return self.means(data)
        if self.function == "mean" and data.dtype.kind in MOMENTS:
            return means_of_moments(data, self.call, self.dims, skipna=True)
        if self.function in EXTREMA and (data.dtype.kind in MOMENTS or dtype_name(data.dtype) in DTYPES):
            return self.extrema(data)
        return self.lazy(data) if is_lazy(data) else self.reduced(data)

    def windows(self, shape: tuple[int, ...]) -> dict[int, Axis]:
        """The windows along each pooled axis."""
        return windows_of(self.call, self.dims, shape)

    def means(self, data: Any) -> Any:
        """Means of numbers, without NaNs. Means of floats have the coordinate's dtype, and other means float64."""
        own = native(data.dtype) if DTYPES[dtype_name(data.dtype)].digits else np.dtype(np.float64)
        return pool(self.call.means(np.float64).along(self.dims), data).astype(own)

    def extrema(self, data: Any) -> Any:
        """Minima or maxima, without NaNs and NaTs."""
        op = self.call.without_nans(EXTREMA[self.function]).along(self.dims)
        return self.with_missing(xr.Variable(self.dims, pool(op, data)), self.windows(data.shape)).data

    def ends(self, variable: xr.Variable) -> Any:
        """The first or the last element of each window."""
        windows = self.windows(variable.shape)
        places = {}
        for axis, own in windows.items():
            taps = taps_of(own)
            places[self.dims[axis]] = np.where(taps.number, taps.first if self.function == "first" else taps.last, -1)
        if not isinstance(variable.dtype, np.dtype):  # pandas, which has missing values of its own and a single axis
            return pd.Index(variable.data.take(*places.values(), allow_fill=True))
        return self.with_missing(variable.isel(places), windows).data

    def with_missing(self, variable: xr.Variable, windows: dict[int, Axis]) -> xr.Variable:
        """The values of windows; windows without elements have a missing value."""
        for axis, own in windows.items():
            if own.empty:
                inside = xr.Variable(self.dims[axis], taps_of(own).number > 0)
                variable = variable.astype(missing_dtype(variable.dtype)).where(inside)  # type: ignore[no-untyped-call]
        return variable

    def reduced(self, data: Array) -> Array:
        """The values of the function. It is called for groups of windows with the same number of elements."""
        windows = self.windows(data.shape)
        shape = tuple(windows[axis].out if axis in windows else size for axis, size in enumerate(data.shape))
        found = []
        for taken in product(*map(runs, windows.values())):
            place, elements, step = [slice(None)] * data.ndim, [slice(None)] * data.ndim, [slice(None)] * data.ndim
            for run, (axis, own) in zip(taken, windows.items(), strict=True):
                place[axis], step[axis] = slice(run.begin, run.end), slice(None, None, own.stride)
                last = run.first + (run.end - run.begin - 1) * own.stride + (run.taps - 1) * own.dilation
                elements[axis] = slice(run.first, last + 1)
                step.append(slice(None, None, own.dilation))
            spans = [(run.taps - 1) * own.dilation + 1 for run, own in zip(taken, windows.values(), strict=True)]
            view = sliding_window_view(data[tuple(elements)], spans, tuple(windows))[tuple(step)]
            found.append((tuple(place), self.in_slabs(view, data.ndim)))
        dtype = np.result_type(*{value.dtype for _, value in found} or {data.dtype})
        if any(own.empty for own in windows.values()):
            dtype = missing_dtype(dtype)
        y: Array = np.full(shape, "NaT" if dtype.kind in MOMENTS else np.nan if dtype.kind in "fcO" else "0", dtype)
        for at, value in found:
            y[at] = value
        return y

    def in_slabs(self, windows: Array, ndim: int) -> Array:
        """The values of the function, which is called for few windows at a time, because it may copy them."""
        axis = int(np.argmax(windows.shape[:ndim]))
        size = max(1, windows.shape[axis] * SLAB // max(1, windows.size))
        cuts = range(size, windows.shape[axis], size)
        return np.concatenate([self.applied(slab, ndim) for slab in np.split(windows, cuts, axis)], axis)

    def applied(self, windows: Array, ndim: int) -> Array:
        """The values of the function for windows, whose elements lie along the axes from `ndim` on."""
        axes = tuple(range(ndim, windows.ndim))
        if not windows.size:  # not every function accepts arrays without elements
            return np.empty(windows.shape[:ndim], self.result_dtype(windows.dtype, windows.shape[ndim:]))
        if callable(self.function):
            try:
                y = np.asarray(self.function(windows, axis=axes))
            except TypeError as error:
                raise PoolTypeError(f"{self.call.label}: coord_func raised {type(error).__name__} for dtype "
                                    f"{windows.dtype}: {error}; pass coord_func={{{self.name!r}: function}} with one "
                                    f"for this dtype, such as 'mean' or 'first'", self.call.label, "coord_func",
                                    value=self.function) from error
            if y.shape != windows.shape[:ndim]:
                raise PoolError(f"{self.call.label}: coord_func returned shape {y.shape} for an array of shape "
                                f"{windows.shape} and axis={axes}, instead of {windows.shape[:ndim]}; reduce these "
                                f"axes, like numpy.mean", self.call.label, "coord_func", value=y.shape)
            return y
        dims = [str(axis) for axis in range(windows.ndim)]
        try:
            reduced: Array = getattr(xr.Variable(dims, windows), self.function)(dims[ndim:]).values
        except (TypeError, ValueError) as error:
            raise PoolTypeError(f"{self.call.label}: dtype {windows.dtype} has no {self.function}: {error}; pass "
                                f"coord_func={{{self.name!r}: 'first'}} or a function, or x.drop_vars({self.name!r})",
                                self.call.label, "coord_func", value=self.function) from None
        return reduced

    def result_dtype(self, dtype: np.dtype[Any], taps: Sequence[int]) -> np.dtype[Any]:
        """The dtype of the function's values, for windows with these numbers of elements."""
        ndim = len(self.dims)
        return dtype if dtype.kind == "O" else self.applied(np.ones([*[1] * ndim, *taps], dtype), ndim).dtype

    def lazy(self, data: Any) -> Any:
        """The values of the function for a dask array, whose chunks are joined along pooled axes."""
        windows = self.windows(data.shape)
        dtype = self.result_dtype(data.dtype, [own.most for own in windows.values()])
        if any(own.empty for own in windows.values()):
            dtype = missing_dtype(dtype)
        chunks = tuple((windows[axis].out,) if axis in windows else own for axis, own in enumerate(data.chunks))
        return data.rechunk(dict.fromkeys(windows, -1)).map_blocks(
            self.reduced, chunks=chunks, dtype=dtype, meta=np.empty((0,) * data.ndim, dtype))


def windows_of(call: LabelledCall, dims: Sequence[Hashable], shape: tuple[int, ...]) -> dict[int, Axis]:
    """The windows along each pooled axis of a variable."""
    plan: Any = call.means(np.float64).along(dims).plan(shape, np.float64)
    return {axis: line.windows for axis, line in enumerate(plan.lines) if line.windows}


class Taps(NamedTuple):
    """The elements of each window along an axis."""

    first: Array
    last: Array
    number: Array  # if zero, the others have no meaning


def taps_of(axis: Axis) -> Taps:
    """The elements of all windows along an axis."""
    first, number, _ = kernels.windows_of(axis, 0, axis.out)
    return Taps(first, first + (number - 1) * axis.dilation, number)


def means_of_moments(data: Any, call: LabelledCall, dims: Sequence[Hashable], skipna: bool,
                     num_threads: int | None = None) -> Any:
    """
    Exact means of dates or durations, rounded once to their unit, with ties to even.

    A sum of dates can exceed int64. Dates are therefore split into digits of 16 bits. Sums of digits are exact in
    float64 for up to 2**30 elements, and long division divides them by the number of dates in each window.
    """
    check_data(call.label, data)
    op = call.means(np.float64).along(dims)
    elements: Any = 1
    for axis, own in windows_of(call, dims, data.shape).items():
        elements = elements * taps_of(own).number.reshape([-1 if i == axis else 1 for i in range(data.ndim)])
    if not op.windowed:
        elements = elements.item()

    def sums(values: Any) -> Any:
        return np.where(elements > 0, np.rint(pool(op, values, num_threads) * elements), 0).astype(np.int64)

    is_date = ~np.isnat(data)
    numbers = np.where(is_date, data.astype(np.int64), 0)
    dates = sums(is_date)
    divisor = np.maximum(dates, 1)
    whole, rest = 0, 0
    for shift in (48, 32, 16, 0):
        digits = (numbers >> shift).astype(np.uint16 if shift < 48 else np.int16)  # the first has the sign
        part = sums(digits) + rest * 2**16
        whole, rest = whole * 2**16 + part // divisor, part % divisor
    whole = whole + ((2 * rest > divisor) | ((2 * rest == divisor) & (whole % 2 == 1)))
    missing = dates == 0 if skipna else (dates == 0) | (dates < elements)
    return np.where(missing, np.iinfo(np.int64).min, whole).astype(native(data.dtype))  # the integer of NaT


class Stretch(NamedTuple):
    """Windows along an axis that are next to each other and have the same number of elements."""

    begin: int
    end: int
    first: int  # element of the first window
    taps: int


def runs(axis: Axis) -> list[Stretch]:
    """The windows that have elements: all windows inside the array as one run, and each window at its border."""
    first, number, _ = kernels.windows_of(axis, 0, axis.out)
    windows = np.flatnonzero(number)
    first, number = first[windows], number[windows]
    steps = np.stack([np.diff(windows) - 1, np.diff(first) - axis.stride, np.diff(number)])
    cuts = [0, *(np.flatnonzero(steps.any(axis=0)) + 1).tolist(), len(windows)] if len(windows) else []
    return [Stretch(int(windows[begin]), int(windows[end - 1]) + 1, int(first[begin]), int(number[begin]))
            for begin, end in pairwise(cuts)]


def missing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of values, some of which are missing because their windows have no elements."""
    return dtype if dtype.kind in "fcmMO" else np.dtype(np.float64 if dtype.kind in "iu" else object)

