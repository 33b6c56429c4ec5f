"""Layout: how arrays lie in memory, and the pool that reduces them. All callers ask `setup_of`."""

import math
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..arrays import dtype_name
from ..dtypes import DTYPES
from ..errors import PoolError
from ..kernels import pool as pools
from ..limits import FEW
from ..places import row_major as row_major_steps
from ..windows import Axis
from . import ranges, routes, steps, tiles
from .reductions import KINDS
from .request import Request
from .steps import Problem, Step
from .tiles import Tile

POINT = Axis(1, out=1, kernel=1)  # the only window of an array without spatial axes
MOST_PLACES = 1 << 30  # from the first tap of a window to its last one, which 32 bits can count
MOST_TAPS_OF_BYTES = 2**31 // 256  # whose sum is sure to fit into 32 bits
VECTOR = 64  # bytes of the widest register
# The others were measured on Zen 3 with one thread, by time against half and twice the value:
PLANAR_LANES = {1: 64, 2: 128, 4: 32, 8: 16}  # that are brought side by side together, of so many bytes: 1.0-1.8
PLANAR_ROOM = 1 << 17  # bytes of a tile of these: 1.04, 1.00
LINE_ROOM = 1 << 16  # bytes of a tile with more than FEW taps along its only axis, which has no halo: 1.10, 1.05
LONG_ROOM = 900_000  # bytes of a tile with more than FEW taps along an axis, or of a retry: 1.09 against 1 << 19


class Stage(NamedTuple):
    """A step of a unit, and the tiles that it takes."""

    unit: str
    by_axis: bool  # whether rows must be contiguous
    gathers: bool  # whether it reads strided elements itself
    items: int
    windows: tuple[int, ...]
    lanes: int


class Setup(NamedTuple):
    """What a pool is made of: the same for all callers."""

    axes: tuple[Axis, ...]
    groups: int
    items: int
    lanes: int
    sources: tuple[int, ...]  # the axes of the arrays that groups, items, each of the axes and lanes are; -1 is none
    places: tuple[int, ...]  # what one more of each of these adds to an index
    itemsize: int
    digits: int  # of a float
    p: float
    divides: bool  # whether totals are divided
    low: float
    high: float
    least: float  # magnitudes of elements between which no sum leaves its range
    largest: float
    indexed: bool
    copy: str  # the unit that copies elements together
    route: str
    stages: tuple[Stage, ...]  # and one that computes suspect results again


def kind_of(request: Request) -> str:
    """The name of the loops' reduction in the table of reductions."""
    name = request.reduction.name
    if name == "norm" and math.isinf(request.reduction.p):
        return "magnitude"
    if name == "quantised_mean" and math.prod(axis.most for axis in request.axes) > MOST_TAPS_OF_BYTES:
        return "long_quantised_mean"
    return name


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
    name, itemsize = kind_of(request), request.dtype.itemsize
    channels = request.channels
    return Problem(reduction=name, axes=request.axes or (POINT,),
                   items=request.shape[0] if inside or channels == 1 else channels, lanes=channels if inside else 1,
                   planar=inside and not request.channels_last, itemsize=itemsize,
                   acc_bytes=max(itemsize, KINDS[name].acc_bytes), whole=request.whole)


def reads_lanes(request: Request, layout: Layout) -> bool | None:
    """Whether channels are lanes, as where they lie side by side. None if both ways can be, and costs decide."""
    if layout.interleaved:  # few channels of whole images must have no gaps, if they are not last
        return layout.packed or not request.whole or request.channels * request.dtype.itemsize >= VECTOR
    if request.channels_last or not request.axes or request.channels * request.dtype.itemsize < VECTOR:
        return False
    return None if request.whole or layout.contiguous else False


def sources_of(request: Request, inside: bool) -> tuple[int, ...]:
    """The axes of an array that are groups, items, axes and lanes of its problem; -1 where there is none."""
    rank = len(request.shape)
    channel = rank - 1 if request.channels_last else 1
    spatial = tuple(range(1, channel) if request.channels_last else range(2, rank)) or (-1,)
    if inside:
        return -1, 0, *spatial, channel
    return (-1, 0, *spatial, -1) if request.channels == 1 else (0, channel, *spatial, -1)


