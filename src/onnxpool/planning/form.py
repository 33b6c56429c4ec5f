"""The normal form of a problem: as few dimensions as its arrays allow, each with its part in the loops."""

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
        The axes of the arrays whose strides it has. -1 is none, where it has one element or window.
    place : int
        What one more along it adds to an index.
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
        Elements that the loops read side by side. One element if they read rows of the last axis.
    apart : bool
        Whether lanes have a larger stride than the last axis, so that they are copied together first.
    """

    groups: tuple[Dim, ...]
    item: Dim
    axes: tuple[Dim, ...]
    lane: Dim
    apart: bool

    @property
    def dims(self) -> tuple[Dim, ...]:
        """All of them, slowest first."""
        return (*self.groups, self.item, *self.axes, self.lane)

    def to_dict(self) -> dict[str, Any]:
        """The sizes, for `explain`."""
        return {"groups": [dim.size for dim in self.groups], "items": self.item.size,
                "axes": [dim.size for dim in self.axes], "lanes": self.lane.size, "made_adjacent": self.apart}

    def joined(self, pooled: Container[int]) -> int:
        """How many axes at the end are one in the order of sums."""
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
    Whether two pooled axes are one in the order of sums: no other axis lies between them.

    Such an axis counts even if it has one element, as the size of a batch must not show in a sum.
    """
    return other == axis + 1 or all(between in pooled for between in range(axis + 1, other))


def dims_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], alone: bool = False) -> list[Dim]:
    """
    The dimensions of arrays with these strides, slowest first; results are one array, or two with indices.

    Neighbouring axes become one if every array steps from one to the next as along a single axis, and either no windows
    lie along them or one window covers both. If `alone`, the dimension before a pooled one is one axis, and stays so.
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
    """The form with these lanes. Of the other dimensions without windows the closest one is that of items."""
    axes = tuple([dim for dim in dims if dim.windows is not None])
    rest = [dim for dim in dims if dim.windows is None and dim is not lane]
    if not axes and not whole and lane is ONE and rest:  # the elements of the fastest dimension are windows
        dim = rest.pop()
        axes = (dim._replace(windows=Axis(dim.size, out=dim.size, kernel=1)),)
    item = min(reversed(rest), key=lambda dim: abs(x[dim.x]), default=ONE)
    return Form(tuple([dim for dim in rest if dim is not item]), item, axes or (POINT,), lane, apart)


def forms_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
             least: int) -> list[Form]:
    """
    The forms that a problem can have; if there are two, costs decide: rows, and lanes that are brought together.

    Parameters
    ----------
    request : Request
    x : sequence of int
        The strides of X.
    results : sequence of sequence of int
        Those of the result, and of its indices if there are any.
    contiguous : bool
        Whether X is in row-major order, without gaps.
    least : int
        Lanes that fill a register.
    """
    whole, dims = request.reduction.whole, dims_of(request, x, results)
    rows = form_of(dims, x, ONE, False, whole)
    # The number of lanes can show in a sum of a whole channel. So they are one axis, lest the size of a batch shows.
    if whole and any(dim.windows is None and dim.size > request.shape[dim.x] for dim in dims):
        dims = dims_of(request, x, results, alone=True)
    pooled = [dim for dim in dims if dim.windows is not None]
    behind = pooled[-1].x if pooled else -1
    # The first axis of an array of whole channels is its batch, whose size must not show in a result. Elements that
    # are repeated are no lanes, unless they are along the last axes.
    free = [dim for dim in dims if dim.windows is None and not (whole and dim.x == 0) and (x[dim.x] or dim.x > behind)]
    lane = min(free, key=lambda dim: abs(x[dim.x]), default=None)
    if lane is None:
        return [rows]
    if abs(x[lane.x]) < next((abs(x[dim.x]) for dim in reversed(pooled) if dim.size > 1), math.inf):
        # Few lanes of a whole channel must have no gaps between them, unless they are the last axes of the array.
        packed = len(pooled) == 1 and x[pooled[0].x] == lane.size * x[lane.x] == lane.size * request.dtype.itemsize
        inside = not whole or lane.size >= least or lane.x > behind or packed
        return [form_of(dims, x, lane, False, whole) if inside else rows]
    if lane.size < least or not (whole or contiguous):
        return [rows]
    return [rows, form_of(dims, x, lane, True, whole)]
