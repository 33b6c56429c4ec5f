"""Layout: turns a request and the strides of its arrays into the setup of a pool. All setups come from `setup_of`."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..arrays import Array, dtype_name
from ..dtypes import DTYPES, MOMENTS
from ..errors import PoolError
from ..kernels import pool as pools
from ..windows import Axis, largest_divisor
from . import costs, integers, orders, planner, ranges, steps
from .planner import Planner
from .reductions import KINDS
from .request import Request
from .setup import Form, Stage
from .ways import ROOMS, Way, learned

MOST_CORRECTED = 1 << 16  # maximum divisor for which one correction of a quotient by an inverse is enough
MOST_PLACES = 1 << 30  # maximum places of several axes, and across the taps of a window: 32 bits count both together
COPY = steps.unit_of(*steps.COPY)
REGISTER = costs.nearest(kernels.REGISTER)
NO_ORDER = orders.Order()

for table in kernels.units:
    planner.use(table)
planner.prepare(REGISTER)


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


def planner_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool) -> Planner:
    """The forms of a request for these strides."""
    return Planner(request, x, results, contiguous, compiled_for(request)[0])


def key_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool) -> str:
    """The problem as text: all that the fastest way can depend on."""
    return key_in(request, x, results, planner_of(request, x, results, contiguous).forms[0])


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
    choices = choices_of(planner_of(request, x, results, contiguous))
    ways = [Way(step, adjacent, room) for room in ROOMS for step, adjacent in choices]
    found: dict[Any, tuple[Way, Setup]] = {}
    for way in ways:
        setup = setup_of(request, x, results, contiguous, way)
        found.setdefault((setup.form.apart, setup.stages), (way, setup))
    return {way: pools.Pool(setup) for way, setup in found.values()}


def choices_of(planner: Planner) -> list[tuple[str, bool]]:
    """
    All steps that solve a problem with the same bits, and whether strided lanes are made adjacent for them. The usual
    one comes first.
    """
    step, form, _ = planner.usual
    usual = step, planner.is_apart(form)
    whole = [record.name for record in steps.STEPS if record.whole]  # in another form, sums have another order
    others = [(name, planner.is_apart(i)) for i, names in enumerate(planner.fitting) for name in names
              if i == form or name not in whole]
    return [usual, *[choice for choice in others if choice != usual]]


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
    planner = Planner(request, x, results, contiguous, name)
    if way is None and learned:
        way = learned.get(key_in(request, x, results, planner.forms[0]))
    step, place, _ = planner.usual
    if way is not None:
        choices = choices_of(planner)
        step, adjacent = way[:2] if way[:2] in choices else choices[0]
        place = planner.place_of(adjacent)
    own = "bfloat16" if dtype == "float16" and request.dtype.kind != "f" else dtype
    low, high = ranges.safe_range(reduction, own)
    retries = name == reduction.name and ranges.retries(reduction, own)
    reports = name == "valid_mean" and ranges.retries(reduction, own)
    form, axes, joined, acc_bytes, stages = planner.solve(step, place, dtype, own if retries else None,
                                                          way.room if way else 1.0)
    least, largest = ranges.harmless(reduction, own, axes) if retries or reports else (0.0, math.inf)
    return Setup(axes=axes, joined=joined, form=form, itemsize=request.dtype.itemsize,
                 acc_bytes=acc_bytes, digits=DTYPES[own].digits,
                 p=-reduction.p if reduction.skips else reduction.p, divides=name == "mean", low=low, high=high,
                 order=order, valid=valid_of(request, name) if reduction.skips else ALL_VALID,
                 reports=reports, is_other=request.dtype.kind not in "fi",
                 few=name == "integer_mean" and integers.has_few_taps(request),
                 careful=stages[0].divides or largest_divisor(axes) > MOST_CORRECTED,
                 least=least, largest=largest, indexed=reduction.indexed, copy=COPY, route=step, stages=stages)
