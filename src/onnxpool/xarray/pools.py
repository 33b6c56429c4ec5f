"""Pools of labelled arrays: each variable is pooled along its axes, and results are labelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import xarray as xr
from xarray.indexes import PandasIndex, PandasMultiIndex

from .. import schemas
from ..dtypes import MOMENTS
from ..errors import PoolError, PoolTypeError
from ..operators import AveragePool, GlobalAveragePool
from .coordinates import Coordinate, functions, means_of_moments
from .names import LabelledCall, about, check_dims, check_flags, pool, values_by_dim

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ..base import Operator

Labelled = TypeVar("Labelled", xr.DataArray, xr.Dataset)


def windowed(x: Labelled, operator: type[Operator], kernel_shape: Any, coord_func: Any, num_threads: int | None,
             **given: Any) -> Labelled:
    """Pool windows along named dimensions. Returns two results with Indices."""
    version = schemas.resolve(operator.__name__, None)
    label = version.label
    check_type(label, x)
    check_flags(label, given)
    by_dim = values_by_dim(version, list(x.sizes), kernel_shape, given)
    call = LabelledCall(label, operator, tuple(kernel_shape), by_dim,
                {name: one for name, one in given.items() if name not in by_dim})
    by_name = functions(label, coord_func, list(x.coords))

    def pooled(name: Hashable, coordinate: xr.Variable) -> xr.Variable:
        if isinstance(x.xindexes.get(name), PandasMultiIndex):
            raise PoolTypeError(f"{label}: coordinate {name!r} belongs to a MultiIndex, whose levels are not pooled; "
                                f"pass x.reset_index({coordinate.dims[0]!r})", label, "X", value="MultiIndex")
        with about(f"coordinate {name!r}", coordinate.dims):
            data = Coordinate(name, coordinate.dims, by_name[name], call).pooled(coordinate)
        return xr.Variable(coordinate.dims, data, kept(coordinate.attrs))

    y: Labelled = results(x, call, pooled, num_threads)
    return y


def reduced(x: Labelled, operator: type[Operator], dim: Any, num_threads: int | None, **given: Any) -> Labelled:
    """Pool whole named dimensions with a global operator."""
    label = schemas.resolve(operator.__name__, None).label
    check_type(label, x)
    check_flags(label, given)
    if dim is None or dim is ...:
        dims = tuple(x.sizes)
    else:
        dims = tuple(dim) if isinstance(dim, Iterable) and not isinstance(dim, str) else (dim,)
    if dims or x.sizes:  # a variable without dimensions stays as it is
        check_dims(label, "dim", dims, list(x.sizes))
    y: Labelled = results(x, LabelledCall(label, operator, dims, {}, given), None, num_threads)
    return y


def check_type(label: str, x: Any) -> None:
    """Refuse objects without named dimensions."""
    if not isinstance(x, (xr.DataArray, xr.Dataset)):
        raise PoolTypeError(f"{label}: X is of type {type(x).__module__}.{type(x).__qualname__}, not an "
                            f"xarray.DataArray or xarray.Dataset; pass xarray.DataArray(x, dims=...), or use the "
                            f"functions of onnxpool", label, "X", value=type(x).__name__)


def kept(attrs: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The attributes of a result, which an option of xarray can drop."""
    return {} if xr.get_options()["keep_attrs"] is False else attrs  # type: ignore[no-untyped-call]


def results(x: Any, call: LabelledCall, pooled: Callable[[Hashable, xr.Variable], xr.Variable] | None,
            num_threads: int | None) -> Any:
    """The results for all variables, with coordinates that are pooled or, without a function, left out."""
    whole = isinstance(x, xr.Dataset)
    values: dict[Hashable, xr.Variable] = {}
    indices: dict[Hashable, xr.Variable] = {}
    variables = {name: x.variables[name] for name in x.data_vars} if whole else {x.name: x.variable}
    for name, variable in variables.items():
        if not is_pooled(variable, call):
            values[name] = variable
            continue
        op = call.along(variable.dims)
        owner, way = (f"variable {name!r}", f"; x.drop_vars({name!r}) leaves it out") if whole else ("", "")
        with about(owner, variable.dims, way):
            check_sizes(call, variable)
            if averages_moments(call, variable.dtype):
                y = means_of_moments(variable.data, call, variable.dims, bool(call.given["skipna"]), num_threads)
            else:
                y = pool(op, variable.data, num_threads)
        dims = [dim for dim in variable.dims if op.keepdims or dim not in call.dims]
        if op.return_indices:
            y, places = y
            indices[name] = xr.Variable(dims, places)
        values[name] = xr.Variable(dims, y, kept(variable.attrs))
    coords: dict[Hashable, xr.Variable] = {}
    for name, coordinate in x.coords.items():
        if not is_pooled(coordinate, call):
            coords[name] = coordinate.variable
        elif pooled is not None:
            itself = name in variables and is_same(variables[name], coordinate.variable)  # as in max_pool(x.time, ...)
            coords[name] = values[name] if itself else pooled(name, coordinate.variable)
    labels = indexed(x, coords, {name for name, coordinate in x.coords.items() if is_pooled(coordinate, call)})

    def labelled(own: dict[Hashable, xr.Variable]) -> Any:
        return xr.Dataset(own, labels, kept(x.attrs)) if whole else xr.DataArray(own[x.name], labels, name=x.name)

    return (labelled(values), labelled(indices)) if call.given.get("return_indices") else labelled(values)


def is_same(one: xr.Variable, other: xr.Variable) -> bool:
    """Whether two variables are equal, as far as can be seen without computing dask arrays."""
    if one.dims != other.dims or one.chunks != other.chunks:
        return False
    if one.chunks is not None:
        return bool(one.data.name == other.data.name)
    return bool(one.equals(other))  # type: ignore[no-untyped-call]


def check_sizes(call: LabelledCall, variable: xr.Variable) -> None:
    """Refuse to pool a dimension without elements."""
    for axis, dim in enumerate(variable.dims):
        if dim in call.dims and not variable.shape[axis]:
            raise PoolError(f"{call.label}: X is empty along axis {axis}; pass an array with elements along pooled "
                            f"dimensions", call.label, "X", axis=axis, value=0)


def averages_moments(call: LabelledCall, dtype: Any) -> bool:
    """Whether results are means of dates or durations in their own dtype, which has no zero to pad with."""
    return (call.operator in (AveragePool, GlobalAveragePool) and isinstance(dtype, np.dtype)
            and dtype.kind in MOMENTS and call.given["dtype"] is None and not call.given.get("count_include_pad"))


def is_pooled(variable: Any, call: LabelledCall) -> bool:
    """Whether a variable has a dimension to pool."""
    return not set(call.dims).isdisjoint(variable.dims)


def indexed(x: Any, coords: dict[Hashable, xr.Variable], changed: set[Hashable]) -> xr.Coordinates:
    """The coordinates of a result. Indexes of `x` are reused, or rebuilt for pooled coordinates with one dimension."""
    stale = {id(x.xindexes[name]) for name in changed if name in x.xindexes}
    indexes = {name: index for name, index in x.xindexes.items() if id(index) not in stale}
    for name, coordinate in coords.items():
        if name in x.xindexes and name not in indexes and coordinate.ndim == 1:
            indexes[name] = PandasIndex.from_variables({name: coordinate}, options={})
            coords[name] = indexes[name].create_variables({name: coordinate})[name]
    return xr.Coordinates(coords, indexes)
