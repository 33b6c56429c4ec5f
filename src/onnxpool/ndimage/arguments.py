"""The arguments of filters, as in SciPy, and the filter that they describe."""

from __future__ import annotations

import math
import numbers
import operator
import sys
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import as_array, dtype_name, dtype_of, native
from ..attributes import Flag, is_real, scalar, shown
from ..base import further_caches
from ..dtypes import DTYPES, MOMENTS
from ..errors import Place, PoolTypeError
from .borders import MODES, Fill, Line, line_of_extrema, line_of_means
from .filters import Filter, FilterAxisError, FilterError, keeps_order

if TYPE_CHECKING:
    from ..arrays import Array

FILLED = 1 << 17  # maximum bytes of arrays that are extended with constants, instead of comparing results with them
COLLECTIONS = (("xarray", "DataArray", "labelled"), ("dask.array", "Array", "chunked"))


def filtered(label: str, kind: str, x: Any, size: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any,
             skipna: bool, num_threads: int | None, truncate: bool = False, dilates: bool = False) -> Any:
    """The result of a filter on an array of any kind. Dilations take their origins from mirrored windows."""
    if type(x) is not np.ndarray:
        for package, kind_of_array, function in COLLECTIONS:
            if package in sys.modules and isinstance(x, getattr(sys.modules[package], kind_of_array)):
                from . import collections

                return getattr(collections, function)(label, kind, x, size, output, mode, cval, origin, axes, skipna,
                                                      num_threads, truncate, dilates)
        x = as_array(label, x, "input")
    dtype, out = (x.dtype, None) if output is None else result_of(label, output, x)
    if out is None and not dtype.isnative and output is not None:
        out = np.empty(x.shape, dtype)
    return prepared(label, kind, x.shape, x.dtype, dtype, size, mode, cval, origin, axes, skipna, truncate,
                    dilates)(x, out, num_threads)


def prepared(*arguments: Any) -> Filter:
    """The filter that `described` makes from these arguments, some of which may be lists or arrays."""
    try:
        return described(*arguments)
    except PoolTypeError:
        raise
    except TypeError:  # unhashable arguments, such as lists
        pass
    try:
        return described(*map(plain, arguments))
    except PoolTypeError:
        raise
    except TypeError as error:
        raise PoolTypeError(f"{arguments[0]}: an argument is neither a value nor a sequence of values: {error}; pass "
                            f"one of these", arguments[0]) from None


def plain(value: Any) -> Any:
    """An argument that may be a sequence, as a key of a cache."""
    value = scalar(value)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def result_of(label: str, output: Any, x: Any) -> tuple[np.dtype[Any], Array | None]:
    """The dtype of the result, and the array that receives it, if one is passed."""
    if not isinstance(output, np.ndarray):
        if not isinstance(output, (type, np.dtype, str)):
            raise PoolTypeError(f"{label}: output is of type {type(output).__name__}; pass an ndarray or a dtype",
                                label, "output", value=type(output).__name__)
        dtype = dtype_of(label, output)
        return dtype if isinstance(output, str) and output in DTYPES else np.dtype(output), None  # with its byte order
    output = as_array(label, output, "output")
    if output.shape != x.shape:
        raise FilterError(f"{label}: output shape not correct: {output.shape}, but input has shape {x.shape}; pass an "
                          f"array of that shape", label, "output", value=output.shape)
    if not output.flags.writeable:
        raise FilterError(f"{label}: output is read-only; pass a writeable array", label, "output")
    return native(output.dtype), output


def flat(label: str, kind: str, x: Any, size: Any, footprint: Any, structure: Any, output: Any, mode: Any, cval: Any,
         origin: Any, axes: Any, *others: Any) -> Any:
    """The result of a filter whose windows may be given as a footprint or a structure."""
    if footprint is not None or structure is not None or size is None:
        ndim = getattr(x, "ndim", None) if axes is None else np.size(axes)
        size = size_of(label, size, footprint, structure, ndim)
    return filtered(label, kind, x, size, output, mode, cval, origin, axes, *others)


