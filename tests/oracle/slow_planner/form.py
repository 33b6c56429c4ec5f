"""The normal form of a problem: as few dimensions as its arrays allow, each with its role in the loops."""

from collections.abc import Container, Sequence

from onnxpool.planning.request import Request
from onnxpool.planning.setup import Dim, Form
from onnxpool.windows import Axis

ONE = Dim(1)
POINT = Dim(1, windows=Axis(1, out=1, kernel=1))


def are_one(axis: int, other: int, pooled: Container[int]) -> bool:
    """
    Whether two pooled axes count as one in the order of sums, which they do if no other axis lies between them.

    An axis between them counts even if it has one element, because the size of a batch must not affect a sum.
    """
    return other == axis + 1 or all(between in pooled for between in range(axis + 1, other))


def joined(form: Form, pooled: Container[int]) -> int:
    """The number of trailing axes that count as one in the order of sums."""
    count = 1
    for before, after in zip(form.axes[-2::-1], form.axes[:0:-1], strict=True):
        if not are_one(before.x, after.x, pooled):
            break
        count += 1
    return count


def dims_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]],
            alone: bool = False) -> tuple[list[Dim], list[Dim]]:
    """
    The dimensions of arrays with these strides: dimensions with windows, and other dimensions, each slowest first.

    Adjacent axes are merged if every array allows flattening them, and either no windows lie
    along them or one window covers both. If `alone`, the axis before a pooled axis is not merged with earlier axes.
    """
    shape, places, keeps, whole = request.shape, request.places, request.keepdims, request.reduction.whole
    along = dict(request.windows)
    axes: list[Dim] = []  # fastest first
    rest: list[Dim] = []
    last = before = ONE
    y_axis = len(results[0])  # there is one array of results, or two with indices
    for axis in range(len(shape) - 1, -1, -1):
        size, place, windows = shape[axis], places[axis], along.get(axis)
        kept = keeps or windows is None
        y_axis -= kept
        if windows is not None and windows.kept:
            windows = None
        if size == 1 and windows is None:
            continue
        dims = axes if windows else rest
        if not dims or dims[-1] is not last or x[axis] != last.size * x[last.x]:
            follows = False  # no dimension of the same kind lies next to the axis, or there is a gap
        elif windows:
            follows = whole and are_one(axis, last.x, along)
        else:
            follows = (place == last.size * last.place and not (alone and before.windows)
                       and all(y[y_axis] == last.size * y[last.y] for y in results))
        if follows:
            size *= last.size
            last = Dim(size, last.x, last.y, last.place, Axis(size, out=1, kernel=size) if windows else None)
            dims[-1] = last
        else:
            before, last = last, Dim(size, axis, y_axis if kept else -1, place, windows)
            dims.append(last)
    return axes[::-1], rest[::-1]


def nearest(dims: Sequence[Dim], x: Sequence[int]) -> Dim:
    """The first dimension with the smallest stride."""
    strides = [abs(x[dim.x]) for dim in dims]
    return dims[strides.index(min(strides))]


def form_of(axes: Sequence[Dim], rest: Sequence[Dim], x: Sequence[int], lane: Dim, apart: bool) -> Form:
    """The form with these lanes. Of the other dimensions, the one with the smallest stride becomes the items."""
    item = nearest(rest[::-1], x) if rest else ONE
    return Form(tuple([dim for dim in rest if dim is not item]), item, tuple(axes) or (POINT,), lane, apart)


def forms_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
             least: int) -> list[Form]:
    """
    The forms that a problem can have: rows, lanes that are made adjacent, or both. If there are both, costs decide.

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
    whole = request.reduction.whole
    axes, rest = dims_of(request, x, results)
    others = rest
    # The number of lanes can affect the sum of a whole channel. Lanes are therefore a single axis, without the batch.
    if whole and any(dim.size > request.shape[dim.x] for dim in rest):
        _, others = dims_of(request, x, results, alone=True)
    last = axes[-1].x if axes else -1
    # The first axis of an array of whole channels is its batch, whose size must not affect a result. Axes of stride 0
    # are not lanes, unless they follow the pooled axes.
    free = [dim for dim in others if not (whole and dim.x == 0) and (x[dim.x] or dim.x > last)]
    forms = []
    if free:
        lane = nearest(free, x)
        strides = [abs(x[dim.x]) for dim in axes if dim.size > 1]
        apart = bool(strides) and abs(x[lane.x]) >= strides[-1]
        if apart:
            fits = lane.size >= least and (whole or contiguous)
        else:  # few lanes of a whole channel must be packed without gaps, unless they are the last axes of the array
            packed = len(axes) == 1 and x[axes[0].x] == lane.size * x[lane.x] == lane.size * request.dtype.itemsize
            fits = not whole or lane.size >= least or lane.x > last or packed
        if fits:
            forms = [form_of(axes, [dim for dim in others if dim is not lane], x, lane, apart)]
            if not apart:
                return forms
    return [form_of(axes, rest, x, ONE, False), *forms]
