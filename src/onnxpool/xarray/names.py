"""Calls with named dimensions: attribute values for each dimension, and the operator for one variable's axes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..attributes import SIDES, integer, is_integer, shown
from ..base import Operator
from ..errors import Place, PoolError, PoolTypeError
from ..keys import made
from ..operators import AveragePool, GlobalAveragePool

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..schemas import Version

Sizes = Mapping[Any, int]  # as in annotations of xarray, Any stands for the name of a dimension or a coordinate
PerDim = int | Mapping[Any, int]
Pads = int | Mapping[Any, int | tuple[int, int]]
Dims = str | Iterable[Any] | EllipsisType | None
Function = str | Callable[..., Any]  # a name, or a function that is called like numpy.mean(values, axis=(1, 2))
CoordFunc = Function | Mapping[Any, Function]

PLACES = ("auto_pad", "ceil_mode", "keepdims")  # attributes that decide the shape of a result, for all dimensions
FLAGS = ("skipna", "keepdims", "return_indices")
Values = Mapping[Any, tuple[int, ...]]  # each dimension's value, or the two values for its sides


class LabelledCall(NamedTuple):
    """The operator of a call, whose axes depend on the dimensions of each variable."""

    label: str  # label of the operator
    operator: type[Operator]
    dims: tuple[Hashable, ...]  # pooled dimensions, in the order of attributes
    by_dim: dict[str, Values]
    given: dict[str, Any]  # the other arguments of the operator

    def along(self, dims: Sequence[Hashable]) -> Operator:
        """The operator for a variable with these dimensions, at least one of which is pooled."""
        pooled = [dim for dim in self.dims if dim in dims]
        values = {name: [sides[i] for i in range(SIDES[name]) for sides in map(own.__getitem__, pooled)]
                  for name, own in self.by_dim.items()}
        return made(self.operator, axes=[dims.index(dim) for dim in pooled], **values, **self.given)

    def without_nans(self, operator: type[Operator], **given: Any) -> LabelledCall:
        """Another operator on the same windows, without NaNs."""
        return self._replace(operator=operator, given={
            **given, "skipna": True, **{name: value for name, value in self.given.items() if name in PLACES}})

    def means(self, dtype: type[np.generic]) -> LabelledCall:
        """The means of the same windows, without NaNs."""
        return self.without_nans(AveragePool if self.operator.windowed else GlobalAveragePool, dtype=dtype)


def listed(names: Iterable[Hashable], none: str = "no dimensions") -> str:
    """Names as messages list them."""
    return ", ".join(map(repr, names)) or none


def values_by_dim(version: Version, known: Sequence[Hashable], kernel_shape: Any,
                  given: dict[str, Any]) -> dict[str, Values]:
    """The attributes that have a value for each dimension, checked."""
    label = version.label
    if not isinstance(kernel_shape, Mapping):
        raise PoolTypeError(f"{label}: kernel_shape must be a mapping from dimensions to sizes of windows, got "
                            f"{shown(kernel_shape)} of type {type(kernel_shape).__name__}; pass one such as "
                            f"{{{next(iter(known), 'x')!r}: 3}}", label, "kernel_shape", value=kernel_shape)
    check_dims(label, "kernel_shape", kernel_shape, known)
    return {name: per_dim(version, name, value, kernel_shape)
            for name, value in {"kernel_shape": kernel_shape, **given}.items() if name in SIDES and value is not None}


def check_dims(label: str, name: str, dims: Any, known: Any, owner: str = "X") -> None:
    """Refuse unknown dimensions, an empty list of names, and repeated names."""
    for dim in dims:
        if dim not in known:
            raise PoolError(f"{label}: {name} names {dim!r}, but {owner} has {listed(known)}; pass some of these",
                            label, name, value=dim)
    if not dims:
        raise PoolError(f"{label}: {name} names no dimension, and {owner} has {listed(known)}; name at least one",
                        label, name, value=dims)
    if len(set(dims)) < len(dims):
        raise PoolError(f"{label}: {name} is {listed(dims)}; name each dimension once", label, name, value=dims)


def check_flags(label: str, given: dict[str, Any]) -> None:
    """Refuse flags that are neither True nor False."""
    for name in FLAGS:
        value = given.get(name)
        if value is not None and not (isinstance(value, (bool, np.bool_)) or (is_integer(value) and value in (0, 1))):
            kind = PoolError if is_integer(value) else PoolTypeError
            raise kind(f"{label}: {name} must be True or False, got {shown(value)} of type {type(value).__name__}; "
                       f"pass one of these", label, name, value=value)


def per_dim(version: Version, name: str, value: Any, dims: Any) -> Values:
    """The values of an attribute for each dimension."""
    label, sides = version.label, SIDES[name]
    kind: Any = version.attributes[name]
    if is_integer(value):
        return dict.fromkeys(dims, (integer(Place(label, name), value, kind.minimum),) * sides)
    if not isinstance(value, Mapping):
        raise PoolTypeError(f"{label}: {name} must be an integer or a mapping from dimensions, got "
                            f"{shown(value)} of type {type(value).__name__}; pass one such as "
                            f"{{{next(iter(dims))!r}: {1 if sides == 1 else (1, 0)}}}", label, name, value=value)
    if value:
        check_dims(label, name, value, dims, "kernel_shape")
    return {dim: values_of(Place(label, name, dim), value[dim], sides, kind.minimum) if dim in value
            else (kind.implied,) * sides for dim in dims}


def values_of(where: Place, value: Any, sides: int, minimum: int) -> tuple[int, ...]:
    """The value of an attribute for one dimension, or the two values for its sides."""
    if sides == 1 or is_integer(value):
        return (integer(where, value, minimum),) * sides
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or len(value) != sides:
        raise PoolTypeError(f"{where} must be an integer or a pair of integers, got {shown(value)} of type "
                            f"{type(value).__name__}; pass (before, after)", *where.names, value=value)
    return tuple(integer(where, one, minimum) for one in value)


def is_lazy(data: Any) -> bool:
    """Whether data is a dask array. The check does not import dask."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(data, dask.Array)


def pool(op: Operator, data: Any, num_threads: int | None = None) -> Any:
    """The result of an operator on the data of a variable. Tasks of dask arrays have one thread by default."""
    check_data(op.label, data)
    if isinstance(data, np.ndarray):
        return op(data, num_threads=num_threads)
    from ..dask.graphs import pooled

    return pooled(data, op, None, 1 if num_threads is None else num_threads)


def check_data(label: str, data: Any) -> None:
    """Refuse data that are neither a NumPy nor a dask array."""
    if not isinstance(data, np.ndarray) and not is_lazy(data):
        raise PoolTypeError(f"{label}: X holds data of type {type(data).__module__}.{type(data).__qualname__}, but "
                            f"only NumPy and dask arrays are pooled; pass x.as_numpy()", label, "X",
                            value=type(data).__name__)


@contextmanager
def about(owner: str, dims: Sequence[Hashable], way: str = "") -> Iterator[None]:
    """Add the names of the variable and the axis to errors, and a way out to errors about the type of data."""
    try:
        yield
    except (PoolError, PoolTypeError) as error:
        axis = "" if error.axis is None else f"axis {error.axis} is {dims[error.axis]!r}"
        if not axis and not owner:
            raise
        notes = " of ".join(filter(None, (axis, owner))) + way * isinstance(error, PoolTypeError)
        raise type(error)(f"{error} ({notes})", error.operator, error.attribute,
                          axis=error.axis, value=error.value) from None
