"""Layout: turns a request and the strides of its arrays into the setup of a pool. All setups come from `setup_of`."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..arrays import Array, dtype_name
from ..constants import CACHE_LINE, FEW
from ..dtypes import DTYPES, MOMENTS
from ..errors import PoolError
from ..kernels import pool as pools
from ..windows import Axis, largest_divisor
from . import costs, integers, orders, ranges, routes, steps, tiles
from .form import Form, forms_of
from .reductions import KINDS
from .request import Request
from .steps import Problem, Step
from .tiles import Tile
from .ways import ROOMS, Way, learned

MOST_CORRECTED = 1 << 16  # maximum divisor for which one correction of a quotient by an inverse is enough
MOST_PLACES = 1 << 30  # maximum places of several axes, and across the taps of a window: 32 bits count both together
VECTOR = 64  # bytes of the widest register
# Byte budgets of tiles. Each was compared with half and twice its value, on Zen 3 with one thread; the figures are the
# times of these relative to it.
PLANAR_ROOM = 1 << 17  # 1.04, 1.00
LINE_ROOM = 1 << 16  # for more than FEW taps along a single axis, where tiles have no halo: 1.10, 1.05
LONG_ROOM = 900_000  # for more than FEW taps along an axis, and for retries: 1.09 for 1 << 19
LONG_LANES = 1 << 13  # minimum bytes of lanes of a tile that is cut, where windows of many taps are read one by one
COPY = steps.unit_of(*steps.COPY)
REGISTER = costs.nearest(kernels.REGISTER)
NO_ORDER = orders.Order()


class Stage(NamedTuple):
    """A unit and its tiles."""

    unit: str
    by_axis: bool  # whether rows must be contiguous
    gathers: bool  # whether it reads strided elements itself
    shares: bool  # whether several threads can share a tile
    divides: bool  # whether it finishes means by divisions
    tile: Tile
    divided: Tile  # the tile of a task where several threads divide the work


class Valid(NamedTuple):
    """How extrema with indices and means leave NaNs out, as `Rule` in `core/job.h` describes it."""

    counted: int = 0
    left_out: int = 0
    most: int = 0


ALL_VALID = Valid()


class Setup(NamedTuple):
    """The arguments from which a pool is made."""

    axes: tuple[Axis, ...]
    joined: int  # trailing axes that count as one in the order of sums, although there are gaps between them
    form: Form
    itemsize: int
    acc_bytes: int  # of an accumulator
    digits: int  # digits of a float's significand
    p: float
    divides: bool  # whether totals are divided
    low: float  # the safe range of totals
    high: float
    order: orders.Order  # of extrema
    valid: Valid
    reports: bool  # whether callers compute means again whose sums overflowed
    is_other: bool  # whether the unit of int16 takes uint16, or that of float16 takes bfloat16
    few: bool  # whether windows of integers have few taps, so that their means are rounded in fewer steps
    careful: bool  # whether quotients must be computed by division
    least: float  # range of magnitudes of elements whose sums never leave the safe range
    largest: float
    indexed: bool
    copy: str  # the unit that copies strided elements
    route: str
    stages: tuple[Stage, ...]  # one, or two if a second one may have to recompute suspect results


def compiled_for(request: Request) -> tuple[str, str, orders.Order]:
    """The reduction and the dtype for which the units of a request are compiled, and their order of elements."""
    reduction, dtype = request.reduction, orders.held_as(request.dtype)
    name = "magnitude" if reduction.name == "norm" and math.isinf(reduction.p) else reduction.name
    integer, skips = f"int{8 * request.dtype.itemsize}", reduction.skips
    if reduction.indexed:
        order = orders.indexed_order_of(name, request.dtype, skips)
        return "indexed_extremum", dtype if DTYPES[dtype].digits and not skips else integer, order
    if name == "mean" and request.dtype.kind in "iu":
        return "integer_mean", "uint8" if dtype == "uint8" else integer, NO_ORDER
    name = "valid_mean" if name == "mean" and skips else name
    if dtype == "bfloat16" and name in KINDS and dtype not in KINDS[name].dtypes:
        dtype = "float16"
    if name == "max" and dtype == "float16":
        return name, dtype, orders.order_of(name, request.dtype, skips)
    if name not in KINDS or dtype not in KINDS[name].dtypes or (skips and name == "max"):
        return "extremum", integer, orders.order_of(name, request.dtype, skips)
    if name == "quantised_mean":
        most = 2**31 >> 8 * request.dtype.itemsize  # taps whose sum is sure to fit into 32 bits
        if math.prod(axis.most for axis in request.axes) > most:
            name = "long_quantised_mean"
    return name, dtype, NO_ORDER


def valid_of(request: Request, name: str) -> Valid:
    """How a reduction leaves NaNs out. Means count numbers, or if padding counts as well, they discount NaNs."""
    dtype = request.dtype
    if name == "indexed_extremum":
        bits = 64 if dtype.itemsize == 8 else 32
        return ALL_VALID if dtype.kind in MOMENTS else Valid(most=orders.repeated(bits, orders.infinity(dtype)))
    if name != "valid_mean":
        return ALL_VALID
    pads = any(axis.counts_pads for axis in request.axes)
    held = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
    counts = (0, -1) if pads else (1, 0)
    return Valid(*[int(np.array(count, held).view(f"u{held.itemsize}")) for count in counts])


def memory_order(x: Array, channel: int) -> tuple[int, ...] | None:
    """
    The axes of a result in memory order, slowest first: channels are where x has them, and other axes keep their order.

    None stands for row-major order, the order of any contiguous x.
    """
    if x.flags.c_contiguous:
        return None
    others = [axis for axis in range(x.ndim) if axis != channel]
    last = x.shape[channel] > 1
    if last and x.shape[others[-1]] > 1:
        last = abs(x.strides[channel]) < abs(x.strides[others[-1]])
    elif last:
        last = channel == x.ndim - 1
    return (*others, channel) if last else (0, channel, *others[1:])


def counts_beyond(request: Request) -> bool:
    """Whether indices need 64 bits, which only the loops of elements of 64 bits have: those within a window, or those
    of the lines of a window in the array, which loops count from the first line of several axes."""
    if not request.reduction.indexed or request.dtype.itemsize == 8:
        return False
    along = [(windows, request.places[axis]) for axis, windows in request.windows]
    if len(along) > 1 and sum([(axis.size - 1) * step for axis, step in along]) >= MOST_PLACES:
        return True
    across = max([min(axis.span, 2 * axis.size) * step for axis, step in along], default=0)
    return across * len(along) > MOST_PLACES


def problem_of(request: Request, form: Form, name: str) -> Problem:
    """The problem for which a step of this reduction is chosen."""
    itemsize = request.dtype.itemsize
    axes = tuple([dim.windows for dim in form.axes if dim.windows is not None])
    whole = request.reduction.whole
    return Problem(reduction=name, axes=axes, items=form.item.size, lanes=form.lane.size, planar=form.apart,
                   itemsize=itemsize, acc_bytes=max(itemsize * KINDS[name].factor, KINDS[name].acc_bytes),
                   register=REGISTER, whole=whole, joined=form.joined(dict(request.windows)) if whole else 1)


def problems_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
                name: str | None = None) -> tuple[list[Form], list[Problem]]:
    """The forms of a request for these strides, and the problem of each. `name` is the reduction of its units."""
    forms = forms_of(request, x, results, contiguous, VECTOR // request.dtype.itemsize)
    name = name or compiled_for(request)[0]
    return forms, [problem_of(request, form, name) for form in forms]


def key_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool) -> str:
    """The problem as text: all that the fastest way can depend on."""
    forms = forms_of(request, x, results, contiguous, VECTOR // request.dtype.itemsize)
    return key_in(request, x, results, forms[0])


def key_in(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], form: Form) -> str:
    """The same, for the first form of the problem."""
    reduction, dims = request.reduction, []
    for dim in form.dims:
        axis = dim.windows
        dims.append([dim.size, x[dim.x] if dim.x >= 0 else 0, *[y[dim.y] if dim.y >= 0 else 0 for y in results],
                     axis and [axis.out, axis.kernel, axis.stride, axis.dilation, *axis.pads, int(axis.counts_pads)]])
    return str([dtype_name(request.dtype), reduction.name, reduction.p, reduction.indexed, reduction.whole,
                reduction.skips, dims])


def pools_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]],
             contiguous: bool) -> dict[Way, pools.Pool]:
    """A pool for each way to solve a problem, unless it does the same as that of another. The usual way comes first."""
    choices = choices_of(problems_of(request, x, results, contiguous)[1])
    ways = [Way(choice.step.name, choice.problem.planar, room) for room in ROOMS for choice in choices]
    found: dict[Any, tuple[Way, Setup]] = {}
    for way in ways:
        setup = setup_of(request, x, results, contiguous, way)
        found.setdefault((setup.form.apart, setup.stages), (way, setup))
    return {way: pools.Pool(setup) for way, setup in found.values()}


def usual_of(problems: Sequence[Problem]) -> routes.Choice:
    """The step and form that costs choose."""
    return routes.choose(problems[0]) if len(problems) == 1 else routes.choose_between(*problems)


def choices_of(problems: Sequence[Problem]) -> list[routes.Choice]:
    """All steps and forms that solve a problem with the same bits. The usual one comes first."""
    usual = usual_of(problems)  # in another form, the sums of whole channels have another order
    others = [routes.Choice(problem, step, math.inf)
              for problem in problems for step in steps.STEPS if step.fits(problem)
              and (step, problem) != (usual.step, usual.problem) and (problem is usual.problem or not step.whole)]
    return [usual, *others]


def setup_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
             way: Way | None = None) -> Setup:
    """
    The setup of a pool for this request and these strides.

    Parameters
    ----------
    request : Request
    x : sequence of int
        The strides of X, in bytes.
    results : sequence of sequence of int
        The strides of the result, and of its indices if there are any.
    contiguous : bool
        Whether X is in row-major order, without gaps, and in the byte order of the machine.
    way : Way, optional
        By default the one that was learned, or else the cheapest.
    """
    reduction = request.reduction
    name, dtype, order = compiled_for(request)
    if counts_beyond(request):
        raise PoolError(f"MaxPool: windows or planes of more than {MOST_PLACES} places of {dtype} have no compiled "
                        f"indices; give a dtype of 64 bits", "MaxPool", "X", value=dtype)
    forms, problems = problems_of(request, x, results, contiguous, name)
    if way is None and learned:
        way = learned.get(key_in(request, x, results, forms[0]))
    if way is None:
        choice = usual_of(problems)
    else:
        choices = choices_of(problems)
        fitting = [choice for choice in choices if (choice.step.name, choice.problem.planar) == way[:2]]
        choice = fitting[0] if fitting else choices[0]
    problem, step, form = choice.problem, choice.step, forms[problems.index(choice.problem)]
    own = "bfloat16" if dtype == "float16" and request.dtype.kind != "f" else dtype
    low, high = ranges.safe_range(reduction, own)
    retries = name == reduction.name and ranges.retries(reduction, own)
    reports = name == "valid_mean" and ranges.retries(reduction, own)
    least, largest = ranges.harmless(reduction, own, problem.axes) if retries or reports else (0.0, math.inf)
    groups = math.prod([dim.size for dim in form.groups])
    return Setup(axes=problem.axes, joined=problem.joined, form=form, itemsize=problem.itemsize,
                 acc_bytes=problem.acc_bytes, digits=DTYPES[own].digits,
                 p=-reduction.p if reduction.skips else reduction.p, divides=name == "mean", low=low, high=high,
                 order=order, valid=valid_of(request, name) if reduction.skips else ALL_VALID,
                 reports=reports, is_other=request.dtype.kind not in "fi",
                 few=name == "integer_mean" and integers.has_few_taps(request),
                 careful=step.divides or largest_divisor(problem.axes) > MOST_CORRECTED,
                 least=least, largest=largest, indexed=reduction.indexed, copy=COPY,
                 route=step.name, stages=stages_of(problem, step, groups, dtype, own if retries else None,
                                                   contiguous, way.room if way else 1.0))


def stages_of(problem: Problem, step: Step, groups: int, dtype: str, retried: str | None, contiguous: bool,
              share: float) -> tuple[Stage, ...]:
    """The chosen step with its tiles, and if results may have to be recomputed, a second one for elements of the dtype
    `retried`."""
    axes, lanes, planar, itemsize = problem.axes, problem.lanes, problem.planar, problem.itemsize
    most = steps.lanes_of(problem) if planar else lanes
    room = PLANAR_ROOM if planar else step.room
    least = CACHE_LINE if planar and not step.whole else step.least_lanes  # transposed lanes are adjacent in any tile
    if not step.whole and max([axis.most for axis in axes]) > FEW:
        room, least = LONG_ROOM if len(axes) > 1 else LINE_ROOM, CACHE_LINE
        if step.by_axis and not planar and axes[0].kernel > FEW and steps.alone(problem, axes[0], lanes):
            least = LONG_LANES
    room = int(share * room) if share * room < tiles.MOST else tiles.MOST
    # Strided elements are copied, and so are results. Contiguous ones stay in place, where some are soon read again.
    stays = not planar and step.in_place and (step.gathers or contiguous)
    # A thread may take MOST bytes: the part that is not scratch memory is available for copied elements.
    free = 0 if planar or (step.copies_in_room and not stays) else tiles.MOST - room
    work = tiles.Work(axes, by_axis=stays and step.by_axis, rows=planar)

    extents = groups, problem.items, lanes
    least, grain = least // itemsize, VECTOR // itemsize

    def stage(step: Step, reduction: str, dtype: str, room: int, alone: int = 1, together: int = 1,
              **limits: Any) -> Stage:
        unit = steps.unit_of(step.name, reduction, dtype)

        def volume(tile: Tile) -> int:
            scratch: int = pools.scratch_of(unit, axes, tile.windows, tile.lanes, lanes, problem.joined)
            held = tiles.results(tile) if stays else tiles.elements(axes, tile)
            near = tiles.reused(axes, tile) if stays and step.rereads else 0
            return scratch + max(near * itemsize, held * itemsize - free)

        tile = divided = tiles.cut(axes, extents, volume, room, work, **limits)
        if alone > 1:
            tile = divided = tiles.divide(axes, extents, tile, alone, work, least, grain)
        if together > alone:
            divided = tiles.divide(axes, extents, tile, together, work, least, grain)
        return Stage(unit, step.by_axis, step.gathers and not planar, step.shares and not planar, step.divides, tile,
                     divided)

    first = stage(step, problem.reduction, dtype, room, *tiles.tasks_of(axes, extents), lane_values=(least, most),
                  grain=grain)
    if retried is None:
        return (first,)
    other, reduction = steps.retry_of(step, problem, retried)
    return first, stage(other, reduction, retried, max(room, LONG_ROOM), within=first.tile)
