"""Layout: how arrays lie in memory, and the pool that reduces them. All callers ask `setup_of`."""

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..arrays import dtype_name
from ..errors import PoolError
from ..kernels import pool as pools
from ..windows import Axis
from . import ranges, routes, tiles
from .request import Reduction, Request
from .routes import Problem, Route

# The names by which the core knows reductions, and the least bytes of an accumulator.
NAMES = {"max": "max", "indexed_max": "indexed", "mean": "mean", "norm": "norm", "quantised_mean": "qmean",
         "mean_in_order": "sequential"}
ACCUMULATORS = {"mean": 4, "norm": 8, "qmean": 4, "sequential": 4, "indexed": 8, "wide": 16}
POINT = Axis(1, out=1, kernel=1)  # the only window of an array without spatial axes
MOST_PLACES = 1 << 30  # from the first tap of a window to its last one, which 32 bits can count
MOST_TAPS_OF_BYTES = 2**31 // 256  # whose sum is sure to fit into 32 bits
VECTOR = 64  # bytes of the widest register
# The others were measured on Zen 3 with one thread, by time against half and twice the value:
WHOLE_LANES = 1 << 12  # bytes of lanes below which tiles of whole channels are not cut, a page: 1.16, 0.95
PLANAR_LANES = {1: 64, 2: 128, 4: 32, 8: 16}  # that are brought side by side together, of so many bytes: 1.0-1.8
PLANAR_ROOM = 1 << 17  # bytes of a tile of these: 1.04, 1.00
LINE_ROOM = 1 << 16  # bytes of a tile with more than FEW taps along its only axis, which has no halo: 1.10, 1.05
LONG_ROOM = 900_000  # bytes of a tile with more than FEW taps along an axis, or of a retry: 1.09 against 1 << 19


class Stage(NamedTuple):
    """A step of a unit, and the tiles that it takes."""

    step: str
    unit: str
    items: int
    windows: tuple[int, ...]
    lanes: int


class Setup(NamedTuple):
    """What a pool is made of: the same for all callers."""

    axes: tuple[Axis, ...]
    images: int
    channels: int
    channels_last: bool  # of the arrays
    inside: bool  # whether channels are lanes
    dtype: str
    itemsize: int
    p: float
    low: float
    high: float
    least: float  # magnitudes of elements between which no sum leaves its range
    largest: float
    indexed: bool
    column_major: bool
    route: str
    stages: tuple[Stage, ...]  # and one that computes doubtful results again


def name_of(reduction: Reduction) -> str:
    """The name by which the core knows a reduction."""
    return "magnitude" if reduction.name == "norm" and math.isinf(reduction.p) else NAMES[reduction.name]


def unit_of(name: str, dtype: str, axes: tuple[Axis, ...]) -> str:
    """The unit that reduces such windows."""
    many = name == "qmean" and math.prod(axis.most for axis in axes) > MOST_TAPS_OF_BYTES
    return f"{'qlong' if many else name}_{dtype}"


class Layout(NamedTuple):
    """How an array lies in memory."""

    contiguous: bool  # in row-major order, without gaps, in the byte order of the machine
    interleaved: bool  # channels lie closer together than pixels
    packed: bool = True  # pixels follow each other without gaps


def row_major(request: Request) -> Layout:
    """The layout of arrays in row-major order."""
    return Layout(True, len(request.shape) > 2 and request.channels > 1 and request.channels_last)


def layout_of(x: NDArray[Any], channels_last: bool) -> Layout:
    """The layout of an array."""
    contiguous = x.flags.c_contiguous and x.dtype.isnative
    channel, pixel = (-1, -2) if channels_last else (1, -1)
    if x.ndim <= 2 or x.shape[channel] == 1:
        return Layout(contiguous, False)
    if contiguous or x.shape[pixel] == 1:
        return Layout(contiguous, channels_last)
    return Layout(contiguous, abs(x.strides[channel]) < abs(x.strides[pixel]), channels_last or is_packed(x))


def is_packed(x: NDArray[Any]) -> bool:
    """Whether the pixels of each image follow each other without gaps, channels side by side in each."""
    step = x.strides[1] * x.shape[1]
    for size, stride in zip(x.shape[:1:-1], x.strides[:1:-1], strict=True):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def memory_order(x: NDArray[Any], channels_last: bool) -> tuple[int, ...] | None:
    """
    The axes of a result, slowest in memory first: channels where x has them, the others as they are.

    None is row-major order, which that of x is where it has no gaps.
    """
    if x.flags.c_contiguous:
        return None
    channel = x.ndim - 1 if channels_last else 1
    others = [axis for axis in range(x.ndim) if axis != channel]
    return (*others, channel) if layout_of(x, channels_last).interleaved else (0, channel, *others[1:])


def counts_beyond(request: Request) -> bool:
    """Whether places of a window need 64 bits, which only float64 has."""
    if request.reduction.name != "indexed_max" or dtype_name(request.dtype) == "float64":
        return False
    across = 0
    for order in (request.axes, request.axes[::-1]):  # indices may count the first or the last axis fastest
        places = 1
        for axis in order:
            across = max(across, min(axis.span, 2 * axis.size) * places)
            places *= axis.size
    return across * len(request.axes) > MOST_PLACES


