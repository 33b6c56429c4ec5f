"""Layout: the pool for a request and for the strides of its arrays. All pools come from `pool_of`."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import budget, kernels, threads
from ..arrays import Array, dtype_name
from ..constants import MOST_PLACES
from ..dtypes import DTYPES, MOMENTS
from ..errors import PoolError
from ..kernels import Pool, pool_of_request
from ..windows import per_axis
from . import costs, integers, orders, planner, ranges, solvers
from .planner import Planner, Reducer
from .reductions import KINDS
from .request import MERGES, Reduction, Request
from .setup import Form, Setup
from .ways import ROOMS, Way, learned

REGISTER = costs.nearest(kernels.REGISTER)
CONVERTED = 1 << 20  # maximum bytes of elements and maxima that are converted at a time, unless a window is larger
NO_ORDER = orders.Order()
SOLVERS = [record.name for record in solvers.SOLVERS]

planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, REGISTER)


class Valid(NamedTuple):
    """How means, and extrema with indices, skip NaNs, as `Rule` in `core/job.h` describes."""

    counted: int = 0
    left_out: int = 0
    most: int = 0


ALL_VALID = Valid()


def compiled_for(reduction: Reduction, dtype: np.dtype[Any], is_long: bool = False) -> tuple[str, str, orders.Order]:
    """The reduction and dtype of the compiled units, and the order by which they compare elements. `is_long` says
    whether sums of quantised elements may exceed 32 bits."""
    own = orders.held_as(dtype)
    name = "magnitude" if reduction.name == "norm" and math.isinf(reduction.p) else reduction.name
    integer, skips = f"int{8 * dtype.itemsize}", reduction.skips
    if reduction.indexed:
        order = orders.indexed_order_of(name, dtype, skips)
        return "indexed_extremum", own if DTYPES[own].digits and not skips else integer, order
    if name == "mean" and dtype.kind in "iu":
        return "integer_mean", "uint8" if own == "uint8" else integer, NO_ORDER
    name = "valid_mean" if name == "mean" and skips else name
    if own == "bfloat16" and name in KINDS and own not in KINDS[name].dtypes:
        own = "float16"
    if name == "max" and own == "float16":
        return name, own, orders.order_of(name, dtype, skips)
    if name not in KINDS or own not in KINDS[name].dtypes or (skips and name == "max"):
        return "extremum", integer, orders.order_of(name, dtype, skips)
    return f"long_{name}" if is_long else name, own, NO_ORDER


def valid_of(dtype: np.dtype[Any], name: str, pads: bool) -> Valid:
    """How a reduction skips NaNs. Means count numbers. If padding counts as well, they subtract NaNs from the count."""
    if name == "indexed_extremum":
        bits = 64 if dtype.itemsize == 8 else 32
        return ALL_VALID if dtype.kind in MOMENTS else Valid(most=orders.repeated(bits, orders.infinity(dtype)))
    if name != "valid_mean":
        return ALL_VALID
    held = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
    counts = (0, -1) if pads else (1, 0)
    return Valid(*[int(np.array(count, held).view(f"u{held.itemsize}")) for count in counts])


@lru_cache(maxsize=256)
def reducer(reduction: Reduction, dtype: np.dtype[Any], pads: bool, is_long: bool) -> Reducer:
    """How units reduce windows of a dtype. `pads` says whether padding counts in means."""
    name, own, order = compiled_for(reduction, dtype, is_long)
    exact = "bfloat16" if own == "float16" and dtype.kind != "f" else own
    retries = name == reduction.name and ranges.retries(reduction, exact)
    return Reducer(
        name, own, exact if retries else None, dtype.itemsize, DTYPES[exact].digits, whole=reduction.whole,
        indexed=reduction.indexed, reports=name == "valid_mean" and ranges.retries(reduction, exact),
        divides=name == "mean", is_other=dtype.kind not in "fi", top=ranges.top(exact),
        few=integers.FEW_TAPS[dtype.name] if name == "integer_mean" else 0,
        p=-reduction.p if reduction.skips else reduction.p, safe=ranges.safe_range(reduction, exact), order=order,
        valid=valid_of(dtype, name, pads) if reduction.skips else ALL_VALID)


def short_taps(dtype: np.dtype[Any]) -> int:
    """The largest number of quantised elements whose sum always fits into 32 bits."""
    return 2**31 >> 8 * dtype.itemsize


def reducer_of(request: Request) -> Reducer:
    """How units reduce the windows of a request."""
    reduction = request.reduction
    pads = reduction.skips and any(axis.counts_pads for axis in request.axes)
    is_long = reduction.name == "quantised_mean" and (
        math.prod([axis.most for axis in request.axes]) > short_taps(request.dtype))
    return reducer(reduction, request.dtype, pads, is_long)


def memory_order(x: Array, channel: int) -> tuple[int, ...] | None:
    """
    The axes of a result in memory order, slowest first. Channels stay where x has them, and other axes keep their
    order.

    None stands for row-major order, which every contiguous x has.
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
    """Whether indices need 64 bits, which only loops for 64-bit elements have. Loops count places within a window, and
    the lines of a window within the array, from the first line of several axes."""
    if not request.reduction.indexed or request.dtype.itemsize == 8:
        return False
    along = [(windows, request.places[axis]) for axis, windows in request.windows]
    if len(along) > 1 and sum([(axis.size - 1) * step for axis, step in along]) >= MOST_PLACES:
        return True
    across = max([min(axis.span, 2 * axis.size) * step for axis, step in along], default=0)
    return across * len(along) > MOST_PLACES


def planner_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool) -> Planner:
    """The forms of a request for these strides."""
    return Planner(reducer_of(request), request, x, results, contiguous)