def size_of(label: str, size: Any, footprint: Any, structure: Any, ndim: int | None) -> Any:
    """The size of a flat rectangle. Other footprints and structures are refused."""
    if size is None and footprint is None and structure is None:
        raise FilterError(f"{label}: no footprint provided: pass size, such as 3", label, "size")
    if footprint is not None and size is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=4)
    for name, given in (("footprint", footprint), ("structure", structure)):
        if given is None:
            continue
        given = np.asarray(given)
        if not given.size or (name == "footprint" and not given.any()):
            raise FilterError(f"{label}: All-zero {name} is not supported: pass one that has elements", label, name,
                              value=given.shape)
        if ndim is not None and given.ndim != ndim:
            raise FilterError(f"{label}: {name}.ndim ({given.ndim}) must match len(axes) ({ndim}): a sequence argument "
                              f"must have length equal to input rank; pass an array of {ndim} axes", label, name,
                              value=given.ndim)
        if not given.all() if name == "footprint" else given.any():
            raise FilterError(f"{label}: {name} is no flat rectangle, but has {int((given == 0).sum())} zeros and "
                              f"other elements; pass size, or use scipy.ndimage.{label}", label, name,
                              value=given.shape)
        if name == "structure" and footprint is not None and np.shape(footprint) != given.shape:
            raise FilterError(f"{label}: structure has shape {given.shape}, but footprint has {np.shape(footprint)}; "
                              f"pass one of them", label, name, value=given.shape)
        size = given.shape
    return size