def places_of(request: Request, sources: tuple[int, ...]) -> tuple[int, ...]:
    """What one more along each of these axes adds to an index: channels count before the other axes."""
    if request.reduction.name != "indexed_max":
        return (0,) * len(sources)
    rank = len(request.shape)
    channel = rank - 1 if request.channels_last else 1
    spatial = [axis for axis in range(1, rank) if axis != channel]
    order = [0, channel, *(reversed(spatial) if request.reduction.column_major else spatial)]
    steps = dict(zip(order, row_major_steps([request.shape[axis] for axis in order]), strict=True))
    return tuple(steps.get(axis, 0) for axis in sources)


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
    problem, step = choice.problem, choice.step
    sources = sources_of(request, problem.lanes > 1)
    groups = 1 if sources[0] < 0 else request.shape[0]
    lanes = 1 if sources[-1] < 0 else request.channels
    low, high = ranges.safe_range(reduction, dtype)
    least, largest = ranges.harmless(reduction, dtype, math.prod(axis.most for axis in problem.axes))
    return Setup(axes=problem.axes, groups=groups, items=request.shape[sources[1]], lanes=lanes, sources=sources,
                 places=places_of(request, sources), itemsize=problem.itemsize,
                 digits=DTYPES[dtype].digits, p=reduction.p, divides=reduction.name == "mean",
                 low=low, high=high, least=least, largest=largest,
                 indexed=reduction.name == "indexed_max", copy=steps.unit_of(*steps.COPY), route=step.name,
                 stages=stages_of(problem, step, groups, dtype, ranges.retries(reduction, dtype), layout))


def stages_of(problem: Problem, step: Step, groups: int, dtype: str, retries: bool,
              layout: Layout) -> tuple[Stage, ...]:
    """A step for a problem, and one for retries if there are any, with the tiles of each."""
    axes, extents = problem.axes, (groups, problem.items, problem.lanes)
    most = PLANAR_LANES[problem.itemsize] if problem.planar else 1 << 62
    room = PLANAR_ROOM if problem.planar else step.room
    if any(axis.most > FEW for axis in axes):
        room = LONG_ROOM if len(axes) > 1 else LINE_ROOM
    # Elements that lie apart are copied, and results. Others stay where they are: some of them are read again soon.
    stays = not problem.planar and step.in_place and (step.gathers or layout.contiguous)
    # A thread may take MOST bytes. Of these, what scratch memory leaves is free for elements.
    free = 0 if problem.planar or (step.copies_in_room and not stays) else tiles.MOST - room

    def volume(step: Step, unit: str, tile: Tile) -> int:
        scratch: int = pools.scratch_of(unit, axes, tile.windows, tile.lanes, problem.lanes)
        held = tiles.results(tile) if stays else tiles.elements(axes, tile)
        near = tiles.reused(axes, tile) if stays and step.rereads else 0
        return scratch + max(near * problem.itemsize, held * problem.itemsize - free)

    def stage(step: Step, reduction: str, room: int, within: Tile | None = None, **limits: Any) -> tuple[Stage, Tile]:
        unit = steps.unit_of(step.name, reduction, dtype)
        tile = tiles.cut(axes, extents, partial(volume, step, unit), room, work, within, **limits)
        return Stage(unit, step.by_axis, step.gathers and not problem.planar, *tile), tile

    work = tiles.Work(axes, by_axis=stays and step.by_axis, rows=problem.planar)
    first, tile = stage(step, problem.reduction, room, lane_values=(step.least_lanes // problem.itemsize, most),
                        grain=VECTOR // problem.itemsize)
    if not retries:
        return (first,)
    return first, stage(steps.retry_of(step, problem), "wide", max(room, LONG_ROOM), tile)[0]