def key_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool) -> str:
    """The problem as text, with everything that the fastest way can depend on."""
    return key_in(request, x, results, planner_of(request, x, results, contiguous).forms[0])


def key_in(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], form: Form) -> str:
    """The problem as text, given its first form."""
    reduction, dims = request.reduction, []
    for dim in form.dims:
        axis = dim.windows
        dims.append([dim.size, x[dim.x] if dim.x >= 0 else 0, *[y[dim.y] if dim.y >= 0 else 0 for y in results],
                     axis and [axis.out, axis.kernel, axis.stride, axis.dilation, *axis.pads, int(axis.counts_pads)]])
    return str([dtype_name(request.dtype), reduction.name, reduction.p, reduction.indexed, reduction.whole,
                reduction.skips, dims])


def pools_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]],
             contiguous: bool) -> dict[Way, Pool]:
    """A pool for each way to solve a problem, without duplicates of the same setup. The usual way comes first."""
    choices = choices_of(planner_of(request, x, results, contiguous))
    ways = [Way(solver, adjacent, room) for room in ROOMS for solver, adjacent in choices]
    found: dict[Any, tuple[Way, Pool]] = {}
    for way in ways:
        pool = pool_of(request, x, results, contiguous, way)
        found.setdefault((pool.setup.form.apart, pool.setup.stages), (way, pool))
    return dict(found.values())


def choices_of(planner: Planner) -> list[tuple[str, bool]]:
    """
    All solvers that give a problem's results the same bits, and whether strided lanes are made adjacent for them. The
    usual solver comes first.
    """
    solver, form, _ = planner.usual
    usual = solver, planner.is_apart(form)
    whole = [record.name for record in solvers.SOLVERS if record.whole]  # in another form, sums have another order
    others = [(name, planner.is_apart(i)) for i, names in enumerate(planner.fitting) for name in names
              if i == form or name not in whole]
    return [usual, *[choice for choice in others if choice != usual]]


def pool_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
            way: Way | None = None) -> Pool:
    """
    The pool for this request and these strides.

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
        By default, the way that was learned, or else the cheapest one.
    """
    if counts_beyond(request):
        raise PoolError(f"MaxPool: Indices within windows or planes of more than {MOST_PLACES} places need a 64-bit "
                        f"dtype, but X has {request.dtype}; cast X", "MaxPool", "X", value=request.dtype.name)
    memory, own = (x, results, contiguous), reducer_of(request)
    if way is None and learned:
        way = learned.get(key_of(request, *memory))
    if way is None:
        return pool_of_request(own, request, *memory)
    planner = planner_of(request, *memory)
    choices = choices_of(planner)
    solver, adjacent = way[:2] if way[:2] in choices else choices[0]
    return pool_of_request(own, request, *memory, SOLVERS.index(solver), planner.place_of(adjacent), way.room)


def template_of(plan: Any, pooled: Sequence[int], attributes: dict[str, Any] | None) -> kernels.Template | None:
    """
    What calls on plain arrays of any shape do, if they are like calls of `plan`. None if Python has to look at each
    shape.

    Parameters
    ----------
    plan : WindowPlan
    pooled : sequence of int
        The pooled axes, in the order of attributes.
    attributes : dict, optional
        The values of all the operator's attributes. None if one window covers the axes.
    """
    request, rank = plan.request, len(pooled)
    reduction, dtype = request.reduction, request.dtype
    name, counts, maker, most_taps = reduction.name, dtype.kind in "biu", None, math.inf
    divisors: tuple[float, float] = (0, math.inf)
    result = dtype if plan.result_dtype == dtype else plan.result_dtype
    held = result
    if name == "mean" and counts:
        held = integers.held_in(request)
        divisors = (0, 0) if reduction.whole else integers.divisors_for(dtype, held, result)
    elif result is not dtype:
        return None
    if (dtype.kind in MOMENTS or (reduction.skips and reduction.indexed) or not divisors[1]
            or (attributes is not None and reduction.whole)):
        return None
    if plan.scaled:
        most_taps, maker = math.inf if name == "mean_in_order" else short_taps(dtype), plan._maker
    windows, mode, given, compiled = None, "NOTSET", attributes or {}, request._replace(dtype=held)
    if attributes is not None:
        kernel, strides, dilations, pads = (
            per_axis(plan.label, given, key, rank) for key in ("kernel_shape", "strides", "dilations", "pads"))
        windows = [*zip(kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)]
        mode = given["auto_pad"]
    return kernels.Template(
        reducer(reduction, held, reduction.skips and bool(given.get("count_include_pad")), False), dtype, held, result,
        CONVERTED // held.itemsize, request.order, pooled, windows, mode, keepdims=request.keepdims,
        ceil_mode=bool(given.get("ceil_mode")),
        counts_pads=bool(given.get("count_include_pad")),
        picks=not reduction.indexed and (name in MERGES or (name == "mean" and counts)),
        fills=reduction.skips and name != "mean", may_cover=plan.scaled and not reduction.whole,
        most_taps=most_taps, divisors=divisors, maker=maker,
        is_learned=lambda form, x, results: key_in(compiled, x, results, form) in learned)


def new_shapes() -> kernels.Shapes:
    """An empty set of pools by shape, for an operator."""
    return kernels.Shapes(threads.SERIAL_BYTES, threads.team, lambda: bool(learned),
                          lambda: budget.in_force() != budget.NO_LIMITS)


def setup_of(request: Request, x: Sequence[int], results: Sequence[Sequence[int]], contiguous: bool,
             way: Way | None = None) -> Setup:
    """What the pool for this request and these strides does."""
    return pool_of(request, x, results, contiguous, way).setup