def per_axis(label: str, name: str, value: Any, count: int) -> tuple[Any, ...]:
    """The values of an argument for each of the filtered axes."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,) * count
    values = tuple(value)
    if len(values) != count:
        raise FilterError(f"{label}: {name} has {len(values)} values, but there are {count} axes: a sequence argument "
                          f"must have length equal to input rank; pass one value, or one for each axis", label, name,
                          value=values)
    return values


def whole(label: str, name: str, value: Any) -> int:
    """A number of an argument as an int."""
    if not is_real(value) or not math.isfinite(value) or int(value) != value:
        raise PoolTypeError(f"{label}: {name} must be an integer, got {shown(value)} of type {type(value).__name__}; "
                            f"pass an int", label, name, value=value)
    return int(value)


def check_scalars(label: str, **given: Any) -> None:
    """Refuse sequences as arguments of a filter along one axis."""
    for name, value in given.items():
        if value is None or (isinstance(value, Iterable) and not isinstance(value, str)):
            raise PoolTypeError(f"{label}: {name} is {shown(value)}, but this filter has one axis; pass one value, or "
                                f"use {label.removesuffix('1d')}", label, name, value=value)


def checked_axes(label: str, name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """The numbers of the filtered axes, from 0 on."""
    places = []
    for axis in range(ndim) if axes is None else axes if isinstance(axes, Iterable) else (axes,):
        try:
            place = operator.index(axis)
        except TypeError as error:
            raise PoolTypeError(f"{label}: {name} has {shown(axis)}: {error}; pass an int", label, name,
                                value=axis) from None
        if not -ndim <= place < ndim:
            way = f"pass {-ndim} to {ndim - 1}" if ndim else "pass an array that has axes"
            raise FilterAxisError(f"{label}: specified axis: {place} is out of range for an array of {ndim} axes; "
                                  f"{way}", label, name, axis=place, value=place)
        places.append(place % ndim)
    if len(set(places)) < len(places):
        raise FilterError(f"{label}: axes must be unique: {axes} names one twice; name each once", label, "axes",
                          value=axes)
    return tuple(places)


def check_dtypes(label: str, kind: str, dtype: np.dtype[Any], output: np.dtype[Any]) -> None:
    """Refuse dtypes that pools do not support."""
    for name, one in (("input", dtype), ("output", output)):
        moments = one.kind in MOMENTS and kind != "uniform" and dtype == output
        if dtype_name(one) not in DTYPES and not moments:
            kinds = "Complex type not supported: " if one.kind == "c" else ""
            raise PoolTypeError(f"{label}: {kinds}{name} has dtype {one}, but this function takes {', '.join(DTYPES)}; "
                                f"cast it, or use scipy.ndimage.{label}", label, name, value=str(one))


def fill_of(label: str, kind: str, dtype: np.dtype[Any], cval: Any) -> tuple[Any, Fill]:
    """The value of `cval` in a dtype, and its effect on results."""
    if dtype.kind in MOMENTS:
        return np.asarray(cval).astype(dtype), Fill.CLAMPS
    cval = scalar(cval)
    if not is_real(cval) and not isinstance(cval, (bool, np.bool_)):
        raise PoolTypeError(f"{label}: cval must be a real number, not {shown(cval)}; pass one such as 0.0", label,
                            "cval", value=cval)
    cval = int(cval) if isinstance(cval, (numbers.Integral, np.bool_)) else float(cval)
    if kind == "uniform":
        return cval, Fill.READ if cval else Fill.LOST
    limits: Any = (-math.inf, math.inf)
    if dtype.kind in "biu":
        limits = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        cval = math.trunc(cval) if math.isfinite(cval) else cval
    if cval <= limits[0] if kind == "maximum" else cval >= limits[1]:
        return 0, Fill.LOST
    if not limits[0] <= cval <= limits[1] and dtype.kind in "biu":
        raise FilterError(f"{label}: cval={shown(cval)} may be a result, but {dtype} has only {limits[0]} to "
                          f"{limits[1]}; pass such a value, or a larger dtype as output", label, "cval", value=cval)
    return cval, Fill.CLAMPS


@lru_cache(maxsize=256)
def described(label: str, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], output: np.dtype[Any], size: Any,
              mode: Any, cval: Any, origin: Any, axes: Any, skipna: bool, truncate: bool, dilates: bool) -> Filter:
    """The filter that these arguments describe."""
    dtype, output = native(dtype), native(output)
    check_dtypes(label, kind, dtype, output)
    skipna, truncate = [bool(Flag().check(Place(label, name), value)) for name, value in (
        ("skipna", skipna), ("truncate", truncate))]
    along_one = label.endswith("1d")
    if along_one:
        check_scalars(label, size=size, axis=axes, mode=mode, origin=origin)
    places = checked_axes(label, "axis" if along_one else "axes", axes, len(shape))
    sizes: Sequence[int] = [whole(label, "size", one) for one in per_axis(label, "size", size, len(places))]
    origins = [whole(label, "origin", one) for one in per_axis(label, "origin", origin, len(places))]
    modes = per_axis(label, "mode", mode, len(places))
    if along_one and sizes[0] < 1:
        raise FilterError(f"{label}: incorrect filter size: {sizes[0]}; pass at least 1", label, "size", value=sizes[0])
    ordered = keeps_order(dtype, output)
    fill, role = 0, Fill.LOST
    lines: list[Line] = []
    for axis, taps, shift, name in zip(places, sizes, origins, modes, strict=True):
        if taps <= 1 and not along_one:  # SciPy then ignores the other arguments of the axis
            continue
        if name not in MODES:
            raise FilterError(f"{label}: boundary mode not supported: {shown(name)}; pass one of {', '.join(MODES)}",
                              label, "mode", axis=axis, value=name)
        if MODES[name] is None:
            fill, role = fill_of(label, kind, output if kind != "uniform" and ordered else dtype, cval)
            if role is Fill.CLAMPS and not (ordered and math.prod(shape) * dtype.itemsize > FILLED):
                role = Fill.READ
        before = taps // 2 + shift if not dilates else taps - 1 - taps // 2 - shift
        if not 0 <= before < taps:
            low, high = (-(taps // 2), (taps - 1) // 2)
            raise FilterError(f"{label}: invalid origin {shift} along axis {axis} for size {taps}; pass {low} to "
                              f"{high}", label, "origin", axis=axis, value=shift)
        line_of = line_of_means if kind == "uniform" else line_of_extrema
        if taps > 1 and (shape[axis] != 1 or MODES[name] is None):  # otherwise, all elements of a window are the same
            lines.append(line_of(axis, shape[axis], before, taps - 1 - before, name, role))
    return Filter(label, kind, shape, dtype, output, tuple(lines), fill, skipna, truncate)


further_caches.append(described)
