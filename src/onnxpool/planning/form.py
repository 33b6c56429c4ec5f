"""The normal form of a problem: as few dimensions as its arrays allow, each with its role in the loops."""

import math
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from ..windows import Axis
from .request import Request


class Dim(NamedTuple):
    """
    Neighbouring axes of an array whose strides are those of a single axis.

    Attributes
    ----------
    size : int
        Elements of X along it.
    x, y : int
        The axes of the arrays whose strides it has, or -1 if it has a single element or window.
    place : int
        The index stride along it.
    windows : Axis, optional
        None if each element has a result of its own.
    """

    size: int
    x: int = -1
    y: int = -1
    place: int = 0
    windows: Axis | None = None


class Form(NamedTuple):
    """
    A problem as the loops see it: x[groups, item, axes, lane].

    Attributes
    ----------
    groups : tuple of Dim
    item : Dim
    axes : tuple of Dim
        At least one.
    lane : Dim
        Elements that fill vectors. A single one if the loops read rows of the last axis instead.
    apart : bool
        Whether lanes have a larger stride than the last axis, so that they are first copied to be adjacent.
    """

    groups: tuple[Dim, ...]
    item: Dim
    axes: tuple[Dim, ...]
    lane: Dim
    apart: bool

    @property
    def dims(self) -> tuple[Dim, ...]:
        """All dimensions, slowest first."""
        return (*self.groups, self.item, *self.axes, self.lane)

    def to_dict(self) -> dict[str, Any]:
        """The sizes, for `explain`."""
        return {"groups": [dim.size for dim in self.groups], "items": self.item.size,
                "axes": [dim.size for dim in self.axes], "lanes": self.lane.size, "made_adjacent": self.apart}

    def joined(self, pooled: Container[int]) -> int:
        """The number of trailing axes that count as one in the order of sums."""
        count = 1
        for before, after in zip(self.axes[-2::-1], self.axes[:0:-1], strict=True):
            if not are_one(before.x, after.x, pooled):
                break
            count += 1
        return count


ONE = Dim(1)
POINT = Dim(1, windows=Axis(1, out=1, kernel=1))


def are_one(axis: int, other: int, pooled: Container[int]) -> bool:
    """
    Whether two pooled axes count as one in the order of sums, which they do if no other axis lies between them.

    An axis of one element counts too, because the size of a batch must not affect a sum.
    """
    return other == axis + 1 or all(between in pooled for between in range(axis + 1, other))


def dims_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], alone: bool = False) -> list[Dim]:
    """
    The dimensions of arrays with these strides, slowest first. There is one array of results, or two with indices.

    Neighbouring axes are merged if the strides of every array are those of a single axis, and either no windows lie
    along them or one window covers both. If `alone`, the axis before a pooled one is not merged with earlier axes.
    """
    along, places = dict(request.windows), request.places
    kept = {axis: place for place, axis in enumerate(request.kept)}
    whole = request.reduction.whole
    dims: list[Dim] = []  # fastest first
    for axis in range(len(request.shape) - 1, -1, -1):
        size, windows = request.shape[axis], along.get(axis)
        if windows is not None and windows.kept:
            windows = None
        if size == 1 and windows is None:
            continue
        own = kept.get(axis, -1)
        dim = Dim(size, axis, own, places[axis], windows)
        if dims:
            last = dims[-1]
            follows = x[axis] == last.size * x[last.x]
            if windows is not None:
                if whole and last.windows is not None and follows and are_one(axis, last.x, along):
                    size *= last.size
                    dims[-1] = last._replace(size=size, windows=Axis(size, out=1, kernel=size))
                    continue
            elif (last.windows is None and follows and all(y[own] == last.size * y[last.y] for y in results)
                    and dim.place == last.size * last.place
                    and not (alone and len(dims) > 1 and dims[-2].windows is not None)):
                dims[-1] = last._replace(size=size * last.size)
                continue
        dims.append(dim)
    return dims[::-1]


def form_of(dims: Sequence[Dim], x: Sequence[int], lane: Dim, apart: bool, whole: bool) -> Form:
    """The form with these lanes. The other dimension without windows that has the smallest stride becomes the items."""
    axes = tuple([dim for dim in dims if dim.windows is not None])
    rest = [dim for dim in dims if dim.windows is None and dim is not lane]
    if not axes and not whole and lane is ONE and rest:  # each element of the fastest dimension is a window
        dim = rest.pop()
        axes = (dim._replace(windows=Axis(dim.size, out=dim.size, kernel=1)),)
    item = min(reversed(rest), key=lambda dim: abs(x[dim.x]), default=ONE)
    return Form(tuple([dim for dim in rest if dim is not item]), item, axes or (POINT,), lane, apart)


def forms_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
             least: int) -> list[Form]:
    """
    The forms that a problem can have: rows, lanes that are made adjacent, or both, between which costs decide.

    Parameters
    ----------
    request : Request
    x : sequence of int
        The strides of X.
    results : sequence of sequence of int
        The strides of the result, and of its indices if there are any.
    contiguous : bool
        Whether X is in row-major order, without gaps.
    least : int
        The number of lanes that fill a register.
    """
    whole, dims = request.reduction.whole, dims_of(request, x, results)
    rows = form_of(dims, x, ONE, False, whole)
    # The number of lanes can affect the sum of a whole channel. Lanes are therefore a single axis, without the batch.
    if whole and any(dim.windows is None and dim.size > request.shape[dim.x] for dim in dims):
        dims = dims_of(request, x, results, alone=True)
    pooled = [dim for dim in dims if dim.windows is not None]
    behind = pooled[-1].x if pooled else -1
    # The first axis of an array of whole channels is its batch, whose size must not affect a result. Axes of stride 0
    # are not lanes, unless they follow the pooled axes.
    free = [dim for dim in dims if dim.windows is None and not (whole and dim.x == 0) and (x[dim.x] or dim.x > behind)]
    lane = min(free, key=lambda dim: abs(x[dim.x]), default=None)
    if lane is None:
        return [rows]
    if abs(x[lane.x]) < next((abs(x[dim.x]) for dim in reversed(pooled) if dim.size > 1), math.inf):
        # Few lanes of a whole channel must be packed without gaps, unless they are the last axes of the array.
        packed = len(pooled) == 1 and x[pooled[0].x] == lane.size * x[lane.x] == lane.size * request.dtype.itemsize
        inside = not whole or lane.size >= least or lane.x > behind or packed
        return [form_of(dims, x, lane, False, whole) if inside else rows]
    if lane.size < least or not (whole or contiguous):
        return [rows]
    return [rows, form_of(dims, x, lane, True, whole)]