def problem_of(request: Request, inside: bool) -> Problem:
    """A request as its loops see it, with channels as lanes or as items."""
    name, itemsize = name_of(request.reduction), request.dtype.itemsize
    channels = request.channels
    return Problem(reduction=name, axes=request.axes or (POINT,),
                   items=request.shape[0] if inside or channels == 1 else channels, lanes=channels if inside else 1,
                   planar=inside and not request.channels_last, itemsize=itemsize,
                   acc_bytes=max(itemsize, ACCUMULATORS.get(name, 1)), whole=request.whole)


def reads_lanes(request: Request, layout: Layout) -> bool | None:
    """Whether channels are lanes, as where they lie side by side. None if both ways can be, and costs decide."""
    if layout.interleaved:  # few channels of whole images must have no gaps, if they are not last
        return layout.packed or not request.whole or request.channels * request.dtype.itemsize >= VECTOR
    if request.channels_last or not request.axes or request.channels * request.dtype.itemsize < VECTOR:
        return False
    return None if request.whole or layout.contiguous else False


def setup_of(request: Request, layout: Layout) -> Setup:
    """
    What the pool of a request is made of: the one function that all callers ask.

    Parameters
    ----------
    request : Request
    layout : Layout
        Of the arrays.
    """
    dtype, reduction = dtype_name(request.dtype), request.reduction
    if counts_beyond(request):
        raise PoolError(f"MaxPool: windows across more than {MOST_PLACES} places of {dtype} have no compiled "
                        f"indices; give float64", "MaxPool", "X", value=dtype)
    inside = reads_lanes(request, layout)
    if inside is None:
        choice = routes.choose_between(problem_of(request, False), problem_of(request, True))
    else:
        choice = routes.choose(problem_of(request, inside))
    problem, route = choice.problem, choice.route
    images, channels, inside = request.shape[0], request.channels, problem.lanes > 1
    groups = 1 if inside or channels == 1 else images
    unit = unit_of(problem.reduction, dtype, problem.axes)
    retries = f"wide_{dtype}" if ranges.retries(reduction, dtype) else None
    low, high = ranges.safe_range(reduction, dtype)
    least, largest = ranges.harmless(reduction, dtype, math.prod(axis.most for axis in problem.axes))
    return Setup(axes=problem.axes, images=images, channels=channels, channels_last=request.channels_last,
                 inside=inside, dtype=dtype, itemsize=problem.itemsize, p=reduction.p, low=low, high=high, least=least,
                 largest=largest, indexed=reduction.name == "indexed_max", column_major=reduction.column_major,
                 route=route.name, stages=stages_of(problem, route, groups, unit, retries, layout))


def stages_of(problem: Problem, route: Route, groups: int, unit: str, retries: str | None,
              layout: Layout) -> tuple[Stage, ...]:
    """The step of a route for a unit, and for the unit of retries if there are any, with the tiles of each."""
    axes, extents = problem.axes, (groups, problem.items, problem.lanes)
    long = any(axis.most > routes.FEW for axis in axes)
    least = WHOLE_LANES if route.step == "whole" else VECTOR
    most = PLANAR_LANES[problem.itemsize] if problem.planar else 1 << 62
    room = PLANAR_ROOM if problem.planar else route.room
    if long:
        room = LONG_ROOM if len(axes) > 1 else LINE_ROOM
    # Elements that lie apart are copied, and results. Others stay where they are: some of them are read again soon.
    stays = not problem.planar and (route.step == "whole" or (routes.is_windowed(problem) and layout.contiguous))
    # A thread may take MOST bytes. Of these, what scratch memory leaves is free for elements.
    free = 0 if problem.planar or (route.step == "direct" and not stays) else tiles.MOST - room

    def volume(tile: tiles.Tile, step: str = f"{route.step}_{unit}") -> int:
        scratch: int = pools.scratch_of(step, axes, tile.windows, tile.lanes, problem.lanes)
        held: int = tiles.results(tile) if stays else tiles.elements(axes, tile)
        near = tiles.reused(axes, tile) if stays and step.startswith("direct") else 0
        return scratch + max(near * problem.itemsize, held * problem.itemsize - free)

    work = tiles.Work(axes, passes=stays and route.step == "passes", rows=problem.planar)
    tile = tiles.cut(axes, extents, volume, room, work, lane_values=(least // problem.itemsize, most),
                     grain=VECTOR // problem.itemsize)
    first = Stage(route.step, unit, *tile)
    if retries is None:
        return (first,)
    step = "passes" if route.step == "direct" and routes.bounded(problem) else route.step
    inner = tiles.cut(axes, extents, lambda tile: volume(tile, f"{step}_{retries}"), max(room, LONG_ROOM), work,
                      within=tile)
    return first, Stage(step, retries, *inner)
